//! Texture and surface objects: `cuTexObject*`, `cuSurfObject*`.
//!
//! Kernels hold the handles that are made here; reading texels by them is `memory/texture/`.

use std::sync::Arc;

use crate::driver::array::{Array, CUBEMAP, Descriptor as ArrayDescriptor, LAYERED, Mipmapped, SURFACE};
use crate::driver::context::{self, Shared};
use crate::driver::handle::Registry;
use crate::driver::{Context, Device, Error, Handle, Result, format, virtual_memory};
use crate::memory::texture::{
    AddressMode, Backing, Channel, Descriptor, Filter, Image, Level, Objects, Sampler, Surface, Texture,
};

/// `CU_TRSF_…` flags.
pub const READ_AS_INTEGER: u32 = 0x01;
pub const NORMALIZED: u32 = 0x02;
const SRGB: u32 = 0x10;
const SEAMLESS: u32 = 0x40;
const KNOWN: u32 = 0x73;

/// `CUDA_RESOURCE_DESC`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Resource {
    Array(Handle),
    Mipmapped(Handle),
    Linear {
        address: u64,
        format: u32,
        channels: u32,
        bytes: u64,
    },
    Pitched {
        address: u64,
        format: u32,
        channels: u32,
        width: u64,
        height: u64,
        pitch: u64,
    },
}

/// `CUDA_TEXTURE_DESC`, in the API's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    pub address: [u32; 3],
    pub filter: u32,
    pub flags: u32,
    pub anisotropy: u32,
    pub level_filter: u32,
    pub level_bias: f32,
    pub level_clamp: [f32; 2],
    pub border: [f32; 4],
}

/// `CUDA_RESOURCE_VIEW_DESC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    pub format: u32,
    pub width: u64,
    pub height: u64,
    pub depth: u64,
    pub first_level: u32,
    pub last_level: u32,
    pub first_layer: u32,
    pub last_layer: u32,
}

/// What an object was made of, to be asked back.
#[derive(Clone, Copy, Debug)]
pub enum Object {
    Texture {
        owner: u64,
        resource: Resource,
        sampling: Sampling,
        view: Option<View>,
    },
    Surface {
        owner: u64,
        resource: Resource,
    },
}

static OBJECTS: Registry<Object> = Registry::new();

/// A context's objects end.
pub(in crate::driver) fn forget_all_of(shared: &Shared) {
    OBJECTS.take(|object| match object {
        Object::Texture { owner, .. } | Object::Surface { owner, .. } => *owner == shared.id,
    });
    Objects::get().forget_all_of(shared.id);
}

impl Sampling {
    pub(in crate::driver) fn sampler(&self) -> Result<Sampler> {
        let mode = |mode: u32| {
            Ok(match mode {
                0 => AddressMode::Wrap,
                1 => AddressMode::Clamp,
                2 => AddressMode::Mirror,
                3 => AddressMode::Border,
                _ => return Err(Error::InvalidValue),
            })
        };
        let filter = |filter: u32| match filter {
            0 => Ok(Filter::Point),
            1 => Ok(Filter::Linear),
            _ => Err(Error::InvalidValue),
        };
        if self.flags & !KNOWN != 0 {
            return Err(Error::InvalidValue);
        }
        let [x, y, z] = self.address;
        Ok(Sampler {
            address: [mode(x)?, mode(y)?, mode(z)?],
            filter: filter(self.filter)?,
            normalized: self.flags & NORMALIZED != 0,
            unnormalized: false,
            level_filter: filter(self.level_filter)?,
            level_bias: self.level_bias,
            level_clamp: self.level_clamp,
            anisotropy: self.anisotropy.clamp(1, 16),
            border: self.border,
            seamless: self.flags & SEAMLESS != 0,
        })
    }
}

