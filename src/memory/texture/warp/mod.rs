//! Accesses of 32 threads at once, in stages over all of them: positions, texels' indices, loads, components, sums. Each
//! stage is a loop over lanes without branches, which the compiler makes vectors of.
//!
//! [`Texture::fetch_warp`] gives the bits that [`Texture::fetch`] gives lane by lane; what it leaves to that is rare: the
//! edges of seamless cubes, several probes, positions beyond 2^30 texels, memory that is not the kernel's.

mod axis;
mod texel;

use super::blend;
use super::sample::{Geometry, Reader, readable};
use super::{AddressMode, Backing, Level, Sampler, Texture, cube, level};
use crate::memory::{READ, View};
use axis::{Axis, FAR};
use texel::{components, load};

/// Threads in a warp.
pub const LANES: usize = 32;
/// A value of each thread.
pub type Run<T> = [T; LANES];

/// Levels of detail, in registers of 32 bits.
#[derive(Clone, Copy)]
pub enum Details<'a> {
    Base,
    Level(&'a Run<u32>),
    /// Bits of f32, by x and by y.
    Gradient([&'a Run<u32>; 3], [&'a Run<u32>; 3]),
}

/// What 32 threads want of one texture, as [`Fetch`](super::Fetch) for each: their registers of 32 bits.
#[derive(Clone, Copy)]
pub struct Fetches<'a> {
    pub geometry: Geometry,
    /// Threads that take part.
    pub active: u32,
    pub layer: Option<&'a Run<u32>>,
    /// Coordinates and levels are bits of f32; otherwise whole numbers.
    pub floats: bool,
    /// Directions that the geometry lacks are not looked at.
    pub at: [&'a Run<u32>; 3],
    pub offset: Option<[&'a Run<u32>; 3]>,
    pub details: Details<'a>,
    /// Bits of f32.
    pub compare: Option<&'a Run<u32>>,
    pub gather: Option<usize>,
}

/// A register that the access does not have.
pub static ZEROS: Run<u32> = [0; LANES];

/// Components of all threads: bits of f32, or integers.
pub type Texels = [Run<u32>; 4];

/// Memory to be looked at lane by lane, or something else that is rare.
struct Rare;

/// A reader with what concerns all of one access, in an image of `D` directions.
struct Warp<'a, const D: usize> {
    reader: Reader<'a>,
    fetches: &'a Fetches<'a>,
    layer: Run<u32>,
    at: [Run<f64>; D],
    scaled: bool,
    pair: bool,
    /// Some direction may lead beyond the image.
    bordered: bool,
    /// What lies there.
    border: [u32; 4],
}

impl Texture {
    /// Components for the active threads in `out`; what it holds for others is of no meaning. `false`: something rare, to
    /// be had of [`Texture::fetch`] for each thread.
    #[inline(always)]
    pub fn fetch_warp(&self, sampler: &Sampler, fetches: &Fetches<'_>, view: View, out: &mut Texels) -> bool {
        // Blocks are taken apart texel by texel.
        if self.image.format.edge() != 1 {
            return false;
        }
        if self.in_row(fetches, view, out) {
            return true;
        }
        let geometry = fetches.geometry;
        let reader = Reader::new(self, sampler, fetches.compare.is_some(), view);
        let done = match (geometry.is_cube(), reader.directions(geometry, !fetches.floats)) {
            (true, _) => Warp::<2>::cube(reader, fetches, out),
            (false, 1) => Warp::<1>::flat(reader, fetches, out),
            (false, 2) => Warp::<2>::flat(reader, fetches, out),
            (false, _) => Warp::<3>::flat(reader, fetches, out),
        };
        done.is_ok()
    }

