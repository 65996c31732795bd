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
//!
//! That everybody is as likely to run is one [`Strategy`]; others mean to bring rare orders about, and leave so much to chance
//! that everybody has his turn all the same.

use std::sync::atomic::{AtomicU64, Ordering};

use super::launch::Launch;
use super::seed::{Drawn, GOLDEN, mix};
pub use super::seed::{Seed, Strategy};

/// Blocks that a grid has resident at least, and how many more there may be.
const FEWEST: u64 = 2;
const SPREAD: u64 = 15;
/// Turns last from one instruction to two to the power of this.
const LONGEST: u64 = 12;
/// Blocks next in line, among which the one that starts is drawn.
pub const IN_LINE: usize = 8;
/// Of so many choices that follow an intention, one is left to chance: nobody waits for ever.
const BY_CHANCE: u64 = 16;
/// After about so many choices priorities are drawn anew.
const PRIORITIES_LAST: u64 = 64;
/// Blocks or clusters that are reversed among themselves: no more than may be resident, for programs count on earlier blocks.
const REVERSED: u64 = 64;
/// One of so many bundles and places is kept waiting, and one of so many blocks squared, or none.
const DELAYED: u64 = 2;
/// How often those who wait in vain come back: once in so many turns.
const VAIN: u64 = 2;
/// The target that brought independent thread scheduling.
const VOLTA: u32 = 70;

/// What is drawn for one grid. One thread draws, so that the order of the draws is the same every time.
pub struct Schedule {
    state: AtomicU64,
    strategy: Strategy,
    /// The victim of a delay, or what priorities are made from.
    aim: AtomicU64,
    /// Blocks that take turns.
    pub resident: usize,
    /// Most warps in a bundle.
    pub width: u32,
    /// Fragments of a warp run in any order and need not meet again.
    pub apart: bool,
}

impl Schedule {
    pub fn new(seed: Drawn, launch: &Launch) -> Schedule {
        let target = launch.code.module.functions[launch.kernel as usize]
            .kernel
            .as_ref()
            .map_or(0, |kernel| kernel.target);
        let mut schedule = Schedule {
            state: AtomicU64::new(seed.number),
            strategy: seed.strategy,
            aim: AtomicU64::new(mix(seed.number)),
            resident: 0,
            width: 0,
            apart: target == 0 || target >= VOLTA,
        };
        schedule.resident = (FEWEST + schedule.below(SPREAD)) as usize;
        // Warps of a bundle run in step: most often each is alone.
        schedule.width = [1, 1, 2, 4][schedule.below(4) as usize];
        // Who means something by an order means it of warps.
        if schedule.strategy != Strategy::Random {
            schedule.width = 1;
        }
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

    /// One of those for which `is` holds, as the strategy has it; `key` tells who they are, later ones by larger numbers.
    pub fn choose(
        &self,
        whom: Whom,
        count: usize,
        key: impl Fn(usize) -> u64,
        is: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let among = || (0..count).filter(|&i| is(i));
        let by_chance = match self.strategy {
            Strategy::Random | Strategy::Late | Strategy::Early => true,
            Strategy::Priority | Strategy::Delay | Strategy::Backwards => self.one_in(BY_CHANCE),
        };
        if by_chance {
            return self.one_of(count, is);
        }
        let aim = self.aim.load(Ordering::Relaxed);
        match self.strategy {
            Strategy::Priority => {
                if self.one_in(PRIORITIES_LAST) {
                    self.turn_over();
                }
                among().max_by_key(|&i| mix(aim ^ mix(key(i))))
            }
            Strategy::Delay => {
                let others = self.one_of(count, |i| is(i) && !is_victim(whom, key(i), aim));
                others.or_else(|| among().next())
            }
            Strategy::Backwards => among().max_by_key(|&i| key(i)),
            Strategy::Random | Strategy::Late | Strategy::Early => self.one_of(count, is),
        }
    }

    /// A bundle has been chosen for want of others, and other blocks come first as long as they get on.
    pub fn holds_back(&self, key: u64) -> bool {
        let aim = self.aim.load(Ordering::Relaxed);
        self.strategy == Strategy::Delay && is_victim(Whom::Bundles, key, aim) && !self.one_in(BY_CHANCE)
    }

    /// Who was chosen waits for others, as it seems: those come first from now on.
    pub fn turn_over(&self) {
        // Without an intention nothing is drawn that was not.
        if !matches!(self.strategy, Strategy::Priority | Strategy::Delay) {
            return;
        }
        self.aim
            .store(mix(self.state.fetch_add(GOLDEN, Ordering::Relaxed)), Ordering::Relaxed);
    }

    /// The number of what starts as number `index` of so many.
    pub fn start(&self, index: u64, starts: u64) -> u64 {
        if self.strategy != Strategy::Backwards {
            return index;
        }
        let first = index / REVERSED * REVERSED;
        let last = (first + REVERSED).min(starts) - 1;
        last - (index - first)
    }

    /// Whether something that goes on asynchronously ends now: `None`: that is drawn.
    pub fn completes(&self) -> Option<bool> {
        match self.strategy {
            Strategy::Late => Some(false),
            Strategy::Early => Some(true),
            Strategy::Random | Strategy::Priority | Strategy::Delay | Strategy::Backwards => None,
        }
    }

    /// Those who wait at barriers in memory come back with nothing now, as they may at any time.
    pub fn wakes_in_vain(&self) -> bool {
        self.strategy == Strategy::Early && self.one_in(VAIN)
    }
}

/// Among whom somebody is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    Blocks,
    Bundles,
    Fragments,
}

/// Whom a delay is aimed at.
fn is_victim(whom: Whom, key: u64, aim: u64) -> bool {
    match whom {
        Whom::Blocks => aim & 3 << 32 == 0 && key % (DELAYED * DELAYED) == (aim >> 16) % (DELAYED * DELAYED),
        Whom::Bundles | Whom::Fragments => key % DELAYED == aim % DELAYED,
    }
}
