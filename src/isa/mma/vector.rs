//! Sixteen lanes of `f32` or `i32`, or sixteen pairs of `i16`, for the loops over products that all time goes into: what the
//! compiler makes of plain loops there depends on its mood. A closure is compiled without the level's features, unless it
//! happens to be inlined in time: loops it is.

use super::convert;
use crate::isa::simd::{Avx2, Avx512, Baseline, Cpu};

/// A level's operations on sixteen lanes.
///
/// # Safety
/// Of all functions: the caller is compiled with the level's features.
pub trait Vector: Cpu {
    type Floats: Copy;
    type Ints: Copy;
    type Doubles: Copy;
    unsafe fn floats(lanes: &[f32; 16]) -> Self::Floats;
    unsafe fn ints(lanes: &[u32; 16]) -> Self::Ints;
    unsafe fn float(lane: f32) -> Self::Floats;
    unsafe fn int(lane: i32) -> Self::Ints;
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// Towards zero; lanes are in the range of `i32`.
    unsafe fn truncate(a: Self::Floats) -> Self::Ints;
    unsafe fn bits(a: Self::Floats) -> Self::Ints;
    unsafe fn of_bits(a: Self::Ints) -> Self::Floats;
    unsafe fn add(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    unsafe fn sub(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    unsafe fn and(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    unsafe fn max(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    unsafe fn min(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    unsafe fn left<const BY: i32>(a: Self::Ints) -> Self::Ints;
    unsafe fn right<const BY: i32>(a: Self::Ints) -> Self::Ints;
    /// With copies of the sign.
    unsafe fn down<const BY: i32>(a: Self::Ints) -> Self::Ints;
    /// `yes` in lanes where two are equal.
    unsafe fn if_equal(a: Self::Ints, b: Self::Ints, yes: Self::Ints, no: Self::Ints) -> Self::Ints;
    /// Of each half of a lane.
    unsafe fn add_halves(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// Of each half of a lane, as a signed number.
    unsafe fn max_halves(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    unsafe fn min_halves(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    unsafe fn left_halves<const BY: i32>(a: Self::Ints) -> Self::Ints;
    unsafe fn right_halves<const BY: i32>(a: Self::Ints) -> Self::Ints;
    /// With copies of the sign.
    unsafe fn down_halves<const BY: i32>(a: Self::Ints) -> Self::Ints;
    /// The sum of the products of the low halves and of the high ones, as signed numbers.
    unsafe fn multiply_halves(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// `yes` in halves of lanes where two are equal.
    unsafe fn if_halves_equal(a: Self::Ints, b: Self::Ints, yes: Self::Ints, no: Self::Ints) -> Self::Ints;
    unsafe fn store(a: Self::Ints, lanes: &mut [u32; 16]);
    /// The values of the low halves of lanes, as `f16`, and of the high ones.
    unsafe fn widen(halves: Self::Ints) -> [Self::Floats; 2];
    unsafe fn zero() -> Self::Doubles;
    /// `sum + term`
    unsafe fn plus(sum: Self::Doubles, term: Self::Ints) -> Self::Doubles;
    /// `sum + truncate(c · 2^power)`, times `2^-power`, as exact as `f64` is, which suffices for numbers below 2^52.
    /// Infinities and NaN of `c` count as zero.
    unsafe fn close(sum: Self::Doubles, c: Self::Floats, powers: Self::Ints) -> Self::Doubles;
    /// [`convert::to_f32`] of each lane.
    unsafe fn to_f32(sum: Self::Doubles) -> Self::Floats;
    unsafe fn store_doubles(a: Self::Doubles, lanes: &mut [f64; 16]);
    /// [`Vector::quick`] is there.
    const QUICK: bool = false;
    /// What `plus`, `close` and `to_f32` make of a sum in units of 2^(exponent - fraction), by way of `i32` and `f32`, and a bit for each
    /// lane for which that is not certain.
    #[inline(always)]
    unsafe fn quick(_sum: Self::Ints, c: Self::Floats, _exponents: Self::Ints, _fraction: i32) -> (Self::Floats, u16) {
        (c, u16::MAX)
    }
    #[inline(always)]
    unsafe fn store_floats(a: Self::Floats, lanes: &mut [f32; 16]) {
        let mut bits = [0; 16];
        // SAFETY: the caller's.
        unsafe { Self::store(Self::bits(a), &mut bits) };
        for (lane, bits) in lanes.iter_mut().zip(bits) {
            *lane = f32::from_bits(bits);
        }
    }
}

/// Operations on each vector of an array of them.
macro_rules! each {
    ($count:literal: $($name:ident $(<$by:ident>)? ($($of:ident),+) -> $result:ident = $with:ident;)*) => {$(
        #[inline(always)]
        unsafe fn $name$(<const $by: i32>)?($($of: each!(@ $of)),+) -> Self::$result {
            // SAFETY: the caller has the features.
            unsafe {
                let mut results = [$with$(::<$by>)?($($of[0]),+); $count];
                for (i, result) in results.iter_mut().enumerate().skip(1) {
                    *result = $with$(::<$by>)?($($of[i]),+);
                }
                results
            }
        }
    )*};
    (@ a) => { Self::Ints };
    (@ b) => { Self::Ints };
    (@ yes) => { Self::Ints };
    (@ no) => { Self::Ints };
    (@ x) => { Self::Floats };
    (@ y) => { Self::Floats };
}

macro_rules! vector {
    ($cpu:ident: $count:literal of $each:literal, $floats:ty, $ints:ty, $load_floats:path, $load_ints:path, $float:path,
     $int:path, $store:path; { $($operations:tt)* } $($more:item)*) => {
        #[cfg(target_arch = "x86_64")]
        impl Vector for $cpu {
            type Floats = [$floats; $count];
            type Ints = [$ints; $count];
            #[inline(always)]
            unsafe fn floats(lanes: &[f32; 16]) -> Self::Floats {
                // SAFETY: the vectors together are the array; the caller has the features.
                unsafe {
                    let mut vectors = [$load_floats(lanes.as_ptr()); $count];
                    for (i, vector) in vectors.iter_mut().enumerate().skip(1) {
                        *vector = $load_floats(lanes.as_ptr().add(i * $each));
                    }
                    vectors
                }
            }
            #[inline(always)]
            unsafe fn ints(lanes: &[u32; 16]) -> Self::Ints {
                // SAFETY: the vectors together are the array; the caller has the features.
                unsafe {
                    let mut vectors = [$load_ints(lanes.as_ptr().cast()); $count];
                    for (i, vector) in vectors.iter_mut().enumerate().skip(1) {
                        *vector = $load_ints(lanes.as_ptr().add(i * $each).cast());
                    }
                    vectors
                }
            }
            #[inline(always)]
            unsafe fn float(lane: f32) -> Self::Floats {
                // SAFETY: the caller has the features.
                [unsafe { $float(lane) }; $count]
            }
            #[inline(always)]
            unsafe fn int(lane: i32) -> Self::Ints {
                // SAFETY: the caller has the features.
                [unsafe { $int(lane) }; $count]
            }
            #[inline(always)]
            unsafe fn store(a: Self::Ints, lanes: &mut [u32; 16]) {
                for (i, a) in a.into_iter().enumerate() {
                    // SAFETY: the vectors together are the array; the caller has the features.
                    unsafe { $store(lanes.as_mut_ptr().add(i * $each).cast(), a) };
                }
            }
            each! { $count: $($operations)* }
            $($more)*
        }
    };
}

/// The operations on numbers of 64 bits, as plain loops.
macro_rules! doubles {
    () => {
        type Doubles = [f64; 16];
        #[inline(always)]
        unsafe fn zero() -> Self::Doubles {
            [0.0; 16]
        }
        #[inline(always)]
        unsafe fn plus(mut sum: Self::Doubles, term: Self::Ints) -> Self::Doubles {
            let mut terms = [0; 16];
            // SAFETY: the caller's.
            unsafe { Self::store(term, &mut terms) };
            for i in 0..16 {
                sum[i] += f64::from(terms[i] as i32);
            }
            sum
        }
        #[inline(always)]
        unsafe fn close(sum: Self::Doubles, c: Self::Floats, powers: Self::Ints) -> Self::Doubles {
            let (mut values, mut exponents) = ([0.0; 16], [0; 16]);
            // SAFETY: the caller's.
            unsafe {
                Self::store_floats(c, &mut values);
                Self::store(powers, &mut exponents);
            }
            let mut results = [0.0; 16];
            for i in 0..16 {
                let finite = if values[i].is_finite() { values[i] } else { 0.0 };
                let term = f64::from(finite) * convert::power(exponents[i] as i32);
                // SAFETY: callers align terms so that they are in the range of `i32`.
                let sum = sum[i] + f64::from(unsafe { term.to_int_unchecked::<i32>() });
                results[i] = sum * convert::power(-(exponents[i] as i32));
            }
            results
        }
        #[inline(always)]
        unsafe fn to_f32(sum: Self::Doubles) -> Self::Floats {
            let mut results = [0.0; 16];
            for i in 0..16 {
                results[i] = convert::to_f32(sum[i]);
            }
            // SAFETY: the caller's.
            unsafe { Self::floats(&results) }
        }
        #[inline(always)]
        unsafe fn store_doubles(a: Self::Doubles, lanes: &mut [f64; 16]) {
            *lanes = a;
        }
    };
}

/// [`Vector::widen`] by way of memory.
macro_rules! widen {
    () => {
        #[inline(always)]
        unsafe fn widen(halves: Self::Ints) -> [Self::Floats; 2] {
            let (mut words, mut apart) = ([0; 16], [0; 32]);
            // SAFETY: the caller's.
            unsafe { Self::store(halves, &mut words) };
            for i in 0..16 {
                apart[i] = words[i] as u16;
                apart[16 + i] = (words[i] >> 16) as u16;
            }
            // SAFETY: the caller's.
            let values = unsafe { Self::widen_f16(&apart) };
            let [low, high] = values.as_chunks().0 else {
                unreachable!("two runs of sixteen")
            };
            // SAFETY: the caller's.
            unsafe { [Self::floats(low), Self::floats(high)] }
        }
    };
}

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

vector!(Avx512: 1 of 16, __m512, __m512i, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_set1_ps, _mm512_set1_epi32,
_mm512_storeu_si512; {
    mul(x, y) -> Floats = _mm512_mul_ps;
    truncate(x) -> Ints = _mm512_cvttps_epi32;
    bits(x) -> Ints = _mm512_castps_si512;
    of_bits(a) -> Floats = _mm512_castsi512_ps;
    add(a, b) -> Ints = _mm512_add_epi32;
    sub(a, b) -> Ints = _mm512_sub_epi32;
    and(a, b) -> Ints = _mm512_and_si512;
    max(a, b) -> Ints = _mm512_max_epi32;
    min(a, b) -> Ints = _mm512_min_epi32;
    left<BY>(a) -> Ints = left_avx512;
    right<BY>(a) -> Ints = right_avx512;
    down<BY>(a) -> Ints = down_avx512;
    if_equal(a, b, yes, no) -> Ints = if_equal_avx512;
    add_halves(a, b) -> Ints = _mm512_add_epi16;
    max_halves(a, b) -> Ints = _mm512_max_epi16;
    min_halves(a, b) -> Ints = _mm512_min_epi16;
    left_halves<BY>(a) -> Ints = left_halves_avx512;
    right_halves<BY>(a) -> Ints = right_halves_avx512;
    down_halves<BY>(a) -> Ints = down_halves_avx512;
    multiply_halves(a, b) -> Ints = _mm512_madd_epi16;
    if_halves_equal(a, b, yes, no) -> Ints = if_halves_equal_avx512;
}
type Doubles = [__m512d; 2];
const QUICK: bool = true;
#[inline(always)]
unsafe fn quick([sum]: Self::Ints, [c]: Self::Floats, [exponents]: Self::Ints, fraction: i32) -> (Self::Floats, u16) {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let powers = _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_set1_epi32(fraction), exponents));
        let total = _mm512_add_epi32(sum, _mm512_cvttps_epi32(_mm512_scalef_ps(c, powers)));
        let cut = _mm512_cvt_roundepi32_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(total);
        let result = _mm512_scalef_ps(cut, _mm512_sub_ps(_mm512_setzero_ps(), powers));
        // A sum to which a term of less than 2^27 may be added, and exponents with which the result is neither infinite nor subnormal, or
        // nothing to convert; infinities and NaN of `c` have a larger one.
        let large = _mm512_cmpge_epu32_mask(_mm512_abs_epi32(sum), _mm512_set1_epi32(0x7800_0000));
        let low = _mm512_add_epi32(exponents, _mm512_set1_epi32(95));
        let some = _mm512_test_epi32_mask(total, total);
        let far = _mm512_mask_cmpgt_epu32_mask(some, low, _mm512_set1_epi32(190));
        ([result], large | far)
    }
}
#[inline(always)]
unsafe fn widen([halves]: Self::Ints) -> [Self::Floats; 2] {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let (low, high) = (
            _mm512_cvtepi32_epi16(halves),
            _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(halves)),
        );
        [[_mm512_cvtph_ps(low)], [_mm512_cvtph_ps(high)]]
    }
}
#[inline(always)]
unsafe fn zero() -> Self::Doubles {
    // SAFETY: the caller has AVX-512.
    unsafe { [_mm512_setzero_pd(); 2] }
}
#[inline(always)]
unsafe fn plus([low, high]: Self::Doubles, [term]: Self::Ints) -> Self::Doubles {
    // SAFETY: the caller has AVX-512.
    unsafe {
        [
            _mm512_add_pd(low, _mm512_cvtepi32_pd(_mm512_castsi512_si256(term))),
            _mm512_add_pd(high, _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64::<1>(term))),
        ]
    }
}
#[inline(always)]
unsafe fn close(sum: Self::Doubles, [c]: Self::Floats, [powers]: Self::Ints) -> Self::Doubles {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let finite = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(_mm512_abs_ps(c), _mm512_set1_ps(f32::INFINITY));
        let c = _mm512_castps_pd(_mm512_maskz_mov_ps(finite, c));
        let mut results = sum;
        let halves = [
            (_mm512_castpd512_pd256(c), _mm512_castsi512_si256(powers)),
            (_mm512_extractf64x4_pd::<1>(c), _mm512_extracti64x4_epi64::<1>(powers)),
        ];
        for (i, (c, powers)) in halves.into_iter().enumerate() {
            let c = _mm512_cvtps_pd(_mm256_castpd_ps(c));
            let powers = _mm512_cvtepi32_pd(powers);
            let term = _mm512_scalef_pd(c, powers);
            let term = _mm512_roundscale_pd::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(term);
            let sum = _mm512_add_pd(sum[i], term);
            results[i] = _mm512_scalef_pd(sum, _mm512_sub_pd(_mm512_setzero_pd(), powers));
        }
        results
    }
}
#[inline(always)]
unsafe fn to_f32(sum: Self::Doubles) -> Self::Floats {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let mut narrow = [_mm256_setzero_pd(); 2];
        for i in 0..2 {
            // Towards zero numbers beyond the range would become the largest; infinity stays.
            let beyond = _mm512_cmp_pd_mask::<_CMP_GE_OQ>(_mm512_abs_pd(sum[i]), _mm512_set1_pd(convert::power(128)));
            let sum = _mm512_mask_mul_pd(sum[i], beyond, sum[i], _mm512_set1_pd(f64::MAX));
            let cut = _mm512_cvt_roundpd_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(sum);
            narrow[i] = _mm256_castps_pd(cut);
        }
        let both = _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(narrow[0]), narrow[1]);
        [_mm512_castpd_ps(both)]
    }
}
#[inline(always)]
unsafe fn store_doubles(a: Self::Doubles, lanes: &mut [f64; 16]) {
    // SAFETY: the vectors together are the array; the caller has AVX-512.
    unsafe {
        _mm512_storeu_pd(lanes.as_mut_ptr(), a[0]);
        _mm512_storeu_pd(lanes.as_mut_ptr().add(8), a[1]);
    }
});
vector!(Avx2: 2 of 8, __m256, __m256i, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_set1_ps, _mm256_set1_epi32,
_mm256_storeu_si256; {
    mul(x, y) -> Floats = _mm256_mul_ps;
    truncate(x) -> Ints = _mm256_cvttps_epi32;
    bits(x) -> Ints = _mm256_castps_si256;
    of_bits(a) -> Floats = _mm256_castsi256_ps;
    add(a, b) -> Ints = _mm256_add_epi32;
    sub(a, b) -> Ints = _mm256_sub_epi32;
    and(a, b) -> Ints = _mm256_and_si256;
    max(a, b) -> Ints = _mm256_max_epi32;
    min(a, b) -> Ints = _mm256_min_epi32;
    left<BY>(a) -> Ints = _mm256_slli_epi32;
    right<BY>(a) -> Ints = _mm256_srli_epi32;
    down<BY>(a) -> Ints = _mm256_srai_epi32;
    if_equal(a, b, yes, no) -> Ints = if_equal_avx2;
    add_halves(a, b) -> Ints = _mm256_add_epi16;
    max_halves(a, b) -> Ints = _mm256_max_epi16;
    min_halves(a, b) -> Ints = _mm256_min_epi16;
    left_halves<BY>(a) -> Ints = _mm256_slli_epi16;
    right_halves<BY>(a) -> Ints = _mm256_srli_epi16;
    down_halves<BY>(a) -> Ints = _mm256_srai_epi16;
    multiply_halves(a, b) -> Ints = _mm256_madd_epi16;
    if_halves_equal(a, b, yes, no) -> Ints = if_halves_equal_avx2;
}
widen!();
doubles!(););
vector!(Baseline: 4 of 4, __m128, __m128i, _mm_loadu_ps, _mm_loadu_si128, _mm_set1_ps, _mm_set1_epi32,
_mm_storeu_si128; {
    mul(x, y) -> Floats = _mm_mul_ps;
    truncate(x) -> Ints = _mm_cvttps_epi32;
    bits(x) -> Ints = _mm_castps_si128;
    of_bits(a) -> Floats = _mm_castsi128_ps;
    add(a, b) -> Ints = _mm_add_epi32;
    sub(a, b) -> Ints = _mm_sub_epi32;
    and(a, b) -> Ints = _mm_and_si128;
    max(a, b) -> Ints = max_sse2;
    min(a, b) -> Ints = min_sse2;
    left<BY>(a) -> Ints = _mm_slli_epi32;
    right<BY>(a) -> Ints = _mm_srli_epi32;
    down<BY>(a) -> Ints = _mm_srai_epi32;
    if_equal(a, b, yes, no) -> Ints = if_equal_sse2;
    add_halves(a, b) -> Ints = _mm_add_epi16;
    max_halves(a, b) -> Ints = _mm_max_epi16;
    min_halves(a, b) -> Ints = _mm_min_epi16;
    left_halves<BY>(a) -> Ints = _mm_slli_epi16;
    right_halves<BY>(a) -> Ints = _mm_srli_epi16;
    down_halves<BY>(a) -> Ints = _mm_srai_epi16;
    multiply_halves(a, b) -> Ints = _mm_madd_epi16;
    if_halves_equal(a, b, yes, no) -> Ints = if_halves_equal_sse2;
}
widen!();
doubles!(););

