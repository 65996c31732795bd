//! Warps that march: all their lanes together, in compiled code, from one barrier of the block to the next or to their end.
//! Most blocks do nothing else, and while they do, nobody keeps books of who stands where: fragments are made when a warp
//! goes another way. As long as all warps of a block come to the same barriers, code runs them *abreast*, and is not left in between.

use std::sync::Arc;

use crate::isa::lanes::Width;
use crate::program::Special;
use crate::simt::jit::Native;
use crate::simt::jit::context::{ENDED, NOWHERE, together};
use crate::simt::machine::special::{self, Place};
use crate::simt::machine::state::State as BlockState;
use crate::simt::machine::{BlockEnv, Env};

use super::bundle::{Bundle, Conditions, Fragment, Located, State};
use super::code::Executable;
use super::compile::Pc;
use super::native::{Stand, budget};
use super::run::CHOICE;

/// A marching bundle's place, in which its books know nothing of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marching {
    pc: Pc,
    /// Where its registers are ([`together`]).
    registers: u64,
    has_ended: bool,
    /// It has not been entered in the books since the block began.
    fresh: bool,
}

/// Where a warp has marched to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// A barrier of the block.
    Barrier(u32),
    /// The end of its threads.
    End,
    /// Nowhere in particular: others of its block go first for a while.
    Pause,
    /// Somewhere else, or in different directions: where its lanes stand, its books say.
    Elsewhere,
}

/// Warps that have marched abreast, and of which one has stopped: its place is as if it had marched there by itself; the others stand
/// where they waited, or where they began.
pub struct Apart {
    /// Who waits at a barrier or has ended, and at which barrier.
    pub come: u32,
    pub barrier: Option<u32>,
    /// Who has stopped, and how.
    pub at: usize,
    pub halt: Halt,
}

/// A block's place in its grid, if that is what a special register says.
fn place_of(which: Special, block: &Env<'_>) -> Option<u32> {
    match which {
        Special::Ctaid(axis) => block.ctaid.get(usize::from(axis)).copied(),
        _ => None,
    }
}

impl Bundle {
    /// All threads to the kernel's first instruction, in a new block; what changes from block to block is in the window.
    pub fn set_out(&mut self) {
        (self.looked, self.spins, self.since) = (false, false, 0);
        self.fragments.clear();
        self.marching = Some(Marching {
            pc: 0,
            registers: together::IN_WINDOW,
            has_ended: false,
            fresh: true,
        });
    }

    /// Writes a special register that is the same in the whole block.
    #[inline]
    pub fn set_special(&mut self, at: usize, block: &Env<'_>) {
        let frame = &self.frames[0];
        let (slot, which) = frame.exec.per_block[at];
        if let Some(place) = place_of(which, block) {
            // SAFETY: the frame is the kernel's, whose slot this is, and its window is for this many warps.
            unsafe { special::fill_same(frame.regs(), slot, self.warps, place.into()) };
            return;
        }
        let place = Place {
            block,
            first_thread: self.first_thread,
            warps: self.warps,
        };
        // SAFETY: as for the place in the grid.
        unsafe { special::set_special(frame.regs(), slot, which, &place) };
    }

    /// Writes it for the first lane, and for others if need be.
    #[inline]
    pub fn set_first(&mut self, at: usize, block: &Env<'_>) {
        let frame = &self.frames[0];
        let (slot, which) = frame.exec.per_block[at];
        match place_of(which, block) {
            // SAFETY: the frame is the kernel's, whose slot this is, a word for each lane.
            Some(place) if slot.width == Width::B32 => unsafe {
                frame.regs().add(slot.offset as usize).cast::<u32>().write(place);
            },
            _ => self.set_special(at, block),
        }
    }

    /// Whether its one warp has lanes that no thread has: the block's last one may.
    pub fn is_ragged(&self) -> bool {
        self.exist[0] != u32::MAX
    }

    /// Whether it may march: all lanes of its one warp stand at one place of the kernel, ready, or none is left.
    pub fn can_march(&self) -> bool {
        match &self.fragments[..] {
            [] => true,
            [one] => {
                let ready = one.state == State::Ready && one.mask[0] == self.exist[0] && !one.forced;
                ready && one.frame == 0 && self.share > 0 && !self.spent
            }
            _ => false,
        }
    }

