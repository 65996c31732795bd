//! Execution control: properties of functions, launches, host functions.
//!
//! How arguments are laid out is known where a function's parameters are: `driver/code/launch.rs`.

use super::call::{Answer, DefaultStream, In, Out, require};
use super::graph_node::updatable;
use super::jit::interned;
use super::types::*;
use crate::driver::calls::{NodeOptions, launch, launch_together, launch_with_options};
use crate::driver::launch::{Arguments, Config};
use crate::driver::stream::HostFunction;
use crate::driver::{Context, Event, Function, Stream};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A `CUfunction`, or a `CUkernel` in its place (the runtime of CUDA 13 passes those).
pub fn find(function: CUfunction) -> Answer<Arc<Function>> {
    Ok(Function::from_handle(function as usize)?)
}

pub fn func_get_attribute(_: &Arc<Context>, pi: Out<c_int>, attrib: CUfunction_attribute, hfunc: CUfunction) -> Answer {
    pi.required()?;
    pi.set(find(hfunc)?.attribute(attrib.0)?)
}

pub fn func_set_attribute(_: &Arc<Context>, hfunc: CUfunction, attrib: CUfunction_attribute, value: c_int) -> Answer {
    Ok(find(hfunc)?.set_attribute(attrib.0, value)?)
}

/// A preference for hardware that divides one memory between cache and shared memory: nothing to do but to check it.
pub fn func_set_cache_config(_: &Arc<Context>, hfunc: CUfunction, config: CUfunc_cache) -> Answer {
    find(hfunc)?;
    require(config <= CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL)
}

