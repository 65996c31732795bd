//! What loops through memory are about to touch is fetched ahead.
//!
//! A loop with the grid's stride goes through memory in steps of many pages, which the CPU does not see as one stream. The address that
//! an access had one turn before says by how much it grows, and what the warp will touch some turns later is fetched. Where it grows by
//! much, that is fewer turns, and the warps of the block take turns after few of the loop's, so that they go through the same pages side
//! by side, and lines that lie a power of two apart do not drive each other out of the caches meanwhile. Where it grows by so much that
//! there cannot be many turns, what the block behind this one will touch in the same turn is fetched, for blocks follow each other. What
//! is fetched may be anywhere: fetching ahead does not fault.
//!
//! Where blocks lie in a plane, or their warps wait for each other, a warp keeps where it was in the block before, and fetches what is twice
//! as far behind where it is now.

use std::fmt::Write;
use std::mem::offset_of;

use super::super::context::Context;
use super::{Emit, For, Node};
use crate::isa::Level;
use crate::program::{Initial, Reg, Special};

/// How many turns ahead.
const TURNS: u32 = 8;
/// With a long stride, by what vectors the CPU has. By two, six or eight, sums over 256 MiB take as long or longer than by four on an AMD EPYC
/// (Zen 3) whose second cache has 512 KiB and room for 8 such lines; by eight they take an eighth less on one (Zen 5) that has twice of both.
const fn turns_long(level: Level) -> u32 {
    match level {
        Level::Avx512 => 8,
        Level::Avx2 | Level::Baseline => 4,
    }
}
/// Bytes of a stride that is long: lines so far apart lie in one set of many a second cache.
const LONG: u64 = 64 << 10;
/// Bytes of a stride with which loops have few turns: what all of them touch stays in the second cache until the next block comes.
const VERY_LONG: u64 = 1 << 20;
/// Warps of a block, for which the next block's place is guessed.
const WARPS: u64 = 8;
/// Bytes of no stride: there was no turn before, or it was another warp's.
const NONE: u64 = 1 << 40;
/// Bytes of a line of the CPU's caches.
const LINE: u64 = 64;
/// Lines that one access fetches at most.
const MOST: u64 = 4;

/// Blocks ahead. Many take less time than memory does: with one, a stencil takes up to a tenth longer, and with four nothing more is gained.
const BLOCKS: u64 = 2;

/// Accesses for which a warp keeps where it was in the block before.
pub(super) const LASTS: usize = 8;

