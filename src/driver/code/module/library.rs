//! Libraries (`cuLibrary*`): linked once in each context that asks.

use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::link::LibraryVariables;
use super::{CALLABLES, Callable, Kernel, LIBRARIES, Library, Linked, Module};
use crate::driver::code::{Code, LoadError, Remarks, Symbols};
use crate::driver::{Context, Device, Error, Handle, Result, handle};
use crate::memory::AddressSpace;
use crate::ptx::ast;

impl Library {
    fn new(code: Arc<Code>) -> Arc<Library> {
        let library = Arc::new(Library {
            handle: handle::fresh(),
            code,
            instances: Mutex::default(),
            kernels: Mutex::default(),
            managed: Mutex::default(),
        });
        LIBRARIES.insert(library.handle, &library);
        library
    }

    /// `cuLibraryLoadData`: needs no context. An image without PTX is accepted; using it gives 209 and a message. A text that
    /// cannot be read is refused; what fat binaries hold is read when it is used.
    ///
    /// # Errors
    /// What the image room or the parser has against it.
    ///
    /// # Safety
    /// As [`crate::image::from_pointer`].
    pub unsafe fn load_data(image: *const c_void) -> Result<Arc<Library>, LoadError> {
        // SAFETY: our caller promises an image at this address; null is refused in there.
        let code = unsafe { Code::from_pointer(image)? };
        code.check_text()?;
        Ok(Library::new(code))
    }

    /// `cuLibraryLoadFromFile`.
    pub fn load_file(path: &Path) -> Result<Arc<Library>, LoadError> {
        let code = Code::from_file(path)?;
        code.check_text()?;
        Ok(Library::new(code))
    }

    pub fn from_handle(handle: Handle) -> Result<Arc<Library>> {
        LIBRARIES.get(handle).ok_or(Error::InvalidHandle)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// `cuLibraryUnload`.
    pub fn unload(self: &Arc<Library>) -> Result<()> {
        LIBRARIES.remove(self.handle).ok_or(Error::InvalidHandle)?;
        let instances = std::mem::take(&mut *self.instances.lock());
        for module in instances.values() {
            module.end();
        }
        for (_, kernel) in self.kernels.lock().drain() {
            CALLABLES.remove(kernel.handle);
        }
        for variable in self.managed.lock().drain(..) {
            AddressSpace::get().free(variable.start);
        }
        Ok(())
    }

    fn kernel_names(&self) -> Result<Vec<Arc<str>>> {
        let trees = self.code.trees().map_err(|error| error.error)?;
        let items = trees.iter().flat_map(|tree| tree.items.iter());
        let kernels = items.filter_map(|item| match item {
            ast::Item::Function(function) if function.entry && function.body.is_some() => {
                Some(Arc::clone(&function.name.text))
            }
            _ => None,
        });
        Ok(kernels.collect())
    }

    fn intern(self: &Arc<Library>, name: &str) -> Arc<Kernel> {
        let mut kernels = self.kernels.lock();
        if let Some(kernel) = kernels.get(name) {
            return Arc::clone(kernel);
        }
        let kernel = Arc::new(Kernel {
            handle: handle::fresh(),
            name: name.into(),
            library: Arc::downgrade(self),
            functions: Mutex::default(),
            attributes: Mutex::default(),
        });
        let callable = Arc::new(Callable::Kernel(Arc::clone(&kernel)));
        CALLABLES.insert(kernel.handle, &callable);
        kernels.insert(Arc::clone(&kernel.name), Arc::clone(&kernel));
        kernel
    }

    /// `cuLibraryGetKernel`: 500 if there is none of that name.
    pub fn kernel(self: &Arc<Library>, name: &str) -> Result<Arc<Kernel>> {
        if let Some(kernel) = self.kernels.lock().get(name) {
            return Ok(Arc::clone(kernel));
        }
        if !self.kernel_names()?.iter().any(|known| **known == *name) {
            return Err(Error::NotFound);
        }
        Ok(self.intern(name))
    }

    /// `cuLibraryGetKernelCount`, `cuLibraryEnumerateKernels`.
    pub fn kernels(self: &Arc<Library>) -> Result<Vec<Arc<Kernel>>> {
        let names = self.kernel_names()?;
        Ok(names.iter().map(|name| self.intern(name)).collect())
    }

    pub(super) fn module_in(&self, context: &Arc<Context>) -> Result<Arc<Module>> {
        let mut instances = self.instances.lock();
        if let Some(module) = instances.get(&context.id()) {
            return Ok(Arc::clone(module));
        }
        let mut managed = self.managed.lock();
        let variables = LibraryVariables {
            known: &mut managed,
            in_use: !instances.is_empty(),
        };
        let linked =
            Linked::new(&self.code, &Symbols::new(), context.shared(), Some(variables)).map_err(|error| error.error)?;
        let module = Module::new(context, Ok(linked), Remarks::default());
        instances.insert(context.id(), Arc::clone(&module));
        Ok(module)
    }

    /// `cuLibraryGetModule`: the library's module in the current context.
    pub fn module(self: &Arc<Library>) -> Result<Arc<Module>> {
        self.module_in(&Context::usable()?)
    }

    /// `cuLibraryGetGlobal` in the current context: (address, bytes).
    pub fn global(self: &Arc<Library>, name: &str) -> Result<(u64, u64)> {
        self.module()?.global(name)
    }

    /// `cuLibraryGetManaged`: needs no context.
    pub fn managed(self: &Arc<Library>, name: &str) -> Result<(u64, u64)> {
        // Any context will do; without one, the first device's primary context takes the instance, active or not.
        let context = match Context::current() {
            Ok(context) => context,
            Err(_) => Arc::clone(Device::get(0)?.primary()),
        };
        let module = self.module_in(&context)?;
        let linked = module.linked()?;
        let global = linked
            .program
            .globals
            .iter()
            .find(|global| global.managed && *global.name == *name);
        global
            .map(|global| (global.address, global.bytes))
            .ok_or(Error::NotFound)
    }
}
