//! Kernels whose threads meet only as whole blocks, by barriers, and as whole warps. Most are of this kind, and for them order is a
//! matter of numbers: what a block did before its last barrier lies before all that its threads do now, what other blocks did
//! never does. So words need no sets of who touched them, and threads no clocks.

use std::collections::HashSet;

use crate::isa::joint::Joint;
use crate::isa::lanes::WARP;
use crate::program::{BarrierOp, Function, Op, Ordering, Value};
use crate::simt::Launch;

use super::block::Block;
use super::ledger::{Cell, Entry, Ledger, Others};
use super::shadow::Touched;

/// Whether the threads of a launch meet in no other way.
pub fn is_plain(launch: &Launch) -> bool {
    if launch.cluster.is_some() || launch.cooperative {
        return false;
    }
    let module = &launch.code.module;
    let mut known = HashSet::new();
    let mut open = vec![launch.kernel];
    while let Some(number) = open.pop() {
        if !known.insert(number) {
            continue;
        }
        let Some(Ok(function)) = module
            .functions
            .get(number as usize)
            .and_then(|entry| entry.lowered.get())
        else {
            return false;
        };
        if function.calls_indirectly || !function_is_plain(function) {
            return false;
        }
        open.extend(&function.callees);
    }
    true
}

fn function_is_plain(function: &Function) -> bool {
    let body = &function.body;
    body.blocks
        .iter()
        .flat_map(|block| &block.insts)
        .all(|inst| op_is_plain(&inst.op))
}

fn op_is_plain<R>(op: &Op<R>) -> bool {
    let is_whole = |members: &Value<R>| matches!(members, Value::Immediate(u32::MAX));
    let is_unordered = |ordering: &Ordering| match ordering {
        Ordering::Weak | Ordering::Volatile | Ordering::Relaxed => true,
        Ordering::Acquire | Ordering::Release | Ordering::AcqRel | Ordering::Sc => false,
    };
    match op {
        Op::Barrier { op, id, threads, .. } => {
            *op != BarrierOp::Arrive && threads.is_none() && matches!(id, Value::Immediate(_))
        }
        Op::WarpBarrier { members }
        | Op::Match { members, .. }
        | Op::Redux { members, .. }
        | Op::Elect { members, .. } => is_whole(members),
        Op::Shuffle { members, .. } | Op::Vote { members, .. } => members.as_ref().is_none_or(is_whole),
        Op::Fence { .. } => false,
        // What a strong read finds lies before whatever follows it, which a word without a set cannot tell.
        Op::Load { ordering, .. } => *ordering == Ordering::Weak,
        Op::Store { ordering, .. } | Op::Atomic { ordering, .. } => is_unordered(ordering),
        Op::Joint(joint) => matches!(joint.what, Joint::Matrix(_)),
        Op::Compute { .. }
        | Op::Shadow(_)
        | Op::CopyAsync { .. }
        | Op::CopyGroup(_)
        | Op::Texture(_)
        | Op::Surface(_)
        | Op::HandleQuery { .. }
        | Op::IsHandle { .. }
        | Op::Activemask { .. }
        | Op::Call { .. }
        | Op::Syscall { .. }
        | Op::Return
        | Op::Exit
        | Op::Trap
        | Op::Breakpoint
        | Op::Nanosleep
        | Op::ReadSpecial { .. }
        | Op::FrameAddress { .. }
        | Op::ConvertAddress { .. }
        | Op::IsSpace { .. }
        | Op::Within(_)
        | Op::Alloca { .. }
        | Op::StackSave { .. }
        | Op::StackRestore { .. } => true,
    }
}

/// How an entry's accesses lie to somebody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// All of them before.
    Before,
    /// Of his warp, whose lanes have not met since.
    Warp,
    /// Of other warps of his block, since its last barrier.
    Block,
    /// Of another block.
    Elsewhere,
    /// Made by an asynchronous operation.
    Operation,
}

/// Who looks; what was found out of the last entry is kept, since neighbours mostly have the same.
pub struct Looker<'a> {
    pub ledger: &'a Ledger,
    pub block: &'a Block,
    pub warp: usize,
    pub entry: u32,
    pub operation: Option<u32>,
    last: [(u32, Verdict); MEMORY],
}

/// Verdicts that are remembered, by the entry's number.
const MEMORY: usize = 8;

