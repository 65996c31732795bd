//! When what is under way completes, and who is told.

use super::{Completion, Group, Line, Operation, Owner};
use crate::simt::cause::Cause;
use crate::simt::machine::context::{Cx, Env, RawFault};
use crate::simt::machine::mbarrier;
use crate::simt::machine::observe::GridEvent;
use crate::simt::machine::slots::first_lane;
use crate::simt::machine::state::State;

impl State {
    /// Lets an operation begin, whose operands were checked.
    pub fn begin(&mut self, operation: Operation) {
        self.asynchronous.operations.push(operation);
    }

    /// A thread makes a group of what it began and has in none (PTX ISA, cp.async.bulk.commit_group).
    pub fn commit_group(&mut self, owner: Owner) {
        // A group of nothing, with nothing before it, is complete.
        if self.asynchronous.has_open(owner) {
            let before = self.asynchronous.next + 1;
            self.asynchronous.groups.push(Group { owner, before });
        }
    }

    /// A thread waits until no more than `but` of its last groups are under way; with `read`, until those before have read
    /// their sources.
    ///
    /// # Errors
    /// Memory of theirs is gone.
    pub fn wait_group(&mut self, env: &Env<'_>, owner: Owner, but: u32, read: bool) -> Result<(), Cause> {
        let a = &mut self.asynchronous;
        let mut own = a.groups.iter().rev().filter(|group| group.owner == owner);
        let Some(before) = own.nth(but as usize).map(|group| group.before) else {
            return Ok(());
        };
        let is_due = |o: &Operation| o.owner == owner && o.completion == Completion::Group && o.number < before;
        let mut i = 0;
        while let Some(operation) = self.asynchronous.operations.get_mut(i) {
            if is_due(operation) && !(read && operation.work.read(env)?) {
                self.complete(env, i)?;
            } else {
                i += 1;
            }
        }
        if !read {
            let a = &mut self.asynchronous;
            a.groups.retain(|group| group.owner != owner || group.before > before);
        }
        Ok(())
    }

    /// Lanes of a warp of the block wait for all groups of `cp.async` but the last `but`; `None`: for all that they copy.
    ///
    /// # Errors
    /// Memory is gone, or a barrier is none.
    pub fn wait_copies(&mut self, env: &Env<'_>, lanes: (usize, u32), but: Option<u32>) -> Result<(), Cause> {
        let changed = &mut self.changed;
        let copies = &mut self.asynchronous.copies;
        copies.wait(env, lanes, but, &mut |at| arrive(env, at, changed))
    }

    /// Completes what stands in a line.
    ///
    /// # Errors
    /// Memory of theirs is gone.
    pub fn wait_line(&mut self, env: &Env<'_>, line: Line) -> Result<(), Cause> {
        while let Some(i) = self.asynchronous.operations.iter().position(|o| o.line == Some(line)) {
            self.complete(env, i)?;
        }
        Ok(())
    }

    /// Somebody waits for the mbarrier at `barrier`: completes what it waits for, oldest first, until `is_over`. Copies of
    /// `cp.async` come before, since an arrival may wait for many.
    ///
    /// # Errors
    /// Memory of theirs is gone, or the barrier is none.
    pub fn hurry(&mut self, env: &Env<'_>, barrier: u64, is_over: impl Fn() -> bool) -> Result<(), Cause> {
        let changed = &mut self.changed;
        self.asynchronous
            .copies
            .hurry(env, barrier, &is_over, &mut |at| arrive(env, at, changed))?;
        while !is_over() {
            let waits_for_it = |o: &Operation| o.completion.barrier() == Some(barrier);
            let Some(i) = self.asynchronous.operations.iter().position(waits_for_it) else {
                break;
            };
            self.complete(env, self.asynchronous.first_of_line(i))?;
        }
        Ok(())
    }

    /// Nobody gets on: completes everything. `false`: there was nothing.
    ///
    /// # Errors
    /// Memory of theirs is gone.
    pub fn advance(&mut self, env: &Env<'_>) -> Result<bool, Cause> {
        if self.asynchronous.is_idle() {
            return Ok(false);
        }
        self.finish(env)?;
        self.changed = true;
        Ok(true)
    }

    /// A block of a cluster has ended, and its copies of `cp.async` complete: what else it began others may wait for.
    ///
    /// # Errors
    /// Memory of theirs is gone.
    pub fn end_copies(&mut self, env: &Env<'_>) -> Result<(), Cause> {
        let changed = &mut self.changed;
        let copies = &mut self.asynchronous.copies;
        copies.finish(env, &mut |at| arrive(env, at, changed))
    }

