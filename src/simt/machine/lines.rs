//! `ld` and `st` of a whole bundle by addresses that are base and step: nobody has to look at lanes to find how their
//! addresses follow each other.
//!
//! Runs of lanes are taken in **pieces** of at most a warp, of which each begins at a place of its own: what shared tiles
//! are read by has rows of 16 lanes, or of 8, that lie side by side or name one place together.

use crate::isa::Cpu;
use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::program::Space;

use super::access::{self, Lanes, MemOp};
use super::context::{Cx, Line, MAX_RUNS, NONE};
use super::observe::{Direction, Stored};
use super::pieces::{collect, copy, deal, gather, splat};
use super::raw::{Convert, Raw};
use super::transfer::{is_common, stored};

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

/// Whether an access is one by a value whose runs are shorter than the bundle.
#[inline(always)]
pub(super) fn in_pieces(cx: &Cx<'_>, op: &MemOp) -> bool {
    op.affine != NONE && cx.run <= WARP
}

/// Where the lanes of a bundle may touch memory: pieces of as many lanes each, from a place on by the same step.
#[derive(Clone, Copy)]
struct Pieces<'a> {
    /// Where each piece begins is so much more than its number here.
    bases: &'a [u64],
    by: u64,
    step: u64,
}

impl Pieces<'_> {
    /// Where piece `piece` begins.
    #[inline(always)]
    fn first(&self, piece: usize) -> u64 {
        self.bases[piece].wrapping_add(self.by)
    }

    #[inline(always)]
    fn count(&self) -> usize {
        self.bases.len()
    }
}

/// Steps beyond which lanes are looked at one by one.
pub(super) const FAR: u64 = 1 << 12;
/// Pieces that are so near each other are checked as one range.
const NEAR: u64 = 1 << 14;

/// Forms and checks the addresses of all lanes, `bytes` (a power of two) from each; `None`: the long way has to look. What the
/// runs' bases come to was found when they were computed ([`Line::look_at_bases`]), so that there is little to do for each access.
///
/// # Safety
/// As for [`line`].
#[inline(always)]
unsafe fn find<'a>(
    cx: &Cx<'a>,
    op: &MemOp,
    bytes: u64,
    direction: Direction,
    of_warps: &'a mut [u64; MAX_WARPS],
) -> Option<Pieces<'a>> {
    // SAFETY: the caller vouches for the value.
    let value = unsafe { value(cx, op) };
    let (lanes, warps) = (cx.run.min(WARP), cx.mask.warps as usize);
    let step = value.step & cut(op);
    if step >= FAR {
        return None;
    }
    let (bases, range) = if cx.run > WARP {
        // One run, warp by warp.
        let by = step * WARP as u64;
        for (warp, base) in of_warps.iter_mut().enumerate() {
            *base = value.base[0].wrapping_add(by * warp as u64);
        }
        (&of_warps[..warps], by * (warps as u64 - 1))
    } else {
        (&value.base[..warps * WARP / lanes], value.high - value.low)
    };
    let extent = step * (lanes as u64 - 1) + bytes;
    let block = cx.block;
    let (good, least) = match (op.space, op.narrow) {
        (Space::Shared, true) => {
            let start = (op.offset as u32).wrapping_sub(block.shared_start());
            let from = u64::from((value.low as u32).wrapping_add(start));
            let good = range < u64::from(block.shared_bytes) && from + range + extent <= u64::from(block.shared_bytes);
            (good, block.shared + from)
        }
        (Space::Generic | Space::Global | Space::Const, false) => {
            let least = value.low.wrapping_add(op.offset as u64);
            let (bits, by) = (direction.bits(), least.wrapping_sub(value.low));
            let may = |from: u64, bytes: u64| access::all_allowed(block.view, from, bytes, bits);
            let good = match range < NEAR {
                true => may(least, range + extent),
                false => {
                    block.view.check_rows(bases, by, extent, bits)
                        || bases.iter().all(|base| may(base.wrapping_add(by), extent))
                }
            };
            (good, least)
        }
        _ => return None,
    };
    let by = least.wrapping_sub(value.low);
    (good && (least | value.spread | step) & (bytes - 1) == 0).then_some(Pieces { bases, by, step })
}

