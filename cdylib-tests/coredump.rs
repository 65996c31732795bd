//! Coredump Attributes Control.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

use crate::alone::{alone, in_another_process};
use crate::c::*;
use crate::code::*;
use crate::test_name;

type Callback = Option<extern "C" fn(*mut c_void, c_int, CUdevice)>;

functions! {
    cuCoredumpGetAttribute(which: c_uint, value: *mut c_void, size: *mut usize);
    cuCoredumpGetAttributeGlobal(which: c_uint, value: *mut c_void, size: *mut usize);
    cuCoredumpSetAttribute(which: c_uint, value: *mut c_void, size: *mut usize);
    cuCoredumpSetAttributeGlobal(which: c_uint, value: *mut c_void, size: *mut usize);
    cuCoredumpRegisterStartCallback(callback: Callback, data: *mut c_void, handle: *mut *mut c_void);
    cuCoredumpRegisterCompleteCallback(callback: Callback, data: *mut c_void, handle: *mut *mut c_void);
    cuCoredumpDeregisterStartCallback(handle: *mut c_void);
    cuCoredumpDeregisterCompleteCallback(handle: *mut c_void);
}

const ENABLE: c_uint = 1;
const TRIGGER_HOST: c_uint = 2;
const LIGHTWEIGHT: c_uint = 3;
const USER_TRIGGER: c_uint = 4;
const FILE: c_uint = 5;
const PIPE: c_uint = 6;
const FLAGS: c_uint = 7;

const SKIP_ABORT: u32 = 1 << 4;
const GZIP: u32 = 1 << 6;

const NOT_PERMITTED: CUresult = 800;
const NOT_SUPPORTED: CUresult = 801;

type Call = fn(c_uint, *mut c_void, *mut usize) -> CUresult;

fn get(call: Call, which: c_uint) -> Vec<u8> {
    let mut size = 0;
    ok(call(which, null_mut(), &mut size));
    let mut value = vec![0_u8; size];
    ok(call(which, value.as_mut_ptr().cast(), &mut size));
    value
}

fn set(call: Call, which: c_uint, value: &[u8]) -> CUresult {
    let mut size = value.len();
    call(which, value.as_ptr().cast_mut().cast(), &mut size)
}

fn text(bytes: &[u8]) -> &str {
    CStr::from_bytes_until_nul(bytes).unwrap().to_str().unwrap()
}