/// Ordinary memory as an image: alignments and limits of the device hold.
fn plain(device: &Device, resource: &Resource) -> Result<Image> {
    let limit = |attribute: i32| device.attribute(attribute).max(0) as u64;
    let (address, format, channels) = match *resource {
        Resource::Linear {
            address,
            format,
            channels,
            ..
        }
        | Resource::Pitched {
            address,
            format,
            channels,
            ..
        } => (address, format, channels),
        Resource::Array(_) | Resource::Mipmapped(_) => return Err(Error::InvalidValue),
    };
    let format = format::texels(format, channels)?;
    if address == 0 || !address.is_multiple_of(limit(14)) {
        return Err(Error::InvalidValue);
    }
    let texel = u64::from(format.bytes());
    let (width, height, pitch, linear) = match *resource {
        Resource::Pitched {
            width, height, pitch, ..
        } => {
            let good = width > 0
                && height > 0
                && width <= limit(70)
                && height <= limit(71)
                && pitch <= limit(72)
                && pitch.is_multiple_of(limit(51))
                && width * texel <= pitch;
            if !good {
                return Err(Error::InvalidValue);
            }
            (width, height, pitch, false)
        }
        Resource::Linear { bytes, .. } => {
            let width = bytes / texel;
            if width == 0 || width > limit(69) {
                return Err(Error::InvalidValue);
            }
            (width, 1, bytes, true)
        }
        Resource::Array(_) | Resource::Mipmapped(_) => return Err(Error::InvalidValue),
    };
    if !virtual_memory::is_known(address) {
        return Err(Error::InvalidValue);
    }
    Ok(Image {
        levels: Box::new([Level {
            address,
            width: width as u32,
            height: height as u32,
            depth: 1,
            pitch,
            slice: pitch * height,
        }]),
        format,
        layers: 0,
        cube: false,
        memory: Backing::Plain { linear },
    })
}

/// Whether memory can be bound as it is described (`cuTexRefSetAddress2D`).
pub fn check_plain(device: &Device, resource: &Resource) -> Result<()> {
    plain(device, resource).map(drop)
}

/// The image, and the descriptor of the array behind it if there is one.
fn image(device: &Device, resource: &Resource) -> Result<(Image, Option<ArrayDescriptor>)> {
    // Handles in descriptors are values: a wrong one is 1.
    let wrong = |error: Error| {
        if error == Error::InvalidHandle {
            Error::InvalidValue
        } else {
            error
        }
    };
    match *resource {
        Resource::Array(handle) => {
            let array = Array::from_handle(handle).map_err(wrong)?;
            Ok((array.image()?, Some(array.descriptor())))
        }
        Resource::Mipmapped(handle) => {
            let mipmap = Mipmapped::from_handle(handle).map_err(wrong)?;
            Ok((mipmap.image()?, Some(mipmap.descriptor())))
        }
        Resource::Linear { .. } | Resource::Pitched { .. } => Ok((plain(device, resource)?, None)),
    }
}

/// Restricts an image to levels and layers, and reads its bytes as another format of the same size.
fn viewed(mut image: Image, of: &ArrayDescriptor, view: &View) -> Result<Image> {
    let layered = of.flags & (LAYERED | CUBEMAP) != 0;
    let last = image.levels.len() as u32 - 1;
    let levels = view.first_level <= view.last_level && view.last_level <= last;
    let layers = match layered {
        true => view.first_layer <= view.last_layer && u64::from(view.last_layer) < of.depth,
        false => view.first_layer == 0 && view.last_layer == 0,
    };
    // The size is that of the resource; of 0, or what the finest of the levels has, the same is understood.
    let finest = |size: u64| {
        if size == 0 {
            0
        } else {
            (size >> view.first_level).max(1)
        }
    };
    let same = |is: u64, size: u64| is == size || is == finest(size) || is == size.max(1);
    let depth = layered || same(view.depth, of.depth);
    let format = match view.format {
        0 => image.format,
        number => format::of_view(number)?,
    };
    // Blocks are words to an array of its own format; the view is of their texels, four times as many.
    let words = image.format.channel == Channel::U32;
    let edge = u64::from(format.edge() / image.format.edge().min(format.edge()));
    if format.bytes() != image.format.bytes()
        || image.format.edge() > format.edge()
        || edge != 1 && !words
        || !levels
        || !layers
        || !same(view.width, of.width * edge)
        || !same(view.height, of.height * edge)
        || !depth
    {
        return Err(Error::InvalidValue);
    }
    if edge != 1 {
        for (n, level) in image.levels.iter_mut().enumerate() {
            // A level of words halves them first: where these are odd there are fewer blocks than texels would need.
            let texels = |whole: u64, words: u32| ((whole * edge) >> n).clamp(1, u64::from(words) * edge) as u32;
            level.width = texels(of.width, level.width);
            level.height = texels(of.height, level.height);
        }
    }
    image.format = format;
    let range = view.first_level as usize..=view.last_level as usize;
    let mut levels = image.levels[range].to_vec();
    if layered {
        image.layers = view.last_layer - view.first_layer + 1;
        for level in &mut levels {
            level.address += u64::from(view.first_layer) * level.slice;
        }
        image.cube &= image.layers >= 6;
    }
    image.levels = levels.into();
    Ok(image)
}

