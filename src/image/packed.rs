//! Compressed payloads of fat binaries → bytes.
//!
//! The declared size is a promise of untrusted input: it is checked against the compressed size before memory is spent,
//! and nothing beyond it is ever produced.

use super::error::{ErrorKind, ImageError};
use std::io::Read;

/// How a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As it is.
    Plain,
    /// One raw LZ4 block without a frame header.
    Lz4,
    /// One ordinary zstd frame.
    Zstd,
    /// NVIDIA's obfuscation of LTO-IR; never decoded.
    Scrambled,
}

/// Sizes up to here are believed whatever the ratio.
const SMALL: u64 = 64 << 20;
/// Beyond [`SMALL`], a text does not compress better than this; real PTX reaches 10 to 50.
const RATIO: u64 = 1024;
/// No module is larger. The largest known PTX of one fat binary is some 10 MB.
const LIMIT: u64 = 2 << 30;

/// How much memory is asked for at a time.
const STEP: usize = 1 << 20;

/// Bytes as stored, with what it takes to unpack them. Cloning is not needed: share it by `Arc`.
#[derive(Debug)]
pub(super) struct Packed {
    pub encoding: Encoding,
    pub stored: Box<[u8]>,
    /// Size after unpacking; meaningless for [`Encoding::Plain`].
    pub unpacked: u64,
}

impl Packed {
    /// The bytes before compression.
    pub fn unpack(&self) -> Result<Vec<u8>, ImageError> {
        let corrupt = |message: String| ImageError::new(ErrorKind::Corrupt, message);
        match self.encoding {
            Encoding::Plain => Ok(self.stored.to_vec()),
            Encoding::Scrambled => Err(ImageError::new(
                ErrorKind::Unsupported,
                "a scrambled payload cannot be read",
            )),
            Encoding::Lz4 => {
                let size = self.believable_size()?;
                let mut bytes = Vec::new();
                self.make_room(&mut bytes, size)?;
                bytes.resize(size, 0);
                let length = lz4_flex::block::decompress_into(&self.stored, &mut bytes)
                    .map_err(|error| corrupt(format!("LZ4 payload cannot be decompressed: {error}")))?;
                bytes.truncate(length);
                self.exactly(bytes)
            }
            Encoding::Zstd => {
                let size = self.believable_size()?;
                let broken = |error: std::io::Error| corrupt(format!("zstd payload cannot be decompressed: {error}"));
                let decoder = zstd::stream::read::Decoder::new(&self.stored[..])
                    .map_err(broken)?
                    .single_frame();
                let mut bytes = Vec::new();
                // One byte more than declared, so that a longer frame is noticed; memory grows only as bytes come.
                let mut decoder = decoder.take(size as u64 + 1);
                loop {
                    self.make_room(&mut bytes, STEP)?;
                    if decoder
                        .by_ref()
                        .take(STEP as u64)
                        .read_to_end(&mut bytes)
                        .map_err(broken)?
                        == 0
                    {
                        break;
                    }
                }
                self.exactly(bytes)
            }
        }
    }

    /// Room for `more` bytes, or an error.
    fn make_room(&self, bytes: &mut Vec<u8>, more: usize) -> Result<(), ImageError> {
        bytes.try_reserve(more).map_err(|_| {
            let message = format!("no memory for the {} bytes of a payload", self.unpacked);
            ImageError::new(ErrorKind::TooLarge, message)
        })
    }

    fn believable_size(&self) -> Result<usize, ImageError> {
        let stored = self.stored.len() as u64;
        if self.unpacked > LIMIT || self.unpacked > SMALL.max(stored.saturating_mul(RATIO)) {
            let message = format!("refused to decompress {stored} bytes to the declared {}", self.unpacked);
            return Err(ImageError::new(ErrorKind::TooLarge, message));
        }
        Ok(self.unpacked as usize)
    }

    fn exactly(&self, bytes: Vec<u8>) -> Result<Vec<u8>, ImageError> {
        if bytes.len() as u64 == self.unpacked {
            return Ok(bytes);
        }
        let (got, want) = (bytes.len(), self.unpacked);
        let message = if got as u64 > want {
            format!("payload decompresses to more than the declared {want} bytes")
        } else {
            format!("payload decompresses to {got} bytes where {want} were declared")
        };
        Err(ImageError::new(ErrorKind::Corrupt, message))
    }
}
