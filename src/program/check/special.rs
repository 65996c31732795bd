//! Special registers by name (PTX ISA, Special Registers).

use crate::isa::lanes::Width;
use crate::program::ir::Special;
use crate::ptx::ast::Type;

/// What `%name{.select}` reads, and how wide it is.
pub enum Reading {
    Special(Special, Width),
    Constant(u64),
    /// Four elements, to be selected.
    Vector,
}

/// `None`: no special register of that name (or no such element).
pub fn read(name: &str, select: Option<&str>) -> Option<Reading> {
    use Special::*;
    let three = |make: fn(u8) -> Special| -> Option<Reading> {
        let axis = match select {
            None => return Some(Reading::Vector),
            // Digits are PTX 1.x (PTX ISA 1.1, chapter 8).
            Some("x" | "r" | "0") => 0,
            Some("y" | "g" | "1") => 1,
            Some("z" | "b" | "2") => 2,
            // The fourth element is reserved and reads 0.
            Some("w" | "a") => return Some(Reading::Constant(0)),
            Some(_) => return None,
        };
        Some(Reading::Special(make(axis), Width::B32))
    };
    match name {
        "%tid" => return three(Tid),
        "%ntid" => return three(Ntid),
        "%ctaid" => return three(Ctaid),
        "%nctaid" => return three(Nctaid),
        "%clusterid" => return three(ClusterId),
        "%nclusterid" => return three(NclusterId),
        "%cluster_ctaid" => return three(ClusterCtaid),
        "%cluster_nctaid" => return three(ClusterNctaid),
        _ => {}
    }
    if select.is_some() {
        return None;
    }
    let word = |special| Some(Reading::Special(special, Width::B32));
    let wide = |special| Some(Reading::Special(special, Width::B64));
    let numbered =
        |prefix: &str, suffix: &str| -> Option<u8> { name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok() };
    match name {
        "%laneid" => word(Laneid),
        "%warpid" => word(Warpid),
        "%nwarpid" => word(Nwarpid),
        "%smid" => word(Smid),
        "%nsmid" => word(Nsmid),
        "%gridid" => wide(Gridid),
        "%lanemask_eq" => word(LanemaskEq),
        "%lanemask_lt" => word(LanemaskLt),
        "%lanemask_le" => word(LanemaskLe),
        "%lanemask_gt" => word(LanemaskGt),
        "%lanemask_ge" => word(LanemaskGe),
        "%clock" => word(Clock),
        "%clock_hi" => word(ClockHi),
        "%clock64" => wide(Clock64),
        "%globaltimer" => wide(Globaltimer),
        "%globaltimer_lo" => word(GlobaltimerLo),
        "%globaltimer_hi" => word(GlobaltimerHi),
        "%dynamic_smem_size" => word(DynamicSmemSize),
        "%total_smem_size" => word(TotalSmemSize),
        "%aggr_smem_size" => word(AggrSmemSize),
        "%cluster_ctarank" => word(ClusterCtarank),
        "%cluster_nctarank" => word(ClusterNctarank),
        "%is_explicit_cluster" => Some(Reading::Special(IsExplicitCluster, Width::Pred)),
        "%current_graph_exec" => wide(CurrentGraphExec),
        "%reserved_smem_offset_begin" => word(ReservedSmem(0)),
        "%reserved_smem_offset_end" => word(ReservedSmem(1)),
        "%reserved_smem_offset_cap" => word(ReservedSmem(2)),
        "%reserved_smem_offset_0" => word(ReservedSmem(3)),
        "%reserved_smem_offset_1" => word(ReservedSmem(4)),
        _ => {
            if let Some(n) = numbered("%envreg", "").filter(|&n| n < 32) {
                word(Envreg(n))
            } else if let Some(n) = numbered("%pm", "_64").filter(|&n| n < 8) {
                wide(Pm64(n))
            } else if let Some(n) = numbered("%pm", "").filter(|&n| n < 8) {
                word(Pm(n))
            } else {
                None
            }
        }
    }
}

/// The type of a special register that is one value.
pub fn ty(name: &str) -> Option<Type> {
    let width = match read(name, None)? {
        Reading::Special(_, width) => width,
        Reading::Constant(_) => Width::B32,
        Reading::Vector => return None,
    };
    Some(match width {
        Width::Pred => Type::Pred,
        Width::B16 => Type::U16,
        Width::B32 => Type::U32,
        Width::B64 | Width::B128 => Type::U64,
    })
}

/// Names of special registers, for spelling; numbered ones once.
pub fn names() -> impl Iterator<Item = &'static str> {
    [
        "%tid",
        "%ntid",
        "%laneid",
        "%warpid",
        "%nwarpid",
        "%ctaid",
        "%nctaid",
        "%smid",
        "%nsmid",
        "%gridid",
        "%clusterid",
        "%nclusterid",
        "%cluster_ctaid",
        "%cluster_nctaid",
        "%cluster_ctarank",
        "%cluster_nctarank",
        "%is_explicit_cluster",
        "%lanemask_eq",
        "%lanemask_le",
        "%lanemask_lt",
        "%lanemask_ge",
        "%lanemask_gt",
        "%clock",
        "%clock_hi",
        "%clock64",
        "%globaltimer",
        "%globaltimer_lo",
        "%globaltimer_hi",
        "%total_smem_size",
        "%aggr_smem_size",
        "%dynamic_smem_size",
        "%current_graph_exec",
        "%envreg0",
        "%pm0",
    ]
    .into_iter()
}
