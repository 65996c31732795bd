//! What a filter makes of the texels around a position, as an H100's texture unit computes it: measured there, by
//! `tests/hardware/texture.py`.
//!
//! A corner's share is a whole number of 256ths. Numbers are lined up with the largest of the four of a slice, cut, summed up
//! exactly, and rounded to the texel's format, halves away from zero. Fractions are whole numbers, and their blend is one of
//! 16 bits, whatever the texel has.

use super::{Channel, Texture};

/// Of how many 256ths the texels count at the corners around a position: a bit of the corner's number for each direction.
/// `second` says how many of them the position lies from the first texel towards the second, and `slices` how many the corners
/// of the first and of the second slice have between them: two depths, or a level and what is none.
///
/// Shares are rounded, but to either side of halves on the left and on the right, so that they always make up a whole.
#[inline(always)]
pub fn shares([x, y]: [i32; 2], slices: [i32; 2]) -> [i32; 8] {
    let mut shares = [0; 8];
    for right in 0..2 {
        let (across, half) = if right == 1 { (x, 128) } else { (256 - x, 127) };
        for deep in 0..2 {
            let slice = (across * slices[deep] + half) >> 8;
            let upper = (slice * y + half) >> 8;
            shares[right | deep << 2] = slice - upper;
            shares[right | deep << 2 | 2] = upper;
        }
    }
    shares
}

/// Of the slices of three directions, of which `second` is the last one's.
#[inline(always)]
pub fn depths(second: i32) -> [i32; 2] {
    [256 - second, second]
}

/// Of a level of the weight `weight`, a multiple of 1/256.
#[inline(always)]
pub fn level(weight: f64) -> [i32; 2] {
    // SAFETY: a weight is from 0 to 1.
    [unsafe { (weight * 256.0).to_int_unchecked() }, 0]
}

/// A coordinate that is a fraction of the size: what lies below 2^-21 does not count.
#[inline(always)]
pub fn position(fraction: f64) -> f64 {
    const STEP: f64 = 1.0 / 2_097_152.0;
    // What is added leaves no bits for less than a step.
    const PUSH: f64 = 1.5 * 4_503_599_627_370_496.0 * STEP;
    let near = (fraction + PUSH) - PUSH;
    let below = if near > fraction { near - STEP } else { near };
    // An `f32` of 4 or more has no such bits.
    if fraction.abs() < 4.0 { below } else { fraction }
}

/// How components are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blend {
    /// Numbers of which so many bits are kept, counted from the largest of them, and that many of the result.
    Floats {
        kept: u32,
        rounded: u32,
    },
    /// sRGB-encoded bytes, as numbers; but for the fourth component, which is none.
    Encoded,
    /// Whole numbers that stand for fractions.
    Unsigned8,
    Unsigned16,
    Signed8,
    Signed16,
    /// Nobody has measured it.
    Exact,
}

/// Of 32 bits, and of comparisons.
const SINGLE: Blend = Blend::Floats { kept: 28, rounded: 24 };

impl Blend {
    pub fn of(texture: &Texture, compares: bool) -> Blend {
        let format = texture.image.format;
        let encoded = texture.srgb && format.reads_floats(texture.normalize);
        match format.channel {
            _ if compares => SINGLE,
            Channel::F32 | Channel::U32 | Channel::S32 => SINGLE,
            Channel::F16 => Blend::Floats { kept: 15, rounded: 11 },
            Channel::U8 | Channel::Unorm8 if encoded => Blend::Encoded,
            Channel::U8 | Channel::Unorm8 => Blend::Unsigned8,
            Channel::U16 | Channel::Unorm16 => Blend::Unsigned16,
            Channel::S8 | Channel::Snorm8 => Blend::Signed8,
            Channel::S16 | Channel::Snorm16 => Blend::Signed16,
            Channel::Unorm101010x2 | Channel::Blocks { .. } => Blend::Exact,
        }
    }

    /// Of one component: the fourth is never encoded, and what the format lacks is no fraction.
    #[inline(always)]
    pub fn component(self, number: usize, channels: u32) -> Blend {
        match self {
            _ if number >= channels as usize => Blend::Exact,
            Blend::Encoded if number == 3 => Blend::Exact,
            blend => blend,
        }
    }

    /// Texels are taken as the whole numbers that they are.
    #[inline(always)]
    pub fn is_of_fractions(self) -> bool {
        self.steps().is_some()
    }

    /// Of numbers: how many bits are kept, and how many the result has.
    #[inline(always)]
    fn bits(self) -> Option<(u32, u32)> {
        match self {
            Blend::Floats { kept, rounded } => Some((kept, rounded)),
            Blend::Encoded => Some((8, 11)),
            Blend::Unsigned8 | Blend::Unsigned16 | Blend::Signed8 | Blend::Signed16 | Blend::Exact => None,
        }
    }

