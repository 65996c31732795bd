//! Fabric operations (PTX ISA, Fabric Instructions), as they begin: the logical endpoint is looked up in `memory/endpoint`,
//! and all that the operation will touch is checked, in shared memory and with each device; `work.rs` and `tensor.rs` do
//! it when it completes.
//!
//! An endpoint stands for memory of devices of this machine, so nothing is lost on the way: what an instruction is given is
//! right, or a fault as it begins, and barriers are never told of failures. Sums of `f32` flush subnormals in memory, as
//! `red` does, and keep them in shared memory, as `multimem.ld_reduce` does in registers.

mod tensor;
mod work;

use crate::isa::joint::fabric::{Op, Submit, Target};
use crate::isa::joint::multimem::Reduction;
use crate::isa::lanes::WARP;
use crate::memory::endpoint::{self, Endpoint};
use crate::program::{Address, AtomicOp, AtomicType, Ordering, Proxy, Scope, Space};
use crate::simt::machine::access::{self, Lanes, MemOp};
use crate::simt::machine::asynchronous::{Completion, Held, Operation, Owner, Work};
use crate::simt::machine::atomic::{self, Element};
use crate::simt::machine::context::{Cx, RawFault};
use crate::simt::machine::observe::{Direction, FabricEvent, SyncEvent};
use crate::simt::machine::peers;
use crate::simt::machine::slots::{bits, lanes, read};
use crate::simt::machine::state::State;
use crate::simt::machine::step::{Operands, Step};

use super::bulk::{check_barrier, tell_begin};
use super::tensor::Warp;

/// What offsets, sizes and addresses in shared memory are multiples of.
const UNIT: u64 = 16;
/// Bytes of a counter, and what its offset is a multiple of.
const COUNTER: (u64, u64) = (8, 256);
/// Bytes of a barrier.
const BARRIER: u64 = 8;

type Outcome<T = ()> = Result<T, RawFault>;

/// # Safety
/// Slots of `operands` lie in the running window.
pub(super) unsafe fn execute<const WATCHED: bool>(
    op: Op,
    operands: &Operands,
    cx: &mut Cx<'_>,
    state: &mut State,
) -> Step {
    let done = match op {
        Op::Submit(which) => {
            submit::<WATCHED>(which, cx, state);
            Ok(())
        }
        // SAFETY: it asks for nothing else.
        Op::Wait => unsafe { wait::<WATCHED>(operands, cx, state) },
        Op::Get
        | Op::GetTensor(_)
        | Op::Put { .. }
        | Op::Reduce { .. }
        | Op::PutTensor { .. }
        | Op::Atom { .. }
        | Op::PullReduce { .. } => {
            let warps = 0..cx.mask.warps as usize;
            // SAFETY: it asks for nothing else.
            warps.into_iter().try_for_each(|warp| unsafe {
                let warp = Warp { operands, warp };
                begin_all::<WATCHED>(op, warp, cx, state)
            })
        }
    };
    match done.and_then(|()| state.draw_behind(cx)) {
        Ok(()) => Step::Done,
        Err(fault) => Step::Fault(fault),
    }
}

