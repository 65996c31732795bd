//! Floating-point instructions against LLVM's arbitrary-precision arithmetic (`rustc_apfloat`), all rounding modes, and
//! conversions against it and against wide integers.

use std::fmt::Debug;

use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use super::super::soft::{self, Bfloat16, Binary16, Binary32, Binary64, Format};
use super::super::types::Rounding;
use super::super::{float, half, number};
use super::levels::Random;
use super::*;

const MODES: [(Rounding, Round); 5] = [
    (Rounding::Rn, Round::NearestTiesToEven),
    (Rounding::Rna, Round::NearestTiesToAway),
    (Rounding::Rz, Round::TowardZero),
    (Rounding::Rm, Round::TowardNegative),
    (Rounding::Rp, Round::TowardPositive),
];

/// Equal bits, or both NaN.
fn same<A: Float>(bits: u64, expected: A) -> bool {
    A::from_bits(bits.into()).is_nan() && expected.is_nan() || u128::from(bits) == expected.to_bits()
}

fn operands<F: Format>(random: &mut Random) -> u64 {
    let width = F::PRECISION + F::EXPONENT_BITS;
    let ones = u64::MAX >> (64 - width);
    let sign = random.next() & F::SIGN;
    let magnitude = match random.next() % 8 {
        0 => [
            0,
            1,
            2,
            F::INFINITY - 1,
            F::INFINITY,
            F::INFINITY + 1,
            F::NAN & !F::SIGN,
        ][random.next() as usize % 7],
        // Around the least normal number.
        1 => (1 << (F::PRECISION - 1)) - 2 + random.next() % 5,
        // Around one, with few bits.
        2 | 3 => ((F::BIAS as u64) << (F::PRECISION - 1)) ^ 1 << (random.next() % u64::from(F::PRECISION + 1)),
        4 => ((F::BIAS as u64) << (F::PRECISION - 1))
            .wrapping_add(random.next() % 7)
            .wrapping_sub(3),
        5 => {
            let spread = random.next() % (4 * u64::from(F::PRECISION));
            let exponent = (F::BIAS as u64)
                .wrapping_add(spread)
                .saturating_sub(2 * u64::from(F::PRECISION));
            (exponent << (F::PRECISION - 1)) + random.next() % (1 << (F::PRECISION - 1))
        }
        _ => random.next(),
    };
    (magnitude | sign) & ones
}

fn arithmetic<F: Format, A: Float + Debug>(rounds: usize) {
    let mut random = Random(0xfeed_beef_0000_0001);
    for _ in 0..rounds {
        let [a, b, c] = std::array::from_fn(|_| operands::<F>(&mut random));
        let [x, y, z] = [a, b, c].map(|v| A::from_bits(v.into()));
        for (mode, round) in MODES {
            let why = || format!("{a:x} {b:x} {c:x} {mode:?}");
            assert!(
                same::<A>(soft::add::<F>(a, b, mode), x.add_r(y, round).value),
                "add {}",
                why()
            );
            assert!(
                same::<A>(soft::mul::<F>(a, b, mode), x.mul_r(y, round).value),
                "mul {}",
                why()
            );
            assert!(
                same::<A>(soft::div::<F>(a, b, mode), x.div_r(y, round).value),
                "div {}",
                why()
            );
            assert!(
                same::<A>(soft::fma::<F>(a, b, c, mode), x.mul_add_r(y, z, round).value),
                "fma {}",
                why()
            );
        }
    }
}

#[test]
fn soft_arithmetic() {
    arithmetic::<Binary16, Half>(100_000);
    arithmetic::<Bfloat16, BFloat>(100_000);
    arithmetic::<Binary32, Single>(100_000);
    arithmetic::<Binary64, Double>(100_000);
}

