//! Matrix products of four warps (PTX ISA, Asynchronous Warpgroup Level Matrix Instructions).
//!
//! Each warp of the four computes its own 16 rows, whether or not the others are with it. A product is complete where it
//! stands, or, if a pass has found that nobody looks at its sum before (`late`), where its group is waited for: then
//! shared memory is read there, too, so that who writes it too early sees what comes of it. Under a seed the moment is
//! drawn.

pub mod shadow;

use std::collections::VecDeque;

use super::descriptor::{self, Major, Matrix, Packing, UNIT};
use crate::isa::joint::warpgroup::{Mma, Op};
use crate::isa::lanes::{WARP, Width};
use crate::isa::mma::{self, Accumulator, Architecture, Element, Metadata, Product, Scratch, Tiles, Unit};
use crate::program::ir::joint::warpgroup::Multiply;
use crate::program::{Function, Proxy, Space};
use crate::simt::machine::access;
use crate::simt::machine::context::{Cx, RawFault};
use crate::simt::machine::held::{Accessed, Held};
use crate::simt::machine::observe::{Direction, ProductEvent, Use};
use crate::simt::machine::slots::{Slot, read};
use crate::simt::machine::step::{Operands, Step};

/// Rows of a warp.
const ROWS: usize = 16;

/// What a block keeps of products.
#[derive(Default)]
pub struct Products {
    room: Room,
    /// By warp of the block.
    warps: Vec<Pending>,
}

impl Products {
    /// As a block starts.
    pub fn reset(&mut self) {
        self.warps.clear();
    }

    fn warp(&mut self, cx: &Cx<'_>, w: usize) -> (&mut Pending, &mut Room) {
        let number = cx.first_thread as usize / WARP + w;
        if self.warps.len() <= number {
            self.warps.resize_with(number + 1, Pending::default);
        }
        (&mut self.warps[number], &mut self.room)
    }

    /// Registers of a warp have moved: sums that are under way go to where they are now.
    pub fn follow(&mut self, moved: &Moved) {
        let Some(pending) = self.warps.get_mut(moved.warp) else {
            return;
        };
        for sum in &mut pending.sums {
            if sum.window.0 == moved.from as usize {
                sum.window.0 = moved.to as usize;
                sum.to.iter_mut().flatten().for_each(|slot| slot.offset /= moved.width);
            }
        }
    }
}

/// A warp of the block has got a window of its own, in place of one for a bundle of some warps, for the same function.
pub struct Moved {
    pub warp: usize,
    pub from: *const u8,
    pub to: *const u8,
    /// Warps of that bundle.
    pub width: u32,
}

/// Products of a warp that are under way.
#[derive(Default)]
struct Pending {
    /// Groups that were committed.
    groups: u64,
    /// In the order in which they complete.
    sums: VecDeque<Sum>,
}

/// A sum, and what is still to be added to it.
struct Sum {
    value: Vec<u32>,
    /// With the number of their group.
    products: VecDeque<(u64, Multiplication)>,
    /// Where it goes, and whose registers these are.
    to: Box<[Option<Slot>]>,
    ty: Accumulator,
    window: (usize, *const Function),
    active: u32,
}

// SAFETY: the function is told from others by its address, which nobody follows.
unsafe impl Send for Sum {}

impl Sum {
    /// The registers are those of the running function, in the running window.
    fn is_here(&self, cx: &Cx<'_>) -> bool {
        self.window == here(cx)
    }
}

fn here(cx: &Cx<'_>) -> (usize, *const Function) {
    (cx.regs as usize, std::ptr::from_ref(cx.function))
}

impl Pending {
    /// Completes all groups before number `before`; with them sums to which nothing is to be added any more reach their
    /// registers.
    ///
    /// # Safety
    /// Warp `w` is one of the running window's.
    unsafe fn complete<const WATCHED: bool>(
        &mut self,
        before: u64,
        cx: &Cx<'_>,
        w: usize,
        room: &mut Room,
    ) -> Result<(), RawFault> {
        let mut i = 0;
        while let Some(sum) = self.sums.get_mut(i) {
            while sum.products.front().is_some_and(|(group, _)| *group < before)
                && let Some((_, product)) = sum.products.pop_front()
            {
                product.run::<WATCHED>(cx, room, &mut sum.value)?;
            }
            if !sum.products.is_empty() {
                i += 1;
                continue;
            }
            // A pass lets nothing be under way across calls; if it is all the same, nobody gets it.
            if sum.is_here(cx) {
                // SAFETY: the slots are of the function whose window runs.
                unsafe { give(&sum.to, sum.ty, cx.regs, (w, sum.active), &sum.value) };
            }
            self.sums.remove(i);
        }
        Ok(())
    }
}

