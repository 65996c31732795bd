//! What PTX 1.x lets instructions and declarations do and later versions do not (PTX ISA 1.1, chapters 5 and 6):
//! operations on whole vectors, swizzles, initialised registers and shared variables, registers of file scope.
//!
//! Registers of file scope belong to a thread, whatever function it is in. In a module without functions they are the
//! kernel's own; otherwise they lie at the start of the lane's local window, below the kernel's frame, and every
//! instruction that names one loads it before and stores it after.

use super::operand::{Fit, bits_type, is_special};
use super::place::Binding;
use super::{Lower, Outcome, bytes_of, width_of};
use crate::isa::compare::Operands;
use crate::isa::int::Ordered;
use crate::isa::lanes::Width;
use crate::isa::logic::Logical;
use crate::isa::{Compare, Compute, Operation};
use crate::program::check::tree::{Instruction, Object, Operand};
use crate::program::initialiser::{self, literal};
use crate::program::ir::{Address, BarrierOp, Element, Guard, Op, Ordering, Register, Scope, Space, Special, Value};
use crate::program::layout::{self, Place};
use crate::program::module::Symbol;
use crate::ptx::ast::{Expr, Init, Item, Name, Span, Type, Variable};
use crate::ptx::diagnostic::Diagnostic;

/// Bytes that the code of a function may write as initial values, for each byte of its text and beyond: each word is an
/// instruction.
const INITIAL: (usize, usize) = (64, 1 << 12);

/// Registers of one declaration of file scope, in a module with functions.
const MAX_REGISTERS: u32 = 1 << 9;

/// Registers of file scope times functions.
const MAX_BOUND: usize = 1 << 20;

fn number(bits: u64, span: Span) -> Operand {
    Operand::Immediate(Expr::Int {
        bits,
        unsigned: false,
        span,
    })
}

