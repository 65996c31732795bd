//! Finds the values of a kernel that are linear in the lane's number ([`super::values`]).
//!
//! A value counts if its register is written in one place, by an operation that is linear in operands that count. What
//! only served such values — as an address of an ordinary access, or as an operand of another one — is spared.

use std::collections::{BTreeSet, HashMap};

use super::values::{Affine, Op as Operation, Source, Step, ValueId};
use super::{Instr, Pc, Slot, What};
use crate::isa::lanes::{WARP, Width};
use crate::isa::{Bitwise, Compare};
use crate::program::{Body, Initial, Linear, MadeFrom, Op, Ordering, Reg, Register, Role, Shadow, Space, Special};
use crate::simt::machine::{LANES, SHORTEST_RUN};

/// More values than any kernel gains by.
const MANY: usize = 256;
/// Bits of a thread's number in its block.
const MOST_BITS: u32 = 10;

/// Looks for them in code whose slots still name registers. The result names registers too; predicates that it computes
/// have to keep their slots from the start.
pub fn find(body: &Body, code: &[Instr<Reg>]) -> Option<Affine> {
    let mut finder = Finder {
        body,
        values: Vec::new(),
        numbers: HashMap::new(),
        of: vec![None; body.registers.len()],
        compares: Vec::new(),
        longest: LANES,
    };
    let single = single_definitions(body, code);
    let mut candidates = vec![false; code.len()];
    for (pc, instr) in code.iter().enumerate() {
        if let What::Op(Op::Compute { op, dst, src }) = &instr.what
            && dst.len() == 1
            && single[dst[0].number as usize] == Some(pc as Pc)
        {
            candidates[pc] = match (op.linear(), op.bitwise()) {
                (Some(linear), _) => finder.instruction(linear, dst[0].number, src, pc as Pc).is_some(),
                (None, Some(bitwise)) => finder.part(bitwise, dst[0].number, src).is_some(),
                (None, None) => false,
            };
        }
    }
    let spared = spare(body, code, candidates, &finder.of);
    let addresses: Vec<(Pc, ValueId)> = code
        .iter()
        .enumerate()
        .filter_map(|(pc, instr)| Some((pc as Pc, finder.of[served(instr)? as usize]?)))
        .collect();
    finder.compares.retain(|(pc, ..)| spared[*pc as usize]);
    if addresses.is_empty() && finder.compares.is_empty() {
        return None;
    }
    let spared: Vec<Pc> = (0..code.len() as Pc).filter(|&pc| spared[pc as usize]).collect();
    Some(finder.finish(code, addresses, spared))
}

/// The pc at which each register is written, if it is one place and no guard leaves lanes out.
fn single_definitions(body: &Body, code: &[Instr<Reg>]) -> Vec<Option<Pc>> {
    let mut writes = vec![0u32; body.registers.len()];
    let mut single = vec![None; body.registers.len()];
    for (pc, instr) in code.iter().enumerate() {
        instr.regs(|reg, role| {
            if role == Role::Def {
                let register = reg.number as usize;
                writes[register] += 1;
                single[register] = (writes[register] == 1 && instr.guard.is_none()).then_some(pc as Pc);
            }
        });
    }
    single
}

/// The address register of an access, or of a check of some, that can take its addresses as base and step.
fn served(instr: &Instr<Reg>) -> Option<Register> {
    let address = match &instr.what {
        What::Op(Op::Load { address, ordering, .. } | Op::Store { address, ordering, .. })
            if *ordering == Ordering::Weak =>
        {
            address
        }
        // Loads and stores; what is done to matrices takes addresses from registers.
        What::Op(Op::Shadow(op)) if !matches!(op.what, Shadow::Matrix(_) | Shadow::Warpgroup(_)) => {
            op.address.as_ref()?
        }
        What::Op(Op::Within(op)) => {
            let is_common = matches!(op.from, MadeFrom::Pointer { .. } | MadeFrom::Shared { .. });
            return is_common.then_some(op.register.number);
        }
        What::Op(_) | What::Branch { .. } | What::BranchIndexed { .. } => return None,
    };
    let reaches = match address.space {
        Space::Generic | Space::Global | Space::Const | Space::Shared => true,
        // Each lane's own, or rarely read by address.
        Space::Local | Space::Param => false,
    };
    address.register.filter(|_| reaches).map(|reg| reg.number)
}

