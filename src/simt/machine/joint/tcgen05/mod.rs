//! Tensor memory and what is done with it (PTX ISA, TensorCore 5th Generation Family Instructions).
//!
//! Loads and stores between registers and tensor memory are done where they stand. Copies, shifts and products go on without
//! the thread that began them, in the order in which it did; `tcgen05.commit` arrives at a barrier behind them. Operands,
//! addresses and rights are checked where the instruction stands; shared and tensor memory are read when it completes.

mod copy;
mod instruction;
mod multiply;
mod shadow;
mod transfer;

use arrayvec::ArrayVec;

use self::copy::{Copying, Shifting};
use self::multiply::{AOperand, Multiplication};
use self::transfer::Window;
use super::descriptor::UNIT;
use super::{bulk, mbarrier};
use crate::isa::joint::tcgen05::{Commit, Group, Op};
use crate::isa::lanes::{MAX_WARPS, WARP, Width};
use crate::program::ir::joint::tcgen05::Multiply;
use crate::program::{Ordering, Proxy, Space};
use crate::simt::cause::Cause;
use crate::simt::machine::access::{self, MemOp};
use crate::simt::machine::asynchronous::{Completion, Line, Nothing, Operation, Owner, Work};
use crate::simt::machine::context::{Cx, Env, RawFault};
use crate::simt::machine::held::{self, Accessed, Held};
use crate::simt::machine::mbarrier::Report;
use crate::simt::machine::observe::Direction;
use crate::simt::machine::peers;
use crate::simt::machine::slots::{Slot, bits, read};
use crate::simt::machine::state::State;
use crate::simt::machine::step::{Operands, Step};
use crate::simt::machine::tensor_memory::{Asked, Memories, Memory, Misuse};

/// One of the blocks that take part in an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// In its cluster.
    pub rank: usize,
    /// Its shared window: where it starts, and how many bytes it has.
    shared: u64,
    bytes: u32,
}

impl Part {
    /// Whether 16 bytes of its shared memory are there.
    fn has(&self, address: u32) -> bool {
        u64::from(address) + UNIT as u64 <= u64::from(self.bytes)
    }

    /// Where that is.
    fn at(&self, address: u32) -> u64 {
        self.shared + u64::from(address)
    }

    /// Sixteen bytes of its shared memory, which [`Self::has`] them.
    #[inline(always)]
    fn unit(&self, address: u32) -> [u8; UNIT] {
        assert!(self.has(address), "checked where the instruction stood");
        let at = self.at(address);
        // SAFETY: the bytes lie in the block's shared window, which was just compared, and which is there until all that
        // the block has begun is complete; all blocks of a cluster run on one thread.
        unsafe { (at as *const [u8; UNIT]).read_unaligned() }
    }
}

/// What goes on without its thread.
enum Task {
    Copy(Copying),
    Shift(Shifting),
    Multiply(Box<Multiplication>),
}

impl Task {
    /// By which of its descriptors, and where, it reads 16 bytes each of shared memory.
    fn addresses(&self, each: &mut dyn FnMut(usize, u32) -> Result<(), RawFault>) -> Result<(), RawFault> {
        match self {
            Task::Copy(copying) => copying.addresses().try_for_each(|address| each(0, address)),
            Task::Multiply(multiplication) => multiplication.addresses(each),
            Task::Shift(_) => Ok(()),
        }
    }
}

/// A task, and the blocks it is for.
pub struct Job {
    task: Task,
    parts: ArrayVec<Part, 2>,
    memories: Memories,
}

