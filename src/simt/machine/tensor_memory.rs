//! Tensor memory (PTX ISA, tcgen05, Tensor Memory; Addressing; Allocation and Deallocation): 128 lanes of 512 columns of
//! 32 bits for each block, allocated by columns.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::isa::joint::tcgen05::Group;
use crate::isa::mma::Scratch;
use crate::memory::shadow;

pub const LANES: usize = 128;
pub const COLUMNS: usize = 512;
/// Columns are allocated by so many.
const UNIT: usize = 32;

/// A place in tensor memory, as addresses name it: the lane in the high half, the column in the low one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub lane: usize,
    pub column: usize,
}

impl Place {
    pub fn of(address: u32) -> Place {
        Place {
            lane: (address >> 16) as usize,
            column: (address & 0xffff) as usize,
        }
    }
}

/// The tensor memory of one block.
#[derive(Default)]
pub struct Memory {
    /// Lane by lane; empty until something is allocated for the first time. A block finds what the one before left there.
    cells: Vec<u32>,
    /// Who has each unit of columns: the number of an allocation, or 0.
    owners: [u32; COLUMNS / UNIT],
    allocations: u32,
    /// `tcgen05.relinquish_alloc_permit`
    relinquished: bool,
    /// Which `.cta_group` the kernel's instructions have: all have the same.
    group: Option<Group>,
    /// What the other block of a pair has allocated for both, and this one has not asked for yet: address and columns.
    promised: VecDeque<(usize, usize)>,
    /// Where values that nobody has written are followed: cells with a bit for each bit, set where nobody has written it.
    pub shadow: Option<Box<Memory>>,
    /// Of cells of a shadow, the address in shared memory of what was missing there.
    origins: HashMap<(usize, usize), u64>,
}

/// What columns of an instruction have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Those of any allocations: hardware makes no difference between them.
    Allocated,
    /// Those of one.
    One,
    /// Those of the one to which this address belongs.
    OneFrom(u32),
}

/// What is wrong with an instruction.
pub type Misuse = String;

impl Memory {
    /// An instruction for this group of blocks comes.
    ///
    /// # Errors
    /// Another one was for the other.
    pub fn enter(&mut self, group: Group) -> Result<(), Misuse> {
        match self.group.replace(group) {
            Some(other) if other != group => Err(format!(
                "a kernel's tcgen05 instructions have the same cta_group, and these have {} and {}",
                &other.to_string()[1..],
                &group.to_string()[1..],
            )),
            _ => Ok(()),
        }
    }

    fn free_run(&self, other: Option<&Memory>, units: usize) -> Option<usize> {
        let free = |unit: usize| self.owners[unit] == 0 && other.is_none_or(|other| other.owners[unit] == 0);
        (0..=self.owners.len() - units).find(|&first| (first..first + units).all(free))
    }

    fn own(&mut self, first: usize, units: usize) {
        self.allocations += 1;
        self.owners[first..first + units].fill(self.allocations);
        self.cells.resize(LANES * COLUMNS, 0);
        if shadow::get().is_none() {
            return;
        }
        // Whatever was there before, it is not what the program has written.
        let shadow = self.shadow.get_or_insert_default();
        shadow.cells.resize(LANES * COLUMNS, 0);
        let columns = first * UNIT..(first + units) * UNIT;
        for lane in 0..LANES {
            shadow.cells[lane * COLUMNS..][columns.clone()].fill(u32::MAX);
        }
        shadow.origins.retain(|(_, column), _| !columns.contains(column));
    }

    /// Of a cell of a shadow these bits are missing from now on, which `origin` in shared memory had brought.
    pub fn leave(&mut self, lane: usize, column: usize, missing: u32, origin: Option<u64>) {
        self.set(lane, column, missing);
        match origin.filter(|_| missing != 0) {
            Some(origin) => {
                self.origins.insert((lane, column), origin);
            }
            None => self.forget_origin(lane, column),
        }
    }

    pub fn forget_origin(&mut self, lane: usize, column: usize) {
        if !self.origins.is_empty() {
            self.origins.remove(&(lane, column));
        }
    }

    /// Where in shared memory what is missing in a cell of a shadow was missing first.
    pub fn origin(&self, lane: usize, column: usize) -> Option<u64> {
        self.origins.get(&(lane, column)).copied()
    }

    /// Allocates columns; the first of them. `None`: there are none as long as nobody gives some back.
    ///
    /// # Errors
    /// The number is none that can be asked for, or nobody may ask any more.
    pub fn allocate(&mut self, columns: u32, pair: Option<&mut Memory>) -> Result<Option<usize>, Misuse> {
        let units = checked(columns)?;
        if self.relinquished {
            return Err("tcgen05.alloc after the block has relinquished its permit to allocate".into());
        }
        if let Some((first, of)) = self.promised.pop_front() {
            if of != units {
                let (asked, of) = (units * UNIT, of * UNIT);
                return Err(format!(
                    "tcgen05.alloc: a pair of blocks asks for {of} and for {asked} columns"
                ));
            }
            return Ok(Some(first * UNIT));
        }
        let Some(first) = self.free_run(pair.as_deref(), units) else {
            return Ok(None);
        };
        self.own(first, units);
        if let Some(pair) = pair {
            pair.own(first, units);
            pair.promised.push_back((first, units));
        }
        Ok(Some(first * UNIT))
    }

