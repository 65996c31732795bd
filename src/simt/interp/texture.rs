//! Texture and surface accesses: handles looked up once for all lanes that share one, then lane by lane.
//!
//! An object that was looked up stays at hand in the thread for as long as no object anywhere goes away, so that a loop
//! of accesses takes no lock.

use std::cell::RefCell;
use std::sync::Arc;

use half::f16;

use crate::isa::lanes::Width;
use crate::memory::texture::{
    self as memory, Backing, Declared, Descriptor, Fetch, HandleKind, Objects, Sampler, Texture,
};
use crate::program::Slot;
use crate::program::texture::{Attribute, Components, Detail, Geometry, Opaque, TextureOp};

use super::super::Cause;
use super::calls::{lanes, read, write};
use super::{Cx, RawFault};

/// Objects that a thread keeps at hand.
const AT_HAND: usize = 8;

#[derive(Default)]
struct AtHand {
    epoch: u64,
    found: Vec<(u64, Descriptor)>,
}

thread_local! {
    static CACHE: RefCell<AtHand> = RefCell::default();
}

/// What a handle stands for: a reference of the launch's module, or an object.
pub fn resolve(cx: &Cx<'_, '_>, handle: u64) -> Option<Descriptor> {
    let references = &cx.block.env.launch.references;
    if let Ok(at) = references.binary_search_by_key(&handle, |(address, _)| *address) {
        return Some(references[at].1.clone());
    }
    CACHE.with_borrow_mut(|cache| {
        let objects = Objects::get();
        let epoch = objects.epoch();
        if cache.epoch != epoch {
            cache.epoch = epoch;
            cache.found.clear();
        }
        if let Some((_, found)) = cache.found.iter().find(|(known, _)| *known == handle) {
            return Some(found.clone());
        }
        let found = objects.find(handle)?;
        if cache.found.len() == AT_HAND {
            cache.found.remove(0);
        }
        cache.found.push((handle, found.clone()));
        Some(found)
    })
}

/// A handle that is none, or whose memory is gone.
#[cold]
pub fn bad_handle(what: &str, handle: u64, found: Option<&Descriptor>, lane: usize) -> RawFault {
    let why = match found {
        None => format!("{handle:#x} is no {what} of this process, or was destroyed"),
        Some(Descriptor::Unbound(declared)) => format!("nothing is bound to the reference `{}`", declared.name),
        Some(other) if format!("{:?}", other.kind()).to_lowercase() == what => {
            format!("the array behind the {what} {handle:#x} was destroyed")
        }
        Some(other) => format!(
            "{handle:#x} is a {}, not a {what}",
            format!("{:?}", other.kind()).to_lowercase()
        ),
    };
    RawFault {
        cause: Cause::Texture { why },
        lane,
    }
}

pub fn geometry(geometry: Geometry) -> memory::Geometry {
    match geometry {
        Geometry::D1 => memory::Geometry::D1,
        Geometry::D2 => memory::Geometry::D2,
        Geometry::D3 => memory::Geometry::D3,
        Geometry::A1 => memory::Geometry::A1,
        Geometry::A2 => memory::Geometry::A2,
        Geometry::Cube => memory::Geometry::Cube,
        Geometry::ACube => memory::Geometry::ACube,
        Geometry::Ms2 => memory::Geometry::Ms2,
        Geometry::AMs2 => memory::Geometry::AMs2,
    }
}

/// A texture and the sampler it is read with, for lanes with these handles.
struct Bound {
    handles: (u64, u64),
    texture: Arc<Texture>,
    /// `None`: the texture's own.
    sampler: Option<Sampler>,
}