impl Emit<'_> {
    pub(super) fn is_streaming(&self) -> bool {
        self.full && self.plan.streaming.contains(&self.unit)
    }

    /// Whether an access by a register fetches what the same warp of the next block will: one that is no part of a loop, once for the
    /// register.
    pub(super) fn fetches_for_next(&mut self, register: Option<Reg>) -> bool {
        self.full
            && self.whom == For::All
            && self.keeps_lasts()
            && !self.repeats()
            && self.fetched.insert((self.unit, register.map(|reg| reg.number)))
    }

    /// Whether the unit is part of a loop.
    pub(super) fn repeats(&self) -> bool {
        let mut loops = self.plan.loops.keys();
        loops.any(|&(from, to)| (to..=from).contains(&self.unit))
    }

    /// Whether warps keep where they were in the block before. Blocks in a line follow each other through memory, which the CPU sees by
    /// itself, but not across pages, and what it has fetched may be gone again after a block with barriers.
    pub(super) fn keeps_lasts(&self) -> bool {
        self.is_plane() || !self.packs.is_empty()
    }

    /// Whether threads ask where they are along a second axis.
    fn is_plane(&self) -> bool {
        let mut initials = self.input.body.registers.iter().filter_map(|info| info.initial);
        initials.any(|initial| matches!(initial, Initial::Special(Special::Tid(1..) | Special::Ctaid(1..))))
    }

    /// The next blocks of a grid are as far behind this one as this one is behind those before.
    pub(super) fn fetch_for_next(&mut self, address: &str, bytes: u64, stores: bool) {
        if self.lasts == LASTS {
            return;
        }
        let at = self.place("%saved", self.lasts_at + 8 * self.lasts);
        self.lasts += 1;
        let last = self.text.value(format!("load i64, ptr {at}"));
        self.text.line(format!("store i64 {address}, ptr {at}"));
        let stride = self.text.value(format!("sub i64 {address}, {last}"));
        let stride = self.text.value(format!("mul i64 {stride}, {BLOCKS}"));
        let ahead = self.text.value(format!("add i64 {address}, {stride}"));
        self.prefetch(&ahead, bytes, stores);
    }

    /// So many bytes from an address on.
    fn prefetch(&mut self, ahead: &str, bytes: u64, stores: bool) {
        for line in 0..bytes.div_ceil(LINE).min(MOST) {
            let at = self.text.value(format!("add i64 {ahead}, {}", line * LINE));
            let at = self.text.value(format!("inttoptr i64 {at} to ptr"));
            // Into the second cache: the first one is full of what others of the block are about to read.
            self.text.line(format!(
                "call void @llvm.prefetch.p0(ptr {at}, i32 {}, i32 2, i32 1)",
                u32::from(stores)
            ));
        }
    }

    /// All lanes of the warp access what lies side by side from an address on, so many bytes.
    pub(super) fn fetch_ahead(&mut self, address: &str, bytes: u64, stores: bool) {
        let before = self.text.name("%before");
        let _ = writeln!(self.head, "  {before} = alloca i64\n  store i64 0, ptr {before}");
        let last = self.text.value(format!("load i64, ptr {before}"));
        self.text.line(format!("store i64 {address}, ptr {before}"));
        let stride = self.text.value(format!("sub i64 {address}, {last}"));
        // From the warp before it is negative, or short: then it is what it was.
        let from_warp = self.text.value(format!("sub i64 {stride}, {}", bytes + 1));
        let is_own = self.text.value(format!("icmp ult i64 {from_warp}, {NONE}"));
        let known = self.text.name("%stride");
        let _ = writeln!(self.head, "  {known} = alloca i64\n  store i64 0, ptr {known}");
        let was = self.text.value(format!("load i64, ptr {known}"));
        let stride = self.text.value(format!("select i1 {is_own}, i64 {stride}, i64 {was}"));
        self.text.line(format!("store i64 {stride}, ptr {known}"));
        let long = self.text.value(format!("icmp ugt i64 {stride}, {LONG}"));
        let few = turns_long(self.level);
        let turns = self.text.value(format!("select i1 {long}, i64 {few}, i64 {TURNS}"));
        let own = self.text.value(format!("mul i64 {stride}, {turns}"));
        let very_long = self.text.value(format!("icmp ugt i64 {stride}, {VERY_LONG}"));
        let by = self
            .text
            .value(format!("select i1 {very_long}, i64 {}, i64 {own}", bytes * WARPS));
        let ahead = self.text.value(format!("add i64 {address}, {by}"));
        self.prefetch(&ahead, bytes, stores);
        if self.measured.replace(self.unit) == Some(self.unit) {
            return;
        }
        // The unit's innermost loop.
        let loops = self
            .plan
            .loops
            .keys()
            .filter(|&&(from, to)| (to..=from).contains(&self.unit));
        let Some(bit) = loops
            .min_by_key(|(from, to)| from - to)
            .and_then(|&(_, to)| self.loop_bit(to))
        else {
            return;
        };
        // What the stride is from the warp before is negative, or short.
        let beyond = self.text.value(format!("sub i64 {stride}, {LONG}"));
        let apart = self.text.value(format!("icmp ult i64 {beyond}, {NONE}"));
        let apart = self
            .text
            .value(format!("select i1 {apart}, i64 {}, i64 0", 1u64 << bit));
        let flags = self.field(offset_of!(Context, apart), "i64", false);
        let flags = self.text.value(format!("or i64 {flags}, {apart}"));
        let at = self.place("%n", offset_of!(Context, apart));
        self.text.line(format!("store i64 {flags}, ptr {at}"));
    }

    /// At the end of a turn of a loop before whose head warps pause: whether this one does.
    pub(super) fn is_turn_over(&mut self, head: Node) -> String {
        let turns = self.text.value("load i64, ptr %turns");
        let each = match self.loop_bit(head) {
            Some(bit) => {
                let flags = self.field(offset_of!(Context, apart), "i64", false);
                let flag = self.text.value(format!("and i64 {flags}, {}", 1u64 << bit));
                let apart = self.text.value(format!("icmp ne i64 {flag}, 0"));
                self.text.value(format!("select i1 {apart}, i64 {COUNTS}, i64 1"))
            }
            None => "1".to_owned(),
        };
        let turns = self.text.value(format!("sub i64 {turns}, {each}"));
        self.text.line(format!("store i64 {turns}, ptr %turns"));
        self.text.value(format!("icmp slt i64 {turns}, 0"))
    }

    /// The bit of [`Context::apart`] that a loop has, by its head: the first loops have one.
    fn loop_bit(&self, head: Node) -> Option<u32> {
        let bit = self.pauses.keys().position(|&other| other == head)?;
        (bit < u64::BITS as usize).then_some(bit as u32)
    }
}

/// What a turn counts where the warps are to take turns after few: after five of the sixteen that others have. One by one they would spend
/// half of their time on that, and after nine two arrays do not fit into the second cache.
const COUNTS: u64 = 4;
