//! Graphs: work described once, launched as often as one likes.
//!
//! Nodes come by calls, or from streams that record. An executable graph is one command of a stream when it is
//! launched.
//!
//! ```text
//! mod.rs       graphs, nodes, edges          work.rs         what a node does
//! snapshot.rs  a graph as it is now          plan.rs         steps in the order in which they run
//! exec.rs      executable graphs, launches   update.rs       changes to them
//! capture.rs   streams that record           conditional.rs  values that kernels set
//! recapture.rs recording once more
//! memory.rs    allocation and free nodes     user_object.rs  what ends with a graph
//! dot.rs       pictures                      device.rs      what kernels launch
//! device_node.rs  what kernels change
//! ```
//!
//! Programs hold graphs and nodes by handle; a handle ends with its object. Graphs are not for several threads at a time
//! (manual, "Graph object thread safety"), so that one lock for each graph is enough; a graph's lock is held while one of
//! a node is taken, never the other way round, and never two graphs' at once.

mod branches;
mod capture;
mod conditional;
mod device;
mod device_node;
mod dot;
mod exec;
mod memory;
mod plan;
mod recapture;
mod snapshot;
mod update;
mod user_object;
mod work;

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

pub use capture::{Capture, CaptureInfo, Mode, exchange_mode};
pub(super) use capture::{check_context, check_unsafe};
pub(super) use conditional::set as set_conditional;
pub use conditional::{Conditional, ConditionalNode};
pub(super) use device::launch as launch_from_device;
pub use device_node::DeviceNode;
pub(super) use device_node::update as update_from_device;
pub use dot::Wanted as DotDetails;
pub use exec::{Exec, InstantiateError};
pub use memory::{GraphMemory, MemoryAttribute, attribute as memory_attribute, reset_attribute, trim as trim_memory};
pub(super) use memory::{forget_all_of as forget_memory_of, free as free_memory, release as release_memory};
pub use recapture::OnMismatch;
use snapshot::Snapshot;
pub use update::{Mismatch, UpdateError};
pub use user_object::UserObject;
pub use work::{BatchNode, CopyBatchNode, CopyNode, HostNode, KernelNode, NodeType, SemaphoreNode, SetNode, Work};

use super::handle::{self, Registry};
use super::{Error, Handle, Result};

/// `CUgraphEdgeData`: from port, to port, type, five bytes of zeros.
pub type EdgeData = [u8; 8];

const PROGRAMMATIC: u8 = 1;

pub struct Graph {
    handle: Handle,
    id: u32,
    inner: Mutex<Inner>,
    /// It belongs to a node of another graph, and ends with it.
    is_owned: AtomicBool,
    /// A stream is recording into it: it cannot be instantiated or destroyed meanwhile.
    is_capturing: AtomicBool,
}

#[derive(Default)]
struct Inner {
    /// By the number that a node has in its graph, which is the order of creation.
    slots: BTreeMap<u32, Slot>,
    next: u32,
    users: Vec<(Arc<UserObject>, u32)>,
    conditionals: Vec<Arc<Conditional>>,
    /// The executable graph of a graph of which there can only be one.
    only: Option<Weak<dyn Any + Send + Sync>>,
    destroyed: bool,
}

struct Slot {
    node: Arc<Node>,
    before: Vec<(u32, EdgeData)>,
    after: Vec<u32>,
}

pub struct Node {
    handle: Handle,
    graph: Weak<Graph>,
    id: u32,
    /// `cuGraphNodeGetToolsId`: unique in the process.
    tools_id: u64,
    /// The node that this one was cloned from; 0 if it was not.
    origin: Handle,
    state: Mutex<NodeState>,
}

struct NodeState {
    work: Arc<Work>,
    /// What the API has handed out pointers to.
    kept: Option<Arc<dyn Any + Send + Sync>>,
}

/// What a node depends on, and how.
pub type Dependency = (Arc<Node>, EdgeData);
/// Nodes at the two ends of an edge.
pub type Edge = (Arc<Node>, Arc<Node>, EdgeData);

static GRAPHS: Registry<Graph> = Registry::new();
static NODES: Registry<Node> = Registry::new();

