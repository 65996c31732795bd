//! The single-precision function unit ([`crate::isa::sfu`]) as functions of a compiled module, for CPUs with AVX2 or AVX-512.
//!
//! Such a function takes a warp's operands in registers and gives its results there, by a calling convention that leaves
//! half of the vectors to the caller (`intel_ocl_bicc`: YMM8 or ZMM16 and above stay). The interpreter's kernel has the same
//! bits, but goes by way of memory.
//!
//! What the unit does goes here by words of 16 bits, which are twice as many a vector: a coefficient times a part of the
//! operand, plus another product, is one instruction (`VPMADDWD`). B has 17 bits, of which a constant is taken away for that
//! and its product with x added. AVX-512 reads a table of 64 slices by one permutation; AVX2 reads it byte by byte, for all
//! lanes of a warp at once (`VPSHUFB`). With AVX-512 parts of the square come from tables, too.
//!
//! Operands that are rare (zeros, subnormals, infinities, NaN, results out of range) are put right at the end, if there are
//! any in the warp.

use crate::isa::approx::Op;
use crate::isa::sfu::{self, Function};
use crate::isa::{Compute, Level};

use super::text::{Form, Text};

/// A warp's numbers, a vector for each part. What is the same everywhere has as many as there are parts at most.
type Parts = Vec<String>;
/// A warp's words of 16 bits, a vector for two parts.
type Halves = Vec<String>;

const MOST_PARTS: usize = 4;

/// The types of vectors.
struct Types {
    lanes: u32,
    words: &'static str,
    floats: &'static str,
    doubles: &'static str,
    longs: &'static str,
    halves: &'static str,
    flags: &'static str,
    /// As many bits as flags.
    mask: &'static str,
}

const OF_16: Types = Types {
    lanes: 16,
    words: "<16 x i32>",
    floats: "<16 x float>",
    doubles: "<16 x double>",
    longs: "<16 x i64>",
    halves: "<32 x i16>",
    flags: "<16 x i1>",
    mask: "i16",
};

const OF_8: Types = Types {
    lanes: 8,
    words: "<8 x i32>",
    floats: "<8 x float>",
    doubles: "<8 x double>",
    longs: "<8 x i64>",
    halves: "<16 x i16>",
    flags: "<8 x i1>",
    mask: "i8",
};

/// All lanes' bytes with AVX2.
const BYTES: &str = "<32 x i8>";

const SIGN: u32 = 0x8000_0000;
const MAGNITUDE: u32 = !SIGN;
const INFINITY: u32 = 0x7f80_0000;
const NAN: u32 = 0x7fff_ffff;
const LEAST_NORMAL: u32 = 0x0080_0000;
/// 2^126
const LARGE: u32 = 0x7e80_0000;
const TWO_24: u32 = 0x4b80_0000;
/// Odd exponents, which have even fields, double a root's significand: the exponent's last bit goes with the slice.
const OF_ROOTS: usize = 64;
/// Of upper words of `f64`, as far as that differs: infinity, the least normal number, one in the exponent.
const WIDE_INFINITY: u32 = 0x7ff0_0000;
const WIDE_LEAST_NORMAL: u32 = WIDE_ONE;
const WIDE_ONE: u32 = 1 << 20;

/// The operation, if it is one of the unit's.
pub fn of(what: Compute) -> Option<Op> {
    let Compute::Approx(op) = what else { return None };
    match op {
        Op::RsqrtF64 { ftz: false } | Op::Tanh => None,
        Op::RcpF64
        | Op::RsqrtF64 { ftz: true }
        | Op::Div { .. }
        | Op::DivFull { .. }
        | Op::Rcp { .. }
        | Op::Sqrt { .. }
        | Op::Rsqrt { .. }
        | Op::Sin { .. }
        | Op::Cos { .. }
        | Op::Lg2 { .. }
        | Op::Ex2 { .. } => Some(op),
    }
}

/// Whether the operation is one of `f64`, of whose numbers the function takes and gives the upper words: the lower ones of results are
/// zero, and what those of operands are does not matter.
pub fn is_of_upper_words(op: Op) -> bool {
    matches!(op, Op::RcpF64 | Op::RsqrtF64 { .. })
}

/// What the function of an operation is called.
pub fn name(op: Op) -> String {
    format!("margay.{op}")
}

/// Whether code for a level has such functions: before AVX2 there is nothing to read a table by.
pub fn has(level: Level) -> bool {
    level != Level::Baseline
}

/// Of a level that has such functions.
fn types(level: Level) -> &'static Types {
    match level {
        Level::Avx512 => &OF_16,
        Level::Avx2 | Level::Baseline => &OF_8,
    }
}

/// What the functions give: a vector for each part.
pub fn result(level: Level) -> String {
    let types = types(level);
    format!("{{ {} }}", vec![types.words; types.parts()].join(", "))
}

