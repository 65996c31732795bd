//! Floating-point numbers, element by element. Sums, products, quotients and roots are rounded as they say. What NVIDIA's
//! compiler leaves to the function unit (of `f32`: powers of two and of e, reciprocal roots, everything approximate) has an
//! H100's bits; other functions are the host's, which are as exact as the reference asks. Halves are computed as `f32`, as it says.

use super::Run;
use super::convert::{from_f64, rounding, to_f32};
use super::integer::{common_shape, outcomes, with_element, zip};
use crate::isa::approx::{self, DivApproxF32, DivFullF32, Ex2ApproxF32, RsqrtApproxF32, SqrtApproxF32};
use crate::isa::number::{canonical, narrow_bf16, narrow_f16};
use crate::isa::soft::{self, Bfloat16, Binary16, Binary32, Binary64};
use crate::isa::types::Rounding;
use crate::tile::op::Code;
use crate::tile::read::Op;
use crate::tile::types::Element;
use crate::tile::value::{Data, Tile, sign_extend};

/// Rounding modes that are none: the function unit's result, and the one that is made good where the unit's is poor.
const APPROX: u64 = 4;
const FULL: u64 = 5;

impl Run {
    pub(super) fn float(&self, op: &Op) -> Result<Tile, String> {
        let a = &**self.tile(op, 0)?;
        let operand = |group: usize| self.tile(op, group).map(|tile| &**tile);
        if !matches!(a.element, Element::F16 | Element::Bf16 | Element::F32 | Element::F64) {
            return Err(format!("elements of type {}", a.element));
        }
        let ftz = op.flag(0);
        Ok(match op.code {
            Code::AddF | Code::SubF | Code::MulF | Code::DivF => arithmetic(op, a, operand(1)?, ftz)?,
            Code::Fma => fused(op, a, operand(1)?, operand(2)?, ftz)?,
            Code::AbsF => one(a, f32::abs, |x| unless_nan(x, f64::abs)),
            Code::NegF => with_element(a, a.element, |bits| bits ^ sign(a.element)),
            Code::Ceil => one(a, f32::ceil, |x| unless_nan(x, f64::ceil)),
            Code::Floor => one(a, f32::floor, |x| unless_nan(x, f64::floor)),
            Code::Cos => one(a, f32::cos, f64::cos),
            Code::CosH => one(a, f32::cosh, f64::cosh),
            Code::Sin => one(a, f32::sin, f64::sin),
            Code::SinH => one(a, f32::sinh, f64::sinh),
            Code::Tan => one(a, f32::tan, f64::tan),
            Code::TanH if op.number(0) == APPROX => one(a, approx::tanh_approx_f32, f64::tanh),
            Code::TanH => one(a, f32::tanh, f64::tanh),
            Code::Exp if op.number(0) == APPROX => one(a, exp_approx, f64::exp),
            Code::Exp => one(a, exp, f64::exp),
            Code::Exp2 if ftz => one(a, |x| approx::of::<Ex2ApproxF32<true>>((x,)), f64::exp2),
            Code::Exp2 => one(a, |x| approx::of::<Ex2ApproxF32<false>>((x,)), f64::exp2),
            Code::Log => one(a, f32::ln, f64::ln),
            Code::Log2 => one(a, f32::log2, f64::log2),
            Code::Rsqrt if ftz => one(a, |x| approx::of::<RsqrtApproxF32<true>>((x,)), |x| 1.0 / x.sqrt()),
            Code::Rsqrt => one(a, |x| approx::of::<RsqrtApproxF32<false>>((x,)), |x| 1.0 / x.sqrt()),
            Code::Sqrt if op.number(0) == APPROX => match ftz {
                true => one(a, |x| approx::of::<SqrtApproxF32<true>>((x,)), f64::sqrt),
                false => one(a, |x| approx::of::<SqrtApproxF32<false>>((x,)), f64::sqrt),
            },
            Code::Sqrt => {
                let mode = rounding(op.number(0))?;
                match mode {
                    Rounding::Rn => one(a, |x| flush(flush(x, ftz).sqrt(), ftz), f64::sqrt),
                    _ => root(a, mode, ftz)?,
                }
            }
            Code::MaxF | Code::MinF => {
                let (is_max, nan, ftz) = (op.code == Code::MaxF, op.flag(0), op.flag(1));
                two(
                    a,
                    operand(1)?,
                    |x, y| {
                        let (x, y) = (flush(x, ftz), flush(y, ftz));
                        extreme(x.into(), y.into(), is_max, nan) as f32
                    },
                    |x, y| extreme(x, y, is_max, nan),
                )?
            }
            Code::RemF => two(a, operand(1)?, |x, y| x % y, |x, y| x % y)?,
            Code::PowF => two(a, operand(1)?, f32::powf, f64::powf)?,
            Code::Atan2 => two(a, operand(1)?, f32::atan2, f64::atan2)?,
            Code::PowI => {
                let exponents = operand(1)?;
                let bits = exponents.element.bits();
                let wide = with_element(exponents, Element::F64, |bits_of| {
                    (sign_extend(bits, bits_of) as f64).to_bits()
                });
                let base = with_element(a, Element::F64, |bits| f64::from(to_f32(a.element, bits)).to_bits());
                match a.element {
                    Element::F64 => two(a, &wide, |x, _| x, f64::powf)?,
                    element => {
                        let powers = two(&base, &wide, |x, _| x, f64::powf)?;
                        with_element(&powers, element, |bits| {
                            from_f64(element, f64::from_bits(bits), Rounding::Rn)
                        })
                    }
                }
            }
            Code::CmpF => compare(a, operand(1)?, op.number(0), op.number(1) == 0)?,
            other => return Err(format!("`{}` is no operation on floats", other.layout().name)),
        })
    }
}

