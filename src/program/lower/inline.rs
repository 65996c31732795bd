//! Calls of functions whose text is known become that text: their arguments and results are registers then instead of bytes in a frame, and no
//! tier has to leave its code for them.
//!
//! A function comes in as it is after the passes that look at it alone ([`passes::begin`]), so that products meet no sums of its callers. What
//! reads and writes parameters and results in no other way than whole and directly does it with registers; the rest lies in
//! the callee's frame, which begins at the end of the caller's. Where a block's text comes from stays with it ([`Body::inlined`]):
//! reports name functions and calls as if they had been made.

mod indirect;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use self::indirect::Questions;
use super::{Part, part};
use crate::isa::Compute;
use crate::isa::lanes::Width;
use crate::program::ir::{
    Address, Block, BlockId, Body, Callee, Element, End, Guard, Initial, Inlined, Inst, Op, Ordering, Reach, Reg,
    Register, Space, Special,
};
use crate::program::layout::{self, Place};
use crate::program::module::Module;
use crate::program::passes;
use crate::ptx::ast::Span;

/// A function of more instructions stays a call.
const MOST: usize = 800;

/// So many instructions may come into one body.
const MOST_ALL: usize = 2_500;

/// Calls within calls that are followed.
const DEEPEST: usize = 16;

/// Functions that are asked for at a call through an address; where more would fit it, none is.
const MOST_ASKED: usize = 6;

/// Functions that one may reach by calls: of others it is not looked for whether they come back to themselves.
const MOST_REACHED: usize = 64;

/// Inlines what it may of what function number `function` calls.
pub(super) fn run(module: &Module, function: u32, caller: &mut Part) {
    let mut inliner = Inliner {
        module,
        known: HashMap::new(),
        path: Vec::new(),
    };
    inliner.inline(function, caller);
}

struct Inliner<'m> {
    module: &'m Module,
    /// Functions that have been looked at, if they may be inlined.
    known: HashMap<u32, Option<Rc<Part>>>,
    /// Functions that are on their way.
    path: Vec<u32>,
}

impl Inliner<'_> {
    fn inline(&mut self, function: u32, caller: &mut Part) {
        if caller.callees.is_empty() && !caller.calls_indirectly || caller.is_old {
            return;
        }
        self.path.push(function);
        let frame = layout::round_up(caller.frame.size, caller.frame.align.max(16));
        let mut room = MOST_ALL;
        let mut sequence = Vec::new();
        let mut left = Vec::new();
        for block in std::mem::take(&mut caller.order) {
            let whole = &mut caller.body.blocks[block as usize];
            let (insts, end) = (
                std::mem::take(&mut whole.insts),
                std::mem::replace(&mut whole.end, End::Stop),
            );
            let mut block = block;
            sequence.push(block);
            for inst in insts {
                let candidates = self.candidates(&inst, room);
                if !candidates.is_empty()
                    && let Some(mut questions) = Questions::begin(&mut caller.body, &inst, block, &mut sequence)
                {
                    for (function, part) in candidates {
                        room -= part.size();
                        left.extend(&part.callees);
                        let frame = layout::round_up(frame, part.frame.align);
                        let which = (function, self.module.function_address(function));
                        let (block, call) = questions.ask(&mut caller.body, which, &mut sequence);
                        let site = Site { function, block, frame };
                        let last = site.inline(call, caller, &part, &mut sequence);
                        questions.answered(&mut caller.body, last, &mut sequence);
                    }
                    block = questions.end(&mut caller.body);
                    sequence.push(block);
                    continue;
                }
                let part = match callee_of(&inst) {
                    None => None,
                    Some(callee) => match self.part_of(callee).filter(|part| part.size() <= room) {
                        Some(part) => Some((callee, part)),
                        None => {
                            left.push(callee);
                            None
                        }
                    },
                };
                let Some((function, part)) = part else {
                    caller.body.blocks[block as usize].insts.push(inst);
                    continue;
                };
                room -= part.size();
                left.extend(&part.callees);
                let frame = layout::round_up(frame, part.frame.align);
                let site = Site { function, block, frame };
                block = site.inline(inst, caller, &part, &mut sequence);
                sequence.push(block);
            }
            caller.body.blocks[block as usize].end = end;
        }
        self.path.pop();
        for (place, &block) in sequence.iter().enumerate() {
            // Room between neighbours for made-up blocks.
            caller.body.blocks[block as usize].place = 16 * (place as u64 + 1);
        }
        left.sort_unstable();
        left.dedup();
        caller.callees = left;
        caller.order = match caller.body.inlined.is_empty() {
            true => sequence,
            false => passes::order(&mut caller.body),
        };
    }

    /// The functions that a call through an address may reach and whose text may take its place, which is at most so long. None: it stays as it is.
    fn candidates(&mut self, inst: &Inst, room: usize) -> Vec<(u32, Rc<Part>)> {
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
        for &function in module.address_taken() {
            let Some(part) = self.part_of(function).filter(|part| fit(part)) else {
                continue;
            };
            if part.size() > left || found.len() == MOST_ASKED {
                return Vec::new();
            }
            left -= part.size();
            found.push((function, part));
        }
        found
    }

    fn part_of(&mut self, function: u32) -> Option<Rc<Part>> {
        if self.path.contains(&function) || self.path.len() > DEEPEST {
            return None;
        }
        if let Some(known) = self.known.get(&function) {
            return known.clone();
        }
        let found = self.make(function).map(Rc::new);
        self.known.insert(function, found.clone());
        found
    }

    fn make(&mut self, function: u32) -> Option<Part> {
        let (_, definition) = self.module.definition(function)?;
        let is_plain = !definition.entry && definition.body.is_some() && !layout::is_open(&definition.params);
        if !is_plain || self.calls_itself(function) {
            return None;
        }
        let mut part = part(self.module, function).ok()?;
        if part.size() > MOST || !may_be(&part) {
            return None;
        }
        self.inline(function, &mut part);
        (part.size() <= MOST).then_some(part)
    }

    /// Whether a function may come to be called by what it calls, which is so much that nobody looks through all of it.
    fn calls_itself(&self, function: u32) -> bool {
        let mut seen = HashSet::new();
        let mut work = vec![function];
        while let Some(next) = work.pop() {
            for &callee in &self.module.references(next).callees {
                if callee == function || seen.len() > MOST_REACHED {
                    return true;
                }
                if seen.insert(callee) {
                    work.push(callee);
                }
            }
        }
        false
    }
}

