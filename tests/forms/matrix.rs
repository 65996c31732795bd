//! Forms of matrices that a warp holds. Each runs in warps with operands of their own: random bits, numbers near each other,
//! small ones, far apart ones, with infinities and NaN. Fragments of `mma` are put together and taken apart here, by the
//! manual's formulas; those of `wmma`, which are nobody's business, go through `wmma.load` and `wmma.store`.

use std::ffi::CString;
use std::ptr::null_mut;

use crate::c::*;
use crate::catalogue::Row;
use crate::device;
use crate::execute::Random;
use crate::model::matrix as model;
use crate::model::products::{self, Rule};

/// Warps of a launch, a block each.
const WARPS: usize = 5;
/// Bytes that a lane has for its operands, 16 for each register; a warp's together are its memory.
pub const RECORD: usize = 768;
pub const AREA: usize = 32 * RECORD;
const BATCH: usize = 100;
/// Where A, B and C of `wmma` lie in a warp's memory.
const PLACES: [usize; 3] = [0, 8192, 16384];

struct Case<'a> {
    row: &'a Row,
    words: Vec<&'static str>,
    operands: Vec<&'static str>,
}

fn registers(text: &'static str) -> Vec<&'static str> {
    let inner = text.trim_matches(['{', '}']);
    inner
        .split(',')
        .map(str::trim)
        .filter(|name| name.starts_with('%'))
        .collect()
}

fn class(register: &str) -> &'static str {
    match register
        .trim_start_matches('%')
        .trim_end_matches(|c: char| c.is_ascii_digit())
    {
        "rs" => "b16",
        "rd" => "b64",
        "f" => "f32",
        "fd" => "f64",
        _ => "b32",
    }
}

