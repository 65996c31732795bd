//! What is said of a value that nobody has written: what depends on it, and where it comes from.

use std::collections::HashMap;
use std::sync::Arc;

use super::origin::Loaded;
use super::{identity, is_local};
use crate::program::{Decision, SharedName};
use crate::ptx::ast::Span;
use crate::simt::observe::{Who, cell_of};
use crate::simt::{Launch, Site};

/// Where the value was loaded from.
#[derive(Clone, Debug)]
pub enum Place {
    /// By its address.
    Global(u64),
    Shared {
        offset: u64,
        /// The variable that holds it, or the last one before it.
        variable: Option<SharedName>,
    },
    /// A thread's own memory.
    Local,
    /// A cell of tensor memory.
    Tensor { lane: u32, column: u32 },
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    pub place: Place,
    /// Bytes there that nobody has written.
    pub bytes: u64,
    pub site: Site,
    /// Another thread has loaded it, which has passed it on.
    pub by_another: bool,
}

#[derive(Clone, Debug)]
pub struct Uninitialised {
    pub kernel: Arc<str>,
    pub decision: Decision,
    pub site: Site,
    pub block: [u32; 3],
    pub thread: [u32; 3],
    /// `None`: a register that was not written before.
    pub origin: Option<Origin>,
    /// In how many threads, or how often in one.
    pub times: u64,
}

/// What makes two findings one: an instruction, and in which way it depends on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    function: usize,
    span: Span,
    decision: Decision,
}

impl Key {
    pub fn of(by: &Who<'_>, decision: Decision) -> Key {
        Key {
            function: identity(by.function),
            span: by.span,
            decision,
        }
    }
}

pub struct Found {
    pub block: [u32; 3],
    pub thread: u32,
    pub loaded: Option<Loaded>,
    /// Its offset in the block's shared memory.
    pub shared: Option<u64>,
    pub times: u64,
}

impl Found {
    /// Whether it is of a block and thread that come before these: those that are reported are the first.
    pub fn is_before(&self, block: [u32; 3], thread: u32) -> bool {
        let order = |[x, y, z]: [u32; 3], thread: u32| (z, y, x, thread);
        order(self.block, self.thread) <= order(block, thread)
    }
}

/// What was found, in the order of the text.
pub fn all(found: HashMap<Key, Found>, launch: &Launch) -> Vec<Uninitialised> {
    let module = &launch.code.module;
    let entry = &module.functions[launch.kernel as usize];
    let names = match entry.lowered.get() {
        Some(Ok(kernel)) if found.values().any(|found| found.shared.is_some()) => module.shared_names(kernel),
        Some(_) | None => Vec::new(),
    };
    let [x, y, _] = launch.block;
    let mut all: Vec<Uninitialised> = found
        .into_iter()
        .map(|(key, found)| Uninitialised {
            kernel: Arc::clone(&entry.name),
            decision: key.decision,
            site: Site::of_instruction(module, key.function, key.span),
            block: found.block,
            thread: [found.thread % x, found.thread / x % y, found.thread / x / y],
            origin: found.loaded.map(|loaded| Origin {
                by_another: (loaded.block, loaded.thread) != (found.block, found.thread),
                place: match (found.shared, cell_of(loaded.address)) {
                    (None, Some((lane, column))) => Place::Tensor { lane, column },
                    (Some(offset), _) => Place::Shared {
                        offset,
                        variable: names
                            .iter()
                            .rev()
                            .find(|name| u64::from(name.offset) <= offset)
                            .cloned(),
                    },
                    (None, None) if is_local(loaded.space) => Place::Local,
                    (None, None) => Place::Global(loaded.address),
                },
                bytes: loaded.bytes,
                site: Site::of_instruction(module, loaded.line.0, loaded.line.1),
            }),
            times: found.times,
        })
        .collect();
    all.sort_by_cached_key(|one| (line(one), one.site.ptx_line));
    // A compiler makes many instructions of one line.
    all.dedup_by(|next, one| {
        let is_same = line(next) == line(one);
        if is_same {
            one.times += next.times;
        }
        is_same
    });
    all
}

/// A line of a source, or of PTX where there is none, and what depends there.
fn line(one: &Uninitialised) -> (Option<Arc<str>>, u32, Decision) {
    match one.site.origin.lines.first() {
        Some(line) => (Some(Arc::clone(&line.file)), line.line, one.decision),
        None => (None, one.site.ptx_line, one.decision),
    }
}
