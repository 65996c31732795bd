//! A bundle and its fragments: who goes next, who meets whom, who leaves whom.

use std::collections::HashMap;
use std::sync::Arc;

use crate::isa::lanes::{MAX_WARPS, Mask, WARP};
use crate::simt::cause::Cause;
use crate::simt::machine::special::{self, Place};
use crate::simt::machine::{BlockEnv, Env, RawFault, Surroundings};
use crate::simt::schedule::Schedule;

use super::affine::{Runs, Values};
use super::code::{Code, Executable};
use super::compile::Pc;
use super::frame::{Frame, Window};

/// Instructions that a fragment may run before others get a turn.
pub(super) const SHARE: i64 = 1 << 22;
/// What going round a loop costs of that share if it looked at memory that others change: such loops spin.
pub(super) const SPIN: i64 = 1 << 17;
/// The share of a fragment that runs ahead of one that spins.
pub(super) const CATCH_UP: i64 = 1 << 12;
/// Instructions between two looks at whether the grid goes on.
pub(super) const SLICE: i64 = 1 << 13;

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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Ready,
    /// Arrived at this barrier of the block.
    Barrier(u32),
    /// At a `.sync` operation whose other members have not come yet.
    Gathering,
}

/// Lanes of a bundle that stand at the same place.
#[derive(Clone, Debug)]
pub struct Fragment {
    pub pc: Pc,
    pub frame: u32,
    pub mask: [u32; MAX_WARPS],
    pub state: State,
    /// Had its share while others waited: they go first.
    pub passed: bool,
    /// Nobody else can come to the `.sync` operation where it waits: it goes ahead without them.
    pub(super) forced: bool,
}

/// Up to four warps of a block that run as one.
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
    /// What is left of the share: who runs when it is used up passes his turn. It outlasts calls, branches and
    /// barriers, for a loop may consist of them.
    pub(super) share: i64,
    /// What is left of the slice.
    pub(super) slice: i64,
    /// A strong load or an atomic since the last turn of a loop.
    pub(super) looked: bool,
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
            slice: SLICE,
            looked: false,
            kernel: Arc::clone(kernel),
            affine,
        }
    }

    /// All threads back to the kernel's first instruction, in a new block.
    pub fn enter(&mut self, block: &Env<'_>) {
        self.epoch += 1;
        (self.share, self.looked) = (SHARE, false);
        self.live = self.exist;
        self.fragments.clear();
        self.fragments.push(Fragment {
            pc: 0,
            frame: 0,
            mask: self.exist,
            state: State::Ready,
            passed: false,
            forced: false,
        });
        let place = Place {
            block,
            first_thread: self.first_thread,
            warps: self.warps,
        };
        let frame = &mut self.frames[0];
        frame.reset();
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

    /// Lanes that have not exited, of its own warps.
    pub fn live_by_warp(&self) -> &[u32] {
        &self.live[..self.warps as usize]
    }

    /// The number of its first warp in the block.
    pub fn first_warp(&self) -> usize {
        self.first_thread as usize / WARP
    }

    pub fn is_done(&self) -> bool {
        self.fragments.is_empty()
    }

    pub fn is_ready(&self) -> bool {
        self.fragments.iter().any(|f| f.state == State::Ready)
    }

    /// Lets fragments that wait in vain for members of a `.sync` go on without them; `false`: there is none.
    pub fn force(&mut self) -> bool {
        match self.fragments.iter().position(|f| f.state == State::Gathering) {
            Some(i) => {
                let fragment = &mut self.fragments[i];
                (fragment.state, fragment.passed, fragment.forced) = (State::Ready, false, true);
                true
            }
            None => false,
        }
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
                    && (all || a.state == State::Gathering || b.state == State::Gathering)
                    && !matches!(a.state, State::Barrier(_))
                    && !matches!(b.state, State::Barrier(_));
                if meet {
                    let b = self.fragments.swap_remove(j);
                    self.frames[b.frame as usize].refs -= 1;
                    let a = &mut self.fragments[i];
                    for (x, y) in a.mask.iter_mut().zip(b.mask) {
                        *x |= y;
                    }
                    a.state = State::Ready;
                    a.passed &= b.passed;
                } else {
                    j += 1;
                }
            }
            i += 1;
        }
    }

    /// Who runs next: those that have not passed, the deepest, the lowest pc; or whoever is drawn of the first.
    #[inline(always)]
    pub(super) fn pick(&mut self, drawn: Option<&Schedule>) -> Option<usize> {
        if let [only] = &mut self.fragments[..] {
            if std::mem::take(&mut only.passed) {
                self.share = SHARE;
            }
            return (only.state == State::Ready).then_some(0);
        }
        self.first_of(drawn).or_else(|| {
            self.fragments.iter_mut().for_each(|f| f.passed = false);
            self.share = SHARE;
            self.first_of(drawn)
        })
    }

    /// The same among those that are ready and have not passed.
    #[inline(always)]
    fn first_of(&self, drawn: Option<&Schedule>) -> Option<usize> {
        let may = |f: &Fragment| f.state == State::Ready && !f.passed;
        if let Some(schedule) = drawn {
            return schedule.one_of(self.fragments.len(), |i| may(&self.fragments[i]));
        }
        // As one number: the lack of depth, then the pc.
        let key = |f: &Fragment| u64::from(u32::MAX - self.frames[f.frame as usize].depth) << 32 | u64::from(f.pc);
        let mut first = None;
        for (i, f) in self.fragments.iter().enumerate().filter(|(_, f)| may(f)) {
            let key = key(f);
            if first.is_none_or(|(least, _)| key < least) {
                first = Some((key, i));
            }
        }
        first.map(|(_, i)| i)
    }

    /// Where fragment `at` meets others of its frame: the lowest pc above its own, and one more than the highest below
    /// (0: none); and whether others have had their share. Unless it meets `all`, only those that wait for others.
    #[inline(always)]
    pub(super) fn bounds(&self, at: usize, all: bool) -> (Pc, Pc, bool) {
        let f = &self.fragments[at];
        let mut limit = Pc::MAX;
        let mut floor = 0;
        let mut passed = false;
        for (i, other) in self.fragments.iter().enumerate() {
            passed |= i != at && other.passed;
            let counts = match other.state {
                State::Ready => all,
                State::Gathering => true,
                State::Barrier(_) => false,
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
        (limit, floor, passed)
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

    /// Ends the lanes `taken` of fragment `at`.
    pub(super) fn exit(&mut self, at: usize, taken: [u32; MAX_WARPS], pc: Pc) {
        let at = self.leave(at, taken, pc);
        for (live, t) in self.live.iter_mut().zip(taken) {
            *live &= !t;
        }
        let gone = self.fragments.swap_remove(at);
        self.release(gone.frame);
    }

    /// Whether anybody else of this bundle may still come to where fragment `at` waits.
    pub(super) fn could_gather(&self, at: usize) -> bool {
        self.fragments
            .iter()
            .enumerate()
            .any(|(i, f)| i != at && f.state == State::Ready)
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
