//! The second tier: code of the CPU's vectors for one warp, made by LLVM.
//!
//! It makes the interpreter quicker and takes nothing away from it. Compiled code works on the interpreter's windows and
//! fragments: lanes that stand at one place *enter* it, run as far as it goes, and *leave* it at places that the interpreter
//! knows, with their registers back in the window. What code does not do itself (barriers, calls, whatever may wait) is
//! such a place; what it does rarely, the interpreter's operations do for it on the spot ([`context::Context::step`]).
//!
//! ```text
//! plan/       where code is cut, which registers are one number a warp, who is elsewhere meanwhile
//! emit/       flow, registers, accesses as LLVM's text   text.rs     names, types, constants
//! compute.rs  operations that LLVM has instructions for  convert.rs  conversions
//! context.rs  what code and interpreter hand each other  library.rs  the compiler, a library of its own
//! object.rs   its objects, loaded                        cache.rs    and kept on disk
//! moves.rs    registers on their way in and out          worker.rs  the thread that compiles
//! unit.rs     the single-precision function unit         half.rs    arithmetic on halves
//! seen.rs     what branches have been seen to do       compared.rs comparisons of integers
//! compare.rs  `set` and `setp`                         integers.rs fields of bits, carries, parts of registers
//! narrow.rs   formats of eight and fewer bits
//! ```
//!
//! Knowledge goes to the representation and to the operations; nothing here knows the interpreter, which brings the places
//! of its code and of its registers ([`Input`]).

mod cache;
mod compare;
mod compared;
mod compute;
pub mod context;
mod convert;
mod directed;
mod emit;
mod half;
mod integers;
mod library;
pub mod moves;
mod narrow;
mod object;
mod plan;
mod seen;
mod text;
mod unit;
mod worker;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Once, OnceLock};

use crate::isa::Level;
use crate::isa::joint::matrix::Multiply;
use context::{Entry, LaneCall, Stretch};
use library::{Emit, Library};
use moves::Stand;
use object::Code;
use plan::Plan;

pub use context::AROUND;
pub use emit::{For, Input, part_lanes};
pub use plan::{Pc, Rows, warm_instructions};
pub use seen::{JUMPED, PARTED, PASSED, Seen, Ways};
pub use worker::later;

/// What a turn of a loop costs that looks at what others change; the interpreter counts the same.
pub const SPIN: i64 = 1 << 17;
/// So many instructions since the last such turn, and the loop works: it takes the next row of a list that blocks share, say. It pays
/// for the instructions alone.
pub const WORK: i64 = 1 << 12;

/// LLVM's level of code generation. Two gains nothing on such code.
const OPTIMISE: u32 = 1;
/// Values out of memory, the same ones once, out of loops: what the other passes of LLVM's O1 find besides is not worth
/// their time.
const PASSES: &str = "function(mem2reg,early-cse<memssa>,simplifycfg,loop-mssa(licm),early-cse,simplifycfg)";

/// Bodies of which more text would be made are left to the interpreter. What serves warps that lack lanes is worth less: there is one
/// in a block, as a rule, and it is compiled while that waits.
const fn most_text(whom: For) -> usize {
    match whom {
        For::All => 12 << 20,
        For::Some => 8 << 20,
    }
}

/// Code of a function, for one warp of blocks whose rows lie in one way.
pub struct Native {
    /// It holds the memory in which `run` lies.
    _code: Code,
    pub run: Entry,
    pub calls: Box<[LaneCall]>,
    /// The number of the entry at each place of the interpreter's code, and whether lanes may enter there of which some
    /// are missing.
    entries: Box<[Option<(u32, bool)>]>,
    /// The last place from which lanes go back to each; 0: no loop begins there.
    loops: Box<[Pc]>,
    /// The next place with an entry behind each.
    next: Box<[Pc]>,
    /// Up to each place, one more than the last one with an entry; 0: there is none.
    before: Box<[Pc]>,
    /// Bytes that an access reaches from its address, or all of those that are checked together, by site.
    pub sites: Box<[u64]>,
    pub stretches: Box<[Stretch]>,
    /// Products of matrices whose operands are in registers.
    pub products: Box<[Multiply]>,
    /// What moves when lanes come in or leave, by unit.
    pub stands: Box<[Stand]>,
    /// Bytes that the registers of a warp take in [`context::Warp::saved`]: a multiple of 64.
    pub saved: usize,
    /// Values that are the same in the block are looked for in each warp's window, and not in the first one's alone.
    pub looks_at_block: bool,
    pub rows: Rows,
    /// No other code has had it: what is remembered of code is found by it.
    pub id: u64,
}

