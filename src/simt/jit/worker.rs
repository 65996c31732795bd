//! The threads that compile beside everything else: one comes when there is something to do, and goes when there is nothing. What is
//! short comes first, and a second thread does it while the first one is at something long: a small kernel that a program has called
//! in a loop is not to wait for seconds until a large one is through that it has called once.

use parking_lot::Mutex;

use crate::defect;

type Job = Box<dyn FnOnce() + Send>;

/// A job is begun beside another one only if that is more than so many times as large.
const LONGER: usize = 8;
/// More would take cores from the kernels that run meanwhile.
const MOST_THREADS: usize = 2;

struct Worker {
    /// With their sizes, in the order in which they came.
    jobs: Vec<(usize, Job)>,
    /// Sizes of the jobs that threads are at.
    under_way: Vec<usize>,
    /// The process in which the threads run; a child of `fork` has no threads but one.
    runs_in: Option<u32>,
}

static WORKER: Mutex<Worker> = Mutex::new(Worker {
    jobs: Vec::new(),
    under_way: Vec::new(),
    runs_in: None,
});

impl Worker {
    /// The shortest job, if another thread may begin it now; it counts as under way then.
    fn next(&mut self) -> Option<(usize, Job)> {
        let numbered = self.jobs.iter().enumerate();
        let (at, size) = numbered
            .map(|(at, (size, _))| (at, *size))
            .min_by_key(|&(_, size)| size)?;
        let has_room = self.under_way.len() < MOST_THREADS && self.under_way.iter().all(|other| size * LONGER < *other);
        has_room.then(|| {
            self.under_way.push(size);
            self.jobs.remove(at)
        })
    }

    fn has_done(&mut self, size: usize) {
        if let Some(at) = self.under_way.iter().position(|other| *other == size) {
            self.under_way.swap_remove(at);
        }
    }
}

/// Has a job of this size, in instructions, done soon, by another thread. Where none can be had, it is never done.
pub fn later(size: usize, job: impl FnOnce() + Send + 'static) {
    let this = std::process::id();
    // Of a child of `fork`, somebody may hold this who is not there.
    let Some(mut worker) = WORKER.try_lock_for(std::time::Duration::from_millis(10)) else {
        return;
    };
    if worker.runs_in.is_some_and(|process| process != this) {
        worker.jobs.clear();
        worker.under_way.clear();
    }
    worker.runs_in = Some(this);
    worker.jobs.push((size, Box::new(job)));
    let Some((size, job)) = worker.next() else { return };
    let thread = std::thread::Builder::new().name("margay-jit".into());
    if let Err(error) = thread.spawn(move || work(size, job)) {
        tracing::debug!(%error, "no thread to compile");
        worker.has_done(size);
        if worker.under_way.is_empty() {
            worker.jobs.clear();
        }
    }
}

fn work(mut size: usize, mut job: Job) {
    loop {
        if let Err(defect) = defect::catch(job) {
            tracing::error!("{defect}");
        }
        let mut worker = WORKER.lock();
        worker.has_done(size);
        match worker.next() {
            Some(next) => (size, job) = next,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(worker: &mut Worker) -> Vec<usize> {
        std::iter::from_fn(|| worker.next()).map(|(size, _)| size).collect()
    }

    #[test]
    fn what_is_short_comes_first_and_beside_what_is_long() {
        let mut worker = Worker {
            jobs: [1000, 100, 50, 100].map(|size| (size, Box::new(|| ()) as Job)).into(),
            under_way: Vec::new(),
            runs_in: None,
        };
        assert_eq!(sizes(&mut worker), [50]);
        worker.has_done(50);
        assert_eq!(sizes(&mut worker), [100]);
        worker.has_done(100);
        assert_eq!(sizes(&mut worker), [100]);
        worker.has_done(100);
        assert_eq!(sizes(&mut worker), [1000]);
        // Somebody is at the long one: what is much shorter need not wait, and nothing else is begun beside the two.
        worker.jobs = [200, 100, 1].map(|size| (size, Box::new(|| ()) as Job)).into();
        assert_eq!(sizes(&mut worker), [1]);
        worker.has_done(1);
        assert_eq!(sizes(&mut worker), [100]);
        worker.has_done(100);
        assert!(worker.next().is_none());
        worker.has_done(1000);
        assert_eq!(sizes(&mut worker), [200]);
    }
}
