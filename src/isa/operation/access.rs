//! Accesses to memory and what stands around them (PTX ISA, Data Movement and Conversion Instructions; Parallel
//! Synchronization and Communication Instructions).

use crate::isa::types::{Ordering, Scope, Space, Type, Vector};
use crate::isa::words::Words;

/// Cache operators (PTX ISA, Cache Operators).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum CacheOperator { Ca, Cg, Cs, Lu, Cv, Wb, Wt }

impl CacheOperator {
    pub(super) fn from_word(word: &str) -> Option<CacheOperator> {
        Some(match word {
            "ca" => CacheOperator::Ca,
            "cg" => CacheOperator::Cg,
            "cs" => CacheOperator::Cs,
            "lu" => CacheOperator::Lu,
            "cv" => CacheOperator::Cv,
            "wb" => CacheOperator::Wb,
            "wt" => CacheOperator::Wt,
            _ => return None,
        })
    }

    /// It passes by the first-level cache, which blocks do not share.
    pub fn passes_l1(self) -> bool {
        match self {
            CacheOperator::Cg | CacheOperator::Cv | CacheOperator::Wt => true,
            CacheOperator::Ca | CacheOperator::Cs | CacheOperator::Lu | CacheOperator::Wb => false,
        }
    }
}

/// Cache eviction priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Eviction { Normal, Unchanged, First, Last, NoAllocate }

impl Eviction {
    fn of(word: &str) -> Option<Eviction> {
        Some(match word {
            "evict_normal" => Eviction::Normal,
            "evict_unchanged" => Eviction::Unchanged,
            "evict_first" => Eviction::First,
            "evict_last" => Eviction::Last,
            "no_allocate" => Eviction::NoAllocate,
            _ => return None,
        })
    }
    fn l1(word: &str) -> Option<Eviction> {
        Eviction::of(word.strip_prefix("L1::")?)
    }
    fn l2(word: &str) -> Option<Eviction> {
        Eviction::of(word.strip_prefix("L2::")?)
    }
}

/// How much the second-level cache fetches at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum SectorPromotion { B64, B128, B256 }

impl SectorPromotion {
    fn from_word(word: &str) -> Option<SectorPromotion> {
        Some(match word {
            "L2::64B" => SectorPromotion::B64,
            "L2::128B" => SectorPromotion::B128,
            "L2::256B" => SectorPromotion::B256,
            _ => return None,
        })
    }
}

/// What an access says to caches. Nothing of it changes a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cache {
    pub operator: Option<CacheOperator>,
    pub l1: Option<Eviction>,
    pub l2: Option<Eviction>,
    pub promotion: Option<SectorPromotion>,
    /// A cache policy is the last operand.
    pub hint: bool,
}

impl Cache {
    fn read(w: Words) -> Cache {
        Cache {
            operator: w.find(CacheOperator::from_word),
            l1: w.find(Eviction::l1),
            l2: w.find(Eviction::l2),
            promotion: w.find(SectorPromotion::from_word),
            hint: w.has("L2::cache_hint"),
        }
    }
}

/// `ld`, `ldu`, `st`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// `Generic` where the opcode names none.
    pub space: Space,
    /// Weak where the opcode says nothing. `mmio` is relaxed, too.
    pub ordering: Ordering,
    pub scope: Option<Scope>,
    /// `.nc`, `ldu`: of memory that nobody writes meanwhile.
    pub read_only: bool,
    pub cache: Cache,
    pub vector: Vector,
    pub ty: Type,
}

