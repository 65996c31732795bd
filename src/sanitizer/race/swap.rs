//! Compare-and-swaps: what they have done is known only afterwards. Others may come meanwhile, so words and flags learn of each
//! beforehand as if it would write, and where it has not, and nobody has come, that is taken back.
//!
//! Who waits for a lock does that again and again. As long as what its lanes know and what the words know is the same, it comes to the
//! same, and is not worked out anew.

use crate::isa::lanes::WARP;
use crate::simt::observe::{Access, Atomic, Direction};

use super::access::Actor;
use super::block::{ASYNC, Block};
use super::clock::Writers;
use super::flags::{Before, For, Message, Over};
use super::ledger::{Entry, Keep, Kind, Ledger, Member, Reach, Swap};
use super::shadow::{Cursor, Touched};
use super::strong::{Observed, learn_of_writes};
use super::{Book, Detector, lanes};

/// What a warp's compare-and-swap has told of itself before it was done.
pub struct UnderWay {
    entry: u32,
    /// Of the ledger.
    generation: u32,
    /// How often what the warp's lanes know had changed by then.
    changes: u64,
    lanes: u32,
    addresses: [u64; WARP],
    words: Vec<Word>,
    /// If no lane has written anything, what became of each word.
    failures: Vec<Failure>,
    is_repeated: bool,
    flags: Vec<Said>,
    ends_the_step: bool,
}

/// A word, or part of one, that a lane touches.
#[derive(Clone, Copy)]
struct Word {
    lanes: u32,
    at: (u64, usize),
    before: Touched,
    after: Touched,
}

/// A word of lanes that have all failed: as it was, as it was meanwhile, and as they have left it.
struct Failure {
    at: (u64, usize),
    before: Touched,
    meanwhile: Touched,
    left: Touched,
}

/// What a lane says by a flag.
struct Said {
    lane: usize,
    before: Before,
    messages: Vec<(For, Message)>,
    /// The number of that write.
    write: Option<u64>,
}

impl UnderWay {
    pub fn new((entry, generation, changes): (u32, u32, u64), access: &Access<'_>) -> UnderWay {
        UnderWay {
            entry,
            generation,
            changes,
            lanes: access.lanes,
            addresses: *access.addresses,
            words: Vec::new(),
            failures: Vec::new(),
            is_repeated: false,
            flags: Vec::new(),
            ends_the_step: false,
        }
    }

    pub fn touched(&mut self, lanes: u32, at: (u64, usize), before: Touched, after: Touched) {
        self.words.push(Word {
            lanes,
            at,
            before,
            after,
        });
    }

    pub fn said(&mut self, lane: usize, before: Before, messages: Vec<(For, Message)>, write: Option<u64>) {
        self.flags.push(Said {
            lane,
            before,
            messages,
            write,
        });
    }

    /// Others may learn something by it.
    pub fn ends_the_step(&mut self) {
        self.ends_the_step = true;
    }

    /// Whether this is the same again, of lanes that know the same.
    fn is_repeated_by(&self, (entry, generation, changes): (u32, u32, u64), access: &Access<'_>) -> bool {
        (self.entry, self.generation, self.changes, self.lanes) == (entry, generation, changes, access.lanes)
            && lanes(access.lanes).all(|lane| self.addresses[lane] == access.addresses[lane])
    }

    /// Words are as they were when this failed, and become what they were meanwhile. `false`: one is not, and nothing changes.
    fn begin_again(&self, book: &Book) -> bool {
        let mut cursor = book.shadow.cursor();
        for (i, failure) in self.failures.iter().enumerate() {
            if !failure.turn(&mut cursor, failure.before, failure.meanwhile) {
                for failure in &self.failures[..=i] {
                    failure.turn(&mut cursor, failure.meanwhile, failure.before);
                }
                return false;
            }
        }
        true
    }

    /// Words become what they were when this had failed, but those to which somebody has come. Whether there is none.
    fn fail_again(&self, book: &Book) -> bool {
        let mut cursor = book.shadow.cursor();
        let failures = self.failures.iter();
        failures.fold(true, |all, failure| {
            failure.turn(&mut cursor, failure.meanwhile, failure.left) && all
        })
    }
}

