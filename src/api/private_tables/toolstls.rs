//! TOOLSTLS: asked for by cudart 11.8 to 13.5 at start-up, which fails without it; no slot was ever seen called, so the table
//! says that it has none.

use super::Table;

pub const ID: u128 = 0x42d85a81_23f6_cb47_8298_f6e78a3aecdc;

pub static TABLE: Table<1> = Table::sized([std::ptr::null()]);
