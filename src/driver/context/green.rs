//! Green contexts: a part of a device's multiprocessors with streams of its own, beside the primary context.
//!
//! It shares everything with the primary context but what it is called. How resources are split is in
//! `api/green_context.rs`.
//!
//! A processor has no multiprocessors to set aside: the count bounds what kernels are told and how large a cooperative
//! grid may be.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::driver::context;
use crate::driver::handle::{self, Registry};
use crate::driver::{Context, Device, Error, Handle, Result, Stream};

pub struct Green {
    handle: Handle,
    device: &'static Device,
    multiprocessors: u32,
    /// What the program said of them, for whoever asks.
    description: Description,
    /// The `CUcontext` that stands for it.
    context: Mutex<Option<Arc<Context>>>,
    primary: Arc<Context>,
    streams: Mutex<Vec<Weak<Stream>>>,
    is_destroyed: AtomicBool,
    id: u64,
}

/// What a green context was made of: multiprocessors, and how they belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    pub device: i32,
    pub multiprocessors: u32,
    pub alignment: u32,
    pub least: u32,
    pub flags: u32,
}

static GREENS: Registry<Green> = Registry::new();
static DESCRIPTIONS: Registry<Description> = Registry::new();

impl Description {
    /// `cuDevResourceGenerateDesc`: valid as long as the process lives.
    pub fn keep(self) -> Handle {
        let handle = handle::fresh();
        DESCRIPTIONS.insert(handle, &Arc::new(self));
        handle
    }

    pub fn from_handle(handle: Handle) -> Result<Description> {
        DESCRIPTIONS.get(handle).map(|found| *found).ok_or(Error::InvalidValue)
    }
}

impl Green {
    /// `cuGreenCtxCreate`: retains the primary context. 1 for a description of another device's resources.
    pub fn create(description: Description, device: &'static Device) -> Result<Arc<Green>> {
        if description.device != device.ordinal() {
            return Err(Error::InvalidValue);
        }
        let primary = Context::primary_retain(device)?;
        let handle = handle::fresh();
        let green = Arc::new(Green {
            handle,
            device,
            multiprocessors: description.multiprocessors,
            description,
            context: Mutex::new(None),
            primary: Arc::clone(&primary),
            streams: Mutex::default(),
            is_destroyed: AtomicBool::new(false),
            id: context::next_id(),
        });
        *green.context.lock() = Some(Context::for_green(&primary, &green));
        GREENS.insert(handle, &green);
        Ok(green)
    }

    /// 201 for what is not a green context, or no longer.
    pub fn from_handle(handle: Handle) -> Result<Arc<Green>> {
        GREENS.get(handle).ok_or(Error::InvalidContext)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// `cuGreenCtxGetId`.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn description(&self) -> Description {
        self.description
    }

    pub(in crate::driver) fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    pub(in crate::driver) fn is_destroyed(&self) -> bool {
        self.is_destroyed.load(Ordering::Acquire)
    }

    /// `cuCtxFromGreenCtx`.
    pub fn context(&self) -> Result<Arc<Context>> {
        self.context.lock().clone().ok_or(Error::InvalidContext)
    }

    /// `cuGreenCtxDestroy`: its streams stay until they are destroyed, but are good for nothing else.
    pub fn destroy(&self) -> Result<()> {
        GREENS.remove(self.handle).ok_or(Error::InvalidContext)?;
        self.is_destroyed.store(true, Ordering::Release);
        for stream in self.streams() {
            stream.abandon_capture();
        }
        if let Some(context) = self.context.lock().take() {
            context.end_for_green();
        }
        Context::primary_release(self.device)
    }

    pub(in crate::driver) fn primary(&self) -> &Arc<Context> {
        &self.primary
    }

    /// `cuGreenCtxStreamCreate`.
    pub fn create_stream(self: &Arc<Green>, priority: i32) -> Result<Arc<Stream>> {
        let stream = Stream::create_in(&self.context()?, 1, priority)?;
        Ok(stream)
    }

    pub(in crate::driver) fn add_stream(&self, stream: &Arc<Stream>) {
        let mut streams = self.streams.lock();
        streams.retain(|known| known.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    pub(in crate::driver) fn streams(&self) -> Vec<Arc<Stream>> {
        self.streams.lock().iter().filter_map(Weak::upgrade).collect()
    }
}
