//! Comparison and Selection, Logic and Shift, and the register-to-register part of Data Movement and Conversion.

use super::Meaning::{Compute, Move};
use super::{Line, line};
use crate::isa::compare::read as compare;
use crate::isa::convert::read as convert;
use crate::isa::logic::read as logic;
use crate::isa::narrow::read as narrow;

#[rustfmt::skip]
pub static LINES: &[Line] = &[
    line("setp.CmpOp{.BoolOp}.type p:_{|q}, a, b{, {!}c:pred?and/or/xor}; .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge, .lo, .ls, .hi, .hs }; .BoolOp = { .and, .or, .xor }; .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64 }", (1, 0), 10, Compute(compare::setp)),
    line("setp.CmpOp{.BoolOp}{.ftz}.type p:_{|q}, a, b{, {!}c:pred?and/or/xor}; .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan }; .BoolOp = { .and, .or, .xor }; .type = { .f32, .f64, .f16, .f16x2, .bf16, .bf16x2 }", (1, 0), 10, Compute(compare::setp)),
    line("set.CmpOp{.BoolOp}{.ftz}.dtype.stype d, a, b{, {!}c:pred?and/or/xor}; .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge, .lo, .ls, .hi, .hs, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan }; .BoolOp = { .and, .or, .xor }; .dtype = { .u32, .s32, .f32, .f16, .bf16, .u16, .s16, .f16x2, .bf16x2 }; .stype = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64, .f16, .f16x2, .bf16, .bf16x2 }", (1, 0), 10, Compute(compare::set)),
    line("selp.type d, a, b, c:pred; .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 }", (1, 0), 10, Compute(logic::selp)),
    line("slct.dtype.s32 d, a:0, b:0, c:1; .dtype = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 }", (1, 0), 10, Compute(logic::slct)),
    line("slct{.ftz}.dtype.f32 d, a:0, b:0, c:1; .dtype = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 }", (1, 0), 10, Compute(logic::slct)),

    line("and.type d, a, b; .type = { .pred, .b16, .b32, .b64 }", (1, 0), 10, Compute(logic::and)),
    line("or.type d, a, b; .type = { .pred, .b16, .b32, .b64 }", (1, 0), 10, Compute(logic::or)),
    line("xor.type d, a, b; .type = { .pred, .b16, .b32, .b64 }", (1, 0), 10, Compute(logic::xor)),
    line("not.type d, a; .type = { .pred, .b16, .b32, .b64 }", (1, 0), 10, Compute(logic::not)),
    line("cnot.type d, a; .type = { .b16, .b32, .b64 }", (1, 0), 10, Compute(logic::cnot)),
    line("lop3.b32 d, a, b, c, immLut:imm~[0..255]", (4, 3), 50, Compute(logic::lop3)),
    line("lop3.BoolOp.b32 d:_|p, a, b, c, immLut:imm~[0..255], q; .BoolOp = { .or, .and }", (8, 2), 70, Compute(logic::lop3)),
    line("shf.dir.mode.b32 d, a, b, c:u32; .dir = { .l, .r }; .mode = { .clamp, .wrap }", (3, 1), 32, Compute(logic::shf)),
    line("shl.type d, a, b:u32; .type = { .b16, .b32, .b64 }", (1, 0), 10, Compute(logic::shl)),
    line("shr.type d, a, b:u32; .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64 }", (1, 0), 10, Compute(logic::shr)),
    line("prmt.b32{.mode} d, a, b, c; .mode = { .f4e, .b4e, .rc8, .ecl, .ecr, .rc16 }", (2, 0), 20, Compute(logic::prmt)),

    line("mov.type d, a; .type = { .pred, .b16, .b32, .b64, .b128, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 }", (1, 0), 10, Move),
    line("mov.vec.type d, a; .vec = { .v2, .v4 }; .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 }", (1, 0), 10, Move),

    line("cvt{.sat}.dtype.atype d:0+, a:1+; .dtype = { .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64 }; .atype = { .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64 }", (1, 0), 10, Compute(convert::cvt)),
    line("cvt.irnd{.ftz}{.sat}.dtype.atype d:0+, a:1+; .irnd = { .rni, .rzi, .rmi, .rpi }; .dtype = { .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f16, .bf16, .f32, .f64 }; .atype = { .f16, .bf16, .f32, .f64 }", (1, 0), 10, Compute(convert::cvt)),
    line("cvt.frnd{.ftz}{.sat}.dtype.atype d:0+, a:1+; .frnd = { .rn, .rz, .rm, .rp }; .dtype = { .f16, .bf16, .f32, .f64 }; .atype = { .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f16, .bf16, .f32, .f64 }", (1, 0), 10, Compute(convert::cvt)),
    line("cvt{.ftz}{.sat}.dtype.atype d:0+, a:1+; .dtype = { .f16, .bf16, .f32, .f64 }; .atype = { .f16, .bf16, .f32, .f64 }", (1, 0), 10, Compute(convert::cvt)),
    line("cvt.frnd{.relu}{.satfinite}.dtype.f32 d:0+, a:1+; .frnd = { .rn, .rz }; .dtype = { .f16, .bf16, .tf32 }", (7, 0), 70, Compute(convert::cvt)),
    line("cvt.rna{.satfinite}.tf32.f32 d:0+, a:1+", (7, 0), 80, Compute(convert::cvt)),
    line("cvt.frnd{.relu}{.satfinite}.dtype.f32 d:0+, a:1+, b:1+; .frnd = { .rn, .rz }; .dtype = { .f16x2, .bf16x2 }", (7, 0), 80, Compute(convert::halves)),
    line("cvt.rs{.relu}{.satfinite}.dtype.f32 d:0+, a:1+, b:1+, rbits:b32; .dtype = { .f16x2, .bf16x2 }", (8, 7), 100, Compute(narrow::random_halves)),
    line("cvt.frnd{.relu}{.satfinite}{.relu}{.scaled::n2::ue8m0}.dtype.atype d:0, a:1{, b:1?f32}{, scale:b16?scaled::n2::ue8m0}; .frnd = { .rn, .rz, .rp }; .dtype = { .e4m3x2, .e5m2x2, .e2m3x2, .e3m2x2, .e2m1x2, .ue8m0x2, .ue5m3x2, .s2f6x2 }; .atype = { .f32, .f16x2, .bf16x2 }", (7, 8), 89, Compute(narrow::down)),
    line("cvt.rn{.relu}{.satfinite}{.relu}{.scaled::n2::ue8m0}.dtype.atype d:0, a:1{, scale:b16?scaled::n2::ue8m0}; .dtype = { .f16x2, .bf16x2 }; .atype = { .e4m3x2, .e5m2x2, .e2m3x2, .e3m2x2, .e2m1x2, .ue8m0x2, .ue5m3x2, .s2f6x2 }", (7, 8), 89, Compute(narrow::up)),
    line("cvt.rs{.relu}.satfinite.dtype.f32 d:0, abef:any, rbits:b32; .dtype = { .e4m3x4, .e5m2x4, .e2m3x4, .e3m2x4, .e2m1x4 }", (8, 7), 100, Compute(narrow::random_four)),
    line("cvt.pack.sat.dtype.s32 d:b32+, a:s32+, b:s32+; .dtype = { .u16, .s16 }", (6, 5), 72, Compute(convert::pack)),
    line("cvt.pack.sat.dtype.s32.b32 d:b32+, a:s32+, b:s32+, c:b32+; .dtype = { .u2, .s2, .u4, .s4, .u8, .s8 }", (6, 5), 72, Compute(convert::pack)),
];
