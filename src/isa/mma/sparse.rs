//! Structured sparsity: of every group of columns A has elements for half, and metadata say for which (PTX ISA, Sparse
//! matrix storage).

use super::Element;

/// How metadata name columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metadata {
    /// Columns in a group, of which half have an element.
    pub group: usize,
    /// Bits that name an element's column within its group.
    pub bits: u32,
    /// Neighbours that come or go together: pairs of elements of four bits.
    pub run: usize,
}

impl Metadata {
    /// Of a type of elements, packed two to a byte (`nibbles`, as `.kind::mxf4` has them) or not.
    pub const fn of(element: Element, nibbles: bool) -> Metadata {
        match element {
            // One of two; four bits say which: 0b0100 the first, 0b1110 the second.
            Element::Tf32 => Metadata {
                group: 2,
                bits: 4,
                run: 1,
            },
            Element::S4 | Element::U4 => Metadata {
                group: 8,
                bits: 2,
                run: 2,
            },
            Element::E2m1 if nibbles => Metadata {
                group: 8,
                bits: 2,
                run: 2,
            },
            Element::F16 | Element::Bf16 | Element::S8 | Element::U8 | Element::B1 | Element::F64 => Metadata {
                group: 4,
                bits: 2,
                run: 1,
            },
            Element::E4m3 | Element::E5m2 | Element::E3m2 | Element::E2m3 | Element::E2m1 => Metadata {
                group: 4,
                bits: 2,
                run: 1,
            },
        }
    }

    /// Bits of metadata for a row with `columns` columns.
    pub const fn row(self, columns: usize) -> u32 {
        (columns / 2 / self.run) as u32 * self.bits
    }

    /// The column of the element at place `at` of a row, whose metadata are `row`, first elements lowest.
    #[inline]
    pub fn column(self, row: u128, at: usize) -> usize {
        let kept = self.group / 2;
        let index = (row >> ((at / self.run) as u32 * self.bits)) as usize & ((1 << self.bits) - 1);
        // The two high bits of a nibble are the index of the upper half of a `tf32`.
        let index = if self.bits == 4 { index >> 3 & 1 } else { index };
        at / kept * self.group + index * self.run + at % self.run
    }
}

/// Spreads the elements of a sparse A over its columns. `elements` has half as many columns as `dense`, both with
/// `stride` words a column and `m` rows; `metadata` has a word for each row; `kept` gets a bit for each column that has an
/// element. Two elements for one column are a mistake of the program: the later one counts.
///
/// # Panics
/// If a slice is shorter than that.
pub fn expand(
    of: Metadata,
    (m, stride, columns): (usize, usize, usize),
    elements: &[u32],
    metadata: &[u128],
    dense: &mut [u32],
    kept: &mut [u128],
) {
    dense[..columns * stride].fill(0);
    kept[..m].fill(0);
    for row in 0..m {
        for at in 0..columns / 2 {
            let column = of.column(metadata[row], at);
            dense[column * stride + row] = elements[at * stride + row];
            kept[row] |= 1 << column;
        }
    }
}
