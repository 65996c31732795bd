//! Pages of memory that the workers of a grid come to at once. Whoever remembers where he found a page goes there without waiting
//! for anybody; what a page keeps says itself how it is shared.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use parking_lot::Mutex;

use super::spread::Spread;

const SHARDS: usize = 64;
/// Pages that somebody remembers.
const REMEMBERED: usize = 256;

type Shard = HashMap<u64, u32, BuildHasherDefault<Spread>>;

pub struct Directory<P> {
    /// Places in `pages` by the numbers of pages.
    shards: [Mutex<Shard>; SHARDS],
    /// With their numbers.
    pages: boxcar::Vec<(u64, P)>,
}

/// Where somebody found the last pages of one directory: numbers and places.
pub struct Remembered([(u64, u32); REMEMBERED]);

impl Remembered {
    pub const NOTHING: Remembered = Remembered([(u64::MAX, 0); REMEMBERED]);
}

impl<P> Directory<P> {
    pub fn new() -> Directory<P> {
        Directory {
            shards: std::array::from_fn(|_| Mutex::default()),
            pages: boxcar::Vec::new(),
        }
    }

    /// A page, which is made if nobody has come to it yet.
    #[inline(always)]
    pub fn page(&self, remembered: &mut Remembered, number: u64, make: impl FnOnce() -> P) -> &P {
        let last = &mut remembered.0[number as usize % REMEMBERED];
        if last.0 != number {
            *last = (number, self.find(number, make));
        }
        &self.pages[last.1 as usize].1
    }

    #[inline(never)]
    fn find(&self, number: u64, make: impl FnOnce() -> P) -> u32 {
        let mut shard = self.shards[number as usize % SHARDS].lock();
        let place = shard.entry(number);
        *place.or_insert_with(|| self.pages.push((number, make())) as u32)
    }

    /// A page, if somebody has come to it.
    pub fn get(&self, number: u64) -> Option<&P> {
        let place = self.shards[number as usize % SHARDS].lock().get(&number).copied()?;
        Some(&self.pages[place as usize].1)
    }

    /// All of them with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &P)> {
        self.pages.iter().map(|(_, (number, page))| (*number, page))
    }

    /// All of them, of which none is left.
    pub fn take(&mut self) -> impl Iterator<Item = P> + use<P> {
        self.shards.iter_mut().for_each(|shard| shard.get_mut().clear());
        std::mem::take(&mut self.pages).into_iter().map(|(_, page)| page)
    }
}
