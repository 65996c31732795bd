//! Plans: all that can be done before a launch, done. Steps in an order in which each comes after what it depends on.
//!
//! A plan knows no streams, beyond the points that a launch waits for.
//!
//! Child graphs are laid out in line; bodies of conditional nodes are blocks of their own. Steps that do not depend on each
//! other run side by side ([`super::branches`]): one may wait for what another does.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::super::context::Shared;
use super::super::copy;
use super::super::launch::Prepared;
use super::super::semaphore;
use super::super::stream::{Point, as_host_function};
use super::super::streams::recording::Recording;
use super::branches::{self, Block};
use super::device_node;
use super::exec::{INVALID_STRUCTURE, NODE_OPERATION_NOT_SUPPORTED};
use super::snapshot::SnapshotNode;
use super::{
    CopyBatchNode, CopyNode, DeviceNode, GraphMemory, HostNode, InstantiateError, NodeType, SemaphoreNode, SetNode,
    Snapshot, Work, topological,
};
use crate::driver::{Error, Event, Handle, MemoryOperation, Result};
use crate::sanitizer::between::{self, Act, Class, Node, Operation};

#[derive(Clone, Default)]
pub(super) struct Plan {
    /// The executable graph, for kernels that ask for it; 0 when they may not launch graphs.
    graph: Handle,
    steps: Vec<Step>,
    /// The first one is the graph's own.
    blocks: Vec<Block>,
    /// Steps by the nodes that they were made from.
    by_node: HashMap<Handle, u32>,
    /// Memory that the plan allocates; whether it frees it, too.
    pub allocations: Vec<(Arc<GraphMemory>, bool)>,
    /// Memory of other graphs that it frees.
    pub frees: Vec<Arc<GraphMemory>>,
    /// What launches wait for: of `wait_nodes` those that no record of the plan comes before.
    pub waits: Vec<(u32, Arc<Event>)>,
    wait_nodes: Vec<(u32, Arc<Event>)>,
    pub records: Vec<(u32, Arc<Event>)>,
    /// Steps that copy to memory of the program that is not pinned, as far as they are enabled.
    to_pageable: BTreeSet<u32>,
    /// Steps that cannot run as they are, as far as they are enabled.
    unfit: BTreeSet<u32>,
}

#[derive(Clone)]
struct Step {
    action: Arc<Action>,
    is_enabled: bool,
    can_be_disabled: bool,
}

enum Action {
    Kernel(Prepared),
    /// A kernel without blocks: programs make the node first and say how many it has before they launch the graph.
    NoBlocks,
    /// Kernels may change it.
    Updatable(Arc<DeviceNode>),
    Copy(CopyNode),
    Set(SetNode),
    Host(HostNode),
    WaitEvent,
    RecordEvent,
    /// Empty nodes, and allocations: those have been made when the plan starts.
    Nothing,
    Free(Arc<GraphMemory>),
    Batch(Box<[MemoryOperation]>),
    Semaphores {
        node: SemaphoreNode,
        signal: bool,
    },
    CopyBatch(CopyBatchNode),
    Conditional {
        node: Arc<Work>,
        blocks: Box<[u32]>,
    },
}

/// What one launch brings: points to wait for and events to record, by step.
#[derive(Default)]
pub(super) struct Occasion {
    pub points: Vec<(u32, Point)>,
    pub recordings: Vec<(u32, Arc<Recording>)>,
    /// The launch, where somebody looks for races.
    pub order: Option<Arc<Operation>>,
}

impl Plan {
    pub fn new(snapshot: &Snapshot, graph: Handle) -> Result<Plan, InstantiateError> {
        let mut plan = Plan {
            graph,
            ..Plan::default()
        };
        plan.blocks.push(Block::default());
        plan.lay_out(snapshot, 0, false, &[])?;
        let freed: Vec<Arc<GraphMemory>> = std::mem::take(&mut plan.frees);
        for memory in freed {
            match plan
                .allocations
                .iter_mut()
                .find(|(known, _)| Arc::ptr_eq(known, &memory))
            {
                Some((_, is_freed)) => *is_freed = true,
                None => plan.frees.push(memory),
            }
        }
        plan.list_events();
        Ok(plan)
    }

