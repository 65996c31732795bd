//! `atom` and `red`: read-modify-write of each active lane in lane order.
//!
//! Accesses to global and generic addresses are real atomics of the host, sequentially consistent (stronger than any
//! ordering that PTX can ask for). A block runs on one thread at a time, so its `.shared` accesses need no lock prefix.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

use half::{bf16, f16};

use crate::isa::Level;
use crate::isa::lanes::WARP;
use crate::program::{AtomicOp, AtomicType, Space};

use super::access::{self, Distances, Lanes, MemOp};
use super::context::{Cx, NONE};
use super::observe::{Atomic, Direction};
use super::raw::wide;
use super::slots::bits;

/// An atomic access.
pub struct AtomOp {
    /// With the operands that lanes bring, an element each.
    pub mem: MemOp,
    /// Where old values go; empty for `red`.
    pub dst: Box<[u32]>,
    pub c: u32,
    /// Global memory adds in its own way.
    pub in_memory: bool,
}

/// Carries out an atomic for the lanes of `cx.mask`; `false`: `cx.fault` says why not.
pub type AtomicFn = unsafe fn(&mut Cx<'_>, &AtomOp) -> bool;

/// A memory cell that supports compare-and-swap by the host.
trait Cell: Copy + PartialEq + Default + 'static {
    /// Replaces `*at` by `f(*at)` atomically, returns the old value.
    ///
    /// # Safety
    /// `at` is valid, aligned, shared only through raw pointers and atomics.
    unsafe fn update(at: *mut Self, f: impl Fn(Self) -> Self) -> Self;
}

macro_rules! cell {
    ($($t:ty => $a:ty),*) => {$(
        impl Cell for $t {
            #[inline(always)]
            unsafe fn update(at: *mut $t, f: impl Fn($t) -> $t) -> $t {
                // SAFETY: `at` is valid and aligned, and others reach the cell only through raw pointers and atomics:
                // what the trait asks of callers.
                let cell = unsafe { <$a>::from_ptr(at) };
                let mut old = cell.load(SeqCst);
                loop {
                    match cell.compare_exchange_weak(old, f(old), SeqCst, SeqCst) {
                        Ok(old) => return old,
                        Err(seen) => old = seen,
                    }
                }
            }
        }
    )*};
}
cell!(u16 => AtomicU16, u32 => AtomicU32, u64 => AtomicU64);

impl Cell for u128 {
    unsafe fn update(at: *mut u128, f: impl Fn(u128) -> u128) -> u128 {
        // SAFETY: `at` is valid for reads and writes and aligned, as the trait asks of callers.
        unsafe { wide::update(at, f) }
    }
}

/// What an operation makes of the old value, the operand and (for `cas`) the replacement. PTX ISA, `atom`.
trait Rmw {
    type Cell: Cell;
    fn apply(old: Self::Cell, b: Self::Cell, c: Self::Cell, in_memory: bool) -> Self::Cell;
}

macro_rules! rmw {
    ($($name:ident: $t:ty, |$old:ident, $b:ident, $c:ident, $in_memory:ident| $body:expr;)*) => {$(
        struct $name;
        impl Rmw for $name {
            type Cell = $t;
            #[inline(always)]
            #[allow(unused_variables, reason = "some operations have fewer operands")]
            fn apply($old: $t, $b: $t, $c: $t, $in_memory: bool) -> $t { $body }
        }
    )*};
}

fn flush(x: f32, ftz: bool) -> f32 {
    if ftz && x.is_subnormal() { 0f32.copysign(x) } else { x }
}

fn canonical(x: f32) -> u32 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits() }
}

fn add_f32(a: u32, b: u32, in_memory: bool) -> u32 {
    canonical(flush(
        flush(f32::from_bits(a), in_memory) + flush(f32::from_bits(b), in_memory),
        in_memory,
    ))
}

fn add_f64(a: u64, b: u64, in_memory: bool) -> u64 {
    // The hardware's NaN of f64 operations keeps a payload; the canonical one is what conversions give. Of two, the first is said
    // to be it here, so that compiled code has the same. Global memory prefers the operand, and makes nothing quiet.
    const QUIET: u64 = 1 << 51;
    match (f64::from_bits(a), f64::from_bits(b)) {
        (_, y) if y.is_nan() && in_memory => b,
        (x, _) if x.is_nan() && in_memory => a,
        (x, _) if x.is_nan() => a | QUIET,
        (_, y) if y.is_nan() => b | QUIET,
        (x, y) => (x + y).to_bits(),
    }
}

