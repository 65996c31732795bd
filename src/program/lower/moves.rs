//! `mov`, `cvta`, `isspacep`, `alloca`: values and addresses from one place to another (PTX ISA, Data Movement).

use super::operand::{Fit, miscounted};
use super::place::Located;
use super::{Lower, Outcome, bytes_of, width_of};
use crate::isa::joint::cluster;
use crate::isa::lanes::Width;
use crate::isa::types::IntType;
use crate::isa::{Compute, Form};
use crate::program::check::tree::{Base, Instruction, Object, Operand};
use crate::program::ir::{Guard, Initial, MadeFrom, Op, Register, Space, Special};
use crate::program::layout::{self, Place, is_float, size_of};
use crate::program::module::Symbol;
use crate::ptx::ast::{self, Span};
use crate::ptx::diagnostic::Diagnostic;

impl Lower<'_> {
    /// Where an object is.
    pub fn locate(&mut self, object: Object, span: Span) -> Outcome<Located> {
        let item = match object {
            Object::Own { number, member } => {
                let Some(located) = self.variables[number as usize] else {
                    // Its declaration was refused already.
                    return Err(Diagnostic::error(span, format!("`{}` has no place", self.text(span))));
                };
                return Ok(match located {
                    Located::Frame(place) if member > 0 => {
                        let align = u32::try_from(layout::align_of(self.tree.variables[number as usize]));
                        let stride = layout::round_up(place.bytes, align.unwrap_or(16));
                        Located::Frame(Place {
                            offset: place.offset + member * stride,
                            ..place
                        })
                    }
                    other => other,
                });
            }
            Object::Item(item) => item,
        };
        let refuse = |why: &str| Err(Diagnostic::error(span, format!("`{}` {why}", self.text(span))));
        match self.symbol(item) {
            Some(Symbol::Global(index)) => Ok(self.global(index)),
            Some(Symbol::Shared(index)) => Ok(Located::Shared(index)),
            Some(Symbol::Function(index)) => Ok(Located::Function(self.module.function_address(index))),
            Some(Symbol::Syscall(..)) => refuse("is a call of the system and has no address"),
            Some(Symbol::Undefined) | None => refuse("is not defined in any unit"),
            Some(Symbol::Unplaced(_)) => refuse("has no address: its state space has none at module scope"),
        }
    }

    pub fn global(&self, index: u32) -> Located {
        let global = &self.module.globals[index as usize];
        let constant = global.space == ast::Space::Const;
        Located::Absolute {
            address: global.address,
            space: if constant { Space::Const } else { Space::Global },
        }
    }

    /// Bytes of an element of a variable.
    pub fn element_bytes(&self, object: Object) -> i64 {
        self.variable(object).map_or(1, |variable| size_of(variable.ty) as i64)
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
        let register = self.body.initial(width, Initial::Special(Special::SharedBase(index)));
        self.is_shared(index, register);
        register
    }

    /// A register that holds the start of a variable that lies at `at` in the kernel's shared memory, for it alone.
    pub fn shared_start(&mut self, index: u32, at: u32, width: Width) -> Register {
        let start = Initial::Special(Special::SharedAddress(at as i32));
        let known = self.starts.get(&(index, width)).copied();
        let register = known.unwrap_or_else(|| self.body.initial_apart(width, start));
        self.starts.insert((index, width), register);
        self.is_shared(index, register);
        register
    }

    fn is_shared(&mut self, index: u32, register: Register) {
        if let Some(objects) = &mut self.objects {
            let base = self.body.reg(register);
            let bytes = self.module.shared_bytes(index);
            objects.registers.insert(register, MadeFrom::Shared { base, bytes });
        }
    }

    /// The address of a byte of the kernel's shared memory. Those have 32 bits; what is wider is cut when they are used.
    pub fn shared_address(&mut self, offset: i64, width: Width) -> Register {
        self.body
            .initial(width, Initial::Special(Special::SharedAddress(offset as i32)))
    }

    /// A register that holds the address of what is located, in its own space, `offset` bytes on.
    fn address_value(&mut self, located: &Located, offset: i64, width: Width, span: Span) -> Outcome<Register> {
        let add = |value: u64| u128::from(value.wrapping_add_signed(offset));
        Ok(match *located {
            Located::Absolute { address, .. } if self.objects.is_some() => {
                let base = self.body.initial_apart(width, Initial::Constant(u128::from(address)));
                let reg = self.body.reg(base);
                self.made_from(
                    base,
                    MadeFrom::Pointer {
                        base: reg,
                        parameter: None,
                    },
                );
                self.beyond(base, offset, span)
            }
            Located::Param(Place { offset: start, bytes }) if self.objects.is_some() => {
                let base = self.body.initial_apart(width, Initial::Constant(u128::from(start)));
                self.made_from(base, MadeFrom::Parameter { offset: start, bytes });
                self.beyond(base, offset, span)
            }
            Located::Absolute { address, .. } | Located::Function(address) => self.constant(width, add(address)),
            Located::Param(place) => self.constant(width, add(u64::from(place.offset))),
            Located::Shared(index) => match self.shared_offset(index) {
                Some(at) if self.objects.is_some() => {
                    let base = self.shared_start(index, at, width);
                    self.beyond(base, offset, span)
                }
                Some(at) => self.shared_address(i64::from(at).wrapping_add(offset), width),
                None => {
                    let base = self.shared_base(index, width);
                    self.beyond(base, offset, span)
                }
            },
            Located::Frame(place) => {
                let dst = self.body.register(width);
                let reg = self.body.reg(dst);
                let whole = u32::try_from(i64::from(place.offset).wrapping_add(offset)).ok();
                let whole = whole.filter(|_| self.objects.is_none());
                let (start, rest) = whole.map_or((place.offset, offset), |at| (at, 0));
                if let Some(objects) = &mut self.objects {
                    objects.in_frame(place.offset, place.bytes);
                }
                self.push(
                    None,
                    span,
                    Op::FrameAddress {
                        dst: reg,
                        offset: start,
                    },
                );
                self.beyond(dst, rest, span)
            }
        })
    }

    fn made_from(&mut self, register: Register, from: MadeFrom) {
        if let Some(objects) = &mut self.objects {
            objects.registers.insert(register, from);
        }
    }

    /// A register's value and so many bytes.
    fn beyond(&mut self, base: Register, offset: i64, span: Span) -> Register {
        if offset == 0 {
            return base;
        }
        let width = self.width(base);
        let distance = self.constant(width, offset as u128);
        let sum = self.body.register(width);
        self.compute(Compute::add(integer(width)), &[sum], &[base, distance], None, span);
        sum
    }

    /// An address constant as an operand: `var`, `var+8`, `func`; nothing for what is none.
    pub fn address_operand(&mut self, operand: &Operand, width: Width) -> Outcome<Option<Register>> {
        let (object, offset, span) = match operand {
            Operand::AddressOf(object, offset, span) => (*object, *offset, *span),
            // `mov.u32 s, a[1]`: the address of an element.
            Operand::Address(address) if address.index.is_some() && matches!(address.base, Base::Object(..)) => {
                let place = self.address(operand, ast::Space::Generic)?;
                let Some(register) = place.register else {
                    return Ok(None);
                };
                let sum = self.beyond(register.number, place.offset, address.span);
                return self.resize(sum, width, false, address.span).map(Some);
            }
            Operand::Address(address) => match address.base {
                Base::Object(object, span) if address.subscript => {
                    (object, address.offset.wrapping_mul(self.element_bytes(object)), span)
                }
                Base::Object(..) | Base::Register(_) | Base::Absolute(_) => return Ok(None),
            },
            Operand::Register(_)
            | Operand::Sum(..)
            | Operand::Special(..)
            | Operand::Immediate(_)
            | Operand::Not(_)
            | Operand::Vector(..)
            | Operand::Whole(..)
            | Operand::Group(..)
            | Operand::Pair(..)
            | Operand::Sink(_) => return Ok(None),
        };
        let located = self.locate(object, span)?;
        if !matches!(width, Width::B32 | Width::B64) {
            return Err(Diagnostic::error(span, "an address needs 32 or 64 bits"));
        }
        self.address_value(&located, offset, width, span).map(Some)
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

    pub fn mov(&mut self, form: &Form, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let [to, from] = self.operands(instruction)?;
        let ty = form.ty(0);
        let span = instruction.span;
        let width = width_of(ty);
        match (to.elements(), from.elements()) {
            (Some(to), Some(from)) => self.mov_vector(to, from, width, span, guard),
            (Some(to), None) => {
                let register = self.source(from, width, Fit::Exact, is_float(ty))?;
                self.unpack(to, register, span, guard)
            }
            (None, Some(from)) => {
                let dst = self.destination(to, width, Fit::Exact)?;
                self.pack(dst, from, span, guard)
            }
            (None, None) => {
                let (dst, wide) = match self.legacy() && width == Width::B16 {
                    true => self.wider_destination(to, width)?,
                    false => (self.destination(to, width, Fit::Exact)?, None),
                };
                let src = match self.address_operand(from, width)? {
                    Some(register) => register,
                    None => self.mov_source(from, width, is_float(ty), span)?,
                };
                if let Some(wide) = wide {
                    return self.resize_into(guard, wide, src, false, span);
                }
                self.copy(guard, dst, src, span)
            }
        }
    }

    /// Special registers are read at the width of the `mov`, whatever their own: thread and block indices had 16 bits
    /// once.
    fn mov_source(&mut self, operand: &Operand, width: Width, float: bool, span: Span) -> Outcome<Register> {
        match operand {
            Operand::Special(special, is, at) => {
                let register = self.special(*special, *is, width, *at);
                self.resize(register, width, false, span)
            }
            Operand::Register(_)
            | Operand::Sum(..)
            | Operand::Immediate(_)
            | Operand::AddressOf(..)
            | Operand::Address(_)
            | Operand::Not(_)
            | Operand::Vector(..)
            | Operand::Whole(..)
            | Operand::Group(..)
            | Operand::Pair(..)
            | Operand::Sink(_) => self.source(operand, width, Fit::Exact, float),
        }
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
        let (part, width) = part(self.width(dst), from.len()).ok_or_else(|| odd_parts(span))?;
        let mut src = Vec::with_capacity(4);
        for operand in from {
            src.push(self.source(operand, width, Fit::Exact, false)?);
        }
        let op = Compute::pack(part, from.len()).ok_or_else(|| odd_parts(span))?;
        self.compute(op, &[dst], &src, guard, span);
        Ok(())
    }

    /// `mov.b32 {a, b}, s`
    fn unpack(&mut self, to: &[Operand], src: Register, span: Span, guard: Option<Guard>) -> Outcome<()> {
        let (part, width) = part(self.width(src), to.len()).ok_or_else(|| odd_parts(span))?;
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
            let op = Compute::extract(self.width(src), part, index as u32).ok_or_else(|| odd_parts(span))?;
            self.compute(op, &[dst], &[src], guard, span);
        }
        Ok(())
    }

    /// `cvta.space d, a` and `cvta.to.space d, a`.
    pub fn convert_address(
        &mut self,
        form: &Form,
        (space, to_generic): (ast::Space, bool),
        instruction: &Instruction<'_>,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        let [dst, src] = self.operands(instruction)?;
        let width = width_of(form.ty(0));
        let span = instruction.span;
        let dst = self.destination(dst, width, Fit::Exact)?;
        let src = match self.address_operand(src, width)? {
            Some(register) => register,
            None => self.source(src, width, Fit::Exact, false)?,
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

    pub fn is_space(&mut self, space: ast::Space, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        if space == ast::Space::SharedCluster {
            return self.cluster(cluster::Op::IsShared, instruction, guard);
        }
        let [dst, src] = self.operands(instruction)?;
        let dst = self.destination(dst, Width::Pred, Fit::Exact)?;
        let src = match self.address_operand(src, Width::B64)? {
            Some(register) => register,
            None => self.source(src, Width::B32, Fit::Wider, false)?,
        };
        let space = self.space(space);
        let (dst, src) = (self.body.reg(dst), self.body.reg(src));
        self.push(guard, instruction.span, Op::IsSpace { space, dst, src });
        Ok(())
    }

    /// `alloca d, size{, align}`
    pub fn alloca(&mut self, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let [dst, size, align @ ..] = &instruction.operands[..] else {
            return Err(miscounted(instruction));
        };
        let dst = self.any_destination(dst)?;
        let size = self.source_any(size, self.width(dst), false)?;
        let align = match align.first() {
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

/// Bytes and width of each of so many parts of a register.
fn part(whole: Width, count: usize) -> Option<(u32, Width)> {
    let part = bytes_of(whole) / count.max(1) as u32;
    let width = match part {
        1 | 2 => Width::B16,
        4 => Width::B32,
        8 => Width::B64,
        _ => return None,
    };
    Some((part, width))
}

fn odd_parts(span: Span) -> Diagnostic {
    Diagnostic::error(span, "a register has no so many parts")
}
