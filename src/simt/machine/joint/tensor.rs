//! `cp.async.bulk.tensor` and its family, as they begin: the tensor map is read, through its own proxy, and all that
//! the copy will touch is checked; `machine/tensor.rs` makes it when it completes.

use super::bulk::{check_barrier, tell_begin};
use crate::isa::joint::tensor::{Field, Load, Mode, Op, Override, Store, Tensor};
use crate::isa::lanes::WARP;
use crate::memory::shadow;
use crate::memory::tensor_map::{self, Element, Fields, Row, TensorBox, TensorMap, Walk};
use crate::program::{Address, Ordering, Proxy, Scope, Space};
use crate::simt::machine::access::{self, Lanes, MemOp};
use crate::simt::machine::asynchronous::{Completion, Operation, Owner, Work};
use crate::simt::machine::context::{Cx, RawFault};
use crate::simt::machine::held::{Accessed, Held};
use crate::simt::machine::observe::{Direction, SyncEvent};
use crate::simt::machine::peers;
use crate::simt::machine::slots::{self, Slot, bits};
use crate::simt::machine::state::State;
use crate::simt::machine::step::{Operands, Step};
use crate::simt::machine::tensor::{self, Place, pieces};
use crate::simt::machine::{window, within};

/// Where boxes lie in shared memory: at multiples of so many bytes (CUDA Programming Guide, Tensor Memory Access).
pub(super) const BOX: u64 = 128;
const BARRIER: u64 = 8;
const MAP: u64 = tensor_map::BYTES as u64;

/// # Safety
/// Slots of `operands` lie in the running window.
pub(super) unsafe fn execute<const WATCHED: bool>(
    op: Op,
    operands: &Operands,
    cx: &mut Cx<'_>,
    state: &mut State,
) -> Step {
    for warp in 0..cx.mask.warps as usize {
        let active = cx.mask.lanes[warp];
        if active == 0 {
            continue;
        }
        // SAFETY: the slots are the operands'.
        let done = unsafe {
            let warp = Warp { operands, warp };
            match op {
                Op::Load(load) => bits(active).try_for_each(|i| warp.load::<WATCHED>(load, i, cx, state)),
                Op::Store(store) => bits(active).try_for_each(|i| warp.store::<WATCHED>(store, i, cx, state)),
                Op::Replace { field, .. } => bits(active).try_for_each(|i| warp.replace::<WATCHED>(field, i, cx)),
                Op::CopyMap { scope } => warp.copy_map::<WATCHED>(scope, active, cx),
            }
        };
        if let Err(fault) = done {
            return Step::Fault(fault);
        }
    }
    match state.draw_behind(cx) {
        Ok(()) => Step::Done,
        Err(fault) => Step::Fault(fault),
    }
}

/// An instruction for a warp of the bundle. Its operands are slots of the running window: what all here count on.
#[derive(Clone, Copy)]
pub(super) struct Warp<'a> {
    pub(super) operands: &'a Operands,
    pub(super) warp: usize,
}

type Outcome<T = ()> = Result<T, RawFault>;

