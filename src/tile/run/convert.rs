//! Numbers of every format: as `f64`, which holds each of them exactly, and back, rounded once.

use super::Run;
use super::integer::with_element;
use crate::isa::lanes::WARP;
use crate::isa::mma::level::{self, Kernel};
use crate::isa::mma::vector::Vector;
use crate::isa::narrow::Narrow;
use crate::isa::number;
use crate::isa::simd::Level;
use crate::isa::soft::{self, Bfloat16, Binary16, Binary32, Binary64, Format, Number, Tf32};
use crate::isa::types::Rounding;
use crate::tile::op::Code;
use crate::tile::read::Op;
use crate::tile::types::{Element, TileType};
use crate::tile::value::{Data, Tile, mask, sign_extend};

/// The format of eight bits or fewer that it is, if it is one.
fn narrow_format(element: Element) -> Option<Narrow> {
    match element {
        Element::E4m3 => Some(Narrow::E4m3),
        Element::E5m2 => Some(Narrow::E5m2),
        Element::E8m0 => Some(Narrow::Ue8m0),
        Element::E2m1 => Some(Narrow::E2m1),
        Element::I1
        | Element::I4
        | Element::I8
        | Element::I16
        | Element::I32
        | Element::I64
        | Element::F16
        | Element::Bf16
        | Element::F32
        | Element::Tf32
        | Element::F64
        | Element::Pointer => None,
    }
}

/// By the numbers of `RoundingMode`; the approximate and the full one are to nearest here.
pub fn rounding(mode: u64) -> Result<Rounding, String> {
    Ok(match mode {
        1 | 6 => Rounding::Rz,
        2 => Rounding::Rm,
        3 => Rounding::Rp,
        0 | 4 | 5 => Rounding::Rn,
        other => return Err(format!("rounding of kind {other}")),
    })
}

pub fn to_f32(element: Element, bits: u64) -> f32 {
    match element {
        Element::F16 => number::widen_f16(bits as u16),
        Element::Bf16 => f32::from_bits((bits as u32) << 16),
        Element::F32 | Element::Tf32 => f32::from_bits(bits as u32),
        _ => to_f64(element, bits) as f32,
    }
}

pub fn to_f64(element: Element, bits: u64) -> f64 {
    if let Some(format) = narrow_format(element) {
        return match format.exact(bits as u32) {
            Number::Nan => f64::NAN,
            Number::Infinity { negative: true } => f64::NEG_INFINITY,
            Number::Infinity { negative: false } => f64::INFINITY,
            Number::Finite {
                negative,
                significand,
                exponent,
            } => {
                let magnitude = significand as f64 * 2_f64.powi(exponent);
                if negative { -magnitude } else { magnitude }
            }
        };
    }
    match element {
        Element::F16 | Element::Bf16 | Element::F32 | Element::Tf32 => to_f32(element, bits).into(),
        Element::F64 => f64::from_bits(bits),
        _ => sign_extend(element.bits(), bits) as f64,
    }
}

/// Rounded to a format.
pub fn from_f64(element: Element, value: f64, mode: Rounding) -> u64 {
    if let Some(format) = narrow_format(element) {
        return format.rounded(soft::unpack::<Binary64>(value.to_bits()), mode).into();
    }
    match element {
        Element::F64 => value.to_bits(),
        Element::F32 if mode == Rounding::Rn => (value as f32).to_bits().into(),
        Element::F32 => round::<Binary32>(value, mode),
        Element::Tf32 => round::<Tf32>(value, mode) << 13,
        Element::F16 => round::<Binary16>(value, mode),
        Element::Bf16 => round::<Bfloat16>(value, mode),
        _ => value as i64 as u64 & mask(element.bits()),
    }
}

fn round<F: Format>(value: f64, mode: Rounding) -> u64 {
    match soft::unpack::<Binary64>(value.to_bits()) {
        Number::Nan => F::NAN,
        Number::Infinity { negative } => F::INFINITY | if negative { F::SIGN } else { 0 },
        Number::Finite {
            negative,
            significand,
            exponent,
        } => soft::round::<F>(negative, significand.into(), exponent, mode),
    }
}

/// Halves as `f32`.
pub fn widen(halves: &[u16]) -> Vec<f32> {
    let mut values = vec![0.0; halves.len()];
    level::run::<FromHalves>(Level::current(), (halves, &mut values));
    values
}

struct FromHalves;

impl Kernel for FromHalves {
    type Arguments<'a> = (&'a [u16], &'a mut [f32]);
    #[inline(always)]
    unsafe fn run<C: Vector>((halves, values): Self::Arguments<'_>) {
        let (runs, rest) = halves.as_chunks::<WARP>();
        let (into, rest_into) = values.as_chunks_mut::<WARP>();
        for (run, into) in runs.iter().zip(into) {
            // SAFETY: the caller is compiled with the features of `C`, as this function's own contract has it.
            *into = unsafe { C::widen_f16(run) };
        }
        for (half, into) in rest.iter().zip(rest_into) {
            *into = number::widen_f16(*half);
        }
    }
}

