//! Comparison (PTX ISA, Comparison and Selection Instructions: `set`, `setp`): what the operators mean for each type,
//! and from a form the kernel. Knows nothing of registers or lanes beyond a warp's run.
//!
//! A plain `setp` has a kernel of its own per operator and type. The forms with a Boolean operator, a second
//! destination or a number as result are rarer: one kernel per shape looks the comparison of a warp up in a table, by
//! the type and operator in its constant, and combines words of 32 predicates.

use super::lanes::{Operands, WARP, Width};
use super::simd::{Cpu, Op, Value, WarpOp, warp_kernel_at};
use super::{Form, Lane, Level};
use crate::isa::types::Type;

/// Comparison operators. `lo`, `ls`, `hi`, `hs` are the unsigned names of the middle four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[rustfmt::skip]
pub enum Compare { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan }

impl Compare {
    pub fn from_word(word: &str) -> Option<Compare> {
        use Compare::*;
        Some(match word {
            "eq" => Eq,
            "ne" => Ne,
            "lt" | "lo" => Lt,
            "le" | "ls" => Le,
            "gt" | "hi" => Gt,
            "ge" | "hs" => Ge,
            "equ" => Equ,
            "neu" => Neu,
            "ltu" => Ltu,
            "leu" => Leu,
            "gtu" => Gtu,
            "geu" => Geu,
            "num" => Num,
            "nan" => Nan,
            _ => return None,
        })
    }
}

/// Boolean operators that combine a comparison with a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[rustfmt::skip]
pub enum Boolean { And, Or, Xor }

