//! What the threads of one block know, and where they tell each other.

use std::collections::HashMap;
use std::sync::Arc;

use crate::isa::lanes::WARP;

use super::clock::{Clock, Row, Rows, Step};
use super::flags::{FlagState, Message};
use super::ledger::{Kind, Ledger, Reach, Swap};
use super::swap::UnderWay;

/// Something of each lane of a warp; mostly it is the same for all.
#[derive(Clone)]
pub enum PerLane<T> {
    Same(T),
    Each(Box<[T; WARP]>),
}

impl<T: Clone> PerLane<T> {
    pub fn get(&self, lane: usize) -> &T {
        match self {
            PerLane::Same(value) => value,
            PerLane::Each(values) => &values[lane],
        }
    }

    /// Changes it for `lanes` of those that there are.
    pub fn change(&mut self, lanes: u32, there: u32, mut change: impl FnMut(&mut T)) {
        if lanes & there == there {
            match self {
                PerLane::Same(value) => change(value),
                PerLane::Each(values) => values.iter_mut().for_each(change),
            }
            return;
        }
        if let PerLane::Same(value) = self {
            *self = PerLane::Each(Box::new(std::array::from_fn(|_| value.clone())));
        }
        if let PerLane::Each(values) = self {
            for (lane, value) in values.iter_mut().enumerate() {
                if lanes >> lane & 1 == 1 {
                    change(value);
                }
            }
        }
    }

    /// What has become the same for all is kept once.
    fn unite(&mut self, is_same: impl Fn(&T, &T) -> bool) {
        if let PerLane::Each(values) = self
            && values.iter().all(|value| is_same(value, &values[0]))
        {
            *self = PerLane::Same(values[0].clone());
        }
    }

    /// Shows the values of `lanes`, with the lanes of each.
    fn each(&self, lanes: u32, mut act: impl FnMut(&T, u32)) {
        match self {
            PerLane::Same(value) => act(value, lanes),
            PerLane::Each(values) => {
                for (lane, value) in values.iter().enumerate() {
                    if lanes >> lane & 1 == 1 {
                        act(value, 1 << lane);
                    }
                }
            }
        }
    }
}

/// By lane of a warp, up to which steps it knows of the others by what lanes of a warp do among each other.
#[derive(Clone)]
pub enum Among {
    All(Step),
    Each(Arc<[[Step; WARP]; WARP]>),
}

impl Among {
    pub fn get(&self, lane: usize, of: usize) -> Step {
        match self {
            Among::All(step) => *step,
            Among::Each(rows) => rows[lane][of],
        }
    }

    /// What these lanes know together, who have come to `step`.
    fn row(&self, lanes: u32, there: u32, step: Step) -> Row {
        if lanes & there == there {
            return Row::All(step);
        }
        let mut row = match self {
            Among::All(known) => [*known; WARP],
            Among::Each(rows) => {
                let own = (0..WARP).filter(|lane| lanes >> lane & 1 == 1);
                own.fold([0; WARP], |all, lane| {
                    std::array::from_fn(|of| all[of].max(rows[lane][of]))
                })
            }
        };
        for (lane, known) in row.iter_mut().enumerate() {
            if lanes >> lane & 1 == 1 {
                *known = step;
            }
        }
        Row::Each(Box::new(row))
    }

    /// Lanes meet: each knows of those whom it names all that they know.
    fn meet(&mut self, members: &[u32; WARP], there: u32, step: Step) {
        if (0..WARP).all(|lane| there >> lane & 1 == 0 || members[lane] & there == there) {
            *self = Among::All(step);
            return;
        }
        let old = self.clone();
        let new: [[Step; WARP]; WARP] = std::array::from_fn(|lane| match members[lane] {
            0 => std::array::from_fn(|of| old.get(lane, of)),
            named => match old.row(named | 1 << lane, 0xffff_ffff, step) {
                Row::All(step) => [step; WARP],
                Row::Each(row) => *row,
            },
        });
        *self = Among::Each(Arc::new(new));
    }
}

/// What a lane knew at a moment, which it hands on later.
pub struct Snapshot {
    seen: Clock,
    among: Among,
    step: Step,
}

