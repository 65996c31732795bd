//! What is known of where an access goes, and of the registers that addresses come from.

use crate::program::Element;

use super::super::Pc;

/// Where the lanes of an access go.
#[derive(Clone)]
pub(super) enum Place {
    /// One address, or one a part, from which lanes follow each other by so many bytes: none, an access's, or a few times as
    /// many.
    Lines {
        at: Vec<String>,
        step: u64,
        /// Bytes before the first lane's access and behind the last one's that may be read as well.
        around: (u64, u64),
    },
    /// One address a part, from which those lanes that run follow each other; of others nothing is known, but where the row is
    /// `whole`: they have memory in it, too.
    Rows { at: Vec<String>, whole: bool },
    /// A distance from a number for each lane.
    Lanes(Spread),
    /// One address a part, from which lanes that run load words with these numbers ([`super::near`]).
    Near { at: Vec<String>, words: Vec<String> },
    /// One address a part, from which lanes store to the words that have a bit ([`super::near`]).
    Butterflies { at: Vec<String>, places: Vec<String> },
}

/// Distances from a number.
#[derive(Clone)]
pub(super) struct Spread {
    pub(super) base: String,
    /// Vectors of so many bits; no distance of a lane that runs has its sign.
    pub(super) distances: Vec<String>,
    pub(super) bits: u32,
    /// Bytes that a distance of one stands for.
    pub(super) scale: u64,
    /// How many bytes from the number on there is memory, if that is one stretch: a number of 64 bits.
    pub(super) end: Option<String>,
}

/// What an access moves for each lane.
#[derive(Clone, Copy)]
pub(super) struct Moved {
    /// Bytes of an element.
    pub(super) size: u64,
    /// Elements.
    pub(super) count: u64,
    pub(super) stores: bool,
}

impl Moved {
    /// Of an access that code carries out itself.
    pub(super) fn of(element: Element, count: usize, stores: bool) -> Option<Moved> {
        let (size, count) = (u64::from(element.bytes), count as u64);
        let moved = Moved { size, count, stores };
        let bytes = moved.bytes();
        (size <= 8 && bytes <= 32 && bytes.is_power_of_two()).then_some(moved)
    }
    /// Of several elements that go as one of at most eight bytes.
    pub(super) fn packed(element: Element, count: usize, stores: bool) -> Option<Moved> {
        let size = u64::from(element.bytes) * count as u64;
        let count = 1;
        matches!(size, 2 | 4 | 8).then_some(Moved { size, count, stores })
    }
    pub(super) fn bytes(self) -> u64 {
        self.size * self.count
    }
}

/// What is accessed, and whether it has to be looked at the long way.
pub(super) struct Located {
    pub(super) place: Place,
    pub(super) bad: String,
    pub(super) site: Option<usize>,
    /// An address that may be read in any case, once nothing is bad.
    pub(super) safe: String,
}

/// What is known of an access that belongs to a group.
#[derive(Clone)]
pub(super) struct Member {
    /// It may go where it goes: so far behind where the group begins.
    pub(super) start: Place,
    pub(super) delta: i64,
    /// An address that may be read.
    pub(super) safe: String,
}

/// Loads of words of so many bytes side by side that are done together, by how far they are from their register.
pub(super) struct Words {
    pub(super) size: u64,
    pub(super) pcs: Vec<Pc>,
}

/// An alignment to look at: of the address so many bytes behind.
pub(super) type Multiple = Option<(u64, i64)>;

/// What a register of 64 bits holds whose lanes are addresses of elements ([`super::indexed`]).
#[derive(Clone)]
pub(super) struct Indexed {
    /// A number for all lanes; none: zero.
    pub(super) base: Option<String>,
    /// By part.
    pub(super) index: Vec<String>,
    pub(super) signed: bool,
    /// Bytes from one index to the next.
    pub(super) scale: u64,
    /// In which order such values were found.
    pub(super) number: usize,
}

/// Bytes between rows that are looked at as one: not so many that those next to each other often lie in memory of different allocations.
const FAR: u64 = 1 << 16;

/// Rows that lie at known distances from each other, not far.
pub(super) struct Near {
    /// Which of them begins first.
    pub(super) least: usize,
    /// How far each is behind that one.
    pub(super) behind: Vec<u64>,
    /// How far the last one is.
    pub(super) span: u64,
}

impl Near {
    /// `begins`: distances from one of them.
    pub(super) fn of(begins: Vec<i64>) -> Option<Near> {
        let (least, &first) = begins.iter().enumerate().min_by_key(|(_, begin)| **begin)?;
        let behind: Vec<u64> = begins.iter().map(|begin| begin.abs_diff(first)).collect();
        let span = behind.iter().copied().max()?;
        (span <= FAR).then_some(Near { least, behind, span })
    }
}
