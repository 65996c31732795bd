//! A planned body as LLVM's text.
//!
//! A unit is emitted for a warp all of whose lanes are there, and, where lanes may be elsewhere meanwhile, under a mask as
//! well. Branches on which a whole warp agrees stay in the first version; where lanes part, the second goes on until they are
//! together again. Under a mask, lanes that go to a unit are added to the unit's flags; what follows a unit is the lowest
//! one that anybody waits at ([`Emit::dispatch`]).
//!
//! Warps that lack lanes for good (at the end of a block, or when some have left the kernel) have code of their own, which
//! is masked throughout ([`For::Some`]).
//!
//! Registers and flags are memory of the function's frame, which LLVM's first pass makes values of. A register of lanes is
//! as many values as the CPU's vectors ask for (*parts*).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::mem::offset_of;

use crate::isa::lanes::{Mask, Operands, Width};
use crate::isa::{Compute, Level};
use crate::program::{Body, Guard, Inst, Op, Ordering, Reg, Register, Role, Space};

use super::Pc;
use super::compute::{self, Emitter, bits_of};
use super::context::{Context, Cut, ENDED, LaneCall, outcome, step};
use super::plan::{Exit, Kind, Node, Plan, Stick, widened};
use super::text::{Form, Text};

/// What is compiled: a body, and where the interpreter has its blocks and registers.
pub struct Input<'a> {
    pub body: &'a Body,
    /// Where each block begins in the interpreter's code.
    pub starts: &'a [Pc],
    /// Each register's place in the window, for a bundle of one warp.
    pub slots: &'a [Option<u32>],
    /// Bytes of the window.
    pub window: u32,
}

/// What was made.
pub struct Made {
    pub ir: String,
    pub calls: Vec<LaneCall>,
    /// Places of the interpreter's code where lanes may enter, with the number of the entry.
    pub entries: Vec<(Pc, u32)>,
    /// Those of [`For::All`] where a part of the lanes may enter.
    pub masked: Vec<u32>,
    /// Bytes that an access reaches from its address, by site.
    pub sites: Vec<u64>,
}

/// The name of the function that is made.
pub const NAME: &str = "margay_kernel";

/// CPU features that code for a level may count on, as LLVM writes them.
pub fn features(level: Level) -> &'static str {
    match level {
        Level::Baseline => "",
        Level::Avx2 => "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt",
        Level::Avx512 => {
            "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512cd"
        }
    }
}

/// Lanes of a part.
pub fn part_lanes(level: Level) -> u32 {
    match level {
        Level::Baseline => 4,
        Level::Avx2 => 8,
        Level::Avx512 => 16,
    }
}

/// For whom code is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// Warps all of whose lanes are there. Where some are, and nobody is elsewhere, they leave.
    All,
    /// Any lanes.
    Some,
}

pub(super) struct Emit<'a> {
    pub(super) input: &'a Input<'a>,
    pub(super) plan: &'a Plan,
    pub(super) level: Level,
    whom: For,
    /// Lanes of a part, and parts of a warp.
    pub(super) lanes: u32,
    pub(super) parts: usize,
    pub(super) text: Text,
    /// What stands before everything else: memory of the frame.
    head: String,
    /// Values that do not change, as they were loaded behind a label.
    fields: HashMap<(u32, usize), String>,
    fixed: HashMap<(u32, Register), Vec<String>>,
    declared: HashMap<Register, ()>,
    calls: Vec<LaneCall>,
    call_of: HashMap<(Compute, usize), usize>,
    pub(super) sites: Vec<u64>,
    /// Which unit is emitted, in which version, for which lanes of its parts (`None`: all).
    unit: Node,
    full: bool,
    pub(super) mask: Option<Vec<String>>,
    /// The lanes that run the unit, where [`Emit::mask`] may be narrower.
    here: Option<Vec<String>>,
    /// The mask is narrower than the lanes that run: what they hold stays.
    guarded: bool,
    /// Ways out that are still to be emitted.
    chains: BTreeMap<BTreeSet<Node>, String>,
    leaves: BTreeSet<Node>,
    /// Nodes whose flags are memory that must start as nobody.
    flags: BTreeSet<Node>,
    used: BTreeSet<Node>,
}

/// Makes text of a plan.
pub fn emit(input: &Input<'_>, plan: &Plan, level: Level, whom: For) -> Made {
    let lanes = part_lanes(level);
    let mut emit = Emit {
        input,
        plan,
        level,
        whom,
        lanes,
        parts: (32 / lanes) as usize,
        text: Text::default(),
        head: String::new(),
        fields: HashMap::new(),
        fixed: HashMap::new(),
        declared: HashMap::new(),
        calls: Vec::new(),
        call_of: HashMap::new(),
        sites: Vec::new(),
        unit: 0,
        full: true,
        mask: None,
        here: None,
        guarded: false,
        used: BTreeSet::new(),
        chains: BTreeMap::new(),
        leaves: BTreeSet::new(),
        flags: BTreeSet::new(),
    };
    let entries = emit.function();
    let ir = emit.module();
    Made {
        ir,
        calls: emit.calls,
        masked: entries
            .iter()
            .map(|&(_, unit)| unit)
            .filter(|&unit| whom == For::Some || !plan.others[unit as usize].is_empty())
            .collect(),
        entries,
        sites: emit.sites,
    }
}

/// What code calls to bring registers to the window and back: rarely enough that it need not stand everywhere.
///
/// `put` and `line` write lanes whose bit is set: of values, or of a line. `first` gives the number of a line whose first lane
/// that takes part is in the window, `differs` whether any lane there is not on it.
fn slots(lanes: u32) -> String {
    let parts = 32 / lanes;
    let mut out = String::new();
    let list = |f: &dyn Fn(u32) -> String| (0..lanes).map(f).collect::<Vec<_>>().join(", ");
    let ones = list(&|lane| format!("i32 {}", 1u32 << lane));
    let mask = |part: u32| {
        format!(
            "  %w{part} = lshr i32 %lanes, {}\n  %i{part} = insertelement <{lanes} x i32> poison, i32 %w{part}, i64 0\n  \
             %s{part} = shufflevector <{lanes} x i32> %i{part}, <{lanes} x i32> poison, <{lanes} x i32> zeroinitializer\n  \
             %a{part} = and <{lanes} x i32> %s{part}, <{ones}>\n  \
             %m{part} = icmp ne <{lanes} x i32> %a{part}, zeroinitializer\n",
            part * lanes
        )
    };
    out.push_str(
        "define internal void @put1(ptr %at, i32 %word, i32 %lanes) #1 {\n  %o = load i32, ptr %at\n  %k = xor i32 %lanes, -1\n  \
         %a = and i32 %o, %k\n  %b = and i32 %word, %lanes\n  %c = or i32 %a, %b\n  store i32 %c, ptr %at\n  ret void\n}\n\n",
    );
    for bits in [16u32, 32, 64] {
        let ty = format!("<{lanes} x i{bits}>");
        let align = (bits / 8 * lanes).min(64);
        let place = |part: u32| {
            format!(
                "  %g{part} = getelementptr i8, ptr %at, i64 {}\n",
                part * lanes * bits / 8
            )
        };
        // What follows `%base` by `%step`.
        let along = |part: u32| {
            let numbers = list(&|lane| format!("i{bits} {}", part * lanes + lane));
            format!("  %x{part} = mul {ty} %steps, <{numbers}>\n  %v{part} = add {ty} %bases, %x{part}\n")
        };
        let splats = format!(
            "  %b0 = insertelement {ty} poison, i{bits} %base, i64 0\n  \
             %bases = shufflevector {ty} %b0, {ty} poison, <{lanes} x i32> zeroinitializer\n  \
             %t0 = insertelement {ty} poison, i{bits} %step, i64 0\n  \
             %steps = shufflevector {ty} %t0, {ty} poison, <{lanes} x i32> zeroinitializer\n"
        );
        let values: Vec<String> = (0..parts).map(|part| format!("{ty} %v{part}")).collect();
        let _ = writeln!(
            out,
            "define internal void @put{bits}(ptr %at, {}, i32 %lanes) #1 {{",
            values.join(", ")
        );
        for part in 0..parts {
            let _ = write!(
                out,
                "{}{}  %o{part} = load {ty}, ptr %g{part}, align {align}\n  \
                 %n{part} = select <{lanes} x i1> %m{part}, {ty} %v{part}, {ty} %o{part}\n  \
                 store {ty} %n{part}, ptr %g{part}, align {align}\n",
                mask(part),
                place(part)
            );
        }
        out.push_str("  ret void\n}\n\n");
        let _ = writeln!(
            out,
            "define internal void @line{bits}(ptr %at, i{bits} %base, i{bits} %step, i32 %lanes) #1 {{\n{splats}{}  \
             call void @put{bits}(ptr %at, {}, i32 %lanes)\n  ret void\n}}\n",
            (0..parts).map(along).collect::<String>(),
            values.join(", ")
        );
        let _ = writeln!(
            out,
            "define internal i{bits} @first{bits}(ptr %at, i{bits} %step, i32 %lanes) #1 {{\n  \
             %c = call i32 @llvm.cttz.i32(i32 %lanes, i1 false)\n  %f = and i32 %c, 31\n  %n = zext i32 %f to i64\n  \
             %g = getelementptr i{bits}, ptr %at, i64 %n\n  %v = load i{bits}, ptr %g\n  %i = {}\n  \
             %x = mul i{bits} %i, %step\n  %r = sub i{bits} %v, %x\n  ret i{bits} %r\n}}\n",
            match bits {
                16 => "trunc i32 %f to i16",
                32 => "add i32 %f, 0",
                _ => "zext i32 %f to i64",
            }
        );
        let _ = writeln!(
            out,
            "define internal i1 @differs{bits}(ptr %at, i{bits} %base, i{bits} %step, i32 %lanes) #1 {{\n{splats}  \
             %d = add i1 false, false"
        );
        let mut all = "%d".to_owned();
        for part in 0..parts {
            let _ = write!(
                out,
                "{}{}{}  %o{part} = load {ty}, ptr %g{part}, align {align}\n  \
                 %n{part} = icmp ne {ty} %o{part}, %v{part}\n  %y{part} = and <{lanes} x i1> %n{part}, %m{part}\n  \
                 %z{part} = bitcast <{lanes} x i1> %y{part} to i{lanes}\n  %e{part} = icmp ne i{lanes} %z{part}, 0\n  \
                 %d{part} = or i1 {all}, %e{part}\n",
                mask(part),
                place(part),
                along(part)
            );
            all = format!("%d{part}");
        }
        let _ = writeln!(out, "  ret i1 {all}\n}}\n");
    }
    out
}

