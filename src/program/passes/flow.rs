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

use crate::program::ir::{Block, BlockId, Body, End};

const NONE: u32 = u32::MAX;

/// Blocks in layout order; unreachable ones are left out. Adds latch blocks to `body`.
pub fn layout(body: &mut Body) -> Vec<BlockId> {
    let mut order = Order::new(body);
    order.run();
    if order.latches.is_empty() {
        return order.out;
    }
    for (header, sources, place) in std::mem::take(&mut order.latches) {
        let latch = body.blocks.len() as BlockId;
        body.blocks.push(Block {
            insts: Vec::new(),
            end: End::Jump(header),
            place,
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
    out: Vec<BlockId>,
    /// Header, blocks that jump back to it, place of the latch.
    latches: Vec<(BlockId, Vec<BlockId>, u64)>,
}

impl<'a> Order<'a> {
    fn new(body: &'a Body) -> Order<'a> {
        Order {
            body,
            set: vec![0; body.blocks.len()],
            sets: 0,
            out: Vec::new(),
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
        let mut work = vec![Work::Arrange(reachable, NONE)];
        while let Some(step) = work.pop() {
            match step {
                Work::Place(block) => self.out.push(block),
                Work::Arrange(members, header) => {
                    let mut steps = self.arrange(&members, header);
                    steps.reverse();
                    work.extend(steps);
                }
            }
        }
    }

    /// Sorts the strongly connected components of `members` (all of one set), edges into `header` not counted.
    fn arrange(&mut self, members: &[BlockId], header: BlockId) -> Vec<Work> {
        let components = self.components(members, header);
        let mut component_of = std::collections::HashMap::with_capacity(members.len());
        for (index, component) in components.iter().enumerate() {
            for &block in component {
                component_of.insert(block, index);
            }
        }
        let mut incoming = vec![0u32; components.len()];
        let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); components.len()];
        let mut entries: Vec<Vec<BlockId>> = vec![Vec::new(); components.len()];
        for &block in members {
            let from = component_of[&block];
            self.body.blocks[block as usize].end.successors(|to| {
                if to == header {
                    return;
                }
                if let Some(&into) = component_of.get(&to)
                    && into != from
                {
                    incoming[into] += 1;
                    outgoing[from].push(into);
                    entries[into].push(to);
                }
            });
        }
        let place = |component: &Vec<BlockId>| {
            component
                .iter()
                .map(|&b| self.body.blocks[b as usize].place)
                .min()
                .unwrap_or(0)
        };
        let places: Vec<u64> = components.iter().map(place).collect();
        let mut ready: BinaryHeap<Reverse<(u64, usize)>> = (0..components.len())
            .filter(|&i| incoming[i] == 0)
            .map(|i| Reverse((places[i], i)))
            .collect();
        let mut steps = Vec::with_capacity(components.len());
        while let Some(Reverse((_, index))) = ready.pop() {
            for &into in &outgoing[index] {
                incoming[into] -= 1;
                if incoming[into] == 0 {
                    ready.push(Reverse((places[into], into)));
                }
            }
            let component = &components[index];
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
            let head = entries[index]
                .iter()
                .copied()
                .chain(component.iter().copied().filter(|&b| b == 0))
                .min_by_key(|&b| self.body.blocks[b as usize].place)
                .unwrap_or(first);
            self.latch(component, head);
            if component.len() == 1 {
                steps.push(Work::Place(first));
            } else {
                self.sets += 1;
                for &block in component {
                    self.set[block as usize] = self.sets;
                }
                steps.push(Work::Arrange(component.clone(), head));
            }
        }
        steps
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
    fn components(&self, members: &[BlockId], header: BlockId) -> Vec<Vec<BlockId>> {
        let inside = self.set[members[0] as usize];
        let count = self.body.blocks.len();
        let mut state = Tarjan {
            index: std::collections::HashMap::with_capacity(members.len()),
            on_stack: vec![false; count],
            stack: Vec::new(),
            components: Vec::new(),
        };
        for &root in members {
            if state.index.contains_key(&root) {
                continue;
            }
            let mut calls: Vec<(BlockId, Vec<BlockId>, usize)> = Vec::new();
            state.enter(root);
            calls.push((root, self.within(root, inside, header), 0));
            while let Some((block, successors, next)) = calls.last_mut() {
                if *next < successors.len() {
                    let to = successors[*next];
                    *next += 1;
                    if !state.index.contains_key(&to) {
                        state.enter(to);
                        calls.push((to, self.within(to, inside, header), 0));
                    } else if state.on_stack[to as usize] {
                        let reached = state.index[&to].0;
                        let block = *block;
                        state.lower(block, reached);
                    }
                } else {
                    let block = *block;
                    calls.pop();
                    let low = state.index[&block].1;
                    if let Some((parent, ..)) = calls.last() {
                        let parent = *parent;
                        state.lower(parent, low);
                    }
                    state.close(block);
                }
            }
        }
        state.components
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
    Arrange(Vec<BlockId>, BlockId),
}

struct Tarjan {
    /// (order of discovery, lowest reachable).
    index: std::collections::HashMap<BlockId, (u32, u32)>,
    on_stack: Vec<bool>,
    stack: Vec<BlockId>,
    components: Vec<Vec<BlockId>>,
}

impl Tarjan {
    fn enter(&mut self, block: BlockId) {
        let number = self.index.len() as u32;
        self.index.insert(block, (number, number));
        self.stack.push(block);
        self.on_stack[block as usize] = true;
    }

    fn lower(&mut self, block: BlockId, low: u32) {
        if let Some(entry) = self.index.get_mut(&block) {
            entry.1 = entry.1.min(low);
        }
    }

    fn close(&mut self, block: BlockId) {
        let (number, low) = self.index[&block];
        if number != low {
            return;
        }
        let mut component = Vec::new();
        while let Some(member) = self.stack.pop() {
            self.on_stack[member as usize] = false;
            component.push(member);
            if member == block {
                break;
            }
        }
        self.components.push(component);
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

/// Immediate dominators, answering "does every path to `b` pass `a`?".
pub struct Dominators {
    /// Entry and leaving numbers of a walk of the dominator tree.
    span: Vec<(u32, u32)>,
}

impl Dominators {
    /// Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
    pub fn of(body: &Body) -> Dominators {
        let count = body.blocks.len();
        let post = postorder(body);
        let mut number = vec![NONE; count];
        for (i, &block) in post.iter().enumerate() {
            number[block as usize] = i as u32;
        }
        let mut predecessors: Vec<Vec<BlockId>> = vec![Vec::new(); count];
        for &block in &post {
            body.blocks[block as usize]
                .end
                .successors(|to| predecessors[to as usize].push(block));
        }
        let mut idom = vec![NONE; count];
        idom[0] = 0;
        let mut changed = true;
        while changed {
            changed = false;
            for &block in post.iter().rev().filter(|&&b| b != 0) {
                let mut new = NONE;
                for &p in &predecessors[block as usize] {
                    if idom[p as usize] == NONE {
                        continue;
                    }
                    new = if new == NONE { p } else { meet(&idom, &number, p, new) };
                }
                if idom[block as usize] != new {
                    idom[block as usize] = new;
                    changed = true;
                }
            }
        }
        let mut children: Vec<Vec<BlockId>> = vec![Vec::new(); count];
        for &block in post.iter().rev().filter(|&&b| b != 0) {
            children[idom[block as usize] as usize].push(block);
        }
        let mut span = vec![(NONE, 0); count];
        let mut clock = 0;
        let mut work = vec![(0u32, false)];
        while let Some((block, leaving)) = work.pop() {
            if leaving {
                span[block as usize].1 = clock;
                continue;
            }
            span[block as usize].0 = clock;
            clock += 1;
            work.push((block, true));
            work.extend(children[block as usize].iter().map(|&c| (c, false)));
        }
        Dominators { span }
    }

    /// Every path from the entry to `b` passes `a` (a block dominates itself).
    pub fn dominates(&self, a: BlockId, b: BlockId) -> bool {
        let (a, b) = (self.span[a as usize], self.span[b as usize]);
        a.0 != NONE && b.0 != NONE && a.0 <= b.0 && b.0 < a.1
    }
}

fn meet(idom: &[u32], number: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        while number[a as usize] < number[b as usize] {
            a = idom[a as usize];
        }
        while number[b as usize] < number[a as usize] {
            b = idom[b as usize];
        }
    }
    a
}

fn postorder(body: &Body) -> Vec<BlockId> {
    let mut seen = vec![false; body.blocks.len()];
    let mut out = Vec::new();
    let successors = |block: BlockId| {
        let mut list = Vec::new();
        body.blocks[block as usize].end.successors(|to| list.push(to));
        list
    };
    seen[0] = true;
    let mut work = vec![(0u32, successors(0), 0usize)];
    while let Some((block, list, next)) = work.last_mut() {
        if let Some(&to) = list.get(*next) {
            *next += 1;
            if !std::mem::replace(&mut seen[to as usize], true) {
                work.push((to, successors(to), 0));
            }
        } else {
            out.push(*block);
            work.pop();
        }
    }
    out
}

/// Where the sides of a branch meet for good.
pub struct PostDominators {
    immediate: Vec<BlockId>,
}

impl PostDominators {
    /// The algorithm of [`Dominators`] on the reversed graph, whose entry is the end of the function.
    pub fn of(body: &Body) -> PostDominators {
        let count = body.blocks.len();
        let exit = count;
        let mut predecessors: Vec<Vec<BlockId>> = vec![Vec::new(); count + 1];
        let mut successors: Vec<Vec<BlockId>> = vec![Vec::new(); count];
        for (number, block) in body.blocks.iter().enumerate() {
            block.end.successors(|to| {
                successors[number].push(to);
                predecessors[to as usize].push(number as BlockId);
            });
            // A guarded operation that leaves takes some lanes away; the others meet without them.
            if matches!(block.end, End::Stop) {
                successors[number].push(exit as BlockId);
                predecessors[exit].push(number as BlockId);
            }
        }
        // A walk from the exit along predecessors, children first.
        let mut post = Vec::with_capacity(count + 1);
        let mut seen = vec![false; count + 1];
        seen[exit] = true;
        let mut work = vec![(exit as BlockId, 0usize)];
        while let Some((block, next)) = work.last_mut() {
            if let Some(&to) = predecessors[*block as usize].get(*next) {
                *next += 1;
                if !std::mem::replace(&mut seen[to as usize], true) {
                    work.push((to, 0));
                }
            } else {
                post.push(*block);
                work.pop();
            }
        }
        let mut number = vec![NONE; count + 1];
        for (i, &block) in post.iter().enumerate() {
            number[block as usize] = i as u32;
        }
        let mut immediate = vec![NONE; count + 1];
        immediate[exit] = exit as BlockId;
        let mut changed = true;
        while changed {
            changed = false;
            for &block in post.iter().rev().filter(|&&b| b as usize != exit) {
                let mut new = NONE;
                for &to in &successors[block as usize] {
                    if immediate[to as usize] == NONE {
                        continue;
                    }
                    new = if new == NONE {
                        to
                    } else {
                        meet(&immediate, &number, to, new)
                    };
                }
                if immediate[block as usize] != new {
                    immediate[block as usize] = new;
                    changed = true;
                }
            }
        }
        immediate.truncate(count);
        for block in &mut immediate {
            if *block as usize >= count {
                *block = NONE;
            }
        }
        PostDominators { immediate }
    }

    /// The first block that every path from here passes; `None` if there is none, or if a path never ends.
    pub fn of_block(&self, block: BlockId) -> Option<BlockId> {
        Some(self.immediate[block as usize]).filter(|&to| to != NONE)
    }
}