/// Of the instructions that compute such values, those whose results nobody needs lane by lane.
fn spare(body: &Body, code: &[Instr<Reg>], mut spared: Vec<bool>, of: &[Option<ValueId>]) -> Vec<bool> {
    let mut needed = vec![false; body.registers.len()];
    loop {
        let mut changed = false;
        for (pc, instr) in code.iter().enumerate().rev() {
            if spared[pc]
                && let What::Op(Op::Compute { dst, .. }) = &instr.what
            {
                // Predicates are there for everybody.
                if dst[0].width == Width::Pred || !needed[dst[0].number as usize] {
                    continue;
                }
                spared[pc] = false;
                changed = true;
            }
            let address = served(instr).filter(|&register| of[register as usize].is_some());
            let mut address = address;
            instr.regs(|reg, role| {
                if role != Role::Use || address.take_if(|a| *a == reg.number).is_some() {
                    // The address is the first slot that an access names behind its guard; the same register may come
                    // again as data.
                    return;
                }
                changed |= !std::mem::replace(&mut needed[reg.number as usize], true);
            });
        }
        if !changed {
            return spared;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Definition {
    Source(Source),
    Op(Operation, ValueId, ValueId),
}

struct Value {
    definition: Definition,
    /// The same in all lanes of a run.
    uniform: bool,
    /// Depends on the block.
    block: bool,
}

struct Finder<'a> {
    body: &'a Body,
    values: Vec<Value>,
    numbers: HashMap<Definition, ValueId>,
    /// By register.
    of: Vec<Option<ValueId>>,
    compares: Vec<(Pc, Operation, ValueId, ValueId)>,
    /// Lanes of the longest runs in which what was found holds.
    longest: usize,
}

impl Finder<'_> {
    /// The value of an operation, if its operands have some; a comparison's is none.
    fn instruction(&mut self, linear: Linear, dst: Register, src: &[Reg], pc: Pc) -> Option<()> {
        let width = self.body.registers[dst as usize].width;
        let wide = match linear {
            Linear::Compare { .. } => src[0].width == Width::B64,
            _ => width == Width::B64,
        };
        let a = self.register(src[0].number)?;
        let value = match linear {
            Linear::Copy => a,
            Linear::Add => {
                let b = self.register(src[1].number)?;
                self.sum(a, b, wide)?
            }
            Linear::Sub => {
                let b = self.register(src[1].number)?;
                self.op(Operation::Sub { wide }, a, b)?
            }
            Linear::Mul => {
                let b = self.register(src[1].number)?;
                self.product(a, b, wide)?
            }
            Linear::Mad => {
                let (b, c) = (self.register(src[1].number)?, self.register(src[2].number)?);
                let product = self.product(a, b, wide)?;
                self.sum(product, c, wide)?
            }
            Linear::MulWide { signed } => {
                let b = self.register(src[1].number)?;
                self.wide_product(a, b, signed)?
            }
            Linear::MadWide { signed } => {
                let (b, c) = (self.register(src[1].number)?, self.register(src[2].number)?);
                let product = self.wide_product(a, b, signed)?;
                self.sum(product, c, true)?
            }
            Linear::Shl => {
                let bits = if wide { 64 } else { 32 };
                let by = u32::try_from(self.body.constant(src[1].number)?).ok()?;
                let factor = if by < bits { 1u64 << by } else { 0 };
                let factor = self.value(Definition::Source(Source::Constant(factor)))?;
                self.product(a, factor, wide)?
            }
            Linear::Widen { signed } => self.widen(a, signed)?,
            Linear::Narrow => self.op(Operation::Narrow, a, a)?,
            Linear::Compare { relation, signed } => {
                let b = self.register(src[1].number)?;
                let (relation, a, b) = match (self.is_uniform(a), self.is_uniform(b)) {
                    (_, true) => (relation, a, b),
                    (true, false) => (swapped(relation)?, b, a),
                    (false, false) => return None,
                };
                let dst = as_slot(self.body.reg(dst));
                let op = Operation::Compare {
                    relation,
                    signed,
                    wide,
                    dst,
                };
                self.compares.push((pc, op, a, b));
                return Some(());
            }
        };
        self.of[dst as usize] = Some(value);
        Some(())
    }

    /// The value of an operation that takes `%tid.x` apart, in runs that are no longer than the parts.
    fn part(&mut self, bitwise: Bitwise, dst: Register, src: &[Reg]) -> Option<()> {
        if self.body.registers[dst as usize].width != Width::B32 {
            return None;
        }
        let a = self.register(src[0].number)?;
        let by = u32::try_from(self.body.constant(src[1].number)? & u128::from(u32::MAX)).ok()?;
        let zero = |finder: &mut Self| finder.value(Definition::Source(Source::Constant(0)));
        let value = match (bitwise, self.values[a as usize].definition) {
            (_, Definition::Source(Source::Constant(bits))) => {
                let bits = match bitwise {
                    Bitwise::And => bits as u32 & by,
                    Bitwise::Or => bits as u32 | by,
                    Bitwise::ShiftRight { signed: false } => (bits as u32).checked_shr(by).unwrap_or(0),
                    Bitwise::ShiftRight { signed: true } => (bits as u32 as i32 >> by.min(31)) as u32,
                };
                self.value(Definition::Source(Source::Constant(bits.into())))?
            }
            (_, Definition::Source(Source::Tid(0))) => match bitwise {
                Bitwise::And if (by.wrapping_add(1)).is_power_of_two() => {
                    let bits = by.count_ones();
                    self.limit(bits)?;
                    self.op(Operation::Low { bits }, a, a)?
                }
                Bitwise::And if by.wrapping_neg().is_power_of_two() => {
                    let bits = by.trailing_zeros();
                    self.limit(bits)?;
                    self.op(Operation::High { bits }, a, a)?
                }
                // A block has 1024 threads at most, so that no sign is in the way.
                Bitwise::ShiftRight { .. } if by >= MOST_BITS => zero(self)?,
                Bitwise::ShiftRight { .. } => {
                    self.limit(by)?;
                    self.op(Operation::Shift { bits: by }, a, a)?
                }
                Bitwise::And | Bitwise::Or => return None,
            },
            _ => return None,
        };
        self.of[dst as usize] = Some(value);
        Some(())
    }

    /// Runs are to be no longer than 2^`bits` lanes; `None`: so short ones are none.
    fn limit(&mut self, bits: u32) -> Option<()> {
        let part = 1usize.checked_shl(bits).unwrap_or(LANES);
        if part < SHORTEST_RUN {
            return None;
        }
        // What is longer than a warp and shorter than a bundle is a warp.
        let run = if part < LANES { part.min(WARP) } else { LANES };
        self.longest = self.longest.min(run);
        Some(())
    }

    fn register(&mut self, register: Register) -> Option<ValueId> {
        if let Some(value) = self.of[register as usize] {
            return Some(value);
        }
        let info = &self.body.registers[register as usize];
        if !matches!(info.width, Width::B32 | Width::B64) {
            return None;
        }
        let source = match info.initial {
            Some(Initial::Constant(bits)) => Source::Constant(bits as u64),
            Some(Initial::Special(Special::Tid(axis))) if axis < 3 => Source::Tid(axis),
            Some(Initial::Special(Special::Ctaid(axis))) if axis < 3 => Source::Ctaid(axis),
            _ if info.hoisted || self.body.is_launch_constant(register) => {
                Source::Slot(as_slot(self.body.reg(register)))
            }
            _ => return None,
        };
        let value = self.value(Definition::Source(source))?;
        self.of[register as usize] = Some(value);
        Some(value)
    }

    fn is_uniform(&self, value: ValueId) -> bool {
        self.values[value as usize].uniform
    }

    fn constant(&self, value: ValueId) -> Option<u64> {
        match self.values[value as usize].definition {
            Definition::Source(Source::Constant(bits)) => Some(bits),
            _ => None,
        }
    }

    fn value(&mut self, definition: Definition) -> Option<ValueId> {
        if let Some(&value) = self.numbers.get(&definition) {
            return Some(value);
        }
        if self.values.len() >= MANY {
            return None;
        }
        let (uniform, block) = match definition {
            Definition::Source(source) => (source != Source::Tid(0), matches!(source, Source::Ctaid(_))),
            Definition::Op(op, a, b) => {
                let (a, b) = (&self.values[a as usize], &self.values[b as usize]);
                // Parts that are the same in all lanes of a run.
                let is_part = matches!(op, Operation::High { .. } | Operation::Shift { .. });
                (is_part || (a.uniform && b.uniform), a.block || b.block)
            }
        };
        let id = self.values.len() as ValueId;
        self.values.push(Value {
            definition,
            uniform,
            block,
        });
        self.numbers.insert(definition, id);
        Some(id)
    }

    fn op(&mut self, op: Operation, a: ValueId, b: ValueId) -> Option<ValueId> {
        self.value(Definition::Op(op, a, b))
    }

    fn sum(&mut self, a: ValueId, b: ValueId, wide: bool) -> Option<ValueId> {
        match (self.constant(a), self.constant(b)) {
            (Some(0), _) => Some(b),
            (_, Some(0)) => Some(a),
            _ => self.op(Operation::Add { wide }, a.min(b), a.max(b)),
        }
    }

    fn product(&mut self, a: ValueId, b: ValueId, wide: bool) -> Option<ValueId> {
        let (a, b) = if self.is_uniform(b) { (a, b) } else { (b, a) };
        if !self.is_uniform(b) {
            return None;
        }
        match self.constant(b) {
            Some(1) => Some(a),
            _ => self.op(Operation::Mul { wide }, a, b),
        }
    }

    fn wide_product(&mut self, a: ValueId, b: ValueId, signed: bool) -> Option<ValueId> {
        let (a, b) = (self.widen(a, signed)?, self.widen(b, signed)?);
        self.product(a, b, true)
    }

    fn widen(&mut self, a: ValueId, signed: bool) -> Option<ValueId> {
        match self.constant(a) {
            Some(bits) => {
                let bits = if signed {
                    i64::from(bits as u32 as i32) as u64
                } else {
                    u64::from(bits as u32)
                };
                self.value(Definition::Source(Source::Constant(bits)))
            }
            None => self.op(Operation::Widen { signed }, a, a),
        }
    }

    /// Leaves out what nothing needs, and numbers the rest: sources, steps of the launch, steps of the block.
    fn finish(self, code: &[Instr<Reg>], addresses: Vec<(Pc, ValueId)>, spared: Vec<Pc>) -> Affine {
        let registers = spared.iter().filter_map(|&pc| {
            let What::Op(Op::Compute { dst, .. }) = &code[pc as usize].what else {
                return None;
            };
            Some((dst[0].number, self.of[dst[0].number as usize]?))
        });
        let registers: Vec<(Register, ValueId)> = registers.collect();
        let mut live = vec![false; self.values.len()];
        for &(_, value) in addresses.iter().chain(&registers) {
            live[value as usize] = true;
        }
        for &(_, _, a, b) in &self.compares {
            live[a as usize] = true;
            live[b as usize] = true;
        }
        // Operands come before what uses them.
        for (value, v) in self.values.iter().enumerate().rev() {
            if let Definition::Op(_, a, b) = v.definition
                && live[value]
            {
                live[a as usize] = true;
                live[b as usize] = true;
            }
        }
        let mut affine = Affine {
            spared,
            longest: self.longest,
            ..Affine::default()
        };
        let mut number = vec![0; self.values.len()];
        for (value, v) in self.values.iter().enumerate().filter(|(value, _)| live[*value]) {
            if let Definition::Source(source) = v.definition {
                number[value] = affine.sources.len() as ValueId;
                affine.sources.push(source);
            }
        }
        affine.values = affine.sources.len() as u16;
        for (value, v) in self.values.iter().enumerate().filter(|(value, _)| live[*value]) {
            if let Definition::Op(op, a, b) = v.definition {
                number[value] = affine.values;
                affine.values += 1;
                let (dst, a, b) = (number[value], number[a as usize], number[b as usize]);
                let steps = if v.block { &mut affine.each } else { &mut affine.once };
                steps.push(Step { op, dst, a, b });
            }
        }
        for (_, op, a, b) in self.compares {
            let block = self.values[a as usize].block || self.values[b as usize].block;
            let (a, b) = (number[a as usize], number[b as usize]);
            let steps = if block { &mut affine.each } else { &mut affine.once };
            // Its result is a predicate: the value is nobody's.
            steps.push(Step { op, dst: a, a, b });
        }
        let by_address: BTreeSet<ValueId> = addresses.iter().map(|&(_, value)| value).collect();
        for value in by_address {
            let bases = match self.values[value as usize].block {
                true => &mut affine.bases_each,
                false => &mut affine.bases_once,
            };
            bases.push(number[value as usize]);
        }
        let numbered = |(of, value): (u32, ValueId)| (of, number[value as usize]);
        affine.addresses = addresses.into_iter().map(numbered).collect();
        affine.registers = registers.into_iter().map(numbered).collect();
        affine
    }
}

fn swapped(relation: Compare) -> Option<Compare> {
    Some(match relation {
        Compare::Eq | Compare::Ne => relation,
        Compare::Lt => Compare::Gt,
        Compare::Le => Compare::Ge,
        Compare::Gt => Compare::Lt,
        Compare::Ge => Compare::Le,
        Compare::Equ
        | Compare::Neu
        | Compare::Ltu
        | Compare::Leu
        | Compare::Gtu
        | Compare::Geu
        | Compare::Num
        | Compare::Nan => return None,
    })
}

impl Affine {
    /// Calls `f` with every slot that it names.
    pub fn slots_mut(&mut self, mut f: impl FnMut(&mut Slot)) {
        for source in &mut self.sources {
            if let Source::Slot(slot) = source {
                f(slot);
            }
        }
        for step in self.once.iter_mut().chain(&mut self.each) {
            if let Operation::Compare { dst, .. } = &mut step.op {
                f(dst);
            }
        }
    }
}

/// A register in a slot's clothes until it has a slot.
fn as_slot(reg: Reg) -> Slot {
    Slot {
        offset: reg.number,
        width: reg.width,
    }
}
