//! Which registers hold a value that somebody may still read, and from where to where in the laid-out code.
//!
//! Liveness flows over the control-flow graph. Lanes that have diverged need no more than that: each lane follows some
//! path of the graph, and what another fragment writes is masked to its own lanes.

use crate::program::ir::{BlockId, Body, Register, Role};

/// Registers that are live at the borders of blocks: those that are read in some block before being written there. All
/// others live and die inside one block, or hold their value from the start to the end.
///
/// Where they are live is found for 64 registers at a time, walking only the blocks in which one of them is: a table of
/// all registers and all blocks would have no room for a large function.
pub struct Flow {
    /// Number of each register that takes part.
    number: Vec<u32>,
    registers: Vec<Register>,
    /// Blocks that read a register before they write it, and blocks that write it, by its number. Blocks are their
    /// positions in the order.
    reads: Lists,
    writes: Lists,
    predecessors: Lists,
    blocks: usize,
}

const LOCAL: u32 = u32::MAX;

/// Lists of numbers, by number.
struct Lists {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    fn of(count: usize, pairs: &[(u32, u32)]) -> Lists {
        let mut starts = vec![0u32; count + 1];
        for &(key, _) in pairs {
            starts[key as usize + 1] += 1;
        }
        for key in 0..count {
            starts[key + 1] += starts[key];
        }
        let mut next = starts.clone();
        let mut items = vec![0; pairs.len()];
        for &(key, item) in pairs {
            items[next[key as usize] as usize] = item;
            next[key as usize] += 1;
        }
        Lists { starts, items }
    }

    fn of_key(&self, key: u32) -> &[u32] {
        &self.items[self.starts[key as usize] as usize..self.starts[key as usize + 1] as usize]
    }
}

/// Where up to 64 registers are live, a bit for each.
pub struct Group<'g> {
    /// Their numbers.
    pub members: &'g [u32],
    /// Positions of the blocks at whose borders one of them is live, ascending.
    pub blocks: &'g [u32],
    pub live_in: &'g [u64],
    pub live_out: &'g [u64],
}

impl Group<'_> {
    pub fn is_live_out(&self, member: usize, position: u32) -> bool {
        self.live_out[position as usize] >> member & 1 != 0
    }
}

impl Flow {
    pub fn of(body: &Body, order: &[BlockId]) -> Flow {
        let mut flow = Flow {
            number: vec![LOCAL; body.registers.len()],
            registers: Vec::new(),
            reads: Lists::of(0, &[]),
            writes: Lists::of(0, &[]),
            predecessors: Lists::of(0, &[]),
            blocks: order.len(),
        };
        // The last block that read a register from outside, and the last one that wrote it.
        let mut read_in = vec![u32::MAX; body.registers.len()];
        let mut written_in = vec![u32::MAX; body.registers.len()];
        let mut place = vec![u32::MAX; body.blocks.len()];
        for (index, &block) in order.iter().enumerate() {
            place[block as usize] = index as u32;
        }
        let (mut reads, mut writes, mut edges) = (Vec::new(), Vec::new(), Vec::new());
        for (index, &block) in order.iter().enumerate() {
            let index = index as u32;
            let mut read = |register: Register, written: bool| {
                // What is set before the code runs keeps its slot to the end: nobody asks where it is live.
                if body.is_fixed(register)
                    || written
                    || std::mem::replace(&mut read_in[register as usize], index) == index
                {
                    return;
                }
                let number = &mut flow.number[register as usize];
                if *number == LOCAL {
                    *number = flow.registers.len() as u32;
                    flow.registers.push(register);
                }
                reads.push((*number, index));
            };
            let b = &body.blocks[block as usize];
            for inst in &b.insts {
                let guarded = inst.guard.is_some();
                inst.regs(|reg, role| {
                    let written = &mut written_in[reg.number as usize];
                    if role == Role::Use || guarded {
                        read(reg.number, *written == index);
                    }
                    if role == Role::Def && !guarded && std::mem::replace(written, index) != index {
                        writes.push((reg.number, index));
                    }
                });
            }
            if let Some(register) = b.end.register() {
                read(register, written_in[register as usize] == index);
            }
            b.end.successors(|to| edges.push((place[to as usize], index)));
        }
        writes.retain_mut(|(register, _)| {
            *register = flow.number[*register as usize];
            *register != LOCAL
        });
        flow.reads = Lists::of(flow.registers.len(), &reads);
        flow.writes = Lists::of(flow.registers.len(), &writes);
        flow.predecessors = Lists::of(order.len(), &edges);
        flow
    }

    /// How many registers may be live at a border.
    pub fn count(&self) -> u32 {
        self.registers.len() as u32
    }

    /// The register with this number.
    pub fn register(&self, number: u32) -> Register {
        self.registers[number as usize]
    }

