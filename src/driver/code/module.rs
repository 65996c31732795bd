//! Code as programs hold it: libraries (of no context), modules (of one), kernels (of a library), functions (of a module).
//!
//! ```text
//! module.rs   what they are made of; modules    link.rs      variables get their memory
//! library.rs  kernel.rs  function.rs            the calls of the others
//! ```
//!
//! A library is linked once in each context that asks; its managed variables are the library's own, at the same address
//! everywhere, and need no context. Trees are parsed once.

mod function;
mod kernel;
mod library;
mod link;

use std::collections::HashMap;
use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU32};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

pub use crate::driver::code::LoadError;
pub use crate::driver::code::Symbols;
use crate::driver::code::{Code, Remarks};
use crate::driver::context::Shared;
use crate::driver::handle::{self, Registry};
use crate::driver::reference::{References, SurfaceReference, TextureReference};
use crate::driver::{Context, Error, Handle, Result};
use crate::program::{self, KernelInfo};
use crate::simt::Executables;
use link::release;

pub struct Library {
    handle: Handle,
    code: Arc<Code>,
    /// By the context's number.
    instances: Mutex<HashMap<u64, Arc<Module>>>,
    kernels: Mutex<HashMap<Arc<str>, Arc<Kernel>>>,
    /// Managed variables, in the order in which the linker asks for them.
    managed: Mutex<Vec<Managed>>,
}

/// A managed variable of a library: one for all contexts, which keeps its value as long as any of them has the library.
#[derive(Clone, Copy)]
struct Managed {
    start: u64,
    bytes: u64,
}

pub struct Module {
    handle: Handle,
    context: Weak<Context>,
    shared: Arc<Shared>,
    linked: Result<Linked, LoadError>,
    functions: Mutex<HashMap<u32, Arc<Function>>>,
    remarks: Remarks,
}

struct Linked {
    program: Arc<program::Module>,
    /// What the executor makes of it.
    code: Arc<Executables>,
    /// Memory of its variables.
    memory: Vec<u64>,
    kernels: HashMap<Arc<str>, u32>,
    globals: HashMap<Arc<str>, (u64, u64)>,
    references: Arc<References>,
}

pub struct Kernel {
    handle: Handle,
    name: Arc<str>,
    library: Weak<Library>,
    /// By the context's number.
    functions: Mutex<Vec<(u64, Arc<Function>)>>,
    /// Attributes that were set: (device, attribute, value).
    attributes: Mutex<Vec<(i32, u32, i32)>>,
}

pub struct Function {
    handle: Handle,
    name: Arc<str>,
    module: Weak<Module>,
    context: Weak<Context>,
    pub(in crate::driver) shared: Arc<Shared>,
    pub(in crate::driver) program: Arc<program::Module>,
    pub(in crate::driver) code: Arc<Executables>,
    pub(in crate::driver) index: u32,
    pub(in crate::driver) info: KernelInfo,
    pub(in crate::driver) references: Arc<References>,
    /// Whose function it is, once somebody came by that way.
    kernel: OnceLock<Weak<Kernel>>,
    lowered: OnceLock<Result<Lowered, LoadError>>,
    /// -1: not set.
    max_dynamic_shared: AtomicI32,
    carveout: AtomicI32,
    cluster: [AtomicI32; 3],
    non_portable_cluster: AtomicI32,
    cluster_policy: AtomicI32,
    shared_mode: AtomicI32,
    /// Attributes that were set on the function itself, by bit: its kernel's no longer matter.
    own: AtomicU32,
}

/// What is known of a function once it has been lowered.
#[derive(Clone, Copy)]
pub(in crate::driver) struct Lowered {
    pub shared_bytes: u32,
    pub local_bytes: u32,
}

/// What a `CUfunction` parameter may hold.
enum Callable {
    Function(Arc<Function>),
    Kernel(Arc<Kernel>),
}

static LIBRARIES: Registry<Library> = Registry::new();
static MODULES: Registry<Module> = Registry::new();
static CALLABLES: Registry<Callable> = Registry::new();

