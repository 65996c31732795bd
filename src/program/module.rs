//! A linked module: its functions, lowered when first used, and its variables, placed where the driver said.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::frames::Stack;
use super::function::Function;
use super::ir::Syscall;
use super::ir::texture::Opaque;
use super::layout::{self, SharedLayout, SharedVariable};
use super::references::{self, References};
use super::{check, frames, link, lower};
use crate::defect;
use crate::ptx::ast::{self, Item};
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
    /// `.explicitcluster`: a launch must name a cluster.
    pub explicit_cluster: bool,
    /// `.blocksareclusters`: a launch counts clusters, of the required shape, in place of blocks.
    pub blocks_are_clusters: bool,
    /// `.maxclusterrank` (0: none).
    pub max_cluster_rank: u32,
    pub min_ctas_per_sm: u32,
    pub max_registers: u32,
    /// Module's constant memory.
    pub const_bytes: u32,
    /// `.target` number of its PTX, e.g. 75 (`CU_FUNC_ATTRIBUTE_PTX_VERSION`).
    pub target: u32,
    /// It computes with tiles: a block is one thread, whatever a launch says.
    pub is_of_tiles: bool,
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
    /// A texture, sampler or surface reference, or an array of them: its memory holds nothing, its address is a handle.
    pub opaque: Option<Declaration>,
}

/// What the declaration of a reference says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    pub kind: Opaque,
    /// Bytes from one element of an array to the next.
    pub stride: u64,
    /// Fields that the initialiser sets. Words are numbered in the order in which the manual lists them.
    pub fields: Vec<(Arc<str>, u32)>,
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
    pub(super) linked: Linked,
}

pub struct FunctionEntry {
    pub name: Arc<str>,
    pub entry: bool,
    pub kernel: Option<KernelInfo>,
    /// Lowered when first used.
    pub lowered: OnceLock<Result<Arc<Function>, Diagnostics>>,
    pub(super) origin: Option<Origin>,
    pub(super) references: OnceLock<References>,
    /// Everything that it reaches by direct calls is lowered.
    pub(super) prepared: OnceLock<()>,
    /// What a chain of calls from it on takes of local memory; found when it is prepared.
    pub(super) stack: OnceLock<Stack>,
}

/// The definition of a function: unit, and item in the unit's tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub unit: usize,
    pub item: usize,
}

/// What a name at module scope stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// Index into [`Module::functions`].
    Function(u32),
    /// Index into [`Module::globals`].
    Global(u32),
    /// Index into [`Linked::shared`].
    Shared(u32),
    /// Declared by this item of the unit, carried out by the system.
    Syscall(Syscall, u32),
    /// A function that no unit defines.
    Undefined,
    /// Something that has no place in a module: this item of the unit.
    Unplaced(u32),
}

pub(super) struct Unit {
    pub tree: Arc<ast::Module>,
    pub names: HashMap<Arc<str>, Symbol>,
    /// What each item of the tree came to.
    pub symbols: Vec<Option<Symbol>>,
    /// The names for the check.
    pub declared: OnceLock<check::Names>,
}

/// What lowering needs of the linked units.
#[derive(Default)]
pub(super) struct Linked {
    pub units: Vec<Unit>,
    /// Shared variables of module scope, and those of bodies that have been read.
    pub shared: Mutex<Vec<SharedVariable>>,
    /// The variable that stands for reserved shared memory, once a body has asked for it.
    pub reserved: OnceLock<u32>,
    /// Variables of memory that outlives a launch, declared in bodies: (function, where its name stands) → global.
    pub inner: HashMap<(u32, u32), u32>,
    /// Functions whose address is taken anywhere in the module.
    pub address_taken: OnceLock<Vec<u32>>,
    /// What only PTX 1.x has.
    pub old: OnceLock<Old>,
    /// Functions keep their calls, and what goes by way of their frames: for those who look at how.
    pub as_written: bool,
}

/// Variables that only PTX 1.x has.
#[derive(Default)]
pub(super) struct Old {
    /// Shared variables with initial values, by their index: the unit whose names count, and the declaration.
    pub shared: HashMap<u32, (usize, ast::Variable)>,
}

impl Module {
    /// Links units (one for an ordinary image, several for `-rdc=true`): one instance of each visible symbol, calls and
    /// variables resolved across units, `.weak` and `.common` by the ISA's rules, initialisers written.
    ///
    /// # Errors
    /// What does not resolve, or is defined twice, and where.
    pub fn link(units: &[Arc<ast::Module>], allocate: &mut dyn Allocate) -> Result<Module, LinkError> {
        link::link(units, &HashMap::new(), allocate)
    }

    /// As [`Module::link`], with addresses for variables that no unit defines.
    ///
    /// # Errors
    /// As [`Module::link`].
    pub fn link_with(
        units: &[Arc<ast::Module>],
        known: &HashMap<String, u64>,
        allocate: &mut dyn Allocate,
    ) -> Result<Module, LinkError> {
        link::link(units, known, allocate)
    }

    /// The same module, of which functions keep their calls, and what goes by way of their frames, where they are lowered from now on: whoever
    /// watches wants to see them as they are written.
    #[must_use]
    pub fn as_written(mut self) -> Module {
        self.linked.as_written = true;
        self
    }

