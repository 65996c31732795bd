//! Runs a case through the rooms: text → tree → module → grid, with the test's own memory and services, and compares.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cuda::memory::caller::Caller;
use cuda::memory::endpoint::{self, Endpoint, Member};
use cuda::memory::texture::References;
use cuda::memory::{AddressSpace, Kind, Request};
use cuda::program::{Allocate, AllocateError, LinkError, Module};
use cuda::ptx::{self, Source};
use cuda::simt::{self, Cause, Executables, Fault, Services};

use crate::case::{Case, Launch, Parameter, Role};
use crate::image;
use crate::verdict::{self, bytes};

/// A kernel that runs longer hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a case; gives the report of the fault in which it ended, if it did.
///
/// # Errors
/// What differs from the expectation, for people.
pub fn run(case: &Case, name: &str, text: &str, seed: Option<u64>) -> Result<Option<String>, String> {
    let tree =
        ptx::parse(Source::new(name, text)).map_err(|error| format!("does not parse:\n{}", error.render_plain()))?;
    let mut memory = Memory::default();
    let module = Module::link(&[Arc::new(tree)], &mut memory).map_err(|error| match error {
        LinkError::Invalid(diagnostics) => format!("does not link:\n{}", diagnostics.render_plain()),
        other => format!("does not link: {other:?}"),
    })?;
    let module = Arc::new(module);
    let buffers = case
        .parameters
        .iter()
        .map(|parameter| match parameter.role {
            Role::Buffer | Role::Image(_) | Role::Endpoint(_) => {
                memory.buffer(&bytes(parameter.ty, &parameter.before)).map(Some)
            }
            Role::Value => Ok(None),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut endpoints = Endpoints::default();
    let mut others = Vec::new();
    for (parameter, start) in case.parameters.iter().zip(&buffers) {
        if let (Role::Endpoint(is), Some(start)) = (parameter.role, *start) {
            let mut members = vec![start];
            if is.team {
                let other = memory.buffer(&bytes(parameter.ty, &parameter.before))?;
                members.push(other);
                others.push((parameter, other));
            }
            endpoints.publish(parameter, is.team, is.counted, &members);
        }
    }
    let mut references = Vec::new();
    let mut bound = others;
    for parameter in &case.images {
        let address = memory.buffer(&bytes(parameter.ty, &parameter.before))?;
        let variable = module.globals.iter().find(|global| *global.name == *parameter.name);
        let variable = variable.ok_or_else(|| format!("no reference {}", parameter.name))?;
        references.push((variable.address, image::descriptor(parameter, address)?));
        bound.push((parameter, address));
    }
    image::declared(&module, &mut references);
    references.sort_by_key(|(address, _)| *address);
    let references: References = references.into();
    let code = Arc::new(Executables::new(Arc::clone(&module)));
    for (parameter, address) in case.parameters.iter().zip(&buffers) {
        if let Some(address) = address.filter(|_| parameter.freed) {
            memory.free(address);
        }
    }
    let services = Arc::new(Test::default());
    let mut fault = None;
    for (number, launch) in (0..).zip(&case.launches) {
        let given = Given {
            buffers: &buffers,
            endpoints: &endpoints,
            references: &references,
        };
        let mut launch = self::launch(case, launch, &code, &given, &services, &mut memory)?;
        launch.seed = seed.map(|seed| simt::Seed::new(seed, number));
        if let Err(found) = simt::run(Arc::new(launch)) {
            fault = Some(found);
            break;
        }
    }
    let mut report = String::new();
    outcome(case, fault.as_deref(), &services, &mut report);
    if fault.is_none() {
        let buffers = case.parameters.iter().zip(&buffers);
        let buffers = buffers.filter_map(|(parameter, buffer)| Some((parameter, (*buffer)?)));
        for (parameter, address) in buffers.chain(bound) {
            let mut found = vec![0; parameter.ty.bytes * parameter.after.len()];
            // SAFETY: the buffer was allocated for so many elements, and no kernel runs any more.
            unsafe { std::ptr::copy_nonoverlapping(address as *const u8, found.as_mut_ptr(), found.len()) };
            verdict::compare(parameter, &found, case, &mut report);
        }
    }
    // While the memory of the case is there: the report says what an address is next to.
    let fault = fault.map(|fault| cuda::driver::fault::report(&fault, 0));
    if report.is_empty() { Ok(fault) } else { Err(report) }
}

/// What a case's kernels are handed.
struct Given<'a> {
    buffers: &'a [Option<u64>],
    endpoints: &'a Endpoints,
    references: &'a References,
}

fn launch(
    case: &Case,
    launch: &Launch,
    code: &Arc<Executables>,
    given: &Given<'_>,
    services: &Arc<Test>,
    memory: &mut Memory,
) -> Result<simt::Launch, String> {
    let (kernel, info) = code
        .module
        .functions
        .iter()
        .enumerate()
        .find(|(_, f)| f.entry && *f.name == *launch.entry)
        .and_then(|(i, f)| Some((i, f.kernel.as_ref()?)))
        .ok_or_else(|| format!("no entry {}", launch.entry))?;
    if info.params.len() != case.parameters.len() {
        return Err(format!(
            "{} has {} parameters, the header lists {}",
            launch.entry,
            info.params.len(),
            case.parameters.len()
        ));
    }
    let mut params = vec![0u8; info.param_bytes as usize];
    for ((parameter, buffer), &(offset, size)) in case.parameters.iter().zip(given.buffers).zip(&info.params) {
        let raw = match (parameter.role, buffer) {
            (Role::Endpoint(_), _) => given.endpoints.number(parameter).to_le_bytes().to_vec(),
            (Role::Image(_), Some(address)) => image::object(parameter, *address)?.to_le_bytes().to_vec(),
            (_, Some(address)) => address.to_le_bytes().to_vec(),
            (_, None) => bytes(parameter.ty, &parameter.before),
        };
        if raw.len() != size as usize {
            return Err(format!(
                "parameter {} has {size} bytes, the header gives {}",
                parameter.name,
                raw.len()
            ));
        }
        params[offset as usize..][..raw.len()].copy_from_slice(&raw);
    }
    Ok(simt::Launch {
        code: Arc::clone(code),
        kernel: kernel as u32,
        grid: launch.grid,
        block: launch.block,
        cluster: launch.cluster,
        dynamic_shared: launch.shared,
        params: params.into(),
        cooperative: launch.cooperative,
        workspace: if launch.cooperative {
            memory.buffer(&[0; 4096])?
        } else {
            0
        },
        grid_id: 1,
        device: 0,
        multiprocessors: 4,
        stack_limit: launch.stack,
        timeout: Some(launch.timeout.map_or(PATIENCE, Duration::from_millis)),
        seed: None,
        is_checked: true.into(),
        services: Arc::clone(services) as Arc<dyn Services>,
        references: Arc::clone(given.references),
        family: simt::Family::default(),
        tensor: Default::default(),
    })
}

/// How the launch ended, and what it said.
fn outcome(case: &Case, fault: Option<&Fault>, services: &Test, report: &mut String) {
    let found = fault.map(code);
    if found != case.expect.error {
        let show = |code: Option<u32>| code.map_or("success".to_owned(), |code| format!("error {code}"));
        let _ = writeln!(report, "expected {}, got {}", show(case.expect.error), show(found));
        if let Some(f) = fault {
            let _ = writeln!(report, "{}", cuda::driver::fault::report(f, 0));
        }
    }
    let printed = services.printed.lock().unwrap();
    verdict::said(
        "output",
        &case.expect.print,
        &String::from_utf8_lossy(&printed),
        case,
        report,
    );
    let assertion = services.assertion.lock().unwrap();
    verdict::said("assertion", &case.expect.assert, &assertion, case, report);
}

/// The `CUresult` that the driver API manual gives to a cause.
fn code(fault: &Fault) -> u32 {
    match fault.cause {
        Cause::IllegalAddress { .. } | Cause::Stray { .. } | Cause::HostMemoryGone { .. } => 700,
        Cause::Misaligned { .. } => 716,
        Cause::IllegalInstruction { .. } | Cause::WrongFree { .. } => 715,
        Cause::InvalidPc { .. } => 718,
        Cause::StackOverflow { .. } => 714,
        Cause::Trap | Cause::Texture { .. } | Cause::Misuse { .. } | Cause::Deadlock { .. } | Cause::Defect { .. } => {
            719
        }
        Cause::Assert => 710,
        Cause::Timeout { .. } => 702,
        Cause::OutOfMemory { .. } => 2,
        Cause::TensorMemoryLeak { .. } => 721,
        Cause::Invalid { .. } => 218,
    }
}

/// Logical endpoints of one case: what parameter each is, and its number.
#[derive(Default)]
struct Endpoints(Vec<(String, u32)>);

impl Endpoints {
    /// Members are devices 0, 1, …, each with all of the parameter's elements.
    fn publish(&mut self, parameter: &Parameter, is_team: bool, counts: bool, members: &[u64]) {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let member = |(device, &start)| Member { device, start };
        endpoint::publish(Endpoint {
            id,
            is_team,
            bytes: (parameter.ty.bytes * parameter.before.len()) as u64,
            counts,
            missing: 0,
            members: (0..).zip(members).map(member).collect(),
        });
        self.0.push((parameter.name.clone(), id));
    }

    fn number(&self, parameter: &Parameter) -> u32 {
        let found = self.0.iter().find(|(name, _)| *name == parameter.name);
        found.map_or(0, |(_, id)| *id)
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        for (_, id) in &self.0 {
            endpoint::withdraw(*id);
        }
    }
}

/// Allocations of one case, freed with it.
#[derive(Default)]
struct Memory(Vec<u64>);

impl Memory {
    fn allocate(&mut self, kind: Kind, bytes: u64) -> Option<u64> {
        let request = Request {
            by: Caller::named(if kind == Kind::Constant {
                "cuModuleLoadData"
            } else {
                "cuMemAlloc_v2"
            }),
            ..Request::new(kind, bytes.max(1))
        };
        let start = AddressSpace::get().allocate(&request).ok()?.start;
        self.0.push(start);
        // SAFETY: allocated just now with so many bytes; the process may write all of the arena's allocations.
        unsafe { std::ptr::write_bytes(start as *mut u8, 0, bytes as usize) };
        Some(start)
    }

    fn free(&mut self, start: u64) {
        self.0.retain(|own| *own != start);
        Caller::named("cuMemFree_v2").during(|| AddressSpace::get().free(start));
    }

    fn buffer(&mut self, content: &[u8]) -> Result<u64, String> {
        let start = self
            .allocate(Kind::Device, content.len() as u64)
            .ok_or("no memory for a buffer")?;
        self.write(start, content);
        Ok(start)
    }
}

impl Allocate for Memory {
    fn allocate(&mut self, bytes: u64, _align: u64, constant: bool, _managed: bool) -> Result<u64, AllocateError> {
        let kind = if constant { Kind::Constant } else { Kind::Device };
        Memory::allocate(self, kind, bytes).ok_or(AllocateError)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        // SAFETY: the linker writes within what it was given; no kernel runs yet.
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

/// What kernels ask for, written down.
#[derive(Default)]
struct Test {
    printed: Mutex<Vec<u8>>,
    assertion: Mutex<String>,
    heap: Mutex<HashSet<u64>>,
}

/// The default of `CU_LIMIT_MALLOC_HEAP_SIZE`.
const HEAP: u64 = 8 << 20;

impl Services for Test {
    fn malloc(&self, bytes: u64) -> u64 {
        if bytes == 0 || bytes > HEAP {
            return 0;
        }
        let Ok(block) = AddressSpace::get().allocate(&Request::new(Kind::Heap, bytes)) else {
            return 0;
        };
        self.heap.lock().unwrap().insert(block.start);
        block.start
    }

    fn free(&self, address: u64) -> bool {
        self.heap.lock().unwrap().remove(&address) && AddressSpace::get().free(address).is_some()
    }

    fn print(&self, bytes: &[u8]) {
        self.printed.lock().unwrap().extend_from_slice(bytes);
    }

    fn set_conditional(&self, _: u64, _: u32) -> bool {
        false
    }

    fn assert_failed(&self, line: &str) {
        // Every failing thread says so; the first is enough here.
        let mut first = self.assertion.lock().unwrap();
        if first.is_empty() {
            *first = line.to_owned();
        }
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        for address in self.heap.lock().unwrap().drain() {
            AddressSpace::get().free(address);
        }
    }
}
