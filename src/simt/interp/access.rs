//! Loads and stores of a whole bundle: addresses of 32 lanes at a time are formed, checked and served, with quick paths
//! for lanes that touch consecutive elements or all the same one.
//!
//! Every access is checked before memory is touched: global and generic addresses against the address space's map (and,
//! failing that, the block's own windows and registered host ranges), shared and local ones against their windows, all
//! against the alignment that the ISA demands (PTX ISA, Addresses as Operands: naturally aligned to the access size).

use std::sync::atomic::{self, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use crate::isa::lanes::{WARP, Width};
use crate::memory::{AddressSpace, READ, WRITE};
use crate::program::{Element, Ordering, Space};

use super::code::{MemOp, NONE};
use super::{Cx, RawFault};
use crate::isa::Level;

/// Carries out an access for the lanes of `cx.mask`; `false`: `cx.fault` says why not.
pub type AccessFn = unsafe fn(&mut Cx<'_, '_>, &MemOp) -> bool;

/// Addresses of one warp's lanes.
pub type Lanes = [u64; WARP];

/// A memory element as raw bits.
pub trait Raw: Copy + Default + 'static {
    /// # Safety
    /// `at` is valid for reads and aligned.
    unsafe fn load_strong(at: *const Self, order: atomic::Ordering) -> Self;
    /// # Safety
    /// `at` is valid for writes and aligned.
    unsafe fn store_strong(at: *mut Self, value: Self, order: atomic::Ordering);
    /// The low bits.
    fn cut(bits: u128) -> Self;
    fn bits(self) -> u128;
}

macro_rules! raw {
    ($($t:ty => $a:ty),*) => {$(
        impl Raw for $t {
            #[inline(always)]
            unsafe fn load_strong(at: *const $t, order: atomic::Ordering) -> $t {
                // SAFETY: valid and aligned by the caller's word; kernels and host share this memory only through raw
                // pointers and atomics.
                unsafe { <$a>::from_ptr(at as *mut $t).load(order) }
            }
            #[inline(always)]
            unsafe fn store_strong(at: *mut $t, value: $t, order: atomic::Ordering) {
                // SAFETY: as above.
                unsafe { <$a>::from_ptr(at).store(value, order) }
            }
            #[inline(always)]
            fn cut(bits: u128) -> $t {
                bits as $t
            }
            #[inline(always)]
            fn bits(self) -> u128 {
                self.into()
            }
        }
    )*};
}
raw!(u8 => AtomicU8, u16 => AtomicU16, u32 => AtomicU32, u64 => AtomicU64);

