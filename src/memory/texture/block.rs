//! Block-compressed texels: four by four share eight or sixteen bytes (Direct3D 11.3 Functional Specification, 19.5 Block
//! Compression Formats, which CUDA's BC1 to BC7 are).
//!
//! The specification lets hardware come near to the exact interpolation of BC1 to BC3: here colours are bytes, less than
//! one step of 1/255 away from it.

use half::f16;

use super::format::linear;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Block { Bc1, Bc2, Bc3, Bc4, Bc4Signed, Bc5, Bc5Signed, Bc6, Bc6Signed, Bc7 }

impl Block {
    /// Bytes of a block.
    pub fn bytes(self) -> u32 {
        match self {
            Block::Bc1 | Block::Bc4 | Block::Bc4Signed => 8,
            _ => 16,
        }
    }

    pub fn channels(self) -> u32 {
        match self {
            Block::Bc4 | Block::Bc4Signed => 1,
            Block::Bc5 | Block::Bc5Signed => 2,
            _ => 4,
        }
    }

    /// It has colours in bytes, which may be sRGB-encoded.
    pub fn has_bytes(self) -> bool {
        matches!(self, Block::Bc1 | Block::Bc2 | Block::Bc3 | Block::Bc7)
    }

    /// Components of one of the texels, bits of f32.
    pub fn read(self, block: [u8; 16], [x, y]: [usize; 2], srgb: bool) -> [u32; 4] {
        let at = 4 * y + x;
        let mut bytes = [0; 64];
        match self {
            Block::Bc1 => bcdec_rs::bc1(&block, &mut bytes, 16),
            Block::Bc2 => bcdec_rs::bc2(&block, &mut bytes, 16),
            Block::Bc3 => bcdec_rs::bc3(&block, &mut bytes, 16),
            Block::Bc7 => bcdec_rs::bc7(&block, &mut bytes, 16),
            Block::Bc4 | Block::Bc4Signed => {
                let mut values = [0.0_f32; 16];
                bcdec_rs::bc4_float(&block, &mut values, 4, self == Block::Bc4Signed);
                return [values[at], 0.0, 0.0, 1.0].map(f32::to_bits);
            }
            Block::Bc5 | Block::Bc5Signed => {
                let mut values = [0.0_f32; 32];
                bcdec_rs::bc5_float(&block, &mut values, 8, self == Block::Bc5Signed);
                return [values[2 * at], values[2 * at + 1], 0.0, 1.0].map(f32::to_bits);
            }
            Block::Bc6 | Block::Bc6Signed => {
                let mut halves = [0_u16; 48];
                bcdec_rs::bc6h_half(&block, &mut halves, 12, self == Block::Bc6Signed);
                let value = |i: usize| f16::from_bits(halves[3 * at + i]).to_f32();
                return [value(0), value(1), value(2), 1.0].map(f32::to_bits);
            }
        }
        std::array::from_fn(|i| match bytes[4 * at + i] {
            byte if srgb && i < 3 => linear(byte),
            byte => (f32::from(byte) / 255.0).to_bits(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(block: Block, bytes: [u8; 16], at: usize) -> [f32; 4] {
        block.read(bytes, [at % 4, at / 4], false).map(f32::from_bits)
    }

    fn blocks() -> impl Iterator<Item = [u8; 16]> {
        let mut state = 0x1234_5678_9abc_def0_1111_2222_3333_4445_u128;
        (0..4000).map(move |_| {
            state ^= state << 29;
            state ^= state >> 37;
            state ^= state << 11;
            state
                .wrapping_mul(0x2545_f491_4f6c_dd1d_9e37_79b9_7f4a_7c15)
                .to_le_bytes()
        })
    }

    /// Less than a step of a byte away from the exact fraction.
    #[track_caller]
    fn near(found: f32, expected: f64) {
        let away = (f64::from(found) - expected).abs() * 255.0;
        assert!(away < 1.0, "{found} for {expected}");
    }

    /// The eight values that two ends stand for, or six with the least and the greatest.
    fn between(a: f64, b: f64, greater: bool, least: f64, n: u64) -> f64 {
        match (n, greater) {
            (0, _) => a,
            (1, _) => b,
            (n, true) => (a * (8 - n) as f64 + b * (n - 1) as f64) / 7.0,
            (6, false) => least,
            (7, false) => 1.0,
            (n, false) => (a * (6 - n) as f64 + b * (n - 1) as f64) / 5.0,
        }
    }

    /// Direct3D 11.3 Functional Specification, 19.5.8 to 19.5.10: colours of 5, 6 and 5 bits, and thirds or a half between.
    #[test]
    fn colours_lie_between_their_two_ends() {
        let part =
            |word: u64, first: u32, bits: u32| (word >> first & ((1 << bits) - 1)) as f64 / f64::from((1 << bits) - 1);
        for bytes in blocks() {
            let words = [0, 8].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")));
            for block in [Block::Bc1, Block::Bc2, Block::Bc3] {
                let (alpha, colour) = match block {
                    Block::Bc1 => (0, words[0]),
                    _ => (words[0], words[1]),
                };
                // In BC1 the order of the ends says how many colours there are.
                let four = block != Block::Bc1 || colour & 0xffff > colour >> 16 & 0xffff;
                for at in 0..16 {
                    let n = colour >> (32 + 2 * at) & 3;
                    let found = value(block, bytes, at);
                    for (i, (first, bits)) in [(11, 5), (5, 6), (0, 5)].into_iter().enumerate() {
                        let (a, b) = (part(colour, first, bits), part(colour, first + 16, bits));
                        let expected = match (n, four) {
                            (0, _) => a,
                            (1, _) => b,
                            (2, true) => (2.0 * a + b) / 3.0,
                            (3, true) => (a + 2.0 * b) / 3.0,
                            (2, false) => (a + b) / 2.0,
                            _ => 0.0,
                        };
                        near(found[i], expected);
                    }
                    let expected = match block {
                        Block::Bc1 => f64::from(u8::from(four || n != 3)),
                        Block::Bc2 => part(alpha, 4 * at as u32, 4),
                        _ => {
                            let (a, b) = (part(alpha, 0, 8), part(alpha, 8, 8));
                            between(a, b, a > b, 0.0, alpha >> (16 + 3 * at) & 7)
                        }
                    };
                    near(found[3], expected);
                }
            }
        }
    }

    /// Another decoder; the bytes of its colours are b, g, r, a.
    #[test]
    fn blocks_of_bc7_are_those_of_another_decoder() {
        for bytes in blocks() {
            let mut expected = [0; 16];
            texture2ddecoder::decode_bc7_block(&bytes, &mut expected);
            for (at, colour) in expected.iter().enumerate() {
                let [b, g, r, a] = colour.to_le_bytes();
                let expected = [r, g, b, a].map(|byte| f32::from(byte) / 255.0);
                assert_eq!(value(Block::Bc7, bytes, at), expected, "{bytes:x?} {at}");
            }
        }
    }

    /// Direct3D 11.3 Functional Specification, 19.5.11 and 19.5.12: two values and six between them, or four, and the ends.
    #[test]
    fn numbers_lie_between_their_two_ends() {
        for bytes in blocks() {
            let word = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
            for (one, two, is_signed) in [
                (Block::Bc4, Block::Bc5, false),
                (Block::Bc4Signed, Block::Bc5Signed, true),
            ] {
                let end = |byte: u8| match is_signed {
                    true => f64::from((byte as i8).max(-127)) / 127.0,
                    false => f64::from(byte) / 255.0,
                };
                let (a, b) = (end(bytes[0]), end(bytes[1]));
                let greater = match is_signed {
                    true => bytes[0] as i8 > bytes[1] as i8,
                    false => bytes[0] > bytes[1],
                };
                for at in 0..16 {
                    let least = if is_signed { -1.0 } else { 0.0 };
                    let expected = between(a, b, greater, least, word >> (16 + 3 * at) & 7);
                    for block in [one, two] {
                        let found = f64::from(value(block, bytes, at)[0]);
                        assert!(
                            (found - expected).abs() < 1e-6,
                            "{block:?} {bytes:x?} {at}: {found} for {expected}"
                        );
                    }
                }
            }
        }
    }

    /// The one mode of BC6H with two whole colours of ten bits (mode 11): its ends, as 19.5.14 makes halves of them.
    #[test]
    fn colours_of_high_range_have_their_ends() {
        let ends: [[u128; 3]; 2] = [[0, 1, 1023], [511, 77, 800]];
        let mut word = 0b00011_u128;
        for (n, part) in ends.as_flattened().iter().enumerate() {
            word |= part << (5 + 10 * n);
        }
        // The last texel has index 15, all others 0; the first has a bit less.
        word |= 15 << 124;
        let half = |part: u128| {
            let whole = match part {
                0 => 0,
                1023 => 0xffff,
                part => ((part << 16) + 0x8000) >> 10,
            };
            f16::from_bits(((whole * 31) >> 6) as u16).to_f32()
        };
        for (at, end) in [(0, 0), (7, 0), (15, 1)] {
            let [r, g, b] = ends[end].map(half);
            assert_eq!(value(Block::Bc6, word.to_le_bytes(), at), [r, g, b, 1.0], "{at}");
        }
    }
}
