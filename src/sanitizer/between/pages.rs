//! Which bytes of which pages a grid touches, in what way, and which instruction and thread came to them first.
//!
//! A page has a bit for each line, and where part of a line was touched for each byte, by way. An access whose bits are set already
//! says nothing new, and that is all that most cost: nobody waits for others to find that. Bytes that are new at the same time are a
//! span, which is a number: a grid whose threads touch memory here and there has one for each word.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use super::history::{Class, Example};
use crate::memory::{AddressSpace, Kind, PAGE};
use crate::sanitizer::directory::{Directory, Remembered};

const LINES: usize = PAGE as usize / 64;
/// Spans of a way that are more than a few.
const MANY: usize = 16;

/// By class. `None`: nobody but this grid knows that memory.
type Page = Option<[Way; 4]>;

/// What of a page is touched in one way.
#[derive(Default)]
struct Way {
    /// Those of which all is.
    lines: AtomicU64,
    /// By line: what of it is. Of lines of which all is this may say less.
    bytes: OnceLock<Box<[AtomicU64; LINES]>>,
    /// Who holds these may change what all else says, which others read meanwhile.
    spans: Mutex<List>,
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

/// Most pages have few.
type List = SmallVec<[Span; 4]>;

pub struct Pages {
    /// Tells them from others.
    id: u64,
    directory: Directory<Page>,
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
    /// `id` is no other's.
    pub fn new(id: u64) -> Pages {
        Pages {
            id,
            directory: Directory::new(),
        }
    }

