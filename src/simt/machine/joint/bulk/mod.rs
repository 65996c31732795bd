//! Copies, stores and reductions that go on without the thread (PTX ISA, Data Movement and Conversion Instructions:
//! cp.async.bulk, cp.reduce.async.bulk, st.async, red.async, st.bulk).
//!
//! Addresses, sizes and barriers are checked as an operation begins; what it does to memory is a [`Work`].

mod stores;

use crate::isa::joint::bulk::{Copy, Op, Pattern, Route};
use crate::isa::lanes::WARP;
use crate::memory::multicast;
use crate::program::{Address, CopyGroup, Ordering, Proxy, Space, value_bytes};
use crate::simt::cause::Cause;
use crate::simt::machine::access::{self, Lanes, MemOp};
use crate::simt::machine::asynchronous::{Completion, Operation, Owner, Work};
use crate::simt::machine::atomic::{self, Element};
use crate::simt::machine::context::{Cx, Env, RawFault};
use crate::simt::machine::held::{Accessed, Held};
use crate::simt::machine::mbarrier::{self, Report};
use crate::simt::machine::observe::{Completes, Direction, SyncEvent};
use crate::simt::machine::slots::{Slot, bits, lanes, read};
use crate::simt::machine::state::State;
use crate::simt::machine::step::{Operands, Step};
use crate::simt::machine::window;

/// What sizes and addresses of bulk copies are multiples of.
const UNIT: u64 = 16;

/// # Safety
/// Slots of `operands` lie in the running window.
pub(super) unsafe fn execute<const WATCHED: bool>(
    op: Op,
    operands: &Operands,
    cx: &mut Cx<'_>,
    state: &mut State,
) -> Step {
    // SAFETY: what the functions ask for is what this one is promised.
    let done = unsafe {
        match op {
            Op::Copy(copy) => transfer::<WATCHED>(copy, None, operands, cx, state),
            Op::Reduce { route, op, ty, .. } => {
                let copy = Copy {
                    route,
                    multicast: false,
                    ignores_ends: false,
                    masked: false,
                    report: None,
                };
                // Unlike atom and red, it keeps subnormals of f32, as seen on an H100.
                let reduction = Reduction {
                    element: atomic::element(op, ty),
                    flushes: false,
                };
                transfer::<WATCHED>(copy, Some(reduction), operands, cx, state)
            }
            Op::CommitGroup => {
                for lane in lanes(&cx.mask.lanes) {
                    state.commit_group(Owner::of(cx, lane));
                }
                tell_group::<WATCHED>(cx, CopyGroup::Commit, false);
                Ok(())
            }
            Op::WaitGroup { read } => wait_group::<WATCHED>(read, operands, cx, state),
            Op::Store { ty, elements } => {
                let bytes = value_bytes(ty) as usize;
                stores::store::<WATCHED>((None, bytes, elements.into()), operands, cx, state)
            }
            Op::Update { op, ty } => {
                let element = atomic::element(op, ty);
                stores::store::<WATCHED>((Some(element), element.bytes, 1), operands, cx, state)
            }
            Op::StoreGlobal { ty, .. } => {
                let bytes = value_bytes(ty) as usize;
                stores::store::<WATCHED>((None, bytes, 1), operands, cx, state)
            }
            Op::UpdateGlobal { op, ty, .. } => {
                let element = atomic::element(op, ty);
                stores::store::<WATCHED>((Some(element), element.bytes, 1), operands, cx, state)
            }
            Op::Clear => stores::clear::<WATCHED>(operands, cx),
        }
    };
    match done.and_then(|()| state.draw_behind(cx)) {
        Ok(()) => Step::Done,
        Err(fault) => Step::Fault(fault),
    }
}

fn tell_group<const WATCHED: bool>(cx: &Cx<'_>, group: CopyGroup, read: bool) {
    cx.synchronised::<WATCHED>(|| SyncEvent::BulkCopies {
        lanes: cx.mask.lanes,
        group,
        read,
    });
}

