//! Batches of copies: one command of a stream that makes many, in no particular order.
//!
//! A copy says when its source may be read: during the call, in the stream's order, or at any time.

use std::sync::Arc;

use super::copy::{Access, Checked, Copy, Shape, keep, packed, tell, transfer};
use crate::driver::graph::{CopyBatchNode, CopyNode, Work};
use crate::driver::stream::Command;
use crate::driver::{Error, Result, Stream};
use crate::sanitizer::between::{self, Act};

/// A copy that failed its checks: its place in the batch, and why. `None`: it is the batch that is wrong.
pub type Failed = (Option<usize>, Error);

/// `cuMemcpyBatchAsync`, `cuMemcpy3DBatchAsync` and the single copies with attributes: all copies, or none if one is wrong.
///
/// # Errors
/// 1 for memory that is not there; 900 in a stream that records for sources that have to be read during the call.
pub fn copy(copies: &[Copy], stream: &Arc<Stream>) -> std::result::Result<(), Failed> {
    let general = |error| (None, error);
    stream.shared.check().map_err(general)?;
    let capture = stream.admit().map_err(general)?;
    let mut checked = Vec::with_capacity(copies.len());
    for (index, copy) in copies.iter().enumerate() {
        let fail = |error| (Some(index), error);
        let is_empty = copy.shape.width == 0 || copy.shape.height == 0 || copy.shape.depth == 0;
        if capture.is_some() && copy.access == Access::DuringCall {
            return Err(fail(Error::StreamCaptureUnsupported));
        }
        if !is_empty {
            let (dst, src) = (copy.dst.check(copy.shape), copy.src.check(copy.shape));
            checked.push((dst.map_err(fail)?, src.map_err(fail)?, copy.shape, copy.access));
        }
    }
    if let Some(capture) = capture {
        let context = stream.context().map_err(general)?.handle();
        let is_linear = |copy: &Copy| copy.shape.height == 1 && copy.shape.depth == 1;
        // Nodes that make batches know of linear copies only (CUDA_MEMCPY_BATCH_NODE_PARAMS).
        let works = match copies.iter().all(is_linear) {
            true => vec![Work::CopyBatch(CopyBatchNode {
                copies: copies.into(),
                context,
            })],
            false => {
                let node = |copy: &Copy| CopyNode {
                    dst: copy.dst,
                    src: copy.src,
                    shape: copy.shape,
                    context,
                };
                copies.iter().map(|copy| Work::Copy(node(copy))).collect()
            }
        };
        for work in works {
            capture.add(stream, work).map_err(general)?;
        }
        return Ok(());
    }
    submit(checked, stream).map_err(general)
}

/// # Errors
/// 2 if there is no room for what is read now and written later.
fn submit(copies: Vec<(Checked, Checked, Shape, Access)>, stream: &Arc<Stream>) -> Result<()> {
    let order = between::begin(stream, Act::Touches);
    let late = order.clone();
    let run = move |copies: &[(Checked, Checked, Shape, Access)]| {
        for (dst, src, shape, _) in copies {
            // SAFETY: both ends were checked; memory is freed only after what is queued has been done, and pageable memory
            // stays valid until then (manual), or until the call ends.
            unsafe { transfer(*dst, *src, *shape) };
            tell(order.as_ref(), *dst, *src, *shape);
        }
    };
    if copies.iter().all(|(.., access)| *access != Access::DuringCall) {
        stream.enqueue(Command::Work(Box::new(move |_| run(&copies))));
        return Ok(());
    }
    let Err(_) = stream.try_now(|| run(&copies)) else {
        return Ok(());
    };
    // What is gone when the call returns is kept until its turn.
    let kept = copies
        .iter()
        .map(|(_, src, shape, access)| {
            // SAFETY: the source was checked, and is the caller's until this call ends.
            (*access == Access::DuringCall)
                .then(|| unsafe { keep(*src, *shape) })
                .transpose()
        })
        .collect::<Result<Vec<Option<Vec<u8>>>>>()?;
    stream.enqueue(Command::Work(Box::new(move |_| {
        for ((dst, src, shape, _), buffer) in copies.iter().zip(&kept) {
            let from = buffer
                .as_ref()
                .map_or(*src, |buffer| packed(buffer.as_ptr() as u64, *shape));
            // SAFETY: both ends were checked, a buffer has room for the box and lives until the command is over, and
            // memory is freed only after what is queued has been done.
            unsafe { transfer(*dst, from, *shape) };
            tell(late.as_ref(), *dst, *src, *shape);
        }
    })));
    Ok(())
}
