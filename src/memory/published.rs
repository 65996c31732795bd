//! Lists that the driver changes now and then, and that kernels look something up in: without a lock as long as nothing has
//! changed.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::LocalKey;

use parking_lot::RwLock;

pub struct Published<T> {
    list: RwLock<Option<Arc<[T]>>>,
    /// Counts changes.
    changes: AtomicU64,
}

/// What a thread has seen of a list, at which count.
pub struct Seen<T>(RefCell<(u64, Option<Arc<[T]>>)>);

impl<T> Seen<T> {
    pub const fn nothing() -> Seen<T> {
        Seen(RefCell::new((0, None)))
    }
}

impl<T: Clone> Published<T> {
    pub const fn new() -> Published<T> {
        Published {
            list: RwLock::new(None),
            changes: AtomicU64::new(0),
        }
    }

    /// From now on it is what `f` makes of it.
    pub fn change(&self, f: impl FnOnce(&mut Vec<T>)) {
        let mut now = self.list.write();
        let mut list = now.as_deref().unwrap_or_default().to_vec();
        f(&mut list);
        *now = Some(list.into());
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// As it is now.
    pub fn get(&self, seen: &'static LocalKey<Seen<T>>) -> Arc<[T]> {
        seen.with(|Seen(seen)| {
            let (count, seen) = &mut *seen.borrow_mut();
            let now = self.changes.load(Ordering::Acquire);
            if *count != now || seen.is_none() {
                *seen = Some(self.list.read().clone().unwrap_or_default());
                *count = now;
            }
            seen.clone().unwrap_or_default()
        })
    }
}
