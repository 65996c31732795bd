//! Units → one module: every name that one unit exports and another imports stands for one thing (PTX ISA, Linking
//! Directives), variables are placed and hold their initial values. Bodies are not read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::initialiser;
use super::ir::Syscall;
use super::ir::texture::Opaque;
use super::layout::{self, SharedVariable};
use super::module::{
    Allocate, Declaration, FunctionEntry, Global, KernelInfo, LinkError, Linked, Module, Origin, Symbol, Unit,
};
use super::runtime::{self, RuntimeCall};
use crate::config;
use crate::ptx::ast::Module as Tree;
use crate::ptx::ast::{Expr, Function, Init, Item, Linkage, Name, Space, Span, Statement, Type, Variable};
use crate::ptx::diagnostic::{Diagnostic, Diagnostics};
use crate::tile;

/// Functions' addresses: not canonical, so that nothing else in the process has them; each module has its own range.
static NEXT_CODE: AtomicU64 = AtomicU64::new(0x7f00_0000_0000_0000);

/// Which of several definitions of a name stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Strength {
    Common,
    Weak,
    Strong,
}

fn strength(linkage: Linkage) -> Strength {
    match linkage {
        Linkage::Common => Strength::Common,
        Linkage::Weak => Strength::Weak,
        Linkage::Internal | Linkage::Extern | Linkage::Visible => Strength::Strong,
    }
}

fn syscall(name: &str) -> Option<Syscall> {
    Some(match name {
        "vprintf" => Syscall::Vprintf,
        "malloc" => Syscall::Malloc,
        "free" => Syscall::Free,
        "__assertfail" => Syscall::AssertFail,
        "cudaGraphSetConditional" => Syscall::GraphSetConditional,
        tile::SYSTEM_CALL => Syscall::TileBlock,
        _ => {
            let (call, generation) = RuntimeCall::of(name)?;
            Syscall::Runtime(call, generation)
        }
    })
}

/// A definition on its way into the module: (unit, item).
type At = (usize, usize);

pub fn link(
    units: &[Arc<Tree>],
    known: &HashMap<String, u64>,
    allocate: &mut dyn Allocate,
) -> Result<Module, LinkError> {
    let with_grid_sync = runtime::grid_sync(units).map(|unit| [units, &[unit]].concat());
    let mut linker = Linker::new(with_grid_sync.as_deref().unwrap_or(units), known);
    linker.export()?;
    linker.functions()?;
    linker.variables(allocate)?;
    linker.names()?;
    linker.initialise(allocate)?;
    Ok(linker.finish())
}

struct Linker<'a> {
    trees: &'a [Arc<Tree>],
    /// Addresses of variables that are defined elsewhere.
    known: &'a HashMap<String, u64>,
    /// Names that units export, and who defines them.
    exports: HashMap<Arc<str>, (Strength, At)>,
    symbols: HashMap<At, Symbol>,
    functions: Vec<FunctionEntry>,
    globals: Vec<Global>,
    shared: Vec<SharedVariable>,
    names: Vec<HashMap<Arc<str>, Symbol>>,
    const_bytes: u32,
    code_base: u64,
    /// Variables of bodies: function, declaration, global.
    inner: Vec<(u32, &'a Variable, u32)>,
}