impl<'a> Case<'a> {
    fn of(row: &'a Row) -> Option<Case<'a>> {
        let (opcode, operands) = row.example.trim().strip_suffix(';')?.split_once(' ')?;
        let mut depth = 0;
        let operands = operands.split(move |c| {
            depth += i32::from(matches!(c, '[' | '{')) - i32::from(matches!(c, ']' | '}'));
            c == ',' && depth == 0
        });
        Some(Case {
            row,
            words: opcode.split('.').collect(),
            operands: operands.map(str::trim).collect(),
        })
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn shape(&self) -> (usize, usize, usize) {
        let of = |word: &&str| {
            let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
            let (n, k) = rest.split_once('k').unwrap_or((rest, "0"));
            Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
        };
        self.words.iter().find_map(of).expect("a shape")
    }

    /// Types in written order.
    fn types(&self) -> Vec<&'static str> {
        let known = [
            "f16", "bf16", "tf32", "f32", "f64", "s32", "s8", "u8", "s4", "u4", "b1", "e4m3", "e5m2", "e3m2", "e2m3",
            "e2m1",
        ];
        self.words.iter().copied().filter(|word| known.contains(word)).collect()
    }

    fn rule(&self) -> Rule {
        let types = self.types();
        let (d, a, b, c) = match types[..] {
            [d, c] => (d, "f16", "f16", c),
            [d, a, b, c, ..] => (d, a, b, c),
            _ => panic!("{}", self.row.form),
        };
        let rounding = ["rn", "rz", "rm", "rp"].into_iter().find(|word| self.has(word));
        let grouped = self.has("kind::mxf4") || self.has("kind::mxf4nvf4");
        let factors = match () {
            () if !self.has("block_scale") => 0,
            () if self.has("scale_vec::4X") => 4,
            () if grouped => 2,
            () => 1,
        };
        Rule {
            architecture: architecture(),
            a,
            b,
            c,
            d,
            k: self.shape().2,
            sparse: self.has("sp") || self.has("sp::ordered_metadata"),
            saturate: self.has("satfinite"),
            xor: self.has("xor"),
            rounding: rounding.unwrap_or("rn"),
            kind: match () {
                () if grouped => "mxf4",
                () if self.has("kind::f8f6f4") || self.has("kind::mxf8f6f4") => "f8f6f4",
                () => "",
            },
            factors,
            factor_type: if self.has("ue4m3") { "ue4m3" } else { "ue8m0" },
            quad_pair: self.has("m8n8k4") && a == "f16",
            wmma: self.words[0] == "wmma",
            warpgroup: false,
        }
    }

    /// Which lanes' metadata count: not always the first ones.
    fn selector(&self) -> usize {
        let rule = self.rule();
        let lanes = match (rule.a, rule.k) {
            ("f16" | "bf16", 16) | ("tf32", 8) => 4,
            ("f16" | "bf16", _) | ("tf32", _) | ("s8" | "u8", 32) | ("s4" | "u4", 64) => 2,
            _ => 1,
        };
        self.row.form.len() % lanes
    }

    fn statement(&self) -> String {
        if !self.words.iter().any(|word| word.starts_with("sp")) {
            return self.row.example.to_owned();
        }
        let mut operands: Vec<String> = self.operands.iter().map(|text| text.to_string()).collect();
        operands[5] = self.selector().to_string();
        let opcode = self.row.example.split(' ').next().expect("an opcode");
        format!("{opcode} {};", operands.join(", "))
    }

    fn kernel(&self, name: &str) -> String {
        let body = match self.words[0] {
            "wmma" if self.has("load") => self.loading(),
            "wmma" if self.has("store") => self.storing(),
            "wmma" => self.multiplying(),
            "ldmatrix" | "stmatrix" => self.rows(),
            _ => {
                let mut body = String::new();
                for (at, register) in self.sources().iter().enumerate() {
                    body += &format!("ld.global.{} {register}, [%from+{}];\n", class(register), 16 * at);
                }
                body + &self.statement() + &kept(&registers(self.operands[0]))
            }
        };
        format!(
            ".visible .entry {name}(.param .u64 from, .param .u64 to)\n{{ {REGISTERS}
ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; mov.u32 %warp, %ctaid.x; mov.u32 %lane, %tid.x;
mad.wide.u32 %from, %warp, {AREA}, %from; mad.wide.u32 %to, %warp, {AREA}, %to; mov.u64 %area, %from;
mad.wide.u32 %from, %lane, {RECORD}, %from; mov.u64 %out, %to; mad.wide.u32 %to, %lane, {RECORD}, %to;
{body}\nret; }}\n"
        )
    }

    fn sources(&self) -> Vec<&'static str> {
        self.operands[1..].iter().flat_map(|text| registers(text)).collect()
    }

    /// `ldmatrix`, `stmatrix`: a window of 32 rows, of which each lane names one.
    fn rows(&self) -> String {
        let generic = !self.words.iter().any(|word| word.starts_with("shared"));
        let mut body = String::from(
            ".shared .align 64 .b8 window[512]; mov.u64 %rd1, window; mad.wide.u32 %rd5, %lane, 16, %rd1;\n",
        );
        body += "ld.global.b64 %rd6, [%from]; st.shared.b64 [%rd5], %rd6; ld.global.b64 %rd6, [%from+8]; \
                 st.shared.b64 [%rd5+8], %rd6; bar.sync 0;\n";
        body += &format!(
            "mul.lo.u32 %row, %lane, 5; add.u32 %row, %row, 3; and.b32 %row, %row, 31; mul.lo.u32 %row, %row, 16; \
             and.b32 %sel, %lane, 1; mad.lo.u32 %row, %sel, {}, %row; cvt.u64.u32 %rd6, %row; add.u64 %rd1, %rd1, %rd6;\n",
            if self.has("s4") { 8 } else { 0 }
        );
        if generic {
            body += "cvta.shared.u64 %rd1, %rd1;\n";
        }
        if self.words[0] == "stmatrix" {
            for (at, register) in registers(self.operands[1]).iter().enumerate() {
                body += &format!("ld.global.b32 {register}, [%from+{}];\n", 16 + 16 * at);
            }
            return body
                + self.row.example
                + "\nbar.sync 0; ld.shared.b64 %rd6, [%rd5]; st.global.b64 [%to], %rd6; \
                   ld.shared.b64 %rd6, [%rd5+8]; st.global.b64 [%to+8], %rd6;";
        }
        body + self.row.example + &kept(&registers(self.operands[0]))
    }

    fn space(&self) -> &'static str {
        let found = self
            .words
            .iter()
            .find(|word| matches!(**word, "global" | "shared" | "shared::cta"));
        found.copied().unwrap_or("")
    }

    /// `%rd1` to a tile that lies where the instruction wants it, filled from the warp's memory if it is read.
    fn tile(&self, read: bool) -> String {
        let shared = self.space().starts_with("shared");
        let mut body = String::new();
        if shared {
            body += ".shared .align 64 .b8 window[16384]; mov.u64 %rd1, window;\n";
            if read {
                body += "mov.u32 %row, 0;\nfill: cvt.u64.u32 %rd5, %row; add.u64 %rd6, %area, %rd5; \
                         add.u64 %rd5, %rd1, %rd5; ld.global.b32 %sel, [%rd6]; st.shared.b32 [%rd5], %sel; \
                         add.u32 %row, %row, 4; setp.lt.u32 %p1, %row, 16384; @%p1 bra fill;\n";
            }
        } else {
            body += if read {
                "mov.u64 %rd1, %area;\n"
            } else {
                "mov.u64 %rd1, %out;\n"
            };
        }
        if self.has_stride() {
            body += &format!("mov.u32 %r5, {};\n", self.stride());
        }
        body
    }

    fn has_stride(&self) -> bool {
        self.operands.last() == Some(&"%r5")
    }

    /// Lines of a tile, and elements of each.
    fn lines(&self) -> (usize, usize) {
        let (m, n, k) = self.shape();
        let (rows, columns) = match () {
            () if self.has("a") => (m, k),
            () if self.has("b") => (k, n),
            () => (m, n),
        };
        if self.has("row") {
            (rows, columns)
        } else {
            (columns, rows)
        }
    }

    /// How many elements apart lines lie.
    fn stride(&self) -> usize {
        let length = self.lines().1;
        let step = 128 / model::bits(self.types()[0], "").min(128);
        if self.has_stride() {
            length.next_multiple_of(step) + 3 * step
        } else {
            length
        }
    }

    fn loading(&self) -> String {
        self.tile(true) + self.row.example + &kept(&registers(self.operands[0]))
    }

    fn storing(&self) -> String {
        let shape = self
            .words
            .iter()
            .find(|word| word.starts_with('m') && word.contains('n'))
            .expect("a shape");
        let data = self.operands[1];
        let mut body = self.tile(false);
        body += &format!(
            "wmma.load.c.sync.aligned.row.{shape}.global.{} {data}, [%area];\n",
            self.types()[0]
        );
        body += self.row.example;
        if self.space().starts_with("shared") {
            body += "\nbar.sync 0; mov.u32 %row, 0;\nback: cvt.u64.u32 %rd5, %row; add.u64 %rd6, %out, %rd5; \
                     add.u64 %rd5, %rd1, %rd5; ld.shared.b32 %sel, [%rd5]; st.global.b32 [%rd6], %sel; \
                     add.u32 %row, %row, 4; setp.lt.u32 %p1, %row, 16384; @%p1 bra back;";
        }
        body
    }

    fn multiplying(&self) -> String {
        let rule = self.rule();
        let shape = self
            .words
            .iter()
            .find(|word| word.starts_with('m') && word.contains('n'))
            .expect("a shape");
        let layouts: Vec<_> = self
            .words
            .iter()
            .filter(|word| matches!(**word, "row" | "col"))
            .collect();
        let parts = [
            ("a", layouts[0], rule.a),
            ("b", layouts[1], rule.b),
            ("c", &"row", rule.c),
        ];
        let mut body = String::new();
        for (i, (role, layout, ty)) in parts.into_iter().enumerate() {
            body += &format!(
                "add.u64 %rd1, %area, {}; wmma.load.{role}.sync.aligned.{layout}.{shape}.global.{ty} {}, [%rd1];\n",
                PLACES[i],
                self.operands[i + 1]
            );
        }
        body += self.row.example;
        body + &format!(
            "\nwmma.store.d.sync.aligned.row.{shape}.global.{} [%out], {};",
            rule.d, self.operands[0]
        )
    }
}

