//! How blurred an access is: levels of detail from gradients, and probes along the longer side of a footprint.
//!
//! A gradient's footprint is a parallelogram of texels. Its longer side decides the level, or, where the sampler allows
//! several probes (anisotropy), the shorter one does as far as there are probes (OpenGL 4.6 Core, 8.14.1; the extension
//! EXT_texture_filter_anisotropic).

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
    let length = |d: [f64; 3]| (0..3).map(|i| (d[i] * scale[i]).powi(2)).sum::<f64>().sqrt();
    let (a, b) = (length(dx), length(dy));
    let (long, short, along) = if a >= b { (a, b, dx) } else { (b, a, dy) };
    let probes = match most {
        0 | 1 => 1,
        most if short > 0.0 => ((long / short).ceil() as u32).clamp(1, most),
        most if long > 1.0 => most.min(long.ceil() as u32),
        _ => 1,
    };
    Footprint {
        level: (long / f64::from(probes)).log2(),
        probes,
        step: along.map(|d| d / f64::from(probes)),
    }
}
