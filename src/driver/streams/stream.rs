//! Streams: queues with CUDA's order.
//!
//! A command runs, marks a point in time, or waits for a point of another stream: no more is known of it here.
//!
//! **Tickets.** The n-th command of a stream has ticket n, and `completed` is the ticket of the last one done: a place in
//! a stream is a [`Point`] (stream, ticket), and everything that waits, waits for a point.
//!
//! **Who runs commands.** Whoever has the claim on a stream: a thread of [`crate::driver::pump`], or a thread that waits for the
//! stream and runs it itself meanwhile, which saves two hand-overs between threads. No lock is held while a command runs.
//! A stream whose next command waits for a point of another stream is parked: it costs no thread, and whoever completes
//! the point puts it back in line.
//!
//! **Default streams** (CUDA driver API manual, "Stream synchronization behavior"): a command of the legacy stream waits
//! for everything in blocking streams that was there before it, a command of a blocking stream for everything in the
//! legacy one; both become points that the command's stream waits for.
//!
//! ```text
//! stream.rs  what a stream is; what comes into its queue    run.rs         running it, waiting for it
//! stack.rs   whether a thread may run kernels               standstill.rs  nothing runs
//! standing.rs  how far a stream is
//! ```

mod run;
mod stack;
mod standing;
mod standstill;

pub(in crate::driver) use standing::{Doing, Standing};
pub(in crate::driver) use standstill::standstill;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard};

use super::recording::Recording;
use crate::driver::context::Shared;
use crate::driver::handle::{self, Registry};
use crate::driver::per_thread::{Held, PerThread};
use crate::driver::process::waits;
use crate::driver::profile::multiprocessors;
use crate::driver::pump::{self, GREATEST_PRIORITY};
use crate::driver::{Context, Error, Green, Handle, Result};
use crate::sanitizer::between::{self, Lane, Rule};
use crate::{defect, memory, simt};

