//! Tensor maps: what `cuTensorMapEncode*` writes into the 128 bytes that programs hand to kernels, and what bulk tensor copies
//! read there.
//!
//! NVIDIA's layout is not published (a map is "an opaque value", driver API manual), so this one is our own. Each field that
//! `tensormap.replace` can change has bytes of its own, as its values are in this table; little-endian:
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
//! | 82, 83 | interleave, swizzle, as `CUtensorMapInterleave` and `CUtensorMapSwizzle` |
//! | 84, 85 | promotion in the second-level cache, fill, as `CUtensorMapL2promotion` and `CUtensorMapFloatOOBfill` |
//! | 90..96, 96..102 | lower and upper corner of the pixel box, three of 16 bits each: W, H, D |
//! | 102..104, 104..106 | channels per pixel, pixels per column |
//! | 112..120 | `MargayTM`: it is a map |
//!
//! All others are zero.

/// The bytes of a map.
pub const BYTES: usize = 128;
/// Dimensions, at most.
pub const MOST: usize = 5;

const MARK: &[u8; 8] = b"MargayTM";

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

impl Element {
    pub fn from_number(number: u32) -> Option<Element> {
        ELEMENTS.get(number as usize).copied()
    }

    /// Bits that one takes in shared memory, gaps included.
    pub fn bits(self) -> u64 {
        use Element::*;
        match self {
            U4Align8 => 4,
            U8 | U4Align16 | U6Align16 => 8,
            U16 | F16 | Bf16 => 16,
            U32 | S32 | F32 | F32Ftz | Tf32 | Tf32Ftz => 32,
            U64 | S64 | F64 => 64,
        }
    }

    fn is_float(self) -> bool {
        use Element::*;
        matches!(self, F16 | F32 | F64 | Bf16 | F32Ftz | Tf32 | Tf32Ftz)
    }

