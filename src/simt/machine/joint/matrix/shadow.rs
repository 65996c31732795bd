//! What operations on matrices do to shadows, where values that nobody has written are looked for: rows and tiles take along
//! bit by bit what is missing; an element of a product is missing if a bit is of what it is made from.
//!
//! It is the operation's own layout that says what comes from where: shadows go through the same functions as values.

use super::culprit::{Culprits, Source, Sources};
use super::fragment::{self, Gather, GatherA, GatherB, GatherC, ScatterD};
use super::rows::{self, Row};
use super::{Word, put, tile, word};
use crate::isa::Level;
use crate::isa::joint::matrix::{Kind, Multiply, Op, Packing, Rows, Tile};
use crate::isa::lanes::{WARP, Width};
use crate::isa::mma::{self, Accumulator, Metadata, stride};
use crate::memory::shadow as memory;
use crate::program::{Ordering, ShadowOp};
use crate::ptx::ast::Span;
use crate::simt::machine::access::{self, Lanes, MemOp};
use crate::simt::machine::context::Cx;
use crate::simt::machine::observe::{Direction, Undefined};
use crate::simt::machine::shadow_lanes::{clear, leave, missing, nonzero, tell};
use crate::simt::machine::slots::{Slot, bits, read, write};

/// For warp `w`, behind the operation itself.
///
/// # Safety
/// Slots of `op` lie in the running window, which has warp `w`, with the widths of the operation's own registers.
pub unsafe fn execute(what: Op, op: &ShadowOp<Slot>, span: Span, cx: &mut Cx<'_>, w: usize) {
    // SAFETY: the functions ask for nothing else.
    unsafe {
        match what {
            Op::LoadRows(rows) => load_rows(rows, op, span, cx, w),
            Op::StoreRows(rows) => store_rows(rows, op, span, cx, w),
            Op::LoadTile(tile) => load_tile(tile, op, span, cx, w),
            Op::StoreTile(tile) => store_tile(tile, op, span, cx, w),
            Op::Multiply(multiply) => product(multiply, op, span, cx, w),
            // It is carried out on shadows as on values.
            Op::Transpose => {}
        }
    }
}

/// The access to the operation's only address.
fn access_of(op: &ShadowOp<Slot>, span: Span) -> Option<MemOp> {
    let address = op.address.as_ref()?;
    Some(MemOp::new(address, (Ordering::Weak, None), Box::new([]), span))
}

/// All elements have been written.
///
/// # Safety
/// Slots of `op` lie in the running window.
unsafe fn define(op: &ShadowOp<Slot>, cx: &Cx<'_>, w: usize) {
    for slot in op.dst.iter().flatten() {
        // SAFETY: as the caller promises.
        unsafe { clear(cx, *slot, w, cx.mask.lanes[w]) };
    }
}

/// Where rows lie; `None`: somewhere that is nobody's meanwhile.
///
/// # Safety
/// The address's register is a slot of the running window.
unsafe fn rows_at(rows: Rows, op: &MemOp, cx: &mut Cx<'_>, w: usize, direction: Direction) -> Option<Lanes> {
    let mut at: Lanes = [0; WARP];
    let named = rows::named(rows, rows.rows(direction == Direction::Read));
    // SAFETY: as the caller promises.
    let good = unsafe { access::lanes::<false>(cx, op, w, named, rows.packing.bytes(), direction, &mut at) };
    if !good {
        cx.fault = None;
    }
    good.then_some(at)
}

