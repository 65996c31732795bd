//! Loads and stores: where lanes find memory in a simple pattern, and it is certain that they may, LLVM's own accesses;
//! else the interpreter's ([`Emit::step`]), which checks each address and reports what is wrong.
//!
//! What is certain: an instruction remembers among which addresses it was the last time, and windows have their length
//! (`locate.rs`).

use crate::isa::lanes::Width;
use crate::program::{Address, Element, Op, Reg, Space};

use super::super::Pc;
use super::super::compute::bits_of;
use super::super::text::Form;
use super::place::{Member, Moved, Place, Spread};
use super::{Emit, LANES};

/// Where an access goes, the label behind it, if there are other ways there, and an address that may be read.
type Way = (Place, Option<String>, String);

/// An element of what was loaded.
pub(super) enum Loaded {
    /// The same for all lanes, or for those of a part.
    Same(Vec<String>),
    /// A vector a part.
    Lanes(Vec<String>),
}

impl Loaded {
    fn map(&self, what: impl FnMut(&String) -> String) -> Loaded {
        match self {
            Loaded::Same(values) => Loaded::Same(values.iter().map(what).collect()),
            Loaded::Lanes(values) => Loaded::Lanes(values.iter().map(what).collect()),
        }
    }
    fn into_values(self) -> Vec<String> {
        match self {
            Loaded::Same(values) | Loaded::Lanes(values) => values,
        }
    }
}

