//! What is known of a fault: the thread, its call stack with source lines, and where an address lies by the block's own
//! memory. Everything here runs once, when a grid has failed; `driver/code/fault.rs` makes words of it.

use std::sync::Arc;

use crate::isa::lanes::WARP;
use crate::memory::exact;
use crate::program::{Function, Module, Origin, SharedName, Space};
use crate::ptx::Source;
use crate::ptx::ast::Span;

use super::cause::{Cause, Made};
use super::interp::Located;
use super::interp::compile::{Compiled, Pc};
use super::machine::slots::bits;
use super::machine::{Env, peers};

/// Why a launch ended early, and where.
#[derive(Debug, Clone)]
pub struct Fault {
    pub cause: Cause,
    pub kernel: Arc<str>,
    pub block: [u32; 3],
    pub thread: [u32; 3],
    /// Others of its warp that were wrong in the same way by the same instruction; kept where accesses are checked to the byte.
    pub others: Vec<[u32; 3]>,
    /// The thread's call stack, innermost first; empty: no thread did it, the launch failed as a whole.
    pub stack: Vec<Site>,
    /// Where the address lies by the block's shared, local or parameter memory, if it is in one of them or near.
    pub place: Option<Place>,
    /// The module's variable of global or constant memory whose memory is nearest.
    pub variable: Option<(Arc<str>, u64, u64)>,
    /// The name, or the number, of what a stray access's address was made from.
    pub made: Option<MadeOf>,
    /// What a kernel did that is no instruction.
    pub note: Option<&'static str>,
}

/// What an address was made from, by what programs call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MadeOf {
    Variable(Arc<str>),
    /// A parameter's number.
    Parameter(usize),
}

/// Where a thread stands in one function of its call stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    pub function: Arc<str>,
    /// The PTX instruction as written, in one line, and its line in the text (0: not known).
    pub instruction: String,
    pub ptx_line: u32,
    pub origin: Origin,
    /// Calls in a row that stand at this place: recursion.
    pub times: usize,
    /// Calls left out between this one and the next.
    pub left_out: usize,
}

/// An address by a window of the block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Shared, local or param.
    pub space: Space,
    /// From the window's start: negative before it.
    pub offset: i64,
    /// Of the window: of local memory, one thread's.
    pub bytes: u64,
    /// The shared variable that holds the address, or the last one before it.
    pub variable: Option<SharedName>,
    pub whose: Whose,
    /// The address was in memory of the block's own, so in nobody's allocation, whoever has it by now.
    pub was_ours: bool,
}

/// Whose memory a place is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Own,
    /// Shared memory of another block of the cluster, by its rank.
    Peer {
        rank: u32,
        gone: bool,
    },
    /// Shared memory of a block of a rank that the cluster, of so many blocks, does not have.
    Nobody {
        rank: u32,
        blocks: u32,
    },
    /// Local memory of another thread of the block.
    Thread([u32; 3]),
}

impl Place {
    /// Whether the address is in the window, and not beside it.
    fn holds_it(&self) -> bool {
        u64::try_from(self.offset).is_ok_and(|offset| offset < self.bytes)
    }

    /// Bytes between the address and the window; 0 inside and on either side.
    pub fn distance(&self) -> u64 {
        match u64::try_from(self.offset) {
            Ok(offset) => offset.saturating_sub(self.bytes),
            Err(_) => self.offset.unsigned_abs(),
        }
    }
}

/// Sites that a fault keeps at either end of a long call stack.
const INNER: usize = 8;
const OUTER: usize = 4;

impl Fault {
    /// A launch that failed as a whole.
    pub fn of_launch(cause: Cause, kernel: &Arc<str>) -> Fault {
        Fault {
            cause,
            kernel: Arc::clone(kernel),
            block: [0; 3],
            thread: [0; 3],
            others: Vec::new(),
            stack: Vec::new(),
            place: None,
            variable: None,
            made: None,
            note: None,
        }
    }

