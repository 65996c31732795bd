//! Places by which threads let others know: words that are written with release patterns, and mbarriers.

use std::collections::HashMap;
use std::sync::Arc;

use super::clock::{Clock, Step};
use super::ledger::Reach;

/// What a thread lets others know: what lies before, and what of it the asynchronous proxy sees in global and in shared memory.
#[derive(Clone, Default)]
pub struct Message {
    pub clock: Clock,
    pub asynchronous: [Clock; 2],
}

impl Message {
    pub fn join(&mut self, other: &Message) {
        self.clock.join(&other.clock);
        for (own, other) in self.asynchronous.iter_mut().zip(&other.asynchronous) {
            own.join(other);
        }
    }

    /// The other adds nothing.
    fn covers(&self, other: &Message) -> bool {
        let mut both = self.clone();
        both.join(other);
        both.is_same(self)
    }

    fn is_same(&self, other: &Message) -> bool {
        let mut both = self.asynchronous.iter().zip(&other.asynchronous);
        self.clock.is_same(&other.clock) && both.all(|(own, other)| own.is_same(other))
    }
}

/// Whom a message is for: those within a reach of who left it, whose block or cluster has this number.
pub type For = (Reach, u32);

/// A thread, by its block, warp and lane.
pub type Thread = (u32, usize, usize);

#[derive(Clone)]
struct Left {
    whom: For,
    /// How far the write reaches that bears it.
    told: For,
    /// `None`: several.
    by: Option<Thread>,
    message: Message,
}

/// Whether a thread of this block and cluster is meant.
fn is_meant((whom, number): For, at: (u32, u32)) -> bool {
    whom.number(at) == number
}

/// When a flag changed last, and who wrote it, as far as a reader with a reach has to know.
pub type FlagState = (u64, (u32, Reach));

/// Messages that one word keeps at most; those of the last to come stay.
const MOST: usize = 16;

/// Words that hold a message for those who read them (PTX ISA, Memory Consistency Model: Synchronizes Ordering).
#[derive(Default)]
pub struct Flags {
    /// Flags that are the same pointer say the same.
    flags: HashMap<u64, Arc<Flag>>,
    /// How often one has changed.
    changes: u64,
    /// How often one was written.
    writes: u64,
}

/// What a write makes of what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Something else.
    New,
    /// It goes on with it.
    GoesOn,
    /// A compare-and-swap: it goes on with it, or is no write.
    MayGoOn,
}

/// A flag as it was before a compare-and-swap of which nobody knows yet whether it writes.
#[derive(Clone)]
pub enum Before {
    /// It says the same now: who wrote it last.
    Last((u32, u32)),
    /// `None`: it was none.
    Whole(Option<Arc<Flag>>),
}

impl Before {
    pub fn is_some_flag(&self) -> bool {
        !matches!(self, Before::Whole(None))
    }
}

#[derive(Clone, Default)]
pub struct Flag {
    /// Block and cluster of who wrote last.
    last: (u32, u32),
    left: Vec<Left>,
    /// When it changed last.
    version: u64,
    /// The number of the last write.
    write: u64,
}

impl Flags {
    /// A thread, of a cluster, writes something; `told`: how far that reaches.
    /// Whether somebody may learn something by it that he could not before.
    pub fn written(
        &mut self,
        address: u64,
        (by, cluster): (Thread, u32),
        told: For,
        over: Over,
        messages: Vec<(For, Message)>,
    ) -> bool {
        if messages.is_empty() && !self.flags.contains_key(&address) {
            return false;
        }
        let flag = Arc::make_mut(self.flags.entry(address).or_default());
        let mut is_new = false;
        let at = (by.0, cluster);
        let last = std::mem::replace(&mut flag.last, at);
        self.writes += 1;
        flag.write = self.writes;
        let before = flag.left.len();
        match over {
            // Its write bears what it has found: nothing if it and the last one are not strong for each other.
            Over::GoesOn => {
                let has_found = is_meant(told, last);
                flag.left.retain(|left| has_found && is_meant(left.told, at));
            }
            // Whoever is not reached by it may find what it has left as it was.
            Over::MayGoOn => {
                for left in flag.left.iter_mut().filter(|left| is_meant(left.told, at)) {
                    is_new |= told.0 > left.told.0;
                    left.told = if told.0 > left.told.0 { told } else { left.told };
                }
            }
            // Who has released by this word goes on doing so (PTX ISA, Release and Acquire Patterns: the second form).
            Over::New => flag.left.retain(|left| left.by == Some(by)),
        }
        if over != Over::MayGoOn {
            for left in &mut flag.left {
                is_new |= left.told != told;
                left.told = told;
            }
        }
        is_new |= flag.left.len() != before;
        let mut says_more = false;
        for (whom, message) in messages {
            let left = Left {
                whom,
                told,
                by: Some(by),
                message,
            };
            says_more |= leave(&mut flag.left, left);
        }
        if is_new || says_more {
            self.changes += 1;
            flag.version = self.changes;
        }
        if flag.left.is_empty() {
            self.flags.remove(&address);
        }
        says_more
    }

    /// When what a flag says changed last, if there is one.
    pub fn version(&self, address: u64) -> Option<u64> {
        Some(self.flags.get(&address)?.version)
    }

    /// What somebody learns who reads a flag with this reach depends on this alone, and on who he is.
    pub fn state(&self, address: u64, reach: Reach) -> Option<FlagState> {
        let flag = self.flags.get(&address)?;
        let last = (reach.number(flag.last), reach);
        Some((flag.version, last))
    }

