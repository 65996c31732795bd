//! The function unit: against a model of another make ([`sfu_model`]), hashes of a third implementation, values measured
//! on a GB200, and the errors that NVIDIA and others have published.

use super::super::lanes::{MAX_WARPS, Mask, Operands};
use super::super::{Level, decode};
use super::{Operation, Window, sfu_model};

/// An instruction that is a function of the unit and nothing else, and the model of it.
struct Function {
    opcode: &'static str,
    model: fn(u32) -> u32,
    /// FNV-1a over the model's 2^32 results in the order of their arguments, a word a time.
    hash: u64,
}
const FUNCTIONS: [Function; 6] = [
    Function {
        opcode: "rcp.approx.ftz.f32",
        model: sfu_model::rcp,
        hash: 0x6ca6_a9dd_7c32_d5f5,
    },
    Function {
        opcode: "rsqrt.approx.ftz.f32",
        model: sfu_model::rsqrt,
        hash: 0x5df9_3a90_c6a3_3b51,
    },
    Function {
        opcode: "ex2.approx.ftz.f32",
        model: sfu_model::ex2,
        hash: 0x1fee_e1d0_d062_3666,
    },
    Function {
        opcode: "lg2.approx.ftz.f32",
        model: sfu_model::lg2,
        hash: 0x6ed7_2ad5_8135_fd93,
    },
    Function {
        opcode: "sin.approx.ftz.f32",
        model: sfu_model::sin,
        hash: 0x2638_582d_da77_b479,
    },
    Function {
        opcode: "cos.approx.ftz.f32",
        model: sfu_model::cos,
        hash: 0xdf35_96fc_9d67_dc49,
    },
];
const RCP: &str = FUNCTIONS[0].opcode;
const RSQRT: &str = FUNCTIONS[1].opcode;
const EX2: &str = FUNCTIONS[2].opcode;

const LANES: usize = 128;
/// Runs an instruction on four warps.
struct Unit {
    kernel: unsafe fn(*mut u8, &Operands, &Mask),
}
impl Unit {
    fn new(opcode: &str, level: Level) -> Unit {
        let form = decode(opcode).unwrap_or_else(|error| panic!("{error}"));
        let Operation::Compute(compute) = form.op else {
            panic!("{opcode} is no lane operation")
        };
        Unit {
            kernel: compute.at(level).kernel.full,
        }
    }
    fn run(&self, arguments: [u32; LANES]) -> [u32; LANES] {
        let mut window = Window([0; 4096]);
        for (lane, argument) in arguments.iter().enumerate() {
            window.0[4 * lane..][..4].copy_from_slice(&argument.to_ne_bytes());
        }
        let operands = Operands {
            dst: [1024, 0],
            ..Operands::default()
        };
        let mask = Mask {
            warps: 4,
            lanes: [!0; MAX_WARPS],
        };
        // SAFETY: both slots lie in the window; the level is available.
        unsafe { (self.kernel)(window.0.as_mut_ptr(), &operands, &mask) };
        std::array::from_fn(|lane| u32::from_ne_bytes(window.0[1024 + 4 * lane..][..4].try_into().unwrap()))
    }
    fn one(&self, argument: u32) -> u32 {
        self.run([argument; LANES])[0]
    }
}

const FNV: u64 = 0xcbf2_9ce4_8422_2325;
fn fnv(hash: u64, word: u32) -> u64 {
    (hash ^ u64::from(word)).wrapping_mul(0x100_0000_01b3)
}

/// Over 200,000 results of arguments from a linear congruential generator; the hashes are those of a third
/// implementation, in Python.
#[test]
fn other_implementations_agree() {
    let hashes: [u64; 6] = [
        0xb186_8416_07bf_a8ca,
        0x6968_8f8f_5f12_d048,
        0x788b_dcc0_310d_46b9,
        0xbb2c_adde_8507_01ff,
        0x26e3_9c97_45a9_8a90,
        0xc40a_a198_1c84_13f3,
    ];
    for (function, expected) in FUNCTIONS.iter().zip(hashes) {
        let mut x = 0x1234_5678u32;
        let arguments: Vec<u32> = (0..200_000)
            .map(|_| {
                x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                x
            })
            .collect();
        let hash = arguments.iter().fold(FNV, |hash, &x| fnv(hash, (function.model)(x)));
        assert_eq!(hash, expected, "the model of {}", function.opcode);
        for level in Level::available() {
            let unit = Unit::new(function.opcode, level);
            for some in arguments.chunks(LANES) {
                let argument = std::array::from_fn(|lane| some[lane % some.len()]);
                let results = unit.run(argument);
                for lane in 0..LANES {
                    let expected = (function.model)(argument[lane]);
                    assert_eq!(
                        results[lane], expected,
                        "{} {:#x} {level:?}",
                        function.opcode, argument[lane]
                    );
                }
            }
        }
    }
}

