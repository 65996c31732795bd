//! What operations on shadows do: the shadow of memory to that of registers and back, that of results from those of operands,
//! and checks before something depends on a value.
//!
//! In memory a bit that is set stands for one that has been written ([`crate::memory::shadow`]), in a register for one that has
//! not: so most shadows are zeros, which is looked for first.

use crate::isa::Cpu;
use crate::isa::definedness::Rule;
use crate::isa::lanes::{WARP, Width};
use crate::memory::PAGE_BITS;
use crate::memory::shadow::{self, Shadow as Memory};
use crate::program::{Decision, Element, Register, Shadow, ShadowOp, Space};
use crate::ptx::ast::Span;

use super::access::{self, AccessFn, Lanes, MemOp, Pattern};
use super::context::{Cx, NONE};
use super::joint::matrix_shadow as matrix;
use super::joint::warpgroup::shadow as warpgroup;
use super::lines;
use super::observe::{Direction, Undefined};
use super::raw::{Convert, Raw};
use super::shadow_lanes::{Values, clear, gather, nonzero, ones, scatter, tell};
use super::slots::{Slot, bits};
use super::transfer::{Transfer, everybody, is_common, pick};

/// Whether an access to this space may go elsewhere than to what is tracked.
fn anywhere(space: Space) -> bool {
    match space {
        Space::Generic | Space::Global | Space::Const | Space::Param => true,
        // Windows lie in the arena.
        Space::Shared | Space::Local => false,
    }
}

/// Lanes of `active` whose bytes are tracked.
#[inline(always)]
fn tracked(memory: &Memory, space: Space, active: u32, a: &Lanes, bytes: u64) -> u32 {
    if !anywhere(space) {
        return active;
    }
    let (mut low, mut high) = (u64::MAX, 0);
    for (i, at) in a.iter().enumerate() {
        let on = u64::from(active >> i & 1).wrapping_neg();
        (low, high) = (low.min(at | !on), high.max(at & on));
    }
    if low >> PAGE_BITS == high.wrapping_add(bytes - 1) >> PAGE_BITS {
        return if memory.tracks(low) { active } else { 0 };
    }
    let mut found = 0;
    for i in bits(active) {
        found |= u32::from(memory.tracks_both_ends(a[i], bytes)) << i;
    }
    found
}

struct Load<T, D, const SIGNED: bool>(std::marker::PhantomData<(T, D)>);

impl<T: Convert<D>, D: Raw, const SIGNED: bool> Transfer for Load<T, D, SIGNED> {
    const COMMON: bool = !SIGNED && is_common::<T, D>();
    const LANEWISE: bool = false;