impl Node {
    /// 1 for what is not a node, or no longer.
    pub fn from_handle(handle: Handle) -> Result<Arc<Node>> {
        NODES.get(handle).ok_or(Error::InvalidValue)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// `cuGraphNodeGetLocalId`.
    pub fn id(&self) -> u32 {
        self.id
    }

    pub fn tools_id(&self) -> u64 {
        self.tools_id
    }

    /// `cuGraphNodeGetContainingGraph`.
    pub fn graph(&self) -> Result<Arc<Graph>> {
        self.graph.upgrade().ok_or(Error::InvalidValue)
    }

    pub fn work(&self) -> Arc<Work> {
        Arc::clone(&self.state.lock().work)
    }

    /// Changes what the node does; its type stays (1 otherwise), and it must be fit to run.
    pub fn set_work(&self, work: Work) -> Result<()> {
        work.check()?;
        let mut state = self.state.lock();
        if state.work.node_type() != work.node_type() {
            return Err(Error::InvalidValue);
        }
        state.work = Arc::new(work);
        state.kept = None;
        Ok(())
    }

    /// Does from now on what another node of the same type does.
    fn take_over(&self, other: &Node) {
        let work = other.work();
        let mut state = self.state.lock();
        state.work = work;
        state.kept = None;
    }

    /// Keeps something until the node is changed or ends.
    pub fn keep(&self, what: Arc<dyn Any + Send + Sync>) {
        self.state.lock().kept = Some(what);
    }

    /// What was kept, if it is of that type.
    pub fn kept<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.state.lock().kept.clone()?.downcast().ok()
    }
}

/// Whether an edge may have such data.
fn check_edge(from: &Work, to: &Work, data: EdgeData) -> Result<()> {
    let [from_port, to_port, kind, reserved @ ..] = data;
    let kernels = [from, to].map(|work| work.node_type() == NodeType::Kernel);
    // Ports of kernels: 0 its end, 1 what it triggers, 2 the start of all blocks.
    let fits = match (from_port, kind) {
        (0, 0) => true,
        (1 | 2, PROGRAMMATIC) => kernels == [true, true],
        (2, 0) => kernels[0],
        _ => false,
    };
    if fits && to_port == 0 && reserved == [0; 5] {
        Ok(())
    } else {
        Err(Error::InvalidValue)
    }
}

impl Graph {
    /// `cuGraphCreate`.
    pub fn create() -> Arc<Graph> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let graph = Arc::new(Graph {
            handle: handle::fresh(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            inner: Mutex::default(),
            is_owned: AtomicBool::new(false),
            is_capturing: AtomicBool::new(false),
        });
        GRAPHS.insert(graph.handle, &graph);
        graph
    }