/// # Safety
/// As for [`execute`].
unsafe fn load_rows(rows: Rows, op: &ShadowOp<Slot>, span: Span, cx: &mut Cx<'_>, w: usize) {
    let (Some(memory), Some(from)) = (memory::get(), access_of(op, span)) else {
        // SAFETY: as the caller promises.
        return unsafe { define(op, cx, w) };
    };
    // SAFETY: the address's register is a slot of the running window.
    let Some(at) = (unsafe { rows_at(rows, &from, cx, w, Direction::Read) }) else {
        return;
    };
    let (each, bytes) = (rows.rows(true), rows.packing.bytes() as usize);
    let used = usize::from(rows.count) * each;
    let found: Vec<u128> = at[..used].iter().map(|at| missing(memory, *at, bytes)).collect();
    if found.iter().all(|bits| *bits == 0) {
        // SAFETY: as the caller promises.
        return unsafe { define(op, cx, w) };
    }
    // Of each lane the first place at which something is missing.
    let (mut lanes, mut places) = (0, [0; WARP]);
    for matrix in 0..usize::from(rows.count) {
        let mut all: [Row; 16] = [[0; 16]; 16];
        for (row, found) in all.iter_mut().zip(&found[matrix * each..][..each]) {
            *row = rows::unpacked(rows.packing, *found);
        }
        for half in 0..each / 8 {
            let held: [[u8; 4]; WARP] = std::array::from_fn(|lane| rows::gathered(rows, &all, lane, half));
            for lane in bits(cx.mask.lanes[w] & !lanes) {
                if let Some(byte) = held[lane].iter().position(|byte| *byte != 0) {
                    let (row, column) = rows::source(rows, lane, half, byte);
                    lanes |= 1 << lane;
                    places[lane] = at[matrix * each + row] + packed(rows.packing, column) as u64;
                }
            }
            // SAFETY: destinations are slots of 32 bits of the running window.
            unsafe { put(cx, op.dst[matrix * each / 8 + half], w, &held.map(u32::from_le_bytes)) };
        }
    }
    if lanes != 0 {
        // As many neighbours as a register has, unless these lie in rows.
        let bytes = match (rows.transposed, rows.packing) {
            (false, Packing::Halves | Packing::Bytes) => 4,
            (false, Packing::Sixes | Packing::Fours | Packing::SignedFours) | (true, Packing::Halves) => 2,
            (true, _) => 1,
        };
        let event = Undefined::Loaded {
            warp: w,
            lanes,
            addresses: &places,
            bytes,
            space: from.space,
        };
        tell(cx, span, &event);
    }
}

/// The byte of a row in memory in which an element begins.
fn packed(packing: Packing, element: usize) -> usize {
    match packing {
        Packing::Halves | Packing::Bytes => element,
        Packing::Sixes => element * 6 / 8,
        Packing::Fours | Packing::SignedFours => element / 2,
    }
}

/// # Safety
/// As for [`execute`].
unsafe fn store_rows(rows: Rows, op: &ShadowOp<Slot>, span: Span, cx: &mut Cx<'_>, w: usize) {
    let (Some(memory), Some(to)) = (memory::get(), access_of(op, span)) else {
        return;
    };
    // SAFETY: the address's register is a slot of the running window.
    let Some(at) = (unsafe { rows_at(rows, &to, cx, w, Direction::Write) }) else {
        return;
    };
    let each = rows.rows(false);
    for matrix in 0..usize::from(rows.count) {
        let at = &at[matrix * each..][..each];
        // SAFETY: the sources are slots of 32 bits of the running window, which nobody writes meanwhile.
        let values = op.src[matrix].map_or(&[0; WARP], |slot| unsafe { word(cx, slot, w) });
        let mut all: [Row; 8] = [[0; 16]; 8];
        let mut lanes = 0;
        for (lane, value) in values.iter().enumerate() {
            lanes |= u32::from(*value != 0) << lane;
            for (byte, value) in value.to_le_bytes().into_iter().enumerate() {
                let (row, column) = rows::target(rows, lane, byte);
                all[row][column] = value;
            }
        }
        for (row, at) in all.iter().zip(at) {
            leave(memory, *at, row.len(), u128::from_le_bytes(*row));
        }
        // A lane's bytes lie in several rows.
        for byte in (0..4).take_while(|_| lanes != 0) {
            let addresses = std::array::from_fn(|lane| {
                let (row, column) = rows::target(rows, lane, byte);
                at[row] + column as u64
            });
            let missing = |lane: &usize| values[*lane].to_le_bytes()[byte] != 0;
            let lanes = bits(lanes).filter(missing).fold(0, |all, lane| all | 1 << lane);
            tell_stored(cx, span, (w, lanes), &addresses, 1);
        }
    }
}

