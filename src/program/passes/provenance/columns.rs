//! By which allocation an address in tensor memory was made: `tcgen05.alloc` writes it to shared memory, whoever uses it loads it there,
//! and adds lanes and columns to it (PTX ISA, tcgen05, Tensor Memory Addressing).
//!
//! Such a load gives an address; every other number of 32 bits is a distance. Where two addresses meet nothing is known.

use super::{Form, Value, comes_back};
use crate::isa::joint::{Joint, tcgen05};
use crate::program::ir::{
    Address, BlockId, Body, Initial, JointOp, Linear, MadeFrom, Object, ObjectKind, Op, Reg, Register, Role, Space,
    Special,
};
use crate::program::passes::definitions::Definition;

/// Rounds until nothing changes.
const ROUNDS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Column {
    Unseen,
    Number,
    /// An address, made from what this register holds.
    Made(Reg),
    Unknown,
}

/// Addresses in tensor memory, by register; empty in a body that has none.
pub struct Columns(Vec<Column>);

/// A word of shared memory: how far it is from where this register says, or from the start of the window.
type Word = (Option<Register>, i64);

impl Columns {
    /// `values`: what each register holds otherwise.
    pub fn of(body: &Body, order: &[BlockId], definitions: &[Definition], values: &[Value]) -> Columns {
        let mut allocated: Vec<Word> = Vec::new();
        for &block in order {
            for inst in &body.blocks[block as usize].insts {
                let Op::Joint(joint) = &inst.op else { continue };
                if !matches!(joint.what, Joint::Tcgen05(tcgen05::Op::Allocate(_))) {
                    continue;
                }
                match word(body, values, &joint.addresses[0]) {
                    // Of two addresses one after the other it is not known which a load finds.
                    Some(word) if allocated.contains(&word) || comes_back(body, block) => {
                        return Columns(Vec::new());
                    }
                    Some(word) => allocated.push(word),
                    None => {}
                }
            }
        }
        if allocated.is_empty() {
            return Columns(Vec::new());
        }
        let mut columns = vec![Column::Unseen; body.registers.len()];
        for (column, info) in columns.iter_mut().zip(&body.registers) {
            if info.initial.is_some() {
                *column = Column::Number;
            }
        }
        // A register that something else is written to no longer says from where an address was made.
        let stays = |reg: Reg| matches!(definitions[reg.number as usize], Definition::One(..));
        for _ in 0..ROUNDS {
            let mut changed = false;
            for &block in order {
                for inst in &body.blocks[block as usize].insts {
                    let new = match &inst.op {
                        Op::Load { address, dst, .. } => match (word(body, values, address), &dst[..]) {
                            (Some(word), [Some(reg)]) if allocated.contains(&word) && stays(*reg) => Column::Made(*reg),
                            _ => Column::Number,
                        },
                        other => given(&columns, other),
                    };
                    inst.op.regs(|reg, role| {
                        if role == Role::Def {
                            let known = &mut columns[reg.number as usize];
                            let next = meet(*known, new);
                            changed |= next != *known;
                            *known = next;
                        }
                    });
                }
            }
            if !changed {
                return Columns(columns);
            }
        }
        Columns(Vec::new())
    }

    /// From which allocation an address was made.
    fn object(&self, reg: Reg) -> Option<Object> {
        match self.0.get(reg.number as usize) {
            Some(Column::Made(base)) => Some(Object {
                base: *base,
                what: ObjectKind::Columns,
            }),
            Some(Column::Unseen | Column::Number | Column::Unknown) | None => None,
        }
    }

    /// Those of the addresses that an operation has in tensor memory.
    pub fn objects(&self, joint: &JointOp) -> Vec<Option<Object>> {
        use crate::program::ir::joint::tcgen05::Multiply;
        match joint.what {
            Joint::Tcgen05(tcgen05::Op::Mma(_)) => {
                let src = Multiply::of(&joint.src);
                let all = [src.d, src.a, src.metadata, src.scale_a, src.scale_b];
                all.into_iter().map(|reg| self.object(*reg)).collect()
            }
            Joint::Tcgen05(
                tcgen05::Op::Load(_)
                | tcgen05::Op::LoadReduce(..)
                | tcgen05::Op::Store(_)
                | tcgen05::Op::Copy(_)
                | tcgen05::Op::Shift(_),
            ) => vec![self.object(joint.src[0])],
            Joint::Tcgen05(_)
            | Joint::Matrix(_)
            | Joint::Bulk(_)
            | Joint::Mbarrier(_)
            | Joint::Tensor(_)
            | Joint::Cluster(_)
            | Joint::Warpgroup(_)
            | Joint::Multimem(_)
            | Joint::Fabric(_) => Vec::new(),
        }
    }
}

fn meet(a: Column, b: Column) -> Column {
    match (a, b) {
        (Column::Unseen, other) | (other, Column::Unseen) => other,
        (a, b) if a == b => a,
        _ => Column::Unknown,
    }
}

/// What an operation gives: sums with one address are addresses.
fn given(columns: &[Column], op: &Op) -> Column {
    let of = |reg: &Reg| columns[reg.number as usize];
    let Op::Compute { op: compute, src, .. } = op else {
        return Column::Number;
    };
    let mut whole = Column::Number;
    for column in src.iter().map(of) {
        whole = match (whole, column) {
            (_, Column::Unseen) => return Column::Unseen,
            (Column::Number, other) => other,
            (whole, Column::Number) => whole,
            (whole, other) if whole == other => whole,
            _ => Column::Unknown,
        };
    }
    let adds = match compute.linear() {
        Some(Linear::Copy | Linear::Add | Linear::Narrow | Linear::Widen { .. }) => true,
        Some(Linear::Mad | Linear::MadWide { .. }) => src[..2].iter().all(|reg| of(reg) == Column::Number),
        Some(Linear::Sub) => of(&src[1]) == Column::Number,
        Some(Linear::Mul | Linear::MulWide { .. } | Linear::Shl | Linear::Compare { .. }) => false,
        // Lanes are put into the upper half without a sum.
        None => compute.bitwise().is_some(),
    };
    match whole {
        Column::Made(_) if !adds => Column::Unknown,
        other => other,
    }
}

/// The word at an address of shared memory that is the same always.
fn word(body: &Body, values: &[Value], address: &Address) -> Option<Word> {
    let Some(register) = address.register else {
        return (address.space == Space::Shared).then_some((None, address.offset));
    };
    let start = |register: Register| match body.registers[register as usize].initial {
        Some(Initial::Special(Special::SharedAddress(at))) => (None, i64::from(at)),
        _ => (Some(register), 0),
    };
    match values[register.number as usize] {
        Value::Made(made) if made.form != Form::Descriptor => {
            let MadeFrom::Shared { base, .. } = made.from else {
                return None;
            };
            let (base, at) = start(base.number);
            Some((base, at.checked_add(made.offset?)?.checked_add(address.offset)?))
        }
        Value::Number => match start(register.number) {
            (None, at) => Some((None, at.checked_add(address.offset)?)),
            (Some(_), _) => None,
        },
        Value::Unseen | Value::Made(_) | Value::Unknown => None,
    }
}
