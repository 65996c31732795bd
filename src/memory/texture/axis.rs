//! One direction of a position → the texels that it touches (CUDA C++ Programming Guide, Texture Fetching; mirrored as in
//! OpenGL 4.6 Core, 8.14.2: by their numbers).

use super::AddressMode;

/// The indices along one axis that an access touches.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// As counted before addressing: cubes look beyond their edges by them.
    pub raw: [i64; 2],
    /// `None`: the border.
    pub index: [Option<u32>; 2],
    /// How many 256ths the position lies from the first towards the second.
    pub second: i32,
}

impl Axis {
    /// A direction that the access does not have.
    pub const NONE: Axis = Axis {
        raw: [0, 0],
        index: [Some(0), None],
        second: 0,
    };
}

/// Beyond it there are whole numbers only.
const FAR: f64 = 9_007_199_254_740_992.0;

/// `floor`, and as a number: the baseline of x86-64 has no instruction for it.
#[inline(always)]
fn floor(value: f64) -> (f64, i64) {
    let whole = value as i64;
    let floor = whole as f64;
    // Beyond 2^63 and for NaN the cast saturates; what is that large is whole.
    if floor > value {
        (floor - 1.0, whole.saturating_sub(1))
    } else {
        (floor, whole)
    }
}

#[inline(always)]
fn addressed(mode: AddressMode, index: i64, size: u32) -> Option<u32> {
    let last = i64::from(size) - 1;
    match mode {
        AddressMode::Wrap => Some(index.rem_euclid(i64::from(size)) as u32),
        AddressMode::Border => (0..=last).contains(&index).then_some(index as u32),
        AddressMode::Clamp => Some(index.clamp(0, last) as u32),
        // Odd repetitions run backwards. It is the texel that is mirrored: positions would meet the other of two at ties.
        AddressMode::Mirror => {
            let period = 2 * i64::from(size);
            let within = index.rem_euclid(period);
            Some(within.min(period - 1 - within) as u32)
        }
    }
}

/// `position` in texels, as it is before addressing.
#[inline(always)]
pub fn axis(position: f64, size: u32, mode: AddressMode, pair: bool) -> Axis {
    let size_f = f64::from(size);
    let position = match mode {
        // The numbers of texels far away are more than an integer holds.
        AddressMode::Wrap | AddressMode::Mirror if position.abs() > FAR && position.is_finite() => {
            position.rem_euclid(2.0 * size_f)
        }
        _ => position,
    };
    if !pair {
        let (_, raw) = floor(position);
        return Axis {
            raw: [raw, raw],
            index: [addressed(mode, raw, size), None],
            second: 0,
        };
    }
    let shifted = position - 0.5;
    let (below, raw) = floor(shifted);
    let next = raw.saturating_add(1);
    // What is infinite or no number has no fraction.
    let within = shifted - below;
    let within = if within < 1.0 { within } else { 0.0 };
    // Beyond the middle of the last texel there is no second one: on an H100 it has no share to be rounded, either.
    let is_alone = mode == AddressMode::Clamp && !(0..i64::from(size) - 1).contains(&raw);
    Axis {
        raw: [raw, next],
        index: [addressed(mode, raw, size), addressed(mode, next, size)],
        second: if is_alone { 0 } else { (within * 256.0 + 0.5) as i32 },
    }
}
