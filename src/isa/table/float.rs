//! Floating-Point Instructions: single and double precision, half precision, mixed precision.

use super::{Line, line};
use crate::isa::Semantics::{Lane, Later};
use crate::isa::{approx, float};

#[rustfmt::skip]
pub static LINES: &[Line] = &[
    line("testp.op.type p, a; .op = { .finite, .infinite, .number, .notanumber, .normal, .subnormal }; .type = { .f32, .f64 }", (2, 0), 20, Lane(float::testp_form)),
    line("copysign.type d, a, b; .type = { .f32, .f64 }", (2, 0), 20, Lane(float::copysign_form)),
    line("add{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Lane(float::add_form)),
    line("add{.rnd}{.ftz}.f32x2 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (8, 6), 100, Lane(float::add_form)),
    line("add{.rnd}.f64 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 13, Lane(float::add_form)),
    line("sub{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Lane(float::sub_form)),
    line("sub{.rnd}{.ftz}.f32x2 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (8, 6), 100, Lane(float::sub_form)),
    line("sub{.rnd}.f64 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 13, Lane(float::sub_form)),
    line("mul{.rnd}{.ftz}{.sat}.f32 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Lane(float::mul_form)),
    line("mul{.rnd}{.ftz}.f32x2 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (8, 6), 100, Lane(float::mul_form)),
    line("mul{.rnd}.f64 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 13, Lane(float::mul_form)),
    line("fma.rnd{.ftz}{.sat}.f32 d, a, b, c; .rnd = { .rn, .rz, .rm, .rp }", (2, 0), 20, Lane(float::fma_form)),
    line("fma.rnd{.ftz}.f32x2 d, a, b, c; .rnd = { .rn, .rz, .rm, .rp }", (8, 6), 100, Lane(float::fma_form)),
    line("fma.rnd.f64 d, a, b, c; .rnd = { .rn, .rz, .rm, .rp }", (1, 4), 13, Lane(float::fma_form)),
    line("mad{.rnd}{.ftz}{.sat}.f32 d, a, b, c; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Lane(float::fma_form)),
    line("mad{.rnd}.f64 d, a, b, c; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 13, Lane(float::fma_form)),
    line("div.approx{.ftz}.f32 d, a, b", (1, 4), 10, Lane(float::div_form)),
    line("div.full{.ftz}.f32 d, a, b", (1, 4), 10, Lane(float::div_form)),
    line("div{.rnd}{.ftz}.f32 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 10, Lane(float::div_form)),
    line("div{.rnd}.f64 d, a, b; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 13, Lane(float::div_form)),
    line("abs{.ftz}.f32 d, a", (1, 0), 10, Lane(float::abs_form)),
    line("abs.f64 d, a", (1, 0), 13, Lane(float::abs_form)),
    line("neg{.ftz}.f32 d, a", (1, 0), 10, Lane(float::neg_form)),
    line("neg.f64 d, a", (1, 0), 13, Lane(float::neg_form)),
    line("min{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b", (1, 0), 10, Lane(float::min_form)),
    line("min{.ftz}{.NaN}{.abs}.f32 d, a, b, c", (8, 8), 100, Lane(float::min_form)),
    line("min.f64 d, a, b", (1, 0), 13, Lane(float::min_form)),
    line("max{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b", (1, 0), 10, Lane(float::max_form)),
    line("max{.ftz}{.NaN}{.abs}.f32 d, a, b, c", (8, 8), 100, Lane(float::max_form)),
    line("max.f64 d, a, b", (1, 0), 13, Lane(float::max_form)),
    line("rcp{.approx}{.ftz}.f32 d, a", (1, 0), 10, Lane(float::rcp_form)),
    line("rcp.rnd{.ftz}.type d, a; .rnd = { .rn, .rz, .rm, .rp }; .type = { .f32, .f64 }", (1, 4), 13, Lane(float::rcp_form)),
    line("rcp.approx.ftz.f64 d, a", (2, 1), 20, Lane(float::rcp_form)),
    line("sqrt{.approx}{.ftz}.f32 d, a", (1, 0), 10, Lane(float::sqrt_form)),
    line("sqrt.rnd{.ftz}.f32 d, a; .rnd = { .rn, .rz, .rm, .rp }", (2, 0), 20, Lane(float::sqrt_form)),
    line("sqrt{.rnd}.f64 d, a; .rnd = { .rn, .rz, .rm, .rp }", (1, 0), 13, Lane(float::sqrt_form)),
    line("rsqrt{.approx}{.ftz}.type d, a; .type = { .f32, .f64 }", (1, 0), 10, Lane(approx::rsqrt_form)),
    line("sin{.approx}{.ftz}.f32 d, a", (1, 0), 10, Lane(approx::sin_form)),
    line("cos{.approx}{.ftz}.f32 d, a", (1, 0), 10, Lane(approx::cos_form)),
    line("lg2{.approx}{.ftz}.f32 d, a", (1, 0), 10, Lane(approx::lg2_form)),
    line("ex2{.approx}{.ftz}.f32 d, a", (1, 0), 10, Lane(approx::ex2_f32_form)),
    line("tanh.approx.f32 d, a", (7, 0), 75, Lane(approx::tanh_form)),

    line("add{.rnd}{.ftz}{.sat}.type d, a, b; .rnd = { .rn }; .type = { .f16, .f16x2 }", (4, 2), 53, Later),
    line("add{.rnd}.type d, a, b; .rnd = { .rn }; .type = { .bf16, .bf16x2 }", (7, 8), 90, Later),
];
