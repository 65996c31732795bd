//! Follows values that nobody has written (`MARGAY_CHECK=init`): each register that may hold such a value gets another one, its
//! shadow, with a bit for each bit, set where it is undefined. Operations on shadows stand beside the program's own, and before
//! whatever depends on a value a check of its shadow.
//!
//! Most registers need none: what is computed from parameters, constants and the thread's place is always defined. What may not
//! be is what memory brings, what a register holds that is read before it is written, and what follows from these.

mod tensor_memory;

use std::collections::HashSet;

use super::liveness::{self, Flow};
use crate::isa::definedness::{Definedness, Rule};
use crate::isa::joint::{Joint, matrix, warpgroup};
use crate::isa::lanes::Width;
use crate::program::ir::joint::warpgroup::Multiply;
use crate::program::ir::{
    Address, Block, BlockId, Body, Callee, Compute, Decision, End, Guard, Initial, Inst, JointOp, Op, ReduxOp, Reg,
    Register, Role, Shadow, ShadowOp, Space, Value, VoteMode,
};
use crate::ptx::ast::Span;

/// Bytes of a function's frame, and of results and parameters at its start.
pub struct Frame {
    pub bytes: u32,
    pub results: u32,
    pub parameters: u32,
}

/// Adds shadows to a body that is otherwise final.
pub fn run(body: &mut Body, frame: &Frame) {
    let order: Vec<BlockId> = (0..body.blocks.len() as BlockId).collect();
    let unwritten = live_at_entry(body, &order);
    let may = may_be_undefined(body, &unwritten);
    let mut pass = Pass {
        shadow: vec![None; may.len()],
        checked: HashSet::new(),
        out: Vec::new(),
        at: At::default(),
        body,
    };
    for (register, _) in may.iter().enumerate().filter(|(_, may)| **may) {
        let width = pass.body.registers[register].width;
        pass.shadow[register] = Some(pass.body.register(width));
    }
    for block in 0..pass.body.blocks.len() {
        pass.block(block);
    }
    pass.entry(&unwritten, frame);
}

/// Registers that may be read before anything has written them.
fn live_at_entry(body: &Body, order: &[BlockId]) -> Vec<Register> {
    let flow = Flow::of(body, order);
    let numbers: Vec<u32> = (0..flow.count()).collect();
    let mut found = Vec::new();
    flow.solve(&numbers, |group| {
        if group.blocks.first() == Some(&0) {
            liveness::each(group.live_in[0], |bit| {
                found.push(flow.register(group.members[bit as usize]));
            });
        }
    });
    found
}

/// Registers that may hold undefined bits at some time.
fn may_be_undefined(body: &Body, unwritten: &[Register]) -> Vec<bool> {
    let mut may = vec![false; body.registers.len()];
    for &register in unwritten {
        may[register as usize] = true;
    }
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for inst in body.insts() {
            if !brings(&inst.op, &may) {
                continue;
            }
            inst.op.regs(|reg, role| {
                if role == Role::Def {
                    changed |= !std::mem::replace(&mut may[reg.number as usize], true);
                }
            });
        }
    }
    may
}

