//! The process's workers: threads that help to run grids. Started at the first grid that has work for them, sized by
//! the available cores (`MARGAY_THREADS`), never by a constructor of the library.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::grid::{Grid, Helper};
use crate::defect;

/// How long an idle worker looks for work before it sleeps: a launch that follows soon needs no wake-up call.
const LINGER: Duration = Duration::from_micros(30);

/// Work on offer.
struct Offer {
    grid: Arc<Grid>,
    /// Helpers still wanted.
    wanted: usize,
}

struct Pool {
    offers: Mutex<VecDeque<Offer>>,
    wake: Condvar,
    /// Offers in the queue, readable without the lock.
    waiting: AtomicUsize,
    /// Workers asleep.
    asleep: AtomicUsize,
    helpers: usize,
}

static POOL: OnceLock<&'static Pool> = OnceLock::new();

/// Threads that may work on a grid, the caller's included.
pub fn threads() -> usize {
    crate::config::get().threads.max(1)
}

fn pool() -> &'static Pool {
    POOL.get_or_init(|| {
        let helpers = threads() - 1;
        let pool: &'static Pool = Box::leak(Box::new(Pool {
            offers: Mutex::new(VecDeque::new()),
            wake: Condvar::new(),
            waiting: AtomicUsize::new(0),
            asleep: AtomicUsize::new(0),
            helpers,
        }));
        for i in 0..helpers {
            // A machine that refuses threads still has the caller's.
            let _ = std::thread::Builder::new()
                .name(format!("margay-worker-{i}"))
                // Kernels that wait for what they have launched run it on their own stack.
                .stack_size(8 << 20)
                .spawn(move || pool.work(i as u32 + 1));
        }
        pool
    })
}

/// Asks up to `wanted` workers to help with a grid.
pub fn invite(grid: &Arc<Grid>, wanted: usize) {
    if threads() == 1 || wanted == 0 {
        return;
    }
    let pool = pool();
    let wanted = wanted.min(pool.helpers);
    pool.offers.lock().push_back(Offer {
        grid: Arc::clone(grid),
        wanted,
    });
    pool.waiting.fetch_add(1, Ordering::SeqCst);
    if pool.asleep.load(Ordering::SeqCst) > 0 {
        for _ in 0..wanted {
            pool.wake.notify_one();
        }
    }
}

/// Takes back an invitation that not everybody has followed.
pub fn withdraw(grid: &Arc<Grid>) {
    if let Some(pool) = POOL.get() {
        let mut offers = pool.offers.lock();
        let before = offers.len();
        offers.retain(|o| !Arc::ptr_eq(&o.grid, grid));
        pool.waiting.fetch_sub(before - offers.len(), Ordering::SeqCst);
    }
}

impl Pool {
    fn take(&self, offers: &mut VecDeque<Offer>) -> Option<Helper> {
        let offer = offers.front_mut()?;
        offer.wanted -= 1;
        let helper = offer.grid.join();
        if offer.wanted == 0 {
            offers.pop_front();
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        Some(helper)
    }

    fn next(&self) -> Helper {
        let start = Instant::now();
        loop {
            if self.waiting.load(Ordering::SeqCst) > 0
                && let Some(helper) = self.take(&mut self.offers.lock())
            {
                return helper;
            }
            if start.elapsed() > LINGER {
                break;
            }
            std::hint::spin_loop();
        }
        let mut offers = self.offers.lock();
        loop {
            if let Some(helper) = self.take(&mut offers) {
                return helper;
            }
            self.asleep.fetch_add(1, Ordering::SeqCst);
            self.wake.wait(&mut offers);
            self.asleep.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn work(&self, number: u32) {
        loop {
            let helper = self.next();
            // What it does for the grid is caught in there; its end may be the end of a launch and all that hangs on it.
            if let Err(defect) = defect::catch(|| helper.work(number)) {
                tracing::error!("{defect}\n  at the end of a grid");
            }
        }
    }
}
