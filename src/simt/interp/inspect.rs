//! Operations on floats that somebody looks at (`MARGAY_CHECK=fp`): the lanes whose results, or operands where there is no float
//! among the results, may be wrong are told.
//!
//! A watched grid's code has [`Inspected`] in the place of such operations. Most lanes have nothing to tell, which a look at
//! exponents says; operands are kept from before, since a result may take a source's place.

use std::mem::MaybeUninit;

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
    /// Sources in whose place the result comes, by bit.
    lost: u8,
    span: Span,
    kinds: NumberKinds,
}

/// What a source held.
type Kept = MaybeUninit<[u64; MAX_WARPS * WARP]>;

impl Inspected {
    /// `None`: there is nothing to look at.
    pub fn new(
        op: Compute,
        (kernel, operands): (LaneKernel, Operands),
        (dst, src): (&[Slot], &[Slot]),
        (span, warps): (Span, u32),
    ) -> Option<Inspected> {
        // Floats have 64 bits at most, and no operation on them has predicates that it overwrites.
        let keeps = |slot: &Slot| !matches!(slot.width, Width::B128 | Width::Pred);
        let floats = op.floats().filter(|_| dst.iter().chain(src).all(keeps))?;
        let place = |slot: &Slot| slot.offset..slot.offset + slot.width.warp_bytes() * warps;
        let meets = |slot: &Slot| {
            let own = place(slot);
            dst.iter()
                .map(place)
                .any(|other| own.start < other.end && other.start < own.end)
        };
        let lost = src.iter().enumerate().filter(|(_, slot)| meets(slot));
        Some(Inspected {
            kernel,
            operands,
            op,
            floats,
            dst: *dst.first()?,
            src: src.to_vec(),
            lost: lost.fold(0, |all, (index, _)| all | 1 << index),
            span,
            kinds: config::get().check.numbers,
        })
    }

    /// Computes, and looks.
    ///
    /// # Safety
    /// The operands are slots of the window at `cx.regs`.
    pub unsafe fn run(&self, full: bool, cx: &mut Cx<'_>) {
        let mut kept = [const { Kept::uninit() }; 4];
        let warps = cx.mask.warps as usize;
        for (index, slot) in self
            .src
            .iter()
            .enumerate()
            .filter(|(index, _)| self.lost >> index & 1 == 1)
        {
            let bytes = slot.width.warp_bytes() as usize * warps;
            debug_assert!(bytes <= size_of::<Kept>(), "floats have 64 bits at most");
            // SAFETY: the source is a slot of the window, as the caller promises, with so many bytes for these warps, and
            // they fit: `new` refuses operands of more than 64 bits.
            unsafe {
                let from = cx.regs.add(slot.offset as usize);
                std::ptr::copy_nonoverlapping(from, kept[index].as_mut_ptr().cast::<u8>(), bytes);
            }
        }
        // What is read for an integer may be gone behind.
        // SAFETY: the slots are those of the window, as the caller promises.
        let before = self.floats.does == Does::ToInteger && unsafe { self.may_be_wrong(cx.regs, self.src[0], warps) };
        let run = if full { self.kernel.full } else { self.kernel.masked };
        // SAFETY: as the caller promises; kernels are of the level that the CPU was found to have.
        unsafe { run(cx.regs, &self.operands, &cx.mask) };
        let looks = match self.floats.does {
            Does::ToInteger => before,
            Does::Sum if self.kinds.lost != 0 => true,
            // SAFETY: `dst` is a slot of the window at `cx.regs`, which holds these warps.
            Does::Sum | Does::Product | Does::Other => unsafe { self.may_be_wrong(cx.regs, self.dst, warps) },
        };
        if looks {
            // SAFETY: the slots are those of the window, and the operands that `lost` asks for were kept before the operation.
            unsafe { self.look(cx, &kept) };
        }
    }

    /// Whether any number in a slot, of whatever lane, has an exponent that is worth a closer look.
    ///
    /// # Safety
    /// The slot lies in the window at `regs`, which has so many warps.
    #[inline(always)]
    unsafe fn may_be_wrong(&self, regs: *mut u8, slot: Slot, warps: usize) -> bool {
        let bytes = slot.width.warp_bytes() as usize * warps;
        let small = self.kinds.subnormal;
        macro_rules! any {
            ($t:ty, $exponent:literal) => {{
                // SAFETY: a slot is aligned to its width, has so many bytes, as the caller promises, and any bits are a number.
                let values = unsafe {
                    std::slice::from_raw_parts(regs.add(slot.offset as usize).cast::<$t>(), bytes / size_of::<$t>())
                };
                let large = values.iter().fold(false, |any, value| any | (value & $exponent == $exponent));
                large || small && values.iter().fold(false, |any, value| any | (value & $exponent == 0))
            }};
        }
        match self.floats.result.real {
            Real::F16 => any!(u16, 0x7c00),
            Real::Bf16 => any!(u16, 0x7f80),
            Real::F32 => any!(u32, 0x7f80_0000),
            Real::F64 => any!(u64, 0x7ff0_0000_0000_0000),
        }
    }

    /// Tells of lanes whose numbers may be wrong.
    ///
    /// # Safety
    /// The operands are slots of the window at `cx.regs`; `kept` has the sources that [`Inspected::lost`] names.
    #[cold]
    unsafe fn look(&self, cx: &Cx<'_>, kept: &[Kept; 4]) {
        let Some(observer) = cx.block.env.watch().observer() else {
            return;
        };
        for w in 0..cx.mask.warps as usize {
            let mut sources = [[0; WARP]; 4];
            for (index, (source, slot)) in sources.iter_mut().zip(&self.src).enumerate() {
                let (start, slot) = match self.lost >> index & 1 == 1 {
                    true => (
                        kept[index].as_ptr().cast::<u8>().cast_mut(),
                        Slot { offset: 0, ..*slot },
                    ),
                    false => (cx.regs, *slot),
                };
                // SAFETY: a slot of the window, or the copy of one, as the caller promises.
                unsafe { warp(start, slot, w, source) };
            }
            let mut results = sources[0];
            if self.floats.does != Does::ToInteger {
                // SAFETY: the destination is a slot of the window, likewise.
                unsafe { warp(cx.regs, self.dst, w, &mut results) };
            }
            let lanes = self.suspicious(&results) & cx.mask.lanes[w];
            if lanes != 0 {
                let computed = Computed {
                    op: &self.op,
                    floats: &self.floats,
                    warp: w,
                    lanes,
                    results: &results,
                    sources: &sources,
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
