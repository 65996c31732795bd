//! The kernels of `shfl`, `shfl.sync` (PTX ISA, shfl.sync): a permutation of a run of lanes.
//!
//! Sources are the values, `b` (a lane, a distance or a mask of the lane's number) and `c` (clamp and segment mask); the
//! destinations are what each lane receives, and where it is asked for, whether its source was in range.

use std::sync::LazyLock;

use super::lanes::{LaneKernel, Operands, WARP};
use super::operation::ShuffleMode;
use super::simd::{Cpu, Level, Value, WarpOp, warp_kernel_at};

/// The kernel of a mode, with a predicate as second destination or without.
pub fn kernel(mode: ShuffleMode, with_predicate: bool) -> LaneKernel {
    static KERNELS: LazyLock<[[LaneKernel; 2]; 4]> = LazyLock::new(|| at_level(Level::current()));
    KERNELS[mode as usize][usize::from(with_predicate)]
}

fn at_level(level: Level) -> [[LaneKernel; 2]; 4] {
    fn both<const MODE: u8>(level: Level) -> [LaneKernel; 2] {
        [
            warp_kernel_at::<Shuffle<MODE, false>>(level),
            warp_kernel_at::<Shuffle<MODE, true>>(level),
        ]
    }
    [
        both::<UP>(level),
        both::<DOWN>(level),
        both::<BFLY>(level),
        both::<IDX>(level),
    ]
}

const UP: u8 = ShuffleMode::Up as u8;
const DOWN: u8 = ShuffleMode::Down as u8;
const BFLY: u8 = ShuffleMode::Bfly as u8;
const IDX: u8 = ShuffleMode::Idx as u8;

struct Shuffle<const MODE: u8, const PREDICATE: bool>;

impl<const MODE: u8, const PREDICATE: bool> WarpOp for Shuffle<MODE, PREDICATE> {
    #[inline(always)]
    unsafe fn run<C: Cpu, const MASKED: bool>(regs: *mut u8, operands: &Operands, warp: usize, mask: u32) {
        const BYTES: usize = size_of::<[u32; WARP]>();
        // SAFETY: the caller's: the operands are slots of the window, of 32 bits but for the second destination, a
        // predicate; slots are aligned to 64 bytes, and the caller is compiled with the features of `C`.
        unsafe {
            let run = |slot: u32| regs.add(slot as usize + warp * BYTES).cast::<[u32; WARP]>();
            let [values, b, c] = [operands.src[0], operands.src[1], operands.src[2]].map(|slot| *run(slot));
            let mut from = [0; WARP];
            let mut in_range = bool::run();
            for lane in 0..WARP {
                let (source, is_in_range) = source(MODE, lane as u32, b[lane], c[lane]);
                from[lane] = source;
                bool::set(&mut in_range, lane, is_in_range);
            }
            let moved = C::permute(&values, &from);
            u32::store::<C, MASKED>(run(operands.dst[0]).cast(), &moved, mask);
            if PREDICATE {
                let predicate = regs.add(operands.dst[1] as usize + warp * size_of::<u32>());
                bool::store::<C, MASKED>(predicate, &in_range, mask);
            }
        }
    }
}

/// The lane whose value `lane` receives; `None`: its own, for the one that it asked for is out of range.
pub fn reads(mode: ShuffleMode, lane: u32, b: u32, c: u32) -> Option<u8> {
    let (from, is_in_range) = source(mode as u8, lane, b, c);
    is_in_range.then_some(from as u8)
}

/// The lane whose value `lane` receives, and whether that is the one it asked for: the manual's formula.
#[inline(always)]
fn source(mode: u8, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let b = b & 0x1f;
    let clamp = c & 0x1f;
    let segment = c >> 8 & 0x1f;
    let max = (lane & segment) | (clamp & !segment);
    let min = lane & segment;
    let (from, is_in_range) = match mode {
        UP => (lane.wrapping_sub(b), lane as i32 - b as i32 >= max as i32),
        DOWN => (lane + b, lane + b <= max),
        BFLY => (lane ^ b, lane ^ b <= max),
        _ => {
            let from = min | (b & !segment);
            (from, from <= max)
        }
    };
    (if is_in_range { from & 0x1f } else { lane }, is_in_range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::lanes::Mask;

    /// Expectations worked out by hand from the formulas of PTX ISA, shfl.sync.
    #[test]
    fn shuffles_follow_the_manual() {
        // up by 3, whole warp (c = 0): lanes 0 to 2 keep their own.
        assert_eq!(source(UP, 2, 3, 0), (2, false));
        assert_eq!(source(UP, 3, 3, 0), (0, true));
        // down by 1, whole warp (c = 31): lane 31 keeps its own.
        assert_eq!(source(DOWN, 31, 1, 31), (31, false));
        assert_eq!(source(DOWN, 30, 1, 31), (31, true));
        // width 8: segment mask 0b11000, clamp 31 (down) or 0 (up).
        let c = (0b11000 << 8) | 31;
        assert_eq!(source(DOWN, 7, 1, c), (7, false));
        assert_eq!(source(IDX, 13, 2, c), (10, true));
        assert_eq!(source(BFLY, 5, 2, c), (7, true));
        assert_eq!(source(UP, 8, 1, 0b11000 << 8), (8, false));
    }

    /// Expectations by hand: lane i of warp w holds 100·w + i and asks for the lane above it.
    #[test]
    fn kernels_move_whole_runs_and_active_lanes() {
        #[repr(align(64))]
        struct Window([u32; 5 * 2 * WARP]);
        let at = |slot: usize| (slot * 2 * WARP * size_of::<u32>()) as u32;
        let operands = Operands {
            dst: [at(3), at(4)],
            src: [at(0), at(1), at(2), 0],
            imm: 0,
        };
        let mask = Mask {
            warps: 2,
            lanes: std::array::from_fn(|warp| if warp == 0 { 0x8000_0006 } else { 0 }),
        };
        for level in Level::available() {
            let kernel = at_level(level)[ShuffleMode::Down as usize][1];
            let mut window = Window([7; 5 * 2 * WARP]);
            for lane in 0..2 * WARP {
                window.0[lane] = (lane / WARP * 100 + lane % WARP) as u32;
                window.0[2 * WARP + lane] = 1;
                window.0[4 * WARP + lane] = 31;
            }
            let whole = window.0;
            // SAFETY: the operands are slots of the window, which has room for two warps; the level is available.
            unsafe { (kernel.masked)(window.0.as_mut_ptr().cast(), &operands, &mask) };
            let mut expected = whole;
            (expected[6 * WARP + 1], expected[6 * WARP + 2], expected[6 * WARP + 31]) = (2, 3, 31);
            expected[8 * WARP] = 7 & !0x8000_0006 | 0x6;
            assert_eq!(window.0, expected, "{level:?}, masked");
            window.0 = whole;
            // SAFETY: the operands are slots of the window, which has room for two warps; the level is available.
            unsafe { (kernel.full)(window.0.as_mut_ptr().cast(), &operands, &mask) };
            let mut expected = whole;
            for lane in 0..2 * WARP {
                expected[6 * WARP + lane] = (lane / WARP * 100 + (lane % WARP + 1).min(31)) as u32;
            }
            (expected[8 * WARP], expected[8 * WARP + 1]) = (0x7fff_ffff, 0x7fff_ffff);
            assert_eq!(window.0, expected, "{level:?}, full");
        }
    }
}