impl Boolean {
    pub fn from_word(word: &str) -> Option<Boolean> {
        Some(match word {
            "and" => Boolean::And,
            "or" => Boolean::Or,
            "xor" => Boolean::Xor,
            _ => return None,
        })
    }
}

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
        super::float::flush(a) < super::float::flush(b)
    }
    #[inline(always)]
    fn le(a: f32, b: f32) -> bool {
        super::float::flush(a) <= super::float::flush(b)
    }
    #[inline(always)]
    fn eq(a: f32, b: f32) -> bool {
        super::float::flush(a) == super::float::flush(b)
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
            unsafe { compare_runs::<super::simd::$cpu, O, OP>(a, b) }
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
fn constant(row: u64, operator: Compare, boolean: Option<Boolean>, truth: u32) -> u64 {
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

// ---- from forms to kernels -----------------------------------------------------------------------------------------

/// The row of a type: its [`Order::INDEX`], the low half's for packed types.
fn row(ty: Type, ftz: bool) -> Option<u64> {
    Some(match ty {
        Type::U16 | Type::B16 => U16::INDEX,
        Type::S16 => S16::INDEX,
        Type::U32 | Type::B32 => U32::INDEX,
        Type::S32 => S32::INDEX,
        Type::U64 | Type::B64 => U64::INDEX,
        Type::S64 => S64::INDEX,
        Type::F32 if ftz => F32Ftz::INDEX,
        Type::F32 => F32::INDEX,
        Type::F64 => F64::INDEX,
        Type::F16 if ftz => F16Ftz::INDEX,
        Type::F16 => F16::INDEX,
        Type::Bf16 => Bf16::INDEX,
        Type::F16x2 if ftz => F16LowFtz::INDEX,
        Type::F16x2 => F16Low::INDEX,
        Type::Bf16x2 => Bf16Low::INDEX,
        _ => return None,
    })
}

/// Source slots of each row, with the predicate of the Boolean forms.
static WIDTHS: [[Width; 3]; ORDERS] = {
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

fn general<W: WarpOp>(dst: &'static [Width], row: u64, boolean: bool, constant: u64) -> Lane {
    Lane::of_warps::<W>(dst, &WIDTHS[row as usize][..if boolean { 3 } else { 2 }]).with(constant)
}

pub fn setp_form(f: &Form) -> Option<Lane> {
    use Compare::*;
    let (ty, operator, boolean) = (f.ty(0), f.compare()?, f.boolean());
    let row = row(ty, f.has("ftz"))?;
    let constant = constant(row, operator, boolean, 0);
    const PREDICATES: &[Width] = &[Width::Pred, Width::Pred];
    if matches!(ty, Type::F16x2 | Type::Bf16x2) {
        return Some(match boolean {
            Some(_) => general::<SetpGeneral<true, true, true>>(PREDICATES, row, true, constant),
            None => general::<SetpGeneral<true, false, true>>(PREDICATES, row, false, constant),
        });
    }
    let one = &PREDICATES[..1];
    let lane = match boolean {
        Some(_) => general::<SetpGeneral<false, true, false>>(one, row, true, constant),
        None => general::<SetpGeneral<false, false, false>>(one, row, false, constant),
    };
    let pair = match boolean {
        Some(_) => warp_kernel_at::<SetpGeneral<true, true, false>>(Level::current()),
        None => warp_kernel_at::<SetpGeneral<true, false, false>>(Level::current()),
    };
    macro_rules! six {
        ($order:ident) => {
            match operator {
                Lt => Lane::of::<Setp<$order, 2>>(),
                Le => Lane::of::<Setp<$order, 3>>(),
                Gt => Lane::of::<Setp<$order, 4>>(),
                Ge => Lane::of::<Setp<$order, 5>>(),
                _ => lane,
            }
        };
    }
    macro_rules! fourteen {
        ($order:ident) => {
            match operator {
                Eq => Lane::of::<Setp<$order, 0>>(),
                Ne => Lane::of::<Setp<$order, 1>>(),
                Neu => Lane::of::<Setp<$order, 7>>(),
                Equ => Lane::of::<Setp<$order, 6>>(),
                Ltu => Lane::of::<Setp<$order, 8>>(),
                Leu => Lane::of::<Setp<$order, 9>>(),
                Gtu => Lane::of::<Setp<$order, 10>>(),
                Geu => Lane::of::<Setp<$order, 11>>(),
                Num => Lane::of::<Setp<$order, 12>>(),
                Nan => Lane::of::<Setp<$order, 13>>(),
                _ => six!($order),
            }
        };
    }
    macro_rules! two {
        ($order:ident) => {
            match operator {
                Eq => Lane::of::<Setp<$order, 0>>(),
                _ => Lane::of::<Setp<$order, 7>>(),
            }
        };
    }
    let quick = match (boolean, ty) {
        (Some(_), _) => lane,
        (None, Type::U16 | Type::S16 | Type::B16) if matches!(operator, Eq | Ne) => two!(U16),
        (None, Type::U32 | Type::S32 | Type::B32) if matches!(operator, Eq | Ne) => two!(U32),
        (None, Type::U64 | Type::S64 | Type::B64) if matches!(operator, Eq | Ne) => two!(U64),
        (None, Type::U16) => six!(U16),
        (None, Type::S16) => six!(S16),
        (None, Type::U32) => six!(U32),
        (None, Type::S32) => six!(S32),
        (None, Type::U64) => six!(U64),
        (None, Type::S64) => six!(S64),
        (None, Type::F32) if !f.has("ftz") => fourteen!(F32),
        (None, Type::F64) => fourteen!(F64),
        (None, _) => lane,
    };
    Some(Lane {
        constant,
        pair: Some(pair),
        ..quick
    })
}

pub fn set_form(f: &Form) -> Option<Lane> {
    let (to, from) = (f.ty(0), f.ty(1));
    let row = row(from, f.has("ftz"))?;
    let x2 = matches!(from, Type::F16x2 | Type::Bf16x2);
    let truth = match to {
        Type::F32 => 1f32.to_bits(),
        Type::F16 => 0x3c00,
        Type::Bf16 => 0x3f80,
        Type::F16x2 => 0x3c00_3c00,
        Type::Bf16x2 => 0x3f80_3f80,
        Type::U16 | Type::S16 | Type::U32 | Type::S32 => !0,
        _ => return None,
    };
    let boolean = f.boolean();
    let constant = constant(row, f.compare()?, boolean, truth);
    let narrow = matches!(to, Type::F16 | Type::Bf16 | Type::U16 | Type::S16);
    Some(match (narrow, boolean.is_some(), x2) {
        (true, false, _) => general::<Set<u16, false, false>>(&[Width::B16], row, false, constant),
        (true, true, _) => general::<Set<u16, true, false>>(&[Width::B16], row, true, constant),
        (false, false, false) => general::<Set<u32, false, false>>(&[Width::B32], row, false, constant),
        (false, true, false) => general::<Set<u32, true, false>>(&[Width::B32], row, true, constant),
        (false, false, true) => general::<Set<u32, false, true>>(&[Width::B32], row, false, constant),
        (false, true, true) => general::<Set<u32, true, true>>(&[Width::B32], row, true, constant),
    })
}
