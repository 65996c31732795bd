//! From a scalar function to a [`LaneKernel`]: the machinery that runs a plain function over a warp's lanes with the
//! widest vectors that the CPU has.
//!
//! Whoever has a type that implements [`Op`] gets two function pointers for the CPU's level.
//!
//! A kernel computes a whole run of 32 lanes into a local array and stores it afterwards: the compiler sees that the
//! array aliases nothing, vectorises the loop, and a destination may be the very slot of a source. Three copies of each
//! kernel exist, one per [`Level`]; everything they call is `#[inline(always)]`, so that it is compiled with the copy's
//! CPU features. Masked kernels blend bits, `(new & m) | (old & !m)`: a branch or a select per lane would not vectorise.

use std::sync::OnceLock;

use super::lanes::{LaneFn, LaneKernel, MAX_WARPS, Mask, Operands, WARP, Width};

/// Which of the three copies of the kernels runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Whatever every CPU of the architecture has; no fused multiply-add.
    Baseline,
    /// AVX2, FMA, F16C, BMI1, BMI2, LZCNT, POPCNT.
    Avx2,
    /// All of these and AVX-512 F, BW, DQ, VL, CD.
    Avx512,
}

impl Level {
    /// The best level that this CPU has.
    pub fn detect() -> Level {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(Level::ask)
    }

    fn ask() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            let avx512 = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512cd");
            if avx512 {
                return Level::Avx512;
            }
            if avx2 {
                return Level::Avx2;
            }
        }
        Level::Baseline
    }

    /// The level in use: the detected one, or a lower one that `MARGAY_SIMD=avx512|avx2|baseline` asks for. Fixed at
    /// first use.
    pub fn current() -> Level {
        static LEVEL: OnceLock<Level> = OnceLock::new();
        *LEVEL.get_or_init(|| {
            let best = Level::detect();
            match crate::config::get().simd.as_str() {
                "baseline" => Level::Baseline,
                "avx2" => best.min(Level::Avx2),
                _ => best,
            }
        })
    }

    /// All levels that this CPU can run, lowest first.
    pub fn available() -> impl Iterator<Item = Level> {
        let best = Level::detect();
        [Level::Baseline, Level::Avx2, Level::Avx512]
            .into_iter()
            .filter(move |&l| l <= best)
    }
}

/// Of what CPUs of the highest level may have besides, what compilers of vectors have use for and this CPU has: products of 16 bits with
/// a sum, counts of bits, shifts by way of two words.
pub fn more_of_avx512() -> Vec<&'static str> {
    let mut more = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        more.extend(is_x86_feature_detected!("avx512vnni").then_some("avx512vnni"));
        more.extend(is_x86_feature_detected!("avx512vpopcntdq").then_some("avx512vpopcntdq"));
        more.extend(is_x86_feature_detected!("avx512vbmi2").then_some("avx512vbmi2"));
    }
    more
}

