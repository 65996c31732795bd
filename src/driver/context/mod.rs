//! Contexts: life, current stacks, limits, context-local storage, sticky errors. A call asks here for the [`Context`] that it
//! concerns, and gets it fit for work, or the reason why it is not.
//!
//! What a context holds ends with it, by way of a list of functions that it is given (`contents.rs`); it knows neither code
//! nor memory.
//!
//! ```text
//! mod.rs      contexts and their life    primary.rs  retained, released, reset
//! limits.rs   limits and preferences     storage.rs  context-local storage
//! green.rs    parts of devices           services.rs, printer.rs, heap.rs  what kernels ask of their context
//! ```
//!
//! A device's primary context exists from the beginning, with its handle, and is *active* while it is retained. `Shared`
//! is the part that streams and running kernels hold on to.

pub mod green;
pub(super) mod heap;
mod limits;
mod primary;
mod printer;
mod services;
mod storage;

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Condvar, Mutex, ReentrantMutex, RwLock};

use super::coredump::{self, Setting, Value};
use super::handle::{self, Registry};
use super::per_thread::{Held, PerThread};
use super::process::room::room_to_work;
use super::process::{check, record};
use super::stream::{Point, Role, check_host_function, making};
use super::{Device, Error, Green, Handle, Result, Stream, pump};
use crate::defect::{self, Defect};
use crate::memory::AddressSpace;
use crate::sanitizer::between;
use heap::Heap;
use printer::Printer;

/// `CU_CTX_FLAGS_MASK`.
const FLAGS: u32 = 0xFF;
const SCHEDULING: u32 = 0x07;

/// `CU_CTX_COREDUMP_ENABLE`, `CU_CTX_USER_COREDUMP_ENABLE`
const COREDUMP: u32 = 0x20;
const USER_COREDUMP: u32 = 0x40;

/// Destructor of context-local storage: `(context, key, value)`.
pub type StorageDrop = extern "C" fn(Handle, usize, usize);

/// What outlives the calls on a context: streams and kernels that run hold on to it.
pub(super) struct Shared {
    /// The owner of memory, streams, modules; never used twice.
    pub id: u64,
    pub device: u32,
    /// The code of the error that every call now answers; 0 = none.
    sticky: AtomicU32,
    /// Reentrant: callbacks that a core dump makes may fail on their own.
    failing: ReentrantMutex<()>,
    streams: RwLock<Vec<Weak<Stream>>>,
    /// What streams that are made from now on wait for first (`cuCtxWaitEvent`).
    gates: Mutex<Vec<Point>>,
    /// Length of `streams`: the legacy stream alone is the common case, and free of locks.
    stream_count: AtomicUsize,
    /// `CU_LIMIT_STACK_SIZE`.
    pub stack_limit: AtomicU64,
    pub printer: Printer,
    pub heap: Heap,
    /// Settings of core dumps that were made for this context.
    coredump: Mutex<coredump::Values>,
}

