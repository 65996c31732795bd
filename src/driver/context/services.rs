//! What kernels ask of their context: output, assertions, memory.
//!
//! What they print goes to the program's own `stdout`, and failed assertions to its `stderr`, as CUDA's do.

use std::sync::Arc;

use crate::config::{self, Check};
use crate::driver::code::{misuses, number_report, races, uninitialised};
use crate::driver::context::Shared;
use crate::driver::{graph, process};
use crate::memory::{AddressSpace, View};
use crate::sanitizer::{between, init, numbers, race, sync};
use crate::simt::observe::Watch;
use crate::simt::{Launch, Services};

unsafe extern "C" {
    // C's own streams: output keeps its order with that of the program only if it goes the same way.
    static stderr: *mut libc::FILE;
}

impl Services for Shared {
    fn malloc(&self, bytes: u64) -> u64 {
        self.heap.allocate(bytes)
    }

    fn free(&self, address: u64) -> bool {
        self.heap.free(address)
    }

    fn print(&self, bytes: &[u8]) {
        self.printer.print(bytes);
    }

    fn set_conditional(&self, handle: u64, value: u32) -> bool {
        graph::set_conditional(handle, value)
    }

    fn view(&self) -> View {
        AddressSpace::get().view_of(self.id)
    }

    fn watch(&self, launch: &Arc<Launch>) -> Watch {
        let mut check = config::get().check;
        let is_checked = launch.is_checked();
        if !is_checked {
            // What it writes and copies about must be known all the same.
            check = Check {
                init: check.init,
                ..Check::default()
            };
        }
        let mut watch = Watch::default();
        if check.race {
            let options = race::Options { benign: check.benign };
            let of = Arc::clone(launch);
            let tell = move |race: race::Race| process::check::race(&race, races::report(&race), &of);
            watch.add(Arc::new(race::Detector::new(launch, options, Arc::new(tell))));
            if let Some(collector) = between::collector(launch) {
                watch.add(collector);
            }
        }
        if check.fp {
            let of = Arc::clone(launch);
            let tell =
                move |number: numbers::Number| process::check::number(&number, number_report::report(&number), &of);
            watch.add(Arc::new(numbers::Detector::new(launch, check.numbers, Arc::new(tell))));
        }
        if check.sync {
            let of = Arc::clone(launch);
            let tell = move |misuse: sync::Misuse| process::check::misuse(&misuse, misuses::report(&misuse), &of);
            let checker = Arc::new(sync::Checker::new(launch, Arc::new(tell)));
            process::waits::grid_begins(&checker);
            watch.add(checker);
        }
        if check.init {
            let of = Arc::clone(launch);
            let tell = move |found: init::Uninitialised| {
                if is_checked {
                    process::check::uninitialised(&found, uninitialised::report(&found), &of);
                }
            };
            if let Some(detector) = init::Detector::new(launch, Arc::new(tell)) {
                watch.add(Arc::new(detector));
            }
        }
        watch
    }

    fn assert_failed(&self, line: &str) {
        // What the kernel printed before comes first.
        self.printer.flush();
        let line = format!("{}\n", line.trim_end_matches('\n'));
        // SAFETY: `stderr` is C's, initialised before any code of ours runs; the bytes live through the call.
        unsafe {
            let stream = stderr;
            libc::fwrite(line.as_ptr().cast(), 1, line.len(), stream);
            libc::fflush(stream);
        }
    }
}
