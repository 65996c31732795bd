//! Which operation a line of the table means, for the words that an opcode has.

use super::{Four, Halves, Limits, Narrow, Op, Source};
use crate::isa::Compute;
use crate::isa::words::Words;

fn limits(w: Words) -> Limits {
    Limits {
        relu: w.has("relu"),
        satfinite: w.has("satfinite"),
    }
}
macro_rules! readers {
    ($($name:ident |$w:ident| $body:expr;)*) => {$(
        pub fn $name($w: Words) -> Option<Compute> {
            Some(Compute::Narrow($body))
        }
    )*};
}
readers! {
    down |w| Op::Down {
        to: Narrow::of(w.ty(0))?,
        from: Source::of(w.ty(1))?,
        rounding: w.rounding()?,
        limits: limits(w),
        scaled: w.has("scaled::n2::ue8m0"),
    };
    up |w| Op::Up {
        to: Halves::of(w.ty(0))?,
        from: Narrow::of(w.ty(1))?,
        limits: limits(w),
        scaled: w.has("scaled::n2::ue8m0"),
    };
    random_halves |w| Op::RandomHalves { to: Halves::of(w.ty(0))?, limits: limits(w) };
    random_four |w| Op::RandomFour { to: Four::of(w.ty(0))?, relu: w.has("relu"), upper: false };
}