const REGISTERS: &str = ".reg .b16 %rs<16>; .reg .b32 %r<200>; .reg .b64 %rd<20>; .reg .f32 %f<200>; \
     .reg .f64 %fd<200>; .reg .pred %p<4>; .reg .b64 %from, %to, %area, %out; .reg .b32 %sel, %row, %lane, %warp;";

/// Writes registers to the lane's record.
fn kept(registers: &[&str]) -> String {
    let store =
        |(at, register): (usize, &&str)| format!("\nst.global.{} [%to+{}], {register};", class(register), 16 * at);
    registers.iter().enumerate().map(store).collect()
}

/// Whose tensor cores the library is told to be.
pub fn architecture() -> u32 {
    let device = device::device().map_or("sm_120", |(_, target)| target);
    let name = std::env::var("MARGAY_TENSOR_ARCH").unwrap_or_else(|_| device.into());
    let number = name.trim_start_matches("sm_").trim_end_matches('a');
    number.parse().expect("a number")
}

/// A code of a type, in one of several styles of numbers.
fn code(random: &mut Random, ty: &str, style: usize) -> u64 {
    let (exponent, fraction) = match ty {
        "f16" => (5, 10),
        "bf16" => (8, 7),
        "tf32" | "f32" => (8, 23),
        "f64" => (11, 52),
        "e4m3" => (4, 3),
        "e5m2" => (5, 2),
        "e3m2" => (3, 2),
        "e2m3" => (2, 3),
        "e2m1" => (2, 1),
        _ => return random.next() & ((1 << model::bits(ty, "")) - 1),
    };
    let top = (1u64 << exponent) - 1;
    let middle = top / 2;
    let field = match style % 5 {
        0 => random.next() & top,
        1 => middle - 1 + random.next() % 3,
        2 if random.next().is_multiple_of(4) => return (random.next() & 1) << (exponent + fraction),
        2 => random.next() % 3,
        3 => random.next() % top,
        _ if random.next().is_multiple_of(32) => top,
        _ => middle.saturating_sub(4) + random.next() % 8 % top,
    }
    .min(top);
    let low = match random.next() % 8 {
        0 => 0,
        1 => (1 << fraction) - 1,
        _ => random.next() & ((1 << fraction) - 1),
    };
    (random.next() & 1) << (exponent + fraction) | field << fraction | low
}

/// How far an element is from the low end of its place in a register.
fn shift(ty: &str, kind: &str) -> usize {
    if ty == "e2m1" && kind == "f8f6f4" { 2 } else { 0 }
}