    /// The load itself has checked the addresses.
    #[inline(always)]
    unsafe fn run<C: Cpu, const WATCHED: bool>(cx: &mut Cx<'_>, op: &MemOp) -> bool {
        let memory = shadow::get();
        let bytes = size_of::<T>() as u64 * op.data.len() as u64;
        let regs = cx.regs;
        let defined = |w: usize, count: usize| {
            for &slot in op.data.iter().filter(|slot| **slot != NONE) {
                // SAFETY: a slot of the running window has 32 values a warp.
                unsafe { std::ptr::write_bytes((regs.add(slot as usize) as *mut D).add(w * WARP), 0, count) };
            }
        };
        // SAFETY: slots are those of the running window, and all lanes of its warps take part.
        if Self::COMMON && everybody(cx) && unsafe { Self::bundle_is_written(cx, op, bytes, memory) } {
            defined(0, cx.mask.warps as usize * WARP);
            return true;
        }
        for w in 0..cx.mask.warps as usize {
            let active = cx.mask.lanes[w];
            if active == 0 {
                continue;
            }
            // SAFETY: slots are those of the running window, and all lanes of warp `w` take part.
            if active == u32::MAX && unsafe { Self::all_written(cx, op, (w, WARP), bytes, memory) } {
                defined(w, WARP);
                continue;
            }
            let mut a: Lanes = [0; WARP];
            // SAFETY: the address register is a slot of the running window.
            if !unsafe { access::addresses(cx, op, w, active, 1, Direction::Read, &mut a) } {
                return false;
            }
            let tracked = memory.map_or(0, |memory| tracked(memory, op.space, active, &a, bytes));
            if let Some(memory) = memory.filter(|_| tracked == active)
                && active == u32::MAX
            {
                // SAFETY: the addresses lie in the arena, of each byte of which there is a shadow.
                let all = a
                    .iter()
                    .fold(u64::MAX, |all, at| all & unsafe { written(memory.of(*at), bytes) });
                if all == u64::MAX {
                    defined(w, WARP);
                    continue;
                }
            }
            let mut undefined = 0;
            for (k, &slot) in op.data.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
                for i in bits(active) {
                    let mut missing = T::default();
                    if let Some(memory) = memory.filter(|_| tracked >> i & 1 == 1) {
                        // SAFETY: the address lies in the arena, of each byte of which there is a shadow.
                        let written = unsafe { (memory.of(a[i]) as *const T).add(k).read_unaligned() };
                        missing = T::cut(!written.bits());
                    }
                    undefined |= u32::from(missing.bits() != 0) << i;
                    // SAFETY: a slot of the running window has 32 values a warp.
                    unsafe {
                        let dst = (cx.regs.add(slot as usize) as *mut [D; WARP]).add(w) as *mut D;
                        dst.add(i).write(missing.widen(SIGNED));
                    }
                }
            }
            if undefined != 0 {
                tell(
                    cx,
                    op.span,
                    &Undefined::Loaded {
                        warp: w,
                        lanes: undefined,
                        addresses: &a,
                        bytes: bytes as u32,
                        space: op.space,
                    },
                );
            }
        }
        true
    }
}

impl<T: Convert<D>, D: Raw, const SIGNED: bool> Load<T, D, SIGNED> {
    /// Lanes, counted from the first of a warp, load from a row, or from one place, and all of that has been written, as is the rule.
    ///
    /// # Safety
    /// As for [`Transfer::run`]; all of these lanes take part.
    #[inline(always)]
    unsafe fn all_written(
        cx: &Cx<'_>,
        op: &MemOp,
        (w, count): (usize, usize),
        bytes: u64,
        memory: Option<&Memory>,
    ) -> bool {
        // SAFETY: the address register is a slot of the running window.
        let (first, extent) = match unsafe { access::pattern(cx, op, w, count, bytes, Direction::Read) } {
            Pattern::Consecutive(first) => (first, bytes * count as u64),
            Pattern::Same(first) => (first, bytes),
            Pattern::Other => return false,
        };
        memory.is_none_or(|memory| is_written(memory, op.space, first, extent))
    }

    /// Likewise of all lanes of the bundle, which may load from a row for each of its pieces.
    ///
    /// # Safety
    /// As for [`Transfer::run`]; all lanes take part.
    #[inline(always)]
    unsafe fn bundle_is_written(cx: &Cx<'_>, op: &MemOp, bytes: u64, memory: Option<&Memory>) -> bool {
        let all = cx.mask.warps as usize * WARP;
        // SAFETY: what the caller vouches for; an operation names a value that the bundle has computed.
        unsafe {
            if !lines::in_pieces(cx, op) && Self::all_written(cx, op, (0, all), bytes, memory) {
                return true;
            }
            let (Some(memory), true) = (memory, op.affine != NONE) else {
                return false;
            };
            let mut last = None;
            lines::each(cx, op, bytes, Direction::Read, |first, step, lanes| {
                // Pieces of a tile that name the same.
                if last.replace(first) == Some(first) {
                    return true;
                }
                match step {
                    0 => is_written(memory, op.space, first, bytes),
                    step if step == bytes => is_written(memory, op.space, first, bytes * lanes),
                    // Windows lie in the arena.
                    step if !anywhere(op.space) => {
                        let of_lane = |lane| written(memory.of(first + step * lane), bytes);
                        (0..lanes).fold(u64::MAX, |all, lane| all & of_lane(lane)) == u64::MAX
                    }
                    _ => false,
                }
            })
        }
    }
}