/// Whom it calls, if that is known.
fn callee_of(inst: &Inst) -> Option<u32> {
    let Op::Call { callee, .. } = &inst.op else { return None };
    let Callee::Direct(callee) = *callee else { return None };
    Some(callee)
}

/// Whether a function may be inlined: what it does with its frame is known.
fn may_be(part: &Part) -> bool {
    !part.is_old
        && part.insts().all(|inst| {
            if let Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } | Op::Call { .. } = inst.op {
                return true;
            }
            let effects = inst.op.effects();
            let is_local = |reach: Option<Reach>| reach == Some(Reach::Space(Space::Local));
            let is_frame = effects.frame || is_local(effects.reads) || is_local(effects.writes);
            !is_frame && !matches!(inst.op, Op::Syscall { .. })
        })
}

/// Bytes of a frame that are always read or written as a whole.
#[derive(Clone, Copy, PartialEq)]
struct Piece {
    offset: u32,
    element: Element,
    width: Width,
}

impl Piece {
    fn place(&self) -> Place {
        Place {
            offset: self.offset,
            bytes: u32::from(self.element.bytes),
        }
    }
}

fn within(inner: Place, outer: Place) -> bool {
    outer.offset <= inner.offset && inner.offset.saturating_add(inner.bytes) <= outer.offset + outer.bytes
}

/// What an access without a register is to the frame: each of its elements, and whether it is a store.
fn pieces<'a>(body: &'a Body, op: &'a Op) -> Option<(impl Iterator<Item = (Piece, Option<Reg>)> + 'a, bool)> {
    let (address, element, registers, is_store): (_, _, Vec<Option<Reg>>, _) = if let Op::Load {
        address,
        element,
        ordering: Ordering::Weak,
        dst,
        ..
    } = op
    {
        (address, *element, dst.to_vec(), false)
    } else if let Op::Store {
        address,
        element,
        ordering: Ordering::Weak,
        src,
        ..
    } = op
    {
        (address, *element, src.iter().copied().map(Some).collect(), true)
    } else {
        return None;
    };
    let offset = address.in_frame()?;
    let pieces = (0..).zip(registers).map(move |(index, register)| {
        let width = register.map_or(Width::B32, |reg| body.registers[reg.number as usize].width);
        let offset = offset.saturating_add(index * u32::from(element.bytes));
        let piece = Piece { offset, element, width };
        (piece, register)
    });
    Some((pieces, is_store))
}