/// The root rounded one way brackets the operand: exact integers decide.
#[test]
fn soft_roots() {
    let mut random = Random(0x0bad_cafe_0000_0001);
    for _ in 0..100_000 {
        let a = operands::<Binary64>(&mut random);
        let x = f64::from_bits(a);
        let nearest = soft::sqrt::<Binary64>(a, Rounding::Rn);
        assert!(
            same::<Double>(nearest, Double::from_bits(x.sqrt().to_bits().into())),
            "sqrt {a:x}"
        );
        if !(x > 0.0 && x.is_finite()) {
            continue;
        }
        // Down and up differ by a step unless the root is exact, and the nearest is one of them.
        let down = soft::sqrt::<Binary64>(a, Rounding::Rz);
        let up = soft::sqrt::<Binary64>(a, Rounding::Rp);
        assert_eq!(soft::sqrt::<Binary64>(a, Rounding::Rm), down);
        assert!(nearest == down || nearest == up);
        let square = |bits: u64| {
            let root = Double::from_bits(bits.into());
            // Its error's sign decides which side the root is on.
            root.mul_add_r(root, -Double::from_bits(a.into()), Round::NearestTiesToEven)
                .value
        };
        if up == down {
            assert!(square(up).is_zero(), "{a:x}");
        } else {
            assert_eq!(up, down + 1);
            assert!(square(down).is_negative() && !square(up).is_negative(), "{a:x}");
        }
    }
    for a in 0..=0xffffu64 {
        let root = ::half::f16::from_f64(::half::f16::from_bits(a as u16).to_f64().sqrt());
        if !root.is_nan() {
            assert_eq!(
                soft::sqrt::<Binary16>(a, Rounding::Rn),
                u64::from(root.to_bits()),
                "{a:x}"
            );
        }
    }
}

/// Functions that the reference computes on `f32` bits, with `.ftz` before and after.
fn flushed(bits: u64, ftz: bool) -> u64 {
    if ftz && bits & 0x7f80_0000 == 0 {
        bits & 0x8000_0000
    } else {
        bits
    }
}

#[test]
fn single_precision() {
    let mut random = Random(0xabcd_0123_0000_0001);
    for _ in 0..100_000 {
        let bits: [u64; 3] = std::array::from_fn(|_| operands::<Binary32>(&mut random));
        let [a, b, c] = bits.map(|v| f32::from_bits(v as u32));
        for ftz in [false, true] {
            let [x, y, z] = bits.map(|v| Single::from_bits(flushed(v, ftz).into()));
            // What the manual says of the result: flushed, then saturated; NaN is canonical.
            let finish = |value: Single, sat: bool| {
                let bits = flushed(value.to_bits() as u64, ftz);
                let value = f32::from_bits(bits as u32);
                match (sat, value.is_nan()) {
                    (true, true) => 0,
                    (true, false) => {
                        if value <= 0.0 {
                            0
                        } else if value > 1.0 {
                            1f32.to_bits()
                        } else {
                            bits as u32
                        }
                    }
                    (false, true) => 0x7fff_ffff,
                    (false, false) => bits as u32,
                }
            };
            let why = || format!("{a:?} {b:?} {c:?} ftz {ftz}");
            let rn = Round::NearestTiesToEven;
            let check = |plain: f32, value: Single, sat: bool| {
                // What rounding may have lifted to the least normal number is flushed or not: `tests/sweeps` and the
                // results of an H100 say when.
                if ftz && value.abs().to_bits() == 0x80_0000 {
                    return;
                }
                assert_eq!(plain.to_bits(), finish(value, sat), "{} sat {sat}", why());
            };
            if ftz {
                check(float::add_f32::<true, false>(a, b), x.add_r(y, rn).value, false);
                check(float::sub_f32::<true, true>(a, b), x.sub_r(y, rn).value, true);
                check(float::mul_f32::<true, false>(a, b), x.mul_r(y, rn).value, false);
                check(
                    float::fma_f32::<simd::Baseline, true, true>(a, b, c),
                    x.mul_add_r(y, z, rn).value,
                    true,
                );
                check(float::div_f32::<true>(a, b), x.div_r(y, rn).value, false);
            } else {
                check(float::add_f32::<false, true>(a, b), x.add_r(y, rn).value, true);
                let root = if a < 0.0 {
                    0x7fff_ffff
                } else {
                    soft::sqrt::<Binary32>(bits[0], Rounding::Rn)
                };
                assert_eq!(
                    float::sqrt_f32::<false>(a).to_bits(),
                    if a == 0.0 { bits[0] } else { root } as u32
                );
                check(float::sub_f32::<false, false>(a, b), x.sub_r(y, rn).value, false);
                check(float::mul_f32::<false, true>(a, b), x.mul_r(y, rn).value, true);
                check(
                    float::fma_f32::<simd::Baseline, false, false>(a, b, c),
                    x.mul_add_r(y, z, rn).value,
                    false,
                );
                check(float::div_f32::<false>(a, b), x.div_r(y, rn).value, false);
                check(
                    float::rcp_f32::<false>(a),
                    Single::from_bits(0x3f80_0000).div_r(x, rn).value,
                    false,
                );
            }
        }
        for (word, round) in [
            ("rz", Round::TowardZero),
            ("rm", Round::TowardNegative),
            ("rp", Round::TowardPositive),
        ] {
            let [x, y, z] = bits.map(|v| Single::from_bits(v.into()));
            let canonical = |v: Single| if v.is_nan() { 0x7fff_ffff } else { v.to_bits() as u64 };
            let mode = MODES.iter().find(|m| m.1 == round).unwrap().0.code();
            let why = || format!("{a:?} {b:?} {c:?} {word}");
            let got = |v: f32| u64::from(v.to_bits());
            assert_eq!(
                got(float::add_f32_rnd(a, b, mode)),
                canonical(x.add_r(y, round).value),
                "{}",
                why()
            );
            assert_eq!(
                got(float::mul_f32_rnd(a, b, mode)),
                canonical(x.mul_r(y, round).value),
                "{}",
                why()
            );
            assert_eq!(
                got(float::fma_f32_rnd(a, b, c, mode)),
                canonical(x.mul_add_r(y, z, round).value),
                "{}",
                why()
            );
            if random.next().is_multiple_of(64) {
                let run = |op: &str, src: &[u64]| run(&format!("{op}.{word}.f32"), Level::Baseline, src)[0];
                assert_eq!(run("add", &bits[..2]), canonical(x.add_r(y, round).value));
                assert_eq!(run("sub", &bits[..2]), canonical(x.sub_r(y, round).value));
                assert_eq!(run("mul", &bits[..2]), canonical(x.mul_r(y, round).value));
                assert_eq!(run("div", &bits[..2]), canonical(x.div_r(y, round).value));
                assert_eq!(run("fma", &bits), canonical(x.mul_add_r(y, z, round).value));
                assert_eq!(
                    run("rcp", &bits[..1]),
                    canonical(Single::from_bits(0x3f80_0000).div_r(x, round).value)
                );
            }
        }
    }
}