/// What one instruction does not do, or not with an operand as the others have it.
///
/// # Safety
/// Of all: the caller is compiled with the features that the name says.
#[cfg(target_arch = "x86_64")]
mod more {
    use std::arch::x86_64::*;

    macro_rules! more {
        ($($name:ident $(<$by:ident>)? ($($of:ident),+): $ty:ty = $value:expr;)*) => {$(
            #[inline(always)]
            pub unsafe fn $name$(<const $by: i32>)?($($of: $ty),+) -> $ty {
                // SAFETY: the caller's.
                unsafe { $value }
            }
        )*};
    }

    more! {
        left_avx512<BY>(a): __m512i = _mm512_sll_epi32(a, _mm_cvtsi32_si128(BY));
        right_avx512<BY>(a): __m512i = _mm512_srl_epi32(a, _mm_cvtsi32_si128(BY));
        down_avx512<BY>(a): __m512i = _mm512_sra_epi32(a, _mm_cvtsi32_si128(BY));
        left_halves_avx512<BY>(a): __m512i = _mm512_sll_epi16(a, _mm_cvtsi32_si128(BY));
        right_halves_avx512<BY>(a): __m512i = _mm512_srl_epi16(a, _mm_cvtsi32_si128(BY));
        down_halves_avx512<BY>(a): __m512i = _mm512_sra_epi16(a, _mm_cvtsi32_si128(BY));
        if_equal_avx512(a, b, yes, no): __m512i = _mm512_mask_blend_epi32(_mm512_cmpeq_epi32_mask(a, b), no, yes);
        if_halves_equal_avx512(a, b, yes, no): __m512i = _mm512_mask_blend_epi16(_mm512_cmpeq_epi16_mask(a, b), no, yes);
        if_equal_avx2(a, b, yes, no): __m256i = _mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi32(a, b));
        if_halves_equal_avx2(a, b, yes, no): __m256i = _mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi16(a, b));
        if_equal_sse2(a, b, yes, no): __m128i = blend(_mm_cmpeq_epi32(a, b), yes, no);
        if_halves_equal_sse2(a, b, yes, no): __m128i = blend(_mm_cmpeq_epi16(a, b), yes, no);
        max_sse2(a, b): __m128i = blend(_mm_cmpgt_epi32(a, b), a, b);
        min_sse2(a, b): __m128i = blend(_mm_cmpgt_epi32(a, b), b, a);
        blend(mask, yes, no): __m128i = _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no));
    }
}
#[cfg(target_arch = "x86_64")]
use more::*;

