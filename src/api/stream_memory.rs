//! Stream memory operations: writing a value in a stream, waiting for one.
//!
//! Flows in: addresses, values. Flows out: operations in streams. It must never wait itself.
//!
//! The second versions of these calls have the same arguments; they only dropped a switch that had to allow them.

use super::call::{Answer, DefaultStream, Out, require};
use super::types::*;
use crate::driver::{Context, Stream};
use std::sync::Arc;

/// The largest batch that the manual allows.
const LARGEST_BATCH: c_uint = 256;

fn check_write(flags: c_uint) -> Answer {
    require(CUstreamWriteValue_flags::from_raw(flags).name().is_some())
}

pub fn stream_write_value_32(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: cuuint32_t,
    flags: c_uint,
) -> Answer {
    check_write(flags)?;
    Ok(default.resolve(stream)?.write_value(addr, 4, value.into())?)
}

pub fn stream_write_value_64(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: cuuint64_t,
    flags: c_uint,
) -> Answer {
    check_write(flags)?;
    Ok(default.resolve(stream)?.write_value(addr, 8, value)?)
}

pub fn stream_wait_value_32(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: cuuint32_t,
    flags: c_uint,
) -> Answer {
    Ok(default.resolve(stream)?.wait_value(addr, 4, value.into(), flags)?)
}

pub fn stream_wait_value_64(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: cuuint64_t,
    flags: c_uint,
) -> Answer {
    Ok(default.resolve(stream)?.wait_value(addr, 8, value, flags)?)
}

/// Runs or only checks one operation of a batch.
fn operation(stream: &Arc<Stream>, of: &CUstreamBatchMemOpParams) -> Answer {
    use CUstreamBatchMemOpType as Type;
    // SAFETY: all members begin with the type, and consist of numbers.
    let (kind, wait, write) = unsafe { (of.operation, of.waitValue, of.writeValue) };
    // SAFETY: as above.
    let (wait_value, write_value) = unsafe { (wait.anonymous.value64, write.anonymous.value64) };
    match kind {
        Type::CU_STREAM_MEM_OP_WAIT_VALUE_32 => {
            stream.wait_value(wait.address, 4, wait_value & 0xffff_ffff, wait.flags)?;
        }
        Type::CU_STREAM_MEM_OP_WAIT_VALUE_64 => stream.wait_value(wait.address, 8, wait_value, wait.flags)?,
        Type::CU_STREAM_MEM_OP_WRITE_VALUE_32 => {
            check_write(write.flags)?;
            stream.write_value(write.address, 4, write_value & 0xffff_ffff)?;
        }
        Type::CU_STREAM_MEM_OP_WRITE_VALUE_64 => {
            check_write(write.flags)?;
            stream.write_value(write.address, 8, write_value)?;
        }
        // Writes of operations in a stream are seen by whatever follows.
        Type::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES | Type::CU_STREAM_MEM_OP_BARRIER => {}
        _ => return Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
    }
    Ok(())
}

pub fn stream_batch_mem_op(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    count: c_uint,
    operations: Out<CUstreamBatchMemOpParams>,
    flags: c_uint,
) -> Answer {
    require(flags == 0 && count <= LARGEST_BATCH && (count == 0 || !operations.is_null()))?;
    let stream = default.resolve(stream)?;
    for index in 0..count as usize {
        operation(&stream, &operations.get_at(index)?)?;
    }
    Ok(())
}
