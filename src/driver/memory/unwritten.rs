//! Bytes that nobody has written and that are copied to the host (`MARGAY_CHECK=init`), but for what compilers leave between the
//! members of structures.

use std::ops::Range;

use crate::driver::process::check::uninitialised_on_host;
use crate::memory::shadow::Shadow;

use super::copy::{Checked, Shape};

/// A box is copied to the host: whoever looks for values that nobody has written is told of those.
pub(super) fn leaves(memory: &Shadow, src: Checked, shape: Shape) {
    let (mut count, mut first, mut padding) = (0, None, Padding::default());
    for z in 0..shape.depth {
        for y in 0..shape.height {
            let from = src.address + z * src.slice + y * src.pitch;
            memory.undefined(from, shape.width, |range| {
                count += range.end - range.start;
                first.get_or_insert(from + range.start);
                padding.add(from + range.start..from + range.end);
            });
        }
    }
    let is_flat = shape.height * shape.depth == 1;
    let all = is_flat.then_some(src.address..src.address + shape.width);
    if let Some(first) = first.filter(|_| !padding.is_all(all)) {
        uninitialised_on_host((count, shape.width * shape.height * shape.depth), first);
    }
}

/// Bytes of a copy that may be of one structure alone.
const STRUCTURE: u64 = 64;

/// Whether undefined bytes look like what compilers leave between the members of structures, which nobody writes: less than eight
/// bytes before a multiple of what the member behind is aligned to, and again and again at the same distance, if a number could
/// stand there; in a copy as small as one structure, once before another member.
#[derive(Default)]
struct Padding {
    last: Option<Range<u64>>,
    /// From one to the next.
    stride: Option<u64>,
    ranges: u64,
    is_none: bool,
}

impl Padding {
    fn add(&mut self, range: Range<u64>) {
        let bytes = range.end - range.start;
        let align = match bytes {
            1 => 2,
            2 | 3 => 4,
            _ => 8,
        };
        self.is_none |= bytes >= 8 || !range.end.is_multiple_of(align);
        if let Some(last) = self.last.replace(range.clone()) {
            let stride = range.start - last.start;
            // A structure that ends with four bytes that nobody writes has eight before, at least.
            self.is_none |= last.end - last.start != bytes
                || *self.stride.get_or_insert(stride) != stride
                || (bytes >= 4 && stride < 16);
        }
        self.ranges += 1;
    }

    /// `copied`: what is copied, if that has no rows.
    fn is_all(&self, copied: Option<Range<u64>>) -> bool {
        let is_short = self.last.as_ref().is_some_and(|last| last.end - last.start < 4);
        // What is lacking at the end is rather an element that was forgotten.
        let is_inside = |copied: Range<u64>| {
            let is_one = copied.end - copied.start <= STRUCTURE && copied.start.is_multiple_of(8);
            is_one
                && self
                    .last
                    .as_ref()
                    .is_some_and(|last| last.start > copied.start && last.end < copied.end)
        };
        !self.is_none && (self.ranges > 1 || is_short || copied.is_some_and(is_inside))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_padding(ranges: &[Range<u64>]) -> bool {
        let mut padding = Padding::default();
        ranges.iter().for_each(|range| padding.add(range.clone()));
        padding.is_all(Some(0..1 << 20))
    }

    fn is_padding_of_one(range: Range<u64>, copied: Range<u64>) -> bool {
        let mut padding = Padding::default();
        padding.add(range);
        padding.is_all(Some(copied))
    }

    #[test]
    fn what_compilers_leave_between_members_is_padding() {
        // struct { char c; int i; }, struct { double d; int i; }, struct { short s; char c; }, struct { char c; double d; }
        assert!(is_padding(&[1..4, 9..12, 17..20]));
        assert!(is_padding(&[12..16, 28..32]));
        assert!(is_padding(&[3..4, 7..8, 11..12]));
        assert!(is_padding(&[1..8, 17..24]));
        assert!(is_padding(std::slice::from_ref(&(1..4))));
        // struct { int i; double d; }, alone.
        assert!(is_padding_of_one(4..8, 0..16));
    }

    #[test]
    fn what_could_be_numbers_is_not() {
        // One element of many, every second one, the last ones, and ranges without order.
        assert!(!is_padding(std::slice::from_ref(&(16..20))));
        assert!(!is_padding(&[4..8, 12..16, 20..24]));
        assert!(!is_padding(std::slice::from_ref(&(64..128))));
        assert!(!is_padding(&[1..4, 9..12, 25..28]));
        assert!(!is_padding(&[8..12, 24..28]));
        // The last element, the first one, one of a hundred, and one of an array that begins between multiples of eight.
        assert!(!is_padding_of_one(12..16, 0..16));
        assert!(!is_padding_of_one(0..4, 0..16));
        assert!(!is_padding_of_one(4..8, 0..400));
        assert!(!is_padding_of_one(12..16, 4..20));
    }
}
