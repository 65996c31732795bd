//! One block (CTA): its bundles, whose turn it is, and who goes on when a barrier is complete.

mod march;

use std::collections::HashMap;
use std::fmt::Write;
use std::slice;
use std::time::Instant;

use parking_lot::Mutex;

use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::program::Function;

use super::cause::Cause;
use super::children::Children;
use super::deadlock;
use super::grid::{Form, Grid};
use super::interp::{self, Bundle, Conditions, Did, Living, Located, Pause, Runs, SLICE, Stand};
use super::launch::Launch;
use super::machine::observe::{GridEvent, Watch};
use super::machine::queue::Queue;
use super::machine::slots::first_lane;
use super::machine::state::State;
use super::machine::{Env, RawFault, Surroundings, TileBlock};
use super::schedule::{Schedule, Whom};

/// A block in its grid.
pub type BlockEnv<'l> = super::machine::BlockEnv<Way<'l>>;

/// A block's grid, and the form in which the block runs its kernel.
#[derive(Clone, Copy)]
pub struct Way<'l> {
    pub grid: &'l Grid,
    pub form: &'l Form,
}

impl Surroundings for Way<'_> {
    fn launch(&self) -> &Launch {
        &self.grid.launch
    }

    fn kernel(&self) -> &Function {
        &self.form.kernel.function
    }

    fn watch(&self) -> &Watch {
        &self.grid.watch
    }

    fn block_number(&self, ctaid: [u32; 3]) -> u64 {
        self.grid.block_number(ctaid)
    }

    fn queue(&self) -> &Queue {
        &self.grid.children().queue
    }

    fn can_wait(&self) -> bool {
        Children::has_room()
    }

    fn wait(&self) -> bool {
        self.grid.accept(self.grid.children().drain())
    }

    fn cancel(&self) -> Option<[u32; 3]> {
        // All of a cooperative grid are there from the start.
        let waiting = (!self.grid.launch.cooperative).then(|| self.grid.take()).flatten();
        waiting.map(|index| self.grid.ctaid(index))
    }

    fn tile_blocks(&self) -> &Mutex<HashMap<u64, TileBlock>> {
        &self.grid.tile_blocks
    }

    fn draw(&self, n: u64) -> Option<u64> {
        self.grid.schedule.as_ref().map(|schedule| schedule.below(n))
    }

    fn completes(&self) -> Option<bool> {
        self.grid.schedule.as_ref().and_then(Schedule::completes)
    }
}

impl Conditions for Way<'_> {
    fn schedule(&self) -> Option<&Schedule> {
        self.grid.schedule.as_ref()
    }

    fn bundles(&self) -> u32 {
        self.form.bundles
    }

    fn runs(&self) -> Option<Runs> {
        self.form.runs
    }

    fn max_depth(&self) -> u64 {
        self.grid.max_depth
    }

    fn has_stopped(&self) -> bool {
        self.grid.has_stopped()
    }

    fn overdue(&self) -> Option<Cause> {
        self.grid.overdue()
    }

    fn lasts(&self) {
        self.grid.lasts();
    }

    fn works(&self) {
        self.grid.works();
    }
}

/// How often those who wait at barriers in memory come back with nothing, all of them and with nothing else done, until that
/// counts as a deadlock. Hardware suspends a thread for milliseconds each time: seconds in which nothing happens.
pub const PATIENCE: u32 = 4096;

/// What a turn of a block came to.
pub enum Turn {
    Done,
    /// Somebody spins, as it seems: others may go first.
    Spins,
    /// Somebody spins now, and more was done before.
    Worked,
    /// It has run for long.
    Long,
    /// Under a seed: others are to have a turn.
    Drawn,
    /// Of a block that has others in its cluster: all who are left wait, perhaps for those.
    Waits,
}

