//! `mov`, `cvta`, `isspacep`, `alloca`: values and addresses from one place to another (PTX ISA, Data Movement).

use super::operand::Fit;
use super::scope::Binding;
use super::special;
use super::{Lower, Outcome, bytes_of, width_of};
use crate::isa::lanes::Width;
use crate::isa::types::IntType;
use crate::isa::{Compute, Form};
use crate::program::ir::{Guard, Initial, Op, Register, Space, Special};
use crate::program::layout::{Place, is_float, size_of};
use crate::program::module::Symbol;
use crate::ptx::ast::{self, Expr, Instruction, Name, Operand, Span, Type};
use crate::ptx::diagnostic::Diagnostic;

/// Something that has an address.
#[derive(Clone, Copy, Debug)]
pub enum Located {
    /// A generic address that is the same for everybody.
    Absolute { address: u64, space: Space },
    /// A shared variable, by index in the module.
    Shared(u32),
    /// In the running frame.
    Frame(Place),
    /// In the launch's parameter block.
    Param(Place),
    /// A function's address.
    Function(u64),
}

impl Lower<'_> {
    /// What has an address under this name; `None` for registers and unknown names.
    pub fn locate(&mut self, name: &Name) -> Outcome<Option<Located>> {
        match self.find(name) {
            Some(Binding::Frame { place, .. }) => return Ok(Some(Located::Frame(place))),
            Some(Binding::KernelParam { place, .. }) => return Ok(Some(Located::Param(place))),
            Some(Binding::Shared { index, .. }) => return Ok(Some(Located::Shared(index))),
            Some(Binding::Global { index, .. }) => return Ok(Some(self.global(index))),
            Some(_) => return Ok(None),
            None => {}
        }
        let Some(symbol) = self.symbol(name) else {
            return Ok(None);
        };
        Ok(Some(match symbol {
            Symbol::Global(index) => self.global(index),
            Symbol::Shared(index) => Located::Shared(index),
            Symbol::Function(index) => Located::Function(self.module.code_base + 16 * u64::from(index)),
            Symbol::Syscall(..) => {
                return Err(Diagnostic::error(
                    name.span,
                    format!("`{}` is a call of the system and has no address", name.text),
                ));
            }
            Symbol::Undefined => {
                return Err(Diagnostic::error(
                    name.span,
                    format!("`{}` is not defined in any unit", name.text),
                ));
            }
            Symbol::Unplaced(_) => {
                return Err(Diagnostic::error(
                    name.span,
                    format!(
                        "`{}` has no address: its state space has none at module scope",
                        name.text
                    ),
                ));
            }
        }))
    }

    fn global(&self, index: u32) -> Located {
        let global = &self.module.globals[index as usize];
        let constant = global.space == ast::Space::Const;
        Located::Absolute {
            address: global.address,
            space: if constant { Space::Const } else { Space::Global },
        }
    }

    /// Bytes of an element of the variable of this name.
    pub fn element_bytes(&mut self, name: &Name) -> i64 {
        let ty = match self.find(name) {
            Some(
                Binding::Frame { ty, .. }
                | Binding::KernelParam { ty, .. }
                | Binding::Shared { ty, .. }
                | Binding::Global { ty, .. },
            ) => ty,
            _ => {
                let declared = self.unit.tree.items.iter().find_map(|item| match item {
                    ast::Item::Variable(v) if v.name.text == name.text => Some(v.ty),
                    _ => None,
                });
                declared.unwrap_or(Type::B8)
            }
        };
        size_of(ty) as i64
    }

    /// Where the kernel's shared memory holds a variable; unknown in device functions.
    pub fn shared_offset(&self, index: u32) -> Option<u32> {
        let offsets = &self.shared.offsets;
        if !self.is_kernel() {
            return None;
        }
        let at = offsets.binary_search_by_key(&index, |&(i, _)| i).ok()?;
        Some(offsets[at].1)
    }

    pub fn shared_base(&mut self, index: u32, width: Width) -> Register {
        self.body.initial(width, Initial::Special(Special::SharedBase(index)))
    }

    /// A register that holds the address of what is located, in its own space, `offset` bytes on.
    fn address_value(&mut self, located: &Located, offset: i64, width: Width, span: Span) -> Outcome<Register> {
        let add = |value: u64| u128::from(value.wrapping_add_signed(offset));
        Ok(match *located {
            Located::Absolute { address, .. } | Located::Function(address) => self.constant(width, add(address)),
            Located::Param(place) => self.constant(width, add(u64::from(place.offset))),
            Located::Shared(index) => match self.shared_offset(index) {
                Some(at) => self.constant(width, add(u64::from(at))),
                None => {
                    let base = self.shared_base(index, width);
                    if offset == 0 {
                        base
                    } else {
                        let distance = self.constant(width, offset as u128);
                        let sum = self.body.register(width);
                        self.compute(Compute::add(integer(width)), &[sum], &[base, distance], None, span);
                        sum
                    }
                }
            },
            Located::Frame(place) => {
                let dst = self.body.register(width);
                let reg = self.body.reg(dst);
                let offset = u32::try_from(i64::from(place.offset) + offset)
                    .map_err(|_| Diagnostic::error(span, "this address lies outside of the frame"))?;
                self.push(None, span, Op::FrameAddress { dst: reg, offset });
                dst
            }
        })
    }

    /// An address constant as an operand: `var`, `var+8`, `func`.
    fn address_operand(&mut self, operand: &Operand, width: Width) -> Outcome<Option<(Register, Located)>> {
        let (name, offset) = match operand {
            Operand::Name {
                name,
                select: None,
                offset,
            } => (name, *offset),
            Operand::Immediate(Expr::Symbol { name, offset, .. }) => (name, *offset),
            // `mov.u32 s, a[1]`: the address of an element.
            Operand::Address(address) if address.subscript => {
                let ast::AddressBase::Name(name) = &address.base else {
                    return Ok(None);
                };
                let Some(located) = self.locate(name)? else {
                    return Ok(None);
                };
                let offset = address.offset.wrapping_mul(self.element_bytes(name));
                let register = self.address_value(&located, offset, width, address.span)?;
                return Ok(Some((register, located)));
            }
            _ => return Ok(None),
        };
        let Some(located) = self.locate(name)? else {
            return Ok(None);
        };
        if !matches!(width, Width::B32 | Width::B64) {
            return Err(Diagnostic::error(name.span, "an address needs 32 or 64 bits"));
        }
        let register = self.address_value(&located, offset, width, name.span)?;
        Ok(Some((register, located)))
    }

    /// `dst = src`, same width.
    pub fn copy(&mut self, guard: Option<Guard>, dst: Register, src: Register, span: Span) -> Outcome<()> {
        if dst == src {
            return Ok(());
        }
        let op = Compute::copy(self.width(dst));
        self.compute(op, &[dst], &[src], guard, span);
        Ok(())
    }

    /// `dst = src` between widths: low bits, or extended.
    pub fn resize_into(
        &mut self,
        guard: Option<Guard>,
        dst: Register,
        src: Register,
        signed: bool,
        span: Span,
    ) -> Outcome<()> {
        let (from, to) = (self.width(src), self.width(dst));
        if from == to {
            return self.copy(guard, dst, src, span);
        }
        let op = Compute::resize(from, to, signed)
            .ok_or_else(|| Diagnostic::error(span, "no value of this width fits here"))?;
        self.compute(op, &[dst], &[src], guard, span);
        Ok(())
    }

    pub fn mov(&mut self, form: &Form, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        self.operand_count(instruction, 2, 2)?;
        let ty = form.ty(0);
        let span = instruction.span;
        let width = width_of(ty);
        let (to, from) = (&instruction.operands[0], &instruction.operands[1]);
        let to_elements = self.elements(to);
        let from_elements = self.elements(from);
        match (to_elements, from_elements) {
            (Some(to), Some(from)) => self.mov_vector(&to, &from, width, span, guard),
            (Some(to), None) => {
                let register = self.source(from, width, Fit::Exact, is_float(ty))?;
                self.unpack(&to, register, span, guard)
            }
            (None, Some(from)) => {
                let dst = self.destination(to, width, Fit::Exact)?;
                self.pack(dst, &from, span, guard)
            }
            (None, None) => {
                self.check_kind(to, Some(ty), Fit::Wider)?;
                self.check_kind(from, Some(ty), Fit::Wider)?;
                let (dst, wide) = match self.legacy() && width == Width::B16 {
                    true => self.wider_destination(to, width)?,
                    false => (self.destination(to, width, Fit::Exact)?, None),
                };
                let src = match self.address_operand(from, width)? {
                    Some((register, _)) => register,
                    None => self.mov_source(from, width, is_float(ty), span)?,
                };
                if let Some(wide) = wide {
                    return self.resize_into(guard, wide, src, false, span);
                }
                self.copy(guard, dst, src, span)
            }
        }
    }

    /// Special registers are read at the width of the `mov`, whatever their own.
    fn mov_source(&mut self, operand: &Operand, width: Width, float: bool, span: Span) -> Outcome<Register> {
        // `mov.u64 d, %rd1+8`, which no manual has and the assembler takes.
        if let Operand::Name {
            name,
            select: None,
            offset,
        } = operand
            && *offset != 0
            && matches!(width, Width::B32 | Width::B64)
            && matches!(self.find(name), Some(Binding::Register { .. }))
        {
            let plain = Operand::Name {
                name: name.clone(),
                select: None,
                offset: 0,
            };
            let base = self.source(&plain, width, Fit::Exact, false)?;
            let distance = self.constant(width, *offset as u128);
            let sum = self.body.register(width);
            self.compute(Compute::add(integer(width)), &[sum], &[base, distance], None, span);
            return Ok(sum);
        }
        if let Operand::Name {
            name,
            select,
            offset: 0,
        } = operand
            && name.text.starts_with('%')
            && self.find(name).is_none()
            && let Some(reading) = special::read(&name.text, select.as_ref().map(|s| &*s.text))
        {
            let register = self.special(name, reading, Some(width))?;
            // Thread and block indices had 16 bits once, and may still be read so.
            let narrow = matches!(&*name.text, "%tid" | "%ntid" | "%ctaid" | "%nctaid" | "%gridid");
            if self.width(register) > width && !narrow && self.unit.tree.version.0 >= 2 {
                return Err(Diagnostic::error(
                    operand.span(),
                    format!("`{}` is wider than this mov", name.text),
                ));
            }
            return self.resize(register, width, false, span);
        }
        self.source(operand, width, Fit::Exact, float)
    }

    /// `mov.v4 {a, b, c, d}, {e, f, g, h}`: all sources are read before any destination is written.
    pub fn mov_vector(
        &mut self,
        to: &[Operand],
        from: &[Operand],
        width: Width,
        span: Span,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        if to.len() != from.len() {
            return Err(Diagnostic::error(
                span,
                format!("{} destinations and {} sources", to.len(), from.len()),
            ));
        }
        let mut pairs = Vec::new();
        for (to, from) in to.iter().zip(from) {
            let src = self.mov_source(from, width, false, span)?;
            if !matches!(to, Operand::Sink(_)) {
                pairs.push((self.destination(to, width, Fit::Exact)?, src));
            }
        }
        let crossing = pairs.iter().any(|&(d, _)| pairs.iter().any(|&(_, s)| s == d));
        if crossing {
            for pair in &mut pairs {
                let saved = self.body.register(width);
                self.copy(None, saved, pair.1, span)?;
                pair.1 = saved;
            }
        }
        for (dst, src) in pairs {
            self.copy(guard, dst, src, span)?;
        }
        Ok(())
    }

    /// `mov.b32 d, {a, b}`: the first element is least significant.
    fn pack(&mut self, dst: Register, from: &[Operand], span: Span, guard: Option<Guard>) -> Outcome<()> {
        let whole = bytes_of(self.width(dst));
        let part = whole / from.len().max(1) as u32;
        let width = match part {
            1 | 2 => Width::B16,
            4 => Width::B32,
            8 => Width::B64,
            _ => {
                return Err(Diagnostic::error(
                    span,
                    format!("{} elements do not make {whole} bytes", from.len()),
                ));
            }
        };
        let mut src = Vec::with_capacity(4);
        for operand in from {
            src.push(self.source(operand, width, Fit::Exact, false)?);
        }
        let op = Compute::pack(part, from.len())
            .ok_or_else(|| Diagnostic::error(span, format!("{} elements do not make {whole} bytes", from.len())))?;
        self.compute(op, &[dst], &src, guard, span);
        Ok(())
    }

    /// `mov.b32 {a, b}, s`
    fn unpack(&mut self, to: &[Operand], src: Register, span: Span, guard: Option<Guard>) -> Outcome<()> {
        let whole = bytes_of(self.width(src));
        let part = whole / to.len().max(1) as u32;
        let width = match part {
            1 | 2 => Width::B16,
            4 => Width::B32,
            8 => Width::B64,
            _ => {
                return Err(Diagnostic::error(
                    span,
                    format!("{whole} bytes do not make {} elements", to.len()),
                ));
            }
        };
        let mut dst = Vec::with_capacity(4);
        for operand in to {
            dst.push(match operand {
                Operand::Sink(_) => None,
                other => Some(self.destination(other, width, Fit::Exact)?),
            });
        }
        // A destination may be the source: read it first.
        let src = if dst.contains(&Some(src)) {
            let saved = self.body.register(self.width(src));
            self.copy(None, saved, src, span)?;
            saved
        } else {
            src
        };
        for (index, dst) in dst.into_iter().enumerate() {
            let Some(dst) = dst else { continue };
            let op = Compute::extract(self.width(src), part, index as u32)
                .ok_or_else(|| Diagnostic::error(span, format!("{whole} bytes do not make {} elements", to.len())))?;
            self.compute(op, &[dst], &[src], guard, span);
        }
        Ok(())
    }

    /// `cvta.space d, a` and `cvta.to.space d, a`.
    pub fn convert_address(
        &mut self,
        form: &Form,
        (space, to_generic): (ast::Space, bool),
        instruction: &Instruction,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        self.operand_count(instruction, 2, 2)?;
        let width = width_of(form.ty(0));
        let span = instruction.span;
        let dst = self.destination(&instruction.operands[0], width, Fit::Exact)?;
        let src = match self.address_operand(&instruction.operands[1], width)? {
            Some((register, _)) => register,
            None => self.source(&instruction.operands[1], width, Fit::Exact, false)?,
        };
        let space = self.space(space);
        match space {
            // Global and constant addresses are generic addresses.
            Space::Global | Space::Const | Space::Generic => self.copy(guard, dst, src, span),
            Space::Shared | Space::Local | Space::Param => {
                let (dst, src) = (self.body.reg(dst), self.body.reg(src));
                self.push(
                    guard,
                    span,
                    Op::ConvertAddress {
                        space,
                        to_generic,
                        dst,
                        src,
                    },
                );
                Ok(())
            }
        }
    }

    pub fn is_space(&mut self, space: ast::Space, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        self.operand_count(instruction, 2, 2)?;
        let dst = self.destination(&instruction.operands[0], Width::Pred, Fit::Exact)?;
        let src = match self.address_operand(&instruction.operands[1], Width::B64)? {
            Some((register, _)) => register,
            None => self.source(&instruction.operands[1], Width::B32, Fit::Wider, false)?,
        };
        let space = self.space(space);
        let (dst, src) = (self.body.reg(dst), self.body.reg(src));
        self.push(guard, instruction.span, Op::IsSpace { space, dst, src });
        Ok(())
    }

    /// `alloca d, size{, align}`
    pub fn alloca(&mut self, instruction: &Instruction, guard: Option<Guard>) -> Outcome<()> {
        self.operand_count(instruction, 2, 3)?;
        let dst = self.any_destination(&instruction.operands[0])?;
        let size = self.source_any(&instruction.operands[1], self.width(dst), false)?;
        let align = match instruction.operands.get(2) {
            Some(operand) => u32::try_from(self.immediate(operand)?).unwrap_or(8),
            None => 8,
        };
        let (dst, size) = (self.body.reg(dst), self.body.reg(size));
        self.push(guard, instruction.span, Op::Alloca { dst, size, align });
        Ok(())
    }
}

/// What addresses of this width are computed in.
pub fn integer(width: Width) -> IntType {
    match width {
        Width::B64 => IntType::U64,
        Width::Pred | Width::B16 | Width::B32 | Width::B128 => IntType::U32,
    }
}
