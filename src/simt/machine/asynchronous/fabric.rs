//! Fabric operations (PTX ISA, Life of a Fabric Operation): those of a thread begin, and are under way once it has submitted
//! them. What is never submitted would be lost on hardware, so here it never happens: who waits for it waits in vain, and a
//! block that ends before is a fault.

use super::{Completion, Group, Held, Operation, Owner};
use crate::isa::joint::fabric::Submit;
use crate::simt::cause::Cause;
use crate::simt::machine::context::Env;
use crate::simt::machine::state::State;

impl Held {
    pub(super) fn unsubmitted(&self) -> Cause {
        let Owner { block, thread } = self.operation.owner;
        let [x, y, z] = block;
        let why = format!(
            "block ({x}, {y}, {z}) has ended, and a fabric operation of its thread {thread} has not been submitted \
             (fabric.submit)"
        );
        Cause::Misuse { why }
    }
}

impl State {
    /// Lets a fabric operation begin, whose operands were checked, for when it is submitted.
    pub fn hold(&mut self, held: Held) {
        self.asynchronous.held.push(held);
    }

    /// A thread lets go on what it has begun (PTX ISA, fabric.submit).
    pub fn submit(&mut self, owner: Owner, which: Submit) {
        let a = &mut self.asynchronous;
        let is_due = |held: &mut Held| held.is_of(owner) && (which != Submit::Fetching || held.fetches);
        a.operations
            .extend(a.held.extract_if(.., is_due).map(|held| held.operation));
        // A group of nothing, with nothing before it, is complete.
        if which == Submit::Group && a.operations.iter().any(|o| is_fabric(o, owner)) {
            let before = a.next + 1;
            a.fabric_groups.push(Group { owner, before });
        }
    }

    /// A thread waits until all that it has submitted has read its sources, but for its last `but` groups (PTX ISA,
    /// fabric.wait).
    ///
    /// # Errors
    /// Memory is gone.
    pub fn wait_fabric(&mut self, env: &Env<'_>, owner: Owner, but: u32) -> Result<(), Cause> {
        let a = &mut self.asynchronous;
        let before = match but {
            0 => u64::MAX,
            but => {
                let mut own = a.fabric_groups.iter().rev().filter(|group| group.owner == owner);
                match own.nth(but as usize) {
                    Some(group) => group.before,
                    None => return Ok(()),
                }
            }
        };
        let mut i = 0;
        while let Some(operation) = self.asynchronous.operations.get_mut(i) {
            let is_due = is_fabric(operation, owner) && operation.number < before;
            if is_due && !operation.work.read(env)? {
                self.complete(env, i)?;
            } else {
                i += 1;
            }
        }
        let a = &mut self.asynchronous;
        a.fabric_groups
            .retain(|group| group.owner != owner || group.before > before);
        Ok(())
    }
}

fn is_fabric(operation: &Operation, owner: Owner) -> bool {
    match operation.completion {
        Completion::Fabric { .. } => operation.owner == owner,
        Completion::Nothing | Completion::Group | Completion::Bytes { .. } | Completion::Arrival { .. } => false,
    }
}
