//! Finds misuse of what synchronises: barriers that not all of those reach who must, member masks that lie, barriers in memory
//! and asynchronous operations that nobody waits for, products whose sums are touched too early (PTX ISA, Parallel
//! Synchronization and Communication Instructions).
//!
//! What is looked at is what each thread does, not when: a finding is the same in every order of threads, as far as the program
//! does the same. A kernel goes on where it can; what it cannot go on from is a fault of the machine's, and no finding of this.

mod barrier;
mod circle;
mod copies;
mod mbarrier;
mod peers;
mod products;
mod progress;
mod report;
mod warp;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::mem::Discriminant;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering as Relaxed};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};

use crate::isa::lanes::{MAX_WARPS, WARP};
use crate::program::{CopyGroup, Ordering, Scope};
use crate::ptx::ast::Span;
use crate::sanitizer::spread::Spread;
use crate::simt::observe::{Access, Completes, Elsewhere, GridEvent, Observer, RowAccess, SyncEvent, Use, Who};
use crate::simt::{Launch, Site};

use barrier::Gathering;
use copies::{Begun, Lines};
use mbarrier::Object;
use peers::Remote;
use products::Pending;
pub use progress::{Stuck, Waiting, next_moment};
pub use report::{Misuse, Party, Wrong};

/// What each use of an instruction asks for.
type Map<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Whoever wants to know of misuse, as it is found.
pub type Listener = dyn Fn(Misuse) + Send + Sync;

/// Looks at one grid.
pub struct Checker {
    launch: Arc<Launch>,
    listener: Arc<Listener>,
    /// By number of the cluster; a block without one is the only one of its own.
    teams: RwLock<Map<u32, Arc<Mutex<Team>>>>,
    /// Of clusters that have ended, and empty: what they have allocated serves the next ones.
    spare: Mutex<Vec<Arc<Mutex<Team>>>>,
    /// Tells checkers apart.
    number: u64,
    told: Mutex<HashSet<Key>>,
    /// Blocks that have begun.
    begun: AtomicU64,
    /// Why the grid is to end, if it does not get on.
    verdict: OnceLock<String>,
}

/// What makes two findings one: what is wrong, and where, on either side.
type Key = (Discriminant<Wrong>, Place, Option<Place>);

/// An instruction, by the address of its function and its place in that one's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    function: usize,
    start: u32,
    end: u32,
}

impl Place {
    fn of(by: &Who<'_>) -> Place {
        Place::at(std::ptr::from_ref(by.function) as usize, by.span)
    }

    fn at(function: usize, span: Span) -> Place {
        Place {
            function,
            start: span.start,
            end: span.end,
        }
    }
}

/// Threads of a block, by number, at an instruction.
#[derive(Clone)]
struct Spot {
    block: [u32; 3],
    threads: BTreeSet<u32>,
    place: Place,
}

/// The blocks of a cluster, and what they have in common.
#[derive(Default)]
struct Team {
    blocks: Map<[u32; 3], Block>,
    /// By address.
    mbarriers: Map<u64, Object>,
    /// By number, those that a barrier in memory is told of.
    operations: Map<u64, Begun>,
    remote: Vec<Remote>,
    /// How often all have come to the cluster's barrier.
    releases: u64,
    /// Empty ones.
    spare: Vec<Block>,
}

impl Team {
    fn begin(&mut self, at: [u32; 3], shared: (u64, u64)) {
        let block = self.spare.pop().unwrap_or_default();
        self.blocks.insert(at, Block { shared, ..block });
    }

    /// All of its blocks have ended.
    fn clear(&mut self) {
        let Team {
            blocks,
            mbarriers,
            operations,
            remote,
            releases,
            spare,
        } = self;
        spare.extend(blocks.drain().map(|(_, block)| block.emptied()));
        mbarriers.clear();
        operations.clear();
        remote.clear();
        *releases = 0;
    }
}

