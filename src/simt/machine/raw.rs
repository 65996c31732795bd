//! Elements of memory as raw bits, from 1 to 16 bytes: how they become values of registers and back, and how strong
//! accesses move them whole.

use std::sync::atomic::{self, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// A memory element as raw bits.
pub trait Raw: Copy + Default + 'static {
    /// # Safety
    /// `at` is valid for reads and aligned.
    unsafe fn load_strong(at: *const Self, order: atomic::Ordering) -> Self;
    /// # Safety
    /// `at` is valid for writes and aligned.
    unsafe fn store_strong(at: *mut Self, value: Self, order: atomic::Ordering);
    /// The low bits.
    fn cut(bits: u128) -> Self;
    fn bits(self) -> u128;
}

macro_rules! raw {
    ($($t:ty => $a:ty),*) => {$(
        impl Raw for $t {
            #[inline(always)]
            unsafe fn load_strong(at: *const $t, order: atomic::Ordering) -> $t {
                // SAFETY: `at` is valid and aligned, as the trait asks of callers; kernels and host share this memory
                // only through raw pointers and atomics.
                unsafe { <$a>::from_ptr(at as *mut $t).load(order) }
            }
            #[inline(always)]
            unsafe fn store_strong(at: *mut $t, value: $t, order: atomic::Ordering) {
                // SAFETY: `at` is valid and aligned, as the trait asks of callers; others reach this memory only
                // through raw pointers and atomics.
                unsafe { <$a>::from_ptr(at).store(value, order) }
            }
            #[inline(always)]
            fn cut(bits: u128) -> $t {
                bits as $t
            }
            #[inline(always)]
            fn bits(self) -> u128 {
                self.into()
            }
        }
    )*};
}
raw!(u8 => AtomicU8, u16 => AtomicU16, u32 => AtomicU32, u64 => AtomicU64);

impl Raw for u128 {
    #[inline(always)]
    fn cut(bits: u128) -> u128 {
        bits
    }
    #[inline(always)]
    fn bits(self) -> u128 {
        self
    }
    #[inline(always)]
    unsafe fn load_strong(at: *const u128, order: atomic::Ordering) -> u128 {
        // SAFETY: `at` has 16 valid bytes and is aligned to 16, as the trait asks of callers.
        unsafe { wide::load(at, order) }
    }
    #[inline(always)]
    unsafe fn store_strong(at: *mut u128, value: u128, order: atomic::Ordering) {
        // SAFETY: `at` has 16 valid bytes and is aligned to 16, as the trait asks of callers.
        unsafe { wide::store(at, value, order) }
    }
}

/// 16 bytes as one, for loads, stores and atomics alike, so that they agree.
///
/// Processors with AVX move 16 aligned bytes whole (Intel SDM, volume 3, 9.1.1; AMD says the same), and all of those have
/// `cmpxchg16b`. On others one lock orders the three against each other: no load by `cmpxchg16b` there, for it writes,
/// and memory may be read-only.
pub mod wide {
    use std::sync::atomic;

    static LOCK: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