/// To the nearest halves.
fn narrow(values: &[u32]) -> Vec<u16> {
    let mut halves = vec![0; values.len()];
    level::run::<ToHalves>(Level::current(), (values, &mut halves));
    halves
}

struct ToHalves;

impl Kernel for ToHalves {
    type Arguments<'a> = (&'a [u32], &'a mut [u16]);
    #[inline(always)]
    unsafe fn run<C: Vector>((values, halves): Self::Arguments<'_>) {
        let (runs, rest) = values.as_chunks::<WARP>();
        let (into, rest_into) = halves.as_chunks_mut::<WARP>();
        for (run, into) in runs.iter().zip(into) {
            // NaN has one form in halves.
            let run = run.map(f32::from_bits);
            // SAFETY: the caller is compiled with the features of `C`, as this function's own contract has it.
            let narrowed = unsafe { C::narrow_f16(&run) };
            for lane in 0..WARP {
                into[lane] = if run[lane].is_nan() { 0x7fff } else { narrowed[lane] };
            }
        }
        for (value, into) in rest.iter().zip(rest_into) {
            *into = number::narrow_f16(f32::from_bits(*value));
        }
    }
}

impl Run {
    pub(super) fn convert(&self, op: &Op, result: &TileType) -> Result<Tile, String> {
        let from = self.tile(op, 0)?;
        let (source, target) = (from.element, result.element);
        let fits = match op.code {
            Code::FToF => source.is_float() && target.is_float(),
            Code::FToI => source.is_float() && target.is_integer(),
            _ => source.is_integer() && target.is_float(),
        };
        if !fits {
            return Err(format!("from {source} to {target}"));
        }
        Ok(match (op.code, &from.data) {
            (Code::FToF, Data::B32(all)) if (source, target) == (Element::F32, Element::F16) && op.number(0) == 0 => {
                Tile::of(result, Data::B16(narrow(all))).in_shape_of(from)
            }
            (Code::FToF, Data::B16(all)) if (source, target) == (Element::F16, Element::F32) => {
                let wide = widen(all).into_iter().map(f32::to_bits).collect();
                Tile::of(result, Data::B32(wide)).in_shape_of(from)
            }
            (Code::FToF, _) => {
                let mode = rounding(op.number(0))?;
                with_element(from, target, |bits| from_f64(target, to_f64(source, bits), mode))
            }
            (Code::FToI, _) => {
                rounding(op.number(1))?;
                let signed = op.number(0) != 0;
                with_element(from, target, |bits| {
                    to_integer(source, to_f64(source, bits), target.bits(), signed, op.number(1))
                })
            }
            _ => {
                let (signed, mode) = (op.number(0) != 0, rounding(op.number(1))?);
                let wide = source.bits();
                with_element(from, target, |bits| {
                    let value: i128 = match signed {
                        true => sign_extend(wide, bits).into(),
                        false => bits.into(),
                    };
                    from_integer(target, value, mode)
                })
            }
        })
    }
}

impl Tile {
    fn in_shape_of(mut self, other: &Tile) -> Tile {
        self.shape = other.shape.clone();
        self
    }
}

/// As NVIDIA's compiler has it, which converts by way of 16 bits at least: of what is out of their range the nearest number
/// that is in it, and then the low bits. NaN is what PTX's `cvt` makes of it: zero, or the sign of an integer alone.
fn to_integer(from: Element, value: f64, bits: u32, signed: bool, mode: u64) -> u64 {
    let wide = bits.max(16);
    if value.is_nan() {
        let is_sign = from == Element::F64 || wide == 64;
        return if is_sign { 1 << (wide - 1) & mask(bits) } else { 0 };
    }
    let whole = match mode {
        2 => value.floor(),
        3 => value.ceil(),
        0 => value.round_ties_even(),
        _ => value.trunc(),
    };
    let (low, high) = match signed {
        true => (-(1_i128 << (wide - 1)), (1_i128 << (wide - 1)) - 1),
        false => (0, (1_i128 << wide) - 1),
    };
    // Rust's `as` saturates.
    (whole as i128).clamp(low, high) as u64 & mask(bits)
}

fn from_integer(element: Element, value: i128, mode: Rounding) -> u64 {
    let (negative, magnitude) = (value < 0, value.unsigned_abs());
    match element {
        Element::F64 => soft::round::<Binary64>(negative, magnitude, 0, mode),
        Element::F32 => soft::round::<Binary32>(negative, magnitude, 0, mode),
        Element::F16 => soft::round::<Binary16>(negative, magnitude, 0, mode),
        Element::Bf16 => soft::round::<Bfloat16>(negative, magnitude, 0, mode),
        Element::Tf32 => soft::round::<Tf32>(negative, magnitude, 0, mode) << 13,
        // Integers of more than 53 bits are far beyond these.
        _ => from_f64(element, value as f64, mode),
    }
}