/// A block that runs.
#[derive(Default)]
struct Block {
    /// Start and bytes.
    shared: (u64, u64),
    barriers: Map<u32, Gathering>,
    /// Lanes that have exited, by warp.
    exited: Vec<u32>,
    /// By warp and instruction, the members that each lane named there last.
    masks: Map<(usize, Place), [u32; WARP]>,
    /// Where a warp goes on without all its members.
    incomplete: Option<(usize, Place)>,
    /// By thread, where it has arrived at the barrier of the cluster, and not waited yet.
    arrived: Map<u32, Place>,
    /// By thread.
    copies: Map<u32, Lines>,
    bulk: Map<u32, Lines>,
    /// By warp.
    products: Map<usize, Pending>,
    /// Likewise, lanes that stand at a `.sync` operation.
    gathered: Map<usize, u32>,
    looks: Map<usize, Vec<progress::Look>>,
    before: Map<usize, progress::Before>,
    /// By the first warp of a bundle.
    circles: Map<usize, circle::Circle>,
}

impl Block {
    /// Nothing but what it has allocated.
    fn emptied(mut self) -> Block {
        let Block {
            shared,
            barriers,
            exited,
            masks,
            incomplete,
            arrived,
            copies,
            bulk,
            products,
            gathered,
            looks,
            before,
            circles,
        } = &mut self;
        (*shared, *incomplete) = Default::default();
        barriers.clear();
        exited.clear();
        masks.clear();
        arrived.clear();
        copies.clear();
        bulk.clear();
        products.clear();
        gathered.clear();
        looks.clear();
        before.clear();
        circles.clear();
        self
    }
}

impl Checker {
    pub fn new(launch: &Arc<Launch>, listener: Arc<Listener>) -> Checker {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Checker {
            launch: Arc::clone(launch),
            listener,
            teams: RwLock::default(),
            spare: Mutex::default(),
            number: NEXT.fetch_add(1, Relaxed::Relaxed),
            told: Mutex::default(),
            begun: AtomicU64::new(0),
            verdict: OnceLock::new(),
        }
    }

    fn cluster_of(&self, at: [u32; 3]) -> u32 {
        let shape = self.launch.cluster.unwrap_or([1; 3]);
        let all: [u32; 3] = std::array::from_fn(|axis| self.launch.grid[axis].div_ceil(shape[axis]));
        let own: [u32; 3] = std::array::from_fn(|axis| at[axis] / shape[axis]);
        (own[2] * all[1] + own[1]) * all[0] + own[0]
    }

    /// Does something with a team; mostly it is the one that the thread had last.
    fn with_team(&self, at: [u32; 3], act: impl FnOnce(&mut Team)) {
        /// A team of a checker, by that one's number and its own.
        type Last = (u64, u32, Arc<Mutex<Team>>);
        thread_local! {
            static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
        }
        let number = self.cluster_of(at);
        LAST.with_borrow_mut(|last| {
            if last
                .as_ref()
                .is_none_or(|(checker, team, _)| (*checker, *team) != (self.number, number))
            {
                let found = self.teams.read().get(&number).cloned();
                *last = found.map(|team| (self.number, number, team));
            }
            if let Some((.., team)) = last {
                act(&mut team.lock());
            }
        });
    }

    fn threads(&self) -> u32 {
        self.launch.block.iter().product()
    }

    /// Lanes of a warp that there are.
    fn exist(&self, warp: usize) -> u32 {
        let left = self.threads().saturating_sub((warp * WARP) as u32);
        if left >= WARP as u32 { u32::MAX } else { (1 << left) - 1 }
    }

    /// Tells of something, unless it has been told of these instructions.
    fn tell(&self, wrong: Wrong, first: &Spot, second: Option<&Spot>) {
        let (mut one, mut other) = (first.place, second.map(|spot| spot.place));
        if let Some(second) = other.filter(|second| *second < one) {
            (one, other) = (second, Some(one));
        }
        if !self.told.lock().insert((std::mem::discriminant(&wrong), one, other)) {
            return;
        }
        let module = &self.launch.code.module;
        let party = |spot: &Spot| {
            let span = Span {
                start: spot.place.start,
                end: spot.place.end,
            };
            Party {
                block: spot.block,
                threads: spot.threads.clone(),
                site: Site::of_instruction(module, spot.place.function, span),
            }
        };
        (self.listener)(Misuse {
            kernel: Arc::clone(&module.functions[self.launch.kernel as usize].name),
            shape: self.launch.block,
            wrong,
            first: party(first),
            second: second.map(party),
        });
    }

