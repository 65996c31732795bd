//! Integers and pointers, element by element. What the reference leaves open is what PTX says: shifts too far give zeros or signs,
//! quotients by zero all ones.

use super::Run;
use crate::tile::op::Code;
use crate::tile::read::Op;
use crate::tile::types::{Element, Shape, TileType};
use crate::tile::value::{Data, Tile, Wide, mask, sign_extend, with_data};

/// Rounding of quotients (the numbers of `RoundingMode`).
const DOWN: u64 = 2;
const UP: u64 = 3;

impl Run {
    pub(super) fn integer(&self, op: &Op, result: &TileType) -> Result<Tile, String> {
        let operand = |group: usize| self.tile(op, group);
        let signed = |at: usize| op.number(at) != 0;
        Ok(match op.code {
            Code::Iota => {
                let bits = mask(result.element.bits());
                let data = Data::collect(result.element, (0..result.len() as u64).map(|at| at & bits));
                Tile::of(result, data)
            }
            Code::AddI => both(operand(0)?, operand(1)?, |_, a, b| a.wrapping_add(b))?,
            Code::SubI => both(operand(0)?, operand(1)?, |_, a, b| a.wrapping_sub(b))?,
            Code::MulI => both(operand(0)?, operand(1)?, |_, a, b| a.wrapping_mul(b))?,
            Code::AndI => both(operand(0)?, operand(1)?, |_, a, b| a & b)?,
            Code::OrI => both(operand(0)?, operand(1)?, |_, a, b| a | b)?,
            Code::XOrI => both(operand(0)?, operand(1)?, |_, a, b| a ^ b)?,
            Code::MulhiI => both(operand(0)?, operand(1)?, |bits, a, b| {
                ((u128::from(a) * u128::from(b)) >> bits) as u64
            })?,
            Code::NegI => {
                let zero = Tile::scalar(operand(0)?.element, 0);
                both(&zero, operand(0)?, |_, a, b| a.wrapping_sub(b))?
            }
            Code::AbsI => {
                let zero = Tile::scalar(operand(0)?.element, 0);
                both(&zero, operand(0)?, |bits, _, b| sign_extend(bits, b).unsigned_abs())?
            }
            Code::MaxI if signed(0) => both(operand(0)?, operand(1)?, |bits, a, b| {
                sign_extend(bits, a).max(sign_extend(bits, b)) as u64
            })?,
            Code::MaxI => both(operand(0)?, operand(1)?, |_, a, b| a.max(b))?,
            Code::MinI if signed(0) => both(operand(0)?, operand(1)?, |bits, a, b| {
                sign_extend(bits, a).min(sign_extend(bits, b)) as u64
            })?,
            Code::MinI => both(operand(0)?, operand(1)?, |_, a, b| a.min(b))?,
            Code::ShLI => both(
                operand(0)?,
                operand(1)?,
                |bits, a, b| {
                    if b >= bits.into() { 0 } else { a << b }
                },
            )?,
            Code::ShRI if signed(0) => both(operand(0)?, operand(1)?, |bits, a, b| {
                (sign_extend(bits, a) >> b.min(63)) as u64
            })?,
            Code::ShRI => both(
                operand(0)?,
                operand(1)?,
                |bits, a, b| {
                    if b >= bits.into() { 0 } else { a >> b }
                },
            )?,
            Code::DivI => {
                let rounding = op.number(1);
                if !(1..=UP).contains(&rounding) {
                    return Err(format!("rounding of kind {rounding}"));
                }
                match signed(0) {
                    true => both(operand(0)?, operand(1)?, |bits, a, b| {
                        signed_quotient(sign_extend(bits, a), sign_extend(bits, b), rounding)
                    })?,
                    false => both(operand(0)?, operand(1)?, |_, a, b| match a.checked_div(b) {
                        None => u64::MAX,
                        Some(quotient) => quotient + u64::from(rounding == UP && a % b != 0),
                    })?,
                }
            }
            Code::RemI if signed(0) => both(operand(0)?, operand(1)?, |bits, a, b| {
                let (a, b) = (sign_extend(bits, a), sign_extend(bits, b));
                if b == 0 { a as u64 } else { a.wrapping_rem(b) as u64 }
            })?,
            Code::RemI => both(operand(0)?, operand(1)?, |_, a, b| if b == 0 { a } else { a % b })?,
            Code::CmpI => compare(operand(0)?, operand(1)?, op.number(0), signed(1))?,
            Code::ExtI | Code::TruncI => {
                let from = operand(0)?;
                let (narrow, wide) = (from.element.bits(), mask(result.element.bits()));
                let extends = op.code == Code::ExtI && signed(0);
                let each = |bits: u64| match extends {
                    true => sign_extend(narrow, bits) as u64 & wide,
                    false => bits & wide,
                };
                with_element(from, result.element, each)
            }
            Code::Offset => {
                let Some(pointee) = result.pointee else {
                    return Err("it is no pointer".to_string());
                };
                let (pointers, offsets) = (operand(0)?, operand(1)?);
                let (step, bits) = (u64::from(pointee.bytes()), offsets.element.bits());
                let wide = with_element(offsets, Element::Pointer, |offset| {
                    (sign_extend(bits, offset) as u64).wrapping_mul(step)
                });
                both(pointers, &wide, |_, pointer, offset| pointer.wrapping_add(offset))?
            }
            Code::IntToPtr | Code::PtrToInt | Code::PtrToPtr | Code::Bitcast => {
                let from = operand(0)?;
                if from.element.bits() != result.element.bits() {
                    return Err(format!("from {} to {}", from.element, result.element));
                }
                Tile {
                    shape: from.shape.clone(),
                    element: result.element,
                    data: from.data.clone(),
                }
            }
            other => return Err(format!("`{}` is no operation on integers", other.layout().name)),
        })
    }
}