/// The text of that function.
pub fn function(op: Op, level: Level) -> String {
    let mut unit = Unit {
        text: Text::default(),
        types: types(level),
    };
    let parts = unit.types.parts();
    let operand = |name: &str| -> Parts { (0..parts).map(|part| format!("%{name}{part}")).collect() };
    let (a, b) = (operand("a"), operand("b"));
    let (operands, results) = match op {
        Op::Div { ftz } => (2, unit.quotient(&a, &b, ftz, false)),
        Op::DivFull { ftz } => (2, unit.quotient(&a, &b, ftz, true)),
        Op::Rcp { ftz } => (1, unit.rcp(&a, !ftz, !ftz)),
        Op::Rsqrt { ftz } => (1, unit.rsqrt(&a, ftz)),
        Op::Sqrt { ftz } => (1, unit.sqrt(&a, ftz)),
        Op::Ex2 { ftz } => (1, unit.ex2(&a, ftz)),
        Op::Lg2 { ftz } => (1, unit.lg2(&a, ftz)),
        Op::Sin { .. } => (1, unit.circular(&a, false)),
        Op::Cos { .. } => (1, unit.circular(&a, true)),
        Op::RcpF64 => (1, unit.rcp_of_upper(&a)),
        Op::RsqrtF64 { .. } => (1, unit.rsqrt_of_upper(&a)),
        Op::Tanh => unreachable!("`of` says so"),
    };
    let (text, words, ty) = (&mut unit.text, unit.types.words, result(level));
    let results = results.iter().take(parts).enumerate();
    let result = results.fold("poison".to_owned(), |all, (at, part)| {
        text.value(format!("insertvalue {ty} {all}, {words} {part}, {at}"))
    });
    let arguments: Vec<String> = [a, b][..operands]
        .iter()
        .flatten()
        .map(|name| format!("{words} {name}"))
        .collect();
    format!(
        "define internal intel_ocl_bicc {ty} @\"{}\"({}) noinline nounwind {{\nhead:\n{}  ret {ty} {result}\n}}\n\n",
        name(op),
        arguments.join(", "),
        text.lines,
    )
}

impl Types {
    fn parts(&self) -> usize {
        crate::isa::lanes::WARP / self.lanes as usize
    }
    fn form(&self) -> Form {
        Form::Lanes(self.lanes)
    }
}

/// A number everywhere, as vectors of any size are written.
fn constant(value: u32) -> String {
    OF_16.form().constant(32, value.into())
}
/// The same number everywhere.
fn all(value: u32) -> Parts {
    vec![constant(value); MOST_PARTS]
}

/// What B is, less the number of 16 bits with a sign that the table has: nothing or a power of two, of
/// either sign.
fn bias<F: Function>() -> i32 {
    let fits = |bias: &i32| {
        (0..F::SLICES).all(|slice| i16::try_from((F::coefficients(slice as u32).1 as i32 >> 12) - bias).is_ok())
    };
    let biases = [0, 1 << 15, -(1 << 15), 1 << 16];
    biases
        .into_iter()
        .find(fits)
        .expect("tables have 16 bits of B, less one bias")
}

struct Unit {
    text: Text,
    types: &'static Types,
}

/// Which entries of a table all lanes want, in the form in which it is read.
enum Slices {
    /// By number, in words; of them the lowest bits count.
    Numbers(Halves),
    /// For each run of 16 entries the bytes by which `VPSHUFB` reads it: above 127 where the entry is in another one.
    Runs(Vec<String>),
}

impl Unit {
    // ---- a warp's numbers ------------------------------------------------------------------------------------------------

    fn each(&mut self, mut what: impl FnMut(&mut Text, usize) -> String) -> Parts {
        (0..self.types.parts()).map(|at| what(&mut self.text, at)).collect()
    }
    fn int(&mut self, op: &str, a: &Parts, b: &Parts) -> Parts {
        let words = self.types.words;
        self.each(|text, at| text.binary(op, words, &a[at], &b[at]))
    }
    fn by(&mut self, op: &str, a: &Parts, b: u32) -> Parts {
        self.int(op, a, &all(b))
    }
    fn is(&mut self, relation: &str, a: &Parts, b: u32) -> Parts {
        let (words, b) = (self.types.words, constant(b));
        self.each(|text, at| text.value(format!("icmp {relation} {words} {}, {b}", a[at])))
    }
    fn select(&mut self, by: &Parts, a: &Parts, b: &Parts) -> Parts {
        let types = self.types;
        self.each(|text, at| text.select(types.form(), types.words, &by[at], &a[at], &b[at]))
    }
    fn as_floats(&mut self, a: &Parts) -> Parts {
        let form = self.types.form();
        self.each(|text, at| text.float(form, 32, &a[at]))
    }
    fn as_words(&mut self, a: &Parts) -> Parts {
        let form = self.types.form();
        self.each(|text, at| text.bits(form, 32, &a[at]))
    }
    /// An operation on floats, given and taken as bits.
    fn floats(&mut self, op: &str, a: &Parts, b: &Parts) -> Parts {
        let floats = self.types.floats;
        let (a, b) = (self.as_floats(a), self.as_floats(b));
        let value = self.each(|text, at| text.binary(op, floats, &a[at], &b[at]));
        self.as_words(&value)
    }
    fn times(&mut self, a: &Parts, by: f32) -> Parts {
        self.floats("fmul", a, &all(by.to_bits()))
    }
    fn magnitude(&mut self, a: &Parts) -> Parts {
        self.by("and", a, MAGNITUDE)
    }
    /// Floats from 0 to 2^31 without their fractions.
    fn whole(&mut self, a: &Parts) -> Parts {
        let types = self.types;
        let a = self.as_floats(a);
        self.each(|text, at| text.convert("fptosi", types.floats, &a[at], types.words))
    }

