//! How a bundle stands, as one number: what its lanes do next follows from that and from memory. A bundle that stands again as it
//! stood before goes round in a circle, unless somebody else changes what it reads.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::isa::lanes::WARP;
use crate::simt::machine::{BlockEnv, slots};

use super::bundle::{Bundle, Conditions, State};

impl Bundle {
    /// Tells an observer that wants to know, before some fragment goes on.
    #[cold]
    pub(super) fn tell_stand(&self, block: &BlockEnv<impl Conditions>) {
        let observer = block.env.watch().observer();
        if let Some(observer) = observer.filter(|observer| observer.follows_stands())
            && self.marching.is_none()
        {
            let first = self.first_thread as usize / WARP;
            observer.stands(block.ctaid, first..first + self.warps as usize, self.stand(block));
        }
    }

    /// Places, registers and local memory of all lanes. Stores to local memory are nobody else's business, so it has to be here.
    fn stand(&self, block: &BlockEnv<impl Conditions>) -> u64 {
        let mut stand = DefaultHasher::new();
        for fragment in &self.fragments {
            (fragment.pc, fragment.frame, fragment.mask).hash(&mut stand);
            (fragment.state == State::Ready).hash(&mut stand);
        }
        let mut top = 0;
        for frame in self.frames.iter().filter(|frame| frame.refs > 0) {
            (frame.base, frame.parent, frame.call).hash(&mut stand);
            if let Some(window) = &frame.window {
                window.bytes().hash(&mut stand);
            }
            top = top.max(u64::from(frame.top()));
        }
        let top = top.min(block.local_bytes).min(block.local_stride.into());
        for (w, exist) in self.exist.iter().enumerate().take(self.warps as usize) {
            for lane in slots::bits(*exist) {
                let thread = u64::from(self.first_thread) + (w * WARP + lane) as u64;
                let start = block.local + thread * u64::from(block.local_stride);
                // SAFETY: each lane has its part of the block's local window, of `local_stride` bytes, which is there as long as
                // the block runs; memory of the arena is zeros before anybody writes it. The lanes, which alone may write there,
                // are this thread's, and do nothing now.
                let bytes = unsafe { std::slice::from_raw_parts(start as *const u8, top as usize) };
                bytes.hash(&mut stand);
            }
        }
        stand.finish()
    }
}