pub fn put(memory: &mut [u8], bit: usize, bits: usize, value: u64) {
    for i in 0..bits {
        let (byte, at) = ((bit + i) / 8, (bit + i) % 8);
        memory[byte] = memory[byte] & !(1 << at) | ((value >> i & 1) as u8) << at;
    }
}

pub fn get(memory: &[u8], bit: usize, bits: usize) -> u64 {
    if bit.is_multiple_of(8) && bits.is_multiple_of(8) {
        let mut bytes = [0; 8];
        bytes[..bits / 8].copy_from_slice(&memory[bit / 8..][..bits / 8]);
        return u64::from_le_bytes(bytes);
    }
    (0..bits).fold(0, |value, i| {
        let (byte, at) = ((bit + i) / 8, (bit + i) % 8);
        value | u64::from(memory[byte] >> at & 1) << i
    })
}

/// The bit at which element `i` of a fragment begins in a lane's record.
pub fn bit(bits: usize, i: usize) -> usize {
    let each = (32 / bits).max(1);
    i / each * 128 + i % each * bits
}

/// How many forms were executed, and what went wrong.
pub fn run(rows: &[&Row]) -> (usize, Vec<String>) {
    if rows.is_empty() {
        return (0, Vec::new());
    }
    let cases: Vec<Case> = rows.iter().filter_map(|row| Case::of(row)).collect();
    let (mut input, mut output) = (0, 0);
    ok(cuMemAlloc(&mut input, WARPS * AREA));
    ok(cuMemAlloc(&mut output, WARPS * AREA));
    let mut failures = Vec::new();
    let mut by_version: std::collections::BTreeMap<Option<(&str, &str)>, Vec<&Case>> = Default::default();
    for case in &cases {
        by_version.entry(case.row.last).or_default().push(case);
    }
    for cases in by_version.into_values() {
        let mut batches: Vec<&[&Case]> = cases.chunks(BATCH).collect();
        while let Some(batch) = batches.pop() {
            let (version, target) = device::header(batch[0].row, ("9.5", "sm_120a"));
            let mut text = format!(".version {version}\n.target {target}\n.address_size 64\n");
            for (i, case) in batch.iter().enumerate() {
                text += &case.kernel(&format!("k{i}"));
            }
            let text = CString::new(text).expect("text");
            let mut module = null_mut();
            let loaded = cuModuleLoadData(&mut module, text.as_ptr().cast());
            if loaded != CUDA_SUCCESS {
                if device::device().is_some() && batch.len() > 1 {
                    let (first, second) = batch.split_at(batch.len() / 2);
                    batches.extend([first, second]);
                    continue;
                }
                failures.push(format!("module of {} and others: error {loaded}", batch[0].row.form));
                if let Ok(file) = std::env::var("FORMS_KEEP") {
                    let _ = std::fs::write(file, text.as_bytes());
                }
                continue;
            }
            for (i, case) in batch.iter().enumerate() {
                if let Err(why) = one(module, &format!("k{i}"), case, input, output) {
                    failures.push(format!("{}: {why}", case.row.example));
                }
            }
            ok(cuModuleUnload(module));
        }
    }
    ok(cuMemFree(input));
    ok(cuMemFree(output));
    (cases.len(), failures)
}

fn one(module: CUmodule, name: &str, case: &Case, input: CUdeviceptr, output: CUdeviceptr) -> Result<(), String> {
    let mut function = null_mut();
    let name = CString::new(name).expect("a name");
    ok(cuModuleGetFunction(&mut function, module, name.as_ptr()));
    let mut random = Random::of(case.row.example);
    let mut memory: Vec<u8> = (0..WARPS * AREA).map(|_| random.next() as u8).collect();
    for warp in 0..WARPS {
        fill(case, &mut random, warp, &mut memory[warp * AREA..][..AREA]);
    }
    ok(cuMemcpyHtoD(input, memory.as_ptr().cast(), memory.len()));
    let blank = vec![0xccu8; memory.len()];
    ok(cuMemcpyHtoD(output, blank.as_ptr().cast(), blank.len()));
    let (mut from, mut to) = (input, output);
    let mut parameters = [(&raw mut from).cast(), (&raw mut to).cast()];
    let (blocks, lanes) = (WARPS as u32, 32);
    let launched = cuLaunchKernel(
        function,
        blocks,
        1,
        1,
        lanes,
        1,
        1,
        0,
        null_mut(),
        parameters.as_mut_ptr(),
        null_mut(),
    );
    let ended = if launched == CUDA_SUCCESS {
        cuCtxSynchronize()
    } else {
        launched
    };
    if ended != CUDA_SUCCESS {
        return Err(format!("error {ended}"));
    }
    let mut found = vec![0u8; memory.len()];
    ok(cuMemcpyDtoH(found.as_mut_ptr().cast(), output, found.len()));
    for warp in 0..WARPS {
        let (memory, found) = (&memory[warp * AREA..][..AREA], &found[warp * AREA..][..AREA]);
        let compared = match case.words[0] {
            "wmma" if case.has("load") => loaded(case, memory, found),
            "wmma" if case.has("store") => stored(case, memory, found),
            "wmma" => multiplied(case, memory, found),
            "ldmatrix" => rows_loaded(case, memory, found),
            "stmatrix" => rows_stored(case, memory, found),
            "movmatrix" => transposed(memory, found),
            _ => fragments(case, memory, found),
        };
        compared.map_err(|why| format!("warp {warp}: {why}"))?;
    }
    Ok(())
}

