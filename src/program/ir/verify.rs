//! The rules of the representation, stated once and checked after every pass in tests and debug builds.

use super::op::*;
use super::{Body, End, Role};
use crate::isa::lanes::Width;

impl Body {
    /// Which registers anything names.
    pub(super) fn named(&self) -> Vec<bool> {
        let mut named = vec![false; self.registers.len()];
        for inst in self.prologue.iter().chain(self.insts()) {
            inst.regs(|reg, _| named[reg.number as usize] = true);
        }
        for register in self.blocks.iter().filter_map(|block| block.end.register()) {
            named[register as usize] = true;
        }
        named
    }

    /// Checks the rules of `docs/ir.md`.
    ///
    /// # Errors
    /// The first thing that does not hold, and where.
    pub fn verify(&self) -> Result<(), String> {
        let blocks = self.blocks.len();
        for (at, inst) in self.prologue.iter().enumerate() {
            self.inst(inst)
                .and_then(|()| self.in_prologue(inst))
                .map_err(|why| format!("prologue {at} `{inst}`: {why}"))?;
        }
        for (number, block) in self.blocks.iter().enumerate() {
            for (at, inst) in block.insts.iter().enumerate() {
                let last = at + 1 == block.insts.len();
                self.inst(inst)
                    .and_then(|()| self.in_block(inst, last))
                    .map_err(|why| format!("b{number} {at} `{inst}`: {why}"))?;
            }
            let wrong = |why: &str| Err(format!("b{number} `{}`: {why}", block.end));
            let mut inside = true;
            block.end.successors(|to| inside &= (to as usize) < blocks);
            if !inside {
                return wrong("jumps to a block that is not there");
            }
            match &block.end {
                End::Jump { .. } => {}
                End::Branch { guard, .. } => {
                    if !self.has(&guard.reg) || guard.reg.width != Width::Pred {
                        return wrong("the guard is no predicate");
                    }
                }
                End::Indexed { index, .. } => {
                    if !self.has(index) || index.width != Width::B32 {
                        return wrong("the index has not 32 bits");
                    }
                }
                End::Stop => {}
            }
        }
        self.falls_nowhere()
    }

    /// A reachable block that stops ends with an operation after which nothing runs.
    fn falls_nowhere(&self) -> Result<(), String> {
        let mut seen = vec![false; self.blocks.len()];
        let mut work: Vec<u32> = Vec::new();
        if let Some(entry) = seen.first_mut() {
            *entry = true;
            work.push(0);
        }
        while let Some(number) = work.pop() {
            let block = &self.blocks[number as usize];
            if matches!(block.end, End::Stop)
                && !block
                    .insts
                    .last()
                    .is_some_and(|inst| inst.guard.is_none() && inst.op.ends_path())
            {
                return Err(format!("b{number}: control falls off the end"));
            }
            block.end.successors(|to| {
                if !std::mem::replace(&mut seen[to as usize], true) {
                    work.push(to);
                }
            });
        }
        Ok(())
    }

    /// There is such a register, of this width.
    fn has(&self, reg: &Reg) -> bool {
        self.registers
            .get(reg.number as usize)
            .is_some_and(|info| info.width == reg.width)
    }

    fn inst(&self, inst: &Inst) -> Result<(), String> {
        if let Some(guard) = &inst.guard
            && guard.reg.width != Width::Pred
        {
            return Err(format!("the guard {} is no predicate", guard.reg));
        }
        let mut unknown = None;
        let mut defined: Vec<Register> = Vec::new();
        let mut twice = None;
        inst.regs(|reg, role| {
            if !self.has(reg) {
                unknown = Some(*reg);
            }
            if role == Role::Def {
                if defined.contains(&reg.number) {
                    twice = Some(*reg);
                }
                defined.push(reg.number);
            }
        });
        if let Some(reg) = unknown {
            return Err(format!("{reg} is no register of this function"));
        }
        if let Some(reg) = twice {
            return Err(format!("{reg} is written twice"));
        }
        operands(&inst.op)
    }

    fn in_prologue(&self, inst: &Inst) -> Result<(), String> {
        let mut fixed = true;
        inst.regs(|reg, _| fixed &= self.is_fixed(reg.number));
        let (Op::Compute { .. }, None) = (&inst.op, inst.guard) else {
            return Err("is not pure, or has a guard".to_owned());
        };
        match fixed {
            true => Ok(()),
            false => Err("names what is not fixed before the code runs".to_owned()),
        }
    }

    fn in_block(&self, inst: &Inst, last: bool) -> Result<(), String> {
        let mut fixed = None;
        inst.regs(|reg, role| {
            if role == Role::Def && self.is_fixed(reg.number) {
                fixed = Some(*reg);
            }
        });
        if let Some(reg) = fixed {
            return Err(format!("writes {reg}, which is set before the code runs"));
        }
        if inst.op.ends_path() && inst.guard.is_none() && !last {
            return Err("nothing behind it ever runs".to_owned());
        }
        Ok(())
    }
}

