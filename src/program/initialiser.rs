//! Initialisers → bytes (PTX ISA, Variables: Initializers): from a variable, its braces, and what names stand for, what
//! memory holds when a module is loaded.

use super::layout::{MAX_BYTES, bytes_of, is_float, is_unsized, lanes, size_of};
use crate::ptx::ast::{Expr, Init, Name, Type, Variable};
use crate::ptx::diagnostic::Diagnostic;

/// What a variable holds from the start: zeros, but for what an initialiser says. Takes as much room as the initialiser,
/// however large the variable is.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Bytes of the variable.
    pub size: u64,
    /// Offsets, ascending, and the bytes there.
    pub runs: Vec<(u64, Vec<u8>)>,
}

impl Contents {
    /// All bytes, zeros included: for variables that are known to be small.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.size as usize];
        for (at, run) in &self.runs {
            bytes[*at as usize..][..run.len()].copy_from_slice(run);
        }
        bytes
    }

    /// Adds bytes behind all others.
    fn push(&mut self, at: u64, bytes: &[u8]) {
        match self.runs.last_mut() {
            Some((start, run)) if *start + run.len() as u64 == at => run.extend_from_slice(bytes),
            _ => self.runs.push((at, bytes.to_vec())),
        }
    }
}

/// Contents of `variable`, or of as many elements as its initialiser has if its first dimension is open.
///
/// `address` answers for the names of variables and functions.
///
/// # Errors
/// Too many elements, literals of the wrong kind, unknown names.
pub fn contents(
    variable: &Variable,
    init: &Init,
    address: &mut dyn FnMut(&Name) -> Result<u64, Diagnostic>,
) -> Result<Contents, Diagnostic> {
    let mut shape: Vec<u64> = variable.dims.iter().map(|d| d.unwrap_or(0)).collect();
    if lanes(variable) > 1 {
        shape.push(lanes(variable));
    }
    let too_large = || {
        let name = &variable.name.text;
        Diagnostic::error(variable.name.span, format!("`{name}` is larger than any memory"))
    };
    let size = match bytes_of(variable) {
        Some(size) => size,
        None if !is_unsized(variable) => return Err(too_large()),
        None => {
            let inner = shape.iter().skip(1).try_fold(1u64, |a, &b| a.checked_mul(b));
            let inner = inner.ok_or_else(too_large)?.max(1);
            let scalars = if let Init::List(list) = init {
                match list.iter().any(|i| matches!(i, Init::List(_))) {
                    true => (list.len() as u64).checked_mul(inner),
                    false => (list.len() as u64).checked_next_multiple_of(inner),
                }
            } else {
                Some(1)
            };
            let scalars = scalars.ok_or_else(too_large)?;
            if let Some(first) = shape.first_mut() {
                *first = scalars / inner;
            }
            let size = scalars.checked_mul(size_of(variable.ty));
            size.filter(|&size| size <= MAX_BYTES).ok_or_else(too_large)?
        }
    };
    let mut fill = Fill {
        out: Contents { size, runs: Vec::new() },
        ty: variable.ty,
        variable,
        address,
    };
    match init {
        Init::List(list) if !shape.is_empty() => fill.list(list, &shape, 0)?,
        Init::List(list) if list.len() == 1 => fill.one(&list[0], 0)?,
        Init::List(_) => return Err(Diagnostic::error(variable.span, "a scalar is initialised by a list")),
        Init::Value(_) if !shape.is_empty() => {
            return Err(Diagnostic::error(
                variable.span,
                "an array or vector is initialised by a list in braces",
            ));
        }
        Init::Value(_) => fill.one(init, 0)?,
        // Texture and sampler state: not bytes.
        Init::Fields(_) => {}
    }
    Ok(fill.out)
}

struct Fill<'a> {
    out: Contents,
    ty: Type,
    variable: &'a Variable,
    address: &'a mut dyn FnMut(&Name) -> Result<u64, Diagnostic>,
}