/// All ones if so many bytes of the shadow are.
///
/// # Safety
/// They are there.
#[inline(always)]
unsafe fn written(place: *const u8, bytes: u64) -> u64 {
    // SAFETY: as the caller promises.
    unsafe {
        match bytes {
            1 => u64::from(place.read()) | !0xff,
            2 => u64::from((place as *const u16).read_unaligned()) | !0xffff,
            4 => u64::from((place as *const u32).read_unaligned()) | !0xffff_ffff,
            _ => {
                let words = place as *const u64;
                (0..bytes as usize / 8).fold(u64::MAX, |all, word| all & words.add(word).read_unaligned())
            }
        }
    }
}

/// Whether all of a range, no longer than a page, has been written.
#[inline(always)]
fn is_written(memory: &Memory, space: Space, first: u64, extent: u64) -> bool {
    if memory.is_whole(first, extent) {
        return true;
    }
    if !memory.tracks_both_ends(first, extent) {
        return !memory.tracks(first) && !memory.tracks(first + extent - 1);
    }
    // SAFETY: the range lies in the arena, of which this is the shadow; whatever bytes there are make numbers.
    let bytes = unsafe { std::slice::from_raw_parts(memory.of(first), extent as usize) };
    let (words, rest) = bytes.as_chunks::<8>();
    let all = words.iter().fold(u64::MAX, |all, word| all & u64::from_ne_bytes(*word));
    let is_written = rest.iter().fold(all == u64::MAX, |all, byte| all & (*byte == u8::MAX));
    // Windows are new with each block.
    if is_written && anywhere(space) {
        memory.completes(first, extent);
    }
    is_written
}

/// All of a range, no longer than a page, is written; `false`: not all of it is tracked.
#[inline(always)]
fn write(memory: &Memory, space: Space, first: u64, extent: u64) -> bool {
    if memory.is_whole(first, extent) {
        return true;
    }
    if !memory.tracks_both_ends(first, extent) {
        return false;
    }
    // SAFETY: the range lies in the arena, of which this is the shadow.
    unsafe { std::ptr::write_bytes(memory.of(first), u8::MAX, extent as usize) };
    if anywhere(space) {
        memory.completes(first, extent);
    }
    true
}

struct Store<T, D>(std::marker::PhantomData<(T, D)>);

impl<T: Convert<D>, D: Raw> Transfer for Store<T, D> {
    const COMMON: bool = is_common::<T, D>();
    const LANEWISE: bool = false;

