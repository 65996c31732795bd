//! Which elements of a tensor a copy touches, and where they stand in shared memory: a box, row by row (PTX ISA,
//! Tensors).
//!
//! A **row** is what a box holds along the first dimension, in **units** that move as one: elements, packed elements,
//! or slices of interleaved channels. Rows stand one behind the other in shared memory, each widened to what is
//! swizzled.
//!
//! Interleaved channels (NC/8DHWC8) have no dimension of their own: a slice of 16 or 32 bytes is what the dimensions W,
//! H, D, slices, N count, and a box holds slices of one number.

use super::{Element, Interleave, MOST, Mode, TensorMap, Unit};
use crate::memory::swizzle::Swizzle;

/// Pixels of `.im2col::w::128`, and in how many parts they have their halos.
const WIDE_PIXELS: u32 = 128;
const WIDE_PARTS: u32 = 4;

/// How a box lies in the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    Tile,
    /// `.tile::gather4`, `.tile::scatter4`: four rows, anywhere.
    Rows([i32; 4]),
    /// Pixels of images, moved by W, H, D.
    Im2col([u16; 3]),
    /// Pixels along W alone, and those behind the last.
    Im2colW {
        halo: u16,
        offset: u16,
    },
    Im2colW128 {
        halo: u16,
        offset: u16,
    },
}

/// A box of a tensor, as a copy names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorBox {
    map: TensorMap,
    start: [i64; MOST],
    walk: Walk,
    unit: Unit,
    /// Units of a row.
    units: u32,
    /// Bytes in global memory from a unit to the next that is copied.
    spacing: u64,
    rows: u32,
}

/// A row of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The how many-th it is in shared memory.
    pub place: u32,
    /// Of its units those that lie in the tensor, from `first` to before `last`; none if they are the same.
    pub first: u32,
    pub last: u32,
    /// Where unit `first` lies in global memory.
    pub address: u64,
}

