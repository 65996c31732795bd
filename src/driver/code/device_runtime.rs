//! What kernels that launch kernels ask of the driver (CUDA programming guide, "CUDA Dynamic Parallelism").
//!
//! Kernels name each other by their number in the module; how a call reaches here is `simt/children.rs`.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::driver::launch::{Config, Origin, describe};
use crate::driver::module::Module;
use crate::driver::{Context, Device, Error, Function, Result, VERSION, graph, occupancy, runtime_error};
use crate::memory::caller::Caller;
use crate::memory::{AddressSpace, Kind, Request};
use crate::simt::{GraphUpdate, Launch, Runtime, Shape};

/// `cudaErrorInvalidConfiguration`
const INVALID_CONFIGURATION: u32 = 9;

impl Module {
    fn launchable(&self, kernel: u32) -> Result<Arc<Function>, u32> {
        let module = Module::from_handle(self.handle()).map_err(Error::code)?;
        module.function_number(kernel).map_err(Error::code)
    }

    fn its_context(&self) -> Result<Arc<Context>, u32> {
        self.context().map_err(Error::code)
    }
}

impl Runtime for Module {
    fn child(&self, parent: &Launch, shape: &Shape, params: Box<[u8]>) -> Result<Launch, u32> {
        let function = self.launchable(shape.kernel)?;
        let config = Config {
            grid: shape.grid,
            block: shape.block,
            dynamic_shared: shape.dynamic_shared,
            ..Config::default()
        };
        // Apart from those of the host's launches.
        static GRIDS: AtomicU64 = AtomicU64::new(1 << 31);
        let from = Origin {
            grids: &GRIDS,
            graph: None,
        };
        let described = describe(&function, &config, params, parent.multiprocessors, None, &from);
        let mut launch = described.map_err(|error| match error {
            Error::InvalidValue => INVALID_CONFIGURATION,
            error => error.code(),
        })?;
        launch.family.depth = parent.family.depth + 1;
        (launch.family.by, launch.family.is_node) = (parent.family.by, parent.family.is_node);
        Ok(launch)
    }

    fn parameters(&self, kernel: u32) -> Result<u32, u32> {
        Ok(self.launchable(kernel)?.info.param_bytes)
    }

    fn function_attribute(&self, kernel: u32, which: u32) -> Result<i32, u32> {
        self.launchable(kernel)?.attribute(which).map_err(Error::code)
    }

    fn occupancy(&self, kernel: u32, threads: u32, dynamic_shared: u64) -> Result<u32, u32> {
        let function = self.launchable(kernel)?;
        occupancy::active_blocks(&function, threads, dynamic_shared).map_err(Error::code)
    }

    fn device_attribute(&self, which: i32, device: i32) -> Result<i32, u32> {
        let device = Device::get(device).map_err(Error::code)?;
        Ok(device.attribute(which))
    }

    fn device_count(&self) -> u32 {
        Device::count()
    }

    fn device(&self) -> u32 {
        self.shared().device
    }

    fn limit(&self, which: u32) -> Result<u64, u32> {
        self.its_context()?.limit(which).map_err(Error::code)
    }

    fn preferences(&self) -> (u32, u32) {
        let context = self.its_context();
        context.map_or((0, 0), |context| (context.cache_config(), context.shared_config()))
    }

    fn version(&self) -> u32 {
        VERSION as u32
    }

    fn words(&self, error: u32) -> (&'static str, &'static str) {
        runtime_error::words(error)
    }

    fn reserve(&self, bytes: u64) -> u64 {
        let request = Request {
            device: self.shared().device,
            owner: self.shared().id,
            by: Caller::named("the device runtime"),
            ..Request::new(Kind::Heap, bytes)
        };
        AddressSpace::get()
            .allocate(&request)
            .map_or(0, |allocation| allocation.start)
    }

    fn release(&self, start: u64) {
        AddressSpace::get().free(start);
    }

    fn launch_graph(&self, from: u64, graph: u64, stream: u64) -> Result<(), u32> {
        graph::launch_from_device(from, graph, stream).map_err(Error::code)
    }

    fn update_node(&self, node: u64, update: GraphUpdate) -> Result<(), u32> {
        graph::update_from_device(node, update).map_err(Error::code)
    }
}
