//! One block (CTA): its memory windows, its bundles, its barriers, and whose turn it is.

use crate::isa::lanes::{MAX_WARPS, Mask, WARP};
use crate::memory::View;
use crate::program::BarrierOp;

use super::grid::Grid;
use super::interp::{Bundle, Located, Pause, State};
use super::machine::RawFault;
use super::machine::observe::GridEvent;
use super::machine::slots::{Slot, first_lane, lanes, write};
use super::schedule::Schedule;
use super::{Cause, interp};

/// Named barriers of a block (PTX ISA, barrier).
const BARRIERS: usize = 16;

/// What lanes of a block see around them.
pub struct BlockEnv<'l> {
    pub env: &'l Grid,
    pub view: View,
    pub ctaid: [u32; 3],
    /// Which of the places for blocks this one runs in: what `%smid` reads.
    pub seat: u32,
    /// Shared window: address, bytes that the kernel has, bytes that count as shared for `isspacep`.
    pub shared: u64,
    pub shared_bytes: u32,
    pub shared_window: u32,
    /// Local window of thread 0; thread `t` has `[local + t·stride, …)`.
    pub local: u64,
    pub local_stride: u32,
    pub local_bytes: u64,
    /// The launch's parameter block.
    pub param: u64,
    pub param_bytes: u32,
}

/// Votes of a barrier reduction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub set: u32,
    pub voters: u32,
}

#[derive(Default)]
struct Barrier {
    /// Lanes that have arrived, by warp.
    arrived: Vec<u32>,
    threads: Option<u32>,
    tally: Tally,
}

/// The barriers of a block and who of it is still there.
pub struct Barriers {
    all: [Barrier; BARRIERS],
    live: Vec<u32>,
    /// Barriers that are complete, by bit.
    due: u32,
    used: u32,
}

impl Barriers {
    fn new() -> Barriers {
        Barriers {
            all: Default::default(),
            live: Vec::new(),
            due: 0,
            used: 0,
        }
    }

    fn reset(&mut self, bundles: &[Bundle]) {
        self.live.clear();
        for b in bundles {
            self.live.extend(b.live.iter().take(b.warps as usize));
        }
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
        b.threads = None;
        b.tally = Tally::default();
    }

    /// Counts votes towards the reduction of the current phase.
    pub fn vote(&mut self, id: u32, lanes: &[u32; MAX_WARPS], votes: &[u32; MAX_WARPS]) {
        let tally = &mut self.all[id as usize].tally;
        for (l, v) in lanes.iter().zip(votes) {
            tally.set += (l & v).count_ones();
            tally.voters += l.count_ones();
        }
    }

    /// Fragment `at` of `bundle` arrives; if it waits, its state says so from now on.
    pub fn arrive(&mut self, id: u32, bundle: &mut Bundle, at: usize, threads: Option<u32>, waits: bool) {
        let warps = self.live.len();
        let barrier = &mut self.all[id as usize];
        barrier.arrived.resize(warps, 0);
        barrier.threads = barrier.threads.or(threads);
        let first = bundle.first_thread as usize / WARP;
        let fragment = &mut bundle.fragments[at];
        for w in 0..bundle.warps as usize {
            barrier.arrived[first + w] |= fragment.mask[w];
        }
        if waits {
            fragment.state = State::Barrier(id);
        }
        self.used |= 1 << id;
        self.check(id as usize);
    }

    /// Lanes have exited: barriers no longer wait for them.
    pub fn left(&mut self, bundle: &Bundle) {
        let first = bundle.first_thread as usize / WARP;
        for (live, now) in self.live[first..]
            .iter_mut()
            .zip(bundle.live)
            .take(bundle.warps as usize)
        {
            *live = now;
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
            None => lanes().all(|(arrived, live)| live & !arrived == 0) && b.arrived.iter().any(|&a| a != 0),
            Some(n) => {
                // Barriers count warps: one of which all remaining threads have come counts whole.
                let count = |(arrived, live): (&u32, &u32)| match (*arrived, live & !arrived) {
                    (0, _) => 0,
                    (_, 0) => WARP as u32,
                    (some, _) => some.count_ones(),
                };
                lanes().map(count).sum::<u32>() >= n
            }
        };
        if complete {
            self.due |= 1 << id;
        }
    }

    /// Whether somebody has to be let go.
    pub fn released(&self) -> bool {
        self.due != 0
    }

    fn describe(&self) -> String {
        let mut out = Vec::new();
        for id in (0..BARRIERS).filter(|id| self.used >> id & 1 == 1) {
            let b = &self.all[id];
            let arrived: u32 = b.arrived.iter().map(|m| m.count_ones()).sum();
            if arrived > 0 {
                let live: u32 = self.live.iter().map(|m| m.count_ones()).sum();
                let wanted = b
                    .threads
                    .map_or_else(|| format!("all {live} remaining"), |n| n.to_string());
                out.push(format!("barrier {id}: {arrived} threads wait, {wanted} are needed"));
            }
        }
        if out.is_empty() {
            "nobody waits at a barrier".into()
        } else {
            out.join("; ")
        }
    }
}

