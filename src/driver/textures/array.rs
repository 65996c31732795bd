//! Arrays and mipmapped arrays: `cuArray*`, `cuMipmappedArray*`.
//!
//! An array is memory and a description of it; textures read it as `memory/texture/` says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::driver::context::{self, Shared};
use crate::driver::external::Window;
use crate::driver::format::{self, Layout};
use crate::driver::handle::{self, Registry};
use crate::driver::memory::place::place;
use crate::driver::process::check;
use crate::driver::{Context, Device, Error, Handle, Result};
use crate::memory::texture::{Backing, Format, Image, Level};
use crate::memory::{AddressSpace, Kind, Request};

/// `CUDA_ARRAY3D_…` flags.
pub const LAYERED: u32 = 0x01;
pub const SURFACE: u32 = 0x02;
pub const CUBEMAP: u32 = 0x04;
pub const GATHER: u32 = 0x08;
const DEPTH: u32 = 0x10;
const SPARSE: u32 = 0x40;
const DEFERRED: u32 = 0x80;
const KNOWN: u32 = 0x1ff;
/// Levels of a mipmapped array start at multiples of this.
const LEVEL_ALIGN: u64 = 512;

/// `CUDA_ARRAY3D_DESCRIPTOR`: sizes in elements, 0 for directions that the array does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub width: u64,
    pub height: u64,
    pub depth: u64,
    pub format: u32,
    pub channels: u32,
    pub flags: u32,
}

/// An array, or a level or plane of one.
pub struct Array {
    handle: Handle,
    owner: u64,
    descriptor: Descriptor,
    /// `None`: a format in planes.
    format: Option<Format>,
    extent: Extent,
    alive: Arc<AtomicBool>,
    /// Its own memory; `None` for levels and planes.
    memory: Option<u64>,
    planes: Vec<Arc<Array>>,
}

pub struct Mipmapped {
    handle: Handle,
    owner: u64,
    descriptor: Descriptor,
    levels: Vec<Arc<Array>>,
    alive: Arc<AtomicBool>,
    memory: u64,
    /// Somebody else's memory, as long as the array lives.
    window: Mutex<Option<Window>>,
}

/// Where an array's bytes lie: rows of `pitch` bytes, `rows` to a slice.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub address: u64,
    pub pitch: u64,
    pub rows: u64,
    pub slices: u64,
}

impl Extent {
    fn bytes(&self) -> Option<u64> {
        self.pitch.checked_mul(self.rows)?.checked_mul(self.slices)
    }
}

static ARRAYS: Registry<Array> = Registry::new();
static MIPMAPS: Registry<Mipmapped> = Registry::new();

/// A context's arrays end; their memory is the address space's to free.
pub(in crate::driver) fn forget_all_of(shared: &Shared) {
    for array in ARRAYS.take(|array| array.owner == shared.id) {
        array.alive.store(false, Ordering::Release);
    }
    for mipmap in MIPMAPS.take(|mipmap| mipmap.owner == shared.id) {
        mipmap.alive.store(false, Ordering::Release);
        mipmap.window.lock().take();
    }
}

