//! Who has touched which bytes: ranges of memory, each with the operations that what comes may be in no order with.
//!
//! An operation is told when it has run, so whatever lies before it has been told already. That is why one that writes takes the place of all
//! that lie before it: what is in no order with those is in none with it, or was told, and compared, in between.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::clock::Clock;
use super::collect::Source;
use super::operation::Operation;

/// How bytes are touched. Strong is what kernels do atomically, volatile or relaxed, for all of the device or system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    Write,
    StrongWrite,
    Read,
    StrongRead,
}

impl Class {
    pub const ALL: [Class; 4] = [Class::Write, Class::StrongWrite, Class::Read, Class::StrongRead];

    pub fn writes(self) -> bool {
        matches!(self, Class::Write | Class::StrongWrite)
    }

    pub fn is_strong(self) -> bool {
        matches!(self, Class::StrongWrite | Class::StrongRead)
    }

    /// Two operations in no order race.
    fn conflicts(self, other: Class) -> bool {
        (self.writes() || other.writes()) && !(self.is_strong() && other.is_strong())
    }

    /// Whatever races with the other races with this.
    fn stands_for(self, other: Class) -> bool {
        match self {
            Class::Write => true,
            Class::StrongWrite => other.is_strong(),
            Class::Read => !other.writes(),
            Class::StrongRead => other == Class::StrongRead,
        }
    }
}

/// A thread that touched something: where it did, which means something to the [`Source`], and its number in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    pub place: u32,
    pub thread: u32,
    /// Bytes of the thread's own, where what follows is the next threads', one after the other; 0: nobody knows whose that is.
    pub bytes: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub end: u64,
    pub class: Class,
}

impl Range {
    pub fn whole(address: u64, bytes: u64, class: Class) -> Range {
        Range {
            start: address,
            end: address + bytes,
            class,
        }
    }
}

/// What an operation has touched, or one of the grids that it runs.
#[derive(Debug)]
pub struct Footprint {
    pub operation: Arc<Operation>,
    /// Of a grid.
    pub source: Option<Source>,
}

#[derive(Clone, Debug)]
struct Entry {
    by: Arc<Footprint>,
    class: Class,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        Arc::ptr_eq(&self.by, &other.by) && self.class == other.class
    }
}

impl Entry {
    /// Who came to a byte first, if that was an instruction, and up to where it was the same one.
    fn example(&self, address: u64) -> (Option<Example>, u64) {
        let found = self
            .by
            .source
            .as_ref()
            .and_then(|source| source.first(self.class, address));
        found.map_or((None, u64::MAX), |(example, end)| (Some(example), end))
    }
}

#[derive(Debug)]
struct Segment {
    end: u64,
    entries: Vec<Entry>,
}

#[derive(Debug, Default)]
pub struct History {
    /// By their starts; no two overlap.
    segments: BTreeMap<u64, Segment>,
}

/// One of two that race.
#[derive(Clone, Debug)]
pub struct Side {
    pub by: Arc<Footprint>,
    pub class: Class,
    /// `None`: no instruction did it.
    pub example: Option<Example>,
}

#[derive(Clone, Debug)]
pub struct Conflict {
    pub earlier: Side,
    pub later: Side,
    pub address: u64,
    /// All that they race for.
    pub bytes: u64,
}