/// By which way a lane's knowledge reaches others: fences of each reach, and those to the asynchronous proxy, of global and of
/// shared memory.
pub const CHANNELS: usize = 5;
pub const ASYNC: [usize; 2] = [3, 4];

/// What a lane has put before what it does next, for those who see that: by a fence of its own, and by fences of others who
/// have met it since.
#[derive(Clone, Default)]
pub struct Channel {
    pub own: Option<Arc<Snapshot>>,
    pub others: Clock,
}

impl Channel {
    pub fn is_empty(&self) -> bool {
        self.own.is_none() && self.others.is_empty()
    }

    /// Whether both are the same version.
    fn is_same(&self, other: &Channel) -> bool {
        let are_same = match (&self.own, &other.own) {
            (None, None) => true,
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, Some(_)) | (Some(_), None) => false,
        };
        are_same && self.others.is_same(&other.others)
    }
}

/// What a lane has let others know by its last atomic that was no release: who waits does the same again and again.
pub struct Told {
    pub address: u64,
    pub reach: Reach,
    /// Of the flag, with that.
    pub version: u64,
    pub channels: [Channel; CHANNELS],
}

impl Told {
    /// Whether a lane in this state would say the same.
    pub fn is_still(&self, state: &State) -> bool {
        let mut both = self.channels.iter().zip(&state.channels);
        both.all(|(own, other)| own.is_same(other))
    }
}

/// What a lane knows.
#[derive(Clone, Default)]
pub struct State {
    pub seen: Clock,
    pub channels: [Channel; CHANNELS],
    /// What it will know behind its next fence of each reach at least (only where relaxed reads are no acquires).
    pub unfenced: [Clock; 3],
}

impl State {
    /// What others have let it know.
    pub fn learn(&mut self, message: &Message) {
        self.seen.join(&message.clock);
        self.learn_of_proxy(message);
    }

    /// What of that the asynchronous proxy sees.
    pub fn learn_of_proxy(&mut self, message: &Message) {
        for (channel, clock) in ASYNC.into_iter().zip(&message.asynchronous) {
            self.channels[channel].others.join(clock);
        }
    }

    fn is_same(&self, other: &State) -> bool {
        self.seen.is_same(&other.seen)
            && self
                .unfenced
                .iter()
                .zip(&other.unfenced)
                .all(|(own, other)| own.is_same(other))
            && self
                .channels
                .iter()
                .zip(&other.channels)
                .all(|(own, other)| own.is_same(other))
    }
}

/// A copy by `cp.async` or in bulk, with the number of the group that it is or will be in, by lane.
struct CopyUnderWay {
    operation: u32,
    lanes: u32,
    groups: [u32; WARP],
}

/// Copies of a warp's lanes, and groups that each has made.
#[derive(Default)]
pub struct Copies {
    under_way: Vec<CopyUnderWay>,
    groups: [u32; WARP],
}

impl Copies {
    pub fn begin(&mut self, operation: u32, lanes: u32) {
        self.under_way.push(CopyUnderWay {
            operation,
            lanes,
            groups: self.groups,
        });
    }

    pub fn commit(&mut self, lanes: u32) {
        for (lane, groups) in self.groups.iter_mut().enumerate() {
            *groups += lanes >> lane & 1;
        }
    }

    /// Lanes see the end of all groups but the last `but` (`None`: of all copies): `end` gets each copy with these lanes.
    pub fn wait(&mut self, lanes: u32, but: Option<u32>, only_reads: bool, mut end: impl FnMut(u32, u32)) {
        for copy in &mut self.under_way {
            let is_over = |lane: usize| match but {
                None => true,
                Some(but) => copy.groups[lane] + but < self.groups[lane],
            };
            let over = (0..WARP).filter(|&lane| (lanes & copy.lanes) >> lane & 1 == 1 && is_over(lane));
            let over = over.fold(0, |all, lane| all | 1 << lane);
            if over != 0 {
                end(copy.operation, over);
                if !only_reads {
                    copy.lanes &= !over;
                }
            }
        }
        self.under_way.retain(|copy| copy.lanes != 0);
    }

