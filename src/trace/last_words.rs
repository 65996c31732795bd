//! Silence on threads whose thread-local storage is gone.
//!
//! A program's runtime calls the driver from its exit handlers, when the main thread's thread-locals have been destroyed
//! already. The log keeps its buffers and span numbers in thread-locals and would panic there. This layer lies over all
//! others, notes when a thread's storage goes, and lets nothing through from then on.

use std::cell::Cell;

use tracing::span::{Attributes, Id};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Storage {
    /// This thread has logged nothing yet.
    Unused,
    InUse,
    Gone,
}

thread_local! {
    /// Has no destructor, so that it can be read until the thread ends.
    static STORAGE: Cell<Storage> = const { Cell::new(Storage::Unused) };
    /// Destructors run last in, first out: this one is registered after those of the layers below have been.
    static WATCH: Watch = const { Watch };
}

struct Watch;

impl Drop for Watch {
    fn drop(&mut self) {
        STORAGE.set(Storage::Gone);
    }
}

/// The layer.
pub struct LastWords;

impl LastWords {
    fn used(&self) {
        if STORAGE.get() == Storage::Unused {
            WATCH.with(|_| ());
            STORAGE.set(Storage::InUse);
        }
    }
}

impl<S: Subscriber> Layer<S> for LastWords {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // Ask each time: the answer depends on the thread.
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>, _: Context<'_, S>) -> bool {
        STORAGE.get() != Storage::Gone
    }

    fn on_new_span(&self, _: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.used();
    }

    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        self.used();
    }
}