impl Job {
    fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl Work for Job {
    fn finish(&mut self, _env: &Env<'_>) -> Result<Report, Cause> {
        let blocks = &mut *self.memories.lock();
        match &self.task {
            Task::Copy(copying) => {
                for part in &self.parts {
                    copying.run(part, blocks.of(part.rank));
                }
            }
            Task::Shift(shifting) => {
                for part in &self.parts {
                    shifting.run(blocks.of(part.rank));
                }
            }
            Task::Multiply(multiplication) => {
                let (memories, room) = blocks.with_room();
                multiplication.run(self, memories, room);
            }
        }
        Ok(Report::default())
    }
}

/// The blocks of a group, the running one first.
///
/// # Errors
/// The block has no partner, or no longer.
fn parts(group: Group, cx: &Cx<'_>) -> Result<ArrayVec<Part, 2>, Misuse> {
    let block = cx.block;
    let part = |rank: u32| Part {
        rank: rank as usize,
        shared: block.cluster_shared() + u64::from(rank) * peers::STRIDE,
        bytes: block.shared_bytes,
    };
    own(group, cx)?;
    let other = block.rank ^ 1;
    match group {
        Group::One => Ok([part(block.rank)].into_iter().collect()),
        Group::Two if block.gone >> other & 1 == 1 => {
            Err("cta_group::2 when the other block of the pair has ended".into())
        }
        Group::Two => Ok([part(block.rank), part(other)].into_iter().collect()),
    }
}

/// The rank of the block itself. Its partner may have ended: of two blocks that give back their columns last of all, as
/// CUTLASS' kernels do, one is done before the other.
///
/// # Errors
/// A group of two asks for a partner, and the block never had one.
fn own(group: Group, cx: &Cx<'_>) -> Result<usize, Misuse> {
    let block = cx.block;
    match group {
        Group::Two if block.rank ^ 1 >= block.peers => {
            Err("cta_group::2 in a block that has no other one of its pair in its cluster".into())
        }
        Group::One | Group::Two => Ok(block.rank as usize),
    }
}

/// # Safety
/// Slots of `operands` lie in the running window.
pub(super) unsafe fn execute<const WATCHED: bool>(
    op: Op,
    operands: &Operands,
    cx: &mut Cx<'_>,
    state: &mut State,
) -> Step {
    let mut done = [0; MAX_WARPS];
    for (w, done) in done.iter_mut().enumerate().take(cx.mask.warps as usize) {
        let active = cx.mask.lanes[w];
        if active == 0 {
            continue;
        }
        let warp = Warp {
            cx,
            operands,
            w,
            active,
        };
        // SAFETY: the slots lie in the running window, as the caller promises.
        match unsafe { warp.execute::<WATCHED>(op, state) } {
            Ok(true) => *done = active,
            Ok(false) => {}
            Err(fault) => return Step::Fault(fault),
        }
    }
    if done == cx.mask.lanes {
        Step::Done
    } else {
        Step::Wait { done }
    }
}

/// The active lanes of one warp at an instruction.
struct Warp<'a, 'b> {
    cx: &'a mut Cx<'b>,
    operands: &'a Operands,
    w: usize,
    active: u32,
}

impl Warp<'_, '_> {
    fn first(&self) -> usize {
        self.w * WARP + self.active.trailing_zeros() as usize
    }

    /// Source `i` in lane `lane` of the bundle.
    ///
    /// # Safety
    /// The sources lie in the running window, here and below.
    unsafe fn source(&self, i: usize, lane: usize) -> u64 {
        // SAFETY: the slot lies in the running window, of which `lane` is a lane.
        unsafe { read(self.cx.regs, self.operands.src[i], lane) }
    }

