//! Integer, logic and comparison instructions against wide arithmetic and the manual's descriptions, bit by bit.

use super::super::{compare::*, int, logic};
use super::levels::Random;
use super::*;

fn pairs(n: usize) -> impl Iterator<Item = (u64, u64, u64, u64)> {
    let mut random = Random(0x5eed_5eed_1234_0001);
    (0..n).map(move |_| (random.value(), random.value(), random.value(), random.next()))
}

#[test]
fn arithmetic() {
    macro_rules! check {
        ($($ty:ident $wide:ident $unsigned:ident)*) => {$(
            for (a, b, c, d) in pairs(20_000) {
                let (a, b, c, carry) = (a as $ty, b as $ty, c as $ty, d & 1 != 0);
                let (x, y, z) = (a as $wide, b as $wide, c as $wide);
                let bits = $ty::BITS;
                let unsigned = |v: $ty| v as $unsigned as u128;
                assert_eq!(int::add(a, b), (x.wrapping_add(y)) as $ty);
                assert_eq!(int::mul_lo(a, b), (x.wrapping_mul(y)) as $ty);
                assert_eq!(int::mul_hi(a, b), (x.wrapping_mul(y) >> bits) as $ty);
                assert_eq!(int::mad_hi(a, b, c), ((x.wrapping_mul(y) >> bits) as $ty as $wide).wrapping_add(z) as $ty);
                let sum = unsigned(a) + unsigned(b) + u128::from(carry);
                assert_eq!(int::addc_cc(a, b, carry), (sum as $ty, sum >> bits != 0));
                assert_eq!(int::addc(a, b, carry), sum as $ty);
                let plain = unsigned(a) + unsigned(b);
                assert_eq!(int::add_cc(a, b), (plain as $ty, plain >> bits != 0));
                // The flag is "no borrow".
                assert_eq!(int::sub_cc(a, b), (a.wrapping_sub(b), unsigned(a) >= unsigned(b)));
                let borrow = u128::from(!carry);
                let expected = (a.wrapping_sub(b).wrapping_sub(borrow as $ty), unsigned(a) >= unsigned(b) + borrow);
                assert_eq!(int::subc_cc(a, b, carry), expected);
                let low = (x.wrapping_mul(y) as $ty) as $unsigned as u128;
                let mad = low + unsigned(c);
                assert_eq!(int::mad_lo_cc(a, b, c), (mad as $ty, mad >> bits != 0));
                assert_eq!(int::sad(a, b, c), c.wrapping_add((x - y).unsigned_abs() as $ty));
                let (q, r) = if b == 0 { (!0, !0) } else { (a.wrapping_div(b), a.wrapping_rem(b)) };
                assert_eq!((int::div(a, b), int::rem(a, b)), (q, r), "{a} / {b}");
                assert_eq!(int::min(a, b), a.min(b));
                assert_eq!(int::max(a, b), a.max(b));
                assert_eq!(int::neg(a), (0 as $ty).wrapping_sub(a));
            }
        )*};
    }
    check! { u16 i128 u16 i16 i128 u16 u32 i128 u32 i32 i128 u32 u64 i128 u64 i64 i128 u64 }
    for (a, b, c, _) in pairs(20_000) {
        let (a, b, c) = (a as i32, b as i32, c as i32);
        let clamp = |v: i64| v.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        let (x, y, z) = (i64::from(a), i64::from(b), i64::from(c));
        assert_eq!(int::add_sat(a, b), clamp(x + y));
        assert_eq!(int::sub_sat(a, b), clamp(x - y));
        assert_eq!(int::mad_hi_sat(a, b, c), clamp(((x * y) >> 32) + z));
        assert_eq!(int::mul_wide(a, b), x * y);
        let low24 = |v: i32| i64::from(v) << 40 >> 40;
        assert_eq!(int::mul24_lo_s32(a, b), (low24(a) * low24(b)) as i32);
        assert_eq!(int::mul24_hi_s32(a, b), ((low24(a) * low24(b)) >> 16) as i32);
        let unsigned24 = |v: i32| u64::from(v as u32 & 0xff_ffff);
        assert_eq!(
            int::mul24_hi_u32(a as u32, b as u32),
            ((unsigned24(a) * unsigned24(b)) >> 16) as u32
        );
    }
}

/// Bit `i` of a number of `bits` bits.
fn bit(a: u64, i: u32) -> bool {
    i < 64 && a >> i & 1 != 0
}

