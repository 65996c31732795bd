//! The hyperbolic tangent, as an H100's function unit computes it: measured there, and the same for all 2^32 arguments.
//!
//! The other functions reduce an operand to one range; this one has slices of its own in each octave from 2^-8 to 2^3, in
//! which the slope falls off. Below, the tangent is the operand; above, it is one. As in the others, a slice's seventeen
//! bits and their truncated square go into a polynomial of integers, whose sum is cut off.

use super::{INFINITY, NAN, SIGN, cut, square};

/// The exponent field of the first octave that has slices.
const FIRST: u32 = 119;

/// Of each octave: two to the what are its slices, and which is the first.
static OCTAVES: [(u8, u8); 16] = [
    (0, 0),
    (0, 1),
    (0, 2),
    (1, 3),
    (1, 5),
    (2, 7),
    (2, 11),
    (2, 15),
    (3, 19),
    (4, 27),
    (3, 43),
    // Where the tangent is one: what is read there does not count.
    (0, 0),
    (0, 0),
    (0, 0),
    (0, 0),
    (0, 0),
];

/// A slice's value at t, from 0 to 1, is `start + rise·t - sag·t²`: the start's bits; rise and sag in units of its last place.
#[rustfmt::skip]
static SLICES: [(u32, u32, u32); 51] = [
    // 2^-8
    (0x3b80_0000, 8388608, 256),
    // 2^-7
    (0x3bff_ff00, 16776192, 1536),
    // 2^-6
    (0x3c7f_fb00, 16774144, 6656),
    // 2^-5
    (0x3cff_eac0, 8380928, 5248), (0x3d3f_dc20, 4185216, 3520),
    // 2^-4
    (0x3d7f_aac0, 8357376, 20352), (0x3dbf_7060, 4158464, 14208),
    // 2^-3
    (0x3dfe_acd0, 4130048, 17888), (0x3e1e_b5d8, 2047104, 10816), (0x3e3d_c7f0, 2025472, 12640), (0x3e5c_7e80, 2000192, 14256),
    // 2^-2
    (0x3e7a_cbc0, 3944704, 66208), (0x3e9a_fc98, 1905920, 38592), (0x3eb7_7a80, 1828576, 42976), (0x3ed2_b940, 1742432, 46304),
    // 2^-1
    (0x3eec_9a50, 3300544, 197184), (0x3f0d_fa50, 1451968, 100608), (0x3f22_9968, 1250016, 96608), (0x3f34_3388, 1056352, 88688),
    // 2^0
    (0x3f42_f848, 878752, 78584), (0x3f4f_2eb8, 721632, 67824), (0x3f59_2988, 586144, 57152), (0x3f61_3cb4, 472016, 47384),
    (0x3f67_b820, 377440, 38736), (0x3f6c_e3c4, 300160, 31376), (0x3f70_fe38, 237600, 25152), (0x3f74_3c7c, 187456, 20072),
    // 2^1
    (0x3f76_caa0, 147496, 15946), (0x3f78_ccc1, 115768, 12590), (0x3f7a_6005, 90696, 9898), (0x3f7b_9bcd, 70984, 7784),
    (0x3f7c_92d1, 55480, 6094), (0x3f7d_53d5, 43340, 4776), (0x3f7d_ea8f, 33828, 3734), (0x3f7e_602d, 26396, 2920),
    (0x3f7e_bbee, 20584, 2278), (0x3f7f_037a, 16048, 1778), (0x3f7f_3b40, 12508, 1386), (0x3f7f_66b9, 9748, 1082),
    (0x3f7f_8898, 7596, 842), (0x3f7f_a2fd, 5916, 654), (0x3f7f_b78d, 4608, 508), (0x3f7f_c792, 3588, 394),
    // 2^2
    (0x3f7f_d430, 10544, 3504), (0x3f7f_efe0, 3888, 1296), (0x3f7f_fa10, 1424, 464), (0x3f7f_fdd0, 528, 176),
    (0x3f7f_ff34, 192, 64), (0x3f7f_ffb4, 80, 32), (0x3f7f_ffe4, 32, 16), (0x3f7f_fff4, 16, 8),
];

/// The tangent of an operand, both as bits of an `f32`. Subnormal numbers stay what they are.
#[inline(always)]
pub fn tanh(a: u32) -> u32 {
    let magnitude = a & !SIGN;
    let octave = (magnitude >> 23).wrapping_sub(FIRST);
    let (slices, first) = OCTAVES[octave.min(15) as usize];
    let position = (magnitude & 0x7f_ffff) >> (6 - slices);
    let (start, rise, sag) = SLICES[(usize::from(first) + (position >> 17) as usize).min(SLICES.len() - 1)];
    let x = position & 0x1_ffff;
    // In units of 2^-17 of the first value's last place: below 2^42, exactly.
    let sum = (u64::from(start & 0x7f_ffff | 0x80_0000) << 17) + u64::from(rise) * u64::from(x)
        - 4 * u64::from(sag) * u64::from(square((x >> 2) as u16));
    let unit = f64::from_bits(u64::from((start >> 23) + 1023 - 127 - 40) << 52);
    let within = cut(sum as f64 * unit);
    let has_slices = octave < 11;
    let result = match () {
        () if has_slices => within,
        () if magnitude < FIRST << 23 => magnitude,
        () => 0x3f80_0000,
    };
    if magnitude > INFINITY { NAN } else { result | a & SIGN }
}
