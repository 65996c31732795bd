//! External resources: memory and semaphores that others have made, by file descriptor.
//!
//! The work is in `driver/sharing/external.rs` and `semaphore.rs`. Kinds of handles that only other systems have are
//! refused.

use super::array;
use super::call::{Answer, DefaultStream, In, Out, require};
use super::types::*;
use crate::driver::Context;
use crate::driver::external::ExternalMemory;
use crate::driver::semaphore::{Semaphore, SemaphoreStep};
use std::sync::Arc;

/// A kind of handle that exists, but not here.
fn absent(what: &str, name: Option<&str>) -> CUresult {
    match name {
        Some(name) => {
            tracing::warn!("{what}: {name}: nothing on this system stands behind such a handle");
            CUresult::CUDA_ERROR_NOT_SUPPORTED
        }
        None => CUresult::CUDA_ERROR_INVALID_VALUE,
    }
}

pub fn import_external_memory(
    _: &Arc<Context>,
    memory: Out<CUexternalMemory>,
    description: In<CUDA_EXTERNAL_MEMORY_HANDLE_DESC>,
) -> Answer {
    use CUexternalMemoryHandleType as Type;
    memory.required()?;
    let description = description.get()?;
    require(description.flags & !CUDA_EXTERNAL_MEMORY_DEDICATED == 0 && description.reserved == [0; 16])?;
    let dma_buf = match description.r#type {
        Type::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD => false,
        Type::CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD => true,
        other => return Err(absent("cuImportExternalMemory", other.name())),
    };
    // SAFETY: the member that goes with the type; all bit patterns are numbers.
    let descriptor = unsafe { description.handle.fd };
    let found = ExternalMemory::import(descriptor, description.size, dma_buf)?;
    memory.set(found.handle() as CUexternalMemory)
}

fn find(memory: CUexternalMemory) -> Answer<Arc<ExternalMemory>> {
    Ok(ExternalMemory::from_handle(memory as usize)?)
}

pub fn destroy_external_memory(_: &Arc<Context>, memory: CUexternalMemory) -> Answer {
    Ok(find(memory)?.destroy()?)
}

pub fn external_memory_get_mapped_buffer(
    _: &Arc<Context>,
    dptr: Out<CUdeviceptr>,
    memory: CUexternalMemory,
    description: In<CUDA_EXTERNAL_MEMORY_BUFFER_DESC>,
) -> Answer {
    dptr.required()?;
    let memory = find(memory)?;
    let description = description.get()?;
    require(description.flags == 0 && description.reserved == [0; 16])?;
    dptr.set(memory.buffer(description.offset, description.size)?)
}

pub fn external_memory_get_mapped_mipmapped_array(
    _: &Arc<Context>,
    mipmap: Out<CUmipmappedArray>,
    memory: CUexternalMemory,
    description: In<CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC>,
) -> Answer {
    mipmap.required()?;
    let memory = find(memory)?;
    let description = description.get()?;
    require(description.reserved == [0; 16] && description.numLevels > 0)?;
    let descriptor = array::described(&description.arrayDesc);
    let found = memory.mipmap(description.offset, descriptor, description.numLevels)?;
    mipmap.set(found.handle() as CUmipmappedArray)
}

pub fn import_external_semaphore(
    _: &Arc<Context>,
    semaphore: Out<CUexternalSemaphore>,
    description: In<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC>,
) -> Answer {
    use CUexternalSemaphoreHandleType as Type;
    semaphore.required()?;
    let description = description.get()?;
    require(description.flags == 0 && description.reserved == [0; 16])?;
    let timeline = match description.r#type {
        Type::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD => false,
        Type::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD => true,
        other => return Err(absent("cuImportExternalSemaphore", other.name())),
    };
    // SAFETY: the member that goes with the type; all bit patterns are numbers.
    let descriptor = unsafe { description.handle.fd };
    semaphore.set(Semaphore::import(descriptor, timeline)?.handle() as CUexternalSemaphore)
}

pub fn destroy_external_semaphore(_: &Arc<Context>, semaphore: CUexternalSemaphore) -> Answer {
    Ok(Semaphore::from_handle(semaphore as usize)?.destroy()?)
}

/// Semaphores and the value for each, of a call or a graph's node; the skip flags are for NvSciSync alone.
pub fn steps<P: Copy>(
    semaphores: In<CUexternalSemaphore>,
    params: In<P>,
    count: c_uint,
    of: impl Fn(&P) -> (u64, u32),
) -> Answer<Vec<SemaphoreStep>> {
    require(count > 0 && !semaphores.is_null() && !params.is_null())?;
    (0..count as usize)
        .map(|index| {
            let semaphore = Semaphore::from_handle(semaphores.at(index)? as usize)?;
            let (value, flags) = of(&params.at(index)?);
            require(flags == 0)?;
            Ok(SemaphoreStep { semaphore, value })
        })
        .collect()
}

pub fn signal_of(params: &CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS) -> (u64, u32) {
    (params.params.fence.value, params.flags)
}

pub fn wait_of(params: &CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS) -> (u64, u32) {
    (params.params.fence.value, params.flags)
}

pub fn signal_external_semaphores_async(
    _: &Arc<Context>,
    default: DefaultStream,
    semaphores: In<CUexternalSemaphore>,
    params: In<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS>,
    count: c_uint,
    stream: CUstream,
) -> Answer {
    let steps = steps(semaphores, params, count, signal_of)?;
    Ok(default.resolve(stream)?.semaphores(steps, true)?)
}

pub fn wait_external_semaphores_async(
    _: &Arc<Context>,
    default: DefaultStream,
    semaphores: In<CUexternalSemaphore>,
    params: In<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS>,
    count: c_uint,
    stream: CUstream,
) -> Answer {
    let steps = steps(semaphores, params, count, wait_of)?;
    Ok(default.resolve(stream)?.semaphores(steps, false)?)
}
