//! A bundle and its fragments: who goes next, who meets whom, who leaves whom.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::isa::lanes::{MAX_WARPS, Mask, WARP};
use crate::simt::cause::Cause;
use crate::simt::jit;
use crate::simt::machine::special::{self, Place};
use crate::simt::machine::{BlockEnv, Env, RawFault, Surroundings};
use crate::simt::schedule::{Schedule, Whom};

use super::affine::{Runs, Values};
use super::code::{Code, Executable};
use super::compile::Pc;
use super::frame::{Frame, Window};
use super::march::Marching;
use super::native::Run;

/// Instructions that a bundle may run before others get a turn; no multiple of [`SPIN`], so that what is left says
/// whether it went to loops that spin.
pub const SHARE: i64 = 31 * SPIN + SPIN / 2;
/// The same as time, for instructions may be heavy.
pub const PATIENCE: Duration = Duration::from_millis(10);
/// What going round a loop costs of a share if it looked at memory that others change: such loops spin, and whoever they
/// wait for comes sooner. Nobody depends on it.
pub(super) const SPIN: i64 = jit::SPIN;
/// After so many instructions such a turn costs nothing more.
pub(super) const WORK: i64 = jit::WORK;
/// The share of a bundle that has spun for a whole one: whoever it waits for is to come soon. No multiple of [`SPIN`], either.
const SHORT: i64 = SPIN + SPIN / 2;
/// The share of a fragment that others have kept waiting.
pub(super) const CATCH_UP: i64 = 1 << 12;
/// Instructions between two looks at the clock and at whether the grid goes on.
pub const SLICE: i64 = 1 << 13;

/// What a bundle, or a block, has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Did {
    /// Instructions.
    pub work: i64,
    /// What they cost because loops spin, in [`SPIN`].
    pub spins: i64,
}

impl Did {
    /// What it cost so many instructions, of which so much is for loops that spin.
    pub(super) fn add(&mut self, spent: i64, spun: i64) {
        self.work += spent - spun;
        self.spins += spun / SPIN;
    }

    /// Whether that is more than to look again and again at what has not changed.
    pub fn is_more(self) -> bool {
        self.work > MORE * (self.spins + 1)
    }
}

impl std::ops::Sub for Did {
    type Output = Did;

    fn sub(self, other: Did) -> Did {
        Did {
            work: self.work - other.work,
            spins: self.spins - other.spins,
        }
    }
}

impl std::iter::Sum for Did {
    fn sum<I: Iterator<Item = Did>>(all: I) -> Did {
        all.fold(Did::default(), |sum, one| Did {
            work: sum.work + one.work,
            spins: sum.spins + one.spins,
        })
    }
}

/// Instructions of a turn of a loop that spins, at most, in all warps.
const MORE: i64 = 256;

/// What the interpreter asks of the grid, besides what operations do.
pub trait Conditions: Surroundings {
    /// What is drawn, under a seed.
    fn schedule(&self) -> Option<&Schedule>;
    /// Bundles of a block.
    fn bundles(&self) -> u32;
    /// How values follow the lane's number, where they do.
    fn runs(&self) -> Option<Runs>;
    /// Frames that a chain of calls may have.
    fn max_depth(&self) -> u64;
    /// Somebody's fault has ended the grid.
    fn has_stopped(&self) -> bool;
    /// The cause of its end, once its time is over.
    fn overdue(&self) -> Option<Cause>;
    /// A block has run for some while.
    fn lasts(&self);
    /// A block has done more than to spin.
    fn works(&self);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ready,
    /// Arrived at this barrier of the block.
    Barrier(u32),
    /// At a `.sync` operation whose other members have not come yet.
    Gathering,
    /// Tries its instruction again when the state of the block has changed.
    Waiting,
}

/// Who goes on in a bundle.
pub(super) enum Next {
    Fragment(usize),
    /// All wait.
    Nobody,
    /// Everybody who is ready had a turn since the share was used up: other bundles come first.
    Others,
}

