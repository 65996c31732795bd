//! The kernels of `set` and `setp`: what the operators mean for each type.
//!
//! A plain `setp` has a kernel of its own per operator and type. The forms with a Boolean operator, a second
//! destination or a number as result are rarer: one kernel per shape looks the comparison of a warp up in a table, by
//! the type and operator in its constant, and combines words of 32 predicates.

use super::{Boolean, Compare};
use crate::isa::lanes::{Operands, WARP, Width};
use crate::isa::simd::{Cpu, Level, Op, Value, WarpOp};

/// How values of a type (with or without `.ftz`) compare.
pub trait Order: 'static {
    type V: Value;
    /// Its row in the tables.
    const INDEX: u64;
    fn lt(a: Self::V, b: Self::V) -> bool;
    fn le(a: Self::V, b: Self::V) -> bool;
    fn eq(a: Self::V, b: Self::V) -> bool;
    /// Either is NaN.
    fn unordered(a: Self::V, b: Self::V) -> bool;
}

/// `a OP b`; the operator is a constant, so that only its arm remains. −0 equals +0; the first six are false with NaN,
/// the next six true.
#[inline(always)]
pub fn compare<O: Order, const OP: u8>(a: O::V, b: O::V) -> bool {
    match OP {
        0 => O::eq(a, b),
        1 => !O::eq(a, b) & !O::unordered(a, b),
        2 => O::lt(a, b),
        3 => O::le(a, b),
        4 => O::lt(b, a),
        5 => O::le(b, a),
        6 => O::eq(a, b) | O::unordered(a, b),
        7 => !O::eq(a, b),
        8 => !O::le(b, a),
        9 => !O::lt(b, a),
        10 => !O::le(a, b),
        11 => !O::lt(a, b),
        12 => !O::unordered(a, b),
        _ => O::unordered(a, b),
    }
}

macro_rules! plain_orders {
    ($($name:ident $ty:ty, $index:literal, |$a:ident, $b:ident| $nan:expr;)*) => {$(
        pub struct $name;
        impl Order for $name {
            type V = $ty;
            const INDEX: u64 = $index;
            #[inline(always)]
            fn lt($a: $ty, $b: $ty) -> bool { $a < $b }
            #[inline(always)]
            fn le($a: $ty, $b: $ty) -> bool { $a <= $b }
            #[inline(always)]
            fn eq($a: $ty, $b: $ty) -> bool { $a == $b }
            #[inline(always)]
            fn unordered($a: $ty, $b: $ty) -> bool { $nan }
        }
    )*};
}
plain_orders! {
    U16 u16, 0, |_a, _b| false;
    S16 i16, 1, |_a, _b| false;
    U32 u32, 2, |_a, _b| false;
    S32 i32, 3, |_a, _b| false;
    U64 u64, 4, |_a, _b| false;
    S64 i64, 5, |_a, _b| false;
    F32 f32, 6, |a, b| a.is_nan() | b.is_nan();
    F64 f64, 8, |a, b| a.is_nan() | b.is_nan();
}

/// Subnormal operands count as zero.
pub struct F32Ftz;
impl Order for F32Ftz {
    type V = f32;
    const INDEX: u64 = 7;
    #[inline(always)]
    fn lt(a: f32, b: f32) -> bool {
        crate::isa::float::flush(a) < crate::isa::float::flush(b)
    }
    #[inline(always)]
    fn le(a: f32, b: f32) -> bool {
        crate::isa::float::flush(a) <= crate::isa::float::flush(b)
    }
    #[inline(always)]
    fn eq(a: f32, b: f32) -> bool {
        crate::isa::float::flush(a) == crate::isa::float::flush(b)
    }
    #[inline(always)]
    fn unordered(a: f32, b: f32) -> bool {
        a.is_nan() | b.is_nan()
    }
}

