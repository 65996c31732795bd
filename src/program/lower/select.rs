//! Instructions → operations: the form says what an instruction does, this file who lowers it; lane-wise operations are
//! lowered here.

use super::operand::{Fit, miscounted, unexpected};
use super::texture::Access;
use super::{Lower, Outcome};
use crate::isa::fidelity::Fidelity;
use crate::isa::lanes::Width;
use crate::isa::{Compute, Form, Operation, narrow};
use crate::program::check::tree::{Instruction, Operand};
use crate::program::ir::{End, Guard, Op, Register};
use crate::program::layout::{is_float, is_signed};
use crate::ptx::ast::Span;
use crate::ptx::diagnostic::Diagnostic;

impl Lower<'_> {
    pub fn instruction(&mut self, instruction: &Instruction<'_>) -> Outcome<()> {
        let guard = self.guard(instruction.guard.as_ref())?;
        self.note(instruction);
        if !(self.legacy() && self.vector_instruction(instruction, guard)?) {
            self.select(instruction, guard)?;
        }
        self.store_results(guard, instruction.span)
    }

    /// What of it concerns [`crate::program::Function::instructions`].
    fn note(&mut self, instruction: &Instruction<'_>) {
        let form = &*instruction.form;
        let momentary = instruction.operands.iter().find(|operand| match operand {
            Operand::Special(which, ..) => which.is_volatile(),
            _ => false,
        });
        let noted = match (form.op.fidelity(), momentary) {
            (Fidelity::Exact, Some(operand)) => (Fidelity::Own, self.text(operand.span())),
            (Fidelity::Exact, None) => (Fidelity::Exact, form.mnemonic()),
            (other, _) => (other, self.text(instruction.opcode.span)),
        };
        self.instructions.insert(noted);
    }

    /// Of statements that go elsewhere, of which the tree keeps no form.
    pub fn note_exact(&mut self, name: &'static str) {
        self.instructions.insert((Fidelity::Exact, name));
    }

    fn select(&mut self, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let form = &*instruction.form;
        let span = instruction.span;
        match form.op {
            Operation::Compute(compute) => self.lane(form, compute, instruction, guard),
            Operation::Move { .. } => self.mov(form, instruction, guard),
            Operation::CreatePolicy(policy) => self.create_policy(policy, instruction, guard),
            Operation::ConvertAddress { space, to_generic } => {
                self.convert_address(form, (space, to_generic), instruction, guard)
            }
            Operation::IsSpace { space } => self.is_space(space, instruction, guard),
            Operation::Load(access) => self.load(access, instruction, guard),
            Operation::Store(access) => self.store(access, instruction, guard),
            Operation::Atomic(atomic) => self.atomic(atomic, instruction, guard, true),
            Operation::Reduction(atomic) => self.atomic(atomic, instruction, guard, false),
            Operation::CopyAsync(copy) => self.copy_async(copy, instruction, guard),
            Operation::Joint(joint) => self.joint(joint, instruction, guard),
            Operation::Return { .. } => {
                self.return_from(guard, span);
                Ok(())
            }
            Operation::Exit => {
                self.leave(guard, span, Op::Exit);
                Ok(())
            }
            Operation::Trap => {
                self.leave(guard, span, Op::Trap);
                Ok(())
            }
            Operation::Breakpoint => {
                self.push(guard, span, Op::Breakpoint);
                Ok(())
            }
            Operation::Nanosleep => {
                let [time] = self.operands(instruction)?;
                self.value(time)?;
                self.push(guard, span, Op::Nanosleep);
                Ok(())
            }
            Operation::Barrier(barrier) => self.barrier(barrier, instruction, guard),
            Operation::WarpBarrier => {
                let [members] = self.operands(instruction)?;
                let members = self.value(members)?;
                self.push(guard, span, Op::WarpBarrier { members });
                Ok(())
            }
            Operation::Fence(fence) => {
                self.fence(fence, instruction, guard);
                Ok(())
            }
            Operation::Shuffle { mode, sync } => self.shuffle(mode, sync, instruction, guard),
            Operation::Vote { mode, sync } => self.vote(mode, sync, instruction, guard),
            Operation::Match { all, ty } => self.match_lanes(all, ty.ty(), instruction, guard),
            Operation::Redux { op } => self.redux(op, instruction, guard),
            Operation::Activemask => {
                let [dst] = self.operands(instruction)?;
                let dst = self.destination(dst, Width::B32, Fit::Exact)?;
                let dst = self.body.reg(dst);
                self.push(guard, span, Op::Activemask { dst });
                Ok(())
            }
            Operation::Elect => self.elect(instruction, guard),
            Operation::Alloca => self.alloca(instruction, guard),
            Operation::StackSave => {
                let [dst] = self.operands(instruction)?;
                let dst = self.any_destination(dst)?;
                let dst = self.body.reg(dst);
                self.push(guard, span, Op::StackSave { dst });
                Ok(())
            }
            Operation::StackRestore => {
                let [src] = self.operands(instruction)?;
                let src = self.source_any(src, Width::B64, false)?;
                let src = self.body.reg(src);
                self.push(guard, span, Op::StackRestore { src });
                Ok(())
            }
            Operation::Texture(texture) => self.texture(texture, instruction, guard),
            Operation::TextureQuery { attribute, .. } | Operation::SurfaceQuery { attribute } => {
                self.texture_query(attribute, instruction, guard)
            }
            Operation::IsHandle(opaque) => self.is_handle(opaque, instruction, guard),
            Operation::SurfaceLoad(surface) => self.surface(surface, Access::Load, instruction, guard),
            Operation::SurfaceStore(surface) => self.surface(surface, Access::Store, instruction, guard),
            Operation::SurfaceReduce { op, surface } => self.surface(surface, Access::Reduce(op), instruction, guard),
            Operation::Hint(_) => Ok(()),
            Operation::Branch { .. } | Operation::BranchIndexed { .. } | Operation::Call { .. } => {
                unreachable!("the check makes statements of their own of them")
            }
            Operation::Video(_) => unreachable!("the check settles it by its operands"),
        }
    }

    /// A destination of any width.
    pub fn any_destination(&mut self, operand: &Operand) -> Outcome<Register> {
        self.destination(operand, Width::B16, Fit::Wider)
    }

    // ---- lane-wise operations ---------------------------------------------------------------------------------------

    fn lane(&mut self, form: &Form, op: Compute, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let span = instruction.span;
        let fit = match op.takes_wider_registers() {
            true => Fit::Wider,
            false => Fit::Exact,
        };
        let lane = op.lane();
        let mut dst_widths = lane.dst;
        let Some((first, rest)) = instruction.operands.split_first() else {
            return Err(miscounted(instruction));
        };
        let named = dst_widths.len() - usize::from(lane.carry_out);
        let mut destinations: Vec<&Operand> = match first {
            Operand::Pair(a, b) => vec![a, b],
            other => other.list().iter().collect(),
        };
        // Results beyond the first that are not asked for.
        let unasked = Operand::Sink(first.span());
        if destinations.len() == 2 && named == 1 && lane.pair.is_some() {
            dst_widths = lane.named(2).dst;
        } else if destinations.len() <= named {
            destinations.resize(named, &unasked);
        } else {
            return unexpected(first);
        }

        // Sources in order; vectors count by element, the table's immediate goes aside.
        let mut sources: Vec<&Operand> = Vec::with_capacity(4);
        for operand in rest {
            match operand {
                Operand::Whole(..) if self.legacy() => sources.push(operand),
                other => sources.extend(other.list()),
            }
        }
        let mut op = op;
        if let Some(index) = lane.imm {
            if index >= sources.len() {
                return Err(miscounted(instruction));
            }
            op = op.with_immediate(self.immediate(sources.remove(index))?);
        }
        // `max.f32 d, a, b, c` is the greatest of three: twice the same.
        if op.folds_three()
            && let [a, b, c] = sources[..]
        {
            let partial = self.body.register(Width::B32);
            let pair = [
                self.source(a, Width::B32, Fit::Exact, true)?,
                self.source(b, Width::B32, Fit::Exact, true)?,
            ];
            let last = self.source(c, Width::B32, Fit::Exact, true)?;
            let dst = self.destination(first, Width::B32, Fit::Exact)?;
            self.compute(op, &[partial], &pair, None, span);
            self.compute(op, &[dst], &[partial, last], guard, span);
            return Ok(());
        }
        if let Compute::Narrow(narrow::Op::RandomFour { to, relu, .. }) = op {
            return self.convert_four(to, relu, instruction, &sources, guard);
        }
        if sources.len() != lane.src.len() - usize::from(lane.carry_in) {
            return Err(miscounted(instruction));
        }

        let mut dst = Vec::with_capacity(2);
        let mut widen = Vec::new();
        for (operand, &width) in destinations.into_iter().zip(dst_widths) {
            let register = self.destination(operand, width, fit)?;
            if self.width(register) == width {
                dst.push(register);
            } else {
                let narrow = self.body.register(width);
                dst.push(narrow);
                widen.push((register, narrow));
            }
        }
        let all_float = form.types.iter().all(|&t| is_float(t)) && !form.types.is_empty();
        let mut src = Vec::with_capacity(4);
        let shift = self.legacy() && op.is_shift();
        for (at, (operand, &width)) in sources.into_iter().zip(lane.src).enumerate() {
            let register = if shift && at == 1 {
                let count = self.source_any(operand, width, false)?;
                self.shift_count(count, span)?
            } else {
                self.source(operand, width, fit, all_float)?
            };
            src.push(self.resize(register, width, false, span)?);
        }
        if lane.carry_in {
            src.push(self.carry());
        }
        if lane.carry_out {
            dst.push(self.carry());
        }
        if dst.len() == 2 && dst[0] == dst[1] {
            return Err(Diagnostic::error(
                first.span(),
                "the two destinations are the same register",
            ));
        }
        if widen.is_empty() {
            self.compute(op, &dst, &src, guard, span);
        } else {
            self.compute(op, &dst, &src, None, span);
            let signed = form.types.first().is_some_and(|&t| is_signed(t));
            for (wide, narrow) in widen {
                self.resize_into(guard, wide, narrow, signed, span)?;
            }
        }
        Ok(())
    }

    fn carry(&mut self) -> Register {
        match self.carry {
            Some(register) => register,
            None => {
                let register = self.body.register(Width::Pred);
                *self.carry.insert(register)
            }
        }
    }

    pub fn compute(&mut self, op: Compute, dst: &[Register], src: &[Register], guard: Option<Guard>, span: Span) {
        let op = Op::compute(&self.body, op, dst, src);
        self.push(guard, span, op);
    }

    // ---- branches ---------------------------------------------------------------------------------------------------

    pub fn branch(&mut self, guard: Option<Guard>, label: u32, span: Span) {
        let taken = self.labels[label as usize];
        let next = self.block();
        self.end(match guard {
            None => End::Jump { to: taken, span },
            Some(guard) => End::Branch {
                guard,
                taken,
                fall: next,
                span,
            },
        });
        self.start(next);
    }

    pub fn branch_indexed(&mut self, guard: Option<Guard>, index: &Operand, targets: u32, span: Span) -> Outcome<()> {
        let index = self.source(index, Width::B32, Fit::Exact, false)?;
        let index = self.body.reg(index);
        let tree = self.tree;
        let targets = tree.targets[targets as usize].iter();
        let targets = targets.map(|&label| self.labels[label as usize]).collect();
        let next = self.block();
        if let Some(guard) = guard {
            let jump = self.block();
            self.end(End::Branch {
                guard,
                taken: jump,
                fall: next,
                span,
            });
            self.start(jump);
        }
        self.end(End::Indexed { index, targets, span });
        self.start(next);
        Ok(())
    }
}
