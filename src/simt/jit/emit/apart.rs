//! Words of lanes that lie too far apart for vectors, where the CPU has no scatters and its gathers are slow: each is loaded and
//! stored by itself.
//!
//! Addresses that grow by one step from lane to lane are one number and constants; nothing has to be taken out of vectors for
//! them.

use super::Emit;
use super::access::Moved;

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

    /// Where a part's first lane is: an address, and bytes behind it.
    fn first_of(&self, at: &[String], part: usize, step: u64) -> (String, u64) {
        match at {
            [one] => (one.clone(), part as u64 * u64::from(self.lanes) * step),
            many => (many[part].clone(), 0),
        }
    }
}