impl Warp<'_> {
    pub(super) fn lane(&self, i: usize) -> usize {
        self.warp * WARP + i
    }

    /// The address of an operand for lane `i` of the warp, as the process knows it, from where `bytes` are the
    /// kernel's.
    pub(super) unsafe fn address(
        &self,
        address: &Address<Slot>,
        i: usize,
        (bytes, align): (u64, u64),
        direction: Direction,
        cx: &mut Cx<'_>,
    ) -> Outcome<u64> {
        let op = MemOp::new(address, (Ordering::Weak, None), Box::new([]), cx.span);
        let mut lanes: Lanes = [0; WARP];
        // SAFETY: the address's register is an operand.
        let formed = unsafe { access::addresses(cx, &op, self.warp, 1 << i, 1, direction, &mut lanes) };
        let at = lanes[i];
        if formed && access::check_range(cx, op.space, self.lane(i), at, (bytes, align), direction) {
            return Ok(at);
        }
        let fault = cx.fault.take();
        Err(fault.unwrap_or_else(|| RawFault::illegal(at, bytes, false, self.lane(i), op.space)))
    }

    /// A box in shared memory stays in the variable from whose address its own was made.
    unsafe fn stays(
        &self,
        by: &Address<Slot>,
        (address, bytes): (u64, u64),
        write: bool,
        i: usize,
        cx: &Cx<'_>,
    ) -> Outcome {
        let lane = self.lane(i);
        let accessed = Accessed {
            address,
            bytes,
            write,
            space: by.space,
            lane,
        };
        // SAFETY: the operands are slots of the running window, as the caller promises.
        unsafe { Held::of(self.operands, 0, lane, cx) }.check(accessed, cx.block)
    }

    pub(super) unsafe fn source(&self, index: usize, i: usize, cx: &Cx<'_>) -> u64 {
        // SAFETY: the slot is an operand, and the lane one of the mask's.
        unsafe { slots::read(cx.regs, self.operands.src[index], self.lane(i)) }
    }

    pub(super) fn misuse<T>(&self, i: usize, why: &str) -> Outcome<T> {
        let what = self.operands.what;
        Err(RawFault::misuse(format!("{what}: {why}"), self.lane(i)))
    }

    /// The box that the instruction names by the map at `map`; an address in the map's stead counts from `base`.
    pub(super) unsafe fn tensor_box<const WATCHED: bool>(
        &self,
        (tensor, multicast): (Tensor, bool),
        map: &Address<Slot>,
        (writes, base): (bool, u64),
        i: usize,
        cx: &mut Cx<'_>,
    ) -> Outcome<TensorBox> {
        let places = tensor.places(multicast);
        // SAFETY: all slots are operands.
        let value = |index: usize, cx: &Cx<'_>| unsafe { self.source(index, i, cx) };
        let range = (MAP, tensor_map::ALIGNMENT);
        // SAFETY: the map's address is an operand.
        let at = unsafe { self.address(map, i, range, Direction::Read, cx)? };
        if window::is_shared(cx.block, at, MAP) {
            return self.misuse(i, "a tensor map does not lie in shared memory");
        }
        access::tell_one::<WATCHED>(
            cx,
            self.lane(i),
            (at, MAP),
            map.space,
            Direction::Read,
            Proxy::Tensormap,
        );
        // SAFETY: the bytes were just found to be readable; any make such an array.
        let bytes = unsafe { (at as *const [u8; tensor_map::BYTES]).read_unaligned() };
        let mut map = match TensorMap::decode(&bytes) {
            Ok(map) => map,
            Err(why) => return self.misuse(i, &format!("{why}, at {at:#x}")),
        };
        let coordinates: Vec<i32> = places
            .coordinates
            .clone()
            .map(|index| value(index, cx) as i32)
            .collect();
        if let Some(index) = places.address {
            map.address = base.wrapping_add(value(index, cx));
        }
        if tensor.over == Override::Sizes {
            for (dimension, index) in places.sizes.clone().enumerate() {
                map.dims[dimension] = value(index, cx) & 0xff;
            }
            let upper = places.upper.map_or(0, |index| value(index, cx));
            for (dimension, index) in places.strides.clone().enumerate() {
                map.strides[dimension] = (value(index, cx) | (upper >> (4 * dimension) & 0xf) << 32) << 4;
            }
            if coordinates.iter().any(|at| *at != 0) {
                return self.misuse(i, "where sizes are given, the coordinates are 0");
            }
        }
        if tensor.over != Override::None
            && let Some(why) = map.wrong()
        {
            return self.misuse(i, why);
        }
        let info = |n: usize, cx: &Cx<'_>| match places.info.clone().nth(n) {
            Some(index) => value(index, cx) as u16,
            None => 0,
        };
        let walk = match tensor.mode {
            Mode::Tile => Walk::Tile,
            Mode::Gather4 | Mode::Scatter4 => match coordinates[..] {
                [_, a, b, c, d] => Walk::Rows([a, b, c, d]),
                _ => return self.misuse(i, "four rows have four coordinates"),
            },
            Mode::Im2col | Mode::Im2colNoOffs => Walk::Im2col([info(0, cx), info(1, cx), info(2, cx)]),
            Mode::Im2colW => Walk::Im2colW {
                halo: info(0, cx),
                offset: info(1, cx),
            },
            Mode::Im2colW128 => Walk::Im2colW128 {
                halo: info(0, cx),
                offset: info(1, cx),
            },
        };
        let start = &coordinates[..usize::from(tensor.dims).min(coordinates.len())];
        match TensorBox::new(map, start, walk, writes) {
            Ok(boxed) => Ok(boxed),
            Err(why) => self.misuse(i, why),
        }
    }

    /// All rows of the box are the kernel's, which reads or writes them.
    fn check_rows<const WATCHED: bool>(&self, place: &Place, direction: Direction, i: usize, cx: &Cx<'_>) -> Outcome {
        let lane = self.lane(i);
        place.tensor.rows(|row| {
            let (address, span) = (row.address, place.span(&row));
            if cx.block.view.exact && span > 0 {
                within::tensor(place.tensor.map(), (address, span), direction, lane)?;
            }
            if !access::anybody(cx.block.view, address, span, direction.bits()) {
                let write = direction != Direction::Read;
                return Err(RawFault::illegal(address, span, write, lane, Space::Global));
            }
            if WATCHED && span > 0 {
                access::tell_one::<WATCHED>(cx, lane, (address, span), Space::Global, direction, Proxy::Async);
            }
            Ok(())
        })
    }

    /// Tells of all of the box in shared memory.
    pub(super) fn tell_shared<const WATCHED: bool>(&self, place: &Place, direction: Direction, i: usize, cx: &Cx<'_>) {
        if !WATCHED {
            return;
        }
        let (swizzle, bytes) = (place.tensor.map().swizzle, place.tensor.row_bytes() as usize);
        let row = |row: Row| {
            pieces(
                swizzle,
                place.offset + row.place * place.tensor.pitch(),
                bytes,
                |_, offset, bytes| {
                    let range = (place.window + u64::from(offset), bytes as u64);
                    access::tell_one::<WATCHED>(cx, self.lane(i), range, Space::Shared, direction, Proxy::Async);
                },
            );
            Ok::<(), RawFault>(())
        };
        let _ = place.tensor.rows(row);
    }

    /// Tells that what lies in one memory is what lay in the other.
    fn tell_copied<const WATCHED: bool>(&self, place: &Place, loads: bool, i: usize, cx: &Cx<'_>) {
        if !WATCHED {
            return;
        }
        let _ = place.tensor.rows(|row| {
            if !loads && shadow::get().is_some_and(|memory| place.pack_shadows(&row, memory)) {
                return Ok(());
            }
            place.copies(&row, |global, shared, bytes| {
                let (from, to) = if loads { (global, shared) } else { (shared, global) };
                cx.copied::<WATCHED>(self.lane(i), from, to, bytes);
            });
            Ok::<(), RawFault>(())
        });
    }

    unsafe fn load<const WATCHED: bool>(&self, load: Load, i: usize, cx: &mut Cx<'_>, state: &mut State) -> Outcome {
        let [to, barrier, map] = &self.operands.addresses[..] else {
            return self.misuse(i, "addresses are missing");
        };
        let multicast = load.multicast.is_some();
        // SAFETY: the operands are slots, as the caller promises, here and below.
        let (boxed, to, barrier) = unsafe {
            let boxed = self.tensor_box::<WATCHED>((load.tensor, multicast), map, (false, 0), i, cx)?;
            let to_address = self.address(to, i, (boxed.extent(), BOX), Direction::Write, cx)?;
            self.stays(to, (to_address, boxed.extent()), true, i, cx)?;
            let barrier = self.address(barrier, i, (BARRIER, BARRIER), Direction::Atomic, cx)?;
            (boxed, to_address, barrier)
        };
        let mask = load.tensor.places(multicast).mask;
        // SAFETY: the operands are slots of the running window, as the caller promises.
        let mask = mask.map(|index| unsafe { self.source(index, i, cx) } as u32);
        let bytes = boxed.transferred();
        for (to, barrier) in self.destinations((to, barrier), mask, load.pair, i, cx)? {
            check_barrier(cx, state, barrier, self.lane(i), load.report.is_some())?;
            let number = state.asynchronous.number();
            cx.operation = Some(number);
            let place = place(boxed, to, cx);
            let completion = Completion::Bytes { barrier, bytes };
            tell_begin::<WATCHED>(cx, number, (self.warp, 1 << i), completion);
            let told = self.check_rows::<WATCHED>(&place, Direction::Read, i, cx);
            self.tell_shared::<WATCHED>(&place, Direction::Write, i, cx);
            cx.operation = None;
            told?;
            self.tell_copied::<WATCHED>(&place, true, i, cx);
            let work = tensor::Load {
                place,
                report: load.report,
            };
            self.begin((number, i), Box::new(work), completion, cx, state);
        }
        Ok(())
    }

    /// Where the box goes, and the barriers that count its bytes: one of each, or of each block of the mask. Of pairs
    /// of blocks, all even ones may be told or all odd ones, as the barrier's own block is (PTX ISA,
    /// cp.async.bulk.tensor, `.cta_group::2`).
    fn destinations(
        &self,
        (to, barrier): (u64, u64),
        mask: Option<u32>,
        pair: bool,
        i: usize,
        cx: &Cx<'_>,
    ) -> Outcome<Vec<(u64, u64)>> {
        let Some(mask) = mask else {
            return Ok(vec![(to, barrier)]);
        };
        let there = |at, rank| match window::in_block(cx.block, at, rank) {
            Some(at) => Ok(at),
            None => self.misuse(i, &format!("there is no block {rank} in the cluster")),
        };
        let own = (0..u32::BITS).find(|rank| window::in_block(cx.block, barrier, *rank) == Some(barrier));
        let told = |rank: u32| match own {
            Some(own) if pair => rank & !1 | own & 1,
            _ => rank,
        };
        bits(mask)
            .map(|rank| Ok((there(to, rank as u32)?, there(barrier, told(rank as u32))?)))
            .collect()
    }

    fn begin(
        &self,
        (number, i): (u64, usize),
        work: Box<dyn Work>,
        completion: Completion,
        cx: &Cx<'_>,
        state: &mut State,
    ) {
        state.begin(Operation {
            owner: Owner::of(cx, self.lane(i)),
            line: None,
            work,
            completion,
            number,
        });
    }

    unsafe fn store<const WATCHED: bool>(&self, store: Store, i: usize, cx: &mut Cx<'_>, state: &mut State) -> Outcome {
        let [from, map] = &self.operands.addresses[..] else {
            return self.misuse(i, "addresses are missing");
        };
        // SAFETY: the operands are slots, as the caller promises.
        let (boxed, from) = unsafe {
            let boxed = self.tensor_box::<WATCHED>((store.tensor, false), map, (true, 0), i, cx)?;
            let box_at = self.address(from, i, (boxed.extent(), BOX), Direction::Read, cx)?;
            self.stays(from, (box_at, boxed.extent()), false, i, cx)?;
            (boxed, box_at)
        };
        let element = boxed.map().element;
        let (reduce, direction) = match store.reduction {
            None => (None, Direction::Write),
            Some(op) => match tensor::reduction(op, element) {
                Some(reduce) => (Some(reduce), Direction::Atomic),
                None => {
                    return self.misuse(
                        i,
                        &format!("there is no such reduction of elements of type {element:?}"),
                    );
                }
            },
        };
        let number = state.asynchronous.number();
        cx.operation = Some(number);
        let place = place(boxed, from, cx);
        tell_begin::<WATCHED>(cx, number, (self.warp, 1 << i), Completion::Group);
        let told = self.check_rows::<WATCHED>(&place, direction, i, cx);
        self.tell_shared::<WATCHED>(&place, Direction::Read, i, cx);
        cx.operation = None;
        told?;
        if reduce.is_none() {
            self.tell_copied::<WATCHED>(&place, false, i, cx);
        }
        let work = tensor::Store::new(place, reduce);
        self.begin((number, i), Box::new(work), Completion::Group, cx, state);
        Ok(())
    }

    unsafe fn replace<const WATCHED: bool>(&self, field: Field, i: usize, cx: &mut Cx<'_>) -> Outcome {
        let [map] = &self.operands.addresses[..] else {
            return self.misuse(i, "addresses are missing");
        };
        let range = (MAP, tensor_map::ALIGNMENT);
        // SAFETY: the operands are slots, as the caller promises.
        let at = unsafe { self.address(map, i, range, Direction::Atomic, cx)? };
        for direction in [Direction::Read, Direction::Write] {
            access::tell_one::<WATCHED>(cx, self.lane(i), (at, MAP), map.space, direction, Proxy::Generic);
        }
        // SAFETY: the bytes were found to be readable; any make such an array.
        let mut bytes = unsafe { (at as *const [u8; tensor_map::BYTES]).read_unaligned() };
        // SAFETY: the sources are operands.
        let source = |index: usize| unsafe { self.source(index, i, cx) };
        let (ordinal, value) = match field.has_ordinal() {
            true => (source(0) as usize, source(1)),
            false => (0, source(0)),
        };
        let most = match field {
            Field::GlobalStride => tensor_map::MOST - 1,
            Field::GlobalAddress
            | Field::Rank
            | Field::BoxDim
            | Field::GlobalDim
            | Field::ElementStride
            | Field::Elemtype
            | Field::InterleaveLayout
            | Field::SwizzleMode
            | Field::SwizzleAtomicity
            | Field::FillMode => tensor_map::MOST,
        };
        if ordinal >= most {
            return self.misuse(i, &format!("a tensor map has no number {ordinal} of these"));
        }
        let mut fields = match Fields::of(&mut bytes) {
            Ok(fields) => fields,
            Err(why) => return self.misuse(i, &format!("{why}, at {at:#x}")),
        };
        match field {
            Field::GlobalAddress => fields.set_address(value),
            // The instruction takes one less (PTX ISA, tensormap.replace).
            Field::Rank => fields.set_rank(value + 1),
            Field::BoxDim => fields.set_tile(ordinal, value),
            Field::GlobalDim => fields.set_dim(ordinal, value),
            Field::GlobalStride => fields.set_stride(ordinal, value),
            Field::ElementStride => fields.set_step(ordinal, value),
            Field::Elemtype => match Element::from_replaced(value) {
                Some(element) => fields.set_element(element),
                None => return self.misuse(i, &format!("there is no element type {value}")),
            },
            Field::InterleaveLayout => fields.set_interleave(value),
            Field::SwizzleMode => fields.set_swizzle_mode(value),
            Field::SwizzleAtomicity => fields.set_swizzle_atomicity(value),
            Field::FillMode => fields.set_fill(value),
        }
        // SAFETY: the bytes were found to be writable.
        unsafe { (at as *mut [u8; tensor_map::BYTES]).write_unaligned(bytes) };
        Ok(())
    }

    /// All threads of a warp name the same map, and one copies it.
    unsafe fn copy_map<const WATCHED: bool>(&self, scope: Scope, active: u32, cx: &mut Cx<'_>) -> Outcome {
        let i = active.trailing_zeros() as usize;
        let [to, from] = &self.operands.addresses[..] else {
            return self.misuse(i, "addresses are missing");
        };
        let range = (MAP, tensor_map::ALIGNMENT);
        // SAFETY: the operands are slots, as the caller promises.
        let (target, source) = unsafe {
            let target = self.address(to, i, range, Direction::Write, cx)?;
            (target, self.address(from, i, range, Direction::Read, cx)?)
        };
        let lane = self.lane(i);
        access::tell_one::<WATCHED>(cx, lane, (source, MAP), from.space, Direction::Read, Proxy::Generic);
        access::tell_one::<WATCHED>(cx, lane, (target, MAP), to.space, Direction::Write, Proxy::Tensormap);
        // SAFETY: both ranges were found to be the kernel's; they may be the same.
        unsafe { std::ptr::copy(source as *const u8, target as *mut u8, tensor_map::BYTES) };
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        cx.synchronised::<WATCHED>(|| {
            let mut lanes = [0; crate::isa::lanes::MAX_WARPS];
            lanes[self.warp] = active;
            SyncEvent::Fence {
                lanes,
                ordering: Ordering::Release,
                scope: Some(scope),
                proxy: Proxy::Tensormap,
            }
        });
        Ok(())
    }
}

/// The box at an address in shared memory, of which places count from the start of its block's window.
pub(super) fn place(tensor: TensorBox, address: u64, cx: &Cx<'_>) -> Place {
    let offset = address.wrapping_sub(cx.block.shared) % peers::STRIDE;
    Place {
        tensor,
        window: address - offset,
        offset: offset as u32,
    }
}
