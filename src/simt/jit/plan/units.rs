//! Where code is cut: stretches of blocks, how each ends, and where lanes leave.

use std::ops::Range;

use crate::program::{Body, End, Guard, Inst, Linear, Op};

use super::super::seen::Seen;

/// Index into the interpreter's code.
pub type Pc = u32;

/// A unit's number; the place where lanes stick before unit `u` has the number of all units more.
pub type Node = u32;

/// Whether lanes leave the code before a unit's first instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stick {
    Never,
    Perhaps,
    Always,
    /// For good: the thread ends.
    Ends,
}

/// How a unit ends.
#[derive(Clone, Debug)]
pub enum Exit {
    /// Nothing runs after it.
    None,
    To(Node),
    Branch {
        guard: Guard,
        /// Where code was not made of one of them, the unit at the branch.
        taken: Node,
        fall: Node,
        /// Before the branch itself: whoever goes where nobody was seen to go leaves there, and has it from the interpreter.
        at: Option<Node>,
        /// Lanes of a warp may go on in code in both ways.
        divides: bool,
    },
}

/// A stretch of a block.
#[derive(Clone, Debug)]
pub struct Unit {
    pub block: u32,
    pub insts: Range<usize>,
    /// Where the interpreter's code has its first instruction.
    pub pc: Pc,
    pub stick: Stick,
    pub exit: Exit,
    /// Lanes may come here from the interpreter.
    pub entry: bool,
}

impl Unit {
    /// Where code goes on for a part of a warp.
    pub(super) fn runs_on(&self, mut f: impl FnMut(Node)) {
        match &self.exit {
            Exit::Branch { at: Some(at), .. } => self.successors(|to| {
                if to != *at {
                    f(to);
                }
            }),
            _ => self.successors(f),
        }
    }

    pub fn successors(&self, mut f: impl FnMut(Node)) {
        match &self.exit {
            Exit::None => {}
            Exit::To(to) => f(*to),
            Exit::Branch { taken, fall, at, .. } => {
                f(*fall);
                f(*taken);
                if let Some(at) = at {
                    f(*at);
                }
            }
        }
    }
}

/// Bodies with more units are left to the interpreter.
const MOST_UNITS: usize = 6000;

/// Why no code is made of a body.
pub type Refusal = &'static str;

/// What an instruction does to the flow of code.
fn stick_of(inst: &Inst) -> Stick {
    match &inst.op {
        Op::Call { .. }
        | Op::Syscall { .. }
        | Op::Return
        | Op::Trap
        | Op::Breakpoint
        | Op::Barrier { .. }
        | Op::Alloca { .. }
        | Op::StackSave { .. }
        | Op::StackRestore { .. } => Stick::Always,
        Op::Joint(joint) if !joint.is_of_warp() => Stick::Always,
        Op::Exit => Stick::Ends,
        Op::Joint(_)
        | Op::WarpBarrier { .. }
        | Op::Match { .. }
        | Op::Redux { .. }
        | Op::Elect { .. }
        | Op::Shuffle { .. }
        | Op::Vote { .. } => Stick::Perhaps,
        Op::Compute { op, .. } => match op.linear() {
            Some(Linear::Widen { .. } | Linear::MulWide { .. } | Linear::MadWide { .. }) => Stick::Perhaps,
            Some(
                Linear::Copy
                | Linear::Add
                | Linear::Sub
                | Linear::Mul
                | Linear::Mad
                | Linear::Shl
                | Linear::Narrow
                | Linear::Compare { .. },
            )
            | None => Stick::Never,
        },
        Op::Load { .. }
        | Op::Store { .. }
        | Op::Atomic { .. }
        | Op::Nanosleep
        | Op::Fence { .. }
        | Op::Activemask { .. }
        | Op::ReadSpecial { .. }
        | Op::FrameAddress { .. }
        | Op::ConvertAddress { .. }
        | Op::IsSpace { .. }
        | Op::Within(_)
        | Op::CopyAsync { .. }
        | Op::CopyGroup(_)
        | Op::Texture(_)
        | Op::Surface(_)
        | Op::Shadow(_)
        | Op::HandleQuery { .. }
        | Op::IsHandle { .. } => Stick::Never,
    }
}

/// Blocks to which somebody was seen to come.
pub(super) fn warm(body: &Body, seen: Option<&Seen>) -> Vec<bool> {
    let Some(seen) = seen else {
        return vec![true; body.blocks.len()];
    };
    let mut warm = vec![false; body.blocks.len()];
    let mut work: Vec<u32> = vec![0];
    while let Some(number) = work.pop() {
        let Some(is_warm) = warm.get_mut(number as usize) else {
            continue;
        };
        if std::mem::replace(is_warm, true) {
            continue;
        }
        let block = &body.blocks[number as usize];
        match &block.end {
            End::Branch { taken, fall, .. } if taken != fall => {
                let [by_taken, by_fall, _] = seen.at(number, &block.end);
                work.extend(by_taken.then_some(*taken));
                work.extend(by_fall.then_some(*fall));
            }
            end => end.successors(|to| work.push(to)),
        }
    }
    warm
}