impl Descriptor {
    fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Whether the extents are those of an array type, and within the device's limits (driver API manual, tables at
    /// cuArray3DCreate and cuMipmappedArrayCreate).
    fn check(&self, device: &Device, mipmapped: bool) -> Result<()> {
        let Descriptor {
            width, height, depth, ..
        } = *self;
        if self.flags & !KNOWN != 0 || width == 0 {
            return Err(Error::InvalidValue);
        }
        let within = |limits: &[(u64, i32)]| {
            let fits = |&(size, attribute): &(u64, i32)| size <= device.attribute(attribute).max(0) as u64;
            limits.iter().all(fits).then_some(()).ok_or(Error::InvalidValue)
        };
        let layered = self.is(LAYERED);
        if self.is(CUBEMAP) {
            let layers = if layered {
                depth > 0 && depth.is_multiple_of(6)
            } else {
                depth == 6
            };
            if width != height || !layers || self.is(GATHER) {
                return Err(Error::InvalidValue);
            }
            return match (layered, self.is(SURFACE)) {
                (false, false) => within(&[(width, 52)]),
                (false, true) => within(&[(width, 52), (width, 66)]),
                (true, false) => within(&[(width, 53), (depth, 54)]),
                (true, true) => within(&[(width, 53), (depth, 54), (width, 67), (depth, 68)]),
            };
        }
        // Gathers read two-dimensional arrays.
        if self.is(GATHER) && (height == 0 || depth > 0 && !layered) {
            return Err(Error::InvalidValue);
        }
        if layered {
            if depth == 0 {
                return Err(Error::InvalidValue);
            }
            return match (height, self.is(SURFACE)) {
                (0, surface) => {
                    within(&[(width, 42), (depth, 43)])?;
                    if surface {
                        within(&[(width, 61), (depth, 62)])
                    } else {
                        Ok(())
                    }
                }
                (_, surface) => {
                    within(&[(width, 27), (height, 28), (depth, 29)])?;
                    if surface {
                        within(&[(width, 63), (height, 64), (depth, 65)])
                    } else {
                        Ok(())
                    }
                }
            };
        }
        match (height, depth) {
            (0, 0) => {
                within(&[(width, if mipmapped { 77 } else { 21 })])?;
                if self.is(SURFACE) {
                    within(&[(width, 55)])
                } else {
                    Ok(())
                }
            }
            (0, _) => Err(Error::InvalidValue),
            (_, 0) => {
                let (x, y) = if mipmapped { (73, 74) } else { (22, 23) };
                within(&[(width, x), (height, y)])?;
                if self.is(GATHER) {
                    within(&[(width, 45), (height, 46)])?;
                }
                if self.is(SURFACE) {
                    within(&[(width, 56), (height, 57)])
                } else {
                    Ok(())
                }
            }
            _ => {
                within(&[(width, 24), (height, 25), (depth, 26)])
                    .or_else(|_| within(&[(width, 47), (height, 48), (depth, 49)]))?;
                if self.is(SURFACE) {
                    within(&[(width, 58), (height, 59), (depth, 60)])
                } else {
                    Ok(())
                }
            }
        }
    }

    /// What this version does not have.
    fn supported(&self) -> Result<()> {
        if self.is(SPARSE | DEFERRED | DEPTH) {
            tracing::warn!(
                "sparse, deferred and depth arrays are not supported (flags {:#x})",
                self.flags
            );
            return Err(Error::NotSupported);
        }
        Ok(())
    }

    /// The descriptor of a level: half the size each, layers the same.
    fn level(&self, level: u32) -> Descriptor {
        let half = |size: u64| if size == 0 { 0 } else { (size >> level).max(1) };
        Descriptor {
            width: half(self.width),
            height: half(self.height),
            depth: if self.is(LAYERED | CUBEMAP) {
                self.depth
            } else {
                half(self.depth)
            },
            ..*self
        }
    }

    /// Rows and bytes of one slice, and slices; the address is still to come.
    fn extent(&self, layout: &Layout) -> Result<Extent> {
        let (height, slices) = (self.height.max(1), self.depth.max(1));
        let (pitch, rows) = match layout {
            Layout::Texels(format) => (self.width.checked_mul(format.bytes().into()), height),
            Layout::Blocks(format) => (
                self.width.div_ceil(4).checked_mul(format.bytes().into()),
                height.div_ceil(4),
            ),
            // A copy of the whole moves luma alone; planes have places of their own.
            Layout::Planes(planes) => (self.width.checked_mul(planes[0].format.bytes().into()), height),
        };
        Ok(Extent {
            address: 0,
            pitch: pitch.ok_or(Error::OutOfMemory)?,
            rows,
            slices,
        })
    }
}

fn allocate(bytes: u64, shared: &Shared) -> Result<u64> {
    let request = Request {
        device: shared.device,
        owner: shared.id,
        ..Request::new(Kind::Array, bytes)
    };
    Ok(place(&request, shared)?.start)
}

impl Array {
    fn new(
        owner: u64,
        descriptor: Descriptor,
        format: Option<Format>,
        extent: Extent,
        alive: &Arc<AtomicBool>,
        memory: Option<u64>,
        planes: Vec<Arc<Array>>,
    ) -> Arc<Array> {
        let array = Arc::new(Array {
            handle: handle::fresh(),
            owner,
            descriptor,
            format,
            extent,
            alive: Arc::clone(alive),
            memory,
            planes,
        });
        ARRAYS.insert(array.handle, &array);
        array
    }

