//! `MARGAY_CHECK=seeds:N`: each launch runs in N orders of its threads, and what it leaves is compared.
//!
//! The program goes on with what the first order left. Between two of them all that the grid has written is put back
//! ([`crate::sanitizer::orders`]); what else a kernel does for others to see — output, graphs that it launches, conditions that it
//! sets — it does in the first run alone ([`Aside`]). A launch whose effects cannot be undone, or whose addresses of memory
//! depend on the order rightly, runs once, and a line of the log says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::config;
use crate::driver::code::order_report::{self, Difference, Ending, Side};
use crate::memory::{self, View};
use crate::program::Named;
use crate::sanitizer::orders::{Differences, Journal, Outcome, Writer};
use crate::simt::observe::Watch;
use crate::simt::{Fault, GraphUpdate, Launch, Order, Runtime, Seed, Services, Shape};

use super::{Deed, Finding, Kind, Severity, hosts, launched, tell};

/// What runs a grid: the executor, or a stand-in under test.
pub type Runner = fn(Arc<Launch>) -> Result<(), Box<Fault>>;

/// How long a launch waits for another one to be done with all of its orders.
const TURN: Duration = Duration::from_secs(1);
/// A run may take so many times as long as the first, and this long in any case.
const SLOWER: u32 = 20;
const LEAST: Duration = Duration::from_secs(10);

/// In how many orders launches are to run; `None`: in one, as ever.
pub fn wanted() -> Option<u32> {
    match config::get().check.seeds {
        0 => None,
        seeds => Some(seeds),
    }
}

/// What the schedule of launch number `launch` is drawn from.
pub fn seed_of(launch: u64, is_checked: bool) -> Option<Seed> {
    let config = config::get();
    match (&config.seed, wanted()) {
        (Some(orders), _) => Some(Seed::new(orders.of(launch), launch)),
        (None, Some(_)) if is_checked => Some(Seed::new(first(), launch)),
        (None, Some(_)) => {
            // Who repeats an order has the first one for such launches.
            ANY.store(true, Ordering::Relaxed);
            None
        }
        (None, None) => None,
    }
}

/// The first order, with whose results programs go on.
fn first() -> Order {
    Order::nth(first_number(), 0)
}

fn first_number() -> u64 {
    config::get().seed.as_ref().map_or(1, |orders| orders.all.number)
}

/// What is known of a kernel.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Its results depend on the order, and that has been told; or on roundings alone.
    differs: bool,
    rounds: bool,
}

static KNOWN: Mutex<BTreeMap<Arc<str>, Known>> = Mutex::new(BTreeMap::new());
/// Some launch's results were found to depend on the order, or may: later ones count on those of the first order.
static ANY: AtomicBool = AtomicBool::new(false);

/// Runs a launch in so many orders.
///
/// # Errors
/// The fault of the run whose results the program sees.
pub fn run(launch: &Arc<Launch>, run: Runner, orders: u32) -> Result<(), Box<Fault>> {
    static TURNS: Mutex<()> = Mutex::new(());
    let kernel = Arc::clone(&launch.code.module.functions[launch.kernel as usize].name);
    let known = KNOWN.lock().get(&kernel).copied().unwrap_or_default();
    // Kernels that wait for others would wait for ever.
    let turn = TURNS.try_lock_for(TURN);
    if turn.is_none() {
        leave_out(&kernel, "other kernels run at the same time");
    }
    let Some(_turn) = turn.filter(|_| !known.differs) else {
        return run(Arc::clone(launch));
    };
    let trial = Trial {
        launch,
        run,
        kernel,
        orders,
        number: launch.seed.as_ref().map_or(0, Seed::count),
        first: first_number(),
    };
    trial.compare(known)
}

/// Says once of a kernel why its launches run in one order only.
fn leave_out(kernel: &Arc<str>, why: &'static str) {
    static SAID: Mutex<BTreeSet<(Arc<str>, &'static str)>> = Mutex::new(BTreeSet::new());
    ANY.store(true, Ordering::Relaxed);
    if SAID.lock().insert((Arc::clone(kernel), why)) {
        tracing::warn!("--seeds leaves launches of {} out: {why}", Named(kernel));
    }
}

/// One launch, in several orders.
struct Trial<'a> {
    launch: &'a Arc<Launch>,
    run: Runner,
    kernel: Arc<str>,
    orders: u32,
    /// How often it has run before: a graph's node runs more than once.
    number: u64,
    first: u64,
}

