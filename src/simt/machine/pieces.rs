//! Elements of memory to the lanes of a slot and back, as many at a time as the compiler can be told: 8, 16 or 32.

use crate::isa::Cpu;
use crate::isa::lanes::WARP;

use super::access::Distances;
use super::context::NONE;
use super::raw::{Convert, Raw};

/// As many elements as a piece has lanes, 8, 16 or 32, from one place to another: of lengths that the compiler knows.
///
/// # Safety
/// So many are readable here and writable there.
#[inline(always)]
pub(super) unsafe fn copy<T: Raw>(from: *const T, to: *mut T, lanes: usize) {
    // SAFETY: what the caller vouches for; elements of memory lie at whatever addresses.
    unsafe {
        match lanes {
            WARP => (to as *mut [T; WARP]).write_unaligned((from as *const [T; WARP]).read_unaligned()),
            16 => (to as *mut [T; 16]).write_unaligned((from as *const [T; 16]).read_unaligned()),
            _ => (to as *mut [T; 8]).write_unaligned((from as *const [T; 8]).read_unaligned()),
        }
    }
}

/// One value for as many lanes.
///
/// # Safety
/// So many are writable.
#[inline(always)]
pub(super) unsafe fn splat<D: Raw>(to: *mut D, value: D, lanes: usize) {
    // SAFETY: what the caller vouches for, in a slot, which is aligned.
    unsafe {
        match lanes {
            WARP => (to as *mut [D; WARP]).write([value; WARP]),
            16 => (to as *mut [D; 16]).write([value; 16]),
            _ => (to as *mut [D; 8]).write([value; 8]),
        }
    }
}

/// An element for each of so many lanes, by its distance from a place.
///
/// # Safety
/// They are readable there, and the lanes writable; the caller is compiled with the features of `C`.
#[inline(always)]
pub(super) unsafe fn gather<C: Cpu, T: Convert<D>, D: Raw, const SIGNED: bool>(
    place: *const u8,
    distances: &Distances,
    to: *mut D,
    lanes: usize,
) {
    // SAFETY: what the caller vouches for.
    unsafe {
        if size_of::<T>() == 4 && size_of::<D>() == 4 {
            return C::gather(place, distances, to as *mut u32, lanes);
        }
        // One by one: a compiler that may read ahead runs out of registers.
        for (i, at) in distances.iter().enumerate().take(lanes) {
            let from = place.wrapping_add(*at as usize) as *const T;
            *to.add(i) = from.read().widen(SIGNED);
        }
    }
}

/// Vectors of `N` elements from memory to `N` slots, `L` lanes at a time. By way of local arrays: the compiler then sees
/// that nothing overlaps, and shuffles.
///
/// # Safety
/// `count` vectors, a multiple of `L`, are readable; each slot but a sink has room for as many.
#[inline(always)]
pub(super) unsafe fn deal<T: Convert<D>, D: Raw, const SIGNED: bool, const N: usize, const L: usize>(
    src: *const T,
    slots: [u32; N],
    run: impl Fn(u32) -> *mut D,
    count: usize,
) {
    for at in (0..count).step_by(L) {
        let mut out = [[D::default(); L]; N];
        for i in 0..L {
            for (k, out) in out.iter_mut().enumerate() {
                // SAFETY: `count` vectors of `N` elements are readable from `src` on, and `at + i` is below `count`.
                out[i] = unsafe { src.add((at + i) * N + k).read() }.widen(SIGNED);
            }
        }
        for (out, slot) in out.iter().zip(slots).filter(|(_, slot)| *slot != NONE) {
            // SAFETY: the slot has room for `count` elements, and `L` of them from `at` on are within, for `count` is a
            // multiple of `L`.
            unsafe { (run(slot).add(at) as *mut [D; L]).write(*out) };
        }
    }
}

/// The way back.
///
/// # Safety
/// `count` vectors, a multiple of `L`, are writable; each run has as many elements.
#[inline(always)]
pub(super) unsafe fn collect<T: Convert<D>, D: Raw, const N: usize, const L: usize>(
    dst: *mut T,
    runs: [*const D; N],
    count: usize,
) {
    for at in (0..count).step_by(L) {
        // SAFETY: each run has `count` elements, and `L` of them from `at` on are within, for `count` is a multiple of
        // `L`.
        let from = runs.map(|run| unsafe { (run.add(at) as *const [D; L]).read() });
        for i in 0..L {
            for (k, from) in from.iter().enumerate() {
                // SAFETY: `count` vectors of `N` elements are writable from `dst` on, and `at + i` is below `count`.
                unsafe { dst.add((at + i) * N + k).write(T::narrow(from[i])) };
            }
        }
    }
}
