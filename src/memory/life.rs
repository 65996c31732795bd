//! The life of memory, for those who look on while kernels run: what kernels may touch, since when, and until when.
//!
//! Every change of what kernels may do with a range goes through one place ([`AddressSpace`]'s map, and the table of host
//! ranges), and is told from there. Nobody listens as a rule, which costs a load per allocation.
//!
//! [`AddressSpace`]: super::AddressSpace

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::RwLock;

use super::Kind;

/// A range of memory whose rights change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    pub start: u64,
    pub bytes: u64,
    /// `None`: a range of the host's that was registered.
    pub kind: Option<Kind>,
    /// What kernels may do from now on: map bits. 0: it is gone, for them.
    pub bits: u8,
}

/// Is told of each change, by the thread that makes it, while the address space is locked: it must not allocate there.
pub trait Listener: Send + Sync {
    fn changed(&self, life: &Life);
}

static ANY: AtomicBool = AtomicBool::new(false);
static LISTENERS: RwLock<Vec<Weak<dyn Listener>>> = RwLock::new(Vec::new());

/// Tells a listener of all that happens from now on, for as long as it lives.
pub fn listen(listener: &Arc<dyn Listener>) {
    let mut listeners = LISTENERS.write();
    listeners.retain(|known| known.strong_count() > 0);
    listeners.push(Arc::downgrade(listener));
    ANY.store(true, Ordering::Release);
}

pub(super) fn tell(life: impl FnOnce() -> Life) {
    if ANY.load(Ordering::Acquire) {
        let life = life();
        for listener in LISTENERS.read().iter().filter_map(Weak::upgrade) {
            listener.changed(&life);
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::memory::{AddressSpace, READ, Request, WRITE};

    #[derive(Default)]
    struct Diary(Mutex<Vec<Life>>);

    impl Listener for Diary {
        fn changed(&self, life: &Life) {
            self.0.lock().push(*life);
        }
    }

    #[test]
    fn allocations_and_host_ranges_are_told_from_their_first_day_to_their_last() {
        let diary = Arc::new(Diary::default());
        let listener: Arc<dyn Listener> = Arc::clone(&diary) as Arc<dyn Listener>;
        listen(&listener);
        let space = AddressSpace::get();
        let start = space
            .allocate(&Request::new(Kind::Device, 5000))
            .expect("there is room")
            .start;
        space.withdraw(start);
        space.offer(start).expect("there was room");
        space.free(start).expect("it is there");
        let host = Box::new([0u8; 64]);
        let address = host.as_ptr() as u64;
        assert!(space.register_host(address, 64, READ, 1, 0, 0));
        space.unregister_host(address).expect("it is there");
        let lives = diary.0.lock();
        // Other tests allocate at the same time.
        let own = lives.iter().filter(|life| life.start == start || life.start == address);
        let own: Vec<(u64, Option<Kind>, u8)> = own.map(|life| (life.bytes, life.kind, life.bits)).collect();
        let device = |bits| (5000, Some(Kind::Device), bits);
        let expected = [
            device(READ | WRITE),
            device(0),
            device(READ | WRITE),
            device(0),
            (64, None, READ),
            (64, None, 0),
        ];
        assert_eq!(own, expected);
    }
}
