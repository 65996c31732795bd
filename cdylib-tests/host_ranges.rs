//! Registered host memory that the program takes away afterwards, and other things of the host's that once ended the
//! process by a signal: each is an error.

use crate::alone::{Run, alone, in_another_process};
use crate::c::*;
use crate::code::{function, module, try_launch};
use crate::test_name;
use std::ffi::{c_int, c_uint, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

functions! {
    cuMemHostRegister = "cuMemHostRegister_v2" (pointer: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister(pointer: *mut c_void);
    cuMemcpyHtoDAsync = "cuMemcpyHtoDAsync_v2" (to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuStreamWaitValue32 = "cuStreamWaitValue32_v2" (stream: CUstream, address: CUdeviceptr, value: u32, flags: c_uint);
    cuMemCreate(handle: *mut u64, bytes: usize, properties: *const [u32; 8], flags: u64);
}

const PAGE: usize = 4096;
const PAGES: usize = 16;
const BYTES: usize = PAGE * PAGES;

/// Each thread adds 1 to a word of its own, 64 bytes from the last one's.
const ADD: &str = ".visible .entry add(.param .u64 to) {
        .reg .b64 %to, %at; .reg .b32 %r<4>;
        ld.param.u64 %to, [to];
        mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;
        mad.lo.u32 %r0, %r1, %r2, %r0;
        mul.wide.u32 %at, %r0, 64;
        add.u64 %at, %at, %to;
        ld.global.u32 %r3, [%at];
        add.u32 %r3, %r3, 1;
        st.global.u32 [%at], %r3;
        ret;
    }";

fn map(bytes: usize, file: Option<&File>) -> *mut u8 {
    let (flags, descriptor) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a fresh mapping.
    let mapped = unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(null_mut(), bytes, rights, flags, descriptor, 0)
    };
    assert_ne!(mapped, libc::MAP_FAILED);
    mapped.cast()
}

/// A file without a name.
fn file(bytes: u64) -> File {
    use std::os::fd::FromRawFd;
    // SAFETY: a fresh descriptor.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"test".as_ptr(), 0)) };
    file.set_len(bytes).unwrap();
    file
}

fn registered(bytes: usize, file: Option<&File>) -> *mut u8 {
    let memory = map(bytes, file);
    ok(cuMemHostRegister(memory.cast(), bytes, 0));
    memory
}

fn at(memory: *mut u8, page: usize) -> *mut c_void {
    // SAFETY: within the mapping.
    unsafe { memory.add(page * PAGE).cast() }
}

fn protect(memory: *mut u8, page: usize, rights: c_int) {
    // SAFETY: a page of the test's own.
    assert_eq!(unsafe { libc::mprotect(at(memory, page), PAGE, rights) }, 0);
}

/// Runs the kernel over all of the memory; the context's answer.
fn run(memory: *mut u8) -> CUresult {
    run_with(function(module(ADD), "add"), memory)
}

fn run_with(add: CUfunction, memory: *mut u8) -> CUresult {
    try_launch(add, (BYTES / 64 / 128) as c_uint, 128, &[memory as u64])
}

fn told(run: &Run) {
    assert!(
        run.stderr.contains("the program has registered this host memory"),
        "{run:?}"
    );
}

#[test]
fn memory_that_is_unmapped_under_a_kernel_is_a_fault() {
    let name = test_name!();
    // With blocks in line, and in turns.
    for environment in [&[][..], &[("MARGAY_SEED", "1")]] {
        let run = alone(name, environment, || {
            crate::basics::context();
            let memory = registered(BYTES, None);
            // SAFETY: pages of the test's own.
            assert_eq!(unsafe { libc::munmap(at(memory, 5), PAGE * 3) }, 0);
            assert_eq!(run(memory), CUDA_ERROR_ILLEGAL_ADDRESS);
            // The error stays, and what was unmapped stays so.
            assert_eq!(cuMemcpyHtoD(0, null_mut(), 0), CUDA_ERROR_ILLEGAL_ADDRESS);
            let mut core = [0_u8; 4];
            for page in 5..8 {
                // SAFETY: asks whether the page is mapped.
                let known = unsafe { libc::mincore(at(memory, page), PAGE, core.as_mut_ptr()) };
                assert_eq!(
                    (known, std::io::Error::last_os_error().raw_os_error()),
                    (-1, Some(libc::ENOMEM))
                );
            }
        });
        told(&run);
        assert!(run.stderr.contains("kernel add"), "{run:?}");
    }
}

/// In compiled code, which learns where a range is.
const COMPILED: [(&str, &str); 2] = [("MARGAY_JIT", "always"), ("MARGAY_JIT_CACHE", "off")];

#[test]
fn memory_that_is_registered_no_longer_is_a_fault() {
    alone(test_name!(), &COMPILED, || {
        crate::basics::context();
        let add = function(module(ADD), "add");
        let [memory, other] = [registered(BYTES, None), registered(BYTES, None)];
        for turn in 1..=3 {
            assert_eq!(run_with(add, memory), CUDA_SUCCESS);
            assert_eq!(run_with(add, other), CUDA_SUCCESS);
            // SAFETY: a word of the mapping, which the kernel has done with.
            assert_eq!(unsafe { memory.add(64 * 77).cast::<u32>().read() }, turn);
        }
        // It is still there.
        ok(cuMemHostUnregister(memory.cast()));
        assert_eq!(run_with(add, other), CUDA_SUCCESS);
        assert_eq!(run_with(add, memory), CUDA_ERROR_ILLEGAL_ADDRESS);
        // SAFETY: likewise.
        assert_eq!(unsafe { memory.add(64 * 77).cast::<u32>().read() }, 3);
    });
}

#[test]
fn memory_that_a_kernel_has_used_and_that_is_unmapped_then_is_a_fault() {
    let run = alone(test_name!(), &COMPILED, || {
        crate::basics::context();
        let add = function(module(ADD), "add");
        let memory = registered(BYTES, None);
        assert_eq!(run_with(add, memory), CUDA_SUCCESS);
        // SAFETY: pages of the test's own.
        assert_eq!(unsafe { libc::munmap(at(memory, 5), PAGE * 3) }, 0);
        assert_eq!(run_with(add, memory), CUDA_ERROR_ILLEGAL_ADDRESS);
    });
    told(&run);
}

#[test]
fn memory_that_is_protected_under_a_kernel_is_a_fault() {
    for rights in [libc::PROT_NONE, libc::PROT_READ] {
        let name = test_name!();
        let environment = [("TEST_RIGHTS", if rights == libc::PROT_NONE { "none" } else { "read" })];
        let run = alone(name, &environment, || {
            let rights = match std::env::var("TEST_RIGHTS").as_deref() {
                Ok("none") => libc::PROT_NONE,
                _ => libc::PROT_READ,
            };
            crate::basics::context();
            let memory = registered(BYTES, None);
            // SAFETY: a word of the test's own.
            unsafe { *at(memory, 3).cast::<u64>().add(1) = 77 };
            protect(memory, 3, rights);
            assert_eq!(run(memory), CUDA_ERROR_ILLEGAL_ADDRESS);
            // It has the rights that the program gave it, and what was in it.
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let line = maps
                .lines()
                .find(|line| line.starts_with(&format!("{:x}-", at(memory, 3) as usize)));
            let expected = if rights == libc::PROT_NONE { "---p" } else { "r--p" };
            assert_eq!(line.and_then(|line| line.split(' ').nth(1)), Some(expected), "{maps}");
            protect(memory, 3, libc::PROT_READ);
            // SAFETY: readable again.
            assert_eq!(unsafe { *at(memory, 3).cast::<u64>().add(1) }, 77);
        });
        told(&run);
    }
}

#[test]
fn a_file_that_is_shortened_under_a_kernel_is_a_fault() {
    let run = alone(test_name!(), &[("MARGAY_THREADS", "4")], || {
        crate::basics::context();
        let file = file(BYTES as u64);
        let memory = registered(BYTES, Some(&file));
        file.set_len(PAGE as u64 * 4).unwrap();
        assert_eq!(run(memory), CUDA_ERROR_ILLEGAL_ADDRESS);
        // The mapping is still the file's: when that grows again, it shows.
        file.set_len(BYTES as u64).unwrap();
        use std::os::unix::fs::FileExt;
        for page in 4..PAGES {
            file.write_all_at(&[9; 8], (page * PAGE) as u64).unwrap();
            // SAFETY: within the file again.
            assert_eq!(unsafe { *at(memory, page).cast::<u8>() }, 9, "page {page}");
        }
        assert_eq!(cuMemHostUnregister(memory.cast()), CUDA_ERROR_ILLEGAL_ADDRESS);
    });
    told(&run);
}

/// A mapping may be longer than its file from the beginning.
#[test]
fn a_file_shorter_than_the_range_is_a_fault() {
    let run = alone(test_name!(), &[], || {
        crate::basics::context();
        let file = file(PAGE as u64);
        let memory = registered(BYTES, Some(&file));
        assert_eq!(run(memory), CUDA_ERROR_ILLEGAL_ADDRESS);
    });
    told(&run);
}

#[test]
fn copies_from_memory_that_is_gone_fail() {
    for way in ["now", "queued", "set", "wait"] {
        let run = alone(test_name!(), &[("TEST_WAY", way)], || {
            crate::basics::context();
            let memory = registered(BYTES, None);
            let device = crate::basics::alloc(BYTES);
            let mut stream = null_mut();
            ok(cuStreamCreate(&mut stream, 1));
            // SAFETY: pages of the test's own.
            assert_eq!(unsafe { libc::munmap(at(memory, 8), PAGE) }, 0);
            let gone = at(memory, 8);
            match std::env::var("TEST_WAY").as_deref() {
                Ok("now") => drop(cuMemcpyHtoD(device, memory.cast(), BYTES)),
                Ok("queued") => ok(cuMemcpyHtoDAsync(device, memory.cast(), BYTES, stream)),
                Ok("set") => drop(cuMemsetD8(memory as u64, 1, BYTES)),
                _ => ok(cuStreamWaitValue32(stream, gone as u64, 1, 1)),
            }
            assert_eq!(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
        });
        told(&run);
    }
}

static OWN_FAULTS: AtomicU32 = AtomicU32::new(0);
static OWN_PAGE: AtomicU64 = AtomicU64::new(0);

/// The program's own handler: it opens its page, as collectors of garbage do.
extern "C" fn opens(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    OWN_FAULTS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the system's record; the page is the test's own.
    unsafe {
        let page = (*info).si_addr() as usize & !(PAGE - 1);
        assert_eq!(page as u64, OWN_PAGE.load(Ordering::SeqCst));
        // No signal but this one is blocked here, as the program has asked for.
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
        assert_eq!(libc::sigismember(&mask, libc::SIGSEGV), 1);
        assert_eq!(libc::sigismember(&mask, libc::SIGUSR1), 0);
        libc::mprotect(page as *mut c_void, PAGE, libc::PROT_READ | libc::PROT_WRITE);
    }
}

#[test]
fn the_programs_own_handler_gets_the_programs_own_faults() {
    alone(test_name!(), &[], || {
        crate::basics::context();
        // SAFETY: a handler that does what handlers may do.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = opens as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            assert_eq!(libc::sigaction(libc::SIGSEGV, &action, null_mut()), 0);
        }
        let memory = registered(BYTES, None);
        // A page of a registered range, and one of no range.
        for page in [at(memory, 2), map(PAGE, None).cast()] {
            let before = OWN_FAULTS.load(Ordering::SeqCst);
            OWN_PAGE.store(page as u64, Ordering::SeqCst);
            // SAFETY: the handler opens the page.
            unsafe {
                assert_eq!(libc::mprotect(page, PAGE, libc::PROT_NONE), 0);
                page.cast::<u8>().write_volatile(1);
            }
            assert_eq!(OWN_FAULTS.load(Ordering::SeqCst), before + 1);
        }
        assert_eq!(run(memory), 0);
    });
}

#[test]
fn the_programs_own_faults_end_it_as_ever() {
    let run = in_another_process(test_name!(), &[], || {
        crate::basics::context();
        let memory = registered(BYTES, None);
        assert_eq!(run(memory), 0);
        protect(memory, 2, libc::PROT_NONE);
        // SAFETY: it is not.
        unsafe { at(memory, 2).cast::<u8>().write_volatile(1) };
        println!("survived");
    });
    assert_eq!(run.status.signal(), Some(libc::SIGSEGV), "{run:?}");
}

/// Sets a limit of this process, now and for good.
fn limit(which: libc::__rlimit_resource_t, bytes: u64) {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: plain numbers.
    assert_eq!(unsafe { libc::setrlimit(which, &limit) }, 0);
}

#[test]
fn a_log_that_nobody_reads_does_not_end_the_program() {
    for log in ["own", "driver"] {
        alone(
            test_name!(),
            &[
                ("TEST_LOG", log),
                ("MARGAY_LOG", "margay::api=debug"),
                ("CUDA_LOG_FILE", "stderr"),
            ],
            || {
                let mut ends = [0; 2];
                // SAFETY: descriptors of the test's own; the disposition that C programs begin with.
                unsafe {
                    assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
                    libc::dup2(ends[1], 2);
                    libc::close(ends[0]);
                    libc::close(ends[1]);
                    libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                }
                crate::basics::context();
                assert_eq!(cuMemFree(12345), CUDA_ERROR_INVALID_VALUE);
                // A signal of the program's own stays its own.
                // SAFETY: signals of this thread.
                unsafe {
                    let mut pending: libc::sigset_t = std::mem::zeroed();
                    libc::sigpending(&mut pending);
                    assert_eq!(libc::sigismember(&pending, libc::SIGPIPE), 0);
                    let mut mask: libc::sigset_t = std::mem::zeroed();
                    libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
                    assert_eq!(libc::sigismember(&mask, libc::SIGPIPE), 0);
                }
            },
        );
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    let log = std::env::temp_dir().join(format!("margay-limit-{}", std::process::id()));
    let name = log.to_str().unwrap();
    alone(
        test_name!(),
        &[("MARGAY_LOG", "margay::api=debug"), ("MARGAY_LOG_FILE", name)],
        || {
            limit(libc::RLIMIT_FSIZE, 1000);
            crate::basics::context();
            for _ in 0..20 {
                assert_eq!(cuMemFree(12345), CUDA_ERROR_INVALID_VALUE);
            }
            // Memory that is a file: CU_MEM_ALLOCATION_TYPE_PINNED, no handle, on device 0.
            let mut handle = 0;
            let properties = [1, 0, 1, 0, 0, 0, 0, 0];
            assert_eq!(
                cuMemCreate(&mut handle, 2 << 20, &properties, 0),
                CUDA_ERROR_OUT_OF_MEMORY
            );
        },
    );
    let _ = std::fs::remove_file(log);
}

#[test]
fn a_limit_on_data_is_an_error() {
    for megabytes in ["16", "80", "400"] {
        alone(test_name!(), &[("TEST_DATA", megabytes)], || {
            let megabytes: u64 = std::env::var("TEST_DATA").unwrap().parse().unwrap();
            limit(libc::RLIMIT_DATA, megabytes << 20);
            let mut context = null_mut();
            let (mut code, mut small, mut large) = (cuInit(0), 0, 0);
            if code == 0 {
                code = cuCtxCreate(&mut context, 0, 0);
            }
            println!("{megabytes} MB: begun with {code}");
            if code != 0 {
                assert_eq!(code, CUDA_ERROR_OUT_OF_MEMORY);
                return;
            }
            code = cuMemAlloc(&mut small, 1 << 20);
            println!("{megabytes} MB: a small allocation with {code}");
            // The map of the arena takes some of it.
            assert!(code == 0 || megabytes < 400 && code == CUDA_ERROR_OUT_OF_MEMORY);
            assert_eq!(cuMemAlloc(&mut large, 1 << 30), CUDA_ERROR_OUT_OF_MEMORY);
            if code == 0 {
                ok(cuMemsetD8(small, 1, 1 << 20));
                assert_eq!(crate::basics::download(small, 4), [1; 4]);
            }
        });
    }
}
