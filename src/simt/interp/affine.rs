//! Values that follow the lane's number, computed for a bundle as it enters a block ([`super::compile::values`]).

use super::compile::values::{Affine, Op, Source, Step, ValueId};
use crate::isa::Compare;
use crate::isa::lanes::{MAX_WARPS, WARP, Width};

use super::code::Executable;
use crate::simt::machine::{LANES, Line as Value, MAX_RUNS};

/// Lanes of the runs through which a block's threads count up along its x axis: 8, 16, 32, or [`LANES`] for a whole
/// bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs(usize);

impl Runs {
    /// For a block of this shape and bundles of `width` warps, at most `most` lanes; `None`: rows end within runs, or are
    /// too short.
    pub fn of(block: [u32; 3], width: u32, most: usize) -> Option<Runs> {
        let [x, y, z] = block;
        let row = match x {
            _ if y * z == 1 || x.is_multiple_of(width * WARP as u32) => LANES,
            _ if x.is_multiple_of(WARP as u32) => WARP,
            // Rows of a power of two lie within warps.
            16 | 8 => x as usize,
            _ => return None,
        };
        Some(Runs(row.min(most)))
    }

    /// Lanes of each.
    pub fn lanes(self) -> usize {
        self.0
    }
}

/// The values of one bundle.
pub struct Values {
    values: Box<[Value]>,
    pub runs: Runs,
    warps: u32,
}

/// A sum that wraps around between lanes: such a value is not linear once it is widened or compared.
struct Wraps;

impl Values {
    /// Computes what the launch and the bundle decide; `None` if the kernel's code has to do without.
    ///
    /// # Safety
    /// `regs` is a window of `exec` whose initial values are set.
    pub unsafe fn new(
        exec: &Executable,
        runs: Runs,
        block: [u32; 3],
        first_thread: u32,
        warps: u32,
        regs: *mut u8,
    ) -> Option<Values> {
        let affine = exec.affine.as_ref()?;
        let mut values = Values {
            values: vec![Value::default(); usize::from(affine.values)].into(),
            runs,
            warps,
        };
        for (source, value) in affine.sources.iter().zip(&mut values.values) {
            match *source {
                Source::Constant(bits) => value.base = [bits; MAX_RUNS],
                Source::Slot(slot) => {
                    // SAFETY: `slot` is of the window at `regs`, whose initial values are set, the same in all lanes.
                    value.base = [unsafe {
                        let at = regs.add(slot.offset as usize);
                        if slot.width == Width::B64 {
                            at.cast::<u64>().read()
                        } else {
                            at.cast::<u32>().read().into()
                        }
                    }; MAX_RUNS];
                }
                Source::Tid(axis) => {
                    let [x, y, _] = block;
                    for (run, base) in value.base.iter_mut().enumerate() {
                        let thread = first_thread + (run * runs.0) as u32;
                        *base = u64::from(match axis {
                            0 => thread % x,
                            1 => thread / x % y,
                            _ => thread / x / y,
                        });
                    }
                    value.step = u64::from(axis == 0);
                }
                Source::Ctaid(_) => {}
            }
        }
        // SAFETY: `regs` is a window of `exec`, from which the steps come.
        unsafe { values.steps(&affine.once, regs) }.ok().map(|()| values)
    }

    /// Computes what depends on the block; `false` if this block has to do without.
    ///
    /// # Safety
    /// As for [`Values::new`].
    pub unsafe fn enter(&mut self, affine: &Affine, ctaid: [u32; 3], regs: *mut u8) -> bool {
        for (source, value) in affine.sources.iter().zip(&mut self.values) {
            if let Source::Ctaid(axis) = *source {
                value.base = [u64::from(ctaid[usize::from(axis)]); MAX_RUNS];
            }
        }
        // SAFETY: `regs` is a window of the code from which the steps come.
        unsafe { self.steps(&affine.each, regs) }.is_ok()
    }

    /// A value in a lane of the bundle; of one of 32 bits the lower ones count.
    pub fn at(&self, value: ValueId, lane: usize) -> u64 {
        let (value, run) = (&self.values[usize::from(value)], self.runs.0);
        value.base[lane / run].wrapping_add(value.step.wrapping_mul((lane % run) as u64))
    }

    pub fn as_ptr(&self) -> *const Value {
        self.values.as_ptr()
    }

    /// # Safety
    /// As for [`Values::new`].
    unsafe fn steps(&mut self, steps: &[Step], regs: *mut u8) -> Result<(), Wraps> {
        // SAFETY: `regs` is what the caller vouches for.
        unsafe {
            match self.runs.0 {
                LANES => self.steps_of::<1>(steps, regs),
                WARP => self.steps_of::<{ LANES / WARP }>(steps, regs),
                16 => self.steps_of::<{ LANES / 16 }>(steps, regs),
                _ => self.steps_of::<MAX_RUNS>(steps, regs),
            }
        }
    }

