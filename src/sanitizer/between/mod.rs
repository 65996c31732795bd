//! Finds races between operations: kernels, copies, sets, allocations and frees that touch the same bytes, and that no stream, event,
//! synchronisation or edge of a graph puts in order.
//!
//! What lies before an operation follows from the calls that a program makes, not from what happened to run first: each stream has a vector
//! clock ([`clock`]), and so has the host, all of whose threads count as one, for what they tell each other cannot be seen. An operation
//! takes its place when it is asked for, and leaves what it has touched ([`collect`], [`history`]) when it has run. What the host does
//! by itself to memory that it has in common with kernels is an operation, too, as far as it is seen ([`hidden`]). A kernel that reads or
//! writes such memory as one does to talk to the host (volatile, or atomically for the system) may have told it anything: it races
//! with nothing that the host's own code does.
//!
//! This is the door: without somebody who has asked ([`start`]) each of these functions is a look at [`ON`].

mod clock;
mod collect;
mod hidden;
mod history;
mod lines;
mod operation;
mod pages;
mod running;

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::backtrace::Backtrace;
use crate::defect;
use crate::memory;
use crate::memory::caller::{self, Caller};
use crate::memory::host_access::HostAccess;
use crate::simt::{Launch, Site};

pub use clock::Open;
use clock::{Clock, HOST};
use collect::{Collector, Source};
use hidden::Pages;
pub use history::{Class, Range};
use history::{Conflict, Footprint, Side};
use lines::Lines;
pub use operation::{Act, Lane, Node, Operation, Order, Rule, Stream};
pub use running::{has_begun, running};

static ON: AtomicBool = AtomicBool::new(false);
static LINES: Mutex<Lines> = Mutex::new(Lines::new());
static LISTENER: OnceLock<fn(Race)> = OnceLock::new();

thread_local! {
    /// What the grids that this thread starts are part of.
    static CURRENT: RefCell<Option<Arc<Operation>>> = const { RefCell::new(None) };
}

/// What is missing between two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missing {
    /// They are of two streams.
    Streams,
    /// They are nodes of one launch of a graph.
    Edge,
    /// The host does the one, and has not waited for the other.
    Wait,
}

/// One of two operations that race.
#[derive(Clone, Debug)]
pub struct Party {
    /// The kernel's mangled name; `None`: it is the driver that reads or writes.
    pub kernel: Option<Arc<str>>,
    /// The call that asked for it; of a node of a graph, what it does.
    pub caller: Caller,
    pub stream: Option<Stream>,
    pub act: Act,
    pub class: Class,
    /// It is a node of a graph.
    pub is_node: bool,
    /// Of a kernel: an instruction, its block and thread.
    pub place: Option<(Site, [u32; 3], [u32; 3])>,
}

#[derive(Clone, Debug)]
pub struct Race {
    pub first: Party,
    pub second: Party,
    pub address: u64,
    pub bytes: u64,
    pub missing: Missing,
}

/// Looks from now on, and tells of what it finds.
pub fn start(listener: fn(Race)) {
    LISTENER.get_or_init(|| listener);
    ON.store(true, Ordering::Release);
}

/// Looks at what the host does by itself as well, where that can be done.
pub fn start_with_host() {
    if memory::listen_to_host(by_program) {
        running::start();
    }
}

#[inline]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// A place in a stream that others may wait for.
#[derive(Clone, Debug)]
pub struct Mark(Arc<Clock>);

/// An operation takes its place in a stream.
#[inline]
pub fn begin(stream: &impl Lane, act: Act) -> Option<Arc<Operation>> {
    let operation = place(stream, act);
    if operation.is_some() {
        running::begun(stream.lane().id);
    }
    operation
}

/// The place of a host function in a stream, as [`begin`], and what lies behind it, as [`open`]. Nobody waits for one in the call that
/// asks for it: it may take its time, and wait for the caller.
#[inline]
pub fn begin_host_function(stream: &impl Lane) -> (Option<Arc<Operation>>, Option<Arc<Open>>) {
    (place(stream, Act::Touches), open(stream))
}

