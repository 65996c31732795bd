//! What fabric operations do to memory, as they complete. Accesses by endpoints are atomic, 16 bytes at a time or an element.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU64};

use crate::isa::joint::multimem::Reduction;
use crate::simt::cause::Cause;
use crate::simt::machine::access;
use crate::simt::machine::asynchronous::Work;
use crate::simt::machine::atomic::{Element, Fetch};
use crate::simt::machine::context::Env;
use crate::simt::machine::mbarrier::Report;
use crate::simt::machine::observe::Direction;
use crate::simt::machine::raw::{load_whole, store_whole};

/// Bytes that are moved as one.
const WHOLE: u64 = 16;

/// From an endpoint to shared memory.
pub(super) struct Get {
    pub(super) to: u64,
    pub(super) from: u64,
    pub(super) bytes: u64,
}

impl Work for Get {
    fn finish(&mut self, env: &Env<'_>) -> Result<Report, Cause> {
        still(env, self.from, self.bytes, Direction::Read)?;
        still(env, self.to, self.bytes, Direction::Write)?;
        for at in (0..self.bytes).step_by(WHOLE as usize) {
            // SAFETY: both ranges were found to be there still; they were found to be multiples of 16 bytes that start at
            // such multiples when this began.
            unsafe {
                let [value, _] = load_whole(self.from + at, WHOLE, SeqCst);
                ((self.to + at) as *mut u128).write(value);
            }
        }
        Ok(Report::default())
    }
}

/// From shared memory to an endpoint, written or reduced.
pub(super) struct Put {
    /// With each member.
    pub(super) to: Box<[u64]>,
    pub(super) from: u64,
    pub(super) bytes: u64,
    /// Which bytes of each sixteen are written.
    pub(super) mask: u16,
    /// An operation on each element, and whether its sums flush.
    pub(super) reduction: Option<(Element, bool)>,
    /// Of each member, if what comes is counted.
    pub(super) counters: Box<[u64]>,
    /// What was read already.
    pub(super) taken: Option<Box<[u128]>>,
}

impl Put {
    /// # Safety
    /// `bytes` bytes can be read at `from` and accessed at `to`, which are multiples of 16.
    unsafe fn write(&self, to: u64, from: u64) {
        // SAFETY: the caller promises it, and all accesses lie within: elements are parts of 16 bytes.
        unsafe {
            if let Some((element, flushes)) = self.reduction {
                for at in (0..self.bytes).step_by(element.bytes) {
                    (element.apply)(to + at, from + at, flushes);
                }
                return;
            }
            for at in (0..self.bytes).step_by(WHOLE as usize) {
                let value = ((from + at) as *const u128).read_unaligned();
                if self.mask == u16::MAX {
                    store_whole(to + at, WHOLE, [value, 0], SeqCst);
                    continue;
                }
                for (n, byte) in (0..).zip(value.to_le_bytes()) {
                    if self.mask >> n & 1 == 1 {
                        AtomicU8::from_ptr((to + at + n) as *mut u8).store(byte, Relaxed);
                    }
                }
            }
        }
    }
}

impl Work for Put {
    fn read(&mut self, env: &Env<'_>) -> Result<bool, Cause> {
        if self.taken.is_some() {
            return Ok(true);
        }
        still(env, self.from, self.bytes, Direction::Read)?;
        let from = self.from;
        // SAFETY: the source, a multiple of 16 bytes that starts at such a multiple, was found to be there still.
        let value = |at: u64| unsafe { ((from + at) as *const u128).read() };
        self.taken = Some((0..self.bytes).step_by(WHOLE as usize).map(value).collect());
        Ok(true)
    }

    fn finish(&mut self, env: &Env<'_>) -> Result<Report, Cause> {
        let direction = match self.reduction {
            Some(_) => Direction::Atomic,
            None => Direction::Write,
        };
        let from = match &self.taken {
            Some(taken) => taken.as_ptr() as u64,
            None => {
                still(env, self.from, self.bytes, Direction::Read)?;
                self.from
            }
        };
        for &to in &self.to {
            still(env, to, self.bytes, direction)?;
            // SAFETY: both ranges are there: what was taken is as long as the source. They are multiples of 16 bytes that
            // start at such multiples.
            unsafe { self.write(to, from) };
        }
        count(env, &self.counters, self.bytes)?;
        Ok(Report::default())
    }
}