    /// 1 for what is not a graph, or no longer.
    pub fn from_handle(handle: Handle) -> Result<Arc<Graph>> {
        GRAPHS.get(handle).ok_or(Error::InvalidValue)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// `cuGraphGetId`.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// `cuGraphDestroy`: 1 for a graph that belongs to a node, and for one into which a stream records.
    pub fn destroy(self: &Arc<Graph>) -> Result<()> {
        if self.is_owned.load(Ordering::Acquire) || self.is_capturing.load(Ordering::Acquire) {
            return Err(Error::InvalidValue);
        }
        self.end();
        Ok(())
    }

    /// References to user objects are given back.
    fn release_users(&self) {
        let users = std::mem::take(&mut self.inner.lock().users);
        for (object, count) in users {
            object.release_from_graph(count);
        }
    }

    /// Handles end, references to user objects are given back.
    fn end(&self) {
        GRAPHS.remove(self.handle);
        let inner = {
            let mut inner = self.inner.lock();
            inner.destroyed = true;
            inner.conditionals.clear();
            std::mem::take(&mut inner.slots)
        };
        for slot in inner.into_values() {
            slot.node.end();
        }
        self.release_users();
    }

    /// Adds a node that depends on others of this graph; none may be named twice.
    pub fn add(self: &Arc<Graph>, work: Work, before: &[Dependency]) -> Result<Arc<Node>> {
        work.check()?;
        for (node, data) in before {
            self.check_contains(node)?;
            check_edge(&node.work(), &work, *data)?;
        }
        let unique: HashSet<u32> = before.iter().map(|(node, _)| node.id).collect();
        if unique.len() != before.len() {
            return Err(Error::InvalidValue);
        }
        let mut inner = self.inner.lock();
        if inner.destroyed || before.iter().any(|(node, _)| !inner.slots.contains_key(&node.id)) {
            return Err(Error::InvalidValue);
        }
        work.adopt()?;
        let before = before.iter().map(|(node, data)| (node.id, *data)).collect();
        Ok(self.insert(&mut inner, Arc::new(work), before, 0))
    }

    /// The nodes named in `before` are there.
    fn insert(
        self: &Arc<Graph>,
        inner: &mut Inner,
        work: Arc<Work>,
        before: Vec<(u32, EdgeData)>,
        origin: Handle,
    ) -> Arc<Node> {
        static TOOLS: AtomicU64 = AtomicU64::new(1);
        let id = inner.next;
        inner.next += 1;
        let node = Arc::new(Node {
            handle: handle::fresh(),
            graph: Arc::downgrade(self),
            id,
            tools_id: TOOLS.fetch_add(1, Ordering::Relaxed),
            origin,
            state: Mutex::new(NodeState { work, kept: None }),
        });
        NODES.insert(node.handle, &node);
        for (other, _) in &before {
            if let Some(slot) = inner.slots.get_mut(other) {
                slot.after.push(id);
            }
        }
        let slot = Slot {
            node: Arc::clone(&node),
            before,
            after: Vec::new(),
        };
        inner.slots.insert(id, slot);
        node
    }

    fn check_contains(self: &Arc<Graph>, node: &Node) -> Result<()> {
        match std::ptr::eq(node.graph.as_ptr(), Arc::as_ptr(self)) {
            true => Ok(()),
            false => Err(Error::InvalidValue),
        }
    }

    /// All nodes, in the order of creation.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        let inner = self.inner.lock();
        inner.slots.values().map(|slot| Arc::clone(&slot.node)).collect()
    }

    /// Nodes that depend on none.
    pub fn roots(&self) -> Vec<Arc<Node>> {
        let inner = self.inner.lock();
        let roots = inner.slots.values().filter(|slot| slot.before.is_empty());
        roots.map(|slot| Arc::clone(&slot.node)).collect()
    }

    /// All edges, by the node that they lead to.
    pub fn edges(&self) -> Vec<Edge> {
        let inner = self.inner.lock();
        let mut edges = Vec::new();
        for slot in inner.slots.values() {
            for (from, data) in &slot.before {
                edges.push((Arc::clone(&inner.slots[from].node), Arc::clone(&slot.node), *data));
            }
        }
        edges
    }

    /// What a node depends on.
    pub fn dependencies(&self, node: &Node) -> Vec<Dependency> {
        let inner = self.inner.lock();
        let before = inner.slots.get(&node.id).map_or(&[][..], |slot| &slot.before);
        before
            .iter()
            .map(|(from, data)| (Arc::clone(&inner.slots[from].node), *data))
            .collect()
    }

    /// What depends on a node.
    pub fn dependents(&self, node: &Node) -> Vec<Dependency> {
        let inner = self.inner.lock();
        let after = inner.slots.get(&node.id).map_or(&[][..], |slot| &slot.after);
        let data = |to: &u32| {
            let edge = inner.slots[to].before.iter().find(|(from, _)| *from == node.id);
            edge.map_or([0; 8], |edge| edge.1)
        };
        after
            .iter()
            .map(|to| (Arc::clone(&inner.slots[to].node), data(to)))
            .collect()
    }

