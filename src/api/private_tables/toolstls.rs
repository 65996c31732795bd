//! TOOLSTLS: asked for by cudart 11.8 to 13.5 at start-up, which fails without it and calls nothing in it. Its size is that
//! of drivers seen.

use super::super::call::Out;
use super::super::types::*;
use super::Table;

pub const ID: u128 = 0x42d85a81_23f6_cb47_8298_f6e78a3aecdc;

pub static TABLE: Table<2> = Table::sized(3, &[(2, storage as *const c_void)]);

/// Slot 2: cublasLt asks, sometimes for nothing. That there is none contents it.
unsafe extern "C" fn storage(found: *mut *mut c_void) -> CUresult {
    // SAFETY: null or good for a pointer.
    unsafe { Out::from_c(found) }.set_if_any(std::ptr::null_mut());
    CUresult::CUDA_SUCCESS
}
