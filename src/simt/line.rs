//! Blocks that have begun on a worker and wait for their next turn, and when others start beside them.
//!
//! A round gives each of them a turn, alternately from either end, so that a chain of blocks each of which waits for its
//! neighbour unwinds in one round whatever its direction. Between rounds more blocks start: when all have spun and nobody else
//! works, for the block that they wait for may not have started; a few if others work; else only when the round has seen an end, or
//! nothing for long. More blocks than that would get in each other's way: where each takes the next row of a list and waits for the
//! rows before it, the fewer have begun the less they wait.

use std::time::{Duration, Instant};

/// After so long without an end more blocks start, though none seems to wait. Where some do, and others work, it is one, and the more
/// there are the later: a block may wait in a way that is not seen.
const LONG: Duration = Duration::from_millis(100);
/// Blocks that a worker opens while those that he has wait for others' work.
const FEW: usize = 4;

/// What other workers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// There are none.
    None,
    /// More than to spin.
    Work,
    /// Nothing else, for a while.
    Wait,
}

/// `T` is a block and where it runs.
pub struct Line<T> {
    /// In the order of their start; those that have ended or have their turn leave a gap until the round is over.
    open: Vec<Option<T>>,
    /// Set aside in their first turn.
    fresh: Vec<T>,
    /// How many had their turn in this round, from the end at which it began.
    had: usize,
    backwards: bool,
    /// The last one that had its turn comes from a round.
    old: bool,
    /// Blocks that may start before the round goes on.
    room: usize,
    /// Most that are open at a time.
    most: usize,
    all_at_once: bool,
    spins: bool,
    /// Somebody did more than to spin.
    worked: bool,
    ended: bool,
    /// Somebody has spun, in whatever round.
    has_spun: bool,
    last_start: Option<Instant>,
}

impl<T> Line<T> {
    /// A line of at most `most` blocks, or as many as there are, `all_at_once`.
    pub fn new(most: usize, all_at_once: bool) -> Line<T> {
        let most = if all_at_once { usize::MAX } else { most };
        Line {
            open: Vec::new(),
            fresh: Vec::new(),
            had: 0,
            backwards: true,
            old: false,
            room: 0,
            most,
            all_at_once,
            spins: false,
            worked: false,
            ended: false,
            has_spun: false,
            last_start: None,
        }
    }

    /// Whether a block may start now.
    pub fn has_room(&mut self, others: impl FnOnce() -> Others) -> bool {
        if self.had == self.open.len() {
            self.begin_round(others);
        }
        self.room > 0 || self.open.is_empty()
    }

    /// A block has started, and has its first turn.
    pub fn started(&mut self) {
        self.room = self.room.saturating_sub(1);
        self.old = false;
    }

    /// Whose turn it is; `None`: there is nobody. To be asked after [`Line::has_room`].
    pub fn next(&mut self) -> Option<T> {
        while self.had < self.open.len() {
            self.had += 1;
            let place = self.place();
            if let Some(block) = self.open[place].take() {
                self.old = true;
                return Some(block);
            }
        }
        None
    }

    /// The block that had its turn has ended.
    pub fn ended(&mut self) {
        self.ended = true;
    }

    /// The block that had its turn waits for the next one; whether it `spins`, and whether it did more than that.
    pub fn set_aside(&mut self, block: T, (spins, worked): (bool, bool)) {
        self.spins |= spins;
        self.has_spun |= spins;
        self.worked |= worked;
        if self.old {
            let place = self.place();
            self.open[place] = Some(block);
        } else {
            self.fresh.push(block);
        }
    }

    /// Everybody had a turn in this round, and none did more than to spin: what they wait for is for somebody else to do.
    pub fn is_in_vain(&self) -> bool {
        self.had == self.open.len() && self.spins && !self.worked && !self.ended
    }

    /// Nobody waits for a turn.
    pub fn is_empty(&self) -> bool {
        self.open.iter().all(Option::is_none) && self.fresh.is_empty()
    }

    /// All who are left.
    pub fn into_blocks(self) -> impl Iterator<Item = T> {
        self.open.into_iter().flatten().chain(self.fresh)
    }

    /// Where the last one stands that had its turn in the round.
    fn place(&self) -> usize {
        if self.backwards {
            self.open.len() - self.had
        } else {
            self.had - 1
        }
    }

