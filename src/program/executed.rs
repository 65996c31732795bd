//! Which instructions the kernels consisted of that this process ran, with how far their results are hardware's: kept only
//! if somebody asks, for the table that `margay run --fidelity` ends with.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::module::Module;
use crate::isa::fidelity::Fidelity;

/// By how exact they are, instructions as one knows them: what is exact by its name, the rest by its opcode.
pub type Executed = BTreeMap<Fidelity, BTreeSet<Box<str>>>;

static WANTED: AtomicBool = AtomicBool::new(false);
static EXECUTED: Mutex<Executed> = Mutex::new(BTreeMap::new());

/// From now on launches are noted.
pub fn keep() {
    WANTED.store(true, Ordering::Relaxed);
}

/// A kernel of `module` runs, and may run all that it can reach.
#[inline]
pub fn note(module: &Module, kernel: u32) {
    if WANTED.load(Ordering::Relaxed) {
        note_reached(module, kernel);
    }
}

#[cold]
fn note_reached(module: &Module, kernel: u32) {
    let mut executed = EXECUTED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut seen = HashSet::from([kernel]);
    let mut work = vec![kernel];
    while let Some(next) = work.pop() {
        // What does not lower is not run; who calls it gets its own message.
        let Ok(function) = module.prepare(next) else { continue };
        for (fidelity, text) in &function.instructions {
            let texts = executed.entry(*fidelity).or_default();
            if !texts.contains(text) {
                texts.insert(text.clone());
            }
        }
        work.extend(function.callees.iter().filter(|&&callee| seen.insert(callee)));
        if function.calls_indirectly {
            work.extend(module.address_taken().iter().filter(|&&target| seen.insert(target)));
        }
    }
}

/// What has been noted so far.
pub fn noted() -> Executed {
    EXECUTED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
