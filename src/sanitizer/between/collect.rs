//! Looks at one grid and keeps which bytes of which memory it has touched, in what way, with an instruction and a thread for each range.
//!
//! A page has a bit for each byte and way. An access whose bits are set already says nothing new, and that is all that most cost.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::isa::lanes::WARP;
use crate::memory::{AddressSpace, Kind, PAGE};
use crate::program::{self, Scope, Space};
use crate::ptx::ast::Span;
use crate::simt::observe::{Access, Direction, GridEvent, Observer, SyncEvent, Who};
use crate::simt::{Executables, Launch, Site};

use super::history::{Class, Example, Range};
use super::operation::Operation;

const SHARDS: usize = 64;
const WORDS: usize = PAGE as usize / 64;

pub struct Collector {
    operation: Arc<Operation>,
    launch: Arc<Launch>,
    /// By page.
    pages: [Mutex<HashMap<u64, Page>>; SHARDS],
    names: Mutex<Names>,
    fences: AtomicBool,
}

/// Instructions and blocks by number, and their numbers.
#[derive(Default)]
struct Names {
    sites: HashMap<(usize, u32), u32>,
    all_sites: Vec<(usize, Span)>,
    blocks: HashMap<[u32; 3], u32>,
    all_blocks: Vec<[u32; 3]>,
}

/// `None`: nobody but this grid knows that memory.
type Page = Option<Box<Ways>>;

/// By class.
type Ways = [Option<Box<Way>>; 4];

/// What of a page is touched in one way.
struct Way {
    bits: [u64; WORDS],
    spans: Vec<Span16>,
}

/// Bytes of a page that one instruction of a warp has touched first.
struct Span16 {
    start: u16,
    /// One less than there are.
    more: u16,
    example: Example,
}

/// What a grid's numbers mean.
///
/// It has the code and not the launch, whose context and module may free memory when they go: the history forgets under its lock.
pub struct Source {
    code: Arc<Executables>,
    kernel: u32,
    block: [u32; 3],
    sites: Vec<(usize, Span)>,
    blocks: Vec<[u32; 3]>,
    /// What it writes and reads strongly, by addresses.
    signals: Vec<(u64, u64)>,
    polls: Vec<(u64, u64)>,
    /// It has fences, or accesses that release or acquire, beyond the block.
    fences: bool,
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
        let (function, span) = *self.sites.get(example.site as usize)?;
        let [x, y, _] = self.block;
        let thread = example.thread;
        let site = Site::of_instruction(&self.code.module, function, span);
        let block = *self.blocks.get(example.block as usize)?;
        Some((site, block, [thread % x, thread / x % y, thread / x / y]))
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

/// Whether others than the grid know the memory at an address, and by address.
fn is_shared(address: u64) -> bool {
    let space = AddressSpace::get();
    match space.find(address) {
        Some(allocation) => !matches!(allocation.kind, Kind::Heap | Kind::Internal),
        None => !space.view().contains(address),
    }
}

impl Collector {
    pub(super) fn new(operation: Arc<Operation>, launch: &Arc<Launch>) -> Collector {
        Collector {
            operation,
            launch: Arc::clone(launch),
            pages: std::array::from_fn(|_| Mutex::default()),
            names: Mutex::default(),
            fences: AtomicBool::new(false),
        }
    }

    /// Notes bytes; `example` is asked for where there is something new.
    fn note(&self, start: u64, end: u64, class: Class, example: impl Fn() -> Example) {
        let mut at = start;
        while at < end {
            let page = at / PAGE;
            let stop = end.min((page + 1) * PAGE);
            let mut pages = self.pages[page as usize % SHARDS].lock();
            let known = pages
                .entry(page)
                .or_insert_with(|| is_shared(at).then(|| Box::new([None, None, None, None])));
            if let Some(ways) = known {
                let way = ways[class as usize].get_or_insert_with(|| {
                    Box::new(Way {
                        bits: [0; WORDS],
                        spans: Vec::new(),
                    })
                });
                way.note((at % PAGE) as usize, (at % PAGE + stop - at) as usize, &example);
            }
            at = stop;
        }
    }

    /// But for the thread.
    fn example(&self, by: &Who<'_>) -> Example {
        let mut names = self.names.lock();
        let names = &mut *names;
        let key = (std::ptr::from_ref(by.function) as usize, by.span.start);
        let site = *names.sites.entry(key).or_insert_with(|| {
            names.all_sites.push((key.0, by.span));
            names.all_sites.len() as u32 - 1
        });
        let block = *names.blocks.entry(by.block).or_insert_with(|| {
            names.all_blocks.push(by.block);
            names.all_blocks.len() as u32 - 1
        });
        Example { site, block, thread: 0 }
    }

