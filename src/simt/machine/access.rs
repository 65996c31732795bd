//! The funnel: every access of a kernel to memory has its addresses formed and checked here, and only here, before
//! anybody touches memory.
//!
//! Global and generic addresses are checked against the address space's map (and, failing that, the block's own windows
//! and registered host ranges), shared and local ones against their windows, all against the alignment that the ISA
//! demands (PTX ISA, Addresses as Operands: naturally aligned to the access size). There are three doors: [`lanes`] for
//! the lanes of a warp, [`pattern`] for lanes whose addresses follow each other, and [`one`] for a range that a single lane
//! names. Observers are told here, too, but by [`tell_rows`] and [`tell`] after a pattern, which whoever found it calls. Sums of addresses wrap around as registers do; what is compared never does.

use crate::isa::lanes::{WARP, Width};
use crate::memory::{AddressSpace, READ, View, WRITE};
use crate::program::{Address, Ordering, Proxy, Scope, Space};
use crate::ptx::ast::Span;
use crate::simt::cause::Cause;

use super::context::{Cx, Env, NONE, RawFault};
use super::lines;
use super::observe::{Access, Atomic, Direction, RowAccess, Stored};
use super::slots::{Slot, bits, read};

/// A memory access: where the address comes from, which slots carry data.
pub struct MemOp {
    pub offset: i64,
    /// Offset of the address register, or [`NONE`].
    pub register: u32,
    /// The address register is 32 bits wide.
    pub narrow: bool,
    /// The value that the address register would hold, if it follows the lane's number, or [`NONE`].
    pub affine: u32,
    /// Where the window has room for what the last accesses tell of the next ([`ahead`]), or [`NONE`].
    pub recent: u32,
    pub space: Space,
    pub ordering: Ordering,
    pub scope: Option<Scope>,
    /// Slot offsets of the elements; [`NONE`] for a sink.
    pub data: Box<[u32]>,
    /// The instruction, for observers.
    pub span: Span,
}

impl MemOp {
    /// An access to `address`, which is found in registers.
    pub fn new(
        address: &Address<Slot>,
        (ordering, scope): (Ordering, Option<Scope>),
        data: Box<[u32]>,
        span: Span,
    ) -> MemOp {
        MemOp {
            offset: address.offset,
            register: address.register.map_or(NONE, |r: Slot| r.offset),
            narrow: address.register.is_some_and(|r| r.width == Width::B32),
            affine: NONE,
            recent: NONE,
            space: address.space,
            ordering,
            scope,
            data,
            span,
        }
    }
}

/// Bytes of a device string that are read at most.
const MAX_STRING: usize = 1 << 20;

/// Carries out an access for the lanes of `cx.mask`; `false`: `cx.fault` says why not.
pub type AccessFn = unsafe fn(&mut Cx<'_>, &MemOp) -> bool;

/// Addresses of one warp's lanes.
pub type Lanes = [u64; WARP];

impl Direction {
    /// Bits of the map that the access asks for.
    #[inline(always)]
    pub fn bits(self) -> u8 {
        match self {
            Direction::Read => READ,
            Direction::Write => WRITE,
            Direction::Atomic => READ | WRITE,
        }
    }

    fn writes(self) -> bool {
        self != Direction::Read
    }
}

/// Forms and checks the addresses of the lanes `active` of warp `w`, `bytes` (a power of two) from each; `false`: a lane may
/// not, and `cx.fault` says which.
///
/// # Safety
/// `op.register` is a slot of the running window.
#[inline(always)]
pub unsafe fn lanes<const WATCHED: bool>(
    cx: &mut Cx<'_>,
    op: &MemOp,
    w: usize,
    active: u32,
    bytes: u64,
    direction: Direction,
    out: &mut Lanes,
) -> bool {
    // SAFETY: `op.register` is a slot of the running window, which is what `addresses` asks for.
    let good = unsafe { addresses(cx, op, w, active, bytes, direction, out) }
        && check_lanes(cx, op.space, w, active, out, bytes, direction);
    if WATCHED && good {
        tell::<WATCHED>(cx, op, w, active, out, bytes, direction, Proxy::Generic);
    }
    good
}

/// Tells the observer of an access that was checked.
#[allow(
    clippy::too_many_arguments,
    reason = "what an observer is told of an access: all of it is at hand here and nowhere together before"
)]
pub(super) fn tell<const WATCHED: bool>(
    cx: &Cx<'_>,
    op: &MemOp,
    warp: usize,
    lanes: u32,
    addresses: &Lanes,
    bytes: u64,
    direction: Direction,
    proxy: Proxy,
) {
    if WATCHED && let Some(observer) = cx.block.env.watch().observer() {
        let access = Access {
            proxy,
            ..generic(cx, op, (warp, lanes), addresses, bytes, direction)
        };
        observer.access(&cx.who(op.span), &access);
    }
}

