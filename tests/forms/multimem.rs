//! Forms of `multimem`, on the memory of three devices: each form has 1 KiB of it on each device, filled with edge values
//! and random ones. What the kernel returns, and what lies in each device's memory afterwards, is compared with the model.

use std::ffi::CString;
use std::ffi::{c_uint, c_ulonglong};
use std::ptr::null_mut;

use crate::c::*;
use crate::catalogue::Row;
use crate::execute::Random;
use crate::reduction::{bytes_of, get, reduced, same, updated};

#[repr(C)]
pub struct Prop {
    devices: c_uint,
    bytes: usize,
    handles: c_ulonglong,
    flags: c_ulonglong,
}

functions! {
    cuMulticastCreate(handle: *mut u64, prop: *const Prop);
    cuMulticastAddDevice(handle: u64, device: CUdevice);
    cuMulticastBindMem(
        handle: u64,
        offset: usize,
        memory: u64,
        from: usize,
        bytes: usize,
        flags: c_ulonglong,
    );
    cuMulticastGetGranularity(granularity: *mut usize, prop: *const Prop, option: c_uint);
    cuMemAddressReserve(
        pointer: *mut CUdeviceptr,
        bytes: usize,
        alignment: usize,
        hint: CUdeviceptr,
        flags: c_ulonglong,
    );
    cuMemCreate(handle: *mut u64, bytes: usize, prop: *const [u32; 8], flags: c_ulonglong);
    cuMemMap(pointer: CUdeviceptr, bytes: usize, offset: usize, handle: u64, flags: c_ulonglong);
    cuMemSetAccess(pointer: CUdeviceptr, bytes: usize, access: *const [c_uint; 3], count: usize);
}

/// Members of the team: every device there is.
pub const DEVICES: usize = 3;
const THREADS: usize = 64;
/// Bytes of a form on each device: 16 for each thread.
const AREA: usize = 16 * THREADS;
/// Bytes of a thread's operands, or results: 16 for each register.
const RECORD: usize = 128;
const BATCH: usize = 100;

const REGISTERS: &str = ".reg .b8 %rb<200>; .reg .b16 %rs<200>; .reg .b32 %r<200>; .reg .b64 %rd<200>; \
     .reg .f32 %f<200>; .reg .f64 %fd<200>; .reg .b64 %from, %to, %area; .reg .b32 %lane; .reg .pred %first;";

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
        "rb" => "b8",
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

    fn op(&self) -> &'static str {
        let known = ["add", "min", "max", "and", "or", "xor", "inc", "dec"];
        self.words
            .iter()
            .copied()
            .find(|word| known.contains(word))
            .unwrap_or("store")
    }

    /// A number of an element: `f16` of `f16x2`.
    fn number(&self) -> &'static str {
        let last = self.words.last().expect("a type");
        last.split('x').next().expect("a type")
    }

    fn kernel(&self, name: &str) -> String {
        let example = self.row.example;
        let body = match () {
            () if self.has("bulk") => format!(
                ".shared .align 16 .b8 window[{AREA}]; mov.u64 %rd9, window; mad.wide.u32 %rd8, %lane, 16, %rd9;
mad.wide.u32 %from, %lane, 16, %from; ld.global.v2.b64 {{%rd6, %rd7}}, [%from]; st.shared.v2.b64 [%rd8], {{%rd6, %rd7}};
fence.proxy.async; bar.sync 0; setp.ne.u32 %first, %lane, 0; @%first bra done;
mov.u64 %rd1, %area; mov.u64 %rd2, %rd9; mov.u32 %r3, {AREA}; mov.b16 %rs4, 0x7a31; mov.b16 %rs1, 0x7a31; mov.b16 %rs2, 0x7a31;
mov.b16 %rs3, 0x7a31;
{example}
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
done:"
            ),
            () if self.has("ld_reduce") => {
                let mut body = format!("mad.wide.u32 %rd1, %lane, 16, %area;\n{example}\n");
                for (at, register) in registers(self.operands[0]).iter().enumerate() {
                    body += &format!("st.global.{} [%to+{}], {register};\n", class(register), 16 * at);
                }
                body
            }
            () => {
                let mut body = String::new();
                for (at, register) in registers(self.operands[1]).iter().enumerate() {
                    body += &format!("ld.global.{} {register}, [%from+{}];\n", class(register), 16 * at);
                }
                // The address goes by the name that the example has for it.
                let address = self.operands[0].trim_matches(['[', ']']);
                body + &format!("mad.wide.u32 {address}, %lane, 16, %area;\n{example}\n")
            }
        };
        let step = if self.has("bulk") { 0 } else { RECORD };
        format!(
            ".visible .entry {name}(.param .u64 area, .param .u64 from, .param .u64 to)\n{{ {REGISTERS}
ld.param.u64 %area, [area]; ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; mov.u32 %lane, %tid.x;
mad.wide.u32 %from, %lane, {step}, %from; mad.wide.u32 %to, %lane, {RECORD}, %to;
{body}\nret; }}\n"
        )
    }
}

