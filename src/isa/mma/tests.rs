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
        let mut operand = Operand::default();
        let all: Vec<u32> = (0..1 << element.bits()).collect();
        operand.decode(Level::Baseline, element, false, &all);
        // A later code, such as a NaN's, is no number's.
        for &code in all.iter().rev() {
            codes.insert(operand.values[code as usize].to_bits(), code);
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
                others[k] = code(b[k]);
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
