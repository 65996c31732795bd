//! Numbers from a seed: the same ones on every machine and in every version of a library.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    /// SplitMix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Bits of an integer that instructions find interesting: small, at a border, or anything.
    pub fn integer(&mut self) -> u64 {
        match self.below(8) {
            0 => self.below(5) as u64,
            1 => (self.below(5) as u64).wrapping_neg(),
            2 => 1u64 << self.below(64),
            3 => (1u64 << self.below(64)).wrapping_sub(1),
            4 => self.next() & 0xff,
            5 => self.pick(&[
                0x8000_0000,
                0x7fff_ffff,
                0xffff_ffff,
                0x8000,
                0x7fff,
                0x8000_0000_8000_8000,
            ]),
            _ => self.next(),
        }
    }

    /// Mostly numbers that sums and products keep finite, now and then a special one.
    pub fn float(&mut self) -> f64 {
        let number = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        match self.below(20) {
            0 => self.pick(&[0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1.5, 2.5]),
            1 => self.pick(&[f64::INFINITY, f64::NEG_INFINITY, f64::NAN]),
            2 => self.pick(&[1e-40, -1e-42, 1e-310, 1e38, -3e38, 1e300, 6e-8, 65504.0, 1e5]),
            3 => (number * 512.0).floor() - 256.0,
            4 => number * 1e10,
            5..=9 => number,
            _ => number * 16.0 - 8.0,
        }
    }
}
