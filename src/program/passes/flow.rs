//! Control flow of a function: which blocks are reachable, who dominates whom, and the order in which they are laid out.
//!
//! **The order** makes "the fragment with the lowest pc runs next" reconverge at immediate post-dominators: it is
//! topological once loops are collapsed, and every loop is contiguous, innermost loops first (a weak topological order;
//! Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993). Whatever lies on a path from a branch to
//! the place where its sides meet therefore comes before that place. Among blocks that are free to swap, the text's
//! order stands. A loop with several jumps back gets one latch at its end, so that lanes wait there for one another
//! before the next iteration.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::program::ir::{Block, BlockId, Body, End};

const NONE: u32 = u32::MAX;

/// Loops within loops that are told apart; blocks of deeper ones stand in the order of the text. Each level costs a walk
/// over all that it holds, and no program that anybody writes has so many.
const MAX_LOOPS: u32 = 256;

/// Blocks in layout order; unreachable ones are left out. Adds latch blocks to `body`.
pub fn layout(body: &mut Body) -> Vec<BlockId> {
    let mut order = Order::new(body);
    order.run();
    if order.latches.is_empty() {
        return order.out;
    }
    for (header, sources, place) in std::mem::take(&mut order.latches) {
        let latch = body.blocks.len() as BlockId;
        // One of the jumps that it stands for.
        let (span, inlined) = {
            let source = &body.blocks[sources[0] as usize];
            (source.end.span(), source.inlined)
        };
        body.blocks.push(Block {
            insts: Vec::new(),
            end: End::Jump { to: header, span },
            place,
            inlined,
        });
        for source in sources {
            body.blocks[source as usize].end.successors_mut(|to| {
                if *to == header {
                    *to = latch;
                }
            });
        }
    }
    let mut order = Order::new(body);
    order.run();
    order.out
}

struct Order<'a> {
    body: &'a Body,
    /// The set that a block belongs to at present.
    set: Vec<u32>,
    sets: u32,
    /// The component that a block belongs to, while its set is arranged.
    component: Vec<u32>,
    tarjan: Tarjan,
    out: Vec<BlockId>,
    /// Header, blocks that jump back to it, place of the latch.
    latches: Vec<(BlockId, Vec<BlockId>, u64)>,
}