/// Numbers for the operands that are not to be any bits at all.
fn fill(case: &Case, random: &mut Random, warp: usize, memory: &mut [u8]) {
    if !matches!(case.words[0], "mma" | "wmma") || case.has("load") || case.has("store") {
        return;
    }
    let rule = case.rule();
    let (m, n, k) = case.shape();
    if case.words[0] == "wmma" {
        for (place, ty, count) in [
            (PLACES[0], rule.a, m * k),
            (PLACES[1], rule.b, k * n),
            (PLACES[2], rule.c, m * n),
        ] {
            let bits = model::bits(ty, "");
            for i in 0..count {
                put(memory, 8 * place + i * bits, bits, code(random, ty, warp));
            }
        }
        return;
    }
    let lists: Vec<Vec<&str>> = case.operands[1..].iter().map(|text| registers(text)).collect();
    for lane in 0..32 {
        let mut at = 0;
        let record = &mut memory[lane * RECORD..][..RECORD];
        for (list, ty) in lists.iter().zip([rule.a, rule.b, rule.c]) {
            let kind = if ty == rule.c { "" } else { rule.kind };
            let bits = model::bits(ty, kind);
            for _ in list {
                for part in 0..(32 / bits).max(1) {
                    let value = code(random, ty, warp) << shift(ty, kind);
                    put(record, 128 * at + part * bits, bits, value);
                }
                at += 1;
            }
        }
        if rule.sparse {
            // Two of four, ascending; of two, the first or the second.
            let choices: &[u64] = if rule.a == "tf32" {
                &[0x4, 0xe]
            } else {
                &[0x4, 0x8, 0xc, 0x9, 0xd, 0xe]
            };
            let word = (0..8).fold(0, |word, i| {
                word | choices[random.next() as usize % choices.len()] << (4 * i)
            });
            put(record, 128 * at, 32, word);
            at += 1;
        }
        if rule.factors > 0 {
            for side in 0..2 {
                for byte in 0..4 {
                    let value = match warp % 5 {
                        0 => random.next() & 0xff,
                        _ if rule.factor_type == "ue4m3" => 0x30 + random.next() % 16,
                        _ => 120 + random.next() % 14,
                    };
                    put(record, 128 * at + 8 * byte, 8, value);
                }
                at += 1;
                if !registers(case.operands[case.operands.len() - 3 + 2 * side]).is_empty() {
                    for id in ids(case, warp)[side] {
                        put(record, 128 * at, 16, id);
                        at += 1;
                    }
                }
            }
        }
    }
}

/// Byte and thread of A's factors, and of B's, as a warp has them in registers.
fn ids(case: &Case, warp: usize) -> [[u64; 2]; 2] {
    let rule = case.rule();
    let byte = |warp: u64| match rule.factors {
        1 => warp % 4,
        2 => warp % 2 * 2,
        _ => 0,
    };
    let warp = warp as u64;
    [[byte(warp), warp % 2], [byte(warp / 2), (warp + 1) % 4]]
}

fn differs(place: (usize, usize), found: u64, expected: u64) -> String {
    format!("element {place:?} is {found:#x}, expected {expected:#x}")
}

/// `.satfinite` of halves: the largest number for infinity, zero for NaN.
fn finite(rule: &Rule, bits: u64) -> u64 {
    let (infinity, sign) = match rule.d {
        "f16" => (0x7c00, 0x8000),
        "f32" => (0x7f80_0000, 0x8000_0000u64),
        _ => return bits,
    };
    match bits & !sign {
        _ if !rule.saturate => bits,
        magnitude if magnitude == infinity => bits & sign | (infinity - 1),
        magnitude if magnitude > infinity => 0,
        _ => bits,
    }
}

fn multiplied(case: &Case, memory: &[u8], found: &[u8]) -> Result<(), String> {
    let rule = case.rule();
    let (m, n, k) = case.shape();
    let layouts: Vec<bool> = case
        .words
        .iter()
        .filter(|w| matches!(**w, "row" | "col"))
        .map(|w| *w == "row")
        .collect();
    let element = |place: usize, ty: &str, at: usize| {
        let bits = model::bits(ty, "");
        get(memory, 8 * place + at * bits, bits)
    };
    let kept: Vec<usize> = (0..k).collect();
    let rows: Vec<Vec<u64>> = (0..m)
        .map(|row| {
            let at = |i| if layouts[0] { row * k + i } else { i * m + row };
            (0..k).map(|i| element(PLACES[0], rule.a, at(i))).collect()
        })
        .collect();
    let columns: Vec<Vec<u64>> = (0..n)
        .map(|column| {
            let at = |i| if layouts[1] { i * n + column } else { column * k + i };
            (0..k).map(|i| element(PLACES[1], rule.b, at(i))).collect()
        })
        .collect();
    for (row, a) in rows.iter().enumerate() {
        for (column, b) in columns.iter().enumerate() {
            let c = element(PLACES[2], rule.c, row * n + column);
            let expected = finite(&rule, products::dot(&rule, a, b, &kept, [&[], &[]], c));
            let bits = model::bits(rule.d, "");
            let result = get(found, (row * n + column) * bits, bits);
            if !model::same(rule.d, result, expected) {
                return Err(differs((row, column), result, expected));
            }
        }
    }
    Ok(())
}

