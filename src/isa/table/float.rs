//! Floating-Point Instructions: single and double precision, half precision, mixed precision.

use super::entry::Meaning::Compute;
use super::entry::Then::With;
use super::entry::{Gone, Instruction, Need, Rule, gone, instruction, line, need, rule};
use crate::isa::approx::read as approx;
use crate::isa::float::read as float;
use crate::isa::half::read as half;

/// Sums and products that round down or up.
const ROUNDED: &[Need] = &[need("f32 rm/rp", (2, 0), "20")];

/// Quotients that say how they round.
const DIVIDED: &[Need] = &[need("f32 rn", (2, 0), "20"), need("rm/rp/rz", (2, 0), "20")];

const EXTREMA: &[Need] = &[need("NaN", (7, 0), "80"), need("abs", (7, 2), "86")];

/// Flushing says that it is approximate, or how it rounds.
const APPROXIMATE: &[Rule] = &[rule("ftz", With("approx rn rz rm rp"))];

/// Single precision was approximate, and double precision rounded to nearest, where nothing was said.
const UNSAID: &[Gone] = &[gone("", "approx rn rz rm rp", (1, 4), 0)];

#[rustfmt::skip]
pub static INSTRUCTIONS: &[Instruction] = &[
    instruction("testp", &[
        line("testp.op.type p, a; .op = { .finite, .infinite, .number, .notanumber, .normal, .subnormal }; .type = { .f32, .f64 }", (2, 0), 20, Compute(float::testp)),
    ]),
    instruction("copysign", &[
        line("copysign.type d, a, b; .type = { .f32, .f64 }", (2, 0), 20, Compute(float::copysign)),
    ]),
    instruction("add", &[
        line("add{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Compute(float::add)),
        line("add{.rnd}{.ftz}.f32x2 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (8, 6), 100, Compute(float::add)),
        line("add{.rnd}.f64 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Compute(float::add)),
    ]).needs(ROUNDED),
    instruction("sub", &[
        line("sub{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Compute(float::sub)),
        line("sub{.rnd}{.ftz}.f32x2 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (8, 6), 100, Compute(float::sub)),
        line("sub{.rnd}.f64 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Compute(float::sub)),
    ]).needs(ROUNDED),
    instruction("mul", &[
        line("mul{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Compute(float::mul)),
        line("mul{.rnd}{.ftz}.f32x2 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (8, 6), 100, Compute(float::mul)),
        line("mul{.rnd}.f64 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Compute(float::mul)),
    ]).needs(ROUNDED),
    instruction("fma", &[
        line("fma.rnd{.ftz}{.sat}.f32 d, a, b, c; .rnd = { .rn, .rz, .rm, .rp }", (2, 0), 20, Compute(float::fma)),
        line("fma.rnd{.ftz}.f32x2 d, a, b, c; .rnd = { .rn, .rz, .rm, .rp }", (8, 6), 100, Compute(float::fma)),
        line("fma.rnd.f64 d, a, b, c; .rnd = { .rn, .rz, .rm, .rp }", (1, 4), 10, Compute(float::fma)),
    ]),
    instruction("mad", &[
        line("mad{.rnd}{.ftz}{.sat}.f32 d, a, b, c; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Compute(float::fma)),
        line("mad{.rnd}.f64 d, a, b, c; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Compute(float::fma)),
    ]).needs(&[
        need("f32 rm/rp/rn/rz", (2, 0), "20"),
    ]).gone(&[
        gone("f64", "rn rz rm rp", (1, 4), 0),
        gone("f32", "rn rz rm rp", (1, 4), 20),
    ]),
    instruction("div", &[
        line("div.approx{.ftz}.f32 d, a, b", (1, 4), 10, Compute(float::div_approx)),
        line("div.full{.ftz}.f32 d, a, b", (1, 4), 10, Compute(float::div_full)),
        line("div{.rnd}{.ftz}.f32 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Compute(float::div)),
        line("div{.rnd}.f64 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Compute(float::div)),
    ]).needs(DIVIDED).rules(&[
        rule("ftz", With("approx full rn rz rm rp")),
    ]).gone(&[
        gone("f32", "approx full rn rz rm rp", (1, 4), 0),
        gone("f64", "rn rz rm rp", (1, 4), 0),
    ]),
    instruction("abs", &[
        line("abs{.ftz}.f32 d, a", (1, 0), 10, Compute(float::abs)),
        line("abs.f64 d, a", (1, 0), 10, Compute(float::abs)),
    ]),
    instruction("neg", &[
        line("neg{.ftz}.f32 d, a", (1, 0), 10, Compute(float::neg)),
        line("neg.f64 d, a", (1, 0), 10, Compute(float::neg)),
    ]),
    instruction("min", &[
        line("min{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b", (1, 0), 10, Compute(float::min)),
        line("min{.ftz}{.NaN}{.abs}.f32 d, a, b, c", (8, 8), 100, Compute(float::min)),
        line("min.f64 d, a, b", (1, 0), 10, Compute(float::min)),
    ]).needs(EXTREMA),
    instruction("max", &[
        line("max{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b", (1, 0), 10, Compute(float::max)),
        line("max{.ftz}{.NaN}{.abs}.f32 d, a, b, c", (8, 8), 100, Compute(float::max)),
        line("max.f64 d, a, b", (1, 0), 10, Compute(float::max)),
    ]).needs(EXTREMA),
    instruction("rcp", &[
        line("rcp{.approx}{.ftz}.f32 d, a", (1, 0), 10, Compute(float::rcp)),
        line("rcp.rnd{.ftz}.type d, a; .rnd = { .rn, .rz, .rm, .rp }; .type = { .f32, .f64 }", (1, 4), 10, Compute(float::rcp)),
        line("rcp.approx.ftz.f64 d, a", (2, 1), 20, Compute(float::rcp_approx_f64)),
    ]).needs(DIVIDED).rules(APPROXIMATE).gone(UNSAID),
    instruction("sqrt", &[
        line("sqrt{.approx}{.ftz}.f32 d, a", (1, 0), 10, Compute(float::sqrt)),
        line("sqrt.rnd{.ftz}.f32 d, a; .rnd = { .rn, .rz, .rm, .rp }", (2, 0), 20, Compute(float::sqrt)),
        line("sqrt{.rnd}.f64 d, a; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Compute(float::sqrt)),
    ]).needs(&[
        need("rm/rp/rz", (2, 0), "20"),
    ]).rules(APPROXIMATE).gone(UNSAID),
    instruction("rsqrt", &[
        line("rsqrt{.approx}{.ftz}.type d, a; .type = { .f32, .f64 }", (1, 0), 10, Compute(approx::rsqrt)),
    ]).needs(&[
        need("f64 ftz", (4, 0), "20"),
    ]).rules(APPROXIMATE).gone(UNSAID),
    instruction("sin", &[
        line("sin{.approx}{.ftz}.f32 d, a", (1, 0), 10, Compute(approx::sin)),
    ]).rules(APPROXIMATE).gone(UNSAID),
    instruction("cos", &[
        line("cos{.approx}{.ftz}.f32 d, a", (1, 0), 10, Compute(approx::cos)),
    ]).rules(APPROXIMATE).gone(UNSAID),
    instruction("lg2", &[
        line("lg2{.approx}{.ftz}.f32 d, a", (1, 0), 10, Compute(approx::lg2)),
    ]).rules(APPROXIMATE).gone(UNSAID),
    instruction("ex2", &[
        line("ex2{.approx}{.ftz}.f32 d, a", (1, 0), 10, Compute(approx::ex2)),
    ]).rules(APPROXIMATE).gone(UNSAID),
    instruction("tanh", &[
        line("tanh.approx.f32 d, a", (7, 0), 75, Compute(approx::tanh)),
    ]),

    instruction("add", &[
        line("add{.rn}{.ftz}{.sat}.type d, a, b; .type = { .f16, .f16x2 }", (4, 2), 53, Compute(half::add)),
        line("add{.rn}.type d, a, b; .type = { .bf16, .bf16x2 }", (7, 8), 90, Compute(half::add)),
    ]),
    instruction("sub", &[
        line("sub{.rn}{.ftz}{.sat}.type d, a, b; .type = { .f16, .f16x2 }", (4, 2), 53, Compute(half::sub)),
        line("sub{.rn}.type d, a, b; .type = { .bf16, .bf16x2 }", (7, 8), 90, Compute(half::sub)),
    ]),
    instruction("mul", &[
        line("mul{.rn}{.ftz}{.sat}.type d, a, b; .type = { .f16, .f16x2 }", (4, 2), 53, Compute(half::mul)),
        line("mul{.rn}.type d, a, b; .type = { .bf16, .bf16x2 }", (7, 8), 90, Compute(half::mul)),
    ]),
    instruction("fma", &[
        line("fma.rn{.ftz}{.sat}.type d, a, b, c; .type = { .f16, .f16x2 }", (4, 2), 53, Compute(half::fma)),
        line("fma.rn{.ftz}.relu.type d, a, b, c; .type = { .f16, .f16x2 }", (7, 0), 80, Compute(half::fma)),
        line("fma.rnd{.relu}.type d, a, b, c; .rnd = { .rn, .rz, .rm, .rp }; .type = { .bf16, .bf16x2 }", (7, 0), 80, Compute(half::fma)),
        line("fma.rn.oob{.relu}.type d, a, b, c; .type = { .f16, .f16x2 }", (8, 1), 90, Compute(half::fma_oob)),
        line("fma.rn.sat.oob.type d, a, b, c; .type = { .f16, .f16x2 }", (8, 1), 90, Compute(half::fma_oob)),
        line("fma.rnd.oob{.relu}.type d, a, b, c; .rnd = { .rn, .rz, .rm, .rp }; .type = { .bf16, .bf16x2 }", (8, 1), 90, Compute(half::fma_oob)),
    ]),
    instruction("neg", &[
        line("neg{.ftz}.type d, a; .type = { .f16, .f16x2 }", (6, 0), 53, Compute(half::neg)),
        line("neg.type d, a; .type = { .bf16, .bf16x2 }", (7, 0), 80, Compute(half::neg)),
    ]),
    instruction("abs", &[
        line("abs{.ftz}.type d, a; .type = { .f16, .f16x2 }", (6, 5), 53, Compute(half::abs)),
        line("abs.type d, a; .type = { .bf16, .bf16x2 }", (7, 0), 80, Compute(half::abs)),
    ]),
    instruction("min", &[
        line("min{.ftz}{.NaN}{.xorsign.abs}.type d, a, b; .type = { .f16, .f16x2 }", (7, 0), 80, Compute(half::min)),
        line("min{.NaN}{.xorsign.abs}.type d, a, b; .type = { .bf16, .bf16x2 }", (7, 0), 80, Compute(half::min)),
    ]).needs(EXTREMA),
    instruction("max", &[
        line("max{.ftz}{.NaN}{.xorsign.abs}.type d, a, b; .type = { .f16, .f16x2 }", (7, 0), 80, Compute(half::max)),
        line("max{.NaN}{.xorsign.abs}.type d, a, b; .type = { .bf16, .bf16x2 }", (7, 0), 80, Compute(half::max)),
    ]).needs(EXTREMA),
    instruction("ex2", &[
        line("ex2.approx.type d, a; .type = { .f16, .f16x2 }", (7, 0), 75, Compute(half::ex2)),
        line("ex2.approx.ftz.type d, a; .type = { .bf16, .bf16x2 }", (7, 8), 90, Compute(half::ex2)),
    ]).rules(APPROXIMATE),
    instruction("tanh", &[
        line("tanh.approx.type d, a; .type = { .f16, .f16x2 }", (7, 0), 75, Compute(half::tanh)),
        line("tanh.approx.type d, a; .type = { .bf16, .bf16x2 }", (7, 8), 90, Compute(half::tanh)),
    ]),

    instruction("add", &[
        line("add{.rnd}{.sat}.f32.atype d:0, a:1, c:0; .rnd = { .rn, .rz, .rm, .rp }; .atype = { .f16, .bf16 }", (8, 6), 100, Compute(half::mixed_add)),
    ]).needs(ROUNDED),
    instruction("sub", &[
        line("sub{.rnd}{.sat}.f32.atype d:0, a:1, c:0; .rnd = { .rn, .rz, .rm, .rp }; .atype = { .f16, .bf16 }", (8, 6), 100, Compute(half::mixed_sub)),
    ]).needs(ROUNDED),
    instruction("fma", &[
        line("fma.rnd{.sat}.f32.abtype d:0, a:1, b:1, c:0; .rnd = { .rn, .rz, .rm, .rp }; .abtype = { .f16, .bf16 }", (8, 6), 100, Compute(half::mixed_fma)),
    ]),
];
