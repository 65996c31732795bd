//! What is known of each value: the same in all threads of a block, or following `%tid.x`; multiples of what; how large.
//!
//! A register written once takes its facts from its operation, block after block in the order of layout. One written
//! several times is uniform if all that it is given is, and if no thread can be somewhere else meanwhile: none of its
//! writes lies where control has diverged, that is, behind a branch on a value that is not uniform and before the place
//! where the branch's sides meet for good. Everything starts as uniform and falls until nothing changes.

use std::collections::HashMap;

use super::definitions::{Definition, definitions};
use super::dominators::PostDominators;
use crate::isa::lanes::Width;
use crate::program::ir::facts::{Facts, Shape};
use crate::program::ir::{Bitwise, BlockId, Body, End, Initial, Inst, Linear, Op, Register, Role, Space, Special};

/// Steps that following diverged control may take for a branch; where that is too few, all blocks count as diverged.
const PATIENCE: usize = 1 << 22;

/// Rounds until nothing changes; programs of people need a handful.
const ROUNDS: usize = 64;

/// Fills in `body.facts`.
pub fn run(body: &mut Body) {
    let order: Vec<BlockId> = (0..body.blocks.len() as BlockId).collect();
    let definitions = definitions(body, &order);
    let shapes = Shapes::of(body, &definitions);
    let mut facts = sizes(body, &definitions);
    for (facts, shape) in facts.iter_mut().zip(shapes) {
        facts.shape = shape;
    }
    body.facts = facts;
}

/// What multiples registers hold, and how large they are; nothing is said of their shapes.
pub fn sizes(body: &Body, definitions: &[Definition]) -> Vec<Facts> {
    let mut facts = vec![Facts::default(); body.registers.len()];
    for (number, info) in body.registers.iter().enumerate() {
        if let Some(initial) = info.initial {
            (facts[number].align, facts[number].range) = size_of_initial(initial, info.width);
        }
    }
    for inst in body.prologue.iter().chain(body.insts()) {
        if let Op::Compute { op, dst, src } = &inst.op
            && dst.len() == 1
            && inst.guard.is_none()
            && once(body, definitions, dst[0].number)
        {
            let sources: Vec<Facts> = src.iter().map(|reg| facts[reg.number as usize]).collect();
            let (align, range) = match (op.linear(), op.bitwise()) {
                (Some(linear), _) => size_of(linear, dst[0].width, &sources),
                (None, Some(bitwise)) => size_of_bits(bitwise, dst[0].width, &sources),
                (None, None) => continue,
            };
            let known = &mut facts[dst[0].number as usize];
            (known.align, known.range) = (align, range);
        }
    }
    facts
}

/// Whether all that a register ever holds is what one operation gives it.
fn once(body: &Body, definitions: &[Definition], register: Register) -> bool {
    body.registers[register as usize].hoisted || matches!(definitions[register as usize], Definition::One(..))
}

// ---- shapes ---------------------------------------------------------------------------------------------------------

struct Shapes<'a> {
    body: &'a Body,
    once: Vec<bool>,
    shape: Vec<Shape>,
    /// Blocks in which threads may be while others of their block are elsewhere.
    diverged: Vec<bool>,
    meet: PostDominators,
}

