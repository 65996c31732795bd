//! Compare-and-swaps: what they have done is known only afterwards. Others may come meanwhile, so words and flags learn of each
//! beforehand as if it would write, and where it has not, and nobody has come, that is taken back.
//!
//! Who waits for a lock does that again and again. As long as what its lanes know and what the words know is the same, it comes to the
//! same, and is not worked out anew.

use std::sync::Arc;

use crate::isa::lanes::WARP;
use crate::simt::observe::{Access, Atomic, Direction};

use super::access::Actor;
use super::block::{ASYNC, Block};
use super::clock::Writers;
use super::flags::{Before, Flag, Flags, For, Message, Over};
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
    /// Likewise, what became of each flag, if that can be repeated.
    silences: Option<Vec<Silence>>,
    is_said_again: bool,
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

/// A flag of such lanes: as it was, and as it was meanwhile.
struct Silence {
    address: u64,
    before: Option<Arc<Flag>>,
    meanwhile: Option<Arc<Flag>>,
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
            silences: None,
            is_said_again: false,
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

    /// Where words are as they were, flags may be, too, and say what they said then. `false`: what lanes say is to be worked out anew.
    pub fn says_again(&mut self, flags: &mut Flags) -> bool {
        if !self.is_repeated {
            return false;
        }
        let silences = self.silences.take().filter(|silences| {
            let ends = silences.iter().position(|silence| !silence.begin_again(flags));
            if let Some(end) = ends {
                silences[..end].iter().for_each(|silence| {
                    silence.end_again(flags);
                });
            }
            ends.is_none()
        });
        self.is_said_again = silences.is_some();
        self.silences = silences;
        if !self.is_said_again {
            self.flags.clear();
            self.ends_the_step = false;
        }
        self.is_said_again
    }

    /// Flags say what they said before, but those to which somebody has come. Whether there is none.
    fn is_silent_again(&mut self, flags: &mut Flags) -> bool {
        let silences = self.silences.iter().flatten();
        // Each is to have its turn.
        let is_silent = silences.filter(|silence| !silence.end_again(flags)).count() == 0;
        if !is_silent {
            self.silences = None;
        }
        is_silent
    }

    /// Words become what they were when this had failed, but those to which somebody has come. Whether there is none.
    fn fail_again(&self, book: &Book) -> bool {
        let mut cursor = book.shadow.cursor();
        let has_come = |failure: &&Failure| !failure.turn(&mut cursor, failure.meanwhile, failure.left);
        self.failures.iter().filter(has_come).count() == 0
    }
}

impl Silence {
    fn begin_again(&self, flags: &mut Flags) -> bool {
        flags.turn(self.address, self.before.as_ref(), self.meanwhile.as_ref())
    }

    fn end_again(&self, flags: &mut Flags) -> bool {
        // Where nothing was said nothing is taken back, whoever has come.
        let is_nothing = self.before.is_none() && self.meanwhile.is_none();
        is_nothing || flags.turn(self.address, self.meanwhile.as_ref(), self.before.as_ref())
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
        let is_repeated = std::mem::take(&mut swap.is_repeated);
        let is_said_again = std::mem::take(&mut swap.is_said_again);
        // That all have written is what was said, but for how far it reaches.
        if atomic.failed == 0 && self.is_wide {
            if swap.ends_the_step {
                block.warps[warp].next_step();
            }
            return;
        }
        let have_all_failed = atomic.failed & access.lanes == access.lanes;
        let mut is_the_same = false;
        if swap.generation == book.generation {
            is_the_same = match is_repeated && have_all_failed {
                true => swap.fail_again(book),
                false => {
                    swap.failures = self.correct_words(block, book, warp, swap.entry, (&swap.words, atomic.failed));
                    have_all_failed && !swap.failures.is_empty()
                }
            };
        }
        let is_silent = match is_said_again && have_all_failed {
            true => swap.is_silent_again(&mut self.flags.lock()),
            false => {
                let said = (&swap.flags[..], atomic.failed);
                let (is_silent, silences) = self.correct_flags(block, warp, access, said);
                swap.silences = silences.filter(|_| have_all_failed);
                is_silent
            }
        };
        let own = &mut block.warps[warp];
        if swap.ends_the_step && !is_silent {
            own.next_step();
        }
        own.failed = is_the_same.then_some(swap);
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

    /// Flags say what those lanes let others know that have written. Whether none has, and if nobody has come, what has become of each.
    fn correct_flags(
        &self,
        block: &mut Block,
        warp: usize,
        access: &Access<'_>,
        (said, failed): (&[Said], u32),
    ) -> (bool, Option<Vec<Silence>>) {
        let reach = Kind::of(access).strong.unwrap_or(Reach::Block);
        let at = (block.number, block.cluster);
        let told = (reach, reach.number(at));
        let (mut is_silent, mut can_be_repeated) = (true, true);
        let mut silences: Vec<Silence> = Vec::new();
        let mut flags = self.flags.lock();
        for lane in lanes(access.lanes) {
            let address = access.addresses[lane];
            if silences.iter().any(|silence| silence.address == address) {
                continue;
            }
            let own = || said.iter().filter(|said| access.addresses[said.lane] == address);
            let meanwhile = flags.get(address).cloned();
            let before = match own().next().map(|first| &first.before) {
                None => None,
                Some(Before::Whole(flag)) => flag.clone(),
                Some(Before::Last(_)) => meanwhile.clone(),
            };
            // Of some it is not kept what they were.
            can_be_repeated &= own().all(|said| matches!(said.before, Before::Whole(_)));
            let is_said = own().next_back().is_some();
            let has_come = own()
                .next_back()
                .is_some_and(|last| flags.last_write(address) != last.write);
            silences.push(Silence {
                address,
                before,
                meanwhile: meanwhile.filter(|_| is_said),
            });
            if has_come {
                // It was taken for a write.
                (is_silent, can_be_repeated) = (false, false);
                continue;
            }
            for Said { lane, before, .. } in own().rev() {
                if matches!(before, Before::Whole(_)) {
                    block.warps[warp].told[*lane] = None;
                }
                flags.restore(address, before.clone());
            }
            for Said { lane, messages, .. } in own().filter(|said| failed >> said.lane & 1 == 0) {
                is_silent = false;
                let by = ((at.0, warp, *lane), at.1);
                flags.written(address, by, told, Over::GoesOn, messages.clone());
            }
        }
        (is_silent, can_be_repeated.then_some(silences))
    }
}
