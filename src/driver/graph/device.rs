//! Graphs that kernels launch and change (CUDA programming guide, "Device Graph Launch" and "Device-Updatable Nodes").
//!
//! Nobody may wait for a graph that a kernel launched but what comes after it, so it runs when the launching graph has ended:
//! first what was launched to be forgotten, then, once all of that is complete, what was launched as a tail.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::context::Shared;
use super::device_node::DeviceNode;
use super::exec::Exec;
use super::plan::{Occasion, Plan};
use super::{Snapshot, Work};
use crate::driver::{Error, Handle, Result};

/// Streams of `cudaGraphLaunch` in kernels (`cuda_device_runtime_api.h`).
const TAIL: u64 = 0x0100_0000_0000_0000;
const FIRE_AND_FORGET: u64 = 0x0200_0000_0000_0000;
const SIBLING: u64 = 0x0300_0000_0000_0000;

/// How many a graph may launch in one run of its own (CUDA programming guide, "Fire and Forget Launch", "Tail Launch").
const MOST_FORGOTTEN: u32 = 120;
const MOST_TAILS: usize = 255;

/// What the kernels of a running graph have launched.
#[derive(Default)]
pub(super) struct Environment {
    running: bool,
    forgotten: VecDeque<Arc<Exec>>,
    /// All that were launched so in this run.
    forgotten_count: u32,
    siblings: Vec<Arc<Exec>>,
    tails: VecDeque<Arc<Exec>>,
}

impl Environment {
    /// The graph is under way or about to be: one that kernels launched cannot be launched by them again before it ran.
    fn enter(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.running, true) {
            true => Err(Error::InvalidValue),
            false => Ok(()),
        }
    }
}

/// `cudaGraphLaunch` of a kernel in the graph `from` (0: in none).
///
/// # Errors
/// 1 for anything but two executable graphs made for it, the one launched uploaded and not under way, in one of the three
/// streams that there are for it; and for too many.
pub(in crate::driver) fn launch(from: u64, graph: u64, stream: u64) -> Result<()> {
    let parent = Exec::from_handle(from as Handle)?;
    let exec = Exec::from_handle(graph as Handle)?;
    if !parent.is_for_device() || !exec.is_for_device() {
        tracing::error!("cudaGraphLaunch in a kernel: not instantiated with CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH");
        return Err(Error::InvalidValue);
    }
    if !exec.is_uploaded() {
        tracing::error!("cudaGraphLaunch in a kernel: the graph has neither been uploaded nor launched by the host");
        return Err(Error::InvalidValue);
    }
    let to_itself = Arc::ptr_eq(&parent, &exec);
    match stream {
        TAIL => {
            // A graph may follow itself; once.
            if !to_itself {
                exec.environment.lock().enter()?;
            }
            let mut environment = parent.environment.lock();
            let twice = to_itself && environment.tails.iter().any(|tail| Arc::ptr_eq(tail, &exec));
            if environment.tails.len() >= MOST_TAILS || twice {
                if !to_itself {
                    drop(environment);
                    exec.environment.lock().running = false;
                }
                return Err(Error::InvalidValue);
            }
            environment.tails.push_back(exec);
        }
        FIRE_AND_FORGET | SIBLING => {
            exec.environment.lock().enter()?;
            let mut environment = parent.environment.lock();
            if environment.forgotten_count >= MOST_FORGOTTEN {
                drop(environment);
                exec.environment.lock().running = false;
                return Err(Error::InvalidValue);
            }
            environment.forgotten_count += 1;
            if stream == SIBLING {
                environment.siblings.push(exec);
            } else {
                environment.forgotten.push_back(exec);
            }
        }
        _ => return Err(Error::InvalidValue),
    }
    Ok(())
}

/// Runs a plan of the host's launch and all graphs that come of it.
pub(super) fn run(exec: &Arc<Exec>, plan: &Arc<Plan>, shared: &Arc<Shared>, occasion: &Arc<Occasion>) {
    // The host orders launches of one graph itself.
    exec.environment.lock().running = true;
    plan.run(shared, occasion);
    let mut stack = vec![Environment::default()];
    ended(exec, &mut stack);
    while let Some(top) = stack.last_mut() {
        let next = top.forgotten.pop_front().or_else(|| top.tails.pop_front());
        let Some(next) = next else {
            stack.pop();
            continue;
        };
        // What launches itself over and over leaves nothing behind.
        if top.forgotten.is_empty() && top.tails.is_empty() && stack.len() > 1 {
            stack.pop();
        }
        next.environment.lock().running = true;
        if !shared.has_failed() {
            let occasion = Occasion {
                order: occasion.order.clone(),
                ..Occasion::default()
            };
            next.plan().run(shared, &Arc::new(occasion));
        }
        ended(&next, &mut stack);
    }
}

/// A graph has run: what it launched is next.
fn ended(exec: &Exec, stack: &mut Vec<Environment>) {
    let mut mine = std::mem::take(&mut *exec.environment.lock());
    if let Some(parent) = stack.last_mut() {
        parent.forgotten.extend(mine.siblings.drain(..));
    }
    stack.push(mine);
}

/// The device-updatable nodes of a graph and of those inside it.
pub(super) fn updatable(snapshot: &Snapshot) -> Vec<Arc<DeviceNode>> {
    let found = snapshot.nodes.iter().flat_map(|node| {
        let own = match &*node.work {
            Work::Kernel(kernel) => kernel.updatable.clone(),
            _ => None,
        };
        own.into_iter().chain(node.nested.iter().flat_map(updatable))
    });
    found.collect()
}
