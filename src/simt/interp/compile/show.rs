//! The interpreter's code as text, for people who look at what it runs.
//!
//! A slot is written by its class and place: `p0`, `h0`, `r2`, `d4`, `q8` are predicates (numbered by 4 bytes) and 16-,
//! 32-, 64- and 128-bit slots (numbered by 64 bytes of the window).

use std::fmt;

use super::values::{Affine, Op, Source, Step};
use super::{Compiled, Instr, Pc, Slot, What};
use crate::isa::lanes::Width;

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, unit) = match self.width {
            Width::Pred => ('p', 4),
            Width::B16 => ('h', 64),
            Width::B32 => ('r', 64),
            Width::B64 => ('d', 64),
            Width::B128 => ('q', 64),
        };
        write!(f, "{class}{}", self.offset / unit)
    }
}

impl fmt::Display for Instr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(guard) = &self.guard {
            write!(f, "{guard} ")?;
        }
        match &self.what {
            What::Op(op) => op.fmt(f),
            What::Branch { target, .. } => write!(f, "branch {target}"),
            What::BranchIndexed { index, targets } => {
                let targets: Vec<String> = targets.iter().map(Pc::to_string).collect();
                write!(f, "branch {index} of {}", targets.join(", "))
            }
        }
    }
}

impl fmt::Display for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: window {} bytes", self.function.name, self.window)?;
        for (slot, initial) in &self.initial {
            writeln!(f, "  {slot} = {initial}")?;
        }
        for instr in &self.prologue {
            writeln!(f, "  once {instr}")?;
        }
        if let Some(affine) = &self.affine {
            write!(f, "{affine}")?;
        }
        for (pc, instr) in self.code.iter().enumerate() {
            let note = self
                .affine
                .as_ref()
                .map_or_else(String::new, |affine| affine.note(pc as Pc));
            writeln!(f, "  {pc:4} {instr}{note}")?;
        }
        Ok(())
    }
}

impl Affine {
    /// What becomes of the instruction at `pc` where these values are at hand.
    fn note(&self, pc: Pc) -> String {
        if self.spared.binary_search(&pc).is_ok() {
            return "    // spared".to_owned();
        }
        match self.addresses.binary_search_by_key(&pc, |&(at, _)| at) {
            Ok(at) => format!("    // at v{}", self.addresses[at].1),
            Err(_) => String::new(),
        }
    }
}

/// `v3 = v0 + v1`: once a launch, or once for each block.
impl fmt::Display for Affine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (value, source) in self.sources.iter().enumerate() {
            match source {
                Source::Constant(bits) => writeln!(f, "  v{value} = {bits:#x}")?,
                Source::Slot(slot) => writeln!(f, "  v{value} = {slot}")?,
                Source::Tid(axis) => writeln!(f, "  v{value} = %tid({axis})")?,
                Source::Ctaid(axis) => writeln!(f, "  v{value} = %ctaid({axis})")?,
            }
        }
        let steps = self.once.iter().map(|step| ("once", step));
        for (when, Step { op, dst, a, b }) in steps.chain(self.each.iter().map(|step| ("block", step))) {
            write!(f, "  {when} ")?;
            let bits = |wide: &bool| if *wide { 64 } else { 32 };
            match op {
                Op::Add { wide } => writeln!(f, "v{dst} = v{a} + v{b} mod 2^{}", bits(wide))?,
                Op::Sub { wide } => writeln!(f, "v{dst} = v{a} - v{b} mod 2^{}", bits(wide))?,
                Op::Mul { wide } => writeln!(f, "v{dst} = v{a} · v{b} mod 2^{}", bits(wide))?,
                Op::Widen { signed } => {
                    writeln!(f, "v{dst} = {}32 v{a}", if *signed { 's' } else { 'u' })?;
                }
                Op::Narrow => writeln!(f, "v{dst} = v{a} mod 2^32")?,
                Op::Low { bits } => writeln!(f, "v{dst} = v{a} mod 2^{bits}")?,
                Op::High { bits } => writeln!(f, "v{dst} = v{a} - v{a} mod 2^{bits}")?,
                Op::Shift { bits } => writeln!(f, "v{dst} = v{a} >> {bits}")?,
                Op::Compare {
                    relation,
                    signed,
                    wide,
                    dst,
                } => {
                    let relation = format!("{relation:?}").to_lowercase();
                    let sign = if *signed { 's' } else { 'u' };
                    writeln!(f, "{dst} = v{a} {relation}.{sign}{} v{b}", bits(wide))?;
                }
            }
        }
        Ok(())
    }
}
