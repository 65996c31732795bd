//! The few calls of the driver API that the harness makes, on whatever library it is pointed at: NVIDIA's, or ours.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

use libloading::Library;

type Result<T> = std::result::Result<T, String>;
type Handle = *mut c_void;

const CU_LIMIT_STACK_SIZE: c_int = 0;
const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: c_int = 75;
const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: c_int = 76;
const CU_JIT_ERROR_LOG_BUFFER: c_int = 5;
const CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: c_int = 6;

const CU_LAUNCH_ATTRIBUTE_COOPERATIVE: c_uint = 2;
const CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: c_int = 14;
const CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: c_uint = 4;

/// `CUlaunchAttribute`.
#[repr(C)]
struct Attribute {
    id: c_uint,
    pad: c_uint,
    value: [c_uint; 16],
}

impl Attribute {
    fn new(id: c_uint, words: &[c_uint]) -> Attribute {
        let mut value = [0; 16];
        value[..words.len()].copy_from_slice(words);
        Attribute { id, pad: 0, value }
    }
}

/// `CUlaunchConfig`: the grid, the block, and dynamic shared memory, …
#[repr(C)]
struct Config {
    sizes: [c_uint; 7],
    stream: Handle,
    attributes: *const Attribute,
    count: c_uint,
}

/// A library, its first device, and a context.
pub struct Driver {
    library: Library,
    context: Handle,
    pub name: String,
    pub capability: (i32, i32),
}

/// What a launch failed with.
pub struct Failure(pub u32);

macro_rules! call {
    ($driver:expr, $name:literal ( $($type:ty: $value:expr),* )) => {{
        // SAFETY: the driver API manual gives the function this signature; the arguments live through the call.
        let code = unsafe {
            let function: libloading::Symbol<unsafe extern "C" fn($($type),*) -> u32> =
                $driver.library.get($name.as_bytes()).map_err(|error| error.to_string())?;
            function($($value),*)
        };
        if code == 0 { Ok(()) } else { Err((code, $name)) }
    }};
}

fn told((code, name): (u32, &str)) -> String {
    format!("{name}: error {code}")
}

impl Driver {
    /// # Errors
    /// What could not be opened, found or initialised.
    pub fn open(path: &Path) -> Result<Driver> {
        // SAFETY: a driver library's initialisers may run; that is what the caller asks for.
        let library = unsafe { Library::new(path) }.map_err(|error| error.to_string())?;
        let mut driver = Driver {
            library,
            context: null_mut(),
            name: String::new(),
            capability: (0, 0),
        };
        call!(driver, "cuInit"(c_uint: 0)).map_err(told)?;
        let mut name = [0 as c_char; 128];
        call!(driver, "cuDeviceGetName"(*mut c_char: name.as_mut_ptr(), c_int: 128, c_int: 0)).map_err(told)?;
        driver.name = name.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char).collect();
        for (attribute, at) in [
            (CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0),
            (CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 1),
        ] {
            let mut value = 0;
            call!(driver, "cuDeviceGetAttribute"(*mut c_int: &mut value, c_int: attribute, c_int: 0)).map_err(told)?;
            match at {
                0 => driver.capability.0 = value,
                _ => driver.capability.1 = value,
            }
        }
        driver.renew()?;
        Ok(driver)
    }

    /// A new context: after a fault the old one is of no use any more.
    pub fn renew(&mut self) -> Result<()> {
        if !self.context.is_null() {
            // What a broken context answers does not matter.
            let _ = call!(self, "cuCtxDestroy_v2"(Handle: self.context));
        }
        let mut context = null_mut();
        call!(self, "cuCtxCreate_v2"(*mut Handle: &mut context, c_uint: 0, c_int: 0)).map_err(told)?;
        self.context = context;
        Ok(())
    }

    /// Loads PTX.
    pub fn module(&self, text: &str) -> Result<Module<'_>> {
        let text = CString::new(text).map_err(|error| error.to_string())?;
        let mut log = vec![0u8; 4096];
        let options = [CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values: [Handle; 2] = [log.as_mut_ptr().cast(), log.len() as Handle];
        let mut module = null_mut();
        let loaded = call!(self, "cuModuleLoadDataEx"(
            *mut Handle: &mut module, *const c_void: text.as_ptr().cast(), c_uint: 2,
            *const c_int: options.as_ptr(), *mut Handle: values.as_mut_ptr()
        ));
        loaded.map_err(|error| {
            let said = String::from_utf8_lossy(&log);
            format!("{}: {}", told(error), said.trim_end_matches('\0'))
        })?;
        Ok(Module { driver: self, module })
    }

    pub fn buffer(&self, content: &[u8]) -> Result<Buffer<'_>> {
        let mut address = 0;
        call!(self, "cuMemAlloc_v2"(*mut u64: &mut address, usize: content.len().max(1))).map_err(told)?;
        let buffer = Buffer {
            driver: self,
            address,
            bytes: content.len(),
        };
        call!(self, "cuMemcpyHtoD_v2"(u64: address, *const c_void: content.as_ptr().cast(), usize: content.len()))
            .map_err(told)?;
        Ok(buffer)
    }

    /// The stack of each thread, in bytes.
    pub fn stack(&self, bytes: u64) -> Result<()> {
        call!(self, "cuCtxSetLimit"(c_int: CU_LIMIT_STACK_SIZE, usize: bytes as usize)).map_err(told)
    }
}

