//! Texture and surface references: variables of modules to which a program binds arrays and memory, `cuTexRef*`,
//! `cuSurfRef*`.
//!
//! What a module declares and a program sets comes together when a kernel is launched.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::driver::array::Array;
use crate::driver::handle::{self, Registry};
use crate::driver::texture::{self, NORMALIZED, Resource, Sampling};
use crate::driver::{Device, Error, Handle, Result};
use crate::memory::texture::{self as memory, AddressMode, Declared, Descriptor, Filter, HandleKind, Sampler};
use crate::program::texture::Opaque;
use crate::program::{Declaration, Module};

/// What a texture reference is set to.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub resource: Option<Resource>,
    /// `CUarray_format` and channels.
    pub format: (u32, u32),
    pub sampling: Sampling,
}

/// Counts changes of any reference: what modules keep is stale when it moves.
static CHANGES: AtomicU64 = AtomicU64::new(0);

pub struct TextureReference {
    handle: Handle,
    device: u32,
    declared: Arc<Declared>,
    settings: Mutex<Settings>,
}

pub struct SurfaceReference {
    handle: Handle,
    declared: Arc<Declared>,
    array: Mutex<Option<Handle>>,
}

static TEXTURES: Registry<TextureReference> = Registry::new();
static SURFACES: Registry<SurfaceReference> = Registry::new();

const UINT8: u32 = 0x01;

fn field(declared: &Declared, name: &str) -> Option<u32> {
    declared.fields.get(name).copied()
}

/// The API's number for an addressing mode of PTX (wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border).
fn address_mode(ptx: u32) -> u32 {
    match ptx {
        0 => 0,
        1 => 2,
        4 => 3,
        _ => 1,
    }
}

impl Settings {
    /// Defaults of the manual, and what the declaration says.
    fn of(declared: &Declared) -> Settings {
        let mode = |name| field(declared, name).map_or(1, address_mode);
        let normalized = field(declared, "normalized_coords").is_some_and(|value| value != 0);
        Settings {
            resource: None,
            format: (UINT8, 1),
            sampling: Sampling {
                address: [mode("addr_mode_0"), mode("addr_mode_1"), mode("addr_mode_2")],
                filter: field(declared, "filter_mode").unwrap_or(0),
                flags: if normalized { NORMALIZED } else { 0 },
                anisotropy: 1,
                level_filter: 0,
                level_bias: 0.0,
                level_clamp: [0.0, 0.0],
                border: [0.0; 4],
            },
        }
    }
}

impl TextureReference {
    fn new(device: u32, declared: Arc<Declared>) -> Arc<TextureReference> {
        let reference = Arc::new(TextureReference {
            handle: handle::fresh(),
            device,
            settings: Mutex::new(Settings::of(&declared)),
            declared,
        });
        TEXTURES.insert(reference.handle, &reference);
        reference
    }

    /// `cuTexRefCreate`: one that is no module's.
    pub fn create(device: u32) -> Arc<TextureReference> {
        let declared = Declared {
            kind: HandleKind::Texture,
            name: "".into(),
            fields: HashMap::new(),
        };
        TextureReference::new(device, Arc::new(declared))
    }

    /// 400 for what is no texture reference.
    pub fn from_handle(handle: Handle) -> Result<Arc<TextureReference>> {
        TEXTURES.get(handle).ok_or(Error::InvalidHandle)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// `cuTexRefDestroy`: not those of modules.
    pub fn destroy(&self) -> Result<()> {
        if !self.declared.name.is_empty() {
            return Err(Error::InvalidValue);
        }
        TEXTURES.remove(self.handle).map(drop).ok_or(Error::InvalidHandle)
    }

    pub fn device(&self) -> &'static Device {
        &Device::all()[self.device as usize]
    }

    pub fn settings(&self) -> Settings {
        *self.settings.lock()
    }

    /// Launches from now on see the change.
    pub fn change(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings.lock());
        CHANGES.fetch_add(1, Ordering::AcqRel);
    }

    fn binding(&self) -> Descriptor {
        let Settings {
            resource,
            format,
            sampling,
        } = self.settings();
        let unbound = || Descriptor::Unbound(Arc::clone(&self.declared));
        let Some(resource) = resource else {
            return unbound();
        };
        // Memory is read as the format that was set last; arrays have their own.
        let resource = match resource {
            Resource::Linear { address, bytes, .. } => Resource::Linear {
                address,
                bytes,
                format: format.0,
                channels: format.1,
            },
            other => other,
        };
        let texture = texture::describe(self.device(), &resource, &sampling, None);
        texture.map_or_else(|_| unbound(), |texture| Descriptor::Texture(Arc::new(texture)))
    }
}