impl Emit<'_> {
    pub(super) fn form(&self) -> Form {
        Form::Lanes(self.lanes)
    }

    fn module(&mut self) -> String {
        let mut ir = String::from("target triple = \"x86_64-unknown-linux-gnu\"\n\n");
        let _ = writeln!(
            ir,
            "define i32 @{NAME}(ptr noalias align 16 dereferenceable({}) %n, ptr noalias align 64 dereferenceable({}) %regs, i32 %entry, i32 %lanes) #0 {{\nhead:",
            size_of::<Context>(),
            self.input.window
        );
        ir.push_str(&self.head);
        ir.push_str("  br label %start\n");
        ir.push_str(&self.text.lines);
        ir.push_str("}\n\n");
        ir.push_str(&slots(self.lanes));
        ir.push_str("attributes #0 = { nounwind }\nattributes #1 = { nounwind noinline }\n!0 = !{}\n!1 = !{!\"branch_weights\", i32 1, i32 1048575}\n");
        ir
    }

    // ---- the whole function --------------------------------------------------------------------------------------------

    fn function(&mut self) -> Vec<(Pc, u32)> {
        let count = self.plan.units.len() as Node;
        for others in &self.plan.others {
            self.flags.extend(others.iter().copied());
        }
        self.head
            .push_str("  %budget = alloca i64\n  %scratch = alloca [4096 x i8], align 64\n");
        let mut entries = Vec::new();
        self.text.label("start");
        let budget = self.field(offset_of!(Context, budget), "i64", false);
        self.text.line(format!("store i64 {budget}, ptr %budget"));
        let mut cases = String::new();
        for (number, unit) in self.plan.units.iter().enumerate() {
            let makes = !unit.insts.is_empty() || matches!(unit.exit, Exit::Branch { .. });
            if unit.entry && unit.stick == Stick::Never && makes {
                let _ = write!(cases, " i32 {number}, label %E{number}");
                entries.push((unit.pc, number as u32));
            }
        }
        self.text.line(format!("switch i32 %entry, label %nowhere [{cases} ]"));
        self.text.label("nowhere");
        self.text.line(format!("ret i32 {}", outcome::NOT_ENTERED));
        for &(_, unit) in &entries {
            self.entry(unit);
        }
        for unit in 0..count {
            if self.whom == For::All {
                self.unit(unit, true);
            }
            if self.is_masked(unit) {
                self.unit(unit, false);
            } else {
                self.joined(unit);
            }
        }
        // Leaving adds chains for loops that run out of their budget, and no others.
        while let Some(unit) = self.leaves.pop_first() {
            self.leave_all(unit);
        }
        while let Some((nodes, label)) = self.chains.pop_first() {
            self.leave_some(&nodes, &label);
        }
        self.text.label("left");
        self.save_budget();
        self.text.line(format!("ret i32 {}", outcome::LEFT));
        self.text.label("fault");
        self.save_budget();
        self.text.line(format!("ret i32 {}", outcome::FAULT));
        // Flags of nodes that only one side sets.
        let zero = self.form().constant(32, 0);
        let ty = self.flag_type();
        let mut head = String::new();
        for node in 0..2 * count {
            if !self.used.contains(&node) {
                continue;
            }
            for part in 0..self.parts {
                let _ = writeln!(head, "  %p{node}.{part} = alloca {ty}");
                if self.flags.contains(&node) {
                    let zero = if self.lanes == 16 {
                        self.form().constant(1, 0)
                    } else {
                        zero.clone()
                    };
                    let _ = writeln!(head, "  store {ty} {zero}, ptr %p{node}.{part}");
                }
            }
        }
        self.head.push_str(&head);
        entries
    }

    fn save_budget(&mut self) {
        let budget = self.text.value("load i64, ptr %budget");
        let at = self.place("%n", offset_of!(Context, budget));
        self.text.line(format!("store i64 {budget}, ptr {at}"));
    }

    /// A place so many bytes behind another.
    pub(super) fn place(&mut self, base: &str, offset: usize) -> String {
        self.text
            .value(format!("getelementptr inbounds i8, ptr {base}, i64 {offset}"))
    }

    /// A field of the context; `same`: it does not change while the code runs.
    pub(super) fn field(&mut self, offset: usize, ty: &str, same: bool) -> String {
        if !same {
            let at = self.place("%n", offset);
            return self.text.value(format!("load {ty}, ptr {at}"));
        }
        if let Some(value) = self.fields.get(&(self.text.labels, offset)) {
            return value.clone();
        }
        let at = self.place("%n", offset);
        let value = self.text.value(format!("load {ty}, ptr {at}, !invariant.load !0"));
        self.fields.insert((self.text.labels, offset), value.clone());
        value
    }

    // ---- masks ----------------------------------------------------------------------------------------------------------

    /// Flags are whole numbers in each lane where the CPU has no registers for bits.
    fn flag_type(&self) -> String {
        match self.lanes {
            16 => self.form().int(1),
            _ => self.form().int(32),
        }
    }

    fn flag_of(&mut self, bits: &str) -> String {
        match self.lanes {
            16 => bits.to_owned(),
            _ => {
                let (from, to) = (self.form().int(1), self.form().int(32));
                self.text.convert("sext", &from, bits, &to)
            }
        }
    }

    fn of_flag(&mut self, flag: &str) -> String {
        match self.lanes {
            16 => flag.to_owned(),
            _ => {
                let (ty, zero) = (self.form().int(32), self.form().constant(32, 0));
                self.text.value(format!("icmp slt {ty} {flag}, {zero}"))
            }
        }
    }

    fn load_flags(&mut self, node: Node) -> Vec<String> {
        self.used.insert(node);
        let ty = self.flag_type();
        (0..self.parts)
            .map(|part| {
                let flag = self.text.value(format!("load {ty}, ptr %p{node}.{part}"));
                self.of_flag(&flag)
            })
            .collect()
    }

    fn store_flags(&mut self, node: Node, mask: &[String]) {
        self.used.insert(node);
        let ty = self.flag_type();
        for (part, bits) in mask.iter().enumerate() {
            let flag = self.flag_of(bits);
            self.text.line(format!("store {ty} {flag}, ptr %p{node}.{part}"));
        }
    }

    /// Lanes go to a node, where others may be already.
    fn add_flags(&mut self, node: Node, mask: &[String]) {
        if !self.plan.others[self.unit as usize].contains(&node) || self.full {
            self.store_flags(node, mask);
            return;
        }
        let there = self.load_flags(node);
        let both = self.each(mask, &there, "or");
        self.store_flags(node, &both);
    }

    fn each(&mut self, a: &[String], b: &[String], op: &str) -> Vec<String> {
        let ty = self.form().int(1);
        a.iter().zip(b).map(|(a, b)| self.text.binary(op, &ty, a, b)).collect()
    }

    fn not(&mut self, a: &[String]) -> Vec<String> {
        let ones = vec![self.form().constant(1, 1); a.len()];
        self.each(a, &ones, "xor")
    }

    /// One bit a lane.
    pub(super) fn bits(&mut self, mask: &[String]) -> String {
        let (ty, lanes) = (self.form().int(1), self.lanes);
        let mut all: Option<String> = None;
        for (part, bits) in mask.iter().enumerate() {
            let word = self.text.value(format!("bitcast {ty} {bits} to i{lanes}"));
            let word = self.text.value(format!("zext i{lanes} {word} to i32"));
            let word = match part {
                0 => word,
                _ => self.text.value(format!("shl i32 {word}, {}", part as u32 * lanes)),
            };
            all = Some(match all {
                None => word,
                Some(all) => self.text.value(format!("or i32 {all}, {word}")),
            });
        }
        all.unwrap_or_default()
    }

    /// A mask from one bit a lane.
    fn spread(&mut self, bits: &str) -> Vec<String> {
        let lanes = self.lanes;
        let form = self.form();
        (0..self.parts)
            .map(|part| {
                let word = self.text.value(format!("lshr i32 {bits}, {}", part as u32 * lanes));
                let all = self.splat("i32", &word);
                let each: Vec<String> = (0..lanes).map(|lane| format!("i32 {}", 1u32 << lane)).collect();
                let each = format!("<{}>", each.join(", "));
                let one = self.text.binary("and", &form.int(32), &all, &each);
                self.text
                    .value(format!("icmp ne {} {one}, {}", form.int(32), form.constant(32, 0)))
            })
            .collect()
    }

    /// Whether any lane is in a mask.
    pub(super) fn any(&mut self, mask: &[String]) -> String {
        let ty = self.form().int(1);
        let mut all = mask[0].clone();
        for more in &mask[1..] {
            all = self.text.binary("or", &ty, &all, more);
        }
        let lanes = self.lanes;
        let word = self.text.value(format!("bitcast {ty} {all} to i{lanes}"));
        self.text.value(format!("icmp ne i{lanes} {word}, 0"))
    }

    fn all(&mut self, mask: &[String]) -> String {
        let ty = self.form().int(1);
        let mut all = mask[0].clone();
        for more in &mask[1..] {
            all = self.text.binary("and", &ty, &all, more);
        }
        let lanes = self.lanes;
        let word = self.text.value(format!("bitcast {ty} {all} to i{lanes}"));
        self.text.value(format!("icmp eq i{lanes} {word}, -1"))
    }

    /// Bits of the lanes for which the code runs at this place.
    pub(super) fn mask_bits(&mut self) -> String {
        match self.mask.clone() {
            None => "-1".to_owned(),
            Some(mask) => self.bits(&mask),
        }
    }

    pub(super) fn splat(&mut self, element: &str, value: &str) -> String {
        let ty = format!("<{} x {element}>", self.lanes);
        let one = self
            .text
            .value(format!("insertelement {ty} poison, {element} {value}, i64 0"));
        self.text.value(format!(
            "shufflevector {ty} {one}, {ty} poison, <{} x i32> zeroinitializer",
            self.lanes
        ))
    }

    fn branch(&mut self, by: &str, yes: &str, no: &str) {
        self.text.line(format!("br i1 {by}, label %{yes}, label %{no}"));
    }

    /// A branch whose first way is hardly ever taken.
    pub(super) fn rarely(&mut self, by: &str, yes: &str, no: &str) {
        self.text
            .line(format!("br i1 {by}, label %{yes}, label %{no}, !prof !1"));
    }

    pub(super) fn jump(&mut self, to: &str) {
        self.text.line(format!("br label %{to}"));
    }

    // ---- registers -------------------------------------------------------------------------------------------------------

    fn info(&self, register: Register) -> Reg {
        self.input.body.reg(register)
    }

    pub(super) fn kind(&self, register: Register) -> Kind {
        self.plan.kinds[register as usize]
    }

    fn slot(&self, register: Register) -> usize {
        self.input.slots[register as usize].unwrap_or(0) as usize
    }

    /// How many numbers a line is.
    fn bases_of(&self, register: Register) -> usize {
        match self.kind(register) {
            Kind::Line { parts: true, .. } => self.parts,
            _ => 1,
        }
    }

    /// Memory of the frame for a register.
    fn declare(&mut self, register: Register) {
        if self.declared.insert(register, ()).is_some() {
            return;
        }
        let width = self.info(register).width;
        let (ty, count) = match self.kind(register) {
            Kind::Vector if width == Width::Pred => (self.flag_type(), self.parts),
            Kind::Vector => (self.form().int(bits_of(width).unwrap_or(32)), self.parts),
            _ => (Form::One.int(bits_of(width).unwrap_or(32)), self.bases_of(register)),
        };
        for part in 0..count {
            let _ = writeln!(self.head, "  %r{register}.{part} = alloca {ty}");
        }
    }

    /// Values of a register that is set before the code runs: numbers of a line, or parts.
    fn fixed_values(&mut self, reg: Reg) -> Vec<String> {
        if let Some(values) = self.fixed.get(&(self.text.labels, reg.number)) {
            return values.clone();
        }
        let bits = bits_of(reg.width).unwrap_or(32);
        let kind = self.kind(reg.number);
        let slot = self.slot(reg.number);
        let constant = self.input.body.constant(reg.number);
        let values = match (constant, kind, reg.width) {
            (Some(value), ..) => vec![Form::One.constant(bits, value as u64)],
            (None, Kind::Line { .. }, Width::Pred) => {
                let at = self.place("%regs", slot);
                let word = self.text.value(format!("load i32, ptr {at}, !invariant.load !0"));
                vec![self.text.value(format!("trunc i32 {word} to i1"))]
            }
            (None, Kind::Line { parts, .. }, _) => self.bases_in_slot(reg, parts, ", !invariant.load !0"),
            _ => self.load_slot(reg),
        };
        self.fixed.insert((self.text.labels, reg.number), values.clone());
        values
    }

    /// The numbers of a line from the window, where all lanes are on it.
    fn bases_in_slot(&mut self, reg: Reg, parts: bool, how: &str) -> Vec<String> {
        let bits = bits_of(reg.width).unwrap_or(32);
        let slot = self.slot(reg.number);
        (0..if parts { self.parts } else { 1 })
            .map(|part| {
                let lane = part * self.lanes as usize;
                let at = self.place("%regs", slot + lane * bits as usize / 8);
                self.text.value(format!("load i{bits}, ptr {at}{how}"))
            })
            .collect()
    }

    /// All lanes of a register from the window.
    fn load_slot(&mut self, reg: Reg) -> Vec<String> {
        let slot = self.slot(reg.number);
        if reg.width == Width::Pred {
            let at = self.place("%regs", slot);
            let word = self.text.value(format!("load i32, ptr {at}"));
            return self.spread(&word);
        }
        let bits = bits_of(reg.width).unwrap_or(32);
        let ty = self.form().int(bits);
        let bytes = (bits / 8 * self.lanes) as usize;
        (0..self.parts)
            .map(|part| {
                let at = self.place("%regs", slot + part * bytes);
                self.text.value(format!("load {ty}, ptr {at}, align {}", bytes.min(64)))
            })
            .collect()
    }

    /// All lanes of a register to the window.
    fn store_slot_whole(&mut self, reg: Reg) {
        let slot = self.slot(reg.number);
        let values = self.lanes_of(reg, false);
        if reg.width == Width::Pred {
            let word = self.bits(&values);
            let at = self.place("%regs", slot);
            self.text.line(format!("store i32 {word}, ptr {at}"));
            return;
        }
        let bits = bits_of(reg.width).unwrap_or(32);
        let ty = self.form().int(bits);
        let bytes = (bits / 8 * self.lanes) as usize;
        for (part, value) in values.iter().enumerate() {
            let at = self.place("%regs", slot + part * bytes);
            self.text
                .line(format!("store {ty} {value}, ptr {at}, align {}", bytes.min(64)));
        }
    }

    /// A register to the window; lanes without their bit keep what is there.
    fn store_slot(&mut self, reg: Reg, lanes: &str) {
        let slot = self.slot(reg.number);
        let at = self.place("%regs", slot);
        if reg.width == Width::Pred {
            let values = self.lanes_of(reg, false);
            let word = self.bits(&values);
            self.text
                .line(format!("call void @put1(ptr {at}, i32 {word}, i32 {lanes})"));
            return;
        }
        let bits = bits_of(reg.width).unwrap_or(32);
        if let Kind::Line { step, parts: false, .. } = self.kind(reg.number) {
            let (values, _) = self.line_of(reg, false);
            let step = Form::One.constant(bits, step);
            self.text.line(format!(
                "call void @line{bits}(ptr {at}, i{bits} {}, i{bits} {step}, i32 {lanes})",
                values[0]
            ));
            return;
        }
        let ty = self.form().int(bits);
        let values: Vec<String> = self
            .lanes_of(reg, false)
            .iter()
            .map(|value| format!("{ty} {value}"))
            .collect();
        self.text.line(format!(
            "call void @put{bits}(ptr {at}, {}, i32 {lanes})",
            values.join(", ")
        ));
    }

    /// The one NaN.
    fn canonical(&mut self, form: Form, value: &str) -> String {
        let float = self.text.float(form, 32, value);
        let nan = self.text.value(format!("fcmp uno {} {float}, {float}", form.float(32)));
        let canonical = form.constant(32, 0x7fff_ffff);
        self.text.select(form, &form.int(32), &nan, &canonical, value)
    }

    fn is_lazy(&self, reg: Reg) -> bool {
        self.plan.lazy[reg.number as usize]
    }

    /// The numbers of a line, and what it grows by. `raw`: any NaN will do.
    pub(super) fn line_of(&mut self, reg: Reg, raw: bool) -> (Vec<String>, u64) {
        let Kind::Line { step, .. } = self.kind(reg.number) else {
            unreachable!("only lines are asked for")
        };
        if self.input.body.is_fixed(reg.number) {
            return (self.fixed_values(reg), step);
        }
        self.declare(reg.number);
        let bits = bits_of(reg.width).unwrap_or(32);
        let mut values: Vec<String> = (0..self.bases_of(reg.number))
            .map(|part| self.text.value(format!("load i{bits}, ptr %r{}.{part}", reg.number)))
            .collect();
        if self.is_lazy(reg) && !raw {
            values = values.iter().map(|value| self.canonical(Form::One, value)).collect();
        }
        (values, step)
    }

    /// Parts of a register, a number a lane.
    pub(super) fn lanes_of(&mut self, reg: Reg, raw: bool) -> Vec<String> {
        let bits = bits_of(reg.width).unwrap_or(32);
        match self.kind(reg.number) {
            Kind::Line { .. } => {
                let (bases, step) = self.line_of(reg, raw);
                self.along(bits, &bases, step)
            }
            _ if self.input.body.is_fixed(reg.number) => self.fixed_values(reg),
            _ => {
                self.declare(reg.number);
                if reg.width == Width::Pred {
                    let ty = self.flag_type();
                    return (0..self.parts)
                        .map(|part| {
                            let flag = self.text.value(format!("load {ty}, ptr %r{}.{part}", reg.number));
                            self.of_flag(&flag)
                        })
                        .collect();
                }
                let ty = self.form().int(bits);
                let values: Vec<String> = (0..self.parts)
                    .map(|part| self.text.value(format!("load {ty}, ptr %r{}.{part}", reg.number)))
                    .collect();
                match self.is_lazy(reg) && !raw {
                    true => values.iter().map(|value| self.canonical(self.form(), value)).collect(),
                    false => values,
                }
            }
        }
    }

    /// All lanes of a line.
    pub(super) fn along(&mut self, bits: u32, bases: &[String], step: u64) -> Vec<String> {
        let element = format!("i{bits}");
        let lanes = self.lanes;
        let mut first: Option<String> = None;
        (0..self.parts)
            .map(|part| {
                let (all, start) = match bases {
                    [one] => {
                        let all = match &first {
                            Some(all) => all.clone(),
                            None => self.splat(&element, one),
                        };
                        first = Some(all.clone());
                        (all, part as u64 * u64::from(lanes))
                    }
                    many => (self.splat(&element, &many[part]), 0),
                };
                if step == 0 {
                    return all;
                }
                let each: Vec<String> = (0..u64::from(lanes))
                    .map(|lane| {
                        let value = step.wrapping_mul(start + lane);
                        format!("{element} {}", Form::One.constant(bits, value))
                    })
                    .collect();
                self.text
                    .binary("add", &self.form().int(bits), &all, &format!("<{}>", each.join(", ")))
            })
            .collect()
    }

    /// Writes parts to a register of lanes, in the lanes of the mask where others matter.
    pub(super) fn write_lanes(&mut self, reg: Reg, values: &[String]) {
        debug_assert!(matches!(self.kind(reg.number), Kind::Vector));
        self.declare(reg.number);
        let blend = self.guarded || (!self.full && self.plan.is_wanted_elsewhere(self.unit, reg.number));
        let mask = self.mask.clone().filter(|_| blend);
        let old = mask.as_ref().map(|_| self.lanes_of(reg, true));
        let bits = bits_of(reg.width).unwrap_or(32);
        for (part, value) in values.iter().enumerate() {
            let mut value = value.clone();
            if let (Some(mask), Some(old)) = (&mask, &old) {
                let ty = self.form().int(bits);
                value = self.text.select(self.form(), &ty, &mask[part], &value, &old[part]);
            }
            let ty = match reg.width {
                Width::Pred => {
                    value = self.flag_of(&value);
                    self.flag_type()
                }
                _ => self.form().int(bits),
            };
            self.text
                .line(format!("store {ty} {value}, ptr %r{}.{part}", reg.number));
        }
    }

    /// Writes the numbers of a line: one for all, or one a part.
    pub(super) fn write_line(&mut self, reg: Reg, values: &[String]) {
        self.declare(reg.number);
        let bits = bits_of(reg.width).unwrap_or(32);
        for part in 0..self.bases_of(reg.number) {
            let value = values.get(part).unwrap_or(&values[0]);
            self.text
                .line(format!("store i{bits} {value}, ptr %r{}.{part}", reg.number));
        }
    }

    /// Writes one number for all lanes, or one a part, whatever the register's kind.
    pub(super) fn write_same(&mut self, reg: Reg, values: &[String]) {
        if self.kind(reg.number).is_line() {
            self.write_line(reg, values);
        } else {
            let bits = bits_of(reg.width).unwrap_or(32);
            let lanes = self.along(bits, values, 0);
            self.write_lanes(reg, &lanes);
        }
    }

    // ---- coming and going -------------------------------------------------------------------------------------------------

    /// Lanes come from the interpreter, with their registers in the window.
    fn entry(&mut self, unit: Node) {
        self.unit = unit;
        self.text.label(&format!("E{unit}"));
        let live: Vec<Register> = self.plan.live[unit as usize].iter().collect();
        if self.whom == For::All {
            let together = self.field(offset_of!(Context, together), "i64", false);
            let together = self.text.value(format!("icmp ne i64 {together}, 0"));
            self.branch(&together, &format!("T{unit}"), &format!("C{unit}"));
            self.text.label(&format!("T{unit}"));
            for &register in &live {
                let reg = self.info(register);
                self.declare(register);
                match self.kind(register) {
                    Kind::Line { .. } if reg.width == Width::Pred => {
                        let slot = self.slot(register);
                        let at = self.place("%regs", slot);
                        let word = self.text.value(format!("load i32, ptr {at}"));
                        let bit = self.text.value(format!("trunc i32 {word} to i1"));
                        self.write_line(reg, &[bit]);
                    }
                    Kind::Line { parts, .. } => {
                        let bases = self.bases_in_slot(reg, parts, "");
                        self.write_line(reg, &bases);
                    }
                    _ => self.enter_lanes(reg),
                }
            }
            self.jump(&format!("F{unit}"));
            self.text.label(&format!("C{unit}"));
        }
        let mask = self.spread("%lanes");
        let mut bad: Option<String> = None;
        for register in live {
            let reg = self.info(register);
            let bits = bits_of(reg.width).unwrap_or(32);
            self.declare(register);
            let Kind::Line { step, parts, .. } = self.kind(register) else {
                self.enter_lanes(reg);
                continue;
            };
            let slot = self.slot(register);
            let differ = if reg.width == Width::Pred {
                let at = self.place("%regs", slot);
                let word = self.text.value(format!("load i32, ptr {at}"));
                let word = self.text.value(format!("and i32 {word}, %lanes"));
                let some = self.text.value(format!("icmp ne i32 {word}, 0"));
                let missing = self.text.value(format!("icmp ne i32 {word}, %lanes"));
                self.text.line(format!("store i1 {some}, ptr %r{register}.0"));
                self.text.value(format!("and i1 {some}, {missing}"))
            } else {
                let bases: Vec<String> = (0..if parts { self.parts } else { 1 })
                    .map(|part| self.first_in_slot(reg, parts.then_some(part), "%lanes", step))
                    .collect();
                for (part, base) in bases.iter().enumerate() {
                    self.text.line(format!("store i{bits} {base}, ptr %r{register}.{part}"));
                }
                if let [base] = &bases[..] {
                    let at = self.place("%regs", slot);
                    let step = Form::One.constant(bits, step);
                    self.text.value(format!(
                        "call i1 @differs{bits}(ptr {at}, i{bits} {base}, i{bits} {step}, i32 %lanes)"
                    ))
                } else {
                    let there = self.load_slot(reg);
                    let expected = self.along(bits, &bases, step);
                    let ty = self.form().int(bits);
                    let wrong: Vec<String> = there
                        .iter()
                        .zip(&expected)
                        .map(|(a, b)| self.text.value(format!("icmp ne {ty} {a}, {b}")))
                        .collect();
                    let wrong = self.each(&wrong, &mask, "and");
                    self.any(&wrong)
                }
            };
            bad = Some(match bad {
                None => differ,
                Some(bad) => self.text.value(format!("or i1 {bad}, {differ}")),
            });
        }
        if let Some(bad) = bad {
            let go = self.text.name("go");
            self.rarely(&bad, "nowhere", &go);
            self.text.label(&go);
        }
        if self.whom == For::All {
            let all = self.text.value("icmp eq i32 %lanes, -1");
            let some = self.text.name("some");
            self.branch(&all, &format!("F{unit}"), &some);
            self.text.label(&some);
            if !self.is_masked(unit) {
                self.jump("nowhere");
                return;
            }
        }
        self.store_flags(unit, &mask);
        self.jump(&format!("M{unit}"));
    }

    /// A register of lanes comes from the window.
    fn enter_lanes(&mut self, reg: Reg) {
        let values = self.load_slot(reg);
        let bits = bits_of(reg.width).unwrap_or(32);
        for (part, value) in values.iter().enumerate() {
            let (value, ty) = match reg.width {
                Width::Pred => (self.flag_of(value), self.flag_type()),
                _ => (value.clone(), self.form().int(bits)),
            };
            self.text
                .line(format!("store {ty} {value}, ptr %r{}.{part}", reg.number));
        }
    }

    /// The number of a line in the window, from its first lane that takes part; of a part's lanes, or of all.
    fn first_in_slot(&mut self, reg: Reg, part: Option<usize>, lanes: &str, step: u64) -> String {
        let bits = bits_of(reg.width).unwrap_or(32);
        let slot = self.slot(reg.number);
        let Some(part) = part else {
            let at = self.place("%regs", slot);
            let step = Form::One.constant(bits, step);
            return self.text.value(format!(
                "call i{bits} @first{bits}(ptr {at}, i{bits} {step}, i32 {lanes})"
            ));
        };
        let (count, skip) = (self.lanes, part as u32 * self.lanes);
        let word = self.text.value(format!("lshr i32 {lanes}, {skip}"));
        let first = self
            .text
            .value(format!("call i32 @llvm.cttz.i32(i32 {word}, i1 false)"));
        // Where none takes part, any will do.
        let first = self.text.value(format!("and i32 {first}, {}", count - 1));
        let wide = self.text.value(format!("zext i32 {first} to i64"));
        let at = self.place("%regs", slot + (skip * bits / 8) as usize);
        let at = self.text.value(format!("getelementptr i{bits}, ptr {at}, i64 {wide}"));
        let value = self.text.value(format!("load i{bits}, ptr {at}"));
        if step == 0 {
            return value;
        }
        let lane = self.text.resize(Form::One, 64, &wide, bits, false);
        let step = Form::One.constant(bits, step);
        let grown = self.text.value(format!("mul i{bits} {lane}, {step}"));
        self.text.value(format!("sub i{bits} {value}, {grown}"))
    }

    /// Takes down that lanes stand before a unit, or have ended there.
    fn cut(&mut self, unit: Node, lanes: &str, ended: bool) {
        let pc = self.plan.units[unit as usize].pc | if ended { ENDED } else { 0 };
        let pc = pc as i32;
        let counter = self.place("%n", offset_of!(Context, cut_count));
        let number = self.text.value(format!("load i64, ptr {counter}"));
        let next = self.text.value(format!("add i64 {number}, 1"));
        self.text.line(format!("store i64 {next}, ptr {counter}"));
        let cuts = self.place("%n", offset_of!(Context, cuts));
        let at = self.text.value(format!(
            "getelementptr [{} x i8], ptr {cuts}, i64 {number}",
            size_of::<Cut>()
        ));
        self.text.line(format!("store i32 {pc}, ptr {at}"));
        let at = self.place(&at, offset_of!(Cut, lanes));
        self.text.line(format!("store i32 {lanes}, ptr {at}"));
    }

    /// All lanes of the warp stand before a unit, and leave.
    fn leave_all(&mut self, unit: Node) {
        (self.unit, self.full, self.mask, self.guarded) = (unit, true, None, false);
        self.text.label(&format!("X{unit}"));
        let live: Vec<Register> = self.plan.live[unit as usize].iter().collect();
        for register in live {
            let reg = self.info(register);
            self.store_slot_whole(reg);
        }
        self.cut(unit, "-1", false);
        self.jump("left");
    }

    /// Lanes leave from wherever they are.
    fn leave_some(&mut self, nodes: &BTreeSet<Node>, label: &str) {
        (self.full, self.mask, self.guarded) = (false, None, false);
        self.text.label(label);
        for &node in nodes {
            let unit = self.plan.unit_of(node);
            let mask = self.load_flags(node);
            let any = self.any(&mask);
            let (some, none) = (self.text.name("some"), self.text.name("none"));
            self.branch(&any, &some, &none);
            self.text.label(&some);
            let bits = self.bits(&mask);
            let live: Vec<Register> = self.plan.live[unit as usize].iter().collect();
            for register in live {
                let reg = self.info(register);
                self.store_slot(reg, &bits);
            }
            self.cut(unit, &bits, false);
            self.jump(&none);
            self.text.label(&none);
        }
        self.jump("left");
    }

    /// The way out for lanes at any of these nodes.
    fn chain(&mut self, nodes: BTreeSet<Node>) -> String {
        let next = self.chains.len();
        self.chains
            .entry(nodes)
            .or_insert_with(|| format!("chain{next}"))
            .clone()
    }

    /// Goes on behind the current unit, under masks: at the lowest unit where somebody waits. Lanes of the unit were added
    /// to `next`, unless there are none (`perhaps_nobody`); others may be elsewhere.
    fn dispatch(&mut self, next: &[Node], from_full: bool, perhaps_nobody: bool) {
        let mut nodes: BTreeSet<Node> = next.iter().copied().collect();
        if !from_full {
            nodes.extend(self.plan.others[self.unit as usize].iter().copied());
        }
        let units: Vec<Node> = nodes
            .iter()
            .copied()
            .filter(|&node| !self.plan.is_stuck(node))
            .collect();
        let anybody_stuck = units.len() < nodes.len() || perhaps_nobody;
        let unit = self.unit;
        for (at, &to) in units.iter().enumerate() {
            let last = at + 1 == units.len() && !anybody_stuck;
            let (run, skip) = (self.text.name("run"), self.text.name("skip"));
            if !last {
                let mask = self.load_flags(to);
                let any = self.any(&mask);
                self.branch(&any, &run, &skip);
                self.text.label(&run);
            }
            match self.plan.loops.get(&(unit, to)).copied() {
                Some((count, looks)) if to <= unit => {
                    let over = self.spend(count, looks);
                    let chain = self.chain(nodes.clone());
                    self.rarely(&over, &chain, &format!("M{to}"));
                }
                _ if to <= unit => {
                    // Others of the loop go round first: they pay.
                    let over = self.spend(1, false);
                    let chain = self.chain(nodes.clone());
                    self.rarely(&over, &chain, &format!("M{to}"));
                }
                _ => self.jump(&format!("M{to}")),
            }
            if last {
                return;
            }
            self.text.label(&skip);
        }
        match nodes.is_empty() {
            true => self.jump("left"),
            false => {
                let chain = self.chain(nodes);
                self.jump(&chain);
            }
        }
    }

    /// A turn of a loop is paid for; gives whether there is nothing left.
    fn spend(&mut self, count: u32, looks: bool) -> String {
        let budget = self.text.value("load i64, ptr %budget");
        let mut rest = self.text.value(format!("sub i64 {budget}, {count}"));
        if looks {
            let at = self.place("%n", offset_of!(Context, looked));
            let looked = self.text.value(format!("load i64, ptr {at}"));
            self.text.line(format!("store i64 0, ptr {at}"));
            let looked = self.text.value(format!("icmp ne i64 {looked}, 0"));
            let more = self
                .text
                .value(format!("select i1 {looked}, i64 {}, i64 0", super::SPIN));
            rest = self.text.value(format!("sub i64 {rest}, {more}"));
        }
        self.text.line(format!("store i64 {rest}, ptr %budget"));
        self.text.value(format!("icmp slt i64 {rest}, 0"))
    }

    /// The lanes of the current mask leave before the current unit.
    pub(super) fn stick(&mut self) {
        let unit = self.unit;
        if self.full {
            self.leaves.insert(unit);
            self.jump(&format!("X{unit}"));
            return;
        }
        let stuck = self.plan.stuck(unit);
        if let Some(mask) = self.here.clone() {
            self.add_flags(stuck, &mask);
        }
        self.dispatch(&[stuck], false, false);
    }

    // ---- units -------------------------------------------------------------------------------------------------------------

    fn unit(&mut self, unit: Node, full: bool) {
        (self.unit, self.full, self.guarded, self.mask) = (unit, full, false, None);
        let this = &self.plan.units[unit as usize];
        let (insts, block, stick) = (this.insts.clone(), this.block as usize, this.stick);
        self.text.label(&format!("{}{unit}", if full { 'F' } else { 'M' }));
        if !full {
            let mask = self.load_flags(unit);
            if self.flags.contains(&unit) {
                let nobody = vec![self.form().constant(1, 0); self.parts];
                self.store_flags(unit, &nobody);
            }
            if self.whom == For::All && self.plan.others[unit as usize].is_empty() {
                let (all, some) = (self.all(&mask), self.text.name("some"));
                self.branch(&all, &format!("F{unit}"), &some);
                self.text.label(&some);
            }
            self.mask = Some(mask);
        }
        self.here = self.mask.clone();
        let body = self.input.body;
        if matches!(stick, Stick::Always | Stick::Ends) {
            let inst = body.blocks[block].insts.get(insts.start).filter(|_| !insts.is_empty());
            let guard = inst.and_then(|inst| inst.guard);
            match stick {
                Stick::Ends => self.ends(guard),
                _ => self.always_sticks(guard),
            }
            return;
        }
        let here = self.mask.clone();
        for at in insts {
            let inst = &body.blocks[block].insts[at];
            let pc = self.input.starts[block] + at as Pc;
            self.inst(inst, pc);
            (self.guarded, self.mask) = (false, here.clone());
        }
        self.exit();
    }

    fn is_masked(&self, unit: Node) -> bool {
        self.whom == For::Some || !self.plan.others[unit as usize].is_empty()
    }

    /// Lanes come together at a unit while nobody is elsewhere: all of the warp, or they leave.
    fn joined(&mut self, unit: Node) {
        (self.unit, self.full, self.guarded, self.mask) = (unit, false, false, None);
        self.text.label(&format!("M{unit}"));
        let mask = self.load_flags(unit);
        let (all, some) = (self.all(&mask), self.text.name("some"));
        self.branch(&all, &format!("F{unit}"), &some);
        self.text.label(&some);
        let chain = self.chain(BTreeSet::from([unit]));
        self.jump(&chain);
    }

    /// Threads end: they leave at once, for they want nothing more.
    fn ends(&mut self, guard: Option<Guard>) {
        let unit = self.unit;
        let next = match (&self.plan.units[unit as usize].exit, guard) {
            (Exit::To(next), Some(guard)) => Some((*next, guard)),
            _ => None,
        };
        let Some((next, guard)) = next else {
            let bits = self.mask_bits();
            self.cut(unit, &bits, true);
            match self.full {
                true => self.jump("left"),
                false => self.dispatch(&[], false, true),
            }
            return;
        };
        let here = self.mask.clone();
        let line = self.kind(guard.reg.number).is_line();
        let (leave, stay) = (self.text.name("leave"), self.text.name("stay"));
        if line {
            let holds = self.holds(guard);
            self.branch(&holds, &leave, &stay);
            self.text.label(&leave);
            let bits = self.mask_bits();
            self.cut(unit, &bits, true);
            match self.full {
                true => self.jump("left"),
                false => self.dispatch(&[], false, true),
            }
            self.text.label(&stay);
            self.go(next);
            return;
        }
        let mut gone = self.holding(guard);
        let mut rest = self.not(&gone);
        if let Some(here) = &here {
            gone = self.each(here, &gone, "and");
            rest = self.each(here, &rest, "and");
        }
        let bits = self.bits(&gone);
        let any = self.text.value(format!("icmp ne i32 {bits}, 0"));
        self.branch(&any, &leave, &stay);
        self.text.label(&leave);
        self.cut(unit, &bits, true);
        self.store_or_add(next, &rest);
        self.dispatch(&[next], self.full, true);
        self.text.label(&stay);
        self.go(next);
    }

    fn store_or_add(&mut self, node: Node, mask: &[String]) {
        match self.full {
            true => self.store_flags(node, mask),
            false => self.add_flags(node, mask),
        }
    }

    fn always_sticks(&mut self, guard: Option<Guard>) {
        let unit = self.unit;
        let Exit::To(next) = self.plan.units[unit as usize].exit else {
            self.stick();
            return;
        };
        let Some(guard) = guard else {
            self.stick();
            return;
        };
        if self.kind(guard.reg.number).is_line() {
            let holds = self.holds(guard);
            let (leave, stay) = (self.text.name("leave"), self.text.name("stay"));
            self.branch(&holds, &leave, &stay);
            self.text.label(&leave);
            self.stick();
            self.text.label(&stay);
            self.go(next);
            return;
        }
        self.part_ways(guard, self.plan.stuck(unit), next);
    }

    /// A guard that is the same for all lanes.
    fn holds(&mut self, guard: Guard) -> String {
        let (values, _) = self.line_of(guard.reg, false);
        match guard.negated {
            true => self.text.value(format!("xor i1 {}, true", values[0])),
            false => values[0].clone(),
        }
    }

    /// Lanes in which a guard holds.
    fn holding(&mut self, guard: Guard) -> Vec<String> {
        let lanes = self.lanes_of(guard.reg, false);
        match guard.negated {
            true => self.not(&lanes),
            false => lanes,
        }
    }

    /// All lanes go on at a unit.
    fn go(&mut self, to: Node) {
        let unit = self.unit;
        if !self.full {
            let mask = self.mask.clone().unwrap_or_default();
            let next = self.send(&[(to, mask)]);
            self.dispatch(&next, false, next.is_empty());
            return;
        }
        match self.plan.loops.get(&(unit, to)).copied() {
            Some((count, looks)) => {
                let over = self.spend(count, looks);
                self.leaves.insert(to);
                self.rarely(&over, &format!("X{to}"), &format!("F{to}"));
            }
            None => self.jump(&format!("F{to}")),
        }
    }

    /// Lanes go to nodes; those that come to an end there end at once. Gives the nodes where somebody may be now.
    fn send(&mut self, to: &[(Node, Vec<String>)]) -> Vec<Node> {
        let mut next = Vec::new();
        for (node, mask) in to {
            if !self.plan.is_end(*node) {
                self.store_or_add(*node, mask);
                next.push(*node);
                continue;
            }
            let bits = self.bits(mask);
            let any = self.text.value(format!("icmp ne i32 {bits}, 0"));
            let (end, go) = (self.text.name("end"), self.text.name("go"));
            self.branch(&any, &end, &go);
            self.text.label(&end);
            self.cut(*node, &bits, true);
            self.jump(&go);
            self.text.label(&go);
        }
        next
    }

    /// Lanes in which the guard holds go to `taken`, where they may be stuck, the others to `fall`.
    fn part_ways(&mut self, guard: Guard, taken: Node, fall: Node) {
        let holding = self.holding(guard);
        if self.full {
            let bits = self.bits(&holding);
            let all = self.text.value(format!("icmp eq i32 {bits}, -1"));
            let none = self.text.value(format!("icmp eq i32 {bits}, 0"));
            let [yes, not_all, no, mixed] = ["yes", "part", "no", "mixed"].map(|what| self.text.name(what));
            self.branch(&all, &yes, &not_all);
            self.text.label(&yes);
            match self.plan.is_stuck(taken) {
                true => self.stick(),
                false => self.go(taken),
            }
            self.text.label(&not_all);
            self.branch(&none, &no, &mixed);
            self.text.label(&no);
            self.go(fall);
            self.text.label(&mixed);
            let rest = self.not(&holding);
            let next = self.send(&[(taken, holding), (fall, rest)]);
            self.dispatch(&next, true, false);
            return;
        }
        let mask = self.mask.clone().unwrap_or_default();
        let there = self.each(&mask, &holding, "and");
        let not = self.not(&holding);
        let rest = self.each(&mask, &not, "and");
        let next = self.send(&[(taken, there), (fall, rest)]);
        self.dispatch(&next, false, next.len() < 2);
    }

    fn exit(&mut self) {
        let unit = self.unit;
        match self.plan.units[unit as usize].exit.clone() {
            // Nothing is there: whoever comes here leaves.
            Exit::None => self.stick(),
            Exit::To(to) => self.go(to),
            Exit::Branch { guard, taken, fall } if self.kind(guard.reg.number).is_line() => {
                let holds = self.holds(guard);
                let (yes, no) = (self.text.name("yes"), self.text.name("no"));
                self.branch(&holds, &yes, &no);
                self.text.label(&yes);
                self.go(taken);
                self.text.label(&no);
                self.go(fall);
            }
            Exit::Branch { guard, taken, fall } => self.part_ways(guard, taken, fall),
        }
    }

    // ---- instructions -----------------------------------------------------------------------------------------------------

    fn inst(&mut self, inst: &Inst, pc: Pc) {
        let Some(guard) = inst.guard else {
            self.op(&inst.op, pc);
            return;
        };
        if self.kind(guard.reg.number).is_line() {
            let holds = self.holds(guard);
            let (run, skip) = (self.text.name("do"), self.text.name("done"));
            self.branch(&holds, &run, &skip);
            self.text.label(&run);
            self.op(&inst.op, pc);
            self.jump(&skip);
            self.text.label(&skip);
            return;
        }
        let mut mask = self.holding(guard);
        if let Some(here) = self.mask.clone() {
            mask = self.each(&here, &mask, "and");
        }
        self.guarded = true;
        if let Op::Compute { .. } = inst.op {
            self.mask = Some(mask);
            self.op(&inst.op, pc);
            return;
        }
        let any = self.any(&mask);
        let (run, skip) = (self.text.name("do"), self.text.name("done"));
        self.branch(&any, &run, &skip);
        self.text.label(&run);
        self.mask = Some(mask);
        self.op(&inst.op, pc);
        self.jump(&skip);
        self.text.label(&skip);
    }

    fn op(&mut self, op: &Op, pc: Pc) {
        match op {
            Op::Compute { op: what, dst, src } => self.compute(*what, dst, src, op, pc),
            Op::Load {
                address,
                element,
                ordering: Ordering::Weak,
                dst,
                ..
            } => {
                if !self.load(address, *element, dst, op, pc) {
                    self.step(op, pc, None);
                }
            }
            Op::Store {
                address,
                element,
                ordering: Ordering::Weak,
                src,
                ..
            } => {
                if !self.store(address, *element, src, op, pc) {
                    self.step(op, pc, None);
                }
            }
            Op::ConvertAddress {
                space: space @ (Space::Shared | Space::Generic | Space::Global | Space::Const),
                to_generic,
                dst,
                src,
            } if dst.width == src.width && dst.width == Width::B64 => {
                let base = match space {
                    Space::Shared => self.field(offset_of!(Context, cluster_shared), "i64", true),
                    _ => "0".to_owned(),
                };
                let change = if *to_generic { "add" } else { "sub" };
                if self.kind(dst.number).is_line() && self.kind(src.number).is_line() {
                    let (values, _) = self.line_of(*src, false);
                    let values: Vec<String> = values
                        .iter()
                        .map(|value| self.text.binary(change, "i64", value, &base))
                        .collect();
                    self.write_line(*dst, &values);
                } else {
                    let values = self.lanes_of(*src, false);
                    let base = self.splat("i64", &base);
                    let ty = self.form().int(64);
                    let values: Vec<String> = values
                        .iter()
                        .map(|value| self.text.binary(change, &ty, value, &base))
                        .collect();
                    self.write_lanes(*dst, &values);
                }
            }
            _ => self.step(op, pc, None),
        }
    }

    fn compute(&mut self, what: Compute, dst: &[Reg], src: &[Reg], op: &Op, pc: Pc) {
        if dst.iter().chain(src).any(|reg| reg.width == Width::B128) {
            self.step(op, pc, None);
            return;
        }
        let raw = compute::takes_any_nan(what);
        let constants: Vec<Option<u64>> = src
            .iter()
            .map(|reg| self.input.body.constant(reg.number).map(|bits| bits as u64))
            .collect();
        let line = dst.iter().all(|reg| self.kind(reg.number).is_line());
        if line {
            self.must_not_wrap(what, src);
            let count = dst.iter().map(|reg| self.bases_of(reg.number)).max().unwrap_or(1);
            let sources: Vec<Vec<String>> = src
                .iter()
                .map(|&reg| {
                    let (values, step) = self.line_of(reg, raw);
                    self.by_part(reg, values, step, count)
                })
                .collect();
            let mut results: Vec<Vec<String>> = vec![Vec::new(); dst.len()];
            for part in 0..count {
                let these: Vec<String> = sources
                    .iter()
                    .map(|values| values.get(part).unwrap_or(&values[0]).clone())
                    .collect();
                let mut emitter = Emitter {
                    text: &mut self.text,
                    form: Form::One,
                    level: self.level,
                };
                match emitter.emit(what, &these, &constants, dst.len()) {
                    Some(values) => {
                        for ((value, results), reg) in values.into_iter().zip(&mut results).zip(dst) {
                            let value = match compute::gives_any_nan(what) && !self.is_lazy(*reg) {
                                true => self.canonical(Form::One, &value),
                                false => value,
                            };
                            results.push(value);
                        }
                    }
                    None => {
                        results = self.kernel_on_lines(what, dst, src, &sources, count);
                        break;
                    }
                }
            }
            for (reg, values) in dst.iter().zip(&results) {
                self.write_line(*reg, values);
            }
            if compute::carries_nan(what) {
                let mut nan: Option<String> = None;
                for value in &results[0] {
                    let float = self.text.float(Form::One, 64, value);
                    let this = self.text.value(format!("fcmp uno double {float}, {float}"));
                    nan = Some(match nan {
                        None => this,
                        Some(nan) => self.text.binary("or", "i1", &nan, &this),
                    });
                }
                let (again, go) = (self.text.name("again"), self.text.name("go"));
                self.rarely(&nan.unwrap_or_default(), &again, &go);
                self.text.label(&again);
                let values = self.kernel_on_lines(what, dst, src, &sources, count);
                self.write_line(dst[0], &values[0]);
                self.jump(&go);
                self.text.label(&go);
            }
            return;
        }
        let sources: Vec<Vec<String>> = src.iter().map(|&reg| self.lanes_of(reg, raw)).collect();
        let mut results: Vec<Vec<String>> = vec![Vec::new(); dst.len()];
        let mut by_kernel = false;
        for part in 0..self.parts {
            let these: Vec<String> = sources.iter().map(|values| values[part].clone()).collect();
            let form = self.form();
            let mut emitter = Emitter {
                text: &mut self.text,
                form,
                level: self.level,
            };
            let Some(values) = emitter.emit(what, &these, &constants, dst.len()) else {
                by_kernel = true;
                break;
            };
            for ((value, results), reg) in values.into_iter().zip(&mut results).zip(dst) {
                let value = match compute::gives_any_nan(what) && !self.is_lazy(*reg) {
                    true => self.canonical(form, &value),
                    false => value,
                };
                results.push(value);
            }
        }
        if by_kernel {
            results = self.kernel(what, dst, src, &sources);
        }
        if compute::carries_nan(what) && !by_kernel {
            let ty = self.form().float(64);
            let nan: Vec<String> = results[0]
                .clone()
                .iter()
                .map(|value| {
                    let float = self.text.float(self.form(), 64, value);
                    self.text.value(format!("fcmp uno {ty} {float}, {float}"))
                })
                .collect();
            let any = self.any(&nan);
            let (again, go, from) = (self.text.name("again"), self.text.name("go"), self.text.name("from"));
            self.jump(&from);
            self.text.label(&from);
            self.rarely(&any, &again, &go);
            self.text.label(&again);
            let exact = self.kernel(what, dst, src, &sources);
            self.jump(&go);
            self.text.label(&go);
            let ty = self.form().int(64);
            results[0] = results[0]
                .clone()
                .iter()
                .zip(&exact[0])
                .map(|(quick, exact)| {
                    self.text
                        .value(format!("phi {ty} [ {quick}, %{from} ], [ {exact}, %{again} ]"))
                })
                .collect();
        }
        for (reg, values) in dst.iter().zip(&results) {
            if self.kind(reg.number).is_line() {
                // One of two results is a line; the first lane's is everybody's.
                let ty = self.form().int(bits_of(reg.width).unwrap_or(32));
                let first: Vec<String> = values
                    .iter()
                    .map(|value| self.text.value(format!("extractelement {ty} {value}, i64 0")))
                    .collect();
                self.write_line(*reg, &first);
            } else {
                self.write_lanes(*reg, values);
            }
        }
    }

    /// The numbers of a line, of as many parts.
    fn by_part(&mut self, reg: Reg, values: Vec<String>, step: u64, count: usize) -> Vec<String> {
        if values.len() == count || step == 0 {
            return values;
        }
        let bits = bits_of(reg.width).unwrap_or(32);
        (0..count as u64)
            .map(|part| {
                let further = Form::One.constant(bits, step.wrapping_mul(part * u64::from(self.lanes)));
                self.text.binary("add", &format!("i{bits}"), &values[0], &further)
            })
            .collect()
    }

    /// A line that is widened must not wrap around between its lanes: else they leave the code before the instruction.
    fn must_not_wrap(&mut self, what: Compute, src: &[Reg]) {
        let Some((at, signed)) = what
            .linear()
            .and_then(|linear| widened(linear, |at| self.kind(src[at].number)))
        else {
            return;
        };
        let (bases, step) = self.line_of(src[at], false);
        let last = if bases.len() == 1 {
            31
        } else {
            i64::from(self.lanes) - 1
        };
        let far = i64::from(step as u32 as i32) * last;
        let extend = if signed { "sext" } else { "zext" };
        let mut bad: Option<String> = None;
        for base in bases {
            let wide = self.text.value(format!("{extend} i32 {base} to i64"));
            let end = self.text.value(format!("add i64 {wide}, {far}"));
            let low = self.text.value(format!("trunc i64 {end} to i32"));
            let back = self.text.value(format!("{extend} i32 {low} to i64"));
            let wraps = self.text.value(format!("icmp ne i64 {back}, {end}"));
            bad = Some(match bad {
                None => wraps,
                Some(bad) => self.text.binary("or", "i1", &bad, &wraps),
            });
        }
        let (wraps, go) = (self.text.name("wraps"), self.text.name("go"));
        self.rarely(&bad.unwrap_or_default(), &wraps, &go);
        self.text.label(&wraps);
        self.stick();
        self.text.label(&go);
    }

    /// The interpreter's kernel of an operation, on lines: the numbers of the results.
    fn kernel_on_lines(
        &mut self,
        what: Compute,
        dst: &[Reg],
        src: &[Reg],
        sources: &[Vec<String>],
        count: usize,
    ) -> Vec<Vec<String>> {
        let lanes: Vec<Vec<String>> = src
            .iter()
            .zip(sources)
            .map(|(reg, values)| {
                let step = match self.kind(reg.number) {
                    Kind::Line { step, .. } => step,
                    _ => 0,
                };
                self.along(bits_of(reg.width).unwrap_or(32), values, step)
            })
            .collect();
        let results = self.kernel(what, dst, src, &lanes);
        dst.iter()
            .zip(results)
            .map(|(reg, values)| {
                let ty = self.form().int(bits_of(reg.width).unwrap_or(32));
                values[..count]
                    .iter()
                    .map(|value| self.text.value(format!("extractelement {ty} {value}, i64 0")))
                    .collect()
            })
            .collect()
    }

    /// The interpreter's kernel of an operation, on a copy of the operands.
    fn kernel(&mut self, what: Compute, dst: &[Reg], src: &[Reg], sources: &[Vec<String>]) -> Vec<Vec<String>> {
        /// Room for a warp's numbers of 64 bits.
        const ROOM: u32 = 256;
        let call = match self.call_of.get(&(what, dst.len())) {
            Some(&call) => call,
            None => {
                let lane = what.lane().named(dst.len());
                let mut operands = Operands {
                    imm: lane.constant,
                    ..Operands::default()
                };
                for (number, to) in operands.dst.iter_mut().enumerate().take(dst.len()) {
                    *to = number as u32 * ROOM;
                }
                for (number, from) in operands.src.iter_mut().enumerate().take(src.len()) {
                    *from = (2 + number as u32) * ROOM;
                }
                self.calls.push(LaneCall {
                    run: lane.kernel.full,
                    operands,
                    mask: Mask {
                        warps: 1,
                        lanes: [u32::MAX; crate::isa::lanes::MAX_WARPS],
                    },
                });
                self.call_of.insert((what, dst.len()), self.calls.len() - 1);
                self.calls.len() - 1
            }
        };
        for (number, (reg, values)) in src.iter().zip(sources).enumerate() {
            let start = (2 + number) * ROOM as usize;
            if reg.width == Width::Pred {
                let word = self.bits(values);
                let at = self.place("%scratch", start);
                self.text.line(format!("store i32 {word}, ptr {at}"));
                continue;
            }
            let bits = bits_of(reg.width).unwrap_or(32);
            let ty = self.form().int(bits);
            let bytes = (bits / 8 * self.lanes) as usize;
            for (part, value) in values.iter().enumerate() {
                let at = self.place("%scratch", start + part * bytes);
                self.text
                    .line(format!("store {ty} {value}, ptr {at}, align {}", bytes.min(64)));
            }
        }
        let helper = self.field(offset_of!(Context, lane), "ptr", true);
        let calls = self.field(offset_of!(Context, calls), "ptr", true);
        let this = self.place(&calls, call * size_of::<LaneCall>());
        self.text.line(format!("call void {helper}(ptr {this}, ptr %scratch)"));
        dst.iter()
            .enumerate()
            .map(|(number, reg)| {
                let start = number * ROOM as usize;
                if reg.width == Width::Pred {
                    let at = self.place("%scratch", start);
                    let word = self.text.value(format!("load i32, ptr {at}"));
                    return self.spread(&word);
                }
                let bits = bits_of(reg.width).unwrap_or(32);
                let ty = self.form().int(bits);
                let bytes = (bits / 8 * self.lanes) as usize;
                (0..self.parts)
                    .map(|part| {
                        let at = self.place("%scratch", start + part * bytes);
                        self.text.value(format!("load {ty}, ptr {at}, align {}", bytes.min(64)))
                    })
                    .collect()
            })
            .collect()
    }

    /// The interpreter carries out an instruction for the lanes of the mask: operands go to the window, results come back
    /// from there.
    pub(super) fn step(&mut self, op: &Op, pc: Pc, site: Option<usize>) {
        let mut defs = Vec::new();
        let mut seen: Vec<Reg> = Vec::new();
        op.regs(|&reg, role| match role {
            Role::Use if !seen.contains(&reg) => seen.push(reg),
            Role::Def if !defs.contains(&reg) => defs.push(reg),
            Role::Use | Role::Def => {}
        });
        let lanes = self.mask_bits();
        for reg in seen {
            if reg.width != Width::B128 && !self.input.body.is_fixed(reg.number) {
                self.store_slot(reg, &lanes);
            }
        }
        let helper = self.field(offset_of!(Context, step), "ptr", true);
        let site = site.map_or(u32::MAX, |site| site as u32) as i32;
        let answer = self.text.value(format!(
            "call i32 {helper}(ptr %n, ptr %regs, i32 {pc}, i32 {lanes}, i32 {site})"
        ));
        let done = self.text.value(format!("icmp eq i32 {answer}, {}", step::DONE));
        let (go, not) = (self.text.name("go"), self.text.name("not"));
        self.branch(&done, &go, &not);
        self.text.label(&not);
        if self.plan.units[self.unit as usize].stick == Stick::Perhaps {
            let missing = self.text.value(format!("icmp eq i32 {answer}, {}", step::MISSING));
            let stuck = self.text.name("stuck");
            self.branch(&missing, &stuck, "fault");
            self.text.label(&stuck);
            self.stick();
        } else {
            self.jump("fault");
        }
        self.text.label(&go);
        for reg in defs {
            if reg.width == Width::B128 {
                continue;
            }
            if let Kind::Line { step, parts, .. } = self.kind(reg.number) {
                if reg.width == Width::Pred {
                    let at = self.slot(reg.number);
                    let at = self.place("%regs", at);
                    let word = self.text.value(format!("load i32, ptr {at}"));
                    let word = self.text.value(format!("and i32 {word}, {lanes}"));
                    let some = self.text.value(format!("icmp ne i32 {word}, 0"));
                    self.write_line(reg, &[some]);
                    continue;
                }
                let bases: Vec<String> = (0..if parts { self.parts } else { 1 })
                    .map(|part| self.first_in_slot(reg, parts.then_some(part), &lanes, step))
                    .collect();
                self.write_line(reg, &bases);
            } else {
                let values = self.load_slot(reg);
                self.write_lanes(reg, &values);
            }
        }
    }

    /// Where lanes that take no part in a store write to.
    pub(super) fn nowhere(&mut self) -> String {
        let at = self.place("%n", offset_of!(Context, scratch));
        self.text.value(format!("ptrtoint ptr {at} to i64"))
    }
}