/// A context's code ends.
pub(in crate::driver) fn forget_all_of(shared: &Arc<Shared>) {
    for module in MODULES.take(|module| Arc::ptr_eq(&module.shared, shared)) {
        if let Ok(linked) = &module.linked {
            linked.references.end();
        }
    }
    CALLABLES
        .take(|callable| matches!(callable, Callable::Function(function) if Arc::ptr_eq(&function.shared, shared)));
    LIBRARIES.each(|library| {
        library.instances.lock().remove(&shared.id);
        for kernel in library.kernels.lock().values() {
            kernel.functions.lock().retain(|(context, _)| *context != shared.id);
        }
    });
}

/// `CUDA_MODULE_LOADING=EAGER`: functions are loaded with their module (CUDA programming guide, "Lazy Loading").
pub fn eager() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| std::env::var_os("CUDA_MODULE_LOADING").is_some_and(|value| value == "EAGER"))
}

impl Module {
    fn new(context: &Arc<Context>, linked: Result<Linked, LoadError>, remarks: Remarks) -> Arc<Module> {
        let module = Arc::new(Module {
            handle: handle::fresh(),
            context: Arc::downgrade(context),
            shared: Arc::clone(context.shared()),
            linked,
            functions: Mutex::default(),
            remarks,
        });
        MODULES.insert(module.handle, &module);
        module
    }

    fn load(code: &Code, symbols: &Symbols, lazy: bool, remarks: Remarks) -> Result<Arc<Module>, LoadError> {
        let context = Context::usable()?;
        context.shared().printer.flush();
        let linked = Linked::new(code, symbols, context.shared(), None);
        match linked {
            Err(error) if !(lazy && error.error == Error::NoBinaryForGpu) => Err(error),
            linked => {
                let module = Module::new(&context, linked, remarks);
                if eager() {
                    // All functions are loaded now; what is wrong with one is told when it is used.
                    let _ = module.functions();
                }
                Ok(module)
            }
        }
    }

    /// `cuModuleLoadData`, `cuModuleLoadDataEx`, `cuModuleLoadFatBinary` into the current context. `lazy`: an image
    /// without PTX is accepted and answered with 209 when used (what cudart registers); otherwise it is 209 at once.
    ///
    /// # Errors
    /// What the image room, the parser or the linker has against it.
    ///
    /// # Safety
    /// As [`crate::image::from_pointer`].
    pub unsafe fn load_data(image: *const c_void, lazy: bool) -> Result<Arc<Module>, LoadError> {
        // SAFETY: our caller promises an image at this address, which is all that the call asks for.
        unsafe { Module::load_data_with(image, &Symbols::new(), lazy) }
    }

    /// As [`Module::load_data`], with addresses for variables that the image does not define.
    ///
    /// # Errors
    /// As [`Module::load_data`].
    ///
    /// # Safety
    /// As [`Module::load_data`].
    pub unsafe fn load_data_with(
        image: *const c_void,
        symbols: &Symbols,
        lazy: bool,
    ) -> Result<Arc<Module>, LoadError> {
        Context::usable()?;
        // SAFETY: our caller promises an image at this address; null is refused in there.
        let code = unsafe { Code::from_pointer(image)? };
        let remarks = if lazy { Remarks::default() } else { code.check()? };
        Module::load(&code, symbols, lazy, remarks)
    }

    /// `cuModuleLoad`.
    pub fn load_file(path: &Path) -> Result<Arc<Module>, LoadError> {
        Context::usable()?;
        let code = Code::from_file(path)?;
        let remarks = code.check()?;
        Module::load(&code, &Symbols::new(), false, remarks)
    }

    /// What the text's checks had to say when it was loaded.
    pub fn remarks(&self) -> &Remarks {
        &self.remarks
    }