    /// Lets somebody note what is touched in a way.
    #[inline(always)]
    pub fn with<T>(&self, class: Class, act: impl FnOnce(&mut Cursor<'_>) -> T) -> T {
        thread_local! {
            /// Where a thread found the last pages, and of whom.
            static LAST: RefCell<(u64, Remembered)> = const { RefCell::new((0, Remembered::NOTHING)) };
        }
        LAST.with_borrow_mut(|(id, remembered)| {
            if *id != self.id {
                (*id, *remembered) = (self.id, Remembered::NOTHING);
            }
            act(&mut Cursor {
                pages: self,
                class,
                remembered,
                held: None,
            })
        })
    }

    /// All that was noted.
    pub fn trace(&self) -> Trace {
        let (mut pages, mut common) = (Vec::new(), Vec::new());
        for (number, page) in self.directory.all() {
            if let Some(ways) = page {
                pages.push((number, ways.each_ref().map(|way| way.end(&mut common))));
            }
        }
        Trace { pages, common }
    }
}

/// Notes what is touched in a way.
pub struct Cursor<'a> {
    pages: &'a Pages,
    class: Class,
    remembered: &'a mut Remembered,
    /// Of a page where something was new.
    held: Option<(u64, MutexGuard<'a, List>)>,
}

impl Cursor<'_> {
    /// Notes bytes; `example` is asked for who touches one of them, where there is something new.
    #[inline(always)]
    pub fn note(&mut self, start: u64, end: u64, example: &mut impl FnMut(u64) -> Example) {
        let mut at = start;
        while at < end {
            let number = at / PAGE;
            let stop = end.min((number + 1) * PAGE);
            let directory = &self.pages.directory;
            let page = directory.page(self.remembered, number, || is_shared(at).then(Default::default));
            if let Some(ways) = page {
                let (way, base) = (&ways[self.class as usize], number * PAGE);
                let (start, end) = ((at - base) as usize, (stop - base) as usize);
                if way.is_new(start, end) {
                    if self.held.as_ref().is_none_or(|(held, _)| *held != number) {
                        // One page at a time: two cursors can never wait for each other.
                        self.held = None;
                        self.held = Some((number, way.spans.lock()));
                    }
                    let Some((_, spans)) = &mut self.held else {
                        unreachable!("it was put there")
                    };
                    way.add(spans, (start, end), &mut |byte| example(base + byte as u64));
                }
            }
            at = stop;
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
    /// What was noted, in order.
    fn end(&self, common: &mut Vec<Span>) -> Spans {
        let mut spans = self.spans.lock();
        // Where a span begins is its highest bits.
        spans.sort_unstable_by_key(|span| span.0);
        if spans.len() > MANY {
            return Spans::Many(std::mem::take(&mut *spans).into_boxed_slice());
        }
        let start = common.len();
        common.extend(spans.drain(..));
        Spans::Few(start, common.len())
    }

    /// Whether a range has bytes that were not touched before.
    #[inline(always)]
    fn is_new(&self, start: usize, end: usize) -> bool {
        let lines = self.lines.load(Relaxed);
        if (start | end).is_multiple_of(64) {
            return !lines & Way::whole(start, end) != 0;
        }
        let bytes = self.bytes.get();
        Way::lines(start, end).any(|(line, bits)| {
            lines >> line & 1 == 0 && bytes.is_none_or(|bytes| bits & !bytes[line].load(Relaxed) != 0)
        })
    }

    /// The lines that a range has, which begins and ends with one.
    #[inline(always)]
    fn whole(start: usize, end: usize) -> u64 {
        u64::MAX >> (64 - (end - start) / 64) << (start / 64)
    }

    /// Lines in which a range has bytes, and those bytes' bits.
    #[inline(always)]
    fn lines(start: usize, end: usize) -> impl Iterator<Item = (usize, u64)> {
        (start / 64..end.div_ceil(64)).map(move |line| {
            let (from, to) = (start.max(line * 64) - line * 64, end.min(line * 64 + 64) - line * 64);
            (line, (u64::MAX >> (64 - (to - from))) << from)
        })
    }

    /// Adds a range, of which something is new. The spans are its own.
    #[inline(never)]
    fn add(&self, spans: &mut List, (start, end): (usize, usize), example: &mut dyn FnMut(usize) -> Example) {
        if (start | end).is_multiple_of(64) {
            let (lines, before) = (Way::whole(start, end), self.lines.load(Relaxed));
            self.lines.store(before | lines, Relaxed);
            if before & lines == 0 && self.bytes.get().is_none() {
                spans.push(Span::new(start, end, example(start)));
                return;
            }
            let all = ones(lines & !before).map(|line| (line, !self.bytes_of(line)));
            Way::push(spans, all, example);
            return;
        }
        let bytes = self
            .bytes
            .get_or_init(|| Box::new([const { AtomicU64::new(0) }; LINES]));
        let all = Way::lines(start, end).map(|(line, bits)| {
            if self.lines.load(Relaxed) >> line & 1 == 1 {
                return (line, 0);
            }
            let before = bytes[line].load(Relaxed);
            bytes[line].store(before | bits, Relaxed);
            if before | bits == u64::MAX {
                self.lines.store(self.lines.load(Relaxed) | 1 << line, Relaxed);
            }
            (line, bits & !before)
        });
        Way::push(spans, all, example);
    }

    fn bytes_of(&self, line: usize) -> u64 {
        self.bytes.get().map_or(0, |bytes| bytes[line].load(Relaxed))
    }

    /// Spans of bytes that are new, as far as they follow each other.
    fn push(spans: &mut List, new: impl Iterator<Item = (usize, u64)>, example: &mut dyn FnMut(usize) -> Example) {
        let mut open: Option<(usize, usize)> = None;
        let mut close = |open: Option<(usize, usize)>| {
            if let Some((start, end)) = open {
                spans.push(Span::new(start, end, example(start)));
            }
        };
        for (line, mut bits) in new {
            while bits != 0 {
                let first = bits.trailing_zeros() as usize;
                let count = (!(bits >> first)).trailing_zeros() as usize;
                let (from, to) = (line * 64 + first, line * 64 + first + count);
                open = match open {
                    Some((start, end)) if end == from => Some((start, to)),
                    other => {
                        close(other);
                        Some((from, to))
                    }
                };
                bits &= !((u64::MAX >> (64 - count)) << first);
            }
        }
        close(open);
    }
}

/// The places of bits that are set.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (first < 64).then_some(first)
    })
}

impl Trace {
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
        let way = Way::default();
        let note = |start, end, thread| {
            assert!(way.is_new(start, end));
            way.add(&mut way.spans.lock(), (start, end), &mut |_| Example {
                place: thread + 7,
                thread,
                bytes: if thread == 1 { 0 } else { 8 },
            });
            assert!(!way.is_new(start, end));
        };
        note(64, 192, 0);
        note(60, 68, 1);
        note(4092, 4096, 1023);
        let mut ways: [Way; 4] = Default::default();
        ways[Class::Read as usize] = way;
        let pages = Pages::new(0);
        let mut remembered = Remembered::NOTHING;
        pages.directory.page(&mut remembered, 3, || Some(ways));
        let trace = pages.trace();
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
