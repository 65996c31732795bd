//! Addresses of elements: a number for the whole warp, and in each lane a multiple of an index of 32 bits, as programs form them for
//! `array[i]`.
//!
//! Code that knows them for what they are compares indices with the first and the last that there is memory for, and leaves
//! the address to the access: half as many vectors, and fewer operations on each, than with addresses of 64 bits.

use crate::isa::{Compute, Linear};

use crate::isa::lanes::Width;
use crate::program::{Address, Inst, Op, Reg, Role};

use super::super::plan::Kind;
use super::super::text::Form;
use super::Emit;
use super::place::{Indexed, Located, Multiple, Place, Spread};

/// Bytes of an element at most.
const LARGE: u64 = 1 << 16;
/// Addresses further apart than this are of no use to an index.
const FAR: i64 = 1 << 60;

impl Emit<'_> {
    /// What an instruction that is about to be emitted leaves in its result, for [`Emit::leaves_indexed`].
    pub(super) fn indexed_of(&mut self, inst: &Inst) -> Option<Indexed> {
        let (Op::Compute { op, dst, src }, None) = (&inst.op, inst.guard) else {
            return None;
        };
        let [dst] = dst[..] else { return None };
        if dst.width != Width::B64 || !matches!(self.kind(dst.number), Kind::Vector) {
            return None;
        }
        let mut indexed = self.indexed_by(*op, src)?;
        self.indexed_found += 1;
        indexed.number = self.indexed_found;
        Some(indexed)
    }

    /// An instruction has been emitted, and this is its result.
    pub(super) fn leaves_indexed(&mut self, inst: &Inst, result: Option<Indexed>) {
        inst.op.regs(|reg, role| {
            if role == Role::Def {
                self.indexed.remove(&reg.number);
            }
        });
        if let (Op::Compute { dst, .. }, Some(indexed)) = (&inst.op, result) {
            self.indexed.insert(dst[0].number, indexed);
        }
    }

    /// Forgets what was found since so many had been: the code that follows is reached by other ways, too.
    pub(super) fn forget_indexed(&mut self, found: usize) {
        self.indexed.retain(|_, indexed| indexed.number <= found);
    }

    fn indexed_by(&mut self, op: Compute, src: &[Reg]) -> Option<Indexed> {
        match op.linear()? {
            Linear::Copy => self.indexed.get(&src[0].number).cloned(),
            Linear::Widen { signed } => self.index(src[0], signed),
            Linear::MulWide { signed } => self.index_times((src[0], src[1]), Some(signed)),
            Linear::MadWide { signed } => {
                let product = self.index_times((src[0], src[1]), Some(signed))?;
                self.indexed_from(product, src[2])
            }
            Linear::Mul => self.index_times((src[0], src[1]), None),
            Linear::Mad => {
                let product = self.index_times((src[0], src[1]), None)?;
                self.indexed_from(product, src[2])
            }
            Linear::Shl => {
                let by = self.input.body.constant(src[1].number)?;
                let factor = 1u64.checked_shl(u32::try_from(by).ok()?)?;
                let indexed = self.indexed.get(&src[0].number)?;
                scaled(indexed.clone(), factor)
            }
            Linear::Add => match (self.indexed.get(&src[0].number), self.indexed.get(&src[1].number)) {
                (Some(indexed), None) => self.indexed_from(indexed.clone(), src[1]),
                (None, Some(indexed)) => self.indexed_from(indexed.clone(), src[0]),
                (Some(_), Some(_)) | (None, None) => None,
            },
            Linear::Sub | Linear::Narrow | Linear::Compare { .. } => None,
        }
    }

    fn index(&mut self, reg: Reg, signed: bool) -> Option<Indexed> {
        let is_index = reg.width == Width::B32 && matches!(self.kind(reg.number), Kind::Vector);
        is_index.then(|| Indexed {
            base: None,
            index: self.lanes_of(reg, false),
            signed,
            scale: 1,
            number: 0,
        })
    }

    /// A product with a constant; `wide`: of numbers of 32 bits, which may be signed.
    fn index_times(&mut self, (a, b): (Reg, Reg), wide: Option<bool>) -> Option<Indexed> {
        let constants = [a, b].map(|reg| self.input.body.constant(reg.number));
        let (reg, factor) = match constants {
            [None, Some(factor)] => (a, factor),
            [Some(factor), None] => (b, factor),
            _ => return None,
        };
        let indexed = match wide {
            Some(signed) => self.index(reg, signed),
            None => self.indexed.get(&reg.number).cloned(),
        };
        scaled(indexed?, u64::try_from(factor).ok()?)
    }

    /// A sum with a number for all lanes.
    fn indexed_from(&mut self, indexed: Indexed, reg: Reg) -> Option<Indexed> {
        if !self.kind(reg.number).is_same() {
            return None;
        }
        let (numbers, _) = self.line_of(reg, false);
        let [number] = &numbers[..] else { return None };
        let base = match &indexed.base {
            None => number.clone(),
            Some(base) => self.text.binary("add", "i64", base, number),
        };
        Some(Indexed {
            base: Some(base),
            ..indexed
        })
    }

    /// Where each lane of an access to global memory goes, if its address is of this kind: as [`Emit::locate_each`] has it.
    pub(super) fn locate_indexed(&mut self, address: &Address, (reach, multiple): (u64, Multiple)) -> Option<Located> {
        let indexed = self.indexed.get(&address.register?.number)?.clone();
        let base = indexed.base.as_ref()?;
        let scale = indexed.scale;
        if multiple.is_some_and(|(bytes, _)| !scale.is_multiple_of(bytes)) {
            return None;
        }
        let (site, low, room) = self.site(reach);
        let start = self.text.value(format!("add i64 {base}, {}", address.offset));
        let before = self.text.value(format!("sub i64 {low}, {start}"));
        let end = self.text.value(format!("add i64 {before}, {room}"));
        let end = self.text.value(format!("add i64 {end}, {}", reach - 1));
        // From the first index that is not before where there is room, to the last that is not behind.
        let within = self
            .text
            .intrinsic("smin", Form::One, "i64", &[&before, &FAR.to_string()]);
        let within = self
            .text
            .intrinsic("smax", Form::One, "i64", &[&within, &(-FAR).to_string()]);
        let first = self.text.value(format!("add i64 {within}, {}", scale - 1));
        let first = self.quotient(&first, scale);
        let last = self.text.value(format!("add i64 {within}, {room}"));
        let last = self.text.value(format!("sub i64 {last}, 1"));
        let last = self.quotient(&last, scale);
        // An index that is not signed and has its upper bit is for the interpreter.
        let least = if indexed.signed { i64::from(i32::MIN) } else { 0 };
        let first = self
            .text
            .intrinsic("smax", Form::One, "i64", &[&first, &least.to_string()]);
        let last = self
            .text
            .intrinsic("smin", Form::One, "i64", &[&last, &i32::MAX.to_string()]);
        let none = self.text.value(format!("icmp slt i64 {last}, {first}"));
        // Behind the first, so that no distance has its sign.
        let span = self.text.value(format!("sub i64 {last}, {first}"));
        let span = self
            .text
            .intrinsic("smin", Form::One, "i64", &[&span, &i32::MAX.to_string()]);
        let before = self.text.value(format!("mul i64 {first}, {scale}"));
        let base = self.text.value(format!("add i64 {start}, {before}"));
        let end = self.text.value(format!("sub i64 {end}, {before}"));
        let [first, span] = [first, span].map(|number| {
            let number = self.text.resize(Form::One, 64, &number, 32, false);
            self.splat("i32", &number)
        });
        let ty = self.form().int(32);
        let (mut wrong, mut distances) = (Vec::new(), Vec::new());
        for index in &indexed.index {
            let behind = self.text.binary("sub", &ty, index, &first);
            wrong.push(self.text.value(format!("icmp ugt {ty} {behind}, {span}")));
            distances.push(behind);
        }
        if let Some(mask) = self.mask.clone() {
            wrong = self.each(&wrong, &mask, "and");
        }
        let wrong = self.any(&wrong);
        let mut bad = self.text.binary("or", "i1", &none, &wrong);
        if let Some((bytes, behind)) = multiple {
            let address = self.text.value(format!("add i64 {start}, {behind}"));
            let address = self.text.value(format!("and i64 {address}, {}", bytes - 1));
            let aslant = self.text.value(format!("icmp ne i64 {address}, 0"));
            bad = self.text.binary("or", "i1", &bad, &aslant);
        }
        Some(Located {
            place: Place::Lanes(Spread {
                base,
                distances,
                bits: 32,
                scale,
                end: Some(end),
            }),
            bad,
            site: Some(site),
            safe: low,
        })
    }

    /// The greatest number of which so many are no more than this, which is less than 2^61 away from zero.
    pub(super) fn quotient(&mut self, number: &str, by: u64) -> String {
        if by.is_power_of_two() {
            return self.text.value(format!("ashr i64 {number}, {}", by.trailing_zeros()));
        }
        let many = (1u64 << 61).div_ceil(by);
        let positive = self.text.value(format!("add i64 {number}, {}", many * by));
        let quotient = self.text.value(format!("udiv i64 {positive}, {by}"));
        self.text.value(format!("sub i64 {quotient}, {many}"))
    }
}

fn scaled(indexed: Indexed, factor: u64) -> Option<Indexed> {
    let scale = indexed.scale.checked_mul(factor)?;
    let fits = indexed.base.is_none() && (1..=LARGE).contains(&scale);
    fits.then_some(Indexed { scale, ..indexed })
}
