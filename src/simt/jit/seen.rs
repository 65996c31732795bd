//! Which ways a function's branches have gone, as the interpreter has seen. Much of a large kernel does nothing in a run: cases of other
//! parameters, what overflows, what fails. Code is made of the rest alone, which takes a part of the time; whoever comes to a branch and goes
//! another way leaves there, and the interpreter takes him on. Where that becomes too much, the function is compiled again, with what
//! has been seen since ([`super::super::interp::code::NativeForm`]).

use std::sync::atomic::{AtomicU8, Ordering};

use crate::program::{Body, End};

/// Lanes that all went to the branch's target, or all past it, and such of one warp that parted.
pub const JUMPED: u8 = 1;
pub const PASSED: u8 = 2;
pub const PARTED: u8 = 4;
const ALL: u8 = JUMPED | PASSED | PARTED;

/// By block, what its last branch has done in the interpreter's code.
#[derive(Debug, Default)]
pub struct Ways(Box<[AtomicU8]>);

impl Ways {
    pub fn of(body: &Body) -> Ways {
        Ways(body.blocks.iter().map(|_| AtomicU8::new(0)).collect())
    }

    #[inline(always)]
    pub fn note(&self, block: u32, ways: u8) {
        // Code that tests make by hand has no blocks.
        let Some(known) = self.0.get(block as usize) else {
            return;
        };
        // As a rule nothing is new, and the line stays shared.
        if known.load(Ordering::Relaxed) & ways != ways {
            known.fetch_or(ways, Ordering::Relaxed);
        }
    }

    /// What has been seen by now.
    pub fn seen(&self) -> Seen {
        Seen(self.0.iter().map(|ways| ways.load(Ordering::Relaxed)).collect())
    }
}

/// What had been seen at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen(Box<[u8]>);

impl Seen {
    /// Of a function with so many blocks, drawn from a seed: for tests.
    pub fn drawn(blocks: usize, seed: u64) -> Seen {
        // The steps of SplitMix64.
        let mix = |mut z: u64| {
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        let steps = (1..=blocks as u64).map(|n| seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        // Each way more often than not, so that some code is left.
        Seen(
            steps
                .map(|z| (mix(z) | mix(z ^ seed.rotate_left(32) ^ 1)) as u8 & ALL)
                .collect(),
        )
    }

    /// Everything, of a function with so many blocks.
    pub fn all(blocks: usize) -> Seen {
        Seen(vec![ALL; blocks].into())
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Of a function with so many blocks; `None`: it is another's.
    pub fn from_bytes(bytes: &[u8], blocks: usize) -> Option<Seen> {
        (bytes.len() == blocks && bytes.iter().all(|ways| *ways <= ALL)).then(|| Seen(bytes.into()))
    }

    /// Adds what others have seen.
    pub fn add(&mut self, other: &Seen) {
        for (ways, more) in self.0.iter_mut().zip(&other.0) {
            *ways |= more;
        }
    }

    /// Blocks with what has been seen there besides, as numbers.
    pub fn beyond(&self, before: &Seen) -> Vec<(usize, u8)> {
        let pairs = self.0.iter().zip(&before.0).enumerate();
        pairs
            .map(|(block, (now, before))| (block, now & !before))
            .filter(|(_, new)| *new != 0)
            .collect()
    }

    /// Where lanes go one by one, they may part at each branch that goes both ways.
    pub fn parting(&self) -> Seen {
        let parts = |ways: u8| {
            if ways & JUMPED != 0 && ways & PASSED != 0 {
                ALL
            } else {
                ways
            }
        };
        Seen(self.0.iter().map(|&ways| parts(ways)).collect())
    }

    /// Whether lanes were seen that took the branch at the end of a block, that did not, and such of one warp that did both.
    pub fn at(&self, block: u32, end: &End) -> [bool; 3] {
        let ways = self.0[block as usize];
        let [jumped, passed] = [JUMPED, PASSED].map(|way| ways & way != 0 || ways & PARTED != 0);
        let parted = ways & PARTED != 0;
        // The interpreter's code jumps to what does not follow (`interp/compile`).
        match end {
            End::Branch { taken, .. } if *taken == block + 1 => [passed, jumped, parted],
            _ => [jumped, passed, parted],
        }
    }

    /// Whether a block ends with a branch at which nobody was seen to do something that somebody might do.
    pub fn misses(&self, block: u32, end: &End) -> bool {
        matches!(end, End::Branch { taken, fall, .. } if taken != fall) && self.at(block, end) != [true; 3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_parts_goes_both_ways() {
        let seen = Seen(Box::new([PARTED, JUMPED, PASSED, 0, JUMPED | PASSED]));
        let end = End::Jump {
            to: 0,
            span: Default::default(),
        };
        assert_eq!(seen.at(0, &end), [true; 3]);
        assert_eq!(seen.at(1, &end), [true, false, false]);
        assert_eq!(seen.at(2, &end), [false, true, false]);
        assert_eq!(seen.at(3, &end), [false; 3]);
        assert_eq!(seen.at(4, &end), [true, true, false]);
        assert_eq!(seen.parting().at(4, &end), [true; 3]);
        assert_eq!(seen.parting().at(2, &end), [false, true, false]);
        assert!(!seen.misses(3, &end), "it does not branch");
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        let seen = Seen::drawn(100, 7);
        assert_eq!(Seen::from_bytes(seen.bytes(), 100), Some(seen.clone()));
        assert_eq!(Seen::from_bytes(seen.bytes(), 99), None);
        assert_eq!(Seen::from_bytes(&[ALL + 1], 1), None);
        let mut all = Seen::drawn(100, 8);
        assert_ne!(all, seen);
        all.add(&seen);
        for block in 0..100 {
            assert_eq!(all.0[block] & seen.0[block], seen.0[block]);
        }
    }
}