/// Tells the observer of a weak access that follows a pattern, of `count` lanes of warps `warp` and up, in runs of `lanes` lanes;
/// `stored`: of a store, what each of these lanes is about to write.
#[inline(always)]
pub(super) fn tell_rows(
    cx: &Cx<'_>,
    op: &MemOp,
    (warp, count): (usize, usize),
    (firsts, lanes, step): (&[u64], usize, u64),
    bytes: u64,
    direction: Direction,
    stored: Option<&Stored<'_>>,
) {
    if let Some(observer) = cx.block.env.watch().observer() {
        let rows = RowAccess {
            warp,
            warps: count / WARP,
            firsts,
            lanes,
            step,
            bytes: bytes as u32,
            element: bytes as u32 / (op.data.len() as u32).max(1),
            space: op.space,
            direction,
            stored,
        };
        observer.rows(&cx.who(op.span), &rows);
    }
}

/// Addresses of lanes that are near a place.
#[inline(always)]
pub(super) fn from(place: u64, distances: &Distances) -> Lanes {
    distances.map(|distance| place.wrapping_add(distance.into()))
}

/// Tells the observer of a store that was checked; `stored` puts into the bytes what a lane is about to write.
pub(super) fn tell_store(
    cx: &Cx<'_>,
    op: &MemOp,
    lanes: (usize, u32),
    addresses: &Lanes,
    bytes: u64,
    stored: &Stored<'_>,
) {
    if let Some(observer) = cx.block.env.watch().observer() {
        let access = Access {
            stored: Some(stored),
            ..generic(cx, op, lanes, addresses, bytes, Direction::Write)
        };
        observer.access(&cx.who(op.span), &access);
    }
}

/// Tells the observer that a strong read is done.
pub(super) fn tell_done(cx: &Cx<'_>, op: &MemOp, lanes: (usize, u32), addresses: &Lanes, bytes: u64) {
    if let Some(observer) = cx.block.env.watch().observer() {
        let access = generic(cx, op, lanes, addresses, bytes, Direction::Read);
        observer.has_read(&cx.who(op.span), &access);
    }
}

/// Tells the observer of an atomic that was checked, and again when it is done.
pub(super) fn tell_atomic(
    cx: &Cx<'_>,
    op: &MemOp,
    lanes: (usize, u32),
    addresses: &Lanes,
    bytes: u64,
    (atomic, is_done): (Atomic, bool),
) {
    if let Some(observer) = cx.block.env.watch().observer() {
        let access = Access {
            atomic: Some(atomic),
            ..generic(cx, op, lanes, addresses, bytes, Direction::Atomic)
        };
        match is_done {
            false => observer.access(&cx.who(op.span), &access),
            true => observer.has_read(&cx.who(op.span), &access),
        }
    }
}

/// An access by the generic proxy, of lanes of a warp.
fn generic<'a>(
    cx: &Cx<'_>,
    op: &MemOp,
    (warp, lanes): (usize, u32),
    addresses: &'a Lanes,
    bytes: u64,
    direction: Direction,
) -> Access<'a> {
    Access {
        warp,
        lanes,
        addresses,
        bytes: bytes as u32,
        element: bytes as u32 / (op.data.len() as u32).max(1),
        space: op.space,
        direction,
        ordering: op.ordering,
        scope: op.scope,
        proxy: Proxy::Generic,
        operation: cx.operation,
        stored: None,
        atomic: None,
    }
}

/// Tells the observer of a weak access of one lane.
pub(super) fn tell_one<const WATCHED: bool>(
    cx: &Cx<'_>,
    lane: usize,
    (address, bytes): (u64, u64),
    space: Space,
    direction: Direction,
    proxy: Proxy,
) {
    if WATCHED && let Some(observer) = cx.block.env.watch().observer() {
        let mut addresses = [0; WARP];
        addresses[lane % WARP] = address;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let access = Access {
            warp: lane / WARP,
            lanes: 1 << (lane % WARP),
            addresses: &addresses,
            bytes,
            element: bytes,
            space,
            direction,
            ordering: Ordering::Weak,
            scope: None,
            proxy,
            operation: cx.operation,
            stored: None,
            atomic: None,
        };
        observer.access(&cx.who(cx.span), &access);
    }
}

/// Tells the observer of a strong access of one lane to a generic address, and of what is read again when it is done.
pub(super) fn tell_strong<const WATCHED: bool>(
    cx: &Cx<'_>,
    lane: usize,
    (address, bytes): (u64, u32),
    direction: Direction,
    (ordering, scope): (Ordering, Scope),
    (atomic, is_done): (Option<Atomic>, bool),
) {
    if WATCHED && let Some(observer) = cx.block.env.watch().observer() {
        let mut addresses = [0; WARP];
        addresses[lane % WARP] = address;
        let access = Access {
            warp: lane / WARP,
            lanes: 1 << (lane % WARP),
            addresses: &addresses,
            bytes,
            element: bytes,
            space: Space::Generic,
            direction,
            ordering,
            scope: Some(scope),
            proxy: Proxy::Generic,
            operation: cx.operation,
            stored: None,
            atomic,
        };
        match is_done {
            false => observer.access(&cx.who(cx.span), &access),
            true => observer.has_read(&cx.who(cx.span), &access),
        }
    }
}