/// Lanes of a bundle that stand at the same place.
#[derive(Clone, Debug)]
pub struct Fragment {
    pub pc: Pc,
    pub frame: u32,
    pub mask: [u32; MAX_WARPS],
    pub state: State,
    /// When it last gave way to others, as the bundle counts.
    pub(super) gave_way: u64,
    /// The last share in which it ran without being given a turn.
    pub(super) ran: u64,
    /// Nobody else can come to the `.sync` operation where it waits: it goes ahead without them.
    pub(super) forced: bool,
}

/// What lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// For a barrier of the block.
    Barrier(u32),
    /// For lanes of their warp.
    Members,
    /// For something else that happens to the block: a barrier in memory, a copy.
    State,
}

impl Fragment {
    /// At the kernel's first instruction.
    pub(super) const NOBODY: Fragment = Fragment {
        pc: 0,
        frame: 0,
        mask: [0; MAX_WARPS],
        state: State::Ready,
        gave_way: 0,
        ran: 0,
        forced: false,
    };

    /// What it waits for, if it does not run.
    pub fn waits(&self) -> Waits {
        match self.state {
            State::Barrier(id) => Waits::Barrier(id),
            State::Gathering => Waits::Members,
            State::Ready | State::Waiting => Waits::State,
        }
    }
}

/// Up to eight warps of a block that run as one.
pub struct Bundle {
    pub first_thread: u32,
    pub warps: u32,
    /// Lanes that have not exited.
    pub live: [u32; MAX_WARPS],
    pub fragments: Vec<Fragment>,
    pub(super) exist: [u32; MAX_WARPS],
    pub(super) frames: Vec<Frame>,
    pub(super) vacant: Vec<u32>,
    /// Windows of functions that ran before, constants in place, by executable.
    pub(super) windows: HashMap<usize, Vec<Window>>,
    kernel: Arc<Executable>,
    /// Values that follow the lane's number, and the kernel's form that uses them.
    pub(super) affine: Option<(Values, Arc<Executable>)>,
    /// Counts blocks: a window's block-dependent values are stale when its number differs.
    pub(super) epoch: u64,
    /// What is left of the share: who runs when it is used up gives way. It outlasts calls, branches, barriers and the
    /// block's turns, for a loop may consist of them.
    pub(super) share: i64,
    /// Counts how often somebody has given way.
    pub(super) ways: u64,
    /// Since the bundle's share was used up: fragments that have not given way since then have a turn each.
    pub(super) fair: Option<u64>,
    /// Counts shares.
    pub(super) shares: u64,
    /// Had its share, and goes on in the block's next turn.
    pub spent: bool,
    /// The share went to loops that looked at memory of others: somebody waits, as it seems.
    pub spins: bool,
    /// When the share began, as far as anybody looked.
    pub(super) began: Option<Instant>,
    /// What is left of the slice.
    pub(super) slice: i64,
    /// A strong load or an atomic since the last turn of a loop.
    pub(super) looked: bool,
    /// What it has done in all.
    pub did: Did,
    /// Instructions since a loop was last gone round that looks at memory of others.
    pub(super) since: i64,
    /// What it had done when others were told of its work last, or might have been.
    told: Did,
    /// What compiled code sees, once it has run.
    pub(super) native: Option<Box<Run>>,
    /// The frame and the instruction at which all lanes go on in compiled code, if nothing has touched their registers since
    /// they were in it.
    pub(super) together: Option<(u32, Pc)>,
    /// It marches: what is said above of fragments and lanes does not hold.
    pub(super) marching: Option<Marching>,
}

