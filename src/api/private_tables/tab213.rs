//! TAB213: asked for by cudart 13 at start-up, which fails without it; no slot was ever seen called, so the table says that
//! it has none.

use super::Table;

pub const ID: u128 = 0x21318c60_9714_3248_8ca6_41ff7324c8f2;

pub static TABLE: Table<1> = Table::sized([std::ptr::null()]);