/// Lines of a tile that a warp names by one address, that of its first active lane: line `i` lies `offsets[i]` bytes
/// behind it and stands for lane `i`, whose bit `lines` has; `bytes` of each, from a multiple of `align`. `false`: the warp
/// may not, and `cx.fault` says which line.
///
/// # Safety
/// `op.register` is a slot of the running window.
pub unsafe fn tile<const WATCHED: bool>(
    cx: &mut Cx<'_>,
    op: &MemOp,
    w: usize,
    (lines, offsets): (u32, &Lanes),
    (bytes, align): (u64, u64),
    direction: Direction,
    out: &mut Lanes,
) -> bool {
    let first = cx.mask.lanes[w].trailing_zeros() as usize % WARP;
    let register = if op.register == NONE {
        0
    } else {
        let width = if op.narrow { Width::B32 } else { Width::B64 };
        let slot = Slot {
            offset: op.register,
            width,
        };
        // SAFETY: the register is a slot of the running window, which has a value for each lane of the warp.
        unsafe { read(cx.regs, slot, w * WARP + first) }
    };
    let base = register.wrapping_add(op.offset as u64);
    let block = cx.block;
    // By itself an offset is the block's own; an address in a register says whose it is.
    let start = match op.register {
        NONE => block.shared_start(),
        _ => 0,
    };
    for i in bits(lines) {
        let mut at = base.wrapping_add(offsets[i]);
        match op.space {
            Space::Shared => {
                let address = (at as u32).wrapping_add(start);
                let Ok(there) = block.in_cluster(address, bytes) else {
                    let fault = RawFault::illegal(
                        address.into(),
                        bytes,
                        direction.writes(),
                        w * WARP + first,
                        Space::Shared,
                    );
                    cx.fault = Some(fault);
                    return false;
                };
                at = there;
            }
            // A tile in the lanes' own memory has a generic address, of the first lane's.
            Space::Generic | Space::Global | Space::Const | Space::Local | Space::Param => {}
        }
        if !check_range(cx, op.space, w * WARP + first, at, (bytes, align), direction) {
            return false;
        }
        out[i] = at;
    }
    if WATCHED {
        tell::<WATCHED>(cx, op, w, lines, out, bytes, direction, Proxy::Generic);
    }
    true
}

/// A range that one lane names by a generic address.
///
/// # Errors
/// It is not the kernel's.
pub fn one<const WATCHED: bool>(
    cx: &Cx<'_>,
    lane: usize,
    address: u64,
    bytes: u64,
    direction: Direction,
) -> Result<(), RawFault> {
    if !allowed(cx, lane, address, bytes, direction.bits()) {
        return Err(RawFault::illegal(
            address,
            bytes,
            direction.writes(),
            lane,
            Space::Generic,
        ));
    }
    if WATCHED {
        tell_one::<WATCHED>(cx, lane, (address, bytes), Space::Generic, direction, Proxy::Generic);
    }
    Ok(())
}

/// A range that one lane reaches by an operation, at an address that it does not name itself.
///
/// # Errors
/// It is not the kernel's.
pub(super) fn one_of<const WATCHED: bool>(
    cx: &Cx<'_>,
    op: &MemOp,
    lane: usize,
    (address, bytes): (u64, u64),
    direction: Direction,
) -> Result<(), RawFault> {
    if !allowed(cx, lane, address, bytes, direction.bits()) {
        let space = Space::Generic;
        return Err(RawFault::illegal(address, bytes, direction.writes(), lane, space));
    }
    if WATCHED {
        let mut addresses: Lanes = [0; WARP];
        addresses[lane % WARP] = address;
        let one = 1 << (lane % WARP);
        tell::<WATCHED>(cx, op, lane / WARP, one, &addresses, bytes, direction, Proxy::Generic);
    }
    Ok(())
}

/// `N` bytes that a lane may read.
///
/// # Errors
/// They are not the kernel's.
pub fn bytes<const WATCHED: bool, const N: usize>(cx: &Cx<'_>, lane: usize, address: u64) -> Result<[u8; N], RawFault> {
    one::<WATCHED>(cx, lane, address, N as u64, Direction::Read)?;
    // SAFETY: `one` has just found that the lane may read `N` bytes there; any bytes make such an array.
    Ok(unsafe { (address as *const [u8; N]).read_unaligned() })
}

/// A NUL-terminated string that the kernel may read, without the NUL; `most` bytes of it, or as many as there is room
/// for.
pub(super) fn string<const WATCHED: bool>(
    cx: &Cx<'_>,
    lane: usize,
    address: u64,
    most: usize,
) -> Result<Vec<u8>, RawFault> {
    let mut out = Vec::new();
    for i in 0..most.min(MAX_STRING) as u64 {
        let [c] = bytes::<WATCHED, 1>(cx, lane, address.wrapping_add(i))?;
        if c == 0 || out.try_reserve(1).is_err() {
            break;
        }
        out.push(c);
    }
    Ok(out)
}

