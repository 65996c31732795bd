//! MANAGEMENT: ours. `libnvidia-ml.so.1` (`companions/nvml`) asks it for all that it says of devices and of the processes
//! that use them.
//!
//! It knows all devices, whichever `CUDA_VISIBLE_DEVICES` shows, and leaves the driver as it is: programs look for a free
//! device with NVML and set that variable afterwards, or fork before they call `cuInit`. The companion is built with this
//! library, so that the table may change with it.

use std::ffi::CStr;
use std::panic::{UnwindSafe, catch_unwind};

use super::super::types::*;
use super::Table;
use crate::config;
use crate::driver::{Board, RELEASE, record};

/// "Margay, devices" and a number that grows with every change.
pub const ID: u128 = u128::from_be_bytes(*b"Margay, devices\x01");

pub static TABLE: Table<9> = Table::sized(
    8,
    &[
        (1, begin as *const c_void),
        (2, release as *const c_void),
        (3, describe as *const c_void),
        (4, attribute as *const c_void),
        (5, processes as *const c_void),
        (6, peer_attribute as *const c_void),
        (7, tell as *const c_void),
    ],
);

/// A device.
#[repr(C)]
struct Description {
    name: [c_char; 96],
    pci_bus_id: [c_char; 32],
    uuid: [u8; 16],
    memory: u64,
    major: u32,
    minor: u32,
}

/// A process, and a device on which it has contexts.
#[repr(C)]
struct Process {
    process: u32,
    device: u32,
    used: u64,
    busy: u64,
}

/// A panic of ours ends here.
fn kept<T>(otherwise: T, work: impl FnOnce() -> T + UnwindSafe) -> T {
    catch_unwind(work).unwrap_or(otherwise)
}

/// Slot 1: the number of devices, or -1 if companions are switched off.
extern "C" fn begin() -> c_int {
    kept(-1, || {
        crate::trace::init();
        if !config::get().companions {
            tracing::info!("no companion for NVML: MARGAY_COMPANIONS=0 switches it off");
            return -1;
        }
        let count = Board::all().len();
        tracing::info!("a companion stands in for libnvidia-ml.so.1; devices: {count}");
        count as c_int
    })
}

/// Slot 2: the driver's release, as text.
extern "C" fn release() -> *const c_char {
    RELEASE.as_ptr()
}

/// Slot 3: a device by its number; 0 if there is none.
unsafe extern "C" fn describe(number: u32, description: *mut Description) -> c_int {
    kept(0, || {
        let Some(board) = Board::all().get(number as usize) else {
            return 0;
        };
        let (major, minor) = board.capability();
        let described = Description {
            name: text(&board.name),
            pci_bus_id: text(&board.pci_bus_id()),
            uuid: board.uuid(),
            memory: board.memory,
            major,
            minor,
        };
        // SAFETY: the companion has room for one.
        unsafe { description.write(described) };
        1
    })
}

/// As much of it as there is room for, and an end.
fn text<const ROOM: usize>(text: &str) -> [c_char; ROOM] {
    let mut chars = [0; ROOM];
    for (place, byte) in chars[..ROOM - 1].iter_mut().zip(text.bytes()) {
        *place = byte as c_char;
    }
    chars
}

/// Slot 4: any `CUdevice_attribute` of a device.
extern "C" fn attribute(number: u32, attribute: c_int) -> c_int {
    kept(0, || {
        let board = Board::all().get(number as usize);
        board.map_or(0, |board| board.attribute(attribute))
    })
}

/// Slot 5: up to `room` pairs of a process and a device on which it has contexts; how many there are.
unsafe extern "C" fn processes(list: *mut Process, room: u32) -> u32 {
    kept(0, || {
        let seen = record::processes();
        for (index, seen) in seen.iter().take(room as usize).enumerate() {
            let process = Process {
                process: seen.process,
                device: seen.device,
                used: seen.used,
                busy: seen.busy,
            };
            // SAFETY: the companion has room for as many as it says.
            unsafe { list.add(index).write(process) };
        }
        seen.len() as u32
    })
}

/// Slot 6: any `CUdevice_P2PAttribute` of two devices; 0 if they are not two.
extern "C" fn peer_attribute(from: u32, to: u32, attribute: u32) -> c_int {
    kept(0, || {
        let boards = Board::all();
        let (Some(from), Some(to)) = (boards.get(from as usize), boards.get(to as usize)) else {
            return 0;
        };
        from.p2p_attribute(attribute, to).unwrap_or(0)
    })
}

/// Slot 7: a call that NVML's documentation has and the companion does not answer, for the log.
unsafe extern "C" fn tell(name: *const c_char) {
    kept((), || {
        // SAFETY: the companion's own words.
        let name = unsafe { CStr::from_ptr(name) };
        tracing::debug!("{}: not supported", name.to_string_lossy());
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_described_and_others_are_none() {
        let room = || Description {
            name: [1; 96],
            pci_bus_id: [1; 32],
            uuid: [1; 16],
            memory: 1,
            major: 1,
            minor: 1,
        };
        let (mut first, mut other) = (room(), room());
        // SAFETY: there is room for one.
        let found = unsafe { [describe(0, &mut first), describe(u32::MAX, &mut other)] };
        assert_eq!(found, [1, 0]);
        // SAFETY: both end with NUL.
        let (name, place) = unsafe {
            (
                CStr::from_ptr(first.name.as_ptr()),
                CStr::from_ptr(first.pci_bus_id.as_ptr()),
            )
        };
        assert_eq!((name, place), (c"Margay virtual GPU (sm_120)", c"0000:01:00.0"));
        assert_eq!((first.major, first.minor, other.major), (12, 0, 1));
        assert_eq!((attribute(0, 10), attribute(99, 10)), (32, 0));
    }
}
