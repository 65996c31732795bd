//! What compiled code hands to the interpreter, for whoever asks why a kernel is slow: `MARGAY_LOG=margay::simt::interp::handed=debug`.

use std::collections::HashMap;

use parking_lot::Mutex;
use tracing::{Level, debug, enabled};

use super::code::Executable;
use super::compile::Pc;

/// Said first at so many times, and then at ten times as many, and so on.
const FIRST: u64 = 1000;

/// How often, by function and place.
static TIMES: Mutex<Option<HashMap<(usize, Pc), u64>>> = Mutex::new(None);

/// Instructions one after the other, the first of which is at `pc`, are about to be carried out for compiled code.
#[inline]
pub(super) fn note(exec: &Executable, pc: Pc, count: u32) {
    if enabled!(Level::DEBUG) {
        count_up(exec, pc, count);
    }
}

#[cold]
fn count_up(exec: &Executable, pc: Pc, count: u32) {
    let times = {
        let mut all = TIMES.lock();
        let function = std::ptr::from_ref(exec).addr();
        let times = all.get_or_insert_default().entry((function, pc)).or_insert(0);
        *times += 1;
        *times
    };
    let tens = times / FIRST;
    if times % FIRST != 0 || tens == 0 || 10_u64.pow(tens.ilog10()) != tens {
        return;
    }
    let span = exec.span(pc);
    let text = &exec.function.source.text;
    let (start, end) = (span.start as usize, span.end as usize);
    let words: Vec<&str> = text.get(start..end).unwrap_or_default().split_whitespace().collect();
    let line = text.get(..start).map_or(0, |before| before.matches('\n').count() + 1);
    debug!(
        function = %exec.function.name,
        line,
        instruction = words.join(" "),
        count,
        times,
        "compiled code hands this to the interpreter"
    );
}