/// Addresses as the process knows them for the lanes of warp `w`; shared and local offsets are checked here (a lane
/// outside its window leaves a fault). Lanes outside `active` get the first active lane's address.
///
/// # Safety
/// `op.register` is a slot of the running window.
#[inline(always)]
pub(super) unsafe fn addresses(
    cx: &mut Cx<'_>,
    op: &MemOp,
    w: usize,
    active: u32,
    bytes: u64,
    direction: Direction,
    out: &mut Lanes,
) -> bool {
    if op.register == NONE {
        *out = [op.offset as u64; WARP];
    } else if op.affine != NONE {
        // SAFETY: the value is there where the operation names one.
        unsafe { lines::values(cx, op, w, out) };
        for a in out.iter_mut() {
            *a = a.wrapping_add(op.offset as u64);
        }
    } else {
        // SAFETY: the register is a slot of the running window, so its start lies in it.
        let base = unsafe { cx.regs.add(op.register as usize) };
        if op.narrow {
            // SAFETY: a B32 slot holds `warps × [u32; 32]`.
            let regs = unsafe { &*(base as *const [u32; WARP]).add(w) };
            for i in 0..WARP {
                out[i] = (u64::from(regs[i])).wrapping_add(op.offset as u64);
            }
        } else {
            // SAFETY: a B64 slot holds `warps × [u64; 32]`.
            let regs = unsafe { &*(base as *const [u64; WARP]).add(w) };
            for i in 0..WARP {
                out[i] = regs[i].wrapping_add(op.offset as u64);
            }
        }
    }
    let block = cx.block;
    let write = direction.writes();
    match op.space {
        Space::Generic | Space::Global | Space::Const => {}
        Space::Shared => {
            // By itself an offset is the block's own; an address in a register says whose it is.
            let start = match op.register {
                NONE => 0,
                _ => u64::from(block.shared_start()),
            };
            let mut high = 0u64;
            for (i, a) in out.iter_mut().enumerate() {
                *a = a.wrapping_sub(start) & 0xffff_ffff;
                let active = u64::from(active >> i & 1).wrapping_neg();
                high = high.max(*a & active);
            }
            if high + bytes > u64::from(block.shared_bytes) {
                return beyond(cx, w, active, bytes, write, out);
            }
            for a in out.iter_mut() {
                *a = a.wrapping_add(block.shared);
            }
        }
        Space::Local => {
            let frame = if op.register == NONE { u64::from(cx.frame) } else { 0 };
            let limit = u64::from(block.local_stride);
            let lane0 = u64::from(cx.first_thread) + (w * WARP) as u64;
            for (i, a) in out.iter_mut().enumerate() {
                let offset = a.wrapping_add(frame) & 0xffff_ffff;
                if active >> i & 1 == 1 && offset + bytes > limit {
                    let last = limit.checked_sub(bytes);
                    return outside(cx, op.space, (w, i), active, out, (frame, last), bytes, write);
                }
                *a = block.local + (lane0 + i as u64) * limit + offset;
            }
        }
        Space::Param => {
            // The last place from which so many bytes can be read.
            let last = u64::from(block.param_bytes).checked_sub(bytes);
            for (i, a) in out.iter_mut().enumerate() {
                if active >> i & 1 == 1 && last.is_none_or(|last| *a > last) {
                    return outside(cx, op.space, (w, i), active, out, (0, last), bytes, write);
                }
                *a = a.wrapping_add(block.param);
            }
        }
    }
    true
}

/// A lane's address lies outside of its window: leaves the fault. `from` is added to addresses, and `last` the last place that
/// there is.
#[cold]
#[inline(never)]
#[allow(
    clippy::too_many_arguments,
    reason = "what an access is: all of it is at hand where the address is formed and nowhere together before"
)]
fn outside(
    cx: &mut Cx<'_>,
    space: Space,
    (w, lane): (usize, usize),
    active: u32,
    a: &Lanes,
    (from, last): (u64, Option<u64>),
    bytes: u64,
    write: bool,
) -> bool {
    let at = |i: usize| match space {
        Space::Local => a[i].wrapping_add(from) & 0xffff_ffff,
        Space::Generic | Space::Global | Space::Const | Space::Shared | Space::Param => a[i].wrapping_add(from),
    };
    let others = others(active, lane, &|i| last.is_none_or(|last| at(i) > last));
    let fault = RawFault::illegal(at(lane), bytes, write, w * WARP + lane, space);
    cx.fault = Some(RawFault { others, ..fault });
    false
}

/// The lanes after the first that is wrong, of those that take part, which are wrong as well.
fn others(active: u32, first: usize, is_wrong: &dyn Fn(usize) -> bool) -> u32 {
    let after = bits(active).filter(|&lane| lane > first && is_wrong(lane));
    after.fold(0, |mask, lane| mask | 1 << lane)
}

/// Shared addresses that are not all in the block's own window, from whose start `out` counts: other blocks of the cluster have
/// theirs.
#[cold]
#[inline(never)]
fn beyond(cx: &mut Cx<'_>, w: usize, active: u32, bytes: u64, write: bool, out: &mut Lanes) -> bool {
    let block = cx.block;
    let find = |at: u64| {
        let address = (at as u32).wrapping_add(block.shared_start());
        let found = block.in_cluster(address, must_be_there(address.into(), bytes, write));
        found.map_err(|_| address)
    };
    for i in bits(active) {
        match find(out[i]) {
            Ok(at) => out[i] = at,
            Err(address) => {
                let others = others(active, i, &|i| find(out[i]).is_err());
                let fault = RawFault::illegal(address.into(), bytes, write, w * WARP + i, Space::Shared);
                cx.fault = Some(RawFault { others, ..fault });
                return false;
            }
        }
    }
    true
}

/// How much of an access to shared memory must lie in what the block has. Of a load, its beginning: a multiprocessor gives
/// shared memory in portions of 128 bytes, and compilers make one vector of loads of which the last is not needed.
pub(super) fn must_be_there(address: u64, bytes: u64, write: bool) -> u64 {
    let aligned = bytes.is_power_of_two() && address & (bytes - 1) == 0;
    if write || !aligned || bytes > 32 { bytes } else { 1 }
}

