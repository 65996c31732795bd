//! The model against results measured on eight GPUs (`goldens/tensor-core` beside the repository, by F. Khattak and
//! M. Mikaitis), at every level, and against a second one in plain integers.

use std::path::PathBuf;

use super::*;

/// A set of rows: operands and result as `f32` patterns.
struct Set {
    gpu: String,
    input: String,
    half: bool,
    k: usize,
    rows: Vec<[Vec<u32>; 4]>,
}

fn sets() -> Vec<Set> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/goldens/tensor-core");
    let Ok(files) = std::fs::read_dir(&folder) else {
        eprintln!("{} is not there: nothing is compared", folder.display());
        return Vec::new();
    };
    let mut sets: Vec<Set> = Vec::new();
    for file in files.map(|file| file.unwrap().path()) {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let Some(gpu) = name.strip_suffix(".txt.gz") else {
            continue;
        };
        let bytes = std::fs::read(&file).unwrap();
        // RFC 1952: ten bytes, the file's name if bit 3 of the flags is set, and eight bytes behind the data.
        let name = if bytes[3] & 8 != 0 {
            bytes[10..].iter().position(|&byte| byte == 0).unwrap() + 1
        } else {
            0
        };
        let text = miniz_oxide::inflate::decompress_to_vec(&bytes[10 + name..bytes.len() - 8]).unwrap();
        for line in String::from_utf8(text).unwrap().lines() {
            if let Some(head) = line.strip_prefix("# set ") {
                let field = |name: &str| {
                    let found = head.split(' ').find_map(|field| field.strip_prefix(name));
                    found.unwrap().to_string()
                };
                sets.push(Set {
                    gpu: gpu.to_string(),
                    input: field("in="),
                    half: field("out=") == "fp16",
                    k: field("k=").parse().unwrap(),
                    rows: Vec::new(),
                });
            } else if !line.starts_with('#') {
                let words = |part: &str| {
                    let words = part.split_whitespace();
                    words.map(|word| u32::from_str_radix(word, 16).unwrap()).collect()
                };
                let parts: Vec<Vec<u32>> = line.split(';').map(words).collect();
                sets.last_mut().unwrap().rows.push(parts.try_into().unwrap());
            }
        }
    }
    sets
}

/// The codes of an element by the `f32` patterns of their values.
fn codes(element: Element) -> impl Fn(u32) -> u32 {
    let mut codes = std::collections::HashMap::new();
    if element.bits() < 32 && element != Element::Bf16 {
        let mut values = Vec::new();
        let all: Vec<u32> = (0..1 << element.bits()).collect();
        decode::numbers(Level::Baseline, element, &all, &mut values);
        // A later code, such as a NaN's, is no number's.
        for &code in all.iter().rev() {
            codes.insert(values[code as usize].to_bits(), code);
        }
    }
    move |value| match element {
        Element::Tf32 => value,
        Element::Bf16 => value >> 16,
        _ => codes[&value],
    }
}

#[test]
fn rows_measured_on_gpus() {
    for set in sets() {
        let architecture = match set.gpu.as_str() {
            "V100" => Architecture::Volta,
            "A100" | "A2" => Architecture::Ampere,
            "Ada" | "L40S" => Architecture::Ada,
            "H100" | "H200" => Architecture::Hopper,
            "B200" => Architecture::BlackwellDatacenter,
            other => panic!("{other}"),
        };
        let element = match set.input.as_str() {
            "fp16" => Element::F16,
            "bf16" => Element::Bf16,
            "tf32" => Element::Tf32,
            "E4M3" => Element::E4m3,
            "E5M2" => Element::E5m2,
            other => panic!("{other}"),
        };
        let unit = if architecture == Architecture::Hopper && set.k == 32 && !set.half {
            Unit::Wgmma
        } else {
            Unit::Mma
        };
        let code = codes(element);
        let accumulator = if set.half { Accumulator::F16 } else { Accumulator::F32 };
        let product = Product::new([element; 2], [accumulator; 2], (1, 4, set.k));
        let mut scratch = Scratch::default();
        for (at, [a, b, c, d]) in set.rows.iter().enumerate() {
            let mut codes = vec![0; set.k * LANES];
            let mut others = vec![0; set.k * 4];
            for k in 0..set.k {
                codes[k * LANES] = code(a[k]);
                others[k * 4] = code(b[k]);
            }
            let mut start = vec![0; 4 * LANES];
            // These were measured without C, whatever the row says.
            let c = if unit == Unit::Wgmma { 0.0 } else { f32::from_bits(c[0]) };
            start[0] = convert::write(accumulator, c);
            for level in Level::available() {
                let mut result = start.clone();
                let tiles = Tiles {
                    a: &codes,
                    b: &others,
                    packed: false,
                    kept: &[],
                    scale_a: &[],
                    scale_b: &[],
                    d: &mut result,
                };
                multiply_at(level, &product, architecture, unit, tiles, &mut scratch);
                let got = convert::read(accumulator, result[0]).to_bits();
                assert_eq!(
                    got, d[0],
                    "{} {} half={} row {at} {level:?}: {got:x} {:x}",
                    set.gpu, set.input, set.half, d[0]
                );
            }
        }
    }
}

