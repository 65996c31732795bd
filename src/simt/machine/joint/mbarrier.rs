//! `mbarrier` and `cp.async.mbarrier.arrive` (PTX ISA, Parallel Synchronization and Communication Instructions:
//! mbarrier).
//!
//! Lanes do what they do one after the other. A lane whose phase is not over waits: for `try_wait` that is what the ISA
//! says, up to a time limit that is the system's; `test_wait` does after some fruitless looks of the block, so that
//! loops around it cost as little. Both come back with `false` when nobody else gets on, or has run for long meanwhile.

use crate::isa::joint::mbarrier::{Arrive, Op, Wait};
use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::isa::types;
use crate::program::{Ordering, Scope};
use crate::simt::cause::Cause;
use crate::simt::machine::access::{self, Lanes, MemOp};
use crate::simt::machine::context::{Cx, RawFault};
use crate::simt::machine::mbarrier::{self, Mbarrier, Token};
use crate::simt::machine::observe::{Direction, MbarrierEvent, SyncEvent, Use};
use crate::simt::machine::slots::{Slot, bits, read, write};
use crate::simt::machine::state::State;
use crate::simt::machine::step::{Operands, Step};
use crate::simt::machine::window;

/// Looks in vain after which `test_wait` waits, in blocks of one warp; more where there are more threads.
const LOOKS: u32 = 64;

/// Bytes of an object, and what its address is a multiple of.
const BYTES: u64 = 8;

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
            Op::Wait(wait) => return look::<WATCHED>(wait, operands, cx, state),
            Op::PendingCount => {
                pending_count(operands, cx);
                Ok(())
            }
            Op::Init { layout } => {
                let [count] = *operands.src else {
                    unreachable!("lowering gives `init` a count")
                };
                each::<WATCHED>((op, operands, MbarrierEvent::Init), cx, state, |cx, state, lane, at| {
                    let count = read(cx.regs, count, lane) as u32;
                    let object = Mbarrier::new(layout, count)?;
                    (at as *mut u64).write(object.encode());
                    state.asynchronous.barriers.add(at);
                    Ok(())
                })
            }
            Op::Invalidate => each::<WATCHED>(
                (op, operands, MbarrierEvent::Invalidate),
                cx,
                state,
                |_, state, _, at| {
                    state.asynchronous.barriers.remove(at);
                    // What is still to complete there finds out.
                    (at as *mut u64).write(0);
                    Ok(())
                },
            ),
            Op::CheckLayout { layout } => {
                let dst = operands.dst[0];
                let event = MbarrierEvent::Look { over: 0 };
                each::<WATCHED>((op, operands, event), cx, state, |cx, _, lane, at| {
                    let object = mbarrier::load(at)?;
                    give(cx, dst, lane, u64::from(object.layout == layout));
                    Ok(())
                })
            }
            Op::Transactions {
                complete, multicast, ..
            } => {
                let event = match complete {
                    true => MbarrierEvent::Complete,
                    false => MbarrierEvent::Expect,
                };
                each::<WATCHED>((op, operands, event), cx, state, |cx, state, lane, at| {
                    let bytes = i64::from(read(cx.regs, operands.src[0], lane) as u32);
                    let blocks = multicast.then(|| read(cx.regs, operands.src[1], lane) as u32);
                    in_blocks(cx, at, blocks, |at| {
                        let change = |object: &mut Mbarrier| match complete {
                            true => object.complete(bytes),
                            false => object.expect(bytes),
                        };
                        state.changed |= update(state, at, change)?;
                        Ok(())
                    })
                })
            }
            Op::Arrive(arrive) => arrive_at::<WATCHED>(arrive, operands, cx, state),
            Op::CopiesArrive { increments } => copies_arrive::<WATCHED>(increments, operands, cx, state),
        }
    };
    match done.and_then(|()| state.draw_behind(cx)) {
        Ok(()) => Step::Done,
        Err(fault) => Step::Fault(fault),
    }
}

/// Writes a result, if it is wanted.
///
/// # Safety
/// `dst` lies in the running window.
unsafe fn give(cx: &Cx<'_>, dst: Option<Slot>, lane: usize, value: u64) {
    if let Some(dst) = dst {
        // SAFETY: the caller promises that the slot lies in the running window, and `lane` is of the mask.
        unsafe { write(cx.regs, dst, lane, value) };
    }
}

