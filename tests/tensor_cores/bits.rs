//! The bits of sums, through kernels: results that were measured on GPUs, row by row, and the model of them in plain integers.
//!
//! The rows of a set are the elements on the diagonal of products; beside the diagonal the same operands meet others, and
//! the model says what comes out. The sets of H100 and H200 with eight-bit elements and an `f32` result were measured with
//! `wgmma`, the others with `mma.sync`: of `f16`, `bf16` and `tf32` both sum alike, in one block of 16 or 8 products (X. Li et
//! al.), and so does `tcgen05`. Where they do not, the rows give the operands, and the model alone the results.

use crate::measured::{Set, code, pattern, sets};
use crate::multiply::{Product, Scale};
use crate::numbers::{Random, Sum, Type};
use crate::products::{Rule, dot, half};
use crate::sums::{Multiplier, Operands};
use crate::warpgroup::ty;

/// How many elements were compared with what was measured, and with the model; what went wrong.
#[derive(Default)]
pub struct Count {
    pub measured: usize,
    pub modelled: usize,
    pub failures: Vec<String>,
}

/// A product and the unit that computes it.
struct Case {
    product: Product,
    /// Of `tcgen05.mma` what the opcode says behind the group; of `wgmma` nothing.
    kind: Option<&'static str>,
}

impl Case {
    fn of(kind: Option<&'static str>, (a, b): (Type, Type), sum: Sum) -> Case {
        let nibbles = kind.is_some_and(|kind| kind.contains("mxf4"));
        let lines = if kind.is_none() { 64 } else { 128 };
        let k = match a {
            Type::F16 | Type::Bf16 => 16,
            Type::Tf32 => 8,
            _ if nibbles => 64,
            _ => 32,
        };
        let scale = kind.filter(|kind| kind.contains("block_scale")).map(|kind| Scale {
            factors: match (nibbles, kind.contains("block16")) {
                (false, _) => 1,
                (true, false) => 2,
                (true, true) => 4,
            },
            ue4m3: false,
            ids: [0; 2],
        });
        let product = Product {
            a,
            b,
            sum,
            m: lines,
            n: lines,
            k,
            sparse: false,
            nibbles,
            scale,
        };
        Case { product, kind }
    }

    fn name(&self) -> String {
        let Product { a, b, sum, .. } = &self.product;
        let unit = self.kind.unwrap_or("wgmma");
        format!("{unit} {} · {} → {sum:?}", a.name(), b.name())
    }

    fn rule(&self) -> Rule {
        let Product { a, b, sum, k, .. } = self.product;
        let scale = self.product.scale.as_ref();
        let d = if sum == Sum::F16 { "f16" } else { "f32" };
        Rule {
            // tcgen05 sums as sm_120 does in mma.sync (X. Li et al.).
            architecture: if self.kind.is_none() { 90 } else { 120 },
            a: a.name(),
            b: b.name(),
            c: d,
            d,
            k,
            sparse: false,
            saturate: false,
            xor: false,
            rounding: "rn",
            kind: match (self.product.nibbles, a.bits()) {
                (true, _) => "mxf4",
                (false, 8) => "f8f6f4",
                (false, _) => "",
            },
            factors: scale.map_or(0, |scale| scale.factors),
            factor_type: match scale {
                Some(Scale { ue4m3: true, .. }) => "ue4m3",
                _ => "ue8m0",
            },
            quad_pair: false,
            wmma: false,
            warpgroup: self.kind.is_none(),
        }
    }

    fn multiplier(&self, elsewhere: bool) -> Result<Multiplier, String> {
        let random = &mut Random::of(&self.name());
        match self.kind {
            None => Multiplier::wgmma(self.product.clone(), elsewhere, random),
            Some(kind) => Multiplier::tcgen05(self.product.clone(), kind, elsewhere, random),
        }
    }

    /// Compares elements with the model.
    fn compare(
        &self,
        operands: &Operands,
        found: &[u32],
        add: bool,
        wanted: impl Fn(usize, usize) -> bool,
    ) -> Result<usize, String> {
        let (rule, n) = (self.rule(), self.product.n);
        let wide = |codes: &[u32]| -> Vec<u64> { codes.iter().map(|&code| code.into()).collect() };
        let columns: Vec<Vec<u64>> = operands.b.iter().map(|codes| wide(codes)).collect();
        let kept: Vec<usize> = (0..self.product.k).collect();
        let factors = |side: usize, line: usize| operands.factors[side].get(line).map_or(&[][..], |of| of);
        let mut compared = 0;
        for (row, codes) in operands.a.iter().enumerate() {
            let a = wide(codes);
            for (column, b) in columns.iter().enumerate().filter(|(column, _)| wanted(row, *column)) {
                let at = row * n + column;
                let c = if add { operands.c[at].into() } else { 0 };
                let expected = dot(&rule, &a, b, &kept, [factors(0, row), factors(1, column)], c);
                if u64::from(found[at]) != expected {
                    let found = found[at];
                    return Err(format!(
                        "row {row}, column {column} is {found:#x}, expected {expected:#x}"
                    ));
                }
                compared += 1;
            }
        }
        Ok(compared)
    }
}