    /// It leaves its books, if it has not set out before.
    pub fn fall_in(&mut self) {
        let at = self.fragments.first().map(|fragment| fragment.pc);
        let untouched = self.together.take();
        self.marching.get_or_insert(Marching {
            pc: at.unwrap_or(0),
            registers: match at.is_some() && untouched == at.map(|pc| (0, pc)) {
                true => together::UNTOUCHED,
                false => together::IN_WINDOW,
            },
            has_ended: at.is_none(),
            fresh: false,
        });
    }

    /// Goes on to the next barrier or to its end, or makes so many turns of a loop through memory; takes what that costs off `share`.
    /// A warp that has ended has come to its end. `kernel`: what it runs, and its code for whole warps.
    ///
    /// # Errors
    /// The first fault.
    #[inline(always)]
    pub fn march(
        &mut self,
        (native, kernel): (&Native, &Arc<Executable>),
        block: &BlockEnv<impl Conditions>,
        state: &mut BlockState,
        (share, turns): (&mut i64, i64),
    ) -> Result<Halt, Box<Located>> {
        let Some(Marching {
            pc,
            registers,
            has_ended,
            ..
        }) = self.marching
        else {
            return Ok(Halt::Elsewhere);
        };
        if has_ended {
            return Ok(Halt::End);
        }
        let block: &Env<'_> = block;
        if *share <= 0 {
            return Ok(Halt::Elsewhere);
        }
        let lanes = self.exist[0];
        // Code for warps that lack lanes, where that for whole ones cannot do without them.
        let (native, entry) = match native.entry(pc) {
            Some((entry, masked)) if masked || lanes == u32::MAX => (native, entry),
            _ if lanes == u32::MAX => return Ok(Halt::Elsewhere),
            _ => {
                let some = kernel.native_for_some(self.live[0] == u32::MAX);
                match some.and_then(|some| Some((some, some.entry(pc)?.0))) {
                    Some(some) => some,
                    None => return Ok(Halt::Elsewhere),
                }
            }
        };
        if !self.is_prepared(native, block, state) {
            self.prepare(0, self.exist, native, block, state);
            self.prepared();
        }
        self.set_turns(turns);
        let budget = (*share).clamp(1, budget());
        // SAFETY: it was prepared for this code, this block and this state, which are borrowed here.
        let gone = unsafe { self.go((0, pc, lanes), registers, (native, entry), budget) }?;
        let Some((first, count, spent)) = gone else {
            return Ok(Halt::Elsewhere);
        };
        *share -= spent + CHOICE;
        let packed = self.has_packed();
        let ended = first & ENDED != 0 && (count == 1 || self.have_ended(count));
        let Some(marching) = &mut self.marching else {
            return Ok(Halt::Elsewhere);
        };
        marching.registers = together::IN_WINDOW;
        if ended {
            marching.has_ended = true;
            return Ok(Halt::End);
        }
        if packed {
            return Ok(self.stands(first));
        }
        self.has_left(native, count, spent, state)
    }

    /// Its lanes have left code in so many places, with their registers in the window.
    fn has_left(
        &mut self,
        native: &Native,
        count: usize,
        spent: i64,
        state: &mut BlockState,
    ) -> Result<Halt, Box<Located>> {
        let first = self.first_cut();
        if count == 1
            && let Some(id) = self.barrier_of_all(0, first)
            && let Some(marching) = &mut self.marching
        {
            (marching.pc, marching.registers) = (first + 1, together::UNTOUCHED);
            return Ok(Halt::Barrier(id));
        }
        // It has gone round a loop, and may go on there.
        let turned = count == 1 && spent > 1 && native.entry(first).is_some();
        if turned && let Some(marching) = &mut self.marching {
            (marching.pc, marching.registers) = (first, together::UNTOUCHED);
            return Ok(Halt::Pause);
        }
        if let Some(marching) = &mut self.marching {
            marching.registers = together::IN_WINDOW;
        }
        self.enter_books(native)?;
        self.scatter(0, count, state);
        Ok(Halt::Elsewhere)
    }

