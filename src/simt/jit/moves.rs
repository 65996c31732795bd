//! Registers on their way between the interpreter's window and the places where code keeps them: what code is entered with, and
//! what it leaves behind. Both are rare enough that a table does, instead of code for each register at each way in and out.

use super::Pc;
use super::plan::Begins;
use crate::isa::Level;

/// Lanes of a warp.
const LANES: usize = crate::isa::lanes::WARP;

/// Each lane's, of which compilers make vectors more readily than of shifts.
const BITS: [u32; LANES] = {
    let mut bits = [1; LANES];
    let mut lane = 1;
    while lane < LANES {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

/// How a register is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A number of so many bytes in each lane.
    Lanes(u32),
    /// A bit a lane.
    Bits,
    /// One bit, in a byte.
    Bit,
    /// One number of so many bytes for every so many lanes, eight bytes apart; it grows by `step` from lane to lane.
    Line { bytes: u32, step: u64, lanes: u32 },
    /// One number of so many bytes, that of lane 0: every so many `lanes` begin as far from it as `begins` says, and it grows by `step`
    /// between them.
    Rows {
        bytes: u32,
        step: u64,
        lanes: u32,
        begins: Begins,
    },
}

/// A register: its place in the window and the other one, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    pub slot: u32,
    pub place: u32,
    pub kept: Kept,
    /// Floats whose NaN is made the one that others see when it is written to the window.
    pub lazy: bool,
}

/// Where lanes come into code or leave it: a place of the interpreter's code, and the registers that are wanted there.
#[derive(Clone, Debug, Default)]
pub struct Stand {
    pub pc: Pc,
    pub moves: Box<[Move]>,
}

