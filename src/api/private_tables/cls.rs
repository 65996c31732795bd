//! CLS, context-local storage: where each copy of cudart keeps its state per context. Asked for by cudart 11.8 to 13.5.
//!
//! The values are cudart's own, and are not looked into. Storage belongs to the context and is shared by its threads;
//! destroying or resetting the context runs the destructors.
//!
//! This table has no size word: functions from word 0, ended by null.

use super::super::call::{Answer, Out, enter, guarded, initialised, show};
use super::super::types::*;
use super::Table;
use crate::driver::Context;
use crate::driver::context::StorageDrop;
use std::sync::Arc;

pub const ID: u128 = 0xc693336e_1121_df11_a8c3_68f355d89593;

pub static TABLE: Table<3> = Table::of(&[
    (0, put as *const c_void),
    (1, delete as *const c_void),
    (2, get as *const c_void),
    (3, std::ptr::null()),
]);

type Destructor = Option<StorageDrop>;

/// NULL is the calling thread's current context.
fn find(context: CUcontext) -> Answer<Arc<Context>> {
    initialised()?;
    if context.is_null() {
        Context::current_or_none().ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)
    } else {
        Ok(Context::from_handle(context as usize)?)
    }
}

/// Slot 0: stores a value.
unsafe extern "C" fn put(context: CUcontext, key: usize, value: usize, destructor: Destructor) -> CUresult {
    enter(
        "CLS.0",
        |f| show(f, &[("context", &context), ("key", &key), ("value", &value)]),
        || {
            find(context)?.storage_put(key, value, destructor);
            Ok(())
        },
    )
}

/// Slot 1, at exit: forgets a value without destroying it.
unsafe extern "C" fn delete(context: CUcontext, key: usize) -> CUresult {
    enter(
        "CLS.1",
        |f| show(f, &[("context", &context), ("key", &key)]),
        || Ok(find(context)?.storage_delete(key)?),
    )
}

/// Slot 2: the value; an error if there is none. Nearly every call of the runtime begins with this, so it is not traced.
unsafe extern "C" fn get(value: *mut usize, context: CUcontext, key: usize) -> CUresult {
    guarded("CLS.2", || {
        initialised()?;
        let found = if context.is_null() {
            Context::storage_get_current(key)?
        } else {
            Context::from_handle(context as usize)?
                .storage_get(key)
                .ok_or(CUresult::CUDA_ERROR_INVALID_HANDLE)?
        };
        // SAFETY: null or good for one word.
        unsafe { Out::from_c(value) }.set(found)
    })
}
