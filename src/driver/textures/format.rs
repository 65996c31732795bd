//! `CUarray_format`: what an element of each is made of.

use crate::driver::{Error, Result};
use crate::memory::texture::{Block, Channel, Format};

/// One plane of an image in several: its format, and by how much it is smaller than the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) struct Plane {
    /// The API's number for the plane's format.
    pub number: u32,
    pub format: Format,
    pub divide: [u64; 2],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::driver) enum Layout {
    Texels(Format),
    /// Blocks of four by four texels.
    Blocks(Format),
    Planes(Vec<Plane>),
}

const UINT8: u32 = 0x01;
const UINT16: u32 = 0x02;

/// A plain format, or one that has its number of channels in its name.
fn channel(format: u32, channels: u32) -> Option<Channel> {
    let named = |first: u32, channel| {
        [1, 2, 4]
            .get((format - first) as usize)
            .filter(|&&n| n == channels)
            .map(|_| channel)
    };
    Some(match format {
        UINT8 => Channel::U8,
        UINT16 => Channel::U16,
        0x03 => Channel::U32,
        0x08 => Channel::S8,
        0x09 => Channel::S16,
        0x0a => Channel::S32,
        0x10 => Channel::F16,
        0x20 => Channel::F32,
        0x50 if channels == 4 => Channel::Unorm101010x2,
        0xc0..=0xc2 => return named(0xc0, Channel::Unorm8),
        0xc3..=0xc5 => return named(0xc3, Channel::Unorm16),
        0xc6..=0xc8 => return named(0xc6, Channel::Snorm8),
        0xc9..=0xcb => return named(0xc9, Channel::Snorm16),
        _ => return None,
    })
}

/// # Errors
/// 1 for numbers and channels that do not go together.
pub(in crate::driver) fn texels(format: u32, channels: u32) -> Result<Format> {
    if !matches!(channels, 1 | 2 | 4) {
        return Err(Error::InvalidValue);
    }
    let channel = channel(format, channels).ok_or(Error::InvalidValue)?;
    Ok(Format { channel, channels })
}

/// Bytes of an element of a plain format.
///
/// # Errors
/// 1 for numbers and channels that do not go together.
pub fn bytes(format: u32, channels: u32) -> Result<u64> {
    Ok(texels(format, channels)?.bytes().into())
}

/// Luma and chroma: bytes of a component, planes, how much smaller those of chroma are.
fn planes(format: u32) -> Option<Layout> {
    let (wide, semi, divide) = match format {
        // NV12, P010, P016, and the names that say what they are
        0xb0 | 0x53 => (false, true, [2, 2]),
        0x9f | 0xa1 | 0x54 => (true, true, [2, 2]),
        // NV16, P210, P216
        0xa2 | 0x55 => (false, true, [2, 1]),
        0xa3 | 0xa4 | 0x56 => (true, true, [2, 1]),
        0xb4 | 0x57 => (false, true, [1, 1]),
        0xb5 | 0x58 => (true, true, [1, 1]),
        0x59 => (false, false, [2, 2]),
        0x5a => (true, false, [2, 2]),
        0x5b => (false, false, [2, 1]),
        0x5c => (true, false, [2, 1]),
        0xb2 | 0x5d => (false, false, [1, 1]),
        0xb3 | 0x5e => (true, false, [1, 1]),
        _ => return None,
    };
    let (number, channel) = match wide {
        false => (UINT8, Channel::U8),
        true => (UINT16, Channel::U16),
    };
    let plane = |channels, divide| Plane {
        number,
        format: Format { channel, channels },
        divide,
    };
    let mut all = vec![plane(1, [1, 1])];
    match semi {
        true => all.push(plane(2, divide)),
        false => all.extend([plane(1, divide), plane(1, divide)]),
    }
    Some(Layout::Planes(all))
}

/// # Errors
/// 1 for numbers and channels that do not go together, 801 for formats whose elements share components.
pub(in crate::driver) fn layout(format: u32, channels: u32) -> Result<Layout> {
    if let Some(planes) = planes(format) {
        return match channels {
            3 => Ok(planes),
            _ => Err(Error::InvalidValue),
        };
    }
    match format {
        0x91..=0x9e if (1..=4).contains(&channels) => {
            // Each in two forms: colours plain and sRGB-encoded, numbers without and with a sign.
            let second = format & 1 == 0;
            let (block, srgb) = match format {
                0x91 | 0x92 => (Block::Bc1, second),
                0x93 | 0x94 => (Block::Bc2, second),
                0x95 | 0x96 => (Block::Bc3, second),
                0x97 => (Block::Bc4, false),
                0x98 => (Block::Bc4Signed, false),
                0x99 => (Block::Bc5, false),
                0x9a => (Block::Bc5Signed, false),
                0x9b => (Block::Bc6, false),
                0x9c => (Block::Bc6Signed, false),
                _ => (Block::Bc7, second),
            };
            Ok(Layout::Blocks(Format::blocks(block, srgb)))
        }
        // YUY2, Y210, Y216, AYUV, Y410, Y416, UINT8_PACKED_422, UINT8_PACKED_444
        0xa5..=0xa9 | 0xb1 | 0x51 | 0x52 => {
            tracing::warn!("arrays of the packed video format {format:#x} are not supported");
            Err(Error::NotSupported)
        }
        _ => texels(format, channels).map(Layout::Texels),
    }
}

/// `CUresourceViewFormat`.
pub(in crate::driver) fn of_view(view: u32) -> Result<Format> {
    let channels = |first: u32| [1, 2, 4][(view - first) as usize];
    let (channel, channels) = match view {
        0x01..=0x03 => (Channel::U8, channels(0x01)),
        0x04..=0x06 => (Channel::S8, channels(0x04)),
        0x07..=0x09 => (Channel::U16, channels(0x07)),
        0x0a..=0x0c => (Channel::S16, channels(0x0a)),
        0x0d..=0x0f => (Channel::U32, channels(0x0d)),
        0x10..=0x12 => (Channel::S32, channels(0x10)),
        0x13..=0x15 => (Channel::F16, channels(0x13)),
        0x16..=0x18 => (Channel::F32, channels(0x16)),
        0x19..=0x22 => {
            const BLOCKS: [Block; 10] = [
                Block::Bc1,
                Block::Bc2,
                Block::Bc3,
                Block::Bc4,
                Block::Bc4Signed,
                Block::Bc5,
                Block::Bc5Signed,
                Block::Bc6,
                Block::Bc6Signed,
                Block::Bc7,
            ];
            return Ok(Format::blocks(BLOCKS[(view - 0x19) as usize], false));
        }
        _ => return Err(Error::InvalidValue),
    };
    Ok(Format { channel, channels })
}
