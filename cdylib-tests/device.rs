//! Device Management.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};

use crate::alone::alone;
use crate::c::*;
use crate::test_name;

functions! {
    cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: CUdevice);
    cuDeviceGetProperties(properties: *mut [c_int; 14], device: CUdevice);
    cuDeviceGetByPCIBusId(device: *mut CUdevice, id: *const c_char);
    cuDeviceGetPCIBusId(id: *mut c_char, length: c_int, device: CUdevice);
    cuDeviceGetLuid(luid: *mut c_char, mask: *mut c_uint, device: CUdevice);
    cuDeviceGetTexture1DLinearMaxWidth(width: *mut usize, format: c_uint, channels: c_uint, device: CUdevice);
    cuDeviceRegisterAsyncNotification(device: CUdevice, callback: *mut c_void, data: *mut c_void, handle: *mut *mut c_void);
    cuDeviceUnregisterAsyncNotification(device: CUdevice, handle: *mut c_void);
    cuDeviceGetCliqueCount(count: *mut usize, device: CUdevice);
    cuDeviceGetCliqueInfo(information: *mut c_void, count: *mut usize, device: CUdevice);
    cuDeviceGetFabricClusterUuid(uuid: *mut [u8; 16], device: CUdevice);
    cuFlushGPUDirectRDMAWrites(target: c_int, scope: c_int);
}

const NOT_SUPPORTED: CUresult = 801;

fn attribute(which: c_int) -> c_int {
    let mut value = -99;
    ok(cuDeviceGetAttribute(&mut value, which, 0));
    value
}

fn pci(device: CUdevice) -> String {
    let mut id = [0x55_u8; 32];
    ok(cuDeviceGetPCIBusId(id.as_mut_ptr().cast(), 32, device));
    CStr::from_bytes_until_nul(&id).unwrap().to_str().unwrap().to_owned()
}

#[test]
fn one_thing_is_said_in_one_way() {
    ok(cuInit(0));
    let (mut major, mut minor, mut properties) = (0, 0, [0; 14]);
    ok(cuDeviceComputeCapability(&mut major, &mut minor, 0));
    assert_eq!([75, 76].map(attribute), [major, minor]);
    ok(cuDeviceGetProperties(&mut properties, 0));
    // CUdevprop: threads of a block, block x y z, grid x y z, shared, constant, warp, pitch, registers, clock, alignment.
    assert_eq!(
        properties,
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14].map(attribute)
    );
    let id = pci(0);
    assert_eq!(id.len(), "0000:01:00.0".len());
    let field = |range: std::ops::Range<usize>| i32::from_str_radix(&id[range], 16).unwrap();
    // PCI_DOMAIN_ID, PCI_BUS_ID, PCI_DEVICE_ID
    assert_eq!([50, 33, 34].map(attribute), [field(0..4), field(5..7), field(8..10)]);
    // A short buffer takes what it has room for.
    let mut short = [0x55_u8; 5];
    ok(cuDeviceGetPCIBusId(short.as_mut_ptr().cast(), 5, 0));
    assert_eq!((&short[..4], short[4]), (&id.as_bytes()[..4], 0));
    let (mut width, mut device) = (0, 9);
    for channels in [1, 2, 4] {
        ok(cuDeviceGetTexture1DLinearMaxWidth(&mut width, 0x20, channels, 0));
        assert_eq!(width as c_int, attribute(69));
    }
    // What goes together: a block fits a multiprocessor, its threads are whole warps, a cluster is there if it says so.
    assert!(attribute(39) % attribute(10) == 0 && attribute(1) <= attribute(39));
    assert!(attribute(8) <= attribute(97) && attribute(97) <= attribute(81));
    assert!(attribute(12) <= attribute(82));
    assert_eq!(attribute(120), c_int::from(major >= 9));
    for form in [id.clone(), id.to_uppercase(), id[5..].to_owned(), id[..10].to_owned()] {
        let form = CString::new(form).unwrap();
        ok(cuDeviceGetByPCIBusId(&mut device, form.as_ptr()));
        assert_eq!(device, 0);
    }
    for (wrong, expected) in [
        (c"ffff:ff:1f.0", CUDA_ERROR_INVALID_DEVICE),
        (c"rubbish", CUDA_ERROR_INVALID_VALUE),
    ] {
        assert_eq!(cuDeviceGetByPCIBusId(&mut device, wrong.as_ptr()), expected);
    }
    assert_eq!(cuDeviceGetByPCIBusId(&mut device, null()), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuDeviceGetByPCIBusId(null_mut(), c"0:1:0".as_ptr()),
        CUDA_ERROR_INVALID_VALUE
    );
}