impl Access {
    pub(super) fn read(w: Words) -> Access {
        Access {
            space: w.space(),
            ordering: w.ordering().unwrap_or(Ordering::Weak),
            scope: w.scope(),
            read_only: w.has("nc") || w.mnemonic == "ldu",
            cache: Cache::read(w),
            vector: w.vector(),
            ty: w.ty(0),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum AtomicOp { Add, Min, Max, And, Or, Xor, Inc, Dec, Exch, Cas }

impl AtomicOp {
    pub(in crate::isa) fn from_word(word: &str) -> Option<AtomicOp> {
        Some(match word {
            "add" => AtomicOp::Add,
            "min" => AtomicOp::Min,
            "max" => AtomicOp::Max,
            "and" => AtomicOp::And,
            "or" => AtomicOp::Or,
            "xor" => AtomicOp::Xor,
            "inc" => AtomicOp::Inc,
            "dec" => AtomicOp::Dec,
            "exch" => AtomicOp::Exch,
            "cas" => AtomicOp::Cas,
            _ => return None,
        })
    }

    /// As written behind a dot.
    pub fn word(self) -> &'static str {
        match self {
            AtomicOp::Add => "add",
            AtomicOp::Min => "min",
            AtomicOp::Max => "max",
            AtomicOp::And => "and",
            AtomicOp::Or => "or",
            AtomicOp::Xor => "xor",
            AtomicOp::Inc => "inc",
            AtomicOp::Dec => "dec",
            AtomicOp::Exch => "exch",
            AtomicOp::Cas => "cas",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum AtomicType { U32, S32, B32, U64, S64, B64, F32, F64, F16, F16x2, Bf16, Bf16x2, B16, B128 }

impl AtomicType {
    fn of(ty: Type) -> Option<AtomicType> {
        Some(match ty {
            Type::U32 => AtomicType::U32,
            Type::S32 => AtomicType::S32,
            Type::B32 => AtomicType::B32,
            Type::U64 => AtomicType::U64,
            Type::S64 => AtomicType::S64,
            Type::B64 => AtomicType::B64,
            Type::F32 => AtomicType::F32,
            Type::F64 => AtomicType::F64,
            Type::F16 => AtomicType::F16,
            Type::F16x2 => AtomicType::F16x2,
            Type::Bf16 => AtomicType::Bf16,
            Type::Bf16x2 => AtomicType::Bf16x2,
            Type::B16 => AtomicType::B16,
            Type::B128 => AtomicType::B128,
            _ => return None,
        })
    }

    pub const fn ty(self) -> Type {
        match self {
            AtomicType::U32 => Type::U32,
            AtomicType::S32 => Type::S32,
            AtomicType::B32 => Type::B32,
            AtomicType::U64 => Type::U64,
            AtomicType::S64 => Type::S64,
            AtomicType::B64 => Type::B64,
            AtomicType::F32 => Type::F32,
            AtomicType::F64 => Type::F64,
            AtomicType::F16 => Type::F16,
            AtomicType::F16x2 => Type::F16x2,
            AtomicType::Bf16 => Type::Bf16,
            AtomicType::Bf16x2 => Type::Bf16x2,
            AtomicType::B16 => Type::B16,
            AtomicType::B128 => Type::B128,
        }
    }
}

/// `atom`, `red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReadModifyWrite {
    pub op: AtomicOp,
    pub ty: AtomicType,
    /// `Generic` where the opcode names none.
    pub space: Space,
    /// Relaxed where the opcode says nothing.
    pub ordering: Ordering,
    pub scope: Option<Scope>,
    /// A cache policy is the last operand.
    pub hint: bool,
    pub vector: Vector,
}

impl ReadModifyWrite {
    pub(in crate::isa) fn read(w: Words) -> Option<ReadModifyWrite> {
        Some(ReadModifyWrite {
            op: w.find(AtomicOp::from_word)?,
            ty: AtomicType::of(w.ty(0))?,
            space: w.space(),
            ordering: w.ordering().unwrap_or(Ordering::Relaxed),
            scope: w.scope(),
            hint: w.has("L2::cache_hint"),
            vector: w.vector(),
        })
    }

    /// Whether global memory adds in its own way, where the address turns out to lie in shared memory or not: of `f32` it
    /// flushes subnormals (PTX ISA, atom), of `f64` it leaves NaNs as they are (seen on an H100).
    pub fn adds_in_memory(self, shared: bool) -> bool {
        let is_own = matches!(self.ty, AtomicType::F32 | AtomicType::F64);
        self.op == AtomicOp::Add && is_own && !shared
    }
}

/// `cp.async` and its groups (non-bulk).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum CopyAsync {
    /// From global memory into `to`.
    Copy { to: Space, cache: Cache },
    CommitGroup,
    WaitGroup,
    WaitAll,
}

impl CopyAsync {
    pub(super) fn read(w: Words) -> Option<CopyAsync> {
        Some(match () {
            () if w.has("commit_group") => CopyAsync::CommitGroup,
            () if w.has("wait_group") => CopyAsync::WaitGroup,
            () if w.has("wait_all") => CopyAsync::WaitAll,
            () => CopyAsync::Copy {
                to: w.space(),
                cache: Cache::read(w),
            },
        })
    }
}

/// What `createpolicy` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    pub kind: PolicyKind,
    pub primary: Eviction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum PolicyKind { Range, Fractional,
    /// Of an access property.
    Converted }

impl Policy {
    pub(super) fn read(w: Words) -> Policy {
        Policy {
            kind: match () {
                () if w.has("range") => PolicyKind::Range,
                () if w.has("cvt") => PolicyKind::Converted,
                () => PolicyKind::Fractional,
            },
            primary: w.find(Eviction::l2).unwrap_or(Eviction::Normal),
        }
    }
}

/// `membar`, `fence` (PTX ISA, Memory Consistency Model, Fence; Proxies).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    /// None of a fence between proxies that says nothing else; `membar` is sequentially consistent.
    pub ordering: Option<Ordering>,
    pub scope: Option<Scope>,
    pub proxy: Option<Proxy>,
    pub restriction: Option<Restriction>,
}

/// Between which proxies a fence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Proxy {
    Alias, Async, AsyncGlobal, AsyncSharedCta, AsyncSharedCluster, AsyncGeneric, TensormapGeneric, FabricFabric,
    FabricGeneric, GenericFabric,
}

impl Proxy {
    fn from_word(word: &str) -> Option<Proxy> {
        Some(match word {
            "async" => Proxy::Async,
            "async::generic" => Proxy::AsyncGeneric,
            "tensormap::generic" => Proxy::TensormapGeneric,
            "fabric::fabric" => Proxy::FabricFabric,
            "fabric::generic" => Proxy::FabricGeneric,
            "generic::fabric" => Proxy::GenericFabric,
            _ => return None,
        })
    }
}

/// What alone a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Restriction { MbarrierInit, SharedCta, SharedCluster, SharedClusterRead, Read }

impl Restriction {
    fn from_word(word: &str) -> Option<Restriction> {
        Some(match word {
            "mbarrier_init" => Restriction::MbarrierInit,
            "sync_restrict::shared::cta" => Restriction::SharedCta,
            "sync_restrict::shared::cluster" => Restriction::SharedCluster,
            "sync_restrict::shared::cluster::read" => Restriction::SharedClusterRead,
            "sync_restrict::read" => Restriction::Read,
            _ => return None,
        })
    }
}

impl Fence {
    pub(super) fn read(w: Words) -> Fence {
        let proxy = match (w.find(Proxy::from_word), w.space()) {
            (Some(Proxy::Async), Space::Global) => Some(Proxy::AsyncGlobal),
            (Some(Proxy::Async), Space::SharedCta) => Some(Proxy::AsyncSharedCta),
            (Some(Proxy::Async), Space::SharedCluster) => Some(Proxy::AsyncSharedCluster),
            (None, _) if w.has("alias") => Some(Proxy::Alias),
            (proxy, _) => proxy,
        };
        // What a fence leaves unsaid (PTX ISA, membar/fence).
        let unsaid = match (w.mnemonic, proxy) {
            ("membar", None) => Some(Ordering::Sc),
            (_, None) => Some(Ordering::AcqRel),
            (_, Some(_)) => None,
        };
        Fence {
            ordering: w.ordering().or(unsaid),
            scope: w.scope(),
            proxy,
            restriction: w.find(Restriction::from_word),
        }
    }
}

/// What has no effect on results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[rustfmt::skip]
pub enum Advice {
    /// `prefetch`, `prefetchu`, and those of bulk copies.
    Prefetch,
    Applypriority,
    Discard,
    Pmevent,
    Setmaxnreg,
    /// `griddepcontrol`: grids do not overlap here, so that there is nothing to wait for.
    Griddepcontrol,
}