    /// `cuArrayCreate`, `cuArray3DCreate`.
    ///
    /// # Errors
    /// 1 for extents, formats and flags that do not go together or exceed the device's limits, 2, 801 for what is not
    /// supported.
    pub fn create(descriptor: Descriptor) -> Result<Arc<Array>> {
        let context = Context::usable()?;
        let layout = format::layout(descriptor.format, descriptor.channels)?;
        descriptor.check(context.device(), false)?;
        descriptor.supported()?;
        let shared = context.shared();
        let mut extent = descriptor.extent(&layout)?;
        let alive = Arc::new(AtomicBool::new(true));
        let Layout::Planes(planes) = &layout else {
            extent.address = allocate(extent.bytes().ok_or(Error::OutOfMemory)?, shared)?;
            let format = match layout {
                Layout::Texels(format) | Layout::Blocks(format) => Some(format),
                Layout::Planes(_) => None,
            };
            let memory = Some(extent.address);
            return Ok(Array::new(
                shared.id,
                descriptor,
                format,
                extent,
                &alive,
                memory,
                Vec::new(),
            ));
        };
        let mut bytes = 0_u64;
        let mut parts = Vec::new();
        for plane in planes {
            let [x, y] = plane.divide;
            if !descriptor.width.is_multiple_of(x) || descriptor.height == 0 || !descriptor.height.is_multiple_of(y) {
                return Err(Error::InvalidValue);
            }
            let descriptor = Descriptor {
                width: descriptor.width / x,
                height: descriptor.height / y,
                format: plane.number,
                channels: plane.format.channels,
                ..descriptor
            };
            let mut extent = descriptor.extent(&Layout::Texels(plane.format))?;
            extent.address = bytes;
            let end = extent.bytes().and_then(|own| bytes.checked_add(own));
            bytes = end
                .and_then(|end| end.checked_next_multiple_of(LEVEL_ALIGN))
                .ok_or(Error::OutOfMemory)?;
            parts.push((descriptor, plane.format, extent));
        }
        let start = allocate(bytes, shared)?;
        let planes = parts.into_iter().map(|(descriptor, format, mut extent)| {
            extent.address += start;
            Array::new(shared.id, descriptor, Some(format), extent, &alive, None, Vec::new())
        });
        let planes = planes.collect();
        extent.address = start;
        Ok(Array::new(
            shared.id,
            descriptor,
            None,
            extent,
            &alive,
            Some(start),
            planes,
        ))
    }

    /// `cuArrayDestroy`.
    pub fn destroy_by(handle: Handle) -> Result<()> {
        let array = Array::from_handle(handle).inspect_err(|_| check::no_handle(handle as u64, "array"))?;
        array.destroy()
    }

    /// 400 for what is no array.
    pub fn from_handle(handle: Handle) -> Result<Arc<Array>> {
        ARRAYS.get(handle).ok_or(Error::InvalidHandle)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    pub fn descriptor(&self) -> Descriptor {
        self.descriptor
    }

    pub(in crate::driver) fn extent(&self) -> Extent {
        self.extent
    }

    /// `cuArrayDestroy`: waits for what may use it. Levels and planes end with what they are of.
    pub fn destroy(&self) -> Result<()> {
        let memory = self.memory.ok_or(Error::InvalidValue)?;
        context::drain_all();
        ARRAYS.remove(self.handle).ok_or(Error::InvalidHandle)?;
        self.alive.store(false, Ordering::Release);
        for plane in &self.planes {
            ARRAYS.remove(plane.handle);
        }
        AddressSpace::get().free(memory);
        Ok(())
    }

    /// `cuArrayGetPlane`.
    pub fn plane(&self, index: u32) -> Result<Arc<Array>> {
        self.planes
            .get(index as usize)
            .map(Arc::clone)
            .ok_or(Error::InvalidValue)
    }

    /// The array as textures and surfaces see it; 801 for formats that they do not read.
    pub(in crate::driver) fn image(&self) -> Result<Image> {
        image(&[self], &self.descriptor, &self.alive)
    }
}

/// An image of levels, the finest first.
fn image(levels: &[&Array], descriptor: &Descriptor, alive: &Arc<AtomicBool>) -> Result<Image> {
    let format = levels[0].format.ok_or_else(|| {
        tracing::warn!("textures of formats in planes are not supported: make one of each plane");
        Error::NotSupported
    })?;
    let layered = descriptor.is(LAYERED | CUBEMAP);
    let size = |size: u64| u32::try_from(size.max(1)).map_err(|_| Error::InvalidValue);
    let levels = levels.iter().map(|array| {
        let (of, extent) = (&array.descriptor, array.extent);
        Ok(Level {
            address: extent.address,
            width: size(of.width)?,
            height: size(of.height)?,
            depth: if layered { 1 } else { size(of.depth)? },
            pitch: extent.pitch,
            slice: extent.pitch * extent.rows,
        })
    });
    Ok(Image {
        levels: levels.collect::<Result<_>>()?,
        format,
        layers: if layered { size(descriptor.depth)? } else { 0 },
        cube: descriptor.is(CUBEMAP),
        memory: Backing::Array(Arc::clone(alive)),
    })
}

impl Mipmapped {
    /// `cuMipmappedArrayCreate`: as many levels as there are sizes, at most.
    ///
    /// # Errors
    /// As [`Array::create`].
    pub fn create(descriptor: Descriptor, levels: u32) -> Result<Arc<Mipmapped>> {
        let context = Context::usable()?;
        Mipmapped::build(descriptor, levels, |bytes| {
            Ok((allocate(bytes, context.shared())?, None))
        })
    }

