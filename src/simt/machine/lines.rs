//! `ld` and `st` of a whole bundle by addresses that are base and step: nobody has to look at lanes to find how their
//! addresses follow each other.
//!
//! Runs of lanes are taken in **pieces** of at most a warp, of which each begins at a place of its own: what shared tiles
//! are read by has rows of 16 lanes, or of 8, that lie side by side or name one place together.

use crate::isa::Cpu;
use crate::isa::lanes::WARP;
use crate::program::Space;

use super::access::{Lanes, MemOp};
use super::context::{Cx, Line, MAX_RUNS, NONE};
use super::observe::Direction;
use super::pieces::{collect, copy, deal, gather, splat};
use super::raw::{Convert, Raw};
use super::transfer::is_common;

/// The value that an operation names.
///
/// # Safety
/// The bundle has computed it.
#[inline(always)]
unsafe fn value<'a>(cx: &Cx<'a>, op: &MemOp) -> &'a Line {
    // SAFETY: `affine` points to the bundle's values, of which `op` names one; they stay while an operation runs.
    unsafe { &*cx.affine.add(op.affine as usize) }
}

/// The bits of an address register.
#[inline(always)]
fn cut(op: &MemOp) -> u64 {
    if op.narrow { u32::MAX.into() } else { u64::MAX }
}

/// The address register's value in the first lane of warp `w`, and what each lane has more than the one before: of runs
/// that are a warp at least.
///
/// # Safety
/// `op` names a value that follows the lane's number, and the bundle has computed it.
#[inline(always)]
pub(super) unsafe fn line(cx: &Cx<'_>, op: &MemOp, w: usize) -> (u64, u64) {
    // SAFETY: the caller vouches for the value.
    let value = unsafe { value(cx, op) };
    let (run, lane) = (w * WARP / cx.run, w * WARP % cx.run);
    let first = value.base[run].wrapping_add(value.step.wrapping_mul(lane as u64));
    (first & cut(op), value.step & cut(op))
}

/// The address register's value in each lane of warp `w`.
///
/// # Safety
/// As for [`line`].
#[inline(always)]
pub(super) unsafe fn values(cx: &Cx<'_>, op: &MemOp, w: usize, out: &mut Lanes) {
    // SAFETY: the caller vouches for the value.
    let value = unsafe { value(cx, op) };
    let length = cx.run.min(WARP);
    for (part, out) in out.chunks_exact_mut(length).enumerate() {
        let lane = w * WARP + part * length;
        let first = value.base[lane / cx.run].wrapping_add(value.step.wrapping_mul((lane % cx.run) as u64));
        for (i, out) in out.iter_mut().enumerate() {
            *out = first.wrapping_add(value.step.wrapping_mul(i as u64)) & cut(op);
        }
    }
}

/// Where the lanes of a bundle may touch memory: `count` pieces of `lanes`, each from a place on by the same step.
struct Pieces {
    first: [u64; MAX_RUNS],
    count: usize,
    lanes: usize,
    step: u64,
}

/// Steps beyond which lanes are looked at one by one.
const FAR: u64 = 1 << 12;
/// Pieces that are so near each other are checked as one range.
const NEAR: u64 = 1 << 14;

/// Forms and checks the addresses of all lanes, `bytes` (a power of two) from each; `None`: the long way has to look.
///
/// # Safety
/// As for [`line`].
#[inline(always)]
unsafe fn pieces(cx: &Cx<'_>, op: &MemOp, bytes: u64, direction: Direction) -> Option<Pieces> {
    // SAFETY: the caller vouches for the value.
    let value = unsafe { value(cx, op) };
    let lanes = cx.run.min(WARP);
    let step = value.step & cut(op);
    if step >= FAR {
        return None;
    }
    let mut pieces = Pieces {
        first: [0; MAX_RUNS],
        count: cx.mask.warps as usize * WARP / lanes,
        lanes,
        step,
    };
    let base = |piece: usize| match cx.run > WARP {
        true => value.base[0].wrapping_add(step * (piece * WARP) as u64),
        false => value.base[piece],
    };
    let extent = step * (lanes as u64 - 1) + bytes;
    let block = cx.block;
    let first = &mut pieces.first[..pieces.count];
    let (mut low, mut high, mut all) = (u64::MAX, 0, step);
    let good = match (op.space, op.narrow) {
        (Space::Shared, true) => {
            let start = (op.offset as u32).wrapping_sub(block.shared_start());
            for (piece, first) in first.iter_mut().enumerate() {
                let at = u64::from((base(piece) as u32).wrapping_add(start));
                high = high.max(at);
                *first = block.shared + at;
                all |= *first;
            }
            high + extent <= u64::from(block.shared_bytes)
        }
        (Space::Generic | Space::Global | Space::Const, false) => {
            for (piece, first) in first.iter_mut().enumerate() {
                *first = base(piece).wrapping_add(op.offset as u64);
                (low, high, all) = (low.min(*first), high.max(*first), all | *first);
            }
            let may = |from: u64, bytes: u64| block.view.check(from, bytes, direction.bits());
            match high - low < NEAR {
                true => may(low, high - low + extent),
                false => first.iter().all(|&first| may(first, extent)),
            }
        }
        _ => false,
    };
    (good && all & (bytes - 1) == 0).then_some(pieces)
}

