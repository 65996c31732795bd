//! What PTX 1.x lets instructions and declarations do and later versions do not (PTX ISA 1.1, chapters 5 and 6):
//! operations on whole vectors, swizzles, initialised registers and shared variables, registers of file scope.
//!
//! Registers of file scope belong to a thread, whatever function it is in. In a module without functions they are the
//! kernel's own; otherwise they lie at the start of the lane's local window, below the kernel's frame, and every
//! instruction that names one loads it before and stores it after.

use super::operand::{Fit, bits_type};
use super::scope::Binding;
use super::special::{self, Reading};
use super::{Lower, Outcome, bytes_of, width_of};
use crate::isa::compare::Operands;
use crate::isa::int::Ordered;
use crate::isa::lanes::Width;
use crate::isa::logic::{self, Logical};
use crate::isa::types::Movable;
use crate::isa::{self, Compare, Compute, Form};
use crate::program::initialiser::{self, literal};
use crate::program::ir::{
    Address, BarrierOp, Element, Guard, Op, Ordering, Reg, Register, Scope, Space, Special, Value,
};
use crate::program::layout::{self, Place};
use crate::program::module::Symbol;
use crate::ptx::ast::{Expr, Init, Instruction, Item, Name, Opcode, Operand, Span, Type, Variable};
use crate::ptx::diagnostic::Diagnostic;

/// Bytes that the code of a function may write as initial values, for each byte of its text and beyond: each word is an
/// instruction.
const INITIAL: (usize, usize) = (64, 1 << 12);

/// Registers of one declaration of file scope, in a module with functions.
const MAX_REGISTERS: u32 = 1 << 9;

/// Registers of file scope times functions.
const MAX_BOUND: usize = 1 << 20;

/// `v2`, `v3`, `v4` as a number.
fn lanes(word: &str) -> Option<usize> {
    match word {
        "v2" => Some(2),
        "v3" => Some(3),
        "v4" => Some(4),
        _ => None,
    }
}