    fn begin_round(&mut self, others: impl FnOnce() -> Others) {
        let in_vain = self.is_in_vain().then(others);
        self.open.retain(Option::is_some);
        self.open.extend(self.fresh.drain(..).map(Some));
        if self.open.is_empty() {
            (self.had, self.spins, self.worked, self.ended) = (0, false, false, false);
            return;
        }
        (self.had, self.backwards) = (0, !self.backwards);
        let open = self.open.len();
        let more = match in_vain {
            _ if self.all_at_once => usize::MAX - open,
            Some(Others::None) => 1 + open / 8,
            // It took a while to see, and may be so again.
            Some(Others::Wait) => open,
            _ if self.nothing_for_long() => match self.has_spun {
                true => 1,
                false => 1 + open / 8,
            },
            Some(Others::Work) => usize::from(open < FEW),
            None => usize::from(self.ended),
        };
        self.room = more.min(self.most.saturating_sub(open));
        (self.spins, self.worked, self.ended) = (false, false, false);
    }

    fn nothing_for_long(&mut self) -> bool {
        let patience = match self.has_spun {
            true => LONG * self.open.len() as u32,
            false => LONG,
        };
        let now = Instant::now();
        let long = now - *self.last_start.get_or_insert(now) > patience;
        if self.ended || long {
            self.last_start = Some(now);
        }
        long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of `line` until a block starts or `count` are over.
    fn turns(line: &mut Line<u32>, count: usize, spins: bool) -> Vec<u32> {
        let mut order = Vec::new();
        while order.len() < count && !line.has_room(|| Others::None) {
            let block = line.next().expect("somebody is there");
            order.push(block);
            line.set_aside(block, (spins, !spins));
        }
        order
    }

    fn start(line: &mut Line<u32>, block: u32, spins: bool) {
        assert!(line.has_room(|| Others::None));
        line.started();
        line.set_aside(block, (spins, !spins));
    }

    #[test]
    fn who_spins_lets_others_start_and_rounds_turn_about() {
        let mut line = Line::new(4, false);
        start(&mut line, 0, true);
        start(&mut line, 1, true);
        assert_eq!(turns(&mut line, 9, true), [0]);
        start(&mut line, 2, true);
        assert_eq!(turns(&mut line, 9, true), [1, 0]);
        start(&mut line, 3, true);
        // No more than four.
        assert_eq!(turns(&mut line, 9, true), [0, 1, 2, 3, 2, 1, 0, 0, 1]);
    }

    #[test]
    fn who_works_goes_on_alone() {
        let mut line = Line::new(100, false);
        start(&mut line, 0, false);
        assert_eq!(turns(&mut line, 5, false), [0; 5]);
        // Until it has ended.
        assert!(!line.has_room(|| Others::None));
        assert_eq!(line.next(), Some(0));
        line.ended();
        assert!(line.has_room(|| Others::None));
    }

    /// How many of a hundred blocks start in as many rounds in which each spins, has `worked` or not.
    fn started(worked: bool, others: Others) -> usize {
        let mut line = Line::new(100, false);
        let mut count = 0;
        for _ in 0..100 {
            while line.has_room(|| others) && count < 100 {
                line.started();
                line.set_aside(count, (true, worked));
                count += 1;
            }
            while let Some(block) = line.next() {
                line.set_aside(block, (true, worked));
            }
        }
        count
    }

    #[test]
    fn blocks_that_wait_for_work_of_others_are_few() {
        assert_eq!(started(false, Others::Wait), 100);
        assert_eq!(started(false, Others::Work), FEW);
        // The one that had its turn goes on.
        assert_eq!(started(true, Others::None), 1);
    }

    #[test]
    fn all_of_a_cooperative_grid_start() {
        let mut line = Line::new(1, true);
        for block in 0..1000 {
            start(&mut line, block, false);
        }
        assert_eq!(line.into_blocks().count(), 1000);
    }

    #[test]
    fn a_round_in_which_somebody_spins_and_nobody_ends_is_in_vain() {
        let mut line: Line<u32> = Line::new(2, false);
        assert!(line.has_room(|| Others::None));
        line.started();
        line.set_aside(7, (true, false));
        assert!(line.is_in_vain());
        // Another one starts, and then the first has its turn.
        assert!(line.has_room(|| Others::None) && !line.is_in_vain());
        line.started();
        line.set_aside(8, (false, true));
        assert!(!line.has_room(|| Others::None));
        let first = line.next().expect("it waits for its turn");
        line.set_aside(first, (false, true));
        assert!(!line.is_in_vain());
    }
}
