//! Sixteen lanes of `f32` or `i32`, for the two loops over products that all time goes into: what the compiler makes of
//! plain loops there depends on its mood. A closure is compiled without the level's features, unless it happens to be
//! inlined in time: loops it is.

use super::convert;
use crate::isa::simd::{Avx2, Avx512, Baseline, Cpu};

/// A level's operations on sixteen lanes.
///
/// # Safety
/// Of all functions: the caller is compiled with the level's features.
pub trait Vector: Cpu {
    type Floats: Copy;
    type Ints: Copy;
    unsafe fn floats(lanes: &[f32; 16]) -> Self::Floats;
    unsafe fn ints(lanes: &[i32; 16]) -> Self::Ints;
    unsafe fn float(lane: f32) -> Self::Floats;
    unsafe fn int(lane: i32) -> Self::Ints;
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// Towards zero; lanes are in the range of `i32`.
    unsafe fn truncate(a: Self::Floats) -> Self::Ints;
    unsafe fn add(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    unsafe fn max(a: Self::Ints, b: Self::Ints) -> Self::Ints;
    /// `2^a`, for exponents of normal numbers that have the bias of `f32` already.
    unsafe fn power(a: Self::Ints) -> Self::Floats;
    unsafe fn store(a: Self::Ints, lanes: &mut [i32; 16]);
    /// `sum + truncate(c · 2^power)`, times `2^-power`, as exact as `f64` is, which suffices for numbers below 2^52.
    /// Infinities and NaN of `c` count as zero.
    #[inline(always)]
    unsafe fn close(sums: &[f64; 16], c: &[f32; 16], powers: &[i32; 16]) -> [f64; 16] {
        let mut results = [0.0; 16];
        for i in 0..16 {
            let finite = if c[i].is_finite() { c[i] } else { 0.0 };
            let term = f64::from(finite) * convert::power(powers[i]);
            // SAFETY: callers align terms so that they are in the range of `i32`.
            let sum = sums[i] + f64::from(unsafe { term.to_int_unchecked::<i32>() });
            results[i] = sum * convert::power(-powers[i]);
        }
        results
    }
    /// [`convert::to_f32`] of each lane.
    #[inline(always)]
    unsafe fn to_f32(sums: &[f64; 16]) -> [f32; 16] {
        let mut results = [0.0; 16];
        for i in 0..16 {
            results[i] = convert::to_f32(sums[i]);
        }
        results
    }
}

macro_rules! vector {
    ($cpu:ident: $count:literal of $each:literal, $floats:ty, $ints:ty, $load_floats:path, $load_ints:path, $float:path,
     $int:path, $mul:path, $truncate:path, $add:path, $max:path, $shift:ident, $cast:path, $store:path; $($more:item)*) => {
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
            unsafe fn ints(lanes: &[i32; 16]) -> Self::Ints {
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
            unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats {
                let mut results = a;
                for i in 0..$count {
                    // SAFETY: the caller has the features.
                    results[i] = unsafe { $mul(a[i], b[i]) };
                }
                results
            }
            #[inline(always)]
            unsafe fn truncate(a: Self::Floats) -> Self::Ints {
                // SAFETY: the caller has the features.
                unsafe {
                    let mut results = [$truncate(a[0]); $count];
                    for (result, a) in results.iter_mut().zip(a).skip(1) {
                        *result = $truncate(a);
                    }
                    results
                }
            }
            #[inline(always)]
            unsafe fn add(a: Self::Ints, b: Self::Ints) -> Self::Ints {
                let mut results = a;
                for i in 0..$count {
                    // SAFETY: the caller has the features.
                    results[i] = unsafe { $add(a[i], b[i]) };
                }
                results
            }
            #[inline(always)]
            unsafe fn max(a: Self::Ints, b: Self::Ints) -> Self::Ints {
                let mut results = a;
                for i in 0..$count {
                    // SAFETY: the caller has the features.
                    results[i] = unsafe { $max(a[i], b[i]) };
                }
                results
            }
            #[inline(always)]
            unsafe fn power(a: Self::Ints) -> Self::Floats {
                // SAFETY: the caller has the features.
                unsafe {
                    let mut results = [$cast($shift::<23>(a[0])); $count];
                    for (result, a) in results.iter_mut().zip(a).skip(1) {
                        *result = $cast($shift::<23>(a));
                    }
                    results
                }
            }
            #[inline(always)]
            unsafe fn store(a: Self::Ints, lanes: &mut [i32; 16]) {
                for (i, a) in a.into_iter().enumerate() {
                    // SAFETY: the vectors together are the array; the caller has the features.
                    unsafe { $store(lanes.as_mut_ptr().add(i * $each).cast(), a) };
                }
            }
            $($more)*
        }
    };
}

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

vector!(Avx512: 1 of 16, __m512, __m512i, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_set1_ps, _mm512_set1_epi32,
_mm512_mul_ps, _mm512_cvttps_epi32, _mm512_add_epi32,  _mm512_max_epi32, _mm512_slli_epi32,
_mm512_castsi512_ps, _mm512_storeu_si512;
#[inline(always)]
unsafe fn close(sums: &[f64; 16], c: &[f32; 16], powers: &[i32; 16]) -> [f64; 16] {
    let mut results = [0.0; 16];
    // SAFETY: the vectors together are the arrays; the caller has AVX-512.
    unsafe {
        let c = _mm512_loadu_ps(c.as_ptr());
        let finite = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(_mm512_abs_ps(c), _mm512_set1_ps(f32::INFINITY));
        let mut c_halves = [0.0; 16];
        _mm512_storeu_ps(c_halves.as_mut_ptr(), _mm512_maskz_mov_ps(finite, c));
        for i in [0, 8] {
            let c = _mm512_cvtps_pd(_mm256_loadu_ps(c_halves.as_ptr().add(i)));
            let powers = _mm512_cvtepi32_pd(_mm256_loadu_si256(powers.as_ptr().add(i).cast()));
            let term = _mm512_scalef_pd(c, powers);
            let term = _mm512_roundscale_pd::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(term);
            let sum = _mm512_add_pd(_mm512_loadu_pd(sums.as_ptr().add(i)), term);
            let sum = _mm512_scalef_pd(sum, _mm512_sub_pd(_mm512_setzero_pd(), powers));
            _mm512_storeu_pd(results.as_mut_ptr().add(i), sum);
        }
    }
    results
}
#[inline(always)]
unsafe fn to_f32(sums: &[f64; 16]) -> [f32; 16] {
    let mut results = [0.0; 16];
    // SAFETY: the vectors together are the arrays; the caller has AVX-512.
    unsafe {
        for i in [0, 8] {
            let sum = _mm512_loadu_pd(sums.as_ptr().add(i));
            // Towards zero numbers beyond the range would become the largest; infinity stays.
            let beyond = _mm512_cmp_pd_mask::<_CMP_GE_OQ>(_mm512_abs_pd(sum), _mm512_set1_pd(convert::power(128)));
            let sum = _mm512_mask_mul_pd(sum, beyond, sum, _mm512_set1_pd(f64::MAX));
            let narrow = _mm512_cvt_roundpd_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(sum);
            _mm256_storeu_ps(results.as_mut_ptr().add(i), narrow);
        }
    }
    results
});
vector!(Avx2: 2 of 8, __m256, __m256i, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_set1_ps, _mm256_set1_epi32,
    _mm256_mul_ps, _mm256_cvttps_epi32, _mm256_add_epi32,  _mm256_max_epi32, _mm256_slli_epi32,
    _mm256_castsi256_ps, _mm256_storeu_si256;);
vector!(Baseline: 4 of 4, __m128, __m128i, _mm_loadu_ps, _mm_loadu_si128, _mm_set1_ps, _mm_set1_epi32,
    _mm_mul_ps, _mm_cvttps_epi32, _mm_add_epi32,  max_sse2, _mm_slli_epi32,
    _mm_castsi128_ps, _mm_storeu_si128;);

/// SSE2 has a maximum of 16 bits alone.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn max_sse2(a: __m128i, b: __m128i) -> __m128i {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let greater = _mm_cmpgt_epi32(a, b);
        _mm_or_si128(_mm_and_si128(greater, a), _mm_andnot_si128(greater, b))
    }
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! plain {
    ($($cpu:ident)*) => {$(
        impl Vector for $cpu {
            type Floats = [f32; 16];
            type Ints = [i32; 16];
            #[inline(always)]
            unsafe fn floats(lanes: &[f32; 16]) -> [f32; 16] {
                *lanes
            }
            #[inline(always)]
            unsafe fn ints(lanes: &[i32; 16]) -> [i32; 16] {
                *lanes
            }
            #[inline(always)]
            unsafe fn float(lane: f32) -> [f32; 16] {
                [lane; 16]
            }
            #[inline(always)]
            unsafe fn int(lane: i32) -> [i32; 16] {
                [lane; 16]
            }
            #[inline(always)]
            unsafe fn mul(a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
                std::array::from_fn(|i| a[i] * b[i])
            }
            #[inline(always)]
            unsafe fn truncate(a: [f32; 16]) -> [i32; 16] {
                a.map(|a| a as i32)
            }
            #[inline(always)]
            unsafe fn add(a: [i32; 16], b: [i32; 16]) -> [i32; 16] {
                std::array::from_fn(|i| a[i].wrapping_add(b[i]))
            }
            #[inline(always)]
            unsafe fn max(a: [i32; 16], b: [i32; 16]) -> [i32; 16] {
                std::array::from_fn(|i| a[i].max(b[i]))
            }
            #[inline(always)]
            unsafe fn power(a: [i32; 16]) -> [f32; 16] {
                a.map(|a| f32::from_bits((a as u32) << 23))
            }
            #[inline(always)]
            unsafe fn store(a: [i32; 16], lanes: &mut [i32; 16]) {
                *lanes = a;
            }
        }
    )*};
}
#[cfg(not(target_arch = "x86_64"))]
plain!(Baseline Avx2 Avx512);
