//! Barriers of a block (PTX ISA, bar, barrier): who has come, who is still to come, and what they voted.
//!
//! All tiers share this state. How lanes wait and are woken is their own business: an arrival may make barriers due,
//! and whoever runs the block takes those ([`Barriers::take_due`]) and lets go on who waits there.

use crate::isa::lanes::{MAX_WARPS, Mask, WARP};
use crate::program::{BarrierOp, Value};

use super::context::{Cx, RawFault};
use super::observe::{SyncEvent, Use};
use super::slots::{Slot, bits, first_lane, lanes, predicate, value, write};

/// Named barriers of a block.
const BARRIERS: usize = 16;

/// Votes of a barrier reduction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    set: u32,
    voters: u32,
}

#[derive(Default)]
struct Barrier {
    /// Lanes that have arrived, by warp.
    arrived: Vec<u32>,
    /// Arrivals of lanes that had arrived before, and did not wait: they count, too.
    again: u32,
    threads: Option<u32>,
    tally: Tally,
}

/// The barriers of a block and who of it is still there.
#[derive(Default)]
pub struct Barriers {
    all: [Barrier; BARRIERS],
    live: Vec<u32>,
    /// Barriers that are complete, by bit.
    due: u32,
    used: u32,
    /// Somebody has come or left since the block started.
    touched: bool,
}

impl Barriers {
    /// As a block starts, with these lanes by warp: the same ones each time.
    pub fn reset(&mut self, live: impl Iterator<Item = u32>) {
        if !self.touched && !self.live.is_empty() {
            return;
        }
        self.touched = false;
        self.live.clear();
        self.live.extend(live);
        if self.used != 0 {
            for id in 0..BARRIERS {
                self.clear(id);
            }
        }
        (self.due, self.used) = (0, 0);
    }

    fn clear(&mut self, id: usize) {
        let b = &mut self.all[id];
        b.arrived.iter_mut().for_each(|m| *m = 0);
        (b.threads, b.again) = (None, 0);
        b.tally = Tally::default();
    }

    /// Counts votes towards the reduction of the current phase.
    fn vote(&mut self, id: u32, lanes: &[u32; MAX_WARPS], votes: &[u32; MAX_WARPS]) {
        self.touched = true;
        let tally = &mut self.all[id as usize].tally;
        for (l, v) in lanes.iter().zip(votes) {
            tally.set += (l & v).count_ones();
            tally.voters += l.count_ones();
        }
    }

    /// `lanes` of warps `first_warp` and up arrive; without `threads`, the barrier waits for all of the block.
    pub fn arrive(&mut self, id: u32, first_warp: usize, lanes: &[u32], threads: Option<u32>) {
        self.touched = true;
        let warps = self.live.len();
        let barrier = &mut self.all[id as usize];
        barrier.arrived.resize(warps, 0);
        barrier.threads = barrier.threads.or(threads);
        for (arrived, lanes) in barrier.arrived[first_warp..].iter_mut().zip(lanes) {
            barrier.again += (*arrived & lanes).count_ones();
            *arrived |= lanes;
        }
        self.used |= 1 << id;
        self.check(id as usize);
    }

    /// Of warps `first_warp` and up, these lanes have not exited: barriers no longer wait for the others.
    pub fn left(&mut self, first_warp: usize, lanes: &[u32]) {
        self.touched = true;
        for (live, now) in self.live[first_warp..].iter_mut().zip(lanes) {
            *live = *now;
        }
        if self.used == 0 {
            return;
        }
        for id in 0..BARRIERS {
            if self.used >> id & 1 == 1 {
                self.check(id);
            }
        }
    }

    fn check(&mut self, id: usize) {
        let b = &self.all[id];
        let lanes = || b.arrived.iter().zip(&self.live);
        let complete = match b.threads {
            None => lanes().rev().all(|(arrived, live)| live & !arrived == 0) && b.arrived.iter().any(|&a| a != 0),
            Some(n) => {
                // Barriers count warps: one of which all remaining threads have come counts whole.
                let count = |(arrived, live): (&u32, &u32)| match (*arrived, live & !arrived) {
                    (0, _) => 0,
                    (_, 0) => WARP as u32,
                    (some, _) => some.count_ones(),
                };
                lanes().map(count).sum::<u32>() + b.again >= n
            }
        };
        if complete {
            self.due |= 1 << id;
        }
    }

    /// Whether nobody has arrived anywhere since barriers were last complete.
    pub fn are_idle(&self) -> bool {
        self.used == 0
    }

    /// Whether somebody has to be let go.
    pub fn released(&self) -> bool {
        self.due != 0
    }

    /// A barrier that is complete, and the votes of those who came; it starts anew.
    pub fn take_due(&mut self) -> Option<(u32, Tally)> {
        if self.due == 0 {
            return None;
        }
        let id = self.due.trailing_zeros();
        self.due &= !(1 << id);
        let tally = self.all[id as usize].tally;
        self.clear(id as usize);
        self.used &= !(1 << id);
        Some((id, tally))
    }

