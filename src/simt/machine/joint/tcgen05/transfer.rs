//! `tcgen05.ld`, `tcgen05.st` (PTX ISA, tcgen05, Data Movement Shape; Matrix fragments): a warp's registers from and to
//! the quarter of the lanes of tensor memory that the warp reaches. They are done where they stand.

use crate::isa::joint::tcgen05::{Extreme, Reduced, Reduction, Shape, Transfer};
use crate::isa::lanes::WARP;
use crate::simt::machine::tensor_memory::{Asked, Memory, Misuse, Place};

/// Lanes that one warp of four reaches.
const QUARTER: usize = 32;

/// Where a warp's registers are in tensor memory.
#[derive(Clone, Copy)]
pub struct Window {
    transfer: Transfer,
    place: Place,
    /// Columns from one half to the other of `.16x32bx2`.
    distance: usize,
}

impl Window {
    /// # Errors
    /// The warp, number `warp` of its four, does not reach that, or it is not allocated.
    pub fn of(
        transfer: Transfer,
        (address, distance): (u32, u32),
        warp: usize,
        (memory, asked): (&Memory, Asked),
    ) -> Result<Window, Misuse> {
        let place = Place::of(address);
        let own = QUARTER * warp;
        let lanes = match transfer.shape {
            Shape::Lane32 => own..own + 1,
            Shape::Lane16Bits64 | Shape::Lane16Bits128 | Shape::Lane16Bits256 | Shape::Lane16Twice => own..own + 17,
        };
        if !lanes.contains(&place.lane) || !place.lane.is_multiple_of(16) {
            let lane = place.lane;
            let end = own + QUARTER - 1;
            return Err(format!(
                "tensor memory from lane {lane} on by warp {warp} of four, which reaches lanes {own} to {end} of it"
            ));
        }
        let words = transfer.columns() * usize::from(transfer.repeat);
        let columns = if transfer.packed { 2 * words } else { words };
        memory.check(place.column, columns, asked)?;
        let distance = distance as usize;
        if transfer.shape == Shape::Lane16Twice {
            memory.check(place.column.saturating_add(distance), columns, asked)?;
        }
        Ok(Window {
            transfer,
            place,
            distance,
        })
    }

    /// Lane and column of what register `r` of thread `l` holds; of the first half of it, if it is packed.
    #[inline(always)]
    pub fn cell(&self, l: usize, r: usize) -> (usize, usize) {
        let (lane, word, beyond) = match self.transfer.shape {
            Shape::Lane32 => (l, r, 0),
            Shape::Lane16Bits64 => (l / 4 + 8 * (l % 2), l / 2 % 2 + 2 * r, 0),
            Shape::Lane16Bits128 => (l / 4 + 8 * (r % 2), l % 4 + 4 * (r / 2), 0),
            Shape::Lane16Bits256 => (l / 4 + 8 * (r / 2 % 2), r % 2 + 2 * (l % 4) + 8 * (r / 4), 0),
            Shape::Lane16Twice => (l % 16, r, l / 16 * self.distance),
        };
        let word = if self.transfer.packed { 2 * word } else { word };
        (self.place.lane + lane, self.place.column + word + beyond)
    }

    pub fn is_packed(&self) -> bool {
        self.transfer.packed
    }

    /// Register `r` of all threads.
    pub fn load(&self, memory: &Memory, r: usize) -> [u32; WARP] {
        std::array::from_fn(|l| {
            let (lane, column) = self.cell(l, r);
            match self.transfer.packed {
                false => memory.cell(lane, column),
                true => memory.cell(lane, column) & 0xffff | memory.cell(lane, column + 1) << 16,
            }
        })
    }

    pub fn store(&self, memory: &mut Memory, r: usize, active: u32, values: &[u32; WARP]) {
        for (l, &value) in values.iter().enumerate().filter(|(l, _)| active >> l & 1 == 1) {
            let (lane, column) = self.cell(l, r);
            match self.transfer.packed {
                false => memory.set(lane, column, value),
                true => {
                    memory.set(lane, column, value & 0xffff);
                    memory.set(lane, column + 1, value >> 16);
                }
            }
        }
    }
}

const NAN: u32 = 0x7fff_ffff;

impl Reduction {
    /// What `tcgen05.ld.red` finds among what a thread loads. Of floats, NaNs count only with `.NaN`.
    pub fn of(self, values: &[u32]) -> u32 {
        let key = |&value: &u32| self.key(value);
        let found = match (self.ty, self.extreme) {
            (Reduced::F32 { nan: true, .. }, _) if values.iter().any(|&v| is_nan(v)) => return NAN,
            (Reduced::F32 { .. }, Extreme::Min) => values.iter().filter(|&&v| !is_nan(v)).min_by_key(|v| key(v)),
            (Reduced::F32 { .. }, Extreme::Max) => values.iter().filter(|&&v| !is_nan(v)).max_by_key(|v| key(v)),
            (Reduced::U32 | Reduced::S32, Extreme::Min) => values.iter().min_by_key(|v| key(v)),
            (Reduced::U32 | Reduced::S32, Extreme::Max) => values.iter().max_by_key(|v| key(v)),
        };
        match (found, self.ty) {
            (None, _) => NAN,
            (Some(value), Reduced::F32 { abs: true, .. }) => value & 0x7fff_ffff,
            (Some(value), _) => *value,
        }
    }

    /// Ordered as the values are.
    fn key(self, value: u32) -> i64 {
        match self.ty {
            Reduced::U32 => i64::from(value),
            Reduced::S32 => i64::from(value as i32),
            Reduced::F32 { abs: true, .. } => i64::from(value & 0x7fff_ffff),
            // Of sign and magnitude: -0 comes before +0.
            Reduced::F32 { abs: false, .. } if value >> 31 == 1 => !i64::from(value & 0x7fff_ffff),
            Reduced::F32 { abs: false, .. } => i64::from(value),
        }
    }

    /// `.spcompress.sp::2:4`: of each four values the two that come first in the order of the reduction, in their places'
    /// order, and their places, two bits each; of equal ones the first. The manual names the operation, not the order of
    /// ties.
    pub fn compress(self, values: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let mut kept = Vec::with_capacity(values.len() / 2);
        let mut metadata = vec![0; values.len().div_ceil(32)];
        for (group, four) in values.as_chunks::<4>().0.iter().enumerate() {
            let mut order = [0, 1, 2, 3];
            let rank = |&i: &usize| match self.extreme {
                Extreme::Min => self.key(four[i]),
                Extreme::Max => -self.key(four[i]),
            };
            order.sort_by_key(rank);
            let (first, second) = (order[0].min(order[1]), order[0].max(order[1]));
            kept.extend([four[first], four[second]]);
            metadata[group / 8] |= ((first | second << 2) as u32) << (group % 8 * 4);
        }
        (kept, metadata)
    }
}

fn is_nan(value: u32) -> bool {
    value & 0x7fff_ffff > 0x7f80_0000
}
