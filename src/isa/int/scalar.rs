//! What the integer instructions compute, as functions of plain numbers, each with its kernel.

use crate::isa::simd::{Value, op};

/// Integers as the instructions see them.
pub trait Int: Value + Ord {
    fn plus(self, b: Self) -> Self;
    fn minus(self, b: Self) -> Self;
    fn plus_sat(self, b: Self) -> Self;
    fn minus_sat(self, b: Self) -> Self;
    fn times(self, b: Self) -> Self;
    fn high(self, b: Self) -> Self;
    fn carry(self, sum: Self) -> bool;
    fn quotient(self, b: Self) -> Self;
    fn remainder(self, b: Self) -> Self;
    fn from_bool(b: bool) -> Self;
    fn complement(self) -> Self;
    /// As an unsigned number, to compare carries.
    fn below(self, b: Self) -> bool;
}

/// Integers with a product of twice their width in a register.
pub trait Widen: Int {
    type Wide: Int;
    fn wide(self, b: Self) -> Self::Wide;
}
macro_rules! widen {
    ($($ty:ident $wide:ident;)*) => {$(
        impl Widen for $ty {
            type Wide = $wide;
            #[inline(always)]
            fn wide(self, b: Self) -> $wide {
                (self as $wide).wrapping_mul(b as $wide)
            }
        }
    )*};
}
widen! { u16 u32; i16 i32; u32 u64; i32 i64; }

macro_rules! ints {
    ($($ty:ident $unsigned:ident $wide:ident $quotient:ident $remainder:ident;)*) => {$(
        impl Int for $ty {
            #[inline(always)]
            fn plus(self, b: Self) -> Self { self.wrapping_add(b) }
            #[inline(always)]
            fn minus(self, b: Self) -> Self { self.wrapping_sub(b) }
            #[inline(always)]
            fn plus_sat(self, b: Self) -> Self { self.saturating_add(b) }
            #[inline(always)]
            fn minus_sat(self, b: Self) -> Self { self.saturating_sub(b) }
            #[inline(always)]
            fn times(self, b: Self) -> Self { self.wrapping_mul(b) }
            #[inline(always)]
            fn high(self, b: Self) -> Self { ((self as $wide * b as $wide) >> $ty::BITS) as $ty }
            #[inline(always)]
            fn carry(self, sum: Self) -> bool { (sum as $unsigned) < self as $unsigned }
            #[inline(always)]
            fn quotient(self, b: Self) -> Self { $quotient(self, b) }
            #[inline(always)]
            fn remainder(self, b: Self) -> Self { $remainder(self, b) }
            #[inline(always)]
            fn from_bool(b: bool) -> Self { b as $ty }
            #[inline(always)]
            fn complement(self) -> Self { !self }
            #[inline(always)]
            fn below(self, b: Self) -> bool { (self as $unsigned) < b as $unsigned }
        }
    )*};
}
ints! {
    u16 u16 u32 div_u16 rem_u16;
    i16 u16 i32 div_s16 rem_s16;
    u32 u32 u64 div_u32 rem_u32;
    i32 u32 i64 div_s32 rem_s32;
    u64 u64 u128 div_u64 rem_u64;
    i64 u64 i128 div_s64 rem_s64;
}
// ---- add, sub, mul, mad, sad -------------------------------------------------------------------------------------

#[inline(always)]
pub fn add<T: Int>(a: T, b: T) -> T {
    a.plus(b)
}
op!(Add<T: Int> = add(a: T, b: T) -> T);

#[inline(always)]
pub fn sub<T: Int>(a: T, b: T) -> T {
    a.minus(b)
}
op!(Sub<T: Int> = sub(a: T, b: T) -> T);

#[inline(always)]
pub fn add_sat<T: Int>(a: T, b: T) -> T {
    a.plus_sat(b)
}
op!(AddSat<T: Int> = add_sat(a: T, b: T) -> T);

