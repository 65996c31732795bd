//! What logic, shifts, selection and byte permutation compute, as functions of plain bits, each with its kernel.

use crate::isa::lane::Lane;
use crate::isa::lanes::{Operands, Width};
use crate::isa::simd::{Cpu, Value, WarpOp, op};

/// Untyped bits.
pub trait Word: Value {
    const BITS: u32;
    fn and(self, b: Self) -> Self;
    fn or(self, b: Self) -> Self;
    fn xor(self, b: Self) -> Self;
    fn not(self) -> Self;
    fn is_zero(self) -> bool;
    /// Shifts by an amount below [`Word::BITS`].
    fn left(self, by: u32) -> Self;
    fn right(self, by: u32) -> Self;
    fn right_signed(self, by: u32) -> Self;
    fn one() -> Self;
}
macro_rules! impl_word {
    ($($ty:ident $signed:ident;)*) => {$(
        impl Word for $ty {
            const BITS: u32 = $ty::BITS;
            #[inline(always)]
            fn and(self, b: Self) -> Self { self & b }
            #[inline(always)]
            fn or(self, b: Self) -> Self { self | b }
            #[inline(always)]
            fn xor(self, b: Self) -> Self { self ^ b }
            #[inline(always)]
            fn not(self) -> Self { !self }
            #[inline(always)]
            fn is_zero(self) -> bool { self == 0 }
            #[inline(always)]
            fn left(self, by: u32) -> Self { self.wrapping_shl(by) }
            #[inline(always)]
            fn right(self, by: u32) -> Self { self.wrapping_shr(by) }
            #[inline(always)]
            fn right_signed(self, by: u32) -> Self { (self as $signed).wrapping_shr(by) as $ty }
            #[inline(always)]
            fn one() -> Self { 1 }
        }
    )*};
}
impl_word! { u16 i16; u32 i32; u64 i64; }

#[inline(always)]
pub fn and<T: Word>(a: T, b: T) -> T {
    a.and(b)
}
op!(And<T: Word> = and(a: T, b: T) -> T);
#[inline(always)]
pub fn or<T: Word>(a: T, b: T) -> T {
    a.or(b)
}
op!(Or<T: Word> = or(a: T, b: T) -> T);
#[inline(always)]
pub fn xor<T: Word>(a: T, b: T) -> T {
    a.xor(b)
}
op!(Xor<T: Word> = xor(a: T, b: T) -> T);
#[inline(always)]
pub fn not<T: Word>(a: T) -> T {
    a.not()
}
op!(Not<T: Word> = not(a: T) -> T);
#[inline(always)]
pub fn cnot<T: Word>(a: T) -> T {
    if a.is_zero() { T::one() } else { T::default() }
}
op!(Cnot<T: Word> = cnot(a: T) -> T);

/// Any function of three bits: bit `4a + 2b + c` of `table` is its value.
#[inline(always)]
pub fn lop3(a: u32, b: u32, c: u32, table: u64) -> u32 {
    let entry = |i: u32| if table >> i & 1 != 0 { !0u32 } else { 0 };
    let choose = |by: u32, one: u32, zero: u32| (by & one) | (!by & zero);
    let on_c = |i: u32| choose(c, entry(i + 1), entry(i));
    let on_b = |i: u32| choose(b, on_c(i + 2), on_c(i));
    choose(a, on_b(4), on_b(0))
}
op!(Lop3 = lop3(a: u32, b: u32, c: u32; imm) -> u32);

/// `lop3.BoolOp d|p, a, b, c, immLut, q`: also `p = (d != 0) BoolOp q`; the constant holds the table, and above it
/// whether the operator is `and`.
#[inline(always)]
fn lop3_bool(a: u32, b: u32, c: u32, q: bool, imm: u64) -> (u32, bool) {
    let d = lop3(a, b, c, imm);
    (d, if imm >> 63 != 0 { (d != 0) & q } else { (d != 0) | q })
}
#[inline(always)]
fn lop3_or(a: u32, b: u32, c: u32, q: bool, imm: u64) -> (u32, bool) {
    lop3_bool(a, b, c, q, imm & 0xff)
}
#[inline(always)]
fn lop3_and(a: u32, b: u32, c: u32, q: bool, imm: u64) -> (u32, bool) {
    lop3_bool(a, b, c, q, imm & 0xff | 1 << 63)
}
op!(Lop3Or = lop3_or(a: u32, b: u32, c: u32, q: bool; imm) -> (u32, bool));
op!(Lop3And = lop3_and(a: u32, b: u32, c: u32, q: bool; imm) -> (u32, bool));

/// Amounts beyond the width shift everything out.
#[inline(always)]
pub fn shl<T: Word>(a: T, by: u32) -> T {
    if by >= T::BITS {
        T::default()
    } else {
        a.left(by & (T::BITS - 1))
    }
}
op!(Shl<T: Word> = shl(a: T, by: u32) -> T);
#[inline(always)]
pub fn shr_u<T: Word>(a: T, by: u32) -> T {
    if by >= T::BITS {
        T::default()
    } else {
        a.right(by & (T::BITS - 1))
    }
}
op!(ShrU<T: Word> = shr_u(a: T, by: u32) -> T);
#[inline(always)]
pub fn shr_s<T: Word>(a: T, by: u32) -> T {
    a.right_signed(by.min(T::BITS - 1))
}
op!(ShrS<T: Word> = shr_s(a: T, by: u32) -> T);

