//! TOOLSMODULE: cuFFT asks for it when the first plan is made, and finds by it the only kernel of each of its modules.

use super::super::call::{enter, show};
use super::super::types::*;
use super::Table;
use crate::driver::Module;

pub const ID: u128 = 0x6e163fbe_b958_444d_835c_e182aff1991e;

pub static TABLE: Table<8> = Table::sized(8, &[(7, each_function as *const c_void)]);

/// Is told of a function and of its module.
type Tell = unsafe extern "C" fn(data: *mut c_void, function: CUfunction, module: CUmodule);

/// Slot 7: tells `tell` of each function of a module, and gives their number; cuFFT is content with 1 alone. The context
/// is the current one.
unsafe extern "C" fn each_function(
    context: CUcontext,
    module: CUmodule,
    tell: Option<Tell>,
    data: *mut c_void,
) -> c_uint {
    let mut functions = Vec::new();
    enter(
        "TOOLSMODULE.7",
        |f| show(f, &[("context", &context), ("module", &module)]),
        || {
            functions = Module::from_handle(module as usize)?.functions()?;
            Ok(())
        },
    );
    if let Some(tell) = tell {
        for function in &functions {
            // SAFETY: the caller's own function, with the caller's own data.
            unsafe { tell(data, function.handle() as CUfunction, module) };
        }
    }
    functions.len() as c_uint
}
