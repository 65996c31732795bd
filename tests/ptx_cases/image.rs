//! Images of a case: descriptors over its buffers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cuda::memory::texture::{
    AddressMode, Backing, Channel, Declared, Descriptor, Filter, Format, HandleKind, Image, Level, Objects, Sampler,
    Surface, Texture,
};
use cuda::program::Module;
use cuda::program::texture::Opaque;

use crate::case::{self, Address, Parameter, Role};
use crate::value::Class;

fn channel(parameter: &Parameter) -> Result<Channel, String> {
    Ok(match (parameter.ty.class, parameter.ty.bytes) {
        (Class::Unsigned, 1) => Channel::U8,
        (Class::Unsigned, 2) => Channel::U16,
        (Class::Unsigned, 4) => Channel::U32,
        (Class::Signed, 1) => Channel::S8,
        (Class::Signed, 2) => Channel::S16,
        (Class::Signed, 4) => Channel::S32,
        (Class::Half, _) => Channel::F16,
        (Class::Single, _) => Channel::F32,
        _ => return Err(format!("no texel has components of the type of {}", parameter.name)),
    })
}

fn image(parameter: &Parameter, is: &case::Image, address: u64) -> Result<Image, String> {
    let format = Format {
        channel: channel(parameter)?,
        channels: is.channels,
    };
    let mut levels = Vec::new();
    let mut at = address;
    for number in 0..is.levels {
        let half = |size: u32| (size >> number).max(1);
        let [width, height, depth] = is.size.map(half);
        let pitch = u64::from(width * format.bytes());
        let slice = pitch * u64::from(height);
        levels.push(Level {
            address: at,
            width,
            height,
            depth,
            pitch,
            slice,
        });
        at += slice * u64::from(depth.max(is.layers));
    }
    let texels = (at - address) / u64::from(format.channel.bytes());
    if texels != parameter.before.len() as u64 {
        return Err(format!(
            "{}: {texels} values make the image, not {}",
            parameter.name,
            parameter.before.len()
        ));
    }
    Ok(Image {
        levels: levels.into(),
        format,
        layers: is.layers,
        cube: is.cube,
        memory: Backing::Array(Arc::new(AtomicBool::new(true))),
    })
}

/// The texture or surface that a line of the header describes, over memory that holds its texels.
pub fn descriptor(parameter: &Parameter, address: u64) -> Result<Descriptor, String> {
    let Role::Image(is) = &parameter.role else {
        return Err(format!("{} is no image", parameter.name));
    };
    let image = image(parameter, is, address)?;
    if is.surface {
        return Ok(Descriptor::Surface(Arc::new(Surface { image })));
    }
    let filter = |linear| if linear { Filter::Linear } else { Filter::Point };
    let mode = match is.address {
        Address::Clamp => AddressMode::Clamp,
        Address::Wrap => AddressMode::Wrap,
        Address::Mirror => AddressMode::Mirror,
        Address::Border => AddressMode::Border,
    };
    Ok(Descriptor::Texture(Arc::new(Texture {
        image,
        sampler: Sampler {
            address: [mode; 3],
            filter: filter(is.linear),
            normalized: is.normalized,
            level_filter: filter(is.blend_levels),
            ..Sampler::default()
        },
        normalize: is.fractions,
        srgb: false,
    })))
}

/// A handle for a parameter. The process ends with the tests, and its objects with it.
pub fn object(parameter: &Parameter, address: u64) -> Result<u64, String> {
    Ok(Objects::get().insert(0, descriptor(parameter, address)?))
}

/// References of the module that no line binds: samplers as they are declared, the others unbound.
pub fn declared(module: &Module, references: &mut Vec<(u64, Descriptor)>) {
    for global in &module.globals {
        let Some(declaration) = &global.opaque else { continue };
        for at in (global.address..global.address + global.bytes).step_by(declaration.stride as usize) {
            if references.iter().any(|(address, _)| *address == at) {
                continue;
            }
            let field = |name: &str| {
                declaration
                    .fields
                    .iter()
                    .find(|(field, _)| **field == *name)
                    .map(|(_, value)| *value)
            };
            let mode = |name| match field(name) {
                Some(0) => AddressMode::Wrap,
                Some(1) => AddressMode::Mirror,
                Some(4) => AddressMode::Border,
                _ => AddressMode::Clamp,
            };
            let descriptor = match declaration.kind {
                Opaque::Sampler => Descriptor::Sampler(Arc::new(Sampler {
                    address: [mode("addr_mode_0"), mode("addr_mode_1"), mode("addr_mode_2")],
                    filter: if field("filter_mode") == Some(1) {
                        Filter::Linear
                    } else {
                        Filter::Point
                    },
                    unnormalized: field("force_unnormalized_coords") == Some(1),
                    ..Sampler::default()
                })),
                kind => Descriptor::Unbound(Arc::new(Declared {
                    kind: if kind == Opaque::Surface {
                        HandleKind::Surface
                    } else {
                        HandleKind::Texture
                    },
                    name: Arc::clone(&global.name),
                    fields: declaration
                        .fields
                        .iter()
                        .map(|(name, value)| (Box::from(&**name), *value))
                        .collect::<HashMap<_, _>>(),
                })),
            };
            references.push((at, descriptor));
        }
    }
}