/// Room for one product.
#[derive(Default)]
struct Room {
    a: Vec<u32>,
    b: Vec<u32>,
    dense: Vec<u32>,
    scratch: Scratch,
}

/// A product of a warp, with all that it needs of registers but its sum.
#[derive(Clone)]
struct Multiplication {
    op: Mma,
    /// Of the four.
    warp: usize,
    a: First,
    b: Matrix,
    b_major: Major,
    /// -1
    negate: [bool; 2],
    /// Metadata of each row of the warp.
    metadata: Option<[u128; ROWS]>,
    /// D counts.
    add: bool,
    /// Who asked.
    lane: usize,
}

/// A.
#[derive(Clone)]
enum First {
    /// In registers: of each row eight words.
    Words(Box<[[u32; 8]; ROWS]>),
    Shared(Matrix, Major),
}

/// # Safety
/// Slots of `operands` lie in the running window.
pub(super) unsafe fn execute<const WATCHED: bool>(
    op: Op,
    operands: &Operands,
    cx: &mut Cx<'_>,
    products: &mut Products,
) -> Step {
    for w in 0..cx.mask.warps as usize {
        if cx.mask.lanes[w] == 0 {
            continue;
        }
        let drawn = cx.block.env.draw(4) == Some(0);
        if WATCHED {
            let what = match op {
                Op::Fence => ProductEvent::Fence,
                Op::Commit => ProductEvent::Commit,
                Op::Mma(mma) => ProductEvent::Multiply { late: mma.late },
                Op::Wait => {
                    let lane = w * WARP + cx.mask.lanes[w].trailing_zeros() as usize;
                    // SAFETY: the slot lies in the running window, as the caller promises.
                    ProductEvent::Wait(unsafe { read(cx.regs, operands.src[0], lane) })
                }
            };
            cx.used::<WATCHED>(|| Use::Products { warp: w, what });
        }
        let (pending, room) = products.warp(cx, w);
        // SAFETY: the slots lie in the running window, as the caller promises.
        let done = unsafe {
            match op {
                _ if drawn => pending.complete::<WATCHED>(u64::MAX, cx, w, room),
                Op::Mma(_) | Op::Fence | Op::Commit | Op::Wait => Ok(()),
            }
            .and_then(|()| match op {
                Op::Fence => Ok(()),
                Op::Commit => {
                    pending.groups += 1;
                    Ok(())
                }
                Op::Wait => {
                    let lane = w * WARP + cx.mask.lanes[w].trailing_zeros() as usize;
                    let but = read(cx.regs, operands.src[0], lane);
                    pending.complete::<WATCHED>(pending.groups.saturating_sub(but), cx, w, room)
                }
                Op::Mma(mma) => multiply::<WATCHED>(mma, operands, cx, (pending, room), w),
            })
        };
        if let Err(fault) = done {
            return Step::Fault(fault);
        }
    }
    Step::Done
}

