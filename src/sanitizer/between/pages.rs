//! Which bytes of which pages a grid touches, in what way, and which instruction and thread came to them first.
//!
//! A page has a bit for each byte and way. An access whose bits are set already says nothing new, and that is all that most cost.
//! Bytes that are new at the same time are a span, which is a number: a grid whose threads touch memory here and there has one for
//! each word.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use super::history::{Class, Example};
use crate::memory::{AddressSpace, Kind, PAGE};
use crate::sanitizer::spread::Spread;

const SHARDS: usize = 64;
const WORDS: usize = PAGE as usize / 64;
/// Ways that are kept for grids to come.
const SPARE: usize = 1 << 15;
/// Spans of a way that are more than a few.
const MANY: usize = 16;

#[expect(
    clippy::vec_box,
    reason = "they are boxes where they come from, and where they go to"
)]
static FREE: Mutex<Vec<Box<Way>>> = Mutex::new(Vec::new());

/// `None`: nobody but this grid knows that memory.
type Page = Option<Ways>;

/// By class.
type Ways = [Option<Box<Way>>; 4];

type Shard = HashMap<u64, Page, BuildHasherDefault<Spread>>;

/// What of a page is touched in one way.
struct Way {
    bits: [u64; WORDS],
    spans: Vec<Span>,
}

/// Bytes of a page that one instruction of a warp has touched first: where they begin and one less than there are (12 bits each),
/// the thread (10), how many bytes each thread has (3: the power of two, or 7, if that is not known), and the place (27).
#[derive(Clone, Copy)]
struct Span(u64);

impl Span {
    fn new(start: usize, end: usize, example: Example) -> Span {
        let (start, more) = (start as u64, (end - start - 1) as u64);
        let width = match example.bytes {
            bytes @ 1..=64 if bytes.is_power_of_two() => bytes.trailing_zeros(),
            _ => 7,
        };
        // A grid that comes to memory in more places than that has no room for them.
        let place = u64::from(example.place.min((1 << 27) - 1));
        Span(start << 52 | more << 40 | u64::from(example.thread & 1023) << 30 | u64::from(width) << 27 | place)
    }
    fn start(self) -> u64 {
        self.0 >> 52
    }
    fn end(self) -> u64 {
        self.start() + (self.0 >> 40 & 4095) + 1
    }
    /// Who touched a byte of it.
    fn example(self, byte: u64) -> Example {
        let width = self.0 >> 27 & 7;
        let (first, bytes) = ((self.0 >> 30 & 1023) as u32, if width == 7 { 0 } else { 1 << width });
        let before = (byte - self.start()).checked_div(bytes).unwrap_or(0);
        Example {
            place: (self.0 & ((1 << 27) - 1)) as u32,
            thread: first + before as u32,
            bytes: bytes as u32,
        }
    }
}

pub struct Pages([Mutex<Shard>; SHARDS]);

/// A page at a time, which nobody else touches meanwhile.
pub struct Cursor<'a> {
    pages: &'a Pages,
    held: Option<(u64, MappedMutexGuard<'a, Page>)>,
}

/// What a grid has touched.
pub struct Trace {
    /// In order; of each its spans by class, in order.
    pages: Vec<(u64, [Spans; 4])>,
    /// Those of pages that have few.
    common: Vec<Span>,
}

enum Spans {
    /// From one to another of the common ones.
    Few(usize, usize),
    Many(Box<[Span]>),
}

impl Pages {
    pub fn new() -> Pages {
        Pages(std::array::from_fn(|_| Mutex::default()))
    }

    pub fn cursor(&self) -> Cursor<'_> {
        Cursor {
            pages: self,
            held: None,
        }
    }

    /// All that was noted.
    pub fn take(&self) -> Trace {
        let mut pages = Vec::new();
        for shard in &self.0 {
            let all = std::mem::take(&mut *shard.lock());
            pages.extend(all.into_iter().filter_map(|(page, ways)| Some((page, ways?))));
        }
        pages.sort_unstable_by_key(|(page, _)| *page);
        Trace::of(pages)
    }
}

