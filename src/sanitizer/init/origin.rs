//! Where an undefined value comes from: loads that have brought undefined bits, and which of them a register can have its value
//! of.
//!
//! Nothing goes with values from load to use. A load that brings undefined bits is written down, the last one for each thread and
//! instruction; when something depends on a register, the instructions that its value can come from are looked up in the
//! function, and the last of the thread's loads among them is the origin. Where that has loaded what a thread had put there, with bits
//! that it had loaded undefined itself, the first load is.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use super::{Instruction, Line, Slice, identity, lanes_of};
use crate::isa::joint::{Joint, matrix, tcgen05, warpgroup};
use crate::isa::lanes::WARP;
use crate::memory::shadow::Shadow as Memory;
use crate::program::{Function, Op, Register, Role, Space};
use crate::simt::observe::{Who, cell_of};

/// A load of undefined bits by one thread.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub line: Line,
    pub block: [u32; 3],
    pub thread: u32,
    /// The first undefined byte, and how many there are in what was loaded.
    pub address: u64,
    pub bytes: u64,
    pub space: Space,
    /// Who has it: with products of several threads, not who has loaded it.
    holder: u32,
    /// Of two loads, which was later.
    number: u64,
}

impl Loaded {
    /// `None` if all has been written meanwhile.
    pub fn of(
        by: &Who<'_>,
        thread: u32,
        (address, bytes): (u64, u32),
        space: Space,
        memory: &Memory,
    ) -> Option<Loaded> {
        let (offset, count) = match cell_of(address) {
            // It is told of as missing, and has a word.
            Some(_) => (0, WORD),
            None => memory.first_undefined(address, bytes.into())?,
        };
        Some(Loaded {
            line: (identity(by.function), by.span),
            block: by.block,
            thread,
            address: address + offset,
            bytes: count,
            space,
            holder: thread,
            number: 0,
        })
    }
}

/// Bytes of a cell of tensor memory.
const WORD: u64 = 4;

/// Threads whose last load of an instruction is kept: what has the same remainder shares a place.
const KEPT: usize = 1024;

#[derive(Default)]
pub struct Loads {
    by_instruction: HashMap<Instruction, Vec<Option<Loaded>>>,
    /// By function and register, the instructions that may have loaded its value.
    slices: RefCell<HashMap<Slice, Vec<Instruction>>>,
    /// By instruction, the registers that it stores.
    stored: RefCell<HashMap<Instruction, Vec<Register>>>,
    /// By instruction, the registers of which it is a product.
    multiplied: RefCell<HashMap<Instruction, Vec<Register>>>,
    number: u64,
}

impl Loads {
    pub fn add(&mut self, loaded: Loaded) {
        let (function, span) = loaded.line;
        self.keep((function, span.start), loaded);
    }

    fn keep(&mut self, by: Instruction, loaded: Loaded) {
        let kept = self.by_instruction.entry(by).or_insert_with(|| vec![None; KEPT]);
        self.number += 1;
        let number = self.number;
        let place = loaded.holder as usize % KEPT;
        kept[place] = Some(Loaded { number, ..loaded });
    }

    /// A product brings its threads what others have loaded.
    pub fn multiplied(&mut self, by: &Who<'_>, (warp, lanes): (usize, u32), sources: &[(u8, u8); WARP]) {
        let instruction = (identity(by.function), by.span.start);
        let registers = self.sources_of(by, instruction);
        let thread = |lane: usize| by.first_thread + (warp * WARP + lane) as u32;
        for lane in lanes_of(lanes) {
            let (source, holder) = sources[lane];
            let Some(register) = registers.get(usize::from(source)) else {
                continue;
            };
            if let Some(loaded) = self.last_into(by.function, *register, by.block, thread(holder.into())) {
                let holder = thread(lane);
                self.keep(instruction, Loaded { holder, ..loaded });
            }
        }
    }

    /// What the product at an instruction is made from, in the order of the instruction.
    fn sources_of(&self, by: &Who<'_>, instruction: Instruction) -> Vec<Register> {
        let find = || {
            let mut insts = by.function.body.insts().filter(|inst| inst.span == by.span);
            let sources = insts.find_map(|inst| match &inst.op {
                Op::Joint(joint) if is_product(&inst.op) => Some(joint.src.iter().map(|reg| reg.number).collect()),
                _ => None,
            });
            sources.unwrap_or_default()
        };
        self.multiplied
            .borrow_mut()
            .entry(instruction)
            .or_insert_with(find)
            .clone()
    }

    /// The last load from which the register can have its value: the thread's own, or that of another of its block, or any.
    pub fn last_into(&self, function: &Function, register: Register, block: [u32; 3], thread: u32) -> Option<Loaded> {
        let mut slices = self.slices.borrow_mut();
        let sources = slices
            .entry((identity(function), register))
            .or_insert_with(|| sources(function, register));
        let loads = sources.iter().filter_map(|source| self.by_instruction.get(source));
        let nearness = |loaded: &&Loaded| {
            let is_of_block = loaded.block == block;
            (is_of_block, is_of_block && loaded.holder == thread, loaded.number)
        };
        loads.flatten().flatten().max_by_key(nearness).cloned()
    }
}

