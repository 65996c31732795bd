//! What a grid has written, so that it can be undone and done again in another order of threads, and compared.
//!
//! A [`Journal`] keeps of each byte that a grid writes what was there before. When the grid has ended it gives an [`Outcome`]: what
//! is there now. Bytes that the grid has not written are not looked at and not put back, so that the host and other streams may
//! go on meanwhile.

mod outcome;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::isa::lanes::WARP;
use crate::memory::{AddressSpace, Kind, PAGE, PAGE_BITS, READ, View, WRITE};
use crate::program::{AtomicOp, AtomicType, Function, Op, Space};
use crate::ptx::ast::Span;
use crate::simt::observe::{Access, Direction, GridEvent, Observer, Who};
use crate::simt::{Launch, Site};

pub use outcome::{Differences, Outcome, Unit};

/// Bytes of arrays (which surfaces write without anybody being told) that are copied for each run at most.
const MOST_ARRAYS: u64 = 256 << 20;
/// Pages that a grid may write.
const MOST_PAGES: usize = (1 << 30) >> PAGE_BITS;

/// A bit for each byte of a page.
type Mask = [u64; PAGE as usize / 64];

/// What a grid has written of one page.
struct Page {
    original: [u8; PAGE as usize],
    written: Mask,
    /// Also by something else than additions of floats by atomics.
    plainly: Mask,
    sums: Option<Box<Sums>>,
}

/// Additions of floats by atomics, by half words of a page.
struct Sums {
    ty: [Option<Float>; PAGE as usize / 2],
    count: [u16; PAGE as usize / 2],
}

/// Floats that atomics add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Float {
    F16,
    Bf16,
    F32,
    F64,
}

impl Float {
    fn of(op: AtomicOp, ty: AtomicType) -> Option<Float> {
        let float = match ty {
            AtomicType::F32 => Float::F32,
            AtomicType::F64 => Float::F64,
            AtomicType::F16 | AtomicType::F16x2 => Float::F16,
            AtomicType::Bf16 | AtomicType::Bf16x2 => Float::Bf16,
            AtomicType::U32
            | AtomicType::S32
            | AtomicType::B32
            | AtomicType::U64
            | AtomicType::S64
            | AtomicType::B64
            | AtomicType::B16
            | AtomicType::B128 => return None,
        };
        (op == AtomicOp::Add).then_some(float)
    }

    fn bytes(self) -> usize {
        match self {
            Float::F16 | Float::Bf16 => 2,
            Float::F32 => 4,
            Float::F64 => 8,
        }
    }
}

impl Page {
    fn new() -> Box<Page> {
        Box::new(Page {
            original: [0; PAGE as usize],
            written: [0; PAGE as usize / 64],
            plainly: [0; PAGE as usize / 64],
            sums: None,
        })
    }

    /// Some bytes are about to be written; `here` is where the page's first byte lies.
    fn write(&mut self, here: u64, offset: usize, bytes: usize, float: Option<Float>) {
        for (word, mask) in words(offset, bytes) {
            let mut new = mask & !self.written[word];
            self.written[word] |= mask;
            if float.is_none() {
                self.plainly[word] |= mask;
            }
            while new != 0 {
                let at = word * 64 + new.trailing_zeros() as usize;
                new &= new - 1;
                // SAFETY: a kernel is about to write the byte, for which it was checked; a guard of the grid's stands where the
                // program takes registered memory away.
                self.original[at] = unsafe { std::ptr::read_volatile((here + at as u64) as *const u8) };
            }
        }
        if let Some(float) = float {
            let sums = self.sums.get_or_insert_with(|| {
                Box::new(Sums {
                    ty: [None; PAGE as usize / 2],
                    count: [0; PAGE as usize / 2],
                })
            });
            for at in offset / 2..(offset + bytes).div_ceil(2) {
                sums.ty[at] = Some(float);
                sums.count[at] = sums.count[at].saturating_add(1);
            }
        }
    }
}

/// The words of a mask that have a range of bytes, and the bits of it in each.
fn words(offset: usize, bytes: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = offset + bytes;
    (offset / 64..end.div_ceil(64)).map(move |word| {
        let (from, to) = (offset.max(word * 64) - word * 64, end.min(word * 64 + 64) - word * 64);
        (word, (u64::MAX >> (64 - (to - from))) << from)
    })
}

/// Who wrote something last.
#[derive(Clone, Debug)]
pub struct Writer {
    pub site: Site,
    pub block: [u32; 3],
    pub thread: [u32; 3],
    /// Where what was written there begins, and how many bytes it has.
    pub address: u64,
    pub bytes: u32,
}

/// A writer, before anybody wants to read of it.
struct Seen {
    function: usize,
    span: Span,
    block: [u32; 3],
    thread: u32,
    address: u64,
    bytes: u32,
}

#[derive(Default)]
struct State {
    pages: HashMap<u64, Box<Page>>,
    /// By function, the additions of floats that its atomics make, by place in the text.
    floats: HashMap<usize, HashMap<u32, Float>>,
    /// Arrays as they were, by where they begin.
    arrays: Vec<(u64, Vec<u8>)>,
    seen: Option<Seen>,
}

