//! The instruction descriptor of `tcgen05.mma` (PTX ISA, tcgen05, Instruction descriptor): 32 bits that say what the opcode
//! does not.

use crate::isa::joint::tcgen05::{Block, Group, Kind, Mma};
use crate::isa::mma::{Accumulator, Element, ScaleType};
use crate::simt::machine::tensor_memory::Misuse;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub a: Element,
    pub b: Element,
    pub d: Accumulator,
    /// Rows, of both blocks of a pair.
    pub m: usize,
    pub n: usize,
    /// Rows of B.
    pub k: usize,
    pub saturate: bool,
    pub negate_a: bool,
    pub negate_b: bool,
    /// Along the rows there are neighbours, not along k.
    pub transpose_a: bool,
    pub transpose_b: bool,
    /// Which column of metadata.
    pub selector: usize,
    pub scale: ScaleType,
    /// The first byte of A's and B's factors in their words.
    pub scale_a: usize,
    pub scale_b: usize,
}

impl Instruction {
    /// # Errors
    /// There is no such product.
    pub fn of(op: Mma, descriptor: u32) -> Result<Instruction, Misuse> {
        let field = |at: u32, bits: u32| descriptor >> at & ((1 << bits) - 1);
        let bit = |at| field(at, 1) == 1;
        let wrong = |what: String| Err(format!("{op} with instruction descriptor {descriptor:#010x}: {what}"));
        if bit(2) != op.sparse {
            let what = if op.sparse { "sparse" } else { "dense" };
            return wrong(format!("bit 2 is {}, and the opcode is {what}", field(2, 1)));
        }
        let (Some(a), Some(b)) = (element(op.kind, field(7, 3)), element(op.kind, field(10, 3))) else {
            return wrong(format!("the kind has no types {} and {}", field(7, 3), field(10, 3)));
        };
        let d = match (op.block, op.kind, field(4, 2)) {
            (Some(_), ..) => Accumulator::F32,
            (None, Kind::I8, 2) => Accumulator::S32,
            (None, Kind::F16 | Kind::F8f6f4, 0) => Accumulator::F16,
            (None, Kind::F16 | Kind::F8f6f4 | Kind::Tf32, 1) => Accumulator::F32,
            (None, Kind::F16 | Kind::F8f6f4 | Kind::Tf32 | Kind::I8, other) => {
                return wrong(format!("the kind has no sum of type {other}"));
            }
            (None, Kind::Mxf8f6f4 | Kind::Mxf4 | Kind::Mxf4nvf4, _) => Accumulator::F32,
        };
        let bf16 = [a, b].map(|element| element == Element::Bf16);
        if bf16[0] != bf16[1] || bf16[0] && d == Accumulator::F16 {
            return wrong("bf16 has a partner and a sum of its own".into());
        }
        let (m, n) = (field(24, 5) as usize * 16, field(17, 6) as usize * 8);
        let shapes: (&[usize], usize) = match (op.group, op.weight_stationary) {
            (Group::One, true) => (&[32, 64, 128], 64),
            (Group::One, false) if m == 64 => (&[64], 8),
            (Group::One, false) => (&[64, 128], 16),
            (Group::Two, _) => (&[128, 256], 16),
        };
        // Blocks of factors are for full lanes of one block.
        let shapes = match (op.block, op.group) {
            (Some(_), Group::One) => (&[128][..], 8),
            (Some(_), Group::Two) | (None, _) => shapes,
        };
        if !shapes.0.contains(&m) || !n.is_multiple_of(shapes.1) || !(8..=256).contains(&n) {
            return wrong(format!("no product has {m} rows and {n} columns"));
        }
        if op.shifted && m < 128 {
            return wrong(format!("{m} rows are not shifted"));
        }
        let transpose = [bit(15), bit(16)];
        let packed = |element| match element {
            Element::E3m2 | Element::E2m3 | Element::E2m1 => true,
            Element::E4m3 | Element::E5m2 | Element::F16 | Element::Bf16 | Element::Tf32 => false,
            Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1 | Element::F64 => false,
        };
        if transpose[0] && packed(a) || transpose[1] && packed(b) {
            return wrong("elements of six or four bits are neighbours along k".into());
        }
        let dense = match (op.kind, field(31, 1)) {
            (Kind::F16, _) => 16,
            (Kind::Tf32, _) => 8,
            (Kind::F8f6f4 | Kind::I8 | Kind::Mxf8f6f4, _) => 32,
            (Kind::Mxf4 | Kind::Mxf4nvf4, 0) => 64,
            // How the hardware of sm_103 cuts 96 into sums is not public.
            (Kind::Mxf4 | Kind::Mxf4nvf4, _) => return wrong("a k of 96 is not supported".into()),
        };
        let scale = match bit(23) {
            true => ScaleType::Ue8m0,
            false => ScaleType::Ue4m3,
        };
        let narrow = op.kind == Kind::Mxf4nvf4 && op.block == Some(Block::Of16);
        if op.block.is_some() && scale == ScaleType::Ue4m3 && !narrow {
            return wrong("factors of type ue4m3 are for kind::mxf4nvf4 with blocks of 16".into());
        }
        Ok(Instruction {
            a,
            b,
            d,
            m,
            n,
            k: if op.sparse { 2 * dense } else { dense },
            saturate: bit(3) && op.kind == Kind::I8,
            negate_a: bit(13),
            negate_b: bit(14),
            transpose_a: transpose[0],
            transpose_b: transpose[1],
            selector: match op.kind {
                Kind::F16 | Kind::Tf32 => field(0, 2) as usize,
                Kind::F8f6f4 | Kind::I8 | Kind::Mxf8f6f4 | Kind::Mxf4 | Kind::Mxf4nvf4 => 0,
            },
            scale,
            scale_a: field(29, 2) as usize,
            scale_b: field(4, 2) as usize,
        })
    }
}

fn element(kind: Kind, code: u32) -> Option<Element> {
    Some(match (kind, code) {
        (Kind::F16, 0) => Element::F16,
        (Kind::F16, 1) => Element::Bf16,
        (Kind::Tf32, 2) => Element::Tf32,
        (Kind::I8, 0) => Element::U8,
        (Kind::I8, 1) => Element::S8,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 0) => Element::E4m3,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 1) => Element::E5m2,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 3) => Element::E2m3,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 4) => Element::E3m2,
        (Kind::F8f6f4 | Kind::Mxf8f6f4, 5) => Element::E2m1,
        (Kind::Mxf4 | Kind::Mxf4nvf4, 1) => Element::E2m1,
        (Kind::F16 | Kind::Tf32 | Kind::I8 | Kind::F8f6f4 | Kind::Mxf8f6f4 | Kind::Mxf4 | Kind::Mxf4nvf4, _) => {
            return None;
        }
    })
}
