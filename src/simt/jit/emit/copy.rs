//! `cp.async` (PTX ISA, cp.async): code copies at once what is certain to be there, which the ISA allows: nobody may count on the
//! old bytes until the copy has been waited for. The interpreter puts copies off until then; what it has under way for the warp's
//! block ([`Context::copying`]), it completes itself.

use std::mem::offset_of;

use crate::isa::lanes::Width;
use crate::program::{Address, Op, Reg};

use super::super::Pc;
use super::super::context::Context;
use super::Emit;
use super::place::{Located, Moved, Place, Spread};

impl Emit<'_> {
    /// A copy; `false`: not of a kind that is known here.
    pub(super) fn copy_async(&mut self, op: &Op, pc: Pc) -> bool {
        let Op::CopyAsync {
            dst,
            src,
            bytes,
            src_size,
            ignore: None,
        } = op
        else {
            return false;
        };
        let size = u64::from(*bytes);
        let moved = |stores| Moved {
            size: 4,
            count: size / 4,
            stores,
        };
        let (Some(from), Some(to)) = (self.line(src, moved(false)), self.line(dst, moved(true))) else {
            return false;
        };
        let Some((reads, partly)) = self.sizes(*src_size, size) else {
            return false;
        };
        let here = self.mask.clone();
        let follow = here.is_none() && reads.is_none() && (from, to) == (Some(size), Some(size));
        // Lanes that read nothing may have any address there.
        let reads = match (&here, reads) {
            (Some(here), Some(reads)) => Some(self.each(here, &reads, "and")),
            (one, other) => other.or_else(|| one.clone()),
        };
        self.mask = reads.clone();
        let source = self.locate_copied(src, size, follow);
        self.mask = here.clone();
        let target = self.locate_copied(dst, size, follow);
        let (Some(source), Some(target)) = (source, target) else {
            return false;
        };
        let mut bad = self.text.binary("or", "i1", &source.bad, &target.bad);
        if let Some(partly) = partly {
            bad = self.text.binary("or", "i1", &bad, &partly);
        }
        let (slow, fast, done) = (self.text.name("slow"), self.text.name("fast"), self.text.name("done"));
        self.rarely(&bad, &slow, &fast);
        self.text.label(&slow);
        self.step(op, pc, source.site);
        self.jump(&done);
        self.text.label(&fast);
        match (&source.place, &target.place) {
            (Place::Lines { at: from, .. }, Place::Lines { at: to, .. }) => self.copy_rows(from, to, size),
            (Place::Lanes(from), Place::Lanes(to)) => self.copy_each((from, reads), (to, here), size),
            _ => unreachable!("both were asked for in one way"),
        }
        self.behind(Some(done));
        true
    }

    /// Where a copy reads or writes: in rows, if lanes follow each other, else lane by lane.
    fn locate_copied(&mut self, address: &Address, size: u64, follow: bool) -> Option<Located> {
        if !follow {
            return self.locate_lanes(address, size);
        }
        let reach = self.lanes_of_line(address) * size;
        let multiple = self.multiple(address, (size, address.offset));
        self.locate_line(address, (reach, multiple), size)
    }

    /// Which lanes read all that is copied, if not all of them do, and whether any that runs reads a part. Outer `None`: all read a part.
    fn sizes(&mut self, size: Option<Reg>, bytes: u64) -> Option<(Option<Vec<String>>, Option<String>)> {
        let Some(size) = size else {
            return Some((None, None));
        };
        if size.width != Width::B32 {
            return None;
        }
        if let Some(constant) = self.input.body.constant(size.number) {
            return match u64::from(constant as u32) {
                0 => Some((Some(vec![self.form().constant(1, 0); self.parts]), None)),
                size => (size >= bytes).then_some((None, None)),
            };
        }
        let form = self.form();
        let ty = form.int(32);
        let [whole, one, less] = [bytes, 1, bytes - 1].map(|number| form.constant(32, number));
        let (mut reads, mut partly) = (Vec::new(), Vec::new());
        for size in self.lanes_of(size, false) {
            reads.push(self.text.value(format!("icmp uge {ty} {size}, {whole}")));
            let size = self.text.binary("sub", &ty, &size, &one);
            partly.push(self.text.value(format!("icmp ult {ty} {size}, {less}")));
        }
        if let Some(mask) = self.mask.clone() {
            partly = self.each(&partly, &mask, "and");
        }
        let partly = self.any(&partly);
        Some((Some(reads), Some(partly)))
    }

    /// What lies in rows, from one to the other: one address for all lanes, or one a part.
    fn copy_rows(&mut self, from: &[String], to: &[String], size: u64) {
        let row = u64::from(self.lanes) * size;
        let ty = format!("<{} x i32>", row / 4);
        for part in 0..self.parts {
            let [from, to] = [from, to].map(|at| {
                let (base, behind) = self.first_of(at, part, size);
                self.pointer(&base, behind)
            });
            let values = self.text.value(format!("load {ty}, ptr {from}, align {size}"));
            self.text.line(format!("store {ty} {values}, ptr {to}, align {size}"));
        }
    }

    /// Lane by lane, in their order. Those that do not read copy zeros, and those that do not run write where nobody looks.
    fn copy_each(
        &mut self,
        (from, reads): (&Spread, Option<Vec<String>>),
        (to, runs): (&Spread, Option<Vec<String>>),
        size: u64,
    ) {
        let lanes = self.lanes;
        let vector = format!("<{lanes} x ptr>");
        let ty = match size {
            4 => "i32",
            8 => "i64",
            _ => "<4 x i32>",
        };
        let zeros = self.place("%n", offset_of!(Context, zeros));
        let nowhere = self.place("%n", offset_of!(Context, scratch));
        let mut ways = Vec::new();
        for (spread, mask, otherwise) in [(from, reads, zeros), (to, runs, nowhere)] {
            let mut at = self.pointers(spread);
            if let Some(mask) = mask {
                let otherwise = self.splat("ptr", &otherwise);
                let each = at.iter().zip(&mask);
                at = each
                    .map(|(at, mask)| self.text.select(self.form(), &vector, mask, at, &otherwise))
                    .collect();
            }
            ways.push(at);
        }
        for (from, to) in ways[0].iter().zip(&ways[1]) {
            for lane in 0..lanes {
                let [from, to] =
                    [from, to].map(|at| self.text.value(format!("extractelement {vector} {at}, i64 {lane}")));
                let value = self.text.value(format!("load {ty}, ptr {from}, align 4"));
                self.text.line(format!("store {ty} {value}, ptr {to}, align 4"));
            }
        }
    }

    /// Groups of copies are the interpreter's business, if there are any.
    pub(super) fn copy_group(&mut self, op: &Op, pc: Pc) {
        let copying = self.field(offset_of!(Context, copying), "i64", false);
        let copying = self.text.value(format!("icmp ne i64 {copying}, 0"));
        self.step_if(&copying, op, pc, None);
    }
}