    /// It marches, and has not come to its end.
    #[inline(always)]
    pub(super) fn is_under_way(&self) -> bool {
        self.marching.is_some_and(|marching| !marching.has_ended)
    }

    /// Warps that all stand at one place march abreast, as far as they come to the same barriers, or to the next one, where it
    /// `stops`, for others of the block do not march with them; takes what that costs off `share`. A block's only warp does, too.
    /// `None`: nobody has moved, for they do not stand at one place. Else [`Bundle::settle`] takes down where they stand, unless all have
    /// ended.
    ///
    /// # Errors
    /// The first fault.
    pub fn march_abreast(
        bundles: &mut [Bundle],
        native: &Native,
        block: &BlockEnv<impl Conditions>,
        state: &mut BlockState,
        (share, turns, stops): (&mut i64, i64, bool),
    ) -> Result<Option<Stand>, Box<Located>> {
        let mut places = bundles
            .iter()
            .filter_map(|bundle| bundle.marching)
            .filter(|marching| !marching.has_ended)
            .map(|marching| (marching.pc, marching.registers));
        let place = places.next();
        let more = places.next();
        // Who is left of several goes on alone.
        let together = bundles.len() == 1 || more.is_some() && more == place;
        if !together || *share <= 0 || !places.all(|other| Some(other) == place) {
            return Ok(None);
        }
        let Some((pc, registers)) = place else { return Ok(None) };
        let Some((entry, _)) = native.entry(pc) else {
            return Ok(None);
        };
        let block: &Env<'_> = block;
        for bundle in bundles.iter_mut() {
            if !bundle.is_prepared(native, block, state) {
                bundle.prepare(0, bundle.exist, native, block, state);
                bundle.prepared();
            }
        }
        Bundle::link(bundles, false);
        let budget = (*share).clamp(1, budget());
        // SAFETY: they were prepared for this code, this block and this state, which are borrowed here.
        let stand = unsafe { Bundle::go_abreast(bundles, (pc, registers), (native, entry), (budget, turns, stops)) }?;
        *share -= stand.spent + CHOICE;
        Ok(Some(stand))
    }

    /// Warps of a new block march abreast from its beginning, as they have marched through another one to its end, in the same place
    /// ([`Bundle::get_ready`]). `None`: they have not moved.
    ///
    /// # Errors
    /// The first fault.
    pub fn abreast_again(
        bundles: &mut [Bundle],
        native: &Native,
        block: &BlockEnv<impl Conditions>,
        state: &mut BlockState,
        turns: i64,
    ) -> Result<Option<Stand>, Box<Located>> {
        let block: &Env<'_> = block;
        let (true, Some((entry, _))) = (bundles[0].is_prepared(native, block, state), native.entry(0)) else {
            return Ok(None);
        };
        // SAFETY: they were prepared for this code, this block's place and its state, and nothing has been done with them since.
        unsafe {
            Bundle::go_abreast(
                bundles,
                (0, together::IN_WINDOW),
                (native, entry),
                (budget(), turns, false),
            )
        }
        .map(Some)
    }

    /// All warps have come to their end: gets them ready to do so again, from the beginning of another block, if nothing stands
    /// against it.
    pub fn get_ready(bundles: &mut [Bundle], native: &Native, block: &Env<'_>, state: &mut BlockState) -> bool {
        let prepared = bundles.iter().all(|bundle| bundle.is_prepared(native, block, state));
        if prepared {
            Bundle::link(bundles, true);
        }
        prepared
    }