impl Shapes<'_> {
    fn of(body: &Body, definitions: &[Definition]) -> Vec<Shape> {
        let registers = 0..body.registers.len() as Register;
        let mut shapes = Shapes {
            body,
            once: registers.map(|register| once(body, definitions, register)).collect(),
            shape: vec![Shape::Uniform; body.registers.len()],
            diverged: vec![false; body.blocks.len()],
            meet: PostDominators::of(body),
        };
        for (number, info) in body.registers.iter().enumerate() {
            if let Some(initial) = info.initial {
                shapes.shape[number] = shape_of_initial(initial);
            }
        }
        let mut branched = vec![false; body.blocks.len()];
        for _ in 0..ROUNDS {
            if !(shapes.round() | shapes.diverge(&mut branched)) {
                return shapes.shape;
            }
        }
        // A text made to take long: nothing is claimed.
        vec![Shape::Varying; body.registers.len()]
    }

    /// Lets every register fall as far as its writes ask; true if one did.
    fn round(&mut self) -> bool {
        let mut changed = false;
        for inst in &self.body.prologue {
            changed |= self.inst(inst, false);
        }
        for (number, block) in self.body.blocks.iter().enumerate() {
            let diverged = self.diverged[number];
            for inst in &block.insts {
                changed |= self.inst(inst, diverged);
            }
        }
        changed
    }

    fn inst(&mut self, inst: &Inst, diverged: bool) -> bool {
        let given = self.given(inst);
        let guarded = inst.guard.is_some();
        let mut changed = false;
        inst.op.regs(|reg, role| {
            if role != Role::Def {
                return;
            }
            let register = reg.number as usize;
            let new = match (self.once[register] && !guarded, given) {
                // Once and for all what its operation gives.
                (true, given) => given,
                // Several values: which one a thread has depends on where it has been.
                (false, Shape::Uniform) if !diverged && self.uniform_guard(inst) => Shape::Uniform,
                (false, _) => Shape::Varying,
            };
            let fallen = fall(self.shape[register], new);
            changed |= fallen != self.shape[register];
            self.shape[register] = fallen;
        });
        changed
    }

    fn uniform_guard(&self, inst: &Inst) -> bool {
        inst.guard
            .is_none_or(|guard| self.shape[guard.reg.number as usize] == Shape::Uniform)
    }

    /// The shape of what an operation gives.
    fn given(&self, inst: &Inst) -> Shape {
        let of = |register: Register| self.shape[register as usize];
        match &inst.op {
            Op::Compute { op, src, .. } => {
                if src.iter().all(|reg| of(reg.number) == Shape::Uniform) {
                    return Shape::Uniform;
                }
                let Some(linear) = op.linear() else {
                    return Shape::Varying;
                };
                let stride = |at: usize| match of(src[at].number) {
                    Shape::Uniform => Some(0),
                    Shape::Affine { stride } => Some(stride),
                    Shape::Varying => None,
                };
                let constant = |at: usize| self.body.constant(src[at].number).map(|bits| bits as u64);
                let stride = match linear {
                    // A sum that wraps around between two threads is no line any more once it is wider.
                    Linear::Widen { .. } | Linear::MulWide { .. } | Linear::MadWide { .. } => None,
                    Linear::Copy
                    | Linear::Narrow
                    | Linear::Add
                    | Linear::Sub
                    | Linear::Mul
                    | Linear::Mad
                    | Linear::Shl
                    | Linear::Compare { .. } => linear.stride(stride, constant),
                };
                let narrow = inst_width(inst) == Width::B32;
                match stride {
                    Some(stride) if narrow => Shape::Affine {
                        stride: u64::from(stride as u32),
                    },
                    Some(stride) => Shape::Affine { stride },
                    None => Shape::Varying,
                }
            }
            // Constants of the launch, by an address that all threads share.
            Op::Load { address, .. }
                if matches!(address.space, Space::Const | Space::Param)
                    && address.register.is_none_or(|reg| of(reg.number) == Shape::Uniform) =>
            {
                Shape::Uniform
            }
            Op::ReadSpecial { which, .. } => match which.is_volatile() {
                true => Shape::Varying,
                false => shape_of_initial(Initial::Special(*which)),
            },
            Op::IsSpace { src, .. } if of(src.number) == Shape::Uniform => Shape::Uniform,
            Op::ConvertAddress { space, src, .. }
                if !matches!(space, Space::Local) && of(src.number) == Shape::Uniform =>
            {
                Shape::Uniform
            }
            Op::IsSpace { .. }
            | Op::Within(_)
            | Op::ConvertAddress { .. }
            | Op::Load { .. }
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
            | Op::Shuffle { .. }
            | Op::Vote { .. }
            | Op::Match { .. }
            | Op::Redux { .. }
            | Op::Activemask { .. }
            | Op::Elect { .. }
            | Op::FrameAddress { .. }
            | Op::Nanosleep
            | Op::Alloca { .. }
            | Op::StackSave { .. }
            | Op::StackRestore { .. }
            | Op::CopyAsync { .. }
            | Op::CopyGroup(_)
            | Op::Joint(_)
            | Op::Shadow(_)
            | Op::Texture(_)
            | Op::Surface(_)
            | Op::HandleQuery { .. }
            | Op::IsHandle { .. }
            | Op::Syscall { .. } => Shape::Varying,
        }
    }

    /// Marks the blocks behind branches on values that have fallen; true if there are new ones.
    fn diverge(&mut self, branched: &mut [bool]) -> bool {
        let mut changed = false;
        let mut patience = PATIENCE;
        let body = self.body;
        for ((number, block), branched) in (0..).zip(&body.blocks).zip(branched) {
            let splits = match &block.end {
                End::Branch { guard, taken, fall, .. } => {
                    taken != fall && self.shape[guard.reg.number as usize] != Shape::Uniform
                }
                End::Indexed { index, .. } => self.shape[index.number as usize] != Shape::Uniform,
                End::Jump { .. } | End::Stop => false,
            };
            if !splits || std::mem::replace(branched, true) {
                continue;
            }
            changed |= self.flood(number, &mut patience);
        }
        changed
    }

    /// Marks what the sides of a branch reach before they meet. Sides that never meet again, as where some threads leave
    /// the kernel, need no marks: threads at the same place have come the same way.
    fn flood(&mut self, from: BlockId, patience: &mut usize) -> bool {
        let stop = self.meet.of_block(from);
        let mut sides: Vec<BlockId> = Vec::new();
        self.body.blocks[from as usize].end.successors(|to| {
            if Some(to) != stop && !sides.contains(&to) {
                sides.push(to);
            }
        });
        // By block: the side that reached it first.
        let mut reached: HashMap<BlockId, usize> = HashMap::new();
        let mut join = stop.is_some();
        for (side, &start) in sides.iter().enumerate() {
            let mut work = vec![start];
            while let Some(block) = work.pop() {
                if *patience == 0 {
                    self.diverged.fill(true);
                    return true;
                }
                *patience -= 1;
                match reached.get(&block) {
                    Some(&first) => {
                        join |= first != side;
                        continue;
                    }
                    None => reached.insert(block, side),
                };
                self.body.blocks[block as usize].end.successors(|to| {
                    if Some(to) != stop {
                        work.push(to);
                    }
                });
            }
        }
        let mut changed = false;
        for block in reached.into_keys().filter(|_| join) {
            changed |= !std::mem::replace(&mut self.diverged[block as usize], true);
        }
        changed
    }
}

