//! What tcgen05 does to the shadow of tensor memory, where values that nobody has written are looked for: the shadow is a memory of the
//! same form ([`Memory::shadow`]), whose cells have a bit for each bit, set where nobody has written it.
//!
//! An element of a product is missing if anything is of its row of A, of its column of B, of the element itself if that counts, or of a
//! factor of the row or column; of a sparse A if the row's metadata are, and of B the elements count that these choose.

use std::cell::Cell;

use super::multiply::{First, Multiplication};
use super::transfer::Window;
use super::{Job, Part, Warp};
use crate::isa::lanes::WARP;
use crate::isa::mma::{self, Accumulator, Metadata};
use crate::memory::shadow as memory;
use crate::program::Space;
use crate::simt::machine::joint::descriptor::{self, UNIT};
use crate::simt::machine::observe::{self, Undefined};
use crate::simt::machine::shadow_lanes::{missing, tell};
use crate::simt::machine::slots::{Slot, bits, read};
use crate::simt::machine::tensor_memory::{LANES, Memory};

/// Bits of sixteen bytes of a block's shared memory that nobody has written.
pub fn unit(part: &Part, address: u32) -> [u8; UNIT] {
    let found = memory::get().map_or(0, |memory| missing(memory, part.at(address), UNIT));
    found.to_le_bytes()
}

/// A row of A or a column of B: which of its elements are missing, and where in shared memory one of them is.
#[derive(Clone, Copy, Default)]
struct Line {
    codes: u128,
    place: Option<u64>,
}

impl Line {
    fn add(&mut self, code: usize, place: Option<u64>) {
        self.codes |= 1 << code;
        self.place = self.place.or(place);
    }
}

impl Multiplication {
    /// Before the product itself: what is missing of D.
    pub fn follow(&self, job: &Job, memories: &mut [Memory]) {
        if job.parts().iter().all(|part| memories[part.rank].shadow.is_none()) {
            return;
        }
        let n = self.n();
        let mut columns = vec![Line::default(); n];
        let (range, count) = self.columns();
        for (i, part) in job.parts().iter().enumerate() {
            let at = Cell::new(0);
            let fetch = |address| {
                at.set(part.at(address));
                Ok::<_, std::convert::Infallible>(unit(part, address))
            };
            let put = |column: usize, k: usize, code: u32| {
                if code != 0 {
                    columns[i * count + column].add(k, Some(at.get()));
                }
            };
            let Ok(()) = descriptor::gather(&self.b, self.second_form(), range.clone(), self.k(), fetch, put);
        }
        for (column, line) in columns.iter_mut().enumerate() {
            if self.skips(column) {
                *line = Line::default();
            }
        }
        for (number, part) in job.parts().iter().enumerate() {
            let memory = &mut memories[part.rank];
            if let Some(mut shadow) = memory.shadow.take() {
                self.follow_block(part, number, (memory, &mut shadow), columns.clone());
                memory.shadow = Some(shadow);
            }
        }
    }

    fn follow_block(
        &self,
        part: &Part,
        number: usize,
        (memory, shadow): (&Memory, &mut Memory),
        mut columns: Vec<Line>,
    ) {
        let (rows, n, kept) = (self.rows(), self.n(), self.kept());
        let mut lines = self.rows_missing(part, shadow);
        // Of each row the codes of B that it is multiplied with.
        let mut with = vec![u128::MAX; rows];
        if self.is_sparse() {
            let of = Metadata::of(self.element_of_a(), self.nibbles());
            for (row, with) in with.iter_mut().enumerate() {
                let named = self.row_metadata(memory, row);
                *with = (0..kept).fold(0, |all, at| all | 1 << of.column(named, at));
                if self.row_metadata(shadow, row) != 0 {
                    lines[row].codes = u128::MAX;
                }
            }
        }
        if self.has_factors() {
            let is_missing = |of: &[u8]| of.iter().any(|byte| *byte != 0);
            for (row, line) in lines.iter_mut().enumerate() {
                if is_missing(&self.factors_of_row(shadow, row)) {
                    line.codes = u128::MAX;
                }
            }
            for (column, line) in columns.iter_mut().enumerate() {
                if is_missing(&self.factors_of_column(shadow, column)) {
                    line.codes = u128::MAX;
                }
            }
        }
        // Of a half the upper bits are zeros.
        let all = match self.sum() {
            Accumulator::F16 => 0xffff,
            Accumulator::F32 | Accumulator::S32 | Accumulator::F64 => u32::MAX,
        };
        let stride = mma::stride(rows);
        let mut d = vec![0; n * stride];
        self.each_cell(rows, stride, number, |lane, column, at| {
            let before = if self.adds() {
                shadow.cell(lane, column) & all
            } else {
                0
            };
            let (row, of) = (at % stride, at / stride);
            let of_column = columns[of].codes & with[row] != 0;
            d[at] = u32::from(lines[row].codes != 0 || of_column || before != 0) * all;
        });
        self.each_cell(rows, stride, number, |lane, column, at| {
            let (row, of) = (at % stride, at / stride);
            let place = lines[row]
                .place
                .or(columns[of].place.filter(|_| columns[of].codes & with[row] != 0));
            // Where the element itself was missing, it is from where it was.
            match (d[at], place) {
                (0, _) => shadow.leave(lane, column, 0, None),
                (missing, Some(place)) => shadow.leave(lane, column, missing, Some(place)),
                (missing, None) => shadow.set(lane, column, missing),
            }
        });
    }