    /// What `what` makes of the values where any lane is one of `lanes`, else the values as they are.
    fn where_any(
        &mut self,
        lanes: &Parts,
        values: &[&Parts],
        what: impl FnOnce(&mut Unit) -> Vec<Parts>,
    ) -> Vec<Parts> {
        let Types { flags, mask, words, .. } = *self.types;
        let text = &mut self.text;
        let either = lanes[1..]
            .iter()
            .fold(lanes[0].clone(), |any, part| text.binary("or", flags, &any, part));
        let bits = text.convert("bitcast", flags, &either, mask);
        let any = text.value(format!("icmp ne {mask} {bits}, 0"));
        let (from, rare, go) = (text.name("from"), text.name("rare"), text.name("go"));
        text.line(format!("br label %{from}"));
        text.label(&from);
        text.line(format!("br i1 {any}, label %{rare}, label %{go}"));
        text.label(&rare);
        let mended = what(self);
        self.text.line(format!("br label %{go}"));
        self.text.label(&go);
        let both = values.iter().zip(&mended);
        both.map(|(value, mended)| {
            self.each(|text, at| {
                text.value(format!(
                    "phi {words} [ {}, %{from} ], [ {}, %{rare} ]",
                    value[at], mended[at]
                ))
            })
        })
        .collect()
    }
    fn mend(&mut self, lanes: &Parts, value: &Parts, what: impl FnOnce(&mut Unit) -> Parts) -> Parts {
        let mut values = self.where_any(lanes, &[value], |unit| vec![what(unit)]);
        values.swap_remove(0)
    }
    /// Where a lane's number is not from `least` up to `end`, without regard to a sign that is not there.
    fn beyond(&mut self, a: &Parts, least: u32, end: u32) -> Parts {
        let above = self.by("sub", a, least);
        self.is("uge", &above, end - least)
    }

    // ---- words of 16 bits ------------------------------------------------------------------------------------------------

    /// The lower and the upper halves of words, in the order in which [`Unit::unpack`] puts them together.
    fn split(&mut self, a: &Parts) -> (Halves, Halves) {
        let Types {
            lanes, words, halves, ..
        } = *self.types;
        let places = 2 * lanes;
        let mut half = |upper: u32| -> Halves {
            let order: Vec<String> = (0..places)
                .map(|at| {
                    let word = at / 8 * 4 + at % 4 + at % 8 / 4 * lanes;
                    format!("i32 {}", 2 * word + upper)
                })
                .collect();
            a.chunks_exact(2)
                .map(|two| {
                    let text = &mut self.text;
                    let [low, high] = [0, 1].map(|at| text.convert("bitcast", words, &two[at], halves));
                    text.value(format!(
                        "shufflevector {halves} {low}, {halves} {high}, <{places} x i32> <{}>",
                        order.join(", ")
                    ))
                })
                .collect()
        };
        (half(0), half(1))
    }
    /// Words whose lower halves are `low` and whose upper ones are `high`.
    fn unpack(&mut self, low: &Halves, high: &Halves) -> Parts {
        let Types {
            lanes, words, halves, ..
        } = *self.types;
        let places = 2 * lanes;
        let mut parts = Parts::new();
        for (low, high) in low.iter().zip(high) {
            for from in [0, 4] {
                let order: Vec<String> = (0..places)
                    .map(|at| format!("i32 {}", at / 8 * 8 + from + at % 8 / 2 + at % 2 * places))
                    .collect();
                let both = self.text.value(format!(
                    "shufflevector {halves} {low}, {halves} {high}, <{places} x i32> <{}>",
                    order.join(", ")
                ));
                parts.push(self.text.convert("bitcast", halves, &both, words));
            }
        }
        parts
    }
    fn half(&mut self, op: &str, a: &Halves, b: &Halves) -> Halves {
        let halves = self.types.halves;
        let both = a.iter().zip(b);
        both.map(|(a, b)| self.text.binary(op, halves, a, b)).collect()
    }
    fn half_by(&mut self, op: &str, a: &Halves, b: u16) -> Halves {
        let b = Form::Lanes(2 * self.types.lanes).constant(16, b.into());
        self.half(op, a, &vec![b; a.len()])
    }
    /// a·a' + b·b' of the two halves of each word.
    fn product(&mut self, a: &Parts, b: &Parts) -> Parts {
        let Types {
            lanes, words, halves, ..
        } = *self.types;
        let instruction = match lanes {
            16 => "avx512.pmaddw.d.512",
            _ => "avx2.pmadd.wd",
        };
        self.each(|text, at| {
            let a = text.convert("bitcast", words, &a[at], halves);
            let b = text.convert("bitcast", words, &b[at], halves);
            text.value(format!(
                "call {words} @llvm.x86.{instruction}({halves} {a}, {halves} {b})"
            ))
        })
    }

    /// Which entries of a table of so many lanes want: of the numbers, the lowest bits count.
    fn slices(&mut self, numbers: Halves, count: usize) -> Slices {
        let [first, second] = &numbers[..] else {
            return Slices::Numbers(numbers);
        };
        let halves = self.types.halves;
        let words = self.half_by("and", &vec![first.clone(), second.clone()], count as u16 - 1);
        let text = &mut self.text;
        let bytes = text.value(format!(
            "call {BYTES} @llvm.x86.avx2.packuswb({halves} {}, {halves} {})",
            words[0], words[1]
        ));
        let form = Form::Lanes(32);
        let runs = (0..count as u64 / 16).map(|run| {
            // Of this run the upper four bits become 0, and with 7 added stay below 8.
            let within = text.binary("xor", BYTES, &bytes, &form.constant(8, run << 4));
            text.intrinsic("uadd.sat", form, "i8", &[&within, &form.constant(8, 0x70)])
        });
        Slices::Runs(runs.collect())
    }