    /// An arrival at this phase of an mbarrier waits for all copies of these lanes.
    pub fn ends_with(&self, ledger: &Ledger, lanes: u32, phase: (u64, Step)) {
        for copy in self.under_way.iter().filter(|copy| copy.lanes & lanes != 0) {
            ledger.operation(copy.operation).ends_with(phase);
        }
    }
}

/// Entries that a warp remembers: a loop has few instructions that touch memory.
const ENTRIES: usize = 32;

/// What is alike in accesses that share an entry: where the instruction is, what kind, which operation; and since when entries have
/// the numbers that they have.
type Alike = (u32, Kind, Option<u32>, u32);

pub struct Warp {
    /// Lanes that are threads of the block.
    pub there: u32,
    pub step: Step,
    lanes: PerLane<State>,
    /// How often what its lanes know has changed.
    pub changes: u64,
    pub among: Among,
    /// By lane, the flag that it has read last, with its state, whether that was an acquire, and its reach.
    pub read: [Option<(u64, FlagState, bool, Reach)>; WARP],
    pub told: [Option<Box<Told>>; WARP],
    /// The compare-and-swap that is under way.
    pub swap: Option<Box<UnderWay>>,
    /// The last one, if it has written nothing and nobody has come meanwhile.
    pub failed: Option<Box<UnderWay>>,
    pub copies: Copies,
    pub bulk: Copies,
    /// Operations that a commit has arrive at an mbarrier (`tcgen05`), with their lanes, since the last one.
    pub uncommitted: Vec<(u32, u32)>,
    /// The number of the last commit, and what it has arrive.
    committed: (u64, Vec<u32>),
    /// Entries of this step, where the site's number says.
    entries: Box<[Option<(Alike, Step, u32)>; ENTRIES]>,
    /// Operations that were begun, by the block's number of each.
    operations: Vec<(u64, u32)>,
}

impl Warp {
    /// What a lane knows.
    pub fn lane(&self, lane: usize) -> &State {
        self.lanes.get(lane)
    }

    /// Changes what some lanes know.
    pub fn change(&mut self, lanes: u32, change: impl FnMut(&mut State)) {
        self.changes += 1;
        self.lanes.change(lanes, self.there, change);
    }

    /// Others may learn of what was done until now: what comes is another step.
    pub fn next_step(&mut self) {
        self.step += 1;
    }

    pub fn entry(&mut self, alike: Alike, make: impl FnOnce(Step) -> Option<u32>) -> Option<u32> {
        // Who waits for a lock makes an entry of each kind again and again.
        let place = match alike.1.swap {
            Swap::No => alike.0 as usize,
            Swap::Open => alike.0 as usize + ENTRIES / 3,
            Swap::Failed => alike.0 as usize + ENTRIES * 2 / 3,
        };
        let place = &mut self.entries[place % ENTRIES];
        if let Some((last, step, entry)) = place
            && (*last, *step) == (alike, self.step)
        {
            return Some(*entry);
        }
        let entry = make(self.step)?;
        *place = Some((alike, self.step, entry));
        Some(entry)
    }

    pub fn begin(&mut self, number: u64, operation: u32) {
        // Only the last few are asked for: an operation's accesses are told when it begins.
        if self.operations.len() > 8 {
            self.operations.remove(0);
        }
        self.operations.push((number, operation));
    }

    /// What lanes have begun until this commit, which is told once for each of its barriers (PTX ISA, tcgen05.commit).
    pub fn commit(&mut self, number: u64, lanes: u32) -> &[u32] {
        if self.committed.0 != number {
            let all = std::mem::take(&mut self.uncommitted).into_iter();
            let (ended, left): (Vec<_>, Vec<_>) = all.partition(|(_, by)| by & lanes != 0);
            self.uncommitted = left;
            self.committed = (number, ended.into_iter().map(|(begun, _)| begun).collect());
        }
        &self.committed.1
    }

    pub fn operation(&self, number: u64) -> Option<u32> {
        let found = self.operations.iter().rev().find(|(own, _)| *own == number);
        found.map(|(_, operation)| *operation)
    }

