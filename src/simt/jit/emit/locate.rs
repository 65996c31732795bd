//! Where the lanes of an access go, and whether they may: lines by their ends, others lane by lane. Addresses are compared with the length of
//! their window, or with the memory among which the instruction was the last time ([`Extent`]).

use std::mem::offset_of;

use crate::isa::lanes::Width;
use crate::program::{Address, Space};

use super::super::context::{Context, Extent};
use super::super::plan::Kind;
use super::place::{Located, Moved, Multiple, Near, Place, Spread};
use super::{Emit, LANES};

impl Emit<'_> {
    /// Whether lanes find memory in a simple pattern: one address for all, or one access after the other; by how much addresses
    /// grow, then. The outer `None`: the access is for the interpreter.
    pub(super) fn line(&self, address: &Address, moved: Moved) -> Option<Option<u64>> {
        let bytes = moved.bytes();
        let kind = match address.register {
            None => Kind::SAME,
            Some(reg) => self.kind(reg.number),
        };
        let narrow = is_narrow(address);
        if matches!(address.space, Space::Generic | Space::Global | Space::Const) && narrow {
            return None;
        }
        match kind {
            Kind::Line { step, .. } => {
                let step = if narrow { u64::from(step as u32) } else { step };
                // Where lanes leave words out, those that do not run would often go too far; and short vectors have no masks.
                let by_vectors =
                    (!moved.stores || self.lanes == 16) && self.is_stride(moved, step, self.lanes_of_line(address));
                let gaps = self.mask.is_none() && (by_vectors || self.is_apart(moved, step));
                let simple = step == 0 || step == bytes || gaps;
                // Under a mask, lanes store single elements in a row (smaller ones than words where masks are for bytes, too), or all to one
                // place.
                let least = if self.lanes == 16 { 1 } else { 4 };
                let whole = step == bytes && moved.count == 1 && (least..=8).contains(&bytes);
                let one = step == 0 && self.lanes_of_line(address) == u64::from(LANES);
                let masked_store = moved.stores && self.mask.is_some() && !whole && !one;
                Some((simple && !masked_store && address.space != Space::Local).then_some(step))
            }
            Kind::Vector => Some(None),
            Kind::Unknown | Kind::Window => None,
        }
    }

    /// Forms the addresses of an access, and finds out whether all is well with them. `None`: for the interpreter.
    pub(super) fn locate(&mut self, address: &Address, moved: Moved) -> Option<Located> {
        let bytes = moved.bytes();
        let multiple = self.multiple(address, (bytes, address.offset));
        match self.line(address, moved)? {
            Some(step) => {
                let lanes = self.lanes_of_line(address);
                let reach = (lanes - 1) * step + bytes;
                self.locate_line(address, (reach, multiple), step)
            }
            None => self.locate_lanes(address, bytes),
        }
    }

    /// Lanes that one number of an address stands for.
    pub(super) fn lanes_of_line(&self, address: &Address) -> u64 {
        self.lanes_of_bases(address.register.map_or(1, |reg| self.bases_of(reg.number)))
    }

    pub(super) fn lanes_of_bases(&self, bases: usize) -> u64 {
        u64::from(LANES) / bases as u64
    }

    /// Whether it has to be asked that an access of so many bytes, at an offset from an address's register, is at a multiple of
    /// them.
    pub(super) fn multiple(&self, address: &Address, (bytes, offset): (u64, i64)) -> Multiple {
        let known = match address.register {
            Some(reg) => self
                .input
                .body
                .facts
                .get(reg.number as usize)
                .map_or(0, |facts| facts.align),
            None if address.space == Space::Local => 0,
            None => 63,
        };
        let certain = u32::from(known) >= bytes.trailing_zeros() && offset as u64 & (bytes - 1) == 0;
        (bytes > 1 && !certain).then_some((bytes, offset.wrapping_sub(address.offset)))
    }

    pub(super) fn or(&mut self, a: Option<String>, b: String) -> Option<String> {
        Some(match a {
            None => b,
            Some(a) => self.text.binary("or", "i1", &a, &b),
        })
    }

    /// A new site: its number, and the extent that it has found.
    pub(super) fn site(&mut self, extent: u64) -> (usize, String, String) {
        let site = self.sites.len();
        self.sites.push(extent);
        let (low, room) = self.extent(site);
        (site, low, room)
    }

    /// What a site has found.
    pub(super) fn extent(&mut self, site: usize) -> (String, String) {
        let extents = self.field(offset_of!(Context, extents), "ptr", true);
        let at = self.place(&extents, site * size_of::<Extent>());
        let low = self.text.value(format!("load i64, ptr {at}"));
        let at = self.place(&at, offset_of!(Extent, room));
        let room = self.text.value(format!("load i64, ptr {at}"));
        (low, room)
    }

    /// Addresses of lanes that follow each other by `step`, all of which reach so far together.
    pub(super) fn locate_line(
        &mut self,
        address: &Address,
        (reach, multiple): (u64, Multiple),
        step: u64,
    ) -> Option<Located> {
        let (bases, absolute) = match address.register {
            Some(reg) => (self.line_of(reg, false).0, false),
            None => (vec!["0".to_owned()], true),
        };
        let offset = address.offset;
        // Rows that lie near each other are looked at as one.
        let begins = address.register.and_then(|reg| self.begins_of(reg.number));
        let near = begins.and_then(Near::of);
        let mut bad = None;
        let mut at = Vec::new();
        let mut site = None;
        let mut safe = String::new();
        match address.space {
            Space::Generic | Space::Global | Space::Const => {
                let (number, low, room) = self.site(reach + near.as_ref().map_or(0, |near| near.span));
                site = Some(number);
                for (number, base) in bases.into_iter().enumerate() {
                    let address = self.text.value(format!("add i64 {base}, {offset}"));
                    at.push(address.clone());
                    if near.as_ref().is_some_and(|near| near.least != number) {
                        continue;
                    }
                    let distance = self.text.value(format!("sub i64 {address}, {low}"));
                    let beyond = self.text.value(format!("icmp uge i64 {distance}, {room}"));
                    bad = self.or(bad, beyond);
                }
                safe = low;
            }
            Space::Shared => {
                let start = self.field(offset_of!(Context, shared_start), "i64", true);
                let mut distances = Vec::with_capacity(bases.len());
                for base in bases {
                    let mut distance = match is_narrow(address) {
                        true => self.text.value(format!("zext i32 {base} to i64")),
                        false => base,
                    };
                    distance = self.text.value(format!("add i64 {distance}, {offset}"));
                    if !absolute {
                        distance = self.text.value(format!("sub i64 {distance}, {start}"));
                    }
                    distances.push(self.text.value(format!("and i64 {distance}, 4294967295")));
                }
                (at, bad) = match near.filter(|_| self.mask.is_none()) {
                    Some(near) => self.rows_in_window(&distances[near.least], reach, &near),
                    None => self.in_window(distances, reach, step),
                };
            }
            Space::Param => {
                let param = self.field(offset_of!(Context, param), "i64", true);
                let all = self.field(offset_of!(Context, param_bytes), "i64", true);
                for base in bases {
                    let wide = match (is_narrow(address), absolute) {
                        (true, false) => self.text.value(format!("zext i32 {base} to i64")),
                        _ => base,
                    };
                    let distance = self.text.value(format!("add i64 {wide}, {offset}"));
                    let end = self.text.value(format!("add i64 {distance}, {reach}"));
                    let beyond = self.text.value(format!("icmp ugt i64 {end}, {all}"));
                    bad = self.or(bad, beyond);
                    let beyond = self.text.value(format!("icmp ugt i64 {distance}, {all}"));
                    bad = self.or(bad, beyond);
                    at.push(self.text.value(format!("add i64 {param}, {distance}")));
                }
            }
            Space::Local => return None,
        }
        if let Some((bytes, behind)) = multiple {
            for address in &at {
                let address = self.text.value(format!("add i64 {address}, {behind}"));
                let low = self.text.value(format!("and i64 {address}, {}", bytes - 1));
                let crooked = self.text.value(format!("icmp ne i64 {low}, 0"));
                bad = self.or(bad, crooked);
            }
        }
        Some(Located {
            place: Place::Lines {
                at,
                step,
                around: (0, 0),
            },
            bad: bad?,
            site,
            safe,
        })
    }

    /// Distances from a window's start that are too far for an access, in each lane: from the first one on. Where there is no
    /// room for any, all are.
    pub(super) fn rooms(&mut self, window: &str, bytes: u64) -> String {
        let room = self.text.value(format!("sub i64 {window}, {}", bytes - 1));
        let room = self.text.value(format!("call i64 @llvm.smax.i64(i64 {room}, i64 0)"));
        let room = self.text.value(format!("trunc i64 {room} to i32"));
        self.splat("i32", &room)
    }

    /// Lanes that are too far from where there is room, or whose address is no multiple where that is asked. Windows start at a
    /// multiple of any access.
    fn beyond(&mut self, bits: u32, distance: &str, address: &str, rooms: &str, multiple: Multiple) -> String {
        let form = self.form();
        let ty = form.int(bits);
        let far = self.text.value(format!("icmp uge {ty} {distance}, {rooms}"));
        let Some((bytes, behind)) = multiple else {
            return far;
        };
        let mut address = address.to_owned();
        if behind as u64 & (bytes - 1) != 0 {
            address = self
                .text
                .binary("add", &ty, &address, &form.constant(bits, behind as u64 & (bytes - 1)));
        }
        let low = self.text.binary("and", &ty, &address, &form.constant(bits, bytes - 1));
        let aslant = self
            .text
            .value(format!("icmp ne {ty} {low}, {}", form.constant(bits, 0)));
        self.text.logic("or", form, &far, &aslant)
    }

    pub(super) fn locate_lanes(&mut self, address: &Address, bytes: u64) -> Option<Located> {
        let multiple = self.multiple(address, (bytes, address.offset));
        self.locate_each(address, (bytes, multiple))
    }

    /// Pointers so far from a number.
    pub(super) fn pointers(&mut self, spread: &Spread) -> Vec<String> {
        let base = self.text.value(format!("inttoptr i64 {} to ptr", spread.base));
        let (ty, scale) = (self.form().int(spread.bits), spread.scale);
        let each = spread.distances.iter();
        each.map(|distance| {
            self.text
                .value(format!("getelementptr [{scale} x i8], ptr {base}, {ty} {distance}"))
        })
        .collect()
    }

    /// Where each lane goes, and whether any that runs may not: each reaches so far.
    pub(super) fn locate_each(&mut self, address: &Address, (reach, multiple): (u64, Multiple)) -> Option<Located> {
        if matches!(address.space, Space::Generic | Space::Global | Space::Const)
            && let Some(located) = self.locate_indexed(address, (reach, multiple))
        {
            return Some(located);
        }
        let form = self.form();
        let (wide, narrow) = (form.int(64), form.int(32));
        let offset = address.offset as u64;
        let width = if is_narrow(address) { 32 } else { 64 };
        let values = match address.register {
            Some(reg) => self.lanes_of(reg, false),
            None => vec![form.constant(width, 0); self.parts],
        };
        let mut wrong = Vec::new();
        let mut distances = Vec::new();
        let mut site = None;
        let mut end = None;
        let (base, bits);
        match address.space {
            Space::Generic | Space::Global | Space::Const => {
                let (number, low, room) = self.site(reach);
                site = Some(number);
                let (lows, rooms) = (self.splat("i64", &low), self.splat("i64", &room));
                for value in values {
                    let by = form.constant(64, offset);
                    let address = self.text.binary("add", &wide, &value, &by);
                    let distance = self.text.binary("sub", &wide, &address, &lows);
                    wrong.push(self.beyond(64, &distance, &address, &rooms, multiple));
                    distances.push(distance);
                }
                end = Some(self.text.value(format!("add i64 {room}, {}", reach - 1)));
                (base, bits) = (low, 64);
            }
            Space::Shared => {
                let shared = self.field(offset_of!(Context, shared), "i64", true);
                let all = self.field(offset_of!(Context, shared_bytes), "i64", true);
                let mut by = format!("{}", offset as u32 as i32);
                if address.register.is_some() {
                    let start = self.field(offset_of!(Context, shared_start), "i64", true);
                    let start = self.text.value(format!("trunc i64 {start} to i32"));
                    by = self.text.value(format!("sub i32 {by}, {start}"));
                }
                let by = self.splat("i32", &by);
                let rooms = self.rooms(&all, reach);
                for value in values {
                    let value = self.text.resize(form, width, &value, 32, false);
                    let distance = self.text.binary("add", &narrow, &value, &by);
                    wrong.push(self.beyond(32, &distance, &distance, &rooms, multiple));
                    distances.push(distance);
                }
                end = Some(all);
                (base, bits) = (shared, 32);
            }
            Space::Local => {
                let local = "%local".to_owned();
                let stride = self.field(offset_of!(Context, local_stride), "i64", true);
                let mut by = (offset as u32).to_string();
                if address.register.is_none() {
                    let frame = self.field(offset_of!(Context, frame), "i64", true);
                    let frame = self.text.value(format!("trunc i64 {frame} to i32"));
                    by = self.text.value(format!("add i32 {frame}, {}", offset as u32 as i32));
                }
                let by = self.splat("i32", &by);
                let rooms = self.rooms(&stride, reach);
                let strides = self.splat("i64", &stride);
                for (part, value) in values.into_iter().enumerate() {
                    let value = self.text.resize(form, width, &value, 32, false);
                    let distance = self.text.binary("add", &narrow, &value, &by);
                    wrong.push(self.beyond(32, &distance, &distance, &rooms, multiple));
                    let numbers: Vec<String> = (0..self.lanes)
                        .map(|lane| format!("i64 {}", part as u32 * self.lanes + lane))
                        .collect();
                    let numbers = format!("<{}>", numbers.join(", "));
                    let own = self.text.binary("mul", &wide, &strides, &numbers);
                    let distance = self.text.resize(form, 32, &distance, 64, false);
                    distances.push(self.text.binary("add", &wide, &own, &distance));
                }
                (base, bits) = (local, 64);
            }
            Space::Param => return None,
        }
        if let Some(mask) = self.mask.clone() {
            wrong = self.each(&wrong, &mask, "and");
        }
        let bad = self.any(&wrong);
        Some(Located {
            safe: base.clone(),
            place: Place::Lanes(Spread {
                base,
                distances,
                bits,
                scale: 1,
                end,
            }),
            bad,
            site,
        })
    }
}

/// Whether an address is of 32 bits.
fn is_narrow(address: &Address) -> bool {
    address.register.is_some_and(|reg| reg.width == Width::B32)
}