/// One run of it.
struct Ran {
    ended: Result<(), Box<Fault>>,
    left: Outcome,
    journal: Arc<Journal>,
    did: Arc<Done>,
    time: Duration,
}

impl Trial<'_> {
    fn order(&self, n: u32) -> Order {
        Order::nth(self.first, n.into())
    }

    /// A run; what it leaves is undone. `None`: it could not be.
    fn once(&self, order: Order, limit: Option<Duration>, witness: Option<u64>, is_first: bool) -> Option<Ran> {
        let journal = Arc::new(Journal::new(self.launch, witness)?);
        let did = Arc::new(Done::default());
        let services = Arc::new(Aside {
            inner: Arc::clone(&self.launch.services),
            journal: Arc::clone(&journal),
            did: Arc::clone(&did),
            is_first,
        });
        let runtime = self.launch.family.runtime.as_ref().map(|inner| {
            Arc::new(AsideRuntime {
                inner: Arc::clone(inner),
                services: Arc::clone(&services),
            }) as Arc<dyn Runtime>
        });
        let seed = Seed::at(order, self.launch.grid_id, self.number);
        let limit = match (limit, self.launch.timeout) {
            (Some(limit), Some(timeout)) => Some(limit.min(timeout)),
            (limit, timeout) => limit.or(timeout),
        };
        let launch = Arc::new(self.launch.again(seed, services, runtime, limit));
        let began = Instant::now();
        let ended = (self.run)(launch);
        let time = began.elapsed();
        // What cannot be repeated stays as the first run has left it.
        let stays = is_first && (ended.is_err() || did.why().is_some() || journal.is_full());
        let left = match stays {
            true => Outcome::default(),
            false => guarded(|| journal.undo()),
        };
        Some(Ran {
            ended,
            left,
            journal,
            did,
            time,
        })
    }

    fn compare(&self, known: Known) -> Result<(), Box<Fault>> {
        let order = self.order(0);
        let Some(first) = self.once(order, None, None, true) else {
            leave_out(
                &self.kernel,
                "arrays, which surfaces might write, are too large to be copied",
            );
            return (self.run)(Arc::clone(self.launch));
        };
        if first.ended.is_err() {
            return first.ended;
        }
        let too_much = first.journal.is_full().then_some("they write more than 1 GiB");
        if let Some(why) = first.did.why().or(too_much) {
            leave_out(&self.kernel, why);
            return Ok(());
        }
        let limit = (first.time * SLOWER).max(LEAST);
        let mut found: Option<(Order, Result<Differences, Box<Fault>>)> = None;
        let (mut differ, mut found_rounds) = (0, false);
        for n in 1..self.orders {
            let Some(other) = self.once(self.order(n), Some(limit), None, false) else {
                break;
            };
            if let Some(why) = other.did.why() {
                leave_out(&self.kernel, why);
                break;
            }
            let (differences, rounds) = match other.ended {
                Err(fault) => (Err(fault), false),
                Ok(()) => {
                    let all = self.differences(&first.left, &other.left);
                    let rounds = first.left.differs_by_rounding(&other.left, &all);
                    if all.is_empty() || rounds && known.rounds {
                        continue;
                    }
                    (Ok(all), rounds)
                }
            };
            // What is no rounding is worse than what is.
            if found.is_none() || found_rounds && !rounds {
                found = Some((self.order(n), differences));
                (differ, found_rounds) = (0, rounds);
            }
            differ += u32::from(rounds == found_rounds);
        }
        if let Some((other, differences)) = found {
            self.found(&first, other, differences, (differ, limit));
        }
        guarded(|| first.left.apply());
        Ok(())
    }

    /// What two runs left, but for what the driver counts barriers of the grid in.
    fn differences(&self, one: &Outcome, other: &Outcome) -> Differences {
        let all = one.differences(other);
        match self.launch.workspace {
            0 => all,
            workspace => all.outside(workspace, 64),
        }
    }

    /// An order has left something else. What differs without another order, too — a clock's time, memory that nobody has written — does
    /// not count.
    fn found(&self, first: &Ran, order: Order, how: Result<Differences, Box<Fault>>, (differ, limit): (u32, Duration)) {
        let report = |ending: Ending<'_>, rounds: bool| {
            order_report::report(&Difference {
                kernel: &self.kernel,
                launch: self.launch.grid_id,
                ending,
                rounds,
                orders: self.orders,
                differ,
                first: self.order(0),
                other: order,
                replay: self.replay(order),
            })
        };
        let (text, rounds, sides) = match how {
            Err(fault) => (
                report(Ending::Fault(&fault, limit), false),
                false,
                [(Deed::default(), fault.stack.clone()), (Deed::default(), Vec::new())],
            ),
            Ok(_) => {
                let Some(same) = self.once(self.order(0), Some(limit), None, false) else {
                    return;
                };
                let Some(again) = self.once(order, Some(limit), None, false) else {
                    return;
                };
                let by_itself = first.left.differences(&same.left);
                let all = self.differences(&first.left, &again.left).without(&by_itself);
                let Some(at) = all.first() else { return };
                let rounds = first.left.differs_by_rounding(&again.left, &all);
                if rounds && !config::get().check.benign {
                    KNOWN.lock().entry(Arc::clone(&self.kernel)).or_default().rounds = true;
                    return;
                }
                let writers = [self.order(0), order].map(|order| self.once(order, Some(limit), Some(at), false));
                let writers = writers.map(|ran| ran.and_then(|ran| ran.journal.writer()));
                let known = writers.iter().flatten().next();
                let (start, bytes) = known.map_or((at / 4 * 4, 4), |writer| (writer.address, writer.bytes));
                let writes = writers.each_ref().map(|writer| match writer {
                    Some(writer) => (write_by(writer), vec![writer.site.clone()]),
                    None => (Deed::default(), Vec::new()),
                });
                let [one, two] = writers;
                let values = [
                    first.left.value(&again.left, start, bytes as usize),
                    again.left.value(&first.left, start, bytes as usize),
                ];
                let sides = [
                    Side {
                        value: values[0],
                        writer: one,
                    },
                    Side {
                        value: values[1],
                        writer: two,
                    },
                ];
                let ending = Ending::Bytes {
                    address: start,
                    bytes: all.bytes(),
                    sides: &sides,
                };
                (report(ending, rounds), rounds, writes)
            }
        };
        {
            let mut known = KNOWN.lock();
            let known = known.entry(Arc::clone(&self.kernel)).or_default();
            (known.rounds, known.differs) = (known.rounds | rounds, known.differs | !rounds);
        }
        ANY.store(true, Ordering::Relaxed);
        let [(first, sites), (second, other)] = sides;
        tell(&Finding {
            severity: if rounds { Severity::Warning } else { Severity::Error },
            kernel: Some(Arc::clone(&self.kernel)),
            launch: Some(launched(self.launch)),
            sites,
            other,
            first,
            second,
            hosts: hosts(Some(&**self.launch), &[]),
            ..Finding::new(Kind::Order, text)
        });
    }

    /// What `MARGAY_SEED` is to be, so that the launch runs in this order again, and finds what it found.
    fn replay(&self, order: Order) -> String {
        match ANY.load(Ordering::Relaxed) {
            false => order.to_string(),
            true => format!("{},{}={order}", self.order(0), self.launch.grid_id),
        }
    }
}

