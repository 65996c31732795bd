//! Lanes that stand at one `.sync` operation of a function that they have entered apart: its instruction is the same, and so they
//! meet, but each call has a frame of its own. The frames become one.

use std::sync::Arc;

use crate::isa::lanes::MAX_WARPS;
use crate::simt::machine::slots::{self, Slot, lanes};

use super::bundle::{Bundle, Fragment, State};

impl Bundle {
    /// Makes one of the frames in which lanes of warp `w`, of those in `mask`, wait at the same instruction; `false`: there are no
    /// two such.
    pub(super) fn join(&mut self, w: usize, mask: u32) -> bool {
        let mut any = false;
        while let Some((one, other)) = self.two_of_a_kind(w, mask) {
            self.join_frames(one, other);
            any = true;
        }
        if any {
            // They wait for each other no more.
            self.merge(false);
        }
        any
    }

    /// Frames in which lanes wait at the same instruction, and were called from the same places.
    fn two_of_a_kind(&self, w: usize, mask: u32) -> Option<(u32, u32)> {
        let waits = |f: &&Fragment| f.state == State::Gathering && f.mask[w] & mask != 0;
        let mut waiting = self.fragments.iter().filter(waits);
        while let Some(one) = waiting.next() {
            let mut others = waiting.clone();
            let alike = others.find(|f| f.pc == one.pc && f.frame != one.frame && self.are_alike(one.frame, f.frame));
            if let Some(other) = alike {
                return Some((one.frame, other.frame));
            }
        }
        None
    }

    fn are_alike(&self, mut one: u32, mut other: u32) -> bool {
        while one != other {
            let (a, b) = (&self.frames[one as usize], &self.frames[other as usize]);
            let same = Arc::ptr_eq(&a.exec, &b.exec) && (a.depth, a.base, a.call) == (b.depth, b.base, b.call);
            if !same || a.depth == 0 || a.tops.is_some() || b.tops.is_some() {
                return false;
            }
            (one, other) = (a.parent, b.parent);
        }
        true
    }

    /// Frame `other` and its callers become part of frame `one` and its callers, as far as these are not the same.
    fn join_frames(&mut self, one: u32, other: u32) {
        let mut levels = Vec::new();
        let (mut a, mut b) = (one, other);
        while a != b {
            levels.push((a, b, self.lanes_in(b)));
            (a, b) = (self.frames[a as usize].parent, self.frames[b as usize].parent);
        }
        for (a, b, mask) in levels {
            self.copy_registers(a, b, &mask);
            for fragment in self.fragments.iter_mut().filter(|f| f.frame == b) {
                fragment.frame = a;
            }
            for frame in self
                .frames
                .iter_mut()
                .filter(|f| f.refs > 0 && f.depth > 0 && f.parent == b)
            {
                frame.parent = a;
            }
            let gone = &mut self.frames[b as usize];
            let (refs, parent) = (std::mem::take(&mut gone.refs), gone.parent);
            let key = Arc::as_ptr(&gone.exec) as usize;
            let window = gone.window.take();
            self.windows.entry(key).or_default().extend(window);
            self.vacant.push(b);
            self.frames[a as usize].refs += refs;
            self.frames[parent as usize].refs -= 1;
        }
        self.together = None;
    }

    /// Lanes that are in a frame, or in one that was called from it.
    fn lanes_in(&self, frame: u32) -> [u32; MAX_WARPS] {
        let mut all = [0; MAX_WARPS];
        for fragment in &self.fragments {
            let mut at = fragment.frame;
            while at != frame && self.frames[at as usize].depth > 0 {
                at = self.frames[at as usize].parent;
            }
            if at == frame {
                all.iter_mut().zip(fragment.mask).for_each(|(all, own)| *all |= own);
            }
        }
        all
    }

    /// The registers of the lanes `mask` from frame `from` to frame `to`, both of the same function.
    fn copy_registers(&mut self, to: u32, from: u32, mask: &[u32; MAX_WARPS]) {
        let [to, from] = [to, from].map(|frame| &self.frames[frame as usize]);
        let compiled = &to.exec.compiled;
        let registers = compiled.slots.iter().zip(&compiled.function.body.registers);
        for (place, register) in registers {
            let Some(offset) = place else { continue };
            let slot = Slot {
                offset: offset * to.exec.width,
                width: register.width,
            };
            for lane in lanes(mask) {
                // SAFETY: both windows are of this executable, which has the slot, and two different ones.
                unsafe { slots::copy(to.regs(), from.regs(), slot, lane) };
            }
        }
    }
}
