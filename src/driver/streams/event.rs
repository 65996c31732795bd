//! Events: points in streams, with the time at which they were reached.
//!
//! An event is its last recording (`recording.rs`): recording it again changes nothing for those who already wait.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::recording::Recording;
use crate::driver::context::Shared;
use crate::driver::handle::{self, Registry};
use crate::driver::interprocess::Interprocess;
use crate::driver::stream::{Command, Point, Role};
use crate::driver::{Context, Error, Handle, Result, Stream};
use crate::sanitizer::between::{self, Mark};

const BLOCKING_SYNC: u32 = 1;
const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;

pub struct Event {
    handle: Handle,
    flags: u32,
    pub(super) shared: Arc<Shared>,
    state: Mutex<State>,
    interprocess: Option<Arc<Interprocess>>,
    /// The number of this process's last recording of an interprocess event.
    own: AtomicU64,
    /// Waits for other processes' recordings, so that they are points like others.
    watch: OnceLock<Arc<Stream>>,
}

/// The last recording.
#[derive(Clone, Default)]
enum State {
    #[default]
    None,
    Recorded(Arc<Recording>),
    /// In a stream that records.
    Captured(Arc<dyn Captured>),
}

/// A point in a stream that records: of what kind, only graphs know.
pub(in crate::driver) trait Captured: Any + Send + Sync {
    /// The program asks for what cannot be known before the graph runs.
    fn refuse(&self) -> Error;
}

static EVENTS: Registry<Event> = Registry::new();

impl Event {
    /// `cuEventCreate`: flags 1 blocking sync, 2 no timing, 4 interprocess (which needs 2).
    pub fn create(flags: u32) -> Result<Arc<Event>> {
        let context = Context::usable()?;
        if flags & !(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS) != 0
            || flags & (INTERPROCESS | DISABLE_TIMING) == INTERPROCESS
        {
            return Err(Error::InvalidValue);
        }
        let interprocess = match flags & INTERPROCESS {
            0 => None,
            _ => Some(Interprocess::create()?),
        };
        Ok(Event::register(&context, flags, interprocess))
    }

    fn register(context: &Context, flags: u32, interprocess: Option<Interprocess>) -> Arc<Event> {
        let event = Arc::new(Event {
            handle: handle::fresh(),
            flags,
            shared: Arc::clone(context.shared()),
            state: Mutex::default(),
            interprocess: interprocess.map(Arc::new),
            own: AtomicU64::new(0),
            watch: OnceLock::new(),
        });
        EVENTS.insert(event.handle, &event);
        event
    }

    /// `cuIpcGetEventHandle`: 400 unless it was created as an interprocess event.
    pub fn ipc_handle(&self) -> Result<[u8; 64]> {
        let shared = self.interprocess.as_ref().ok_or(Error::InvalidHandle)?;
        Ok(shared.handle())
    }

    /// `cuIpcOpenEventHandle`: an event that takes no times.
    ///
    /// # Errors
    /// As [`Interprocess::open`].
    pub fn open_ipc(handle: &[u8; 64]) -> Result<Arc<Event>> {
        let context = Context::usable()?;
        let shared = Interprocess::open(handle)?;
        Ok(Event::register(&context, INTERPROCESS | DISABLE_TIMING, Some(shared)))
    }

