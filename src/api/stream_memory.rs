//! Stream memory operations: writing a value in a stream, waiting for one.
//!
//! The operations are in `driver/streams/memory_operation.rs`.
//!
//! The second versions of these calls have the same arguments; they only dropped a switch that had to allow them.

use super::call::{Answer, DefaultStream, Out, require};
use super::types::*;
use crate::driver::{Context, MemoryOperation};
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
    let operation = MemoryOperation::Write {
        address: addr,
        bytes: 4,
        value: value.into(),
    };
    Ok(default.resolve(stream)?.memory_operations(&[operation])?)
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
    let operation = MemoryOperation::Write {
        address: addr,
        bytes: 8,
        value,
    };
    Ok(default.resolve(stream)?.memory_operations(&[operation])?)
}

pub fn stream_wait_value_32(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: cuuint32_t,
    flags: c_uint,
) -> Answer {
    let operation = MemoryOperation::Wait {
        address: addr,
        bytes: 4,
        value: value.into(),
        flags,
    };
    Ok(default.resolve(stream)?.memory_operations(&[operation])?)
}

pub fn stream_wait_value_64(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: cuuint64_t,
    flags: c_uint,
) -> Answer {
    let operation = MemoryOperation::Wait {
        address: addr,
        bytes: 8,
        value,
        flags,
    };
    Ok(default.resolve(stream)?.memory_operations(&[operation])?)
}

/// One operation of a batch.
fn operation(of: &CUstreamBatchMemOpParams) -> Answer<MemoryOperation> {
    use CUstreamBatchMemOpType as Type;
    // SAFETY: all members begin with the type, and consist of numbers.
    let (kind, wait, write) = unsafe { (of.operation, of.waitValue, of.writeValue) };
    // SAFETY: both are unions of numbers, of which every bit pattern is one.
    let (wait_value, write_value) = unsafe { (wait.anonymous.value64, write.anonymous.value64) };
    let bytes = match kind {
        Type::CU_STREAM_MEM_OP_WAIT_VALUE_32 | Type::CU_STREAM_MEM_OP_WRITE_VALUE_32 => 4,
        _ => 8,
    };
    let low = if bytes == 4 { 0xffff_ffff } else { u64::MAX };
    match kind {
        Type::CU_STREAM_MEM_OP_WAIT_VALUE_32 | Type::CU_STREAM_MEM_OP_WAIT_VALUE_64 => Ok(MemoryOperation::Wait {
            address: wait.address,
            bytes,
            value: wait_value & low,
            flags: wait.flags,
        }),
        Type::CU_STREAM_MEM_OP_WRITE_VALUE_32 | Type::CU_STREAM_MEM_OP_WRITE_VALUE_64 => {
            check_write(write.flags)?;
            Ok(MemoryOperation::Write {
                address: write.address,
                bytes,
                value: write_value & low,
            })
        }
        Type::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES | Type::CU_STREAM_MEM_OP_BARRIER => Ok(MemoryOperation::Barrier),
        _ => Err(CUresult::CUDA_ERROR_NOT_SUPPORTED),
    }
}

/// The operations of a batch, of a stream or of a graph's node.
pub fn batch(count: c_uint, operations: Out<CUstreamBatchMemOpParams>, flags: c_uint) -> Answer<Vec<MemoryOperation>> {
    require(flags == 0 && count <= LARGEST_BATCH && (count == 0 || !operations.is_null()))?;
    (0..count as usize)
        .map(|index| operation(&operations.get_at(index)?))
        .collect()
}

/// The records of operations, as a graph's node gives them back.
pub fn records(operations: &[MemoryOperation]) -> Vec<CUstreamBatchMemOpParams> {
    use CUstreamBatchMemOpType as Type;
    let record = |operation: &MemoryOperation| {
        let mut record = CUstreamBatchMemOpParams { pad: [0; 6] };
        match *operation {
            MemoryOperation::Write { address, bytes, value } => {
                record.writeValue = CUstreamMemOpWriteValueParams_st {
                    operation: match bytes {
                        4 => Type::CU_STREAM_MEM_OP_WRITE_VALUE_32,
                        _ => Type::CU_STREAM_MEM_OP_WRITE_VALUE_64,
                    },
                    address,
                    anonymous: CUstreamMemOpWriteValueParams_st_anonymous { value64: value },
                    flags: 0,
                    alias: 0,
                };
            }
            MemoryOperation::Wait {
                address,
                bytes,
                value,
                flags,
            } => {
                record.waitValue = CUstreamMemOpWaitValueParams_st {
                    operation: match bytes {
                        4 => Type::CU_STREAM_MEM_OP_WAIT_VALUE_32,
                        _ => Type::CU_STREAM_MEM_OP_WAIT_VALUE_64,
                    },
                    address,
                    anonymous: CUstreamMemOpWaitValueParams_st_anonymous { value64: value },
                    flags,
                    alias: 0,
                };
            }
            MemoryOperation::Barrier => record.operation = Type::CU_STREAM_MEM_OP_BARRIER,
        }
        record
    };
    operations.iter().map(record).collect()
}

pub fn stream_batch_mem_op(
    _: &Arc<Context>,
    default: DefaultStream,
    stream: CUstream,
    count: c_uint,
    operations: Out<CUstreamBatchMemOpParams>,
    flags: c_uint,
) -> Answer {
    let operations = batch(count, operations, flags)?;
    Ok(default.resolve(stream)?.memory_operations(&operations)?)
}