/// What differs between the levels besides the instruction set that the compiler may use.
pub trait Cpu: 'static {
    const LEVEL: Level;
    /// `a·b + c`, rounded once to nearest even.
    fn fma32(a: f32, b: f32, c: f32) -> f32;
    /// `a·b + c`, rounded once to nearest even.
    fn fma64(a: f64, b: f64, c: f64) -> f64;
    /// Bit `i` is set where `lanes[i]` is not zero; lanes hold 0 or 0xff.
    ///
    /// # Safety
    /// The caller is compiled with this level's features.
    unsafe fn pack(lanes: &[u8; WARP]) -> u32;
    /// The values of a run of `f16`; NaN stays NaN.
    ///
    /// # Safety
    /// The caller is compiled with this level's features.
    #[inline(always)]
    unsafe fn widen_f16(halves: &[u16; WARP]) -> [f32; WARP] {
        let mut values = [0.0; WARP];
        for lane in 0..WARP {
            values[lane] = super::number::widen_f16(halves[lane]);
        }
        values
    }
    /// A run rounded to `f16`, to nearest even; NaN stays NaN.
    ///
    /// # Safety
    /// The caller is compiled with this level's features.
    #[inline(always)]
    unsafe fn narrow_f16(values: &[f32; WARP]) -> [u16; WARP] {
        let mut halves = [0; WARP];
        for lane in 0..WARP {
            halves[lane] = super::number::narrow_f16(values[lane]);
        }
        halves
    }
    /// `table[index]` for each lane, without the bits of indices above the table's size, which is 64 or 128.
    ///
    /// # Safety
    /// The caller is compiled with this level's features.
    #[inline(always)]
    unsafe fn look_up<const N: usize>(table: &[u32; N], indices: &[u32; WARP]) -> [u32; WARP] {
        let mut values = [0; WARP];
        for lane in 0..WARP {
            values[lane] = table[indices[lane] as usize & (N - 1)];
        }
        values
    }
    /// `run[index]` for each lane, by the five low bits of indices.
    ///
    /// # Safety
    /// The caller is compiled with this level's features.
    #[inline(always)]
    unsafe fn permute(run: &[u32; WARP], indices: &[u32; WARP]) -> [u32; WARP] {
        let mut values = [0; WARP];
        for lane in 0..WARP {
            values[lane] = run[indices[lane] as usize & (WARP - 1)];
        }
        values
    }
    /// The words at these distances from a place, for so many lanes: a multiple of 8.
    ///
    /// # Safety
    /// They are readable, and the lanes writable; the caller is compiled with this level's features.
    #[inline(always)]
    unsafe fn gather(place: *const u8, distances: &[u32; WARP], to: *mut u32, lanes: usize) {
        for (i, at) in distances.iter().enumerate().take(lanes) {
            // SAFETY: the caller's.
            unsafe { *to.add(i) = (place.wrapping_add(*at as usize) as *const u32).read() };
        }
    }
    /// Vectors of `N` words, 2 or 4, that lie side by side: the words of each place in a vector for so many lanes, 8, 16 or
    /// 32, to a place of their own, or nowhere where that is null.
    ///
    /// # Safety
    /// They are readable, and the lanes writable; the caller is compiled with this level's features.
    #[inline(always)]
    unsafe fn deal<const N: usize>(from: *const u32, to: [*mut u32; N], lanes: usize) {
        let distances = std::array::from_fn(|lane| (lane * N * 4) as u32);
        for (k, to) in to.into_iter().enumerate().filter(|(_, to)| !to.is_null()) {
            // SAFETY: the caller's.
            unsafe { Self::gather(from.add(k).cast(), &distances, to, lanes) };
        }
    }
    /// The way back.
    ///
    /// # Safety
    /// As many vectors are writable, and lanes readable; the caller is compiled with this level's features.
    #[inline(always)]
    unsafe fn collect<const N: usize>(to: *mut u32, from: [*const u32; N], lanes: usize) {
        for lane in 0..lanes {
            for (k, from) in from.iter().enumerate() {
                // SAFETY: the caller's.
                unsafe { to.add(lane * N + k).write(from.add(lane).read()) };
            }
        }
    }
    /// Writes the lanes of `run` whose bit in `mask` is set.
    ///
    /// # Safety
    /// `slot` is a writable run of `T`; the caller is compiled with this level's features.
    #[inline(always)]
    unsafe fn blend<T: Bits>(slot: *mut T, run: &[T; WARP], mask: u32) {
        for (lane, &new) in run.iter().enumerate() {
            // SAFETY: the caller's: 32 lanes.
            unsafe {
                let old = *slot.add(lane);
                *slot.add(lane) = T::select(mask & (1 << lane) != 0, new, old);
            }
        }
    }
}

/// Unsigned integers as wide as a lane.
pub trait Bits: Copy + 'static {
    /// `new` if `condition`, else `old`, without a branch.
    fn select(condition: bool, new: Self, old: Self) -> Self;
}

macro_rules! bits {
    ($($ty:ty)*) => {$(
        impl Bits for $ty {
            #[inline(always)]
            fn select(condition: bool, new: Self, old: Self) -> Self {
                let keep: $ty = if condition { !0 } else { 0 };
                (new & keep) | (old & !keep)
            }
        }
    )*};
}
bits!(u16 u32 u64 u128);

pub struct Baseline;
pub struct Avx2;
pub struct Avx512;

impl Cpu for Baseline {
    const LEVEL: Level = Level::Baseline;
    #[inline(always)]
    fn fma32(a: f32, b: f32, c: f32) -> f32 {
        super::soft::fma32(a, b, c)
    }
    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        super::soft::fma64(a, b, c)
    }
    #[inline(always)]
    unsafe fn pack(lanes: &[u8; WARP]) -> u32 {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::*;
            // SAFETY: SSE2 is part of x86-64; both reads lie inside the array.
            unsafe {
                let low = _mm_loadu_si128(lanes.as_ptr().cast());
                let high = _mm_loadu_si128(lanes.as_ptr().add(16).cast());
                return _mm_movemask_epi8(low) as u32 | (_mm_movemask_epi8(high) as u32) << 16;
            }
        }
        #[allow(unreachable_code, reason = "on x86-64 the lines above have returned")]
        lanes
            .iter()
            .enumerate()
            .fold(0, |bits, (i, &lane)| bits | ((lane & 1) as u32) << i)
    }
}

