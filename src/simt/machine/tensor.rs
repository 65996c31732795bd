//! What tensor copies do to memory, as they complete (PTX ISA, cp.async.bulk.tensor, cp.reduce.async.bulk.tensor): rows
//! of a box, which `memory/tensor_map/` finds, go through a buffer of one row between global and shared memory.

use crate::isa::joint::bulk::Pattern;
use crate::memory::shadow::Shadow as Memory;
use crate::memory::swizzle::Swizzle;
use crate::memory::tensor_map::{Element, Row, TensorBox};
use crate::program::{AtomicOp, AtomicType};
use crate::simt::cause::Cause;

use super::access;
use super::asynchronous::Work;
use super::atomic;
use super::context::Env;
use super::mbarrier::Report;
use super::observe::Direction;
use super::shadow_lanes;

/// Bytes of a row, at most: 256 slices of 32 bytes.
const MOST_BYTES: usize = 256 * 32;

/// With so many bits elements are filled that lie outside, again and again. The manual names the value and leaves it
/// open; Hopper writes these, and `fma.oob` knows them.
const OUT_OF_BOUNDS: [u8; 2] = 0x7ff7_u16.to_le_bytes();

/// A box and its place in shared memory.
pub struct Place {
    pub tensor: TensorBox,
    /// Where the window of the block starts that has the shared memory, as the process knows it.
    pub window: u64,
    /// Where the box starts in it.
    pub offset: u32,
}

impl Place {
    fn swizzle(&self) -> Swizzle {
        self.tensor.map().swizzle
    }

    fn at(&self, row: &Row) -> u32 {
        self.offset + row.place * self.tensor.pitch()
    }

    /// Bytes of global memory from the row's first to its last that lies in the tensor.
    pub fn span(&self, row: &Row) -> u64 {
        match u64::from(row.last - row.first) {
            0 => 0,
            units => (units - 1) * self.tensor.spacing() + u64::from(self.tensor.unit().global),
        }
    }

    /// Bytes of global memory that lie in the tensor.
    pub fn written(&self) -> u64 {
        let mut bytes = 0;
        let unit = u64::from(self.tensor.unit().global);
        let Ok(()) = self.tensor.rows(|row| {
            bytes += u64::from(row.last - row.first) * unit;
            Ok::<(), std::convert::Infallible>(())
        });
        bytes
    }

    /// The runs of global memory that a row has inside the tensor: address, where they stand in the row's buffer,
    /// bytes.
    fn runs(&self, row: &Row) -> impl Iterator<Item = (u64, usize, usize)> + use<> {
        let (unit, spacing) = (self.tensor.unit(), self.tensor.spacing());
        let whole = unit.global == unit.shared && spacing == u64::from(unit.global);
        let units = row.last - row.first;
        let (count, size) = match (whole, units) {
            (_, 0) => (0, 0),
            (true, units) => (1, units * unit.global),
            (false, units) => (units, unit.global),
        };
        let (address, first) = (row.address, row.first);
        (0..count).map(move |index| {
            let buffer = (first + index) * unit.shared;
            (
                address.wrapping_add(u64::from(index) * spacing),
                buffer as usize,
                size as usize,
            )
        })
    }

    /// What a row has inside the tensor, in pieces that lie together in both memories: where in global and where in shared memory,
    /// and their bytes. Behind packed elements there is a gap in shared memory.
    pub fn copies(&self, row: &Row, mut f: impl FnMut(u64, u64, u64)) {
        for (address, at, bytes) in self.runs(row) {
            let all = self.tensor.row_bytes() as usize;
            pieces(self.swizzle(), self.at(row), all, |buffer, offset, piece| {
                let (first, end) = (at.max(buffer), (at + bytes).min(buffer + piece));
                if first < end {
                    let shared = self.window + u64::from(offset) + (first - buffer) as u64;
                    f(address + (first - at) as u64, shared, (end - first) as u64);
                }
            });
        }
    }

    /// Whether bits go to other places on the way to global memory: elements of six bits have a byte each before it.
    fn is_packed(&self) -> bool {
        self.tensor.map().element == Element::U6Align16
    }

    /// What nobody has written of a row in shared memory, is not written in global memory. `false`: [`Self::copies`] says it.
    pub fn pack_shadows(&self, row: &Row, memory: &Memory) -> bool {
        if !self.is_packed() {
            return false;
        }
        for (address, at, _) in self.runs(row) {
            // Swizzling keeps eight bytes together.
            let half = |from: u32| {
                let shared = self.window + u64::from(self.swizzle().apply(self.at(row) + at as u32 + from));
                shadow_lanes::missing(memory, shared, 8)
            };
            let missing = pack_6(&(half(0) | half(8) << 64).to_le_bytes());
            let mut bytes = [0; 16];
            bytes[..missing.len()].copy_from_slice(&missing);
            shadow_lanes::leave(memory, address, missing.len(), u128::from_le_bytes(bytes));
        }
        true
    }