/// `cp.async.bulk.wait_group{.read} n`
///
/// # Safety
/// Slots of `operands` lie in the running window.
unsafe fn wait_group<const WATCHED: bool>(
    of_sources: bool,
    operands: &Operands,
    cx: &Cx<'_>,
    state: &mut State,
) -> Result<(), RawFault> {
    let mut but = 0;
    for lane in lanes(&cx.mask.lanes) {
        // SAFETY: the number is a slot of the running window, `lane` is of the mask.
        but = unsafe { read(cx.regs, operands.src[0], lane) } as u32;
        let owner = Owner::of(cx, lane);
        let waited = state.wait_group(cx.block, owner, but, of_sources);
        waited.map_err(|cause| RawFault::new(cause, lane))?;
    }
    tell_group::<WATCHED>(cx, CopyGroup::Wait(but), of_sources);
    Ok(())
}

/// Addresses of a warp's lanes, without a check of what lies there beyond the first byte.
///
/// # Safety
/// The register of the address is a slot of the running window.
pub(super) unsafe fn places(
    cx: &mut Cx<'_>,
    address: &Address<Slot>,
    w: usize,
    direction: Direction,
) -> Result<Lanes, RawFault> {
    let mem = MemOp::new(address, (Ordering::Weak, None), Box::new([]), cx.span);
    let mut out: Lanes = [0; WARP];
    let active = cx.mask.lanes[w];
    // SAFETY: the caller promises it of the register.
    match unsafe { access::addresses(cx, &mem, w, active, 1, direction, &mut out) } {
        true => Ok(out),
        false => Err(cx.fault.take().expect("what is refused has a reason")),
    }
}

/// Checks a range that a lane names, and tells of it.
pub(super) fn range<const WATCHED: bool>(
    cx: &mut Cx<'_>,
    space: Space,
    lane: usize,
    (address, bytes, align): (u64, u64, u64),
    (direction, proxy): (Direction, Proxy),
) -> Result<(), RawFault> {
    if !access::check_range(cx, space, lane, address, (bytes, align), direction) {
        return Err(cx.fault.take().expect("what is refused has a reason"));
    }
    access::tell_one::<WATCHED>(cx, lane, (address, bytes), space, direction, proxy);
    Ok(())
}

/// Checks that there is a barrier at `at` that an operation can complete.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check_barrier(
    cx: &Cx<'_>,
    state: &mut State,
    at: u64,
    lane: usize,
    reports: bool,
) -> Result<(), RawFault> {
    if !window::is_shared(cx.block, at, 8) {
        return Err(RawFault::misuse(
            format!("an mbarrier at {at:#x}, which is not in shared memory"),
            lane,
        ));
    }
    if !at.is_multiple_of(8) {
        return Err(RawFault::misaligned(at, 8, lane));
    }
    let object = match state.asynchronous.barriers.has(at) {
        // SAFETY: 8 aligned bytes of shared memory of the running block.
        true => unsafe { mbarrier::load(at) },
        false => Err(mbarrier::NONE_THERE.to_owned()),
    };
    let object = object.and_then(|mut object| if reports { object.report(0) } else { Ok(()) });
    object.map_err(|why| RawFault {
        cause: mbarrier::misuse(at.wrapping_sub(cx.block.cluster_shared()), &why),
        lane,
        others: 0,
    })
}

#[derive(Clone, Copy)]
struct Reduction {
    element: Element,
    flushes: bool,
}

/// A bulk copy or reduction that is under way.
struct Transfer {
    to: u64,
    from: u64,
    bytes: u64,
    reduction: Option<Reduction>,
    /// Which bytes of each sixteen are written.
    mask: u16,
    report: Option<Pattern>,
    /// What was read, if that had to be done before.
    taken: Option<Vec<u8>>,
}

