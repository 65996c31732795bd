//! Halves as `f32`, and `f32` as halves: what the vector levels have instructions for, in plain arithmetic; and the one
//! NaN of `f32`.

/// Every NaN becomes the one that the hardware returns.
#[inline(always)]
pub fn canonical(a: f32) -> f32 {
    if a.is_nan() { f32::from_bits(0x7fff_ffff) } else { a }
}

/// Exact: shifts the fields into place and lets a multiplication renormalise subnormals.
#[inline(always)]
pub fn widen_f16(a: u16) -> f32 {
    let magnitude = u32::from(a & 0x7fff) << 13;
    let scaled = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
    let special = f32::from_bits(magnitude | 0x7f80_0000);
    let value = if magnitude >= 0x7c00 << 13 { special } else { scaled };
    canonical(f32::from_bits(value.to_bits() | (u32::from(a) & 0x8000) << 16))
}

/// To nearest even. Normal results are rounded by adding half a step; subnormal ones by adding a number whose last
/// place is theirs.
#[inline(always)]
pub fn narrow_f16(a: f32) -> u16 {
    let bits = a.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let odd = magnitude >> 13 & 1;
    let normal = (magnitude.wrapping_add(0xc800_0fff).wrapping_add(odd) >> 13) as u16;
    let subnormal = ((f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3f00_0000)) as u16;
    let finite = if magnitude < 0x3880_0000 { subnormal } else { normal };
    let large = if magnitude > 0x7f80_0000 { 0x7fff } else { 0x7c00 };
    let sign = if magnitude > 0x7f80_0000 {
        0
    } else {
        (bits >> 16) as u16 & 0x8000
    };
    // From 65520 on, rounding overflows.
    (if magnitude >= 0x477f_f000 { large } else { finite }) | sign
}
/// To nearest even.
#[inline(always)]
pub fn narrow_bf16(a: f32) -> u16 {
    let bits = a.to_bits();
    let rounded = (bits.wrapping_add(0x7fff).wrapping_add(bits >> 16 & 1) >> 16) as u16;
    if a.is_nan() { 0x7fff } else { rounded }
}
