//! What is known of a value before anything runs. A pass finds it ([`crate::program::passes`]); tiers may rely on it.

/// How the value of a register differs between the threads of a block that are at the same place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// The same in every thread of a block, whenever it is read.
    Uniform,
    /// `base + stride · %tid.x`, modulo the register's width, where threads that differ in `%tid.x` alone share `base`.
    Affine { stride: u64 },
    #[default]
    Varying,
}

/// What is known of one register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub shape: Shape,
    /// The value is a multiple of two to this power.
    pub align: u8,
    /// The least and the greatest value as an unsigned number, where less than all.
    pub range: Option<(u64, u64)>,
}
