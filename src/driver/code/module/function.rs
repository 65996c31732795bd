//! Functions (`cuFunc*`): a kernel in one context, its attributes and its limits.

use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicI32, Ordering};

use super::{CALLABLES, Callable, Function, Lowered, Module};
use crate::driver::code::LoadError;
use crate::driver::process::room::room_to_work;
use crate::driver::profile::{MAX_THREADS_PER_BLOCK, SHARED_PER_BLOCK};
use crate::driver::{Context, Device, Error, Handle, Result, Stream};

impl Function {
    /// A `CUfunction`, or a `CUkernel` given in its place (in the current context): one look-up. 400 otherwise.
    pub fn from_handle(handle: Handle) -> Result<Arc<Function>> {
        match &*CALLABLES.get(handle).ok_or(Error::InvalidHandle)? {
            Callable::Function(function) => Ok(Arc::clone(function)),
            Callable::Kernel(kernel) => kernel.function(),
        }
    }

    /// The function in the stream's context: a `CUkernel` goes to whichever that is.
    pub(in crate::driver) fn on(self: &Arc<Function>, stream: &Stream) -> Result<Arc<Function>> {
        if Arc::ptr_eq(&self.shared, &stream.shared) {
            Ok(Arc::clone(self))
        } else {
            self.in_context(&stream.context()?)
        }
    }

    /// The handle of the library's kernel that it stands for; 0 if it does not.
    pub fn kernel_handle(&self) -> Handle {
        let kernel = self.kernel.get().and_then(Weak::upgrade);
        kernel.map_or(0, |kernel| kernel.handle)
    }

    /// The same function in another context, if it stands for a kernel of a library.
    pub(in crate::driver) fn in_context(self: &Arc<Function>, context: &Arc<Context>) -> Result<Arc<Function>> {
        let kernel = self.kernel.get().and_then(Weak::upgrade);
        kernel.ok_or(Error::InvalidHandle)?.function_in(context)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// `cuFuncGetModule`.
    pub fn module(&self) -> Result<Arc<Module>> {
        self.module.upgrade().ok_or(Error::InvalidHandle)
    }

    pub fn context(&self) -> Result<Arc<Context>> {
        self.context.upgrade().ok_or(Error::ContextIsDestroyed)
    }

    pub(in crate::driver) fn device(&self) -> &'static Device {
        &Device::all()[self.shared.device as usize]
    }

    /// Lowers it, unless that has happened. A failure is explained in the log, once.
    pub(in crate::driver) fn lowered(&self) -> Result<Lowered> {
        let lowered = match self.lowered.get() {
            Some(lowered) => lowered,
            None => {
                room_to_work()?;
                self.lowered.get_or_init(|| self.lower())
            }
        };
        lowered.as_ref().copied().map_err(|error| error.error)
    }

    fn lower(&self) -> Result<Lowered, LoadError> {
        match self.program.prepare(self.index) {
            Ok(function) => Ok(Lowered {
                shared_bytes: function.own_shared,
                local_bytes: function.local,
            }),
            Err(found) => Err(LoadError::from(found).logged()),
        }
    }

    /// Words for the JIT log if lowering failed.
    pub fn load_error(&self) -> Option<LoadError> {
        self.lowered.get()?.as_ref().err().cloned()
    }

    /// Threads that a block may have.
    pub(in crate::driver) fn max_threads(&self) -> u32 {
        match self.info.max_threads {
            0 => MAX_THREADS_PER_BLOCK,
            limit => limit.min(MAX_THREADS_PER_BLOCK),
        }
    }

    /// Dynamic shared memory that a launch may ask for; `mode` is the launch's `CUsharedMemoryMode`.
    pub(in crate::driver) fn max_dynamic_shared(&self, mode: u32) -> Result<u32> {
        let fixed = self.lowered()?.shared_bytes;
        let mode = match mode {
            0 => self.shared_mode.load(Ordering::Relaxed) as u32,
            mode => mode,
        };
        let total = match (mode, self.max_dynamic_shared.load(Ordering::Relaxed)) {
            (0, -1) | (1, _) => SHARED_PER_BLOCK,
            (0, bytes) => return Ok(bytes as u32),
            // There is none that is larger yet.
            _ => self.device().profile().shared_per_block_optin,
        };
        Ok(total.saturating_sub(fixed))
    }

    /// Blocks that a cluster may have; `mode` is the launch's `CUlaunchAttributePortableClusterMode`.
    pub(in crate::driver) fn max_cluster(&self, mode: u32) -> u32 {
        let non_portable = match mode {
            0 => self.non_portable_cluster.load(Ordering::Relaxed) != 0,
            mode => mode == 2,
        };
        let most = match non_portable {
            false => crate::driver::profile::CLUSTER_PORTABLE,
            true => crate::driver::profile::CLUSTER_OPTIN,
        };
        match self.info.max_cluster_rank {
            0 => most,
            rank => most.min(rank),
        }
    }

