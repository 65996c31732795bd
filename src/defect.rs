//! Defects of Margay's own: a panic takes neither the process nor a waiting thread with it.
//!
//! A panic unwinds to the nearest [`catch`], which says what is known about it; whoever caught it makes the context fail
//! with that as the report. Such places are: a call at the C ABI, a turn of a stream, a thread's part in a grid, the
//! making of a grid, and what a grid leaves to be done. What a panic may have left half done (bundles, windows) is dropped
//! on the way; counts and claims that others wait for are restored by guards.
//!
//! Tests make Margay panic at such places ([`may_fail`]). Libraries that are built without debug assertions do not have
//! that code.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use crate::memory;

/// What is known about a panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    message: String,
    /// Where in Margay's source, and with `RUST_BACKTRACE=1` how it came there.
    place: Option<String>,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a defect of Margay, not of the program; please report it: {}",
            self.message
        )?;
        match &self.place {
            Some(place) => write!(f, "\n  at {place}"),
            None => Ok(()),
        }
    }
}

thread_local! {
    /// How many [`catch`] this thread is in: whoever caught a panic tells of it, so that the hook need not.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
    /// Where the last panic of this thread happened.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `body`; a panic in it ends here.
///
/// # Errors
/// What is known about the panic. Whatever `body` was about to change is to be distrusted.
pub fn catch<R>(body: impl FnOnce() -> R) -> Result<R, Defect> {
    static HOOK: Once = Once::new();
    // A thread that panics cannot change the hook.
    if HOOK.is_completed() || std::thread::panicking() {
        return caught(body);
    }
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            note(info);
            // A thread that is about to end catches nothing any more.
            if INSIDE.try_with(Cell::get).unwrap_or(0) == 0 {
                before(info);
            }
        }));
    });
    caught(body)
}

fn caught<R>(body: impl FnOnce() -> R) -> Result<R, Defect> {
    let _inside = Inside::new();
    within(body)
}

/// [`catch`] for a part of what the thread does inside of another one: it costs nothing. (Outside of one, a panic is
/// told by the hook that was there before as well.)
///
/// # Errors
/// As [`catch`].
#[inline]
pub fn within<R>(body: impl FnOnce() -> R) -> Result<R, Defect> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| defect(payload.as_ref()))
}

struct Inside;

impl Inside {
    fn new() -> Inside {
        let _ = INSIDE.try_with(|inside| inside.set(inside.get() + 1));
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(inside.get().saturating_sub(1)));
    }
}

/// What the names of functions in a backtrace may take.
const NAMES: u64 = 64 << 20;

fn note(info: &PanicHookInfo<'_>) {
    let Some(location) = info.location() else { return };
    let mut place = location.to_string();
    // The names of functions take memory, and an allocation that fails while they are looked up waits for ever: the
    // standard library's report of it wants the lock that is held meanwhile.
    if memory::has_room(NAMES) {
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            place = format!("{place}\n{backtrace}");
        }
    }
    let _ = PLACE.try_with(|last| last.try_borrow_mut().map(|mut last| *last = Some(place)));
}

#[cold]
fn defect(payload: &(dyn Any + Send)) -> Defect {
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    Defect {
        message: message.unwrap_or("a panic without a message").into(),
        place: PLACE.try_with(RefCell::take).ok().flatten(),
    }
}

/// Where tests make Margay panic: `place` is the kind of place, `name` the kernel, call or context that is under way.
#[cfg(any(test, debug_assertions))]
pub fn may_fail(place: &str, name: impl fmt::Display) {
    injected::may_fail(place, &name);
}

/// Where tests make Margay panic, in libraries that are built for them.
#[cfg(not(any(test, debug_assertions)))]
#[inline(always)]
pub fn may_fail(_place: &str, _name: impl fmt::Display) {}

#[cfg(any(test, debug_assertions))]
mod injected {
    use std::fmt::Display;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    use parking_lot::RwLock;

    /// `place:name`, or `place:*` for whoever comes first, for a library in a process of its own. Once.
    const VARIABLE: &str = "CDYLIB_TEST_PANIC";

    static ARMED: RwLock<Vec<String>> = RwLock::new(Vec::new());
    static ANY: AtomicBool = AtomicBool::new(false);

    /// The next time that `name` comes to `place`, it panics.
    pub(super) fn arm(what: String) {
        ARMED.write().push(what);
        ANY.store(true, Ordering::SeqCst);
    }

    pub(super) fn may_fail(place: &str, name: &dyn Display) {
        static ASKED: OnceLock<()> = OnceLock::new();
        ASKED.get_or_init(|| {
            if let Ok(what) = std::env::var(VARIABLE) {
                arm(what);
            }
        });
        if !ANY.load(Ordering::SeqCst) {
            return;
        }
        let name = name.to_string();
        let here = |what: &String| {
            what.split_once(':')
                .is_some_and(|(p, n)| p == place && (n == name || n == "*"))
        };
        if ARMED.read().iter().any(here) {
            ARMED.write().retain(|what| !here(what));
            panic!("injected at {place}, {name}");
        }
    }
}

/// The next time that `name` comes to `place`, it panics.
#[cfg(test)]
pub fn arm(place: &str, name: impl fmt::Display) {
    injected::arm(format!("{place}:{name}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_caught_with_its_message_and_place() {
        assert_eq!(catch(|| 7), Ok(7));
        let line = line!() + 1;
        let caught = catch(|| -> u32 { panic!("{} went wrong", "something") }).unwrap_err();
        assert_eq!(caught.message, "something went wrong");
        let place = caught.place.clone().unwrap();
        assert!(place.contains(&format!("defect.rs:{line}:")), "{place}");
        let text = caught.to_string();
        assert!(text.contains("please report it: something went wrong\n  at "), "{text}");
        // The next one is not told with the last one's place.
        let caught = catch(|| std::panic::resume_unwind(Box::new("by hand"))).unwrap_err();
        assert_eq!((caught.message.as_str(), caught.place), ("by hand", None));
    }

    #[test]
    fn catches_nest() {
        let outer = catch(|| {
            let inner = catch(|| panic!("inner")).unwrap_err();
            assert_eq!(inner.message, "inner");
            panic!("outer")
        });
        let outer: Result<(), Defect> = outer;
        assert_eq!(outer.unwrap_err().message, "outer");
        assert_eq!(INSIDE.get(), 0);
    }
}
