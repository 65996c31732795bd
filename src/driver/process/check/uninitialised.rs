//! Values that nobody has written, found in kernels (`sanitizer/init`) and where memory is copied to the host.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::memory::{AddressSpace, Nearest, caller};
use crate::program::Decision;
use crate::sanitizer::init::{Place, Uninitialised};
use crate::simt::Launch;

use super::{Deed, Finding, Host, Kind, Role, hosts, launched, near, tell};

/// Something in a launch depends on what nobody has written, of which the report tells. A kernel that is launched again is not told of
/// again.
pub fn uninitialised(found: &Uninitialised, report: String, launch: &Launch) {
    /// Its kernel, the line of PTX, and what depends on a value there.
    type Known = (Arc<str>, u32, Decision);
    static KNOWN: Mutex<BTreeSet<Known>> = Mutex::new(BTreeSet::new());
    let known = (Arc::clone(&found.kernel), found.site.ptx_line, found.decision);
    if !KNOWN.lock().insert(known) {
        return;
    }
    let origin = found.origin.as_ref();
    let address = origin.and_then(|origin| match origin.place {
        Place::Global(address) => Some(address),
        Place::Shared { .. } | Place::Local | Place::Tensor { .. } => None,
    });
    tell(&Finding {
        kernel: Some(Arc::clone(&found.kernel)),
        launch: Some(launched(launch)),
        sites: vec![found.site.clone()],
        other: origin.iter().map(|origin| origin.site.clone()).collect(),
        first: Deed {
            what: "",
            block: Some(found.block),
            thread: Some(found.thread),
        },
        hosts: hosts(Some(launch), &near(address)),
        address,
        bytes: origin.map(|origin| origin.bytes),
        times: found.times,
        ..Finding::new(Kind::Uninitialised, report)
    });
}

/// Bytes that nobody has written have been copied to the host: how many of how many, and the address of the first. An allocation is
/// told of once.
pub fn uninitialised_on_host((count, bytes): (u64, u64), address: u64) {
    static KNOWN: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
    let near = AddressSpace::get().nearest(address);
    if !KNOWN.lock().insert(near.map_or(0, |near| near.allocation.id)) {
        return;
    }
    let caller = caller::here();
    let call = caller.plain();
    let by = match call {
        "" => String::new(),
        call => format!(" by {call}"),
    };
    let place = near.map_or_else(String::new, |near| format!(", {near}"));
    let (s, are) = if count == 1 { ("", "is") } else { ("s", "are") };
    let of = if bytes == count {
        String::new()
    } else {
        format!(" of {bytes}")
    };
    let report = format!(
        "uninitialised value on the host: {count} byte{s}{of} that {are} copied there{by} nobody has written, the first at {address:#x}{place}"
    );
    let memory: Vec<Nearest> = near.into_iter().collect();
    tell(&Finding {
        address: Some(address),
        bytes: Some(count),
        call: (!call.is_empty()).then_some(call),
        hosts: Host::of(Role::Call, caller)
            .into_iter()
            .chain(hosts(None, &memory))
            .collect(),
        ..Finding::new(Kind::Uninitialised, report)
    });
}