    /// Lowers `function` and all that it reaches by direct calls, if that has not happened yet. What it may call by address is
    /// lowered when it does: libraries have tables of hundreds of functions, of which a launch calls one.
    ///
    /// # Errors
    /// What the instruction table or the type rules refuse.
    pub fn prepare(&self, function: u32) -> Result<Arc<Function>, Diagnostics> {
        let entry = &self.functions[function as usize];
        let root = self.lowered(function)?;
        if entry.prepared.get().is_some() {
            return Ok(root);
        }
        let mut seen = HashSet::from([function]);
        let mut work = vec![root.clone()];
        // What was prepared before has all that it reaches lowered.
        let is_new = |function: u32| self.functions[function as usize].prepared.get().is_none();
        while let Some(next) = work.pop() {
            for &callee in &next.callees {
                if is_new(callee) && seen.insert(callee) {
                    work.push(self.lowered(callee)?);
                }
            }
        }
        frames::find(self, function);
        for function in seen {
            let entry = &self.functions[function as usize];
            if matches!(entry.lowered.get(), Some(Ok(_))) {
                let _ = entry.prepared.set(());
            }
        }
        Ok(root)
    }

    /// What the frames of a prepared function and of all that it calls take of a lane's local memory.
    pub fn stack(&self, function: u32) -> Stack {
        let known = self.functions[function as usize].stack.get().copied();
        known.or_else(|| frames::find(self, function)).unwrap_or(Stack {
            frames: None,
            allocates: false,
        })
    }

    /// Functions that bodies name and no unit defines, each once. Reads all bodies.
    pub fn undefined(&self) -> Vec<Arc<str>> {
        let functions = 0..self.functions.len() as u32;
        let mut names: Vec<Arc<str>> = functions
            .flat_map(|function| self.references(function).undefined.iter().cloned())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn lowered(&self, function: u32) -> Result<Arc<Function>, Diagnostics> {
        let entry = &self.functions[function as usize];
        entry
            .lowered
            .get_or_init(|| {
                defect::may_fail("lowering", &entry.name);
                lower::lower(self, function).map(Arc::new)
            })
            .clone()
    }

    pub(super) fn definition(&self, function: u32) -> Option<(&Unit, &ast::Function)> {
        let origin = self.functions[function as usize].origin?;
        let unit = self.linked.units.get(origin.unit)?;
        match unit.tree.items.get(origin.item)? {
            Item::Function(function) => Some((unit, function)),
            _ => None,
        }
    }

    /// What a function's body names; reads the body.
    pub(super) fn references(&self, function: u32) -> &References {
        self.functions[function as usize]
            .references
            .get_or_init(|| references::of(self, function))
    }

    /// The number that a function's address is.
    pub(super) fn function_address(&self, function: u32) -> u64 {
        self.code_base + 16 * u64::from(function)
    }

    /// Functions that an indirect call may reach: reads every body, once, when somebody calls indirectly.
    pub(super) fn address_taken(&self) -> &[u32] {
        self.linked.address_taken.get_or_init(|| {
            let mut taken: Vec<u32> = references::in_initialisers(self);
            for function in 0..self.functions.len() as u32 {
                taken.extend(&self.references(function).addresses);
            }
            taken.sort_unstable();
            taken.dedup();
            taken
        })
    }

    /// Initial values of shared memory; looked for once.
    pub(super) fn old(&self) -> &Old {
        self.linked.old.get_or_init(|| references::old(self))
    }

    /// The shared memory of a kernel: every variable that it, or something it may call, names.
    pub(super) fn shared_layout(&self, kernel: u32) -> SharedLayout {
        let mut seen = HashSet::from([kernel]);
        let mut work = vec![kernel];
        let mut variables = HashSet::new();
        let mut indirect = false;
        while let Some(function) = work.pop() {
            let references = self.references(function);
            variables.extend(references.shared.iter().copied());
            work.extend(references.callees.iter().copied().filter(|&f| seen.insert(f)));
            if references.calls_indirectly && !std::mem::replace(&mut indirect, true) {
                work.extend(self.address_taken().iter().copied().filter(|&f| seen.insert(f)));
            }
        }
        let all = self
            .linked
            .shared
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let variables: Vec<_> = variables.into_iter().map(|v| (v, all[v as usize])).collect();
        layout::shared(&variables)
    }

    /// Bytes of a shared variable. `None`: it is dynamic.
    pub(super) fn shared_bytes(&self, index: u32) -> Option<u32> {
        let all = self.linked.shared.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(index as usize).and_then(|variable| variable.bytes)
    }

    /// The shared variable that stands for what is reserved.
    pub(super) fn reserved_shared(&self) -> u32 {
        *self.linked.reserved.get_or_init(|| {
            let mut all = self.linked.shared.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(SharedVariable::RESERVED);
            all.len() as u32 - 1
        })
    }

    /// A module of functions that are lowered already: programs built by hand.
    #[cfg(test)]
    pub fn of(functions: Vec<Arc<Function>>) -> Module {
        let entry = |f: Arc<Function>| FunctionEntry {
            name: f.name.clone(),
            entry: true,
            kernel: Some(KernelInfo::default()),
            lowered: OnceLock::from(Ok(f)),
            origin: None,
            references: OnceLock::new(),
            prepared: OnceLock::new(),
            stack: OnceLock::new(),
        };
        Module {
            functions: functions.into_iter().map(entry).collect(),
            globals: Vec::new(),
            code_base: 0x7fff_0000_0000_0000,
            linked: Linked::default(),
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

impl std::fmt::Display for LinkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LinkError::Invalid(found) => {
                let first = found.list.first().map_or("", |d| &d.message);
                write!(f, "{first}")
            }
            LinkError::Undefined(names) => write!(f, "not defined in any unit: {}", names.join(", ")),
            LinkError::Duplicate(names) => write!(f, "defined more than once: {}", names.join(", ")),
            LinkError::OutOfMemory => write!(f, "no memory for the module's variables"),
        }
    }
}

impl std::error::Error for LinkError {}
