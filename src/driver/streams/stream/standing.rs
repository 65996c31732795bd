//! How far a stream is, for who looks for deadlocks.

use std::sync::atomic::Ordering;

use super::{Command, State, Stream};
use crate::driver::Handle;

/// What a stream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::driver) enum Doing {
    /// In line for a thread.
    InLine,
    Runs,
    /// For the stream of this number.
    WaitsFor(u64),
}

/// How far a stream is.
#[derive(Clone, Copy, Debug)]
pub(in crate::driver) struct Standing {
    pub id: u64,
    pub handle: Handle,
    pub completed: u64,
    pub doing: Doing,
    /// Commands after the one that runs or waits.
    pub behind: usize,
}

impl Stream {
    /// What it does, for people: `None`, if nothing is in it.
    pub(in crate::driver) fn standing(&self) -> Option<Standing> {
        let queue = self.queue.lock();
        let behind = match queue.state {
            State::Running => queue.commands.len(),
            State::Idle | State::Queued | State::Parked => queue.commands.len().saturating_sub(1),
        };
        let doing = match (queue.state, queue.commands.front()) {
            (State::Idle, _) => return None,
            (State::Queued, _) => Doing::InLine,
            (State::Parked, Some(Command::Wait(point))) => Doing::WaitsFor(point.stream.id),
            (State::Running | State::Parked, _) => Doing::Runs,
        };
        Some(Standing {
            id: self.id,
            handle: self.handle,
            completed: self.completed.load(Ordering::Acquire),
            doing,
            behind,
        })
    }
}
