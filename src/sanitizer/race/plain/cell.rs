//! Who touched a word of memory, in as few bits as it takes.

use crate::isa::lanes::WARP;

/// A shift by which all bytes are one thread's.
pub const ONE_THREAD: u8 = 31;

/// Who else a cell stands for, besides the thread that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Others {
    None,
    /// More lanes of its warp, in the entry's step or before.
    Warp,
    /// More warps of its block, since the same barrier.
    Block,
    /// More blocks.
    Blocks,
}

/// Nothing, or an entry, a thread of its block, and who else there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell(u32);

impl Cell {
    pub const EMPTY: Cell = Cell(0);

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// The thread's lane in its warp. The thread is the lowest part of it, and has room for a lane at least.
    #[inline(always)]
    pub fn lane(self) -> Option<u32> {
        (!self.is_empty()).then_some(self.0 % WARP as u32)
    }

    /// What it says, of the thread that is so many behind: there is room for all that the block has.
    #[inline(always)]
    pub fn behind(self, by: u32) -> Cell {
        match self.is_empty() {
            true => self,
            false => Cell(self.0 + by),
        }
    }
}

/// How many bits of a cell say which thread of the block it is, those of a lane at least: large blocks are few.
#[derive(Clone, Copy)]
pub struct Layout(u32);

impl Layout {
    pub fn of(threads: u32) -> Layout {
        Layout(threads.next_power_of_two().trailing_zeros().max(5))
    }

    /// Entries of which cells can tell.
    pub fn most_entries(self) -> usize {
        (1 << (30 - self.0)) - 1
    }

    #[inline(always)]
    pub fn one(self, entry: u32, thread: u32, others: Others) -> Cell {
        Cell((entry + 1) << (self.0 + 2) | (others as u32) << self.0 | thread)
    }

    /// Entry, thread, and who else; `None`: nobody.
    #[inline(always)]
    pub fn parts(self, cell: Cell) -> Option<(u32, u32, Others)> {
        if cell.0 == 0 {
            return None;
        }
        let others = match cell.0 >> self.0 & 3 {
            0 => Others::None,
            1 => Others::Warp,
            2 => Others::Block,
            _ => Others::Blocks,
        };
        Some(((cell.0 >> (self.0 + 2)) - 1, cell.0 & ((1 << self.0) - 1), others))
    }

    #[inline(always)]
    pub fn with(self, cell: Cell, others: Others) -> Cell {
        Cell(cell.0 & !(3 << self.0) | (others as u32) << self.0)
    }

    /// Those bits of a cell that do not say which thread it is.
    #[inline(always)]
    pub fn but_thread(self, bits: u32) -> u32 {
        bits >> self.0
    }

    /// The cell of the same thread with another number of its entry.
    pub fn renumbered(self, cell: Cell, entry: u32) -> Cell {
        let low = (1 << (self.0 + 2)) - 1;
        Cell((entry + 1) << (self.0 + 2) | cell.0 & low)
    }
}

/// Who touched a word, a byte, or a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Whoever wrote it, and may be in no order with somebody yet to come.
    pub writes: Cell,
    /// Likewise: two threads that have read it, the second with others.
    pub reads: [Cell; 2],
}

impl Touched {
    pub fn each(&mut self, act: &mut dyn FnMut(&mut Cell)) {
        act(&mut self.writes);
        self.reads.iter_mut().for_each(act);
    }
}