#[test]
fn double_precision() {
    let mut random = Random(0xabcd_0123_0000_0007);
    for _ in 0..100_000 {
        let bits: [u64; 3] = std::array::from_fn(|_| operands::<Binary64>(&mut random));
        let [a, b, c] = bits.map(f64::from_bits);
        let [x, y, z] = bits.map(|v| Double::from_bits(v.into()));
        let rn = Round::NearestTiesToEven;
        // A NaN operand is passed on, quiet: the first of `order`.
        let check = |got: f64, value: Double, order: &[f64]| {
            let nan = order
                .iter()
                .find(|v| v.is_nan())
                .map_or(0xfff8 << 48, |v| v.to_bits() | 1 << 51);
            let expected = if value.is_nan() { nan } else { value.to_bits() as u64 };
            assert_eq!(got.to_bits(), expected, "{a:?} {b:?} {c:?}");
        };
        check(float::add_f64(a, b), x.add_r(y, rn).value, &[b, a]);
        check(float::sub_f64(a, b), x.sub_r(y, rn).value, &[b, a]);
        check(float::mul_f64(a, b), x.mul_r(y, rn).value, &[b, a]);
        check(float::div_f64(a, b), x.div_r(y, rn).value, &[a, b]);
        check(
            float::fma_f64::<simd::Baseline>(a, b, c),
            x.mul_add_r(y, z, rn).value,
            &[b, c, a],
        );
        check(
            float::rcp_f64(a),
            Double::from_bits(0x3ff0 << 48).div_r(x, rn).value,
            &[a],
        );
    }
}

