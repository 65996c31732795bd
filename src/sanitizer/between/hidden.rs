//! Which pages of managed and pinned memory are kept from the host because of an operation, until the host knows that the operation is
//! over ([`host_access`]): who comes to one before is compared with the history like any other operation, and the page is open from
//! then on.
//!
//! A page is hidden where an operation has touched it from one end to the other, or where it is all that an allocation has. Others are
//! shared with who has nothing to do with it, and the host may hand those to system calls, which must not fail.

use crate::memory::{AddressSpace, Allocation, PAGE, host_access};

use super::clock::{Clock, HOST};
use super::history::{Class, Range};
use super::operation::Operation;

/// What is hidden because of an operation.
pub(super) struct Held {
    line: usize,
    number: u64,
    pages: Pages,
}

/// From one to another, by addresses; those that are written, and those that are read.
#[derive(PartialEq, Eq)]
pub(super) struct Pages {
    written: Vec<(u64, u64)>,
    read: Vec<(u64, u64)>,
}

impl Pages {
    /// Those of the host's memory that ranges, in order for each class, fill. It looks allocations up: not for who holds
    /// the lock of the lines.
    pub fn of(operation: &Operation, ranges: &[Range]) -> Option<Pages> {
        if operation.line == HOST {
            return None;
        }
        let mut pages = Pages {
            written: Vec::new(),
            read: Vec::new(),
        };
        for class in Class::ALL {
            let own = ranges.iter().filter(|range| range.class == class);
            let into = if class.writes() {
                &mut pages.written
            } else {
                &mut pages.read
            };
            filled(own.map(|range| (range.start, range.end)), into);
        }
        (!pages.written.is_empty() || !pages.read.is_empty()).then_some(pages)
    }

    fn hide(&self) {
        for (readable, ranges) in [(false, &self.written), (true, &self.read)] {
            ranges
                .iter()
                .for_each(|&(start, end)| host_access::hide(start, end, readable));
        }
    }

    fn show(&self) {
        self.all().for_each(|(start, end)| host_access::show(start, end));
    }

    fn all(&self) -> impl Iterator<Item = (u64, u64)> {
        self.written.iter().chain(&self.read).copied()
    }

    fn meet(&self, other: &Pages) -> bool {
        self.all()
            .any(|(start, end)| other.all().any(|(from, to)| start < to && from < end))
    }
}

/// What an operation leaves out between two things that it touches counts as touched: rows and structures have such.
const GAP: u64 = 256;

/// Adds the pages of the host's that ranges, in order, fill.
fn filled(ranges: impl Iterator<Item = (u64, u64)>, pages: &mut Vec<(u64, u64)>) {
    let mut open: Option<(u64, u64)> = None;
    // Most ranges lie in the allocation that the last one does.
    let mut around = None;
    for (start, end) in ranges {
        match &mut open {
            Some((_, last)) if start <= last.saturating_add(GAP) => *last = end.max(*last),
            _ => {
                if let Some(range) = open.replace((start, end)) {
                    fill(range, &mut around, pages);
                }
            }
        }
    }
    if let Some(range) = open {
        fill(range, &mut around, pages);
    }
}

fn fill((start, end): (u64, u64), around: &mut Option<Allocation>, pages: &mut Vec<(u64, u64)>) {
    let mut at = start;
    while at < end {
        if around.is_none_or(|known| !(known.start..known.end()).contains(&at)) {
            *around = AddressSpace::get().find(at);
        }
        let Some(allocation) = *around else { return };
        let (first, last) = (allocation.start, allocation.end());
        if allocation.kind.is_shared_with_host() {
            let is_small = allocation.bytes <= PAGE;
            let from = if is_small || at - first <= GAP { first } else { at };
            let to = if is_small || last.saturating_sub(end) <= GAP {
                last.next_multiple_of(PAGE)
            } else {
                end
            };
            let (from, to) = (from.next_multiple_of(PAGE), to & !(PAGE - 1));
            match pages.last_mut() {
                _ if from >= to => {}
                Some(known) if known.1 == from => known.1 = to,
                _ => pages.push((from, to)),
            }
        }
        at = last.max(at + 1);
    }
}

