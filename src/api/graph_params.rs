//! Graph management: the records that describe what nodes do, there and back.
//!
//! What a node does is [`Work`] to the driver.
//!
//! Pointers in records that come back point to memory that the node keeps until it is changed or ends.

use super::call::{Answer, In, Out, require};
use super::execution::{arguments, host_fn};
use super::types::*;
use super::{copy, stream_memory};
use crate::driver::copy::{CopyKind, End};
use crate::driver::graph::{
    BatchNode, Conditional, ConditionalNode, CopyNode, GraphMemory, HostNode, KernelNode, Node,
};
use crate::driver::graph::{SetNode, Work};
use crate::driver::launch::Config;
use crate::driver::{Context, Device, Event, Function, Handle};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

/// What a node keeps for records that come back.
pub struct Kept<T>(pub T);

// SAFETY: pointers in what is kept are never followed here, and what they point to is kept beside them, unchanging.
unsafe impl<T> Send for Kept<T> {}
// SAFETY: what is kept does not change, so that threads may look at it at the same time.
unsafe impl<T> Sync for Kept<T> {}

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

/// A context by handle, the current one for NULL. Nodes run wherever their memory is; the handle comes back as it was given.
pub fn context(ctx: CUcontext) -> Answer<Handle> {
    Ok(if ctx.is_null() {
        Context::current()?.handle()
    } else {
        Context::from_handle(ctx as usize)?.handle()
    })
}

// Kernels.

/// The function, or the kernel in a context, that the record names.
pub fn kernel(params: &CUDA_KERNEL_NODE_PARAMS) -> Answer<Work> {
    let (handle, ctx) = match (params.func.is_null(), params.kern.is_null()) {
        (true, true) => return Err(INVALID),
        (true, false) => (params.kern as usize, params.ctx),
        (false, _) => (params.func as usize, null_mut()),
    };
    let function = Function::from_handle(handle)?;
    let context = match ctx.is_null() {
        true => None,
        false => Some(Context::from_handle(ctx as usize)?),
    };
    let config = Config {
        grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
        block: [params.blockDimX, params.blockDimY, params.blockDimZ],
        dynamic_shared: params.sharedMemBytes,
        cooperative: false,
        ..Config::default()
    };
    // SAFETY: the caller's arrays, null or as the manual says.
    let arguments = unsafe { arguments(Out::from_c(params.kernelParams), Out::from_c(params.extra)) }?;
    // SAFETY: the caller's array has a valid pointer for each parameter (manual, cuGraphAddKernelNode).
    let node = unsafe {
        KernelNode::new(
            &function,
            handle != function.handle(),
            context.as_ref(),
            config,
            arguments,
        )
    }?;
    Ok(Work::Kernel(node))
}

/// Parameters as a kernel's record shows them.
struct Arguments {
    block: Box<[u8]>,
    pointers: Vec<*mut c_void>,
    extra: [*mut c_void; 5],
    size: Box<usize>,
}

fn kept_arguments(node: &Node, kernel: &KernelNode) -> Arc<Kept<Arguments>> {
    if let Some(kept) = node.kept() {
        return kept;
    }
    let mut block = kernel.params.clone();
    let mut pointers = Vec::new();
    for index in 0..kernel.function.parameter_count() {
        if let Ok((offset, _)) = kernel.function.parameter(index) {
            let rest = block.get_mut(offset as usize..).unwrap_or_default();
            pointers.push(rest.as_mut_ptr().cast());
        }
    }
    let mut size = Box::new(block.len());
    let extra = [
        CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT as usize as *mut c_void,
        block.as_mut_ptr().cast(),
        CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT as usize as *mut c_void,
        (&raw mut *size).cast(),
        CU_LAUNCH_PARAM_END_AS_INT as usize as *mut c_void,
    ];
    let kept = Arc::new(Kept(Arguments {
        block,
        pointers,
        extra,
        size,
    }));
    node.keep(Arc::clone(&kept) as _);
    kept
}

pub fn kernel_record(node: &Node) -> Answer<CUDA_KERNEL_NODE_PARAMS> {
    let work = node.work();
    let Work::Kernel(kernel) = &*work else {
        return Err(INVALID);
    };
    let kept = kept_arguments(node, kernel);
    let kept = &kept.0;
    debug_assert_eq!(*kept.size, kept.block.len());
    let config = kernel.config;
    let (func, kern) = match kernel.by_kernel {
        true => (0, kernel.function.kernel_handle()),
        false => (kernel.function.handle(), 0),
    };
    Ok(CUDA_KERNEL_NODE_PARAMS {
        func: func as CUfunction,
        gridDimX: config.grid[0],
        gridDimY: config.grid[1],
        gridDimZ: config.grid[2],
        blockDimX: config.block[0],
        blockDimY: config.block[1],
        blockDimZ: config.block[2],
        sharedMemBytes: config.dynamic_shared,
        kernelParams: match kernel.packed {
            true => null_mut(),
            false => kept.pointers.as_ptr().cast_mut(),
        },
        extra: match kernel.packed {
            true => kept.extra.as_ptr().cast_mut(),
            false => null_mut(),
        },
        kern: kern as CUkernel,
        ctx: kernel.function.context()?.handle() as CUcontext,
    })
}