/// Sixteen-bit formats compare as sign and magnitude; numbers above `INFINITY` are NaN, `SMALLEST` is the least
/// magnitude that `.ftz` does not flush. `V` is the register, `SHIFT` where in it the half lies.
macro_rules! half_orders {
    ($($name:ident $ty:ty, $index:literal, $infinity:literal, $smallest:literal, $shift:literal;)*) => {$(
        pub struct $name;
        impl $name {
            #[inline(always)]
            fn bits(a: $ty) -> u16 {
                (a >> $shift) as u16
            }
            /// A number that orders as the value does.
            #[inline(always)]
            fn key(a: $ty) -> i16 {
                let bits = Self::bits(a);
                let magnitude = bits & 0x7fff;
                let magnitude = if magnitude.saturating_add(1) <= $smallest { 0 } else { magnitude } as i16;
                if bits >> 15 != 0 { -magnitude } else { magnitude }
            }
        }
        impl Order for $name {
            type V = $ty;
            const INDEX: u64 = $index;
            #[inline(always)]
            fn lt(a: $ty, b: $ty) -> bool {
                (Self::key(a) < Self::key(b)) & !Self::unordered(a, b)
            }
            #[inline(always)]
            fn le(a: $ty, b: $ty) -> bool {
                (Self::key(a) <= Self::key(b)) & !Self::unordered(a, b)
            }
            #[inline(always)]
            fn eq(a: $ty, b: $ty) -> bool {
                (Self::key(a) == Self::key(b)) & !Self::unordered(a, b)
            }
            #[inline(always)]
            fn unordered(a: $ty, b: $ty) -> bool {
                (Self::bits(a) & 0x7fff > $infinity) | (Self::bits(b) & 0x7fff > $infinity)
            }
        }
    )*};
}
half_orders! {
    F16 u16, 9, 0x7c00, 0, 0;
    F16Ftz u16, 10, 0x7c00, 0x400, 0;
    Bf16 u16, 11, 0x7f80, 0, 0;
    F16Low u32, 12, 0x7c00, 0, 0;
    F16High u32, 13, 0x7c00, 0, 16;
    F16LowFtz u32, 14, 0x7c00, 0x400, 0;
    F16HighFtz u32, 15, 0x7c00, 0x400, 16;
    Bf16Low u32, 16, 0x7f80, 0, 0;
    Bf16High u32, 17, 0x7f80, 0, 16;
}

/// Plain `setp`.
pub struct Setp<O, const OP: u8>(std::marker::PhantomData<O>);
impl<O: Order, const OP: u8> Op for Setp<O, OP> {
    type Src = (O::V, O::V);
    type Dst = bool;
    #[inline(always)]
    fn apply<C: Cpu>((a, b): Self::Src, _: u64) -> bool {
        compare::<O, OP>(a, b)
    }
}

// ---- the comparisons of a warp, in tables --------------------------------------------------------------------------

/// Compares two runs; bit `i` of the result is lane `i`.
type CompareFn = unsafe fn(a: *const u8, b: *const u8) -> u32;
const OPERATORS: usize = 14;
const ORDERS: usize = 18;
type Table = [[CompareFn; OPERATORS]; ORDERS];

#[inline(always)]
unsafe fn compare_runs<C: Cpu, O: Order, const OP: u8>(a: *const u8, b: *const u8) -> u32 {
    let mut run = [0; WARP];
    // SAFETY: the caller's.
    unsafe {
        for (lane, result) in run.iter_mut().enumerate() {
            *result = if compare::<O, OP>(O::V::get(a, lane), O::V::get(b, lane)) {
                0xff
            } else {
                0
            };
        }
        C::pack(&run)
    }
}