/// A NaN of `f64` comes out made quiet, with its sign.
fn unless_nan(x: f64, does: fn(f64) -> f64) -> f64 {
    if x.is_nan() {
        f64::from_bits(x.to_bits() | 1 << 51)
    } else {
        does(x)
    }
}

/// `expf`: two to the power of what is left of x·log2 e without its whole part, by the function unit, and scaled by that part.
fn exp(x: f32) -> f32 {
    // log2 e / 252, and log2 e as the sum of two numbers.
    const SHARE: f32 = f32::from_bits(0x3bbb_989d);
    const HIGH: f32 = std::f32::consts::LOG2_E;
    const LOW: f32 = f32::from_bits(0x32a5_7060);
    // Numbers from 2^23 on are whole; in the low bits of this sum stands the exponent of the scale.
    const PUSH: f64 = 12_582_913.0;
    let share = x.mul_add(SHARE, 0.5).clamp(0.0, 1.0);
    let share = if share.is_nan() { 0.0 } else { share };
    let pushed = (f64::from(share) * 252.0 + PUSH).floor() as f32;
    let left = x.mul_add(LOW, x.mul_add(HIGH, 12_583_039.0 - pushed));
    approx::of::<Ex2ApproxF32<true>>((left,)) * f32::from_bits(pushed.to_bits() << 23)
}

fn exp_approx(x: f32) -> f32 {
    approx::of::<Ex2ApproxF32<false>>((x * std::f32::consts::LOG2_E,))
}

fn sign(element: Element) -> u64 {
    1 << (element.bits() - 1)
}

/// `flush_to_zero`: subnormal numbers count as zeros of their sign.
fn flush(x: f32, ftz: bool) -> f32 {
    if ftz && x.is_subnormal() { 0_f32.copysign(x) } else { x }
}

/// NaN, where it is no operand's fault alone, is a number if the other one is; of two zeros the positive one is greater.
fn extreme(x: f64, y: f64, is_max: bool, nan: bool) -> f64 {
    match (x.is_nan(), y.is_nan()) {
        (false, false) => {}
        (true, false) if !nan => return y,
        (false, true) if !nan => return x,
        _ => return f64::NAN,
    }
    let x_first = x > y || (x == y && x.is_sign_positive());
    if x_first == is_max { x } else { y }
}

/// A function of `f32`, by which halves are computed, too, and of `f64`.
fn one(a: &Tile, single: impl Fn(f32) -> f32, double: impl Fn(f64) -> f64) -> Tile {
    let data = match (&a.data, a.element) {
        (Data::B16(all), Element::F16) => Data::B16(
            all.iter()
                .map(|&bits| narrow_f16(single(to_f32(Element::F16, bits.into()))))
                .collect(),
        ),
        (Data::B16(all), _) => Data::B16(
            all.iter()
                .map(|&bits| narrow_bf16(single(to_f32(Element::Bf16, bits.into()))))
                .collect(),
        ),
        (Data::B32(all), _) => Data::B32(
            all.iter()
                .map(|&bits| canonical(single(f32::from_bits(bits))).to_bits())
                .collect(),
        ),
        (Data::B64(all), _) => Data::B64(all.iter().map(|&bits| double(f64::from_bits(bits)).to_bits()).collect()),
        (Data::B8(_), _) => a.data.clone(),
    };
    Tile {
        shape: a.shape.clone(),
        element: a.element,
        data,
    }
}

