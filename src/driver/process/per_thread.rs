//! What belongs to a thread and outlives its thread-local storage.
//!
//! `exit` destroys the thread-local storage of the thread that calls it before it runs exit handlers and static
//! destructors, in which programs free their memory: by then a `thread_local!` with a destructor is gone. A thread-specific
//! value of POSIX is not: `exit` leaves it alone, and a thread that merely ends runs its destructor. So a plain pointer
//! stands in thread-local storage, where it is quick to read, and the system's key sees to its end.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::LocalKey;

/// Where a thread keeps its pointer: `thread_local!` with a `const` initialiser and without a destructor.
pub(in crate::driver) type Place<T> = LocalKey<Cell<*mut Held<T>>>;

pub(in crate::driver) struct Held<T: 'static> {
    value: T,
    place: &'static Place<T>,
}

/// A value for each thread.
pub(in crate::driver) struct PerThread<T: 'static> {
    place: &'static Place<T>,
    /// `None`: the system has no keys left. What threads leave behind then stays.
    key: OnceLock<Option<libc::pthread_key_t>>,
}

impl<T: Default> PerThread<T> {
    pub const fn new(place: &'static Place<T>) -> PerThread<T> {
        PerThread {
            place,
            key: OnceLock::new(),
        }
    }

    /// The calling thread's value, made when it is first asked for.
    ///
    /// `f` must not come back here for the same value by a shared reference that it keeps: values are cells for that reason.
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        let mut held = self.place.get();
        if held.is_null() {
            held = self.fill();
        }
        // SAFETY: the pointer was made by `fill` on this thread, and lives until the thread's end, which does not come
        // while `f` runs on it.
        f(unsafe { &(*held).value })
    }

    #[cold]
    fn fill(&'static self) -> *mut Held<T> {
        let held = Box::into_raw(Box::new(Held {
            value: T::default(),
            place: self.place,
        }));
        self.place.set(held);
        let key = self.key.get_or_init(|| {
            let mut key = 0;
            // SAFETY: the place is good for writing, and the library, with the destructor, is never unloaded.
            let made = unsafe { libc::pthread_key_create(&mut key, Some(end::<T>)) } == 0;
            made.then_some(key)
        });
        if let Some(key) = *key {
            // SAFETY: the key exists. A failure leaves the value to the process's end.
            unsafe { libc::pthread_setspecific(key, held.cast()) };
        }
        held
    }
}

/// The calling thread's number, which no other thread has or gets.
pub(in crate::driver) fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    if NUMBER.get() == 0 {
        NUMBER.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    NUMBER.get()
}

/// The thread ends.
extern "C" fn end<T: 'static>(held: *mut c_void) {
    // SAFETY: the key's values are boxes that `fill` made; the system calls this once for each, on its thread.
    let held = unsafe { Box::from_raw(held.cast::<Held<T>>()) };
    // A later destructor that asks for the value gets a new one, and the system comes back for it.
    held.place.set(ptr::null_mut());
    drop(held);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::sync::Arc;

    thread_local! {
        static PLACE: Cell<*mut Held<RefCell<Vec<Arc<u32>>>>> = const { Cell::new(ptr::null_mut()) };
    }
    static VALUES: PerThread<RefCell<Vec<Arc<u32>>>> = PerThread::new(&PLACE);

    #[test]
    fn each_thread_has_its_own_which_ends_with_it() {
        let object = Arc::new(7);
        VALUES.with(|values| values.borrow_mut().push(Arc::clone(&object)));
        let other = Arc::clone(&object);
        let seen = std::thread::spawn(move || {
            VALUES.with(|values| {
                let before = values.borrow().len();
                values.borrow_mut().extend([Arc::clone(&other), other]);
                before
            })
        });
        assert_eq!(seen.join().unwrap(), 0);
        // The thread's destructors have run when it has been joined.
        assert_eq!(Arc::strong_count(&object), 2);
        assert_eq!(VALUES.with(|values| values.borrow().len()), 1);
    }
}