macro_rules! tables {
    ($($table:ident $function:ident $cpu:ident $(#[$attribute:meta])*;)*) => {$(
        $(#[$attribute])*
        unsafe fn $function<O: Order, const OP: u8>(a: *const u8, b: *const u8) -> u32 {
            // SAFETY: the caller's, which includes the CPU's features.
            unsafe { compare_runs::<crate::isa::simd::$cpu, O, OP>(a, b) }
        }
        static $table: Table = {
            /// Integers know six operators.
            const fn integers<O: Order>() -> [CompareFn; OPERATORS] {
                let six: [CompareFn; 6] = [
                    $function::<O, 0>, $function::<O, 7>, $function::<O, 2>,
                    $function::<O, 3>, $function::<O, 4>, $function::<O, 5>,
                ];
                [
                    six[0], six[1], six[2], six[3], six[4], six[5], six[0], six[1], six[2], six[3], six[4], six[5],
                    six[0], six[1],
                ]
            }
            const fn floats<O: Order>() -> [CompareFn; OPERATORS] {
                [
                    $function::<O, 0>, $function::<O, 1>, $function::<O, 2>, $function::<O, 3>, $function::<O, 4>,
                    $function::<O, 5>, $function::<O, 6>, $function::<O, 7>, $function::<O, 8>, $function::<O, 9>,
                    $function::<O, 10>, $function::<O, 11>, $function::<O, 12>, $function::<O, 13>,
                ]
            }
            [
                integers::<U16>(), integers::<S16>(), integers::<U32>(), integers::<S32>(), integers::<U64>(),
                integers::<S64>(), floats::<F32>(), floats::<F32Ftz>(), floats::<F64>(), floats::<F16>(),
                floats::<F16Ftz>(), floats::<Bf16>(), floats::<F16Low>(), floats::<F16High>(), floats::<F16LowFtz>(),
                floats::<F16HighFtz>(), floats::<Bf16Low>(), floats::<Bf16High>(),
            ]
        };
    )*};
}
tables! {
    BASELINE baseline Baseline;
}
#[cfg(target_arch = "x86_64")]
tables! {
    AVX2 avx2 Avx2 #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")];
    AVX512 avx512 Avx512
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")];
}

fn table<C: Cpu>() -> &'static Table {
    match C::LEVEL {
        Level::Baseline => &BASELINE,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => &AVX2,
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => &AVX512,
        #[cfg(not(target_arch = "x86_64"))]
        _ => &BASELINE,
    }
}

/// The constant of the general kernels: row, operator, Boolean operator, and what "true" is for `set`.
pub(super) fn constant(row: u64, operator: Compare, boolean: Option<Boolean>, truth: u32) -> u64 {
    let boolean = match boolean {
        None | Some(Boolean::And) => 0,
        Some(Boolean::Or) => 1,
        Some(Boolean::Xor) => 2,
    };
    row | (operator as u64) << 8 | boolean << 16 | u64::from(truth) << 32
}

#[inline(always)]
fn combine(comparison: u32, c: u32, imm: u64) -> u32 {
    match imm >> 16 & 3 {
        0 => comparison & c,
        1 => comparison | c,
        _ => comparison ^ c,
    }
}

/// The comparison that `imm` names, or with `NEXT` the one of the next row (the high half of a pair).
#[inline(always)]
unsafe fn by_table<C: Cpu>(regs: *const u8, operands: &Operands, warp: usize, next: usize) -> u32 {
    let row = (operands.imm & 0xff) as usize + next;
    let bytes = WIDTHS[row][0].warp_bytes() as usize;
    let compare = table::<C>()[row][(operands.imm >> 8 & 0xff) as usize];
    // SAFETY: the caller's; the table holds functions for the level that the caller is compiled for.
    unsafe {
        compare(
            regs.add(operands.src[0] as usize + warp * bytes),
            regs.add(operands.src[1] as usize + warp * bytes),
        )
    }
}

#[inline(always)]
unsafe fn store_predicate<const MASKED: bool>(slot: *mut u8, warp: usize, bits: u32, mask: u32) {
    // SAFETY: the caller's: a predicate slot.
    unsafe {
        let slot = slot.cast::<u32>().add(warp);
        *slot = if MASKED { (bits & mask) | (*slot & !mask) } else { bits };
    }
}

/// `setp` in general: `PAIR` writes the complement's result (or the high half's) too, `BOOLEAN` reads a predicate, `X2`
/// compares both halves.
pub struct SetpGeneral<const PAIR: bool, const BOOLEAN: bool, const X2: bool>;
impl<const PAIR: bool, const BOOLEAN: bool, const X2: bool> WarpOp for SetpGeneral<PAIR, BOOLEAN, X2> {
    #[inline(always)]
    unsafe fn run<C: Cpu, const MASKED: bool>(regs: *mut u8, operands: &Operands, warp: usize, mask: u32) {
        // SAFETY: the caller's.
        unsafe {
            let first = by_table::<C>(regs, operands, warp, 0);
            let second = if X2 {
                by_table::<C>(regs, operands, warp, 1)
            } else {
                !first
            };
            let c = if BOOLEAN {
                *regs.add(operands.src[2] as usize).cast::<u32>().add(warp)
            } else {
                !0
            };
            let (p, q) = if BOOLEAN {
                (combine(first, c, operands.imm), combine(second, c, operands.imm))
            } else {
                (first, second)
            };
            store_predicate::<MASKED>(regs.add(operands.dst[0] as usize), warp, p, mask);
            if PAIR {
                store_predicate::<MASKED>(regs.add(operands.dst[1] as usize), warp, q, mask);
            }
        }
    }
}

/// `set`: the result is a number of type `V`, from the upper half of the constant. `X2` has one in each half.
pub struct Set<V, const BOOLEAN: bool, const X2: bool>(std::marker::PhantomData<V>);
impl<V: Value + TruncateFrom, const BOOLEAN: bool, const X2: bool> WarpOp for Set<V, BOOLEAN, X2> {
    #[inline(always)]
    unsafe fn run<C: Cpu, const MASKED: bool>(regs: *mut u8, operands: &Operands, warp: usize, mask: u32) {
        // SAFETY: the caller's.
        unsafe {
            let c = if BOOLEAN {
                *regs.add(operands.src[2] as usize).cast::<u32>().add(warp)
            } else {
                !0
            };
            let with = |bits: u32| if BOOLEAN { combine(bits, c, operands.imm) } else { bits };
            let first = with(by_table::<C>(regs, operands, warp, 0));
            let second = if X2 {
                with(by_table::<C>(regs, operands, warp, 1))
            } else {
                0
            };
            let truth = (operands.imm >> 32) as u32;
            let (low, high) = if X2 {
                (truth & 0xffff, truth & 0xffff_0000)
            } else {
                (truth, 0)
            };
            let mut run = V::run();
            for lane in 0..WARP {
                let a = if first & (1 << lane) != 0 { low } else { 0 };
                let b = if second & (1 << lane) != 0 { high } else { 0 };
                V::set(&mut run, lane, V::truncate(a | b));
            }
            V::store::<C, MASKED>(
                regs.add(operands.dst[0] as usize + warp * V::WIDTH.warp_bytes() as usize),
                &run,
                mask,
            );
        }
    }
}

/// The low bits of a word.
pub trait TruncateFrom {
    fn truncate(word: u32) -> Self;
}
impl TruncateFrom for u16 {
    #[inline(always)]
    fn truncate(word: u32) -> u16 {
        word as u16
    }
}
impl TruncateFrom for u32 {
    #[inline(always)]
    fn truncate(word: u32) -> u32 {
        word
    }
}

/// Source slots of each row, with the predicate of the Boolean forms.
pub(super) static WIDTHS: [[Width; 3]; ORDERS] = {
    use Width::*;
    const fn row(width: Width) -> [Width; 3] {
        [width, width, Pred]
    }
    [
        row(B16),
        row(B16),
        row(B32),
        row(B32),
        row(B64),
        row(B64),
        row(B32),
        row(B32),
        row(B64),
        row(B16),
        row(B16),
        row(B16),
        row(B32),
        row(B32),
        row(B32),
        row(B32),
        row(B32),
        row(B32),
    ]
};