    /// How far a barrier is.
    pub fn count(&self, id: u32) -> Count<impl Iterator<Item = u32>> {
        let b = &self.all[id as usize];
        let missing = self.live.iter().enumerate().flat_map(|(w, live)| {
            let come = b.arrived.get(w).copied().unwrap_or(0);
            bits(live & !come).map(move |lane| (w * WARP + lane) as u32)
        });
        Count {
            wanted: b.threads,
            come: b.arrived.iter().map(|lanes| lanes.count_ones()).sum::<u32>() + b.again,
            missing,
        }
    }
}

/// How far a barrier is.
pub struct Count<T> {
    /// How many it waits for; `None`: for all.
    pub wanted: Option<u32>,
    pub come: u32,
    /// The threads that have neither come nor exited.
    pub missing: T,
}

/// `bar`, `barrier`, as the instruction gives it.
pub struct Arrival {
    pub op: BarrierOp,
    pub aligned: bool,
    pub id: Value<Slot>,
    pub threads: Option<Value<Slot>>,
    pub pred: Option<(Slot, bool)>,
}

impl Arrival {
    /// The lanes of the mask that name the same barrier and count as the first one (PTX ISA, barrier: on sm_70 and later
    /// each thread arrives by itself).
    ///
    /// # Safety
    /// Slots lie in the running window.
    pub unsafe fn alike(&self, cx: &Cx<'_>) -> [u32; MAX_WARPS] {
        let mut alike = cx.mask.lanes;
        let operands = [Some(self.id), self.threads];
        for operand in operands.into_iter().flatten() {
            if let Value::Register(_) = operand {
                // SAFETY: the operand is a slot of the running window, which has the lanes of the mask.
                let of = |lane: usize| unsafe { value(cx.regs, operand, lane) };
                let first = of(first_lane(&cx.mask.lanes));
                for lane in lanes(&cx.mask.lanes).filter(|&lane| of(lane) != first) {
                    alike[lane / WARP] &= !(1 << (lane % WARP));
                }
            }
        }
        alike
    }
}

/// The lanes of the mask come to a barrier, whose number is the result. Whether they wait there, the instruction says.
///
/// # Safety
/// Slots lie in the running window.
pub unsafe fn arrive<const WATCHED: bool>(
    cx: &Cx<'_>,
    barriers: &mut Barriers,
    arrival: &Arrival,
) -> Result<u32, RawFault> {
    let taken = cx.mask.lanes;
    let lane = first_lane(&taken);
    let operand = |operand| {
        // SAFETY: the operand is a number or a slot of the running window, and `lane` is of the mask.
        unsafe { value(cx.regs, operand, lane) }
    };
    let (id, threads) = (operand(arrival.id), arrival.threads.map(operand));
    if id as usize >= BARRIERS || threads.is_some_and(|t| t % WARP as u32 != 0 || t == 0) {
        let threads = threads.map_or_else(String::new, |threads| format!(" for {threads} threads"));
        let why = format!("barrier {id}{threads}: barriers are 0 to 15, and wait for a multiple of 32 threads");
        return Err(RawFault::instruction(why, lane));
    }
    cx.used::<WATCHED>(|| Use::Barrier {
        barrier: id,
        lanes: taken,
        op: arrival.op,
        aligned: arrival.aligned,
        threads,
    });
    cx.synchronised::<WATCHED>(|| SyncEvent::Arrive {
        barrier: id,
        lanes: taken,
        waits: arrival.op != BarrierOp::Arrive,
    });
    if let Some((slot, negated)) = arrival.pred {
        // SAFETY: the predicate is a slot of the running window.
        let votes = unsafe { predicate(cx.regs, slot, negated) };
        barriers.vote(id, &taken, &votes);
    }
    let warps = cx.mask.warps as usize;
    barriers.arrive(id, cx.first_thread as usize / WARP, &taken[..warps], threads);
    Ok(id)
}

/// Gives the result of a barrier reduction to the lanes of `mask`.
///
/// # Safety
/// `dst` lies in the window at `regs`, which was made for bundles of as many warps as `mask` has.
pub unsafe fn write_reduction(regs: *mut u8, dst: Slot, op: BarrierOp, tally: &Tally, mask: &Mask) {
    let value = match op {
        BarrierOp::Popc => tally.set,
        BarrierOp::And => u32::from(tally.set == tally.voters),
        BarrierOp::Or => u32::from(tally.set != 0),
        BarrierOp::Sync | BarrierOp::Arrive => return,
    };
    for lane in lanes(&mask.lanes) {
        // SAFETY: the slot lies in the window and holds a value for each lane of the mask.
        unsafe { write(regs, dst, lane, u64::from(value)) };
    }
}