#[test]
fn bit_fields() {
    for (a, b, c, d) in pairs(20_000) {
        for bits in [32, 64] {
            let ones = u64::MAX >> (64 - bits);
            let (a, b) = (a & ones, b & ones);
            // Positions and lengths mostly within reach.
            let (pos, len) = if d & 3 == 0 {
                (c as u32, d as u32)
            } else {
                (c as u32 % 80, d as u32 % 80)
            };
            let (p, l) = if bits == 32 {
                (pos & 0xff, len & 0xff)
            } else {
                (pos, len)
            };
            let (p, l) = (u64::from(p), u64::from(l));
            let field = |fill: bool| {
                (0..bits).fold(0u64, |r, i| {
                    let inside = u64::from(i) < l && p + u64::from(i) < u64::from(bits);
                    let set = if inside { bit(a, p as u32 + i) } else { fill };
                    r | u64::from(set) << i
                })
            };
            let sign = l != 0 && bit(a, (p + l - 1).min(u64::from(bits) - 1) as u32);
            let insert = (0..bits).fold(0u64, |r, i| {
                let inside = u64::from(i) >= p && u64::from(i) < p + l;
                let set = if inside { bit(a, i - p as u32) } else { bit(b, i) };
                r | u64::from(set) << i
            });
            if bits == 32 {
                let (a, b) = (a as u32, b as u32);
                assert_eq!(int::bfe_u32(a, pos, len), field(false) as u32, "{a:x} {pos} {len}");
                assert_eq!(
                    int::bfe_s32(a as i32, pos, len) as u32,
                    field(sign) as u32,
                    "{a:x} {pos} {len}"
                );
                assert_eq!(int::bfi_b32(a, b, pos, len), insert as u32);
                assert_eq!(int::popc_b32(a), (0..32).filter(|&i| bit(a.into(), i)).count() as u32);
                assert_eq!(
                    int::clz_b32(a),
                    (0..32).rev().take_while(|&i| !bit(a.into(), i)).count() as u32
                );
                let top = (0..32).rev().find(|&i| bit(a.into(), i));
                assert_eq!(int::bfind_u32::<false>(a), top.unwrap_or(!0));
                assert_eq!(int::bfind_u32::<true>(a), top.map_or(!0, |i| 31 - i));
                let top = (0..31).rev().find(|&i| bit(a.into(), i) != bit(a.into(), 31));
                assert_eq!(int::bfind_s32::<false>(a as i32), top.unwrap_or(!0));
            } else {
                assert_eq!(int::bfe_u64(a, pos, len), field(false), "{a:x} {pos} {len}");
                assert_eq!(
                    int::bfe_s64(a as i64, pos, len) as u64,
                    field(sign),
                    "{a:x} {pos} {len}"
                );
                assert_eq!(int::bfi_b64(a, b, pos, len), insert);
                let top = (0..63).rev().find(|&i| bit(a, i) != bit(a, 63));
                assert_eq!(int::bfind_s64::<false>(a as i64), top.unwrap_or(!0));
            }
        }
        let (start, width) = (c as u32 % 70, d as u32 % 70);
        let mask = |start: u32, width: u32| {
            (0..32)
                .filter(|&i| i >= start && i < start + width)
                .fold(0u32, |r, i| r | 1 << i)
        };
        assert_eq!(int::bmsk::<false>(start, width), mask(start, width));
        assert_eq!(int::bmsk::<true>(start, width), mask(start & 31, width & 31));
        let low = |n: u32| {
            if n == 0 {
                0
            } else {
                (u64::from(a as u32) & (u64::MAX >> (64 - n.min(32)))) as u32
            }
        };
        assert_eq!(int::szext_u32::<false>(a as u32, width), low(width.min(32)));
        assert_eq!(int::szext_u32::<true>(a as u32, width), low(width & 31));
        let n = width.min(32);
        let sign = if n != 0 && bit(a, n - 1) {
            (u64::MAX << n) as u32
        } else {
            0
        };
        assert_eq!(int::szext_s32::<false>(a as i32, width) as u32, low(n) | sign);
    }
}

#[test]
fn find_nth_set() {
    // The manual's pseudo-code (fns).
    let reference = |mask: u32, base: u32, offset: i32| -> u32 {
        if offset == 0 {
            return if mask >> base & 1 != 0 { base } else { !0 };
        }
        let (mut pos, mut count, inc) = (base as i64, offset.unsigned_abs() - 1, if offset > 0 { 1 } else { -1 });
        while (0..32).contains(&pos) {
            if mask >> pos & 1 != 0 {
                if count == 0 {
                    return pos as u32;
                }
                count -= 1;
            }
            pos += inc;
        }
        !0
    };
    for (mask, base, offset, _) in pairs(20_000) {
        let (mask, base, offset) = (mask as u32, base as u32 & 31, (offset % 40) as i32 - 20);
        assert_eq!(
            int::fns(mask, base, offset),
            reference(mask, base, offset),
            "{mask:x} {base} {offset}"
        );
    }
}

