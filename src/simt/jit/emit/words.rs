//! Words side by side that each lane loads, wherever lanes are: one load of two or four words for each lane, and vectors that are
//! transposed, in place of a load for each word.
//!
//! Vector accesses are such, and what compilers make of a loop that goes through memory: four turns at once, each of which loads the next
//! word behind one register. These loads are done where the first of them stands, if nothing between them and the last one may write.

use std::collections::HashMap;
use std::ops::Range;

use crate::program::{Address, Op, Ordering, Space};

use super::super::Pc;
use super::super::text::Form;
use super::masks::Passed;
use super::place::{Place, Spread};
use super::{Emit, order};

/// Bytes of a word.
const WORD: u64 = 4;

/// Loads of words side by side that are done together, by how far they are from the register.
pub(super) type Words = Vec<Pc>;

impl Emit<'_> {
    /// Which of a group's accesses, by their places in a block, are done together: by the first of them in the code.
    pub(super) fn side_by_side(&self, block: usize, members: &[usize]) -> HashMap<Pc, Words> {
        let insts = &self.input.body.blocks[block].insts;
        let start = self.input.starts[block];
        let mut words: Vec<(i64, usize)> = members
            .iter()
            .filter_map(|&at| match &insts[at].op {
                Op::Load {
                    address, element, dst, ..
                } if u64::from(element.bytes) == WORD && dst.len() == 1 => Some((address.offset, at)),
                _ => None,
            })
            .collect();
        words.sort_unstable();
        // Who loads a word once more loads it himself.
        words.dedup_by_key(|(offset, _)| *offset);
        let mut together = HashMap::new();
        for row in words.chunk_by(|(a, _), (b, _)| a.checked_add(WORD as i64) == Some(*b)) {
            for four in row.chunks(4) {
                for some in four.chunks(if four.len() == 4 { 4 } else { 2 }) {
                    let places = || some.iter().map(|&(_, at)| at);
                    let (Some(first), Some(last)) = (places().min(), places().max()) else {
                        continue;
                    };
                    if some.len() > 1 && self.only_reads(block, first..last) {
                        together.insert(start + first as Pc, places().map(|at| start + at as Pc).collect());
                    }
                }
            }
        }
        together
    }

    /// Whether instructions leave memory as it is, and may come after loads that stand behind them.
    fn only_reads(&self, block: usize, insts: Range<usize>) -> bool {
        self.input.body.blocks[block].insts[insts]
            .iter()
            .all(|inst| match &inst.op {
                Op::Compute { .. } => true,
                Op::Load { ordering, .. } => *ordering == Ordering::Weak,
                _ => false,
            })
    }

    /// Loads two or four words for each lane: the vectors of each, by part. They may turn out to be rows, of lanes one behind the other.
    pub(super) fn load_words(&mut self, address: &Address, spread: &Spread, count: u64) -> Vec<Vec<String>> {
        let may = address.register.is_some_and(|reg| !self.kind(reg.number).is_line());
        if !may || address.space == Space::Local || !WORD.is_multiple_of(spread.scale) || self.lanes < 8 {
            return self.load_words_each(spread, count);
        }
        let firsts = self.firsts(spread);
        let (_, elsewhere) = self.off_rows(spread, &firsts, WORD);
        let any = self.any(&elsewhere);
        let [apart, row, met] = ["apart", "row", "met"].map(|what| self.text.name(what));
        self.branch(&any, &apart, &row);
        self.text.label(&row);
        let at = self.starts_of_rows(spread, &firsts);
        let rows: Vec<Vec<String>> = (0..count).map(|word| self.load_rows(&at, word * WORD, WORD)).collect();
        self.jump(&met);
        self.text.label(&apart);
        let each = self.load_words_each(spread, count);
        let [from, behind] = [order::block_at_end(&self.text.lines).to_owned(), met.clone()];
        self.jump(&behind);
        self.text.label(&met);
        let ty = self.form().int(32);
        rows.iter()
            .zip(&each)
            .map(|(rows, each)| {
                let both = rows.iter().zip(each);
                both.map(|(by_row, by_lane)| {
                    self.text
                        .value(format!("phi {ty} [ {by_row}, %{row} ], [ {by_lane}, %{from} ]"))
                })
                .collect()
            })
            .collect()
    }

    /// Lanes that do not run load the words that are at the number itself.
    fn load_words_each(&mut self, spread: &Spread, count: u64) -> Vec<Vec<String>> {
        let form = self.form();
        let ty = form.int(32);
        let mut values = vec![Vec::new(); count as usize];
        for part in 0..self.parts {
            let mut distances = spread.distances[part].clone();
            let mut passed = None;
            if let Some(mask) = self.mask.clone() {
                let word = self.word_of(&mask[part]);
                passed = Some(self.pass(&word));
                let zero = form.constant(spread.bits, 0);
                let ty = form.int(spread.bits);
                distances = self.text.select(form, &ty, &mask[part], &distances, &zero);
            }
            let each = self.each_pointer(spread, &distances);
            let rows = (0..count as usize).map(|row| match count {
                2 => self.pairs(&each, row),
                _ => self.quadruples(&each, row),
            });
            let rows = rows.collect();
            let mut columns = self.transposed(rows, true);
            if let Some(Passed { before, some, behind }) = passed {
                self.jump(&behind);
                self.text.label(&behind);
                let none = form.constant(32, 0);
                for column in &mut columns {
                    *column = self
                        .text
                        .value(format!("phi {ty} [ {column}, %{some} ], [ {none}, %{before} ]"));
                }
            }
            values
                .iter_mut()
                .zip(columns)
                .for_each(|(values, column)| values.push(column));
        }
        values
    }

    /// Of each four lanes the words of two: the first two, or the last ones.
    fn pairs(&mut self, each: &[String], row: usize) -> String {
        let ty = Form::Lanes(self.lanes / 2).int(64);
        let mut all = "poison".to_owned();
        for place in 0..each.len() / 2 {
            let at = &each[place / 2 * 4 + row * 2 + place % 2];
            let pair = self.text.value(format!("load i64, ptr {at}, align {WORD}"));
            all = self
                .text
                .value(format!("insertelement {ty} {all}, i64 {pair}, i64 {place}"));
        }
        self.text.convert("bitcast", &ty, &all, &self.form().int(32))
    }

    /// Of each four lanes the words of one.
    fn quadruples(&mut self, each: &[String], row: usize) -> String {
        let mut all: Vec<String> = each
            .iter()
            .skip(row)
            .step_by(4)
            .map(|at| self.text.value(format!("load <4 x i32>, ptr {at}, align {WORD}")))
            .collect();
        let mut length = 4;
        while let [_, _, ..] = all[..] {
            let order: Vec<String> = (0..2 * length).map(|at| format!("i32 {at}")).collect();
            let order = order.join(", ");
            let ty = format!("<{length} x i32>");
            length *= 2;
            all = all
                .chunks(2)
                .map(|two| {
                    self.text.value(format!(
                        "shufflevector {ty} {}, {ty} {}, <{length} x i32> <{order}>",
                        two[0], two[1]
                    ))
                })
                .collect();
        }
        all.swap_remove(0)
    }

    /// A load that is done together with others: the vectors of its word. `None`: it is not.
    pub(super) fn load_together(&mut self, address: &Address, pc: Pc) -> Option<Vec<String>> {
        if let Some(values) = self.loaded.remove(&pc) {
            return Some(values);
        }
        let words = self.together.remove(&pc)?;
        let least = self.members.get(words.first()?)?.clone();
        let bytes = words.len() as u64 * WORD;
        let Place::Lanes(spread) = self.member(&least.start, least.delta, bytes) else {
            return None;
        };
        let all = self.load_words(address, &spread, words.len() as u64);
        self.loaded.extend(words.into_iter().zip(all));
        self.loaded.remove(&pc)
    }
}
