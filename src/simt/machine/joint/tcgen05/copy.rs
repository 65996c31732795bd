//! `tcgen05.cp` and `tcgen05.shift` (PTX ISA, tcgen05.cp; tcgen05.shift): from shared to tensor memory, and within it.

use super::{Part, shadow};
use crate::isa::joint::tcgen05::{Copy, CopyShape, Decompression};
use crate::simt::machine::joint::descriptor::{Major, Matrix, UNIT};
use crate::simt::machine::tensor_memory::{Asked, LANES, Memory, Misuse, Place};

/// Bytes that a shift moves of each lane.
const SHIFTED: usize = 8;

/// A `tcgen05.cp` of one block.
#[derive(Clone, Copy)]
pub struct Copying {
    op: Copy,
    to: Place,
    from: Matrix,
}

impl Copying {
    /// # Errors
    /// The place is not allocated, or beyond the last lane.
    pub fn of(
        op: Copy,
        (address, descriptor): (u32, u64),
        (memory, asked): (&Memory, Asked),
    ) -> Result<Copying, Misuse> {
        let to = Place::of(address);
        let copying = Copying {
            op,
            to,
            from: Matrix::of_tcgen05(descriptor)?,
        };
        memory.check(to.column, 4 * copying.units(), asked)?;
        let last = (0..copying.rows()).flat_map(|row| copying.lanes(row)).max();
        if to.lane + last.unwrap_or(0) >= LANES {
            return Err(format!(
                "tcgen05.cp to lane {} of tensor memory, which has {LANES}",
                to.lane
            ));
        }
        Ok(copying)
    }

    fn rows(&self) -> usize {
        match self.op.shape {
            CopyShape::Lanes128Bits256 | CopyShape::Lanes128Bits128 => 128,
            CopyShape::Lanes64Apart | CopyShape::Lanes64Paired => 64,
            CopyShape::Lanes32 => 32,
            CopyShape::Lanes4 => 4,
        }
    }

    /// Units of 16 bytes of a row.
    fn units(&self) -> usize {
        match self.op.shape {
            CopyShape::Lanes128Bits256 | CopyShape::Lanes4 => 2,
            CopyShape::Lanes128Bits128 | CopyShape::Lanes64Apart | CopyShape::Lanes64Paired | CopyShape::Lanes32 => 1,
        }
    }

    /// The lanes, from the first on, that row `row` goes to.
    fn lanes(&self, row: usize) -> impl Iterator<Item = usize> + use<> {
        let (first, times, apart) = match self.op.shape {
            CopyShape::Lanes128Bits256 | CopyShape::Lanes128Bits128 => (row, 1, 0),
            CopyShape::Lanes4 => (32 * row, 1, 0),
            CopyShape::Lanes64Apart => (row, 2, 64),
            CopyShape::Lanes64Paired => (row / 32 * 64 + row % 32, 2, 32),
            CopyShape::Lanes32 => (row, 4, 32),
        };
        (0..times).map(move |i| first + i * apart)
    }

    /// Where it reads 16 bytes each.
    pub fn addresses(&self) -> impl Iterator<Item = u32> + '_ {
        let units = self.units() as u32;
        let rows = self.rows() as u32;
        (0..rows).flat_map(move |row| (0..units).map(move |unit| self.from.address(Major::K, row, unit)))
    }

    pub fn run(&self, part: &Part, memory: &mut Memory) {
        for row in 0..self.rows() {
            for unit in 0..self.units() {
                let bytes = part.unit(self.from.address(Major::K, row as u32, unit as u32));
                let decompress = |bytes| self.op.format.map_or(bytes, |format| decompressed(bytes, format));
                let bytes = decompress(bytes);
                for lane in self.lanes(row) {
                    let cells = memory.cells_mut(self.to.lane + lane, self.to.column + 4 * unit, 4);
                    for (cell, bytes) in cells.iter_mut().zip(bytes.as_chunks::<4>().0) {
                        *cell = u32::from_le_bytes(*bytes);
                    }
                }
                if let Some(to) = &mut memory.shadow {
                    let address = self.from.address(Major::K, row as u32, unit as u32);
                    let missing = decompress(shadow::unit(part, address));
                    for lane in self.lanes(row) {
                        for (i, bytes) in missing.as_chunks::<4>().0.iter().enumerate() {
                            let (lane, column) = (self.to.lane + lane, self.to.column + 4 * unit + i);
                            to.leave(lane, column, u32::from_le_bytes(*bytes), Some(part.at(address)));
                        }
                    }
                }
            }
        }
    }
}

/// Sixteen elements of a unit with a gap, a byte each: of six bits the low ones, of four those from bit 2 on (PTX ISA,
/// Packing formats of elements in Tensor and Shared memory).
fn decompressed(unit: [u8; UNIT], format: Decompression) -> [u8; UNIT] {
    let bits = u128::from_le_bytes(unit);
    std::array::from_fn(|i| match format {
        Decompression::Bits6 => (bits >> (6 * i)) as u8 & 0x3f,
        Decompression::Bits4 => ((bits >> (4 * i)) as u8 & 0xf) << 2,
    })
}

/// `tcgen05.shift.down`: of the 32 lanes of a warp each gets the 32 bytes of the one behind it; the last keeps its own,
/// which `tcgen05.cp.4x256b` then replaces.
#[derive(Clone, Copy)]
pub struct Shifting(Place);

impl Shifting {
    /// # Errors
    /// The place is not allocated, or no warp's lanes begin there.
    pub fn of(address: u32, (memory, asked): (&Memory, Asked)) -> Result<Shifting, Misuse> {
        let place = Place::of(address);
        if !place.lane.is_multiple_of(32) || place.lane >= LANES {
            return Err(format!(
                "tcgen05.shift from lane {} on, which is no multiple of 32",
                place.lane
            ));
        }
        memory.check(place.column, SHIFTED, asked)?;
        Ok(Shifting(place))
    }

    pub fn run(&self, memory: &mut Memory) {
        if let Some(shadow) = &mut memory.shadow {
            self.run(shadow);
        }
        let Shifting(Place { lane, column }) = *self;
        for lane in lane..lane + 31 {
            for column in column..column + SHIFTED {
                let next = memory.cell(lane + 1, column);
                let origin = memory.origin(lane + 1, column);
                memory.leave(lane, column, next, origin);
            }
        }
    }
}
