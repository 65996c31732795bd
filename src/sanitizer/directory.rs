//! Pages of memory that the workers of a grid come to at once. Whoever remembers where he found a page goes there without waiting
//! for anybody; what a page keeps says itself how it is shared.
//!
//! Kernels mostly come to pages that lie side by side: they are found by chunks of them.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::OnceLock;

use parking_lot::Mutex;

use super::spread::Spread;

const SHARDS: usize = 64;
/// Pages of a chunk.
const CHUNK: usize = 16;
/// Chunks that somebody remembers.
const REMEMBERED: usize = 256;

type Shard = HashMap<u64, u32, BuildHasherDefault<Spread>>;

pub struct Directory<P> {
    /// Places in `chunks` by the numbers of chunks.
    shards: [Mutex<Shard>; SHARDS],
    chunks: boxcar::Vec<Chunk<P>>,
}

struct Chunk<P> {
    number: u64,
    /// Those that somebody has come to.
    pages: Box<[OnceLock<P>; CHUNK]>,
}

/// Where somebody found the last chunks of one directory: numbers and places.
pub struct Remembered([(u64, u32); REMEMBERED]);

impl Remembered {
    pub const NOTHING: Remembered = Remembered([(u64::MAX, 0); REMEMBERED]);
}

/// The chunk of a page, and its place there.
fn place(number: u64) -> (u64, usize) {
    (number / CHUNK as u64, number as usize % CHUNK)
}

impl<P> Directory<P> {
    pub fn new() -> Directory<P> {
        Directory {
            shards: std::array::from_fn(|_| Mutex::default()),
            chunks: boxcar::Vec::new(),
        }
    }

    /// A page, which is made if nobody has come to it yet.
    #[inline(always)]
    pub fn page(&self, remembered: &mut Remembered, number: u64, make: impl FnOnce() -> P) -> &P {
        let (chunk, page) = place(number);
        let last = &mut remembered.0[chunk as usize % REMEMBERED];
        if last.0 != chunk {
            *last = (chunk, self.find(chunk));
        }
        self.chunks[last.1 as usize].pages[page].get_or_init(make)
    }

    /// A page that somebody has come to, if its chunk is remembered.
    #[inline(always)]
    pub fn remembered(&self, remembered: &Remembered, number: u64) -> Option<&P> {
        let (chunk, page) = place(number);
        let last = remembered.0[chunk as usize % REMEMBERED];
        match last.0 == chunk {
            true => self.chunks[last.1 as usize].pages[page].get(),
            false => None,
        }
    }

    #[inline(never)]
    fn find(&self, number: u64) -> u32 {
        let mut shard = self.shards[number as usize % SHARDS].lock();
        *shard.entry(number).or_insert_with(|| {
            let pages = Box::new([const { OnceLock::new() }; CHUNK]);
            self.chunks.push(Chunk { number, pages }) as u32
        })
    }

    /// A page, if somebody has come to it.
    pub fn get(&self, number: u64) -> Option<&P> {
        let (chunk, page) = place(number);
        let at = self.shards[chunk as usize % SHARDS].lock().get(&chunk).copied()?;
        self.chunks[at as usize].pages[page].get()
    }

    /// All of them with their numbers, in order.
    pub fn all(&self) -> impl Iterator<Item = (u64, &P)> {
        let mut chunks: Vec<_> = self.chunks.iter().map(|(_, chunk)| chunk).collect();
        chunks.sort_unstable_by_key(|chunk| chunk.number);
        chunks.into_iter().flat_map(|chunk| {
            let numbers = chunk.number * CHUNK as u64..;
            numbers
                .zip(chunk.pages.iter())
                .filter_map(|(number, page)| Some((number, page.get()?)))
        })
    }

    /// All of them, of which none is left.
    pub fn take(&mut self) -> impl Iterator<Item = P> + use<P> {
        self.shards.iter_mut().for_each(|shard| shard.get_mut().clear());
        let chunks = std::mem::take(&mut self.chunks).into_iter();
        chunks.flat_map(|chunk| chunk.pages.into_iter().filter_map(OnceLock::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_whoever_remembers_them_and_by_others() {
        let mut directory = Directory::new();
        let mut mine = Remembered::NOTHING;
        for number in [40, 3, 40 + 16 * REMEMBERED as u64] {
            assert_eq!(*directory.page(&mut mine, number, || number), number);
            assert_eq!(*directory.page(&mut mine, number, || 0), number);
            assert_eq!(directory.remembered(&mine, number), Some(&number));
            assert_eq!(directory.remembered(&mine, number + 1), None);
            let mut others = Remembered::NOTHING;
            assert_eq!(*directory.page(&mut others, number, || 0), number);
        }
        // Its place is another's.
        assert_eq!(directory.remembered(&mine, 40), None);
        assert_eq!(
            (directory.get(40), directory.get(41), directory.get(9000)),
            (Some(&40), None, None)
        );
        let numbers: Vec<_> = directory.all().map(|(number, _)| number).collect();
        assert_eq!(numbers, [3, 40, 40 + 16 * REMEMBERED as u64]);
        assert_eq!(directory.take().count(), 3);
        assert_eq!(directory.all().count(), 0);
    }
}
