//! Atomics of 32 and 64 bits. The block's own shared memory is touched by no other thread of the process: plain loads and stores
//! do. On global memory they are atomics of the host, sequentially consistent, as in the interpreter.
//!
//! Lanes come one after the other, the first one first. Where all of them go to one address, the warp has its turn as one: what
//! its lanes make of the old value goes to memory in one step, and old values are what they would have found. Of half
//! floats and of 16 bytes the interpreter takes care.

use crate::isa::lanes::Width;
use crate::program::{Address, AtomicOp, AtomicType, Op, Reg, Space};

use super::super::Pc;
use super::super::compute::bits_of;
use super::super::plan::Kind;
use super::super::text::Form;
use super::place::{Located, Place, Spread};
use super::vote::Fold;
use super::{Emit, LANES};

/// Where the scratch memory has distances, operands and old values of a warp's lanes.
const DISTANCES: usize = 0;
const OPERANDS: [usize; 2] = [256, 512];
const OLD: usize = 768;

/// How many lanes a turn of the loop over them takes, where all are there.
const AT_ONCE: u32 = 4;

/// What is known of an atomic while its code is made.
struct Atomic {
    op: AtomicOp,
    ty: AtomicType,
    bits: u32,
    /// Other threads may be at the same memory.
    shared_with_others: bool,
    /// Global memory adds in its own way.
    in_memory: bool,
    dst: Option<Reg>,
    operands: Vec<Reg>,
    /// Those that are the same for all lanes.
    same: Vec<Option<String>>,
}

