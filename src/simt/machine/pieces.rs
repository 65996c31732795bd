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

/// Vectors of `N` elements from memory to `N` slots, for as many lanes as a piece has.
///
/// # Safety
/// So many vectors are readable; `run` gives room for as many elements of each slot but a sink. The caller is compiled with
/// the features of `C`.
#[inline(always)]
pub(super) unsafe fn deal<C: Cpu, T: Convert<D>, D: Raw, const SIGNED: bool, const N: usize>(
    from: *const T,
    slots: [u32; N],
    run: impl Fn(u32) -> *mut D,
    lanes: usize,
) {
    // SAFETY: what the caller vouches for.
    unsafe {
        if size_of::<T>() == 4 && size_of::<D>() == 4 {
            let to = slots.map(|slot| match slot {
                NONE => std::ptr::null_mut(),
                _ => run(slot) as *mut u32,
            });
            return C::deal(from as *const u32, to, lanes);
        }
        for (k, slot) in slots.into_iter().enumerate().filter(|(_, slot)| *slot != NONE) {
            let to = run(slot);
            for i in 0..lanes {
                to.add(i).write(from.add(i * N + k).read().widen(SIGNED));
            }
        }
    }
}

/// The way back.
///
/// # Safety
/// So many vectors are writable, and each run has as many elements. The caller is compiled with the features of `C`.
#[inline(always)]
pub(super) unsafe fn collect<C: Cpu, T: Convert<D>, D: Raw, const N: usize>(
    to: *mut T,
    runs: [*const D; N],
    lanes: usize,
) {
    // SAFETY: what the caller vouches for.
    unsafe {
        if size_of::<T>() == 4 && size_of::<D>() == 4 {
            return C::collect(to as *mut u32, runs.map(|run| run as *const u32), lanes);
        }
        for i in 0..lanes {
            for (k, from) in runs.iter().enumerate() {
                to.add(i * N + k).write(T::narrow(from.add(i).read()));
            }
        }
    }
}
