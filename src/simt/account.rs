//! Which grids run and have run, with their times: kept only if somebody asks, for the summary of `margay run --summary` and
//! the line that shows a long kernel's progress.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::grid::Grid;

/// What ran a kernel's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    Interpreted,
    /// Blocks were interpreted first, and compiled later or from some point on.
    Mixed,
    Compiled,
}

/// A kernel that runs now.
#[derive(Clone, Debug)]
pub struct UnderWay {
    /// As the module spells it.
    pub kernel: Arc<str>,
    /// Since it began.
    pub time: Duration,
    /// Blocks (of a grid with clusters: clusters) there are.
    pub blocks: u64,
    /// Those that have begun; they end in about the same order.
    pub begun: u64,
    pub tier: Tier,
}

/// All launches of the kernels of one name, by the host or by other kernels.
#[derive(Clone, Debug, Default)]
pub struct Ran {
    pub launches: u64,
    pub blocks: u64,
    /// Of all launches together. What a kernel launches is not part of it, unless it waits for that.
    pub time: Duration,
    pub longest: Duration,
    /// Launches that were interpreted from their first to their last block.
    pub interpreted: u64,
    /// Launches that were compiled before their first block began.
    pub compiled: u64,
    /// Launches that ended by a fault.
    pub failed: u64,
}

#[derive(Default)]
struct Account {
    under_way: Vec<(u64, Instant, Weak<Grid>)>,
    begun: u64,
    ran: HashMap<Arc<str>, Ran>,
}

static WANTED: AtomicBool = AtomicBool::new(false);
static ACCOUNT: Mutex<Option<Account>> = Mutex::new(None);

/// From now on grids are noted.
pub fn keep() {
    WANTED.store(true, Ordering::Relaxed);
}

/// A grid begins. What this gives is to be handed to [`end`].
#[inline]
pub(super) fn begin(grid: &Arc<Grid>) -> Option<u64> {
    WANTED.load(Ordering::Relaxed).then(|| note(grid))
}

#[cold]
fn note(grid: &Arc<Grid>) -> u64 {
    let mut account = ACCOUNT.lock();
    let account = account.get_or_insert_default();
    account.begun += 1;
    account
        .under_way
        .push((account.begun, Instant::now(), Arc::downgrade(grid)));
    account.begun
}

/// A grid has ended.
#[inline]
pub(super) fn end(grid: &Grid, number: Option<u64>) {
    if let Some(number) = number {
        book(grid, number);
    }
}

#[cold]
fn book(grid: &Grid, number: u64) {
    let mut account = ACCOUNT.lock();
    let account = account.get_or_insert_default();
    let Some(at) = account.under_way.iter().position(|(other, ..)| *other == number) else {
        return;
    };
    let time = account.under_way.swap_remove(at).1.elapsed();
    let ran = account.ran.entry(Arc::clone(grid.name())).or_default();
    ran.launches += 1;
    ran.blocks += grid.begun();
    ran.time += time;
    ran.longest = ran.longest.max(time);
    match grid.tier() {
        Tier::Interpreted => ran.interpreted += 1,
        Tier::Mixed => {}
        Tier::Compiled => ran.compiled += 1,
    }
    ran.failed += u64::from(grid.has_stopped());
}

/// What runs now, the longest first; nothing if it is being changed at the moment.
pub fn under_way() -> Vec<UnderWay> {
    let Some(account) = ACCOUNT.try_lock() else {
        return Vec::new();
    };
    let grids = account.iter().flat_map(|account| &account.under_way);
    let mut all: Vec<UnderWay> = grids
        .filter_map(|(_, since, grid)| {
            let grid = grid.upgrade()?;
            Some(UnderWay {
                kernel: Arc::clone(grid.name()),
                time: since.elapsed(),
                blocks: grid.starts(),
                begun: grid.begun(),
                tier: grid.tier(),
            })
        })
        .collect();
    all.sort_by_key(|grid| std::cmp::Reverse(grid.time));
    all
}

/// What has ended, by name, the most time first.
pub fn ran() -> Vec<(Arc<str>, Ran)> {
    let account = ACCOUNT.lock();
    let kernels = account.iter().flat_map(|account| &account.ran);
    let mut all: Vec<_> = kernels.map(|(name, ran)| (Arc::clone(name), ran.clone())).collect();
    all.sort_by(|(a, x), (b, y)| y.time.cmp(&x.time).then_with(|| a.cmp(b)));
    all
}