impl Emit<'_> {
    /// A load; `false`: not of a kind that is known here.
    pub(super) fn load(&mut self, address: &Address, element: Element, dst: &[Option<Reg>], op: &Op, pc: Pc) -> bool {
        let Some(moved) = Moved::of(element, dst.len(), false) else {
            return false;
        };
        if dst.iter().flatten().any(|reg| reg.width == Width::B128) {
            return false;
        }
        if let (Some(values), &[Some(reg)]) = (self.load_together(address, pc), dst) {
            let (form, from) = (self.form(), u32::from(element.bytes) * 8);
            let to = bits_of(reg.width).unwrap_or(32);
            let values: Vec<String> = values
                .iter()
                .map(|value| self.text.resize(form, from, value, to, element.signed))
                .collect();
            self.write_lanes(reg, &values);
            return true;
        }
        let Some((place, done, safe)) = self.way(address, moved, op, pc) else {
            return false;
        };
        self.go_along((address.space, address.register), &place, false);
        let wanted: Vec<bool> = dst.iter().map(Option::is_some).collect();
        self.either(address, moved, place, |this, place| {
            let loaded = this.load_from((address, place), moved.size, &wanted, &safe);
            this.write_loaded(loaded, element, dst);
        });
        self.behind(done);
        true
    }

    /// A load of several elements as one: of pixels and the like, and of two words that nobody may see half of. `false`: not of a kind that is
    /// known here.
    pub(super) fn load_packed(
        &mut self,
        address: &Address,
        element: Element,
        dst: &[Option<Reg>],
        op: &Op,
        pc: Pc,
    ) -> bool {
        let Some(packed) = Moved::packed(element, dst.len(), false) else {
            return false;
        };
        let Some((place, done, safe)) = self.way(address, packed, op, pc) else {
            return false;
        };
        self.go_along((address.space, address.register), &place, false);
        let (all, bits) = (packed.size as u32 * 8, u32::from(element.bytes) * 8);
        self.either(address, packed, place, |this, place| {
            let loaded = this.load_from((address, place), packed.size, &[true], &safe);
            let [loaded] = &loaded[..] else {
                unreachable!("one element is wanted")
            };
            let parts = (0..dst.len() as u32).map(|number| this.part_of(loaded, all, (number, bits)));
            let parts = parts.collect();
            this.write_loaded(parts, element, dst);
        });
        self.behind(done);
        true
    }

    /// Elements of so many bits, the lowest one first, out of larger ones that were loaded as one.
    fn part_of(&mut self, loaded: &Loaded, all: u32, (number, bits): (u32, u32)) -> Loaded {
        let form = match loaded {
            Loaded::Same(_) => Form::One,
            Loaded::Lanes(_) => self.form(),
        };
        loaded.map(|value| {
            let mut value = value.to_owned();
            if number > 0 {
                let by = form.constant(all, u64::from(number * bits));
                value = self.text.binary("lshr", &form.int(all), &value, &by);
            }
            self.text.resize(form, all, &value, bits, false)
        })
    }

    /// What was loaded goes to registers, of which some may be missing.
    pub(super) fn write_loaded(&mut self, loaded: Vec<Loaded>, element: Element, dst: &[Option<Reg>]) {
        let bits = u32::from(element.bytes) * 8;
        for (loaded, reg) in loaded.iter().zip(dst) {
            let Some(reg) = *reg else { continue };
            let to = bits_of(reg.width).unwrap_or(32);
            let form = match loaded {
                Loaded::Same(_) => Form::One,
                Loaded::Lanes(_) => self.form(),
            };
            let wide = loaded.map(|value| self.text.resize(form, bits, value, to, element.signed));
            match &wide {
                Loaded::Same(values) => self.write_same(reg, values),
                Loaded::Lanes(values) => self.write_lanes(reg, values),
            }
        }
    }

    /// Loads elements of so many bytes from a place that is known to be right; `safe` may be read in any case. What is not wanted may come out as
    /// nothing.
    pub(super) fn load_from(
        &mut self,
        (address, place): (&Address, &Place),
        size: u64,
        wanted: &[bool],
        safe: &str,
    ) -> Vec<Loaded> {
        let count = wanted.len() as u64;
        let (bytes, bits) = (size * count, size as u32 * 8);
        let by_lanes = |loaded: Vec<Vec<String>>| loaded.into_iter().map(Loaded::Lanes).collect();
        match place {
            Place::Rows { at, .. } => vec![Loaded::Lanes(self.load_rows(at, 0, size))],
            Place::Lines { at, step: 0, .. } => (0..count)
                .map(|k| {
                    let values = at.iter().map(|base| {
                        let pointer = self.pointer(base, k * size);
                        self.text.value(format!("load i{bits}, ptr {pointer}, align {size}"))
                    });
                    Loaded::Same(values.collect())
                })
                .collect(),
            Place::Lines { at, step, around } if *step != bytes => {
                let moved = Moved {
                    size,
                    count,
                    stores: false,
                };
                let by_vectors = self.is_stride(moved, *step, self.lanes_of_bases(at.len()));
                by_lanes(match by_vectors && !self.is_matrix(bits, count) {
                    true => self.load_stride(at, (moved, *step), *around),
                    false => self.load_apart(at, (moved, *step)),
                })
            }
            Place::Near { at, words } => vec![Loaded::Lanes(self.load_near(at, words))],
            Place::Butterflies { .. } => unreachable!("stores alone have such places"),
            Place::Lines { at, .. } => {
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
                let mut element = |k: u64| -> Vec<String> {
                    all.iter()
                        .map(|values| match &values[..] {
                            [value] if count > 1 => {
                                let picks: Vec<String> =
                                    (0..lanes).map(|lane| format!("i32 {}", lane * count + k)).collect();
                                self.text.value(format!(
                                    "shufflevector {ty} {value}, {ty} poison, <{lanes} x i32> <{}>",
                                    picks.join(", ")
                                ))
                            }
                            [value] => value.clone(),
                            each => each[k as usize].clone(),
                        })
                        .collect()
                };
                by_lanes((0..count).map(&mut element).collect())
            }
            Place::Lanes(spread) if self.is_each(wanted.len()) => vec![Loaded::Lanes(self.load_each(spread, size))],
            Place::Lanes(spread) if self.is_words(size, wanted.len()) => {
                by_lanes(self.load_words(address, spread, (size, count)))
            }
            Place::Lanes(spread) => by_lanes(self.gather_elements(spread, (size, wanted), safe)),
        }
    }

    /// Elements of lanes wherever they are, by gathers; of those that are not wanted, no vectors.
    fn gather_elements(&mut self, spread: &Spread, (size, wanted): (u64, &[bool]), safe: &str) -> Vec<Vec<String>> {
        let (form, bits) = (self.form(), size as u32 * 8);
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
                .map(|(at, mask)| self.text.select(form, &ty, mask, at, &safe))
                .collect();
        }
        // Two words at a time.
        let pairs = bits == 32 && wanted.len().is_multiple_of(2);
        let mut elements = Vec::new();
        for (number, some) in wanted.chunks(1 + usize::from(pairs)).enumerate() {
            let offset = (number * some.len()) as u64 * size;
            match some {
                [false] => elements.push(Vec::new()),
                [_] => elements.push(self.gather(&at, (offset, bits, size), mask.as_deref())),
                _ => {
                    let both = Loaded::Lanes(self.gather(&at, (offset, 64, size), mask.as_deref()));
                    for number in [0, 1] {
                        elements.push(self.part_of(&both, 64, (number, 32)).into_values());
                    }
                }
            }
        }
        elements
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
    fn go_along(&mut self, (space, register): (Space, Option<Reg>), place: &Place, stores: bool) {
        if space != Space::Shared
            && let Place::Lines {
                at,
                step: step @ 1..=16,
                ..
            } = place
        {
            let bytes = step * u64::from(LANES) / at.len() as u64;
            match &at[..] {
                [one] if self.is_streaming() => self.fetch_ahead(one, bytes, stores),
                [_] | [_, _] if self.fetches_for_next(register) => {
                    for one in at {
                        self.fetch_for_next(one, bytes, stores);
                    }
                }
                _ => {}
            }
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
        self.go_along((address.space, address.register), &place, true);
        let own = address.space == Space::Shared;
        // One number for all lanes, whichever of them run.
        if let (Place::Lines { at, step: 0, .. }, true) = (&place, self.mask.is_some())
            && let [base] = &at[..]
            && src.iter().all(|reg| self.kind(reg.number).is_same())
        {
            let base = self.unless_nobody(base);
            for (k, &reg) in (0..).zip(src) {
                let (from, bits) = (bits_of(reg.width).unwrap_or(32), u32::from(element.bytes) * 8);
                let value = self.line_of(reg, false).0.swap_remove(0);
                let value = self.text.resize(Form::One, from, &value, bits, false);
                self.store_one(&base, (k, moved.size), &value);
            }
            self.behind(done);
            return true;
        }
        self.either(address, moved, place, |this, place| {
            let values: Vec<Vec<String>> = src.iter().map(|&reg| this.stored(reg, element)).collect();
            this.store_to(place, moved.size, &values, own);
        });
        self.behind(done);
        true
    }

    /// A store of several elements as one, as [`Emit::load_packed`] loads them.
    pub(super) fn store_packed(&mut self, address: &Address, element: Element, src: &[Reg], op: &Op, pc: Pc) -> bool {
        let Some(packed) = Moved::packed(element, src.len(), true) else {
            return false;
        };
        let Some((place, done, _)) = self.way(address, packed, op, pc) else {
            return false;
        };
        self.go_along((address.space, address.register), &place, true);
        let own = address.space == Space::Shared;
        let (all, bits) = (packed.size as u32 * 8, u32::from(element.bytes) * 8);
        self.either(address, packed, place, |this, place| {
            let (form, ty) = (this.form(), this.form().int(all));
            let mut whole: Vec<String> = Vec::new();
            for (number, &reg) in (0..).zip(src) {
                let parts = this.stored(reg, element);
                let by = form.constant(all, u64::from(number * bits));
                let parts = parts.iter().map(|part| {
                    let part = this.text.resize(form, bits, part, all, false);
                    this.text.binary("shl", &ty, &part, &by)
                });
                let parts: Vec<String> = parts.collect();
                whole = match number {
                    0 => parts,
                    _ => this.each_of(&whole, &parts, &ty),
                };
            }
            this.store_to(place, packed.size, &[whole], own);
        });
        self.behind(done);
        true
    }

    /// Each of both, joined.
    fn each_of(&mut self, a: &[String], b: &[String], ty: &str) -> Vec<String> {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| self.text.binary("or", ty, a, b)).collect()
    }

    /// What a register has for an element in memory.
    fn stored(&mut self, reg: Reg, element: Element) -> Vec<String> {
        let (from, bits) = (bits_of(reg.width).unwrap_or(32), u32::from(element.bytes) * 8);
        let form = self.form();
        let values = self.lanes_of(reg, false);
        values
            .iter()
            .map(|value| self.text.resize(form, from, value, bits, false))
            .collect()
    }

    /// A vector's store of the lanes that run. Where all lanes have memory and nobody else stores meanwhile, as in the block's `own`, what
    /// the other lanes have there is put back. Masked stores take a dozen cycles before AVX-512, and with it where they go beyond a line of
    /// the CPU's caches (AMD Zen 5); nowhere is what they have stored forwarded to loads.
    pub(super) fn store_masked(&mut self, (value, pointer): (&str, &str), size: u64, mask: &str, own: bool) {
        let (form, lanes, bits) = (self.form(), self.lanes, size * 8);
        let ty = form.int(bits as u32);
        if own {
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

    /// Stores to a place that is known to be right; in the block's `own` memory, which one thread of the host has to itself.
    fn store_to(&mut self, place: &Place, size: u64, values: &[Vec<String>], own: bool) {
        let count = values.len() as u64;
        let (bytes, bits) = (size * count, size as u32 * 8);
        let form = self.form();
        let ty = form.int(bits);
        let lanes = u64::from(self.lanes);
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
            Place::Lines { at, step: 0, .. } if self.mask.is_some() => {
                let [base] = &at[..] else {
                    unreachable!("lanes that do not all run store to one place")
                };
                self.store_last(base, size, values);
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
                let moved = Moved {
                    size,
                    count,
                    stores: true,
                };
                match self.lanes {
                    16 => self.store_stride(at, (moved, *step), values, own),
                    _ => self.store_apart(at, (moved, *step), values),
                }
            }
            Place::Butterflies { at, places } => self.store_butterflies(at, places, &values[0], own),
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
            Place::Lanes(spread) if self.lanes < 16 && self.is_each(values.len()) => {
                self.store_each(spread, size, &values[0])
            }
            Place::Lanes(spread) if self.is_words(size, values.len()) => self.store_words(spread, size, values),
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

    /// An address to which lanes store if any of them runs, or one that nobody reads.
    fn unless_nobody(&mut self, base: &str) -> String {
        let run = self.mask_bits();
        let any = self.text.value(format!("icmp ne i32 {run}, 0"));
        let nowhere = self.nowhere();
        self.text.value(format!("select i1 {any}, i64 {base}, i64 {nowhere}"))
    }

    /// Stores one element of several.
    fn store_one(&mut self, base: &str, (number, size): (u64, u64), value: &str) {
        let pointer = self.pointer(base, number * size);
        self.text
            .line(format!("store i{} {value}, ptr {pointer}, align {size}", size * 8));
    }

    /// All lanes that run store to one place, if any does: what the last of them has stays.
    fn store_last(&mut self, base: &str, size: u64, values: &[Vec<String>]) {
        let base = self.unless_nobody(base);
        let (lanes, ty) = (self.lanes, self.form().int(size as u32 * 8));
        let run = self.mask_bits();
        let before = self.text.value(format!("call i32 @llvm.ctlz.i32(i32 {run}, i1 false)"));
        let last = self.text.value(format!("sub i32 31, {before}"));
        let lane = self.text.value(format!("and i32 {last}, {}", lanes - 1));
        let part = self.text.value(format!("lshr i32 {last}, {}", lanes.trailing_zeros()));
        for (k, values) in (0..).zip(values) {
            let mut vector = values[0].clone();
            for (number, value) in values.iter().enumerate().skip(1) {
                let here = self.text.value(format!("icmp eq i32 {part}, {number}"));
                vector = self
                    .text
                    .value(format!("select i1 {here}, {ty} {value}, {ty} {vector}"));
            }
            let value = self.text.value(format!("extractelement {ty} {vector}, i32 {lane}"));
            self.store_one(&base, (k, size), &value);
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
            || !(matches!(bytes, 4 | 8) || matches!(bytes, 1 | 2) && self.lanes == 16)
            || !bytes.is_multiple_of(*scale)
            || address.space == Space::Local
            || self.lanes < 8
        {
            access(self, &place);
            return;
        }
        let firsts = self.firsts(spread);
        let (rows, mut elsewhere) = self.off_rows(spread, &firsts, bytes);
        let mut whole = false;
        if let Some(end) = end
            && moved.stores
            && self.mask.is_some()
            && address.space == Space::Shared
        {
            whole = true;
            let (ty, rooms) = (self.form().int(*bits), self.rooms(end, bytes));
            let outside: Vec<String> = rows
                .iter()
                .map(|row| self.text.value(format!("icmp uge {ty} {row}, {rooms}")))
                .collect();
            elsewhere = self.each(&elsewhere, &outside, "or");
        }
        let at = self.starts_of_rows(spread, &firsts);
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
                true => self.butterflies(lanes, &firsts, (address.space == Space::Shared).then_some(end)),
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

    /// The first lane's distance, by part.
    pub(super) fn firsts(&mut self, spread: &Spread) -> Vec<String> {
        let ty = self.form().int(spread.bits);
        let each = spread.distances.iter();
        each.map(|distance| self.text.value(format!("extractelement {ty} {distance}, i64 0")))
            .collect()
    }

    /// Distances of lanes that follow the first one by so many bytes each, and which of those that run are elsewhere.
    pub(super) fn off_rows(&mut self, spread: &Spread, firsts: &[String], bytes: u64) -> (Vec<String>, Vec<String>) {
        let ty = self.form().int(spread.bits);
        let (mut rows, mut elsewhere) = (Vec::new(), Vec::new());
        for (distance, first) in spread.distances.iter().zip(firsts) {
            let expected = self.row(spread.bits, first, bytes / spread.scale);
            elsewhere.push(self.text.value(format!("icmp ne {ty} {distance}, {expected}")));
            rows.push(expected);
        }
        if let Some(mask) = self.mask.clone() {
            elsewhere = self.each(&elsewhere, &mask, "and");
        }
        (rows, elsewhere)
    }

    /// Addresses of the first lanes, which may be some that do not run, and lie before a window.
    pub(super) fn starts_of_rows(&mut self, spread: &Spread, firsts: &[String]) -> Vec<String> {
        let each = firsts.iter();
        each.map(|first| {
            let first = self.text.resize(Form::One, spread.bits, first, 64, true);
            let first = self.text.value(format!("mul i64 {first}, {}", spread.scale));
            self.text.value(format!("add i64 {}, {first}", spread.base))
        })
        .collect()
    }

    /// Loads the elements of so many bytes of the lanes that run from rows, so far behind where they begin: a vector a part.
    pub(super) fn load_rows(&mut self, at: &[String], offset: u64, size: u64) -> Vec<String> {
        let (ty, mask, bits) = (self.form().int(size as u32 * 8), self.mask.clone(), size * 8);
        let each = at.iter().enumerate();
        each.map(|(part, base)| {
            let pointer = self.pointer(base, offset);
            self.text.value(match &mask {
                Some(mask) => format!(
                    "call {ty} @llvm.masked.load.v{}i{bits}.p0(ptr {pointer}, i32 {size}, {} {}, {ty} zeroinitializer)",
                    self.lanes,
                    self.form().int(1),
                    mask[part]
                ),
                None => format!("load {ty}, ptr {pointer}, align {size}"),
            })
        })
        .collect()
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
}
