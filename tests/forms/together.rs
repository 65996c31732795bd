//! Forms in which threads meet: shuffles, votes, matches and reductions of a warp, barriers of warps and blocks. A block of
//! three warps runs each, with operands of its own for every thread; of each warp some lanes stay away where the form has a
//! member mask in a register. The models are the manual's pseudo-code, over all lanes of a warp at once.

use std::ffi::CString;
use std::ptr::null_mut;

use crate::c::*;
use crate::catalogue::Row;
use crate::device;
use crate::execute::Random;

const THREADS: usize = 96;
const WARP: usize = 32;
/// 64-bit words of a thread, in and out.
const RECORD: usize = 8;
/// Words in: the operands by their place, then whether the thread takes part.
const PART: usize = 6;
/// Words out: the destination, its predicate, what a neighbour wrote before.
const PREDICATE: usize = 1;
const NEIGHBOUR: usize = 2;
const ROUNDS: usize = 6;

struct Case<'a> {
    row: &'a Row,
    words: Vec<&'static str>,
    operands: Vec<&'static str>,
}

/// What each thread brings and leaves.
struct Round {
    input: Vec<[u64; RECORD]>,
    output: Vec<[u64; RECORD]>,
}

impl Case<'_> {
    fn of(row: &Row) -> Option<Case<'_>> {
        let text = row.example.trim().strip_suffix(';')?;
        let (opcode, operands) = text.split_once(' ')?;
        Some(Case {
            row,
            words: opcode.split('.').collect(),
            operands: operands.split(',').map(str::trim).collect(),
        })
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// A barrier of the block.
    fn is_block_barrier(&self) -> bool {
        matches!(self.words[0], "bar" | "barrier") && !self.has("warp")
    }

    /// Operands before those that are read.
    fn results(&self) -> usize {
        let none = matches!(self.words[0], "bar" | "barrier") && !self.has("red");
        usize::from(!none)
    }

    /// The place of the member mask, if there is one.
    fn members(&self) -> Option<usize> {
        let has = (self.has("sync") && !self.is_block_barrier()).then(|| self.operands.len() - 1);
        has.filter(|_| !matches!(self.words[0], "bar") || self.has("warp"))
    }

    /// The value of the operand at a place, which a register holds or the text says.
    fn value(&self, place: usize, thread: &[u64; RECORD]) -> u64 {
        let text = self.operands[place];
        match text.trim_start_matches('!') {
            register if register.starts_with('%') => thread[place] ^ u64::from(text.starts_with('!')),
            float if float.starts_with("0f") => u64::from_str_radix(&float[2..], 16).expect("hexadecimal"),
            number if number.starts_with("0x") => u64::from_str_radix(&number[2..], 16).expect("hexadecimal"),
            number => number.parse().expect("a number"),
        }
    }

    fn kernel(&self, name: &str) -> String {
        let mut body = String::new();
        for (place, text) in self.operands.iter().enumerate().skip(self.results()) {
            let register = text.trim_start_matches('!');
            let class = match register.trim_end_matches(|c: char| c.is_ascii_digit()) {
                "%r" => "b32",
                "%rd" => "b64",
                "%f" => "f32",
                "%p" => {
                    body += &format!(
                        "ld.global.u32 %t, [%in+{}]; setp.ne.u32 {register}, %t, 0;\n",
                        8 * place
                    );
                    continue;
                }
                _ => continue,
            };
            body += &format!("ld.global.{class} {register}, [%in+{}];\n", 8 * place);
        }
        body += &format!(
            "ld.global.u32 %t, [%in+{}]; setp.eq.u32 %p9, %t, 0; @%p9 bra done;\n",
            8 * PART
        );
        body += "st.shared.u32 [%cell], %i;\n";
        let statement = match self.has("arrive") {
            // The first warp arrives, the others wait.
            true => {
                let waiting = self.row.example.replace("arrive", "sync");
                format!(
                    "setp.ge.u32 %p9, %i, 32; @%p9 bra wait; {} bra done; wait: {waiting}\n",
                    self.row.example
                )
            }
            false => format!("{}\n", self.row.example),
        };
        body += &statement;
        for (word, register) in self
            .operands
            .first()
            .into_iter()
            .flat_map(|text| text.split('|'))
            .enumerate()
        {
            let to = format!("[%out+{}]", 8 * word);
            if self.results() == 0 || register == "_" {
                continue;
            }
            body += &match register.trim_end_matches(|c: char| c.is_ascii_digit()) {
                "%p" => format!("selp.u32 %t, 1, 0, {register}; st.global.u32 {to}, %t;\n"),
                "%f" => format!("st.global.f32 {to}, {register};\n"),
                _ => format!("st.global.u32 {to}, {register};\n"),
            };
        }
        body += &format!(
            "ld.global.u32 %t, [%in+{}]; shl.b32 %t, %t, 2; mov.u32 %cell, cells; add.u32 %t, %t, %cell;
             ld.shared.u32 %t, [%t]; st.global.u32 [%out+{}], %t;\n",
            8 * (PART + 1),
            8 * NEIGHBOUR
        );
        format!(
            ".visible .entry {name}(.param .u64 from, .param .u64 to)\n{{
             .reg .b32 %r<12>, %i, %t, %cell; .reg .b64 %rd<8>, %in, %out; .reg .f32 %f<8>; .reg .pred %p<12>;
             .shared .align 4 .b8 cells[{}];
             ld.param.u64 %in, [from]; ld.param.u64 %out, [to]; mov.u32 %i, %tid.x;
             mad.wide.u32 %in, %i, {}, %in; mad.wide.u32 %out, %i, {}, %out;
             mov.u32 %cell, cells; mad.lo.u32 %cell, %i, 4, %cell;\n{body}done: ret; }}\n",
            4 * THREADS,
            8 * RECORD,
            8 * RECORD
        )
    }

    /// Operands for each thread, who takes part, and whose word each reads afterwards.
    fn fill(&self, random: &mut Random, round: usize) -> Vec<[u64; RECORD]> {
        let mut threads = vec![[0; RECORD]; THREADS];
        let (barrier, count) = (random.next() % 16, 64 + 32 * (random.next() % 2));
        for (warp, lanes) in threads.chunks_mut(WARP).enumerate() {
            let mask = match round {
                0 => u64::from(u32::MAX),
                _ => 1 << (random.next() % 32) | random.next() & random.next() & u64::from(u32::MAX),
            };
            for (lane, thread) in lanes.iter_mut().enumerate() {
                for (place, text) in self.operands.iter().enumerate() {
                    thread[place] = match text.trim_start_matches(['!', '%']).trim_end_matches(char::is_numeric) {
                        "p" => random.next() >> 9 & 1,
                        // All alike now and then.
                        _ if round % 2 == 1 => 0x7_0000_0007 + (random.next() % 40 / 39),
                        "f" => float(random),
                        _ => random.next() & if random.next().is_multiple_of(2) { 63 } else { u64::MAX },
                    };
                    if self.words[0] == "vote" && round == 2 {
                        thread[place] = u64::from(round as u32) & 1;
                    }
                }
                if let Some(place) = self.members() {
                    thread[place] = mask;
                }
                let alone = if self
                    .members()
                    .is_some_and(|place| self.operands[place].starts_with('%'))
                {
                    mask
                } else {
                    self.members()
                        .map_or(u64::from(u32::MAX), |place| self.value(place, thread))
                };
                thread[PART] = alone >> lane & 1;
                let next = (1..=WARP)
                    .map(|step| (lane + step) % WARP)
                    .find(|&next| alone >> next & 1 == 1);
                thread[PART + 1] = (warp * WARP + next.unwrap_or(lane)) as u64;
                if self.is_block_barrier() {
                    let first = self.results();
                    thread[first] = barrier;
                    let counted = self.counted();
                    if let Some(place) = counted {
                        thread[place] = count;
                    }
                    let part = counted.map_or(THREADS as u64, |place| self.value(place, thread));
                    let me = (warp * WARP + lane) as u64;
                    thread[PART] = u64::from(me < part);
                    thread[PART + 1] = (me + 32) % part;
                }
            }
        }
        threads
    }

    /// The place of a barrier's count of threads.
    fn counted(&self) -> Option<usize> {
        let first = self.results();
        let last = self.operands.len() - usize::from(self.has("red"));
        (first + 1 < last).then_some(first + 1)
    }

    fn check(&self, round: &Round) -> Result<(), String> {
        let part = |thread: usize| round.input[thread][PART] == 1;
        for thread in (0..THREADS).filter(|&thread| part(thread)) {
            let read = round.output[thread][NEIGHBOUR] as u32;
            let synchronised = matches!(self.words[0], "bar" | "barrier");
            let arrives = self.has("arrive") && thread < WARP;
            if synchronised && !arrives && u64::from(read) != round.input[thread][PART + 1] {
                return Err(format!("thread {thread} reads {read} of its neighbour"));
            }
        }
        if self.is_block_barrier() {
            let all: Vec<usize> = (0..THREADS).filter(|&thread| part(thread)).collect();
            return all.iter().try_for_each(|&thread| self.expect(thread, &all, round));
        }
        for first in (0..THREADS).step_by(WARP) {
            let warp: Vec<usize> = (first..first + WARP).filter(|&thread| part(thread)).collect();
            warp.iter().try_for_each(|&thread| self.expect(thread, &warp, round))?;
        }
        Ok(())
    }

    /// What a thread must hold, whose partners are `group`.
    fn expect(&self, thread: usize, group: &[usize], round: &Round) -> Result<(), String> {
        let of = |place: usize, thread: usize| self.value(place, &round.input[thread]);
        let (got, set) = (round.output[thread][0] as u32, round.output[thread][PREDICATE] as u32);
        let lanes = |is: &dyn Fn(usize) -> bool| {
            let chosen = group.iter().filter(|&&other| is(other));
            chosen.fold(0u32, |mask, other| mask | 1 << (other % WARP))
        };
        let votes = |place: usize| group.iter().filter(|&&other| of(place, other) & 1 == 1).count();
        let want = match self.words[0] {
            "bar" | "barrier" if self.has("red") => {
                let yes = votes(self.operands.len() - 1);
                match () {
                    () if self.has("popc") => yes as u32,
                    () if self.has("and") => u32::from(yes == group.len()),
                    () => u32::from(yes > 0),
                }
            }
            "bar" | "barrier" => return Ok(()),
            "vote" => match () {
                () if self.has("ballot") => lanes(&|other| of(1, other) & 1 == 1),
                () if self.has("all") => u32::from(votes(1) == group.len()),
                () if self.has("any") => u32::from(votes(1) > 0),
                () => u32::from(votes(1) == 0 || votes(1) == group.len()),
            },
            "activemask" => lanes(&|_| true),
            "match" => {
                let wide = self.has("b64");
                let key = |thread: usize| {
                    if wide {
                        of(1, thread)
                    } else {
                        of(1, thread) & u64::from(u32::MAX)
                    }
                };
                let same = lanes(&|other| key(other) == key(thread));
                match self.has("any") {
                    true => same,
                    false => {
                        let all = same == lanes(&|_| true);
                        if self.operands[0].contains('|') && set != u32::from(all) {
                            return Err(format!("thread {thread}: predicate {set}"));
                        }
                        if all { same } else { 0 }
                    }
                }
            }
            "elect" => {
                let leaders: Vec<usize> = group
                    .iter()
                    .copied()
                    .filter(|&other| round.output[other][PREDICATE] as u32 == 1)
                    .collect();
                let [leader] = leaders[..] else {
                    return Err(format!("leaders: {leaders:?}"));
                };
                (leader % WARP) as u32
            }
            "redux" => {
                let values: Vec<u32> = group.iter().map(|&other| of(1, other) as u32).collect();
                self.reduced(&values)
            }
            "shfl" => {
                let place = |at: usize| of(at, thread) as i64 & 31;
                let (lane, b, clamp) = ((thread % WARP) as i64, place(2), place(3));
                let segment = of(3, thread) as i64 >> 8 & 31;
                let (highest, lowest) = ((lane & segment) | (clamp & !segment), lane & segment);
                let (from, inside) = match () {
                    () if self.has("up") => (lane - b, lane - b >= highest),
                    () if self.has("down") => (lane + b, lane + b <= highest),
                    () if self.has("bfly") => (lane ^ b, lane ^ b <= highest),
                    () => {
                        let from = lowest | (b & !segment);
                        (from, from <= highest)
                    }
                };
                if self.operands[0].contains('|') && set != u32::from(inside) {
                    return Err(format!("thread {thread}: predicate {set}"));
                }
                let from = if inside { from as usize } else { thread % WARP };
                let source = thread / WARP * WARP + from;
                // What comes from lanes that stay away is nobody's business.
                if !group.contains(&source) {
                    return Ok(());
                }
                of(1, source) as u32
            }
            other => panic!("{other} has no model"),
        };
        // A sink takes it.
        if self.operands[0].starts_with('_') || got == want {
            return Ok(());
        }
        Err(format!("thread {thread}: {got:#x}, not {want:#x}"))
    }

    fn reduced(&self, values: &[u32]) -> u32 {
        let signed = || values.iter().map(|&value| value as i32);
        if self.has("f32") {
            let value = |&bits: &u32| match self.has("abs") {
                true => f32::from_bits(bits & 0x7fff_ffff),
                false => f32::from_bits(bits),
            };
            let numbers: Vec<f32> = values.iter().map(value).collect();
            let any_nan = numbers.iter().any(|number| number.is_nan());
            let mut numbers: Vec<f32> = numbers.into_iter().filter(|number| !number.is_nan()).collect();
            if numbers.is_empty() || (any_nan && self.has("NaN")) {
                return 0x7fff_ffff;
            }
            // Minus zero is less than zero.
            numbers.sort_by(f32::total_cmp);
            let chosen = if self.has("min") {
                numbers.first()
            } else {
                numbers.last()
            };
            return chosen.expect("somebody takes part").to_bits();
        }
        match () {
            () if self.has("add") => values.iter().fold(0, |sum: u32, &value| sum.wrapping_add(value)),
            () if self.has("and") => values.iter().fold(u32::MAX, |all, value| all & value),
            () if self.has("or") => values.iter().fold(0, |all, value| all | value),
            () if self.has("xor") => values.iter().fold(0, |all, value| all ^ value),
            () if self.has("min") && self.has("s32") => signed().min().expect("somebody") as u32,
            () if self.has("max") && self.has("s32") => signed().max().expect("somebody") as u32,
            () if self.has("min") => *values.iter().min().expect("somebody"),
            () => *values.iter().max().expect("somebody"),
        }
    }
}

