//! Tensor maps: what `cuTensorMapEncode*` writes into the 128 bytes that programs hand to kernels, what
//! `tensormap.replace` changes there, and what bulk tensor copies read.
//!
//! NVIDIA's layout is not published (a map is "an opaque value", driver API manual), so this one is our own. Each field
//! that `tensormap.replace` can change has bytes of its own; little-endian:
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..8 | global address |
//! | 8..28 | size of each dimension in elements, five of 32 bits |
//! | 32..64 | stride of each dimension but the first in bytes, four of 64 bits |
//! | 64..74 | box size of each dimension, five of 16 bits |
//! | 74..79 | traversal stride of each dimension, five of 8 bits |
//! | 79 | rank |
//! | 80 | [`Mode`]: 0 tiled, 1 im2col, 2 im2col wide (W), 3 im2col wide (W128) |
//! | 81 | [`Element`], as `CUtensorMapDataType` |
//! | 82 | interleave, as `CUtensorMapInterleave` |
//! | 83, 86 | swizzling mode and atomicity, as `tensormap.replace` numbers them |
//! | 84, 85 | promotion in the second-level cache, fill, as `CUtensorMapL2promotion` and `CUtensorMapFloatOOBfill` |
//! | 90..96, 96..102 | lower and upper corner of the pixel box, three of 16 bits each: W, H, D |
//! | 102..104, 104..106 | channels per pixel, pixels per column |
//! | 112..120 | `MargayTM`: it is a map |
//!
//! All others are zero. Kernels also make maps from nothing, by replacing every field of 128 zeros: what is replaced in
//! zeros becomes a map.

mod boxes;
mod rules;

#[cfg(test)]
mod tests;

pub use boxes::{Row, TensorBox, Walk};

use super::swizzle::Swizzle;

/// The bytes of a map.
pub const BYTES: usize = 128;
/// Where maps lie: at multiples of this many bytes (driver API manual, `cuTensorMapEncodeTiled`).
pub const ALIGNMENT: u64 = 64;
/// Dimensions, at most.
pub const MOST: usize = 5;

const MARK: &[u8; 8] = b"MargayTM";
const MARK_AT: usize = 112;

/// How a copy goes through the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    Tiled = 0,
    Im2col = 1,
    Im2colW = 2,
    Im2colW128 = 3,
}

/// `CUtensorMapDataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Element {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    S32 = 3,
    U64 = 4,
    S64 = 5,
    F16 = 6,
    F32 = 7,
    F64 = 8,
    Bf16 = 9,
    F32Ftz = 10,
    Tf32 = 11,
    Tf32Ftz = 12,
    /// Sixteen of 4 bits in 8 bytes.
    U4Align8 = 13,
    /// Sixteen of 4 bits in 16 bytes, of which 8 are a gap.
    U4Align16 = 14,
    /// Sixteen of 6 bits in 16 bytes, of which 4 are a gap.
    U6Align16 = 15,
}

const ELEMENTS: [Element; 16] = {
    use Element::*;
    [
        U8, U16, U32, S32, U64, S64, F16, F32, F64, Bf16, F32Ftz, Tf32, Tf32Ftz, U4Align8, U4Align16, U6Align16,
    ]
};

/// As `tensormap.replace` numbers them (PTX ISA, tensormap.replace, Table of `.elemtype`).
const REPLACED: [Element; 16] = {
    use Element::*;
    [
        U8, U16, U32, S32, U64, S64, F16, F32, F32Ftz, F64, Bf16, Tf32, Tf32Ftz, U4Align8, U4Align16, U6Align16,
    ]
};

/// What moves as one: so many elements, their bytes in global memory, and those in shared memory, gaps included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    pub elements: u32,
    pub global: u32,
    pub shared: u32,
}

impl Element {
    pub fn from_number(number: u32) -> Option<Element> {
        ELEMENTS.get(number as usize).copied()
    }

    /// By the number that `tensormap.replace` gives it.
    pub fn from_replaced(number: u64) -> Option<Element> {
        REPLACED.get(usize::try_from(number).ok()?).copied()
    }

    /// Bits that one takes in shared memory, gaps included.
    pub fn bits(self) -> u64 {
        let unit = self.unit();
        u64::from(unit.shared) * 8 / u64::from(unit.elements)
    }

    /// What moves as one where channels are not interleaved.
    fn unit(self) -> Unit {
        use Element::*;
        let (elements, global, shared) = match self {
            U8 => (1, 1, 1),
            U16 | F16 | Bf16 => (1, 2, 2),
            U32 | S32 | F32 | F32Ftz | Tf32 | Tf32Ftz => (1, 4, 4),
            U64 | S64 | F64 => (1, 8, 8),
            U4Align8 => (2, 1, 1),
            U4Align16 => (16, 8, 16),
            U6Align16 => (16, 12, 16),
        };
        Unit {
            elements,
            global,
            shared,
        }
    }