impl TensorBox {
    /// The box that starts at `start`, which has a coordinate for each dimension. `writes`: shared memory is read.
    ///
    /// # Errors
    /// The map, the coordinates and the way do not go together.
    pub fn new(map: TensorMap, start: &[i32], walk: Walk, writes: bool) -> Result<TensorBox, &'static str> {
        if start.len() != usize::from(map.rank) {
            return Err("the instruction has another number of dimensions than the tensor map");
        }
        let mode = match walk {
            Walk::Tile | Walk::Rows(_) => Mode::Tiled,
            Walk::Im2col(_) => Mode::Im2col,
            Walk::Im2colW { .. } => Mode::Im2colW,
            Walk::Im2colW128 { .. } => Mode::Im2colW128,
        };
        if map.mode != mode {
            return Err("the tensor map is made for another mode than the instruction's");
        }
        let mut coordinates = [0; MOST];
        for (to, from) in coordinates.iter_mut().zip(start) {
            *to = i64::from(*from);
        }
        let slices = map.interleave != Interleave::None;
        let unit = match map.interleave {
            Interleave::None => map.element.unit(),
            Interleave::B16 => Unit::slice(16),
            Interleave::B32 => Unit::slice(32),
        };
        let inner = match (walk, slices) {
            (Walk::Tile | Walk::Rows(_), false) => map.tile[0] / unit.elements,
            (Walk::Tile | Walk::Rows(_), true) => map.tile[0].div_ceil(map.steps[0]),
            (Walk::Im2col(_) | Walk::Im2colW { .. } | Walk::Im2colW128 { .. }, false) => {
                map.channels.div_ceil(unit.elements)
            }
            // Each pixel is one slice.
            (Walk::Im2col(_) | Walk::Im2colW { .. } | Walk::Im2colW128 { .. }, true) => 1,
        };
        let step = if slices { u64::from(map.steps[0]) } else { 1 };
        let mut this = TensorBox {
            map,
            start: coordinates,
            walk,
            unit,
            units: inner,
            spacing: step * u64::from(unit.global),
            rows: 0,
        };
        this.rows = this.count_rows();
        match this.wrong(writes) {
            None => Ok(this),
            Some(why) => Err(why),
        }
    }

    fn wrong(&self, writes: bool) -> Option<&'static str> {
        let map = &self.map;
        let slices = map.interleave != Interleave::None;
        let aligned = match map.element {
            Element::U4Align16 | Element::U6Align16 => 128,
            Element::U4Align8 => 2,
            _ => 1,
        };
        if !slices && self.start[0] % aligned != 0 {
            return Some("the first coordinate is no multiple of the elements that are packed together");
        }
        match self.walk {
            Walk::Tile => {}
            Walk::Rows(_) if map.rank != 2 || slices => {
                return Some("rows are gathered and scattered in tensors of two dimensions");
            }
            Walk::Rows(_) if map.tile[1] != 1 => {
                return Some("rows are gathered and scattered by boxes of one row");
            }
            Walk::Rows(_) => {}
            Walk::Im2col(offsets) => {
                // (PTX ISA, im2col mode, Table of offsets)
                let most: u32 = match map.rank {
                    3 => 1 << 16,
                    4 => 1 << 8,
                    _ => 1 << 5,
                };
                if offsets.iter().any(|offset| u32::from(*offset) >= most) {
                    return Some("an im2col offset is out of range");
                }
            }
            Walk::Im2colW { halo, offset } if halo >= 512 || offset >= 32 => {
                return Some("wHalo is 512 or more, or wOffset 32 or more");
            }
            Walk::Im2colW128 { halo, offset } if halo >= 32 || offset >= 32 => {
                return Some("wHalo or wOffset is 32 or more");
            }
            Walk::Im2colW { .. } | Walk::Im2colW128 { .. } => {}
        }
        if self.is_im2col() {
            let (lower, upper) = self.bounds();
            let first = map.first_spatial();
            for axis in 0..self.moving_axes() {
                let at = self.start[first + axis] + i64::from(self.shift());
                // In the wide modes it may lie to the left.
                let left = self.is_wide() || at >= lower[axis];
                if !left || at >= upper[axis] {
                    return Some("the pixel box does not hold the coordinates");
                }
            }
        }
        match writes {
            true => self.wrong_source(),
            false => None,
        }
    }

    /// What is not copied from shared to global memory (PTX ISA, Restriction on Tensor Copy instructions).
    fn wrong_source(&self) -> Option<&'static str> {
        let map = &self.map;
        if map.element == Element::U4Align16 {
            return Some("elements of 4 bits with gaps are not copied to global memory");
        }
        if map.swizzle == Swizzle::B128Atom32Flip8 {
            return Some("nothing is copied to global memory whose halves of 16 bytes change places");
        }
        // Rows that are scattered may lie outside.
        let scatters = matches!(self.walk, Walk::Rows(_));
        if !scatters && self.start.iter().any(|at| *at < 0) {
            return Some("a copy to global memory starts at a negative coordinate");
        }
        if self.is_im2col() && (map.lower.iter().any(|at| *at < 0) || map.upper.iter().any(|at| *at > 0)) {
            return Some("a copy to global memory has a pixel box that leaves the tensor");
        }
        None
    }

    fn is_im2col(&self) -> bool {
        match self.walk {
            Walk::Tile | Walk::Rows(_) => false,
            Walk::Im2col(_) | Walk::Im2colW { .. } | Walk::Im2colW128 { .. } => true,
        }
    }

    fn is_wide(&self) -> bool {
        match self.walk {
            Walk::Tile | Walk::Rows(_) | Walk::Im2col(_) => false,
            Walk::Im2colW { .. } | Walk::Im2colW128 { .. } => true,
        }
    }

    /// By how much the wide modes move box and pixels along W.
    fn shift(&self) -> u16 {
        match self.walk {
            Walk::Tile | Walk::Rows(_) | Walk::Im2col(_) => 0,
            Walk::Im2colW { offset, .. } | Walk::Im2colW128 { offset, .. } => offset,
        }
    }

    /// Of W, H, D those along which pixels are walked.
    fn moving_axes(&self) -> usize {
        match self.is_wide() {
            true => 1,
            false => usize::from(self.map.rank) - 2,
        }
    }

    /// The pixel box: its first pixel, and the first behind it.
    fn bounds(&self) -> ([i64; 3], [i64; 3]) {
        let (map, shift) = (&self.map, i64::from(self.shift()));
        let mut bounds = ([0; 3], [0; 3]);
        for axis in 0..self.moving_axes() {
            bounds.0[axis] = i64::from(map.lower[axis]) + shift;
            bounds.1[axis] = map.dims[map.first_spatial() + axis] as i64 + i64::from(map.upper[axis]) + shift;
        }
        bounds
    }

    /// How many are copied along dimension `index` of a tile, behind the first.
    fn count(&self, index: usize) -> u32 {
        let map = &self.map;
        // A box holds slices of one number: of the dimension before the images.
        if map.interleave != Interleave::None && index + 2 == usize::from(map.rank) {
            return 1;
        }
        map.tile[index].div_ceil(map.steps[index])
    }

    fn count_rows(&self) -> u32 {
        match self.walk {
            Walk::Tile => (1..usize::from(self.map.rank)).map(|index| self.count(index)).product(),
            Walk::Rows(rows) => rows.len() as u32,
            Walk::Im2col(_) => self.map.pixels,
            Walk::Im2colW { halo, .. } => self.map.pixels + u32::from(halo),
            Walk::Im2colW128 { halo, .. } => WIDE_PIXELS + WIDE_PARTS * u32::from(halo),
        }
    }

    pub fn map(&self) -> &TensorMap {
        &self.map
    }

    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// Units of a row.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Bytes in global memory from a unit to the next that is copied.
    pub fn spacing(&self) -> u64 {
        self.spacing
    }

    /// Bytes that a row takes in shared memory, gaps between packed elements included.
    pub fn row_bytes(&self) -> u32 {
        self.units * self.unit.shared
    }

    /// Bytes in shared memory from the start of a row to that of the next.
    pub fn pitch(&self) -> u32 {
        self.row_bytes().max(self.map.swizzle.span().unwrap_or(0))
    }

    /// Bytes of shared memory from where the box starts to behind the last that it may touch.
    pub fn extent(&self) -> u64 {
        let plain = u64::from(self.rows) * u64::from(self.pitch());
        // What is swizzled stays in its span, which starts at a multiple of it.
        match self.map.swizzle.span() {
            None => plain,
            Some(96) => plain.next_multiple_of(32),
            Some(span) => plain.next_multiple_of(span.into()),
        }
    }

    /// The same box of a tensor that starts elsewhere.
    pub fn moved(self, address: u64) -> TensorBox {
        let map = TensorMap { address, ..self.map };
        TensorBox { map, ..self }
    }

    /// Bytes that a copy to shared memory counts: all of the box, whether they lie in the tensor or not, without gaps.
    pub fn transferred(&self) -> u32 {
        self.rows * self.units * self.unit.global
    }

    /// All rows, in any order.
    ///
    /// # Errors
    /// What `f` says.
    pub fn rows<E>(&self, f: impl FnMut(Row) -> Result<(), E>) -> Result<(), E> {
        match self.walk {
            Walk::Tile => self.tile_rows(f),
            Walk::Rows(rows) => self.scattered_rows(rows, f),
            Walk::Im2col(_) | Walk::Im2colW { .. } | Walk::Im2colW128 { .. } => self.pixel_rows(f),
        }
    }

    /// The row at these coordinates, of which the first is the start's.
    fn row(&self, place: u32, at: &[i64; MOST]) -> Row {
        let map = &self.map;
        let inside = (1..usize::from(map.rank)).all(|index| (0..map.dims[index] as i64).contains(&at[index]));
        if !inside {
            return Row {
                place,
                first: 0,
                last: 0,
                address: 0,
            };
        }
        // Units before 0, and before the end of the tensor.
        let step = (self.spacing / u64::from(self.unit.global)) as i64 * i64::from(self.unit.elements);
        let units = i64::from(self.units);
        let up_to = |elements: i64| (-((-elements).div_euclid(step))).clamp(0, units);
        let first = up_to(-at[0]);
        let last = up_to(map.dims[0] as i64 - at[0]).max(first);
        let unit = (at[0] + first * step) / i64::from(self.unit.elements);
        // Sums wrap around: programs make strides so large that they do.
        let mut address = map
            .address
            .wrapping_add((unit as u64).wrapping_mul(self.unit.global.into()));
        for (at, stride) in at.iter().skip(1).zip(map.strides).take(usize::from(map.rank) - 1) {
            address = address.wrapping_add((*at as u64).wrapping_mul(stride));
        }
        Row {
            place,
            first: first as u32,
            last: last as u32,
            address,
        }
    }

    fn tile_rows<E>(&self, mut f: impl FnMut(Row) -> Result<(), E>) -> Result<(), E> {
        let rank = usize::from(self.map.rank);
        let mut at = self.start;
        let mut turns = [0; MOST];
        for place in 0..self.rows {
            f(self.row(place, &at))?;
            for index in 1..rank {
                turns[index] += 1;
                at[index] += i64::from(self.map.steps[index]);
                if turns[index] < self.count(index) {
                    break;
                }
                (turns[index], at[index]) = (0, self.start[index]);
            }
        }
        Ok(())
    }

    fn scattered_rows<E>(&self, rows: [i32; 4], mut f: impl FnMut(Row) -> Result<(), E>) -> Result<(), E> {
        for (place, row) in rows.into_iter().enumerate() {
            let mut at = self.start;
            at[1] = row.into();
            f(self.row(place as u32, &at))?;
        }
        Ok(())
    }

    fn pixel_rows<E>(&self, mut f: impl FnMut(Row) -> Result<(), E>) -> Result<(), E> {
        let first = self.map.first_spatial();
        let (offsets, pixels, parts, halo) = match self.walk {
            Walk::Im2col(offsets) => (offsets, self.map.pixels, 1, 0),
            Walk::Im2colW { halo, .. } => ([0; 3], self.map.pixels, 1, halo),
            Walk::Im2colW128 { halo, .. } => ([0; 3], WIDE_PIXELS, WIDE_PARTS, halo),
            Walk::Tile | Walk::Rows(_) => return Ok(()),
        };
        let mut pixel = self.start;
        pixel[first] += i64::from(self.shift());
        let moved = |pixel: &[i64; MOST]| {
            let mut at = *pixel;
            for axis in 0..usize::from(self.map.rank) - 2 {
                at[first + axis] += i64::from(offsets[axis]);
            }
            at
        };
        let each = pixels / parts;
        for part in 0..parts {
            for index in 0..each {
                f(self.row(part * each + index, &moved(&pixel)))?;
                self.advance(&mut pixel);
            }
            // The halo is what follows. It stands behind all pixels, of each part in turn.
            let mut behind = pixel;
            for index in 0..u32::from(halo) {
                f(self.row(pixels + index * parts + part, &moved(&behind)))?;
                self.advance(&mut behind);
            }
        }
        Ok(())
    }

    /// To the next pixel: along W, then H, then D, each from the box's lower corner again, then to the next image.
    fn advance(&self, pixel: &mut [i64; MOST]) {
        let (map, first) = (&self.map, self.map.first_spatial());
        let (lower, upper) = self.bounds();
        for axis in 0..self.moving_axes() {
            let at = &mut pixel[first + axis];
            *at += i64::from(map.steps[first + axis]);
            if *at < upper[axis] {
                return;
            }
            *at = lower[axis];
        }
        let images = usize::from(map.rank) - 1;
        pixel[images] += i64::from(map.steps[images]);
    }
}

impl Unit {
    /// Interleaved channels move as slices, whatever their elements are.
    fn slice(bytes: u32) -> Unit {
        Unit {
            elements: 1,
            global: bytes,
            shared: bytes,
        }
    }
}