    /// The grid is over: what it has touched, writes first.
    fn ended(&self) {
        let mut pages: Vec<(u64, Box<Ways>)> = Vec::new();
        for shard in &self.pages {
            let all = std::mem::take(&mut *shard.lock());
            pages.extend(all.into_iter().filter_map(|(page, ways)| Some((page, ways?))));
        }
        pages.sort_unstable_by_key(|(page, _)| *page);
        let mut ranges: Vec<Range> = Vec::new();
        let mut strong = [Vec::new(), Vec::new()];
        for class in Class::ALL {
            let first = ranges.len();
            for (page, ways) in &mut pages {
                let Some(way) = &mut ways[class as usize] else { continue };
                way.spans.sort_unstable_by_key(|span| span.start);
                for span in &way.spans {
                    let start = *page * PAGE + u64::from(span.start);
                    let end = start + u64::from(span.more) + 1;
                    match ranges[first..].last_mut() {
                        Some(last) if last.end == start && last.example.site == span.example.site => last.end = end,
                        _ => ranges.push(Range {
                            start,
                            end,
                            class,
                            example: span.example,
                        }),
                    }
                }
            }
            let list = match class {
                Class::StrongWrite => &mut strong[0],
                Class::StrongRead => &mut strong[1],
                Class::Write | Class::Read => continue,
            };
            list.extend(ranges[first..].iter().map(|range| (range.start, range.end)));
        }
        let mut names = self.names.lock();
        let [signals, polls] = strong;
        let source = Source {
            code: Arc::clone(&self.launch.code),
            kernel: self.launch.kernel,
            block: self.launch.block,
            sites: std::mem::take(&mut names.all_sites),
            blocks: std::mem::take(&mut names.all_blocks),
            signals,
            polls,
            fences: self.fences.load(Ordering::Relaxed),
        };
        drop(names);
        super::touched(&self.operation, Some(source), &ranges);
    }
}

impl Way {
    fn note(&mut self, start: usize, end: usize, example: &impl Fn() -> Example) {
        // Bytes that are new, as far as they follow each other.
        let mut open: Option<(usize, usize)> = None;
        let mut made = None;
        for word in start / 64..end.div_ceil(64) {
            let (from, to) = (start.max(word * 64) - word * 64, end.min(word * 64 + 64) - word * 64);
            let mask = (u64::MAX >> (64 - (to - from))) << from;
            let mut new = mask & !self.bits[word];
            self.bits[word] |= mask;
            while new != 0 {
                let first = new.trailing_zeros() as usize;
                let count = (!(new >> first)).trailing_zeros() as usize;
                let (from, to) = (word * 64 + first, word * 64 + first + count);
                open = match open {
                    Some((start, end)) if end == from => Some((start, to)),
                    other => {
                        self.add(other, &mut made, example);
                        Some((from, to))
                    }
                };
                new &= !((u64::MAX >> (64 - count)) << first);
            }
        }
        self.add(open, &mut made, example);
    }

    fn add(&mut self, bytes: Option<(usize, usize)>, made: &mut Option<Example>, example: &impl Fn() -> Example) {
        if let Some((start, end)) = bytes {
            self.spans.push(Span16 {
                start: start as u16,
                more: (end - start - 1) as u16,
                example: *made.get_or_insert_with(example),
            });
        }
    }
}

impl Observer for Collector {
    fn access(&self, by: &Who<'_>, access: &Access<'_>) {
        if matches!(access.space, Space::Shared | Space::Local | Space::Param) {
            return;
        }
        let class = class_of(access);
        let orders = matches!(
            access.ordering,
            program::Ordering::Acquire | program::Ordering::Release | program::Ordering::AcqRel | program::Ordering::Sc
        );
        if orders && is_wide(access.scope) {
            self.fences.store(true, Ordering::Relaxed);
        }
        let bytes = u64::from(access.bytes);
        let first = by.first_thread + (access.warp * WARP) as u32;
        let named = OnceCell::new();
        // Lanes whose addresses follow each other are one range.
        let mut run: Option<(u64, u64, u32)> = None;
        let flush = |run: Option<(u64, u64, u32)>| {
            if let Some((start, end, lane)) = run {
                self.note(start, end, class, || Example {
                    thread: first + lane,
                    ..*named.get_or_init(|| self.example(by))
                });
            }
        };
        for lane in (0..WARP as u32).filter(|lane| access.lanes >> lane & 1 == 1) {
            let address = access.addresses[lane as usize];
            run = match run {
                Some((start, end, first)) if address == end => Some((start, address + bytes, first)),
                Some((start, end, first)) if address >= start && address + bytes <= end => Some((start, end, first)),
                other => {
                    flush(other);
                    Some((address, address + bytes, lane))
                }
            };
        }
        flush(run);
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