    fn is_float(self) -> bool {
        use Element::*;
        matches!(self, F16 | F32 | F64 | Bf16 | F32Ftz | Tf32 | Tf32Ftz)
    }

    /// Packed, with gaps.
    pub fn is_aligned16(self) -> bool {
        matches!(self, Element::U4Align16 | Element::U6Align16)
    }
}

/// Interleaved channels: what the innermost of the layouts NC/8DHWC8 and NC/16DHWC16 takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Interleave {
    None = 0,
    B16 = 1,
    B32 = 2,
}

impl Interleave {
    /// As `CUtensorMapInterleave` and `tensormap.replace` number them.
    pub fn from_number(number: u32) -> Option<Interleave> {
        Some(match number {
            0 => Interleave::None,
            1 => Interleave::B16,
            2 => Interleave::B32,
            _ => return None,
        })
    }
}

/// What a map says. Dimensions beyond the rank are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    pub mode: Mode,
    pub element: Element,
    pub rank: u8,
    pub address: u64,
    /// Elements.
    pub dims: [u64; MOST],
    /// Bytes from one to the next, of dimensions 1 to rank - 1.
    pub strides: [u64; MOST - 1],
    /// Elements; of tiles.
    pub tile: [u32; MOST],
    /// Elements from one that is copied to the next.
    pub steps: [u32; MOST],
    pub interleave: Interleave,
    pub swizzle: Swizzle,
    /// `CUtensorMapL2promotion`: without effect here.
    pub promotion: u8,
    /// Floating-point elements outside are not-a-number.
    pub fills_nan: bool,
    /// Of im2col: W, H, D.
    pub lower: [i32; 3],
    pub upper: [i32; 3],
    pub channels: u32,
    pub pixels: u32,
}

impl TensorMap {
    /// A tiled map of bytes without dimensions: to be filled in.
    pub const EMPTY: TensorMap = TensorMap {
        mode: Mode::Tiled,
        element: Element::U8,
        rank: 0,
        address: 0,
        dims: [0; MOST],
        strides: [0; MOST - 1],
        tile: [0; MOST],
        steps: [0; MOST],
        interleave: Interleave::None,
        swizzle: Swizzle::None,
        promotion: 0,
        fills_nan: false,
        lower: [0; 3],
        upper: [0; 3],
        channels: 0,
        pixels: 0,
    };

    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let mut fields = Fields { bytes: &mut bytes };
        fields.set_address(self.address);
        for index in 0..MOST {
            fields.set_dim(index, self.dims[index]);
            fields.set_tile(index, self.tile[index].into());
            fields.set_step(index, self.steps[index].into());
        }
        for (index, stride) in self.strides.iter().enumerate() {
            fields.set_stride(index, *stride);
        }
        fields.set_rank(self.rank.into());
        fields.set_element(self.element);
        fields.set_interleave(self.interleave as u64);
        let (mode, atomicity) = swizzle_numbers(self.swizzle);
        fields.set_swizzle_mode(mode.into());
        fields.set_swizzle_atomicity(atomicity.into());
        fields.set_fill(self.fills_nan.into());
        fields.put(80, &[self.mode as u8]);
        fields.put(84, &[self.promotion]);
        for index in 0..3 {
            fields.put(90 + index * 2, &(self.lower[index] as i16).to_le_bytes());
            fields.put(96 + index * 2, &(self.upper[index] as i16).to_le_bytes());
        }
        fields.put(102, &(self.channels as u16).to_le_bytes());
        fields.put(104, &(self.pixels as u16).to_le_bytes());
        fields.put(MARK_AT, MARK);
        bytes
    }

    /// # Errors
    /// Why it is no map, or which rule one breaks that no call would have made: kernels may have changed it.
    pub fn decode(bytes: &[u8; BYTES]) -> Result<TensorMap, &'static str> {
        if &bytes[MARK_AT..MARK_AT + 8] != MARK {
            return Err("there is no tensor map");
        }
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let map = TensorMap {
            mode: match bytes[80] {
                0 => Mode::Tiled,
                1 => Mode::Im2col,
                2 => Mode::Im2colW,
                3 => Mode::Im2colW128,
                _ => return Err("the tensor map is damaged"),
            },
            element: Element::from_number(bytes[81].into()).ok_or("the tensor map's element type is none")?,
            rank: bytes[79],
            address: long(0),
            dims: std::array::from_fn(|index| word(8 + index * 4).into()),
            strides: std::array::from_fn(|index| long(32 + index * 8)),
            tile: std::array::from_fn(|index| half(64 + index * 2).into()),
            steps: std::array::from_fn(|index| bytes[74 + index].into()),
            interleave: Interleave::from_number(bytes[82].into()).ok_or("the tensor map's interleave is none")?,
            swizzle: swizzle_of(bytes[83], bytes[86])
                .ok_or("the tensor map's swizzling mode and atomicity are none")?,
            promotion: bytes[84],
            fills_nan: match bytes[85] {
                0 => false,
                1 => true,
                _ => return Err("the tensor map's fill mode is none"),
            },
            lower: std::array::from_fn(|index| (half(90 + index * 2) as i16).into()),
            upper: std::array::from_fn(|index| (half(96 + index * 2) as i16).into()),
            channels: half(102).into(),
            pixels: half(104).into(),
        };
        match map.wrong() {
            None => Ok(map),
            Some(why) => Err(why),
        }
    }
}

