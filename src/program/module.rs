//! A linked module: its functions, lowered when first used, and its variables, placed where the driver said.

use std::sync::{Arc, OnceLock};

use super::instr::Function;
use crate::ptx::diagnostic::Diagnostics;

/// What can be said of a kernel without lowering it.
#[derive(Debug, Clone, Default)]
pub struct KernelInfo {
    /// `(offset, bytes)` of each parameter in the parameter block.
    pub params: Vec<(u32, u32)>,
    pub param_bytes: u32,
    /// `.maxntid` / `.reqntid` (0: none).
    pub max_threads: u32,
    pub maxntid: Option<[u32; 3]>,
    pub reqntid: Option<[u32; 3]>,
    pub required_cluster: Option<[u32; 3]>,
    pub min_ctas_per_sm: u32,
    pub max_registers: u32,
    /// Module's constant memory.
    pub const_bytes: u32,
    /// `.target` number of its PTX, e.g. 75 (`CU_FUNC_ATTRIBUTE_PTX_VERSION`).
    pub target: u32,
}

/// A symbol of a linked module that lives in memory.
#[derive(Debug, Clone)]
pub struct Global {
    pub name: Arc<str>,
    pub space: crate::ptx::ast::Space,
    pub bytes: u64,
    pub align: u64,
    pub managed: bool,
    /// Visible to the host by name.
    pub visible: bool,
    pub address: u64,
}

/// Where the linker of a module puts its variables: the driver allocates.
pub trait Allocate {
    /// Memory of at least `bytes`, aligned, readable by kernels, writable by them unless `constant`; zeroed.
    fn allocate(&mut self, bytes: u64, align: u64, constant: bool, managed: bool) -> Result<u64, AllocateError>;

    /// Puts initial values into memory that [`Allocate::allocate`] gave.
    fn write(&mut self, address: u64, bytes: &[u8]);
}

/// No memory for a module's variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocateError;

/// A linked module: one or more PTX texts, their symbols resolved against each other, variables placed and initialised.
pub struct Module {
    pub functions: Vec<FunctionEntry>,
    pub globals: Vec<Global>,
    /// Functions' addresses are `code_base + 16 × index`: values that kernels may store and call, never memory.
    pub code_base: u64,
}

pub struct FunctionEntry {
    pub name: Arc<str>,
    pub entry: bool,
    pub kernel: Option<KernelInfo>,
    /// Lowered when first used.
    pub lowered: OnceLock<Result<Arc<Function>, Diagnostics>>,
}

impl Module {
    /// Links units (one for an ordinary image, several for `-rdc=true`): one instance of each visible symbol, calls and
    /// variables resolved across units, `.weak` and `.common` by the ISA's rules, initialisers written.
    ///
    /// # Errors
    /// What does not resolve, or is defined twice, and where.
    pub fn link(_units: &[Arc<crate::ptx::ast::Module>], _allocate: &mut dyn Allocate) -> Result<Module, LinkError> {
        todo!("the linker lands next")
    }

    /// Lowers `function` and all that it can reach, if that has not happened yet.
    ///
    /// # Errors
    /// What the instruction table or the type rules refuse.
    pub fn prepare(&self, _function: u32) -> Result<Arc<Function>, Diagnostics> {
        todo!("lowering lands next")
    }

    /// Bytes of static shared memory of `kernel` and everything that it can reach (prepares it).
    ///
    /// # Errors
    /// As [`Module::prepare`].
    pub fn shared_bytes(&self, kernel: u32) -> Result<u32, Diagnostics> {
        Ok(self.prepare(kernel)?.shared_bytes)
    }

    /// A module of functions that are lowered already: programs built by hand.
    pub fn of(functions: Vec<Function>) -> Module {
        let entry = |f: Function| FunctionEntry {
            name: f.name.clone(),
            entry: true,
            kernel: Some(KernelInfo::default()),
            lowered: OnceLock::from(Ok(Arc::new(f))),
        };
        Module {
            functions: functions.into_iter().map(entry).collect(),
            globals: Vec::new(),
            code_base: 0x7fff_0000_0000_0000,
        }
    }
}

#[derive(Debug, Clone)]
pub enum LinkError {
    Invalid(Diagnostics),
    /// An `.extern` that nobody defines.
    Undefined(Vec<String>),
    /// Two strong definitions of a name.
    Duplicate(Vec<String>),
    OutOfMemory,
}
