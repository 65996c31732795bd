//! Decompression in a stream: `cuMemBatchDecompressAsync`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::driver::profile::LONGEST_COMPRESSED;
use crate::driver::stream::Command;
use crate::driver::{Error, Result, Stream, pointer};
use crate::memory::AddressSpace;
use crate::memory::shadow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// A raw stream (RFC 1951), without the header of zlib or gzip.
    Deflate,
    /// One block (Snappy's raw format).
    Snappy,
    /// One block (LZ4's block format).
    Lz4,
}

/// One piece; `CUmemDecompressParams`.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub src: u64,
    pub src_bytes: u64,
    pub dst: u64,
    /// What is expected; 0: unknown.
    pub dst_bytes: u64,
    /// Where to write how many bytes it was, 32 bits.
    pub actual: u64,
    pub algorithm: Algorithm,
}

impl Piece {
    /// As much as there is from `dst` on, if it is not said.
    fn room(&self) -> Result<u64> {
        if self.dst_bytes > 0 {
            return Ok(self.dst_bytes);
        }
        let allocation = AddressSpace::get().find(self.dst).ok_or(Error::InvalidValue)?;
        Ok((allocation.end() - self.dst).min(LONGEST_COMPRESSED))
    }

    fn check(&self) -> Result<Piece> {
        let room = self.room()?;
        let is_there = |address: u64, bytes: u64| {
            let found = AddressSpace::get().find(address);
            found.is_some_and(|allocation| {
                allocation.contains(address, bytes) && pointer::decompresses(address, &allocation)
            })
        };
        let fits = self.src_bytes > 0 && self.src_bytes <= LONGEST_COMPRESSED && room <= LONGEST_COMPRESSED;
        let all = is_there(self.src, self.src_bytes) && is_there(self.dst, room) && is_there(self.actual, 4);
        if fits && all && self.actual.is_multiple_of(4) {
            Ok(Piece {
                dst_bytes: room,
                ..*self
            })
        } else {
            Err(Error::InvalidValue)
        }
    }

    /// `None`: the data is not what it should be, or too much.
    fn run(&self) -> Option<()> {
        // SAFETY: both ranges were found in allocations; memory is freed only after what is queued has been done. Kernels
        // that write there meanwhile would do so in a program that is wrong (manual), and harm its data alone.
        let (src, dst) = unsafe {
            (
                std::slice::from_raw_parts(self.src as *const u8, self.src_bytes as usize),
                std::slice::from_raw_parts_mut(self.dst as *mut u8, self.dst_bytes as usize),
            )
        };
        let written = match self.algorithm {
            Algorithm::Deflate => {
                miniz_oxide::inflate::decompress_slice_iter_to_slice(dst, std::iter::once(src), false, true).ok()?
            }
            Algorithm::Snappy => snap::raw::Decoder::new().decompress(src, dst).ok()?,
            Algorithm::Lz4 => lz4_flex::block::decompress_into(src, dst).ok()?,
        };
        // SAFETY: the word was found in an allocation, aligned.
        let actual = unsafe { &*(self.actual as *const AtomicU32) };
        actual.store(written as u32, Ordering::Release);
        shadow::defined(self.dst, written as u64);
        shadow::defined(self.actual, 4);
        Some(())
    }
}

/// `cuMemBatchDecompressAsync`: all pieces, or none if one is wrong, whose place is the answer. Data that cannot be
/// decompressed is the context's error, as any that a device finds.
///
/// # Errors
/// 1 for memory that is not there, or was not made for it; 900 in a stream that records.
pub fn decompress(pieces: &[Piece], stream: &Arc<Stream>) -> std::result::Result<(), (Option<usize>, Error)> {
    let general = |error| (None, error);
    stream.shared.check().map_err(general)?;
    stream.refuse_capture().map_err(general)?;
    let checked = pieces
        .iter()
        .enumerate()
        .map(|(index, piece)| piece.check().map_err(|error| (Some(index), error)))
        .collect::<std::result::Result<Vec<Piece>, _>>()?;
    stream.enqueue(Command::Work(Box::new(move |shared| {
        for (index, piece) in checked.iter().enumerate() {
            if piece.run().is_none() {
                let report = format!(
                    "cuMemBatchDecompressAsync: piece {index} is not {:?} data, or too much",
                    piece.algorithm
                );
                return shared.fail(Error::LaunchFailed, &report);
            }
        }
    })));
    Ok(())
}
