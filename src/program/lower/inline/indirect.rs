//! Calls through addresses. Those that the module's own functions have are known, and few of them fit a call: the call becomes a question for each
//! of these, with its text behind it, and stays for whoever has another address. Virtual functions and tables of functions are
//! called so.

use std::rc::Rc;

use super::{Inliner, Part, Site};

use crate::isa::compare::Operands;
use crate::isa::lanes::Width;
use crate::isa::{Compare, Compute};
use crate::program::ir::{Block, BlockId, Callee, End, Guard, Initial, Inst, Op};
use crate::program::layout;

/// Functions that are asked for at a call; where more would fit it, none is.
const MOST_ASKED: usize = 6;

/// A function that a call may reach.
pub(super) struct Candidate {
    number: u32,
    address: u64,
    part: Rc<Part>,
}

impl Candidate {
    /// Instructions of its text.
    pub(super) fn size(&self) -> usize {
        self.part.size()
    }

    /// Whom it calls, still.
    pub(super) fn callees(&self) -> impl Iterator<Item = u32> {
        self.part.callees.iter().copied()
    }
}

impl Inliner<'_> {
    /// The functions that a call through an address may reach and whose text may take its place, which is at most so long. None: it stays as it is.
    pub(super) fn candidates(&mut self, inst: &Inst, room: usize) -> Vec<Candidate> {
        let Op::Call {
            callee: Callee::Indirect { params, returns, .. },
            ..
        } = inst.op
        else {
            return Vec::new();
        };
        // The interpreter asks the same of whom it calls.
        let fit = |part: &Part| part.signature.param_bytes <= params && part.signature.return_bytes == returns;
        let module = self.module;
        let mut found = Vec::new();
        let mut left = room;
        for &number in module.address_taken() {
            let Some(part) = self.part_of(number).filter(|part| fit(part)) else {
                continue;
            };
            if part.size() > left || found.len() == MOST_ASKED {
                return Vec::new();
            }
            left -= part.size();
            found.push(Candidate {
                number,
                address: module.function_address(number),
                part,
            });
        }
        found
    }
}

/// Puts questions and texts in a call's place, behind a block, and gives the block that goes on behind them. What has got its place comes into
/// `sequence`.
pub(super) fn ask(
    inst: Inst,
    caller: &mut Part,
    candidates: &[Candidate],
    (block, frame): (BlockId, u32),
    sequence: &mut Vec<BlockId>,
) -> BlockId {
    let Inst { guard, op, span, line } = inst;
    let Op::Call {
        callee: Callee::Indirect { address, .. },
        args,
        results,
    } = &op
    else {
        unreachable!("a call through an address is asked about");
    };
    let inlined = caller.body.blocks[block as usize].inlined;
    let new = |caller: &mut Part| {
        caller.body.blocks.push(Block {
            insts: Vec::new(),
            end: End::Stop,
            place: 0,
            inlined,
        });
        caller.body.blocks.len() as BlockId - 1
    };
    let behind = new(caller);
    let mut at = block;
    if let Some(guard) = guard {
        let called = new(caller);
        caller.body.blocks[at as usize].end = End::Branch {
            guard,
            taken: called,
            fall: behind,
            span,
        };
        sequence.push(called);
        at = called;
    }
    for candidate in candidates {
        let (hit, miss) = (new(caller), new(caller));
        let own = caller
            .body
            .initial(Width::B64, Initial::Constant(candidate.address.into()));
        let is_it = caller.body.register(Width::Pred);
        let equal = Compute::setp(Compare::Eq, Operands::U64);
        let op = Op::compute(&caller.body, equal, &[is_it], &[address.number, own]);
        let question = Inst {
            guard: None,
            op,
            span,
            line,
        };
        caller.body.blocks[at as usize].insts.push(question);
        let guard = Guard {
            reg: caller.body.reg(is_it),
            negated: false,
        };
        caller.body.blocks[at as usize].end = End::Branch {
            guard,
            taken: hit,
            fall: miss,
            span,
        };
        sequence.push(hit);
        let call = Inst {
            guard: None,
            op: Op::Call {
                callee: Callee::Direct(candidate.number),
                args: args.clone(),
                results: results.clone(),
            },
            span,
            line,
        };
        let site = Site {
            function: candidate.number,
            block: hit,
            frame: layout::round_up(frame, candidate.part.frame.align),
        };
        let after = site.inline(call, caller, &candidate.part, sequence);
        sequence.push(after);
        caller.body.blocks[after as usize].end = End::Jump { to: behind, span };
        sequence.push(miss);
        at = miss;
    }
    let last = &mut caller.body.blocks[at as usize];
    last.insts.push(Inst {
        guard: None,
        op,
        span,
        line,
    });
    last.end = End::Jump { to: behind, span };
    behind
}