    /// The table's entries.
    fn look_up(&mut self, table: &[u16], slices: &Slices) -> Halves {
        match slices {
            Slices::Numbers(numbers) => numbers.iter().map(|numbers| self.permuted(table, numbers)).collect(),
            Slices::Runs(runs) => {
                let low = self.bytes(table, runs, |word| word as u8);
                let high = self.bytes(table, runs, |word| (word >> 8) as u8);
                let halves = self.types.halves;
                [0, 8]
                    .map(|from| {
                        let order: Vec<String> = (0..32)
                            .map(|at| format!("i32 {}", at / 16 * 16 + from + at % 16 / 2 + at % 2 * 32))
                            .collect();
                        let text = &mut self.text;
                        let words = text.value(format!(
                            "shufflevector {BYTES} {low}, {BYTES} {high}, <32 x i32> <{}>",
                            order.join(", ")
                        ));
                        text.convert("bitcast", BYTES, &words, halves)
                    })
                    .into()
            }
        }
    }
    /// With AVX-512, which permutes 64 words at a time.
    fn permuted(&mut self, table: &[u16], numbers: &str) -> String {
        let halves = self.types.halves;
        let vector = |part: &[u16]| {
            let words: Vec<String> = part.iter().map(|&word| format!("i16 {}", word as i16)).collect();
            format!("<{}>", words.join(", "))
        };
        let chosen: Vec<String> = table
            .chunks(64)
            .map(|part| {
                self.text.value(format!(
                    "call {halves} @llvm.x86.avx512.vpermi2var.hi.512({halves} {}, {halves} {numbers}, {halves} {})",
                    vector(&part[..32]),
                    vector(&part[32..])
                ))
            })
            .collect();
        match &chosen[..] {
            [low, high] => {
                let form = Form::Lanes(32);
                let text = &mut self.text;
                let bit = text.binary("and", halves, numbers, &form.constant(16, 64));
                let upper = text.value(format!("icmp ne {halves} {bit}, zeroinitializer"));
                text.select(form, halves, &upper, high, low)
            }
            _ => chosen[0].clone(),
        }
    }
    /// With AVX2, which permutes 16 bytes at a time in either half of a vector: a byte of the entries.
    fn bytes(&mut self, table: &[u16], runs: &[String], which: fn(u16) -> u8) -> String {
        if table.iter().all(|&word| which(word) == 0) {
            return "zeroinitializer".to_owned();
        }
        let mut chosen: Option<String> = None;
        for (entries, run) in table.chunks(16).zip(runs) {
            let entries: Vec<String> = entries
                .iter()
                .map(|&word| format!("i8 {}", which(word) as i8))
                .collect();
            let entries = entries.join(", ");
            let text = &mut self.text;
            let some = text.value(format!(
                "call {BYTES} @llvm.x86.avx2.pshuf.b({BYTES} <{entries}, {entries}>, {BYTES} {run})"
            ));
            chosen = Some(match chosen {
                Some(others) => text.binary("or", BYTES, &others, &some),
                None => some,
            });
        }
        chosen.unwrap_or_default()
    }

    /// [`sfu::square`] of words of 15 bits.
    fn square(&mut self, y: &Halves) -> Halves {
        match self.types.lanes {
            16 => self.square_by_tables(y),
            _ => self.square_by_rows(y),
        }
    }
    /// The triangles of which `sfu::square` tells by three bits of each half of y, twice.
    fn square_by_tables(&mut self, y: &Halves) -> Halves {
        let triangle = |upper: [u16; 3], lower: [u16; 3]| -> Vec<u16> {
            let pairs = |number: u16| {
                let pair = |at: usize| {
                    let (of_upper, of_lower) = (at / 3, at % 3);
                    let both = number >> (3 + of_upper) & number >> of_lower & 1;
                    both << (upper[of_upper] + lower[of_lower]) >> 7
                };
                2 * (0..9).map(pair).sum::<u16>()
            };
            (0..64).map(pairs).collect()
        };
        let number = |unit: &mut Unit, upper: &Halves, lower: &Halves| {
            let upper = unit.half_by("and", upper, 0x38);
            let lower = unit.half_by("and", lower, 7);
            Slices::Numbers(unit.half("or", &upper, &lower))
        };
        let upper = self.half_by("lshr", y, 9);
        let first = number(self, &upper, y);
        let first = self.look_up(&triangle([5, 6, 7], [0, 1, 2]), &first);
        let (upper, lower) = (self.half_by("lshr", y, 5), self.half_by("lshr", y, 4));
        let second = number(self, &upper, &lower);
        let second = self.look_up(&triangle([1, 2, 3], [4, 5, 6]), &second);
        let lower = self.half_by("lshr", y, 2);
        let lower = self.half_by("and", &lower, 0x1e);
        let upper = self.half_by("lshr", y, 11);
        let mixed = self.half("mul", &lower, &upper);
        let high = self.half_by("lshr", y, 7);
        let square = self.half("mul", &high, &high);
        let triangles = self.half("add", &first, &second);
        let rest = self.half("add", &mixed, &triangles);
        let square = self.half("add", &square, &rest);
        self.half_by("lshr", &square, 1)
    }
    /// As `sfu::square` does it.
    fn square_by_rows(&mut self, y: &Halves) -> Halves {
        let high = self.half_by("lshr", y, 7);
        let low = self.half_by("and", y, 0x7f);
        let up = self.half_by("shl", &high, 4);
        let bits = self.half("or", &high, &up);
        let first = self.half_by("lshr", &low, 4);
        let second = self.half_by("shl", &low, 8);
        let second = self.half_by("and", &second, 0x700);
        let rows = self.half("or", &first, &second);
        let row = |unit: &mut Unit, n: u16| {
            let bits = unit.half_by("lshr", &bits, 1 + n);
            let bits = unit.half_by("and", &bits, 0x101);
            let bits = unit.half_by("mul", &bits, 7);
            let rows = unit.half_by("lshr", &rows, 2 - n);
            unit.half("and", &bits, &rows)
        };
        let triangles = row(self, 0);
        let next = row(self, 1);
        let triangles = self.half("add", &triangles, &next);
        let next = row(self, 2);
        let triangles = self.half("add", &triangles, &next);
        let low = self.half_by("lshr", &low, 3);
        let upper = self.half_by("lshr", &high, 4);
        let mixed = self.half("mul", &low, &upper);
        let one = self.half_by("and", &triangles, 0xff);
        let other = self.half_by("lshr", &triangles, 8);
        let mixed = self.half("add", &mixed, &one);
        let mixed = self.half("add", &mixed, &other);
        let mixed = self.half_by("shl", &mixed, 1);
        let square = self.half("mul", &high, &high);
        let square = self.half("add", &square, &mixed);
        self.half_by("lshr", &square, 1)
    }

