//! Code as programs hold it: libraries (of no context), modules (of one), kernels (of a library), functions (of a module).
//!
//! Linked modules are created when first asked for.
//!
//! A library is linked once in each context that asks; its managed variables are the library's own, at the same address
//! everywhere, and need no context. Trees are parsed once.

use std::collections::HashMap;
use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

pub use crate::driver::code::LoadError;
pub use crate::driver::code::Symbols;
use crate::driver::code::{Code, Remarks};
use crate::driver::context::Shared;
use crate::driver::handle::{self, Registry};
use crate::driver::memory::place::VARIABLE;
use crate::driver::process::room::room_to_work;
use crate::driver::profile::{MAX_THREADS_PER_BLOCK, SHARED_PER_BLOCK};
use crate::driver::reference::{References, SurfaceReference, TextureReference};
use crate::driver::{Context, Device, Error, Handle, Result, Stream};
use crate::memory::{AddressSpace, Kind, Request};
use crate::program::{self, Allocate, AllocateError, KernelInfo};
use crate::ptx::ast;
use crate::simt::Executables;

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

/// Allocates a module's variables.
struct Placer<'a> {
    shared: &'a Shared,
    /// A library's managed variables. Those that another context uses already are not initialised again.
    managed: Option<LibraryVariables<'a>>,
    managed_used: usize,
    memory: Vec<u64>,
}

struct LibraryVariables<'a> {
    known: &'a mut Vec<Managed>,
    /// Some context has the library: the variables have values that somebody may have changed.
    in_use: bool,
}

impl LibraryVariables<'_> {
    fn keeps(&self, address: u64) -> bool {
        let holds = |variable: &Managed| address.wrapping_sub(variable.start) < variable.bytes;
        self.in_use && self.known.iter().any(holds)
    }
}

impl Allocate for Placer<'_> {
    fn allocate(&mut self, bytes: u64, align: u64, constant: bool, managed: bool) -> Result<u64, AllocateError> {
        let request = Request {
            align,
            device: self.shared.device,
            owner: self.shared.id,
            flags: VARIABLE,
            ..Request::new(
                match (constant, managed) {
                    (true, _) => Kind::Constant,
                    (false, true) => Kind::Managed,
                    (false, false) => Kind::Device,
                },
                bytes,
            )
        };
        let address = match &mut self.managed {
            Some(library) if managed => {
                let index = self.managed_used;
                self.managed_used += 1;
                match library.known.get(index) {
                    Some(variable) if library.in_use => return Ok(variable.start),
                    Some(variable) => {
                        // SAFETY: the variable is at least this large, and no context uses it: what a library's other
                        // contexts use has been given back above.
                        unsafe { std::ptr::write_bytes(variable.start as *mut u8, 0, bytes as usize) };
                        variable.start
                    }
                    None => {
                        let request = Request { owner: 0, ..request };
                        let start = place(&request)?;
                        library.known.push(Managed { start, bytes });
                        start
                    }
                }
            }
            _ => {
                let start = place(&request)?;
                self.memory.push(start);
                start
            }
        };
        Ok(address)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        if self.managed.as_ref().is_some_and(|library| library.keeps(address)) {
            return;
        }
        // SAFETY: the linker writes within what `allocate` gave it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
    }
}

/// Memory of zeros that nobody else knows of.
fn place(request: &Request) -> Result<u64, AllocateError> {
    /// What is smaller is written; of what is larger, the host gives pages when somebody touches them.
    const LARGE: u64 = 1 << 20;
    let placed = AddressSpace::get().allocate(request).map_err(|_| AllocateError)?;
    let start = placed.start as *mut u8;
    match request.bytes < LARGE {
        // SAFETY: the allocation is at least this large, and nobody else knows of it yet.
        true => unsafe { std::ptr::write_bytes(start, 0, request.bytes as usize) },
        // SAFETY: an allocation starts on a page and has whole pages, which are nobody else's; they read as zero from now
        // on.
        false => unsafe {
            libc::madvise(start.cast(), request.bytes as usize, libc::MADV_DONTNEED);
        },
    }
    Ok(placed.start)
}

