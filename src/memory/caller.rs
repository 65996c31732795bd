//! The driver call that a thread carries out. Allocations remember who made them and who freed them, and launches who launched
//! them, so that the report of a kernel's fault can say it.

use std::cell::Cell;

use crate::backtrace::{self, Backtrace};

/// A call, and where in the program it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    /// The call, or what a kernel did; empty: nobody in particular.
    pub name: &'static str,
    /// [`Backtrace::NONE`] where nobody wants to know.
    pub at: Backtrace,
}

impl Caller {
    pub const NOBODY: Caller = Caller::named("");

    /// Code of the program's own, at an instruction.
    pub fn program(code: usize) -> Caller {
        let at = match backtrace::wanted() {
            true => Backtrace::take_at(code),
            false => Backtrace::NONE,
        };
        Caller { name: PROGRAM, at }
    }

    /// No call, but the program's own code.
    pub fn is_program(self) -> bool {
        self.name == PROGRAM
    }

    /// What is done by no call of the program's.
    pub const fn named(name: &'static str) -> Caller {
        Caller {
            name,
            at: Backtrace::NONE,
        }
    }

    /// The name as the manual has it.
    pub fn plain(self) -> &'static str {
        plain(self.name)
    }

    /// Does something in the name of another call: work that was queued, or that a kernel asks for.
    pub fn during<T>(self, work: impl FnOnce() -> T) -> T {
        let outer = set(self, true);
        let result = work();
        restore(outer);
        result
    }
}

/// As which reports name the program's own code.
const PROGRAM: &str = "the host";

/// What a thread carries out.
#[derive(Clone, Copy)]
pub struct Current {
    caller: Caller,
    /// Where it was made has been looked up, or is not to be looked up.
    is_settled: bool,
}

thread_local! {
    static CURRENT: Cell<Current> = const {
        Cell::new(Current {
            caller: Caller::NOBODY,
            is_settled: true,
        })
    };
}

#[inline]
fn set(caller: Caller, is_settled: bool) -> Current {
    CURRENT.with(|current| current.replace(Current { caller, is_settled }))
}

/// Notes the call that begins on this thread; gives what it stands in, to be put back with [`restore`].
#[inline]
pub fn replace(name: &'static str) -> Current {
    set(Caller::named(name), false)
}

#[inline]
pub fn restore(outer: Current) {
    CURRENT.with(|current| current.set(outer));
}

impl Current {
    /// A call of the program's stands in no other.
    #[inline]
    pub fn is_outermost(self) -> bool {
        self.caller.name.is_empty()
    }
}

/// The call that this thread carries out; empty outside of calls.
#[inline]
pub fn name() -> &'static str {
    CURRENT.with(Cell::get).caller.name
}

/// The call that this thread carries out, and where it was made, if somebody wants to know that.
#[inline]
pub fn here() -> Caller {
    let current = CURRENT.with(Cell::get);
    if current.is_settled || !backtrace::wanted() {
        return current.caller;
    }
    let caller = Caller {
        at: Backtrace::take(),
        ..current.caller
    };
    set(caller, true);
    caller
}

/// The name as the manual has it: `cuMemAlloc` for `cuMemAlloc_v2`.
pub fn plain(name: &'static str) -> &'static str {
    let name = name
        .strip_suffix("_ptsz")
        .or_else(|| name.strip_suffix("_ptds"))
        .unwrap_or(name);
    match name.rsplit_once("_v") {
        Some((plain, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => plain,
        _ => name,
    }
}
