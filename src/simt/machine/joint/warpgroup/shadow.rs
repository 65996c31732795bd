//! What a product of four warps does to shadows, where values that nobody has written are looked for: an element of D is missing if
//! anything is of its row of A, of its column of B, or of the element itself, if that counts.
//!
//! Operands are found as the product finds them. All of it is done where the instruction stands: nobody looks at D before the product
//! is complete, nor writes what it reads.

use std::cell::Cell;

use super::super::descriptor::{self, Packing, UNIT};
use super::super::matrix::culprit::{Culprits, Source};
use super::{First, Mma, Multiplication, ROWS, give, metadata, place, take};
use crate::isa::lanes::WARP;
use crate::isa::mma::{self, Accumulator, Metadata};
use crate::memory::shadow as memory;
use crate::program::ir::joint::warpgroup::Multiply;
use crate::program::{ShadowOp, Space};
use crate::ptx::ast::Span;
use crate::simt::machine::context::Cx;
use crate::simt::machine::observe::Undefined;
use crate::simt::machine::shadow_lanes::{missing, tell};
use crate::simt::machine::slots::{Slot, bits, read};

/// Sources between D's registers and A's.
const BETWEEN: usize = 8;
/// Where among the sources behind D and the descriptor of B what is not the same for all lanes stands, and what is.
const METADATA: usize = 6;
const SAME: [usize; 6] = [1, 2, 3, 4, 5, 7];

/// For warp `w`, behind the instruction itself, which has found that what it reads is the block's.
///
/// # Safety
/// Slots of `shadow` lie in the running window, which has warp `w`, with the widths of the instruction's own registers.
pub unsafe fn product(op: Mma, shadow: &ShadowOp<Slot>, span: Span, cx: &Cx<'_>, w: usize) {
    // Elements in registers are shadows here.
    let src = Multiply::of(op, &shadow.values);
    // SAFETY: the values are slots of the running window.
    let product = unsafe { Multiplication::of(op, &src, cx, w) };
    let (n, codes, kept) = (usize::from(op.n), product.product().codes(), product.kept());
    // The unit that was read last, of which the elements are that come next.
    let at = Cell::new(0_u32);
    let fetch = |address: u32| -> Result<[u8; UNIT], ()> {
        at.set(address);
        let place = cx.block.shared + u64::from(address);
        let is_there = address
            .checked_add(UNIT as u32)
            .is_some_and(|end| end <= cx.block.shared_bytes);
        let memory = memory::get().filter(|_| is_there);
        Ok(memory.map_or(0, |memory| missing(memory, place, UNIT)).to_le_bytes())
    };
    // Of each row and column, whether something is missing, and where in shared memory, or in whose register.
    let mut rows = [(false, None); ROWS];
    let mut held: [Option<Source>; ROWS] = [None; ROWS];
    match &product.a {
        First::Words(words) => {
            // A's registers are the last sources.
            let first = src.d.len() + BETWEEN;
            for (row, words) in words.iter().enumerate() {
                if let Some(at) = words.iter().position(|word| *word != 0) {
                    let register = row / 8 + 2 * (at / 4);
                    rows[row].0 = true;
                    held[row] = Some(((first + register) as u8, (row % 8 * 4 + at % 4) as u8));
                }
            }
        }
        First::Shared(matrix, major) => {
            let lines = product.warp * ROWS..(product.warp + 1) * ROWS;
            let form = (Packing::of(op.a, false), *major);
            let _ = descriptor::gather(matrix, form, lines, kept, fetch, |row, _, code| {
                if code != 0 && !rows[row].0 {
                    rows[row] = (true, Some(at.get()));
                }
            });
        }
    }
    // Of each row the codes of B that it is multiplied with.
    let mut with = [u128::MAX; ROWS];
    if let Some(named) = &product.metadata {
        let of = Metadata::of(op.a, false);
        for (with, named) in with.iter_mut().zip(named) {
            *with = (0..kept).fold(0, |all, at| all | 1 << of.column(*named, at));
        }
        if let Some(slot) = shadow.src[METADATA] {
            let first = w * WARP + cx.mask.lanes[w].trailing_zeros() as usize % WARP;
            // SAFETY: the selector and the shadow of the metadata are slots of the running window.
            let (selector, open) = unsafe {
                let selector = read(cx.regs, *src.selector, first) as usize;
                (selector, |lane: usize| read(cx.regs, slot, w * WARP + lane) as u32)
            };
            for (row, open) in rows.iter_mut().zip(metadata(op, selector, open)) {
                row.0 |= open != 0;
            }
        }
    }
    let mut columns = vec![(0_u128, None); n];
    let form = (Packing::of(op.b, false), product.b_major);
    let _ = descriptor::gather(&product.b, form, 0..n, codes, fetch, |column, k, code| {
        if code != 0 {
            let (bits, place) = &mut columns[column];
            *bits |= 1 << k;
            place.get_or_insert(at.get());
        }
    });
    // What is the same for all lanes.
    let first = w * WARP + cx.mask.lanes[w].trailing_zeros() as usize % WARP;
    // SAFETY: the shadows are slots of the running window.
    let is_open = |slot: Slot| unsafe { read(cx.regs, slot, first) } != 0;
    let all = SAME.iter().any(|index| shadow.src[*index].is_some_and(is_open));
    let stride = mma::stride(ROWS);
    let mut sum = vec![0; n * stride];
    if product.add {
        // SAFETY: what stands for D's registers are slots of the running window, of 32 bits.
        unsafe { take(src.d, op.d, cx.regs, w, &mut sum) };
    }
    // Elements that were missing before.
    let own: Vec<bool> = sum.iter().map(|code| *code != 0).collect();
    for (column, (open, _)) in columns.iter().enumerate() {
        for (row, (is_missing, _)) in rows.iter().enumerate() {
            let code = &mut sum[column * stride + row];
            let is_missing = all || *is_missing || *code != 0 || open & with[row] != 0;
            *code = if is_missing { u32::MAX } else { 0 };
        }
    }
    // SAFETY: the destinations are slots of the running window, of 32 bits.
    unsafe { give(&shadow.dst, op.d, cx.regs, (w, cx.mask.lanes[w]), &sum) };
    // Of each lane one place, or one register, from which it has what is missing first.
    let (mut lanes, mut places) = (0, [0; WARP]);
    let mut culprits = Culprits::default();
    for lane in bits(cx.mask.lanes[w]) {
        let Some(element) = (0..n / 2).find(|element| sum[place(*element, lane)] != 0) else {
            continue;
        };
        let at = place(element, lane);
        let (row, column) = (at % stride, at / stride);
        let of_column = columns[column].1.filter(|_| columns[column].0 & with[row] != 0);
        if own[at] {
            let register = match op.d {
                Accumulator::F16 => element / 2,
                Accumulator::F32 | Accumulator::S32 | Accumulator::F64 => element,
            };
            culprits.add(lane, (register as u8, lane as u8));
        } else if let Some(source) = held[row] {
            culprits.add(lane, source);
        } else if let Some(address) = rows[row].1.or(of_column) {
            lanes |= 1 << lane;
            places[lane] = cx.block.shared + u64::from(address);
        }
    }
    culprits.tell(cx, span, w);
    if lanes != 0 {
        let event = Undefined::Loaded {
            warp: w,
            lanes,
            addresses: &places,
            bytes: UNIT as u32,
            space: Space::Shared,
        };
        tell(cx, span, &event);
    }
}