impl Cursor<'_> {
    /// Notes bytes; `example` is asked for who touches one of them, where there is something new.
    #[inline]
    pub fn note(&mut self, start: u64, end: u64, class: Class, example: &mut impl FnMut(u64) -> Example) {
        let mut at = start;
        while at < end {
            let page = at / PAGE;
            let stop = end.min((page + 1) * PAGE);
            if let Some(ways) = self.page(page, at) {
                let way = ways[class as usize].get_or_insert_with(Way::new);
                let base = page * PAGE;
                way.note((at - base) as usize, (stop - base) as usize, &mut |byte| {
                    example(base + byte as u64)
                });
            }
            at = stop;
        }
    }

    #[inline]
    fn page(&mut self, page: u64, address: u64) -> &mut Page {
        if self.held.as_ref().is_none_or(|(held, _)| *held != page) {
            // One shard at a time: two cursors can never wait for each other.
            self.held = None;
            let shard = self.pages.0[page as usize % SHARDS].lock();
            let found = MutexGuard::map(shard, |shard| {
                shard
                    .entry(page)
                    .or_insert_with(|| is_shared(address).then_some([None, None, None, None]))
            });
            self.held = Some((page, found));
        }
        match &mut self.held {
            Some((_, page)) => page,
            None => unreachable!("it was put there"),
        }
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

impl Way {
    fn new() -> Box<Way> {
        FREE.lock().pop().unwrap_or_else(|| {
            Box::new(Way {
                bits: [0; WORDS],
                spans: Vec::new(),
            })
        })
    }

    /// What was noted, in order; it is as good as new then.
    fn end(&mut self, common: &mut Vec<Span>) -> Spans {
        // Where a span begins is its highest bits.
        self.spans.sort_unstable_by_key(|span| span.0);
        self.bits.fill(0);
        if self.spans.len() > MANY {
            return Spans::Many(std::mem::take(&mut self.spans).into());
        }
        let start = common.len();
        common.append(&mut self.spans);
        Spans::Few(start, common.len())
    }

    fn note(&mut self, start: usize, end: usize, example: &mut impl FnMut(usize) -> Example) {
        // Bytes that are new, as far as they follow each other.
        let mut open: Option<(usize, usize)> = None;
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
                        self.add(other, example);
                        Some((from, to))
                    }
                };
                new &= !((u64::MAX >> (64 - count)) << first);
            }
        }
        self.add(open, example);
    }

    fn add(&mut self, bytes: Option<(usize, usize)>, example: &mut impl FnMut(usize) -> Example) {
        if let Some((start, end)) = bytes {
            self.spans.push(Span::new(start, end, example(start)));
        }
    }
}

impl Trace {
    /// Of pages in order.
    fn of(pages: Vec<(u64, Ways)>) -> Trace {
        let mut trace = Trace {
            pages: Vec::with_capacity(pages.len()),
            common: Vec::new(),
        };
        let mut left = Vec::new();
        for (page, ways) in pages {
            let spans = ways.map(|way| match way {
                Some(mut way) => {
                    let spans = way.end(&mut trace.common);
                    left.push(way);
                    spans
                }
                None => Spans::Few(0, 0),
            });
            trace.pages.push((page, spans));
        }
        let mut free = FREE.lock();
        left.truncate(SPARE.saturating_sub(free.len()));
        free.append(&mut left);
        trace
    }

    fn spans<'a>(&'a self, page: &'a [Spans; 4], class: Class) -> &'a [Span] {
        match &page[class as usize] {
            Spans::Few(start, end) => &self.common[*start..*end],
            Spans::Many(spans) => spans,
        }
    }

    /// What was touched in a way, as far as it follows each other, in order.
    pub fn ranges(&self, class: Class) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (page, spans) in &self.pages {
            for span in self.spans(spans, class) {
                let (start, end) = (page * PAGE + span.start(), page * PAGE + span.end());
                match ranges.last_mut() {
                    Some(last) if last.1 == start => last.1 = end,
                    _ => ranges.push((start, end)),
                }
            }
        }
        ranges
    }

    /// Who came first in that way to a byte, and up to where he did to those that follow it.
    pub fn first(&self, class: Class, address: u64) -> Option<(Example, u64)> {
        let number = address / PAGE;
        let at = self.pages.binary_search_by_key(&number, |(page, _)| *page).ok()?;
        let (byte, spans) = (address % PAGE, self.spans(&self.pages[at].1, class));
        let before = spans.partition_point(|span| span.start() <= byte).checked_sub(1)?;
        let span = spans[before];
        (byte < span.end()).then(|| (span.example(byte), number * PAGE + span.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_name_who_came_first() {
        let mut way = Way::new();
        let mut note = |start, end, thread| {
            way.note(start, end, &mut |_| Example {
                place: thread + 7,
                thread,
                bytes: if thread == 1 { 0 } else { 8 },
            })
        };
        note(64, 192, 0);
        note(60, 68, 1);
        note(4092, 4096, 1023);
        let mut ways = [None, None, None, None];
        ways[Class::Read as usize] = Some(way);
        let trace = Trace::of(vec![(3, ways)]);
        let found: Vec<_> = trace
            .spans(&trace.pages[0].1, Class::Read)
            .iter()
            .map(|span| (span.start(), span.end(), span.example(span.start())))
            .map(|(start, end, example)| (start, end, example.thread, example.place))
            .collect();
        assert_eq!(found, [(60, 64, 1, 8), (64, 192, 0, 7), (4092, 4096, 1023, 1030)]);
        let base = 3 * PAGE;
        assert_eq!(
            trace.ranges(Class::Read),
            [(base + 60, base + 192), (base + 4092, base + 4096)]
        );
        let first = |byte| {
            trace
                .first(Class::Read, base + byte)
                .map(|(example, end)| (example.thread, end - base))
        };
        assert_eq!(first(63), Some((1, 64)));
        assert_eq!(first(64), Some((0, 192)));
        // Eight bytes a thread.
        assert_eq!(first(71), Some((0, 192)));
        assert_eq!(first(64 + 5 * 8 + 3), Some((5, 192)));
        assert_eq!(first(192), None);
        assert_eq!(first(59), None);
        assert_eq!(trace.first(Class::Write, base + 64), None);
    }
}