    /// Adds a graph's steps to a block, after the places `entry`; answers the places at its end.
    fn lay_out(
        &mut self,
        snapshot: &Snapshot,
        block: usize,
        in_body: bool,
        entry: &[u32],
    ) -> Result<Vec<u32>, InstantiateError> {
        let before: Vec<Vec<usize>> = snapshot
            .nodes
            .iter()
            .map(|node| node.before.iter().map(|(index, _)| *index).collect())
            .collect();
        let order = topological(&before).map_err(|index| InstantiateError {
            error: Error::InvalidValue,
            result: INVALID_STRUCTURE,
            node: snapshot.nodes[index].handle,
        })?;
        // By node: the places at its end.
        let mut ends: Vec<Vec<u32>> = vec![Vec::new(); snapshot.nodes.len()];
        let mut is_last = vec![true; snapshot.nodes.len()];
        for index in order {
            let node = &snapshot.nodes[index];
            let mut after: Vec<u32> = match before[index].is_empty() {
                true => entry.to_vec(),
                false => before[index]
                    .iter()
                    .flat_map(|index| ends[*index].iter().copied())
                    .collect(),
            };
            after.sort_unstable();
            after.dedup();
            before[index].iter().for_each(|index| is_last[*index] = false);
            ends[index] = match &*node.work {
                Work::Child(_) => {
                    let ends = self.lay_out(&node.nested[0], block, in_body, &after)?;
                    match ends.len() {
                        0 | 1 => ends,
                        // One place to wait for, instead of all of them for each node that does.
                        _ => vec![self.add_step(block, &ends, Action::Nothing, false)],
                    }
                }
                Work::Allocate(_) | Work::Free(_) if in_body => {
                    return Err(InstantiateError {
                        error: Error::NotSupported,
                        result: NODE_OPERATION_NOT_SUPPORTED,
                        node: node.handle,
                    });
                }
                _ => vec![self.lay_out_node(node, block, &after)?],
            };
        }
        if snapshot.nodes.is_empty() {
            return Ok(entry.to_vec());
        }
        let last = ends.into_iter().zip(is_last).filter(|(_, is_last)| *is_last);
        Ok(last.flat_map(|(places, _)| places).collect())
    }

    /// Adds what one node does, and its bodies; answers its place in the block.
    fn lay_out_node(&mut self, node: &SnapshotNode, block: usize, after: &[u32]) -> Result<u32, InstantiateError> {
        match &*node.work {
            Work::Allocate(memory) => self.allocations.push((Arc::clone(memory), false)),
            Work::Free(memory) => self.frees.push(Arc::clone(memory)),
            _ => {}
        }
        let blocks = node
            .nested
            .iter()
            .map(|body| {
                let number = self.blocks.len();
                self.blocks.push(Block::default());
                self.lay_out(body, number, true, &[])?;
                Ok(number as u32)
            })
            .collect::<Result<Box<[u32]>, InstantiateError>>()?;
        let action = Action::new(&node.work, blocks, self.graph).map_err(|error| InstantiateError {
            error,
            result: 1,
            node: node.handle,
        })?;
        let can_be_disabled = matches!(node.work.node_type(), NodeType::Kernel | NodeType::Copy | NodeType::Set);
        let number = self.steps.len() as u32;
        let place = self.add_step(block, after, action, can_be_disabled);
        self.by_node.insert(node.handle, number);
        match &*node.work {
            Work::WaitEvent(event) => self.wait_nodes.push((number, Arc::clone(event))),
            Work::RecordEvent(event) => self.records.push((number, Arc::clone(event))),
            _ => {}
        }
        Ok(place)
    }

    fn add_step(&mut self, block: usize, after: &[u32], action: Action, can_be_disabled: bool) -> u32 {
        let number = self.steps.len() as u32;
        self.steps.push(Step {
            action: Arc::new(action),
            is_enabled: true,
            can_be_disabled,
        });
        self.note(number);
        self.blocks[block].add(number, after)
    }

    /// An event that the plan records before it waits for it has been reached by then.
    fn list_events(&mut self) {
        let mut waits = self.wait_nodes.clone();
        let records = &self.records;
        let blocks = &self.blocks;
        let precedes = |record: u32, wait: u32| blocks.iter().any(|block| block.precedes(record, wait));
        waits.retain(|(at, event)| {
            !records
                .iter()
                .any(|(record, of)| Arc::ptr_eq(of, event) && precedes(*record, *at))
        });
        self.waits = waits;
    }

    /// A step has changed: what must a launch know of it?
    fn note(&mut self, number: u32) {
        let step = &self.steps[number as usize];
        // Batches of copies are not waited for outside of graphs either.
        let fills = matches!(&*step.action, Action::Copy(node) if copy::fills_pageable(node.dst, node.shape));
        let is_unfit = matches!(&*step.action, Action::NoBlocks);
        for (list, belongs) in [(&mut self.to_pageable, fills), (&mut self.unfit, is_unfit)] {
            match belongs && step.is_enabled {
                true => list.insert(number),
                false => list.remove(&number),
            };
        }
    }

