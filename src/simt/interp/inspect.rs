//! Operations on floats that somebody looks at (`MARGAY_CHECK=fp`): the lanes whose results, or operands where there is no float
//! among the results, may be wrong are told.
//!
//! A watched grid's code has [`Inspected`] in the place of such operations. Most lanes have nothing to tell, which a look at
//! exponents says; operands are kept from before, since a result may take a source's place.

use crate::config::{self, NumberKinds};
use crate::isa::floats::{Does, Floats, Real};
use crate::isa::lanes::{LaneKernel, MAX_WARPS, Operands, WARP, Width};
use crate::program::Compute;
use crate::ptx::ast::Span;
use crate::simt::machine::Cx;
use crate::simt::machine::observe::Computed;
use crate::simt::machine::slots::{self, Slot};

/// An operation with floats, and where they are.
pub struct Inspected {
    kernel: LaneKernel,
    operands: Operands,
    op: Compute,
    floats: Floats,
    dst: Slot,
    src: Vec<Slot>,
    span: Span,
    kinds: NumberKinds,
}

impl Inspected {
    /// `None`: there is nothing to look at.
    pub fn new(
        op: Compute,
        (kernel, operands): (LaneKernel, Operands),
        (dst, src): (&[Slot], &[Slot]),
        span: Span,
    ) -> Option<Inspected> {
        let floats = op.floats()?;
        Some(Inspected {
            kernel,
            operands,
            op,
            floats,
            dst: *dst.first()?,
            src: src.to_vec(),
            span,
            kinds: config::get().check.numbers,
        })
    }

    /// Computes, and looks.
    ///
    /// # Safety
    /// The operands are slots of the window at `cx.regs`.
    pub unsafe fn run(&self, full: bool, cx: &mut Cx<'_>) {
        let mut before = [[[0_u64; WARP]; 4]; MAX_WARPS];
        let mask = cx.mask;
        let warps = mask.warps as usize;
        for (w, sources) in before.iter_mut().enumerate().take(warps) {
            for (source, slot) in sources.iter_mut().zip(&self.src) {
                // SAFETY: the source is a slot of the window, as the caller promises, which has so many warps.
                unsafe { warp(cx.regs, *slot, w, source) };
            }
        }
        let run = if full { self.kernel.full } else { self.kernel.masked };
        // SAFETY: as the caller promises; kernels are of the level that the CPU was found to have.
        unsafe { run(cx.regs, &self.operands, &mask) };
        for (w, sources) in before.iter().enumerate().take(warps) {
            let mut results = [0; WARP];
            if self.floats.does == Does::ToInteger {
                results = sources[0];
            } else {
                // SAFETY: the destination is a slot of the window, likewise.
                unsafe { warp(cx.regs, self.dst, w, &mut results) };
            }
            let lanes = self.suspicious(&results) & mask.lanes[w];
            if lanes != 0
                && let Some(observer) = cx.block.env.watch().observer()
            {
                let computed = Computed {
                    op: &self.op,
                    floats: &self.floats,
                    warp: w,
                    lanes,
                    results: &results,
                    sources,
                    count: self.src.len(),
                };
                observer.computed(&cx.who(self.span), &computed);
            }
        }
    }

    /// Lanes in which something may be wrong.
    fn suspicious(&self, results: &[u64; WARP]) -> u32 {
        let packed = self.floats.result;
        let mut lanes = 0;
        for element in 0..packed.count {
            lanes |= match packed.real {
                Real::F16 => special::<16, 10>(results, element),
                Real::Bf16 => special::<16, 7>(results, element),
                Real::F32 => special::<32, 23>(results, element),
                Real::F64 => special::<64, 52>(results, element),
            };
        }
        if self.kinds.subnormal && self.floats.does != Does::ToInteger {
            for (lane, result) in results.iter().enumerate() {
                let is_small = |element: usize| packed.real.exponent(packed.element(*result, element)) == 0;
                lanes |= u32::from((0..packed.count).any(is_small)) << lane;
            }
        }
        if self.kinds.lost != 0 && self.floats.does == Does::Sum {
            // Whoever is told computes how much is lost: of an fma the product's exponent is not at hand.
            lanes = u32::MAX;
        }
        lanes
    }
}

/// Lanes whose element has an exponent with all bits set.
fn special<const BITS: u32, const KEPT: u32>(values: &[u64; WARP], element: usize) -> u32 {
    let all = ((1_u64 << (BITS - 1 - KEPT)) - 1) << KEPT;
    let shift = element as u32 * BITS;
    let mut lanes = 0;
    for (lane, value) in values.iter().enumerate() {
        lanes |= u32::from(value >> shift & all == all) << lane;
    }
    lanes
}

/// The values of one warp.
///
/// # Safety
/// The slot lies in the window at `regs`, which has warp `w`.
unsafe fn warp(regs: *mut u8, slot: Slot, w: usize, out: &mut [u64; WARP]) {
    // SAFETY: a slot of this width has a run of so many values for each warp of the window, as the caller promises.
    unsafe {
        let start = regs.add(slot.offset as usize + w * slot.width.warp_bytes() as usize);
        match slot.width {
            Width::B16 => (0..WARP).for_each(|lane| out[lane] = (*start.cast::<u16>().add(lane)).into()),
            Width::B32 => (0..WARP).for_each(|lane| out[lane] = (*start.cast::<u32>().add(lane)).into()),
            Width::B64 => (0..WARP).for_each(|lane| out[lane] = *start.cast::<u64>().add(lane)),
            Width::Pred | Width::B128 => {
                (0..WARP).for_each(|lane| out[lane] = slots::read(regs, slot, w * WARP + lane))
            }
        }
    }
}
