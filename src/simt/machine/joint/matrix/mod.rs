//! Matrices whose elements the threads of a warp hold (PTX ISA, Warp Level Matrix Instructions).
//!
//! All lanes of a warp hold something, whether or not they carry the instruction out; those that do get results.

pub mod culprit;
mod fragment;
mod multiply;
mod rows;
pub mod shadow;
mod tile;

pub use self::multiply::on_registers as product;
use crate::isa::joint::matrix::Op;
use crate::isa::lanes::WARP;
use crate::program::Ordering;
use crate::simt::machine::access::MemOp;
use crate::simt::machine::context::Cx;
use crate::simt::machine::slots::Slot;
use crate::simt::machine::state::State;
use crate::simt::machine::step::{Operands, Step};

/// A register of a warp's lanes.
type Word = [u32; WARP];

/// # Safety
/// Slots of `operands` lie in the running window.
pub(super) unsafe fn execute<const WATCHED: bool>(
    op: Op,
    operands: &Operands,
    cx: &mut Cx<'_>,
    _state: &mut State,
) -> Step {
    for w in 0..cx.mask.warps as usize {
        if cx.mask.lanes[w] == 0 {
            continue;
        }
        // SAFETY: the operands' slots lie in the running window, which has the mask's warps.
        let good = unsafe {
            match op {
                Op::LoadRows(rows) => rows::load::<WATCHED>(rows, operands, cx, w),
                Op::StoreRows(rows) => rows::store::<WATCHED>(rows, operands, cx, w),
                Op::Transpose => {
                    rows::transpose(operands, cx, w);
                    true
                }
                Op::LoadTile(tile) => tile::load::<WATCHED>(tile, operands, cx, w),
                Op::StoreTile(tile) => tile::store::<WATCHED>(tile, operands, cx, w),
                Op::Multiply(multiply) => {
                    multiply::execute(multiply, operands, cx, w);
                    true
                }
            }
        };
        if !good {
            return cx.fault.take().map_or(Step::Done, Step::Fault);
        }
    }
    Step::Done
}

/// A register of 32 bits of warp `w`.
///
/// # Safety
/// `slot` lies in the running window, has 32 bits, and nobody writes it while the reference lives.
unsafe fn word<'a>(cx: &Cx<'_>, slot: Slot, w: usize) -> &'a Word {
    // SAFETY: a slot of 32 bits has 32 words for each warp, aligned.
    unsafe { &*cx.regs.add(slot.offset as usize).cast::<Word>().add(w) }
}

/// Writes a register of 32 bits of the active lanes.
///
/// # Safety
/// `slot` lies in the running window and has 32 bits; no reference to it lives.
unsafe fn put(cx: &Cx<'_>, slot: Option<Slot>, w: usize, values: &Word) {
    let Some(slot) = slot else { return };
    // SAFETY: a slot of 32 bits has 32 words for each warp, aligned.
    let to = unsafe { &mut *cx.regs.add(slot.offset as usize).cast::<Word>().add(w) };
    assign(to, values, cx.mask.lanes[w]);
}

/// A register of 64 bits of a warp's lanes.
type Double = [u64; WARP];

/// Writes a register of 64 bits of the active lanes.
///
/// # Safety
/// `slot` lies in the running window and has 64 bits; no reference to it lives.
unsafe fn put_double(cx: &Cx<'_>, slot: Option<Slot>, w: usize, values: &Double) {
    let Some(slot) = slot else { return };
    // SAFETY: a slot of 64 bits has 32 of them for each warp, aligned.
    let to = unsafe { &mut *cx.regs.add(slot.offset as usize).cast::<Double>().add(w) };
    assign(to, values, cx.mask.lanes[w]);
}

fn assign<T: Copy>(to: &mut [T; WARP], values: &[T; WARP], active: u32) {
    if active == u32::MAX {
        *to = *values;
    } else {
        for (i, (to, value)) in to.iter_mut().zip(values).enumerate() {
            *to = if active >> i & 1 == 1 { *value } else { *to };
        }
    }
}

/// The access of an instruction to its only address.
fn access(operands: &Operands, cx: &Cx<'_>) -> MemOp {
    MemOp::new(&operands.addresses[0], (Ordering::Weak, None), Box::new([]), cx.span)
}