    /// Whether all of it could run as it is.
    pub fn is_fit(&self) -> bool {
        self.unfit.is_empty()
    }

    /// Whether a launch copies to memory of the program that is not pinned.
    pub fn fills_pageable(&self) -> bool {
        !self.to_pageable.is_empty()
    }

    /// What a node that has changed does now.
    pub fn replace(&mut self, node: &SnapshotNode) -> Result<()> {
        let number = *self.by_node.get(&node.handle).ok_or(Error::InvalidValue)?;
        let step = self.steps.get_mut(number as usize).ok_or(Error::InvalidValue)?;
        let blocks = match &*step.action {
            Action::Conditional { blocks, .. } => blocks.clone(),
            _ => Box::default(),
        };
        step.action = Arc::new(Action::new(&node.work, blocks, self.graph)?);
        self.note(number);
        let list = match &*node.work {
            Work::WaitEvent(event) => Some((&mut self.wait_nodes, event)),
            Work::RecordEvent(event) => Some((&mut self.records, event)),
            _ => None,
        };
        if let Some((list, event)) = list {
            list.retain(|(of, _)| *of != number);
            list.push((number, Arc::clone(event)));
            self.list_events();
        }
        Ok(())
    }

    pub fn set_enabled(&mut self, node: Handle, is_enabled: bool) -> Result<()> {
        let number = *self.by_node.get(&node).ok_or(Error::InvalidValue)?;
        let step = &mut self.steps[number as usize];
        if !step.can_be_disabled {
            return Err(Error::InvalidValue);
        }
        step.is_enabled = is_enabled;
        self.note(number);
        Ok(())
    }

    pub fn is_enabled(&self, node: Handle) -> Result<bool> {
        let number = *self.by_node.get(&node).ok_or(Error::InvalidValue)?;
        let step = &self.steps[number as usize];
        step.can_be_disabled
            .then_some(step.is_enabled)
            .ok_or(Error::InvalidValue)
    }

    /// Runs all of it; ends early once the context has failed, but frees what it has to.
    pub fn run(self: &Arc<Plan>, shared: &Arc<Shared>, occasion: &Arc<Occasion>) {
        self.run_block(0, shared, occasion, None);
    }

    /// `around`: the step whose body it is.
    fn run_block(
        self: &Arc<Plan>,
        block: usize,
        shared: &Arc<Shared>,
        occasion: &Arc<Occasion>,
        around: Option<&Node>,
    ) {
        let steps = &self.blocks[block];
        let run = occasion.order.as_ref().map(|_| steps.begin(around));
        let Some(row) = steps.in_a_row() else {
            return branches::run(self, block, shared, occasion, run);
        };
        for (place, number) in row.iter().enumerate() {
            let node = run.as_ref().map(|run| run.node(place as u32));
            self.run_step(*number, shared, occasion, node.as_ref());
        }
    }

    pub(super) fn block(&self, number: usize) -> &Block {
        &self.blocks[number]
    }

    /// Does what a step says, if it is to be done.
    pub(super) fn run_step(
        self: &Arc<Plan>,
        number: u32,
        shared: &Arc<Shared>,
        occasion: &Arc<Occasion>,
        node: Option<&Node>,
    ) {
        let step = &self.steps[number as usize];
        if step.is_enabled && (!shared.has_failed() || matches!(*step.action, Action::Free(_))) {
            self.act(number, &step.action, shared, occasion, node);
        }
    }