/// The operations of a warp's lanes, each its own, or one for all.
///
/// # Safety
/// The operands are slots of the running window.
unsafe fn begin_all<const WATCHED: bool>(op: Op, warp: Warp<'_>, cx: &mut Cx<'_>, state: &mut State) -> Outcome {
    let active = cx.mask.lanes[warp.warp];
    let issue = |i: usize, lanes: u32| Issue { warp, i, lanes };
    let each = |f: &mut dyn FnMut(Issue<'_>) -> Outcome| bits(active).try_for_each(|i| f(issue(i, 1 << i)));
    // SAFETY: the operands are slots of the running window, as the caller promises, and `i` is of the mask.
    unsafe {
        match op {
            Op::Get => each(&mut |one| one.get::<WATCHED>(cx, state)),
            Op::GetTensor(tensor) => each(&mut |one| one.get_tensor::<WATCHED>(tensor, cx, state)),
            Op::Put { target, masked } => each(&mut |one| one.put::<WATCHED>(target, masked, None, cx, state)),
            Op::Reduce { target, op, ty } => {
                let reduction = Some((atomic::element(op, ty), flushes(op, ty)));
                each(&mut |one| one.put::<WATCHED>(target, false, reduction, cx, state))
            }
            Op::PutTensor {
                target,
                tensor,
                reduction,
            } => each(&mut |one| one.put_tensor::<WATCHED>(target, (tensor, reduction), cx, state)),
            Op::Atom { op, ty } => each(&mut |one| one.atom::<WATCHED>(op, ty, cx, state)),
            Op::PullReduce { reduction, .. } if active != 0 => {
                let one = issue(active.trailing_zeros() as usize, active);
                one.pull_reduce::<WATCHED>(reduction, cx, state)
            }
            Op::PullReduce { .. } | Op::Submit(_) | Op::Wait => Ok(()),
        }
    }
}

fn flushes(op: AtomicOp, ty: AtomicType) -> bool {
    op == AtomicOp::Add && ty == AtomicType::F32
}

fn submit<const WATCHED: bool>(which: Submit, cx: &Cx<'_>, state: &mut State) {
    for lane in lanes(&cx.mask.lanes) {
        state.submit(Owner::of(cx, lane), which);
    }
    cx.synchronised::<WATCHED>(|| SyncEvent::Fabric {
        lanes: cx.mask.lanes,
        what: FabricEvent::Submit(which),
    });
}

/// `fabric.wait`
///
/// # Safety
/// Slots of `operands` lie in the running window.
unsafe fn wait<const WATCHED: bool>(operands: &Operands, cx: &Cx<'_>, state: &mut State) -> Outcome {
    let mut but = 0;
    for lane in lanes(&cx.mask.lanes) {
        if let Some(&groups) = operands.src.first() {
            // SAFETY: the number is a slot of the running window, `lane` is of the mask.
            but = unsafe { read(cx.regs, groups, lane) } as u32;
        }
        let waited = state.wait_fabric(cx.block, Owner::of(cx, lane), but);
        waited.map_err(|cause| RawFault::new(cause, lane))?;
    }
    cx.synchronised::<WATCHED>(|| SyncEvent::Fabric {
        lanes: cx.mask.lanes,
        what: FabricEvent::WaitReads(but),
    });
    Ok(())
}

/// An operation that a lane begins, or several lanes of a warp together. Its operands are slots of the running window, and
/// its lanes are of the mask: what all here count on.
struct Issue<'a> {
    warp: Warp<'a>,
    /// The lane whose operands count.
    i: usize,
    lanes: u32,
}

