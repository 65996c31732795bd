//! What of a grid starts together: a block, or the blocks of a cluster.
//!
//! The blocks of a cluster run on one thread and take turns, so that their shared memory is one thread's business.
//! They end together: windows of those that have exited stay as long as one block can name them, and nobody else gets
//! them.

use std::cell::Cell;
use std::ops::Range;

use super::block::{self, Block, BlockEnv, Turn};
use super::cause::Cause;
use super::grid::Form;
use super::interp::Located;
use super::schedule::{Schedule, Whom};

/// The blocks that run in one seat, by rank, as a rule a single one.
pub struct Team<'l> {
    blocks: Vec<Block<'l>>,
    /// The block that ran last.
    current: usize,
    /// The block that has what goes on beside all of them.
    holder: usize,
}

impl<'l> Team<'l> {
    pub fn new(places: impl Iterator<Item = BlockEnv<'l>>) -> Team<'l> {
        let mut blocks: Vec<Block<'l>> = places.map(Block::new).collect();
        // Blocks of a pair reach each other's tensor memory.
        if let Some((first, others)) = blocks.split_first_mut() {
            for block in others {
                block.state.tensor = first.state.tensor.share();
            }
        }
        Team {
            blocks,
            current: 0,
            holder: 0,
        }
    }

    /// The block that ran last: a fault is its.
    pub fn env(&self) -> &BlockEnv<'l> {
        &self.blocks[self.current].env
    }

    /// Puts all threads at the kernel's start; `first` is the block of rank 0.
    #[inline]
    pub fn start(&mut self, first: [u32; 3]) {
        (self.current, self.holder) = (0, 0);
        if let [block] = &mut self.blocks[..] {
            return block.start(first);
        }
        let [x, y, _] = self.blocks[0].env.env.grid.launch.cluster();
        for (rank, block) in (0..).zip(&mut self.blocks) {
            let at = [rank % x, rank / x % y, rank / x / y];
            block.env.gone = 0;
            block.start(std::array::from_fn(|axis| first[axis] + at[axis]));
        }
    }

    /// Between two turns: all blocks go on in compiled code; `false`: some do not, for which it is not to be had.
    pub fn change(&mut self, form: &'l Form) -> bool {
        self.blocks.iter_mut().all(|block| block.change(form))
    }

    /// The next share of each block is a short one.
    pub fn tire(&mut self, share: i64) {
        self.blocks.iter_mut().for_each(|block| block.tire(share));
    }

    /// Runs until all threads have exited or somebody has had his share.
    ///
    /// # Errors
    /// The first fault.
    #[inline]
    pub fn turn(&mut self) -> Result<Turn, Box<Located>> {
        if let [block] = &mut self.blocks[..] {
            return block.turn();
        }
        loop {
            let (mut ran, mut spins, mut long, mut worked) = (false, false, false, false);
            for rank in 0..self.blocks.len() {
                if self.blocks[rank].is_ready() {
                    ran = true;
                    let turn = self.run(rank, Block::turn)?;
                    spins |= matches!(turn, Turn::Spins | Turn::Worked);
                    long |= matches!(turn, Turn::Long);
                    worked |= matches!(turn, Turn::Long | Turn::Worked);
                }
            }
            if spins || long {
                self.pass_time()?;
                return Ok(match (spins, worked) {
                    (true, true) => Turn::Worked,
                    (true, false) => Turn::Spins,
                    (false, _) => Turn::Long,
                });
            }
            if !ran && self.has_ended()? {
                return Ok(Turn::Done);
            }
        }
    }

    /// After a turn in which a block has ended: more blocks run ([`Block::march_on`]), if blocks run alone.
    ///
    /// # Errors
    /// The first fault.
    #[inline]
    pub fn march_on(&mut self, blocks: &mut Range<u64>, at: &Cell<[u32; 3]>) -> Result<Turn, Box<Located>> {
        match &mut self.blocks[..] {
            [block] => block.march_on(blocks, at),
            _ => Ok(Turn::Done),
        }
    }

