//! Linking in a context: variables get memory there; a library's managed ones have it already when a second context links.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Linked, Managed};
use crate::driver::code::{Code, LoadError, Symbols};
use crate::driver::context::Shared;
use crate::driver::memory::place::VARIABLE;
use crate::driver::reference::References;
use crate::memory::{AddressSpace, Kind, Request, shadow};
use crate::program::{self, Allocate, AllocateError};
use crate::simt::Executables;

/// Allocates a module's variables.
struct Placer<'a> {
    shared: &'a Shared,
    /// A library's managed variables. Those that another context uses already are not initialised again.
    managed: Option<LibraryVariables<'a>>,
    managed_used: usize,
    memory: Vec<u64>,
}

pub(super) struct LibraryVariables<'a> {
    pub known: &'a mut Vec<Managed>,
    /// Some context has the library: the variables have values that somebody may have changed.
    pub in_use: bool,
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

/// The address of memory of zeros.
fn place(request: &Request) -> Result<u64, AllocateError> {
    let placed = AddressSpace::get().allocate(request).map_err(|_| AllocateError)?;
    // What has no initialiser holds zeros, which programs may count on.
    shadow::defined(placed.start, placed.bytes);
    Ok(placed.start)
}

impl Linked {
    pub(super) fn new(
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

/// Gives back the memory of variables.
pub(super) fn release(memory: &[u64]) {
    for start in memory {
        AddressSpace::get().free(*start);
    }
}