/// Funnel shift: the high word of `{b, a} << by`.
#[inline(always)]
pub fn shf_l<const WRAP: bool>(a: u32, b: u32, by: u32) -> u32 {
    if !WRAP && by >= 32 {
        return a;
    }
    // Words of 32 bits alone: wider ones are half as many in a vector. What comes from the other word is shifted in two
    // steps, since all 32 at once would be none.
    let by = by & 31;
    b << by | a >> 1 >> (31 - by)
}
op!(ShfL[WRAP] = shf_l(a: u32, b: u32, by: u32) -> u32);
/// Funnel shift: the low word of `{b, a} >> by`.
#[inline(always)]
pub fn shf_r<const WRAP: bool>(a: u32, b: u32, by: u32) -> u32 {
    if !WRAP && by >= 32 {
        return b;
    }
    let by = by & 31;
    a >> by | b << 1 << (31 - by)
}
op!(ShfR[WRAP] = shf_r(a: u32, b: u32, by: u32) -> u32);

/// Four bytes of `{b, a}`, each picked by four bits of `c`; the highest of these replicates the byte's sign.
#[inline(always)]
pub fn prmt(a: u32, b: u32, c: u32) -> u32 {
    pick_byte(a, b, c, 0) | pick_byte(a, b, c, 8) | pick_byte(a, b, c, 16) | pick_byte(a, b, c, 24)
}
/// The byte that ends up `at` bits from the bottom, there.
#[inline(always)]
fn pick_byte(a: u32, b: u32, c: u32, at: u32) -> u32 {
    let select = c >> (at / 2);
    let word = if select & 4 != 0 { b } else { a };
    let byte = word >> (8 * (select & 3)) & 0xff;
    let sign = if byte & 0x80 != 0 { 0xff } else { 0 };
    (if select & 8 != 0 { sign } else { byte }) << at
}
op!(Prmt = prmt(a: u32, b: u32, c: u32) -> u32);

/// As [`prmt`]; the constant holds the four selectors of the mode.
#[inline(always)]
pub fn prmt_mode(a: u32, b: u32, c: u32, selectors: u64) -> u32 {
    prmt(a, b, (selectors >> (16 * (c & 3))) as u32 & 0xffff)
}
op!(PrmtByMode = prmt_mode(a: u32, b: u32, c: u32; imm) -> u32);

#[inline(always)]
pub fn selp<T: Value>(a: T, b: T, c: bool) -> T {
    if c { a } else { b }
}
op!(Selp<T: Value> = selp(a: T, b: T, c: bool) -> T);
#[inline(always)]
pub fn slct<T: Value>(a: T, b: T, c: i32) -> T {
    if c >= 0 { a } else { b }
}
op!(Slct<T: Value> = slct(a: T, b: T, c: i32) -> T);
/// −0 counts as not negative, NaN as negative; so do subnormals that `.ftz` makes −0.
#[inline(always)]
pub fn slct_f32<T: Value>(a: T, b: T, c: f32) -> T {
    if c >= 0.0 { a } else { b }
}
op!(SlctF32<T: Value> = slct_f32(a: T, b: T, c: f32) -> T);
#[inline(always)]
pub fn slct_f32_ftz<T: Value>(a: T, b: T, c: f32) -> T {
    if c > -f32::MIN_POSITIVE { a } else { b }
}
op!(SlctF32Ftz<T: Value> = slct_f32_ftz(a: T, b: T, c: f32) -> T);

// ---- predicates: a warp's run is one word --------------------------------------------------------------------------

/// A function of one or two predicates, 32 lanes at once.
pub trait PredicateOp: 'static {
    const SOURCES: usize;
    fn apply(a: u32, b: u32) -> u32;
}
macro_rules! predicate_ops {
    ($($name:ident $sources:literal |$a:ident, $b:ident| $body:expr;)*) => {$(
        pub struct $name;
        impl PredicateOp for $name {
            const SOURCES: usize = $sources;
            #[inline(always)]
            fn apply($a: u32, $b: u32) -> u32 { $body }
        }
    )*};
}
predicate_ops! {
    PredAnd 2 |a, b| a & b;
    PredOr 2 |a, b| a | b;
    PredXor 2 |a, b| a ^ b;
    PredNot 1 |a, _b| !a;
    PredMov 1 |a, _b| a;
}
/// [`PredicateOp`] over a warp's word.
pub struct Predicates<P>(std::marker::PhantomData<P>);
impl<P: PredicateOp> WarpOp for Predicates<P> {
    #[inline(always)]
    unsafe fn run<C: Cpu, const MASKED: bool>(regs: *mut u8, operands: &Operands, warp: usize, mask: u32) {
        // SAFETY: the caller's; a predicate's run is an aligned word.
        unsafe {
            let word = |offset: u32| regs.add(offset as usize + 4 * warp).cast::<u32>();
            let a = *word(operands.src[0]);
            let b = if P::SOURCES > 1 { *word(operands.src[1]) } else { 0 };
            let result = P::apply(a, b);
            let slot = word(operands.dst[0]);
            *slot = if MASKED {
                (result & mask) | (*slot & !mask)
            } else {
                result
            };
        }
    }
}
/// The lane operation of a [`PredicateOp`].
pub fn predicate_lane<P: PredicateOp>() -> Lane {
    const PREDICATES: &[Width] = &[Width::Pred, Width::Pred];
    Lane::of_warps::<Predicates<P>>(&PREDICATES[..1], &PREDICATES[..P::SOURCES])
}