fn bind(cx: &Cx<'_, '_>, handles: (u64, u64), separate: bool, lane: usize) -> Result<Bound, RawFault> {
    let found = resolve(cx, handles.0);
    let texture = match &found {
        Some(Descriptor::Texture(texture)) if texture.image.is_alive() => Arc::clone(texture),
        other => return Err(bad_handle("texture", handles.0, other.as_ref(), lane)),
    };
    if !separate {
        return Ok(Bound {
            handles,
            texture,
            sampler: None,
        });
    }
    let found = resolve(cx, handles.1);
    let sampler = match &found {
        // Whether coordinates are fractions is the texture's to say, unless the sampler overrides it.
        Some(Descriptor::Sampler(sampler)) => Sampler {
            normalized: texture.sampler.normalized,
            ..Sampler::clone(sampler)
        },
        Some(Descriptor::Texture(other)) => other.sampler.clone(),
        other => return Err(bad_handle("sampler", handles.1, other.as_ref(), lane)),
    };
    Ok(Bound {
        handles,
        texture,
        sampler: Some(sampler),
    })
}

/// `tex`, `tld4`.
///
/// # Safety
/// Slots of `op` lie in the running window.
pub unsafe fn fetch(op: &TextureOp, cx: &mut Cx<'_, '_>) -> Option<RawFault> {
    let regs = cx.regs;
    // SAFETY: the caller's word, here and below.
    let get = |slot: Slot, lane: usize| unsafe { read(regs, slot, lane) };
    let put = |slot: Slot, lane: usize, value: u64| unsafe { write(regs, slot, lane, value) };
    let word = |slot: Slot, lane: usize| get(slot, lane) as u32;
    let vector = |slots: &[Slot], lane: usize| -> [u32; 3] {
        std::array::from_fn(|i| slots.get(i).map_or(0, |slot| word(*slot, lane)))
    };
    let floats = |bits: [u32; 3]| bits.map(f32::from_bits);
    let mut bound: Option<Bound> = None;
    let geometry = geometry(op.geometry);
    for lane in lanes(&cx.mask.lanes) {
        let handles = (get(op.texture, lane), op.sampler.map_or(0, |slot| get(slot, lane)));
        let bound = match bound.as_ref() {
            Some(known) if known.handles == handles => known,
            _ => match bind(cx, handles, op.sampler.is_some(), lane) {
                Ok(found) => &*bound.insert(found),
                Err(fault) => return Some(fault),
            },
        };
        let at = vector(&op.at, lane);
        let fetch = Fetch {
            geometry,
            layer: op.layer.map_or(0, |slot| word(slot, lane)),
            at: match op.floats {
                true => memory::Probe::Position(floats(at)),
                false => memory::Probe::Index(at.map(|bits| bits as i32)),
            },
            offset: vector(&op.offset, lane).map(|bits| bits as i32),
            detail: match &op.detail {
                Detail::Base => memory::Detail::Base,
                Detail::Level(level) if op.floats => memory::Detail::Level(f32::from_bits(word(*level, lane))),
                Detail::Level(level) => memory::Detail::Level(word(*level, lane) as i32 as f32),
                Detail::Gradient(x, y) => memory::Detail::Gradient(floats(vector(x, lane)), floats(vector(y, lane))),
            },
            compare: op.compare.map(|slot| f32::from_bits(word(slot, lane))),
            gather: op.gather.map(usize::from),
        };
        let sampler = bound.sampler.as_ref().unwrap_or(&bound.texture.sampler);
        let texel = match bound.texture.fetch(sampler, &fetch, cx.block.view) {
            Ok(texel) => texel,
            Err(missing) => {
                let cause = Cause::IllegalAddress {
                    address: missing.address,
                    bytes: missing.bytes,
                    write: false,
                    space: crate::program::Space::Global,
                };
                return Some(RawFault { cause, lane });
            }
        };
        let half = |bits: u32| match bound.texture.reads_floats() {
            true => f16::from_f32(f32::from_bits(bits)).to_bits(),
            false => bits as u16,
        };
        let values = match op.components {
            Components::Words => texel,
            Components::Halves => texel.map(|bits| half(bits).into()),
            Components::HalfPairs => {
                let pair = |i: usize| u32::from(half(texel[i])) | u32::from(half(texel[i + 1])) << 16;
                [pair(0), pair(2), 0, 0]
            }
        };
        for (slot, value) in op.dst.iter().zip(values) {
            if let Some(slot) = slot {
                put(*slot, lane, value.into());
            }
        }
        if let Some(slot) = op.dst_pred {
            put(slot, lane, 1);
        }
    }
    None
}