/// An f32 of any kind, often a special one.
fn float(random: &mut Random) -> u64 {
    let special = [
        0u32,
        0x8000_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0001,
        0xffff_ffff,
        0x3f80_0000,
        1,
    ];
    match random.next() % 3 {
        0 => special[(random.next() % 8) as usize].into(),
        _ => random.next() & u64::from(u32::MAX),
    }
}

/// Runs the forms of these rows: how many, and what went wrong.
pub fn run(rows: &[&Row]) -> (usize, Vec<String>) {
    if rows.is_empty() {
        return (0, Vec::new());
    }
    let cases: Vec<Case> = rows.iter().filter_map(|row| Case::of(row)).collect();
    let bytes = THREADS * RECORD * 8;
    let (mut input, mut output) = (0, 0);
    ok(cuMemAlloc(&mut input, bytes));
    ok(cuMemAlloc(&mut output, bytes));
    let mut failures = Vec::new();
    for case in &cases {
        let (version, target) = device::header(case.row, ("9.4", "sm_100a"));
        let text = format!(
            ".version {version}\n.target {target}\n.address_size 64\n{}",
            case.kernel("k")
        );
        let text = CString::new(text).expect("text");
        let mut module = null_mut();
        let loaded = cuModuleLoadData(&mut module, text.as_ptr().cast());
        if loaded != CUDA_SUCCESS {
            failures.push(format!("{}: error {loaded}", case.row.example));
            continue;
        }
        let mut random = Random::of(case.row.example);
        for round in 0..ROUNDS {
            let sent = case.fill(&mut random, round);
            let mut left = vec![[0xcccc_cccc_u64; RECORD]; THREADS];
            ok(cuMemcpyHtoD(input, sent.as_ptr().cast(), bytes));
            ok(cuMemcpyHtoD(output, left.as_ptr().cast(), bytes));
            launch(module, input, output);
            ok(cuMemcpyDtoH(left.as_mut_ptr().cast(), output, bytes));
            let after = Round {
                input: sent,
                output: left,
            };
            if let Err(why) = case.check(&after) {
                failures.push(format!("{}, round {round}: {why}", case.row.example));
                break;
            }
        }
        ok(cuModuleUnload(module));
    }
    ok(cuMemFree(input));
    ok(cuMemFree(output));
    (cases.len(), failures)
}

fn launch(module: CUmodule, from: CUdeviceptr, to: CUdeviceptr) {
    let mut function = null_mut();
    ok(cuModuleGetFunction(&mut function, module, c"k".as_ptr()));
    let (mut from, mut to) = (from, to);
    let mut parameters = [(&raw mut from).cast(), (&raw mut to).cast()];
    ok(cuLaunchKernel(
        function,
        1,
        1,
        1,
        THREADS as u32,
        1,
        1,
        0,
        null_mut(),
        parameters.as_mut_ptr(),
        null_mut(),
    ));
    ok(cuCtxSynchronize());
}