/// Operands of a lane in order, as numbers of registers.
fn starts(case: &Case) -> Vec<usize> {
    let mut at = 0;
    case.operands[1..]
        .iter()
        .map(|text| {
            let start = at;
            at += registers(text).len();
            start
        })
        .collect()
}

fn fragments(case: &Case, memory: &[u8], found: &[u8]) -> Result<(), String> {
    let rule = case.rule();
    if rule.quad_pair {
        return quad_pairs(case, &rule, memory, found);
    }
    let (m, n, k) = case.shape();
    let starts = starts(case);
    let (wa, wb) = (model::bits(rule.a, rule.kind), model::bits(rule.b, rule.kind));
    let there = if rule.sparse { k / 2 } else { k };
    let (mut packed, mut b) = (vec![vec![0; there]; m], vec![vec![0; k]; n]);
    let mut c = vec![vec![0; n]; m];
    let record = |lane: usize| &memory[lane * RECORD..][..RECORD];
    for lane in 0..32 {
        for i in 0..m * there / 32 {
            let (row, column) = model::a((m, there), wa, lane, i);
            let value = get(record(lane), 128 * starts[0] + bit(wa, i), wa);
            packed[row][column] = element(rule.a, rule.kind, value);
        }
        for i in 0..n * k / 32 {
            let (row, column) = model::b(k, wb, lane, i);
            let value = get(record(lane), 128 * starts[1] + bit(wb, i), wb);
            b[column][row] = element(rule.b, rule.kind, value);
        }
        for i in 0..m * n / 32 {
            let (row, column) = model::c(m, lane, i);
            let bits = model::bits(rule.c, "");
            c[row][column] = get(record(lane), 128 * starts[2] + bit(bits, i), bits);
        }
    }
    let metadata = |lane: usize| get(record(lane), 128 * starts.get(3).copied().unwrap_or(0), 32);
    let columns = |row: usize| -> Vec<usize> {
        if rule.sparse {
            sparse_columns(&rule, case.selector(), row, &metadata)
        } else {
            (0..k).collect()
        }
    };
    let warp_ids = scale_ids(case, &rule, &starts, &record);
    for row in 0..m {
        let kept = columns(row);
        let mut a = vec![0; k];
        for (place, &column) in kept.iter().enumerate() {
            a[column] = packed[row][place];
        }
        for column in 0..n {
            let factors = |side: usize| -> Vec<u8> {
                let [byte, thread] = warp_ids[side];
                let lane = if side == 0 {
                    4 * (row % 8) + 2 * thread + row / 8
                } else {
                    4 * column + thread
                };
                let at = scale_start(case, &rule, &starts, side);
                (0..rule.factors)
                    .map(|i| get(record(lane), 128 * at + 8 * (byte + i), 8) as u8)
                    .collect()
            };
            let (one, other) = (factors(0), factors(1));
            let expected = products::dot(&rule, &a, &b[column], &kept, [&one, &other], c[row][column]);
            let lane = (0..32)
                .flat_map(|lane| (0..m * n / 32).map(move |i| (lane, i)))
                .find(|&(lane, i)| model::c(m, lane, i) == (row, column));
            let (lane, i) = lane.expect("some lane has it");
            let bits = model::bits(rule.d, "");
            let result = get(&found[lane * RECORD..], bit(bits, i), bits);
            if !model::same(rule.d, result, expected) {
                return Err(differs((row, column), result, expected));
            }
        }
    }
    Ok(())
}

/// An element's own bits, of those that it has in a register.
fn element(ty: &str, kind: &str, value: u64) -> u64 {
    let value = value >> shift(ty, kind);
    match ty {
        "e3m2" | "e2m3" => value & 0x3f,
        "e2m1" => value & 0xf,
        _ => value,
    }
}

/// Which register has the factors of A or B.
fn scale_start(case: &Case, rule: &Rule, starts: &[usize], side: usize) -> usize {
    if rule.factors == 0 {
        return 0;
    }
    starts[case.operands.len() - 5 + 2 * side]
}