/// The pieces of which a parameter or result consists; `None`: something else is done with it.
fn pieces_of(part: &Part, place: Place, stores: bool) -> Option<Vec<Piece>> {
    let mut found: Vec<Piece> = Vec::new();
    for inst in part.insts() {
        if let Some((pieces, is_store)) = pieces(&part.body, &inst.op) {
            for (piece, register) in pieces {
                if !piece.place().meets(place) {
                    continue;
                }
                if is_store != stores || !within(piece.place(), place) {
                    return None;
                }
                if register.is_none() || found.contains(&piece) {
                    continue;
                }
                // What is stored in one way alone is one register.
                if stores && found.iter().any(|other| other.place().meets(piece.place())) {
                    return None;
                }
                found.push(piece);
            }
            continue;
        }
        let touches = |offset: u32, bytes: u32| Place { offset, bytes }.meets(place);
        let mut is_touched = false;
        if let Op::FrameAddress { offset, .. } = inst.op {
            is_touched = touches(offset, 1);
        }
        if let Some((address, bytes)) = inst.op.direct_access() {
            is_touched = touches(address, bytes);
        }
        if let Op::Call { args, results, .. } = &inst.op {
            is_touched = args.iter().any(|arg| touches(arg.from, arg.bytes))
                || results.iter().any(|result| touches(result.to, result.bytes));
        }
        if is_touched {
            return None;
        }
    }
    Some(found)
}

/// Where a call is replaced.
struct Site {
    function: u32,
    /// What stands before the call.
    block: BlockId,
    /// Where the callee's frame begins in the caller's.
    frame: u32,
}

/// The registers that stand for pieces of a callee's parameters and results.
type Registers = Vec<(Piece, Register)>;

impl Site {
    /// Puts the callee's blocks behind a block, and gives the one that goes on behind them. What has got its place comes into `sequence`.
    fn inline(&self, call: Inst, caller: &mut Part, callee: &Part, sequence: &mut Vec<BlockId>) -> BlockId {
        let Inst {
            guard,
            op: Op::Call { args, results, .. },
            span,
            line,
        } = call
        else {
            unreachable!("a call is inlined");
        };
        let origin = caller.body.blocks[self.block as usize].inlined;
        let after = caller.body.blocks.len() as BlockId;
        caller.body.blocks.push(Block {
            insts: Vec::new(),
            end: End::Stop,
            place: 0,
            inlined: origin,
        });
        let inlined = caller.body.inlined.len() as u32;
        caller.body.inlined.push(Inlined {
            function: self.function,
            source: callee.source.clone(),
            call: span,
            within: origin,
        });
        let nested = callee.body.inlined.iter().map(|nested| Inlined {
            within: nested.within + inlined + 1,
            ..nested.clone()
        });
        caller.body.inlined.extend(nested);

        let fill = Fill { span, line };
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        let (mut taken, mut given): (Registers, Registers) = Default::default();
        for arg in &args {
            let place = place_at(&callee.signature.params, arg.to, arg.bytes);
            match pieces_of(callee, place, false) {
                Some(pieces) => {
                    for piece in pieces {
                        let register = caller.body.register(piece.width);
                        let from = arg.from + (piece.offset - arg.to);
                        before.push(fill.load(&caller.body, (None, register), from, piece.element));
                        taken.push((piece, register));
                    }
                }
                None => fill.copy(
                    &mut caller.body,
                    (None, &mut before),
                    arg.from,
                    self.frame + arg.to,
                    arg.bytes,
                ),
            }
        }
        for result in &results {
            let place = place_at(&callee.signature.returns, result.from, result.bytes);
            match pieces_of(callee, place, true) {
                Some(pieces) => {
                    for piece in pieces {
                        let register = caller.body.register(piece.width);
                        let to = result.to + (piece.offset - result.from);
                        behind.push(fill.store(&caller.body, (guard, register), to, piece.element));
                        given.push((piece, register));
                    }
                }
                None => fill.copy(
                    &mut caller.body,
                    (guard, &mut behind),
                    self.frame + result.from,
                    result.to,
                    result.bytes,
                ),
            }
        }
        let copied = Copied {
            site: self,
            callee,
            registers: self.registers(caller, callee),
            blocks: caller.body.blocks.len() as BlockId,
            inlined: inlined + 1,
            after,
            is_kernel: caller.is_kernel,
            taken,
            given,
        };
        // Those of a block that returns in its midst come behind it.
        let first = copied.blocks;
        let mut numbers = HashMap::new();
        for (index, &block) in callee.order.iter().enumerate() {
            numbers.insert(block, first + index as BlockId);
        }
        caller.body.blocks.extend(callee.order.iter().map(|_| Block {
            insts: Vec::new(),
            end: End::Stop,
            place: 0,
            inlined: 0,
        }));
        for &block in &callee.order {
            copied.block(&mut caller.body, block, &numbers, sequence);
        }
        caller.absorb(callee, self.frame);
        let entry = numbers[&callee.order[0]];
        let block = &mut caller.body.blocks[self.block as usize];
        block.insts.append(&mut before);
        block.end = match guard {
            None => End::Jump { to: entry, span },
            Some(guard) => End::Branch {
                guard,
                taken: entry,
                fall: after,
                span,
            },
        };
        caller.body.blocks[after as usize].insts = behind;
        after
    }

