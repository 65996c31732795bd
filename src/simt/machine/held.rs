//! Objects in which an operation has to stay that itself knows how far it reaches: what its addresses and descriptors were made from
//! (`program/passes/provenance/held.rs`), where accesses are checked to the variable.

use crate::program::{ObjectKind, Space};
use crate::simt::cause::{Cause, Made};

use super::context::{Cx, Env, RawFault};
use super::peers::STRIDE;
use super::slots::read;
use super::step::Operands;
use super::tensor_memory::Asked;
use super::within;

/// One object, or what is not known.
#[derive(Clone, Copy, Default)]
pub struct Held(Option<Object>);

#[derive(Clone, Copy)]
struct Object {
    start: u64,
    end: u64,
    made: Made,
}

/// What an access is: as the process knows it, by which space it was named, and the lane that makes it.
#[derive(Clone, Copy)]
pub struct Accessed {
    pub address: u64,
    pub bytes: u64,
    pub write: bool,
    pub space: Space,
    pub lane: usize,
}

/// By what an operation names columns of tensor memory: operand `number` of those with objects.
///
/// # Safety
/// As for [`Held::of`].
pub unsafe fn columns(operands: &Operands, number: usize, lane: usize, cx: &Cx<'_>) -> Asked {
    if !cx.block.view.exact {
        return Asked::Allocated;
    }
    match operands.objects.get(number).copied().flatten() {
        Some(object) if object.what == ObjectKind::Columns => {
            // SAFETY: the slot lies in the running window, as the caller promises.
            Asked::OneFrom(unsafe { read(cx.regs, object.base, lane) } as u32)
        }
        Some(_) | None => Asked::One,
    }
}

impl Held {
    /// What operand `number` of those with objects was made from.
    ///
    /// # Safety
    /// Slots of `operands` lie in the running window, of which `lane` is a lane.
    pub unsafe fn of(operands: &Operands, number: usize, lane: usize, cx: &Cx<'_>) -> Held {
        let block = cx.block;
        let Some(object) = operands
            .objects
            .get(number)
            .copied()
            .flatten()
            .filter(|_| block.view.exact)
        else {
            return Held(None);
        };
        // SAFETY: the slot lies in the running window, as the caller promises.
        let base = unsafe { read(cx.regs, object.base, lane) };
        let range = match object.what {
            ObjectKind::Shared { bytes } => {
                let start = (base as u32).wrapping_sub(block.shared_start());
                Some(within::shared(start, bytes, block))
            }
            ObjectKind::Pointer { parameter } => {
                let pointer = base;
                within::holder(pointer).map(|(start, end)| (start, end, Made::Pointer { parameter, pointer }))
            }
            ObjectKind::Columns => None,
        };
        Held(range.map(|(start, end, made)| Object { start, end, made }))
    }

    /// # Errors
    /// The access is in something else. What lies in nothing at all is for others to judge.
    pub fn check(&self, accessed: Accessed, block: &Env<'_>) -> Result<(), RawFault> {
        let Held(Some(object)) = self else { return Ok(()) };
        let Accessed {
            address,
            bytes,
            write,
            space,
            lane,
        } = accessed;
        let named = match space {
            Space::Shared => address.wrapping_sub(block.cluster_shared()),
            Space::Generic | Space::Global | Space::Const | Space::Local | Space::Param => address,
        };
        // In a window of shared memory, of whichever block of the cluster; or in one allocation.
        let at = match object.made {
            Made::Shared { .. } => {
                let at = address.wrapping_sub(block.cluster_shared());
                let rest = u64::from(block.shared_bytes).checked_sub(at % STRIDE);
                if at / STRIDE >= u64::from(block.peers) || rest.is_none_or(|rest| rest < bytes) {
                    return Ok(());
                }
                at % STRIDE
            }
            _ => address,
        };
        if at >= object.start && at < object.end && bytes <= object.end - at {
            return Ok(());
        }
        let cause = Cause::Stray {
            address: named,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            write,
            space,
            made: object.made,
            span: None,
        };
        Err(RawFault::new(cause, lane))
    }
}
