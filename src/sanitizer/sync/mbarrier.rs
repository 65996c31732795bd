//! Barriers in memory (PTX ISA, mbarrier): what the machine takes for no mistake, since it can go on.

use std::collections::{BTreeSet, HashMap};

use crate::isa::lanes::WARP;
use crate::simt::observe::{Mbarrier, MbarrierEvent, Who};

use super::{Checker, Place, Spot, Team, Wrong, lanes, peers, progress, spot};

/// Tokens of a thread that are remembered.
const TOKENS: usize = 8;

/// A thread of a block.
type Thread = ([u32; 3], u32);

/// What is known of an object.
#[derive(Default)]
pub(super) struct Object {
    /// How many phases are over, as far as somebody was seen to look.
    pub phase: u64,
    /// Tokens with the phase in which they were given.
    tokens: HashMap<Thread, Vec<(u64, u64)>>,
    /// Since which phase a thread waits.
    waiting: HashMap<Thread, u64>,
    /// Who has initialised it, and who has announced bytes last.
    made: Option<Spot>,
    announced: Option<Spot>,
}

impl Object {
    /// The object has been seen with this parity.
    fn sees(&mut self, parity: bool) {
        if (self.phase & 1 == 1) != parity {
            self.phase += 1;
        }
    }
}

/// What lanes of a warp find at barriers.
pub(super) struct Seen<'a> {
    /// Of the block.
    pub warp: usize,
    pub lanes: u32,
    pub addresses: &'a [u64; WARP],
    pub found: &'a [Option<Mbarrier>; WARP],
    pub values: &'a [u64; WARP],
}

impl Checker {
    pub(super) fn mbarrier(&self, team: &mut Team, by: &Who<'_>, seen: &Seen<'_>, what: MbarrierEvent) {
        match what {
            MbarrierEvent::Look { over } if over & seen.lanes == 0 => {
                if let Some(block) = team.blocks.get_mut(&by.block) {
                    block.looks(seen.warp, seen.lanes, Place::of(by), seen.addresses);
                }
            }
            _ => progress::changed(),
        }
        for lane in lanes(seen.lanes) {
            let at = seen.addresses[lane];
            let thread = (by.block, (seen.warp * WARP + lane) as u32);
            let here = || spot(by, [thread.1].into());
            let offset = offset_of(team, at);
            if matches!(
                what,
                MbarrierEvent::Arrive | MbarrierEvent::Expect | MbarrierEvent::Complete
            ) {
                self.reaches_barrier(team, by, thread.1, at);
            }
            let object = team.mbarriers.entry(at).or_default();
            let found = seen.found[lane];
            if let Some(found) = found {
                object.sees(found.phase);
            }
            let phase = object.phase;
            match what {
                MbarrierEvent::Init => {
                    if let Some(found) = found {
                        self.again(object, found, offset, &here());
                    }
                    *object = Object {
                        made: Some(here()),
                        ..Object::default()
                    };
                }
                MbarrierEvent::Invalidate => *object = Object::default(),
                MbarrierEvent::Arrive => {
                    if let Some(found) = found {
                        let tokens = object.tokens.entry(thread).or_default();
                        if tokens.len() == TOKENS {
                            tokens.remove(0);
                        }
                        tokens.push((found.encode(), phase));
                    }
                    object.announced = Some(here());
                    peers::via(team, by.block, seen.warp, at, phase);
                }
                MbarrierEvent::Expect => object.announced = Some(here()),
                MbarrierEvent::Look { over } => {
                    let is_over = over >> lane & 1 == 1;
                    self.looks(object, (thread, offset), seen.values[lane], is_over, &here());
                    if is_over {
                        let is_done = |spot: u64, complete: bool| spot == at && complete;
                        team.operations
                            .retain(|_, begun| !is_done(begun.barrier, begun.is_complete));
                        peers::seen(team, at, phase);
                    }
                }
                MbarrierEvent::CopiesArrive => {
                    // The barrier tells of all that the thread has begun.
                    if let Some(block) = team.blocks.get_mut(&by.block) {
                        block.copies.remove(&thread.1);
                    }
                }
                MbarrierEvent::Complete | MbarrierEvent::Arriving => {}
            }
        }
    }

    /// An object is initialised where there is one.
    fn again(&self, object: &Object, found: Mbarrier, offset: u64, here: &Spot) {
        let now = object.waiting.iter().filter(|(_, since)| **since == object.phase);
        let waiting: BTreeSet<u32> = now.map(|((_, thread), _)| *thread).collect();
        if found.pending == found.expected && found.bytes == 0 && waiting.is_empty() {
            return;
        }
        let wrong = Wrong::Reinitialised {
            offset,
            missing: found.pending,
            expected: found.expected,
            bytes: found.bytes,
            waiting,
        };
        self.tell(wrong, here, None);
    }

    fn looks(&self, object: &mut Object, (thread, offset): (Thread, u64), value: u64, is_over: bool, here: &Spot) {
        let phase = object.phase;
        // What is a parity and not a token is nobody's token.
        let mut given = object.tokens.get(&thread).into_iter().flatten().rev();
        if let Some((_, of)) = given.find(|(token, _)| *token == value && value > 1)
            && phase > of + 1
        {
            let wrong = Wrong::OldToken {
                offset,
                phases: phase - of,
            };
            self.tell(wrong, here, None);
        }
        if is_over {
            object.waiting.remove(&thread);
            return;
        }
        let since = *object.waiting.entry(thread).or_insert(phase);
        if phase > since + 1 {
            self.tell(Wrong::Overtaken { offset }, here, None);
            object.waiting.insert(thread, phase);
        }
    }

    /// All blocks of a team have ended, and these objects are still there.
    pub(super) fn left(&self, team: &mut Team, barriers: &[(u64, Mbarrier)]) {
        for (at, found) in barriers.iter().filter(|(_, found)| found.bytes != 0) {
            let wrong = Wrong::BytesLeft {
                offset: offset_of(team, *at),
                bytes: found.bytes,
            };
            let begun = team.operations.values().find(|begun| begun.barrier == *at);
            let by_copy = begun.filter(|_| found.bytes < 0).map(|begun| begun.spot.clone());
            let object = team.mbarriers.get(at);
            let announced = object.and_then(|object| object.announced.clone().or(object.made.clone()));
            if let Some(spot) = by_copy.or(announced) {
                self.tell(wrong, &spot, None);
            }
            team.operations.retain(|_, begun| begun.barrier != *at);
        }
        let mut operations: Vec<_> = team.operations.iter().collect();
        operations.sort_by_key(|(number, _)| **number);
        for (_, begun) in operations {
            let wrong = Wrong::BytesNotAwaited {
                offset: offset_of(team, begun.barrier),
            };
            self.tell(wrong, &begun.spot, None);
        }
    }
}

/// The place of an address in the shared memory of its block.
fn offset_of(team: &Team, at: u64) -> u64 {
    let mut windows = team.blocks.values().map(|block| block.shared);
    let own = windows.find(|(start, bytes)| (*start..start + bytes).contains(&at));
    own.map_or(at, |(start, _)| at - start)
}
