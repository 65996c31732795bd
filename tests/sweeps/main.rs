//! Every statement of `tests/data/statements.tsv.zst` that computes on registers, as PTX text, on edge values crossed with edge
//! values and on random ones, against models of other make: wide integers, LLVM's arbitrary-precision floats, tables of
//! the small formats. The list has what NVIDIA's assembler takes, a statement for every shape of operands, by category.
//! `FORMS=vmad` runs the statements that begin so; `DRIVER_UNDER_TEST` names another driver library, as a GPU's.

#[macro_use]
#[path = "../../cdylib-tests/c.rs"]
mod c;
mod comparisons;
mod conversions;
mod floats;
mod integers;
mod machine;
mod specials;
mod text;
mod values;

use std::collections::BTreeMap;

use text::{STRIDE, Statement, class};
use values::{Expected, Inputs, ones};

/// Edge values of a width cross in so many threads; as many again are random.
const CROSSED: usize = EDGES * EDGES;
const EDGES: usize = 32;
const THREADS: usize = CROSSED + 512;
/// All values of sixteen bits.
const ALL: usize = 1 << 16;
/// Statements in one text.
const BATCH: usize = 48;

const EDGES_16: [u16; EDGES] = [
    0, 1, 2, 31, 0x7f, 0x80, 0xff, 0x3ff, 0x400, 0x3800, 0x3c00, 0x3c01, 0x4100, 0x7bff, 0x7c00, 0x7c01, 0x7fff,
    0x8000, 0x8001, 0x8400, 0xbc00, 0xfbff, 0xfc00, 0xfe00, 0xffff, 0x3f80, 0xbf80, 0x7f7f, 0x7f80, 0x0180, 0x7ff7,
    0xfff7,
];
const EDGES_32: [u32; EDGES] = [
    0,
    1,
    2,
    7,
    31,
    32,
    33,
    0x80,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_ffff,
    0xffff_fff9,
    0x3f80_0000,
    0x3f80_0001,
    0xbf80_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fa0_0001,
    0x007f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x3f7f_ffff,
    0x4020_0000,
    0x43e0_0000,
    0xc3e8_0000,
    0x477f_f000,
    0x4f00_0000,
    0x7f7f_ffff,
    0x7ff7_3c00,
];
const EDGES_64: [u64; EDGES] = [
    0,
    1,
    2,
    31,
    32,
    63,
    64,
    65,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0x8000_0000_0000_0001,
    0xffff_ffff_ffff_ffff,
    0xffff_ffff_8000_0000,
    0x3ff0_0000_0000_0000,
    0x3ff0_0000_0000_0001,
    0xbff0_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff4_0000_0000_0001,
    0xfffc_0000_0000_0007,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x3fe0_0000_0000_0000,
    0x4004_0000_0000_0000,
    0x41df_ffff_ffe0_0000,
    0xc1e0_0000_0010_0000,
    0x43e0_0000_0000_0000,
    0x47ef_ffff_f000_0000,
    0x7fef_ffff_ffff_ffff,
    0x3690_0000_0000_0000,
];