    /// Before the store itself, whose addresses are checked here as they will be there.
    #[inline(always)]
    unsafe fn run<C: Cpu, const WATCHED: bool>(cx: &mut Cx<'_>, op: &MemOp) -> bool {
        let Some(memory) = shadow::get() else { return true };
        let bytes = size_of::<T>() as u64 * op.data.len() as u64;
        let regs = cx.regs;
        let are_defined = |w: usize, count: usize| {
            op.data.iter().filter(|slot| **slot != NONE).all(|&slot| {
                // SAFETY: slots are those of the running window, with 32 values a warp; whatever they hold are numbers.
                let values =
                    unsafe { std::slice::from_raw_parts((regs.add(slot as usize) as *const D).add(w * WARP), count) };
                values.iter().fold(0, |all, value| all | value.bits()) == 0
            })
        };
        let all = cx.mask.warps as usize * WARP;
        if Self::COMMON && everybody(cx) && are_defined(0, all) {
            // SAFETY: slots are those of the running window, and all lanes of its warps take part.
            let is_done = unsafe { Self::bundle_is_written(cx, op, bytes, memory) };
            if is_done {
                return true;
            }
        }
        for w in 0..cx.mask.warps as usize {
            let active = cx.mask.lanes[w];
            if active == 0 {
                continue;
            }
            let is_defined = are_defined(w, WARP);
            if active == u32::MAX && is_defined {
                // SAFETY: the address register is a slot of the running window.
                let pattern = unsafe { access::pattern(cx, op, w, WARP, bytes, Direction::Write) };
                if let Pattern::Consecutive(first) = pattern
                    && write(memory, op.space, first, bytes * WARP as u64)
                {
                    continue;
                }
            }
            let mut a: Lanes = [0; WARP];
            // SAFETY: the address register is a slot of the running window.
            if !unsafe { access::lanes::<false>(cx, op, w, active, bytes, Direction::Write, &mut a) } {
                return false;
            }
            let tracked = tracked(memory, op.space, active, &a, bytes);
            if is_defined {
                for i in bits(tracked) {
                    // SAFETY: the address was checked, and lies in the arena, of each byte of which there is a shadow.
                    unsafe { std::ptr::write_bytes(memory.of(a[i]), u8::MAX, size_of::<T>() * op.data.len()) };
                }
                continue;
            }
            let mut undefined = 0;
            for (k, &slot) in op.data.iter().enumerate() {
                for i in bits(tracked) {
                    // SAFETY: slots are those of the running window, with 32 values a warp; the address was checked, and lies
                    // in the arena, of each byte of which there is a shadow.
                    unsafe {
                        let missing = match slot {
                            NONE => T::default(),
                            _ => {
                                T::narrow(*((cx.regs.add(slot as usize) as *const [D; WARP]).add(w) as *const D).add(i))
                            }
                        };
                        undefined |= u32::from(missing.bits() != 0) << i;
                        (memory.of(a[i]) as *mut T)
                            .add(k)
                            .write_unaligned(T::cut(!missing.bits()));
                    }
                }
            }
            if undefined != 0 {
                for i in bits(undefined) {
                    memory.has_missing(a[i], bytes);
                }
                let event = Undefined::Stored {
                    warp: w,
                    lanes: undefined,
                    addresses: &a,
                    bytes: bytes as u32,
                };
                tell(cx, op.span, &event);
            }
        }
        true
    }
}

impl<T: Convert<D>, D: Raw> Store<T, D> {
    /// Notes what all lanes of a bundle write, whose values have no missing bits, if it is a row, or one for each of its pieces.
    ///
    /// # Safety
    /// As for [`Transfer::run`]; all lanes take part.
    #[inline(always)]
    unsafe fn bundle_is_written(cx: &Cx<'_>, op: &MemOp, bytes: u64, memory: &Memory) -> bool {
        let all = cx.mask.warps as usize * WARP;
        // SAFETY: what the caller vouches for; an operation names a value that the bundle has computed.
        unsafe {
            if !lines::in_pieces(cx, op)
                && let Pattern::Consecutive(first) = access::pattern(cx, op, 0, all, bytes, Direction::Write)
                && write(memory, op.space, first, bytes * all as u64)
            {
                return true;
            }
            op.affine != NONE
                && lines::each(cx, op, bytes, Direction::Write, |first, step, lanes| match step {
                    0 => write(memory, op.space, first, bytes),
                    step if step == bytes => write(memory, op.space, first, bytes * lanes),
                    // Windows lie in the arena.
                    step if !anywhere(op.space) => {
                        for lane in 0..lanes {
                            std::ptr::write_bytes(memory.of(first + step * lane), u8::MAX, bytes as usize);
                        }
                        true
                    }
                    _ => false,
                })
        }
    }
}

