//! Lowering of fabric operations: [`Op`] says which addresses and registers each has. An endpoint stands in brackets, with
//! an offset, perhaps that of a counter, and what says which part of a tensor.

use crate::isa::joint::Joint;
use crate::isa::joint::fabric::{Op, Target};
use crate::isa::joint::tensor::Tensor;
use crate::isa::lanes::Width;
use crate::program::check::tree::{Instruction, Operand};
use crate::program::ir::{Address, Guard, JointOp, Op as Operation, Reg};
use crate::program::lower::operand::{Fit, miscounted, unexpected};
use crate::program::lower::{Lower, Outcome};
use crate::ptx::ast::Space;
use crate::ptx::diagnostic::Diagnostic;

/// An operand that names a part of an endpoint.
struct Named<'a> {
    /// The tensor map.
    map: Option<&'a Operand>,
    endpoint: &'a Operand,
    offset: &'a Operand,
    counter: Option<&'a Operand>,
    /// What else says which part of a tensor, and its coordinates last.
    rest: &'a [Operand],
}

fn named(operand: &Operand, tensor: bool, counted: bool) -> Outcome<Named<'_>> {
    let Operand::Group(list, span) = operand else {
        return unexpected(operand);
    };
    let missing = || Diagnostic::error(*span, "a logical endpoint and an offset are expected here");
    let (map, list) = match (tensor, &list[..]) {
        (false, list) => (None, list),
        (true, [map, list @ ..]) => (Some(map), list),
        (true, []) => return Err(missing()),
    };
    match (counted, list) {
        (false, [endpoint, offset, rest @ ..]) => Ok(Named {
            map,
            endpoint,
            offset,
            counter: None,
            rest,
        }),
        (true, [endpoint, offset, counter, rest @ ..]) => Ok(Named {
            map,
            endpoint,
            offset,
            counter: Some(counter),
            rest,
        }),
        _ => Err(missing()),
    }
}

impl Lower<'_> {
    pub(super) fn fabric(&mut self, op: Op, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let mut src = Vec::new();
        let addresses = match (op, &instruction.operands[..]) {
            (Op::Get, [to, from, bytes, barrier, ..]) | (Op::PullReduce { .. }, [to, from, bytes, barrier, ..]) => {
                self.endpoint(&named(from, false, false)?, &mut src)?;
                src.push(self.fabric_value(bytes, Width::B32)?);
                self.own([to, barrier])?
            }
            (Op::GetTensor(tensor), [to, from, barrier, ..]) => {
                let named = named(from, true, false)?;
                let map = self.endpoint_tensor(tensor, &named, &mut src)?;
                let mut addresses = self.own([to, barrier])?;
                addresses.push(map);
                addresses
            }
            (Op::Put { target, masked }, [to, from, bytes, barrier, mask @ ..]) => {
                self.bytes_to(target, to, bytes, &mut src)?;
                if masked {
                    let mask = mask.first().ok_or_else(|| miscounted(instruction))?;
                    src.push(self.fabric_value(mask, Width::B16)?);
                }
                self.own([from, barrier])?
            }
            (Op::Reduce { target, .. }, [to, from, bytes, barrier, ..]) => {
                self.bytes_to(target, to, bytes, &mut src)?;
                self.own([from, barrier])?
            }
            (Op::PutTensor { target, tensor, .. }, [to, from, bytes, barrier, ..]) => {
                let named = named(to, true, target.counted)?;
                let map = self.endpoint_tensor(tensor, &named, &mut src)?;
                src.push(self.fabric_value(bytes, Width::B32)?);
                let mut addresses = self.own([from, barrier])?;
                addresses.push(map);
                addresses
            }
            (Op::Atom { .. }, [at, to, from, barrier, ..]) => {
                self.endpoint(&named(at, false, false)?, &mut src)?;
                self.own([to, from, barrier])?
            }
            (Op::Submit(_), []) => Vec::new(),
            (Op::Wait, groups @ ([] | [_])) => {
                for groups in groups {
                    src.push(self.fabric_value(groups, Width::B32)?);
                }
                Vec::new()
            }
            _ => return Err(miscounted(instruction)),
        };
        let operation = JointOp {
            what: Joint::Fabric(op),
            addresses: addresses.into(),
            src: src.into(),
            dst: Box::new([]),
            objects: Box::new([]),
        };
        self.push(guard, instruction.span, Operation::Joint(Box::new(operation)));
        Ok(())
    }

    fn bytes_to(&mut self, target: Target, to: &Operand, bytes: &Operand, src: &mut Vec<Reg>) -> Outcome<()> {
        self.endpoint(&named(to, false, target.counted)?, src)?;
        src.push(self.fabric_value(bytes, Width::B32)?);
        Ok(())
    }

    /// Endpoint, offset, perhaps the counter's.
    fn endpoint(&mut self, named: &Named<'_>, src: &mut Vec<Reg>) -> Outcome<()> {
        src.push(self.fabric_value(named.endpoint, Width::B32)?);
        src.push(self.fabric_value(named.offset, Width::B64)?);
        if let Some(counter) = named.counter {
            src.push(self.fabric_value(counter, Width::B64)?);
        }
        Ok(())
    }

    /// Which part of a tensor, then endpoint and perhaps counter; the address of the tensor map.
    fn endpoint_tensor(&mut self, tensor: Tensor, named: &Named<'_>, src: &mut Vec<Reg>) -> Outcome<Address> {
        let (Some(map), [sizes @ .., coordinates]) = (named.map, named.rest) else {
            return unexpected(named.endpoint);
        };
        let middle = std::iter::once(named.offset).chain(sizes);
        let map = self.tensor_part(tensor.over, (map, middle, coordinates), src)?;
        src.push(self.fabric_value(named.endpoint, Width::B32)?);
        if let Some(counter) = named.counter {
            src.push(self.fabric_value(counter, Width::B64)?);
        }
        Ok(map)
    }

    /// Addresses of the block's own shared memory.
    fn own<const N: usize>(&mut self, operands: [&Operand; N]) -> Outcome<Vec<Address>> {
        operands
            .into_iter()
            .map(|operand| self.address(operand, Space::SharedCta))
            .collect()
    }

    fn fabric_value(&mut self, operand: &Operand, width: Width) -> Outcome<Reg> {
        let register = self.source(operand, width, Fit::Wider, false)?;
        Ok(self.body.reg(register))
    }
}