impl Linked {
    fn new(
        code: &Code,
        symbols: &Symbols,
        shared: &Shared,
        managed: Option<LibraryVariables<'_>>,
    ) -> Result<Linked, LoadError> {
        let trees = code.trees()?;
        let mut known = code.symbols();
        known.extend(symbols.iter().map(|(name, address)| (name.clone(), *address)));
        let mut placer = Placer {
            shared,
            managed,
            managed_used: 0,
            memory: Vec::new(),
        };
        let program = match program::Module::link_with(&trees, &known, &mut placer) {
            Ok(program) => Arc::new(program),
            Err(error) => {
                release(&placer.memory);
                return Err(LoadError::from(error).logged());
            }
        };
        let kernels = program.functions.iter().zip(0..);
        let kernels = kernels.filter(|(function, _)| function.entry && function.kernel.is_some());
        let mut globals: HashMap<Arc<str>, (u64, u64)> = HashMap::new();
        // Names of static variables may repeat; a visible one goes before.
        let (visible, hidden): (Vec<_>, Vec<_>) = program.globals.iter().partition(|global| global.visible);
        for global in hidden
            .into_iter()
            .chain(visible)
            .filter(|global| global.opaque.is_none())
        {
            globals.insert(Arc::clone(&global.name), (global.address, global.bytes));
        }
        Ok(Linked {
            kernels: kernels
                .map(|(function, index)| (Arc::clone(&function.name), index))
                .collect(),
            globals,
            references: Arc::new(References::of(&program, shared.device)),
            memory: placer.memory,
            code: Arc::new(Executables::new(Arc::clone(&program))),
            program,
        })
    }
}

/// `CUDA_MODULE_LOADING=EAGER`: functions are loaded with their module (CUDA programming guide, "Lazy Loading").
pub fn eager() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| std::env::var_os("CUDA_MODULE_LOADING").is_some_and(|value| value == "EAGER"))
}