    /// The sum as `sfu::interpolate` makes it, in two numbers: 256·high + low. The lowest bits of a word are x, the next ones
    /// the slice, of whose number the bits `turned` are the other way round; what is above does not matter.
    fn sum<F: Function>(&mut self, word: &Parts, turned: usize) -> (Parts, Parts) {
        let bias = bias::<F>();
        let entry = |slice: usize| {
            let (a, bc) = F::coefficients(slice as u32);
            let b = (bc as i32 >> 12) - bias;
            let c = ((bc as i32) << 20 >> 20) << F::SQUARE_BY;
            debug_assert!(i16::try_from(b).is_ok() && i16::try_from(c).is_ok());
            (a << (F::SHIFT - 8), b as u16, c as u16)
        };
        let table = |what: fn((u32, u16, u16)) -> u16| -> Vec<u16> {
            (0..F::SLICES).map(|at| what(entry(at ^ turned))).collect()
        };
        let (lower, upper) = self.split(word);
        let of_slice = F::SQUARE_OF as u16 - 1;
        let slices = self.half_by("lshr", &upper, of_slice);
        let slices = self.slices(slices, F::SLICES);
        let (a_low, a_high) = (table(|(a, ..)| a as u16), table(|(a, ..)| (a >> 16) as u16));
        let (b, c) = (table(|(_, b, _)| b), table(|(.., c)| c));
        let a_low = self.look_up(&a_low, &slices);
        let a_high = self.look_up(&a_high, &slices);
        let b = self.look_up(&b, &slices);
        let c = self.look_up(&c, &slices);
        let a = self.unpack(&a_low, &a_high);
        let coefficients = self.unpack(&c, &b);
        let mut y = self.half_by("lshr", &lower, F::SQUARE_OF as u16);
        if of_slice != 0 {
            let more = self.half_by("shl", &upper, 16 - F::SQUARE_OF as u16);
            let more = self.half_by("and", &more, 0x7fff);
            y = self.half("or", &y, &more);
        }
        let square = self.square(&y);
        let low = self.half_by("and", &lower, 0xff);
        let lower = self.unpack(&square, &low);
        let low = self.product(&coefficients, &lower);
        let low = self.by("add", &low, F::ROUND as u32);
        let x = (1 << (15 + F::SQUARE_OF)) - 1;
        let upper = self.by("shl", word, 8);
        let upper = self.by("and", &upper, x >> 8 << 16);
        let high = self.product(&coefficients, &upper);
        let high = self.int("add", &high, &a);
        if bias == 0 {
            return (high, low);
        }
        let by = bias.abs().ilog2() - 8;
        let further = self.by("shl", word, by);
        let further = self.by("and", &further, x << by);
        let op = if bias < 0 { "sub" } else { "add" };
        (self.int(op, &high, &further), low)
    }
    fn shifted(&mut self, (high, low): &(Parts, Parts), by: u32) -> Parts {
        let low = self.by("ashr", low, 8);
        let sum = self.int("add", high, &low);
        self.by("lshr", &sum, by)
    }

    // ---- the functions ---------------------------------------------------------------------------------------------------

    /// 1/a, with what makes it one of all numbers: `small`, of subnormal ones, `large`, of those above 2^126.
    fn rcp(&mut self, a: &Parts, small: bool, large: bool) -> Parts {
        let (value, factor) = self.scaled_rcp(a, small, large);
        match factor {
            None => value,
            Some((rare, factor)) => self.mend(&rare, &value, |unit| unit.floats("fmul", &value, &factor)),
        }
    }

    /// The reciprocal of b·factor, and the factor, which is one but for operands that are rare; those.
    fn scaled_rcp(&mut self, b: &Parts, small: bool, large: bool) -> (Parts, Option<(Parts, Parts)>) {
        let magnitude = self.magnitude(b);
        let rare = self.beyond(&magnitude, LEAST_NORMAL, LARGE);
        let one = all(1f32.to_bits());
        let (operand, factor) = match small || large {
            false => (b.clone(), None),
            true => {
                let mut values = self.where_any(&rare, &[b, &one], |unit| {
                    let mut factor = one.clone();
                    if large {
                        let lanes = unit.is("ugt", &magnitude, LARGE);
                        factor = unit.select(&lanes, &all(0.25f32.to_bits()), &factor);
                    }
                    if small {
                        let lanes = unit.is("ult", &magnitude, LEAST_NORMAL);
                        factor = unit.select(&lanes, &all(TWO_24), &factor);
                    }
                    vec![unit.floats("fmul", b, &factor), factor]
                });
                let factor = values.pop();
                (values.remove(0), factor)
            }
        };
        let sum = self.sum::<sfu::Rcp>(&operand, 0);
        let significand = self.shifted(&sum, 7);
        // 255 less the exponent, with the sign, which is not touched but where the operand is rare.
        let rest = self.by("xor", &operand, INFINITY);
        let rest = self.by("and", &rest, SIGN | INFINITY);
        let result = self.int("add", &rest, &significand);
        let result = self.by("sub", &result, 3 << 23);
        let result = self.mend(&rare, &result, |unit| {
            let magnitude = unit.magnitude(&operand);
            let exponent = unit.by("and", &operand, INFINITY);
            let exponent = unit.int("sub", &all(252 << 23), &exponent);
            let bits = unit.int("add", &exponent, &significand);
            let sign = unit.by("and", &operand, SIGN);
            let tiny = unit.is("slt", &bits, LEAST_NORMAL);
            let result = unit.select(&tiny, &all(0), &bits);
            let none = unit.is("ult", &magnitude, LEAST_NORMAL);
            let result = unit.select(&none, &all(INFINITY), &result);
            let result = unit.int("or", &result, &sign);
            let nan = unit.is("ugt", &magnitude, INFINITY);
            unit.select(&nan, &all(NAN), &result)
        });
        (result, factor.map(|factor| (rare, factor)))
    }

