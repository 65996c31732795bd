//! Kernels of a PTX text on buffers, through the C ABI like any program's.

use std::ffi::CString;
use std::ptr::null_mut;

use crate::c::*;

/// Threads in a block.
pub const BLOCK: usize = 128;

/// Begins to use the device, in the calling thread.
pub fn start() {
    let mut context = null_mut();
    ok(cuInit(0));
    ok(cuDevicePrimaryCtxRetain(&mut context, 0));
    ok(cuCtxSetCurrent(context));
}

/// The version and the target of texts: ours takes every statement, a GPU's driver what the GPU has.
pub fn header() -> (String, String) {
    if std::env::var_os("DRIVER_UNDER_TEST").is_none() {
        return ("9.5".into(), "sm_107a".into());
    }
    let (mut version, mut parts) = (0, [0; 2]);
    ok(cuDriverGetVersion(&mut version));
    // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
    for (part, attribute) in parts.iter_mut().zip([75, 76]) {
        ok(cuDeviceGetAttribute(part, attribute, 0));
    }
    let accelerated = if parts[0] >= 9 { "a" } else { "" };
    // PTX is numbered as the toolkit is, since 13.0.
    let version = match version {
        13_000.. => format!("9.{}", version % 1000 / 10),
        _ => "8.0".into(),
    };
    (version, format!("sm_{}{}{accelerated}", parts[0], parts[1]))
}

/// How many multiprocessors the device has.
pub fn multiprocessors() -> u32 {
    let mut count = 0;
    // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    ok(cuDeviceGetAttribute(&mut count, 16, 0));
    count as u32
}

/// Device memory, freed at its end.
pub struct Buffer {
    pub address: CUdeviceptr,
    bytes: usize,
}

impl Buffer {
    pub fn of(content: &[u8]) -> Buffer {
        let mut address = 0;
        ok(cuMemAlloc(&mut address, content.len()));
        ok(cuMemcpyHtoD(address, content.as_ptr().cast(), content.len()));
        Buffer {
            address,
            bytes: content.len(),
        }
    }

    pub fn read(&self) -> Vec<u8> {
        let mut content = vec![0u8; self.bytes];
        ok(cuMemcpyDtoH(content.as_mut_ptr().cast(), self.address, self.bytes));
        content
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        ok(cuMemFree(self.address));
    }
}

pub struct Module(CUmodule);

impl Module {
    /// # Errors
    /// What the driver says of the text.
    pub fn load(text: &str) -> Result<Module, String> {
        let text = CString::new(text).expect("text");
        let mut log = vec![0u8; 4096];
        // CU_JIT_ERROR_LOG_BUFFER and _SIZE_BYTES
        let mut options = [5, 6];
        let mut values = [log.as_mut_ptr().cast(), log.len() as *mut _];
        let mut module = null_mut();
        let loaded = cuModuleLoadDataEx(
            &mut module,
            text.as_ptr().cast(),
            2,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        );
        match loaded {
            CUDA_SUCCESS => Ok(Module(module)),
            code => {
                let said = String::from_utf8_lossy(&log);
                Err(format!("error {code}: {}", said.trim_end_matches('\0')))
            }
        }
    }

    /// The address of a variable.
    pub fn variable(&self, name: &str) -> u64 {
        let name = CString::new(name).expect("a name");
        let (mut address, mut bytes) = (0, 0);
        ok(cuModuleGetGlobal(&mut address, &mut bytes, self.0, name.as_ptr()));
        address
    }

    /// Runs one kernel of two pointers, `threads` in blocks of [`BLOCK`].
    ///
    /// # Errors
    /// How it ended.
    pub fn launch(&self, entry: &str, threads: usize, mut parameters: [u64; 2]) -> Result<(), String> {
        let mut function = null_mut();
        let name = CString::new(entry).expect("a name");
        ok(cuModuleGetFunction(&mut function, self.0, name.as_ptr()));
        let [from, to] = &mut parameters;
        let mut pointers = [(&raw mut *from).cast(), (&raw mut *to).cast()];
        let blocks = threads.div_ceil(BLOCK) as u32;
        let launched = cuLaunchKernel(
            function,
            blocks,
            1,
            1,
            BLOCK as u32,
            1,
            1,
            0,
            null_mut(),
            pointers.as_mut_ptr(),
            null_mut(),
        );
        let ended = if launched == CUDA_SUCCESS {
            cuCtxSynchronize()
        } else {
            launched
        };
        match ended {
            CUDA_SUCCESS => Ok(()),
            code => Err(format!("error {code}")),
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // After a fault the context does nothing any more.
        let _ = cuModuleUnload(self.0);
    }
}