/// How the instruction orders other accesses.
fn order(op: Op) -> (Ordering, Option<Scope>) {
    let strength = |ordering: types::Ordering| match ordering {
        types::Ordering::Acquire => Ordering::Acquire,
        types::Ordering::Release => Ordering::Release,
        types::Ordering::AcqRel | types::Ordering::Sc => Ordering::AcqRel,
        types::Ordering::Weak | types::Ordering::Volatile | types::Ordering::Relaxed | types::Ordering::Mmio => {
            Ordering::Relaxed
        }
    };
    match op {
        Op::Arrive(Arrive { ordering, scope, .. }) | Op::Wait(Wait { ordering, scope, .. }) => {
            (strength(ordering), Some(scope))
        }
        Op::Transactions { scope, .. } => (Ordering::Relaxed, Some(scope)),
        Op::Init { .. } | Op::Invalidate | Op::CheckLayout { .. } | Op::PendingCount | Op::CopiesArrive { .. } => {
            (Ordering::Weak, None)
        }
    }
}

/// Addresses of the barriers of a warp's lanes, all of which lie in shared memory.
///
/// # Safety
/// The register of the address is a slot of the running window.
unsafe fn addresses(cx: &mut Cx<'_>, mem: &MemOp, w: usize, active: u32, out: &mut Lanes) -> Result<(), RawFault> {
    // SAFETY: the register of the address is a slot of the running window.
    let good = unsafe { access::addresses(cx, mem, w, active, BYTES, Direction::Atomic, out) }
        && access::check_lanes(cx, mem.space, w, active, out, BYTES, Direction::Atomic);
    if !good {
        return Err(cx.fault.take().expect("what is refused has a reason"));
    }
    for i in bits(active) {
        if !window::is_shared(cx.block, out[i], BYTES) {
            let why = format!("an mbarrier at {:#x}, which is not in shared memory", out[i]);
            return Err(RawFault::misuse(why, w * WARP + i));
        }
    }
    Ok(())
}

