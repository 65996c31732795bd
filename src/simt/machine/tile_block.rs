//! Blocks of kernels over tiles ([`crate::tile`]): what such a block asks of the world is what a lane would. Its accesses pass
//! the funnel, as those of the one thread that it is here.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::isa::lanes::WARP;
use crate::isa::mma::Architecture;
use crate::program;
use crate::simt::cause::Cause;
use crate::tile::{Host, Order, Run, Stepped, Strength, to_go_on};

use super::access;
use super::context::{Cx, RawFault, TileBlock};
use super::observe::{Atomic, Direction};
use super::raw::Raw;

/// Runs the block for a while, as the system call does ([`crate::tile::SYSTEM_CALL`]). `variables` is the address of a table
/// with those of the module's variables, `site` the one that the call stands for.
///
/// # Errors
/// An address that is none of the kernel's, a failed assertion, bytecode that makes no sense.
pub fn step<const WATCHED: bool>(
    cx: &Cx<'_>,
    lane: usize,
    (entry, variables, site): (usize, u64, u32),
) -> Result<u32, RawFault> {
    let mut world = World::<WATCHED> { cx, lane, variables };
    let number = cx.block.env.block_number(cx.block.ctaid);
    let parked = cx.block.env.tile_blocks().lock().remove(&number);
    let mut run = match parked {
        Some(TileBlock { fault: Some(fault), .. }) => return Err(fault),
        Some(TileBlock { run, fault: None }) => run,
        None => {
            let module = cx.function.source.tiles.as_ref();
            let run = module.and_then(|module| Run::new(Arc::clone(module), entry, &world));
            Box::new(run.ok_or_else(|| world.wrong("a call for tiles outside of a kernel over tiles".into()))?)
        }
    };
    let (fault, others) = match run.step(&mut world) {
        Ok(Stepped::Done) => return Ok(0),
        Ok(Stepped::More) => (None, true),
        Ok(Stepped::Elsewhere) => (None, false),
        Err(fault) if run.site() == site => return Err(fault),
        Err(fault) => (Some(fault), false),
    };
    let next = to_go_on(run.site(), others);
    match cx.block.env.tile_blocks().lock().entry(number) {
        Entry::Vacant(place) => drop(place.insert(TileBlock { run, fault })),
        Entry::Occupied(_) => return Err(world.wrong("two tile blocks of one number".into())),
    }
    Ok(next)
}

struct World<'a, 'c, const WATCHED: bool> {
    cx: &'a Cx<'c>,
    lane: usize,
    variables: u64,
}

impl<const WATCHED: bool> World<'_, '_, WATCHED> {
    fn check(&self, address: u64, bytes: u64, element: u32, direction: Direction) -> Result<(), RawFault> {
        if !address.is_multiple_of(element.into()) {
            return Err(RawFault::misaligned(address, element.into(), self.lane));
        }
        access::one::<WATCHED>(self.cx, self.lane, address, bytes, direction)
    }

    /// As `check`, of one element, of which nobody is told yet.
    fn may(&self, address: u64, bytes: u32, direction: Direction) -> Result<(), RawFault> {
        if !address.is_multiple_of(bytes.into()) {
            return Err(RawFault::misaligned(address, bytes.into(), self.lane));
        }
        access::one::<false>(self.cx, self.lane, address, bytes.into(), direction)
    }

    fn tell(
        &self,
        place: (u64, u32),
        direction: Direction,
        Strength { order, scope }: Strength,
        what: (Option<Atomic>, bool),
    ) {
        let ordering = match order {
            Order::Relaxed => program::Ordering::Relaxed,
            Order::Acquire => program::Ordering::Acquire,
            Order::Release => program::Ordering::Release,
            Order::AcquireRelease => program::Ordering::AcqRel,
        };
        access::tell_strong::<WATCHED>(self.cx, self.lane, place, direction, (ordering, scope), what);
    }
}

impl<const WATCHED: bool> Host for World<'_, '_, WATCHED> {
    type Fault = RawFault;
    const WATCHED: bool = WATCHED;

    fn block(&self) -> [u32; 3] {
        self.cx.block.ctaid
    }

    fn grid(&self) -> [u32; 3] {
        self.cx.launch().grid
    }

    fn tensor_cores(&self) -> Architecture {
        self.cx.launch().tensor
    }

