//! `mul` and `add` of floats become `fma`, where neither says how to round: what NVIDIA's assembler does with such pairs
//! (`MARGAY_FMAD=1`). Only a product that nothing else uses, in the block of the sum.

use super::definitions::{Definition, definitions};
use crate::program::ir::{BlockId, Body, Contractible, Inst, Op, Register, Role};

/// Contracts in place; products that this leaves without users die with other dead code.
pub fn run(body: &mut Body, order: &[BlockId]) {
    let definitions = definitions(body, order);
    let mut uses = vec![0u32; body.registers.len()];
    for &block in order {
        let b = &body.blocks[block as usize];
        for inst in &b.insts {
            inst.regs(|reg, role| uses[reg.number as usize] += u32::from(role == Role::Use));
        }
    }
    for &block in order {
        let insts = std::mem::take(&mut body.blocks[block as usize].insts);
        let mut out: Vec<Inst> = Vec::with_capacity(insts.len());
        for inst in &insts {
            match fused(body, block, &insts, inst, &definitions, &uses) {
                Some(more) => out.extend(more),
                None => out.push(inst.clone()),
            }
        }
        body.blocks[block as usize].insts = out;
    }
}

/// What stands for a sum with a product in it: the `fma`, and before it a negation if the sum is a difference.
fn fused(
    body: &mut Body,
    block: BlockId,
    insts: &[Inst],
    sum: &Inst,
    definitions: &[Definition],
    uses: &[u32],
) -> Option<Vec<Inst>> {
    let Op::Compute { op, dst, src } = &sum.op else {
        return None;
    };
    let Some(Contractible::Sum { subtract, of }) = op.contractible() else {
        return None;
    };
    let (x, y) = (src[0].number, src[1].number);
    // Its value is the same wherever it is read.
    let stable = |body: &Body, r: Register| body.is_fixed(r) || matches!(definitions[r as usize], Definition::One(..));
    let product = |body: &Body, register: Register| -> Option<[Register; 2]> {
        let Definition::One(at, index) = *definitions.get(register as usize)? else {
            return None;
        };
        let inst = insts
            .get(index as usize)
            .filter(|_| at == block && uses[register as usize] == 1)?;
        let Op::Compute { op, src, .. } = &inst.op else {
            return None;
        };
        let Some(Contractible::Product(own)) = op.contractible() else {
            return None;
        };
        let (a, b) = (src[0].number, src[1].number);
        (of.of_product() == own && stable(body, a) && stable(body, b)).then_some([a, b])
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
        let op = of.negation()?;
        let fresh = body.register(op.lane().dst[0]);
        out.push(Inst {
            guard: None,
            op: Op::compute(body, op, &[fresh], &[*negated]),
            ..sum.clone()
        });
        *negated = fresh;
    }
    out.push(Inst {
        op: Op::compute(body, of.fma(), &[dst[0].number], &[a, b, c]),
        ..sum.clone()
    });
    Some(out)
}