/// What is hidden because of operations.
#[derive(Default)]
pub(super) struct Hidden(Vec<Held>);

/// Operations whose pages are looked through for the same ones: a loop that does the same again and again.
const ALIKE: usize = 16;

impl Hidden {
    pub const fn new() -> Hidden {
        Hidden(Vec::new())
    }

    /// Hides what an operation has touched.
    pub fn add(&mut self, operation: &Operation, pages: Pages) {
        let (line, number) = (operation.line, operation.number);
        pages.hide();
        let alike = |held: &&mut Held| held.line == line && held.pages == pages;
        match self.0.iter_mut().rev().take(ALIKE).find(alike) {
            Some(same) => same.number = same.number.max(number),
            None => self.0.push(Held { line, number, pages }),
        }
    }

    /// Shows what nobody holds any more, when the host knows more.
    pub fn release(&mut self, host: &Clock) {
        if self.0.is_empty() {
            return;
        }
        let (over, held): (Vec<Held>, Vec<Held>) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|held| host.has(held.line, held.number));
        over.iter().for_each(|over| over.pages.show());
        for held in &held {
            if over.iter().any(|over| over.pages.meet(&held.pages)) {
                held.pages.hide();
            }
        }
        self.0 = held;
    }

    /// Memory begins or ends.
    pub fn forget(&mut self, start: u64, end: u64) {
        host_access::show(start, end);
        let outside = |&(from, to): &(u64, u64)| to <= start || end <= from;
        for held in &mut self.0 {
            held.pages.written.retain(outside);
            held.pages.read.retain(outside);
        }
        self.0
            .retain(|held| !held.pages.written.is_empty() || !held.pages.read.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Kind, Request};

    #[test]
    fn pages_are_filled_from_one_end_to_the_other() {
        let space = AddressSpace::get();
        let allocate = |kind, bytes| space.allocate(&Request::new(kind, bytes)).expect("there is room").start;
        let (start, small, device) = (
            allocate(Kind::Managed, 3 * PAGE),
            allocate(Kind::Host, 8),
            allocate(Kind::Device, PAGE),
        );
        let pages = |from: u64, ranges: &[(u64, u64)]| {
            let mut pages = Vec::new();
            filled(
                ranges.iter().map(|&(start, end)| (from + start, from + end)),
                &mut pages,
            );
            pages
                .iter()
                .map(|&(start, end)| (start - from, end - from))
                .collect::<Vec<_>>()
        };
        let all = |ranges: &[(u64, u64)]| pages(start, ranges);
        // A part of a page, or two with too much between them.
        assert_eq!(all(&[(0, 100)]), []);
        assert_eq!(all(&[(0, 2000), (2300, PAGE)]), []);
        assert_eq!(all(&[(0, PAGE - 4), (2 * PAGE + 4, 3 * PAGE)]), []);
        // Little between them, or at the ends of the allocation.
        assert_eq!(all(&[(0, 2000), (2200, PAGE)]), [(0, PAGE)]);
        assert_eq!(all(&[(16, PAGE)]), [(0, PAGE)]);
        assert_eq!(all(&[(PAGE - 4, 3 * PAGE - 8)]), [(PAGE, 3 * PAGE)]);
        assert_eq!(all(&[(PAGE - 4, 2 * PAGE + 4)]), [(PAGE, 2 * PAGE)]);
        assert_eq!(pages(small, &[(4, 8)]), [(0, PAGE)]);
        assert_eq!(pages(device, &[(0, PAGE)]), []);
        for start in [start, small, device] {
            space.free(start).expect("it is there");
        }
    }
}
