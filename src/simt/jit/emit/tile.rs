//! Tiles of matrices in memory (`wmma.load`, `wmma.store`): rows or columns lie one by one, each so far behind the one before as a
//! register says. Of each, what the registers want is one vector; which lane has which of its elements is a permutation.

use std::mem::offset_of;

use crate::isa::joint::fragment;
use crate::isa::joint::matrix::Tile;
use crate::isa::lanes::Width;
use crate::program::{Address, JointOp, Op, Reg, Space};

use super::super::Pc;
use super::super::compute::bits_of;
use super::super::context::Context;
use super::super::plan::Kind;
use super::super::text::Form;
use super::{Emit, LANES};

/// Most bytes between neighbours that are gone through here: no sum of as many as a tile has wraps around.
const FAR: u64 = 1 << 40;
/// Most bytes of a vector from memory.
const MOST: u64 = 32;

/// What some registers have of a tile, which is as much of each of some lines.
struct Share {
    registers: Vec<usize>,
    /// Lines, and the byte in them from which on they have elements.
    lines: Vec<(usize, u64)>,
    /// Of each line.
    elements: usize,
    /// Bits of an element; of small ones that follow each other in memory as in registers, of a word of them.
    bits: u32,
    /// Of each register's lanes one after the other: where in these lines together their elements are, first elements lowest.
    places: Vec<Vec<usize>>,
}

/// The shares of a tile, one for each register, or for two that have neighbours by turns. `None`: not of such a form.
fn shares(tile: Tile) -> Option<Vec<Share>> {
    let mut shares = Vec::new();
    let mut register = 0;
    while register < tile.needed() {
        let share = share(tile, &[register]).or_else(|| share(tile, &[register, register + 1]))?;
        register += share.registers.len();
        shares.push(share);
    }
    Some(shares)
}

fn share(tile: Tile, registers: &[usize]) -> Option<Share> {
    if registers.iter().any(|&register| register >= tile.needed()) {
        return None;
    }
    let own = u32::from(tile.bits);
    let each = fragment::elements(tile);
    let place = |register, part, lane| {
        let corner = fragment::corner(tile, register, part, lane);
        let (line, along) = match tile.row_major {
            true => (corner.row, corner.column),
            false => (corner.column, corner.row),
        };
        (line, (along as u32 * own) as u64 / 8)
    };
    let lanes = 0..LANES as usize;
    // Whole words, where those are neighbours.
    let in_row = |register| {
        let (line, along) = place(register, 0, 0);
        (1..each).all(|part| place(register, part, 0) == (line, along + part as u64 * u64::from(own) / 8))
    };
    let whole = own < 32 && registers.iter().all(|&register| in_row(register));
    let (bits, parts) = if whole { (32, 1) } else { (own, each) };
    let mut all: Vec<(usize, u64)> = Vec::new();
    for &register in registers {
        all.extend(
            lanes
                .clone()
                .flat_map(|lane| (0..parts).map(move |part| place(register, part, lane))),
        );
    }
    let mut sorted = all.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let mut lines: Vec<(usize, u64)> = Vec::new();
    let bytes = u64::from(bits / 8);
    let mut counts: Vec<usize> = Vec::new();
    for &(line, along) in &sorted {
        match (lines.last(), counts.last_mut()) {
            (Some(&(last, first)), Some(count)) if last == line => {
                if along != first + *count as u64 * bytes {
                    return None;
                }
                *count += 1;
            }
            _ => {
                lines.push((line, along));
                counts.push(1);
            }
        }
    }
    let elements = *counts.first()?;
    let is_even = counts.iter().all(|&count| count == elements) && sorted.len() == all.len();
    let fits = elements.is_power_of_two() && lines.len().is_power_of_two() && elements as u64 * bytes <= MOST;
    if !is_even || !fits || bits < 16 {
        return None;
    }
    let place_of = |at: &(usize, u64)| sorted.binary_search(at).expect("all are among them");
    let places = all.chunks_exact(LANES as usize * parts);
    Some(Share {
        registers: registers.to_vec(),
        lines,
        elements,
        bits,
        places: places.map(|places| places.iter().map(place_of).collect()).collect(),
    })
}

/// Where a tile lies.
struct Found {
    /// Its first line, and bytes from each line to the next.
    at: String,
    step: String,
    /// It is for the interpreter.
    bad: String,
    site: Option<usize>,
}