/// Does something for each lane, at the barrier that it names.
///
/// # Safety
/// The register of the address is a slot of the running window. `act` gets addresses of 8 bytes of shared memory.
unsafe fn each<const WATCHED: bool>(
    (op, operands, what): (Op, &Operands, MbarrierEvent),
    cx: &mut Cx<'_>,
    state: &mut State,
    mut act: impl FnMut(&Cx<'_>, &mut State, usize, u64) -> Result<(), String>,
) -> Result<(), RawFault> {
    let (ordering, scope) = order(op);
    let mem = MemOp::new(&operands.addresses[0], (Ordering::Weak, None), Box::new([]), cx.span);
    for w in 0..cx.mask.warps as usize {
        let active = cx.mask.lanes[w];
        if active == 0 {
            continue;
        }
        let mut at: Lanes = [0; WARP];
        // SAFETY: the caller promises of the register what the function asks for.
        unsafe { addresses(cx, &mem, w, active, &mut at) }?;
        let event = |what, parities| SyncEvent::Mbarrier {
            warp: w,
            lanes: active,
            addresses: at,
            parities,
            ordering,
            scope,
            what,
        };
        if what == MbarrierEvent::Arrive {
            cx.synchronised::<WATCHED>(|| event(MbarrierEvent::Arriving, 0));
        }
        let mut parities = 0;
        let mut seen = Seen::new::<WATCHED>();
        for i in bits(active) {
            let lane = w * WARP + i;
            if let Some(seen) = &mut seen {
                // SAFETY: the operands are slots of the running window, the address is that of 8 bytes of shared memory.
                unsafe { seen.note(operands, cx, state, (lane, at[i])) };
            }
            let is_there = matches!(op, Op::Init { .. }) || state.asynchronous.barriers.has(at[i]);
            let done = match is_there {
                true => act(cx, state, lane, at[i]),
                false => Err(mbarrier::NONE_THERE.to_owned()),
            };
            done.map_err(|why| misuse(cx, at[i], &why, lane))?;
            if WATCHED {
                // Before the next lane comes: it may end another phase.
                parities |= u32::from(parity(at[i])) << i;
            }
        }
        if let Some(seen) = seen {
            seen.tell::<WATCHED>(cx, (w, active), at, what);
        }
        cx.synchronised::<WATCHED>(|| event(what, parities));
    }
    Ok(())
}

/// What lanes of a warp find at barriers, for observers.
struct Seen {
    found: Box<[Option<Mbarrier>; WARP]>,
    values: Box<Lanes>,
}

impl Seen {
    fn new<const WATCHED: bool>() -> Option<Seen> {
        WATCHED.then(|| Seen {
            found: Box::new([None; WARP]),
            values: Box::new([0; WARP]),
        })
    }

    /// # Safety
    /// Slots of `operands` lie in the running window, and the address is that of 8 bytes of shared memory, a multiple of 8.
    unsafe fn note(&mut self, operands: &Operands, cx: &Cx<'_>, state: &mut State, (lane, at): (usize, u64)) {
        if state.asynchronous.barriers.has(at) {
            // SAFETY: the caller promises it of the address.
            self.found[lane % WARP] = unsafe { mbarrier::load(at) }.ok();
        }
        if let Some(&operand) = operands.src.first() {
            // SAFETY: the caller promises it of the operands.
            self.values[lane % WARP] = unsafe { read(cx.regs, operand, lane) };
        }
    }

    fn tell<const WATCHED: bool>(
        self,
        cx: &Cx<'_>,
        (warp, lanes): (usize, u32),
        addresses: Lanes,
        what: MbarrierEvent,
    ) {
        cx.used::<WATCHED>(|| Use::Mbarrier {
            warp,
            lanes,
            addresses,
            found: self.found,
            values: self.values,
            what,
        });
    }
}

/// The parity of the current phase of the object at an address that was checked.
fn parity(at: u64) -> bool {
    // SAFETY: such an address is that of 8 bytes of shared memory.
    unsafe { mbarrier::load(at) }.is_ok_and(|object| object.phase)
}

#[cold]
fn misuse(cx: &Cx<'_>, at: u64, why: &str, lane: usize) -> RawFault {
    RawFault {
        cause: mbarrier::misuse(at.wrapping_sub(cx.block.cluster_shared()), why),
        lane,
        others: 0,
    }
}

/// Changes the object at `at`, if there is one.
///
/// # Safety
/// `at` is the address of 8 bytes of shared memory, a multiple of 8.
unsafe fn update<T>(
    state: &mut State,
    at: u64,
    change: impl FnOnce(&mut Mbarrier) -> Result<T, String>,
) -> Result<T, String> {
    match state.asynchronous.barriers.has(at) {
        // SAFETY: the caller promises it of the address.
        true => unsafe { mbarrier::update(at, change) },
        false => Err(mbarrier::NONE_THERE.to_owned()),
    }
}

/// Does something at the barrier at `at`, or at those at its place in the blocks of a mask.
pub(super) fn in_blocks(
    cx: &Cx<'_>,
    at: u64,
    blocks: Option<u32>,
    mut act: impl FnMut(u64) -> Result<(), String>,
) -> Result<(), String> {
    let Some(blocks) = blocks else { return act(at) };
    for rank in bits(blocks) {
        let there = window::in_block(cx.block, at, rank as u32)
            .ok_or_else(|| format!("is named in block {rank} of the cluster, which there is not"))?;
        act(there)?;
    }
    Ok(())
}

/// `mbarrier.arrive`, `mbarrier.arrive_drop`
///
/// # Safety
/// Slots of `operands` lie in the running window.
unsafe fn arrive_at<const WATCHED: bool>(
    arrive: Arrive,
    operands: &Operands,
    cx: &mut Cx<'_>,
    state: &mut State,
) -> Result<(), RawFault> {
    let dst = operands.dst[0];
    let act = |cx: &Cx<'_>, state: &mut State, lane, at| {
        // SAFETY: the slots lie in the running window, and `each` gives addresses of objects in shared memory.
        unsafe {
            let number = read(cx.regs, operands.src[0], lane) as u32;
            let blocks = arrive.multicast.then(|| read(cx.regs, operands.src[1], lane) as u32);
            let (count, bytes) = match arrive.expects {
                true => (1, i64::from(number)),
                false => (number, 0),
            };
            in_blocks(cx, at, blocks, |at| {
                let (token, over) = update(state, at, |object| {
                    let token = object.encode();
                    if arrive.expects {
                        // Not over before this one has arrived.
                        object.expect(bytes)?;
                    }
                    let over = match arrive.drops {
                        true => object.drop(count)?,
                        false => object.arrive(count)?,
                    };
                    if over && !arrive.completes {
                        return Err("is complete by an arrival that must not complete it (.noComplete)".to_owned());
                    }
                    Ok((token, over))
                })?;
                state.changed |= over;
                give(cx, dst, lane, token);
                Ok(())
            })
        }
    };
    // SAFETY: the register of the address is a slot of the running window.
    unsafe { each::<WATCHED>((Op::Arrive(arrive), operands, MbarrierEvent::Arrive), cx, state, act) }
}