/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`.
const LEGACY: Handle = 1;
const PER_THREAD: Handle = 2;

/// `cuLaunchHostFunc`: `(user data)`.
pub type HostFunction = extern "C" fn(usize);
/// `cuStreamAddCallback`: `(stream, CUresult, user data)`.
pub type Callback = extern "C" fn(Handle, u32, usize);

type Task = Box<dyn FnOnce(&Shared) + Send>;

/// What a stream does.
pub(in crate::driver) enum Command {
    /// Left out once the context has failed.
    Work(Task),
    /// Runs whatever has happened.
    Always(Task),
    /// Notes the time.
    Record(Arc<Recording>),
    Wait(Point),
}

/// Everything up to and including a command of a stream.
#[derive(Clone)]
pub(in crate::driver) struct Point {
    pub stream: Arc<Stream>,
    pub ticket: u64,
}

impl Point {
    pub fn is_done(&self) -> bool {
        self.stream.completed.load(Ordering::Acquire) >= self.ticket
    }
    pub fn wait(&self) {
        self.stream.wait_for(self.ticket);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing to do.
    Idle,
    /// In line for a thread.
    Queued,
    /// Some thread has the claim.
    Running,
    /// The next command waits for a point; whoever completes that one puts the stream back in line.
    Parked,
}

enum Waiter {
    Stream(Arc<Stream>),
    Thread(Arc<Sleeper>),
}

impl Waiter {
    /// What it waits for is completed. The lock of that stream is not held.
    fn wake(self) {
        match self {
            Waiter::Stream(stream) => {
                stream.queue.lock().state = State::Queued;
                pump::schedule(stream);
            }
            Waiter::Thread(sleeper) => sleeper.wake(),
        }
    }
}

/// A thread that waits: not one that is parked, for a thread whose storage is gone cannot be.
#[derive(Default)]
struct Sleeper {
    awake: Mutex<bool>,
    wake: Condvar,
}

impl Sleeper {
    fn sleep(&self) {
        self.wake.wait_while(&mut self.awake.lock(), |awake| !*awake);
    }

    fn wake(&self) {
        *self.awake.lock() = true;
        self.wake.notify_one();
    }
}

struct Queue {
    commands: VecDeque<Command>,
    state: State,
    waiters: Vec<(u64, Waiter)>,
    /// The ticket of the legacy stream that has been waited for already.
    legacy_seen: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::driver) enum Role {
    Legacy,
    PerThread,
    Created,
}

pub struct Stream {
    handle: Handle,
    id: u64,
    flags: u32,
    priority: i32,
    role: Role,
    context: Weak<Context>,
    pub(in crate::driver) shared: Arc<Shared>,
    /// The context's legacy stream, if this is another one and a blocking one.
    legacy: Option<Arc<Stream>>,
    green: Option<Arc<Green>>,
    queue: Mutex<Queue>,
    submitted: AtomicU64,
    completed: AtomicU64,
    /// What it has while it records into a graph what it is given: the graphs' own, and nobody else's to know.
    pub(in crate::driver) recorder: OnceLock<Box<dyn Any + Send + Sync>>,
    /// `cuStreamSetAttribute`: values of 64 bytes by number, kept for who asks for them back.
    attributes: Mutex<BTreeMap<u32, [u64; 8]>>,
}

/// Taken for writing by a standstill.
static MAKING: RwLock<()> = RwLock::new(());

/// Held while a stream is made, and known to its context.
pub(in crate::driver) fn making() -> RwLockReadGuard<'static, ()> {
    MAKING.read_recursive()
}

static STREAMS: Registry<Stream> = Registry::new();

/// A thread's default streams, by the context's number.
type Own = RefCell<Vec<(u64, Arc<Stream>)>>;

/// Exit handlers and static destructors still have them.
static OWN: PerThread<Own> = PerThread::new(&OWN_PLACE);

thread_local! {
    static OWN_PLACE: Cell<*mut Held<Own>> = const { Cell::new(std::ptr::null_mut()) };
    /// This thread is inside a host function.
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Host functions must not call the driver (manual, `cuLaunchHostFunc`): the calls that could dead-lock say 800.
pub(in crate::driver) fn check_host_function() -> Result<()> {
    match IN_HOST_FUNCTION.try_with(Cell::get) {
        Ok(true) => Err(Error::NotPermitted),
        _ => Ok(()),
    }
}

/// The claim on a stream, given back when this is dropped.
struct Turn<'a> {
    stream: &'a Arc<Stream>,
    /// One command is completed with it.
    completes: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut queue = self.stream.queue.lock();
        let due = match self.completes {
            true => self.stream.complete_one(&mut queue),
            false => Vec::new(),
        };
        let is_empty = queue.commands.is_empty();
        queue.state = if is_empty { State::Idle } else { State::Queued };
        drop(queue);
        due.into_iter().for_each(Waiter::wake);
        if !is_empty {
            pump::schedule(Arc::clone(self.stream));
        }
    }
}

/// Waits for a ticket when it is dropped.
struct Until<'a> {
    stream: &'a Arc<Stream>,
    ticket: u64,
}

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.stream.wait_for(self.ticket);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        between::stream_ends(self.id);
    }
}

impl Lane for Arc<Stream> {
    fn lane(&self) -> between::Stream {
        between::Stream {
            id: self.id,
            context: self.shared.id,
            handle: self.handle as u64,
            rule: match self.role {
                Role::Legacy => Rule::Legacy,
                Role::PerThread | Role::Created if self.is_blocking() => Rule::Blocking,
                Role::PerThread | Role::Created => Rule::NonBlocking,
            },
        }
    }
}

impl Stream {
    /// `cuStreamCreateWithPriority`: flags 0 or 1 (non-blocking).
    pub fn create(flags: u32, priority: i32) -> Result<Arc<Stream>> {
        Stream::create_in(&Context::usable()?, flags, priority)
    }

    /// In a context that need not be current; in one that stands for a green context, the stream is that one's.
    pub(in crate::driver) fn create_in(context: &Arc<Context>, flags: u32, priority: i32) -> Result<Arc<Stream>> {
        if flags > 1 {
            return Err(Error::InvalidValue);
        }
        let green = context.green();
        // Out of range: brought into it (manual).
        let priority = priority.clamp(GREATEST_PRIORITY, 0);
        let legacy = (flags == 0).then(|| Arc::clone(context.legacy()));
        let stream = Stream::build(
            Arc::downgrade(context),
            context.shared(),
            Role::Created,
            flags,
            priority,
            legacy,
            green.clone(),
        );
        if let Some(green) = green {
            green.add_stream(&stream);
        }
        STREAMS.insert(stream.handle, &stream);
        Ok(stream)
    }

    pub(in crate::driver) fn build(
        context: Weak<Context>,
        shared: &Arc<Shared>,
        role: Role,
        flags: u32,
        priority: i32,
        legacy: Option<Arc<Stream>>,
        green: Option<Arc<Green>>,
    ) -> Arc<Stream> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let _making = making();
        let stream = Arc::new(Stream {
            handle: match role {
                Role::Legacy => LEGACY,
                Role::PerThread => PER_THREAD,
                Role::Created => handle::fresh(),
            },
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            flags,
            priority,
            role,
            context,
            shared: Arc::clone(shared),
            legacy,
            green,
            queue: Mutex::new(Queue {
                commands: VecDeque::new(),
                state: State::Idle,
                waiters: Vec::new(),
                legacy_seen: 0,
            }),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            recorder: OnceLock::new(),
            attributes: Mutex::default(),
        });
        shared.add_stream(&stream);
        for point in shared.gates() {
            stream.wait_point(point);
        }
        stream
    }

    /// A `CUstream` as a call was given it: 0 is the legacy default stream, or the thread's own when `per_thread` (the
    /// `_ptsz` entry points); 1 and 2 are those two by name. 400 for what is not a stream; the context's sticky error.
    pub fn resolve(handle: Handle, per_thread: bool) -> Result<Arc<Stream>> {
        match handle {
            0 | LEGACY | PER_THREAD => Stream::resolve_in(&Context::usable()?, handle, per_thread),
            handle => Stream::created(handle),
        }
    }

    /// The same for calls that have found their context usable already.
    pub fn resolve_in(context: &Arc<Context>, handle: Handle, per_thread: bool) -> Result<Arc<Stream>> {
        match handle {
            0 if per_thread => Ok(Stream::of_thread(context)),
            PER_THREAD => Ok(Stream::of_thread(context)),
            0 | LEGACY => Ok(Arc::clone(context.legacy())),
            handle => Stream::created(handle),
        }
    }

    fn created(handle: Handle) -> Result<Arc<Stream>> {
        let stream = Stream::from_handle(handle)?;
        if stream.green.as_ref().is_some_and(|green| green.is_destroyed()) {
            return Err(Error::StreamDetached);
        }
        check_host_function()?;
        stream.shared.check()?;
        Ok(stream)
    }

    /// A created stream, whatever state its context is in (`cuStreamDestroy`).
    pub fn from_handle(handle: Handle) -> Result<Arc<Stream>> {
        STREAMS.get(handle).ok_or(Error::InvalidHandle)
    }

    /// The default stream of a call without a stream parameter.
    pub(in crate::driver) fn default(per_thread: bool) -> Result<Arc<Stream>> {
        Stream::resolve(0, per_thread)
    }

    fn of_thread(context: &Arc<Context>) -> Arc<Stream> {
        let id = context.shared().id;
        OWN.with(|own| {
            let mut own = own.borrow_mut();
            if let Some((_, stream)) = own.iter().find(|(context, _)| *context == id) {
                return Arc::clone(stream);
            }
            let legacy = Some(Arc::clone(context.legacy()));
            let weak = Arc::downgrade(context);
            let stream = Stream::build(weak, context.shared(), Role::PerThread, 0, 0, legacy, None);
            own.push((id, Arc::clone(&stream)));
            stream
        })
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }
    pub fn id(&self) -> u64 {
        self.id
    }
    pub fn flags(&self) -> u32 {
        self.flags
    }
    pub fn priority(&self) -> i32 {
        self.priority
    }
    /// The green context that it was made in, if that still is one.
    pub fn green(&self) -> Option<Arc<Green>> {
        self.green.clone()
    }

    /// An attribute that was set.
    pub fn attribute(&self, which: u32) -> Option<[u64; 8]> {
        self.attributes.lock().get(&which).copied()
    }

    pub fn set_attribute(&self, which: u32, value: [u64; 8]) {
        self.attributes.lock().insert(which, value);
    }

    /// `cuStreamCopyAttributes`: 1 for a stream of another context.
    pub fn copy_attributes(&self, from: &Stream) -> Result<()> {
        if !Arc::ptr_eq(&self.shared, &from.shared) {
            return Err(Error::InvalidValue);
        }
        let attributes = from.attributes.lock().clone();
        *self.attributes.lock() = attributes;
        Ok(())
    }

    /// It is one of the context's own, which programs have not made.
    pub fn is_default(&self) -> bool {
        self.role != Role::Created
    }

    /// Multiprocessors that its kernels may have.
    pub(in crate::driver) fn multiprocessors(&self) -> u32 {
        self.green
            .as_ref()
            .map_or_else(multiprocessors, |green| green.multiprocessors())
    }

    pub fn context(&self) -> Result<Arc<Context>> {
        self.context.upgrade().ok_or(Error::ContextIsDestroyed)
    }

    /// Lets queued work finish (400 for the default streams).
    pub fn destroy(self: &Arc<Stream>) -> Result<()> {
        if self.role != Role::Created {
            return Err(Error::InvalidHandle);
        }
        STREAMS.remove(self.handle).ok_or(Error::InvalidHandle)?;
        self.abandon_capture();
        // Whoever runs it keeps it alive until it is empty.
        self.shared.forget_streams(Some(self));
        Ok(())
    }

    /// The end of the context's created streams.
    pub(in crate::driver) fn forget_all_of(shared: &Arc<Shared>) {
        for stream in shared.live_streams() {
            stream.abandon_capture();
        }
        STREAMS.take(|stream| Arc::ptr_eq(&stream.shared, shared));
        shared.forget_streams(None);
    }

    /// `cuStreamAddCallback`: called with the context's error, if it has one.
    pub fn callback(self: &Arc<Stream>, callback: Callback, data: usize) -> Result<()> {
        self.shared.check()?;
        self.refuse_capture()?;
        // As the caller knows it: 0 is not told from 1.
        let handle = match self.role {
            Role::Legacy => 0,
            _ => self.handle,
        };
        let (operation, open) = between::begin_host_function(self);
        self.enqueue(Command::Always(Box::new(move |shared| {
            shared.printer.flush();
            let code = shared.check().map_or_else(Error::code, |()| 0);
            between::calls(operation.as_ref());
            as_host_function(|| callback(handle, code, data));
            between::called(open.as_ref());
        })));
        Ok(())
    }

    /// What comes next waits for a point, unless it is in this stream anyway.
    pub(in crate::driver) fn wait_point(self: &Arc<Stream>, point: Point) {
        if !point.is_done() && !Arc::ptr_eq(&point.stream, self) {
            self.enqueue(Command::Wait(point));
        }
    }

    pub(in crate::driver) fn submitted(&self) -> u64 {
        self.submitted.load(Ordering::Acquire)
    }

    pub(in crate::driver) fn is_busy(&self) -> bool {
        // In this order: what completes meanwhile was submitted before.
        let submitted = self.submitted();
        self.completed.load(Ordering::Acquire) < submitted
    }

    /// It is the context's own, which all blocking streams wait for.
    pub fn is_legacy(&self) -> bool {
        self.role == Role::Legacy
    }

    pub(in crate::driver) fn role(&self) -> Role {
        self.role
    }

    pub(in crate::driver) fn is_blocking(&self) -> bool {
        self.flags & 1 == 0
    }

    /// Everything that is in the stream now.
    pub(in crate::driver) fn end(self: &Arc<Stream>) -> Point {
        Point {
            stream: Arc::clone(self),
            ticket: self.submitted(),
        }
    }

    /// What else has to be done before the stream counts as idle: work in blocking streams is in the legacy stream's way,
    /// but not the other way round.
    pub(super) fn ahead(self: &Arc<Stream>) -> Vec<Point> {
        match self.role {
            Role::Legacy => self.barrier(),
            Role::PerThread | Role::Created => Vec::new(),
        }
    }

    /// What a command that comes now has to wait for because of the legacy stream.
    fn barrier(self: &Arc<Stream>) -> Vec<Point> {
        match &self.legacy {
            Some(legacy) if legacy.is_busy() => vec![legacy.end()],
            None if self.role == Role::Legacy => self.shared.busy_blocking_streams(self),
            _ => Vec::new(),
        }
    }

    /// Puts a command at the end; answers its ticket.
    pub(in crate::driver) fn enqueue(self: &Arc<Stream>, command: Command) -> u64 {
        let barrier = self.barrier();
        let mut queue = self.queue.lock();
        let mut ticket = self.submitted.load(Ordering::Relaxed);
        for point in barrier {
            if self.legacy.is_some() {
                if queue.legacy_seen >= point.ticket {
                    continue;
                }
                queue.legacy_seen = point.ticket;
            }
            queue.commands.push_back(Command::Wait(point));
            ticket += 1;
        }
        queue.commands.push_back(command);
        ticket += 1;
        self.submitted.store(ticket, Ordering::Release);
        let idle = queue.state == State::Idle;
        if idle {
            queue.state = State::Queued;
        }
        drop(queue);
        if idle {
            pump::schedule(Arc::clone(self));
        }
        ticket
    }

    /// Runs `work` here and now if it is its turn anyway: nothing before it is left. Otherwise gives it back.
    pub(in crate::driver) fn try_now<F: FnOnce() -> R, R>(self: &Arc<Stream>, work: F) -> std::result::Result<R, F> {
        if self.is_busy() || !self.barrier().is_empty() {
            return Err(work);
        }
        let mut queue = self.queue.lock();
        if queue.state != State::Idle {
            return Err(work);
        }
        queue.state = State::Running;
        let ticket = self.submitted.load(Ordering::Relaxed) + 1;
        self.submitted.store(ticket, Ordering::Release);
        drop(queue);
        // Whatever becomes of it, it is over then.
        let turn = Turn {
            stream: self,
            completes: true,
        };
        let done = defect::within(|| {
            defect::may_fail("now", self.shared.id);
            guarded(&self.shared, work)
        });
        if let Err(defect) = &done {
            self.shared
                .fail_by(defect, "work of a stream that the calling thread does itself");
        }
        drop(turn);
        // The call has no answer.
        done.map_err(|defect| std::panic::resume_unwind(Box::new(defect.to_string())))
    }

    /// Runs `work` at its place in the stream and returns when it is done; the context's error if it was left out.
    pub(in crate::driver) fn run<R: Send>(self: &Arc<Stream>, work: impl FnOnce() -> R + Send) -> Result<R> {
        check_host_function()?;
        self.shared.check()?;
        let work = match self.try_now(work) {
            Ok(result) => return Ok(result),
            Err(work) => work,
        };
        let mut slot: Option<R> = None;
        {
            let slot = &mut slot;
            let task: Box<dyn FnOnce(&Shared) + Send + '_> = Box::new(move |_| *slot = Some(work()));
            // SAFETY: only the lifetime changes. The command is run, or dropped unrun, before `Until` is gone, and what it
            // borrows lives until then.
            let task: Task = unsafe { std::mem::transmute(task) };
            // What goes wrong in between must not end what the command borrows.
            let _until = Until {
                stream: self,
                ticket: self.enqueue(Command::Work(task)),
            };
        }
        match slot {
            Some(result) => Ok(result),
            None => Err(self.shared.check().err().unwrap_or(Error::Unknown)),
        }
    }

    /// Marks the end of the stream; at once if it is idle.
    pub(in crate::driver) fn record(self: &Arc<Stream>, timed: bool) -> Arc<Recording> {
        let barrier = self.barrier();
        if barrier.is_empty() {
            let queue = self.queue.lock();
            if queue.state == State::Idle {
                let recording = Recording::new(Arc::clone(self), self.submitted.load(Ordering::Relaxed));
                recording.stamp();
                return recording;
            }
            if !timed {
                // The point says all; only a time needs a command of its own.
                return Recording::new(Arc::clone(self), self.submitted.load(Ordering::Relaxed));
            }
        }
        // The ticket is known only when the command is in.
        let recording = Recording::new(Arc::clone(self), u64::MAX);
        let ticket = self.enqueue(Command::Record(Arc::clone(&recording)));
        recording.set_ticket(ticket);
        recording
    }
}

/// Calls a function of the program's on a thread that others may wait for: calls of its own that could wait answer 800.
pub fn as_host_function(call: impl FnOnce()) {
    struct Restored(bool);
    fn set(value: bool) -> bool {
        IN_HOST_FUNCTION
            .try_with(|inside| inside.replace(value))
            .unwrap_or(false)
    }
    impl Drop for Restored {
        fn drop(&mut self) {
            set(self.0);
        }
    }
    let _restored = Restored(set(true));
    let _runs = waits::host_function_runs();
    defect::may_fail("host function", "");
    let _unguarded = memory::unguarded();
    call();
}

/// Runs what may touch registered host memory: that the program has taken away becomes the context's error.
pub(in crate::driver) fn guarded<R>(shared: &Shared, work: impl FnOnce() -> R) -> R {
    let gone = AtomicU64::new(0);
    let result = {
        let _guarded = memory::guard(&gone);
        work()
    };
    if let address @ 1.. = gone.into_inner() {
        let report = format!("copy or set of memory at {address:#x}: {}", simt::HOST_MEMORY_GONE);
        shared.fail(Error::IllegalAddress, &report);
    }
    result
}
