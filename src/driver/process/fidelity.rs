//! The table with which a process ends that was asked how exact it was (`MARGAY_FIDELITY=1`, `margay run --fidelity`): the
//! instructions of all kernels that ran.

use std::fmt::Write;
use std::io::Write as _;
use std::process;
use std::sync::OnceLock;

use crate::isa::fidelity::Fidelity;
use crate::program::executed::{self, Executed};

/// Columns that a terminal is taken to have.
const COLUMNS: usize = 100;

static PROCESS: OnceLock<u32> = OnceLock::new();

/// Notes launches from now on, and prints the table when the process ends by itself.
pub fn start() {
    if !crate::config::get().fidelity || PROCESS.set(process::id()).is_err() {
        return;
    }
    executed::keep();
    extern "C" fn at_exit() {
        // A child by `fork` has its parent's notes, which are not its own.
        if PROCESS.get() == Some(&process::id()) {
            let text = crate::defect::within(|| table(&executed::noted())).unwrap_or_default();
            // Nobody is left to tell of a failure.
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
    }
    // SAFETY: the handler catches panics, and the library is never unloaded.
    unsafe { libc::atexit(at_exit) };
}

fn table(executed: &Executed) -> String {
    let mut out = String::from("\nmargay: how far the results of what ran are hardware's (docs/fidelity.md)\n");
    for fidelity in Fidelity::ALL {
        let Some(instructions) = executed.get(&fidelity) else {
            continue;
        };
        let _ = writeln!(out, "  {}", fidelity.words());
        let mut line = String::new();
        for text in instructions {
            if !line.is_empty() && line.len() + text.len() + 2 > COLUMNS - 4 {
                let _ = writeln!(out, "    {line},");
                line.clear();
            }
            if !line.is_empty() {
                line.push_str(", ");
            }
            line.push_str(text);
        }
        let _ = writeln!(out, "    {line}");
    }
    if executed.is_empty() {
        out.push_str("  no kernel ran\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_paragraph_for_each_degree_that_occurs() {
        assert!(table(&Executed::new()).ends_with("  no kernel ran\n"));
        let mut executed = Executed::new();
        let names = |names: &[&str]| names.iter().map(|&name| Box::from(name)).collect();
        executed.insert(Fidelity::Exact, names(&["add", "fma"]));
        executed.insert(
            Fidelity::WithinBounds,
            (0..20).map(|i| Box::from(format!("tanh{i}"))).collect(),
        );
        let text = table(&executed);
        assert!(
            text.contains("\n  exact\n    add, fma\n  within the manual's bounds\n    tanh0, tanh1, "),
            "{text}"
        );
        assert!(
            text.lines().all(|line| line.len() <= COLUMNS) && text.contains(",\n    tanh"),
            "{text}"
        );
    }
}
