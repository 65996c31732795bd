//! Predicates that are comparisons of integers: where it is known what was compared, code can compare again instead of keeping a bit for each
//! lane, or compare the ends of a row instead of all lanes (`emit/alike.rs`).

use std::collections::HashMap;

use crate::isa::{Compute, compare};
use crate::program::{Body, Inst, Op, Reg, Register, Role};

use super::compute::of_integers;

/// A comparison of two registers.
#[derive(Clone)]
pub struct Comparison {
    /// LLVM's word for it.
    pub relation: &'static str,
    pub signed: bool,
    pub bits: u32,
    pub sides: [Reg; 2],
}

/// What an instruction compares, if its one result is a comparison of integers and nothing else.
pub fn compared_by(inst: &Inst) -> Option<Comparison> {
    let (
        None,
        Op::Compute {
            op:
                Compute::Compare(compare::Op::Setp {
                    compare,
                    boolean: None,
                    of,
                }),
            dst,
            src,
        },
    ) = (inst.guard, &inst.op)
    else {
        return None;
    };
    let (&[a, b], 1) = (&src[..], dst.len()) else {
        return None;
    };
    let (bits, signed, relation) = of_integers(*compare, *of)?;
    Some(Comparison {
        relation,
        signed,
        bits,
        sides: [a, b],
    })
}

/// Predicates that say the same wherever they are read as a comparison there would: they are written in one place, which nobody passes by who reads
/// them, and what is compared has its value before the code runs. `reads_before`: registers that may be read before they are written.
pub fn comparisons(body: &Body, reads_before: impl Fn(Register) -> bool) -> HashMap<Register, Comparison> {
    let mut written = vec![0u32; body.registers.len()];
    let mut found = HashMap::new();
    for inst in body.blocks.iter().flat_map(|block| &block.insts) {
        let mut last = None;
        inst.regs(|reg, role| {
            if role == Role::Def {
                written[reg.number as usize] += 1;
                last = Some(reg.number);
            }
        });
        if let (Some(register), Some(comparison)) = (last, compared_by(inst)) {
            found.insert(register, comparison);
        }
    }
    found.retain(|&register, comparison| {
        let fixed = comparison.sides.iter().all(|side| body.is_fixed(side.number));
        written[register as usize] == 1 && fixed && !reads_before(register)
    });
    found
}