/// The elements that a swizzle names: `xxyy`, `0123`, `bgra` (6.4.3).
pub fn swizzle(text: &str) -> Option<Vec<usize>> {
    let of = |set: &str| text.chars().map(|c| set.find(c)).collect::<Option<Vec<_>>>();
    (text.len() >= 2).then(|| of("xyzw").or_else(|| of("rgba")).or_else(|| of("0123")))?
}

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

    /// What the instruction table says of an opcode.
    pub fn decode(&self, opcode: &Opcode) -> Outcome<Form> {
        isa::decode_in(&opcode.text, self.unit.tree.version, self.target)
            .map_err(|error| Diagnostic::error(opcode.span, error.to_string()))
    }

    // ---- vectors ----------------------------------------------------------------------------------------------------

    /// Lowers an instruction on whole vectors, element by element; false if it is none.
    pub fn vector_instruction(&mut self, instruction: &Instruction, guard: Option<Guard>) -> Outcome<bool> {
        let mnemonic = instruction.opcode.words().next().unwrap_or_default();
        let count = instruction.opcode.words().find_map(lanes);
        let mov = mnemonic == "mov";
        let vectors = mov && instruction.operands.iter().any(|one| self.named_vector(one));
        if matches!(mnemonic, "ld" | "st" | "tex") || count.is_none() && !vectors {
            return Ok(false);
        }
        let words: Vec<&str> = instruction
            .opcode
            .words()
            .filter(|word| lanes(word).is_none())
            .collect();
        let scalar = Opcode {
            text: words.join(".").into(),
            span: instruction.opcode.span,
        };
        if mov {
            let form = self.decode(&scalar)?;
            return self.move_vector(&form, instruction, count, guard);
        }
        let Some((first, rest)) = instruction.operands.split_first() else {
            return Ok(false);
        };
        let count = match first {
            Operand::Pair(first, _) => self.elements(first).map_or(1, |list| list.len()),
            first => self.elements(first).map_or(1, |list| list.len()),
        };
        let sources: Vec<Vec<Operand>> = rest.iter().map(|one| self.spread(one, count)).collect();
        for lane in 0..count {
            let mut operands = vec![match first {
                Operand::Pair(a, b) => {
                    let (a, b) = (self.lane_of_operand(a, lane), self.lane_of_operand(b, lane));
                    Operand::Pair(Box::new(a), Box::new(b))
                }
                one => self.lane_of_operand(one, lane),
            }];
            operands.extend(sources.iter().map(|source| source[lane].clone()));
            self.instruction(&Instruction {
                guard: instruction.guard.clone(),
                opcode: scalar.clone(),
                operands,
                span: instruction.span,
            })?;
        }
        Ok(true)
    }

    /// A vector by its name, or elements of one by a swizzle; not a list in braces.
    fn named_vector(&mut self, operand: &Operand) -> bool {
        matches!(operand, Operand::Name { .. }) && self.elements(operand).is_some()
    }

    fn lane_of_operand(&mut self, operand: &Operand, lane: usize) -> Operand {
        self.elements(operand)
            .and_then(|list| list.get(lane).cloned())
            .unwrap_or_else(|| operand.clone())
    }

    /// An operand for each of `count` lanes: a scalar is the same for all, a short vector goes on with zeros (Table 10).
    fn spread(&mut self, operand: &Operand, count: usize) -> Vec<Operand> {
        match self.elements(operand) {
            None => vec![operand.clone(); count],
            Some(mut list) => {
                list.resize(count, number(0, operand.span()));
                list
            }
        }
    }

    fn move_vector(
        &mut self,
        form: &Form,
        instruction: &Instruction,
        count: Option<usize>,
        guard: Option<Guard>,
    ) -> Outcome<bool> {
        self.operand_count(instruction, 2, 2)?;
        let width = width_of(form.ty(0));
        let (to, from) = (&instruction.operands[0], &instruction.operands[1]);
        let named = (self.named_vector(to), self.named_vector(from));
        let (to_list, from_list) = (self.elements(to), self.elements(from));
        // `mov.b64 d, {a, b}` packs, which is no conversion between vectors.
        if count.is_none() && !named.0 && !(named.1 && self.first_is(&from_list, width)) {
            return Ok(false);
        }
        let to_list = to_list.unwrap_or_else(|| vec![to.clone()]);
        let from_list = match from_list {
            Some(mut list) => {
                list.resize(to_list.len(), number(0, from.span()));
                list
            }
            None => vec![from.clone(); to_list.len()],
        };
        self.mov_vector(&to_list, &from_list, width, instruction.span, guard)?;
        Ok(true)
    }

    /// Whether the first element is as wide as the `mov`, so that it alone is moved.
    fn first_is(&mut self, list: &Option<Vec<Operand>>, width: Width) -> bool {
        let Some(Operand::Name { name, select, .. }) = list.as_ref().and_then(|list| list.first()) else {
            return false;
        };
        match self.find(name) {
            Some(Binding::Vector { ty, .. }) => width_of(ty) == width,
            _ => special::read(&name.text, select.as_ref().map(|s| &*s.text)).is_some(),
        }
    }

    /// Where a scalar stands, a vector means its first element (Table 10).
    pub fn first_element(&mut self, operand: &Operand) -> Option<Operand> {
        if !self.legacy() || !matches!(operand, Operand::Name { .. }) {
            return None;
        }
        self.elements(operand).and_then(|list| list.into_iter().next())
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
            _ => register,
        };
        self.resize(register, Width::B32, false, span)
    }

    /// A special register, or a vector's first element, at the width that an instruction wants.
    pub fn legacy_source(&mut self, operand: &Operand, width: Width) -> Outcome<Option<Register>> {
        let Operand::Name {
            name,
            select,
            offset: 0,
        } = operand
        else {
            return Ok(None);
        };
        if self.find(name).is_some() {
            return Ok(None);
        }
        if let Some(bits) = self.entry_constant(&name.text, select.as_ref().map(|s| &*s.text)) {
            return Ok(Some(self.constant(width, bits)));
        }
        let select = select.as_ref().map(|s| &*s.text);
        let reading = match special::read(&name.text, select) {
            Some(Reading::Vector) => special::read(&name.text, Some("x")),
            other => other,
        };
        match reading {
            None => Ok(None),
            Some(reading) => {
                let register = self.special(name, reading, Some(width))?;
                self.resize(register, width, false, operand.span()).map(Some)
            }
        }
    }

    /// `RANKTID`, `NTID.0` …: the dimensions that the kernel's header says (Table 68); 0 where it leaves one open.
    fn entry_constant(&self, name: &str, select: Option<&str>) -> Option<u128> {
        let dims = &self.definition.dims;
        if !self.is_kernel() {
            return None;
        }
        match (name, select) {
            ("RANKTID", None) => Some(dims.len().max(1) as u128),
            ("NTID", Some(axis)) => {
                let axis = ["0", "1", "2"]
                    .iter()
                    .position(|a| *a == axis)
                    .or_else(|| ["x", "y", "z"].iter().position(|a| *a == axis))?;
                let dim = dims.len().checked_sub(axis + 1).map(|at| dims[at]);
                Some(u128::from(dim.unwrap_or(Some(1)).unwrap_or(0)))
            }
            _ => None,
        }
    }

    // ---- initial values ---------------------------------------------------------------------------------------------

    /// `.reg .s32 i = 0;`: the value is there where the declaration stands (5.3.5).
    pub fn initial_registers(&mut self, variable: &Variable, init: &Init, binding: &Binding) -> Outcome<()> {
        let values: Vec<&Init> = match init {
            Init::List(list) => list.iter().collect(),
            one => vec![one],
        };
        let registers: Vec<Register> = match binding {
            Binding::Register { register, .. } => vec![*register],
            Binding::Vector { elements, .. } => elements.to_vec(),
            _ => Vec::new(),
        };
        if values.len() > registers.len() {
            let message = format!(
                "the initialiser has more values than `{}` has elements",
                variable.name.text
            );
            return Err(Diagnostic::error(variable.span, message));
        }
        for (&register, value) in registers.iter().zip(values) {
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
            Some(Symbol::Function(index)) => Ok(module.code_base + 16 * u64::from(*index)),
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
                id: Value::Immediate(0),
                threads: None,
                dst: None,
                pred: None,
            },
        );
        Ok(())
    }

    // ---- registers of file scope ------------------------------------------------------------------------------------

    /// Binds the registers that the unit declares outside of functions.
    pub fn file_registers(&mut self) {
        if !self.legacy() {
            return;
        }
        let module = self.module;
        let registers = &module.old().registers;
        if registers.is_empty() {
            return;
        }
        if registers.len() * module.functions.len() > MAX_BOUND {
            let span = self.definition.name.span;
            let message = "too many registers at file scope for so many functions";
            return self.error(Diagnostic::error(span, message));
        }
        let functions = module.functions.iter().any(|function| !function.entry);
        for &(unit, item) in registers {
            let tree = &module.linked.units[unit].tree;
            let Item::Variable(variable) = &tree.items[item] else {
                continue;
            };
            if !std::ptr::eq(&**tree, &*self.unit.tree) {
                continue;
            }
            let outcome = match functions {
                false => self.declare(variable),
                true => self.persistent(variable),
            };
            if let Err(found) = outcome {
                self.error(found);
            }
        }
        if self.is_kernel() && self.file_bytes > 0 {
            // The kernel's frame starts where the window does.
            self.frame.take(self.file_bytes, 16);
        }
    }

    fn persistent(&mut self, variable: &Variable) -> Outcome<()> {
        let (count, plain) = (variable.count.unwrap_or(1), variable.count.is_none());
        let alone = self.module.linked.units.len() == 1;
        if variable.vector.is_some() || count > MAX_REGISTERS || !alone {
            let message = format!("`{}` cannot be shared between functions", variable.name.text);
            return Err(Diagnostic::error(variable.name.span, message));
        }
        for index in 0..count {
            let name = match plain {
                true => variable.name.text.clone(),
                false => format!("{}{index}", variable.name.text).into(),
            };
            let ty = variable.ty;
            let bytes = stored(width_of(ty)).1;
            // The same places in every function: kernels count from the same start.
            let offset = layout::round_up(self.file_bytes, bytes);
            self.file_bytes = offset + bytes;
            let place = Place { offset, bytes };
            self.scopes.bind(name, Binding::Persistent { place, ty });
            if self.is_kernel() {
                let init = match &variable.init {
                    Some(Init::Value(value)) => value.clone(),
                    _ => Expr::Int {
                        bits: 0,
                        unsigned: false,
                        span: variable.span,
                    },
                };
                let width = width_of(ty);
                let bits = match (&init, ty) {
                    (Expr::Int { bits, .. }, _) => u128::from(*bits),
                    (value, ty) => literal(value, ty)?,
                };
                let value = self.constant(width, bits);
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
    pub fn load_persistent(&mut self, place: Place, ty: Type, span: Span) -> Outcome<Register> {
        let width = width_of(ty);
        let (as_width, bytes) = stored(width);
        let loaded = self.body.register(as_width);
        let (address, reg) = (self.window(place), self.body.reg(loaded));
        self.push(
            None,
            span,
            Op::Load {
                address,
                element: Element {
                    bytes: bytes as u8,
                    signed: false,
                },
                ordering: Ordering::Weak,
                scope: None,
                dst: Box::new([Some(reg)]),
            },
        );
        if width != Width::Pred {
            return Ok(loaded);
        }
        let predicate = self.body.register(Width::Pred);
        let zero = self.constant(as_width, 0);
        self.compute(
            Compute::setp(Compare::Ne, Operands::B16),
            &[predicate],
            &[loaded, zero],
            None,
            span,
        );
        Ok(predicate)
    }

    fn store_persistent(&mut self, guard: Option<Guard>, value: Register, place: Place, span: Span) -> Outcome<()> {
        let (as_width, bytes) = stored(self.width(value));
        let value = match self.width(value) {
            Width::Pred => {
                let (one, zero) = (self.constant(as_width, 1), self.constant(as_width, 0));
                let number = self.body.register(as_width);
                let select = Compute::Logic(logic::Op::Selp { ty: Movable::B16 });
                self.compute(select, &[number], &[one, zero, value], None, span);
                number
            }
            _ => value,
        };
        let (address, reg): (Address, Reg) = (self.window(place), self.body.reg(value));
        self.push(
            guard,
            span,
            Op::Store {
                address,
                element: Element {
                    bytes: bytes as u8,
                    signed: false,
                },
                ordering: Ordering::Weak,
                scope: None,
                src: Box::new([reg]),
            },
        );
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

/// Predicates lie in memory as 16 bits.
fn stored(width: Width) -> (Width, u32) {
    match width {
        Width::Pred => (Width::B16, 2),
        other => (other, bytes_of(other)),
    }
}
