//! Pages of managed and pinned memory that the program's own threads may not touch unseen, for a while: somebody asks to be told of the
//! first access to each. It is how what the host does by itself is seen, between an operation and the program's wait for it.
//!
//! The system keeps such pages from everybody ([`hide`]), and the handler of SIGSEGV ([`super::guard`]) opens a page to whoever
//! comes: silently if it is the driver, in a call of the program's or as a kernel, or else after it has told the listener. System calls of
//! the program's do not get so far: of a page that is hidden they say EFAULT. So who hides pages hides no others than a program has no
//! business with.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::PAGE;

/// An access by the program's own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAccess {
    /// The first byte of it that lies in a hidden page.
    pub address: u64,
    pub writes: bool,
    /// The instruction.
    pub code: usize,
}

/// Pages from one to another, by their addresses; of each range, whether it may be read.
static HIDDEN: Mutex<BTreeMap<u64, (u64, bool)>> = Mutex::new(BTreeMap::new());
static ANY: AtomicBool = AtomicBool::new(false);
static LISTENER: OnceLock<fn(HostAccess)> = OnceLock::new();
/// How often something was hidden.
static HIDES: AtomicU64 = AtomicU64::new(0);
/// The process that hides pages: what it forks has them, and nobody who asked.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Pages that are opened at a time to the driver: it comes to those behind a page next.
const AT_A_TIME: u64 = 64;

/// Tells of accesses from now on, on the thread that makes them, in its handler of SIGSEGV.
pub(super) fn listen(listener: fn(HostAccess)) {
    LISTENER.get_or_init(|| listener);
    PROCESS.store(std::process::id(), Ordering::Relaxed);
}

pub(super) fn has_listener() -> bool {
    LISTENER.get().is_some()
}

/// Hides pages, which must be memory of ours that can be read and written; `readable`: only writes are told of.
pub fn hide(start: u64, end: u64, readable: bool) {
    let mut hidden = HIDDEN.lock();
    let readable = readable && overlapping(&hidden, start, end).all(|(_, _, readable)| readable);
    cut(&mut hidden, start, end);
    HIDES.fetch_add(1, Ordering::Relaxed);
    protect(start, end, if readable { libc::PROT_READ } else { libc::PROT_NONE });
    // Also where the system would not, or only for a part of it: whoever is kept from a page must find it here.
    hidden.insert(start, (end, readable));
    ANY.store(true, Ordering::Release);
}

/// Opens whatever is hidden of a range.
pub fn show(start: u64, end: u64) {
    if ANY.load(Ordering::Acquire) {
        let mut hidden = HIDDEN.lock();
        show_some(&mut hidden, start & !(PAGE - 1), end.next_multiple_of(PAGE));
    }
}

type Hidden = BTreeMap<u64, (u64, bool)>;

fn show_some(hidden: &mut Hidden, start: u64, end: u64) {
    let show = |from, to| protect(from, to, libc::PROT_READ | libc::PROT_WRITE);
    let around: Vec<_> = overlapping(hidden, start, end).collect();
    let shown = cut(hidden, start, end).into_iter().all(|(from, to)| show(from, to));
    if !shown {
        // A part of a range can be one mapping too many for the system; all of it is not.
        for (from, to, _) in around {
            cut(hidden, from, to);
            show(from, to);
        }
    }
}

fn overlapping(hidden: &Hidden, start: u64, end: u64) -> impl Iterator<Item = (u64, u64, bool)> {
    let before = hidden
        .range(..start)
        .next_back()
        .filter(move |(_, (to, _))| *to > start);
    let all = before.into_iter().chain(hidden.range(start..end));
    all.map(|(&from, &(to, readable))| (from, to, readable))
}

/// Takes a range out; gives what there was of it.
fn cut(hidden: &mut Hidden, start: u64, end: u64) -> Vec<(u64, u64)> {
    let touched: Vec<_> = overlapping(hidden, start, end).collect();
    let mut taken = Vec::with_capacity(touched.len());
    for (from, to, readable) in touched {
        hidden.remove(&from);
        if from < start {
            hidden.insert(from, (start, readable));
        }
        if to > end {
            hidden.insert(end, (to, readable));
        }
        taken.push((from.max(start), to.min(end)));
    }
    taken
}

fn protect(start: u64, end: u64, rights: c_int) -> bool {
    // SAFETY: pages of the arena that somebody has allocated, and that are given back before they are another's: only who may
    // touch them changes, and whoever comes to them finds them open.
    unsafe { libc::mprotect(start as *mut _, (end - start) as usize, rights) == 0 }
}

/// Whether the access that a thread was kept from may be tried again, now that whoever wants to know has been told. For a handler of
/// SIGSEGV. `by_driver`: it is the driver's own.
pub(super) fn caught(access: HostAccess, by_driver: bool) -> bool {
    if !ANY.load(Ordering::Acquire) {
        return false;
    }
    let page = access.address & !(PAGE - 1);
    {
        // No thread comes here while it holds the lock: it touches no memory of programs meanwhile.
        let mut hidden = HIDDEN.lock();
        if overlapping(&hidden, page, page + PAGE).next().is_none() {
            // Another thread may have opened it just now.
            return comes_again(page);
        }
        let count = if by_driver { AT_A_TIME } else { 1 };
        show_some(&mut hidden, page, page + count * PAGE);
    }
    if !by_driver
        && std::process::id() == PROCESS.load(Ordering::Relaxed)
        && let Some(listener) = LISTENER.get()
    {
        listener(access);
    }
    true
}

/// Whether an access to a page that is not hidden, or not any more, is worth another try: who is kept from it by somebody else comes
/// again for ever.
fn comes_again(page: u64) -> bool {
    /// Tries of a page in a row, while nothing is hidden.
    const MOST: u32 = 64;
    thread_local! {
        static LAST: Cell<(u64, u64, u32)> = const { Cell::new((0, 0, 0)) };
    }
    let hides = HIDES.load(Ordering::Relaxed);
    LAST.with(|last| {
        let tries = match last.get() {
            (same, before, tries) if (same, before) == (page, hides) => tries + 1,
            _ => 1,
        };
        last.set((page, hides, tries));
        tries <= MOST
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_stays_closed_is_given_up() {
        let tries = (0..1000).take_while(|_| comes_again(0x7000)).count();
        assert_eq!(tries, 64);
        assert!(comes_again(0x8000));
    }

    #[test]
    fn ranges_are_cut_and_told_apart() {
        let mut hidden = Hidden::new();
        hidden.insert(0x1000, (0x5000, true));
        hidden.insert(0x8000, (0x9000, false));
        assert_eq!(cut(&mut hidden, 0x2000, 0x3000), [(0x2000, 0x3000)]);
        let all: Vec<_> = hidden
            .iter()
            .map(|(&start, &(end, readable))| (start, end, readable))
            .collect();
        assert_eq!(
            all,
            [(0x1000, 0x2000, true), (0x3000, 0x5000, true), (0x8000, 0x9000, false)]
        );
        let found: Vec<_> = overlapping(&hidden, 0x1800, 0x8800).collect();
        assert_eq!(found, all);
        assert_eq!(cut(&mut hidden, 0, u64::MAX).len(), 3);
        assert!(hidden.is_empty());
    }
}
