//! `ld` and `st` of a whole bundle: 32 lanes at a time, with quick paths for lanes that touch consecutive elements or all
//! the same one, of which an observer is told as such.

use std::sync::atomic;

use crate::isa::lanes::{WARP, Width};
use crate::isa::{Avx2, Avx512, Baseline, Cpu, Level};
use crate::program::{Element, Ordering, Proxy};

use super::access::{self, AccessFn, Distances, Lanes, MemOp, Pattern, pattern};
use super::context::{Cx, NONE};
use super::lines;
use super::observe::Direction;
use super::pieces::{collect, copy, deal, gather, splat};
use super::raw::{Convert, Raw, load_whole, store_whole};
use super::slots::bits;

#[inline(always)]
fn order_of(ordering: Ordering, store: bool) -> atomic::Ordering {
    match (ordering, store) {
        (Ordering::Weak | Ordering::Volatile | Ordering::Relaxed, _) => atomic::Ordering::Relaxed,
        (_, false) => atomic::Ordering::Acquire,
        (_, true) => atomic::Ordering::Release,
    }
}

/// Serves a load of `count` lanes of warps `w` and up, if it follows a simple pattern.
///
/// # Safety
/// As for [`Transfer::run`]; all of these lanes take part.
#[inline(always)]
unsafe fn load_simple<C: Cpu, T: Convert<D>, D: Raw, const SIGNED: bool, const WATCHED: bool>(
    cx: &Cx<'_>,
    op: &MemOp,
    w: usize,
    count: usize,
) -> bool {
    let n = op.data.len();
    let bytes = size_of::<T>() as u64 * n as u64;
    // SAFETY: the address register is a slot of the running window, which has `count` lanes from warp `w` on.
    let (first, same) = match unsafe { pattern(cx, op, w, count, bytes, Direction::Read) } {
        Pattern::Consecutive(first) => (first as *const T, false),
        Pattern::Same(first) => (first as *const T, true),
        Pattern::Other => return false,
    };
    if WATCHED {
        let step = if same { 0 } else { bytes };
        let run = (&[first as u64][..], count, step);
        access::tell_rows(cx, op, (w, count), run, bytes, Direction::Read, None);
    }
    // SAFETY: `pattern` checked `count · n` elements, or the ones that all share; slots are runs of the window, which has room
    // for what is kept of accesses.
    unsafe {
        let run = |slot: u32| (cx.regs.add(slot as usize) as *mut D).add(w * WARP);
        if same {
            for (k, &slot) in op.data.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
                let value = first.add(k).read().widen(SIGNED);
                for at in (0..count).step_by(WARP) {
                    splat(run(slot).add(at), value, WARP);
                }
            }
            return true;
        }
        if !WATCHED && w == 0 {
            access::ahead(cx, op, first as u64, bytes * count as u64);
        }
        match *op.data {
            [slot] if slot == NONE => {}
            [slot] if size_of::<T>() == size_of::<D>() => {
                for at in (0..count).step_by(WARP) {
                    copy((first as *const D).add(at), run(slot).add(at), WARP);
                }
            }
            [slot] => {
                let dst = std::slice::from_raw_parts_mut(run(slot), count);
                for (i, d) in dst.iter_mut().enumerate() {
                    *d = first.add(i).read().widen(SIGNED);
                }
            }
            [a, b] => {
                for at in (0..count).step_by(WARP) {
                    deal::<C, T, D, SIGNED, 2>(first.add(at * 2), [a, b], |slot| run(slot).add(at), WARP);
                }
            }
            [a, b, c, d] => {
                for at in (0..count).step_by(WARP) {
                    deal::<C, T, D, SIGNED, 4>(first.add(at * 4), [a, b, c, d], |slot| run(slot).add(at), WARP);
                }
            }
            // Vectors of eight are rare, and code for each kind of them would be long.
            _ => {
                for (k, &slot) in op.data.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
                    for i in 0..count {
                        run(slot).add(i).write(first.add(i * n + k).read().widen(SIGNED));
                    }
                }
            }
        }
    }
    true
}