/// In processes of their own: the variable is read once.
#[test]
fn devices_have_as_many_multiprocessors_as_they_are_told() {
    for environment in [&[][..], &[("MARGAY_MULTIPROCESSORS", "132")]] {
        alone(test_name!(), environment, || {
            ok(cuInit(0));
            let told = std::env::var("MARGAY_MULTIPROCESSORS").map(|told| told.parse().unwrap());
            assert_eq!(attribute(16), told.unwrap_or(48));
        });
    }
}

#[test]
fn bad_questions_about_devices_are_refused() {
    ok(cuInit(0));
    let (mut value, mut width, mut text, mut properties) = (0, 0, [0 as c_char; 8], [0; 14]);
    for device in [-1, 99] {
        assert_eq!(
            cuDeviceComputeCapability(&mut value, &mut 0, device),
            CUDA_ERROR_INVALID_DEVICE
        );
        assert_eq!(
            cuDeviceGetProperties(&mut properties, device),
            CUDA_ERROR_INVALID_DEVICE
        );
        assert_eq!(
            cuDeviceGetPCIBusId(text.as_mut_ptr(), 8, device),
            CUDA_ERROR_INVALID_DEVICE
        );
        assert_eq!(
            cuDeviceGetLuid(text.as_mut_ptr(), &mut 0, device),
            CUDA_ERROR_INVALID_DEVICE
        );
        let result = cuDeviceGetTexture1DLinearMaxWidth(&mut width, 0x20, 1, device);
        assert_eq!(result, CUDA_ERROR_INVALID_DEVICE);
    }
    assert_eq!(
        cuDeviceComputeCapability(null_mut(), &mut value, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    assert_eq!(cuDeviceGetProperties(null_mut(), 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuDeviceGetPCIBusId(null_mut(), 8, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(cuDeviceGetPCIBusId(text.as_mut_ptr(), 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(
        cuDeviceGetTexture1DLinearMaxWidth(null_mut(), 0x20, 1, 0),
        CUDA_ERROR_INVALID_VALUE
    );
    for (format, channels) in [(0x20, 3), (0x20, 0), (0xdead, 1)] {
        let result = cuDeviceGetTexture1DLinearMaxWidth(&mut width, format, channels, 0);
        assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
    }
    // A word of Windows; a fabric, notifications and peripherals that are not there.
    let (mut handle, mut uuid) = (null_mut(), [0; 16]);
    assert_eq!(
        [
            cuDeviceGetLuid(text.as_mut_ptr(), &mut 0, 0),
            cuDeviceRegisterAsyncNotification(0, number(1), null_mut(), &mut handle),
            cuDeviceUnregisterAsyncNotification(0, null_mut()),
            cuDeviceGetCliqueCount(&mut width, 0),
            cuDeviceGetCliqueInfo(null_mut(), &mut width, 0),
            cuDeviceGetFabricClusterUuid(&mut uuid, 0),
            cuFlushGPUDirectRDMAWrites(0, 100),
        ],
        [NOT_SUPPORTED; 7]
    );
}

fn visible(test: &str, list: &str) -> Vec<String> {
    // What the other process found is what it prints.
    let run = alone(test, &[("MARGAY_DEVICES", "4"), ("CUDA_VISIBLE_DEVICES", list)], || {
        let mut count = 0;
        match cuInit(0) {
            CUDA_SUCCESS => ok(cuDeviceGetCount(&mut count)),
            error => assert_eq!(error, CUDA_ERROR_NO_DEVICE),
        }
        for device in 0..count {
            println!("device at {}", pci(device));
        }
    });
    let lines = run.stdout.lines().filter_map(|line| line.split_once("device at "));
    lines.map(|(_, id)| id.to_owned()).collect()
}

#[test]
fn visible_devices_are_chosen_by_number_or_uuid_up_to_the_first_mistake() {
    let bus = |numbers: &[usize]| {
        numbers
            .iter()
            .map(|n| format!("0000:{:02x}:00.0", n + 1))
            .collect::<Vec<_>>()
    };
    // The list is the only thing that changes from one process to the next, so that one body does for all.
    for (list, expected) in [
        ("0,1,2,3", &[0, 1, 2, 3][..]),
        ("2,0", &[2, 0]),
        ("0,2,-1,1", &[0, 2]),
        ("1,9,0", &[1]),
        ("3,3", &[3]),
        ("rubbish", &[]),
        ("", &[]),
        ("GPU-4d617267-6179-4000-8000-000000000002,1", &[2, 1]),
        ("GPU-4d61", &[]),
    ] {
        assert_eq!(visible(test_name!(), list), bus(expected), "{list}");
    }
}
