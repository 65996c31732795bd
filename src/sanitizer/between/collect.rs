//! Looks at one grid and keeps which bytes of which memory it has touched, in what way, and by whom ([`pages`](super::pages)).

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::isa::lanes::WARP;
use crate::memory::AddressSpace;
use crate::program::{self, Scope, Space};
use crate::ptx::ast::Span;
use crate::simt::observe::{Access, Direction, GridEvent, Observer, RowAccess, SyncEvent, Who};
use crate::simt::{Executables, Launch, Site};

use super::history::{Class, Example, Range};
use super::operation::Operation;
use super::pages::{Pages, Trace};
use super::running::{self, Running};

pub struct Collector {
    /// No other collector has it.
    id: u64,
    operation: Arc<Operation>,
    launch: Arc<Launch>,
    pages: Pages,
    /// Instructions of blocks, by number.
    places: Mutex<Vec<Place>>,
    fences: AtomicBool,
    talks_to_host: AtomicBool,
    running: Running,
}

/// A function, where in its text an instruction begins, and a block.
type Key = (usize, u32, [u32; 3]);

struct Place {
    function: usize,
    span: Span,
    block: [u32; 3],
}

/// What a grid's numbers mean.
///
/// It has the code and not the launch, whose context and module may free memory when they go: the history forgets under its lock.
pub struct Source {
    code: Arc<Executables>,
    kernel: u32,
    block: [u32; 3],
    places: Vec<Place>,
    trace: Trace,
    /// What it writes and reads strongly, by addresses.
    signals: Vec<(u64, u64)>,
    polls: Vec<(u64, u64)>,
    /// It has fences, or accesses that release or acquire, beyond the block.
    fences: bool,
    talks_to_host: bool,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

impl Source {
    /// The kernel's mangled name.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.code.module.functions[self.kernel as usize].name)
    }

    /// The instruction, the block's and the thread's coordinates.
    pub fn place(&self, example: Example) -> Option<(Site, [u32; 3], [u32; 3])> {
        let place = self.places.get(example.place as usize)?;
        let [x, y, _] = self.block;
        let thread = example.thread;
        let site = Site::of_instruction(&self.code.module, place.function, place.span);
        Some((site, place.block, [thread % x, thread / x % y, thread / x / y]))
    }

    /// The instruction alone: its function, and where in the text it begins.
    pub fn site(&self, example: Example) -> Option<(usize, u32)> {
        let place = self.places.get(example.place as usize)?;
        Some((place.function, place.span.start))
    }

    /// Who came first in a way to a byte, and up to where he did to those that follow it.
    pub fn first(&self, class: Class, address: u64) -> Option<(Example, u64)> {
        self.trace.first(class, address)
    }

    /// It comes to memory of the host as one does to talk to it.
    pub fn talks_to_host(&self) -> bool {
        self.talks_to_host
    }

    /// One waits for a word that the other sets, or both have fences and work on a word by atomics.
    pub fn talks_to(&self, other: &Source) -> bool {
        meet(&self.signals, &other.polls)
            || meet(&self.polls, &other.signals)
            || self.fences && other.fences && meet(&self.signals, &other.signals)
    }
}

/// Whether ranges of two lists, both in order, overlap.
fn meet(one: &[(u64, u64)], other: &[(u64, u64)]) -> bool {
    let (mut a, mut b) = (0, 0);
    while let (Some((start, end)), Some((from, to))) = (one.get(a), other.get(b)) {
        if start < to && from < end {
            return true;
        }
        match end <= from {
            true => a += 1,
            false => b += 1,
        }
    }
    false
}

fn is_wide(scope: Option<Scope>) -> bool {
    matches!(scope, None | Some(Scope::Gpu | Scope::Sys))
}

