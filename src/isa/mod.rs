//! The instruction table, the typed operation that each of its lines means, and what each operation computes.
//!
//! `table/` lists each syntax line of the PTX manual once, in the manual's notation, with its minimum PTX version and
//! target and what it means; [`decode`] matches an opcode against it and yields a [`Form`] with its [`Operation`].
//! What is a pure function of each lane's registers is a [`Compute`]: one enum for each family (`int/`, `float/`, …),
//! beside how its lines are read and the scalar functions, of which [`simd`] makes lane kernels.

mod algebra;
pub mod approx;
pub mod compare;
mod compose;
mod compute;
pub mod convert;
mod decode;
pub mod definedness;
pub mod fidelity;
pub mod float;
pub mod floats;
mod form;
pub mod half;
pub mod int;
pub mod joint;
mod lane;
pub mod lanes;
pub mod legacy;
pub mod logic;
pub mod mma;
pub mod moves;
pub mod narrow;
pub(crate) mod number;
pub mod operation;
pub mod sfu;
pub mod shuffle;
pub(crate) mod simd;
pub(crate) mod soft;
pub mod table;
#[cfg(test)]
mod tests;
pub mod types;
pub mod video;
pub mod words;

pub use self::algebra::{Bitwise, Contractible, Linear};
pub use self::compare::{Boolean, Compare};
pub use self::compute::{Compute, Fused};
pub use self::decode::{
    DecodeError, decode, decode_all, decode_elements, decode_flushing, decode_in, decode_legacy, is_call,
    takes_addresses, without_bank,
};
pub use self::form::Form;
pub use self::joint::Joint;
pub use self::lane::Lane;
pub use self::operation::Operation;
pub use self::simd::{Avx2, Avx512, Baseline, Cpu, Level};
pub use self::types::Rounding;