    /// What lanes hand on.
    fn snapshot(&self, lane: usize) -> Snapshot {
        Snapshot {
            seen: self.lanes.get(lane).seen.clone(),
            among: self.among.clone(),
            step: self.step,
        }
    }

    /// What lanes have read without acquiring it, from so far at most, counts from now on.
    pub fn catch_up(&mut self, lanes: u32, reach: Reach) {
        let has_some = |state: &State| state.unfenced.iter().any(|clock| !clock.is_empty());
        let mut any = false;
        self.lanes.each(lanes, |state, _| any |= has_some(state));
        if any {
            self.change(lanes, |state| {
                for unfenced in &mut state.unfenced[..=reach as usize] {
                    state.seen.join(&std::mem::take(unfenced));
                }
            });
        }
    }

    /// Lanes put what they know before what they do next, for those whom the channels reach.
    pub fn fence(&mut self, lanes: u32, channels: std::ops::Range<usize>) {
        let mut shared: Option<(Clock, Arc<Snapshot>)> = None;
        let (among, step) = (self.among.clone(), self.step);
        self.change(lanes, |state| {
            let snapshot = match &shared {
                Some((seen, snapshot)) if seen.is_same(&state.seen) => Arc::clone(snapshot),
                _ => Arc::new(Snapshot {
                    seen: state.seen.clone(),
                    among: among.clone(),
                    step,
                }),
            };
            shared = Some((state.seen.clone(), Arc::clone(&snapshot)));
            for channel in &mut state.channels[channels.clone()] {
                *channel = Channel {
                    own: Some(Arc::clone(&snapshot)),
                    others: Clock::default(),
                };
            }
        });
        self.next_step();
    }

    /// All that one lane knows, itself included.
    pub fn known_by(&self, (block, warp): (u32, usize), lane: usize) -> Clock {
        hand_on(&self.snapshot(lane), (block, warp), lane, self.there)
    }

    /// What a lane has put before what the asynchronous proxy does.
    pub fn proxy_fenced_by(&self, at: (u32, usize), lane: usize) -> [Clock; 2] {
        ASYNC.map(|channel| self.fenced_by(at, lane, channel))
    }

    /// What a lane has put before by a fence.
    pub fn fenced_by(&self, (block, warp): (u32, usize), lane: usize, channel: usize) -> Clock {
        let channel = &self.lanes.get(lane).channels[channel];
        let mut clock = channel.others.clone();
        if let Some(own) = &channel.own {
            clock.join(&hand_on(own, (block, warp), lane, self.there));
        }
        clock
    }
}

fn hand_on(of: &Snapshot, (block, warp): (u32, usize), lane: usize, there: u32) -> Clock {
    let mut rows = Rows::default();
    rows.join_row(warp, &of.among.row(1 << lane, there, of.step));
    let mut clock = of.seen.clone();
    clock.blocks.insert(block.into(), rows);
    clock
}

/// A place where threads meet, before all have come.
#[derive(Default)]
pub struct Gathering {
    clock: Clock,
    /// By block: what is known of its own threads.
    rows: HashMap<u32, Rows>,
    channels: [(Clock, HashMap<u32, Rows>); CHANNELS],
    waiting: Vec<(usize, u32)>,
}

/// What those know who have met.
#[derive(Clone, Default)]
pub struct Met {
    pub clock: Clock,
    pub channels: [Clock; CHANNELS],
}

impl Gathering {
    /// Lanes of a warp come; `channels`: which of theirs they share.
    pub fn come(&mut self, (block, number): (u32, usize), warp: &Warp, lanes: u32, channels: &[usize]) {
        let row = warp.among.row(lanes, warp.there, warp.step);
        self.rows.entry(block).or_default().join_row(number, &row);
        warp.lanes.each(lanes, |state, some| {
            self.clock.join(&state.seen);
            for &channel in channels {
                let (clock, rows) = &mut self.channels[channel];
                let from = &state.channels[channel];
                clock.join(&from.others);
                if let Some(own) = &from.own {
                    clock.join(&own.seen);
                    let row = own.among.row(some, warp.there, own.step);
                    rows.entry(block).or_default().join_row(number, &row);
                }
            }
        });
    }

