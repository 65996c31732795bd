//! Copies of `cp.async` (PTX ISA, cp.async, cp.async.commit_group, cp.async.wait_group, cp.async.mbarrier.arrive): what
//! each warp of the block has begun, in order.
//!
//! A thread's groups are its own, and lanes of a warp may go different ways; most of the time they do not. So there is
//! a line of entries for each warp, each with its lanes: a copy, the end of a group, or an arrival that waits for what
//! stands before it. Records of copies are kept and used again: nothing is allocated once a kernel's pipeline runs.

use std::collections::VecDeque;

use crate::isa::lanes::WARP;
use crate::simt::cause::Cause;
use crate::simt::machine::access::{self, Lanes};
use crate::simt::machine::context::Env;
use crate::simt::machine::observe::{Direction, GridEvent};
use crate::simt::machine::slots::bits;

/// Entries of a warp beyond which the oldest complete: who commits groups and never waits would pile them up.
const MOST: usize = 4096;

/// What the lanes of a warp copy by one instruction.
pub struct Record {
    pub to: Lanes,
    pub from: Lanes,
    /// Bytes that are read; the rest is zero.
    pub count: [u8; WARP],
    /// 4, 8 or 16.
    pub bytes: u8,
}

#[derive(Clone, Copy)]
enum What {
    /// The number of its record.
    Copy {
        record: u32,
        operation: u64,
    },
    Commit,
    /// At the mbarrier at this address, once all before it of its lane is complete.
    Arrive {
        barrier: u64,
    },
}

struct Entry {
    /// For which it is still to be done.
    lanes: u32,
    /// Those of them that are to complete now.
    due: u32,
    what: What,
}

#[derive(Default)]
struct Warp {
    entries: VecDeque<Entry>,
}

/// What a block has begun by `cp.async`.
#[derive(Default)]
pub struct Copies {
    warps: Vec<Warp>,
    records: Vec<Record>,
    free: Vec<u32>,
    /// Copies and arrivals under way.
    open: usize,
    arrivals: usize,
}

/// Arrives once at the barrier at an address.
type Arrive<'a> = &'a mut dyn FnMut(u64) -> Result<(), Cause>;

impl Copies {
    pub fn is_idle(&self) -> bool {
        self.open == 0
    }

    /// Nothing is left of anything, groups among it.
    pub fn is_fresh(&self) -> bool {
        self.warps.iter().all(|warp| warp.entries.is_empty())
    }

    /// Entries under way: copies and arrivals.
    pub fn count(&self) -> usize {
        self.open
    }

    fn warp(&mut self, warp: usize) -> &mut Warp {
        if self.warps.len() <= warp {
            self.warps.resize_with(warp + 1, Warp::default);
        }
        &mut self.warps[warp]
    }

    /// The lanes of a warp of the block begin a copy.
    pub fn begin(&mut self, warp: usize, lanes: u32, operation: u64, record: Record) {
        let number = match self.free.pop() {
            Some(number) => {
                self.records[number as usize] = record;
                number
            }
            None => {
                self.records.push(record);
                self.records.len() as u32 - 1
            }
        };
        self.open += 1;
        self.warp(warp).entries.push_back(Entry {
            lanes,
            due: 0,
            what: What::Copy {
                record: number,
                operation,
            },
        });
    }

    /// What these lanes have begun since the last group becomes one.
    pub fn commit(&mut self, warp: usize, lanes: u32) {
        let entries = &mut self.warp(warp).entries;
        // With nothing before it, it is complete.
        if !entries.is_empty() {
            entries.push_back(Entry {
                lanes,
                due: 0,
                what: What::Commit,
            });
        }
    }

    /// These lanes arrive at a barrier when what they have begun is complete.
    pub fn arrive(&mut self, warp: usize, lanes: u32, barrier: u64) {
        self.open += 1;
        self.arrivals += 1;
        self.warp(warp).entries.push_back(Entry {
            lanes,
            due: 0,
            what: What::Arrive { barrier },
        });
    }

    /// Whether a warp has so much under way that some of it has to complete.
    pub fn is_full(&self, warp: usize) -> bool {
        self.warps.get(warp).is_some_and(|warp| warp.entries.len() > MOST)
    }

    /// Completes for these lanes all groups but the last `but`; `None`: everything.
    ///
    /// # Errors
    /// Memory is gone, or a barrier is none.
    pub fn wait(
        &mut self,
        env: &Env<'_>,
        (warp, lanes): (usize, u32),
        but: Option<u32>,
        arrive: Arrive<'_>,
    ) -> Result<(), Cause> {
        let Some(w) = self.warps.get_mut(warp) else {
            return Ok(());
        };
        // Back from the end: a lane's entries are due before as many ends of groups as may stay, and one more.
        let mut passed = match but {
            None => lanes,
            Some(_) => 0,
        };
        let mut seen = [0u32; WARP];
        let mut any = 0;
        for entry in w.entries.iter_mut().rev() {
            if let (What::Commit, Some(but)) = (entry.what, but) {
                for i in bits(entry.lanes & lanes & !passed) {
                    seen[i] += 1;
                    passed |= u32::from(seen[i] > but) << i;
                }
            }
            entry.due = entry.lanes & lanes & passed;
            any |= entry.due;
        }
        if any == 0 {
            return Ok(());
        }
        self.complete(env, warp, arrive)
    }

