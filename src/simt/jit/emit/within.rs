//! Whether accesses stay in the object from whose address theirs was made ([`Op::Within`]): one comparison for a line, one a part
//! for lanes. What does not pass, the interpreter looks at ([`Emit::step`]), which reports.
//!
//! All accesses of one check stay where the register's value is one of those in a range, which follows from the object. The
//! allocation into which a pointer points is what the check found the last time: two extents beside each other, one of the
//! allocation, one whose `low` is the pointer.

use std::mem::offset_of;

use crate::isa::lanes::Width;
use crate::program::{MadeFrom, Op, Reg, Space, Within};

use super::super::Pc;
use super::super::compute::bits_of;
use super::super::context::{Context, Extent};
use super::super::plan::Kind;
use super::super::text::Form;
use super::{Emit, LANES};

/// Where the register's value, that of the first of the lanes that are looked at, may be.
struct Range {
    /// Bits that count.
    bits: u32,
    least: String,
    /// How many values there are from the least on.
    room: String,
    /// The least is by so much greater for each lane.
    by_lane: Option<String>,
    /// The value must be in none of these, instead.
    outside: bool,
    /// The range is that of another pointer, or not known.
    stale: Option<String>,
    site: Option<usize>,
}

impl Emit<'_> {
    pub(super) fn within(&mut self, within: &Within, op: &Op, pc: Pc) {
        let Some((bad, site)) = self.strays(within) else {
            self.step(op, pc, None);
            return;
        };
        self.step_if(&bad, op, pc, site);
    }

    /// Whether a lane may leave the object, and where that is looked up. `None`: this is not found out here.
    fn strays(&mut self, within: &Within) -> Option<(String, Option<usize>)> {
        let (low, high) = within.span()?;
        let register = within.register;
        let is_line = match self.kind(register.number) {
            Kind::Line { .. } => true,
            Kind::Vector => false,
            Kind::Unknown | Kind::Window => return None,
        };
        // What lanes have as their own is compared lane by lane.
        let own = matches!(within.from, MadeFrom::Frame { .. }) && within.space == Space::Generic;
        if !is_line || own {
            let range = self.range(within, low, high.checked_sub(low)? as u64)?;
            let values = self.lanes_of(register, false);
            return self.lanes_stray(register, &values, range);
        }
        let (bases, step) = self.line_of(register, false);
        // From the first lane of a line to its last.
        let lanes = i64::from(LANES) / bases.len() as i64;
        let step = match register.width {
            Width::B32 => i64::from(step as u32 as i32),
            _ => step as i64,
        };
        let far = step.checked_mul(lanes - 1)?;
        let (low, high) = (low.checked_add(far.min(0))?, high.checked_add(far.max(0))?);
        let range = self.range(within, low, high.checked_sub(low)? as u64)?;
        let from = bits_of(register.width)?;
        let mut bad = range.stale.clone();
        for base in bases {
            let base = self.text.resize(Form::One, from, &base, range.bits, false);
            let ty = format!("i{}", range.bits);
            let distance = self.text.binary("sub", &ty, &base, &range.least);
            let compare = if range.outside { "icmp ult" } else { "icmp uge" };
            let this = self.text.binary(compare, &ty, &distance, &range.room);
            bad = self.or(bad, this);
        }
        Some((bad?, range.site))
    }

    fn lanes_stray(&mut self, register: Reg, values: &[String], range: Range) -> Option<(String, Option<usize>)> {
        let form = self.form();
        let (bits, from) = (range.bits, bits_of(register.width)?);
        let (element, ty) = (format!("i{bits}"), form.int(bits));
        let (least, room) = (self.splat(&element, &range.least), self.splat(&element, &range.room));
        let strides = range.by_lane.as_ref().map(|by| self.splat(&element, by));
        let mask = self.mask.clone();
        let mut all = Vec::with_capacity(values.len());
        for (part, value) in values.iter().enumerate() {
            let value = self.text.resize(form, from, value, bits, false);
            let mut distance = self.text.binary("sub", &ty, &value, &least);
            if let Some(strides) = &strides {
                let numbers: Vec<String> = (0..self.lanes)
                    .map(|lane| format!("{element} {}", part as u32 * self.lanes + lane))
                    .collect();
                let numbers = format!("<{}>", numbers.join(", "));
                let further = self.text.binary("mul", &ty, strides, &numbers);
                distance = self.text.binary("sub", &ty, &distance, &further);
            }
            let compare = if range.outside { "icmp ult" } else { "icmp uge" };
            let mut this = self.text.binary(compare, &ty, &distance, &room);
            if let Some(mask) = &mask {
                this = self.text.logic("and", form, &this, &mask[part]);
            }
            all.push(this);
        }
        let bad = self.any(&all);
        let bad = self.or(range.stale, bad)?;
        Some((bad, range.site))
    }

    /// Where the register's value may be for accesses that reach `extent` bytes from `low` bytes behind it on.
    fn range(&mut self, within: &Within, low: i64, extent: u64) -> Option<Range> {
        let is_wide = within.register.width == Width::B64;
        let range = |bits: u32, least: String, room: String| Range {
            bits,
            least,
            room,
            by_lane: None,
            outside: false,
            stale: None,
            site: None,
        };
        // Of an object whose bytes are known.
        let room = |bytes: u64, bits| Form::One.constant(bits, (bytes + 1).saturating_sub(extent));
        match (within.from, within.space) {
            (MadeFrom::Pointer { base, .. }, Space::Generic | Space::Global | Space::Const) if is_wide => {
                if !self.kind(base.number).is_same() {
                    return None;
                }
                let site = self.sites.len();
                self.sites.extend([extent, 0]);
                let extents = self.field(offset_of!(Context, extents), "ptr", true);
                let at = self.place(&extents, site * size_of::<Extent>());
                let start = self.text.value(format!("load i64, ptr {at}"));
                let least = self.text.value(format!("sub i64 {start}, {low}"));
                let at_room = self.place(&at, offset_of!(Extent, room));
                let room = self.text.value(format!("load i64, ptr {at_room}"));
                let stale = self.input.body.constant(base.number).is_none().then(|| {
                    let (values, _) = self.line_of(base, false);
                    let at = self.place(&at, size_of::<Extent>() + offset_of!(Extent, low));
                    let known = self.text.value(format!("load i64, ptr {at}"));
                    self.text.value(format!("icmp ne i64 {}, {known}", values[0]))
                });
                Some(Range {
                    stale,
                    site: Some(site),
                    ..range(64, least, room)
                })
            }
            (MadeFrom::Shared { base, bytes }, Space::Shared | Space::Generic) => {
                if !self.kind(base.number).is_same() {
                    return None;
                }
                let (values, _) = self.line_of(base, false);
                let base = self.text.resize(Form::One, bits_of(base.width)?, &values[0], 32, false);
                let start = self.field(offset_of!(Context, shared_start), "i64", true);
                let start = self.text.value(format!("trunc i64 {start} to i32"));
                let offset = self.text.value(format!("sub i32 {base}, {start}"));
                let offset = self.text.value(format!("zext i32 {offset} to i64"));
                let room = match bytes {
                    Some(bytes) => room(bytes.into(), 64),
                    None => {
                        let all = self.field(offset_of!(Context, shared_bytes), "i64", true);
                        let rest = self.text.value(format!("sub i64 {all}, {offset}"));
                        let room = self.text.value(format!("sub i64 {rest}, {}", extent as i64 - 1));
                        self.text.value(format!("call i64 @llvm.smax.i64(i64 {room}, i64 0)"))
                    }
                };
                if within.space == Space::Shared {
                    let least = self.text.value(format!("sub i32 {base}, {}", low as i32));
                    let room = self.text.value(format!("trunc i64 {room} to i32"));
                    return Some(range(32, least, room));
                }
                let shared = self.field(offset_of!(Context, shared), "i64", true);
                let least = self.text.value(format!("add i64 {shared}, {offset}"));
                let least = self.text.value(format!("sub i64 {least}, {low}"));
                is_wide.then(|| range(64, least, room))
            }
            (MadeFrom::Frame { offset, bytes }, Space::Local) => {
                let frame = self.field(offset_of!(Context, frame), "i64", true);
                let least = self.text.value(format!("add i64 {frame}, {}", i64::from(offset) - low));
                let least = self.text.value(format!("trunc i64 {least} to i32"));
                Some(range(32, least, room(bytes.into(), 32)))
            }
            (MadeFrom::Frame { offset, bytes }, Space::Generic) if is_wide => {
                let local = "%local".to_owned();
                let frame = self.field(offset_of!(Context, frame), "i64", true);
                let least = self.text.value(format!("add i64 {local}, {frame}"));
                let least = self.text.value(format!("add i64 {least}, {}", i64::from(offset) - low));
                Some(Range {
                    by_lane: Some(self.field(offset_of!(Context, local_stride), "i64", true)),
                    ..range(64, least, room(bytes.into(), 64))
                })
            }
            (MadeFrom::Parameter { offset, bytes }, Space::Param | Space::Generic) if is_wide => {
                let param = match within.space {
                    Space::Param => "0".to_owned(),
                    _ => self.field(offset_of!(Context, param), "i64", true),
                };
                let least = self.text.value(format!("add i64 {param}, {}", i64::from(offset) - low));
                Some(range(64, least, room(bytes.into(), 64)))
            }
            (MadeFrom::Unknown, Space::Local) => {
                let frame = self.field(offset_of!(Context, frame), "i64", true);
                let end = self.text.value(format!("add i64 {frame}, {}", self.input.local));
                let room = self.text.value(format!("sub i64 {end}, {}", extent as i64 - 1));
                let room = self.text.value(format!("call i64 @llvm.smax.i64(i64 {room}, i64 0)"));
                let room = self.text.value(format!("trunc i64 {room} to i32"));
                Some(range(32, Form::One.constant(32, low.wrapping_neg() as u64), room))
            }
            // The local memory of all threads of the block.
            (MadeFrom::Unknown, Space::Generic) if is_wide => {
                let all = self.field(offset_of!(Context, locals), "i64", true);
                let bytes = self.field(offset_of!(Context, local_bytes), "i64", true);
                let least = self
                    .text
                    .value(format!("sub i64 {all}, {}", low.wrapping_add(extent as i64)));
                let room = self.text.value(format!("add i64 {bytes}, {extent}"));
                Some(Range {
                    outside: true,
                    ..range(64, least, room)
                })
            }
            (
                MadeFrom::Pointer { .. }
                | MadeFrom::Shared { .. }
                | MadeFrom::Frame { .. }
                | MadeFrom::Block { .. }
                | MadeFrom::Parameter { .. }
                | MadeFrom::Unknown,
                _,
            ) => None,
        }
    }
}