fn tell_stored(cx: &Cx<'_>, span: Span, (warp, lanes): (usize, u32), addresses: &Lanes, bytes: u32) {
    if lanes != 0 {
        let event = Undefined::Stored {
            warp,
            lanes,
            addresses,
            bytes,
        };
        tell(cx, span, &event);
    }
}

/// Where the lines of a tile lie; `None`: somewhere that is nobody's meanwhile.
///
/// # Safety
/// The slots of `op` lie in the running window.
unsafe fn lines_at(
    tile: Tile,
    op: &ShadowOp<Slot>,
    access: &MemOp,
    cx: &mut Cx<'_>,
    w: usize,
    direction: Direction,
) -> Option<Lanes> {
    // SAFETY: as the caller promises.
    let at = unsafe { tile::lines::<false>(tile, (access, op.values[0]), cx, w, direction) };
    if at.is_none() {
        cx.fault = None;
    }
    at
}

/// # Safety
/// As for [`execute`].
unsafe fn load_tile(tile: Tile, op: &ShadowOp<Slot>, span: Span, cx: &mut Cx<'_>, w: usize) {
    let (Some(memory), Some(from)) = (memory::get(), access_of(op, span)) else {
        // SAFETY: as the caller promises.
        return unsafe { define(op, cx, w) };
    };
    // SAFETY: the slots of `op` lie in the running window.
    let Some(at) = (unsafe { lines_at(tile, op, &from, cx, w, Direction::Read) }) else {
        return;
    };
    let bytes = (tile.length() * usize::from(tile.bits) / 8) as u64;
    if at[..tile.lines()].iter().all(|at| memory.is_written(*at, bytes)) {
        // SAFETY: as the caller promises.
        return unsafe { define(op, cx, w) };
    }
    let (count, width) = tile::parts(tile);
    let (mut lanes, mut places) = (0, [0; WARP]);
    for (register, dst) in op.dst.iter().enumerate() {
        let Some(slot) = *dst else { continue };
        for lane in bits(cx.mask.lanes[w]) {
            let mut value = 0;
            for part in 0..count {
                let corner = fragment::corner(tile, register % tile.needed(), part, lane);
                let from = tile::place(tile, &at, corner);
                let found = missing(memory, from, width as usize / 8) as u64;
                value |= found << (width * part as u32);
                if found != 0 && lanes >> lane & 1 == 0 {
                    lanes |= 1 << lane;
                    places[lane] = from;
                }
            }
            // SAFETY: the destination is a slot of the running window.
            unsafe { write(cx.regs, slot, w * WARP + lane, value) };
        }
    }
    if lanes != 0 {
        let event = Undefined::Loaded {
            warp: w,
            lanes,
            addresses: &places,
            bytes: width / 8,
            space: from.space,
        };
        tell(cx, span, &event);
    }
}

/// # Safety
/// As for [`execute`].
unsafe fn store_tile(tile: Tile, op: &ShadowOp<Slot>, span: Span, cx: &mut Cx<'_>, w: usize) {
    let (Some(memory), Some(to)) = (memory::get(), access_of(op, span)) else {
        return;
    };
    // SAFETY: the slots of `op` lie in the running window.
    let Some(at) = (unsafe { lines_at(tile, op, &to, cx, w, Direction::Write) }) else {
        return;
    };
    let (count, width) = tile::parts(tile);
    let bytes = width as usize / 8;
    for (register, slot) in op.src.iter().take(tile.needed()).enumerate() {
        // SAFETY: the source is a slot of the running window.
        let value = |lane: usize| slot.map_or(0, |slot| unsafe { read(cx.regs, slot, w * WARP + lane) });
        let values: Lanes = std::array::from_fn(value);
        for part in 0..count {
            let up = width * part as u32;
            let of_part = |lane: usize| u128::from(values[lane] >> up) & (u128::MAX >> (128 - width));
            let places: Lanes =
                std::array::from_fn(|lane| tile::place(tile, &at, fragment::corner(tile, register, part, lane)));
            (0..WARP).for_each(|lane| leave(memory, places[lane], bytes, of_part(lane)));
            let lanes = (0..WARP).map(|lane| u32::from(of_part(lane) != 0) << lane).sum();
            tell_stored(cx, span, (w, lanes), &places, bytes as u32);
        }
    }
}

