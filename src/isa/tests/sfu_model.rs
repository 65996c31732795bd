//! The function unit once more, straight from the published description: whole numbers with room to spare, no
//! vectors, no floats, a case after the other. Sign, exponent and significand come in and go out apart.
//! Of the unit it knows the tables' words and nothing else.

use super::super::sfu::rom;

const NAN: u32 = 0x7fff_ffff;

/// What a word of bits stands for.
enum Operand {
    Nan,
    Infinity {
        negative: bool,
    },
    /// Subnormals, too.
    Zero {
        negative: bool,
    },
    /// (-1)^negative · significand/2^23 · 2^exponent, the significand from 2^23 to 2^24.
    Number {
        negative: bool,
        exponent: i64,
        significand: i64,
    },
}

fn operand(bits: u32) -> Operand {
    let negative = bits >= 0x8000_0000;
    let field = i64::from(bits / 0x80_0000 % 256);
    let fraction = i64::from(bits % 0x80_0000);
    match (field, fraction) {
        (255, 0) => Operand::Infinity { negative },
        (255, _) => Operand::Nan,
        (0, _) => Operand::Zero { negative },
        _ => Operand::Number {
            negative,
            exponent: field - 127,
            significand: fraction + 0x80_0000,
        },
    }
}

fn infinity(negative: bool) -> u32 {
    if negative { 0xff80_0000 } else { 0x7f80_0000 }
}
fn zero(negative: bool) -> u32 {
    if negative { 0x8000_0000 } else { 0 }
}
/// A significand that is 2^24 belongs to the next exponent.
fn number(negative: bool, mut exponent: i64, mut significand: i64) -> u32 {
    if significand == 1 << 24 {
        (exponent, significand) = (exponent + 1, 1 << 23);
    }
    assert!((1 << 23..1 << 24).contains(&significand));
    if exponent < -126 {
        return zero(negative);
    }
    if exponent > 127 {
        return infinity(negative);
    }
    let bits = (exponent + 127) * 0x80_0000 + (significand - 0x80_0000);
    u32::try_from(bits).unwrap() | zero(negative)
}
/// A positive value over 2^scale, cut off to a float's 24 bits.
fn cut(negative: bool, value: i64, scale: i64) -> u32 {
    if value == 0 {
        return zero(negative);
    }
    let bits = 64 - i64::from(value.leading_zeros());
    let significand = if bits > 24 {
        value >> (bits - 24)
    } else {
        value << (24 - bits)
    };
    number(negative, bits - 1 - scale, significand)
}

/// x²/2^19, each partial product x·2^i without its bits below 2^18; the rows of the two lowest bits are not there.
fn square(x: i64) -> i64 {
    (2..17).filter(|i| x >> i & 1 == 1).map(|i| (x << i) >> 18).sum::<i64>() / 2
}

/// A, B and C of a slice; as the ROMs hold them, with what they leave out.
type Slice = (i64, i64, i64);
fn slice(words: &[u64], at: i64, b_bias: i64, c_bias: i64) -> Slice {
    let word = i64::try_from(words[usize::try_from(at).unwrap()]).unwrap();
    (word >> 28, (word >> 12) % 65536 - b_bias, word % 4096 - c_bias)
}

pub fn rcp(bits: u32) -> u32 {
    match operand(bits) {
        Operand::Nan => NAN,
        Operand::Infinity { negative } => zero(negative),
        // A zero counts as positive infinity's reciprocal with its sign.
        Operand::Zero { negative } => infinity(negative),
        Operand::Number {
            negative,
            exponent,
            significand,
        } => {
            let fraction = significand - (1 << 23);
            let x = fraction % (1 << 16);
            let (a, b, c) = slice(&rom::RCP_WORDS, fraction >> 16, 1 << 16, 0);
            let sum = (a << 13) + b * x + c * square(2 * x);
            number(negative, -exponent - 1, (sum + 0x47e7) >> 15)
        }
    }
}

pub fn rsqrt(bits: u32) -> u32 {
    match operand(bits) {
        Operand::Nan => NAN,
        Operand::Zero { negative } => infinity(negative),
        Operand::Infinity { negative: false } => 0,
        Operand::Infinity { negative: true } | Operand::Number { negative: true, .. } => NAN,
        Operand::Number {
            exponent, significand, ..
        } => {
            let fraction = significand - (1 << 23);
            // Even exponents have the lower half of the table.
            let half = exponent.div_euclid(2);
            let odd = exponent.rem_euclid(2);
            if odd == 0 && fraction == 0 {
                return number(false, -half, 1 << 23);
            }
            let place = fraction + (odd << 23);
            let x = place % (1 << 17);
            let (a, b, c) = slice(&rom::RSQRT_WORDS, place >> 17, 1 << 16, 0);
            let sum = (a << 14) + b * x + c * 4 * square(x);
            number(false, -half - 1, (sum + 0x7fff) >> 16)
        }
    }
}