/// Sets measured on GPUs.
pub fn measured() -> Count {
    let mut count = Count::default();
    for device in ["H100", "H200", "B200"] {
        let Some(sets) = sets(device) else {
            println!("  no results measured on {device} are at hand: nothing is compared");
            continue;
        };
        for set in &sets {
            if let Err(why) = one(set, device == "B200", &mut count) {
                count.failures.push(format!("{}: {why}", set.name));
            }
        }
    }
    count
}

fn one(set: &Set, tensor: bool, count: &mut Count) -> Result<(), String> {
    let element = ty(set.input).expect("a type");
    let kind = match element {
        _ if !tensor => None,
        Type::F16 | Type::Bf16 => Some("kind::f16"),
        Type::Tf32 => Some("kind::tf32"),
        _ => Some("kind::f8f6f4"),
    };
    let case = Case::of(kind, (element, element), if set.half { Sum::F16 } else { Sum::F32 });
    let narrow = element.bits() == 8;
    // Eight-bit elements were measured with wgmma, without C, or with mma.sync, which has a way of its own.
    let has_result = !narrow || !tensor && !set.half;
    let Product { n, k, .. } = case.product;
    assert!(set.k <= k, "a row is one product");
    let c_of = |bits: u32| match set.half {
        true => half(f32::from_bits(bits).into()) as u32,
        false => bits,
    };
    // Without optimisation a sample does.
    let tiles = if cfg!(debug_assertions) { 1 } else { usize::MAX };
    for elsewhere in [false, true] {
        let multiplier = case.multiplier(elsewhere)?;
        for (tile, rows) in set.rows.chunks(n).enumerate().take(tiles) {
            let line = |side: usize, i: usize| -> Vec<u32> {
                let codes = rows.get(i).into_iter().flat_map(|row| &row[side]);
                let codes = codes.map(|&bits| code(set.input, bits) as u32);
                // There are four products in a row of tf32, and eight in one of the instruction.
                codes.chain(std::iter::repeat(0)).take(k).collect()
            };
            let mut operands = Operands {
                a: (0..n).map(|i| line(0, i)).collect(),
                b: (0..n).map(|i| line(1, i)).collect(),
                c: vec![0; n * n],
                factors: [Vec::new(), Vec::new()],
            };
            for (i, row) in rows.iter().enumerate() {
                operands.c[i * n + i] = c_of(row[2][0]);
                operands.c[i * n + (i + 1) % n] = c_of(row[2][0]);
            }
            let beside = |row: usize, column: usize| column == (row + 1) % n;
            let with_c = multiplier.run(&operands, true)?;
            count.modelled += case.compare(&operands, &with_c, true, beside)?;
            if !has_result {
                count.modelled += case.compare(&operands, &with_c, true, |row, column| row == column)?;
                continue;
            }
            let found = match narrow {
                true => multiplier.run(&operands, false)?,
                false => with_c,
            };
            for (i, row) in rows.iter().enumerate() {
                let (result, measured) = (pattern(set.half, found[i * n + i].into()), row[3][0]);
                if result != measured {
                    let at = tile * n + i;
                    return Err(format!("row {at} is {result:#x}, measured {measured:#x}"));
                }
                count.measured += 1;
            }
        }
    }
    Ok(())
}

