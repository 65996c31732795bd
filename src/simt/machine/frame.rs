//! Frames in a lane's local memory: what a call passes and a return brings back (PTX Writer's Guide to Interoperability,
//! Function Calling Sequence), and bytes that a system call finds in the caller's.

use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::program::{Copy3, Proxy, Space};

use super::access::tell_one;
use super::context::Cx;
use super::observe::Direction;
use super::slots::bits;

/// Two frames of a lane's local window between which a call copies.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    pub from: u32,
    pub to: u32,
    /// Bytes of each frame that are there to be read and written: what a piece has beyond them is left out. A prototype
    /// may say more than the function that is called takes.
    pub readable: u32,
    pub writable: u32,
}

impl Between {
    /// What of a piece lies within both frames.
    fn bytes(&self, piece: &Copy3) -> u32 {
        let readable = self.readable.saturating_sub(piece.from);
        let writable = self.writable.saturating_sub(piece.to);
        piece.bytes.min(readable).min(writable)
    }
}

/// Copies pieces of one frame to another for the lanes of `mask`. Both frames lie within the lane's window.
pub fn copy<const WATCHED: bool>(cx: &Cx<'_>, mask: &[u32; MAX_WARPS], pieces: &[Copy3], frames: Between) {
    for piece in pieces {
        let bytes = frames.bytes(piece);
        if bytes == 0 {
            continue;
        }
        for (w, lanes) in mask.iter().enumerate() {
            for lane in bits(*lanes).map(|i| w * WARP + i) {
                let (src, dst) = (
                    byte(cx, lane, u64::from(frames.from) + u64::from(piece.from)),
                    byte(cx, lane, u64::from(frames.to) + u64::from(piece.to)),
                );
                // SAFETY: both ranges lie in their frames, cut just now, and frames lie within the lane's window, which
                // the tier checked when it made them.
                unsafe { std::ptr::copy(src, dst, bytes as usize) };
                if WATCHED {
                    for (at, direction) in [(src, Direction::Read), (dst, Direction::Write)] {
                        let range = (at as u64, bytes.into());
                        tell_one::<WATCHED>(cx, lane, range, Space::Local, direction, Proxy::Generic);
                    }
                    cx.copied::<WATCHED>(lane, src as u64, dst as u64, bytes.into());
                }
            }
        }
    }
}

/// Address of byte `offset` of a lane's local window.
fn byte(cx: &Cx<'_>, lane: usize, offset: u64) -> *mut u8 {
    (cx.local(lane) + offset) as *mut u8
}

/// The piece of the running frame that a system call's argument or result takes, `limit` bytes of it at most; it lies
/// within the lane's window whatever the declaration says.
fn within(cx: &Cx<'_>, lane: usize, offset: u32, bytes: u32, limit: usize) -> (*mut u8, usize) {
    let start = u64::from(cx.frame) + u64::from(offset);
    let room = u64::from(cx.block.local_stride).saturating_sub(start);
    let bytes = u64::from(bytes).min(limit as u64).min(room);
    (byte(cx, lane, start), bytes as usize)
}

/// Bytes of an argument in the running frame; zeros where the declaration has fewer.
pub fn argument<const WATCHED: bool, const N: usize>(
    cx: &Cx<'_>,
    lane: usize,
    args: &[Copy3],
    index: usize,
) -> [u8; N] {
    let mut raw = [0; N];
    if let Some(argument) = args.get(index) {
        let (from, bytes) = within(cx, lane, argument.from, argument.bytes, N);
        // SAFETY: as many bytes lie in the lane's window, and in the array.
        unsafe { std::ptr::copy_nonoverlapping(from, raw.as_mut_ptr(), bytes) };
        if WATCHED && bytes > 0 {
            let range = (from as u64, bytes as u64);
            tell_one::<WATCHED>(cx, lane, range, Space::Local, Direction::Read, Proxy::Generic);
        }
    }
    raw
}

/// Puts a call's result where the running frame has it.
pub fn result<const WATCHED: bool>(cx: &Cx<'_>, lane: usize, results: &[Copy3], value: u64) {
    if let Some(result) = results.first() {
        let raw = value.to_le_bytes();
        let (to, bytes) = within(cx, lane, result.to, result.bytes, raw.len());
        // SAFETY: as many bytes lie in the lane's window, and in the array.
        unsafe { std::ptr::copy_nonoverlapping(raw.as_ptr(), to, bytes) };
        if WATCHED && bytes > 0 {
            let range = (to as u64, bytes as u64);
            tell_one::<WATCHED>(cx, lane, range, Space::Local, Direction::Write, Proxy::Generic);
        }
    }
}
