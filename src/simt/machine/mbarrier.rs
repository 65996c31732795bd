//! The object behind an `mbarrier` (PTX ISA, Contents of the mbarrier object; Phase Completion): 64 bits of shared
//! memory.
//!
//! The first layout has its fields where NVIDIA's assembler puts them for sm_90, as the code that it makes of `init`
//! and `pending_count` shows: counts run up to 2^20, where their carry would reach the phase. What no such code shows
//! is free: where the transactions are, and all of the second layout.
//!
//! ```text
//! layout::v0   0: 0   1..=20: 2^20 − expected   21..=41: transactions   42: nobody is expected   43..=62: 2^20 − pending
//! layout::v1   0: 1   1..=9: 2^9 − expected   10: conditional phase   11, 12: report of this phase, of the one before
//!              13..=20: value of the report before   21..=42: as above   43..=50: value of this phase's report
//!              54..=62: 2^9 − pending
//! both         63: phase
//! ```
//!
//! A word of zeros is none.
//! All that touch an object run on one thread: blocks of a cluster share a worker.

use crate::isa::joint::mbarrier::Layout;
use crate::simt::cause::Cause;

/// Bytes that have yet to come and were not announced, or the other way round: at most so many (PTX ISA, Table Mbarrier
/// counts).
pub const MOST_BYTES: i64 = (1 << 20) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mbarrier {
    pub layout: Layout,
    /// Parity of the current primary phase.
    pub phase: bool,
    /// Parity of the current conditional phase.
    pub conditional: bool,
    /// Arrivals of each phase.
    pub expected: u32,
    /// Arrivals that the current phase still waits for.
    pub pending: u32,
    /// Bytes that it waits for; below 0 where they came before they were announced.
    pub bytes: i64,
    /// What copies have said in the current phase.
    pub report: Report,
    /// What they said in the one before.
    pub last: Report,
}

/// The payload report (PTX ISA, Report-on operation).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub set: bool,
    pub value: u8,
}

/// Arrivals that an object of this layout can count.
pub fn most(layout: Layout) -> u32 {
    (1 << width(layout)) - 1
}

fn width(layout: Layout) -> u32 {
    match layout {
        Layout::V0 => 20,
        Layout::V1 => 9,
    }
}

fn field(word: u64, first: u32, bits: u32) -> u64 {
    word >> first & ((1 << bits) - 1)
}

impl Mbarrier {
    /// `mbarrier.init`
    ///
    /// # Errors
    /// The count is not one that the layout has.
    pub fn new(layout: Layout, count: u32) -> Result<Mbarrier, String> {
        if count == 0 || count > most(layout) {
            return Err(format!("expects {count} arrivals, and not 1 to {}", most(layout)));
        }
        Ok(Mbarrier {
            layout,
            phase: false,
            conditional: false,
            expected: count,
            pending: count,
            bytes: 0,
            report: Report::default(),
            last: Report::default(),
        })
    }

    /// The object in a word; `None`: there is none.
    pub fn decode(word: u64) -> Option<Mbarrier> {
        let layout = match word & 1 {
            0 => Layout::V0,
            _ => Layout::V1,
        };
        let bits = width(layout);
        let count = |first| ((1 << bits) - field(word, first, bits) as u32) & ((1 << bits) - 1);
        let expected = count(1);
        if expected == 0 && field(word, 42, 1) == 0 {
            return None;
        }
        let phase = field(word, 63, 1) == 1;
        let second = |of: u64| if layout == Layout::V1 { of } else { 0 };
        let bytes = field(word, 21, 21) as i64;
        Some(Mbarrier {
            layout,
            phase,
            conditional: match layout {
                Layout::V0 => phase,
                Layout::V1 => field(word, 10, 1) == 1,
            },
            expected,
            pending: count(63 - bits),
            bytes: bytes << 43 >> 43,
            report: Report {
                set: second(field(word, 11, 1)) == 1,
                value: second(field(word, 43, 8)) as u8,
            },
            last: Report {
                set: second(field(word, 12, 1)) == 1,
                value: second(field(word, 13, 8)) as u8,
            },
        })
    }

