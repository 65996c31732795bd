//! How blurred an access is: levels of detail from gradients, and probes along the longer side of a footprint.
//!
//! A gradient's footprint is a parallelogram of texels. The longest of its sides and diagonals decides the level; where the
//! sampler allows several probes (anisotropy), the shorter side does as far as there are probes (OpenGL 4.6 Core, 8.14.1; the
//! extension EXT_texture_filter_anisotropic). How lengths and their logarithms are computed was measured on an H100, without
//! anisotropy and in two directions (`tests/hardware/levels.cu`): levels are the same but for 1/256 in a few of 100.

/// Probes of one access: how many, how far apart (in coordinates of the access), and at which level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Footprint {
    pub level: f64,
    pub probes: u32,
    pub step: [f64; 3],
}

/// `dx`, `dy`: change of the coordinates to the next pixel in either direction; `scale`: texels of the finest level in
/// one unit of them.
pub fn footprint(dx: [f64; 3], dy: [f64; 3], scale: [f64; 3], most: u32) -> Footprint {
    let (a, b) = (scaled(dx, scale), scaled(dy, scale));
    if most <= 1 {
        let diagonals = [-1.0, 1.0].map(|sign| length(std::array::from_fn(|i| a[i] + sign * b[i])));
        let longest = length(a).max(length(b)).max(diagonals[0].max(diagonals[1]) * DIAGONAL);
        return Footprint {
            level: logarithm(longest),
            probes: 1,
            step: [0.0; 3],
        };
    }
    let exact = |d: [f64; 3]| d.iter().map(|d| d * d).sum::<f64>().sqrt();
    let (a, b) = (exact(a), exact(b));
    let (long, short, along) = if a >= b { (a, b, dx) } else { (b, a, dy) };
    let probes = match most {
        most if short > 0.0 => ((long / short).ceil() as u32).clamp(1, most),
        most if long > 1.0 => most.min(long.ceil() as u32),
        _ => 1,
    };
    Footprint {
        level: logarithm(long / f64::from(probes)),
        probes,
        step: along.map(|d| d / f64::from(probes)),
    }
}

fn scaled(d: [f64; 3], scale: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|i| d[i] * scale[i])
}

/// What counts of a diagonal.
const DIAGONAL: f64 = 11.0 / 16.0;

/// The largest component, to ten significant bits, and 11/32 of the others.
fn length(d: [f64; 3]) -> f64 {
    let magnitudes = d.map(f64::abs);
    let largest = magnitudes.iter().copied().fold(0.0, f64::max);
    let others = magnitudes.iter().sum::<f64>() - largest;
    f64::from_bits(largest.to_bits() & (u64::MAX << (52 - 9))) + others * (11.0 / 32.0)
}

/// The logarithm to base 2, of the first nine significant bits. No length, and what is no number, has that of the smallest.
fn logarithm(length: f64) -> f64 {
    // Beyond all levels, to either side, and what is no number.
    if length.is_nan() || length <= f64::MIN_POSITIVE {
        return f64::MIN;
    }
    let exponent = (length.to_bits() >> 52) as i32 - 1023;
    let digits = (length.to_bits() >> (52 - 8)) as u8;
    f64::from(exponent) + f64::from(LOGARITHMS[usize::from(digits)]) / 256.0
}

/// log2(1 + i/256), in 256ths, as an H100 has it.
const LOGARITHMS: [u8; 256] = [
    0, 2, 4, 5, 6, 8, 9, 11, 12, 13, 15, 16, 18, 19, 20, 22, 23, 24, 26, 27, 28, 30, 31, 32, 34, 35, 36, 38, 39, 40,
    42, 43, 44, 45, 47, 48, 49, 50, 52, 53, 54, 55, 57, 58, 59, 60, 62, 63, 64, 65, 66, 68, 69, 70, 71, 72, 74, 75, 76,
    77, 78, 79, 81, 82, 83, 84, 85, 86, 88, 89, 90, 91, 92, 93, 94, 95, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106,
    107, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130,
    131, 132, 133, 135, 136, 137, 137, 138, 139, 140, 141, 142, 143, 144, 145, 146, 147, 148, 149, 150, 151, 152, 153,
    154, 155, 156, 157, 158, 159, 160, 161, 162, 162, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 173, 174,
    175, 176, 177, 178, 179, 180, 181, 181, 182, 183, 184, 185, 186, 187, 188, 188, 189, 190, 191, 192, 193, 194, 195,
    195, 196, 197, 198, 199, 200, 200, 201, 202, 203, 204, 205, 205, 206, 207, 208, 209, 210, 210, 211, 212, 213, 214,
    214, 215, 216, 217, 218, 218, 219, 220, 221, 222, 222, 223, 224, 225, 226, 226, 227, 228, 229, 229, 230, 231, 232,
    233, 233, 234, 235, 236, 236, 237, 238, 239, 239, 240, 241, 242, 242, 243, 244, 245, 245, 246, 247, 248, 248, 249,
    250, 251, 251, 252, 253, 253, 254, 255, 255,
];