impl Emit<'_> {
    /// An atomic; `false`: not of a kind that is known here.
    pub(super) fn atomic(&mut self, op: &Op, pc: Pc) -> bool {
        let Op::Atomic {
            op: what,
            ty,
            in_memory,
            address,
            dst,
            b,
            c,
            ..
        } = op
        else {
            return false;
        };
        let (Some(bits), [b]) = (bits_here(*what, *ty), &b[..]) else {
            return false;
        };
        let shared_with_others = match address.space {
            Space::Shared => false,
            Space::Global | Space::Generic => true,
            Space::Const | Space::Param | Space::Local => return false,
        };
        // Compilers of other languages leave it to the assembler to see that nobody reads what was there.
        let dst = dst
            .as_deref()
            .filter(|dst| dst.iter().any(|reg| self.is_read(reg.number)));
        let dst = match dst {
            None => None,
            Some([dst]) if matches!(self.kind(dst.number), Kind::Vector) => Some(*dst),
            Some(_) => return false,
        };
        let fits = |reg: Reg| bits_of(reg.width) == Some(bits);
        if !fits(*b) || !c.is_none_or(fits) || !dst.is_none_or(fits) {
            return false;
        }
        let Some(located) = self.locate_atomic(address, u64::from(bits) / 8) else {
            return false;
        };
        let done = self.slowly((&located.bad, located.site), op, pc);
        let operands: Vec<Reg> = [Some(*b), *c].into_iter().flatten().collect();
        // What is the same for all lanes need not be read again for each.
        let same = operands.iter().map(|&reg| self.same_for_all(reg)).collect();
        let atomic = Atomic {
            op: *what,
            ty: *ty,
            bits,
            shared_with_others,
            in_memory: *in_memory && shared_with_others,
            dst,
            operands,
            same,
        };
        match located.place {
            Place::Lines { at, .. } => {
                let at = self.text.value(format!("inttoptr i64 {} to ptr", at[0]));
                match (atomic.fold(), dst) {
                    (Some(fold), None) => self.folded_to(&atomic, fold, &at),
                    _ => self.in_turn_at(&atomic, &at),
                }
            }
            Place::Lanes(spread) => self.each_at(&atomic, &spread),
            Place::Rows { .. } | Place::Near { .. } | Place::Butterflies { .. } => {
                unreachable!("only loads and stores look whether lanes follow each other")
            }
        }
        if let Some(dst) = dst {
            self.looks();
            let values = self.load_lanes("%scratch", OLD, atomic.width());
            self.write_lanes(dst, &values);
        }
        self.jump(&done);
        self.text.label(&done);
        true
    }

    /// One address for the warp, or pointers, a part at a time.
    fn locate_atomic(&mut self, address: &Address, bytes: u64) -> Option<Located> {
        let (kind, narrow) = match address.register {
            None => (Kind::SAME, false),
            Some(reg) => (self.kind(reg.number), reg.width == Width::B32),
        };
        if matches!(kind, Kind::Unknown | Kind::Window) || (narrow && address.space != Space::Shared) {
            return None;
        }
        match kind.is_same() {
            true => {
                let multiple = self.multiple(address, (bytes, address.offset));
                self.locate_line(address, (bytes, multiple), 0)
            }
            false => self.locate_lanes(address, bytes),
        }
    }

    /// All lanes change one place, in any order, and nobody wants to know what was there.
    fn folded_to(&mut self, atomic: &Atomic, fold: Fold, at: &str) {
        let bits = atomic.bits;
        let int = format!("i{bits}");
        let total = match (&atomic.same[0], fold) {
            (Some(value), Fold::And | Fold::Or | Fold::MinU | Fold::MaxU | Fold::MinS | Fold::MaxS) => value.clone(),
            (Some(value), Fold::Add | Fold::Xor) => {
                let lanes = self.mask_bits();
                let count = self.text.value(format!("call i32 @llvm.ctpop.i32(i32 {lanes})"));
                let count = self.text.resize(Form::One, 32, &count, bits, false);
                match fold {
                    Fold::Add => self.text.binary("mul", &int, value, &count),
                    // What comes twice is gone.
                    _ => {
                        let odd = self.text.binary("and", &int, &count, "1");
                        self.text.binary("mul", &int, value, &odd)
                    }
                }
            }
            (None, _) => {
                let mut values = self.lanes_of(atomic.operands[0], false);
                if let Some(mask) = self.mask.clone() {
                    let (form, ty) = (self.form(), self.form().int(bits));
                    let neutral = form.constant(bits, fold.neutral(bits));
                    values = values
                        .iter()
                        .zip(&mask)
                        .map(|(value, mask)| self.text.select(form, &ty, mask, value, &neutral))
                        .collect();
                }
                self.folded(fold, bits, &values)
            }
        };
        if atomic.shared_with_others {
            let name = fold.atomic();
            self.text
                .value(format!("atomicrmw {name} ptr {at}, {int} {total} seq_cst"));
            return;
        }
        let old = self.text.value(format!("load {int}, ptr {at}"));
        let new = match fold.is_instruction() {
            true => self.text.binary(fold.name(), &int, &old, &total),
            false => self.text.intrinsic(fold.name(), Form::One, &int, &[&old, &total]),
        };
        self.text.line(format!("store {int} {new}, ptr {at}"));
    }

    /// All lanes change one place, one after the other, and memory sees what comes of it.
    fn in_turn_at(&mut self, atomic: &Atomic, at: &str) {
        let int = format!("i{}", atomic.bits);
        self.store_operands(atomic);
        let [again, over] = ["again", "over"].map(|what| self.text.name(what));
        let now = format!("%now.{again}");
        self.head.push_str(&format!("  {now} = alloca {int}\n"));
        self.jump(&again);
        self.text.label(&again);
        let old = self.loaded(atomic, at);
        self.text.line(format!("store {int} {old}, ptr {now}"));
        self.each_lane(|this, lane, _| {
            let values = this.operands_of(atomic, lane);
            let was = this.text.value(format!("load {int}, ptr {now}"));
            let new = this.changed(atomic, &was, &values);
            this.text.line(format!("store {int} {new}, ptr {now}"));
            this.keep_old(atomic, lane, &was);
        });
        let new = self.text.value(format!("load {int}, ptr {now}"));
        self.replaced(atomic, at, (&old, &new), (&again, &over));
        self.text.label(&over);
    }

    /// Each lane changes its own place. Distances of 32 bits come back from memory two at a time, which takes half as long on an Intel Xeon (a
    /// histogram in shared memory: 0.8 ns an addition, 1.5 with a pointer for each lane).
    fn each_at(&mut self, atomic: &Atomic, spread: &Spread) {
        let bits = spread.bits;
        self.store_for_lanes(DISTANCES, bits, &spread.distances);
        self.store_operands(atomic);
        let base = self.text.value(format!("inttoptr i64 {} to ptr", spread.base));
        let mut both = String::new();
        self.each_lane(|this, lane, turn| {
            let distances = this.place("%scratch", DISTANCES);
            let distance = match turn {
                Some(turn) if bits == 32 && turn % 2 == 0 => {
                    let from = this
                        .text
                        .value(format!("getelementptr i32, ptr {distances}, i64 {lane}"));
                    both = this.text.value(format!("load i64, ptr {from}, align 8"));
                    this.text.binary("and", "i64", &both, "4294967295")
                }
                Some(_) if bits == 32 => this.text.binary("lshr", "i64", &both, "32"),
                _ => {
                    let from = this
                        .text
                        .value(format!("getelementptr i{bits}, ptr {distances}, i64 {lane}"));
                    let distance = this.text.value(format!("load i{bits}, ptr {from}"));
                    this.text.resize(Form::One, bits, &distance, 64, false)
                }
            };
            let at = this.text.value(format!(
                "getelementptr [{} x i8], ptr {base}, i64 {distance}",
                spread.scale
            ));
            let values = this.operands_of(atomic, lane);
            let old = this.exchanged(atomic, &at, &values);
            this.keep_old(atomic, lane, &old);
        });
    }

    /// One lane changes a place: the old value.
    fn exchanged(&mut self, atomic: &Atomic, at: &str, values: &[String]) -> String {
        let int = format!("i{}", atomic.bits);
        if !atomic.shared_with_others {
            let old = self.text.value(format!("load {int}, ptr {at}"));
            let new = self.changed(atomic, &old, values);
            self.text.line(format!("store {int} {new}, ptr {at}"));
            return old;
        }
        if let Some(name) = atomic.instruction() {
            let value = &values[0];
            return self
                .text
                .value(format!("atomicrmw {name} ptr {at}, {int} {value} seq_cst"));
        }
        if atomic.op == AtomicOp::Cas {
            let (expected, new) = (&values[0], &values[1]);
            let pair = self.text.value(format!(
                "cmpxchg ptr {at}, {int} {expected}, {int} {new} seq_cst seq_cst"
            ));
            return self.text.value(format!("extractvalue {{ {int}, i1 }} {pair}, 0"));
        }
        let [again, over] = ["again", "over"].map(|what| self.text.name(what));
        self.jump(&again);
        self.text.label(&again);
        let old = self.loaded(atomic, at);
        let new = self.changed(atomic, &old, values);
        self.replaced(atomic, at, (&old, &new), (&again, &over));
        self.text.label(&over);
        old
    }

    fn loaded(&mut self, atomic: &Atomic, at: &str) -> String {
        let (bits, bytes) = (atomic.bits, atomic.bits / 8);
        match atomic.shared_with_others {
            true => self
                .text
                .value(format!("load atomic i{bits}, ptr {at} seq_cst, align {bytes}")),
            false => self.text.value(format!("load i{bits}, ptr {at}")),
        }
    }

    /// Memory gets a new value, if it has the old one; else once more.
    fn replaced(&mut self, atomic: &Atomic, at: &str, (old, new): (&str, &str), (again, over): (&str, &str)) {
        let int = format!("i{}", atomic.bits);
        if !atomic.shared_with_others {
            self.text.line(format!("store {int} {new}, ptr {at}"));
            self.jump(over);
            return;
        }
        let pair = self
            .text
            .value(format!("cmpxchg ptr {at}, {int} {old}, {int} {new} seq_cst seq_cst"));
        let is_new = self.text.value(format!("extractvalue {{ {int}, i1 }} {pair}, 1"));
        self.branch(&is_new, over, again);
    }

    /// Operands that differ from lane to lane go to memory.
    fn store_operands(&mut self, atomic: &Atomic) {
        for (number, &reg) in atomic.operands.iter().enumerate() {
            if atomic.same[number].is_none() {
                let values = self.lanes_of(reg, false);
                self.store_for_lanes(OPERANDS[number], atomic.bits, &values);
            }
        }
    }

    /// Numbers that lanes read one by one: an Intel Xeon takes half as much time again where they were stored as vectors of 64 bytes, and not of 32.
    /// Volatile, for else LLVM makes one of two again.
    fn store_for_lanes(&mut self, start: usize, bits: u32, values: &[String]) {
        const BYTES: u32 = 32;
        let ty = self.form().int(bits);
        let each = self.lanes.min(BYTES * 8 / bits);
        for (part, value) in values.iter().enumerate() {
            for first in (0..self.lanes).step_by(each as usize) {
                let lane = part * self.lanes as usize + first as usize;
                let to = self.place("%scratch", start + lane * bits as usize / 8);
                if each == self.lanes {
                    self.text.line(format!("store {ty} {value}, ptr {to}, align 16"));
                    continue;
                }
                let lanes: Vec<String> = (first..first + each).map(|lane| format!("i32 {lane}")).collect();
                let these = self.text.value(format!(
                    "shufflevector {ty} {value}, {ty} poison, <{each} x i32> <{}>",
                    lanes.join(", ")
                ));
                self.text
                    .line(format!("store volatile <{each} x i{bits}> {these}, ptr {to}, align 32"));
            }
        }
    }

    fn operands_of(&mut self, atomic: &Atomic, lane: &str) -> Vec<String> {
        let bits = atomic.bits;
        atomic
            .same
            .iter()
            .zip(OPERANDS)
            .map(|(same, start)| match same {
                Some(value) => value.clone(),
                None => {
                    let values = self.place("%scratch", start);
                    let from = self
                        .text
                        .value(format!("getelementptr i{bits}, ptr {values}, i64 {lane}"));
                    self.text.value(format!("load i{bits}, ptr {from}"))
                }
            })
            .collect()
    }

    fn keep_old(&mut self, atomic: &Atomic, lane: &str, old: &str) {
        if atomic.dst.is_none() {
            return;
        }
        let bits = atomic.bits;
        let olds = self.place("%scratch", OLD);
        let to = self
            .text
            .value(format!("getelementptr i{bits}, ptr {olds}, i64 {lane}"));
        self.text.line(format!("store i{bits} {old}, ptr {to}"));
    }

    /// The value of a register that is the same in all lanes.
    fn same_for_all(&mut self, reg: Reg) -> Option<String> {
        self.kind(reg.number)
            .is_same()
            .then(|| self.line_of(reg, false).0.swap_remove(0))
    }

    /// Does something for each lane of the mask, the first one first: it is told the lane's number, of 64 bits, and where all lanes are there, which
    /// of those it is that follow each other in a turn.
    fn each_lane(&mut self, mut body: impl FnMut(&mut Self, &str, Option<u32>)) {
        let [turn, out] = ["turn", "out"].map(|what| self.text.name(what));
        let rest = format!("%rest.{turn}");
        let whole = self.mask.is_none();
        let ty = if whole { "i64" } else { "i32" };
        self.head.push_str(&format!("  {rest} = alloca {ty}\n"));
        let first = match whole {
            true => "0".to_owned(),
            false => self.mask_bits(),
        };
        self.text.line(format!("store {ty} {first}, ptr {rest}"));
        // Somebody is there: else nobody would be here.
        self.jump(&turn);
        self.text.label(&turn);
        let word = self.text.value(format!("load {ty}, ptr {rest}"));
        let (next, last) = if whole {
            for further in 0..AT_ONCE {
                let lane = self.text.binary("add", "i64", &word, &further.to_string());
                body(self, &lane, Some(further));
            }
            (self.text.binary("add", "i64", &word, &AT_ONCE.to_string()), LANES)
        } else {
            let lane = self.text.value(format!("call i32 @llvm.cttz.i32(i32 {word}, i1 true)"));
            let lane = self.text.value(format!("zext i32 {lane} to i64"));
            body(self, &lane, None);
            let less = self.text.value(format!("add i32 {word}, -1"));
            (self.text.value(format!("and i32 {word}, {less}")), 0)
        };
        self.text.line(format!("store {ty} {next}, ptr {rest}"));
        let over = self.text.value(format!("icmp eq {ty} {next}, {last}"));
        self.branch(&over, &out, &turn);
        self.text.label(&out);
    }

    /// What an atomic makes of the old value.
    fn changed(&mut self, atomic: &Atomic, old: &str, values: &[String]) -> String {
        let (op, ty) = (atomic.op, atomic.ty);
        let int = format!("i{}", atomic.bits);
        let b = &values[0];
        let signed = matches!(ty, AtomicType::S32 | AtomicType::S64);
        let mut choose = |by: &str, yes: &str, no: &str| {
            let by = self.text.value(format!("icmp {by}"));
            self.text.value(format!("select i1 {by}, {int} {yes}, {int} {no}"))
        };
        match op {
            AtomicOp::Add if ty == AtomicType::F32 => {
                let [x, y] = [old, b].map(|bits| self.flushed(atomic.in_memory, bits));
                let [x, y] = [x, y].map(|bits| self.text.float(Form::One, 32, &bits));
                let sum = self.text.value(format!("fadd float {x}, {y}"));
                let sum = self.text.bits(Form::One, 32, &sum);
                let sum = self.flushed(atomic.in_memory, &sum);
                self.canonical(Form::One, &sum)
            }
            AtomicOp::Add if ty == AtomicType::F64 => self.added_f64(old, b, atomic.in_memory),
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

    /// Without subnormals.
    fn flushed(&mut self, ftz: bool, bits: &str) -> String {
        if !ftz {
            return bits.to_owned();
        }
        let exponent = self.text.binary("and", "i32", bits, &0x7f80_0000.to_string());
        let small = self.text.value(format!("icmp eq i32 {exponent}, 0"));
        let sign = self.text.binary("and", "i32", bits, &i32::MIN.to_string());
        self.text.value(format!("select i1 {small}, i32 {sign}, i32 {bits}"))
    }

    /// A NaN that goes in comes out, made quiet: the old value's before the operand's. In global memory the operand's comes
    /// first, and all are left as they are.
    fn added_f64(&mut self, old: &str, b: &str, in_memory: bool) -> String {
        let [x, y] = [old, b].map(|bits| self.text.float(Form::One, 64, bits));
        let sum = self.text.value(format!("fadd double {x}, {y}"));
        let mut result = self.text.bits(Form::One, 64, &sum);
        let mut operands = [(b, &y), (old, &x)];
        if in_memory {
            operands.reverse();
        }
        for (bits, value) in operands {
            let is_nan = self.text.value(format!("fcmp uno double {value}, {value}"));
            let quiet = match in_memory {
                true => bits.to_owned(),
                false => self.text.binary("or", "i64", bits, &(1u64 << 51).to_string()),
            };
            result = self
                .text
                .value(format!("select i1 {is_nan}, i64 {quiet}, i64 {result}"));
        }
        result
    }
}

impl Atomic {
    fn width(&self) -> Width {
        if self.bits == 32 { Width::B32 } else { Width::B64 }
    }

    /// As an operation that gives the same in any order.
    fn fold(&self) -> Option<Fold> {
        let signed = matches!(self.ty, AtomicType::S32 | AtomicType::S64);
        let float = matches!(self.ty, AtomicType::F32 | AtomicType::F64);
        match self.op {
            AtomicOp::Add if !float => Some(Fold::Add),
            AtomicOp::And => Some(Fold::And),
            AtomicOp::Or => Some(Fold::Or),
            AtomicOp::Xor => Some(Fold::Xor),
            AtomicOp::Min => Some(if signed { Fold::MinS } else { Fold::MinU }),
            AtomicOp::Max => Some(if signed { Fold::MaxS } else { Fold::MaxU }),
            AtomicOp::Add | AtomicOp::Inc | AtomicOp::Dec | AtomicOp::Exch | AtomicOp::Cas => None,
        }
    }

    /// As LLVM calls it, where it has one that gives the old value.
    fn instruction(&self) -> Option<&'static str> {
        match self.op {
            AtomicOp::Exch => Some("xchg"),
            AtomicOp::Inc => Some("uinc_wrap"),
            AtomicOp::Dec => Some("udec_wrap"),
            _ => self.fold().map(Fold::atomic),
        }
    }
}

/// The width of an atomic that is known here.
fn bits_here(op: AtomicOp, ty: AtomicType) -> Option<u32> {
    let moves = matches!(op, AtomicOp::Add | AtomicOp::Exch | AtomicOp::Cas);
    match ty {
        AtomicType::U32 | AtomicType::S32 | AtomicType::B32 => Some(32),
        AtomicType::U64 | AtomicType::S64 | AtomicType::B64 => Some(64),
        AtomicType::F32 if moves => Some(32),
        AtomicType::F64 if moves => Some(64),
        _ => None,
    }
}