/// xorshift64*, the same everywhere.
struct Random(u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn value(&mut self, bytes: usize) -> u128 {
        let (random, edge) = (self.next(), self.next() as usize);
        let wide = u128::from(self.next()) << 64 | u128::from(random.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Floats near one and near what small formats hold, halves in pairs, edges, few bits, anything.
        let value = match (bytes, random >> 61) {
            (_, 0) => return edge_of(bytes, edge),
            (4, 1 | 2) => u128::from(random as u32 & 0x87ff_ffff | 0x3800_0000),
            (4, 3) => u128::from(random as u32 & 0x80ff_e000 | 0x3d00_0000) + (wide & 0x1000),
            (4, 4) => u128::from(EDGES_16[edge % EDGES]) << 16 | u128::from(EDGES_16[random as usize % EDGES]),
            (8, 1) => u128::from(random & 0x801f_ffff_ffff_ffff | 0x3fe0_0000_0000_0000),
            (8, 2) => u128::from(random & 0x83ff_ffff_e000_0000 | 0x3c00_0000_0000_0000),
            (8, 3) => edge_of(4, edge) << 32 | edge_of(4, random as usize),
            (2, 1 | 2) => u128::from(random as u16 & 0x8fff | 0x3000),
            (_, 5) => 1 << (edge % (8 * bytes)),
            _ => wide,
        };
        value & ones(8 * bytes as u32)
    }
}
fn edge_of(bytes: usize, i: usize) -> u128 {
    let i = i % EDGES;
    match bytes {
        1 => u128::from(EDGES_16[i]) & 0xff,
        2 => EDGES_16[i].into(),
        4 => EDGES_32[i].into(),
        8 => EDGES_64[i].into(),
        _ => u128::from(EDGES_64[i]) << 64 | u128::from(EDGES_64[(i + 7) % EDGES]),
    }
}

struct Row {
    category: String,
    example: String,
}

fn rows() -> Vec<Row> {
    let packed = include_bytes!("../data/statements.tsv.zst");
    let text = String::from_utf8(zstd::decode_all(&packed[..]).expect("intact")).expect("text");
    let row = |line: &str| {
        let (category, example) = line.split_once('\t').expect("two columns");
        Row {
            category: category.to_owned(),
            example: example.to_owned(),
        }
    };
    text.lines().map(row).collect()
}

/// The model of a category.
fn results(category: &str, inputs: &Inputs) -> Option<Vec<Expected>> {
    if let Some(results) = specials::results(inputs) {
        return Some(results);
    }
    match (category, inputs.statement.name) {
        ("compare", "selp") => integers::results(inputs),
        ("compare", _) => comparisons::results(inputs),
        ("float" | "half", _) => floats::results(inputs),
        ("cvt", _) => conversions::results(inputs),
        _ => integers::results(inputs),
    }
}

/// The destinations, one for each result; `None` for a sink.
fn destinations<'a>(operand: &text::Operand<'a>) -> Vec<Option<&'a str>> {
    match operand {
        text::Operand::Register(name, _) => vec![Some(name)],
        text::Operand::Pair(a, b) => [destinations(a), destinations(b)].concat(),
        text::Operand::Group(list) => list.iter().flat_map(destinations).collect(),
        _ => vec![None],
    }
}

fn threads(statement: &Statement) -> usize {
    if statement.is_exhaustive() { ALL } else { THREADS }
}

fn batch(rows: &[(usize, &Row, Statement)], failures: &mut Vec<String>) -> usize {
    let (version, target) = machine::header();
    let mut source = format!(
        ".version {version}\n.target {target}\n.address_size 64\n\
         .global .align 16 .b8 gvar[4096];\n.shared .align 16 .b8 svar[1024];\n"
    );
    for (index, row, statement) in rows {
        source += &text::kernel(&format!("k{index}"), &row.example, statement, threads(statement));
    }
    let module = match machine::Module::load(&source) {
        Ok(module) => module,
        // A GPU does not have all.
        Err(_) if std::env::var_os("DRIVER_UNDER_TEST").is_some() => {
            let (first, second) = rows.split_at(rows.len() / 2);
            return match first {
                [] => 0,
                _ => batch(first, failures) + batch(second, failures),
            };
        }
        Err(error) => {
            failures.push(format!("a text does not load:\n{error}"));
            return 0;
        }
    };
    rows.iter()
        .filter(|(index, row, statement)| match check(*index, row, statement, &module) {
            Ok(()) => true,
            Err(error) => {
                failures.push(format!("{}\t{}\n  {error}", row.category, row.example));
                false
            }
        })
        .count()
}