/// A place in which blocks run, one after the other.
pub struct Block<'l> {
    pub env: BlockEnv<'l>,
    bundles: Vec<Bundle>,
    /// Its kernel is compiled, and no warp lacks lanes.
    compiled: bool,
    /// All warps have set out since the block began, and have not marched yet.
    marches: bool,
    /// The warps have marched abreast from the last block's beginning to its end: nothing is in their books, and they may do so
    /// again.
    ready: bool,
    /// Nobody has been entered in the books from the last block's beginning to its end.
    again: bool,
    /// Where they stand, if they have set out and marched since.
    stand: Option<Stand>,
    /// The block whose special registers are in the windows, or those of the first lane alone.
    last: Option<[u32; 3]>,
    stale: bool,
    /// When the turn began, as far as a march has looked, and what it may do until it looks again.
    began: Option<Instant>,
    slice: i64,
    pub state: State,
    /// Something has changed for which lanes of other blocks may wait.
    pub stirred: bool,
}

impl<'l> Block<'l> {
    pub fn new(env: BlockEnv<'l>) -> Block<'l> {
        let Way { grid, form } = env.env;
        let lanes = form.kernel.width * WARP as u32;
        let bundles = (0..form.bundles)
            .map(|i| Bundle::new(&form.kernel, i * lanes, (grid.threads - i * lanes).min(lanes), &env))
            .collect();
        Block {
            compiled: may_march(&env),
            marches: false,
            ready: false,
            again: false,
            stand: None,
            last: None,
            stale: false,
            began: None,
            slice: SLICE,
            env,
            bundles,
            state: State::default(),
            stirred: false,
        }
    }

    /// Puts all threads at the kernel's start, as block `ctaid`.
    pub fn start(&mut self, ctaid: [u32; 3]) {
        self.env.ctaid = ctaid;
        self.tell(|env| GridEvent::Block {
            block: ctaid,
            shared: (env.shared, env.shared_bytes.into()),
            local: (env.local, env.local_bytes),
            local_stride: env.local_stride,
        });
        match self.compiled {
            true => self.set_out(ctaid),
            false => self.bundles.iter_mut().for_each(|bundle| bundle.enter(&self.env)),
        }
        let exist = self.bundles.iter().map(Bundle::exist_by_warp);
        self.state.reset(exist.flatten().copied());
    }

    /// Between two turns: goes on in compiled code, which has come since it began. `false`: that is not to be had, and all stays as it is.
    pub fn change(&mut self, form: &'l Form) -> bool {
        if std::ptr::eq(self.env.env.form, form) {
            return true;
        }
        // Warps of which the books do not say where they stand are in code.
        if self.marches || self.stand.is_some() {
            return false;
        }
        let before = std::mem::replace(&mut self.env.env.form, form);
        let (mut living, mut moved) = (Living::of(&form.kernel), Vec::new());
        let bundles = self.bundles.iter();
        let warps: Option<Vec<Vec<Bundle>>> = bundles
            .map(|bundle| bundle.apart(&form.kernel, &self.env, (&mut living, &mut moved)))
            .collect();
        let Some(warps) = warps else {
            self.env.env.form = before;
            return false;
        };
        moved.iter().for_each(|moved| self.state.products.follow(moved));
        self.bundles = warps.into_iter().flatten().collect();
        (self.compiled, self.marches) = (may_march(&self.env), false);
        (self.ready, self.again) = (false, false);
        (self.last, self.stale) = (None, false);
        true
    }

    /// The next share is a short one: others, or other code, are to come soon.
    pub fn tire(&mut self, share: i64) {
        self.bundles.iter_mut().for_each(|bundle| bundle.tire(share));
    }

    /// Runs until all threads have exited, or all bundles have had their share or wait for those that had.
    ///
    /// # Errors
    /// The first fault.
    pub fn turn(&mut self) -> Result<Turn, Box<Located>> {
        // Those that are about to march set out anew.
        if !(self.marches && self.ready) {
            self.bundles.iter_mut().for_each(Bundle::resume);
        }
        self.began = None;
        let before = self.did();
        loop {
            if (self.marches || self.compiled && self.can_march()) && self.march()? {
                if let Some(turn) = self.rest()? {
                    return Ok(turn);
                }
                continue;
            }
            let (mut ran, mut spent) = (false, false);
            for i in 0..self.bundles.len() {
                let bundle = &mut self.bundles[i];
                spent |= bundle.spent;
                if bundle.spent || !bundle.is_ready() {
                    continue;
                }
                ran = true;
                bundle.spent = bundle.run(&self.env, &mut self.state)? == Pause::Share;
                // They may march from the barrier that the last of them has come to. To let those behind it run one by one first would
                // leave it the last one for ever.
                if self.release() && self.compiled && self.can_march() {
                    break;
                }
            }
            if ran {
                continue;
            }
            if spent {
                self.wait_no_longer();
                self.completed(State::advance)?;
                self.release();
                let spins = self.bundles.iter().any(|bundle| bundle.spent && bundle.spins);
                return Ok(match spins {
                    true if (self.did() - before).is_more() => Turn::Worked,
                    true => Turn::Spins,
                    false => Turn::Long,
                });
            }
            if let Some(turn) = self.rest()? {
                return Ok(turn);
            }
        }
    }

    /// What it has done in all, since it is here.
    fn did(&self) -> Did {
        self.bundles.iter().map(|bundle| bundle.did).sum()
    }

    /// Turns of bundles that are drawn, until another block is to have one.
    ///
    /// # Errors
    /// The first fault.
    pub fn drawn_turn(&mut self, schedule: &Schedule) -> Result<Turn, Box<Located>> {
        loop {
            let bundles = &self.bundles;
            let Some(i) = schedule.choose(Whom::Bundles, bundles.len(), |i| i as u64, |i| bundles[i].is_ready()) else {
                if let Some(turn) = self.rest()? {
                    return Ok(turn);
                }
                continue;
            };
            if schedule.holds_back(i as u64) {
                return Ok(Turn::Drawn);
            }
            let pause = self.bundles[i].run(&self.env, &mut self.state)?;
            self.completed(|state, env| state.draw(env))?;
            self.release();
            if schedule.wakes_in_vain() {
                self.wait_no_longer();
            }
            if pause == Pause::Share {
                self.wait_no_longer();
                return Ok(Turn::Spins);
            }
            if schedule.one_in(4) && !self.bundles.iter().all(Bundle::is_done) {
                return Ok(Turn::Drawn);
            }
        }
    }

    /// Nobody is ready: what the turn has come to; `None`: it goes on.
    fn rest(&mut self) -> Result<Option<Turn>, Box<Located>> {
        if self.bundles.iter().all(Bundle::is_done) {
            self.completed(match self.env.peers {
                1 => State::end,
                _ => State::end_copies,
            })?;
            self.tell(|env| GridEvent::BlockEnd { block: env.ctaid });
            return Ok(Some(Turn::Done));
        }
        if self.env.peers > 1 {
            return Ok(Some(Turn::Waits));
        }
        if self.advance()? || self.force() {
            return Ok(None);
        }
        self.state.stuck += 1;
        match self.state.stuck <= PATIENCE && self.wait_no_longer() {
            true => Ok(None),
            false => Err(Box::new(self.deadlock())),
        }
    }

    /// Somebody can go on.
    pub fn is_ready(&self) -> bool {
        self.bundles.iter().any(Bundle::is_ready)
    }

    /// Completes what goes on beside the block; `false`: there is nothing.
    ///
    /// # Errors
    /// What it does to memory is a fault.
    pub fn advance(&mut self) -> Result<bool, Box<Located>> {
        let advanced = self.completed(State::advance)?;
        if advanced {
            self.release();
        }
        Ok(advanced)
    }

    /// Lets those go on who wait in vain for lanes of their warp; `false`: there are none.
    pub fn force(&mut self) -> bool {
        let all = [u32::MAX; MAX_WARPS];
        self.bundles.iter_mut().any(|bundle| bundle.force(&all))
    }

    /// Those who wait for something to change try again.
    pub fn wake(&mut self) {
        for bundle in &mut self.bundles {
            bundle.wake();
        }
    }

    /// Lanes that have not exited, by warp.
    pub fn live(&self) -> impl Iterator<Item = &u32> {
        self.bundles.iter().flat_map(Bundle::live_by_warp)
    }

    /// Those who wait for something to change go ahead without it: as its time limit for `mbarrier.try_wait`. `false`:
    /// there is none.
    pub fn wait_no_longer(&mut self) -> bool {
        let mut any = false;
        for bundle in &mut self.bundles {
            any |= bundle.go_ahead();
        }
        any
    }

    /// The last block of a cluster has ended, and what they began completes.
    ///
    /// # Errors
    /// What it does to memory is a fault.
    pub fn end(&mut self) -> Result<(), Box<Located>> {
        self.completed(State::end)
    }

    /// Lets operations that go on beside the block complete.
    fn completed<T>(
        &mut self,
        complete: impl FnOnce(&mut State, &Env<'_>) -> Result<T, Cause>,
    ) -> Result<T, Box<Located>> {
        complete(&mut self.state, &self.env).map_err(|cause| {
            let fault = RawFault::new(cause, 0);
            let first = self.bundles.iter().find_map(|b| Some((b, b.fragments.first()?)));
            Box::new(match first {
                Some((bundle, fragment)) => {
                    let lane = first_lane(&fragment.mask);
                    interp::located(bundle, fragment, RawFault { lane, ..fault })
                }
                // All threads are gone.
                None => Located {
                    fault,
                    stack: Vec::new(),
                    first_thread: 0,
                },
            })
        })
    }

    /// Lets those go on for whom something has changed, or whose barrier is complete; gives whether one was.
    fn release(&mut self) -> bool {
        let mut complete = false;
        if self.env.peers == 1 {
            meet(slice::from_mut(self));
        }
        if std::mem::take(&mut self.state.changed) {
            (self.state.stuck, self.state.fruitless) = (0, 0);
            self.stirred = true;
            self.wake();
        }
        while let Some((barrier, tally)) = self.state.barriers.take_due() {
            complete = true;
            self.tell(|env| GridEvent::Release {
                block: env.ctaid,
                barrier,
            });
            for bundle in &mut self.bundles {
                bundle.release_barrier(barrier, &tally);
            }
        }
        complete
    }

    /// Tells an observer of something that befalls the whole block.
    fn tell(&self, event: impl FnOnce(&BlockEnv<'_>) -> GridEvent) {
        let grid = self.env.env.grid;
        if let Some(observer) = grid.watch.observer() {
            observer.grid(grid.launch.grid_id, &event(&self.env));
        }
    }

    /// Who waits where and for whom, for people.
    pub fn waits(&self) -> String {
        let mut why = deadlock::describe(&self.bundles, &self.state.barriers, &self.env);
        let held = self.state.asynchronous.held();
        if held > 0 {
            let (s, have) = if held == 1 { ("", "has") } else { ("s", "have") };
            let _ = write!(
                why,
                "\n  {held} fabric operation{s} {have} not been submitted (fabric.submit)"
            );
        }
        why
    }

    pub fn deadlock(&self) -> Located {
        let bundle = self.bundles.iter().find(|b| !b.is_done()).expect("somebody is left");
        let fragment = &bundle.fragments[0];
        let lane = first_lane(&fragment.mask);
        let fault = RawFault {
            cause: Cause::Deadlock { why: self.waits() },
            lane,
            others: 0,
        };
        interp::located(bundle, fragment, fault)
    }
}

/// Whether a block's kernel is compiled, and no other block's warps take turns with its own.
fn may_march(env: &BlockEnv<'_>) -> bool {
    let Way { grid, form } = env.env;
    form.kernel.native.is_some() && grid.schedule.is_none() && env.peers == 1
}

/// Lets those go on who wait at the barrier of the cluster that these blocks are, if all have come.
pub fn meet(blocks: &mut [Block<'_>]) {
    let awaited = blocks.iter().any(|block| block.state.cluster.awaited);
    if !awaited || !blocks.iter().all(|block| block.state.cluster.has_all(block.live())) {
        return;
    }
    for block in blocks.iter_mut() {
        block.state.cluster.complete();
        block.wake();
    }
    blocks[0].tell(|env| GridEvent::ClusterRelease {
        first: env.ctaid,
        shape: env.env.grid.launch.cluster(),
    });
}