/// The width of shared memory banks: nothing to do but to check it.
pub fn func_set_shared_mem_config(_: &Arc<Context>, hfunc: CUfunction, config: CUsharedconfig) -> Answer {
    find(hfunc)?;
    require(config <= CUsharedconfig::CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
}

pub fn func_get_module(_: &Arc<Context>, hmod: Out<CUmodule>, hfunc: CUfunction) -> Answer {
    hmod.required()?;
    hmod.set(find(hfunc)?.module()?.handle() as CUmodule)
}

pub fn func_get_name(_: &Arc<Context>, name: Out<*const c_char>, hfunc: CUfunction) -> Answer {
    name.required()?;
    name.set(interned(find(hfunc)?.name()))
}

/// The size may be NULL.
pub fn func_get_param_info(
    _: &Arc<Context>,
    func: CUfunction,
    param_index: usize,
    param_offset: Out<usize>,
    param_size: Out<usize>,
) -> Answer {
    param_offset.required()?;
    let (offset, size) = find(func)?.parameter(param_index)?;
    param_size.set_if_any(size as usize);
    param_offset.set(offset as usize)
}

pub fn func_get_param_count(_: &Arc<Context>, func: CUfunction, param_count: Out<usize>) -> Answer {
    param_count.required()?;
    param_count.set(find(func)?.parameter_count())
}

pub fn func_is_loaded(_: &Arc<Context>, state: Out<CUfunctionLoadingState>, function: CUfunction) -> Answer {
    state.required()?;
    state.set(if find(function)?.is_loaded() {
        CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_LOADED
    } else {
        CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_UNLOADED
    })
}

pub fn func_load(_: &Arc<Context>, function: CUfunction) -> Answer {
    Ok(find(function)?.load()?)
}

/// The kernel parameters' largest size (PTX ISA, kernel function parameters): 32764 bytes.
pub const LARGEST_PARAMETERS: usize = 32764;

/// Arguments in either of their two forms: one pointer per parameter, or a list (`extra`) that names a buffer with all of
/// them.
pub fn arguments<'a>(kernel_params: Out<*mut c_void>, extra: Out<*mut c_void>) -> Answer<Arguments<'a>> {
    require(kernel_params.is_null() || extra.is_null())?;
    Ok(if !extra.is_null() {
        match packed(extra)? {
            Some((buffer, size)) => {
                let size = size.min(LARGEST_PARAMETERS);
                // SAFETY: the caller's buffer and its size; no more of it is looked at than parameters can take.
                Arguments::Buffer(unsafe { std::slice::from_raw_parts(buffer.cast(), size) })
            }
            None => Arguments::None,
        }
    } else if !kernel_params.is_null() {
        Arguments::Pointers(kernel_params.as_ptr().cast())
    } else {
        Arguments::None
    })
}

fn launch_with(
    function: CUfunction,
    config: &Config,
    stream: &Arc<crate::driver::Stream>,
    kernel_params: Out<*mut c_void>,
    extra: Out<*mut c_void>,
) -> Answer {
    let function = find(function)?;
    let arguments = arguments(kernel_params, extra)?;
    // SAFETY: the caller's array has a valid pointer for each parameter (manual, cuLaunchKernel).
    Ok(unsafe { launch(&function, config, arguments, stream) }?)
}

/// Takes `extra` apart: pairs of a name and a pointer, ended by `CU_LAUNCH_PARAM_END`.
fn packed(extra: Out<*mut c_void>) -> Answer<Option<(*const c_void, usize)>> {
    let (mut buffer, mut size) = (std::ptr::null::<c_void>(), None);
    let mut at = 0;
    loop {
        match extra.get_at(at)? as usize as c_uint {
            CU_LAUNCH_PARAM_END_AS_INT => break,
            CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT => buffer = extra.get_at(at + 1)?,
            CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT => {
                // SAFETY: the manual says that this points to a `size_t`.
                size = Some(unsafe { In::from_c(extra.get_at(at + 1)?.cast_const().cast::<usize>()) }.get()?);
            }
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
        at += 2;
    }
    match (buffer.is_null(), size) {
        (_, None | Some(0)) => Ok(None),
        (true, Some(_)) => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        (false, Some(size)) => Ok(Some((buffer, size))),
    }
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn launch_kernel(
    context: &Arc<Context>,
    default: DefaultStream,
    function: CUfunction,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_mem_bytes: c_uint,
    stream: CUstream,
    kernel_params: Out<*mut c_void>,
    extra: Out<*mut c_void>,
) -> Answer {
    let config = Config {
        grid: [grid_x, grid_y, grid_z],
        block: [block_x, block_y, block_z],
        dynamic_shared: shared_mem_bytes,
        cooperative: false,
        ..Config::default()
    };
    launch_with(
        function,
        &config,
        &default.resolve_in(context, stream)?,
        kernel_params,
        extra,
    )
}

#[allow(
    clippy::too_many_arguments,
    reason = "the signature is that of the call in the manual"
)]
pub fn launch_cooperative_kernel(
    _: &Arc<Context>,
    default: DefaultStream,
    function: CUfunction,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_mem_bytes: c_uint,
    stream: CUstream,
    kernel_params: Out<*mut c_void>,
) -> Answer {
    let config = Config {
        grid: [grid_x, grid_y, grid_z],
        block: [block_x, block_y, block_z],
        dynamic_shared: shared_mem_bytes,
        cooperative: true,
        ..Config::default()
    };
    // SAFETY: a null pointer.
    let extra = unsafe { Out::from_c(std::ptr::null_mut()) };
    launch_with(function, &config, &default.resolve(stream)?, kernel_params, extra)
}

/// A launch configuration of C with its attributes.
pub struct Extended {
    pub config: Config,
    /// Events to record when all blocks have begun, or reached a point in the kernel: after the kernel is late enough.
    events: Vec<CUevent>,
    /// The attribute that asks for a node that kernels may change.
    updatable: Option<usize>,
    /// What a node of a graph keeps: values of 64 bytes by number.
    kept: BTreeMap<u32, [u64; 8]>,
}

/// Reads a launch configuration.
///
/// Hints about caches, scheduling and overlap with earlier or later work are checked and change nothing: the order that
/// streams give anyway is one of those they allow.
pub fn extended(config: &CUlaunchConfig) -> Answer<Extended> {
    // SAFETY: the caller's array of `numAttrs` attributes.
    let attributes = unsafe { In::from_c(config.attrs.cast_const()) };
    let mut read = Extended {
        config: Config {
            grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
            block: [config.blockDimX, config.blockDimY, config.blockDimZ],
            dynamic_shared: config.sharedMemBytes,
            ..Config::default()
        },
        events: Vec::new(),
        updatable: None,
        kept: BTreeMap::new(),
    };
    for index in 0..config.numAttrs as usize {
        let attribute = attributes.at(index)?;
        read.attribute(index, attribute.id, &attribute.value)?;
    }
    Ok(read)
}

impl Extended {
    fn attribute(&mut self, index: usize, id: CUlaunchAttributeID, value: &CUlaunchAttributeValue) -> Answer {
        use CUlaunchAttributeID as Id;
        // The caller has set the member of the union that belongs to the attribute.
        match id {
            Id::CU_LAUNCH_ATTRIBUTE_IGNORE => {}
            Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => {
                // SAFETY: every bit pattern of the union is a number, whichever member was written.
                self.config.cooperative = unsafe { value.cooperative } != 0;
            }
            Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => {
                // SAFETY: the members of the union are numbers: any bits will do.
                let cluster = unsafe { value.clusterDim };
                self.config.cluster = [cluster.x, cluster.y, cluster.z];
            }
            Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION => {
                // SAFETY: the members of the union are numbers: any bits will do.
                let cluster = unsafe { value.preferredClusterDim };
                self.config.preferred_cluster = [cluster.x, cluster.y, cluster.z];
                self.keep(id, value);
            }
            Id::CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE => {
                // SAFETY: the members of the union are numbers: any bits will do.
                let mode = unsafe { value.portableClusterSizeMode };
                require(mode.name().is_some())?;
                self.config.portable_cluster = mode.0;
            }
            Id::CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE => {
                // SAFETY: the members of the union are numbers: any bits will do.
                let mode = unsafe { value.sharedMemoryMode };
                require(mode.name().is_some())?;
                self.config.shared_mode = mode.0;
            }
            // SAFETY: the members of the union are numbers: any bits will do.
            Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT => self.event(unsafe { value.programmaticEvent }.event)?,
            Id::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => {
                // SAFETY: the members of the union are numbers: any bits will do.
                self.event(unsafe { value.launchCompletionEvent }.event)?;
            }
            Id::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE => {
                // SAFETY: the members of the union are numbers: any bits will do.
                let wanted = unsafe { value.deviceUpdatableKernelNode }.deviceUpdatable;
                require(wanted == 0 || wanted == 1)?;
                self.updatable = (wanted == 1).then_some(index).or(self.updatable);
            }
            Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE => {
                // SAFETY: the members of the union are numbers: any bits will do.
                require(unsafe { value.clusterSchedulingPolicyPreference }.name().is_some())?;
                self.keep(id, value);
            }
            Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => {
                // SAFETY: the members of the union are numbers: any bits will do.
                require(unsafe { value.memSyncDomain }.name().is_some())?;
                self.keep(id, value);
            }
            Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => {
                // SAFETY: the members of the union are numbers: any bits will do.
                require((-1..=100).contains(&(unsafe { value.sharedMemCarveout } as c_int)))?;
                self.keep(id, value);
            }
            Id::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING => {
                // SAFETY: the members of the union are numbers: any bits will do.
                require(unsafe { value.nvlinkUtilCentricScheduling } <= 1)?;
            }
            Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
            | Id::CU_LAUNCH_ATTRIBUTE_PRIORITY
            | Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => self.keep(id, value),
            Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            | Id::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => {}
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
        Ok(())
    }

    fn keep(&mut self, id: CUlaunchAttributeID, value: &CUlaunchAttributeValue) {
        // SAFETY: both are 64 bytes; what the caller left unset is whatever it was.
        let words = unsafe { std::mem::transmute::<CUlaunchAttributeValue, [u64; 8]>(*value) };
        self.kept.insert(id.0, words);
    }

    /// One without timing and for this process alone (manual, CUlaunchAttributeID).
    fn event(&mut self, event: CUevent) -> Answer {
        require(Event::from_handle(event as usize)?.flags() & CUevent_flags::CU_EVENT_DISABLE_TIMING.0 != 0)?;
        self.events.push(event);
        Ok(())
    }
}

pub fn launch_kernel_ex(
    context: &Arc<Context>,
    default: DefaultStream,
    config: In<CUlaunchConfig>,
    function: CUfunction,
    kernel_params: Out<*mut c_void>,
    extra: Out<*mut c_void>,
) -> Answer {
    let config = config.get()?;
    let stream = default.resolve_in(context, config.hStream)?;
    let extended = extended(&config)?;
    let events = extended
        .events
        .iter()
        .map(|event| Ok(Event::from_handle(*event as usize)?))
        .collect::<Answer<Vec<_>>>()?;
    let as_node = NodeOptions {
        attributes: extended.kept,
        updatable: extended.updatable.is_some(),
    };
    let found = find(function)?;
    let arguments = arguments(kernel_params, extra)?;
    // SAFETY: the caller's array has a valid pointer for each parameter (manual, cuLaunchKernelEx).
    let node = unsafe { launch_with_options(&found, &extended.config, arguments, &stream, as_node) }?;
    if let (Some(node), Some(index)) = (node, extended.updatable) {
        // SAFETY: the caller's array of attributes: the handle goes into the one that asks for it.
        let attributes = unsafe { Out::from_c(config.attrs) };
        let mut attribute = attributes.get_at(index)?;
        attribute.value.deviceUpdatableKernelNode = updatable(Some(&node));
        attributes.set_at(index, attribute);
    }
    for event in &events {
        event.record(&stream, false)?;
    }
    Ok(())
}

/// One cooperative launch on each of several devices. Blocks of different devices have no means to wait for each other.
pub fn launch_cooperative_kernel_multi_device(list: Out<CUDA_LAUNCH_PARAMS>, devices: c_uint, flags: c_uint) -> Answer {
    const NO_PRE_LAUNCH_SYNC: c_uint = 1;
    const NO_POST_LAUNCH_SYNC: c_uint = 2;
    require(!list.is_null() && devices > 0 && flags & !(NO_PRE_LAUNCH_SYNC | NO_POST_LAUNCH_SYNC) == 0)?;
    let first = list.get_at(0)?;
    let mut launches = Vec::new();
    for index in 0..devices as usize {
        let one = list.get_at(index)?;
        // All the same but for where they run and what on.
        require(
            (one.gridDimX, one.gridDimY, one.gridDimZ) == (first.gridDimX, first.gridDimY, first.gridDimZ)
                && (one.blockDimX, one.blockDimY, one.blockDimZ) == (first.blockDimX, first.blockDimY, first.blockDimZ)
                && one.sharedMemBytes == first.sharedMemBytes,
        )?;
        let stream = Stream::resolve(one.hStream as usize, false)?;
        require(!stream.is_default())?;
        // SAFETY: the caller's array has a valid pointer for each parameter (manual,
        // cuLaunchCooperativeKernelMultiDevice); a null pointer.
        let arguments = unsafe { arguments(Out::from_c(one.kernelParams), Out::from_c(std::ptr::null_mut())) }?;
        let function = find(one.function)?;
        launches.push((function, arguments, stream));
    }
    let config = Config {
        grid: [first.gridDimX, first.gridDimY, first.gridDimZ],
        block: [first.blockDimX, first.blockDimY, first.blockDimZ],
        dynamic_shared: first.sharedMemBytes,
        cooperative: true,
        ..Config::default()
    };
    let (before, after) = (flags & NO_PRE_LAUNCH_SYNC == 0, flags & NO_POST_LAUNCH_SYNC == 0);
    // SAFETY: the caller of `cuLaunchCooperativeKernelMultiDevice` vouches for a pointer to each parameter.
    Ok(unsafe { launch_together(&launches, &config, before, after) }?)
}

fn host_function(
    default: DefaultStream,
    stream: CUstream,
    function: CUhostFn,
    user_data: *mut c_void,
    sync_mode: c_uint,
) -> Answer {
    let function = host_fn(function)?;
    Ok(default
        .resolve(stream)?
        .host_function(function, user_data as usize, sync_mode)?)
}

/// A function of the program's; NULL is an error.
pub fn host_fn(function: CUhostFn) -> Answer<HostFunction> {
    let function = function.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
    // SAFETY: a pointer is passed like a number of its size, and a C caller's function is called with what it was given for.
    Ok(unsafe { std::mem::transmute::<unsafe extern "C" fn(*mut c_void), HostFunction>(function) })
}

pub fn launch_host_func(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    function: CUhostFn,
    user_data: *mut c_void,
) -> Answer {
    host_function(default, stream, function, user_data, 0)
}

/// Whether the queue spins or sleeps while the function runs makes no difference here.
pub fn launch_host_func_v2(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    function: CUhostFn,
    user_data: *mut c_void,
    sync_mode: c_uint,
) -> Answer {
    require(CUhostTaskSyncMode::from_raw(sync_mode).name().is_some())?;
    host_function(default, stream, function, user_data, sync_mode)
}
