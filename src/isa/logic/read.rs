//! Which operation a line of the table means, for the words that an opcode has.

use super::{Logical, Lop3Predicate, Op, PrmtMode, Shifted, Sign};
use crate::isa::Compute;
use crate::isa::types::{Bits, Movable, Type};
use crate::isa::words::Words;

macro_rules! readers {
    ($($name:ident |$w:ident| $body:expr;)*) => {$(
        pub fn $name($w: Words) -> Option<Compute> {
            Some(Compute::Logic($body))
        }
    )*};
}
readers! {
    and |w| Op::And { ty: Logical::of(w.ty(0))? };
    or |w| Op::Or { ty: Logical::of(w.ty(0))? };
    xor |w| Op::Xor { ty: Logical::of(w.ty(0))? };
    not |w| Op::Not { ty: Logical::of(w.ty(0))? };
    cnot |w| Op::Cnot { ty: Bits::of(w.ty(0))? };
    lop3 |w| {
        let predicate = match (w.has("and"), w.has("or")) {
            (true, _) => Some(Lop3Predicate::And),
            (false, true) => Some(Lop3Predicate::Or),
            (false, false) => None,
        };
        Op::Lop3 { predicate, table: 0 }
    };
    shl |w| Op::Shl { ty: Bits::of(w.ty(0))? };
    shr |w| Op::Shr { ty: Shifted::of(w.ty(0))? };
    shf |w| match w.has("l") {
        true => Op::ShfL { wrap: w.has("wrap") },
        false => Op::ShfR { wrap: w.has("wrap") },
    };
    prmt |w| Op::Prmt { mode: w.find(|word| PrmtMode::ALL.into_iter().find(|mode| mode.word() == word)) };
    selp |w| Op::Selp { ty: Movable::of(w.ty(0))? };
    slct |w| {
        let by = match w.ty(1) {
            Type::F32 => Sign::F32 { ftz: w.has("ftz") },
            _ => Sign::S32,
        };
        Op::Slct { ty: Movable::of(w.ty(0))?, by }
    };
}
