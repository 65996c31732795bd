//! The driver call that a thread carries out. Allocations remember who made them and who freed them, so that the report of
//! a kernel's fault can say it.

use std::cell::Cell;

thread_local! {
    static CALLER: Cell<&'static str> = const { Cell::new("") };
}

/// Notes the call that begins on this thread; gives the one that it stands in, to be put back with [`restore`].
#[inline]
pub fn replace(name: &'static str) -> &'static str {
    CALLER.with(|caller| caller.replace(name))
}

#[inline]
pub fn restore(outer: &'static str) {
    CALLER.with(|caller| caller.set(outer));
}

/// The call that this thread carries out; empty outside of calls.
#[inline]
pub fn name() -> &'static str {
    CALLER.with(Cell::get)
}

/// Does something in the name of another call: work that was queued, or that a kernel asks for.
pub fn during<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    let outer = replace(name);
    let result = work();
    restore(outer);
    result
}

/// The name as the manual has it: `cuMemAlloc` for `cuMemAlloc_v2`.
pub fn plain(name: &str) -> &str {
    let name = name
        .strip_suffix("_ptsz")
        .or_else(|| name.strip_suffix("_ptds"))
        .unwrap_or(name);
    match name.rsplit_once("_v") {
        Some((plain, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => plain,
        _ => name,
    }
}
