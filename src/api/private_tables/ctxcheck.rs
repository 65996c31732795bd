//! CTXCHECK: asked for by cudart 12 and 13, which ask it about each context they begin to use.
//!
//! It hands over a context and reads two flags, always 0 here; what they mean is not known.

use super::super::call::{Out, enter, show};
use super::super::types::*;
use super::Table;

pub const ID: u128 = 0x263e8860_7cd2_6143_92f6_bbd5006dfa7e;

pub static TABLE: Table<5> = Table::sized(5, &[(2, check as *const c_void), (3, state as *const c_void)]);

/// Slot 2: when a context is first bound, and from device reset, synchronisation, peer access. An error would become that
/// call's; a nonzero first output with a second one that is not null would be followed.
unsafe extern "C" fn check(context: CUcontext, flag: *mut c_uint, more: *mut *mut c_void) -> CUresult {
    // SAFETY: null or good for one word each.
    let (flag, more) = unsafe { (Out::from_c(flag), Out::from_c(more)) };
    enter(
        "CTXCHECK.2",
        |f| show(f, &[("context", &context)]),
        || {
            flag.set_if_any(0);
            more.set_if_any(std::ptr::null_mut());
            Ok(())
        },
    )
}

/// Slot 3: at start-up.
unsafe extern "C" fn state() -> c_uint {
    0
}
