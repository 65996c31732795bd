//! What loops through memory are about to touch is fetched ahead.
//!
//! A loop with the grid's stride goes through memory in steps of many pages, which the CPU does not see as one stream. The address that
//! an access had one turn before says by how much it grows. Where that is much, turns are few, and the next warp will go through the
//! same places right behind this one's: what it touches in the same turn is fetched. Where it is little, what this warp will touch
//! some turns later is. Either may be anywhere: fetching ahead does not fault.

use std::fmt::Write;

use super::Emit;

/// How many turns ahead.
const TURNS: u32 = 8;
/// Bytes of a stride that is long: of an array of 256 MiB the warp touches 512 KiB then, no more than a second cache has room for.
const LONG: u64 = 64 << 10;
/// Bytes of a line of the CPU's caches.
const LINE: u64 = 64;
/// Lines that one access fetches at most.
const MOST: u64 = 4;

impl Emit<'_> {
    /// All lanes of the warp access what lies side by side from an address on, so many bytes.
    pub(super) fn fetch_ahead(&mut self, address: &str, bytes: u64, stores: bool) {
        if !self.full || !self.plan.streaming.contains(&self.unit) {
            return;
        }
        let before = self.text.name("%before");
        let _ = writeln!(self.head, "  {before} = alloca i64\n  store i64 0, ptr {before}");
        let last = self.text.value(format!("load i64, ptr {before}"));
        self.text.line(format!("store i64 {address}, ptr {before}"));
        let stride = self.text.value(format!("sub i64 {address}, {last}"));
        let far = self.text.value(format!("mul i64 {stride}, {TURNS}"));
        let long = self.text.value(format!("icmp ugt i64 {stride}, {LONG}"));
        let by = self.text.value(format!("select i1 {long}, i64 {bytes}, i64 {far}"));
        let ahead = self.text.value(format!("add i64 {address}, {by}"));
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
}