// ---- running -------------------------------------------------------------------------------------------------------

/// Numbers that make something of themselves: random bits, near each other, edge values.
pub fn fill(random: &mut Random, number: &str, bytes: &mut [u8]) {
    let size = bytes_of(number);
    for chunk in bytes.chunks_mut(size) {
        let any = random.next();
        let word = match (random.next() % 4, number) {
            (0, _) => any,
            (1, "f32") => 0x3f80_0000 ^ (any & 0x8060_ffff),
            (1, "f16") => 0x3c00 ^ (any & 0x83ff),
            (1, "bf16") => 0x3f80 ^ (any & 0x80ff),
            (1, "f64") => 0x3ff0_0000_0000_0000 ^ (any & 0x800f_0000_ffff_ffff),
            (1, "e4m3") => 0x38 ^ (any & 0x8f),
            (1, "e5m2") => 0x3c ^ (any & 0x87),
            (2, "f32") => [
                0,
                1 << 31,
                0x7f80_0000,
                0xff80_0000,
                0x7fc0_0001,
                1,
                0x807f_ffff,
                0x7f7f_ffff,
            ][any as usize % 8],
            (2, "f16") => [0, 0x8000, 0x7c00, 0xfc00, 0x7e01, 1, 0x83ff, 0x7bff][any as usize % 8],
            (2, "bf16") => [0, 0x8000, 0x7f80, 0xff80, 0x7fc1, 1, 0x807f, 0x7f7f][any as usize % 8],
            (2, "e4m3") => [0, 0x80, 0x7e, 0xfe, 0x7f, 1, 0x87, 0x77][any as usize % 8],
            (2, "e5m2") => [0, 0x80, 0x7b, 0xfc, 0x7f, 1, 0x83, 0x7c][any as usize % 8],
            (2, _) => [
                0,
                u64::MAX,
                i64::MAX as u64,
                i64::MIN as u64,
                0x8000_0000,
                0x7fff_ffff,
                1,
                2,
            ][any as usize % 8],
            _ => any & 0x0303_0303_0303_0303,
        };
        chunk.copy_from_slice(&word.to_le_bytes()[..size]);
    }
}

struct Memory {
    common: CUdeviceptr,
    own: [CUdeviceptr; DEVICES],
}

pub fn mapped(handle: u64, bytes: usize) -> CUdeviceptr {
    let mut pointer = 0;
    ok(cuMemAddressReserve(&mut pointer, bytes, 0, 0, 0));
    ok(cuMemMap(pointer, bytes, 0, handle, 0));
    ok(cuMemSetAccess(pointer, bytes, &[1, 0, 3], 1));
    pointer
}

fn team(bytes: usize) -> Memory {
    let mut prop = Prop {
        devices: DEVICES as c_uint,
        bytes: 1,
        handles: 0,
        flags: 0,
    };
    let mut step = 0;
    ok(cuMulticastGetGranularity(&mut step, &prop, 0));
    let bytes = bytes.next_multiple_of(step);
    prop.bytes = bytes;
    let mut object = 0;
    ok(cuMulticastCreate(&mut object, &prop));
    // Sums go by the devices' numbers, not by the order in which they come.
    for device in (0..DEVICES).rev() {
        ok(cuMulticastAddDevice(object, device as CUdevice));
    }
    let own = std::array::from_fn(|device| {
        let mut handle = 0;
        ok(cuMemCreate(
            &mut handle,
            bytes,
            &[1, 0, 1, device as u32, 0, 0, 0, 0],
            0,
        ));
        ok(cuMulticastBindMem(object, 0, handle, 0, bytes, 0));
        mapped(handle, bytes)
    });
    Memory {
        common: mapped(object, bytes),
        own,
    }
}

/// How many forms were executed, and what went wrong.
pub fn run(rows: &[&Row]) -> (usize, Vec<String>) {
    let cases: Vec<Case<'_>> = rows.iter().filter_map(|row| Case::of(row)).collect();
    let mut failures = Vec::new();
    if cases.is_empty() {
        return (0, failures);
    }
    let memory = team(AREA);
    let (mut from, mut to) = (0, 0);
    ok(cuMemAlloc(&mut from, THREADS * RECORD));
    ok(cuMemAlloc(&mut to, THREADS * RECORD));
    let mut random = Random::of("multimem");
    for cases in cases.chunks(BATCH) {
        let mut text = String::from(".version 9.5\n.target sm_100a\n.address_size 64\n");
        for (index, case) in cases.iter().enumerate() {
            text += &case.kernel(&format!("k{index}"));
        }
        let text = CString::new(text).expect("text");
        let mut module = null_mut();
        ok(cuModuleLoadData(&mut module, text.as_ptr().cast()));
        for (index, case) in cases.iter().enumerate() {
            let name = CString::new(format!("k{index}")).expect("text");
            let mut function = null_mut();
            ok(cuModuleGetFunction(&mut function, module, name.as_ptr()));
            let run = Run {
                case,
                function,
                memory: &memory,
                from,
                to,
            };
            if let Err(found) = run.compare(&mut random) {
                failures.push(format!("{}: {found}", case.row.example));
            }
        }
        ok(cuModuleUnload(module));
    }
    ok(cuMemFree(from));
    ok(cuMemFree(to));
    (cases.len(), failures)
}