    /// `false`: it has to wait.
    unsafe fn execute<const WATCHED: bool>(mut self, op: Op, state: &mut State) -> Result<bool, RawFault> {
        let first = self.first();
        let wrong = |why: Misuse| RawFault::misuse(why, first);
        // SAFETY: the slots lie in the running window, as the caller promises, here and below.
        unsafe {
            match op {
                Op::Allocate(group) => return self.allocate::<WATCHED>(group, state),
                Op::Free(group) => {
                    let (address, columns) = (self.source(0, first) as u32, self.source(1, first) as u32);
                    let own = own(group, self.cx).map_err(wrong)?;
                    let blocks = &mut *state.tensor.lock();
                    let memory = blocks.of(own);
                    memory.enter(group).map_err(wrong)?;
                    memory.free(address, columns).map_err(wrong)?;
                    state.changed = true;
                }
                Op::Relinquish(group) => {
                    let own = own(group, self.cx).map_err(wrong)?;
                    let blocks = &mut *state.tensor.lock();
                    let memory = blocks.of(own);
                    memory.enter(group).map_err(wrong)?;
                    memory.relinquish();
                }
                Op::Load(transfer) => {
                    let own = self.cx.block.rank as usize;
                    let blocks = &mut *state.tensor.lock();
                    let memory = &*blocks.of(own);
                    let of = (memory, self.asked(0, first));
                    let window = Window::of(transfer, self.place()?, self.of_four(), of).map_err(wrong)?;
                    let (registers, shadows) = self.operands.dst.split_at(transfer.registers());
                    for (r, slot) in registers.iter().enumerate() {
                        if let Some(slot) = slot {
                            self.write(*slot, &window.load(memory, r));
                        }
                    }
                    if let Some(shadow) = memory.shadow.as_ref().filter(|_| !shadows.is_empty()) {
                        self.load_shadows(&window, shadow, shadows);
                    }
                }
                Op::LoadReduce(transfer, reduction) => {
                    let own = self.cx.block.rank as usize;
                    let blocks = &mut *state.tensor.lock();
                    let memory = &*blocks.of(own);
                    let of = (memory, self.asked(0, first));
                    let window = Window::of(transfer, self.place()?, self.of_four(), of).map_err(wrong)?;
                    let loaded: Vec<[u32; WARP]> = (0..transfer.registers()).map(|r| window.load(memory, r)).collect();
                    // Behind these stand their shadows, where they have some.
                    let results = match memory.shadow {
                        Some(_) => self.operands.dst.len() / 2,
                        None => self.operands.dst.len(),
                    };
                    let (results, shadows) = self.operands.dst.split_at(results);
                    let mut out = vec![[0; WARP]; results.len()];
                    for lane in 0..WARP {
                        let values: Vec<u32> = loaded.iter().map(|lanes| lanes[lane]).collect();
                        let found = reduction.of(&values);
                        let (kept, metadata) = match reduction.compress {
                            true => reduction.compress(&values),
                            false => (values, Vec::new()),
                        };
                        let all = kept.into_iter().chain([found]).chain(metadata);
                        for (lanes, value) in out.iter_mut().zip(all) {
                            lanes[lane] = value;
                        }
                    }
                    for (slot, values) in results.iter().zip(&out) {
                        if let Some(slot) = slot {
                            self.write(*slot, values);
                        }
                    }
                    if let Some(shadow) = &memory.shadow {
                        let loaded = (transfer.registers(), !reduction.compress);
                        self.reduce_shadows(&window, shadow, loaded, shadows);
                    }
                }
                Op::Store(transfer) => {
                    let own = self.cx.block.rank as usize;
                    let blocks = &mut *state.tensor.lock();
                    let memory = blocks.of(own);
                    let of = (&*memory, self.asked(0, first));
                    let window = Window::of(transfer, self.place()?, self.of_four(), of).map_err(wrong)?;
                    let (registers, shadows) = self.operands.src[2..].split_at(transfer.registers());
                    for (r, slot) in registers.iter().enumerate() {
                        let values = std::array::from_fn(|l| read(self.cx.regs, *slot, self.w * WARP + l) as u32);
                        window.store(memory, r, self.active, &values);
                    }
                    if let Some(shadow) = &mut memory.shadow {
                        self.store_shadows(&window, shadow, shadows);
                    }
                }
                Op::Wait | Op::Fence => {}
                Op::Commit(_) | Op::Copy(_) | Op::Shift(_) | Op::Mma(_) => {
                    for i in bits(self.active) {
                        self.begin::<WATCHED>(op, self.w * WARP + i, state)?;
                    }
                }
            }
        }
        Ok(true)
    }

    /// From which allocation of tensor memory an operand is, by its number among those with objects.
    ///
    /// # Safety
    /// The operands lie in the running window, of which `lane` is a lane.
    unsafe fn asked(&self, number: usize, lane: usize) -> Asked {
        // SAFETY: the caller promises it.
        unsafe { held::columns(self.operands, number, lane, self.cx) }
    }

    /// The number of the warp among the four that share tensor memory's lanes.
    fn of_four(&self) -> usize {
        (self.cx.first_thread as usize / WARP + self.w) % 4
    }

    /// The address of a transfer, the same in all lanes, and the distance of its second half.
    unsafe fn place(&self) -> Result<(u32, u32), RawFault> {
        let first = self.first();
        // SAFETY: the slots lie in the running window, as the caller promises, here and below.
        let (address, distance) = unsafe { (self.source(0, first) as u32, self.source(1, first) as u32) };
        for i in bits(self.active) {
            let lane = self.w * WARP + i;
            // SAFETY: the operands are slots of the running window, as the caller promises.
            let other = unsafe { self.source(0, lane) as u32 };
            if other != address {
                let why = format!(
                    "a warp's addresses in tensor memory are the same, and these are {address:#x} and {other:#x}"
                );
                return Err(RawFault::misuse(why, lane));
            }
        }
        Ok((address, distance))
    }

    /// Register `slot` of the active lanes.
    unsafe fn write(&self, slot: Slot, values: &[u32; WARP]) {
        // SAFETY: a slot of 32 bits has a value for each lane of each warp of the running window, to which nobody else
        // holds a reference.
        let lanes = unsafe { &mut *(self.cx.regs.add(slot.offset as usize) as *mut [u32; WARP]).add(self.w) };
        for i in bits(self.active) {
            lanes[i] = values[i];
        }
    }

