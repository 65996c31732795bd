//! Calls through addresses. Those that the module's own functions have are known, and few of them fit a call: the call becomes a question for each
//! of these, with its text behind it, and stays for whoever has another address. Virtual functions and tables of functions are
//! called so.

use crate::isa::compare::Operands;
use crate::isa::lanes::Width;
use crate::isa::{Compare, Compute};
use crate::program::ir::{Block, BlockId, Body, Callee, End, Guard, Initial, Inst, Op, Register};

/// Questions on their way into a call's place.
pub(super) struct Questions {
    call: Inst,
    address: Register,
    /// What all go on with.
    behind: BlockId,
    /// Where the next question is asked.
    at: BlockId,
}

impl Questions {
    /// Begins at the end of a block. What has got its place comes into `sequence`, here and below. `None`: it is no call through an address.
    pub(super) fn begin(
        body: &mut Body,
        inst: &Inst,
        block: BlockId,
        sequence: &mut Vec<BlockId>,
    ) -> Option<Questions> {
        let Op::Call {
            callee: Callee::Indirect { address, .. },
            ..
        } = inst.op
        else {
            return None;
        };
        let mut questions = Questions {
            call: Inst {
                guard: None,
                ..inst.clone()
            },
            address: address.number,
            behind: new_block(body, block),
            at: block,
        };
        if let Some(guard) = inst.guard {
            let called = new_block(body, block);
            questions.branch(body, guard, (called, questions.behind));
            questions.at = called;
            sequence.push(called);
        }
        Some(questions)
    }

    /// Is it function `number`, which is at this address? Gives the block where it is, and what is called there.
    pub(super) fn ask(
        &mut self,
        body: &mut Body,
        (number, address): (u32, u64),
        sequence: &mut Vec<BlockId>,
    ) -> (BlockId, Inst) {
        let (hit, miss) = (new_block(body, self.at), new_block(body, self.at));
        let own = body.initial(Width::B64, Initial::Constant(address.into()));
        let is_it = body.register(Width::Pred);
        let equal = Compute::setp(Compare::Eq, Operands::U64);
        let question = Inst {
            op: Op::compute(body, equal, &[is_it], &[self.address, own]),
            ..self.call.clone()
        };
        body.blocks[self.at as usize].insts.push(question);
        let guard = Guard {
            reg: body.reg(is_it),
            negated: false,
        };
        self.branch(body, guard, (hit, miss));
        self.at = miss;
        sequence.push(hit);
        let mut call = self.call.clone();
        if let Op::Call { callee, .. } = &mut call.op {
            *callee = Callee::Direct(number);
        }
        (hit, call)
    }

    /// That function's text ends with this block.
    pub(super) fn answered(&mut self, body: &mut Body, last: BlockId, sequence: &mut Vec<BlockId>) {
        self.go_on(body, last);
        sequence.extend([last, self.at]);
    }

    /// It is another one: the call itself. Gives the block behind all.
    pub(super) fn end(self, body: &mut Body) -> BlockId {
        self.go_on(body, self.at);
        body.blocks[self.at as usize].insts.push(self.call);
        self.behind
    }

    fn go_on(&self, body: &mut Body, from: BlockId) {
        body.blocks[from as usize].end = End::Jump {
            to: self.behind,
            span: self.call.span,
        };
    }

    fn branch(&self, body: &mut Body, guard: Guard, (taken, fall): (BlockId, BlockId)) {
        let span = self.call.span;
        body.blocks[self.at as usize].end = End::Branch {
            guard,
            taken,
            fall,
            span,
        };
    }
}

/// An empty block of the same text as another one.
fn new_block(body: &mut Body, like: BlockId) -> BlockId {
    let inlined = body.blocks[like as usize].inlined;
    body.blocks.push(Block {
        insts: Vec::new(),
        end: End::Stop,
        place: 0,
        inlined,
    });
    body.blocks.len() as BlockId - 1
}
