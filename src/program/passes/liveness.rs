//! Which registers hold a value that somebody may still read, and from where to where in the laid-out code.
//!
//! Liveness flows over the control-flow graph. Lanes that have diverged need no more than that: each lane follows some
//! path of the graph, and what another fragment writes is masked to its own lanes.

use crate::program::ir::{BlockId, Body, Register, Role};

/// Registers live at the borders of blocks. Only those that are read in some block before being written there take part;
/// all others live and die inside one block.
pub struct Flow {
    /// Number of each register that takes part.
    number: Vec<u32>,
    registers: Vec<Register>,
    words: usize,
    /// By position in the order.
    live_in: Vec<u64>,
    live_out: Vec<u64>,
}

const LOCAL: u32 = u32::MAX;

impl Flow {
    pub fn of(body: &Body, order: &[BlockId]) -> Flow {
        let mut number = vec![LOCAL; body.registers.len()];
        let mut registers: Vec<Register> = Vec::new();
        let mut written_in = vec![u32::MAX; body.registers.len()];
        for (index, &block) in order.iter().enumerate() {
            let index = index as u32;
            let mut read = |register: Register, written: bool| {
                let number = &mut number[register as usize];
                if !written && *number == LOCAL {
                    *number = registers.len() as u32;
                    registers.push(register);
                }
            };
            let b = &body.blocks[block as usize];
            for inst in &b.insts {
                let guarded = inst.guard.is_some();
                inst.regs(|reg, role| {
                    let written = &mut written_in[reg.number as usize];
                    if role == Role::Use || guarded {
                        read(reg.number, *written == index);
                    }
                    if role == Role::Def && !guarded {
                        *written = index;
                    }
                });
            }
            if let Some(register) = b.end.register() {
                read(register, written_in[register as usize] == index);
            }
        }
        let words = registers.len().div_ceil(64);
        let mut flow = Flow {
            number,
            registers,
            words,
            live_in: vec![0; words * order.len()],
            live_out: vec![0; words * order.len()],
        };
        flow.solve(body, order);
        flow
    }

    fn solve(&mut self, body: &Body, order: &[BlockId]) {
        let (words, blocks) = (self.words, order.len());
        let mut place = vec![u32::MAX; body.blocks.len()];
        for (index, &block) in order.iter().enumerate() {
            place[block as usize] = index as u32;
        }
        let mut reads = vec![0u64; words * blocks];
        let mut writes = vec![0u64; words * blocks];
        let mut predecessors: Vec<Vec<u32>> = vec![Vec::new(); blocks];
        for (index, &block) in order.iter().enumerate() {
            let base = index * words;
            let number = &self.number;
            let at = |register: Register| match number[register as usize] {
                LOCAL => None,
                n => Some((base + n as usize / 64, 1u64 << (n % 64))),
            };
            let b = &body.blocks[block as usize];
            for inst in &b.insts {
                let guarded = inst.guard.is_some();
                inst.regs(|reg, role| {
                    let Some((word, bit)) = at(reg.number) else { return };
                    if (role == Role::Use || guarded) && writes[word] & bit == 0 {
                        reads[word] |= bit;
                    }
                    if role == Role::Def && !guarded {
                        writes[word] |= bit;
                    }
                });
            }
            if let Some((word, bit)) = b.end.register().and_then(at)
                && writes[word] & bit == 0
            {
                reads[word] |= bit;
            }
            b.end
                .successors(|to| predecessors[place[to as usize] as usize].push(index as u32));
        }
        self.live_in.copy_from_slice(&reads);
        let mut work: Vec<u32> = (0..blocks as u32).collect();
        let mut queued = vec![true; blocks];
        while let Some(index) = work.pop() {
            queued[index as usize] = false;
            let index = index as usize;
            body.blocks[order[index] as usize].end.successors(|to| {
                let to = place[to as usize] as usize;
                for word in 0..words {
                    self.live_out[index * words + word] |= self.live_in[to * words + word];
                }
            });
            let mut changed = false;
            for word in index * words..(index + 1) * words {
                let new = reads[word] | (self.live_out[word] & !writes[word]);
                changed |= new != self.live_in[word];
                self.live_in[word] = new;
            }
            if changed {
                for &p in &predecessors[index] {
                    if !std::mem::replace(&mut queued[p as usize], true) {
                        work.push(p);
                    }
                }
            }
        }
    }

    fn members(&self, set: &[u64], index: usize, mut f: impl FnMut(Register)) {
        for word in 0..self.words {
            let mut bits = set[index * self.words + word];
            while bits != 0 {
                f(self.registers[word * 64 + bits.trailing_zeros() as usize]);
                bits &= bits - 1;
            }
        }
    }

    /// Registers live on entry to the block at this position of the order.
    pub fn live_in(&self, index: usize, f: impl FnMut(Register)) {
        self.members(&self.live_in, index, f);
    }

    /// Registers live behind its end.
    pub fn live_out(&self, index: usize, f: impl FnMut(Register)) {
        self.members(&self.live_out, index, f);
    }
}
