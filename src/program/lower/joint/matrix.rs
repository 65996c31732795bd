//! Lowering of `mma` and its family. Sources stand in the order in which the instruction has them; what is a number in the
//! text is a register here, too.

use crate::isa::joint::Joint;
use crate::isa::joint::matrix::{Kind, Multiply, Op, Rows, Tile};
use crate::isa::lanes::Width;
use crate::program::check::tree::{Instruction, Operand};
use crate::program::ir::{Address, Guard, JointOp, Op as Operation, Reg};
use crate::program::lower::operand::{Fit, miscounted, unexpected};
use crate::program::lower::{Lower, Outcome};

impl Lower<'_> {
    pub(super) fn matrix(&mut self, op: Op, instruction: &Instruction<'_>, guard: Option<Guard>) -> Outcome<()> {
        let (addresses, src, dst) = match op {
            Op::LoadRows(rows) => {
                let [dst, address] = self.operands(instruction)?;
                let address = self.address(address, rows.space)?;
                let dst = self.fragment_written(dst, rows.registers(true), Width::B32)?;
                (vec![address], Vec::new(), dst)
            }
            Op::StoreRows(rows) => self.store_rows(rows, instruction)?,
            Op::Transpose => {
                let [dst, src] = self.operands(instruction)?;
                let src = self.fragment(src, 1, Width::B32)?;
                (Vec::new(), src, self.fragment_written(dst, 1, Width::B32)?)
            }
            Op::LoadTile(tile) => {
                let (dst, address, stride) = tile_operands(instruction, false)?;
                let (width, count) = registers(tile, dst);
                let address = self.address(address, tile.space)?;
                let src = self.stride(tile, stride)?;
                (vec![address], vec![src], self.fragment_written(dst, count, width)?)
            }
            Op::StoreTile(tile) => {
                let (data, address, stride) = tile_operands(instruction, true)?;
                let (width, count) = registers(tile, data);
                let address = self.address(address, tile.space)?;
                let mut src = vec![self.stride(tile, stride)?];
                src.extend(self.fragment(data, count, width)?);
                (vec![address], src, Vec::new())
            }
            Op::Multiply(multiply) => self.multiply(multiply, instruction)?,
        };
        self.push(
            guard,
            instruction.span,
            Operation::Joint(Box::new(JointOp {
                what: Joint::Matrix(op),
                addresses: addresses.into(),
                src: src.into(),
                dst: dst.into(),
                objects: Box::new([]),
            })),
        );
        Ok(())
    }

    fn store_rows(&mut self, rows: Rows, instruction: &Instruction<'_>) -> Outcome<Parts> {
        let [address, src] = self.operands(instruction)?;
        let address = self.address(address, rows.space)?;
        let src = self.fragment(src, rows.registers(false), Width::B32)?;
        Ok((vec![address], src, Vec::new()))
    }

    /// D, A, B, C; metadata and their selector; for A and B each: factors, and which byte of which thread's.
    fn multiply(&mut self, op: Multiply, instruction: &Instruction<'_>) -> Outcome<Parts> {
        let [d, a, b, c, rest @ ..] = &instruction.operands[..] else {
            return Err(miscounted(instruction));
        };
        let width = if op.container == 64 { Width::B64 } else { Width::B32 };
        // Fragments of `wmma` may be longer than what is in them.
        let count = |needed: usize, operand: &Operand| match op.kind {
            Kind::Wmma => needed.max(operand.list().len()),
            Kind::Mma | Kind::QuadPairs { .. } => needed,
        };
        let mut src = Vec::new();
        for (operand, needed) in [(a, op.a_registers()), (b, op.b_registers())] {
            src.extend(
                self.fragment(operand, count(needed, operand), width)?
                    .iter()
                    .take(needed),
            );
        }
        src.extend(self.fragment(c, op.registers(op.c), width)?);
        let scales = match (op.sparse, rest) {
            (true, [metadata, selector, scales @ ..]) => {
                src.extend(self.fragment(metadata, 1, Width::B32)?);
                src.extend(self.fragment(selector, 1, Width::B32)?);
                scales
            }
            (true, _) => return Err(miscounted(instruction)),
            (false, scales) => scales,
        };
        match (op.scaling.is_some(), scales) {
            (true, [scale_a, ids_a, scale_b, ids_b]) => {
                for (scale, ids) in [(scale_a, ids_a), (scale_b, ids_b)] {
                    src.extend(self.fragment(scale, 1, Width::B32)?);
                    src.extend(self.fragment(ids, 2, Width::B16)?);
                }
            }
            (false, []) => {}
            _ => return Err(miscounted(instruction)),
        }
        let dst = self.fragment_written(d, op.registers(op.d), width)?;
        Ok((Vec::new(), src, dst))
    }

    /// How many elements apart the lines of a tile lie.
    fn stride(&mut self, tile: Tile, operand: Option<&Operand>) -> Outcome<Reg> {
        let register = match operand {
            Some(operand) => self.source(operand, Width::B32, Fit::Exact, false)?,
            None => self.constant(Width::B32, tile.length() as u128),
        };
        Ok(self.body.reg(register))
    }

    fn fragment(&mut self, operand: &Operand, count: usize, width: Width) -> Outcome<Vec<Reg>> {
        let elements = operand.list();
        if elements.len() != count {
            return unexpected(operand);
        }
        let one = |element| {
            let register = self.source(element, width, Fit::Exact, false)?;
            Ok(self.body.reg(register))
        };
        elements.iter().map(one).collect()
    }

    fn fragment_written(&mut self, operand: &Operand, count: usize, width: Width) -> Outcome<Vec<Option<Reg>>> {
        let registers = self.destinations(operand, count, width, Fit::Exact)?;
        Ok(registers.into_iter().map(|r| r.map(|r| self.body.reg(r))).collect())
    }
}

type Parts = (Vec<Address>, Vec<Reg>, Vec<Option<Reg>>);

/// The fragment, the address and the stride of `wmma.load` or `wmma.store`.
fn tile_operands<'i>(
    instruction: &'i Instruction<'_>,
    stores: bool,
) -> Outcome<(&'i Operand, &'i Operand, Option<&'i Operand>)> {
    let [first, second, rest @ ..] = &instruction.operands[..] else {
        return Err(miscounted(instruction));
    };
    let (fragment, address) = if stores { (second, first) } else { (first, second) };
    match rest {
        [] => Ok((fragment, address, None)),
        [stride] => Ok((fragment, address, Some(stride))),
        _ => Err(miscounted(instruction)),
    }
}

/// Registers of a fragment: as many as are written, at least as many as there is something for.
fn registers(tile: Tile, fragment: &Operand) -> (Width, usize) {
    let width = if tile.bits == 64 { Width::B64 } else { Width::B32 };
    (width, tile.needed().max(fragment.list().len()))
}
