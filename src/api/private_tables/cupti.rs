//! CUPTI: two tables that `libcupti` asks for before it tells its version, which JAX wants to know at start-up. Nothing of the
//! first one has been seen called; without the second's slot 3 the version is an error.

use super::super::types::*;
use super::{Table, content};

pub const ID: u128 = 0x7cb63f9b_9ca4_8e42_a484_beb66e6aed7f;
pub const STATE_ID: u128 = 0xd7bd8af8_e7ac_ca4a_bdbc_fb1f1b3fcf33;

pub static TABLE: Table<10> = Table::sized(3, &[]);

/// Slot 3 has a place for a number; that nothing is written there contents it.
pub static STATE: Table<11> = Table::sized(4, &[(3, content as *const c_void)]);