/// Whether lane `lane` may touch `[address, address + bytes)`: arena pages, the block's shared and its own local window,
/// parameters, host ranges.
#[inline(always)]
pub fn allowed(cx: &Cx<'_>, lane: usize, address: u64, bytes: u64, bits: u8) -> bool {
    cx.block.view.check(address, bytes, bits) || allowed_elsewhere(cx, lane, address, bytes, bits)
}

#[cold]
#[inline(never)]
fn allowed_elsewhere(cx: &Cx<'_>, lane: usize, address: u64, bytes: u64, bits: u8) -> bool {
    let b = cx.block;
    let within = |base: u64, len: u64| address >= base && bytes <= len && address - base <= len - bytes;
    let shared = u32::try_from(address.wrapping_sub(b.cluster_shared()));
    let asked = must_be_there(address, bytes, bits != READ);
    shared.is_ok_and(|shared| b.in_cluster(shared, asked).is_ok())
        || within(cx.local(lane), u64::from(b.local_stride))
        || (bits == READ && within(b.param, u64::from(b.param_bytes)))
        || AddressSpace::get().host_range_contains(address, bytes, bits)
        || AddressSpace::get().allows_exactly(b.view, address, bytes, bits)
}

/// Whether kernels of any grid may touch a range: what stays when a block has gone.
pub fn anybody(view: View, address: u64, bytes: u64, bits: u8) -> bool {
    bytes == 0
        || view.check(address, bytes, bits)
        || AddressSpace::get().host_range_contains(address, bytes, bits)
        || AddressSpace::get().allows_exactly(view, address, bytes, bits)
}

/// Whether an access reaches memory that others than the threads of the block may see; one that is not allowed does not.
///
/// # Safety
/// `op.register` is a slot of the running window.
pub unsafe fn leaves_block(cx: &mut Cx<'_>, op: &MemOp) -> bool {
    if windowed(op.space) || op.space == Space::Const {
        return false;
    }
    let within = |x: u64, base: u64, len: u64| x.wrapping_sub(base) < len;
    (0..cx.mask.warps as usize).any(|w| {
        let mut at: Lanes = [0; WARP];
        // SAFETY: the caller promises it of the register. Addresses of these spaces are formed without a check.
        unsafe { addresses(cx, op, w, cx.mask.lanes[w], 1, Direction::Read, &mut at) };
        let block = cx.block;
        bits(cx.mask.lanes[w])
            .any(|i| block.shared_address(at[i]).is_none() && !within(at[i], block.local, block.local_bytes))
    })
}

/// Whether memory that was checked before is still there, as an asynchronous operation completes.
///
/// # Errors
/// It is not.
pub(super) fn still(env: &Env<'_>, address: u64, bytes: u64, direction: Direction) -> Result<(), Cause> {
    let within = |base: u64, len: u64| address >= base && bytes <= len && address - base <= len - bytes;
    // Windows of a cluster's blocks stay as long as one of them runs.
    let last = address.saturating_add(bytes.saturating_sub(1));
    let is_there = (env.shared_address(address).is_some() && env.shared_address(last).is_some())
        || within(env.local, env.local_bytes)
        || within(env.param, env.param_bytes.into())
        || anybody(env.view, address, bytes, direction.bits());
    match is_there {
        true => Ok(()),
        false => Err(RawFault::illegal(address, bytes, direction.writes(), 0, Space::Generic).cause),
    }
}

/// Whether an address that the program gave by space needs no map check: its window was checked when it was formed.
#[inline(always)]
fn windowed(space: Space) -> bool {
    matches!(space, Space::Shared | Space::Local | Space::Param)
}

/// Checks the active lanes' addresses for range and alignment; the first offender leaves a fault.
#[inline(always)]
pub(super) fn check_lanes(
    cx: &mut Cx<'_>,
    space: Space,
    w: usize,
    active: u32,
    a: &Lanes,
    bytes: u64,
    direction: Direction,
) -> bool {
    let bits = direction.bits();
    let (mut low, mut high, mut all) = (u64::MAX, 0u64, 0u64);
    for (i, &x) in a.iter().enumerate() {
        let on = u64::from(active >> i & 1).wrapping_neg();
        low = low.min(x | !on);
        high = high.max(x & on);
        all |= x & on;
    }
    let aligned = all & (bytes - 1) == 0;
    let span = high.wrapping_sub(low);
    if aligned && (windowed(space) || (span < 1 << 16 && cx.block.view.check(low, span + bytes, bits))) {
        return true;
    }
    check_each(cx, space, w, active, a, bytes, direction)
}