    /// `cuGraphAddDependencies`: all of them, or none. 1 for an edge that is there already, or from a node to itself; cycles
    /// are found when the graph is instantiated.
    pub fn add_edges(self: &Arc<Graph>, edges: &[Edge]) -> Result<()> {
        let mut added: HashSet<(u32, u32)> = HashSet::new();
        for (from, to, data) in edges {
            self.check_contains(from)?;
            self.check_contains(to)?;
            check_edge(&from.work(), &to.work(), *data)?;
            if from.id == to.id || !added.insert((from.id, to.id)) {
                return Err(Error::InvalidValue);
            }
        }
        let mut inner = self.inner.lock();
        for (from, to, _) in edges {
            let there = inner.slots.contains_key(&from.id);
            let known = inner.slots.get(&to.id).filter(|_| there).ok_or(Error::InvalidValue)?;
            if known.before.iter().any(|(id, _)| *id == from.id) {
                return Err(Error::InvalidValue);
            }
        }
        for (from, to, data) in edges {
            if let Some(slot) = inner.slots.get_mut(&to.id) {
                slot.before.push((from.id, *data));
            }
            if let Some(slot) = inner.slots.get_mut(&from.id) {
                slot.after.push(to.id);
            }
        }
        Ok(())
    }

    /// `cuGraphRemoveDependencies`: all of them, or none; 1 for an edge that is not there with such data.
    pub fn remove_edges(self: &Arc<Graph>, edges: &[Edge]) -> Result<()> {
        if edges.is_empty() {
            return Ok(());
        }
        self.check_free_of_memory()?;
        let mut removed: HashSet<(u32, u32)> = HashSet::new();
        let mut inner = self.inner.lock();
        for (from, to, data) in edges {
            self.check_contains(from)?;
            self.check_contains(to)?;
            let slot = inner.slots.get(&to.id).ok_or(Error::InvalidValue)?;
            if !slot.before.contains(&(from.id, *data)) || !removed.insert((from.id, to.id)) {
                return Err(Error::InvalidValue);
            }
        }
        for (from, to, _) in edges {
            if let Some(slot) = inner.slots.get_mut(&to.id) {
                slot.before.retain(|(id, _)| *id != from.id);
            }
            if let Some(slot) = inner.slots.get_mut(&from.id) {
                slot.after.retain(|id| *id != to.id);
            }
        }
        Ok(())
    }

    /// `cuGraphDestroyNode`.
    pub fn remove(self: &Arc<Graph>, node: &Node) -> Result<()> {
        self.check_free_of_memory()?;
        if self.is_capturing.load(Ordering::Acquire) {
            return Err(Error::InvalidValue);
        }
        if matches!(&*node.work(), Work::Kernel(kernel) if kernel.updatable.is_some()) {
            return Err(Error::InvalidValue);
        }
        let mut inner = self.inner.lock();
        let slot = inner.slots.remove(&node.id).ok_or(Error::InvalidValue)?;
        for (from, _) in &slot.before {
            if let Some(other) = inner.slots.get_mut(from) {
                other.after.retain(|id| *id != node.id);
            }
        }
        for to in &slot.after {
            if let Some(other) = inner.slots.get_mut(to) {
                other.before.retain(|(id, _)| *id != node.id);
            }
        }
        drop(inner);
        slot.node.end();
        Ok(())
    }

    /// Nodes and edges of graphs with allocation or free nodes stay (manual, cuGraphAddMemAllocNode).
    fn check_free_of_memory(&self) -> Result<()> {
        let nodes = self.nodes();
        let has_memory = nodes
            .iter()
            .any(|node| matches!(*node.work(), Work::Allocate(_) | Work::Free(_)));
        if has_memory { Err(Error::InvalidValue) } else { Ok(()) }
    }

    /// `cuGraphClone`: 1 for graphs with allocation, free or conditional nodes.
    pub fn duplicate(self: &Arc<Graph>) -> Result<Arc<Graph>> {
        let snapshot = self.snapshot();
        if !snapshot.is_clonable() {
            return Err(Error::InvalidValue);
        }
        Ok(Graph::from_snapshot(&snapshot))
    }

    /// A graph with the same nodes and edges; child graphs are copied, too.
    fn from_snapshot(snapshot: &Snapshot) -> Arc<Graph> {
        let graph = Graph::create();
        let mut inner = graph.inner.lock();
        for node in &snapshot.nodes {
            let work = match &*node.work {
                Work::Child(_) => {
                    let child = Graph::from_snapshot(&node.nested[0]);
                    child.is_owned.store(true, Ordering::Release);
                    Arc::new(Work::Child(child))
                }
                _ => Arc::clone(&node.work),
            };
            let before = node.before.iter().map(|(index, data)| (*index as u32, *data)).collect();
            graph.insert(&mut inner, work, before, node.handle);
        }
        for (object, count) in &snapshot.users {
            object.retain(*count);
            inner.users.push((Arc::clone(object), *count));
        }
        drop(inner);
        graph
    }

