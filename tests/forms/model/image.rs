//! Textures and surfaces by the manuals' formulas (CUDA C++ Programming Guide, Texture Fetching; PTX ISA, tex, tld4, suld,
//! sust, sured), over images whose texels are a function of their place.
//!
//! Sizes are powers of two and coordinates multiples of small fractions, so that everything here is exact in f64.

/// What an access takes an image for, by the opcode's word.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Coordinates in one layer.
    pub dimensions: usize,
    pub array: bool,
    pub cube: bool,
    /// A sample's number stands before the coordinates.
    pub sample: bool,
}

pub fn geometry(words: &[&str]) -> Geometry {
    let all = [
        ("1d", 1, false, false, false),
        ("2d", 2, false, false, false),
        ("3d", 3, false, false, false),
        ("a1d", 1, true, false, false),
        ("a2d", 2, true, false, false),
        ("cube", 3, false, true, false),
        ("acube", 3, true, true, false),
        ("2dms", 2, false, false, true),
        ("a2dms", 2, true, false, true),
    ];
    let found = all.iter().find(|(word, ..)| words.contains(word)).expect("a geometry");
    Geometry {
        dimensions: found.1,
        array: found.2,
        cube: found.3,
        sample: found.4,
    }
}

impl Geometry {
    /// Texels of the finest level.
    pub fn size(&self) -> [i64; 3] {
        match (self.cube, self.dimensions) {
            (true, _) => [8, 8, 1],
            (_, 1) => [16, 1, 1],
            (_, 2) => [8, 4, 1],
            _ => [8, 4, 4],
        }
    }

    /// Layers, faces counted; 1 if there are none.
    pub fn layers(&self) -> i64 {
        match (self.array, self.cube) {
            (false, false) => 1,
            (true, false) => 3,
            (false, true) => 6,
            (true, true) => 12,
        }
    }

    pub fn size_of_level(&self, level: i64) -> [i64; 3] {
        self.size().map(|size| (size >> level).max(1))
    }
}

/// The component of a texel: a small whole number.
pub fn texel(level: i64, layer: i64, at: [i64; 3], channel: i64) -> i64 {
    (level * 17 + layer * 5 + at[2] * 3 + at[1] * 11 + at[0] * 7 + channel * 13) % 64
}

/// What an access is, in numbers.
#[derive(Debug, Default, Clone)]
pub struct Access {
    pub layer: i64,
    /// Positions are fractions of the size; otherwise texels are counted.
    pub float: bool,
    pub at: [f64; 3],
    pub offset: [i64; 3],
    pub level: f64,
    /// Levels are blended.
    pub blend: bool,
    pub compare: Option<f64>,
    pub gather: Option<i64>,
    pub filter: bool,
}

/// How x, y, z outside of the image, or of the face of a cube, are addressed: repeated, held at the edge, 0.
fn addressed(axis: usize, index: i64, size: i64) -> Option<i64> {
    match axis {
        0 => Some(index.rem_euclid(size)),
        2 => (0..size).contains(&index).then_some(index),
        _ => Some(index.max(0).min(size - 1)),
    }
}

/// The components of the result.
pub fn fetch(geometry: Geometry, access: &Access) -> [f64; 4] {
    let mut layer = access.layer.min(geometry.layers() - 1);
    let mut at = access.at;
    let mut dimensions = geometry.dimensions;
    if geometry.cube {
        let [x, y, z] = at;
        // Face, major axis, s, t: the guide's table.
        let (face, m, s, t) = if z.abs() >= x.abs() && z.abs() >= y.abs() {
            if z >= 0.0 { (4, z, x, -y) } else { (5, -z, -x, -y) }
        } else if y.abs() >= x.abs() {
            if y >= 0.0 { (2, y, x, z) } else { (3, -y, x, -z) }
        } else if x >= 0.0 {
            (0, x, -z, -y)
        } else {
            (1, -x, z, -y)
        };
        at = [(s / m + 1.0) / 2.0, (t / m + 1.0) / 2.0, 0.0];
        layer = access.layer.min(geometry.layers() / 6 - 1) * 6 + face;
        dimensions = 2;
    }
    let level = access.level.clamp(0.0, 2.0);
    let whole = level.floor();
    if access.blend && level != whole {
        let part = level - whole;
        // As measured on an H100, the level is one more direction; of volumes nobody knows.
        let parts = [1.0 - part, part];
        let [(own_below, below), (own_above, above)] = match access.filter && dimensions < 3 {
            true => parts.map(|part| (part, 1.0)),
            false => parts.map(|part| (1.0, part)),
        };
        let first = at_level(geometry, access, (whole as i64, own_below), layer, at, dimensions);
        let second = at_level(geometry, access, (whole as i64 + 1, own_above), layer, at, dimensions);
        return std::array::from_fn(|c| below * first[c] + above * second[c]);
    }
    let nearest = if level - whole > 0.5 { whole + 1.0 } else { whole };
    at_level(geometry, access, (nearest as i64, 1.0), layer, at, dimensions)
}