impl Work for Transfer {
    fn read(&mut self, env: &Env<'_>) -> Result<bool, Cause> {
        if self.taken.is_some() {
            return Ok(true);
        }
        access::still(env, self.from, self.bytes, Direction::Read)?;
        let mut taken = Vec::new();
        if taken.try_reserve_exact(self.bytes as usize).is_err() {
            return Ok(false);
        }
        // SAFETY: the source was checked, and found to be there still.
        taken.extend_from_slice(unsafe { std::slice::from_raw_parts(self.from as *const u8, self.bytes as usize) });
        self.taken = Some(taken);
        Ok(true)
    }

    fn finish(&mut self, env: &Env<'_>) -> Result<Report, Cause> {
        if self.bytes == 0 {
            return Ok(Report::default());
        }
        access::still(env, self.to, self.bytes, Direction::Write)?;
        let from = match &self.taken {
            Some(taken) => taken.as_ptr() as u64,
            None => {
                access::still(env, self.from, self.bytes, Direction::Read)?;
                self.from
            }
        };
        let bytes = self.bytes as usize;
        // SAFETY: both ranges were checked when this began, and found to be there still; they may overlap.
        unsafe {
            match self.reduction {
                Some(Reduction { element, flushes }) => {
                    for at in (0..self.bytes).step_by(element.bytes) {
                        (element.apply)(self.to + at, from + at, flushes);
                    }
                }
                None if self.mask == u16::MAX => std::ptr::copy(from as *const u8, self.to as *mut u8, bytes),
                None => {
                    for at in (0..bytes).filter(|at| self.mask >> (at % 16) & 1 == 1) {
                        (self.to as *mut u8).add(at).write((from as *const u8).add(at).read());
                    }
                }
            }
            let set = self.report.is_some_and(|pattern| {
                // What was copied, as it lies in the destination.
                pattern.matches(std::slice::from_raw_parts(self.to as *const u8, bytes))
            });
            Ok(Report { set, value: 0 })
        }
    }
}

