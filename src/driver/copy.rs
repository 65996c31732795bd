//! Copies and sets, at once or in a stream. Pointers are validated before anything moves.

use std::sync::Arc;

use super::{Result, Stream};

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
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub width: u64,
    pub height: u64,
    pub depth: u64,
}

/// Where the box lies: first byte, bytes from row to row, rows from slice to slice.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub place: Place,
    pub pitch: u64,
    pub rows: u64,
}

/// `cuMemcpy*` that return when the data has arrived (device to device: when it is queued).
pub fn linear(_dst: Place, _src: Place, _bytes: u64, _per_thread: bool) -> Result<()> {
    todo!()
}
/// `cuMemcpy*Async`.
pub fn linear_async(_dst: Place, _src: Place, _bytes: u64, _stream: &Arc<Stream>) -> Result<()> {
    todo!()
}
pub fn boxed(_dst: End, _src: End, _shape: Shape, _per_thread: bool) -> Result<()> {
    todo!()
}
pub fn boxed_async(_dst: End, _src: End, _shape: Shape, _stream: &Arc<Stream>) -> Result<()> {
    todo!()
}
/// `cuMemsetD8/D16/D32` and the 2D ones: `element` is 1, 2 or 4 bytes; a linear set has height 1.
pub fn set(
    _dst: u64,
    _pitch: u64,
    _element: u32,
    _value: u32,
    _width: u64,
    _height: u64,
    _per_thread: bool,
) -> Result<()> {
    todo!()
}
pub fn set_async(
    _dst: u64,
    _pitch: u64,
    _element: u32,
    _value: u32,
    _width: u64,
    _height: u64,
    _stream: &Arc<Stream>,
) -> Result<()> {
    todo!()
}
