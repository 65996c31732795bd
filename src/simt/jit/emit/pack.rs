//! Registers of a warp that waits at a barrier of the block: those that it will want, side by side, lines as their numbers. The
//! windows of a block's warps do not fit into the CPU's first cache, and these do.

use std::mem::offset_of;

use crate::isa::lanes::Width;
use crate::program::{Reg, Register};

use super::super::compute::bits_of;
use super::super::context::{Context, together};
use super::super::plan::Kind;
use super::{Emit, Node};

/// Where a register lies, in bytes.
type Placed = (Register, usize);

impl Emit<'_> {
    /// The registers that a unit wants, lanes before lines, and how much room they take.
    fn layout(&mut self, unit: Node) -> Vec<Placed> {
        let live: Vec<Register> = self.plan.live[unit as usize].iter().collect();
        let (lanes, lines): (Vec<_>, Vec<_>) = live.into_iter().partition(|&register| !self.kind(register).is_line());
        let mut at = 0;
        let mut placed = Vec::new();
        for register in lanes.into_iter().chain(lines) {
            placed.push((register, at));
            let bytes = self.info(register).width;
            at += match (self.kind(register), bits_of(bytes)) {
                (Kind::Line { .. }, _) => 8 * self.bases_of(register),
                (_, Some(bits @ 2..)) => bits as usize * 4,
                // A word, and room for vectors to begin at multiples of their size.
                _ => 64,
            };
        }
        self.saved = self.saved.max(at.next_multiple_of(64));
        placed
    }

    /// All lanes of the warp wait at a barrier, and will go on at this unit.
    pub(super) fn pack(&mut self, barrier: Node, next: Node) {
        (self.unit, self.full, self.mask, self.guarded) = (barrier, true, None, false);
        self.text.label(&format!("B{barrier}"));
        let saved = self.field(offset_of!(Context, saved), "ptr", true);
        let none = self.text.value(format!("icmp eq ptr {saved}, null"));
        let stay = self.text.name("stay");
        self.leaves.insert(barrier);
        self.branch(&none, &format!("X{barrier}"), &stay);
        self.text.label(&stay);
        for (register, at) in self.layout(next) {
            let reg = self.info(register);
            match self.kind(register) {
                Kind::Line { .. } => {
                    let bits = line_bits(reg);
                    for (number, value) in self.line_of(reg, true).0.iter().enumerate() {
                        let to = self.place(&saved, at + 8 * number);
                        self.text.line(format!("store i{bits} {value}, ptr {to}"));
                    }
                }
                _ => {
                    let values = self.lanes_of(reg, true);
                    self.store_lanes(&saved, at, reg.width, &values);
                }
            }
        }
        let packed = self.place("%n", offset_of!(Context, packed));
        self.text.line(format!("store i64 1, ptr {packed}"));
        self.cut(barrier, "-1", false);
        self.jump("left");
    }

    /// The warp goes on at a unit, or its registers go to the window and it leaves.
    pub(super) fn unpack(&mut self, unit: Node, where_from: &str) {
        self.text.label(&format!("K{unit}"));
        let saved = self.field(offset_of!(Context, saved), "ptr", true);
        for (register, at) in self.layout(unit) {
            let reg = self.info(register);
            self.declare(register);
            match self.kind(register) {
                Kind::Line { .. } => {
                    let bits = line_bits(reg);
                    let values: Vec<String> = (0..self.bases_of(register))
                        .map(|number| {
                            let from = self.place(&saved, at + 8 * number);
                            self.text.value(format!("load i{bits}, ptr {from}"))
                        })
                        .collect();
                    self.write_line(reg, &values);
                }
                _ => {
                    let values = self.load_lanes(&saved, at, reg.width);
                    self.take_lanes(reg, &values);
                }
            }
        }
        let leaves = self
            .text
            .value(format!("icmp eq i64 {where_from}, {}", together::UNPACK));
        self.leaves.insert(unit);
        self.rarely(&leaves, &format!("X{unit}"), &format!("F{unit}"));
    }
}

/// A line of predicates is one bit.
fn line_bits(reg: Reg) -> u32 {
    match reg.width {
        Width::Pred => 1,
        width => bits_of(width).unwrap_or(32),
    }
}
