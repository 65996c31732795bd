//! The random numbers of a schedule (`schedule.rs`): they depend on `MARGAY_SEED` and on the launch's own number alone.

use std::sync::atomic::{AtomicU64, Ordering};

/// Where a launch's random numbers come from.
#[derive(Debug)]
pub struct Seed {
    number: u64,
    /// What is launched more than once (a graph's node) is not the same every time.
    runs: AtomicU64,
}

impl Seed {
    /// For launch number `launch` of a process, or of whatever else counts launches.
    pub fn new(seed: u64, launch: u64) -> Seed {
        Seed {
            number: mix(mix(seed) ^ launch),
            runs: AtomicU64::new(0),
        }
    }

    pub(super) fn next_run(&self) -> u64 {
        below(self.number, self.runs.fetch_add(1, Ordering::Relaxed))
    }
}

/// The seed of the `n`-th thing below one.
pub fn below(seed: u64, n: u64) -> u64 {
    mix(seed ^ mix(n ^ 0xC0DE))
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
pub(super) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(GOLDEN);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

pub(super) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
