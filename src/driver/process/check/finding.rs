//! Something that was found, as people read it and as programs do: the log has the report, and the file that `margay check` reads
//! (`MARGAY_CHECK_LOG`) a JSON object on a line of its own.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};

use crate::config;
use crate::program::demangle;
use crate::simt::Site;

use super::host::{Host, words_of_hosts};
use super::suppressions::{self, Rule};

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
    /// What a launch leaves depends on the order of threads.
    Order,
    /// A number has gone wrong: the first NaN, infinity, subnormal, or a difference that cancels.
    Number,
}

impl Kind {
    /// Its name in the list of findings, and in suppressions.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Kernel => "kernel",
            Kind::Free => "free",
            Kind::Leak => "leak",
            Kind::Race => "race",
            Kind::Uninitialised => "init",
            Kind::Synchronisation => "sync",
            Kind::Order => "order",
            Kind::Number => "fp",
        }
    }

    /// The tool of `margay check` that finds it.
    fn tool(self) -> &'static str {
        match self {
            Kind::Kernel | Kind::Free | Kind::Leak => "memcheck",
            Kind::Race => "racecheck",
            Kind::Uninitialised => "initcheck",
            Kind::Synchronisation => "synccheck",
            Kind::Order => "seeds",
            Kind::Number => "fpcheck",
        }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    /// Programs get away with it, or mean it.
    Warning,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// A launch, as far as readers of a finding want to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// Of the launches of the process, from 1.
    pub number: u64,
    pub grid: [u32; 3],
    pub block: [u32; 3],
}

/// One of the accesses that a finding is about, or whatever else a thread did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deed {
    /// `read`, `write`, `atomic`, between operations also `strong read`, `strong write`, `allocation` and `free`, or empty.
    pub what: &'static str,
    pub block: Option<[u32; 3]>,
    pub thread: Option<[u32; 3]>,
}

/// Something that was found, for people and for programs. [`Finding::new`] makes one; what is known beside the report is set by
/// field: `Finding { sites, ..Finding::new(kind, report) }`.
#[derive(Clone, Debug)]
pub struct Finding {
    pub kind: Kind,
    pub severity: Severity,
    /// Several lines, the first of which says what was found.
    pub report: String,
    /// The kernel's mangled name, if it is about one.
    pub kernel: Option<Arc<str>>,
    pub launch: Option<Launched>,
    /// Where: a call stack, innermost function first. Of two accesses the second's stack is in [`Finding::other`].
    pub sites: Vec<Site>,
    pub other: Vec<Site>,
    /// Whose stacks these two are.
    pub first: Deed,
    pub second: Deed,
    /// Other threads of the first one's warp that did the same.
    pub others: Vec<[u32; 3]>,
    /// Where on the host what it is about was asked for.
    pub hosts: Vec<Host>,
    /// The address that it is about, and how many bytes there.
    pub address: Option<u64>,
    pub bytes: Option<u64>,
    /// The driver call that it is about: the one that failed, or allocated what was not freed.
    pub call: Option<&'static str>,
    /// How many things of this kind it stands for: allocations of one size by one call.
    pub count: u64,
    /// How often it was seen to happen.
    pub times: u64,
    /// The report reaches the log by another way: a context tells of the fault that it fails by.
    pub is_told: bool,
}

impl Finding {
    pub fn new(kind: Kind, report: impl Into<String>) -> Finding {
        Finding {
            kind,
            severity: Severity::Error,
            report: report.into(),
            kernel: None,
            launch: None,
            sites: Vec::new(),
            other: Vec::new(),
            first: Deed::default(),
            second: Deed::default(),
            others: Vec::new(),
            hosts: Vec::new(),
            address: None,
            bytes: None,
            call: None,
            count: 1,
            times: 1,
            is_told: false,
        }
    }

    /// With where on the host it was asked for.
    fn whole_report(&self) -> String {
        format!("{}{}", self.report, words_of_hosts(&self.hosts))
    }

