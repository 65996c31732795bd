//! User objects: something of the program's that ends when the last graph that needs it does.
//!
//! The destructor is called once, on a thread of the driver's.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, mpsc};

use parking_lot::Mutex;

use super::super::handle::{self, Registry};
use super::super::stream::{HostFunction, as_host_function};
use crate::defect;
use crate::driver::{Error, Handle, Result};

pub struct UserObject {
    handle: Handle,
    destroy: HostFunction,
    data: usize,
    /// References that the program holds; what graphs hold is in `count`, too.
    held: Mutex<u32>,
    count: AtomicU32,
}

static OBJECTS: Registry<UserObject> = Registry::new();

impl UserObject {
    /// `cuUserObjectCreate`: `count` references are the caller's (1 for none).
    pub fn create(destroy: HostFunction, data: usize, count: u32) -> Result<Arc<UserObject>> {
        if count == 0 || count > i32::MAX as u32 {
            return Err(Error::InvalidValue);
        }
        let object = Arc::new(UserObject {
            handle: handle::fresh(),
            destroy,
            data,
            held: Mutex::new(count),
            count: AtomicU32::new(count),
        });
        OBJECTS.insert(object.handle, &object);
        Ok(object)
    }

    pub fn from_handle(handle: Handle) -> Result<Arc<UserObject>> {
        OBJECTS.get(handle).ok_or(Error::InvalidValue)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// `cuUserObjectRetain`.
    pub fn retain_by_program(&self, count: u32) -> Result<()> {
        if count == 0 || count > i32::MAX as u32 {
            return Err(Error::InvalidValue);
        }
        let mut held = self.held.lock();
        *held = held.checked_add(count).ok_or(Error::InvalidValue)?;
        self.retain(count);
        Ok(())
    }

    /// `cuUserObjectRelease`: 1 for more than the program holds.
    pub fn release_by_program(&self, count: u32) -> Result<()> {
        if count == 0 {
            return Err(Error::InvalidValue);
        }
        {
            let mut held = self.held.lock();
            *held = held.checked_sub(count).ok_or(Error::InvalidValue)?;
        }
        self.release_from_graph(count);
        Ok(())
    }

    /// The program's references become a graph's.
    pub(super) fn check_held(&self, count: u32) -> Result<()> {
        let mut held = self.held.lock();
        *held = held.checked_sub(count).ok_or(Error::InvalidValue)?;
        Ok(())
    }

    pub(super) fn retain(&self, count: u32) {
        self.count.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn release_from_graph(&self, count: u32) {
        if self.count.fetch_sub(count, Ordering::AcqRel) == count {
            OBJECTS.remove(self.handle);
            later(self.destroy, self.data);
        }
    }
}

/// Calls a destructor, on one thread for all of them (manual, cuUserObjectCreate).
fn later(destroy: HostFunction, data: usize) {
    static QUEUE: OnceLock<Mutex<mpsc::Sender<(HostFunction, usize)>>> = OnceLock::new();
    let queue = QUEUE.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<(HostFunction, usize)>();
        let run = move || {
            for (destroy, data) in receiver {
                if let Err(defect) = defect::catch(|| as_host_function(|| destroy(data))) {
                    // It is nobody's context: the objects that follow go as they should.
                    tracing::error!("{defect}\n  in the destructor of a user object");
                }
            }
        };
        // Without a thread the receiver is gone, and whoever releases calls the destructor.
        let _ = std::thread::Builder::new().name("margay-objects".into()).spawn(run);
        Mutex::new(sender)
    });
    if let Err(mpsc::SendError((destroy, data))) = queue.lock().send((destroy, data)) {
        as_host_function(|| destroy(data));
    }
}
