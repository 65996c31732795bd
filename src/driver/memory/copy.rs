//! Copies and sets, at once or in a stream. Pointers are validated before anything moves.
//!
//! Flows in: places, shapes, streams. Flows out: moved bytes.
//!
//! When a call returns is the manual's chapter "API synchronization behavior": copies from or to pageable host memory
//! are done with it when they return, copies between devices and pinned memory are queued. What is small and could run
//! right away is run right away: handing it to another thread would cost more.

use std::sync::Arc;

use crate::driver::array::Array;
use crate::driver::graph::{self, CopyNode, SetNode, Work};
use crate::driver::stream::Command;
use crate::driver::{Error, Result, Stream, pointer};
use crate::memory::{AddressSpace, Kind, MAPPED, READ};

/// Up to so many bytes a copy is done by the caller if the stream is idle.
const SMALL: u64 = 128 << 10;
/// Up to so many bytes from pageable memory are staged rather than waited for.
const STAGED: u64 = 1 << 20;

/// One end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Memory of the process, registered or not.
    Host(u64),
    /// Memory of a device; must be known to the driver.
    Device(u64),
    /// To be found out (`cuMemcpy`, `CU_MEMORYTYPE_UNIFIED`).
    Unified(u64),
}

/// A box of bytes: `cuMemcpy2D*`, `cuMemcpy3D*`. A linear copy has height and depth 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub width: u64,
    pub height: u64,
    pub depth: u64,
}

/// Where the box lies: first byte, bytes from row to row, rows from slice to slice (0: as many as the box has).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub place: Place,
    pub pitch: u64,
    pub rows: u64,
}

impl End {
    /// A box within an array, from (x bytes, y, z) on.
    ///
    /// # Errors
    /// 1 unless it lies in the array.
    pub fn of_array(array: &Array, [x, y, z]: [u64; 3], shape: &Shape) -> Result<End> {
        let extent = array.extent();
        let within = |start: u64, size: u64, end: u64| start.checked_add(size).is_some_and(|last| last <= end);
        if !within(x, shape.width, extent.pitch)
            || !within(y, shape.height, extent.rows)
            || !within(z, shape.depth, extent.slices)
        {
            return Err(Error::InvalidValue);
        }
        let first = (z * extent.rows + y) * extent.pitch + x;
        Ok(End {
            place: Place::Device(extent.address + first),
            pitch: extent.pitch,
            rows: extent.rows,
        })
    }
}

/// What is at an address, as far as copies care.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Nature {
    /// Device or managed memory.
    Device,
    /// Host memory that kernels reach, too.
    Pinned,
    Pageable,
}

/// An end whose range is known to be valid.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Checked {
    address: u64,
    pitch: u64,
    /// From slice to slice.
    slice: u64,
    nature: Nature,
}

/// What kind of memory a place is said to be in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyKind {
    Host,
    Device,
    Unified,
}

impl Place {
    pub fn kind(self) -> CopyKind {
        match self {
            Place::Host(_) => CopyKind::Host,
            Place::Device(_) => CopyKind::Device,
            Place::Unified(_) => CopyKind::Unified,
        }
    }

    pub fn address(self) -> u64 {
        match self {
            Place::Host(address) | Place::Device(address) | Place::Unified(address) => address,
        }
    }

    /// # Errors
    /// 1 unless `bytes` from the address can be copied.
    fn check(self, bytes: u64) -> Result<Nature> {
        let address = self.address();
        let space = AddressSpace::get();
        if address == 0 || address.checked_add(bytes).is_none() {
            return Err(Error::InvalidValue);
        }
        if space.view().contains(address) {
            let allocation = space.find(address).ok_or(Error::InvalidValue)?;
            // What is mapped piece by piece is one range, as far as it may be touched.
            let is_whole = match allocation.flags & MAPPED {
                // An array is not reached by address, and mapped whole.
                _ if allocation.kind == Kind::Array => allocation.contains(address, bytes),
                0 => allocation.contains(address, bytes),
                _ => space.view().check(address, bytes.max(1), READ),
            };
            if !is_whole {
                return Err(Error::InvalidValue);
            }
            return Ok(match allocation.kind {
                Kind::Host => Nature::Pinned,
                _ => Nature::Device,
            });
        }
        if space.host_range_contains(address, bytes, 0) {
            return Ok(Nature::Pinned);
        }
        match self {
            Place::Device(_) => Err(Error::InvalidValue),
            Place::Host(_) | Place::Unified(_) => Ok(Nature::Pageable),
        }
    }
}