    /// Takes down where warps stand that have marched abreast, and not all to their end. `None`: all that are left have met, and
    /// nobody waits for anybody.
    ///
    /// # Errors
    /// A fault: none is known that moving registers could have.
    pub fn settle(
        bundles: &mut [Bundle],
        stand: &Stand,
        native: &Native,
        state: &mut BlockState,
    ) -> Result<Option<Apart>, Box<Located>> {
        let mut apart = Apart {
            come: 0,
            barrier: None,
            at: stand.at.unwrap_or(0),
            halt: Halt::Pause,
        };
        for (i, bundle) in bundles.iter_mut().enumerate() {
            if let Some(marching) = &mut bundle.marching {
                marching.has_ended |= stand.ended >> i & 1 != 0;
            }
            if !bundle.is_under_way() {
                apart.come |= 1 << i;
                continue;
            }
            let (place, has_come) = match stand.at {
                Some(at) if i < at => (stand.met, true),
                Some(at) if i == at && stand.came != NOWHERE => (stand.came, true),
                _ => (stand.since, false),
            };
            if place == NOWHERE {
                continue;
            }
            match bundle.stands(place) {
                _ if !has_come => {}
                Halt::Barrier(id) if *apart.barrier.get_or_insert(id) == id => apart.come |= 1 << i,
                halt => apart.halt = halt,
            }
        }
        let Some(at) = stand.at else { return Ok(None) };
        if !stand.entered {
            apart.halt = Halt::Elsewhere;
        } else if stand.came == NOWHERE {
            Bundle::take_cuts(bundles, at, stand.cuts);
            apart.halt = bundles[at].has_left(native, stand.cuts, stand.spent, state)?;
            if let Halt::Barrier(id) = apart.halt
                && *apart.barrier.get_or_insert(id) == id
            {
                (apart.come, apart.halt) = (apart.come | 1 << at, Halt::Pause);
            }
        }
        Ok(Some(apart))
    }

    /// Warps that have marched abreast have all ended, or met: who of them is not under way before others of the block have come, and
    /// the barrier where he waits, if any.
    pub fn met(bundles: &[Bundle], stand: &Stand) -> (u32, Option<u32>) {
        let under_way = |bundle: &&Bundle| bundle.is_under_way() && stand.since != NOWHERE;
        let barrier = bundles
            .iter()
            .find(under_way)
            .and_then(|bundle| bundle.barrier_of_all(0, stand.since));
        let numbered = bundles.iter().enumerate();
        let come = numbered.filter(|(_, bundle)| barrier.is_some() || !bundle.is_under_way());
        (come.fold(0, |come, (i, _)| come | 1 << i), barrier)
    }

    /// It waits at a place where code has left its registers, and goes on behind it if that is a barrier.
    fn stands(&mut self, pc: Pc) -> Halt {
        let barrier = self.barrier_of_all(0, pc);
        if let Some(marching) = &mut self.marching {
            marching.pc = pc + Pc::from(barrier.is_some());
            marching.registers = together::PACKED;
        }
        barrier.map_or(Halt::Pause, Halt::Barrier)
    }

    /// Its march is over, for its threads have ended.
    #[inline(always)]
    pub fn fall_out(&mut self) {
        self.marching = None;
        self.together = None;
        self.live = Default::default();
        self.fragments.clear();
    }

    /// Takes down where it stands, if it marches, and brings its registers to the window.
    ///
    /// # Errors
    /// A fault: none is known that moving registers could have.
    pub fn enter_books(&mut self, native: &Native) -> Result<(), Box<Located>> {
        let Some(mut marching) = self.marching.take() else {
            return Ok(());
        };
        if marching.registers == together::PACKED {
            self.unpack((0, marching.pc), native)?;
            marching.registers = together::UNTOUCHED;
        }
        self.fragments.clear();
        self.together = None;
        if marching.has_ended {
            self.live = Default::default();
            return Ok(());
        }
        if marching.fresh {
            self.begin();
            self.fragments.clear();
        }
        let mut fragment = Fragment::NOBODY;
        (fragment.pc, fragment.mask) = (marching.pc, self.exist);
        (fragment.gave_way, fragment.ran) = (self.ways, self.shares);
        self.fragments.push(fragment);
        self.together = (marching.registers == together::UNTOUCHED).then_some((0, marching.pc));
        Ok(())
    }

    /// Takes down that its lanes, which have marched past this barrier, wait there.
    pub fn wait_at(&mut self, id: u32, state: &mut BlockState) {
        let fragment = &mut self.fragments[0];
        fragment.pc -= 1;
        let mask = fragment.mask;
        self.wait(0, State::Barrier(id));
        state.barriers.arrive(id, self.first_warp(), &mask[..1], None);
    }

    /// The march has used up the share that the block had, and more where loops spin.
    pub fn tire(&mut self, share: i64) {
        self.share = share;
    }

    /// Whoever runs next looks at the clock first.
    pub fn hurry(&mut self) {
        self.slice = 0;
    }
}
