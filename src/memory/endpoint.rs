//! Logical endpoints: numbers that stand for memory of a device, or of all devices of a team. The driver says which there
//! are, and fabric operations of kernels look them up.

use std::sync::Arc;

use super::published::{Published, Seen};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub id: u32,
    /// A multicast endpoint, be it of one device.
    pub is_team: bool,
    pub bytes: u64,
    /// Its memory may have counters.
    pub counts: bool,
    /// Devices of its team that have yet to be added.
    pub missing: u32,
    /// Ascending by device.
    pub members: Box<[Member]>,
}

/// A device whose memory an endpoint stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub device: u32,
    /// Where the endpoint's first byte is shown; what nobody has bound is out of bounds.
    pub start: u64,
}

/// Ascending by number.
static ENDPOINTS: Published<Endpoint> = Published::new();

thread_local! {
    static SEEN: Seen<Endpoint> = const { Seen::nothing() };
}

/// From now on kernels find it, and no other by its number.
pub fn publish(endpoint: Endpoint) {
    ENDPOINTS.change(|endpoints| {
        endpoints.retain(|other| other.id != endpoint.id);
        endpoints.push(endpoint);
        endpoints.sort_by_key(|endpoint| endpoint.id);
    });
}

/// Kernels find it no more.
pub fn withdraw(id: u32) {
    ENDPOINTS.change(|endpoints| endpoints.retain(|endpoint| endpoint.id != id));
}

/// All that there are now.
pub fn endpoints() -> Arc<[Endpoint]> {
    ENDPOINTS.get(&SEEN)
}

pub fn find(endpoints: &[Endpoint], id: u32) -> Option<&Endpoint> {
    let at = endpoints.binary_search_by_key(&id, |endpoint| endpoint.id).ok()?;
    Some(&endpoints[at])
}