// Copies and sets.

/// The work, and the record to keep.
pub fn copy(params: &CUDA_MEMCPY3D, ctx: CUcontext) -> Answer<(Work, Arc<Kept<CUDA_MEMCPY3D>>)> {
    let (dst, src, shape) = copy::of_node(params)?;
    let node = CopyNode {
        dst,
        src,
        shape,
        context: context(ctx)?,
    };
    Ok((Work::Copy(node), Arc::new(Kept(*params))))
}

/// As it was given; of a node that was recorded, as it would have been given.
pub fn copy_record(node: &Node) -> Answer<CUDA_MEMCPY3D> {
    let work = node.work();
    let Work::Copy(copy) = &*work else {
        return Err(INVALID);
    };
    if let Some(kept) = node.kept::<Kept<CUDA_MEMCPY3D>>() {
        return Ok(kept.0);
    }
    let kind = |end: End| match end.place.kind() {
        CopyKind::Host => CUmemorytype::CU_MEMORYTYPE_HOST,
        CopyKind::Device => CUmemorytype::CU_MEMORYTYPE_DEVICE,
        CopyKind::Unified => CUmemorytype::CU_MEMORYTYPE_UNIFIED,
    };
    let host = |end: End| match end.place.kind() {
        CopyKind::Host => end.place.address() as *mut c_void,
        _ => null_mut(),
    };
    let device = |end: End| match end.place.kind() {
        CopyKind::Host => 0,
        _ => end.place.address(),
    };
    let (src, dst, shape) = (copy.src, copy.dst, copy.shape);
    Ok(CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: kind(src),
        srcHost: host(src),
        srcDevice: device(src),
        srcArray: null_mut(),
        reserved0: null_mut(),
        srcPitch: src.pitch as usize,
        srcHeight: src.rows as usize,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: kind(dst),
        dstHost: host(dst),
        dstDevice: device(dst),
        dstArray: null_mut(),
        reserved1: null_mut(),
        dstPitch: dst.pitch as usize,
        dstHeight: dst.rows as usize,
        WidthInBytes: shape.width as usize,
        Height: shape.height as usize,
        Depth: shape.depth as usize,
    })
}

pub fn set(params: &CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext) -> Answer<Work> {
    Ok(Work::Set(SetNode {
        dst: params.dst,
        pitch: params.pitch as u64,
        element: params.elementSize,
        value: params.value,
        width: params.width as u64,
        height: params.height as u64,
        context: context(ctx)?,
    }))
}

/// The record, and the context beside it.
pub fn set_record(node: &Node) -> Answer<(CUDA_MEMSET_NODE_PARAMS, CUcontext)> {
    let work = node.work();
    let Work::Set(set) = &*work else {
        return Err(INVALID);
    };
    let record = CUDA_MEMSET_NODE_PARAMS {
        dst: set.dst,
        pitch: set.pitch as usize,
        value: set.value,
        elementSize: set.element,
        width: set.width as usize,
        height: set.height as usize,
    };
    Ok((record, set.context as CUcontext))
}

// Host functions and events.

pub fn host(params: &CUDA_HOST_NODE_PARAMS, mode: c_uint, ctx: CUcontext) -> Answer<Work> {
    require(CUhostTaskSyncMode::from_raw(mode).name().is_some())?;
    let context = match ctx.is_null() {
        true => 0,
        false => Context::from_handle(ctx as usize)?.handle(),
    };
    Ok(Work::Host(HostNode {
        function: host_fn(params.r#fn)?,
        data: params.userData as usize,
        mode,
        context,
    }))
}

pub fn host_record(node: &Node) -> Answer<CUDA_HOST_NODE_PARAMS_v2> {
    let work = node.work();
    let Work::Host(host) = &*work else {
        return Err(INVALID);
    };
    // SAFETY: the function is one that the program has given; the two types of it differ in what a pointer is passed as.
    let function = unsafe {
        std::mem::transmute::<crate::driver::stream::HostFunction, unsafe extern "C" fn(*mut c_void)>(host.function)
    };
    Ok(CUDA_HOST_NODE_PARAMS_v2 {
        r#fn: Some(function),
        userData: host.data as *mut c_void,
        syncMode: host.mode,
        anonymous: CUDA_HOST_NODE_PARAMS_v2_st_anonymous {
            ctx: host.context as CUcontext,
        },
    })
}

/// Event nodes do not take stale events, nor NULL.
pub fn event(event: CUevent) -> Answer<Arc<Event>> {
    Event::from_handle(event as usize).map_err(|_| INVALID)
}

// Memory.

pub fn allocation(params: &CUDA_MEM_ALLOC_NODE_PARAMS) -> Answer<(Work, Arc<GraphMemory>)> {
    let props = &params.poolProps;
    require(props.allocType == CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED && params.bytesize > 0)?;
    if props.handleTypes != CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE {
        return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED);
    }
    let device = location(props.location)?;
    require(params.accessDescCount == 0 || !params.accessDescs.is_null())?;
    // SAFETY: the caller's array.
    let access = unsafe { In::from_c(params.accessDescs) };
    for index in 0..params.accessDescCount {
        location(access.at(index)?.location)?;
    }
    let memory = GraphMemory::create(&*Context::usable()?, device, params.bytesize as u64)?;
    Ok((Work::Allocate(Arc::clone(&memory)), memory))
}