    /// Turns of blocks that are drawn, until those of others come.
    ///
    /// # Errors
    /// The first fault.
    pub fn drawn_turn(&mut self, schedule: &Schedule) -> Result<Turn, Box<Located>> {
        if let [block] = &mut self.blocks[..] {
            return block.drawn_turn(schedule);
        }
        loop {
            let blocks = &self.blocks;
            let Some(rank) = schedule.choose(
                Whom::Blocks,
                blocks.len(),
                |rank| rank as u64,
                |rank| blocks[rank].is_ready(),
            ) else {
                if self.has_ended()? {
                    return Ok(Turn::Done);
                }
                continue;
            };
            match self.run(rank, |block| block.drawn_turn(schedule))? {
                turn @ (Turn::Spins | Turn::Worked | Turn::Long) => {
                    self.pass_time()?;
                    return Ok(turn);
                }
                Turn::Drawn => return Ok(Turn::Drawn),
                Turn::Done | Turn::Waits => {}
            }
        }
    }

    /// Somebody has run for long, perhaps until something happens that a block has under way: it happens, and those
    /// who wait in other blocks do not wait for ever.
    fn pass_time(&mut self) -> Result<(), Box<Located>> {
        for block in &mut self.blocks {
            block.wait_no_longer();
        }
        self.advance().map(drop)
    }

    /// A turn of one of several blocks, and what it means to the others.
    fn run(
        &mut self,
        rank: usize,
        turn: impl FnOnce(&mut Block<'l>) -> Result<Turn, Box<Located>>,
    ) -> Result<Turn, Box<Located>> {
        self.current = rank;
        self.hand_over(rank);
        let turn = turn(&mut self.blocks[rank])?;
        if let Turn::Done = turn {
            for block in &mut self.blocks {
                block.env.gone |= 1 << rank;
            }
        }
        self.meet();
        Ok(turn)
    }

    /// Nobody is ready: have all exited? If not, what goes on beside them completes, then those go on who wait in
    /// vain for lanes of their warp, and then those who do not wait for ever.
    fn has_ended(&mut self) -> Result<bool, Box<Located>> {
        let all = (1 << self.blocks.len()) - 1;
        let gone = self.blocks[0].env.gone;
        if gone == all {
            self.blocks[self.holder].end()?;
            return Ok(true);
        }
        if self.advance()? || self.blocks.iter_mut().any(Block::force) {
            return Ok(false);
        }
        // One that has done something others can see has begun to count anew.
        let least = self.left().map(|rank| self.blocks[rank].state.stuck).min();
        let stuck = least.unwrap_or(0) + 1;
        let mut any = false;
        if stuck <= block::PATIENCE {
            for block in &mut self.blocks {
                block.state.stuck = stuck;
                any |= block.wait_no_longer();
            }
        }
        if any { Ok(false) } else { Err(self.deadlock()) }
    }

    /// Blocks that have not ended, by rank.
    fn left(&self) -> impl Iterator<Item = usize> + use<> {
        let gone = self.blocks[0].env.gone;
        (0..self.blocks.len()).filter(move |rank| gone >> rank & 1 == 0)
    }

    /// Who waits in which block, and at the cluster's barrier.
    #[cold]
    fn deadlock(&mut self) -> Box<Located> {
        let waits = |rank: usize| {
            let block = &self.blocks[rank];
            let came = match block.state.cluster.count() {
                0 => String::new(),
                n => format!("\n  {n} of its threads have come to the barrier of the cluster"),
            };
            format!("in the block of rank {rank}, {}{came}", block.waits())
        };
        let why: Vec<String> = self.left().map(waits).collect();
        self.current = self.left().next().unwrap_or(0);
        let mut located = self.blocks[self.current].deadlock();
        located.fault.cause = Cause::Deadlock { why: why.join("\n  ") };
        Box::new(located)
    }

    /// Completes what goes on beside the blocks; `false`: there is nothing.
    fn advance(&mut self) -> Result<bool, Box<Located>> {
        let mut advanced = false;
        for rank in 0..self.blocks.len() {
            self.hand_over(rank);
            self.current = rank;
            advanced |= self.blocks[rank].advance()?;
        }
        self.meet();
        Ok(advanced)
    }

    /// What goes on beside the blocks is now in the hands of this one.
    fn hand_over(&mut self, rank: usize) {
        if let Ok([from, to]) = self.blocks.get_disjoint_mut([self.holder, rank]) {
            from.state.asynchronous.hand_over(&mut to.state.asynchronous);
        }
        self.holder = rank;
    }

    fn meet(&mut self) {
        block::meet(&mut self.blocks);
        let mut stirred = false;
        for block in &mut self.blocks {
            stirred |= std::mem::take(&mut block.stirred);
        }
        if stirred {
            for block in &mut self.blocks {
                block.state.stuck = 0;
                block.wake();
            }
        }
    }
}