pub struct Module<'a> {
    driver: &'a Driver,
    module: Handle,
}

/// How a kernel is launched.
pub struct Launch<'a> {
    pub entry: &'a str,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub cooperative: bool,
    pub cluster: Option<[u32; 3]>,
}

impl Module<'_> {
    /// Launches and waits. The parameters' bytes come in the kernel's order.
    ///
    /// # Errors
    /// The code of a launch that fails; the outer one is for what has nothing to do with the kernel.
    pub fn run(&self, launch: &Launch, parameters: &[Vec<u8>]) -> Result<std::result::Result<(), Failure>> {
        let entry = CString::new(launch.entry).map_err(|error| error.to_string())?;
        let mut function = null_mut();
        call!(self.driver, "cuModuleGetFunction"(
            *mut Handle: &mut function, Handle: self.module, *const c_char: entry.as_ptr()
        ))
        .map_err(told)?;
        let mut pointers: Vec<*const c_void> = parameters.iter().map(|bytes| bytes.as_ptr().cast()).collect();
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        if launch.cluster.is_some() {
            call!(self.driver, "cuFuncSetAttribute"(
                Handle: function, c_int: CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, c_int: 1
            ))
            .map_err(told)?;
        }
        let launched = if let Some(shape) = launch.cluster {
            let attributes = [
                Attribute::new(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &shape),
                Attribute::new(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &[launch.cooperative.into()]),
            ];
            let config = Config {
                sizes: [gx, gy, gz, bx, by, bz, launch.shared],
                stream: null_mut(),
                attributes: attributes.as_ptr(),
                count: attributes.len() as c_uint,
            };
            call!(self.driver, "cuLaunchKernelEx"(
                *const Config: &config, Handle: function, *mut *const c_void: pointers.as_mut_ptr(), *const Handle: null()
            ))
        } else if launch.cooperative {
            call!(self.driver, "cuLaunchCooperativeKernel"(
                Handle: function, c_uint: gx, c_uint: gy, c_uint: gz, c_uint: bx, c_uint: by, c_uint: bz,
                c_uint: launch.shared, Handle: null_mut(), *mut *const c_void: pointers.as_mut_ptr()
            ))
        } else {
            call!(self.driver, "cuLaunchKernel"(
                Handle: function, c_uint: gx, c_uint: gy, c_uint: gz, c_uint: bx, c_uint: by, c_uint: bz,
                c_uint: launch.shared, Handle: null_mut(), *mut *const c_void: pointers.as_mut_ptr(),
                *const Handle: null()
            ))
        };
        let ended = match launched {
            Ok(()) => call!(self.driver, "cuCtxSynchronize"()),
            failed => failed,
        };
        Ok(ended.map_err(|(code, _)| Failure(code)))
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        let unload = || -> Result<()> { call!(self.driver, "cuModuleUnload"(Handle: self.module)).map_err(told) };
        // A broken context cannot unload; its end does.
        let _ = unload();
    }
}

/// Device memory.
pub struct Buffer<'a> {
    driver: &'a Driver,
    pub address: u64,
    bytes: usize,
}

impl Buffer<'_> {
    pub fn read(&self) -> Result<Vec<u8>> {
        let mut content = vec![0u8; self.bytes];
        call!(self.driver, "cuMemcpyDtoH_v2"(*mut c_void: content.as_mut_ptr().cast(), u64: self.address, usize: self.bytes))
            .map_err(told)?;
        Ok(content)
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let free = || -> Result<()> { call!(self.driver, "cuMemFree_v2"(u64: self.address)).map_err(told) };
        // As with modules.
        let _ = free();
    }
}
