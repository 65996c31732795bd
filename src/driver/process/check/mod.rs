//! What is found wrong where somebody asked for it (`MARGAY_CHECK`, `margay check`): faults of kernels, which the address space
//! then finds to the byte; frees of what is no allocation; memory that nobody has freed; races.
//!
//! Findings are told in the log, and a line for each goes to the file that `margay check` counts (`MARGAY_CHECK_LOG`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::config;
use crate::driver::Error;
use crate::memory::{self, AddressSpace, Allocation, MAX_DEVICES, Nearest, Relation, caller};
use crate::sanitizer::race::{Missing, Race};
use crate::simt::Site;

/// What kind of thing was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A kernel has failed.
    Kernel,
    /// A call was to free what is not there to be freed.
    Free,
    /// Memory was not freed.
    Leak,
    /// Two accesses are in no order.
    Race,
    /// A value that nobody has written matters.
    Uninitialised,
    /// A barrier, or what is like one, is misused.
    Synchronisation,
    /// A number has gone wrong: the first NaN, infinity, subnormal, or a difference that cancels.
    Number,
}

impl Kind {
    /// The first word of its line in the list of findings.
    fn word(self) -> &'static str {
        match self {
            Kind::Kernel => "kernel",
            Kind::Free => "free",
            Kind::Leak => "leak",
            Kind::Race => "race",
            Kind::Uninitialised => "init",
            Kind::Synchronisation => "sync",
            Kind::Number => "fp",
        }
    }
}

/// Something that was found, for people and for programs.
#[derive(Clone, Debug)]
pub struct Finding {
    pub kind: Kind,
    /// Several lines, the first of which says what was found.
    pub report: String,
    /// The kernel's mangled name, if it is about one.
    pub kernel: Option<Arc<str>>,
    /// Where: a call stack, innermost function first. Of two accesses the second's stack is in [`Finding::other`].
    pub sites: Vec<Site>,
    pub other: Vec<Site>,
}

/// Tells of a finding: in the log, and in the list that `margay check` reads.
pub fn tell(finding: &Finding) {
    tracing::error!("{}", finding.report);
    note(finding.kind, &finding.report);
}

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

/// Looks for leaks when the process ends by itself.
pub fn start() {
    if !config::get().check.leaks || PROCESS.set(process::id()).is_err() {
        return;
    }
    extern "C" fn at_exit() {
        // A child by `fork` has not allocated what it has of its parent.
        if PROCESS.get() == Some(&process::id()) {
            let _ = crate::defect::within(|| leaks(None));
        }
    }
    // SAFETY: the handler catches panics, and the library is never unloaded.
    unsafe { libc::atexit(at_exit) };
}

/// Appends a line. A file that cannot be written must not stop the program, but whoever counts must hear of it.
fn note(kind: Kind, text: &str) {
    let Some(path) = &config::get().check_log else { return };
    let first = text.lines().next().unwrap_or_default();
    let line = format!("{} {first}\n", kind.word());
    let file = OpenOptions::new().append(true).create(true).open(path);
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        tracing::error!("MARGAY_CHECK_LOG: {}: {error}; it lacks a finding", path.display());
    }
}

/// A kernel has failed; the log gets the report.
pub fn fault(report: &str) {
    if config::get().check.memory {
        note(Kind::Kernel, report);
    }
}

/// A kernel has a race, of which the report tells. A kernel that is launched again is not told of again.
pub fn race(race: &Race, report: String) {
    /// Its kernel, the lines of PTX, and what is missing.
    type Known = (Arc<str>, [u32; 2], Missing);
    static KNOWN: Mutex<BTreeSet<Known>> = Mutex::new(BTreeSet::new());
    let lines = [race.first.site.ptx_line, race.second.site.ptx_line];
    let lines = [lines[0].min(lines[1]), lines[0].max(lines[1])];
    if KNOWN.lock().insert((Arc::clone(&race.kernel), lines, race.missing)) {
        tell(&Finding {
            kind: Kind::Race,
            report,
            kernel: Some(Arc::clone(&race.kernel)),
            sites: vec![race.first.site.clone()],
            other: vec![race.second.site.clone()],
        });
    }
}

/// A call was to free an address, and answers an error.
pub fn free_failed(address: u64, error: Error) {
    if !config::get().check.memory || error != Error::InvalidValue {
        return;
    }
    let text = match AddressSpace::get().nearest(address) {
        Some(near @ Nearest { freed: true, .. }) => format!("frees {address:#x} again, which is {near}"),
        Some(near) if matches!(near.relation, Relation::Inside(0)) => {
            format!("cannot free {address:#x}, which is {near}")
        }
        Some(near) if near.is_near() => format!("frees {address:#x}, which is {near}"),
        Some(_) | None => format!("frees {address:#x}, which is no device memory"),
    };
    let text = format!("{} {text}", caller::plain(caller::name()));
    tell(&Finding {
        kind: Kind::Free,
        report: text,
        kernel: None,
        sites: Vec::new(),
        other: Vec::new(),
    });
}

/// Memory of a context that ends, or of all.
pub fn leaks(owner: Option<u64>) {
    if !config::get().check.leaks || TOLD.load(Ordering::Relaxed) {
        return;
    }
    TOLD.store(owner.is_none(), Ordering::Relaxed);
    let space = AddressSpace::get();
    let all = (0..MAX_DEVICES as u32).flat_map(|device| space.live(device));
    let left =
        all.filter(|allocation| owner.is_none_or(|owner| allocation.owner == owner) && is_the_programs(allocation));
    // One report for all allocations of one size by one call.
    let mut groups: BTreeMap<(&str, u64), Vec<u64>> = BTreeMap::new();
    for allocation in left {
        let key = (allocation.allocated_by, allocation.bytes);
        groups.entry(key).or_default().push(allocation.start);
    }
    let when = if owner.is_some() { "its context" } else { "the process" };
    for ((call, bytes), starts) in groups {
        let s = if bytes == 1 { "" } else { "s" };
        let more = match starts.len() - 1 {
            0 => String::new(),
            1 => " and 1 more of this size".into(),
            n => format!(" and {n} more of this size"),
        };
        let call = caller::plain(call);
        let text = format!(
            "{bytes} byte{s} at {:#x}{more}, allocated by {call}, not freed by the end of {when}",
            starts[0]
        );
        tracing::error!("leak: {text}");
        for _ in &starts {
            note(Kind::Leak, &text);
        }
    }
}

/// A program allocated it by itself, and nobody keeps it for later.
fn is_the_programs(allocation: &Allocation) -> bool {
    // Unless accesses are checked to the byte, small blocks of a kernel's heap lie in larger ones, which are the driver's.
    let is_whole = allocation.kind != memory::Kind::Heap || memory::exact();
    let is_asked_for = ALLOCATORS.iter().any(|call| allocation.allocated_by.starts_with(call));
    is_whole && is_asked_for && allocation.is_in_use()
}