#[test]
fn extrema() {
    // Tables of the manual: NaN loses, −0 < +0.
    let nan = f32::from_bits(0x7fff_ffff);
    let odd_nan = f32::from_bits(0xffa0_0001);
    let bits = |x: f32| x.to_bits();
    for (a, b) in [
        (1.0f32, 2.0f32),
        (-0.0, 0.0),
        (0.0, -0.0),
        (-3.0, -4.0),
        (f32::INFINITY, 1.0),
    ] {
        let (low, high) = if a < b || (a == b && a.is_sign_negative()) {
            (a, b)
        } else {
            (b, a)
        };
        assert_eq!(bits(float::min_f32::<false, false, false>(a, b)), bits(low));
        assert_eq!(bits(float::max_f32::<false, true, false>(a, b)), bits(high));
        assert_eq!(float::min_f64(a.into(), b.into()).to_bits(), f64::from(low).to_bits());
        assert_eq!(float::max_f64(a.into(), b.into()).to_bits(), f64::from(high).to_bits());
    }
    assert_eq!(bits(float::min_f32::<false, false, false>(odd_nan, 1.0)), bits(1.0));
    assert_eq!(bits(float::max_f32::<false, false, false>(-1.0, odd_nan)), bits(-1.0));
    assert_eq!(bits(float::max_f32::<false, true, false>(-1.0, odd_nan)), bits(nan));
    assert_eq!(bits(float::min_f32::<false, false, false>(odd_nan, odd_nan)), bits(nan));
    assert_eq!(bits(float::min_f32::<true, false, false>(-1e-40, 1.0)), bits(-0.0));
    // `.xorsign.abs`: magnitudes compare, the sign is the product's.
    assert_eq!(bits(float::min_f32::<false, false, true>(-3.0, 2.0)), bits(-2.0));
    assert_eq!(bits(float::max_f32::<false, false, true>(-3.0, -2.0)), bits(3.0));
    assert_eq!(float::min_f64(f64::NAN, 1.0), 1.0);
    assert_eq!(half::min::<half::F16>(0x8000, 0x0000, 0), 0x8000);
    assert_eq!(half::max::<half::F16>(0x7e01, 0xbc00, 0), 0xbc00);
    assert_eq!(half::max::<half::F16>(0x7e01, 0xbc00, 2), 0x7fff);
    assert_eq!(half::min::<half::Bf16>(0xc000, 0x3f80, 4), 0xbf80);
}

fn halves<H: half::Half, A: Float + Debug, F: Format>() {
    let mut random = Random(0xabcd_0123_0000_0009);
    let rn = Round::NearestTiesToEven;
    let mut quick = 0;
    for _ in 0..300_000 {
        let [a, b, c] = std::array::from_fn(|_| operands::<F>(&mut random));
        let [x, y, z] = [a, b, c].map(|v| A::from_bits(v.into()));
        let [a, b, c] = [a, b, c].map(|v| v as u16);
        let canonical = |v: A| if v.is_nan() { 0x7fff } else { v.to_bits() as u16 };
        let why = || format!("{a:x} {b:x} {c:x}");
        assert_eq!(
            half::add::<H, false, false>(a, b),
            canonical(x.add_r(y, rn).value),
            "add {}",
            why()
        );
        assert_eq!(
            half::sub::<H, false, false>(a, b),
            canonical(x.sub_r(y, rn).value),
            "sub {}",
            why()
        );
        assert_eq!(
            half::mul::<H, false, false>(a, b),
            canonical(x.mul_r(y, rn).value),
            "mul {}",
            why()
        );
        let fma = canonical(x.mul_add_r(y, z, rn).value);
        assert_eq!(half::fma::<H, false, false>(a, b, c), fma, "fma {}", why());
        let relu = if fma & 0x8000 != 0 { 0 } else { fma };
        assert_eq!(half::fma_relu::<H, false, false>(a, b, c), relu);
        // The quick way says where it may be wrong, and is right elsewhere.
        let [wide_a, wide_b, wide_c] = [a, b, c].map(H::widen);
        let (sum, rare) = <half::FusedMultiplyAdd<false> as half::Arithmetic>::quick::<H>(wide_a, wide_b, wide_c);
        quick += u32::from(!rare);
        if !rare && fma != 0x7fff {
            assert_eq!(H::narrow(sum), fma, "quick fma {}", why());
        }
        // The kernels go another way, two halves at a time.
        if !random.next().is_multiple_of(64) {
            continue;
        }
        let ty = if F::PRECISION == 11 { "f16" } else { "bf16" };
        let [x, y, z] = [a, b, c].map(u64::from);
        let pair = |low: u16, high: u16| u64::from(high) << 16 | u64::from(low);
        for level in Level::available() {
            let run = |op: &str, src: &[u64]| run(op, level, src)[0];
            assert_eq!(
                run(&format!("add.{ty}"), &[x, y]),
                u64::from(half::add::<H, false, false>(a, b)),
                "{}",
                why()
            );
            assert_eq!(
                run(&format!("sub.{ty}"), &[x, y]),
                u64::from(half::sub::<H, false, false>(a, b))
            );
            assert_eq!(
                run(&format!("mul.{ty}"), &[x, y]),
                u64::from(half::mul::<H, false, false>(a, b))
            );
            assert_eq!(run(&format!("fma.rn.{ty}"), &[x, y, z]), u64::from(fma), "{}", why());
            assert_eq!(run(&format!("fma.rn.relu.{ty}"), &[x, y, z]), u64::from(relu));
            let packed = run(&format!("fma.rn.{ty}x2"), &[pair(a, b), pair(b, c), pair(c, a)]);
            let high = half::fma::<H, false, false>(b, c, a);
            assert_eq!(packed, pair(fma, high), "{}", why());
            let packed = run(&format!("mul.{ty}x2"), &[pair(a, b), pair(b, c)]);
            let (low, high) = (half::mul::<H, false, false>(a, b), half::mul::<H, false, false>(b, c));
            assert_eq!(packed, pair(low, high));
            if F::PRECISION == 11 {
                let want = u64::from(half::add::<H, true, true>(a, b));
                assert_eq!(run("add.ftz.sat.f16", &[x, y]), want, "{}", why());
                let want = u64::from(half::mul::<H, true, false>(a, b));
                assert_eq!(run("mul.ftz.f16", &[x, y]), want, "{}", why());
                let want = u64::from(half::fma::<H, false, true>(a, b, c));
                assert_eq!(run("fma.rn.sat.f16", &[x, y, z]), want, "{}", why());
            }
        }
    }
    assert!(quick > 50_000, "{quick} of 300,000 are quick");
}
#[test]
fn half_precision() {
    halves::<half::F16, Half, Binary16>();
    halves::<half::Bf16, BFloat, Bfloat16>();
}