/// The number of a context, green ones among them.
pub(super) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Shared {
    fn new(device: u32) -> Arc<Shared> {
        let id = next_id();
        Arc::new(Shared {
            id,
            device,
            sticky: AtomicU32::new(0),
            failing: ReentrantMutex::new(()),
            streams: RwLock::default(),
            gates: Mutex::default(),
            stream_count: AtomicUsize::new(0),
            stack_limit: AtomicU64::new(DEFAULT_STACK),
            printer: Printer::new(),
            heap: Heap::new(device, id),
            coredump: Mutex::default(),
        })
    }

    /// The sticky error.
    pub fn check(&self) -> Result<()> {
        match self.sticky.load(Ordering::Acquire) {
            0 => Ok(()),
            code => Err(Error::from_code(code).unwrap_or(Error::Unknown)),
        }
    }

    pub fn has_failed(&self) -> bool {
        self.sticky.load(Ordering::Acquire) != 0
    }

    /// From now on every call of this context gives `error`; the first failure is reported, once. Who sees the error may
    /// end the process at once, so that the report comes first.
    pub fn fail(&self, error: Error, report: &str) {
        // Held by whoever reports; the others return when there is an error to see.
        let _failing = self.failing.lock();
        if self.has_failed() {
            return;
        }
        // Whatever becomes of the report, the error stays.
        let reported = defect::catch(|| {
            // What kernels printed before it happened comes first.
            self.printer.flush();
            tracing::error!("{error}: {report}");
            defect::may_fail("report", self.id);
            let settings = self.coredump.lock().clone();
            coredump::on_fault(&settings, self.device, &format!("{error}: {report}"));
        });
        self.sticky.store(error.code(), Ordering::Release);
        if let Err(defect) = reported {
            // Perhaps it is the log that does not work.
            let _ = defect::catch(|| tracing::error!("while the fault was reported: {defect}"));
        }
    }

    /// A panic in `what`, which is not a kernel: who knows what it has left half done.
    #[cold]
    pub fn fail_by(&self, defect: &Defect, what: &str) {
        self.fail(Error::Unknown, &format!("{defect}\n  in {what}"));
    }

    pub fn add_stream(&self, stream: &Arc<Stream>) {
        let mut streams = self.streams.write();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
        self.stream_count.store(streams.len(), Ordering::Release);
    }

    /// Drops a destroyed stream, or all that are destroyed, as far as their work is done.
    pub fn forget_streams(&self, destroyed: Option<&Arc<Stream>>) {
        let mut streams = self.streams.write();
        streams.retain(|weak| match weak.upgrade() {
            None => false,
            Some(stream) => !destroyed.is_some_and(|destroyed| Arc::ptr_eq(&stream, destroyed)) || stream.is_busy(),
        });
        self.stream_count.store(streams.len(), Ordering::Release);
    }

    pub fn add_gate(&self, point: Point) {
        let mut gates = self.gates.lock();
        gates.retain(|gate| !gate.is_done());
        gates.push(point);
    }

    pub fn gates(&self) -> Vec<Point> {
        let mut gates = self.gates.lock();
        gates.retain(|gate| !gate.is_done());
        gates.clone()
    }

    pub fn live_streams(&self) -> Vec<Arc<Stream>> {
        self.streams.read().iter().filter_map(Weak::upgrade).collect()
    }

    /// What the legacy stream's next command has to wait for.
    pub fn busy_blocking_streams(&self, legacy: &Arc<Stream>) -> Vec<Point> {
        if self.stream_count.load(Ordering::Acquire) <= 1 {
            return Vec::new();
        }
        let streams = self.live_streams();
        let busy = streams
            .iter()
            .filter(|stream| stream.is_blocking() && stream.is_busy() && !Arc::ptr_eq(stream, legacy));
        busy.map(Stream::end).collect()
    }

    /// Waits until everything that was in any stream is done.
    pub fn drain(&self) {
        let points: Vec<Point> = self.live_streams().iter().map(Stream::end).collect();
        for point in points {
            point.wait();
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Life {
    /// A primary context that nobody has retained.
    Inactive,
    Active,
    Destroyed,
}

const DEFAULT_STACK: u64 = 1024;
pub struct Context {
    handle: Handle,
    shared: Arc<Shared>,
    device: &'static Device,
    is_primary: bool,
    life: AtomicU8,
    flags: AtomicU32,
    users: Mutex<Users>,
    /// A primary context has been emptied.
    ended: Condvar,
    legacy: Arc<Stream>,
    runtime_limits: [AtomicU64; 4],
    cache_config: AtomicU32,
    shared_config: AtomicU32,
    storage: RwLock<Vec<Stored>>,
    peers: Mutex<Vec<u64>>,
    /// It stands for a green context, and shares the primary context's everything.
    green: Option<Weak<Green>>,
}

/// Who uses a context.
#[derive(Default)]
struct Users {
    /// How often a primary context is retained; the further users of another one (`cuCtxAttach`).
    count: u32,
    /// The thread that empties it, while it does: no lock is held then, for destructors and host functions of the program
    /// run meanwhile.
    emptied_by: Option<u64>,
    /// It was retained while it was being emptied, so that it is active afterwards.
    revived: bool,
}

#[derive(Clone, Copy)]
struct Stored {
    key: usize,
    value: usize,
    drop: Option<StorageDrop>,
}

/// Ends what a context holds of one kind.
pub(super) type End = fn(&Arc<Shared>);

/// What ends with a context, in this order.
static CONTENTS: OnceLock<&[End]> = OnceLock::new();

/// Says, once, what contexts may hold: they know nothing of it themselves.
pub(super) fn set_contents(contents: &'static [End]) {
    CONTENTS.get_or_init(|| contents);
}

static CONTEXTS: Registry<Context> = Registry::new();

/// The handle of the context of that number; 0 if it is gone.
pub(super) fn handle_of(id: u64) -> Handle {
    CONTEXTS
        .find(|context| context.shared.id == id && context.green.is_none())
        .map_or(0, |context| context.handle)
}

/// The number of another context that is active: on that device, or, without one, on any.
pub(super) fn another(id: u64, device: Option<u32>) -> Option<u64> {
    let is_one = |context: &Arc<Context>| {
        let fits = context.shared.id != id && device.is_none_or(|device| context.shared.device == device);
        let is_active = context.life() == Life::Active && context.users.lock().emptied_by.is_none();
        fits && is_active && context.green.is_none()
    };
    let contexts = CONTEXTS.collect();
    contexts
        .iter()
        .find(|context| is_one(context))
        .map(|context| context.shared.id)
}

/// Waits for all contexts: memory that is about to go may be used by any of them.
pub(super) fn drain_all() {
    for context in CONTEXTS.collect() {
        context.shared.drain();
    }
}

/// The streams of all contexts.
pub(super) fn all_streams() -> Vec<Arc<Stream>> {
    let contexts = CONTEXTS.collect();
    contexts
        .iter()
        .flat_map(|context| context.shared.live_streams())
        .collect()
}

/// The legacy default streams of the contexts of two devices.
pub(super) fn default_streams(devices: [u32; 2]) -> Vec<Arc<Stream>> {
    let contexts = CONTEXTS.collect();
    let there = contexts
        .iter()
        .filter(|context| context.green.is_none() && devices.contains(&context.shared.device));
    there.map(|context| Arc::clone(context.legacy())).collect()
}

/// Whether any stream of any context has work.
pub(super) fn any_busy() -> bool {
    let contexts = CONTEXTS.collect();
    let mut streams = contexts.iter().flat_map(|context| context.shared.live_streams());
    streams.any(|stream| stream.is_busy())
}

type Stack = RefCell<Vec<Arc<Context>>>;

thread_local! {
    static STACK_PLACE: Cell<*mut Held<Stack>> = const { Cell::new(std::ptr::null_mut()) };
}

/// Exit handlers and static destructors still have the current context.
static STACK: PerThread<Stack> = PerThread::new(&STACK_PLACE);

/// Runs `f` on the thread's stack of contexts.
fn with_stack<R>(f: impl FnOnce(&mut Vec<Arc<Context>>) -> R) -> R {
    STACK.with(|stack| f(&mut stack.borrow_mut()))
}

impl Context {
    fn build(device: &'static Device, is_primary: bool, flags: u32) -> Arc<Context> {
        let _making = making();
        let shared = Shared::new(device.ordinal() as u32);
        let context = Arc::new_cyclic(|weak: &Weak<Context>| Context {
            handle: handle::fresh(),
            legacy: Stream::build(weak.clone(), &shared, Role::Legacy, 0, 0, None, None),
            shared,
            device,
            is_primary,
            life: AtomicU8::new(if is_primary { Life::Inactive } else { Life::Active } as u8),
            flags: AtomicU32::new(flags),
            users: Mutex::default(),
            ended: Condvar::new(),
            runtime_limits: [2, 2048, 128, 0].map(AtomicU64::new),
            cache_config: AtomicU32::new(0),
            shared_config: AtomicU32::new(0),
            storage: RwLock::default(),
            peers: Mutex::default(),
            green: None,
        });
        CONTEXTS.insert(context.handle, &context);
        if !is_primary {
            record::context_begins(context.shared.device);
            AddressSpace::get().begin_context(context.shared.id, context.shared.device);
        }
        context
    }

    pub(super) fn primary(device: &'static Device) -> Arc<Context> {
        Context::build(device, true, 0)
    }

    /// What stands for a green context: the primary context under another handle. It is not destroyed by itself.
    pub(super) fn for_green(primary: &Arc<Context>, green: &Arc<Green>) -> Arc<Context> {
        let context = Arc::new(Context {
            handle: handle::fresh(),
            legacy: Arc::clone(&primary.legacy),
            shared: Arc::clone(&primary.shared),
            device: primary.device,
            is_primary: true,
            life: AtomicU8::new(Life::Active as u8),
            flags: AtomicU32::new(primary.flags()),
            users: Mutex::default(),
            ended: Condvar::new(),
            runtime_limits: [0, 1, 2, 3]
                .map(|which| AtomicU64::new(primary.runtime_limits[which].load(Ordering::Relaxed))),
            cache_config: AtomicU32::new(primary.cache_config.load(Ordering::Relaxed)),
            shared_config: AtomicU32::new(primary.shared_config.load(Ordering::Relaxed)),
            storage: RwLock::default(),
            peers: Mutex::default(),
            green: Some(Arc::downgrade(green)),
        });
        CONTEXTS.insert(context.handle, &context);
        context
    }

    /// Its green context has been destroyed.
    pub(super) fn end_for_green(&self) {
        CONTEXTS.remove(self.handle);
        self.set_life(Life::Destroyed);
    }

    /// Waits until everything that was in any of its streams is done.
    pub(super) fn drain(&self) {
        // The legacy stream alone is the common case, and free of locks.
        if self.shared.stream_count.load(Ordering::Acquire) <= 1 {
            self.legacy.wait_for(self.legacy.submitted());
        } else {
            self.shared.drain();
        }
    }

    /// The green context that it stands for.
    pub fn green(&self) -> Option<Arc<Green>> {
        self.green.as_ref().and_then(Weak::upgrade)
    }

    /// The context whose memory, modules and streams it has: itself, or the primary one.
    pub fn owner(self: &Arc<Context>) -> Arc<Context> {
        match &self.green {
            None => Arc::clone(self),
            Some(_) => Arc::clone(self.device.primary()),
        }
    }

    /// The calling thread's, as it is (`cuCtxGetCurrent`).
    pub fn current_or_none() -> Option<Arc<Context>> {
        with_stack(|stack| stack.last().cloned())
    }

    /// A panic in the call `name` of the calling thread becomes the error of its context, if it has one.
    pub fn fail_current(defect: &Defect, name: &str) {
        match Context::current_or_none() {
            Some(context) => context.shared.fail_by(defect, name),
            None => tracing::error!("{defect}\n  in {name}"),
        }
    }

    /// The calling thread's: 201 if none, 709 if destroyed.
    pub fn current() -> Result<Arc<Context>> {
        let context = Context::current_or_none().ok_or(Error::InvalidContext)?;
        context.alive()?;
        Ok(context)
    }

    /// The calling thread's, and fit for work: also its sticky error, if it has one. Most calls begin with this.
    pub fn usable() -> Result<Arc<Context>> {
        check_host_function()?;
        let context = Context::current()?;
        context.shared.check()?;
        Ok(context)
    }

    /// 201 for what is not a context.
    pub fn from_handle(handle: Handle) -> Result<Arc<Context>> {
        CONTEXTS.get(handle).ok_or(Error::InvalidContext)
    }

    /// `cuCtxSetCurrent`: replaces the top of the thread's stack; `None` (NULL) takes it off.
    pub fn set_current(context: Option<Arc<Context>>) {
        // Dropped after the stack is whole again.
        let _old = with_stack(|stack| {
            let old = stack.pop();
            stack.extend(context);
            old
        });
    }

    /// `cuCtxPushCurrent`.
    pub fn push(context: Arc<Context>) {
        with_stack(|stack| stack.push(context));
    }

    /// `cuCtxPopCurrent`.
    pub fn pop() -> Result<Arc<Context>> {
        with_stack(Vec::pop).ok_or(Error::InvalidContext)
    }

    /// `cuCtxCreate`: becomes current.
    pub fn create(device: &'static Device, flags: u32) -> Result<Arc<Context>> {
        check_host_function()?;
        check_flags(flags)?;
        room_to_work()?;
        let context = Context::build(device, false, flags);
        // What the environment has settled stays as it is.
        if flags & COREDUMP != 0 {
            let _ = context.set_coredump(Setting::EnableOnException, Value::Flag(true));
        }
        if flags & USER_COREDUMP != 0 {
            let _ = coredump::set_global(Setting::EnableUserTrigger, Value::Flag(true));
        }
        Context::push(Arc::clone(&context));
        Ok(context)
    }

    /// `cuCtxDestroy`: waits for its work; 201 for primary contexts. If it is the calling thread's, it is no more.
    pub fn destroy(self: &Arc<Context>) -> Result<()> {
        check_host_function()?;
        if self.is_primary {
            return Err(Error::InvalidContext);
        }
        CONTEXTS.remove(self.handle).ok_or(Error::InvalidContext)?;
        // Dropped after the stack is whole again.
        let _top = with_stack(|stack| stack.pop_if(|top| Arc::ptr_eq(top, self)));
        self.empty();
        self.set_life(Life::Destroyed);
        Ok(())
    }

    /// `cuCtxAttach`: one more user of the current context; 201 for primary contexts, which are retained instead.
    pub fn attach() -> Result<Arc<Context>> {
        let context = Context::usable()?;
        if context.is_primary {
            return Err(Error::InvalidContext);
        }
        context.users.lock().count += 1;
        Ok(context)
    }

    /// `cuCtxDetach`: the context must be current (201). Destroys it when its last user leaves.
    pub fn detach(self: &Arc<Context>) -> Result<()> {
        let current = Context::current_or_none();
        if self.is_primary || !current.is_some_and(|current| Arc::ptr_eq(&current, self)) {
            return Err(Error::InvalidContext);
        }
        let others = {
            let mut users = self.users.lock();
            let others = users.count;
            users.count = others.saturating_sub(1);
            others
        };
        if others > 0 { Ok(()) } else { self.destroy() }
    }

    /// Everything of this context's ends: work is waited for, resources go, its error is forgotten.
    fn empty(self: &Arc<Context>) {
        self.shared.drain();
        between::context_done(self.shared.id);
        self.shared.printer.flush();
        loop {
            // The destructors are the program's code: they may look at the storage again.
            let Some(stored) = self.storage.write().pop() else {
                break;
            };
            if let Some(drop) = stored.drop {
                drop(self.handle, stored.key, stored.value);
            }
        }
        for end in CONTENTS.get().copied().unwrap_or_default() {
            end(&self.shared);
        }
        check::leaks(Some(self.shared.id));
        AddressSpace::get().free_all_of(self.shared.id);
        self.shared.heap.forget();
        self.shared.sticky.store(0, Ordering::Release);
        self.shared.stack_limit.store(DEFAULT_STACK, Ordering::Relaxed);
        for peer in self.peers.lock().drain(..) {
            AddressSpace::get().set_peer(self.shared.id, peer, false);
        }
    }

    fn life(&self) -> Life {
        match self.life.load(Ordering::Acquire) {
            0 => Life::Inactive,
            1 => Life::Active,
            _ => Life::Destroyed,
        }
    }

    fn set_life(&self, life: Life) {
        let before = self.life.swap(life as u8, Ordering::AcqRel);
        // A green context is the primary one under another handle.
        if self.green.is_none() && before != life as u8 {
            if life == Life::Active {
                record::context_begins(self.shared.device);
                AddressSpace::get().begin_context(self.shared.id, self.shared.device);
            } else if before == Life::Active as u8 {
                record::context_ends(self.shared.device);
                AddressSpace::get().end_context(self.shared.id);
            }
        }
    }

    pub(super) fn alive(&self) -> Result<()> {
        match self.life() {
            Life::Active => Ok(()),
            Life::Inactive | Life::Destroyed => Err(Error::ContextIsDestroyed),
        }
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// `cuCtxGetId`.
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    pub fn device(&self) -> &'static Device {
        self.device
    }

    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// `cuCtxSetFlags`, `cuDevicePrimaryCtxSetFlags`.
    pub fn set_flags(&self, flags: u32) -> Result<()> {
        check_flags(flags)?;
        self.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }

    /// `cuCtxGetApiVersion`: that of the last change of the context API.
    pub fn api_version(&self) -> u32 {
        3020
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn legacy(&self) -> &Arc<Stream> {
        &self.legacy
    }

    /// Its sticky error.
    pub fn check(&self) -> Result<()> {
        self.shared.check()
    }

    /// `cuCoredumpGetAttribute`.
    pub fn coredump(&self, setting: Setting) -> Value {
        coredump::of(&self.shared.coredump.lock(), setting)
    }

    /// `cuCoredumpSetAttribute`.
    pub fn set_coredump(&self, setting: Setting, value: Value) -> Result<()> {
        coredump::set(&mut self.shared.coredump.lock(), setting, value)
    }

    /// `cuCtxGetStreamPriorityRange`: `(least, greatest)`.
    pub fn priority_range() -> (i32, i32) {
        (0, pump::GREATEST_PRIORITY)
    }

    /// `cuCtxEnablePeerAccess`: `self` is the current context.
    pub fn enable_peer(&self, peer: &Arc<Context>, flags: u32) -> Result<()> {
        if flags != 0 {
            return Err(Error::InvalidValue);
        }
        if peer.device.ordinal() == self.device.ordinal() {
            return Err(Error::InvalidDevice);
        }
        let mut peers = self.peers.lock();
        if peers.contains(&peer.id()) {
            return Err(Error::PeerAccessAlreadyEnabled);
        }
        peers.push(peer.id());
        AddressSpace::get().set_peer(self.id(), peer.id(), true);
        Ok(())
    }

    /// `cuCtxDisablePeerAccess`.
    pub fn disable_peer(&self, peer: &Arc<Context>) -> Result<()> {
        let mut peers = self.peers.lock();
        let index = peers
            .iter()
            .position(|id| *id == peer.id())
            .ok_or(Error::PeerAccessNotEnabled)?;
        peers.swap_remove(index);
        AddressSpace::get().set_peer(self.id(), peer.id(), false);
        Ok(())
    }

    /// `cuMemGetInfo`: `(free, total)`.
    pub fn memory_info(&self) -> (u64, u64) {
        let total = self.device.total_memory();
        let used = AddressSpace::get().used(self.shared.device);
        (total.saturating_sub(used), total)
    }
}

/// `CUctx_flags`: known bits, and at most one way to wait.
fn check_flags(flags: u32) -> Result<()> {
    if flags & !FLAGS != 0 || (flags & SCHEDULING).count_ones() > 1 {
        return Err(Error::InvalidValue);
    }
    Ok(())
}
