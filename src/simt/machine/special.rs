//! Special registers (PTX ISA, Special Registers) and the other values that stand in slots before a function runs.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::isa::lanes::{WARP, Width};
use crate::program::{Element, Initial, RESERVED_SHARED, Special};

use super::context::Env;
use super::slots::Slot;

/// Which lanes of which block a value is for.
pub struct Place<'a> {
    pub block: &'a Env<'a>,
    /// Linear index in the block of the bundle's first thread.
    pub first_thread: u32,
    pub warps: u32,
}

/// Writes `f(lane)` into every lane of a slot; `lane` counts through the bundle.
///
/// # Safety
/// `slot` lies in the window at `regs`, made for bundles of at least `warps` warps.
pub unsafe fn fill(regs: *mut u8, slot: Slot, warps: u32, f: impl Fn(usize) -> u128) {
    let lanes = warps as usize * WARP;
    // SAFETY: the slot holds `lanes` values of its width, for the window is for bundles of that many warps; it is
    // aligned to the width.
    unsafe {
        let at = regs.add(slot.offset as usize);
        match slot.width {
            Width::Pred => {
                for w in 0..warps as usize {
                    let bits = (0..WARP).fold(0u32, |m, i| m | u32::from(f(w * WARP + i) != 0) << i);
                    *(at as *mut u32).add(w) = bits;
                }
            }
            Width::B16 => (0..lanes).for_each(|i| *(at as *mut u16).add(i) = f(i) as u16),
            Width::B32 => (0..lanes).for_each(|i| *(at as *mut u32).add(i) = f(i) as u32),
            Width::B64 => (0..lanes).for_each(|i| *(at as *mut u64).add(i) = f(i) as u64),
            Width::B128 => (0..lanes).for_each(|i| *(at as *mut u128).add(i) = f(i)),
        }
    }
}

/// Writes one value into every lane of a slot.
///
/// # Safety
/// As for [`fill`].
#[inline]
pub unsafe fn fill_same(regs: *mut u8, slot: Slot, warps: u32, value: u128) {
    let lanes = warps as usize * WARP;
    // SAFETY: the slot holds `lanes` values of its width, aligned to it, and no reference into the window lives
    // meanwhile.
    unsafe {
        let at = regs.add(slot.offset as usize);
        match slot.width {
            Width::B32 => std::slice::from_raw_parts_mut(at as *mut u32, lanes).fill(value as u32),
            Width::B64 => std::slice::from_raw_parts_mut(at as *mut u64, lanes).fill(value as u64),
            Width::Pred | Width::B16 | Width::B128 => fill(regs, slot, warps, |_| value),
        }
    }
}

/// Bytes of a parameter as a register value.
fn param(params: &[u8], offset: u32, element: Element) -> u128 {
    let mut raw = [0u8; 16];
    let (start, n) = (offset as usize, element.bytes as usize);
    if let Some(bytes) = params.get(start..start + n) {
        raw[..n].copy_from_slice(bytes);
    }
    let value = u128::from_le_bytes(raw);
    if element.signed && n < 16 {
        let shift = 128 - 8 * n as u32;
        ((value << shift) as i128 >> shift) as u128
    } else {
        value
    }
}

/// Puts an initial value into its slot.
///
/// # Safety
/// As for [`fill`].
pub unsafe fn set_initial(regs: *mut u8, slot: Slot, initial: &Initial, place: &Place<'_>) {
    // SAFETY: all three write the slot that the caller has promised, for `place.warps` warps.
    unsafe {
        match *initial {
            Initial::Constant(value) => fill_same(regs, slot, place.warps, value),
            Initial::Param { offset, element } => {
                let value = param(&place.block.env.launch().params, offset, element);
                fill_same(regs, slot, place.warps, value);
            }
            Initial::Special(which) => set_special(regs, slot, which, place),
        }
    }
}

/// Whether a special register keeps its value from one block to the next on the same bundle of the same worker.
pub fn outlives_block(which: Special) -> bool {
    use Special::*;
    !matches!(which, Ctaid(_) | ClusterId(_) | ClusterCtaid(_) | ClusterCtarank)
}