/// What lanes, counted from the first of warp `w`, are about to store, for observers.
pub(super) fn stored<T: Convert<D>, D: Raw>(cx: &Cx<'_>, op: &MemOp, w: usize) -> impl Fn(usize, &mut [u8]) {
    let regs = cx.regs;
    move |lane: usize, out: &mut [u8]| {
        for (part, &slot) in out.chunks_mut(size_of::<T>()).zip(&op.data) {
            // SAFETY: the slot lies in the running window, which stays as it is until the observer has been told, and has this lane.
            let value = unsafe {
                let src = (regs.add(slot as usize) as *const [D; WARP]).add(w) as *const D;
                T::narrow(*src.add(lane)).bits()
            };
            let size = part.len();
            part.copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
}

/// Serves a store likewise.
///
/// # Safety
/// As for [`load_simple`].
#[inline(always)]
unsafe fn store_simple<C: Cpu, T: Convert<D>, D: Raw, const WATCHED: bool>(
    cx: &Cx<'_>,
    op: &MemOp,
    w: usize,
    count: usize,
) -> bool {
    let n = op.data.len();
    let bytes = size_of::<T>() as u64 * n as u64;
    // SAFETY: the address register is a slot of the running window, which has `count` lanes from warp `w` on.
    let Pattern::Consecutive(first) = (unsafe { pattern(cx, op, w, count, bytes, Direction::Write) }) else {
        return false;
    };
    if WATCHED {
        let stored = stored::<T, D>(cx, op, w);
        access::tell_rows(
            cx,
            op,
            (w, count),
            (&[first], count, bytes),
            bytes,
            Direction::Write,
            Some(&stored),
        );
    }
    // SAFETY: `pattern` checked `count · n` elements; slots are runs of the window.
    unsafe {
        if !WATCHED && w == 0 {
            access::ahead(cx, op, first, bytes * count as u64);
        }
        let first = first as *mut T;
        let run = |slot: u32| (cx.regs.add(slot as usize) as *const D).add(w * WARP);
        match *op.data {
            [slot] if size_of::<T>() == size_of::<D>() => {
                for at in (0..count).step_by(WARP) {
                    copy(run(slot).add(at), (first as *mut D).add(at), WARP);
                }
            }
            [slot] => {
                let src = run(slot);
                for i in 0..count {
                    first.add(i).write(T::narrow(src.add(i).read()));
                }
            }
            [a, b] => {
                for at in (0..count).step_by(WARP) {
                    collect::<C, T, D, 2>(first.add(at * 2), [a, b].map(|slot| run(slot).add(at)), WARP);
                }
            }
            [a, b, c, d] => {
                for at in (0..count).step_by(WARP) {
                    collect::<C, T, D, 4>(first.add(at * 4), [a, b, c, d].map(|slot| run(slot).add(at)), WARP);
                }
            }
            _ => {
                for (k, &slot) in op.data.iter().enumerate() {
                    for i in 0..count {
                        first.add(i * n + k).write(T::narrow(run(slot).add(i).read()));
                    }
                }
            }
        }
    }
    true
}

/// So many lanes are loaded one by one rather than all 32 and blended.
const FEW: u32 = 6;

/// Lanes that blocks of 16 threads in a row, which tiles mostly have, put side by side.
const ROW: usize = 16;

/// What the lanes of each row are apart: nothing, or `bytes`; `None` if a row follows no such pattern.
#[inline(always)]
fn rows(distances: &Distances, bytes: u32) -> Option<[u32; WARP / ROW]> {
    let (length, mut steps, mut differ) = (access::warp() / 2, [0; WARP / ROW], 0);
    for (row, step) in distances.chunks_exact(ROW).zip(&mut steps) {
        *step = row[1].wrapping_sub(row[0]);
        // The ends say it quickly where there is no pattern.
        if *step != 0 && *step != bytes || row[ROW - 1].wrapping_sub(row[0]) != *step * (ROW as u32 - 1) {
            return None;
        }
        for (i, at) in row[..length].iter().enumerate() {
            differ |= at ^ row[0].wrapping_add(*step * i as u32);
        }
    }
    (differ == 0).then_some(steps)
}

/// Loads what lies at distances from a place.
///
/// # Safety
/// All elements may be read at each active lane's; slots are those of the running window, and the caller is compiled with
/// the features of `C`.
#[inline(always)]
unsafe fn load_near<C: Cpu, T: Convert<D>, D: Raw, const SIGNED: bool>(
    cx: &Cx<'_>,
    op: &MemOp,
    w: usize,
    active: u32,
    place: u64,
    distances: &Distances,
) {
    let place = place as *const u8;
    let rows = match active {
        u32::MAX => rows(distances, size_of::<T>() as u32 * op.data.len() as u32),
        _ => None,
    };
    for (k, &slot) in op.data.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
        // SAFETY: what the caller vouches for.
        unsafe {
            let dst = (cx.regs.add(slot as usize) as *mut [D; WARP]).add(w) as *mut D;
            if let Some(steps) = rows {
                for (row, step) in steps.into_iter().enumerate() {
                    let from = (place.wrapping_add(distances[row * ROW] as usize) as *const T).add(k);
                    let to = dst.add(row * ROW);
                    if step == 0 {
                        (to as *mut [D; ROW]).write([from.read().widen(SIGNED); ROW]);
                    } else {
                        for i in 0..ROW {
                            *to.add(i) = from.add(i * op.data.len()).read().widen(SIGNED);
                        }
                    }
                }
                continue;
            }
            if active == u32::MAX {
                let place = (place as *const T).wrapping_add(k) as *const u8;
                gather::<C, T, D, SIGNED>(place, distances, dst, WARP);
            } else if size_of::<T>() == 4 && size_of::<D>() == 4 && active.count_ones() > FEW {
                let place = (place as *const T).wrapping_add(k) as *const u8;
                let mut run = [0; WARP];
                C::gather(place, distances, run.as_mut_ptr(), WARP);
                C::blend(dst as *mut u32, &run, active);
            } else {
                for i in bits(active) {
                    let at = place.wrapping_add(distances[i] as usize) as *const T;
                    *dst.add(i) = at.add(k).read().widen(SIGNED);
                }
            }
        }
    }
}

/// Stores likewise; of lanes that name the same place the last one wins.
///
/// # Safety
/// All elements may be written at each active lane's; slots are those of the running window.
#[inline(always)]
unsafe fn store_near<T: Convert<D>, D: Raw>(
    cx: &Cx<'_>,
    op: &MemOp,
    w: usize,
    active: u32,
    place: u64,
    distances: &Distances,
) {
    let place = place as *mut u8;
    for (k, &slot) in op.data.iter().enumerate() {
        // SAFETY: what the caller vouches for.
        unsafe {
            let src = (cx.regs.add(slot as usize) as *const [D; WARP]).add(w) as *const D;
            let put = |i: usize, at: u32| {
                let to = (place.wrapping_add(at as usize) as *mut T).add(k);
                to.write(T::narrow(src.add(i).read()));
            };
            if active == u32::MAX {
                for (i, &at) in distances.iter().enumerate() {
                    put(i, at);
                }
            } else {
                for i in bits(active) {
                    put(i, distances[i]);
                }
            }
        }
    }
}

/// Words and double words in registers as wide.
pub(super) const fn is_common<T, D>() -> bool {
    size_of::<T>() == size_of::<D>() && (size_of::<T>() == 4 || size_of::<T>() == 8)
}

/// Whether all lanes of all warps of the bundle take part.
#[inline(always)]
pub(super) fn everybody(cx: &Cx<'_>) -> bool {
    cx.mask.lanes[..cx.mask.warps as usize]
        .iter()
        .all(|&lanes| lanes == u32::MAX)
}

pub(super) trait Transfer {
    /// Quick paths are worth their code also where somebody watches: those of the common widths.
    const COMMON: bool;
    /// It goes lane by lane whoever watches: vectors do not make it quicker.
    const LANEWISE: bool;

    /// # Safety
    /// The window, slots and features are those that the program was made for.
    unsafe fn run<C: Cpu, const WATCHED: bool>(cx: &mut Cx<'_>, op: &MemOp) -> bool;
}

struct Load<T, D, const SIGNED: bool, const STRONG: bool>(std::marker::PhantomData<(T, D)>);

impl<T: Convert<D>, D: Raw, const SIGNED: bool, const STRONG: bool> Transfer for Load<T, D, SIGNED, STRONG> {
    const COMMON: bool = !STRONG && !SIGNED && is_common::<T, D>();
    const LANEWISE: bool = STRONG;

    #[inline(always)]
    unsafe fn run<C: Cpu, const WATCHED: bool>(cx: &mut Cx<'_>, op: &MemOp) -> bool {
        let quick = !STRONG && (!WATCHED || Self::COMMON);
        if quick && everybody(cx) {
            let all = cx.mask.warps as usize * WARP;
            let in_pieces = lines::in_pieces(cx, op);
            // SAFETY: slots are those of the running window, and all its lanes take part: `everybody` looked.
            let served = unsafe {
                (!in_pieces && load_simple::<C, T, D, SIGNED, WATCHED>(cx, op, 0, all))
                    || (op.affine != NONE && lines::load::<C, T, D, SIGNED, WATCHED>(cx, op))
            };
            if served {
                return true;
            }
        }
        let n = op.data.len();
        let bytes = size_of::<T>() as u64 * n as u64;
        let mut distances = [0; WARP];
        for w in 0..cx.mask.warps as usize {
            let active = cx.mask.lanes[w];
            if active == 0 {
                continue;
            }
            // SAFETY: slots are those of the running window, and all lanes of warp `w` take part.
            if quick && active == u32::MAX && unsafe { load_simple::<C, T, D, SIGNED, WATCHED>(cx, op, w, WARP) } {
                continue;
            }
            if quick {
                // SAFETY: the address register is a slot of the running window.
                let near = unsafe { access::near(cx, op, w, active, bytes, Direction::Read, &mut distances) };
                if let Some(place) = near {
                    if WATCHED {
                        let a = access::from(place, &distances);
                        access::tell::<WATCHED>(cx, op, w, active, &a, bytes, Direction::Read, Proxy::Generic);
                    }
                    // SAFETY: `near` checked `n` elements of each active lane; slots are those of the running window.
                    unsafe { load_near::<C, T, D, SIGNED>(cx, op, w, active, place, &distances) };
                    continue;
                }
            }
            let mut a: Lanes = [0; WARP];
            // SAFETY: the address register is a slot of the running window.
            if !unsafe { access::lanes::<WATCHED>(cx, op, w, active, bytes, Direction::Read, &mut a) } {
                return false;
            }
            if STRONG {
                let order = order_of(op.ordering, false);
                let mut rest = active;
                while rest != 0 {
                    let i = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    // SAFETY: every active lane's address was checked, and its alignment; slots lie in the window.
                    unsafe {
                        let whole = load_whole(a[i], bytes, order);
                        for (k, &slot) in op.data.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
                            let at = k * size_of::<T>();
                            let value = T::cut(whole[at / 16] >> (at % 16 * 8));
                            let dst = (cx.regs.add(slot as usize) as *mut [D; WARP]).add(w) as *mut D;
                            *dst.add(i) = value.widen(SIGNED);
                        }
                    }
                }
                if WATCHED {
                    access::tell_done(cx, op, (w, active), &a, bytes);
                }
                continue;
            }
            for (k, &slot) in op.data.iter().enumerate() {
                if slot == NONE {
                    continue;
                }
                // SAFETY: every active lane's address was checked; inactive lanes are not touched.
                unsafe {
                    let dst = (cx.regs.add(slot as usize) as *mut [D; WARP]).add(w) as *mut D;
                    if active == u32::MAX {
                        for (i, &x) in a.iter().enumerate() {
                            *dst.add(i) = (x as *const T).add(k).read().widen(SIGNED);
                        }
                    } else {
                        let mut rest = active;
                        while rest != 0 {
                            let i = rest.trailing_zeros() as usize;
                            rest &= rest - 1;
                            let at = (a[i] as *const T).add(k);
                            *dst.add(i) = at.read().widen(SIGNED);
                        }
                    }
                }
            }
        }
        true
    }
}

struct Store<T, D, const STRONG: bool>(std::marker::PhantomData<(T, D)>);

impl<T: Convert<D>, D: Raw, const STRONG: bool> Transfer for Store<T, D, STRONG> {
    const COMMON: bool = !STRONG && is_common::<T, D>();
    const LANEWISE: bool = STRONG;

    #[inline(always)]
    unsafe fn run<C: Cpu, const WATCHED: bool>(cx: &mut Cx<'_>, op: &MemOp) -> bool {
        let quick = !STRONG && (!WATCHED || Self::COMMON);
        if quick && everybody(cx) {
            let all = cx.mask.warps as usize * WARP;
            let in_pieces = lines::in_pieces(cx, op);
            // SAFETY: slots are those of the running window, and all its lanes take part: `everybody` looked.
            let served = unsafe {
                (!in_pieces && store_simple::<C, T, D, WATCHED>(cx, op, 0, all))
                    || (op.affine != NONE && lines::store::<C, T, D, WATCHED>(cx, op))
            };
            if served {
                return true;
            }
        }
        let n = op.data.len();
        let bytes = size_of::<T>() as u64 * n as u64;
        let mut distances = [0; WARP];
        for w in 0..cx.mask.warps as usize {
            let active = cx.mask.lanes[w];
            if active == 0 {
                continue;
            }
            // SAFETY: slots are those of the running window, and all lanes of warp `w` take part.
            if quick && active == u32::MAX && unsafe { store_simple::<C, T, D, WATCHED>(cx, op, w, WARP) } {
                continue;
            }
            if quick {
                // SAFETY: the address register is a slot of the running window.
                let near = unsafe { access::near(cx, op, w, active, bytes, Direction::Write, &mut distances) };
                if let Some(place) = near {
                    if WATCHED {
                        let a = access::from(place, &distances);
                        access::tell_store(cx, op, (w, active), &a, bytes, &stored::<T, D>(cx, op, w));
                    }
                    // SAFETY: `near` checked `n` elements of each active lane; slots are those of the running window.
                    unsafe { store_near::<T, D>(cx, op, w, active, place, &distances) };
                    continue;
                }
            }
            let mut a: Lanes = [0; WARP];
            // SAFETY: the address register is a slot of the running window.
            if !unsafe { access::lanes::<false>(cx, op, w, active, bytes, Direction::Write, &mut a) } {
                return false;
            }
            if WATCHED {
                let stored = stored::<T, D>(cx, op, w);
                access::tell_store(cx, op, (w, active), &a, bytes, &stored);
            }
            if STRONG {
                let order = order_of(op.ordering, true);
                let mut rest = active;
                while rest != 0 {
                    let i = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    let mut whole = [0; 2];
                    // SAFETY: every active lane's address was checked, and its alignment; slots lie in the window.
                    unsafe {
                        for (k, &slot) in op.data.iter().enumerate() {
                            let at = k * size_of::<T>();
                            let src = (cx.regs.add(slot as usize) as *const [D; WARP]).add(w) as *const D;
                            whole[at / 16] |= T::narrow(*src.add(i)).bits() << (at % 16 * 8);
                        }
                        store_whole(a[i], bytes, whole, order);
                    }
                }
                continue;
            }
            for (k, &slot) in op.data.iter().enumerate() {
                // SAFETY: every active lane's address was checked; slots lie in the running window.
                unsafe {
                    let src = (cx.regs.add(slot as usize) as *const [D; WARP]).add(w) as *const D;
                    let mut rest = active;
                    while rest != 0 {
                        let i = rest.trailing_zeros() as usize;
                        rest &= rest - 1;
                        let at = (a[i] as *mut T).add(k);
                        let value = T::narrow(*src.add(i));
                        at.write(value);
                    }
                }
            }
        }
        true
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt,fma,f16c")]
unsafe fn run_avx512<A: Transfer, const WATCHED: bool>(cx: &mut Cx<'_>, op: &MemOp) -> bool {
    // SAFETY: `op` has slots of the running window, and `pick` takes this function only where the CPU has the level.
    unsafe { A::run::<Avx512, WATCHED>(cx, op) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma,f16c")]
unsafe fn run_avx2<A: Transfer, const WATCHED: bool>(cx: &mut Cx<'_>, op: &MemOp) -> bool {
    // SAFETY: `op` has slots of the running window, and `pick` takes this function only where the CPU has the level.
    unsafe { A::run::<Avx2, WATCHED>(cx, op) }
}

unsafe fn run_baseline<A: Transfer, const WATCHED: bool>(cx: &mut Cx<'_>, op: &MemOp) -> bool {
    // SAFETY: `op` has slots of the running window, and `pick` takes this function only where the CPU has the level.
    unsafe { A::run::<Baseline, WATCHED>(cx, op) }
}

pub(super) fn pick<A: Transfer, const WATCHED: bool>() -> AccessFn {
    if WATCHED || A::LANEWISE {
        // Telling takes longer than what the widest vectors could spare.
        return match Level::current() {
            Level::Avx512 | Level::Avx2 if A::COMMON => run_avx2::<A, WATCHED>,
            Level::Avx512 | Level::Avx2 | Level::Baseline => run_baseline::<A, WATCHED>,
        };
    }
    match Level::current() {
        Level::Avx512 => run_avx512::<A, WATCHED>,
        Level::Avx2 => run_avx2::<A, WATCHED>,
        Level::Baseline => run_baseline::<A, WATCHED>,
    }
}

/// The function that loads such elements into slots of such a width.
pub fn load_fn<const WATCHED: bool>(element: Element, slot: Option<Width>, ordering: Ordering) -> AccessFn {
    fn by_strength<T: Convert<D>, D: Raw, const WATCHED: bool, const SIGNED: bool>(ordering: Ordering) -> AccessFn {
        if ordering == Ordering::Weak {
            pick::<Load<T, D, SIGNED, false>, WATCHED>()
        } else {
            pick::<Load<T, D, SIGNED, true>, WATCHED>()
        }
    }
    fn by_sign<T: Convert<D>, D: Raw, const WATCHED: bool>(element: Element, ordering: Ordering) -> AccessFn {
        if element.signed && size_of::<T>() < size_of::<D>() {
            by_strength::<T, D, WATCHED, true>(ordering)
        } else {
            by_strength::<T, D, WATCHED, false>(ordering)
        }
    }
    let natural = match element.bytes {
        1 | 2 => Width::B16,
        4 => Width::B32,
        8 => Width::B64,
        _ => Width::B128,
    };
    let e = element;
    match (element.bytes, slot.unwrap_or(natural)) {
        (1, Width::B16) => by_sign::<u8, u16, WATCHED>(e, ordering),
        (1, Width::B32) => by_sign::<u8, u32, WATCHED>(e, ordering),
        (1, Width::B64) => by_sign::<u8, u64, WATCHED>(e, ordering),
        (1, Width::B128) => by_sign::<u8, u128, WATCHED>(e, ordering),
        (2, Width::B16) => by_sign::<u16, u16, WATCHED>(e, ordering),
        (2, Width::B32) => by_sign::<u16, u32, WATCHED>(e, ordering),
        (2, Width::B64) => by_sign::<u16, u64, WATCHED>(e, ordering),
        (2, Width::B128) => by_sign::<u16, u128, WATCHED>(e, ordering),
        (4, Width::B32) => by_sign::<u32, u32, WATCHED>(e, ordering),
        (4, Width::B64) => by_sign::<u32, u64, WATCHED>(e, ordering),
        (4, Width::B128) => by_sign::<u32, u128, WATCHED>(e, ordering),
        (8, Width::B64) => by_sign::<u64, u64, WATCHED>(e, ordering),
        (8, Width::B128) => by_sign::<u64, u128, WATCHED>(e, ordering),
        (16, Width::B128) => by_sign::<u128, u128, WATCHED>(e, ordering),
        (bytes, width) => unreachable!("a program never loads {bytes} bytes into {width:?}"),
    }
}

/// The function that stores such elements from slots of such a width.
pub fn store_fn<const WATCHED: bool>(element: Element, slot: Width, ordering: Ordering) -> AccessFn {
    fn by_strength<T: Convert<D>, D: Raw, const WATCHED: bool>(ordering: Ordering) -> AccessFn {
        if ordering == Ordering::Weak {
            pick::<Store<T, D, false>, WATCHED>()
        } else {
            pick::<Store<T, D, true>, WATCHED>()
        }
    }
    match (element.bytes, slot) {
        (1, Width::B16) => by_strength::<u8, u16, WATCHED>(ordering),
        (1, Width::B32) => by_strength::<u8, u32, WATCHED>(ordering),
        (1, Width::B64) => by_strength::<u8, u64, WATCHED>(ordering),
        (1, Width::B128) => by_strength::<u8, u128, WATCHED>(ordering),
        (2, Width::B16) => by_strength::<u16, u16, WATCHED>(ordering),
        (2, Width::B32) => by_strength::<u16, u32, WATCHED>(ordering),
        (2, Width::B64) => by_strength::<u16, u64, WATCHED>(ordering),
        (2, Width::B128) => by_strength::<u16, u128, WATCHED>(ordering),
        (4, Width::B32) => by_strength::<u32, u32, WATCHED>(ordering),
        (4, Width::B64) => by_strength::<u32, u64, WATCHED>(ordering),
        (4, Width::B128) => by_strength::<u32, u128, WATCHED>(ordering),
        (8, Width::B64) => by_strength::<u64, u64, WATCHED>(ordering),
        (8, Width::B128) => by_strength::<u64, u128, WATCHED>(ordering),
        (16, Width::B128) => by_strength::<u128, u128, WATCHED>(ordering),
        (bytes, width) => unreachable!("a program never stores {bytes} bytes from {width:?}"),
    }
}
