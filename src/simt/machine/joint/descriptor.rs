//! Matrix descriptors (PTX ISA, Asynchronous Warpgroup Level Matrix Shared Memory Layout; tcgen05, Shared memory
//! descriptor): where the elements of a matrix lie in shared memory.
//!
//! Sixteen bytes are the unit: neighbours along k (*K-major*), or along the rows of A or columns of B (*MN-major*). With a
//! swizzle, rows of 32, 64 or 128 bytes lie in patterns of eight, and the unit's place in its row is exchanged by the
//! bits of the final address, as the canonical layouts of CuTe have it (`Swizzle<B,4,3>`; of 32-byte atoms
//! `Swizzle<2,5,2>`). So a descriptor may start inside a row.

use crate::isa::mma::Element;
use crate::memory::swizzle::Swizzle;

/// Bytes that lie together whatever the layout.
pub const UNIT: usize = 16;

/// Bytes of a row, and rows that lie one behind the other with neither offset between them.
fn pattern(swizzle: Swizzle) -> (u32, u32) {
    match swizzle {
        Swizzle::None => (16, 8),
        Swizzle::B32 => (32, 8),
        Swizzle::B64 => (64, 8),
        Swizzle::B128 => (128, 8),
        Swizzle::B128Atom32 => (128, 4),
        // No descriptor names them.
        Swizzle::B96 | Swizzle::B128Atom32Flip8 | Swizzle::B128Atom64 => (128, 8),
    }
}

/// Which neighbours lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Major {
    K,
    Mn,
}

/// A descriptor, decoded. Addresses and offsets are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    start: u32,
    leading: u32,
    stride: u32,
    /// Which row of a pattern the first one is.
    phase: u32,
    swizzle: Swizzle,
    /// `leading` is an address: where a row that does not end in its pattern goes on.
    absolute: bool,
}

/// Fourteen bits of a descriptor: an address or distance without its low four.
fn field(descriptor: u64, at: u32) -> u32 {
    ((descriptor >> at & 0x3fff) << 4) as u32
}

impl Matrix {
    /// A descriptor of `wgmma`.
    pub fn of_wgmma(descriptor: u64) -> Matrix {
        Matrix {
            swizzle: match descriptor >> 62 {
                0 => Swizzle::None,
                1 => Swizzle::B128,
                2 => Swizzle::B64,
                _ => Swizzle::B32,
            },
            ..Matrix::common(descriptor)
        }
    }

    /// A descriptor of `tcgen05`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_tcgen05(descriptor: u64) -> Result<Matrix, String> {
        if descriptor >> 46 & 7 != 1 {
            return Err(format!(
                "matrix descriptor {descriptor:#018x}: bits 46 to 48 must be 0b001"
            ));
        }
        let swizzle = match descriptor >> 61 {
            0 => Swizzle::None,
            1 => Swizzle::B128Atom32,
            2 => Swizzle::B128,
            4 => Swizzle::B64,
            6 => Swizzle::B32,
            other => {
                return Err(format!(
                    "matrix descriptor {descriptor:#018x}: no swizzling mode is {other}"
                ));
            }
        };
        Ok(Matrix {
            swizzle,
            absolute: descriptor >> 52 & 1 == 1,
            ..Matrix::common(descriptor)
        })
    }

    fn common(descriptor: u64) -> Matrix {
        Matrix {
            start: field(descriptor, 0),
            leading: field(descriptor, 16),
            stride: field(descriptor, 32),
            phase: (descriptor >> 49 & 7) as u32,
            swizzle: Swizzle::None,
            absolute: false,
        }
    }

    /// Where unit `unit` of the neighbours that lie together is, `line` lines on: rows (columns) of a K-major matrix, steps
    /// along k of another.
    pub fn address(&self, major: Major, line: u32, unit: u32) -> u32 {
        let Swizzle::None = self.swizzle else {
            return self.swizzled(major, line, unit);
        };
        let (beside, below) = match major {
            Major::K => (self.leading, self.stride),
            Major::Mn => (self.stride, self.leading),
        };
        let offset = unit.wrapping_mul(beside).wrapping_add((line / 8).wrapping_mul(below));
        self.start.wrapping_add(offset).wrapping_add(line % 8 * 16)
    }

    fn swizzled(&self, major: Major, line: u32, unit: u32) -> u32 {
        let (span, rows) = pattern(self.swizzle);
        let inside = self.start % span + unit * UNIT as u32;
        let from = match (inside / span, major, self.absolute) {
            (0, _, _) => self.start - self.start % span,
            (times, Major::K, true) => self.leading.wrapping_add((times - 1) * span * rows),
            (times, _, _) => (self.start - self.start % span).wrapping_add(times.wrapping_mul(self.leading)),
        };
        let below = (line / rows).wrapping_mul(self.stride).wrapping_add(line % rows * span);
        let address = from.wrapping_add(below).wrapping_add(inside % span);
        // The pattern begins `phase` lines of 128 bytes late.
        let late = self.phase << 7;
        self.swizzle.apply(address.wrapping_sub(late)).wrapping_add(late)
    }
}