#[inline]
fn place(stream: &impl Lane, act: Act) -> Option<Arc<Operation>> {
    is_on().then(|| {
        let caller = caller::here();
        LINES.lock().begin(stream.lane(), act, caller)
    })
}

/// Something that the host does by itself, here and now.
#[inline]
pub fn by_host(act: Act) -> Option<Arc<Operation>> {
    is_on().then(|| {
        let caller = caller::here();
        LINES.lock().by_host(act, caller)
    })
}

/// The same operation, as a node of the graph whose launch it is;
/// `what` it does, and where it was made: where that is not known, what is known of the launch.
pub fn node(
    launch: &Arc<Operation>,
    node: Node,
    act: Act,
    (what, at): (&'static str, Option<Backtrace>),
) -> Arc<Operation> {
    Arc::new(Operation {
        serial: launch.serial,
        line: launch.line,
        number: launch.number,
        clock: Arc::clone(&launch.clock),
        node: Some(node),
        act,
        caller: Caller {
            name: what,
            at: at.unwrap_or(launch.caller.at),
        },
        stream: launch.stream,
    })
}

/// Another number for each run of a block of steps.
pub fn next_run() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The end of a stream, as it is now.
#[inline]
pub fn mark(stream: &impl Lane) -> Option<Mark> {
    is_on().then(|| LINES.lock().mark(stream.lane()))
}

/// What comes next in a stream waits for a place.
#[inline]
pub fn wait(stream: &impl Lane, mark: Option<&Mark>) {
    if is_on()
        && let Some(Mark(clock)) = mark
    {
        LINES.lock().wait(stream.lane(), clock);
    }
}

/// What comes next in any stream of a context waits for a place, in later streams, too.
#[inline]
pub fn gate(context: u64, mark: Option<&Mark>) {
    if is_on()
        && let Some(Mark(clock)) = mark
    {
        LINES.lock().gate(context, clock);
    }
}

/// The host has waited for a place, or has been told that it is reached.
#[inline]
pub fn reached(mark: Option<&Mark>) {
    if is_on()
        && let Some(Mark(clock)) = mark
    {
        LINES.lock().host_learns(clock);
    }
}

/// The host has waited for all that is in a stream.
#[inline]
pub fn done(stream: &impl Lane) {
    if is_on() {
        LINES.lock().done(stream.lane());
    }
}

/// The host has waited for all streams of a context.
#[inline]
pub fn context_done(context: u64) {
    if is_on() {
        LINES.lock().all_done(Some(context));
    }
}

/// The host has waited for everything.
#[inline]
pub fn all_done() {
    if is_on() {
        LINES.lock().all_done(None);
    }
}

/// A stream is gone, and all that was in it done.
#[inline]
pub fn stream_ends(id: u64) {
    if is_on() {
        LINES.lock().ends(id);
    }
}

/// What comes next in a stream lies behind something of which nobody knows yet what it puts in order; [`called`] or [`waited`] say so.
#[inline]
pub fn open(stream: &impl Lane) -> Option<Arc<Open>> {
    is_on().then(|| LINES.lock().open(stream.lane()))
}

/// A host function is about to be called: the program may tell its own threads by it what lies before.
pub fn calls(operation: Option<&Arc<Operation>>) {
    if let Some(operation) = operation {
        let mut lines = LINES.lock();
        lines.host_learns(&Clock::clone(&operation.clock));
    }
}

/// A host function has returned: whatever the host knows may lie before its end.
pub fn called(open: Option<&Arc<Open>>) {
    if let Some(open) = open {
        let known = LINES.lock().host.clone();
        open.close(known);
    }
}

/// A stream has waited for memory that anybody may have written: whatever has been asked for may lie before that.
pub fn waited(open: Option<&Arc<Open>>) {
    if let Some(open) = open {
        let known = LINES.lock().everything();
        open.close(known);
    }
}

/// Memory begins or ends: nobody has touched it.
#[inline]
pub fn forget(start: u64, bytes: u64) {
    if is_on() {
        LINES.lock().forget(start, start.saturating_add(bytes));
    }
}

/// What an operation reads or writes, now that it does.
pub fn touches(operation: Option<&Arc<Operation>>, class: Class, address: u64, bytes: u64) {
    if let Some(operation) = operation {
        touched(operation, None, &[Range::whole(address, bytes, class)]);
    }
}

/// Rows of bytes, the first of which starts at an address, each `pitch` bytes behind the one before.
pub fn touches_rows(operation: &Arc<Operation>, class: Class, address: u64, pitch: u64, width: u64, rows: u64) {
    if pitch == width || rows == 1 {
        return touched(operation, None, &[Range::whole(address, width * rows, class)]);
    }
    let rows: Vec<Range> = (0..rows)
        .map(|row| Range::whole(address + row * pitch, width, class))
        .collect();
    touched(operation, None, &rows);
}

/// Runs a kernel that is part of an operation.
pub fn during<R>(operation: Option<&Arc<Operation>>, work: impl FnOnce() -> R) -> R {
    struct Restored(Option<Arc<Operation>>);
    impl Drop for Restored {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let Some(operation) = operation else {
        return work();
    };
    let _restored = Restored(CURRENT.replace(Some(Arc::clone(operation))));
    work()
}

/// Who looks at a grid that this thread starts.
pub fn collector(launch: &Arc<Launch>) -> Option<Arc<Collector>> {
    if !is_on() {
        return None;
    }
    let operation = CURRENT.with_borrow(Clone::clone)?;
    Some(Arc::new(Collector::new(operation, launch)))
}

fn touched(operation: &Arc<Operation>, source: Option<Source>, ranges: &[Range]) {
    if ranges.is_empty() {
        return;
    }
    let by = Arc::new(Footprint {
        operation: Arc::clone(operation),
        source,
    });
    let pages = if running::is_on() {
        Pages::of(operation, ranges)
    } else {
        None
    };
    let found = {
        let mut lines = LINES.lock();
        if let Some(pages) = pages {
            lines.hide(operation, pages);
        }
        lines.history.add(&by, ranges)
    };
    let Some(listener) = LISTENER.get() else { return };
    // Not under the lock: reports take their time.
    for conflict in found {
        listener(race(conflict));
    }
}

fn race(conflict: Conflict) -> Race {
    let Conflict {
        earlier,
        later,
        address,
        bytes,
    } = conflict;
    let [one, other] = [&earlier.by.operation, &later.by.operation];
    let missing = match () {
        () if one.line == HOST || other.line == HOST => Missing::Wait,
        () if (one.line, one.number) == (other.line, other.number) => Missing::Edge,
        () => Missing::Streams,
    };
    let in_order = one.comes_first(other);
    let (first, second) = if in_order { (earlier, later) } else { (later, earlier) };
    Race {
        first: party(&first),
        second: party(&second),
        address,
        bytes,
        missing,
    }
}

fn party(side: &Side) -> Party {
    let operation = &side.by.operation;
    let source = side.by.source.as_ref();
    Party {
        kernel: source.map(Source::name),
        caller: operation.caller,
        stream: operation.stream,
        act: operation.act,
        class: side.class,
        is_node: operation.node.is_some(),
        place: source
            .zip(side.example)
            .and_then(|(source, example)| source.place(example)),
    }
}

/// The program's own code has come to a page that was hidden from it.
fn by_program(access: HostAccess) {
    // A defect of ours is reported, and no reason to bother the program.
    let _ = defect::within(|| {
        let caller = Caller::program(access.code);
        let class = if access.writes { Class::Write } else { Class::Read };
        let operation = {
            let mut lines = LINES.lock();
            // Who finds a word that somebody has set to be found knows what was done before.
            let told: Vec<Clock> = lines.history.told_at(access.address);
            told.iter().for_each(|clock| lines.host_learns(clock));
            lines.by_host(Act::Touches, caller)
        };
        touched(&operation, None, &[Range::whole(access.address, 1, class)]);
    });
}