pub fn ex2(bits: u32) -> u32 {
    match operand(bits) {
        Operand::Nan => NAN,
        Operand::Infinity { negative } => {
            if negative {
                0
            } else {
                infinity(false)
            }
        }
        Operand::Zero { .. } => number(false, 0, 1 << 23),
        Operand::Number { negative, exponent, .. } if exponent >= 7 => {
            if negative {
                0
            } else {
                infinity(false)
            }
        }
        Operand::Number {
            negative,
            exponent,
            significand,
        } => {
            // 23 bits of fraction, cut off.
            let fixed = if exponent >= 0 {
                significand << exponent
            } else {
                significand >> (-exponent).min(63)
            };
            let (mut whole, mut fraction) = (fixed >> 23, fixed % (1 << 23));
            if negative {
                whole = -whole;
                if fraction != 0 {
                    // One's complement.
                    (whole, fraction) = (whole - 1, (1 << 23) - 1 - fraction);
                }
            }
            let x = fraction % (1 << 17);
            let (a, b, c) = slice(&rom::EX2_WORDS, fraction >> 17, 0, 0);
            let sum = (a << 13) + b * x + c * square(x);
            number(false, whole, (sum + 0x77e2) >> 15)
        }
    }
}

pub fn lg2(bits: u32) -> u32 {
    match operand(bits) {
        Operand::Nan => NAN,
        Operand::Zero { .. } => infinity(true),
        Operand::Infinity { negative: false } => infinity(false),
        Operand::Infinity { negative: true } | Operand::Number { negative: true, .. } => NAN,
        Operand::Number {
            exponent: 0,
            significand: 0x80_0000,
            ..
        } => 0,
        Operand::Number {
            exponent, significand, ..
        } => {
            let fraction = significand - (1 << 23);
            let x = fraction % (1 << 17);
            let (a, b, c) = slice(&rom::LG2_WORDS, fraction >> 17, 0, 1 << 10);
            let sum = (a << 12) + b * x + c * 2 * square(x);
            let value = (exponent << 36) + ((sum + 0x3345) >> 2);
            // One's complement of what is negative.
            if value < 0 {
                cut(true, -1 - value, 36)
            } else {
                cut(false, value, 36)
            }
        }
    }
}

fn circular(bits: u32, cosine: bool) -> u32 {
    match operand(bits) {
        Operand::Nan | Operand::Infinity { .. } => NAN,
        // Its sine is its sign's zero, its cosine one, less what the table lacks of it.
        Operand::Zero { negative } => turn(negative, 0, cosine),
        Operand::Number {
            negative,
            exponent,
            significand,
        } => {
            // 1/2π in 24 bits is 0xa2f983/2^26; the product without the bits beyond a float's significand.
            let product = significand * 0xa2_f983;
            let length = 64 - i64::from(product.leading_zeros());
            let turns = product >> (length - 24) << (length - 24);
            // Units of 2^-(23 + 26 - exponent) turns into quarters with 23 bits of fraction: 2^25 to a turn.
            let shift = exponent - 24;
            let quarters = if shift >= 0 {
                (turns % (1 << 25)) << shift.min(37)
            } else {
                turns >> (-shift).min(63)
            };
            turn(negative, quarters % (1 << 25), cosine)
        }
    }
}
/// Of quarters of a turn with 23 bits of fraction, modulo four.
fn turn(negative: bool, quarters: i64, cosine: bool) -> u32 {
    let quadrant = (quarters >> 23) + i64::from(cosine);
    let fraction = quarters % (1 << 23);
    let fraction = if quadrant % 2 == 1 {
        (1 << 23) - 1 - fraction
    } else {
        fraction
    };
    let x = fraction % (1 << 17);
    let (a, b, c) = slice(&rom::SIN_WORDS, fraction >> 17, 0, 1 << 11);
    let sum = (a << 11) + b * x + c * square(x);
    let lower_half = quadrant / 2 % 2 == 1;
    cut((negative && !cosine) != lower_half, sum, 37)
}
pub fn sin(bits: u32) -> u32 {
    circular(bits, false)
}
pub fn cos(bits: u32) -> u32 {
    circular(bits, true)
}
