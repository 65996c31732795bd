//! Positions of 32 threads in one direction → the texels that they touch; see [`axis`](super::super::axis) for one.

use super::super::AddressMode;
use super::{LANES, Run};

/// Positions beyond are left to the code for one thread: within, whole numbers have 32 bits.
pub const FAR: f64 = 1_073_741_824.0;

#[inline(always)]
fn floor(value: f64) -> (f64, i32) {
    // SAFETY: the number is within ±(2^30 + 1): callers have replaced all others.
    let whole = unsafe { value.to_int_unchecked::<i32>() };
    let above = f64::from(whole) > value;
    let floor = whole - i32::from(above);
    (f64::from(floor), floor)
}

/// `value` minus the multiple of `size` below it.
#[inline(always)]
fn remainder(value: f64, size: f64, inverse: f64) -> f64 {
    let rest = value - floor(value * inverse).0 * size;
    let rest = if rest < 0.0 { rest + size } else { rest };
    if rest >= size { rest - size } else { rest }
}

/// What all threads touch along one direction.
pub struct Axis {
    /// Always within the image.
    pub index: [Run<u32>; 2],
    /// All ones, or 0 where the border is.
    pub inside: [Run<u32>; 2],
    /// How many 256ths the position lies from the first towards the second.
    pub second: Run<i32>,
}

impl Axis {
    /// A direction that the access does not have.
    pub const NONE: Axis = Axis {
        index: [[0; LANES]; 2],
        inside: [[u32::MAX; LANES]; 2],
        second: [0; LANES],
    };

    /// Of positions in texels, as they are before addressing.
    #[inline(always)]
    pub fn fill(&mut self, position: &Run<f64>, size: u32, mode: AddressMode, pair: bool) {
        let size_f = f64::from(size);
        let mut raw = [0_i32; LANES];
        if pair {
            for lane in 0..LANES {
                let shifted = position[lane] - 0.5;
                let (below, number) = floor(shifted);
                let within = shifted - below;
                let within = if within < 1.0 { within } else { 0.0 };
                // SAFETY: at most 256.5.
                let second = unsafe { (within * 256.0 + 0.5).to_int_unchecked::<i32>() };
                // As in the other `axis.rs`.
                let is_alone = mode == AddressMode::Clamp && (number < 0 || number >= size as i32 - 1);
                self.second[lane] = if is_alone { 0 } else { second };
                raw[lane] = number;
            }
        } else {
            for lane in 0..LANES {
                raw[lane] = floor(position[lane]).1;
            }
        }
        for which in 0..=usize::from(pair) {
            let (index, inside) = (&mut self.index[which], &mut self.inside[which]);
            let step = which as i32;
            let last = size as i32 - 1;
            match mode {
                AddressMode::Wrap => {
                    let inverse = 1.0 / size_f;
                    for lane in 0..LANES {
                        let within = remainder(f64::from(raw[lane] + step), size_f, inverse);
                        // SAFETY: less than the size.
                        index[lane] = unsafe { within.to_int_unchecked::<i32>() } as u32;
                    }
                }
                AddressMode::Mirror => {
                    let (period, inverse) = (2.0 * size_f, 0.5 / size_f);
                    for lane in 0..LANES {
                        let within = remainder(f64::from(raw[lane] + step), period, inverse);
                        let mirrored = period - 1.0 - within;
                        let within = if within < mirrored { within } else { mirrored };
                        // SAFETY: less than the size.
                        index[lane] = unsafe { within.to_int_unchecked::<i32>() } as u32;
                    }
                }
                AddressMode::Clamp => {
                    for lane in 0..LANES {
                        index[lane] = (raw[lane] + step).max(0).min(last) as u32;
                    }
                }
                AddressMode::Border => {
                    for lane in 0..LANES {
                        let number = raw[lane] + step;
                        index[lane] = number.max(0).min(last) as u32;
                        inside[lane] = if index[lane] == number as u32 { u32::MAX } else { 0 };
                    }
                }
            }
        }
    }
}
