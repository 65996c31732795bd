//! Warps that go round in a circle: they stand as they have stood before, registers and all, so whatever they read has to change
//! before they do anything else.

use std::ops::Range;

/// How some warps stood at one time, and whether they have come back to that since (R. P. Brent, An improved Monte Carlo
/// factorization algorithm, 1980: the length of a circle need not be known).
#[derive(Default)]
pub(super) struct Circle {
    warps: Range<usize>,
    stand: u64,
    /// In which moment that was, and the last one in which it was so again.
    since: u64,
    last: u64,
    /// How often they have stood in another way since, and after how many times another stand is remembered.
    others: u64,
    most: u64,
}

impl Circle {
    pub fn stands(&mut self, warps: Range<usize>, stand: u64, moment: u64) {
        if self.most != 0 && self.stand == stand && self.warps == warps {
            self.last = moment;
            self.others = 0;
            return;
        }
        self.others += 1;
        if self.others >= self.most {
            *self = Circle {
                warps,
                stand,
                since: moment,
                last: moment,
                others: 0,
                most: (2 * self.most).max(1),
            };
        }
    }

    pub fn has(&self, warp: usize) -> bool {
        self.warps.contains(&warp)
    }

    /// They have come back after more than a moment: in one, all that can get on has had its turn.
    pub fn is_closed(&self) -> bool {
        self.last > self.since + 1
    }

    pub fn is_recent(&self, moment: u64) -> bool {
        self.last >= moment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether warps that stand in these ways, four times a moment, go round in a circle.
    fn closes(stands: impl Iterator<Item = u64>) -> bool {
        let mut circle = Circle::default();
        for (i, stand) in stands.enumerate() {
            circle.stands(0..1, stand, i as u64 / 4);
        }
        circle.is_closed()
    }

    #[test]
    fn whoever_stands_as_before_goes_round() {
        assert!(closes((0..100).map(|_| 7)));
        // On a way into the circle, and of some length.
        assert!(closes((0..100).map(|i| if i < 5 { i } else { 10 + i % 3 })));
        assert!(closes((0..400).map(|i| i % 17)));
    }

    #[test]
    fn whoever_counts_does_not() {
        assert!(!closes(0..1000));
        // The same for a short while only.
        assert!(!closes((0..1000).map(|i| i / 4)));
    }
}
