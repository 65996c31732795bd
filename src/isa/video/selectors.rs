//! What is written on the operands of video instructions: which bytes and halves they choose, and with which sign.

use super::scalar::Part as Field;
use super::{Op, Opcode};

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
    fn from_word(word: &str) -> Option<Part> {
        Some(match word {
            "b0" => Part::B0,
            "b1" => Part::B1,
            "b2" => Part::B2,
            "b3" => Part::B3,
            "h0" => Part::H0,
            "h1" => Part::H1,
            _ => return None,
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
    /// As many as `count` from `first` on.
    fn default(first: u8, count: usize) -> Places {
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

/// The elements that a mask such as `b320` names; they stand in falling order.
fn mask(word: &str, count: usize) -> Option<u8> {
    let digits = word.strip_prefix(if count == 2 { 'h' } else { 'b' })?;
    let mut mask = 0;
    let mut above = count as u8;
    for digit in digits.bytes() {
        let element = digit.checked_sub(b'0').filter(|&element| element < above)?;
        (mask, above) = (mask | 1 << element, element);
    }
    Some(mask).filter(|&mask| mask != 0)
}

impl Opcode {
    /// The operation, with what its operands say. `third`: an operand `c` is written.
    ///
    /// # Errors
    /// A selector that the instruction does not know.
    pub fn with(self, selectors: &Selectors, third: bool) -> Result<Op, Misfit> {
        match self {
            Opcode::Scalar(opcode) => {
                let part = |word: Option<&str>, operand: usize| match word {
                    None => Ok(Part::Whole),
                    Some(word) => Part::from_word(word).ok_or(Misfit {
                        operand,
                        expected: ".b0, .b1, .b2, .b3, .h0 or .h1",
                    }),
                };
                if opcode.uses_third() && selectors.d.is_some() {
                    return Err(Misfit {
                        operand: 0,
                        expected: "no selector",
                    });
                }
                Ok(Op::Scalar {
                    opcode,
                    a: part(selectors.a, 1)?,
                    b: part(selectors.b, 2)?,
                    d: part(selectors.d, 0)?,
                    negate_product: selectors.negate_product,
                    negate_c: selectors.negate_c,
                    third,
                })
            }
            Opcode::Simd(opcode) => {
                let count = opcode.lanes().count();
                let places = |word: Option<&str>, operand: usize, first: u8| match word {
                    None => Ok(Places::default(first, count)),
                    Some(word) => Places::from_word(word, count).ok_or(Misfit {
                        operand,
                        expected: if count == 2 {
                            ".h and two digits from 0 to 3"
                        } else {
                            ".b and four digits from 0 to 7"
                        },
                    }),
                };
                let (a, b) = (places(selectors.a, 1, 0)?, places(selectors.b, 2, count as u8)?);
                let mask = match selectors.d {
                    None => (1 << count) - 1,
                    Some(word) => mask(word, count).ok_or(Misfit {
                        operand: 0,
                        expected: if count == 2 {
                            ".h0, .h1 or .h10"
                        } else {
                            ".b and some of the digits 3, 2, 1, 0 in this order"
                        },
                    })?,
                };
                Ok(Op::Simd { opcode, mask, a, b })
            }
        }
    }
}