    fn act(
        self: &Arc<Plan>,
        number: u32,
        action: &Action,
        shared: &Arc<Shared>,
        occasion: &Arc<Occasion>,
        at: Option<&Node>,
    ) {
        let launch = occasion.order.as_ref();
        let made = |act, what, by: Option<&Prepared>| {
            let by = by.map(|kernel| kernel.by().at);
            launch
                .zip(at)
                .map(|(launch, at)| between::node(launch, at.clone(), act, (what, by)))
        };
        let order = |act, what| made(act, what, None);
        match action {
            Action::Nothing | Action::NoBlocks => {}
            Action::Kernel(kernel) => {
                let order = made(Act::Touches, "kernel node", Some(kernel));
                between::during(order.as_ref(), || kernel.run());
            }
            Action::Updatable(node) => between::during(order(Act::Touches, "kernel node").as_ref(), || node.run()),
            Action::Copy(node) => {
                let order = order(Act::Touches, "memcpy node");
                if copy::copy_box(node.dst, node.src, node.shape, order.as_ref()).is_err() {
                    gone(shared, "copy");
                }
            }
            Action::Set(node) => match node.prepare() {
                Ok(fill) => {
                    // SAFETY: the range was checked just now, and stays valid as for any queued set.
                    unsafe { fill.run() };
                    fill.tell(order(Act::Touches, "memset node").as_ref());
                }
                Err(_) => gone(shared, "set"),
            },
            Action::Host(node) => {
                shared.printer.flush();
                between::calls(launch);
                as_host_function(|| (node.function)(node.data));
            }
            Action::WaitEvent => {
                if let Some((_, point)) = occasion.points.iter().find(|(step, _)| *step == number) {
                    point.wait();
                }
            }
            Action::RecordEvent => {
                let recordings = occasion.recordings.iter();
                for (_, recording) in recordings.filter(|(step, _)| *step == number) {
                    recording.stamp();
                }
            }
            Action::Free(memory) => {
                let order = order(Act::Frees, "free node");
                between::touches(order.as_ref(), Class::Write, memory.address(), memory.bytes());
                memory.leave();
            }
            Action::Semaphores { node, signal } => semaphore::run(&node.steps, *signal, shared),
            Action::CopyBatch(node) => {
                let order = order(Act::Touches, "batch of copies");
                for one in &node.copies {
                    if copy::copy_box(one.dst, one.src, one.shape, order.as_ref()).is_err() {
                        gone(shared, "copy of a batch");
                    }
                }
            }
            Action::Batch(operations) => {
                for operation in operations {
                    match operation.check() {
                        Ok(checked) => checked.run(shared, None),
                        Err(_) => gone(shared, "memory operation"),
                    }
                }
            }
            Action::Conditional { node, blocks } => {
                let Work::Conditional(node) = &**node else { return };
                while let Some(body) = node.body(node.conditional.value()) {
                    self.run_block(blocks[body] as usize, shared, occasion, at);
                    if node.kind != 1 || shared.has_failed() {
                        break;
                    }
                }
            }
        }
    }

    /// Values of conditional handles at the start of a launch.
    pub fn start_conditionals(&self) {
        for step in &self.steps {
            if let Action::Conditional { node, .. } = &*step.action
                && let Work::Conditional(node) = &**node
            {
                node.conditional.start();
            }
        }
    }

    /// Whether a step waits for what anybody may do, and whether one calls the program.
    pub fn looks_outside(&self) -> (bool, bool) {
        let is = |of: fn(&Action) -> bool| self.steps.iter().any(|step| of(&step.action));
        (
            is(|action| matches!(action, Action::Batch(_) | Action::Semaphores { signal: false, .. })),
            is(|action| matches!(action, Action::Host(_))),
        )
    }

    pub fn has_conditionals(&self) -> bool {
        self.blocks.len() > 1
    }
}

/// Memory that was there when the graph was made may be freed, or unregistered, by now.
fn gone(shared: &Shared, what: &str) {
    let report = format!("a {what} in a graph: the memory is no longer there");
    shared.fail(Error::IllegalAddress, &report);
}

impl Action {
    fn new(work: &Arc<Work>, blocks: Box<[u32]>, graph: Handle) -> Result<Action> {
        Ok(match &**work {
            Work::Kernel(node) if node.config.grid.contains(&0) => Action::NoBlocks,
            Work::Kernel(node) => match &node.updatable {
                None => Action::Kernel(device_node::prepare(node, graph)?),
                Some(updatable) => {
                    updatable.settle(node, graph)?;
                    Action::Updatable(Arc::clone(updatable))
                }
            },
            Work::Copy(node) => {
                copy::check_box(node.dst, node.src, node.shape)?;
                Action::Copy(*node)
            }
            Work::Set(node) => {
                node.prepare()?;
                Action::Set(*node)
            }
            Work::Host(node) => Action::Host(*node),
            Work::WaitEvent(_) => Action::WaitEvent,
            Work::RecordEvent(_) => Action::RecordEvent,
            Work::Free(memory) => Action::Free(Arc::clone(memory)),
            Work::Batch(node) => Action::Batch(node.operations.clone()),
            Work::Signal(node) => Action::Semaphores {
                node: node.clone(),
                signal: true,
            },
            Work::Await(node) => Action::Semaphores {
                node: node.clone(),
                signal: false,
            },
            Work::CopyBatch(node) => {
                work.check()?;
                Action::CopyBatch(node.clone())
            }
            Work::Conditional(_) => Action::Conditional {
                node: Arc::clone(work),
                blocks,
            },
            Work::Empty | Work::Allocate(_) | Work::Child(_) => Action::Nothing,
        })
    }
}
