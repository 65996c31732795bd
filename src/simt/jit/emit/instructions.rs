//! An instruction: for which lanes, and by whom it is carried out.

use std::mem::offset_of;
use std::ops::RangeInclusive;

use crate::isa::lanes::Width;
use crate::program::{Element, Inst, Op, Ordering, Reg, Register, Role, Space, Special};

use super::super::Pc;
use super::super::compute::bits_of;
use super::super::context::{Context, Stretch, step};
use super::super::plan::{Exit, Stick};
use super::super::text::Form;
use super::Emit;

impl Emit<'_> {
    pub(super) fn inst(&mut self, inst: &Inst, pc: Pc) {
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

    pub(super) fn op(&mut self, op: &Op, pc: Pc) {
        match op {
            Op::Compute { op: what, dst, src } => self.compute(*what, dst, src, op, pc),
            Op::Load {
                address,
                element,
                ordering,
                dst,
                ..
            } => {
                self.keep_order(*ordering);
                if *ordering != Ordering::Weak {
                    self.looks();
                }
                let done = match is_packed(*ordering, *element, dst.len()) {
                    true => self.load_packed(address, *element, dst, op, pc),
                    false => self.load(address, *element, dst, op, pc),
                };
                if !done {
                    self.step(op, pc, None);
                }
                self.keep_order(*ordering);
            }
            Op::Store {
                address,
                element,
                ordering,
                src,
                ..
            } => {
                self.keep_order(*ordering);
                let done = match is_packed(*ordering, *element, src.len()) {
                    true => self.store_packed(address, *element, src, op, pc),
                    false => self.store(address, *element, src, op, pc),
                };
                if !done {
                    self.step(op, pc, None);
                }
                self.keep_order(*ordering);
            }
            // It may take no time (PTX ISA, nanosleep); a loop that waits in it gives way as any other that does.
            Op::Nanosleep => self.looks(),
            Op::Atomic { .. } => {
                if !self.atomic(op, pc) {
                    self.step(op, pc, None);
                }
            }
            Op::Within(within) => self.within(within, op, pc),
            Op::ConvertAddress {
                space: Space::Local,
                to_generic,
                dst,
                src,
            } if dst.width == src.width && dst.width == Width::B64 => self.convert_local(*to_generic, *dst, *src),
            Op::ConvertAddress {
                space,
                to_generic,
                dst,
                src,
            } if dst.width == src.width && dst.width == Width::B64 => {
                let base = match space {
                    Space::Shared => self.field(offset_of!(Context, cluster_shared), "i64", true),
                    Space::Param => self.field(offset_of!(Context, param), "i64", true),
                    Space::Local | Space::Generic | Space::Global | Space::Const => "0".to_owned(),
                };
                let change = if *to_generic { "add" } else { "sub" };
                if self.kind(dst.number).is_line() && self.kind(src.number).is_line() {
                    let values: Vec<String> = self
                        .bases(*src, false, self.kept_bases_of(dst.number))
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
            Op::FrameAddress { dst, offset } if matches!(dst.width, Width::B32 | Width::B64) => {
                let frame = self.field(offset_of!(Context, frame), "i64", true);
                let address = self.text.value(format!("add i64 {frame}, {offset}"));
                let bits = bits_of(dst.width).unwrap_or(64);
                let address = self.text.resize(Form::One, 64, &address, bits, false);
                self.write_same(*dst, &[address]);
            }
            // The CPU's time stamp, as the interpreter reads it.
            Op::ReadSpecial {
                which: which @ (Special::Clock | Special::ClockHi | Special::Clock64),
                dst,
            } => {
                let mut ticks = self.text.value("call i64 @llvm.readcyclecounter()");
                if *which == Special::ClockHi {
                    ticks = self.text.value(format!("lshr i64 {ticks}, 32"));
                }
                let ticks = self
                    .text
                    .resize(Form::One, 64, &ticks, bits_of(dst.width).unwrap_or(64), false);
                self.write_same(*dst, &[ticks]);
            }
            Op::Shuffle { .. } => {
                if !self.shuffle(op, pc) {
                    self.step(op, pc, None);
                }
            }
            Op::WarpBarrier { .. }
            | Op::Vote { .. }
            | Op::Redux { .. }
            | Op::Activemask { .. }
            | Op::Elect { .. }
            | Op::Match { .. } => {
                if !self.collective(op, pc) {
                    self.step(op, pc, None);
                }
            }
            // Others are left before.
            Op::Joint(joint) => {
                if !self.matrix(joint, op, pc) {
                    self.step(op, pc, None);
                }
            }
            Op::CopyAsync { .. } => {
                if !self.copy_async(op, pc) {
                    self.step(op, pc, None);
                }
            }
            Op::Texture(texture) => {
                if !self.texel(texture, op, pc) {
                    self.step(op, pc, None);
                }
            }
            Op::CopyGroup(_) => self.copy_group(op, pc),
            // As the interpreter's: a full one, whatever it asks for.
            Op::Fence { .. } => self.text.line("fence seq_cst"),
            Op::ConvertAddress { .. }
            | Op::ReadSpecial { .. }
            | Op::FrameAddress { .. }
            | Op::IsSpace { .. }
            | Op::Surface(_)
            | Op::Shadow(_)
            | Op::HandleQuery { .. }
            | Op::IsHandle { .. } => self.step(op, pc, None),
            Op::Call { .. }
            | Op::Return
            | Op::Exit
            | Op::Trap
            | Op::Breakpoint
            | Op::Barrier { .. }
            | Op::Alloca { .. }
            | Op::StackSave { .. }
            | Op::StackRestore { .. }
            | Op::Syscall { .. } => unreachable!("lanes leave before these: the plan says so"),
        }
    }

    /// `cvta.local`, `cvta.to.local`: each lane's local memory has a place of its own.
    fn convert_local(&mut self, to_generic: bool, dst: Reg, src: Reg) {
        let ty = self.form().int(64);
        let local = self.splat("i64", "%local");
        let stride = self.field(offset_of!(Context, local_stride), "i64", true);
        let strides = self.splat("i64", &stride);
        let change = if to_generic { "add" } else { "sub" };
        let values = self.lanes_of(src, false);
        let values: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(part, value)| {
                let lanes: Vec<String> = (0..self.lanes)
                    .map(|lane| format!("i64 {}", part as u32 * self.lanes + lane))
                    .collect();
                let lanes = format!("<{}>", lanes.join(", "));
                let own = self.text.binary("mul", &ty, &strides, &lanes);
                let start = self.text.binary("add", &ty, &local, &own);
                self.text.binary(change, &ty, value, &start)
            })
            .collect();
        self.write_lanes(dst, &values);
    }

    /// Lanes have looked at what others may change: if a loop does little else, it spins ([`Emit::spend`]).
    pub(super) fn looks(&mut self) {
        let looked = self.place("%n", offset_of!(Context, looked));
        self.text.line(format!("store i64 1, ptr {looked}"));
    }

    /// LLVM moves nothing past a strong access, leaves none of them out and makes no two of them one. For the CPU no more is needed:
    /// x86 has the words that lanes load and store, which are aligned, whole, and keeps loads in order, and stores, and both behind loads.
    /// (What vectors are made of is no such word: [`is_packed`].)
    fn keep_order(&mut self, ordering: Ordering) {
        if ordering != Ordering::Weak {
            self.text.line("fence syncscope(\"singlethread\") seq_cst");
        }
    }

    /// The interpreter carries out an instruction for the lanes of the mask.
    pub(super) fn step(&mut self, op: &Op, pc: Pc, site: Option<usize>) {
        let (mut wants, mut gives) = (Vec::new(), Vec::new());
        op.regs(|&reg, role| match role {
            Role::Use if !wants.contains(&reg) => wants.push(reg),
            Role::Def if !gives.contains(&reg) => gives.push(reg),
            Role::Use | Role::Def => {}
        });
        let alone = self.alone_sites.get(&pc).copied();
        let sites = site.into_iter().chain(alone);
        let stretch = Stretch {
            count: 1,
            guarded: false,
            sites: sites.map(|site| (0, site as u32)).collect(),
            ..Stretch::default()
        };
        self.by_interpreter(pc, &wants, &gives, stretch);
    }

    /// The interpreter carries out an instruction where this bit says so, which is rare; else nobody does.
    pub(super) fn step_if(&mut self, bit: &str, op: &Op, pc: Pc, site: Option<usize>) {
        let (slow, go) = (self.text.name("slow"), self.text.name("go"));
        self.rarely(bit, &slow, &go);
        self.text.label(&slow);
        self.step(op, pc, site);
        self.jump(&go);
        self.text.label(&go);
    }

    /// The interpreter carries out all instructions of a stretch of a unit, for the lanes that run: one that has no place where
    /// they leave. `sites` are those of its accesses that learn where memory is.
    pub(super) fn steps(&mut self, block: usize, stretch: RangeInclusive<usize>, sites: Vec<(u32, u32)>) {
        let body = self.input.body;
        let insts = &body.blocks[block].insts[stretch.clone()];
        let mut wants: Vec<Reg> = Vec::new();
        let mut gives: Vec<Reg> = Vec::new();
        for inst in insts {
            let guarded = inst.guard.is_some();
            let mut want = |reg: Reg, gives: &[Reg]| {
                if !gives.contains(&reg) && !wants.contains(&reg) {
                    wants.push(reg);
                }
            };
            if let Some(guard) = inst.guard {
                want(guard.reg, &gives);
            }
            inst.op.regs(|&reg, role| {
                // Lanes that a guard leaves out keep what was there.
                if role == Role::Use || guarded {
                    want(reg, &gives);
                }
            });
            inst.op.regs(|&reg, role| {
                if role == Role::Def && !gives.contains(&reg) {
                    gives.push(reg);
                }
            });
        }
        gives.retain(|reg| self.is_wanted_behind(block, *stretch.end(), reg.number));
        let pc = self.input.starts[block] + *stretch.start() as Pc;
        let stretch = Stretch {
            count: insts.len() as u32,
            guarded: true,
            sites: sites.into(),
            ..Stretch::default()
        };
        self.by_interpreter(pc, &wants, &gives, stretch);
    }

    /// Operands go to the window by way of places of their own, results come back from there.
    fn by_interpreter(&mut self, pc: Pc, wants: &[Reg], gives: &[Reg], mut stretch: Stretch) {
        let lanes = self.mask_bits();
        self.looks_at_block |= wants.iter().any(|reg| self.is_of_block(reg.number));
        let mut end = self.kept_bytes;
        let mut places = |regs: &[Reg], fixed: bool| {
            let body = self.input.body;
            let moves = regs
                .iter()
                .filter(|reg| reg.width != Width::B128 && (fixed || !body.is_fixed(reg.number)));
            let moves = moves.map(|&reg| {
                let at = end;
                end = (end + self.size(reg)).next_multiple_of(64);
                (reg, at)
            });
            moves.collect::<Vec<(Reg, usize)>>()
        };
        let (operands, results) = (places(wants, false), places(gives, true));
        self.saved = self.saved.max(end);
        let moves = |regs: &[(Reg, usize)]| regs.iter().map(|&(reg, at)| self.moved(reg, at)).collect();
        (stretch.operands, stretch.results) = (moves(&operands), moves(&results));
        for &(reg, at) in &operands {
            self.keep_at(reg, at);
        }
        let number = self.stretches.len();
        self.stretches.push(stretch);
        let helper = self.field(offset_of!(Context, step), "ptr", true);
        let answer = self.text.value(format!(
            "call i32 {helper}(ptr %n, ptr %regs, i32 {pc}, i32 {lanes}, i32 {number})"
        ));
        let done = self.text.value(format!("icmp eq i32 {answer}, {}", step::DONE));
        let go = self.text.name("go");
        if self.plan.units[self.unit as usize].stick == Stick::Perhaps {
            let not = self.text.name("not");
            self.branch(&done, &go, &not);
            self.text.label(&not);
            let missing = self.text.value(format!("icmp eq i32 {answer}, {}", step::MISSING));
            let stuck = self.text.name("stuck");
            self.branch(&missing, &stuck, "fault");
            self.text.label(&stuck);
            self.stick();
        } else {
            self.branch(&done, &go, "fault");
        }
        self.text.label(&go);
        for (reg, at) in results {
            let values = self.kept_at(reg, at);
            match self.kind(reg.number).is_line() {
                true => self.write_line(reg, &values),
                false => self.write_lanes(reg, &values),
            }
        }
    }

    /// Whether anybody may want what a register holds behind an instruction of the current unit.
    fn is_wanted_behind(&self, block: usize, at: usize, register: Register) -> bool {
        let unit = &self.plan.units[self.unit as usize];
        let mut wanted = matches!(unit.exit, Exit::None);
        for inst in &self.input.body.blocks[block].insts[at + 1..unit.insts.end] {
            wanted |= inst.guard.is_some_and(|guard| guard.reg.number == register);
            inst.op
                .regs(|reg, role| wanted |= role == Role::Use && reg.number == register);
        }
        if let Exit::Branch { guard, .. } = unit.exit {
            wanted |= guard.reg.number == register;
        }
        unit.successors(|to| wanted |= self.plan.live[to as usize].has(register));
        wanted
    }

    /// Where lanes that take no part in a store write to.
    pub(super) fn nowhere(&mut self) -> String {
        let at = self.place("%n", offset_of!(Context, scratch));
        self.text.value(format!("ptrtoint ptr {at} to i64"))
    }
}

/// Whether an access moves several elements as one of up to eight bytes: those that others must not see half of (CUB's look-back scans count on
/// that; of more than eight bytes the interpreter takes care), and those that are smaller than words.
fn is_packed(ordering: Ordering, element: Element, elements: usize) -> bool {
    elements > 1 && (ordering != Ordering::Weak || element.bytes < 4)
}