fn write_by(writer: &Writer) -> Deed {
    Deed {
        what: "write",
        block: Some(writer.block),
        thread: Some(writer.thread),
    }
}

/// Memory that a program has registered it may take away.
fn guarded<T>(act: impl FnOnce() -> T) -> T {
    let gone = AtomicU64::new(0);
    let _guarded = memory::guard(&gone);
    act()
}

/// What a run has done that nobody can undo.
#[derive(Default)]
struct Done {
    allocates: AtomicBool,
    changes_graphs: AtomicBool,
}

impl Done {
    fn why(&self) -> Option<&'static str> {
        if self.allocates.load(Ordering::Relaxed) {
            return Some("they use the heap of kernels, whose addresses depend on the order");
        }
        let changes = self.changes_graphs.load(Ordering::Relaxed);
        changes.then_some("they launch or change graphs")
    }
}

/// A launch's services, in a run of several: what others would see is done in the first alone.
struct Aside {
    inner: Arc<dyn Services>,
    journal: Arc<Journal>,
    did: Arc<Done>,
    is_first: bool,
}

impl Services for Aside {
    fn malloc(&self, bytes: u64) -> u64 {
        self.did.allocates.store(true, Ordering::Relaxed);
        // A heap that is spent is what a kernel must expect; later runs leave the heap as it is.
        if self.is_first { self.inner.malloc(bytes) } else { 0 }
    }

