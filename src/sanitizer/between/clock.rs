//! What lies before an operation: vector clocks, with a number for each line of operations.
//!
//! Lines are the streams and, as one, the threads of the host. The n-th operation of a line has the number n; a clock says of each line up
//! to which number its operations lie before.

use std::sync::{Arc, OnceLock};

/// The host's line.
pub const HOST: usize = 0;

#[derive(Clone, Debug, Default)]
pub struct Clock {
    known: Vec<u64>,
    /// What is known only when something has run that lies before.
    open: Vec<Arc<Open>>,
}

/// What a host function or a wait for a word in memory puts in order: nobody can say before it has run. Whatever lies behind it has
/// not run then either, and so is not compared with anything yet.
#[derive(Debug, Default)]
pub struct Open(OnceLock<Clock>);

impl Open {
    pub fn close(self: &Arc<Open>, mut known: Clock) {
        known.fold();
        known.open.retain(|open| !Arc::ptr_eq(open, self));
        // It is closed once: what it stands for runs once.
        let _ = self.0.set(known);
    }
}

impl Clock {
    pub const fn new() -> Clock {
        Clock {
            known: Vec::new(),
            open: Vec::new(),
        }
    }

    pub fn has(&self, line: usize, number: u64) -> bool {
        number == 0
            || self.known.get(line).is_some_and(|known| *known >= number)
            || self
                .open
                .iter()
                .any(|open| open.0.get().is_some_and(|clock| clock.has(line, number)))
    }

    pub fn set(&mut self, line: usize, number: u64) {
        if self.known.len() <= line {
            self.known.resize(line + 1, 0);
        }
        self.known[line] = self.known[line].max(number);
    }

    pub fn join(&mut self, other: &Clock) {
        self.take(other);
        self.fold();
    }

    pub fn wait_for(&mut self, open: &Arc<Open>) {
        self.open.push(Arc::clone(open));
    }

    fn take(&mut self, other: &Clock) {
        for (line, number) in other.known.iter().enumerate() {
            self.set(line, *number);
        }
        for open in &other.open {
            if !self.open.iter().any(|own| Arc::ptr_eq(own, open)) {
                self.open.push(Arc::clone(open));
            }
        }
    }

    /// What has been closed is known like anything else. What it waits for in turn was open when it was closed, so there is no circle.
    fn fold(&mut self) {
        let mut index = 0;
        while let Some(open) = self.open.get(index).cloned() {
            match open.0.get() {
                Some(known) => {
                    self.open.swap_remove(index);
                    self.take(known);
                }
                None => index += 1,
            }
        }
    }
}
