//! Error Log Management.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::alone::alone;
use crate::c::*;
use crate::code::*;
use crate::library::{cuLibraryGetModule, cuLibraryLoadData};
use crate::test_name;

/// `CUDA_ERROR_NOT_PERMITTED`
const CUDA_ERROR_NOT_PERMITTED: CUresult = 800;

type Callback = Option<extern "C" fn(*mut c_void, c_uint, *mut c_char, usize)>;

functions! {
    cuLogsRegisterCallback(callback: Callback, data: *mut c_void, handle: *mut *mut c_void);
    cuLogsUnregisterCallback(handle: *mut c_void);
    cuLogsCurrent(iterator: *mut c_uint, flags: c_uint);
    cuLogsDumpToFile(iterator: *mut c_uint, path: *const c_char, flags: c_uint);
    cuLogsDumpToMemory(iterator: *mut c_uint, buffer: *mut c_char, size: *mut usize, flags: c_uint);
}

/// A mistake whose line names the call.
fn mistake() {
    assert_eq!(cuMemFree(0x1234), CUDA_ERROR_INVALID_VALUE);
}

fn dump(iterator: *mut c_uint) -> String {
    let mut buffer = vec![0x55_u8; 30_000];
    let mut size = buffer.len();
    ok(cuLogsDumpToMemory(iterator, buffer.as_mut_ptr().cast(), &mut size, 0));
    let text = CStr::from_bytes_until_nul(&buffer)
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(text.len(), size);
    text
}

/// What the callback was told: data, level, text, length.
static TOLD: Mutex<Vec<(usize, c_uint, String, usize)>> = Mutex::new(Vec::new());

extern "C" fn listen(data: *mut c_void, level: c_uint, message: *mut c_char, length: usize) {
    // SAFETY: text that ends with NUL.
    let text = unsafe { CStr::from_ptr(message) }.to_str().unwrap().to_owned();
    TOLD.lock().unwrap().push((data as usize, level, text, length));
    // A mistake in a callback is not told again.
    let mut count = 0;
    assert_ne!(cuDeviceGetAttribute(&mut count, 1, -5), CUDA_SUCCESS);
}

#[test]
fn failed_calls_are_kept_and_told() {
    alone(test_name!(), &[], || {
        // Before cuInit, too.
        let mut place = 0;
        ok(cuLogsCurrent(&mut place, 0));
        context();
        let mut after = place;
        assert_eq!(dump(&mut after), "");
        mistake();
        mistake();
        let text = dump(&mut after);
        assert_eq!(text.lines().count(), 2);
        for line in text.lines() {
            assert!(
                line.contains("[CUDA][E][cuMemFree_v2]") && line.contains("CUDA_ERROR_INVALID_VALUE"),
                "{line}"
            );
        }
        // The place has moved on; all is there without one.
        assert_eq!(dump(&mut after), "");
        mistake();
        assert_eq!(dump(null_mut()).lines().count(), 3);
        assert_eq!(dump(&mut after).lines().count(), 1);

        let (mut one, mut two) = (null_mut(), null_mut());
        ok(cuLogsRegisterCallback(Some(listen), number(7), &mut one));
        ok(cuLogsRegisterCallback(Some(listen), number(8), &mut two));
        assert_ne!(one, two);
        mistake();
        ok(cuLogsUnregisterCallback(one));
        mistake();
        let told = std::mem::take(&mut *TOLD.lock().unwrap());
        assert_eq!(told.iter().map(|(data, ..)| *data).collect::<Vec<_>>(), [7, 8, 8]);
        for (_, level, text, length) in told {
            assert_eq!((level, length), (0, text.len()));
            assert!(text.contains("cuMemFree_v2"), "{text}");
        }
        ok(cuLogsUnregisterCallback(two));
        assert_eq!(cuLogsUnregisterCallback(two), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuLogsUnregisterCallback(null_mut()), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            cuLogsRegisterCallback(None, null_mut(), &mut one),
            CUDA_ERROR_INVALID_VALUE
        );
        ok(cuLogsRegisterCallback(Some(listen), null_mut(), null_mut()));
    });
}