struct Run<'a> {
    case: &'a Case<'a>,
    function: CUfunction,
    memory: &'a Memory,
    from: CUdeviceptr,
    to: CUdeviceptr,
}

impl Run<'_> {
    fn compare(&self, random: &mut Random) -> Result<(), String> {
        let (case, number) = (self.case, self.case.number());
        let mut before = [const { [0u8; AREA] }; DEVICES];
        for (bytes, &own) in before.iter_mut().zip(&self.memory.own) {
            fill(random, number, bytes);
            ok(cuMemcpyHtoD(own, bytes.as_ptr().cast(), AREA));
        }
        let mut operands = vec![0u8; THREADS * RECORD];
        fill(random, number, &mut operands);
        ok(cuMemcpyHtoD(self.from, operands.as_ptr().cast(), operands.len()));
        let mut parameters = [self.memory.common, self.from, self.to];
        let mut pointers = parameters.each_mut().map(|one| std::ptr::from_mut(one).cast());
        let launched = cuLaunchKernel(
            self.function,
            1,
            1,
            1,
            THREADS as u32,
            1,
            1,
            0,
            null_mut(),
            pointers.as_mut_ptr(),
            null_mut(),
        );
        if launched != 0 || cuCtxSynchronize() != 0 {
            return Err(format!("does not run ({launched})"));
        }
        match case.has("ld_reduce") {
            true => self.returned(&before),
            false => self.stored(&before, &operands),
        }
    }

    fn returned(&self, before: &[[u8; AREA]; DEVICES]) -> Result<(), String> {
        let (case, number) = (self.case, self.case.number());
        let mut results = vec![0u8; THREADS * RECORD];
        ok(cuMemcpyDtoH(results.as_mut_ptr().cast(), self.to, results.len()));
        let sums = match () {
            () if case.has("acc::f32") => "f32",
            () if case.has("acc::f16") => "f16",
            () => number,
        };
        let (size, element) = (bytes_of(number), self.element());
        for thread in 0..THREADS {
            for register in 0..registers(case.operands[0]).len() {
                for at in (0..element).step_by(size) {
                    let place = 16 * thread + register * element + at;
                    let values: Vec<u64> = before.iter().map(|bytes| get(&bytes[place..place + size])).collect();
                    let expected = reduced(case.op(), number, sums, &values);
                    let place = thread * RECORD + 16 * register + at;
                    let is = get(&results[place..place + size]);
                    if !same(number, is, expected) {
                        return Err(format!("{is:#x} of {values:x?}, not {expected:#x}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Bytes of an element: of a register's part of memory.
    fn element(&self) -> usize {
        let last = self.case.words.last().expect("a type");
        let numbers = last
            .split_once('x')
            .map_or(1, |(_, count)| count.parse().expect("a number"));
        bytes_of(self.case.number()) * numbers
    }

    fn stored(&self, before: &[[u8; AREA]; DEVICES], operands: &[u8]) -> Result<(), String> {
        let (case, number) = (self.case, self.case.number());
        let (size, element, bulk) = (bytes_of(number), self.element(), case.has("bulk"));
        let flushes = case.op() == "add" && number == "f32" && !case.has("noftz");
        let count = if bulk {
            16 / element
        } else {
            registers(case.operands[1]).len()
        };
        for (device, bytes) in before.iter().enumerate() {
            let mut expected = *bytes;
            for thread in 0..THREADS {
                for at in (0..count * element).step_by(size) {
                    let place = 16 * thread + at;
                    let source = match bulk {
                        true => place,
                        false => thread * RECORD + at / element * 16 + at % element,
                    };
                    let old = get(&bytes[place..place + size]);
                    let new = get(&operands[source..source + size]);
                    let result = updated(case.op(), number, old, new, flushes);
                    expected[place..place + size].copy_from_slice(&result.to_le_bytes()[..size]);
                }
                if case.has("cp_mask") {
                    for at in (0..16).filter(|at| 0x7a31 >> at & 1 == 0) {
                        expected[16 * thread + at] = bytes[16 * thread + at];
                    }
                }
            }
            let mut after = [0u8; AREA];
            ok(cuMemcpyDtoH(after.as_mut_ptr().cast(), self.memory.own[device], AREA));
            for place in (0..AREA).step_by(size) {
                let (is, wanted) = (get(&after[place..place + size]), get(&expected[place..place + size]));
                if !same(number, is, wanted) {
                    let old = get(&bytes[place..place + size]);
                    return Err(format!(
                        "device {device} has {is:#x} at {place}, not {wanted:#x}; before {old:#x}"
                    ));
                }
            }
        }
        Ok(())
    }
}
