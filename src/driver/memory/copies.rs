//! Copies and sets, at once or in a stream. Pointers are validated before anything moves.
//!
//! When a call returns is the manual's chapter "API synchronization behavior": copies from or to pageable host memory
//! are done with it when they return, copies between devices and pinned memory are queued. Calls without `Async` wait for
//! managed memory. What is small and could run right away is run right away: handing it to another thread would cost more.

use std::sync::Arc;

use super::copy::{Checked, End, Fill, Nature, Place, Shape, keep, packed, tell, transfer};
use crate::driver::graph::{self, CopyNode, SetNode, Work};
use crate::driver::stream::Command;
use crate::driver::{Device, Result, Stream, context, pointer};
use crate::memory::{AddressSpace, Allocation, Kind};
use crate::sanitizer::between::{self, Act};

/// Up to so many bytes a copy is done by the caller if the stream is idle.
const SMALL: u64 = 128 << 10;
/// Up to so many bytes from pageable memory are staged rather than waited for.
const STAGED: u64 = 1 << 20;

fn line(place: Place) -> End {
    End {
        place,
        pitch: 0,
        rows: 0,
    }
}

fn row(bytes: u64) -> Shape {
    Shape {
        width: bytes,
        height: 1,
        depth: 1,
    }
}

/// Whether calls that are not asynchronous wait for what they do to the memory at an address: it is managed ("API synchronization
/// behavior"; of copies in the manual up to CUDA 11.0), or the program has said so.
fn is_waited_for(address: u64) -> bool {
    let is_managed = |found: Allocation| found.kind == Kind::Managed;
    pointer::synchronizes(address) || AddressSpace::get().find(address).is_some_and(is_managed)
}

/// `cuMemcpy*` that return when the data has arrived (device to device: when it is queued).
pub fn linear(dst: Place, src: Place, bytes: u64, per_thread: bool) -> Result<()> {
    boxed(line(dst), line(src), row(bytes), per_thread)
}

/// `cuMemcpy*Async`.
pub fn linear_async(dst: Place, src: Place, bytes: u64, stream: &Arc<Stream>) -> Result<()> {
    boxed_async(line(dst), line(src), row(bytes), stream)
}

/// `cuMemcpy2D*`, `cuMemcpy3D*` that return when the data has arrived.
pub fn boxed(dst: End, src: End, shape: Shape, per_thread: bool) -> Result<()> {
    let stream = Stream::default(per_thread)?;
    stream.refuse_capture()?;
    graph::check_unsafe()?;
    if shape.width == 0 || shape.height == 0 || shape.depth == 0 {
        return Ok(());
    }
    let (dst, src) = (dst.check(shape)?, src.check(shape)?);
    let waits = || is_waited_for(dst.address) || is_waited_for(src.address);
    if (dst.nature, src.nature) == (Nature::Device, Nature::Device) && !waits() {
        return queue(dst, src, shape, &stream);
    }
    wait(dst, src, shape, &stream)?;
    between::done(&stream);
    stream.shared.printer.flush();
    stream.shared.check()
}

/// `cuMemcpy2DAsync`, `cuMemcpy3DAsync`.
pub fn boxed_async(dst: End, src: End, shape: Shape, stream: &Arc<Stream>) -> Result<()> {
    stream.shared.check()?;
    let capture = stream.admit()?;
    if shape.width == 0 || shape.height == 0 || shape.depth == 0 {
        return Ok(());
    }
    if let Some(capture) = capture {
        let context = stream.context()?.handle();
        let node = CopyNode {
            dst,
            src,
            shape,
            context,
        };
        return capture.add(stream, Work::Copy(node));
    }
    let (dst, src) = (dst.check(shape)?, src.check(shape)?);
    match (dst.nature, src.nature) {
        // The caller may change the source as soon as the call returns.
        (Nature::Device | Nature::Pinned, Nature::Pageable) => stage(dst, src, shape, stream),
        (Nature::Pageable, _) => wait(dst, src, shape, stream).inspect(|()| between::done(stream)),
        _ => queue(dst, src, shape, stream),
    }
}

/// Returns when the copy is made.
fn wait(dst: Checked, src: Checked, shape: Shape, stream: &Arc<Stream>) -> Result<()> {
    let order = between::begin(stream, Act::Touches);
    stream.run(|| {
        // SAFETY: both ends were checked, and stay valid while the caller waits.
        unsafe { transfer(dst, src, shape) };
        tell(order.as_ref(), dst, src, shape);
    })
}

/// What a copy in the legacy default stream between the memories of two devices is in order with: it starts when all is
/// done that was asked of either device before, and what is asked of either later starts when it has ended (CUDA programming guide,
/// "Peer-to-Peer Memory Copy"). In other streams, events say what comes first.
fn others(dst: Checked, src: Checked, stream: &Arc<Stream>) -> Vec<Arc<Stream>> {
    if !stream.is_legacy() || Device::all().len() < 2 {
        return Vec::new();
    }
    match (dst.device(), src.device()) {
        (Some(to), Some(from)) if to != from => {
            let mut streams = context::default_streams([to, from]);
            streams.retain(|other| !Arc::ptr_eq(other, stream));
            streams
        }
        _ => Vec::new(),
    }
}