impl Failure {
    /// The word turns from one state to another; `false`: somebody has come, or has split it.
    fn turn(&self, cursor: &mut Cursor<'_>, from: Touched, to: Touched) -> bool {
        let (address, bytes) = self.at;
        let mut is_whole = true;
        cursor.each(address, bytes as u64, |known, _, size| {
            is_whole &= size == bytes && *known == from;
            if *known == from {
                *known = to;
            }
        });
        is_whole
    }
}

impl Detector {
    /// Lanes do once more what has failed before, and nothing has changed since: words learn of it as they did then.
    pub(super) fn swaps_again(
        &self,
        block: &mut Block,
        book: &Book,
        (warp, entry): (usize, u32),
        access: &Access<'_>,
    ) -> bool {
        let own = &mut block.warps[warp];
        let now = (entry, book.generation, own.changes);
        let is_repeated = |failed: &mut Box<UnderWay>| failed.is_repeated_by(now, access);
        let Some(mut again) = own.failed.take_if(is_repeated) else {
            return false;
        };
        if !again.begin_again(book) {
            return false;
        }
        again.is_repeated = true;
        own.swap = Some(again);
        true
    }

    /// A compare-and-swap is done.
    pub(super) fn swapped(&self, block: &mut Block, book: &Book, warp: usize, access: &Access<'_>, atomic: Atomic) {
        let Some(mut swap) = block.warps[warp].swap.take() else {
            return;
        };
        let flags = std::mem::take(&mut swap.flags);
        let ends_the_step = std::mem::take(&mut swap.ends_the_step);
        // That all have written is what was said, but for how far it reaches.
        let is_as_said = atomic.failed == 0 && self.is_wide;
        let have_all_failed = atomic.failed & access.lanes == access.lanes;
        if !is_as_said && swap.generation == book.generation {
            let is_the_same = match std::mem::take(&mut swap.is_repeated) && have_all_failed {
                true => swap.fail_again(book),
                false => {
                    swap.failures = self.correct_words(block, book, warp, swap.entry, (&swap.words, atomic.failed));
                    have_all_failed && !swap.failures.is_empty()
                }
            };
            block.warps[warp].failed = is_the_same.then_some(swap);
        }
        let is_silent = !is_as_said && self.correct_flags(block, warp, access, (flags, atomic.failed));
        if ends_the_step && !is_silent {
            block.warps[warp].next_step();
        }
    }

    /// Words learn which lanes have written, and these what they have found. If none has written, and nobody has come, what has become
    /// of each.
    fn correct_words(
        &self,
        block: &mut Block,
        book: &Book,
        warp: usize,
        open: u32,
        (words, failed): (&[Word], u32),
    ) -> Vec<Failure> {
        let ledger = &book.ledger;
        let open = *ledger.entry(open);
        let mut enter = |swap: Swap| {
            let kind = Kind { swap, ..open.kind };
            let alike = (open.site, kind, open.operation, book.generation);
            let made = |step| ledger.enter(Entry { step, kind, ..open });
            block.warps[warp].entry(alike, made).map(|entry| (entry, kind))
        };
        let has_written = |word: &Word| word.lanes & failed == 0;
        let written = words.iter().any(has_written).then(|| enter(Swap::No)).flatten();
        let read = words
            .iter()
            .any(|word| !has_written(word))
            .then(|| enter(Swap::Failed))
            .flatten();
        if words
            .iter()
            .any(|word| if has_written(word) { written } else { read }.is_none())
        {
            // There is no room for them.
            return Vec::new();
        }
        let (mut observed, mut failures) = (Vec::new(), Vec::new());
        let mut is_alone = written.is_none();
        let mut cursor = book.shadow.cursor();
        for (i, first) in words.iter().enumerate() {
            let is_same = |word: &&Word| word.at == first.at;
            if words[..i].iter().any(|word| is_same(&word)) {
                continue;
            }
            let last = words.iter().rfind(is_same).unwrap_or(first);
            let of_word = || words.iter().filter(is_same);
            if of_word().all(has_written) && self.is_wide {
                continue;
            }
            let (address, bytes) = first.at;
            cursor.each(address, bytes as u64, |known, address, size| {
                if *known != last.after {
                    // Somebody has come who took it for a write.
                    is_alone = false;
                    return;
                }
                *known = first.before;
                for word in of_word() {
                    let has_failed = !has_written(word);
                    let Some((entry, kind)) = (if has_failed { read } else { written }) else {
                        continue;
                    };
                    let actor = Actor {
                        block,
                        warp,
                        entry,
                        kind,
                        operation: None,
                        proxy: ASYNC[0],
                    };
                    match has_failed {
                        true => {
                            let writers = self.found_by_read(&actor, ledger, known);
                            observed.push(Observed {
                                address,
                                lanes: word.lanes,
                                writers,
                            });
                            self.note_failed(&actor, ledger, word.lanes, address, known);
                        }
                        false => self.note_access(&actor, ledger, word.lanes, address, known),
                    }
                }
                is_alone &= size == bytes;
                failures.push(Failure {
                    at: first.at,
                    before: first.before,
                    meanwhile: last.after,
                    left: *known,
                });
            });
        }
        drop(cursor);
        learn_of_writes(block, warp, observed);
        if !is_alone {
            failures.clear();
        }
        failures
    }