/// Does something with where each piece begins, what lanes are apart there and how many they are, until it is `false`: that
/// also where the long way has to look.
///
/// # Safety
/// As for [`line`].
#[inline(always)]
pub(super) unsafe fn each(
    cx: &Cx<'_>,
    op: &MemOp,
    bytes: u64,
    direction: Direction,
    mut act: impl FnMut(u64, u64, u64) -> bool,
) -> bool {
    let mut of_warps = [0; MAX_WARPS];
    // SAFETY: the caller vouches for the value.
    let pieces = unsafe { find(cx, op, bytes, direction, &mut of_warps) };
    let lanes = cx.run.min(WARP) as u64;
    pieces.is_some_and(|pieces| (0..pieces.count()).all(|piece| act(pieces.first(piece), pieces.step, lanes)))
}

/// Tells the observer where the lanes of the bundle touch memory.
#[inline(always)]
fn tell(cx: &Cx<'_>, op: &MemOp, pieces: Pieces<'_>, bytes: u64, direction: Direction, stored: Option<&Stored<'_>>) {
    let all = (0, cx.mask.warps as usize * WARP);
    let mut firsts = [0; MAX_RUNS];
    for (piece, first) in firsts[..pieces.count()].iter_mut().enumerate() {
        *first = pieces.first(piece);
    }
    let runs = (&firsts[..pieces.count()], cx.run.min(WARP), pieces.step);
    access::tell_rows(cx, op, all, runs, bytes, direction, stored);
}

/// Serves a load in which all lanes of the bundle take part; `false`: the long way has to.
///
/// # Safety
/// As for [`line`]; slots are those of the running window, and the caller is compiled with the features of `C`.
#[inline(always)]
pub(super) unsafe fn load<C: Cpu, T: Convert<D>, D: Raw, const SIGNED: bool, const WATCHED: bool>(
    cx: &Cx<'_>,
    op: &MemOp,
) -> bool {
    let bytes = (size_of::<T>() * op.data.len()) as u64;
    let mut of_warps = [0; MAX_WARPS];
    // SAFETY: the caller vouches for the value, slots and features, and `find` checks what lanes read.
    unsafe {
        let Some(pieces) = find(cx, op, bytes, Direction::Read, &mut of_warps) else {
            return false;
        };
        if WATCHED {
            tell(cx, op, pieces, bytes, Direction::Read, None);
        }
        match cx.run {
            8 => load_pieces::<C, T, D, SIGNED, 8>(cx, op, pieces),
            16 => load_pieces::<C, T, D, SIGNED, 16>(cx, op, pieces),
            _ => load_pieces::<C, T, D, SIGNED, WARP>(cx, op, pieces),
        }
    }
    true
}

/// Loads pieces of `L` lanes.
///
/// # Safety
/// The lanes may read at each of their places; slots are those of the running window, and the caller is compiled with the
/// features of `C`.
#[inline(always)]
unsafe fn load_pieces<C: Cpu, T: Convert<D>, D: Raw, const SIGNED: bool, const L: usize>(
    cx: &Cx<'_>,
    op: &MemOp,
    pieces: Pieces<'_>,
) {
    let size = size_of::<T>() as u64;
    let step = pieces.step;
    // SAFETY: what the caller vouches for.
    unsafe {
        let run = |slot: u32, piece: usize| (cx.regs.add(slot as usize) as *mut D).add(piece * L);
        if is_common::<T, D>() && step == size * op.data.len() as u64 {
            match *op.data {
                [a, b] => return load_vectors::<C, T, D, SIGNED, 2, L>(pieces, [a, b], run),
                [a, b, c, d] => return load_vectors::<C, T, D, SIGNED, 4, L>(pieces, [a, b, c, d], run),
                _ => {}
            }
        }
        for (k, &slot) in op.data.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
            let from = |piece: usize| (pieces.first(piece) as *const T).add(k);
            // Plain loops: what an adapter of iterators calls would not be compiled with the features of `C`.
            if step == 0 {
                for piece in 0..pieces.count() {
                    splat(run(slot, piece), from(piece).read().widen(SIGNED), L);
                }
            } else if step == size && size_of::<T>() == size_of::<D>() {
                for piece in 0..pieces.count() {
                    copy(from(piece) as *const D, run(slot, piece), L);
                }
            } else if step == size {
                for piece in 0..pieces.count() {
                    let (from, to) = (from(piece), run(slot, piece));
                    for i in 0..L {
                        to.add(i).write(from.add(i).read().widen(SIGNED));
                    }
                }
            } else {
                let mut steps = [0; WARP];
                for (i, at) in steps.iter_mut().enumerate() {
                    *at = step as u32 * i as u32;
                }
                for piece in 0..pieces.count() {
                    gather::<C, T, D, SIGNED>(from(piece) as *const u8, &steps, run(slot, piece), L);
                }
            }
        }
    }
}