/// # Safety
/// As for [`execute`].
unsafe fn product(op: Multiply, shadow: &ShadowOp<Slot>, span: Span, cx: &Cx<'_>, w: usize) {
    // SAFETY: slots of `shadow` lie in the running window. Elements come from all lanes, whoever takes part.
    let missing = |slot: &Slot| unsafe { nonzero(cx, *slot, w, u32::MAX) } != 0;
    if !shadow.src.iter().flatten().any(missing) {
        // SAFETY: as the caller promises.
        return unsafe { define(shadow, cx, w) };
    }
    // SAFETY: as the caller promises.
    unsafe {
        match op.kind {
            _ if op.container == 64 => doubles(op, shadow, span, cx, w),
            Kind::QuadPairs { a_rows, b_rows } => quad_pairs(op, (a_rows, b_rows), shadow, span, cx, w),
            Kind::Mma | Kind::Wmma => fragments(op, shadow, span, cx, w),
        }
    }
}

/// What a product's elements are made from, as far as it is missing.
struct Missing {
    /// Of each row of A, whether anything is: elements, metadata, factors.
    rows: Vec<bool>,
    /// Of each column of B a bit for each of its codes that is, or all for a factor.
    columns: Vec<u128>,
    /// Of each row of A a bit for each code of B that it is multiplied with.
    kept: Vec<u128>,
}

impl Missing {
    fn element(&self, row: usize, column: usize) -> bool {
        self.rows[row] || self.columns[column] & self.kept[row] != 0
    }
}

