//! What is run, and what it asks of those outside: of its context ([`Services`]), and of the driver when kernels launch
//! kernels ([`Runtime`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::executables::Executables;
use super::machine::observe::Watch;
use super::seed::Seed;
use crate::isa::mma::Architecture;
use crate::memory::caller::Caller;
use crate::memory::texture::References;
use crate::memory::{AddressSpace, View};

/// A grid to run.
pub struct Launch {
    pub code: Arc<Executables>,
    /// Index of the kernel among the module's functions.
    pub kernel: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// `None`: nobody has asked for clusters.
    pub cluster: Option<[u32; 3]>,
    pub dynamic_shared: u32,
    /// The parameter block, laid out as [`crate::program::KernelInfo::params`] says.
    pub params: Box<[u8]>,
    /// All blocks resident and taking turns.
    pub cooperative: bool,
    /// What `%envreg1` (high half) and `%envreg2` (low half) read: a zeroed workspace of 8 bytes or more for
    /// `grid.sync()`, an ordinary device allocation; 0 unless the launch is cooperative.
    pub workspace: u64,
    pub grid_id: u64,
    /// Which device it runs on: teams have some as members, and others not.
    pub device: u32,
    /// What `%nsmid` reads.
    pub multiprocessors: u32,
    /// Whose tensor cores matrices are multiplied as.
    pub tensor: Architecture,
    /// Bytes of local memory a lane may use for its call stack (`CU_LIMIT_STACK_SIZE`).
    pub stack_limit: u64,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// What its schedule is drawn from; `None`: it runs as fast as it can.
    pub seed: Option<Seed>,
    /// Somebody wants to know what is wrong with it: accesses count to the byte where that is looked for, and its context looks on.
    /// Of a graph's node it may change from run to run.
    pub is_checked: AtomicBool,
    pub services: Arc<dyn Services>,
    /// What the module's texture and surface references are bound to.
    pub references: References,
    /// Who launched it, and what it may launch.
    pub family: Family,
}

impl Launch {
    /// The same, to be run in another order, with other surroundings and for so long at most.
    pub fn again(
        &self,
        seed: Seed,
        services: Arc<dyn Services>,
        runtime: Option<Arc<dyn Runtime>>,
        timeout: Option<Duration>,
    ) -> Launch {
        Launch {
            code: Arc::clone(&self.code),
            params: self.params.clone(),
            timeout,
            seed: Some(seed),
            is_checked: self.is_checked().into(),
            services,
            references: self.references.clone(),
            family: Family {
                runtime,
                ..self.family.clone()
            },
            ..*self
        }
    }

    /// As the module has it.
    pub fn kernel_name(&self) -> &Arc<str> {
        &self.code.module.functions[self.kernel as usize].name
    }

    pub fn is_checked(&self) -> bool {
        self.is_checked.load(Ordering::Relaxed)
    }

    /// What it may touch of the arena.
    pub fn view(&self) -> View {
        let view = self.services.view();
        View {
            exact: view.exact && self.is_checked(),
            ..view
        }
    }

