//! Surface accesses, lane by lane (PTX ISA, suld, sust, sured). Reductions are atomics of the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

use crate::memory::texture::{Channel, Descriptor, Surface};
use crate::program::ir::texture::{Outside, SurfaceAction, SurfaceOp, SurfaceReduction};

use super::access::tell_one;
use super::context::{Cx, Outcome, RawFault};
use super::observe::Direction;
use super::slots::{Slot, lanes, read, write};
use super::texture::{bad_handle, geometry, resolve};
use crate::program::{Proxy, Space};
use crate::simt::cause::Cause;

/// `suld`, `sust`, `sured`.
///
/// # Safety
/// Slots of `op` lie in the running window.
pub unsafe fn access<const WATCHED: bool>(op: &SurfaceOp<Slot>, cx: &mut Cx<'_>) -> Outcome {
    let regs = cx.regs;
    // SAFETY: the operands of `op` are slots of the running window, which the caller promises; lanes come from the
    // mask.
    let get = |slot: Slot, lane: usize| unsafe { read(regs, slot, lane) };
    let mut known: Option<(u64, Arc<Surface>)> = None;
    let geometry = geometry(op.geometry);
    for lane in lanes(&cx.mask.lanes) {
        let handle = get(op.surface, lane);
        if known.as_ref().is_none_or(|(known, _)| *known != handle) {
            let found = resolve(cx, handle);
            known = match &found {
                Some(Descriptor::Surface(surface)) if surface.image.is_alive() => Some((handle, Arc::clone(surface))),
                other => return Some(bad_handle("surface", handle, other.as_ref(), lane)),
            };
        }
        let Some((_, surface)) = &known else { continue };
        let format = surface.image.format;
        let elements = match &op.action {
            SurfaceAction::Load(dst) => dst.len(),
            SurfaceAction::Store(src) => src.len(),
            SurfaceAction::Reduce { .. } => 1,
        };
        let reduces = matches!(op.action, SurfaceAction::Reduce { .. });
        let element = usize::from(op.bytes);
        // A formatted store writes a texel, whatever it is given.
        let bytes = match op.formatted && !reduces {
            true => format.bytes(),
            false => (element * elements) as u32,
        };
        let unit = if op.formatted { format.bytes() } else { 1 };
        let at = std::array::from_fn(|i| op.at.get(i).map_or(0, |slot| get(*slot, lane) as i32));
        let layer = op.layer.map_or(0, |slot| get(slot, lane) as u32);
        let place = surface.place(geometry, layer, at, unit, bytes, op.outside == Outside::Clamp);
        let Some(address) = place else {
            if op.outside != Outside::Zero {
                return Some(outside(surface, at, layer, bytes, lane));
            }
            if let SurfaceAction::Load(dst) = &op.action {
                for slot in dst.iter().flatten() {
                    // SAFETY: `slot` is a destination of `op`, so it lies in the running window, and `lane` is of the
                    // mask.
                    unsafe { write(regs, *slot, lane, 0) };
                }
            }
            continue;
        };
        let aligned = if op.formatted && !reduces {
            format.channel.bytes()
        } else {
            bytes
        };
        if !address.is_multiple_of(u64::from(aligned.max(1))) {
            let cause = Cause::Misaligned { address, bytes };
            return Some(RawFault::new(cause, lane));
        }
        if WATCHED {
            let direction = match &op.action {
                SurfaceAction::Load(_) => Direction::Read,
                SurfaceAction::Store(_) => Direction::Write,
                SurfaceAction::Reduce { .. } => Direction::Atomic,
            };
            let range = (address, bytes.into());
            tell_one::<WATCHED>(cx, lane, range, Space::Global, direction, Proxy::Surface);
        }
        match &op.action {
            SurfaceAction::Load(dst) => {
                for (i, slot) in dst.iter().enumerate() {
                    let mut raw = [0; 8];
                    // SAFETY: the place has `bytes` bytes, which are all elements'; arrays stay readable and writable.
                    unsafe {
                        std::ptr::copy_nonoverlapping(
                            (address as *const u8).add(i * element),
                            raw.as_mut_ptr(),
                            element,
                        );
                    }
                    if let Some(slot) = slot {
                        // SAFETY: `slot` is a destination of `op`, so it lies in the running window, and `lane` is of
                        // the mask.
                        unsafe { write(regs, *slot, lane, u64::from_le_bytes(raw)) };
                    }
                }
            }
            SurfaceAction::Store(src) => {
                let mut raw = [0; 16];
                if op.formatted {
                    let components = std::array::from_fn(|i| src.get(i).map_or(0, |slot| get(*slot, lane) as u32));
                    raw = format.write(components);
                } else {
                    for (i, slot) in src.iter().enumerate() {
                        raw[i * element..][..element].copy_from_slice(&get(*slot, lane).to_le_bytes()[..element]);
                    }
                }
                // SAFETY: the place has `bytes` bytes; arrays stay readable and writable.
                unsafe { std::ptr::copy_nonoverlapping(raw.as_ptr(), address as *mut u8, bytes as usize) };
            }
            SurfaceAction::Reduce {
                op: which,
                signed,
                value,
            } => {
                let signed = signed.unwrap_or(matches!(format.channel, Channel::S8 | Channel::S16 | Channel::S32));
                // SAFETY: the place has `bytes` bytes, in an array, and is aligned.
                unsafe { reduce(address, op.bytes, *which, signed, get(*value, lane)) };
            }
        }
    }
    None
}