/// # Safety
/// As for [`execute`].
unsafe fn fragments(op: Multiply, shadow: &ShadowOp<Slot>, span: Span, cx: &Cx<'_>, w: usize) {
    const NOTHING: Word = [0; WARP];
    // Numbers of threads and bytes, which have 16 bits, are read below.
    let words: Vec<&Word> = shadow
        .src
        .iter()
        .map(|slot| match slot {
            // SAFETY: the source is a slot of the running window, of 32 bits, which nobody writes before all are read.
            Some(slot) if slot.width == Width::B32 => unsafe { word(cx, *slot, w) },
            Some(_) | None => &NOTHING,
        })
        .collect();
    let (a, rest) = words.split_at(op.a_registers());
    let (b, rest) = rest.split_at(op.b_registers());
    let (c, rest) = rest.split_at(op.registers(op.c));
    let (mut a_codes, mut b_codes, mut codes) = (Vec::new(), Vec::new(), Vec::new());
    let level = Level::current();
    let gather = |registers, to| Gather {
        op: &op,
        registers,
        to,
        packed: false,
    };
    mma::run::<GatherA>(level, gather(a, &mut a_codes));
    mma::run::<GatherB>(level, gather(b, &mut b_codes));
    mma::run::<GatherC>(level, gather(c, &mut codes));
    let (m, n, stride) = (
        usize::from(op.shape.m),
        usize::from(op.shape.n),
        stride(op.shape.m.into()),
    );
    let mut missing = Missing {
        rows: (0..m)
            .map(|row| a_codes.iter().skip(row).step_by(stride).any(|code| *code != 0))
            .collect(),
        columns: (0..n)
            .map(|column| {
                (0..)
                    .zip(b_codes.iter().skip(column).step_by(n))
                    .fold(0, |all, (k, code)| all | u128::from(*code != 0) << k)
            })
            .collect(),
        kept: vec![u128::MAX; m],
    };
    // What is the same for all lanes is read from the first active one.
    let first = w * WARP + cx.mask.lanes[w].trailing_zeros() as usize % WARP;
    // SAFETY: values and their shadows are slots of the running window.
    let value = |at: usize| unsafe { read(cx.regs, shadow.values[at], first) } as u32;
    let shadows = &shadow.src[shadow.src.len() - rest.len()..];
    // SAFETY: likewise.
    let is_open = |at: usize| shadows[at].is_some_and(|slot| unsafe { read(cx.regs, slot, first) } != 0);
    let mut next = 0;
    let mut all = false;
    // What stands behind C, by row and column, and where among all sources.
    let (mut of_rows, mut of_columns) = (vec![None; m], vec![None; n]);
    let place = |at: usize| (op.elements() + at) as u8;
    if op.sparse {
        let of = Metadata::of(op.a, op.container == 4);
        // SAFETY: metadata are a slot of 32 bits of the running window.
        let lanes = unsafe { word(cx, shadow.values[0], w) };
        let named = fragment::metadata(&op, of, lanes, value(1));
        let open = fragment::metadata(&op, of, rest[0], value(1));
        for (row, (named, open)) in named.into_iter().zip(open).enumerate() {
            missing.rows[row] |= open != 0;
            if open != 0 {
                let holds = |lane: &usize| {
                    let alone = std::array::from_fn(|other| if other == *lane { rest[0][other] } else { 0 });
                    fragment::metadata(&op, of, &alone, value(1))[row] != 0
                };
                of_rows[row] = (0..WARP).find(holds).map(|lane| (place(0), lane as u8));
            }
            let elements = 0..usize::from(op.shape.k) / 2;
            missing.kept[row] = elements.fold(0, |all, at| all | 1 << of.column(named, at));
        }
        all |= is_open(1);
        next = 2;
    }
    if let Some(scaling) = op.scaling {
        let mut factors = Vec::new();
        fragment::row_scales(
            rest[next],
            (value(next + 1), value(next + 2)),
            scaling.factors,
            &mut factors,
        );
        for (row, factors) in factors.chunks_exact(scaling.factors).enumerate() {
            if factors.iter().any(|factor| *factor != 0) {
                missing.rows[row] = true;
                of_rows[row].get_or_insert((place(next), fragment::row_holder(row, value(next + 2)) as u8));
            }
        }
        let ids = (value(next + 4), value(next + 5));
        fragment::column_scales(rest[next + 3], ids, scaling.factors, &mut factors);
        for (column, factors) in factors.chunks_exact(scaling.factors).enumerate() {
            if factors.iter().any(|factor| *factor != 0) {
                missing.columns[column] = u128::MAX;
                of_columns[column] = Some((place(next + 3), fragment::column_holder(column, ids.1) as u8));
            }
        }
        all |= [1, 2, 4, 5].iter().any(|id| is_open(next + id));
    }
    let whole = match op.d {
        Accumulator::F16 => 0xffff,
        Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => u32::MAX,
    };
    for column in 0..n {
        for row in 0..m {
            let code = &mut codes[column * stride + row];
            let is_missing = all || *code != 0 || missing.element(row, column);
            *code = if is_missing { whole } else { 0 };
        }
    }
    let sources = Sources {
        op: &op,
        words: &words,
        kept: &missing.kept,
        behind: [&of_rows, &of_columns],
    };
    let (lanes, sources) = sources.of(cx.mask.lanes[w], |row, column| codes[column * stride + row] != 0);
    if lanes != 0 {
        let event = Undefined::Multiplied {
            warp: w,
            lanes,
            sources: &sources,
        };
        tell(cx, span, &event);
    }
    let mut results = vec![NOTHING; shadow.dst.len()];
    mma::run::<ScatterD>(level, (&op, &codes, &mut results));
    for (dst, result) in shadow.dst.iter().zip(&results) {
        // SAFETY: destinations are slots of 32 bits of the running window.
        unsafe { put(cx, *dst, w, result) };
    }
}