impl Lower<'_> {
    /// The unit is PTX 1.x.
    pub fn legacy(&self) -> bool {
        self.unit.tree.version < (2, 0)
    }

    // ---- vectors ----------------------------------------------------------------------------------------------------

    /// Lowers an instruction on whole vectors, element by element; false if it is none.
    pub fn vector_instruction(&mut self, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<bool> {
        if let Operation::Move { .. } = instruction.form.op {
            return self.move_vector(instruction, guard);
        }
        if instruction.lanes.is_none() {
            return Ok(false);
        }
        let Some((first, rest)) = instruction.operands.split_first() else {
            return Ok(false);
        };
        let count = match first {
            Operand::Pair(first, _) => first.list().len(),
            first => first.list().len(),
        };
        let sources: Vec<Vec<Operand>> = rest.iter().map(|one| spread(one, count)).collect();
        for lane in 0..count {
            let mut operands = vec![match first {
                Operand::Pair(a, b) => Operand::Pair(Box::new(element(a, lane)), Box::new(element(b, lane))),
                one => element(one, lane),
            }];
            operands.extend(sources.iter().map(|source| source[lane].clone()));
            self.instruction(&Instruction {
                lanes: None,
                operands,
                ..instruction.clone()
            })?;
        }
        Ok(true)
    }

    fn move_vector(&mut self, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<bool> {
        let [to, from] = self.operands(instruction)?;
        let width = width_of(instruction.form.ty(0));
        let named = |operand: &Operand| matches!(operand, Operand::Whole(..));
        // `mov.b64 d, {a, b}` packs, which is no conversion between vectors.
        let whole = named(to) || named(from) && self.first_is(from, width);
        if instruction.lanes.is_none() && !whole {
            return Ok(false);
        }
        let to = to.list();
        let from = spread(from, to.len());
        self.mov_vector(to, &from, width, instruction.span, guard)?;
        Ok(true)
    }

    /// Whether the first element is as wide as the `mov`, so that it alone is moved.
    fn first_is(&self, vector: &Operand, width: Width) -> bool {
        match vector.list().first() {
            Some(Operand::Register(register)) => width_of(self.tree.registers[register.number as usize].ty) == width,
            Some(first) => is_special(first),
            None => false,
        }
    }

    /// `ld.v3` and `st.v3`: three accesses of one element, at addresses that need no wider alignment.
    pub fn access_three(
        &mut self,
        (mut address, element, ordering): (Address, Element, Ordering),
        registers: &[Option<Register>],
        store: bool,
        guard: Option<Guard>,
        span: Span,
    ) -> Outcome<()> {
        if let Some(reg) = address.register {
            // A destination may be the register that holds the address.
            let saved = self.body.register(reg.width);
            self.copy(None, saved, reg.number, span)?;
            address.register = Some(self.body.reg(saved));
        }
        // The first versions have `.volatile` and no other strong access.
        let scope = (ordering != Ordering::Weak).then_some(Scope::Sys);
        for (lane, register) in registers.iter().enumerate() {
            let Some(register) = *register else { continue };
            let reg = self.body.reg(register);
            let address = Address {
                offset: address.offset.wrapping_add(lane as i64 * i64::from(element.bytes)),
                ..address
            };
            let kind = match store {
                true => Op::Store {
                    address,
                    element,
                    ordering,
                    scope,
                    src: Box::new([reg]),
                },
                false => Op::Load {
                    address,
                    element,
                    ordering,
                    scope,
                    dst: Box::new([Some(reg)]),
                },
            };
            self.push(guard, span, kind);
        }
        Ok(())
    }

    /// A shift count of the shifted value's own width (Tables 38 and 39), as the 32 bits that the kernels take.
    pub fn shift_count(&mut self, register: Register, span: Span) -> Outcome<Register> {
        let register = match self.width(register) {
            Width::B64 => {
                // Counts beyond the width shift everything out, however far beyond they are.
                let most = self.constant(Width::B64, 64);
                let clamped = self.body.register(Width::B64);
                self.compute(Compute::min(Ordered::U64), &[clamped], &[register, most], None, span);
                clamped
            }
            Width::Pred | Width::B16 | Width::B32 | Width::B128 => register,
        };
        self.resize(register, Width::B32, false, span)
    }

    // ---- initial values ---------------------------------------------------------------------------------------------

    /// `.reg .s32 i = 0;`: the value is there where the declaration stands (5.3.5).
    pub fn initial_registers(&mut self, number: u32, variable: &Variable) -> Outcome<()> {
        let (Some(init), Binding::Registers(first)) = (&variable.init, self.binding(number)) else {
            return Ok(());
        };
        let values = match init {
            Init::List(list) => &list[..],
            one @ (Init::Value(_) | Init::Fields(_)) => std::slice::from_ref(one),
        };
        if values.len() > usize::from(variable.vector.unwrap_or(1)) {
            let message = format!(
                "the initialiser has more values than `{}` has elements",
                variable.name.text
            );
            return Err(Diagnostic::error(variable.span, message));
        }
        for (register, value) in (first..).zip(values) {
            let Init::Value(value) = value else {
                return Err(Diagnostic::error(
                    variable.span,
                    "one value is expected for each element",
                ));
            };
            let width = self.width(register);
            let bits = match (value, variable.ty) {
                (Expr::Int { bits, .. }, Type::Pred) => u128::from(*bits),
                (value, ty) => literal(value, if layout::is_float(ty) { ty } else { bits_type(width) })?,
            };
            let constant = self.constant(width, bits);
            self.copy(None, register, constant, variable.span)?;
        }
        Ok(())
    }

    /// `.local .u8 bg[4] = {0, 0, 0, 0};`
    pub fn initial_frame(&mut self, variable: &Variable, init: &Init, place: Place) -> Outcome<()> {
        let own = self.module.functions[self.function as usize].origin;
        let bytes = self.initial_bytes(variable, init, own.map_or(0, |origin| origin.unit))?;
        self.store_bytes(
            &bytes,
            Space::Local,
            i64::from(place.offset),
            layout::align_of(variable),
            None,
            variable.span,
        )
    }

    fn initial_bytes(&mut self, variable: &Variable, init: &Init, unit: usize) -> Outcome<Vec<u8>> {
        let module = self.module;
        let names = &module.linked.units[unit].names;
        let mut address = |name: &Name| match names.get(&name.text) {
            Some(Symbol::Global(index)) => Ok(module.globals[*index as usize].address),
            Some(Symbol::Function(index)) => Ok(module.function_address(*index)),
            _ => Err(Diagnostic::error(
                name.span,
                format!("`{}` has no address that is known before the launch", name.text),
            )),
        };
        let size = layout::bytes_of(variable).unwrap_or(0);
        self.initial_bytes = self.initial_bytes.saturating_add(size as usize);
        let text = self.definition.body.as_ref().map_or(0, |body| body.text().len());
        match self.initial_bytes <= INITIAL.0 * text + INITIAL.1 {
            true => initialiser::contents(variable, init, &mut address).map(|contents| contents.bytes()),
            false => Err(Diagnostic::error(
                variable.span,
                format!(
                    "`{}` is too large for an initialiser in this state space",
                    variable.name.text
                ),
            )),
        }
    }

    fn store_bytes(
        &mut self,
        bytes: &[u8],
        space: Space,
        offset: i64,
        align: u64,
        guard: Option<Guard>,
        span: Span,
    ) -> Outcome<()> {
        let step = [8, 4, 2, 1]
            .into_iter()
            .find(|step| align.is_multiple_of(*step))
            .unwrap_or(1) as usize;
        let mut at = 0;
        while at < bytes.len() {
            let size = [step, 4, 2, 1]
                .into_iter()
                .find(|&size| size <= step && at + size <= bytes.len());
            let size = size.unwrap_or(1);
            let width = match size {
                8 => Width::B64,
                4 => Width::B32,
                _ => Width::B16,
            };
            let mut word = [0; 16];
            word[..size].copy_from_slice(&bytes[at..at + size]);
            let value = self.constant(width, u128::from_le_bytes(word));
            let reg = self.body.reg(value);
            self.push(
                guard,
                span,
                Op::Store {
                    address: Address {
                        space,
                        register: None,
                        offset: offset + at as i64,
                    },
                    element: Element {
                        bytes: size as u8,
                        signed: false,
                    },
                    ordering: Ordering::Weak,
                    scope: None,
                    src: Box::new([reg]),
                },
            );
            at += size;
        }
        Ok(())
    }

    /// Initialised shared variables: the first thread writes them, the others wait for it.
    pub fn initial_shared(&mut self) -> Outcome<()> {
        let offsets = self.shared.offsets.clone();
        if offsets.is_empty() {
            return Ok(());
        }
        let module = self.module;
        let found: Vec<(u32, usize, &Variable)> = offsets
            .iter()
            .filter_map(|(index, offset)| module.old().shared.get(index).map(|(unit, one)| (*offset, *unit, one)))
            .collect();
        let Some((.., first)) = found.first() else {
            return Ok(());
        };
        let span = first.span;
        let mut sum = self.constant(Width::B32, 0);
        for axis in 0..3 {
            let thread = self.special_register(Special::Tid(axis), Width::B32, span);
            let next = self.body.register(Width::B32);
            self.compute(Compute::or(Logical::B32), &[next], &[sum, thread], None, span);
            sum = next;
        }
        let zero = self.constant(Width::B32, 0);
        let first = self.body.register(Width::Pred);
        self.compute(
            Compute::setp(Compare::Eq, Operands::U32),
            &[first],
            &[sum, zero],
            None,
            span,
        );
        let guard = Guard {
            reg: self.body.reg(first),
            negated: false,
        };
        for (offset, unit, variable) in found {
            let Some(init) = &variable.init else { continue };
            let bytes = self.initial_bytes(variable, init, unit)?;
            let align = layout::align_of(variable);
            self.store_bytes(
                &bytes,
                Space::Shared,
                i64::from(offset),
                align,
                Some(guard),
                variable.span,
            )?;
        }
        self.push(
            None,
            span,
            Op::Barrier {
                op: BarrierOp::Sync,
                aligned: false,
                id: Value::Immediate(0),
                threads: None,
                dst: None,
                pred: None,
            },
        );
        Ok(())
    }

    // ---- registers of file scope ------------------------------------------------------------------------------------

    /// Gives the registers that the unit declares outside of functions their places and initial values.
    pub fn file_registers(&mut self) {
        let (module, tree) = (self.module, self.tree);
        if tree.file_registers.is_empty() {
            return;
        }
        if tree.file_registers.len() * module.functions.len() > MAX_BOUND {
            let span = self.definition.name.span;
            let message = "too many registers at file scope for so many functions";
            return self.error(Diagnostic::error(span, message));
        }
        if !module.functions.iter().any(|function| !function.entry) {
            return self.own_file_registers();
        }
        for &item in tree.file_registers {
            if let Err(found) = self.persistent(item) {
                self.error(found);
            }
        }
        if self.is_kernel() {
            // The kernel's frame starts where the window does.
            let end = self.file_places.last().map_or(0, |last| last.offset + last.bytes);
            self.frame.take(end, 16);
        }
    }

    /// In a module without functions they are the kernel's, with values from the start.
    fn own_file_registers(&mut self) {
        let tree = self.tree;
        for (number, declared) in (0..).zip(&tree.registers) {
            if let Some((item, _)) = declared.file
                && let Some(Item::Variable(variable)) = self.unit.tree.items.get(item as usize)
                && let Err(found) = self.initial_registers(number, variable)
            {
                self.error(found);
            }
        }
    }

    /// Where registers of file scope lie that functions share; nothing if they are the kernel's own.
    pub fn file_place(&self, item: u32, member: u32) -> Option<Place> {
        let at = self.tree.file_registers.binary_search(&item).ok()?;
        let Place { offset, bytes } = *self.file_places.get(at)?;
        let width = stored(width_of(self.variable(Object::Item(item))?.ty));
        // What lies beyond is of a range that was refused.
        let at = member.checked_mul(width).filter(|&at| at < bytes)?;
        Some(Place {
            offset: offset + at,
            bytes: width,
        })
    }

    /// The same places in every function: kernels count from the same start.
    fn persistent(&mut self, item: u32) -> Outcome<()> {
        let Some(variable) = self.variable(Object::Item(item)) else {
            return Ok(());
        };
        let count = variable.count.unwrap_or(1);
        let alone = self.module.linked.units.len() == 1;
        let last = self.file_places.last();
        let end = last.map_or(0, |last| last.offset + last.bytes);
        let fits = variable.vector.is_none() && count <= MAX_REGISTERS && alone;
        let bytes = stored(width_of(variable.ty));
        let place = Place {
            offset: layout::round_up(end, bytes),
            bytes: if fits { bytes * count } else { bytes * MAX_REGISTERS },
        };
        self.file_places.push(place);
        if !fits {
            let message = format!("`{}` cannot be shared between functions", variable.name.text);
            return Err(Diagnostic::error(variable.name.span, message));
        }
        if !self.is_kernel() {
            return Ok(());
        }
        let width = width_of(variable.ty);
        let bits = match &variable.init {
            Some(Init::Value(Expr::Int { bits, .. })) => u128::from(*bits),
            Some(Init::Value(value)) => literal(value, variable.ty)?,
            Some(Init::List(_) | Init::Fields(_)) | None => 0,
        };
        for member in 0..count {
            let value = self.constant(width, bits);
            if let Some(place) = self.file_place(item, member) {
                self.store_persistent(None, value, place, variable.span)?;
            }
        }
        Ok(())
    }

    fn window(&mut self, place: Place) -> Address {
        let start = self.constant(Width::B32, 0);
        Address {
            space: Space::Local,
            register: Some(self.body.reg(start)),
            offset: i64::from(place.offset),
        }
    }

    /// The value of a register of file scope.
    pub fn load_persistent(&mut self, place: Place, ty: Type, span: Span) -> Register {
        let register = self.body.register(width_of(ty));
        let address = self.window(place);
        self.fetch(register, address, stored(width_of(ty)), span);
        register
    }

    fn store_persistent(&mut self, guard: Option<Guard>, value: Register, place: Place, span: Span) -> Outcome<()> {
        let address = self.window(place);
        self.keep(guard, value, address, stored(self.width(value)), span);
        Ok(())
    }

    /// A register for a result that goes to one of file scope: stored when the instruction is done.
    pub fn persistent_result(&mut self, place: Place, ty: Type) -> Register {
        let register = self.body.register(width_of(ty));
        self.results.push((register, place));
        register
    }

    /// Stores what the last instruction computed for registers of file scope.
    pub fn store_results(&mut self, guard: Option<Guard>, span: Span) -> Outcome<()> {
        for (register, place) in std::mem::take(&mut self.results) {
            self.store_persistent(guard, register, place, span)?;
        }
        Ok(())
    }

    /// A destination as wide as its register, where PTX 1.x extends (Table 62: "zero-extends tid.0 to r0").
    pub fn wider_destination(&mut self, operand: &Operand, width: Width) -> Outcome<(Register, Option<Register>)> {
        let register = self.destination(operand, width, Fit::Wider)?;
        if self.width(register) == width {
            return Ok((register, None));
        }
        Ok((self.body.register(width), Some(register)))
    }
}

/// One lane of a vector, or the operand itself.
fn element(operand: &Operand, lane: usize) -> Operand {
    operand.list().get(lane).unwrap_or(operand).clone()
}

/// An operand for each of `count` lanes: a scalar is the same for all, a short vector goes on with zeros (Table 10).
fn spread(operand: &Operand, count: usize) -> Vec<Operand> {
    let Some(elements) = operand.elements() else {
        return vec![operand.clone(); count];
    };
    let zeros = std::iter::repeat_with(|| number(0, operand.span()));
    elements.iter().cloned().chain(zeros).take(count).collect()
}

/// Bytes of a register of file scope in memory; predicates lie there as 16 bits.
fn stored(width: Width) -> u32 {
    match width {
        Width::Pred => 2,
        Width::B16 | Width::B32 | Width::B64 | Width::B128 => bytes_of(width),
    }
}
