//! A pure operation on the registers of a lane, with what the passes know of it.

use std::fmt;
use std::sync::Arc;

use crate::isa::lanes::Width;
use crate::isa::{self, Compare, Lane, Semantics, moves};

/// What is computed, ready for any tier to ask for its kernel.
#[derive(Clone)]
pub struct Compute {
    pub lane: Lane,
    /// The opcode that means it.
    pub text: Arc<str>,
    /// What it computes, where that is linear in its operands.
    pub linear: Option<Linear>,
    /// A plain copy of its source, of the same width.
    pub copy: bool,
    /// A product or sum of floats whose rounding the text leaves open.
    pub contractible: Option<Contractible>,
}

impl Compute {
    pub fn of(lane: Lane, text: &str) -> Compute {
        Compute {
            lane,
            text: text.into(),
            linear: None,
            copy: false,
            contractible: None,
        }
    }

    /// A copy of a register of this width.
    pub fn copy(width: Width) -> Compute {
        let linear = matches!(width, Width::B32 | Width::B64).then_some(Linear::Copy);
        Compute {
            linear,
            copy: true,
            ..Compute::of(moves::copy(width), "mov")
        }
    }

    /// The operation that an opcode means, if it is one on registers alone.
    pub fn named(opcode: &str) -> Option<Compute> {
        let form = isa::decode(opcode).ok()?;
        match form.line.semantics {
            Semantics::Lane(lane) => lane(&form).map(|lane| Compute::of(lane, opcode)),
            _ => None,
        }
    }
}

impl fmt::Display for Compute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Compute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// `mul`, `add`, `sub` of floats without a rounding modifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contractible {
    Product { modifiers: Modifiers },
    Sum { subtract: bool, modifiers: Modifiers },
}

/// Modifiers and type behind the mnemonic: `.ftz.sat.f32`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modifiers {
    pub text: String,
}

impl Modifiers {
    /// Those that the product of such a sum must have.
    pub fn without_sat(&self) -> Modifiers {
        Modifiers {
            text: self.text.replace(".sat", ""),
        }
    }

    /// Those of the negation of an operand: it changes a sign, no more.
    pub fn of_negation(&self) -> String {
        self.without_sat().text.replace(".ftz", "")
    }
}

/// Lane operations on integers of 32 and 64 bits whose results are linear in their operands, modulo 2^32 or 2^64 as wide
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