/// Vectors that lie side by side, piece by piece.
///
/// # Safety
/// As many vectors as a piece has lanes are readable from each of its places on, and `run` gives a slot's part for a piece; the
/// caller is compiled with the features of `C`.
#[inline(always)]
unsafe fn load_vectors<C: Cpu, T: Convert<D>, D: Raw, const SIGNED: bool, const N: usize, const L: usize>(
    pieces: Pieces<'_>,
    slots: [u32; N],
    run: impl Fn(u32, usize) -> *mut D,
) {
    let mut last = None;
    for piece in 0..pieces.count() {
        let first = pieces.first(piece);
        // SAFETY: what the caller vouches for.
        unsafe {
            if last.replace(first) == Some(first) {
                // Rows of a tile that read the same.
                for slot in slots.into_iter().filter(|&slot| slot != NONE) {
                    copy(run(slot, piece - 1), run(slot, piece), L);
                }
                continue;
            }
            deal::<C, T, D, SIGNED, N>(first as *const T, slots, |slot| run(slot, piece), L);
        }
    }
}

/// Serves a store likewise.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub(super) unsafe fn store<C: Cpu, T: Convert<D>, D: Raw, const WATCHED: bool>(cx: &Cx<'_>, op: &MemOp) -> bool {
    let bytes = (size_of::<T>() * op.data.len()) as u64;
    let mut of_warps = [0; MAX_WARPS];
    // SAFETY: the caller vouches for the value, slots and features, and `find` checks what lanes write.
    unsafe {
        let Some(pieces) = find(cx, op, bytes, Direction::Write, &mut of_warps) else {
            return false;
        };
        if WATCHED {
            tell(
                cx,
                op,
                pieces,
                bytes,
                Direction::Write,
                Some(&stored::<T, D>(cx, op, 0)),
            );
        }
        match cx.run {
            8 => store_pieces::<C, T, D, 8>(cx, op, pieces),
            16 => store_pieces::<C, T, D, 16>(cx, op, pieces),
            _ => store_pieces::<C, T, D, WARP>(cx, op, pieces),
        }
    }
    true
}

/// Stores pieces of `L` lanes.
///
/// # Safety
/// As for [`load_pieces`], where the lanes may write.
#[inline(always)]
unsafe fn store_pieces<C: Cpu, T: Convert<D>, D: Raw, const L: usize>(cx: &Cx<'_>, op: &MemOp, pieces: Pieces<'_>) {
    let size = size_of::<T>() as u64;
    let step = pieces.step;
    // SAFETY: what the caller vouches for.
    unsafe {
        let run = |slot: u32, piece: usize| (cx.regs.add(slot as usize) as *const D).add(piece * L);
        if is_common::<T, D>() && step == size * op.data.len() as u64 {
            match *op.data {
                [a, b] => return store_vectors::<C, T, D, 2, L>(pieces, [a, b], run),
                [a, b, c, d] => return store_vectors::<C, T, D, 4, L>(pieces, [a, b, c, d], run),
                _ => {}
            }
        }
        for (k, &slot) in op.data.iter().enumerate() {
            let to = |piece: usize| (pieces.first(piece) as *mut T).add(k);
            if step == size && size_of::<T>() == size_of::<D>() {
                for piece in 0..pieces.count() {
                    copy(run(slot, piece), to(piece) as *mut D, L);
                }
                continue;
            }
            // In the order of lanes: of those that name one place the last one wins.
            for piece in 0..pieces.count() {
                let (from, to) = (run(slot, piece), to(piece));
                for i in 0..L {
                    to.byte_add(i * step as usize).write(T::narrow(from.add(i).read()));
                }
            }
        }
    }
}

/// # Safety
/// As for [`load_vectors`], of writable memory.
#[inline(always)]
unsafe fn store_vectors<C: Cpu, T: Convert<D>, D: Raw, const N: usize, const L: usize>(
    pieces: Pieces<'_>,
    slots: [u32; N],
    run: impl Fn(u32, usize) -> *const D,
) {
    for piece in 0..pieces.count() {
        // SAFETY: what the caller vouches for.
        unsafe { collect::<C, T, D, N>(pieces.first(piece) as *mut T, slots.map(|slot| run(slot, piece)), L) };
    }
}
