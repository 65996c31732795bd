//! A lowered function → the form in which the interpreter runs it: offsets multiplied for one bundle width, memory
//! accesses bound to the function that carries them out. Made once per function and width, kept with the function.

use std::sync::{Arc, OnceLock};

use crate::isa::lanes::{LaneKernel, Operands, Width};
use crate::program::{
    Address, BarrierOp, Callee, Copy3, Function, Initial, Instr, Kind, Ordering, Pc, Slot, Space, Value,
};

use super::access::{self, AccessFn};
use super::atomic::{self, AtomicFn};

/// Marks an absent slot or guard in a field that is otherwise an offset.
pub const NONE: u32 = u32::MAX;

/// A guard on an instruction: offset of the predicate, and whether lanes run where it is clear.
#[derive(Clone, Copy)]
pub struct OpGuard {
    pub offset: u32,
    pub negated: bool,
}

/// One instruction as the loop sees it.
pub struct Op {
    pub guard: OpGuard,
    pub code: Code,
}

/// A memory access: where the address comes from, which slots carry data.
pub struct MemOp {
    pub offset: i64,
    /// Offset of the address register, or [`NONE`].
    pub register: u32,
    /// The address register is 32 bits wide.
    pub narrow: bool,
    pub space: Space,
    pub ordering: Ordering,
    /// Slot offsets of the elements; [`NONE`] for a sink.
    pub data: Box<[u32]>,
}

/// An atomic access.
pub struct AtomOp {
    pub mem: MemOp,
    /// Where old values go; empty for `red`.
    pub dst: Box<[u32]>,
    pub b: Box<[u32]>,
    pub c: u32,
    pub ftz: bool,
}

/// What to do; hot operations in place, rare ones as the program has them (with offsets multiplied).
pub enum Code {
    Lane {
        kernel: LaneKernel,
        operands: Operands,
    },
    Load {
        run: AccessFn,
        mem: Box<MemOp>,
    },
    Store {
        run: AccessFn,
        mem: Box<MemOp>,
    },
    Atomic {
        run: AtomicFn,
        atom: Box<AtomOp>,
    },
    Branch {
        target: Pc,
    },
    /// A barrier over the whole block without operands worth a look: `bar.sync n`.
    BarrierAll {
        id: u32,
    },
    Call(Box<CallOp>),
    Return,
    Exit,
    Rare(Box<Kind>),
}

pub struct CallOp {
    /// Index into the module's functions, or [`NONE`] for an indirect call.
    pub function: u32,
    /// Slot offset of the address of an indirect call.
    pub address: u32,
    pub params: u32,
    pub returns: u32,
    pub args: Box<[Copy3]>,
    pub results: Box<[Copy3]>,
    /// The callee in executable form, once it has been called.
    pub resolved: OnceLock<Arc<Executable>>,
}

/// A function for one bundle width.
pub struct Executable {
    pub function: Arc<Function>,
    /// Warps of the bundles that it is for.
    pub width: u32,
    pub code: Vec<Op>,
    pub prologue: Vec<Op>,
    pub initial: Vec<(Slot, Initial)>,
    /// Bytes of a register window.
    pub window: u32,
}

impl Executable {
    /// The executable form of `function` for bundles of `width` warps (1, 2 or 4).
    pub fn of(function: &Arc<Function>, width: u32) -> Arc<Executable> {
        let cell = &function.executable[width.trailing_zeros() as usize];
        let any = cell.get_or_init(|| Arc::new(Executable::build(function, width)));
        // The cell is weak on purpose about types: only this function fills it.
        Arc::clone(any)
            .downcast::<Executable>()
            .expect("only executables are stored here")
    }

    fn build(function: &Arc<Function>, width: u32) -> Executable {
        let op = |i: &Instr| build_op(i, width);
        Executable {
            width,
            code: function.code.iter().map(op).collect(),
            prologue: function.prologue.iter().map(op).collect(),
            initial: function
                .initial
                .iter()
                .map(|(slot, init)| {
                    (
                        Slot {
                            offset: slot.offset * width,
                            ..*slot
                        },
                        *init,
                    )
                })
                .collect(),
            window: function.window * width,
            function: Arc::clone(function),
        }
    }
}

fn mem_op(address: &Address, ordering: Ordering, data: Box<[u32]>) -> MemOp {
    MemOp {
        offset: address.offset,
        register: address.register.map_or(NONE, |r| r.offset),
        narrow: address.register.is_some_and(|r| r.width == Width::B32),
        space: address.space,
        ordering,
        data,
    }
}

fn build_op(instr: &Instr, width: u32) -> Op {
    let mut instr = instr.clone();
    instr.slots_mut(&mut |offset, _, _| *offset *= width);
    let guard = match instr.guard {
        None => OpGuard {
            offset: NONE,
            negated: false,
        },
        Some(g) => OpGuard {
            offset: g.slot.offset,
            negated: g.negated,
        },
    };
    let offsets = |slots: &[Slot]| slots.iter().map(|s| s.offset).collect::<Box<[u32]>>();
    let code = match instr.kind {
        Kind::Lane { kernel, operands, .. } => Code::Lane { kernel, operands },
        Kind::Load {
            address,
            element,
            ordering,
            dst,
        } => {
            let wide = dst.iter().flatten().next().map(|s| s.width);
            let data = dst.iter().map(|s| s.map_or(NONE, |s| s.offset)).collect();
            Code::Load {
                run: access::load_fn(element, wide, ordering),
                mem: Box::new(mem_op(&address, ordering, data)),
            }
        }
        Kind::Store {
            address,
            element,
            ordering,
            src,
        } => Code::Store {
            run: access::store_fn(element, src[0].width, ordering),
            mem: Box::new(mem_op(&address, ordering, offsets(&src))),
        },
        Kind::Atomic {
            op,
            ty,
            ftz,
            ordering,
            address,
            dst,
            b,
            c,
        } => Code::Atomic {
            run: atomic::function(op, ty),
            atom: Box::new(AtomOp {
                mem: mem_op(&address, ordering, Box::new([])),
                dst: dst.map_or_else(|| Box::from([]), |d| offsets(&d)),
                b: offsets(&b),
                c: c.map_or(NONE, |s| s.offset),
                ftz,
            }),
        },
        Kind::Branch { target } => Code::Branch { target },
        Kind::Barrier {
            op: BarrierOp::Sync,
            id: Value::Immediate(id),
            threads: None,
            ..
        } if id < 16 => Code::BarrierAll { id },
        Kind::Call { callee, args, results } => {
            let (function, address, params, returns) = match callee {
                Callee::Direct(index) => (index, NONE, 0, 0),
                Callee::Indirect {
                    address,
                    params,
                    returns,
                } => (NONE, address.offset, params, returns),
            };
            let resolved = OnceLock::new();
            Code::Call(Box::new(CallOp {
                function,
                address,
                params,
                returns,
                args,
                results,
                resolved,
            }))
        }
        Kind::Return => Code::Return,
        Kind::Exit => Code::Exit,
        other => Code::Rare(Box::new(other)),
    };
    Op { guard, code }
}
