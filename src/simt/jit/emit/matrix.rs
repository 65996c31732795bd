//! Small matrices whose rows lie where lanes say (`ldmatrix` of elements of 16 bits): what whole warps load is vectors, a row each,
//! side by side or transposed. What else a warp does with matrices the interpreter is asked for.

use crate::isa::joint::Joint;
use crate::isa::joint::matrix::{Op as Matrix, Packing, Rows};
use crate::isa::lanes::Width;
use crate::program::{JointOp, Op, Reg};

use super::super::Pc;
use super::place::Place;
use super::{Emit, LANES};

/// Rows of a matrix, and bytes of each.
const ROWS: u32 = 8;
const BYTES: u64 = 16;

impl Emit<'_> {
    /// An operation of a warp's matrices; `false`: the interpreter's.
    pub(super) fn matrix(&mut self, joint: &JointOp, op: &Op, pc: Pc) -> bool {
        let Joint::Matrix(Matrix::LoadRows(rows)) = joint.what else {
            return false;
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
        let [slow, fast, done] = ["slow", "fast", "done"].map(|what| self.text.name(what));
        self.rarely(&located.bad, &slow, &fast);
        self.text.label(&slow);
        self.step(op, pc, located.site);
        self.jump(&done);
        self.text.label(&fast);
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

    /// The words of eight rows, one after the other, from where these lanes point.
    fn load_matrix_rows(&mut self, pointers: &[String], first: u32) -> String {
        let mut rows: Vec<String> = (first..first + ROWS)
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
        let mut words = 4;
        while rows.len() > 1 {
            let order: Vec<String> = (0..2 * words).map(|word| format!("i32 {word}")).collect();
            let order = order.join(", ");
            let pairs = rows.chunks(2).map(|pair| {
                self.text.value(format!(
                    "shufflevector <{words} x i32> {}, <{words} x i32> {}, <{} x i32> <{order}>",
                    pair[0],
                    pair[1],
                    2 * words
                ))
            });
            rows = pairs.collect();
            words *= 2;
        }
        rows.swap_remove(0)
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
