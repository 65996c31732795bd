//! Loads and stores: where lanes find memory in a simple pattern, and it is certain that they may, LLVM's own accesses;
//! else the interpreter's ([`Emit::step`]), which checks each address and reports what is wrong.
//!
//! What is certain: an instruction remembers among which addresses it was the last time ([`Extent`]), and
//! windows have their length.

use std::mem::offset_of;

use crate::isa::lanes::Width;
use crate::program::{Address, Element, Op, Reg, Space};

use super::super::Pc;
use super::super::compute::bits_of;
use super::super::context::{Context, Extent};
use super::super::plan::Kind;
use super::super::text::Form;
use super::place::{Located, Member, Moved, Multiple, Place, Spread};
use super::{Emit, LANES};

/// Bytes between rows that are looked at as one: not so many that those next to each other often lie in memory of different allocations.
const FAR: u64 = 1 << 16;

/// Where an access goes, the label behind it, if there are other ways there, and an address that may be read.
type Way = (Place, Option<String>, String);

impl Emit<'_> {
    /// A load; `false`: not of a kind that is known here.
    pub(super) fn load(&mut self, address: &Address, element: Element, dst: &[Option<Reg>], op: &Op, pc: Pc) -> bool {
        let Some(moved) = Moved::of(element, dst.len(), false) else {
            return false;
        };
        if dst.iter().flatten().any(|reg| reg.width == Width::B128) {
            return false;
        }
        let Some((place, done, safe)) = self.way(address, moved, op, pc) else {
            return false;
        };
        self.go_along((address.space, &place), false);
        self.either(address, moved, place, |this, place| {
            this.load_from(place, element, dst, &safe);
        });
        self.behind(done);
        true
    }

    /// Loads from a place that is known to be right; `safe` may be read in any case.
    fn load_from(&mut self, place: &Place, element: Element, dst: &[Option<Reg>], safe: &str) {
        let bytes = u64::from(element.bytes) * dst.len() as u64;
        let bits = u32::from(element.bytes) * 8;
        let size = u64::from(element.bytes);
        let wide = |this: &mut Self, form: Form, reg: Reg, value: &str| {
            let to = bits_of(reg.width).unwrap_or(32);
            this.text.resize(form, bits, value, to, element.signed)
        };
        match place {
            Place::Rows { at, .. } => {
                let Some(reg) = dst[0] else { return };
                let (ty, mask) = (self.form().int(bits), self.mask.clone());
                let mut values = Vec::new();
                for (part, base) in at.iter().enumerate() {
                    let pointer = self.pointer(base, 0);
                    let value = match &mask {
                        Some(mask) => self.text.value(format!(
                            "call {ty} @llvm.masked.load.v{}i{bits}.p0(ptr {pointer}, i32 {size}, {} {}, {ty} zeroinitializer)",
                            self.lanes,
                            self.form().int(1),
                            mask[part]
                        )),
                        None => self.text.value(format!("load {ty}, ptr {pointer}, align {size}")),
                    };
                    values.push(wide(self, self.form(), reg, &value));
                }
                self.write_lanes(reg, &values);
            }
            Place::Lines { at, step: 0, .. } => {
                for (k, reg) in dst.iter().enumerate() {
                    let Some(reg) = *reg else { continue };
                    let mut values = Vec::new();
                    for base in at {
                        let pointer = self.pointer(base, k as u64 * size);
                        let value = self.text.value(format!("load i{bits}, ptr {pointer}, align {size}"));
                        values.push(wide(self, Form::One, reg, &value));
                    }
                    self.write_same(reg, &values);
                }
            }
            Place::Lines { at, step, around } if *step != bytes => {
                let count = dst.len() as u64;
                let moved = Moved {
                    size,
                    count,
                    stores: false,
                };
                let by_vectors = self.is_stride(moved, *step, self.lanes_of_bases(at.len()));
                let loaded = match by_vectors && !self.is_matrix(bits, count) {
                    true => self.load_stride(at, (moved, *step), *around),
                    false => self.load_apart(at, (moved, *step)),
                };
                for (reg, values) in dst.iter().zip(loaded) {
                    let Some(reg) = *reg else { continue };
                    let values: Vec<String> = values.iter().map(|value| wide(self, self.form(), reg, value)).collect();
                    self.write_lanes(reg, &values);
                }
            }
            Place::Near { at, words } => {
                let Some(reg) = dst[0] else { return };
                let values = self.load_near(at, words);
                let values: Vec<String> = values.iter().map(|value| wide(self, self.form(), reg, value)).collect();
                self.write_lanes(reg, &values);
            }
            Place::Butterflies { .. } => unreachable!("stores alone have such places"),
            Place::Lines { at, .. } => {
                let count = dst.len() as u64;
                let lanes = u64::from(self.lanes);
                let ty = format!("<{} x i{bits}>", lanes * count);
                // By part, the vector of each element, or all of them in one.
                let mut all = Vec::new();
                for part in 0..self.parts {
                    let (base, offset) = self.first_of(at, part, bytes);
                    if self.is_matrix(bits, count) {
                        all.push(self.load_matrix(&base, (offset, bytes), count));
                        continue;
                    }
                    let pointer = self.pointer(&base, offset);
                    all.push(vec![self.text.value(format!("load {ty}, ptr {pointer}, align {size}"))]);
                }
                for (k, reg) in dst.iter().enumerate() {
                    let Some(reg) = *reg else { continue };
                    let values: Vec<String> = all
                        .iter()
                        .map(|values| {
                            let value = match &values[..] {
                                [value] if count > 1 => {
                                    let picks: Vec<String> = (0..lanes)
                                        .map(|lane| format!("i32 {}", lane * count + k as u64))
                                        .collect();
                                    self.text.value(format!(
                                        "shufflevector {ty} {value}, {ty} poison, <{lanes} x i32> <{}>",
                                        picks.join(", ")
                                    ))
                                }
                                [value] => value.clone(),
                                each => each[k].clone(),
                            };
                            wide(self, self.form(), reg, &value)
                        })
                        .collect();
                    self.write_lanes(reg, &values);
                }
            }
            Place::Lanes(spread) if self.is_each(dst.len()) => {
                let Some(reg) = dst[0] else { return };
                let values: Vec<String> = self
                    .load_each(spread, size)
                    .iter()
                    .map(|value| wide(self, self.form(), reg, value))
                    .collect();
                self.write_lanes(reg, &values);
            }
            Place::Lanes(spread) => {
                let mut at = self.pointers(spread);
                let mut mask = self.mask.clone();
                // Others than the longest vectors have no masks of their own: all lanes access something.
                if self.lanes < 16
                    && let Some(mask) = mask.take()
                {
                    let safe = self.text.value(format!("inttoptr i64 {safe} to ptr"));
                    let safe = self.splat("ptr", &safe);
                    let ty = format!("<{} x ptr>", self.lanes);
                    at = at
                        .iter()
                        .zip(&mask)
                        .map(|(at, mask)| self.text.select(self.form(), &ty, mask, at, &safe))
                        .collect();
                }
                // Two words at a time.
                let pairs = bits == 32 && dst.len().is_multiple_of(2);
                let mut k = 0;
                while k < dst.len() {
                    let offset = k as u64 * size;
                    if pairs {
                        let both = self.gather(&at, (offset, 64, size), mask.as_deref());
                        for (half, reg) in dst[k..k + 2].iter().enumerate() {
                            let Some(reg) = *reg else { continue };
                            let values: Vec<String> = both
                                .iter()
                                .map(|value| {
                                    let form = self.form();
                                    let by = form.constant(64, 32 * half as u64);
                                    let value = self.text.binary("lshr", &form.int(64), value, &by);
                                    let value = self.text.resize(form, 64, &value, 32, false);
                                    wide(self, form, reg, &value)
                                })
                                .collect();
                            self.write_lanes(reg, &values);
                        }
                        k += 2;
                        continue;
                    }
                    if let Some(reg) = dst[k] {
                        let values: Vec<String> = self
                            .gather(&at, (offset, bits, size), mask.as_deref())
                            .iter()
                            .map(|value| wide(self, self.form(), reg, value))
                            .collect();
                        self.write_lanes(reg, &values);
                    }
                    k += 1;
                }
            }
        }
    }

    /// How an access is carried out, when it is known that it may be. `None`: it is for the interpreter.
    fn way(&mut self, address: &Address, moved: Moved, op: &Op, pc: Pc) -> Option<Way> {
        if let Some(Member { start, delta, safe }) = self.members.get(&pc).cloned() {
            return Some((self.member(&start, delta, moved.bytes()), None, safe));
        }
        let located = self.locate(address, moved)?;
        let (slow, fast, done) = (self.text.name("slow"), self.text.name("fast"), self.text.name("done"));
        self.rarely(&located.bad, &slow, &fast);
        self.text.label(&slow);
        self.step(op, pc, located.site);
        self.jump(&done);
        self.text.label(&fast);
        Some((located.place, Some(done), located.safe))
    }

    /// An access of a loop through memory fetches ahead. What a block shares is in the caches anyhow.
    fn go_along(&mut self, (space, place): (Space, &Place), stores: bool) {
        if space != Space::Shared
            && let Place::Lines { at, step, .. } = place
            && let ([address], step @ 1..=16) = (&at[..], *step)
        {
            let address = address.clone();
            self.fetch_ahead(&address, step * u64::from(LANES), stores);
        }
    }

    /// Ways come together behind an access.
    pub(super) fn behind(&mut self, done: Option<String>) {
        if let Some(done) = done {
            self.jump(&done);
            self.text.label(&done);
        }
    }

    fn gather(
        &mut self,
        at: &[String],
        (offset, bits, align): (u64, u32, u64),
        mask: Option<&[String]>,
    ) -> Vec<String> {
        let form = self.form();
        let (ty, lanes) = (form.int(bits), self.lanes);
        let ones = form.constant(1, 1);
        at.iter()
            .enumerate()
            .map(|(part, at)| {
                let at = self.further(at, offset);
                let mask = mask.map_or(&ones, |mask| &mask[part]);
                self.text.value(format!(
                    "call {ty} @llvm.masked.gather.v{lanes}i{bits}.v{lanes}p0(<{lanes} x ptr> {at}, i32 {align}, <{lanes} x i1> {mask}, {ty} zeroinitializer)"
                ))
            })
            .collect()
    }

    fn further(&mut self, at: &str, offset: u64) -> String {
        match offset {
            0 => at.to_owned(),
            _ => self
                .text
                .value(format!("getelementptr i8, <{} x ptr> {at}, i64 {offset}", self.lanes)),
        }
    }

    /// An address so many bytes behind a number, or before it.
    pub(super) fn pointer(&mut self, base: &str, offset: u64) -> String {
        let base = self.text.value(format!("inttoptr i64 {base} to ptr"));
        match offset as i64 {
            0 => base,
            offset => self.text.value(format!("getelementptr i8, ptr {base}, i64 {offset}")),
        }
    }

    /// A store; `false`: not of a kind that is known here.
    pub(super) fn store(&mut self, address: &Address, element: Element, src: &[Reg], op: &Op, pc: Pc) -> bool {
        let Some(moved) = Moved::of(element, src.len(), true) else {
            return false;
        };
        if src.iter().any(|reg| reg.width == Width::B128) {
            return false;
        }
        let Some((place, done, _)) = self.way(address, moved, op, pc) else {
            return false;
        };
        self.go_along((address.space, &place), true);
        let own = address.space == Space::Shared;
        self.either(address, moved, place, |this, place| {
            this.store_to(place, element, src, own)
        });
        self.behind(done);
        true
    }

    /// A vector's store of the lanes that run. Where all lanes have memory and nobody else stores meanwhile, as in the block's `own`,
    /// CPUs whose masked stores are slow put back what the other lanes have there.
    fn store_masked(&mut self, (value, pointer): (&str, &str), size: u64, mask: &str, own: bool) {
        let (form, lanes, bits) = (self.form(), self.lanes, size * 8);
        let ty = form.int(bits as u32);
        if own && self.puts_back() {
            let there = self.text.value(format!("load {ty}, ptr {pointer}, align {size}"));
            let value = self.text.select(form, &ty, mask, value, &there);
            self.text
                .line(format!("store {ty} {value}, ptr {pointer}, align {size}"));
            return;
        }
        self.text.line(format!(
            "call void @llvm.masked.store.v{lanes}i{bits}.p0({ty} {value}, ptr {pointer}, i32 {size}, {} {mask})",
            form.int(1)
        ));
    }

    /// Whether masked stores to the block's own memory put back what lanes that do not run have there. AVX-512 has quick ones; others'
    /// take a dozen cycles, and what they have stored is not forwarded to loads.
    fn puts_back(&self) -> bool {
        self.lanes < 16
    }

    /// Stores to a place that is known to be right; in the block's `own` memory, which one thread of the host has to itself.
    fn store_to(&mut self, place: &Place, element: Element, src: &[Reg], own: bool) {
        let bytes = u64::from(element.bytes) * src.len() as u64;
        let bits = u32::from(element.bytes) * 8;
        let size = u64::from(element.bytes);
        let form = self.form();
        let ty = form.int(bits);
        let lanes = u64::from(self.lanes);
        let values: Vec<Vec<String>> = src
            .iter()
            .map(|&reg| {
                let from = bits_of(reg.width).unwrap_or(32);
                self.lanes_of(reg, false)
                    .iter()
                    .map(|value| self.text.resize(form, from, value, bits, false))
                    .collect()
            })
            .collect();
        match place {
            Place::Rows { at, whole } => {
                let mask = self.mask.clone();
                for (part, base) in at.iter().enumerate() {
                    let (pointer, value) = (self.pointer(base, 0), &values[0][part]);
                    match &mask {
                        Some(mask) => self.store_masked((value, &pointer), size, &mask[part], own && *whole),
                        None => self
                            .text
                            .line(format!("store {ty} {value}, ptr {pointer}, align {size}")),
                    }
                }
            }
            Place::Lines { at, step: 0, .. } => {
                // The last lane's stays.
                for (number, base) in at.iter().enumerate() {
                    let part = (number + 1) * self.parts / at.len() - 1;
                    for (k, values) in values.iter().enumerate() {
                        let last = self
                            .text
                            .value(format!("extractelement {ty} {}, i64 {}", values[part], lanes - 1));
                        let pointer = self.pointer(base, k as u64 * size);
                        self.text
                            .line(format!("store i{bits} {last}, ptr {pointer}, align {size}"));
                    }
                }
            }
            Place::Lines { at, step, .. } if *step != bytes => {
                let count = src.len() as u64;
                let moved = Moved {
                    size,
                    count,
                    stores: true,
                };
                match self.lanes {
                    16 => self.store_stride(at, (moved, *step), &values),
                    _ => self.store_apart(at, (moved, *step), &values),
                }
            }
            Place::Butterflies { at, places } => self.store_butterflies(at, places, &values[0]),
            Place::Near { .. } => unreachable!("loads alone have such places"),
            Place::Lines { at, .. } => {
                let mask = self.mask.clone();
                for part in 0..self.parts {
                    let (base, offset) = self.first_of(at, part, bytes);
                    let pointer = self.pointer(&base, offset);
                    if let Some(mask) = &mask {
                        self.store_masked((&values[0][part], &pointer), size, &mask[part], own);
                        continue;
                    }
                    let these: Vec<String> = values.iter().map(|values| values[part].clone()).collect();
                    if self.is_matrix(bits, these.len() as u64) {
                        self.store_matrix(&base, (offset, bytes), these);
                        continue;
                    }
                    let whole = self.interleave(&these, bits);
                    let count = lanes * these.len() as u64;
                    self.text.line(format!(
                        "store <{count} x i{bits}> {whole}, ptr {pointer}, align {size}"
                    ));
                }
            }
            Place::Lanes(spread) if self.is_each(src.len()) => self.store_each(spread, size, &values[0]),
            Place::Lanes(spread) => {
                let mut at = self.pointers(spread);
                let mut mask = self.mask.clone();
                if self.lanes < 16
                    && let Some(mask) = mask.take()
                {
                    let nowhere = self.nowhere();
                    let nowhere = self.text.value(format!("inttoptr i64 {nowhere} to ptr"));
                    let nowhere = self.splat("ptr", &nowhere);
                    let ty = format!("<{lanes} x ptr>");
                    at = at
                        .iter()
                        .zip(&mask)
                        .map(|(at, mask)| self.text.select(form, &ty, mask, at, &nowhere))
                        .collect();
                }
                let ones = form.constant(1, 1);
                for (k, values) in values.iter().enumerate() {
                    for (part, value) in values.iter().enumerate() {
                        let to = self.further(&at[part], k as u64 * size);
                        let mask = mask.as_ref().map_or(&ones, |mask| &mask[part]);
                        self.text.line(format!(
                            "call void @llvm.masked.scatter.v{lanes}i{bits}.v{lanes}p0({ty} {value}, <{lanes} x ptr> {to}, i32 {size}, <{lanes} x i1> {mask})"
                        ));
                    }
                }
            }
        }
    }

    /// An access of single words, each lane at an address of its own, is one of vectors if those turn out to follow each other,
    /// or to lie near each other.
    fn either(&mut self, address: &Address, moved: Moved, place: Place, mut access: impl FnMut(&mut Self, &Place)) {
        let bytes = moved.bytes();
        // Lines that come here are known not to do so.
        let may = address.register.is_some_and(|reg| !self.kind(reg.number).is_line());
        let Place::Lanes(spread) = &place else {
            access(self, &place);
            return;
        };
        let Spread {
            base,
            distances,
            bits,
            scale,
            end,
        } = spread;
        // Vectors of four have no masks.
        if !may
            || moved.count != 1
            || !matches!(bytes, 4 | 8)
            || !bytes.is_multiple_of(*scale)
            || address.space == Space::Local
            || self.lanes < 8
        {
            access(self, &place);
            return;
        }
        let ty = self.form().int(*bits);
        let firsts: Vec<String> = distances
            .iter()
            .map(|distance| self.text.value(format!("extractelement {ty} {distance}, i64 0")))
            .collect();
        let (mut elsewhere, mut rows, mut whole) = (Vec::new(), Vec::new(), false);
        for (part, distance) in distances.iter().enumerate() {
            let expected = self.row(*bits, &firsts[part], bytes / scale);
            elsewhere.push(self.text.value(format!("icmp ne {ty} {distance}, {expected}")));
            rows.push(expected);
        }
        if let Some(mask) = self.mask.clone() {
            elsewhere = self.each(&elsewhere, &mask, "and");
            if let Some(end) = end
                && moved.stores
                && address.space == Space::Shared
                && self.puts_back()
            {
                whole = true;
                let rooms = self.rooms(end, bytes);
                let outside: Vec<String> = rows
                    .iter()
                    .map(|row| self.text.value(format!("icmp uge {ty} {row}, {rooms}")))
                    .collect();
                elsewhere = self.each(&elsewhere, &outside, "or");
            }
        }
        let at = firsts
            .iter()
            .map(|first| {
                // The first lane may be one that does not run, and lie before a window.
                let first = self.text.resize(Form::One, *bits, first, 64, true);
                let first = self.text.value(format!("mul i64 {first}, {scale}"));
                self.text.value(format!("add i64 {base}, {first}"))
            })
            .collect();
        let any = self.any(&elsewhere);
        let [apart, row, met] = ["apart", "row", "met"].map(|what| self.text.name(what));
        self.branch(&any, &apart, &row);
        self.text.label(&row);
        access(self, &Place::Rows { at, whole });
        self.jump(&met);
        self.text.label(&apart);
        if let Some(end) = end
            && self.lanes == 16
            && bytes == 4
            && matches!(*scale, 1 | 4)
        {
            let lanes = (&base[..], &distances[..], *bits, *scale);
            let (near, any) = match moved.stores {
                false => self.windows(lanes, &firsts, end),
                true => self.butterflies(lanes, &firsts),
            };
            let [far, close] = ["far", "close"].map(|what| self.text.name(what));
            self.branch(&any, &far, &close);
            self.text.label(&close);
            access(self, &near);
            self.jump(&met);
            self.text.label(&far);
        }
        access(self, &place);
        self.jump(&met);
        self.text.label(&met);
    }

    /// Elements of vectors one after the other: the first of each, the second of each, and so on.
    fn interleave(&mut self, values: &[String], bits: u32) -> String {
        let lanes = self.lanes as usize;
        let mut joined: Vec<String> = values.to_vec();
        let mut length = lanes;
        // Side by side, two at a time.
        while joined.len() > 1 {
            let ty = format!("<{length} x i{bits}>");
            let order: Vec<String> = (0..2 * length).map(|at| format!("i32 {at}")).collect();
            let order = order.join(", ");
            joined = joined
                .chunks(2)
                .map(|pair| {
                    let second = pair.get(1).map_or("poison", String::as_str);
                    self.text.value(format!(
                        "shufflevector {ty} {}, {ty} {second}, <{} x i32> <{order}>",
                        pair[0],
                        2 * length
                    ))
                })
                .collect();
            length *= 2;
        }
        if values.len() == 1 {
            return joined[0].clone();
        }
        let ty = format!("<{length} x i{bits}>");
        let order: Vec<String> = (0..lanes)
            .flat_map(|lane| (0..values.len()).map(move |k| format!("i32 {}", k * lanes + lane)))
            .collect();
        self.text.value(format!(
            "shufflevector {ty} {}, {ty} poison, <{length} x i32> <{}>",
            joined[0],
            order.join(", ")
        ))
    }

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
                // Masked stores are of single words.
                let whole = step != 0 && moved.count == 1 && (4..=8).contains(&bytes);
                let masked_store = moved.stores && self.mask.is_some() && !whole;
                Some((simple && !masked_store && address.space != Space::Local).then_some(step))
            }
            Kind::Vector => Some(None),
            Kind::Unknown | Kind::Window => None,
        }
    }

    /// Forms the addresses of an access, and finds out whether all is well with them. `None`: for the interpreter.
    fn locate(&mut self, address: &Address, moved: Moved) -> Option<Located> {
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

    fn lanes_of_bases(&self, bases: usize) -> u64 {
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
        let extents = self.field(offset_of!(Context, extents), "ptr", true);
        let at = self.place(&extents, site * size_of::<Extent>());
        let low = self.text.value(format!("load i64, ptr {at}"));
        let at = self.place(&at, offset_of!(Extent, room));
        let room = self.text.value(format!("load i64, ptr {at}"));
        (site, low, room)
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
    fn rooms(&mut self, window: &str, bytes: u64) -> String {
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

/// Rows that lie at known distances from each other, not far.
pub(super) struct Near {
    /// Which of them begins first.
    pub(super) least: usize,
    /// How far each is behind that one.
    pub(super) behind: Vec<u64>,
    /// How far the last one is.
    pub(super) span: u64,
}

impl Near {
    /// `begins`: distances from one of them.
    fn of(begins: Vec<i64>) -> Option<Near> {
        let (least, &first) = begins.iter().enumerate().min_by_key(|(_, begin)| **begin)?;
        let behind: Vec<u64> = begins.iter().map(|begin| begin.abs_diff(first)).collect();
        let span = behind.iter().copied().max()?;
        (span <= FAR).then_some(Near { least, behind, span })
    }
}

/// Whether an address is of 32 bits.
fn is_narrow(address: &Address) -> bool {
    address.register.is_some_and(|reg| reg.width == Width::B32)
}