impl End {
    /// The device whose memory it is; `None` for the host's.
    pub(in crate::driver) fn device(self) -> Option<u32> {
        AddressSpace::get()
            .find(self.place.address())
            .map(|allocation| allocation.device)
    }

    pub(in crate::driver) fn check(self, shape: Shape) -> Result<Checked> {
        let pitch = if self.pitch == 0 { shape.width } else { self.pitch };
        let rows = if self.rows == 0 { shape.height } else { self.rows };
        if (pitch < shape.width && (shape.height > 1 || shape.depth > 1)) || (rows < shape.height && shape.depth > 1) {
            return Err(Error::InvalidValue);
        }
        let extent = || {
            let slice = pitch.checked_mul(rows)?;
            let slices = slice.checked_mul(shape.depth - 1)?;
            let lines = pitch.checked_mul(shape.height - 1)?;
            Some((slice, slices.checked_add(lines)?.checked_add(shape.width)?))
        };
        let (slice, bytes) = extent().ok_or(Error::InvalidValue)?;
        Ok(Checked {
            address: self.place.address(),
            pitch,
            slice,
            nature: self.place.check(bytes)?,
        })
    }
}

/// Moves the box; ends may overlap row by row.
///
/// # Safety
/// Both ends are valid for the shape, and stay so.
pub(in crate::driver) unsafe fn transfer(dst: Checked, src: Checked, shape: Shape) {
    for z in 0..shape.depth {
        for y in 0..shape.height {
            let to = dst.address + z * dst.slice + y * dst.pitch;
            let from = src.address + z * src.slice + y * src.pitch;
            // SAFETY: passed on to the caller.
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, shape.width as usize) };
        }
    }
}

/// Whether the box could be copied; one without bytes can.
pub(in crate::driver) fn check_box(dst: End, src: End, shape: Shape) -> Result<()> {
    if shape.width == 0 || shape.height == 0 || shape.depth == 0 {
        return Ok(());
    }
    dst.check(shape)?;
    src.check(shape).map(drop)
}

/// Copies the box here and now.
pub(in crate::driver) fn copy_box(dst: End, src: End, shape: Shape) -> Result<()> {
    if shape.width == 0 || shape.height == 0 || shape.depth == 0 {
        return Ok(());
    }
    let (dst, src) = (dst.check(shape)?, src.check(shape)?);
    // SAFETY: both ends were checked just now; memory is freed only after what is queued has been done.
    unsafe { transfer(dst, src, shape) };
    Ok(())
}

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
    let waits = || pointer::synchronizes(dst.address) || pointer::synchronizes(src.address);
    if (dst.nature, src.nature) == (Nature::Device, Nature::Device) && !waits() {
        return queue(dst, src, shape, &stream);
    }
    // SAFETY: both ends were checked, and stay valid while the caller waits.
    stream.run(|| unsafe { transfer(dst, src, shape) })?;
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
        // SAFETY: both ends were checked, and stay valid while the caller waits.
        (Nature::Pageable, _) => stream.run(|| unsafe { transfer(dst, src, shape) }),
        _ => queue(dst, src, shape, stream),
    }
}

