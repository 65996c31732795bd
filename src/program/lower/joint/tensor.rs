//! Lowering of `cp.async.bulk.tensor` and its family. Addresses are, in this order, shared memory, the barrier (of
//! loads), the tensor map; what stands among the sources says
//! [`Tensor::places`](crate::isa::joint::tensor::Tensor::places).

use crate::isa::joint::Joint;
use crate::isa::joint::tensor::{Field, Multicast, Op, Override};
use crate::isa::lanes::Width;
use crate::program::check::tree::{Instruction, Operand};
use crate::program::ir::{Address, Guard, JointOp, Op as Operation, Reg, Space};
use crate::program::lower::operand::{Fit, miscounted, unexpected};
use crate::program::lower::{Lower, Outcome};
use crate::ptx::ast;
use crate::ptx::diagnostic::Diagnostic;

impl Lower<'_> {
    pub(super) fn tensor(&mut self, op: Op, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let (addresses, src) = match op {
            Op::Load(load) => {
                let [destination, source, barrier, rest @ ..] = &instruction.operands[..] else {
                    return Err(miscounted(instruction));
                };
                let to = self.address(destination, ast::Space::SharedCluster)?;
                let barrier = self.address(barrier, ast::Space::SharedCluster)?;
                let (map, mut src) = self.tensor_source(load.tensor.over, source)?;
                let places = load.tensor.places(load.multicast.is_some());
                let mut rest = rest.iter();
                if !places.info.is_empty() {
                    let info = rest.next().ok_or_else(|| miscounted(instruction))?;
                    self.words(info.list(), Width::B16, &mut src)?;
                }
                if let Some(multicast) = load.multicast {
                    let mask = rest.next().ok_or_else(|| miscounted(instruction))?;
                    let width = match multicast {
                        Multicast::Mask16 => Width::B16,
                        Multicast::Mask32 => Width::B32,
                    };
                    self.words(std::slice::from_ref(mask), width, &mut src)?;
                }
                (vec![to, barrier, map], src)
            }
            Op::Store(store) => {
                let [target, source, ..] = &instruction.operands[..] else {
                    return Err(miscounted(instruction));
                };
                let from = self.address(source, ast::Space::SharedCta)?;
                let (map, src) = self.tensor_source(store.tensor.over, target)?;
                (vec![from, map], src)
            }
            Op::Replace { field, space } => self.replaced(field, space, instruction)?,
            Op::CopyMap { .. } => {
                let [destination, source, _] = self.operands(instruction)?;
                let to = self.address(destination, ast::Space::Global)?;
                let from = self.address(source, ast::Space::SharedCta)?;
                (vec![to, from], Vec::new())
            }
        };
        let joint = JointOp {
            what: Joint::Tensor(op),
            addresses: addresses.into(),
            src: src.into(),
            dst: Box::new([]),
            objects: Box::new([]),
        };
        self.push(guard, instruction.span, Operation::Joint(Box::new(joint)));
        Ok(())
    }

    /// `[map{, address}{, sizes{, strides, upper}}, coordinates]`
    fn tensor_source(&mut self, over: Override, operand: &Operand) -> Outcome<(Address, Vec<Reg>)> {
        let Operand::Group(list, span) = operand else {
            return unexpected(operand);
        };
        let [map, middle @ .., coordinates] = &list[..] else {
            return Err(Diagnostic::error(
                *span,
                "a tensor map and coordinates are expected here",
            ));
        };
        let mut src = Vec::new();
        let map = self.tensor_part(over, (map, middle.iter(), coordinates), &mut src)?;
        Ok((map, src))
    }

    /// The map, what is said in its stead, and coordinates: the map's address, and what else becomes sources.
    pub(super) fn tensor_part<'o>(
        &mut self,
        over: Override,
        (map, mut middle, coordinates): (&Operand, impl Iterator<Item = &'o Operand>, &Operand),
        src: &mut Vec<Reg>,
    ) -> Outcome<Address> {
        let mut next = || {
            middle
                .next()
                .ok_or_else(|| Diagnostic::error(coordinates.span(), "an operand is missing before this one"))
        };
        let map = self.tensor_map(map)?;
        if over != Override::None {
            self.words(std::slice::from_ref(next()?), Width::B64, src)?;
        }
        if over == Override::Sizes {
            let sizes = next()?.list();
            self.words(sizes, Width::B16, src)?;
            if sizes.len() > 1 {
                self.words(next()?.list(), Width::B32, src)?;
                self.words(std::slice::from_ref(next()?), Width::B16, src)?;
            }
        }
        self.words(coordinates.list(), Width::B32, src)?;
        Ok(map)
    }

    /// A register with a generic address, or the name of a variable.
    fn tensor_map(&mut self, operand: &Operand) -> Outcome<Address> {
        let (register, offset) = match operand {
            Operand::AddressOf(object, offset, span) => {
                let located = self.locate(*object, *span)?;
                return Ok(self.located_address(&located, *offset));
            }
            Operand::Sum(register, offset) => (self.register(*register), *offset),
            other => (self.source(other, Width::B64, Fit::Exact, false)?, 0),
        };
        Ok(Address {
            space: Space::Generic,
            register: Some(self.body.reg(register)),
            offset,
        })
    }

    fn words(&mut self, operands: &[Operand], width: Width, src: &mut Vec<Reg>) -> Outcome<()> {
        for operand in operands {
            let register = self.source(operand, width, Fit::Exact, false)?;
            src.push(self.body.reg(register));
        }
        Ok(())
    }

    /// `[map], {ordinal, }value`
    fn replaced(
        &mut self,
        field: Field,
        space: crate::isa::types::Space,
        instruction: &Instruction<'_>,
    ) -> Outcome<(Vec<Address>, Vec<Reg>)> {
        let (map, ordinal, value) = match (&instruction.operands[..], field.has_ordinal()) {
            ([map, ordinal, value], true) => (map, Some(ordinal), value),
            ([map, value], false) => (map, None, value),
            _ => return Err(miscounted(instruction)),
        };
        let map = self.address(map, space)?;
        let mut src = Vec::new();
        if let Some(ordinal) = ordinal {
            self.words(std::slice::from_ref(ordinal), Width::B32, &mut src)?;
        }
        let width = if field.is_long() { Width::B64 } else { Width::B32 };
        self.words(std::slice::from_ref(value), width, &mut src)?;
        Ok((vec![map], src))
    }
}