    /// What a thread of a block did.
    pub(super) fn locate(located: &Located, env: &Env<'_>) -> Fault {
        let launch = env.env.launch();
        let thread = located.first_thread + located.fault.lane as u32;
        let cause = located.fault.cause.clone();
        Fault {
            block: env.ctaid,
            thread: coordinates(thread, launch.block),
            others: others(located, launch.block),
            stack: stack(&launch.code.module, located),
            place: place(&cause, thread, env),
            variable: variable(&cause, &launch.code.module),
            made: made_of(&cause, env),
            ..Fault::of_launch(cause, &env.env.kernel().name)
        }
    }
}

fn coordinates(thread: u32, [x, y, _]: [u32; 3]) -> [u32; 3] {
    [thread % x, thread / x % y, thread / x / y]
}

fn others(located: &Located, block: [u32; 3]) -> Vec<[u32; 3]> {
    // By whole pages some that are wrong pass for right, and their number would mislead.
    if !exact() {
        return Vec::new();
    }
    let first = located.first_thread + (located.fault.lane / WARP * WARP) as u32;
    bits(located.fault.others)
        .map(|lane| coordinates(first + lane as u32, block))
        .collect()
}

fn stack(module: &Module, located: &Located) -> Vec<Site> {
    let mut sites = sites(module, located);
    if let Cause::Stray { span: Some(span), .. } = located.fault.cause
        && let (Some(first), Some((exec, _))) = (sites.first_mut(), located.stack.first())
    {
        let (times, left_out) = (first.times, first.left_out);
        *first = Site {
            times,
            left_out,
            ..of_span(module, &exec.compiled.function, span)
        };
    }
    sites
}

fn sites(module: &Module, located: &Located) -> Vec<Site> {
    // Recursion stands at the same call many times over.
    let mut rows: Vec<(&Arc<Compiled>, Standing, usize)> = Vec::new();
    for (exec, pc) in &located.stack {
        for standing in standings(&exec.compiled, exec.pc_in_function(*pc)) {
            match rows.last_mut() {
                Some((code, last, times)) if Arc::ptr_eq(code, &exec.compiled) && *last == standing => *times += 1,
                _ => rows.push((&exec.compiled, standing, 1)),
            }
        }
    }
    let left_out = rows.len().saturating_sub(INNER + OUTER);
    let mut sites: Vec<Site> = Vec::new();
    for (index, (code, standing, times)) in rows.iter().enumerate() {
        if index < INNER || index >= INNER + left_out {
            sites.push(Site {
                times: *times,
                ..standing.site(module, code)
            });
        }
    }
    if left_out > 0 {
        sites[INNER - 1].left_out = rows[INNER..INNER + left_out].iter().map(|(_, _, times)| times).sum();
    }
    sites
}

/// Where a thread stands in a function: in the one whose code it is, or in another one that was inlined there.
#[derive(Clone, Copy, PartialEq)]
struct Standing {
    /// As [`Block::inlined`](crate::program::Block::inlined) counts; 0: the function itself.
    inlined: u32,
    span: Span,
}

/// The functions of one frame at an instruction, innermost first.
fn standings(compiled: &Compiled, pc: Pc) -> Vec<Standing> {
    let Some(instr) = compiled.code.get(pc as usize) else {
        let (inlined, span) = (0, Span::default());
        return vec![Standing { inlined, span }];
    };
    let innermost = Standing {
        inlined: instr.inlined,
        span: instr.span,
    };
    let outer = |standing: &Standing| {
        let into = &compiled.function.body.inlined[standing.inlined.checked_sub(1)? as usize];
        Some(Standing {
            inlined: into.within,
            span: into.call,
        })
    };
    std::iter::successors(Some(innermost), outer).collect()
}

impl Standing {
    fn site(&self, module: &Module, compiled: &Compiled) -> Site {
        let function = &compiled.function;
        match self
            .inlined
            .checked_sub(1)
            .map(|at| &function.body.inlined[at as usize])
        {
            None => of_span(module, function, self.span),
            Some(inlined) => {
                let entry = &module.functions[inlined.function as usize];
                in_text(
                    module,
                    (&entry.name, &inlined.source),
                    Some(inlined.function),
                    self.span,
                )
            }
        }
    }
}

/// Where an instruction stands in its source.
pub(super) fn site(module: &Module, compiled: &Compiled, pc: Pc) -> Site {
    standings(compiled, pc)[0].site(module, compiled)
}