/// Sees what a grid writes, and the grids that it launches.
pub struct Journal {
    launch: Arc<Launch>,
    view: View,
    /// The byte of which somebody wants to know who writes it.
    witness: Option<u64>,
    state: Mutex<State>,
}

impl Journal {
    /// For a launch; `None`: arrays are too large to be copied. `witness` is a byte of which [`Journal::writer`] tells.
    pub fn new(launch: &Arc<Launch>, witness: Option<u64>) -> Option<Journal> {
        let space = AddressSpace::get();
        let arrays = space.live(launch.device).into_iter();
        let arrays: Vec<_> = arrays
            .filter(|allocation| allocation.kind == Kind::Array && allocation.is_in_use())
            .collect();
        if arrays.iter().map(|array| array.bytes).sum::<u64>() > MOST_ARRAYS {
            return None;
        }
        let copied = arrays.iter().map(|array| {
            // SAFETY: the allocation is live: what frees an array waits for what runs.
            let bytes = unsafe { std::slice::from_raw_parts(array.start as *const u8, array.bytes as usize) };
            (array.start, bytes.to_vec())
        });
        Some(Journal {
            launch: Arc::clone(launch),
            view: space.view(),
            witness,
            state: Mutex::new(State {
                arrays: copied.collect(),
                ..State::default()
            }),
        })
    }

    /// More was written than is compared.
    pub fn is_full(&self) -> bool {
        self.state.lock().pages.len() > MOST_PAGES
    }

    /// Who wrote the witness last.
    pub fn writer(&self) -> Option<Writer> {
        let state = self.state.lock();
        let seen = state.seen.as_ref()?;
        let [x, y, _] = self.launch.block;
        Some(Writer {
            site: Site::of_instruction(&self.launch.code.module, seen.function, seen.span),
            block: seen.block,
            thread: [seen.thread % x, seen.thread / x % y, seen.thread / x / y],
            address: seen.address,
            bytes: seen.bytes,
        })
    }

    fn wrote(&self, state: &mut State, address: u64, bytes: u64, float: Option<Float>) {
        let (mut at, end) = (address, address.saturating_add(bytes));
        while at < end {
            let number = at >> PAGE_BITS;
            let upto = end.min((number + 1) << PAGE_BITS);
            let page = match state.pages.get_mut(&number) {
                Some(page) => page,
                None if !is_kept(&self.view, at, upto - at) => return,
                None => state.pages.entry(number).or_insert_with(Page::new),
            };
            page.write(number << PAGE_BITS, (at % PAGE) as usize, (upto - at) as usize, float);
            at = upto;
        }
    }
}

/// Whether kernels may write there, to memory that outlives them.
fn is_kept(view: &View, address: u64, bytes: u64) -> bool {
    match view.contains(address) {
        true => view.rights(address) & WRITE != 0,
        false => AddressSpace::get().host_range_contains(address, bytes, READ | WRITE),
    }
}

/// The additions of floats that a function's atomics make.
fn floats(function: &Function) -> HashMap<u32, Float> {
    let blocks = function.body.blocks.iter();
    let all = blocks.flat_map(|block| &block.insts).filter_map(|inst| {
        let Op::Atomic { op, ty, .. } = &inst.op else {
            return None;
        };
        Some((inst.span.start, Float::of(*op, *ty)?))
    });
    all.collect()
}

impl Observer for Journal {
    fn access(&self, by: &Who<'_>, access: &Access<'_>) {
        let is_private = matches!(access.space, Space::Shared | Space::Local | Space::Param | Space::Const);
        if access.direction == Direction::Read || is_private {
            return;
        }
        let state = &mut *self.state.lock();
        let float = match access.direction {
            Direction::Atomic => {
                let function = std::ptr::from_ref(by.function) as usize;
                let known = state.floats.entry(function).or_insert_with(|| floats(by.function));
                known.get(&by.span.start).copied()
            }
            Direction::Read | Direction::Write => None,
        };
        for lane in (0..WARP).filter(|lane| access.lanes >> lane & 1 == 1) {
            let (address, bytes) = (access.addresses[lane], u64::from(access.bytes));
            if let Some(at) = self.witness.and_then(|witness| witness.checked_sub(address))
                && at < bytes
            {
                let element = u64::from(access.element.max(1));
                state.seen = Some(Seen {
                    function: std::ptr::from_ref(by.function) as usize,
                    span: by.span,
                    block: by.block,
                    thread: by.first_thread + (access.warp * WARP + lane) as u32,
                    address: address + at / element * element,
                    bytes: access.element,
                });
            }
            self.wrote(state, address, bytes, float);
        }
    }

    fn grid(&self, _: u64, event: &GridEvent) {
        match event {
            GridEvent::Transfer {
                address,
                bytes,
                direction: Direction::Write | Direction::Atomic,
            } => self.wrote(&mut self.state.lock(), *address, *bytes, None),
            GridEvent::Transfer { .. }
            | GridEvent::Complete { .. }
            | GridEvent::Launch
            | GridEvent::End
            | GridEvent::Block { .. }
            | GridEvent::Release { .. }
            | GridEvent::BlockEnd { .. }
            | GridEvent::Left { .. }
            | GridEvent::ClusterRelease { .. } => {}
        }
    }
}