    /// What a kernel does with an instruction.
    fn used(&self, team: &mut Team, by: &Who<'_>, how: &Use) {
        let first = by.first_thread as usize / WARP;
        match how {
            Use::Mbarrier {
                warp,
                lanes,
                addresses,
                found,
                values,
                what,
            } => {
                let seen = mbarrier::Seen {
                    warp: first + warp,
                    lanes: *lanes,
                    addresses,
                    found,
                    values,
                };
                return self.mbarrier(team, by, &seen, *what);
            }
            Use::Exit { lanes } => return self.exits(team, by, lanes),
            _ => {}
        }
        let Some(block) = team.blocks.get_mut(&by.block) else {
            return;
        };
        match how {
            Use::Barrier {
                barrier,
                lanes,
                op,
                aligned,
                threads,
            } => {
                let came = barrier::Came {
                    place: Place::of(by),
                    lanes: 0,
                    op: *op,
                    is_aligned: *aligned,
                    threads: *threads,
                };
                self.arrives(block, by, *barrier, lanes, came);
            }
            Use::Members {
                warp,
                lanes,
                named,
                live,
                goes_on,
                elsewhere,
            } => {
                let members = warp::Members {
                    warp: first + warp,
                    lanes: *lanes,
                    named,
                    live: *live,
                    goes_on: *goes_on,
                    elsewhere: *elsewhere,
                };
                let gathered = block.gathered.entry(members.warp).or_default();
                *gathered = if *goes_on {
                    *gathered & !lanes
                } else {
                    *gathered | lanes
                };
                self.members(block, by, &members);
            }
            Use::Shuffle {
                warp,
                lanes,
                partners,
                sources,
            } => self.shuffles(block, by, (first + warp, *lanes), partners, sources),
            Use::Vote { warp, lanes, live } => self.votes(by, first + warp, *lanes, *live),
            Use::ClusterAwait { lanes } => {
                let threads = threads_of(by, lanes);
                self.tell(Wrong::ClusterNotArrived, &spot(by, threads), None);
            }
            Use::Products { warp, what } => self.products(block, by, first + warp, *what),
            Use::Mbarrier { .. } | Use::Exit { .. } => {}
        }
    }

    /// What threads that exit have begun and not ended.
    fn leaves(&self, block: &mut Block, by: &Who<'_>, lanes: &[u32; MAX_WARPS]) {
        let mut arrived: Option<Spot> = None;
        for thread in threads_of(by, lanes) {
            if let Some(place) = block.arrived.remove(&thread) {
                let spot = arrived.get_or_insert_with(|| Spot {
                    block: by.block,
                    threads: BTreeSet::new(),
                    place,
                });
                spot.threads.insert(thread);
            }
            if let Some(lines) = block.copies.remove(&thread) {
                self.left_copies(by, thread, &lines, false);
            }
            if let Some(lines) = block.bulk.remove(&thread) {
                self.left_copies(by, thread, &lines, true);
            }
        }
        if let Some(spot) = arrived {
            self.tell(Wrong::ClusterNotAwaited, &spot, None);
        }
    }

    fn exits(&self, team: &mut Team, by: &Who<'_>, lanes: &[u32; MAX_WARPS]) {
        progress::changed();
        let Some(block) = team.blocks.get_mut(&by.block) else {
            return;
        };
        let is_idle = block.arrived.is_empty() && block.copies.is_empty() && block.bulk.is_empty();
        if !is_idle {
            self.leaves(block, by, lanes);
        }
        for (warp, lanes) in warps(by, lanes) {
            if block.exited.len() <= warp {
                block.exited.resize(self.threads().div_ceil(WARP as u32) as usize, 0);
            }
            block.exited[warp] |= lanes;
            if block.exited[warp] == self.exist(warp)
                && let Some(pending) = block.products.remove(&warp)
            {
                self.left_products(by, warp, &pending);
            }
        }
    }
}