#[inline(always)]
pub fn sub_sat<T: Int>(a: T, b: T) -> T {
    a.minus_sat(b)
}
op!(SubSat<T: Int> = sub_sat(a: T, b: T) -> T);

/// Sum and carry-out.
#[inline(always)]
pub fn add_cc<T: Int>(a: T, b: T) -> (T, bool) {
    let sum = a.plus(b);
    (sum, a.carry(sum))
}
op!(AddCc<T: Int> = add_cc(a: T, b: T) -> (T, bool));

#[inline(always)]
pub fn addc<T: Int>(a: T, b: T, carry: bool) -> T {
    a.plus(b).plus(T::from_bool(carry))
}
op!(Addc<T: Int> = addc(a: T, b: T, carry: bool) -> T);

#[inline(always)]
pub fn addc_cc<T: Int>(a: T, b: T, carry: bool) -> (T, bool) {
    let (partial, first) = add_cc(a, b);
    let (sum, second) = add_cc(partial, T::from_bool(carry));
    (sum, first | second)
}
op!(AddcCc<T: Int> = addc_cc(a: T, b: T, carry: bool) -> (T, bool));

/// Difference and *not borrow*: the machine computes `a + ~b + 1`.
#[inline(always)]
pub fn sub_cc<T: Int>(a: T, b: T) -> (T, bool) {
    (a.minus(b), !a.below(b))
}
op!(SubCc<T: Int> = sub_cc(a: T, b: T) -> (T, bool));

#[inline(always)]
pub fn subc<T: Int>(a: T, b: T, carry: bool) -> T {
    addc(a, b.complement(), carry)
}
op!(Subc<T: Int> = subc(a: T, b: T, carry: bool) -> T);

#[inline(always)]
pub fn subc_cc<T: Int>(a: T, b: T, carry: bool) -> (T, bool) {
    addc_cc(a, b.complement(), carry)
}
op!(SubcCc<T: Int> = subc_cc(a: T, b: T, carry: bool) -> (T, bool));

#[inline(always)]
pub fn mul_lo<T: Int>(a: T, b: T) -> T {
    a.times(b)
}
op!(MulLo<T: Int> = mul_lo(a: T, b: T) -> T);

#[inline(always)]
pub fn mul_hi<T: Int>(a: T, b: T) -> T {
    a.high(b)
}
op!(MulHi<T: Int> = mul_hi(a: T, b: T) -> T);

#[inline(always)]
pub fn mul_wide<T: Widen>(a: T, b: T) -> T::Wide {
    a.wide(b)
}
op!(MulWide<T: Widen> = mul_wide(a: T, b: T) -> T::Wide);

#[inline(always)]
pub fn mad_lo<T: Int>(a: T, b: T, c: T) -> T {
    a.times(b).plus(c)
}
op!(MadLo<T: Int> = mad_lo(a: T, b: T, c: T) -> T);

#[inline(always)]
pub fn mad_hi<T: Int>(a: T, b: T, c: T) -> T {
    a.high(b).plus(c)
}
op!(MadHi<T: Int> = mad_hi(a: T, b: T, c: T) -> T);

#[inline(always)]
pub fn mad_wide<T: Widen>(a: T, b: T, c: T::Wide) -> T::Wide {
    a.wide(b).plus(c)
}
op!(MadWide<T: Widen> = mad_wide(a: T, b: T, c: T::Wide) -> T::Wide);

/// Only the final addition saturates.
#[inline(always)]
pub fn mad_hi_sat(a: i32, b: i32, c: i32) -> i32 {
    a.high(b).saturating_add(c)
}
op!(MadHiSat = mad_hi_sat(a: i32, b: i32, c: i32) -> i32);