impl Emit<'_> {
    /// Loads a tile; `false`: the interpreter's.
    pub(super) fn load_tile(&mut self, tile: Tile, joint: &JointOp, op: &Op, pc: Pc) -> bool {
        let wide = if tile.bits == 64 { Width::B64 } else { Width::B32 };
        let plain = joint.dst.iter().flatten().all(|reg| reg.width == wide);
        let Some(shares) = shares(tile).filter(|_| plain) else {
            return false;
        };
        let Some(found) = self.find_tile(tile, joint) else {
            return false;
        };
        let done = self.slowly((&found.bad, found.site), op, pc);
        for share in shares {
            let vectors: Vec<String> = (share.lines.iter())
                .map(|&(line, along)| {
                    let pointer = self.line_pointer(&found, line, along);
                    let ty = format!("<{} x i{}>", share.elements, share.bits);
                    let align = share.bits / 8;
                    self.text.value(format!("load {ty}, ptr {pointer}, align {align}"))
                })
                .collect();
            let (all, count) = self.concatenated(vectors, share.elements, share.bits);
            for (register, places) in share.registers.iter().zip(&share.places) {
                // Fragments that repeat themselves have it more than once.
                for reg in joint.dst.iter().skip(*register).step_by(tile.needed()) {
                    if let Some(reg) = *reg {
                        let parts = self.picked((&all, count, share.bits), places, reg);
                        self.write_lanes(reg, &parts);
                    }
                }
            }
        }
        self.jump(&done);
        self.text.label(&done);
        true
    }

    /// Stores a tile; `false`: the interpreter's.
    pub(super) fn store_tile(&mut self, tile: Tile, joint: &JointOp, op: &Op, pc: Pc) -> bool {
        let Some(shares) = shares(tile) else { return false };
        let Some(registers) = joint.src.get(1..) else {
            return false;
        };
        let wide = if tile.bits == 64 { Width::B64 } else { Width::B32 };
        if registers.iter().any(|reg| reg.width != wide) {
            return false;
        }
        let Some(found) = self.find_tile(tile, joint) else {
            return false;
        };
        let done = self.slowly((&found.bad, found.site), op, pc);
        for share in shares {
            let mut vectors = Vec::new();
            let mut length = 0;
            for &register in &share.registers {
                let reg = registers[register];
                let bits = bits_of(reg.width).unwrap_or(32);
                let (from, to) = (self.form().int(bits), self.lanes * bits / share.bits);
                length = to as usize;
                for value in self.lanes_of(reg, false) {
                    vectors.push(
                        self.text
                            .convert("bitcast", &from, &value, &format!("<{to} x i{}>", share.bits)),
                    );
                }
            }
            let (all, count) = self.concatenated(vectors, length, share.bits);
            // The element at each place.
            let mut elements = vec![0; share.lines.len() * share.elements];
            for (element, &place) in share.places.iter().flatten().enumerate() {
                elements[place] = element;
            }
            for (&(line, along), elements) in share.lines.iter().zip(elements.chunks_exact(share.elements)) {
                let vector = self.chosen((&all, count, share.bits), elements);
                let pointer = self.line_pointer(&found, line, along);
                let ty = format!("<{} x i{}>", share.elements, share.bits);
                let align = share.bits / 8;
                self.text
                    .line(format!("store {ty} {vector}, ptr {pointer}, align {align}"));
            }
        }
        self.jump(&done);
        self.text.label(&done);
        true
    }

    /// What the first lane has in a register, as a number of 64 bits.
    fn of_first_lane(&mut self, reg: Reg) -> Option<String> {
        let bits = bits_of(reg.width).filter(|&bits| bits >= 32)?;
        let value = match self.kind(reg.number) {
            Kind::Line { .. } => self.line_of(reg, false).0.swap_remove(0),
            Kind::Vector => {
                let ty = self.form().int(bits);
                let values = self.lanes_of(reg, false);
                self.text.value(format!("extractelement {ty} {}, i32 0", values[0]))
            }
            Kind::Unknown | Kind::Window => return None,
        };
        Some(self.text.resize(Form::One, bits, &value, 64, false))
    }

    /// Whether all lines of a tile have memory, and where.
    fn find_tile(&mut self, tile: Tile, joint: &JointOp) -> Option<Found> {
        let [address] = &joint.addresses[..] else { return None };
        if self.mask.is_some() || !joint.objects.is_empty() || tile.bits < 8 {
            return None;
        }
        let bytes = u64::from(tile.bits) / 8;
        let length = tile.length() as u64 * bytes;
        let lines = tile.lines() as u64;
        let base = self.first_of_tile(address)?;
        let stride = self.of_first_lane(*joint.src.first()?)?;
        let step = self.text.value(format!("mul i64 {stride}, {bytes}"));
        let far = self.text.value(format!("icmp ugt i64 {stride}, {}", FAR / bytes));
        let last = self.text.value(format!("mul i64 {step}, {}", lines - 1));
        let (at, beyond, site) = match address.space {
            Space::Generic | Space::Global | Space::Const => {
                let (site, low, room) = self.site(length);
                let distance = self.text.value(format!("sub i64 {base}, {low}"));
                let first = self.text.value(format!("icmp uge i64 {distance}, {room}"));
                let end = self.text.value(format!("add i64 {distance}, {last}"));
                let end = self.text.value(format!("icmp uge i64 {end}, {room}"));
                (base, self.text.binary("or", "i1", &first, &end), Some(site))
            }
            Space::Shared => {
                let shared = self.field(offset_of!(Context, shared), "i64", true);
                let all = self.field(offset_of!(Context, shared_bytes), "i64", true);
                let start = self.field(offset_of!(Context, shared_start), "i64", true);
                let mut distance = base;
                if address.register.is_some() {
                    distance = self.text.value(format!("sub i64 {distance}, {start}"));
                }
                let distance = self.text.value(format!("and i64 {distance}, 4294967295"));
                let end = self.text.value(format!("add i64 {distance}, {last}"));
                let end = self.text.value(format!("add i64 {end}, {length}"));
                let beyond = self.text.value(format!("icmp ugt i64 {end}, {all}"));
                (self.text.value(format!("add i64 {shared}, {distance}")), beyond, None)
            }
            Space::Local | Space::Param => return None,
        };
        let low = self.text.value(format!("and i64 {at}, {}", bytes - 1));
        let crooked = self.text.value(format!("icmp ne i64 {low}, 0"));
        let bad = self.text.binary("or", "i1", &far, &beyond);
        let bad = self.text.binary("or", "i1", &bad, &crooked);
        Some(Found { at, step, bad, site })
    }

    /// A tile's address: the first lane's.
    fn first_of_tile(&mut self, address: &Address) -> Option<String> {
        let base = match address.register {
            Some(reg) => self.of_first_lane(reg)?,
            None => "0".to_owned(),
        };
        Some(self.text.value(format!("add i64 {base}, {}", address.offset)))
    }

    fn line_pointer(&mut self, found: &Found, line: usize, along: u64) -> String {
        let behind = self.text.value(format!("mul i64 {}, {line}", found.step));
        let at = self.text.value(format!("add i64 {}, {behind}", found.at));
        self.pointer(&at, along)
    }

    /// Vectors of so many elements side by side, a power of two of them: the vector, and its length.
    pub(super) fn concatenated(&mut self, mut vectors: Vec<String>, mut length: usize, bits: u32) -> (String, usize) {
        while vectors.len() > 1 {
            let order: Vec<String> = (0..2 * length).map(|at| format!("i32 {at}")).collect();
            let order = order.join(", ");
            let pairs = vectors.chunks(2).map(|pair| {
                self.text.value(format!(
                    "shufflevector <{length} x i{bits}> {}, <{length} x i{bits}> {}, <{} x i32> <{order}>",
                    pair[0],
                    pair[1],
                    2 * length
                ))
            });
            vectors = pairs.collect();
            length *= 2;
        }
        (vectors.swap_remove(0), length)
    }

    /// These elements of a vector.
    pub(super) fn chosen(&mut self, (all, count, bits): (&str, usize, u32), elements: &[usize]) -> String {
        let order: Vec<String> = elements.iter().map(|at| format!("i32 {at}")).collect();
        self.text.value(format!(
            "shufflevector <{count} x i{bits}> {all}, <{count} x i{bits}> poison, <{} x i32> <{}>",
            elements.len(),
            order.join(", ")
        ))
    }

    /// The parts of a register whose lanes' elements have these places.
    fn picked(&mut self, all: (&str, usize, u32), places: &[usize], reg: Reg) -> Vec<String> {
        let bits = bits_of(reg.width).unwrap_or(32);
        let (each, to) = (places.len() / self.parts, self.form().int(bits));
        let parts = places.chunks_exact(each).map(|places| {
            let picked = self.chosen(all, places);
            self.text
                .convert("bitcast", &format!("<{each} x i{}>", all.2), &picked, &to)
        });
        parts.collect()
    }
}
