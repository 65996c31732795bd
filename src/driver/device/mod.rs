//! Devices: what `cuDevice*` answers.
//!
//! Which devices there are is read once, from the configuration (`MARGAY_DEVICE`, `MARGAY_DEVICES`, `MARGAY_MEMORY`), and
//! which of them the process sees, at its first look, from `CUDA_VISIBLE_DEVICES`; a [`Device`] lives as long as the process.

mod board;
mod library;
pub(super) mod profile;

use std::ffi::CStr;
use std::sync::{Arc, OnceLock};

use super::{Context, Error, Result};
use crate::memory::AddressSpace;
use profile::Profile;

pub use board::Board;

/// `cuDriverGetVersion`.
pub const VERSION: i32 = 13050;
/// The release by which management tools know a driver: a number of our own, as high as drivers of CUDA 13.5 have.
pub const RELEASE: &CStr = c"615.00.00";

pub struct Device {
    ordinal: u32,
    board: &'static Board,
    primary: OnceLock<Arc<Context>>,
}

impl Device {
    /// `cuDeviceGetCount`: those that `MARGAY_DEVICES` makes and `CUDA_VISIBLE_DEVICES` shows.
    pub fn count() -> u32 {
        Device::all().len() as u32
    }

    /// `cuDeviceGet`; also the validation of a `CUdevice`. Error 101.
    pub fn get(ordinal: i32) -> Result<&'static Device> {
        let index = usize::try_from(ordinal).map_err(|_| Error::InvalidDevice)?;
        Device::all().get(index).ok_or(Error::InvalidDevice)
    }

    pub fn all() -> &'static [Device] {
        static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();
        DEVICES.get_or_init(|| {
            let boards = Board::all();
            let visible = std::env::var_os("CUDA_VISIBLE_DEVICES");
            let total = boards.len() as u32;
            let numbers = match &visible {
                Some(list) => visible_devices(&list.to_string_lossy(), total),
                None => (0..total).collect(),
            };
            let devices = numbers.into_iter().enumerate().map(|(ordinal, number)| {
                let board = &boards[number as usize];
                AddressSpace::get().set_limit(ordinal as u32, board.memory);
                Device {
                    ordinal: ordinal as u32,
                    board,
                    primary: OnceLock::new(),
                }
            });
            devices.collect()
        })
    }

    /// `cuDeviceGetByPCIBusId`: `[domain]:[bus]:[device].[function]`, domain and function optional.
    pub fn by_pci_bus_id(text: &str) -> Result<&'static Device> {
        let parse = || {
            let (rest, function) = text.split_once('.').unwrap_or((text, "0"));
            let mut parts = rest.rsplit(':').map(|part| u32::from_str_radix(part, 16).ok());
            let (device, bus) = (parts.next()??, parts.next()??);
            let domain = parts.next().unwrap_or(Some(0))?;
            let function = u32::from_str_radix(function, 16).ok()?;
            (parts.next().is_none()).then_some((domain, bus, device, function))
        };
        let wanted = parse().ok_or(Error::InvalidValue)?;
        let found = Device::all()
            .iter()
            .find(|device| (0, device.board.bus(), 0, 0) == wanted);
        found.ok_or(Error::InvalidDevice)
    }

    pub fn ordinal(&self) -> i32 {
        self.ordinal as i32
    }

    /// Its number in every process, whichever devices that shows.
    pub(super) fn number(&self) -> u32 {
        self.board.number
    }

    pub fn name(&self) -> &str {
        &self.board.name
    }

    /// Any `CUdevice_attribute`: 0 for numbers that mean nothing (start-up of cudart fails on an error).
    pub fn attribute(&self, number: i32) -> i32 {
        match number {
            // COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR
            75 if library::asks() => library::UNKNOWN.0 as i32,
            76 if library::asks() => library::UNKNOWN.1 as i32,
            number => self.board.attribute(number),
        }
    }

    pub(super) fn profile(&self) -> &'static Profile {
        self.board.profile
    }

    pub fn capability(&self) -> (u32, u32) {
        self.board.capability()
    }

    /// Ours alone (the first bytes spell our name), and the same in every process.
    pub fn uuid(&self) -> [u8; 16] {
        self.board.uuid()
    }

    pub fn total_memory(&self) -> u64 {
        self.board.memory
    }

    /// `dddd:bb:dd.0`
    pub fn pci_bus_id(&self) -> String {
        self.board.pci_bus_id()
    }

    /// The primary context: its handle exists before it is retained.
    pub fn primary(&'static self) -> &'static Arc<Context> {
        self.primary.get_or_init(|| Context::primary(self))
    }

    /// All devices share one address space: any can reach any other.
    pub fn can_access_peer(&self, peer: &Device) -> bool {
        self.ordinal != peer.ordinal
    }

    /// `cuDeviceGetP2PAttribute`: 1 performance rank, 2 access, 3 native atomics, 4 array access.
    pub fn p2p_attribute(&self, attribute: u32, peer: &Device) -> Result<i32> {
        self.board.p2p_attribute(attribute, peer.board)
    }

    /// Multiprocessors, and how few of them a part of the device may have, all at once and in steps (CUDA programming guide,
    /// "Green Contexts": 8 from compute capability 9.0 on, 4 from 8.0, 2 before).
    pub fn partition(&self) -> (u32, u32, u32) {
        let (least, step) = match self.capability().0 {
            0..8 => (2, 2),
            8 => (4, 2),
            _ => (8, 8),
        };
        (profile::multiprocessors(), least, step)
    }
}

/// `CUDA_VISIBLE_DEVICES` (CUDA programming guide, "CUDA Environment Variables"): numbers or prefixes of UUIDs, in the
/// order in which they are to appear; the first one that is not a device, or is there already, ends the list.
fn visible_devices(list: &str, total: u32) -> Vec<u32> {
    let mut numbers = Vec::new();
    for word in list.split(',').map(str::trim) {
        let number = match word.strip_prefix("GPU-") {
            Some(prefix) => {
                let mut matching = (0..total).filter(|number| format_uuid(*number).starts_with(&prefix.to_lowercase()));
                // An ambiguous prefix is as good as none.
                matching.next().filter(|_| matching.next().is_none())
            }
            None => word.parse().ok().filter(|number| *number < total),
        };
        match number {
            Some(number) if !numbers.contains(&number) => numbers.push(number),
            _ => break,
        }
    }
    numbers
}

/// [`Device::uuid`] in the usual notation.
fn format_uuid(number: u32) -> String {
    format!("4d617267-6179-4000-8000-{number:012x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_devices_are_listed_up_to_the_first_mistake() {
        // CUDA programming guide: "CUDA_VISIBLE_DEVICES=0,2,-1,1" makes 0 and 2 visible.
        assert_eq!(visible_devices("0,2,-1,1", 4), [0, 2]);
        assert_eq!(visible_devices("2, 1", 4), [2, 1]);
        assert!(visible_devices("", 4).is_empty());
        assert!(visible_devices("-1", 4).is_empty());
        assert!(visible_devices("4", 4).is_empty());
        assert_eq!(visible_devices("1,1,0", 4), [1]);
        assert_eq!(visible_devices("GPU-4d617267-6179-4000-8000-000000000002,0", 4), [2, 0]);
        assert_eq!(visible_devices("GPU-4d61", 1), [0]);
        assert!(visible_devices("GPU-4d61", 2).is_empty());
    }
}