/// Whether the results of an operation may be undefined.
fn brings(op: &Op, may: &[bool]) -> bool {
    let may = |reg: &Reg| may[reg.number as usize];
    match op {
        Op::Compute { op, src, .. } => op.definedness() != Definedness::Constant && src.iter().any(may),
        Op::Load { address, .. } => is_shadowed(address.space),
        Op::Shuffle { a, .. } | Op::Match { a, .. } | Op::Redux { a, .. } => may(a),
        Op::Vote {
            mode: VoteMode::Ballot | VoteMode::Any | VoteMode::All,
            pred,
            ..
        } => may(&pred.0),
        Op::ConvertAddress { src, .. } | Op::IsSpace { src, .. } => may(src),
        Op::Joint(joint) => match joint.what {
            Joint::Matrix(matrix::Op::LoadRows(_) | matrix::Op::LoadTile(_)) => {
                joint.addresses.iter().any(|address| is_shadowed(address.space))
            }
            Joint::Matrix(matrix::Op::Transpose | matrix::Op::Multiply(_)) => joint.src.iter().any(may),
            Joint::Matrix(matrix::Op::StoreRows(_) | matrix::Op::StoreTile(_))
            | Joint::Mbarrier(_)
            | Joint::Bulk(_)
            | Joint::Tensor(_)
            | Joint::Cluster(_)
            | Joint::Warpgroup(warpgroup::Op::Fence | warpgroup::Op::Commit | warpgroup::Op::Wait)
            | Joint::Multimem(_)
            | Joint::Fabric(_) => false,
            Joint::Tcgen05(op) => tensor_memory::brings(op),
            // They read shared memory.
            Joint::Warpgroup(warpgroup::Op::Mma(_)) => true,
        },
        // What `vote.uni` gives, what textures and the system bring, and what an atomic
        // operation, of which an undefined operand is told, leaves behind counts as defined.
        Op::Vote {
            mode: VoteMode::Uni, ..
        }
        | Op::Store { .. }
        | Op::Atomic { .. }
        | Op::Call { .. }
        | Op::Return
        | Op::Exit
        | Op::Trap
        | Op::Breakpoint
        | Op::Barrier { .. }
        | Op::WarpBarrier { .. }
        | Op::Fence { .. }
        | Op::Activemask { .. }
        | Op::Elect { .. }
        | Op::ReadSpecial { .. }
        | Op::FrameAddress { .. }
        | Op::Nanosleep
        | Op::Alloca { .. }
        | Op::StackSave { .. }
        | Op::StackRestore { .. }
        | Op::CopyAsync { .. }
        | Op::CopyGroup(_)
        | Op::Shadow(_)
        | Op::Within(_)
        | Op::Texture(_)
        | Op::Surface(_)
        | Op::HandleQuery { .. }
        | Op::IsHandle { .. }
        | Op::Syscall { .. } => false,
    }
}

/// Whether it is known of memory of this space which bytes have been written; of what it is not, all have.
fn is_shadowed(space: Space) -> bool {
    match space {
        Space::Generic | Space::Global | Space::Shared | Space::Local => true,
        Space::Const | Space::Param => false,
    }
}

/// Where an operation stands for which one is added.
#[derive(Clone, Copy, Default)]
struct At {
    guard: Option<Guard>,
    span: Span,
    line: Option<(u32, u32)>,
}

struct Pass<'a> {
    body: &'a mut Body,
    /// By register; registers that are added have none.
    shadow: Vec<Option<Register>>,
    /// Those that have been found defined in this block, for all lanes, and not been written since.
    checked: HashSet<Register>,
    out: Vec<Inst>,
    at: At,
}

