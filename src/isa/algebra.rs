//! What passes may want to know of an operation: that it is linear, that it may become part of an `fma`.

use super::compare::Compare;

/// Operations on integers of 32 and 64 bits whose results are linear in their operands, modulo 2^32 or 2^64 as wide
/// as the destination; and comparisons of such integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linear {
    Copy,
    Add,
    Sub,
    Mul,
    Mad,
    /// 32 by 32 to 64 bits.
    MulWide {
        signed: bool,
    },
    MadWide {
        signed: bool,
    },
    Shl,
    /// 32 to 64 bits.
    Widen {
        signed: bool,
    },
    /// 64 to 32 bits.
    Narrow,
    Compare {
        relation: Compare,
        signed: bool,
    },
}

/// Operations on the bits of two integers of 32 or 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bitwise {
    And,
    Or,
    ShiftRight { signed: bool },
}

impl Linear {
    /// Whether it takes numbers of 32 bits and gives one of 64.
    pub fn widens(self) -> bool {
        match self {
            Linear::Widen { .. } | Linear::MulWide { .. } | Linear::MadWide { .. } => true,
            Linear::Copy
            | Linear::Add
            | Linear::Sub
            | Linear::Mul
            | Linear::Mad
            | Linear::Shl
            | Linear::Narrow
            | Linear::Compare { .. } => false,
        }
    }

    /// What the result grows by from one thread to the next where operand `i` grows by `stride(i)`, modulo 2^64; `None`: by
    /// nothing that is known. Sums that are widened must not wrap around between the threads: whoever asks sees to that.
    pub fn stride(self, stride: impl Fn(usize) -> Option<u64>, constant: impl Fn(usize) -> Option<u64>) -> Option<u64> {
        // One factor grows and the other is known, or neither grows.
        let product = |wide: Option<bool>| {
            let grows = |at: usize| stride(at).map(|by| if wide.is_some() { widened(by, true) } else { by });
            let known = |at: usize| constant(at).map(|value| wide.map_or(value, |signed| widened(value, signed)));
            match (known(0), known(1)) {
                (_, Some(factor)) => Some(grows(0)?.wrapping_mul(factor)),
                (Some(factor), None) => Some(grows(1)?.wrapping_mul(factor)),
                (None, None) => (grows(0)? == 0 && grows(1)? == 0).then_some(0),
            }
        };
        match self {
            // The difference modulo 2^32 is the low half of the one modulo 2^64.
            Linear::Copy | Linear::Narrow => stride(0),
            Linear::Add => Some(stride(0)?.wrapping_add(stride(1)?)),
            Linear::Sub => Some(stride(0)?.wrapping_sub(stride(1)?)),
            Linear::Mul => product(None),
            Linear::Mad => Some(product(None)?.wrapping_add(stride(2)?)),
            Linear::MulWide { signed } => product(Some(signed)),
            Linear::MadWide { signed } => Some(product(Some(signed))?.wrapping_add(stride(2)?)),
            Linear::Shl => constant(1).filter(|&by| by < 64).and_then(|by| Some(stride(0)? << by)),
            // Differences have a sign, whatever the numbers have.
            Linear::Widen { signed: _ } => Some(widened(stride(0)?, true)),
            Linear::Compare { .. } => None,
        }
    }
}

/// The low 32 bits as a number of 64.
fn widened(value: u64, signed: bool) -> u64 {
    match signed {
        true => i64::from(value as u32 as i32) as u64,
        false => u64::from(value as u32),
    }
}

/// `mul`, `add`, `sub` of floats without a rounding modifier, of a type `F`, and `neg`, which changes a product's sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contractible<F> {
    Product(F),
    Sum { subtract: bool, of: F },
    Negation(F),
}

impl<F> Contractible<F> {
    pub(super) fn map<G>(self, to: impl Fn(F) -> G) -> Contractible<G> {
        match self {
            Contractible::Product(of) => Contractible::Product(to(of)),
            Contractible::Sum { subtract, of } => Contractible::Sum { subtract, of: to(of) },
            Contractible::Negation(of) => Contractible::Negation(to(of)),
        }
    }
}