/// `cp.async.bulk`, `cp.reduce.async.bulk`
///
/// # Safety
/// Slots of `operands` lie in the running window.
unsafe fn transfer<const WATCHED: bool>(
    copy: Copy,
    reduction: Option<Reduction>,
    operands: &Operands,
    cx: &mut Cx<'_>,
    state: &mut State,
) -> Result<(), RawFault> {
    let writes = match reduction {
        Some(_) => Direction::Atomic,
        None => Direction::Write,
    };
    for w in 0..cx.mask.warps as usize {
        if cx.mask.lanes[w] == 0 {
            continue;
        }
        // SAFETY: the registers of the addresses are slots of the running window.
        let (to, from, barriers) = unsafe {
            (
                places(cx, &operands.addresses[0], w, writes)?,
                places(cx, &operands.addresses[1], w, Direction::Read)?,
                match operands.addresses.get(2) {
                    Some(barrier) => Some(places(cx, barrier, w, Direction::Atomic)?),
                    None => None,
                },
            )
        };
        for i in bits(cx.mask.lanes[w]) {
            let lane = w * WARP + i;
            // SAFETY: the values are slots of the running window, `lane` is of the mask.
            let value = |n: usize| unsafe { read(cx.regs, operands.src[n], lane) };
            let bytes = u64::from(value(0) as u32);
            let (left, right) = match copy.ignores_ends {
                true => (value(1), value(2)),
                false => (0, 0),
            };
            let mask = if copy.masked { value(1) as u16 } else { u16::MAX };
            let blocks = copy.multicast.then(|| value(1) as u32);
            check_units(bytes, (to[i], from[i]), lane)?;
            if left > 15 || right > 15 {
                let why =
                    format!("a bulk copy that ignores {left} and {right} bytes at its ends: at most 15 are ignored");
                return Err(RawFault::misuse(why, lane));
            }
            let there = bytes.saturating_sub(left + right);
            let one = Begun {
                lane,
                copy,
                reduction,
                to: to[i],
                from: from[i] + left,
                skip: left,
                bytes: there,
                counted: bytes as u32,
                mask,
                barrier: barriers.map(|barriers| barriers[i]),
                spaces: [operands.addresses[0].space, operands.addresses[1].space],
                // SAFETY: the operands are slots of the running window, `lane` is of the mask.
                held: [0, 1].map(|number| unsafe { Held::of(operands, number, lane, cx) }),
            };
            match blocks {
                None => one.begin::<WATCHED>(cx, state)?,
                Some(blocks) => {
                    for rank in bits(blocks) {
                        one.in_block(cx, rank as u32)?.begin::<WATCHED>(cx, state)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// `multimem.cp.async.bulk`, `multimem.cp.reduce.async.bulk`: to the memory of all members of a team.
///
/// # Safety
/// Slots of `operands` lie in the running window.
pub(super) unsafe fn to_team<const WATCHED: bool>(
    masked: bool,
    reduction: Option<(Element, bool)>,
    operands: &Operands,
    cx: &mut Cx<'_>,
    state: &mut State,
) -> Result<(), RawFault> {
    let copy = Copy {
        route: Route::SharedToGlobal,
        multicast: false,
        ignores_ends: false,
        masked,
        report: None,
    };
    let reduction = reduction.map(|(element, flushes)| Reduction { element, flushes });
    let teams = multicast::teams();
    for w in 0..cx.mask.warps as usize {
        if cx.mask.lanes[w] == 0 {
            continue;
        }
        // SAFETY: the registers of the addresses are slots of the running window.
        let (to, from) = unsafe {
            (
                places(cx, &operands.addresses[0], w, Direction::Write)?,
                places(cx, &operands.addresses[1], w, Direction::Read)?,
            )
        };
        for i in bits(cx.mask.lanes[w]) {
            let lane = w * WARP + i;
            // SAFETY: the values are slots of the running window, `lane` is of the mask.
            let value = |n: usize| unsafe { read(cx.regs, operands.src[n], lane) };
            let bytes = u64::from(value(0) as u32);
            let mask = if masked { value(1) as u16 } else { u16::MAX };
            check_units(bytes, (to[i], from[i]), lane)?;
            let team = multicast::find(&teams, to[i], bytes).ok_or_else(|| RawFault::no_team(to[i], bytes, lane))?;
            for &member in &team.members {
                let one = Begun {
                    lane,
                    copy,
                    reduction,
                    to: member + (to[i] - team.start),
                    from: from[i],
                    skip: 0,
                    bytes,
                    counted: bytes as u32,
                    mask,
                    barrier: None,
                    spaces: [operands.addresses[0].space, operands.addresses[1].space],
                    held: [Held::default(); 2],
                };
                one.begin::<WATCHED>(cx, state)?;
            }
        }
    }
    state.draw_behind(cx)
}

/// Whether sizes and addresses are multiples of 16 bytes.
fn check_units(bytes: u64, (to, from): (u64, u64), lane: usize) -> Result<(), RawFault> {
    if !bytes.is_multiple_of(UNIT) {
        let why = format!("a bulk copy of {bytes} bytes, which is no multiple of {UNIT}");
        return Err(RawFault::misuse(why, lane));
    }
    match [to, from].into_iter().find(|at| !at.is_multiple_of(UNIT)) {
        None => Ok(()),
        Some(address) => {
            let bytes = UNIT as u32;
            let cause = Cause::Misaligned { address, bytes };
            Err(RawFault::new(cause, lane))
        }
    }
}

/// A bulk copy of one lane, to one block.
struct Begun {
    lane: usize,
    copy: Copy,
    reduction: Option<Reduction>,
    to: u64,
    from: u64,
    /// Bytes of the destination before what is written.
    skip: u64,
    /// Bytes that are copied, and those that its barrier counts.
    bytes: u64,
    counted: u32,
    mask: u16,
    barrier: Option<u64>,
    spaces: [Space; 2],
    /// In which objects it stays.
    held: [Held; 2],
}

impl Begun {
    /// The same into the block of this rank.
    fn in_block(&self, cx: &Cx<'_>, rank: u32) -> Result<Begun, RawFault> {
        let there = |at| {
            window::in_block(cx.block, at, rank).ok_or_else(|| {
                let why = format!("a bulk copy to block {rank} of the cluster, which there is not");
                RawFault::misuse(why, self.lane)
            })
        };
        Ok(Begun {
            to: there(self.to)?,
            barrier: self.barrier.map(there).transpose()?,
            ..*self
        })
    }

    fn begin<const WATCHED: bool>(&self, cx: &mut Cx<'_>, state: &mut State) -> Result<(), RawFault> {
        let operation = state.asynchronous.number();
        let completion = match self.barrier {
            Some(barrier) => {
                check_barrier(cx, state, barrier, self.lane, self.copy.report.is_some())?;
                Completion::Bytes {
                    barrier,
                    bytes: self.counted,
                }
            }
            None => Completion::Group,
        };
        cx.operation = Some(operation);
        tell_begin::<WATCHED>(cx, operation, (self.lane / WARP, 1 << (self.lane % WARP)), completion);
        let writes = match self.reduction {
            Some(_) => Direction::Atomic,
            None => Direction::Write,
        };
        if self.bytes != 0 {
            let to = (self.to + self.skip, self.bytes, 1);
            range::<WATCHED>(cx, self.spaces[0], self.lane, to, (writes, Proxy::Async))?;
            let from = (self.from, self.bytes, 1);
            range::<WATCHED>(cx, self.spaces[1], self.lane, from, (Direction::Read, Proxy::Async))?;
            self.check_objects(cx)?;
            if self.reduction.is_none() {
                cx.copied::<WATCHED>(self.lane, self.from, self.to + self.skip, self.bytes);
            }
        }
        cx.operation = None;
        state.begin(Operation {
            owner: Owner::of(cx, self.lane),
            line: None,
            work: Box::new(Transfer {
                to: self.to + self.skip,
                from: self.from,
                bytes: self.bytes,
                reduction: self.reduction,
                mask: self.mask,
                report: self.copy.report,
                taken: None,
            }),
            completion,
            number: operation,
        });
        Ok(())
    }
}

impl Begun {
    /// What is read, and what of the destination is written, stays in its object.
    fn check_objects(&self, cx: &Cx<'_>) -> Result<(), RawFault> {
        let [to, from] = self.held;
        // Of the first and the last sixteen bytes those count that are written.
        let (before, behind) = match self.mask {
            0 => return Ok(()),
            mask => (u64::from(mask.trailing_zeros()), u64::from(mask.leading_zeros())),
        };
        let accessed = |address, bytes, write, space| Accessed {
            address,
            bytes,
            write,
            space,
            lane: self.lane,
        };
        let written = self.bytes - before - behind;
        let write = accessed(self.to + self.skip + before, written, true, self.spaces[0]);
        to.check(write, cx.block)?;
        from.check(accessed(self.from, self.bytes, false, self.spaces[1]), cx.block)
    }
}

pub(super) fn tell_begin<const WATCHED: bool>(
    cx: &Cx<'_>,
    operation: u64,
    (warp, lanes): (usize, u32),
    completion: Completion,
) {
    cx.synchronised::<WATCHED>(|| SyncEvent::Begin {
        operation,
        warp,
        lanes,
        completes: match completion {
            Completion::Nothing => Completes::Nothing,
            Completion::Group => Completes::BulkGroup,
            Completion::Bytes { barrier, bytes } => Completes::Bytes { barrier, bytes },
            Completion::Fabric { barrier, count: bytes } => Completes::Bytes { barrier, bytes },
            Completion::Arrival { barrier } => Completes::Arrival { barrier },
        },
    });
}