    /// What the callee's registers are called in the caller.
    fn registers(&self, caller: &mut Part, callee: &Part) -> Vec<Register> {
        let shared = &caller.shared.offsets;
        let body = &mut caller.body;
        let map = callee.body.registers.iter().map(|info| match info.initial {
            Some(Initial::Special(Special::SharedBase(index))) if caller.is_kernel => {
                let at = shared.binary_search_by_key(&index, |&(i, _)| i);
                let start = at.map_or(Special::SharedBase(index), |at| {
                    Special::SharedAddress(shared[at].1 as i32)
                });
                body.initial(info.width, Initial::Special(start))
            }
            Some(initial) => body.initial(info.width, initial),
            None => body.register(info.width),
        });
        map.collect()
    }
}

/// The whole of the parameter or result that begins there.
fn place_at(places: &[Place], offset: u32, bytes: u32) -> Place {
    let found = places
        .iter()
        .copied()
        .find(|place| place.offset == offset && place.bytes >= bytes);
    found.unwrap_or(Place { offset, bytes })
}

/// The moves of arguments and results, which belong to the call.
struct Fill {
    span: Span,
    line: Option<(u32, u32)>,
}

impl Fill {
    fn inst(&self, guard: Option<Guard>, op: Op) -> Inst {
        Inst {
            guard,
            op,
            span: self.span,
            line: self.line,
        }
    }

    fn load(&self, body: &Body, (guard, to): (Option<Guard>, Register), from: u32, element: Element) -> Inst {
        self.inst(
            guard,
            Op::Load {
                address: frame(from),
                element,
                ordering: Ordering::Weak,
                scope: None,
                dst: Box::new([Some(body.reg(to))]),
            },
        )
    }

    fn store(&self, body: &Body, (guard, from): (Option<Guard>, Register), to: u32, element: Element) -> Inst {
        self.inst(
            guard,
            Op::Store {
                address: frame(to),
                element,
                ordering: Ordering::Weak,
                scope: None,
                src: Box::new([body.reg(from)]),
            },
        )
    }

    /// Bytes from one place in the frame to another, as many at once as their alignment allows.
    fn copy(&self, body: &mut Body, (guard, insts): (Option<Guard>, &mut Vec<Inst>), from: u32, to: u32, bytes: u32) {
        let mut done = 0;
        while done < bytes {
            let most = 16.min(1 << (bytes - done).ilog2());
            let aligned = 1 << ((from + done) | (to + done) | 16).trailing_zeros();
            let (chunk, width) = match most.min(aligned) {
                1 => (1, Width::B16),
                2 => (2, Width::B16),
                4 => (4, Width::B32),
                8 => (8, Width::B64),
                _ => (16, Width::B128),
            };
            let element = Element {
                bytes: chunk,
                signed: false,
            };
            let register = body.register(width);
            insts.push(self.load(body, (None, register), from + done, element));
            insts.push(self.store(body, (guard, register), to + done, element));
            done += u32::from(chunk);
        }
    }
}

fn frame(offset: u32) -> Address<Reg> {
    Address {
        space: Space::Local,
        register: None,
        offset: i64::from(offset),
    }
}