impl Bundle {
    /// A bundle of threads `first..first + count`, about to enter the kernel.
    pub fn new(kernel: &Arc<Executable>, first_thread: u32, count: u32, block: &BlockEnv<impl Conditions>) -> Bundle {
        let warps = count.div_ceil(32);
        let mut exist = [0; MAX_WARPS];
        for (w, lanes) in exist.iter_mut().enumerate().take(warps as usize) {
            let n = (count - w as u32 * 32).min(32);
            *lanes = if n == 32 { u32::MAX } else { (1 << n) - 1 };
        }
        let window = Window::new(kernel.window);
        let place = Place {
            block,
            first_thread,
            warps,
        };
        for (slot, initial) in &kernel.initial {
            // SAFETY: the window was made for this executable, whose slots these are.
            unsafe { special::set_initial(window.regs(), *slot, initial, &place) };
        }
        let mask = Mask {
            warps,
            lanes: [u32::MAX; MAX_WARPS],
        };
        for op in &kernel.prologue {
            if let Code::Lane { kernel, operands } = &op.code {
                // SAFETY: the prologue's operands are slots of the same window, whose initial values are set; kernels
                // are of the level that the CPU was found to have.
                unsafe { (kernel.full)(window.regs(), operands, &mask) };
            }
        }
        let affine = block.env.runs().zip(kernel.lean.as_ref()).and_then(|(runs, lean)| {
            // SAFETY: the window's initial values are set, and those computed from them.
            let values =
                unsafe { Values::new(lean, runs, block.env.launch().block, first_thread, warps, window.regs()) }?;
            Some((values, Arc::clone(lean)))
        });
        let frame = Frame::kernel(Arc::clone(kernel), window);
        Bundle {
            first_thread,
            warps,
            live: exist,
            fragments: Vec::with_capacity(4),
            exist,
            frames: vec![frame],
            vacant: Vec::new(),
            windows: HashMap::new(),
            epoch: 0,
            share: SHARE,
            ways: 0,
            fair: None,
            shares: 0,
            spent: false,
            spins: false,
            began: None,
            slice: SLICE,
            looked: false,
            did: Did::default(),
            since: 0,
            told: Did::default(),
            native: None,
            together: None,
            marching: None,
            kernel: Arc::clone(kernel),
            affine,
        }
    }

    /// All threads back to the kernel's first instruction, in a new block: all that does not depend on which.
    pub(super) fn begin(&mut self) {
        self.epoch += 1;
        (self.share, self.fair, self.spent, self.began) = (SHARE, None, false, None);
        self.spins = false;
        (self.looked, self.since, self.together) = (false, 0, None);
        self.live = self.exist;
        // Field by field: a fragment that is made elsewhere and moved here would have to be read before it is written out.
        self.fragments.clear();
        self.fragments.push(Fragment::NOBODY);
        let all = &mut self.fragments[0];
        (all.mask, all.gave_way, all.ran) = (self.exist, self.ways, self.shares);
        self.frames[0].reset();
    }

    /// All threads back to the kernel's first instruction, in a new block.
    pub fn enter(&mut self, block: &Env<'_>) {
        self.begin();
        let place = Place {
            block,
            first_thread: self.first_thread,
            warps: self.warps,
        };
        let frame = &mut self.frames[0];
        if let Some((values, lean)) = &mut self.affine
            && let Some(affine) = &lean.affine
        {
            // SAFETY: the window of this kernel, in whose place its lean form may stand.
            let linear = unsafe { values.enter(affine, block.ctaid, frame.regs()) };
            let form = if linear { &*lean } else { &self.kernel };
            if !Arc::ptr_eq(&frame.exec, form) {
                frame.exec = Arc::clone(form);
            }
        }
        for &(slot, which) in &frame.exec.per_block {
            // SAFETY: the frame is the kernel's, whose slots these are, and its window is for this many warps.
            unsafe { special::set_special(frame.regs(), slot, which, &place) };
        }
    }

    /// Lanes that there are when a block begins, of its own warps.
    pub fn exist_by_warp(&self) -> &[u32] {
        &self.exist[..self.warps as usize]
    }

    /// Lanes that have not exited, of its own warps.
    pub fn live_by_warp(&self) -> &[u32] {
        &self.live[..self.warps as usize]
    }

    /// The number of its first warp in the block.
    pub fn first_warp(&self) -> usize {
        self.first_thread as usize / WARP
    }

    /// Where a fragment stands.
    pub fn place(&self, fragment: &Fragment) -> (&Executable, Pc) {
        (&self.frames[fragment.frame as usize].exec, fragment.pc)
    }

    pub fn is_done(&self) -> bool {
        self.fragments.is_empty()
    }

    pub fn is_ready(&self) -> bool {
        self.fragments.iter().any(|f| f.state == State::Ready)
    }