    /// Packed, with gaps.
    fn is_aligned16(self) -> bool {
        matches!(self, Element::U4Align16 | Element::U6Align16)
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
    /// 0, 16 or 32 bytes: 0, 1, 2.
    pub interleave: u8,
    /// `CUtensorMapSwizzle`.
    pub swizzle: u8,
    pub promotion: u8,
    /// Floating-point elements outside are not-a-number.
    pub fills_nan: bool,
    /// Of im2col: W, H, D.
    pub lower: [i32; 3],
    pub upper: [i32; 3],
    pub channels: u32,
    pub pixels: u32,
}

const INTERLEAVE_NONE: u8 = 0;
const INTERLEAVE_32: u8 = 2;
const SWIZZLE_NONE: u8 = 0;
const SWIZZLE_32: u8 = 1;
const SWIZZLE_64: u8 = 2;
const SWIZZLE_128: u8 = 3;
const SWIZZLE_128_ATOM_32: u8 = 4;
const SWIZZLE_128_ATOM_64: u8 = 6;

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
        interleave: 0,
        swizzle: 0,
        promotion: 0,
        fills_nan: false,
        lower: [0; 3],
        upper: [0; 3],
        channels: 0,
        pixels: 0,
    };

    /// Spatial dimensions of im2col: all but the channels and the images.
    fn pixels_dims(&self) -> usize {
        usize::from(self.rank).saturating_sub(2)
    }

    /// Whether the manual allows it (driver API manual, `cuTensorMapEncodeTiled`, `…Im2col`, `…Im2colWide`).
    pub fn is_valid(&self) -> bool {
        self.has_valid_shape() && self.has_valid_layout() && self.has_valid_box()
    }

    /// Bytes that an address is a multiple of.
    fn alignment(&self) -> u64 {
        match self.interleave == INTERLEAVE_32 || self.element.is_aligned16() {
            true => 32,
            false => 16,
        }
    }

    /// An address that the map could have.
    pub fn allows(&self, address: u64) -> bool {
        address.is_multiple_of(self.alignment())
    }

    fn has_valid_shape(&self) -> bool {
        let rank = usize::from(self.rank);
        let least = match self.mode == Mode::Tiled && self.interleave == INTERLEAVE_NONE {
            true => 1,
            false => 3,
        };
        if !(least..=MOST).contains(&rank) || !self.allows(self.address) {
            return false;
        }
        let packing = match self.element {
            Element::U4Align8 => 2,
            element if element.is_aligned16() => 128,
            _ => 1,
        };
        let dims = &self.dims[..rank];
        dims.iter().all(|dim| (1..=1 << 31).contains(dim))
            && dims[0].is_multiple_of(packing)
            && self.strides[..rank - 1]
                .iter()
                .all(|stride| stride.is_multiple_of(self.alignment()) && *stride < 1 << 40)
    }

    fn has_valid_layout(&self) -> bool {
        let swizzle = self.swizzle;
        if self.interleave > INTERLEAVE_32 || swizzle > SWIZZLE_128_ATOM_64 || self.promotion > 3 {
            return false;
        }
        if self.interleave == INTERLEAVE_32 && swizzle != SWIZZLE_32 {
            return false;
        }
        let is_wide = matches!(self.mode, Mode::Im2colW | Mode::Im2colW128);
        if is_wide && !matches!(swizzle, SWIZZLE_64 | SWIZZLE_128 | SWIZZLE_128_ATOM_32) {
            return false;
        }
        let allowed = match self.element {
            Element::U6Align16 if self.interleave != INTERLEAVE_NONE => false,
            Element::U6Align16 if is_wide => true,
            Element::U6Align16 => matches!(
                swizzle,
                SWIZZLE_NONE | SWIZZLE_128 | SWIZZLE_128_ATOM_32 | SWIZZLE_128_ATOM_64
            ),
            Element::U4Align16 => matches!(swizzle, SWIZZLE_NONE | SWIZZLE_128 | SWIZZLE_128_ATOM_32),
            _ => true,
        };
        allowed && (!self.fills_nan || self.element.is_float())
    }

    fn has_valid_box(&self) -> bool {
        let rank = usize::from(self.rank);
        // There is no stride along the first dimension, so that it says nothing, unless channels are interleaved.
        let first = usize::from(self.interleave == INTERLEAVE_NONE);
        if !self.steps[first.min(rank)..rank]
            .iter()
            .all(|step| (1..=8).contains(step))
        {
            return false;
        }
        let inner = match self.mode {
            Mode::Tiled => {
                if !self.tile[..rank].iter().all(|size| (1..=256).contains(size)) {
                    return false;
                }
                self.tile[0]
            }
            _ => {
                let pixels = if self.mode == Mode::Im2colW128 { 1 } else { self.pixels };
                if !(1..=256).contains(&self.channels) || !(1..=1024).contains(&pixels) || !self.has_valid_corners() {
                    return false;
                }
                self.channels
            }
        };
        if self.element.is_aligned16() && inner != 128 {
            return false;
        }
        if self.interleave != INTERLEAVE_NONE {
            return true;
        }
        let bits = u64::from(inner) * self.element.bits();
        let span = match self.swizzle {
            SWIZZLE_NONE => u64::MAX,
            SWIZZLE_32 => 32,
            SWIZZLE_64 => 64,
            _ => 128,
        };
        // The manual asks for multiples of 16 bytes of tiles alone.
        (self.mode != Mode::Tiled || bits.is_multiple_of(128)) && bits.div_ceil(8) <= span
    }

    fn has_valid_corners(&self) -> bool {
        let (count, range) = match (self.mode, self.rank) {
            (Mode::Im2col, 4) => (2, -128..=127),
            (Mode::Im2col, 5) => (3, -16..=15),
            // The wide modes have a corner along W only.
            _ => (1, -32768..=32767),
        };
        (0..count.min(self.pixels_dims())).all(|index| {
            let (lower, upper) = (self.lower[index], self.upper[index]);
            let size = self.dims[index + 1] as i64 + i64::from(upper) - i64::from(lower);
            range.contains(&lower) && range.contains(&upper) && size > 0
        })
    }

    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &self.address.to_le_bytes());
        for (index, dim) in self.dims.iter().enumerate() {
            put(8 + index * 4, &(*dim as u32).to_le_bytes());
        }
        for (index, stride) in self.strides.iter().enumerate() {
            put(32 + index * 8, &stride.to_le_bytes());
        }
        for index in 0..MOST {
            put(64 + index * 2, &(self.tile[index] as u16).to_le_bytes());
            put(74 + index, &[self.steps[index] as u8]);
        }
        let fill = u8::from(self.fills_nan);
        put(79, &[self.rank, self.mode as u8, self.element as u8]);
        put(82, &[self.interleave, self.swizzle, self.promotion, fill]);
        for index in 0..3 {
            put(90 + index * 2, &(self.lower[index] as i16).to_le_bytes());
            put(96 + index * 2, &(self.upper[index] as i16).to_le_bytes());
        }
        put(102, &(self.channels as u16).to_le_bytes());
        put(104, &(self.pixels as u16).to_le_bytes());
        put(112, MARK);
        bytes
    }

    /// `None`: not a map, or one that no call would have made: kernels may have changed it (`tensormap.replace`).
    pub fn decode(bytes: &[u8; BYTES]) -> Option<TensorMap> {
        if &bytes[112..120] != MARK {
            return None;
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
                _ => return None,
            },
            element: Element::from_number(bytes[81].into())?,
            rank: bytes[79],
            address: long(0),
            dims: std::array::from_fn(|index| word(8 + index * 4).into()),
            strides: std::array::from_fn(|index| long(32 + index * 8)),
            tile: std::array::from_fn(|index| half(64 + index * 2).into()),
            steps: std::array::from_fn(|index| bytes[74 + index].into()),
            interleave: bytes[82],
            swizzle: bytes[83],
            promotion: bytes[84],
            fills_nan: bytes[85] != 0,
            lower: std::array::from_fn(|index| (half(90 + index * 2) as i16).into()),
            upper: std::array::from_fn(|index| (half(96 + index * 2) as i16).into()),
            channels: half(102).into(),
            pixels: half(104).into(),
        };
        map.is_valid().then_some(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILED: TensorMap = TensorMap {
        rank: 5,
        element: Element::Bf16,
        address: 0x7f12_3456_7890,
        dims: [1 << 31, 2, 3, 4, 5],
        strides: [16, (1 << 40) - 16, 48, 64],
        tile: [8, 256, 1, 2, 3],
        steps: [1, 8, 2, 3, 4],
        swizzle: SWIZZLE_128_ATOM_64,
        promotion: 3,
        fills_nan: true,
        ..TensorMap::EMPTY
    };

    #[test]
    fn what_is_written_is_read() {
        let column = TensorMap {
            mode: Mode::Im2col,
            lower: [-16, 15, 0],
            upper: [15, -1, -4],
            dims: [64, 40, 20, 20, 7],
            channels: 64,
            pixels: 1024,
            tile: [0; MOST],
            ..TILED
        };
        let wide = TensorMap {
            mode: Mode::Im2colW128,
            swizzle: SWIZZLE_64,
            element: Element::U8,
            fills_nan: false,
            lower: [-32768, 0, 0],
            upper: [32767, 0, 0],
            ..column
        };
        for map in [TILED, column, wide] {
            assert!(map.is_valid(), "{map:?}");
            assert_eq!(TensorMap::decode(&map.encode()), Some(map));
        }
    }

    #[test]
    fn fields_stand_where_the_table_says() {
        let bytes = TILED.encode();
        assert_eq!(bytes[0..8], 0x7f12_3456_7890_u64.to_le_bytes());
        assert_eq!(bytes[8..12], [0, 0, 0, 0x80]);
        assert_eq!(bytes[32..40], 16_u64.to_le_bytes());
        assert_eq!(bytes[66..68], [0, 1]);
        assert_eq!(bytes[74..86], [1, 8, 2, 3, 4, 5, 0, 9, 0, 6, 3, 1]);
    }

    #[test]
    fn what_is_no_map_is_not_read() {
        assert_eq!(TensorMap::decode(&[0; BYTES]), None);
        assert_eq!(TensorMap::decode(&[0xff; BYTES]), None);
        for (at, value) in [(79, 0), (79, 6), (80, 4), (81, 16), (82, 3), (83, 7), (84, 4), (112, 0)] {
            let mut bytes = TILED.encode();
            bytes[at] = value;
            assert_eq!(TensorMap::decode(&bytes), None, "byte {at}");
        }
    }
}