/// `txq`, `suq`.
///
/// # Safety
/// The slots lie in the running window.
pub unsafe fn query(
    cx: &mut Cx<'_, '_>,
    handle: Slot,
    attribute: Attribute,
    level: Option<Slot>,
    dst: Slot,
) -> Option<RawFault> {
    let regs = cx.regs;
    let mut known: Option<(u64, Descriptor)> = None;
    for lane in lanes(&cx.mask.lanes) {
        // SAFETY: the caller's word, here and below.
        let wanted = unsafe { read(regs, handle, lane) };
        if known.as_ref().is_none_or(|(handle, _)| *handle != wanted) {
            known = resolve(cx, wanted).map(|found| (wanted, found));
        }
        let Some((_, descriptor)) = &known else {
            return Some(bad_handle("texture or surface", wanted, None, lane));
        };
        let level = level.map_or(0, |slot| unsafe { read(regs, slot, lane) } as u32);
        let value = answer(descriptor, attribute, level);
        unsafe { write(regs, dst, lane, value.into()) };
    }
    None
}

fn answer(descriptor: &Descriptor, attribute: Attribute, level: u32) -> u32 {
    let (image, normalize, sampler) = match descriptor {
        Descriptor::Texture(texture) => (&texture.image, texture.normalize, &texture.sampler),
        Descriptor::Surface(surface) => (&surface.image, false, &Sampler::default()),
        Descriptor::Sampler(sampler) => return of_sampler(sampler, attribute),
        Descriptor::Unbound(declared) => return declared_as(declared, attribute),
    };
    let at = image.levels.get(level as usize);
    match attribute {
        Attribute::Width => at.map_or(0, |level| level.width),
        Attribute::Height => at.map_or(0, |level| level.height),
        Attribute::Depth => at.map_or(0, |level| level.depth),
        Attribute::ChannelDataType => image.format.data_type(normalize),
        Attribute::ChannelOrder => image.format.order(),
        Attribute::NormalizedCoords => sampler.normalized.into(),
        Attribute::ArraySize => image.array_size(),
        Attribute::NumMipmapLevels => image.levels.len() as u32,
        Attribute::NumSamples => 1,
        Attribute::MemoryLayout => matches!(image.memory, Backing::Plain { .. }).into(),
        Attribute::ForceUnnormalizedCoords | Attribute::FilterMode | Attribute::AddressMode(_) => {
            of_sampler(sampler, attribute)
        }
    }
}

fn declared_as(declared: &Declared, attribute: Attribute) -> u32 {
    declared.fields.get(attribute.word()).copied().unwrap_or(0)
}

/// Numbers in the order in which the manual lists the words (PTX ISA, Texture, Sampler and Surface Types).
fn of_sampler(sampler: &Sampler, attribute: Attribute) -> u32 {
    match attribute {
        Attribute::ForceUnnormalizedCoords => sampler.unnormalized.into(),
        Attribute::FilterMode => (sampler.filter == memory::Filter::Linear).into(),
        Attribute::AddressMode(which) => match sampler.address[usize::from(which)] {
            memory::AddressMode::Wrap => 0,
            memory::AddressMode::Mirror => 1,
            memory::AddressMode::Clamp => 3,
            memory::AddressMode::Border => 4,
        },
        _ => 0,
    }
}

/// `istypep`.
///
/// # Safety
/// The slots lie in the running window.
pub unsafe fn is_handle(cx: &mut Cx<'_, '_>, opaque: Opaque, dst: Slot, src: Slot) -> Option<RawFault> {
    debug_assert_eq!((dst.width, src.width), (Width::Pred, Width::B64));
    let wanted = match opaque {
        Opaque::Texture => HandleKind::Texture,
        Opaque::Sampler => HandleKind::Sampler,
        Opaque::Surface => HandleKind::Surface,
    };
    for lane in lanes(&cx.mask.lanes) {
        // SAFETY: the caller's word.
        let handle = unsafe { read(cx.regs, src, lane) };
        let is = resolve(cx, handle).is_some_and(|found| found.kind() == wanted);
        // SAFETY: as above.
        unsafe { write(cx.regs, dst, lane, is.into()) };
    }
    None
}