    /// # Safety
    /// The whole box lies in shared memory that nobody else writes meanwhile.
    unsafe fn put(&self, row: &Row, data: &[u8]) {
        pieces(self.swizzle(), self.at(row), data.len(), |buffer, offset, bytes| {
            let to = (self.window + u64::from(offset)) as *mut u8;
            // SAFETY: what is swizzled stays in the box, widened to whole spans, which lies in shared memory; the piece
            // lies in `data`.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr().add(buffer), to, bytes) };
        });
    }

    /// # Safety
    /// As for [`Place::put`].
    unsafe fn take(&self, row: &Row, data: &mut [u8]) {
        pieces(self.swizzle(), self.at(row), data.len(), |buffer, offset, bytes| {
            let from = (self.window + u64::from(offset)) as *const u8;
            // SAFETY: what is swizzled stays in the box, widened to whole spans, which lies in shared memory; the piece
            // lies in `data`.
            unsafe { std::ptr::copy_nonoverlapping(from, data.as_mut_ptr().add(buffer), bytes) };
        });
    }

    fn buffer(&self) -> [u8; MOST_BYTES] {
        debug_assert!(self.tensor.row_bytes() as usize <= MOST_BYTES);
        [0; MOST_BYTES]
    }
}

/// Cuts `bytes` at `at` into pieces that swizzling keeps together: where each stands in a row, where in the window, and
/// its bytes.
#[inline(always)]
pub fn pieces(swizzle: Swizzle, at: u32, bytes: usize, mut f: impl FnMut(usize, u32, usize)) {
    if swizzle == Swizzle::None {
        return f(0, at, bytes);
    }
    let chunk = swizzle.chunk();
    let mut done = 0;
    while done < bytes {
        let here = at + done as u32;
        let piece = ((chunk - here % chunk) as usize).min(bytes - done);
        f(done, swizzle.apply(here), piece);
        done += piece;
    }
}

/// From global to shared memory.
pub struct Load {
    pub place: Place,
    pub report: Option<Pattern>,
}

impl Work for Load {
    fn finish(&mut self, env: &Env<'_>) -> Result<Report, Cause> {
        let place = &self.place;
        let (tensor, map) = (&place.tensor, place.tensor.map());
        let mut buffer = place.buffer();
        let bytes = tensor.row_bytes() as usize;
        let mut set = false;
        tensor.rows(|row| {
            let data = &mut buffer[..bytes];
            if row.first > 0 || row.last < tensor.units() {
                match map.fills_nan {
                    true => data
                        .chunks_exact_mut(2)
                        .for_each(|two| two.copy_from_slice(&OUT_OF_BOUNDS)),
                    false => data.fill(0),
                }
            }
            let span = place.span(&row);
            if span > 0 {
                access::still(env, row.address, span, Direction::Read)?;
            }
            for (address, at, bytes) in place.runs(&row) {
                let run = &mut data[at..at + bytes];
                // SAFETY: the run lies in the row's span, which kernels may read, as `still` has just found.
                unsafe { std::ptr::copy_nonoverlapping(address as *const u8, run.as_mut_ptr(), bytes) };
                set |= self.report.is_some_and(|pattern| is_found(pattern, address, run));
                if matches!(map.element, Element::Tf32 | Element::Tf32Ftz) {
                    round_to_tf32(run);
                }
            }
            // SAFETY: the box was found to lie in its window when the copy began, and windows are there until it has
            // completed; a cluster's blocks run on one thread.
            unsafe { place.put(&row, data) };
            Ok(())
        })?;
        Ok(Report { set, value: 0 })
    }
}

/// f32 with the digits of tf32, to nearest even (PTX ISA, Tensor Dimension, size and format); one NaN for all.
fn round_to_tf32(run: &mut [u8]) {
    for element in run.chunks_exact_mut(4) {
        let Ok(bytes) = <[u8; 4]>::try_from(&*element) else {
            continue;
        };
        let bits = u32::from_le_bytes(bytes);
        let rounded = match bits & 0x7fff_ffff {
            0x7f80_0000 => bits,
            nan if nan > 0x7f80_0000 => 0x7fff_e000,
            _ => (bits + 0xfff + (bits >> 13 & 1)) & !0x1fff,
        };
        element.copy_from_slice(&rounded.to_le_bytes());
    }
}

/// Whether what was copied from `address` has the pattern. Of each 16 aligned bytes the first whole element that is
/// copied is looked at.
fn is_found(pattern: Pattern, address: u64, data: &[u8]) -> bool {
    let width = match pattern {
        Pattern::Ones => 1,
        Pattern::NegativeZero { bits } => u64::from(bits).div_ceil(8),
    };
    let part = |to: u64| (address.wrapping_neg() % to).min(data.len() as u64) as usize;
    let (start, aligned) = (part(width), part(16));
    pattern.matches(&data[start..aligned]) || pattern.matches(&data[aligned..])
}

/// An operation on each element, and whether sums flush.
#[derive(Clone, Copy)]
pub struct Reduction {
    element: atomic::Element,
    flushes: bool,
}

