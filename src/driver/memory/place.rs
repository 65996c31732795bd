//! Room for allocations, and what is at an address: what all that allocates has in common.

use std::sync::OnceLock;

use crate::driver::context::Shared;
use crate::driver::{Error, Result};
use crate::memory::{AddressSpace, Allocation, Kind, MAPPED, READ, Request, WRITE};

/// Marks a module's variable: not to be freed by address. Above all flags of the API.
pub(in crate::driver) const VARIABLE: u32 = 1 << 31;

/// Whether frees are queued in streams.
static ANY_PENDING: OnceLock<fn() -> bool> = OnceLock::new();

/// Says, once, how to ask whether frees are queued.
pub(in crate::driver) fn set_any_pending(any_pending: fn() -> bool) {
    ANY_PENDING.get_or_init(|| any_pending);
}

/// Room for a request; memory that queued commands are about to free counts.
pub(in crate::driver) fn place(request: &Request, shared: &Shared) -> Result<Allocation> {
    let space = AddressSpace::get();
    space.allocate(request).or_else(|_| {
        if ANY_PENDING.get().is_some_and(|any_pending| any_pending()) {
            shared.drain();
        }
        space.allocate(request).map_err(|_| Error::OutOfMemory)
    })
}

/// The allocation that starts there, if it is the program's own of such a kind.
pub(in crate::driver) fn start_of(address: u64, kind: impl Fn(Kind) -> bool) -> Result<Allocation> {
    let found = AddressSpace::get().find(address);
    found
        .filter(|allocation| {
            allocation.start == address && kind(allocation.kind) && allocation.flags & (VARIABLE | MAPPED) == 0
        })
        .ok_or(Error::InvalidValue)
}

/// What the process may do with its memory in a range: map bits, those that hold for all of it. `None`: it has none there,
/// or not everywhere.
pub(in crate::driver) fn protection(address: u64, bytes: u64) -> Option<u8> {
    let end = address.checked_add(bytes)?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let (mut next, mut common) = (address, READ | WRITE);
    // In the order of addresses: "first-last rwxp …".
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ')?;
        let (first, last) = range.split_once('-')?;
        let first = u64::from_str_radix(first, 16).ok()?;
        let last = u64::from_str_radix(last, 16).ok()?;
        if last <= next {
            continue;
        }
        if first > next || next >= end {
            break;
        }
        let bits = [(b'r', READ), (b'w', WRITE)];
        let flags = rest.as_bytes().get(..4)?;
        let allowed = bits.iter().filter(|(letter, _)| flags.contains(letter));
        common &= allowed.fold(0, |all, (_, bit)| all | bit);
        next = last;
    }
    (next >= end).then_some(common)
}
