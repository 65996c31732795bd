//! What an opcode needs beyond what its line says: words that came later than the instruction, or to fewer targets (PTX
//! ISA, the notes on PTX ISA versions and targets of each instruction).

use std::collections::HashMap;
use std::sync::OnceLock;

use super::super::Form;
use crate::isa::types::Type;

/// A `.target`: `sm_90a` is (90, `a`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub number: u16,
    pub feature: Feature,
}

/// Which of a target's features a module uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Those that later targets have too.
    Base,
    /// `f`: those of the family.
    Family,
    /// `a`: those of this architecture alone, and the family's.
    Architecture,
}

impl Target {
    /// `sm_90a`, `compute_100f`
    pub fn read(word: &str) -> Option<Target> {
        let digits = word.strip_prefix("sm_").or_else(|| word.strip_prefix("compute_"))?;
        Target::numbered(digits)
    }

    fn numbered(text: &str) -> Option<Target> {
        let (digits, feature) = match text.as_bytes().last()? {
            b'a' => (&text[..text.len() - 1], Feature::Architecture),
            b'f' => (&text[..text.len() - 1], Feature::Family),
            _ => (text, Feature::Base),
        };
        let number = digits.parse().ok()?;
        Some(Target { number, feature })
    }

    /// Whether it has what `list` asks for: one of `90` (and later), `100f` (that family member's features), `90a`.
    fn has(self, list: &str) -> bool {
        list.split_whitespace()
            .filter_map(Target::numbered)
            .any(|wanted| match wanted.feature {
                Feature::Base => self.number >= wanted.number,
                Feature::Family => self.number == wanted.number && self.feature != Feature::Base,
                Feature::Architecture => self == wanted,
            })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suffix = match self.feature {
            Feature::Base => "",
            Feature::Family => "f",
            Feature::Architecture => "a",
        };
        write!(f, "sm_{}{suffix}", self.number)
    }
}

/// What is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// `PTX 7.8`, `.target sm_90 or later`
    pub needs: String,
    pub has: String,
    /// A word without which the opcode is not legal any more, rather than a newer version or another target.
    pub missing: bool,
}