#[cfg(not(target_arch = "x86_64"))]
macro_rules! plain {
    ($($cpu:ident)*) => {$(
        impl Vector for $cpu {
            type Floats = [f32; 16];
            type Ints = [u32; 16];
            #[inline(always)]
            unsafe fn floats(lanes: &[f32; 16]) -> [f32; 16] {
                *lanes
            }
            #[inline(always)]
            unsafe fn ints(lanes: &[u32; 16]) -> [u32; 16] {
                *lanes
            }
            #[inline(always)]
            unsafe fn float(lane: f32) -> [f32; 16] {
                [lane; 16]
            }
            #[inline(always)]
            unsafe fn int(lane: i32) -> [u32; 16] {
                [lane as u32; 16]
            }
            #[inline(always)]
            unsafe fn store(a: [u32; 16], lanes: &mut [u32; 16]) {
                *lanes = a;
            }
            each! { 16:
                mul(x, y) -> Floats = mul;
                truncate(x) -> Ints = truncate;
                bits(x) -> Ints = bits;
                of_bits(a) -> Floats = of_bits;
                add(a, b) -> Ints = add;
                sub(a, b) -> Ints = sub;
                and(a, b) -> Ints = and;
                max(a, b) -> Ints = max;
                min(a, b) -> Ints = min;
                left<BY>(a) -> Ints = left;
                right<BY>(a) -> Ints = right;
                down<BY>(a) -> Ints = down;
                if_equal(a, b, yes, no) -> Ints = if_equal;
                add_halves(a, b) -> Ints = add_halves;
                max_halves(a, b) -> Ints = max_halves;
                min_halves(a, b) -> Ints = min_halves;
                left_halves<BY>(a) -> Ints = left_halves;
                right_halves<BY>(a) -> Ints = right_halves;
                down_halves<BY>(a) -> Ints = down_halves;
                multiply_halves(a, b) -> Ints = multiply_halves;
                if_halves_equal(a, b, yes, no) -> Ints = if_halves_equal;
            }
            widen!();
            doubles!();
        }
    )*};
}
#[cfg(not(target_arch = "x86_64"))]
plain!(Baseline Avx2 Avx512);
#[cfg(not(target_arch = "x86_64"))]
use plain::*;

