//! `ld` and `st` of a whole bundle by addresses that are base and step: nobody has to look at lanes to find how their
//! addresses follow each other.
//!
//! Runs of lanes are taken in **pieces** of at most a warp, of which each begins at a place of its own: what shared tiles
//! are read by has rows of 16 lanes, or of 8, that lie side by side or name one place together.

use crate::isa::Cpu;
use crate::isa::lanes::WARP;
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

/// Where the lanes of a bundle may touch memory: `count` pieces of as many lanes each, from a place on by the same step.
struct Pieces {
    first: [u64; MAX_RUNS],
    count: usize,
    step: u64,
}

impl Pieces {
    /// To be filled in where they lie: as a result they would be copied.
    const NONE: Pieces = Pieces {
        first: [0; MAX_RUNS],
        count: 0,
        step: 0,
    };
}

/// Steps beyond which lanes are looked at one by one.
const FAR: u64 = 1 << 12;
/// Pieces that are so near each other are checked as one range.
const NEAR: u64 = 1 << 14;
/// Places that are computed at a time, by vectors.
const AT_ONCE: usize = 8;

/// The place of each base, and of all: the lowest, the highest, and the bits that any has.
#[inline(always)]
fn places(first: &mut [u64], bases: &[u64], place: impl Fn(u64) -> u64) -> (u64, u64, u64) {
    let (mut low, mut high, mut all) = ([u64::MAX; AT_ONCE], [0; AT_ONCE], [0; AT_ONCE]);
    let (firsts, first) = first.as_chunks_mut::<AT_ONCE>();
    let (chunks, bases) = bases.as_chunks::<AT_ONCE>();
    for (first, base) in firsts.iter_mut().zip(chunks) {
        for i in 0..AT_ONCE {
            first[i] = place(base[i]);
            (low[i], high[i], all[i]) = (low[i].min(first[i]), high[i].max(first[i]), all[i] | first[i]);
        }
    }
    for (i, (first, base)) in first.iter_mut().zip(bases).enumerate() {
        *first = place(*base);
        (low[i], high[i], all[i]) = (low[i].min(*first), high[i].max(*first), all[i] | *first);
    }
    let least = low.into_iter().fold(u64::MAX, u64::min);
    let most = high.into_iter().fold(0, u64::max);
    (least, most, all.into_iter().fold(0, |all, bits| all | bits))
}

/// Forms and checks the addresses of all lanes, `bytes` (a power of two) from each; `false`: the long way has to look.
///
/// # Safety
/// As for [`line`].
#[inline(always)]
unsafe fn find(cx: &Cx<'_>, op: &MemOp, bytes: u64, direction: Direction, pieces: &mut Pieces) -> bool {
    // SAFETY: the caller vouches for the value.
    let value = unsafe { value(cx, op) };
    let lanes = cx.run.min(WARP);
    let step = value.step & cut(op);
    if step >= FAR {
        return false;
    }
    (pieces.count, pieces.step) = (cx.mask.warps as usize * WARP / lanes, step);
    let first = &mut pieces.first[..pieces.count];
    let mut of_warps = [0; MAX_RUNS];
    let mut bases = &value.base;
    if cx.run > WARP {
        // One run, warp by warp.
        for (warp, base) in of_warps[..first.len()].iter_mut().enumerate() {
            *base = value.base[0].wrapping_add(step * (warp * WARP) as u64);
        }
        bases = &of_warps;
    }
    let bases = &bases[..first.len()];
    let extent = step * (lanes as u64 - 1) + bytes;
    let block = cx.block;
    let (good, all) = match (op.space, op.narrow) {
        (Space::Shared, true) => {
            let start = (op.offset as u32).wrapping_sub(block.shared_start());
            let window = block.shared;
            let place = |base: u64| window + u64::from((base as u32).wrapping_add(start));
            let (_, high, all) = places(first, bases, place);
            (high - window + extent <= u64::from(block.shared_bytes), all)
        }
        (Space::Generic | Space::Global | Space::Const, false) => {
            let (low, high, all) = places(first, bases, |base| base.wrapping_add(op.offset as u64));
            let may = |from: u64, bytes: u64| access::all_allowed(block.view, from, bytes, direction.bits());
            let good = match high - low < NEAR {
                true => may(low, high - low + extent),
                false => first.iter().all(|&first| may(first, extent)),
            };
            (good, all)
        }
        _ => return false,
    };
    good && (all | step) & (bytes - 1) == 0
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
    let mut pieces = Pieces::NONE;
    // SAFETY: the caller vouches for the value.
    let are_good = unsafe { find(cx, op, bytes, direction, &mut pieces) };
    let lanes = cx.run.min(WARP) as u64;
    are_good
        && pieces.first[..pieces.count]
            .iter()
            .all(|&first| act(first, pieces.step, lanes))
}