fn inst_width(inst: &Inst) -> Width {
    let mut width = Width::Pred;
    inst.op.regs(|reg, role| {
        if role == Role::Def {
            width = reg.width;
        }
    });
    width
}

/// The stronger claim gives way.
fn fall(old: Shape, new: Shape) -> Shape {
    match (old, new) {
        (Shape::Uniform, new) => new,
        (old, new) if old == new => old,
        // Strides that a loop through operands changes again are no strides.
        (Shape::Affine { .. } | Shape::Varying, _) => Shape::Varying,
    }
}

fn shape_of_initial(initial: Initial) -> Shape {
    let special = match initial {
        Initial::Constant(_) | Initial::Param { .. } => return Shape::Uniform,
        Initial::Special(special) => special,
    };
    match special {
        Special::Tid(0) => Shape::Affine { stride: 1 },
        Special::Tid(_) => Shape::Affine { stride: 0 },
        Special::Ctaid(_)
        | Special::Smid
        | Special::ClusterId(_)
        | Special::ClusterCtaid(_)
        | Special::ClusterCtarank => Shape::Uniform,
        Special::Laneid
        | Special::Warpid
        | Special::LanemaskEq
        | Special::LanemaskLt
        | Special::LanemaskLe
        | Special::LanemaskGt
        | Special::LanemaskGe
        | Special::Clock
        | Special::ClockHi
        | Special::Clock64
        | Special::Globaltimer
        | Special::GlobaltimerLo
        | Special::GlobaltimerHi
        | Special::Pm(_)
        | Special::Pm64(_) => Shape::Varying,
        Special::Ntid(_)
        | Special::Nctaid(_)
        | Special::Nwarpid
        | Special::Nsmid
        | Special::Gridid
        | Special::CurrentGraphExec
        | Special::Envreg(_)
        | Special::DynamicSmemSize
        | Special::TotalSmemSize
        | Special::AggrSmemSize
        | Special::ReservedSmem(_)
        | Special::NclusterId(_)
        | Special::ClusterNctaid(_)
        | Special::ClusterNctarank
        | Special::IsExplicitCluster
        | Special::SharedBase(_)
        | Special::SharedAddress(_) => Shape::Uniform,
    }
}