macro_rules! mad_carry {
    ($($part:ident: $cc:ident $cc_op:ident $c:ident $c_op:ident $both:ident $both_op:ident;)*) => {$(
        #[inline(always)]
        pub fn $cc<T: Int>(a: T, b: T, c: T) -> (T, bool) {
            add_cc(a.$part(b), c)
        }
        op!($cc_op<T: Int> = $cc(a: T, b: T, c: T) -> (T, bool));
        #[inline(always)]
        pub fn $c<T: Int>(a: T, b: T, c: T, carry: bool) -> T {
            addc(a.$part(b), c, carry)
        }
        op!($c_op<T: Int> = $c(a: T, b: T, c: T, carry: bool) -> T);
        #[inline(always)]
        pub fn $both<T: Int>(a: T, b: T, c: T, carry: bool) -> (T, bool) {
            addc_cc(a.$part(b), c, carry)
        }
        op!($both_op<T: Int> = $both(a: T, b: T, c: T, carry: bool) -> (T, bool));
    )*};
}
mad_carry! {
    times: mad_lo_cc MadLoCc madc_lo MadcLo madc_lo_cc MadcLoCc;
    high: mad_hi_cc MadHiCc madc_hi MadcHi madc_hi_cc MadcHiCc;
}

#[inline(always)]
pub fn sad<T: Int>(a: T, b: T, c: T) -> T {
    c.plus(if a < b { b.minus(a) } else { a.minus(b) })
}
op!(Sad<T: Int> = sad(a: T, b: T, c: T) -> T);

// ---- mul24, mad24 --------------------------------------------------------------------------------------------------

#[inline(always)]
fn low24_u(a: u32) -> u64 {
    u64::from(a & 0xff_ffff)
}
#[inline(always)]
fn low24_s(a: i32) -> i64 {
    i64::from(a << 8 >> 8)
}
#[inline(always)]
pub fn mul24_lo_u32(a: u32, b: u32) -> u32 {
    (low24_u(a) * low24_u(b)) as u32
}
#[inline(always)]
pub fn mul24_lo_s32(a: i32, b: i32) -> i32 {
    (low24_s(a) * low24_s(b)) as i32
}
/// Bits 47..16 of the product.
#[inline(always)]
pub fn mul24_hi_u32(a: u32, b: u32) -> u32 {
    ((low24_u(a) * low24_u(b)) >> 16) as u32
}
#[inline(always)]
pub fn mul24_hi_s32(a: i32, b: i32) -> i32 {
    ((low24_s(a) * low24_s(b)) >> 16) as i32
}
#[inline(always)]
pub fn mad24_lo_u32(a: u32, b: u32, c: u32) -> u32 {
    mul24_lo_u32(a, b).wrapping_add(c)
}
#[inline(always)]
pub fn mad24_lo_s32(a: i32, b: i32, c: i32) -> i32 {
    mul24_lo_s32(a, b).wrapping_add(c)
}
#[inline(always)]
pub fn mad24_hi_u32(a: u32, b: u32, c: u32) -> u32 {
    mul24_hi_u32(a, b).wrapping_add(c)
}
#[inline(always)]
pub fn mad24_hi_s32(a: i32, b: i32, c: i32) -> i32 {
    mul24_hi_s32(a, b).wrapping_add(c)
}
#[inline(always)]
pub fn mad24_hi_sat(a: i32, b: i32, c: i32) -> i32 {
    mul24_hi_s32(a, b).saturating_add(c)
}
op!(Mul24LoU = mul24_lo_u32(a: u32, b: u32) -> u32);
op!(Mul24LoS = mul24_lo_s32(a: i32, b: i32) -> i32);
op!(Mul24HiU = mul24_hi_u32(a: u32, b: u32) -> u32);
op!(Mul24HiS = mul24_hi_s32(a: i32, b: i32) -> i32);
op!(Mad24LoU = mad24_lo_u32(a: u32, b: u32, c: u32) -> u32);
op!(Mad24LoS = mad24_lo_s32(a: i32, b: i32, c: i32) -> i32);
op!(Mad24HiU = mad24_hi_u32(a: u32, b: u32, c: u32) -> u32);
op!(Mad24HiS = mad24_hi_s32(a: i32, b: i32, c: i32) -> i32);
op!(Mad24HiSat = mad24_hi_sat(a: i32, b: i32, c: i32) -> i32);