/// A callee's code on its way into a caller.
struct Copied<'a> {
    site: &'a Site,
    callee: &'a Part,
    registers: Vec<Register>,
    /// The number of its first block.
    blocks: BlockId,
    /// Its own number among what is inlined.
    inlined: u32,
    after: BlockId,
    is_kernel: bool,
    taken: Registers,
    given: Registers,
}

impl Copied<'_> {
    fn block(
        &self,
        body: &mut Body,
        number: BlockId,
        numbers: &HashMap<BlockId, BlockId>,
        sequence: &mut Vec<BlockId>,
    ) {
        let from = &self.callee.body.blocks[number as usize];
        let inlined = from.inlined + self.inlined;
        let mut to = numbers[&number];
        sequence.push(to);
        let mut insts = Vec::with_capacity(from.insts.len());
        for inst in &from.insts {
            let Op::Return = inst.op else {
                self.inst(body, inst, &mut insts);
                continue;
            };
            let Some(guard) = inst.guard else {
                body.blocks[to as usize] = Block {
                    insts,
                    end: End::Jump {
                        to: self.after,
                        span: inst.span,
                    },
                    place: 0,
                    inlined,
                };
                return;
            };
            let fall = body.blocks.len() as BlockId;
            let guard = self.guard(guard);
            let end = End::Branch {
                guard,
                taken: self.after,
                fall,
                span: inst.span,
            };
            let insts = std::mem::take(&mut insts);
            let filled = Block {
                insts,
                end,
                place: 0,
                inlined,
            };
            body.blocks.push(Block {
                insts: Vec::new(),
                end: End::Stop,
                place: 0,
                inlined,
            });
            body.blocks[to as usize] = filled;
            to = fall;
            sequence.push(to);
        }
        let mut end = from.end.clone();
        if let Some(register) = end.register_mut() {
            *register = self.registers[*register as usize];
        }
        end.successors_mut(|to| *to = numbers[to]);
        body.blocks[to as usize] = Block {
            insts,
            end,
            place: 0,
            inlined,
        };
    }

    fn guard(&self, guard: Guard) -> Guard {
        let number = self.registers[guard.reg.number as usize];
        Guard {
            reg: Reg { number, ..guard.reg },
            ..guard
        }
    }

    fn inst(&self, body: &mut Body, inst: &Inst, insts: &mut Vec<Inst>) {
        // A piece that is a register is copied.
        if let Some((pieces, is_store)) = pieces(&self.callee.body, &inst.op) {
            let known = if is_store { &self.given } else { &self.taken };
            let moved: Option<Vec<(Register, Register)>> = pieces
                .filter_map(|(piece, register)| Some((piece, register?)))
                .map(|(piece, register)| {
                    let at = known.iter().find(|(other, _)| *other == piece)?.1;
                    let own = self.registers[register.number as usize];
                    Some(if is_store { (at, own) } else { (own, at) })
                })
                .collect();
            if let Some(moved) = moved.filter(|moved| !moved.is_empty()) {
                insts.extend(moved.into_iter().map(|(to, from)| Inst {
                    guard: inst.guard.map(|guard| self.guard(guard)),
                    op: Op::compute(body, Compute::copy(body.registers[to as usize].width), &[to], &[from]),
                    ..*inst
                }));
                return;
            }
        }
        let mut inst = inst.clone();
        inst.regs_mut(|reg, _| reg.number = self.registers[reg.number as usize]);
        let by = self.site.frame;
        if let Op::Load { address, .. } | Op::Store { address, .. } | Op::Atomic { address, .. } = &mut inst.op
            && address.in_frame().is_some()
        {
            address.offset += i64::from(by);
        }
        if let Op::FrameAddress { offset, .. } = &mut inst.op {
            *offset = offset.saturating_add(by);
        }
        if let Op::Call { args, results, .. } = &mut inst.op {
            args.iter_mut().for_each(|arg| arg.from += by);
            results.iter_mut().for_each(|result| result.to += by);
        }
        // What does not change while a block runs is read once.
        if let Op::ReadSpecial { which, dst } = inst.op
            && self.is_kernel
            && !which.is_volatile()
        {
            let from = body.initial(dst.width, Initial::Special(which));
            inst.op = Op::compute(body, Compute::copy(dst.width), &[dst.number], &[from]);
        }
        insts.push(inst);
    }
}
