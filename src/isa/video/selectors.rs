//! What is written on the operands of video instructions: which bytes and halves they choose, and with which sign.

use super::scalar::Part as Field;

/// What is written on the operands of a video instruction, as text without the dot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Selectors<'a> {
    pub d: Option<&'a str>,
    pub a: Option<&'a str>,
    pub b: Option<&'a str>,
    /// `-a` or `-b` but not both; `-c`.
    pub negate_product: bool,
    pub negate_c: bool,
}

/// Why an instruction's operands do not fit its opcode: which operand (0: d, 1: a, 2: b), and what may stand there.
pub struct Misfit {
    pub operand: usize,
    pub expected: &'static str,
}

/// Which part of a 32-bit operand a scalar instruction reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Part { Whole, B0, B1, B2, B3, H0, H1 }

impl Part {
    /// The whole operand where nothing is written.
    pub(super) fn read(word: Option<&str>, operand: usize) -> Result<Part, Misfit> {
        Ok(match word {
            None => Part::Whole,
            Some("b0") => Part::B0,
            Some("b1") => Part::B1,
            Some("b2") => Part::B2,
            Some("b3") => Part::B3,
            Some("h0") => Part::H0,
            Some("h1") => Part::H1,
            Some(_) => {
                return Err(Misfit {
                    operand,
                    expected: ".b0, .b1, .b2, .b3, .h0 or .h1",
                });
            }
        })
    }

    pub(super) fn field(self) -> Field {
        let (shift, bits) = match self {
            Part::Whole => (0, 32),
            Part::B0 => (0, 8),
            Part::B1 => (8, 8),
            Part::B2 => (16, 8),
            Part::B3 => (24, 8),
            Part::H0 => (0, 16),
            Part::H1 => (16, 16),
        };
        Field { shift, bits }
    }
}

/// The places among the elements of `b` and `a` that a SIMD instruction reads, the lowest element's first; two have two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Places(pub [u8; 4]);

impl Places {
    /// Without a word as many as `count` from `first` on.
    pub(super) fn read(word: Option<&str>, operand: usize, first: u8, count: usize) -> Result<Places, Misfit> {
        let Some(word) = word else {
            return Ok(Places::from(first, count));
        };
        Places::from_word(word, count).ok_or(Misfit {
            operand,
            expected: match count {
                2 => ".h and two digits from 0 to 3",
                _ => ".b and four digits from 0 to 7",
            },
        })
    }

    fn from(first: u8, count: usize) -> Places {
        let mut places = [0; 4];
        for (place, from) in places.iter_mut().zip(first..).take(count) {
            *place = from;
        }
        Places(places)
    }

    /// `h10`, `b7654`
    fn from_word(word: &str, count: usize) -> Option<Places> {
        let digits = word.strip_prefix(if count == 2 { 'h' } else { 'b' })?;
        if digits.len() != count {
            return None;
        }
        let mut places = [0; 4];
        for (place, digit) in places.iter_mut().zip(digits.bytes().rev()) {
            *place = digit.checked_sub(b'0').filter(|&place| place < 2 * count as u8)?;
        }
        Some(Places(places))
    }
}

/// Which of `count` elements a result's mask such as `b320` names, which stand in falling order; without one all.
pub(super) fn mask(word: Option<&str>, count: usize) -> Result<u8, Misfit> {
    let Some(word) = word else {
        return Ok((1 << count) - 1);
    };
    named(word, count).ok_or(Misfit {
        operand: 0,
        expected: match count {
            2 => ".h0, .h1 or .h10",
            _ => ".b and some of the digits 3, 2, 1, 0 in this order",
        },
    })
}

fn named(word: &str, count: usize) -> Option<u8> {
    let digits = word.strip_prefix(if count == 2 { 'h' } else { 'b' })?;
    let mut mask = 0;
    let mut above = count as u8;
    for digit in digits.bytes() {
        let element = digit.checked_sub(b'0').filter(|&element| element < above)?;
        (mask, above) = (mask | 1 << element, element);
    }
    Some(mask).filter(|&mask| mask != 0)
}
