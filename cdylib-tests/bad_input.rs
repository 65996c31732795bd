//! Bad input of every kind through the C ABI: the documented code comes back, and the process goes on.

use crate::alone::alone;
use crate::c::*;
use crate::test_name;
use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};

const KERNELS: &str = r#"
.version 7.0
.target sm_70
.address_size 64

.visible .entry put(.param .u64 to, .param .u32 value)
{
    .reg .b64 %to;
    .reg .b32 %value;
    ld.param.u64 %to, [to];
    ld.param.u32 %value, [value];
    st.global.u32 [%to], %value;
    ret;
}

.visible .entry forever(.param .u64 to, .param .u32 value)
{
loop:
    bra loop;
}

.visible .entry stop(.param .u64 to, .param .u32 value)
{
    trap;
}

.func deeper(.param .b32 n)
{
    .reg .b32 %n;
    .local .b8 frame[256];
    ld.param.b32 %n, [n];
    add.u32 %n, %n, 1;
    st.local.u32 [frame], %n;
    {
        .param .b32 next;
        st.param.b32 [next], %n;
        call deeper, (next);
    }
    ret;
}

.visible .entry recurse(.param .u64 to, .param .u32 value)
{
    .reg .b32 %n;
    mov.u32 %n, 0;
    {
        .param .b32 next;
        st.param.b32 [next], %n;
        call deeper, (next);
    }
    ret;
}

.extern .func (.param .b64 block) malloc (.param .b64 bytes);

// value = 1 if the device heap had no room for a TiB
.visible .entry too_much(.param .u64 to, .param .u32 value)
{
    .reg .b64 %to, %p;
    .reg .b32 %r;
    .reg .pred %none;
    {
        .param .b64 bytes;
        .param .b64 block;
        st.param.b64 [bytes], 1099511627776;
        call (block), malloc, (bytes);
        ld.param.b64 %p, [block];
    }
    setp.eq.u64 %none, %p, 0;
    selp.u32 %r, 1, 0, %none;
    ld.param.u64 %to, [to];
    st.global.u32 [%to], %r;
    ret;
}
"#;

fn start() {
    ok(cuInit(0));
    let (mut device, mut context) = (0, null_mut());
    ok(cuDeviceGet(&mut device, 0));
    ok(cuDevicePrimaryCtxRetain(&mut context, device));
    ok(cuCtxSetCurrent(context));
}

fn load(text: &str) -> (CUresult, CUmodule) {
    let text = CString::new(text).expect("no NUL");
    let mut module = null_mut();
    (cuModuleLoadData(&mut module, text.as_ptr().cast()), module)
}

fn function(name: &str) -> CUfunction {
    let (result, module) = load(KERNELS);
    ok(result);
    let (mut function, name) = (null_mut(), CString::new(name).expect("no NUL"));
    ok(cuModuleGetFunction(&mut function, module, name.as_ptr()));
    function
}

/// Launches a kernel of the module above on one thread, and waits: the code of whichever call fails.
fn run(name: &str, to: CUdeviceptr) -> CUresult {
    let (mut to, mut value) = (to, 7u32);
    let mut parameters = [(&raw mut to).cast::<c_void>(), (&raw mut value).cast()];
    let launched = cuLaunchKernel(
        function(name),
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        null_mut(),
        parameters.as_mut_ptr(),
        null_mut(),
    );
    if launched == CUDA_SUCCESS {
        cuCtxSynchronize()
    } else {
        launched
    }
}

fn word() -> CUdeviceptr {
    let mut pointer = 0;
    ok(cuMemAlloc(&mut pointer, 4));
    pointer
}

