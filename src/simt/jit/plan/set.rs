//! Sets of registers.

use crate::program::Register;

/// A set of registers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Set(Vec<u64>);

impl Set {
    pub(super) fn new(registers: usize) -> Set {
        Set(vec![0; registers.div_ceil(64)])
    }
    pub fn has(&self, register: Register) -> bool {
        self.0[register as usize / 64] >> (register % 64) & 1 != 0
    }
    pub(super) fn insert(&mut self, register: Register) {
        self.0[register as usize / 64] |= 1 << (register % 64);
    }
    pub(super) fn remove(&mut self, register: Register) {
        self.0[register as usize / 64] &= !(1 << (register % 64));
    }
    pub(super) fn add(&mut self, other: &Set) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }
    pub fn iter(&self) -> impl Iterator<Item = Register> + '_ {
        self.0.iter().enumerate().flat_map(|(word, &bits)| {
            let mut rest = bits;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    word as u32 * 64 + bit
                })
            })
        })
    }
}
