//! A graph as it is at one moment, with the graphs inside it: what is instantiated, copied, compared and drawn.
//!
//! It is plain data: no lock is held while somebody works with it.

use std::collections::HashMap;
use std::sync::Arc;

use super::{EdgeData, Graph, UserObject, Work};
use crate::driver::Handle;

pub(super) struct Snapshot {
    /// In the order of creation.
    pub(super) nodes: Vec<SnapshotNode>,
    pub(super) users: Vec<(Arc<UserObject>, u32)>,
}

pub(super) struct SnapshotNode {
    pub handle: Handle,
    pub id: u32,
    pub work: Arc<Work>,
    /// Indices into `nodes`.
    pub before: Vec<(usize, EdgeData)>,
    /// Of the graphs that belong to the node.
    pub nested: Vec<Snapshot>,
}

impl Graph {
    pub(super) fn snapshot(&self) -> Snapshot {
        let inner = self.inner.lock();
        let index: HashMap<u32, usize> = inner.slots.keys().copied().zip(0..).collect();
        let mut nodes: Vec<SnapshotNode> = inner
            .slots
            .values()
            .map(|slot| SnapshotNode {
                handle: slot.node.handle,
                id: slot.node.id,
                work: slot.node.work(),
                before: slot.before.iter().map(|(id, data)| (index[id], *data)).collect(),
                nested: Vec::new(),
            })
            .collect();
        let users = inner.users.clone();
        drop(inner);
        for node in &mut nodes {
            node.nested = node.work.graphs().iter().map(|graph| graph.snapshot()).collect();
        }
        Snapshot { nodes, users }
    }
}

impl Snapshot {
    /// Graphs with memory or conditional nodes cannot be copied (manual, cuGraphClone), nor can those with nodes of which
    /// there can be only one.
    pub(super) fn is_clonable(&self) -> bool {
        self.nodes.iter().all(|node| {
            let once = matches!(&*node.work, Work::Kernel(kernel) if kernel.updatable.is_some());
            !once
                && !matches!(*node.work, Work::Allocate(_) | Work::Free(_) | Work::Conditional(_))
                && node.nested.iter().all(Snapshot::is_clonable)
        })
    }

    pub(super) fn has_memory(&self) -> bool {
        self.each(&|node| matches!(*node.work, Work::Allocate(_) | Work::Free(_)))
    }

    fn each(&self, found: &dyn Fn(&SnapshotNode) -> bool) -> bool {
        let mut nodes = self.nodes.iter();
        nodes.any(|node| found(node) || node.nested.iter().any(|nested| nested.each(found)))
    }

    /// The node of that handle, at any depth.
    pub(super) fn find_mut(&mut self, handle: Handle) -> Option<&mut SnapshotNode> {
        for node in &mut self.nodes {
            if node.handle == handle {
                return Some(node);
            }
            if let Some(found) = node.nested.iter_mut().find_map(|nested| nested.find_mut(handle)) {
                return Some(found);
            }
        }
        None
    }
}
