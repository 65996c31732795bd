//! The thread that compiles beside everything else: it comes when there is something to do, and goes when there is nothing.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::defect;

type Job = Box<dyn FnOnce() + Send>;

struct Worker {
    jobs: VecDeque<Job>,
    /// The process in which the thread runs; a child of `fork` has no threads but one.
    runs_in: Option<u32>,
}

static WORKER: Mutex<Worker> = Mutex::new(Worker {
    jobs: VecDeque::new(),
    runs_in: None,
});

/// Has a job done soon, by another thread. Where none can be had, it is never done.
pub fn later(job: impl FnOnce() + Send + 'static) {
    let this = std::process::id();
    // Of a child of `fork`, somebody may hold this who is not there.
    let Some(mut worker) = WORKER.try_lock_for(std::time::Duration::from_millis(10)) else {
        return;
    };
    if worker.runs_in.is_some_and(|process| process != this) {
        worker.jobs.clear();
        worker.runs_in = None;
    }
    worker.jobs.push_back(Box::new(job));
    if worker.runs_in.is_none() {
        let thread = std::thread::Builder::new().name("margay-jit".into());
        match thread.spawn(work) {
            Ok(_) => worker.runs_in = Some(this),
            Err(error) => {
                tracing::debug!(%error, "no thread to compile");
                worker.jobs.clear();
            }
        }
    }
}

fn work() {
    loop {
        let job = {
            let mut worker = WORKER.lock();
            match worker.jobs.pop_front() {
                Some(job) => job,
                None => {
                    worker.runs_in = None;
                    return;
                }
            }
        };
        if let Err(defect) = defect::catch(job) {
            tracing::error!("{defect}");
        }
    }
}
