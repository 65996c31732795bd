//! Integer Arithmetic Instructions and Extended-Precision Integer Arithmetic Instructions.

use super::entry::Meaning::Compute;
use super::entry::{Instruction, Need, instruction, line, need};
use crate::isa::int::read as int;

const F107_F120: &str = "107f 120f 121f";

/// Four bytes at once.
const BYTES: Need = need("s8x4/u8x4", (9, 2), F107_F120);

const EXTREMA: &[Need] = &[BYTES, need("relu/s16x2/u16x2", (8, 0), "90")];

/// Carries out of 64 bits.
const CARRY: &[Need] = &[need("cc s64/u64", (4, 3), "20")];

#[rustfmt::skip]
pub static INSTRUCTIONS: &[Instruction] = &[
    instruction("add", &[
        line("add.type d, a, b; .type = { .u16, .u32, .u64, .s16, .s32, .s64 }", (1, 0), 10, Compute(int::add)),
        line("add{.sat}.s32 d, a, b", (1, 0), 10, Compute(int::add_or_sat)),
        line("add{.sat}.type d, a, b; .type = { .u16x2, .s16x2 }", (8, 0), 90, Compute(int::add_or_sat)),
        line("add{.sat}.type d, a, b; .type = { .u32, .u8x4, .s8x4 }", (9, 2), 107, Compute(int::add_or_sat)),
    ]).needs(&[
        need("s16x2/u16x2/u32 sat", (9, 2), F107_F120),
        BYTES,
    ]),
    instruction("sub", &[
        line("sub.type d, a, b; .type = { .u16, .u32, .u64, .s16, .s32, .s64 }", (1, 0), 10, Compute(int::sub)),
        line("sub{.sat}.s32 d, a, b", (1, 0), 10, Compute(int::sub_or_sat)),
        line("sub{.sat}.type d, a, b; .type = { .u8x4, .s8x4 }", (9, 2), 107, Compute(int::sub_or_sat)),
    ]).needs(&[BYTES]),
    instruction("mul", &[
        line("mul.mode.type d, a, b; .mode = { .hi, .lo }; .type = { .u16, .u32, .u64, .s16, .s32, .s64 }", (1, 0), 10, Compute(int::mul)),
        line("mul.wide.type d:wide, a, b; .type = { .u16, .u32, .s16, .s32 }", (1, 0), 10, Compute(int::mul_wide)),
    ]),
    instruction("mad", &[
        line("mad.mode.type d, a, b, c; .mode = { .hi, .lo }; .type = { .u16, .u32, .u64, .s16, .s32, .s64 }", (1, 0), 10, Compute(int::mad)),
        line("mad.wide.type d:wide, a, b, c:wide; .type = { .u16, .u32, .s16, .s32 }", (1, 0), 10, Compute(int::mad_wide)),
        line("mad.hi.sat.s32 d, a, b, c", (1, 0), 10, Compute(int::mad_hi_sat)),
    ]),
    instruction("mul24", &[
        line("mul24.mode.type d, a, b; .mode = { .hi, .lo }; .type = { .u32, .s32 }", (1, 0), 10, Compute(int::mul24)),
    ]),
    instruction("mad24", &[
        line("mad24.mode.type d, a, b, c; .mode = { .hi, .lo }; .type = { .u32, .s32 }", (1, 0), 10, Compute(int::mad24)),
        line("mad24.hi.sat.s32 d, a, b, c", (1, 0), 10, Compute(int::mad24_hi_sat)),
    ]),
    instruction("sad", &[
        line("sad.type d, a, b, c; .type = { .u16, .u32, .u64, .s16, .s32, .s64 }", (1, 0), 10, Compute(int::sad)),
    ]),
    instruction("div", &[
        line("div.type d, a, b; .type = { .u16, .u32, .u64, .s16, .s32, .s64 }", (1, 0), 10, Compute(int::div)),
    ]),
    instruction("rem", &[
        line("rem.type d, a, b; .type = { .u16, .u32, .u64, .s16, .s32, .s64 }", (1, 0), 10, Compute(int::rem)),
    ]),
    instruction("abs", &[
        line("abs.type d, a; .type = { .s16, .s32, .s64 }", (1, 0), 10, Compute(int::abs)),
    ]),
    instruction("neg", &[
        line("neg.type d, a; .type = { .s16, .s32, .s64 }", (1, 0), 10, Compute(int::neg)),
        line("neg.s8x4 d, a", (9, 2), 107, Compute(int::neg_packed)),
    ]).needs(&[BYTES]),
    instruction("min", &[
        line("min.type d, a, b; .type = { .u16, .u32, .u64, .s16, .s64, .u16x2 }", (1, 0), 10, Compute(int::min)),
        line("min{.relu}.type d, a, b; .type = { .s16x2, .s32 }", (1, 0), 10, Compute(int::min)),
        line("min.u8x4 d, a, b", (9, 2), 107, Compute(int::min)),
        line("min{.relu}.s8x4 d, a, b", (9, 2), 107, Compute(int::min)),
    ]).needs(EXTREMA),
    instruction("max", &[
        line("max.type d, a, b; .type = { .u16, .u32, .u64, .s16, .s64, .u16x2 }", (1, 0), 10, Compute(int::max)),
        line("max{.relu}.type d, a, b; .type = { .s16x2, .s32 }", (1, 0), 10, Compute(int::max)),
        line("max.u8x4 d, a, b", (9, 2), 107, Compute(int::max)),
        line("max{.relu}.s8x4 d, a, b", (9, 2), 107, Compute(int::max)),
    ]).needs(EXTREMA),
    instruction("popc", &[
        line("popc.type d:u32, a; .type = { .b32, .b64 }", (2, 0), 20, Compute(int::popc)),
    ]),
    instruction("clz", &[
        line("clz.type d:u32, a; .type = { .b32, .b64 }", (2, 0), 20, Compute(int::clz)),
    ]),
    instruction("bfind", &[
        line("bfind{.shiftamt}.type d:u32, a; .type = { .u32, .u64, .s32, .s64 }", (2, 0), 20, Compute(int::bfind)),
    ]),
    instruction("fns", &[
        line("fns.b32 d, mask, base, offset", (6, 0), 30, Compute(int::fns)),
    ]),
    instruction("brev", &[
        line("brev.type d, a; .type = { .b32, .b64 }", (2, 0), 20, Compute(int::brev)),
    ]),
    instruction("bfe", &[
        line("bfe.type d, a, b:u32[0..255], c:u32[0..255]; .type = { .u32, .u64, .s32, .s64 }", (2, 0), 20, Compute(int::bfe)),
    ]),
    instruction("bfi", &[
        line("bfi.type f, a, b, c:u32[0..255], d:u32[0..255]; .type = { .b32, .b64 }", (2, 0), 20, Compute(int::bfi)),
    ]),
    instruction("szext", &[
        line("szext.mode.type d, a, b:u32; .mode = { .clamp, .wrap }; .type = { .u32, .s32 }", (7, 6), 70, Compute(int::szext)),
    ]),
    instruction("bmsk", &[
        line("bmsk.mode.b32 d:u32, a:u32, b:u32; .mode = { .clamp, .wrap }", (7, 6), 70, Compute(int::bmsk)),
    ]),
    instruction("dp4a", &[
        line("dp4a.atype.btype d:u32, a:u32, b:u32, c:u32; .atype = { .u32, .s32 }; .btype = { .u32, .s32 }", (5, 0), 61, Compute(int::dp4a)),
    ]),
    instruction("dp2a", &[
        line("dp2a.mode.atype.btype d:u32, a:u32, b:u32, c:u32; .atype = { .u32, .s32 }; .btype = { .u32, .s32 }; .mode = { .lo, .hi }", (5, 0), 61, Compute(int::dp2a)),
    ]),
    instruction("add", &[
        line("add.cc.type d, a, b; .type = { .u32, .s32, .u64, .s64 }", (1, 2), 10, Compute(int::add_cc)),
    ]).needs(CARRY),
    instruction("addc", &[
        line("addc.type d, a, b; .type = { .u16, .u32, .u64, .s16, .s32, .s64 }", (1, 2), 10, Compute(int::addc)),
        line("addc.cc.type d, a, b; .type = { .u32, .s32, .u64, .s64 }", (1, 2), 10, Compute(int::addc_cc)),
    ]).needs(CARRY),
    instruction("sub", &[
        line("sub.cc.type d, a, b; .type = { .u32, .s32, .u64, .s64 }", (1, 2), 10, Compute(int::sub_cc)),
    ]).needs(CARRY),
    instruction("subc", &[
        line("subc.type d, a, b; .type = { .u16, .u32, .u64, .s16, .s32, .s64 }", (1, 3), 10, Compute(int::subc)),
        line("subc.cc.type d, a, b; .type = { .u32, .s32, .u64, .s64 }", (1, 3), 10, Compute(int::subc_cc)),
    ]).needs(CARRY),
    instruction("mad", &[
        line("mad.mode.cc.type d, a, b, c; .mode = { .hi, .lo }; .type = { .u32, .s32, .u64, .s64 }", (3, 0), 20, Compute(int::mad_cc)),
    ]).needs(CARRY),
    instruction("madc", &[
        line("madc.mode.type d, a, b, c; .mode = { .hi, .lo }; .type = { .u16, .u32, .u64, .s16, .s32, .s64 }", (3, 0), 20, Compute(int::madc)),
        line("madc.mode.cc.type d, a, b, c; .mode = { .hi, .lo }; .type = { .u32, .s32, .u64, .s64 }", (3, 0), 20, Compute(int::madc_cc)),
    ]).needs(CARRY),
];