fn location(location: CUmemLocation) -> Answer<&'static Device> {
    require(location.r#type == CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE)?;
    // SAFETY: every bit pattern is a number.
    Device::get(unsafe { location.anonymous.id }).map_err(|_| INVALID)
}

/// An allocation's record with the array that it points to.
pub struct Allocation {
    record: CUDA_MEM_ALLOC_NODE_PARAMS,
    access: Vec<CUmemAccessDesc>,
}

pub fn keep_allocation(node: &Node, params: &CUDA_MEM_ALLOC_NODE_PARAMS) -> Answer {
    // SAFETY: the caller's array.
    let access = unsafe { In::from_c(params.accessDescs) };
    let access: Vec<_> = (0..params.accessDescCount)
        .map(|index| access.at(index))
        .collect::<Answer<_>>()?;
    node.keep(Arc::new(Kept(Allocation {
        record: *params,
        access,
    })));
    Ok(())
}

/// What a recorded allocation would have been given as, with access by its own device.
pub fn allocation_record(node: &Node) -> Answer<CUDA_MEM_ALLOC_NODE_PARAMS> {
    let work = node.work();
    let Work::Allocate(memory) = &*work else {
        return Err(INVALID);
    };
    let Some(kept) = node.kept::<Kept<Allocation>>() else {
        // SAFETY: numbers and null pointers, for which all bits 0 stand.
        let mut record: CUDA_MEM_ALLOC_NODE_PARAMS = unsafe { std::mem::zeroed() };
        record.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        record.poolProps.location = CUmemLocation {
            r#type: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            anonymous: CUmemLocation_st_anonymous {
                id: memory.device() as c_int,
            },
        };
        record.bytesize = memory.bytes() as usize;
        record.dptr = memory.address();
        return Ok(record);
    };
    Ok(CUDA_MEM_ALLOC_NODE_PARAMS {
        accessDescs: match kept.0.access.is_empty() {
            true => std::ptr::null(),
            false => kept.0.access.as_ptr(),
        },
        accessDescCount: kept.0.access.len(),
        dptr: memory.address(),
        ..kept.0.record
    })
}

/// The address must be an allocation node's.
pub fn free(dptr: CUdeviceptr) -> Answer<Work> {
    Ok(Work::Free(GraphMemory::at(dptr)?))
}

pub fn batch(params: &CUDA_BATCH_MEM_OP_NODE_PARAMS) -> Answer<Work> {
    // SAFETY: the caller's array.
    let array = unsafe { Out::from_c(params.paramArray) };
    let operations = stream_memory::batch(params.count, array, params.flags)?;
    Ok(Work::Batch(BatchNode {
        operations: operations.into(),
        context: context(params.ctx)?,
    }))
}

pub fn batch_record(node: &Node) -> Answer<CUDA_BATCH_MEM_OP_NODE_PARAMS> {
    let work = node.work();
    let Work::Batch(batch) = &*work else {
        return Err(INVALID);
    };
    let kept = node.kept().unwrap_or_else(|| {
        let records = Arc::new(Kept(stream_memory::records(&batch.operations)));
        node.keep(Arc::clone(&records) as _);
        records
    });
    Ok(CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: batch.context as CUcontext,
        count: kept.0.len() as c_uint,
        paramArray: kept.0.as_ptr().cast_mut(),
        flags: 0,
    })
}

// Conditional nodes.

pub fn conditional(params: &CUDA_CONDITIONAL_NODE_PARAMS) -> Answer<Work> {
    let handle = Conditional::from_handle(params.handle)?;
    let context = context(params.ctx)?;
    Ok(Work::Conditional(ConditionalNode::new(
        handle,
        params.r#type.0,
        params.size,
        context,
    )?))
}

/// With the array of its bodies.
pub fn conditional_record(node: &Node) -> Answer<CUDA_CONDITIONAL_NODE_PARAMS> {
    let work = node.work();
    let Work::Conditional(conditional) = &*work else {
        return Err(INVALID);
    };
    let kept = node.kept().unwrap_or_else(|| {
        let handles: Vec<CUgraph> = conditional.bodies.iter().map(|body| body.handle() as CUgraph).collect();
        let handles = Arc::new(Kept(handles));
        node.keep(Arc::clone(&handles) as _);
        handles
    });
    Ok(CUDA_CONDITIONAL_NODE_PARAMS {
        handle: conditional.conditional.handle(),
        r#type: CUgraphConditionalNodeType::from_raw(conditional.kind),
        size: kept.0.len() as c_uint,
        phGraph_out: kept.0.as_ptr().cast_mut(),
        ctx: conditional.context as CUcontext,
    })
}