/// Tells the observer where the lanes of the bundle touch memory.
#[inline(always)]
fn tell(cx: &Cx<'_>, op: &MemOp, pieces: &Pieces, bytes: u64, direction: Direction, stored: Option<&Stored<'_>>) {
    let all = (0, cx.mask.warps as usize * WARP);
    let runs = (&pieces.first[..pieces.count], cx.run.min(WARP), pieces.step);
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
    let mut pieces = Pieces::NONE;
    // SAFETY: the caller vouches for the value, slots and features, and `find` checks what lanes read.
    unsafe {
        if !find(cx, op, bytes, Direction::Read, &mut pieces) {
            return false;
        }
        if WATCHED {
            tell(cx, op, &pieces, bytes, Direction::Read, None);
        }
        match cx.run {
            8 => load_pieces::<C, T, D, SIGNED, 8>(cx, op, &pieces),
            16 => load_pieces::<C, T, D, SIGNED, 16>(cx, op, &pieces),
            _ => load_pieces::<C, T, D, SIGNED, WARP>(cx, op, &pieces),
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
    pieces: &Pieces,
) {
    let size = size_of::<T>() as u64;
    let step = pieces.step;
    let firsts = &pieces.first[..pieces.count];
    // SAFETY: what the caller vouches for.
    unsafe {
        let run = |slot: u32, piece: usize| (cx.regs.add(slot as usize) as *mut D).add(piece * L);
        if is_common::<T, D>() && step == size * op.data.len() as u64 {
            match *op.data {
                [a, b] => return load_vectors::<C, T, D, SIGNED, 2, L>(firsts, [a, b], run),
                [a, b, c, d] => return load_vectors::<C, T, D, SIGNED, 4, L>(firsts, [a, b, c, d], run),
                _ => {}
            }
        }
        for (k, &slot) in op.data.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
            let places = firsts.iter().enumerate();
            let places = places.map(|(piece, &first)| ((first as *const T).add(k), run(slot, piece)));
            if step == 0 {
                places.for_each(|(from, to)| splat(to, from.read().widen(SIGNED), L));
            } else if step == size && size_of::<T>() == size_of::<D>() {
                places.for_each(|(from, to)| copy(from as *const D, to, L));
            } else if step == size {
                for (from, to) in places {
                    for i in 0..L {
                        to.add(i).write(from.add(i).read().widen(SIGNED));
                    }
                }
            } else {
                let steps: [u32; WARP] = std::array::from_fn(|i| step as u32 * i as u32);
                places.for_each(|(from, to)| gather::<C, T, D, SIGNED>(from as *const u8, &steps, to, L));
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
    firsts: &[u64],
    slots: [u32; N],
    run: impl Fn(u32, usize) -> *mut D,
) {
    for (piece, &first) in firsts.iter().enumerate() {
        // SAFETY: what the caller vouches for.
        unsafe {
            if piece > 0 && first == firsts[piece - 1] {
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
    let mut pieces = Pieces::NONE;
    // SAFETY: the caller vouches for the value, slots and features, and `find` checks what lanes write.
    unsafe {
        if !find(cx, op, bytes, Direction::Write, &mut pieces) {
            return false;
        }
        if WATCHED {
            tell(
                cx,
                op,
                &pieces,
                bytes,
                Direction::Write,
                Some(&stored::<T, D>(cx, op, 0)),
            );
        }
        match cx.run {
            8 => store_pieces::<C, T, D, 8>(cx, op, &pieces),
            16 => store_pieces::<C, T, D, 16>(cx, op, &pieces),
            _ => store_pieces::<C, T, D, WARP>(cx, op, &pieces),
        }
    }
    true
}

/// Stores pieces of `L` lanes.
///
/// # Safety
/// As for [`load_pieces`], where the lanes may write.
#[inline(always)]
unsafe fn store_pieces<C: Cpu, T: Convert<D>, D: Raw, const L: usize>(cx: &Cx<'_>, op: &MemOp, pieces: &Pieces) {
    let size = size_of::<T>() as u64;
    let step = pieces.step;
    let firsts = &pieces.first[..pieces.count];
    // SAFETY: what the caller vouches for.
    unsafe {
        let run = |slot: u32, piece: usize| (cx.regs.add(slot as usize) as *const D).add(piece * L);
        if is_common::<T, D>() && step == size * op.data.len() as u64 {
            match *op.data {
                [a, b] => return store_vectors::<C, T, D, 2, L>(firsts, [a, b], run),
                [a, b, c, d] => return store_vectors::<C, T, D, 4, L>(firsts, [a, b, c, d], run),
                _ => {}
            }
        }
        for (k, &slot) in op.data.iter().enumerate() {
            let places = firsts.iter().enumerate();
            let places = places.map(|(piece, &first)| (run(slot, piece), (first as *mut T).add(k)));
            if step == size && size_of::<T>() == size_of::<D>() {
                places.for_each(|(from, to)| copy(from, to as *mut D, L));
                continue;
            }
            // In the order of lanes: of those that name one place the last one wins.
            for (from, to) in places {
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
    firsts: &[u64],
    slots: [u32; N],
    run: impl Fn(u32, usize) -> *const D,
) {
    for (piece, &first) in firsts.iter().enumerate() {
        // SAFETY: what the caller vouches for.
        unsafe { collect::<C, T, D, N>(first as *mut T, slots.map(|slot| run(slot, piece)), L) };
    }
}
