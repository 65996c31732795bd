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
