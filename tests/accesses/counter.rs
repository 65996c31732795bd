//! The observer, and the rooms of the library put together for it.

use std::sync::Arc;
use std::time::Duration;

use cuda::memory::texture::References;
use cuda::memory::{AddressSpace, Kind, Request};
use cuda::program::{Allocate, AllocateError, LinkError, Module, Proxy};
use cuda::ptx::{self, Source};
use cuda::simt::observe::{Access, Completes, GridEvent, HeapEvent, Observer, SyncEvent, Watch, Who};
use cuda::simt::{self, Executables, Fault, Runtime, Services};
use parking_lot::Mutex;

use crate::expect::What;

/// What some lanes of a warp did.
#[derive(Clone, Debug)]
pub struct Seen {
    pub lanes: u32,
    pub what: What,
    pub proxy: Proxy,
}

/// Keeps the accesses of one statement, and all that synchronises.
pub struct Counter {
    statement: String,
    seen: Mutex<Vec<Seen>>,
    events: Mutex<Vec<String>>,
}

impl Counter {
    /// Of a statement as it stands in the text.
    pub fn of(statement: &str) -> Counter {
        Counter {
            statement: words(statement),
            seen: Mutex::default(),
            events: Mutex::default(),
        }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    pub fn events(&self) -> Vec<String> {
        self.events.lock().clone()
    }

    fn note(&self, event: String) {
        self.events.lock().push(event);
    }
}

fn words(text: &str) -> String {
    let text = text.trim().trim_end_matches(';');
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn count(lanes: &[u32]) -> u32 {
    lanes.iter().map(|lanes| lanes.count_ones()).sum()
}

impl Observer for Counter {
    fn access(&self, by: &Who<'_>, access: &Access<'_>) {
        let text = &by.function.source.text[by.span.start as usize..by.span.end as usize];
        if text.trim_end_matches(';') != self.statement && words(text) != self.statement {
            return;
        }
        let what = What {
            bytes: access.bytes,
            direction: access.direction,
            space: access.space,
            ordering: access.ordering,
            scope: access.scope,
        };
        let lanes = access.lanes.count_ones();
        let proxy = access.proxy;
        self.seen.lock().push(Seen { lanes, what, proxy });
    }

    fn synchronise(&self, _: &Who<'_>, event: &SyncEvent) {
        self.note(match event {
            SyncEvent::Arrive { barrier, lanes, .. } => format!("arrive {barrier} of {}", count(lanes)),
            SyncEvent::Warp { members, .. } => {
                let lanes = members.iter().filter(|own| **own != 0).count();
                format!("warp of {lanes}")
            }
            SyncEvent::Together {
                lanes,
                is_barrier: true,
            } => {
                let warps = lanes.iter().filter(|lanes| **lanes != 0);
                return warps.for_each(|lanes| self.note(format!("warp of {}", lanes.count_ones())));
            }
            SyncEvent::Collective { .. } | SyncEvent::Together { .. } => return,
            SyncEvent::Fence {
                lanes, ordering, scope, ..
            } => {
                let scope = scope.map_or(String::new(), |scope| format!(" {scope:?}"));
                format!("fence {ordering:?}{scope} of {}", count(lanes))
            }
            SyncEvent::Copies { lanes, group } => format!("copies {group:?} of {}", count(lanes)),
            SyncEvent::BulkCopies { lanes, group, read } => {
                let of = if *read { "sources of " } else { "" };
                format!("{of}bulk copies {group:?} of {}", count(lanes))
            }
            SyncEvent::Begin {
                operation,
                lanes,
                completes,
                ..
            } => {
                let lanes = lanes.count_ones();
                match completes {
                    Completes::Bytes { bytes, .. } => format!("{operation} begins for {lanes}: {bytes} bytes"),
                    other => format!("{operation} begins for {lanes}: {other:?}"),
                }
            }
            SyncEvent::Mbarrier {
                lanes,
                ordering,
                scope,
                what,
                ..
            } => {
                let scope = scope.map_or(String::new(), |scope| format!(" {scope:?}"));
                format!("mbarrier {what:?} {ordering:?}{scope} of {}", lanes.count_ones())
            }
            SyncEvent::ClusterArrive { lanes, relaxed } => {
                let how = if *relaxed { " relaxed" } else { "" };
                format!("cluster arrive{how} of {}", count(lanes))
            }
            SyncEvent::ClusterWait { lanes } => format!("cluster wait of {}", count(lanes)),
            SyncEvent::Fabric { lanes, what } => format!("fabric {what:?} of {}", count(lanes)),
            SyncEvent::HostCall { lanes } => format!("host call of {}", count(lanes)),
            SyncEvent::Use(_) => return,
        });
    }

    fn grid(&self, _: u64, event: &GridEvent) {
        self.note(match event {
            GridEvent::Complete { operation, lanes, .. } => {
                format!("{operation} is complete for {}", lanes.count_ones())
            }
            GridEvent::Launch => "launch".to_owned(),
            GridEvent::End => "end".to_owned(),
            GridEvent::Block { .. } => "block".to_owned(),
            GridEvent::BlockEnd { .. } => "block end".to_owned(),
            GridEvent::Left { .. } => return,
            GridEvent::Release { barrier, .. } => format!("release {barrier}"),
            GridEvent::ClusterRelease { first, shape } => format!("release cluster of {shape:?} at {first:?}"),
            GridEvent::Transfer {
                address,
                bytes,
                direction,
            } => format!("{direction:?} {bytes} at {address:#x}"),
        });
    }

    fn heap(&self, _: &Who<'_>, event: &HeapEvent) {
        self.note(match event {
            HeapEvent::Allocate { bytes, address, .. } => format!("allocate {bytes} at {address:#x}"),
            HeapEvent::Free { address, .. } => format!("free {address:#x}"),
        });
    }
}

/// Allocations, freed with it.
#[derive(Default)]
pub struct Memory(Vec<u64>);

impl Memory {
    fn allocate(&mut self, kind: Kind, bytes: u64) -> Option<u64> {
        let request = Request::new(kind, bytes.max(1));
        let start = AddressSpace::get().allocate(&request).ok()?.start;
        self.0.push(start);
        Some(start)
    }

    /// Device memory with this content; its address.
    pub fn buffer(&mut self, content: &[u8]) -> u64 {
        let start = self.allocate(Kind::Device, content.len() as u64).expect("memory");
        Allocate::write(self, start, content);
        start
    }
}

impl Allocate for Memory {
    fn allocate(&mut self, bytes: u64, _: u64, constant: bool, _: bool) -> Result<u64, AllocateError> {
        let kind = if constant { Kind::Constant } else { Kind::Device };
        Memory::allocate(self, kind, bytes).ok_or(AllocateError)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        // SAFETY: the caller writes within what it was given; no kernel runs.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for &start in &self.0 {
            AddressSpace::get().free(start);
        }
    }
}

/// What kernels are given that ask for memory, and must not touch.
pub const HEAP: u64 = 0x4000;

/// Keeps what kernels print, and has them watched.
struct Watched {
    watch: Watch,
    printed: Arc<Mutex<Vec<u8>>>,
}

impl Services for Watched {
    fn malloc(&self, _: u64) -> u64 {
        HEAP
    }
    fn free(&self, address: u64) -> bool {
        address == HEAP
    }
    fn print(&self, bytes: &[u8]) {
        self.printed.lock().extend_from_slice(bytes);
    }
    fn set_conditional(&self, _: u64, _: u32) -> bool {
        false
    }
    fn assert_failed(&self, _: &str) {}
    fn watch(&self, _: &Arc<simt::Launch>) -> Watch {
        self.watch.clone()
    }
}

/// Modules and launches of a test.
pub struct Run {
    pub memory: Memory,
    pub printed: Arc<Mutex<Vec<u8>>>,
    /// What references of the next launch's module are bound to.
    pub references: References,
    /// What kernels of the next launch ask that launch kernels.
    pub runtime: Option<Arc<dyn Runtime>>,
}

impl Run {
    pub fn new() -> Run {
        Run {
            memory: Memory::default(),
            printed: Arc::default(),
            references: Arc::default(),
            runtime: None,
        }
    }

