//! Sixteen lanes of `f32` or `i32`, for the two loops over products that all time goes into: what the compiler makes of
//! plain loops there depends on its mood.

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
}

macro_rules! vector {
    ($cpu:ident: $count:literal of $each:literal, $floats:ty, $ints:ty, $load_floats:path, $load_ints:path, $float:path,
     $int:path, $mul:path, $truncate:path, $add:path, $max:path, $shift:ident, $cast:path, $store:path) => {
        #[cfg(target_arch = "x86_64")]
        impl Vector for $cpu {
            type Floats = [$floats; $count];
            type Ints = [$ints; $count];
            #[inline(always)]
            unsafe fn floats(lanes: &[f32; 16]) -> Self::Floats {
                // SAFETY: the vectors together are the array; the caller has the features.
                std::array::from_fn(|i| unsafe { $load_floats(lanes.as_ptr().add(i * $each)) })
            }
            #[inline(always)]
            unsafe fn ints(lanes: &[i32; 16]) -> Self::Ints {
                // SAFETY: the vectors together are the array; the caller has the features.
                std::array::from_fn(|i| unsafe { $load_ints(lanes.as_ptr().add(i * $each).cast()) })
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
                // SAFETY: the caller has the features.
                std::array::from_fn(|i| unsafe { $mul(a[i], b[i]) })
            }
            #[inline(always)]
            unsafe fn truncate(a: Self::Floats) -> Self::Ints {
                // SAFETY: the caller has the features.
                a.map(|a| unsafe { $truncate(a) })
            }
            #[inline(always)]
            unsafe fn add(a: Self::Ints, b: Self::Ints) -> Self::Ints {
                // SAFETY: the caller has the features.
                std::array::from_fn(|i| unsafe { $add(a[i], b[i]) })
            }
            #[inline(always)]
            unsafe fn max(a: Self::Ints, b: Self::Ints) -> Self::Ints {
                // SAFETY: the caller has the features.
                std::array::from_fn(|i| unsafe { $max(a[i], b[i]) })
            }
            #[inline(always)]
            unsafe fn power(a: Self::Ints) -> Self::Floats {
                // SAFETY: the caller has the features.
                a.map(|a| unsafe { $cast($shift::<23>(a)) })
            }
            #[inline(always)]
            unsafe fn store(a: Self::Ints, lanes: &mut [i32; 16]) {
                for (i, a) in a.into_iter().enumerate() {
                    // SAFETY: the vectors together are the array; the caller has the features.
                    unsafe { $store(lanes.as_mut_ptr().add(i * $each).cast(), a) };
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

vector!(Avx512: 1 of 16, __m512, __m512i, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_set1_ps, _mm512_set1_epi32,
    _mm512_mul_ps, _mm512_cvttps_epi32, _mm512_add_epi32,  _mm512_max_epi32, _mm512_slli_epi32,
    _mm512_castsi512_ps, _mm512_storeu_si512);
vector!(Avx2: 2 of 8, __m256, __m256i, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_set1_ps, _mm256_set1_epi32,
    _mm256_mul_ps, _mm256_cvttps_epi32, _mm256_add_epi32,  _mm256_max_epi32, _mm256_slli_epi32,
    _mm256_castsi256_ps, _mm256_storeu_si256);
vector!(Baseline: 4 of 4, __m128, __m128i, _mm_loadu_ps, _mm_loadu_si128, _mm_set1_ps, _mm_set1_epi32,
    _mm_mul_ps, _mm_cvttps_epi32, _mm_add_epi32,  max_sse2, _mm_slli_epi32,
    _mm_castsi128_ps, _mm_storeu_si128);

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
