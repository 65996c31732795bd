//! Runs cases through the C ABI: modules of many kernels, a launch each, results against the model's.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::ptr::null_mut;

use crate::c::*;
use crate::case::{BEHIND, Case, Class, Memory, THREADS, WINDOW};
use crate::device;
use crate::model::{self, Expect};

/// Kernels of one module.
const BATCH: usize = 200;

/// What went wrong, a line each.
pub fn run(cases: &[Case]) -> Vec<String> {
    let bytes = THREADS * (16 * 16 + WINDOW);
    let (mut input, mut output) = (0, 0);
    ok(cuMemAlloc(&mut input, bytes));
    ok(cuMemAlloc(&mut output, bytes));
    let mut failures = Vec::new();
    // Forms that are no more need a module of their time.
    let mut by_version: BTreeMap<Option<(&str, &str)>, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        by_version.entry(case.row.last).or_default().push(case);
    }
    let mut batches: Vec<&[&Case]> = by_version.values().flat_map(|cases| cases.chunks(BATCH)).collect();
    while let Some(batch) = batches.pop() {
        let (version, target) = device::header(&batch[0].row, ("9.5", "sm_120a"));
        let size = if batch[0].row.last.is_some() {
            ""
        } else {
            ".address_size 64\n"
        };
        let mut text = format!(
            ".version {version}\n.target {target}\n{size}.global .align 64 .b8 windows[{0}];
.global .align 64 .b8 gvar[{WINDOW}];\n.const .align 64 .b8 constants[{0}];\n",
            THREADS * WINDOW
        );
        for (i, case) in batch.iter().enumerate() {
            text += &case.kernel(&format!("k{i}"));
        }
        let text = CString::new(text).expect("text");
        let mut module = null_mut();
        let loaded = cuModuleLoadData(&mut module, text.as_ptr().cast());
        if loaded != CUDA_SUCCESS {
            // One that a GPU's driver does not take must not hide the others.
            if device::device().is_some() && batch.len() > 1 {
                let (first, second) = batch.split_at(batch.len() / 2);
                batches.extend([first, second]);
                continue;
            }
            let first = batch[0].row.form;
            failures.push(format!("module of {first} and others: error {loaded}"));
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
    ok(cuMemFree(input));
    ok(cuMemFree(output));
    failures
}

fn one(module: CUmodule, name: &str, case: &Case, input: CUdeviceptr, output: CUdeviceptr) -> Result<(), String> {
    let mut function = null_mut();
    let name = CString::new(name).expect("a name");
    ok(cuModuleGetFunction(&mut function, module, name.as_ptr()));

    let inputs = case.inputs();
    let record = case.record();
    let at_window = record - WINDOW;
    let mut random = Random::of(case.row.example);
    let mut memory = vec![0u8; THREADS * record];
    let mut pvar = [0u8; WINDOW];
    for at in (0..WINDOW).step_by(8) {
        pvar[at..at + 8].copy_from_slice(&(random.value(64) as u64).to_le_bytes());
    }
    for thread in 0..THREADS {
        let slot = &mut memory[thread * record..][..record];
        for (i, (class, _)) in inputs.iter().enumerate() {
            let value = match class {
                Class::Pred => random.next() as u128 & 1,
                class => random.value(class.bits()),
            };
            slot[16 * i..16 * i + 16].copy_from_slice(&value.to_le_bytes());
        }
        // Memory often holds what an operand holds: comparisons then succeed.
        for at in (0..WINDOW).step_by(8) {
            let value = random.value(64) as u64;
            slot[at_window + at..][..8].copy_from_slice(&value.to_le_bytes());
        }
        if random.next().is_multiple_of(4) && !inputs.is_empty() {
            let from = 16 * (random.next() as usize % inputs.len());
            let bytes: [u8; 16] = slot[from..from + 16].try_into().expect("sixteen");
            slot[at_window..][..16].copy_from_slice(&bytes);
        }
        if case.memory == Some(Memory::KernelParam) {
            slot[at_window..].copy_from_slice(&pvar);
        }
    }
    ok(cuMemcpyHtoD(input, memory.as_ptr().cast(), memory.len()));
    let blank = vec![0xccu8; memory.len()];
    ok(cuMemcpyHtoD(output, blank.as_ptr().cast(), blank.len()));
    let constant = case.space() == Some("const") && case.memory == Some(Memory::Register);
    if constant {
        let (mut address, mut size) = (0, 0);
        ok(cuModuleGetGlobal(
            &mut address,
            &mut size,
            module,
            c"constants".as_ptr(),
        ));
        for thread in 0..THREADS {
            let window = &memory[thread * record + at_window..][..WINDOW];
            ok(cuMemcpyHtoD(
                address + (thread * WINDOW) as u64,
                window.as_ptr().cast(),
                WINDOW,
            ));
        }
    }

    let (mut from, mut to) = (input, output);
    let mut parameters = [(&raw mut from).cast(), (&raw mut to).cast(), (&raw mut pvar).cast()];
    let launched = cuLaunchKernel(
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

    let (mut variable, mut size) = (0, 0);
    ok(cuModuleGetGlobal(&mut variable, &mut size, module, c"gvar".as_ptr()));
    let outputs = case.outputs();
    for thread in 0..THREADS {
        let slot = &memory[thread * record..][..record];
        let value = |name: &str| {
            match name {
                "gvar" => return variable.into(),
                "svar" => return BEHIND.into(),
                _ => {}
            }
            let i = inputs.iter().position(|(_, n)| *n == name).expect("an input");
            u128::from_le_bytes(slot[16 * i..16 * i + 16].try_into().expect("sixteen"))
        };
        let sources = model::operands(case, value);
        let mut window: [u8; WINDOW] = slot[at_window..].try_into().expect("a window");
        let shared = case.in_shared(thread);
        let expected = model::expected(case, &sources, &mut window, shared).expect("the model knows it");
        let result = &found[thread * record..][..record];
        let wanted = expected
            .iter()
            .enumerate()
            .filter(|(i, _)| case.keeps(*i))
            .map(|(_, e)| e);
        for (k, (expect, (class, name))) in wanted.zip(&outputs).enumerate() {
            let bits = u128::from_le_bytes(result[16 * k..16 * k + 16].try_into().expect("sixteen"));
            if !expect.agrees(bits, class.bits()) {
                let bits = model::cut(bits, class.bits());
                return Err(format!(
                    "{name} is {bits:#x}, expected {expect:x?}, for {sources:x?}, memory {:x?}",
                    &slot[at_window..][..16]
                ));
            }
        }
        let writes = matches!(case.op.mnemonic(), "st" | "atom" | "red");
        let left = &result[at_window..];
        if writes && case.memory.is_some() && !same_memory(&window, left, case) {
            return Err(format!("memory is {left:x?}, expected {window:x?}, for {sources:x?}"));
        }
    }
    Ok(())
}

/// Equal bytes; where the model says only "a NaN", any.
fn same_memory(expected: &[u8], found: &[u8], case: &Case) -> bool {
    let checked = case.checked_bytes();
    expected[..checked].chunks(8).zip(found.chunks(8)).all(|(e, f)| {
        let word = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("eight"));
        e == f || (word(e) == model::NAN as u64 && Expect::Nan(64).agrees(word(f).into(), 64))
    })
}

/// Edge values and random ones, the same in each run.
pub struct Random(u64);

impl Random {
    pub fn of(seed: &str) -> Random {
        Random(seed.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        }))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn pick(&mut self, from: &[u128]) -> u128 {
        from[self.next() as usize % from.len()]
    }

    fn value(&mut self, bits: u32) -> u128 {
        let style = self.next() % 8;
        match bits {
            8 => self.next() as u128 & 0xff,
            16 => match style {
                0 | 1 => self.pick(&[
                    0, 1, 2, 3, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff,
                ]),
                2 | 3 => self.pick(&[
                    0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x3c00, 0xbc00, 0x3bff, 0x3c01, 0x4000,
                    0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0x7e00, 0xfe00, 0x7fff, 0x3800, 0x3555, 0x5640,
                ]),
                4 => self.pick(&[
                    0x0080, 0x007f, 0x8080, 0x3f80, 0xbf80, 0x3f81, 0x4000, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81,
                    0x7fc0, 0xffc0, 0x3eab, 0x7ff7, 0xfff7,
                ]),
                5 => 0x3c00 ^ self.next() as u128 & 0x83ff,
                _ => self.next() as u128 & 0xffff,
            },
            32 => match style {
                0 => self.pick(&[0, 1, 2, 3, 4, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 100, 255, 256]),
                1 => self.pick(&[
                    0x7fff_ffff,
                    0x8000_0000,
                    0x8000_0001,
                    0xffff_ffff,
                    0xffff_fffe,
                    0xffff,
                    0x10000,
                    0x8000,
                    0xff_ffff,
                    0x80_0000,
                ]),
                2 | 3 => self.pick(&[
                    0,
                    0x8000_0000,
                    1,
                    0x8000_0001,
                    0x7f_ffff,
                    0x80_0000,
                    0x8080_0000,
                    0x3f80_0000,
                    0xbf80_0000,
                    0x3f7f_ffff,
                    0x3f80_0001,
                    0x4000_0000,
                    0x7f7f_ffff,
                    0xff7f_ffff,
                    0x7f80_0000,
                    0xff80_0000,
                    0x7f80_0001,
                    0x7fc0_0000,
                    0xffc0_0001,
                    0x3eaa_aaab,
                    0x4049_0fdb,
                    0x42c8_0000,
                    0x7e80_0000,
                    0x7f00_0000,
                    0x0100_0000,
                    0x3f00_0000,
                ]),
                // Ordinary numbers, near each other.
                4 => {
                    let exponent = 100 + self.next() as u128 % 56;
                    (self.next() as u128 & 1) << 31 | exponent << 23 | self.next() as u128 & 0x7f_ffff
                }
                5 => self.value(16) | self.value(16) << 16,
                _ => self.next() as u128 & 0xffff_ffff,
            },
            64 => match style {
                0 => self.pick(&[0, 1, 2, 3, 8, 31, 32, 33, 63, 64, 65, 100, 255, 256]),
                1 => self.pick(&[
                    i64::MAX as u128,
                    1 << 63,
                    (1 << 63) + 1,
                    u64::MAX.into(),
                    u64::MAX as u128 - 1,
                    1 << 32,
                    0xffff_ffff,
                    0x8000_0000,
                ]),
                2 | 3 => self.pick(&[
                    0,
                    1 << 63,
                    1,
                    (1 << 63) + 1,
                    (1 << 52) - 1,
                    1 << 52,
                    (1 << 63) | (1 << 52),
                    0x3ff0 << 48,
                    0xbff0 << 48,
                    (0x3ff0 << 48) + 1,
                    (0x3ff0 << 48) - 1,
                    0x4000 << 48,
                    0x7fef_ffff_ffff_ffff,
                    0xffef_ffff_ffff_ffff,
                    0x7ff0 << 48,
                    0xfff0 << 48,
                    (0x7ff0 << 48) + 1,
                    0x7ff8 << 48,
                    0xfff8 << 48,
                    0x3fd5_5555_5555_5555,
                ]),
                4 => {
                    let exponent = 990 + self.next() as u128 % 66;
                    (self.next() as u128 & 1) << 63 | exponent << 52 | self.next() as u128 >> 12 & ((1 << 52) - 1)
                }
                5 => self.value(32) | self.value(32) << 32,
                _ => self.next().into(),
            },
            _ => self.value(64) | self.value(64) << 64,
        }
    }
}