/// Eight words by their distances from a place, put together in registers: quicker than the processor's own gathers, and
/// than words written one by one, which whoever reads the whole has to wait for.
///
/// # Safety
/// They are readable, and so many distances; the caller is compiled with AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn gather_eight(place: *const u8, distances: *const u32) -> std::arch::x86_64::__m256i {
    use std::arch::x86_64::*;
    // SAFETY: the caller's.
    unsafe {
        let word = |i: usize| (place.wrapping_add(distances.add(i).read() as usize) as *const i32).read();
        let four = |i: usize| {
            let one = _mm_cvtsi32_si128(word(i));
            let two = _mm_insert_epi32::<1>(one, word(i + 1));
            let three = _mm_insert_epi32::<2>(two, word(i + 2));
            _mm_insert_epi32::<3>(three, word(i + 3))
        };
        _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(four(0)), four(4))
    }
}

impl Cpu for Avx2 {
    const LEVEL: Level = Level::Avx2;
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn widen_f16(halves: &[u16; WARP]) -> [f32; WARP] {
        use std::arch::x86_64::*;
        let mut values = [0.0; WARP];
        // SAFETY: the caller has F16C; eight lanes at a time lie in both arrays.
        unsafe {
            for at in (0..WARP).step_by(8) {
                let eight = _mm256_cvtph_ps(_mm_loadu_si128(halves.as_ptr().add(at).cast()));
                _mm256_storeu_ps(values.as_mut_ptr().add(at), eight);
            }
        }
        values
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn narrow_f16(values: &[f32; WARP]) -> [u16; WARP] {
        use std::arch::x86_64::*;
        let mut halves = [0; WARP];
        // SAFETY: the caller has F16C; eight lanes at a time lie in both arrays.
        unsafe {
            for at in (0..WARP).step_by(8) {
                let eight = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(values.as_ptr().add(at)));
                _mm_storeu_si128(halves.as_mut_ptr().add(at).cast(), eight);
            }
        }
        halves
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn permute(run: &[u32; WARP], indices: &[u32; WARP]) -> [u32; WARP] {
        use std::arch::x86_64::*;
        let mut values = [0; WARP];
        // SAFETY: the caller has AVX2; eight words at a time lie in the arrays.
        unsafe {
            let words = |at: usize| _mm256_loadu_si256(run.as_ptr().add(at).cast());
            let [a, b, c, d] = [words(0), words(8), words(16), words(24)];
            for at in (0..WARP).step_by(8) {
                let index = _mm256_loadu_si256(indices.as_ptr().add(at).cast());
                // Permutations take three bits of an index, blends the sign: the other two, shifted there.
                let pick = |words| _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(words, index));
                let bit_3 = _mm256_castsi256_ps(_mm256_slli_epi32::<28>(index));
                let bit_4 = _mm256_castsi256_ps(_mm256_slli_epi32::<27>(index));
                let low = _mm256_blendv_ps(pick(a), pick(b), bit_3);
                let high = _mm256_blendv_ps(pick(c), pick(d), bit_3);
                _mm256_storeu_ps(values.as_mut_ptr().add(at).cast(), _mm256_blendv_ps(low, high, bit_4));
            }
        }
        values
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn gather(place: *const u8, distances: &[u32; WARP], to: *mut u32, lanes: usize) {
        for at in (0..lanes.min(WARP)).step_by(8) {
            // SAFETY: the caller's, eight lanes at a time.
            unsafe {
                let eight = gather_eight(place, distances.as_ptr().add(at));
                std::arch::x86_64::_mm256_storeu_si256(to.add(at).cast(), eight);
            }
        }
    }
    #[inline(always)]
    fn fma32(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    unsafe fn pack(lanes: &[u8; WARP]) -> u32 {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::*;
            // SAFETY: the caller has AVX2; the read is the array.
            unsafe {
                return _mm256_movemask_epi8(_mm256_loadu_si256(lanes.as_ptr().cast())) as u32;
            }
        }
        #[allow(unreachable_code, reason = "on x86-64 the lines above have returned")]
        // SAFETY: as the caller's.
        unsafe {
            Baseline::pack(lanes)
        }
    }
}

impl Cpu for Avx512 {
    const LEVEL: Level = Level::Avx512;
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn widen_f16(halves: &[u16; WARP]) -> [f32; WARP] {
        use std::arch::x86_64::*;
        let mut values = [0.0; WARP];
        // SAFETY: the caller has AVX-512; sixteen lanes at a time lie in both arrays.
        unsafe {
            for at in (0..WARP).step_by(16) {
                let sixteen = _mm512_cvtph_ps(_mm256_loadu_si256(halves.as_ptr().add(at).cast()));
                _mm512_storeu_ps(values.as_mut_ptr().add(at), sixteen);
            }
        }
        values
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn narrow_f16(values: &[f32; WARP]) -> [u16; WARP] {
        use std::arch::x86_64::*;
        let mut halves = [0; WARP];
        // SAFETY: the caller has AVX-512; sixteen lanes at a time lie in both arrays.
        unsafe {
            for at in (0..WARP).step_by(16) {
                let sixteen = _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm512_loadu_ps(values.as_ptr().add(at)));
                _mm256_storeu_si256(halves.as_mut_ptr().add(at).cast(), sixteen);
            }
        }
        halves
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn gather(place: *const u8, distances: &[u32; WARP], to: *mut u32, lanes: usize) {
        use std::arch::x86_64::*;
        // SAFETY: the caller's, sixteen lanes at a time, or eight.
        unsafe {
            if lanes == 8 {
                return Avx2::gather(place, distances, to, lanes);
            }
            for at in (0..lanes.min(WARP)).step_by(16) {
                let low = gather_eight(place, distances.as_ptr().add(at));
                let high = gather_eight(place, distances.as_ptr().add(at + 8));
                let sixteen = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
                _mm512_storeu_si512(to.add(at).cast(), sixteen);
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn deal<const N: usize>(from: *const u32, to: [*mut u32; N], lanes: usize) {
        use std::arch::x86_64::*;
        const { assert!(N == 2 || N == 4) };
        // SAFETY: the caller's, sixteen vectors at a time, or eight.
        unsafe {
            if lanes == 8 {
                return Avx2::deal(from, to, lanes);
            }
            let words: [i32; 16] = std::array::from_fn(|i| (i * N) as i32 % 32);
            let first = _mm512_loadu_si512(words.as_ptr().cast());
            for at in (0..lanes.min(WARP)).step_by(16) {
                let part = |i: usize| _mm512_loadu_si512(from.add(at * N + 16 * i).cast());
                for (k, to) in to.into_iter().enumerate().filter(|(_, to)| !to.is_null()) {
                    // The k-th words of two parts: all sixteen of pairs, the lower eight of vectors of four.
                    let index = _mm512_add_epi32(first, _mm512_set1_epi32(k as i32));
                    let mut sixteen = _mm512_permutex2var_epi32(part(0), index, part(1));
                    if N == 4 {
                        let high = _mm512_permutex2var_epi32(part(2), index, part(3));
                        sixteen = _mm512_inserti64x4::<1>(sixteen, _mm512_castsi512_si256(high));
                    }
                    _mm512_storeu_si512(to.add(at).cast(), sixteen);
                }
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn collect<const N: usize>(to: *mut u32, from: [*const u32; N], lanes: usize) {
        use std::arch::x86_64::*;
        const { assert!(N == 2 || N == 4) };
        // SAFETY: the caller's, sixteen vectors at a time, or eight.
        unsafe {
            if lanes == 8 {
                return Avx2::collect(to, from, lanes);
            }
            for at in (0..lanes.min(WARP)).step_by(16) {
                let lane = |k: usize| _mm512_loadu_si512(from[k].add(at).cast());
                let put = |i: usize, part| _mm512_storeu_si512(to.add(at * N + 16 * i).cast(), part);
                // Which words of two sources lie in a part one after the other: 16 more are those of the second.
                let of_two = |words: [i32; 16]| _mm512_loadu_si512(words.as_ptr().cast());
                for half in 0..2 {
                    let pairs = of_two(std::array::from_fn(|i| (i / 2 + 8 * half + i % 2 * 16) as i32));
                    let low = _mm512_permutex2var_epi32(lane(0), pairs, lane(1));
                    if N == 2 {
                        put(half, low);
                        continue;
                    }
                    let high = _mm512_permutex2var_epi32(lane(2), pairs, lane(3));
                    for quarter in 0..2 {
                        let fours = of_two(std::array::from_fn(|i| {
                            (i / 4 * 2 + i % 2 + 8 * quarter + i % 4 / 2 * 16) as i32
                        }));
                        put(2 * half + quarter, _mm512_permutex2var_epi32(low, fours, high));
                    }
                }
            }
        }
    }
    #[inline(always)]
    fn fma32(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    fn fma64(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
    #[inline(always)]
    unsafe fn pack(lanes: &[u8; WARP]) -> u32 {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::*;
            // SAFETY: the caller has AVX-512 BW and VL; the read is the array.
            unsafe {
                return _mm256_movepi8_mask(_mm256_loadu_si256(lanes.as_ptr().cast()));
            }
        }
        #[allow(unreachable_code, reason = "on x86-64 the lines above have returned")]
        // SAFETY: as the caller's.
        unsafe {
            Baseline::pack(lanes)
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn look_up<const N: usize>(table: &[u32; N], indices: &[u32; WARP]) -> [u32; WARP] {
        use std::arch::x86_64::*;
        const { assert!(N == 64 || N == 128) };
        let mut values = [0; WARP];
        // SAFETY: the caller has AVX-512; sixteen words at a time lie in the table and the arrays.
        unsafe {
            let words = |at: usize| _mm512_loadu_si512(table.as_ptr().add(at).cast());
            for at in (0..WARP).step_by(16) {
                let index = _mm512_loadu_si512(indices.as_ptr().add(at).cast());
                let bit_5 = _mm512_test_epi32_mask(index, _mm512_set1_epi32(32));
                // Permutations take five bits of an index, blends the others.
                let of_64 = |at: usize| {
                    let low = _mm512_permutex2var_epi32(words(at), index, words(at + 16));
                    let high = _mm512_permutex2var_epi32(words(at + 32), index, words(at + 48));
                    _mm512_mask_blend_epi32(bit_5, low, high)
                };
                let mut value = of_64(0);
                if N == 128 {
                    let bit_6 = _mm512_test_epi32_mask(index, _mm512_set1_epi32(64));
                    value = _mm512_mask_blend_epi32(bit_6, value, of_64(64));
                }
                _mm512_storeu_si512(values.as_mut_ptr().add(at).cast(), value);
            }
        }
        values
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn permute(run: &[u32; WARP], indices: &[u32; WARP]) -> [u32; WARP] {
        use std::arch::x86_64::*;
        let mut values = [0; WARP];
        // SAFETY: the caller has AVX-512; sixteen words at a time lie in the arrays.
        unsafe {
            let words = |at: usize| _mm512_loadu_si512(run.as_ptr().add(at).cast());
            for at in (0..WARP).step_by(16) {
                let index = _mm512_loadu_si512(indices.as_ptr().add(at).cast());
                let value = _mm512_permutex2var_epi32(words(0), index, words(16));
                _mm512_storeu_si512(values.as_mut_ptr().add(at).cast(), value);
            }
        }
        values
    }
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn blend<T: Bits>(slot: *mut T, run: &[T; WARP], mask: u32) {
        use std::arch::x86_64::*;
        // Mask registers do in one instruction what the compiler makes of expanding the mask in four.
        // SAFETY: the caller has the features; a run is size_of::<T>() / 2 vectors of 64 bytes.
        unsafe {
            let to = slot.cast::<__m512i>();
            let from = run.as_ptr().cast::<__m512i>();
            for part in 0..size_of::<T>() / 2 {
                let (to, new) = (to.add(part), _mm512_loadu_si512(from.add(part)));
                let old = _mm512_loadu_si512(to);
                let blended = match size_of::<T>() {
                    2 => _mm512_mask_blend_epi16(mask, old, new),
                    4 => _mm512_mask_blend_epi32((mask >> (16 * part)) as u16, old, new),
                    8 => _mm512_mask_blend_epi64((mask >> (8 * part)) as u8, old, new),
                    _ => {
                        // Two mask bits a lane of 128 bits.
                        let four = mask >> (4 * part) & 15;
                        let spread = ((four & 1) * 3) | ((four & 2) * 6) | ((four & 4) * 12) | ((four & 8) * 24);
                        _mm512_mask_blend_epi64(spread as u8, old, new)
                    }
                };
                _mm512_storeu_si512(to, blended);
            }
        }
    }
}

/// A lane's value: how it lies in a slot, and how a run of 32 is written back.
pub trait Value: Copy + Default + 'static {
    const WIDTH: Width;
    /// A run of results, not yet stored.
    type Run;
    fn run() -> Self::Run;
    fn set(run: &mut Self::Run, lane: usize, value: Self);
    /// # Safety
    /// `base` points at a readable run of this width.
    unsafe fn get(base: *const u8, lane: usize) -> Self;
    /// # Safety
    /// `base` points at a writable run of this width; the caller is compiled with the features of `C`.
    unsafe fn store<C: Cpu, const MASKED: bool>(base: *mut u8, run: &Self::Run, mask: u32);
}

macro_rules! values {
    ($($ty:ty, $bits:ty, $width:ident;)*) => {$(
        impl Value for $ty {
            const WIDTH: Width = Width::$width;
            type Run = [$bits; WARP];
            #[inline(always)]
            fn run() -> Self::Run {
                [0; WARP]
            }
            #[inline(always)]
            fn set(run: &mut Self::Run, lane: usize, value: Self) {
                run[lane] = <$bits>::from_ne_bytes(value.to_ne_bytes());
            }
            #[inline(always)]
            unsafe fn get(base: *const u8, lane: usize) -> Self {
                // SAFETY: the caller's; any bits are a value of a number type.
                unsafe { *base.cast::<$ty>().add(lane) }
            }
            #[inline(always)]
            unsafe fn store<C: Cpu, const MASKED: bool>(base: *mut u8, run: &Self::Run, mask: u32) {
                // SAFETY: the caller's; slots are aligned to 64 bytes.
                unsafe {
                    if MASKED {
                        C::blend(base.cast::<$bits>(), run, mask);
                    } else {
                        *base.cast::<[$bits; WARP]>() = *run;
                    }
                }
            }
        }
    )*};
}

values! {
    u16, u16, B16; i16, u16, B16;
    u32, u32, B32; i32, u32, B32; f32, u32, B32;
    u64, u64, B64; i64, u64, B64; f64, u64, B64;
    u128, u128, B128;
}

impl Value for bool {
    const WIDTH: Width = Width::Pred;
    type Run = [u8; WARP];
    #[inline(always)]
    fn run() -> Self::Run {
        [0; WARP]
    }
    #[inline(always)]
    fn set(run: &mut Self::Run, lane: usize, value: Self) {
        run[lane] = if value { 0xff } else { 0 };
    }
    #[inline(always)]
    unsafe fn get(base: *const u8, lane: usize) -> Self {
        // SAFETY: the caller's.
        unsafe { *base.cast::<u32>() & (1 << lane) != 0 }
    }
    #[inline(always)]
    unsafe fn store<C: Cpu, const MASKED: bool>(base: *mut u8, run: &Self::Run, mask: u32) {
        // SAFETY: the caller's.
        unsafe {
            let bits = C::pack(run);
            let slot = base.cast::<u32>();
            *slot = if MASKED { (bits & mask) | (*slot & !mask) } else { bits };
        }
    }
}

/// The sources of an operation: a tuple of values.
pub trait Sources: Copy + 'static {
    const WIDTHS: &'static [Width];
    /// # Safety
    /// Every source slot of `operands` is readable at `regs`.
    unsafe fn get(regs: *const u8, operands: &Operands, warp: usize, lane: usize) -> Self;
}

macro_rules! sources {
    ($($name:ident $index:tt),+) => {
        impl<$($name: Value),+> Sources for ($($name,)+) {
            const WIDTHS: &'static [Width] = &[$($name::WIDTH),+];
            #[inline(always)]
            unsafe fn get(regs: *const u8, operands: &Operands, warp: usize, lane: usize) -> Self {
                // SAFETY: the caller's.
                unsafe {
                    ($($name::get(
                        regs.add(operands.src[$index] as usize + warp * $name::WIDTH.warp_bytes() as usize),
                        lane,
                    ),)+)
                }
            }
        }
    };
}
sources!(A 0);
sources!(A 0, B 1);
sources!(A 0, B 1, C 2);
sources!(A 0, B 1, C 2, D 3);

/// The destinations of an operation: a value, or a pair of values.
pub trait Destinations: Copy + 'static {
    const WIDTHS: &'static [Width];
    type Run;
    fn run() -> Self::Run;
    fn set(run: &mut Self::Run, lane: usize, value: Self);
    /// # Safety
    /// Every destination slot of `operands` is writable at `regs`; the caller is compiled with the features of `C`.
    unsafe fn store<C: Cpu, const MASKED: bool>(
        regs: *mut u8,
        operands: &Operands,
        warp: usize,
        run: &Self::Run,
        mask: u32,
    );
}

impl<V: Value> Destinations for V {
    const WIDTHS: &'static [Width] = &[V::WIDTH];
    type Run = V::Run;
    #[inline(always)]
    fn run() -> Self::Run {
        V::run()
    }
    #[inline(always)]
    fn set(run: &mut Self::Run, lane: usize, value: Self) {
        V::set(run, lane, value);
    }
    #[inline(always)]
    unsafe fn store<C: Cpu, const MASKED: bool>(
        regs: *mut u8,
        operands: &Operands,
        warp: usize,
        run: &Self::Run,
        mask: u32,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let base = regs.add(operands.dst[0] as usize + warp * V::WIDTH.warp_bytes() as usize);
            V::store::<C, MASKED>(base, run, mask);
        }
    }
}

impl<V: Value, W: Value> Destinations for (V, W) {
    const WIDTHS: &'static [Width] = &[V::WIDTH, W::WIDTH];
    type Run = (V::Run, W::Run);
    #[inline(always)]
    fn run() -> Self::Run {
        (V::run(), W::run())
    }
    #[inline(always)]
    fn set(run: &mut Self::Run, lane: usize, value: Self) {
        V::set(&mut run.0, lane, value.0);
        W::set(&mut run.1, lane, value.1);
    }
    #[inline(always)]
    unsafe fn store<C: Cpu, const MASKED: bool>(
        regs: *mut u8,
        operands: &Operands,
        warp: usize,
        run: &Self::Run,
        mask: u32,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let first = regs.add(operands.dst[0] as usize + warp * V::WIDTH.warp_bytes() as usize);
            let second = regs.add(operands.dst[1] as usize + warp * W::WIDTH.warp_bytes() as usize);
            V::store::<C, MASKED>(first, &run.0, mask);
            W::store::<C, MASKED>(second, &run.1, mask);
        }
    }
}

/// A lane-wise operation: a pure function of values. Implementors are zero-sized; flags are const generics, so that the
/// loop over the lanes has no branches.
pub trait Op: 'static {
    type Src: Sources;
    type Dst: Destinations;
    /// `imm` is [`Operands::imm`], the same for all lanes.
    fn apply<C: Cpu>(src: Self::Src, imm: u64) -> Self::Dst;
    /// Whether results need a second look: then [`Op::is_rare`] is asked of every result of a run, and if it holds for
    /// any, [`Op::apply_rare`] computes the whole run again.
    const HAS_RARE: bool = false;
    #[inline(always)]
    fn is_rare(_: Self::Dst) -> bool {
        false
    }
    #[inline(always)]
    fn apply_rare<C: Cpu>(src: Self::Src, imm: u64) -> Self::Dst {
        Self::apply::<C>(src, imm)
    }
}

/// Something that computes a run of 32 lanes at once; most are [`Op`]s looped over the lanes.
pub trait WarpOp: 'static {
    /// # Safety
    /// As for [`LaneFn`], for warp `warp` of the bundle; the caller is compiled with the features of `C`.
    unsafe fn run<C: Cpu, const MASKED: bool>(regs: *mut u8, operands: &Operands, warp: usize, mask: u32);
}

/// An [`Op`] as a [`WarpOp`].
struct Lanes<O>(std::marker::PhantomData<O>);

impl<O: Op> WarpOp for Lanes<O> {
    #[inline(always)]
    unsafe fn run<C: Cpu, const MASKED: bool>(regs: *mut u8, operands: &Operands, warp: usize, mask: u32) {
        let mut run = O::Dst::run();
        // SAFETY: the caller's.
        unsafe {
            let mut rare = 0u64;
            for lane in 0..WARP {
                let src = O::Src::get(regs, operands, warp, lane);
                let result = O::apply::<C>(src, operands.imm);
                if O::HAS_RARE {
                    rare |= u64::from(O::is_rare(result));
                }
                O::Dst::set(&mut run, lane, result);
            }
            if O::HAS_RARE && rare != 0 {
                for lane in 0..WARP {
                    let src = O::Src::get(regs, operands, warp, lane);
                    O::Dst::set(&mut run, lane, O::apply_rare::<C>(src, operands.imm));
                }
            }
            O::Dst::store::<C, MASKED>(regs, operands, warp, &run, mask);
        }
    }
}

#[inline(always)]
unsafe fn warps<C: Cpu, W: WarpOp, const MASKED: bool>(regs: *mut u8, operands: &Operands, mask: &Mask) {
    // A copy: results may not be thought to change the operands.
    let operands = *operands;
    for warp in 0..(mask.warps as usize).min(MAX_WARPS) {
        let lanes = mask.lanes[warp];
        if MASKED && lanes == 0 {
            continue;
        }
        // SAFETY: the caller's.
        unsafe { W::run::<C, MASKED>(regs, &operands, warp, lanes) };
    }
}

unsafe fn baseline<W: WarpOp, const MASKED: bool>(regs: *mut u8, operands: &Operands, mask: &Mask) {
    // SAFETY: the caller's; this level asks nothing of the CPU.
    unsafe { warps::<Baseline, W, MASKED>(regs, operands, mask) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx2<W: WarpOp, const MASKED: bool>(regs: *mut u8, operands: &Operands, mask: &Mask) {
    // SAFETY: the caller's, which includes the CPU's features.
    unsafe { warps::<Avx2, W, MASKED>(regs, operands, mask) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn avx512<W: WarpOp, const MASKED: bool>(regs: *mut u8, operands: &Operands, mask: &Mask) {
    // SAFETY: the caller's, which includes the CPU's features.
    unsafe { warps::<Avx512, W, MASKED>(regs, operands, mask) }
}

/// The kernels of a [`WarpOp`] at a given level (which the CPU must have).
pub fn warp_kernel_at<W: WarpOp>(level: Level) -> LaneKernel {
    let pick = |full: LaneFn, masked: LaneFn| LaneKernel { full, masked };
    match level {
        Level::Baseline => pick(baseline::<W, false>, baseline::<W, true>),
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => pick(avx2::<W, false>, avx2::<W, true>),
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => pick(avx512::<W, false>, avx512::<W, true>),
        #[cfg(not(target_arch = "x86_64"))]
        Level::Avx2 | Level::Avx512 => pick(baseline::<W, false>, baseline::<W, true>),
    }
}

/// The kernels of an [`Op`] at a given level (which the CPU must have).
pub fn kernel_at<O: Op>(level: Level) -> LaneKernel {
    warp_kernel_at::<Lanes<O>>(level)
}

/// Makes an [`Op`] of a scalar function: `op!(Add<T: Int> = add(a: T, b: T) -> T)`. Flags in brackets are const generic
/// `bool`s handed to the function; `@cpu` hands it the level; `imm` as last name hands it the constant.
macro_rules! op {
    ($name:ident = $f:ident($($a:ident: $t:ty),*; imm) -> $r:ty) => {
        pub struct $name;
        impl $crate::isa::simd::Op for $name {
            type Src = ($($t,)*);
            type Dst = $r;
            #[inline(always)]
            fn apply<C: $crate::isa::simd::Cpu>(($($a,)*): Self::Src, imm: u64) -> $r {
                $f($($a,)* imm)
            }
        }
    };
    ($name:ident = $f:ident($($a:ident: $t:ty),*) -> $r:ty) => {
        pub struct $name;
        impl $crate::isa::simd::Op for $name {
            type Src = ($($t,)*);
            type Dst = $r;
            #[inline(always)]
            fn apply<C: $crate::isa::simd::Cpu>(($($a,)*): Self::Src, _: u64) -> $r {
                $f($($a),*)
            }
        }
    };
    ($name:ident<$g:ident: $bound:path> = $f:ident($($a:ident: $t:ty),*; imm) -> $r:ty) => {
        pub struct $name<$g>(std::marker::PhantomData<$g>);
        impl<$g: $bound> $crate::isa::simd::Op for $name<$g> {
            type Src = ($($t,)*);
            type Dst = $r;
            #[inline(always)]
            fn apply<C: $crate::isa::simd::Cpu>(($($a,)*): Self::Src, imm: u64) -> $r {
                $f::<$g>($($a,)* imm)
            }
        }
    };
    ($name:ident<$g:ident: $bound:path> = $f:ident($($a:ident: $t:ty),*) -> $r:ty) => {
        pub struct $name<$g>(std::marker::PhantomData<$g>);
        impl<$g: $bound> $crate::isa::simd::Op for $name<$g> {
            type Src = ($($t,)*);
            type Dst = $r;
            #[inline(always)]
            fn apply<C: $crate::isa::simd::Cpu>(($($a,)*): Self::Src, _: u64) -> $r {
                $f::<$g>($($a),*)
            }
        }
    };
    ($name:ident[$($flag:ident),*] = $f:ident($($a:ident: $t:ty),*; imm) -> $r:ty) => {
        pub struct $name<$(const $flag: bool),*>;
        impl<$(const $flag: bool),*> $crate::isa::simd::Op for $name<$($flag),*> {
            type Src = ($($t,)*);
            type Dst = $r;
            #[inline(always)]
            fn apply<C: $crate::isa::simd::Cpu>(($($a,)*): Self::Src, imm: u64) -> $r {
                $f::<$($flag),*>($($a,)* imm)
            }
        }
    };
    ($name:ident[$($flag:ident),*] = $f:ident($($a:ident: $t:ty),*) -> $r:ty) => {
        pub struct $name<$(const $flag: bool),*>;
        impl<$(const $flag: bool),*> $crate::isa::simd::Op for $name<$($flag),*> {
            type Src = ($($t,)*);
            type Dst = $r;
            #[inline(always)]
            fn apply<C: $crate::isa::simd::Cpu>(($($a,)*): Self::Src, _: u64) -> $r {
                $f::<$($flag),*>($($a),*)
            }
        }
    };
    ($name:ident[$($flag:ident),*] @cpu = $f:ident($($a:ident: $t:ty),*) -> $r:ty) => {
        pub struct $name<$(const $flag: bool),*>;
        impl<$(const $flag: bool),*> $crate::isa::simd::Op for $name<$($flag),*> {
            type Src = ($($t,)*);
            type Dst = $r;
            #[inline(always)]
            fn apply<C: $crate::isa::simd::Cpu>(($($a,)*): Self::Src, _: u64) -> $r {
                $f::<C, $($flag),*>($($a),*)
            }
        }
    };
}
pub(crate) use op;

/// An [`Op`] on `f64` that is quick where no result is NaN: `nan_op!(Add, quick = |C| a + b, exact = add(a, b))`.
macro_rules! nan_op {
    ($name:ident($($a:ident),*), |$c:ident| $quick:expr, $exact:expr) => {
        pub struct $name;
        impl $crate::isa::simd::Op for $name {
            type Src = ($(nan_op!(@f64 $a),)*);
            type Dst = f64;
            const HAS_RARE: bool = true;
            #[inline(always)]
            fn apply<$c: $crate::isa::simd::Cpu>(($($a,)*): Self::Src, _: u64) -> f64 {
                $quick
            }
            #[inline(always)]
            fn is_rare(result: f64) -> bool {
                result.is_nan()
            }
            #[inline(always)]
            fn apply_rare<$c: $crate::isa::simd::Cpu>(($($a,)*): Self::Src, _: u64) -> f64 {
                $exact
            }
        }
    };
    (@f64 $a:ident) => { f64 };
}
pub(crate) use nan_op;