    pub fn from_handle(handle: Handle) -> Result<Arc<Module>> {
        MODULES.get(handle).ok_or(Error::InvalidHandle)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// `cuModuleUnload`: waits for kernels that run. Modules of libraries end with their library.
    pub fn unload(self: &Arc<Module>) -> Result<()> {
        let library = LIBRARIES.find(|library| {
            let instances = library.instances.lock();
            instances.values().any(|module| Arc::ptr_eq(module, self))
        });
        if library.is_some() {
            return Err(Error::NotPermitted);
        }
        MODULES.get(self.handle).ok_or(Error::InvalidHandle)?;
        self.end();
        Ok(())
    }

    fn end(&self) {
        self.shared.drain();
        self.shared.printer.flush();
        if MODULES.remove(self.handle).is_none() {
            // Its context went before, and everything with it.
            return;
        }
        for (_, function) in self.functions.lock().drain() {
            CALLABLES.remove(function.handle);
        }
        if let Ok(linked) = &self.linked {
            linked.references.end();
            release(&linked.memory);
        }
    }

    fn linked(&self) -> Result<&Linked> {
        self.linked.as_ref().map_err(|error| error.error)
    }

    /// `cuModuleGetFunction`.
    pub fn function(self: &Arc<Module>, name: &str) -> Result<Arc<Function>> {
        let linked = self.linked()?;
        let index = *linked.kernels.get(name).ok_or(Error::NotFound)?;
        Ok(self.function_at(linked, index, None))
    }

    /// The kernel of this number in the program.
    pub(in crate::driver) fn function_number(self: &Arc<Module>, index: u32) -> Result<Arc<Function>> {
        Ok(self.function_at(self.linked()?, index, None))
    }

    pub(in crate::driver) fn context(&self) -> Result<Arc<Context>> {
        self.context.upgrade().ok_or(Error::ContextIsDestroyed)
    }

    pub(in crate::driver) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn function_at(self: &Arc<Module>, linked: &Linked, index: u32, kernel: Option<&Arc<Kernel>>) -> Arc<Function> {
        let mut functions = self.functions.lock();
        let function = functions.entry(index).or_insert_with(|| {
            let entry = &linked.program.functions[index as usize];
            let function = Arc::new(Function {
                handle: handle::fresh(),
                name: Arc::clone(&entry.name),
                module: Arc::downgrade(self),
                context: Weak::clone(&self.context),
                shared: Arc::clone(&self.shared),
                program: Arc::clone(&linked.program),
                code: Arc::clone(&linked.code),
                index,
                info: entry.kernel.clone().unwrap_or_default(),
                references: Arc::clone(&linked.references),
                kernel: OnceLock::new(),
                lowered: OnceLock::new(),
                max_dynamic_shared: AtomicI32::new(-1),
                carveout: AtomicI32::new(-1),
                cluster: Default::default(),
                non_portable_cluster: AtomicI32::new(0),
                cluster_policy: AtomicI32::new(0),
                shared_mode: AtomicI32::new(0),
                own: AtomicU32::new(0),
            });
            let callable = Arc::new(Callable::Function(Arc::clone(&function)));
            CALLABLES.insert(function.handle, &callable);
            if eager() {
                // A failure is told when the function is used.
                let _ = function.lowered();
            }
            function
        });
        if let Some(kernel) = kernel {
            function.kernel.get_or_init(|| Arc::downgrade(kernel));
        }
        Arc::clone(function)
    }

    /// `cuModuleGetFunctionCount`, `cuModuleEnumerateFunctions`.
    pub fn functions(self: &Arc<Module>) -> Result<Vec<Arc<Function>>> {
        let linked = self.linked()?;
        let mut indices: Vec<u32> = linked.kernels.values().copied().collect();
        indices.sort_unstable();
        Ok(indices
            .into_iter()
            .map(|index| self.function_at(linked, index, None))
            .collect())
    }

    /// `cuModuleGetTexRef`.
    pub fn texture_reference(&self, name: &str) -> Result<Arc<TextureReference>> {
        self.linked()?.references.texture(name)
    }

    /// `cuModuleGetSurfRef`.
    pub fn surface_reference(&self, name: &str) -> Result<Arc<SurfaceReference>> {
        self.linked()?.references.surface(name)
    }

    /// `cuModuleGetGlobal`: (address, bytes).
    pub fn global(&self, name: &str) -> Result<(u64, u64)> {
        self.linked()?.globals.get(name).copied().ok_or(Error::NotFound)
    }
}
