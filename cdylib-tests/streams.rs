//! Stream Management: attributes.

use crate::c::*;
use std::ffi::c_int;
use std::ptr::null_mut;

functions! {
    cuStreamGetAttribute(stream: CUstream, attribute: c_int, value: *mut [u64; 8]);
    cuStreamSetAttribute(stream: CUstream, attribute: c_int, value: *const [u64; 8]);
    cuStreamCopyAttributes(to: CUstream, from: CUstream);
    cuStreamCreateWithPriority(stream: *mut CUstream, flags: u32, priority: c_int);
}

const WINDOW: c_int = 1;
const POLICY: c_int = 3;
const PRIORITY: c_int = 8;
const DOMAINS: c_int = 9;
const DOMAIN: c_int = 10;

fn value(first: u64) -> [u64; 8] {
    let mut value = [0; 8];
    value[0] = first;
    value
}

#[test]
fn attributes_are_kept_and_copied() {
    let (mut context, mut a, mut b) = (null_mut(), null_mut(), null_mut());
    ok(cuInit(0));
    ok(cuCtxCreate(&mut context, 0, 0));
    ok(cuStreamCreateWithPriority(&mut a, 1, -2));
    ok(cuStreamCreate(&mut b, 0));
    let get = |stream: CUstream, attribute| {
        let mut value = [9; 8];
        ok(cuStreamGetAttribute(stream, attribute, &mut value));
        value
    };
    // CU_SYNC_POLICY_AUTO is 1; domains map to themselves: bytes 0 and 1.
    for (attribute, expected) in [(WINDOW, 0), (POLICY, 1), (DOMAINS, 1 << 8), (DOMAIN, 0)] {
        assert_eq!(get(b, attribute), value(expected));
    }
    assert_eq!(get(a, PRIORITY), value(u64::from(-2_i32 as u32)));
    let window = [0x1000, 64, 0x3f00_0000, 2, 0, 0, 0, 0];
    ok(cuStreamSetAttribute(a, WINDOW, &window));
    ok(cuStreamSetAttribute(a, POLICY, &value(2)));
    ok(cuStreamSetAttribute(a, DOMAIN, &value(1)));
    ok(cuStreamCopyAttributes(b, a));
    assert_eq!(
        (get(b, WINDOW), get(b, POLICY), get(b, DOMAIN)),
        (window, value(2), value(1))
    );
    // A priority is for good, and not copied.
    assert_eq!(get(b, PRIORITY), value(0));
    for (attribute, first) in [(PRIORITY, 0), (POLICY, 9), (DOMAIN, 7), (2, 0), (99, 0), (-1, 0)] {
        assert_eq!(
            cuStreamSetAttribute(a, attribute, &value(first)),
            CUDA_ERROR_INVALID_VALUE
        );
    }
    assert_eq!(cuStreamGetAttribute(a, 2, &mut value(0)), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuStreamGetAttribute(a, POLICY, null_mut()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuStreamGetAttribute(0x40 as CUstream, POLICY, &mut value(0)),
        CUDA_ERROR_INVALID_HANDLE
    );
    let mut other = null_mut();
    ok(cuCtxCreate(&mut other, 0, 0));
    // The default stream is that of the current context: another one than the stream's.
    assert_eq!(cuStreamCopyAttributes(null_mut(), a), CUDA_ERROR_INVALID_VALUE);
    ok(cuCtxDestroy(other));
    ok(cuCtxDestroy(context));
}
