//! In which runs the threads of an instruction touch memory: [`OfRows`] of warps whose lanes touch it in rows, [`OfWarp`] of a warp whose
//! lanes may touch it anywhere.

use std::ops::Range;

use crate::isa::lanes::WARP;
use crate::simt::observe::{Access, Direction, RowAccess};

use super::cell::ONE_THREAD;

/// Threads that touch memory: each the `1 << shift` bytes behind those of the one before, or, by `lanes` of one warp, all the same.
#[derive(Clone, Copy)]
pub struct Run {
    /// The first of them.
    pub thread: u32,
    pub lanes: Option<u32>,
    pub address: u64,
    pub shift: u8,
    pub bytes: u64,
}

/// Runs of threads, one after the other.
pub trait Runs {
    /// Where the next one begins.
    fn address(&self) -> Option<u64>;
    fn next(&mut self) -> Option<Run>;

    /// Leaves out runs that follow and touch just what this one does.
    fn skip(&mut self, run: &Run);

    #[inline(always)]
    fn next_if(&mut self, is_fine: impl Fn(u64) -> bool) -> Option<Run>
    where
        Self: Sized,
    {
        match self.address() {
            Some(address) if is_fine(address) => self.next(),
            Some(_) | None => None,
        }
    }
}

/// Those of warps whose lanes touch memory in rows.
pub struct OfRows<'a> {
    pub rows: &'a RowAccess<'a>,
    /// Thread of lane 0.
    pub first: u32,
    /// Those that are left.
    pub lanes: Range<usize>,
}

impl OfRows<'_> {
    /// Behind the lanes that belong to the same row as `lane`.
    #[inline(always)]
    fn end(&self, lane: usize) -> usize {
        match self.rows.firsts {
            [_] => self.lanes.end,
            _ => ((lane | (self.rows.lanes - 1)) + 1).min(self.lanes.end),
        }
    }
}

impl Runs for OfRows<'_> {
    #[inline(always)]
    fn address(&self) -> Option<u64> {
        (!self.lanes.is_empty()).then(|| self.rows.address(self.lanes.start))
    }

    #[inline(always)]
    fn next(&mut self) -> Option<Run> {
        let (address, lane) = (self.address()?, self.lanes.start);
        let bytes = u64::from(self.rows.bytes);
        let mut run = Run {
            thread: self.first + lane as u32,
            lanes: None,
            address,
            shift: ONE_THREAD,
            bytes,
        };
        let mut end = lane + 1;
        if self.rows.step == bytes {
            end = self.end(lane);
            // Rows that lie behind each other are one.
            while end < self.lanes.end && self.rows.address(end) == address + bytes * (end - lane) as u64 {
                end = self.end(end);
            }
            (run.shift, run.bytes) = (bytes.trailing_zeros() as u8, bytes * (end - lane) as u64);
        } else if self.rows.step == 0 && self.rows.direction == Direction::Read {
            end = self.end(lane).min((lane / WARP + 1) * WARP);
            run.lanes = Some(mask(end - lane) << (lane % WARP));
        }
        self.lanes.start = end;
        Some(run)
    }

    #[inline(always)]
    fn skip(&mut self, run: &Run) {
        let length = self.rows.lanes.min(WARP);
        let is_whole = match run.lanes {
            Some(lanes) => lanes.count_ones() as usize == length,
            None => run.bytes == u64::from(self.rows.bytes) * self.rows.lanes as u64,
        };
        while is_whole && self.address() == Some(run.address) {
            self.lanes.start = (self.lanes.start + length).min(self.lanes.end);
        }
    }
}

/// Those in which the lanes of a warp touch memory.
pub struct OfWarp<'a> {
    pub access: &'a Access<'a>,
    /// Thread of lane 0.
    pub first: u32,
    pub is_read: bool,
    /// Lanes that are left.
    pub rest: u32,
}

impl OfWarp<'_> {
    /// How many lanes there are, from `lane` on, each of which touches what is `step` bytes behind that of the one before.
    #[inline(always)]
    fn length(&self, lane: usize, step: u64) -> usize {
        let first = self.access.addresses[lane];
        let follows = |own: &usize| {
            self.rest >> own & 1 == 1 && self.access.addresses[*own] == first.wrapping_add(step * (own - lane) as u64)
        };
        (lane + 1..WARP).take_while(follows).count() + 1
    }
}

impl Runs for OfWarp<'_> {
    #[inline(always)]
    fn address(&self) -> Option<u64> {
        (self.rest != 0).then(|| self.access.addresses[self.rest.trailing_zeros() as usize % WARP])
    }

    #[inline(always)]
    fn next(&mut self) -> Option<Run> {
        if self.rest == 0 {
            return None;
        }
        let lane = self.rest.trailing_zeros() as usize % WARP;
        let bytes = u64::from(self.access.bytes);
        let mut run = Run {
            thread: self.first + lane as u32,
            lanes: None,
            address: self.access.addresses[lane],
            shift: ONE_THREAD,
            bytes,
        };
        let mut count = 1;
        if bytes.is_power_of_two() {
            count = self.length(lane, bytes);
            if count > 1 {
                (run.shift, run.bytes) = (bytes.trailing_zeros() as u8, bytes * count as u64);
            }
        }
        // Stores of one place may be of different values: lane by lane.
        if count == 1 && self.is_read {
            count = self.length(lane, 0);
            if count > 1 {
                run.lanes = Some(mask(count) << lane);
            }
        }
        self.rest &= !(mask(count) << lane);
        Some(run)
    }

    #[inline(always)]
    fn skip(&mut self, run: &Run) {
        let bytes = u64::from(self.access.bytes);
        let (count, step) = match run.lanes {
            Some(lanes) => (lanes.count_ones() as usize, 0),
            None => ((run.bytes / bytes) as usize, bytes),
        };
        while count > 1 && self.rest != 0 && self.address() == Some(run.address) {
            let lane = self.rest.trailing_zeros() as usize % WARP;
            if self.length(lane, step) != count {
                return;
            }
            self.rest &= !(mask(count) << lane);
        }
    }
}

/// So many lanes, from the first.
fn mask(count: usize) -> u32 {
    u32::MAX >> (WARP - count.min(WARP))
}
