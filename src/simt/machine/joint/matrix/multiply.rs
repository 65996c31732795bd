//! `mma`, `wmma.mma`: from fragments to codes, through [`mma`], and back.

use std::cell::RefCell;

use super::fragment::{Gather, GatherA, GatherB, GatherC, GatherDoubles, ScatterD};
use super::{Double, Word, fragment, put, put_double, word};
use crate::isa::Level;
use crate::isa::joint::matrix::{Kind, Multiply};
use crate::isa::lanes::WARP;
use crate::isa::mma::{self, Accumulator, Architecture, Metadata, Product, Scratch, Tiles, Unit, stride};
use crate::simt::machine::context::Cx;
use crate::simt::machine::slots::{Slot, read};
use crate::simt::machine::step::Operands;

/// What a product needs room for.
#[derive(Default)]
struct Work {
    a: Vec<u32>,
    b: Vec<u32>,
    d: Vec<u32>,
    /// A sparse A as it came.
    elements: Vec<u32>,
    kept: Vec<u128>,
    scale_a: Vec<u8>,
    scale_b: Vec<u8>,
    doubles: [Vec<f64>; 3],
    scratch: Scratch,
}

thread_local! {
    static WORK: RefCell<Work> = RefCell::default();
}

/// Most registers of an operand.
const MOST: usize = 8;

/// # Safety
/// Slots of `operands` lie in the running window, which has warp `w`, with the widths that lowering gives them.
pub unsafe fn execute(op: Multiply, operands: &Operands, cx: &Cx<'_>, w: usize) {
    WORK.with_borrow_mut(|work| {
        // SAFETY: the slots lie in the running window.
        unsafe {
            match op.kind {
                _ if op.container == 64 => doubles(op, operands, cx, w, work),
                Kind::QuadPairs { a_rows, b_rows } => quad_pairs(op, (a_rows, b_rows), operands, cx, w, work),
                Kind::Mma | Kind::Wmma => fragments(op, operands, cx, w, work),
            }
        }
    });
}

/// The registers of `slots`, and room for their number.
///
/// # Safety
/// The slots lie in the running window and have 32 bits; nobody writes them while the references live.
unsafe fn words<'a>(cx: &Cx<'_>, slots: &[Slot], w: usize) -> arrayvec::ArrayVec<&'a Word, MOST> {
    // SAFETY: the caller's.
    slots.iter().map(|slot| unsafe { word(cx, *slot, w) }).collect()
}

/// A plain product ([`Multiply::is_plain`]) on registers of A, B and C, in this order: those of D.
///
/// # Panics
/// If registers are missing.
pub fn on_registers(op: &Multiply, tensor: Architecture, registers: &[Word], results: &mut [Word]) {
    const NONE: Word = [0; WARP];
    assert!(registers.len() <= 3 * MOST, "no operand has more");
    let all: [&Word; 3 * MOST] = std::array::from_fn(|at| registers.get(at).unwrap_or(&NONE));
    let (a, rest) = all[..registers.len()].split_at(op.a_registers());
    let (b, c) = rest.split_at(op.b_registers());
    WORK.with_borrow_mut(|work| {
        gather(op, (a, b, c), work);
        sum(op, tensor, work, results);
    });
}

