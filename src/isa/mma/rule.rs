//! The table of how each architecture sums (M. Khattak, M. Mikaitis; X. Li et al.; see the head of the folder).

use super::{Accumulator, Architecture, Element, Product, Unit};

/// How a product is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Truncated(Truncated),
    /// Groups of sixteen products of four bits, summed exactly, then scaled.
    Grouped,
    /// Ordinary `fma.rn.f32`, one after the other.
    Fused,
    /// Exact sums of integers.
    Integer,
    /// Numbers of bits that are set.
    Bits,
}

/// The truncated fused dot product and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// Bits that are kept behind the point of the term with the largest exponent.
    pub fraction: i32,
    /// Columns of A (of a sparse A with those that are left out) that are summed at once. Blocks form a chain: the result
    /// of one is the accumulator of the next.
    pub block: usize,
    /// The least exponent that terms are aligned to.
    pub floor: i32,
    pub outcome: Outcome,
    pub order: Order,
    /// C is no term of the first block, but is added to the result of the last in ordinary arithmetic.
    pub separate: bool,
}

/// The conversion at the end of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `f32`, towards zero.
    F32,
    /// `f32` of which 13 bits of fraction are kept, towards zero.
    E8m13,
    /// `f16`, to nearest even; what rounds to zero is the positive one.
    F16,
}

/// In which order columns form blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Ascending,
    /// The first two columns of every four, then the others.
    Pairs,
    /// The first four columns of every eight, then the others.
    Fours,
}

impl Order {
    /// The column that comes at place `at` of `k`.
    #[inline]
    pub fn column(self, at: usize, k: usize) -> usize {
        let of = |group: usize| {
            let second = usize::from(at >= k / 2);
            let within = at - second * (k / 2);
            within / group * 2 * group + second * group + within % group
        };
        match self {
            Order::Ascending => at,
            Order::Pairs => of(2),
            Order::Fours => of(4),
        }
    }
}

impl Rule {
    /// How a unit computes a product.
    pub fn of(product: &Product, architecture: Architecture, unit: Unit) -> Rule {
        if product.scaling.is_some_and(|scaling| scaling.grouped) {
            return Rule::Grouped;
        }
        let architecture = match unit {
            Unit::Mma => architecture.max(first(product)),
            Unit::Wgmma => Architecture::Hopper,
            Unit::Tcgen05 => Architecture::BlackwellDatacenter,
        };
        let block = match product.a {
            Element::B1 => return Rule::Bits,
            Element::S8 | Element::U8 | Element::S4 | Element::U4 => return Rule::Integer,
            Element::F16 if product.quad_pair && architecture >= Architecture::Ampere => return Rule::Fused,
            Element::F16 | Element::Bf16 => match architecture {
                Architecture::Volta => 4,
                Architecture::Turing if product.quad_pair => 4,
                Architecture::Turing | Architecture::Ampere | Architecture::Ada => 8,
                Architecture::Hopper | Architecture::BlackwellDatacenter | Architecture::Blackwell => 16,
            },
            // `f64` is no dot product: [`super::multiply_f64`].
            Element::Tf32 | Element::F64 => match architecture {
                Architecture::Volta | Architecture::Turing | Architecture::Ampere | Architecture::Ada => 4,
                Architecture::Hopper | Architecture::BlackwellDatacenter | Architecture::Blackwell => 8,
            },
            Element::E4m3 | Element::E5m2 | Element::E3m2 | Element::E2m3 | Element::E2m1 => {
                return Rule::Truncated(narrow(product, architecture, unit));
            }
        };
        let fraction = fraction(architecture);
        Rule::Truncated(Truncated {
            fraction,
            block: widened(product, product.most.map_or(block, |most| block.min(most))),
            floor: floor(product.d, fraction),
            outcome: outcome(product.d),
            order: Order::Ascending,
            separate: false,
        })
    }
}

/// The first architecture whose `mma` multiplies such elements.
fn first(product: &Product) -> Architecture {
    let of = |element| match element {
        Element::F16 | Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1 => Architecture::Volta,
        Element::Bf16 | Element::Tf32 | Element::F64 => Architecture::Ampere,
        Element::E4m3 | Element::E5m2 => Architecture::Ada,
        Element::E3m2 | Element::E2m3 | Element::E2m1 => Architecture::Blackwell,
    };
    if product.scaling.is_some() {
        Architecture::Blackwell
    } else {
        of(product.a).max(of(product.b))
    }
}

fn fraction(architecture: Architecture) -> i32 {
    match architecture {
        Architecture::Volta => 23,
        Architecture::Turing | Architecture::Ampere | Architecture::Ada => 24,
        Architecture::Hopper | Architecture::BlackwellDatacenter | Architecture::Blackwell => 25,
    }
}

/// Five below the least exponent of the result, and one more for each bit beyond 23 that is kept.
fn floor(d: Accumulator, fraction: i32) -> i32 {
    let least = match d {
        Accumulator::F16 => -14,
        Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => -126,
    };
    least - 5 - (fraction - 23)
}

fn outcome(d: Accumulator) -> Outcome {
    match d {
        Accumulator::F16 => Outcome::F16,
        Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => Outcome::F32,
    }
}

/// A block counts products; a sparse A has one for every two columns.
fn widened(product: &Product, block: usize) -> usize {
    let block = if product.sparse { 2 * block } else { block };
    block.min(product.k)
}

/// Formats of eight bits and fewer.
fn narrow(product: &Product, architecture: Architecture, unit: Unit) -> Truncated {
    let whole = fraction(architecture);
    let mut rule = Truncated {
        fraction: whole,
        block: widened(product, 32),
        floor: floor(product.d, whole),
        outcome: outcome(product.d),
        order: Order::Ascending,
        separate: false,
    };
    let cut = || match product.d {
        Accumulator::F16 => Outcome::F16,
        Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => Outcome::E8m13,
    };
    match (unit, architecture) {
        (Unit::Tcgen05, _) => {}
        (Unit::Wgmma, _) => {
            rule.fraction = 13;
            rule.outcome = cut();
        }
        (Unit::Mma, Architecture::Volta | Architecture::Turing | Architecture::Ampere | Architecture::Ada) => {
            rule.fraction = 13;
            rule.block = widened(product, 16);
            rule.outcome = cut();
        }
        // Two products of halves, of the low and the high pair of bytes in each register, to which C is added.
        (Unit::Mma, Architecture::Hopper | Architecture::BlackwellDatacenter) => {
            rule.block = product.k / 2;
            rule.order = if product.sparse { Order::Fours } else { Order::Pairs };
            rule.separate = true;
        }
        (Unit::Mma, Architecture::Blackwell) => {}
    }
    rule
}