    /// Completes everything.
    ///
    /// # Errors
    /// Memory of theirs is gone.
    fn finish(&mut self, env: &Env<'_>) -> Result<(), Cause> {
        self.end_copies(env)?;
        while !self.asynchronous.operations.is_empty() {
            self.complete(env, 0)?;
        }
        self.asynchronous.groups.clear();
        self.asynchronous.fabric_groups.clear();
        Ok(())
    }

    /// The block has ended, or the cluster: everything completes, and what lay in shared memory is no more.
    ///
    /// # Errors
    /// Memory of theirs is gone, tensor memory is still allocated, or fabric operations were never submitted.
    pub fn end(&mut self, env: &Env<'_>) -> Result<(), Cause> {
        if !self.asynchronous.is_fresh() {
            self.finish(env)?;
        }
        if let Some(held) = self.asynchronous.held.first() {
            return Err(held.unsubmitted());
        }
        if let Some(observer) = env.env.watch().observer() {
            let event = GridEvent::Left {
                block: env.ctaid,
                barriers: self.asynchronous.barriers.objects(),
            };
            observer.grid(env.env.launch().grid_id, &event);
        }
        self.asynchronous.barriers.clear();
        match self.tensor.left() {
            0 => Ok(()),
            columns => Err(Cause::TensorMemoryLeak { columns }),
        }
    }

    /// A moment at which something may complete: under a seed it is drawn whether, and what.
    ///
    /// # Errors
    /// Memory of it is gone.
    pub fn draw(&mut self, env: &Env<'_>) -> Result<(), Cause> {
        if self.asynchronous.is_idle() {
            return Ok(());
        }
        match env.env.completes() {
            Some(true) => return self.advance(env).map(drop),
            Some(false) => return Ok(()),
            None if env.env.draw(4) != Some(0) => return Ok(()),
            None => {}
        }
        let (copies, others) = (self.asynchronous.copies.count(), self.asynchronous.operations.len());
        let Some(drawn) = env.env.draw((copies + others) as u64) else {
            return Ok(());
        };
        let drawn = drawn as usize;
        if drawn < copies {
            let changed = &mut self.changed;
            let arrive = &mut |at| arrive(env, at, changed);
            return self.asynchronous.copies.finish_one(env, drawn, arrive);
        }
        self.complete(env, self.asynchronous.first_of_line(drawn - copies))
    }

    /// Such a moment, behind an instruction that lanes of `cx` have carried out.
    ///
    /// # Errors
    /// Memory of what completes is gone.
    pub fn draw_behind(&mut self, cx: &Cx<'_>) -> Result<(), RawFault> {
        self.draw(cx.block).map_err(|cause| RawFault {
            cause,
            lane: first_lane(&cx.mask.lanes),
            others: 0,
        })
    }

    /// Completes operation `i`.
    pub(super) fn complete(&mut self, env: &Env<'_>, i: usize) -> Result<(), Cause> {
        let mut operation = self.asynchronous.operations.remove(i);
        let report = operation.work.finish(env)?;
        env.env.watch().grid(
            env.env.launch().grid_id,
            &GridEvent::Complete {
                block: operation.owner.block,
                operation: operation.number,
                lanes: 1 << (operation.owner.thread % 32),
            },
        );
        match operation.completion {
            Completion::Nothing | Completion::Group => Ok(()),
            Completion::Bytes { barrier, bytes: count } | Completion::Fabric { barrier, count } => {
                let over = change(env, barrier, |object| {
                    if report.set {
                        object.report(report.value)?;
                    }
                    object.complete(count.into())
                })?;
                self.changed |= over;
                Ok(())
            }
            Completion::Arrival { barrier } => arrive(env, barrier, &mut self.changed),
        }
    }
}

fn arrive(env: &Env<'_>, barrier: u64, changed: &mut bool) -> Result<(), Cause> {
    *changed |= change(env, barrier, |object| object.arrive(1))?;
    Ok(())
}

fn change<T>(
    env: &Env<'_>,
    barrier: u64,
    change: impl FnOnce(&mut mbarrier::Mbarrier) -> Result<T, String>,
) -> Result<T, Cause> {
    // SAFETY: the address was checked when the operation began, and shared windows are there until it has completed.
    let out = unsafe { mbarrier::update(barrier, change) };
    out.map_err(|why| mbarrier::misuse(barrier.wrapping_sub(env.cluster_shared()), &why))
}