    #[inline(always)]
    fn whole() -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            is_x86_feature_detected!("avx") && is_x86_feature_detected!("cmpxchg16b")
        }
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// # Safety
    /// `at` is valid for reads and aligned.
    #[inline(always)]
    pub unsafe fn load(at: *const u128, order: atomic::Ordering) -> u128 {
        #[cfg(target_arch = "x86_64")]
        if whole() {
            let value: std::arch::x86_64::__m128i;
            // SAFETY: `at` has 16 valid, aligned bytes (the function's contract). x86 keeps loads in order, as acquire
            // wants (the block is not `nomem`, so that the compiler does too).
            return unsafe {
                std::arch::asm!("movdqa {value}, [{at}]", value = out(xmm_reg) value, at = in(reg) at,
                    options(nostack, preserves_flags, readonly));
                if order != atomic::Ordering::Relaxed {
                    atomic::compiler_fence(atomic::Ordering::Acquire);
                }
                std::mem::transmute::<std::arch::x86_64::__m128i, u128>(value)
            };
        }
        let _ = order;
        let _held = LOCK.lock();
        // SAFETY: `at` is readable and aligned (the function's contract), and the lock is held by all who write such
        // cells in parts.
        unsafe { at.read_volatile() }
    }

    /// # Safety
    /// `at` is valid for writes and aligned.
    #[inline(always)]
    pub unsafe fn store(at: *mut u128, value: u128, order: atomic::Ordering) {
        let _ = order;
        #[cfg(target_arch = "x86_64")]
        if whole() {
            // SAFETY: `at` has 16 valid, aligned bytes (the function's contract); x86 keeps stores in order, and so
            // does the compiler around the block.
            return unsafe {
                let value: std::arch::x86_64::__m128i = std::mem::transmute(value);
                std::arch::asm!("movdqa [{at}], {value}", value = in(xmm_reg) value, at = in(reg) at,
                    options(nostack, preserves_flags));
            };
        }
        let _held = LOCK.lock();
        // SAFETY: `at` is writable and aligned (the function's contract), and the lock is held by all who read or write
        // such cells in parts.
        unsafe { at.write_volatile(value) }
    }

    /// Replaces `*at` by `f(*at)`, returns the old value.
    ///
    /// # Safety
    /// `at` is valid for reads and writes, and aligned.
    pub unsafe fn update(at: *mut u128, f: impl Fn(u128) -> u128) -> u128 {
        #[cfg(target_arch = "x86_64")]
        if whole() {
            // SAFETY: `whole` has seen that the CPU has `cmpxchg16b`; `at` is valid and aligned (the function's
            // contract).
            return unsafe { exchange(at, f) };
        }
        let _held = LOCK.lock();
        // SAFETY: `at` is valid and aligned (the function's contract); the lock keeps others from the cell between the
        // read and the write.
        unsafe {
            let old = at.read_volatile();
            at.write_volatile(f(old));
            old
        }
    }

    /// # Safety
    /// As for [`update`], on a CPU that has `cmpxchg16b`.
    #[cfg(target_arch = "x86_64")]
    unsafe fn exchange(at: *mut u128, f: impl Fn(u128) -> u128) -> u128 {
        // SAFETY: `at` is valid for reads and aligned, for it is so for reads and writes (the contract of `update`).
        let mut old = unsafe { load(at, atomic::Ordering::SeqCst) };
        loop {
            let new = f(old);
            let (low, high): (u64, u64);
            // SAFETY: `at` has 16 valid, aligned bytes (the function's contract). The compiler keeps rbx for itself: it
            // is put back before the block ends, and the address cannot be in it.
            unsafe {
                std::arch::asm!(
                    "xchg {b}, rbx",
                    "lock cmpxchg16b [rdi]",
                    "mov rbx, {b}",
                    b = inout(reg) new as u64 => _,
                    in("rdi") at,
                    in("rcx") (new >> 64) as u64,
                    inout("rax") old as u64 => low,
                    inout("rdx") (old >> 64) as u64 => high,
                    options(nostack),
                );
            }
            let seen = u128::from(low) | u128::from(high) << 64;
            if seen == old {
                return old;
            }
            old = seen;
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::thread;

        /// Two equal halves: what tears has different ones.
        fn pair(x: u64) -> u128 {
            u128::from(x) | u128::from(x) << 64
        }

        #[test]
        fn loads_stores_and_atomics_of_16_bytes_agree() {
            let cell = Box::new(pair(0));
            let at = Box::into_raw(cell) as usize;
            let whole = |x: u128| assert_eq!(x as u64, (x >> 64) as u64, "torn: {x:#x}");
            thread::scope(|scope| {
                for id in 1..3u64 {
                    scope.spawn(move || {
                        for i in 0..100_000 {
                            // SAFETY: the cell lives until all have ended, and is aligned.
                            unsafe {
                                let at = at as *mut u128;
                                whole(update(at, |old| pair((old as u64).wrapping_add(id))));
                                whole(load(at, atomic::Ordering::Acquire));
                                store(at, pair(i * 4 + id), atomic::Ordering::Release);
                            }
                        }
                    });
                }
            });
            // SAFETY: made from a box above; nobody else uses it any more.
            drop(unsafe { Box::from_raw(at as *mut u128) });
        }

        #[test]
        fn no_update_is_lost() {
            let at = Box::into_raw(Box::new(u128::MAX << 64)) as usize;
            thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(move || {
                        for _ in 0..100_000 {
                            // SAFETY: the cell lives until all have ended, and is aligned.
                            unsafe { update(at as *mut u128, |old| old.wrapping_add(3 << 62)) };
                        }
                    });
                }
            });
            // SAFETY: made from a box above; nobody else uses it any more.
            let end = unsafe { *Box::from_raw(at as *mut u128) };
            assert_eq!(end, (u128::MAX << 64).wrapping_add(200_000 * (3 << 62)));
        }
    }
}

