//! What a pool has: blocks that are in use, and blocks that were given back.
//!
//! Rules (manual, `cuMemPoolSetAttribute`): a stream has back what was freed in itself, always, for its order sees to it.
//! What has been freed in another one is had once the free is done (`…_ALLOW_OPPORTUNISTIC`), or by waiting for it when
//! there is no other memory (`…_ALLOW_INTERNAL_DEPENDENCIES`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Pool, Source, could_give, give, set_pending};
use crate::driver::stream::{Command, Point};
use crate::driver::{Error, Result, Stream, context};
use crate::memory::{self, AddressSpace, Allocation, PAGE, Request, caller};

/// A pool takes memory from its device in pieces of so many bytes, as GPUs' drivers do: programs that add up what a pool
/// has free (CuPy does) see the first small allocation take one.
const PIECE: u64 = 32 << 20;

/// Blocks that pools keep.
static KEPT: AtomicUsize = AtomicUsize::new(0);

pub(super) fn any_kept() -> bool {
    KEPT.load(Ordering::Relaxed) > 0
}

/// A block that was given back.
struct Kept {
    start: u64,
    /// Of the block.
    bytes: u64,
    owner: u64,
    /// The number of the stream that it was freed in; `None`: by a call that waited.
    stream: Option<u64>,
    /// The free, until it is known to be done.
    point: Option<Point>,
    /// The last allocation's number there.
    id: u64,
}

impl Kept {
    fn is_done(&mut self) -> bool {
        self.point = self.point.take().filter(|point| !point.is_done());
        self.point.is_none()
    }
}

#[derive(Default)]
pub(super) struct Reserve {
    /// In use, by address.
    live: BTreeMap<u64, Allocation>,
    kept: Vec<Kept>,
    /// The pool is destroyed.
    is_closed: bool,
    /// Bytes as asked for, now and at most.
    pub used: u64,
    pub used_high: u64,
    /// Bytes of blocks, those that are kept among them, and the room beside them.
    pub reserved: u64,
    pub reserved_high: u64,
    /// What no block has of the pieces that were taken from the device.
    room: u64,
}

/// How well a kept block has to fit: at most twice as large.
fn suits(block: u64, bytes: u64) -> bool {
    let needed = bytes.next_multiple_of(PAGE);
    (needed..=needed.saturating_mul(2)).contains(&block)
}

pub(super) fn allocate(pool: &Arc<Pool>, request: &Request, stream: &Arc<Stream>) -> Result<Allocation> {
    if let Some(found) = pool.reserve.lock().reuse(pool, request, stream) {
        return Ok(found);
    }
    match pool.reserve.lock().fresh(pool, request) {
        Err(Error::OutOfMemory) => {}
        other => return other,
    }
    // Memory that another stream is about to free, if this one may wait for it.
    if pool.settings[2].load(Ordering::Relaxed) != 0
        && let Some(found) = pool.reserve.lock().reuse_after(pool, request, stream)
    {
        return Ok(found);
    }
    if !could_give() {
        return Err(Error::OutOfMemory);
    }
    context::drain_all();
    give();
    pool.reserve.lock().fresh(pool, request)
}

impl Reserve {
    /// The pool is destroyed, and nothing of it is left.
    pub fn has_ended(&self) -> bool {
        self.is_closed && self.live.is_empty() && self.kept.is_empty()
    }

    /// Whether something in use lies between two addresses, these included.
    pub fn overlaps(&self, first: u64, last: u64) -> bool {
        let before = self.live.range(..=last).next_back();
        let kept = self
            .kept
            .iter()
            .any(|kept| kept.start <= last && first < kept.start + kept.bytes);
        kept || before.is_some_and(|(start, allocation)| first < start + allocation.block_bytes())
    }

    pub fn starts(&self) -> Vec<u64> {
        self.live.keys().copied().collect()
    }

    /// From now on nothing is kept.
    pub fn close(&mut self, pool: &Pool) {
        self.is_closed = true;
        self.resize(pool, self.blocks());
    }

    /// Bytes of blocks.
    fn blocks(&self) -> u64 {
        self.reserved - self.room
    }

    /// What the pieces come to that blocks of so many bytes lie in.
    fn pieces(&self, pool: &Pool, blocks: u64) -> u64 {
        if self.is_closed || pool.takes_pieces().is_none() {
            return blocks;
        }
        match pool.attribute_most() {
            0 => blocks.next_multiple_of(PIECE),
            most => blocks.next_multiple_of(PIECE).min(most.max(blocks)),
        }
    }

