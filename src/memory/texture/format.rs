//! Texels: their bytes, and their components as 32-bit values.

use half::f16;

use super::Block;

/// The bytes of one component, and what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Channel {
    U8, U16, U32, S8, S16, S32, F16, F32,
    /// Always fractions, whatever the read mode.
    Unorm8, Unorm16, Snorm8, Snorm16,
    /// Four components in 32 bits: three of ten bits, from the lowest on, and one of two.
    Unorm101010x2,
    /// Of all channels together.
    Blocks { block: Block, srgb: bool },
}

impl Channel {
    pub fn bytes(self) -> u32 {
        match self {
            Channel::U8 | Channel::S8 | Channel::Unorm8 | Channel::Snorm8 => 1,
            Channel::U16 | Channel::S16 | Channel::F16 | Channel::Unorm16 | Channel::Snorm16 => 2,
            Channel::U32 | Channel::S32 | Channel::F32 => 4,
            // A quarter of the texel.
            Channel::Unorm101010x2 => 1,
            Channel::Blocks { block, .. } => block.bytes() / block.channels(),
        }
    }
}

/// What a texel is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    pub channel: Channel,
    /// 1, 2 or 4.
    pub channels: u32,
}

/// The component of a channel that the format lacks: 0, and 1 for the fourth.
const ABSENT_FLOAT: [u32; 4] = [0, 0, 0, 0x3f80_0000];
const ABSENT_INTEGER: [u32; 4] = [0, 0, 0, 1];

impl Format {
    /// Compressed in blocks, which know their channels.
    pub fn blocks(block: Block, srgb: bool) -> Format {
        Format {
            channel: Channel::Blocks { block, srgb },
            channels: block.channels(),
        }
    }

    /// Of a texel, or of a block of texels.
    pub fn bytes(self) -> u32 {
        self.channel.bytes() * self.channels
    }

    /// Texels in each direction that share their bytes.
    pub fn edge(self) -> u32 {
        match self.channel {
            Channel::Blocks { .. } => 4,
            _ => 1,
        }
    }

    /// Components of the texel at (x, y), of whose bytes, or block's bytes, the first are given.
    pub fn read_at(self, bytes: [u8; 16], x: u32, y: u32, normalize: bool, srgb: bool) -> [u32; 4] {
        match self.channel {
            Channel::Blocks { block, srgb: encoded } => {
                block.read(bytes, [x, y].map(|at| at as usize % 4), srgb || encoded)
            }
            _ => self.read(bytes, normalize, srgb),
        }
    }

    pub fn reads_floats(self, normalize: bool) -> bool {
        match self.channel {
            Channel::U32 | Channel::S32 => false,
            Channel::U8 | Channel::U16 | Channel::S8 | Channel::S16 => normalize,
            _ => true,
        }
    }

    /// Components as a texture gives them: bits of f32, or integers.
    pub fn read(self, texel: [u8; 16], normalize: bool, srgb: bool) -> [u32; 4] {
        let mut out = match self.reads_floats(normalize) {
            true => ABSENT_FLOAT,
            false => ABSENT_INTEGER,
        };
        if matches!(self.channel, Channel::F32 | Channel::U32 | Channel::S32) {
            for (out, raw) in out.iter_mut().zip(texel.chunks_exact(4)).take(self.channels as usize) {
                *out = u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
            }
            return out;
        }
        if self.channel == Channel::Unorm101010x2 {
            let bits = u32::from_le_bytes([texel[0], texel[1], texel[2], texel[3]]);
            let part = |shift: u32, most: u32| ((bits >> shift & most) as f32 / most as f32).to_bits();
            return [part(0, 1023), part(10, 1023), part(20, 1023), part(30, 3)];
        }
        let size = self.channel.bytes() as usize;
        for (i, out) in out.iter_mut().enumerate().take(self.channels as usize) {
            let at = &texel[i * size..];
            *out = match (self.channel, normalize) {
                (Channel::Unorm8, _) | (Channel::U8, true) if srgb && i < 3 => linear(at[0]),
                (Channel::Unorm8, _) | (Channel::U8, true) => (f32::from(at[0]) / 255.0).to_bits(),
                (Channel::Unorm16, _) | (Channel::U16, true) => (f32::from(half_word(at)) / 65535.0).to_bits(),
                (Channel::Snorm8, _) | (Channel::S8, true) => (f32::from(at[0] as i8) / 127.0).max(-1.0).to_bits(),
                (Channel::Snorm16, _) | (Channel::S16, true) => {
                    (f32::from(half_word(at) as i16) / 32767.0).max(-1.0).to_bits()
                }
                (Channel::U8, false) => u32::from(at[0]),
                (Channel::S8, false) => i32::from(at[0] as i8) as u32,
                (Channel::U16, false) => u32::from(half_word(at)),
                (Channel::S16, false) => i32::from(half_word(at) as i16) as u32,
                (Channel::F16, _) => f16::from_bits(half_word(at)).to_f32().to_bits(),
                (Channel::U32 | Channel::S32 | Channel::F32 | Channel::Unorm101010x2 | Channel::Blocks { .. }, _) => 0,
            };
        }
        out
    }