    /// Threads of a block.
    pub(super) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Blocks of a cluster in each dimension: a grid without clusters is one of clusters of a single block (PTX ISA,
    /// %clusterid).
    pub(super) fn cluster(&self) -> [u32; 3] {
        self.cluster.unwrap_or([1; 3])
    }

    /// How many these are.
    pub(super) fn peers(&self) -> u32 {
        self.cluster().iter().product()
    }

    /// How many blocks or clusters there are in each dimension: what starts together.
    pub(super) fn starts(&self) -> [u32; 3] {
        match self.cluster {
            None => self.grid,
            Some(shape) => std::array::from_fn(|axis| self.grid[axis] / shape[axis]),
        }
    }

    pub(super) fn envreg(&self, i: u8) -> u32 {
        match i {
            1 => (self.workspace >> 32) as u32,
            2 => self.workspace as u32,
            _ => 0,
        }
    }
}

/// What a kernel asks of its context through system calls.
pub trait Services: Send + Sync {
    /// Device `malloc`: 0 when the heap is spent.
    fn malloc(&self, bytes: u64) -> u64;
    /// Device `free`; `false`: not a live block of this heap.
    fn free(&self, address: u64) -> bool;
    /// Finished `printf` text, whole calls at a time, in an order in which they happened.
    fn print(&self, bytes: &[u8]);
    /// The line of a failed assertion.
    fn assert_failed(&self, line: &str);
    /// `cudaGraphSetConditional`; `false`: no such handle.
    fn set_conditional(&self, handle: u64, value: u32) -> bool;
    /// What its kernels may touch of the arena.
    fn view(&self) -> View {
        AddressSpace::get().view()
    }
    /// Who looks on while a grid runs; asked when it begins.
    fn watch(&self, _launch: &Arc<Launch>) -> Watch {
        Watch::default()
    }
}

/// Where a launch comes from.
#[derive(Clone, Default)]
pub struct Family {
    /// `None`: its kernels launch nothing.
    pub runtime: Option<Arc<dyn Runtime>>,
    /// Grids above it: 0 for what the host launched.
    pub depth: u32,
    /// The executable graph of which it is a node, as the host knows it; 0 if none.
    pub graph: u64,
    /// The call that launched it, or its uppermost parent; of a node of a graph, the call that made the node.
    pub by: Caller,
    pub is_node: bool,
}

/// A launch's shape as kernels give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Index among the module's functions.
    pub kernel: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
}

/// A change of a kernel node of a graph that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphUpdate {
    Parameter { offset: u64, bytes: Box<[u8]> },
    Enabled(bool),
    Grid([u32; 3]),
}

/// What the device runtime asks of its surroundings. Errors are numbers of `cudaError`.
pub trait Runtime: Send + Sync {
    /// A launch of a kernel of the parent's module.
    ///
    /// # Errors
    /// What is wrong with the shape.
    fn child(&self, parent: &Launch, shape: &Shape, params: Box<[u8]>) -> Result<Launch, u32>;
    /// Bytes of a kernel's parameters.
    fn parameters(&self, kernel: u32) -> Result<u32, u32>;
    /// A `CU_FUNC_ATTRIBUTE`.
    fn function_attribute(&self, kernel: u32, which: u32) -> Result<i32, u32>;
    /// Blocks that a multiprocessor would hold.
    fn occupancy(&self, kernel: u32, threads: u32, dynamic_shared: u64) -> Result<u32, u32>;
    /// A `CU_DEVICE_ATTRIBUTE`.
    fn device_attribute(&self, which: i32, device: i32) -> Result<i32, u32>;
    fn device_count(&self) -> u32;
    fn device(&self) -> u32;
    /// A `CUlimit`.
    fn limit(&self, which: u32) -> Result<u64, u32>;
    /// `cudaFuncCache` and `cudaSharedMemConfig` of the context.
    fn preferences(&self) -> (u32, u32);
    /// As `cudaRuntimeGetVersion` gives it.
    fn version(&self) -> u32;
    /// Name and description of an error.
    fn words(&self, error: u32) -> (&'static str, &'static str);
    /// Memory that kernels reach and do not see as a part of their heap; 0: none left.
    fn reserve(&self, bytes: u64) -> u64;
    fn release(&self, start: u64);
    /// `cudaGraphLaunch` by a node of the graph `from`.
    ///
    /// # Errors
    /// What is wrong with it.
    fn launch_graph(&self, from: u64, graph: u64, stream: u64) -> Result<(), u32>;
    /// Changes a node that was made to be changed by kernels.
    ///
    /// # Errors
    /// What is wrong with it.
    fn update_node(&self, node: u64, update: GraphUpdate) -> Result<(), u32>;
}