/// The components at a level, of which `own` counts.
fn at_level(
    geometry: Geometry,
    access: &Access,
    (level, own): (i64, f64),
    layer: i64,
    at: [f64; 3],
    dimensions: usize,
) -> [f64; 4] {
    let size = geometry.size_of_level(level);
    // First texel and weight of the second, along each axis.
    let mut first = [0; 3];
    let mut weight = [0.0; 3];
    let pairs = access.filter || access.gather.is_some();
    for axis in 0..dimensions {
        let scale = if access.float { size[axis] as f64 } else { 1.0 };
        let position = at[axis] * scale + access.offset[axis] as f64;
        let base = if pairs { position - 0.5 } else { position };
        first[axis] = base.floor() as i64;
        // Eight bits behind the point.
        let part = ((base - base.floor()) * 256.0 + 0.5).floor() / 256.0;
        weight[axis] = if pairs { part } else { 0.0 };
        // Held at the edge, there is no second texel whose share could be rounded.
        if axis == 1 && !(0..size[axis] - 1).contains(&first[axis]) {
            weight[axis] = 0.0;
        }
    }
    let value = |step: [i64; 3], channel: i64| -> f64 {
        let mut place = [0; 3];
        let mut inside = true;
        for axis in 0..dimensions {
            match addressed(axis, first[axis] + step[axis], size[axis]) {
                Some(index) => place[axis] = index,
                None => inside = false,
            }
        }
        let value = if inside {
            texel(level, layer, place, channel) as f64
        } else {
            0.0
        };
        match access.compare {
            Some(reference) => f64::from(u8::from(reference <= value)),
            None => value,
        }
    };
    if let Some(channel) = access.gather {
        // Counter-clockwise from the lower left, where y is greater.
        return [[0, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0]].map(|step| value(step, channel));
    }
    std::array::from_fn(|channel| {
        let mut sum = 0.0;
        for corner in 0..8_i64 {
            let step = [corner & 1, corner >> 1 & 1, corner >> 2];
            let part = share(weight, own, step);
            if part != 0.0 {
                sum += part * value(step, channel as i64);
            }
        }
        sum
    })
}

/// How much of a corner's texel counts: products of weights in 256ths, of x and z, then y, as measured on an H100. On the right
/// halves are rounded up, on the left down.
/// `own` is that of the level.
fn share(weight: [f64; 3], own: f64, step: [i64; 3]) -> f64 {
    let [x, z] = [0, 2].map(|axis| {
        if step[axis] == 1 {
            weight[axis]
        } else {
            1.0 - weight[axis]
        }
    });
    let rounded = |part: f64| match step[0] {
        1 => (part * 256.0 + 0.5).floor() / 256.0,
        _ => (part * 256.0 - 0.5).ceil() / 256.0,
    };
    let slice = rounded(x * z * own);
    let upper = rounded(slice * weight[1]);
    if step[1] == 1 { upper } else { slice - upper }
}

/// The first byte of a surface access, among those of the surface: `None` outside. Rows have `row` bytes.
pub fn place(geometry: Geometry, at: [i64; 3], layer: i64, row: i64, bytes: i64, clamp: bool) -> Option<usize> {
    let [_, height, depth] = geometry.size();
    let inside = |value: i64, last: i64| match clamp {
        true => Some(value.max(0).min(last)),
        false => (0..=last).contains(&value).then_some(value),
    };
    let x = inside(at[0], row - bytes)?;
    let y = if geometry.dimensions > 1 {
        inside(at[1], height - 1)?
    } else {
        0
    };
    let z = match (geometry.array, geometry.dimensions) {
        (true, _) => inside(layer, geometry.layers() - 1)?,
        (false, 3) => inside(at[2], depth - 1)?,
        _ => 0,
    };
    Some(((z * height + y) * row + x) as usize)
}
