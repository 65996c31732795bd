//! What compiled code looks like, for people.

use std::sync::Arc;

use crate::isa::Level;
use crate::program::Function;

use super::interp::compile::Compiled;
use super::jit::{self, For, Input, Seen};
use crate::config;

/// What is shown of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// LLVM's text, as it is handed to LLVM.
    Llvm,
    /// What LLVM makes of it.
    Assembly,
}

/// The code of a function, in blocks of this shape.
///
/// # Errors
/// It is left to the interpreter, or LLVM is not there; and why.
pub fn listing(function: &Arc<Function>, kernel: bool, block: [u32; 3], what: Listing) -> Result<String, String> {
    let compiled = Compiled::of(function, kernel);
    let drawn = |seed| Seen::drawn(function.body.blocks.len(), seed);
    let seen = config::get().jit_unseen.map(drawn);
    let input = Input {
        body: &function.body,
        starts: &compiled.starts,
        slots: &compiled.slots,
        window: compiled.window,
        local: function.local,
        seen: seen.as_ref(),
    };
    match what {
        Listing::Llvm => Ok(jit::text(&input, jit::rows(block), For::All, Level::current())?),
        Listing::Assembly => jit::assembly(&input, jit::rows(block), For::All, Level::current()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Allocate, AllocateError, Module};
    use crate::simt::jit::Rows;

    struct Nowhere(u64);

    impl Allocate for Nowhere {
        fn allocate(&mut self, bytes: u64, align: u64, _: bool, _: bool) -> Result<u64, AllocateError> {
            let address = self.0.next_multiple_of(align);
            self.0 = address + bytes;
            Ok(address)
        }
        fn write(&mut self, _: u64, _: &[u8]) {}
    }

    /// LLVM takes what is made for every level, also those that this CPU has not.
    #[test]
    fn the_text_for_every_level_compiles() {
        if let Err(why) = jit::compiler() {
            eprintln!("skipped: {why}");
            return;
        }
        let files = [
            (
                "barrier/before_loop.ptx",
                include_str!("../../tests/ptx/barrier/before_loop.ptx"),
            ),
            (
                "control/break_continue.ptx",
                include_str!("../../tests/ptx/control/break_continue.ptx"),
            ),
            (
                "control/early_exit.ptx",
                include_str!("../../tests/ptx/control/early_exit.ptx"),
            ),
            ("control/joined.ptx", include_str!("../../tests/ptx/control/joined.ptx")),
            (
                "control/joined_short.ptx",
                include_str!("../../tests/ptx/control/joined_short.ptx"),
            ),
            (
                "float/nan_moved.ptx",
                include_str!("../../tests/ptx/float/nan_moved.ptx"),
            ),
            (
                "memory/columns_of_shared.ptx",
                include_str!("../../tests/ptx/memory/columns_of_shared.ptx"),
            ),
            (
                "memory/ends_of_shared.ptx",
                include_str!("../../tests/ptx/memory/ends_of_shared.ptx"),
            ),
            ("memory/generic.ptx", include_str!("../../tests/ptx/memory/generic.ptx")),
            ("memory/local.ptx", include_str!("../../tests/ptx/memory/local.ptx")),
            ("memory/strides.ptx", include_str!("../../tests/ptx/memory/strides.ptx")),
            ("warp/match.ptx", include_str!("../../tests/ptx/warp/match.ptx")),
            (
                "warp/met_in_a_branch.ptx",
                include_str!("../../tests/ptx/warp/met_in_a_branch.ptx"),
            ),
            ("saxpy.ptx", include_str!("../../tests/data/nvcc/saxpy.ptx")),
        ];
        for (name, text) in files {
            let tree = crate::ptx::parse_bytes(name, text.as_bytes()).expect("it is PTX");
            let module = Module::link(&[Arc::new(tree)], &mut Nowhere(0x10_0000)).expect("it links");
            for (index, entry) in module.functions.iter().enumerate() {
                let function = module.prepare(index as u32).expect("it is right");
                let compiled = Compiled::of(&function, entry.entry);
                let input = Input {
                    body: &function.body,
                    starts: &compiled.starts,
                    slots: &compiled.slots,
                    window: compiled.window,
                    local: function.local,
                    seen: None,
                };
                for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
                    for rows in [Rows::Warp, Rows::One, Rows::Short(16), Rows::Part, Rows::Any] {
                        for whom in [For::All, For::Some] {
                            let made = jit::assembly(&input, rows, whom, level);
                            let made = made.unwrap_or_else(|why| panic!("{}, {level:?}, {rows:?}: {why}", entry.name));
                            assert!(made.contains("margay_kernel"));
                        }
                    }
                }
            }
        }
    }
}