    /// In memory of somebody else's, of which `place` shows so many bytes: it goes with the array.
    ///
    /// # Errors
    /// As [`Array::create`], and those of `place`.
    pub(in crate::driver) fn create_at(
        descriptor: Descriptor,
        levels: u32,
        place: impl FnOnce(u64) -> Result<(u64, Window)>,
    ) -> Result<Arc<Mipmapped>> {
        Mipmapped::build(descriptor, levels, |bytes| {
            place(bytes).map(|(address, window)| (address, Some(window)))
        })
    }

    fn build(
        descriptor: Descriptor,
        levels: u32,
        place: impl FnOnce(u64) -> Result<(u64, Option<Window>)>,
    ) -> Result<Arc<Mipmapped>> {
        let context = Context::usable()?;
        let layout = format::layout(descriptor.format, descriptor.channels)?;
        descriptor.check(context.device(), true)?;
        descriptor.supported()?;
        let format = match layout {
            Layout::Texels(format) | Layout::Blocks(format) => Some(format),
            Layout::Planes(_) => return Err(Error::InvalidValue),
        };
        let layered = descriptor.is(LAYERED | CUBEMAP);
        let largest = descriptor
            .width
            .max(descriptor.height)
            .max(if layered { 0 } else { descriptor.depth });
        let levels = levels.clamp(1, 1 + largest.ilog2());
        let mut bytes = 0_u64;
        let mut parts = Vec::new();
        for level in 0..levels {
            let descriptor = descriptor.level(level);
            let mut extent = descriptor.extent(&layout)?;
            extent.address = bytes;
            let end = extent.bytes().and_then(|own| bytes.checked_add(own));
            bytes = end
                .and_then(|end| end.checked_next_multiple_of(LEVEL_ALIGN))
                .ok_or(Error::OutOfMemory)?;
            parts.push((descriptor, extent));
        }
        let shared = context.shared();
        let (start, window) = place(bytes)?;
        let alive = Arc::new(AtomicBool::new(true));
        let levels = parts.into_iter().map(|(descriptor, mut extent)| {
            extent.address += start;
            Array::new(shared.id, descriptor, format, extent, &alive, None, Vec::new())
        });
        let mipmap = Arc::new(Mipmapped {
            handle: handle::fresh(),
            owner: shared.id,
            descriptor,
            levels: levels.collect(),
            alive,
            memory: start,
            window: Mutex::new(window),
        });
        MIPMAPS.insert(mipmap.handle, &mipmap);
        Ok(mipmap)
    }

    /// `cuMipmappedArrayDestroy`.
    pub fn destroy_by(handle: Handle) -> Result<()> {
        let found = Mipmapped::from_handle(handle);
        found
            .inspect_err(|_| check::no_handle(handle as u64, "mipmapped array"))?
            .destroy()
    }

    /// 400 for what is no mipmapped array.
    pub fn from_handle(handle: Handle) -> Result<Arc<Mipmapped>> {
        MIPMAPS.get(handle).ok_or(Error::InvalidHandle)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    pub fn descriptor(&self) -> Descriptor {
        self.descriptor
    }

    /// `cuMipmappedArrayGetLevel`.
    pub fn level(&self, level: u32) -> Result<Arc<Array>> {
        self.levels
            .get(level as usize)
            .map(Arc::clone)
            .ok_or(Error::InvalidValue)
    }

    /// `cuMipmappedArrayDestroy`: waits for what may use it.
    pub fn destroy(&self) -> Result<()> {
        context::drain_all();
        MIPMAPS.remove(self.handle).ok_or(Error::InvalidHandle)?;
        self.alive.store(false, Ordering::Release);
        for level in &self.levels {
            ARRAYS.remove(level.handle);
        }
        if self.window.lock().take().is_none() {
            AddressSpace::get().free(self.memory);
        }
        Ok(())
    }

    pub(in crate::driver) fn image(&self) -> Result<Image> {
        let levels: Vec<&Array> = self.levels.iter().map(|level| &**level).collect();
        image(&levels, &self.descriptor, &self.alive)
    }
}
