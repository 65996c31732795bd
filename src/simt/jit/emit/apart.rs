//! Words of lanes that lie too far apart for vectors: each is loaded by itself, and stored so where the CPU has no scatters. A gather of 16 words
//! that are at hand takes 5 to 8 ns on an AMD Zen 5, 16 loads take 3; and CPUs that make many steps of it do nothing else while one of them waits
//! for memory.
//!
//! Addresses that grow by one step from lane to lane are one number and constants; nothing has to be taken out of vectors for
//! them. Distances of 32 bits are taken out of vectors two at a time.

use super::super::text::Form;
use super::Emit;
use super::masks::Passed;
use super::place::{Moved, Spread};

/// Bytes from one lane to the next at most, so that the whole warp's are within what instructions have room for.
const FAR: u64 = 1 << 16;

impl Emit<'_> {
    /// Whether lanes that all run access memory one by one, where addresses grow by `step`.
    pub(super) fn is_apart(&self, moved: Moved, step: u64) -> bool {
        let bytes = moved.bytes();
        self.lanes < 16 && step > bytes && step.is_multiple_of(bytes) && step <= FAR
    }

    /// Loads them: the vectors of each element, by part.
    pub(super) fn load_apart(&mut self, at: &[String], (moved, step): (Moved, u64)) -> Vec<Vec<String>> {
        let Moved { size, count, .. } = moved;
        let (lanes, bits) = (u64::from(self.lanes), size as u32 * 8);
        let ty = self.form().int(bits);
        let mut values = vec![Vec::new(); count as usize];
        for part in 0..self.parts {
            let (base, first) = self.first_of(at, part, step);
            if self.is_matrix(bits, count) {
                let rows = self.load_matrix(&base, (first, step), count);
                rows.into_iter()
                    .zip(&mut values)
                    .for_each(|(row, values)| values.push(row));
                continue;
            }
            for (k, values) in (0..).zip(&mut values) {
                let mut all = "poison".to_owned();
                for lane in 0..lanes {
                    let pointer = self.pointer(&base, first + lane * step + k * size);
                    let one = self.text.value(format!("load i{bits}, ptr {pointer}, align {size}"));
                    all = self
                        .text
                        .value(format!("insertelement {ty} {all}, i{bits} {one}, i64 {lane}"));
                }
                values.push(all);
            }
        }
        values
    }

    /// Stores them; `values`: the vectors of each element, by part.
    pub(super) fn store_apart(&mut self, at: &[String], (moved, step): (Moved, u64), values: &[Vec<String>]) {
        let Moved { size, count, .. } = moved;
        let (lanes, bits) = (u64::from(self.lanes), size as u32 * 8);
        let ty = self.form().int(bits);
        for part in 0..self.parts {
            let (base, first) = self.first_of(at, part, step);
            if self.is_matrix(bits, count) {
                let rows = values.iter().map(|values| values[part].clone()).collect();
                self.store_matrix(&base, (first, step), rows);
                continue;
            }
            for (k, values) in (0..).zip(values) {
                for lane in 0..lanes {
                    let one = self
                        .text
                        .value(format!("extractelement {ty} {}, i64 {lane}", values[part]));
                    let pointer = self.pointer(&base, first + lane * step + k * size);
                    self.text
                        .line(format!("store i{bits} {one}, ptr {pointer}, align {size}"));
                }
            }
        }
    }

    /// Whether single words at these distances are accessed one by one.
    pub(super) fn is_each(&self, count: usize) -> bool {
        // Loads take longer to compile (a scan of twenty steps 280 ms, 180 with gathers): they are for loops.
        let gathers = self.lanes == 16 && !self.repeats();
        count == 1 && !gathers
    }

    /// Loads them, a vector a part; lanes that do not run load the word that is at the number itself.
    pub(super) fn load_each(&mut self, spread: &Spread, size: u64) -> Vec<String> {
        let bits = size as u32 * 8;
        let ty = self.form().int(bits);
        let mut values = Vec::new();
        for part in 0..self.parts {
            let (distances, passed) = self.running(spread, part);
            let mut all = "poison".to_owned();
            for (lane, at) in self.each_pointer(spread, &distances).iter().enumerate() {
                let one = self.text.value(format!("load i{bits}, ptr {at}, align {size}"));
                all = self
                    .text
                    .value(format!("insertelement {ty} {all}, i{bits} {one}, i64 {lane}"));
            }
            let mut all = [all];
            self.or_nothing(passed, size, &mut all);
            values.extend(all);
        }
        values
    }

    /// What was passed by gives zeros, where it was: vectors of elements of so many bytes.
    pub(super) fn or_nothing(&mut self, passed: Option<Passed>, size: u64, values: &mut [String]) {
        let Some(Passed { before, some, behind }) = passed else {
            return;
        };
        self.jump(&behind);
        self.text.label(&behind);
        let (form, bits) = (self.form(), size as u32 * 8);
        let (ty, none) = (form.int(bits), form.constant(bits, 0));
        for value in values {
            *value = self
                .text
                .value(format!("phi {ty} [ {value}, %{some} ], [ {none}, %{before} ]"));
        }
    }

    /// A part's distances, none for lanes that do not run; where lanes may not run, what follows is passed by if none does.
    pub(super) fn running(&mut self, spread: &Spread, part: usize) -> (String, Option<Passed>) {
        let distances = &spread.distances[part];
        let Some(mask) = self.mask.clone() else {
            return (distances.clone(), None);
        };
        let form = self.form();
        let word = self.word_of(&mask[part]);
        let passed = self.pass(&word);
        let (ty, zero) = (form.int(spread.bits), form.constant(spread.bits, 0));
        (self.text.select(form, &ty, &mask[part], distances, &zero), Some(passed))
    }

    /// Stores them; lanes that do not run store where nobody looks.
    pub(super) fn store_each(&mut self, spread: &Spread, size: u64, values: &[String]) {
        let (ty, bits) = (self.form().int(size as u32 * 8), size * 8);
        self.for_each_stored(spread, |this, part, lane, at| {
            let value = &values[part];
            let one = this.text.value(format!("extractelement {ty} {value}, i64 {lane}"));
            this.text.line(format!("store i{bits} {one}, ptr {at}, align {size}"));
        });
    }

    /// Has something stored for each lane, in their order, by part: to a pointer that leads where nobody looks for lanes that do not run. Nothing is
    /// stored for a part none of whose lanes run.
    pub(super) fn for_each_stored(&mut self, spread: &Spread, mut store: impl FnMut(&mut Self, usize, usize, &str)) {
        let lanes = self.lanes;
        let nowhere = self.mask.is_some().then(|| {
            let nowhere = self.nowhere();
            self.text.value(format!("inttoptr i64 {nowhere} to ptr"))
        });
        for part in 0..self.parts {
            let running = self.mask.clone().map(|mask| self.word_of(&mask[part]));
            let passed = running.as_ref().map(|running| self.pass(running));
            for (lane, at) in self.each_pointer(spread, &spread.distances[part]).iter().enumerate() {
                let mut at = at.clone();
                if let (Some(running), Some(nowhere)) = (&running, &nowhere) {
                    let bit = Form::One.constant(lanes, 1 << lane);
                    let bit = self.text.value(format!("and i{lanes} {running}, {bit}"));
                    let runs = self.text.value(format!("icmp ne i{lanes} {bit}, 0"));
                    at = self.text.select(Form::One, "ptr", &runs, &at, nowhere);
                }
                store(self, part, lane, &at);
            }
            self.behind(passed.map(|passed| passed.behind));
        }
    }

    /// Pointers of a part's lanes.
    pub(super) fn each_pointer(&mut self, spread: &Spread, distances: &str) -> Vec<String> {
        let base = self.text.value(format!("inttoptr i64 {} to ptr", spread.base));
        let (lanes, form) = (self.lanes, self.form());
        let mut each = Vec::new();
        match spread.bits {
            32 => {
                let ty = format!("<{} x i64>", lanes / 2);
                let pairs = self.text.convert("bitcast", &form.int(32), distances, &ty);
                for pair in 0..lanes / 2 {
                    let both = self.text.value(format!("extractelement {ty} {pairs}, i64 {pair}"));
                    each.push(self.text.value(format!("and i64 {both}, 4294967295")));
                    each.push(self.text.value(format!("lshr i64 {both}, 32")));
                }
            }
            _ => {
                let ty = form.int(64);
                for lane in 0..lanes {
                    each.push(self.text.value(format!("extractelement {ty} {distances}, i64 {lane}")));
                }
            }
        }
        each.iter()
            .map(|distance| {
                self.text.value(format!(
                    "getelementptr [{} x i8], ptr {base}, i64 {distance}",
                    spread.scale
                ))
            })
            .collect()
    }
}
