//! Coordinates → texels (CUDA C++ Programming Guide, Texture Fetching; PTX ISA, tex and tld4).

use std::cell::RefCell;

use super::axis::{Axis, axis};
use super::blend::{self, Blend};
use super::{AddressMode, Backing, Filter, Image, Level, Sampler, Texture, cube, level};
use crate::memory::{AddressSpace, READ, View};

/// What an access takes an image for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Geometry { D1, D2, D3, A1, A2, Cube, ACube, Ms2, AMs2 }

impl Geometry {
    /// Coordinates within one layer.
    pub fn dimensions(self) -> usize {
        match self {
            Geometry::D1 | Geometry::A1 => 1,
            Geometry::D2 | Geometry::A2 | Geometry::Ms2 | Geometry::AMs2 => 2,
            Geometry::D3 | Geometry::Cube | Geometry::ACube => 3,
        }
    }

    pub fn is_array(self) -> bool {
        matches!(self, Geometry::A1 | Geometry::A2 | Geometry::ACube | Geometry::AMs2)
    }

    pub fn is_cube(self) -> bool {
        matches!(self, Geometry::Cube | Geometry::ACube)
    }
}

/// Where one thread reads, and how blurred.
#[derive(Clone, Copy, Debug)]
pub enum Probe {
    /// Texels by number.
    Index([i32; 3]),
    Position([f32; 3]),
}

#[derive(Clone, Copy, Debug)]
pub enum Detail {
    Base,
    Level(f32),
    Gradient([f32; 3], [f32; 3]),
}

/// One thread's access.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    pub geometry: Geometry,
    /// Of arrays; a cube is one.
    pub layer: u32,
    pub at: Probe,
    /// In texels.
    pub offset: [i32; 3],
    pub detail: Detail,
    /// The reference that texels are compared with.
    pub compare: Option<f32>,
    /// This component of the four texels around the position.
    pub gather: Option<usize>,
}

/// Memory that a kernel may not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    pub address: u64,
    pub bytes: u32,
}

/// How the reader of texels sees memory: what it may read, and who is told of what it does read.
pub trait Sight: Copy {
    fn view(self) -> View;
    /// A texel, or the block that holds it, is read from here.
    #[inline(always)]
    fn reads(self, _address: u64, _bytes: u32) {}
}

impl Sight for View {
    #[inline(always)]
    fn view(self) -> View {
        self
    }
}

/// Keeps what was read, for an observer.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    pub view: View,
    /// Addresses and bytes.
    pub texels: &'a RefCell<Vec<(u64, u32)>>,
}

impl Sight for Seen<'_> {
    fn view(self) -> View {
        self.view
    }
    fn reads(self, address: u64, bytes: u32) {
        self.texels.borrow_mut().push((address, bytes));
    }
}

/// A sampler at work on a texture.
pub(super) struct Reader<'a, S: Sight = View> {
    pub texture: &'a Texture,
    pub sampler: &'a Sampler,
    pub view: S,
    pub floats: bool,
    /// Reads of a row of ordinary memory: what lies beyond is 0.
    pub linear: bool,
    pub blend: Blend,
    compare: Option<f32>,
}

impl Texture {
    /// Components of the texel or the blend of texels: bits of f32 if the texture [`reads_floats`](Texture::reads_floats)
    /// or texels are compared, integers otherwise.
    ///
    /// # Errors
    /// Memory behind the texture is gone.
    pub fn fetch<S: Sight>(&self, sampler: &Sampler, fetch: &Fetch, view: S) -> Result<[u32; 4], Missing> {
        let reader = Reader::new(self, sampler, fetch.compare.is_some(), view);
        let reader = Reader {
            compare: fetch.compare.filter(|_| reader.floats),
            ..reader
        };
        reader.fetch(fetch)
    }
}