// ---- alignment and range --------------------------------------------------------------------------------------------

type Size = (u8, Option<(u64, u64)>);

/// Bits of a register that something is claimed of.
fn bits_of(width: Width) -> Option<u32> {
    match width {
        Width::B32 => Some(32),
        Width::B64 => Some(64),
        Width::Pred | Width::B16 | Width::B128 => None,
    }
}

fn size_of_initial(initial: Initial, width: Width) -> Size {
    let Some(width) = bits_of(width) else {
        return (0, None);
    };
    match initial {
        Initial::Constant(bits) => {
            let bits = bits as u64;
            let align = bits.trailing_zeros().min(width);
            (align as u8, Some((bits, bits)))
        }
        // Which block of a cluster it is stands above these bits.
        Initial::Special(Special::SharedAddress(offset)) => (offset.trailing_zeros().min(24) as u8, None),
        Initial::Special(special) => (0, range_of_special(special)),
        Initial::Param { .. } => (0, None),
    }
}

/// Compute Capabilities: blocks of at most 1,024 threads, 64 in z; PTX ISA, Special Registers.
#[rustfmt::skip]
fn range_of_special(special: Special) -> Option<(u64, u64)> {
    use Special::*;
    match special {
        Tid(2) => Some((0, 63)),
        Tid(_) => Some((0, 1023)),
        Ntid(2) => Some((1, 64)),
        Ntid(_) => Some((1, 1024)),
        Ctaid(0) => Some((0, 0x7fff_fffe)),
        Ctaid(_) => Some((0, 65_534)),
        Nctaid(0) => Some((1, 0x7fff_ffff)),
        Nctaid(_) => Some((1, 65_535)),
        Laneid => Some((0, 31)),
        // Whatever is in them.
        Gridid | CurrentGraphExec | Envreg(_) | LanemaskEq | LanemaskLt | LanemaskLe | LanemaskGt | LanemaskGe | Clock
        | ClockHi | Clock64 | Globaltimer | GlobaltimerLo | GlobaltimerHi | Pm(_) | Pm64(_) => None,
        // No program was seen to gain by their limits.
        Nwarpid | Warpid | Nsmid | Smid | DynamicSmemSize | TotalSmemSize | AggrSmemSize | ReservedSmem(_)
        | NclusterId(_) | ClusterId(_) | ClusterNctaid(_) | ClusterCtaid(_) | ClusterNctarank | ClusterCtarank
        | IsExplicitCluster | SharedBase(_) | SharedAddress(_) => None,
    }
}