/// Serves a load in which all lanes of the bundle take part; `false`: the long way has to.
///
/// # Safety
/// As for [`line`]; slots are those of the running window, and the caller is compiled with the features of `C`.
#[inline(always)]
pub(super) unsafe fn load<C: Cpu, T: Convert<D>, D: Raw, const SIGNED: bool>(cx: &Cx<'_>, op: &MemOp) -> bool {
    let (size, n) = (size_of::<T>() as u64, op.data.len());
    let bytes = size * n as u64;
    // SAFETY: the caller vouches for the value.
    let Some(pieces) = (unsafe { pieces(cx, op, bytes, Direction::Read) }) else {
        return false;
    };
    let (lanes, step) = (pieces.lanes, pieces.step);
    let firsts = &pieces.first[..pieces.count];
    // SAFETY: `pieces` has found that the lanes may read `bytes` at each of their places; slots are runs of the window.
    unsafe {
        let run = |slot: u32, piece: usize| (cx.regs.add(slot as usize) as *mut D).add(piece * lanes);
        if is_common::<T, D>() && step == bytes {
            match *op.data {
                [a, b] => return load_vectors::<T, D, SIGNED, 2>(firsts, lanes, [a, b], run),
                [a, b, c, d] => return load_vectors::<T, D, SIGNED, 4>(firsts, lanes, [a, b, c, d], run),
                _ => {}
            }
        }
        let steps: [u32; WARP] = std::array::from_fn(|i| step as u32 * i as u32);
        for (k, &slot) in op.data.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
            for (piece, &first) in firsts.iter().enumerate() {
                let (from, to) = ((first as *const T).add(k), run(slot, piece));
                if step == 0 {
                    splat(to, from.read().widen(SIGNED), lanes);
                } else if step == size && size_of::<T>() == size_of::<D>() {
                    copy(from as *const D, to, lanes);
                } else if step == size {
                    for i in 0..lanes {
                        to.add(i).write(from.add(i).read().widen(SIGNED));
                    }
                } else {
                    gather::<C, T, D, SIGNED>(from as *const u8, &steps, to, lanes);
                }
            }
        }
    }
    true
}

/// Vectors that lie side by side, piece by piece.
///
/// # Safety
/// As many vectors as a piece has lanes are readable from each of its places on, and `run` gives a slot's part for a piece.
#[inline(always)]
unsafe fn load_vectors<T: Convert<D>, D: Raw, const SIGNED: bool, const N: usize>(
    firsts: &[u64],
    lanes: usize,
    slots: [u32; N],
    run: impl Fn(u32, usize) -> *mut D,
) -> bool {
    for (piece, &first) in firsts.iter().enumerate() {
        let (from, to) = (first as *const T, |slot| run(slot, piece));
        // SAFETY: what the caller vouches for.
        unsafe {
            match lanes {
                WARP => deal::<T, D, SIGNED, N, WARP>(from, slots, to, WARP),
                16 => deal::<T, D, SIGNED, N, 16>(from, slots, to, 16),
                _ => deal::<T, D, SIGNED, N, 8>(from, slots, to, 8),
            }
        }
    }
    true
}

/// Serves a store likewise.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub(super) unsafe fn store<T: Convert<D>, D: Raw>(cx: &Cx<'_>, op: &MemOp) -> bool {
    let (size, n) = (size_of::<T>() as u64, op.data.len());
    let bytes = size * n as u64;
    // SAFETY: the caller vouches for the value.
    let Some(pieces) = (unsafe { pieces(cx, op, bytes, Direction::Write) }) else {
        return false;
    };
    let (lanes, step) = (pieces.lanes, pieces.step);
    let firsts = &pieces.first[..pieces.count];
    // SAFETY: `pieces` has found that the lanes may write `bytes` at each of their places; slots are runs of the window.
    unsafe {
        let run = |slot: u32, piece: usize| (cx.regs.add(slot as usize) as *const D).add(piece * lanes);
        if is_common::<T, D>() && step == bytes {
            match *op.data {
                [a, b] => return store_vectors::<T, D, 2>(firsts, lanes, [a, b], run),
                [a, b, c, d] => return store_vectors::<T, D, 4>(firsts, lanes, [a, b, c, d], run),
                _ => {}
            }
        }
        for (k, &slot) in op.data.iter().enumerate() {
            for (piece, &first) in firsts.iter().enumerate() {
                let (from, to) = (run(slot, piece), (first as *mut T).add(k));
                if step == size && size_of::<T>() == size_of::<D>() {
                    copy(from, to as *mut D, lanes);
                } else {
                    // In the order of lanes: of those that name one place the last one wins.
                    for i in 0..lanes {
                        to.byte_add(i * step as usize).write(T::narrow(from.add(i).read()));
                    }
                }
            }
        }
    }
    true
}

/// # Safety
/// As for [`load_vectors`], of writable memory.
#[inline(always)]
unsafe fn store_vectors<T: Convert<D>, D: Raw, const N: usize>(
    firsts: &[u64],
    lanes: usize,
    slots: [u32; N],
    run: impl Fn(u32, usize) -> *const D,
) -> bool {
    for (piece, &first) in firsts.iter().enumerate() {
        let (to, from) = (first as *mut T, slots.map(|slot| run(slot, piece)));
        // SAFETY: what the caller vouches for.
        unsafe {
            match lanes {
                WARP => collect::<T, D, N, WARP>(to, from, WARP),
                16 => collect::<T, D, N, 16>(to, from, 16),
                _ => collect::<T, D, N, 8>(to, from, 8),
            }
        }
    }
    true
}