fn two(a: &Tile, b: &Tile, single: impl Fn(f32, f32) -> f32, double: impl Fn(f64, f64) -> f64) -> Result<Tile, String> {
    let shape = common_shape(a, b)?;
    if a.element != b.element {
        return Err(format!("elements of type {} and {}", a.element, b.element));
    }
    let half = |bits: u16| to_f32(a.element, bits.into());
    let data = match (&a.data, &b.data) {
        (Data::B16(x), Data::B16(y)) if a.element == Element::F16 => {
            Data::B16(zip(x, y, |x, y| narrow_f16(single(half(x), half(y)))))
        }
        (Data::B16(x), Data::B16(y)) => Data::B16(zip(x, y, |x, y| narrow_bf16(single(half(x), half(y))))),
        (Data::B32(x), Data::B32(y)) => Data::B32(zip(x, y, |x, y| {
            canonical(single(f32::from_bits(x), f32::from_bits(y))).to_bits()
        })),
        (Data::B64(x), Data::B64(y)) => {
            Data::B64(zip(x, y, |x, y| double(f64::from_bits(x), f64::from_bits(y)).to_bits()))
        }
        _ => return Err("elements of two widths".to_string()),
    };
    Ok(Tile {
        shape,
        element: a.element,
        data,
    })
}

/// Sums, products and quotients. Those of halves are rounded to `f32` first, which changes nothing: it has more than twice their
/// digits.
fn arithmetic(op: &Op, a: &Tile, b: &Tile, ftz: bool) -> Result<Tile, String> {
    let number = op.number(0);
    if op.code == Code::DivF && matches!(number, APPROX | FULL) {
        let does = match (number, ftz) {
            (APPROX, true) => |x, y| approx::of::<DivApproxF32<true>>((x, y)),
            (APPROX, false) => |x, y| approx::of::<DivApproxF32<false>>((x, y)),
            (_, true) => |x, y| approx::of::<DivFullF32<true>>((x, y)),
            (_, false) => |x, y| approx::of::<DivFullF32<false>>((x, y)),
        };
        return two(a, b, does, |x, y| x / y);
    }
    let mode = rounding(number)?;
    let single = |does: fn(f32, f32) -> f32| move |x, y| flush(does(flush(x, ftz), flush(y, ftz)), ftz);
    match (op.code, mode) {
        (Code::AddF, Rounding::Rn) => two(a, b, single(|x, y| x + y), |x, y| x + y),
        (Code::SubF, Rounding::Rn) => two(a, b, single(|x, y| x - y), |x, y| x - y),
        (Code::MulF, Rounding::Rn) => two(a, b, single(|x, y| x * y), |x, y| x * y),
        (Code::DivF, Rounding::Rn) => two(a, b, single(|x, y| x / y), |x, y| x / y),
        (code, mode) => {
            let minus = if code == Code::SubF { sign(b.element) } else { 0 };
            let each = move |format: Soft, x: u64, y: u64| match code {
                Code::AddF | Code::SubF => (format.add)(x, y ^ minus, mode),
                Code::MulF => (format.mul)(x, y, mode),
                _ => (format.div)(x, y, mode),
            };
            softly(a, b, ftz, each)
        }
    }
}

/// Arithmetic in every rounding mode.
#[derive(Clone, Copy)]
struct Soft {
    add: fn(u64, u64, Rounding) -> u64,
    mul: fn(u64, u64, Rounding) -> u64,
    div: fn(u64, u64, Rounding) -> u64,
    fma: fn(u64, u64, u64, Rounding) -> u64,
    sqrt: fn(u64, Rounding) -> u64,
}

fn soft_of(element: Element) -> Soft {
    macro_rules! of {
        ($format:ty) => {
            Soft {
                add: soft::add::<$format>,
                mul: soft::mul::<$format>,
                div: soft::div::<$format>,
                fma: soft::fma::<$format>,
                sqrt: soft::sqrt::<$format>,
            }
        };
    }
    match element {
        Element::F16 => of!(Binary16),
        Element::Bf16 => of!(Bfloat16),
        Element::F64 => of!(Binary64),
        _ => of!(Binary32),
    }
}

/// Bits of `f32`, flushed; those of other formats are as they are.
fn flush_bits(element: Element, bits: u64, ftz: bool) -> u64 {
    match element {
        Element::F32 => flush(f32::from_bits(bits as u32), ftz).to_bits().into(),
        _ => bits,
    }
}