    /// What one that has only read has found.
    fn found_by_read(&self, actor: &Actor<'_>, ledger: &Ledger, known: &Touched) -> Writers {
        let at = (actor.block.number, actor.block.cluster);
        let kind = Kind {
            direction: Direction::Read,
            ..actor.kind
        };
        let found = self.found_by(at, kind, ledger, known.writes).into_iter();
        Writers(
            found
                .map(|found| ledger.entry(found.number).writer(found.lanes))
                .collect(),
        )
    }

    /// Notes that a lane has read a word, and might have written it.
    fn note_failed(&self, actor: &Actor<'_>, ledger: &Ledger, lanes: u32, address: u64, known: &mut Touched) {
        let keep = |(entry, theirs): Member| {
            let entry = ledger.entry(entry);
            let is_unordered = self.unordered(actor, ledger, entry, (theirs, lanes), address).is_some();
            match () {
                () if is_unordered => Keep::Unordered,
                () if entry.kind.strong < actor.kind.strong => Keep::Weaker,
                () => Keep::No,
            }
        };
        known.writes = ledger.with_failed(known.writes, (actor.entry, lanes), keep);
    }

    /// Flags say what those lanes let others know that have written. Whether none has.
    fn correct_flags(
        &self,
        block: &mut Block,
        warp: usize,
        access: &Access<'_>,
        (mut said, failed): (Vec<Said>, u32),
    ) -> bool {
        let reach = Kind::of(access).strong.unwrap_or(Reach::Block);
        let at = (block.number, block.cluster);
        let told = (reach, reach.number(at));
        let mut is_silent = true;
        let mut flags = self.flags.lock();
        while let Some(first) = said.first() {
            let address = access.addresses[first.lane];
            let (own, others): (Vec<Said>, Vec<Said>) = said
                .into_iter()
                .partition(|said| access.addresses[said.lane] == address);
            said = others;
            if own.last().is_some_and(|last| flags.last_write(address) != last.write) {
                // Somebody has come who took it for a write.
                is_silent = false;
                continue;
            }
            let mut written = Vec::new();
            for Said {
                lane, before, messages, ..
            } in own.into_iter().rev()
            {
                if matches!(before, Before::Whole(_)) {
                    block.warps[warp].told[lane] = None;
                }
                flags.restore(address, before);
                if failed >> lane & 1 == 0 {
                    written.push((lane, messages));
                }
            }
            for (lane, messages) in written.into_iter().rev() {
                is_silent = false;
                flags.written(address, ((at.0, warp, lane), at.1), told, Over::GoesOn, messages);
            }
        }
        is_silent
    }
}
