//! What nvcc emits lowers, and what comes out keeps the executor's rules. Slots are checked against an independent
//! liveness as functions are lowered (`lower::emit`).

use super::{link, prepare};
use crate::program::{Kind, Module};

fn lowered(name: &str) -> Module {
    let path = format!("tests/data/nvcc/{name}.ptx");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let (module, _) = link(&[&text]);
    for function in &module.functions {
        prepare(&module, &function.name);
    }
    module
}

macro_rules! programs {
    ($($name:ident)*) => { $(
        #[test]
        fn $name() {
            lowered(stringify!($name));
        }
    )* };
}

programs! {
    vector_add saxpy mandelbrot dynamic_shared histogram symbols double_precision grid_sync bits_and_bytes
    matmul_tiled bfs_queue block_scan reduce_shuffle recursion templates_virtual transpose func_attributes
    cooperative_groups function_pointers device_malloc printf_conversions atomics assert_fails trap
}

#[test]
fn loops_are_contiguous() {
    // Every jump back spans blocks of its own loop only: no exit or trap of the kernel lies inside.
    let module = lowered("matmul_tiled");
    let kernel = prepare(&module, &module.functions[0].name);
    for (pc, instr) in kernel.code.iter().enumerate() {
        if let Kind::Branch { target } = instr.kind
            && (target as usize) < pc
        {
            let inside = &kernel.code[target as usize..pc];
            assert!(!inside.iter().any(|i| matches!(i.kind, Kind::Exit)), "{kernel}");
        }
    }
}