/// Both operands have few enough bits that rounding through f32 rounds once.
fn f16_op(a: u16, b: u16, f: impl Fn(f32, f32) -> f32) -> u16 {
    let r = f(f16::from_bits(a).to_f32(), f16::from_bits(b).to_f32());
    if r.is_nan() { 0x7fff } else { f16::from_f32(r).to_bits() }
}

fn bf16_op(a: u16, b: u16, f: impl Fn(f32, f32) -> f32) -> u16 {
    let r = f(bf16::from_bits(a).to_f32(), bf16::from_bits(b).to_f32());
    if r.is_nan() {
        0x7fff
    } else {
        bf16::from_f32(r).to_bits()
    }
}

fn pair(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

fn sum(a: f32, b: f32) -> f32 {
    a + b
}

/// Minimum that prefers a number to a NaN and -0 to +0 (PTX ISA, `min`).
fn least(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        _ => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

fn greatest(a: f32, b: f32) -> f32 {
    -least(-a, -b)
}

rmw! {
    AddU32: u32, |old, b, c, in_memory| old.wrapping_add(b);
    AddU64: u64, |old, b, c, in_memory| old.wrapping_add(b);
    MinU32: u32, |old, b, c, in_memory| old.min(b);
    MaxU32: u32, |old, b, c, in_memory| old.max(b);
    MinU64: u64, |old, b, c, in_memory| old.min(b);
    MaxU64: u64, |old, b, c, in_memory| old.max(b);
    MinS32: u32, |old, b, c, in_memory| (old as i32).min(b as i32) as u32;
    MaxS32: u32, |old, b, c, in_memory| (old as i32).max(b as i32) as u32;
    MinS64: u64, |old, b, c, in_memory| (old as i64).min(b as i64) as u64;
    MaxS64: u64, |old, b, c, in_memory| (old as i64).max(b as i64) as u64;
    And32: u32, |old, b, c, in_memory| old & b;
    And64: u64, |old, b, c, in_memory| old & b;
    Or32: u32, |old, b, c, in_memory| old | b;
    Or64: u64, |old, b, c, in_memory| old | b;
    Xor32: u32, |old, b, c, in_memory| old ^ b;
    Xor64: u64, |old, b, c, in_memory| old ^ b;
    Inc32: u32, |old, b, c, in_memory| if old >= b { 0 } else { old + 1 };
    Dec32: u32, |old, b, c, in_memory| if old == 0 || old > b { b } else { old - 1 };
    Exch32: u32, |old, b, c, in_memory| b;
    Exch64: u64, |old, b, c, in_memory| b;
    Exch128: u128, |old, b, c, in_memory| b;
    Cas16: u16, |old, b, c, in_memory| if old == b { c } else { old };
    Cas32: u32, |old, b, c, in_memory| if old == b { c } else { old };
    Cas64: u64, |old, b, c, in_memory| if old == b { c } else { old };
    Cas128: u128, |old, b, c, in_memory| if old == b { c } else { old };
    AddF32: u32, |old, b, c, in_memory| add_f32(old, b, in_memory);
    AddF64: u64, |old, b, c, in_memory| add_f64(old, b, in_memory);
    AddF16: u16, |old, b, c, in_memory| f16_op(old, b, sum);
    MinF16: u16, |old, b, c, in_memory| f16_op(old, b, least);
    MaxF16: u16, |old, b, c, in_memory| f16_op(old, b, greatest);
    AddBf16: u16, |old, b, c, in_memory| bf16_op(old, b, sum);
    MinBf16: u16, |old, b, c, in_memory| bf16_op(old, b, least);
    MaxBf16: u16, |old, b, c, in_memory| bf16_op(old, b, greatest);
    AddF16x2: u32, |old, b, c, in_memory| pair(old, b, |x, y| f16_op(x, y, sum));
    MinF16x2: u32, |old, b, c, in_memory| pair(old, b, |x, y| f16_op(x, y, least));
    MaxF16x2: u32, |old, b, c, in_memory| pair(old, b, |x, y| f16_op(x, y, greatest));
    AddBf16x2: u32, |old, b, c, in_memory| pair(old, b, |x, y| bf16_op(x, y, sum));
    MinBf16x2: u32, |old, b, c, in_memory| pair(old, b, |x, y| bf16_op(x, y, least));
    MaxBf16x2: u32, |old, b, c, in_memory| pair(old, b, |x, y| bf16_op(x, y, greatest));
}

/// Carries out an atomic of one element for lanes of a warp whose cells lie at distances from a place in the block's shared
/// memory, which nobody else touches meanwhile.
///
/// # Safety
/// Each active lane's cell is there and aligned; slots are those of the running window.
#[inline(always)]
unsafe fn update_near<K: Rmw, const COMBINE: bool>(
    cx: &Cx<'_>,
    op: &AtomOp,
    (w, active): (usize, u32),
    (place, distances): (u64, &Distances),
) {
    let place = place as *mut u8;
    // SAFETY: what the caller vouches for; slots are runs of 32 cells.
    unsafe {
        let run = |slot: u32| (cx.regs.add(slot as usize) as *mut [K::Cell; WARP]).add(w) as *mut K::Cell;
        let b = run(op.mem.data[0]);
        let c = if op.c == NONE { b } else { run(op.c) };
        let dst = op.dst.first().filter(|&&d| d != NONE).map(|&d| run(d));
        let one = |i: usize| {
            let at = place.wrapping_add(distances[i] as usize) as *mut K::Cell;
            let old = at.read();
            at.write(K::apply(old, *b.add(i), *c.add(i), false));
            old
        };
        match dst {
            Some(dst) if active == u32::MAX => {
                for i in 0..WARP {
                    *dst.add(i) = one(i);
                }
            }
            Some(dst) => {
                for i in bits(active) {
                    *dst.add(i) = one(i);
                }
            }
            None if COMBINE && bits(active).all(|i| distances[i] == distances[active.trailing_zeros() as usize]) => {
                let first = active.trailing_zeros() as usize;
                let rest = bits(active & (active - 1));
                let total = rest.fold(*b.add(first), |total, i| K::apply(total, *b.add(i), total, false));
                let at = place.wrapping_add(distances[first] as usize) as *mut K::Cell;
                at.write(K::apply(at.read(), total, total, false));
            }
            None => {
                for i in bits(active) {
                    one(i);
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn run<K: Rmw, const WATCHED: bool, const COMBINE: bool>(cx: &mut Cx<'_>, op: &AtomOp) -> bool {
    let bytes = (size_of::<K::Cell>() * op.mem.data.len()) as u64;
    // A `.shared` access stays on this thread; generic addresses may be anybody's.
    let private = op.mem.space == Space::Shared;
    // A generic address follows the rule of the memory that it lands in.
    let block = cx.block;
    let within = |at: u64, base: u64, bytes: u64| at.wrapping_sub(base) < bytes;
    let in_memory =
        |at: u64| op.in_memory && block.shared_address(at).is_none() && !within(at, block.local, block.local_bytes);
    for w in 0..cx.mask.warps as usize {
        let active = cx.mask.lanes[w];
        if active == 0 {
            continue;
        }
        if !WATCHED && private && op.mem.data.len() == 1 {
            let mut distances: Distances = [0; WARP];
            // SAFETY: the address register is a slot of the window.
            let near = unsafe { access::near(cx, &op.mem, w, active, bytes, Direction::Atomic, &mut distances) };
            if let Some(place) = near {
                // SAFETY: `near` has checked the lanes' cells; slots are those of the running window.
                unsafe { update_near::<K, COMBINE>(cx, op, (w, active), (place, &distances)) };
                continue;
            }
        }
        let mut a: Lanes = [0; WARP];
        // SAFETY: the address register is a slot of the window.
        if !unsafe { access::lanes::<false>(cx, &op.mem, w, active, bytes, Direction::Atomic, &mut a) } {
            return false;
        }
        let mut atomic = Atomic {
            is_blind: op.dst.iter().all(|&d| d == NONE),
            is_swap: op.c != NONE,
            failed: 0,
        };
        if WATCHED {
            access::tell_atomic(cx, &op.mem, (w, active), &a, bytes, (atomic, false));
        }
        for (k, &slot) in op.mem.data.iter().enumerate() {
            // SAFETY: slots are runs of 32 cells in the window; addresses of active lanes were checked.
            unsafe {
                let b = (cx.regs.add(slot as usize) as *const [K::Cell; WARP]).add(w) as *const K::Cell;
                let c = if op.c == NONE {
                    b
                } else {
                    (cx.regs.add(op.c as usize) as *const [K::Cell; WARP]).add(w) as *const K::Cell
                };
                let dst = op.dst.get(k).filter(|&&d| d != NONE);
                let dst = dst.map(|&d| (cx.regs.add(d as usize) as *mut [K::Cell; WARP]).add(w) as *mut K::Cell);
                let first = active.trailing_zeros() as usize;
                if COMBINE && dst.is_none() && one_address(&a, active) {
                    // Nobody looks at the values in between: one access for the warp.
                    let mut total = *b.add(first);
                    let mut rest = active & (active - 1);
                    while rest != 0 {
                        total = K::apply(total, *b.add(rest.trailing_zeros() as usize), total, false);
                        rest &= rest - 1;
                    }
                    K::Cell::update((a[first] as *mut K::Cell).add(k), |old| {
                        K::apply(old, total, total, false)
                    });
                    continue;
                }
                let mut rest = active;
                while rest != 0 {
                    let i = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    let at = (a[i] as *mut K::Cell).add(k);
                    let (vb, vc) = (*b.add(i), *c.add(i));
                    let old = if private {
                        let old = at.read();
                        at.write(K::apply(old, vb, vc, false));
                        old
                    } else {
                        let in_memory = in_memory(a[i]);
                        K::Cell::update(at, |old| K::apply(old, vb, vc, in_memory))
                    };
                    if let Some(dst) = dst {
                        *dst.add(i) = old;
                    }
                    if WATCHED && atomic.is_swap && old != vb {
                        atomic.failed |= 1 << i;
                    }
                }
            }
        }
        if WATCHED {
            access::tell_atomic(cx, &op.mem, (w, active), &a, bytes, (atomic, true));
        }
    }
    true
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma,f16c")]
unsafe fn run_avx2<K: Rmw, const WATCHED: bool, const COMBINE: bool>(cx: &mut Cx<'_>, op: &AtomOp) -> bool {
    // SAFETY: `op` has slots of the running window; this function is taken only where the CPU has the level.
    unsafe { run::<K, WATCHED, COMBINE>(cx, op) }
}

unsafe fn run_baseline<K: Rmw, const WATCHED: bool, const COMBINE: bool>(cx: &mut Cx<'_>, op: &AtomOp) -> bool {
    // SAFETY: `op` has slots of the running window.
    unsafe { run::<K, WATCHED, COMBINE>(cx, op) }
}

fn one_address(a: &Lanes, active: u32) -> bool {
    let first = a[active.trailing_zeros() as usize];
    a.iter().enumerate().all(|(i, &x)| active >> i & 1 == 0 || x == first)
}

/// Something made of an operation on a type. `COMBINE`: what several lanes bring may be summed up before.
trait Chooser {
    type Chosen;
    fn choose<K: Rmw, const COMBINE: bool>(self) -> Self::Chosen;
}

struct Lanewise<const WATCHED: bool>;

impl<const WATCHED: bool> Chooser for Lanewise<WATCHED> {
    type Chosen = AtomicFn;
    fn choose<K: Rmw, const COMBINE: bool>(self) -> AtomicFn {
        match Level::current() {
            // Addresses are formed by vectors, the rest goes lane by lane; telling takes longer than either.
            Level::Avx512 | Level::Avx2 if !WATCHED => run_avx2::<K, WATCHED, COMBINE>,
            Level::Avx512 | Level::Avx2 | Level::Baseline => run_baseline::<K, WATCHED, COMBINE>,
        }
    }
}

struct OneElement;

impl Chooser for OneElement {
    type Chosen = Element;
    fn choose<K: Rmw, const COMBINE: bool>(self) -> Element {
        Element {
            bytes: size_of::<K::Cell>(),
            apply: |at, value, in_memory| {
                // SAFETY: who calls `apply` promises that both are there, and `at` aligned.
                unsafe {
                    let value = (value as *const K::Cell).read_unaligned();
                    K::Cell::update(at as *mut K::Cell, |old| K::apply(old, value, value, in_memory));
                }
            },
        }
    }
}

/// An operation on one element of memory, without a result.
#[derive(Clone, Copy)]
pub struct Element {
    pub bytes: usize,
    /// Of the element at the first address, which is a multiple of its size, with the value at the second one; whether
    /// subnormals of `f32` are flushed.
    ///
    /// # Safety
    /// Both can be reached, and the first written.
    pub apply: unsafe fn(u64, u64, bool),
}

struct OldElement;

impl Chooser for OldElement {
    type Chosen = Fetch;
    fn choose<K: Rmw, const COMBINE: bool>(self) -> Fetch {
        Fetch {
            bytes: size_of::<K::Cell>(),
            apply: |at, [b, c], old, in_memory| {
                // SAFETY: who calls `apply` promises that all are there, and `at` aligned.
                unsafe {
                    let b = (b as *const K::Cell).read_unaligned();
                    let c = (c as *const K::Cell).read_unaligned();
                    let was = K::Cell::update(at as *mut K::Cell, |old| K::apply(old, b, c, in_memory));
                    (old as *mut K::Cell).write_unaligned(was);
                }
            },
        }
    }
}

/// An operation on one element of memory, whose old value is the result.
#[derive(Clone, Copy)]
pub struct Fetch {
    pub bytes: usize,
    /// Of the element at the first address, which is a multiple of its size, with the values at the next two, of which
    /// `cas` alone has a second; where the old one goes, and whether subnormals of `f32` are flushed.
    ///
    /// # Safety
    /// All can be reached, and the first and the last written.
    pub apply: unsafe fn(u64, [u64; 2], u64, bool),
}

/// The operation with a result; the instruction table lets no other pair through.
pub fn fetch(op: AtomicOp, ty: AtomicType) -> Fetch {
    choose(op, ty, OldElement)
}

/// The operation on one element; the instruction table lets no other pair through.
pub fn element(op: AtomicOp, ty: AtomicType) -> Element {
    choose(op, ty, OneElement)
}

/// The function for an operation on a type.
pub fn function<const WATCHED: bool>(op: AtomicOp, ty: AtomicType) -> AtomicFn {
    choose(op, ty, Lanewise::<WATCHED>)
}

fn choose<C: Chooser>(op: AtomicOp, ty: AtomicType, chooser: C) -> C::Chosen {
    use AtomicOp::*;
    use AtomicType::*;
    match (op, ty) {
        (Add, U32 | S32 | B32) => chooser.choose::<AddU32, true>(),
        (Add, U64 | S64 | B64) => chooser.choose::<AddU64, true>(),
        (Add, F32) => chooser.choose::<AddF32, false>(),
        (Add, F64) => chooser.choose::<AddF64, false>(),
        (Add, F16) => chooser.choose::<AddF16, false>(),
        (Add, F16x2) => chooser.choose::<AddF16x2, false>(),
        (Add, Bf16) => chooser.choose::<AddBf16, false>(),
        (Add, Bf16x2) => chooser.choose::<AddBf16x2, false>(),
        (Min, U32 | B32) => chooser.choose::<MinU32, true>(),
        (Min, S32) => chooser.choose::<MinS32, true>(),
        (Min, U64 | B64) => chooser.choose::<MinU64, true>(),
        (Min, S64) => chooser.choose::<MinS64, true>(),
        (Min, F16) => chooser.choose::<MinF16, false>(),
        (Min, F16x2) => chooser.choose::<MinF16x2, false>(),
        (Min, Bf16) => chooser.choose::<MinBf16, false>(),
        (Min, Bf16x2) => chooser.choose::<MinBf16x2, false>(),
        (Max, U32 | B32) => chooser.choose::<MaxU32, true>(),
        (Max, S32) => chooser.choose::<MaxS32, true>(),
        (Max, U64 | B64) => chooser.choose::<MaxU64, true>(),
        (Max, S64) => chooser.choose::<MaxS64, true>(),
        (Max, F16) => chooser.choose::<MaxF16, false>(),
        (Max, F16x2) => chooser.choose::<MaxF16x2, false>(),
        (Max, Bf16) => chooser.choose::<MaxBf16, false>(),
        (Max, Bf16x2) => chooser.choose::<MaxBf16x2, false>(),
        (And, U32 | S32 | B32) => chooser.choose::<And32, true>(),
        (And, U64 | S64 | B64) => chooser.choose::<And64, true>(),
        (Or, U32 | S32 | B32) => chooser.choose::<Or32, true>(),
        (Or, U64 | S64 | B64) => chooser.choose::<Or64, true>(),
        (Xor, U32 | S32 | B32) => chooser.choose::<Xor32, true>(),
        (Xor, U64 | S64 | B64) => chooser.choose::<Xor64, true>(),
        (Inc, _) => chooser.choose::<Inc32, false>(),
        (Dec, _) => chooser.choose::<Dec32, false>(),
        (Exch, U32 | S32 | B32 | F32) => chooser.choose::<Exch32, false>(),
        (Exch, U64 | S64 | B64 | F64) => chooser.choose::<Exch64, false>(),
        (Exch, B128) => chooser.choose::<Exch128, false>(),
        (Cas, B16 | F16 | Bf16) => chooser.choose::<Cas16, false>(),
        (Cas, U32 | S32 | B32 | F32) => chooser.choose::<Cas32, false>(),
        (Cas, U64 | S64 | B64 | F64) => chooser.choose::<Cas64, false>(),
        (Cas, B128) => chooser.choose::<Cas128, false>(),
        (op, ty) => unreachable!("a program never holds an atomic {op:?} of {ty:?}"),
    }
}
