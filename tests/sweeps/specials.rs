//! What special registers and the addresses of variables read as, from the launch and the manual.

use crate::machine::{BLOCK, multiprocessors};
use crate::text::Operand;
use crate::values::{Expected, Inputs, ones, width};

/// `mov` or `cvt` of special registers, `mov` of addresses; `None` for anything else.
pub fn results(inputs: &Inputs) -> Option<Vec<Expected>> {
    let statement = inputs.statement;
    let mask = ones(width(statement.types[0]));
    let fit = |expected| match expected {
        Expected::Bits(bits) => Expected::Bits(bits & mask),
        other => other,
    };
    match statement.operands.get(1)? {
        Operand::Special(name, Some(element)) => Some(vec![fit(element_of(inputs, name, place(element)))]),
        Operand::Special(name, None) if matches!(statement.operands[0], Operand::Group(_)) => {
            Some((0..4).map(|i| fit(element_of(inputs, name, i))).collect())
        }
        Operand::Special(name, None) => Some(vec![fit(single(inputs, name))]),
        Operand::Variable(name, offset) => {
            let address = inputs.variables.iter().find(|v| v.0 == *name).expect("declared").1;
            Some(vec![fit(Expected::Bits(u128::from(address) + offset))])
        }
        _ => None,
    }
}

fn place(element: &str) -> usize {
    ["xr", "yg", "zb", "wa"]
        .iter()
        .position(|names| names.contains(element))
        .expect("an element")
}

/// Blocks in a row, of one cluster each; a fourth element is always 0.
fn element_of(inputs: &Inputs, name: &str, element: usize) -> Expected {
    let (thread, block, blocks) = (
        inputs.thread % BLOCK,
        inputs.thread / BLOCK,
        inputs.threads.div_ceil(BLOCK),
    );
    let first = match name {
        "%tid" => [thread, 0],
        "%ntid" => [BLOCK, 1],
        "%ctaid" | "%clusterid" => [block, 0],
        "%nctaid" | "%nclusterid" => [blocks, 1],
        "%cluster_ctaid" => [0, 0],
        "%cluster_nctaid" => [1, 1],
        other => panic!("{other} is no vector"),
    };
    Expected::Bits(match element {
        0 => first[0],
        1 | 2 => first[1],
        _ => 0,
    } as u128)
}

fn single(inputs: &Inputs, name: &str) -> Expected {
    let lane = (inputs.thread % 32) as u32;
    let all = u128::from(u32::MAX);
    Expected::Bits(match name {
        "%laneid" => lane.into(),
        "%warpid" => (inputs.thread % BLOCK / 32) as u128,
        "%nwarpid" => (BLOCK / 32) as u128,
        "%nsmid" => multiprocessors().into(),
        "%smid" => return Expected::Below(multiprocessors().into()),
        "%lanemask_eq" => 1 << lane,
        "%lanemask_lt" => ones(lane + 1) >> 1,
        "%lanemask_le" => ones(lane + 1),
        "%lanemask_gt" => all & !ones(lane + 1),
        "%lanemask_ge" => all & !(ones(lane + 1) >> 1),
        // Blocks in clusters of one; no shared memory; no graph.
        "%cluster_ctarank" | "%is_explicit_cluster" | "%current_graph_exec" => 0,
        "%cluster_nctarank" => 1,
        "%dynamic_smem_size" | "%total_smem_size" => 0,
        // Counters, times and what the driver defines.
        name if [
            "%clock",
            "%gridid",
            "%globaltimer",
            "%pm",
            "%envreg",
            "%reserved_smem",
            "%aggr_smem",
        ]
        .iter()
        .any(|start| name.starts_with(start)) =>
        {
            return Expected::Any;
        }
        other => panic!("{other} is no special register"),
    })
}
