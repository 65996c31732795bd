//! Executable graphs: instantiation and launches. Changes to them are in `update.rs`.
//!
//! A launch is one command of a stream, which runs a [`Plan`](super::plan::Plan).

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::super::handle::{self, Registry};
use super::super::launch::launch_blocking;
use super::super::stream::{Command, Point};
use super::super::streams::recording::Recording;
use super::device::{self, Environment};
use super::plan::{Occasion, Plan};
use super::{Graph, GraphMemory, NodeType, Snapshot, UserObject, Work};
use crate::driver::{Error, Handle, Result, Stream};
use crate::sanitizer::between::{self, Act, Mark};

pub struct Exec {
    handle: Handle,
    id: u32,
    flags: u64,
    pub(super) state: Mutex<State>,
    users: Arc<Users>,
    /// The end of the last launch: launches of one executable graph follow each other. Held while one is queued.
    last: Mutex<Option<Point>>,
    /// What lies before that, where somebody looks for races.
    last_order: Mutex<Option<Mark>>,
    /// Kernels may launch it, once it is where they run.
    uploaded: AtomicBool,
    pub(super) environment: Mutex<Environment>,
}

pub(super) struct State {
    /// What it was made from, with all changes since.
    pub snapshot: Snapshot,
    pub plan: Arc<Plan>,
}

/// References to user objects; launches under way hold them, too.
struct Users(Vec<(Arc<UserObject>, u32)>);

impl Drop for Users {
    fn drop(&mut self) {
        for (object, count) in &self.0 {
            object.release_from_graph(*count);
        }
    }
}

/// Why a graph cannot be instantiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantiateError {
    pub error: Error,
    /// `CUgraphInstantiateResult`.
    pub result: u32,
    /// A node that is to blame; 0 if none is.
    pub node: Handle,
}

impl InstantiateError {
    /// No node is to blame.
    pub fn of(error: Error) -> InstantiateError {
        InstantiateError {
            error,
            result: 1,
            node: 0,
        }
    }
}

impl std::fmt::Display for InstantiateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let why = match self.result {
            INVALID_STRUCTURE => "the graph has a cycle",
            NODE_OPERATION_NOT_SUPPORTED => "a node does what cannot be done here",
            CONDITIONAL_HANDLE_UNUSED => "no node uses a conditional handle",
            _ => self.error.text(),
        };
        write!(f, "{why} (node {:#x})", self.node)
    }
}

/// `CUgraphInstantiate_flags`.
const AUTO_FREE: u64 = 1;
const UPLOAD: u64 = 2;
const DEVICE_LAUNCH: u64 = 4;
const FLAGS: u64 = 15;

/// `CUgraphInstantiateResult`.
pub(super) const INVALID_STRUCTURE: u32 = 2;
pub(super) const NODE_OPERATION_NOT_SUPPORTED: u32 = 3;
const CONDITIONAL_HANDLE_UNUSED: u32 = 5;

static EXECS: Registry<Exec> = Registry::new();