    /// Makes one of fragments that stand at the same place of the same frame; unless `all`, only where one waits for
    /// others to come there.
    #[inline(always)]
    pub(super) fn merge(&mut self, all: bool) {
        let mut i = 0;
        while i < self.fragments.len() {
            let mut j = i + 1;
            while j < self.fragments.len() {
                let (a, b) = (&self.fragments[i], &self.fragments[j]);
                let meet = a.pc == b.pc
                    && a.frame == b.frame
                    && a.forced == b.forced
                    && (all || a.state == State::Gathering || b.state == State::Gathering)
                    && !matches!(a.state, State::Barrier(_) | State::Waiting)
                    && !matches!(b.state, State::Barrier(_) | State::Waiting);
                if meet {
                    let b = self.fragments.swap_remove(j);
                    self.frames[b.frame as usize].refs -= 1;
                    let a = &mut self.fragments[i];
                    for (x, y) in a.mask.iter_mut().zip(b.mask) {
                        *x |= y;
                    }
                    a.state = State::Ready;
                    // The later of the two: otherwise lanes that meet again and again would keep others waiting.
                    a.gave_way = a.gave_way.max(b.gave_way);
                    a.ran = a.ran.max(b.ran);
                } else {
                    j += 1;
                }
            }
            i += 1;
        }
    }

    /// Who runs next: the deepest, and of those the lowest pc; when the share is used up, those that have not given way
    /// since come first, the one that has waited longest before all. Or whoever is drawn.
    ///
    /// Unless somebody spins, who ran in this share has no such turn: it waits for others to come where it stands, and will
    /// not for long. GPUs let lanes wait there, too, and programs that were written for warps in lock step count on it.
    #[inline(always)]
    pub(super) fn pick(&self, drawn: Option<&Schedule>) -> Next {
        let ready = |f: &Fragment| f.state == State::Ready;
        if let Some(schedule) = drawn {
            let key = |i: usize| u64::from(self.fragments[i].pc);
            let one = schedule.choose(Whom::Fragments, self.fragments.len(), key, |i| {
                ready(&self.fragments[i])
            });
            return one.map_or(Next::Nobody, Next::Fragment);
        }
        if let ([only], None) = (&self.fragments[..], self.fair) {
            return if ready(only) { Next::Fragment(0) } else { Next::Nobody };
        }
        // As one number: the lack of depth, then the pc.
        let place = |f: &Fragment| u64::from(u32::MAX - self.frames[f.frame as usize].depth) << 32 | u64::from(f.pc);
        let waited = |f: &Fragment| match self.fair {
            None => 0,
            Some(since) if !self.spins && f.ran >= self.shares => since,
            Some(_) => f.gave_way,
        };
        let mut first = None;
        for (i, f) in self.fragments.iter().enumerate().filter(|(_, f)| ready(f)) {
            let key = (waited(f), place(f));
            if first.is_none_or(|(least, _)| key < least) {
                first = Some((key, i));
            }
        }
        match (first, self.fair) {
            (None, _) => Next::Nobody,
            (Some(((waited, _), _)), Some(since)) if waited >= since => Next::Others,
            (Some((_, i)), _) => Next::Fragment(i),
        }
    }

    /// Fragment `at` gives way to others of the bundle; to all of them, once the share is used up. `true`: to other
    /// bundles, where it is drawn who goes on in this one.
    pub(super) fn give_way(&mut self, at: usize, drawn: Option<&Schedule>) -> bool {
        if self.fair.is_none() {
            // Instructions alone use up no more than there is.
            self.spins = self.share < -CATCH_UP;
        }
        if drawn.is_some() {
            self.share = SHARE;
            return true;
        }
        self.ways += 1;
        self.fragments[at].gave_way = self.ways;
        if self.share <= 0 && self.fair.is_none() {
            self.fair = Some(self.ways);
        }
        if self.fair.is_some() {
            self.share = CATCH_UP;
        }
        false
    }

    /// Fragment `at` waits, and so gives way.
    pub(super) fn wait(&mut self, at: usize, state: State) {
        self.fragments[at].state = state;
        self.ways += 1;
        self.fragments[at].gave_way = self.ways;
    }