#[test]
fn narrowing() {
    let mut random = Random(0xabcd_0123_0000_000b);
    let check = |bits: u32| {
        let x = f32::from_bits(bits);
        let single = Single::from_bits(bits.into());
        let mut loses = false;
        let to_half: Half = single.convert_r(Round::NearestTiesToEven, &mut loses).value;
        let expected = if x.is_nan() { 0x7fff } else { to_half.to_bits() as u16 };
        assert_eq!(number::narrow_f16(x), expected, "{bits:x}");
        let to_bf: BFloat = single.convert_r(Round::NearestTiesToEven, &mut loses).value;
        let expected = if x.is_nan() { 0x7fff } else { to_bf.to_bits() as u16 };
        assert_eq!(number::narrow_bf16(x), expected, "{bits:x}");
    };
    for _ in 0..300_000 {
        check(random.value() as u32);
        check(random.next() as u32);
        // Where halves live.
        check((random.next() as u32 & 0x81ff_ffff) + 0x3200_0000);
    }
    for a in 0..=0xffffu16 {
        let mut loses = false;
        let single: Single = Half::from_bits(a.into()).convert(&mut loses).value;
        let expected = if single.is_nan() {
            0x7fff_ffff
        } else {
            single.to_bits() as u32
        };
        assert_eq!(number::widen_f16(a).to_bits(), expected, "{a:x}");
        if !single.is_nan() {
            assert_eq!(number::narrow_f16(number::widen_f16(a)), a);
        }
    }
}

/// A conversion between floating-point formats by the reference.
fn converted<A: Float + FloatConvert<B>, B: Float>(bits: u64, round: Round) -> B {
    let mut loses = false;
    A::from_bits(bits.into()).convert_r(round, &mut loses).value
}

