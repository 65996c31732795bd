//! Branches that compare where a lane stands in a row with a bound, as `if (i >= n) return` does. If the comparison comes to the same at both ends
//! of the row, it does in all lanes, unless the row wraps around: two comparisons of single numbers, where one of vectors, whose bits have to be
//! gathered, would say no more. What such comparisons are joined to is asked the same way: `if (x >= width || y >= height)`.
//!
//! Many kernels compare the thread's number with a constant, and branch by it behind barriers later on. Where neither can have changed, code compares
//! again: that takes less than to bring back the bits that were kept ([`super::super::compared`]).

use crate::isa::{Compute, compare, logic};
use crate::program::{Guard, Inst, Op, Reg, Role};

use super::super::compared::{Comparison, compared_by};
use super::super::compute::{bits_of, of_integers};
use super::super::plan::{Kind, Parts};
use super::{Emit, LANES, Node};

/// What a branch asks.
pub(super) enum Question {
    /// A comparison of a line with a number that is the same for all.
    Row(Comparison),
    /// A predicate that is the same for all.
    Same(Reg),
    Not(Box<Question>),
    /// By LLVM's word.
    Both(&'static str, Box<[Question; 2]>),
}

/// A number of a line, and how far from it all that it stands for lies: from the least to the greatest.
struct Ends {
    number: String,
    least: i64,
    greatest: i64,
}

/// How many comparisons are asked for one branch.
const MOST: usize = 6;

/// Threads of a block, at most (CUDA C++ Programming Guide, Compute Capabilities).
const MOST_THREADS: u32 = 1024;

impl Question {
    fn rows(&self) -> usize {
        match self {
            Question::Row(_) => 1,
            Question::Same(_) => 0,
            Question::Not(one) => one.rows(),
            Question::Both(_, both) => both.iter().map(Question::rows).sum(),
        }
    }
}

impl Emit<'_> {
    /// What a guard asks, if that can be answered for a whole warp: made of comparisons that can be made again anywhere, or that were computed in
    /// this unit, where nobody asks for the guard where lanes go.
    pub(super) fn question_of(&self, guard: Guard, to: [Node; 2]) -> Option<Question> {
        let wanted = |node: Node| self.plan.live[self.plan.unit_of(node) as usize].has(guard.reg.number);
        let anywhere = self.comparisons.get(&guard.reg.number).filter(|row| self.is_row(row));
        let question = match anywhere {
            Some(row) => Question::Row(row.clone()),
            None if to.into_iter().any(|node| !self.plan.is_end(node) && wanted(node)) => return None,
            None => {
                let unit = &self.plan.units[self.unit as usize];
                let insts = &self.input.body.blocks[unit.block as usize].insts[unit.insts.clone()];
                self.asked(guard.reg, insts, insts.len())?
            }
        };
        (1..=MOST).contains(&question.rows()).then_some(match guard.negated {
            true => Question::Not(Box::new(question)),
            false => question,
        })
    }

    /// What a predicate says at the unit's end that had its value before the instruction of this number.
    fn asked(&self, reg: Reg, insts: &[Inst], end: usize) -> Option<Question> {
        let writes = |inst: &Inst, reg: Reg| {
            let mut found = false;
            inst.op
                .regs(|one, role| found |= role == Role::Def && one.number == reg.number);
            found
        };
        if self.kind(reg.number).is_line() {
            let later = insts[end..].iter().any(|inst| writes(inst, reg));
            return (!later).then_some(Question::Same(reg));
        }
        if let Some(row) = self.comparisons.get(&reg.number).filter(|row| self.is_row(row)) {
            return Some(Question::Row(row.clone()));
        }
        let at = insts[..end].iter().rposition(|inst| writes(inst, reg))?;
        let inst = &insts[at];
        let row = |row: Comparison| {
            let later = |reg| insts[at + 1..].iter().any(|inst| writes(inst, reg));
            let stays = self.is_row(&row) && !row.sides.into_iter().any(later);
            stays.then_some(Question::Row(row))
        };
        if let Some(comparison) = compared_by(inst) {
            return row(comparison);
        }
        let (None, Op::Compute { op, dst, src }) = (inst.guard, &inst.op) else {
            return None;
        };
        let of = |reg: &Reg| self.asked(*reg, insts, at);
        match (op, &src[..], dst.len()) {
            (Compute::Logic(logic::Op::Not { .. }), [a], 1) => Some(Question::Not(Box::new(of(a)?))),
            (Compute::Logic(op), [a, b], 1) => {
                let word = match op {
                    logic::Op::And { .. } => "and",
                    logic::Op::Or { .. } => "or",
                    logic::Op::Xor { .. } => "xor",
                    _ => return None,
                };
                Some(Question::Both(word, Box::new([of(a)?, of(b)?])))
            }
            (
                Compute::Compare(compare::Op::Setp {
                    compare,
                    boolean: Some(boolean),
                    of: operands,
                }),
                &[a, b, with],
                1,
            ) => {
                let (bits, signed, relation) = of_integers(*compare, *operands)?;
                let row = row(Comparison {
                    relation,
                    signed,
                    bits,
                    sides: [a, b],
                })?;
                Some(Question::Both(boolean.word(), Box::new([row, of(&with)?])))
            }
            _ => None,
        }
    }

