//! The function unit's models: against hashes of a second implementation (integers of any size, straight from the
//! published description), values measured on a GB200, and the errors that NVIDIA and others have published.

use super::super::sfu;

type Function = (&'static str, fn(u32) -> u32);

/// FNV-1a over 200,000 results, a word a time, of arguments from a linear congruential generator.
fn hash(f: fn(u32) -> u32) -> u64 {
    let (mut hash, mut x) = (0xcbf2_9ce4_8422_2325u64, 0x1234_5678u32);
    for _ in 0..200_000 {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        hash = (hash ^ u64::from(f(x))).wrapping_mul(0x100_0000_01b3);
    }
    hash
}

#[test]
fn a_second_implementation_agrees() {
    let functions: [(Function, u64); 6] = [
        (("rcp", sfu::rcp), 0xb186_8416_07bf_a8ca),
        (("rsqrt", sfu::rsqrt), 0x6968_8f8f_5f12_d048),
        (("ex2", sfu::ex2), 0x788b_dcc0_310d_46b9),
        (("lg2", sfu::lg2), 0xbb2c_adde_8507_01ff),
        (("sin", sfu::sin), 0x26e3_9c97_45a9_8a90),
        (("cos", sfu::cos), 0xc40a_a198_1c84_13f3),
    ];
    for ((name, f), expected) in functions {
        assert_eq!(hash(f), expected, "{name}");
    }
}

/// flash-attention issue 2263: outputs of a GB200 whose inputs the printed digits determine.
#[test]
fn powers_are_those_of_a_gb200() {
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
        assert_eq!(sfu::ex2(input), output, "ex2 {input:x}");
    }
}

/// Errors in units of the last place over all significands of an octave or two, against `f64`; and how many are rounded
/// correctly.
fn errors(f: fn(u32) -> u32, exact: fn(f64) -> f64, range: std::ops::Range<u32>) -> (f64, f64) {
    let (mut worst, mut correct) = (0f64, 0u32);
    let count = range.len() as f64;
    for bits in range {
        let found = f32::from_bits(f(bits));
        let true_value = exact(f64::from(f32::from_bits(bits)));
        let nearest = true_value as f32;
        let unit = f64::from(f32::from_bits(0x3400_0000)) * 2f64.powi(true_value.abs().log2().floor() as i32);
        worst = worst.max((f64::from(found) - true_value).abs() / unit);
        correct += u32::from(nearest == found);
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
    close(
        errors(sfu::rcp, |x| 1.0 / x, 0x3f80_0001..0x4000_0000),
        (0.974_87, 86.79),
    );
    // NVIDIA says 1.51 (cccl, pull request 5375).
    close(
        errors(sfu::rsqrt, |x| 1.0 / x.sqrt(), 0x3f80_0001..0x4080_0000),
        (1.514_485, 78.34),
    );
}
