//! Launches: checks of the shape, the parameter block, and a [`simt::Launch`] in the stream's queue. What a fault means for
//! the context is in `fault.rs`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::config;
use crate::driver::context::Shared;
use crate::driver::module::Lowered;
use crate::driver::process::check;
use crate::driver::profile::{MAX_BLOCK, MAX_GRID, MAX_THREADS_PER_BLOCK};
use crate::driver::{Device, Error, Function, Result, fault, occupancy, record};
use crate::isa::mma::Architecture;
use crate::memory::caller::{self, Caller};
use crate::memory::shadow;
use crate::memory::{AddressSpace, Kind, Request};
use crate::simt::{self, Family, Services};
use crate::trace::status_line;

/// A launch as a call describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// All 0: none asked for (the kernel's own `.reqnctapercluster`, if any).
    pub cluster: [u32; 3],
    pub dynamic_shared: u32,
    pub cooperative: bool,
    /// Blocks that may form larger clusters; all 0: none.
    pub preferred_cluster: [u32; 3],
    /// `CUlaunchAttributePortableClusterMode` and `CUsharedMemoryMode`: 0 is what the function says.
    pub portable_cluster: u32,
    pub shared_mode: u32,
}

/// Where the arguments are.
#[derive(Clone, Copy)]
pub enum Arguments<'a> {
    None,
    /// `kernelParams`: one pointer for each parameter.
    Pointers(*const *const std::ffi::c_void),
    /// `extra`, already taken apart.
    Buffer(&'a [u8]),
}

/// A lane's stack is at least this: the compiler's frames for which `CU_LIMIT_STACK_SIZE` was made are smaller than those
/// of PTX, where parameters and spilled-over variables have memory of their own.
const LEAST_STACK: u64 = 16 << 10;

pub(in crate::driver) use check::orders::Runner;

/// What runs a grid: the executor, or a stand-in under test.
fn runner() -> Runner {
    #[cfg(test)]
    if let Some(runner) = tests::RUNNER.with(std::cell::Cell::get) {
        return runner;
    }
    simt::run
}

/// A launch with all that can be done beforehand done: it can be run any number of times, one at a time.
pub(in crate::driver) struct Prepared {
    shared: Arc<Shared>,
    launch: Arc<simt::Launch>,
    workspace: Option<Workspace>,
    run: Runner,
}

impl Prepared {
    /// # Errors
    /// As [`launch`].
    pub fn new(function: &Arc<Function>, config: &Config, params: Box<[u8]>, multiprocessors: u32) -> Result<Prepared> {
        Prepared::make(function, config, params, multiprocessors, (None, caller::here()))
    }

    /// As a node that a call has made of an executable graph; `graph`: kernels may launch it, 0: they may not.
    pub fn of_node(
        function: &Arc<Function>,
        config: &Config,
        params: Box<[u8]>,
        multiprocessors: u32,
        (graph, by): (u64, Caller),
    ) -> Result<Prepared> {
        Prepared::make(function, config, params, multiprocessors, (Some(graph), by))
    }

    fn make(
        function: &Arc<Function>,
        config: &Config,
        params: Box<[u8]>,
        multiprocessors: u32,
        (graph, by): (Option<u64>, Caller),
    ) -> Result<Prepared> {
        let shared = &function.shared;
        let workspace = if config.cooperative {
            Some(Workspace::new(shared)?)
        } else {
            None
        };
        // The number of a launch by the host depends on the host's calls alone: schedules from a seed count on it.
        static GRIDS: AtomicU64 = AtomicU64::new(1);
        let from = Origin { grids: &GRIDS, graph };
        let mut launch = describe(function, config, params, multiprocessors, workspace.as_ref(), &from)?;
        launch.family.by = by;
        launch.family.is_node = graph.is_some();
        Ok(Prepared {
            shared: Arc::clone(shared),
            launch: Arc::new(launch),
            workspace,
            run: runner(),
        })
    }

    /// The call that launched it, or that made the node.
    pub fn by(&self) -> Caller {
        self.launch.family.by
    }

    /// Runs the grid to its end; a fault becomes the context's error.
    pub fn run(&self) {
        if let Some(workspace) = &self.workspace {
            workspace.clear();
        }
        let _busy = record::kernel_runs(self.shared.device);
        let launch = &self.launch;
        // A node has its turn among the launches that are looked at each time that it runs.
        if launch.family.is_node {
            let is_checked = check::selection::takes(launch.kernel_name());
            // It does not run meanwhile.
            launch.is_checked.store(is_checked, Ordering::Relaxed);
        }
        let ended = match check::orders::wanted() {
            Some(orders) if launch.is_checked() => check::orders::run(launch, self.run, orders),
            Some(_) | None => (self.run)(Arc::clone(launch)),
        };
        if let Err(fault) = ended {
            let (mut report, memory) = fault::report_and_memory(&fault, self.shared.id);
            // Who sees the error may end the process at once, so that the finding is noted before. Only the first is reported.
            if !self.shared.has_failed() {
                let hosts = check::hosts(Some(&*self.launch), &memory);
                check::fault(&fault, &report, &self.launch, &hosts);
                report += &check::words_of_hosts(&hosts);
            }
            self.shared.fail(fault::code(&fault.cause), &report);
        }
        status_line::clear();
    }
}