    pub fn encode(self) -> u64 {
        let bits = width(self.layout);
        let count = |count: u32| u64::from((1 << bits) - count) & ((1 << bits) - 1);
        let common = count(self.expected) << 1
            | (self.bytes as u64 & ((1 << 21) - 1)) << 21
            | u64::from(self.expected == 0) << 42
            | count(self.pending) << (63 - bits)
            | u64::from(self.phase) << 63;
        common
            | match self.layout {
                Layout::V0 => 0,
                Layout::V1 => {
                    1 | u64::from(self.conditional) << 10
                        | u64::from(self.report.set) << 11
                        | u64::from(self.last.set) << 12
                        | u64::from(self.last.value) << 13
                        | u64::from(self.report.value) << 43
                }
            }
    }

    /// The phase is over if nothing is missing any more: the next one begins. Whether it is.
    fn settle(&mut self) -> bool {
        if self.pending != 0 || self.bytes != 0 {
            return false;
        }
        self.phase = !self.phase;
        if !self.report.set && self.report.value == 0 {
            self.conditional = !self.conditional;
        }
        (self.last, self.report) = (self.report, Report::default());
        self.pending = self.expected;
        true
    }

    /// Arrive-on, `count` times; whether the phase is over by that.
    ///
    /// # Errors
    /// So many are not missing.
    pub fn arrive(&mut self, count: u32) -> Result<bool, String> {
        if count == 0 || count > self.pending {
            return Err(match self.pending {
                0 => format!("waits for no more arrivals in this phase, and {count} come"),
                pending => format!("waits for {pending} of {} arrivals, and {count} come", self.expected),
            });
        }
        self.pending -= count;
        Ok(self.settle())
    }

    /// As [`Self::arrive`]; so many are expected no more in the phases to come.
    ///
    /// # Errors
    /// Likewise.
    pub fn drop(&mut self, count: u32) -> Result<bool, String> {
        if count > self.expected {
            return Err(format!("expects {} arrivals, and {count} drop out", self.expected));
        }
        self.expected -= count;
        self.arrive(count)
    }

    /// One more arrival is missing in this phase alone: that of copies (`cp.async.mbarrier.arrive`).
    ///
    /// # Errors
    /// It counts no further.
    pub fn add(&mut self, count: u32) -> Result<(), String> {
        if self.pending + count > most(self.layout) {
            return Err(format!("counts no more than {} arrivals", most(self.layout)));
        }
        self.pending += count;
        Ok(())
    }

    /// Expect-tx: so many more bytes.
    ///
    /// # Errors
    /// It counts no further.
    pub fn expect(&mut self, bytes: i64) -> Result<bool, String> {
        let now = self.bytes + bytes;
        if !(-MOST_BYTES..=MOST_BYTES).contains(&now) {
            let s = if now < 0 {
                "have come unannounced"
            } else {
                "are to come"
            };
            return Err(format!("counts up to {MOST_BYTES} bytes, and {} {s}", now.abs()));
        }
        self.bytes = now;
        // Bytes that came early may be what was announced last.
        Ok(self.settle())
    }

    /// Complete-tx: so many bytes have come; whether the phase is over by that.
    ///
    /// # Errors
    /// It counts no further.
    pub fn complete(&mut self, bytes: i64) -> Result<bool, String> {
        self.expect(-bytes)
    }

    /// Report-on.
    ///
    /// # Errors
    /// It keeps no reports.
    pub fn report(&mut self, value: u8) -> Result<(), String> {
        if self.layout == Layout::V0 {
            return Err("has the layout that keeps no reports (.layout::v0)".to_owned());
        }
        self.report.set = true;
        self.report.value |= value;
        Ok(())
    }

    /// What its current phase waits for, for people.
    pub fn describe(&self) -> String {
        let arrivals = match self.pending {
            0 => "no arrival is missing".to_owned(),
            1 => format!("1 of {} arrivals is missing", self.expected),
            n => format!("{n} of {} arrivals are missing", self.expected),
        };
        match self.bytes {
            0 => arrivals,
            n if n > 0 => format!("{arrivals}, {n} bytes are to come"),
            n => format!("{arrivals}, {} bytes have come that were not announced", -n),
        }
    }
}

/// Where barriers are: shared memory holds whatever the block before left there, which may look like one.
#[derive(Default)]
pub struct Places(Vec<u64>);

impl Places {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `mbarrier.init` at `at`.
    pub fn add(&mut self, at: u64) {
        if !self.has(at) {
            self.0.push(at);
        }
    }

    /// `mbarrier.inval` at `at`.
    pub fn remove(&mut self, at: u64) {
        self.0.retain(|&place| place != at);
    }