/// One lane, or both of its halves.
#[cfg(not(target_arch = "x86_64"))]
mod plain {
    fn halves(a: u32, b: u32, of: impl Fn(i16, i16) -> i16) -> u32 {
        let half = |down: u32| u32::from(of((a >> down) as i16, (b >> down) as i16) as u16) << down;
        half(0) | half(16)
    }

    macro_rules! plain {
        ($($name:ident $(<$by:ident>)? ($($of:ident: $ty:ty),+) -> $result:ty = $value:expr;)*) => {$(
            #[inline(always)]
            pub unsafe fn $name$(<const $by: i32>)?($($of: $ty),+) -> $result {
                $value
            }
        )*};
    }

    plain! {
        mul(x: f32, y: f32) -> f32 = x * y;
        truncate(x: f32) -> u32 = x as i32 as u32;
        bits(x: f32) -> u32 = x.to_bits();
        of_bits(a: u32) -> f32 = f32::from_bits(a);
        add(a: u32, b: u32) -> u32 = a.wrapping_add(b);
        sub(a: u32, b: u32) -> u32 = a.wrapping_sub(b);
        and(a: u32, b: u32) -> u32 = a & b;
        max(a: u32, b: u32) -> u32 = (a as i32).max(b as i32) as u32;
        min(a: u32, b: u32) -> u32 = (a as i32).min(b as i32) as u32;
        left<BY>(a: u32) -> u32 = a << BY;
        right<BY>(a: u32) -> u32 = a >> BY;
        down<BY>(a: u32) -> u32 = (a as i32 >> BY) as u32;
        if_equal(a: u32, b: u32, yes: u32, no: u32) -> u32 = if a == b { yes } else { no };
        add_halves(a: u32, b: u32) -> u32 = halves(a, b, i16::wrapping_add);
        max_halves(a: u32, b: u32) -> u32 = halves(a, b, i16::max);
        min_halves(a: u32, b: u32) -> u32 = halves(a, b, i16::min);
        left_halves<BY>(a: u32) -> u32 = halves(a, 0, |a, _| a << BY);
        right_halves<BY>(a: u32) -> u32 = halves(a, 0, |a, _| (a as u16 >> BY) as i16);
        down_halves<BY>(a: u32) -> u32 = halves(a, 0, |a, _| a >> BY);
        multiply_halves(a: u32, b: u32) -> u32 = {
            let product = |down: u32| i32::from((a >> down) as i16) * i32::from((b >> down) as i16);
            product(0).wrapping_add(product(16)) as u32
        };
        if_halves_equal(a: u32, b: u32, yes: u32, no: u32) -> u32 = {
            let half = |down: u32| if (a ^ b) >> down & 0xffff == 0 { yes } else { no } & 0xffff << down;
            half(0) | half(16)
        };
    }
}