    fn free(&self, address: u64) -> bool {
        self.did.allocates.store(true, Ordering::Relaxed);
        !self.is_first || self.inner.free(address)
    }

    fn print(&self, bytes: &[u8]) {
        if self.is_first {
            self.inner.print(bytes);
        }
    }

    fn assert_failed(&self, line: &str) {
        if self.is_first {
            self.inner.assert_failed(line);
        }
    }

    fn set_conditional(&self, handle: u64, value: u32) -> bool {
        !self.is_first || self.inner.set_conditional(handle, value)
    }

    fn view(&self) -> View {
        self.inner.view()
    }

    fn watch(&self, launch: &Arc<Launch>) -> Watch {
        let mut watch = self.inner.watch(launch);
        watch.add(Arc::clone(&self.journal));
        watch
    }
}

/// What kernels ask of the driver, likewise.
struct AsideRuntime {
    inner: Arc<dyn Runtime>,
    services: Arc<Aside>,
}

impl Runtime for AsideRuntime {
    fn child(&self, parent: &Launch, shape: &Shape, params: Box<[u8]>) -> Result<Launch, u32> {
        let mut launch = self.inner.child(parent, shape, params)?;
        launch.services = Arc::clone(&self.services) as Arc<dyn Services>;
        launch.family.runtime = launch.family.runtime.map(|inner| {
            Arc::new(AsideRuntime {
                inner,
                services: Arc::clone(&self.services),
            }) as Arc<dyn Runtime>
        });
        Ok(launch)
    }

    fn launch_graph(&self, from: u64, graph: u64, stream: u64) -> Result<(), u32> {
        self.services.did.changes_graphs.store(true, Ordering::Relaxed);
        match self.services.is_first {
            true => self.inner.launch_graph(from, graph, stream),
            false => Ok(()),
        }
    }

    fn update_node(&self, node: u64, update: GraphUpdate) -> Result<(), u32> {
        self.services.did.changes_graphs.store(true, Ordering::Relaxed);
        match self.services.is_first {
            true => self.inner.update_node(node, update),
            false => Ok(()),
        }
    }

    fn parameters(&self, kernel: u32) -> Result<u32, u32> {
        self.inner.parameters(kernel)
    }

    fn function_attribute(&self, kernel: u32, which: u32) -> Result<i32, u32> {
        self.inner.function_attribute(kernel, which)
    }

    fn occupancy(&self, kernel: u32, threads: u32, dynamic_shared: u64) -> Result<u32, u32> {
        self.inner.occupancy(kernel, threads, dynamic_shared)
    }

    fn device_attribute(&self, which: i32, device: i32) -> Result<i32, u32> {
        self.inner.device_attribute(which, device)
    }

    fn device_count(&self) -> u32 {
        self.inner.device_count()
    }

    fn device(&self) -> u32 {
        self.inner.device()
    }

    fn limit(&self, which: u32) -> Result<u64, u32> {
        self.inner.limit(which)
    }

    fn preferences(&self) -> (u32, u32) {
        self.inner.preferences()
    }

    fn version(&self) -> u32 {
        self.inner.version()
    }

    fn words(&self, error: u32) -> (&'static str, &'static str) {
        self.inner.words(error)
    }

    fn reserve(&self, bytes: u64) -> u64 {
        self.inner.reserve(bytes)
    }

    fn release(&self, start: u64) {
        self.inner.release(start);
    }
}