    /// Whether there is a barrier at `at`. There are few, and what was asked for last is asked for again.
    pub fn has(&mut self, at: u64) -> bool {
        match self.0.iter().rposition(|&place| place == at) {
            Some(i) => {
                let last = self.0.len() - 1;
                self.0.swap(i, last);
                true
            }
            None => false,
        }
    }

    /// The objects, while the memory that they are in is still there.
    pub fn objects(&self) -> Vec<(u64, Mbarrier)> {
        let object = |&at: &u64| {
            // SAFETY: places are those of objects that were initialised, in windows that outlive the list of them.
            unsafe { load(at) }.ok().map(|object| (at, object))
        };
        self.0.iter().filter_map(object).collect()
    }

    /// The block has ended, or the cluster.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// What is wrong with a place where there is no barrier.
pub const NONE_THERE: &str = "was not initialised (mbarrier.init)";

/// The state that an arrival gives: the object as it was just before.
pub struct Token(pub u64);

impl Token {
    /// Parity of the phase of the arrival.
    pub fn phase(&self) -> bool {
        self.0 >> 63 == 1
    }

    /// `mbarrier.pending_count`
    pub fn pending(&self) -> u32 {
        let bits = if self.0 & 1 == 0 { 20 } else { 9 };
        ((1 << bits) - field(self.0, 63 - bits, bits) as u32) & ((1 << bits) - 1)
    }
}

/// The object at `at`.
///
/// # Errors
/// There is none.
///
/// # Safety
/// `at` is a multiple of 8, and its 8 bytes lie in a shared window of the running cluster.
pub unsafe fn load(at: u64) -> Result<Mbarrier, String> {
    // SAFETY: the caller promises that 8 bytes can be read there; all that write them run on this thread.
    let word = unsafe { (at as *const u64).read() };
    Mbarrier::decode(word).ok_or_else(|| NONE_THERE.to_owned())
}

/// Changes the object at `at`.
///
/// # Errors
/// There is none, or `change` finds something wrong.
///
/// # Safety
/// As for [`load`].
pub unsafe fn update<T>(at: u64, change: impl FnOnce(&mut Mbarrier) -> Result<T, String>) -> Result<T, String> {
    // SAFETY: the caller promises what `load` asks for, and the same of the word as it is written.
    unsafe {
        let mut object = load(at)?;
        let out = change(&mut object)?;
        (at as *mut u64).write(object.encode());
        Ok(out)
    }
}

/// A barrier of which something is asked that it cannot do; `offset` is its place in the block's shared window.
#[cold]
pub fn misuse(offset: u64, why: &str) -> Cause {
    Cause::Misuse {
        why: format!("the mbarrier at {offset:#x} in .shared {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `ptxas` 13 computes for `mbarrier.init` on sm_90: 2^20 − n, once from bit 1 and once from bit 43.
    #[test]
    fn first_layout_is_that_of_the_assembler() {
        for n in [1, 2, 31, 1024, (1 << 20) - 1] {
            let less = (1u64 << 20) - u64::from(n);
            let object = Mbarrier::new(Layout::V0, n).expect("in range");
            assert_eq!(object.encode(), less << 1 | less << 43);
            assert_eq!(Token(object.encode()).pending(), n);
        }
    }

    #[test]
    fn words_keep_every_field() {
        for layout in [Layout::V0, Layout::V1] {
            for (phase, expected, pending, bytes) in [
                (false, 1, 0, MOST_BYTES),
                (true, most(layout), most(layout), -MOST_BYTES),
                (true, 0, 0, 5),
            ] {
                let reports = layout == Layout::V1;
                let object = Mbarrier {
                    layout,
                    phase,
                    conditional: phase,
                    expected,
                    pending,
                    bytes,
                    report: Report {
                        set: reports,
                        value: if reports { 0xa5 } else { 0 },
                    },
                    last: Report {
                        set: reports,
                        value: if reports { 0x5a } else { 0 },
                    },
                };
                assert_eq!(Mbarrier::decode(object.encode()), Some(object));
            }
        }
        assert_eq!(Mbarrier::decode(0), None);
    }

    #[test]
    fn nobody_is_expected_when_all_have_dropped_out() {
        let mut object = Mbarrier::new(Layout::V0, 2).expect("in range");
        assert_eq!(object.drop(1), Ok(false));
        assert_eq!(object.drop(1), Ok(true));
        let word = object.encode();
        assert_eq!(
            Mbarrier::decode(word).map(|o| (o.expected, o.pending, o.phase)),
            Some((0, 0, true))
        );
    }
}