    /// As an object of the list of findings.
    fn json(&self) -> Value {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| {
            object.insert(name.into(), value);
        };
        put("record", "finding".into());
        put("kind", self.kind.word().into());
        put("tool", self.kind.tool().into());
        put("severity", self.severity.word().into());
        put("title", self.report.lines().next().unwrap_or_default().into());
        put("report", self.whole_report().into());
        put("pid", process::id().into());
        put("count", self.count.into());
        put("times", self.times.into());
        if let Some(kernel) = &self.kernel {
            put("kernel", json!({"mangled": &**kernel, "name": demangle(kernel)}));
        }
        if let Some(Launched { number, grid, block }) = self.launch {
            put("launch", json!({"number": number, "grid": grid, "block": block}));
        }
        if let Some(address) = self.address {
            put("address", format!("{address:#x}").into());
        }
        if let Some(bytes) = self.bytes {
            put("bytes", bytes.into());
        }
        if let Some(call) = self.call {
            put("call", call.into());
        }
        let deeds = [(&self.first, &self.sites), (&self.second, &self.other)];
        let deeds = deeds
            .into_iter()
            .filter(|(deed, sites)| **deed != Deed::default() || !sites.is_empty());
        let deeds: Vec<Value> = deeds.map(|(deed, sites)| accesses(deed, sites)).collect();
        if !deeds.is_empty() {
            put("accesses", deeds.into());
        }
        if !self.others.is_empty() {
            put("more_threads", json!(self.others));
        }
        if !self.hosts.is_empty() {
            put("host", self.hosts.iter().map(Host::json).collect());
        }
        Value::Object(object)
    }
}

fn accesses(deed: &Deed, sites: &[Site]) -> Value {
    let mut object = Map::new();
    if !deed.what.is_empty() {
        object.insert("what".into(), deed.what.into());
    }
    if let Some(block) = deed.block {
        object.insert("block".into(), json!(block));
    }
    if let Some(thread) = deed.thread {
        object.insert("thread".into(), json!(thread));
    }
    object.insert("stack".into(), sites.iter().flat_map(frames).collect());
    Value::Object(object)
}

/// A call stack's frames at one instruction: inlined functions have frames of their own.
fn frames(site: &Site) -> Vec<Value> {
    let frame = |function: &str| {
        let mut frame = Map::new();
        frame.insert("function".into(), function.into());
        frame.insert("name".into(), demangle(function).into());
        frame
    };
    let mut all: Vec<Map<String, Value>> = Vec::new();
    for line in &site.origin.lines {
        let mut next = frame(line.inlined.as_deref().unwrap_or(&site.function));
        next.insert("file".into(), (&*line.file).into());
        next.insert("line".into(), line.line.into());
        if line.column != 0 {
            next.insert("column".into(), line.column.into());
        }
        if line.inlined.is_some() {
            next.insert("inlined".into(), true.into());
        }
        all.push(next);
    }
    if all.is_empty() {
        all.push(frame(&site.function));
    }
    if site.ptx_line != 0 {
        all[0].insert("ptx_line".into(), site.ptx_line.into());
        all[0].insert("instruction".into(), site.instruction.as_str().into());
    }
    all.into_iter().map(Value::Object).collect()
}

/// Tells of a finding: in the log, and in the list that `margay check` reads.
pub fn tell(finding: &Finding) {
    static TOLD: AtomicU64 = AtomicU64::new(0);
    let record = finding.json();
    if let Some(rule) = rules().iter().find(|rule| rule.applies(&record)) {
        append(|| json!({"record": "suppressed", "rule": rule.line, "count": finding.count}));
        return;
    }
    let limit = config::get().check_limit;
    if !finding.is_told {
        match TOLD.fetch_add(1, Ordering::Relaxed) {
            told if limit != 0 && told > limit => {}
            told if limit != 0 && told == limit => {
                tracing::error!("what else is found is counted and not printed: the limit of reports is {limit}");
            }
            _ => tracing::error!("{}", finding.whole_report()),
        }
    }
    append(|| record);
}

/// Rules by which findings are left out (`MARGAY_CHECK_SUPPRESSIONS`); what is not understood is told of, and leaves nothing out.
fn rules() -> &'static [Rule] {
    static RULES: OnceLock<Vec<Rule>> = OnceLock::new();
    RULES.get_or_init(|| {
        let Some(path) = config::get().check_suppressions.as_deref() else {
            return Vec::new();
        };
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let (rules, problems) = suppressions::parse(&text);
                for problem in problems {
                    tracing::error!("MARGAY_CHECK_SUPPRESSIONS: {}:{problem}", path.display());
                }
                rules
            }
            Err(error) => {
                tracing::error!("MARGAY_CHECK_SUPPRESSIONS: {}: {error}", path.display());
                Vec::new()
            }
        }
    })
}

/// This process uses the driver, and is looked at: `margay check` wants to know of it even if nothing is found.
pub(super) fn introduce() {
    let program = std::env::current_exe().unwrap_or_default();
    append(|| json!({"record": "process", "pid": process::id(), "program": program.to_string_lossy()}));
}

/// Appends a line. A file that cannot be written must not stop the program, but whoever counts must hear of it.
pub(super) fn append(record: impl FnOnce() -> Value) {
    let Some(path) = &config::get().check_log else { return };
    let line = format!("{}\n", record());
    let file = OpenOptions::new().append(true).create(true).open(path);
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        tracing::error!("MARGAY_CHECK_LOG: {}: {error}; it lacks a finding", path.display());
    }
}