fn softly(a: &Tile, b: &Tile, ftz: bool, each: impl Fn(Soft, u64, u64) -> u64) -> Result<Tile, String> {
    let shape = common_shape(a, b)?;
    if a.element != b.element {
        return Err(format!("elements of type {} and {}", a.element, b.element));
    }
    let (format, element) = (soft_of(a.element), a.element);
    let flushed = |bits: u64| flush_bits(element, bits, ftz);
    let at = |tile: &Tile, at: usize| tile.data.get(if tile.len() == 1 { 0 } else { at });
    let len = a.len().max(b.len());
    let bits = (0..len).map(|i| flushed(each(format, flushed(at(a, i)), flushed(at(b, i)))));
    Ok(Tile {
        shape,
        element,
        data: Data::collect(element, bits),
    })
}

fn root(a: &Tile, mode: Rounding, ftz: bool) -> Result<Tile, String> {
    let format = soft_of(a.element);
    let flushed = |bits: u64| flush_bits(a.element, bits, ftz);
    Ok(with_element(a, a.element, |bits| {
        flushed((format.sqrt)(flushed(bits), mode))
    }))
}

fn fused(op: &Op, a: &Tile, b: &Tile, c: &Tile, ftz: bool) -> Result<Tile, String> {
    let mode = rounding(op.number(0))?;
    let shape = common_shape(a, b)?;
    let whole = Tile {
        shape,
        element: a.element,
        data: Data::zeros(a.element, a.len().max(b.len())),
    };
    let shape = common_shape(&whole, c)?;
    if a.element != b.element || a.element != c.element {
        return Err(format!(
            "elements of type {}, {} and {}",
            a.element, b.element, c.element
        ));
    }
    let (format, element, len) = (soft_of(a.element), a.element, whole.len().max(c.len()));
    let at = |tile: &Tile, at: usize| flush_bits(element, tile.data.get(if tile.len() == 1 { 0 } else { at }), ftz);
    let each = |i: usize| {
        let (x, y, z) = (at(a, i), at(b, i), at(c, i));
        let bits = match (element, mode) {
            (Element::F32, Rounding::Rn) => {
                let [x, y, z] = [x, y, z].map(|bits| f32::from_bits(bits as u32));
                canonical(x.mul_add(y, z)).to_bits().into()
            }
            (Element::F64, Rounding::Rn) => f64::from_bits(x)
                .mul_add(f64::from_bits(y), f64::from_bits(z))
                .to_bits(),
            _ => (format.fma)(x, y, z, mode),
        };
        flush_bits(element, bits, ftz)
    };
    Ok(Tile {
        shape,
        element,
        data: Data::collect(element, (0..len).map(each)),
    })
}

/// `or_nan`: it holds, too, where one of them is NaN.
fn compare(a: &Tile, b: &Tile, predicate: u64, or_nan: bool) -> Result<Tile, String> {
    let outcomes = outcomes(predicate)?;
    let holds = |order: Option<std::cmp::Ordering>| match order {
        Some(order) => outcomes >> (order as i8 + 1) & 1,
        None => u8::from(or_nan),
    };
    let single = |x: f32, y: f32| holds(x.partial_cmp(&y)).into();
    let double = |x: f64, y: f64| f64::from(holds(x.partial_cmp(&y)));
    let numbers = two(a, b, single, double)?;
    let is = |bits: u64| u64::from(bits != 0);
    Ok(with_element(&numbers, Element::I1, is))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions of `f32` that an H100 computed, of kernels of cuTile's that NVIDIA's `tileiras` 13.5 compiled.
    #[test]
    fn functions_have_the_bits_of_hardware() {
        let mut count = 0;
        for line in crate::tile::tests::of_hardware("function") {
            let [name, operands, expected] = &line[..] else {
                panic!("{line:?}");
            };
            let function: fn(f32) -> f32 = match &**name {
                "exp_f32" => exp,
                "exp_approx" => exp_approx,
                "exp2_f32" => |x| approx::of::<Ex2ApproxF32<false>>((x,)),
                "rsqrt_f32" => |x| approx::of::<RsqrtApproxF32<false>>((x,)),
                "tanh_approx" => approx::tanh_approx_f32,
                _ => panic!("{name}"),
            };
            let [operands, expected] = [operands, expected].map(|hex| crate::tile::tests::numbers(hex, 4));
            for (operand, expected) in operands.zip(expected) {
                let found = canonical(function(f32::from_bits(operand as u32))).to_bits();
                assert_eq!(u64::from(found), expected, "{name} of {operand:#010x}");
                count += 1;
            }
        }
        assert!(count > 10_000, "{count}");
    }
}