/// How elements lie in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Words: of `.tf32`, and of 32 elements of `.b1`.
    Words,
    Halves,
    Bytes,
    /// Sixteen elements of six bits, then a gap of 32 bits.
    Six,
    /// Sixteen elements of four bits, then a gap of 64 bits.
    Four,
    /// Elements of four bits without gaps.
    Nibbles,
}

impl Packing {
    /// `dense`: two elements of four bits a byte, without gaps.
    pub fn of(element: Element, dense: bool) -> Packing {
        match element {
            Element::Tf32 | Element::B1 | Element::F64 => Packing::Words,
            Element::F16 | Element::Bf16 => Packing::Halves,
            Element::E4m3 | Element::E5m2 | Element::S8 | Element::U8 => Packing::Bytes,
            Element::E3m2 | Element::E2m3 => Packing::Six,
            Element::E2m1 if dense => Packing::Nibbles,
            Element::E2m1 => Packing::Four,
            Element::S4 | Element::U4 => Packing::Nibbles,
        }
    }

    /// Codes of a unit.
    pub fn codes(self) -> usize {
        match self {
            Packing::Words => 4,
            Packing::Halves => 8,
            Packing::Bytes | Packing::Six | Packing::Four => 16,
            Packing::Nibbles => 32,
        }
    }

    /// The codes of a unit, in the first places of an array.
    #[inline(always)]
    pub fn unpack(self, unit: [u8; UNIT]) -> [u32; 32] {
        let mut codes = [0; 32];
        let fields = |bits: u32, codes: &mut [u32]| {
            let unit = u128::from_le_bytes(unit);
            for (i, code) in codes.iter_mut().enumerate() {
                *code = (unit >> (i as u32 * bits)) as u32 & ((1 << bits) - 1);
            }
        };
        match self {
            Packing::Words => {
                for (code, bytes) in codes.iter_mut().zip(unit.as_chunks::<4>().0) {
                    *code = u32::from_le_bytes(*bytes);
                }
            }
            Packing::Halves => {
                for (code, bytes) in codes.iter_mut().zip(unit.as_chunks::<2>().0) {
                    *code = u32::from(u16::from_le_bytes(*bytes));
                }
            }
            Packing::Bytes => {
                for (code, byte) in codes.iter_mut().zip(unit) {
                    *code = u32::from(byte);
                }
            }
            Packing::Six => fields(6, &mut codes[..16]),
            Packing::Four => fields(4, &mut codes[..16]),
            Packing::Nibbles => fields(4, &mut codes),
        }
        codes
    }
}

/// Lines `lines` of A (columns of B), `k` codes of each: the code `k` of line `i` goes to `put(i, k)`, counted from the first
/// of `lines`. `read` gives the 16 bytes at an address.
///
/// # Errors
/// That of `read`.
#[inline(always)]
pub fn gather<E>(
    matrix: &Matrix,
    (packing, major): (Packing, Major),
    lines: std::ops::Range<usize>,
    k: usize,
    mut read: impl FnMut(u32) -> Result<[u8; UNIT], E>,
    mut put: impl FnMut(usize, usize, u32),
) -> Result<(), E> {
    let each = packing.codes();
    match major {
        Major::K => {
            for (i, line) in lines.enumerate() {
                for unit in 0..k.div_ceil(each) {
                    let codes = packing.unpack(read(matrix.address(major, line as u32, unit as u32))?);
                    for (j, &code) in codes.iter().take(each.min(k - unit * each)).enumerate() {
                        put(i, unit * each + j, code);
                    }
                }
            }
        }
        Major::Mn => {
            for at in 0..k {
                for unit in lines.start / each..lines.end.div_ceil(each) {
                    let codes = packing.unpack(read(matrix.address(major, at as u32, unit as u32))?);
                    for (j, &code) in codes.iter().take(each).enumerate() {
                        let line = unit * each + j;
                        if lines.contains(&line) {
                            put(line - lines.start, at, code);
                        }
                    }
                }
            }
        }
    }
    Ok(())
}