/// `cp.async.mbarrier.arrive{.noinc}`
///
/// # Safety
/// Slots of `operands` lie in the running window.
unsafe fn copies_arrive<const WATCHED: bool>(
    increments: bool,
    operands: &Operands,
    cx: &mut Cx<'_>,
    state: &mut State,
) -> Result<(), RawFault> {
    let op = Op::CopiesArrive { increments };
    let first_warp = cx.first_thread as usize / WARP;
    let mut begun: Option<(usize, u32, u64)> = None;
    let act = |_: &Cx<'_>, state: &mut State, lane: usize, at| {
        // SAFETY: `each` gives addresses of objects in shared memory.
        unsafe {
            if increments {
                mbarrier::update(at, |object| object.add(1))?;
            }
        }
        // Lanes that name one barrier arrive as one entry.
        let (warp, lane) = (first_warp + lane / WARP, lane % WARP);
        begun = match begun.take() {
            Some((w, lanes, barrier)) if (w, barrier) == (warp, at) => Some((w, lanes | 1 << lane, barrier)),
            before => {
                if let Some((w, lanes, barrier)) = before {
                    state.asynchronous.copies.arrive(w, lanes, barrier);
                }
                Some((warp, 1 << lane, at))
            }
        };
        Ok(())
    };
    // SAFETY: the register of the address is a slot of the running window.
    let done = unsafe { each::<WATCHED>((op, operands, MbarrierEvent::CopiesArrive), cx, state, act) };
    if let Some((w, lanes, barrier)) = begun {
        state.asynchronous.copies.arrive(w, lanes, barrier);
    }
    done
}

/// `mbarrier.pending_count`
///
/// # Safety
/// Slots of `operands` lie in the running window.
unsafe fn pending_count(operands: &Operands, cx: &Cx<'_>) {
    for w in 0..cx.mask.warps as usize {
        for i in bits(cx.mask.lanes[w]) {
            let lane = w * WARP + i;
            // SAFETY: the slots lie in the running window, and `lane` is of the mask.
            unsafe {
                let token = Token(read(cx.regs, operands.src[0], lane));
                give(cx, operands.dst[0], lane, token.pending().into());
            }
        }
    }
}

/// Whether the phase that a lane asks about is over.
fn is_over(wait: Wait, object: &Mbarrier, phase: u64) -> bool {
    let asked = match wait.parity {
        true => phase & 1 == 1,
        false => Token(phase).phase(),
    };
    let current = match wait.conditional {
        true => object.conditional,
        false => object.phase,
    };
    current != asked
}

/// `mbarrier.test_wait`, `mbarrier.try_wait`
///
/// # Safety
/// Slots of `operands` lie in the running window.
unsafe fn look<const WATCHED: bool>(wait: Wait, operands: &Operands, cx: &mut Cx<'_>, state: &mut State) -> Step {
    let (ordering, scope) = order(Op::Wait(wait));
    let mem = MemOp::new(&operands.addresses[0], (Ordering::Weak, None), Box::new([]), cx.span);
    let mut over = [0; MAX_WARPS];
    for (w, over) in over.iter_mut().enumerate().take(cx.mask.warps as usize) {
        let active = cx.mask.lanes[w];
        if active == 0 {
            continue;
        }
        let mut at: Lanes = [0; WARP];
        // SAFETY: the register of the address is a slot of the running window.
        if let Err(fault) = unsafe { addresses(cx, &mem, w, active, &mut at) } {
            return Step::Fault(fault);
        }
        // Neighbours mostly ask the same: they get the same answer, and wait in the same loop.
        let mut asked = None;
        for i in bits(active) {
            let lane = w * WARP + i;
            // SAFETY: the slot lies in the running window.
            let question = (at[i], unsafe { read(cx.regs, operands.src[0], lane) });
            let answer = match asked {
                Some((same, answer)) if same == question => answer,
                // SAFETY: the address is that of 8 bytes of shared memory.
                _ => match unsafe { found(wait, question, cx, state) } {
                    Ok(answer) => answer,
                    Err(cause) => return Step::Fault(RawFault::new(cause, lane)),
                },
            };
            asked = Some((question, answer));
            let Some(object) = answer else { continue };
            *over |= 1 << i;
            // SAFETY: results are slots of the running window, `lane` is of the mask.
            unsafe {
                give(cx, operands.dst[0], lane, 1);
                give(cx, operands.dst[1], lane, object.last.set.into());
                give(cx, operands.dst[2], lane, object.last.value.into());
            }
        }
        if let Some(mut seen) = Seen::new::<WATCHED>() {
            for i in bits(active) {
                // SAFETY: the operands are slots of the running window, and the addresses were checked above.
                unsafe { seen.note(operands, cx, state, (w * WARP + i, at[i])) };
            }
            seen.tell::<WATCHED>(cx, (w, active), at, MbarrierEvent::Look { over: *over });
        }
        cx.synchronised::<WATCHED>(|| SyncEvent::Mbarrier {
            warp: w,
            lanes: active,
            addresses: at,
            parities: bits(active).fold(0, |all, i| all | u32::from(parity(at[i])) << i),
            ordering,
            scope,
            what: MbarrierEvent::Look { over: *over },
        });
    }
    if over == cx.mask.lanes {
        return Step::Done;
    }
    if !wait.suspends {
        state.fruitless = state.fruitless.saturating_add(1);
    }
    let waits = wait.suspends || state.fruitless > LOOKS * cx.launch().threads().div_ceil(WARP as u32);
    if waits && !cx.forced {
        return Step::Wait { done: over };
    }
    for (w, over) in over.iter().enumerate() {
        for i in bits(cx.mask.lanes[w] & !over) {
            for dst in &operands.dst {
                // SAFETY: results are slots of the running window, the lane is of the mask.
                unsafe { give(cx, *dst, w * WARP + i, 0) };
            }
        }
    }
    Step::Pass
}