/// What kernels read.
///
/// # Errors
/// 1 for what does not go together (driver API manual, cuTexObjectCreate), 801 for formats that textures do not read.
pub(in crate::driver) fn describe(
    device: &Device,
    resource: &Resource,
    sampling: &Sampling,
    view: Option<&View>,
) -> Result<Texture> {
    let (image, array) = image(device, resource)?;
    let image = match (view, &array) {
        (Some(view), Some(array)) => viewed(image, array, view)?,
        (Some(_), None) => return Err(Error::InvalidValue),
        (None, _) => image,
    };
    let sampler = sampling.sampler()?;
    let mipmapped = matches!(resource, Resource::Mipmapped(_));
    let cube = array.is_some_and(|array| array.flags & CUBEMAP != 0);
    if mipmapped && !sampler.normalized || sampler.seamless && !cube {
        return Err(Error::InvalidValue);
    }
    let bytes = match image.format.channel {
        Channel::U8 | Channel::Unorm8 => true,
        Channel::Blocks { block, .. } => block.has_bytes(),
        _ => false,
    };
    let normalize = sampling.flags & READ_AS_INTEGER == 0;
    if sampling.flags & SRGB != 0 && !(bytes && normalize) {
        return Err(Error::InvalidValue);
    }
    Ok(Texture {
        image,
        sampler,
        normalize,
        srgb: sampling.flags & SRGB != 0,
    })
}

/// What kernels read and write: an array made for it.
pub(in crate::driver) fn describe_surface(resource: &Resource) -> Result<Surface> {
    let Resource::Array(handle) = *resource else {
        return Err(Error::InvalidValue);
    };
    let array = Array::from_handle(handle).map_err(|_| Error::InvalidValue)?;
    if array.descriptor().flags & SURFACE == 0 {
        return Err(Error::InvalidValue);
    }
    let image = array.image()?;
    if image.format.edge() != 1 {
        return Err(Error::InvalidValue);
    }
    Ok(Surface { image })
}

/// `cuTexObjectCreate`.
///
/// # Errors
/// As [`describe`].
pub fn create(resource: Resource, sampling: Sampling, view: Option<View>) -> Result<u64> {
    let context = Context::usable()?;
    let texture = describe(context.device(), &resource, &sampling, view.as_ref())?;
    let owner = context.id();
    let handle = Objects::get().insert(owner, Descriptor::Texture(Arc::new(texture)));
    let object = Arc::new(Object::Texture {
        owner,
        resource,
        sampling,
        view,
    });
    OBJECTS.insert(handle as Handle, &object);
    Ok(handle)
}

/// `cuSurfObjectCreate`.
///
/// # Errors
/// 1 unless the resource is an array made with `CUDA_ARRAY3D_SURFACE_LDST`.
pub fn create_surface(resource: Resource) -> Result<u64> {
    let context = Context::usable()?;
    let surface = describe_surface(&resource)?;
    let owner = context.id();
    let handle = Objects::get().insert(owner, Descriptor::Surface(Arc::new(surface)));
    OBJECTS.insert(handle as Handle, &Arc::new(Object::Surface { owner, resource }));
    Ok(handle)
}

/// What the object was made of; 1 for what is none.
pub fn object(handle: u64) -> Result<Object> {
    OBJECTS
        .get(handle as Handle)
        .map(|object| *object)
        .ok_or(Error::InvalidValue)
}

/// `cuTexObjectDestroy`, `cuSurfObjectDestroy`: waits for kernels that may look the object up.
pub fn destroy(handle: u64, surface: bool) -> Result<()> {
    let is_surface = matches!(object(handle)?, Object::Surface { .. });
    if is_surface != surface {
        return Err(Error::InvalidValue);
    }
    context::drain_all();
    OBJECTS.remove(handle as Handle);
    Objects::get().remove(handle);
    Ok(())
}
