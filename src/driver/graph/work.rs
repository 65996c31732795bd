//! What nodes do.
//!
//! Handles and addresses are checked and resolved when a node is made; a [`Work`] is fit to run, whenever that is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::copy::{self, End, Shape};
use super::super::launch::{self, Arguments, Config};
use super::super::profile::multiprocessors;
use super::super::semaphore::SemaphoreStep;
use super::super::stream::HostFunction;
use super::{ConditionalNode, DeviceNode, Graph, GraphMemory};
use crate::driver::{Context, Error, Event, Function, Handle, MemoryOperation, Result, Stream};
use crate::memory::caller::{self, Caller};

/// `CUgraphNodeType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NodeType {
    Kernel = 0,
    Copy = 1,
    Set = 2,
    Host = 3,
    Child = 4,
    Empty = 5,
    WaitEvent = 6,
    RecordEvent = 7,
    Signal = 8,
    Await = 9,
    Allocate = 10,
    Free = 11,
    Batch = 12,
    Conditional = 13,
    CopyBatch = 14,
}

pub enum Work {
    Kernel(KernelNode),
    Copy(CopyNode),
    Set(SetNode),
    Host(HostNode),
    /// The graph belongs to the node.
    Child(Arc<Graph>),
    Empty,
    WaitEvent(Arc<Event>),
    RecordEvent(Arc<Event>),
    Allocate(Arc<GraphMemory>),
    Free(Arc<GraphMemory>),
    Batch(BatchNode),
    Conditional(ConditionalNode),
    /// Of external semaphores.
    Signal(SemaphoreNode),
    Await(SemaphoreNode),
    CopyBatch(CopyBatchNode),
}

#[derive(Clone)]
pub struct KernelNode {
    pub function: Arc<Function>,
    /// The program named a `CUkernel`, not a `CUfunction`.
    pub by_kernel: bool,
    pub config: Config,
    /// The parameter block.
    pub params: Box<[u8]>,
    /// The program gave the parameters as a block.
    pub packed: bool,
    /// Attributes but for those in `config`: values of 64 bytes by number.
    pub attributes: BTreeMap<u32, [u64; 8]>,
    /// Kernels may change it.
    pub updatable: Option<Arc<DeviceNode>>,
    /// The call that made it.
    pub by: Caller,
}

#[derive(Clone, Copy)]
pub struct CopyNode {
    pub dst: End,
    pub src: End,
    pub shape: Shape,
    /// `CUcontext` as given, here and below.
    pub context: Handle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetNode {
    pub dst: u64,
    pub pitch: u64,
    /// 1, 2 or 4 bytes.
    pub element: u32,
    pub value: u32,
    /// In elements.
    pub width: u64,
    pub height: u64,
    pub context: Handle,
}

#[derive(Clone, Copy, Debug)]
pub struct HostNode {
    pub function: HostFunction,
    pub data: usize,
    /// `CUhostTaskSyncMode`.
    pub mode: u32,
    pub context: Handle,
}

#[derive(Clone)]
pub struct BatchNode {
    pub operations: Box<[MemoryOperation]>,
    pub context: Handle,
}

#[derive(Clone)]
pub struct SemaphoreNode {
    pub steps: Box<[SemaphoreStep]>,
    pub context: Handle,
}

/// Copies in no particular order.
#[derive(Clone)]
pub struct CopyBatchNode {
    pub copies: Box<[copy::Copy]>,
    pub context: Handle,
}

/// `CU_LAUNCH_ATTRIBUTE_PRIORITY`.
const PRIORITY: u32 = 8;

impl KernelNode {
    /// Of a node that a program describes; a `CUkernel` (`by_kernel`) is taken in this context.
    ///
    /// # Errors
    /// As [`launch`](crate::driver::calls::launch).
    ///
    /// # Safety
    /// As [`launch`](crate::driver::calls::launch).
    pub unsafe fn new(
        function: &Arc<Function>,
        by_kernel: bool,
        context: Option<&Arc<Context>>,
        config: Config,
        arguments: Arguments<'_>,
    ) -> Result<KernelNode> {
        let function = match context {
            Some(context) if !Arc::ptr_eq(context.shared(), &function.shared) => function.in_context(context)?,
            _ => Arc::clone(function),
        };
        // SAFETY: our caller promises what `collect` asks for: a pointer to each of this function's parameters.
        let params = unsafe { launch::collect(&function, arguments)? };
        Ok(KernelNode {
            function,
            by_kernel,
            config,
            params,
            packed: matches!(arguments, Arguments::Buffer(_)),
            attributes: BTreeMap::new(),
            updatable: None,
            by: caller::here(),
        })
    }

