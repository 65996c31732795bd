//! The threads that run streams when nobody waits for them.
//!
//! A thread that takes up a stream makes sure first that another one stands by, so that a stream that blocks (a host
//! function, a long kernel) never holds up the rest, and the caller of a launch never pays for starting a thread. One idle
//! thread spins for a few tens of microseconds before it sleeps: in a run of launches no wake-up system call is needed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::defect;
use crate::driver::process::room::room_to_work;
use crate::driver::stream::Stream;

/// Streams that can run at the same time, at most.
const MOST: usize = 96;
/// How long an idle thread looks out before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// A stream that has run so many commands lets others have a turn.
pub(in crate::driver) const TURN: u32 = 64;
/// Stream priorities run from 0 to -5.
pub(in crate::driver) const GREATEST_PRIORITY: i32 = -5;
const LEVELS: usize = 6;

/// What a thread is to take up.
enum Ready {
    Stream(Arc<Stream>),
    /// A part of what a stream is doing, which the thread that runs that one waits for.
    Part(Part),
}

type Part = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    ready: [VecDeque<Ready>; LEVELS],
    spinning: usize,
    sleeping: usize,
    threads: usize,
}

struct Pumps {
    state: Mutex<State>,
    /// How many are in `ready`, readable without the lock.
    count: AtomicUsize,
    /// Not one thread is there.
    nobody: AtomicBool,
    wake: Condvar,
    spin: Duration,
}

fn pumps() -> &'static Pumps {
    static PUMPS: OnceLock<Pumps> = OnceLock::new();
    PUMPS.get_or_init(|| Pumps {
        state: Mutex::default(),
        count: AtomicUsize::new(0),
        nobody: AtomicBool::new(false),
        wake: Condvar::new(),
        spin: if several_cores() { SPIN } else { Duration::ZERO },
    })
}

/// Whether spinning can help at all.
pub(in crate::driver) fn several_cores() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1))
}

/// Puts a stream in line. The caller has marked it as queued.
pub(in crate::driver) fn schedule(stream: Arc<Stream>) {
    let level = (-stream.priority()).clamp(0, LEVELS as i32 - 1) as usize;
    queue(level, Ready::Stream(stream));
}

/// Has another thread run a part of what a stream is doing, before any stream that is in line. Where no thread can be had
/// nobody does: the caller must be able to do without.
pub(in crate::driver) fn help(part: Part) {
    queue(LEVELS - 1, Ready::Part(part));
}

fn queue(level: usize, ready: Ready) {
    let pumps = pumps();
    let mut state = pumps.state.lock();
    match ready {
        Ready::Stream(_) => state.ready[level].push_back(ready),
        Ready::Part(_) => state.ready[level].push_front(ready),
    }
    pumps.count.fetch_add(1, Ordering::Release);
    if state.threads == 0 {
        start(pumps, &mut state);
    } else if state.spinning == 0 && state.sleeping > 0 {
        drop(state);
        pumps.wake.notify_one();
    }
}

/// Whether streams are waiting for a thread.
pub(in crate::driver) fn pressed() -> bool {
    pumps().count.load(Ordering::Relaxed) > 0
}

/// Whether no thread could be started: whoever waits for a stream runs it then, on however small a stack.
pub(in crate::driver) fn nobody() -> bool {
    pumps().nobody.load(Ordering::Relaxed)
}

fn start(pumps: &Pumps, state: &mut State) {
    if state.threads == MOST {
        return;
    }
    // A thread that begins where there is no memory ends the process.
    let started = room_to_work().is_ok() && spawn();
    // Without a thread the work is done by whoever waits for it.
    if started {
        state.threads += 1;
    }
    pumps.nobody.store(state.threads == 0, Ordering::Relaxed);
}

fn spawn() -> bool {
    let started = std::thread::Builder::new()
        .name("margay-stream".into())
        // Kernels run on these threads.
        .stack_size(8 << 20)
        .spawn(run);
    started.is_ok()
}

fn run() {
    block_signals();
    let pumps = pumps();
    loop {
        match next(pumps) {
            Ready::Stream(stream) => finish(stream, Stream::pump_in_turn),
            Ready::Part(part) => {
                if let Err(defect) = defect::catch(part) {
                    tracing::error!("{defect}\n  at the end of a part of a stream's work");
                }
            }
        }
    }
}

/// Does the last thing with a stream, whose end it may be, and that of all that hangs on it. What goes wrong in its
/// commands is caught in there.
fn finish(stream: Arc<Stream>, work: impl FnOnce(&Arc<Stream>)) {
    if let Err(defect) = defect::catch(move || work(&stream)) {
        tracing::error!("{defect}\n  at the end of a stream");
    }
}

fn next(pumps: &Pumps) -> Ready {
    let mut state = pumps.state.lock();
    loop {
        if let Some(ready) = state.ready.iter_mut().rev().find_map(VecDeque::pop_front) {
            let left = pumps.count.fetch_sub(1, Ordering::Relaxed) - 1;
            if let Ready::Stream(stream) = &ready
                && !stream.claim()
            {
                // Counted as one that looks out, as it will in a moment: nobody need be woken meanwhile. The stream may end
                // here, with all that hangs on it.
                state.spinning += 1;
                MutexGuard::unlocked(&mut state, || {
                    if let Ready::Stream(stream) = ready {
                        finish(stream, |_| {});
                    }
                });
                state.spinning -= 1;
                continue;
            }
            if state.spinning + state.sleeping == 0 {
                start(pumps, &mut state);
            } else if left > 0 && state.spinning == 0 {
                pumps.wake.notify_one();
            }
            return ready;
        }
        if state.spinning == 0 && !pumps.spin.is_zero() {
            state.spinning += 1;
            drop(state);
            let began = Instant::now();
            while pumps.count.load(Ordering::Acquire) == 0 && began.elapsed() < pumps.spin {
                for _ in 0..32 {
                    std::hint::spin_loop();
                }
            }
            state = pumps.state.lock();
            state.spinning -= 1;
            if pumps.count.load(Ordering::Relaxed) > 0 {
                continue;
            }
        }
        state.sleeping += 1;
        pumps.wake.wait(&mut state);
        state.sleeping -= 1;
    }
}

/// The program's signals are for the program's threads.
fn block_signals() {
    // SAFETY: an all-zero sigset_t is valid to fill, and the mask concerns this thread alone.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        for synchronous in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP] {
            libc::sigdelset(&mut all, synchronous);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
}