/// Numbers without a pattern.
fn random(seed: u64) -> impl FnMut() -> u32 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    }
}

/// A code of 16 bits of a number with an exponent near zero, or near the middle of what is given; now and then any.
fn some_code(element: Element, spread: u32, next: &mut impl FnMut() -> u32) -> u32 {
    let (fraction, bias) = if element == Element::F16 { (10, 15) } else { (7, 127) };
    let bits = next();
    match bits >> 24 {
        0..4 => 0,
        4 => bits & 0xffff,
        _ => {
            let exponent = (bias + next() % (2 * spread + 1)).saturating_sub(spread);
            bits & 0x8000 | exponent << fraction | bits & ((1 << fraction) - 1)
        }
    }
}

/// Vectors, by whichever way, against one element after the other in plain integers.
#[test]
fn vectors_sum_as_single_elements_do() {
    let mut next = random(1);
    let mut scratch = Scratch::default();
    for round in 0..600 {
        let element = [Element::F16, Element::Bf16][round % 2];
        let (c, d) = [
            (Accumulator::F32, Accumulator::F32),
            (Accumulator::F16, Accumulator::F16),
            (Accumulator::F32, Accumulator::F32),
            (Accumulator::F16, Accumulator::F32),
        ][round / 2 % 4];
        let (m, n, k) = [(16, 8, 16), (16, 8, 8), (32, 8, 16), (8, 32, 32)][round / 8 % 4];
        let architecture = [
            Architecture::Volta,
            Architecture::Ampere,
            Architecture::Hopper,
            Architecture::Blackwell,
        ][round / 3 % 4];
        // Exponents that are alike, apart, and so far apart that `f32` holds no products.
        let spread = [2, 12, if element == Element::F16 { 14 } else { 100 }][round % 3];
        // Without what is infinite or NaN, most of the time.
        let finite = round % 5 != 0;
        let product = Product::new([element; 2], [c, d], (m, n, k));
        let largest = if element == Element::F16 { 0x7c00 } else { 0x7f80 };
        // All as large as their exponent allows, so that sums are the largest there are.
        let full = round % 7 == 3;
        let mut codes = |count: usize| -> Vec<u32> {
            let each = (0..count).map(|_| some_code(element, spread, &mut next));
            each.map(|code| match code {
                _ if full => 0x3fff,
                code if finite && code & largest == largest => code & !(1 << 14),
                code => code,
            })
            .collect()
        };
        let (a, b) = (codes(k * stride(m)), codes(k * n));
        let start: Vec<u32> = (0..n * stride(m))
            .map(|_| match (c, next() % 16) {
                (Accumulator::F32, _) if full => 0x3fff_ffff,
                (_, 0) => 0,
                (Accumulator::F16, _) => some_code(Element::F16, 8, &mut next),
                (_, 1) if !finite => next(),
                _ => some_code(Element::Bf16, 2 * spread.min(60), &mut next) << 16 | next() & 0xffff,
            })
            .collect();
        let of = |codes: &[u32], run: usize| -> Vec<u32> {
            let pairs = codes.chunks_exact(2 * run);
            pairs
                .flat_map(|pair| (0..run).map(|at| pair[at] | pair[run + at] << 16))
                .collect()
        };
        let packed = (of(&a, stride(m)), of(&b, n));
        let tiles = [(&a, &b), (&packed.0, &packed.1)];
        let tiles = |is_packed: bool| Tiles {
            a: tiles[usize::from(is_packed)].0,
            b: tiles[usize::from(is_packed)].1,
            packed: is_packed,
            kept: &[],
            scale_a: &[],
            scale_b: &[],
            d: &mut [],
        };
        let Rule::Truncated(rule) = Rule::of(&product, architecture, Unit::Mma) else {
            panic!("{product:?}")
        };
        let mut expected = start.clone();
        let whole = Tiles {
            d: &mut expected,
            ..tiles(false)
        };
        single::mend(&product, &rule, whole, &start, true);
        for level in Level::available() {
            for is_packed in [false, true] {
                let mut result = start.clone();
                let whole = Tiles {
                    d: &mut result,
                    ..tiles(is_packed)
                };
                multiply_at(level, &product, architecture, Unit::Mma, whole, &mut scratch);
                for column in 0..n {
                    for row in 0..m {
                        let at = column * stride(m) + row;
                        assert_eq!(
                            result[at], expected[at],
                            "round {round}, {product:?} {architecture:?} {level:?} packed {is_packed}: row {row}, column {column}"
                        );
                    }
                }
            }
        }
    }
}