    fn parameter(&self, offset: u32, bytes: u32) -> u64 {
        let parameters = &self.cx.launch().params;
        let raw = parameters.get(offset as usize..).unwrap_or_default();
        raw.iter()
            .take(bytes as usize)
            .rev()
            .fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    fn variable(&mut self, number: usize) -> Result<u64, RawFault> {
        let place = self.variables.wrapping_add(8 * number as u64);
        access::bytes::<WATCHED, 8>(self.cx, self.lane, place).map(u64::from_le_bytes)
    }

    fn read(&mut self, address: u64, element: u32, into: &mut [u8]) -> Result<(), RawFault> {
        self.check(address, into.len() as u64, element, Direction::Read)?;
        // SAFETY: the funnel has just found that as many bytes may be read there.
        unsafe { std::ptr::copy_nonoverlapping(address as *const u8, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    fn write(&mut self, address: u64, element: u32, from: &[u8]) -> Result<(), RawFault> {
        self.check(address, from.len() as u64, element, Direction::Write)?;
        // SAFETY: the funnel has just found that as many bytes may be written there.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), address as *mut u8, from.len()) };
        Ok(())
    }

    fn load(&mut self, address: u64, bytes: u32, strength: Strength) -> Result<u64, RawFault> {
        self.may(address, bytes, Direction::Read)?;
        self.tell((address, bytes), Direction::Read, strength, (None, false));
        let order = match strength.order {
            Order::Relaxed => Ordering::Relaxed,
            Order::Acquire | Order::Release | Order::AcquireRelease => Ordering::Acquire,
        };
        // SAFETY: the funnel has just found that as many bytes may be read there, and that they are aligned.
        let bits = unsafe {
            match bytes {
                1 => u8::load_strong(address as *const u8, order).into(),
                2 => u16::load_strong(address as *const u16, order).into(),
                4 => u32::load_strong(address as *const u32, order).into(),
                _ => u64::load_strong(address as *const u64, order),
            }
        };
        self.tell((address, bytes), Direction::Read, strength, (None, true));
        Ok(bits)
    }

    fn store(&mut self, address: u64, bytes: u32, value: u64, strength: Strength) -> Result<(), RawFault> {
        self.may(address, bytes, Direction::Write)?;
        self.tell((address, bytes), Direction::Write, strength, (None, false));
        let order = match strength.order {
            Order::Relaxed => Ordering::Relaxed,
            Order::Acquire | Order::Release | Order::AcquireRelease => Ordering::Release,
        };
        // SAFETY: the funnel has just found that as many bytes may be written there, and that they are aligned.
        unsafe {
            match bytes {
                1 => u8::store_strong(address as *mut u8, value as u8, order),
                2 => u16::store_strong(address as *mut u16, value as u16, order),
                4 => u32::store_strong(address as *mut u32, value as u32, order),
                _ => u64::store_strong(address as *mut u64, value, order),
            }
        }
        Ok(())
    }

    fn update(
        &mut self,
        address: u64,
        bytes: u32,
        strength: Strength,
        is_swap: bool,
        new: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<u64, RawFault> {
        self.may(address, bytes, Direction::Atomic)?;
        let mut atomic = Atomic {
            is_blind: false,
            is_swap,
            failed: 0,
        };
        self.tell((address, bytes), Direction::Atomic, strength, (Some(atomic), false));
        let (success, failure) = match strength.order {
            Order::Relaxed => (Ordering::Relaxed, Ordering::Relaxed),
            Order::Acquire => (Ordering::Acquire, Ordering::Acquire),
            Order::Release => (Ordering::Release, Ordering::Relaxed),
            Order::AcquireRelease => (Ordering::AcqRel, Ordering::Acquire),
        };
        macro_rules! update {
            ($atomic:ty, $bits:ty) => {{
                // SAFETY: the funnel has just found that these bytes may be read and written, and that they are aligned; others
                // reach this memory only through raw pointers and atomics.
                let place = unsafe { <$atomic>::from_ptr(address as *mut $bits) };
                let was = place.fetch_update(success, failure, |old| new(old.into()).map(|bits| bits as $bits));
                was.map(u64::from).map_err(u64::from)
            }};
        }
        let was = match bytes {
            1 => update!(AtomicU8, u8),
            2 => update!(AtomicU16, u16),
            4 => update!(AtomicU32, u32),
            _ => update!(AtomicU64, u64),
        };
        if was.is_err() {
            atomic.failed = 1 << (self.lane % WARP);
        }
        self.tell((address, bytes), Direction::Atomic, strength, (Some(atomic), true));
        Ok(was.unwrap_or_else(|old| old))
    }

    fn print(&mut self, text: &[u8]) {
        self.cx.launch().services.print(text);
    }

    fn assertion(&mut self, message: &str, index: &[usize], others: usize) -> RawFault {
        let [x, y, z] = self.cx.block.ctaid;
        let element = match index {
            [] => String::new(),
            index => format!(", element {index:?} and {others} others"),
        };
        let failed = format!("tile block: [{x},{y},{z}]{element} Assertion `{message}` failed.");
        self.cx.launch().services.assert_failed(&failed);
        RawFault::new(Cause::Assert, self.lane)
    }

    fn wrong(&mut self, why: String) -> RawFault {
        RawFault::instruction(why, self.lane)
    }
}