impl SurfaceReference {
    /// 400 for what is no surface reference.
    pub fn from_handle(handle: Handle) -> Result<Arc<SurfaceReference>> {
        SURFACES.get(handle).ok_or(Error::InvalidHandle)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// `cuSurfRefSetArray`.
    ///
    /// # Errors
    /// 1 unless the array was made with `CUDA_ARRAY3D_SURFACE_LDST`.
    pub fn bind(&self, array: &Array) -> Result<()> {
        texture::describe_surface(&Resource::Array(array.handle()))?;
        *self.array.lock() = Some(array.handle());
        CHANGES.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// `cuSurfRefGetArray`: 1 when nothing is bound.
    pub fn array(&self) -> Result<Handle> {
        self.array.lock().ok_or(Error::InvalidValue)
    }

    fn binding(&self) -> Descriptor {
        let bound = self
            .array()
            .and_then(|array| texture::describe_surface(&Resource::Array(array)));
        match bound {
            Ok(surface) => Descriptor::Surface(Arc::new(surface)),
            Err(_) => Descriptor::Unbound(Arc::clone(&self.declared)),
        }
    }
}

/// One element of a module's reference variables.
enum Reference {
    Texture(Arc<TextureReference>),
    Surface(Arc<SurfaceReference>),
    /// A sampler's state is its declaration's.
    Sampler(Descriptor),
}

/// The references of a module: by address, and by name.
#[derive(Default)]
pub(in crate::driver) struct References {
    all: Vec<(u64, Reference)>,
    names: HashMap<Arc<str>, usize>,
    kept: Mutex<Option<(u64, memory::References)>>,
}

fn sampler(declared: &Declared) -> Sampler {
    let mode = |name| match field(declared, name) {
        Some(0) => AddressMode::Wrap,
        Some(1) => AddressMode::Mirror,
        Some(4) => AddressMode::Border,
        _ => AddressMode::Clamp,
    };
    Sampler {
        address: [mode("addr_mode_0"), mode("addr_mode_1"), mode("addr_mode_2")],
        filter: match field(declared, "filter_mode") {
            Some(1) => Filter::Linear,
            _ => Filter::Point,
        },
        unnormalized: field(declared, "force_unnormalized_coords").is_some_and(|value| value != 0),
        ..Sampler::default()
    }
}

impl References {
    pub fn of(module: &Module, device: u32) -> References {
        let mut references = References::default();
        for global in &module.globals {
            let Some(Declaration { kind, stride, fields }) = &global.opaque else {
                continue;
            };
            let declared = Arc::new(Declared {
                kind: match kind {
                    Opaque::Texture => HandleKind::Texture,
                    Opaque::Sampler => HandleKind::Sampler,
                    Opaque::Surface => HandleKind::Surface,
                },
                name: Arc::clone(&global.name),
                fields: fields
                    .iter()
                    .map(|(name, value)| (Box::from(&**name), *value))
                    .collect(),
            });
            let first = references.all.len();
            if global.visible || !references.names.contains_key(&global.name) {
                references.names.insert(Arc::clone(&global.name), first);
            }
            for offset in (0..global.bytes).step_by((*stride).max(1) as usize) {
                let reference = match kind {
                    Opaque::Texture => Reference::Texture(TextureReference::new(device, Arc::clone(&declared))),
                    Opaque::Sampler => Reference::Sampler(Descriptor::Sampler(Arc::new(sampler(&declared)))),
                    Opaque::Surface => {
                        let reference = Arc::new(SurfaceReference {
                            handle: handle::fresh(),
                            declared: Arc::clone(&declared),
                            array: Mutex::new(None),
                        });
                        SURFACES.insert(reference.handle, &reference);
                        Reference::Surface(reference)
                    }
                };
                references.all.push((global.address + offset, reference));
            }
        }
        references
    }

    /// The module ends.
    pub fn end(&self) {
        for (_, reference) in &self.all {
            match reference {
                Reference::Texture(reference) => drop(TEXTURES.remove(reference.handle)),
                Reference::Surface(reference) => drop(SURFACES.remove(reference.handle)),
                Reference::Sampler(_) => {}
            }
        }
    }

    fn named(&self, name: &str) -> Result<&Reference> {
        let index = *self.names.get(name).ok_or(Error::NotFound)?;
        Ok(&self.all[index].1)
    }

    /// 500 if there is none of that name; of an array the first.
    pub fn texture(&self, name: &str) -> Result<Arc<TextureReference>> {
        match self.named(name)? {
            Reference::Texture(reference) => Ok(Arc::clone(reference)),
            _ => Err(Error::NotFound),
        }
    }

    /// 500 if there is none of that name; of an array the first.
    pub fn surface(&self, name: &str) -> Result<Arc<SurfaceReference>> {
        match self.named(name)? {
            Reference::Surface(reference) => Ok(Arc::clone(reference)),
            _ => Err(Error::NotFound),
        }
    }

    /// What all are bound to now, by address; made anew only when some reference has changed.
    pub fn bindings(&self) -> memory::References {
        if self.all.is_empty() {
            return Arc::default();
        }
        let changes = CHANGES.load(Ordering::Acquire);
        let mut kept = self.kept.lock();
        if let Some((at, bindings)) = &*kept
            && *at == changes
        {
            return Arc::clone(bindings);
        }
        let mut bindings: Vec<(u64, Descriptor)> = self
            .all
            .iter()
            .map(|(address, reference)| {
                let descriptor = match reference {
                    Reference::Texture(reference) => reference.binding(),
                    Reference::Surface(reference) => reference.binding(),
                    Reference::Sampler(descriptor) => descriptor.clone(),
                };
                (*address, descriptor)
            })
            .collect();
        bindings.sort_unstable_by_key(|(address, _)| *address);
        let bindings: memory::References = bindings.into();
        *kept = Some((changes, Arc::clone(&bindings)));
        bindings
    }
}
