//! Textures, samplers and surfaces as kernels see them: descriptors, the table of handles, and what reading them gives.
//!
//! Descriptors are over memory that somebody else allocated (`driver/textures/`).
//!
//! ```text
//! format.rs   bytes of a texel ↔ its components          sample.rs   coordinates → texels, filtered
//! blend.rs    what a filter makes of texels
//! axis.rs     addressing along one direction             warp/       the same for 32 threads at once
//! level.rs    how blurred: levels, gradients, several probes      cube.rs   directions → faces of a cube
//! surface.rs  surface coordinates → addresses          block.rs   texels that share their bytes
//! ```
//!
//! **Layout.** An array is rows one after the other, slices (or layers) one after the other; nobody else looks.
//!
//! **What manuals leave open** (CUDA C++ Programming Guide, Texture Fetching; PTX ISA, tex) and is decided here:
//! the texels' and levels' shares and their sums are an H100's (`blend.rs`); of several probes the sums are blended in double
//! precision; a texel that has no share does not count; channels that a format lacks read as 0, the fourth as 1;
//! the layer is clamped; of equal axes of a direction z goes before y before x; the level's bias and limits hold for
//! every access, and have eight bits of a fraction, as it has; a depth comparison passes where the reference is at most the texel.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;

mod axis;
mod blend;
mod block;
mod cube;
mod format;
mod level;
mod sample;
mod surface;
#[cfg(test)]
mod tests;
mod warp;

pub use block::Block;
pub use format::{Channel, Format};
pub use sample::{Detail, Fetch, Geometry, Missing, Probe, Seen};
pub use warp::{Details, Fetches, Run, Texels, ZEROS};

/// One level of an image: where its texels are, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    pub address: u64,
    /// Texels; 1 in directions that the image does not have.
    pub width: u32,
    pub height: u32,
    pub depth: u32,
    /// Bytes from row to row, and from slice to slice or layer to layer.
    pub pitch: u64,
    pub slice: u64,
}

/// Texels that a texture or surface is a view of.
#[derive(Clone, Debug)]
pub struct Image {
    /// The finest first; never empty.
    pub levels: Box<[Level]>,
    pub format: Format,
    /// Layers from the first on, faces counted; 0: not layered.
    pub layers: u32,
    /// Six layers are a cube.
    pub cube: bool,
    pub memory: Backing,
}

/// Whose memory an image is.
#[derive(Clone, Debug)]
pub enum Backing {
    /// An array's; clear once it is destroyed.
    Array(Arc<AtomicBool>),
    /// Ordinary memory that kernels reach: every access is checked. `linear`: one row that is read by whole numbers.
    Plain { linear: bool },
}

impl Image {
    pub fn is_alive(&self) -> bool {
        match &self.memory {
            Backing::Array(alive) => alive.load(Ordering::Acquire),
            Backing::Plain { .. } => true,
        }
    }

    /// Layers as a kernel counts them: a cube is one.
    pub fn array_size(&self) -> u32 {
        if self.cube { self.layers / 6 } else { self.layers }.max(1)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressMode {
    Wrap,
    Mirror,
    Clamp,
    Border,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    Point,
    Linear,
}

/// How coordinates become texels.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampler {
    pub address: [AddressMode; 3],
    pub filter: Filter,
    /// Coordinates are fractions of the size.
    pub normalized: bool,
    /// Overrides `normalized` (`force_unnormalized_coords`).
    pub unnormalized: bool,
    pub level_filter: Filter,
    pub level_bias: f32,
    pub level_clamp: [f32; 2],
    /// Probes along the longer side of a gradient's footprint, at most.
    pub anisotropy: u32,
    pub border: [f32; 4],
    /// Filters across the edges of a cube.
    pub seamless: bool,
}

impl Default for Sampler {
    /// What a reference has when nobody set anything (driver API manual, cuTexRefCreate and its setters).
    fn default() -> Sampler {
        Sampler {
            address: [AddressMode::Clamp; 3],
            filter: Filter::Point,
            normalized: false,
            unnormalized: false,
            level_filter: Filter::Point,
            level_bias: 0.0,
            level_clamp: [0.0, f32::MAX],
            anisotropy: 0,
            border: [0.0; 4],
            seamless: false,
        }
    }
}

impl Sampler {
    pub fn is_normalized(&self) -> bool {
        self.normalized && !self.unnormalized
    }
}

/// An image with the way in which it is read.
#[derive(Clone, Debug)]
pub struct Texture {
    pub image: Image,
    pub sampler: Sampler,
    /// Integers of 8 and 16 bits read as fractions of their greatest value.
    pub normalize: bool,
    /// Components but the fourth are sRGB-encoded (8-bit unsigned fractions).
    pub srgb: bool,
}

impl Texture {
    /// Components are floating-point numbers; otherwise integers.
    pub fn reads_floats(&self) -> bool {
        self.image.format.reads_floats(self.normalize)
    }
}

/// An image that is read and written without a sampler.
#[derive(Clone, Debug)]
pub struct Surface {
    pub image: Image,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandleKind {
    Texture,
    Sampler,
    Surface,
}

/// A variable of a module that nothing is bound to: what its declaration says, by the fields' names.
#[derive(Clone, Debug)]
pub struct Declared {
    pub kind: HandleKind,
    pub name: Arc<str>,
    pub fields: HashMap<Box<str>, u32>,
}

/// What a handle stands for.
#[derive(Clone, Debug)]
pub enum Descriptor {
    Texture(Arc<Texture>),
    Sampler(Arc<Sampler>),
    Surface(Arc<Surface>),
    Unbound(Arc<Declared>),
}

impl Descriptor {
    pub fn kind(&self) -> HandleKind {
        match self {
            Descriptor::Texture(_) => HandleKind::Texture,
            Descriptor::Sampler(_) => HandleKind::Sampler,
            Descriptor::Surface(_) => HandleKind::Surface,
            Descriptor::Unbound(declared) => declared.kind,
        }
    }
}

/// A module's references as they are bound when a kernel is launched, by the addresses of their variables, ascending.
pub type References = Arc<[(u64, Descriptor)]>;

/// The process's texture and surface objects.
#[derive(Default)]
pub struct Objects {
    map: RwLock<HashMap<u64, (u64, Descriptor)>>,
    /// Changes whenever an object goes: what was looked up before is stale.
    epoch: AtomicU64,
    next: AtomicU64,
}

impl Objects {
    pub fn get() -> &'static Objects {
        static OBJECTS: LazyLock<Objects> = LazyLock::new(Objects::default);
        &OBJECTS
    }

    /// Handles are small numbers that are never used twice; no address of a variable is among them.
    pub fn insert(&self, owner: u64, descriptor: Descriptor) -> u64 {
        let handle = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        self.map.write().insert(handle, (owner, descriptor));
        handle
    }

    pub fn remove(&self, handle: u64) -> bool {
        let gone = self.map.write().remove(&handle).is_some();
        self.lost();
        gone
    }

    /// What was found out about objects is void, and so is where code has learned that their texels are.
    fn lost(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        super::space::count_change();
    }

    /// Removes what an owner has left.
    pub fn forget_all_of(&self, owner: u64) {
        self.map.write().retain(|_, (whose, _)| *whose != owner);
        self.lost();
    }

    pub fn find(&self, handle: u64) -> Option<Descriptor> {
        self.map.read().get(&handle).map(|(_, descriptor)| descriptor.clone())
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }
}
