//! Code: libraries (of no context), modules (of one), kernels (of a library), functions (of a module).

use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;

use super::{Context, Device, Error, Handle, Result};

/// Why code was not loaded: the code, and words for the JIT log buffers (`CU_JIT_ERROR_LOG_BUFFER`).
#[derive(Clone, Debug)]
pub struct LoadError {
    pub error: Error,
    pub log: String,
}

impl From<Error> for LoadError {
    fn from(error: Error) -> LoadError {
        LoadError {
            error,
            log: error.text().into(),
        }
    }
}

pub struct Library {
    handle: Handle,
}
pub struct Module {
    handle: Handle,
}
pub struct Kernel {
    handle: Handle,
}
pub struct Function {
    handle: Handle,
}

impl Library {
    /// `cuLibraryLoadData`: needs no context. An image without PTX is accepted; using it gives 209 and a message.
    /// # Safety
    /// As [`crate::image::from_pointer`].
    pub unsafe fn load_data(_image: *const c_void) -> Result<Arc<Library>, LoadError> {
        todo!()
    }
    pub fn load_file(_path: &Path) -> Result<Arc<Library>, LoadError> {
        todo!()
    }
    pub fn from_handle(_handle: Handle) -> Result<Arc<Library>> {
        todo!()
    }
    pub fn handle(&self) -> Handle {
        self.handle
    }
    pub fn unload(self: &Arc<Library>) -> Result<()> {
        todo!()
    }
    /// `cuLibraryGetKernel`: 500 if there is none of that name.
    pub fn kernel(self: &Arc<Library>, _name: &str) -> Result<Arc<Kernel>> {
        todo!()
    }
    /// `cuLibraryGetKernelCount`, `cuLibraryEnumerateKernels`.
    pub fn kernels(self: &Arc<Library>) -> Result<Vec<Arc<Kernel>>> {
        todo!()
    }
    /// `cuLibraryGetModule`: the library's module in the current context.
    pub fn module(self: &Arc<Library>) -> Result<Arc<Module>> {
        todo!()
    }
    /// `cuLibraryGetGlobal` in the current context: (address, bytes).
    pub fn global(self: &Arc<Library>, _name: &str) -> Result<(u64, u64)> {
        todo!()
    }
    /// `cuLibraryGetManaged`: needs no context.
    pub fn managed(self: &Arc<Library>, _name: &str) -> Result<(u64, u64)> {
        todo!()
    }
}

impl Module {
    /// `cuModuleLoadData`, `cuModuleLoadDataEx`, `cuModuleLoadFatBinary` into the current context. `lazy`: an image
    /// without PTX is accepted and answered with 209 when used (what cudart registers); otherwise it is 209 at once.
    /// # Safety
    /// As [`crate::image::from_pointer`].
    pub unsafe fn load_data(_image: *const c_void, _lazy: bool) -> Result<Arc<Module>, LoadError> {
        todo!()
    }
    pub fn load_file(_path: &Path) -> Result<Arc<Module>, LoadError> {
        todo!()
    }
    pub fn from_handle(_handle: Handle) -> Result<Arc<Module>> {
        todo!()
    }
    pub fn handle(&self) -> Handle {
        self.handle
    }
    pub fn unload(self: &Arc<Module>) -> Result<()> {
        todo!()
    }
    pub fn function(self: &Arc<Module>, _name: &str) -> Result<Arc<Function>> {
        todo!()
    }
    pub fn functions(self: &Arc<Module>) -> Result<Vec<Arc<Function>>> {
        todo!()
    }
    pub fn global(&self, _name: &str) -> Result<(u64, u64)> {
        todo!()
    }
}

impl Kernel {
    pub fn from_handle(_handle: Handle) -> Result<Arc<Kernel>> {
        todo!()
    }
    pub fn handle(&self) -> Handle {
        self.handle
    }
    pub fn name(&self) -> &str {
        todo!()
    }
    pub fn library(&self) -> Arc<Library> {
        todo!()
    }
    /// `cuKernelGetFunction`: in the current context.
    pub fn function(self: &Arc<Kernel>) -> Result<Arc<Function>> {
        todo!()
    }
    /// `CUfunction_attribute` by number.
    pub fn attribute(&self, _device: &'static Device, _which: u32) -> Result<i32> {
        todo!()
    }
    pub fn set_attribute(&self, _device: &'static Device, _which: u32, _value: i32) -> Result<()> {
        todo!()
    }
    /// (offset, bytes); 1 past the last.
    pub fn parameter(&self, _index: usize) -> Result<(u32, u32)> {
        todo!()
    }
    pub fn parameter_count(&self) -> Result<usize> {
        todo!()
    }
}

impl Function {
    /// A `CUfunction`, or a `CUkernel` given in its place (in the current context): one look-up. 400 otherwise.
    pub fn from_handle(_handle: Handle) -> Result<Arc<Function>> {
        todo!()
    }
    pub fn handle(&self) -> Handle {
        self.handle
    }
    pub fn name(&self) -> &str {
        todo!()
    }
    pub fn module(&self) -> Result<Arc<Module>> {
        todo!()
    }
    pub fn context(&self) -> Result<Arc<Context>> {
        todo!()
    }
    pub fn attribute(&self, _which: u32) -> Result<i32> {
        todo!()
    }
    pub fn set_attribute(&self, _which: u32, _value: i32) -> Result<()> {
        todo!()
    }
    pub fn parameter(&self, _index: usize) -> Result<(u32, u32)> {
        todo!()
    }
    pub fn parameter_count(&self) -> usize {
        todo!()
    }
    /// `cuFuncIsLoaded`, `cuFuncLoad`.
    pub fn is_loaded(&self) -> bool {
        todo!()
    }
    pub fn load(&self) -> Result<()> {
        todo!()
    }
}