// ---- div, rem: by zero gives all ones for both; MIN / -1 is MIN, its remainder 0 -----------------------------------

/// Exact: a quotient of 32-bit integers that is not integral differs from the nearest integer by at least 2^-32 of its
/// value, more than the rounding of the division in `f64`.
#[inline(always)]
pub fn div_u32(a: u32, b: u32) -> u32 {
    let quotient = f64::from(a) / f64::from(if b == 0 { 1 } else { b });
    // SAFETY: finite, not negative, below 2^32.
    let quotient = unsafe { quotient.to_int_unchecked::<i64>() } as u32;
    if b == 0 { !0 } else { quotient }
}
#[inline(always)]
pub fn rem_u32(a: u32, b: u32) -> u32 {
    let remainder = a.wrapping_sub(div_u32(a, b).wrapping_mul(b));
    if b == 0 { !0 } else { remainder }
}
#[inline(always)]
pub fn div_s32(a: i32, b: i32) -> i32 {
    let quotient = f64::from(a) / f64::from(if b == 0 { 1 } else { b });
    // SAFETY: finite, at most 2^31 in magnitude.
    let quotient = unsafe { quotient.to_int_unchecked::<i64>() } as i32;
    if b == 0 { !0 } else { quotient }
}
#[inline(always)]
pub fn rem_s32(a: i32, b: i32) -> i32 {
    let remainder = a.wrapping_sub(div_s32(a, b).wrapping_mul(b));
    if b == 0 { !0 } else { remainder }
}
#[inline(always)]
pub fn div_u16(a: u16, b: u16) -> u16 {
    div_s32(i32::from(a), i32::from(b)) as u16
}
#[inline(always)]
pub fn rem_u16(a: u16, b: u16) -> u16 {
    rem_s32(i32::from(a), i32::from(b)) as u16
}
#[inline(always)]
pub fn div_s16(a: i16, b: i16) -> i16 {
    div_s32(i32::from(a), i32::from(b)) as i16
}
#[inline(always)]
pub fn rem_s16(a: i16, b: i16) -> i16 {
    rem_s32(i32::from(a), i32::from(b)) as i16
}
#[inline(always)]
pub fn div_u64(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(!0)
}
#[inline(always)]
pub fn rem_u64(a: u64, b: u64) -> u64 {
    a.checked_rem(b).unwrap_or(!0)
}
#[inline(always)]
pub fn div_s64(a: i64, b: i64) -> i64 {
    if b == 0 { !0 } else { a.wrapping_div(b) }
}
#[inline(always)]
pub fn rem_s64(a: i64, b: i64) -> i64 {
    if b == 0 { !0 } else { a.wrapping_rem(b) }
}
#[inline(always)]
pub fn div<T: Int>(a: T, b: T) -> T {
    a.quotient(b)
}
op!(Div<T: Int> = div(a: T, b: T) -> T);
#[inline(always)]
pub fn rem<T: Int>(a: T, b: T) -> T {
    a.remainder(b)
}
op!(Rem<T: Int> = rem(a: T, b: T) -> T);

// ---- abs, neg, min, max --------------------------------------------------------------------------------------------

#[inline(always)]
pub fn neg<T: Int>(a: T) -> T {
    T::default().minus(a)
}
op!(Neg<T: Int> = neg(a: T) -> T);
#[inline(always)]
pub fn abs<T: Int>(a: T) -> T {
    if a < T::default() { neg(a) } else { a }
}
op!(Abs<T: Int> = abs(a: T) -> T);
#[inline(always)]
pub fn min<T: Int>(a: T, b: T) -> T {
    if a < b { a } else { b }
}
op!(Min<T: Int> = min(a: T, b: T) -> T);
#[inline(always)]
pub fn max<T: Int>(a: T, b: T) -> T {
    if a < b { b } else { a }
}
op!(Max<T: Int> = max(a: T, b: T) -> T);
#[inline(always)]
pub fn min_relu<T: Int>(a: T, b: T) -> T {
    max(min(a, b), T::default())
}
op!(MinRelu<T: Int> = min_relu(a: T, b: T) -> T);
#[inline(always)]
pub fn max_relu<T: Int>(a: T, b: T) -> T {
    max(max(a, b), T::default())
}
op!(MaxRelu<T: Int> = max_relu(a: T, b: T) -> T);