    /// What a texel's whole number is divided by.
    #[inline(always)]
    fn steps(self) -> Option<f64> {
        match self {
            Blend::Floats { .. } | Blend::Encoded | Blend::Exact => None,
            Blend::Unsigned8 => Some(255.0),
            Blend::Unsigned16 => Some(65535.0),
            Blend::Signed8 => Some(127.0),
            Blend::Signed16 => Some(32767.0),
        }
    }

    /// What is summed up of a texel, of its number, or of its bits of an `f32`.
    #[inline(always)]
    pub fn summand(self, texel: u32) -> f64 {
        match self.is_of_fractions() {
            true => f64::from(texel as i32),
            false => f64::from(f32::from_bits(texel)),
        }
    }

    /// The mean of texels, in the place of one.
    pub fn mean(self, texels: [u32; 3]) -> u32 {
        let mean = texels.map(|texel| self.summand(texel)).iter().sum::<f64>() / 3.0;
        match self.is_of_fractions() {
            true => mean.round() as i32 as u32,
            false => (mean as f32).to_bits(),
        }
    }

    /// A colour of the border, which is given as an `f32`, in the place of a texel.
    pub fn border(self, colour: u32) -> u32 {
        match self.steps() {
            Some(steps) => {
                let least = if matches!(self, Blend::Signed8 | Blend::Signed16) {
                    -1.0
                } else {
                    0.0
                };
                (f64::from(f32::from_bits(colour)).clamp(least, 1.0) * steps).round() as i32 as u32
            }
            None => colour,
        }
    }

    /// A texel without the bits that do not count beside the largest one, of whose bits the sign is left out.
    #[inline(always)]
    pub fn lined_up(self, texel: u32, largest: u32) -> u32 {
        let Some((kept, _)) = self.bits() else {
            return texel;
        };
        let exponent = texel >> 23 & 0xff;
        let surplus = ((largest >> 23) + 24).saturating_sub(exponent + kept);
        let cut = texel & u32::MAX.wrapping_shl(surplus);
        // Subnormal numbers count as zero, too.
        if surplus > 23 || exponent == 0 {
            texel & 1 << 31
        } else {
            cut
        }
    }

    /// The blend's bits of an `f32` from the sum of the texels' shares.
    #[inline(always)]
    pub fn result(self, sum: f64) -> u32 {
        match self {
            Blend::Exact => (sum as f32).to_bits(),
            Blend::Floats { .. } | Blend::Encoded => rounded_away(sum, self.bits().map_or(24, |(_, rounded)| rounded)),
            Blend::Unsigned8 => ((up(sum * 257.0) / 65535.0) as f32).to_bits(),
            Blend::Unsigned16 => ((up(sum) / 65535.0) as f32).to_bits(),
            Blend::Signed16 => ((up(sum).max(-32767.0) / 32767.0) as f32).to_bits(),
            Blend::Signed8 => {
                // 256ths of a texel's steps become steps of 16 bits, of which there are 1/127.5 more.
                // SAFETY: 256 times a sum of shares of bytes, or of colours of the border, which are at most 1.
                let v = unsafe { (sum * 256.0).to_int_unchecked::<i32>() };
                let v = v + ((v + ((v >> 12) << 4) + 64) >> 7);
                ((f64::from(v.max(-32767)) / 32767.0) as f32).to_bits()
            }
        }
    }
}

/// To the nearest whole number, halves up.
#[inline(always)]
fn up(value: f64) -> f64 {
    // SAFETY: sums of shares of 16 bits, or of colours of the border, which are at most 1.
    let whole = f64::from(unsafe { (value + 0.5).to_int_unchecked::<i32>() });
    if whole > value + 0.5 { whole - 1.0 } else { whole }
}

/// Bits of an `f32` with so many significant ones; halves away from zero. Of 11 bits, those of an `f16`.
#[inline(always)]
fn rounded_away(value: f64, bits: u32) -> u32 {
    let last = 53 - bits;
    let whole = (value.to_bits() + (1 << (last - 1))) & (u64::MAX << last);
    let result = f64::from_bits(whole) as f32;
    let magnitude = value.abs();
    let result = match bits {
        // Below 2^-14 steps are of 2^-24.
        11 if magnitude < 1.0 / 16384.0 => (up(magnitude * 16_777_216.0) / 16_777_216.0).copysign(value) as f32,
        _ if magnitude < f64::from(f32::MIN_POSITIVE) => 0.0_f32.copysign(value as f32),
        _ => result,
    };
    if value.is_nan() { 0x7fff_ffff } else { result.to_bits() }
}