/// How many instructions are in blocks to which somebody was seen to come.
pub fn warm_instructions(body: &Body, seen: &Seen) -> usize {
    let warm = warm(body, Some(seen));
    let blocks = body.blocks.iter().zip(warm);
    blocks
        .filter_map(|(block, is_warm)| is_warm.then_some(block.insts.len() + 1))
        .sum()
}

pub(super) fn units(body: &Body, starts: &[Pc], (seen, warm): (Option<&Seen>, &[bool])) -> Result<Vec<Unit>, Refusal> {
    let mut units: Vec<Unit> = Vec::new();
    let mut first = Vec::with_capacity(body.blocks.len());
    let mut entry = true;
    for (number, block) in body.blocks.iter().enumerate() {
        first.push(units.len() as Node);
        let unit = |insts: Range<usize>, stick, entry| Unit {
            block: number as u32,
            pc: starts[number] + insts.start as Pc,
            insts,
            stick,
            exit: Exit::None,
            entry,
        };
        let mut from = 0;
        for (at, inst) in block.insts.iter().enumerate() {
            let stick = stick_of(inst);
            if stick == Stick::Never {
                continue;
            }
            if at > from || (at == 0 && number == 0) {
                units.push(unit(from..at, Stick::Never, std::mem::take(&mut entry)));
            }
            // A kernel that begins with one is entered there if it turns out to be like others.
            // So is a barrier at which threads say something, for those who come there again.
            let says = inst.guard.is_none() && inst.op.reduction_of_all().is_some();
            let begins = std::mem::take(&mut entry) || (at == 0 && number == 0) || says;
            units.push(unit(at..at + 1, stick, begins));
            entry = true;
            from = at + 1;
        }
        let (rest, last) = (from..block.insts.len(), block.insts.len());
        match block.end {
            // The interpreter sorts lanes by where they go.
            End::Indexed { .. } => {
                if !rest.is_empty() {
                    units.push(unit(rest, Stick::Never, std::mem::take(&mut entry)));
                }
                units.push(unit(last..last, Stick::Always, false));
            }
            End::Stop if rest.is_empty() && from > 0 => {}
            End::Stop | End::Jump { .. } | End::Branch { .. } => {
                units.push(unit(rest, Stick::Never, std::mem::take(&mut entry)));
                if let Some(seen) = seen
                    && seen.misses(number as u32, &block.end)
                    && warm[number]
                {
                    units.push(unit(last..last, Stick::Always, false));
                }
            }
        }
        entry = matches!(block.end, End::Indexed { .. });
        if units.len() > MOST_UNITS {
            return Err("it is too large");
        }
    }
    let mut indexed = Vec::new();
    for at in 0..units.len() {
        let number = units[at].block;
        let block = &body.blocks[number as usize];
        // The unit at a branch is one more.
        let misses = warm[number as usize] && seen.is_some_and(|seen| seen.misses(number, &block.end));
        let ends = |at: usize| units.get(at).is_none_or(|next| next.block != number);
        let last = ends(at + 1 + usize::from(misses));
        if misses && ends(at + 1) {
            continue;
        }
        let guarded = units[at].insts.len() == 1 && block.insts[units[at].insts.start].guard.is_some();
        let exit = if matches!(units[at].stick, Stick::Always | Stick::Ends) && !guarded {
            Exit::None
        } else if !last {
            Exit::To(at as Node + 1)
        } else {
            match &block.end {
                End::Jump { to, .. } => Exit::To(first[*to as usize]),
                End::Branch { guard, taken, fall, .. } => {
                    let (taken, fall) = (first[*taken as usize], first[*fall as usize]);
                    match taken == fall {
                        true => Exit::To(fall),
                        false => {
                            let [by_taken, by_fall, parted] =
                                seen.map_or([true; 3], |seen| seen.at(number, &block.end));
                            let own = misses.then_some(at as Node + 1);
                            Exit::Branch {
                                guard: *guard,
                                taken: own.filter(|_| !by_taken).unwrap_or(taken),
                                fall: own.filter(|_| !by_fall).unwrap_or(fall),
                                at: own,
                                divides: parted || own.is_none(),
                            }
                        }
                    }
                }
                End::Indexed { targets, .. } => {
                    indexed.extend(targets.iter().map(|&to| first[to as usize]));
                    Exit::None
                }
                End::Stop => Exit::None,
            }
        };
        units[at].exit = exit;
    }
    for to in indexed {
        units[to as usize].entry = true;
    }
    // Lanes come back from where no code is made.
    for (block, _) in body.blocks.iter().zip(warm).filter(|(_, warm)| !**warm) {
        block
            .end
            .successors(|to| units[first[to as usize] as usize].entry = true);
    }
    Ok(units)
}