/// Applies a function to both halves, or to all four bytes.
macro_rules! packed {
    ($($name:ident $op:ident = |$a:ident, $b:ident: $t:ident| $body:expr;)*) => {$(
        #[inline(always)]
        pub fn $name(a: u32, b: u32) -> u32 {
            let mut packed = 0;
            let mut at = 0;
            while at < 32 {
                let ($a, $b) = ((a >> at) as $t, (b >> at) as $t);
                let part: $t = $body;
                packed |= (part as u32 & (u32::MAX >> (32 - $t::BITS))) << at;
                at += $t::BITS;
            }
            packed
        }
        op!($op = $name(a: u32, b: u32) -> u32);
    )*};
}
packed! {
    add_x2 AddX2 = |a, b: u16| a.wrapping_add(b);
    sub_x2 SubX2 = |a, b: u16| a.wrapping_sub(b);
    add_sat_u16x2 AddSatU16x2 = |a, b: u16| a.saturating_add(b);
    add_sat_s16x2 AddSatS16x2 = |a, b: i16| a.saturating_add(b);
    min_u16x2 MinU16x2 = |a, b: u16| a.min(b);
    min_s16x2 MinS16x2 = |a, b: i16| a.min(b);
    max_u16x2 MaxU16x2 = |a, b: u16| a.max(b);
    max_s16x2 MaxS16x2 = |a, b: i16| a.max(b);
    min_relu_s16x2 MinReluS16x2 = |a, b: i16| a.min(b).max(0);
    max_relu_s16x2 MaxReluS16x2 = |a, b: i16| a.max(b).max(0);
    add_x4 AddX4 = |a, b: u8| a.wrapping_add(b);
    sub_x4 SubX4 = |a, b: u8| a.wrapping_sub(b);
    add_sat_u8x4 AddSatU8x4 = |a, b: u8| a.saturating_add(b);
    add_sat_s8x4 AddSatS8x4 = |a, b: i8| a.saturating_add(b);
    sub_sat_u8x4 SubSatU8x4 = |a, b: u8| a.saturating_sub(b);
    sub_sat_s8x4 SubSatS8x4 = |a, b: i8| a.saturating_sub(b);
    min_u8x4 MinU8x4 = |a, b: u8| a.min(b);
    min_s8x4 MinS8x4 = |a, b: i8| a.min(b);
    max_u8x4 MaxU8x4 = |a, b: u8| a.max(b);
    max_s8x4 MaxS8x4 = |a, b: i8| a.max(b);
    min_relu_s8x4 MinReluS8x4 = |a, b: i8| a.min(b).max(0);
    max_relu_s8x4 MaxReluS8x4 = |a, b: i8| a.max(b).max(0);
}
#[inline(always)]
pub fn neg_x4(a: u32) -> u32 {
    sub_x4(0, a)
}
op!(NegX4 = neg_x4(a: u32) -> u32);

// ---- bits ----------------------------------------------------------------------------------------------------------

