//! `cuLink*`: several images become one that the loader takes.

use std::path::Path;
use std::sync::Arc;

use super::{Handle, LoadError, Result};

pub struct Linker {
    handle: Handle,
}

impl Linker {
    pub fn create() -> Result<Arc<Linker>> {
        todo!()
    }
    pub fn from_handle(_handle: Handle) -> Result<Arc<Linker>> {
        todo!()
    }
    pub fn handle(&self) -> Handle {
        self.handle
    }
    /// `cuLinkAddData`: `kind` is a `CUjitInputType`; `name` for messages.
    pub fn add_data(&self, _kind: u32, _bytes: &[u8], _name: &str) -> Result<(), LoadError> {
        todo!()
    }
    pub fn add_file(&self, _kind: u32, _path: &Path) -> Result<(), LoadError> {
        todo!()
    }
    /// The image: stays where it is until [`Linker::destroy`].
    pub fn complete(&self) -> Result<&[u8], LoadError> {
        todo!()
    }
    pub fn destroy(self: &Arc<Linker>) -> Result<()> {
        todo!()
    }
}
