//! What is said of a race.

use std::collections::HashMap;
use std::sync::Arc;

use crate::program::SharedName;
use crate::ptx::ast::Span;
use crate::simt::observe::Direction;
use crate::simt::{Launch, Site};

pub use super::ledger::Kind;

/// What would put two accesses in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Missing {
    /// Threads of one warp.
    Warp,
    /// Threads of one block.
    Barrier,
    /// Blocks of one cluster.
    Cluster,
    /// Blocks of one grid.
    Device,
    /// Both are strong, but one's scope leaves the other out.
    Scope,
    /// Both are strong, but not of the same bytes.
    Size,
    /// Nobody has waited for the end of the asynchronous operation that makes the first.
    Completion,
    /// They are in order, but the first is a generic write, and the second goes by the asynchronous proxy.
    ProxyFence,
    /// A plain read of what a compare-and-swap then compares.
    Guess,
    /// Two stores of one value.
    SameValue,
}

/// One of the two accesses.
#[derive(Clone, Debug)]
pub struct Party {
    pub kind: Kind,
    /// Made by an asynchronous operation that the thread has begun.
    pub operation: bool,
    pub site: Site,
    pub block: [u32; 3],
    /// `None`: one of several that were not told apart.
    pub thread: Option<[u32; 3]>,
}

/// Where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Global(u64),
    Shared {
        /// From the start of the block's shared memory.
        offset: u64,
        variable: Option<SharedName>,
    },
}

#[derive(Clone, Debug)]
pub struct Race {
    pub kernel: Arc<str>,
    pub place: Place,
    pub bytes: u32,
    pub first: Party,
    pub second: Party,
    pub missing: Missing,
    /// How many pairs of accesses of these two instructions were found.
    pub times: u64,
}

/// An access, before anybody wants to read of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub site: u32,
    pub kind: Kind,
    pub block: u32,
    pub thread: Option<u32>,
    pub operation: bool,
}

/// Races are one that are between the same two instructions, in either order, for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(u32, u32, Missing);

impl Key {
    pub fn of(first: &Side, second: &Side, missing: Missing) -> Key {
        Key(first.site.min(second.site), first.site.max(second.site), missing)
    }
}

pub(super) struct Found {
    pub first: Side,
    pub second: Side,
    pub address: u64,
    pub bytes: u32,
    /// Block in whose shared memory it is, and offset.
    pub shared: Option<(u32, u64)>,
    pub times: u64,
}

/// What was found, in the order of the text.
pub(super) fn races(
    found: HashMap<Key, Found>,
    launch: &Launch,
    blocks: &[[u32; 3]],
    sites: &[(usize, Span)],
) -> Vec<Race> {
    let module = &launch.code.module;
    let entry = &module.functions[launch.kernel as usize];
    let names = match entry.lowered.get() {
        Some(Ok(kernel)) if found.values().any(|found| found.shared.is_some()) => module.shared_names(kernel),
        Some(_) | None => Vec::new(),
    };
    let party = |side: &Side| {
        let (function, span) = sites[side.site as usize];
        let [x, y, _] = launch.block;
        Party {
            kind: side.kind,
            operation: side.operation,
            site: Site::of_instruction(module, function, span),
            block: blocks[side.block as usize],
            thread: side.thread.map(|thread| [thread % x, thread / x % y, thread / x / y]),
        }
    };
    let mut races: Vec<Race> = found
        .into_iter()
        .map(|(Key(_, _, missing), found)| Race {
            kernel: Arc::clone(&entry.name),
            place: match found.shared {
                None => Place::Global(found.address),
                Some((_, offset)) => Place::Shared {
                    offset,
                    variable: names
                        .iter()
                        .rev()
                        .find(|name| u64::from(name.offset) <= offset)
                        .cloned(),
                },
            },
            bytes: found.bytes,
            first: party(&found.first),
            second: party(&found.second),
            missing,
            times: found.times,
        })
        .collect();
    races.sort_by_cached_key(|race| (lines(race), [race.first.site.ptx_line, race.second.site.ptx_line]));
    // A compiler makes many instructions of one line.
    races.dedup_by(|next, race| {
        let is_same = lines(next) == lines(race);
        if is_same {
            race.times += next.times;
        }
        is_same
    });
    races
}

/// A line of a source, or of PTX where there is none, and what is done there.
type Line = (Option<Arc<str>>, u32, Direction);

/// Both lines, in order, and what is missing: what makes two reports one.
fn lines(race: &Race) -> ([Line; 2], Missing) {
    let line = |party: &Party| {
        let site = &party.site;
        match site.origin.lines.first() {
            Some(line) => (Some(Arc::clone(&line.file)), line.line, party.kind.direction),
            None => (None, site.ptx_line, party.kind.direction),
        }
    };
    let (one, other) = (line(&race.first), line(&race.second));
    let both = if one <= other { [one, other] } else { [other, one] };
    (both, race.missing)
}