macro_rules! counts {
    ($($ty:ident $signed:ident $popc:ident $clz:ident $brev:ident $bfind_u:ident $bfind_s:ident $bfi:ident $bfe_u:ident $bfe_s:ident;)*) => {$(
        #[inline(always)]
        pub fn $popc(a: $ty) -> u32 {
            a.count_ones()
        }
        #[inline(always)]
        pub fn $clz(a: $ty) -> u32 {
            a.leading_zeros()
        }
        #[inline(always)]
        pub fn $brev(a: $ty) -> $ty {
            a.reverse_bits()
        }
        /// The place of the highest set bit, or its distance from the top; all ones if there is none.
        #[inline(always)]
        pub fn $bfind_u<const SHIFTAMT: bool>(a: $ty) -> u32 {
            let zeros = a.leading_zeros();
            if a == 0 {
                !0
            } else if SHIFTAMT {
                zeros
            } else {
                $ty::BITS - 1 - zeros
            }
        }
        /// The highest bit that differs from the sign.
        #[inline(always)]
        pub fn $bfind_s<const SHIFTAMT: bool>(a: $signed) -> u32 {
            $bfind_u::<SHIFTAMT>((a ^ (a >> ($ty::BITS - 1))) as $ty)
        }
        /// Copies the low `len` bits of `a` into `b` at `pos`.
        #[inline(always)]
        pub fn $bfi(a: $ty, b: $ty, pos: u32, len: u32) -> $ty {
            let (pos, len) = if $ty::BITS == 32 { (pos & 0xff, len & 0xff) } else { (pos, len) };
            let ones: $ty = if len >= $ty::BITS { !0 } else { ((1 as $ty) << (len & ($ty::BITS - 1))) - 1 };
            let at = pos & ($ty::BITS - 1);
            if pos >= $ty::BITS { b } else { (a & ones) << at | b & !(ones << at) }
        }
        #[inline(always)]
        pub fn $bfe_u(a: $ty, pos: u32, len: u32) -> $ty {
            let (pos, len) = if $ty::BITS == 32 { (pos & 0xff, len & 0xff) } else { (pos, len) };
            let ones: $ty = if len >= $ty::BITS { !0 } else { ((1 as $ty) << (len & ($ty::BITS - 1))) - 1 };
            if pos >= $ty::BITS { 0 } else { a >> (pos & ($ty::BITS - 1)) & ones }
        }
        /// Bits beyond the field are copies of its top bit, or of the operand's where the field passes its end.
        #[inline(always)]
        pub fn $bfe_s(a: $signed, pos: u32, len: u32) -> $signed {
            let (pos, len) = if $ty::BITS == 32 { (pos & 0xff, len & 0xff) } else { (pos, len) };
            let shifted = a >> pos.min($ty::BITS - 1);
            let spare = $ty::BITS - len.min($ty::BITS);
            if len == 0 { 0 } else { shifted << (spare & ($ty::BITS - 1)) >> (spare & ($ty::BITS - 1)) }
        }
    )*};
}
counts! {
    u32 i32 popc_b32 clz_b32 brev_b32 bfind_u32 bfind_s32 bfi_b32 bfe_u32 bfe_s32;
    u64 i64 popc_b64 clz_b64 brev_b64 bfind_u64 bfind_s64 bfi_b64 bfe_u64 bfe_s64;
}
op!(Popc32 = popc_b32(a: u32) -> u32);
op!(Popc64 = popc_b64(a: u64) -> u32);
op!(Clz32 = clz_b32(a: u32) -> u32);
op!(Clz64 = clz_b64(a: u64) -> u32);
op!(Brev32 = brev_b32(a: u32) -> u32);
op!(Brev64 = brev_b64(a: u64) -> u64);
op!(BfindU32[SHIFTAMT] = bfind_u32(a: u32) -> u32);
op!(BfindS32[SHIFTAMT] = bfind_s32(a: i32) -> u32);
op!(BfindU64[SHIFTAMT] = bfind_u64(a: u64) -> u32);
op!(BfindS64[SHIFTAMT] = bfind_s64(a: i64) -> u32);
op!(Bfi32 = bfi_b32(a: u32, b: u32, pos: u32, len: u32) -> u32);
op!(Bfi64 = bfi_b64(a: u64, b: u64, pos: u32, len: u32) -> u64);
op!(BfeU32 = bfe_u32(a: u32, pos: u32, len: u32) -> u32);
op!(BfeS32 = bfe_s32(a: i32, pos: u32, len: u32) -> i32);
op!(BfeU64 = bfe_u64(a: u64, pos: u32, len: u32) -> u64);
op!(BfeS64 = bfe_s64(a: i64, pos: u32, len: u32) -> i64);

