//! The same code, compiled for each level of vector instructions.

use super::vector::Vector;
use crate::isa::simd::{self, Level};

/// Something that is worth a copy for each level. What it calls is `#[inline(always)]`, so as to be compiled with the copy.
pub trait Kernel {
    type Arguments<'a>;
    /// # Safety
    /// The caller is compiled with the features of `C`.
    unsafe fn run<C: Vector>(arguments: Self::Arguments<'_>);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx2<K: Kernel>(arguments: K::Arguments<'_>) {
    // SAFETY: this function has the features of AVX2's level.
    unsafe { K::run::<simd::Avx2>(arguments) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx512<K: Kernel>(arguments: K::Arguments<'_>) {
    // SAFETY: this function has the features of AVX-512's level.
    unsafe { K::run::<simd::Avx512>(arguments) }
}

/// Runs the kernel's copy for `level`, or for the best one below that this CPU has.
pub fn run<K: Kernel>(level: Level, arguments: K::Arguments<'_>) {
    match level.min(Level::detect()) {
        // SAFETY: the level asks nothing of the CPU.
        Level::Baseline => unsafe { K::run::<simd::Baseline>(arguments) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the CPU was found to have the level's features.
        Level::Avx2 => unsafe { avx2::<K>(arguments) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the CPU was found to have the level's features.
        Level::Avx512 => unsafe { avx512::<K>(arguments) },
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: the level asks nothing of the CPU.
        Level::Avx2 | Level::Avx512 => unsafe { K::run::<simd::Baseline>(arguments) },
    }
}