/// Where a launch comes from.
pub(in crate::driver) struct Origin<'a> {
    /// What counts such launches.
    pub grids: &'a AtomicU64,
    /// The executable graph of which it is a node, as the host knows it if kernels may launch it, and else 0.
    pub graph: Option<u64>,
}

/// A launch as the executor runs it: a block of tiles is one thread here. How many it would be on a device is its compiler's
/// business, which launches say or leave at 1 (CUDA Tile IR Reference, Launching).
fn in_threads(function: &Function, config: &Config) -> Config {
    match function.info.is_of_tiles {
        true => Config {
            block: [1; 3],
            ..*config
        },
        false => *config,
    }
}

/// A launch for the executor.
///
/// # Errors
/// As [`launch`].
pub(in crate::driver) fn describe(
    function: &Function,
    config: &Config,
    params: Box<[u8]>,
    multiprocessors: u32,
    workspace: Option<&Workspace>,
    from: &Origin<'_>,
) -> Result<simt::Launch> {
    let shared = &function.shared;
    let config = &in_threads(function, config);
    let Shape { grid, cluster } = check(function, config, function.lowered()?, multiprocessors)?;
    let grid_id = from.grids.fetch_add(1, Ordering::Relaxed);
    let name = &function.code.module.functions[function.index as usize].name;
    // What a graph launches has its turn each time that it runs.
    let is_checked = match from.graph {
        None => check::selection::takes(name),
        Some(_) => check::selection::names(name),
    };
    let code = if is_checked {
        &function.code
    } else {
        function.code.bare()
    };
    Ok(simt::Launch {
        code: Arc::clone(code),
        kernel: function.index,
        grid,
        block: config.block,
        cluster,
        dynamic_shared: config.dynamic_shared,
        params,
        cooperative: config.cooperative,
        workspace: workspace.map_or(0, |workspace| workspace.0),
        grid_id,
        device: shared.device,
        multiprocessors,
        tensor: tensor_architecture(shared.device),
        stack_limit: shared.stack_limit.load(Ordering::Relaxed).max(LEAST_STACK),
        timeout: config::get().timeout,
        seed: check::orders::seed_of(grid_id, is_checked),
        is_checked: is_checked.into(),
        services: Arc::clone(shared) as Arc<dyn Services>,
        references: function.references.bindings(),
        family: Family {
            runtime: function.module().ok().map(|module| module as Arc<dyn simt::Runtime>),
            graph: from.graph.unwrap_or(0),
            ..Family::default()
        },
    })
}

/// Whose tensor cores multiply: those of `MARGAY_TENSOR_ARCH`, or of the device.
fn tensor_architecture(device: u32) -> Architecture {
    config::get().tensor_arch.unwrap_or_else(|| {
        let devices = Device::all();
        let (major, minor) = devices
            .get(device as usize)
            .map_or((12, 0), |device| device.capability());
        Architecture::of_capability(major, minor)
    })
}

/// `CUDA_LAUNCH_BLOCKING=1` (CUDA programming guide, "CUDA Environment Variables").
pub(in crate::driver) fn launch_blocking() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| std::env::var_os("CUDA_LAUNCH_BLOCKING").is_some_and(|value| value == "1"))
}

/// The zeroed memory that `grid.sync()` counts in, for one launch.
pub(in crate::driver) struct Workspace(u64);

impl Workspace {
    const BYTES: u64 = 64;

    fn new(shared: &Shared) -> Result<Workspace> {
        let request = Request {
            device: shared.device,
            owner: shared.id,
            ..Request::new(Kind::Heap, Workspace::BYTES)
        };
        let allocation = AddressSpace::get().allocate(&request).map_err(|_| Error::OutOfMemory)?;
        Ok(Workspace(allocation.start))
    }

    fn clear(&self) {
        // SAFETY: the allocation is ours, this large, and no grid that uses it runs.
        unsafe { std::ptr::write_bytes(self.0 as *mut u8, 0, Workspace::BYTES as usize) };
        shadow::defined(self.0, Workspace::BYTES);
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        AddressSpace::get().free(self.0);
    }
}

/// How many blocks there are in each dimension, and how many of them in a cluster, if there are to be clusters.
pub(in crate::driver) struct Shape {
    pub grid: [u32; 3],
    pub cluster: Option<[u32; 3]>,
}

