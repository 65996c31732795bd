//! Who runs commands: threads of [`pump`](crate::driver::pump), or whoever waits.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::stack::has_room;
use super::{Command, Queue, Sleeper, State, Stream, Turn, Waiter, guarded};
use crate::defect;
use crate::driver::process::waits;
use crate::driver::pump;

/// How long a waiting thread looks on before it sleeps.
const SPIN: Duration = Duration::from_micros(20);
/// Streams waiting for streams waiting for …: how far a waiting thread goes to help.
const HELP_DEPTH: u32 = 64;

impl Stream {
    /// Takes the claim on a stream that was in line; `false`: a waiting thread has been quicker.
    pub(in crate::driver) fn claim(&self) -> bool {
        let mut queue = self.queue.lock();
        let is_ours = queue.state == State::Queued;
        if is_ours {
            queue.state = State::Running;
        }
        is_ours
    }

    /// The turn of a thread that has claimed it.
    pub(in crate::driver) fn pump_in_turn(self: &Arc<Stream>) {
        self.pump(u64::MAX, pump::TURN);
    }

    /// Runs commands until `until` is completed, nothing is left, the next one has to wait, or the turn is over and others
    /// are in line. The caller has the claim, and loses it.
    fn pump(self: &Arc<Stream>, until: u64, turn: u32) {
        let under_way = Cell::new(false);
        // A bug of ours must not take the thread, and everything queued, with it.
        if let Err(defect) = defect::within(|| self.pump_commands(until, turn, &under_way)) {
            let what = match under_way.get() {
                true => "a command of a stream",
                false => "the queue of a stream",
            };
            self.shared.fail_by(&defect, what);
            // What is left of the stream goes on, without work.
            drop(Turn {
                stream: self,
                completes: under_way.get(),
            });
        }
    }

    /// `under_way` says whether a command has been taken from the queue and is not completed.
    fn pump_commands(self: &Arc<Stream>, until: u64, mut turn: u32, under_way: &Cell<bool>) {
        let mut queue = self.queue.lock();
        loop {
            let command = match queue.commands.front() {
                None => {
                    queue.state = State::Idle;
                    return;
                }
                Some(_) if self.completed.load(Ordering::Relaxed) >= until || (turn == 0 && pump::pressed()) => {
                    queue.state = State::Queued;
                    drop(queue);
                    pump::schedule(Arc::clone(self));
                    return;
                }
                Some(Command::Wait(point)) if !point.is_done() => {
                    let point = point.clone();
                    queue.state = State::Parked;
                    drop(queue);
                    let waiter = Waiter::Stream(Arc::clone(self));
                    if point.stream.add_waiter(point.ticket, waiter) {
                        return;
                    }
                    // Done meanwhile, and nobody knows of us: the claim is still ours to take.
                    queue = self.queue.lock();
                    queue.state = State::Running;
                    continue;
                }
                Some(_) => queue.commands.pop_front(),
            };
            drop(queue);
            if let Some(command) = command {
                under_way.set(true);
                self.execute(command);
                under_way.set(false);
            }
            // One hold of the lock completes this command and takes the next: whoever fills the queue wants it, too.
            queue = self.queue.lock();
            let due = self.complete_one(&mut queue);
            if !due.is_empty() {
                drop(queue);
                due.into_iter().for_each(Waiter::wake);
                queue = self.queue.lock();
            }
            defect::may_fail("queue", self.shared.id);
            turn = turn.saturating_sub(1);
        }
    }

    fn execute(&self, command: Command) {
        match command {
            Command::Wait(_) => {}
            Command::Record(recording) => recording.stamp(),
            Command::Work(_) if self.shared.has_failed() => {}
            Command::Work(task) | Command::Always(task) => {
                defect::may_fail("command", self.shared.id);
                guarded(&self.shared, || task(&self.shared));
            }
        }
    }

    /// Answers who waits for it, to be woken when the lock is not held any more.
    pub(super) fn complete_one(&self, queue: &mut Queue) -> Vec<Waiter> {
        let completed = self.completed.load(Ordering::Relaxed) + 1;
        self.completed.store(completed, Ordering::Release);
        let due = queue.waiters.extract_if(.., |(ticket, _)| *ticket <= completed);
        due.map(|waiter| waiter.1).collect()
    }

    /// `false`: the ticket is completed already, and nobody will call.
    fn add_waiter(&self, ticket: u64, waiter: Waiter) -> bool {
        let mut queue = self.queue.lock();
        if self.completed.load(Ordering::Relaxed) >= ticket {
            return false;
        }
        queue.waiters.push((ticket, waiter));
        true
    }

    /// Returns when a command is completed; runs the stream itself if nobody else does.
    pub(in crate::driver) fn wait_for(self: &Arc<Stream>, ticket: u64) {
        let _waits = waits::host_waits(self.id);
        self.help(ticket, 0);
    }

    fn help(self: &Arc<Stream>, ticket: u64, depth: u32) {
        loop {
            if self.completed.load(Ordering::Acquire) >= ticket {
                return;
            }
            let mut queue = self.queue.lock();
            // Again, now that nothing moves: a stream that has gone past the ticket may be parked at a point that is of
            // no concern, or even one that the calling thread is on the way to.
            if self.completed.load(Ordering::Acquire) >= ticket {
                return;
            }
            match queue.state {
                State::Queued if has_room() => {
                    queue.state = State::Running;
                    drop(queue);
                    self.pump(ticket, u32::MAX);
                }
                State::Parked if depth < HELP_DEPTH => {
                    let point = match queue.commands.front() {
                        Some(Command::Wait(point)) => point.clone(),
                        _ => unreachable!("a parked stream waits for a point"),
                    };
                    drop(queue);
                    point.stream.help(point.ticket, depth + 1);
                    // Whoever completed the point is about to put us in line.
                    std::hint::spin_loop();
                }
                State::Idle | State::Queued | State::Running | State::Parked => {
                    drop(queue);
                    self.look_on(ticket, depth);
                }
            }
        }
    }

    /// Somebody else is at it: watch a little, then sleep until the ticket is completed.
    fn look_on(self: &Arc<Stream>, ticket: u64, depth: u32) {
        if pump::several_cores() {
            let began = Instant::now();
            while began.elapsed() < SPIN {
                for _ in 0..32 {
                    if self.completed.load(Ordering::Acquire) >= ticket {
                        return;
                    }
                    std::hint::spin_loop();
                }
            }
            // It may have come to rest at another ticket, or at a point: worth another look before sleeping.
            match self.queue.lock().state {
                State::Queued if has_room() => return,
                State::Parked if depth < HELP_DEPTH => return,
                State::Idle | State::Queued | State::Running | State::Parked => {}
            }
        }
        let sleeper = Arc::new(Sleeper::default());
        if self.add_waiter(ticket, Waiter::Thread(Arc::clone(&sleeper))) {
            sleeper.sleep();
        }
    }
}
