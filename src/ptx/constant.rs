//! Constants and constant expressions: literals → values, operators folded to an [`Expr`] (PTX ISA, Constants: "Integer
//! Constant Expression Evaluation").
//!
//! Integers are 64 bits, `.s64` unless `U` or size makes them `.u64`; floating-point arithmetic is `.f64`.

use super::ast::{Expr, Span, Type};

/// A folded expression or what is wrong with it, and where. Boxed: it is the rare case.
pub type Folded = Result<Expr, Box<(Span, String)>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub enum Binary { Mul, Div, Rem, Add, Sub, Shl, Shr, Lt, Gt, Le, Ge, Eq, Ne, And, Xor, Or, AndAnd, OrOr }

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub enum Unary { Plus, Minus, Not, Complement }

fn fail(span: Span, message: impl Into<String>) -> Folded {
    Err(Box::new((span, message.into())))
}

fn int(bits: u64, unsigned: bool, span: Span) -> Expr {
    Expr::Int { bits, unsigned, span }
}

fn truth(value: bool, span: Span) -> Expr {
    int(u64::from(value), false, span)
}

/// An integer in any base, or the bits of a floating-point number (`0f…`, `0d…`).
pub fn number(text: &str, span: Span) -> Folded {
    let (body, suffix) = match text.strip_suffix('U') {
        Some(body) => (body, true),
        None => (text, false),
    };
    let bytes = body.as_bytes();
    let (digits, radix) = match (bytes[0], bytes.get(1)) {
        (b'0', Some(b'x' | b'X')) => (&body[2..], 16),
        (b'0', Some(b'b' | b'B')) => (&body[2..], 2),
        (b'0', Some(b'f' | b'F')) => {
            return match u32::from_str_radix(&text[2..], 16) {
                Ok(bits) if text.len() == 10 => Ok(Expr::F32 { bits, span }),
                _ => fail(span, format!("`{text}` needs exactly 8 hexadecimal digits behind `0f`")),
            };
        }
        (b'0', Some(b'd' | b'D')) => {
            return match u64::from_str_radix(&text[2..], 16) {
                Ok(bits) if text.len() == 18 => Ok(Expr::F64 { bits, span }),
                _ => fail(
                    span,
                    format!("`{text}` needs exactly 16 hexadecimal digits behind `0d`"),
                ),
            };
        }
        (b'0', Some(_)) => (&body[1..], 8),
        _ => (body, 10),
    };
    match u64::from_str_radix(digits, radix) {
        Ok(bits) => Ok(int(bits, suffix || bits > i64::MAX as u64, span)),
        Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => {
            fail(span, format!("`{text}` does not fit in 64 bits"))
        }
        Err(_) => {
            let what = match radix {
                16 => "a hexadecimal integer",
                8 => "an octal integer",
                2 => "a binary integer",
                _ => "an integer",
            };
            fail(
                span,
                format!("`{text}` is not {what}, and names do not start with a digit"),
            )
        }
    }
}

/// `5.u32`, `1.5.f32`: a number with its type (PTX ISA 1.1, 6.4.5); integers keep as many bits as that has.
pub fn typed(text: &str, span: Span) -> Folded {
    let (digits, word) = text.rsplit_once('.').unwrap_or((text, ""));
    let Some(ty) = Type::from_word(word) else {
        return fail(span, format!("`{word}` is not a type"));
    };
    let value = match digits.contains('.') {
        true => float(digits, span)?,
        false => number(digits, span)?,
    };
    let cut = |bits: u64, width: u32, signed: bool| {
        let left = bits << (64 - width);
        match signed {
            true => (left as i64 >> (64 - width)) as u64,
            false => left >> (64 - width),
        }
    };
    use Type::*;
    let bits = match value {
        Expr::Int { bits, .. } => bits,
        _ => 0,
    };
    Ok(match (ty, &value) {
        (F32 | F64 | F16, _) => match (super::record::settled(value, ty), ty) {
            // The value that a single-precision number holds.
            (Expr::F64 { bits, .. }, F32) => Expr::F32 {
                bits: (f64::from_bits(bits) as f32).to_bits(),
                span,
            },
            (other, _) => other,
        },
        (_, Expr::Int { .. }) => match ty {
            S8 => int(cut(bits, 8, true), false, span),
            S16 => int(cut(bits, 16, true), false, span),
            S32 => int(cut(bits, 32, true), false, span),
            U8 | B8 => int(cut(bits, 8, false), false, span),
            U16 | B16 => int(cut(bits, 16, false), false, span),
            U32 | B32 => int(cut(bits, 32, false), false, span),
            U64 => int(bits, true, span),
            _ => value,
        },
        _ => return fail(span, format!("`{digits}` is no .{word}")),
    })
}

