//! Changes to executable graphs: of one node, or of all by a graph of the same shape.
//!
//! Edges do not change. A change makes a new plan; launches under way keep the old one.

use std::sync::Arc;

use super::device;
use super::snapshot::SnapshotNode;
use super::{Exec, Graph, KernelNode, NodeType, Snapshot, Work};
use crate::driver::copy::{CopyKind, End, Shape};
use crate::driver::{Error, Handle, MemoryOperation, Result};

/// `CUgraphExecUpdateResult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mismatch {
    Error = 1,
    Topology = 2,
    NodeType = 3,
    Function = 4,
    Parameters = 5,
    NotSupported = 6,
    UnsupportedFunction = 7,
    Attributes = 8,
}

/// Why a graph cannot take the place of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateError {
    pub mismatch: Mismatch,
    /// A node of the new graph; 0 if none is to blame.
    pub node: Handle,
    /// What the node depends on, if that is what does not match.
    pub from: Handle,
}

impl UpdateError {
    fn topology(node: Handle, from: Handle) -> UpdateError {
        UpdateError {
            mismatch: Mismatch::Topology,
            node,
            from,
        }
    }
}

/// Whether what a node did may become what another does (driver API manual, cuGraphExecUpdate and the calls for single
/// nodes).
pub(super) fn check_change(old: &Work, new: &Work) -> Result<(), Mismatch> {
    match (old, new) {
        (Work::Kernel(old), Work::Kernel(new)) => check_kernel(old, new),
        (Work::Copy(old), Work::Copy(new)) => {
            let same = |old: End, new: End| old.kind() == new.kind() && old.device() == new.device();
            let flat = |shape: Shape| shape.height <= 1 && shape.depth <= 1;
            let fits = same(old.dst, new.dst)
                && same(old.src, new.src)
                && (flat(old.shape) && flat(new.shape) || old.shape == new.shape);
            if fits { Ok(()) } else { Err(Mismatch::Parameters) }
        }
        (Work::Set(old), Work::Set(new)) => {
            let same_box =
                (old.width, old.height, old.pitch, old.element) == (new.width, new.height, new.pitch, new.element);
            let fits = match old.height {
                1 => new.height == 1,
                _ => same_box,
            };
            if fits { Ok(()) } else { Err(Mismatch::Parameters) }
        }
        (Work::Batch(old), Work::Batch(new)) => {
            let kinds = |node: &super::BatchNode| {
                let kinds = node.operations.iter().map(MemoryOperation::kind);
                kinds.collect::<Vec<_>>()
            };
            match kinds(old) == kinds(new) {
                true => Ok(()),
                false => Err(Mismatch::Parameters),
            }
        }
        // How many semaphores or copies there are stays (manual, cuGraphExecExternalSemaphoresSignalNodeSetParams,
        // CUDA_MEMCPY_BATCH_NODE_PARAMS).
        (Work::Signal(old), Work::Signal(new)) | (Work::Await(old), Work::Await(new)) => {
            match old.steps.len() == new.steps.len() {
                true => Ok(()),
                false => Err(Mismatch::Parameters),
            }
        }
        (Work::CopyBatch(old), Work::CopyBatch(new)) => {
            let orders = |node: &super::CopyBatchNode| node.copies.iter().map(|copy| copy.access).collect::<Vec<_>>();
            match orders(old) == orders(new) && old.context == new.context {
                true => Ok(()),
                false => Err(Mismatch::Parameters),
            }
        }
        // The address is the allocation's: another one would be another allocation.
        (Work::Allocate(old), Work::Allocate(new)) | (Work::Free(old), Work::Free(new)) => {
            match Arc::ptr_eq(old, new) {
                true => Ok(()),
                false => Err(Mismatch::NotSupported),
            }
        }
        (Work::Conditional(old), Work::Conditional(new)) => {
            match (old.kind, old.bodies.len()) == (new.kind, new.bodies.len()) {
                true => Ok(()),
                false => Err(Mismatch::Parameters),
            }
        }
        (old, new) if old.node_type() == new.node_type() => Ok(()),
        _ => Err(Mismatch::NodeType),
    }
}

fn check_kernel(old: &KernelNode, new: &KernelNode) -> Result<(), Mismatch> {
    if !Arc::ptr_eq(&old.function.shared, &new.function.shared) {
        return Err(Mismatch::UnsupportedFunction);
    }
    match old.config.cooperative == new.config.cooperative {
        true => Ok(()),
        false => Err(Mismatch::Attributes),
    }
}

/// Nodes of two graphs that stand in the same places: (old, new), from nodes that nothing depends on back through the
/// edges in their order (CUDA programming guide, "Whole Graph Update").
fn pair(old: &Snapshot, new: &Snapshot) -> Result<Vec<(usize, usize)>, UpdateError> {
    if old.nodes.len() != new.nodes.len() {
        return Err(UpdateError::topology(0, 0));
    }
    let (old_ends, new_ends) = (ends(old), ends(new));
    if old_ends.len() != new_ends.len() {
        let extra = new_ends.get(old_ends.len()).map_or(0, |index| new.nodes[*index].handle);
        return Err(UpdateError::topology(extra, 0));
    }
    let (mut of_old, mut of_new) = (vec![None; old.nodes.len()], vec![None; new.nodes.len()]);
    let mut pairs: Vec<(usize, usize)> = old_ends.into_iter().zip(new_ends).collect();
    for (from, to) in &pairs {
        (of_old[*from], of_new[*to]) = (Some(*to), Some(*from));
    }
    let mut next = 0;
    while let Some((from, to)) = pairs.get(next).copied() {
        next += 1;
        let (before, after) = (&old.nodes[from], &new.nodes[to]);
        if before.before.len() != after.before.len() {
            return Err(UpdateError::topology(after.handle, 0));
        }
        for ((a, a_data), (b, b_data)) in before.before.iter().zip(&after.before) {
            let fits = match (of_old[*a], of_new[*b]) {
                (None, None) => {
                    (of_old[*a], of_new[*b]) = (Some(*b), Some(*a));
                    pairs.push((*a, *b));
                    true
                }
                (known, _) => known == Some(*b),
            };
            if !fits || a_data != b_data {
                return Err(UpdateError::topology(after.handle, new.nodes[*b].handle));
            }
        }
    }
    // Nodes in a cycle lead to no end.
    match pairs.len() == old.nodes.len() {
        true => Ok(pairs),
        false => Err(UpdateError::topology(0, 0)),
    }
}