#[test]
fn conversions() {
    let mut random = Random(0xabcd_0123_0000_000d);
    let levels: Vec<Level> = Level::available().collect();
    let modes = [
        ("rn", "rni", Round::NearestTiesToEven),
        ("rz", "rzi", Round::TowardZero),
        ("rm", "rmi", Round::TowardNegative),
        ("rp", "rpi", Round::TowardPositive),
    ];
    for round in 0..4000 {
        let level = levels[round % levels.len()];
        let (word, integral, mode) = modes[random.next() as usize % 4];
        let run = |opcode: &str, a: u64| run(opcode, level, &[a])[0];
        let single = operands::<Binary32>(&mut random);
        let double = if round % 2 == 0 {
            operands::<Binary64>(&mut random)
        } else {
            // Where narrower formats live.
            (f64::from(f32::from_bits(single as u32)).to_bits()).wrapping_add(random.next() % 0x4000_0000)
        };
        let small = operands::<Binary16>(&mut random);
        let value = random.value();

        // Between formats; NaNs have rules of their own, tested below.
        if !f64::from_bits(double).is_nan() {
            let want = converted::<Double, Single>(double, mode).to_bits() as u64;
            assert_eq!(run(&format!("cvt.{word}.f32.f64"), double), want, "{double:x} {word}");
            let want = converted::<Double, Half>(double, mode).to_bits() as u64;
            assert_eq!(run(&format!("cvt.{word}.f16.f64"), double), want, "{double:x} {word}");
            let want = converted::<Double, BFloat>(double, mode).to_bits() as u64;
            assert_eq!(run(&format!("cvt.{word}.bf16.f64"), double), want, "{double:x} {word}");
            let want = Double::from_bits(double.into()).round_to_integral(mode).value.to_bits() as u64;
            assert_eq!(
                run(&format!("cvt.{integral}.f64.f64"), double),
                want,
                "{double:x} {integral}"
            );
        }
        if !f32::from_bits(single as u32).is_nan() {
            let want = converted::<Single, Double>(single, mode).to_bits() as u64;
            assert_eq!(run("cvt.f64.f32", single), want);
            let want = converted::<Single, Half>(single, mode).to_bits() as u64;
            assert_eq!(run(&format!("cvt.{word}.f16.f32"), single), want, "{single:x} {word}");
            let want = converted::<Single, BFloat>(single, mode).to_bits() as u64;
            assert_eq!(run(&format!("cvt.{word}.bf16.f32"), single), want, "{single:x} {word}");
            let want = Single::from_bits(single.into()).round_to_integral(mode).value.to_bits() as u64;
            assert_eq!(
                run(&format!("cvt.{integral}.f32.f32"), single),
                want,
                "{single:x} {integral}"
            );
        }

        // To integers: clamped; NaN is zero, or the top bit where `f64` or 64 bits take part.
        for (name, bits, signed) in [
            ("u8", 8, false),
            ("s8", 8, true),
            ("u16", 16, false),
            ("s16", 16, true),
            ("u32", 32, false),
            ("s32", 32, true),
            ("u64", 64, false),
            ("s64", 64, true),
        ] {
            let (low, high) = if signed {
                (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
            } else {
                (0, (1i128 << bits) - 1)
            };
            let slot = if bits == 8 { 16 } else { bits };
            let in_slot = |v: i128| (v as u64) & (u64::MAX >> (64 - slot));
            let clamp = |value: Double, nan: bool| {
                if nan {
                    return None;
                }
                let integer = value.round_to_integral(mode).value;
                let exact: i128 = if integer.is_infinite() || integer.to_bits() as u64 & !(1 << 63) > 0x4400 << 48 {
                    if integer.is_negative() { low } else { high }
                } else {
                    f64::from_bits(integer.to_bits() as u64) as i128
                };
                Some(in_slot(exact.clamp(low, high)))
            };
            let extended = in_slot(if signed {
                -(1i128 << (bits - 1))
            } else {
                1i128 << (bits - 1)
            });
            let x = Double::from_bits(double.into());
            let want = clamp(x, x.is_nan()).unwrap_or(extended);
            assert_eq!(
                run(&format!("cvt.{integral}.{name}.f64"), double),
                want,
                "{double:x} {integral} {name}"
            );
            let x = Single::from_bits(single.into());
            let want = clamp(converted::<Single, Double>(single, mode), x.is_nan());
            let want = want.unwrap_or(if bits == 64 { extended } else { 0 });
            assert_eq!(
                run(&format!("cvt.{integral}.{name}.f32"), single),
                want,
                "{single:x} {integral} {name}"
            );
            let x = Half::from_bits(small.into());
            let want = clamp(converted::<Half, Double>(small, mode), x.is_nan());
            let want = want.unwrap_or(if bits == 64 { extended } else { 0 });
            assert_eq!(
                run(&format!("cvt.{integral}.{name}.f16"), small),
                want,
                "{small:x} {integral} {name}"
            );

            // From integers: rounded once.
            let source: i128 = {
                let low = value & (u64::MAX >> (64 - bits));
                if signed {
                    i128::from((low << (64 - bits)) as i64 >> (64 - bits))
                } else {
                    low.into()
                }
            };
            let want = Single::from_i128_r(source, mode).value.to_bits() as u64;
            assert_eq!(
                run(&format!("cvt.{word}.f32.{name}"), value),
                want,
                "{value:x} {word} {name}"
            );
            let want = Double::from_i128_r(source, mode).value.to_bits() as u64;
            assert_eq!(
                run(&format!("cvt.{word}.f64.{name}"), value),
                want,
                "{value:x} {word} {name}"
            );
            let want = Half::from_i128_r(source, mode).value.to_bits() as u64;
            assert_eq!(
                run(&format!("cvt.{word}.f16.{name}"), value),
                want,
                "{value:x} {word} {name}"
            );

            // Between integers: truncated and extended, or clamped.
            for (to, to_bits, to_signed) in [
                ("u8", 8, false),
                ("s8", 8, true),
                ("u16", 16, false),
                ("s32", 32, true),
                ("u64", 64, false),
            ] {
                let to_slot = if to_bits == 8 { 16 } else { to_bits };
                let wrapped = {
                    let low = source as u64 & (u64::MAX >> (64 - to_bits));
                    if to_signed {
                        ((low << (64 - to_bits)) as i64 >> (64 - to_bits)) as u64
                    } else {
                        low
                    }
                };
                let want = wrapped & (u64::MAX >> (64 - to_slot));
                assert_eq!(run(&format!("cvt.{to}.{name}"), value), want, "{value:x} {to} {name}");
                let (low, high) = if to_signed {
                    (-(1i128 << (to_bits - 1)), (1i128 << (to_bits - 1)) - 1)
                } else {
                    (0, (1i128 << to_bits) - 1)
                };
                let want = source.clamp(low, high) as u64 & (u64::MAX >> (64 - to_slot));
                assert_eq!(
                    run(&format!("cvt.sat.{to}.{name}"), value),
                    want,
                    "{value:x} sat {to} {name}"
                );
            }
        }
    }
}

/// NaN rules and flags of `cvt`, from the manual and its tables.
#[test]
fn conversion_rules() {
    for level in Level::available() {
        let run = |opcode: &str, a: u64| run(opcode, level, &[a])[0];
        assert_eq!(run("cvt.f32.f16", 0xfe00), 0x7fff_ffff);
        assert_eq!(run("cvt.f32.bf16", 0xffa1), 0xffa1_0000);
        assert_eq!(run("cvt.rn.f16.f32", 0xffc0_0000), 0x7fff);
        assert_eq!(run("cvt.rn.bf16.f32", 0xffc0_0000), 0x7fff);
        assert_eq!(run("cvt.f64.f32", 0xffa0_0001), 0xfffc_0000_2000_0000);
        assert_eq!(run("cvt.ftz.f64.f32", 0xffa0_0001), 0x7fff_ffff_e000_0000);
        assert_eq!(run("cvt.rn.f32.f64", 0xfff4_0000_2000_0000), 0xffe0_0001);
        assert_eq!(run("cvt.sat.f32.f32", 0x7fc0_0000), 0);
        assert_eq!(run("cvt.sat.f32.f32", 0x8000_0000), 0);
        assert_eq!(run("cvt.rn.sat.f16.f32", 0x4000_0000), 0x3c00);
        assert_eq!(run("cvt.rn.satfinite.f16.f32", 0x4980_0000), 0x7bff);
        assert_eq!(run("cvt.rn.relu.bf16.f32", 0xbf80_0000), 0);
        assert_eq!(run("cvt.rna.tf32.f32", 0x3f80_1000), 0x3f80_2000);
        assert_eq!(run("cvt.rn.tf32.f32", 0x3f80_1000), 0x3f80_0000);
        assert_eq!(run("cvt.rni.u16.f32", 0x477f_ff80), 0xffff);
        assert_eq!(run("cvt.rni.f32.f32", 0xbf00_0000), 0x8000_0000);
        assert_eq!(run("cvt.rmi.ftz.s32.f32", 0x8000_0001), 0);
        assert_eq!(run("cvt.rmi.s32.f32", 0x8000_0001), 0xffff_ffff);
        assert_eq!(run("cvt.ftz.f32.f32", 0x8000_0001), 0x8000_0000);
        assert_eq!(
            super::run("cvt.rn.f16x2.f32", level, &[0x3f80_0000, 0x4000_0000]),
            [0x3c00_4000]
        );
        assert_eq!(
            super::run("cvt.rn.bf16x2.f32", level, &[0x3f80_0000, 0x4000_0000]),
            [0x3f80_4000]
        );
        assert_eq!(
            super::run("cvt.pack.sat.u16.s32", level, &[70_000, 0xffff_fff0]),
            [0xffff_0000]
        );
        assert_eq!(
            super::run("cvt.pack.sat.s8.s32.b32", level, &[300, 0xffff_fff0, 0x1234_5678]),
            [0x5678_7ff0]
        );
    }
}

/// The manual's bounds of the approximations, against `f64` functions of the standard library.
#[test]
fn approximations() {
    let mut random = Random(0xabcd_0123_0000_000f);
    let f = |bits: u64| f64::from(f32::from_bits(bits as u32));
    for round in 0..20_000 {
        let level = if round % 2 == 0 {
            Level::Baseline
        } else {
            Level::detect()
        };
        let run = |opcode: &str, a: u64| f(run(opcode, level, &[a])[0]);
        let bits = operands::<Binary32>(&mut random);
        let x = f(bits);
        if !x.is_finite() {
            continue;
        }
        let relative = |got: f64, want: f64, bound: f64| {
            let normal = want.abs() >= f64::from(f32::MIN_POSITIVE) && want.abs() <= f64::from(f32::MAX);
            assert!(
                !normal || ((got - want) / want).abs() <= bound,
                "{x:e}: {got:e} {want:e}"
            );
        };
        let ulp = 2f64.powi(-23);
        if x != 0.0 {
            relative(run("rcp.approx.f32", bits), 1.0 / x, ulp);
        }
        if x > 0.0 {
            relative(run("sqrt.approx.f32", bits), x.sqrt(), ulp);
            relative(run("rsqrt.approx.f32", bits), 1.0 / x.sqrt(), 2f64.powf(-22.9));
            let lg2 = run("lg2.approx.f32", bits);
            let near = x > 0.5 && x < 2.0;
            let bound = 2f64.powi(-22) * if near { 1.0 } else { x.log2().abs() };
            assert!((lg2 - x.log2()).abs() <= bound, "lg2 {x:e}: {lg2:e}");
        }
        relative(run("ex2.approx.f32", bits), x.exp2(), 2.0 * ulp);
        relative(run("tanh.approx.f32", bits), x.tanh(), 2f64.powi(-11));
        let tau = std::f64::consts::TAU;
        if x.abs() <= tau {
            assert!(
                (run("sin.approx.f32", bits) - x.sin()).abs() <= 2f64.powf(-20.5),
                "sin {x:e}"
            );
            assert!(
                (run("cos.approx.f32", bits) - x.cos()).abs() <= 2f64.powf(-20.5),
                "cos {x:e}"
            );
        } else if x.abs() <= 50.0 * tau {
            assert!(
                (run("sin.approx.f32", bits) - x.sin()).abs() <= 2f64.powf(-14.7),
                "sin {x:e}"
            );
            assert!(
                (run("cos.approx.f32", bits) - x.cos()).abs() <= 2f64.powf(-14.7),
                "cos {x:e}"
            );
        }
    }
    // Special values, from the manual's tables.
    for level in Level::available() {
        let run = |opcode: &str, a: u64| run(opcode, level, &[a])[0];
        let (inf, ninf, nan) = (0x7f80_0000, 0xff80_0000, 0x7fff_ffff);
        for (opcode, cases) in [
            (
                "rcp.approx.f32",
                &[(0, inf), (0x8000_0000, ninf), (inf, 0), (ninf, 0x8000_0000), (nan, nan)][..],
            ),
            ("rcp.approx.ftz.f32", &[(1, inf), (0x8000_0001, ninf)]),
            (
                "sqrt.approx.f32",
                &[(0x8000_0000, 0x8000_0000), (inf, inf), (0xbf80_0000, nan), (ninf, nan)],
            ),
            (
                "rsqrt.approx.f32",
                &[(0, inf), (0x8000_0000, ninf), (inf, 0), (0xbf80_0000, nan)],
            ),
            ("sin.approx.f32", &[(0x8000_0000, 0x8000_0000), (inf, nan)]),
            ("cos.approx.f32", &[(0, 0x3f80_0000), (ninf, nan)]),
            (
                "lg2.approx.f32",
                &[(0, ninf), (0x8000_0000, ninf), (inf, inf), (0xbf80_0000, nan)],
            ),
            (
                "ex2.approx.f32",
                &[(ninf, 0), (0, 0x3f80_0000), (0x8000_0000, 0x3f80_0000), (inf, inf)],
            ),
            ("ex2.approx.ftz.f32", &[(1, 0x3f80_0000)]),
            (
                "tanh.approx.f32",
                &[
                    (inf, 0x3f80_0000),
                    (ninf, 0xbf80_0000),
                    (0x8000_0000, 0x8000_0000),
                    (5, 5),
                ],
            ),
        ] {
            for &(a, expected) in cases {
                assert_eq!(run(opcode, a), expected, "{opcode} {a:x}");
            }
        }
        assert_eq!(
            run("rcp.approx.ftz.f64", 0x4008_0000_dead_beef),
            (1f64 / 3.0).to_bits() >> 32 << 32
        );
        assert_eq!(run("rcp.approx.ftz.f64", 0x7ff8_0000_0000_0000), 0x7fff_ffff_0000_0000);
    }
}
