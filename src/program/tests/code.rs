//! What nvcc emits lowers, and what comes out keeps the executor's rules. The representation is verified after every pass.

use super::{link, prepare};
use crate::program::{End, Module, Op};

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
    let mut loops = 0;
    for (number, block) in kernel.body.blocks.iter().enumerate() {
        let mut targets = Vec::new();
        block.end.successors(|to| targets.push(to as usize));
        for target in targets.into_iter().filter(|&to| to <= number) {
            loops += 1;
            let inside = &kernel.body.blocks[target..=number];
            let leaves = |block: &crate::program::Block| {
                matches!(block.end, End::Stop) || block.insts.iter().any(|inst| matches!(inst.op, Op::Exit))
            };
            assert!(!inside.iter().any(leaves), "{kernel}");
        }
    }
    assert!(loops > 0, "{kernel}");
}
