//! A moment in which no stream of the process does anything: for what cannot be changed under running work.
//!
//! Whoever holds the claim on a stream is the only one to run it, so holding all claims is a standstill, and costs those
//! who run streams nothing. Streams that are parked wait for others, whose claims are held; new ones are not made meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Command, MAKING, State, Stream, pump};
use crate::driver::context;

/// How long claims are held while others still run: what runs may wait for what is held.
const PATIENCE: Duration = Duration::from_millis(20);
/// When it is worth a word that something keeps running.
const LONG: Duration = Duration::from_secs(10);

/// Runs `work` when no command of any stream runs, which it waits for.
pub(in crate::driver) fn standstill<R>(why: &str, work: impl FnOnce() -> R) -> R {
    let (began, mut told) = (Instant::now(), false);
    loop {
        context::drain_all();
        let making = MAKING.write();
        let mut held = Held::default();
        let tried = Instant::now();
        let streams = context::all_streams();
        while !held.claim(&streams) && tried.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(50));
        }
        if held.is_complete(&streams) {
            return work();
        }
        drop(held);
        drop(making);
        if !told && began.elapsed() > LONG {
            told = true;
            tracing::warn!("{why} waits for the work of all streams, some of which keeps running");
        }
    }
}

/// Streams whose claims are held.
#[derive(Default)]
struct Held(Vec<Arc<Stream>>);

impl Held {
    /// Takes what claims there are to have; `true`: nobody runs anything.
    fn claim(&mut self, streams: &[Arc<Stream>]) -> bool {
        let mut all = true;
        for stream in streams {
            if self.has(stream) {
                continue;
            }
            let mut queue = stream.queue.lock();
            match queue.state {
                State::Idle | State::Queued => {
                    queue.state = State::Running;
                    self.0.push(Arc::clone(stream));
                }
                State::Running => all = false,
                State::Parked => {}
            }
        }
        all && self.is_complete(streams)
    }

    fn has(&self, stream: &Arc<Stream>) -> bool {
        self.0.iter().any(|held| Arc::ptr_eq(held, stream))
    }

    /// Whether all others are parked, at points that are not reached: those cannot be reached now.
    fn is_complete(&self, streams: &[Arc<Stream>]) -> bool {
        streams.iter().all(|stream| {
            self.has(stream) || {
                let queue = stream.queue.lock();
                let waits = matches!(queue.commands.front(), Some(Command::Wait(point)) if !point.is_done());
                queue.state == State::Parked && waits
            }
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for stream in self.0.drain(..) {
            let mut queue = stream.queue.lock();
            if queue.commands.is_empty() {
                queue.state = State::Idle;
            } else {
                queue.state = State::Queued;
                drop(queue);
                pump::schedule(stream);
            }
        }
    }
}