    /// Takes room from the device, or gives it back, until so many bytes are reserved; fewer where the device has no more, for
    /// the blocks are what is needed.
    fn resize(&mut self, pool: &Pool, bytes: u64) {
        let Some(device) = pool.takes_pieces() else { return };
        let space = AddressSpace::get();
        let room = bytes.saturating_sub(self.blocks());
        if room == self.room {
            return;
        }
        if room < self.room {
            space.discharge_device(device, self.room - room);
        } else if space.charge_device(device, room - self.room).is_err() {
            return;
        }
        self.reserved = self.blocks() + room;
        self.room = room;
        self.reserved_high = self.reserved_high.max(self.reserved);
    }

    /// A kept block, as the rules have it; the smallest that suits.
    fn reuse(&mut self, pool: &Pool, request: &Request, stream: &Arc<Stream>) -> Option<Allocation> {
        // Who uses what was freed shall not find what came after it.
        if memory::exact() && pool.region.is_none() {
            return None;
        }
        let opportunistic = pool.settings[1].load(Ordering::Relaxed) != 0;
        let candidates = self.kept.iter_mut().enumerate().filter_map(|(index, kept)| {
            let own = kept.stream == Some(stream.id());
            let allowed = own || kept.stream.is_none() || opportunistic && kept.is_done();
            (suits(kept.bytes, request.bytes) && allowed).then_some((kept.bytes, index))
        });
        let (_, index) = candidates.min()?;
        self.take(pool, index, request)
    }

    /// A block whose free the stream is made to wait for.
    fn reuse_after(&mut self, pool: &Pool, request: &Request, stream: &Arc<Stream>) -> Option<Allocation> {
        let index = self.kept.iter().position(|kept| suits(kept.bytes, request.bytes))?;
        if let Some(point) = self.kept[index].point.clone() {
            stream.wait_point(point);
        }
        self.take(pool, index, request)
    }

    fn take(&mut self, pool: &Pool, index: usize, request: &Request) -> Option<Allocation> {
        let kept = self.kept.swap_remove(index);
        KEPT.fetch_sub(1, Ordering::Relaxed);
        set_pending(kept.start, false);
        let revived = match &pool.region {
            Some(region) => region.revive(kept.start, kept.bytes, kept.point.is_some(), request),
            None => AddressSpace::get().revive(kept.start, kept.id, request),
        };
        match revived {
            Ok(allocation) => {
                self.add(allocation);
                Some(allocation)
            }
            Err(_) => {
                self.let_go(pool, &kept);
                None
            }
        }
    }

    /// A new block; 2 when there is no room.
    fn fresh(&mut self, pool: &Pool, request: &Request) -> Result<Allocation> {
        let block = request.bytes.checked_next_multiple_of(PAGE).ok_or(Error::OutOfMemory)?;
        let most = pool.attribute_most();
        if most > 0 && self.blocks().saturating_add(block) > most {
            self.release(pool, most.saturating_sub(block));
            if self.blocks().saturating_add(block) > most {
                return Err(Error::OutOfMemory);
            }
        }
        // The block lies in the room, as far as that goes.
        self.resize(pool, self.reserved.saturating_sub(block));
        let allocation = match &pool.region {
            Some(region) => region.allocate(request),
            None => AddressSpace::get().allocate(request),
        };
        if let Ok(allocation) = &allocation {
            self.reserved += allocation.block_bytes();
            self.reserved_high = self.reserved_high.max(self.reserved);
            self.add(*allocation);
        }
        self.resize(pool, self.pieces(pool, self.blocks()));
        allocation.map_err(|_| Error::OutOfMemory)
    }

    /// Memory of another process that this one has been shown.
    pub fn add_foreign(&mut self, allocation: Allocation) {
        self.reserved += allocation.block_bytes();
        self.reserved_high = self.reserved_high.max(self.reserved);
        self.add(allocation);
    }

    fn add(&mut self, allocation: Allocation) {
        self.used += allocation.bytes;
        self.used_high = self.used_high.max(self.used);
        self.live.insert(allocation.start, allocation);
    }

    /// An allocation ends: at once, or at its place in a stream. The block is kept.
    pub fn take_back(&mut self, pool: &Arc<Pool>, allocation: &Allocation, stream: Option<&Arc<Stream>>) {
        if self.live.remove(&allocation.start).is_none() {
            return;
        }
        self.used -= allocation.bytes;
        let mut kept = Kept {
            start: allocation.start,
            bytes: allocation.block_bytes(),
            owner: allocation.owner,
            stream: stream.map(|stream| stream.id()),
            point: None,
            id: allocation.id,
        };
        let Some(stream) = stream else {
            retire(pool, kept.start, kept.id);
            return self.keep(pool, kept);
        };
        let (start, id) = (kept.start, kept.id);
        // Under the pool's lock, here and below: nobody takes the block up while it is taken from kernels.
        let by = caller::here();
        let done = move |pool: &Pool| {
            set_pending(start, false);
            by.during(|| retire(pool, start, id));
        };
        if stream.try_now(|| done(pool)).is_err() {
            let pool = Arc::clone(pool);
            let ticket = stream.enqueue(Command::Always(Box::new(move |_| {
                let reserve = pool.reserve.lock();
                // It may be in use again.
                let is_kept = reserve.kept.iter().any(|kept| kept.start == start && kept.id == id);
                if is_kept {
                    done(&pool);
                }
                drop(reserve);
                if is_kept {
                    pool.tidy();
                }
            })));
            kept.point = Some(Point {
                stream: Arc::clone(stream),
                ticket,
            });
        }
        self.keep(pool, kept);
    }