/// The object, if the phase that is asked for is over. If it is not, what it waits for completes after the look of
/// `test_wait`. Who waits in `try_wait` leaves that to the block ([`State::advance`]), once nobody gets on: all who wait
/// for a phase see its end before what one of them then begins can end the next, as those see it whom hardware wakes.
/// One that has waited in vain while others ran goes on waiting no longer: they may wait for it.
///
/// # Safety
/// `at` is the address of 8 bytes of shared memory, a multiple of 8.
unsafe fn found(
    wait: Wait,
    (at, phase): (u64, u64),
    cx: &Cx<'_>,
    state: &mut State,
) -> Result<Option<Mbarrier>, Cause> {
    let object = || {
        // SAFETY: the caller promises it of the address.
        unsafe { mbarrier::load(at) }.map_err(|why| mbarrier::misuse(at.wrapping_sub(cx.block.cluster_shared()), &why))
    };
    if !state.asynchronous.barriers.has(at) {
        let offset = at.wrapping_sub(cx.block.cluster_shared());
        return Err(mbarrier::misuse(offset, mbarrier::NONE_THERE));
    }
    let now = object()?;
    if is_over(wait, &now, phase) {
        return Ok(Some(now));
    }
    state.draw(cx.block)?;
    if wait.suspends && !cx.forced {
        return Ok(None);
    }
    state.hurry(cx.block, at, || {
        object().is_ok_and(|object| is_over(wait, &object, phase))
    })?;
    let then = object()?;
    Ok((wait.suspends && is_over(wait, &then, phase)).then_some(then))
}

/// What a lane waits for, for people.
///
/// # Safety
/// Slots of `operands` lie in the running window.
pub(super) unsafe fn waits_for(op: Op, operands: &Operands, cx: &mut Cx<'_>, lane: usize) -> String {
    let Op::Wait(wait) = op else { return format!("at {op}") };
    let mem = MemOp::new(&operands.addresses[0], (Ordering::Weak, None), Box::new([]), cx.span);
    let mut at: Lanes = [0; WARP];
    let (w, i) = (lane / WARP, lane % WARP);
    // SAFETY: the register of the address is a slot of the running window.
    if unsafe { addresses(cx, &mem, w, 1 << i, &mut at) }.is_err() {
        return "for an mbarrier".to_owned();
    }
    let offset = at[i].wrapping_sub(cx.block.cluster_shared());
    // SAFETY: the slot lies in the running window; the address was found to be one of shared memory.
    let (phase, object) = unsafe { (read(cx.regs, operands.src[0], lane), mbarrier::load(at[i])) };
    let parity = match wait.parity {
        true => phase & 1,
        false => phase >> 63,
    };
    let missing = object.map_or_else(|why| format!("which {why}"), |object| object.describe());
    format!("for the phase of parity {parity} of the mbarrier at {offset:#x} in .shared, where {missing}")
}
