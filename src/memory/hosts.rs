//! Host ranges that a program registered (`cuMemHostRegister`): few, long-lived, and asked about by every thread that runs
//! a kernel.
//!
//! Asking takes no lock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use parking_lot::Mutex;

use super::life::{self, Life};
use super::space::count_change;

/// More registrations at a time than this are refused.
const CAPACITY: usize = 1 << 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRange {
    pub start: u64,
    pub bytes: u64,
    /// `READ`, `WRITE` for kernels.
    pub bits: u8,
    /// The context that registered it.
    pub owner: u64,
    pub device: u32,
    /// As the caller of the API gave them.
    pub flags: u32,
    pub id: u64,
}

#[derive(Default)]
struct Entry {
    start: AtomicU64,
    end: AtomicU64,
    /// The bits of [`HostRange`], and [`BROKEN`].
    bits: AtomicU64,
    id: AtomicU64,
}

/// The program has taken memory of the range away: kernels may not touch it any more.
const BROKEN: u64 = 1 << 8;

/// So many broken ranges are remembered while others come and go.
const REMEMBERED: usize = 64;

/// A table sorted by address, read under a sequence count: readers retry when a writer was there meanwhile.
pub(super) struct HostRanges {
    sequence: AtomicU64,
    count: AtomicUsize,
    entries: std::sync::OnceLock<Box<[Entry]>>,
    ranges: Mutex<BTreeMap<u64, HostRange>>,
    /// Numbers of ranges that are broken, the last ones.
    broken: [AtomicU64; REMEMBERED],
    broken_count: AtomicUsize,
}

impl HostRanges {
    pub const fn new() -> HostRanges {
        HostRanges {
            sequence: AtomicU64::new(0),
            count: AtomicUsize::new(0),
            entries: std::sync::OnceLock::new(),
            ranges: Mutex::new(BTreeMap::new()),
            broken: [const { AtomicU64::new(0) }; REMEMBERED],
            broken_count: AtomicUsize::new(0),
        }
    }

    /// `false` when it overlaps a registered one, or there are too many.
    pub fn insert(&self, range: HostRange) -> bool {
        let mut ranges = self.ranges.lock();
        let end = range.start + range.bytes;
        let overlaps = ranges
            .range(..end)
            .next_back()
            .is_some_and(|(_, last)| last.start + last.bytes > range.start);
        if overlaps || ranges.len() == CAPACITY {
            return false;
        }
        ranges.insert(range.start, range);
        self.publish(&ranges);
        true
    }

    pub fn remove(&self, start: u64) -> Option<HostRange> {
        let mut ranges = self.ranges.lock();
        let range = ranges.remove(&start)?;
        self.publish(&ranges);
        count_change();
        Some(range)
    }

    pub fn remove_of(&self, owner: u64) {
        let mut ranges = self.ranges.lock();
        ranges.retain(|_, range| {
            let stays = range.owner != owner;
            if !stays {
                life::tell(|| Life {
                    start: range.start,
                    bytes: range.bytes,
                    kind: None,
                    bits: 0,
                });
            }
            stays
        });
        self.publish(&ranges);
        count_change();
    }

    pub fn find(&self, address: u64) -> Option<HostRange> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let ranges = self.ranges.lock();
        let (_, range) = ranges.range(..=address).next_back()?;
        (address - range.start < range.bytes).then_some(*range)
    }

    fn publish(&self, ranges: &BTreeMap<u64, HostRange>) {
        // Most programs register nothing, and need no table to be told so.
        if ranges.is_empty() && self.entries.get().is_none() {
            return;
        }
        let entries = self
            .entries
            .get_or_init(|| (0..CAPACITY).map(|_| Entry::default()).collect());
        self.sequence.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Release);
        for (entry, range) in entries.iter().zip(ranges.values()) {
            entry.start.store(range.start, Ordering::Relaxed);
            entry.end.store(range.start + range.bytes, Ordering::Relaxed);
            let broken = if self.is_broken(range.id) { BROKEN } else { 0 };
            entry.bits.store(u64::from(range.bits) | broken, Ordering::Relaxed);
            entry.id.store(range.id, Ordering::Relaxed);
        }
        self.count.store(ranges.len(), Ordering::Relaxed);
        self.sequence.fetch_add(1, Ordering::Release);
    }

    fn is_broken(&self, id: u64) -> bool {
        self.broken.iter().any(|broken| broken.load(Ordering::Relaxed) == id)
    }

    /// The memory of an address was gone: no kernel touches its range any more. Called by a signal handler.
    pub fn break_off(&self, address: u64) {
        let marked = self.look_up(address, |entry| {
            entry.bits.fetch_or(BROKEN, Ordering::Relaxed);
            entry.id.load(Ordering::Relaxed)
        });
        count_change();
        if let Some(id) = marked.filter(|id| !self.is_broken(*id)) {
            let index = self.broken_count.fetch_add(1, Ordering::Relaxed) % REMEMBERED;
            self.broken[index].store(id, Ordering::Relaxed);
        }
    }

    /// Whether an address lies in a range of which memory was gone.
    pub fn has_lost(&self, address: u64) -> bool {
        let bits = self.look_up(address, |entry| entry.bits.load(Ordering::Relaxed));
        bits.is_some_and(|bits| bits & BROKEN != 0)
    }

    /// Whether all of `bytes` bytes from `address` lie in one range with all of `bits`. A broken one has none.
    pub fn contains(&self, address: u64, bytes: u64, bits: u8) -> bool {
        self.look_up(address, |entry| {
            let (end, has) = (entry.end.load(Ordering::Relaxed), entry.bits.load(Ordering::Relaxed));
            let allowed = if has & BROKEN != 0 { 0 } else { has as u8 };
            address.checked_add(bytes).is_some_and(|last| last <= end) && allowed & bits == bits
        })
        .unwrap_or(false)
    }

    /// The range that holds an address, if it has all of `bits`: where it begins, and how many bytes it has. What is found holds until
    /// [`AddressSpace::version`](super::AddressSpace::version) changes.
    pub fn around(&self, address: u64, bits: u8) -> (u64, u64) {
        self.look_up(address, |entry| {
            let (start, end) = (entry.start.load(Ordering::Relaxed), entry.end.load(Ordering::Relaxed));
            let has = entry.bits.load(Ordering::Relaxed);
            let allowed = has & BROKEN == 0 && has as u8 & bits == bits;
            if allowed {
                (start, end.saturating_sub(start))
            } else {
                (0, 0)
            }
        })
        .unwrap_or_default()
    }

    /// What `f` finds in the entry that holds an address.
    fn look_up<R>(&self, address: u64, f: impl Fn(&Entry) -> R) -> Option<R> {
        let entries = self.entries.get()?;
        loop {
            let before = self.sequence.load(Ordering::Acquire);
            if before & 1 == 1 {
                std::hint::spin_loop();
                continue;
            }
            let count = self.count.load(Ordering::Relaxed).min(CAPACITY);
            let after = entries[..count].partition_point(|entry| entry.start.load(Ordering::Relaxed) <= address);
            let holding = after.checked_sub(1).map(|index| &entries[index]);
            let answer = holding
                .filter(|entry| address < entry.end.load(Ordering::Relaxed))
                .map(&f);
            fence(Ordering::Acquire);
            if self.sequence.load(Ordering::Relaxed) == before {
                return answer;
            }
        }
    }
}