#[inline(never)]
fn check_each(
    cx: &mut Cx<'_>,
    space: Space,
    w: usize,
    active: u32,
    a: &Lanes,
    bytes: u64,
    direction: Direction,
) -> bool {
    if !windowed(space) && lie_in_one(cx, active, a, bytes, direction) {
        return true;
    }
    let here: &Cx<'_> = cx;
    let is_illegal = |i: usize| !windowed(space) && !allowed(here, w * WARP + i, a[i], bytes, direction.bits());
    let is_misaligned = |i: usize| a[i] & (bytes - 1) != 0;
    let found = bits(active).find_map(|i| {
        let (address, lane) = (a[i], w * WARP + i);
        let (fault, is_wrong): (RawFault, &dyn Fn(usize) -> bool) = if is_illegal(i) {
            let fault = RawFault::illegal(address, bytes, direction.writes(), lane, space);
            (fault, &is_illegal)
        } else if is_misaligned(i) {
            (RawFault::misaligned(address, bytes, lane), &is_misaligned)
        } else {
            return None;
        };
        let others = others(active, i, is_wrong);
        Some(RawFault { others, ..fault })
    });
    let good = found.is_none();
    if !good {
        cx.fault = found;
    }
    good
}

/// Whether lanes may touch a range together. A look at the map does not always say so where accesses are checked to the byte.
#[inline(always)]
pub(super) fn all_allowed(view: View, address: u64, bytes: u64, bits: u8) -> bool {
    view.check(address, bytes, bits) || allowed_exactly(view, address, bytes, bits)
}

#[cold]
#[inline(never)]
fn allowed_exactly(view: View, address: u64, bytes: u64, bits: u8) -> bool {
    AddressSpace::get().allows_exactly(view, address, bytes, bits)
}

/// Whether all of the lanes' aligned accesses lie near each other in one allocation: where accesses are checked to the byte, those to
/// its last page come here.
fn lie_in_one(cx: &Cx<'_>, active: u32, a: &Lanes, bytes: u64, direction: Direction) -> bool {
    let (mut low, mut high, mut all) = (u64::MAX, 0, 0);
    for i in bits(active) {
        (low, high, all) = (low.min(a[i]), high.max(a[i]), all | a[i]);
    }
    all & (bytes - 1) == 0
        && high.wrapping_sub(low) < 1 << 16
        && AddressSpace::get().allows_exactly(
            cx.block.view,
            low,
            high.wrapping_sub(low).wrapping_add(bytes),
            direction.bits(),
        )
}

/// Checks one lane's range of any length, whose start is a multiple of `align`; a fault is left if it is not the kernel's.
pub(super) fn check_range(
    cx: &mut Cx<'_>,
    space: Space,
    lane: usize,
    address: u64,
    (bytes, align): (u64, u64),
    direction: Direction,
) -> bool {
    // Where the instruction names a window, that its first byte lies there was checked when the address was formed.
    if !allowed(cx, lane, address, bytes, direction.bits()) {
        // Addresses of a window count from its start.
        let start = if space == Space::Shared { cx.block.shared } else { 0 };
        let address = address.wrapping_sub(start);
        cx.fault = Some(RawFault::illegal(address, bytes, direction.writes(), lane, space));
        return false;
    }
    if address & (align - 1) != 0 {
        cx.fault = Some(RawFault::misaligned(address, align, lane));
        return false;
    }
    true
}

/// Distances of one warp's lanes from a place.
pub type Distances = [u32; WARP];

/// Where the lanes `active` of warp `w` may touch `bytes` (a power of two), for lanes that are near each other: a place, and
/// in `out` each active lane's distance from it, and of the others that of something that may be read as well. `None`: the long
/// way has to look.
///
/// # Safety
/// `op.register` is a slot of the running window.
#[inline(always)]
pub(super) unsafe fn near(
    cx: &Cx<'_>,
    op: &MemOp,
    w: usize,
    active: u32,
    bytes: u64,
    direction: Direction,
    out: &mut Distances,
) -> Option<u64> {
    // SAFETY: the caller vouches for the register; values are there where the operation names one.
    unsafe {
        if op.affine != NONE
            && cx.run >= WARP
            && let Some(place) = on_a_line(cx, op, w, active, bytes, direction, out)
        {
            return Some(place);
        }
        match (op.space, op.narrow) {
            (Space::Shared, true) => in_window(cx, op, w, active, bytes, out),
            (Space::Generic | Space::Global | Space::Const, false) if op.register != NONE => {
                nearby(cx, op, w, active, bytes, direction, out)
            }
            _ => None,
        }
    }
}

/// 32, as a number that the compiler does not know: a loop of that length becomes one of vectors, where one of 32 would be
/// taken apart before, lane by lane.
#[inline(always)]
pub(super) fn warp() -> usize {
    std::hint::black_box(WARP).min(WARP)
}

/// As [`near`], of lanes whose addresses are base and step: what their ends may, all between them may.
///
/// # Safety
/// `op` names a value that follows the lane's number through whole warps, and the bundle has computed it.
#[inline(always)]
unsafe fn on_a_line(
    cx: &Cx<'_>,
    op: &MemOp,
    w: usize,
    active: u32,
    bytes: u64,
    direction: Direction,
    out: &mut Distances,
) -> Option<u64> {
    // SAFETY: the caller vouches for the value.
    let (first, step) = unsafe { lines::line(cx, op, w) };
    if step >= lines::FAR {
        return None;
    }
    let low = active.trailing_zeros() % WARP as u32;
    let range = step * u64::from(31 - active.leading_zeros() % WARP as u32 - low);
    let from = first.wrapping_add(step * u64::from(low));
    let block = cx.block;
    let place = match (op.space, op.narrow) {
        (Space::Shared, true) => {
            let start = (op.offset as u32).wrapping_sub(block.shared_start());
            let from = u64::from((from as u32).wrapping_add(start));
            (from + range + bytes <= u64::from(block.shared_bytes)).then_some(block.shared + from)
        }
        (Space::Generic | Space::Global | Space::Const, false) => {
            let from = from.wrapping_add(op.offset as u64);
            all_allowed(block.view, from, range + bytes, direction.bits()).then_some(from)
        }
        _ => None,
    }?;
    let lanes = warp();
    for (i, at) in out[..lanes].iter_mut().enumerate() {
        // Lanes that take no part are where the first one is that does.
        *at = (step as u32).wrapping_mul((i as u32).wrapping_sub(low)) & (active >> i & 1).wrapping_neg();
    }
    ((place | step) & (bytes - 1) == 0).then_some(place)
}