    /// `cuGraphNodeFindInClone`.
    pub fn find_in_clone(&self, original: &Node) -> Result<Arc<Node>> {
        let found = self.nodes().into_iter().find(|node| node.origin == original.handle);
        found.ok_or(Error::InvalidValue)
    }

    /// Becomes part of a node; 1 if it is part of one already.
    fn give_away(&self) -> Result<()> {
        match self.is_owned.swap(true, Ordering::AcqRel) {
            false if !self.is_capturing.load(Ordering::Acquire) => Ok(()),
            _ => Err(Error::InvalidValue),
        }
    }

    /// `cuGraphRetainUserObject`: `moved` references were the caller's.
    pub fn retain_user_object(&self, object: &Arc<UserObject>, count: u32, moved: bool) -> Result<()> {
        let mut inner = self.inner.lock();
        if moved {
            object.check_held(count)?;
        } else {
            object.retain(count);
        }
        match inner.users.iter_mut().find(|(known, _)| Arc::ptr_eq(known, object)) {
            Some((_, held)) => *held = held.saturating_add(count),
            None => inner.users.push((Arc::clone(object), count)),
        }
        Ok(())
    }

    /// `cuGraphReleaseUserObject`: 1 for more than the graph holds.
    pub fn release_user_object(&self, object: &Arc<UserObject>, count: u32) -> Result<()> {
        let mut inner = self.inner.lock();
        let found = inner.users.iter().position(|(known, _)| Arc::ptr_eq(known, object));
        let index = found.ok_or(Error::InvalidValue)?;
        let left = inner.users[index].1.checked_sub(count).ok_or(Error::InvalidValue)?;
        if left == 0 {
            inner.users.swap_remove(index);
        } else {
            inner.users[index].1 = left;
        }
        drop(inner);
        object.release_from_graph(count);
        Ok(())
    }

    /// `cuGraphConditionalHandleCreate`.
    pub fn add_conditional(self: &Arc<Graph>, default: Option<u32>) -> Result<Arc<Conditional>> {
        let conditional = Conditional::create(default);
        self.inner.lock().conditionals.push(Arc::clone(&conditional));
        Ok(conditional)
    }

    fn conditionals(&self) -> Vec<Arc<Conditional>> {
        self.inner.lock().conditionals.clone()
    }

    /// The graph, and all that belong to its nodes.
    fn family(self: &Arc<Graph>) -> Vec<Arc<Graph>> {
        let mut family = vec![Arc::clone(self)];
        let mut next = 0;
        while let Some(graph) = family.get(next).cloned() {
            for node in graph.nodes() {
                family.extend(node.work().graphs().iter().cloned());
            }
            next += 1;
        }
        family
    }
}

impl Node {
    fn end(&self) {
        NODES.remove(self.handle);
        for graph in self.work().graphs() {
            graph.end();
        }
    }
}

/// Numbers of nodes in an order in which each comes after what it depends on; `Err` names one that is in a cycle.
fn topological(before: &[Vec<usize>]) -> Result<Vec<usize>, usize> {
    let mut after: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut missing: Vec<usize> = before.iter().map(Vec::len).collect();
    for (to, list) in before.iter().enumerate() {
        for from in list {
            after.entry(*from).or_default().push(to);
        }
    }
    let mut order: Vec<usize> = (0..before.len()).filter(|node| missing[*node] == 0).collect();
    let mut next = 0;
    while let Some(node) = order.get(next) {
        for to in after.remove(node).unwrap_or_default() {
            missing[to] -= 1;
            if missing[to] == 0 {
                order.push(to);
            }
        }
        next += 1;
    }
    match missing.iter().position(|count| *count > 0) {
        None => Ok(order),
        Some(node) => Err(node),
    }
}