    /// The cluster shape that the function itself asks for, by its PTX or by attributes.
    pub(in crate::driver) fn required_cluster(&self) -> Option<[u32; 3]> {
        let set: [u32; 3] = std::array::from_fn(|axis| self.cluster[axis].load(Ordering::Relaxed) as u32);
        self.info.required_cluster.or((set != [0; 3]).then_some(set))
    }

    /// `CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`: percent; -1 is none.
    pub(in crate::driver) fn carveout(&self) -> i32 {
        self.carveout.load(Ordering::Relaxed)
    }

    /// Registers of a thread, as far as such a number can be given: what a compiler would stay within.
    pub(in crate::driver) fn registers(&self) -> u32 {
        let bound = match self.info.max_registers {
            0 => 255,
            limit => limit,
        };
        // A block of the largest size must fit the register file.
        bound.min(32)
    }

    /// `cuFuncGetAttribute`.
    pub fn attribute(&self, which: u32) -> Result<i32> {
        let required = |axis: usize| self.required_cluster().map_or(0, |shape| shape[axis]) as i32;
        Ok(match which {
            0 => self.max_threads() as i32,
            1 => self.lowered()?.shared_bytes as i32,
            2 => self.info.const_bytes as i32,
            3 => self.lowered()?.local_bytes as i32,
            4 => self.registers() as i32,
            5 => self.info.target as i32,
            6 => {
                let (major, minor) = self.device().capability();
                (major * 10 + minor) as i32
            }
            7 => 0,
            8 => self.max_dynamic_shared(0)? as i32,
            9 => self.carveout.load(Ordering::Relaxed),
            10 => (self.info.explicit_cluster || self.info.required_cluster.is_some()).into(),
            11..=13 => required(which as usize - 11),
            14 => self.non_portable_cluster.load(Ordering::Relaxed),
            15 => self.cluster_policy.load(Ordering::Relaxed),
            // DEVICE_NODE_UPDATE_SUPPORTED
            16 => 1,
            17 => self.shared_mode.load(Ordering::Relaxed),
            _ => return Err(Error::InvalidValue),
        })
    }

    /// `cuFuncSetAttribute`: from now on its kernel's no longer matters.
    pub fn set_attribute(&self, which: u32, value: i32) -> Result<()> {
        self.settable(which, value)?.store(value, Ordering::Relaxed);
        self.own.fetch_or(1 << which, Ordering::Relaxed);
        Ok(())
    }

    /// What was set on its kernel.
    pub(super) fn follow(&self, which: u32, value: i32) -> Result<()> {
        let attribute = self.settable(which, value)?;
        if self.own.load(Ordering::Relaxed) >> which & 1 == 0 {
            attribute.store(value, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Where an attribute is kept, if it can have this value.
    fn settable(&self, which: u32, value: i32) -> Result<&AtomicI32> {
        let attribute = match which {
            8 => {
                let limit = self.device().profile().shared_per_block_optin;
                let limit = limit.saturating_sub(self.lowered()?.shared_bytes);
                if value < 0 || value as u32 > limit {
                    return Err(Error::InvalidValue);
                }
                &self.max_dynamic_shared
            }
            9 if (-1..=100).contains(&value) => &self.carveout,
            // What was settled when it was compiled stays.
            11..=13 if self.info.required_cluster.is_some() => return Err(Error::NotPermitted),
            11..=13 if value >= 0 => &self.cluster[which as usize - 11],
            14 if (0..=1).contains(&value) => &self.non_portable_cluster,
            15 if (0..=3).contains(&value) => &self.cluster_policy,
            17 if (0..=4).contains(&value) => &self.shared_mode,
            _ => return Err(Error::InvalidValue),
        };
        Ok(attribute)
    }

    /// `cuFuncGetParamInfo`: (offset, bytes); 1 past the last.
    pub fn parameter(&self, index: usize) -> Result<(u32, u32)> {
        self.info.params.get(index).copied().ok_or(Error::InvalidValue)
    }

    pub fn parameter_count(&self) -> usize {
        self.info.params.len()
    }

    /// `cuFuncIsLoaded`.
    pub fn is_loaded(&self) -> bool {
        self.lowered.get().is_some()
    }

    /// `cuFuncLoad`.
    pub fn load(&self) -> Result<()> {
        self.lowered().map(drop)
    }
}