#[test]
fn settings_have_defaults_and_contexts_go_before_the_process() {
    alone(test_name!(), &[], || {
        context();
        let (own, own_set): (Call, Call) = (cuCoredumpGetAttribute, cuCoredumpSetAttribute);
        let (all, all_set): (Call, Call) = (cuCoredumpGetAttributeGlobal, cuCoredumpSetAttributeGlobal);
        for call in [own, all] {
            assert_eq!(
                [ENABLE, TRIGGER_HOST, LIGHTWEIGHT, USER_TRIGGER].map(|which| get(call, which)),
                [[0], [1], [0], [0]]
            );
            assert_eq!(get(call, FLAGS), [0; 4]);
            for (which, stem) in [(FILE, "core.cuda."), (PIPE, "corepipe.cuda.")] {
                let value = get(call, which);
                assert_eq!(value.len(), 1024);
                assert!(text(&value).starts_with(stem));
                assert!(text(&value).ends_with(&std::process::id().to_string()));
            }
        }
        ok(set(all_set, LIGHTWEIGHT, &[1]));
        ok(set(all_set, FILE, b"everybody\0"));
        assert_eq!(
            (get(own, LIGHTWEIGHT), text(&get(own, FILE)).to_owned()),
            (vec![1], "everybody".to_string())
        );
        ok(set(own_set, FILE, b"mine\0"));
        ok(set(own_set, LIGHTWEIGHT, &[0]));
        ok(set(own_set, FLAGS, &SKIP_ABORT.to_ne_bytes()));
        assert_eq!(
            (get(own, LIGHTWEIGHT), text(&get(own, FILE)).to_owned()),
            (vec![0], "mine".to_string())
        );
        assert_eq!((text(&get(all, FILE)), get(all, FLAGS)), ("everybody", vec![0; 4]));
        // Another context has its own.
        let mut other = null_mut();
        ok(cuCtxCreate(&mut other, 0x20, 0));
        assert_eq!((text(&get(own, FILE)), get(own, ENABLE)), ("everybody", vec![1]));
        assert_eq!(get(all, ENABLE), [0]);

        for which in [USER_TRIGGER, PIPE] {
            assert_eq!(set(own_set, which, b"\x01"), NOT_SUPPORTED);
        }
        for call in [own_set, all_set] {
            assert_eq!(set(call, FLAGS, &GZIP.to_ne_bytes()), NOT_SUPPORTED);
            assert_eq!(set(call, FLAGS, &0x8000_u32.to_ne_bytes()), CUDA_ERROR_INVALID_VALUE);
            assert_eq!(set(call, FLAGS, &[1]), CUDA_ERROR_INVALID_VALUE);
            assert_eq!(set(call, FILE, &[b'x'; 2000]), CUDA_ERROR_INVALID_VALUE);
            assert_eq!(set(call, ENABLE, &[]), CUDA_ERROR_INVALID_VALUE);
            for which in [0, 8, 100] {
                assert_eq!(set(call, which, &[1]), CUDA_ERROR_INVALID_VALUE);
            }
            assert_eq!(
                call(ENABLE, (&raw mut other).cast(), null_mut()),
                CUDA_ERROR_INVALID_VALUE
            );
        }
        let (mut size, mut byte) = (3, 0_u8);
        assert_eq!(own(FILE, (&raw mut byte).cast(), &mut size), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            own(ENABLE, (&raw mut byte).cast(), null_mut()),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(own(99, null_mut(), &mut size), CUDA_ERROR_INVALID_VALUE);
        for _ in 0..2 {
            ok(cuCtxSetCurrent(null_mut()));
        }
        assert_eq!(own(ENABLE, null_mut(), &mut size), CUDA_ERROR_INVALID_CONTEXT);
        ok(all(ENABLE, null_mut(), &mut size));
    });
}

#[test]
fn the_environment_goes_before_all() {
    let environment = [
        ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1"),
        ("CUDA_COREDUMP_FILE", "from.the.environment"),
        ("CUDA_COREDUMP_GENERATION_FLAGS", "skip_abort,skip_global_memory"),
    ];
    alone(test_name!(), &environment, || {
        context();
        for call in [cuCoredumpGetAttribute as Call, cuCoredumpGetAttributeGlobal] {
            assert_eq!(get(call, ENABLE), [1]);
            assert_eq!(text(&get(call, FILE)), "from.the.environment");
            assert_eq!(get(call, FLAGS), (SKIP_ABORT | 2).to_ne_bytes());
        }
        for call in [cuCoredumpSetAttribute as Call, cuCoredumpSetAttributeGlobal] {
            assert_eq!(set(call, ENABLE, &[0]), NOT_PERMITTED);
            assert_eq!(set(call, FILE, b"other\0"), NOT_PERMITTED);
        }
        assert_eq!(text(&get(cuCoredumpGetAttribute, FILE)), "from.the.environment");
    });
}

static TOLD: Mutex<Vec<(usize, c_int, CUdevice)>> = Mutex::new(Vec::new());

extern "C" fn note(data: *mut c_void, process: c_int, device: CUdevice) {
    TOLD.lock().unwrap().push((data as usize, process, device));
    // Not from within.
    let mut handle = null_mut();
    assert_eq!(
        cuCoredumpRegisterStartCallback(Some(note), null_mut(), &mut handle),
        NOT_PERMITTED
    );
    assert_eq!(cuCoredumpDeregisterCompleteCallback(null_mut()), NOT_PERMITTED);
}

fn fault() {
    let bad = function(
        module(".visible .entry bad() { .reg .b64 %a; mov.u64 %a, 64; st.global.u64 [%a], %a; ret; }"),
        "bad",
    );
    assert_eq!(try_launch(bad, 1, 1, &[]), CUDA_ERROR_ILLEGAL_ADDRESS);
}

#[test]
fn a_fault_is_dumped_where_that_is_wanted_and_callbacks_are_told() {
    let path = std::env::temp_dir().join(format!("margay-core-{}", std::process::id()));
    let name = format!("{}\0", path.display());
    alone(test_name!(), &[("DUMP", name.trim_end_matches('\0'))], || {
        context();
        let name = format!("{}\0", std::env::var("DUMP").unwrap());
        let kept = words(1000);
        ok(set(cuCoredumpSetAttribute, ENABLE, &[1]));
        ok(set(cuCoredumpSetAttribute, FLAGS, &SKIP_ABORT.to_ne_bytes()));
        ok(set(cuCoredumpSetAttribute, FILE, name.as_bytes()));
        let (mut start, mut complete) = (null_mut(), null_mut());
        ok(cuCoredumpRegisterStartCallback(Some(note), number(1), &mut start));
        ok(cuCoredumpRegisterStartCallback(Some(note), number(2), null_mut()));
        ok(cuCoredumpRegisterCompleteCallback(Some(note), number(3), &mut complete));
        assert_eq!(
            cuCoredumpRegisterStartCallback(None, null_mut(), null_mut()),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(cuCoredumpDeregisterStartCallback(complete), CUDA_ERROR_INVALID_VALUE);
        fault();
        let me = std::process::id() as c_int;
        assert_eq!(*TOLD.lock().unwrap(), [(1, me, 0), (2, me, 0), (3, me, 0)]);
        ok(cuCoredumpDeregisterStartCallback(start));
        ok(cuCoredumpDeregisterCompleteCallback(complete));
        assert_eq!(cuCoredumpDeregisterStartCallback(start), CUDA_ERROR_INVALID_VALUE);
        let dump = std::fs::read_to_string(name.trim_end_matches('\0')).unwrap();
        for word in [
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "kernel bad",
            "st.global.u64",
            &format!("{kept:#x} 4000 bytes"),
        ] {
            assert!(dump.contains(word), "{word}: {dump}");
        }
    });
    let _ = std::fs::remove_file(path);
}

#[test]
fn a_fault_ends_the_process_unless_that_is_not_wanted() {
    let path = std::env::temp_dir().join(format!("margay-core-abort-{}", std::process::id()));
    let name = path.to_str().unwrap().to_owned();
    let environment = [
        ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1"),
        ("CUDA_COREDUMP_FILE", name.as_str()),
    ];
    let run = in_another_process(test_name!(), &environment, || {
        context();
        fault();
    });
    assert!(!run.status.success(), "{}", run.stderr);
    let dump = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(path);
    assert!(dump.contains("kernel bad"), "{dump}");
}

#[test]
fn a_dump_can_be_asked_for_by_a_pipe() {
    alone(test_name!(), &[], || {
        context();
        let stem = std::env::temp_dir().join(format!("margay-pipe-{}", std::process::id()));
        let (pipe, file) = (
            format!("{}.pipe\0", stem.display()),
            format!("{}.core\0", stem.display()),
        );
        ok(set(cuCoredumpSetAttributeGlobal, PIPE, pipe.as_bytes()));
        ok(set(cuCoredumpSetAttributeGlobal, FILE, file.as_bytes()));
        ok(set(cuCoredumpSetAttributeGlobal, USER_TRIGGER, &[1]));
        assert_eq!(set(cuCoredumpSetAttributeGlobal, PIPE, b"late\0"), NOT_PERMITTED);
        let (pipe, file) = (pipe.trim_end_matches('\0'), file.trim_end_matches('\0'));
        for _ in 0..500 {
            if std::path::Path::new(pipe).exists() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        std::fs::write(pipe, "now").unwrap();
        let mut dump = String::new();
        for _ in 0..500 {
            dump = std::fs::read_to_string(file).unwrap_or_default();
            if dump.contains("asked for") {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let _ = (std::fs::remove_file(pipe), std::fs::remove_file(file));
        assert!(dump.contains("asked for by the user"), "{dump}");
    });
}