/// A number in each lane of a warp, in memory.
trait Number: Copy + PartialEq {
    fn of(wide: u64) -> Self;
    fn wide(self) -> u64;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! numbers {
    ($($ty:ty)*) => {
        $(impl Number for $ty {
            #[inline(always)]
            fn of(wide: u64) -> Self {
                wide as $ty
            }
            #[inline(always)]
            fn wide(self) -> u64 {
                self.into()
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        })*
    };
}

numbers!(u16 u32 u64);

/// Registers of these lanes come from the window; `false`: some are no lines that should be. Those of lanes that have just left
/// code need no proof.
///
/// # Safety
/// The window and the places are as long as the moves say, and nobody else uses them meanwhile.
pub unsafe fn enter(moves: &[Move], window: *const u8, places: *mut u8, lanes: u32, proved: bool) -> bool {
    // SAFETY: the CPU has the level, and the rest is the caller's word.
    unsafe {
        match Level::current() {
            Level::Avx512 => come_avx512(moves, window, places, lanes, proved),
            Level::Avx2 => come_avx2(moves, window, places, lanes, proved),
            Level::Baseline => come(moves, window, places, lanes, proved),
        }
    }
}

/// Registers of these lanes go to the window.
///
/// # Safety
/// As for [`enter`].
pub unsafe fn leave(moves: &[Move], window: *mut u8, places: *const u8, lanes: u32) {
    // SAFETY: the CPU has the level, and the rest is the caller's word.
    unsafe {
        match Level::current() {
            Level::Avx512 => go_avx512(moves, window, places, lanes),
            Level::Avx2 => go_avx2(moves, window, places, lanes),
            Level::Baseline => go(moves, window, places, lanes),
        }
    }
}

macro_rules! levels {
    ($($come:ident $go:ident $features:literal)*) => {
        $(#[target_feature(enable = $features)]
        unsafe fn $come(moves: &[Move], window: *const u8, places: *mut u8, lanes: u32, proved: bool) -> bool {
            // SAFETY: `come` asks no more than this, which the caller has promised: that both ends are as long as the moves say.
            unsafe { come(moves, window, places, lanes, proved) }
        }

        #[target_feature(enable = $features)]
        unsafe fn $go(moves: &[Move], window: *mut u8, places: *const u8, lanes: u32) {
            // SAFETY: `go` asks no more than this, which the caller has promised: that both ends are as long as the moves say.
            unsafe { go(moves, window, places, lanes) }
        })*
    };
}

levels! {
    come_avx2 go_avx2 "avx2,bmi1,bmi2,lzcnt,popcnt"
    come_avx512 go_avx512 "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,bmi1,bmi2,lzcnt,popcnt"
}

/// # Safety
/// As for [`enter`].
#[inline(always)]
unsafe fn come(moves: &[Move], window: *const u8, places: *mut u8, lanes: u32, proved: bool) -> bool {
    // A closure would be code of its own, which does not know what the CPU has.
    for this in moves {
        // SAFETY: both lie within their memory, by the caller's word.
        let (from, to) = unsafe { (window.add(this.slot as usize), places.add(this.place as usize)) };
        // SAFETY: as many bytes as the register has, at both ends.
        let right = unsafe {
            match this.kept {
                Kept::Lanes(2) => {
                    to.cast::<[u16; LANES]>().write(from.cast::<[u16; LANES]>().read());
                    true
                }
                Kept::Lanes(4) => {
                    to.cast::<[u32; LANES]>().write(from.cast::<[u32; LANES]>().read());
                    true
                }
                Kept::Lanes(_) => {
                    to.cast::<[u64; LANES]>().write(from.cast::<[u64; LANES]>().read());
                    true
                }
                Kept::Bits => {
                    to.cast::<u32>().write(from.cast::<u32>().read());
                    true
                }
                Kept::Bit => {
                    let word = from.cast::<u32>().read() & lanes;
                    to.write((word != 0).into());
                    proved || word == 0 || word == lanes
                }
                Kept::Line {
                    bytes: 2,
                    step,
                    lanes: l,
                } => line::<u16>(from, to, (step, l), (lanes, proved)),
                Kept::Line {
                    bytes: 4,
                    step,
                    lanes: l,
                } => line::<u32>(from, to, (step, l), (lanes, proved)),
                Kept::Line { step, lanes: l, .. } => line::<u64>(from, to, (step, l), (lanes, proved)),
                Kept::Rows {
                    bytes,
                    step,
                    lanes: l,
                    begins,
                } => {
                    let far = distances((step, l), &begins);
                    match bytes {
                        4 => rows::<u32>(from, to, &far, (lanes, proved)),
                        _ => rows::<u64>(from, to, &far, (lanes, proved)),
                    }
                }
            }
        };
        if !right {
            return false;
        }
    }
    true
}

/// # Safety
/// As for [`enter`].
#[inline(always)]
unsafe fn go(moves: &[Move], window: *mut u8, places: *const u8, lanes: u32) {
    for this in moves {
        // SAFETY: both lie within their memory, by the caller's word.
        let (to, from) = unsafe { (window.add(this.slot as usize), places.add(this.place as usize)) };
        // SAFETY: as many bytes as the register has, at both ends.
        unsafe {
            match this.kept {
                Kept::Lanes(2) => put(to, &from.cast::<[u16; LANES]>().read(), lanes),
                Kept::Lanes(4) => {
                    let mut values = from.cast::<[u32; LANES]>().read();
                    if this.lazy {
                        values = values.map(canonical);
                    }
                    put(to, &values, lanes);
                }
                Kept::Lanes(_) => put(to, &from.cast::<[u64; LANES]>().read(), lanes),
                Kept::Bits => put_bits(to, from.cast::<u32>().read(), lanes),
                Kept::Bit => put_bits(to, if from.read() != 0 { u32::MAX } else { 0 }, lanes),
                Kept::Line {
                    bytes: 2,
                    step,
                    lanes: l,
                } => put(to, &along::<u16>(from, (step, l), false), lanes),
                Kept::Line {
                    bytes: 4,
                    step,
                    lanes: l,
                } => put(to, &along::<u32>(from, (step, l), this.lazy), lanes),
                Kept::Line { step, lanes: l, .. } => put(to, &along::<u64>(from, (step, l), false), lanes),
                Kept::Rows {
                    bytes,
                    step,
                    lanes: l,
                    begins,
                } => {
                    let far = distances((step, l), &begins);
                    match bytes {
                        4 => put(to, &from_first::<u32>(from.cast::<u32>().read().into(), &far), lanes),
                        _ => put(to, &from_first::<u64>(from.cast::<u64>().read(), &far), lanes),
                    }
                }
            }
        }
    }
}

/// The one NaN.
#[inline(always)]
fn canonical(bits: u32) -> u32 {
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        0x7fff_ffff
    } else {
        bits
    }
}

/// What a line is from a lane's number on.
#[inline(always)]
fn grown<T: Number>(base: u64, step: u64) -> [T; LANES] {
    std::array::from_fn(|lane| T::of(base).plus(T::of(step).times(T::of(lane as u64))))
}

/// The numbers of a line, from the first lane of each part that takes part; whether all that do are on it.
///
/// # Safety
/// `from` has a number for each lane, `to` room for one a part.
#[inline(always)]
unsafe fn line<T: Number>(
    from: *const u8,
    to: *mut u8,
    (step, length): (u64, u32),
    (lanes, proved): (u32, bool),
) -> bool {
    // SAFETY: so long, by the caller's word.
    let values = unsafe { from.cast::<[T; LANES]>().read() };
    let mut right = true;
    for part in 0..LANES as u32 / length {
        let start = part * length;
        let these = lanes & (u32::MAX >> (LANES as u32 - length)) << start;
        // Where none takes part, any will do.
        let first = if these == 0 { start } else { these.trailing_zeros() };
        let base = values[first as usize].wide();
        let base = base.wrapping_sub(step.wrapping_mul((first - start).into()));
        // SAFETY: the place has eight bytes for each part.
        unsafe { to.add(8 * part as usize).cast::<T>().write(T::of(base)) };
        if !proved {
            // As if the line went through the whole warp, of which other parts do not count.
            let expected = grown::<T>(base.wrapping_sub(step.wrapping_mul(start.into())), step);
            let mut wrong = false;
            for ((value, expected), bit) in values.iter().zip(&expected).zip(BITS) {
                wrong |= (value != expected) & (these & bit != 0);
            }
            right &= !wrong;
        }
    }
    right
}

/// How far each lane is from lane 0, where parts of so many lanes begin so far from it.
#[inline(always)]
fn distances((step, length): (u64, u32), begins: &Begins) -> [u64; LANES] {
    std::array::from_fn(|lane| {
        let (part, within) = (lane / length as usize, (lane % length as usize) as u64);
        (i64::from(begins[part]) as u64).wrapping_add(step.wrapping_mul(within))
    })
}

/// All lanes, so far from a first number.
#[inline(always)]
fn from_first<T: Number>(first: u64, far: &[u64; LANES]) -> [T; LANES] {
    far.map(|far| T::of(first.wrapping_add(far)))
}

/// Lane 0's number, from the first lane that takes part; whether all that do are so far from it.
///
/// # Safety
/// `from` has a number for each lane, `to` room for one.
#[inline(always)]
unsafe fn rows<T: Number>(from: *const u8, to: *mut u8, far: &[u64; LANES], (lanes, proved): (u32, bool)) -> bool {
    // SAFETY: so long, by the caller's word.
    let values = unsafe { from.cast::<[T; LANES]>().read() };
    // Where none takes part, any will do.
    let lane = if lanes == 0 { 0 } else { lanes.trailing_zeros() as usize };
    let first = values[lane].wide().wrapping_sub(far[lane]);
    // SAFETY: there is room for it.
    unsafe { to.cast::<T>().write(T::of(first)) };
    if proved {
        return true;
    }
    let expected = from_first::<T>(first, far);
    let mut wrong = false;
    for ((value, expected), bit) in values.iter().zip(&expected).zip(BITS) {
        wrong |= (value != expected) & (lanes & bit != 0);
    }
    !wrong
}

/// All lanes of a line.
///
/// # Safety
/// `from` has a number for each part.
#[inline(always)]
unsafe fn along<T: Number>(from: *const u8, (step, length): (u64, u32), lazy: bool) -> [T; LANES] {
    let mut all = [T::of(0); LANES];
    for (part, these) in all.chunks_exact_mut(length as usize).enumerate() {
        // SAFETY: the place has eight bytes for each part.
        let mut base = unsafe { from.add(8 * part).cast::<T>().read() }.wide();
        if lazy {
            base = canonical(base as u32).into();
        }
        these.copy_from_slice(&grown::<T>(base, step)[..length as usize]);
    }
    all
}

/// Lanes without their bit keep what is there.
///
/// # Safety
/// `to` has a number for each lane.
#[inline(always)]
unsafe fn put<T: Number>(to: *mut u8, values: &[T; LANES], lanes: u32) {
    let to = to.cast::<[T; LANES]>();
    if lanes == u32::MAX {
        // SAFETY: so long, by the caller's word.
        unsafe { to.write(*values) };
        return;
    }
    // SAFETY: likewise, and nobody else uses it meanwhile.
    let there = unsafe { &mut *to };
    for ((there, value), bit) in there.iter_mut().zip(values).zip(BITS) {
        *there = if lanes & bit != 0 { *value } else { *there };
    }
}

/// # Safety
/// `to` has a word.
#[inline(always)]
unsafe fn put_bits(to: *mut u8, word: u32, lanes: u32) {
    let to = to.cast::<u32>();
    // SAFETY: a word, by the caller's word.
    unsafe { to.write(to.read() & !lanes | word & lanes) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64-byte aligned memory, as both ends have.
    #[repr(C, align(64))]
    struct Memory([u8; 1024]);

    fn write<T: Number>(memory: &mut Memory, at: usize, values: impl Fn(u64) -> u64) {
        for lane in 0..LANES {
            let bytes = values(lane as u64).to_le_bytes();
            let size = size_of::<T>();
            memory.0[at + lane * size..][..size].copy_from_slice(&bytes[..size]);
        }
    }

    fn moves(kept: Kept, lazy: bool) -> [Move; 1] {
        [Move {
            slot: 256,
            place: 512,
            kept,
            lazy,
        }]
    }

    /// In and out again: what is there for lanes that take part, and what was there for those that do not.
    fn round<T: Number>(kept: Kept, lanes: u32, values: impl Fn(u64) -> u64) -> Option<Vec<u64>> {
        let (mut window, mut places) = (Memory([0; 1024]), Memory([0xaa; 1024]));
        write::<T>(&mut window, 256, &values);
        let moves = moves(kept, false);
        // SAFETY: both are long enough for one register at these places.
        if !unsafe { enter(&moves, window.0.as_ptr(), places.0.as_mut_ptr(), lanes, false) } {
            return None;
        }
        write::<T>(&mut window, 256, |_| 77);
        // SAFETY: likewise.
        unsafe { leave(&moves, window.0.as_mut_ptr(), places.0.as_ptr(), lanes) };
        let size = size_of::<T>();
        let read = |lane: usize| {
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(&window.0[256 + lane * size..][..size]);
            u64::from_le_bytes(bytes)
        };
        Some((0..LANES).map(read).collect())
    }

    fn expected(lanes: u32, values: impl Fn(u64) -> u64) -> Vec<u64> {
        let lane = |lane: u64| if lanes >> lane & 1 != 0 { values(lane) } else { 77 };
        (0..LANES as u64).map(lane).collect()
    }

    #[test]
    fn registers_come_back_as_they_went() {
        for lanes in [u32::MAX, 1, 0x8000_0000, 0x0ff0_1234] {
            let any = |lane: u64| lane * lane * 31 + 7;
            assert_eq!(round::<u16>(Kept::Lanes(2), lanes, any), Some(expected(lanes, any)));
            assert_eq!(round::<u32>(Kept::Lanes(4), lanes, any), Some(expected(lanes, any)));
            assert_eq!(round::<u64>(Kept::Lanes(8), lanes, any), Some(expected(lanes, any)));
            let down = |lane: u64| 1000 - 4 * lane;
            let (line, wide) = (u64::from(-4i32 as u32), -4i64 as u64);
            let kept = |bytes, step, lanes| Kept::Line { bytes, step, lanes };
            assert_eq!(
                round::<u16>(kept(2, line, 32), lanes, down),
                Some(expected(lanes, down))
            );
            assert_eq!(
                round::<u32>(kept(4, line, 32), lanes, down),
                Some(expected(lanes, down))
            );
            assert_eq!(
                round::<u64>(kept(8, wide, 32), lanes, down),
                Some(expected(lanes, down))
            );
            let rows = |lane: u64| lane / 8 * 100 + lane % 8 * 3;
            assert_eq!(round::<u32>(kept(4, 3, 8), lanes, rows), Some(expected(lanes, rows)));
            // Rows of 16, in parts of 8; and downwards.
            let tiles = |lane: u64| 5000 + lane % 16 * 4 - lane / 16 * 300;
            let begins = [0, 32, -300, -268, 0, 0, 0, 0];
            let of = |bytes| Kept::Rows {
                bytes,
                step: 4,
                lanes: 8,
                begins,
            };
            assert_eq!(round::<u32>(of(4), lanes, tiles), Some(expected(lanes, tiles)));
            assert_eq!(round::<u64>(of(8), lanes, tiles), Some(expected(lanes, tiles)));
            let bent = |lane: u64| tiles(lane) + u64::from(lane == 31);
            let comes = round::<u32>(of(4), lanes, bent);
            // Alone it is as good as any other.
            let sees = lanes >> 31 != 0 && lanes.count_ones() > 1;
            assert_eq!(comes, (!sees).then(|| expected(lanes, bent)));
        }
    }

    #[test]
    fn what_is_no_line_is_found_where_it_counts() {
        let kept = Kept::Line {
            bytes: 4,
            step: 1,
            lanes: 32,
        };
        let bent = |lane: u64| if lane == 9 { 5 } else { lane + 3 };
        assert_eq!(round::<u32>(kept, u32::MAX, bent), None);
        assert_eq!(round::<u32>(kept, 1 << 9 | 1 << 10, bent), None);
        let lanes = !(1 << 9);
        assert_eq!(round::<u32>(kept, lanes, bent), Some(expected(lanes, bent)));
    }

    #[test]
    fn predicates_are_bits() {
        let (mut window, mut places) = (Memory([0; 1024]), Memory([0xaa; 1024]));
        let mut go = |kept, word: u32, lanes: u32| {
            window.0[256..260].copy_from_slice(&word.to_le_bytes());
            let moves = moves(kept, false);
            // SAFETY: both are long enough for one register at these places.
            let right = unsafe { enter(&moves, window.0.as_ptr(), places.0.as_mut_ptr(), lanes, false) };
            window.0[256..260].copy_from_slice(&0x5555_5555u32.to_le_bytes());
            // SAFETY: likewise.
            unsafe { leave(&moves, window.0.as_mut_ptr(), places.0.as_ptr(), lanes) };
            let word = [256, 257, 258, 259].map(|at| window.0[at]);
            right.then_some(u32::from_le_bytes(word))
        };
        assert_eq!(go(Kept::Bits, 0x1234_5678, u32::MAX), Some(0x1234_5678));
        assert_eq!(go(Kept::Bits, 0x1234_5678, 0xffff), Some(0x5555_5678));
        assert_eq!(go(Kept::Bit, 0x00ff_0000, 0x00ff_0000), Some(0x55ff_5555));
        assert_eq!(go(Kept::Bit, 0x00ff_0000, 0x0000_00ff), Some(0x5555_5500));
        assert_eq!(go(Kept::Bit, 0x00ff_0000, 0x01ff_0000), None);
    }

    /// What arithmetic leaves of a NaN is the canonical one in the window, and other floats stay.
    #[test]
    fn lazy_floats_show_one_nan() {
        let (mut window, mut places) = (Memory([0; 1024]), Memory([0; 1024]));
        let floats = |lane: u64| [0xffc0_0001, 0x7f80_0000, 0xff80_0000, 0x3f80_0000][lane as usize % 4];
        write::<u32>(&mut places, 512, floats);
        // SAFETY: both are long enough for one register at these places.
        unsafe {
            leave(
                &moves(Kept::Lanes(4), true),
                window.0.as_mut_ptr(),
                places.0.as_ptr(),
                u32::MAX,
            )
        };
        for (lane, value) in window.0[256..384].chunks(4).enumerate() {
            let expected: u64 = if lane % 4 == 0 {
                0x7fff_ffff
            } else {
                floats(lane as u64)
            };
            assert_eq!(value, (expected as u32).to_le_bytes());
        }
    }
}