    fn keep(&mut self, pool: &Pool, mut kept: Kept) {
        if (self.is_closed || pool.is_imported()) && kept.is_done() {
            return self.let_go(pool, &kept);
        }
        KEPT.fetch_add(1, Ordering::Relaxed);
        self.kept.push(kept);
    }

    /// Gives blocks back until they have no more than `keep` bytes, and then the pieces in which none is left; blocks whose
    /// free is not done yet stay.
    pub fn release(&mut self, pool: &Pool, keep: u64) {
        let reserved = self.reserved;
        let mut index = 0;
        while self.blocks() > keep && index < self.kept.len() {
            let block = self.kept[index].bytes;
            // At least so much stays (manual, cuMemPoolTrimTo).
            if !self.kept[index].is_done() || self.blocks() - block < keep {
                index += 1;
                continue;
            }
            let kept = self.kept.swap_remove(index);
            KEPT.fetch_sub(1, Ordering::Relaxed);
            self.let_go(pool, &kept);
        }
        self.resize(pool, self.pieces(pool, self.blocks()).max(keep).min(reserved));
    }

    fn let_go(&mut self, pool: &Pool, kept: &Kept) {
        self.reserved -= kept.bytes;
        match &pool.region {
            Some(region) => region.free(kept.start, kept.bytes),
            None => {
                AddressSpace::get().free(kept.start);
            }
        }
    }

    /// A context ends, and another one of the device has what was allocated in its streams from now on.
    pub fn hand_over(&mut self, owner: u64, heir: u64) {
        let space = AddressSpace::get();
        let live = self.live.values_mut();
        for allocation in live.filter(|allocation| allocation.owner == owner) {
            allocation.owner = heir;
            space.hand_over(allocation.start, allocation.id, heir);
        }
        for kept in self.kept.iter_mut().filter(|kept| kept.owner == owner) {
            kept.owner = heir;
            space.hand_over(kept.start, kept.id, heir);
        }
    }

    /// A context ends, and what was allocated in its streams with it.
    pub fn forget(&mut self, pool: &Pool, owner: u64) {
        let live: Vec<Allocation> = self
            .live
            .values()
            .filter(|allocation| allocation.owner == owner)
            .copied()
            .collect();
        for allocation in live {
            self.live.remove(&allocation.start);
            self.used -= allocation.bytes;
            retire(pool, allocation.start, allocation.id);
            self.reserved -= allocation.block_bytes();
            match &pool.region {
                Some(region) => region.free(allocation.start, allocation.block_bytes()),
                None => {
                    AddressSpace::get().free(allocation.start);
                }
            }
        }
        let mut index = 0;
        while index < self.kept.len() {
            if self.kept[index].owner != owner {
                index += 1;
                continue;
            }
            let kept = self.kept.swap_remove(index);
            KEPT.fetch_sub(1, Ordering::Relaxed);
            set_pending(kept.start, false);
            self.let_go(pool, &kept);
        }
        self.resize(pool, self.pieces(pool, self.blocks()));
    }
}

/// Takes the memory from kernels, if it is still that allocation. The caller has the pool's lock.
fn retire(pool: &Pool, start: u64, id: u64) {
    let space = AddressSpace::get();
    if space.find(start).is_none_or(|now| now.id != id) {
        return;
    }
    match &pool.region {
        Some(region) => region.retire(start),
        None => {
            space.retire(start);
        }
    }
}

impl Pool {
    /// The most that it may have; 0: all there is.
    fn attribute_most(&self) -> u64 {
        self.wishes.most.next_multiple_of(PAGE)
    }

    /// The device that the pool takes pieces of memory from; what it has of another kind, or in a file, has its own bounds.
    fn takes_pieces(&self) -> Option<u32> {
        match self.wishes.source {
            Source::Device(ordinal) if self.region.is_none() => Some(ordinal as u32),
            _ => None,
        }
    }

    /// A free is done in a pool that keeps nothing.
    fn tidy(&self) {
        let mut reserve = self.reserve.lock();
        if reserve.is_closed || self.is_imported() {
            reserve.release(self, 0);
        }
        drop(reserve);
        self.end_if_ended();
    }
}
