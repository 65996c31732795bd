//! What a grid has left, and how two of these differ.

use std::collections::BTreeMap;

use half::{bf16, f16};

use crate::memory::{AddressSpace, PAGE, PAGE_BITS};

use super::{Float, Journal, Mask, Page, is_kept};

/// What a grid has written, and what it was.
#[derive(Default)]
pub struct Outcome {
    pages: BTreeMap<u64, Left>,
}

struct Left {
    page: Box<Page>,
    now: [u8; PAGE as usize],
}

/// Bytes that differ, by page.
#[derive(Default)]
pub struct Differences(BTreeMap<u64, Mask>);

/// A value as an outcome has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    pub bytes: [u8; 16],
    pub count: usize,
}

impl Journal {
    /// The grid has ended: what it has left, in whose place what was there before is put back.
    pub fn undo(&self) -> Outcome {
        let mut state = self.state.lock();
        let state = &mut *state;
        for (start, before) in std::mem::take(&mut state.arrays) {
            // SAFETY: the array is live, for what frees one waits for what runs.
            let now = unsafe { std::slice::from_raw_parts(start as *const u8, before.len()) };
            for (at, (_, old)) in (start..)
                .zip(now.iter().zip(&before))
                .filter(|(_, (now, old))| now != old)
            {
                let page = state.pages.entry(at >> PAGE_BITS).or_insert_with(Page::new);
                let offset = (at % PAGE) as usize;
                page.original[offset] = *old;
                page.written[offset / 64] |= 1 << (offset % 64);
                page.plainly[offset / 64] |= 1 << (offset % 64);
            }
        }
        let mut outcome = Outcome::default();
        let view = AddressSpace::get().view();
        for (number, page) in state.pages.drain() {
            let here = number << PAGE_BITS;
            let mut left = Left {
                now: [0; PAGE as usize],
                page,
            };
            // What has been freed meanwhile is nobody's result.
            let is_there = |at: usize| is_kept(&view, here + at as u64, 1) || AddressSpace::get().find(here).is_some();
            let Some(first) = bits(&left.page.written).next().filter(|&at| is_there(at)) else {
                continue;
            };
            debug_assert!(first < PAGE as usize, "a byte of the page");
            for at in bits(&left.page.written) {
                // SAFETY: the grid has written the byte, and its memory is still there.
                left.now[at] = unsafe { std::ptr::read_volatile((here + at as u64) as *const u8) };
            }
            write(here, &left.page.written, &left.page.original);
            outcome.pages.insert(number, left);
        }
        outcome
    }
}

impl Outcome {
    /// Puts it back in place.
    pub fn apply(&self) {
        for (number, left) in &self.pages {
            write(number << PAGE_BITS, &left.page.written, &left.now);
        }
    }

    /// Bytes in which another outcome differs from this one.
    pub fn differences(&self, other: &Outcome) -> Differences {
        let mut all = BTreeMap::new();
        let numbers = self
            .pages
            .keys()
            .chain(other.pages.keys().filter(|n| !self.pages.contains_key(n)));
        for number in numbers {
            let (a, b) = (self.pages.get(number), other.pages.get(number));
            let mut mask: Mask = [0; PAGE as usize / 64];
            let mut any = false;
            for (word, differs) in mask.iter_mut().enumerate() {
                let of = |left: Option<&Left>| left.map_or(0, |left| left.page.written[word]);
                let mut rest = of(a) | of(b);
                while rest != 0 {
                    let bit = rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    let at = word * 64 + bit;
                    if value(a, b, at) != value(b, a, at) {
                        *differs |= 1 << bit;
                        any = true;
                    }
                }
            }
            if any {
                all.insert(*number, mask);
            }
        }
        Differences(all)
    }

    /// The value of so many bytes at an address, where an outcome that has not written all of it has what `other` found there.
    pub fn value(&self, other: &Outcome, address: u64, count: usize) -> Unit {
        let count = count.clamp(1, 16);
        let mut bytes = [0; 16];
        for (byte, at) in bytes.iter_mut().zip(address..).take(count) {
            let number = at >> PAGE_BITS;
            *byte = value(self.pages.get(&number), other.pages.get(&number), (at % PAGE) as usize);
        }
        Unit { bytes, count }
    }

    /// Whether all that differs are sums of floats that atomics have made in both, and near each other.
    pub fn differs_by_rounding(&self, other: &Outcome, differences: &Differences) -> bool {
        differences.0.iter().all(|(number, mask)| {
            let (Some(a), Some(b)) = (self.pages.get(number), other.pages.get(number)) else {
                return false;
            };
            bits(mask).all(|at| is_rounding(a, b, at))
        })
    }
}