impl<'a> Linker<'a> {
    fn new(trees: &'a [Arc<Tree>], known: &'a HashMap<String, u64>) -> Linker<'a> {
        Linker {
            trees,
            known,
            exports: HashMap::new(),
            symbols: HashMap::new(),
            functions: Vec::new(),
            globals: Vec::new(),
            shared: Vec::new(),
            names: Vec::new(),
            const_bytes: 0,
            code_base: 0,
            inner: Vec::new(),
        }
    }

    fn items(&self) -> impl Iterator<Item = (At, &'a Item)> + use<'a> {
        let trees = self.trees;
        trees
            .iter()
            .enumerate()
            .flat_map(|(unit, tree)| tree.items.iter().enumerate().map(move |(item, i)| ((unit, item), i)))
            .filter(|(_, item)| !matches!(item, Item::Variable(variable) if variable.name.text.is_empty()))
    }

    fn invalid(&self, unit: usize, diagnostic: Diagnostic) -> LinkError {
        LinkError::Invalid(Diagnostics {
            source: self.trees[unit].source.clone(),
            list: vec![diagnostic],
        })
    }

    /// Who defines each exported name; and that no unit defines a name twice.
    fn export(&mut self) -> Result<(), LinkError> {
        let mut duplicates = Vec::new();
        let mut inside: HashMap<(usize, Arc<str>), At> = HashMap::new();
        for (at, item) in self.items() {
            let (name, linkage) = match item {
                Item::Function(f) if f.body.is_some() => (&f.name.text, f.linkage),
                Item::Variable(v) if v.linkage != Linkage::Extern && has_storage(v) => (&v.name.text, v.linkage),
                Item::Alias { name, .. } => (&name.text, Linkage::Visible),
                _ => continue,
            };
            if let Some(first) = inside.insert((at.0, name.clone()), at)
                && self.linkage(first) != Linkage::Weak
                && linkage != Linkage::Weak
                && linkage != Linkage::Common
            {
                duplicates.push(name.to_string());
            }
            if linkage == Linkage::Internal {
                continue;
            }
            let new = strength(linkage);
            match self.exports.get(name) {
                None => {
                    self.exports.insert(name.clone(), (new, at));
                }
                Some(&(Strength::Strong, first)) if new == Strength::Strong && first != at => {
                    duplicates.push(name.to_string());
                }
                Some(&(old, first)) => {
                    // Of common variables the largest stands, of weak ones the first.
                    let larger =
                        old == Strength::Common && new == Strength::Common && self.bytes(at) > self.bytes(first);
                    if new > old || larger {
                        self.exports.insert(name.clone(), (new, at));
                    }
                }
            }
        }
        if duplicates.is_empty() {
            return Ok(());
        }
        duplicates.sort();
        duplicates.dedup();
        Err(LinkError::Duplicate(duplicates))
    }

    fn item(&self, at: At) -> &'a Item {
        &self.trees[at.0].items[at.1]
    }

    fn linkage(&self, at: At) -> Linkage {
        match self.item(at) {
            Item::Function(f) => f.linkage,
            Item::Variable(v) => v.linkage,
            _ => Linkage::Visible,
        }
    }

    fn bytes(&self, at: At) -> u64 {
        match self.item(at) {
            Item::Variable(v) => layout::bytes_of(v).unwrap_or(0),
            _ => 0,
        }
    }

    /// Whether this definition is the one that stands.
    fn stands(&self, at: At, name: &str, linkage: Linkage) -> bool {
        linkage == Linkage::Internal || self.exports.get(name).is_some_and(|&(_, chosen)| chosen == at)
    }

    fn functions(&mut self) -> Result<(), LinkError> {
        for (at, item) in self.items() {
            let Item::Function(function) = item else { continue };
            if function.body.is_none() || !self.stands(at, &function.name.text, function.linkage) {
                continue;
            }
            let kernel = function.entry.then(|| kernel_info(function, &self.trees[at.0]));
            if let Some(info) = kernel
                .as_ref()
                .filter(|info| info.param_bytes > layout::KERNEL_PARAM_BYTES)
            {
                let (name, most) = (&function.name, layout::KERNEL_PARAM_BYTES);
                let message = format!("`{}` has {} bytes of parameters", name.text, info.param_bytes);
                let found = Diagnostic::error(name.span, message).label(format!("a kernel may have {most}"));
                return Err(self.invalid(at.0, found));
            }
            let index = self.functions.len() as u32;
            self.symbols.insert(at, Symbol::Function(index));
            self.functions.push(FunctionEntry {
                name: function.name.text.clone(),
                entry: function.entry,
                kernel,
                lowered: OnceLock::new(),
                origin: Some(Origin { unit: at.0, item: at.1 }),
                references: OnceLock::new(),
                prepared: OnceLock::new(),
                stack: OnceLock::new(),
            });
        }
        Ok(())
    }

    /// Places variables: one block of memory for all that kernels may write, one for constants, one for each managed one.
    /// Where accesses are checked to the byte, each has a block of its own.
    fn variables(&mut self, allocate: &mut dyn Allocate) -> Result<(), LinkError> {
        let mut pools: [Pool; 2] = Default::default();
        for (at, item) in self.items() {
            let Item::Variable(variable) = item else { continue };
            let open_shared = is_shared(variable.space) && layout::is_unsized(variable);
            if open_shared || (variable.linkage == Linkage::Extern && is_shared(variable.space)) {
                // An extern shared variable that a unit defines is that one; else it is dynamic.
                if !self.exports.contains_key(&variable.name.text) || open_shared {
                    let index = self.share(variable, None, at);
                    self.symbols.insert(at, index);
                }
                continue;
            }
            if variable.linkage == Linkage::Extern
                && let Some(&address) = self.known.get(&*variable.name.text)
                && !self.exports.contains_key(&variable.name.text)
            {
                let index = self.elsewhere(variable, address);
                self.symbols.insert(at, index);
                continue;
            }
            if variable.linkage == Linkage::Extern || !has_storage(variable) {
                continue;
            }
            if !self.stands(at, &variable.name.text, variable.linkage) {
                continue;
            }
            let symbol = if is_shared(variable.space) {
                let bytes = self.size(variable, at.0)?;
                self.share(variable, Some(u32::try_from(bytes).unwrap_or(u32::MAX)), at)
            } else {
                let visible = variable.linkage != Linkage::Internal || !self.exports.contains_key(&variable.name.text);
                Symbol::Global(self.place(variable, at.0, visible, &mut pools, allocate)?)
            };
            self.symbols.insert(at, symbol);
        }
        self.inner_variables(&mut pools, allocate)?;
        self.const_bytes = u32::try_from(pools[1].end).unwrap_or(u32::MAX);
        if pools[1].end > layout::CONST_BYTES.saturating_mul(self.trees.len() as u64) {
            let most = layout::CONST_BYTES;
            let message = format!("{} bytes of constant memory; a unit has {most}", pools[1].end);
            return Err(self.invalid(0, Diagnostic::error(Span::default(), message)));
        }
        for (constant, pool) in [(false, &pools[0]), (true, &pools[1])] {
            if pool.members.is_empty() {
                continue;
            }
            if config::get().check.memory {
                for &(index, _) in &pool.members {
                    let Global { bytes, align, .. } = self.globals[index];
                    let place = allocate.allocate(bytes.max(1), align.max(256), constant, false);
                    self.globals[index].address = place.map_err(|_| LinkError::OutOfMemory)?;
                }
                continue;
            }
            let base = allocate
                .allocate(pool.end.max(1), pool.align.max(256), constant, false)
                .map_err(|_| LinkError::OutOfMemory)?;
            for &(index, offset) in &pool.members {
                self.globals[index].address = base + offset;
            }
        }
        Ok(())
    }

    /// Bytes of a variable, by its initialiser if its first dimension is open.
    fn size(&self, variable: &Variable, unit: usize) -> Result<u64, LinkError> {
        match (layout::bytes_of(variable), &variable.init) {
            (Some(bytes), _) => Ok(bytes),
            // Legal, but there is no room for it anywhere.
            (None, _) if !layout::is_unsized(variable) => Err(LinkError::OutOfMemory),
            (None, Some(init)) => match initialiser::contents(variable, init, &mut |_| Ok(0)) {
                Ok(contents) => Ok(contents.size),
                Err(found) => Err(self.invalid(unit, found)),
            },
            (None, None) => {
                let found = Diagnostic::error(variable.span, format!("`{}` has no size", variable.name.text));
                Err(self.invalid(unit, found))
            }
        }
    }

    /// Gives a variable its memory, or its place in a pool.
    fn place(
        &mut self,
        variable: &Variable,
        unit: usize,
        visible: bool,
        pools: &mut [Pool; 2],
        allocate: &mut dyn Allocate,
    ) -> Result<u32, LinkError> {
        let bytes = self.size(variable, unit)?;
        let align = layout::align_of(variable);
        let index = self.globals.len();
        let mut global = Global {
            name: variable.name.text.clone(),
            space: variable.space,
            bytes,
            align,
            managed: is_managed(variable),
            visible,
            address: 0,
            opaque: declaration(variable),
        };
        if global.managed {
            let address = allocate.allocate(bytes.max(1), align.max(16), false, true);
            global.address = address.map_err(|_| LinkError::OutOfMemory)?;
        } else {
            pools[usize::from(variable.space == Space::Const)].add(index, bytes, align);
        }
        self.globals.push(global);
        Ok(index as u32)
    }

    /// `.global` and `.const` variables that bodies declare: rare, so that only bodies whose text looks like it are read.
    fn inner_variables(&mut self, pools: &mut [Pool; 2], allocate: &mut dyn Allocate) -> Result<(), LinkError> {
        let trees = self.trees;
        for function in 0..self.functions.len() as u32 {
            let Some(Origin { unit, item }) = self.functions[function as usize].origin else {
                continue;
            };
            let Item::Function(definition) = &trees[unit].items[item] else {
                continue;
            };
            let Some(body) = definition.body.as_ref().filter(|b| declares_globals(b.text())) else {
                continue;
            };
            // A body that does not parse is reported when it is lowered.
            let Ok(statements) = body.statements() else { continue };
            let mut found = Vec::new();
            inner(statements, &mut found);
            for variable in found {
                let index = self.place(variable, unit, false, pools, allocate)?;
                self.inner.push((function, variable, index));
            }
        }
        Ok(())
    }

    /// A variable at an address that the program gave.
    fn elsewhere(&mut self, variable: &Variable, address: u64) -> Symbol {
        self.globals.push(Global {
            name: variable.name.text.clone(),
            space: variable.space,
            bytes: layout::bytes_of(variable).unwrap_or(0),
            align: layout::align_of(variable),
            managed: false,
            visible: true,
            address,
            opaque: None,
        });
        Symbol::Global(self.globals.len() as u32 - 1)
    }

    fn share(&mut self, variable: &Variable, bytes: Option<u32>, at: At) -> Symbol {
        self.shared.push(SharedVariable {
            bytes,
            align: layout::align_of(variable) as u32,
            order: (at.0 as u32, at.1 as u32),
        });
        Symbol::Shared(self.shared.len() as u32 - 1)
    }

    /// What every name of every unit's module scope stands for.
    fn names(&mut self) -> Result<(), LinkError> {
        let mut undefined = Vec::new();
        for (unit, tree) in self.trees.iter().enumerate() {
            let mut names: HashMap<Arc<str>, Symbol> = HashMap::with_capacity(tree.items.len());
            let mut aliases = Vec::new();
            for (item, i) in tree.items.iter().enumerate() {
                let at = (unit, item);
                let (name, linkage) = match i {
                    Item::Function(f) => (&f.name, f.linkage),
                    Item::Variable(v) => (&v.name, v.linkage),
                    Item::Alias { name, target } => {
                        aliases.push((name, target));
                        continue;
                    }
                    Item::File { .. } | Item::Section(_) | Item::Pragma(_) | Item::Debug(_) => continue,
                };
                let symbol = match self.symbols.get(&at) {
                    Some(&symbol) => Some(symbol),
                    // A declaration, or a definition that yielded to another.
                    None => self.exported(&name.text),
                };
                let symbol = match (symbol, i) {
                    (Some(symbol), _) => symbol,
                    (None, Item::Function(f)) => match syscall(&name.text) {
                        Some(call) if f.body.is_none() => Symbol::Syscall(call, item as u32),
                        // Reported when something reaches it.
                        _ => Symbol::Undefined,
                    },
                    (None, Item::Variable(v)) => match v.space {
                        Space::Global | Space::Const if linkage == Linkage::Extern => {
                            undefined.push(name.text.to_string());
                            continue;
                        }
                        _ => Symbol::Unplaced(item as u32),
                    },
                    (None, _) => continue,
                };
                let entry = names.entry(name.text.clone()).or_insert(symbol);
                // A prototype and its definition, in either order.
                if matches!(entry, Symbol::Undefined) {
                    *entry = symbol;
                }
            }
            for (name, target) in aliases {
                let Some(&symbol) = names.get(&target.text) else {
                    let d = Diagnostic::error(target.span, format!("`{}` is not defined", target.text));
                    return Err(self.invalid(unit, d));
                };
                names.insert(name.text.clone(), symbol);
            }
            self.names.push(names);
        }
        // Aliases are exported too: a second look for those that found nobody.
        for (unit, tree) in self.trees.iter().enumerate() {
            for item in &tree.items {
                let Item::Function(f) = item else { continue };
                if !matches!(self.names[unit].get(&f.name.text), Some(Symbol::Undefined)) {
                    continue;
                }
                if let Some(&(_, (other, i))) = self.exports.get(&f.name.text)
                    && matches!(self.trees[other].items[i], Item::Alias { .. })
                    && let Some(&symbol) = self.names[other].get(&f.name.text)
                {
                    self.names[unit].insert(f.name.text.clone(), symbol);
                }
            }
        }
        if undefined.is_empty() {
            return Ok(());
        }
        undefined.sort();
        undefined.dedup();
        Err(LinkError::Undefined(undefined))
    }

    fn exported(&self, name: &str) -> Option<Symbol> {
        let (_, at) = self.exports.get(name)?;
        self.symbols.get(at).copied()
    }

    fn initialise(&mut self, allocate: &mut dyn Allocate) -> Result<(), LinkError> {
        let code_base = NEXT_CODE.fetch_add((self.functions.len() as u64 + 1) * 16, Ordering::Relaxed);
        self.code_base = code_base;
        let mut placed: Vec<(usize, &Variable, u32)> = Vec::new();
        for (at, item) in self.items() {
            if let (Item::Variable(variable), Some(&Symbol::Global(index))) = (item, self.symbols.get(&at)) {
                placed.push((at.0, variable, index));
            }
        }
        for &(function, variable, index) in &self.inner {
            let unit = self.functions[function as usize].origin.map_or(0, |origin| origin.unit);
            placed.push((unit, variable, index));
        }
        for (unit, variable, index) in placed {
            let Some(init) = &variable.init else { continue };
            let names = &self.names[unit];
            let mut address = |name: &Name| match names.get(&name.text) {
                Some(Symbol::Global(other)) => Ok(self.globals[*other as usize].address),
                Some(Symbol::Function(function)) => Ok(code_base + 16 * u64::from(*function)),
                Some(Symbol::Undefined) => Err(Diagnostic::error(
                    name.span,
                    format!("`{}` is not defined in any unit", name.text),
                )),
                Some(_) => Err(Diagnostic::error(
                    name.span,
                    format!("the address of `{}` is not known when the module is loaded", name.text),
                )),
                None => Err(Diagnostic::error(name.span, format!("`{}` is not declared", name.text))),
            };
            let contents = initialiser::contents(variable, init, &mut address).map_err(|d| self.invalid(unit, d))?;
            let start = self.globals[index as usize].address;
            for (at, bytes) in contents.runs.iter().filter(|(_, bytes)| bytes.iter().any(|&b| b != 0)) {
                allocate.write(start + at, bytes);
            }
        }
        Ok(())
    }

    fn finish(self) -> Module {
        let mut functions = self.functions;
        for function in &mut functions {
            if let Some(kernel) = &mut function.kernel {
                kernel.const_bytes = self.const_bytes;
            }
        }
        let units = self
            .trees
            .iter()
            .zip(self.names)
            .map(|(tree, names)| Unit {
                tree: tree.clone(),
                symbols: tree
                    .items
                    .iter()
                    .map(|item| names.get(&item.name()?.text).copied())
                    .collect(),
                names,
                declared: OnceLock::new(),
            })
            .collect();
        Module {
            functions,
            globals: self.globals,
            code_base: self.code_base,
            linked: Linked {
                units,
                shared: Mutex::new(self.shared),
                inner: self
                    .inner
                    .iter()
                    .map(|&(f, v, index)| ((f, v.name.span.start), index))
                    .collect(),
                reserved: OnceLock::new(),
                address_taken: OnceLock::new(),
                old: OnceLock::new(),
                as_written: false,
            },
        }
    }
}

