//! Kernels of a PTX text on buffers: the rooms of the library put together, with memory of the test's own.

use std::sync::Arc;
use std::time::Duration;

use cuda::memory::{AddressSpace, Kind, Request};
use cuda::program::{Allocate, AllocateError, LinkError, Module};
use cuda::ptx::{self, Source};
use cuda::simt::{self, Executables, Services};

/// Threads in a block, and what a launch says of the device.
pub const BLOCK: usize = 128;
pub const MULTIPROCESSORS: u32 = 4;

/// Allocations, freed with it.
#[derive(Default)]
pub struct Memory(Vec<u64>);

impl Memory {
    fn allocate(&mut self, kind: Kind, bytes: u64) -> Option<u64> {
        let start = AddressSpace::get()
            .allocate(&Request::new(kind, bytes.max(1)))
            .ok()?
            .start;
        self.0.push(start);
        Some(start)
    }
    /// Device memory with this content; its address.
    pub fn buffer(&mut self, content: &[u8]) -> u64 {
        let start = self.allocate(Kind::Device, content.len() as u64).expect("memory");
        Allocate::write(self, start, content);
        start
    }
}
impl Allocate for Memory {
    fn allocate(&mut self, bytes: u64, _: u64, constant: bool, _: bool) -> Result<u64, AllocateError> {
        let kind = if constant { Kind::Constant } else { Kind::Device };
        Memory::allocate(self, kind, bytes).ok_or(AllocateError)
    }
    fn write(&mut self, address: u64, bytes: &[u8]) {
        // SAFETY: the caller writes within what it was given; no kernel runs.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, bytes.len()) };
    }
}
impl Drop for Memory {
    fn drop(&mut self) {
        for &start in &self.0 {
            AddressSpace::get().free(start);
        }
    }
}

struct Silent;
impl Services for Silent {
    fn malloc(&self, _: u64) -> u64 {
        0
    }
    fn free(&self, _: u64) -> bool {
        false
    }
    fn print(&self, _: &[u8]) {}
    fn set_conditional(&self, _: u64, _: u32) -> bool {
        false
    }

    fn assert_failed(&self, _: &str) {}
}

/// # Errors
/// What the text lacks, for people.
pub fn load(text: &str, memory: &mut Memory) -> Result<Arc<Module>, String> {
    let tree = ptx::parse(Source::new("forms.ptx", text)).map_err(|error| error.render_plain())?;
    let module = Module::link(&[Arc::new(tree)], memory).map_err(|error| match error {
        LinkError::Invalid(found) => found.render_plain(),
        other => format!("{other:?}"),
    })?;
    Ok(Arc::new(module))
}

/// Runs one kernel of two pointers, `threads` in blocks of [`BLOCK`].
///
/// # Errors
/// What is wrong with its body, or how it ended.
pub fn launch(module: &Arc<Module>, entry: &str, threads: usize, params: [u64; 2]) -> Result<(), String> {
    let kernel = module
        .functions
        .iter()
        .position(|f| f.entry && *f.name == *entry)
        .ok_or("no such entry")?;
    module.prepare(kernel as u32).map_err(|found| found.render_plain())?;
    let launch = simt::Launch {
        code: Arc::new(Executables::new(Arc::clone(module))),
        kernel: kernel as u32,
        grid: [threads.div_ceil(BLOCK) as u32, 1, 1],
        block: [BLOCK as u32, 1, 1],
        cluster: None,
        dynamic_shared: 0,
        params: params.iter().flat_map(|p| p.to_le_bytes()).collect::<Vec<u8>>().into(),
        cooperative: false,
        device: 0,
        workspace: 0,
        grid_id: 1,
        multiprocessors: MULTIPROCESSORS,
        tensor: Default::default(),
        stack_limit: 1024,
        timeout: Some(Duration::from_secs(30)),
        seed: None,
        services: Arc::new(Silent),
        references: Arc::default(),
        family: simt::Family::default(),
    };
    simt::run(Arc::new(launch)).map_err(|fault| format!("{}", fault.cause))
}