impl<'a, S: Sight> Reader<'a, S> {
    /// Of texels as they are, or of whether they pass a comparison.
    #[inline(always)]
    pub fn new(texture: &'a Texture, sampler: &'a Sampler, compares: bool, view: S) -> Reader<'a, S> {
        Reader {
            texture,
            sampler,
            view,
            floats: texture.reads_floats(),
            linear: matches!(texture.image.memory, Backing::Plain { linear: true }),
            blend: Blend::of(texture, compares),
            compare: None,
        }
    }

    /// Directions of a layer. A row is an image of one line, which is read at its edge: where the border begins there, half of
    /// what a filter reads is the border.
    #[inline(always)]
    pub fn directions(&self, geometry: Geometry, by_number: bool) -> usize {
        let beyond = geometry == Geometry::D1 && !by_number && !self.linear && self.filters();
        match beyond && self.sampler.address[1] == AddressMode::Border {
            true => 2,
            false => geometry.dimensions(),
        }
    }

    fn fetch(&self, fetch: &Fetch) -> Result<[u32; 4], Missing> {
        let image = &self.texture.image;
        let plain = image.levels.len() == 1 && fetch.gather.is_none() && !fetch.geometry.is_cube();
        if plain && !matches!(fetch.detail, Detail::Gradient(..)) {
            return self.plain(fetch);
        }
        let (mut at, scaled) = match fetch.at {
            Probe::Index(at) => (at.map(f64::from), false),
            Probe::Position(at) if fetch.geometry.is_cube() => (at.map(f64::from), true),
            Probe::Position(at) if self.sampler.is_normalized() => (at.map(f64::from).map(blend::position), true),
            Probe::Position(at) => (at.map(f64::from), false),
        };
        let whole = matches!(fetch.at, Probe::Index(_));
        let mut layer = if fetch.geometry.is_array() { fetch.layer } else { 0 };
        let derivative = |d: [f32; 3]| d.map(f64::from);
        let (mut dx, mut dy) = match fetch.detail {
            Detail::Gradient(dx, dy) => (derivative(dx), derivative(dy)),
            _ => ([0.0; 3], [0.0; 3]),
        };
        let mut face = None;
        if fetch.geometry.is_cube() {
            let (number, [s, t, m]) = cube::face(at);
            // The quotient's derivative, along s and t of the face.
            let onto = |d: [f64; 3]| {
                let [ds, dt, dm] = cube::along(number, d);
                [(ds - s / m * dm) / m / 2.0, (dt - t / m * dm) / m / 2.0, 0.0]
            };
            (dx, dy) = (onto(dx), onto(dy));
            at = [(s / m + 1.0) / 2.0, (t / m + 1.0) / 2.0, 0.0];
            layer = layer.min(image.array_size() - 1) * 6 + number;
            face = Some(number);
        }
        let finest = &image.levels[0];
        let layer = match fetch.geometry {
            Geometry::D3 => 0,
            _ => layer.min(image.layers.max(1) - 1),
        };
        let sizes = |level: &Level| [level.width, level.height, level.depth];
        let scale = match scaled {
            true => sizes(finest).map(f64::from),
            false => [1.0; 3],
        };
        let footprint = match fetch.detail {
            Detail::Gradient(..) => {
                let most = if self.filters() {
                    self.sampler.anisotropy.min(16)
                } else {
                    1
                };
                level::footprint(dx, dy, scale, most)
            }
            Detail::Level(level) => level::Footprint {
                level: level.into(),
                probes: 1,
                step: [0.0; 3],
            },
            Detail::Base => level::Footprint {
                level: 0.0,
                probes: 1,
                step: [0.0; 3],
            },
        };
        let (level, next, blend) = self.levels(footprint.level);
        let place = |level: &Level, at: [f64; 3]| -> [f64; 3] {
            let size = sizes(level);
            std::array::from_fn(|i| {
                let position = if scaled { at[i] * f64::from(size[i]) } else { at[i] };
                position + f64::from(fetch.offset[i])
            })
        };
        if let Some(component) = fetch.gather {
            return self.gather(
                &image.levels[level],
                place(&image.levels[level], at),
                layer,
                face,
                component,
            );
        }
        let pair = !whole && self.filters();
        if !pair && footprint.probes == 1 && blend == 0.0 {
            let level = &image.levels[level];
            return self.nearest(level, place(level, at), fetch.geometry, layer);
        }
        let mut sum = [-0.0; 4];
        for probe in 0..footprint.probes {
            let along = f64::from(probe) - f64::from(footprint.probes - 1) / 2.0;
            let at: [f64; 3] = std::array::from_fn(|i| at[i] + along * footprint.step[i]);
            for (number, weight) in [(level, 1.0 - blend), (next, blend)] {
                if weight == 0.0 {
                    continue;
                }
                let level = &image.levels[number];
                let place = place(level, at);
                let (found, weight) = match pair {
                    // The level is one more direction where there are two.
                    true if fetch.geometry != Geometry::D3 => {
                        (self.around(level, place, fetch.geometry, layer, face, weight)?, 1.0)
                    }
                    true => (self.around(level, place, fetch.geometry, layer, face, 1.0)?, weight),
                    false => (self.one(level, place, fetch.geometry, layer)?, weight),
                };
                for (sum, found) in sum.iter_mut().zip(found) {
                    *sum += weight / f64::from(footprint.probes) * found;
                }
            }
        }
        Ok(self.results(sum))
    }

    /// One level, no cube, no gradient: what most accesses are.
    fn plain(&self, fetch: &Fetch) -> Result<[u32; 4], Missing> {
        let image = &self.texture.image;
        let level = &image.levels[0];
        let layers = image.layers.max(1) - 1;
        let layer = if fetch.geometry.is_array() {
            fetch.layer.min(layers)
        } else {
            0
        };
        let (at, whole, scaled) = match fetch.at {
            Probe::Index(at) => (at.map(f64::from), true, false),
            Probe::Position(at) if self.sampler.is_normalized() => {
                (at.map(f64::from).map(blend::position), false, true)
            }
            Probe::Position(at) => (at.map(f64::from), false, false),
        };
        let dimensions = self.directions(fetch.geometry, whole);
        let sizes = [level.width, level.height, level.depth];
        let pair = !whole && self.filters();
        let axes: [Axis; 3] = std::array::from_fn(|i| {
            if i >= dimensions {
                return Axis::NONE;
            }
            let position = if scaled { at[i] * f64::from(sizes[i]) } else { at[i] };
            axis(
                position + f64::from(fetch.offset[i]),
                sizes[i],
                self.mode(i, false),
                pair,
            )
        });
        let deep = fetch.geometry == Geometry::D3;
        let [x, y, z] = &axes;
        if !pair {
            let z = if deep { z.index[0] } else { Some(layer) };
            return self.texel(level, x.index[0], y.index[0], z);
        }
        let slices = if deep {
            blend::depths(z.second)
        } else {
            blend::level(1.0)
        };
        let sum = self.corners([x.second, y.second], slices, |[i, j, k]| {
            let z = if deep { z.index[k] } else { Some(layer) };
            self.summed(level, x.index[i], y.index[j], z)
        })?;
        Ok(self.results(sum))
    }

    /// The sums of the shares of the texels around a position, of which `texel` gives one.
    fn corners(
        &self,
        second: [i32; 2],
        slices: [i32; 2],
        texel: impl Fn([usize; 3]) -> Result<[u32; 4], Missing>,
    ) -> Result<[f64; 4], Missing> {
        let shares = blend::shares(second, slices);
        let mut sum = [-0.0; 4];
        for slice in 0..2 {
            let (mut texels, mut largest) = ([[0; 4]; 4], [0; 4]);
            let shares = &shares[4 * slice..][..4];
            for corner in (0..4).filter(|&corner| shares[corner] != 0) {
                texels[corner] = texel([corner & 1, corner >> 1, slice])?;
                for (largest, bits) in largest.iter_mut().zip(texels[corner]) {
                    *largest = (*largest).max(bits & !(1 << 31));
                }
            }
            for corner in (0..4).filter(|&corner| shares[corner] != 0) {
                for (i, sum) in sum.iter_mut().enumerate() {
                    let blend = self.component(i);
                    let value = blend.summand(blend.lined_up(texels[corner][i], largest[i]));
                    *sum += f64::from(shares[corner]) * (1.0 / 256.0) * value;
                }
            }
        }
        Ok(sum)
    }

    #[inline(always)]
    pub fn component(&self, number: usize) -> Blend {
        self.blend.component(number, self.texture.image.format.channels)
    }

    /// Components of a weighted sum.
    fn results(&self, sum: [f64; 4]) -> [u32; 4] {
        std::array::from_fn(|i| self.component(i).result(sum[i]))
    }

    /// Only floating-point results are blended.
    pub fn filters(&self) -> bool {
        self.floats && self.sampler.filter == Filter::Linear && !self.linear
    }

    /// The level to read, the next coarser one, and how much of that.
    pub fn levels(&self, level: f64) -> (usize, usize, f64) {
        let last = self.texture.image.levels.len() - 1;
        if last == 0 {
            return (0, 0, 0.0);
        }
        // An H100 cuts each of them to 256ths before they are added and compared (tests/hardware/levels.cu).
        let cut = |level: f64| (level * 256.0).trunc() / 256.0;
        let [least, most] = self.sampler.level_clamp.map(|level| cut(level.into()));
        // In this order NaN becomes the finest.
        let level = (cut(level) + cut(self.sampler.level_bias.into())).max(least).min(most);
        let level = level.max(0.0).min(last as f64);
        if self.sampler.level_filter == Filter::Linear && self.floats {
            let whole = level.floor();
            return (whole as usize, (whole as usize + 1).min(last), level - whole);
        }
        // Halfway between two it is the coarser one.
        let nearest = (level + 0.5).floor() as usize;
        (nearest.min(last), nearest.min(last), 0.0)
    }

    pub fn mode(&self, direction: usize, cube: bool) -> AddressMode {
        // Beyond an edge lies another face; otherwise each face is a texture of its own (measured on an H100).
        if cube && self.sampler.seamless {
            return AddressMode::Clamp;
        }
        if self.linear {
            return AddressMode::Border;
        }
        match self.sampler.address[direction] {
            // Repetitions need coordinates that know of them.
            AddressMode::Wrap | AddressMode::Mirror if !self.sampler.is_normalized() => AddressMode::Clamp,
            mode => mode,
        }
    }

    fn axes(&self, level: &Level, at: [f64; 3], dimensions: usize, cube: bool, pair: bool) -> [Axis; 3] {
        let sizes = [level.width, level.height, level.depth];
        std::array::from_fn(|i| match i < dimensions {
            true => axis(at[i], sizes[i], self.mode(i, cube), pair),
            false => Axis::NONE,
        })
    }

    fn nearest(&self, level: &Level, at: [f64; 3], geometry: Geometry, layer: u32) -> Result<[u32; 4], Missing> {
        let [x, y, z] = self.place(level, at, geometry, layer);
        self.texel(level, x, y, z)
    }

    /// The texel at a position of a level; `None`, in a direction, beyond the image.
    fn place(&self, level: &Level, at: [f64; 3], geometry: Geometry, layer: u32) -> [Option<u32>; 3] {
        let cube = geometry.is_cube();
        let dimensions = if cube { 2 } else { geometry.dimensions() };
        let [x, y, z] = self.axes(level, at, dimensions, cube, false);
        let z = match geometry {
            Geometry::D3 => z.index[0],
            _ => Some(layer),
        };
        [x.index[0], y.index[0], z]
    }

    /// The sums of the texels' shares around a position of a level, which has the weight `weight`, but for three directions.
    fn around(
        &self,
        level: &Level,
        at: [f64; 3],
        geometry: Geometry,
        layer: u32,
        face: Option<u32>,
        weight: f64,
    ) -> Result<[f64; 4], Missing> {
        let dimensions = match face {
            Some(_) => 2,
            None => self.directions(geometry, false),
        };
        let [x, y, z] = &match face {
            // Texels beyond an edge are another face's, by their numbers before addressing.
            Some(_) if self.sampler.seamless => {
                let beyond = |at| axis(at, level.width, AddressMode::Border, true);
                [beyond(at[0]), beyond(at[1]), Axis::NONE]
            }
            _ => self.axes(level, at, dimensions, face.is_some(), true),
        };
        let slices = match geometry {
            Geometry::D3 => blend::depths(z.second),
            _ => blend::level(weight),
        };
        self.corners([x.second, y.second], slices, |[i, j, k]| match face {
            Some(face) if self.sampler.seamless => self.seamless(level, [x.raw[i], y.raw[j]], layer, face),
            _ => {
                let z = if geometry == Geometry::D3 {
                    z.index[k]
                } else {
                    Some(layer)
                };
                self.summed(level, x.index[i], y.index[j], z)
            }
        })
    }

    /// What is summed up of the texel at a position of a level.
    fn one(&self, level: &Level, at: [f64; 3], geometry: Geometry, layer: u32) -> Result<[f64; 4], Missing> {
        let [x, y, z] = self.place(level, at, geometry, layer);
        let texel = self.summed(level, x, y, z)?;
        Ok(std::array::from_fn(|i| self.component(i).summand(texel[i])))
    }

    /// A texel that may lie on another face; at a corner the mean of the three that meet there.
    fn seamless(&self, level: &Level, at: [i64; 2], layer: u32, face: u32) -> Result<[u32; 4], Missing> {
        let size = i64::from(level.width);
        let value = |x: i64, y: i64| {
            let (to, x, y) =
                cube::across(face, x, y, size).unwrap_or((face, x.clamp(0, size - 1), y.clamp(0, size - 1)));
            let layer = (layer - face.min(layer) + to).min(self.texture.image.layers.max(1) - 1);
            self.summed(level, Some(x as u32), Some(y as u32), Some(layer))
        };
        let [x, y] = at.map(|v| v.clamp(-1, size));
        let [inner_x, inner_y] = [x, y].map(|v| v.clamp(0, size - 1));
        if inner_x == x || inner_y == y {
            return value(x, y);
        }
        let three = [value(inner_x, inner_y)?, value(x, inner_y)?, value(inner_x, y)?];
        Ok(std::array::from_fn(|i| {
            self.component(i).mean(three.map(|texel| texel[i]))
        }))
    }

    /// One component of the four texels that a filter would blend, counter-clockwise from the lower left.
    fn gather(
        &self,
        level: &Level,
        at: [f64; 3],
        layer: u32,
        face: Option<u32>,
        component: usize,
    ) -> Result<[u32; 4], Missing> {
        let [x, y, _] = self.axes(level, at, 2, face.is_some(), true);
        let mut out = [0; 4];
        for (out, (i, j)) in out.iter_mut().zip([(0, 1), (1, 1), (1, 0), (0, 0)]) {
            *out = self.texel(level, x.index[i], y.index[j], Some(layer))?[component];
        }
        Ok(out)
    }

    /// `None`: beyond the image, where the border is.
    fn texel(&self, level: &Level, x: Option<u32>, y: Option<u32>, z: Option<u32>) -> Result<[u32; 4], Missing> {
        let image = &self.texture.image;
        let (Some(x), Some(y), Some(z)) = (x, y, z) else {
            let border = self.border();
            return Ok(if self.linear { border } else { self.compared(border) });
        };
        let raw = image.load(level, x, y, z, self.view)?;
        let (normalize, srgb) = (self.texture.normalize, self.texture.srgb);
        Ok(self.compared(image.format.read_at(raw, x, y, normalize, srgb)))
    }

    /// A texel as it is summed up: fractions are whole numbers.
    fn summed(&self, level: &Level, x: Option<u32>, y: Option<u32>, z: Option<u32>) -> Result<[u32; 4], Missing> {
        let format = self.texture.image.format;
        if !self.blend.is_of_fractions() {
            return self.texel(level, x, y, z);
        }
        let (Some(x), Some(y), Some(z)) = (x, y, z) else {
            let border = self.border();
            return Ok(std::array::from_fn(|i| self.component(i).border(border[i])));
        };
        let raw = self.texture.image.load(level, x, y, z, self.view)?;
        let mut texel = format.whole().read(raw, false, false);
        // What the format lacks is no whole number.
        if format.channels < 4 {
            texel[3] = 1.0_f32.to_bits();
        }
        Ok(texel)
    }

    /// What lies beyond the image; integer colours are given by their bits.
    pub fn border(&self) -> [u32; 4] {
        match self.linear {
            true => [0; 4],
            false => self.sampler.border.map(f32::to_bits),
        }
    }

    /// 1 for each channel that the reference does not exceed, 0 for the others.
    fn compared(&self, texel: [u32; 4]) -> [u32; 4] {
        let Some(reference) = self.compare else {
            return texel;
        };
        let mut out = texel;
        for out in out.iter_mut().take(self.texture.image.format.channels as usize) {
            let passes = reference <= f32::from_bits(*out);
            *out = if passes { 1.0_f32.to_bits() } else { 0 };
        }
        out
    }
}