/// As [`near`], from the start of the block's own shared window.
///
/// # Safety
/// `op.register` is a 32-bit slot of the running window.
#[inline(always)]
unsafe fn in_window(cx: &Cx<'_>, op: &MemOp, w: usize, active: u32, bytes: u64, out: &mut Distances) -> Option<u64> {
    let block = cx.block;
    let start = (op.offset as u32).wrapping_sub(block.shared_start());
    // SAFETY: the register is a slot of the running window, and a B32 slot holds `warps × [u32; 32]`, written or not.
    let mut values = unsafe { &*(cx.regs.add(op.register as usize) as *const Distances).add(w) };
    let on_a_line;
    if op.affine != NONE {
        let mut wide = [0; WARP];
        // SAFETY: the bundle runs code that names such values, so it has them.
        unsafe { lines::values(cx, op, w, &mut wide) };
        on_a_line = wide.map(|value| value as u32);
        values = &on_a_line;
    }
    let lanes = warp();
    let last = block.shared_bytes.checked_sub(bytes as u32)?;
    // What says that a lane may not: its highest bit if it is beyond the last place that there is, for the window has less than
    // 2^31 bytes, and those lower ones that it is not aligned by.
    let mut wrong = 0;
    for (i, (at, value)) in out[..lanes].iter_mut().zip(&values[..lanes]).enumerate() {
        *at = value.wrapping_add(start);
        // Lanes that take no part are where the window begins.
        *at &= (active >> i & 1).wrapping_neg();
        wrong |= ((*at | last.wrapping_sub(*at)) & 1 << 31) | (*at & (bytes as u32 - 1));
    }
    (wrong == 0 && block.shared & (bytes - 1) == 0).then_some(block.shared)
}

/// How far lanes may be from each other for one look at all between them.
const NEAR: u64 = 1 << 16;
/// How far from the first of them for distances of 32 bits.
const REACH: u64 = 1 << 31;

/// As [`near`], in the arena.
///
/// # Safety
/// `op.register` is a 64-bit slot of the running window.
#[inline(always)]
unsafe fn nearby(
    cx: &Cx<'_>,
    op: &MemOp,
    w: usize,
    active: u32,
    bytes: u64,
    direction: Direction,
    out: &mut Distances,
) -> Option<u64> {
    // SAFETY: the register is a slot of the running window, and a B64 slot holds `warps × [u64; 32]`, written or not.
    let mut values = unsafe { &*(cx.regs.add(op.register as usize) as *const Lanes).add(w) };
    let mut on_a_line = [0; WARP];
    if op.affine != NONE {
        // SAFETY: the bundle runs code that names such values, so it has them.
        unsafe { lines::values(cx, op, w, &mut on_a_line) };
        values = &on_a_line;
    }
    let lanes = warp();
    let start = values[active.trailing_zeros() as usize % WARP].wrapping_sub(REACH);
    let (mut beyond, mut low, mut high, mut all) = (0, u32::MAX, 0, 0);
    for (i, (at, value)) in out[..lanes].iter_mut().zip(&values[..lanes]).enumerate() {
        let on = u64::from(active >> i & 1).wrapping_neg();
        // Lanes that take no part are where the first one is that does.
        let far = (value.wrapping_sub(start) & on) | (REACH & !on);
        beyond |= far >> 32;
        *at = far as u32;
        low = low.min(*at);
        high = high.max(*at);
        all |= *at;
    }
    let base = start.wrapping_add(op.offset as u64);
    let span = u64::from(high.wrapping_sub(low));
    let view = &cx.block.view;
    let good = beyond == 0
        && (u64::from(all) | base) & (bytes - 1) == 0
        && match span < NEAR {
            true => view.check(base.wrapping_add(low.into()), span + bytes, direction.bits()),
            // Aligned accesses lie in one page each.
            false => view.check_pages(base, (low, high), &out[..lanes], direction.bits()),
        };
    good.then_some(base)
}

/// How the addresses of lanes that all take part follow each other, where that is simple; range and alignment are checked
/// then.
pub(super) enum Pattern {
    /// Element by element from here.
    Consecutive(u64),
    /// All the same one.
    Same(u64),
    /// Anything else, or something that the long way has to look at.
    Other,
}