    /// `tcgen05.alloc`: the address goes to shared memory; `false`: there is no room.
    unsafe fn allocate<const WATCHED: bool>(&mut self, group: Group, state: &mut State) -> Result<bool, RawFault> {
        let first = self.first();
        let wrong = |why: Misuse| RawFault::misuse(why, first);
        // SAFETY: the slots lie in the running window, as the caller promises, here and below.
        let columns = unsafe { self.source(0, first) as u32 };
        let to = MemOp::new(
            &self.operands.addresses[0],
            (Ordering::Weak, None),
            Box::new([]),
            self.cx.span,
        );
        let mut addresses = [0; WARP];
        let lane = 1 << (first % WARP);
        // SAFETY: the operands are slots of the running window, as the caller promises.
        if !unsafe { access::lanes::<WATCHED>(self.cx, &to, self.w, lane, 4, Direction::Write, &mut addresses) } {
            return Err(self.cx.fault.take().expect("what was refused says why"));
        }
        let parts = parts(group, self.cx).map_err(wrong)?;
        let blocks = &mut *state.tensor.lock();
        for part in &parts {
            blocks.of(part.rank).enter(group).map_err(wrong)?;
        }
        let given = match parts[..] {
            [_, _] => {
                let rank = self.cx.block.rank as usize;
                let [own, other] = blocks.pair([rank, rank ^ 1]);
                own.allocate(columns, Some(other))
            }
            _ => blocks.of(parts[0].rank).allocate(columns, None),
        };
        let Some(column) = given.map_err(wrong)? else {
            return Ok(false);
        };
        // SAFETY: the four bytes were just checked.
        unsafe { (addresses[first % WARP] as *mut u32).write(column as u32) };
        Ok(true)
    }

    /// What one thread begins.
    unsafe fn begin<const WATCHED: bool>(&mut self, op: Op, lane: usize, state: &mut State) -> Result<(), RawFault> {
        let wrong = |why: Misuse| RawFault::misuse(why, lane);
        let group = match op {
            Op::Copy(copy) => copy.group,
            Op::Mma(mma) => mma.group,
            Op::Commit(commit) => commit.group,
            Op::Shift(group) | Op::Allocate(group) | Op::Free(group) | Op::Relinquish(group) => group,
            Op::Load(_) | Op::LoadReduce(..) | Op::Store(_) | Op::Wait | Op::Fence => Group::One,
        };
        // The first of the two has the first rows and columns.
        let mut parts = parts(group, self.cx).map_err(wrong)?;
        parts.sort_by_key(|part| part.rank);
        let operation = state.asynchronous.number();
        let owner = Owner::of(self.cx, lane);
        let line = Some(Line::Tcgen05(owner));
        let lanes = (lane / WARP, 1 << (lane % WARP));
        if let Op::Commit(commit) = op {
            for part in &parts {
                state.tensor.lock().of(part.rank).enter(group).map_err(wrong)?;
            }
            // SAFETY: the slots lie in the running window, as the caller promises.
            let barriers = unsafe { self.barriers::<WATCHED>(commit, lane, state) }?;
            for barrier in barriers {
                let completion = Completion::Arrival { barrier };
                bulk::tell_begin::<WATCHED>(self.cx, operation, lanes, completion);
                state.begin(Operation {
                    owner,
                    line,
                    work: Box::new(Nothing),
                    completion,
                    number: operation,
                });
            }
            return Ok(());
        }
        let task = {
            let blocks = &mut *state.tensor.lock();
            for part in &parts {
                blocks.of(part.rank).enter(group).map_err(wrong)?;
            }
            let (memories, _) = blocks.with_room();
            let memories: ArrayVec<&Memory, 2> = parts.iter().map(|part| &memories[part.rank]).collect();
            // SAFETY: the slots lie in the running window, as the caller promises.
            unsafe { self.task(op, lane, &memories) }.map_err(wrong)?
        };
        self.cx.operation = Some(operation);
        bulk::tell_begin::<WATCHED>(self.cx, operation, lanes, Completion::Nothing);
        // SAFETY: the operands are slots of the running window, as the caller promises.
        let held = [0, 1].map(|number| unsafe { Held::of(self.operands, number, lane, self.cx) });
        task.addresses(&mut |number, address| {
            for part in &parts {
                if !part.has(address) {
                    let bytes = UNIT as u64;
                    return Err(RawFault::illegal(address.into(), bytes, false, lane, Space::Shared));
                }
                let accessed = Accessed {
                    address: part.shared + u64::from(address),
                    bytes: UNIT as u64,
                    write: false,
                    space: Space::Shared,
                    lane,
                };
                held[number].check(accessed, self.cx.block)?;
                if WATCHED {
                    let range = (part.shared + u64::from(address), UNIT as u64);
                    access::tell_one::<WATCHED>(self.cx, lane, range, Space::Shared, Direction::Read, Proxy::Async);
                }
            }
            Ok(())
        })?;
        self.cx.operation = None;
        let memories = state.tensor.share();
        state.begin(Operation {
            owner,
            line,
            work: Box::new(Job { task, parts, memories }),
            completion: Completion::Nothing,
            number: operation,
        });
        Ok(())
    }

