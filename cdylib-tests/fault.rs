//! What a program's log says of a kernel's fault, word for word: with the lines of the `.cu` where nvcc has noted them, and
//! with the calls that allocated and freed what an address is next to.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use crate::alone::alone;
use crate::basics::{alloc, context, stream};
use crate::c::*;
use crate::code::{function, module, try_launch};
use crate::test_name;

functions! {
    cuMemAllocAsync(pointer: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemFreeAsync(pointer: CUdeviceptr, stream: CUstream);
    cuMemAllocManaged(pointer: *mut CUdeviceptr, bytes: usize, flags: u32);
    cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: u32);
    cuMemFreeHost(pointer: *mut c_void);
}

/// Tells the process of a test which case it is there for.
const CASE: &str = "CDYLIB_TEST_CASE";
/// Set, expectations are written instead of compared.
const REWRITE: &str = "MARGAY_REWRITE_REPORTS";

/// Addresses vary: `0x` with six digits or more becomes `0x…`. Of a line of the log what it says is kept.
fn masked(text: &str) -> String {
    let line = |line: &str| match line.split_once(" ERROR ") {
        // The time, the thread and the place in the library.
        Some((_, rest)) => format!("ERROR {}\n", rest.splitn(3, ' ').last().unwrap_or_default()),
        None => format!("{line}\n"),
    };
    let text: String = text.lines().map(line).collect();
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..].bytes().take_while(u8::is_ascii_hexdigit).count();
        let end = at + 2 + digits;
        out.push_str(&rest[..at]);
        out.push_str(if digits < 6 { &rest[at..end] } else { "0x…" });
        rest = &rest[end..];
    }
    out + rest
}

/// Runs each case in a process of its own, and compares what is printed with the sections of `cdylib-tests/reports/NAME.txt`.
fn compare(test: &str, name: &str, cases: &[&str], body: impl Fn(&str)) {
    if let Ok(case) = std::env::var(CASE) {
        alone(test, &[], || body(&case));
    }
    let mut found = String::new();
    for case in cases {
        let run = alone(test, &[(CASE, case)], || body(case));
        found += &format!("== {case}\n{}", masked(run.stderr.trim_end()));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cdylib-tests/reports");
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(
        found == expected,
        "expected ({REWRITE}=1 writes it anew):\n{expected}\ngot:\n{found}"
    );
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nvcc").join(name)
}

/// Loads one of nvcc's texts and launches a kernel that fails with `code`.
fn fails(text: &str, case: &str) {
    context();
    let mut bytes = std::fs::read(data(&format!("{text}.ptx"))).unwrap();
    bytes.push(0);
    let mut module = null_mut();
    ok(cuModuleLoadData(&mut module, bytes.as_ptr().cast()));
    let buffer = alloc(64);
    let (name, parameters, threads, code) = match case {
        "overrun" => (
            "_Z7overrunPff",
            vec![buffer, 0x3f80_0000],
            128,
            CUDA_ERROR_ILLEGAL_ADDRESS,
        ),
        "called" => ("_Z6calledPii", vec![buffer, 1 << 10], 32, CUDA_ERROR_ILLEGAL_ADDRESS),
        "shared_overrun" => (
            "_Z14shared_overrunPii",
            vec![buffer, 20],
            32,
            CUDA_ERROR_ILLEGAL_ADDRESS,
        ),
        "traps" => ("_Z5trapsv", vec![], 64, CUDA_ERROR_LAUNCH_FAILED),
        "asserts" => ("_Z7assertsi", vec![30], 32, CUDA_ERROR_ASSERT),
        "misaligned" => (
            "_Z10misalignedIdEvPcT_",
            vec![buffer, 0],
            1,
            CUDA_ERROR_MISALIGNED_ADDRESS,
        ),
        "virtual_call" => ("_Z12virtual_callPfPKf", vec![buffer, 0], 1, CUDA_ERROR_ILLEGAL_ADDRESS),
        "recursive" => ("_Z9recursivePi", vec![buffer], 32, CUDA_ERROR_HARDWARE_STACK_ERROR),
        other => panic!("{other}?"),
    };
    let kernel = function(module, name);
    assert_eq!(try_launch(kernel, 1, threads, &parameters), code);
}

const KERNELS: [&str; 8] = [
    "overrun",
    "called",
    "shared_overrun",
    "traps",
    "asserts",
    "misaligned",
    "virtual_call",
    "recursive",
];

#[test]
fn lineinfo_names_the_lines_of_inlined_functions() {
    compare(test_name!(), "faults.lineinfo", &KERNELS, |case| {
        fails("faults.lineinfo", case)
    });
}

#[test]
fn debug_builds_name_the_callers_line() {
    compare(test_name!(), "faults.debug", &KERNELS, |case| {
        fails("faults.debug", case)
    });
}

/// Whoever freed memory is told when a kernel uses it.
fn used_after_free(case: &str) {
    context();
    const BYTES: usize = 200_000;
    let address = match case {
        "cuMemFree" => {
            let address = alloc(BYTES);
            ok(cuMemFree(address));
            address
        }
        "cuMemFreeAsync" => {
            let (stream, mut address) = (stream(), 0);
            ok(cuMemAllocAsync(&mut address, BYTES, stream));
            ok(cuMemFreeAsync(address, stream));
            ok(cuStreamSynchronize(stream));
            address
        }
        "managed" => {
            let mut address = 0;
            ok(cuMemAllocManaged(&mut address, BYTES, 1));
            ok(cuMemFree(address));
            address
        }
        "host" => {
            let mut address = null_mut();
            ok(cuMemHostAlloc(&mut address, BYTES, 0));
            ok(cuMemFreeHost(address));
            address as u64
        }
        "of another context" => {
            let address = alloc(BYTES);
            let mut current = null_mut();
            ok(cuCtxGetCurrent(&mut current));
            let mut other = null_mut();
            ok(cuCtxCreate(&mut other, 0, 0));
            ok(cuCtxDestroy(current));
            address
        }
        other => panic!("{other}?"),
    };
    let module = module(
        ".visible .entry use(.param .u64 p) { .reg .b64 %a; .reg .b32 %r;
            ld.param.u64 %a, [p]; ld.global.u32 %r, [%a+8]; st.global.u32 [%a+8], %r; ret; }",
    );
    let code = try_launch(function(module, "use"), 1, 1, &[address]);
    assert_eq!(code, CUDA_ERROR_ILLEGAL_ADDRESS);
}

#[test]
fn who_freed_memory_is_told() {
    let cases = ["cuMemFree", "cuMemFreeAsync", "managed", "host", "of another context"];
    compare(test_name!(), "freed", &cases, used_after_free);
}