/// What [`Native::id`] was given last.
static LAST: AtomicU64 = AtomicU64::new(0);

// SAFETY: calls are pointers to functions and numbers; code is not written to once it is loaded.
unsafe impl Send for Native {}
// SAFETY: through `&` it is read and run, which code may be by any number of threads: what it writes to is its caller's.
unsafe impl Sync for Native {}

impl Native {
    /// The entry at a place of the interpreter's code, and whether lanes may enter there of which some are missing.
    #[inline(always)]
    pub fn entry(&self, pc: Pc) -> Option<(u32, bool)> {
        self.entries.get(pc as usize).copied().flatten()
    }

    /// Whether a loop begins at a place of the interpreter's code and ends before `limit`.
    #[inline(always)]
    pub fn turns_before(&self, pc: Pc, limit: Pc) -> bool {
        self.loops.get(pc as usize).is_some_and(|&end| end != 0 && end < limit)
    }

    /// The first place behind `pc` where there is one.
    #[inline(always)]
    pub fn next_entry(&self, pc: Pc) -> Pc {
        self.next.get(pc as usize).copied().unwrap_or(Pc::MAX)
    }

    /// One more than the last place up to `pc` where there is one; 0: there is none. Who jumps back to before that comes to it again.
    #[inline(always)]
    pub fn behind_entry(&self, pc: Pc) -> Pc {
        let behind_all = self.entries.len() as Pc;
        self.before.get(pc as usize).copied().unwrap_or(behind_all)
    }
}

/// The compiler's version.
///
/// # Errors
/// There is none, and why: everything is interpreted.
pub fn compiler() -> Result<&'static str, &'static str> {
    Library::get().map(Library::version)
}

/// The first kernel of which no code could be made though it is compiled, and why.
static DEFECT: OnceLock<String> = OnceLock::new();

/// No code was made of a text that was given to LLVM: memory is short, or the text is a defect of ours. The interpreter hides
/// that, so it is logged, and the first one is remembered, for tests.
fn defect(name: &str, why: String) -> String {
    tracing::warn!(
        kernel = name,
        why,
        "LLVM made no code of a kernel, which is interpreted"
    );
    let _ = DEFECT.set(format!("{name}: {why}"));
    why
}

/// The first kernel of this process of which LLVM made no code though it was given to it, and why. Where there is memory enough,
/// there should be none.
pub fn compiler_defect() -> Option<&'static str> {
    DEFECT.get().map(String::as_str)
}

/// How the rows of a block of this shape lie in warps.
pub fn rows(block: [u32; 3]) -> Rows {
    Rows::of(block, part_lanes(Level::current()))
}

fn planned(input: &Input<'_>, rows: Rows, level: Level) -> Result<Plan, plan::Refusal> {
    Plan::of(input.body, input.starts, (rows, part_lanes(level)), input.seen)
}

/// The text that is made of a body for a level of the CPU, for people.
///
/// # Errors
/// The body is left to the interpreter, and why.
pub fn text(input: &Input<'_>, rows: Rows, whom: For, level: Level) -> Result<String, &'static str> {
    Ok(emit::emit(input, &planned(input, rows, level)?, level, whom).ir)
}

/// The assembly that becomes of it.
///
/// # Errors
/// As for [`text`], or there is no compiler.
pub fn assembly(input: &Input<'_>, rows: Rows, whom: For, level: Level) -> Result<String, String> {
    let text = text(input, rows, whom, level)?;
    let features = emit::features(level);
    let made = Library::get()?.compile_with(&text, features, PASSES, OPTIMISE, Emit::Assembly)?;
    Ok(String::from_utf8_lossy(&made).into_owned())
}

/// What may be done for code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// To take it from the cache.
    Recall,
    Compile,
}