    /// a/b; in full range also with a divisor above 2^126.
    fn quotient(&mut self, a: &Parts, b: &Parts, ftz: bool, full: bool) -> Parts {
        let (value, factor) = self.scaled_rcp(b, !ftz, full);
        let mut dividend = a.clone();
        if ftz {
            dividend = self.flush(&dividend);
        }
        if let Some((rare, factor)) = factor {
            let scaled = self.mend(&rare, &dividend, |unit| unit.floats("fmul", &dividend, &factor));
            dividend = if ftz { self.flush(&scaled) } else { scaled };
        }
        let mut result = self.floats("fmul", &dividend, &value);
        if ftz {
            result = self.flush(&result);
        }
        let float = self.as_floats(&result);
        let floats = self.types.floats;
        let nan = self.each(|text, at| text.value(format!("fcmp uno {floats} {}, {}", float[at], float[at])));
        self.select(&nan, &all(NAN), &result)
    }
    /// Subnormals become zero of their sign.
    fn flush(&mut self, a: &Parts) -> Parts {
        let magnitude = self.magnitude(a);
        let small = self.is("ult", &magnitude, LEAST_NORMAL);
        let zero = self.by("and", a, SIGN);
        self.select(&small, &zero, a)
    }

    /// An operand scaled by 2^24 where it is subnormal, if those count, and the lanes where that is so.
    fn normal(&mut self, a: &Parts, rare: &Parts, ftz: bool) -> Parts {
        match ftz {
            true => a.clone(),
            false => self.mend(rare, a, |unit| {
                let small = unit.is_small(a);
                let scaled = unit.times(a, 16_777_216.0);
                unit.select(&small, &scaled, a)
            }),
        }
    }
    fn is_small(&mut self, a: &Parts) -> Parts {
        let magnitude = self.magnitude(a);
        self.is("ult", &magnitude, LEAST_NORMAL)
    }

    /// Half of a number that stands in place of an exponent, without a fraction, as an exponent.
    fn half_exponent(&mut self, of: &Parts) -> Parts {
        let half = self.by("lshr", of, 1);
        self.by("and", &half, INFINITY)
    }

    fn rsqrt(&mut self, a: &Parts, ftz: bool) -> Parts {
        let rare = self.beyond(a, LEAST_NORMAL, INFINITY);
        let operand = self.normal(a, &rare, ftz);
        let sum = self.sum::<sfu::Rsqrt>(&operand, OF_ROOTS);
        let significand = self.shifted(&sum, 8);
        let less = self.int("sub", &all((2 * 189 + 1) * LEAST_NORMAL - 1), &operand);
        let exponent = self.half_exponent(&less);
        let result = self.int("add", &exponent, &significand);
        // Even powers of two come out exactly.
        let exact = self.by("shl", &operand, 8);
        let exact = self.is("eq", &exact, LEAST_NORMAL << 8);
        let more = self.by("add", &result, 1);
        let result = self.select(&exact, &more, &result);
        self.mend(&rare, &result, |unit| {
            let lanes = unit.is("eq", &operand, INFINITY);
            let value = unit.select(&lanes, &all(0), &result);
            let lanes = unit.is("ugt", &operand, INFINITY);
            let value = unit.select(&lanes, &all(NAN), &value);
            let lanes = unit.is_small(&operand);
            let sign = unit.by("and", &operand, SIGN);
            let infinity = unit.by("or", &sign, INFINITY);
            let value = unit.select(&lanes, &infinity, &value);
            if ftz {
                return value;
            }
            let small = unit.is_small(a);
            let scaled = unit.times(&value, 4096.0);
            unit.select(&small, &scaled, &value)
        })
    }

    /// The significands of upper words as those of `f32`, with an exponent of their own.
    fn of_significand(&mut self, high: &Parts, exponent: &Parts) -> Parts {
        let significand = self.by("and", high, WIDE_ONE - 1);
        let significand = self.by("shl", &significand, 3);
        self.int("or", &significand, exponent)
    }

    /// 1/a. What the unit makes of the significand has an exponent of 126 or 127, which goes with that of `f64` that is left.
    fn rcp_of_upper(&mut self, high: &Parts) -> Parts {
        let operand = self.of_significand(high, &all(127 << 23));
        let value = self.rcp(&operand, false, false);
        let value = self.by("lshr", &value, 3);
        let magnitude = self.magnitude(high);
        let exponent = self.by("and", &magnitude, WIDE_INFINITY);
        let exponent = self.int("sub", &all((2 * 1023 - 127) * WIDE_ONE), &exponent);
        let value = self.int("add", &value, &exponent);
        let sign = self.by("and", high, SIGN);
        let result = self.int("or", &value, &sign);
        let rare = self.beyond(&magnitude, WIDE_LEAST_NORMAL, 2045 * WIDE_ONE);
        self.mend(&rare, &result, |unit| {
            let tiny = unit.is("slt", &value, WIDE_LEAST_NORMAL);
            let result = unit.select(&tiny, &all(0), &value);
            let none = unit.is("ult", &magnitude, WIDE_LEAST_NORMAL);
            let result = unit.select(&none, &all(WIDE_INFINITY), &result);
            let result = unit.int("or", &result, &sign);
            let nan = unit.is("ugt", &magnitude, WIDE_INFINITY);
            unit.select(&nan, &all(NAN), &result)
        })
    }