/// So many bytes have come, with each member.
pub(super) fn count(env: &Env<'_>, counters: &[u64], bytes: u64) -> Result<(), Cause> {
    for &counter in counters {
        still(env, counter, size_of::<u64>() as u64, Direction::Atomic)?;
        // SAFETY: the counter was found to be there still, and to be aligned when this began; kernels reach it by atomics
        // and raw pointers alone.
        unsafe { AtomicU64::from_ptr(counter as *mut u64) }.fetch_add(bytes, SeqCst);
    }
    Ok(())
}

/// An operation on an element of an endpoint, whose old value goes to shared memory.
pub(super) struct Atom {
    pub(super) at: u64,
    /// The operand, and the replacement of `cas`.
    pub(super) values: [u64; 2],
    pub(super) old: u64,
    pub(super) fetch: Fetch,
    pub(super) flushes: bool,
    /// What was read of the operands already.
    pub(super) taken: Option<[u128; 2]>,
}

impl Work for Atom {
    fn read(&mut self, env: &Env<'_>) -> Result<bool, Cause> {
        if self.taken.is_some() {
            return Ok(true);
        }
        let bytes = self.fetch.bytes;
        let mut taken = [0_u128; 2];
        for (to, from) in taken.iter_mut().zip(self.values) {
            still(env, from, bytes as u64, Direction::Read)?;
            // SAFETY: the operand was found to be there still, and is no longer than 16 bytes.
            unsafe { std::ptr::copy_nonoverlapping(from as *const u8, std::ptr::from_mut(to).cast(), bytes) };
        }
        self.taken = Some(taken);
        Ok(true)
    }

    fn finish(&mut self, env: &Env<'_>) -> Result<Report, Cause> {
        let bytes = self.fetch.bytes as u64;
        self.read(env)?;
        let taken = self.taken.unwrap_or_default();
        still(env, self.at, bytes, Direction::Atomic)?;
        still(env, self.old, bytes, Direction::Write)?;
        let values = taken.each_ref().map(|value| std::ptr::from_ref(value) as u64);
        // SAFETY: the element and the place of its old value were found to be there still, and the element to be aligned
        // when this began; the values are here.
        unsafe { (self.fetch.apply)(self.at, values, self.old, self.flushes) };
        Ok(Report::default())
    }
}

/// From all members of an endpoint to shared memory.
pub(super) struct PullReduce {
    pub(super) to: u64,
    /// With each member.
    pub(super) from: Box<[u64]>,
    pub(super) bytes: u64,
    pub(super) reduction: Reduction,
}

impl Work for PullReduce {
    fn finish(&mut self, env: &Env<'_>) -> Result<Report, Cause> {
        for &from in &self.from {
            still(env, from, self.bytes, Direction::Read)?;
        }
        still(env, self.to, self.bytes, Direction::Write)?;
        let bits = 8 * self.reduction.bytes();
        let mask = u64::MAX >> (64 - bits);
        let (mut wholes, mut values) = (Vec::new(), Vec::new());
        for at in (0..self.bytes).step_by(WHOLE as usize) {
            wholes.clear();
            // SAFETY: the sources were found to be there still, and to be multiples of 16 bytes that start at such
            // multiples when this began.
            let whole = |from: &u64| unsafe { load_whole(from + at, WHOLE, SeqCst) }[0];
            wholes.extend(self.from.iter().map(whole));
            let mut result = 0_u128;
            for shift in (0..128).step_by(bits) {
                values.clear();
                values.extend(wholes.iter().map(|whole| (whole >> shift) as u64 & mask));
                result |= u128::from(self.reduction.apply(&values) & mask) << shift;
            }
            // SAFETY: the destination was found to be there still, and to be such a range when this began.
            unsafe { ((self.to + at) as *mut u128).write(result) };
        }
        Ok(Report::default())
    }
}

fn still(env: &Env<'_>, at: u64, bytes: u64, direction: Direction) -> Result<(), Cause> {
    match bytes {
        0 => Ok(()),
        bytes => access::still(env, at, bytes, direction),
    }
}