/// The elements of a strong vector access, `bytes` in all, moved as one where they are at most 16 bytes.
///
/// The ISA calls a vector access one of each element, in any order; hardware moves an aligned vector whole, and programs
/// count on it: CUB publishes a state and its value by one `st.relaxed.v2` and reads both by one `ld.relaxed.v2`.
///
/// # Safety
/// `at` is aligned to `bytes`, a power of two, and valid for reads.
#[inline(always)]
pub unsafe fn load_whole(at: u64, bytes: u64, order: atomic::Ordering) -> [u128; 2] {
    // SAFETY: `bytes` bytes are readable at `at`, a multiple of `bytes`; beyond 16 both halves are aligned to 16.
    unsafe {
        match bytes {
            1 => [u8::load_strong(at as *const u8, order).into(), 0],
            2 => [u16::load_strong(at as *const u16, order).into(), 0],
            4 => [u32::load_strong(at as *const u32, order).into(), 0],
            8 => [u64::load_strong(at as *const u64, order).into(), 0],
            16 => [u128::load_strong(at as *const u128, order), 0],
            _ => {
                let at = at as *const u128;
                [u128::load_strong(at, order), u128::load_strong(at.add(1), order)]
            }
        }
    }
}

/// # Safety
/// As for [`load_whole`], and valid for writes.
#[inline(always)]
pub unsafe fn store_whole(at: u64, bytes: u64, whole: [u128; 2], order: atomic::Ordering) {
    // SAFETY: `bytes` bytes are writable at `at`, a multiple of `bytes`; beyond 16 both halves are aligned to 16.
    unsafe {
        match bytes {
            1 => u8::store_strong(at as *mut u8, whole[0] as u8, order),
            2 => u16::store_strong(at as *mut u16, whole[0] as u16, order),
            4 => u32::store_strong(at as *mut u32, whole[0] as u32, order),
            8 => u64::store_strong(at as *mut u64, whole[0] as u64, order),
            16 => u128::store_strong(at as *mut u128, whole[0], order),
            _ => {
                let at = at as *mut u128;
                u128::store_strong(at, whole[0], order);
                u128::store_strong(at.add(1), whole[1], order);
            }
        }
    }
}

/// Element → register value and back.
pub trait Convert<D: Raw>: Raw {
    fn widen(self, signed: bool) -> D;
    fn narrow(d: D) -> Self;
}

macro_rules! convert_pair {
    ($($t:ty as $s:ty => $d:ty as $sd:ty),* $(,)?) => {$(
        impl Convert<$d> for $t {
            #[inline(always)]
            fn widen(self, signed: bool) -> $d {
                if signed { self as $s as $sd as $d } else { self as $d }
            }
            #[inline(always)]
            fn narrow(d: $d) -> $t {
                d as $t
            }
        }
    )*};
}
convert_pair!(
    u8 as i8 => u16 as i16, u8 as i8 => u32 as i32, u8 as i8 => u64 as i64,
    u16 as i16 => u16 as i16, u16 as i16 => u32 as i32, u16 as i16 => u64 as i64,
    u32 as i32 => u32 as i32, u32 as i32 => u64 as i64, u64 as i64 => u64 as i64,
    u128 as i128 => u128 as i128,
    u8 as i8 => u128 as i128, u16 as i16 => u128 as i128, u32 as i32 => u128 as i128, u64 as i64 => u128 as i128,
);
