//! Lanes that wait at a `.sync` operation for members of their warp (PTX ISA, bar.warp.sync, shfl.sync and others): who
//! meets whom, and who goes on when nobody else can come.
//!
//! A member is waited for as long as it may come: while it runs, and while it waits for something outside of its warp, or for
//! lanes that may come. Lanes that wait for nobody but each other, at different instructions or with different masks, would wait
//! for ever: the first goes on without the others (PTX ISA: undefined).

use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::program::{Op, Value};
use crate::simt::machine::Cx;
use crate::simt::machine::observe::{SyncEvent, Use};
use crate::simt::machine::slots::{Slot, bits, value};

use super::bundle::{Bundle, Fragment, State};
use super::code::Code;
use super::collective;
use super::compile::Pc;

impl Bundle {
    /// Some of `lanes` have begun to wait: those go on that meet at barriers of their warp in several places, and where lanes
    /// wait for nobody but each other, the first of them, without the others.
    pub(super) fn resolve(&mut self, lanes: &[u32; MAX_WARPS], cx: &Cx<'_>, watched: bool) {
        for w in (0..self.warps as usize).filter(|&w| lanes[w] != 0) {
            if self.meet_at_barriers(w, cx, watched) {
                continue;
            }
            let mut only = [0; MAX_WARPS];
            only[w] = self.wait_for_each_other(w);
            if only[w] != 0 && !self.join(w, only[w]) {
                self.force(&only);
            }
        }
    }

    /// Lanes of warp `w` that wait at `.sync` operations for nobody but each other.
    fn wait_for_each_other(&self, w: usize) -> u32 {
        let mut named = [0; WARP];
        let mut waiting = 0;
        for f in self.fragments.iter().filter(|f| f.state == State::Gathering) {
            let Code::Rare(op) = &self.frames[f.frame as usize].exec.code[f.pc as usize].code else {
                continue;
            };
            let Some(members) = collective::members(op) else {
                continue;
            };
            let regs = self.frames[f.frame as usize].regs();
            for lane in bits(f.mask[w]) {
                // SAFETY: the fragment stands at this instruction of its frame, so the mask is a number or a slot of the
                // frame's window, which has this lane.
                named[lane] = unsafe { value(regs, members, w * WARP + lane) } & self.live[w];
            }
            waiting |= f.mask[w];
        }
        // Who waits for somebody else may be let go by him.
        loop {
            let left = bits(waiting).filter(|&lane| named[lane] & !waiting == 0);
            let left = left.fold(0, |all, lane| all | 1 << lane);
            if left == waiting {
                return waiting;
            }
            waiting = left;
        }
    }

    /// Lets the first of those who wait in vain for members of a `.sync` operation go on without them, as far as they are
    /// among `lanes`, unless they stand at one instruction and only have to be brought together; `false`: there is none.
    pub fn force(&mut self, lanes: &[u32; MAX_WARPS]) -> bool {
        if (0..self.warps as usize).any(|w| self.join(w, lanes[w])) {
            return true;
        }
        let place = |f: &Fragment| (u32::MAX - self.frames[f.frame as usize].depth, f.pc);
        let waits = |f: &Fragment| f.state == State::Gathering && f.mask.iter().zip(lanes).any(|(f, l)| f & l != 0);
        let waiting = self.fragments.iter().enumerate().filter(|(_, f)| waits(f));
        let Some((at, f)) = waiting.min_by_key(|(_, f)| place(f)) else {
            return false;
        };
        let (pc, taken) = (f.pc, std::array::from_fn(|w| f.mask[w] & lanes[w]));
        let at = self.part(at, taken, pc);
        self.fragments[at].forced = true;
        true
    }

    /// Lanes `taken` of a fragment that waits go on at `target`: the fragment that has them.
    fn part(&mut self, at: usize, taken: [u32; MAX_WARPS], target: Pc) -> usize {
        let mut at = at;
        if self.fragments[at].mask != taken {
            let pc = self.fragments[at].pc;
            self.split(at, taken, pc, target);
            at = self.fragments.len() - 1;
        }
        (self.fragments[at].state, self.fragments[at].pc) = (State::Ready, target);
        at
    }

    /// Barriers of a warp are one, wherever its lanes come to them: lanes of warp `w` go on all of whose members wait at
    /// one, and name the same. `false`: there are none.
    fn meet_at_barriers(&mut self, w: usize, cx: &Cx<'_>, watched: bool) -> bool {
        let mut named = [0; WARP];
        for f in self.fragments.iter().filter(|f| f.state == State::Gathering) {
            if let Some(members) = self.warp_barrier(f) {
                let regs = self.frames[f.frame as usize].regs();
                for lane in bits(f.mask[w]) {
                    // SAFETY: the fragment stands at this instruction of its frame, so the mask is a number or a slot of
                    // the frame's window, which has this lane.
                    named[lane] = unsafe { value(regs, members, w * WARP + lane) } & self.live[w];
                }
            }
        }
        let meets = |lane: usize| named[lane] != 0 && bits(named[lane]).all(|other| named[other] == named[lane]);
        let met = (0..WARP)
            .filter(|&lane| meets(lane))
            .fold(0u32, |all, lane| all | 1 << lane);
        if met == 0 {
            return false;
        }
        for at in 0..self.fragments.len() {
            let f = &self.fragments[at];
            let mut taken = [0; MAX_WARPS];
            taken[w] = f.mask[w] & met;
            if taken[w] != 0 && f.state == State::Gathering {
                self.part(at, taken, f.pc + 1);
            }
        }
        if watched {
            cx.used::<true>(|| Use::Members {
                warp: w,
                lanes: bits(met)
                    .filter(|&lane| named[lane] >> lane & 1 == 1)
                    .fold(0, |all, lane| all | 1 << lane),
                named,
                live: self.live[w],
                goes_on: true,
                elsewhere: None,
            });
            for lane in (0..WARP).filter(|&lane| met >> lane & 1 == 0) {
                named[lane] = 0;
            }
            cx.synchronised::<true>(|| SyncEvent::Warp {
                warp: w,
                members: named,
            });
        }
        true
    }

    /// The members for which a fragment waits at a barrier of its warp, if it stands at one.
    fn warp_barrier(&self, f: &Fragment) -> Option<Value<Slot>> {
        if let Code::Rare(op) = &self.frames[f.frame as usize].exec.code[f.pc as usize].code
            && let Op::WarpBarrier { members } = &**op
        {
            return Some(*members);
        }
        None
    }
}
