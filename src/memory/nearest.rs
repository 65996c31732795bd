//! What to say of an address at which a kernel went wrong: the allocation it belongs to, belonged to, or just missed.
//!
//! The words of [`Nearest`] are part of the product; tests hold them.

use std::fmt;

use super::{Allocation, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// So many bytes from its start.
    Inside(u64),
    /// So many bytes before its start.
    Before(u64),
    /// So many bytes after its end: 0 is the first byte that is not its own.
    After(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest {
    pub allocation: Allocation,
    pub relation: Relation,
    /// It has been freed since.
    pub freed: bool,
}

/// Farther away than this, an allocation has nothing to do with an address.
const NEAR: u64 = 1 << 30;

impl Nearest {
    /// Bytes between the address and the allocation; 0 inside and on either side of it.
    pub fn distance(&self) -> u64 {
        match self.relation {
            Relation::Inside(_) => 0,
            Relation::Before(distance) | Relation::After(distance) => distance,
        }
    }

    /// Whether the address may well have been meant for this allocation.
    pub fn is_near(&self) -> bool {
        match self.relation {
            Relation::Inside(_) => true,
            Relation::Before(distance) | Relation::After(distance) => distance <= NEAR,
        }
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.relation {
            Relation::Inside(0) => f.write_str("the start of ")?,
            Relation::Inside(offset) => write!(f, "{} inside ", bytes(offset))?,
            Relation::Before(distance) => write!(f, "{} before ", bytes(distance))?,
            Relation::After(0) => f.write_str("just past the end of ")?,
            Relation::After(distance) => write!(f, "{} past the end of ", bytes(distance))?,
        }
        f.write_str(if self.freed {
            "a freed allocation of "
        } else {
            "an allocation of "
        })?;
        let kind = match self.allocation.kind {
            Kind::Device => "device memory",
            Kind::Managed => "managed memory",
            Kind::Host => "pinned host memory",
            Kind::Array => "array memory",
            Kind::Constant => "constant memory, which kernels may only read",
            Kind::Heap => "the device heap",
            Kind::Internal => "the driver's own memory",
        };
        let Allocation {
            allocated_by, freed_by, ..
        } = self.allocation;
        write!(
            f,
            "{} at {:#x} ({kind}",
            bytes(self.allocation.bytes),
            self.allocation.start
        )?;
        if !allocated_by.name.is_empty() {
            write!(f, ", allocated by {}", allocated_by.plain())?;
        }
        if !freed_by.name.is_empty() {
            write!(f, ", freed by {}", freed_by.plain())?;
        }
        f.write_str(")")
    }
}

fn bytes(count: u64) -> String {
    match count {
        1 => "1 byte".to_string(),
        _ => format!("{count} bytes"),
    }
}