fn class_of(access: &Access<'_>) -> Class {
    let is_strong = match access.ordering {
        program::Ordering::Weak => access.direction == Direction::Atomic,
        program::Ordering::Volatile => true,
        program::Ordering::Relaxed
        | program::Ordering::Acquire
        | program::Ordering::Release
        | program::Ordering::AcqRel
        | program::Ordering::Sc => is_wide(access.scope),
    };
    match (access.direction, is_strong) {
        (Direction::Read, false) => Class::Read,
        (Direction::Read, true) => Class::StrongRead,
        (Direction::Write | Direction::Atomic, false) => Class::Write,
        (Direction::Write | Direction::Atomic, true) => Class::StrongWrite,
    }
}

impl Collector {
    pub(super) fn new(operation: Arc<Operation>, launch: &Arc<Launch>) -> Collector {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Collector {
            id,
            operation,
            launch: Arc::clone(launch),
            pages: Pages::new(id),
            places: Mutex::default(),
            fences: AtomicBool::new(false),
            talks_to_host: AtomicBool::new(false),
            running: Running::begin(),
        }
    }

    /// A strong access, of which the first address says where.
    fn strongly(&self, access: &Access<'_>) {
        self.running.may_wait();
        let is_systems =
            access.ordering == program::Ordering::Volatile || matches!(access.scope, None | Some(Scope::Sys));
        let first = access.addresses.get(access.lanes.trailing_zeros() as usize);
        if is_systems
            && !self.talks_to_host.load(Ordering::Relaxed)
            && first.is_some_and(|&address| {
                AddressSpace::get()
                    .find(address)
                    .is_some_and(|found| found.kind.is_shared_with_host())
            })
        {
            self.talks_to_host.store(true, Ordering::Relaxed);
        }
    }

    /// The number of an instruction of a block. Each thread remembers those of the last ones; what it has forgotten gets another.
    fn place(&self, by: &Who<'_>) -> u32 {
        const KNOWN: usize = 64;
        type Known = (u64, Key, u32);
        thread_local! {
            static LAST: [Cell<Known>; KNOWN] = const { [const { Cell::new((0, (0, 0, [0; 3]), 0)) }; KNOWN] };
        }
        let key = (std::ptr::from_ref(by.function) as usize, by.span.start, by.block);
        LAST.with(|last| {
            let last = &last[(key.1.wrapping_mul(0x9e37_79b1) >> 26) as usize % KNOWN];
            let (id, same, number) = last.get();
            if (id, same) == (self.id, key) {
                return number;
            }
            let mut places = self.places.lock();
            places.push(Place {
                function: key.0,
                span: by.span,
                block: by.block,
            });
            let number = places.len() as u32 - 1;
            last.set((self.id, key, number));
            number
        })
    }

    /// The grid is over: what it has touched, writes first.
    fn ended(&self) {
        let trace = self.pages.trace();
        let all = Class::ALL.map(|class| (class, trace.ranges(class)));
        let ranges: Vec<Range> = all
            .iter()
            .flat_map(|(class, ranges)| {
                ranges.iter().map(|&(start, end)| Range {
                    start,
                    end,
                    class: *class,
                })
            })
            .collect();
        let [_, (_, signals), _, (_, polls)] = all;
        let source = Source {
            code: Arc::clone(&self.launch.code),
            kernel: self.launch.kernel,
            block: self.launch.block,
            places: std::mem::take(&mut *self.places.lock()),
            trace,
            signals,
            polls,
            fences: self.fences.load(Ordering::Relaxed),
            talks_to_host: self.talks_to_host.load(Ordering::Relaxed),
        };
        super::touched(&self.operation, Some(source), &ranges);
    }
}