fn spot(by: &Who<'_>, threads: BTreeSet<u32>) -> Spot {
    Spot {
        block: by.block,
        threads,
        place: Place::of(by),
    }
}

fn spot_elsewhere(by: &Who<'_>, warp: usize, elsewhere: &Elsewhere) -> Spot {
    Spot {
        block: by.block,
        threads: threads_of_warp(warp, elsewhere.lanes),
        place: Place::at(elsewhere.function, elsewhere.span),
    }
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..WARP).filter(move |lane| mask >> lane & 1 == 1)
}

/// Threads of a block by number: of lanes of one of its warps.
fn threads_of_warp(warp: usize, mask: u32) -> BTreeSet<u32> {
    lanes(mask).map(|lane| (warp * WARP + lane) as u32).collect()
}

/// Those of the masks of a bundle.
fn threads_of(by: &Who<'_>, masks: &[u32; MAX_WARPS]) -> BTreeSet<u32> {
    warps(by, masks)
        .flat_map(|(warp, mask)| threads_of_warp(warp, mask))
        .collect()
}

/// Warps of the block with lanes in the masks of a bundle.
fn warps(by: &Who<'_>, masks: &[u32; MAX_WARPS]) -> impl Iterator<Item = (usize, u32)> + use<> {
    let first = by.first_thread as usize / WARP;
    let masks = *masks;
    (0..MAX_WARPS)
        .map(move |w| (first + w, masks[w]))
        .filter(|(_, mask)| *mask != 0)
}

impl Observer for Checker {
    fn access(&self, by: &Who<'_>, access: &Access<'_>) {
        self.touches(by, access);
        // Of a cluster, what reaches into another block, or tells one that this is done.
        if self.launch.cluster.is_some() && access.operation.is_none() {
            self.with_team(by.block, |team| self.reaches(team, by, access));
        }
    }

    fn rows(&self, by: &Who<'_>, rows: &RowAccess<'_>) {
        if self.launch.cluster.is_none() {
            progress::touched(rows.space);
            return;
        }
        for warp in 0..rows.warps {
            rows.of_warp(warp, |access| self.access(by, access));
        }
    }

    fn has_read(&self, by: &Who<'_>, access: &Access<'_>) {
        self.has_looked(by, access);
    }

    fn follows_uses(&self) -> bool {
        true
    }

    fn follows_stands(&self) -> bool {
        progress::is_quiet()
    }

    fn stands(&self, block: [u32; 3], warps: Range<usize>, stand: u64) {
        self.with_team(block, |team| {
            if let Some(block) = team.blocks.get_mut(&block) {
                let circle = block.circles.entry(warps.start);
                circle.or_default().stands(warps, stand, progress::moment());
            }
        });
    }

    fn gives_up(&self) -> Option<String> {
        self.verdict.get().cloned()
    }