/// # Safety
/// Slots of `operands` lie in the running window.
unsafe fn multiply<const WATCHED: bool>(
    mma: Mma,
    operands: &Operands,
    cx: &Cx<'_>,
    (pending, room): (&mut Pending, &mut Room),
    w: usize,
) -> Result<(), RawFault> {
    let src = Multiply::of(mma, &operands.src);
    // SAFETY: the sources are slots of the running window, here and below.
    let multiplication = unsafe { Multiplication::of(mma, &src, cx, w) };
    // SAFETY: the operands are slots of the running window, as the caller promises.
    let held = [0, 1].map(|number| unsafe { Held::of(operands, number, multiplication.lane, cx) });
    multiplication.check(held, cx)?;
    if mma.late {
        let goes_on =
            |sum: &&mut Sum| sum.is_here(cx) && sum.to.iter().copied().eq(src.d.iter().map(|slot| Some(*slot)));
        if let Some(sum) = pending.sums.iter_mut().find(goes_on) {
            sum.products.push_back((pending.groups, multiplication));
            sum.to.clone_from(&operands.dst);
            return Ok(());
        }
    } else {
        // SAFETY: the operands are slots of the running window, as the caller promises.
        unsafe { pending.complete::<WATCHED>(u64::MAX, cx, w, room) }?;
    }
    let mut value = vec![0; usize::from(mma.n) * mma::stride(ROWS)];
    if multiplication.add {
        // SAFETY: the operands are slots of the running window, as the caller promises.
        unsafe { take(src.d, mma.d, cx.regs, w, &mut value) };
    }
    if mma.late {
        pending.sums.push_back(Sum {
            value,
            products: [(pending.groups, multiplication)].into(),
            to: operands.dst.clone(),
            ty: mma.d,
            window: here(cx),
            active: cx.mask.lanes[w],
        });
        return Ok(());
    }
    multiplication.run::<WATCHED>(cx, room, &mut value)?;
    // SAFETY: the destinations are slots of the running window.
    unsafe { give(&operands.dst, mma.d, cx.regs, (w, cx.mask.lanes[w]), &value) };
    Ok(())
}

/// The place in a tile of 16 rows of what register `d` of lane `l` holds: element `d` of those of 32 bits.
fn place(d: usize, lane: usize) -> usize {
    let row = lane / 4 + 8 * (d / 2 % 2);
    let column = 8 * (d / 4) + 2 * (lane % 4) + d % 2;
    column * mma::stride(ROWS) + row
}

/// D of a warp from its registers.
///
/// # Safety
/// The slots are of 32 bits and lie in the window at `regs`, which has warp `w`.
unsafe fn take(slots: &[Slot], ty: Accumulator, regs: *mut u8, w: usize, sum: &mut [u32]) {
    for (i, slot) in slots.iter().enumerate() {
        // SAFETY: a slot of 32 bits has a value for each lane of each warp of the window.
        let lanes = unsafe { &*(regs.add(slot.offset as usize) as *const [u32; WARP]).add(w) };
        for (lane, value) in lanes.iter().enumerate() {
            match ty {
                Accumulator::F16 => {
                    sum[place(2 * i, lane)] = value & 0xffff;
                    sum[place(2 * i + 1, lane)] = value >> 16;
                }
                Accumulator::F32 | Accumulator::S32 | Accumulator::F64 => sum[place(i, lane)] = *value,
            }
        }
    }
}

/// D of a warp to the registers of its active lanes.
///
/// # Safety
/// As for [`take`].
unsafe fn give(slots: &[Option<Slot>], ty: Accumulator, regs: *mut u8, (w, active): (usize, u32), sum: &[u32]) {
    for (i, slot) in slots.iter().enumerate() {
        let Some(slot) = slot else { continue };
        // SAFETY: a slot of 32 bits has a value for each lane of each warp of the window, to which nobody else holds a
        // reference.
        let lanes = unsafe { &mut *(regs.add(slot.offset as usize) as *mut [u32; WARP]).add(w) };
        for (lane, value) in lanes.iter_mut().enumerate() {
            if active >> lane & 1 == 0 {
                continue;
            }
            *value = match ty {
                Accumulator::F16 => sum[place(2 * i, lane)] & 0xffff | sum[place(2 * i + 1, lane)] << 16,
                Accumulator::F32 | Accumulator::S32 | Accumulator::F64 => sum[place(i, lane)],
            };
        }
    }
}

/// The sign bit of a code.
fn sign(element: Element) -> u32 {
    match element {
        Element::F16 | Element::Bf16 => 1 << 15,
        Element::Tf32 => 1 << 31,
        Element::E4m3 | Element::E5m2 => 1 << 7,
        // They have no sign to turn: the forms of integers and bits have no scales.
        Element::S8 | Element::U8 | Element::S4 | Element::U4 | Element::B1 => 0,
        Element::E3m2 | Element::E2m3 | Element::E2m1 | Element::F64 => 0,
    }
}