/// Reads a special register for all lanes.
///
/// # Safety
/// As for [`fill`].
pub unsafe fn set_special(regs: *mut u8, slot: Slot, which: Special, place: &Place<'_>) {
    use Special::*;
    let block = place.block;
    // What blocks differ in is read often, and is not the launch's.
    let launch = || block.env.launch();
    let axis = |v: &[u32; 3], i: u8| u128::from(v.get(i as usize).copied().unwrap_or(0));
    let lanes = |f: &dyn Fn(u32) -> u32| {
        // SAFETY: the slot is the caller's, in a window for `place.warps` warps.
        unsafe { fill(regs, slot, place.warps, |lane| u128::from(f(lane as u32))) }
    };
    let value = match which {
        Ntid(i) => axis(&launch().block, i),
        Nctaid(i) => axis(&launch().grid, i),
        Nwarpid => u128::from(launch().threads().div_ceil(WARP as u32)),
        Nsmid => u128::from(launch().multiprocessors),
        Gridid => u128::from(launch().grid_id),
        CurrentGraphExec => u128::from(launch().family.graph),
        Envreg(i) => u128::from(launch().envreg(i)),
        DynamicSmemSize => u128::from(launch().dynamic_shared),
        TotalSmemSize | AggrSmemSize => {
            let reserved = block.env.kernel().reserved_shared.map_or(0, |_| RESERVED_SHARED);
            u128::from(block.shared_bytes - reserved)
        }
        ReservedSmem(which) => {
            let start = block.env.kernel().reserved_shared.unwrap_or(0);
            u128::from(match which {
                0 | 3 => start,
                1 => start + RESERVED_SHARED,
                2 => RESERVED_SHARED,
                _ => start + RESERVED_SHARED / 2,
            })
        }
        NclusterId(i) => axis(&launch().grid, i) / axis(&launch().cluster(), i).max(1),
        ClusterNctaid(i) => axis(&launch().cluster(), i),
        ClusterNctarank => u128::from(launch().peers()),
        IsExplicitCluster => u128::from(launch().cluster.is_some()),
        SharedBase(i) => {
            let shared = &block.env.kernel().shared;
            let offset = shared
                .binary_search_by_key(&i, |(index, _)| *index)
                .map_or(0, |at| shared[at].1);
            u128::from(block.shared_start()) + u128::from(offset)
        }
        SharedAddress(offset) => i128::from(block.shared_start()).wrapping_add(offset.into()) as u128,
        Ctaid(i) => axis(&block.ctaid, i),
        ClusterId(i) => axis(&block.ctaid, i) / axis(&launch().cluster(), i).max(1),
        ClusterCtaid(i) => axis(&block.ctaid, i) % axis(&launch().cluster(), i).max(1),
        ClusterCtarank => u128::from(block.rank),
        Smid => u128::from(block.seat % launch().multiprocessors.max(1)),
        Tid(i) => {
            let [x, y, _] = launch().block;
            let first = place.first_thread;
            return match i {
                0 => lanes(&|l| (first + l) % x),
                1 => lanes(&|l| (first + l) / x % y),
                2 => lanes(&|l| (first + l) / x / y),
                _ => lanes(&|_| 0),
            };
        }
        Laneid => return lanes(&|l| l % 32),
        Warpid => return lanes(&|l| (place.first_thread + l) / 32),
        LanemaskEq => return lanes(&|l| 1 << (l % 32)),
        LanemaskLt => return lanes(&|l| (1 << (l % 32)) - 1),
        LanemaskLe => return lanes(&|l| (2u64.pow(l % 32 + 1) - 1) as u32),
        LanemaskGt => return lanes(&|l| !((2u64.pow(l % 32 + 1) - 1) as u32)),
        LanemaskGe => return lanes(&|l| !((1u32 << (l % 32)) - 1)),
        Clock => u128::from(clock() as u32),
        ClockHi => u128::from(clock() >> 32),
        Clock64 => u128::from(clock()),
        Globaltimer => u128::from(nanoseconds()),
        GlobaltimerLo => u128::from(nanoseconds() as u32),
        GlobaltimerHi => u128::from(nanoseconds() >> 32),
        // Performance monitors count nothing here: no counter was configured.
        Pm(_) | Pm64(_) => 0,
    };
    // SAFETY: the slot is the caller's, in a window for `place.warps` warps.
    unsafe { fill_same(regs, slot, place.warps, value) }
}

fn nanoseconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as u64)
}

/// A counter that goes up steadily: the CPU's time stamp.
fn clock() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has rdtsc.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    nanoseconds()
}