/// Whether the shape is one that the device and the function allow.
pub(in crate::driver) fn check(
    function: &Function,
    config: &Config,
    lowered: Lowered,
    multiprocessors: u32,
) -> Result<Shape> {
    let config = &in_threads(function, config);
    let Config { mut grid, block, .. } = *config;
    if let (true, Some(shape)) = (function.info.blocks_are_clusters, function.info.required_cluster) {
        for (blocks, each) in grid.iter_mut().zip(shape) {
            *blocks = blocks.checked_mul(each).ok_or(Error::InvalidValue)?;
        }
    }
    let within = |shape: [u32; 3], limit: [u32; 3]| (0..3).all(|axis| (1..=limit[axis]).contains(&shape[axis]));
    if !within(grid, MAX_GRID) || !within(block, MAX_BLOCK) {
        return Err(Error::InvalidValue);
    }
    let threads: u32 = block.iter().product();
    if threads > MAX_THREADS_PER_BLOCK {
        return Err(Error::InvalidValue);
    }
    // 1, not 701, which is for kernels that have too many registers for so many threads: clients' tests on hardware say so.
    if threads > function.max_threads() {
        return Err(Error::InvalidValue);
    }
    if function.info.reqntid.is_some_and(|required| required != block) {
        return Err(Error::InvalidValue);
    }
    if function
        .info
        .maxntid
        .is_some_and(|most| threads > most.iter().map(|size| size.max(&1)).product())
    {
        return Err(Error::InvalidValue);
    }
    let profile = function.device().profile();
    if config.dynamic_shared > function.max_dynamic_shared(config.shared_mode)?
        || u64::from(config.dynamic_shared) + u64::from(lowered.shared_bytes)
            > u64::from(profile.shared_per_block_optin)
    {
        return Err(Error::InvalidValue);
    }
    let cluster = match (config.cluster, function.required_cluster()) {
        ([0, 0, 0], None) if function.info.explicit_cluster => return Err(Error::InvalidClusterSize),
        ([0, 0, 0], None) => None,
        ([0, 0, 0], Some(required)) => Some(required),
        (asked, Some(required)) if asked != required => return Err(Error::InvalidClusterSize),
        (asked, _) => Some(asked),
    };
    let most = function.max_cluster(config.portable_cluster);
    let fits = |shape: [u32; 3], whole: [u32; 3]| {
        let blocks = shape.iter().try_fold(1_u32, |product, size| product.checked_mul(*size));
        let divides = (0..3).all(|axis| shape[axis] > 0 && whole[axis].is_multiple_of(shape[axis]));
        divides && blocks.is_some_and(|blocks| blocks <= most)
    };
    if cluster.is_some_and(|shape| shape != [1; 3] && !(profile.clusters && fits(shape, grid))) {
        return Err(Error::InvalidClusterSize);
    }
    let preferred = config.preferred_cluster;
    if config.cluster != [0; 3] && preferred != [0; 3] {
        let multiple = (0..3).all(|axis| preferred[axis].is_multiple_of(config.cluster[axis]));
        if !multiple || !fits(preferred, grid) {
            return Err(Error::InvalidClusterSize);
        }
    }
    if config.cooperative {
        let resident = occupancy::active_blocks(function, threads, config.dynamic_shared.into())?;
        let blocks = grid
            .iter()
            .try_fold(1_u64, |product, size| product.checked_mul((*size).into()));
        if blocks.is_none_or(|blocks| blocks > u64::from(resident) * u64::from(multiprocessors)) {
            return Err(Error::CooperativeLaunchTooLarge);
        }
    }
    Ok(Shape { grid, cluster })
}

/// The parameter block.
///
/// # Safety
/// `Arguments::Pointers` has a valid pointer for each parameter of the function.
pub(in crate::driver) unsafe fn collect(function: &Function, arguments: Arguments<'_>) -> Result<Box<[u8]>> {
    let info = &function.info;
    let mut block = vec![0_u8; info.param_bytes as usize].into_boxed_slice();
    match arguments {
        _ if info.params.is_empty() => {}
        Arguments::None => return Err(Error::InvalidValue),
        Arguments::Pointers(pointers) if pointers.is_null() => return Err(Error::InvalidValue),
        Arguments::Pointers(pointers) => {
            for (index, (offset, bytes)) in info.params.iter().enumerate() {
                let target = &mut block[*offset as usize..][..*bytes as usize];
                // SAFETY: the caller vouches for one pointer to as many bytes for each parameter.
                unsafe {
                    let argument: *const u8 = (*pointers.add(index)).cast();
                    if argument.is_null() {
                        return Err(Error::InvalidValue);
                    }
                    std::ptr::copy_nonoverlapping(argument, target.as_mut_ptr(), target.len());
                }
            }
        }
        Arguments::Buffer(buffer) => {
            // A buffer may end within the last parameter, whose rest is zero then: NCCL's kernels take 4096 bytes, of which
            // it hands over those that it uses.
            let last = info.params.iter().map(|(offset, _)| *offset as usize).max();
            if last.is_some_and(|last| buffer.len() <= last) {
                return Err(Error::InvalidValue);
            }
            let bytes = buffer.len().min(block.len());
            block[..bytes].copy_from_slice(&buffer[..bytes]);
        }
    }
    Ok(block)
}

#[cfg(test)]
pub(in crate::driver) mod tests {
    use super::Runner;
    use std::cell::Cell;

    thread_local! {
        /// Stands in for the executor in launches of this thread.
        pub static RUNNER: Cell<Option<Runner>> = const { Cell::new(None) };
    }
}