/// Variables to be placed side by side, with room between neighbours.
#[derive(Default)]
struct Pool {
    members: Vec<(usize, u64)>,
    end: u64,
    align: u64,
}

impl Pool {
    fn add(&mut self, index: usize, bytes: u64, align: u64) {
        // What does not fit is refused before anything is placed.
        let offset = self.end.checked_next_multiple_of(align).unwrap_or(u64::MAX);
        self.members.push((index, offset));
        self.end = offset.saturating_add(bytes);
        self.align = self.align.max(align);
    }
}

fn is_shared(space: Space) -> bool {
    matches!(space, Space::Shared | Space::SharedCta | Space::SharedCluster)
}

fn is_managed(variable: &Variable) -> bool {
    variable
        .attributes
        .iter()
        .any(|(name, _)| name.text.trim_start_matches('.') == "managed")
}

/// Whether a body's text holds `.global` or `.const` as a word of its own, not as a modifier.
fn declares_globals(text: &str) -> bool {
    [".global", ".const"].iter().any(|word| {
        text.match_indices(word).any(|(at, _)| {
            let before = text[..at].bytes().next_back();
            let after = text[at + word.len()..].bytes().next();
            before.is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'{' | b';' | b'/'))
                && after.is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'.' | b'/'))
        })
    })
}

