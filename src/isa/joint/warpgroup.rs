//! Matrix products of four warps (PTX ISA, Asynchronous Warpgroup Level Matrix Instructions).

use std::fmt;

use crate::isa::mma::{Accumulator, Element};
use crate::isa::types::Type;
use crate::isa::words::Words;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `wgmma.mma_async`
    Mma(Mma),
    /// `wgmma.fence`
    Fence,
    /// `wgmma.commit_group`
    Commit,
    /// `wgmma.wait_group`
    Wait,
}

/// `D = A·B + D`, with 64 rows, of which each of the four warps has 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mma {
    /// Columns of B and D.
    pub n: u16,
    pub a: Element,
    pub b: Element,
    pub d: Accumulator,
    /// Of A there is half, with metadata that says which.
    pub sparse: bool,
    /// `.satfinite`
    pub saturate: bool,
    /// D may be written, and shared memory read, as late as where the group is waited for: nobody looks at D before. What
    /// lowering leaves unset, a pass finds.
    pub late: bool,
}

impl Mma {
    /// Rows of B.
    pub fn k(self) -> usize {
        let dense = 256 / element_bits(self.a);
        if self.sparse { 2 * dense } else { dense }
    }

    /// Registers of D that each thread has.
    pub fn accumulators(self) -> usize {
        match self.d {
            Accumulator::F16 => usize::from(self.n) / 4,
            Accumulator::F32 | Accumulator::S32 | Accumulator::F64 => usize::from(self.n) / 2,
        }
    }
}

/// Bits of an element in memory.
fn element_bits(element: Element) -> usize {
    match element {
        Element::B1 => 1,
        other => other.bits() as usize,
    }
}

impl Op {
    pub(super) fn takes_whole_warps(self) -> bool {
        match self {
            Op::Mma(_) | Op::Fence | Op::Commit | Op::Wait => true,
        }
    }
}

fn element(ty: Type) -> Option<Element> {
    Some(match ty {
        Type::F16 => Element::F16,
        Type::Bf16 => Element::Bf16,
        Type::Tf32 => Element::Tf32,
        Type::E4m3 => Element::E4m3,
        Type::E5m2 => Element::E5m2,
        Type::S8 => Element::S8,
        Type::U8 => Element::U8,
        _ => return None,
    })
}

/// `wgmma.mma_async`
pub fn mma(w: Words) -> Option<Op> {
    let (n, _) = w.find(|word| {
        word.strip_prefix("m64n")?
            .split_once('k')
            .map(|(n, k)| (n.parse().ok(), k.len()))
    })?;
    let d = match w.ty(0) {
        Type::F16 => Accumulator::F16,
        Type::F32 => Accumulator::F32,
        Type::S32 => Accumulator::S32,
        _ => return None,
    };
    let [a, b] = match w.has("b1") {
        true => [Element::B1; 2],
        false => [element(w.ty(1))?, element(w.ty(2))?],
    };
    Some(Op::Mma(Mma {
        n: n?,
        a,
        b,
        d,
        sparse: w.has("sp"),
        saturate: w.has("satfinite"),
        late: false,
    }))
}

pub fn fence(_: Words) -> Option<Op> {
    Some(Op::Fence)
}

pub fn commit(_: Words) -> Option<Op> {
    Some(Op::Commit)
}

pub fn wait(_: Words) -> Option<Op> {
    Some(Op::Wait)
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Mma(mma) => mma.fmt(f),
            Op::Fence => f.write_str("wgmma.fence"),
            Op::Commit => f.write_str("wgmma.commit_group"),
            Op::Wait => f.write_str("wgmma.wait_group"),
        }
    }
}

impl fmt::Display for Mma {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mma {
            n,
            a,
            b,
            d,
            sparse,
            saturate,
            late,
        } = *self;
        f.write_str("wgmma.mma_async")?;
        f.write_str(if sparse { ".sp" } else { "" })?;
        write!(f, ".m64n{n}k{}", self.k())?;
        f.write_str(if saturate { ".satfinite" } else { "" })?;
        write!(f, ".{d}.{a}.{b}")?;
        f.write_str(if a == Element::B1 { ".and.popc" } else { "" })?;
        f.write_str(if late { " late" } else { "" })
    }
}
