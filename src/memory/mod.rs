//! The address space of all devices: one reserved region (the arena), its allocations, host ranges that kernels may
//! touch, and the check that every access of a kernel passes. Knows nothing of instructions or of CUDA handles.

/// Pages of the access map.
pub const PAGE_BITS: u32 = 12;
/// Map bits.
pub const READ: u8 = 1;
pub const WRITE: u8 = 2;

/// What a kernel's access check needs, by value: a range test and one byte per page. The map outlives the process's
/// last kernel (it is never unmapped).
#[derive(Clone, Copy)]
pub struct View {
    pub base: u64,
    /// Bytes of the arena.
    pub len: u64,
    /// One byte per page, indexed by `(address - base) >> PAGE_BITS`.
    pub map: *const std::sync::atomic::AtomicU8,
}