    /// What it may run before others get a turn.
    pub fn next_share(&self) -> i64 {
        if self.spins { SHORT } else { SHARE }
    }

    /// Everybody had a turn: a new share.
    pub(super) fn begin_share(&mut self) {
        (self.share, self.fair) = (self.next_share(), None);
        self.shares += 1;
    }

    /// Whether it has done more than to spin since this was asked last, and others may be told.
    pub fn has_worked(&mut self) -> bool {
        let since = self.did - std::mem::replace(&mut self.told, self.did);
        since.work > WORK && since.is_more()
    }

    /// The block has its next turn.
    pub fn resume(&mut self) {
        (self.spent, self.began) = (false, None);
    }

    /// Where fragment `at` meets others of its frame: the lowest pc above its own, and one more than the highest below
    /// (0: none). Unless it meets `all`, only those that wait for others.
    #[inline(always)]
    pub(super) fn bounds(&self, at: usize, all: bool) -> (Pc, Pc) {
        let f = &self.fragments[at];
        let mut limit = Pc::MAX;
        let mut floor = 0;
        for (i, other) in self.fragments.iter().enumerate() {
            let counts = match other.state {
                State::Ready => all,
                State::Gathering => true,
                State::Barrier(_) | State::Waiting => false,
            };
            if i == at || other.frame != f.frame || !counts {
                continue;
            }
            if other.pc > f.pc {
                limit = limit.min(other.pc);
            } else {
                floor = floor.max(other.pc + 1);
            }
        }
        (limit, floor)
    }

    /// Lanes `taken` of fragment `at` go to `target`, the others to `next`.
    #[inline]
    pub(super) fn split(&mut self, at: usize, taken: [u32; MAX_WARPS], next: Pc, target: Pc) {
        let f = &mut self.fragments[at];
        f.pc = next;
        for (lanes, t) in f.mask.iter_mut().zip(taken) {
            *lanes &= !t;
        }
        let other = Fragment {
            pc: target,
            mask: taken,
            ..f.clone()
        };
        self.frames[other.frame as usize].refs += 1;
        self.fragments.push(other);
    }

    /// Separates lanes `taken` of fragment `at`, standing at `pc`, from lanes that an instruction's guard leaves out:
    /// those go on behind it. Returns the index of the fragment that holds exactly `taken`.
    pub(super) fn leave(&mut self, at: usize, taken: [u32; MAX_WARPS], pc: Pc) -> usize {
        self.fragments[at].pc = pc;
        if self.fragments[at].mask == taken {
            return at;
        }
        self.split(at, taken, pc + 1, pc);
        self.fragments.len() - 1
    }

    /// The only fragment ends.
    pub(super) fn end_of_all(&mut self, frame: u32, mask: [u32; MAX_WARPS]) {
        for (live, gone) in self.live.iter_mut().zip(mask) {
            *live &= !gone;
        }
        self.fragments.clear();
        self.release(frame);
    }

    /// Ends the lanes `taken` of fragment `at`.
    pub(super) fn exit(&mut self, at: usize, taken: [u32; MAX_WARPS], pc: Pc) {
        let at = self.leave(at, taken, pc);
        for (live, t) in self.live.iter_mut().zip(taken) {
            *live &= !t;
        }
        let gone = self.fragments.swap_remove(at);
        self.release(gone.frame);
        // Nobody waits for those who are gone.
        for f in self.fragments.iter_mut().filter(|f| f.state == State::Gathering) {
            f.state = State::Ready;
        }
    }
}

/// A fault and where in the program it happened.
pub struct Located {
    pub fault: RawFault,
    /// The call stack, innermost function first: the function, and the instruction at which the thread stands there.
    pub stack: Vec<(Arc<Executable>, Pc)>,
    pub first_thread: u32,
}

/// A fault of a fragment that is not running.
pub fn located(bundle: &Bundle, fragment: &Fragment, fault: RawFault) -> Located {
    Located {
        fault,
        stack: bundle.stack(fragment.frame, fragment.pc),
        first_thread: bundle.first_thread,
    }
}
