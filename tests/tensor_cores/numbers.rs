//! Small whole numbers as codes of each type, and random ones.

/// splitmix64
pub struct Random(u64);

impl Random {
    pub fn of(text: &str) -> Random {
        Random(text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        }))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub enum Type { F16, Bf16, Tf32, E4m3, E5m2, E3m2, E2m3, E2m1, S8, U8, B1 }

impl Type {
    /// Bits in shared memory, gaps included: sixteen elements of six or four bits have sixteen bytes.
    pub fn bits(self) -> usize {
        match self {
            Type::Tf32 => 32,
            Type::F16 | Type::Bf16 => 16,
            Type::B1 => 1,
            _ => 8,
        }
    }

    /// As opcodes have it.
    pub fn name(self) -> &'static str {
        match self {
            Type::F16 => "f16",
            Type::Bf16 => "bf16",
            Type::Tf32 => "tf32",
            Type::E4m3 => "e4m3",
            Type::E5m2 => "e5m2",
            Type::E3m2 => "e3m2",
            Type::E2m3 => "e2m3",
            Type::E2m1 => "e2m1",
            Type::S8 => "s8",
            Type::U8 => "u8",
            Type::B1 => "b1",
        }
    }

    /// Exponent and fraction bits of floats.
    pub fn format(self) -> Option<(u32, u32)> {
        Some(match self {
            Type::F16 => (5, 10),
            Type::Bf16 => (8, 7),
            Type::Tf32 => (8, 23),
            Type::E4m3 => (4, 3),
            Type::E5m2 => (5, 2),
            Type::E3m2 => (3, 2),
            Type::E2m3 => (2, 3),
            Type::E2m1 => (2, 1),
            Type::S8 | Type::U8 | Type::B1 => return None,
        })
    }

    /// A whole number from -2 to 2 (of u8, from 0).
    pub fn encode(self, value: i32) -> u32 {
        let Some((exponent, fraction)) = self.format() else {
            return value as u8 as u32;
        };
        let sign = u32::from(value < 0) << (exponent + fraction);
        let bias = (1 << (exponent - 1)) - 1;
        match value.unsigned_abs() {
            0 => sign,
            1 => sign | bias << fraction,
            2 => sign | (bias + 1) << fraction,
            _ => unreachable!("small ones only"),
        }
    }

    pub fn decode(self, code: u32) -> i32 {
        if self == Type::S8 {
            return i32::from(code as u8 as i8);
        }
        if self == Type::U8 {
            return code as i32;
        }
        [-2, -1, 0, 1, 2]
            .into_iter()
            .find(|&value| self.encode(value) == code)
            .unwrap_or_else(|| panic!("{self:?} {code:#x} is none that was written"))
    }

    pub fn draw(self, random: &mut Random) -> u32 {
        let value: i32 = random.one(&[-2, -1, 0, 0, 1, 1, 2]);
        self.encode(if self == Type::U8 { value.abs() } else { value })
    }
}

/// The code of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    F16,
    F32,
    S32,
}

impl Sum {
    pub fn encode(self, value: i32) -> u32 {
        match self {
            Sum::S32 => value as u32,
            Sum::F32 => (value as f32).to_bits(),
            Sum::F16 => {
                assert!(value.abs() <= 2048, "exact");
                let (mut exponent, mut magnitude) = (25u32, value.unsigned_abs());
                if magnitude == 0 {
                    return 0;
                }
                while magnitude < 1 << 10 {
                    (exponent, magnitude) = (exponent - 1, magnitude << 1);
                }
                while magnitude >= 1 << 11 {
                    (exponent, magnitude) = (exponent + 1, magnitude >> 1);
                }
                u32::from(value < 0) << 15 | exponent << 10 | magnitude & 0x3ff
            }
        }
    }
}
