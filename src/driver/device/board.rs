//! Boards: the devices that there are, whoever may see them. A [`Device`](super::Device) is a board that this process sees.

use std::sync::OnceLock;

use super::profile::{self, Profile};
use crate::config;
use crate::driver::{Error, Result};
use crate::memory::{MAX_DEVICES, physical_memory};

pub struct Board {
    /// What makes it the same one in every process.
    pub number: u32,
    pub(in crate::driver) profile: &'static Profile,
    pub name: String,
    pub memory: u64,
}

impl Board {
    /// Those that `MARGAY_DEVICES` makes.
    pub fn all() -> &'static [Board] {
        static BOARDS: OnceLock<Vec<Board>> = OnceLock::new();
        BOARDS.get_or_init(|| {
            let config = config::get();
            let profile = profile::by_name(&config.device).unwrap_or_else(|| {
                let names: Vec<&str> = profile::PROFILES.iter().map(|profile| profile.name).collect();
                tracing::warn!(
                    "MARGAY_DEVICE={}: no such profile; there are {}",
                    config.device,
                    names.join(", ")
                );
                profile::default()
            });
            // More than the machine has would be a promise that the system's out-of-memory killer breaks.
            let machine = physical_memory() / 4 * 3 / (64 << 20) * (64 << 20);
            let memory = config.memory.unwrap_or(profile.memory.min(machine.max(64 << 20)));
            let boards = (0..config.devices.min(MAX_DEVICES as u32)).map(|number| Board {
                number,
                profile,
                name: format!("Margay virtual GPU ({})", profile.name),
                memory,
            });
            boards.collect()
        })
    }

    /// Any `CUdevice_attribute`: 0 for numbers that mean nothing (start-up of cudart fails on an error).
    pub fn attribute(&self, number: i32) -> i32 {
        match number {
            // PCI_BUS_ID
            33 => self.bus() as i32,
            // MULTI_GPU_BOARD_GROUP_ID: each is a board of its own
            85 => self.number as i32,
            number => self.profile.attribute(number),
        }
    }

    pub fn capability(&self) -> (u32, u32) {
        self.profile.capability
    }

    /// Ours alone (the first bytes spell our name), and the same in every process.
    pub fn uuid(&self) -> [u8; 16] {
        let mut uuid = *b"Margay\x40\x00\x80\x00\x00\x00\x00\x00\x00\x00";
        uuid[12..].copy_from_slice(&self.number.to_be_bytes());
        uuid
    }

    pub fn bus(&self) -> u32 {
        self.number + 1
    }

    /// `dddd:bb:dd.0`, in capitals
    pub fn pci_bus_id(&self) -> String {
        format!("0000:{:02X}:00.0", self.bus())
    }

    /// `cuDeviceGetP2PAttribute`: 1 performance rank, 2 access, 3 native atomics, 4 array access.
    pub fn p2p_attribute(&self, attribute: u32, peer: &Board) -> Result<i32> {
        if self.number == peer.number {
            return Err(Error::InvalidDevice);
        }
        match attribute {
            1 | 5 => Ok(0),
            2..=4 => Ok(1),
            _ => Err(Error::InvalidValue),
        }
    }
}