    /// Whether one side is the same for all lanes, and the other lies between ends that are known. Rows of 16 bits are rare.
    fn is_row(&self, row: &Comparison) -> bool {
        let [a, b] = row.sides.map(|reg| self.kind(reg.number).is_same());
        let far = row.sides[usize::from(a)];
        let as_wide = |reg: Reg| bits_of(reg.width) == Some(row.bits);
        row.bits != 16 && a != b && row.sides.into_iter().all(as_wide) && self.reaches(far, row.bits).is_some()
    }

    /// How many numbers of a line stand for as many lanes, and how far all that each stands for lies from it.
    fn reaches(&self, reg: Reg, bits: u32) -> Option<(usize, i64, i64)> {
        let Kind::Line { step, parts, .. } = self.kind(reg.number) else {
            return None;
        };
        let step = (step << (64 - bits)) as i64 >> (64 - bits);
        // The ends are not to be so far from each other that they could have wrapped around more than once.
        let most = 1i64 << (bits - 2);
        let count = match parts {
            Parts::Each { .. } => self.bases_of(reg.number),
            Parts::One | Parts::Rows { .. } => 1,
        };
        let lanes = match parts {
            Parts::Rows { .. } => self.lanes * u32::from(parts.run()),
            Parts::One | Parts::Each { .. } => LANES / count as u32,
        };
        let far = step.checked_mul(i64::from(lanes - 1))?;
        let begins = self.begins_of(reg.number).unwrap_or_else(|| vec![0]);
        let mut least = begins.iter().min()?.checked_add(far.min(0))?;
        let mut greatest = begins.iter().max()?.checked_add(far.max(0))?;
        if self.beyond {
            // Numbers of the warps behind this one lie further on.
            let far = step.checked_mul(i64::from(MOST_THREADS))?;
            (least, greatest) = (least.min(far), greatest.max(far));
        }
        let near = greatest.checked_sub(least)? < most;
        (near && count <= 2).then_some((count, least, greatest))
    }

    /// Whether a question can be answered for the warps of a block behind this one as well, where threads lie in a line: of rows that grow with
    /// `%tid.x`, from warp to warp as in each.
    pub(super) fn goes_beyond(&self, question: &Question) -> bool {
        match question {
            Question::Row(row) => row.sides.into_iter().all(|reg| self.stride_of(reg).is_some()),
            Question::Same(reg) => self.stride_of(*reg) == Some(0),
            Question::Not(one) => self.goes_beyond(one),
            Question::Both(_, both) => both.iter().all(|one| self.goes_beyond(one)),
        }
    }

    /// The answer for this warp and all behind it ([`Emit::goes_beyond`]).
    pub(super) fn answer_beyond(&mut self, question: &Question) -> [String; 2] {
        self.beyond = true;
        let answer = self.answer(question);
        self.beyond = false;
        answer
    }

    fn ends_of(&mut self, reg: Reg, bits: u32) -> Vec<Ends> {
        let (count, least, greatest) = self.reaches(reg, bits).unwrap_or_default();
        let numbers = self.line_of(reg, false).0.into_iter().take(count);
        numbers
            .map(|number| Ends {
                number,
                least,
                greatest,
            })
            .collect()
    }

