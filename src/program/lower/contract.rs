//! `mul` and `add` of floats become `fma`, where neither says how to round: what NVIDIA's assembler does with such pairs
//! (`MARGAY_FMAD=1`). Only a product that nothing else uses, in the block of the sum.

use super::ir::{BlockId, Body, Contractible, Node, Register};
use super::select::operands_of;
use super::simplify::{Definition, definitions};
use crate::isa::{self, Lane, Semantics};
use crate::program::instr::Kind;
use crate::program::visit::Role;

/// Contracts in place; products that this leaves without users die with other dead code.
pub fn run(body: &mut Body, order: &[BlockId]) {
    let definitions = definitions(body, order);
    let mut uses = vec![0u32; body.registers.len()];
    for &block in order {
        let b = &body.blocks[block as usize];
        for node in &b.nodes {
            node.instr
                .slots(|slot, role| uses[slot.offset as usize] += u32::from(role == Role::Use));
        }
    }
    for &block in order {
        let nodes = std::mem::take(&mut body.blocks[block as usize].nodes);
        let mut out: Vec<Node> = Vec::with_capacity(nodes.len());
        for node in &nodes {
            match fused(body, block, &nodes, node, &definitions, &uses) {
                Some(more) => out.extend(more),
                None => out.push(node.clone()),
            }
        }
        body.blocks[block as usize].nodes = out;
    }
}

/// What stands for a sum with a product in it: the `fma`, and before it a negation if the sum is a difference.
fn fused(
    body: &mut Body,
    block: BlockId,
    nodes: &[Node],
    sum: &Node,
    definitions: &[Definition],
    uses: &[u32],
) -> Option<Vec<Node>> {
    let Some(Contractible::Sum {
        subtract,
        ref modifiers,
    }) = sum.contractible
    else {
        return None;
    };
    let Kind::Lane { operands, .. } = &sum.instr.kind else {
        return None;
    };
    let [x, y, ..] = operands.src;
    // Its value is the same wherever it is read.
    let stable = |body: &Body, r: Register| body.is_fixed(r) || matches!(definitions[r as usize], Definition::One(..));
    let product = |body: &Body, register: Register| -> Option<[Register; 2]> {
        let Definition::One(at, index) = *definitions.get(register as usize)? else {
            return None;
        };
        let node = nodes
            .get(index as usize)
            .filter(|_| at == block && uses[register as usize] == 1)?;
        let Some(Contractible::Product { modifiers: own }) = &node.contractible else {
            return None;
        };
        let Kind::Lane { operands, .. } = &node.instr.kind else {
            return None;
        };
        let [a, b, ..] = operands.src;
        (modifiers.without_sat() == *own && stable(body, a) && stable(body, b)).then_some([a, b])
    };
    let (mut a, b, mut c, first) = match (product(body, x), product(body, y)) {
        (Some([a, b]), _) => (a, b, y, true),
        (None, Some([a, b])) => (a, b, x, false),
        (None, None) => return None,
    };
    let mut out = Vec::with_capacity(2);
    if subtract {
        // a·b − c negates c, c − a·b negates a.
        let negated = if first { &mut c } else { &mut a };
        let lane = lane(&format!("neg{}", modifiers.of_negation()))?;
        let fresh = body.register(lane.dst[0]);
        out.push(node_of(sum, &lane, fresh, &[*negated]));
        out[0].instr.guard = None;
        *negated = fresh;
    }
    let lane = lane(&format!("fma.rn{}", modifiers.text))?;
    out.push(node_of(sum, &lane, operands.dst[0], &[a, b, c]));
    Some(out)
}

fn lane(opcode: &str) -> Option<Lane> {
    let form = isa::decode(opcode).ok()?;
    match form.line.semantics {
        Semantics::Lane(lane) => lane(&form),
        _ => None,
    }
}

fn node_of(like: &Node, lane: &Lane, dst: Register, src: &[Register]) -> Node {
    let mut node = like.clone();
    node.contractible = None;
    node.linear = None;
    node.instr.kind = Kind::Lane {
        kernel: lane.kernel,
        operands: operands_of(&[dst], src, lane.constant),
        dst: lane.dst,
        src: lane.src,
    };
    node
}
