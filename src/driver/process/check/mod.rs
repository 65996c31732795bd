//! What is found wrong where somebody asked for it (`MARGAY_CHECK`, `margay check`): faults of kernels, which the address space
//! then finds to the byte; frees of what is no allocation; memory that nobody has freed; races; barriers that are misused; values
//! that nobody has written.
//!
//! Findings are told in the log, and as data in the file that `margay check` reads (`MARGAY_CHECK_LOG`).

mod finding;
mod host;
mod misuse;
pub mod orders;
pub mod selection;
pub mod suppressions;
mod uninitialised;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::{process, thread};

use parking_lot::Mutex;

use crate::config;
use crate::driver::Error;
use crate::memory::caller::{self, Caller};
use crate::memory::{self, AddressSpace, Allocation, MAX_DEVICES, Nearest, Relation};
use crate::sanitizer::numbers::{Number, Wrong};
use crate::sanitizer::race::{self, Missing, Race};
use crate::simt::observe::Direction;
use crate::simt::{Cause, Fault, Launch};

pub use finding::{Deed, Finding, Kind, Launched, Severity, tell};
pub use host::{Host, Role, hosts, words_of_hosts};
pub use misuse::misuse;
pub use uninitialised::{uninitialised, uninitialised_on_host};

/// Calls whose memory the program is to free (by the names that allocations bear).
const ALLOCATORS: [&str; 5] = [
    "cuMemAlloc",
    "cuMemHostAlloc",
    "cuArray",
    "cuMipmappedArray",
    "malloc in a kernel",
];