impl<'a> Order<'a> {
    fn new(body: &'a Body) -> Order<'a> {
        let blocks = body.blocks.len();
        Order {
            body,
            set: vec![0; blocks],
            sets: 0,
            component: vec![NONE; blocks],
            tarjan: Tarjan {
                number: vec![NONE; blocks],
                lowest: vec![NONE; blocks],
                ..Tarjan::default()
            },
            out: Vec::with_capacity(blocks),
            latches: Vec::new(),
        }
    }

    fn run(&mut self) {
        let reachable = reachable(self.body);
        self.sets = 1;
        for &block in &reachable {
            self.set[block as usize] = 1;
        }
        // An explicit stack: nesting may be as deep as a hostile text makes it.
        let mut work = vec![Work::Arrange(reachable, NONE, 0)];
        while let Some(step) = work.pop() {
            match step {
                Work::Place(block) => self.out.push(block),
                Work::Arrange(mut members, _, depth) if depth > MAX_LOOPS => {
                    members.sort_unstable_by_key(|&b| (self.body.blocks[b as usize].place, b));
                    self.out.extend(members);
                }
                Work::Arrange(members, header, depth) => {
                    let first = work.len();
                    self.arrange(&members, header, depth, &mut work);
                    work[first..].reverse();
                }
            }
        }
    }

    /// Sorts the strongly connected components of `members` (all of one set), edges into `header` not counted, and adds
    /// what is to be done about each to `steps`.
    fn arrange(&mut self, members: &[BlockId], header: BlockId, depth: u32, steps: &mut Vec<Work>) {
        self.components(members, header);
        let components = std::mem::take(&mut self.tarjan.components);
        let flat = std::mem::take(&mut self.tarjan.members);
        let of = |index: usize| &flat[components[index].clone()];
        for index in 0..components.len() {
            for &block in of(index) {
                self.component[block as usize] = index as u32;
            }
        }
        // Edges between components: (from, into, block that is entered).
        let inside = self.set[members[0] as usize];
        let mut edges: Vec<(u32, u32, BlockId)> = Vec::new();
        let mut incoming = vec![0u32; components.len()];
        for &block in members {
            let from = self.component[block as usize];
            self.body.blocks[block as usize].end.successors(|to| {
                if to == header || self.set[to as usize] != inside {
                    return;
                }
                let into = self.component[to as usize];
                if into != from {
                    incoming[into as usize] += 1;
                    edges.push((from, into, to));
                }
            });
        }
        edges.sort_unstable_by_key(|&(from, ..)| from);
        // Of each component's entries, the first in the text.
        let entered = |block: BlockId| (self.body.blocks[block as usize].place, block);
        let mut entry: Vec<Option<(u64, BlockId)>> = vec![None; components.len()];
        for &(_, into, to) in &edges {
            let entry = &mut entry[into as usize];
            *entry = Some(entry.map_or(entered(to), |first| first.min(entered(to))));
        }
        let places: Vec<u64> = (0..components.len())
            .map(|index| {
                let places = of(index).iter().map(|&b| self.body.blocks[b as usize].place);
                places.min().unwrap_or(0)
            })
            .collect();
        let mut ready: BinaryHeap<Reverse<(u64, usize)>> = (0..components.len())
            .filter(|&i| incoming[i] == 0)
            .map(|i| Reverse((places[i], i)))
            .collect();
        while let Some(Reverse((_, index))) = ready.pop() {
            let first = edges.partition_point(|&(from, ..)| (from as usize) < index);
            for &(_, into, _) in edges[first..].iter().take_while(|&&(from, ..)| from as usize == index) {
                let into = into as usize;
                incoming[into] -= 1;
                if incoming[into] == 0 {
                    ready.push(Reverse((places[into], into)));
                }
            }
            let component = of(index);
            let first = component[0];
            let mut loops = component.len() > 1;
            if !loops {
                self.body.blocks[first as usize]
                    .end
                    .successors(|to| loops |= to == first && to != header);
            }
            if !loops {
                steps.push(Work::Place(first));
                continue;
            }
            // The loop's header: where it is entered (the entry block itself has no predecessor outside).
            let start = component.iter().copied().filter(|&b| b == 0).map(entered).next();
            let head = entry[index]
                .into_iter()
                .chain(start)
                .min()
                .map_or(first, |(_, block)| block);
            self.latch(component, head);
            if component.len() == 1 {
                steps.push(Work::Place(first));
            } else {
                self.sets += 1;
                for &block in component {
                    self.set[block as usize] = self.sets;
                }
                steps.push(Work::Arrange(component.to_vec(), head, depth + 1));
            }
        }
    }

    fn latch(&mut self, component: &[BlockId], header: BlockId) {
        let mut sources = Vec::new();
        let mut last = 0;
        for &block in component {
            let block_ref = &self.body.blocks[block as usize];
            last = last.max(block_ref.place);
            let mut back = false;
            block_ref.end.successors(|to| back |= to == header);
            if back {
                sources.push(block);
            }
        }
        if sources.len() > 1 {
            self.latches.push((header, sources, last + 1));
        }
    }

    /// Tarjan's algorithm on the blocks of `members`' set, with a stack of its own.
    fn components(&mut self, members: &[BlockId], header: BlockId) {
        let inside = self.set[members[0] as usize];
        let mut calls: Vec<(BlockId, Vec<BlockId>, usize)> = Vec::new();
        for &block in members {
            self.tarjan.number[block as usize] = NONE;
        }
        self.tarjan.entered = 0;
        for &root in members {
            if self.tarjan.number[root as usize] != NONE {
                continue;
            }
            self.tarjan.enter(root);
            calls.push((root, self.within(root, inside, header), 0));
            while let Some((block, successors, next)) = calls.last_mut() {
                let block = *block;
                if let Some(&to) = successors.get(*next) {
                    *next += 1;
                    let state = &mut self.tarjan;
                    if state.number[to as usize] == NONE {
                        state.enter(to);
                        calls.push((to, self.within(to, inside, header), 0));
                    } else if state.lowest[to as usize] != NONE {
                        state.lower(block, state.number[to as usize]);
                    }
                } else {
                    calls.pop();
                    if let Some((parent, ..)) = calls.last() {
                        self.tarjan.lower(*parent, self.tarjan.lowest[block as usize]);
                    }
                    self.tarjan.close(block);
                }
            }
        }
    }

    fn within(&self, block: BlockId, inside: u32, header: BlockId) -> Vec<BlockId> {
        let mut list = Vec::new();
        self.body.blocks[block as usize].end.successors(|to| {
            if to != header && self.set[to as usize] == inside {
                list.push(to);
            }
        });
        list
    }
}

enum Work {
    Place(BlockId),
    /// Members, header, and how many loops they are in.
    Arrange(Vec<BlockId>, BlockId, u32),
}

/// The arrays are as long as there are blocks, and serve one set after the other.
#[derive(Default)]
struct Tarjan {
    /// Order of discovery; [`NONE`]: not yet.
    number: Vec<u32>,
    /// The lowest number that can be reached from a block on the stack; [`NONE`]: not on it.
    lowest: Vec<u32>,
    entered: u32,
    stack: Vec<BlockId>,
    /// Which of the members each component has.
    components: Vec<Range<usize>>,
    members: Vec<BlockId>,
}

impl Tarjan {
    fn enter(&mut self, block: BlockId) {
        self.number[block as usize] = self.entered;
        self.lowest[block as usize] = self.entered;
        self.entered += 1;
        self.stack.push(block);
    }

    fn lower(&mut self, block: BlockId, low: u32) {
        let lowest = &mut self.lowest[block as usize];
        *lowest = low.min(*lowest);
    }

    fn close(&mut self, block: BlockId) {
        if self.number[block as usize] != self.lowest[block as usize] {
            return;
        }
        let first = self.members.len();
        while let Some(member) = self.stack.pop() {
            self.lowest[member as usize] = NONE;
            self.members.push(member);
            if member == block {
                break;
            }
        }
        self.components.push(first..self.members.len());
    }
}

/// Blocks that the entry reaches, in the order of their numbers.
pub fn reachable(body: &Body) -> Vec<BlockId> {
    let mut seen = vec![false; body.blocks.len()];
    let mut work = vec![0];
    seen[0] = true;
    while let Some(block) = work.pop() {
        body.blocks[block as usize].end.successors(|to| {
            if !std::mem::replace(&mut seen[to as usize], true) {
                work.push(to);
            }
        });
    }
    (0..body.blocks.len() as u32).filter(|&b| seen[b as usize]).collect()
}