    /// Texels of one row by whole numbers, as `tex1Dfetch` reads them, if all lie in it. `false`: nothing was done.
    #[inline(always)]
    fn in_row(&self, fetches: &Fetches<'_>, view: View, out: &mut Texels) -> bool {
        let ([level], false) = (&self.image.levels[..], fetches.floats) else {
            return false;
        };
        let is_plain = fetches.offset.is_none() && fetches.compare.is_none() && fetches.gather.is_none();
        if !is_plain || fetches.geometry != Geometry::D1 || !matches!(fetches.details, Details::Base) {
            return false;
        }
        // Whoever reads nothing reads where the first one does.
        let first = fetches.at[0][fetches.active.trailing_zeros() as usize % LANES];
        let (mut index, mut least, mut most) = (*fetches.at[0], first, first);
        for (lane, index) in index.iter_mut().enumerate() {
            *index = if fetches.active >> lane & 1 == 1 { *index } else { first };
            least = least.min(*index);
            most = most.max(*index);
        }
        if most >= level.width {
            return false;
        }
        let bytes = self.image.format.bytes();
        let mut address = [0_u64; LANES];
        for lane in 0..LANES {
            address[lane] = level.address + u64::from(index[lane]) * u64::from(bytes);
        }
        if let Backing::Plain { .. } = self.image.memory {
            let from = level.address + u64::from(least) * u64::from(bytes);
            let length = (u64::from(most - least) + 1) * u64::from(bytes);
            if !view.check(from, length, READ) {
                return false;
            }
        }
        // SAFETY: an array's memory is in the arena, whose pages stay readable once they were, and indices lie within the
        // row for all lanes; ordinary memory was checked just now. A texel has as many bytes as the format says.
        unsafe { load(&address, bytes, out) };
        components(self.image.format, self.normalize, self.srgb, out);
        true
    }
}

/// Bits of f32.
#[inline(always)]
fn double(bits: u32) -> f64 {
    f32::from_bits(bits).into()
}

impl Warp<'_, 2> {
    /// Directions → faces, and coordinates on them.
    #[inline(always)]
    fn cube(reader: Reader<'_>, fetches: &Fetches<'_>, out: &mut Texels) -> Result<(), Rare> {
        let (texture, is_seamless) = (reader.texture, reader.sampler.seamless);
        let mut warp = Warp::<2>::new(reader, fetches);
        if fetches.offset.is_some() || !fetches.floats || is_seamless && warp.pair {
            return Err(Rare);
        }
        warp.scaled = true;
        let [mut dx, mut dy] = [[[0.0; LANES]; 2]; 2];
        let last = texture.image.array_size() - 1;
        for lane in 0..LANES {
            let (number, [s, t, m]) = cube::face(fetches.at.map(|at| double(at[lane])));
            if let Details::Gradient(x, y) = &fetches.details {
                for (d, to) in [(x, &mut dx), (y, &mut dy)] {
                    let [ds, dt, dm] = cube::along(number, d.map(|d| double(d[lane])));
                    to[0][lane] = (ds - s / m * dm) / m / 2.0;
                    to[1][lane] = (dt - t / m * dm) / m / 2.0;
                }
            }
            warp.at[0][lane] = (s / m + 1.0) / 2.0;
            warp.at[1][lane] = (t / m + 1.0) / 2.0;
            warp.layer[lane] = warp.layer[lane].min(last) * 6 + number;
        }
        warp.run(&dx, &dy, out)
    }
}