static PROCESS: OnceLock<u32> = OnceLock::new();
/// The process ends, and has been told of what is left: contexts that end after that say nothing new.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Tells that this process is looked at, and looks for leaks when it ends by itself.
pub fn start() {
    let check = config::get().check;
    if !check.any() || PROCESS.set(process::id()).is_err() {
        return;
    }
    finding::introduce();
    extern "C" fn at_exit() {
        // A child by `fork` has not allocated what it has of its parent.
        if PROCESS.get() == Some(&process::id()) {
            let look = || {
                let _ = crate::defect::within(|| leaks(None));
            };
            // The thread that exits has no thread-locals any more, without which it cannot log, if it ever has before.
            match thread::Builder::new().name("margay-leaks".into()).spawn(look) {
                // What comes of it is in the log.
                Ok(thread) => drop(thread.join()),
                Err(_) => look(),
            }
        }
    }
    if check.leaks {
        // SAFETY: the handler catches panics, and the library is never unloaded.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Which launch it is, for findings about it.
pub fn launched(launch: &Launch) -> Launched {
    Launched {
        number: launch.grid_id,
        grid: launch.grid,
        block: launch.block,
    }
}

/// A kernel has failed; its context tells the log.
pub fn fault(fault: &Fault, report: &str, launch: &Launch, hosts: &[Host]) {
    let check = config::get().check;
    let is_wanted = match *fault.kernel == **launch.kernel_name() {
        true => launch.is_checked(),
        // A kernel that it has launched.
        false => selection::names(&fault.kernel),
    };
    if !is_wanted || !check.memory && !check.sync {
        return;
    }
    let (address, bytes) = match fault.cause {
        Cause::IllegalAddress { address, bytes, .. }
        | Cause::Stray { address, bytes, .. }
        | Cause::Misaligned { address, bytes } => (Some(address), Some(u64::from(bytes))),
        Cause::HostMemoryGone { address } | Cause::WrongFree { address } => (Some(address), None),
        Cause::IllegalInstruction { .. }
        | Cause::InvalidPc { .. }
        | Cause::StackOverflow { .. }
        | Cause::Trap
        | Cause::Texture { .. }
        | Cause::Misuse { .. }
        | Cause::TensorMemoryLeak { .. }
        | Cause::Assert
        | Cause::Timeout { .. }
        | Cause::Deadlock { .. }
        | Cause::OutOfMemory { .. }
        | Cause::Invalid { .. }
        | Cause::Defect { .. } => (None, None),
    };
    let is_a_threads = !fault.stack.is_empty();
    tell(&Finding {
        kernel: Some(Arc::clone(&fault.kernel)),
        launch: Some(launched(launch)),
        sites: fault.stack.clone(),
        first: Deed {
            what: match fault.cause {
                Cause::IllegalAddress { write: true, .. } | Cause::Stray { write: true, .. } => "write",
                Cause::IllegalAddress { write: false, .. } | Cause::Stray { write: false, .. } => "read",
                _ => "",
            },
            block: is_a_threads.then_some(fault.block),
            thread: is_a_threads.then_some(fault.thread),
        },
        others: fault.others.clone(),
        hosts: hosts.to_vec(),
        address,
        bytes,
        is_told: true,
        ..Finding::new(Kind::Kernel, report)
    });
}

/// The allocation that an address is in or near, as reports name it.
pub fn near(address: Option<u64>) -> Vec<Nearest> {
    let near = address.and_then(|address| AddressSpace::get().nearest(address));
    near.filter(Nearest::is_near).into_iter().collect()
}

/// A launch has a race, of which the report tells. A kernel that is launched again is not told of again.
pub fn race(race: &Race, report: String, launch: &Launch) {
    /// Its kernel, the lines of PTX, and what is missing.
    type Known = (Arc<str>, [u32; 2], Missing);
    static KNOWN: Mutex<BTreeSet<Known>> = Mutex::new(BTreeSet::new());
    let lines = [race.first.site.ptx_line, race.second.site.ptx_line];
    let lines = [lines[0].min(lines[1]), lines[0].max(lines[1])];
    if !KNOWN.lock().insert((Arc::clone(&race.kernel), lines, race.missing)) {
        return;
    }
    let deed = |party: &race::Party| Deed {
        what: match party.kind.direction {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Atomic => "atomic",
        },
        block: Some(party.block),
        thread: party.thread,
    };
    let address = match race.place {
        race::Place::Global(address) => Some(address),
        race::Place::Shared { .. } => None,
    };
    tell(&Finding {
        severity: match race.missing {
            Missing::Guess | Missing::SameValue => Severity::Warning,
            Missing::Warp
            | Missing::Barrier
            | Missing::Cluster
            | Missing::Device
            | Missing::Scope
            | Missing::Size
            | Missing::Completion
            | Missing::ProxyFence => Severity::Error,
        },
        kernel: Some(Arc::clone(&race.kernel)),
        launch: Some(launched(launch)),
        sites: vec![race.first.site.clone()],
        other: vec![race.second.site.clone()],
        first: deed(&race.first),
        second: deed(&race.second),
        hosts: hosts(Some(launch), &near(address)),
        address,
        bytes: Some(race.bytes.into()),
        times: race.times,
        ..Finding::new(Kind::Race, report)
    });
}

/// A number has gone wrong in a launch, of which the report tells. A kernel that is launched again is not told of again.
pub fn number(number: &Number, report: String, launch: &Launch) {
    static KNOWN: Mutex<BTreeSet<(Arc<str>, u32, Wrong)>> = Mutex::new(BTreeSet::new());
    let key = (Arc::clone(&number.kernel), number.site.ptx_line, number.wrong);
    if !KNOWN.lock().insert(key) {
        return;
    }
    tell(&Finding {
        severity: match number.wrong {
            Wrong::Nan | Wrong::Infinity => Severity::Error,
            Wrong::Subnormal | Wrong::Cancellation => Severity::Warning,
        },
        kernel: Some(Arc::clone(&number.kernel)),
        launch: Some(launched(launch)),
        sites: vec![number.site.clone()],
        first: Deed {
            what: "",
            block: Some(number.block),
            thread: Some(number.thread),
        },
        hosts: hosts(Some(launch), &[]),
        times: number.times,
        ..Finding::new(Kind::Number, report)
    });
}

/// A call was to free an address, and answers an error.
pub fn free_failed(address: u64, error: Error) {
    if !config::get().check.memory || error != Error::InvalidValue {
        return;
    }
    let nearest = AddressSpace::get().nearest(address);
    let text = match nearest {
        Some(near @ Nearest { freed: true, .. }) => format!("frees {address:#x} again, which is {near}"),
        Some(near) if matches!(near.relation, Relation::Inside(0)) => {
            format!("cannot free {address:#x}, which is {near}")
        }
        Some(near) if near.is_near() => format!("frees {address:#x}, which is {near}"),
        Some(_) | None => format!("frees {address:#x}, which is no device memory"),
    };
    let by = caller::here();
    let call = by.plain();
    let memory: Vec<Nearest> = nearest.filter(Nearest::is_near).into_iter().collect();
    tell(&Finding {
        address: Some(address),
        call: Some(call),
        hosts: Host::of(Role::Call, by)
            .into_iter()
            .chain(hosts(None, &memory))
            .collect(),
        ..Finding::new(Kind::Free, format!("{call} {text}"))
    });
}

/// A call was to end something by its handle, and there is no such thing, or no longer.
pub fn no_handle(handle: u64, what: &str) {
    if !config::get().check.memory {
        return;
    }
    let by = caller::here();
    let call = by.plain();
    let text = format!("{call}: {handle:#x} is no {what}, or is one no longer");
    tell(&Finding {
        call: Some(call),
        hosts: Host::of(Role::Call, by).into_iter().collect(),
        ..Finding::new(Kind::Free, text)
    });
}

/// Memory that no allocation stands for, and that has not been given back: bytes of each piece, and by which call it was made.
type Held = fn() -> Vec<(u64, Caller)>;

static HELD: OnceLock<Held> = OnceLock::new();

/// Says, once, who has such memory.
pub fn set_held(held: Held) {
    HELD.get_or_init(|| held);
}

/// Tells of memory that no allocation stands for.
fn leaks_of_held() {
    let mut groups: BTreeMap<(u64, Caller), usize> = BTreeMap::new();
    for piece in HELD.get().map(|held| held()).unwrap_or_default() {
        *groups.entry(piece).or_default() += 1;
    }
    for ((bytes, by), count) in groups {
        let call = by.plain();
        let more = match count - 1 {
            0 => String::new(),
            n => format!(" and {n} more of this size"),
        };
        let text =
            format!("leak: {bytes} bytes{more}, made by {call}, not released and unmapped by the end of the process");
        tell(&Finding {
            bytes: Some(bytes),
            call: Some(call),
            hosts: Host::of(Role::Made, by).into_iter().collect(),
            count: count as u64,
            ..Finding::new(Kind::Leak, text)
        });
    }
}

/// Memory of a context that ends, or of all.
pub fn leaks(owner: Option<u64>) {
    if !config::get().check.leaks || TOLD.load(Ordering::Relaxed) {
        return;
    }
    TOLD.store(owner.is_none(), Ordering::Relaxed);
    if owner.is_none() {
        leaks_of_held();
    }
    let space = AddressSpace::get();
    let all = (0..MAX_DEVICES as u32).flat_map(|device| space.live(device));
    let left =
        all.filter(|allocation| owner.is_none_or(|owner| allocation.owner == owner) && is_the_programs(allocation));
    // One report for all allocations of one size by one call, at one place of the program as far as that is known.
    let mut groups: BTreeMap<(Caller, u64), Vec<u64>> = BTreeMap::new();
    for allocation in left {
        let key = (allocation.allocated_by, allocation.bytes);
        groups.entry(key).or_default().push(allocation.start);
    }
    let when = if owner.is_some() { "its context" } else { "the process" };
    for ((by, bytes), starts) in groups {
        let s = if bytes == 1 { "" } else { "s" };
        let more = match starts.len() - 1 {
            0 => String::new(),
            1 => " and 1 more of this size".into(),
            n => format!(" and {n} more of this size"),
        };
        let call = by.plain();
        let text = format!(
            "leak: {bytes} byte{s} at {:#x}{more}, allocated by {call}, not freed by the end of {when}",
            starts[0]
        );
        tell(&Finding {
            address: Some(starts[0]),
            bytes: Some(bytes),
            call: Some(call),
            hosts: Host::of(Role::Allocation(starts[0]), by).into_iter().collect(),
            count: starts.len() as u64,
            ..Finding::new(Kind::Leak, text)
        });
    }
}

/// A program allocated it by itself, and nobody keeps it for later.
fn is_the_programs(allocation: &Allocation) -> bool {
    // Unless accesses are checked to the byte, small blocks of a kernel's heap lie in larger ones, which are the driver's.
    let is_whole = allocation.kind != memory::Kind::Heap || memory::exact();
    let is_asked_for = ALLOCATORS
        .iter()
        .any(|call| allocation.allocated_by.name.starts_with(call));
    is_whole && is_asked_for && allocation.is_in_use()
}
