//! The vocabulary of the language: what types, state spaces, roundings, orderings and vectors are called. The syntax tree
//! and everything behind it speak in these.

mod data;
mod order;
mod rounding;
mod sets;
mod space;
mod vector;

pub use self::data::Type;
pub use self::order::{Ordering, Scope};
pub use self::rounding::Rounding;
pub(crate) use self::sets::subtypes;
pub use self::sets::{Bits, HalfType, IntType, LongBits, Movable, NarrowInt, PackedInt, SignedInt, WideInt, Word};
pub use self::space::Space;
pub use self::vector::Vector;
