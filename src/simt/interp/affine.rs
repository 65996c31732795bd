//! Values that follow the lane's number, computed for a bundle as it enters a block ([`super::compile::values`]).

use super::compile::values::{Affine, Op, Source, Step, ValueId};
use crate::isa::lanes::{MAX_WARPS, WARP, Width};
use crate::isa::{Compare, Level};

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
        unsafe { values.steps(&affine.once, regs) }.ok()?;
        values.look_at_bases(&affine.bases_once);
        Some(values)
    }

    /// Looks at the bases of values of which addresses are made.
    #[inline(always)]
    fn look_at_bases(&mut self, of: &[ValueId]) {
        let all = self.warps as usize * WARP;
        let runs = (all / self.runs.0).max(1);
        for &value in of {
            self.values[usize::from(value)].look_at_bases(runs);
        }
    }

    /// Computes what depends on the block; `false` if this block has to do without.
    ///
    /// # Safety
    /// As for [`Values::new`].
    pub unsafe fn enter(&mut self, affine: &Affine, ctaid: [u32; 3], regs: *mut u8) -> bool {
        // SAFETY: the caller's; the CPU has the level.
        unsafe {
            match Level::current() {
                Level::Avx512 => self.enter_avx512(affine, ctaid, regs),
                Level::Avx2 => self.enter_avx2(affine, ctaid, regs),
                Level::Baseline => self.enter_by(affine, ctaid, regs),
            }
        }
    }

    /// # Safety
    /// As for [`Values::new`]; the CPU has these features.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn enter_avx512(&mut self, affine: &Affine, ctaid: [u32; 3], regs: *mut u8) -> bool {
        // SAFETY: the caller's.
        unsafe { self.enter_by(affine, ctaid, regs) }
    }

    /// # Safety
    /// As for [`Values::new`]; the CPU has these features.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn enter_avx2(&mut self, affine: &Affine, ctaid: [u32; 3], regs: *mut u8) -> bool {
        // SAFETY: the caller's.
        unsafe { self.enter_by(affine, ctaid, regs) }
    }

    /// # Safety
    /// As for [`Values::new`].
    #[inline(always)]
    unsafe fn enter_by(&mut self, affine: &Affine, ctaid: [u32; 3], regs: *mut u8) -> bool {
        for (source, value) in affine.sources.iter().zip(&mut self.values) {
            if let Source::Ctaid(axis) = *source {
                value.base = [u64::from(ctaid[usize::from(axis)]); MAX_RUNS];
            }
        }
        // SAFETY: `regs` is a window of the code from which the steps come.
        if unsafe { self.steps(&affine.each, regs) }.is_err() {
            return false;
        }
        self.look_at_bases(&affine.bases_each);
        true
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
    #[inline(always)]
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
                        *base = ends((a.base[r], a.step), lanes, signed, false)?.0 as u64;
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
                        let (first, last) = ends((a.base[r], a.step), lanes, signed, wide)?;
                        let (y, _) = ends((b.base[r], 0), 1, signed, wide)?;
                        let by = if wide {
                            a.step as i64
                        } else {
                            i64::from(a.step as u32 as i32)
                        };
                        let holds = holds(relation, (first, last), by, y, lanes as i64);
                        if RUNS == 1 {
                            for (at, word) in words.iter_mut().enumerate().take(all / WARP) {
                                *word = holds.word((at * WARP) as i64);
                            }
                        } else {
                            let (word, shift) = (r * lanes / WARP, r * lanes % WARP);
                            let part = u32::MAX >> (WARP - lanes);
                            words[word] |= (holds.word(0) & part) << shift;
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

/// The first and the last number of a run of that many lanes, of which this is the first and what each has more than the one
/// before, if those between lie on the line. Unsigned numbers of 64 bits come less 2^63: in the same order.
#[inline(always)]
fn ends((base, step): (u64, u64), lanes: usize, signed: bool, wide: bool) -> Result<(i64, i64), Wraps> {
    let steps = lanes as i64 - 1;
    if wide {
        let first = if signed { base as i64 } else { (base ^ 1 << 63) as i64 };
        let last = (step as i64).checked_mul(steps).and_then(|all| first.checked_add(all));
        return last.map(|last| (first, last)).ok_or(Wraps);
    }
    let (first, range) = if signed {
        (i64::from(base as u32 as i32), i64::from(i32::MIN)..=i64::from(i32::MAX))
    } else {
        (i64::from(base as u32), 0..=i64::from(u32::MAX))
    };
    let last = first + i64::from(step as u32 as i32) * steps;
    if range.contains(&last) {
        Ok((first, last))
    } else {
        Err(Wraps)
    }
}

/// The lanes of a run in which a comparison holds: those from one lane to before another, or all others.
struct Holds {
    from: i64,
    to: i64,
    others: bool,
}

impl Holds {
    /// The bits of 32 lanes from lane `first` of the run on.
    #[inline(always)]
    fn word(&self, first: i64) -> u32 {
        let below = |lane: i64| ((1u64 << (lane - first).clamp(0, WARP as i64)) - 1) as u32;
        let between = below(self.to) & !below(self.from);
        if self.others { !between } else { between }
    }
}

/// Where numbers that go evenly from `first` to `last` by `step`, in so many lanes, are to `y` as a relation says.
#[inline(always)]
fn holds(relation: Compare, (first, last): (i64, i64), step: i64, y: i64, lanes: i64) -> Holds {
    // Lanes whose numbers are less than `y`, and those that have it, as the numbers rise; where they fall, those that
    // are more.
    let (low, high) = (first.min(last), first.max(last));
    let (before, equal) = if y < low {
        (0, 0)
    } else if y > high {
        (lanes, 0)
    } else if step == 0 {
        (0, lanes)
    } else {
        // Both are on the line between its ends, whose distance is a number of 64 bits.
        let (distance, each) = ((y - first).unsigned_abs(), step.unsigned_abs());
        let (whole, rest) = match each {
            1 => (distance, 0),
            _ => (distance / each, distance % each),
        };
        (whole as i64 + i64::from(rest != 0), i64::from(rest == 0))
    };
    // One that falls is above `y` first.
    let (less, more) = match step < 0 && (low..=high).contains(&y) {
        false => ((0, before), (before + equal, lanes)),
        true => ((before + equal, lanes), (0, before)),
    };
    let ((from, to), others) = match relation {
        Compare::Eq => ((before, before + equal), false),
        Compare::Ne => ((before, before + equal), true),
        Compare::Lt => (less, false),
        Compare::Le => (more, true),
        Compare::Gt => (more, false),
        Compare::Ge => (less, true),
        Compare::Equ
        | Compare::Neu
        | Compare::Ltu
        | Compare::Leu
        | Compare::Gtu
        | Compare::Geu
        | Compare::Num
        | Compare::Nan => unreachable!("integers are always ordered"),
    };
    Holds { from, to, others }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_compared_as_its_lanes_are() {
        type Holds = fn(&i64, &i64) -> bool;
        let relations: [(Compare, Holds); 6] = [
            (Compare::Eq, i64::eq),
            (Compare::Ne, i64::ne),
            (Compare::Lt, i64::lt),
            (Compare::Le, i64::le),
            (Compare::Gt, i64::gt),
            (Compare::Ge, i64::ge),
        ];
        let edges = [i64::MIN, i64::MIN + 9, -100, 0, 7, i64::MAX - 1000, i64::MAX];
        for (lanes, step, first) in [8, 16, 32, 64]
            .into_iter()
            .flat_map(|lanes| [-17, -2, -1, 0, 1, 2, 3, 4096].map(|step| (lanes, step)))
            .flat_map(|(lanes, step)| edges.map(|first| (lanes, step, first)))
        {
            let Ok((from, to)) = ends((first as u64, step as u64), lanes, true, true) else {
                continue;
            };
            let line: Vec<i64> = (0..lanes as i64).map(|lane| first + step * lane).collect();
            assert_eq!((from, to), (line[0], line[lanes - 1]));
            let near = line.iter().flat_map(|x| [x.saturating_sub(1), *x, x.saturating_add(1)]);
            for y in near.chain(edges) {
                for (relation, holds_of) in relations {
                    let found = holds(relation, (from, to), step, y, lanes as i64);
                    for at in (0..lanes).step_by(WARP) {
                        let word = found.word(at as i64);
                        for (lane, x) in line[at..].iter().enumerate().take(WARP) {
                            let what = (relation, x, y, step);
                            assert_eq!(word >> lane & 1 == 1, holds_of(x, &y), "{what:?} {at} {lane}");
                        }
                    }
                }
            }
        }
    }
}
