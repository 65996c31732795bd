//! Graphs that kernels launch and change (CUDA programming guide, "Device Graph Launch" and "Device-Updatable Nodes").
//!
//! Flows in: what a kernel node of a running graph asks for. Flows out: further graphs to run, changed nodes. It must never
//! know how a kernel asks.
//!
//! Nobody may wait for a graph that a kernel launched but what comes after it, so it runs when the launching graph has ended:
//! first what was launched to be forgotten, then, once all of that is complete, what was launched as a tail.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::super::context::Shared;
use super::super::handle::{self, Registry};
use super::super::launch::Prepared;
use super::super::profile::MULTIPROCESSORS;
use super::exec::Exec;
use super::plan::{Occasion, Plan};
use super::{KernelNode, Snapshot, Work};
use crate::driver::{Error, Handle, Result};
use crate::simt::GraphUpdate;

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
pub(super) fn run(exec: &Arc<Exec>, plan: &Plan, shared: &Shared, occasion: &Occasion) {
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
            next.plan().run(shared, &Occasion::default());
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

/// A kernel node that kernels may change: what it does from now on, apart from the plans that run it.
pub struct DeviceNode {
    handle: Handle,
    /// There is an executable graph with it, and there can be no other.
    taken: AtomicBool,
    state: Mutex<Option<State>>,
}

struct State {
    node: KernelNode,
    /// The executable graph as kernels see it.
    graph: Handle,
    is_enabled: bool,
    prepared: Arc<Prepared>,
}

/// Nodes keep theirs alive.
static NODES: Registry<Weak<DeviceNode>> = Registry::new();

impl DeviceNode {
    pub fn create() -> Arc<DeviceNode> {
        let node = Arc::new(DeviceNode {
            handle: handle::fresh(),
            taken: AtomicBool::new(false),
            state: Mutex::default(),
        });
        NODES.insert(node.handle, &Arc::new(Arc::downgrade(&node)));
        node
    }

    /// What kernels call it by.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// An executable graph has it.
    pub(super) fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Acquire)
    }

    pub(super) fn take(&self) {
        self.taken.store(true, Ordering::Release);
    }

    /// What it does at first, or after a change by the host.
    pub(super) fn settle(&self, node: &KernelNode, graph: Handle) -> Result<()> {
        let prepared = Arc::new(prepare(node, graph)?);
        let mut state = self.state.lock();
        let is_enabled = state.as_ref().is_none_or(|state| state.is_enabled);
        *state = Some(State {
            node: node.clone(),
            graph,
            is_enabled,
            prepared,
        });
        Ok(())
    }

    pub(super) fn run(&self) {
        // Not under the lock: the kernel may change its own node.
        let prepared = {
            let state = self.state.lock();
            let enabled = state.as_ref().filter(|state| state.is_enabled);
            enabled.map(|state| Arc::clone(&state.prepared))
        };
        if let Some(prepared) = prepared {
            prepared.run();
        }
    }

    fn update(&self, update: GraphUpdate) -> Result<()> {
        let mut state = self.state.lock();
        let state = state.as_mut().ok_or(Error::InvalidValue)?;
        let mut node = state.node.clone();
        match update {
            GraphUpdate::Enabled(is_enabled) => {
                state.is_enabled = is_enabled;
                return Ok(());
            }
            GraphUpdate::Grid(grid) => node.config.grid = grid,
            GraphUpdate::Parameter { offset, bytes } => {
                let start = usize::try_from(offset).map_err(|_| Error::InvalidValue)?;
                let end = start.checked_add(bytes.len()).ok_or(Error::InvalidValue)?;
                let target = node.params.get_mut(start..end).ok_or(Error::InvalidValue)?;
                target.copy_from_slice(&bytes);
            }
        }
        state.prepared = Arc::new(prepare(&node, state.graph)?);
        state.node = node;
        Ok(())
    }
}

impl Drop for DeviceNode {
    fn drop(&mut self) {
        NODES.remove(self.handle);
    }
}

/// A launch of a kernel node as a part of an executable graph.
pub(super) fn prepare(node: &KernelNode, graph: Handle) -> Result<Prepared> {
    let params = node.params.clone();
    Prepared::new_in(&node.function, &node.config, params, MULTIPROCESSORS, graph as u64)
}

/// `cudaGraphKernelNodeSet…` of a kernel; 1 for what is not such a node, or not in an executable graph, and for what does not
/// fit it.
pub(in crate::driver) fn update(node: u64, update: GraphUpdate) -> Result<()> {
    let node = NODES.get(node as Handle).ok_or(Error::InvalidValue)?;
    node.upgrade().ok_or(Error::InvalidValue)?.update(update)
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
