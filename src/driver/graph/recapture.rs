//! Recording over a graph that is there (`cuStreamBeginRecaptureToGraph`): the same nodes in the same order, with other
//! parameters.
//!
//! Nodes are recorded into a graph of their own and compared with the old ones as they come; the old graph is changed
//! when the recording ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::update::check_change;
use super::{Graph, Node, Work};
use crate::driver::{Error, Result};

/// Told of a node whose parameters differ: the node, the recorded one, whether an executable graph could take the change.
/// `false` ends the recording.
pub type OnMismatch = Box<dyn Fn(&Node, &Node, bool) -> bool + Send + Sync>;

pub(super) struct Recapture {
    graph: Arc<Graph>,
    nodes: Vec<Arc<Node>>,
    on_mismatch: Option<OnMismatch>,
}

impl Recapture {
    /// 401 for a graph that is recorded into, 900 for one with memory nodes, whose addresses programs know.
    pub fn new(graph: &Arc<Graph>, on_mismatch: Option<OnMismatch>) -> Result<Recapture> {
        let nodes = graph.nodes();
        let has_memory = |node: &Arc<Node>| matches!(&*node.work(), Work::Allocate(_) | Work::Free(_));
        if nodes.iter().any(has_memory) {
            return Err(Error::StreamCaptureUnsupported);
        }
        if graph.is_capturing.swap(true, Ordering::AcqRel) {
            return Err(Error::IllegalState);
        }
        graph.release_users();
        Ok(Recapture {
            graph: Arc::clone(graph),
            nodes,
            on_mismatch,
        })
    }

    /// Compares a node with the one that was recorded in its place before. 901 for another shape of the graph; and when the
    /// program does not want the change.
    pub fn compare(&self, recorded: &Arc<Graph>, node: &Arc<Node>) -> Result<()> {
        let now = recorded.nodes();
        let place = |nodes: &[Arc<Node>], node: &Arc<Node>| nodes.iter().position(|other| Arc::ptr_eq(other, node));
        let index = place(&now, node).ok_or(Error::StreamCaptureInvalidated)?;
        let before = self.nodes.get(index).ok_or(Error::StreamCaptureInvalidated)?;
        let edges = |graph: &Graph, nodes: &[Arc<Node>], node: &Node| {
            let edges = graph.dependencies(node).into_iter();
            let mut edges: Vec<_> = edges.map(|(from, data)| (place(nodes, &from), data)).collect();
            edges.sort_unstable();
            edges
        };
        let (old, new) = (before.work(), node.work());
        let same_place = edges(&self.graph, &self.nodes, before) == edges(recorded, &now, node);
        if !same_place || old.node_type() != new.node_type() {
            return Err(Error::StreamCaptureInvalidated);
        }
        if same(&old, &new) {
            return Ok(());
        }
        let wanted = match &self.on_mismatch {
            Some(tell) => tell(before, node, check_change(&old, &new).is_ok()),
            None => true,
        };
        if wanted {
            Ok(())
        } else {
            Err(Error::StreamCaptureInvalidated)
        }
    }

    /// The recording is complete: the graph takes over what was recorded, and is answered. 901 if nodes are missing.
    pub fn finish(&self, recorded: &Arc<Graph>) -> Result<Arc<Graph>> {
        let now = recorded.nodes();
        if now.len() != self.nodes.len() {
            return Err(Error::StreamCaptureInvalidated);
        }
        for (before, node) in self.nodes.iter().zip(&now) {
            before.take_over(node);
        }
        Ok(Arc::clone(&self.graph))
    }

    /// However it ended.
    pub fn end(&self) {
        self.graph.is_capturing.store(false, Ordering::Release);
    }
}

/// Whether two nodes of one type do the same with the same parameters.
fn same(old: &Work, new: &Work) -> bool {
    match (old, new) {
        (Work::Kernel(old), Work::Kernel(new)) => {
            Arc::ptr_eq(&old.function, &new.function)
                && (old.config, &old.params, &old.attributes) == (new.config, &new.params, &new.attributes)
        }
        (Work::Copy(old), Work::Copy(new)) => (old.dst, old.src, old.shape) == (new.dst, new.src, new.shape),
        (Work::Set(old), Work::Set(new)) => old == new,
        (Work::Host(old), Work::Host(new)) => {
            (old.function as usize, old.data, old.mode) == (new.function as usize, new.data, new.mode)
        }
        (Work::WaitEvent(old), Work::WaitEvent(new)) | (Work::RecordEvent(old), Work::RecordEvent(new)) => {
            Arc::ptr_eq(old, new)
        }
        (Work::Batch(old), Work::Batch(new)) => old.operations == new.operations,
        (Work::Empty, Work::Empty) => true,
        // Graphs inside of nodes are copies each time.
        _ => false,
    }
}