/// Takes minutes; `cargo test --release --lib every_argument -- --ignored`. The levels take turns.
#[test]
#[ignore = "all 2^32 arguments of six functions"]
fn every_argument_has_the_models_result() {
    let levels: Vec<Level> = Level::available().collect();
    std::thread::scope(|scope| {
        for function in &FUNCTIONS {
            let levels = &levels;
            scope.spawn(move || {
                let mut hash = FNV;
                let units: Vec<Unit> = levels.iter().map(|&level| Unit::new(function.opcode, level)).collect();
                for block in 0..1u32 << 25 {
                    let arguments = std::array::from_fn(|lane| block * LANES as u32 + lane as u32);
                    let results = units[block as usize % units.len()].run(arguments);
                    for lane in 0..LANES {
                        let expected = (function.model)(arguments[lane]);
                        assert_eq!(results[lane], expected, "{} {:#x}", function.opcode, arguments[lane]);
                        hash = fnv(hash, expected);
                    }
                }
                assert_eq!(hash, function.hash, "{}: {hash:#018x}", function.opcode);
            });
        }
    });
}

/// flash-attention issue 2263: outputs of a GB200 whose inputs the printed digits determine.
#[test]
fn powers_are_those_of_a_gb200() {
    let unit = Unit::new(EX2, Level::Baseline);
    for (input, output) in [
        (0xc14b_10e0, 0x391e_8128),
        (0xc147_8f28, 0x3938_8261),
        (0xc190_ac65, 0x3671_7d95),
        (0xc123_8d46, 0x3a5b_7d5c),
        (0xc0b4_fae8, 0x3ca2_822f),
        (0xc0b9_2469, 0x3c94_7fa3),
        (0xc083_a88a, 0x3d6c_7f28),
        (0xc0e4_3fa3, 0x3be9_7e0e),
        (0xc106_949b, 0x3b40_8029),
    ] {
        assert_eq!(unit.one(input), output, "ex2 {input:x}");
    }
}

/// Errors in units of the last place over all significands of an octave or two, against `f64`; and how many are rounded
/// correctly.
fn errors(opcode: &str, exact: fn(f64) -> f64, range: std::ops::Range<u32>) -> (f64, f64) {
    let unit = Unit::new(opcode, Level::detect());
    let (mut worst, mut correct) = (0f64, 0u32);
    let count = range.len() as f64;
    for first in range.clone().step_by(LANES) {
        let arguments = std::array::from_fn(|lane| (first + lane as u32).min(range.end - 1));
        let results = unit.run(arguments);
        for (argument, result) in arguments.into_iter().zip(results).take((range.end - first) as usize) {
            let found = f32::from_bits(result);
            let true_value = exact(f64::from(f32::from_bits(argument)));
            let nearest = true_value as f32;
            let place = f64::from(f32::from_bits(0x3400_0000)) * 2f64.powi(true_value.abs().log2().floor() as i32);
            worst = worst.max((f64::from(found) - true_value).abs() / place);
            correct += u32::from(nearest == found);
        }
    }
    (worst, 100.0 * f64::from(correct) / count)
}

#[test]
fn errors_are_the_published_ones() {
    let close = |(worst, correct): (f64, f64), expected: (f64, f64)| {
        assert!(
            (worst - expected.0).abs() < 0.005 && (correct - expected.1).abs() < 0.05,
            "{worst} units at most, {correct} % correct; expected {expected:?}"
        );
    };
    close(errors(RCP, |x| 1.0 / x, 0x3f80_0001..0x4000_0000), (0.974_87, 86.79));
    // NVIDIA says 1.51 (cccl, pull request 5375).
    close(
        errors(RSQRT, |x| 1.0 / x.sqrt(), 0x3f80_0001..0x4080_0000),
        (1.514_485, 78.34),
    );
}