    /// The barriers at which a commit arrives.
    unsafe fn barriers<const WATCHED: bool>(
        &mut self,
        commit: Commit,
        lane: usize,
        state: &mut State,
    ) -> Result<Vec<u64>, RawFault> {
        let weak = (Ordering::Weak, None);
        let of = MemOp::new(&self.operands.addresses[0], weak, Box::new([]), self.cx.span);
        let mut addresses = [0; WARP];
        let (w, active) = (lane / WARP, 1 << (lane % WARP));
        // SAFETY: the register of the address is a slot of the running window.
        if !unsafe { access::addresses(self.cx, &of, w, active, 8, Direction::Atomic, &mut addresses) } {
            return Err(self.cx.fault.take().expect("what was refused says why"));
        }
        // SAFETY: the sources lie in the running window, as the caller promises.
        let blocks = commit.multicast.then(|| unsafe { self.source(0, lane) as u32 });
        let mut barriers = Vec::new();
        let named = mbarrier::in_blocks(self.cx, addresses[lane % WARP], blocks, |at| {
            barriers.push(at);
            Ok(())
        });
        named.map_err(|why| RawFault::misuse(format!("the mbarrier of tcgen05.commit {why}"), lane))?;
        for &barrier in &barriers {
            bulk::check_barrier(self.cx, state, barrier, lane, false)?;
        }
        Ok(barriers)
    }

    /// What a thread asks for, checked.
    unsafe fn task(&self, op: Op, lane: usize, memories: &[&Memory]) -> Result<Task, Misuse> {
        // SAFETY: the slots lie in the running window, as the caller promises, here and below.
        let source = |i| unsafe { self.source(i, lane) };
        // SAFETY: the slots lie in the running window, as the caller promises.
        let asked = |number| unsafe { self.asked(number, lane) };
        let (first, others) = memories.split_first().expect("the block itself takes part");
        match op {
            Op::Copy(copy) => {
                let places = (source(0) as u32, source(1));
                for memory in others {
                    Copying::of(copy, places, (memory, asked(1)))?;
                }
                Copying::of(copy, places, (first, asked(1))).map(Task::Copy)
            }
            Op::Shift(_) => {
                let address = source(0) as u32;
                for memory in others {
                    Shifting::of(address, (memory, asked(0)))?;
                }
                Shifting::of(address, (first, asked(0))).map(Task::Shift)
            }
            Op::Mma(mma) => {
                // SAFETY: the operands are slots of the running window, as the caller promises.
                let operands = unsafe { self.multiplied(lane) };
                let multiplication = Multiplication::of(mma, &operands, memories)?;
                Ok(Task::Multiply(Box::new(multiplication)))
            }
            Op::Commit(_) | Op::Allocate(_) | Op::Free(_) | Op::Relinquish(_) => unreachable!("{op} is no task"),
            Op::Load(_) | Op::LoadReduce(..) | Op::Store(_) | Op::Wait | Op::Fence => unreachable!("{op} is no task"),
        }
    }

    /// The operands of a product.
    unsafe fn multiplied(&self, lane: usize) -> multiply::Operands {
        let src = Multiply::of(&self.operands.src);
        // SAFETY: the slots lie in the running window, as the caller promises.
        let value = |slot: &Slot| unsafe { read(self.cx.regs, *slot, lane) };
        let word = |slot| value(slot) as u32;
        let mut disabled = [0; 8];
        for (word_of, slot) in disabled.iter_mut().zip(src.disabled) {
            *word_of = word(slot);
        }
        multiply::Operands {
            d: word(src.d),
            a: match src.a.width {
                Width::B64 => AOperand::Shared(value(src.a)),
                Width::Pred | Width::B16 | Width::B32 | Width::B128 => AOperand::Tensor(word(src.a)),
            },
            b: value(src.b),
            descriptor: word(src.descriptor),
            enable_d: value(src.enable_d) != 0,
            scale_d: word(src.scale_d),
            metadata: word(src.metadata),
            scale_a: word(src.scale_a),
            scale_b: word(src.scale_b),
            zero_columns: value(src.zero_columns),
            disabled,
            // They stand behind the objects of the descriptors.
            // SAFETY: the slots lie in the running window, as the caller promises.
            asked: [2, 3, 4, 5, 6].map(|number| unsafe { self.asked(number, lane) }),
        }
    }
}
