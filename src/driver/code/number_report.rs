//! The report of a number that has gone wrong: what was computed of what, and where.

use std::fmt::{self, Write};

use half::{bf16, f16};

use crate::isa::floats::Real;
use crate::program::Named;
use crate::sanitizer::numbers::{Number, Wrong};

use super::fault;

/// For people; several lines, the first of which says what went wrong.
pub fn report(number: &Number) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write(number, &mut text);
    text
}

fn write(number: &Number, text: &mut String) -> fmt::Result {
    let what = match number.wrong {
        Wrong::Nan => "NaN from operands that are none",
        Wrong::Infinity => "infinity from finite operands",
        Wrong::Subnormal => "underflow",
        Wrong::Cancellation => "cancellation",
    };
    write!(text, "{what} in {}: {}", Named(&number.kernel), number.op)?;
    for (index, (real, bits)) in number.operands.iter().enumerate() {
        let before = if index == 0 { " of" } else { "," };
        match real {
            Some(real) => write!(text, "{before} {}", Value(*real, *bits))?,
            None => write!(text, "{before} {bits}")?,
        }
    }
    write!(text, " gives {}", Value(number.real, number.result))?;
    let ([bx, by, bz], [x, y, z]) = (number.block, number.thread);
    write!(text, "\n  first by block ({bx},{by},{bz}), thread ({x},{y},{z})")?;
    fault::stack(std::slice::from_ref(&number.site), text)?;
    match number.times - 1 {
        0 => Ok(()),
        1 => text.write_str("\n  1 more time by this instruction"),
        more => write!(text, "\n  {more} more times by this instruction"),
    }
}

/// A number in decimal, with its bits.
struct Value(Real, u64);

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Value(real, bits) = *self;
        match real {
            Real::F16 => write!(f, "{:?} (0x{bits:04x})", f16::from_bits(bits as u16).to_f32()),
            Real::Bf16 => write!(f, "{:?} (0x{bits:04x})", bf16::from_bits(bits as u16).to_f32()),
            Real::F32 => write!(f, "{:?} (0x{bits:08x})", f32::from_bits(bits as u32)),
            Real::F64 => write!(f, "{:?} (0x{bits:016x})", f64::from_bits(bits)),
        }
    }
}
