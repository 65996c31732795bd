//! Whether an initialiser fits the variable it stands behind: its shape and the kinds of its values (PTX ISA, Array
//! Declarations; Initializers; Generic Addressing of initialisers). Flows in: one declaration. Flows out: a finding.
//! It must never know what the names in it stand for, nor compute a byte.

use super::ast::{Expr, Init, Space, Type, Variable};
use super::diagnostic::Diagnostic;

/// Names of the fields that a texture, sampler or surface variable may set (PTX ISA, Texture, Sampler and Surface Types).
const TEXTURE: &[&str] = &[
    "width",
    "height",
    "depth",
    "channel_data_type",
    "channel_order",
    "normalized_coords",
    "array_size",
    "num_mipmap_levels",
    "num_samples",
    "force_unnormalized_coords",
    "addr_mode_0",
    "addr_mode_1",
    "addr_mode_2",
    "filter_mode",
];
const SAMPLER: &[&str] = &[
    "force_unnormalized_coords",
    "addr_mode_0",
    "addr_mode_1",
    "addr_mode_2",
    "filter_mode",
];
const SURFACE: &[&str] = &[
    "width",
    "height",
    "depth",
    "channel_data_type",
    "channel_order",
    "array_size",
    "memory_layout",
];

/// What is wrong with a variable's initialiser.
pub fn check(variable: &Variable) -> Option<Diagnostic> {
    let init = variable.init.as_ref()?;
    let fields = match variable.ty {
        Type::TexRef => TEXTURE,
        Type::SamplerRef => SAMPLER,
        Type::SurfRef => SURFACE,
        _ => {
            let mut shape = variable.dims.clone();
            let vector = variable.vector.map(u64::from);
            shape.extend(vector.map(Some));
            return list(variable, init, &shape, vector.is_some());
        }
    };
    match init {
        Init::Fields(list) => list
            .iter()
            .find(|(name, _)| !fields.contains(&&*name.text))
            .map(|(name, _)| {
                let message = format!("`.{}` variables have no field `{}`", variable.ty.word(), name.text);
                Diagnostic::error(name.span, message)
            }),
        Init::List(list) if !variable.dims.is_empty() && list.iter().all(|one| matches!(one, Init::Fields(_))) => None,
        Init::List(list) if list.is_empty() => None,
        Init::List(_) | Init::Value(_) => {
            let message = format!(
                "`{}` is initialised field by field: `{{ width = 64 }}`",
                variable.name.text
            );
            Some(Diagnostic::error(variable.name.span, message))
        }
    }
}

/// `shape`: what is left of the dimensions, a vector's width last.
fn list(variable: &Variable, init: &Init, shape: &[Option<u64>], vector: bool) -> Option<Diagnostic> {
    let name = &variable.name.text;
    let wrong = |message: String| Some(Diagnostic::error(variable.name.span, message));
    match (init, shape) {
        (Init::Value(expr), []) => value(variable, expr),
        (Init::Value(expr), _) => {
            let what = if shape.len() == 1 && vector {
                "the vector"
            } else {
                "the array"
            };
            Some(
                Diagnostic::error(expr.span(), "one value where braces should be")
                    .label(format!("{what} `{name}` takes a list")),
            )
        }
        (Init::List(_), []) => wrong(format!("braces around the one value of `{name}`")),
        (Init::List(elements), [size, inner @ ..]) => {
            let count = elements.len() as u64;
            if let Some(size) = *size {
                if count > size {
                    return wrong(format!("`{name}` has {size} elements, its initialiser {count}"));
                }
                if inner.is_empty() && vector && count < size {
                    return wrong(format!("a vector of {size} elements is initialised by {count}"));
                }
            }
            elements.iter().find_map(|one| list(variable, one, inner, vector))
        }
        (Init::Fields(fields), _) => fields.first().map(|(field, _)| {
            let message = format!("`.{}` variables have no fields", variable.ty.word());
            Diagnostic::error(field.span, message)
        }),
    }
}

fn value(variable: &Variable, expr: &Expr) -> Option<Diagnostic> {
    use Type::*;
    let ty = variable.ty;
    let wrong = |message: String| Some(Diagnostic::error(expr.span(), message));
    let word = ty.word();
    match expr {
        Expr::Int { .. } => match ty {
            F16 | F16x2 | F32 | F64 => wrong(format!("an integer where `.{word}` is expected"))
                .map(|found| found.note("write 1.0 or 0f3F800000")),
            _ => None,
        },
        Expr::F32 { .. } | Expr::F64 { .. } => match ty {
            F32 | F64 | B8 | B16 | B32 | B64 | B128 => None,
            F16 | F16x2 => wrong(format!(
                "`.{word}` variables have no initialisers: declare `.b16` or `.b32`"
            )),
            _ => wrong(format!("a floating-point number where `.{word}` is expected")),
        },
        Expr::Symbol { name, mask: None, .. } => match ty {
            U32 | U64 => None,
            _ => wrong(format!("the address of `{}` where `.{word}` is expected", name.text))
                .map(|found| found.note("addresses go into `.u64` (or `.u32`) variables")),
        },
        Expr::Symbol { mask: Some(mask), .. } => {
            let byte = mask.trailing_zeros() / 8 * 8;
            if mask.checked_shr(byte) != Some(0xFF) {
                return wrong(format!("the mask 0x{mask:X} does not select one byte"));
            }
            match ty {
                U8 | U16 | U32 | U64 => None,
                _ => wrong(format!("a byte of an address where `.{word}` is expected"))
                    .map(|found| found.note("bytes of addresses go into `.u8` variables")),
            }
        }
    }
}

/// Whether variables of the space hold initial values at all.
pub fn takes_values(space: Space) -> bool {
    matches!(space, Space::Global | Space::Const)
}
