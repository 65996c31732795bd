//! What operations reach that do more than load or store a few bytes: rows and tiles of matrices, bulk copies, the sources of
//! asynchronous ones. Where they reach to is computed before them, by operations of the representation, where it is no number; of
//! several lines the first and the last are looked at, for what lies between them lies in the same object.

use crate::isa::compare::{self, Compare, Operands};
use crate::isa::joint::Joint;
use crate::isa::joint::bulk;
use crate::isa::joint::matrix::{self, Rows, Tile};
use crate::isa::lanes::{WARP, Width};
use crate::isa::logic::{self, Shifted};
use crate::isa::types::{IntType, NarrowInt};
use crate::isa::{Compute, int};
use crate::program::ir::{Address, Body, Guard, Initial, Inst, JointOp, Op, Reached, Reg, Special};

/// Accesses by one register, in the lanes of a guard.
pub struct Reach {
    pub register: Reg,
    pub guard: Option<Guard>,
    pub accesses: Vec<Reached>,
}

/// Computes before an instruction what it reaches by an address; what is computed goes to `out`.
pub struct Extents<'a> {
    pub body: &'a mut Body,
    pub inst: &'a Inst,
    pub out: &'a mut Vec<Inst>,
}

impl Extents<'_> {
    /// By which of its addresses an instruction reaches what is found here.
    pub fn addresses(op: &Op) -> &[Address] {
        if let Op::CopyAsync {
            src, src_size, ignore, ..
        } = op
        {
            // Of the source less may be read; else it is an access like others.
            let may_be_less = src_size.is_some() || ignore.is_some();
            return if may_be_less { std::slice::from_ref(src) } else { &[] };
        }
        let Op::Joint(joint) = op else { return &[] };
        match joint.what {
            Joint::Matrix(_) => &joint.addresses,
            // Behind them the barrier.
            Joint::Bulk(bulk::Op::Copy(_) | bulk::Op::Reduce { .. }) => &joint.addresses[..2],
            Joint::Bulk(
                bulk::Op::CommitGroup
                | bulk::Op::WaitGroup { .. }
                | bulk::Op::Store { .. }
                | bulk::Op::Update { .. }
                | bulk::Op::StoreGlobal { .. }
                | bulk::Op::UpdateGlobal { .. }
                | bulk::Op::Clear,
            )
            | Joint::Mbarrier(_)
            | Joint::Tensor(_)
            | Joint::Cluster(_)
            | Joint::Warpgroup(_)
            | Joint::Tcgen05(_)
            | Joint::Multimem(_)
            | Joint::Fabric(_) => &[],
        }
    }

    /// What it reaches by the address with this number, whose register is `register`.
    pub fn reach(&mut self, number: usize, register: Reg) -> Vec<Reach> {
        if let Op::CopyAsync {
            src,
            bytes,
            src_size,
            ignore,
            ..
        } = &self.inst.op
        {
            let (src, bytes) = (*src, u32::from(*bytes));
            let mut guard = self.inst.guard;
            if let Some((reg, negated)) = *ignore {
                guard = Some(self.and(guard, Guard { reg, negated: !negated }));
            }
            if let Some(size) = *src_size {
                let some = self.compare(Compare::Ne, size, 0);
                guard = Some(self.and(guard, some));
            }
            return vec![self.by(register, guard, vec![(src.offset, bytes, false)])];
        }
        let Op::Joint(joint) = &self.inst.op else {
            return Vec::new();
        };
        if let Joint::Matrix(op) = joint.what {
            return self.matrix(op, joint, register);
        }
        // Where bytes at the ends may not be there, or not be written, the copy itself looks.
        let is_left = matches!(joint.what, Joint::Bulk(bulk::Op::Copy(copy)) if copy.masked || copy.ignores_ends);
        match is_left {
            true => Vec::new(),
            false => self.bulk(joint, number, register),
        }
    }

    fn matrix(&mut self, op: matrix::Op, joint: &JointOp, register: Reg) -> Vec<Reach> {
        match op {
            matrix::Op::LoadRows(rows) => vec![self.rows(rows, joint, register, false)],
            matrix::Op::StoreRows(rows) => vec![self.rows(rows, joint, register, true)],
            matrix::Op::LoadTile(tile) => self.tile(tile, joint, register, false),
            matrix::Op::StoreTile(tile) => self.tile(tile, joint, register, true),
            matrix::Op::Transpose | matrix::Op::Multiply(_) => Vec::new(),
        }
    }

    /// The addresses of as many lanes count as there are rows.
    fn rows(&mut self, rows: Rows, joint: &JointOp, register: Reg, write: bool) -> Reach {
        let named = usize::from(rows.count) * rows.rows(!write);
        let mut guard = self.inst.guard;
        if named < WARP {
            let lane = self.body.initial(Width::B32, Initial::Special(Special::Laneid));
            let lane = self.body.reg(lane);
            let is_named = self.compare(Compare::Lt, lane, named as u128);
            guard = Some(self.and(guard, is_named));
        }
        let bytes = rows.packing.bytes() as u32;
        self.by(register, guard, vec![(joint.addresses[0].offset, bytes, write)])
    }

    fn tile(&mut self, tile: Tile, joint: &JointOp, register: Reg, write: bool) -> Vec<Reach> {
        let (first, guard) = (joint.addresses[0].offset, self.inst.guard);
        let bytes = (tile.length() * usize::from(tile.bits) / 8) as u32;
        // Of an element of the stride.
        let far = (tile.lines() - 1) * usize::from(tile.bits);
        let stride = joint.src[0];
        if let Some(stride) = self.body.constant(stride.number) {
            let last = first.wrapping_add((stride as i64).wrapping_mul(far as i64) / 8);
            return vec![self.by(register, guard, vec![(first, bytes, write), (last, bytes, write)])];
        }
        let last = self.tail(register, stride, far as u64);
        vec![
            self.by(register, guard, vec![(first, bytes, write)]),
            self.by(last, guard, vec![(first, bytes, write)]),
        ]
    }

    /// A bulk copy's destination, number 0, or its source.
    fn bulk(&mut self, joint: &JointOp, number: usize, register: Reg) -> Vec<Reach> {
        let write = number == 0;
        let (first, size) = (joint.addresses[number].offset, joint.src[0]);
        if let Some(bytes) = self.body.constant(size.number) {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            return match bytes {
                0 => Vec::new(),
                _ => vec![self.by(register, self.inst.guard, vec![(first, bytes, write)])],
            };
        }
        let some = self.compare(Compare::Ne, size, 0);
        let guard = Some(self.and(self.inst.guard, some));
        let last = self.tail(register, size, 8);
        vec![
            self.by(register, guard, vec![(first, PIECE, write)]),
            self.by(last, guard, vec![(first.wrapping_sub(PIECE.into()), PIECE, write)]),
        ]
    }

    fn by(&self, register: Reg, guard: Option<Guard>, accesses: Vec<(i64, u32, bool)>) -> Reach {
        let span = self.inst.span;
        let reached = |(offset, bytes, write)| Reached {
            offset,
            bytes,
            write,
            span,
        };
        Reach {
            register,
            guard,
            accesses: accesses.into_iter().map(reached).collect(),
        }
    }

    /// A register so many bits for each unit of a number behind another one.
    fn tail(&mut self, register: Reg, units: Reg, bits: u64) -> Reg {
        let wide = register.width == Width::B64;
        let (product, shift, sum) = match wide {
            true => (
                int::Op::MulWide { ty: NarrowInt::U32 },
                Shifted::U64,
                int::Op::Add { ty: IntType::U64 },
            ),
            false => (
                int::Op::Mul {
                    part: int::Part::Lo,
                    ty: IntType::U32,
                },
                Shifted::U32,
                int::Op::Add { ty: IntType::U32 },
            ),
        };
        let [bits, three] = [u128::from(bits), 3].map(|value| self.constant(Width::B32, value));
        let distance = self.compute(Compute::Int(product), register.width, &[units, bits]);
        let distance = self.compute(
            Compute::Logic(logic::Op::Shr { ty: shift }),
            register.width,
            &[distance, three],
        );
        self.compute(Compute::Int(sum), register.width, &[register, distance])
    }

    fn compare(&mut self, compare: Compare, a: Reg, b: u128) -> Guard {
        let b = self.constant(a.width, b);
        let op = compare::Op::Setp {
            compare,
            boolean: None,
            of: Operands::U32,
        };
        Guard {
            reg: self.compute(Compute::Compare(op), Width::Pred, &[a, b]),
            negated: false,
        }
    }

    /// Lanes that two guards both let through.
    fn and(&mut self, first: Option<Guard>, second: Guard) -> Guard {
        let Some(first) = first else { return second };
        let [a, b] = [first, second].map(|guard| match guard.negated {
            true => self.compute(Compute::not_predicate(), Width::Pred, &[guard.reg]),
            false => guard.reg,
        });
        Guard {
            reg: self.compute(Compute::and_predicates(), Width::Pred, &[a, b]),
            negated: false,
        }
    }

    fn constant(&mut self, width: Width, value: u128) -> Reg {
        let register = self.body.initial(width, Initial::Constant(value));
        self.body.reg(register)
    }

    fn compute(&mut self, op: Compute, width: Width, src: &[Reg]) -> Reg {
        let register = self.body.register(width);
        let src: Vec<_> = src.iter().map(|reg| reg.number).collect();
        self.out.push(Inst {
            guard: None,
            op: Op::compute(self.body, op, &[register], &src),
            span: self.inst.span,
            line: self.inst.line,
        });
        self.body.reg(register)
    }
}

/// Bulk copies are of a multiple of so many bytes.
const PIECE: u32 = 16;
