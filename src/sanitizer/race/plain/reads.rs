//! Reads of shared memory since the block's last barrier, as long as nobody has written there since.
//!
//! What is read then is in order with everything, so that it matters only to whoever writes before the next barrier. Tiles are mostly
//! filled before one barrier and read before the next: nobody does, and these reads need not be looked at.

use std::ops::Range;

use crate::isa::lanes::WARP;
use crate::program::{Ordering, Proxy, Space};
use crate::simt::observe::{Access, Direction, RowAccess};

use super::runs::{OfRows, OfWarp, Runs};

/// Addresses that are kept.
const MANY: usize = 1 << 14;

#[derive(Default)]
pub struct Reads {
    all: Vec<Read>,
    /// Of rows the firsts, of a warp's lanes all of them.
    addresses: Vec<u64>,
}

/// By one instruction.
struct Read {
    /// The block's number of its entry.
    entry: u32,
    /// Thread of lane 0.
    first: u32,
    bytes: u32,
    lanes: Lanes,
    addresses: Range<usize>,
}

enum Lanes {
    /// All of some warps, in rows of so many lanes, of which each is so far from the one before.
    Rows { warps: usize, lanes: usize, step: u64 },
    /// These of one warp.
    OfWarp(u32),
}

impl Reads {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn has_room(&self) -> bool {
        self.addresses.len() < MANY
    }

    pub fn clear(&mut self) {
        self.all.clear();
        self.addresses.clear();
    }

    /// Keeps what warps read whose lane 0 is thread `first`.
    pub fn rows(&mut self, (entry, first): (u32, u32), rows: &RowAccess<'_>) {
        let (warps, lanes, step) = (rows.warps, rows.lanes, rows.step);
        self.keep(
            (entry, first),
            rows.bytes,
            Lanes::Rows { warps, lanes, step },
            rows.firsts,
        );
    }

    /// Keeps what lanes of a warp read.
    pub fn lanes(&mut self, (entry, first): (u32, u32), access: &Access<'_>) {
        self.keep(
            (entry, first),
            access.bytes,
            Lanes::OfWarp(access.lanes),
            access.addresses,
        );
    }

    fn keep(&mut self, (entry, first): (u32, u32), bytes: u32, lanes: Lanes, addresses: &[u64]) {
        let from = self.addresses.len();
        self.addresses.extend_from_slice(addresses);
        self.all.push(Read {
            entry,
            first,
            bytes,
            lanes,
            addresses: from..self.addresses.len(),
        });
    }

    /// Shows each, in order: the number of its entry, and its runs.
    pub fn each(&self, act: &mut dyn FnMut(u32, &mut dyn Runs)) {
        for read in &self.all {
            let addresses = &self.addresses[read.addresses.clone()];
            match read.lanes {
                Lanes::Rows { warps, lanes, step } => {
                    let rows = RowAccess {
                        warp: 0,
                        warps,
                        firsts: addresses,
                        lanes,
                        step,
                        bytes: read.bytes,
                        element: read.bytes,
                        space: Space::Shared,
                        direction: Direction::Read,
                        stored: None,
                    };
                    let mut runs = OfRows {
                        rows: &rows,
                        first: read.first,
                        lanes: 0..warps * WARP,
                    };
                    act(read.entry, &mut runs);
                }
                Lanes::OfWarp(lanes) => {
                    let access = Access {
                        warp: 0,
                        lanes,
                        addresses: &std::array::from_fn(|lane| addresses[lane]),
                        bytes: read.bytes,
                        element: read.bytes,
                        space: Space::Shared,
                        direction: Direction::Read,
                        ordering: Ordering::Weak,
                        scope: None,
                        proxy: Proxy::Generic,
                        operation: None,
                        stored: None,
                        atomic: None,
                    };
                    let mut runs = OfWarp {
                        access: &access,
                        first: read.first,
                        is_read: true,
                        rest: lanes,
                    };
                    act(read.entry, &mut runs);
                }
            }
        }
    }
}
