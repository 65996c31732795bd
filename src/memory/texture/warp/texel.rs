//! Texels of 32 threads: their bytes, and their components.

use super::super::format::linear;
use super::super::{Channel, Format};
use super::{LANES, Run, Texels};

/// The words of texels; of those beyond a texel's bytes nothing is known.
///
/// # Safety
/// `bytes` bytes, 1, 2, 4, 8 or 16, are readable at each address.
#[inline(always)]
pub unsafe fn load(address: &Run<u64>, bytes: u32, words: &mut Texels) {
    // SAFETY: each address is readable for `bytes` bytes (see above the function); no alignment is asked for.
    unsafe {
        match bytes {
            1 => (0..LANES).for_each(|lane| words[0][lane] = (address[lane] as *const u8).read().into()),
            2 => (0..LANES).for_each(|lane| words[0][lane] = (address[lane] as *const u16).read_unaligned().into()),
            4 => (0..LANES).for_each(|lane| words[0][lane] = (address[lane] as *const u32).read_unaligned()),
            8 => {
                for lane in 0..LANES {
                    let texel = (address[lane] as *const [u32; 2]).read_unaligned();
                    (words[0][lane], words[1][lane]) = (texel[0], texel[1]);
                }
            }
            _ => {
                for lane in 0..LANES {
                    let texel = (address[lane] as *const [u32; 4]).read_unaligned();
                    (0..4).for_each(|i| words[i][lane] = texel[i]);
                }
            }
        }
    }
}

/// Words of texels → components, as [`Format::read`] for each.
#[inline(always)]
pub fn components(format: Format, normalize: bool, srgb: bool, out: &mut Texels) {
    let one = if format.reads_floats(normalize) {
        1.0_f32.to_bits()
    } else {
        1
    };
    let channels = format.channels as usize;
    let raw = [out[0], out[1]];
    for (i, out) in out.iter_mut().enumerate().skip(channels) {
        *out = [if i == 3 { one } else { 0 }; LANES];
    }
    match format.channel {
        Channel::F32 | Channel::U32 | Channel::S32 => {}
        Channel::U8 | Channel::Unorm8 if srgb && (normalize || format.channel == Channel::Unorm8) => {
            for (i, out) in out.iter_mut().enumerate().take(channels) {
                for lane in 0..LANES {
                    let byte = (raw[0][lane] >> (8 * i)) as u8;
                    out[lane] = match i {
                        3 => (f32::from(byte) / 255.0).to_bits(),
                        _ => linear(byte),
                    };
                }
            }
        }
        Channel::U8 | Channel::S8 | Channel::Unorm8 | Channel::Snorm8 => {
            let is_signed = matches!(format.channel, Channel::S8 | Channel::Snorm8);
            let fraction = normalize || matches!(format.channel, Channel::Unorm8 | Channel::Snorm8);
            for (i, out) in out.iter_mut().enumerate().take(channels) {
                for lane in 0..LANES {
                    let byte = (raw[0][lane] >> (8 * i)) as u8;
                    let value = if is_signed {
                        i32::from(byte as i8)
                    } else {
                        i32::from(byte)
                    };
                    let most = if is_signed { 127.0 } else { 255.0 };
                    let part = (value as f32 / most).max(-1.0).to_bits();
                    out[lane] = if fraction { part } else { value as u32 };
                }
            }
        }
        Channel::U16 | Channel::S16 | Channel::Unorm16 | Channel::Snorm16 => {
            let is_signed = matches!(format.channel, Channel::S16 | Channel::Snorm16);
            let fraction = normalize || matches!(format.channel, Channel::Unorm16 | Channel::Snorm16);
            for (i, out) in out.iter_mut().enumerate().take(channels) {
                for lane in 0..LANES {
                    let half = (raw[i / 2][lane] >> (16 * (i % 2))) as u16;
                    let value = if is_signed {
                        i32::from(half as i16)
                    } else {
                        i32::from(half)
                    };
                    let most = if is_signed { 32767.0 } else { 65535.0 };
                    let part = (value as f32 / most).max(-1.0).to_bits();
                    out[lane] = if fraction { part } else { value as u32 };
                }
            }
        }
        Channel::F16 | Channel::Unorm101010x2 | Channel::Blocks { .. } => {
            for lane in 0..LANES {
                let mut texel = [0; 16];
                for (i, words) in raw.iter().enumerate() {
                    texel[4 * i..][..4].copy_from_slice(&words[lane].to_le_bytes());
                }
                let found = format.read(texel, normalize, srgb);
                (0..4).for_each(|i| out[i][lane] = found[i]);
            }
        }
    }
}