    /// Components → bytes, as a formatted surface store has it: floats where the format holds fractions or floats, else
    /// integers; what does not fit becomes the nearest that does.
    pub fn write(self, components: [u32; 4]) -> [u8; 16] {
        let mut out = [0; 16];
        let fraction = |bits: u32, least: f64, most: f64| {
            let value = f64::from(f32::from_bits(bits));
            // NaN becomes 0.
            (value.clamp(least, 1.0) * most).round_ties_even() as i64
        };
        if self.channel == Channel::Unorm101010x2 {
            let part = |i: usize, most: f64| fraction(components[i], 0.0, most) as u32;
            let bits = part(0, 1023.0) | part(1, 1023.0) << 10 | part(2, 1023.0) << 20 | part(3, 3.0) << 30;
            out[..4].copy_from_slice(&bits.to_le_bytes());
            return out;
        }
        let size = self.channel.bytes() as usize;
        for (i, &bits) in components.iter().enumerate().take(self.channels as usize) {
            let value: u32 = match self.channel {
                Channel::U8 => bits.min(0xff),
                Channel::U16 => bits.min(0xffff),
                Channel::S8 => (bits as i32).clamp(-128, 127) as u32,
                Channel::S16 => (bits as i32).clamp(-32768, 32767) as u32,
                Channel::U32 | Channel::S32 | Channel::F32 => bits,
                Channel::F16 => f16::from_f32(f32::from_bits(bits)).to_bits().into(),
                Channel::Unorm8 => fraction(bits, 0.0, 255.0) as u32,
                Channel::Unorm16 => fraction(bits, 0.0, 65535.0) as u32,
                Channel::Snorm8 => fraction(bits, -1.0, 127.0) as u32,
                Channel::Snorm16 => fraction(bits, -1.0, 32767.0) as u32,
                // Nobody writes single texels of blocks.
                Channel::Unorm101010x2 | Channel::Blocks { .. } => 0,
            };
            out[i * size..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
        }
        out
    }

    /// `channel_data_type` of queries: OpenCL's numbers, from `CL_SNORM_INT8` on (PTX ISA, Channel Data Type and Channel
    /// Order Fields).
    pub fn data_type(self, normalize: bool) -> u32 {
        match self.channel {
            Channel::Snorm8 => 0x10d0,
            Channel::S8 if normalize => 0x10d0,
            Channel::Snorm16 => 0x10d1,
            Channel::S16 if normalize => 0x10d1,
            Channel::Unorm8 => 0x10d2,
            Channel::Blocks { block, .. } => match block {
                Block::Bc4Signed | Block::Bc5Signed => 0x10d0,
                Block::Bc6 | Block::Bc6Signed => 0x10dd,
                _ => 0x10d2,
            },
            Channel::U8 if normalize => 0x10d2,
            Channel::Unorm16 => 0x10d3,
            Channel::U16 if normalize => 0x10d3,
            Channel::Unorm101010x2 => 0x10d6,
            Channel::S8 => 0x10d7,
            Channel::S16 => 0x10d8,
            Channel::S32 => 0x10d9,
            Channel::U8 => 0x10da,
            Channel::U16 => 0x10db,
            Channel::U32 => 0x10dc,
            Channel::F16 => 0x10dd,
            Channel::F32 => 0x10de,
        }
    }

    /// `channel_order` of queries: `CL_R`, `CL_RG`, `CL_RGBA`.
    pub fn order(self) -> u32 {
        match self.channels {
            1 => 0x10b0,
            2 => 0x10b2,
            _ => 0x10b5,
        }
    }

    /// The same bytes, as whole numbers where they are fractions.
    pub fn whole(self) -> Format {
        let channel = match self.channel {
            Channel::Unorm8 => Channel::U8,
            Channel::Unorm16 => Channel::U16,
            Channel::Snorm8 => Channel::S8,
            Channel::Snorm16 => Channel::S16,
            channel => channel,
        };
        Format { channel, ..self }
    }
}

fn half_word(at: &[u8]) -> u16 {
    u16::from_le_bytes([at[0], at[1]])
}

/// An sRGB-encoded byte as a linear fraction, bits of f32.
pub fn linear(byte: u8) -> u32 {
    (f32::from(LINEAR[usize::from(byte)]) * (1.0 / 16384.0)).to_bits()
}

/// sRGB-encoded bytes as linear fractions, in units of 2^-14, as an H100 has them: few bits of IEC 61966-2-1's.
#[rustfmt::skip]
static LINEAR: [u16; 256] = [
    0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 66, 72, 78,
    85, 92, 99, 107, 115, 123, 131, 140, 150, 159, 169, 180, 190, 201, 213, 224,
    236, 250, 262, 276, 290, 304, 318, 332, 348, 364, 380, 396, 412, 430, 448, 466,
    484, 504, 524, 544, 564, 584, 604, 624, 648, 672, 692, 716, 740, 764, 788, 816,
    840, 864, 896, 920, 944, 976, 1000, 1032, 1064, 1088, 1120, 1152, 1184, 1216, 1248, 1280,
    1312, 1352, 1384, 1416, 1456, 1488, 1528, 1560, 1600, 1640, 1672, 1712, 1752, 1792, 1832, 1872,
    1920, 1952, 2000, 2048, 2080, 2128, 2176, 2224, 2272, 2320, 2368, 2416, 2464, 2512, 2560, 2608,
    2656, 2704, 2752, 2816, 2864, 2912, 2976, 3024, 3072, 3136, 3184, 3248, 3296, 3360, 3424, 3472,
    3536, 3600, 3664, 3712, 3776, 3840, 3904, 3968, 4032, 4096, 4160, 4224, 4288, 4352, 4416, 4512,
    4576, 4640, 4704, 4768, 4864, 4928, 4992, 5056, 5152, 5216, 5280, 5376, 5440, 5536, 5600, 5696,
    5760, 5824, 5920, 6016, 6080, 6176, 6240, 6336, 6400, 6496, 6592, 6688, 6752, 6848, 6944, 7008,
    7104, 7200, 7296, 7392, 7488, 7584, 7680, 7744, 7872, 7936, 8064, 8128, 8256, 8320, 8448, 8512,
    8640, 8768, 8832, 8960, 9024, 9152, 9280, 9344, 9472, 9600, 9664, 9792, 9920, 9984, 10112, 10240,
    10304, 10432, 10560, 10688, 10816, 10880, 11008, 11136, 11264, 11392, 11456, 11584, 11712, 11840, 11968, 12096,
    12224, 12352, 12480, 12608, 12736, 12864, 12992, 13120, 13248, 13376, 13504, 13632, 13760, 13888, 14016, 14144,
    14272, 14400, 14528, 14656, 14848, 14976, 15104, 15232, 15360, 15488, 15616, 15744, 16000, 16128, 16256, 16384,
];
