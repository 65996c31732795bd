//! Device management, error handling, version.

use super::*;
use std::ffi::CStr;

#[test]
fn the_version_needs_no_initialisation() {
    let mut version = 0;
    ok!(cuDriverGetVersion(&mut version));
    assert_eq!(version, 13050);
    fails!(CUDA_ERROR_INVALID_VALUE, cuDriverGetVersion(null_mut()));
}

#[test]
fn errors_have_names_and_descriptions() {
    let mut text = null();
    for (code, name, description) in [
        (0, c"CUDA_SUCCESS", c"no error"),
        (1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
        (
            209,
            c"CUDA_ERROR_NO_BINARY_FOR_GPU",
            c"no kernel image is available for execution on the device",
        ),
        (
            700,
            c"CUDA_ERROR_ILLEGAL_ADDRESS",
            c"an illegal memory access was encountered",
        ),
        (999, c"CUDA_ERROR_UNKNOWN", c"unknown error"),
    ] {
        ok!(cuGetErrorName(CUresult::from_raw(code), &mut text));
        // SAFETY: a C string, as the call succeeded.
        assert_eq!(unsafe { CStr::from_ptr(text) }, name);
        ok!(cuGetErrorString(CUresult::from_raw(code), &mut text));
        // SAFETY: the call succeeded, so that the pointer is one to a C string.
        assert_eq!(unsafe { CStr::from_ptr(text) }, description);
    }
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuGetErrorName(CUresult::from_raw(12345), &mut text)
    );
    assert!(text.is_null());
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuGetErrorString(CUresult::CUDA_SUCCESS, null_mut())
    );
}

#[test]
fn flags_of_init_must_be_0() {
    fails!(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    ok!(cuInit(0));
    ok!(cuInit(0));
}

#[test]
fn devices_are_found_by_ordinal_and_by_bus() {
    ok!(cuInit(0));
    let (mut count, mut device) = (0, -7);
    ok!(cuDeviceGetCount(&mut count));
    assert!(count >= 1);
    ok!(cuDeviceGet(&mut device, 0));
    assert_eq!(device, 0);
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&mut device, count));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&mut device, -1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGet(null_mut(), 0));

    let mut text = [0x55 as c_char; 64];
    ok!(cuDeviceGetPCIBusId(text.as_mut_ptr(), 64, 0));
    // SAFETY: the call succeeded.
    let bus = unsafe { CStr::from_ptr(text.as_ptr()) }.to_owned();
    // [domain]:[bus]:[device].[function], 13 characters with the NUL (manual).
    assert_eq!(bus.as_bytes().len(), 12, "{bus:?}");
    ok!(cuDeviceGetByPCIBusId(&mut device, bus.as_ptr()));
    assert_eq!(device, 0);
    assert_ne!(
        call!(cuDeviceGetByPCIBusId(&mut device, c"nonsense".as_ptr())),
        CUresult::CUDA_SUCCESS
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(&mut device, null()));
}

#[test]
fn names_fit_the_buffer() {
    ok!(cuInit(0));
    let mut text = [0x55 as c_char; 256];
    ok!(cuDeviceGetName(text.as_mut_ptr(), 256, 0));
    // SAFETY: the call succeeded.
    let name = unsafe { CStr::from_ptr(text.as_ptr()) }.to_owned();
    assert!(!name.is_empty());
    let mut short = [0x55 as c_char; 8];
    ok!(cuDeviceGetName(short.as_mut_ptr(), 4, 0));
    assert_eq!(short[3], 0);
    assert_eq!(short[4..], [0x55; 4]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(text.as_mut_ptr(), 0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(null_mut(), 256, 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetName(text.as_mut_ptr(), 256, 99));
}

/// cudart does not start when a number fails that it knows, and newer ones know more.
#[test]
fn every_attribute_number_succeeds() {
    ok!(cuInit(0));
    let mut value = 0;
    for number in (0..300).chain([u32::MAX, i32::MAX as u32]) {
        ok!(cuDeviceGetAttribute(
            &mut value,
            CUdevice_attribute::from_raw(number),
            0
        ));
    }
    ok!(cuDeviceGetAttribute(
        &mut value,
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE,
        0
    ));
    assert_eq!(value, 32);
    let warp = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE;
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(null_mut(), warp, 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&mut value, warp, 7777));
}

#[test]
fn both_versions_give_one_uuid() {
    ok!(cuInit(0));
    let (mut first, mut second) = (CUuuid { bytes: [0; 16] }, CUuuid { bytes: [0; 16] });
    ok!(cuDeviceGetUuid(&mut first, 0));
    ok!(cuDeviceGetUuid_v2(&mut second, 0));
    assert_eq!(first.bytes, second.bytes);
    assert_ne!(first.bytes, [0; 16]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetUuid_v2(null_mut(), 0));
}

#[test]
fn deprecated_properties_agree_with_attributes() {
    ok!(cuInit(0));
    let mut properties = std::mem::MaybeUninit::<CUdevprop>::zeroed();
    ok!(cuDeviceGetProperties(properties.as_mut_ptr(), 0));
    // SAFETY: written by the call.
    let properties = unsafe { properties.assume_init() };
    assert_eq!((properties.SIMDWidth, properties.maxThreadsPerBlock), (32, 1024));
    let (mut major, mut minor, mut attribute) = (0, 0, 0);
    ok!(cuDeviceComputeCapability(&mut major, &mut minor, 0));
    let capability = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    ok!(cuDeviceGetAttribute(&mut attribute, capability, 0));
    assert_eq!(major, attribute);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuDeviceComputeCapability(null_mut(), &mut minor, 0)
    );
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuDeviceGetLuid(null_mut(), null_mut(), 0));
}
