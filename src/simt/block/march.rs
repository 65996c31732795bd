//! A block whose warps march: in compiled code, from barrier to barrier, abreast as far as they come to the same ones.

use std::cell::Cell;
use std::ops::Range;
use std::time::Instant;

use crate::program::Special;
use crate::simt::interp::{self, Apart, Bundle, Conditions, Halt, Located, SLICE};

use super::{Block, Turn, Way};

/// Turns of a loop through memory that a warp makes while others of its block wait that read what lies beside: more, and it is no
/// longer there when they come; fewer, and going from one to the other costs too much.
const TURNS: i64 = 16;

/// What a block's beginning counts as, in instructions.
const START: i64 = 64;

impl Block<'_> {
    /// All warps are about to march. Writes what changes from block to block, where it has, and for the first lane alone if code looks
    /// nowhere else. `now`: where the block is.
    #[inline(always)]
    pub(super) fn set_out(&mut self, now: [u32; 3]) {
        let last = self.last;
        let form = self.env.env.form;
        let everywhere = !self.ready
            || form
                .kernel
                .native
                .as_ref()
                .is_none_or(|native| native.all.looks_at_block);
        let last = last.filter(|_| !(everywhere && self.stale));
        for (at, (_, which)) in form.kernel.per_block.iter().enumerate() {
            let before = |last: [u32; 3]| match *which {
                Special::Ctaid(axis) => last.get(usize::from(axis)) == now.get(usize::from(axis)),
                _ => last == now,
            };
            if last.is_some_and(before) {
                continue;
            }
            match everywhere {
                true => self.set_special(at),
                false => self.bundles[0].set_first(at, &self.env),
            }
        }
        self.stale = !everywhere;
        self.last = Some(now);
        if !self.ready {
            self.bundles.iter_mut().for_each(Bundle::set_out);
        }
        self.marches = true;
    }

    /// Writes a special register that is the same in the whole block to all windows.
    fn set_special(&mut self, at: usize) {
        for bundle in &mut self.bundles {
            bundle.set_special(at, &self.env);
        }
    }

    /// All lanes have what only the first one has had.
    fn catch_up(&mut self) {
        if std::mem::take(&mut self.stale) {
            for at in 0..self.env.env.form.kernel.per_block.len() {
                self.set_special(at);
            }
        }
    }

    /// More blocks march from their beginning to their end, as the last one has, and nothing is done in between but what differs from
    /// one to the next. `at` is told which. Leaves some if others are to have a look first, or if one of them needs more than to march:
    /// what its turn comes to is given.
    ///
    /// # Errors
    /// The first fault.
    pub fn march_on(&mut self, blocks: &mut Range<u64>, at: &Cell<[u32; 3]>) -> Result<Turn, Box<Located>> {
        let Way { grid, form } = self.env.env;
        let native = form.kernel.native.as_ref().map(|native| &native.all);
        let Some(native) = native.filter(|_| (self.ready || self.again) && self.env.peers == 1) else {
            return Ok(Turn::Done);
        };
        let turns = self.turns();
        while self.slice > 0
            && !self.state.touched
            && grid.is_undisturbed()
            && let Some(index) = blocks.next()
        {
            // In registers: numbers that were stored one by one and are read together, the CPU reads when all stores before them are done, and
            // those are what the last block has written.
            let ctaid = grid.ctaid(index);
            self.env.ctaid = ctaid;
            at.set(ctaid);
            self.set_out(ctaid);
            if !self.ready {
                self.began = None;
                self.slice -= START;
                if !self.march()? {
                    return self.turn();
                }
            } else {
                let gone = Bundle::abreast_again(&mut self.bundles, native, &self.env, &mut self.state, turns);
                // Looked at where it lies, for the same reason.
                match &gone {
                    Ok(Some(stand)) => {
                        self.slice -= stand.spent + START;
                        if !stand.all_ended {
                            self.stand = gone?;
                            return self.turn();
                        }
                    }
                    Ok(None) => return self.turn(),
                    Err(_) => {
                        gone?;
                    }
                }
                self.marches = false;
                if self.state.changed {
                    self.release();
                }
            }
            if self.state.touched
                && let Some(turn) = self.rest()?
            {
                return Ok(turn);
            }
        }
        Ok(Turn::Done)
    }

    /// Turns of such a loop after which a warp lets the others go on. An only one need not pause for anybody.
    fn turns(&self) -> i64 {
        match self.bundles.len() {
            1 => i64::MAX,
            _ => TURNS,
        }
    }

    /// Whether all warps stand with all their lanes at one place each, and nobody waits for anything.
    pub(super) fn can_march(&self) -> bool {
        self.bundles.iter().all(Bundle::can_march)
            && self.state.stuck == 0
            && self.state.barriers.are_idle()
            && !self.bundles.iter().all(Bundle::is_done)
    }

    /// Warps march from barrier to barrier, one after the other, as most blocks do to their end: then `true`. Who stands where is
    /// taken down when one of them goes another way, or when it is time for others.
    ///
    /// # Errors
    /// The first fault.
    pub(super) fn march(&mut self) -> Result<bool, Box<Located>> {
        let fresh = std::mem::take(&mut self.marches);
        self.again = false;
        let form = self.env.env.form;
        let Some(native) = form.kernel.native.as_ref().map(|native| &native.all) else {
            unreachable!("blocks march whose kernel is compiled")
        };
        let mut share = self.bundles.iter().map(Bundle::next_share).min().unwrap_or_default();
        let (mut abreast, mut late) = (None, false);
        let turns = self.turns();
        if std::mem::take(&mut self.ready) {
            debug_assert!(fresh, "who is ready has set out");
            let stand = match self.stand.take() {
                Some(stand) => Some(stand),
                None => {
                    late = self.is_late(&mut share);
                    let stand = match late {
                        true => None,
                        false => Bundle::abreast_again(&mut self.bundles, native, &self.env, &mut self.state, turns)?,
                    };
                    self.slice -= stand.as_ref().map_or(0, |stand| stand.spent);
                    stand
                }
            };
            if let Some(stand) = stand {
                share -= stand.spent;
                if stand.all_ended {
                    self.ready = true;
                    if self.state.changed {
                        self.release();
                    }
                    return Ok(true);
                }
                abreast = Some(stand);
            }
            self.catch_up();
            self.bundles.iter_mut().for_each(Bundle::set_out);
        }
        self.bundles.iter_mut().for_each(Bundle::fall_in);
        // Where they meet, who has come there, who has stopped the march, and where he has come to.
        let all = u32::MAX >> (32 - self.bundles.len().clamp(1, 32));
        // The last warp marches by itself where it lacks lanes, and the others wait for it.
        let ragged = self.bundles.last().is_some_and(Bundle::is_ragged);
        let whole = self.bundles.len() - usize::from(ragged);
        let (met, come, last, halt) = 'march: loop {
            let (mut met, mut come) = (None, 0u32);
            // Those that have marched are entered in the books first.
            if abreast.is_none() && (late || self.is_late(&mut share)) {
                break 'march (met, come, 0, Halt::Elsewhere);
            }
            let gone = match abreast.take() {
                Some(stand) => Ok(Some(stand)),
                None if whole == 0 => Ok(None),
                None => {
                    let before = share;
                    let (bundles, way) = (&mut self.bundles[..whole], (&mut share, turns, ragged));
                    let gone = Bundle::march_abreast(bundles, native, &self.env, &mut self.state, way);
                    self.slice -= before - share;
                    gone
                }
            };
            // Looked at where it lies: what was stored word by word is read as a whole when all stores before it are done.
            if let Ok(Some(stand)) = &gone {
                if stand.all_ended && !ragged {
                    self.ready = fresh && Bundle::get_ready(&mut self.bundles, native, &self.env, &mut self.state);
                    break (None, all, 0, Halt::End);
                }
                if let Some(Apart {
                    come: who,
                    barrier,
                    at,
                    halt,
                }) = Bundle::settle(&mut self.bundles[..whole], stand, native, &mut self.state)?
                {
                    (met, come) = (barrier, who);
                    if halt != Halt::Pause {
                        break 'march (met, come, at, halt);
                    }
                } else {
                    (come, met) = Bundle::met(&self.bundles[..whole], stand);
                    // Who pauses goes on, and the last warp when all others wait for it.
                    if come.count_ones() < whole as u32 || !ragged {
                        continue;
                    }
                }
            } else {
                gone?;
            }
            while come != all {
                if self.is_late(&mut share) {
                    break 'march (met, come, 0, Halt::Elsewhere);
                }
                let before = share;
                // Who is left alone need not pause for anybody.
                let turns = if (all & !come).count_ones() > 1 {
                    TURNS
                } else {
                    i64::MAX
                };
                for (i, bundle) in self.bundles.iter_mut().enumerate() {
                    if come >> i & 1 != 0 {
                        continue;
                    }
                    match bundle.march((native, &form.kernel), &self.env, &mut self.state, (&mut share, turns))? {
                        Halt::Pause => continue,
                        Halt::End => {}
                        Halt::Barrier(id) if *met.get_or_insert(id) == id => {}
                        halt => break 'march (met, come, i, halt),
                    }
                    come |= 1 << i;
                }
                self.slice -= before - share;
            }
            if met.is_none() {
                break (None, come, 0, Halt::End);
            }
        };
        if halt == Halt::End {
            // Nobody is left of whom anything could be taken down.
            self.bundles.iter_mut().for_each(Bundle::fall_out);
            self.again = fresh;
            if self.state.changed || self.env.peers > 1 {
                self.release();
            }
            return Ok(true);
        }
        for bundle in &mut self.bundles {
            bundle.enter_books(native)?;
        }
        if share <= 0 {
            self.bundles.iter_mut().for_each(|bundle| bundle.tire(share));
        }
        for bundle in self.bundles.iter().filter(|bundle| bundle.is_done()) {
            self.state.barriers.left(bundle.first_warp(), bundle.live_by_warp());
        }
        if let Some(id) = met {
            let numbered = self.bundles.iter_mut().enumerate();
            for (_, bundle) in numbered.filter(|(i, bundle)| come >> i & 1 != 0 && !bundle.is_done()) {
                bundle.wait_at(id, &mut self.state);
            }
        }
        if let Halt::Barrier(id) = halt {
            self.bundles[last].wait_at(id, &mut self.state);
        }
        self.release();
        Ok(false)
    }

    /// What is done now and then: looks at the clock. `true`: the march ends here.
    fn is_late(&mut self, share: &mut i64) -> bool {
        if self.slice > 0 {
            return false;
        }
        self.slice = SLICE;
        let way = &self.env.env;
        if way.overdue().is_some() || way.has_stopped() {
            self.bundles.iter_mut().for_each(Bundle::hurry);
            return true;
        }
        way.lasts();
        if self
            .bundles
            .iter_mut()
            .fold(false, |any, bundle| any | bundle.has_worked())
        {
            way.works();
        }
        let now = Instant::now();
        if now - *self.began.get_or_insert(now) > interp::PATIENCE {
            *share = 0;
            return true;
        }
        false
    }
}
