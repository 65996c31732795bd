//! What the interpreter and compiled code make of the same operands, for instructions that each of them computes in its own way: the
//! approximations, and arithmetic that is not rounded to nearest. Those of the interpreter are compared with what a GPU gave
//! elsewhere (docs/fidelity.md).

use std::fmt::Write;

use crate::alone::alone;
use crate::basics::context;
use crate::code::*;
use crate::test_name;

const INSTRUCTIONS: [(&str, &str); 25] = [
    ("rcp.approx.f32", "%f0"),
    ("rcp.approx.ftz.f32", "%f0"),
    ("sqrt.approx.f32", "%f0"),
    ("sqrt.approx.ftz.f32", "%f0"),
    ("rsqrt.approx.f32", "%f0"),
    ("rsqrt.approx.ftz.f32", "%f0"),
    ("ex2.approx.f32", "%f0"),
    ("ex2.approx.ftz.f32", "%f0"),
    ("lg2.approx.f32", "%f0"),
    ("lg2.approx.ftz.f32", "%f0"),
    ("sin.approx.f32", "%f0"),
    ("cos.approx.f32", "%f0"),
    ("div.approx.f32", "%f1, %f0"),
    ("div.approx.ftz.f32", "%f1, %f0"),
    ("div.full.f32", "%f1, %f0"),
    ("div.full.ftz.f32", "%f1, %f0"),
    ("fma.rm.f32", "%f1, %f0, %f2"),
    ("fma.rp.f32", "%f1, %f0, %f2"),
    ("fma.rz.sat.f32", "%f1, %f0, %f2"),
    ("add.rm.f32", "%f1, %f0"),
    ("sub.rp.f32", "%f1, %f0"),
    ("mul.rz.f32", "%f1, %f0"),
    ("mul.rm.sat.f32", "%f1, %f0"),
    ("cvt.sat.f32.f32", "%f0"),
    ("cvt.sat.ftz.f32.f32", "%f0"),
];

/// The first operand's bits count up by `step` from `first`; the others' are scattered by multiplication.
fn kernels() -> String {
    let mut text = String::new();
    for (number, (instruction, operands)) in INSTRUCTIONS.iter().enumerate() {
        let _ = write!(
            text,
            "
.visible .entry k{number}(.param .u64 to, .param .u32 first, .param .u32 step) {{
    .reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .f32 %f<4>;
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
    mad.lo.u32 %r2, %r0, %r1, %r2;
    ld.param.u32 %r3, [first]; ld.param.u32 %r4, [step];
    mad.lo.u32 %r5, %r2, %r4, %r3;
    mov.b32 %f0, %r5;
    mul.lo.u32 %r6, %r5, 0x9E3779B1; shr.u32 %r7, %r6, 15; xor.b32 %r6, %r6, %r7;
    mov.b32 %f1, %r6;
    mul.lo.u32 %r8, %r6, 0xC2B2AE3D; xor.b32 %r8, %r8, %r5;
    mov.b32 %f2, %r8;
    {instruction} %f3, {operands};
    ld.param.u64 %rd0, [to]; mul.wide.u32 %rd1, %r2, 4; add.s64 %rd2, %rd0, %rd1;
    st.global.f32 [%rd2], %f3;
    ret;
}}"
        );
    }
    text
}

/// Operands of each kernel: 2^17 all over, and as many around each of these.
const COUNT: u32 = 1 << 17;
const AROUND: [f32; 8] = [0.0, -0.0, 1.0, -1.0, 126.0, -126.0, f32::INFINITY, 8.507_059e37];

#[test]
fn approximations_have_the_same_bits_in_both_tiers() {
    let test = test_name!();
    let bits = |tier: &str| {
        let environment = [("MARGAY_JIT", tier), ("MARGAY_JIT_CACHE", "off")];
        let run = alone(test, &environment, || {
            context();
            let to = words(COUNT as usize);
            let module = module(&kernels());
            for (number, (instruction, _)) in INSTRUCTIONS.iter().enumerate() {
                let kernel = function(module, &format!("k{number}"));
                let all_over = (17_u32, 32_771_u32);
                let around = AROUND.map(|at| (at.to_bits().wrapping_sub(COUNT / 2), 1_u32));
                for (first, step) in std::iter::once(all_over).chain(around) {
                    launch(kernel, COUNT / 256, 256, &[to, first.into(), step.into()]);
                    let hash = read(to, COUNT as usize)
                        .iter()
                        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &word| {
                            (hash ^ u64::from(word)).wrapping_mul(0x100_0000_01b3)
                        });
                    println!("bits of {instruction} from {first:#010x}: {hash:016x}");
                }
            }
        });
        // The first line begins with the name of the test.
        let lines = run.stdout.lines().filter_map(|line| line.split_once("bits of "));
        lines.map(|(_, bits)| bits.to_owned()).collect::<Vec<_>>()
    };
    let (interpreted, compiled) = (bits("off"), bits("always"));
    assert_eq!(interpreted.len(), INSTRUCTIONS.len() * (1 + AROUND.len()));
    for (interpreted, compiled) in interpreted.iter().zip(&compiled) {
        assert_eq!(interpreted, compiled);
    }
    assert_eq!(interpreted.len(), compiled.len());
}