    /// Gives back what [`Self::allocate`] gave.
    ///
    /// # Errors
    /// It gave nothing like it.
    pub fn free(&mut self, address: u32, columns: u32) -> Result<(), Misuse> {
        let units = checked(columns)?;
        let Place { lane, column } = Place::of(address);
        let first = column / UNIT;
        let owner = self.owners.get(first).copied().unwrap_or(0);
        let whole = |owners: &[u32]| owners.iter().filter(|&&o| o == owner).count() == units;
        let theirs = owner != 0
            && lane == 0
            && column.is_multiple_of(UNIT)
            && first + units <= self.owners.len()
            && self.owners[first..first + units].iter().all(|&o| o == owner)
            && whole(&self.owners);
        if !theirs {
            return Err(format!(
                "tcgen05.dealloc of {columns} columns at {address:#x}, which is not what was allocated"
            ));
        }
        self.owners[first..first + units].fill(0);
        Ok(())
    }

    pub fn relinquish(&mut self) {
        self.relinquished = true;
    }

    /// Columns that nobody has given back.
    fn allocated(&self) -> usize {
        UNIT * self.owners.iter().filter(|&&owner| owner != 0).count()
    }

    /// Whether columns `column..column + count` may be used.
    ///
    /// # Errors
    /// They are not allocated, or there are no such columns, or they are not of the allocation that is asked for.
    pub fn check(&self, column: usize, count: usize, asked: Asked) -> Result<(), Misuse> {
        let end = column + count;
        let last = end.saturating_sub(1);
        if end > COLUMNS || self.owners[column / UNIT..=last / UNIT].contains(&0) {
            return Err(format!(
                "columns {column} to {last} of tensor memory, which are not allocated"
            ));
        }
        let owners = &self.owners[column / UNIT..=last / UNIT];
        let from = match asked {
            Asked::Allocated => return Ok(()),
            Asked::One => owners[0],
            // An address of what has been given back says nothing.
            Asked::OneFrom(base) => match self.owners.get(Place::of(base).column / UNIT) {
                None | Some(0) => owners[0],
                Some(owner) => *owner,
            },
        };
        if owners.iter().all(|owner| *owner == from) {
            return Ok(());
        }
        let all = self.owners.iter().enumerate().filter(|(_, owner)| **owner == from);
        let first = UNIT * all.clone().map(|(unit, _)| unit).min().unwrap_or(0);
        let until = first + UNIT * all.count() - 1;
        Err(format!(
            "columns {column} to {last} of tensor memory, which are not all of the allocation from whose address theirs was made: \
             columns {first} to {until}"
        ))
    }

    /// `count` cells of a lane.
    pub fn cells(&self, lane: usize, column: usize, count: usize) -> &[u32] {
        &self.cells[lane * COLUMNS + column..][..count]
    }

    pub fn cells_mut(&mut self, lane: usize, column: usize, count: usize) -> &mut [u32] {
        &mut self.cells[lane * COLUMNS + column..][..count]
    }

    pub fn cell(&self, lane: usize, column: usize) -> u32 {
        self.cells[lane * COLUMNS + column]
    }

    pub fn set(&mut self, lane: usize, column: usize, value: u32) {
        self.cells[lane * COLUMNS + column] = value;
    }
}

/// Units of a number of columns.
fn checked(columns: u32) -> Result<usize, Misuse> {
    match columns {
        32 | 64 | 128 | 256 | 512 => Ok(columns as usize / UNIT),
        _ => Err(format!(
            "{columns} columns of tensor memory, and not 32, 64, 128, 256 or 512"
        )),
    }
}

/// Room for one product.
#[derive(Default)]
pub struct Room {
    pub a: Vec<u32>,
    pub b: Vec<u32>,
    pub dense: Vec<u32>,
    pub kept: Vec<u128>,
    pub d: Vec<u32>,
    pub scratch: Scratch,
}

/// The tensor memories of the blocks of a cluster, by rank; of one block where there is no cluster. They run on one thread,
/// so nobody waits for the lock; it is there because what is under way holds them, too. They are made when somebody asks
/// for the first time, as few kernels do.
#[derive(Default)]
pub struct Memories(OnceLock<Arc<Mutex<Blocks>>>);

#[derive(Default)]
pub struct Blocks {
    by_rank: Vec<Memory>,
    /// Room for a product.
    pub room: Room,
}

impl Blocks {
    pub fn of(&mut self, rank: usize) -> &mut Memory {
        if self.by_rank.len() <= rank {
            self.by_rank.resize_with(rank + 1, Memory::default);
        }
        &mut self.by_rank[rank]
    }

    /// Two of different ranks.
    pub fn pair(&mut self, ranks: [usize; 2]) -> [&mut Memory; 2] {
        for rank in ranks {
            self.of(rank);
        }
        self.by_rank.get_disjoint_mut(ranks).expect("blocks of a pair are two")
    }

    pub fn with_room(&mut self) -> (&mut [Memory], &mut Room) {
        (&mut self.by_rank, &mut self.room)
    }
}

impl Memories {
    /// The same memories for one more block.
    pub fn share(&self) -> Memories {
        self.0.get_or_init(Arc::default);
        Memories(self.0.clone())
    }

    pub fn lock(&self) -> MutexGuard<'_, Blocks> {
        let blocks = self.0.get_or_init(Arc::default);
        blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks begin.
    pub fn reset(&self) {
        if self.0.get().is_none() {
            return;
        }
        for memory in &mut self.lock().by_rank {
            let cells = std::mem::take(&mut memory.cells);
            *memory = Memory {
                cells,
                ..Memory::default()
            };
        }
    }

    /// Columns that nobody has given back.
    pub fn left(&self) -> usize {
        if self.0.get().is_none() {
            return 0;
        }
        self.lock().by_rank.iter().map(Memory::allocated).sum()
    }
}