    /// Lanes come, who tell of what lies before a fence of theirs alone.
    pub fn come_relaxed(&mut self, (block, number): (u32, usize), warp: &Warp, lanes: u32, channel: usize) {
        warp.lanes.each(lanes, |state, some| {
            let from = &state.channels[channel];
            self.clock.join(&from.others);
            if let Some(own) = &from.own {
                self.clock.join(&own.seen);
                let row = own.among.row(some, warp.there, own.step);
                self.rows.entry(block).or_default().join_row(number, &row);
            }
        });
    }

    pub fn waits(&mut self, warp: usize, lanes: u32) {
        self.waiting.push((warp, lanes));
    }

    /// All have come: what they know, and who waits.
    pub fn meet(self) -> (Met, Vec<(usize, u32)>) {
        let with = |mut clock: Clock, rows: HashMap<u32, Rows>| {
            for (block, rows) in rows {
                clock.blocks.insert(block.into(), rows);
            }
            clock
        };
        let met = Met {
            clock: with(self.clock, self.rows),
            channels: self.channels.map(|(clock, rows)| with(clock, rows)),
        };
        (met, self.waiting)
    }
}

pub struct Block {
    pub number: u32,
    pub cluster: u32,
    pub local: std::ops::Range<u64>,
    pub warps: Vec<Warp>,
    pub barriers: HashMap<u32, Gathering>,
    /// Numbers of instructions, as the grid has them.
    pub sites: HashMap<(usize, u32), u32>,
}

impl Block {
    pub fn new(number: u32, cluster: u32, threads: u32, local: (u64, u64)) -> Block {
        let warps = (0..threads.div_ceil(WARP as u32)).map(|warp| {
            let left = threads - warp * WARP as u32;
            Warp {
                there: if left >= 32 { u32::MAX } else { (1 << left) - 1 },
                step: 1,
                lanes: PerLane::Same(State::default()),
                changes: 0,
                among: Among::All(0),
                read: [None; WARP],
                told: std::array::from_fn(|_| None),
                swap: None,
                failed: None,
                copies: Copies::default(),
                bulk: Copies::default(),
                uncommitted: Vec::new(),
                committed: (0, Vec::new()),
                entries: Box::new([None; ENTRIES]),
                operations: Vec::new(),
            }
        });
        Block {
            number,
            cluster,
            local: local.0..local.0 + local.1,
            warps: warps.collect(),
            barriers: HashMap::new(),
            sites: HashMap::new(),
        }
    }

    /// Lanes learn what those know whom they have met, and who know all that they knew.
    pub fn learn(&mut self, warp: usize, lanes: u32, met: &Met, channels: &[usize]) {
        let warp = &mut self.warps[warp];
        let there = warp.there;
        warp.change(lanes, |state| {
            state.seen.clone_from(&met.clock);
            for &channel in channels {
                state.channels[channel] = Channel {
                    own: None,
                    others: met.channels[channel].clone(),
                };
            }
        });
        if lanes & there == there {
            warp.lanes.unite(State::is_same);
        }
    }

    /// Lanes of a warp meet.
    pub fn meet(&mut self, warp: usize, members: &[u32; WARP], channels: &[usize]) {
        let number = self.number;
        let own = &mut self.warps[warp];
        let there = own.there;
        let is_alone =
            matches!(&own.lanes, PerLane::Same(state) if state.channels.iter().all(|channel| channel.own.is_none()));
        if !is_alone {
            let mut groups: Vec<u32> = members.iter().copied().filter(|named| *named != 0).collect();
            groups.sort_unstable();
            groups.dedup();
            for named in groups {
                let lanes = (0..WARP)
                    .filter(|lane| members[*lane] == named)
                    .fold(0, |all, lane| all | 1 << lane);
                let mut gathering = Gathering::default();
                gathering.come((number, warp), &self.warps[warp], named, channels);
                let (met, _) = gathering.meet();
                self.learn(warp, lanes, &met, channels);
            }
        }
        let own = &mut self.warps[warp];
        own.among.meet(members, there, own.step);
        own.next_step();
    }
}
