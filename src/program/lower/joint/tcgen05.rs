//! Lowering of `tcgen05`.

use crate::isa::Compute;
use crate::isa::joint::Joint;
use crate::isa::joint::tcgen05::{Mma, Op, Shape, Transfer};
use crate::isa::lanes::Width;
use crate::program::check::tree::{Base, Instruction, Operand};
use crate::program::ir::joint::tcgen05::Multiply;
use crate::program::ir::{Address, Guard, JointOp, Op as Operation, Reg};
use crate::program::lower::operand::{Fit, miscounted, unexpected};
use crate::program::lower::{Lower, Outcome};

/// Addresses, sources and destinations.
type Operands = (Box<[Address]>, Box<[Reg]>, Box<[Option<Reg>]>);

impl Lower<'_> {
    pub(super) fn tcgen05(&mut self, op: Op, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let none = || ([].into(), [].into(), [].into());
        let only = |src: Box<[Reg]>| -> Operands { ([].into(), src, [].into()) };
        let (addresses, src, dst) = match op {
            Op::Allocate(_) => {
                let [to, columns] = self.operands(instruction)?;
                let columns = self.joint_source(columns, Width::B32)?;
                (
                    [self.named_address(to, instruction)?].into(),
                    [columns].into(),
                    [].into(),
                )
            }
            Op::Free(_) => {
                let [address, columns] = self.operands(instruction)?;
                only(
                    [
                        self.joint_source(address, Width::B32)?,
                        self.joint_source(columns, Width::B32)?,
                    ]
                    .into(),
                )
            }
            Op::Relinquish(_) | Op::Wait | Op::Fence => none(),
            Op::Load(transfer) => {
                let (registers, rest) = self.first(instruction)?;
                let dst = self.tensor_results(registers, transfer.registers())?;
                let (src, []) = self.transfer(transfer, instruction, rest)? else {
                    return Err(miscounted(instruction));
                };
                ([].into(), src, dst)
            }
            Op::LoadReduce(transfer, reduction) => {
                let (first, rest) = self.first(instruction)?;
                let ([metadata, registers], rest) = match (reduction.compress, rest) {
                    (true, [registers, rest @ ..]) => ([first, registers], rest),
                    (true, []) => return Err(miscounted(instruction)),
                    (false, rest) => ([first, first], rest),
                };
                let [found, rest @ ..] = rest else {
                    return Err(miscounted(instruction));
                };
                let mut dst = self.tensor_results(registers, registers.list().len())?.into_vec();
                dst.extend(self.tensor_results(found, 1)?);
                if reduction.compress {
                    dst.extend(self.tensor_results(metadata, metadata.list().len())?);
                }
                let (src, []) = self.transfer(transfer, instruction, rest)? else {
                    return Err(miscounted(instruction));
                };
                ([].into(), src, dst.into())
            }
            Op::Store(transfer) => {
                let (src, [registers]) = self.transfer(transfer, instruction, &instruction.operands)? else {
                    return Err(miscounted(instruction));
                };
                let mut src = src.into_vec();
                src.extend(self.joint_sources(registers.list(), Width::B32)?);
                only(src.into())
            }
            Op::Commit(commit) => {
                let (barrier, rest) = self.first(instruction)?;
                let barrier = self.named_address(barrier, instruction)?;
                let src = match (commit.multicast, rest) {
                    (false, []) => [].into(),
                    (true, [mask]) => {
                        let mask = self.source_any(mask, Width::B32, false)?;
                        let mask = self.resize(mask, Width::B32, false, instruction.span)?;
                        [self.body.reg(mask)].into()
                    }
                    _ => return Err(miscounted(instruction)),
                };
                ([barrier].into(), src, [].into())
            }
            Op::Copy(_) => {
                let [to, from] = self.operands(instruction)?;
                only([self.tensor_address(to)?, self.joint_source(from, Width::B64)?].into())
            }
            Op::Shift(_) => {
                let [matrix] = self.operands(instruction)?;
                only([self.tensor_address(matrix)?].into())
            }
            Op::Mma(mma) => only(self.tensor_multiply(mma, instruction)?),
        };
        let joint = JointOp {
            what: Joint::Tcgen05(op),
            addresses,
            src,
            dst,
            objects: Box::new([]),
        };
        self.push(guard, instruction.span, Operation::Joint(Box::new(joint)));
        Ok(())
    }

    fn first<'i>(&self, instruction: &'i Instruction<'_>) -> Outcome<(&'i Operand, &'i [Operand])> {
        instruction
            .operands
            .split_first()
            .ok_or_else(|| miscounted(instruction))
    }

    /// An address in the space that the opcode names.
    fn named_address(&mut self, operand: &Operand, instruction: &Instruction<'_>) -> Outcome<Address> {
        let space = instruction.form.spaces().next();
        self.address(operand, space.unwrap_or(crate::ptx::ast::Space::Generic))
    }

    fn tensor_results(&mut self, operand: &Operand, count: usize) -> Outcome<Box<[Option<Reg>]>> {
        let registers = self.destinations(operand, count, Width::B32, Fit::Exact)?;
        Ok(registers
            .into_iter()
            .map(|register| register.map(|register| self.body.reg(register)))
            .collect())
    }

    /// The address of a transfer, the distance of its second half, and the operands that are left.
    fn transfer<'i>(
        &mut self,
        transfer: Transfer,
        instruction: &Instruction<'_>,
        operands: &'i [Operand],
    ) -> Outcome<(Box<[Reg]>, &'i [Operand])> {
        match (transfer.shape, operands) {
            (Shape::Lane16Twice, [address, distance, rest @ ..]) => {
                let src = [self.tensor_address(address)?, self.joint_source(distance, Width::B32)?];
                Ok((src.into(), rest))
            }
            (Shape::Lane16Twice, _) | (_, []) => Err(miscounted(instruction)),
            (
                Shape::Lane32 | Shape::Lane16Bits64 | Shape::Lane16Bits128 | Shape::Lane16Bits256,
                [address, rest @ ..],
            ) => {
                let src = [self.tensor_address(address)?, self.joint_constant(Width::B32, 0)];
                Ok((src.into(), rest))
            }
        }
    }

    /// `[register+offset]` in tensor memory.
    fn tensor_address(&mut self, operand: &Operand) -> Outcome<Reg> {
        let Operand::Address(address) = operand else {
            return unexpected(operand);
        };
        let Base::Register(base) = address.base else {
            return unexpected(operand);
        };
        let base = self.register(base);
        let mut register = self.resize(base, Width::B32, false, address.span)?;
        if address.offset != 0 {
            let offset = self.constant(Width::B32, u128::from(address.offset as u32));
            let sum = self.body.register(Width::B32);
            let add = Compute::add(crate::program::lower::moves::integer(Width::B32));
            self.compute(add, &[sum], &[register, offset], None, address.span);
            register = sum;
        }
        Ok(self.body.reg(register))
    }

    /// `[d], a, b{, [metadata]}, descriptor{, [scale-a], [scale-b]}{, disabled}, enable-d{, scale-d}{, zero-columns}`
    fn tensor_multiply(&mut self, mma: Mma, instruction: &Instruction<'_>) -> Outcome<Box<[Reg]>> {
        let mut operands = instruction.operands.iter().peekable();
        let mut next = || operands.next().ok_or_else(|| miscounted(instruction));
        let (d, a, b) = (next()?, next()?, next()?);
        let metadata = match mma.sparse {
            true => Some(next()?),
            false => None,
        };
        let descriptor = next()?;
        let scales = match mma.block {
            Some(_) => Some((next()?, next()?)),
            None => None,
        };
        let lanes = operands.next_if(|operand| operand.elements().is_some());
        let enable_d = operands.next().ok_or_else(|| miscounted(instruction))?;
        let last = operands.next();
        let (scale_d, zero_columns) = match mma.weight_stationary {
            true => (None, last),
            false => (last, None),
        };
        let zero = self.joint_constant(Width::B32, 0);
        let or = |lower: &mut Self, operand: Option<&Operand>| {
            operand.map_or(Ok(zero), |operand| lower.tensor_address(operand))
        };
        let src = Multiply {
            d: &self.tensor_address(d)?,
            a: &match a {
                Operand::Address(_) => self.tensor_address(a)?,
                descriptor => self.joint_source(descriptor, Width::B64)?,
            },
            b: &self.joint_source(b, Width::B64)?,
            descriptor: &self.joint_source(descriptor, Width::B32)?,
            enable_d: &self.joint_source(enable_d, Width::Pred)?,
            scale_d: &match scale_d {
                Some(scale) => self.joint_source(scale, Width::B32)?,
                None => zero,
            },
            metadata: &or(self, metadata)?,
            scale_a: &or(self, scales.map(|scales| scales.0))?,
            scale_b: &or(self, scales.map(|scales| scales.1))?,
            zero_columns: &match zero_columns {
                Some(mask) => self.joint_source(mask, Width::B64)?,
                None => self.joint_constant(Width::B64, 0),
            },
            disabled: &match lanes {
                Some(lanes) => self.joint_sources(lanes.list(), Width::B32)?,
                None => [].into(),
            },
        };
        Ok(src.sources())
    }
}