impl Loads {
    /// The last load of what a store puts into memory.
    pub fn last_of_store(&self, by: &Who<'_>, thread: u32) -> Option<Loaded> {
        let mut stored = self.stored.borrow_mut();
        let registers = stored
            .entry((identity(by.function), by.span.start))
            .or_insert_with(|| stored_by(by));
        let loads = registers
            .iter()
            .filter_map(|register| self.last_into(by.function, *register, by.block, thread));
        loads.max_by_key(|loaded| loaded.number)
    }
}

/// What the store at an instruction stores.
fn stored_by(by: &Who<'_>) -> Vec<Register> {
    let insts = by.function.body.insts().filter(|inst| inst.span == by.span);
    let stores = insts.filter_map(|inst| match &inst.op {
        Op::Store { src, .. } => Some(&src[..]),
        Op::Joint(joint) => match joint.what {
            Joint::Matrix(matrix::Op::StoreRows(_)) => Some(&joint.src[..]),
            // The stride comes first.
            Joint::Matrix(matrix::Op::StoreTile(_)) => Some(&joint.src[1..]),
            // An address and a distance, and behind what is stored its shadows.
            Joint::Tcgen05(tcgen05::Op::Store(transfer)) => Some(&joint.src[2..][..transfer.registers()]),
            _ => None,
        },
        _ => None,
    });
    stores.flatten().map(|reg| reg.number).collect()
}

/// Whether an operation brings registers what is in memory, and tells of bits that nobody has written there.
fn loads(op: &Op) -> bool {
    let is_load = |what| {
        matches!(
            what,
            Joint::Matrix(matrix::Op::LoadRows(_) | matrix::Op::LoadTile(_))
                | Joint::Tcgen05(tcgen05::Op::Load(_) | tcgen05::Op::LoadReduce(..))
        )
    };
    matches!(op, Op::Load { .. }) || matches!(op, Op::Joint(joint) if is_load(joint.what))
}

/// Whether an operation tells of what it brings registers, and has it from other ones as well.
fn is_product(op: &Op) -> bool {
    let is_product = |what| {
        matches!(
            what,
            Joint::Matrix(matrix::Op::Multiply(_)) | Joint::Warpgroup(warpgroup::Op::Mma(_))
        )
    };
    matches!(op, Op::Joint(joint) if is_product(joint.what))
}

/// As many words of memory are remembered.
const WORDS: usize = 1 << 16;

/// Undefined values that threads have put into memory, by words of four bytes, with the loads that had brought them: who loads
/// them there has them from where those did.
#[derive(Default)]
pub struct Passed(HashMap<u64, Loaded>);

fn words(address: u64, bytes: u64) -> impl Iterator<Item = u64> {
    address >> 2..=(address + bytes.max(1) - 1) >> 2
}

impl Passed {
    pub fn put(&mut self, address: u64, bytes: u32, loaded: Option<&Loaded>) {
        for word in words(address, bytes.into()) {
            match loaded {
                Some(loaded) if self.0.len() < WORDS || self.0.contains_key(&word) => {
                    self.0.insert(word, loaded.clone());
                }
                Some(_) | None => {
                    self.0.remove(&word);
                }
            }
        }
    }

    /// Bytes are copied; `found`: undefined ones that the copy itself has found, if nobody had put them there.
    pub fn copied(&mut self, (from, to): (u64, u64), bytes: u64, found: Option<&Loaded>) {
        for word in words(to, bytes) {
            let source = (word << 2).wrapping_sub(to).wrapping_add(from) >> 2;
            let loaded = self.0.get(&source).or(found).cloned();
            self.put(word << 2, 4, loaded.as_ref());
        }
    }

    /// Something else begins there.
    pub fn forget(&mut self, address: u64, bytes: u64) {
        self.0.retain(|word, _| (word << 2).wrapping_sub(address) >= bytes);
    }

    /// The load that was the first to bring what this one has.
    pub fn first(&self, mut loaded: Loaded) -> Loaded {
        // What has gone round in circles is left where it is.
        for _ in 0..16 {
            match self.0.get(&(loaded.address >> 2)) {
                Some(before) if before.address != loaded.address => loaded = before.clone(),
                Some(_) | None => break,
            }
        }
        loaded
    }
}

/// Loads from which a register of a function can have its value, by way of other registers.
fn sources(function: &Function, register: Register) -> Vec<Instruction> {
    let mut definitions: HashMap<Register, Vec<usize>> = HashMap::new();
    let insts: Vec<_> = function
        .body
        .insts()
        .filter(|inst| !matches!(inst.op, Op::Shadow(_)))
        .collect();
    for (index, inst) in insts.iter().enumerate() {
        inst.regs(|reg, role| {
            if role == Role::Def {
                definitions.entry(reg.number).or_default().push(index);
            }
        });
    }
    let mut found = Vec::new();
    let (mut seen, mut work) = (HashSet::from([register]), vec![register]);
    while let Some(register) = work.pop() {
        for &index in definitions.get(&register).into_iter().flatten() {
            let inst = insts[index];
            if is_product(&inst.op) || loads(&inst.op) {
                found.push((identity(function), inst.span.start));
            }
            if loads(&inst.op) {
                continue;
            }
            inst.op.regs(|reg, role| {
                if role == Role::Use && seen.insert(reg.number) {
                    work.push(reg.number);
                }
            });
        }
    }
    found
}