#[test]
fn null_and_stale_handles() {
    alone(test_name!(), &[], || {
        start();
        assert_eq!(cuMemAlloc(null_mut(), 4), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuDeviceGet(null_mut(), 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuModuleLoadData(null_mut(), null()), CUDA_ERROR_INVALID_VALUE);
        let mut device = 0;
        assert_eq!(cuDeviceGet(&mut device, 99), CUDA_ERROR_INVALID_DEVICE);
        // A handle that was one, and a pointer to something else altogether.
        let mut stream = null_mut();
        ok(cuStreamCreate(&mut stream, 0));
        ok(cuStreamDestroy(stream));
        assert_eq!(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
        let mut something = [0u64; 8];
        let foreign = something.as_mut_ptr().cast::<c_void>();
        assert_eq!(cuStreamQuery(foreign), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuEventRecord(foreign, null_mut()), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuModuleUnload(foreign), CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(cuCtxSetCurrent(foreign), CUDA_ERROR_INVALID_CONTEXT);
        for handle in [null_mut(), foreign] {
            let launched = cuLaunchKernel(handle, 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut(), null_mut());
            assert!(
                [CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_VALUE].contains(&launched),
                "{launched}"
            );
        }
        assert_eq!(run("put", word()), CUDA_SUCCESS);
    });
}

#[test]
fn wrong_sizes_and_addresses() {
    alone(test_name!(), &[("MARGAY_MEMORY", "64M")], || {
        start();
        let mut pointer = 0;
        assert_eq!(cuMemAlloc(&mut pointer, 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemAlloc(&mut pointer, usize::MAX), CUDA_ERROR_OUT_OF_MEMORY);
        assert_eq!(cuMemAlloc(&mut pointer, 65 << 20), CUDA_ERROR_OUT_OF_MEMORY);
        let to = word();
        let bytes = vec![0u8; 1 << 20];
        assert_eq!(
            cuMemcpyHtoD(to, bytes.as_ptr().cast(), 1 << 20),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(cuMemcpyHtoD(16, bytes.as_ptr().cast(), 4), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemsetD8(to, 1, 1 << 20), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuMemFree(to + 1), CUDA_ERROR_INVALID_VALUE);
        ok(cuMemFree(to));
        assert_eq!(cuMemFree(to), CUDA_ERROR_INVALID_VALUE);
        ok(cuMemFree(0));
        assert_eq!(run("put", word()), CUDA_SUCCESS);
    });
}

#[test]
fn absurd_launch_shapes() {
    alone(test_name!(), &[], || {
        start();
        let kernel = function("put");
        let (mut to, mut value) = (word(), 7u32);
        let mut parameters = [(&raw mut to).cast::<c_void>(), (&raw mut value).cast()];
        let mut launch = |grid: [u32; 3], block: [u32; 3], shared: u32| {
            let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
            cuLaunchKernel(
                kernel,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                shared,
                null_mut(),
                parameters.as_mut_ptr(),
                null_mut(),
            )
        };
        for (grid, block, shared) in [
            ([0, 1, 1], [1, 1, 1], 0),
            ([1, 1, 1], [0, 1, 1], 0),
            ([1, 65536, 1], [1, 1, 1], 0),
            ([1, 1, 65536], [1, 1, 1], 0),
            ([u32::MAX; 3], [1, 1, 1], 0),
            ([1, 1, 1], [1025, 1, 1], 0),
            ([1, 1, 1], [32, 32, 2], 0),
            ([1, 1, 1], [1, 1, 65], 0),
            ([1, 1, 1], [u32::MAX; 3], 0),
            ([1, 1, 1], [1, 1, 1], 1 << 30),
        ] {
            assert_eq!(
                launch(grid, block, shared),
                CUDA_ERROR_INVALID_VALUE,
                "{grid:?} {block:?} {shared}"
            );
        }
        ok(launch([2, 1, 1], [1024, 1, 1], 0));
        ok(cuCtxSynchronize());
    });
}

#[test]
fn unknown_symbols() {
    alone(test_name!(), &[], || {
        start();
        let (result, module) = load(KERNELS);
        ok(result);
        let (mut function, mut pointer, mut bytes) = (null_mut(), 0, 0);
        for name in [c"absent", c"deeper\xff"] {
            assert_eq!(
                cuModuleGetFunction(&mut function, module, name.as_ptr()),
                CUDA_ERROR_NOT_FOUND
            );
            assert_eq!(
                cuModuleGetGlobal(&mut pointer, &mut bytes, module, name.as_ptr()),
                CUDA_ERROR_NOT_FOUND
            );
        }
        assert_eq!(
            cuModuleGetFunction(&mut function, module, null()),
            CUDA_ERROR_INVALID_VALUE
        );
    });
}

#[test]
fn broken_ptx() {
    alone(test_name!(), &[], || {
        start();
        // Cut anywhere, a text is refused or (where only kernels are missing) still a module; never a crash.
        for end in (0..KERNELS.len()).step_by(37) {
            let (result, module) = load(&KERNELS[..end]);
            if result == CUDA_SUCCESS {
                ok(cuModuleUnload(module));
            } else {
                assert!(
                    [CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_IMAGE].contains(&result),
                    "cut at {end}: {result}"
                );
            }
        }
        let wrong = KERNELS.replace("st.global.u32 [%to], %value;", "st.global.u33 [%to], %value;");
        // A small text is checked whole: what is wrong inside a body comes out when the module is loaded.
        assert_eq!(load(&wrong).0, CUDA_ERROR_INVALID_PTX);
        let refused = load("hello, world").0;
        assert!(
            [CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_IMAGE].contains(&refused),
            "{refused}"
        );
        assert_eq!(run("put", word()), CUDA_SUCCESS);
    });
}

#[test]
fn broken_fat_binaries() {
    alone(test_name!(), &[], || {
        start();
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/fatbin");
        let mut seen = 0;
        for entry in std::fs::read_dir(directory).expect("the committed fat binaries") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|e| e != "fatbin") {
                continue;
            }
            seen += 1;
            let whole = std::fs::read(&path).expect("a file");
            for round in 0..200usize {
                let mut bytes = whole.clone();
                let at = round * 7919 % bytes.len();
                if round % 2 == 0 {
                    bytes.truncate(at);
                } else {
                    bytes[at] ^= 1 << (round % 8);
                }
                // What was cut off is not there to be read: the bytes end with their allocation.
                bytes.shrink_to_fit();
                let mut module = null_mut();
                if bytes.len() >= 16 && cuModuleLoadData(&mut module, bytes.as_ptr().cast()) == CUDA_SUCCESS {
                    ok(cuModuleUnload(module));
                }
            }
        }
        assert!(seen > 0, "no fat binaries in {directory}");
        assert_eq!(run("put", word()), CUDA_SUCCESS);
    });
}

/// Sticky errors: the code stays until the context is reset, the host goes on, and a reset makes all well.
fn sticky(test: &str, environment: &[(&str, &str)], kernel: &str, to: Option<CUdeviceptr>, code: CUresult) -> String {
    let run = alone(test, environment, || {
        start();
        let address = to.unwrap_or_else(word);
        assert_eq!(run(kernel, address), code);
        let mut pointer = 0;
        assert_eq!(cuMemAlloc(&mut pointer, 4), code, "the error stays");
        ok(cuDevicePrimaryCtxReset(0));
        start();
        assert_eq!(self::run("put", word()), CUDA_SUCCESS, "after a reset");
    });
    run.stderr
}

#[test]
fn a_kernel_that_writes_anywhere() {
    let report = sticky(
        test_name!(),
        &[],
        "put",
        Some(0x10_0000_0000),
        CUDA_ERROR_ILLEGAL_ADDRESS,
    );
    assert!(report.contains("put") && report.contains("0x1000000000"), "{report}");
}

#[test]
fn a_kernel_that_writes_at_null() {
    sticky(test_name!(), &[], "put", Some(0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

#[test]
fn a_kernel_that_traps() {
    sticky(test_name!(), &[], "stop", None, CUDA_ERROR_LAUNCH_FAILED);
}

#[test]
fn a_kernel_that_runs_out_of_stack() {
    /// `CUDA_ERROR_HARDWARE_STACK_ERROR`
    const STACK: CUresult = 714;
    let report = sticky(test_name!(), &[], "recurse", None, STACK);
    assert!(report.contains("stack"), "{report}");
}

#[test]
fn a_kernel_that_never_ends() {
    let limit = [("MARGAY_TIMEOUT", "0.5")];
    sticky(test_name!(), &limit, "forever", None, CUDA_ERROR_LAUNCH_TIMEOUT);
}

#[test]
fn a_kernel_that_runs_out_of_heap() {
    alone(test_name!(), &[], || {
        start();
        let to = word();
        ok(cuMemsetD32(to, 9, 1));
        assert_eq!(run("too_much", to), CUDA_SUCCESS);
        let mut got = 0u32;
        ok(cuMemcpyDtoH((&raw mut got).cast(), to, 4));
        assert_eq!(got, 1, "malloc returned null");
    });
}
