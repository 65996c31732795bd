//! PTX 1.x: syntax lines that later versions dropped, and modifiers that it leaves unsaid (PTX ISA 1.1, chapter 7).

use super::entry::Meaning::{Compute, Load, Store};
use super::entry::{Instruction, instruction, line};
use crate::isa::legacy::read as legacy;

#[rustfmt::skip]
pub static INSTRUCTIONS: &[Instruction] = &[
    instruction("sad", &[
        line("sad.type d, a, b, c; .type = { .f32, .f64 }", (1, 0), 10, Compute(legacy::sad)),
    ]),
    instruction("div", &[
        line("div.wide.type d, a, b; .type = { .u16, .u32, .s16, .s32 }", (1, 0), 10, Compute(legacy::div_wide)),
    ]),
    instruction("rem", &[
        line("rem.wide.type d, a, b; .type = { .u16, .u32, .s16, .s32 }", (1, 0), 10, Compute(legacy::rem_wide)),
    ]),
    instruction("ld", &[
        line("ld.volatile{.ss}{.vec}.f16 d, [a]; .ss = { .const, .global, .local, .param, .shared }; .vec = { .v2, .v3, .v4 }", (1, 1), 10, Load),
        line("ld{.volatile}{.ss}.v3.type d, [a]; .ss = { .const, .global, .local, .param, .shared }; .type = { .b8, .b16, .b32, .b64, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f16, .f32, .f64 }", (1, 0), 10, Load),
    ]),
    instruction("st", &[
        line("st.volatile{.ss}{.vec}.f16 [a], b; .ss = { .global, .local, .shared }; .vec = { .v2, .v3, .v4 }", (1, 1), 10, Store),
        line("st{.volatile}{.ss}.v3.type [a], b; .ss = { .global, .local, .shared }; .type = { .b8, .b16, .b32, .b64, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f16, .f32, .f64 }", (1, 0), 10, Store),
    ]),
];

/// A modifier that PTX 1.x leaves out.
pub struct Unsaid {
    pub mnemonic: &'static str,
    /// A word that the opcode must hold; any if empty.
    pub with: &'static str,
    /// What it means, as if written behind.
    pub means: &'static str,
}

const fn unsaid(mnemonic: &'static str, with: &'static str, means: &'static str) -> Unsaid {
    Unsaid { mnemonic, with, means }
}

/// The first that makes a legal opcode counts.
///
/// Products are low halves (Table 63's `mad.u16`); conversions round to nearest, to integers towards zero as in C.
/// Division and its kin are approximate in single precision before 1.4 (PTX ISA 3.1, div, rcp, sqrt, …: "For PTX ISA
/// versions 1.0 through 1.3"), and targets of that time flush subnormal numbers (ibid., add, mul, …: "sm_1x").
#[rustfmt::skip]
pub static UNSAID: &[Unsaid] = &[
    unsaid("mul", "", ".lo"), unsaid("mad", "", ".lo"), unsaid("mul24", "", ".lo"), unsaid("mad24", "", ".lo"),
    unsaid("rcp", "f64", ".rn"),
    unsaid("div", "f32", ".approx.ftz"), unsaid("rcp", "f32", ".approx.ftz"), unsaid("sqrt", "f32", ".approx.ftz"),
    unsaid("rsqrt", "f32", ".approx.ftz"), unsaid("sin", "f32", ".approx.ftz"), unsaid("cos", "f32", ".approx.ftz"),
    unsaid("lg2", "f32", ".approx.ftz"), unsaid("ex2", "f32", ".approx.ftz"),
    unsaid("cvt", "", ".rn"), unsaid("cvt", "", ".rzi"),
    unsaid("add", "f32", ".ftz"), unsaid("sub", "f32", ".ftz"), unsaid("mul", "f32", ".ftz"), unsaid("mad", "f32", ".ftz"),
    unsaid("abs", "f32", ".ftz"), unsaid("neg", "f32", ".ftz"), unsaid("min", "f32", ".ftz"), unsaid("max", "f32", ".ftz"),
    unsaid("div", "f32", ".ftz"), unsaid("rcp", "f32", ".ftz"), unsaid("sqrt", "f32", ".ftz"),
    unsaid("rsqrt", "f32", ".ftz"), unsaid("sin", "f32", ".ftz"), unsaid("cos", "f32", ".ftz"),
    unsaid("lg2", "f32", ".ftz"), unsaid("ex2", "f32", ".ftz"),
    unsaid("set", "f32", ".ftz"), unsaid("setp", "f32", ".ftz"), unsaid("slct", "f32", ".ftz"),
];
