//! An instruction: for which lanes, and by whom it is carried out.

use std::mem::offset_of;

use crate::isa::lanes::Width;
use crate::program::{Inst, Op, Ordering, Reg, Role, Space};

use super::super::Pc;
use super::super::context::{Context, step};
use super::super::plan::{Kind, Stick};
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
            Op::Atomic { .. } => {
                if !self.atomic(op, pc) {
                    self.step(op, pc, None);
                }
            }
            Op::Within(within) => self.within(within, op, pc),
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
            Op::Shuffle { .. } => {
                if !self.shuffle(op) {
                    self.step(op, pc, None);
                }
            }
            Op::WarpBarrier { .. } | Op::Vote { .. } | Op::Redux { .. } | Op::Activemask { .. } | Op::Elect { .. } => {
                if !self.collective(op, pc) {
                    self.step(op, pc, None);
                }
            }
            // As the interpreter's: a full one, whatever it asks for.
            Op::Fence { .. } => self.text.line("fence seq_cst"),
            Op::Load { .. }
            | Op::Store { .. }
            | Op::ConvertAddress { .. }
            | Op::Match { .. }
            | Op::ReadSpecial { .. }
            | Op::FrameAddress { .. }
            | Op::IsSpace { .. }
            | Op::CopyAsync { .. }
            | Op::CopyGroup(_)
            | Op::Texture(_)
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
            | Op::Nanosleep
            | Op::Alloca { .. }
            | Op::StackSave { .. }
            | Op::StackRestore { .. }
            | Op::Joint(_)
            | Op::Syscall { .. } => unreachable!("lanes leave before these: the plan says so"),
        }
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
        self.looks_at_block |= seen.iter().any(|reg| self.is_of_block(reg.number));
        for reg in seen {
            if reg.width != Width::B128 && !self.input.body.is_fixed(reg.number) {
                let values = self.numbers_of(reg);
                self.store_slot(reg, &values, &lanes);
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
                    let (some, _) = self.same_in_slot(reg, &lanes);
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
