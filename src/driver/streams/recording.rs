//! What recording an event leaves in a stream: a point, and the time at which it was reached.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::stream::{Point, Stream};
use crate::sanitizer::between::Mark;

/// One recording of an event.
pub(in crate::driver) struct Recording {
    stream: Arc<Stream>,
    ticket: AtomicU64,
    /// Nanoseconds, never 0; 0 = not reached yet.
    time: AtomicU64,
    /// What lies before it, where somebody looks for races.
    order: OnceLock<Mark>,
}

impl Recording {
    pub fn new(stream: Arc<Stream>, ticket: u64) -> Arc<Recording> {
        Arc::new(Recording {
            stream,
            ticket: AtomicU64::new(ticket),
            time: AtomicU64::new(0),
            order: OnceLock::new(),
        })
    }

    pub fn set_ticket(&self, ticket: u64) {
        self.ticket.store(ticket, Ordering::Release);
    }

    pub fn set_order(&self, order: Option<Mark>) {
        if let Some(order) = order {
            self.order.get_or_init(|| order);
        }
    }

    pub fn order(&self) -> Option<&Mark> {
        self.order.get()
    }

    pub fn stamp(&self) {
        static START: OnceLock<Instant> = OnceLock::new();
        let now = START.get_or_init(Instant::now).elapsed().as_nanos() as u64;
        self.time.store(now + 1, Ordering::Release);
    }

    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// Nanoseconds; of use once the point has been reached.
    pub fn time(&self) -> u64 {
        self.time.load(Ordering::Acquire)
    }

    pub fn point(&self) -> Point {
        Point {
            stream: Arc::clone(&self.stream),
            ticket: self.ticket.load(Ordering::Acquire),
        }
    }
}