    /// Blocks may be short, and every bundle comes here as it enters one: code of its own for each length of runs, of which
    /// a bundle has up to `RUNS`.
    ///
    /// # Safety
    /// As for [`Values::new`].
    #[inline(always)]
    unsafe fn steps_of<const RUNS: usize>(&mut self, steps: &[Step], regs: *mut u8) -> Result<(), Wraps> {
        let all = self.warps as usize * WARP;
        let lanes = all.min(self.runs.0);
        let runs = if RUNS == 1 { 1 } else { (all / lanes).min(RUNS) };
        let mask = |wide: bool| if wide { u64::MAX } else { u64::from(u32::MAX) };
        for step in steps {
            let (a, b) = (&self.values[usize::from(step.a)], &self.values[usize::from(step.b)]);
            // What lies behind the runs that there are is computed as well: loops of a known length are quicker.
            let mut base = [0; RUNS];
            let by;
            match step.op {
                Op::Add { wide } => {
                    for (r, base) in base.iter_mut().enumerate() {
                        *base = a.base[r].wrapping_add(b.base[r]) & mask(wide);
                    }
                    by = a.step.wrapping_add(b.step) & mask(wide);
                }
                Op::Sub { wide } => {
                    for (r, base) in base.iter_mut().enumerate() {
                        *base = a.base[r].wrapping_sub(b.base[r]) & mask(wide);
                    }
                    by = a.step.wrapping_sub(b.step) & mask(wide);
                }
                Op::Mul { wide } => {
                    for (r, base) in base.iter_mut().enumerate() {
                        *base = a.base[r].wrapping_mul(b.base[r]) & mask(wide);
                    }
                    // The second factor may still differ from run to run; then so would the step.
                    if a.step != 0 && b.base[1..runs].iter().any(|&f| f != b.base[0]) {
                        return Err(Wraps);
                    }
                    by = a.step.wrapping_mul(b.base[0]) & mask(wide);
                }
                Op::Widen { signed } => {
                    for (r, base) in base.iter_mut().enumerate().take(runs) {
                        *base = ends(a, r, lanes, signed, false)?.0 as u64;
                    }
                    by = i64::from(a.step as u32 as i32) as u64;
                }
                Op::Narrow => {
                    for (r, base) in base.iter_mut().enumerate() {
                        *base = a.base[r] & mask(false);
                    }
                    by = a.step & mask(false);
                }
                Op::Low { bits } => {
                    for (r, base) in base.iter_mut().enumerate() {
                        *base = a.base[r] & ((1 << bits) - 1);
                    }
                    by = a.step;
                }
                Op::High { bits } => {
                    for (r, base) in base.iter_mut().enumerate() {
                        *base = a.base[r] >> bits << bits;
                    }
                    by = 0;
                }
                Op::Shift { bits } => {
                    for (r, base) in base.iter_mut().enumerate() {
                        *base = a.base[r] >> bits;
                    }
                    by = 0;
                }
                Op::Compare {
                    relation,
                    signed,
                    wide,
                    dst,
                } => {
                    let mut words = [0u32; MAX_WARPS];
                    for r in 0..runs {
                        let ends_of = ends(a, r, lanes, signed, wide)?;
                        let (y, _) = ends(&Value { step: 0, ..*b }, r, lanes, signed, wide)?;
                        if RUNS == 1 {
                            for (at, word) in words.iter_mut().enumerate().take(all / WARP) {
                                *word = compare(relation, ends_of, y, lanes, at * WARP);
                            }
                        } else {
                            let (word, shift) = (r * lanes / WARP, r * lanes % WARP);
                            let part = u32::MAX >> (WARP - lanes);
                            words[word] |= (compare(relation, ends_of, y, lanes, 0) & part) << shift;
                        }
                    }
                    for (at, word) in words.iter().enumerate().take(all / WARP) {
                        // SAFETY: `dst` is a predicate slot of the window, with a word for each of its warps.
                        unsafe { regs.add(dst.offset as usize).cast::<u32>().add(at).write(*word) };
                    }
                    continue;
                }
            }
            let value = &mut self.values[usize::from(step.dst)];
            value.base[..RUNS].copy_from_slice(&base);
            value.step = by;
        }
        Ok(())
    }
}

/// The first and the last number of run `r` of that many lanes, if those between lie on the line. Unsigned numbers of
/// 64 bits come less 2^63: in the same order.
#[inline(always)]
fn ends(value: &Value, r: usize, lanes: usize, signed: bool, wide: bool) -> Result<(i64, i64), Wraps> {
    let (base, steps) = (value.base[r], lanes as i64 - 1);
    if wide {
        let first = if signed { base as i64 } else { (base ^ 1 << 63) as i64 };
        let last = (value.step as i64)
            .checked_mul(steps)
            .and_then(|all| first.checked_add(all));
        return last.map(|last| (first, last)).ok_or(Wraps);
    }
    let (first, range) = if signed {
        (i64::from(base as u32 as i32), i64::from(i32::MIN)..=i64::from(i32::MAX))
    } else {
        (i64::from(base as u32), 0..=i64::from(u32::MAX))
    };
    let last = first + i64::from(value.step as u32 as i32) * steps;
    if range.contains(&last) {
        Ok((first, last))
    } else {
        Err(Wraps)
    }
}

/// Bits of 32 lanes from lane `from` of a run of `lanes` that goes evenly from one end to the other.
#[inline(always)]
fn compare(relation: Compare, (first, last): (i64, i64), y: i64, lanes: usize, from: usize) -> u32 {
    let holds = |x: i64| match relation {
        Compare::Eq => x == y,
        Compare::Ne => x != y,
        Compare::Lt => x < y,
        Compare::Le => x <= y,
        Compare::Gt => x > y,
        Compare::Ge => x >= y,
        Compare::Equ
        | Compare::Neu
        | Compare::Ltu
        | Compare::Leu
        | Compare::Gtu
        | Compare::Geu
        | Compare::Num
        | Compare::Nan => unreachable!("integers are always ordered"),
    };
    let (low, high) = (first.min(last), first.max(last));
    // One answer for all where the line stays on one side.
    if high < y || low > y || low == high {
        return if holds(first) { u32::MAX } else { 0 };
    }
    let step = last.wrapping_sub(first) / (lanes as i64 - 1);
    (0..WARP).fold(0, |bits, lane| {
        bits | u32::from(holds(first + step * (from + lane) as i64)) << lane
    })
}