#[test]
fn a_small_buffer_takes_the_latest() {
    alone(test_name!(), &[], || {
        context();
        let mut place = 0;
        ok(cuLogsCurrent(&mut place, 0));
        for _ in 0..5 {
            mistake();
        }
        let mut all = place;
        let whole = dump(&mut all);
        let last = whole.lines().last().unwrap();
        let mut buffer = vec![0_u8; 2 * last.len() + 80];
        let (mut size, mut iterator) = (buffer.len(), place);
        ok(cuLogsDumpToMemory(
            &mut iterator,
            buffer.as_mut_ptr().cast(),
            &mut size,
            0,
        ));
        let text = CStr::from_bytes_until_nul(&buffer).unwrap().to_str().unwrap();
        // A word that some are missing stands first, the latest last.
        assert!(text.lines().count() < 5 && text.lines().count() >= 2);
        assert!(!text.lines().next().unwrap().contains("cuMemFree"));
        assert_eq!(text.lines().last().unwrap(), last);
        let (mut size, mut iterator) = (10, place);
        let refused = cuLogsDumpToMemory(&mut iterator, buffer.as_mut_ptr().cast(), &mut size, 0);
        assert_eq!((refused, size), (CUDA_ERROR_INVALID_VALUE, 0));

        // 25600 bytes are kept: older lines go, and that is told.
        for _ in 0..1000 {
            mistake();
        }
        let text = dump(&mut place);
        assert!(text.len() <= 25600 + 100 && text.len() > 20_000, "{}", text.len());
        assert!(!text.lines().next().unwrap().contains("cuMemFree"));

        let mut size = 100;
        let buffer = buffer.as_mut_ptr().cast::<c_char>();
        assert_eq!(
            cuLogsDumpToMemory(null_mut(), null_mut(), &mut size, 0),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(
            cuLogsDumpToMemory(null_mut(), buffer, null_mut(), 0),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(
            cuLogsDumpToMemory(null_mut(), buffer, &mut size, 1),
            CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(cuLogsCurrent(null_mut(), 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuLogsCurrent(&mut place, 1), CUDA_ERROR_INVALID_VALUE);
    });
}

#[test]
fn the_log_can_be_written_to_a_file() {
    alone(test_name!(), &[], || {
        context();
        mistake();
        let path = CString::new(format!("/tmp/margay-log-dump-{}", std::process::id())).unwrap();
        ok(cuLogsDumpToFile(null_mut(), path.as_ptr(), 0));
        let text = std::fs::read_to_string(path.to_str().unwrap()).unwrap();
        std::fs::remove_file(path.to_str().unwrap()).unwrap();
        assert!(text.lines().last().unwrap().contains("cuMemFree_v2"), "{text}");
        assert_eq!(cuLogsDumpToFile(null_mut(), null(), 0), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(cuLogsDumpToFile(null_mut(), path.as_ptr(), 1), CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            cuLogsDumpToFile(null_mut(), c"/nowhere/at/all".as_ptr(), 0),
            CUDA_ERROR_INVALID_VALUE
        );
    });
}

/// `CUDA_LOG_FILE`: every line as it comes, even of mistakes before cuInit.
#[test]
fn the_environment_names_a_file_for_the_log() {
    let file = std::env::temp_dir().join(format!("margay-log-{}", std::process::id()));
    let name = file.to_str().unwrap().to_owned();
    alone(test_name!(), &[("CUDA_LOG_FILE", &name)], || {
        let mut count: c_int = 0;
        assert_eq!(cuDeviceGetCount(&mut count), CUDA_ERROR_NOT_INITIALIZED);
    });
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let _ = std::fs::remove_file(&file);
    assert!(text.contains("cuDeviceGetCount"), "{text}");
}

static LIBRARY: AtomicUsize = AtomicUsize::new(0);
static CONTEXT: AtomicUsize = AtomicUsize::new(0);
static ANSWERS: Mutex<Vec<CUresult>> = Mutex::new(Vec::new());

extern "C" fn ask_for_the_module(_: *mut c_void, _: c_uint, _: *mut c_char, _: usize) {
    let mut module = null_mut();
    let answer = cuLibraryGetModule(&mut module, number(LIBRARY.load(Ordering::SeqCst)));
    ANSWERS.lock().unwrap().push(answer);
}

/// A callback may use the very thing that its line is about: nothing of it is locked while the callback runs.
#[test]
fn a_callback_uses_the_library_that_cannot_be_linked() {
    alone(test_name!(), &[], || {
        context();
        let (mut library, mut module) = (null_mut(), null_mut());
        let (_, image) = data("sass.fatbin");
        let none = null_mut();
        let code = image.as_ptr().cast();
        ok(cuLibraryLoadData(
            &mut library,
            code,
            none,
            null_mut(),
            0,
            none,
            null_mut(),
            0,
        ));
        LIBRARY.store(library as usize, Ordering::SeqCst);
        ok(cuLogsRegisterCallback(Some(ask_for_the_module), null_mut(), null_mut()));
        let answer = cuLibraryGetModule(&mut module, library);
        assert_eq!(answer, CUDA_ERROR_NO_BINARY_FOR_GPU);
        // Told of the message and of the failed call, both before it returned.
        assert_eq!(*ANSWERS.lock().unwrap(), [CUDA_ERROR_NO_BINARY_FOR_GPU; 2]);
    });
}

extern "C" fn wait_for_everything(_: *mut c_void, _: c_uint, _: *mut c_char, _: usize) {
    ok(cuCtxSetCurrent(number(CONTEXT.load(Ordering::SeqCst))));
    ANSWERS.lock().unwrap().push(cuCtxSynchronize());
}

/// On the thread that runs the kernel whose fault is told, waiting for the kernel would never end.
#[test]
fn a_callback_on_a_thread_of_the_drivers_does_not_wait_for_it() {
    alone(test_name!(), &[], || {
        CONTEXT.store(context() as usize, Ordering::SeqCst);
        let stop = function(module(".visible .entry stop() { trap; }"), "stop");
        ok(cuLogsRegisterCallback(
            Some(wait_for_everything),
            null_mut(),
            null_mut(),
        ));
        let none = null_mut();
        ok(cuLaunchKernel(stop, 1, 1, 1, 1, 1, 1, 0, null_mut(), none, none));
        while ANSWERS.lock().unwrap().is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(*ANSWERS.lock().unwrap(), [CUDA_ERROR_NOT_PERMITTED]);
    });
}
