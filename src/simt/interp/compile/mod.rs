//! The interpreter's own compiler: a function of the representation → code in one row, with registers as slots of a
//! window, jumps as places in the code, and what follows the lane's number found.
//!
//! [`Compiled`] is for a bundle of one warp; [`super::code::Executable`] scales it to a bundle's width and binds accesses
//! and kernels. `slots` gives registers their places, `values` and `affine` treat values that follow the lane's number,
//! `check` states what the loop relies on, `show` prints the code.

pub mod affine;
mod check;
mod instr;
mod show;
mod slots;
pub mod values;

use std::ops::Range;
use std::sync::Arc;

use self::values::Affine;
use crate::program::passes::liveness;
use crate::program::{BlockId, Body, End, Function, Guard, Initial, Inst, Reg, Role};
use crate::ptx::ast::Span;
use crate::simt::jit::Ways;
pub use crate::simt::machine::slots::Slot;
pub use instr::{Instr, Pc, What};

/// A function as the interpreter runs it, for a bundle of one warp.
#[derive(Debug)]
pub struct Compiled {
    pub function: Arc<Function>,
    pub code: Vec<Instr>,
    /// Bytes of the register window (multiple of 64).
    pub window: u32,
    /// Slots set before the function runs and never reused for anything else. Kernels: once for each worker and launch
    /// where constant, once a block otherwise. Device functions: at each call (constants and specials only).
    pub initial: Vec<(Slot, Initial)>,
    /// Operations on constants of the launch, in order; run once after `initial` (kernels only).
    pub prologue: Vec<Instr>,
    /// Kernels: what follows the lane's number and need not be computed lane by lane.
    pub affine: Option<Affine>,
    /// Where each block of the body begins, and each register's place in the window: for other tiers.
    pub starts: Vec<Pc>,
    pub slots: Vec<Option<u32>>,
    /// What the function's branches have done so far.
    pub ways: Ways,
}

impl Compiled {
    /// Lays a function out and gives its registers places.
    pub fn of(function: &Arc<Function>, kernel: bool) -> Compiled {
        let body = &function.body;
        let mut code: Vec<Instr<Reg>> = Vec::new();
        let mut ranges: Vec<Range<u32>> = Vec::with_capacity(body.blocks.len());
        for (number, block) in body.blocks.iter().enumerate() {
            let start = code.len() as u32;
            for inst in &block.insts {
                code.push(plain(inst));
            }
            push_end(body, &mut code, &block.end, number as BlockId + 1);
            for instr in &mut code[start as usize..] {
                instr.inlined = block.inlined;
            }
            ranges.push(start..code.len() as u32);
        }
        // Falling off the last block cannot happen: it stops or jumps. An empty body has no code at all.

        let flow = liveness::Flow::of(body, &(0..body.blocks.len() as BlockId).collect::<Vec<_>>());
        let mut intervals = slots::intervals(&flow, body.registers.len(), &code, &ranges);
        let mut pinned: Vec<bool> = body.registers.iter().map(|info| info.initial.is_some()).collect();
        let mut found = if kernel { affine::find(body, &code) } else { None };
        if let Some(affine) = &mut found {
            affine.slots_mut(|slot| pinned[slot.offset as usize] = true);
        }
        for inst in &body.prologue {
            inst.regs(|reg, role| {
                pinned[reg.number as usize] |= role == Role::Def;
                let interval = &mut intervals[reg.number as usize];
                interval.get_or_insert(slots::Interval { start: 0, end: 0 });
            });
        }
        for (register, pinned) in pinned.iter_mut().enumerate() {
            *pinned &= intervals[register].is_some();
        }
        let allocation = slots::allocate(body, &code, &intervals, &pinned);
        #[cfg(debug_assertions)]
        slots::verify(body, &code, &ranges, &pinned, &allocation.offsets);

        let offset = |register: u32| allocation.offsets[register as usize].unwrap_or(0);
        let mut slot = |reg: Reg| Slot {
            offset: offset(reg.number),
            width: reg.width,
        };
        let code = code
            .into_iter()
            .map(|mut instr| {
                match &mut instr.what {
                    What::Branch { target, .. } => *target = ranges[*target as usize].start,
                    What::BranchIndexed { targets, .. } => {
                        targets.iter_mut().for_each(|t| *t = ranges[*t as usize].start);
                    }
                    What::Op(_) => {}
                }
                instr.map(&mut slot)
            })
            .collect();
        let prologue = body.prologue.iter().map(|inst| plain(inst).map(&mut slot)).collect();
        if let Some(affine) = &mut found {
            affine.slots_mut(|slot| slot.offset = offset(slot.offset));
        }
        let compiled = Compiled {
            code,
            window: allocation.window,
            initial: initial(body, &allocation.offsets),
            prologue,
            affine: found,
            starts: ranges.iter().map(|range| range.start).collect(),
            slots: allocation.offsets,
            ways: Ways::of(body),
            function: Arc::clone(function),
        };
        if cfg!(debug_assertions)
            && let Err(broken) = compiled.check()
        {
            panic!("{broken}\n{compiled}");
        }
        compiled
    }
}

/// What is set before the function runs, by slot.
fn initial(body: &Body, offsets: &[Option<u32>]) -> Vec<(Slot, Initial)> {
    let slots = body.registers.iter().zip(offsets).filter_map(|(info, offset)| {
        let slot = Slot {
            offset: (*offset)?,
            width: info.width,
        };
        info.initial.map(|initial| (slot, initial))
    });
    slots.collect()
}

fn plain(inst: &Inst) -> Instr<Reg> {
    Instr {
        guard: inst.guard,
        what: What::Op(inst.op.clone()),
        span: inst.span,
        inlined: 0,
    }
}

/// The jumps at the end of a block before block `next`; they still name blocks.
fn push_end(body: &Body, code: &mut Vec<Instr<Reg>>, end: &End, next: BlockId) {
    let jump = |to: BlockId, guard: Option<Guard>, span: Span| Instr {
        guard,
        what: What::Branch {
            target: to,
            waits: to < next && !body.bounded.contains(&to),
            block: next - 1,
        },
        span,
        inlined: 0,
    };
    match end {
        End::Jump { to, span } => {
            if *to != next {
                // Where the text has no jump, the block goes on after what comes last in it.
                let made_up = *span == Span::default();
                let last = code.last().map(|instr| instr.span).filter(|_| made_up);
                code.push(jump(*to, None, last.unwrap_or(*span)));
            }
        }
        End::Branch {
            guard,
            taken,
            fall,
            span,
        } => {
            if taken == fall {
                push_end(body, code, &End::Jump { to: *fall, span: *span }, next);
            } else if *taken == next {
                let inverted = Guard {
                    negated: !guard.negated,
                    ..*guard
                };
                code.push(jump(*fall, Some(inverted), *span));
            } else {
                code.push(jump(*taken, Some(*guard), *span));
                if *fall != next {
                    code.push(jump(*fall, None, *span));
                }
            }
        }
        End::Indexed { index, targets, span } => code.push(Instr {
            guard: None,
            what: What::BranchIndexed {
                index: *index,
                targets: targets.clone().into(),
            },
            span: *span,
            inlined: 0,
        }),
        End::Stop => {}
    }
}
