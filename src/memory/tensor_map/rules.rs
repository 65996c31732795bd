//! What a map may say (driver API manual, `cuTensorMapEncodeTiled`, `…Im2col`, `…Im2colWide`; PTX ISA, Restriction on
//! Tensor Copy instructions).

use super::{Element, Interleave, MOST, Mode, TensorMap};
use crate::memory::swizzle::Swizzle;

/// Elements along a dimension, at most.
const MOST_ELEMENTS: u64 = 1 << 31;

impl TensorMap {
    /// Which rule it breaks, in words.
    pub fn wrong(&self) -> Option<&'static str> {
        self.wrong_shape()
            .or_else(|| self.wrong_layout())
            .or_else(|| self.wrong_box())
    }

    /// Bytes that an address is a multiple of.
    fn alignment(&self) -> u64 {
        match self.interleave == Interleave::B32 || self.element.is_aligned16() {
            true => 32,
            false => 16,
        }
    }

    /// An address that the map could have.
    pub fn allows(&self, address: u64) -> bool {
        address.is_multiple_of(self.alignment())
    }

    fn wrong_shape(&self) -> Option<&'static str> {
        let rank = usize::from(self.rank);
        let least = match self.mode == Mode::Tiled && self.interleave == Interleave::None {
            true => 1,
            false => 3,
        };
        if !(least..=MOST).contains(&rank) {
            return Some("the tensor map's rank is not among those of its mode");
        }
        if !self.allows(self.address) {
            return Some(
                "the tensor map's global address is not a multiple of 16 bytes, or of 32 where they are asked for",
            );
        }
        let packing = match self.element {
            Element::U4Align8 => 2,
            element if element.is_aligned16() => 128,
            _ => 1,
        };
        let dims = &self.dims[..rank];
        if !dims.iter().all(|dim| (1..=MOST_ELEMENTS).contains(dim)) {
            return Some("a size of the tensor map is 0, or more than 2^31");
        }
        if !dims[0].is_multiple_of(packing) {
            return Some("the tensor map's first size is not a multiple of the elements that are packed together");
        }
        let fits = |stride: &u64| stride.is_multiple_of(self.alignment()) && *stride < 1 << 40;
        if !self.strides[..rank - 1].iter().all(fits) {
            return Some("a stride of the tensor map is not a multiple of 16 bytes, or of 32, below 2^40");
        }
        None
    }

    fn wrong_layout(&self) -> Option<&'static str> {
        let swizzle = self.swizzle;
        if self.promotion > 3 {
            return Some("the tensor map's promotion in the cache is none");
        }
        if self.interleave == Interleave::B32 && swizzle != Swizzle::B32 {
            return Some("a tensor map that interleaves 32 bytes swizzles 32 bytes");
        }
        if swizzle == Swizzle::B96 && self.interleave != Interleave::None {
            return Some("a tensor map that swizzles 96 bytes does not interleave");
        }
        let is_wide = matches!(self.mode, Mode::Im2colW | Mode::Im2colW128);
        if is_wide && !matches!(swizzle, Swizzle::B64 | Swizzle::B128 | Swizzle::B128Atom32) {
            return Some("the tensor map's swizzling mode is not among those of its mode");
        }
        let whole = || matches!(swizzle, Swizzle::None | Swizzle::B128 | Swizzle::B128Atom32);
        let allowed = match self.element {
            Element::U6Align16 if self.interleave != Interleave::None => false,
            Element::U6Align16 if is_wide => true,
            Element::U6Align16 => whole() || swizzle == Swizzle::B128Atom64,
            Element::U4Align16 => whole(),
            _ => true,
        };
        if !allowed {
            return Some("the tensor map's element type does not go with its layout");
        }
        if self.fills_nan && !self.element.is_float() {
            return Some("the tensor map fills with not-a-number what is no floating-point element");
        }
        None
    }

    fn wrong_box(&self) -> Option<&'static str> {
        let rank = usize::from(self.rank);
        // There is no stride along the first dimension, so that it says nothing, unless channels are interleaved.
        let first = usize::from(self.interleave == Interleave::None);
        let steps = &self.steps[first.min(rank)..rank];
        if !steps.iter().all(|step| (1..=8).contains(step)) {
            return Some("a traversal stride of the tensor map is not 1 to 8");
        }
        let inner = match self.mode {
            Mode::Tiled => {
                if !self.tile[..rank].iter().all(|size| (1..=256).contains(size)) {
                    return Some("a box size of the tensor map is not 1 to 256");
                }
                self.tile[0]
            }
            Mode::Im2col | Mode::Im2colW | Mode::Im2colW128 => {
                if !(1..=256).contains(&self.channels) {
                    return Some("the tensor map's channels per pixel are not 1 to 256");
                }
                if self.mode != Mode::Im2colW128 && !(1..=1024).contains(&self.pixels) {
                    return Some("the tensor map's pixels per column are not 1 to 1024");
                }
                if !self.has_valid_corners() {
                    return Some(
                        "a corner of the tensor map's pixel box is out of range, or nothing lies between them",
                    );
                }
                self.channels
            }
        };
        if self.element.is_aligned16() && inner != 128 {
            return Some("a box of the tensor map's element type has 128 elements along the first dimension");
        }
        if self.interleave != Interleave::None {
            return None;
        }
        let bits = u64::from(inner) * self.element.bits();
        // The manual asks for multiples of 16 bytes of tiles alone.
        if self.mode == Mode::Tiled && !bits.is_multiple_of(128) {
            return Some("a box of the tensor map is no multiple of 16 bytes along the first dimension");
        }
        match self.swizzle.span() {
            Some(span) if bits.div_ceil(8) > span.into() => {
                Some("a box of the tensor map takes more bytes along the first dimension than are swizzled")
            }
            _ => None,
        }
    }

    /// The first dimension of images: behind the channels, which have no dimension where they are interleaved.
    pub(super) fn first_spatial(&self) -> usize {
        usize::from(self.interleave == Interleave::None)
    }

    fn has_valid_corners(&self) -> bool {
        let (count, range) = match (self.mode, self.rank) {
            (Mode::Im2col, 4) => (2, -128..=127),
            (Mode::Im2col, 5) => (3, -16..=15),
            // The wide modes have a corner along W only.
            _ => (1, -32768..=32767),
        };
        (0..count).all(|index| {
            let (lower, upper) = (self.lower[index], self.upper[index]);
            let size = self.dims[index + self.first_spatial()] as i64 + i64::from(upper) - i64::from(lower);
            range.contains(&lower) && range.contains(&upper) && size > 0
        })
    }
}