impl Multiplication {
    /// What warp `w` of the bundle asks for.
    ///
    /// # Safety
    /// The sources lie in the running window.
    unsafe fn of(op: Mma, src: &Multiply<'_, Slot>, cx: &Cx<'_>, w: usize) -> Multiplication {
        let lane = w * WARP + cx.mask.lanes[w].trailing_zeros() as usize % WARP;
        // SAFETY: the slot lies in the running window, here and below, and `lane` is one of its lanes.
        let value = |slot: &Slot, lane: usize| unsafe { read(cx.regs, *slot, lane) };
        let major = |slot| match value(slot, lane) {
            0 => Major::K,
            _ => Major::Mn,
        };
        let a = match src.a {
            [descriptor] if descriptor.width == Width::B64 => {
                First::Shared(Matrix::of_wgmma(value(descriptor, lane)), major(src.transpose_a))
            }
            registers => {
                let mut words = Box::new([[0; 8]; ROWS]);
                for (i, slot) in registers.iter().enumerate() {
                    for l in 0..WARP {
                        words[l / 4 + 8 * (i % 2)][l % 4 + 4 * (i / 2)] = value(slot, w * WARP + l) as u32;
                    }
                }
                First::Words(words)
            }
        };
        let metadata = op.sparse.then(|| {
            let selector = value(src.selector, lane) as usize;
            metadata(op, selector, |l| value(src.metadata, w * WARP + l) as u32)
        });
        Multiplication {
            op,
            warp: (cx.first_thread as usize / WARP + w) % 4,
            a,
            b: Matrix::of_wgmma(value(src.b, lane)),
            b_major: major(src.transpose_b),
            negate: [src.scale_a, src.scale_b].map(|slot| value(slot, lane) as u32 == u32::MAX),
            metadata,
            add: value(src.scale_d, lane) != 0,
            lane,
        }
    }

    /// # Errors
    /// What it reads is not the block's shared memory, or not in the variables of A's and B's descriptors.
    fn check(&self, [held_a, held_b]: [Held; 2], cx: &Cx<'_>) -> Result<(), RawFault> {
        let limit = cx.block.shared_bytes;
        let bytes = UNIT as u32;
        let look = |address: u32, held: Held| {
            if address.checked_add(bytes).is_none_or(|end| end > limit) {
                return Err(RawFault::illegal(
                    address.into(),
                    bytes.into(),
                    false,
                    self.lane,
                    Space::Shared,
                ));
            }
            let accessed = Accessed {
                address: cx.block.shared + u64::from(address),
                bytes: bytes.into(),
                write: false,
                space: Space::Shared,
                lane: self.lane,
            };
            held.check(accessed, cx.block).map(|()| [0; UNIT])
        };
        let product = self.product();
        if let First::Shared(matrix, major) = &self.a {
            let rows = self.warp * ROWS..(self.warp + 1) * ROWS;
            descriptor::gather(
                matrix,
                (Packing::of(self.op.a, false), *major),
                rows,
                self.kept(),
                |address| look(address, held_a),
                |_, _, _| {},
            )?;
        }
        let columns = 0..product.n;
        let form = (Packing::of(self.op.b, false), self.b_major);
        let look = |address| look(address, held_b);
        descriptor::gather(&self.b, form, columns, product.codes(), look, |_, _, _| {})
    }

    fn product(&self) -> Product {
        let Mma { n, a, b, d, .. } = self.op;
        Product {
            sparse: self.op.sparse,
            saturate: self.op.saturate,
            ..Product::new([a, b], [d, d], (ROWS, usize::from(n), self.op.k()))
        }
    }

    /// Codes of a row of A that are there.
    fn kept(&self) -> usize {
        let codes = self.product().codes();
        if self.op.sparse { codes / 2 } else { codes }
    }