    /// Completes what arrivals at `barrier` wait for, and those, until `is_over`.
    ///
    /// # Errors
    /// Memory is gone, or a barrier is none.
    pub fn hurry(
        &mut self,
        env: &Env<'_>,
        barrier: u64,
        is_over: &impl Fn() -> bool,
        arrive: Arrive<'_>,
    ) -> Result<(), Cause> {
        if self.arrivals == 0 {
            return Ok(());
        }
        for warp in 0..self.warps.len() {
            while !is_over() {
                let entries = &mut self.warps[warp].entries;
                let is_it = |e: &Entry| matches!(e.what, What::Arrive { barrier: at } if at == barrier);
                let Some(last) = entries.iter().position(is_it) else {
                    break;
                };
                let lanes = entries[last].lanes;
                for entry in entries.iter_mut().take(last + 1) {
                    entry.due = entry.lanes & lanes;
                }
                self.complete(env, warp, arrive)?;
            }
        }
        Ok(())
    }

    /// Completes everything.
    ///
    /// # Errors
    /// Memory is gone, or a barrier is none.
    pub fn finish(&mut self, env: &Env<'_>, arrive: Arrive<'_>) -> Result<(), Cause> {
        for warp in 0..self.warps.len() {
            if !self.warps[warp].entries.is_empty() {
                self.wait(env, (warp, u32::MAX), None, arrive)?;
            }
        }
        Ok(())
    }

    /// Completes the copy or arrival number `n` of those under way; an arrival that waits for others stays.
    ///
    /// # Errors
    /// Memory is gone, or a barrier is none.
    pub fn finish_one(&mut self, env: &Env<'_>, n: usize, arrive: Arrive<'_>) -> Result<(), Cause> {
        let mut left = n;
        for warp in 0..self.warps.len() {
            for entry in &mut self.warps[warp].entries {
                if matches!(entry.what, What::Commit) {
                    continue;
                }
                if left == 0 {
                    entry.due = entry.lanes;
                    return self.complete(env, warp, arrive);
                }
                left -= 1;
            }
        }
        Ok(())
    }

    /// Completes what is due of a warp, oldest first; arrivals wait for what stands before them.
    fn complete(&mut self, env: &Env<'_>, warp: usize, arrive: Arrive<'_>) -> Result<(), Cause> {
        let Copies {
            warps,
            records,
            free,
            open,
            arrivals,
        } = self;
        let entries = &mut warps[warp].entries;
        // Lanes that have something under way before the entry.
        let mut busy = 0;
        for entry in entries.iter_mut() {
            let mut due = std::mem::take(&mut entry.due);
            match entry.what {
                What::Copy { record, operation } => {
                    if due != 0 {
                        copy(env, &records[record as usize], due)?;
                        env.env.watch().grid(
                            env.env.launch().grid_id,
                            &GridEvent::Complete {
                                block: env.ctaid,
                                operation,
                                lanes: due,
                            },
                        );
                    }
                    busy |= entry.lanes & !due;
                }
                What::Commit => due = entry.lanes & !busy,
                What::Arrive { barrier } => {
                    due &= !busy;
                    for _ in bits(due) {
                        arrive(barrier)?;
                    }
                    busy |= entry.lanes & !due;
                }
            }
            entry.lanes &= !due;
        }
        let mut gone = |entry: &Entry| match entry.what {
            _ if entry.lanes != 0 => {}
            What::Copy { record, .. } => {
                free.push(record);
                *open -= 1;
            }
            What::Commit => {}
            What::Arrive { .. } => {
                *open -= 1;
                *arrivals -= 1;
            }
        };
        // Most often those at the front.
        while entries.front().is_some_and(|entry| entry.lanes == 0) {
            entries.pop_front().iter().for_each(&mut gone);
        }
        if entries.iter().any(|entry| entry.lanes == 0) {
            entries.iter().for_each(&mut gone);
            entries.retain(|entry| entry.lanes != 0);
        }
        Ok(())
    }
}

/// Copies for the lanes `due`.
fn copy(env: &Env<'_>, record: &Record, due: u32) -> Result<(), Cause> {
    let whole = record.bytes;
    if !sources_are_there(env, record, due) {
        for i in bits(due).filter(|&i| record.count[i] != 0) {
            access::still(env, record.from[i], record.count[i].into(), Direction::Read)?;
        }
    }
    for i in bits(due) {
        let (to, from, count) = (record.to[i], record.from[i], record.count[i]);
        // SAFETY: both ranges were checked when the copy began; the destination lies in the block's shared window,
        // which it keeps, and the source was found to be there still.
        unsafe {
            match (count, whole) {
                (16, 16) => (to as *mut [u8; 16]).write((from as *const [u8; 16]).read()),
                (8, 8) => (to as *mut [u8; 8]).write((from as *const [u8; 8]).read()),
                (4, 4) => (to as *mut [u8; 4]).write((from as *const [u8; 4]).read()),
                _ => {
                    std::ptr::copy(from as *const u8, to as *mut u8, count.into());
                    std::ptr::write_bytes((to as *mut u8).add(count.into()), 0, usize::from(whole - count));
                }
            }
        }
    }
    Ok(())
}

/// Whether one look at the map shows that all sources are there.
fn sources_are_there(env: &Env<'_>, record: &Record, due: u32) -> bool {
    let (mut low, mut high) = (u64::MAX, 0);
    for i in bits(due).filter(|&i| record.count[i] != 0) {
        low = low.min(record.from[i]);
        high = high.max(record.from[i] + u64::from(record.count[i]));
    }
    high == 0 || (high - low < 1 << 16 && env.view.check(low, high - low, Direction::Read.bits()))
}