/// Leaves the copy to the stream.
fn queue(dst: Checked, src: Checked, shape: Shape, stream: &Arc<Stream>) -> Result<()> {
    let others = others(dst, src, stream);
    for other in &others {
        stream.wait_point(other.record(false).point());
        between::wait(stream, between::mark(other).as_ref());
    }
    put(dst, src, shape, stream);
    for other in &others {
        other.wait_point(stream.end());
        between::wait(other, between::mark(stream).as_ref());
    }
    Ok(())
}

fn put(dst: Checked, src: Checked, shape: Shape, stream: &Arc<Stream>) {
    let order = between::begin(stream, Act::Touches);
    let work = move || {
        // SAFETY: both ends were checked; memory is freed only after what is queued has been done.
        unsafe { transfer(dst, src, shape) };
        tell(order.as_ref(), dst, src, shape);
    };
    let work = if shape.width * shape.height * shape.depth <= SMALL {
        match stream.try_now(work) {
            Ok(()) => return,
            Err(work) => work,
        }
    } else {
        work
    };
    stream.enqueue(Command::Work(Box::new(move |_| work())));
}

/// From pageable memory: at once if the stream is idle, else by way of a buffer, else by waiting.
fn stage(dst: Checked, src: Checked, shape: Shape, stream: &Arc<Stream>) -> Result<()> {
    let order = between::begin(stream, Act::Touches);
    let work = || {
        // SAFETY: both ends were checked, and stay valid while the caller waits.
        unsafe { transfer(dst, src, shape) };
        tell(order.as_ref(), dst, src, shape);
    };
    let Err(work) = stream.try_now(work) else {
        return Ok(());
    };
    let bytes = shape.width * shape.height * shape.depth;
    if bytes > STAGED {
        return stream.run(work);
    }
    // SAFETY: the source was checked, and is the caller's until this call ends.
    let Ok(buffer) = (unsafe { keep(src, shape) }) else {
        return stream.run(work);
    };
    let order = order.clone();
    stream.enqueue(Command::Work(Box::new(move |_| {
        // SAFETY: the destination was checked and is freed only after what is queued has been done; the buffer is the
        // command's own.
        unsafe { transfer(dst, packed(buffer.as_ptr() as u64, shape), shape) };
        tell(order.as_ref(), dst, src, shape);
    })));
    Ok(())
}

/// `cuMemsetD8/D16/D32` and the 2D ones: `element` is 1, 2 or 4 bytes; a linear set has height 1. Only sets of pinned host
/// memory and of managed memory are done when the call returns.
#[allow(clippy::too_many_arguments, reason = "a copy has as many sides")]
pub fn set(dst: u64, pitch: u64, element: u32, value: u32, width: u64, height: u64, per_thread: bool) -> Result<()> {
    let stream = Stream::default(per_thread)?;
    stream.refuse_capture()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    let fill = Fill::check(dst, pitch, element, value, width, height)?;
    if fill.nature == Nature::Pinned || is_waited_for(dst) {
        let order = between::begin(&stream, Act::Touches);
        let work = || {
            // SAFETY: the range was checked, and stays valid while the caller waits.
            unsafe { fill.run() };
            fill.tell(order.as_ref());
        };
        return stream.run(work).inspect(|()| between::done(&stream));
    }
    queue_fill(fill, &stream)
}

/// `cuMemsetD8Async` and the others.
#[allow(clippy::too_many_arguments, reason = "a copy has as many sides")]
pub fn set_async(
    dst: u64,
    pitch: u64,
    element: u32,
    value: u32,
    width: u64,
    height: u64,
    stream: &Arc<Stream>,
) -> Result<()> {
    stream.shared.check()?;
    let capture = stream.admit()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    if let Some(capture) = capture {
        let context = stream.context()?.handle();
        let node = SetNode {
            dst,
            pitch,
            element,
            value,
            width,
            height,
            context,
        };
        return capture.add(stream, Work::Set(node));
    }
    queue_fill(Fill::check(dst, pitch, element, value, width, height)?, stream)
}

fn queue_fill(fill: Fill, stream: &Arc<Stream>) -> Result<()> {
    let order = between::begin(stream, Act::Touches);
    let work = move || {
        // SAFETY: the range was checked; memory is freed only after what is queued has been done.
        unsafe { fill.run() };
        fill.tell(order.as_ref());
    };
    let work = if fill.width * fill.height * u64::from(fill.element) <= SMALL {
        match stream.try_now(work) {
            Ok(()) => return Ok(()),
            Err(work) => work,
        }
    } else {
        work
    };
    stream.enqueue(Command::Work(Box::new(move |_| work())));
    Ok(())
}