impl Exec {
    /// `cuGraphInstantiate*`: the graph can change or go afterwards.
    ///
    /// # Errors
    /// 1 for cycles, conditional handles that no node uses, a second executable graph of one with memory nodes, flags that
    /// do not go together; what a node cannot do has its own error.
    pub fn new(graph: &Arc<Graph>, flags: u64) -> Result<Arc<Exec>, InstantiateError> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let invalid = InstantiateError::of(Error::InvalidValue);
        if flags & !FLAGS != 0 || flags & (AUTO_FREE | DEVICE_LAUNCH) == AUTO_FREE | DEVICE_LAUNCH {
            return Err(invalid);
        }
        if graph.is_capturing.load(Ordering::Acquire) {
            return Err(InstantiateError::of(Error::IllegalState));
        }
        let snapshot = graph.snapshot();
        if flags & DEVICE_LAUNCH != 0 {
            for_device(&snapshot)?;
        }
        let unused = graph
            .family()
            .iter()
            .any(|graph| graph.conditionals().iter().any(|conditional| !conditional.is_used()));
        if unused {
            return Err(InstantiateError {
                result: CONDITIONAL_HANDLE_UNUSED,
                ..invalid
            });
        }
        let is_only = snapshot.has_memory();
        let handle = handle::fresh();
        let of_device = if flags & DEVICE_LAUNCH != 0 { handle } else { 0 };
        let updatable = device::updatable(&snapshot);
        if updatable.iter().any(|node| node.is_taken()) {
            return Err(invalid);
        }
        let plan = Plan::new(&snapshot, of_device)?;
        updatable.iter().for_each(|node| node.take());
        let users = Users(snapshot.users.clone());
        for (object, count) in &users.0 {
            object.retain(*count);
        }
        let exec = Arc::new(Exec {
            handle,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            flags,
            state: Mutex::new(State {
                snapshot,
                plan: Arc::new(plan),
            }),
            users: Arc::new(users),
            last: Mutex::new(None),
            last_order: Mutex::new(None),
            uploaded: AtomicBool::new(flags & UPLOAD != 0),
            environment: Mutex::default(),
        });
        if is_only {
            let mut inner = graph.inner.lock();
            if inner.only.as_ref().is_some_and(|only| only.strong_count() > 0) {
                return Err(invalid);
            }
            let only: Weak<dyn Any + Send + Sync> = Arc::downgrade(&exec) as _;
            inner.only = Some(only);
        }
        EXECS.insert(exec.handle, &exec);
        Ok(exec)
    }

    /// 1 for what is not an executable graph, or no longer.
    pub fn from_handle(handle: Handle) -> Result<Arc<Exec>> {
        EXECS.get(handle).ok_or(Error::InvalidValue)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// `cuGraphExecGetId`.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// `cuGraphExecGetFlags`: but for the one that only concerns instantiation.
    pub fn flags(&self) -> u64 {
        self.flags & !UPLOAD
    }

    /// `cuGraphExecDestroy`: launches that are queued still run.
    pub fn destroy(&self) -> Result<()> {
        EXECS.remove(self.handle).map(drop).ok_or(Error::InvalidValue)
    }

    /// `cuGraphUpload`: everything is where it runs; only the order of the stream is checked.
    pub fn upload(&self, stream: &Arc<Stream>) -> Result<()> {
        stream.shared.check()?;
        stream.refuse_capture()?;
        self.uploaded.store(true, Ordering::Release);
        Ok(())
    }

    /// Kernels may launch it, and its kernels may launch others.
    pub(super) fn is_for_device(&self) -> bool {
        self.flags & DEVICE_LAUNCH != 0
    }

    pub(super) fn is_uploaded(&self) -> bool {
        self.uploaded.load(Ordering::Acquire)
    }

    pub(super) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.state.lock().plan)
    }

    /// `cuGraphLaunch`: after all that is in the stream, and after earlier launches of this graph.
    ///
    /// # Errors
    /// 1 when memory of an earlier launch has not been freed, or memory that it is to free is not allocated, or a kernel has
    /// no blocks.
    pub fn launch(self: &Arc<Exec>, stream: &Arc<Stream>) -> Result<()> {
        stream.shared.check()?;
        if let Some(capture) = stream.admit()? {
            let graph = {
                let state = self.state.lock();
                if state.snapshot.has_memory() || state.plan.has_conditionals() {
                    capture.invalidate();
                    return Err(Error::StreamCaptureUnsupported);
                }
                Graph::from_snapshot(&state.snapshot)
            };
            let child = graph.give_away().map(|()| Work::Child(graph))?;
            return capture.add(stream, child);
        }
        let mut last = self.last.lock();
        let plan = Arc::clone(&self.state.lock().plan);
        if !plan.is_fit() {
            return Err(Error::InvalidValue);
        }
        let left_over = self.take_memory(&plan)?;
        if let Some(point) = last
            .take()
            .filter(|point| !Arc::ptr_eq(&point.stream, stream) && !point.is_done())
        {
            stream.enqueue(Command::Wait(point));
        }
        between::wait(stream, self.last_order.lock().as_ref());
        for (_, event) in &plan.waits {
            between::wait(stream, event.order().as_ref());
        }
        let mut order = between::begin(stream, Act::Touches);
        let (waits, calls) = order.as_ref().map_or((false, false), |_| plan.looks_outside());
        let open = (waits || calls).then(|| between::open(stream)).flatten();
        // Which of its steps come after what they wait for cannot be told from the outside.
        order = order.filter(|_| !waits);
        let occasion = Occasion {
            order,
            points: plan
                .waits
                .iter()
                .filter_map(|(step, event)| Some((*step, event.point()?)))
                .collect(),
            recordings: plan
                .records
                .iter()
                .map(|(step, _)| (*step, Recording::new(Arc::clone(stream), u64::MAX)))
                .collect(),
        };
        let recordings = occasion.recordings.clone();
        let (occasion, shared) = (Arc::new(occasion), Arc::clone(&stream.shared));
        stream.shared.printer.flush();
        let users = Arc::clone(&self.users);
        let task_plan = Arc::clone(&plan);
        self.uploaded.store(true, Ordering::Release);
        let for_device = self.is_for_device().then(|| Arc::clone(self));
        let ticket = stream.enqueue(Command::Always(Box::new(move |_| {
            for memory in left_over {
                memory.leave();
            }
            task_plan.start_conditionals();
            match &for_device {
                Some(exec) => device::run(exec, &task_plan, &shared, &occasion),
                None => task_plan.run(&shared, &occasion),
            }
            drop(users);
            match waits {
                true => between::waited(open.as_ref()),
                false => between::called(open.as_ref()),
            }
        })));
        *self.last_order.lock() = between::mark(stream);
        *last = Some(Point {
            stream: Arc::clone(stream),
            ticket,
        });
        drop(last);
        for ((_, event), (_, recording)) in plan.records.iter().zip(recordings) {
            recording.set_ticket(ticket);
            recording.set_order(between::mark(stream));
            event.set_recording(recording);
        }
        // As copies to such memory do; what waits for others may wait for this very thread.
        let is_awaited = plan.fills_pageable() && plan.waits.is_empty();
        if is_awaited || launch_blocking() {
            stream.wait_for(ticket);
            between::done(stream);
            stream.shared.printer.flush();
            stream.shared.check()?;
        }
        Ok(())
    }

    /// Makes the allocations of a launch; answers what it has to free first.
    fn take_memory(&self, plan: &Plan) -> Result<Vec<Arc<GraphMemory>>> {
        if plan.allocations.is_empty() && plan.frees.is_empty() {
            return Ok(Vec::new());
        }
        let (mut left_over, memories) = (Vec::new(), &plan.allocations);
        for (memory, _) in memories.iter().filter(|(memory, _)| memory.is_owed()) {
            if self.flags & AUTO_FREE == 0 {
                return Err(Error::InvalidValue);
            }
            left_over.push(Arc::clone(memory));
        }
        if plan.frees.iter().any(|memory| !memory.is_owed()) {
            return Err(Error::InvalidValue);
        }
        left_over.retain(|memory| memory.owe_no_more().is_ok());
        for (index, (memory, is_freed)) in memories.iter().enumerate() {
            if let Err(error) = memory.enter(!is_freed) {
                for (entered, is_freed) in &memories[..index] {
                    if !is_freed {
                        // It was owed just now.
                        let _ = entered.owe_no_more();
                    }
                    entered.leave();
                }
                left_over.iter().for_each(|memory| memory.leave());
                return Err(error);
            }
        }
        for memory in &plan.frees {
            memory.owe_no_more()?;
        }
        Ok(left_over)
    }

    /// `cuGraphNodeSetEnabled`: of kernel, copy and set nodes, for later launches.
    pub fn set_enabled(&self, node: Handle, is_enabled: bool) -> Result<()> {
        let mut state = self.state.lock();
        Arc::make_mut(&mut state.plan).set_enabled(node, is_enabled)
    }

    /// `cuGraphNodeGetEnabled`.
    pub fn is_enabled(&self, node: Handle) -> Result<bool> {
        self.state.lock().plan.is_enabled(node)
    }
}

/// Graphs that could be launched from a device have kernels, copies, sets and child graphs only, and at least one node.
fn for_device(snapshot: &Snapshot) -> Result<(), InstantiateError> {
    let mut does_anything = false;
    for node in &snapshot.nodes {
        match node.work.node_type() {
            NodeType::Kernel | NodeType::Copy | NodeType::Set => does_anything = true,
            NodeType::Child => {
                for_device(&node.nested[0])?;
                does_anything = true;
            }
            NodeType::Empty => {}
            _ => {
                return Err(InstantiateError {
                    error: Error::NotSupported,
                    result: NODE_OPERATION_NOT_SUPPORTED,
                    node: node.handle,
                });
            }
        }
    }
    match does_anything {
        true => Ok(()),
        false => Err(InstantiateError::of(Error::InvalidValue)),
    }
}
