//! One block (CTA): its bundles, whose turn it is, and who goes on when a barrier is complete.

use crate::isa::lanes::WARP;
use crate::program::Function;

use super::cause::Cause;
use super::children::Children;
use super::grid::Grid;
use super::interp::{self, Bundle, Conditions, Located, Pause, Runs};
use super::launch::Launch;
use super::machine::barrier::Barriers;
use super::machine::observe::{GridEvent, Watch};
use super::machine::queue::Queue;
use super::machine::slots::first_lane;
use super::machine::{RawFault, Surroundings};
use super::schedule::Schedule;

/// A block in its grid.
pub type BlockEnv<'l> = super::machine::BlockEnv<&'l Grid>;

impl Surroundings for &Grid {
    fn launch(&self) -> &Launch {
        &self.launch
    }

    fn kernel(&self) -> &Function {
        &self.kernel.function
    }

    fn watch(&self) -> &Watch {
        &self.watch
    }

    fn block_number(&self, ctaid: [u32; 3]) -> u64 {
        Grid::block_number(self, ctaid)
    }

    fn queue(&self) -> &Queue {
        &self.children().queue
    }

    fn can_wait(&self) -> bool {
        Children::has_room()
    }

    fn wait(&self) -> bool {
        self.accept(self.children().drain())
    }
}

impl Conditions for &Grid {
    fn schedule(&self) -> Option<&Schedule> {
        self.schedule.as_ref()
    }

    fn bundles(&self) -> u32 {
        self.bundles
    }

    fn runs(&self) -> Option<Runs> {
        self.runs
    }

    fn max_depth(&self) -> u64 {
        self.max_depth
    }

    fn has_stopped(&self) -> bool {
        Grid::has_stopped(self)
    }

    fn overdue(&self) -> Option<Cause> {
        Grid::overdue(self)
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
            barriers: Barriers::default(),
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
        for bundle in &mut self.bundles {
            bundle.enter(&self.env);
        }
        let live = self.bundles.iter().map(Bundle::live_by_warp);
        self.barriers.reset(live.flatten().copied());
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
            self.tell(|env| GridEvent::BlockEnd { block: env.ctaid });
            return Ok(true);
        }
        if !self.bundles.iter_mut().any(Bundle::force) {
            return Err(Box::new(self.deadlock()));
        }
        Ok(false)
    }

    fn release(&mut self) {
        while let Some((barrier, tally)) = self.barriers.take_due() {
            self.tell(|env| GridEvent::Release {
                block: env.ctaid,
                barrier,
            });
            for bundle in &mut self.bundles {
                bundle.release_barrier(barrier, &tally);
            }
        }
    }

    /// Tells an observer of something that befalls the whole block.
    fn tell(&self, event: impl FnOnce(&BlockEnv<'_>) -> GridEvent) {
        let grid = self.env.env;
        if let Some(observer) = grid.watch.observer() {
            observer.grid(grid.launch.grid_id, &event(&self.env));
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
