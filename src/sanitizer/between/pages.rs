//! Which bytes of which pages a grid touches, in what way, and which instruction and thread came to them first.
//!
//! A page has a bit for each line, and where part of a line was touched for each byte, by way. An access whose bits are set already
//! says nothing new, and that is all that most cost: nobody waits for others to find that. Bytes that are new at the same time are a
//! span, which is a number. A grid whose threads touch memory here and there has one for each word: pages with many of them have half
//! such a number for each word instead.

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
/// So many that numbers for all words of the page take no more room.
const DENSE: usize = 256;

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

    /// Its words, each by its number, if a [`Word`] holds all that is known of each.
    fn words(self) -> Option<impl Iterator<Item = (usize, Word)>> {
        let (start, end) = (self.start(), self.end());
        if !(start | end).is_multiple_of(4) {
            return None;
        }
        let last = self.example(end - 4);
        if matches!(last.bytes, 1 | 2) {
            return None;
        }
        Word::of(last)?;
        Some((start / 4..end / 4).filter_map(move |word| Some((word as usize, Word::of(self.example(word * 4))?))))
    }
}

/// Who touched a word first: the place and one (19 bits), how many bytes a thread has (3, as in a [`Span`]), and the thread (10).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Word(u32);

impl Word {
    /// `None`: so many places have no room.
    fn of(example: Example) -> Option<Word> {
        let width = if example.bytes == 0 {
            7
        } else {
            example.bytes.trailing_zeros()
        };
        let place = example.place + 1;
        (place < 1 << 19).then_some(Word(place << 13 | width << 10 | example.thread & 1023))
    }
    fn is_touched(self) -> bool {
        self.0 != 0
    }
    fn example(self) -> Example {
        let width = self.0 >> 10 & 7;
        Example {
            place: (self.0 >> 13) - 1,
            thread: self.0 & 1023,
            bytes: if width == 7 { 0 } else { 1 << width },
        }
    }
}

type Words = [Word; PAGE as usize / 4];

/// Spans of a way, in any order.
#[derive(Default)]
struct List {
    /// Most pages have few. Of one with `words`, those that do not fit there.
    spans: SmallVec<[Span; 4]>,
    words: Option<Box<Words>>,
}

impl List {
    fn push(&mut self, span: Span) {
        if let Some(words) = &mut self.words
            && let Some(own) = span.words()
        {
            own.for_each(|(number, word)| words[number] = word);
            return;
        }
        self.spans.push(span);
        if self.spans.len() == DENSE && self.words.is_none() {
            let mut words = Box::new([Word::default(); _]);
            self.spans.retain(|span| match span.words() {
                Some(own) => {
                    own.for_each(|(number, word): (usize, Word)| words[number] = word);
                    false
                }
                None => true,
            });
            self.spans.shrink_to_fit();
            self.words = Some(words);
        }
    }
}

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
    /// By word, and spans of what is no word.
    Dense(Box<Words>, Box<[Span]>),
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
        let List { mut spans, words } = std::mem::take(&mut *self.spans.lock());
        // Where a span begins is its highest bits.
        spans.sort_unstable_by_key(|span| span.0);
        if let Some(words) = words {
            return Spans::Dense(words, spans.into_boxed_slice());
        }
        if spans.len() > MANY {
            return Spans::Many(spans.into_boxed_slice());
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
            Spans::Many(spans) | Spans::Dense(_, spans) => spans,
        }
    }

    /// Bytes of a page that were touched in a way, by where they begin and end, in order.
    fn touched(&self, page: &[Spans; 4], class: Class, mut act: impl FnMut(u64, u64)) {
        let spans = self.spans(page, class).iter().map(|span| (span.start(), span.end()));
        let Spans::Dense(words, _) = &page[class as usize] else {
            return spans.for_each(|(start, end)| act(start, end));
        };
        let numbers = (0_u64..).zip(words.iter()).filter(|(_, word)| word.is_touched());
        let mut all: Vec<_> = numbers
            .map(|(number, _)| (number * 4, number * 4 + 4))
            .chain(spans)
            .collect();
        all.sort_unstable();
        all.into_iter().for_each(|(start, end)| act(start, end));
    }

    /// What was touched in a way, as far as it follows each other, in order.
    pub fn ranges(&self, class: Class) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (page, ways) in &self.pages {
            self.touched(ways, class, |start, end| {
                let (start, end) = (page * PAGE + start, page * PAGE + end);
                match ranges.last_mut() {
                    Some(last) if last.1 == start => last.1 = end,
                    _ => ranges.push((start, end)),
                }
            });
        }
        ranges
    }

    /// Who came first in that way to a byte, and up to where he did to those that follow it.
    pub fn first(&self, class: Class, address: u64) -> Option<(Example, u64)> {
        let number = address / PAGE;
        let at = self.pages.binary_search_by_key(&number, |(page, _)| *page).ok()?;
        let (byte, page) = (address % PAGE, &self.pages[at].1);
        if let Spans::Dense(words, _) = &page[class as usize]
            && words[byte as usize / 4].is_touched()
        {
            let own = words[byte as usize / 4].example();
            let whole = u64::from(own.bytes.max(4));
            // The other words of his element.
            let more = words[byte as usize / 4..].iter().take(whole as usize / 4);
            let count = more
                .take_while(|word| word.is_touched() && word.example() == own)
                .count();
            return Some((own, number * PAGE + (byte / 4 + count as u64) * 4));
        }
        let spans = self.spans(page, class);
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

    /// Threads here and there, elements of all widths, more than a page has spans for: each byte has its own first.
    #[test]
    fn a_page_of_many_spans_has_words() {
        let mut ways: [Way; 4] = Default::default();
        let way = &mut ways[Class::Write as usize];
        let mut first: Vec<Option<(u32, u32, u32)>> = vec![None; PAGE as usize];
        let mut random = 12345_u32;
        for step in 0..3000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let bytes = [4, 4, 4, 4, 8, 8, 16, 2, 1][(random >> 8) as usize % 9];
            let (at, thread) = ((random >> 12) as usize % (PAGE as usize / bytes) * bytes, random >> 22);
            // Beyond so many places there is no room for words.
            let place = if step % 50 == 0 { 1 << 20 } else { step };
            if way.is_new(at, at + bytes) {
                way.add(&mut way.spans.lock(), (at, at + bytes), &mut |_| Example {
                    place,
                    thread,
                    bytes: bytes as u32,
                });
            }
            for byte in first[at..at + bytes].iter_mut().filter(|byte| byte.is_none()) {
                *byte = Some((place, thread, bytes as u32));
            }
        }
        assert!(way.spans.lock().words.is_some() && !way.spans.lock().spans.is_empty());
        let pages = Pages::new(0);
        let mut remembered = Remembered::NOTHING;
        pages.directory.page(&mut remembered, 3, || Some(ways));
        let trace = pages.trace();
        for (byte, expected) in (3 * PAGE..).zip(&first) {
            let found = trace.first(Class::Write, byte);
            assert!(found.is_none_or(|(_, end)| end > byte));
            let found = found.map(|(example, _)| (example.place, example.thread, example.bytes));
            assert_eq!(found, *expected, "{byte}");
        }
        let mut touched = vec![false; PAGE as usize];
        for (start, end) in trace.ranges(Class::Write) {
            touched[(start - 3 * PAGE) as usize..(end - 3 * PAGE) as usize].fill(true);
        }
        assert!(
            touched
                .iter()
                .zip(&first)
                .all(|(touched, first)| *touched == first.is_some())
        );
    }
}