impl Pass<'_> {
    fn shadow(&self, reg: Reg) -> Option<Reg> {
        let shadow = self.shadow.get(reg.number as usize).copied().flatten();
        shadow.map(|shadow| self.body.reg(shadow))
    }

    fn temporary(&mut self, width: Width) -> Reg {
        let register = self.body.register(width);
        self.body.reg(register)
    }

    fn zero(&mut self, width: Width) -> Reg {
        let register = self.body.initial(width, Initial::Constant(0));
        self.body.reg(register)
    }

    fn put(&mut self, op: Op) {
        let At { guard, span, line } = self.at;
        self.out.push(Inst { guard, op, span, line });
    }

    fn put_shadow(&mut self, what: Shadow, address: Option<Address>, src: &[Option<Reg>], values: &[Reg], dst: Reg) {
        self.put(Op::Shadow(Box::new(ShadowOp {
            what,
            address,
            src: src.into(),
            values: values.into(),
            dst: Box::new([Some(dst)]),
        })));
    }

    fn copy(&mut self, dst: Reg, src: Reg) {
        let op = Op::compute(self.body, Compute::copy(dst.width), &[dst.number], &[src.number]);
        self.put(op);
    }

    /// A register holds what has been written, from now on.
    fn define(&mut self, reg: Reg) {
        if let Some(shadow) = self.shadow(reg) {
            let zero = self.zero(shadow.width);
            self.copy(shadow, zero);
        }
    }

    /// Something depends on a register's value.
    fn check(&mut self, reg: Reg, decision: Decision) {
        let Some(shadow) = self.shadow(reg).filter(|_| !self.checked.contains(&reg.number)) else {
            return;
        };
        let register = reg.number;
        self.put_shadow(Shadow::Check { decision, register }, None, &[Some(shadow)], &[], shadow);
        if self.at.guard.is_none() {
            self.checked.insert(register);
        }
    }

    fn check_address(&mut self, address: &Address) {
        if let Some(register) = address.register {
            self.check(register, Decision::Address);
        }
    }

    fn block(&mut self, number: usize) {
        self.checked.clear();
        let insts = std::mem::take(&mut self.body.blocks[number].insts);
        let mut last = None;
        for inst in insts {
            self.at = At {
                guard: None,
                span: inst.span,
                line: inst.line,
            };
            if let Some(guard) = inst.guard {
                self.check(guard.reg, Decision::Guard);
                self.at.guard = Some(guard);
            }
            last = inst.line;
            self.inst(inst);
        }
        let end = self.body.blocks[number].end.clone();
        self.at = At {
            guard: None,
            span: end.span(),
            line: last,
        };
        match end {
            End::Branch { guard, taken, fall, .. } if taken != fall => self.check(guard.reg, Decision::Branch),
            End::Indexed { index, .. } => self.check(index, Decision::Target),
            End::Branch { .. } | End::Jump { .. } | End::Stop => {}
        }
        self.body.blocks[number].insts = std::mem::take(&mut self.out);
    }

    /// Puts an instruction with what goes before and behind it.
    fn inst(&mut self, mut inst: Inst) {
        let mut behind = None;
        let mut followed = None;
        match &inst.op {
            Op::Compute { op, dst, src } => self.compute(*op, dst, src),
            Op::Load {
                address, element, dst, ..
            } => {
                self.check_address(address);
                if is_shadowed(address.space) {
                    behind = Some(self.load(*address, Shadow::Load(*element), dst));
                } else {
                    dst.iter().flatten().for_each(|reg| self.define(*reg));
                }
            }
            Op::Store {
                address, element, src, ..
            } => {
                self.check_address(address);
                let src: Box<[Option<Reg>]> = src.iter().map(|reg| self.shadow(*reg)).collect();
                self.put(Op::Shadow(Box::new(ShadowOp {
                    what: Shadow::Store(*element),
                    address: Some(*address),
                    src,
                    values: Box::new([]),
                    dst: Box::new([]),
                })));
            }
            Op::Atomic { address, dst, b, c, .. } => {
                self.check_address(address);
                for reg in b.iter().chain(c) {
                    self.check(*reg, Decision::Atomic);
                }
                dst.iter().flatten().for_each(|reg| self.define(*reg));
            }
            Op::Shuffle { a, dst, dst_pred, .. } => {
                dst_pred.iter().for_each(|reg| self.define(*reg));
                match (self.shadow(*a), self.shadow(*dst)) {
                    (Some(of_a), Some(of_dst)) => {
                        let mut op = inst.op.clone();
                        if let Op::Shuffle { a, dst, dst_pred, .. } = &mut op {
                            (*a, *dst, *dst_pred) = (of_a, of_dst, None);
                        }
                        self.put(op);
                    }
                    _ => self.define(*dst),
                }
            }
            Op::Vote {
                mode: mode @ (VoteMode::Ballot | VoteMode::Any | VoteMode::All),
                dst,
                pred,
                members,
            } => match (self.shadow(pred.0), self.shadow(*dst)) {
                (Some(of_pred), Some(of_dst)) => self.vote(*mode, (*pred, of_pred), of_dst, *members),
                _ => self.define(*dst),
            },
            Op::Redux { op, dst, a, members } => match (self.shadow(*a), self.shadow(*dst)) {
                (Some(of_a), Some(of_dst)) => self.redux(*op, (*a, of_a), of_dst, *members),
                _ => self.define(*dst),
            },
            Op::Match {
                all,
                dst,
                dst_pred,
                a,
                members,
            } => {
                dst_pred.iter().for_each(|reg| self.define(*reg));
                match (self.shadow(*a), self.shadow(*dst)) {
                    (Some(of_a), Some(of_dst)) => {
                        let of_pred = dst_pred.and_then(|reg| self.shadow(reg));
                        self.matches(*all, (*a, of_a), [Some(of_dst), of_pred], *members);
                    }
                    _ => self.define(*dst),
                }
            }
            Op::ConvertAddress { dst, src, .. } | Op::IsSpace { dst, src, .. } => {
                match (self.shadow(*src), self.shadow(*dst)) {
                    (Some(of_src), Some(of_dst)) => {
                        let any = Shadow::Follow(Rule::Any { part: 0 });
                        self.put_shadow(any, None, &[Some(of_src)], &[], of_dst);
                    }
                    _ => self.define(*dst),
                }
            }
            Op::CopyAsync { dst, src, .. } => {
                self.check_address(dst);
                self.check_address(src);
            }
            Op::Joint(joint) => {
                joint.addresses.iter().for_each(|address| self.check_address(address));
                match joint.what {
                    Joint::Matrix(op) => behind = self.matrix(op, joint),
                    Joint::Mbarrier(_)
                    | Joint::Bulk(_)
                    | Joint::Tensor(_)
                    | Joint::Cluster(_)
                    | Joint::Multimem(_)
                    | Joint::Fabric(_) => joint.dst.iter().flatten().for_each(|reg| self.define(*reg)),
                    Joint::Tcgen05(op) => followed = Some(tensor_memory::followed(self, op, joint)),
                    Joint::Warpgroup(warpgroup::Op::Mma(op)) => behind = Some(self.warpgroup(op, joint)),
                    // What a wait completes has its shadow from where it began.
                    Joint::Warpgroup(warpgroup::Op::Fence | warpgroup::Op::Commit | warpgroup::Op::Wait) => {}
                }
            }
            Op::Call { callee, .. } => {
                if let Callee::Indirect { address, .. } = callee {
                    self.check(*address, Decision::Target);
                }
            }
            Op::Vote { .. }
            | Op::Return
            | Op::Exit
            | Op::Trap
            | Op::Breakpoint
            | Op::Barrier { .. }
            | Op::WarpBarrier { .. }
            | Op::Fence { .. }
            | Op::Activemask { .. }
            | Op::Elect { .. }
            | Op::ReadSpecial { .. }
            | Op::FrameAddress { .. }
            | Op::Nanosleep
            | Op::Alloca { .. }
            | Op::StackSave { .. }
            | Op::StackRestore { .. }
            | Op::CopyGroup(_)
            | Op::Shadow(_)
            | Op::Within(_)
            | Op::Texture(_)
            | Op::Surface(_)
            | Op::HandleQuery { .. }
            | Op::IsHandle { .. }
            | Op::Syscall { .. } => inst.op.regs(|reg, role| {
                if role == Role::Def {
                    self.define(*reg);
                }
            }),
        }
        inst.op.regs(|reg, role| {
            if role == Role::Def {
                self.checked.remove(&reg.number);
            }
        });
        if let Some(joint) = followed {
            inst.op = Op::Joint(Box::new(joint));
        }
        self.out.push(inst);
        if let Some(op) = behind {
            self.put(op);
        }
    }

    /// What goes before a vote: a ballot has the bits of the lanes; of the others a lane decides whose predicate is defined, and set
    /// for `any`, clear for `all`.
    fn vote(&mut self, mode: VoteMode, (pred, of_pred): ((Reg, bool), Reg), target: Reg, members: Option<Value>) {
        let vote = |mode, dst, pred| Op::Vote {
            mode,
            dst,
            pred: (pred, false),
            members,
        };
        if mode == VoteMode::Ballot {
            self.put(vote(mode, target, of_pred));
            return;
        }
        let [decides, decided, open] = [(); 3].map(|()| self.temporary(Width::Pred));
        // Set where the vote is for what decides, ...
        match pred.1 == (mode == VoteMode::All) {
            true => self.copy(decides, pred.0),
            false => self.pure(Compute::not_predicate(), decides, &[pred.0]),
        }
        // ... and nothing is missing.
        self.pure(Compute::not_predicate(), open, &[of_pred]);
        self.pure(Compute::and_predicates(), decides, &[decides, open]);
        self.put(vote(VoteMode::Any, decided, decides));
        self.put(vote(VoteMode::Any, open, of_pred));
        self.pure(Compute::not_predicate(), decided, &[decided]);
        self.pure(Compute::and_predicates(), target, &[open, decided]);
    }

    /// What goes before a reduction over a warp: what any thread lacks is missing, unless bits of others decide.
    fn redux(&mut self, op: ReduxOp, (a, of_a): (Reg, Reg), target: Reg, members: Value) {
        let or = |dst, a| Op::Redux {
            op: ReduxOp::Or,
            dst,
            a,
            members,
        };
        let missing = self.temporary(Width::B32);
        self.put(or(missing, of_a));
        match op {
            ReduxOp::Xor => self.copy(target, missing),
            ReduxOp::Add => self.put_shadow(Shadow::Follow(Rule::Carry), None, &[Some(missing)], &[], target),
            ReduxOp::And | ReduxOp::Or => {
                // Bits that decide by themselves: zeros, or ones, which somebody has written.
                let [decides, decided] = [(); 2].map(|()| self.temporary(Width::B32));
                if op == ReduxOp::And {
                    self.pure(Compute::or_words(), decides, &[a, of_a]);
                    self.pure(Compute::not_word(), decides, &[decides]);
                } else {
                    self.pure(Compute::not_word(), decides, &[of_a]);
                    self.pure(Compute::and_words(), decides, &[decides, a]);
                }
                self.put(or(decided, decides));
                self.pure(Compute::not_word(), decided, &[decided]);
                self.pure(Compute::and_words(), target, &[missing, decided]);
            }
            ReduxOp::MinU
            | ReduxOp::MaxU
            | ReduxOp::MinS
            | ReduxOp::MaxS
            | ReduxOp::MinF { .. }
            | ReduxOp::MaxF { .. } => {
                self.put_shadow(
                    Shadow::Follow(Rule::Any { part: 0 }),
                    None,
                    &[Some(missing)],
                    &[],
                    target,
                );
            }
        }
    }

    /// What goes before a comparison of all threads of a warp.
    fn matches(&mut self, all: bool, (a, of_a): (Reg, Reg), dst: [Option<Reg>; 2], members: Value) {
        let named = match members {
            Value::Register(register) => register,
            Value::Immediate(value) => {
                let named = self.body.initial(Width::B32, Initial::Constant(value.into()));
                self.body.reg(named)
            }
        };
        self.put(Op::Shadow(Box::new(ShadowOp {
            what: Shadow::Match { all },
            address: None,
            src: Box::new([Some(of_a)]),
            values: Box::new([a, named]),
            dst: Box::new(dst),
        })));
    }

    fn pure(&mut self, op: Compute, dst: Reg, src: &[Reg]) {
        let src: Vec<Register> = src.iter().map(|reg| reg.number).collect();
        let op = Op::compute(self.body, op, &[dst.number], &src);
        self.put(op);
    }

    /// What goes behind a load: it may have overwritten the address, which is then kept before.
    fn load(&mut self, mut address: Address, what: Shadow, dst: &[Option<Reg>]) -> Op {
        address.register = address.register.map(|register| self.kept(register, dst));
        Op::Shadow(Box::new(ShadowOp {
            what,
            address: Some(address),
            src: Box::new([]),
            values: Box::new([]),
            dst: dst.iter().map(|reg| reg.and_then(|reg| self.shadow(reg))).collect(),
        }))
    }

    /// What goes behind an operation on matrices.
    fn matrix(&mut self, op: matrix::Op, joint: &JointOp) -> Option<Op> {
        let shadows =
            |pass: &Self, src: &[Reg]| -> Box<[Option<Reg>]> { src.iter().map(|reg| pass.shadow(*reg)).collect() };
        let dst: Box<[Option<Reg>]> = joint
            .dst
            .iter()
            .map(|reg| reg.and_then(|reg| self.shadow(reg)))
            .collect();
        // Elements, and what says where they are.
        let (elements, rest): (&[Reg], &[Reg]) = match op {
            matrix::Op::LoadRows(_) => (&[], &[]),
            matrix::Op::StoreRows(_) => (&joint.src, &[]),
            matrix::Op::LoadTile(_) => (&[], &joint.src),
            matrix::Op::StoreTile(_) => (&joint.src[1..], &joint.src[..1]),
            matrix::Op::Multiply(multiply) => (&joint.src, &joint.src[multiply.elements()..]),
            matrix::Op::Transpose => {
                match (self.shadow(joint.src[0]), dst[0]) {
                    // It moves bits, and so does the same to shadows.
                    (Some(src), Some(_)) => self.put(Op::Joint(Box::new(JointOp {
                        src: Box::new([src]),
                        dst,
                        ..joint.clone()
                    }))),
                    _ => joint.dst.iter().flatten().for_each(|reg| self.define(*reg)),
                }
                return None;
            }
        };
        let brings = match op {
            matrix::Op::LoadRows(_) | matrix::Op::LoadTile(_) => is_shadowed(joint.addresses[0].space),
            matrix::Op::StoreRows(_) | matrix::Op::StoreTile(_) => true,
            matrix::Op::Multiply(_) | matrix::Op::Transpose => elements.iter().any(|reg| self.shadow(*reg).is_some()),
        };
        if !matches!(op, matrix::Op::Multiply(_)) {
            rest.iter().for_each(|stride| self.check(*stride, Decision::Address));
        }
        if !brings {
            joint.dst.iter().flatten().for_each(|reg| self.define(*reg));
            return None;
        }
        let src = shadows(self, elements);
        let address = joint.addresses.first().map(|address| Address {
            register: address.register.map(|register| self.kept(register, &joint.dst)),
            ..*address
        });
        let values = rest.iter().map(|reg| self.kept(*reg, &joint.dst)).collect();
        Some(Op::Shadow(Box::new(ShadowOp {
            what: Shadow::Matrix(op),
            address,
            src,
            values,
            dst,
        })))
    }

    /// What goes behind a product of four warps.
    fn warpgroup(&mut self, op: warpgroup::Mma, joint: &JointOp) -> Op {
        let shadows = |pass: &mut Self, elements: &[Reg]| -> Vec<Reg> {
            let shadow = |reg: &Reg| pass.shadow(*reg).unwrap_or_else(|| pass.zero(reg.width));
            elements.iter().map(shadow).collect()
        };
        let src = Multiply::of(op, &joint.src);
        self.check(*src.b, Decision::Address);
        let a = match src.a {
            [descriptor] if descriptor.width == Width::B64 => {
                self.check(*descriptor, Decision::Address);
                vec![*descriptor]
            }
            elements => shadows(self, elements),
        };
        let d = shadows(self, src.d);
        let between = &joint.src[src.d.len()..joint.src.len() - src.a.len()];
        Op::Shadow(Box::new(ShadowOp {
            what: Shadow::Warpgroup(op),
            address: None,
            src: between.iter().map(|reg| self.shadow(*reg)).collect(),
            values: Multiply { d: &d, a: &a, ..src }.sources(),
            dst: joint
                .dst
                .iter()
                .map(|reg| reg.and_then(|reg| self.shadow(reg)))
                .collect(),
        }))
    }

    /// A register that still holds what this one does behind an operation that writes others.
    fn kept(&mut self, register: Reg, written: &[Option<Reg>]) -> Reg {
        if !written.contains(&Some(register)) {
            return register;
        }
        let kept = self.temporary(register.width);
        self.copy(kept, register);
        kept
    }

    /// What goes before a pure operation: the shadows of its results.
    fn compute(&mut self, op: Compute, dst: &[Reg], src: &[Reg]) {
        let shadows: Vec<Option<Reg>> = src.iter().map(|reg| self.shadow(*reg)).collect();
        let targets: Vec<Option<Reg>> = dst.iter().map(|reg| self.shadow(*reg)).collect();
        if targets.iter().all(Option::is_none) {
            return;
        }
        if op.definedness() == Definedness::Constant || shadows.iter().all(Option::is_none) {
            dst.iter().for_each(|reg| self.define(*reg));
            return;
        }
        let first = targets.first().copied().flatten();
        // The second result's shadow waits until the first one's is there, which may be made from the same.
        let second = targets
            .get(1)
            .copied()
            .flatten()
            .map(|target| (target, self.temporary(target.width)));
        if let Some((alone, rule)) = op.uncombined() {
            self.combined((alone, rule), first, second.map(|(_, kept)| kept), (&shadows, src));
        } else {
            if let Some((_, kept)) = second {
                let rule = match (op, op.definedness()) {
                    (Compute::Compare(_), Definedness::Rule(rule)) => rule,
                    _ => Rule::Any { part: 0 },
                };
                self.follow(rule, kept, &shadows, src);
            }
            if let Some(target) = first {
                self.first(op, target, &shadows, src);
            }
        }
        if let Some((target, kept)) = second {
            self.copy(target, kept);
        }
    }

    fn first(&mut self, op: Compute, target: Reg, shadows: &[Option<Reg>], src: &[Reg]) {
        let controls = match op.definedness() {
            Definedness::Constant => return,
            Definedness::Same { controls } => controls,
            // Where the predicate is defined, the operation does it.
            Definedness::Rule(Rule::Select) if shadows[2].is_none() => 1 << 2,
            Definedness::Rule(rule) => return self.follow(rule, target, shadows, src),
        };
        let is_control = |index: usize| controls >> index & 1 == 1;
        let mut sources = Vec::new();
        for (index, (shadow, reg)) in shadows.iter().zip(src).enumerate() {
            sources.push(match shadow {
                _ if is_control(index) => reg.number,
                Some(shadow) => shadow.number,
                None => self.zero(reg.width).number,
            });
        }
        let decisive: Vec<Option<Reg>> = (0..src.len())
            .filter(|index| is_control(*index) && shadows[*index].is_some())
            .map(|index| shadows[index])
            .collect();
        let moved = match decisive.is_empty() {
            true => target,
            false => self.temporary(target.width),
        };
        let same = Op::compute(self.body, op, &[moved.number], &sources);
        self.put(same);
        if !decisive.is_empty() {
            let sources: Vec<Option<Reg>> = std::iter::once(Some(moved)).chain(decisive).collect();
            self.put_shadow(Shadow::Also, None, &sources, &[], target);
        }
    }

    fn follow(&mut self, rule: Rule, target: Reg, shadows: &[Option<Reg>], src: &[Reg]) {
        let values: &[Reg] = match rule {
            Rule::And | Rule::Or | Rule::Lop3 { .. } | Rule::Equal | Rule::Order { .. } | Rule::Select => src,
            Rule::Any { .. } | Rule::Union | Rule::Carry => &[],
        };
        // `lop3` with a predicate has that as a fourth source, which is not the first result's.
        let most = if matches!(rule, Rule::Lop3 { .. }) {
            3
        } else {
            src.len()
        };
        let values = &values[..most.min(values.len())];
        self.put_shadow(
            Shadow::Follow(rule),
            None,
            &shadows[..most.min(shadows.len())],
            values,
            target,
        );
    }

    /// A comparison whose result is combined with a predicate; the second result is that of the opposite comparison.
    fn combined(
        &mut self,
        (alone, rule): (Compute, Rule),
        first: Option<Reg>,
        second: Option<Reg>,
        (shadows, src): (&[Option<Reg>], &[Reg]),
    ) {
        let last = src.len() - 1;
        let holds = self.temporary(Width::Pred);
        let sources: Vec<Register> = src[..last].iter().map(|reg| reg.number).collect();
        let compare = Op::compute(self.body, alone, &[holds.number], &sources);
        self.put(compare);
        let mut of_holds = None;
        if shadows[..last].iter().any(Option::is_some) {
            let shadow = self.temporary(Width::Pred);
            self.first(alone, shadow, &shadows[..last], &src[..last]);
            of_holds = Some(shadow);
        }
        if let Some(second) = second {
            let opposite = self.temporary(Width::Pred);
            let not = Op::compute(self.body, Compute::not_predicate(), &[opposite.number], &[holds.number]);
            self.put(not);
            self.follow(rule, second, &[of_holds, shadows[last]], &[opposite, src[last]]);
        }
        if let Some(first) = first {
            self.follow(rule, first, &[of_holds, shadows[last]], &[holds, src[last]]);
        }
    }

    /// What goes before all else: nothing has been written yet but parameters.
    fn entry(&mut self, unwritten: &[Register], frame: &Frame) {
        self.at = At::default();
        let undefined: Box<[Option<Reg>]> = unwritten
            .iter()
            .filter_map(|register| self.shadow[*register as usize])
            .map(|shadow| Some(self.body.reg(shadow)))
            .collect();
        let mut whats = Vec::new();
        if !undefined.is_empty() {
            whats.push((Shadow::Undefine, undefined));
        }
        for (from, to) in [(0, frame.results), (frame.results + frame.parameters, frame.bytes)] {
            if from < to {
                whats.push((Shadow::Frame(from, to), Box::from([])));
            }
        }
        if whats.is_empty() {
            return;
        }
        for (what, dst) in whats {
            self.put(Op::Shadow(Box::new(ShadowOp {
                what,
                address: None,
                src: Box::new([]),
                values: Box::new([]),
                dst,
            })));
        }
        let mut insts = std::mem::take(&mut self.out);
        let mut is_target = false;
        for block in &self.body.blocks {
            block.end.successors(|to| is_target |= to == 0);
        }
        if !is_target {
            insts.append(&mut self.body.blocks[0].insts);
            self.body.blocks[0].insts = insts;
            return;
        }
        // A loop comes back to the first block: a new one goes before.
        for block in &mut self.body.blocks {
            block.end.successors_mut(|to| *to += 1);
        }
        let end = End::Jump {
            to: 1,
            span: Span::default(),
        };
        let place = self.body.blocks[0].place;
        let inlined = 0;
        let block = Block {
            insts,
            end,
            place,
            inlined,
        };
        self.body.blocks.insert(0, block);
    }
}
