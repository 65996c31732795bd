//! What is bound to objects that stand for memory of several devices: multicast objects and logical endpoints.

use std::sync::Arc;

use crate::driver::virtual_memory::{GRANULARITY, Physical};
use crate::driver::{Error, Result};

/// Memory of a device, at an offset of the object.
pub(super) struct Binding {
    pub(super) device: i32,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) physical: Arc<Physical>,
    /// The part of the memory.
    pub(super) from: u64,
}

#[derive(Default)]
pub(super) struct Bindings(Vec<Binding>);

pub(super) fn is_granular(values: &[u64]) -> bool {
    values.iter().all(|value| value.is_multiple_of(GRANULARITY))
}

fn fits(first: u64, bytes: u64, whole: u64) -> bool {
    first.checked_add(bytes).is_some_and(|end| end <= whole)
}

impl Binding {
    /// # Errors
    /// 1 unless it is a granular part of an object of `whole` bytes, and of the memory.
    pub(super) fn check(&self, whole: u64) -> Result<()> {
        let Binding {
            offset, bytes, from, ..
        } = *self;
        let good = bytes != 0
            && is_granular(&[offset, from, bytes])
            && fits(offset, bytes, whole)
            && fits(from, bytes, self.physical.bytes());
        if good { Ok(()) } else { Err(Error::InvalidValue) }
    }

    fn touches(&self, device: i32, offset: u64, end: u64) -> bool {
        self.device == device && self.offset < end && offset < self.offset + self.bytes
    }
}

impl Bindings {
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Binding> {
        self.0.iter()
    }

    /// # Errors
    /// 1 where something is bound already.
    pub(super) fn add(&mut self, binding: Binding) -> Result<()> {
        let Binding {
            device, offset, bytes, ..
        } = binding;
        if self.0.iter().any(|one| one.touches(device, offset, offset + bytes)) {
            return Err(Error::InvalidValue);
        }
        self.0.push(binding);
        Ok(())
    }

    /// All that a device has bound in a range of an object of `whole` bytes.
    ///
    /// # Errors
    /// 1 unless it is one or more whole bindings.
    pub(super) fn remove(&mut self, device: i32, (offset, bytes): (u64, u64), whole: u64) -> Result<Vec<Binding>> {
        check_range(offset, bytes, whole)?;
        let end = offset + bytes;
        let touched = |one: &Binding| one.touches(device, offset, end);
        let is_whole = |one: &Binding| offset <= one.offset && one.offset + one.bytes <= end;
        let mut found = self.0.iter().filter(|one| touched(one)).peekable();
        if found.peek().is_none() || !found.all(is_whole) {
            return Err(Error::InvalidValue);
        }
        Ok(self.0.extract_if(.., |one| touched(one)).collect())
    }
}

/// # Errors
/// 1 for what is no granular range of an object of `whole` bytes.
pub(super) fn check_range(offset: u64, bytes: u64, whole: u64) -> Result<()> {
    match bytes != 0 && is_granular(&[offset, bytes]) && fits(offset, bytes, whole) {
        true => Ok(()),
        false => Err(Error::InvalidValue),
    }
}