impl Fill<'_> {
    /// Elements of an array of shape `shape` that starts at scalar `base`; rows may be short.
    fn list(&mut self, list: &[Init], shape: &[u64], base: u64) -> Result<(), Diagnostic> {
        // Of a variable that is not too large; a zero among its dimensions hides how large the others are.
        let inner = shape[1..].iter().fold(1u64, |a, &b| a.saturating_mul(b));
        let end = base.saturating_add(shape[0].saturating_mul(inner));
        let mut at = base;
        for item in list {
            if let Init::List(row) = item {
                let past = (at - base).checked_next_multiple_of(inner.max(1));
                at = past.map_or(end, |past| base.saturating_add(past));
                if shape.len() == 1 || at >= end {
                    return Err(self.too_many());
                }
                self.list(row, &shape[1..], at)?;
                at = at.saturating_add(inner);
            } else {
                if at >= end {
                    return Err(self.too_many());
                }
                self.one(item, at)?;
                at += 1;
            }
        }
        Ok(())
    }

    fn too_many(&self) -> Diagnostic {
        let name = &self.variable.name.text;
        Diagnostic::error(
            self.variable.span,
            format!("the initialiser has more elements than `{name}`"),
        )
    }

    fn one(&mut self, item: &Init, index: u64) -> Result<(), Diagnostic> {
        let Init::Value(expr) = item else {
            return Err(Diagnostic::error(
                self.variable.span,
                "a list stands where one value is expected",
            ));
        };
        let bits = match expr {
            Expr::Symbol {
                name,
                offset,
                mask,
                span,
                ..
            } => {
                let value = (self.address)(name)?.wrapping_add_signed(*offset);
                match mask {
                    // 0xFF00(name): that byte of the address.
                    Some(mask) => {
                        let shift = mask.trailing_zeros();
                        if *mask == 0 || !shift.is_multiple_of(8) || mask >> shift != 0xff {
                            return Err(Diagnostic::error(*span, format!("{mask:#x} does not select one byte")));
                        }
                        u128::from((value & mask) >> shift)
                    }
                    None if size_of(self.ty) < 4 => {
                        return Err(Diagnostic::error(
                            *span,
                            format!("an address does not fit a .{}", self.ty.word()),
                        ));
                    }
                    None => u128::from(value),
                }
            }
            Expr::F32 { span, .. } | Expr::F64 { span, .. } if is_integer(self.ty) => {
                return Err(wrong_float(*span, self.ty));
            }
            _ => literal(expr, self.ty)?,
        };
        let size = size_of(self.ty);
        let at = index.checked_mul(size).filter(|at| *at + size <= self.out.size);
        let at = at.ok_or_else(|| self.too_many())?;
        self.out.push(at, &bits.to_le_bytes()[..size as usize]);
        Ok(())
    }
}

/// The bits that a literal has as a value of type `ty` (PTX ISA, Constants: integers are truncated, 64-bit
/// floating-point literals narrow, `0f…` and `0d…` are bit patterns of their own width).
///
/// # Errors
/// An integer where a floating-point value is expected, and the other way round; a name.
pub fn literal(expr: &Expr, ty: Type) -> Result<u128, Diagnostic> {
    let bytes = size_of(ty);
    Ok(match *expr {
        Expr::Int { bits, unsigned, span } => {
            if is_float(ty) && !matches!(ty, Type::F16x2 | Type::Bf16x2 | Type::F32x2 | Type::F16 | Type::Bf16) {
                return Err(
                    Diagnostic::error(span, format!("an integer stands where a .{} is expected", ty.word()))
                        .note("write it with a decimal point or as 0f…/0d…"),
                );
            }
            if unsigned || bits >> 63 == 0 {
                u128::from(bits)
            } else {
                i128::from(bits as i64) as u128
            }
        }
        Expr::F32 { bits, span } => match bytes {
            4 => u128::from(bits),
            8 => u128::from(f64::from(f32::from_bits(bits)).to_bits()),
            _ => return Err(wrong_float(span, ty)),
        },
        Expr::F64 { bits, span } => match bytes {
            4 => u128::from((f64::from_bits(bits) as f32).to_bits()),
            8 => u128::from(bits),
            _ => return Err(wrong_float(span, ty)),
        },
        Expr::Symbol { ref name, span, .. } => {
            return Err(Diagnostic::error(
                span,
                format!("`{}` is not a constant here", name.text),
            ));
        }
    })
}

fn is_integer(ty: Type) -> bool {
    use Type::{S8, S16, S32, S64, U8, U16, U32, U64};
    matches!(ty, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64)
}

fn wrong_float(span: crate::ptx::ast::Span, ty: Type) -> Diagnostic {
    Diagnostic::error(
        span,
        format!("a floating-point literal stands where a .{} is expected", ty.word()),
    )
}
