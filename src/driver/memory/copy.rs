//! What is copied and set, and from where to where: checked, and moved. `copies.rs` has the calls.

use std::sync::Arc;

use crate::driver::array::Array;
use crate::driver::tally::{self, Way};
use crate::driver::{Error, Result};
use crate::memory::{AddressSpace, Kind, MAPPED, READ, shadow};
use crate::sanitizer::between::{self, Class, Operation};

use super::unwritten;

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

/// When a source is read (`CUmemcpySrcAccessOrder`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// At the copy's place in the stream.
    Stream,
    /// Before the call returns.
    DuringCall,
    /// At any time: as in the stream.
    Any,
}

/// One copy.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    pub dst: End,
    pub src: End,
    pub shape: Shape,
    pub access: Access,
}

/// What is at an address, as far as copies care.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Nature {
    /// Device or managed memory.
    Device,
    /// Host memory that kernels reach, too.
    Pinned,
    Pageable,
}

/// An end whose range is known to be valid.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Checked {
    pub(super) address: u64,
    pub(super) pitch: u64,
    /// From slice to slice.
    pub(super) slice: u64,
    pub(super) nature: Nature,
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

impl Checked {
    /// The device whose memory it is; `None` for the host's.
    pub(super) fn device(self) -> Option<u32> {
        (self.nature == Nature::Device)
            .then(|| AddressSpace::get().find(self.address))?
            .map(|allocation| allocation.device)
    }
}

/// Moves the box; ends may overlap row by row.
///
/// # Safety
/// Both ends are valid for the shape, and stay so.
pub(in crate::driver) unsafe fn transfer(dst: Checked, src: Checked, shape: Shape) {
    tally::copied(way(dst.nature, src.nature), shape.width * shape.height * shape.depth);
    if let Some(memory) = shadow::get().filter(|_| dst.nature != Nature::Device) {
        unwritten::leaves(memory, src, shape);
    }
    // SAFETY: our caller's promise.
    unsafe { pass(dst, src, shape) }
}

fn way(dst: Nature, src: Nature) -> Way {
    match (dst == Nature::Device, src == Nature::Device) {
        (true, true) => Way::OnDevice,
        (true, false) => Way::ToDevice,
        (false, true) => Way::FromDevice,
        (false, false) => Way::OnHost,
    }
}

/// Moves a box that nobody has asked for as such.
///
/// # Safety
/// As of [`transfer`].
unsafe fn pass(dst: Checked, src: Checked, shape: Shape) {
    for z in 0..shape.depth {
        for y in 0..shape.height {
            let to = dst.address + z * dst.slice + y * dst.pitch;
            let from = src.address + z * src.slice + y * src.pitch;
            // SAFETY: our caller promises that both ends are valid for the whole shape, of which this is one row.
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, shape.width as usize) };
            if let Some(memory) = shadow::get() {
                memory.copied(from, to, shape.width);
            }
        }
    }
}

/// The bytes of a box, [`packed`], for a copy whose source does not stay as it is.
///
/// # Errors
/// 2 if there is no room: the size is the program's.
///
/// # Safety
/// The source is valid for the shape.
pub(in crate::driver) unsafe fn keep(src: Checked, shape: Shape) -> Result<Vec<u8>> {
    let bytes = (shape.width * shape.height * shape.depth) as usize;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes).map_err(|_| Error::OutOfMemory)?;
    // SAFETY: the buffer has room for the box, packed, and nobody else knows of it; our caller promises the source. All
    // rows together are `bytes` bytes, each of which has been written then.
    unsafe {
        pass(packed(buffer.as_mut_ptr() as u64, shape), src, shape);
        buffer.set_len(bytes);
    }
    Ok(buffer)
}

/// Whether a copy leaves something in memory of the program that is not pinned.
pub(in crate::driver) fn fills_pageable(dst: End, shape: Shape) -> bool {
    dst.check(shape).is_ok_and(|end| end.nature == Nature::Pageable)
}

/// Whether the box could be copied; one without bytes can.
pub(in crate::driver) fn check_box(dst: End, src: End, shape: Shape) -> Result<()> {
    if shape.width == 0 || shape.height == 0 || shape.depth == 0 {
        return Ok(());
    }
    dst.check(shape)?;
    src.check(shape).map(drop)
}

/// Tells who looks for races what a copy has read and written. Pageable memory is the host's own: what is read of it is read when
/// the call is made, and what is written there has been waited for when the call returns.
pub(in crate::driver) fn tell(order: Option<&Arc<Operation>>, dst: Checked, src: Checked, shape: Shape) {
    let Some(order) = order else { return };
    for (end, class) in [(dst, Class::Write), (src, Class::Read)] {
        if end.nature == Nature::Pageable {
            continue;
        }
        for z in 0..shape.depth {
            let start = end.address + z * end.slice;
            between::touches_rows(order, class, start, end.pitch, shape.width, shape.height);
        }
    }
}

/// Copies the box here and now.
pub(in crate::driver) fn copy_box(dst: End, src: End, shape: Shape, order: Option<&Arc<Operation>>) -> Result<()> {
    if shape.width == 0 || shape.height == 0 || shape.depth == 0 {
        return Ok(());
    }
    let (dst, src) = (dst.check(shape)?, src.check(shape)?);
    // SAFETY: both ends were checked just now; memory is freed only after what is queued has been done.
    unsafe { transfer(dst, src, shape) };
    tell(order, dst, src, shape);
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

/// What a set writes, and where.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Fill {
    address: u64,
    pitch: u64,
    pub(super) element: u32,
    value: u32,
    pub(super) width: u64,
    pub(super) height: u64,
    pub(super) nature: Nature,
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

    /// Tells who looks for races what has been written.
    pub fn tell(self, order: Option<&Arc<Operation>>) {
        if let Some(order) = order {
            let width = self.width * u64::from(self.element);
            between::touches_rows(order, Class::Write, self.address, self.pitch, width, self.height);
        }
    }

    /// # Safety
    /// The range is valid, and stays so.
    pub unsafe fn run(self) {
        let bytes = self.value.to_le_bytes();
        tally::copied(Way::Set, self.width * self.height * u64::from(self.element));
        let uniform = bytes[..self.element as usize].iter().all(|byte| *byte == bytes[0]);
        for y in 0..self.height {
            let start = self.address + y * self.pitch;
            let count = self.width as usize;
            // SAFETY: our caller promises that the whole range is valid, and this is one row of it; `check` has
            // refused addresses and pitches that elements are not aligned to.
            unsafe {
                match self.element {
                    size if uniform => std::ptr::write_bytes(start as *mut u8, bytes[0], count * size as usize),
                    2 => std::slice::from_raw_parts_mut(start as *mut u16, count).fill(self.value as u16),
                    _ => std::slice::from_raw_parts_mut(start as *mut u32, count).fill(self.value),
                }
            }
            shadow::defined(start, self.width * u64::from(self.element));
        }
    }
}
