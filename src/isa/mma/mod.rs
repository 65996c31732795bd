//! What matrix units compute, bit for bit: a library of numbers that knows no warp, no register and no memory.
//!
//! All floating-point products but those of `f64` follow one model, the *truncated fused dot product*: the products of
//! a block of k and the accumulator are aligned to the largest of their exponents, each is cut to `fraction` bits behind
//! the point, the sum is exact, and the result is converted once ([`Truncated`]). What differs from one generation of
//! the hardware to the next is how many products form a block, how many bits are kept, and how the result is rounded:
//! [`Rule::of`] is the table of that. The model is from M. Khattak and M. Mikaitis, "Accurate Models of NVIDIA Tensor
//! Cores", and X. Li et al., "MMA-Sim"; it gives every row that was published of measurements on eight GPUs.
//!
//! Operands are *codes*: the bits of an element in the low bits of a word; [`Tiles`] says
//! how they lie. `multiply` decodes each element once, then works on sixteen rows of A at a time.

mod convert;
mod decode;
mod double;
mod fused;
mod grouped;
mod integer;
pub(crate) mod level;
mod product;
mod rule;
mod scratch;
mod single;
mod sparse;
#[cfg(test)]
mod tests;
mod truncated;
pub(crate) mod vector;

pub use self::convert::{read, write};
pub use self::decode::Operand;
pub use self::double::multiply_f64;
pub(crate) use self::level::{Kernel, run};
pub use self::product::{
    Accumulator, Architecture, BitOp, Element, LANES, Product, ScaleType, Scaling, Tiles, Unit, stride,
};
pub use self::rule::{Order, Outcome, Rule, Truncated};
pub use self::scratch::Scratch;
pub use self::sparse::{Metadata, expand};
pub(crate) use self::vector::Vector;
use super::simd::Level;

/// `D = A·B + C`, as the unit of that architecture computes it. What an architecture lacks is computed as by the first one
/// that has it.
///
/// # Panics
/// If a slice is shorter than the product says, N no multiple of 4, or A has more than 256 columns.
pub fn multiply(product: &Product, architecture: Architecture, unit: Unit, tiles: Tiles, scratch: &mut Scratch) {
    multiply_at(Level::current(), product, architecture, unit, tiles, scratch);
}

/// [`multiply`] with the vector instructions of a level, which the CPU has.
///
/// # Panics
/// As [`multiply`].
pub fn multiply_at(
    level: Level,
    product: &Product,
    architecture: Architecture,
    unit: Unit,
    tiles: Tiles,
    scratch: &mut Scratch,
) {
    let columns = product.codes();
    assert!(
        product.n.is_multiple_of(4) && columns <= 256,
        "columns come in fours, and few rows of B"
    );
    let words = if tiles.packed {
        columns / product.packs()
    } else {
        columns
    };
    assert!(tiles.a.len() >= words * stride(product.m), "A is whole");
    assert!(tiles.b.len() >= words * product.n, "B is whole");
    assert!(tiles.d.len() >= product.n * stride(product.m), "D is whole");
    assert!(
        !product.sparse || tiles.kept.len() >= product.m,
        "every row says which elements it has"
    );
    let factors = product.scaling.map_or(0, |scaling| scaling.factors);
    assert!(tiles.scale_a.len() >= product.m * factors, "rows have their factors");
    assert!(tiles.scale_b.len() >= product.n * factors, "columns have their factors");
    match Rule::of(product, architecture, unit) {
        Rule::Truncated(rule) => truncated::multiply(level, product, &rule, tiles, scratch),
        Rule::Grouped => grouped::multiply(level, product, tiles, scratch),
        Rule::Fused => fused::multiply(level, product, tiles),
        Rule::Integer => integer::multiply(level, product, tiles, scratch),
        Rule::Bits => integer::multiply_bits(level, product, tiles),
    }
}