#[test]
fn dot_products() {
    for (a, b, c, _) in pairs(10_000) {
        let (a, b, c) = (a as u32, b as u32, c as u32);
        let s8 = |v: u32, i: usize| i64::from(v.to_le_bytes()[i] as i8);
        let u8 = |v: u32, i: usize| i64::from(v.to_le_bytes()[i]);
        let s16 = |v: u32, i: usize| i64::from((v >> (16 * i)) as i16);
        let sum = |f: &dyn Fn(usize) -> i64, n: usize| (i64::from(c) + (0..n).map(f).sum::<i64>()) as u32;
        assert_eq!(int::dp4a::<true, true>(a, b, c), sum(&|i| s8(a, i) * s8(b, i), 4));
        assert_eq!(int::dp4a::<false, true>(a, b, c), sum(&|i| u8(a, i) * s8(b, i), 4));
        assert_eq!(int::dp4a::<false, false>(a, b, c), sum(&|i| u8(a, i) * u8(b, i), 4));
        assert_eq!(
            int::dp2a::<true, false, false>(a, b, c),
            sum(&|i| s16(a, i) * u8(b, i), 2)
        );
        assert_eq!(
            int::dp2a::<true, true, true>(a, b, c),
            sum(&|i| s16(a, i) * s8(b, i + 2), 2)
        );
    }
}

#[test]
fn logic_and_shifts() {
    for (a, b, c, d) in pairs(20_000) {
        let (x, y, z) = (a as u32, b as u32, c as u32);
        let table = d & 0xff;
        let expected = (0..32).fold(0, |r, i| {
            let at = (x >> i & 1) << 2 | (y >> i & 1) << 1 | z >> i & 1;
            r | ((table >> at & 1) as u32) << i
        });
        assert_eq!(logic::lop3(x, y, z, table), expected);
        let by = if d & 0x100 != 0 { c as u32 } else { c as u32 % 80 };
        assert_eq!(logic::shl(x, by), if by > 31 { 0 } else { x << by });
        assert_eq!(logic::shr_u(x, by), if by > 31 { 0 } else { x >> by });
        assert_eq!(logic::shr_s(x, by), (x as i32 >> by.min(31)) as u32);
        assert_eq!(logic::shl(a, by), if by > 63 { 0 } else { a << by });
        assert_eq!(logic::shr_s(a, by), (a as i64 >> by.min(63)) as u64);
        assert_eq!(logic::shl(a as u16, by), if by > 15 { 0 } else { (a as u16) << by });
        assert_eq!(logic::shr_s(a as u16, by), (a as i16 >> by.min(15)) as u16);
        let both = u64::from(y) << 32 | u64::from(x);
        for (n, l, r) in [
            (
                by.min(32),
                logic::shf_l::<false>(x, y, by),
                logic::shf_r::<false>(x, y, by),
            ),
            (by & 31, logic::shf_l::<true>(x, y, by), logic::shf_r::<true>(x, y, by)),
        ] {
            assert_eq!(l, (u128::from(both) << n >> 32) as u32);
            assert_eq!(r, (both >> n) as u32);
        }
        let bytes = both.to_le_bytes();
        let pick = |i: u32| {
            let select = z >> (4 * i) & 15;
            let byte = bytes[(select & 7) as usize];
            if select & 8 == 0 { byte } else { (byte as i8 >> 7) as u8 }
        };
        assert_eq!(
            logic::prmt(x, y, z),
            u32::from_le_bytes([pick(0), pick(1), pick(2), pick(3)])
        );
    }
}

/// The modes of `prmt` by the manual's table: byte `i` of the result for `s = c & 3`.
#[test]
fn prmt_modes() {
    let (a, b) = (0x0302_0100u64, 0x0706_0504u64);
    for s in 0..4i32 {
        let cases: [(&str, [i32; 4]); 6] = [
            ("f4e", [s, s + 1, s + 2, s + 3]),
            ("b4e", [s, (s + 7) % 8, (s + 6) % 8, (s + 5) % 8]),
            ("rc8", [s; 4]),
            ("ecl", [s.max(0), s.max(1), s.max(2), s.max(3)]),
            ("ecr", [s.min(0), s.min(1), s.min(2), s.min(3)]),
            ("rc16", [(s & 1) * 2, (s & 1) * 2 + 1, (s & 1) * 2, (s & 1) * 2 + 1]),
        ];
        for (mode, bytes) in cases {
            let expected = bytes.iter().rev().fold(0, |r, &b| r << 8 | b as u64);
            let got = run(&format!("prmt.b32.{mode}"), Level::Baseline, &[a, b, s as u64 | 0xff00]);
            assert_eq!(got, [expected], "{mode} {s}");
        }
    }
}