    /// One by the root. The operand's exponent is made even; half of it is what remains for `f64`.
    fn rsqrt_of_upper(&mut self, high: &Parts) -> Parts {
        let magnitude = self.magnitude(high);
        let odd = self.by("and", &magnitude, WIDE_ONE);
        let up = self.by("shl", &odd, 3);
        let exponent = self.int("sub", &all(128 << 23), &up);
        let operand = self.of_significand(high, &exponent);
        let value = self.rsqrt(&operand, true);
        let value = self.by("lshr", &value, 3);
        let half = self.by("add", &magnitude, WIDE_ONE);
        let half = self.by("lshr", &half, 1);
        let half = self.by("and", &half, WIDE_INFINITY);
        let exponent = self.int("sub", &all((1023 - 127 + 512) * WIDE_ONE), &half);
        let result = self.int("add", &value, &exponent);
        let rare = self.beyond(high, WIDE_LEAST_NORMAL, WIDE_INFINITY);
        self.mend(&rare, &result, |unit| {
            let infinite = unit.is("eq", high, WIDE_INFINITY);
            let result = unit.select(&infinite, &all(0), &result);
            let nan = unit.is("ugt", high, WIDE_INFINITY);
            let result = unit.select(&nan, &all(NAN), &result);
            let none = unit.is("ult", &magnitude, WIDE_LEAST_NORMAL);
            let sign = unit.by("and", high, SIGN);
            let infinity = unit.by("or", &sign, WIDE_INFINITY);
            unit.select(&none, &infinity, &result)
        })
    }

    fn sqrt(&mut self, a: &Parts, ftz: bool) -> Parts {
        let rare = self.beyond(a, LEAST_NORMAL, INFINITY);
        let operand = self.normal(a, &rare, ftz);
        let sum = self.sum::<sfu::Sqrt>(&operand, OF_ROOTS);
        let significand = self.shifted(&sum, 9);
        let more = self.by("add", &operand, (2 * 63 + 1) * LEAST_NORMAL);
        let exponent = self.half_exponent(&more);
        let result = self.int("add", &exponent, &significand);
        self.mend(&rare, &result, |unit| {
            let lanes = unit.is("ugt", &operand, INFINITY);
            let value = unit.select(&lanes, &all(NAN), &result);
            let lanes = unit.is("eq", &operand, INFINITY);
            let value = unit.select(&lanes, &all(INFINITY), &value);
            let lanes = unit.is_small(&operand);
            let sign = unit.by("and", &operand, SIGN);
            let value = unit.select(&lanes, &sign, &value);
            if ftz {
                return value;
            }
            let small = unit.is_small(a);
            let scaled = unit.times(&value, 1.0 / 4096.0);
            unit.select(&small, &scaled, &value)
        })
    }

    fn ex2(&mut self, a: &Parts, ftz: bool) -> Parts {
        let whole = self.magnitude(a);
        let rare = self.is("uge", &whole, 126f32.to_bits());
        // Below 2^-126 by way of the root: half the exponent, squared.
        let low = |unit: &mut Unit| {
            let a = unit.as_floats(a);
            let floats = unit.types.floats;
            let least = unit.types.form().float_constant(32, -126.0);
            unit.each(|text, at| text.value(format!("fcmp olt {floats} {}, {least}", a[at])))
        };
        let operand = match ftz {
            true => a.clone(),
            false => self.mend(&rare, a, |unit| {
                let half = unit.times(a, 0.5);
                let low = low(unit);
                unit.select(&low, &half, a)
            }),
        };
        let magnitude = self.magnitude(&operand);
        // Fixed point with 23 bits of fraction, cut off; from 128 on it does not matter what.
        let form = self.types.form();
        let most = constant(0x42ff_ffff);
        let within = self.each(|text, at| text.intrinsic("umin", form, "i32", &[&magnitude[at], &most]));
        let p = self.times(&within, 8_388_608.0);
        let p = self.whole(&p);
        // Negative numbers by one's complement, unless they are whole.
        let negative = self.by("ashr", &operand, 31);
        let fraction = self.by("and", &p, 0x7f_ffff);
        let is_whole = self.is("eq", &fraction, 0);
        let one = self.by("and", &negative, 1);
        let p = self.int("xor", &p, &negative);
        let next = self.int("add", &p, &one);
        let p = self.select(&is_whole, &next, &p);
        let sum = self.sum::<sfu::Ex2>(&p, 0);
        let significand = self.shifted(&sum, 7);
        let exponent = self.by("and", &p, 0xff80_0000);
        let exponent = self.by("add", &exponent, 126 << 23);
        let result = self.int("add", &exponent, &significand);
        self.mend(&rare, &result, |unit| {
            let tiny = unit.is("slt", &result, LEAST_NORMAL);
            let value = unit.select(&tiny, &all(0), &result);
            let positive = unit.by("xor", &negative, u32::MAX);
            let beyond = unit.by("and", &positive, INFINITY);
            let lanes = unit.is("uge", &magnitude, 0x4300_0000);
            let value = unit.select(&lanes, &beyond, &value);
            let lanes = unit.is("ugt", &magnitude, INFINITY);
            let value = unit.select(&lanes, &all(NAN), &value);
            if ftz {
                return value;
            }
            let square = unit.floats("fmul", &value, &value);
            let low = low(unit);
            unit.select(&low, &square, &value)
        })
    }