/// From shared to global memory.
pub struct Store {
    pub place: Place,
    /// What is done with each element instead of writing it.
    pub reduce: Option<Reduction>,
    /// What was read already, row by row.
    pub taken: Option<Vec<u8>>,
}

impl Store {
    pub fn new(place: Place, reduce: Option<Reduction>) -> Store {
        Store {
            place,
            reduce,
            taken: None,
        }
    }

    /// # Safety
    /// The row lies in the tensor from `first` to `last`, where kernels may write; `data` is the row.
    unsafe fn write(&self, row: &Row, data: &[u8]) {
        let is_packed = self.place.is_packed();
        for (address, at, bytes) in self.place.runs(row) {
            if is_packed {
                let packed = pack_6(&data[at..at + 16]);
                // SAFETY: a unit of global memory has 12 bytes.
                unsafe { std::ptr::copy_nonoverlapping(packed.as_ptr(), address as *mut u8, packed.len()) };
                continue;
            }
            let run = &data[at..at + bytes];
            match self.reduce {
                // SAFETY: the run lies where kernels may write.
                None => unsafe { std::ptr::copy_nonoverlapping(run.as_ptr(), address as *mut u8, bytes) },
                Some(Reduction { element, flushes }) => {
                    for (index, value) in run.chunks_exact(element.bytes).enumerate() {
                        let at = address + (index * element.bytes) as u64;
                        // SAFETY: the run lies where kernels may write; elements lie at multiples of their size, since tensors start at multiples
                        // of 16 bytes and have strides that are.
                        unsafe { (element.apply)(at, value.as_ptr() as u64, flushes) };
                    }
                }
            }
        }
    }
}

impl Work for Store {
    fn read(&mut self, _env: &Env<'_>) -> Result<bool, Cause> {
        if self.taken.is_some() {
            return Ok(true);
        }
        let bytes = self.place.tensor.row_bytes() as usize;
        let mut taken = Vec::new();
        let place = &self.place;
        place.tensor.rows(|row| {
            let at = row.place as usize * bytes;
            if taken.len() < at + bytes {
                taken.resize(at + bytes, 0);
            }
            // SAFETY: the box was found to lie in its window when the copy began, and windows are there until it has
            // completed; a cluster's blocks run on one thread.
            unsafe { place.take(&row, &mut taken[at..at + bytes]) };
            Ok::<(), Cause>(())
        })?;
        self.taken = Some(taken);
        Ok(true)
    }

    fn finish(&mut self, env: &Env<'_>) -> Result<Report, Cause> {
        let place = &self.place;
        let mut buffer = place.buffer();
        let bytes = place.tensor.row_bytes() as usize;
        let direction = match self.reduce {
            None => Direction::Write,
            Some(_) => Direction::Atomic,
        };
        place.tensor.rows(|row| {
            let span = place.span(&row);
            if span == 0 {
                return Ok(());
            }
            access::still(env, row.address, span, direction)?;
            let data = match &self.taken {
                Some(taken) => &taken[row.place as usize * bytes..][..bytes],
                None => {
                    // SAFETY: the box was found to lie in its window when the copy began, and windows are there until it has
                    // completed; a cluster's blocks run on one thread.
                    unsafe { place.take(&row, &mut buffer[..bytes]) };
                    &buffer[..bytes]
                }
            };
            // SAFETY: kernels may write the span, as `still` has just found.
            unsafe { self.write(&row, data) };
            Ok(())
        })?;
        Ok(Report::default())
    }
}

/// The low six bits of sixteen bytes, one behind the other (PTX ISA, `.b6p2x16`).
fn pack_6(bytes: &[u8]) -> [u8; 12] {
    let mut all = 0_u128;
    for (index, byte) in bytes.iter().enumerate() {
        all |= u128::from(byte & 0x3f) << (index * 6);
    }
    let mut packed = [0; 12];
    packed.copy_from_slice(&all.to_le_bytes()[..12]);
    packed
}

/// What a reduction does with an element of a map's type; `None`: PTX has no such (PTX ISA,
/// cp.reduce.async.bulk.tensor, Table of valid combinations).
pub fn reduction(op: AtomicOp, element: Element) -> Option<Reduction> {
    use AtomicOp::*;
    use Element as E;
    let (ty, flushes) = match (op, element) {
        (Add | Min | Max | And | Or | Xor | Inc | Dec, E::U32) => (AtomicType::U32, false),
        (Add | Min | Max | And | Or | Xor, E::S32) => (AtomicType::S32, false),
        (Add | Min | Max | And | Or | Xor, E::U64) => (AtomicType::U64, false),
        (Min | Max | And | Or | Xor, E::S64) => (AtomicType::S64, false),
        (Add | Min | Max, E::F16) => (AtomicType::F16, false),
        (Add | Min | Max, E::Bf16) => (AtomicType::Bf16, false),
        (Add, E::F32 | E::Tf32) => (AtomicType::F32, false),
        (Add, E::F32Ftz | E::Tf32Ftz) => (AtomicType::F32, true),
        _ => return None,
    };
    let element = atomic::element(op, ty);
    Some(Reduction { element, flushes })
}