fn signed_quotient(a: i64, b: i64, rounding: u64) -> u64 {
    if b == 0 {
        return u64::MAX;
    }
    let (quotient, rest) = (a.wrapping_div(b), a.wrapping_rem(b));
    let is_negative = (rest < 0) != (b < 0);
    let by = match rounding {
        _ if rest == 0 => 0,
        DOWN if is_negative => -1,
        UP if !is_negative => 1,
        _ => 0,
    };
    quotient.wrapping_add(by) as u64
}

/// The shape of what becomes of two tiles: theirs, or that of the larger one, if the other one is a scalar in a fold.
pub fn common_shape(a: &Tile, b: &Tile) -> Result<Shape, String> {
    match (a.len(), b.len()) {
        _ if a.shape == b.shape => Ok(a.shape.clone()),
        (1, _) if a.shape.is_empty() => Ok(b.shape.clone()),
        (_, 1) if b.shape.is_empty() => Ok(a.shape.clone()),
        _ => Err(format!("tiles of {:?} and {:?} elements", &a.shape[..], &b.shape[..])),
    }
}

/// Elements of two lists of the same length, or of which one has a single element that stands for all.
pub fn zip<A: Copy, B: Copy, R>(a: &[A], b: &[B], each: impl Fn(A, B) -> R) -> Vec<R> {
    match (a, b) {
        (_, [b]) => a.iter().map(|&a| each(a, *b)).collect(),
        ([a], _) => b.iter().map(|&b| each(*a, b)).collect(),
        _ => a.iter().zip(b).map(|(&a, &b)| each(a, b)).collect(),
    }
}

/// `each` is told how many bits the elements have; bits of its result beyond those do not matter.
fn both(a: &Tile, b: &Tile, each: impl Fn(u32, u64, u64) -> u64) -> Result<Tile, String> {
    if a.element != b.element || a.element.is_float() {
        return Err(format!("elements of type {} and {}", a.element, b.element));
    }
    let shape = common_shape(a, b)?;
    let (bits, keep) = (a.element.bits(), mask(a.element.bits()));
    let data = match (&a.data, &b.data) {
        (Data::B8(a), Data::B8(b)) => Data::B8(zip(a, b, |a, b| (each(bits, a.into(), b.into()) & keep) as u8)),
        (Data::B16(a), Data::B16(b)) => Data::B16(zip(a, b, |a, b| each(bits, a.into(), b.into()) as u16)),
        (Data::B32(a), Data::B32(b)) => Data::B32(zip(a, b, |a, b| each(bits, a.into(), b.into()) as u32)),
        (Data::B64(a), Data::B64(b)) => Data::B64(zip(a, b, |a, b| each(bits, a, b))),
        _ => return Err("elements of two widths".to_string()),
    };
    Ok(Tile {
        shape,
        element: a.element,
        data,
    })
}

/// Elements of another type, each from one.
pub fn with_element(from: &Tile, element: Element, each: impl Fn(u64) -> u64) -> Tile {
    let data = with_data!(&from.data, all => Data::collect(element, all.iter().map(|&bits| each(bits.wide()))));
    Tile {
        shape: from.shape.clone(),
        element,
        data,
    }
}

/// Bits of comparisons that are true of less, equal and greater, by the numbers of `ComparisonPredicate`.
pub fn outcomes(predicate: u64) -> Result<u8, String> {
    const OUTCOMES: [u8; 6] = [0b010, 0b101, 0b001, 0b011, 0b100, 0b110];
    match OUTCOMES.get(predicate as usize) {
        Some(outcomes) => Ok(*outcomes),
        None => Err(format!("a comparison of kind {predicate}")),
    }
}

fn compare(a: &Tile, b: &Tile, predicate: u64, signed: bool) -> Result<Tile, String> {
    let outcomes = outcomes(predicate)?;
    let holds = both(a, b, |bits, a, b| {
        let order = match signed {
            true => sign_extend(bits, a).cmp(&sign_extend(bits, b)),
            false => a.cmp(&b),
        };
        u64::from(outcomes >> (order as i8 + 1) & 1)
    })?;
    Ok(with_element(&holds, Element::I1, |bits| bits))
}
