//! Which tier is the quicker one for a function: what launches of the same size took in each.
//!
//! Compiled code is, as a rule; not where a kernel meets at a barrier every few instructions. What a launch has to do depends on more than its
//! size, so no decision is for good: whoever is preferred and takes longer than the other one did has to give way.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// The size of a launch: grid and block.
pub type Size = [[u32; 3]; 2];

/// Launches that take less time than this are not compared.
const COMPARED: Duration = Duration::from_millis(1);

/// Launches in a row that compiled code loses until it is not used: a single one may have been held up by whatever else runs.
const LOSSES: u32 = 3;

#[derive(Default)]
pub struct Contest {
    /// How long the last launch took in the interpreter, and its size.
    interpreted: Mutex<Option<(Size, Duration)>>,
    /// So many launches of compiled code in a row took longer.
    losses: AtomicU32,
    /// Enough of them to use the interpreter.
    lost: AtomicBool,
    /// How long the last one of those took, in nanoseconds.
    took: AtomicU64,
}

impl Contest {
    /// Whether the interpreter is to be preferred to compiled code.
    #[inline(always)]
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// There is other code.
    pub fn begin_anew(&self) {
        self.losses.store(0, Ordering::Relaxed);
        self.lost.store(false, Ordering::Relaxed);
    }

    /// Compiled code did a launch; gives how long the interpreter took, if that is to be preferred from now on.
    pub fn compiled(&self, size: Size, time: Duration) -> Option<Duration> {
        if time < COMPARED {
            if self.losses.load(Ordering::Relaxed) != 0 {
                self.losses.store(0, Ordering::Relaxed);
            }
            return None;
        }
        let (_, interpreted) = self.interpreted.lock().filter(|&(same, _)| same == size)?;
        if time <= interpreted + interpreted / 8 {
            self.losses.store(0, Ordering::Relaxed);
            return None;
        }
        if self.losses.fetch_add(1, Ordering::Relaxed) + 1 < LOSSES {
            return None;
        }
        self.took.store(nanoseconds(time), Ordering::Relaxed);
        self.lost.store(true, Ordering::Relaxed);
        Some(interpreted)
    }

    /// The interpreter has done a launch.
    pub fn interpreted(&self, size: Size, time: Duration) {
        if time < COMPARED {
            return;
        }
        self.is_interpreted(time);
        *self.interpreted.lock() = Some((size, time));
    }

    /// The interpreter has been at a launch for so long: if compiled code took less for the last one, it is to be preferred again. What the
    /// interpreter would take now is not known then.
    pub fn is_interpreted(&self, time: Duration) {
        if self.is_lost() && nanoseconds(time) > self.took.load(Ordering::Relaxed) {
            *self.interpreted.lock() = None;
            self.begin_anew();
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Size = [[8, 1, 1], [256, 1, 1]];
    const LARGE: Size = [[9, 1, 1], [256, 1, 1]];
    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    /// Compiled code has lost to 18 ms with 24.
    fn lost() -> Contest {
        let contest = Contest::default();
        contest.interpreted(SMALL, ms(18));
        assert_eq!(contest.compiled(SMALL, ms(24)), None);
        assert_eq!(contest.compiled(SMALL, ms(24)), None);
        assert!(!contest.is_lost());
        assert_eq!(contest.compiled(SMALL, ms(24)), Some(ms(18)));
        assert!(contest.is_lost());
        contest
    }

    #[test]
    fn who_takes_longer_launch_after_launch_gives_way() {
        let contest = lost();
        contest.interpreted(SMALL, ms(18));
        contest.interpreted(SMALL, ms(24));
        assert!(contest.is_lost());
    }

    #[test]
    fn a_launch_that_was_held_up_decides_nothing() {
        let contest = Contest::default();
        contest.interpreted(SMALL, ms(18));
        for time in [24, 24, 17, 24, 24, 20, 24, 24] {
            assert_eq!(contest.compiled(SMALL, ms(time)), None);
        }
        assert!(!contest.is_lost());
    }

    #[test]
    fn launches_of_other_sizes_and_short_ones_are_not_compared() {
        let contest = Contest::default();
        contest.interpreted(SMALL, ms(18));
        for _ in 0..5 {
            assert_eq!(contest.compiled(LARGE, ms(100)), None);
        }
        contest.interpreted(SMALL, Duration::from_micros(20));
        for _ in 0..5 {
            assert_eq!(contest.compiled(SMALL, Duration::from_micros(500)), None);
        }
    }

    /// The same grid may have more to do than before: a loop with the grid's stride.
    #[test]
    fn the_interpreter_gives_way_when_it_takes_longer_than_code_did() {
        let contest = lost();
        contest.interpreted(SMALL, ms(800));
        assert!(!contest.is_lost());
        for _ in 0..5 {
            assert_eq!(contest.compiled(SMALL, ms(25)), None);
        }
        assert!(!contest.is_lost());
        let contest = lost();
        contest.is_interpreted(ms(20));
        assert!(contest.is_lost());
        contest.is_interpreted(ms(25));
        assert!(!contest.is_lost(), "before the launch is over");
        for _ in 0..5 {
            assert_eq!(contest.compiled(SMALL, ms(24)), None);
        }
    }

    #[test]
    fn other_code_is_given_a_chance() {
        let contest = lost();
        contest.begin_anew();
        assert!(!contest.is_lost());
        assert_eq!(contest.compiled(SMALL, ms(24)), None);
        assert!(!contest.is_lost());
    }
}