/// Bytes in words, against plain sums.
#[test]
fn bytes_in_words_are_summed_exactly() {
    let mut next = random(2);
    let mut scratch = Scratch::default();
    for round in 0..64 {
        let elements = [Element::S8, Element::U8];
        let (of_a, of_b) = (elements[round % 2], elements[round / 2 % 2]);
        let (m, n, k) = [(16, 8, 32), (8, 8, 16), (32, 8, 16), (16, 16, 16)][round / 4 % 4];
        let saturate = round / 16 % 2 == 0;
        let product = Product {
            saturate,
            ..Product::new([of_a, of_b], [Accumulator::S32; 2], (m, n, k))
        };
        let a: Vec<u32> = (0..k / 4 * stride(m)).map(|_| next()).collect();
        let b: Vec<u32> = (0..k / 4 * n).map(|_| next()).collect();
        // Some are so large that sums do not fit.
        let start: Vec<u32> = (0..n * stride(m))
            .map(|_| match next() % 4 {
                0 => i32::MAX as u32 - next() % 1000,
                1 => i32::MIN as u32 + next() % 1000,
                _ => next(),
            })
            .collect();
        let number = |element, word: u32, part: usize| match element {
            Element::S8 => i64::from((word >> (8 * part)) as i8),
            _ => i64::from((word >> (8 * part)) as u8),
        };
        for level in Level::available() {
            let mut result = start.clone();
            let tiles = Tiles {
                a: &a,
                b: &b,
                packed: true,
                kept: &[],
                scale_a: &[],
                scale_b: &[],
                d: &mut result,
            };
            multiply_at(level, &product, Architecture::Ampere, Unit::Mma, tiles, &mut scratch);
            for column in 0..n {
                for row in 0..m {
                    let at = column * stride(m) + row;
                    let products = (0..k).map(|k| {
                        let (word, part) = (k / 4, k % 4);
                        number(of_a, a[word * stride(m) + row], part) * number(of_b, b[word * n + column], part)
                    });
                    let sum = i64::from(start[at] as i32) + products.sum::<i64>();
                    let expected = match saturate {
                        true => sum.clamp(i32::MIN.into(), i32::MAX.into()) as i32,
                        false => sum as i32,
                    };
                    assert_eq!(
                        result[at] as i32, expected,
                        "{product:?} {level:?}: row {row}, column {column}"
                    );
                }
            }
        }
    }
}

/// The manual does not say which of several NaNs a product of `f64` gives: that of the chain of `fma` which it is (X. Li et al.,
/// "MMA-Sim"), whatever way is taken there.
#[test]
fn doubles_are_a_chain_of_fma_also_where_it_ends_in_nan() {
    use crate::isa::Rounding;
    use crate::isa::float;
    use crate::isa::simd::{Baseline, Level};

    let nan = |payload: u64| f64::from_bits(0x7ff8_0000_0000_0000 | payload);
    let values = [
        1.5,
        nan(1),
        -0.1,
        f64::INFINITY,
        3e300,
        nan(2),
        0.0,
        -7e-310,
        nan(3),
        0.3,
        -1e308,
    ];
    for (m, n, k) in [(8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)] {
        for (every, rounding) in [
            (1, Rounding::Rn),
            (2, Rounding::Rn),
            (17, Rounding::Rn),
            (5, Rounding::Rz),
        ] {
            // NaNs and infinities in one of `every` elements.
            let element = |at: usize| match values[at * 7 % values.len()] {
                value if at.is_multiple_of(every) || value.is_finite() => value,
                _ => at as f64 / 3.0,
            };
            let a: Vec<f64> = (0..m * k).map(element).collect();
            let b: Vec<f64> = (0..n * k).map(|at| element(at + 3)).collect();
            let c: Vec<f64> = (0..m * n).map(|at| element(at + 5)).collect();
            let one = |at: usize| {
                let (row, column) = (at % m, at / m);
                (0..k).fold(c[at], |sum, depth| match rounding {
                    Rounding::Rn => float::fma_f64::<Baseline>(a[depth * m + row], b[column * k + depth], sum),
                    rounding => float::fma_f64_rnd(a[depth * m + row], b[column * k + depth], sum, rounding.code()),
                })
            };
            let expected: Vec<u64> = (0..m * n).map(|at| one(at).to_bits()).collect();
            for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
                let mut d = c.clone();
                multiply_f64(level, (m, n, k), rounding, &a, &b, &mut d);
                let found: Vec<u64> = d.iter().map(|value| value.to_bits()).collect();
                assert_eq!(found, expected, "{m} x {n} x {k}, {rounding:?}, {level:?}");
            }
        }
    }
}