/// The `.global` and `.const` declarations of a body.
fn inner<'a>(statements: &'a [Statement], found: &mut Vec<&'a Variable>) {
    for statement in statements {
        match statement {
            Statement::Block(block) => inner(block, found),
            Statement::Variable(variable) if matches!(variable.space, Space::Global | Space::Const) => {
                found.push(variable);
            }
            _ => {}
        }
    }
}

/// What a variable says if it is a reference (PTX ISA, Texture, Sampler and Surface Types; PTX ISA 1.1, 5.1.8).
fn declaration(variable: &Variable) -> Option<Declaration> {
    let kind = match (variable.ty, variable.space) {
        (Type::TexRef, _) | (_, Space::Tex) => Opaque::Texture,
        (Type::SamplerRef, _) => Opaque::Sampler,
        (Type::SurfRef, _) | (_, Space::Surf) => Opaque::Surface,
        _ => return None,
    };
    let words = ["wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border"];
    let number = |expr: &Expr| match expr {
        Expr::Int { bits, .. } => *bits as u32,
        Expr::Symbol { name, .. } if &*name.text == "linear" => 1,
        Expr::Symbol { name, .. } => words.iter().position(|word| **word == *name.text).unwrap_or(0) as u32,
        Expr::F32 { .. } | Expr::F64 { .. } => 0,
    };
    let fields = match &variable.init {
        Some(Init::Fields(list)) => list
            .iter()
            .map(|(name, value)| (name.text.clone(), number(value)))
            .collect(),
        _ => Vec::new(),
    };
    Some(Declaration {
        kind,
        stride: layout::size_of(variable.ty),
        fields,
    })
}