impl History {
    pub const fn new() -> History {
        History {
            segments: BTreeMap::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub fn clear(&mut self) {
        self.segments.clear();
    }

    /// Nobody has touched it: it is other memory from now on.
    pub fn forget(&mut self, start: u64, end: u64) {
        self.cut(start, end);
    }

    /// Takes out what lies in a range.
    fn cut(&mut self, start: u64, end: u64) -> Vec<(u64, Segment)> {
        if let Some((_, first)) = self.segments.range_mut(..start).next_back()
            && first.end > start
        {
            let rest = Segment {
                end: first.end,
                entries: first.entries.clone(),
            };
            first.end = start;
            self.segments.insert(start, rest);
        }
        let starts: Vec<u64> = self.segments.range(start..end).map(|(start, _)| *start).collect();
        let mut found = Vec::with_capacity(starts.len());
        for at in starts {
            let Some(mut segment) = self.segments.remove(&at) else {
                continue;
            };
            if segment.end > end {
                let rest = Segment {
                    end: segment.end,
                    entries: segment.entries.clone(),
                };
                self.segments.insert(end, rest);
                segment.end = end;
            }
            found.push((at, segment));
        }
        found
    }

    /// What lies before those who have set a byte so that the host finds it: the driver's own writes of a word, and kernels that
    /// talk to the host.
    pub fn told_at(&self, address: u64) -> Vec<Clock> {
        let before = self.segments.range(..=address).next_back();
        let Some((_, segment)) = before.filter(|(_, segment)| address < segment.end) else {
            return Vec::new();
        };
        let tells = |entry: &&Entry| {
            entry.class == Class::StrongWrite && entry.by.source.as_ref().is_none_or(Source::talks_to_host)
        };
        let tellers = segment.entries.iter().filter(tells);
        tellers.map(|entry| Clock::clone(&entry.by.operation.clock)).collect()
    }

    /// Adds what was touched; answers with what it races. Ranges of one class do not overlap, and writes come first.
    pub fn add(&mut self, by: &Arc<Footprint>, ranges: &[Range]) -> Vec<Conflict> {
        let mut look = Look {
            by: Arc::clone(by),
            known: HashMap::new(),
            found: Vec::new(),
        };
        for range in ranges {
            let own = Entry {
                by: Arc::clone(by),
                class: range.class,
            };
            let mut new: Vec<(u64, Segment)> = Vec::new();
            let mut push = |start: u64, end: u64, entries: Vec<Entry>| match new.last_mut() {
                Some((_, last)) if last.end == start && last.entries == entries => last.end = end,
                _ => new.push((start, Segment { end, entries })),
            };
            let mut at = range.start;
            for (start, Segment { end, mut entries }) in self.cut(range.start, range.end) {
                if at < start {
                    push(at, start, vec![own.clone()]);
                }
                look.touch(&own, &mut entries, start, end);
                push(start, end, entries);
                at = end;
            }
            if at < range.end {
                push(at, range.end, vec![own.clone()]);
            }
            self.segments.extend(new);
        }
        look.found
    }
}

/// An operation beside those that were there before.
struct Look {
    by: Arc<Footprint>,
    /// By where it is, whether another one lies before, and whether the two are in order.
    known: HashMap<usize, (bool, bool)>,
    found: Vec<Conflict>,
}

impl Look {
    fn order(&mut self, other: &Arc<Footprint>) -> (bool, bool) {
        let own = &self.by.operation;
        let compare = || {
            (
                other.operation.is_before(own),
                other.operation.is_ordered(own) || other.synchronises(&self.by),
            )
        };
        *self.known.entry(Arc::as_ptr(other) as usize).or_insert_with(compare)
    }

    fn touch(&mut self, own: &Entry, entries: &mut Vec<Entry>, start: u64, end: u64) {
        // What is written is not worth a word for being read, too.
        let is_written = |entry: &Entry| Arc::ptr_eq(&entry.by, &own.by) && entry.class == Class::Write;
        if !own.class.writes() && entries.iter().any(is_written) {
            return;
        }
        for entry in &*entries {
            let is_other = !Arc::ptr_eq(&entry.by, &own.by) && !entry.by.operation.is_one_life_with(&own.by.operation);
            if is_other && own.class.conflicts(entry.class) && !self.order(&entry.by).1 {
                self.note(entry, own, start, end);
            }
        }
        entries.retain(|entry| {
            Arc::ptr_eq(&entry.by, &own.by) || !own.class.stands_for(entry.class) || !self.order(&entry.by).0
        });
        if !entries.contains(own) {
            entries.push(own.clone());
        }
    }

    /// Two race for a range: a conflict for each two instructions.
    fn note(&mut self, entry: &Entry, own: &Entry, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let ((theirs, until), (mine, to)) = (entry.example(at), own.example(at));
            let stop = end.min(until).min(to);
            let side = |entry: &Entry, example| Side {
                by: Arc::clone(&entry.by),
                class: entry.class,
                example,
            };
            self.note_one(side(entry, theirs), side(own, mine), (at, stop));
            at = stop;
        }
    }

    fn note_one(&mut self, earlier: Side, later: Side, (start, end): (u64, u64)) {
        let is_same = |conflict: &&mut Conflict| {
            Arc::ptr_eq(&conflict.earlier.by, &earlier.by)
                && (conflict.earlier.class, conflict.earlier.site()) == (earlier.class, earlier.site())
                && (conflict.later.class, conflict.later.site()) == (later.class, later.site())
        };
        let bytes = end - start;
        if let Some(known) = self.found.iter_mut().rev().find(is_same) {
            known.bytes += bytes;
            return;
        }
        self.found.push(Conflict {
            earlier,
            later,
            address: start,
            bytes,
        });
    }
}

impl Side {
    /// The instruction.
    fn site(&self) -> Option<(usize, u32)> {
        self.by.source.as_ref()?.site(self.example?)
    }
}

impl Footprint {
    /// Two kernels that talk to each other while they run, or a kernel and the host: what they tell by that is not followed.
    fn synchronises(&self, other: &Footprint) -> bool {
        match (&self.source, &other.source) {
            (Some(one), Some(other)) => one.talks_to(other),
            (Some(kernel), None) => kernel.talks_to_host() && other.operation.caller.is_program(),
            (None, Some(kernel)) => kernel.talks_to_host() && self.operation.caller.is_program(),
            (None, None) => false,
        }
    }
}