    /// `sum = A·B + sum`
    fn run<const WATCHED: bool>(&self, cx: &Cx<'_>, room: &mut Room, sum: &mut [u32]) -> Result<(), RawFault> {
        let Mma { a, b, .. } = self.op;
        let product = self.product();
        let (n, codes, kept) = (product.n, product.codes(), self.kept());
        if !self.add {
            sum.fill(0);
        }
        let fetch = |address| shared::<WATCHED>(cx, self.lane, address);
        let stride = mma::stride(ROWS);
        let turn = [(a, self.negate[0]), (b, self.negate[1])].map(|(of, turn)| if turn { sign(of) } else { 0 });
        room.a.resize(kept * stride, 0);
        let first = &mut room.a;
        match &self.a {
            First::Words(words) => {
                let packing = Packing::of(a, false);
                for (row, words) in words.iter().enumerate() {
                    for (unit, words) in words.as_chunks::<4>().0.iter().enumerate() {
                        let mut bytes = [0; UNIT];
                        for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
                            *bytes = word.to_le_bytes();
                        }
                        let each = packing.codes();
                        for (j, code) in packing.unpack(bytes).into_iter().take(each).enumerate() {
                            first[(unit * each + j) * stride + row] = code ^ turn[0];
                        }
                    }
                }
            }
            First::Shared(matrix, major) => {
                let rows = self.warp * ROWS..(self.warp + 1) * ROWS;
                descriptor::gather(
                    matrix,
                    (Packing::of(a, false), *major),
                    rows,
                    kept,
                    fetch,
                    |row, k, code| {
                        first[k * stride + row] = code ^ turn[0];
                    },
                )?;
            }
        }
        room.b.resize(codes * n, 0);
        let second = &mut room.b;
        descriptor::gather(
            &self.b,
            (Packing::of(b, false), self.b_major),
            0..n,
            codes,
            fetch,
            |column, k, code| {
                second[k * n + column] = code ^ turn[1];
            },
        )?;
        let mut rows = [0; ROWS];
        let first = match &self.metadata {
            None => &room.a,
            Some(metadata) => {
                room.dense.resize(codes * stride, 0);
                let of = Metadata::of(a, false);
                mma::expand(of, (ROWS, stride, codes), &room.a, metadata, &mut room.dense, &mut rows);
                &room.dense
            }
        };
        let tiles = Tiles {
            a: first,
            b: &room.b,
            packed: false,
            kept: &rows,
            scale_a: &[],
            scale_b: &[],
            d: sum,
        };
        mma::multiply(&product, Architecture::Hopper, Unit::Wgmma, tiles, &mut room.scratch);
        Ok(())
    }
}

/// Metadata of each of a warp's rows, first elements lowest (PTX ISA, Sparse wgmma.mma_async: as those of `mma.sp`). A thread
/// of each quad has half of the columns of two rows, where two threads are enough, which `selector` names; where all
/// four are needed, half of the columns of one.
fn metadata(op: Mma, selector: usize, word: impl Fn(usize) -> u32) -> [u128; ROWS] {
    let mut rows = [0; ROWS];
    for (row, bits) in rows.iter_mut().enumerate() {
        let (quad, lower) = (row % 8 * 4, row / 8);
        *bits = (0..2)
            .map(|half| match op.a {
                Element::F16 | Element::Bf16 | Element::Tf32 => {
                    let word = word(quad + selector % 2 * 2 + half);
                    u128::from(word >> (16 * lower) & 0xffff) << (16 * half)
                }
                Element::E4m3 | Element::E5m2 | Element::S8 | Element::U8 => {
                    u128::from(word(quad + lower + 2 * half)) << (32 * half)
                }
                // There are no sparse ones.
                Element::S4 | Element::U4 | Element::B1 | Element::F64 => 0,
                Element::E3m2 | Element::E2m3 | Element::E2m1 => 0,
            })
            .fold(0, |all, part| all | part);
    }
    rows
}

/// Sixteen bytes of the block's shared memory, as the asynchronous proxy reads them.
///
/// # Errors
/// They are not the block's.
#[inline(always)]
fn shared<const WATCHED: bool>(cx: &Cx<'_>, lane: usize, address: u32) -> Result<[u8; UNIT], RawFault> {
    let block = cx.block;
    if u64::from(address) + UNIT as u64 > u64::from(block.shared_bytes) {
        return Err(RawFault::illegal(
            address.into(),
            UNIT as u64,
            false,
            lane,
            Space::Shared,
        ));
    }
    let at = block.shared + u64::from(address);
    if WATCHED {
        access::tell_one::<WATCHED>(
            cx,
            lane,
            (at, UNIT as u64),
            Space::Shared,
            Direction::Read,
            Proxy::Async,
        );
    }
    // SAFETY: the bytes lie in the block's shared window, which was just compared; all of the block runs on this thread.
    Ok(unsafe { (at as *const [u8; UNIT]).read_unaligned() })
}
