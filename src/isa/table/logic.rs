//! Comparison and Selection, Logic and Shift, and the register-to-register part of Data Movement and Conversion.

use super::entry::Meaning::{Compute, Move};
use super::entry::Then::{Last, NotLast, With, Without};
use super::entry::{Common, F100_F120, Instruction, instruction, line, need, rule};
use crate::isa::compare::read as compare;
use crate::isa::convert::read as convert;
use crate::isa::logic::read as logic;
use crate::isa::narrow::read as narrow;

/// `setp`, `set`.
const COMPARISON: Common = Common {
    needs: &[need("bf16/bf16x2", (7, 8), "90"), need("f16/f16x2", (4, 2), "53")],
    rules: &[
        rule("lo ls hi hs", Last("u16 u32 u64")),
        rule("lt le gt ge", NotLast("b16 b32 b64")),
        rule("equ neu ltu leu gtu geu num nan", Last("f16 f16x2 bf16 bf16x2 f32 f64")),
        rule("ftz", Last("f16 f16x2 f32")),
    ],
};

#[rustfmt::skip]
pub static INSTRUCTIONS: &[Instruction] = &[
    instruction("setp", &[
        line("setp.CmpOp{.BoolOp}.type p:_{|q}, a, b{, {!}c:pred?and/or/xor}; .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge, .lo, .ls, .hi, .hs }; .BoolOp = { .and, .or, .xor }; .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64 }", (1, 0), 10, Compute(compare::setp)),
        line("setp.CmpOp{.BoolOp}{.ftz}.type p:_{|q}, a, b{, {!}c:pred?and/or/xor}; .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan }; .BoolOp = { .and, .or, .xor }; .type = { .f32, .f64, .f16, .f16x2, .bf16, .bf16x2 }", (1, 0), 10, Compute(compare::setp)),
    ]).common(COMPARISON),
    instruction("set", &[
        line("set.CmpOp{.BoolOp}{.ftz}.dtype.stype d, a, b{, {!}c:pred?and/or/xor}; .CmpOp = { .eq, .ne, .lt, .le, .gt, .ge, .lo, .ls, .hi, .hs, .equ, .neu, .ltu, .leu, .gtu, .geu, .num, .nan }; .BoolOp = { .and, .or, .xor }; .dtype = { .u32, .s32, .f32, .f16, .bf16, .u16, .s16, .f16x2, .bf16x2 }; .stype = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64, .f16, .f16x2, .bf16, .bf16x2 }", (1, 0), 10, Compute(compare::set)),
    ]).common(COMPARISON).needs(&[
        need("equ/ftz/geu/gtu/leu/ltu/nan/neu/num s16/u16", (6, 5), "53"),
        need("f16x2 s32/u32", (6, 5), "53"),
    ]).rules(&[
        rule("ftz+bf16 ftz+bf16x2", NotLast("f16 f16x2 f32")),
        rule("f16x2", Last("f16x2")),
        rule("bf16x2", Last("bf16x2")),
        rule("u16 s16", Last("f16 bf16")),
        rule("f16", NotLast("f16x2 bf16 bf16x2")),
        rule("f32", NotLast("f16 f16x2 bf16 bf16x2")),
        rule("bf16", NotLast("f16x2 bf16x2")),
    ]),
    instruction("selp", &[
        line("selp.type d, a, b, c:pred; .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 }", (1, 0), 10, Compute(logic::selp)),
    ]),
    instruction("slct", &[
        line("slct.dtype.s32 d, a:0, b:0, c:1; .dtype = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 }", (1, 0), 10, Compute(logic::slct)),
        line("slct{.ftz}.dtype.f32 d, a:0, b:0, c:1; .dtype = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 }", (1, 0), 10, Compute(logic::slct)),
    ]),

    instruction("and", &[
        line("and.type d, a, b; .type = { .pred, .b16, .b32, .b64 }", (1, 0), 10, Compute(logic::and)),
    ]),
    instruction("or", &[
        line("or.type d, a, b; .type = { .pred, .b16, .b32, .b64 }", (1, 0), 10, Compute(logic::or)),
    ]),
    instruction("xor", &[
        line("xor.type d, a, b; .type = { .pred, .b16, .b32, .b64 }", (1, 0), 10, Compute(logic::xor)),
    ]),
    instruction("not", &[
        line("not.type d, a; .type = { .pred, .b16, .b32, .b64 }", (1, 0), 10, Compute(logic::not)),
    ]),
    instruction("cnot", &[
        line("cnot.type d, a; .type = { .b16, .b32, .b64 }", (1, 0), 10, Compute(logic::cnot)),
    ]),
    instruction("lop3", &[
        line("lop3.b32 d, a, b, c, immLut:imm~[0..255]", (4, 3), 50, Compute(logic::lop3)),
        line("lop3.BoolOp.b32 d:_|p, a, b, c, immLut:imm~[0..255], q; .BoolOp = { .or, .and }", (8, 2), 70, Compute(logic::lop3)),
    ]),
    instruction("shf", &[
        line("shf.dir.mode.b32 d, a, b, c:u32; .dir = { .l, .r }; .mode = { .clamp, .wrap }", (3, 1), 32, Compute(logic::shf)),
    ]).needs(&[
        need("", (3, 1), "35"),
    ]),
    instruction("shl", &[
        line("shl.type d, a, b:u32; .type = { .b16, .b32, .b64 }", (1, 0), 10, Compute(logic::shl)),
    ]),
    instruction("shr", &[
        line("shr.type d, a, b:u32; .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64 }", (1, 0), 10, Compute(logic::shr)),
    ]),
    instruction("prmt", &[
        line("prmt.b32{.mode} d, a, b, c; .mode = { .f4e, .b4e, .rc8, .ecl, .ecr, .rc16 }", (2, 0), 20, Compute(logic::prmt)),
    ]),

    instruction("mov", &[
        line("mov.type d, a; .type = { .pred, .b16, .b32, .b64, .b128, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 }", (1, 0), 10, Move),
        line("mov.vec.type d, a; .vec = { .v2, .v4 }; .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 }", (1, 0), 10, Move),
    ]).needs(&[
        need("b128", (8, 3), "70"),
    ]).rules(&[
        rule("v2 v4", NotLast("b128 s16 s64")),
        rule("v4", NotLast("b64 u64 f64")),
    ]),

    instruction("cvt", &[
        line("cvt{.sat}.dtype.atype d:0+, a:1+; .dtype = { .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64 }; .atype = { .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64 }", (1, 0), 10, Compute(convert::cvt)),
        line("cvt.irnd{.ftz}{.sat}.dtype.atype d:0+, a:1+; .irnd = { .rni, .rzi, .rmi, .rpi }; .dtype = { .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f16, .bf16, .f32, .f64 }; .atype = { .f16, .bf16, .f32, .f64 }", (1, 0), 10, Compute(convert::cvt)),
        line("cvt.frnd{.ftz}{.sat}.dtype.atype d:0+, a:1+; .frnd = { .rn, .rz, .rm, .rp }; .dtype = { .f16, .bf16, .f32, .f64 }; .atype = { .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f16, .bf16, .f32, .f64 }", (1, 0), 10, Compute(convert::cvt)),
        line("cvt{.ftz}{.sat}.dtype.atype d:0+, a:1+; .dtype = { .f16, .bf16, .f32, .f64 }; .atype = { .f16, .bf16, .f32, .f64 }", (1, 0), 10, Compute(convert::cvt)),
        line("cvt.frnd{.relu}{.satfinite}.dtype.f32 d:0+, a:1+; .frnd = { .rn, .rz }; .dtype = { .f16, .bf16, .tf32 }", (7, 0), 70, Compute(convert::cvt)),
        line("cvt.rna{.satfinite}.tf32.f32 d:0+, a:1+", (7, 0), 80, Compute(convert::cvt)),
        line("cvt.frnd{.relu}{.satfinite}.dtype.f32 d:0+, a:1+, b:1+; .frnd = { .rn, .rz }; .dtype = { .f16x2, .bf16x2 }", (7, 0), 80, Compute(convert::halves)),
        line("cvt.rs{.relu}{.satfinite}.dtype.f32 d:0+, a:1+, b:1+, rbits:b32; .dtype = { .f16x2, .bf16x2 }", (8, 7), 100, Compute(narrow::random_halves)),
        line("cvt.frnd{.relu}{.satfinite}{.scaled::n2::ue8m0}.dtype.atype d:0, a:1{, b:1?f32}{, scale:b16?scaled::n2::ue8m0}; .frnd = { .rn, .rz, .rp }; .dtype = { .e4m3x2, .e5m2x2, .e2m3x2, .e3m2x2, .e2m1x2, .ue8m0x2, .ue5m3x2, .s2f6x2 }; .atype = { .f32, .f16x2, .bf16x2 }", (7, 8), 89, Compute(narrow::down)),
        line("cvt.rn{.relu}{.satfinite}{.scaled::n2::ue8m0}.dtype.atype d:0, a:1{, scale:b16?scaled::n2::ue8m0}; .dtype = { .f16x2, .bf16x2 }; .atype = { .e4m3x2, .e5m2x2, .e2m3x2, .e3m2x2, .e2m1x2, .ue8m0x2, .ue5m3x2, .s2f6x2 }", (7, 8), 89, Compute(narrow::up)),
        line("cvt.rs{.relu}.satfinite.dtype.f32 d:0, abef:any, rbits:b32; .dtype = { .e4m3x4, .e5m2x4, .e2m3x4, .e3m2x4, .e2m1x4 }", (8, 7), 100, Compute(narrow::random_four)),
        line("cvt.pack.sat.dtype.s32 d:b32+, a:s32+, b:s32+; .dtype = { .u16, .s16 }", (6, 5), 72, Compute(convert::pack)),
        line("cvt.pack.sat.dtype.s32.b32 d:b32+, a:s32+, b:s32+, c:b32+; .dtype = { .u2, .s2, .u4, .s4, .u8, .s8 }", (6, 5), 72, Compute(convert::pack)),
    ]).needs(&[
        need("s2/s4/u2/u4", (6, 5), "75"),
        need("relu/tf32/bf16", (7, 0), "80"),
        need("bf16 f16/f64/rmi/rni/rpi/rzi/s16/s32/s64/s8/u16/u32/u64/u8", (7, 8), "90"),
        need("relu/rn/rz tf32", (7, 8), "90"),
        need("e4m3x2/e5m2x2", (8, 1), "89"),
        need("satfinite", (8, 1), "70"),
        need("e2m1x2/e2m3x2/e3m2x2/ue8m0x2", (8, 6), F100_F120),
        need("rs", (8, 7), "100a 103a 107a"),
        need("bf16x2 e2m1x2/e2m3x2/e3m2x2/e4m3x2/e5m2x2", (9, 1), F100_F120),
        need("s2f6x2", (9, 1), "100a 103a 107a 110a 120a 121a"),
        need("scaled::n2::ue8m0", (9, 1), F100_F120),
        need("e2m1x2/e2m3x2/e3m2x2/e4m3x2/e5m2x2 scaled::n2::ue8m0", (9, 2), F100_F120),
        need("e2m1x2/e2m3x2/e3m2x2/e4m3x2/e5m2x2 rz", (9, 4), "107f"),
        need("rz s2f6x2", (9, 4), "107a"),
        need("ue5m3x2", (9, 4), "107f"),
    ]).rules(&[
        rule("sat+s8+-pack", NotLast("s8")),
        rule("sat+u8+-pack", NotLast("u8")),
        rule("sat+s16+-pack", NotLast("s8 u8 s16")),
        rule("sat+u16+-pack", NotLast("u8 u16")),
        rule("sat+s32", NotLast("s8 u8 s16 u16 s32")),
        rule("sat+u32", NotLast("u8 u16 u32")),
        rule("sat+s64", NotLast("s8 u8 s16 u16 s32 u32 s64")),
        rule("sat+u64", NotLast("u8 u16 u32 u64")),
        rule("sat+bf16", Last("")),
        rule("sat", NotLast("bf16")),
        rule("ftz", With("f32")),
        rule("rni+f16 rzi+f16 rmi+f16 rpi+f16", Last("f16")),
        rule("rni+bf16 rzi+bf16 rmi+bf16 rpi+bf16", Last("bf16")),
        rule("rni+f32 rzi+f32 rmi+f32 rpi+f32", Last("f32")),
        rule("rni+f64 rzi+f64 rmi+f64 rpi+f64", Last("f64")),
        rule("rn+f16 rz+f16 rm+f16 rp+f16", NotLast("f16")),
        rule("rn+bf16 rz+bf16 rm+bf16 rp+bf16", NotLast("bf16")),
        rule("rn+f32 rz+f32 rm+f32 rp+f32", NotLast("f16 f32")),
        rule("rn+f64 rz+f64 rm+f64 rp+f64", NotLast("f16 f32 f64")),
        rule("~+f16 ~+bf16", NotLast("f32 f64")),
        rule("~+f32", NotLast("f64")),
        rule("ftz+bf16", Last("f32")),
        rule("e4m3x2 e5m2x2 e2m3x2 e3m2x2 e2m1x2 s2f6x2", With("satfinite")),
        rule("e4m3x2 e5m2x2 e2m3x2 e3m2x2 e2m1x2 s2f6x2", Without("rp")),
        rule("e4m3x2 e5m2x2 e2m3x2 e3m2x2 e2m1x2 ue8m0x2 ue5m3x2", Without("scaled::n2::ue8m0")),
        rule("ue8m0x2", Without("rn relu")),
        rule("ue8m0x2", NotLast("f16x2")),
        rule("s2f6x2", NotLast("f16x2")),
        rule("ue5m3x2", Without("relu")),
        rule("f16x2", NotLast("s2f6x2 ue8m0x2")),
        rule("relu+f16x2 relu+bf16x2", NotLast("ue8m0x2 ue5m3x2")),
    ]),
];