impl<'a> Looker<'a> {
    pub fn new(ledger: &'a Ledger, block: &'a Block, warp: usize, entry: u32, operation: Option<u32>) -> Looker<'a> {
        Looker {
            ledger,
            block,
            warp,
            entry,
            operation,
            last: [(u32::MAX, Verdict::Before); MEMORY],
        }
    }

    #[inline]
    fn verdict(&mut self, number: u32) -> Verdict {
        let (last, verdict) = self.last[number as usize % MEMORY];
        if last == number {
            return verdict;
        }
        let verdict = self.find(self.ledger.entry(number));
        self.last[number as usize % MEMORY] = (number, verdict);
        verdict
    }

    fn find(&self, entry: &Entry) -> Verdict {
        if entry.operation.is_some() {
            return match entry.operation == self.operation {
                true => Verdict::Before,
                false => Verdict::Operation,
            };
        }
        if entry.block != self.block.number {
            Verdict::Elsewhere
        } else if entry.epoch < self.block.epoch {
            Verdict::Before
        } else if entry.warp as usize != self.warp {
            Verdict::Block
        } else {
            // Warps meet as a whole, so that a lane knows the same of all others.
            match self.block.warps[self.warp].among.get(0, 1) >= entry.step {
                true => Verdict::Before,
                false => Verdict::Warp,
            }
        }
    }

    /// Whether all that a cell stands for lies before what these lanes do.
    #[inline]
    pub fn is_after(&mut self, cell: Cell, lanes: u32) -> bool {
        let Some((number, lane, others)) = cell.parts() else {
            return true;
        };
        let verdict = self.verdict(number);
        let is_own = lanes == 1 << lane && others == Others::None;
        match (others, verdict) {
            (Others::Blocks, _) | (_, Verdict::Elsewhere | Verdict::Block) => false,
            (_, Verdict::Before) => true,
            (Others::Block, Verdict::Warp) => false,
            // What all lanes know of each other was looked at for the verdict.
            (Others::None | Others::Warp, Verdict::Warp) => is_own,
            (_, Verdict::Operation) => {
                let entry = self.ledger.entry(number);
                each(lanes).all(|own| self.is_after_operation(entry, lane, own))
            }
        }
    }

    fn is_after_operation(&self, entry: &Entry, lane: usize, own: usize) -> bool {
        let operation = entry.operation.map(|number| self.ledger.operation(number));
        let Some((step, epoch)) = operation.and_then(|operation| operation.seen_by(lane, entry.kind.direction)) else {
            return false;
        };
        if entry.block != self.block.number {
            return false;
        }
        epoch < self.block.epoch
            || entry.warp as usize == self.warp
                && (lane == own || self.block.warps[self.warp].among.get(own, lane) >= step)
    }

    /// Who else there is when `more`, which has not seen the end of `cell`, comes to it.
    pub fn others(&mut self, cell: Cell, more: u32) -> Others {
        let Some((number, _, others)) = cell.parts() else {
            return Others::None;
        };
        match self.verdict(number) {
            Verdict::Warp => return others.max(Others::Warp),
            Verdict::Block => return others.max(Others::Block),
            Verdict::Elsewhere => return Others::Blocks,
            Verdict::Before | Verdict::Operation => {}
        }
        let (old, new) = (self.ledger.entry(number), self.ledger.entry(more));
        let now = match () {
            () if old.block != new.block => Others::Blocks,
            () if old.warp != new.warp || old.epoch != new.epoch => Others::Block,
            () => Others::Warp,
        };
        now.max(others)
    }

    /// Notes that lanes have read a word.
    #[inline]
    pub fn read(&mut self, known: &mut Touched, lanes: u32) {
        let [one, two] = known.reads;
        let own = Cell::one(self.entry, lanes.trailing_zeros() as usize, Others::None);
        let rest = lanes & (lanes - 1);
        if rest == 0 && one == own && two.is_empty() {
            return;
        }
        let is_after_one = self.is_after(one, lanes);
        if !is_after_one && self.is_told(two) {
            return;
        }
        if is_after_one && self.is_after(two, lanes) {
            let second = match rest {
                0 => Cell::EMPTY,
                _ => Cell::one(self.entry, rest.trailing_zeros() as usize, more_than_one(rest)),
            };
            known.reads = [own, second];
            return;
        }
        if self.are_of_other_blocks(one, two) {
            // Whoever writes is in no order with one of them.
            return;
        }
        self.add_read(known, own);
        if rest != 0 {
            self.add_read(
                known,
                Cell::one(self.entry, rest.trailing_zeros() as usize, more_than_one(rest)),
            );
        }
    }

    /// Whether a cell stands for more threads of all this block, or of all this warp, that have read as late as this one.
    #[inline]
    fn is_told(&mut self, cell: Cell) -> bool {
        match cell.parts() {
            Some((number, _, Others::Block)) => {
                matches!(self.verdict(number), Verdict::Block | Verdict::Warp)
            }
            Some((number, _, Others::Warp)) => self.verdict(number) == Verdict::Warp,
            Some((.., Others::None | Others::Blocks)) | None => false,
        }
    }

    /// Whether two blocks have read, neither of which is this one.
    fn are_of_other_blocks(&mut self, one: Cell, two: Cell) -> bool {
        let (Some((one, ..)), Some((two, ..))) = (one.parts(), two.parts()) else {
            return false;
        };
        self.verdict(one) == Verdict::Elsewhere
            && self.verdict(two) == Verdict::Elsewhere
            && self.ledger.entry(one).block != self.ledger.entry(two).block
    }

    /// One more who comes to a word that has readers. Where two blocks have read, one of each is named; else two threads.
    pub fn add_read(&mut self, known: &mut Touched, own: Cell) {
        let Some((number, lane, others)) = own.parts() else {
            return;
        };
        if let Some(free) = known.reads.iter().position(|cell| cell.is_empty()) {
            if free == 1 && self.is_same_thread(known.reads[0], own) {
                known.reads[0] = self.joined(known.reads[0], own);
            } else {
                known.reads[free] = own;
            }
            return;
        }
        // Whoever comes after this one comes after those, too.
        if others == Others::None
            && let Some(before) = (0..2).find(|&at| self.is_after(known.reads[at], 1 << lane))
        {
            known.reads[before] = own;
            return;
        }
        if let Some(same) = (0..2).find(|&at| self.is_same_thread(known.reads[at], own)) {
            known.reads[same] = self.joined(known.reads[same], own);
            return;
        }
        let block = |cell: Cell| cell.parts().map(|(number, ..)| self.ledger.entry(number).block);
        let here = Some(self.ledger.entry(number).block);
        let [one, two] = known.reads;
        match (block(one), block(two)) {
            (first, second) if first == second && here == first => known.reads[1] = self.joined(two, own),
            (first, second) if first == second => known.reads = [self.joined(one, two), own],
            (first, _) if here == first => known.reads[0] = self.joined(one, own),
            (_, second) if here == second => known.reads[1] = self.joined(two, own),
            _ => {}
        }
    }

    /// The later of two cells of one block, which then stands for the other as well.
    fn joined(&self, old: Cell, new: Cell) -> Cell {
        let (Some((first, lane, before)), Some((second, same, now))) = (old.parts(), new.parts()) else {
            return new;
        };
        let (first, second) = (self.ledger.entry(first), self.ledger.entry(second));
        let between = match () {
            () if first.block != second.block => Others::Blocks,
            () if first.warp != second.warp || first.epoch != second.epoch => Others::Block,
            () if lane == same => Others::None,
            () => Others::Warp,
        };
        new.with(before.max(now).max(between))
    }

    /// Whether a cell names the thread that looks.
    pub fn is_own(&self, cell: Cell, lanes: u32) -> bool {
        cell.parts().is_some_and(|(number, lane, _)| {
            let entry = self.ledger.entry(number);
            lanes == 1 << lane && (entry.block, entry.warp as usize) == (self.block.number, self.warp)
        })
    }

    /// Whether two cells name one thread.
    fn is_same_thread(&self, one: Cell, other: Cell) -> bool {
        match (one.parts(), other.parts()) {
            (Some((_, lane, _)), Some((_, same, _))) if lane != same => false,
            (Some((one, ..)), Some((other, ..))) if one == other => true,
            (Some((one, lane, _)), Some((other, same, _))) => {
                let (one, other) = (self.ledger.entry(one), self.ledger.entry(other));
                lane == same && (one.block, one.warp, one.operation) == (other.block, other.warp, other.operation)
            }
            (None, _) | (_, None) => false,
        }
    }
}

/// Who else there is, besides the first of these lanes.
fn more_than_one(lanes: u32) -> Others {
    match lanes & (lanes - 1) {
        0 => Others::None,
        _ => Others::Warp,
    }
}

fn each(mask: u32) -> impl Iterator<Item = usize> {
    (0..WARP).filter(move |lane| mask >> lane & 1 == 1)
}
