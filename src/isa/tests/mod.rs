//! What the room as a whole promises: opcodes decode, kernels of every level compute the same bits.

mod floats;
mod integers;
mod levels;
mod needs;
mod sfu;

use super::lanes::{Mask, Operands};
use super::*;

/// A register window for a bundle of one warp.
#[repr(align(64))]
struct Window([u8; 4096]);

/// Runs `opcode` at a level on equal lanes: sources in, destinations out.
fn run(opcode: &str, level: Level, src: &[u64]) -> Vec<u64> {
    let form = decode(opcode).unwrap_or_else(|e| panic!("{e}"));
    let Semantics::Lane(make) = form.line.semantics else {
        panic!("{opcode} is no lane operation")
    };
    let lane = make(&form).unwrap_or_else(|| panic!("{opcode} is not computed"));
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
        lanes: [!0, 0, 0, 0],
    };
    // SAFETY: all slots lie in the window; the level is available.
    unsafe { ((lane.at)(level).full)(window.0.as_mut_ptr(), &operands, &mask) };
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

/// `category`, `opcode`, targets, least PTX version, kind: every distinct opcode that NVIDIA's assembler takes.
fn catalogue() -> String {
    let packed = include_bytes!("../../../tests/data/opcodes.tsv.zst");
    String::from_utf8(zstd::decode_all(&packed[..]).expect("intact")).expect("text")
}

#[test]
fn the_catalogue_decodes() {
    let catalogue = catalogue();
    let mut counts = std::collections::BTreeMap::<&str, (usize, usize, usize)>::new();
    let mut missing = Vec::new();
    for row in catalogue.lines() {
        let mut columns = row.split('\t');
        let (category, opcode) = (columns.next().unwrap(), columns.next().unwrap());
        let count = counts.entry(category).or_default();
        count.0 += 1;
        match decode(opcode) {
            Ok(form) => {
                count.1 += 1;
                let computes = match form.line.semantics {
                    Semantics::Lane(make) => make(&form).is_some(),
                    Semantics::Later => false,
                    _ => true,
                };
                count.2 += usize::from(computes);
            }
            Err(_) => missing.push(format!("{category}\t{opcode}")),
        }
    }
    for (category, (all, decoded, computed)) in &counts {
        println!("{category}: {all} opcodes, {decoded} decode, {computed} run");
    }
    println!(
        "total: {} of {} decode",
        counts.values().map(|c| c.1).sum::<usize>(),
        counts.values().map(|c| c.0).sum::<usize>()
    );
    assert!(missing.is_empty(), "not in the table:\n{}", missing.join("\n"));
}