fn scale_ids<'m>(case: &Case, rule: &Rule, starts: &[usize], record: &impl Fn(usize) -> &'m [u8]) -> [[usize; 2]; 2] {
    if rule.factors == 0 {
        return [[0; 2]; 2];
    }
    [0, 1].map(|side| {
        let text = case.operands[case.operands.len() - 3 + 2 * side];
        let at = starts[case.operands.len() - 4 + 2 * side];
        match registers(text)[..] {
            [] => {
                let mut numbers = text
                    .trim_matches(['{', '}'])
                    .split(',')
                    .map(|n| n.trim().parse().expect("a number"));
                [numbers.next().expect("two"), numbers.next().expect("two")]
            }
            _ => [0, 1].map(|i| get(record(0), 128 * (at + i), 16) as usize),
        }
    })
}

/// The columns of a row's elements (PTX ISA, Sparse matrix storage, and the figures of each shape).
fn sparse_columns(rule: &Rule, selector: usize, row: usize, metadata: &impl Fn(usize) -> u64) -> Vec<usize> {
    let (g, upper) = (row % 8, row / 8);
    (0..rule.k / 2)
        .map(|p| {
            let (lane, at) = match (rule.a, rule.k) {
                ("f16" | "bf16", 16) => (selector, 16 * upper + 2 * p),
                ("f16" | "bf16", 32) => (2 * selector + p / 8, 16 * upper + 2 * (p % 8)),
                ("tf32", 8) => (selector, 16 * upper + 4 * p),
                ("tf32", 16) => (2 * selector + p / 4, 16 * upper + 4 * (p % 4)),
                ("s4" | "u4", 64) => (2 * selector + upper, p / 2 * 2),
                (_, 128) => (upper + 2 * (p / 32), p % 32 / 2 * 2),
                (_, 32) => (2 * selector + upper, 2 * p),
                (_, 64) => (upper + 2 * (p / 16), p % 16 * 2),
                other => panic!("{other:?}"),
            };
            let field = metadata(4 * g + lane) >> at;
            match rule.a {
                "tf32" => 2 * p + (field >> 3 & 1) as usize,
                _ if matches!(rule.a, "s4" | "u4") || rule.kind == "mxf4" => {
                    p / 4 * 8 + 2 * (field & 3) as usize + p % 2
                }
                _ => p / 2 * 4 + (field & 3) as usize,
            }
        })
        .collect()
}

/// `mma.m8n8k4` of halves (PTX ISA, Matrix Fragments for mma.m8n8k4 with .f16).
fn quad_pairs(case: &Case, rule: &Rule, memory: &[u8], found: &[u8]) -> Result<(), String> {
    let layouts: Vec<bool> = case
        .words
        .iter()
        .filter(|w| matches!(**w, "row" | "col"))
        .map(|w| *w == "row")
        .collect();
    let starts = starts(case);
    let place = |ty: &str, lane: usize, i: usize| {
        let high = if lane >= 16 { 4 } else { 0 };
        match ty {
            "f16" => ((lane & 3) + high, i),
            _ => ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)),
        }
    };
    for quad in 0..4 {
        let lanes: Vec<usize> = (0..32).filter(|lane| lane % 16 / 4 == quad).collect();
        let (mut a, mut b) = (vec![vec![0; 4]; 8], vec![vec![0; 4]; 8]);
        let mut c = vec![vec![0; 8]; 8];
        for &lane in &lanes {
            let record = &memory[lane * RECORD..][..RECORD];
            let high = if lane >= 16 { 4 } else { 0 };
            for i in 0..4 {
                let (row, k) = if layouts[0] {
                    ((lane & 3) + high, i)
                } else {
                    (i + high, lane & 3)
                };
                a[row][k] = get(record, 128 * starts[0] + bit(16, i), 16);
                let (k, column) = if layouts[1] {
                    (lane & 3, i + high)
                } else {
                    (i, (lane & 3) + high)
                };
                b[column][k] = get(record, 128 * starts[1] + bit(16, i), 16);
            }
            for i in 0..8 {
                let (row, column) = place(rule.c, lane, i);
                let bits = model::bits(rule.c, "");
                c[row][column] = get(record, 128 * starts[2] + bit(bits, i), bits);
            }
        }
        for &lane in &lanes {
            for i in 0..8 {
                let (row, column) = place(rule.d, lane, i);
                let expected = products::dot(rule, &a[row], &b[column], &[0, 1, 2, 3], [&[], &[]], c[row][column]);
                let bits = model::bits(rule.d, "");
                let result = get(&found[lane * RECORD..], bit(bits, i), bits);
                if result != expected {
                    return Err(format!("quad {quad}: {}", differs((row, column), result, expected)));
                }
            }
        }
    }
    Ok(())
}

