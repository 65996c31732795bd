//! INTEGRITY: with this answer a driver shows cudart (11.8 and later) that it is the one it has been talking to. Without
//! the right answer every call of the runtime fails with 103.
//!
//! It is needed for interoperability; the computation has been published by others. It is no security.

use super::super::call::{enter, initialised, show};
use super::super::types::*;
use super::{Table, cudart, hmac_md2};
use crate::driver::{self, Device};

pub const ID: u128 = 0xd4082055_bde6_704b_8d34_ba123c66e1f2;

pub static TABLE: Table<4> = Table::sized(3, &[(1, answer as *const c_void)]);

const KEY: [u8; 16] = [
    0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52, 0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f,
];

/// Slot 1, at start-up: asked with the runtime's version, and 1 and 2 more; only cudart 11.8 checks the first two answers.
unsafe extern "C" fn answer(version: c_uint, seconds: u64, out: *mut [u8; 16]) -> CUresult {
    enter(
        "INTEGRITY.1",
        |f| show(f, &[("version", &version), ("seconds", &seconds)]),
        || {
            let bytes = match version % 10 {
                0 => constant(0x3341_181c_03cb_675c, 0x8ed3_83aa_1f4c_d1e8),
                1 => constant(0x1841_181c_03cb_675c, 0x8ed3_83aa_1f4c_d1e8),
                _ => {
                    initialised()?;
                    hmac_md2::hmac(&KEY, &message(version, seconds))
                }
            };
            // SAFETY: null or good for 16 bytes.
            unsafe { super::super::call::Out::from_c(out) }.set(bytes)
        },
    )
}

fn constant(first: u64, second: u64) -> [u8; 16] {
    (u128::from(first) | u128::from(second) << 64).to_le_bytes()
}

/// Everything that makes this driver, process, thread and moment what they are.
fn message(version: u32, seconds: u64) -> Vec<u8> {
    // SAFETY: has no preconditions.
    let thread = unsafe { libc::pthread_self() };
    let mut message = Vec::new();
    message.extend(driver::VERSION.to_le_bytes());
    message.extend(version.to_le_bytes());
    message.extend(std::process::id().to_le_bytes());
    message.extend((thread as u32).to_le_bytes());
    for address in [cudart::TABLE.address(), TABLE.address(), TABLE.word(1)] {
        message.extend((address as u64).to_le_bytes());
    }
    message.extend(seconds.to_le_bytes());
    for device in Device::all() {
        message.extend(device.uuid());
        for attribute in [
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID,
        ] {
            message.extend(device.attribute(attribute.0 as i32).to_le_bytes());
        }
    }
    message
}