    fn synchronise(&self, by: &Who<'_>, event: &SyncEvent) {
        match event {
            SyncEvent::Arrive { .. }
            | SyncEvent::Warp { .. }
            | SyncEvent::Collective { .. }
            | SyncEvent::Together { .. }
            | SyncEvent::Mbarrier { .. }
            | SyncEvent::Fabric { .. }
            | SyncEvent::HostCall { .. } => return,
            SyncEvent::Fence { .. } if self.launch.cluster.is_none() => return,
            SyncEvent::Fence { .. }
            | SyncEvent::Copies { .. }
            | SyncEvent::ClusterArrive { .. }
            | SyncEvent::ClusterWait { .. }
            | SyncEvent::BulkCopies { .. }
            | SyncEvent::Begin { .. }
            | SyncEvent::Use(_) => {}
        }
        let first = by.first_thread as usize / WARP;
        self.with_team(by.block, |team| match event {
            SyncEvent::Use(how) => self.used(team, by, how),
            SyncEvent::Copies { lanes, group } => {
                if let Some(block) = team.blocks.get_mut(&by.block) {
                    copies::grouped(
                        &mut block.copies,
                        &threads_of(by, lanes),
                        *group,
                        *group == CopyGroup::WaitAll,
                    );
                }
            }
            SyncEvent::BulkCopies { lanes, group, .. } => {
                if let Some(block) = team.blocks.get_mut(&by.block) {
                    copies::grouped(&mut block.bulk, &threads_of(by, lanes), *group, false);
                }
            }
            SyncEvent::Begin {
                operation,
                warp,
                lanes,
                completes,
            } => {
                let threads = threads_of_warp(first + warp, *lanes);
                let Some(block) = team.blocks.get_mut(&by.block) else {
                    return;
                };
                match completes {
                    Completes::Group => copies::begin(&mut block.copies, &threads, Place::of(by)),
                    Completes::BulkGroup => copies::begin(&mut block.bulk, &threads, Place::of(by)),
                    Completes::Bytes { barrier, .. } => {
                        let begun = Begun {
                            spot: spot(by, threads),
                            barrier: *barrier,
                            is_complete: false,
                        };
                        team.operations.insert(*operation, begun);
                    }
                    Completes::Arrival { .. } | Completes::Nothing => {}
                }
            }
            SyncEvent::ClusterArrive { lanes, .. } => {
                let threads = threads_of(by, lanes);
                peers::arrive(team, by.block, &threads);
                if let Some(block) = team.blocks.get_mut(&by.block) {
                    block
                        .arrived
                        .extend(threads.iter().map(|thread| (*thread, Place::of(by))));
                }
            }
            SyncEvent::ClusterWait { lanes } => {
                if let Some(block) = team.blocks.get_mut(&by.block) {
                    for thread in threads_of(by, lanes) {
                        block.arrived.remove(&thread);
                    }
                }
            }
            SyncEvent::Fence {
                lanes, ordering, scope, ..
            } => {
                if *ordering != Ordering::Acquire && *scope != Some(Scope::Cta) {
                    peers::flag(team, by.block, &threads_of(by, lanes));
                }
            }
            SyncEvent::Arrive { .. }
            | SyncEvent::Warp { .. }
            | SyncEvent::Collective { .. }
            | SyncEvent::Together { .. }
            | SyncEvent::Mbarrier { .. }
            | SyncEvent::Fabric { .. }
            | SyncEvent::HostCall { .. } => {}
        });
    }

    fn grid(&self, _: u64, event: &GridEvent) {
        match event {
            GridEvent::Block { block, shared, .. } => {
                progress::changed();
                self.begun.fetch_add(1, Relaxed::Relaxed);
                let mut teams = self.teams.write();
                let team = teams.entry(self.cluster_of(*block));
                let team = team.or_insert_with(|| self.spare.lock().pop().unwrap_or_default());
                team.lock().begin(*block, *shared);
            }
            GridEvent::Release { block, barrier } => self.with_team(*block, |team| {
                progress::changed();
                peers::share(team, *block);
                if let Some(here) = team.blocks.get_mut(block) {
                    self.released(here, *block, *barrier);
                }
            }),
            GridEvent::ClusterRelease { first, .. } => self.with_team(*first, peers::release),
            GridEvent::Complete { block, operation, .. } => self.with_team(*block, |team| {
                if let Some(begun) = team.operations.get_mut(operation) {
                    begun.is_complete = true;
                }
            }),
            GridEvent::BlockEnd { block } => self.with_team(*block, |team| self.block_ends(team, *block)),
            GridEvent::Left { block, barriers } => {
                self.with_team(*block, |team| self.left(team, barriers));
                let ended = self.teams.write().remove(&self.cluster_of(*block));
                if let Some(team) = ended {
                    // Nobody looks for it again: whoever had it last did by the number of its cluster.
                    team.lock().clear();
                    self.spare.lock().push(team);
                }
            }
            GridEvent::Launch | GridEvent::End | GridEvent::Transfer { .. } => {}
        }
    }
}
