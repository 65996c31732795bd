//! `ld`, `st`, `atom`, `red`, `cp.async` (PTX ISA, Data Movement; Parallel Synchronization): addresses resolved as far
//! as they can be, elements and orderings spelled out.

use super::moves::integer;
use super::operand::{Fit, miscounted, unexpected};
use super::place::Located;
use super::{Lower, Outcome, width_of};
use crate::isa::compare::Operands;
use crate::isa::lanes::Width;
use crate::isa::operation::{self, Access, AtomicOp, CacheOperator, CopyAsync, ReadModifyWrite};
use crate::isa::types::{self, Movable, Scope};
use crate::isa::{Compare, Compute, logic};
use crate::program::check::tree::{Base, Instruction, Operand};
use crate::program::ir::{Address, CopyGroup, Element, Guard, Initial, Op, Ordering, Proxy, Reg, Register, Space};
use crate::program::layout::{Place, is_signed, size_of};
use crate::ptx::ast::{self, Span, Type};
use crate::ptx::diagnostic::Diagnostic;

fn ordering(access: Access) -> Ordering {
    match access.ordering {
        // Accesses that pass by L1 are how programs talked to other blocks before the memory model had words for it
        // (CUB up to CUDA 12's: `st.cg.v2` publishes, `ld.cg.v2` looks): one of them moves whole.
        types::Ordering::Weak if access.cache.operator.is_some_and(CacheOperator::passes_l1) => Ordering::Relaxed,
        types::Ordering::Weak => Ordering::Weak,
        types::Ordering::Volatile | types::Ordering::Mmio => Ordering::Volatile,
        types::Ordering::Relaxed => Ordering::Relaxed,
        types::Ordering::Acquire => Ordering::Acquire,
        types::Ordering::Release => Ordering::Release,
        types::Ordering::AcqRel | types::Ordering::Sc => Ordering::AcqRel,
    }
}

/// The scope that a strong access names, or has by its ordering alone (PTX ISA, ld, st: `.volatile` is system-wide); weak
/// ones have none.
fn scope(access: Access) -> Option<Scope> {
    access.scope.or(match ordering(access) {
        Ordering::Weak => None,
        Ordering::Volatile => Some(Scope::Sys),
        Ordering::Relaxed | Ordering::Acquire | Ordering::Release | Ordering::AcqRel | Ordering::Sc => Some(Scope::Gpu),
    })
}

fn element(ty: Type) -> Element {
    Element {
        bytes: size_of(ty) as u8,
        signed: is_signed(ty),
    }
}

