//! Instructions → nodes: the instruction table says what an opcode is, this file who lowers it; lane-wise operations are
//! lowered here.

use super::operand::Fit;
use super::scope::{Binding, Found};
use super::{Lower, Outcome, width_of};
use crate::isa::Compare;
use crate::isa::lanes::Width;
use crate::isa::{self, Form, Lane, Semantics};
use crate::program::ir::{Compute, Contractible, End, Guard, Linear, Modifiers, Op, Register};
use crate::program::layout::{is_float, is_signed};
use crate::ptx::ast::{Instruction, Operand, Span, Type};
use crate::ptx::diagnostic::Diagnostic;

impl Lower<'_> {
    pub fn instruction(&mut self, instruction: &Instruction) -> Outcome<()> {
        let guard = instruction.guard.as_ref().map(|g| self.guard(g)).transpose()?;
        if self.legacy() && self.vector_instruction(instruction, guard)? {
            return self.store_results(guard, instruction.span);
        }
        let form = self.decode(&instruction.opcode)?;
        self.select(&form, instruction, guard)?;
        self.store_results(guard, instruction.span)
    }

    fn select(&mut self, form: &Form, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        let span = instruction.span;
        let operands = &instruction.operands;
        match form.line.semantics {
            Semantics::Lane(lane) => match lane(form) {
                Some(lane) => self.lane(form, &lane, instruction, guard),
                None => Err(unsupported(instruction)),
            },
            Semantics::Move => self.mov(form, instruction, guard),
            Semantics::Video => self.video(form, instruction, guard),
            Semantics::CreatePolicy => self.create_policy(form, instruction, guard),
            Semantics::ConvertAddress => self.convert_address(form, instruction, guard),
            Semantics::IsSpace => self.is_space(form, instruction, guard),
            Semantics::Load => self.load(form, instruction, guard),
            Semantics::Store => self.store(form, instruction, guard),
            Semantics::Atomic => self.atomic(form, instruction, guard, true),
            Semantics::Reduction => self.atomic(form, instruction, guard, false),
            Semantics::CopyAsync => self.copy_async(form, instruction, guard),
            Semantics::Branch => self.branch(instruction, guard),
            Semantics::BranchIndexed => self.branch_indexed(instruction, guard),
            Semantics::Call => self.call(instruction, guard),
            Semantics::Return => {
                self.operand_count(instruction, 0, 0)?;
                self.return_from(guard, span);
                Ok(())
            }
            Semantics::Exit => {
                self.operand_count(instruction, 0, 0)?;
                self.leave(guard, span, Op::Exit);
                Ok(())
            }
            Semantics::Trap => {
                self.leave(guard, span, Op::Trap);
                Ok(())
            }
            Semantics::Breakpoint => {
                self.push(guard, span, Op::Breakpoint);
                Ok(())
            }
            Semantics::Nanosleep => {
                self.operand_count(instruction, 1, 1)?;
                self.value(&operands[0])?;
                self.push(guard, span, Op::Nanosleep);
                Ok(())
            }
            Semantics::Barrier => self.barrier(form, instruction, guard),
            Semantics::WarpBarrier => {
                self.operand_count(instruction, 1, 1)?;
                let members = self.value(&operands[0])?;
                self.push(guard, span, Op::WarpBarrier { members });
                Ok(())
            }
            Semantics::Fence => {
                self.fence(form, instruction, guard);
                Ok(())
            }
            Semantics::Shuffle => self.shuffle(form, instruction, guard),
            Semantics::Vote => self.vote(form, instruction, guard),
            Semantics::Match => self.match_lanes(form, instruction, guard),
            Semantics::Redux => self.redux(form, instruction, guard),
            Semantics::Activemask => {
                self.operand_count(instruction, 1, 1)?;
                let dst = self.destination(&operands[0], Width::B32, Fit::Exact)?;
                let dst = self.body.reg(dst);
                self.push(guard, span, Op::Activemask { dst });
                Ok(())
            }
            Semantics::Elect => self.elect(instruction, guard),
            Semantics::Alloca => self.alloca(instruction, guard),
            Semantics::StackSave => {
                self.operand_count(instruction, 1, 1)?;
                let dst = self.any_destination(&operands[0])?;
                let dst = self.body.reg(dst);
                self.push(guard, span, Op::StackSave { dst });
                Ok(())
            }
            Semantics::StackRestore => {
                self.operand_count(instruction, 1, 1)?;
                let src = self.source_any(&operands[0], Width::B64, false)?;
                let src = self.body.reg(src);
                self.push(guard, span, Op::StackRestore { src });
                Ok(())
            }
            Semantics::Texture => self.texture(form, instruction, guard),
            Semantics::TextureQuery | Semantics::SurfaceQuery => self.texture_query(form, instruction, guard),
            Semantics::IsHandle => self.is_handle(form, instruction, guard),
            Semantics::SurfaceLoad | Semantics::SurfaceStore | Semantics::SurfaceReduce => {
                self.surface(form, instruction, guard)
            }
            Semantics::Hint => Ok(()),
            Semantics::Later => Err(unsupported(instruction)),
        }
    }

    /// A destination of any width.
    pub fn any_destination(&mut self, operand: &Operand) -> Outcome<Register> {
        self.destination(operand, Width::B16, Fit::Wider)
    }

    // ---- lane-wise operations ---------------------------------------------------------------------------------------

    fn lane(&mut self, form: &Form, lane: &Lane, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        let span = instruction.span;
        // Conversions alone take registers that are wider than their types say.
        let fit = if form.mnemonic() == "cvt" {
            Fit::Wider
        } else {
            Fit::Exact
        };
        let mut dst_widths = lane.dst;
        let mut kernel = lane.kernel;
        let Some((first, rest)) = instruction.operands.split_first() else {
            return Err(Diagnostic::error(
                span,
                format!("`{}` takes operands", instruction.opcode.text),
            ));
        };
        let named = dst_widths.len() - usize::from(lane.carry_out);
        let mut destinations: Vec<Operand> = match first {
            Operand::Pair(a, b) => vec![(**a).clone(), (**b).clone()],
            other => self.elements(other).unwrap_or_else(|| vec![other.clone()]),
        };
        if destinations.len() == 2
            && named == 1
            && let Some(pair) = lane.pair
        {
            kernel = pair;
            dst_widths = match lane.dst[0] {
                Width::Pred => &[Width::Pred, Width::Pred],
                Width::B16 => &[Width::B16, Width::Pred],
                Width::B32 => &[Width::B32, Width::Pred],
                Width::B64 => &[Width::B64, Width::Pred],
                Width::B128 => &[Width::B128, Width::Pred],
            };
        } else if destinations.len() != named {
            // Results beyond the first that are not asked for.
            if destinations.len() < named {
                destinations.resize(named, Operand::Sink(first.span()));
            } else {
                return Err(Diagnostic::error(
                    first.span(),
                    format!(
                        "`{}` has {named} results, not {}",
                        instruction.opcode.text,
                        destinations.len()
                    ),
                ));
            }
        }

        // Sources in order; vectors count by element, the table's immediate goes aside.
        let mut sources: Vec<Operand> = Vec::with_capacity(4);
        for operand in rest {
            if let Some(first) = self.first_element(operand) {
                sources.push(first);
                continue;
            }
            match self.elements(operand) {
                Some(elements) => sources.extend(elements),
                None => sources.push(operand.clone()),
            }
        }
        let mut imm = lane.constant;
        if let Some(index) = lane.imm {
            if index >= sources.len() {
                return Err(Diagnostic::error(span, "the constant operand is missing"));
            }
            imm = self.immediate(&sources.remove(index))?;
        }
        // `max.f32 d, a, b, c` is the greatest of three: twice the same.
        let three = matches!(form.mnemonic(), "min" | "max") && form.types == [Type::F32] && !form.has("abs");
        if three && sources.len() == 3 && lane.src.len() == 2 {
            let partial = self.body.register(Width::B32);
            let pair = [
                self.source(&sources[0], Width::B32, Fit::Exact, true)?,
                self.source(&sources[1], Width::B32, Fit::Exact, true)?,
            ];
            let last = self.source(&sources[2], Width::B32, Fit::Exact, true)?;
            let dst = self.destination(first, Width::B32, Fit::Exact)?;
            let op = Compute::of(*lane, &instruction.opcode.text);
            self.compute(op.clone(), &[partial], &pair, None, span);
            self.compute(op, &[dst], &[partial, last], guard, span);
            return Ok(());
        }
        if form.mnemonic() == "cvt" && form.has("rs") && lane.src.len() == 4 {
            return self.convert_four(lane, instruction, &sources, guard);
        }
        let wanted = lane.src.len() - usize::from(lane.carry_in);
        if sources.len() != wanted {
            return Err(Diagnostic::error(
                span,
                format!(
                    "`{}` takes {} operands, not {}",
                    instruction.opcode.text,
                    wanted + 1 + usize::from(lane.imm.is_some()),
                    instruction.operands.len()
                ),
            ));
        }
        // The first specification has a bit bucket everywhere (PTX ISA 1.1, 7.2).
        if let [Operand::Sink(at)] = destinations[..]
            && !self.legacy()
        {
            return Err(Diagnostic::error(
                at,
                format!("the result of `{}` cannot be thrown away", form.mnemonic()),
            ));
        }
        let checked = match form.types[..] {
            [ty] if fit == Fit::Exact => Some(ty),
            _ => None,
        };
        for (operand, &width) in destinations.iter().zip(dst_widths).chain(sources.iter().zip(lane.src)) {
            self.check_kind(operand, checked.filter(|&ty| width_of(ty) == width), fit)?;
        }
        let all_float = form.types.iter().all(|&t| is_float(t)) && !form.types.is_empty();
        let mut src = Vec::with_capacity(4);
        let shift = self.legacy() && matches!(form.mnemonic(), "shl" | "shr");
        for (at, (operand, &width)) in sources.iter().zip(lane.src).enumerate() {
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

        let mut dst = Vec::with_capacity(2);
        let mut widen = Vec::new();
        for (operand, &width) in destinations.iter().zip(dst_widths) {
            let register = self.destination(operand, width, fit)?;
            if self.width(register) == width {
                dst.push(register);
            } else {
                let narrow = self.body.register(width);
                dst.push(narrow);
                widen.push((register, narrow));
            }
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
        let lane = Lane {
            kernel,
            dst: dst_widths,
            constant: imm,
            ..*lane
        };
        let mut op = Compute::of(lane, &instruction.opcode.text);
        if widen.is_empty() {
            if dst_widths.len() == 1 {
                (op.linear, op.contractible) = (linear_of(form), contractible(form));
            }
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

    /// A lane operation that lowering itself needs, by its opcode.
    pub fn lane_of(
        &mut self,
        opcode: &str,
        dst: &[Register],
        src: &[Register],
        guard: Option<Guard>,
        span: Span,
    ) -> Outcome<()> {
        let missing = || Diagnostic::error(span, format!("`{opcode}` is needed here and is not supported yet"));
        let form = isa::decode(opcode).map_err(|_| missing())?;
        let Semantics::Lane(lane) = form.line.semantics else {
            return Err(missing());
        };
        let lane = lane(&form).ok_or_else(missing)?;
        self.compute(Compute::of(lane, opcode), dst, src, guard, span);
        Ok(())
    }

    pub fn compute(&mut self, op: Compute, dst: &[Register], src: &[Register], guard: Option<Guard>, span: Span) {
        let op = Op::compute(&self.body, op, dst, src);
        self.push(guard, span, op);
    }

    // ---- branches ---------------------------------------------------------------------------------------------------

    fn branch(&mut self, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        self.operand_count(instruction, 1, 1)?;
        let Operand::Name { name, .. } = &instruction.operands[0] else {
            return Err(Diagnostic::error(instruction.operands[0].span(), "a label is expected"));
        };
        let taken = self.label(name)?;
        let next = self.block();
        match guard {
            None => self.end(End::Jump(taken)),
            Some(guard) => self.end(End::Branch {
                guard,
                taken,
                fall: next,
                span: instruction.span,
            }),
        }
        self.start(next);
        Ok(())
    }

    fn branch_indexed(&mut self, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        self.operand_count(instruction, 2, 2)?;
        let index = self.source(&instruction.operands[0], Width::B32, Fit::Exact, false)?;
        let index = self.body.reg(index);
        let Operand::Name { name, .. } = &instruction.operands[1] else {
            return Err(Diagnostic::error(
                instruction.operands[1].span(),
                "the label of a .branchtargets list is expected",
            ));
        };
        let targets = match self.scopes.find(&name.text) {
            Found::Bound(Binding::BranchTargets(targets)) => targets.to_vec(),
            _ => {
                return Err(Diagnostic::error(
                    name.span,
                    format!("`{}` is not the label of a .branchtargets list", name.text),
                ));
            }
        };
        let next = self.block();
        if let Some(guard) = guard {
            let jump = self.block();
            self.end(End::Branch {
                guard,
                taken: jump,
                fall: next,
                span: instruction.span,
            });
            self.start(jump);
        }
        self.end(End::Indexed {
            index,
            targets,
            span: instruction.span,
        });
        self.start(next);
        Ok(())
    }
}

/// Legal, and not something that this version executes.
pub fn unsupported(instruction: &Instruction) -> Diagnostic {
    Diagnostic::error(
        instruction.opcode.span,
        format!("`{}` is not supported yet", instruction.opcode.text),
    )
}

/// What a form computes, if it is linear in its operands.
fn linear_of(form: &Form) -> Option<Linear> {
    let integer = |ty: Type| {
        matches!(
            ty,
            Type::U32 | Type::S32 | Type::B32 | Type::U64 | Type::S64 | Type::B64
        )
    };
    let narrow = |ty: Type| matches!(ty, Type::U32 | Type::S32 | Type::B32);
    let &first = form.types.first()?;
    if !form.types.iter().all(|&ty| integer(ty)) {
        return None;
    }
    let signed = is_signed(form.ty(1));
    Some(match (form.mnemonic(), &form.words[..]) {
        ("add", []) => Linear::Add,
        ("sub", []) => Linear::Sub,
        ("mul", ["lo"]) => Linear::Mul,
        ("mad", ["lo"]) => Linear::Mad,
        ("mul", ["wide"]) if narrow(first) => Linear::MulWide { signed },
        ("mad", ["wide"]) if narrow(first) => Linear::MadWide { signed },
        ("shl", []) => Linear::Shl,
        ("cvt", []) => match (narrow(first), narrow(form.ty(1))) {
            (false, true) => Linear::Widen { signed },
            (true, false) => Linear::Narrow,
            _ => Linear::Copy,
        },
        ("setp", [relation]) => Linear::Compare {
            relation: Compare::from_word(relation)?,
            signed,
        },
        _ => return None,
    })
}

/// What the assembler may make an `fma` of.
fn contractible(form: &Form) -> Option<Contractible> {
    let [ty] = form.types[..] else { return None };
    if !is_float(ty) || form.words.iter().any(|word| !matches!(*word, "ftz" | "sat")) {
        return None;
    }
    let mut text = String::new();
    for word in &form.words {
        text = text + "." + word;
    }
    let modifiers = Modifiers {
        text: text + "." + ty.word(),
    };
    match form.mnemonic() {
        "mul" if !form.has("sat") => Some(Contractible::Product { modifiers }),
        "add" => Some(Contractible::Sum {
            subtract: false,
            modifiers,
        }),
        "sub" => Some(Contractible::Sum {
            subtract: true,
            modifiers,
        }),
        _ => None,
    }
}