#[cold]
fn outside(surface: &Surface, at: [i32; 3], layer: u32, bytes: u32, lane: usize) -> RawFault {
    let level = &surface.image.levels[0];
    let why = format!(
        "{bytes} bytes at {at:?}, layer {layer}, lie outside of a surface of {} × {} × {} texels, {} layers",
        level.width, level.height, level.depth, surface.image.layers
    );
    RawFault {
        cause: Cause::Texture { why },
        lane,
        others: 0,
    }
}

/// # Safety
/// `address` is valid for `bytes` (4 or 8) bytes, and aligned.
unsafe fn reduce(address: u64, bytes: u8, op: SurfaceReduction, signed: bool, value: u64) {
    const ORDER: Ordering = Ordering::Relaxed;
    // SAFETY: the caller checked that `bytes` bytes at `address` are there and aligned; kernels and host share them
    // only through raw pointers and atomics.
    unsafe {
        match (bytes, signed) {
            (4, false) => {
                let (at, value) = (AtomicU32::from_ptr(address as *mut u32), value as u32);
                match op {
                    SurfaceReduction::Add => at.fetch_add(value, ORDER),
                    SurfaceReduction::Min => at.fetch_min(value, ORDER),
                    SurfaceReduction::Max => at.fetch_max(value, ORDER),
                    SurfaceReduction::And => at.fetch_and(value, ORDER),
                    SurfaceReduction::Or => at.fetch_or(value, ORDER),
                };
            }
            (4, true) => {
                let (at, value) = (AtomicI32::from_ptr(address as *mut i32), value as i32);
                match op {
                    SurfaceReduction::Add => at.fetch_add(value, ORDER),
                    SurfaceReduction::Min => at.fetch_min(value, ORDER),
                    SurfaceReduction::Max => at.fetch_max(value, ORDER),
                    SurfaceReduction::And => at.fetch_and(value, ORDER),
                    SurfaceReduction::Or => at.fetch_or(value, ORDER),
                };
            }
            (_, false) => {
                let at = AtomicU64::from_ptr(address as *mut u64);
                match op {
                    SurfaceReduction::Add => at.fetch_add(value, ORDER),
                    SurfaceReduction::Min => at.fetch_min(value, ORDER),
                    SurfaceReduction::Max => at.fetch_max(value, ORDER),
                    SurfaceReduction::And => at.fetch_and(value, ORDER),
                    SurfaceReduction::Or => at.fetch_or(value, ORDER),
                };
            }
            (_, true) => {
                let (at, value) = (AtomicI64::from_ptr(address as *mut i64), value as i64);
                match op {
                    SurfaceReduction::Add => at.fetch_add(value, ORDER),
                    SurfaceReduction::Min => at.fetch_min(value, ORDER),
                    SurfaceReduction::Max => at.fetch_max(value, ORDER),
                    SurfaceReduction::And => at.fetch_and(value, ORDER),
                    SurfaceReduction::Or => at.fetch_or(value, ORDER),
                };
            }
        }
    }
}