    /// A thread of this block and cluster writes something that goes on what was there, and says nothing that it has not said.
    pub fn repeated(&mut self, address: u64, by: (u32, u32)) {
        if let Some(flag) = self.flags.get_mut(&address).map(Arc::make_mut) {
            self.writes += 1;
            flag.write = self.writes;
            flag.last = by;
        }
    }

    /// A flag as it is; `says_the_same`: it will be so behind what comes now, but for who wrote it.
    pub fn before(&self, address: u64, says_the_same: bool) -> Before {
        match self.flags.get(&address) {
            Some(flag) if says_the_same => Before::Last(flag.last),
            flag => Before::Whole(flag.cloned()),
        }
    }

    /// The number of the last write of a flag, if there is one.
    pub fn last_write(&self, address: u64) -> Option<u64> {
        Some(self.flags.get(&address)?.write)
    }

    /// What was written has not been.
    pub fn restore(&mut self, address: u64, before: Before) {
        match before {
            Before::Last(last) => {
                if let Some(flag) = self.flags.get_mut(&address).map(Arc::make_mut) {
                    flag.last = last;
                }
            }
            Before::Whole(flag) => self.put(address, flag),
        }
    }

    /// What a word is as a flag.
    pub fn get(&self, address: u64) -> Option<&Arc<Flag>> {
        self.flags.get(&address)
    }

    fn put(&mut self, address: u64, flag: Option<Arc<Flag>>) {
        match flag {
            Some(flag) => self.flags.insert(address, flag),
            None => self.flags.remove(&address),
        };
    }

    /// A flag turns from one state to another; `false`: it is in a third, and stays.
    pub fn turn(&mut self, address: u64, from: Option<&Arc<Flag>>, to: Option<&Arc<Flag>>) -> bool {
        let is_there = match (self.get(address), from) {
            (Some(own), Some(from)) => Arc::ptr_eq(own, from),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_there {
            self.put(address, to.cloned());
        }
        is_there
    }

    /// Shows what somebody learns who reads with this reach, and how far who left it reaches; he is of the block and of the cluster
    /// of these numbers.
    pub fn read(&self, address: u64, reach: Reach, at: (u32, u32), mut learn: impl FnMut(Reach, &Message)) {
        let Some(flag) = self.flags.get(&address) else { return };
        if reach.number(flag.last) != reach.number(at) {
            return;
        }
        for left in &flag.left {
            if is_meant(left.whom, at) && is_meant(left.told, at) {
                learn(left.whom.0, &left.message);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.flags.is_empty()
    }

    pub fn forget(&mut self, from: u64, to: u64) {
        self.flags.retain(|address, _| !(from..to).contains(address));
    }
}

/// Adds a message, and says whether it says more than what was there. What two threads have left for the same is told apart, what
/// more have is not.
fn leave(flag: &mut Vec<Left>, new: Left) -> bool {
    let is_for_same = |left: &Left| (left.whom, left.told) == (new.whom, new.told);
    if let Some(left) = flag.iter_mut().find(|left| is_for_same(left) && left.by == new.by) {
        let before = left.message.clone();
        left.message.join(&new.message);
        return !before.is_same(&left.message);
    }
    let is_one = |left: &Left| is_for_same(left) && left.by.is_some();
    if flag.iter().filter(|left| is_one(left)).count() >= 2
        && let Some(first) = flag.iter().position(is_one)
    {
        let old = flag.remove(first);
        match flag.iter_mut().find(|left| is_for_same(left) && left.by.is_none()) {
            Some(several) => several.message.join(&old.message),
            None => flag.push(Left { by: None, ..old }),
        }
    }
    // What several have left may say it already.
    let is_several = |left: &Left| is_for_same(left) && left.by.is_none();
    let mut says_more = !flag
        .iter()
        .any(|left| is_several(left) && left.message.covers(&new.message));
    if flag.len() >= MOST {
        let near = flag.iter().position(|left| left.whom.0 != Reach::Device);
        flag.remove(near.unwrap_or(0));
        says_more = true;
    }
    flag.push(new);
    says_more
}

/// An mbarrier: what those know who have come in the current phase, and in those that are over.
#[derive(Default)]
struct Mbarrier {
    parity: bool,
    /// Phases that have ended at this address.
    over: Step,
    pending: Message,
    known: Message,
}

#[derive(Default)]
pub struct Mbarriers(HashMap<u64, Mbarrier>);

impl Mbarriers {
    /// A new object; its phases go on counting where another's ended.
    pub fn begin(&mut self, address: u64) {
        let old = self.0.remove(&address);
        let over = old.map_or(0, |old| old.over + 1);
        self.0.insert(
            address,
            Mbarrier {
                over,
                ..Mbarrier::default()
            },
        );
    }

    /// The number of the current phase.
    pub fn phase(&mut self, address: u64) -> Step {
        self.0.entry(address).or_default().over + 1
    }

    /// Somebody is about to come to the current phase.
    pub fn arrive(&mut self, address: u64, message: &Message) {
        self.0.entry(address).or_default().pending.join(message);
    }

    /// The object has this parity: what somebody learns who finds a phase over.
    pub fn look(&mut self, address: u64, parity: bool) -> &Message {
        let own = self.0.entry(address).or_default();
        own.see(address, parity);
        &own.known
    }

    pub fn forget(&mut self, from: u64, to: u64) {
        for (_, own) in self.0.iter_mut().filter(|(address, _)| (from..to).contains(address)) {
            (own.pending, own.known) = Default::default();
        }
    }
}

impl Mbarrier {
    fn see(&mut self, address: u64, parity: bool) {
        if self.parity == parity {
            return;
        }
        (self.parity, self.over) = (parity, self.over + 1);
        let pending = std::mem::take(&mut self.pending);
        self.known.join(&pending);
        self.known.clock.phases.insert(address, self.over);
    }
}