fn release(memory: &[u64]) {
    for start in memory {
        AddressSpace::get().free(*start);
    }
}

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

    fn module_in(&self, context: &Arc<Context>) -> Result<Arc<Module>> {
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

impl Kernel {
    /// 400 for anything but a `CUkernel`.
    pub fn from_handle(handle: Handle) -> Result<Arc<Kernel>> {
        match &*CALLABLES.get(handle).ok_or(Error::InvalidHandle)? {
            Callable::Kernel(kernel) => Ok(Arc::clone(kernel)),
            Callable::Function(_) => Err(Error::InvalidHandle),
        }
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// `cuKernelGetLibrary`.
    pub fn library(&self) -> Result<Arc<Library>> {
        self.library.upgrade().ok_or(Error::InvalidHandle)
    }

    /// `cuKernelGetFunction`: in the current context.
    pub fn function(self: &Arc<Kernel>) -> Result<Arc<Function>> {
        self.function_in(&Context::usable()?)
    }

    pub(in crate::driver) fn function_in(self: &Arc<Kernel>, context: &Arc<Context>) -> Result<Arc<Function>> {
        let id = context.id();
        if let Some((_, function)) = self.functions.lock().iter().find(|(context, _)| *context == id) {
            return Ok(Arc::clone(function));
        }
        let module = self.library()?.module_in(context)?;
        let linked = module.linked()?;
        let index = *linked.kernels.get(&*self.name).ok_or(Error::NotFound)?;
        let function = module.function_at(linked, index, Some(self));
        for (device, which, value) in self.attributes.lock().iter() {
            if *device == context.device().ordinal() {
                function.follow(*which, *value)?;
            }
        }
        self.functions.lock().push((id, Arc::clone(&function)));
        Ok(function)
    }

    /// The function in the current context if that is the device's, otherwise in the primary one.
    fn function_on(self: &Arc<Kernel>, device: &'static Device) -> Result<Arc<Function>> {
        match Context::current() {
            Ok(context) if context.device().ordinal() == device.ordinal() => self.function_in(&context),
            _ => self.function_in(device.primary()),
        }
    }

    /// `cuKernelGetAttribute`.
    pub fn attribute(self: &Arc<Kernel>, device: &'static Device, which: u32) -> Result<i32> {
        let ordinal = device.ordinal();
        let known = |list: &[(i32, u32, i32)]| {
            let mut set = list.iter().rev();
            set.find(|(device, of, _)| *device == ordinal && *of == which)
                .map(|found| found.2)
        };
        let set = known(&self.attributes.lock());
        match set {
            Some(value) => Ok(value),
            None => self.function_on(device)?.attribute(which),
        }
    }

    /// `cuKernelSetAttribute`: for this device, in every context, where it has not been set on the function.
    pub fn set_attribute(self: &Arc<Kernel>, device: &'static Device, which: u32, value: i32) -> Result<()> {
        self.function_on(device)?.follow(which, value)?;
        let ordinal = device.ordinal();
        {
            let mut attributes = self.attributes.lock();
            attributes.retain(|(device, of, _)| *device != ordinal || *of != which);
            attributes.push((ordinal, which, value));
        }
        let functions: Vec<Arc<Function>> = self.functions.lock().iter().map(|(_, f)| Arc::clone(f)).collect();
        for function in functions {
            if function.shared.device as i32 == ordinal {
                function.follow(which, value)?;
            }
        }
        Ok(())
    }

    fn any_function(self: &Arc<Kernel>) -> Result<Arc<Function>> {
        match Context::current() {
            Ok(context) => self.function_in(&context),
            Err(_) => self.function_in(Device::get(0)?.primary()),
        }
    }

    /// `cuKernelGetParamInfo`: (offset, bytes); 1 past the last.
    pub fn parameter(self: &Arc<Kernel>, index: usize) -> Result<(u32, u32)> {
        self.any_function()?.parameter(index)
    }

    /// `cuKernelGetParamCount`.
    pub fn parameter_count(self: &Arc<Kernel>) -> Result<usize> {
        Ok(self.any_function()?.parameter_count())
    }
}

impl Function {
    /// A `CUfunction`, or a `CUkernel` given in its place (in the current context): one look-up. 400 otherwise.
    pub fn from_handle(handle: Handle) -> Result<Arc<Function>> {
        match &*CALLABLES.get(handle).ok_or(Error::InvalidHandle)? {
            Callable::Function(function) => Ok(Arc::clone(function)),
            Callable::Kernel(kernel) => kernel.function(),
        }
    }

    /// The function in the stream's context: a `CUkernel` goes to whichever that is.
    pub(in crate::driver) fn on(self: &Arc<Function>, stream: &Stream) -> Result<Arc<Function>> {
        if Arc::ptr_eq(&self.shared, &stream.shared) {
            Ok(Arc::clone(self))
        } else {
            self.in_context(&stream.context()?)
        }
    }

    /// The handle of the library's kernel that it stands for; 0 if it does not.
    pub fn kernel_handle(&self) -> Handle {
        let kernel = self.kernel.get().and_then(Weak::upgrade);
        kernel.map_or(0, |kernel| kernel.handle)
    }

    /// The same function in another context, if it stands for a kernel of a library.
    pub(in crate::driver) fn in_context(self: &Arc<Function>, context: &Arc<Context>) -> Result<Arc<Function>> {
        let kernel = self.kernel.get().and_then(Weak::upgrade);
        kernel.ok_or(Error::InvalidHandle)?.function_in(context)
    }

    pub fn handle(&self) -> Handle {
        self.handle
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// `cuFuncGetModule`.
    pub fn module(&self) -> Result<Arc<Module>> {
        self.module.upgrade().ok_or(Error::InvalidHandle)
    }

    pub fn context(&self) -> Result<Arc<Context>> {
        self.context.upgrade().ok_or(Error::ContextIsDestroyed)
    }

    pub(in crate::driver) fn device(&self) -> &'static Device {
        &Device::all()[self.shared.device as usize]
    }

    /// Lowers it, unless that has happened. A failure is explained in the log, once.
    pub(in crate::driver) fn lowered(&self) -> Result<Lowered> {
        let lowered = match self.lowered.get() {
            Some(lowered) => lowered,
            None => {
                room_to_work()?;
                self.lowered.get_or_init(|| self.lower())
            }
        };
        lowered.as_ref().copied().map_err(|error| error.error)
    }

    fn lower(&self) -> Result<Lowered, LoadError> {
        match self.program.prepare(self.index) {
            Ok(function) => Ok(Lowered {
                shared_bytes: function.shared_bytes,
                local_bytes: function.local,
            }),
            Err(found) => Err(LoadError::from(found).logged()),
        }
    }

    /// Words for the JIT log if lowering failed.
    pub fn load_error(&self) -> Option<LoadError> {
        self.lowered.get()?.as_ref().err().cloned()
    }

    /// Threads that a block may have.
    pub(in crate::driver) fn max_threads(&self) -> u32 {
        match self.info.max_threads {
            0 => MAX_THREADS_PER_BLOCK,
            limit => limit.min(MAX_THREADS_PER_BLOCK),
        }
    }

    /// Dynamic shared memory that a launch may ask for; `mode` is the launch's `CUsharedMemoryMode`.
    pub(in crate::driver) fn max_dynamic_shared(&self, mode: u32) -> Result<u32> {
        let fixed = self.lowered()?.shared_bytes;
        let mode = match mode {
            0 => self.shared_mode.load(Ordering::Relaxed) as u32,
            mode => mode,
        };
        let total = match (mode, self.max_dynamic_shared.load(Ordering::Relaxed)) {
            (0, -1) | (1, _) => SHARED_PER_BLOCK,
            (0, bytes) => return Ok(bytes as u32),
            // There is none that is larger yet.
            _ => self.device().profile().shared_per_block_optin,
        };
        Ok(total.saturating_sub(fixed))
    }

    /// Blocks that a cluster may have; `mode` is the launch's `CUlaunchAttributePortableClusterMode`.
    pub(in crate::driver) fn max_cluster(&self, mode: u32) -> u32 {
        let non_portable = match mode {
            0 => self.non_portable_cluster.load(Ordering::Relaxed) != 0,
            mode => mode == 2,
        };
        let most = match non_portable {
            false => crate::driver::profile::CLUSTER_PORTABLE,
            true => crate::driver::profile::CLUSTER_OPTIN,
        };
        match self.info.max_cluster_rank {
            0 => most,
            rank => most.min(rank),
        }
    }

    /// The cluster shape that the function itself asks for, by its PTX or by attributes.
    pub(in crate::driver) fn required_cluster(&self) -> Option<[u32; 3]> {
        let set: [u32; 3] = std::array::from_fn(|axis| self.cluster[axis].load(Ordering::Relaxed) as u32);
        self.info.required_cluster.or((set != [0; 3]).then_some(set))
    }

    /// `CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`: percent; -1 is none.
    pub(in crate::driver) fn carveout(&self) -> i32 {
        self.carveout.load(Ordering::Relaxed)
    }

    /// Registers of a thread, as far as such a number can be given: what a compiler would stay within.
    pub(in crate::driver) fn registers(&self) -> u32 {
        let bound = match self.info.max_registers {
            0 => 255,
            limit => limit,
        };
        // A block of the largest size must fit the register file.
        bound.min(32)
    }

    /// `cuFuncGetAttribute`.
    pub fn attribute(&self, which: u32) -> Result<i32> {
        let required = |axis: usize| self.required_cluster().map_or(0, |shape| shape[axis]) as i32;
        Ok(match which {
            0 => self.max_threads() as i32,
            1 => self.lowered()?.shared_bytes as i32,
            2 => self.info.const_bytes as i32,
            3 => self.lowered()?.local_bytes as i32,
            4 => self.registers() as i32,
            5 => self.info.target as i32,
            6 => {
                let (major, minor) = self.device().capability();
                (major * 10 + minor) as i32
            }
            7 => 0,
            8 => self.max_dynamic_shared(0)? as i32,
            9 => self.carveout.load(Ordering::Relaxed),
            10 => (self.info.explicit_cluster || self.info.required_cluster.is_some()).into(),
            11..=13 => required(which as usize - 11),
            14 => self.non_portable_cluster.load(Ordering::Relaxed),
            15 => self.cluster_policy.load(Ordering::Relaxed),
            // DEVICE_NODE_UPDATE_SUPPORTED
            16 => 1,
            17 => self.shared_mode.load(Ordering::Relaxed),
            _ => return Err(Error::InvalidValue),
        })
    }

    /// `cuFuncSetAttribute`: from now on its kernel's no longer matters.
    pub fn set_attribute(&self, which: u32, value: i32) -> Result<()> {
        self.settable(which, value)?.store(value, Ordering::Relaxed);
        self.own.fetch_or(1 << which, Ordering::Relaxed);
        Ok(())
    }

    /// What was set on its kernel.
    fn follow(&self, which: u32, value: i32) -> Result<()> {
        let attribute = self.settable(which, value)?;
        if self.own.load(Ordering::Relaxed) >> which & 1 == 0 {
            attribute.store(value, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Where an attribute is kept, if it can have this value.
    fn settable(&self, which: u32, value: i32) -> Result<&AtomicI32> {
        let attribute = match which {
            8 => {
                let limit = self.device().profile().shared_per_block_optin;
                let limit = limit.saturating_sub(self.lowered()?.shared_bytes);
                if value < 0 || value as u32 > limit {
                    return Err(Error::InvalidValue);
                }
                &self.max_dynamic_shared
            }
            9 if (-1..=100).contains(&value) => &self.carveout,
            // What was settled when it was compiled stays.
            11..=13 if self.info.required_cluster.is_some() => return Err(Error::NotPermitted),
            11..=13 if value >= 0 => &self.cluster[which as usize - 11],
            14 if (0..=1).contains(&value) => &self.non_portable_cluster,
            15 if (0..=3).contains(&value) => &self.cluster_policy,
            17 if (0..=4).contains(&value) => &self.shared_mode,
            _ => return Err(Error::InvalidValue),
        };
        Ok(attribute)
    }

    /// `cuFuncGetParamInfo`: (offset, bytes); 1 past the last.
    pub fn parameter(&self, index: usize) -> Result<(u32, u32)> {
        self.info.params.get(index).copied().ok_or(Error::InvalidValue)
    }

    pub fn parameter_count(&self) -> usize {
        self.info.params.len()
    }

    /// `cuFuncIsLoaded`.
    pub fn is_loaded(&self) -> bool {
        self.lowered.get().is_some()
    }

    /// `cuFuncLoad`.
    pub fn load(&self) -> Result<()> {
        self.lowered().map(drop)
    }
}