/// What an operation asks of its registers and fields.
fn operands(op: &Op) -> Result<(), String> {
    let is = |reg: &Reg, width: Width| match reg.width == width {
        true => Ok(()),
        false => Err(format!("{reg} should be a register of class {width:?}")),
    };
    let holds = |reg: &Reg, bytes: u8| match u32::from(bytes) <= bytes_of(reg.width) {
        true => Ok(()),
        false => Err(format!("{reg} does not hold {bytes} bytes")),
    };
    let address = |address: &Address| match &address.register {
        None => Ok(()),
        Some(reg) => match reg.width {
            Width::B32 | Width::B64 => Ok(()),
            Width::Pred | Width::B16 | Width::B128 => Err(format!("{reg} holds no address")),
        },
    };
    match op {
        Op::Compute { op, dst, src } => {
            let same = |regs: &[Reg], widths: &[Width]| regs.iter().map(|reg| reg.width).eq(widths.iter().copied());
            let lane = op.lane().named(dst.len());
            match same(dst, lane.dst) && same(src, lane.src) {
                true => Ok(()),
                false => Err(format!("it wants {:?} ← {:?}", lane.dst, lane.src)),
            }
        }
        Op::Load {
            address: at,
            element,
            ordering,
            scope,
            dst,
        } => {
            address(at)?;
            ordered(*ordering, *scope)?;
            dst.iter().flatten().try_for_each(|reg| holds(reg, element.bytes))
        }
        Op::Store {
            address: at,
            element,
            ordering,
            scope,
            src,
        } => {
            address(at)?;
            ordered(*ordering, *scope)?;
            src.iter().try_for_each(|reg| holds(reg, element.bytes))
        }
        Op::Atomic {
            address: at,
            ordering,
            scope,
            ..
        } => {
            address(at)?;
            ordered(*ordering, Some(*scope))
        }
        Op::CopyAsync { dst, src, .. } => {
            address(dst)?;
            address(src)
        }
        Op::Within(within) => address(&Address {
            space: within.space,
            register: Some(within.register),
            offset: 0,
        }),
        Op::Joint(joint) => joint.addresses.iter().try_for_each(address),
        Op::Call { callee, .. } => match callee {
            Callee::Direct(_) => Ok(()),
            Callee::Indirect { address, .. } => is(address, Width::B64),
        },
        Op::Vote { pred, .. } => is(&pred.0, Width::Pred),
        Op::Shuffle { dst, a, b, c, .. } => [dst, a, b, c].into_iter().try_for_each(|reg| is(reg, Width::B32)),
        Op::Redux { dst, a, .. } => is(dst, Width::B32).and_then(|()| is(a, Width::B32)),
        Op::Match { dst, .. } | Op::Activemask { dst } => is(dst, Width::B32),
        Op::Elect { dst_pred, .. } => is(dst_pred, Width::Pred),
        Op::IsSpace { dst, .. } | Op::IsHandle { dst, .. } => is(dst, Width::Pred),
        Op::Barrier { pred, .. } => match pred {
            Some((reg, _)) => is(reg, Width::Pred),
            None => Ok(()),
        },
        // Their registers may be of several widths, or there are none.
        Op::WarpBarrier { .. }
        | Op::ReadSpecial { .. }
        | Op::FrameAddress { .. }
        | Op::ConvertAddress { .. }
        | Op::Alloca { .. }
        | Op::StackSave { .. }
        | Op::StackRestore { .. }
        | Op::Texture(_)
        | Op::Surface(_)
        | Op::Shadow(_)
        | Op::HandleQuery { .. }
        | Op::Syscall { .. }
        | Op::Return
        | Op::Exit
        | Op::Trap
        | Op::Breakpoint
        | Op::Fence { .. }
        | Op::CopyGroup(_)
        | Op::Nanosleep => Ok(()),
    }
}

/// What is ordered is so among somebody, what is weak is not.
fn ordered(ordering: Ordering, scope: Option<Scope>) -> Result<(), String> {
    match (ordering, scope) {
        (Ordering::Weak, None) => Ok(()),
        (Ordering::Weak, Some(_)) => Err("a weak access has no scope".to_owned()),
        (
            Ordering::Volatile
            | Ordering::Relaxed
            | Ordering::Acquire
            | Ordering::Release
            | Ordering::AcqRel
            | Ordering::Sc,
            scope,
        ) => scope
            .map(|_| ())
            .ok_or_else(|| "a strong access has no scope".to_owned()),
    }
}

fn bytes_of(width: Width) -> u32 {
    match width {
        Width::Pred => 0,
        Width::B16 => 2,
        Width::B32 => 4,
        Width::B64 => 8,
        Width::B128 => 16,
    }
}