/// The byte of a page as an outcome has it: what it has written, or what was there.
fn value(own: Option<&Left>, other: Option<&Left>, at: usize) -> u8 {
    let has = |left: &&Left| left.page.written[at / 64] >> (at % 64) & 1 == 1;
    match (own.filter(has), other) {
        (Some(own), _) => own.now[at],
        (None, Some(other)) => other.page.original[at],
        (None, None) => 0,
    }
}

fn is_rounding(a: &Left, b: &Left, at: usize) -> bool {
    let plainly = |left: &Left| left.page.plainly[at / 64] >> (at % 64) & 1 == 1;
    let (Some(sums), Some(others)) = (&a.page.sums, &b.page.sums) else {
        return false;
    };
    let Some(float) = sums.ty[at / 2].filter(|float| others.ty[at / 2] == Some(*float)) else {
        return false;
    };
    if plainly(a) || plainly(b) {
        return false;
    }
    let first = at / float.bytes() * float.bytes();
    let [x, y, before] = [&a.now, &b.now, &a.page.original].map(|bytes| float.value(&bytes[first..]));
    let times = f64::from(sums.count[at / 2].max(others.count[at / 2]));
    if x.is_nan() || y.is_nan() || x.is_infinite() || y.is_infinite() {
        return x.is_nan() && y.is_nan() || x == y;
    }
    let largest = x.abs().max(y.abs()).max(before.abs());
    (x - y).abs() <= 4.0 * times * float.epsilon() * largest
}

impl Float {
    fn value(self, bytes: &[u8]) -> f64 {
        match self {
            Float::F16 => f16::from_le_bytes([bytes[0], bytes[1]]).to_f64(),
            Float::Bf16 => bf16::from_le_bytes([bytes[0], bytes[1]]).to_f64(),
            Float::F32 => f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).into(),
            Float::F64 => {
                let mut all = [0; 8];
                all.copy_from_slice(&bytes[..8]);
                f64::from_le_bytes(all)
            }
        }
    }

    /// The distance of 1 and the next larger value.
    fn epsilon(self) -> f64 {
        match self {
            Float::F16 => f16::EPSILON.to_f64(),
            Float::Bf16 => bf16::EPSILON.to_f64(),
            Float::F32 => f32::EPSILON.into(),
            Float::F64 => f64::EPSILON,
        }
    }
}

impl Differences {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first byte's address.
    pub fn first(&self) -> Option<u64> {
        let (number, mask) = self.0.first_key_value()?;
        Some((number << PAGE_BITS) + bits(mask).next()? as u64)
    }

    pub fn bytes(&self) -> u64 {
        let masks = self.0.values().flatten();
        masks.map(|word| u64::from(word.count_ones())).sum()
    }

    /// Without those bytes that differ in another way, too.
    pub fn without(mut self, others: &Differences) -> Differences {
        for (number, mask) in &mut self.0 {
            if let Some(other) = others.0.get(number) {
                mask.iter_mut().zip(other).for_each(|(mask, other)| *mask &= !other);
            }
        }
        self.0.retain(|_, mask| mask.iter().any(|word| *word != 0));
        self
    }

    /// Without those in a range.
    pub fn outside(mut self, start: u64, bytes: u64) -> Differences {
        let (first, last) = (start >> PAGE_BITS, start.saturating_add(bytes) >> PAGE_BITS);
        for (number, mask) in self.0.range_mut(first..=last) {
            for at in 0..PAGE as usize {
                let address = (number << PAGE_BITS) + at as u64;
                if address >= start && address - start < bytes {
                    mask[at / 64] &= !(1 << (at % 64));
                }
            }
        }
        self.0.retain(|_, mask| mask.iter().any(|word| *word != 0));
        self
    }
}

fn bits(mask: &Mask) -> impl Iterator<Item = usize> {
    mask.iter().enumerate().flat_map(|(word, bits)| {
        let mut rest = *bits;
        std::iter::from_fn(move || {
            let bit = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (bit < 64).then_some(word * 64 + bit)
        })
    })
}

fn write(here: u64, mask: &Mask, bytes: &[u8; PAGE as usize]) {
    for at in bits(mask) {
        // SAFETY: kernels could write the byte a moment ago, and nobody has taken it away since: `undo` looks, and what is applied is
        // of the same launch.
        unsafe { std::ptr::write_volatile((here + at as u64) as *mut u8, bytes[at]) };
    }
}