    /// Takes over another's attributes, and who made it.
    pub fn inherit(&mut self, other: &KernelNode) {
        self.config.cooperative = other.config.cooperative;
        self.config.cluster = other.config.cluster;
        self.config.preferred_cluster = other.config.preferred_cluster;
        self.config.portable_cluster = other.config.portable_cluster;
        self.config.shared_mode = other.config.shared_mode;
        self.attributes = other.attributes.clone();
        self.updatable = other.updatable.clone();
        self.by = other.by;
    }

    /// Of a launch into a stream that records.
    pub(in crate::driver) fn captured(
        function: Arc<Function>,
        config: Config,
        params: Box<[u8]>,
        stream: &Stream,
    ) -> KernelNode {
        let mut priority = [0; 8];
        priority[0] = u64::from(stream.priority() as u32);
        KernelNode {
            by_kernel: function.kernel_handle() != 0,
            function,
            config,
            params,
            packed: false,
            attributes: BTreeMap::from([(PRIORITY, priority)]),
            updatable: None,
            by: caller::here(),
        }
    }
}

impl Work {
    pub fn node_type(&self) -> NodeType {
        match self {
            Work::Kernel(_) => NodeType::Kernel,
            Work::Copy(_) => NodeType::Copy,
            Work::Set(_) => NodeType::Set,
            Work::Host(_) => NodeType::Host,
            Work::Child(_) => NodeType::Child,
            Work::Empty => NodeType::Empty,
            Work::WaitEvent(_) => NodeType::WaitEvent,
            Work::RecordEvent(_) => NodeType::RecordEvent,
            Work::Allocate(_) => NodeType::Allocate,
            Work::Free(_) => NodeType::Free,
            Work::Batch(_) => NodeType::Batch,
            Work::Conditional(_) => NodeType::Conditional,
            Work::Signal(_) => NodeType::Signal,
            Work::Await(_) => NodeType::Await,
            Work::CopyBatch(_) => NodeType::CopyBatch,
        }
    }

    /// The graphs that belong to the node.
    pub fn graphs(&self) -> &[Arc<Graph>] {
        match self {
            Work::Child(graph) => std::slice::from_ref(graph),
            Work::Conditional(node) => &node.bodies,
            _ => &[],
        }
    }

    /// Whether it could run as it is: shapes, ranges, alignment.
    pub(super) fn check(&self) -> Result<()> {
        match self {
            Work::Kernel(node) => {
                // Without blocks it must not be launched, but it can be there: the number may come later.
                let grid = node.config.grid.map(|blocks| blocks.max(1));
                let config = launch::Config { grid, ..node.config };
                launch::check(&node.function, &config, node.function.lowered()?, multiprocessors()).map(drop)
            }
            Work::Copy(node) => copy::check_box(node.dst, node.src, node.shape),
            Work::Set(node) => node.prepare().map(drop),
            Work::CopyBatch(node) => node
                .copies
                .iter()
                .try_for_each(|one| copy::check_box(one.dst, one.src, one.shape)),
            Work::Batch(node) => node.operations.iter().try_for_each(|one| one.check().map(drop)),
            _ => Ok(()),
        }
    }

    /// What changes elsewhere because a node has this to do.
    pub(super) fn adopt(&self) -> Result<()> {
        match self {
            Work::Conditional(node) => node.conditional.take(),
            Work::Free(memory) => memory.take_free(),
            _ => Ok(()),
        }
    }
}

impl SetNode {
    pub(super) fn prepare(&self) -> Result<copy::Fill> {
        if !matches!(self.element, 1 | 2 | 4) || self.width == 0 || self.height == 0 {
            return Err(Error::InvalidValue);
        }
        copy::Fill::check(self.dst, self.pitch, self.element, self.value, self.width, self.height)
    }
}

impl Graph {
    /// Marks a graph as one that belongs to a node: a copy for `cuGraphAddChildGraphNode`, itself when ownership moves.
    pub fn into_child(self: &Arc<Graph>, parent: &Arc<Graph>, moves: bool) -> Result<Arc<Graph>> {
        if moves {
            // A graph cannot be inside itself.
            if self.family().iter().any(|graph| Arc::ptr_eq(graph, parent)) {
                return Err(Error::InvalidValue);
            }
            self.give_away()?;
            return Ok(Arc::clone(self));
        }
        let copy = self.duplicate()?;
        copy.is_owned.store(true, Ordering::Release);
        Ok(copy)
    }
}
