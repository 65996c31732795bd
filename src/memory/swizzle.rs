//! How bytes change places in shared memory so that accesses meet fewer bank conflicts (PTX ISA, Tensors, Swizzling
//! Modes): tensor copies write so, and matrix products read so.
//!
//! Within a pattern that repeats every 256 to 1024 bytes, lines of 128 bytes have their chunks exchanged: the number of
//! a chunk is combined with the number of its line. What counts is the byte's address in its block's window, not where
//! a box starts ("swizzle base offset" in the manual).

/// A swizzling mode with its atomicity (PTX ISA, Table "Valid combination of swizzle-atomicity with swizzling-mode").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Swizzle {
    None,
    B32,
    B64,
    /// Rows of 96 bytes, one behind the other; their chunks of 16 bytes change places as with [`Swizzle::B32`].
    B96,
    B128,
    /// Chunks of 32 bytes stay whole.
    B128Atom32,
    /// As before, and in each second line the halves of 16 bytes change places.
    B128Atom32Flip8,
    /// Chunks of 64 bytes stay whole.
    B128Atom64,
}

impl Swizzle {
    /// Where the byte goes that would be at `address`, which counts from the start of its block's window. The same
    /// function leads back.
    #[inline(always)]
    pub const fn apply(self, address: u32) -> u32 {
        let line = address >> 7;
        match self {
            Swizzle::None => address,
            Swizzle::B32 | Swizzle::B96 => address ^ (line & 1) << 4,
            Swizzle::B64 => address ^ (line & 3) << 4,
            Swizzle::B128 => address ^ (line & 7) << 4,
            Swizzle::B128Atom32 => address ^ (line & 3) << 5,
            Swizzle::B128Atom32Flip8 => address ^ (line & 3) << 5 ^ (line & 1) << 3,
            Swizzle::B128Atom64 => address ^ (line & 1) << 6,
        }
    }

    /// Bytes that a row of a box takes at least, and at most; `None`: no row is widened, and any may stand there.
    pub const fn span(self) -> Option<u32> {
        match self {
            Swizzle::None => None,
            Swizzle::B32 => Some(32),
            Swizzle::B64 => Some(64),
            Swizzle::B96 => Some(96),
            Swizzle::B128 | Swizzle::B128Atom32 | Swizzle::B128Atom32Flip8 | Swizzle::B128Atom64 => Some(128),
        }
    }

    /// Bytes that stay together, at multiples of as many.
    pub const fn chunk(self) -> u32 {
        match self {
            Swizzle::B128Atom32Flip8 => 8,
            Swizzle::None
            | Swizzle::B32
            | Swizzle::B64
            | Swizzle::B96
            | Swizzle::B128
            | Swizzle::B128Atom32
            | Swizzle::B128Atom64 => 16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The manual's tables: by line of 128 bytes, which 16 bytes of the source stand in each place.
    fn table(swizzle: Swizzle, lines: &[[u32; 8]]) {
        for address in (0..4096).step_by(16) {
            let (line, place) = (address / 128, address / 16 % 8);
            let from = swizzle.apply(address);
            assert_eq!(swizzle.apply(from), address, "{swizzle:?}");
            let expected = lines[line as usize % lines.len()][place as usize];
            assert_eq!(from, line * 128 + expected * 16, "{swizzle:?} at {address}");
        }
    }

    #[test]
    fn patterns_are_those_of_the_manual() {
        let plain = [0, 1, 2, 3, 4, 5, 6, 7];
        let pairs = [1, 0, 3, 2, 5, 4, 7, 6];
        table(Swizzle::None, &[plain]);
        table(Swizzle::B32, &[plain, pairs]);
        table(Swizzle::B96, &[plain, pairs]);
        let four = [plain, pairs, [2, 3, 0, 1, 6, 7, 4, 5], [3, 2, 1, 0, 7, 6, 5, 4]];
        table(Swizzle::B64, &four);
        let eight = [
            four[0],
            four[1],
            four[2],
            four[3],
            [4, 5, 6, 7, 0, 1, 2, 3],
            [5, 4, 7, 6, 1, 0, 3, 2],
            [6, 7, 4, 5, 2, 3, 0, 1],
            [7, 6, 5, 4, 3, 2, 1, 0],
        ];
        table(Swizzle::B128, &eight);
        let by_32 = [
            plain,
            [2, 3, 0, 1, 6, 7, 4, 5],
            [4, 5, 6, 7, 0, 1, 2, 3],
            [6, 7, 4, 5, 2, 3, 0, 1],
        ];
        table(Swizzle::B128Atom32, &by_32);
        table(Swizzle::B128Atom64, &[plain, [4, 5, 6, 7, 0, 1, 2, 3]]);
    }

    #[test]
    fn each_second_line_is_flipped() {
        for address in (0..2048).step_by(8) {
            let plain = Swizzle::B128Atom32.apply(address);
            let flip = if address / 128 % 2 == 1 { 8 } else { 0 };
            assert_eq!(Swizzle::B128Atom32Flip8.apply(address), plain ^ flip);
        }
    }
}