/// A mask of `width` ones from bit `start`.
#[inline(always)]
pub fn bmsk<const WRAP: bool>(start: u32, width: u32) -> u32 {
    let (start, width) = if WRAP {
        (start & 31, width & 31)
    } else {
        (start, width.min(32))
    };
    let ones = if width >= 32 { !0 } else { (1 << (width & 31)) - 1 };
    if start >= 32 { 0 } else { ones << (start & 31) }
}
op!(Bmsk[WRAP] = bmsk(start: u32, width: u32) -> u32);

/// Extends the low `bits` bits.
#[inline(always)]
pub fn szext_u32<const WRAP: bool>(a: u32, bits: u32) -> u32 {
    let bits = if WRAP { bits & 31 } else { bits.min(32) };
    let spare = 32 - bits;
    if bits == 0 {
        0
    } else {
        a << (spare & 31) >> (spare & 31)
    }
}
#[inline(always)]
pub fn szext_s32<const WRAP: bool>(a: i32, bits: u32) -> i32 {
    let bits = if WRAP { bits & 31 } else { bits.min(32) };
    let spare = 32 - bits;
    if bits == 0 {
        0
    } else {
        a << (spare & 31) >> (spare & 31)
    }
}
op!(SzextU[WRAP] = szext_u32(a: u32, bits: u32) -> u32);
op!(SzextS[WRAP] = szext_s32(a: i32, bits: u32) -> i32);

/// The `offset`-th set bit of `mask` from `base` on, upwards if positive, downwards if negative; all ones if none.
#[inline(always)]
pub fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    // A base beyond the word is undefined; the hardware looks at its low bits.
    let base = base & 31;
    if offset == 0 {
        return if mask >> base & 1 != 0 { base } else { !0 };
    }
    let mut left = if offset > 0 {
        mask >> base << base
    } else {
        mask << (31 - base) >> (31 - base)
    };
    if left.count_ones() < offset.unsigned_abs() {
        return !0;
    }
    for _ in 1..offset.unsigned_abs() {
        left &= if offset > 0 {
            left - 1
        } else {
            !(0x8000_0000 >> left.leading_zeros())
        };
    }
    if offset > 0 {
        left.trailing_zeros()
    } else {
        31 - left.leading_zeros()
    }
}
op!(Fns = fns(mask: u32, base: u32, offset: i32) -> u32);

// ---- dot products --------------------------------------------------------------------------------------------------

#[inline(always)]
fn byte<const SIGNED: bool>(word: u32, i: u32) -> i32 {
    let byte = (word >> (8 * i)) as u8;
    if SIGNED { i32::from(byte as i8) } else { i32::from(byte) }
}
#[inline(always)]
fn half<const SIGNED: bool>(word: u32, i: u32) -> i32 {
    let half = (word >> (16 * i)) as u16;
    if SIGNED {
        i32::from(half as i16)
    } else {
        i32::from(half)
    }
}
/// Four byte products added to `c`, modulo 2^32.
#[inline(always)]
pub fn dp4a<const A: bool, const B: bool>(a: u32, b: u32, c: u32) -> u32 {
    let mut sum = c;
    for i in 0..4 {
        sum = sum.wrapping_add(byte::<A>(a, i).wrapping_mul(byte::<B>(b, i)) as u32);
    }
    sum
}
op!(Dp4a[A, B] = dp4a(a: u32, b: u32, c: u32) -> u32);
/// Both halves of `a` times the low or high two bytes of `b`, added to `c`.
#[inline(always)]
pub fn dp2a<const A: bool, const B: bool, const HI: bool>(a: u32, b: u32, c: u32) -> u32 {
    let mut sum = c;
    for i in 0..2 {
        let b = byte::<B>(b, i + if HI { 2 } else { 0 });
        sum = sum.wrapping_add(half::<A>(a, i).wrapping_mul(b) as u32);
    }
    sum
}
op!(Dp2a[A, B, HI] = dp2a(a: u32, b: u32, c: u32) -> u32);