/// All types and kinds with random codes, against the model.
pub fn modelled() -> Count {
    let mut count = Count::default();
    let (eights, narrow) = (
        [Type::E4m3, Type::E5m2],
        [Type::E4m3, Type::E5m2, Type::E2m3, Type::E3m2, Type::E2m1],
    );
    let pairs =
        |of: &[Type]| -> Vec<(Type, Type)> { of.iter().flat_map(|&a| of.iter().map(move |&b| (a, b))).collect() };
    let mut cases = Vec::new();
    for kind in [None, Some("kind::f16")] {
        cases.push(Case::of(kind, (Type::F16, Type::F16), Sum::F16));
        cases.push(Case::of(kind, (Type::F16, Type::F16), Sum::F32));
        cases.push(Case::of(kind, (Type::Bf16, Type::Bf16), Sum::F32));
    }
    for kind in [None, Some("kind::tf32")] {
        cases.push(Case::of(kind, (Type::Tf32, Type::Tf32), Sum::F32));
    }
    for sum in [Sum::F16, Sum::F32] {
        cases.extend(pairs(&eights).into_iter().map(|types| Case::of(None, types, sum)));
        let all = pairs(&narrow).into_iter();
        cases.extend(all.map(|types| Case::of(Some("kind::f8f6f4"), types, sum)));
    }
    let scaled = pairs(&narrow).into_iter();
    cases.extend(scaled.map(|types| Case::of(Some("kind::mxf8f6f4.block_scale"), types, Sum::F32)));
    for (kind, ue4m3) in [
        ("kind::mxf4.block_scale.block32", false),
        ("kind::mxf4nvf4.block_scale.block32", false),
        ("kind::mxf4nvf4.block_scale.block16", false),
        ("kind::mxf4nvf4.block_scale.block16", true),
    ] {
        let mut case = Case::of(Some(kind), (Type::E2m1, Type::E2m1), Sum::F32);
        if let Some(scale) = &mut case.product.scale {
            scale.ue4m3 = ue4m3;
        }
        cases.push(case);
    }
    for case in cases.iter().step_by(if cfg!(debug_assertions) { 13 } else { 1 }) {
        match random_tiles(case) {
            Ok(compared) => count.modelled += compared,
            Err(why) => count.failures.push(format!("{}: {why}", case.name())),
        }
    }
    count
}

fn random_tiles(case: &Case) -> Result<usize, String> {
    let random = &mut Random::of(&case.name());
    let Product { a, b, sum, m, n, k, .. } = case.product;
    let c = match sum {
        Sum::F16 => (5, 10),
        Sum::F32 | Sum::S32 => (8, 23),
    };
    let mut compared = 0;
    for elsewhere in [false, true] {
        let multiplier = case.multiplier(elsewhere)?;
        let lines = |random: &mut Random, lines: usize, ty: Type| -> Vec<Vec<u32>> {
            let format = ty.format().expect("a float");
            let line = |i: usize, random: &mut Random| (0..k).map(|_| draw(random, format, i)).collect();
            (0..lines).map(|i| line(i, random)).collect()
        };
        let operands = Operands {
            a: lines(random, m, a),
            b: lines(random, n, b),
            c: (0..m * n).map(|at| draw(random, c, at)).collect(),
            factors: [m, n].map(|lines| match &case.product.scale {
                None => Vec::new(),
                Some(scale) => (0..lines).map(|_| factors(random, scale)).collect(),
            }),
        };
        let add = !elsewhere;
        let found = multiplier.run(&operands, add)?;
        compared += case.compare(&operands, &found, add, |row, column| (row + column).is_multiple_of(5))?;
    }
    Ok(compared)
}

/// A code with so many bits of exponent and fraction: lines have numbers near each other, far apart, small ones, many zeros,
/// and some that are no numbers.
fn draw(random: &mut Random, (exponent, fraction): (u32, u32), line: usize) -> u32 {
    let (top, middle) = ((1usize << exponent) - 1, (1 << exponent) / 2 - 1);
    let field = match line % 5 {
        0 => middle + random.below(3) - usize::from(middle > 0),
        1 => random.below(top + 1),
        2 => random.below(3),
        3 if random.below(3) == 0 => return (random.below(2) as u32) << (exponent + fraction),
        3 => random.below(top.max(1)),
        _ if random.below(64) == 0 => top,
        _ => middle.saturating_sub(4) + random.below(8),
    };
    let low = match random.below(8) {
        0 => 0,
        1 => (1 << fraction) - 1,
        _ => random.next() as u32 & ((1 << fraction) - 1),
    };
    (random.below(2) as u32) << (exponent + fraction) | (field.min(top) as u32) << fraction | low
}

/// Factors of a line; now and then one that is no number.
fn factors(random: &mut Random, scale: &Scale) -> Vec<u8> {
    let one = |random: &mut Random| match (random.below(256), scale.ue4m3) {
        (0, true) => 0x7f,
        (0, false) => 0xff,
        (1, _) => 0,
        (_, true) => random.below(0x7f) as u8,
        (_, false) => (120 + random.below(14)) as u8,
    };
    (0..scale.factors).map(|_| one(random)).collect()
}