fn of_span(module: &Module, function: &Arc<Function>, span: Span) -> Site {
    let lowered = |entry: &crate::program::FunctionEntry| match entry.lowered.get() {
        Some(Ok(found)) => Arc::ptr_eq(found, function),
        Some(Err(_)) | None => false,
    };
    let number = module.functions.iter().position(lowered);
    in_text(
        module,
        (&function.name, &function.source),
        number.map(|number| number as u32),
        span,
    )
}

fn in_text(module: &Module, (name, source): (&Arc<str>, &Source), number: Option<u32>, span: Span) -> Site {
    let (start, end) = (span.start as usize, span.end as usize);
    let instruction: Vec<&str> = source
        .text
        .get(start..end)
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    Site {
        function: Arc::clone(name),
        ptx_line: match (instruction.is_empty(), source.text.get(..start)) {
            (false, Some(before)) => before.matches('\n').count() as u32 + 1,
            (true, _) | (_, None) => 0,
        },
        instruction: instruction.join(" "),
        origin: number.map_or_else(Origin::default, |number| module.origin_of(number, span)),
        times: 1,
        left_out: 0,
    }
}

impl Site {
    /// An instruction of the module's function that lies at this address, by its place in the text.
    pub fn of_instruction(module: &Module, function: usize, span: Span) -> Site {
        let lowered = module
            .functions
            .iter()
            .filter_map(|entry| entry.lowered.get()?.as_ref().ok());
        match lowered
            .into_iter()
            .find(|lowered| Arc::as_ptr(lowered) as usize == function)
        {
            Some(lowered) => of_span(module, lowered, span),
            None => Site {
                function: "?".into(),
                instruction: String::new(),
                ptx_line: 0,
                origin: Origin::default(),
                times: 1,
                left_out: 0,
            },
        }
    }
}

/// The address that a cause names, and the space that it counts in.
fn address_of(cause: &Cause) -> Option<(u64, Space)> {
    match cause {
        Cause::IllegalAddress { address, space, .. } | Cause::Stray { address, space, .. } => Some((*address, *space)),
        Cause::Misaligned { address, .. } | Cause::HostMemoryGone { address } => Some((*address, Space::Generic)),
        Cause::IllegalInstruction { .. }
        | Cause::WrongFree { .. }
        | Cause::InvalidPc { .. }
        | Cause::StackOverflow { .. }
        | Cause::Trap
        | Cause::Texture { .. }
        | Cause::Misuse { .. }
        | Cause::TensorMemoryLeak { .. }
        | Cause::Assert
        | Cause::Timeout { .. }
        | Cause::Deadlock { .. }
        | Cause::OutOfMemory { .. }
        | Cause::Invalid { .. }
        | Cause::Defect { .. } => None,
    }
}

fn place(cause: &Cause, thread: u32, env: &Env<'_>) -> Option<Place> {
    let (address, space) = address_of(cause)?;
    let offset = address as i64;
    match space {
        Space::Shared => Some(shared_by_rank(address as u32, env)),
        Space::Local => Some(Place {
            space,
            offset,
            bytes: env.local_stride.into(),
            variable: None,
            whose: Whose::Own,
            was_ours: true,
        }),
        Space::Param => Some(Place {
            space,
            offset,
            bytes: env.param_bytes.into(),
            variable: None,
            whose: Whose::Own,
            was_ours: true,
        }),
        Space::Generic => nearest(address, thread, env),
        // What an instruction of another space just misses is no window.
        Space::Global | Space::Const => nearest(address, thread, env).filter(Place::holds_it),
    }
}

fn shared(offset: i64, env: &Env<'_>) -> Place {
    let names = env.env.launch().code.module.shared_names(env.env.kernel());
    let before = names.into_iter().rev().find(|name| i64::from(name.offset) <= offset);
    Place {
        space: Space::Shared,
        offset,
        bytes: env.shared_bytes.into(),
        variable: before,
        whose: Whose::Own,
        was_ours: true,
    }
}

/// An address of the shared space, in which other blocks of a cluster have their windows, too.
fn shared_by_rank(address: u32, env: &Env<'_>) -> Place {
    let rank = peers::rank_of(address);
    let blocks = env.peers;
    if rank == env.rank || blocks == 1 {
        // Just before the window, addresses are those that begin with ones.
        return shared(i64::from(address.wrapping_sub(env.shared_start()) as i32), env);
    }
    let gone = env.gone >> rank.min(31) & 1 == 1;
    Place {
        whose: match rank < blocks {
            true => Whose::Peer { rank, gone },
            false => Whose::Nobody { rank, blocks },
        },
        ..shared(i64::from(peers::address_in(address, 0)), env)
    }
}

