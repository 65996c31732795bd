//! Every lane operation of the catalogue, on edge values and random ones: all levels give the same bits, masked kernels
//! write active lanes only and what full ones write, a destination may be a source's slot.

use super::super::lanes::{LaneKernel, MAX_WARPS, Mask, Operands, WARP};
use super::*;
use crate::isa::video::{self, Selectors};

/// xorshift64*; good enough to stir lanes, and the same everywhere.
pub struct Random(pub u64);
impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    /// Often an edge of integers or of some floating-point format.
    pub fn value(&mut self) -> u64 {
        const EDGES: [u64; 40] = [
            0,
            1,
            2,
            3,
            7,
            8,
            15,
            16,
            17,
            31,
            32,
            33,
            63,
            64,
            65,
            0x7f,
            0x80,
            0xff,
            0x7fff,
            0x8000,
            0xffff,
            0x3c00,
            0x7c00,
            0x7e01,
            0x0400,
            0x03ff,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            0x3f80_0000,
            0x7f80_0000,
            0x7fa0_0001,
            0x0080_0000,
            0x007f_ffff,
            0x3ff0_0000_0000_0000,
            0x7ff0_0000_0000_0000,
            0x7ff4_0000_0000_0001,
            0x0010_0000_0000_0000,
            0x7fff_ffff_ffff_ffff,
            0xffff_ffff_ffff_ffff,
        ];
        let random = self.next();
        match random >> 60 {
            0..=2 => EDGES[(self.next() % 40) as usize],
            3 => EDGES[(self.next() % 40) as usize] | 0x8000_0000_8000_8000,
            4 => EDGES[(self.next() % 40) as usize] << 32 | EDGES[(self.next() % 40) as usize],
            5 => EDGES[(self.next() % 40) as usize] << 16 | EDGES[(self.next() % 40) as usize],
            // Exponents near one, where operands meet.
            6..=8 => self.next() & 0x800f_ffff_807f_ffff | 0x3ff0_0000_3f80_0000,
            _ => random.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }
}

/// Bytes of the widest slot, of 128 bits a lane.
const SLOT: usize = MAX_WARPS * WARP * 16;

#[repr(align(64))]
#[derive(Clone)]
struct Window([u8; 8 * SLOT]);

fn fill(random: &mut Random) -> Window {
    let mut window = Window([0; 8 * SLOT]);
    for bytes in window.0.chunks_mut(8) {
        bytes.copy_from_slice(&random.value().to_le_bytes());
    }
    window
}

/// The lane operations of an opcode: for video instructions with some selectors on their operands.
fn lanes_of(opcode: &str) -> Vec<Lane> {
    let Ok(form) = decode(opcode) else { return Vec::new() };
    match form.op {
        Operation::Compute(compute) => vec![compute.lane()],
        Operation::Video(opcode) => {
            let parts = [
                [None, None, None],
                [Some("b1"), Some("h0"), Some("b3")],
                [Some("h1"), Some("h03"), Some("h32")],
                [Some("b320"), Some("b7070"), Some("b0123")],
            ];
            let lanes = parts.into_iter().flat_map(|[d, a, b]| {
                let selectors = Selectors {
                    d,
                    a,
                    b,
                    negate_product: a.is_some(),
                    negate_c: false,
                };
                // A merge needs a third operand, nothing else may have one.
                opcode
                    .with(&selectors, d.is_some() || opcode.needs_third())
                    .ok()
                    .map(video::Op::lane)
            });
            lanes.collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn all_levels_agree() {
    let forms = forms();
    let mut random = Random(0x1234_5678_9abc_def1);
    let levels: Vec<Level> = Level::available().collect();
    let mut seen = std::collections::HashSet::new();
    let opcodes = forms.lines().map(|row| row.split('\t').nth(2).unwrap());
    for (opcode, lane) in opcodes.flat_map(|opcode| lanes_of(opcode).into_iter().map(move |lane| (opcode, lane))) {
        // Many opcodes share a kernel and differ in the constant only.
        if !seen.insert((lane.kernel.full as usize, lane.kernel.masked as usize, lane.constant)) {
            continue;
        }
        for round in 0..4 {
            let window = fill(&mut random);
            let mut operands = Operands {
                imm: lane.constant,
                ..Operands::default()
            };
            if lane.imm.is_some() {
                operands.imm = random.next() & 0xff;
            }
            let slot = |i: usize| (SLOT * i) as u32;
            for i in 0..lane.src.len() {
                operands.src[i] = slot(i);
            }
            for i in 0..lane.dst.len() {
                operands.dst[i] = slot(4 + i);
            }
            // On a last round, into a source.
            if round == 3 && lane.src[0] == lane.dst[0] {
                operands.dst[0] = slot(0);
            }
            let mut lanes = [!0; MAX_WARPS];
            lanes[..2].copy_from_slice(&[random.next() as u32, 0]);
            lanes[MAX_WARPS - 1] = random.next() as u32 & 0xff;
            let mask = Mask {
                warps: MAX_WARPS as u32,
                lanes,
            };
            let at = |kernel: LaneKernel, masked: bool| {
                let mut window = window.clone();
                let f = if masked { kernel.masked } else { kernel.full };
                // SAFETY: eight slots of at most `SLOT` bytes lie in the window; the level is available.
                unsafe { f(window.0.as_mut_ptr(), &operands, &mask) };
                window
            };
            let full = at((lane.at)(levels[0]), false);
            let masked = at((lane.at)(levels[0]), true);
            for &level in &levels[1..] {
                assert!(
                    at((lane.at)(level), false).0 == full.0,
                    "{opcode}: {level:?} differs from {:?}",
                    levels[0]
                );
                assert!(
                    at((lane.at)(level), true).0 == masked.0,
                    "{opcode}: masked {level:?} differs"
                );
            }
            // The masked kernel: the full one's result in active lanes, the old value elsewhere.
            let mut expected = window.clone();
            for (i, &width) in lane.dst.iter().enumerate() {
                for (warp, lanes) in lanes.iter().enumerate() {
                    let base = operands.dst[i] as usize + warp * width.warp_bytes() as usize;
                    if width == Width::Pred {
                        let word = |w: &Window| u32::from_le_bytes(w.0[base..base + 4].try_into().unwrap());
                        let blended = (word(&full) & lanes) | (word(&window) & !lanes);
                        expected.0[base..base + 4].copy_from_slice(&blended.to_le_bytes());
                        continue;
                    }
                    let bytes = width.warp_bytes() as usize / 32;
                    for lane in (0..32).filter(|lane| lanes & (1 << lane) != 0) {
                        let range = base + lane * bytes..base + (lane + 1) * bytes;
                        expected.0[range.clone()].copy_from_slice(&full.0[range]);
                    }
                }
            }
            assert!(
                expected.0 == masked.0,
                "{opcode}: the masked kernel is no blend of the full one"
            );
            // What lies elsewhere stays.
            let mut elsewhere = full.clone();
            for (i, &width) in lane.dst.iter().enumerate() {
                let range =
                    operands.dst[i] as usize..operands.dst[i] as usize + MAX_WARPS * width.warp_bytes() as usize;
                elsewhere.0[range.clone()].copy_from_slice(&window.0[range]);
            }
            assert!(elsewhere.0 == window.0, "{opcode}: writes outside its destinations");
        }
    }
    assert!(seen.len() > 500, "only {} kernels", seen.len());
}