impl Issue<'_> {
    fn lane(&self) -> usize {
        self.warp.lane(self.i)
    }

    fn misuse<T>(&self, why: &str) -> Outcome<T> {
        self.warp.misuse(self.i, why)
    }

    unsafe fn source(&self, index: usize, cx: &Cx<'_>) -> u64 {
        // SAFETY: the slot is an operand, and the lane one of the mask's.
        unsafe { self.warp.source(index, self.i, cx) }
    }

    /// A place in shared memory of the own block.
    unsafe fn shared(
        &self,
        index: usize,
        (bytes, align): (u64, u64),
        direction: Direction,
        cx: &mut Cx<'_>,
    ) -> Outcome<u64> {
        let address = &self.warp.operands.addresses[index];
        // SAFETY: the address is an operand.
        let at = unsafe {
            self.warp
                .address(address, self.i, (bytes.max(1), align), direction, cx)?
        };
        let own = cx.block.shared_address(at).map(peers::rank_of);
        if own != Some(cx.block.rank) {
            return self.misuse(&format!(
                "{:#x} is shared memory of another block of the cluster",
                at.wrapping_sub(cx.block.cluster_shared())
            ));
        }
        Ok(at)
    }

    /// The barrier that counts it, which keeps reports.
    unsafe fn barrier(&self, index: usize, cx: &mut Cx<'_>, state: &mut State) -> Outcome<u64> {
        // SAFETY: the address is an operand.
        let at = unsafe { self.shared(index, (BARRIER, BARRIER), Direction::Atomic, cx)? };
        check_barrier(cx, state, at, self.lane(), true)?;
        Ok(at)
    }

    /// Bytes that go and come in units.
    fn size(&self, bytes: u64) -> Outcome<u64> {
        match bytes.is_multiple_of(UNIT) {
            true => Ok(bytes),
            false => self.misuse(&format!("{bytes} bytes, which is no multiple of {UNIT}")),
        }
    }

    fn endpoint<'e>(&self, all: &'e [Endpoint], id: u32, team: bool, cx: &Cx<'_>) -> Outcome<&'e Endpoint> {
        let Some(endpoint) = endpoint::find(all, id) else {
            return self.misuse(&format!("there is no logical endpoint {id}"));
        };
        match (endpoint.is_team, team) {
            (false, true) => {
                return self.misuse(&format!(
                    "logical endpoint {id} is a unicast endpoint, and .multimem takes a multicast one"
                ));
            }
            (true, false) => {
                return self.misuse(&format!(
                    "logical endpoint {id} is a multicast endpoint, which only .multimem takes"
                ));
            }
            (false, false) | (true, true) => {}
        }
        if endpoint.missing > 0 {
            return self.misuse(&format!(
                "logical endpoint {id} is not complete: {} still to be added to its team",
                match endpoint.missing {
                    1 => "one device is".to_owned(),
                    devices => format!("{devices} devices are"),
                }
            ));
        }
        let device = cx.launch().device;
        if team && endpoint.members.iter().all(|member| member.device != device) {
            return self.misuse(&format!("device {device} is no member of logical endpoint {id}"));
        }
        Ok(endpoint)
    }

    /// Where bytes of an endpoint are shown, of each member.
    fn range(
        &self,
        endpoint: &Endpoint,
        offset: u64,
        (bytes, align): (u64, u64),
        direction: Direction,
        cx: &Cx<'_>,
    ) -> Outcome<Vec<u64>> {
        let id = endpoint.id;
        if !offset.is_multiple_of(align) {
            return self.misuse(&format!(
                "offset {offset:#x} of logical endpoint {id} is no multiple of {align}"
            ));
        }
        if offset.checked_add(bytes).is_none_or(|end| end > endpoint.bytes) {
            return self.misuse(&format!(
                "{bytes} bytes at offset {offset:#x} of logical endpoint {id}, which has {} bytes",
                endpoint.bytes
            ));
        }
        let at = |member: &endpoint::Member| match member.start + offset {
            at if access::anybody(cx.block.view, at, bytes, direction.bits()) => Ok(at),
            _ => self.misuse(&format!(
                "no memory of device {} is bound to the {bytes} bytes at offset {offset:#x} of logical endpoint {id}",
                member.device
            )),
        };
        endpoint.members.iter().map(at).collect()
    }

    /// Where a counter is shown, of each member; none if the operation has none. It is no part of the data from `offset`
    /// on.
    fn counters(
        &self,
        endpoint: &Endpoint,
        counter: Option<u64>,
        (offset, bytes): (u64, u64),
        cx: &Cx<'_>,
    ) -> Outcome<Vec<u64>> {
        let Some(counter) = counter else {
            return Ok(Vec::new());
        };
        if !endpoint.counts {
            return self.misuse(&format!(
                "logical endpoint {} was made without CU_LOGICAL_ENDPOINT_FLAG_COUNTED_OPS",
                endpoint.id
            ));
        }
        let counters = self.range(endpoint, counter, COUNTER, Direction::Atomic, cx)?;
        if counter < offset.saturating_add(bytes) && offset < counter + COUNTER.0 {
            return self.misuse(&format!(
                "the counter at offset {counter:#x} of logical endpoint {} lies in the data",
                endpoint.id
            ));
        }
        Ok(counters)
    }

    /// Tells of accesses by an endpoint.
    fn tell_fabric<const WATCHED: bool>(&self, at: &[u64], bytes: u64, direction: Direction, cx: &Cx<'_>) {
        if !WATCHED || bytes == 0 {
            return;
        }
        let none = Address {
            space: Space::Global,
            register: None,
            offset: 0,
        };
        let order = (Ordering::Relaxed, Some(Scope::Sys));
        let op = MemOp::new(&none, order, Box::new([]), cx.span);
        let (warp, lane) = (self.warp.warp, self.i);
        for &at in at {
            let mut addresses: Lanes = [0; WARP];
            addresses[lane] = at;
            access::tell::<WATCHED>(cx, &op, warp, 1 << lane, &addresses, bytes, direction, Proxy::Fabric);
        }
    }

    fn tell_shared<const WATCHED: bool>(&self, at: u64, bytes: u64, direction: Direction, cx: &Cx<'_>) {
        if bytes != 0 {
            access::tell_one::<WATCHED>(cx, self.lane(), (at, bytes), Space::Shared, direction, Proxy::Async);
        }
    }

    /// All has been checked: it begins, and its accesses are told.
    fn begin<const WATCHED: bool>(
        &self,
        begun: Begun,
        tell: impl FnOnce(&Self, &Cx<'_>),
        cx: &mut Cx<'_>,
        state: &mut State,
    ) {
        let number = state.asynchronous.number();
        let completion = Completion::Fabric {
            barrier: begun.barrier,
            count: begun.count as u32,
        };
        tell_begin::<WATCHED>(cx, number, (self.warp.warp, self.lanes), completion);
        cx.operation = Some(number);
        tell(self, cx);
        cx.operation = None;
        state.hold(Held {
            operation: Operation {
                owner: Owner::of(cx, self.lane()),
                line: None,
                work: begun.work,
                completion,
                number,
            },
            lanes: self.lanes,
            fetches: begun.fetches,
        });
    }

    /// `fabric.try_get`
    unsafe fn get<const WATCHED: bool>(&self, cx: &mut Cx<'_>, state: &mut State) -> Outcome {
        // SAFETY: the operands are slots, here and below.
        let [id, offset, bytes] = [0, 1, 2].map(|index| unsafe { self.source(index, cx) });
        let bytes = self.size(bytes)?;
        let all = endpoint::endpoints();
        let endpoint = self.endpoint(&all, id as u32, false, cx)?;
        let from = self.range(endpoint, offset, (bytes, UNIT), Direction::Read, cx)?;
        // SAFETY: the operands are slots.
        let (to, barrier) = unsafe {
            let to = self.shared(0, (bytes, UNIT), Direction::Write, cx)?;
            (to, self.barrier(1, cx, state)?)
        };
        let work = work::Get {
            to,
            from: from[0],
            bytes,
        };
        let begun = Begun {
            work: Box::new(work),
            barrier,
            count: bytes,
            fetches: true,
        };
        let tell = |this: &Self, cx: &Cx<'_>| {
            this.tell_fabric::<WATCHED>(&from, bytes, Direction::Read, cx);
            this.tell_shared::<WATCHED>(to, bytes, Direction::Write, cx);
        };
        self.begin::<WATCHED>(begun, tell, cx, state);
        Ok(())
    }

    /// `fabric.try_put`, `fabric.try_red`
    unsafe fn put<const WATCHED: bool>(
        &self,
        target: Target,
        masked: bool,
        reduction: Option<(Element, bool)>,
        cx: &mut Cx<'_>,
        state: &mut State,
    ) -> Outcome {
        // SAFETY: the operands are slots, here and below.
        let source = |index: usize| unsafe { self.source(index, cx) };
        let (id, offset) = (source(0), source(1));
        let (counter, next) = match target.counted {
            true => (Some(source(2)), 3),
            false => (None, 2),
        };
        let bytes = self.size(source(next))?;
        let mask = if masked { source(next + 1) as u16 } else { u16::MAX };
        let writes = match reduction {
            Some(_) => Direction::Atomic,
            None => Direction::Write,
        };
        let all = endpoint::endpoints();
        let endpoint = self.endpoint(&all, id as u32, target.team, cx)?;
        let to = self.range(endpoint, offset, (bytes, UNIT), writes, cx)?;
        let counters = self.counters(endpoint, counter, (offset, bytes), cx)?;
        // SAFETY: the operands are slots.
        let (from, barrier) = unsafe {
            let from = self.shared(0, (bytes, UNIT), Direction::Read, cx)?;
            (from, self.barrier(1, cx, state)?)
        };
        let work = work::Put {
            to: to.clone().into(),
            from,
            bytes,
            mask,
            reduction,
            counters: counters.clone().into(),
            taken: None,
        };
        let begun = Begun {
            work: Box::new(work),
            barrier,
            count: bytes / UNIT,
            fetches: false,
        };
        let tell = |this: &Self, cx: &Cx<'_>| {
            this.tell_shared::<WATCHED>(from, bytes, Direction::Read, cx);
            this.tell_fabric::<WATCHED>(&to, bytes, writes, cx);
            this.tell_fabric::<WATCHED>(&counters, COUNTER.0, Direction::Atomic, cx);
        };
        self.begin::<WATCHED>(begun, tell, cx, state);
        Ok(())
    }

    /// `fabric.try_atom`. In shared memory values stand in blocks of 16 bytes, where the offset's low bits say; of `cas`
    /// the replacement stands in a second block.
    unsafe fn atom<const WATCHED: bool>(
        &self,
        op: AtomicOp,
        ty: AtomicType,
        cx: &mut Cx<'_>,
        state: &mut State,
    ) -> Outcome {
        let fetch = atomic::fetch(op, ty);
        let bytes = fetch.bytes as u64;
        // SAFETY: the operands are slots, here and below.
        let [id, offset] = [0, 1].map(|index| unsafe { self.source(index, cx) });
        let all = endpoint::endpoints();
        let endpoint = self.endpoint(&all, id as u32, false, cx)?;
        let at = self.range(endpoint, offset, (bytes, bytes), Direction::Atomic, cx)?;
        let blocks = match op {
            AtomicOp::Cas => 2 * UNIT,
            AtomicOp::Add
            | AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor
            | AtomicOp::Inc
            | AtomicOp::Dec
            | AtomicOp::Exch => UNIT,
        };
        // SAFETY: the operands are slots.
        let (to, from, barrier) = unsafe {
            let to = self.shared(0, (UNIT, UNIT), Direction::Write, cx)?;
            let from = self.shared(1, (blocks, blocks), Direction::Read, cx)?;
            (to, from, self.barrier(2, cx, state)?)
        };
        let place = offset % UNIT;
        let (value, old) = (from + place, to + place);
        let work = work::Atom {
            at: at[0],
            values: [value, value + blocks - UNIT],
            old,
            fetch,
            flushes: flushes(op, ty),
            taken: None,
        };
        let begun = Begun {
            work: Box::new(work),
            barrier,
            count: 1,
            fetches: false,
        };
        let tell = |this: &Self, cx: &Cx<'_>| {
            for block in (0..blocks).step_by(UNIT as usize) {
                this.tell_shared::<WATCHED>(value + block, bytes, Direction::Read, cx);
            }
            this.tell_fabric::<WATCHED>(&at, bytes, Direction::Atomic, cx);
            this.tell_shared::<WATCHED>(old, bytes, Direction::Write, cx);
        };
        self.begin::<WATCHED>(begun, tell, cx, state);
        Ok(())
    }

    /// `fabric.try_pullred`, which all lanes begin with the same operands.
    unsafe fn pull_reduce<const WATCHED: bool>(
        &self,
        reduction: Reduction,
        cx: &mut Cx<'_>,
        state: &mut State,
    ) -> Outcome {
        // SAFETY: the operands are slots, and the lanes are of the mask.
        unsafe { self.check_same(cx)? };
        // SAFETY: the operands are slots, here and below.
        let [id, offset, bytes] = [0, 1, 2].map(|index| unsafe { self.source(index, cx) });
        let bytes = self.size(bytes)?;
        let all = endpoint::endpoints();
        let endpoint = self.endpoint(&all, id as u32, true, cx)?;
        let from = self.range(endpoint, offset, (bytes, UNIT), Direction::Read, cx)?;
        // SAFETY: the operands are slots.
        let (to, barrier) = unsafe {
            let to = self.shared(0, (bytes, UNIT), Direction::Write, cx)?;
            (to, self.barrier(1, cx, state)?)
        };
        let work = work::PullReduce {
            to,
            from: from.clone().into(),
            bytes,
            reduction,
        };
        let begun = Begun {
            work: Box::new(work),
            barrier,
            count: bytes,
            fetches: true,
        };
        let tell = |this: &Self, cx: &Cx<'_>| {
            this.tell_fabric::<WATCHED>(&from, bytes, Direction::Read, cx);
            this.tell_shared::<WATCHED>(to, bytes, Direction::Write, cx);
        };
        self.begin::<WATCHED>(begun, tell, cx, state);
        Ok(())
    }

    /// Whether all lanes have the same operands.
    unsafe fn check_same(&self, cx: &mut Cx<'_>) -> Outcome {
        let operands = self.warp.operands;
        for other in bits(self.lanes).skip(1) {
            // SAFETY: the slots are operands, and the lanes are of the mask.
            let same =
                |index: usize| unsafe { self.warp.source(index, other, cx) == self.warp.source(index, self.i, cx) };
            let mut differ = !(0..operands.src.len()).all(same);
            for address in &operands.addresses {
                // SAFETY: the addresses are operands, and the lanes are of the mask.
                let [one, first] = unsafe {
                    [
                        self.warp.address(address, other, (1, 1), Direction::Write, cx)?,
                        self.warp.address(address, self.i, (1, 1), Direction::Write, cx)?,
                    ]
                };
                differ |= one != first;
            }
            if differ {
                let why = "lanes of a warp have different operands";
                return self.warp.misuse(other, why);
            }
        }
        Ok(())
    }
}

/// An operation that has been checked.
struct Begun {
    work: Box<dyn Work>,
    barrier: u64,
    /// What the barrier counts.
    count: u64,
    /// It reads from the endpoint.
    fetches: bool,
}