    /// # Errors
    /// What the text lacks, for people.
    pub fn load(&mut self, text: &str) -> Result<Arc<Executables>, String> {
        let tree = ptx::parse(Source::new("accesses.ptx", text)).map_err(|error| error.render_plain())?;
        let module = Module::link(&[Arc::new(tree)], &mut self.memory).map_err(|error| match error {
            LinkError::Invalid(found) => found.render_plain(),
            other => format!("{other:?}"),
        })?;
        Ok(Arc::new(Executables::new(Arc::new(module.as_written()))))
    }

    /// A kernel, lowered: its number.
    ///
    /// # Errors
    /// What its body lacks.
    pub fn prepare(&self, code: &Arc<Executables>, entry: &str) -> Result<u32, String> {
        let kernel = code.module.functions.iter().position(|f| f.entry && *f.name == *entry);
        let kernel = kernel.ok_or("no such entry")? as u32;
        code.module.prepare(kernel).map_err(|found| found.render_plain())?;
        Ok(kernel)
    }

    /// One block, with so many threads and these bytes as parameters.
    ///
    /// # Errors
    /// How it ended.
    pub fn launch(
        &self,
        code: &Arc<Executables>,
        entry: &str,
        block: (u32, Vec<u8>),
        counter: &Arc<Counter>,
    ) -> Result<(), String> {
        let kernel = self.prepare(code, entry)?;
        let watch = Watch::new(Arc::clone(counter));
        let ended = self.start(code, kernel, block, watch);
        ended.map_err(|fault| fault.cause.to_string())
    }

    /// # Errors
    /// How it ended.
    pub fn start(
        &self,
        code: &Arc<Executables>,
        kernel: u32,
        (threads, params): (u32, Vec<u8>),
        watch: Watch,
    ) -> Result<(), Box<Fault>> {
        let launch = simt::Launch {
            code: Arc::clone(code),
            kernel,
            grid: [1; 3],
            block: [threads, 1, 1],
            cluster: None,
            dynamic_shared: 0,
            params: params.into(),
            cooperative: false,
            device: 0,
            workspace: 0,
            tensor: Default::default(),
            grid_id: 1,
            multiprocessors: 4,
            stack_limit: 1024,
            timeout: Some(Duration::from_secs(30)),
            services: Arc::new(Watched {
                watch,
                printed: Arc::clone(&self.printed),
            }),
            references: self.references.clone(),
            family: simt::Family {
                runtime: self.runtime.clone(),
                ..simt::Family::default()
            },
            seed: None,
            is_checked: true.into(),
        };
        simt::run(Arc::new(launch))
    }
}