/// The function that loads the shadows of such elements into slots of such a width.
pub fn load_fn(element: Element, slot: Option<Width>) -> AccessFn {
    fn by_sign<T: Convert<D>, D: Raw>(element: Element) -> AccessFn {
        match element.signed && size_of::<T>() < size_of::<D>() {
            true => pick::<Load<T, D, true>, true>(),
            false => pick::<Load<T, D, false>, true>(),
        }
    }
    let natural = match element.bytes {
        1 | 2 => Width::B16,
        4 => Width::B32,
        8 => Width::B64,
        _ => Width::B128,
    };
    let e = element;
    match (element.bytes, slot.unwrap_or(natural)) {
        (1, Width::B16) => by_sign::<u8, u16>(e),
        (1, Width::B32) => by_sign::<u8, u32>(e),
        (1, Width::B64) => by_sign::<u8, u64>(e),
        (1, Width::B128) => by_sign::<u8, u128>(e),
        (2, Width::B16) => by_sign::<u16, u16>(e),
        (2, Width::B32) => by_sign::<u16, u32>(e),
        (2, Width::B64) => by_sign::<u16, u64>(e),
        (2, Width::B128) => by_sign::<u16, u128>(e),
        (4, Width::B32) => by_sign::<u32, u32>(e),
        (4, Width::B64) => by_sign::<u32, u64>(e),
        (4, Width::B128) => by_sign::<u32, u128>(e),
        (8, Width::B64) => by_sign::<u64, u64>(e),
        (8, Width::B128) => by_sign::<u64, u128>(e),
        (16, Width::B128) => by_sign::<u128, u128>(e),
        (bytes, width) => unreachable!("a program never loads {bytes} bytes into {width:?}"),
    }
}

/// The function that stores the shadows of such elements from slots of such a width.
pub fn store_fn(element: Element, slot: Option<Width>) -> AccessFn {
    let natural = match element.bytes {
        1 | 2 => Width::B16,
        4 => Width::B32,
        8 => Width::B64,
        _ => Width::B128,
    };
    match (element.bytes, slot.unwrap_or(natural)) {
        (1, Width::B16) => pick::<Store<u8, u16>, true>(),
        (1, Width::B32) => pick::<Store<u8, u32>, true>(),
        (1, Width::B64) => pick::<Store<u8, u64>, true>(),
        (1, Width::B128) => pick::<Store<u8, u128>, true>(),
        (2, Width::B16) => pick::<Store<u16, u16>, true>(),
        (2, Width::B32) => pick::<Store<u16, u32>, true>(),
        (2, Width::B64) => pick::<Store<u16, u64>, true>(),
        (2, Width::B128) => pick::<Store<u16, u128>, true>(),
        (4, Width::B32) => pick::<Store<u32, u32>, true>(),
        (4, Width::B64) => pick::<Store<u32, u64>, true>(),
        (4, Width::B128) => pick::<Store<u32, u128>, true>(),
        (8, Width::B64) => pick::<Store<u64, u64>, true>(),
        (8, Width::B128) => pick::<Store<u64, u128>, true>(),
        (16, Width::B128) => pick::<Store<u128, u128>, true>(),
        (bytes, width) => unreachable!("a program never stores {bytes} bytes from {width:?}"),
    }
}