impl Lower<'_> {
    /// The executor's space for one that the text names.
    pub fn space(&self, space: ast::Space) -> Space {
        match space {
            ast::Space::Global | ast::Space::Tex | ast::Space::Surf => Space::Global,
            ast::Space::Const => Space::Const,
            ast::Space::Shared | ast::Space::SharedCta | ast::Space::SharedCluster => Space::Shared,
            ast::Space::Local | ast::Space::ParamFunc => Space::Local,
            ast::Space::ParamEntry => Space::Param,
            // A device function's parameters lie in its frame.
            ast::Space::Param => {
                if self.is_kernel() {
                    Space::Param
                } else {
                    Space::Local
                }
            }
            ast::Space::Generic | ast::Space::Reg | ast::Space::Sreg => Space::Generic,
        }
    }

    pub fn address(&mut self, operand: &Operand, space: ast::Space) -> Outcome<Address> {
        let Operand::Address(address) = operand else {
            return unexpected(operand);
        };
        let wanted = self.space(space);
        let (object, span) = match address.base {
            Base::Absolute(absolute) => {
                return Ok(Address {
                    space: wanted,
                    register: None,
                    offset: absolute.wrapping_add_signed(address.offset) as i64,
                });
            }
            Base::Register(register) => {
                let register = self.register(register);
                self.check_address(register, address.span)?;
                return Ok(Address {
                    space: wanted,
                    register: Some(self.body.reg(register)),
                    offset: address.offset,
                });
            }
            Base::Object(object, span) => (object, span),
        };
        let located = self.locate(object, span)?;
        // An array element: its number, not its byte (PTX ISA, Arrays as Operands).
        let scale = if address.subscript {
            self.element_bytes(object)
        } else {
            1
        };
        let offset = address.offset.wrapping_mul(scale);
        let mut out = match (address.index, located) {
            (Some(_), located) if self.objects.is_some() => self.start_of(&located, offset),
            _ => self.located_address(&located, offset),
        };
        if wanted != Space::Generic && !compatible(wanted, out.space) {
            return Err(Diagnostic::error(
                span,
                format!("`{}` does not lie in .{}", self.text(span), space.word()),
            ));
        }
        if let Some(index) = address.index {
            let index = self.register(index);
            self.check_address(index, address.span)?;
            out = self.indexed(out, index, scale, address.span)?;
        }
        Ok(out)
    }

    fn check_address(&self, register: Register, span: Span) -> Outcome<()> {
        match self.width(register) {
            Width::B32 | Width::B64 => Ok(()),
            Width::Pred | Width::B16 | Width::B128 => Err(Diagnostic::error(
                span,
                "an address register must be 32 or 64 bits wide",
            )),
        }
    }

    /// The address of something that has a place, `offset` bytes on.
    pub fn located_address(&mut self, located: &Located, offset: i64) -> Address {
        match *located {
            Located::Absolute { address, space } => Address {
                space,
                register: None,
                offset: (address as i64).wrapping_add(offset),
            },
            Located::Shared(index) => match self.shared_offset(index) {
                // A place outside of the variable that it names.
                Some(at) if self.objects.is_some() && !self.lies_in_shared(index, offset) => {
                    let register = self.shared_start(index, at, Width::B32);
                    Address {
                        space: Space::Shared,
                        register: Some(self.body.reg(register)),
                        offset,
                    }
                }
                Some(at) => Address {
                    space: Space::Shared,
                    register: None,
                    offset: i64::from(at).wrapping_add(offset),
                },
                None => {
                    let register = self.shared_base(index, Width::B32);
                    Address {
                        space: Space::Shared,
                        register: Some(self.body.reg(register)),
                        offset,
                    }
                }
            },
            Located::Frame(place) => Address {
                space: Space::Local,
                register: None,
                offset: i64::from(place.offset) + offset,
            },
            Located::Param(place) => Address {
                space: Space::Param,
                register: None,
                offset: i64::from(place.offset) + offset,
            },
            Located::Function(address) => Address {
                space: Space::Generic,
                register: None,
                offset: (address as i64).wrapping_add(offset),
            },
        }
    }

    /// As [`Self::located_address`], where an index follows and accesses are checked to the variable.
    fn start_of(&mut self, located: &Located, offset: i64) -> Address {
        if let (&Located::Frame(place), Some(objects)) = (located, &mut self.objects) {
            objects.in_frame(place.offset, place.bytes);
        }
        let at = match *located {
            Located::Shared(index) => self.shared_offset(index).map(|at| (index, at)),
            Located::Absolute { .. } | Located::Frame(_) | Located::Param(_) | Located::Function(_) => None,
        };
        let Some((index, at)) = at else {
            return self.located_address(located, offset);
        };
        let register = self.shared_start(index, at, Width::B32);
        Address {
            space: Space::Shared,
            register: Some(self.body.reg(register)),
            offset,
        }
    }

    fn lies_in_shared(&self, index: u32, offset: i64) -> bool {
        let bytes = self.module.shared_bytes(index);
        offset >= 0 && bytes.is_none_or(|bytes| offset < i64::from(bytes))
    }

    /// `base[index]`: one register that holds the scaled index, and the base where a register can reach it.
    fn indexed(&mut self, base: Address, index: Register, scale: i64, span: Span) -> Outcome<Address> {
        let wide = matches!(base.space, Space::Generic | Space::Global | Space::Const);
        let width = if wide { Width::B64 } else { Width::B32 };
        let mut sum = self.resize(index, width, false, span)?;
        if scale != 1 {
            let factor = self.constant(width, scale as u128);
            let product = self.body.register(width);
            self.compute(Compute::mul_lo(integer(width)), &[product], &[sum, factor], None, span);
            sum = product;
        }
        let mut out = base;
        let part = match (base.space, base.register) {
            (Space::Local, None) => {
                // The frame's start is no constant.
                let dst = self.body.register(width);
                let reg = self.body.reg(dst);
                let offset = u32::try_from(base.offset).unwrap_or(0);
                self.push(None, span, Op::FrameAddress { dst: reg, offset });
                out.offset = 0;
                Some(dst)
            }
            // Behind a register stands an address, and the block's own does not begin at 0 in every block of a cluster.
            (Space::Shared, None) => Some(self.shared_address(0, width)),
            (_, register) => register.map(|reg| reg.number),
        };
        if let Some(part) = part {
            let total = self.body.register(width);
            self.compute(Compute::add(integer(width)), &[total], &[sum, part], None, span);
            sum = total;
        }
        out.register = Some(self.body.reg(sum));
        Ok(out)
    }

    pub fn load(&mut self, access: Access, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        // A cache policy may follow.
        let [dst, address, ..] = &instruction.operands[..] else {
            return Err(miscounted(instruction));
        };
        let ty = access.ty;
        let span = instruction.span;
        let element = element(ty);
        let address = self.address(address, access.space)?;
        let dst = self.destinations(dst, usize::from(access.vector.count()), width_of(ty), Fit::Wider)?;
        if address.space == Space::Param && address.register.is_none() {
            return self.load_param(&dst, address.offset, element, guard, span);
        }
        if dst.len() == 3 {
            return self.access_three((address, element, ordering(access)), &dst, false, guard, span);
        }
        let dst = dst.iter().map(|r| r.map(|r| self.body.reg(r))).collect();
        self.push(
            guard,
            span,
            Op::Load {
                address,
                element,
                ordering: ordering(access),
                scope: scope(access),
                dst,
            },
        );
        Ok(())
    }

    /// A kernel's parameter at a known place is a constant of the launch.
    fn load_param(
        &mut self,
        dst: &[Option<Register>],
        offset: i64,
        element: Element,
        guard: Option<Guard>,
        span: Span,
    ) -> Outcome<()> {
        let end = self.param_end;
        for (i, dst) in dst.iter().enumerate() {
            let at = offset + i as i64 * i64::from(element.bytes);
            if at < 0 || at + i64::from(element.bytes) > i64::from(end) {
                return Err(Diagnostic::error(
                    span,
                    format!("reads beyond the kernel's parameters ({end} bytes)"),
                ));
            }
            let Some(dst) = *dst else { continue };
            let width = self.width(dst);
            // Sign matters only where the register is wider.
            let exact = super::bytes_of(width) == u32::from(element.bytes);
            let element = Element {
                signed: element.signed && !exact,
                ..element
            };
            let value = Initial::Param {
                offset: at as u32,
                element,
            };
            let register = self.body.initial(width, value);
            self.copy(guard, dst, register, span)?;
        }
        Ok(())
    }

    pub fn store(&mut self, access: Access, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let [place, data, ..] = &instruction.operands[..] else {
            return Err(miscounted(instruction));
        };
        let ty = access.ty;
        let address = self.address(place, access.space)?;
        if address.space == Space::Const {
            return Err(Diagnostic::error(place.span(), "constant memory cannot be written"));
        }
        if address.space == Space::Param {
            return Err(Diagnostic::error(
                place.span(),
                "a kernel's parameters cannot be written",
            ));
        }
        let src = self.values(data, usize::from(access.vector.count()), ty, Fit::Wider)?;
        if src.len() == 3 {
            let src: Vec<_> = src.iter().map(|reg| Some(reg.number)).collect();
            return self.access_three(
                (address, element(ty), ordering(access)),
                &src,
                true,
                guard,
                instruction.span,
            );
        }
        self.push(
            guard,
            instruction.span,
            Op::Store {
                address,
                element: element(ty),
                ordering: ordering(access),
                scope: scope(access),
                src,
            },
        );
        Ok(())
    }

    fn values(&mut self, operand: &Operand, count: usize, ty: Type, fit: Fit) -> Outcome<Box<[Reg]>> {
        let elements = operand.list();
        if elements.len() != count {
            return unexpected(operand);
        }
        let float = matches!(ty, Type::F32 | Type::F64);
        elements
            .iter()
            .map(|e| self.source(e, width_of(ty), fit, float).map(|r| self.body.reg(r)))
            .collect()
    }

    /// Weakly read bytes → a register. A predicate lies there as a number that is not 0.
    pub fn fetch(&mut self, register: Register, address: Address, bytes: u32, span: Span) {
        let predicate = self.width(register) == Width::Pred;
        let loaded = match predicate {
            true => self.body.register(Width::B16),
            false => register,
        };
        let reg = self.body.reg(loaded);
        self.push(
            None,
            span,
            Op::Load {
                address,
                element: plain(bytes),
                ordering: Ordering::Weak,
                scope: None,
                dst: Box::new([Some(reg)]),
            },
        );
        if predicate {
            let zero = self.constant(Width::B16, 0);
            let is_set = Compute::setp(Compare::Ne, Operands::B16);
            self.compute(is_set, &[register], &[loaded, zero], None, span);
        }
    }

    /// A register → bytes, weakly written: what [`Self::fetch`] reads.
    pub fn keep(&mut self, guard: Option<Guard>, register: Register, address: Address, bytes: u32, span: Span) {
        let stored = match self.width(register) {
            Width::Pred => {
                let (one, zero) = (self.constant(Width::B16, 1), self.constant(Width::B16, 0));
                let number = self.body.register(Width::B16);
                let select = Compute::Logic(logic::Op::Selp { ty: Movable::B16 });
                self.compute(select, &[number], &[one, zero, register], None, span);
                number
            }
            Width::B16 | Width::B32 | Width::B64 | Width::B128 => register,
        };
        let reg = self.body.reg(stored);
        self.push(
            guard,
            span,
            Op::Store {
                address,
                element: plain(bytes),
                ordering: Ordering::Weak,
                scope: None,
                src: Box::new([reg]),
            },
        );
    }

    /// A place in the frame → a register.
    pub fn load_frame(&mut self, register: Register, place: Place, span: Span) {
        self.fetch(register, frame(place), place.bytes, span);
    }

    /// A register → a place in the frame.
    pub fn store_frame(&mut self, guard: Option<Guard>, register: Register, place: Place, span: Span) {
        self.keep(guard, register, frame(place), place.bytes, span);
    }

    /// `atom` (with a destination) and `red`.
    pub fn atomic(
        &mut self,
        atomic: ReadModifyWrite,
        instruction: &Instruction<'_>,
        guard: Option<Guard>,
        returns: bool,
    ) -> Outcome<()> {
        let (op, ty) = (atomic.op, atomic.ty.ty());
        let count = usize::from(atomic.vector.count());
        let (dst, rest) = match (returns, &instruction.operands[..]) {
            (true, [first, rest @ ..]) => (Some(self.returned(first, count, ty)?), rest),
            (true, []) => return Err(miscounted(instruction)),
            (false, rest) => (None, rest),
        };
        // A cache policy may follow.
        let (address, b, c) = match (op, rest) {
            (AtomicOp::Cas, [address, b, c, ..]) => (address, b, Some(c)),
            (_, [address, b, ..]) if op != AtomicOp::Cas => (address, b, None),
            _ => return Err(miscounted(instruction)),
        };
        let address = self.address(address, atomic.space)?;
        let b = self.values(b, count, ty, Fit::Exact)?;
        let c = match c {
            Some(c) => {
                let c = self.source(c, width_of(ty), Fit::Exact, false)?;
                Some(self.body.reg(c))
            }
            None => None,
        };
        self.push(
            guard,
            instruction.span,
            Op::Atomic {
                op,
                ty: atomic.ty,
                in_memory: atomic.adds_in_memory(address.space == Space::Shared),
                ordering: match atomic.ordering {
                    types::Ordering::Relaxed
                    | types::Ordering::Weak
                    | types::Ordering::Volatile
                    | types::Ordering::Mmio => Ordering::Relaxed,
                    types::Ordering::Acquire => Ordering::Acquire,
                    types::Ordering::Release => Ordering::Release,
                    types::Ordering::AcqRel | types::Ordering::Sc => Ordering::AcqRel,
                },
                // An atomic that names no scope is the device's (PTX ISA, atom).
                scope: match atomic.ordering {
                    types::Ordering::Volatile | types::Ordering::Mmio => Scope::Sys,
                    types::Ordering::Relaxed
                    | types::Ordering::Weak
                    | types::Ordering::Acquire
                    | types::Ordering::Release
                    | types::Ordering::AcqRel
                    | types::Ordering::Sc => atomic.scope.unwrap_or(Scope::Gpu),
                },
                address,
                dst,
                b,
                c,
            },
        );
        Ok(())
    }

    /// `membar.level`, `fence{.sem}.scope` and what they order besides.
    pub fn fence(&mut self, fence: operation::Fence, instruction: &Instruction<'_>, guard: Option<Guard>) {
        use operation::Proxy as Named;
        let proxy = match fence.proxy {
            None => Proxy::Generic,
            Some(Named::TensormapGeneric) => Proxy::Tensormap,
            Some(Named::Async | Named::AsyncGeneric) => Proxy::Async,
            Some(Named::AsyncGlobal) => Proxy::AsyncGlobal,
            Some(Named::AsyncSharedCta | Named::AsyncSharedCluster) => Proxy::AsyncShared,
            Some(Named::Alias) => Proxy::Alias,
            Some(Named::FabricFabric | Named::FabricGeneric | Named::GenericFabric) => Proxy::Fabric,
        };
        let ordering = match fence.ordering {
            Some(types::Ordering::Sc) => Ordering::Sc,
            Some(types::Ordering::Acquire) => Ordering::Acquire,
            Some(types::Ordering::Release) => Ordering::Release,
            // A fence between proxies orders what comes before and after it.
            None
            | Some(
                types::Ordering::AcqRel
                | types::Ordering::Weak
                | types::Ordering::Volatile
                | types::Ordering::Mmio
                | types::Ordering::Relaxed,
            ) => Ordering::AcqRel,
        };
        let scope = fence.scope;
        self.push(guard, instruction.span, Op::Fence { ordering, scope, proxy });
    }

    /// What an atomic returns goes to registers, whether or not somebody wants it.
    fn returned(&mut self, operand: &Operand, count: usize, ty: Type) -> Outcome<Box<[Reg]>> {
        let width = width_of(ty);
        let registers = match operand {
            Operand::Sink(_) => vec![None; count],
            other => self.destinations(other, count, width, Fit::Exact)?,
        };
        let registers = registers.into_iter().map(|register| {
            let register = register.unwrap_or_else(|| self.body.register(width));
            self.body.reg(register)
        });
        Ok(registers.collect())
    }

    /// `cp.async`: a copy, or what becomes of those before it.
    pub fn copy_async(&mut self, copy: CopyAsync, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let group = match copy {
            CopyAsync::Copy { to, cache } => return self.copy_async_bytes((to, cache.hint), instruction, guard),
            CopyAsync::CommitGroup => CopyGroup::Commit,
            CopyAsync::WaitGroup => {
                let [count] = &instruction.operands[..] else {
                    return Err(miscounted(instruction));
                };
                CopyGroup::Wait(self.immediate(count)? as u32)
            }
            CopyAsync::WaitAll => CopyGroup::WaitAll,
        };
        self.push(guard, instruction.span, Op::CopyGroup(group));
        Ok(())
    }

    /// `cp.async.ca.shared.global [dst], [src], bytes{, src_size}{, policy}`, or `…, bytes, ignore_src`
    fn copy_async_bytes(
        &mut self,
        (to, policy): (ast::Space, bool),
        instruction: &Instruction<'_>,
        guard: Option<Guard>,
    ) -> Outcome<()> {
        let [dst, src, bytes, extra @ ..] = &instruction.operands[..] else {
            return Err(miscounted(instruction));
        };
        let dst = self.address(dst, to)?;
        let src = self.address(src, ast::Space::Global)?;
        let bytes = self.immediate(bytes)? as u8;
        let extra = match extra {
            [extra @ .., _] if policy => extra,
            extra => extra,
        };
        let (mut src_size, mut ignore) = (None, None);
        if let Some(operand) = extra.first() {
            let is_predicate = match operand {
                Operand::Not(_) => true,
                Operand::Register(register) => self.tree.registers[register.number as usize].ty == Type::Pred,
                Operand::Sum(..)
                | Operand::Special(..)
                | Operand::Immediate(_)
                | Operand::AddressOf(..)
                | Operand::Address(_)
                | Operand::Vector(..)
                | Operand::Whole(..)
                | Operand::Group(..)
                | Operand::Pair(..)
                | Operand::Sink(_) => false,
            };
            if is_predicate {
                let (register, negated) = self.signed_predicate(operand)?;
                ignore = Some((self.body.reg(register), negated));
            } else {
                let register = self.source(operand, Width::B32, Fit::Exact, false)?;
                src_size = Some(self.body.reg(register));
            }
        }
        self.push(
            guard,
            instruction.span,
            Op::CopyAsync {
                dst,
                src,
                bytes,
                src_size,
                ignore,
            },
        );
        Ok(())
    }
}

fn plain(bytes: u32) -> Element {
    Element {
        bytes: bytes as u8,
        signed: false,
    }
}

fn frame(place: Place) -> Address {
    Address {
        space: Space::Local,
        register: None,
        offset: i64::from(place.offset),
    }
}

/// Whether an access in the space that the instruction names may reach a variable of the other.
fn compatible(wanted: Space, is: Space) -> bool {
    // Parameters of calls lie in the frame, also in kernels.
    wanted == is
        || matches!(
            (wanted, is),
            (Space::Param, Space::Local) | (Space::Global, Space::Const)
        )
}