impl Raw for u128 {
    #[inline(always)]
    fn cut(bits: u128) -> u128 {
        bits
    }
    #[inline(always)]
    fn bits(self) -> u128 {
        self
    }
    #[inline(always)]
    unsafe fn load_strong(at: *const u128, order: atomic::Ordering) -> u128 {
        #[cfg(target_arch = "x86_64")]
        {
            let value: std::arch::x86_64::__m128i;
            // SAFETY: 16 valid, aligned bytes. One instruction: processors with AVX move them whole, and x86 keeps loads
            // in order, as acquire wants (the block is not `nomem`, so that the compiler does too).
            unsafe {
                std::arch::asm!("movdqa {value}, [{at}]", value = out(xmm_reg) value, at = in(reg) at,
                    options(nostack, preserves_flags, readonly));
                if order != atomic::Ordering::Relaxed {
                    atomic::compiler_fence(atomic::Ordering::Acquire);
                }
                std::mem::transmute(value)
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let at = at as *mut u64;
            // SAFETY: 16 valid, aligned bytes.
            unsafe {
                let low = AtomicU64::from_ptr(at).load(order);
                let high = AtomicU64::from_ptr(at.add(1)).load(order);
                u128::from(low) | u128::from(high) << 64
            }
        }
    }
    #[inline(always)]
    unsafe fn store_strong(at: *mut u128, value: u128, order: atomic::Ordering) {
        #[cfg(target_arch = "x86_64")]
        {
            let _ = order;
            // SAFETY: as for the load; x86 keeps stores in order, and so does the compiler around the block.
            unsafe {
                let value: std::arch::x86_64::__m128i = std::mem::transmute(value);
                std::arch::asm!("movdqa [{at}], {value}", value = in(xmm_reg) value, at = in(reg) at,
                    options(nostack, preserves_flags));
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let at = at as *mut u64;
            // SAFETY: as for the load.
            unsafe {
                AtomicU64::from_ptr(at).store(value as u64, order);
                AtomicU64::from_ptr(at.add(1)).store((value >> 64) as u64, order);
            }
        }
    }
}

/// The elements of a strong vector access, `bytes` in all, moved as one where they are at most 16 bytes.
///
/// The ISA calls a vector access one of each element, in any order; hardware moves an aligned vector whole, and programs
/// count on it: CUB publishes a state and its value by one `st.relaxed.v2` and reads both by one `ld.relaxed.v2`.
///
/// # Safety
/// `at` is aligned to `bytes`, a power of two, and valid for reads.
#[inline(always)]
unsafe fn load_whole(at: u64, bytes: u64, order: atomic::Ordering) -> [u128; 2] {
    // SAFETY: the caller's word.
    unsafe {
        match bytes {
            1 => [u8::load_strong(at as *const u8, order).into(), 0],
            2 => [u16::load_strong(at as *const u16, order).into(), 0],
            4 => [u32::load_strong(at as *const u32, order).into(), 0],
            8 => [u64::load_strong(at as *const u64, order).into(), 0],
            16 => [u128::load_strong(at as *const u128, order), 0],
            _ => {
                let at = at as *const u128;
                [u128::load_strong(at, order), u128::load_strong(at.add(1), order)]
            }
        }
    }
}

/// # Safety
/// As for [`load_whole`], and valid for writes.
#[inline(always)]
unsafe fn store_whole(at: u64, bytes: u64, whole: [u128; 2], order: atomic::Ordering) {
    // SAFETY: the caller's word.
    unsafe {
        match bytes {
            1 => u8::store_strong(at as *mut u8, whole[0] as u8, order),
            2 => u16::store_strong(at as *mut u16, whole[0] as u16, order),
            4 => u32::store_strong(at as *mut u32, whole[0] as u32, order),
            8 => u64::store_strong(at as *mut u64, whole[0] as u64, order),
            16 => u128::store_strong(at as *mut u128, whole[0], order),
            _ => {
                let at = at as *mut u128;
                u128::store_strong(at, whole[0], order);
                u128::store_strong(at.add(1), whole[1], order);
            }
        }
    }
}

/// Element → register value and back.
pub trait Convert<D: Raw>: Raw {
    fn widen(self, signed: bool) -> D;
    fn narrow(d: D) -> Self;
}

macro_rules! convert_pair {
    ($($t:ty as $s:ty => $d:ty as $sd:ty),* $(,)?) => {$(
        impl Convert<$d> for $t {
            #[inline(always)]
            fn widen(self, signed: bool) -> $d {
                if signed { self as $s as $sd as $d } else { self as $d }
            }
            #[inline(always)]
            fn narrow(d: $d) -> $t {
                d as $t
            }
        }
    )*};
}
convert_pair!(
    u8 as i8 => u16 as i16, u8 as i8 => u32 as i32, u8 as i8 => u64 as i64,
    u16 as i16 => u16 as i16, u16 as i16 => u32 as i32, u16 as i16 => u64 as i64,
    u32 as i32 => u32 as i32, u32 as i32 => u64 as i64, u64 as i64 => u64 as i64,
    u128 as i128 => u128 as i128,
    u8 as i8 => u128 as i128, u16 as i16 => u128 as i128, u32 as i32 => u128 as i128, u64 as i64 => u128 as i128,
);

#[inline(always)]
fn order_of(ordering: Ordering, store: bool) -> atomic::Ordering {
    match (ordering, store) {
        (Ordering::Weak | Ordering::Volatile | Ordering::Relaxed, _) => atomic::Ordering::Relaxed,
        (_, false) => atomic::Ordering::Acquire,
        (_, true) => atomic::Ordering::Release,
    }
}

/// Addresses as the process knows them for the lanes of warp `w`; shared and local offsets are checked here (a lane
/// outside its window leaves a fault). Lanes outside `active` get the first active lane's address.
///
/// # Safety
/// `op.register` is a slot of the running window.
#[inline(always)]
pub unsafe fn addresses(
    cx: &mut Cx<'_, '_>,
    op: &MemOp,
    w: usize,
    active: u32,
    bytes: u64,
    write: bool,
    out: &mut Lanes,
) -> bool {
    if op.register == NONE {
        *out = [op.offset as u64; WARP];
    } else if op.affine != NONE {
        // SAFETY: the value is there where the operation names one.
        let (first, step) = unsafe { line(cx, op, w) };
        for (i, a) in out.iter_mut().enumerate() {
            let at = first.wrapping_add(step.wrapping_mul(i as u64));
            *a = if op.narrow { u64::from(at as u32) } else { at }.wrapping_add(op.offset as u64);
        }
    } else {
        // SAFETY: the slot lies in the window by construction of the program.
        let base = unsafe { cx.regs.add(op.register as usize) };
        if op.narrow {
            // SAFETY: a B32 slot holds `warps × [u32; 32]`.
            let regs = unsafe { &*(base as *const [u32; WARP]).add(w) };
            for i in 0..WARP {
                out[i] = (u64::from(regs[i])).wrapping_add(op.offset as u64);
            }
        } else {
            // SAFETY: a B64 slot holds `warps × [u64; 32]`.
            let regs = unsafe { &*(base as *const [u64; WARP]).add(w) };
            for i in 0..WARP {
                out[i] = regs[i].wrapping_add(op.offset as u64);
            }
        }
    }
    let block = cx.block;
    match op.space {
        Space::Generic | Space::Global | Space::Const => {}
        Space::Shared => {
            let mut high = 0u64;
            for (i, a) in out.iter_mut().enumerate() {
                *a &= 0xffff_ffff;
                let active = u64::from(active >> i & 1).wrapping_neg();
                high = high.max(*a & active);
            }
            if high + bytes > u64::from(block.shared_bytes) {
                let lane = (0..WARP)
                    .find(|&i| active >> i & 1 == 1 && out[i] + bytes > u64::from(block.shared_bytes))
                    .expect("some active lane is beyond the window");
                cx.fault = Some(RawFault::address(out[lane], bytes, write, w, lane, Space::Shared));
                return false;
            }
            for a in out.iter_mut() {
                *a = a.wrapping_add(block.shared);
            }
        }
        Space::Local => {
            let frame = if op.register == NONE { u64::from(cx.frame) } else { 0 };
            let limit = u64::from(block.local_stride);
            let lane0 = u64::from(cx.first_thread) + (w * WARP) as u64;
            for (i, a) in out.iter_mut().enumerate() {
                let offset = a.wrapping_add(frame) & 0xffff_ffff;
                if active >> i & 1 == 1 && offset + bytes > limit {
                    cx.fault = Some(RawFault::address(offset, bytes, write, w, i, Space::Local));
                    return false;
                }
                *a = block.local + (lane0 + i as u64) * limit + offset;
            }
        }
        Space::Param => {
            for (i, a) in out.iter_mut().enumerate() {
                if active >> i & 1 == 1 && a.wrapping_add(bytes) > u64::from(block.param_bytes) {
                    cx.fault = Some(RawFault::address(*a, bytes, write, w, i, Space::Param));
                    return false;
                }
                *a = a.wrapping_add(block.param);
            }
        }
    }
    true
}

/// Whether a kernel's lane may touch `[address, address + bytes)`: arena pages, the block's own windows, host ranges.
#[inline(always)]
pub fn allowed(cx: &Cx<'_, '_>, address: u64, bytes: u64, bits: u8) -> bool {
    cx.block.view.check(address, bytes, bits) || allowed_elsewhere(cx, address, bytes, bits)
}

#[cold]
#[inline(never)]
fn allowed_elsewhere(cx: &Cx<'_, '_>, address: u64, bytes: u64, bits: u8) -> bool {
    let b = cx.block;
    let within = |base: u64, len: u64| address >= base && bytes <= len && address - base <= len - bytes;
    within(b.shared, u64::from(b.shared_bytes))
        || within(b.local, b.local_bytes)
        || (bits == READ && within(b.param, u64::from(b.param_bytes)))
        || AddressSpace::get().host_range_contains(address, bytes, bits)
}

/// Whether an address that the program gave by space needs no map check: its window was checked when it was formed.
#[inline(always)]
fn windowed(space: Space) -> bool {
    matches!(space, Space::Shared | Space::Local | Space::Param)
}

/// Checks the active lanes' addresses for range and alignment; the first offender leaves a fault.
#[inline(always)]
pub fn check_lanes(cx: &mut Cx<'_, '_>, space: Space, w: usize, active: u32, a: &Lanes, bytes: u64, bits: u8) -> bool {
    let (mut low, mut high, mut all) = (u64::MAX, 0u64, 0u64);
    for (i, &x) in a.iter().enumerate() {
        let on = u64::from(active >> i & 1).wrapping_neg();
        low = low.min(x | !on);
        high = high.max(x & on);
        all |= x & on;
    }
    let aligned = all & (bytes - 1) == 0;
    let span = high.wrapping_sub(low);
    if aligned && (windowed(space) || (span < 1 << 16 && cx.block.view.check(low, span + bytes, bits))) {
        return true;
    }
    check_each(cx, space, w, active, a, bytes, bits)
}

#[inline(never)]
fn check_each(cx: &mut Cx<'_, '_>, space: Space, w: usize, active: u32, a: &Lanes, bytes: u64, bits: u8) -> bool {
    let mut rest = active;
    while rest != 0 {
        let i = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        let address = a[i];
        if !windowed(space) && !allowed(cx, address, bytes, bits) {
            cx.fault = Some(RawFault::address(address, bytes, bits & WRITE != 0, w, i, space));
            return false;
        }
        if address & (bytes - 1) != 0 {
            cx.fault = Some(RawFault::misaligned(address, bytes, w, i));
            return false;
        }
    }
    true
}

/// How the addresses of lanes that all take part follow each other, where that is simple; range and alignment are checked
/// then.
enum Pattern {
    /// Element by element from here.
    Consecutive(u64),
    /// All the same one.
    Same(u64),
    /// Anything else, or something that the long way has to look at.
    Other,
}

/// Whether `lanes`, a multiple of `N` of them, count up from the first by `step`.
#[inline(always)]
fn counts_up<const N: usize>(lanes: &[u64], step: u64) -> bool {
    let mut expected: [u64; N] = std::array::from_fn(|i| lanes[0].wrapping_add(i as u64 * step));
    let mut differ = [0; N];
    for chunk in lanes.chunks_exact(N) {
        for i in 0..N {
            differ[i] |= chunk[i] ^ expected[i];
            expected[i] = expected[i].wrapping_add(N as u64 * step);
        }
    }
    differ.iter().fold(0, |all, d| all | d) == 0
}

/// As [`counts_up`], of 32-bit registers.
#[inline(always)]
fn counts_up_narrow<const N: usize>(lanes: &[u32], step: u32) -> bool {
    let mut expected: [u32; N] = std::array::from_fn(|i| lanes[0].wrapping_add(i as u32 * step));
    let mut differ = [0; N];
    for chunk in lanes.chunks_exact(N) {
        for i in 0..N {
            differ[i] |= chunk[i] ^ expected[i];
            expected[i] = expected[i].wrapping_add(N as u32 * step);
        }
    }
    differ.iter().fold(0, |all, d| all | d) == 0
}

/// The address register's value in the first lane of warp `w`, and what each lane has more than the one before.
///
/// # Safety
/// `op` names a value that follows the lane's number, and the bundle has computed it.
#[inline(always)]
unsafe fn line(cx: &Cx<'_, '_>, op: &MemOp, w: usize) -> (u64, u64) {
    // SAFETY: the caller's word.
    let value = unsafe { &*cx.affine.add(op.affine as usize) };
    let first = if cx.by_warp {
        value.base[w]
    } else {
        value.base[0].wrapping_add(value.step.wrapping_mul((w * WARP) as u64))
    };
    let cut = if op.narrow { u64::from(u32::MAX) } else { u64::MAX };
    (first & cut, value.step & cut)
}

/// The pattern of `count` lanes of warps `w` and up.
///
/// # Safety
/// `op.register` is a slot of the running window, which has that many warps.
#[inline(always)]
unsafe fn pattern(cx: &Cx<'_, '_>, op: &MemOp, w: usize, count: usize, bytes: u64, bits: u8) -> Pattern {
    let block = cx.block;
    let (first, step) = if op.register == NONE {
        (0, 0)
    } else if op.affine != NONE {
        if cx.by_warp && count > WARP {
            return Pattern::Other;
        }
        // SAFETY: the bundle runs code that names such values, so it has them.
        let (first, step) = unsafe { line(cx, op, w) };
        if step != 0 && step != bytes {
            return Pattern::Other;
        }
        (first, step)
    } else {
        // SAFETY: the slot lies in the window by construction of the program.
        let base = unsafe { cx.regs.add(op.register as usize) };
        if op.narrow {
            // SAFETY: a B32 slot holds 32 values a warp.
            let lanes = unsafe { std::slice::from_raw_parts((base as *const u32).add(w * WARP), count) };
            let (first, last) = (u64::from(lanes[0]), u64::from(lanes[count - 1]));
            let step = match last.wrapping_sub(first) {
                0 => 0,
                n if n == (count as u64 - 1) * bytes => bytes,
                _ => return Pattern::Other,
            };
            if !counts_up_narrow::<16>(lanes, step as u32) {
                return Pattern::Other;
            }
            (first, step)
        } else {
            // SAFETY: a B64 slot holds 32 values a warp.
            let lanes = unsafe { std::slice::from_raw_parts((base as *const u64).add(w * WARP), count) };
            let step = match lanes[count - 1].wrapping_sub(lanes[0]) {
                0 => 0,
                n if n == (count as u64 - 1) * bytes => bytes,
                _ => return Pattern::Other,
            };
            if !counts_up::<8>(lanes, step) {
                return Pattern::Other;
            }
            (lanes[0], step)
        }
    };
    let mut first = first.wrapping_add(op.offset as u64);
    let extent = step * (count as u64 - 1) + bytes;
    let good = match op.space {
        Space::Generic | Space::Global | Space::Const => block.view.check(first, extent, bits),
        Space::Shared => {
            let good = first <= u64::from(u32::MAX) && first + extent <= u64::from(block.shared_bytes);
            first = first.wrapping_add(block.shared);
            good
        }
        // Each lane has local memory of its own; parameters are rarely read by address.
        Space::Local | Space::Param => false,
    };
    if !good || first & (bytes - 1) != 0 {
        Pattern::Other
    } else if step == 0 {
        Pattern::Same(first)
    } else {
        Pattern::Consecutive(first)
    }
}

/// Serves a load of `count` lanes of warps `w` and up, if it follows a simple pattern.
///
/// # Safety
/// As for [`Access::run`]; all of these lanes take part.
#[inline(always)]
unsafe fn load_simple<T: Convert<D>, D: Raw, const SIGNED: bool>(
    cx: &Cx<'_, '_>,
    op: &MemOp,
    w: usize,
    count: usize,
) -> bool {
    let n = op.data.len();
    let bytes = size_of::<T>() as u64 * n as u64;
    // SAFETY: the caller's word on slots.
    let (first, same) = match unsafe { pattern(cx, op, w, count, bytes, READ) } {
        Pattern::Consecutive(first) => (first as *const T, false),
        Pattern::Same(first) => (first as *const T, true),
        Pattern::Other => return false,
    };
    // SAFETY: `pattern` checked `count · n` elements, or the ones that all share; slots are runs of the window.
    unsafe {
        let run = |slot: u32| (cx.regs.add(slot as usize) as *mut D).add(w * WARP);
        if same {
            for (k, &slot) in op.data.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
                std::slice::from_raw_parts_mut(run(slot), count).fill(first.add(k).read().widen(SIGNED));
            }
            return true;
        }
        match *op.data {
            [slot] if slot == NONE => {}
            [slot] if size_of::<T>() == size_of::<D>() => {
                std::ptr::copy_nonoverlapping(first as *const D, run(slot), count);
            }
            [slot] => {
                let dst = std::slice::from_raw_parts_mut(run(slot), count);
                for (i, d) in dst.iter_mut().enumerate() {
                    *d = first.add(i).read().widen(SIGNED);
                }
            }
            [a, b] => deal::<T, D, SIGNED, 2>(first, [a, b], run, count),
            [a, b, c, d] => deal::<T, D, SIGNED, 4>(first, [a, b, c, d], run, count),
            _ => {
                let slots: [u32; 8] = std::array::from_fn(|k| op.data.get(k).copied().unwrap_or(NONE));
                deal::<T, D, SIGNED, 8>(first, slots, run, count);
            }
        }
    }
    true
}

/// Vectors of `N` elements from memory to `N` slots. By way of local arrays: the compiler then sees that nothing overlaps,
/// and shuffles.
///
/// # Safety
/// `count` vectors, a multiple of 32, are readable; each slot but a sink has room for as many.
#[inline(always)]
unsafe fn deal<T: Convert<D>, D: Raw, const SIGNED: bool, const N: usize>(
    src: *const T,
    slots: [u32; N],
    run: impl Fn(u32) -> *mut D,
    count: usize,
) {
    for at in (0..count).step_by(WARP) {
        let mut out = [[D::default(); WARP]; N];
        for i in 0..WARP {
            for (k, out) in out.iter_mut().enumerate() {
                // SAFETY: the caller's word.
                out[i] = unsafe { src.add((at + i) * N + k).read() }.widen(SIGNED);
            }
        }
        for (out, slot) in out.iter().zip(slots).filter(|(_, slot)| *slot != NONE) {
            // SAFETY: the caller's word.
            unsafe { (run(slot).add(at) as *mut [D; WARP]).write(*out) };
        }
    }
}

/// The way back.
///
/// # Safety
/// `count` vectors, a multiple of 32, are writable; each run has as many elements.
#[inline(always)]
unsafe fn collect<T: Convert<D>, D: Raw, const N: usize>(dst: *mut T, runs: [*const D; N], count: usize) {
    for at in (0..count).step_by(WARP) {
        // SAFETY: the caller's word.
        let from = runs.map(|run| unsafe { (run.add(at) as *const [D; WARP]).read() });
        for i in 0..WARP {
            for (k, from) in from.iter().enumerate() {
                // SAFETY: the caller's word.
                unsafe { dst.add((at + i) * N + k).write(T::narrow(from[i])) };
            }
        }
    }
}

/// Serves a store likewise.
///
/// # Safety
/// As for [`load_simple`].
#[inline(always)]
unsafe fn store_simple<T: Convert<D>, D: Raw>(cx: &Cx<'_, '_>, op: &MemOp, w: usize, count: usize) -> bool {
    let n = op.data.len();
    let bytes = size_of::<T>() as u64 * n as u64;
    // SAFETY: the caller's word on slots.
    let Pattern::Consecutive(first) = (unsafe { pattern(cx, op, w, count, bytes, WRITE) }) else {
        return false;
    };
    let first = first as *mut T;
    // SAFETY: `pattern` checked `count · n` elements; slots are runs of the window.
    unsafe {
        let run = |slot: u32| (cx.regs.add(slot as usize) as *const D).add(w * WARP);
        match *op.data {
            [slot] if size_of::<T>() == size_of::<D>() => {
                std::ptr::copy_nonoverlapping(run(slot), first as *mut D, count);
            }
            [slot] => {
                let src = run(slot);
                for i in 0..count {
                    first.add(i).write(T::narrow(src.add(i).read()));
                }
            }
            [a, b] => collect::<T, D, 2>(first, [a, b].map(run), count),
            [a, b, c, d] => collect::<T, D, 4>(first, [a, b, c, d].map(run), count),
            [a, b, c, d, e, f, g, h] => collect::<T, D, 8>(first, [a, b, c, d, e, f, g, h].map(run), count),
            _ => return false,
        }
    }
    true
}

/// Whether all lanes of all warps of the bundle take part.
#[inline(always)]
fn everybody(cx: &Cx<'_, '_>) -> bool {
    cx.mask.lanes[..cx.mask.warps as usize]
        .iter()
        .all(|&lanes| lanes == u32::MAX)
}

trait Access {
    /// # Safety
    /// The window, slots and features are those that the program was made for.
    unsafe fn run(cx: &mut Cx<'_, '_>, op: &MemOp) -> bool;
}

struct Load<T, D, const SIGNED: bool, const STRONG: bool>(std::marker::PhantomData<(T, D)>);

impl<T: Convert<D>, D: Raw, const SIGNED: bool, const STRONG: bool> Access for Load<T, D, SIGNED, STRONG> {
    #[inline(always)]
    unsafe fn run(cx: &mut Cx<'_, '_>, op: &MemOp) -> bool {
        // SAFETY: the caller's word; all lanes take part.
        if !STRONG && everybody(cx) && unsafe { load_simple::<T, D, SIGNED>(cx, op, 0, cx.mask.warps as usize * WARP) }
        {
            return true;
        }
        let n = op.data.len();
        let bytes = size_of::<T>() as u64 * n as u64;
        for w in 0..cx.mask.warps as usize {
            let active = cx.mask.lanes[w];
            if active == 0 {
                continue;
            }
            // SAFETY: the caller's word; all lanes of this warp take part.
            if !STRONG && active == u32::MAX && unsafe { load_simple::<T, D, SIGNED>(cx, op, w, WARP) } {
                continue;
            }
            let mut a: Lanes = [0; WARP];
            // SAFETY: the caller's word on slots.
            if !unsafe { addresses(cx, op, w, active, bytes, false, &mut a) } {
                return false;
            }
            if !check_lanes(cx, op.space, w, active, &a, bytes, READ) {
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

impl<T: Convert<D>, D: Raw, const STRONG: bool> Access for Store<T, D, STRONG> {
    #[inline(always)]
    unsafe fn run(cx: &mut Cx<'_, '_>, op: &MemOp) -> bool {
        // SAFETY: the caller's word; all lanes take part.
        if !STRONG && everybody(cx) && unsafe { store_simple::<T, D>(cx, op, 0, cx.mask.warps as usize * WARP) } {
            return true;
        }
        let n = op.data.len();
        let bytes = size_of::<T>() as u64 * n as u64;
        for w in 0..cx.mask.warps as usize {
            let active = cx.mask.lanes[w];
            if active == 0 {
                continue;
            }
            // SAFETY: the caller's word; all lanes of this warp take part.
            if !STRONG && active == u32::MAX && unsafe { store_simple::<T, D>(cx, op, w, WARP) } {
                continue;
            }
            let mut a: Lanes = [0; WARP];
            // SAFETY: the caller's word on slots.
            if !unsafe { addresses(cx, op, w, active, bytes, true, &mut a) } {
                return false;
            }
            if !check_lanes(cx, op.space, w, active, &a, bytes, WRITE) {
                return false;
            }
            if STRONG {
                let order = order_of(op.ordering, true);
                let mut rest = active;
                while rest != 0 {
                    let i = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    let mut whole = [0; 2];
                    // SAFETY: as for the load.
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
                // SAFETY: every active lane's address was checked.
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
unsafe fn run_avx512<A: Access>(cx: &mut Cx<'_, '_>, op: &MemOp) -> bool {
    // SAFETY: passed on.
    unsafe { A::run(cx, op) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma,f16c")]
unsafe fn run_avx2<A: Access>(cx: &mut Cx<'_, '_>, op: &MemOp) -> bool {
    // SAFETY: passed on.
    unsafe { A::run(cx, op) }
}

unsafe fn run_baseline<A: Access>(cx: &mut Cx<'_, '_>, op: &MemOp) -> bool {
    // SAFETY: passed on.
    unsafe { A::run(cx, op) }
}

fn pick<A: Access>() -> AccessFn {
    match Level::current() {
        Level::Avx512 => run_avx512::<A>,
        Level::Avx2 => run_avx2::<A>,
        Level::Baseline => run_baseline::<A>,
    }
}

/// The function that loads such elements into slots of such a width.
pub fn load_fn(element: Element, slot: Option<Width>, ordering: Ordering) -> AccessFn {
    fn by_strength<T: Convert<D>, D: Raw, const SIGNED: bool>(ordering: Ordering) -> AccessFn {
        if ordering == Ordering::Weak {
            pick::<Load<T, D, SIGNED, false>>()
        } else {
            pick::<Load<T, D, SIGNED, true>>()
        }
    }
    fn by_sign<T: Convert<D>, D: Raw>(element: Element, ordering: Ordering) -> AccessFn {
        if element.signed && size_of::<T>() < size_of::<D>() {
            by_strength::<T, D, true>(ordering)
        } else {
            by_strength::<T, D, false>(ordering)
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
        (1, Width::B16) => by_sign::<u8, u16>(e, ordering),
        (1, Width::B32) => by_sign::<u8, u32>(e, ordering),
        (1, Width::B64) => by_sign::<u8, u64>(e, ordering),
        (1, Width::B128) => by_sign::<u8, u128>(e, ordering),
        (2, Width::B16) => by_sign::<u16, u16>(e, ordering),
        (2, Width::B32) => by_sign::<u16, u32>(e, ordering),
        (2, Width::B64) => by_sign::<u16, u64>(e, ordering),
        (2, Width::B128) => by_sign::<u16, u128>(e, ordering),
        (4, Width::B32) => by_sign::<u32, u32>(e, ordering),
        (4, Width::B64) => by_sign::<u32, u64>(e, ordering),
        (4, Width::B128) => by_sign::<u32, u128>(e, ordering),
        (8, Width::B64) => by_sign::<u64, u64>(e, ordering),
        (8, Width::B128) => by_sign::<u64, u128>(e, ordering),
        (16, Width::B128) => by_sign::<u128, u128>(e, ordering),
        (bytes, width) => unreachable!("a program never loads {bytes} bytes into {width:?}"),
    }
}

/// The function that stores such elements from slots of such a width.
pub fn store_fn(element: Element, slot: Width, ordering: Ordering) -> AccessFn {
    fn by_strength<T: Convert<D>, D: Raw>(ordering: Ordering) -> AccessFn {
        if ordering == Ordering::Weak {
            pick::<Store<T, D, false>>()
        } else {
            pick::<Store<T, D, true>>()
        }
    }
    match (element.bytes, slot) {
        (1, Width::B16) => by_strength::<u8, u16>(ordering),
        (1, Width::B32) => by_strength::<u8, u32>(ordering),
        (1, Width::B64) => by_strength::<u8, u64>(ordering),
        (1, Width::B128) => by_strength::<u8, u128>(ordering),
        (2, Width::B16) => by_strength::<u16, u16>(ordering),
        (2, Width::B32) => by_strength::<u16, u32>(ordering),
        (2, Width::B64) => by_strength::<u16, u64>(ordering),
        (2, Width::B128) => by_strength::<u16, u128>(ordering),
        (4, Width::B32) => by_strength::<u32, u32>(ordering),
        (4, Width::B64) => by_strength::<u32, u64>(ordering),
        (4, Width::B128) => by_strength::<u32, u128>(ordering),
        (8, Width::B64) => by_strength::<u64, u64>(ordering),
        (8, Width::B128) => by_strength::<u64, u128>(ordering),
        (16, Width::B128) => by_strength::<u128, u128>(ordering),
        (bytes, width) => unreachable!("a program never stores {bytes} bytes from {width:?}"),
    }
}