/// Carries out what is neither a load nor a store, for the lanes of the mask.
///
/// # Safety
/// Slots lie in the running window.
#[inline(always)]
pub unsafe fn execute(op: &ShadowOp<Slot>, span: Span, cx: &mut Cx<'_>) {
    for w in 0..cx.mask.warps as usize {
        let active = cx.mask.lanes[w];
        if active == 0 {
            continue;
        }
        // SAFETY: all slots are of `op`.
        unsafe {
            match op.what {
                Shadow::Follow(_) | Shadow::Also => {
                    let mut undefined = 0;
                    for slot in op.src.iter().flatten() {
                        undefined |= nonzero(cx, *slot, w, active);
                    }
                    let Some(dst) = op.dst[0] else { continue };
                    match undefined {
                        0 => clear(cx, dst, w, active),
                        _ => follow(op, dst, cx, w, active),
                    }
                }
                Shadow::Undefine => {
                    for slot in op.dst.iter().flatten() {
                        scatter(cx, *slot, w, active, &[u64::MAX; WARP]);
                    }
                }
                Shadow::Frame(from, to) => undefine_frame(cx, w, active, from, to),
                Shadow::Check { decision, register } => {
                    let Some(slot) = op.src[0] else { continue };
                    let lanes = nonzero(cx, slot, w, active);
                    if lanes != 0 {
                        found(cx, (slot, span), (w, lanes), decision, register);
                    }
                }
                Shadow::Matrix(what) => matrix::execute(what, op, span, cx, w),
                Shadow::Warpgroup(what) => warpgroup::product(what, op, span, cx, w),
                // These are not carried out here: accesses have functions of their own, and `match` waits for its members.
                Shadow::Load(_) | Shadow::Store(_) | Shadow::Match { .. } => {}
            }
        }
    }
}

fn undefine_frame(cx: &Cx<'_>, w: usize, active: u32, from: u32, to: u32) {
    if let Some(memory) = shadow::get() {
        for i in bits(active) {
            let start = cx.local(w * WARP + i) + u64::from(cx.frame + from);
            memory.undefine(start, (to - from).into());
        }
    }
}

/// # Safety
/// The slot lies in the running window.
#[cold]
unsafe fn found(
    cx: &Cx<'_>,
    (slot, span): (Slot, Span),
    (warp, lanes): (usize, u32),
    decision: Decision,
    register: Register,
) {
    let event = Undefined::Decides {
        warp,
        lanes,
        decision,
        register,
    };
    tell(cx, span, &event);
    // SAFETY: as the caller promises.
    unsafe { clear(cx, slot, warp, lanes) };
}