fn check(index: usize, row: &Row, statement: &Statement, module: &machine::Module) -> Result<(), String> {
    let (written, read) = statement.registers();
    let mut random = Random(0x1234_5678_9abc_def1 ^ (index as u64) << 20);
    let carries = statement.carries();
    let (exhaustive, threads) = (statement.is_exhaustive(), threads(statement));
    let mut given = vec![0u8; (read.len() + usize::from(carries)).max(1) * threads * STRIDE];
    let mut inputs: Vec<Vec<u128>> = Vec::with_capacity(threads);
    for thread in 0..threads {
        let mut values = Vec::with_capacity(read.len() + 1);
        for (i, register) in read.iter().enumerate() {
            let (ty, bytes) = class(register);
            let value = match (i, thread) {
                // Halves of a pair go through all values, each in an order of its own.
                _ if exhaustive => ((thread * 0x9e35 % ALL) << 16 | thread) as u128 & ones(8 * bytes as u32),
                _ if ty == "pred" => u128::from(random.next() >> 63),
                (0, ..CROSSED) => edge_of(bytes, thread % EDGES),
                (1, ..CROSSED) => edge_of(bytes, thread / EDGES),
                (_, ..CROSSED) => edge_of(bytes, random.next() as usize >> 7),
                _ => random.value(bytes),
            };
            values.push(value);
        }
        if carries {
            values.push(u128::from(random.next() >> 63));
        }
        for (i, value) in values.iter().enumerate() {
            given[(i * threads + thread) * STRIDE..][..STRIDE].copy_from_slice(&value.to_le_bytes());
        }
        inputs.push(values);
    }
    let outputs = (written.len() + usize::from(carries)).max(1);
    let from = machine::Buffer::of(&given);
    let to = machine::Buffer::of(&vec![0xcd; outputs * threads * STRIDE]);
    module.launch(&format!("k{index}"), threads, [from.address, to.address])?;

    // The only shared variable lies at the start.
    let variables = [("gvar", module.variable("gvar")), ("svar", 0)];
    let left = to.read();
    let destinations = destinations(&statement.operands[0]);
    // `SWEEPS_SHOW` says how many differences of a statement are worth telling.
    let most = std::env::var("SWEEPS_SHOW")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let mut differences = Vec::new();
    let found = |output: usize, thread: usize, bytes: usize| {
        let mut raw = [0; STRIDE];
        raw[..bytes].copy_from_slice(&left[(output * threads + thread) * STRIDE..][..bytes]);
        u128::from_le_bytes(raw)
    };
    for (thread, values) in inputs.iter().enumerate() {
        let case = Inputs {
            statement,
            registers: read.iter().copied().zip(values.iter().copied()).collect(),
            carry: carries && values[read.len()] != 0,
            thread,
            threads,
            variables: &variables,
        };
        let expected = results(&row.category, &case).ok_or("no model")?;
        let mut checks: Vec<(&str, Expected, u128)> = Vec::with_capacity(2);
        for (destination, expected) in destinations.iter().zip(&expected) {
            let Some(name) = destination else { continue };
            let (_, bytes) = class(name);
            let output = written.iter().position(|w| w == name).expect("written");
            let expected = match expected {
                Expected::Bits(bits) => Expected::Bits(bits & ones(8 * bytes as u32)),
                other => other.clone(),
            };
            checks.push((*name, expected, found(output, thread, bytes)));
        }
        if carries {
            let expected = expected.last().expect("a carry").clone();
            checks.push(("carry", expected, found(written.len(), thread, 4)));
        }
        for (name, expected, found) in checks {
            if !expected.agrees(found) {
                let given: Vec<String> = case.registers.iter().map(|(r, v)| format!("{r} = {v:#x}")).collect();
                let given = given.join(", ");
                let carry = if case.carry { ", carry" } else { "" };
                differences.push(format!("{given}{carry}: {name} = {found:#x}, expected {expected:x?}"));
            }
        }
        if differences.len() >= most {
            break;
        }
    }
    match differences.is_empty() {
        true => Ok(()),
        false => Err(differences.join("\n  ")),
    }
}

#[test]
fn every_form_gives_what_its_model_gives() {
    let rows = rows();
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut failures = Vec::new();
    let only = std::env::var("FORMS").unwrap_or_default();
    let mut ready: Vec<(usize, &Row, Statement)> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        if !row.example.starts_with(&only) {
            continue;
        }
        *counts.entry(&row.category).or_default() += 1;
        match Statement::parse(&row.example) {
            Some(statement) => ready.push((index, row, statement)),
            None => failures.push(format!("{}\t{}\n  not understood", row.category, row.example)),
        }
    }
    let batches: Vec<_> = ready.chunks(BATCH).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let parts: Vec<(Vec<String>, usize)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    machine::start();
                    let (mut failures, mut good) = (Vec::new(), 0);
                    while let Some(rows) = batches.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                        good += batch(rows, &mut failures);
                    }
                    (failures, good)
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker"))
            .collect()
    });
    for (found, _) in &parts {
        failures.extend(found.iter().cloned());
    }
    let executed: usize = parts.iter().map(|part| part.1).sum();
    for (category, all) in &counts {
        let start = format!("{category}\t");
        let failed = failures.iter().filter(|f| f.starts_with(&start)).count();
        println!("{category}: {} of {all} forms executed", all - failed);
    }
    println!("total: {executed} of {} forms executed", rows.len());
    failures.sort();
    let shown = if std::env::var_os("SWEEPS_SHOW").is_some() {
        usize::MAX
    } else {
        40
    };
    assert!(
        failures.is_empty(),
        "{} forms differ:\n{}",
        failures.len(),
        failures
            .iter()
            .take(shown)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join("\n")
    );
}