/// Mnemonics; words that must all be in the opcode; the PTX version; the targets, one of which it must be.
type Need = (&'static str, &'static str, (u8, u8), &'static str);

#[rustfmt::skip]
static NEEDS: &[Need] = &[
    ("add", "s16x2 sat", (9, 2), "107f 120f 121f"),
    ("add", "sat u16x2", (9, 2), "107f 120f 121f"),
    ("add", "sat u32", (9, 2), "107f 120f 121f"),
    ("add addc mad madc sub subc", "cc s64", (4, 3), "20"),
    ("add addc mad madc sub subc", "cc u64", (4, 3), "20"),
    ("add mad mul sub", "f32 rm", (2, 0), "20"),
    ("add mad mul sub", "f32 rp", (2, 0), "20"),
    ("add max min neg sub", "s8x4", (9, 2), "107f 120f 121f"),
    ("add max min sub", "u8x4", (9, 2), "107f 120f 121f"),
    ("applypriority", "async", (9, 4), "107f"),
    ("atom", "b64 shared", (2, 0), "20"),
    ("atom", "and b64", (3, 1), "35"),
    ("atom", "b64 or", (3, 1), "35"),
    ("atom", "b64 xor", (3, 1), "35"),
    ("atom", "acq_rel", (6, 0), "70"),
    ("atom", "acquire", (6, 0), "70"),
    ("atom", "b16", (6, 3), "70"),
    ("atom", "b64 shared::cta", (7, 8), "20"),
    ("atom", "b128", (8, 3), "90"),
    ("atom", "b128 sys", (8, 4), "90"),
    ("atom red", "f32", (2, 0), "20"),
    ("atom red", "shared u64", (2, 0), "20"),
    ("atom red", "max u64", (3, 1), "35"),
    ("atom red", "min u64", (3, 1), "35"),
    ("atom red", "s64", (3, 1), "35"),
    ("atom red", "cta", (5, 0), "60"),
    ("atom red", "f64", (5, 0), "60"),
    ("atom red", "gpu", (5, 0), "60"),
    ("atom red", "sys", (5, 0), "60"),
    ("atom red", "relaxed", (6, 0), "70"),
    ("atom red", "release", (6, 0), "70"),
    ("atom red", "f16", (6, 3), "70"),
    ("atom red", "shared::cta", (7, 8), "12"),
    ("atom red", "shared::cta u64", (7, 8), "20"),
    ("atom red", "v2", (8, 1), "90"),
    ("atom red", "v4", (8, 1), "90"),
    ("atom red", "v8", (8, 1), "90"),
    ("atom red fence ld st", "cluster", (7, 8), "90"),
    ("atom red set setp", "bf16", (7, 8), "90"),
    ("atom red set setp", "bf16x2", (7, 8), "90"),
    ("bar", "cta", (7, 8), "20"),
    ("barrier", "cta", (7, 8), "30"),
    ("barrier", "acquire", (8, 0), "90"),
    ("barrier fence", "release", (8, 0), "90"),
    ("barrier mbarrier", "relaxed", (8, 0), "90"),
    ("clusterlaunchcontrol", "multicast::cluster::all", (8, 6), "100f 103f 107f 110f 120f 121f"),
    ("cp", "L2::128B", (7, 4), "80"),
    ("cp", "L2::64B", (7, 4), "80"),
    ("cp", "arrive shared::cta", (7, 8), "80"),
    ("cp", "L2 im2col::w", (8, 6), "100f 103f 107f 110f"),
    ("cp", "L2 tile::gather4", (8, 6), "100f 103f 107f 110f"),
    ("cp", "cp_mask", (8, 6), "100"),
    ("cp", "cta_group::1", (8, 6), "100f 103f 107f 110f"),
    ("cp", "cta_group::2", (8, 6), "100f 103f 107f 110f"),
    ("cp", "im2col shared::cta", (8, 6), "90"),
    ("cp", "im2col::w", (8, 6), "100"),
    ("cp", "im2col::w shared::cluster", (8, 6), "100f 103f 107f 110f"),
    ("cp", "im2col::w::128", (8, 6), "100f 103f 107f 110f"),
    ("cp", "shared::cluster tile::gather4", (8, 6), "100f 103f 107f 110f"),
    ("cp", "tile::gather4", (8, 6), "100"),
    ("cp", "tile::scatter4", (8, 6), "100f 103f 107f 110f"),
    ("cp", "ignore_oob", (9, 2), "90"),
    ("cp", "L2::evict_last", (9, 4), "107f"),
    ("cp", "mbarrier::report::disabled", (9, 4), "107f"),
    ("cp", "mbarrier::report::validity::per_16bytes::8", (9, 4), "107f"),
    ("cp", "mbarrier::report::validity::per_16bytes::80", (9, 4), "107f"),
    ("cp", "mbarrier::report::validity::per_16bytes::8000", (9, 4), "107f"),
    ("cp", "mbarrier::report::validity::per_16bytes::80000000", (9, 4), "107f"),
    ("cp", "mbarrier::report::validity::per_element::ff", (9, 4), "107f"),
    ("cp", "sync_restrict::proxy::async", (9, 5), "90"),
    ("cp atom red ld st", "L2::cache_hint", (7, 4), "80"),
    ("cp ld", "L2::256B", (7, 4), "80"),
    ("cp mbarrier tcgen05", "multicast::cluster::32b", (9, 4), "107f"),
    ("cp multimem", "f32 noftz", (9, 4), "90"),
    ("cvt", "s2", (6, 5), "75"),
    ("cvt", "s4", (6, 5), "75"),
    ("cvt", "u2", (6, 5), "75"),
    ("cvt", "u4", (6, 5), "75"),
    ("cvt", "relu", (7, 0), "80"),
    ("cvt", "bf16 f16", (7, 8), "90"),
    ("cvt", "bf16 f64", (7, 8), "90"),
    ("cvt", "bf16 rmi", (7, 8), "90"),
    ("cvt", "bf16 rni", (7, 8), "90"),
    ("cvt", "bf16 rpi", (7, 8), "90"),
    ("cvt", "bf16 rzi", (7, 8), "90"),
    ("cvt", "bf16 s16", (7, 8), "90"),
    ("cvt", "bf16 s32", (7, 8), "90"),
    ("cvt", "bf16 s64", (7, 8), "90"),
    ("cvt", "bf16 s8", (7, 8), "90"),
    ("cvt", "bf16 u16", (7, 8), "90"),
    ("cvt", "bf16 u32", (7, 8), "90"),
    ("cvt", "bf16 u64", (7, 8), "90"),
    ("cvt", "bf16 u8", (7, 8), "90"),
    ("cvt", "relu tf32", (7, 8), "90"),
    ("cvt", "rn tf32", (7, 8), "90"),
    ("cvt", "rz tf32", (7, 8), "90"),
    ("cvt", "e4m3x2", (8, 1), "89"),
    ("cvt", "e5m2x2", (8, 1), "89"),
    ("cvt", "satfinite", (8, 1), "70"),
    ("cvt", "e2m1x2", (8, 6), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "e2m3x2", (8, 6), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "e3m2x2", (8, 6), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "ue8m0x2", (8, 6), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "rs", (8, 7), "100a 103a 107a"),
    ("cvt", "bf16x2 e2m1x2", (9, 1), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "bf16x2 e2m3x2", (9, 1), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "bf16x2 e3m2x2", (9, 1), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "bf16x2 e4m3x2", (9, 1), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "bf16x2 e5m2x2", (9, 1), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "s2f6x2", (9, 1), "100a 103a 107a 110a 120a 121a"),
    ("cvt", "scaled::n2::ue8m0", (9, 1), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "e2m1x2 scaled::n2::ue8m0", (9, 2), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "e2m3x2 scaled::n2::ue8m0", (9, 2), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "e3m2x2 scaled::n2::ue8m0", (9, 2), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "e4m3x2 scaled::n2::ue8m0", (9, 2), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "e5m2x2 scaled::n2::ue8m0", (9, 2), "100f 103f 107f 110f 120f 121f"),
    ("cvt", "e2m1x2 rz", (9, 4), "107f"),
    ("cvt", "e2m3x2 rz", (9, 4), "107f"),
    ("cvt", "e3m2x2 rz", (9, 4), "107f"),
    ("cvt", "e4m3x2 rz", (9, 4), "107f"),
    ("cvt", "e5m2x2 rz", (9, 4), "107f"),
    ("cvt", "rz s2f6x2", (9, 4), "107a"),
    ("cvt", "ue5m3x2", (9, 4), "107f"),
    ("cvt mma", "tf32", (7, 0), "80"),
    ("cvt mma wmma", "bf16", (7, 0), "80"),
    ("cvta isspacep", "const", (3, 1), "20"),
    ("cvta isspacep", "param", (7, 7), "70"),
    ("cvta isspacep", "shared::cta", (7, 8), "20"),
    ("cvta isspacep", "param::entry", (8, 3), "70"),
    ("cvta isspacep atom red ld st", "shared::cluster", (7, 8), "90"),
    ("div mad rcp", "f32 rn", (2, 0), "20"),
    ("div rcp sqrt", "rm", (2, 0), "20"),
    ("div rcp sqrt", "rp", (2, 0), "20"),
    ("div rcp sqrt", "rz", (2, 0), "20"),
    ("fabric", "acc::f16", (9, 3), "100f 103f 107f 110f 120f 121f"),
    ("fabric", "acc::f32", (9, 3), "100f 103f 107f 110f 120f 121f"),
    ("fabric", "e4m3", (9, 3), "100f 103f 107f 110f 120f 121f"),
    ("fabric", "e5m2", (9, 3), "100f 103f 107f 110f 120f 121f"),
    ("fabric", "1d", (9, 4), "107f"),
    ("fabric", "bf16x2", (9, 4), "100"),
    ("fabric", "try_atom", (9, 4), "100"),
    ("fabric", "commit_group", (9, 5), "100"),
    ("fabric", "sync_restrict::read", (9, 5), "100"),
    ("fabric cp", "override::global_address", (9, 4), "107f"),
    ("fence", "acquire", (8, 3), "90"),
    ("fence", "cta release", (8, 3), "90"),
    ("fence", "gpu release", (8, 3), "90"),
    ("fence", "release sys", (8, 3), "90"),
    ("fence", "alias release", (9, 3), "90"),
    ("fence", "alias sys", (9, 3), "90"),
    ("fence", "fabric::fabric", (9, 3), "100"),
    ("fence", "fabric::generic", (9, 3), "100"),
    ("fence", "generic::fabric", (9, 3), "100"),
    ("fence", "sync_restrict::shared::cluster::read", (9, 4), "90"),
    ("fence", "sync_restrict::read", (9, 5), "90"),
    ("fence membar", "async", (8, 0), "90"),
    ("ld", "lu", (2, 0), "20"),
    ("ld", "nc", (3, 1), "35"),
    ("ld", "L2::128B", (7, 4), "75"),
    ("ld", "L2::64B", (7, 4), "75"),
    ("ld", "param::entry", (8, 3), "10"),
    ("ld", "acquire v8", (8, 8), "100"),
    ("ld", "cluster v8", (8, 8), "100"),
    ("ld ldu mov st", "b128", (8, 3), "70"),
    ("ld st", "weak", (6, 0), "70"),
    ("ld st", "L1::evict_first", (7, 4), "70"),
    ("ld st", "L1::evict_last", (7, 4), "70"),
    ("ld st", "L1::evict_normal", (7, 4), "70"),
    ("ld st", "L1::evict_unchanged", (7, 4), "70"),
    ("ld st", "L1::no_allocate", (7, 4), "70"),
    ("ld st", "shared::cta", (7, 8), "10"),
    ("ld st", "param::func", (8, 3), "20"),
    ("ld st", "b128 sys", (8, 4), "70"),
    ("ld st", "L1::evict_first v8", (8, 8), "100"),
    ("ld st", "L2::evict_first", (8, 8), "100"),
    ("ld st", "L2::evict_last", (8, 8), "100"),
    ("ld st", "L2::evict_normal", (8, 8), "100"),
    ("ld st", "b32 v8", (8, 8), "100"),
    ("ld st", "b64 v4", (8, 8), "100"),
    ("ld st", "f32 v8", (8, 8), "100"),
    ("ld st", "f64 v4", (8, 8), "100"),
    ("ld st", "s32 v8", (8, 8), "100"),
    ("ld st", "s64 v4", (8, 8), "100"),
    ("ld st", "u32 v8", (8, 8), "100"),
    ("ld st", "u64 v4", (8, 8), "100"),
    ("ld st", "local volatile", (9, 1), "10"),
    ("ld st suld sust", "cg", (2, 0), "20"),
    ("ld st suld sust", "cs", (2, 0), "20"),
    ("ld suld", "ca", (2, 0), "20"),
    ("ld suld", "cv", (2, 0), "20"),
    ("ldmatrix", "shared::cta", (7, 8), "75"),
    ("ldmatrix", "b4x16_p64", (8, 6), "100f 103f 107f 110f 120f 121f"),
    ("ldmatrix", "b8x16", (8, 6), "100f 103f 107f 110f 120f 121f"),
    ("ldmatrix", "m16n16", (8, 6), "100f 103f 107f 110f 120f 121f"),
    ("ldmatrix", "m8n16", (8, 6), "100f 103f 107f 110f 120f 121f 90a"),
    ("ldmatrix", "s4", (9, 4), "100f 103f 107f 110f 120f 121f 90a"),
    ("ldmatrix stmatrix", "b8", (8, 6), "100f 103f 107f 110f 120f 121f"),
    ("mad", "f32 rz", (2, 0), "20"),
    ("max min", "NaN", (7, 0), "80"),
    ("max min", "abs", (7, 2), "86"),
    ("max min", "relu", (8, 0), "90"),
    ("max min", "s16x2", (8, 0), "90"),
    ("max min", "u16x2", (8, 0), "90"),
    ("mbarrier", "parity", (7, 1), "80"),
    ("mbarrier", "shared::cta", (7, 8), "80"),
    ("mbarrier", "try_wait", (7, 8), "90"),
    ("mbarrier", "cluster", (8, 0), "90"),
    ("mbarrier", "cta", (8, 0), "80"),
    ("mbarrier", "expect_tx", (8, 0), "90"),
    ("mbarrier", "shared::cluster", (8, 0), "90"),
    ("mbarrier", "arrive relaxed", (8, 6), "90"),
    ("mbarrier", "arrive_drop relaxed", (8, 6), "90"),
    ("mbarrier", "parity relaxed", (8, 6), "90"),
    ("mbarrier", "relaxed test_wait", (8, 6), "90"),
    ("mbarrier", "relaxed try_wait", (8, 6), "90"),
    ("mbarrier", "check_layout", (9, 3), "90"),
    ("mbarrier", "layout::v0", (9, 3), "90"),
    ("mbarrier", "layout::v1", (9, 3), "90"),
    ("mbarrier", "phase_type::conditional", (9, 3), "90"),
    ("mbarrier", "phase_type::primary", (9, 3), "90"),
    ("membar", "sys", (2, 0), "20"),
    ("mma", "m16n8k8", (6, 5), "75"),
    ("mma", "s32", (6, 5), "75"),
    ("mma", "b1", (7, 0), "75"),
    ("mma", "m16n8k128", (7, 0), "80"),
    ("mma", "m16n8k16", (7, 0), "80"),
    ("mma", "m16n8k256", (7, 0), "80"),
    ("mma", "m16n8k32", (7, 0), "80"),
    ("mma", "m16n8k4", (7, 0), "80"),
    ("mma", "m16n8k64", (7, 0), "80"),
    ("mma", "f32 m16n8k32", (7, 1), "80"),
    ("mma", "f64 m16n8k16", (7, 8), "90"),
    ("mma", "f64 m16n8k4", (7, 8), "90"),
    ("mma", "f64 m16n8k8", (7, 8), "90"),
    ("mma", "e4m3", (8, 4), "89"),
    ("mma", "e5m2", (8, 4), "89"),
    ("mma", "sp::ordered_metadata", (8, 5), "80"),
    ("mma", "kind::f8f6f4", (8, 6), "100f 103f 107f 110f 120f 121f"),
    ("mma", "block_scale", (8, 7), "120f 121f"),
    ("mma", "block_scale m16n8k128", (8, 7), "120a 121a"),
    ("mma", "e2m1", (8, 7), "120f 121f"),
    ("mma", "e2m3", (8, 7), "120f 121f"),
    ("mma", "e3m2", (8, 7), "120f 121f"),
    ("mma", "e4m3 f16", (8, 7), "89"),
    ("mma", "e4m3 m16n8k16", (8, 7), "89"),
    ("mma", "e5m2 f16", (8, 7), "89"),
    ("mma", "e5m2 m16n8k16", (8, 7), "89"),
    ("mma", "f16 kind::f8f6f4", (8, 7), "100f 103f 107f 110f 120f 121f"),
    ("mma", "f16 m16n8k64", (8, 7), "120f 121f"),
    ("mma", "scale_vec::4X ue8m0", (9, 1), "120f 121f"),
    ("mma wmma", "f64", (7, 0), "80"),
    ("mma wmma", "and", (7, 1), "80"),
    ("multimem", "acc::f32", (8, 2), "90"),
    ("multimem", "acc::f16", (8, 6), "100f 103f 107f 110f 120a 121a"),
    ("multimem", "e4m3", (8, 6), "100f 103f 107f 110f 120a 121a"),
    ("multimem", "e4m3x2", (8, 6), "100f 103f 107f 110f 120a 121a"),
    ("multimem", "e4m3x4", (8, 6), "100f 103f 107f 110f 120a 121a"),
    ("multimem", "e5m2", (8, 6), "100f 103f 107f 110f 120a 121a"),
    ("multimem", "e5m2x2", (8, 6), "100f 103f 107f 110f 120a 121a"),
    ("multimem", "e5m2x4", (8, 6), "100f 103f 107f 110f 120a 121a"),
    ("multimem", "cp_mask", (9, 1), "100"),
    ("prefetch", "L1::32B", (9, 4), "90"),
    ("red", "b64", (3, 1), "35"),
    ("redux", "NaN", (8, 6), "100f 103f 107f"),
    ("redux", "f32", (8, 6), "100f 103f 107f"),
    ("rsqrt", "f64 ftz", (4, 0), "20"),
    ("set", "equ s16", (6, 5), "53"),
    ("set", "equ u16", (6, 5), "53"),
    ("set", "f16x2 s32", (6, 5), "53"),
    ("set", "f16x2 u32", (6, 5), "53"),
    ("set", "ftz s16", (6, 5), "53"),
    ("set", "ftz u16", (6, 5), "53"),
    ("set", "geu s16", (6, 5), "53"),
    ("set", "geu u16", (6, 5), "53"),
    ("set", "gtu s16", (6, 5), "53"),
    ("set", "gtu u16", (6, 5), "53"),
    ("set", "leu s16", (6, 5), "53"),
    ("set", "leu u16", (6, 5), "53"),
    ("set", "ltu s16", (6, 5), "53"),
    ("set", "ltu u16", (6, 5), "53"),
    ("set", "nan s16", (6, 5), "53"),
    ("set", "nan u16", (6, 5), "53"),
    ("set", "neu s16", (6, 5), "53"),
    ("set", "neu u16", (6, 5), "53"),
    ("set", "num s16", (6, 5), "53"),
    ("set", "num u16", (6, 5), "53"),
    ("set setp tex", "f16", (4, 2), "53"),
    ("set setp tex", "f16x2", (4, 2), "53"),
    ("setmaxnreg", "", (8, 0), "100f 103f 107f 110f 120f 121f 90a"),
    ("shf", "", (3, 1), "35"),
    ("st", "param", (2, 0), "20"),
    ("st", "b128 mmio", (8, 4), "70"),
    ("st", "async b128", (9, 2), "90"),
    ("st sust", "wb", (2, 0), "20"),
    ("st sust", "wt", (2, 0), "20"),
    ("suld sured sust", "3d", (3, 0), "20"),
    ("suld sust", "clamp", (2, 0), "10"),
    ("suld sust", "zero", (2, 0), "10"),
    ("suld sust", "a1d", (3, 0), "20"),
    ("suld sust", "a2d", (3, 0), "20"),
    ("suq txq", "channel_data_type", (2, 1), "10"),
    ("suq txq", "channel_order", (2, 1), "10"),
    ("suq txq", "array_size", (4, 1), "10"),
    ("suq txq", "memory_layout", (4, 2), "10"),
    ("sured", "b64", (8, 1), "50"),
    ("sured", "max u64", (8, 1), "50"),
    ("sured", "min u64", (8, 1), "50"),
    ("sured", "s64", (8, 1), "50"),
    ("sust", "a1d p", (4, 1), "30"),
    ("sust", "a2d p", (4, 1), "30"),
    ("tcgen05", "", (8, 6), "100f 103f 107f 110f"),
    ("tcgen05", "down", (8, 6), "100a 103a 107a 110a"),
    ("tcgen05", "kind::i8", (8, 6), "100a 110a"),
    ("tcgen05", "kind::mxf4 sp", (8, 6), "100a 103a 107a 110a"),
    ("tcgen05", "scale_vec::1X", (8, 6), "100a 103a 107a 110a"),
    ("tcgen05", "scale_vec::2X", (8, 6), "100a 103a 107a 110a"),
    ("tcgen05", "kind::mxf4nvf4", (8, 7), "100f 103f 107f 110f"),
    ("tcgen05", "kind::mxf4nvf4 sp", (8, 7), "100a 103a 107a 110a"),
    ("tcgen05", "scale_vec::4X", (8, 7), "100a 103a 107a 110a"),
    ("tcgen05", "block16", (8, 8), "100f 103f 107f 110f"),
    ("tcgen05", "block16 sp", (8, 8), "100a 103a 107a 110a"),
    ("tcgen05", "block32", (8, 8), "100f 103f 107f 110f"),
    ("tcgen05", "b2", (9, 4), "107a"),
    ("tcgen05", "exclusive", (9, 4), "100f 103f 107f 110f"),
    ("tcgen05", "sync_restrict::shared::read::mma::a", (9, 4), "107f"),
    ("tensormap", "b1024", (8, 3), "100f 103f 107f 110f 120f 121f 90a"),
    ("tensormap", "swizzle_atomicity", (8, 6), "100f 103f 107f 110f 120f 121f"),
    ("tex", "a1d", (2, 3), "10"),
    ("tex", "a2d", (2, 3), "10"),
    ("tex", "acube", (3, 0), "20"),
    ("tex", "cube", (3, 0), "10"),
    ("tex", "2dms", (3, 2), "30"),
    ("tex", "a2dms", (3, 2), "30"),
    ("tex", "acube grad", (4, 3), "20"),
    ("tex", "cube grad", (4, 3), "20"),
    ("tld4", "a2d", (4, 3), "30"),
    ("tld4", "acube", (4, 3), "30"),
    ("tld4", "cube", (4, 3), "30"),
    ("txq", "force_unnormalized_coords", (2, 2), "10"),
    ("txq", "num_mipmap_levels", (4, 1), "20"),
    ("txq", "num_samples", (4, 1), "30"),
    ("wgmma", "", (8, 0), "90a"),
    ("wgmma", "sp", (8, 2), "90a"),
    ("wgmma", "s8 u8", (8, 4), "90a"),
    ("wmma", "", (6, 3), "70"),
    ("wmma", "b1", (6, 3), "75"),
    ("wmma", "f16 satfinite", (6, 3), "75"),
    ("wmma", "f32 satfinite", (6, 3), "75"),
    ("wmma", "m8n8k128", (6, 3), "75"),
    ("wmma", "m8n8k32", (6, 3), "75"),
    ("wmma", "s32", (6, 3), "72"),
    ("wmma", "s8", (6, 3), "72"),
    ("wmma", "satfinite", (6, 3), "72"),
    ("wmma", "u8", (6, 3), "72"),
    ("wmma", "m16n16k8", (7, 0), "80"),
    ("wmma", "shared::cta", (7, 8), "70"),
];

/// An opcode that was legal once: mnemonics, a word that must be in it, words one of which makes it legal still; since
/// which version, on which targets, it is not.
struct Gone {
    mnemonics: &'static str,
    with: &'static str,
    unless: &'static str,
    since: (u8, u8),
    target: u16,
}

#[rustfmt::skip]
static GONE: &[Gone] = &[
    Gone { mnemonics: "shfl vote", with: "", unless: "sync", since: (6, 4), target: 70 },
    Gone { mnemonics: "sin cos lg2 ex2 rsqrt sqrt rcp", with: "", unless: "approx rn rz rm rp", since: (1, 4), target: 0 },
    Gone { mnemonics: "div", with: "f32", unless: "approx full rn rz rm rp", since: (1, 4), target: 0 },
    Gone { mnemonics: "div", with: "f64", unless: "rn rz rm rp", since: (1, 4), target: 0 },
    Gone { mnemonics: "mad", with: "f64", unless: "rn rz rm rp", since: (1, 4), target: 0 },
    Gone { mnemonics: "mad", with: "f32", unless: "rn rz rm rp", since: (1, 4), target: 20 },
];

/// What there is to say of each mnemonic.
fn needs_of(mnemonic: &str) -> &'static [&'static Need] {
    static INDEX: OnceLock<HashMap<&'static str, Vec<&'static Need>>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut index: HashMap<&'static str, Vec<&'static Need>> = HashMap::new();
        for need in NEEDS {
            for mnemonic in need.0.split(' ') {
                index.entry(mnemonic).or_default().push(need);
            }
        }
        index
    });
    index.get(mnemonic).map_or(&[], |needs| needs)
}