/// The same of two numbers' bits.
fn size_of_bits(bitwise: Bitwise, width: Width, src: &[Facts]) -> Size {
    let (a, b) = (src[0], src[1]);
    // The bits up to its highest.
    let all = |high: u64| u64::MAX.checked_shr(high.leading_zeros()).unwrap_or(0);
    match bitwise {
        Bitwise::And => {
            let high = [a.range, b.range].into_iter().flatten().map(|(_, high)| high).min();
            (a.align.max(b.align), high.map(|high| (0, high)))
        }
        Bitwise::Or => {
            let range = a.range.zip(b.range).map(|(a, b)| (a.0.max(b.0), all(a.1 | b.1)));
            (a.align.min(b.align), range)
        }
        Bitwise::ShiftRight { signed } => {
            // What is not negative is shifted the same way with its sign as without.
            let sign = 1 << (bits_of(width).unwrap_or(64) - 1);
            match (a.range.filter(|&(_, high)| !signed || high < sign), b.range) {
                (Some((low, high)), Some((by, same))) if by == same && by < 64 => (0, Some((low >> by, high >> by))),
                _ => (0, None),
            }
        }
    }
}

fn size_of(linear: Linear, width: Width, src: &[Facts]) -> Size {
    let Some(width) = bits_of(width) else {
        return (0, None);
    };
    let most = u64::MAX >> (64 - width);
    let within = |low: Option<u64>, high: Option<u64>| match (low, high) {
        (Some(low), Some(high)) if high <= most => Some((low, high)),
        _ => None,
    };
    let sum = |a: Size, b: Size| -> Size {
        let range = match (a.1, b.1) {
            (Some(a), Some(b)) => within(a.0.checked_add(b.0), a.1.checked_add(b.1)),
            _ => None,
        };
        (a.0.min(b.0), range)
    };
    let product = |a: Size, b: Size| -> Size {
        let range = match (a.1, b.1) {
            (Some(a), Some(b)) => within(a.0.checked_mul(b.0), a.1.checked_mul(b.1)),
            _ => None,
        };
        ((a.0 + b.0).min(width as u8), range)
    };
    // As signed numbers of 32 bits these are what they are as unsigned ones.
    let plain = |size: Size, signed: bool| -> Size {
        let range = size.1.filter(|&(_, high)| !signed || high <= 0x7fff_ffff);
        // Widened, 32 zero bits are 64.
        (
            if range.is_some() || !signed || size.0 < 32 {
                size.0
            } else {
                32
            },
            range,
        )
    };
    let at = |i: usize| -> Size { (src[i].align, src[i].range) };
    let wide = |i: usize, signed: bool| {
        let size = at(i);
        match signed {
            false => (size.0, size.1.or(Some((0, u64::from(u32::MAX))))),
            true => plain(size, true),
        }
    };
    match linear {
        Linear::Copy => at(0),
        Linear::Add => sum(at(0), at(1)),
        Linear::Sub => {
            let range = match (at(0).1, at(1).1) {
                (Some(a), Some(b)) => within(a.0.checked_sub(b.1), a.1.checked_sub(b.0)),
                _ => None,
            };
            (at(0).0.min(at(1).0), range)
        }
        Linear::Mul => product(at(0), at(1)),
        Linear::Mad => sum(product(at(0), at(1)), at(2)),
        Linear::MulWide { signed } => product(wide(0, signed), wide(1, signed)),
        Linear::MadWide { signed } => sum(product(wide(0, signed), wide(1, signed)), at(2)),
        Linear::Shl => match at(1).1 {
            Some((by, same)) if by == same && by < u64::from(width) => {
                let range = at(0)
                    .1
                    .and_then(|(low, high)| within(Some(low << by), high.checked_mul(1 << by)));
                ((at(0).0 + by as u8).min(width as u8), range)
            }
            _ => (at(0).0, None),
        },
        Linear::Widen { signed } => wide(0, signed),
        Linear::Narrow => (at(0).0.min(32), at(0).1.filter(|&(_, high)| high <= most)),
        Linear::Compare { .. } => (0, None),
    }
}
