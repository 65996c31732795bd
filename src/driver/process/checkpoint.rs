//! Checkpoints of this process (driver API manual, "CUDA Checkpointing"): locked, its calls wait; checkpointed, its devices
//! hold nothing that its host memory does not; restored and unlocked, it goes on.
//!
//! All memory of devices here is host memory, which a checkpoint of the process takes along anyway: there is nothing to
//! bring over, and nothing to bring back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::stage::{STAGE, Stage};
use crate::driver::stream::check_host_function;
use crate::driver::{Device, Error, Result, context};

/// `CUprocessState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    Running = 0,
    Locked = 1,
    Checkpointed = 2,
}

static STATE: AtomicU32 = AtomicU32::new(State::Running as u32);
/// Held while the state changes.
static CHANGE: Mutex<()> = Mutex::new(());
static UNLOCKED: Condvar = Condvar::new();

pub fn state() -> State {
    match STATE.load(Ordering::Acquire) {
        0 => State::Running,
        1 => State::Locked,
        _ => State::Checkpointed,
    }
}

fn set(state: State) {
    STATE.store(state as u32, Ordering::Release);
}

/// How often a lock with a time limit looks whether work is done.
const GLANCE: Duration = Duration::from_micros(200);

/// `cuCheckpointProcessLock`: calls wait from now on, and what is in streams is done.
///
/// # Errors
/// 401 unless it runs; 600 when work is not done in time: then it runs on.
pub fn lock(limit: Option<Duration>) -> Result<()> {
    let _change = CHANGE.lock();
    if state() != State::Running {
        return Err(Error::IllegalState);
    }
    let began = Instant::now();
    STAGE.store(Stage::Locked as u8, Ordering::Release);
    while context::any_busy() {
        match limit {
            Some(limit) if began.elapsed() >= limit => {
                STAGE.store(Stage::Ready as u8, Ordering::Release);
                UNLOCKED.notify_all();
                return Err(Error::NotReady);
            }
            Some(_) => std::thread::sleep(GLANCE),
            None => context::drain_all(),
        }
    }
    set(State::Locked);
    Ok(())
}

/// `cuCheckpointProcessCheckpoint`: 401 unless it is locked.
pub fn checkpoint() -> Result<()> {
    change(State::Locked, State::Checkpointed)
}

/// `cuCheckpointProcessRestore`: 401 unless it is checkpointed. `devices` are pairs of UUIDs, old and new: all or none, each
/// onto itself.
///
/// # Errors
/// 401; 1 for pairs that do not name every device; 801 for a device that is to take another's place.
pub fn restore(devices: &[([u8; 16], [u8; 16])]) -> Result<()> {
    if state() != State::Checkpointed {
        return Err(Error::IllegalState);
    }
    let named = |device: &Device| devices.iter().any(|(old, _)| *old == device.uuid());
    if !devices.is_empty() && !Device::all().iter().all(named) {
        return Err(Error::InvalidValue);
    }
    if devices.iter().any(|(old, new)| old != new) {
        return Err(Error::NotSupported);
    }
    change(State::Checkpointed, State::Locked)
}

/// `cuCheckpointProcessUnlock`: 401 unless it is locked.
pub fn unlock() -> Result<()> {
    change(State::Locked, State::Running)?;
    STAGE.store(Stage::Ready as u8, Ordering::Release);
    UNLOCKED.notify_all();
    Ok(())
}

fn change(from: State, to: State) -> Result<()> {
    let _change = CHANGE.lock();
    if state() != from {
        return Err(Error::IllegalState);
    }
    set(to);
    Ok(())
}

/// A call that finds the process locked waits here.
///
/// # Errors
/// 800 in a host function, which whoever locks the process waits for.
pub(in crate::driver) fn wait() -> Result<()> {
    check_host_function()?;
    let mut change = CHANGE.lock();
    while STAGE.load(Ordering::Acquire) == Stage::Locked as u8 {
        UNLOCKED.wait(&mut change);
    }
    Ok(())
}