/// Mode and atomicity, as `tensormap.replace` numbers them (PTX ISA, tensormap.replace).
fn swizzle_numbers(swizzle: Swizzle) -> (u8, u8) {
    match swizzle {
        Swizzle::None => (0, 0),
        Swizzle::B32 => (1, 0),
        Swizzle::B64 => (2, 0),
        Swizzle::B128 => (3, 0),
        Swizzle::B128Atom32 => (3, 1),
        Swizzle::B128Atom32Flip8 => (3, 2),
        Swizzle::B128Atom64 => (3, 3),
        Swizzle::B96 => (4, 0),
    }
}

fn swizzle_of(mode: u8, atomicity: u8) -> Option<Swizzle> {
    Some(match (mode, atomicity) {
        // Where nothing is swizzled, how much stays together says nothing.
        (0, 0..=3) => Swizzle::None,
        (1, 0) => Swizzle::B32,
        (2, 0) => Swizzle::B64,
        (3, 0) => Swizzle::B128,
        (3, 1) => Swizzle::B128Atom32,
        (3, 2) => Swizzle::B128Atom32Flip8,
        (3, 3) => Swizzle::B128Atom64,
        (4, 0) => Swizzle::B96,
        _ => return None,
    })
}

/// `CUtensorMapSwizzle`.
pub fn swizzle_from_number(number: u32) -> Option<Swizzle> {
    Some(match number {
        0 => Swizzle::None,
        1 => Swizzle::B32,
        2 => Swizzle::B64,
        3 => Swizzle::B128,
        4 => Swizzle::B128Atom32,
        5 => Swizzle::B128Atom32Flip8,
        6 => Swizzle::B128Atom64,
        _ => return None,
    })
}

/// The fields of a map that can be set one by one. What has no room in its field becomes the largest number there,
/// which no rule admits.
pub struct Fields<'b> {
    bytes: &'b mut [u8; BYTES],
}

impl<'b> Fields<'b> {
    /// The fields of a map, or of zeros, which become one.
    ///
    /// # Errors
    /// It is neither.
    pub fn of(bytes: &'b mut [u8; BYTES]) -> Result<Fields<'b>, &'static str> {
        let mark = &mut bytes[MARK_AT..MARK_AT + 8];
        match mark == MARK || mark.iter().all(|byte| *byte == 0) {
            true => mark.copy_from_slice(MARK),
            false => return Err("there is neither a tensor map nor are there zeros"),
        }
        Ok(Fields { bytes })
    }

    fn put(&mut self, at: usize, value: &[u8]) {
        self.bytes[at..at + value.len()].copy_from_slice(value);
    }

    fn put_byte(&mut self, at: usize, value: u64) {
        self.bytes[at] = u8::try_from(value).unwrap_or(u8::MAX);
    }

    pub fn set_address(&mut self, address: u64) {
        self.put(0, &address.to_le_bytes());
    }

    /// `index` is less than [`MOST`], here and below.
    pub fn set_dim(&mut self, index: usize, size: u64) {
        self.put(8 + index * 4, &u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes());
    }

    /// Of dimension `index` + 1; `index` is less than [`MOST`] - 1.
    pub fn set_stride(&mut self, index: usize, bytes: u64) {
        self.put(32 + index * 8, &bytes.to_le_bytes());
    }

    pub fn set_tile(&mut self, index: usize, size: u64) {
        self.put(64 + index * 2, &u16::try_from(size).unwrap_or(u16::MAX).to_le_bytes());
    }

    pub fn set_step(&mut self, index: usize, step: u64) {
        self.put_byte(74 + index, step);
    }

    pub fn set_rank(&mut self, rank: u64) {
        self.put_byte(79, rank);
    }

    pub fn set_element(&mut self, element: Element) {
        self.put_byte(81, element as u64);
    }

    pub fn set_interleave(&mut self, number: u64) {
        self.put_byte(82, number);
    }

    pub fn set_swizzle_mode(&mut self, number: u64) {
        self.put_byte(83, number);
    }

    pub fn set_fill(&mut self, number: u64) {
        self.put_byte(85, number);
    }

    pub fn set_swizzle_atomicity(&mut self, number: u64) {
        self.put_byte(86, number);
    }
}