/// A fragment has every element of its tile, each as often as the others.
fn loaded(case: &Case, memory: &[u8], found: &[u8]) -> Result<(), String> {
    let bits = model::bits(case.types()[0], "");
    let (lines, length) = case.lines();
    let mut wanted: Vec<u64> = (0..lines)
        .flat_map(|line| (0..length).map(move |i| line * case.stride() + i))
        .map(|at| get(memory, at * bits, bits))
        .collect();
    let count = registers(case.operands[0]).len() * (32 / bits).max(1);
    let mut held: Vec<u64> = (0..32)
        .flat_map(|lane| (0..count).map(move |i| (lane, i)))
        .map(|(lane, i)| get(&found[lane * RECORD..], bit(bits, i), bits))
        .collect();
    let times = held.len() / wanted.len();
    wanted = wanted
        .iter()
        .flat_map(|value| std::iter::repeat_n(*value, times))
        .collect();
    wanted.sort_unstable();
    held.sort_unstable();
    if wanted == held {
        Ok(())
    } else {
        Err("the fragment has other elements than the tile".into())
    }
}

fn stored(case: &Case, memory: &[u8], found: &[u8]) -> Result<(), String> {
    let bits = model::bits(case.types()[0], "");
    let (m, n, _) = case.shape();
    let by_rows = case.has("row");
    for row in 0..m {
        for column in 0..n {
            let (line, along) = if by_rows { (row, column) } else { (column, row) };
            let expected = get(memory, (row * n + column) * bits, bits);
            let result = get(found, (line * case.stride() + along) * bits, bits);
            if result != expected {
                return Err(differs((row, column), result, expected));
            }
        }
    }
    Ok(())
}

/// The bytes of the row that a lane names, of the window that the lanes filled.
fn named(case: &Case, memory: &[u8], lane: usize) -> Vec<u8> {
    let row = (lane * 5 + 3) % 32;
    let (start, bytes) = if case.has("s4") { (8 * (lane & 1), 8) } else { (0, 16) };
    memory[row * RECORD + start..][..bytes].to_vec()
}

fn rows_loaded(case: &Case, memory: &[u8], found: &[u8]) -> Result<(), String> {
    let wide = case.has("m16n16");
    let each = if wide { 16 } else { 8 };
    // A row as elements.
    let row = |lane: usize| -> Vec<u64> {
        let bytes = named(case, memory, lane);
        let (count, bits) = match () {
            () if case.has("b16") => (8, 16),
            () if case.has("b6x16_p32") => (16, 6),
            () if case.has("b4x16_p64") || case.has("s4") => (16, 4),
            () => (16, 8),
        };
        let signed = |value: u64| {
            if case.has("s4") {
                u64::from((((value as u8) << 4) as i8 >> 4) as u8)
            } else {
                value
            }
        };
        (0..count).map(|i| signed(get(&bytes, i * bits, bits))).collect()
    };
    for (register, _) in registers(case.operands[0]).iter().enumerate() {
        for lane in 0..32 {
            let (g, t) = (lane / 4, lane % 4);
            let matrix = register * 8 / each;
            let of = |r: usize, column: usize| row(matrix * each + r)[column];
            let expected = match () {
                () if wide => (0..4).fold(0, |word, i| word | of(4 * t + i, g + register % 2 * 8) << (8 * i)),
                () if case.has("trans") => of(2 * t, g) | of(2 * t + 1, g) << 16,
                () if case.has("b16") => of(g, 2 * t) | of(g, 2 * t + 1) << 16,
                () => (0..4).fold(0, |word, i| word | of(g, 4 * t + i) << (8 * i)),
            };
            let result = get(&found[lane * RECORD..], 128 * register, 32);
            if result != expected {
                return Err(differs((lane, register), result, expected));
            }
        }
    }
    Ok(())
}

fn rows_stored(case: &Case, memory: &[u8], found: &[u8]) -> Result<(), String> {
    let mut window: Vec<Vec<u8>> = (0..32).map(|lane| memory[lane * RECORD..][..16].to_vec()).collect();
    for (matrix, _) in registers(case.operands[1]).iter().enumerate() {
        for lane in 0..32 {
            let (g, t) = (lane / 4, lane % 4);
            for byte in 0..4 {
                let value = memory[lane * RECORD + 16 + 16 * matrix + byte];
                let (row, column) = match () {
                    () if case.has("b8") => (2 * t + byte % 2, g + byte / 2 * 8),
                    () if case.has("trans") => (2 * t + byte / 2, 2 * g + byte % 2),
                    () => (g, 4 * t + byte),
                };
                window[((8 * matrix + row) * 5 + 3) % 32][column] = value;
            }
        }
    }
    for lane in 0..32 {
        if found[lane * RECORD..][..16] != window[lane][..] {
            return Err(format!(
                "row {lane} is {:x?}, expected {:x?}",
                &found[lane * RECORD..][..16],
                window[lane]
            ));
        }
    }
    Ok(())
}

fn transposed(memory: &[u8], found: &[u8]) -> Result<(), String> {
    let half =
        |bytes: &[u8], row: usize, column: usize| get(&bytes[(4 * row + column / 2) * RECORD..], 16 * (column % 2), 16);
    for row in 0..8 {
        for column in 0..8 {
            let (result, expected) = (half(found, row, column), half(memory, column, row));
            if result != expected {
                return Err(differs((row, column), result, expected));
            }
        }
    }
    Ok(())
}
