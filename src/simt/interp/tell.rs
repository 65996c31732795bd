//! What observers hear of lanes that only the interpreter knows: who stands at a `.sync` operation with whom, and who exits.

use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::isa::shuffle;
use crate::program::{Op as Operation, Value};
use crate::simt::machine::observe::{Elsewhere, Use};
use crate::simt::machine::slots::{Slot, bits, read, value};
use crate::simt::machine::{Cx, warp};

use super::bundle::Bundle;
use super::collective;
use super::compile::Pc;

impl Bundle {
    /// Lanes of `cx` carry out an operation, all of whose partners are there that will be.
    ///
    /// # Safety
    /// Slots of `op` lie in the running window.
    #[cold]
    pub(super) unsafe fn tell_together(&self, op: &Operation<Slot>, cx: &Cx<'_>) {
        if let Some(members) = collective::members(op) {
            // SAFETY: `members` is a number or a slot of the running window, as the caller promises.
            unsafe {
                self.tell_members(members, true, cx);
                if !matches!(op, Operation::WarpBarrier { .. }) {
                    warp::collective(cx, members);
                }
            }
        }
        let is_told = matches!(op, Operation::Shuffle { .. } | Operation::Vote { members: None, .. });
        if !is_told || cx.block.env.watch().observer_of_uses().is_none() {
            return;
        }
        let names_some = matches!(
            op,
            Operation::Shuffle { members: Some(members), .. } if *members != Value::Immediate(u32::MAX)
        );
        for w in (0..self.warps as usize).filter(|&w| cx.mask.lanes[w] != 0) {
            let lanes = cx.mask.lanes[w];
            if !names_some && lanes == u32::MAX {
                // Whatever a lane reads is there.
                continue;
            }
            let told = || {
                if let Operation::Shuffle {
                    mode, b, c, members, ..
                } = op
                {
                    let (mut partners, mut sources) = ([0; WARP], [None; WARP]);
                    for lane in bits(lanes) {
                        let at = w * WARP + lane;
                        // SAFETY: the slots are those of `op`, and the lane is one of the mask's.
                        let (own, of) = unsafe {
                            let named = members.map_or(u32::MAX, |members| value(cx.regs, members, at));
                            (named & lanes, [*b, *c].map(|slot: Slot| read(cx.regs, slot, at) as u32))
                        };
                        partners[lane] = own;
                        sources[lane] = shuffle::reads(*mode, lane as u32, of[0], of[1]);
                    }
                    Use::Shuffle {
                        warp: w,
                        lanes,
                        partners,
                        sources,
                    }
                } else {
                    Use::Vote {
                        warp: w,
                        lanes,
                        live: self.live[w],
                    }
                }
            };
            cx.used::<true>(told);
        }
    }

    /// Lanes of `cx` have come to a `.sync` operation, or go on behind it.
    ///
    /// # Safety
    /// `members` is a number or a slot of the running window.
    #[cold]
    pub(super) unsafe fn tell_members(&self, members: Value<Slot>, goes_on: bool, cx: &Cx<'_>) {
        if cx.block.env.watch().observer_of_uses().is_none() {
            return;
        }
        for w in (0..self.warps as usize).filter(|&w| cx.mask.lanes[w] != 0) {
            cx.used::<true>(|| {
                let lanes = cx.mask.lanes[w];
                let mut named = [0; WARP];
                for lane in bits(lanes) {
                    // SAFETY: `members` is a number or a slot of the running window, and the lane is one of the mask's.
                    named[lane] = unsafe { value(cx.regs, members, w * WARP + lane) };
                }
                let missing = named.iter().fold(0, |all, named| all | named) & self.live[w] & !lanes;
                Use::Members {
                    warp: w,
                    lanes,
                    named,
                    live: self.live[w],
                    goes_on,
                    elsewhere: self.whereabouts(w, missing).filter(|_| goes_on),
                }
            });
        }
    }

    /// Where one of the lanes `missing` of warp `w` is.
    fn whereabouts(&self, w: usize, missing: u32) -> Option<Elsewhere> {
        let fragment = self.fragments.iter().find(|f| f.mask[w] & missing != 0)?;
        let exec = &self.frames[fragment.frame as usize].exec;
        Some(Elsewhere {
            lanes: fragment.mask[w] & missing,
            function: std::ptr::from_ref(&*exec.function) as usize,
            span: exec.span(fragment.pc),
        })
    }

    /// The lanes of `cx`, of fragment `at`, exit at `pc`.
    #[inline]
    pub(super) fn tell_exit(&self, at: usize, pc: Pc, cx: &mut Cx<'_>) {
        let exec = &self.frames[self.fragments[at].frame as usize].exec;
        if exec.machine.watched {
            cx.span = exec.span(pc);
            let lanes: [u32; MAX_WARPS] = cx.mask.lanes;
            cx.used::<true>(|| Use::Exit { lanes });
        }
    }
}