/// Nodes that nothing depends on.
fn ends(snapshot: &Snapshot) -> Vec<usize> {
    let mut is_end = vec![true; snapshot.nodes.len()];
    for (from, _) in snapshot.nodes.iter().flat_map(|node| &node.before) {
        is_end[*from] = false;
    }
    (0..is_end.len()).filter(|index| is_end[*index]).collect()
}

/// New work by the handles of the old nodes, at all depths.
fn changes(old: &Snapshot, new: &Snapshot, found: &mut Vec<(Handle, Arc<Work>, Handle)>) -> Result<(), UpdateError> {
    for (from, to) in pair(old, new)? {
        let (before, after) = (&old.nodes[from], &new.nodes[to]);
        check_change(&before.work, &after.work).map_err(|mismatch| UpdateError {
            mismatch,
            node: after.handle,
            from: 0,
        })?;
        for (a, b) in before.nested.iter().zip(&after.nested) {
            changes(a, b, found)?;
        }
        if after.work.node_type() != NodeType::Child {
            found.push((before.handle, Arc::clone(&after.work), after.handle));
        }
    }
    Ok(())
}

impl Exec {
    /// Changes what a node does in later launches (`cuGraphExec…NodeSetParams`): the node is one of the graph that was
    /// instantiated. 1 for changes that are not allowed.
    pub fn set_work(&self, node: Handle, mut work: Work) -> Result<()> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let known = state.snapshot.find_mut(node).ok_or(Error::InvalidValue)?;
        // Attributes are not among the parameters of kernels: they stay.
        if let (Work::Kernel(old), Work::Kernel(new)) = (&*known.work, &mut work) {
            new.inherit(old);
        }
        work.check()?;
        check_change(&known.work, &work).map_err(|_| Error::InvalidValue)?;
        let flat = |shape: Shape| shape.height <= 1 && shape.depth <= 1;
        if let (Work::Copy(old), Work::Copy(new)) = (&*known.work, &work)
            && !(flat(old.shape) && flat(new.shape) && new.shape.width > 0)
        {
            return Err(Error::InvalidValue);
        }
        let before = std::mem::replace(&mut known.work, Arc::new(work));
        let replaced = Arc::make_mut(&mut state.plan).replace(known);
        if replaced.is_err() {
            known.work = before;
        }
        replaced
    }

    /// `cuGraphExecChildGraphNodeSetParams`.
    pub fn set_child(&self, node: Handle, graph: &Arc<Graph>) -> Result<()> {
        let new = graph.snapshot();
        let mut found = Vec::new();
        {
            let mut state = self.state.lock();
            let known = state.snapshot.find_mut(node).ok_or(Error::InvalidValue)?;
            if known.work.node_type() != NodeType::Child {
                return Err(Error::InvalidValue);
            }
            changes(&known.nested[0], &new, &mut found).map_err(|_| Error::InvalidValue)?;
        }
        self.apply(found).map_err(|_| Error::InvalidValue)
    }

    /// `cuGraphExecUpdate`: all nodes, or none.
    pub fn update(&self, graph: &Arc<Graph>) -> Result<(), UpdateError> {
        let new = graph.snapshot();
        // Neither may have nodes that kernels may change (manual, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE).
        let mine = device::updatable(&self.state.lock().snapshot);
        if !mine.is_empty() || !device::updatable(&new).is_empty() {
            return Err(UpdateError {
                mismatch: Mismatch::NotSupported,
                node: 0,
                from: 0,
            });
        }
        let mut found = Vec::new();
        changes(&self.state.lock().snapshot, &new, &mut found)?;
        self.apply(found)
    }

    fn apply(&self, changes: Vec<(Handle, Arc<Work>, Handle)>) -> Result<(), UpdateError> {
        let mut state = self.state.lock();
        let mut plan = (*state.plan).clone();
        // First the plan, which can fail, then what is remembered.
        for (node, work, origin) in &changes {
            let changed = SnapshotNode {
                handle: *node,
                id: 0,
                work: Arc::clone(work),
                before: Vec::new(),
                nested: Vec::new(),
            };
            plan.replace(&changed).map_err(|_| UpdateError {
                mismatch: Mismatch::Parameters,
                node: *origin,
                from: 0,
            })?;
        }
        for (node, work, _) in changes {
            if let Some(known) = state.snapshot.find_mut(node) {
                known.work = work;
            }
        }
        state.plan = Arc::new(plan);
        Ok(())
    }
}

/// Whether a copy's ends are arrays, linear memory of a device, or the host's: that must stay.
impl End {
    fn kind(self) -> CopyKind {
        self.place.kind()
    }
}