#[test]
fn comparisons() {
    fn all<O: Order>(a: O::V, b: O::V) -> [bool; 14] {
        [
            compare::<O, 0>(a, b),
            compare::<O, 1>(a, b),
            compare::<O, 2>(a, b),
            compare::<O, 3>(a, b),
            compare::<O, 4>(a, b),
            compare::<O, 5>(a, b),
            compare::<O, 6>(a, b),
            compare::<O, 7>(a, b),
            compare::<O, 8>(a, b),
            compare::<O, 9>(a, b),
            compare::<O, 10>(a, b),
            compare::<O, 11>(a, b),
            compare::<O, 12>(a, b),
            compare::<O, 13>(a, b),
        ]
    }
    fn expected(order: Option<std::cmp::Ordering>) -> [bool; 14] {
        use std::cmp::Ordering::*;
        match order {
            None => [
                false, false, false, false, false, false, true, true, true, true, true, true, false, true,
            ],
            Some(order) => {
                let six = [
                    order == Equal,
                    order != Equal,
                    order == Less,
                    order != Greater,
                    order == Greater,
                    order != Less,
                ];
                [
                    six[0], six[1], six[2], six[3], six[4], six[5], six[0], six[1], six[2], six[3], six[4], six[5],
                    true, false,
                ]
            }
        }
    }
    let half = |x: u64| ::half::f16::from_bits(x as u16).to_f64();
    let bf = |x: u64| ::half::bf16::from_bits(x as u16).to_f64();
    let ftz = |x: f64, least: f64| if x.abs() < least { 0.0 * x } else { x };
    for (a, b, c, _) in pairs(50_000) {
        let b = if c % 8 == 0 { a } else { b };
        let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        assert_eq!(all::<F32>(x, y), expected(x.partial_cmp(&y)));
        let least = f64::from(f32::MIN_POSITIVE);
        assert_eq!(
            all::<F32Ftz>(x, y),
            expected(ftz(x.into(), least).partial_cmp(&ftz(y.into(), least)))
        );
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        assert_eq!(all::<F64>(x, y), expected(x.partial_cmp(&y)));
        assert_eq!(all::<F16>(a as u16, b as u16), expected(half(a).partial_cmp(&half(b))));
        assert_eq!(all::<Bf16>(a as u16, b as u16), expected(bf(a).partial_cmp(&bf(b))));
        let least = 2f64.powi(-14);
        let (x, y) = (ftz(half(a), least), ftz(half(b), least));
        assert_eq!(all::<F16Ftz>(a as u16, b as u16), expected(x.partial_cmp(&y)));
        assert_eq!(
            all::<F16High>(a as u32, b as u32),
            expected(half(a >> 16).partial_cmp(&half(b >> 16)))
        );
        assert_eq!(
            all::<Bf16High>(a as u32, b as u32),
            expected(bf(a >> 16).partial_cmp(&bf(b >> 16)))
        );
        assert_eq!(
            all::<S64>(a as i64, b as i64)[..6],
            expected(Some((a as i64).cmp(&(b as i64))))[..6]
        );
        assert_eq!(
            all::<U16>(a as u16, b as u16)[..6],
            expected(Some((a as u16).cmp(&(b as u16))))[..6]
        );
    }
    // Second destinations, Boolean operators, numbers as results.
    for level in Level::available() {
        assert_eq!(run("setp.eq.and.s32", level, &[1, 1, 1]), [1]);
        assert_eq!(run("setp.ne.or.u64", level, &[1, 1, 1]), [1]);
        assert_eq!(run("setp.eq.xor.f32", level, &[0, 0x8000_0000, 1]), [0]);
        assert_eq!(run("set.gt.u32.f32", level, &[0x4000_0000, 0x3f80_0000]), [0xffff_ffff]);
        assert_eq!(run("set.gt.f32.s32", level, &[2, 1]), [0x3f80_0000]);
        assert_eq!(run("set.lt.f32.s32", level, &[2, 1]), [0]);
        assert_eq!(
            run("set.eq.f16x2.f16x2", level, &[0x3c00_0000, 0x3c00_0001]),
            [0x3c00_0000]
        );
        assert_eq!(
            run("set.eq.u32.f16x2", level, &[0x3c00_0000, 0x3c00_0001]),
            [0xffff_0000]
        );
        assert_eq!(run("setp.eq.f16x2", level, &[0x3c00_0000, 0x3c00_0001]), [0, 1]);
        assert_eq!(run("slct.u32.f32", level, &[1, 2, 0x8000_0000]), [1]);
        assert_eq!(run("slct.u32.f32", level, &[1, 2, 0x7fc0_0000]), [2]);
        assert_eq!(run("slct.ftz.u32.f32", level, &[1, 2, 0x8000_0001]), [1]);
        assert_eq!(run("slct.u32.f32", level, &[1, 2, 0x8000_0001]), [2]);
    }
}