/// # Safety
/// As for [`execute`].
unsafe fn fragments(op: Multiply, operands: &Operands, cx: &Cx<'_>, w: usize, work: &mut Work) {
    let (a, rest) = operands.src.split_at(op.a_registers());
    let (b, rest) = rest.split_at(op.b_registers());
    let (c, rest) = rest.split_at(op.registers(op.c));
    // What is the same for all lanes is read from the first active one.
    let first = w * WARP + cx.mask.lanes[w].trailing_zeros() as usize % WARP;
    // SAFETY: the sources are slots of 32 bits of the running window; nothing is written before they are read.
    let (a, b, c) = unsafe { (words(cx, a, w), words(cx, b, w), words(cx, c, w)) };
    gather(&op, (&a, &b, &c), work);
    let scales = if op.sparse {
        let product = op.product();
        let of = Metadata::of(op.a, op.container == 4);
        // SAFETY: metadata and selector are slots of 32 bits of the running window.
        let (lanes, selector) = unsafe { (word(cx, rest[0], w), read(cx.regs, rest[1], first) as u32) };
        let rows = fragment::metadata(&op, of, lanes, selector);
        let size = (product.m, stride(product.m), product.k);
        std::mem::swap(&mut work.a, &mut work.elements);
        work.a.resize(product.k * stride(product.m), 0);
        work.kept.resize(product.m, 0);
        mma::expand(of, size, &work.elements, &rows, &mut work.a, &mut work.kept);
        &rest[2..]
    } else {
        rest
    };
    if let (Some(scaling), [scale_a, byte_a, thread_a, scale_b, byte_b, thread_b]) = (op.scaling, scales) {
        // SAFETY: factors are slots of 32 bits, the others of 16, of the running window.
        unsafe {
            let id = |slot: &Slot| read(cx.regs, *slot, first) as u32;
            let ids = (id(byte_a), id(thread_a));
            fragment::row_scales(word(cx, *scale_a, w), ids, scaling.factors, &mut work.scale_a);
            let ids = (id(byte_b), id(thread_b));
            fragment::column_scales(word(cx, *scale_b, w), ids, scaling.factors, &mut work.scale_b);
        }
    }
    let mut results = [[0; WARP]; MOST];
    let results = &mut results[..operands.dst.len()];
    sum(&op, cx.launch().tensor, work, results);
    for (&dst, result) in operands.dst.iter().zip(results) {
        // SAFETY: destinations are slots of 32 bits of the running window.
        unsafe { put(cx, dst, w, result) };
    }
}

/// The codes of A, of which a sparse one has half, of B and of C.
fn gather(op: &Multiply, (a, b, c): (&[&Word], &[&Word], &[&Word]), work: &mut Work) {
    let level = Level::current();
    let gather = |registers, to| Gather {
        op,
        registers,
        to,
        packed: true,
    };
    mma::run::<GatherA>(level, gather(a, &mut work.a));
    mma::run::<GatherB>(level, gather(b, &mut work.b));
    mma::run::<GatherC>(level, gather(c, &mut work.d));
    work.scale_a.clear();
    work.scale_b.clear();
}

/// The product of what was gathered, as the registers of D.
fn sum(op: &Multiply, tensor: Architecture, work: &mut Work, results: &mut [Word]) {
    let product = op.product();
    // `ptxas` makes `wmma.mma` of mixed accumulators of `f32` for the tensor cores, and of conversions: from Turing on, all
    // sum in `f32`.
    let mixed = op.kind == Kind::Wmma && op.c != op.d && tensor > Architecture::Volta;
    match (op.c, op.d) {
        (Accumulator::F16, Accumulator::F32) if mixed => {
            for code in &mut work.d {
                *code = mma::read(Accumulator::F16, *code).to_bits();
            }
            multiply(
                &Product {
                    c: Accumulator::F32,
                    ..product
                },
                tensor,
                work,
            );
        }
        (Accumulator::F32, Accumulator::F16) if mixed => {
            multiply(
                &Product {
                    d: Accumulator::F32,
                    ..product
                },
                tensor,
                work,
            );
            for code in &mut work.d {
                *code = mma::write(Accumulator::F16, f32::from_bits(*code));
            }
        }
        _ => multiply(&product, tensor, work),
    }
    if op.saturate && op.d != Accumulator::S32 {
        saturate(op.d, &mut work.d);
    }
    mma::run::<ScatterD>(Level::current(), (op, &work.d, results));
}

fn multiply(product: &Product, tensor: Architecture, work: &mut Work) {
    let tiles = Tiles {
        a: &work.a,
        b: &work.b,
        packed: true,
        kept: &work.kept,
        scale_a: &work.scale_a,
        scale_b: &work.scale_b,
        d: &mut work.d,
    };
    mma::multiply(product, tensor, Unit::Mma, tiles, &mut work.scratch);
}

