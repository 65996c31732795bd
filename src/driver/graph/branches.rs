//! Steps of a graph that do not depend on each other run side by side.
//!
//! The thread that runs the graph takes whatever is ready. As long as more is ready than it can do, it calls other threads
//! ([`pump::help`]), one after the other: where steps are short it has done them before anybody comes, and where one takes
//! long, or waits for another, there is a thread for each.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::super::context::Shared;
use super::super::pump;
use super::super::stream::guarded;
use super::plan::{Occasion, Plan};
use crate::defect;
use crate::sanitizer::between::{self, Node, Order};

/// Steps in an order in which each comes after what it depends on. A place is an index into it.
#[derive(Clone, Default)]
pub(super) struct Block {
    /// The plan's numbers of them.
    steps: Vec<u32>,
    /// By place: the places that it comes after, and those that come after it.
    before: Vec<Box<[u32]>>,
    after: Vec<Vec<u32>>,
    has_branches: bool,
    /// Made where somebody looks for races.
    order: OnceLock<Arc<Ancestors>>,
}

/// By place, a bit for each place that it comes after, directly or not.
#[derive(Debug)]
struct Ancestors(Vec<Box<[u64]>>);

impl Order for Ancestors {
    fn precedes(&self, first: u32, second: u32) -> bool {
        self.0[second as usize][first as usize / 64] >> (first % 64) & 1 == 1
    }
}

/// One time that a block runs, for who looks for races.
pub(super) struct Run {
    around: Option<Node>,
    number: u64,
    order: Arc<Ancestors>,
}

impl Run {
    pub fn node(&self, place: u32) -> Node {
        let order = Arc::clone(&self.order) as Arc<dyn Order>;
        Node::new(self.around.as_ref(), self.number, place, order)
    }
}

impl Block {
    /// It is about to run, as the body of a step if that is `around`.
    pub fn begin(&self, around: Option<&Node>) -> Run {
        let order = self.order.get_or_init(|| {
            let mut all: Vec<Box<[u64]>> = Vec::with_capacity(self.steps.len());
            for before in &self.before {
                let mut bits = vec![0_u64; self.steps.len().div_ceil(64)].into_boxed_slice();
                for place in before.iter().map(|place| *place as usize) {
                    bits.iter_mut()
                        .zip(all[place].iter())
                        .for_each(|(own, theirs)| *own |= theirs);
                    bits[place / 64] |= 1 << (place % 64);
                }
                all.push(bits);
            }
            Arc::new(Ancestors(all))
        });
        Run {
            around: around.cloned(),
            number: between::next_run(),
            order: Arc::clone(order),
        }
    }

    /// Adds a step that comes after those at the given places; answers its own.
    pub fn add(&mut self, step: u32, before: &[u32]) -> u32 {
        self.order.take();
        let place = self.steps.len() as u32;
        // Nothing can stand between neighbours, so those that are not linked do not depend on each other at all.
        self.has_branches |= place > 0 && !before.contains(&(place - 1));
        for earlier in before {
            self.after[*earlier as usize].push(place);
        }
        self.steps.push(step);
        self.before.push(before.into());
        self.after.push(Vec::new());
        place
    }

    /// The steps, if there is only one order for them.
    pub fn in_a_row(&self) -> Option<&[u32]> {
        (!self.has_branches).then_some(&self.steps)
    }

    /// Whether one step of this block always comes before another one.
    pub fn precedes(&self, first: u32, second: u32) -> bool {
        let place = |step| self.steps.iter().position(|at| *at == step);
        let (Some(first), Some(second)) = (place(first), place(second)) else {
            return false;
        };
        let (mut seen, mut ahead) = (vec![false; self.steps.len()], vec![second]);
        while let Some(place) = ahead.pop() {
            for earlier in self.before[place].iter().map(|earlier| *earlier as usize) {
                if earlier == first {
                    return true;
                }
                if !std::mem::replace(&mut seen[earlier], true) {
                    ahead.push(earlier);
                }
            }
        }
        false
    }
}

/// The threads that run one block, once.
struct Team {
    plan: Arc<Plan>,
    block: usize,
    shared: Arc<Shared>,
    occasion: Arc<Occasion>,
    run: Option<Run>,
    progress: Mutex<Progress>,
    wake: Condvar,
}

struct Progress {
    /// Places of steps that can run.
    ready: VecDeque<u32>,
    /// By place: how many of the steps before it have not run.
    waits_for: Vec<u32>,
    /// Steps that have not run, or are running.
    left: usize,
    /// Another thread has been called, and is not here yet.
    is_coming: bool,
}

/// Runs a block of a plan; returns when all of it has run.
pub(super) fn run(plan: &Arc<Plan>, block: usize, shared: &Arc<Shared>, occasion: &Arc<Occasion>, run: Option<Run>) {
    let steps = plan.block(block);
    let waits_for: Vec<u32> = steps.before.iter().map(|before| before.len() as u32).collect();
    let places = 0..waits_for.len() as u32;
    let team = Arc::new(Team {
        plan: Arc::clone(plan),
        block,
        shared: Arc::clone(shared),
        occasion: Arc::clone(occasion),
        run,
        progress: Mutex::new(Progress {
            ready: places.filter(|place| waits_for[*place as usize] == 0).collect(),
            left: waits_for.len(),
            waits_for,
            is_coming: false,
        }),
        wake: Condvar::new(),
    });
    let mut progress = team.progress.lock();
    while progress.left > 0 {
        if !team.take(&mut progress) {
            team.wake.wait(&mut progress);
        }
    }
}

impl Team {
    /// A thread that was called: takes part until nothing is ready.
    fn help(self: &Arc<Team>) {
        let mut progress = self.progress.lock();
        progress.is_coming = false;
        while self.take(&mut progress) {}
    }

    /// Runs one step; `false`: none is ready.
    fn take(self: &Arc<Team>, progress: &mut MutexGuard<'_, Progress>) -> bool {
        let Some(place) = progress.ready.pop_front() else {
            return false;
        };
        if !progress.ready.is_empty() && !progress.is_coming {
            progress.is_coming = true;
            let team = Arc::clone(self);
            pump::help(Box::new(move || team.help()));
        }
        MutexGuard::unlocked(progress, || self.run(place));
        progress.left -= 1;
        for later in &self.plan.block(self.block).after[place as usize] {
            let waits_for = &mut progress.waits_for[*later as usize];
            *waits_for -= 1;
            if *waits_for == 0 {
                progress.ready.push_back(*later);
            }
        }
        // The thread that runs the graph may sleep: for the end, or for something to do.
        if progress.left == 0 || progress.ready.len() > 1 {
            self.wake.notify_one();
        }
        true
    }

    fn run(&self, place: u32) {
        let number = self.plan.block(self.block).steps[place as usize];
        let node = self.run.as_ref().map(|run| run.node(place));
        let done = defect::within(|| {
            guarded(&self.shared, || {
                self.plan.run_step(number, &self.shared, &self.occasion, node.as_ref());
            });
        });
        // The rest goes on, without work, and whoever waits for it is told.
        if let Err(defect) = done {
            self.shared.fail_by(&defect, "a step of a graph");
        }
    }
}
