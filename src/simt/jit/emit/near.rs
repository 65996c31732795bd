//! Words of lanes that lie near each other, but not in a row: vectors that are read or written whole, and permuted, in place
//! of gathers and scatters, which go to memory for each lane.
//!
//! *Strides* are known beforehand: lines that grow by a few elements from lane to lane, as structures make them. *Windows*
//! show when an access is carried out: all lanes that run load from within 64 words of the first one. *Butterflies* are
//! stores to groups of 1, 2, 4 or 8 words in a row, with as many left out between: so networks that sort, trees and
//! transforms exchange their numbers.
//!
//! *Matrices* are pairs and quadruples of words, which with AVX2 are transposed on their way.

use super::super::text::Form;
use super::Emit;
use super::place::{Moved, Place};

/// Bytes of a window: four vectors.
const WINDOW: u64 = 256;
/// Most vectors of a stride.
const VECTORS: u64 = 8;

impl Emit<'_> {
    /// Whether vectors carry out an access of so many lanes, a part's at least, that grows by `step` from lane to lane.
    pub(super) fn is_stride(&self, moved: Moved, step: u64, lanes: u64) -> bool {
        let (bytes, times) = (moved.bytes(), step / moved.size);
        step > bytes
            && step.is_multiple_of(bytes)
            && times <= (4 * moved.count).min(VECTORS)
            // Room for a vector.
            && (lanes - 1) * step + bytes >= u64::from(self.lanes) * moved.size.max(4)
    }

    /// Elements of vectors side by side, chosen by vector and place; what nobody chooses is any number.
    fn pick(&mut self, bits: u32, vectors: &[String], chosen: &[Option<(usize, u64)>]) -> String {
        let lanes = u64::from(self.lanes);
        let ty = self.form().int(bits);
        let shuffle = |this: &mut Self, a: &str, b: &str, order: &mut dyn Iterator<Item = Option<u64>>| {
            let order: Vec<String> = order
                .map(|at| at.map_or("i32 poison".to_owned(), |at| format!("i32 {at}")))
                .collect();
            let by = format!("<{lanes} x i32> <{}>", order.join(", "));
            this.text.value(format!("shufflevector {ty} {a}, {ty} {b}, {by}"))
        };
        if let [one] = vectors {
            return shuffle(
                self,
                one,
                "poison",
                &mut chosen.iter().map(|at| at.map(|(_, place)| place)),
            );
        }
        if let [a, b] = vectors {
            let order = &mut chosen
                .iter()
                .map(|at| at.map(|(vector, place)| vector as u64 * lanes + place));
            return shuffle(self, a, b, order);
        }
        let half = vectors.len().next_power_of_two() / 2;
        let part = |upper: bool| -> Vec<Option<(usize, u64)>> {
            let mine = chosen
                .iter()
                .map(|at| at.filter(|(vector, _)| (*vector >= half) == upper));
            mine.map(|at| at.map(|(vector, place)| (vector % half, place)))
                .collect()
        };
        let low = self.pick(bits, &vectors[..half], &part(false));
        let high = self.pick(bits, &vectors[half..], &part(true));
        let order = &mut chosen
            .iter()
            .enumerate()
            .map(|(lane, at)| at.map(|(vector, _)| lane as u64 + if vector >= half { lanes } else { 0 }));
        shuffle(self, &low, &high, order)
    }

    /// Loads a stride: the vectors of each element, by part. `around`: bytes before the first lane's access and behind the
    /// last one's that may be read.
    pub(super) fn load_stride(
        &mut self,
        at: &[String],
        (moved, step): (Moved, u64),
        around: (u64, u64),
    ) -> Vec<Vec<String>> {
        let Moved { size, count, .. } = moved;
        let (lanes, bytes) = (u64::from(self.lanes), size * count);
        // Permutations of bytes are dear: they come by words.
        let word = size.max(4);
        let (bits, wide, chunk) = (size as u32 * 8, word as u32 * 8, lanes * word);
        let (ty, form) = (self.form().int(wide), self.form());
        // Where structures begin, if what lies before may be read: so accesses to one structure read the same vectors. Fields of
        // other widths begin and end elsewhere than at multiples of this one's.
        let lead = Some(around.0 % step).filter(|lead| lead + bytes <= step && lead.is_multiple_of(size));
        let lead = lead.unwrap_or(0);
        let behind = around.1.min(step - lead - bytes) / size * size;
        let lines = (self.parts / at.len()) as u64;
        let end = lead + (lines * lanes - 1) * step + bytes + behind;
        let mut values = vec![Vec::new(); count as usize];
        for part in 0..self.parts {
            let (base, first) = self.first_of(at, part, step);
            let length = (lanes - 1) * step + lead + bytes;
            let starts: Vec<u64> = (0..length.div_ceil(chunk))
                .map(|v| (first + v * chunk).min(end - chunk))
                .collect();
            let vectors: Vec<String> = starts
                .iter()
                .map(|start| {
                    let pointer = self.pointer(&base, start.wrapping_sub(lead));
                    self.text.value(format!("load {ty}, ptr {pointer}, align {size}"))
                })
                .collect();
            for (k, values) in values.iter_mut().enumerate() {
                let places: Vec<(usize, u64)> = (0..lanes)
                    .map(|lane| {
                        let byte = first + lead + lane * step + k as u64 * size;
                        // The last vector that begins before it has it.
                        let vector = starts.iter().rposition(|&start| start <= byte).unwrap_or(0);
                        (vector, byte - starts[vector])
                    })
                    .collect();
                let chosen: Vec<Option<(usize, u64)>> = places
                    .iter()
                    .map(|&(vector, byte)| Some((vector, byte / word)))
                    .collect();
                let mut value = self.pick(wide, &vectors, &chosen);
                if size < word {
                    let by: Vec<String> = places
                        .iter()
                        .map(|(_, byte)| format!("i{wide} {}", byte % word * 8))
                        .collect();
                    value = self.text.binary("lshr", &ty, &value, &format!("<{}>", by.join(", ")));
                }
                values.push(self.text.resize(form, wide, &value, bits, false));
            }
        }
        values
    }

    /// Stores a stride; `values`: the vectors of each element, by part.
    pub(super) fn store_stride(
        &mut self,
        at: &[String],
        (moved, step): (Moved, u64),
        values: &[Vec<String>],
        own: bool,
    ) {
        let Moved { size, count, .. } = moved;
        let (lanes, bits) = (u64::from(self.lanes), size as u32 * 8);
        let all = (lanes - 1) * step + size * count;
        for part in 0..self.parts {
            let (base, offset) = self.first_of(at, part, step);
            let sources: Vec<String> = values.iter().map(|values| values[part].clone()).collect();
            for start in (0..all).step_by((lanes * size) as usize) {
                let chosen: Vec<Option<(usize, u64)>> = (0..lanes)
                    .map(|place| {
                        let byte = start + place * size;
                        let element = byte % step / size;
                        (byte < all && element < count).then_some((element as usize, byte / step))
                    })
                    .collect();
                let whole = self.pick(bits, &sources, &chosen);
                let mask: Vec<String> = chosen.iter().map(|at| format!("i1 {}", at.is_some())).collect();
                let pointer = self.pointer(&base, offset + start);
                self.store_masked((&whole, &pointer), size, &format!("<{}>", mask.join(", ")), own);
            }
        }
    }

    /// Whether pairs or quadruples of words of eight lanes are loaded and stored as matrices that are transposed, in
    /// halves of vectors, which AVX permutes quickly.
    pub(super) fn is_matrix(&self, bits: u32, count: u64) -> bool {
        self.lanes == 8 && bits == 32 && matches!(count, 2 | 4)
    }

    /// Loads them, each `step` bytes behind the one before: the vector of each element. A row has 16 bytes of the four lower
    /// lanes, and those of the four upper ones.
    pub(super) fn load_matrix(&mut self, base: &str, (first, step): (u64, u64), count: u64) -> Vec<String> {
        let rows = (0..count).map(|row| {
            let [low, high] = [row, row + count].map(|quarter| match count == 2 && step != 8 {
                false => {
                    let pointer = self.pointer(base, first + 4 / count * quarter * step);
                    self.text.value(format!("load <4 x i32>, ptr {pointer}, align 4"))
                }
                // Two lanes' pairs.
                true => {
                    let mut both = "poison".to_owned();
                    for lane in 0..2 {
                        let pointer = self.pointer(base, first + (2 * quarter + lane) * step);
                        let pair = self.text.value(format!("load i64, ptr {pointer}, align 4"));
                        both = self
                            .text
                            .value(format!("insertelement <2 x i64> {both}, i64 {pair}, i64 {lane}"));
                    }
                    self.text.convert("bitcast", "<2 x i64>", &both, "<4 x i32>")
                }
            });
            self.text.value(format!(
                "shufflevector <4 x i32> {low}, <4 x i32> {high}, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>"
            ))
        });
        let rows = rows.collect();
        self.transposed(rows, true)
    }

    /// Stores them; `values`: the vector of each element.
    pub(super) fn store_matrix(&mut self, base: &str, (first, step): (u64, u64), values: Vec<String>) {
        let rows = self.transposed(values, false);
        let count = rows.len() as u64;
        for (row, value) in (0..).zip(&rows) {
            for half in 0..2 {
                let order: Vec<String> = (0..4).map(|lane| format!("i32 {}", 4 * half + lane)).collect();
                let part = self.text.value(format!(
                    "shufflevector <8 x i32> {value}, <8 x i32> poison, <4 x i32> <{}>",
                    order.join(", ")
                ));
                let quarter = row + count * half;
                if count != 2 || step == 8 {
                    let pointer = self.pointer(base, first + 4 / count * quarter * step);
                    self.text
                        .line(format!("store <4 x i32> {part}, ptr {pointer}, align 4"));
                    continue;
                }
                let both = self.text.convert("bitcast", "<4 x i32>", &part, "<2 x i64>");
                for lane in 0..2 {
                    let pair = self.text.value(format!("extractelement <2 x i64> {both}, i64 {lane}"));
                    let pointer = self.pointer(base, first + (2 * quarter + lane) * step);
                    self.text.line(format!("store i64 {pair}, ptr {pointer}, align 4"));
                }
            }
        }
    }

    /// Rows as columns, in each four words of vectors; `from_memory`, or the other way round.
    pub(super) fn transposed(&mut self, rows: Vec<String>, from_memory: bool) -> Vec<String> {
        let (lanes, ty) = (self.lanes, self.form().int(32));
        // Words of the one or, from 4 on, of the other one, for each four.
        let mut both = |a: &str, b: &str, order: [u32; 4]| {
            let order: Vec<String> = (0..lanes)
                .step_by(4)
                .flat_map(|first| order.map(|at| format!("i32 {}", first + at % 4 + at / 4 * lanes)))
                .collect();
            self.text.value(format!(
                "shufflevector {ty} {a}, {ty} {b}, <{lanes} x i32> <{}>",
                order.join(", ")
            ))
        };
        match &rows[..] {
            [a, b] if from_memory => vec![both(a, b, [0, 2, 4, 6]), both(a, b, [1, 3, 5, 7])],
            [a, b] => vec![both(a, b, [0, 4, 1, 5]), both(a, b, [2, 6, 3, 7])],
            // The transpose of four by four is its own inverse.
            [a, b, c, d] => {
                let (ab, cd) = (both(a, b, [0, 4, 1, 5]), both(c, d, [0, 4, 1, 5]));
                let (ab_behind, cd_behind) = (both(a, b, [2, 6, 3, 7]), both(c, d, [2, 6, 3, 7]));
                vec![
                    both(&ab, &cd, [0, 1, 4, 5]),
                    both(&ab, &cd, [2, 3, 6, 7]),
                    both(&ab_behind, &cd_behind, [0, 1, 4, 5]),
                    both(&ab_behind, &cd_behind, [2, 3, 6, 7]),
                ]
            }
            _ => rows,
        }
    }

    /// Windows for a load of single words: where they begin, the lanes' words in them, and whether any lane that runs is in none.
    /// Vectors have sixteen lanes. Distances are in bytes or in words, as the scale says.
    pub(super) fn windows(
        &mut self,
        (base, distances, bits, scale): (&str, &[String], u32, u64),
        firsts: &[String],
        end: &str,
    ) -> (Place, String) {
        let (form, wide) = (self.form(), self.form().int(bits));
        let (mut at, mut words) = (Vec::new(), Vec::new());
        let (mut far, mut short) = (Vec::new(), None);
        for (distance, first) in distances.iter().zip(firsts) {
            // A window begins at a word, which a lane that does not run may not, and ends where memory does.
            let first = self.text.resize(Form::One, bits, first, 64, true);
            let first = self.text.binary("mul", "i64", &first, &scale.to_string());
            let first = self.text.value(format!("add i64 {base}, {first}"));
            let first = self.text.value(format!("and i64 {first}, -4"));
            let first = self.text.value(format!("sub i64 {first}, {base}"));
            let over = self.text.value(format!("add i64 {first}, {WINDOW}"));
            let over = self.text.value(format!("sub i64 {over}, {end}"));
            let over = self.text.intrinsic("smax", Form::One, "i64", &[&over, "0"]);
            let over = self.text.value(format!("add i64 {over}, 3"));
            let over = self.text.value(format!("and i64 {over}, -4"));
            let start = self.text.value(format!("sub i64 {first}, {over}"));
            let none = self.text.value(format!("icmp slt i64 {start}, 0"));
            short = self.or(short, none);
            // Where distances are in words, the number that they are from is that of a word, if any lane runs.
            let narrow = self.quotient(&start, scale);
            let narrow = self.text.resize(Form::One, 64, &narrow, bits, false);
            let starts = self.splat(&format!("i{bits}"), &narrow);
            let behind = self.text.binary("sub", &wide, distance, &starts);
            far.push(self.text.value(format!(
                "icmp uge {wide} {behind}, {}",
                form.constant(bits, WINDOW / scale)
            )));
            let behind = self.text.resize(form, bits, &behind, 32, false);
            words.push(match scale {
                4 => behind,
                _ => self.text.binary("lshr", &form.int(32), &behind, &form.constant(32, 2)),
            });
            at.push(self.text.value(format!("add i64 {base}, {start}")));
        }
        if let Some(mask) = self.mask.clone() {
            far = self.each(&far, &mask, "and");
        }
        let any = self.any(&far);
        let any = self.or(short, any).unwrap_or_default();
        (Place::Near { at, words }, any)
    }

    /// Loads words of windows.
    pub(super) fn load_near(&mut self, at: &[String], words: &[String]) -> Vec<String> {
        let ty = self.form().int(32);
        let of_two = |this: &mut Self, a: &str, b: &str, by: &str| {
            this.text.value(format!(
                "call {ty} @llvm.x86.avx512.vpermi2var.d.512({ty} {a}, {ty} {by}, {ty} {b})"
            ))
        };
        at.iter()
            .zip(words)
            .map(|(at, words)| {
                let vectors = [0, 64, 128, 192].map(|offset| {
                    let pointer = self.pointer(at, offset);
                    self.text.value(format!("load {ty}, ptr {pointer}, align 4"))
                });
                let low = of_two(self, &vectors[0], &vectors[1], words);
                let high = of_two(self, &vectors[2], &vectors[3], words);
                let upper = self
                    .text
                    .value(format!("icmp ugt {ty} {words}, {}", self.form().constant(32, 31)));
                self.text.select(self.form(), &ty, &upper, &high, &low)
            })
            .collect()
    }

    /// Butterflies for a store of single words: where they begin, their places as bits, and whether any lane, of those that do not
    /// run as well, is in none. Vectors have sixteen lanes. Distances are in bytes or in words, as the scale says. In the block's own memory
    /// all lanes have to be where it is, of so many bytes: what lies between is put back.
    pub(super) fn butterflies(
        &mut self,
        (base, distances, bits, scale): (&str, &[String], u32, u64),
        firsts: &[String],
        own: Option<&String>,
    ) -> (Place, String) {
        let form = self.form();
        let (wide, narrow, one) = (form.int(bits), form.int(32), form.int(1));
        let (mut at, mut places) = (Vec::new(), Vec::new());
        let mut other = Vec::new();
        let lanes = |by: u32| {
            let all: Vec<String> = (0..16).map(|lane| format!("i32 {}", by * lane)).collect();
            format!("<{}>", all.join(", "))
        };
        for (distance, first) in distances.iter().zip(firsts) {
            let starts = self.splat(&format!("i{bits}"), first);
            let behind = self.text.binary("sub", &wide, distance, &starts);
            let far = self.text.value(format!(
                "icmp uge {wide} {behind}, {}",
                form.constant(bits, WINDOW / 2 / scale)
            ));
            let behind = self.text.resize(form, bits, &behind, 32, false);
            // The second group's first word is the first one that is as far away as lanes with a gap behind each would have
            // it; its lane's number is the size of a group.
            let twice = self
                .text
                .value(format!("icmp eq {narrow} {behind}, {}", lanes(8 / scale as u32)));
            let twice = self.text.convert("bitcast", &one, &twice, "i16");
            let twice = self.text.value(format!("and i16 {twice}, -2"));
            let twice = self.text.value(format!("or i16 {twice}, -32768"));
            let size = self
                .text
                .value(format!("call i16 @llvm.cttz.i16(i16 {twice}, i1 true)"));
            let size = self.text.convert("zext", "i16", &size, "i32");
            let below = self.text.value(format!("sub i32 {size}, 1"));
            let below_all = self.splat("i32", &below);
            let inside = self.text.binary("and", &narrow, &below_all, &lanes(1));
            let inside = match scale {
                4 => inside,
                _ => self.text.binary("shl", &narrow, &inside, &form.constant(32, 2)),
            };
            let expected = self.text.binary("sub", &narrow, &lanes(8 / scale as u32), &inside);
            let aside = self.text.value(format!("icmp ne {narrow} {behind}, {expected}"));
            other.push(self.text.binary("or", &one, &far, &aside));
            // Places of groups: as many bits, with as many left out, from the lowest on: 2^32 - 1 by 2^size + 1.
            let power = self.text.value(format!("shl i32 1, {size}"));
            let by = self.text.value(format!("add i32 {power}, 1"));
            places.push(self.text.value(format!("udiv i32 -1, {by}")));
            let first = self.text.resize(Form::One, bits, first, 64, true);
            let first = self.text.binary("mul", "i64", &first, &scale.to_string());
            at.push(self.text.value(format!("add i64 {base}, {first}")));
        }
        let mut any = self.any(&other);
        if let Some(end) = own
            && self.mask.is_some()
        {
            for at in &at {
                let distance = self.text.value(format!("sub i64 {at}, {base}"));
                let outside = self.text.value(format!("icmp uge i64 {distance}, {end}"));
                any = self.text.binary("or", "i1", &any, &outside);
            }
        }
        (Place::Butterflies { at, places }, any)
    }

    /// Stores words to butterflies.
    pub(super) fn store_butterflies(&mut self, at: &[String], places: &[String], values: &[String], own: bool) {
        let ty = self.form().int(32);
        let one = self.form().int(1);
        for (part, ((at, places), value)) in at.iter().zip(places).zip(values).enumerate() {
            let running = match self.mask.clone() {
                None => places.clone(),
                Some(mask) => {
                    let mask = self.word_of(&mask[part]);
                    let mask = self.text.convert("zext", "i16", &mask, "i32");
                    self.text
                        .value(format!("call i32 @llvm.x86.bmi.pdep.32(i32 {mask}, i32 {places})"))
                }
            };
            for half in 0..2u64 {
                // Each half has eight lanes' words.
                let value = match half {
                    0 => value.clone(),
                    _ => self.text.value(format!(
                        "shufflevector {ty} {value}, {ty} poison, <16 x i32> <{}, {}>",
                        (8..16).map(|lane| format!("i32 {lane}")).collect::<Vec<_>>().join(", "),
                        ["i32 poison"; 8].join(", ")
                    )),
                };
                let mut bits_of = |from: &str| {
                    let from = self.text.value(format!("lshr i32 {from}, {}", 16 * half));
                    let from = self.text.convert("trunc", "i32", &from, "i16");
                    self.text.convert("bitcast", "i16", &from, &one)
                };
                let (all, these) = (bits_of(places), bits_of(&running));
                let spread = self.text.value(format!(
                    "call {ty} @llvm.x86.avx512.mask.expand.v16i32({ty} {value}, {ty} zeroinitializer, {one} {all})"
                ));
                let pointer = self.pointer(at, 64 * half);
                self.store_masked((&spread, &pointer), 4, &these, own);
            }
        }
    }
}
