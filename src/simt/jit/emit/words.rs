//! Words side by side that each lane loads or stores, wherever lanes are: one access of two or four words, or of two double words, for each
//! lane, and vectors that are transposed, in place of an access for each. A scatter of sixteen words takes an AMD Zen 5 some forty cycles.
//!
//! Vector accesses are such, and what compilers make of a loop that goes through memory: four turns at once, each of which loads the next
//! word behind one register. These loads are done where the first of them stands, if nothing between them and the last one may write.

use std::collections::HashMap;
use std::ops::Range;

use crate::program::{Address, Op, Ordering, Space};

use super::super::Pc;
use super::super::text::Form;
use super::Emit;
use super::place::{Place, Spread, Words};

/// Bytes that a lane loads at most.
const MOST: u64 = 16;

impl Emit<'_> {
    /// Which of a group's accesses, by their places in a block, are done together: by the first of them in the code.
    pub(super) fn side_by_side(&self, block: usize, members: &[usize]) -> HashMap<Pc, Words> {
        let start = self.input.starts[block];
        let mut together = HashMap::new();
        for size in [4, 8] {
            let words = self.single_loads(block, members, size);
            let most = (MOST / size) as usize;
            for row in words.chunk_by(|(a, _), (b, _)| a.checked_add(size as i64) == Some(*b)) {
                for many in row.chunks(most) {
                    for some in many.chunks(if many.len() == most { most } else { 2 }) {
                        let places = || some.iter().map(|&(_, at)| at);
                        let (Some(first), Some(last)) = (places().min(), places().max()) else {
                            continue;
                        };
                        if some.len() > 1 && self.only_reads(block, first..last) {
                            let pcs = places().map(|at| start + at as Pc).collect();
                            together.insert(start + first as Pc, Words { size, pcs });
                        }
                    }
                }
            }
        }
        together
    }

    /// Those that load one word of so many bytes, by their offsets. Who loads a word once more loads it himself.
    fn single_loads(&self, block: usize, members: &[usize], size: u64) -> Vec<(i64, usize)> {
        let insts = &self.input.body.blocks[block].insts;
        let single = |at: usize| match &insts[at].op {
            Op::Load {
                address, element, dst, ..
            } if u64::from(element.bytes) == size && dst.len() == 1 => Some((address.offset, at)),
            _ => None,
        };
        let mut words: Vec<(i64, usize)> = members.iter().filter_map(|&at| single(at)).collect();
        words.sort_unstable();
        words.dedup_by_key(|(offset, _)| *offset);
        words
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

    /// Whether so many words of so many bytes are loaded or stored together.
    pub(super) fn is_words(&self, size: u64, count: usize) -> bool {
        matches!((size, count), (4, 2 | 4) | (8, 2))
    }

    /// Loads them for each lane: the vectors of each, by part. They may turn out to be rows, of lanes one behind the other.
    pub(super) fn load_words(
        &mut self,
        address: &Address,
        spread: &Spread,
        (size, count): (u64, u64),
    ) -> Vec<Vec<String>> {
        let may = address.register.is_some_and(|reg| !self.kind(reg.number).is_line());
        if !may || address.space == Space::Local || !size.is_multiple_of(spread.scale) || self.lanes < 8 {
            return self.load_words_each(spread, (size, count));
        }
        let firsts = self.firsts(spread);
        let (_, elsewhere) = self.off_rows(spread, &firsts, size);
        let any = self.any(&elsewhere);
        let [apart, row, met] = ["apart", "row", "met"].map(|what| self.text.name(what));
        self.branch(&any, &apart, &row);
        self.text.label(&row);
        let at = self.starts_of_rows(spread, &firsts);
        let rows: Vec<Vec<String>> = (0..count).map(|word| self.load_rows(&at, word * size, size)).collect();
        self.jump(&met);
        self.text.label(&apart);
        let each = self.load_words_each(spread, (size, count));
        let far = self.text.name("far");
        self.jump(&far);
        self.text.label(&far);
        self.jump(&met);
        self.text.label(&met);
        let ty = self.form().int(size as u32 * 8);
        rows.iter()
            .zip(&each)
            .map(|(rows, each)| {
                let both = rows.iter().zip(each);
                both.map(|(by_row, by_lane)| {
                    self.text
                        .value(format!("phi {ty} [ {by_row}, %{row} ], [ {by_lane}, %{far} ]"))
                })
                .collect()
            })
            .collect()
    }

    /// Lanes that do not run load the words that are at the number itself.
    fn load_words_each(&mut self, spread: &Spread, (size, count): (u64, u64)) -> Vec<Vec<String>> {
        let mut values = vec![Vec::new(); count as usize];
        for part in 0..self.parts {
            let (distances, passed) = self.running(spread, part);
            let each = self.each_pointer(spread, &distances);
            let rows = (0..count as usize).map(|row| match (size, count) {
                (4, 2) => self.pairs(&each, row),
                _ => self.whole_rows(&each, row, size),
            });
            let rows: Vec<String> = rows.collect();
            let mut columns = match size {
                4 => self.transposed(rows, true),
                _ => self.transposed_pairs(&rows),
            };
            self.or_nothing(passed, size, &mut columns);
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
            let pair = self.text.value(format!("load i64, ptr {at}, align 4"));
            all = self
                .text
                .value(format!("insertelement {ty} {all}, i64 {pair}, i64 {place}"));
        }
        self.text.convert("bitcast", &ty, &all, &self.form().int(32))
    }

    /// All words of one lane in each four, or in each two where words are double.
    fn whole_rows(&mut self, each: &[String], row: usize, size: u64) -> String {
        let (mut length, bits) = (MOST / size, size * 8);
        let mut all: Vec<String> = each
            .iter()
            .skip(row)
            .step_by(length as usize)
            .map(|at| {
                self.text
                    .value(format!("load <{length} x i{bits}>, ptr {at}, align {size}"))
            })
            .collect();
        while let [_, _, ..] = all[..] {
            let order: Vec<String> = (0..2 * length).map(|at| format!("i32 {at}")).collect();
            let order = order.join(", ");
            let ty = format!("<{length} x i{bits}>");
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

    /// Stores them for each lane; `values`: the vectors of each word, by part.
    pub(super) fn store_words(&mut self, spread: &Spread, size: u64, values: &[Vec<String>]) {
        let (lanes, count) = (self.lanes as usize, values.len());
        let rows: Vec<Vec<String>> = (0..self.parts)
            .map(|part| {
                let columns: Vec<String> = values.iter().map(|values| values[part].clone()).collect();
                match (size, count) {
                    (4, _) => self.transposed(columns, false),
                    _ => self.transposed_pairs(&columns),
                }
            })
            .collect();
        let bits = size * 8;
        self.for_each_stored(spread, |this, part, lane, at| {
            // As `pairs` and `whole_rows` have them.
            let (row, place) = match (size, count) {
                (4, 2) => (lane / 2 % 2, lane / 4 * 2 + lane % 2),
                _ => (lane % count, lane / count),
            };
            let order: Vec<String> = (place * count..(place + 1) * count)
                .map(|at| format!("i32 {at}"))
                .collect();
            let ty = format!("<{lanes} x i{bits}>");
            let one = this.text.value(format!(
                "shufflevector {ty} {}, {ty} poison, <{count} x i32> <{}>",
                rows[part][row],
                order.join(", ")
            ));
            this.text
                .line(format!("store <{count} x i{bits}> {one}, ptr {at}, align {size}"));
        });
    }

    /// The first and the second words of pairs of double words; or, for that is its own inverse, the pairs of even lanes and of odd ones.
    fn transposed_pairs(&mut self, rows: &[String]) -> Vec<String> {
        let (lanes, ty) = (self.lanes, self.form().int(64));
        let columns = (0..2).map(|word| {
            let order: Vec<String> = (0..lanes)
                .step_by(2)
                .flat_map(|first| [first + word, first + word + lanes].map(|at| format!("i32 {at}")))
                .collect();
            self.text.value(format!(
                "shufflevector {ty} {}, {ty} {}, <{lanes} x i32> <{}>",
                rows[0],
                rows[1],
                order.join(", ")
            ))
        });
        columns.collect()
    }

    /// A load that is done together with others: the vectors of its word. `None`: it is not.
    pub(super) fn load_together(&mut self, address: &Address, pc: Pc) -> Option<Vec<String>> {
        if let Some(values) = self.loaded.remove(&pc) {
            return Some(values);
        }
        let Words { size, pcs } = self.together.remove(&pc)?;
        let count = pcs.len() as u64;
        let least = self.members.get(pcs.first()?)?.clone();
        let Place::Lanes(spread) = self.member(&least.start, least.delta, count * size) else {
            return None;
        };
        let all = self.load_words(address, &spread, (size, count));
        self.loaded.extend(pcs.into_iter().zip(all));
        self.loaded.remove(&pc)
    }
}
