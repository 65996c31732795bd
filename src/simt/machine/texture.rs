//! Texture accesses: handles looked up once for all threads that share one, texels read for a warp at once.
//!
//! An object that was looked up stays at hand in the thread for as long as no object anywhere goes away, so that a loop
//! of accesses takes no lock.

use std::cell::RefCell;
use std::sync::Arc;

use half::f16;

use crate::isa::Level;
use crate::isa::lanes::{MAX_WARPS, WARP, Width};
use crate::memory::texture::{
    self as memory, Backing, Channel, Declared, Descriptor, Details, Fetch, Fetches, HandleKind, Objects, Run, Sampler,
    Seen, Texels, Texture,
};
use crate::memory::{READ, View};
use crate::program::ir::texture::{Attribute, Components, Detail, Geometry, Opaque, TextureOp};

use super::access::tell_one;
use super::context::{Cx, Outcome, RawFault};
use super::observe::Direction;
use super::slots::{Slot, lanes, read, write};
use crate::program::{Proxy, Space};
use crate::simt::cause::Cause;

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
pub fn resolve(cx: &Cx<'_>, handle: u64) -> Option<Descriptor> {
    let references = &cx.launch().references;
    if let Ok(at) = references.binary_search_by_key(&handle, |(address, _)| *address) {
        return Some(references[at].1.clone());
    }
    let objects = Objects::get();
    let at_hand = CACHE.try_with(|cache| {
        let mut cache = cache.borrow_mut();
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
    });
    // A thread that runs exit handlers keeps nothing at hand any more.
    at_hand.unwrap_or_else(|_| objects.find(handle))
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
        others: 0,
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

impl Bound {
    fn sampler(&self) -> &Sampler {
        self.sampler.as_ref().unwrap_or(&self.texture.sampler)
    }
}

fn bind(cx: &Cx<'_>, handles: (u64, u64), separate: bool, lane: usize) -> Result<Bound, RawFault> {
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

/// `tex`, `tld4`: warp by warp where its threads share texture and sampler, else thread by thread.
///
/// # Safety
/// Slots of `op` lie in the running window.
pub unsafe fn fetch<const WATCHED: bool>(op: &TextureOp<Slot>, cx: &mut Cx<'_>) -> Outcome {
    let mut bound: Option<Bound> = None;
    for warp in 0..MAX_WARPS {
        let active = cx.mask.lanes[warp];
        if active == 0 {
            continue;
        }
        // One who watches is told of each thread's texels.
        let handles = match WATCHED {
            true => None,
            // SAFETY: `op` has slots of the running window, and `active` are lanes of its mask.
            false => unsafe { shared_handles(op, cx.regs, warp, active) },
        };
        let mut done = false;
        if let Some(handles) = handles {
            if bound.as_ref().is_none_or(|known| known.handles != handles) {
                let first = warp * WARP + active.trailing_zeros() as usize;
                match bind(cx, handles, op.sampler.is_some(), first) {
                    Ok(found) => bound = Some(found),
                    Err(fault) => return Some(fault),
                }
            }
            let bound = bound.as_ref()?;
            // SAFETY: `op` has slots of the running window, and `active` are lanes of its mask.
            done = unsafe { fetch_warp(op, cx, bound, warp, active) };
        }
        if !done {
            let each = (0..WARP).filter(|lane| active >> lane & 1 == 1);
            for lane in each.map(|lane| warp * WARP + lane) {
                // SAFETY: `op` has slots of the running window, and `lane` is of its mask.
                if let Some(fault) = unsafe { fetch_one::<WATCHED>(op, cx, &mut bound, lane) } {
                    return Some(fault);
                }
            }
        }
        if let Some(slot) = op.dst_pred {
            let each = (0..WARP).filter(|lane| active >> lane & 1 == 1);
            // SAFETY: the predicate is a slot of the running window, and these lanes are of its mask.
            each.for_each(|lane| unsafe { write(cx.regs, slot, warp * WARP + lane, 1) });
        }
    }
    None
}

/// The handles of a warp's active threads, if they have the same.
///
/// # Safety
/// As for [`fetch`].
unsafe fn shared_handles(op: &TextureOp<Slot>, regs: *mut u8, warp: usize, active: u32) -> Option<(u64, u64)> {
    let first = warp * WARP + active.trailing_zeros() as usize;
    let shared = |slot: Slot| {
        // SAFETY: the handles of `op` are slots of the window at `regs`, and `first` is a lane of it.
        let handle = unsafe { read(regs, slot, first) };
        let mut each = (0..WARP).filter(|lane| active >> lane & 1 == 1);
        let all = match slot.width {
            Width::B64 if active == u32::MAX => {
                // SAFETY: a slot of 64 bits has a run of 32 values for each warp, and nobody writes it meanwhile.
                let run = unsafe { &*regs.add(slot.offset as usize).cast::<Run<u64>>().add(warp) };
                let mut differs = 0;
                for own in run {
                    differs |= own ^ handle;
                }
                differs == 0
            }
            _ => each.all(|lane| {
                // SAFETY: the handles of `op` are slots of the window at `regs`, and `lane` is an active one.
                let own = unsafe { read(regs, slot, warp * WARP + lane) };
                own == handle
            }),
        };
        all.then_some(handle)
    };
    Some((shared(op.texture)?, op.sampler.map_or(Some(0), shared)?))
}

/// A texture that is a row of words in ordinary memory, all of it there to be read.
pub struct Row {
    pub handle: u64,
    pub address: u64,
    /// Texels.
    pub width: u32,
    /// Words of each: 1, 2 or 4.
    pub channels: u32,
    /// The fourth component where that is lacking.
    pub one: u32,
}

/// The row from which the first thread reads. References are bound anew from launch to launch, and are none.
///
/// # Safety
/// As for [`fetch`].
pub unsafe fn row(op: &TextureOp<Slot>, cx: &Cx<'_>) -> Option<Row> {
    let lane = lanes(&cx.mask.lanes).next()?;
    // SAFETY: the handle is a slot of the running window, and `lane` is of its mask.
    let handle = unsafe { read(cx.regs, op.texture, lane) };
    let Some(Descriptor::Texture(texture)) = Objects::get().find(handle) else {
        return None;
    };
    let Texture { image, srgb, .. } = &*texture;
    let ([level], Backing::Plain { linear: true }) = (&image.levels[..], &image.memory) else {
        return None;
    };
    let one = match image.format.channel {
        Channel::F32 => 1.0_f32.to_bits(),
        Channel::U32 | Channel::S32 => 1,
        _ => return None,
    };
    let channels = image.format.channels;
    let bytes = u64::from(level.width) * u64::from(image.format.bytes());
    let is_there = level.width <= i32::MAX as u32 && cx.block.view.check(level.address, bytes, READ);
    (!srgb && is_there && matches!(channels, 1 | 2 | 4)).then_some(Row {
        handle,
        address: level.address,
        width: level.width,
        channels,
        one,
    })
}

/// One thread's access.
///
/// # Safety
/// As for [`fetch`].
unsafe fn fetch_one<const WATCHED: bool>(
    op: &TextureOp<Slot>,
    cx: &mut Cx<'_>,
    bound: &mut Option<Bound>,
    lane: usize,
) -> Outcome {
    let regs = cx.regs;
    // SAFETY: all slots that are read with this are operands of `op`, which lie in the running window.
    let get = |slot: Slot, lane: usize| unsafe { read(regs, slot, lane) };
    let word = |slot: Slot, lane: usize| get(slot, lane) as u32;
    let vector = |slots: &[Slot], lane: usize| -> [u32; 3] {
        std::array::from_fn(|i| slots.get(i).map_or(0, |slot| word(*slot, lane)))
    };
    let floats = |bits: [u32; 3]| bits.map(f32::from_bits);
    let handles = (get(op.texture, lane), op.sampler.map_or(0, |slot| get(slot, lane)));
    let bound = match bound {
        Some(known) if known.handles == handles => known,
        _ => match bind(cx, handles, op.sampler.is_some(), lane) {
            Ok(found) => bound.insert(found),
            Err(fault) => return Some(fault),
        },
    };
    let at = vector(&op.at, lane);
    let fetch = Fetch {
        geometry: geometry(op.geometry),
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
    let view = cx.block.view;
    let texel = if WATCHED {
        let texels = RefCell::default();
        let seen = Seen { view, texels: &texels };
        let texel = bound.texture.fetch(bound.sampler(), &fetch, seen);
        for (address, bytes) in texels.take() {
            let range = (address, bytes.into());
            tell_one::<WATCHED>(cx, lane, range, Space::Global, Direction::Read, Proxy::Texture);
        }
        texel
    } else {
        bound.texture.fetch(bound.sampler(), &fetch, view)
    };
    let texel = match texel {
        Ok(texel) => texel,
        Err(missing) => {
            let bytes = missing.bytes.into();
            return Some(RawFault::illegal(missing.address, bytes, false, lane, Space::Global));
        }
    };
    for (slot, value) in op.dst.iter().zip(components(op, &bound.texture, texel)) {
        if let Some(slot) = slot {
            // SAFETY: the destinations of `op` are slots of the running window, and `lane` is of its mask.
            unsafe { write(regs, *slot, lane, value.into()) };
        }
    }
    None
}

/// What goes into the registers.
#[inline(always)]
fn components(op: &TextureOp<Slot>, texture: &Texture, texel: [u32; 4]) -> [u32; 4] {
    let half = |bits: u32| match texture.reads_floats() {
        true => f16::from_f32(f32::from_bits(bits)).to_bits(),
        false => bits as u16,
    };
    let pair = |i: usize| u32::from(half(texel[i])) | u32::from(half(texel[i + 1])) << 16;
    match op.components {
        Components::Words => texel,
        Components::Halves => texel.map(|bits| half(bits).into()),
        Components::HalfPairs => [pair(0), pair(2), 0, 0],
    }
}

/// A warp's accesses; `false`: nothing was done, and threads have to be served one by one.
///
/// # Safety
/// As for [`fetch`].
unsafe fn fetch_warp(op: &TextureOp<Slot>, cx: &Cx<'_>, bound: &Bound, warp: usize, active: u32) -> bool {
    let regs = cx.regs;
    let is_words = |slot: &Slot| slot.width == Width::B32;
    let mut sources = op.at.iter().chain(&op.offset).chain(&op.layer).chain(&op.compare);
    let details_are_words = match &op.detail {
        Detail::Base => true,
        Detail::Level(level) => is_words(level),
        Detail::Gradient(x, y) => x.iter().chain(y).all(is_words),
    };
    if !sources.all(is_words) || !details_are_words {
        return false;
    }
    // SAFETY: `is_words` has seen that the operands are slots of 32 bits, which have a run of 32 values for each warp;
    // nothing is written while there are references to them.
    let run = |slot: Slot| unsafe { &*regs.add(slot.offset as usize).cast::<Run<u32>>().add(warp) };
    let vector = |slots: &[Slot]| std::array::from_fn(|i| slots.get(i).map_or(&memory::ZEROS, |slot| run(*slot)));
    let fetches = Fetches {
        geometry: geometry(op.geometry),
        active,
        layer: op.layer.map(run),
        floats: op.floats,
        at: vector(&op.at),
        offset: (!op.offset.is_empty()).then(|| vector(&op.offset)),
        details: match &op.detail {
            Detail::Base => Details::Base,
            Detail::Level(level) => Details::Level(run(*level)),
            Detail::Gradient(x, y) => Details::Gradient(vector(x), vector(y)),
        },
        compare: op.compare.map(run),
        gather: op.gather.map(usize::from),
    };
    let mut texels = [[0; WARP]; 4];
    let view = cx.block.view;
    let done = match Level::current() {
        // SAFETY: the level is one that the CPU was found to have.
        Level::Avx512 => unsafe { fetch_avx512(bound, &fetches, view, &mut texels) },
        // SAFETY: the CPU was found to have AVX2 and what goes with it.
        Level::Avx2 => unsafe { fetch_avx2(bound, &fetches, view, &mut texels) },
        Level::Baseline => fetch_baseline(bound, &fetches, view, &mut texels),
    };
    if !done {
        return false;
    }
    if op.components != Components::Words {
        let mut each = [[0; 4]; WARP];
        for (lane, texel) in each.iter_mut().enumerate() {
            *texel = components(op, &bound.texture, [0, 1, 2, 3].map(|i| texels[i][lane]));
        }
        texels = std::array::from_fn(|i| each.map(|texel| texel[i]));
    }
    for (slot, values) in op.dst.iter().zip(&texels) {
        let Some(slot) = slot else { continue };
        if active == u32::MAX && is_words(slot) {
            // SAFETY: a register of 32 bits has a run of 32 for each warp; all of it is this access's to write.
            unsafe { *regs.add(slot.offset as usize).cast::<Run<u32>>().add(warp) = *values };
            continue;
        }
        for lane in (0..WARP).filter(|lane| active >> lane & 1 == 1) {
            // SAFETY: the destinations of `op` are slots of the running window, and `lane` is an active one.
            unsafe { write(regs, *slot, warp * WARP + lane, values[lane].into()) };
        }
    }
    true
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt,fma,f16c")]
fn fetch_avx512(bound: &Bound, fetches: &Fetches<'_>, view: View, texels: &mut Texels) -> bool {
    bound.texture.fetch_warp(bound.sampler(), fetches, view, texels)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma,f16c")]
fn fetch_avx2(bound: &Bound, fetches: &Fetches<'_>, view: View, texels: &mut Texels) -> bool {
    bound.texture.fetch_warp(bound.sampler(), fetches, view, texels)
}

fn fetch_baseline(bound: &Bound, fetches: &Fetches<'_>, view: View, texels: &mut Texels) -> bool {
    bound.texture.fetch_warp(bound.sampler(), fetches, view, texels)
}

/// `txq`, `suq`.
///
/// # Safety
/// The slots lie in the running window.
pub unsafe fn query(cx: &mut Cx<'_>, handle: Slot, attribute: Attribute, level: Option<Slot>, dst: Slot) -> Outcome {
    let regs = cx.regs;
    let mut known: Option<(u64, Descriptor)> = None;
    for lane in lanes(&cx.mask.lanes) {
        // SAFETY: `handle` is a slot of the running window, `lane` is of its mask.
        let wanted = unsafe { read(regs, handle, lane) };
        if known.as_ref().is_none_or(|(handle, _)| *handle != wanted) {
            known = resolve(cx, wanted).map(|found| (wanted, found));
        }
        let Some((_, descriptor)) = &known else {
            return Some(bad_handle("texture or surface", wanted, None, lane));
        };
        // SAFETY: the level is a slot of the running window, `lane` is of its mask.
        let level = level.map_or(0, |slot| unsafe { read(regs, slot, lane) } as u32);
        let value = answer(descriptor, attribute, level);
        // SAFETY: `dst` is a slot of the running window, `lane` is of its mask.
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
        // These are a texture's or a surface's.
        Attribute::Width
        | Attribute::Height
        | Attribute::Depth
        | Attribute::ChannelDataType
        | Attribute::ChannelOrder
        | Attribute::NormalizedCoords
        | Attribute::ArraySize
        | Attribute::NumMipmapLevels
        | Attribute::NumSamples
        | Attribute::MemoryLayout => 0,
    }
}

/// `istypep`.
///
/// # Safety
/// The slots lie in the running window.
pub unsafe fn is_handle(cx: &mut Cx<'_>, opaque: Opaque, dst: Slot, src: Slot) -> Outcome {
    debug_assert_eq!((dst.width, src.width), (Width::Pred, Width::B64));
    let wanted = match opaque {
        Opaque::Texture => HandleKind::Texture,
        Opaque::Sampler => HandleKind::Sampler,
        Opaque::Surface => HandleKind::Surface,
    };
    for lane in lanes(&cx.mask.lanes) {
        // SAFETY: `src` is a slot of the running window, `lane` is of its mask.
        let handle = unsafe { read(cx.regs, src, lane) };
        let is = resolve(cx, handle).is_some_and(|found| found.kind() == wanted);
        // SAFETY: `dst` is a slot of the running window, `lane` is of its mask.
        unsafe { write(cx.regs, dst, lane, is.into()) };
    }
    None
}