/// Whether `lanes`, a multiple of `N` of them, count up from the first by `step`.
#[inline(always)]
fn counts_up<const N: usize>(lanes: &[u64], step: u64) -> bool {
    let mut expected: [u64; N] = std::array::from_fn(|i| lanes[0].wrapping_add(i as u64 * step));
    let mut differ = [0; N];
    for chunk in lanes.chunks_exact(N) {
        for i in 0..N {
            differ[i] |= chunk[i] ^ expected[i];
            expected[i] = expected[i].wrapping_add(N as u64 * step);
        }
    }
    differ.iter().fold(0, |all, d| all | d) == 0
}

/// As [`counts_up`], of 32-bit registers.
#[inline(always)]
fn counts_up_narrow<const N: usize>(lanes: &[u32], step: u32) -> bool {
    let mut expected: [u32; N] = std::array::from_fn(|i| lanes[0].wrapping_add(i as u32 * step));
    let mut differ = [0; N];
    for chunk in lanes.chunks_exact(N) {
        for i in 0..N {
            differ[i] |= chunk[i] ^ expected[i];
            expected[i] = expected[i].wrapping_add(N as u32 * step);
        }
    }
    differ.iter().fold(0, |all, d| all | d) == 0
}

/// Bytes of a window that [`ahead`] needs for an access.
pub const RECENT: u32 = 16;

/// A bundle touches `bytes` from `first` on. Loops over arrays go on by the stride of the grid, which no processor foresees:
/// where the last two steps of an access were the same, and long, what the next but one touches is fetched ahead.
///
/// # Safety
/// `op.recent` is a place of the running window.
#[inline(always)]
pub(super) unsafe fn ahead(cx: &Cx<'_>, op: &MemOp, first: u64, bytes: u64) {
    /// What processors foresee by themselves.
    const SHORT: u64 = 1 << 11;
    /// More than this is fetched as it is touched.
    const MOST: u64 = 1 << 10;
    if op.recent == NONE {
        return;
    }
    // SAFETY: the place is there, aligned, and holds zeros or what was written here.
    let recent = unsafe { &mut *cx.regs.add(op.recent as usize).cast::<[u64; 2]>() };
    let step = first.wrapping_sub(recent[0]);
    let before = std::mem::replace(recent, [first, step])[1];
    if step == before && step.wrapping_add(SHORT) > 2 * SHORT {
        let next = first.wrapping_add(step.wrapping_mul(2));
        for line in (0..bytes.min(MOST)).step_by(64) {
            fetch(next.wrapping_add(line));
        }
    }
}

/// Has a line of memory brought nearer, if it is memory at all.
#[inline(always)]
fn fetch(address: u64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which is without effect where there is nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address as *const i8) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The pattern of `count` lanes of warps `w` and up.
///
/// # Safety
/// `op.register` is a slot of the running window, which has that many warps.
#[inline(always)]
pub(super) unsafe fn pattern(
    cx: &Cx<'_>,
    op: &MemOp,
    w: usize,
    count: usize,
    bytes: u64,
    direction: Direction,
) -> Pattern {
    let bits = direction.bits();
    let block = cx.block;
    let (first, step) = if op.register == NONE {
        (0, 0)
    } else if op.affine != NONE {
        if count > cx.run {
            return Pattern::Other;
        }
        // SAFETY: the bundle runs code that names such values, so it has them.
        let (first, step) = unsafe { lines::line(cx, op, w) };
        if step != 0 && step != bytes {
            return Pattern::Other;
        }
        (first, step)
    } else {
        // SAFETY: the register is a slot of the running window, so its start lies in it.
        let base = unsafe { cx.regs.add(op.register as usize) };
        if op.narrow {
            // SAFETY: a B32 slot holds 32 values a warp.
            let lanes = unsafe { std::slice::from_raw_parts((base as *const u32).add(w * WARP), count) };
            let (first, last) = (u64::from(lanes[0]), u64::from(lanes[count - 1]));
            let step = match last.wrapping_sub(first) {
                0 => 0,
                n if n == (count as u64 - 1) * bytes => bytes,
                _ => return Pattern::Other,
            };
            if !counts_up_narrow::<16>(lanes, step as u32) {
                return Pattern::Other;
            }
            (first, step)
        } else {
            // SAFETY: a B64 slot holds 32 values a warp.
            let lanes = unsafe { std::slice::from_raw_parts((base as *const u64).add(w * WARP), count) };
            let step = match lanes[count - 1].wrapping_sub(lanes[0]) {
                0 => 0,
                n if n == (count as u64 - 1) * bytes => bytes,
                _ => return Pattern::Other,
            };
            if !counts_up::<8>(lanes, step) {
                return Pattern::Other;
            }
            (lanes[0], step)
        }
    };
    let mut first = first.wrapping_add(op.offset as u64);
    let extent = step * (count as u64 - 1) + bytes;
    let good = match op.space {
        Space::Generic | Space::Global | Space::Const => all_allowed(block.view, first, extent, bits),
        Space::Shared => {
            if op.register != NONE {
                first = first.wrapping_sub(block.shared_start().into());
            }
            let good = first <= u64::from(u32::MAX) && first + extent <= u64::from(block.shared_bytes);
            first = first.wrapping_add(block.shared);
            good
        }
        // Each lane has local memory of its own; parameters are rarely read by address.
        Space::Local | Space::Param => false,
    };
    if !good || first & (bytes - 1) != 0 {
        Pattern::Other
    } else if step == 0 {
        Pattern::Same(first)
    } else {
        Pattern::Consecutive(first)
    }
}