/// `mma.m8n8k4` of halves.
///
/// # Safety
/// As for [`execute`].
unsafe fn quad_pairs(
    op: Multiply,
    (a_rows, b_rows): (bool, bool),
    shadow: &ShadowOp<Slot>,
    span: Span,
    cx: &Cx<'_>,
    w: usize,
) {
    // SAFETY: the sources are slots of 32 bits of the running window; they are copied before anything is written.
    let copied = |slot: &Option<Slot>| slot.map_or([0; WARP], |slot| unsafe { *word(cx, slot, w) });
    let sources: Vec<Word> = shadow.src.iter().map(copied).collect();
    let (a, rest) = sources.split_at(2);
    let (b, c) = rest.split_at(2);
    let half =
        |registers: &[Word], element: usize, lane: usize| registers[element / 2][lane] >> (16 * (element % 2)) & 0xffff;
    let mut results = vec![[0; WARP]; shadow.dst.len()];
    let mut culprits = Culprits::default();
    for quad in 0..4 {
        let lane = |at: usize| fragment::quad_lane(quad, at);
        // `first`: the first register among all sources.
        let any = |registers: &[Word], first: usize, along: bool, at: usize| {
            (0..4).find_map(|k| {
                let (holder, element) = fragment::quad_multiplicand(along, at, k);
                let holder = lane(holder);
                (half(registers, element, holder) != 0).then_some(((first + element / 2) as u8, holder as u8))
            })
        };
        let rows: [Option<Source>; 8] = std::array::from_fn(|at| any(a, 0, a_rows, at));
        let columns: [Option<Source>; 8] = std::array::from_fn(|at| any(b, 2, !b_rows, at));
        let mut missing = [[None; 8]; 8];
        for at in 0..8 {
            for element in 0..8 {
                let (row, column) = fragment::quad_accumulator(op.c, element, at);
                let (own, register) = match op.c {
                    Accumulator::F16 => (half(c, element, lane(at)), element / 2),
                    Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => (c[element][lane(at)], element),
                };
                let own = (own != 0).then_some(((4 + register) as u8, lane(at) as u8));
                missing[row][column] = own.or(rows[row]).or(columns[column]);
            }
        }
        for at in 0..8 {
            for element in 0..8 {
                let (row, column) = fragment::quad_accumulator(op.d, element, at);
                let Some(source) = missing[row][column] else { continue };
                culprits.add(lane(at), source);
                match op.d {
                    Accumulator::F16 => results[element / 2][lane(at)] |= 0xffff << (16 * (element % 2)),
                    Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => results[element][lane(at)] = u32::MAX,
                }
            }
        }
    }
    for (dst, result) in shadow.dst.iter().zip(&results) {
        // SAFETY: destinations are slots of 32 bits of the running window.
        unsafe { put(cx, *dst, w, result) };
    }
    culprits.tell(cx, span, w);
}

/// Products of `f64`.
///
/// # Safety
/// As for [`execute`].
unsafe fn doubles(op: Multiply, shadow: &ShadowOp<Slot>, span: Span, cx: &Cx<'_>, w: usize) {
    let (m, n, k) = op.shape.sizes();
    let (a, rest) = shadow.src.split_at(op.a_registers());
    let (b, c) = rest.split_at(op.b_registers());
    let open = |slot: &Option<Slot>, lane: usize| match *slot {
        // SAFETY: the source is a slot of 64 bits of the running window.
        Some(slot) => unsafe { read(cx.regs, slot, w * WARP + lane) != 0 },
        None => false,
    };
    let (mut rows, mut columns) = (vec![None; m], vec![None; n]);
    let mut own = vec![None; m * n];
    for lane in 0..WARP {
        // What is missing in a register, whose place among all sources is this.
        let source = |slot, place: usize| open(slot, lane).then_some((place as u8, lane as u8));
        for (register, slot) in a.iter().enumerate() {
            let row: &mut Option<Source> = &mut rows[fragment::double(m, k, register, lane).0];
            *row = row.or(source(slot, register));
        }
        for (register, slot) in b.iter().enumerate() {
            let column: &mut Option<Source> = &mut columns[fragment::double(8, k, register, lane).0];
            *column = column.or(source(slot, a.len() + register));
        }
        for (register, slot) in c.iter().enumerate() {
            let at = fragment::double_accumulator(m, register, lane);
            own[at.column * m + at.row] = source(slot, a.len() + b.len() + register);
        }
    }
    let mut culprits = Culprits::default();
    for (register, dst) in shadow.dst.iter().enumerate() {
        for lane in bits(cx.mask.lanes[w]) {
            let at = fragment::double_accumulator(m, register, lane);
            let source = own[at.column * m + at.row].or(rows[at.row]).or(columns[at.column]);
            if let Some(source) = source {
                culprits.add(lane, source);
            }
            let Some(dst) = *dst else { continue };
            // SAFETY: the destination is a slot of 64 bits of the running window.
            unsafe { write(cx.regs, dst, w * WARP + lane, source.map_or(0, |_| u64::MAX)) };
        }
    }
    culprits.tell(cx, span, w);
}