/// The shadow of a result where an operand's is not zero.
///
/// # Safety
/// Slots lie in the running window.
#[cold]
#[inline(never)]
unsafe fn follow(op: &ShadowOp<Slot>, dst: Slot, cx: &Cx<'_>, w: usize, active: u32) {
    // SAFETY: as the caller promises.
    unsafe {
        let shadows = |index: usize| match op.src.get(index).copied().flatten() {
            Some(slot) => gather(cx, slot, w),
            None => [0; WARP],
        };
        let values = |index: usize| op.values.get(index).map_or([0; WARP], |slot| gather(cx, *slot, w));
        let all = ones(dst.width);
        let whole = |any: bool| if any { all } else { 0 };
        let Shadow::Follow(rule) = op.what else {
            // The first, unless another one has a bit.
            let mut others = [0; WARP];
            for index in 1..op.src.len() {
                let other = shadows(index);
                (0..WARP).for_each(|i| others[i] |= other[i]);
            }
            let Some(kept) = op.src[0] else { return };
            let decided: u32 = (0..WARP).map(|i| u32::from(others[i] != 0) << i).sum();
            if kept.width == Width::B128 {
                let from = *(cx.regs.add(kept.offset as usize) as *const [u128; WARP]).add(w);
                let to = &mut *(cx.regs.add(dst.offset as usize) as *mut [u128; WARP]).add(w);
                bits(active & !decided).for_each(|i| to[i] = from[i]);
            } else {
                scatter(cx, dst, w, active & !decided, &gather(cx, kept, w));
            }
            scatter(cx, dst, w, active & decided, &[u64::MAX; WARP]);
            return;
        };
        let mut union = [0; WARP];
        for index in 0..op.src.len() {
            let one = shadows(index);
            (0..WARP).for_each(|i| union[i] |= one[i]);
        }
        let result: Values = match rule {
            Rule::Any { part: 0 } => union.map(|bits| whole(bits != 0)),
            Rule::Any { part } => union.map(|bits| {
                let part = u32::from(part);
                let ones = (1_u64 << part) - 1;
                (0..64 / part).fold(0, |all, n| match bits >> (n * part) & ones {
                    0 => all,
                    _ => all | ones << (n * part),
                })
            }),
            Rule::Union => union,
            Rule::Carry => union.map(|bits| bits | bits.wrapping_neg()),
            Rule::And | Rule::Or => {
                let (s, t, a, b) = (shadows(0), shadows(1), values(0), values(1));
                let decides = |value: u64| if rule == Rule::And { !value } else { value };
                std::array::from_fn(|i| union[i] & !(decides(a[i]) & !s[i]) & !(decides(b[i]) & !t[i]))
            }
            Rule::Lop3 { table } => {
                let (s, v) = ([shadows(0), shadows(1), shadows(2)], [values(0), values(1), values(2)]);
                std::array::from_fn(|i| lop3(table, s.map(|s| s[i]), v.map(|v| v[i])))
            }
            Rule::Equal => {
                let (a, b) = (values(0), values(1));
                // Bits that are defined in both and differ decide.
                std::array::from_fn(|i| whole(union[i] != 0 && (a[i] ^ b[i]) & !union[i] == 0))
            }
            Rule::Order { signed, or_equal } => {
                let (s, t, a, b) = (shadows(0), shadows(1), values(0), values(1));
                let width = op.values.first().map_or(Width::B64, |slot| slot.width);
                // As unsigned numbers, the sign bit counts the other way round.
                let flip = if signed { ones(width) ^ ones(width) >> 1 } else { 0 };
                let less = |a: u64, b: u64| if or_equal { a <= b } else { a < b };
                std::array::from_fn(|i| {
                    let (a, b) = (a[i] ^ flip, b[i] ^ flip);
                    whole(less(a & !s[i], b | t[i]) != less(a | s[i], b & !t[i]))
                })
            }
            Rule::Select => {
                let (s, t, p) = (shadows(0), shadows(1), shadows(2));
                let (a, b, which) = (values(0), values(1), values(2));
                std::array::from_fn(|i| match (p[i] & 1, which[i] & 1) {
                    (0, 1) => s[i],
                    (0, _) => t[i],
                    _ => s[i] | t[i] | (a[i] ^ b[i]),
                })
            }
        };
        scatter(cx, dst, w, active, &result);
    }
}

/// Bits of a function of three that are not the same for all values of the undefined bits.
fn lop3(table: u8, shadows: [u64; 3], values: [u64; 3]) -> u64 {
    let (mut zero, mut one) = (0, 0);
    for row in 0..8 {
        let mut possible = u64::MAX;
        for (place, (shadow, value)) in shadows.iter().zip(values).enumerate() {
            let is_set = row >> (2 - place) & 1 == 1;
            possible &= shadow | if is_set { value } else { !value };
        }
        match table >> row & 1 {
            1 => one |= possible,
            _ => zero |= possible,
        }
    }
    zero & one
}

#[cfg(test)]
mod tests {
    use super::lop3;

    /// Against all assignments of the undefined bits.
    #[test]
    fn a_bit_of_lop3_is_undefined_where_undefined_bits_change_it() {
        for table in 0..=255_u8 {
            for case in 0..64_u64 {
                let (shadows, values) = (case & 7, case >> 3);
                let bit = |of: u64, place: usize| of >> place & 1;
                let mut results = [false; 2];
                for guess in 0..8_u64 {
                    let values = values & !shadows | guess & shadows;
                    let row = bit(values, 0) << 2 | bit(values, 1) << 1 | bit(values, 2);
                    results[usize::from(table >> row & 1)] = true;
                }
                let of = |from: u64| std::array::from_fn(|place| bit(from, place));
                let found = lop3(table, of(shadows), of(values)) & 1 == 1;
                assert_eq!(
                    found,
                    results == [true, true],
                    "table {table:#x}, {shadows:03b}, {values:03b}"
                );
            }
        }
    }
}