    /// The number of a register that may be live at a border.
    pub fn number(&self, register: Register) -> Option<u32> {
        Some(self.number[register as usize]).filter(|&number| number != LOCAL)
    }

    /// Finds where these registers (by number) are live, and hands them over group by group.
    pub fn solve(&self, numbers: &[u32], mut f: impl FnMut(&Group<'_>)) {
        let mut solver = Solver {
            reads: vec![0; self.blocks],
            writes: vec![0; self.blocks],
            live_in: vec![0; self.blocks],
            live_out: vec![0; self.blocks],
            touched: Vec::new(),
            dirty: vec![0; self.blocks.div_ceil(64)],
        };
        for members in numbers.chunks(64) {
            for (bit, &number) in members.iter().enumerate() {
                for &block in self.writes.of_key(number) {
                    solver.writes[block as usize] |= 1 << bit;
                }
                for &block in self.reads.of_key(number) {
                    solver.reads[block as usize] |= 1 << bit;
                    solver.reach(block, 0);
                }
            }
            solver.run(&self.predecessors);
            solver.touched.sort_unstable();
            f(&Group {
                members,
                blocks: &solver.touched,
                live_in: &solver.live_in,
                live_out: &solver.live_out,
            });
            for block in solver.touched.drain(..) {
                for set in [&mut solver.reads, &mut solver.live_in, &mut solver.live_out] {
                    set[block as usize] = 0;
                }
            }
            for &number in members {
                for &block in self.writes.of_key(number) {
                    solver.writes[block as usize] = 0;
                }
            }
        }
    }
}

/// Which registers are live before instruction `index` of a block, or before the jumps at its end if it has no more of them: by
/// register. The order of `flow` is that of the body's blocks. What is set before the code runs counts as live nowhere.
pub fn before(body: &Body, flow: &Flow, (block, index): (BlockId, usize)) -> Vec<bool> {
    let mut live = vec![false; body.registers.len()];
    let numbers: Vec<u32> = (0..flow.count()).collect();
    flow.solve(&numbers, |group| {
        each(group.live_out[block as usize], |bit| {
            live[flow.register(group.members[bit as usize]) as usize] = true;
        });
    });
    let block = &body.blocks[block as usize];
    if let Some(register) = block.end.register() {
        live[register as usize] = true;
    }
    for inst in block.insts.get(index..).unwrap_or_default().iter().rev() {
        let guarded = inst.guard.is_some();
        inst.regs(|reg, role| {
            if role == Role::Def && !guarded {
                live[reg.number as usize] = false;
            }
        });
        inst.regs(|reg, role| {
            if role == Role::Use || guarded {
                live[reg.number as usize] = true;
            }
        });
    }
    for (register, live) in live.iter_mut().enumerate() {
        *live &= !body.is_fixed(register as Register);
    }
    live
}

/// The sets of one group, by position.
struct Solver {
    reads: Vec<u64>,
    writes: Vec<u64>,
    live_in: Vec<u64>,
    live_out: Vec<u64>,
    /// Blocks that are not empty any more.
    touched: Vec<u32>,
    /// Blocks whose predecessors have not heard of a change, a bit for each.
    dirty: Vec<u64>,
}

impl Solver {
    /// `live` more is live behind a block. True if its predecessors have to hear of it.
    fn reach(&mut self, block: u32, live: u64) -> bool {
        let at = block as usize;
        if self.live_in[at] | self.live_out[at] == 0 {
            self.touched.push(block);
        }
        self.live_out[at] |= live;
        let new = self.reads[at] | (self.live_out[at] & !self.writes[at]);
        let changed = new != self.live_in[at];
        self.live_in[at] = new;
        if changed {
            self.dirty[at / 64] |= 1 << (at % 64);
        }
        changed
    }

    /// From the last block to the first, until nothing changes: the order is topological but for jumps back.
    fn run(&mut self, predecessors: &Lists) {
        let mut from = self.dirty.len();
        while from > 0 {
            let mut word = from;
            from = 0;
            while word > 0 {
                word -= 1;
                while let Some(bit) = self.dirty[word].checked_ilog2() {
                    self.dirty[word] &= !(1 << bit);
                    let block = (word * 64) as u32 + bit;
                    let live = self.live_in[block as usize];
                    for &p in predecessors.of_key(block) {
                        if live & !self.live_out[p as usize] != 0 && self.reach(p, live) && p as usize / 64 > word {
                            from = from.max(p as usize / 64 + 1);
                        }
                    }
                }
            }
        }
    }
}

/// Calls `f` with the number of each bit that is set.
pub fn each(mut bits: u64, mut f: impl FnMut(u32)) {
    while bits != 0 {
        f(bits.trailing_zeros());
        bits &= bits - 1;
    }
}
