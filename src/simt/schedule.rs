//! Schedules from a seed (`MARGAY_SEED`): one legal interleaving of a grid's threads, the same one every time.
//!
//! Without a seed the workers share a grid as they come to it. With one, a single thread runs the grid, and what hardware
//! leaves open is drawn from random numbers: how many blocks are resident, which of those in line starts next, how many
//! warps form a bundle, whose turn it is and for how many instructions, which fragment of a diverged warp runs, and whether
//! fragments that meet become one. The numbers depend on the seed and on the launch's own number, so neither on the
//! number of workers nor on time. What reads a clock or sleeps (`%clock`, `%globaltimer`, `nanosleep`) still sees the real
//! one, and independent streams still run side by side.
//!
//! Everybody who can run is drawn sooner or later, so that the progress which threads are promised (PTX ISA, since sm_70)
//! holds under every seed. Programs for older targets may count on warps that come together again as soon as they can:
//! there only blocks and bundles are drawn.

use std::sync::atomic::{AtomicU64, Ordering};

use super::launch::Launch;
use super::seed::{GOLDEN, mix};
pub use super::seed::{Seed, below};

/// Blocks that a grid has resident at least, and how many more there may be.
const FEWEST: u64 = 2;
const SPREAD: u64 = 15;
/// Turns last from one instruction to two to the power of this.
const LONGEST: u64 = 12;
/// Blocks next in line, among which the one that starts is drawn.
pub const IN_LINE: usize = 8;
/// The target that brought independent thread scheduling.
const VOLTA: u32 = 70;

/// What is drawn for one grid. One thread draws, so that the order of the draws is the same every time.
pub struct Schedule {
    state: AtomicU64,
    /// Blocks that take turns.
    pub resident: usize,
    /// Most warps in a bundle.
    pub width: u32,
    /// Fragments of a warp run in any order and need not meet again.
    pub apart: bool,
}

impl Schedule {
    pub fn new(seed: u64, launch: &Launch) -> Schedule {
        let target = launch.code.module.functions[launch.kernel as usize]
            .kernel
            .as_ref()
            .map_or(0, |kernel| kernel.target);
        let mut schedule = Schedule {
            state: AtomicU64::new(seed),
            resident: 0,
            width: 0,
            apart: target == 0 || target >= VOLTA,
        };
        schedule.resident = (FEWEST + schedule.below(SPREAD)) as usize;
        // Warps of a bundle run in step: most often each is alone.
        schedule.width = [1, 1, 2, 4][schedule.below(4) as usize];
        schedule
    }

    /// A number below `n`, which is not 0.
    pub fn below(&self, n: u64) -> u64 {
        let state = self.state.fetch_add(GOLDEN, Ordering::Relaxed);
        ((u128::from(mix(state)) * u128::from(n)) >> 64) as u64
    }

    pub fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Instructions that a turn lasts: as often a few as many.
    pub fn turn(&self) -> i64 {
        let most = 1 << self.below(LONGEST + 1);
        1 + self.below(most) as i64
    }

    /// One of those for which `is` holds; `None`: there is none.
    pub fn one_of(&self, count: usize, is: impl Fn(usize) -> bool) -> Option<usize> {
        let candidates = (0..count).filter(|&i| is(i)).count();
        if candidates == 0 {
            return None;
        }
        let chosen = self.below(candidates as u64) as usize;
        (0..count).filter(|&i| is(i)).nth(chosen)
    }
}