/// Gives the result of a barrier reduction to the lanes of `mask`.
///
/// # Safety
/// `dst` lies in the window at `regs`.
pub unsafe fn write_reduction(regs: *mut u8, dst: Slot, op: BarrierOp, tally: &Tally, mask: &Mask) {
    let value = match op {
        BarrierOp::Popc => tally.set,
        BarrierOp::And => u32::from(tally.set == tally.voters),
        BarrierOp::Or => u32::from(tally.set != 0),
        BarrierOp::Sync | BarrierOp::Arrive => return,
    };
    for lane in lanes(&mask.lanes) {
        // SAFETY: the caller's word.
        unsafe { write(regs, dst, lane, u64::from(value)) };
    }
}

/// What a turn of a block came to.
pub enum Turn {
    Done,
    /// Somebody spins; others may go first.
    Yield,
    /// Under a seed: others are to have a turn.
    Drawn,
}

/// A place in which blocks run, one after the other.
pub struct Block<'l> {
    pub env: BlockEnv<'l>,
    bundles: Vec<Bundle>,
    barriers: Barriers,
}

impl<'l> Block<'l> {
    pub fn new(env: BlockEnv<'l>) -> Block<'l> {
        let grid = env.env;
        let lanes = grid.kernel.width * WARP as u32;
        let bundles = (0..grid.bundles)
            .map(|i| Bundle::new(&grid.kernel, i * lanes, (grid.threads - i * lanes).min(lanes), &env))
            .collect();
        Block {
            env,
            bundles,
            barriers: Barriers::new(),
        }
    }

    /// Puts all threads at the kernel's start, as block `ctaid`.
    pub fn start(&mut self, ctaid: [u32; 3]) {
        self.env.ctaid = ctaid;
        self.env.tell(|env| GridEvent::Block {
            block: ctaid,
            shared: (env.shared, env.shared_bytes.into()),
            local: (env.local, env.local_bytes),
            local_stride: env.local_stride,
        });
        for bundle in &mut self.bundles {
            bundle.enter(&self.env);
        }
        self.barriers.reset(&self.bundles);
    }

    /// Runs until all threads have exited or somebody has had his share.
    ///
    /// # Errors
    /// The first fault.
    pub fn turn(&mut self) -> Result<Turn, Box<Located>> {
        loop {
            let mut shares = false;
            let mut ran = false;
            for i in 0..self.bundles.len() {
                if !self.bundles[i].is_ready() {
                    continue;
                }
                ran = true;
                shares |= self.bundles[i].run(&self.env, &mut self.barriers)? == Pause::Share;
                self.release();
            }
            if shares {
                return Ok(Turn::Yield);
            }
            if !ran && self.has_ended()? {
                return Ok(Turn::Done);
            }
        }
    }

    /// Turns of bundles that are drawn, until another block is to have one.
    ///
    /// # Errors
    /// The first fault.
    pub fn drawn_turn(&mut self, schedule: &Schedule) -> Result<Turn, Box<Located>> {
        loop {
            let bundles = &self.bundles;
            let Some(i) = schedule.one_of(bundles.len(), |i| bundles[i].is_ready()) else {
                if self.has_ended()? {
                    return Ok(Turn::Done);
                }
                continue;
            };
            let pause = self.bundles[i].run(&self.env, &mut self.barriers)?;
            self.release();
            if pause == Pause::Share {
                return Ok(Turn::Yield);
            }
            if schedule.one_in(4) && !self.bundles.iter().all(Bundle::is_done) {
                return Ok(Turn::Drawn);
            }
        }
    }

    /// Nobody is ready: have all exited? If not, those go on who wait in vain for lanes of their warp.
    fn has_ended(&mut self) -> Result<bool, Box<Located>> {
        if self.bundles.iter().all(Bundle::is_done) {
            self.env.tell(|env| GridEvent::BlockEnd { block: env.ctaid });
            return Ok(true);
        }
        if !self.bundles.iter_mut().any(Bundle::force) {
            return Err(Box::new(self.deadlock()));
        }
        Ok(false)
    }

    fn release(&mut self) {
        while self.barriers.due != 0 {
            let id = self.barriers.due.trailing_zeros();
            self.barriers.due &= !(1 << id);
            let tally = self.barriers.all[id as usize].tally;
            self.barriers.clear(id as usize);
            self.env.tell(|env| GridEvent::Release {
                block: env.ctaid,
                barrier: id,
            });
            for bundle in &mut self.bundles {
                bundle.release_barrier(id, &tally);
            }
        }
    }

    fn deadlock(&self) -> Located {
        let bundle = self.bundles.iter().find(|b| !b.is_done()).expect("somebody is left");
        let fragment = &bundle.fragments[0];
        let lane = first_lane(&fragment.mask);
        let fault = RawFault {
            cause: Cause::Deadlock {
                why: self.barriers.describe(),
            },
            lane,
        };
        interp::located(bundle, fragment, fault)
    }
}