    /// What is missing of A's rows in a block.
    fn rows_missing(&self, part: &Part, shadow: &Memory) -> Vec<Line> {
        let mut lines = vec![Line::default(); self.rows()];
        let First::Shared(matrix) = &self.a else {
            let (mut codes, stride) = (Vec::new(), mma::stride(self.rows()));
            self.gather_a(part, shadow, 0, &mut codes);
            for (at, code) in codes.iter().enumerate() {
                if *code != 0 && at % stride < lines.len() {
                    lines[at % stride].add(at / stride, None);
                }
            }
            return lines;
        };
        let at = Cell::new(0);
        let fetch = |address| {
            at.set(part.at(address));
            Ok::<_, std::convert::Infallible>(unit(part, address))
        };
        let put = |row: usize, k: usize, code: u32| {
            if code != 0 {
                lines[row].add(k, Some(at.get()));
            }
        };
        let Ok(()) = descriptor::gather(matrix, self.first_form(), 0..self.rows(), self.kept(), fetch, put);
        lines
    }
}

/// Shadows of a transfer's registers are its last operands, as many as it has registers (`passes/shadows/tensor_memory.rs`).
impl Warp<'_, '_> {
    /// What is missing in registers that are loaded.
    ///
    /// # Safety
    /// The operands lie in the running window.
    pub(super) unsafe fn load_shadows(&self, window: &Window, shadow: &Memory, slots: &[Option<Slot>]) {
        let registers = slots.len();
        let mut found = [None; WARP];
        for (r, slot) in slots.iter().enumerate() {
            let values = window.load(shadow, r);
            note(window, (r, registers), &values, shadow, &mut found);
            if let Some(slot) = slot {
                // SAFETY: the destinations are slots of the running window, of 32 bits.
                unsafe { self.write(*slot, &values) };
            }
        }
        self.tell_missing(shadow, &found);
    }

    /// Of `tcgen05.ld.red`, all of a thread's results are missing if anything is that it looks at; what it loads besides, to the bit.
    ///
    /// # Safety
    /// The operands lie in the running window.
    pub(super) unsafe fn reduce_shadows(
        &self,
        window: &Window,
        shadow: &Memory,
        (loaded, kept): (usize, bool),
        slots: &[Option<Slot>],
    ) {
        let mut found = [None; WARP];
        let mut any = [0; WARP];
        let mut all = Vec::with_capacity(loaded);
        for r in 0..loaded {
            let values = window.load(shadow, r);
            note(window, (r, loaded), &values, shadow, &mut found);
            for (any, value) in any.iter_mut().zip(values) {
                *any |= u32::from(value != 0).wrapping_neg();
            }
            all.push(values);
        }
        for (r, slot) in slots.iter().enumerate() {
            let Some(slot) = slot else { continue };
            let values = all.get(r).filter(|_| kept).unwrap_or(&any);
            // SAFETY: the destinations are slots of the running window, of 32 bits.
            unsafe { self.write(*slot, values) };
        }
        self.tell_missing(shadow, &found);
    }

    fn tell_missing(&self, shadow: &Memory, found: &[Option<(usize, usize)>; WARP]) {
        let window = self.cx.block.shared;
        let (mut lanes, mut addresses) = (0, [0; WARP]);
        for l in bits(self.active) {
            if let Some((lane, column)) = found[l] {
                lanes |= 1 << l;
                addresses[l] = shadow
                    .origin(lane, column)
                    .unwrap_or(observe::cell(window, lane, column));
            }
        }
        if lanes == 0 {
            return;
        }
        let event = Undefined::Loaded {
            warp: self.w,
            lanes,
            addresses: &addresses,
            bytes: UNIT as u32,
            space: Space::Shared,
        };
        tell(self.cx, self.cx.span, &event);
    }

    /// What is missing in registers that are stored.
    ///
    /// # Safety
    /// The operands lie in the running window.
    pub(super) unsafe fn store_shadows(&self, window: &Window, shadow: &mut Memory, slots: &[Slot]) {
        for (r, slot) in slots.iter().enumerate() {
            // SAFETY: the sources are slots of the running window.
            let values: [u32; WARP] =
                std::array::from_fn(|l| unsafe { read(self.cx.regs, *slot, self.w * WARP + l) } as u32);
            window.store(shadow, r, self.active, &values);
            let (mut lanes, mut addresses) = (0, [0; WARP]);
            for l in bits(self.active) {
                let (lane, column) = window.cell(l, r);
                shadow.forget_origin(lane, column);
                lanes |= u32::from(values[l] != 0) << l;
                addresses[l] = observe::cell(self.cx.block.shared, lane, column);
            }
            if lanes != 0 {
                let event = Undefined::Stored {
                    warp: self.w,
                    lanes,
                    addresses: &addresses,
                    bytes: 4,
                };
                tell(self.cx, self.cx.span, &event);
            }
        }
    }
}

/// Remembers of each thread the first cell in which something is missing.
fn note(
    window: &Window,
    (r, registers): (usize, usize),
    values: &[u32; WARP],
    shadow: &Memory,
    found: &mut [Option<(usize, usize)>; WARP],
) {
    debug_assert!(r < registers && registers <= LANES);
    for (l, value) in values.iter().enumerate() {
        if *value != 0 && found[l].is_none() {
            let (lane, column) = window.cell(l, r);
            // Of two halves in one register the second may be it.
            let beside = usize::from(window.is_packed() && shadow.cell(lane, column) & 0xffff == 0);
            found[l] = Some((lane, column + beside));
        }
    }
}
