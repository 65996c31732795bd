//! Which source of a product an element has its missing bits from, for reports: the first that is found in its own C, its row of A, with
//! metadata and factors, and its column of B.

use super::{Word, fragment};
use crate::isa::joint::matrix::Multiply;
use crate::isa::lanes::WARP;
use crate::isa::mma::Accumulator;
use crate::ptx::ast::Span;
use crate::simt::machine::context::Cx;
use crate::simt::machine::observe::Undefined;
use crate::simt::machine::shadow_lanes;
use crate::simt::machine::slots::bits;

/// A source of a product, by its place among all of them, and the lane that holds what is missing.
pub type Source = (u8, u8);

/// Of each lane of a warp, the source of its first element that is missing.
#[derive(Default)]
pub struct Culprits {
    lanes: u32,
    sources: [Source; WARP],
}

impl Culprits {
    pub fn add(&mut self, lane: usize, source: Source) {
        if self.lanes >> lane & 1 == 0 {
            self.lanes |= 1 << lane;
            self.sources[lane] = source;
        }
    }

    /// Tells whoever looks on.
    pub fn tell(&self, cx: &Cx<'_>, span: Span, warp: usize) {
        if self.lanes == 0 {
            return;
        }
        let event = Undefined::Multiplied {
            warp,
            lanes: self.lanes,
            sources: &self.sources,
        };
        shadow_lanes::tell(cx, span, &event);
    }
}

/// Shadows of a product's sources, in their order, and of each row of A the codes of B that it is multiplied with.
pub struct Sources<'a> {
    pub op: &'a Multiply,
    pub words: &'a [&'a Word],
    pub kept: &'a [u128],
    /// By row of A and by column of B, what stands behind C: metadata and factors.
    pub behind: [&'a [Option<Source>]; 2],
}

/// By line, registers and lanes that lack something there, with a bit for each code along k.
type Lines = Vec<Vec<(u128, Source)>>;

impl Sources<'_> {
    /// Of each of `lanes` the source of its first element of D that `is_missing`, by row and column; lanes that have none are left out.
    pub fn of(&self, lanes: u32, is_missing: impl Fn(usize, usize) -> bool) -> (u32, [Source; WARP]) {
        let op = self.op;
        let (m, n) = (usize::from(op.shape.m), usize::from(op.shape.n));
        let (a, b) = (op.a_registers(), op.b_registers());
        let rows = self.lines(false, 0..a, m);
        let columns = self.lines(true, a..a + b, n);
        let (mut found, mut sources) = (0, [(0, 0); WARP]);
        for lane in bits(lanes) {
            let elements = (0..m * n / WARP).map(|element| (element, fragment::double_accumulator(m, element, lane)));
            for (element, at) in elements.filter(|(_, at)| is_missing(at.row, at.column)) {
                let own = self.own(element, lane);
                let in_row = || rows[at.row].first().map(|(_, source)| *source);
                let in_column = || {
                    let counts = |(bits, _): &&(u128, Source)| bits & self.kept[at.row] != 0;
                    columns[at.column].iter().find(counts).map(|(_, source)| *source)
                };
                let [of_rows, of_columns] = self.behind;
                let source = own
                    .or_else(in_row)
                    .or(of_rows[at.row])
                    .or_else(in_column)
                    .or(of_columns[at.column]);
                if let Some(source) = source {
                    found |= 1 << lane;
                    sources[lane] = source;
                    break;
                }
            }
        }
        (found, sources)
    }

    fn lines(&self, is_b: bool, registers: std::ops::Range<usize>, count: usize) -> Lines {
        let mut lines = vec![Vec::new(); count];
        for (register, place) in registers.enumerate() {
            for (lane, _) in self.words[place].iter().enumerate().filter(|(_, word)| **word != 0) {
                let (line, codes) = fragment::codes_of(self.op, is_b, register, lane);
                let bits = codes.fold(0, |all, code| all | 1_u128 << code);
                lines[line].push((bits, (place as u8, lane as u8)));
            }
        }
        lines
    }

    /// The element of C, if it lacks something.
    fn own(&self, element: usize, lane: usize) -> Option<Source> {
        let first = self.op.a_registers() + self.op.b_registers();
        let (register, half) = match self.op.c {
            Accumulator::F16 => (element / 2, 0xffff << (16 * (element % 2))),
            Accumulator::F32 | Accumulator::F64 | Accumulator::S32 => (element, u32::MAX),
        };
        let is_missing = self.words[first + register][lane] & half != 0;
        is_missing.then_some(((first + register) as u8, lane as u8))
    }
}