impl Observer for Collector {
    fn access(&self, by: &Who<'_>, access: &Access<'_>) {
        if matches!(access.space, Space::Shared | Space::Local | Space::Param) {
            return;
        }
        let class = class_of(access);
        if class.is_strong() && running::is_on() {
            self.strongly(access);
        }
        let orders = matches!(
            access.ordering,
            program::Ordering::Acquire | program::Ordering::Release | program::Ordering::AcqRel | program::Ordering::Sc
        );
        if orders && is_wide(access.scope) {
            self.fences.store(true, Ordering::Relaxed);
        }
        let bytes = u64::from(access.bytes);
        let first = by.first_thread + (access.warp * WARP) as u32;
        self.pages.with(class, |cursor| {
            // Lanes whose addresses follow each other are one range.
            let mut run: Option<(u64, u64, u32)> = None;
            let mut flush = |run: Option<(u64, u64, u32)>| {
                if let Some((start, end, lane)) = run {
                    cursor.note(start, end, &mut |byte| {
                        let touches = |own: &u32| {
                            access.lanes >> own & 1 == 1 && byte.wrapping_sub(access.addresses[*own as usize]) < bytes
                        };
                        let own = (lane..WARP as u32).find(touches).unwrap_or(lane);
                        // The lanes behind it each have their own bytes, one after the other, up to the end of the run.
                        let count = end.saturating_sub(byte).div_ceil(bytes);
                        let follow = |i: u64| {
                            let lane = u64::from(own) + i;
                            lane < WARP as u64
                                && access.lanes >> lane & 1 == 1
                                && access.addresses[lane as usize] == byte + i * bytes
                        };
                        Example {
                            place: self.place(by),
                            thread: first + own,
                            bytes: if (0..count).all(follow) { access.bytes } else { 0 },
                        }
                    });
                }
            };
            for lane in (0..WARP as u32).filter(|lane| access.lanes >> lane & 1 == 1) {
                let address = access.addresses[lane as usize];
                run = match run {
                    Some((start, end, first)) if address == end => Some((start, address + bytes, first)),
                    Some((start, end, first)) if address >= start && address + bytes <= end => {
                        Some((start, end, first))
                    }
                    other => {
                        flush(other);
                        Some((address, address + bytes, lane))
                    }
                };
            }
            flush(run);
        });
    }

    fn rows(&self, by: &Who<'_>, rows: &RowAccess<'_>) {
        if matches!(rows.space, Space::Shared | Space::Local | Space::Param) {
            return;
        }
        let class = match rows.direction {
            Direction::Read => Class::Read,
            Direction::Write => Class::Write,
            Direction::Atomic => Class::StrongWrite,
        };
        let bytes = u64::from(rows.bytes);
        let first = by.first_thread + (rows.warp * WARP) as u32;
        let mut place = None;
        self.pages.with(class, |cursor| {
            let mut note = |start: u64, lanes: usize, lane: usize| {
                let end = start + bytes * lanes as u64;
                cursor.note(start, end, &mut |byte| Example {
                    place: *place.get_or_insert_with(|| self.place(by)),
                    thread: first + lane as u32 + ((byte - start) / bytes) as u32,
                    bytes: match (byte - start).is_multiple_of(bytes) {
                        true => rows.bytes,
                        false => 0,
                    },
                });
            };
            if rows.step != 0 && rows.step != bytes {
                (0..rows.warps * WARP).for_each(|lane| note(rows.address(lane), 1, lane));
                return;
            }
            let length = if rows.step == 0 { 1 } else { rows.lanes };
            let mut last = None;
            for (i, &start) in rows.firsts.iter().enumerate() {
                // Rows of a tile that name the same.
                if last.replace(start) != Some(start) {
                    note(start, length, i * rows.lanes);
                }
            }
        });
    }

    fn synchronise(&self, _: &Who<'_>, event: &SyncEvent) {
        if let SyncEvent::Fence { scope, .. } = event
            && is_wide(*scope)
        {
            self.fences.store(true, Ordering::Relaxed);
        }
    }

    fn grid(&self, _: u64, event: &GridEvent) {
        match event {
            GridEvent::Transfer {
                address,
                bytes,
                direction,
            } => {
                let class = match direction {
                    Direction::Read => Class::Read,
                    Direction::Write | Direction::Atomic => Class::Write,
                };
                // It is done when the blocks of the grid have ended.
                super::touched(&self.operation, None, &[Range::whole(*address, *bytes, class)]);
            }
            GridEvent::End => self.ended(),
            GridEvent::Launch
            | GridEvent::Left { .. }
            | GridEvent::Block { .. }
            | GridEvent::BlockEnd { .. }
            | GridEvent::Release { .. }
            | GridEvent::ClusterRelease { .. }
            | GridEvent::Complete { .. } => {}
        }
    }
}