/// Lives in a memory that a module owns.
fn has_storage(variable: &Variable) -> bool {
    is_shared(variable.space) || matches!(variable.space, Space::Global | Space::Const | Space::Tex | Space::Surf)
}

fn kernel_info(function: &Function, tree: &Tree) -> KernelInfo {
    let (places, end, _) = layout::places(&function.params, 0);
    let mut info = KernelInfo {
        params: places.iter().map(|p| (p.offset, p.bytes)).collect(),
        param_bytes: end,
        target: target(tree).unwrap_or(0),
        is_of_tiles: tree.source.tiles.is_some(),
        ..KernelInfo::default()
    };
    for directive in &function.directives {
        let arg = |i: usize| {
            directive
                .args
                .get(i)
                .map_or(1, |&a| u32::try_from(a).unwrap_or(u32::MAX))
        };
        let three = || Some([arg(0), arg(1), arg(2)]);
        match directive.name.text.trim_start_matches('.') {
            "maxntid" => info.maxntid = three(),
            "reqntid" => info.reqntid = three(),
            "reqnctapercluster" => info.required_cluster = three(),
            "explicitcluster" => info.explicit_cluster = true,
            "blocksareclusters" => info.blocks_are_clusters = true,
            "maxclusterrank" => info.max_cluster_rank = arg(0),
            "minnctapersm" => info.min_ctas_per_sm = arg(0),
            "maxnreg" => info.max_registers = arg(0),
            _ => {}
        }
    }
    // `.entry k[16][8]`: x is the last; a block may be smaller (PTX ISA 1.1, Table 68: "with max 256 threads").
    if let Some(dims) = function.dims.iter().rev().copied().collect::<Option<Vec<u64>>>()
        && !dims.is_empty()
        && !dims.contains(&0)
    {
        let dim = |i: usize| dims.get(i).map_or(1, |&dim| u32::try_from(dim).unwrap_or(u32::MAX));
        info.maxntid = Some([dim(0), dim(1), dim(2)]);
    }
    if let Some(dims) = info.reqntid.or(info.maxntid) {
        info.max_threads = dims.iter().fold(1u32, |a, &b| a.saturating_mul(b));
    }
    info
}

/// The number of the first `sm_…` of `.target`.
fn target(tree: &Tree) -> Option<u32> {
    let number = |name: &Name| {
        let digits = name
            .text
            .strip_prefix("sm_")
            .or_else(|| name.text.strip_prefix("compute_"))?;
        digits.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
    };
    tree.target.iter().find_map(number)
}