/// The window that a generic address is in or next to.
fn nearest(address: u64, thread: u32, env: &Env<'_>) -> Option<Place> {
    let from = |start: u64| address.wrapping_sub(start) as i64;
    let stride = u64::from(env.local_stride);
    let in_local = address.wrapping_sub(env.local) < env.local_bytes;
    let threads = u64::from(env.env.launch().threads());
    // Nobody's memory lies between the threads': an address there is one thread's, and beyond them the last one's.
    let other = (from(env.local).max(0) as u64 / stride.max(1)).min(threads.saturating_sub(1));
    let own = env.local + u64::from(thread) * stride;
    let local = |thread: u64| Place {
        space: Space::Local,
        offset: from(env.local + thread * stride),
        bytes: stride,
        variable: None,
        whose: Whose::Thread(coordinates(thread as u32, env.env.launch().block)),
        was_ours: false,
    };
    let own = Place {
        offset: from(own),
        whose: Whose::Own,
        ..local(0)
    };
    let mut candidates = Vec::new();
    if env.shared_bytes > 0 {
        let windows = u64::from(env.peers) * peers::STRIDE;
        candidates.push(match u32::try_from(address.wrapping_sub(env.cluster_shared())) {
            Ok(at) if u64::from(at) < windows && env.peers > 1 => shared_by_rank(at, env),
            _ => shared(from(env.shared), env),
        });
    }
    if in_local && own.distance() > 0 {
        candidates.push(local(other));
    } else {
        candidates.push(own);
    }
    if env.param_bytes > 0 {
        candidates.push(Place {
            space: Space::Param,
            offset: from(env.param),
            bytes: env.param_bytes.into(),
            variable: None,
            whose: Whose::Own,
            was_ours: true,
        });
    }
    // Farther away than this, it was meant for something else.
    const NEAR: u64 = 1 << 20;
    candidates
        .into_iter()
        .filter(|place| place.distance() < NEAR)
        .min_by_key(Place::distance)
        .map(|place| Place {
            was_ours: env.own_memory().contains(&address),
            ..place
        })
}

/// What a stray access's address was made from.
fn made_of(cause: &Cause, env: &Env<'_>) -> Option<MadeOf> {
    let Cause::Stray { made, .. } = cause else {
        return None;
    };
    let launch = env.env.launch();
    let module = &launch.code.module;
    match *made {
        Made::Shared { offset, bytes, .. } => {
            let names = module.shared_names(env.env.kernel()).into_iter();
            let mut here = names.filter(|name| name.offset == offset);
            let whole = here.find(|name| name.bytes.is_none_or(|own| u64::from(own) == bytes));
            whole.map(|name| MadeOf::Variable(name.name))
        }
        Made::Parameter { offset, .. }
        | Made::Pointer {
            parameter: Some(offset),
            ..
        } => {
            let kernel = module.functions.get(launch.kernel as usize)?.kernel.as_ref()?;
            let holds = |&(start, bytes): &(u32, u32)| (start..start + bytes).contains(&offset);
            kernel.params.iter().position(holds).map(MadeOf::Parameter)
        }
        Made::Pointer {
            parameter: None,
            pointer,
        } => {
            let found = module.globals.iter().find(|global| global.address == pointer)?;
            Some(MadeOf::Variable(Arc::clone(&found.name)))
        }
        Made::Local { .. } | Made::Frames | Made::Tensor { .. } => None,
    }
}

/// The variable that holds an address, or the last one before it: name, start, bytes.
fn variable(cause: &Cause, module: &Module) -> Option<(Arc<str>, u64, u64)> {
    let (address, space) = address_of(cause)?;
    if !matches!(space, Space::Generic | Space::Global | Space::Const) {
        return None;
    }
    let before = module.globals.iter().filter(|global| global.address <= address);
    let last = before.max_by_key(|global| global.address)?;
    Some((Arc::clone(&last.name), last.address, last.bytes))
}