impl Form {
    /// Whether a word, or a type, is anywhere in the opcode.
    pub(in crate::isa) fn includes(&self, word: &str) -> bool {
        self.has(word) || Type::from_word(word).is_some_and(|ty| self.types.contains(&ty))
    }

    /// What a module of this version and target lacks for this opcode.
    pub fn lacks(&self, version: (u8, u8), target: Option<Target>) -> Option<Lack> {
        let own = self.line.target.to_string();
        let mut version_needed = self.line.ptx;
        let mut target_needed = None;
        let misses = |list: &str| target.is_some_and(|target| !target.has(list));
        if misses(&own) {
            target_needed = Some(&*own);
        }
        for (_, words, ptx, targets) in needs_of(self.mnemonic()) {
            if words.split_whitespace().all(|word| self.includes(word)) {
                version_needed = version_needed.max(*ptx);
                if misses(targets) {
                    target_needed = Some(targets);
                }
            }
        }
        if let (Some(list), Some(target)) = (target_needed, target) {
            return Some(Lack {
                needs: describe(list),
                has: format!("`.target {target}`"),
                missing: false,
            });
        }
        if version < version_needed {
            return Some(Lack {
                needs: format!("PTX {}.{}", version_needed.0, version_needed.1),
                has: format!("`.version {}.{}`", version.0, version.1),
                missing: false,
            });
        }
        let gone = GONE.iter().find(|gone| {
            gone.mnemonics.split(' ').any(|mnemonic| mnemonic == self.mnemonic())
                && (gone.with.is_empty() || self.includes(gone.with))
                && !gone.unless.split(' ').any(|word| self.has(word))
                && version >= gone.since
                && target.map_or(u16::MAX, |target| target.number) >= gone.target
        })?;
        let words: Vec<String> = gone.unless.split(' ').map(|word| format!("`.{word}`")).collect();
        Some(Lack {
            needs: words.join(" or "),
            has: format!("`.version {}.{}`", version.0, version.1),
            // Without its rounding the instruction means nothing; without `.sync` it means what it always meant.
            missing: gone.target < 70,
        })
    }
}

fn describe(list: &str) -> String {
    let names: Vec<String> = list
        .split_whitespace()
        .filter_map(Target::numbered)
        .map(|target| match target.feature {
            Feature::Base => format!("{target} or later"),
            _ => target.to_string(),
        })
        .collect();
    format!("`.target` {}", names.join(" or "))
}