    /// high·by + low·UNIT as doubles, plus what `more` adds, cut off to floats.
    fn cut(
        &mut self,
        high: &Parts,
        by: f64,
        low: &Parts,
        unit: f64,
        more: impl Fn(&mut Text, usize, String) -> String,
    ) -> Parts {
        let Types {
            words,
            floats,
            doubles,
            longs,
            ..
        } = *self.types;
        let form = self.types.form();
        self.each(|text, at| {
            let high = text.convert("sitofp", words, &high[at], doubles);
            let high = text.binary("fmul", doubles, &high, &form.float_constant(64, by));
            let low = text.convert("sitofp", words, &low[at], doubles);
            let low = text.binary("fmul", doubles, &low, &form.float_constant(64, unit));
            let sum = text.binary("fadd", doubles, &high, &low);
            let sum = more(text, at, sum);
            let bits = text.convert("bitcast", doubles, &sum, longs);
            let bits = text.binary("and", longs, &bits, &form.constant(64, !0x1fff_ffff));
            let sum = text.convert("bitcast", longs, &bits, doubles);
            let float = text.convert("fptrunc", doubles, &sum, floats);
            text.bits(form, 32, &float)
        })
    }

    fn lg2(&mut self, a: &Parts, ftz: bool) -> Parts {
        let Types {
            words, doubles, longs, ..
        } = *self.types;
        let form = self.types.form();
        let rare = self.beyond(a, LEAST_NORMAL, INFINITY);
        let operand = self.normal(a, &rare, ftz);
        let (high, low) = self.sum::<sfu::Lg2>(&operand, 0);
        let magnitude = self.magnitude(&operand);
        let exponent = self.by("lshr", &magnitude, 23);
        let exponent = self.by("sub", &exponent, 127);
        // A quarter of the sum is the fraction in units of 2^-36; with the exponent, exactly.
        const UNIT: f64 = 1.0 / 68_719_476_736.0;
        let low = self.by("ashr", &low, 2);
        let result = self.cut(&high, 64.0 * UNIT, &low, UNIT, |text, at, fraction| {
            let exponent = text.convert("sitofp", words, &exponent[at], doubles);
            let sum = text.binary("fadd", doubles, &fraction, &exponent);
            // Negative numbers by one's complement.
            let bits = text.convert("bitcast", doubles, &sum, longs);
            let sign = text.binary("ashr", longs, &bits, &form.constant(64, 63));
            let below = text.binary("and", longs, &sign, &form.constant(64, UNIT.to_bits()));
            let below = text.convert("bitcast", longs, &below, doubles);
            text.binary("fadd", doubles, &sum, &below)
        });
        // The logarithm of one is zero: it takes no constant of rounding.
        let one = self.is("eq", &operand, 1f32.to_bits());
        let result = self.select(&one, &all(0), &result);
        self.mend(&rare, &result, |unit| {
            let lanes = unit.is("eq", &operand, INFINITY);
            let value = unit.select(&lanes, &all(INFINITY), &result);
            let lanes = unit.is("ugt", &operand, INFINITY);
            let value = unit.select(&lanes, &all(NAN), &value);
            let lanes = unit.is("ult", &magnitude, LEAST_NORMAL);
            let value = unit.select(&lanes, &all(SIGN | INFINITY), &value);
            if ftz {
                return value;
            }
            let small = unit.is_small(a);
            let less = unit.floats("fsub", &value, &all(24f32.to_bits()));
            unit.select(&small, &less, &value)
        })
    }

    fn circular(&mut self, a: &Parts, cosine: bool) -> Parts {
        let Types {
            words,
            floats,
            doubles,
            longs,
            ..
        } = *self.types;
        let form = self.types.form();
        let magnitude = self.magnitude(a);
        let rare = self.is("uge", &magnitude, INFINITY);
        // Turns: a/2π rounded towards zero. 24 by 24 bits: the double is exact.
        let float = self.as_floats(&magnitude);
        let turns = self.each(|text, at| {
            let wide = text.convert("fpext", floats, &float[at], doubles);
            let by = form.float_constant(64, f64::from(f32::from_bits(0x3e22_f983)));
            let turns = text.binary("fmul", doubles, &wide, &by);
            let bits = text.convert("bitcast", doubles, &turns, longs);
            let bits = text.binary("and", longs, &bits, &form.constant(64, !0x1fff_ffff));
            let turns = text.convert("bitcast", longs, &bits, doubles);
            let turns = text.convert("fptrunc", doubles, &turns, floats);
            text.bits(form, 32, &turns)
        });
        // Quarters of them with 23 bits of fraction, modulo four; from 2^24 on turns are whole.
        let small = self.is("ult", &turns, TWO_24);
        let turns = self.select(&small, &turns, &all(0));
        let whole = self.whole(&turns);
        let whole = self.each(|text, at| {
            let whole = text.convert("sitofp", words, &whole[at], floats);
            text.bits(form, 32, &whole)
        });
        let fraction = self.floats("fsub", &turns, &whole);
        let p = self.times(&fraction, 33_554_432.0);
        let mut p = self.whole(&p);
        if cosine {
            p = self.by("add", &p, 1 << 23);
        }
        let odd = self.by("shl", &p, 8);
        let odd = self.by("ashr", &odd, 31);
        let f = self.int("xor", &p, &odd);
        let (high, low) = self.sum::<sfu::Circular<false>>(&f, 0);
        const UNIT: f64 = 1.0 / 137_438_953_472.0;
        let value = self.cut(&high, 256.0 * UNIT, &low, UNIT, |_, _, sum| sum);
        let mut sign = self.by("shl", &p, 7);
        if !cosine {
            sign = self.int("xor", &sign, a);
        }
        let sign = self.by("and", &sign, SIGN);
        let result = self.int("or", &value, &sign);
        self.mend(&rare, &result, |unit| unit.select(&rare, &all(NAN), &result))
    }
}