/// Compiles a body.
///
/// # Errors
/// It is left to the interpreter: there is no compiler, it refuses, or the body is not for it; or it is not in the cache, and nothing else may be done.
pub fn make(name: &str, input: &Input<'_>, rows: Rows, whom: For, effort: Effort) -> Result<Native, String> {
    let level = Level::current();
    let made = emit::emit(input, &planned(input, rows, level)?, level, whom);
    if made.ir.len() > most_text(whom) {
        return Err(format!(
            "{} bytes of LLVM's text would take long to compile",
            made.ir.len()
        ));
    }
    let library = Library::get().inspect_err(|why| {
        static SAID: Once = Once::new();
        SAID.call_once(|| tracing::info!("kernels are interpreted: {why}"));
    })?;
    let began = std::time::Instant::now();
    let features = emit::features(level);
    let options = format!("{features} {PASSES} {OPTIMISE}");
    let key = cache::key(&[library.version().as_bytes(), options.as_bytes(), made.ir.as_bytes()]);
    let (object, kept) = match cache::get(&key) {
        Some(object) => (object, true),
        None if effort == Effort::Recall => return Err("it is not in the cache".into()),
        None => {
            let object = library.compile_with(&made.ir, features, PASSES, OPTIMISE, Emit::Object);
            let object = object.map_err(|why| defect(name, why))?;
            cache::put(&key, &object);
            (object, false)
        }
    };
    let code = Code::load(&object, outside).map_err(|why| defect(name, why))?;
    let run = code.symbol(emit::NAME);
    let run = run.ok_or_else(|| defect(name, "its code is missing".to_owned()))?;
    // SAFETY: the function that the emitter has made under this name has this type.
    let run = unsafe { std::mem::transmute::<*const u8, Entry>(run) };
    tracing::debug!(kernel = name, ?whom, kept, text = made.ir.len(), bytes = code.bytes(), elapsed = ?began.elapsed(), "compiled");
    let places = made.entries.iter().map(|&(pc, _)| pc as usize + 1).max().unwrap_or(0);
    let mut entries = vec![None; places];
    for &(pc, number) in &made.entries {
        // Of units at one place the first one leads to the others.
        entries[pc as usize].get_or_insert((number, made.masked.contains(&number)));
    }
    let mut loops = vec![0; places];
    for &(head, end) in &made.loops {
        if let Some(last) = loops.get_mut(head as usize) {
            *last = end.max(*last);
        }
    }
    let mut next = vec![Pc::MAX; places];
    let mut last = Pc::MAX;
    for pc in (0..places).rev() {
        next[pc] = last;
        if entries[pc].is_some() {
            last = pc as Pc;
        }
    }
    let mut before = vec![0; places];
    let mut last = 0;
    for pc in 0..places {
        if entries[pc].is_some() {
            last = pc as Pc + 1;
        }
        before[pc] = last;
    }
    Ok(Native {
        _code: code,
        run,
        calls: made.calls.into(),
        entries: entries.into(),
        loops: loops.into(),
        next: next.into(),
        before: before.into(),
        sites: made.sites.into(),
        stretches: made.stretches.into(),
        products: made.products.into(),
        stands: made.stands.into(),
        saved: made.saved,
        looks_at_block: made.looks_at_block,
        rows,
        id: LAST.fetch_add(1, Ordering::Relaxed) + 1,
    })
}

/// Whether code is kept for other processes.
pub fn has_cache() -> bool {
    cache::is_there()
}

/// What processes before this one have seen of a function with so many blocks, if they have made code of it. `function`: what tells it from
/// others.
pub fn remembered(function: &[&[u8]], blocks: usize) -> Option<Seen> {
    Seen::from_bytes(&cache::get(&ways_of(function))?, blocks)
}

/// Has those to come know of what of a function code was made.
pub fn remember(function: &[&[u8]], seen: &Seen) {
    cache::put(&ways_of(function), seen.bytes());
}

fn ways_of(function: &[&[u8]]) -> cache::Key {
    cache::key(&[&[b"ways".as_slice()], function].concat())
}

/// What code calls besides its context's helpers: the little that LLVM makes calls of by itself.
fn outside(name: &str) -> Option<*const u8> {
    let address = match name {
        "memcpy" => libc::memcpy as *const u8,
        "memset" => libc::memset as *const u8,
        "memmove" => libc::memmove as *const u8,
        _ => return None,
    };
    Some(address)
}