    pub fn from_handle(handle: Handle) -> Result<Arc<Event>> {
        EVENTS.get(handle).ok_or(Error::InvalidHandle)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// `cuEventRecord`: event and stream belong to the same context.
    /// An `external` recording (`CU_EVENT_RECORD_EXTERNAL`) becomes a node of the graph that the stream records into.
    pub fn record(self: &Arc<Event>, stream: &Arc<Stream>, external: bool) -> Result<()> {
        if !Arc::ptr_eq(&self.shared, &stream.shared) {
            return Err(Error::InvalidHandle);
        }
        self.shared.check()?;
        if let Some(capture) = stream.admit()? {
            return stream.record_captured(self, &capture, external);
        }
        if external {
            return Err(Error::InvalidValue);
        }
        let recording = stream.record(self.flags & DISABLE_TIMING == 0);
        recording.set_order(between::mark(stream));
        self.set_recording(recording);
        Ok(())
    }

    /// What was recorded is in its stream already.
    pub(in crate::driver) fn set_recording(&self, recording: Arc<Recording>) {
        let mut state = self.state.lock();
        if let Some(shared) = &self.interprocess {
            let number = shared.record();
            self.own.store(number, Ordering::Release);
            let shared = Arc::clone(shared);
            if let Err(reach) = recording.stream().try_now(move || shared.reach(number)) {
                recording.stream().enqueue(Command::Always(Box::new(move |_| reach())));
            }
        }
        *state = State::Recorded(recording);
    }

    /// The last recording, if it is another process's and not known to be reached.
    pub(super) fn foreign(&self) -> Option<(&Arc<Interprocess>, u64)> {
        let shared = self.interprocess.as_ref()?;
        let last = shared.last();
        (last != self.own.load(Ordering::Acquire) && !shared.is_reached(last)).then_some((shared, last))
    }

    /// The place in a stream of ours at which another process's recording is reached.
    fn watch(&self, shared: &Arc<Interprocess>, number: u64) -> Point {
        let stream = self
            .watch
            .get_or_init(|| Stream::build(Weak::new(), &self.shared, Role::Created, 1, 0, None, None));
        let shared = Arc::clone(shared);
        let wait = move |context: &Shared| shared.wait(number, || context.has_failed());
        let ticket = stream.enqueue(Command::Always(Box::new(wait)));
        Point {
            stream: Arc::clone(stream),
            ticket,
        }
    }

    pub(in crate::driver) fn set_captured(&self, captured: Arc<dyn Captured>) {
        *self.state.lock() = State::Captured(captured);
    }

    pub(in crate::driver) fn captured(&self) -> Option<Arc<dyn Captured>> {
        match &*self.state.lock() {
            State::Captured(captured) => Some(Arc::clone(captured)),
            State::None | State::Recorded(_) => None,
        }
    }

    /// The last recording; 907 when it is in a graph.
    pub(super) fn recording(&self) -> Result<Option<Arc<Recording>>> {
        match &*self.state.lock() {
            State::None => Ok(None),
            State::Recorded(recording) => Ok(Some(Arc::clone(recording))),
            State::Captured(captured) => Err(captured.refuse()),
        }
    }

    /// What lies before the last recording, where somebody looks for races; of another process's nothing is known.
    pub(in crate::driver) fn order(&self) -> Option<Mark> {
        if !between::is_on() || self.foreign().is_some() {
            return None;
        }
        match &*self.state.lock() {
            State::Recorded(recording) => recording.order().cloned(),
            State::None | State::Captured(_) => None,
        }
    }

    /// What has to be done for the event to be complete; `None` when it was never recorded.
    pub(in crate::driver) fn point(&self) -> Option<Point> {
        let state = self.state.lock();
        if let Some((shared, number)) = self.foreign() {
            return Some(self.watch(shared, number));
        }
        match &*state {
            State::Recorded(recording) => Some(recording.point()),
            State::None | State::Captured(_) => None,
        }
    }

    /// `cuEventElapsedTime`, in milliseconds: 400 when one was never recorded or takes no time, 600 when one is not
    /// complete.
    pub fn elapsed(start: &Event, end: &Event) -> Result<f32> {
        start.shared.check()?;
        if !Arc::ptr_eq(&start.shared, &end.shared) {
            return Err(Error::InvalidHandle);
        }
        let time = |event: &Event| {
            if event.flags & DISABLE_TIMING != 0 {
                return Err(Error::InvalidHandle);
            }
            let recording = event.recording()?.ok_or(Error::InvalidHandle)?;
            if !recording.point().is_done() {
                return Err(Error::NotReady);
            }
            Ok(recording.time())
        };
        let (start, end) = (time(start)?, time(end)?);
        Ok(((end as i64 - start as i64) as f64 / 1e6) as f32)
    }

    /// `cuEventDestroy`: what waits for it goes on waiting.
    pub fn destroy(self: &Arc<Event>) -> Result<()> {
        EVENTS.remove(self.handle).map(|_| ()).ok_or(Error::InvalidHandle)
    }

    pub(in crate::driver) fn forget_all_of(shared: &Arc<Shared>) {
        EVENTS.take(|event| Arc::ptr_eq(&event.shared, shared));
    }
}
