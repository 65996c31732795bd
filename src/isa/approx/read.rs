//! Which operation a line of the table means, for the words that an opcode has.

use super::Op;
use crate::isa::Compute;
use crate::isa::types::Type;
use crate::isa::words::Words;

macro_rules! readers {
    ($($name:ident |$w:ident| $body:expr;)*) => {$(
        pub fn $name($w: Words) -> Option<Compute> {
            Some(Compute::Approx($body))
        }
    )*};
}
readers! {
    rsqrt |w| match w.ty(0) == Type::F64 {
        true => Op::RsqrtF64 { ftz: w.has("ftz") },
        false => Op::Rsqrt { ftz: w.has("ftz") },
    };
    sin |w| Op::Sin { ftz: w.has("ftz") };
    cos |w| Op::Cos { ftz: w.has("ftz") };
    lg2 |w| Op::Lg2 { ftz: w.has("ftz") };
    ex2 |w| Op::Ex2 { ftz: w.has("ftz") };
    tanh |_w| Op::Tanh;
}
