//! NaN of `f64`. The CPU gives another one than a GPU does, so an operation whose result is one is done again by the interpreter's kernel.
//! Whether that is so is asked once for several operations: what is computed from a NaN is NaN, so of a chain the end is looked at, and
//! if that is one, the whole chain is done again.

use std::collections::{BTreeMap, HashMap};

use super::super::compute;
use super::super::context::ROOM;
use super::{Called, Emit};
use crate::isa::Compute;
use crate::isa::float::{Extremum, Op as Float};
use crate::program::{Inst, Op, Ordering, Reg, Register, Role};

/// Operations that are looked at together: what each has read is kept until then.
const MOST: usize = 24;

/// An operation that may have to be done again.
pub(super) struct Done {
    what: Compute,
    dst: Reg,
    src: Vec<Reg>,
    /// What it has read, and the result of the CPU.
    sources: Vec<Vec<String>>,
    result: Vec<String>,
    /// It is read by a later one, whose result is NaN if this one is.
    is_followed: bool,
}

/// Whether a NaN among the operands shows in the result.
fn passes_nan_on(what: Compute) -> bool {
    !matches!(
        what,
        Compute::Float(Float::Min { of: Extremum::F64 } | Float::Max { of: Extremum::F64 })
    )
}

impl Emit<'_> {
    /// Before an instruction: it, or who carries it out, must not see or replace a result that may have to be computed again. `true`: its
    /// own result may wait to be looked at.
    pub(super) fn settle_before(&mut self, inst: &Inst) -> bool {
        let waits = inst.guard.is_none()
            && match &inst.op {
                Op::Compute { op, dst, .. } => compute::carries_nan(*op) && !self.kind(dst[0].number).is_line(),
                _ => false,
            };
        if self.done.is_empty() || waits {
            return waits;
        }
        let passes = inst.guard.is_none()
            && match &inst.op {
                Op::Compute { op, dst, src } => {
                    let is_wide = dst.iter().chain(src).any(|reg| compute::bits_of(reg.width).is_none());
                    !is_wide && self.plan.may_wrap(self.input.body, *op, src).is_none()
                }
                Op::Load { ordering, .. } => *ordering == Ordering::Weak,
                _ => false,
            };
        let mut touches = false;
        inst.op
            .regs(|reg, _: Role| touches |= self.done.iter().any(|done| done.dst.number == reg.number));
        if !passes || touches {
            self.settle();
        }
        false
    }

    /// An operation has been done whose result is looked at later, or now if that would be too many.
    pub(super) fn done(
        &mut self,
        what: Compute,
        (dst, src): (Reg, &[Reg]),
        sources: Vec<Vec<String>>,
        result: Vec<String>,
    ) {
        if passes_nan_on(what) {
            for reg in src {
                // What a register holds now is what was written to it last.
                if let Some(before) = self.done.iter_mut().rev().find(|done| done.dst.number == reg.number) {
                    before.is_followed = true;
                }
            }
        }
        self.done.push(Done {
            what,
            dst,
            src: src.to_vec(),
            sources,
            result,
            is_followed: false,
        });
        if self.done.len() == MOST {
            self.settle();
        }
    }

    /// Operations whose results nobody has looked at are done again if any of those is NaN.
    pub(super) fn settle(&mut self) {
        let all = std::mem::take(&mut self.done);
        if all.is_empty() {
            return;
        }
        // What stands before keeps its order by parts.
        let look = self.text.name("look");
        self.jump(&look);
        self.text.label(&look);
        let ends = all.iter().filter(|done| !done.is_followed);
        let ends: Vec<String> = ends.flat_map(|done| &done.result).cloned().collect();
        let any = self.any_nan(&ends);
        let (again, go) = (self.text.name("again"), self.text.name("go"));
        self.rarely(&any, &again, &go);
        self.text.label(&again);
        self.do_again(&all);
        self.jump(&go);
        self.text.label(&go);
    }

    /// One after the other, by the interpreter's kernels, in memory: what comes from elsewhere goes there once, and what comes out is taken from
    /// there at the end. This is rarely run, and would be much of the code if each operand went there and back for each operation.
    fn do_again(&mut self, all: &[Done]) {
        let mut places: HashMap<&[String], u32> = HashMap::new();
        let mut written: BTreeMap<Register, (Reg, u32)> = BTreeMap::new();
        let mut end = 0;
        let mut place = || {
            end += ROOM;
            end - ROOM
        };
        for done in all {
            let mut from = Vec::with_capacity(done.src.len());
            for (reg, values) in done.src.iter().zip(&done.sources) {
                let at = match (written.get(&reg.number), places.get(&values[..])) {
                    (Some((_, at)), _) | (None, Some(at)) => *at,
                    (None, None) => {
                        let at = place();
                        self.store_lanes("%again", at as usize, reg.width, values);
                        places.insert(values, at);
                        at
                    }
                };
                from.push(at);
            }
            let to = place();
            self.call_there("%again", Called::Compute(done.what, 1), &[to], &from);
            written.insert(done.dst.number, (done.dst, to));
        }
        for (dst, at) in written.into_values() {
            let exact = self.load_lanes("%again", at as usize, dst.width);
            self.write_lanes(dst, &exact);
        }
        self.again_bytes = self.again_bytes.max(end);
    }

    /// Whether any of these numbers is NaN, in any lane.
    pub(super) fn any_nan(&mut self, numbers: &[String]) -> String {
        let (form, lanes) = (self.form(), self.lanes);
        let (floats, longs) = (form.float(64), form.int(64));
        let floated: Vec<String> = numbers.iter().map(|number| self.text.float(form, 64, number)).collect();
        let mut all: Option<String> = None;
        // Two that are not ordered: one of them is NaN.
        for pair in floated.chunks(2) {
            let other = pair.last().unwrap_or(&pair[0]);
            let nan = self.text.value(format!("fcmp uno {floats} {}, {other}", pair[0]));
            let nan = match form.has_flags() {
                true => self.text.convert("sext", &form.int(1), &nan, &longs),
                false => nan,
            };
            let ty = if form.has_flags() { longs.clone() } else { form.int(1) };
            all = Some(match all {
                Some(all) => self.text.binary("or", &ty, &all, &nan),
                None => nan,
            });
        }
        let mut all = all.unwrap_or_default();
        if form.has_flags() {
            all = self
                .text
                .value(format!("icmp slt {longs} {all}, {}", form.constant(64, 0)));
        }
        let word = self.word_of(&all);
        self.text.value(format!("icmp ne i{lanes} {word}, 0"))
    }
}
