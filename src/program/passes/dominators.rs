//! Which blocks every path to a block passes, and where the sides of a branch meet for good.

use crate::program::ir::{BlockId, Body, End};

const NONE: u32 = u32::MAX;

/// Dominators, answering "does every path to `b` pass `a`?".
pub struct Dominators {
    /// Entry and leaving numbers of a walk of the dominator tree.
    span: Vec<(u32, u32)>,
}

impl Dominators {
    pub fn of(body: &Body) -> Dominators {
        let count = body.blocks.len();
        let above = immediate(&successors(body), 0);
        let mut children: Vec<Vec<BlockId>> = vec![Vec::new(); count];
        for (block, &above) in above
            .iter()
            .enumerate()
            .filter(|&(block, &above)| above != NONE && block != 0)
        {
            children[above as usize].push(block as BlockId);
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

/// Where the sides of a branch meet for good.
pub struct PostDominators {
    immediate: Vec<BlockId>,
}

impl PostDominators {
    /// The dominators of the reversed graph, whose entry is the end of the function.
    pub fn of(body: &Body) -> PostDominators {
        let exit = body.blocks.len();
        let mut reversed: Vec<Vec<BlockId>> = vec![Vec::new(); exit + 1];
        for (number, block) in body.blocks.iter().enumerate() {
            block.end.successors(|to| reversed[to as usize].push(number as BlockId));
            // A guarded operation that leaves takes some lanes away; the others meet without them.
            if matches!(block.end, End::Stop) {
                reversed[exit].push(number as BlockId);
            }
        }
        let mut immediate = immediate(&reversed, exit as BlockId);
        immediate.truncate(exit);
        PostDominators { immediate }
    }

    /// The first block that every path from here passes; `None` if there is none, or if a path never ends.
    pub fn of_block(&self, block: BlockId) -> Option<BlockId> {
        Some(self.immediate[block as usize]).filter(|&to| (to as usize) < self.immediate.len())
    }
}

fn successors(body: &Body) -> Vec<Vec<BlockId>> {
    let of = |block: &crate::program::ir::Block| {
        let mut list = Vec::new();
        block.end.successors(|to| list.push(to));
        list
    };
    body.blocks.iter().map(of).collect()
}

/// The immediate dominator of each node of a graph; `NONE` for those that `root` does not reach, and for `root`.
///
/// Lengauer and Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph", 1979, in its simple form.
fn immediate(successors: &[Vec<BlockId>], root: BlockId) -> Vec<BlockId> {
    let (order, parent) = preorder(successors, root);
    let mut number = vec![NONE; successors.len()];
    for (i, &block) in order.iter().enumerate() {
        number[block as usize] = i as u32;
    }
    // From here on nodes are their numbers.
    let mut predecessors: Vec<Vec<u32>> = vec![Vec::new(); order.len()];
    for (i, &block) in order.iter().enumerate() {
        for &to in &successors[block as usize] {
            predecessors[number[to as usize] as usize].push(i as u32);
        }
    }
    let mut semi: Vec<u32> = (0..order.len() as u32).collect();
    let mut forest = Forest {
        label: semi.clone(),
        ancestor: parent.clone(),
        path: Vec::new(),
    };
    let mut above = vec![0u32; order.len()];
    // Nodes by their semidominators, until those are linked.
    let mut waiting: Vec<Vec<u32>> = vec![Vec::new(); order.len()];
    for block in (1..order.len() as u32).rev() {
        let at = block as usize;
        for &p in &predecessors[at] {
            let best = forest.best(p, block + 1, &semi);
            semi[at] = semi[at].min(semi[best as usize]);
        }
        waiting[semi[at] as usize].push(block);
        let over = parent[at];
        for below in std::mem::take(&mut waiting[over as usize]) {
            let best = forest.best(below, block, &semi);
            let lower = semi[best as usize] < semi[below as usize];
            above[below as usize] = if lower { best } else { over };
        }
    }
    for block in 1..order.len() {
        if above[block] != semi[block] {
            above[block] = above[above[block] as usize];
        }
    }
    let mut immediate = vec![NONE; successors.len()];
    for (i, &block) in order.iter().enumerate().skip(1) {
        immediate[block as usize] = order[above[i] as usize];
    }
    immediate
}

/// A depth-first tree as far as the blocks from a certain number on are linked to their parents, and on the path of each
/// the block with the lowest semidominator. Paths are shortened as they are asked for.
struct Forest {
    label: Vec<u32>,
    ancestor: Vec<u32>,
    path: Vec<u32>,
}

impl Forest {
    /// Of the linked blocks on the tree's path from `block` up, the one with the lowest semidominator; `block` if it has
    /// no link. Blocks from `linked` on have one.
    fn best(&mut self, block: u32, linked: u32, semi: &[u32]) -> u32 {
        let mut at = block;
        while self.ancestor[at as usize] >= linked {
            self.path.push(at);
            at = self.ancestor[at as usize];
        }
        // From the top down.
        while let Some(below) = self.path.pop() {
            let (b, a) = (below as usize, self.ancestor[below as usize] as usize);
            if semi[self.label[a] as usize] < semi[self.label[b] as usize] {
                self.label[b] = self.label[a];
            }
            self.ancestor[b] = self.ancestor[a];
        }
        self.label[block as usize]
    }
}

/// Nodes that `root` reaches, in the order of a depth-first walk, and the number of each one's parent in it.
fn preorder(successors: &[Vec<BlockId>], root: BlockId) -> (Vec<BlockId>, Vec<u32>) {
    let (mut order, mut parents) = (Vec::new(), Vec::new());
    let mut seen = vec![false; successors.len()];
    let mut work = vec![(root, 0)];
    while let Some((block, parent)) = work.pop() {
        if std::mem::replace(&mut seen[block as usize], true) {
            continue;
        }
        let number = order.len() as u32;
        order.push(block);
        parents.push(parent);
        let next = successors[block as usize].iter().filter(|&&to| !seen[to as usize]);
        work.extend(next.map(|&to| (to, number)));
    }
    (order, parents)
}
