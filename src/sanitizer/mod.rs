//! Tools that look on while kernels run and say what is wrong with them. They are observers of grids
//! ([`crate::simt::observe`]); what they find they hand to whoever asked for them.

pub mod between;
mod directory;
pub mod filter;
pub mod init;
pub mod numbers;
pub mod orders;
pub mod race;
mod spread;
pub mod sync;
