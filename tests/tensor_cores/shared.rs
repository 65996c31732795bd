//! Matrices in shared memory, by the canonical layouts that CuTe documents for descriptors (`cute/arch/mma_sm90_desc.hpp`,
//! `mma_sm100_desc.hpp`): functions from coordinates in units of 16 bytes to an offset, then the swizzle
//! `Swizzle<B,M,S>`, which exchanges bits of the address.

use crate::numbers::{Random, Type};

/// Bits of a swizzle: how many, from which on, and by how many places higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swizzle {
    bits: u32,
    base: u32,
    shift: u32,
}

impl Swizzle {
    fn apply(self, address: usize) -> usize {
        let mask = (1usize << self.bits) - 1;
        address ^ (address >> (self.base + self.shift) & mask) << self.base
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub swizzle: Swizzle,
    /// 0, 32, 64 or 128 bytes; 129: 128 in units of 32.
    pub mode: usize,
    pub mn_major: bool,
    pub start: usize,
    pub leading: usize,
    pub stride: usize,
}

impl Layout {
    /// A layout for `lines` lines with `depth` bytes (or, MN-major, `depth` steps) from `start` on; no two elements are at the same
    /// place.
    pub fn draw(
        random: &mut Random,
        modes: &[usize],
        mn_major: bool,
        start: usize,
        (lines, depth): (usize, usize),
    ) -> Layout {
        let mode = random.one(modes);
        let (bits, base, shift) = match mode {
            0 => (0, 4, 3),
            32 => (1, 4, 3),
            64 => (2, 4, 3),
            128 => (3, 4, 3),
            _ => (2, 5, 2),
        };
        let swizzle = Swizzle { bits, base, shift };
        // In units of 16 bytes: what lies together, and the pattern's rows.
        let span = [1, 2, 4, 8][bits.min(3) as usize].max(if mode == 129 { 8 } else { 1 });
        let rows = if mode == 129 { 4 } else { 8 };
        let pattern = 16 * span * rows;
        let gap = 16 * random.below(3) * if mode == 0 { 1 } else { span * rows };
        // One of the strides is the pattern's size and something, the other beyond all of those.
        let (leading, stride) = match (mn_major, mode) {
            (false, 0) => (128 + gap, (128 + gap) * depth.div_ceil(16)),
            (false, _) if depth > 16 * span => (pattern + gap, (pattern + gap) * depth.div_ceil(16 * span)),
            (false, _) => (16 * random.below(100), pattern + gap),
            (true, 0) => ((128 + gap) * lines, 128 + gap),
            (true, _) => (pattern + gap, (pattern + gap) * lines.div_ceil(span)),
        };
        Layout {
            swizzle,
            mode,
            mn_major,
            start,
            leading,
            stride,
        }
    }

    /// Behind all of its units, for `lines` and `depth` as in [`Self::draw`].
    pub fn end(&self, (lines, depth): (usize, usize)) -> usize {
        let (lines, units) = match self.mn_major {
            false => (lines, depth.div_ceil(16)),
            true => (depth, lines),
        };
        let all = (0..lines).flat_map(|line| (0..units).map(move |unit| (line, unit)));
        let last = all.map(|(line, unit)| self.offset(line, unit)).max();
        last.unwrap_or(self.start) + 16
    }

    /// The offset of unit `unit` of the neighbours, `line` lines on.
    pub fn offset(&self, line: usize, unit: usize) -> usize {
        let rows = if self.mode == 129 { 4 } else { 8 };
        let span = match self.mode {
            0 => 1,
            32 => 2,
            64 => 4,
            _ => 8,
        };
        let (group, row) = (line / rows, line % rows);
        let offset = match (self.mn_major, self.mode) {
            (false, 0) => row * 16 + group * self.stride + unit * self.leading,
            (true, 0) => row * 16 + group * self.leading + unit * self.stride,
            _ => row * 16 * span + group * self.stride + unit % span * 16 + unit / span * self.leading,
        };
        self.swizzle.apply(self.start + offset)
    }

    pub fn of_wgmma(&self) -> u64 {
        let mode = match self.mode {
            0 => 0,
            128 => 1,
            64 => 2,
            _ => 3u64,
        };
        self.fields() | mode << 62
    }

    pub fn of_tcgen05(&self) -> u64 {
        let mode = match self.mode {
            0 => 0,
            129 => 1,
            128 => 2,
            64 => 4,
            _ => 6u64,
        };
        self.fields() | 1 << 46 | mode << 61
    }

    fn fields(&self) -> u64 {
        let field = |bytes: usize| (bytes >> 4 & 0x3fff) as u64;
        field(self.start) | field(self.leading) << 16 | field(self.stride) << 32
    }

    /// The code at line `line`, place `k`: `dense` elements of four bits have no gaps.
    pub fn code(&self, bytes: &[u8], ty: Type, dense: bool, line: usize, k: usize) -> u32 {
        let (at, shift, mask) = self.bits(ty, dense, line, k);
        let unit = u128::from_le_bytes(bytes[at..at + 16].try_into().expect("sixteen"));
        (unit >> shift) as u32 & mask
    }

    /// Puts a code there.
    pub fn set(&self, bytes: &mut [u8], ty: Type, dense: bool, (line, k): (usize, usize), code: u32) {
        let (at, shift, mask) = self.bits(ty, dense, line, k);
        let unit = u128::from_le_bytes(bytes[at..at + 16].try_into().expect("sixteen"));
        let unit = unit & !(u128::from(mask) << shift) | u128::from(code & mask) << shift;
        bytes[at..at + 16].copy_from_slice(&unit.to_le_bytes());
    }

    /// The unit of an element, and its bits in there.
    fn bits(&self, ty: Type, dense: bool, line: usize, k: usize) -> (usize, usize, u32) {
        let each = match (ty, dense) {
            (Type::E2m1, true) => 32,
            (Type::B1, _) => 128,
            _ => 128 / ty.bits(),
        };
        let (at, inside) = match self.mn_major {
            false => (self.offset(line, k / each), k % each),
            true => (self.offset(k, line / each), line % each),
        };
        let bits = match (ty, dense) {
            (Type::E2m1, _) => 4,
            (Type::E3m2 | Type::E2m3, _) => 6,
            _ => ty.bits(),
        };
        (at, inside * bits, u32::MAX >> (32 - bits))
    }
}

/// Fills units with codes of a type.
pub fn fill(bytes: &mut [u8], ty: Type, dense: bool, random: &mut Random) {
    let (count, bits) = match (ty, dense) {
        (Type::E2m1, true) => (32, 4),
        (Type::E2m1, false) => (16, 4),
        (Type::E3m2 | Type::E2m3, _) => (16, 6),
        (Type::B1, _) => (0, 0),
        _ => (128 / ty.bits(), ty.bits()),
    };
    let codes = [-2, -1, 0, 0, 1, 1, 2, 0].map(|value: i32| match ty {
        Type::B1 => 0,
        Type::U8 => u128::from(ty.encode(value.abs())),
        ty => u128::from(ty.encode(value)),
    });
    for unit in bytes.chunks_mut(16) {
        let mut drawn = u128::from(random.next()) | u128::from(random.next()) << 64;
        // What is in the gaps does not matter.
        let mut value: u128 = match (ty, bits) {
            (Type::B1, _) => drawn,
            (_, 4) if !dense => drawn << 64,
            (_, 6) => drawn << 96,
            _ => 0,
        };
        for i in 0..count {
            value |= codes[(drawn & 7) as usize] << (i * bits);
            drawn >>= 3;
        }
        unit.copy_from_slice(&value.to_le_bytes()[..unit.len()]);
    }
}
