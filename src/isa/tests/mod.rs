//! What the room as a whole promises: opcodes decode, kernels of every level compute the same bits.

mod floats;
mod integers;
mod levels;
mod needs;
mod operations;
mod sfu;
mod sfu_model;

use super::lanes::{Mask, Operands, Width};
use super::*;
use crate::isa::types::Type;

/// A register window for a bundle of one warp.
#[repr(align(64))]
struct Window([u8; 4096]);

/// Runs `opcode` at a level on equal lanes: sources in, destinations out.
fn run(opcode: &str, level: Level, src: &[u64]) -> Vec<u64> {
    let form = decode(opcode).unwrap_or_else(|e| panic!("{e}"));
    let Operation::Compute(compute) = form.op else {
        panic!("{opcode} is no lane operation")
    };
    let lane = compute.at(level);
    let mut window = Window([0; 4096]);
    let mut operands = Operands {
        imm: lane.constant,
        ..Operands::default()
    };
    for (i, &width) in lane.src.iter().enumerate() {
        operands.src[i] = 512 * i as u32;
        let at = operands.src[i] as usize;
        match width {
            Width::Pred => window.0[at..at + 4].fill(if src[i] != 0 { 0xff } else { 0 }),
            width => {
                let bytes = width.warp_bytes() as usize / 32;
                for lane in 0..32 {
                    window.0[at + lane * bytes..][..bytes.min(8)]
                        .copy_from_slice(&src[i].to_le_bytes()[..bytes.min(8)]);
                }
            }
        }
    }
    for i in 0..lane.dst.len() {
        operands.dst[i] = 2048 + 512 * i as u32;
    }
    let mask = Mask {
        warps: 1,
        lanes: std::array::from_fn(|warp| if warp == 0 { !0 } else { 0 }),
    };
    // SAFETY: all slots lie in the window; the level is available.
    unsafe { (lane.kernel.full)(window.0.as_mut_ptr(), &operands, &mask) };
    let read = |i: usize| {
        let bytes = (lane.dst[i].warp_bytes() as usize / 32).min(8);
        let at = operands.dst[i] as usize;
        if lane.dst[i] == Width::Pred {
            return u64::from(window.0[at] & 1);
        }
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(&window.0[at + 31 * bytes..][..bytes]);
        u64::from_le_bytes(value)
    };
    (0..lane.dst.len()).map(read).collect()
}

#[test]
fn a_few_by_hand() {
    let f = |x: f32| u64::from(x.to_bits());
    for level in Level::available() {
        assert_eq!(run("add.s32", level, &[2, 3]), [5]);
        assert_eq!(run("add.rn.f32", level, &[f(1.5), f(2.0)]), [f(3.5)]);
        assert_eq!(run("fma.rn.f32", level, &[f(1.5), f(2.0), f(0.25)]), [f(3.25)]);
        assert_eq!(run("mul.wide.s32", level, &[0xffff_ffff, 3]), [-3i64 as u64]);
        assert_eq!(run("setp.lt.s32", level, &[0xffff_ffff, 3]), [1]);
        assert_eq!(run("setp.lt.u32", level, &[0xffff_ffff, 3]), [0]);
        assert_eq!(run("setp.eq.and.s32", level, &[4, 4, 0]), [0]);
        assert_eq!(run("add.cc.u32", level, &[0xffff_ffff, 3]), [2, 1]);
        assert_eq!(run("selp.b32", level, &[7, 9, 0]), [9]);
        assert_eq!(run("cvt.rn.f16.f32", level, &[f(1.0)]), [0x3c00]);
        assert_eq!(run("cvt.rzi.s32.f32", level, &[f(-2.75)]), [0xffff_fffe]);
        assert_eq!(
            run("prmt.b32", level, &[0x4433_2211, 0x8877_6655, 0x7531]),
            [0x8866_4422]
        );
        assert_eq!(run("shl.b32", level, &[1, 32]), [0]);
        assert_eq!(run("div.s32", level, &[0xffff_fff9, 2]), [0xffff_fffd]);
    }
}

#[test]
fn errors_explain() {
    let error = decode("add.rn.ftzz.f32").unwrap_err();
    assert_eq!(error.nearest.as_deref(), Some("add.rn.ftz.f32"));
    assert_eq!(error.found.as_deref(), Some("ftzz"));
    assert_eq!(
        decode("ad.s32").unwrap_err().to_string(),
        "unknown instruction `ad`; did you mean `add`?"
    );
}

#[test]
fn refused_names_say_what_they_are() {
    let message = |opcode: &str| decode(opcode).unwrap_err().to_string();
    assert!(message("_ldldu.global.b32").starts_with("`_ldldu` is a name within NVIDIA's compiler"));
    assert!(message("elect.one").starts_with("`elect.one` is in NVIDIA's table"));
    assert!(message("setmaxreg.alloc").contains("`setmaxnreg`"));
    assert!(message("frc.f32").contains("PTX 1.1"));
    assert!(message("sin.f64").contains("PTX 1.0"));
    // No name is refused that the table has.
    for refused in super::table::refused::NAMES {
        assert!(decode(refused.name).is_err(), "{}", refused.name);
    }
}

/// PTX ISA 1.1, Tables 18 to 24; the defaults of later manuals for "PTX ISA versions 1.0 through 1.3".
#[test]
fn the_first_specification_decodes() {
    let read = |opcode: &str| {
        let form = decode_legacy(opcode).unwrap_or_else(|error| panic!("{error}"));
        (form.words.join("."), form.types)
    };
    let words = |opcode: &str| read(opcode).0;
    assert_eq!(words("mul.u16"), "lo");
    assert_eq!(words("mul.wide.u16"), "wide");
    assert_eq!(words("mad.hi.sat.s32"), "hi.sat");
    assert_eq!(words("div.f32"), "approx.ftz");
    assert_eq!(words("div.f64"), "");
    assert_eq!(words("div.full.f32"), "full.ftz");
    assert_eq!(words("rcp.f64"), "rn");
    assert_eq!(words("sin.f32"), "approx.ftz");
    assert_eq!(words("add.sat.f32"), "ftz.sat");
    assert_eq!(words("add.s32"), "");
    assert_eq!(words("setp.lt.f32"), "lt.ftz");
    assert_eq!(read("cvt.f32.s32"), ("rn".to_owned(), vec![Type::F32, Type::S32]));
    assert_eq!(words("cvt.sat.s32.f64"), "rzi.sat");
    assert_eq!(words("cvt.u32.u16"), "");
    assert_eq!(words("div.wide.s16"), "wide");
    assert!(decode("div.wide.s16").is_err() && decode("sad.f32").is_err() && decode("mul.u16").is_err());
}

/// The catalogue of what NVIDIA's assembler takes; its third column has opcodes.
fn forms() -> String {
    let packed = include_bytes!("../../../tests/data/forms.tsv.zst");
    String::from_utf8(zstd::decode_all(&packed[..]).expect("intact")).expect("text")
}