/// `.satfinite` of `wmma.mma` on halves: infinities become the largest numbers, NaN becomes zero (PTX ISA 6.0, wmma.mma).
fn saturate(d: Accumulator, results: &mut [u32]) {
    let (infinity, sign) = match d {
        Accumulator::F16 => (0x7c00, 0x8000),
        Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => (0x7f80_0000, 0x8000_0000),
    };
    for result in results {
        let magnitude = *result & !sign;
        if magnitude == infinity {
            *result = *result & sign | (infinity - 1);
        } else if magnitude > infinity {
            *result = 0;
        }
    }
}

/// `mma.m8n8k4` of halves: lanes 4q to 4q + 3 and 16 + 4q to 19 + 4q multiply matrices of their own (PTX ISA, Matrix
/// Fragments for mma.m8n8k4 with .f16).
///
/// # Safety
/// As for [`execute`].
unsafe fn quad_pairs(
    op: Multiply,
    (a_rows, b_rows): (bool, bool),
    operands: &Operands,
    cx: &Cx<'_>,
    w: usize,
    work: &mut Work,
) {
    // SAFETY: the sources are slots of 32 bits of the running window.
    let sources: Vec<Word> = operands.src.iter().map(|slot| unsafe { *word(cx, *slot, w) }).collect();
    let (a, rest) = sources.split_at(2);
    let (b, c) = rest.split_at(2);
    let half =
        |registers: &[Word], element: usize, lane: usize| registers[element / 2][lane] >> (16 * (element % 2)) & 0xffff;
    let mut results = vec![[0; WARP]; operands.dst.len()];
    let product = op.product();
    let stride = stride(product.m);
    work.a.resize(product.k * stride, 0);
    work.b.resize(product.k * product.n, 0);
    work.d.resize(product.n * stride, 0);
    for quad in 0..4 {
        let lane = |at: usize| fragment::quad_lane(quad, at);
        for at in 0..8 {
            for k in 0..4 {
                let (holder, element) = fragment::quad_multiplicand(a_rows, at, k);
                work.a[k * stride + at] = half(a, element, lane(holder));
                let (holder, element) = fragment::quad_multiplicand(!b_rows, at, k);
                work.b[k * product.n + at] = half(b, element, lane(holder));
            }
        }
        for at in 0..8 {
            for element in 0..8 {
                let (row, column) = fragment::quad_accumulator(op.c, element, at);
                work.d[column * stride + row] = match op.c {
                    Accumulator::F16 => half(c, element, lane(at)),
                    Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => c[element][lane(at)],
                };
            }
        }
        multiply(&product, cx.launch().tensor, work);
        for at in 0..8 {
            for element in 0..8 {
                let (row, column) = fragment::quad_accumulator(op.d, element, at);
                let result = work.d[column * stride + row];
                match op.d {
                    Accumulator::F16 => results[element / 2][lane(at)] |= result << (16 * (element % 2)),
                    Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => results[element][lane(at)] = result,
                }
            }
        }
    }
    for (dst, result) in operands.dst.iter().zip(&results) {
        // SAFETY: destinations are slots of 32 bits of the running window.
        unsafe { put(cx, *dst, w, result) };
    }
}

/// # Safety
/// As for [`execute`].
unsafe fn doubles(op: Multiply, operands: &Operands, cx: &Cx<'_>, w: usize, work: &mut Work) {
    // SAFETY: the sources are slots of 64 bits of the running window, of which each warp has `WARP` numbers, aligned;
    // nothing is written before they are read.
    let of = |slot: &Slot| unsafe { &*cx.regs.add(slot.offset as usize).cast::<Double>().add(w) };
    let sources: arrayvec::ArrayVec<&Double, { 3 * MOST }> = operands.src.iter().map(of).collect();
    let (a, rest) = sources.split_at(op.a_registers());
    let (b, c) = rest.split_at(op.b_registers());
    let level = Level::current();
    mma::run::<GatherDoubles>(level, (&op, [a, b, c], &mut work.doubles));
    let [a, b, d] = &mut work.doubles;
    mma::multiply_f64(level, op.shape.sizes(), op.rounding, a, b, d);
    for (register, dst) in operands.dst.iter().enumerate() {
        let result = fragment::scattered_doubles(&op, d, register);
        // SAFETY: the destination is a slot of 64 bits of the running window; the references to sources are not used again.
        unsafe { put_double(cx, *dst, w, &result) };
    }
}
