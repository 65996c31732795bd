//! Products of matrices, which a function is called for, and small matrices whose rows lie where lanes say (`ldmatrix` of elements of 16
//! bits): what whole warps load is vectors, a row each, side by side or transposed. Tiles are [`super::tile`]'s. What else a warp does
//! with matrices the interpreter is asked for.

use std::collections::HashMap;
use std::mem::offset_of;

use crate::isa::joint::Joint;
use crate::isa::joint::fragment;
use crate::isa::joint::matrix::{Multiply, Op as Matrix, Packing, Rows};
use crate::isa::lanes::Width;
use crate::isa::{Level, Rounding};
use crate::program::{JointOp, Op, Reg};

use super::super::Pc;
use super::super::context::{Context, step};
use super::place::Place;
use super::{Emit, LANES, SCRATCH};

/// Rows of a matrix, and bytes of each.
const ROWS: u32 = 8;
const BYTES: u64 = 16;

impl Emit<'_> {
    /// An operation of a warp's matrices; `false`: the interpreter's.
    pub(super) fn matrix(&mut self, joint: &JointOp, op: &Op, pc: Pc) -> bool {
        let rows = match joint.what {
            Joint::Matrix(Matrix::LoadRows(rows)) => rows,
            Joint::Matrix(Matrix::Multiply(multiply)) if multiply.container == 64 => {
                return self.product_of_doubles((joint, multiply), op, pc);
            }
            Joint::Matrix(Matrix::Multiply(multiply)) => return self.product(joint, multiply),
            Joint::Matrix(Matrix::LoadTile(tile)) => return self.load_tile(tile, joint, op, pc),
            Joint::Matrix(Matrix::StoreTile(tile)) => return self.store_tile(tile, joint, op, pc),
            Joint::Matrix(Matrix::StoreRows(_) | Matrix::Transpose)
            | Joint::Mbarrier(_)
            | Joint::Bulk(_)
            | Joint::Tensor(_)
            | Joint::Cluster(_)
            | Joint::Warpgroup(_)
            | Joint::Tcgen05(_)
            | Joint::Multimem(_)
            | Joint::Fabric(_) => return false,
        };
        let plain = rows.packing == Packing::Halves && joint.objects.is_empty() && self.mask.is_none();
        let [address] = &joint.addresses[..] else { return false };
        if !plain || joint.dst.iter().flatten().any(|reg| reg.width != Width::B32) {
            return false;
        }
        // Others than the first lanes have no rows.
        let named = u32::MAX >> (LANES - ROWS * u32::from(rows.count));
        self.mask = (named != u32::MAX).then(|| self.spread(&(named as i32).to_string()));
        let multiple = self.multiple(address, (BYTES, address.offset));
        let located = self.locate_each(address, (BYTES, multiple));
        self.mask = None;
        let Some(located) = located else { return false };
        let Place::Lanes(spread) = &located.place else {
            unreachable!("each lane was asked for");
        };
        let done = self.slowly((&located.bad, located.site), op, pc);
        let pointers = self.pointers(spread);
        let matrices: Vec<String> = (0..u32::from(rows.count))
            .map(|matrix| self.load_matrix_rows(&pointers, matrix * ROWS))
            .collect();
        for (matrix, &reg) in matrices.iter().zip(&joint.dst) {
            if let Some(reg) = reg {
                self.write_matrix(rows, matrix, reg);
            }
        }
        self.jump(&done);
        self.text.label(&done);
        true
    }

    /// The interpreter carries out an operation where this bit says so, and here is the other way; where both go on.
    pub(super) fn slowly(&mut self, (bad, site): (&str, Option<usize>), op: &Op, pc: Pc) -> String {
        let [slow, fast, done] = ["slow", "fast", "done"].map(|what| self.text.name(what));
        self.rarely(bad, &slow, &fast);
        self.text.label(&slow);
        self.step(op, pc, site);
        self.jump(&done);
        self.text.label(&fast);
        done
    }

    /// A product of what lanes have in registers: those lie side by side for the function that multiplies.
    fn product(&mut self, joint: &JointOp, multiply: Multiply) -> bool {
        const BYTES: usize = 4 * LANES as usize;
        let (sources, results) = (joint.src.len(), joint.dst.len());
        // The function counts on as many registers as the product has, side by side.
        let is_whole = sources == multiply.elements() && results == multiply.registers(multiply.d);
        let fits = is_whole && (sources + results) * BYTES <= SCRATCH;
        if !multiply.is_plain() || self.mask.is_some() || !fits {
            return false;
        }
        for (number, &reg) in joint.src.iter().enumerate() {
            let values = self.lanes_of(reg, false);
            self.store_lanes("%scratch", number * BYTES, Width::B32, &values);
        }
        let number = self.products.len();
        self.products.push(multiply);
        let helper = self.field(offset_of!(Context, product), "ptr", true);
        let answer = self
            .text
            .value(format!("call i32 {helper}(ptr %n, i32 {number}, ptr %scratch)"));
        let done = self.text.value(format!("icmp eq i32 {answer}, {}", step::DONE));
        let go = self.text.name("go");
        self.branch(&done, &go, "fault");
        self.text.label(&go);
        for (number, reg) in joint.dst.iter().enumerate() {
            if let Some(reg) = *reg {
                let values = self.load_lanes("%scratch", (sources + number) * BYTES, Width::B32);
                self.write_lanes(reg, &values);
            }
        }
        true
    }

    /// A product of `f64`: each element a chain of `fma`, k ascending ([`crate::isa::mma`]). If any element is NaN, all are the interpreter's.
    fn product_of_doubles(&mut self, (joint, multiply): (&JointOp, Multiply), op: &Op, pc: Pc) -> bool {
        let (m, _, k) = multiply.shape.sizes();
        let (of_a, of_b) = (multiply.a_registers(), multiply.b_registers());
        let is_whole = joint.src.len() == multiply.elements() && joint.dst.len() == multiply.registers(multiply.d);
        let rounds = multiply.rounding == Rounding::Rn && self.level != Level::Baseline;
        if !is_whole || !rounds || self.mask.is_some() || multiply.sparse || multiply.scaling.is_some() {
            return false;
        }
        let mut sources: Vec<Vec<String>> = joint.src.iter().map(|&reg| self.lanes_of(reg, false)).collect();
        let sums = sources.split_off(of_a + of_b);
        let whole: Vec<String> = sources
            .into_iter()
            .map(|parts| self.concatenated(parts, self.lanes as usize, 64).0)
            .collect();
        let (a, b) = whole.split_at(of_a);
        // Which register has a row of A, or a column of B, and a place along k, and in which lane.
        let holder = |rows: usize, registers: usize, line: usize, place: usize| {
            (0..registers).find_map(|register| {
                let (first, word) = fragment::multiplicand(rows, k, register);
                let (group, member) = (line.checked_sub(first)?, place.checked_sub(word)?);
                (group < 8 && member < fragment::GROUP).then_some((register, fragment::GROUP * group + member))
            })
        };
        let form = self.form();
        let (floats, lanes) = (form.float(64), self.lanes as usize);
        let mut known: HashMap<(bool, usize, Vec<usize>), String> = HashMap::new();
        let mut products = Vec::new();
        for (element, sums) in sums.iter().enumerate() {
            let first = fragment::accumulator(m, element);
            let mut parts = Vec::new();
            for (part, sum) in sums.iter().enumerate() {
                let mut sum = self.text.float(form, 64, sum);
                for place in 0..k {
                    let mut factor = |is_b: bool, registers: &[String], rows: usize| {
                        let each = (part * lanes..(part + 1) * lanes).map(|lane| {
                            let (group, member) = (lane / fragment::GROUP, lane % fragment::GROUP);
                            let line = if is_b {
                                first.column + 2 * member
                            } else {
                                first.row + group
                            };
                            holder(rows, registers.len(), line, place)
                        });
                        let each: Vec<(usize, usize)> = each.collect::<Option<_>>()?;
                        let register = each.first()?.0;
                        let from: Vec<usize> = each.iter().map(|&(_, lane)| lane).collect();
                        // A register has whole groups of rows, and as many places as a group has lanes.
                        debug_assert!(each.iter().all(|&(other, _)| other == register));
                        let key = (is_b, register, from);
                        if let Some(known) = known.get(&key) {
                            return Some(known.clone());
                        }
                        let words = self.chosen((&registers[register], LANES as usize, 64), &key.2);
                        let factor = self.text.float(form, 64, &words);
                        known.insert(key, factor.clone());
                        Some(factor)
                    };
                    let factors = [factor(false, a, m), factor(true, b, 8)];
                    let [Some(row), Some(column)] = factors else {
                        unreachable!("registers have all of A and B")
                    };
                    sum = self.text.value(format!(
                        "call {floats} @llvm.fma.v{lanes}f64({floats} {row}, {floats} {column}, {floats} {sum})"
                    ));
                }
                parts.push(self.text.bits(form, 64, &sum));
            }
            products.push(parts);
        }
        let all: Vec<String> = products.iter().flatten().cloned().collect();
        let bad = self.any_nan(&all);
        let done = self.slowly((&bad, None), op, pc);
        for (&reg, parts) in joint.dst.iter().zip(&products) {
            if let Some(reg) = reg {
                self.write_lanes(reg, parts);
            }
        }
        self.jump(&done);
        self.text.label(&done);
        true
    }

    /// The words of eight rows, one after the other, from where these lanes point.
    fn load_matrix_rows(&mut self, pointers: &[String], first: u32) -> String {
        let rows: Vec<String> = (first..first + ROWS)
            .map(|lane| {
                let (part, lane) = (lane / self.lanes, lane % self.lanes);
                let pointer = self.text.value(format!(
                    "extractelement <{} x ptr> {}, i32 {lane}",
                    self.lanes, pointers[part as usize]
                ));
                self.text
                    .value(format!("load <4 x i32>, ptr {pointer}, align {}", BYTES))
            })
            .collect();
        self.concatenated(rows, 4, 32).0
    }

    /// Four lanes have a row each, two elements in each; or with `.trans` a column.
    fn write_matrix(&mut self, rows: Rows, matrix: &str, reg: Reg) {
        let halves = self
            .text
            .value(format!("bitcast <{LANES} x i32> {matrix} to <64 x i16>"));
        let element = |lane: u32, half: u32| match rows.transposed {
            false => 2 * lane + half,
            true => (2 * (lane % 4) + half) * ROWS + lane / 4,
        };
        let parts = (0..self.parts as u32).map(|part| {
            let lanes = part * self.lanes..(part + 1) * self.lanes;
            let picks: Vec<String> = lanes
                .flat_map(|lane| [0, 1].map(|half| format!("i32 {}", element(lane, half))))
                .collect();
            let picked = self.text.value(format!(
                "shufflevector <64 x i16> {halves}, <64 x i16> poison, <{} x i32> <{}>",
                2 * self.lanes,
                picks.join(", ")
            ));
            self.text.value(format!(
                "bitcast <{} x i16> {picked} to <{} x i32>",
                2 * self.lanes,
                self.lanes
            ))
        });
        let parts: Vec<String> = parts.collect();
        self.write_lanes(reg, &parts);
    }
}
