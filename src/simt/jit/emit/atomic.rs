//! Atomics on the block's own shared memory, which no other thread of the process touches: a lane after the other reads, changes
//! and writes. Others are the interpreter's.

use std::mem::offset_of;

use crate::isa::lanes::Width;
use crate::program::{Address, AtomicOp, AtomicType, Op, Reg, Space};

use super::super::Pc;
use super::super::compute::bits_of;
use super::super::context::Context;
use super::super::plan::Kind;
use super::super::text::Form;
use super::Emit;
use super::access::Place;

/// Where the scratch memory has pointers, operands and old values of a warp's lanes.
const POINTERS: usize = 0;
const OPERANDS: [usize; 2] = [256, 512];
const OLD: usize = 768;

impl Emit<'_> {
    /// An atomic; `false`: not of a kind that is known here.
    pub(super) fn atomic(&mut self, op: &Op, pc: Pc) -> bool {
        let Op::Atomic {
            op: what,
            ty,
            address,
            dst,
            b,
            c,
            ..
        } = op
        else {
            return false;
        };
        let (Some(bits), [b], Space::Shared) = (bits_here(*what, *ty), &b[..], address.space) else {
            return false;
        };
        let dst = match dst.as_deref() {
            None => None,
            Some([dst]) if matches!(self.kind(dst.number), Kind::Vector) => Some(*dst),
            Some(_) => return false,
        };
        let fits = |reg: Reg| bits_of(reg.width) == Some(bits);
        if !fits(*b) || !c.is_none_or(fits) || !dst.is_none_or(fits) {
            return false;
        }
        let operands: Vec<Reg> = [Some(*b), *c].into_iter().flatten().collect();
        let Some((at, bad)) = self.shared_lanes(address, u64::from(bits) / 8) else {
            return false;
        };
        let (slow, fast, done) = (self.text.name("slow"), self.text.name("fast"), self.text.name("done"));
        self.rarely(&bad, &slow, &fast);
        self.text.label(&slow);
        self.step(op, pc, None);
        self.jump(&done);
        self.text.label(&fast);
        let lanes = self.lanes as usize;
        for (part, pointers) in at.iter().enumerate() {
            let to = self.place("%scratch", POINTERS + part * lanes * 8);
            self.text
                .line(format!("store <{lanes} x ptr> {pointers}, ptr {to}, align 32"));
        }
        // What is the same for all lanes need not be read again for each.
        let same: Vec<Option<String>> = operands.iter().map(|&reg| self.same_for_all(reg)).collect();
        let width = if bits == 32 { Width::B32 } else { Width::B64 };
        for (number, &reg) in operands.iter().enumerate() {
            if same[number].is_none() {
                let values = self.lanes_of(reg, false);
                self.store_lanes("%scratch", OPERANDS[number], width, &values);
            }
        }
        let mask = self.mask_bits();
        self.each_lane(&mask, |this, lane| {
            let number = this.text.value(format!("zext i32 {lane} to i64"));
            let pointers = this.place("%scratch", POINTERS);
            let at = this
                .text
                .value(format!("getelementptr ptr, ptr {pointers}, i64 {number}"));
            let at = this.text.value(format!("load ptr, ptr {at}"));
            let values: Vec<String> = same
                .iter()
                .zip(OPERANDS)
                .map(|(same, start)| match same {
                    Some(value) => value.clone(),
                    None => {
                        let values = this.place("%scratch", start);
                        let from = this
                            .text
                            .value(format!("getelementptr i{bits}, ptr {values}, i64 {number}"));
                        this.text.value(format!("load i{bits}, ptr {from}"))
                    }
                })
                .collect();
            let old = this.text.value(format!("load i{bits}, ptr {at}"));
            let new = this.changed((*what, *ty), bits, &old, &values);
            this.text.line(format!("store i{bits} {new}, ptr {at}"));
            if dst.is_some() {
                let olds = this.place("%scratch", OLD);
                let to = this
                    .text
                    .value(format!("getelementptr i{bits}, ptr {olds}, i64 {number}"));
                this.text.line(format!("store i{bits} {old}, ptr {to}"));
            }
        });
        if let Some(dst) = dst {
            let looked = self.place("%n", offset_of!(Context, looked));
            self.text.line(format!("store i64 1, ptr {looked}"));
            let values = self.load_lanes("%scratch", OLD, width);
            self.write_lanes(dst, &values);
        }
        self.jump(&done);
        self.text.label(&done);
        true
    }

    /// Pointers into shared memory, a part at a time, and whether any of them is not well.
    fn shared_lanes(&mut self, address: &Address, bytes: u64) -> Option<(Vec<String>, String)> {
        let kind = match address.register {
            None => Kind::SAME,
            Some(reg) => self.kind(reg.number),
        };
        if matches!(kind, Kind::Unknown | Kind::Window) {
            return None;
        }
        let located = self.locate_lanes(address, bytes)?;
        match located.place {
            Place::Lanes { base, distances, bits } => Some((self.pointers(&base, &distances, bits), located.bad)),
            Place::Lines { .. } | Place::Rows { .. } => None,
        }
    }

    /// The value of a register that is the same in all lanes.
    fn same_for_all(&mut self, reg: Reg) -> Option<String> {
        match self.kind(reg.number) {
            Kind::Line {
                step: 0, parts: false, ..
            } => Some(self.line_of(reg, false).0.swap_remove(0)),
            _ => None,
        }
    }

    /// Does something for each lane of a mask, the first one first.
    fn each_lane(&mut self, mask: &str, mut body: impl FnMut(&mut Self, &str)) {
        let [turn, out] = ["turn", "out"].map(|what| self.text.name(what));
        let rest = format!("%rest.{turn}");
        self.head.push_str(&format!("  {rest} = alloca i32\n"));
        self.text.line(format!("store i32 {mask}, ptr {rest}"));
        // Somebody is there: else nobody would be here.
        self.jump(&turn);
        self.text.label(&turn);
        let word = self.text.value(format!("load i32, ptr {rest}"));
        let lane = self.text.value(format!("call i32 @llvm.cttz.i32(i32 {word}, i1 true)"));
        body(self, &lane);
        let less = self.text.value(format!("add i32 {word}, -1"));
        let word = self.text.value(format!("and i32 {word}, {less}"));
        self.text.line(format!("store i32 {word}, ptr {rest}"));
        let over = self.text.value(format!("icmp eq i32 {word}, 0"));
        self.branch(&over, &out, &turn);
        self.text.label(&out);
    }

    /// What an atomic makes of the old value.
    fn changed(&mut self, (op, ty): (AtomicOp, AtomicType), bits: u32, old: &str, values: &[String]) -> String {
        let int = format!("i{bits}");
        let b = &values[0];
        let signed = matches!(ty, AtomicType::S32 | AtomicType::S64);
        let mut choose = |by: &str, yes: &str, no: &str| {
            let by = self.text.value(format!("icmp {by}"));
            self.text.value(format!("select i1 {by}, {int} {yes}, {int} {no}"))
        };
        match op {
            AtomicOp::Add if ty == AtomicType::F32 => {
                let [x, y] = [old, b].map(|bits| self.text.value(format!("bitcast i32 {bits} to float")));
                let sum = self.text.value(format!("fadd float {x}, {y}"));
                let sum = self.text.value(format!("bitcast float {sum} to i32"));
                self.canonical(Form::One, &sum)
            }
            AtomicOp::Add => self.text.binary("add", &int, old, b),
            AtomicOp::And => self.text.binary("and", &int, old, b),
            AtomicOp::Or => self.text.binary("or", &int, old, b),
            AtomicOp::Xor => self.text.binary("xor", &int, old, b),
            AtomicOp::Exch => b.clone(),
            AtomicOp::Min => choose(
                &format!("{} {int} {b}, {old}", if signed { "slt" } else { "ult" }),
                b,
                old,
            ),
            AtomicOp::Max => choose(
                &format!("{} {int} {b}, {old}", if signed { "sgt" } else { "ugt" }),
                b,
                old,
            ),
            AtomicOp::Cas => choose(&format!("eq {int} {old}, {b}"), &values[1], old),
            AtomicOp::Inc => {
                let more = self.text.binary("add", &int, old, "1");
                let over = self.text.value(format!("icmp uge {int} {old}, {b}"));
                self.text.value(format!("select i1 {over}, {int} 0, {int} {more}"))
            }
            AtomicOp::Dec => {
                let less = self.text.binary("sub", &int, old, "1");
                let none = self.text.value(format!("icmp eq {int} {old}, 0"));
                let over = self.text.value(format!("icmp ugt {int} {old}, {b}"));
                let begins = self.text.binary("or", "i1", &none, &over);
                self.text.value(format!("select i1 {begins}, {int} {b}, {int} {less}"))
            }
        }
    }
}

/// The width of an atomic that is known here.
fn bits_here(op: AtomicOp, ty: AtomicType) -> Option<u32> {
    match ty {
        AtomicType::U32 | AtomicType::S32 | AtomicType::B32 => Some(32),
        AtomicType::U64 | AtomicType::S64 | AtomicType::B64 => Some(64),
        AtomicType::F32 if op == AtomicOp::Add => Some(32),
        _ => None,
    }
}