/// A decimal floating-point number: `.f64`, to be narrowed where a `.f32` is expected.
pub fn float(text: &str, span: Span) -> Folded {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Expr::F64 {
            bits: value.to_bits(),
            span,
        }),
        Ok(_) => fail(span, format!("`{text}` is too large for .f64")),
        Err(_) => fail(span, format!("`{text}` is not a floating-point number")),
    }
}

/// The value of a floating-point constant.
pub fn as_f64(expr: &Expr) -> Option<f64> {
    match *expr {
        Expr::F32 { bits, .. } => Some(f64::from(f32::from_bits(bits))),
        Expr::F64 { bits, .. } => Some(f64::from_bits(bits)),
        Expr::Int { .. } | Expr::Symbol { .. } => None,
    }
}

pub fn unary(op: Unary, operand: Folded, span: Span) -> Folded {
    Ok(match (operand?, op) {
        (Expr::Int { bits, unsigned, .. }, op) => match op {
            Unary::Plus => int(bits, unsigned, span),
            Unary::Minus => int(bits.wrapping_neg(), unsigned && bits != 1 << 63, span),
            Unary::Not => truth(bits == 0, span),
            Unary::Complement => int(!bits, unsigned, span),
        },
        (Expr::F32 { bits, .. }, Unary::Minus) => Expr::F32 {
            bits: bits ^ 1 << 31,
            span,
        },
        (Expr::F64 { bits, .. }, Unary::Minus) => Expr::F64 {
            bits: bits ^ 1 << 63,
            span,
        },
        (Expr::F32 { bits, .. }, Unary::Plus) => Expr::F32 { bits, span },
        (Expr::F64 { bits, .. }, Unary::Plus) => Expr::F64 { bits, span },
        (other @ (Expr::F32 { .. } | Expr::F64 { .. }), Unary::Not) => truth(as_f64(&other) == Some(0.0), span),
        (Expr::F32 { .. } | Expr::F64 { .. }, Unary::Complement) => {
            return fail(span, "`~` does not apply to a floating-point number");
        }
        (Expr::Symbol { name, .. }, _) => {
            return fail(span, format!("no operator applies to the address `{}`", name.text));
        }
    })
}

/// `(.s64)x`, `(.u64)x`.
pub fn cast(to: &str, operand: Folded, span: Span) -> Folded {
    let unsigned = match Type::from_word(to.trim_start_matches('.')) {
        Some(Type::U64) => true,
        Some(Type::S64) => false,
        _ => return fail(span, format!("a constant casts to .s64 or .u64, not to {to}")),
    };
    match operand? {
        Expr::Int { bits, .. } => Ok(int(bits, unsigned, span)),
        float @ (Expr::F32 { .. } | Expr::F64 { .. }) => {
            let value = as_f64(&float).unwrap_or_default();
            let bits = if unsigned { value as u64 } else { value as i64 as u64 };
            Ok(int(bits, unsigned, span))
        }
        Expr::Symbol { name, .. } => fail(span, format!("the address `{}` cannot be cast", name.text)),
    }
}

pub fn binary(op: Binary, left: Folded, right: Folded, span: Span) -> Folded {
    let (left, right) = (left?, right?);
    match (left, right) {
        (
            Expr::Int { bits: a, unsigned, .. },
            Expr::Int {
                bits: b,
                unsigned: other,
                ..
            },
        ) => integers(op, a, b, unsigned, other, span),
        (
            Expr::Symbol {
                name,
                offset,
                generic,
                mask,
                ..
            },
            Expr::Int { bits, .. },
        ) if op == Binary::Add && mask.is_none() => match offset.checked_add(bits as i64) {
            Some(offset) => Ok(Expr::Symbol {
                name,
                offset,
                generic,
                mask,
                span,
            }),
            None => fail(span, format!("the offset from `{}` does not fit in 64 bits", name.text)),
        },
        (Expr::Symbol { name, .. }, _) | (_, Expr::Symbol { name, .. }) => fail(
            span,
            format!("the address `{}` takes `+` and an integer only", name.text),
        ),
        (a, b) => match (as_f64(&a), as_f64(&b)) {
            (Some(a), Some(b)) => floats(op, a, b, span),
            _ => fail(span, "an integer and a floating-point number in one expression"),
        },
    }
}

