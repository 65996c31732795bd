//! Shuffles: permutations of a register's parts, whoever of the warp runs. Whether a lane finds what it asks for follows from its
//! number, `b` and `c` alone (`isa::shuffle`), so that constants of the program are a constant permutation.

use crate::isa::{Level, shuffle};
use crate::program::{Op, Reg, ShuffleMode};

use super::super::Pc;
use super::super::text::Form;
use super::{Called, Emit, LANES};

impl Emit<'_> {
    /// A shuffle; `false`: for the interpreter.
    pub(super) fn shuffle(&mut self, op: &Op, pc: Pc) -> bool {
        let Op::Shuffle { members, .. } = op else { return false };
        let Some(met) = self.members(*members) else {
            return false;
        };
        // Who takes part makes no difference to what moves.
        self.where_met(met, (op, pc), |this, _| this.shuffled(op));
        true
    }

    fn shuffled(&mut self, op: &Op) {
        let Op::Shuffle {
            mode,
            dst,
            dst_pred,
            a,
            b,
            c,
            ..
        } = op
        else {
            return;
        };
        let constant = |reg: &Reg| self.input.body.constant(reg.number).map(|bits| bits as u32);
        let (constant_b, constant_c) = (constant(b), constant(c));
        if self.kind(dst.number).is_line() {
            // From one lane to all, which is always there: else it would be no line.
            let value = self.lane_of(*a, *b, constant_b);
            self.write_line(*dst, &[value]);
            if let Some(predicate) = dst_pred {
                self.write_same(*predicate, &["true".to_owned()]);
            }
            return;
        }
        match (constant_b, constant_c) {
            (Some(b), Some(c)) => self.shuffle_by_constants(*mode, (*dst, *dst_pred), *a, b, c),
            _ if self.level != Level::Baseline => {
                self.shuffle_by_indices(*mode, (*dst, *dst_pred), [*a, *b, *c], constant_c);
            }
            _ => {
                let dst: Vec<Reg> = [Some(*dst), *dst_pred].into_iter().flatten().collect();
                let src = [*a, *b, *c];
                let sources: Vec<Vec<String>> = src.iter().map(|&reg| self.lanes_of(reg, false)).collect();
                let results = self.called(Called::Shuffle(*mode, dst_pred.is_some()), &dst, &src, &sources);
                self.write_lanes(dst[0], &results[0]);
                if let [_, predicate] = dst[..] {
                    self.write_found(predicate, &results[1]);
                }
            }
        }
    }

    /// Whether lanes have found what they asked for. Where that is kept as one bit, all have: the plan says so.
    fn write_found(&mut self, predicate: Reg, values: &[String]) {
        match self.kind(predicate.number).is_line() {
            true => self.write_same(predicate, &["true".to_owned()]),
            false => self.write_lanes(predicate, values),
        }
    }

    /// What a register holds in the lane whose number another one has.
    fn lane_of(&mut self, a: Reg, b: Reg, constant: Option<u32>) -> String {
        if self.kind(a.number).is_same() {
            return self.line_of(a, false).0.swap_remove(0);
        }
        let values = self.lanes_of(a, false);
        if let Some(lane) = constant {
            let lane = lane % LANES;
            let (part, lane) = (lane / self.lanes, lane % self.lanes);
            let ty = self.form().int(32);
            return self
                .text
                .value(format!("extractelement {ty} {}, i64 {lane}", values[part as usize]));
        }
        let lane = self.line_of(b, false).0.swap_remove(0);
        self.lane_in_memory(32, &values, &lane)
    }

    fn shuffle_by_constants(&mut self, mode: ShuffleMode, (dst, dst_pred): (Reg, Option<Reg>), a: Reg, b: u32, c: u32) {
        let found: Vec<Option<u8>> = (0..LANES).map(|lane| shuffle::reads(mode, lane, b, c)).collect();
        if let Some(predicate) = dst_pred {
            let values: Vec<String> = found
                .chunks(self.lanes as usize)
                .map(|found| {
                    let bits: Vec<String> = found
                        .iter()
                        .map(|found| format!("i1 {}", Form::One.constant(1, found.is_some().into())))
                        .collect();
                    format!("<{}>", bits.join(", "))
                })
                .collect();
            self.write_found(predicate, &values);
        }
        if self.kind(a.number).is_same() {
            let (values, _) = self.line_of(a, false);
            self.write_same(dst, &values);
            return;
        }
        let parts = self.lanes_of(a, false);
        let whole = self.concatenated(parts, self.lanes as usize, 32).0;
        let from: Vec<u32> = (0..LANES)
            .zip(&found)
            .map(|(lane, found)| found.map_or(lane, u32::from))
            .collect();
        let values: Vec<String> = from
            .chunks(self.lanes as usize)
            .map(|from| {
                let from: Vec<String> = from.iter().map(|lane| format!("i32 {lane}")).collect();
                self.text.value(format!(
                    "shufflevector <{LANES} x i32> {whole}, <{LANES} x i32> poison, <{} x i32> <{}>",
                    from.len(),
                    from.join(", ")
                ))
            })
            .collect();
        self.write_lanes(dst, &values);
    }

    /// Where `b` or `c` is found out as the code runs: the CPU takes a lane's number from a vector.
    fn shuffle_by_indices(
        &mut self,
        mode: ShuffleMode,
        (dst, dst_pred): (Reg, Option<Reg>),
        [a, b, c]: [Reg; 3],
        constant: Option<u32>,
    ) {
        let form = self.form();
        let ty = form.int(32);
        let low = form.constant(32, u64::from(LANES - 1));
        let bounds = constant.ok_or_else(|| self.lanes_of(c, false));
        let by = self.lanes_of(b, false);
        let values = self.lanes_of(a, false);
        let (mut results, mut found) = (Vec::new(), Vec::new());
        for (part, by) in by.iter().enumerate() {
            let lanes = self.lane_numbers(part);
            // The formula of `isa::shuffle`: the last lane that may be asked for (the first one, for `up`), and, for `idx`, the first
            // lane of the segment and what is not its bits.
            let (most, least, outside) = match &bounds {
                Err(bounds) => {
                    let text = &mut self.text;
                    let segment = text.binary("lshr", &ty, &bounds[part], &form.constant(32, 8));
                    let segment = text.binary("and", &ty, &segment, &low);
                    let outside = text.binary("xor", &ty, &segment, &low);
                    let least = text.binary("and", &ty, &lanes, &segment);
                    let clamp = text.binary("and", &ty, &bounds[part], &outside);
                    (text.binary("or", &ty, &least, &clamp), least, outside)
                }
                Ok(c) => {
                    let (clamp, segment) = (c & (LANES - 1), c >> 8 & (LANES - 1));
                    let each = |f: &dyn Fn(u32) -> u32| {
                        let first = part as u32 * self.lanes;
                        let numbers: Vec<String> = (first..first + self.lanes)
                            .map(|lane| format!("i32 {}", f(lane)))
                            .collect();
                        format!("<{}>", numbers.join(", "))
                    };
                    (
                        each(&|lane| lane & segment | clamp & !segment),
                        each(&|lane| lane & segment),
                        form.constant(32, u64::from(!segment)),
                    )
                }
            };
            let by = self.text.binary("and", &ty, by, &low);
            let (from, is_found) = match mode {
                ShuffleMode::Up => (self.text.binary("sub", &ty, &lanes, &by), "sge"),
                ShuffleMode::Down => (self.text.binary("add", &ty, &lanes, &by), "ule"),
                ShuffleMode::Bfly => (self.text.binary("xor", &ty, &lanes, &by), "ule"),
                ShuffleMode::Idx => {
                    let by = self.text.binary("and", &ty, &by, &outside);
                    (self.text.binary("or", &ty, &by, &least), "ule")
                }
            };
            let is_found = self.text.value(format!("icmp {is_found} {ty} {from}, {most}"));
            let from = self.text.select(form, &ty, &is_found, &from, &lanes);
            results.push(self.permuted(&values, &from));
            found.push(is_found);
        }
        self.write_lanes(dst, &results);
        if let Some(predicate) = dst_pred {
            self.write_found(predicate, &found);
        }
    }

    /// What the lanes whose numbers a vector's words have in their five lowest bits hold, at levels above the baseline.
    fn permuted(&mut self, values: &[String], from: &str) -> String {
        let form = self.form();
        let ty = form.int(32);
        let text = &mut self.text;
        if let [low, high] = values {
            return text.value(format!(
                "call {ty} @llvm.x86.avx512.vpermi2var.d.512({ty} {low}, {ty} {from}, {ty} {high})"
            ));
        }
        let mut chosen: Vec<String> = values
            .iter()
            .map(|part| text.value(format!("call {ty} @llvm.x86.avx2.permd({ty} {part}, {ty} {from})")))
            .collect();
        // One of four parts, by the two bits above the three that count within one.
        for bit in [3, 4] {
            let sign = text.binary("shl", &ty, from, &form.constant(32, 31 - bit));
            let upper = text.value(format!("icmp slt {ty} {sign}, zeroinitializer"));
            chosen = chosen
                .chunks(2)
                .map(|pair| text.select(form, &ty, &upper, &pair[1], &pair[0]))
                .collect();
        }
        chosen.swap_remove(0)
    }
}
