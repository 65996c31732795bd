//! Kernel nodes that kernels may change (CUDA programming guide, "Device-Updatable Nodes").

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::super::handle::{self, Registry};
use super::super::launch::Prepared;
use super::super::profile::multiprocessors;
use super::work::KernelNode;
use crate::driver::{Error, Handle, Result};
use crate::simt::GraphUpdate;

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
    let origin = (graph as u64, node.by);
    Prepared::of_node(&node.function, &node.config, params, multiprocessors(), origin)
}

/// `cudaGraphKernelNodeSet…` of a kernel; 1 for what is not such a node, or not in an executable graph, and for what does not
/// fit it.
pub(in crate::driver) fn update(node: u64, update: GraphUpdate) -> Result<()> {
    let node = NODES.get(node as Handle).ok_or(Error::InvalidValue)?;
    node.upgrade().ok_or(Error::InvalidValue)?.update(update)
}