    /// Whether the answer is yes in all lanes of a whole warp, and whether it is in none, as far as the ends tell.
    pub(super) fn answer(&mut self, question: &Question) -> [String; 2] {
        match question {
            Question::Same(reg) => {
                let yes = self.line_of(*reg, false).0.swap_remove(0);
                let no = self.text.value(format!("xor i1 {yes}, true"));
                [yes, no]
            }
            Question::Not(one) => {
                let [all, none] = self.answer(one);
                [none, all]
            }
            Question::Both(word, both) => {
                let [[a_all, a_none], [b_all, b_none]] = [self.answer(&both[0]), self.answer(&both[1])];
                let mut join = |word: &str, a: &str, b: &str| self.text.binary(word, "i1", a, b);
                match *word {
                    "and" => [join("and", &a_all, &b_all), join("or", &a_none, &b_none)],
                    "or" => [join("or", &a_all, &b_all), join("and", &a_none, &b_none)],
                    _ => {
                        let [one, other] = [join("and", &a_all, &b_none), join("and", &a_none, &b_all)];
                        let [both, neither] = [join("and", &a_all, &b_all), join("and", &a_none, &b_none)];
                        [join("or", &one, &other), join("or", &both, &neither)]
                    }
                }
            }
            Question::Row(row) => self.answer_of(row),
        }
    }

    fn answer_of(&mut self, row: &Comparison) -> [String; 2] {
        let ty = format!("i{}", row.bits);
        let first_is_bound = self.kind(row.sides[0].number).is_same();
        let [far, bound] = match first_is_bound {
            true => [row.sides[1], row.sides[0]],
            false => row.sides,
        };
        let bound = self.line_of(bound, false).0.swap_remove(0);
        let (sign, relation) = (if row.signed { "s" } else { "u" }, row.relation);
        let mut answer: Option<[String; 2]> = None;
        for ends in self.ends_of(far, row.bits) {
            let [least, greatest] = [ends.least, ends.greatest].map(|far| match far {
                0 => ends.number.clone(),
                far => self.text.value(format!("add {ty} {}, {far}", ends.number)),
            });
            // A row that wraps around between its ends says nothing.
            let rises = (ends.least != ends.greatest)
                .then(|| self.text.value(format!("icmp {sign}ge {ty} {greatest}, {least}")));
            let one = match relation {
                "eq" | "ne" if ends.least != ends.greatest => {
                    let before = self.text.value(format!("icmp {sign}lt {ty} {bound}, {least}"));
                    let behind = self.text.value(format!("icmp {sign}gt {ty} {bound}, {greatest}"));
                    let differs = self.text.binary("or", "i1", &before, &behind);
                    match relation {
                        "eq" => ["false".to_owned(), differs],
                        _ => [differs, "false".to_owned()],
                    }
                }
                _ => {
                    let [a, b] = [least, greatest].map(|end| {
                        let [a, b] = if first_is_bound { [&bound, &end] } else { [&end, &bound] };
                        self.text.value(format!("icmp {relation} {ty} {a}, {b}"))
                    });
                    let all = self.text.binary("and", "i1", &a, &b);
                    let some = self.text.binary("or", "i1", &a, &b);
                    [all, self.text.value(format!("xor i1 {some}, true"))]
                }
            };
            let one = one.map(|holds| match &rises {
                Some(rises) => self.text.binary("and", "i1", &holds, rises),
                None => holds,
            });
            answer = Some(match answer {
                None => one,
                Some(before) => [0, 1].map(|at| self.text.binary("and", "i1", &before[at], &one[at])),
            });
        }
        answer.unwrap_or_else(|| ["false", "false"].map(str::to_owned))
    }

    /// Lanes in which the guard of a branch holds.
    pub(super) fn branching(&mut self, guard: Guard) -> Vec<String> {
        let Some(comparison) = self.comparisons.get(&guard.reg.number).cloned() else {
            return self.holding(guard);
        };
        let lanes = self.holding_of(&comparison);
        if guard.negated { self.not(&lanes) } else { lanes }
    }

    /// The lanes in which the answer is yes.
    pub(super) fn lanes_that_say_yes(&mut self, question: &Question) -> Vec<String> {
        match question {
            Question::Row(row) => self.holding_of(row),
            Question::Same(reg) => self.lanes_of(*reg, false),
            Question::Not(one) => {
                let lanes = self.lanes_that_say_yes(one);
                self.not(&lanes)
            }
            Question::Both(word, both) => {
                let [a, b] = [self.lanes_that_say_yes(&both[0]), self.lanes_that_say_yes(&both[1])];
                self.each(&a, &b, word)
            }
        }
    }

    /// The lanes in which the comparison holds.
    fn holding_of(&mut self, row: &Comparison) -> Vec<String> {
        let [a, b] = row.sides.map(|reg| self.lanes_of(reg, false));
        let ty = self.form().int(row.bits);
        a.iter()
            .zip(&b)
            .map(|(a, b)| self.text.value(format!("icmp {} {ty} {a}, {b}", row.relation)))
            .collect()
    }
}
