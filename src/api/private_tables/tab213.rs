//! TAB213: asked for by cudart 13 at start-up, which fails without it. cudart 13.4, cuBLAS and cublasLt call three of its
//! slots, before kernels, and look at no size; what these do is not known. The size is that of drivers seen.

use super::super::types::*;
use super::{Table, content};

pub const ID: u128 = 0x21318c60_9714_3248_8ca6_41ff7324c8f2;

pub static TABLE: Table<6> = Table::sized(
    86,
    &[
        (4, content as *const c_void),
        (39, content as *const c_void),
        (51, content as *const c_void),
    ],
);