impl Image {
    /// The bytes of a texel, or of its block; its place lies in the level, and its layer in the image.
    ///
    /// # Errors
    /// Ordinary memory that is not the kernel's.
    fn load(&self, level: &Level, x: u32, y: u32, z: u32, view: impl Sight) -> Result<[u8; 16], Missing> {
        let (bytes, edge) = (self.format.bytes(), self.format.edge());
        let (x, y) = (x / edge, y / edge);
        let offset = u64::from(z) * level.slice + u64::from(y) * level.pitch + u64::from(x) * u64::from(bytes);
        let address = level.address.wrapping_add(offset);
        if matches!(self.memory, Backing::Plain { .. }) {
            readable(view.view(), address, bytes)?;
        }
        view.reads(address, bytes);
        let mut out = [0; 16];
        // SAFETY: an array's memory is in the arena, whose pages stay readable once they were; ordinary memory was just
        // checked. A texel has at most 16 bytes. Sizes that are known make moves of what would be calls.
        unsafe {
            let (from, to) = (address as *const u8, out.as_mut_ptr());
            match bytes {
                4 => std::ptr::copy_nonoverlapping(from, to, 4),
                8 => std::ptr::copy_nonoverlapping(from, to, 8),
                16 => std::ptr::copy_nonoverlapping(from, to, 16),
                1 => std::ptr::copy_nonoverlapping(from, to, 1),
                _ => std::ptr::copy_nonoverlapping(from, to, 2),
            }
        }
        Ok(out)
    }
}

/// # Errors
/// Memory that is not the kernel's.
pub(super) fn readable(view: View, address: u64, bytes: u32) -> Result<(), Missing> {
    let length = u64::from(bytes);
    let space = AddressSpace::get();
    if view.check(address, length, READ)
        || space.host_range_contains(address, length, READ)
        || space.allows_exactly(view, address, length, READ)
    {
        return Ok(());
    }
    Err(Missing { address, bytes })
}