fn floats(op: Binary, a: f64, b: f64, span: Span) -> Folded {
    let value = match op {
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Lt => return Ok(truth(a < b, span)),
        Binary::Gt => return Ok(truth(a > b, span)),
        Binary::Le => return Ok(truth(a <= b, span)),
        Binary::Ge => return Ok(truth(a >= b, span)),
        Binary::Eq => return Ok(truth(a == b, span)),
        Binary::Ne => return Ok(truth(a != b, span)),
        Binary::AndAnd => return Ok(truth(a != 0.0 && b != 0.0, span)),
        Binary::OrOr => return Ok(truth(a != 0.0 || b != 0.0, span)),
        Binary::Rem | Binary::Shl | Binary::Shr | Binary::And | Binary::Xor | Binary::Or => {
            return fail(span, "an operator for integers between floating-point numbers");
        }
    };
    Ok(Expr::F64 {
        bits: value.to_bits(),
        span,
    })
}

fn integers(op: Binary, a: u64, b: u64, left_unsigned: bool, right_unsigned: bool, span: Span) -> Folded {
    let unsigned = left_unsigned || right_unsigned;
    let (sa, sb) = (a as i64, b as i64);
    let less = if unsigned { a < b } else { sa < sb };
    let bits = match op {
        Binary::Mul => a.wrapping_mul(b),
        Binary::Div | Binary::Rem if b == 0 => return fail(span, "division by zero"),
        Binary::Div if unsigned => a / b,
        Binary::Div => sa.wrapping_div(sb) as u64,
        Binary::Rem if unsigned => a % b,
        Binary::Rem => sa.wrapping_rem(sb) as u64,
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        // The result of a shift has the type of its left operand.
        Binary::Shl => return Ok(int(if b > 63 { 0 } else { a << b }, left_unsigned, span)),
        Binary::Shr if left_unsigned => return Ok(int(if b > 63 { 0 } else { a >> b }, true, span)),
        Binary::Shr => return Ok(int((sa >> b.min(63)) as u64, false, span)),
        Binary::Lt => return Ok(truth(less, span)),
        Binary::Ge => return Ok(truth(!less, span)),
        Binary::Le => return Ok(truth(less || a == b, span)),
        Binary::Gt => return Ok(truth(!less && a != b, span)),
        Binary::Eq => return Ok(truth(a == b, span)),
        Binary::Ne => return Ok(truth(a != b, span)),
        Binary::AndAnd => return Ok(truth(a != 0 && b != 0, span)),
        Binary::OrOr => return Ok(truth(a != 0 || b != 0, span)),
        Binary::And => a & b,
        Binary::Xor => a ^ b,
        Binary::Or => a | b,
    };
    Ok(int(bits, unsigned, span))
}

/// `condition ? yes : no`
pub fn choose(condition: Folded, yes: Folded, no: Folded) -> Folded {
    let (condition, yes, no) = (condition?, yes?, no?);
    let chosen = match &condition {
        Expr::Int { bits, .. } => *bits != 0,
        Expr::F32 { .. } | Expr::F64 { .. } => as_f64(&condition) != Some(0.0),
        Expr::Symbol { name, span, .. } => return fail(*span, format!("the address `{}` is no condition", name.text)),
    };
    // Integer arms meet in the wider type, as in C.
    Ok(match (yes, no) {
        (
            Expr::Int {
                bits: a,
                unsigned: ua,
                span,
            },
            Expr::Int {
                bits: b, unsigned: ub, ..
            },
        ) => int(if chosen { a } else { b }, ua || ub, span),
        (yes, no) => {
            if chosen {
                yes
            } else {
                no
            }
        }
    })
}
