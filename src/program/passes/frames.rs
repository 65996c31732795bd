//! Addresses in the running frame: sums of frame addresses and constants are frame addresses, and accesses through those
//! name the frame's bytes directly, so that later passes and tiers see plain places instead of pointers.

use super::definitions::Definition;
use crate::isa::lanes::Width;
use crate::program::ir::{Address, BlockId, Body, Compute, Inst, Linear, Op, Reg, Register, Space};

/// What is known of a register that holds an address in the running frame: the distance from its start, and whether it
/// is a generic address. The same in every activation, so that any reader sees it (or nothing defined).
#[derive(Clone, Copy)]
struct InFrame {
    offset: u32,
    generic: bool,
}

/// `x + 0` becomes a copy; sums of frame addresses and constants become frame addresses, and accesses through those name
/// the frame's bytes directly. True if there are new copies.
pub fn run(body: &mut Body, order: &[BlockId], definitions: &[Definition]) -> bool {
    let mut frame: Vec<Option<InFrame>> = vec![None; body.registers.len()];
    let mut copies = false;
    for &block in order {
        let mut insts = std::mem::take(&mut body.blocks[block as usize].insts);
        for (index, inst) in insts.iter_mut().enumerate() {
            let here = Definition::One(block, index as u32);
            if let Op::Compute { op, dst, src } = &inst.op
                && op.linear() == Some(Linear::Add)
            {
                let (a, b, d) = (src[0].number, src[1].number, dst[0].number);
                if let Some((constant, other)) = match (body.constant(a), body.constant(b)) {
                    (Some(constant), _) => Some((constant, b)),
                    (_, Some(constant)) => Some((constant, a)),
                    _ => None,
                } {
                    if constant == 0 {
                        make_copy(body, inst, d, other);
                        copies = true;
                    } else if let Some(InFrame { offset, generic: false }) = frame[other as usize]
                        && let Some(by) = signed(constant, body.registers[d as usize].width)
                        && let Ok(offset) = u32::try_from(i64::from(offset) + by)
                    {
                        inst.op = Op::FrameAddress {
                            dst: body.reg(d),
                            offset,
                        };
                    }
                }
            }
            let only = |d: u32| definitions[d as usize] == here;
            if let Op::FrameAddress { dst, offset } = inst.op
                && only(dst.number)
            {
                let generic = false;
                frame[dst.number as usize] = Some(InFrame { offset, generic });
            }
            if let Op::ConvertAddress {
                space: Space::Local,
                to_generic: true,
                dst,
                src,
            } = inst.op
                && only(dst.number)
            {
                frame[dst.number as usize] = frame[src.number as usize].map(|f| InFrame { generic: true, ..f });
            }
            if let Some((d, s)) = inst.copied()
                && only(d)
            {
                frame[d as usize] = frame[s as usize];
            }
            let direct = |address: &mut Address<Reg>| {
                let Some(reg) = address.register else { return };
                let Some(known) = frame[reg.number as usize] else {
                    return;
                };
                let fits = match address.space {
                    Space::Local => !known.generic,
                    Space::Generic => known.generic,
                    Space::Global | Space::Const | Space::Shared | Space::Param => false,
                };
                let offset = i64::from(known.offset).wrapping_add(address.offset);
                if fits && (0..=i64::from(u32::MAX)).contains(&offset) {
                    *address = Address {
                        space: Space::Local,
                        register: None,
                        offset,
                    };
                }
            };
            if let Op::Load { address, .. } | Op::Store { address, .. } = &mut inst.op {
                direct(address);
            }
        }
        body.blocks[block as usize].insts = insts;
    }
    copies
}

fn make_copy(body: &Body, inst: &mut Inst, d: Register, s: Register) {
    let op = Compute::copy(body.registers[d as usize].width);
    inst.op = Op::compute(body, op, &[d], &[s]);
}

/// The constant as a signed number of its width, if that is an address's.
fn signed(bits: u128, width: Width) -> Option<i64> {
    match width {
        Width::B32 => Some(i64::from(bits as u32 as i32)),
        Width::B64 => Some(bits as u64 as i64),
        Width::Pred | Width::B16 | Width::B128 => None,
    }
}