/// Leaves the copy to the stream.
fn queue(dst: Checked, src: Checked, shape: Shape, stream: &Arc<Stream>) -> Result<()> {
    // SAFETY: both ends were checked; memory is freed only after what is queued has been done.
    let work = move || unsafe { transfer(dst, src, shape) };
    let work = if shape.width * shape.height * shape.depth <= SMALL {
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

/// A buffer that holds a box and nothing else.
pub(in crate::driver) fn packed(address: u64, shape: Shape) -> Checked {
    Checked {
        address,
        pitch: shape.width,
        slice: shape.width * shape.height,
        nature: Nature::Pinned,
    }
}

/// From pageable memory: at once if the stream is idle, else by way of a buffer, else by waiting.
fn stage(dst: Checked, src: Checked, shape: Shape, stream: &Arc<Stream>) -> Result<()> {
    // SAFETY: both ends were checked, and stay valid while the caller waits.
    let work = || unsafe { transfer(dst, src, shape) };
    let Err(work) = stream.try_now(work) else {
        return Ok(());
    };
    let bytes = shape.width * shape.height * shape.depth;
    if bytes > STAGED {
        return stream.run(work);
    }
    let mut buffer = vec![0_u8; bytes as usize];
    // SAFETY: the buffer has room for the box, packed; the source was checked.
    unsafe { transfer(packed(buffer.as_mut_ptr() as u64, shape), src, shape) };
    stream.enqueue(Command::Work(Box::new(move |_| {
        // SAFETY: as for every queued copy; the buffer is alive.
        unsafe { transfer(dst, packed(buffer.as_ptr() as u64, shape), shape) };
    })));
    Ok(())
}

/// What a set writes, and where.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Fill {
    address: u64,
    pitch: u64,
    element: u32,
    value: u32,
    width: u64,
    height: u64,
    nature: Nature,
}

impl Fill {
    pub fn check(dst: u64, pitch: u64, element: u32, value: u32, width: u64, height: u64) -> Result<Fill> {
        let size = u64::from(element);
        if !dst.is_multiple_of(size) || (height > 1 && !pitch.is_multiple_of(size)) {
            return Err(Error::InvalidValue);
        }
        let shape = Shape {
            width: width.checked_mul(size).ok_or(Error::InvalidValue)?,
            height,
            depth: 1,
        };
        let end = End {
            place: Place::Device(dst),
            pitch,
            rows: 0,
        };
        let checked = end.check(shape)?;
        Ok(Fill {
            address: dst,
            pitch: checked.pitch,
            element,
            value,
            width,
            height,
            nature: checked.nature,
        })
    }

    /// # Safety
    /// The range is valid, and stays so.
    pub unsafe fn run(self) {
        let bytes = self.value.to_le_bytes();
        let uniform = bytes[..self.element as usize].iter().all(|byte| *byte == bytes[0]);
        for y in 0..self.height {
            let start = self.address + y * self.pitch;
            let count = self.width as usize;
            // SAFETY: passed on to the caller; alignment was checked.
            unsafe {
                match self.element {
                    size if uniform => std::ptr::write_bytes(start as *mut u8, bytes[0], count * size as usize),
                    2 => std::slice::from_raw_parts_mut(start as *mut u16, count).fill(self.value as u16),
                    _ => std::slice::from_raw_parts_mut(start as *mut u32, count).fill(self.value),
                }
            }
        }
    }
}

/// `cuMemsetD8/D16/D32` and the 2D ones: `element` is 1, 2 or 4 bytes; a linear set has height 1. Only sets of pinned host
/// memory are done when the call returns.
#[allow(clippy::too_many_arguments)]
pub fn set(dst: u64, pitch: u64, element: u32, value: u32, width: u64, height: u64, per_thread: bool) -> Result<()> {
    let stream = Stream::default(per_thread)?;
    stream.refuse_capture()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    let fill = Fill::check(dst, pitch, element, value, width, height)?;
    if fill.nature == Nature::Pinned || pointer::synchronizes(dst) {
        // SAFETY: the range was checked, and stays valid while the caller waits.
        return stream.run(|| unsafe { fill.run() });
    }
    queue_fill(fill, &stream)
}

/// `cuMemsetD8Async` and the others.
#[allow(clippy::too_many_arguments)]
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
    // SAFETY: the range was checked; memory is freed only after what is queued has been done.
    let work = move || unsafe { fill.run() };
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