impl<'a, const D: usize> Warp<'a, D> {
    #[inline(always)]
    fn new(reader: Reader<'a>, fetches: &'a Fetches<'a>) -> Warp<'a, D> {
        let is_layered = fetches.geometry.is_array();
        Warp {
            layer: fetches.layer.filter(|_| is_layered).map_or([0; LANES], |layer| *layer),
            at: [[0.0; LANES]; D],
            scaled: fetches.floats && reader.sampler.is_normalized(),
            pair: fetches.floats && reader.filters(),
            bordered: false,
            border: reader.border(),
            reader,
            fetches,
        }
    }

    #[inline(always)]
    fn flat(reader: Reader<'_>, fetches: &Fetches<'_>, out: &mut Texels) -> Result<(), Rare> {
        let mut warp = Warp::<D>::new(reader, fetches);
        for i in 0..D {
            let (from, to) = (fetches.at[i], &mut warp.at[i]);
            if fetches.floats {
                (0..LANES).for_each(|lane| to[lane] = double(from[lane]));
                if warp.scaled {
                    (0..LANES).for_each(|lane| to[lane] = blend::position(to[lane]));
                }
            } else {
                (0..LANES).for_each(|lane| to[lane] = f64::from(from[lane] as i32));
            }
        }
        let [mut dx, mut dy] = [[[0.0; LANES]; D]; 2];
        if let Details::Gradient(x, y) = &fetches.details {
            for i in 0..D {
                for lane in 0..LANES {
                    (dx[i][lane], dy[i][lane]) = (double(x[i][lane]), double(y[i][lane]));
                }
            }
        }
        warp.run(&dx, &dy, out)
    }

    #[inline(always)]
    fn run(&mut self, dx: &[Run<f64>; D], dy: &[Run<f64>; D], out: &mut Texels) -> Result<(), Rare> {
        let image = &self.reader.texture.image;
        let last = if D == 3 { 0 } else { image.layers.max(1) - 1 };
        self.layer.iter_mut().for_each(|layer| *layer = (*layer).min(last));
        self.bordered = (0..D).any(|i| self.mode(i) == AddressMode::Border);
        match image.levels.len() == 1 && !matches!(self.fetches.details, Details::Gradient(..)) {
            true => self.one_level(&image.levels[0], out),
            false => self.levels(dx, dy, out),
        }
    }

    #[inline(always)]
    fn mode(&self, direction: usize) -> AddressMode {
        self.reader.mode(direction, self.fetches.geometry.is_cube())
    }

    #[inline(always)]
    fn one_level(&self, level: &Level, out: &mut Texels) -> Result<(), Rare> {
        let active = self.fetches.active;
        if self.fetches.gather.is_some() {
            return self.gather(level, active, out);
        }
        if self.pair {
            let mut sum = [[-0.0; LANES]; 4];
            self.blend(level, active, &[1.0; LANES], &mut sum)?;
            self.results(&sum, out);
            return Ok(());
        }
        let mut axes = [Axis::NONE; D];
        self.axes(level, active, &mut axes)?;
        self.texels(level, &axes, 0, active, false, out)
    }

    #[inline(always)]
    fn levels(&self, dx: &[Run<f64>; D], dy: &[Run<f64>; D], out: &mut Texels) -> Result<(), Rare> {
        let levels = &self.reader.texture.image.levels;
        let wanted = self.wanted(dx, dy)?;
        let (mut sum, mut summed) = ([[-0.0; LANES]; 4], 0);
        for coarser in [false, true] {
            let mut rest = self.fetches.active;
            while rest != 0 {
                let (number, group, weight) = next_level(&wanted, coarser, &mut rest);
                let level = &levels[number];
                // Gathers read one level.
                if group == 0 || coarser && self.fetches.gather.is_some() {
                    continue;
                }
                if self.pair && self.fetches.gather.is_none() {
                    summed |= group;
                    self.blend(level, group, &weight, &mut sum)?;
                    continue;
                }
                let mut found = [[0; LANES]; 4];
                if self.fetches.gather.is_some() {
                    self.gather(level, group, &mut found)?;
                    merge(out, &found, group);
                    continue;
                }
                let mut axes = [Axis::NONE; D];
                self.axes(level, group, &mut axes)?;
                let whole = which(&weight, |weight| weight == 1.0);
                if group & whole != 0 {
                    self.texels(level, &axes, 0, group & whole, false, &mut found)?;
                    merge(out, &found, group & whole);
                }
                if group & !whole != 0 {
                    summed |= group & !whole;
                    self.texels(level, &axes, 0, group & !whole, true, &mut found)?;
                    self.add(&found, &masked(&weight, group & !whole), &mut sum);
                }
            }
        }
        if summed != 0 {
            let mut found = [[0; LANES]; 4];
            self.results(&sum, &mut found);
            merge(out, &found, summed);
        }
        Ok(())
    }

    /// For each thread the level to read, the next one, and how much of that.
    #[inline(always)]
    fn wanted(&self, dx: &[Run<f64>; D], dy: &[Run<f64>; D]) -> Result<Run<(usize, usize, f64)>, Rare> {
        let finest = &self.reader.texture.image.levels[0];
        let scale = match self.scaled {
            true => [finest.width, finest.height, finest.depth].map(f64::from),
            false => [1.0; 3],
        };
        let most = match self.reader.filters() {
            true => self.reader.sampler.anisotropy.min(16),
            false => 1,
        };
        let mut wanted = [(0, 0, 0.0); LANES];
        for lane in (0..LANES).filter(|lane| self.fetches.active >> lane & 1 == 1) {
            let of = |d: &[Run<f64>; D]| -> [f64; 3] { std::array::from_fn(|i| d.get(i).map_or(0.0, |d| d[lane])) };
            let level = match &self.fetches.details {
                Details::Base => 0.0,
                Details::Level(level) if self.fetches.floats => double(level[lane]),
                Details::Level(level) => f64::from(level[lane] as i32 as f32),
                Details::Gradient(..) => {
                    let footprint = level::footprint(of(dx), of(dy), scale, most);
                    if footprint.probes != 1 {
                        return Err(Rare);
                    }
                    footprint.level
                }
            };
            wanted[lane] = self.reader.levels(level);
        }
        Ok(wanted)
    }

    #[inline(always)]
    fn axes(&self, level: &Level, group: u32, axes: &mut [Axis; D]) -> Result<(), Rare> {
        let pair = self.pair || self.fetches.gather.is_some();
        let sizes = [level.width, level.height, level.depth];
        let mut farthest = 0;
        for i in 0..D {
            let scale = if self.scaled { f64::from(sizes[i]) } else { 1.0 };
            let mut position = [0.0; LANES];
            match &self.fetches.offset {
                Some(offset) => {
                    let offset = offset[i];
                    for lane in 0..LANES {
                        position[lane] = self.at[i][lane] * scale + f64::from(offset[lane] as i32);
                    }
                }
                None => {
                    for (lane, position) in position.iter_mut().enumerate() {
                        *position = self.at[i][lane] * scale;
                    }
                }
            }
            for (lane, position) in position.iter_mut().enumerate() {
                *position = if group >> lane & 1 == 1 { *position } else { 0.0 };
                // Without its sign; what is infinite or no number is greater than all others.
                farthest = farthest.max(position.to_bits() << 1);
            }
            if farthest >= FAR.to_bits() << 1 {
                return Err(Rare);
            }
            axes[i].fill(&position, sizes[i], self.mode(i), pair);
        }
        Ok(())
    }

    /// Adds the sums of the shares of the texels around, times `weight`.
    #[inline(always)]
    fn blend(&self, level: &Level, group: u32, weight: &Run<f64>, sum: &mut [Run<f64>; 4]) -> Result<(), Rare> {
        let mut axes = [Axis::NONE; D];
        self.axes(level, group, &mut axes)?;
        let mut shares = [[0; LANES]; 8];
        for lane in 0..LANES {
            let second = |i: usize| axes.get(i).map_or(0, |axis| axis.second[lane]);
            // The level is one more direction where there are two.
            let slices = if D == 3 {
                blend::depths(second(2))
            } else {
                blend::level(weight[lane])
            };
            for (share, own) in shares.iter_mut().zip(blend::shares([second(0), second(1)], slices)) {
                share[lane] = own;
            }
        }
        let weight = masked(if D == 3 { weight } else { &[1.0; LANES] }, group);
        for slice in 0..if D == 3 { 2 } else { 1 } {
            let corners = if D == 1 { 2 } else { 4 };
            let (mut found, mut any) = ([[[0; LANES]; 4]; 4], [false; 4]);
            let mut largest = [[0; LANES]; 4];
            for corner in 0..corners {
                let share = &shares[corner | slice << 2];
                let needed = which(share, |share| share != 0) & group;
                any[corner] = needed != 0;
                if needed == 0 {
                    continue;
                }
                let read = match self.reader.texture.image.memory {
                    Backing::Array(_) => group,
                    Backing::Plain { .. } => needed,
                };
                self.texels(level, &axes, corner | slice << 2, read, true, &mut found[corner])?;
                for (largest, found) in largest.iter_mut().zip(&found[corner]).take(self.summands()) {
                    for lane in 0..LANES {
                        let magnitude = if share[lane] == 0 { 0 } else { found[lane] & !(1 << 31) };
                        largest[lane] = largest[lane].max(magnitude);
                    }
                }
            }
            for corner in (0..corners).filter(|&corner| any[corner]) {
                let share = &shares[corner | slice << 2];
                for i in 0..self.summands() {
                    let blend = self.reader.component(i);
                    for lane in 0..LANES {
                        let texel = blend.lined_up(found[corner][i][lane], largest[i][lane]);
                        let part = f64::from(share[lane]) * (1.0 / 256.0) * weight[lane] * blend.summand(texel);
                        // A texel that has no share does not count, whatever it is.
                        let counts = share[lane] != 0 && weight[lane] != 0.0;
                        sum[i][lane] += if counts { part } else { -0.0 };
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds texels, times their weights.
    #[inline(always)]
    fn add(&self, texels: &Texels, weight: &Run<f64>, sum: &mut [Run<f64>; 4]) {
        for i in 0..self.summands() {
            let blend = self.reader.component(i);
            for lane in 0..LANES {
                let part = weight[lane] * blend.summand(texels[i][lane]);
                sum[i][lane] += if weight[lane] == 0.0 { -0.0 } else { part };
            }
        }
    }

    /// How many components have to be summed up: what a format lacks is the same everywhere but in the border.
    #[inline(always)]
    fn summands(&self) -> usize {
        match self.bordered {
            true => 4,
            false => self.reader.texture.image.format.channels as usize,
        }
    }

    #[inline(always)]
    fn results(&self, sum: &[Run<f64>; 4], out: &mut Texels) {
        for i in 0..4 {
            if i >= self.summands() {
                out[i] = [if i == 3 { 1.0_f32.to_bits() } else { 0 }; LANES];
                continue;
            }
            let blend = self.reader.component(i);
            for lane in 0..LANES {
                out[i][lane] = blend.result(sum[i][lane]);
            }
        }
    }

    /// One component of the four texels that a filter would blend, counter-clockwise from the lower left.
    #[inline(always)]
    fn gather(&self, level: &Level, group: u32, out: &mut Texels) -> Result<(), Rare> {
        let component = self.fetches.gather.unwrap_or(0) & 3;
        let mut axes = [Axis::NONE; D];
        self.axes(level, group, &mut axes)?;
        for (out, corner) in out.iter_mut().zip([2, 3, 1, 0]) {
            let mut found = [[0; LANES]; 4];
            self.texels(level, &axes, corner, group, false, &mut found)?;
            *out = found[component];
        }
        Ok(())
    }

    /// The texels at one of the corners: a bit of `corner` for each direction; for threads outside of `group`, anything.
    /// If they are to be summed up, fractions are whole numbers.
    #[inline(always)]
    fn texels(
        &self,
        level: &Level,
        axes: &[Axis; D],
        corner: usize,
        group: u32,
        to_sum: bool,
        out: &mut Texels,
    ) -> Result<(), Rare> {
        let texture = self.reader.texture;
        let format = texture.image.format;
        let bytes = format.bytes();
        let is_whole = to_sum && self.reader.blend.is_of_fractions();
        let border = match is_whole {
            true => std::array::from_fn(|i| self.reader.component(i).border(self.border[i])),
            false => self.border,
        };
        let index = |i: usize| &axes[i].index[corner >> i & 1];
        let mut address = [0_u64; LANES];
        let x = index(0);
        for lane in 0..LANES {
            address[lane] = level.address.wrapping_add(u64::from(x[lane]) * u64::from(bytes));
        }
        if D > 1 {
            let y = index(1);
            for lane in 0..LANES {
                address[lane] = address[lane].wrapping_add(u64::from(y[lane]) * level.pitch);
            }
        }
        if D == 3 || texture.image.layers > 1 {
            let z = if D == 3 { index(2) } else { &self.layer };
            for lane in 0..LANES {
                address[lane] = address[lane].wrapping_add(u64::from(z[lane]) * level.slice);
            }
        }
        let mut inside = [u32::MAX; LANES];
        if self.bordered {
            for (i, axis) in axes.iter().enumerate() {
                let own = &axis.inside[corner >> i & 1];
                (0..LANES).for_each(|lane| inside[lane] &= own[lane]);
            }
        }
        if matches!(texture.image.memory, Backing::Plain { .. }) {
            // Whoever reads nothing there reads where another does.
            let (mut known, mut good) = (None, true);
            for lane in 0..LANES {
                if group >> lane & 1 == 1 && inside[lane] != 0 {
                    good &= self.reader.view.check(address[lane], bytes.into(), READ);
                    known = Some(address[lane]);
                }
            }
            if !good {
                for lane in 0..LANES {
                    if group >> lane & 1 == 1 && inside[lane] != 0 {
                        readable(self.reader.view, address[lane], bytes).map_err(|_| Rare)?;
                    }
                }
            }
            let Some(known) = known else {
                self.beyond(&border, &[0; LANES], out);
                return Ok(());
            };
            for lane in 0..LANES {
                let reads = group >> lane & 1 == 1 && inside[lane] != 0;
                address[lane] = if reads { address[lane] } else { known };
            }
        }
        // SAFETY: an array's memory is in the arena, whose pages stay readable once they were, and indices lie within the
        // array for all lanes; ordinary memory was checked just now. A texel has as many bytes as the format says.
        unsafe { load(&address, bytes, out) };
        if is_whole {
            components(format.whole(), false, false, out);
            // What the format lacks is no whole number.
            if format.channels < 4 {
                out[3] = [1.0_f32.to_bits(); LANES];
            }
        } else {
            components(format, texture.normalize, texture.srgb, out);
        }
        if let Some(reference) = self.fetches.compare.as_ref().filter(|_| self.reader.floats) {
            for out in out.iter_mut().take(format.channels as usize) {
                for lane in 0..LANES {
                    let passes = f32::from_bits(reference[lane]) <= f32::from_bits(out[lane]);
                    out[lane] = if passes { 1.0_f32.to_bits() } else { 0 };
                }
            }
        }
        if self.bordered {
            self.beyond(&border, &inside, out);
        }
        Ok(())
    }

    /// What threads read that are not inside of the image.
    #[inline(always)]
    fn beyond(&self, border: &[u32; 4], inside: &Run<u32>, out: &mut Texels) {
        let channels = self.reader.texture.image.format.channels as usize;
        for (i, out) in out.iter_mut().enumerate() {
            let mut border = [border[i]; LANES];
            if let Some(reference) = self.fetches.compare.as_ref() {
                let is_compared = i < channels && !self.reader.linear && self.reader.floats;
                for lane in 0..LANES {
                    let passes = f32::from_bits(reference[lane]) <= f32::from_bits(border[lane]);
                    let result = if passes { 1.0_f32.to_bits() } else { 0 };
                    border[lane] = if is_compared { result } else { border[lane] };
                }
            }
            for lane in 0..LANES {
                out[lane] = out[lane] & inside[lane] | border[lane] & !inside[lane];
            }
        }
    }
}

/// One of the levels that threads want (the finer or the coarser of their two), the threads of `rest` for which it counts,
/// and how much. Takes all that want it out of `rest`.
#[inline(always)]
fn next_level(wanted: &Run<(usize, usize, f64)>, coarser: bool, rest: &mut u32) -> (usize, u32, Run<f64>) {
    let of = |lane: usize| {
        let (level, next, blend) = wanted[lane];
        if coarser { (next, blend) } else { (level, 1.0 - blend) }
    };
    let left = *rest;
    let level = of(left.trailing_zeros() as usize).0;
    let (mut group, mut weight) = (0, [0.0; LANES]);
    for lane in (0..LANES).filter(|lane| left >> lane & 1 == 1) {
        let (own, part) = of(lane);
        if own == level {
            *rest &= !(1 << lane);
            group |= u32::from(part != 0.0) << lane;
            weight[lane] = part;
        }
    }
    (level, group, weight)
}

/// A bit for each thread of whose weight something is true. A loop, for `fold` would be code of its own, which does not know what the CPU
/// has.
#[inline(always)]
fn which<T: Copy>(weights: &Run<T>, is_so: impl Fn(T) -> bool) -> u32 {
    let mut bits = 0;
    for (lane, &weight) in weights.iter().enumerate() {
        bits |= u32::from(is_so(weight)) << lane;
    }
    bits
}

/// The weights of threads in `group`; 0 for others.
#[inline(always)]
fn masked(weight: &Run<f64>, group: u32) -> Run<f64> {
    let mut out = [0.0; LANES];
    for lane in 0..LANES {
        out[lane] = if group >> lane & 1 == 1 { weight[lane] } else { 0.0 };
    }
    out
}

/// Takes over what was found for some threads.
#[inline(always)]
fn merge(out: &mut Texels, found: &Texels, group: u32) {
    for (out, found) in out.iter_mut().zip(found) {
        for lane in 0..LANES {
            out[lane] = if group >> lane & 1 == 1 { found[lane] } else { out[lane] };
        }
    }
}
