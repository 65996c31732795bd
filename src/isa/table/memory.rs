//! Memory: loads, stores, atomics, reductions, address conversion, caches, asynchronous copies.

use super::entry::Meaning::*;
use super::entry::Then::{Last, NotLast, With, Without};
use super::entry::{Common, Instruction, Need, Rule, instruction, line, need, rule};
use crate::isa::operation::Advice;

/// What an access may say to caches, and its vectors.
macro_rules! access {
    () => {
        "; .L1::evict = { .L1::evict_normal, .L1::evict_unchanged, .L1::evict_first, .L1::evict_last, .L1::no_allocate }; .L2::evict = { .L2::evict_normal, .L2::evict_first, .L2::evict_last }; .L2::prefetch = { .L2::64B, .L2::128B, .L2::256B }; .vec = { .v2, .v4, .v8 }"
    };
}
macro_rules! types {
    () => {
        "; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 }"
    };
}
macro_rules! order {
    () => {
        "; .sem = { .relaxed, .acquire, .release, .acq_rel }; .scope = { .cta, .cluster, .gpu, .sys }"
    };
}

/// `ld`, `st` and what is made of `st` (`st.async`).
#[rustfmt::skip]
pub(super) const ACCESS: Common = Common {
    needs: &[
        need("weak", (6, 0), "70"),
        need("cluster/shared::cluster", (7, 8), "90"),
        need("shared::cta", (7, 8), "10"),
        need("param::func", (8, 3), "20"),
        need("local volatile", (9, 1), "10"),
        need("cg/cs", (2, 0), "20"),
        need("L1::evict_first/L1::evict_last/L1::evict_normal/L1::evict_unchanged/L1::no_allocate", (7, 4), "70"),
        need("L2::cache_hint", (7, 4), "80"),
        need("b128", (8, 3), "70"),
        need("b128 sys/mmio", (8, 4), "70"),
        need("L2::evict_first/L2::evict_last/L2::evict_normal", (8, 8), "100"),
        need("L1::evict_first/b32/f32/s32/u32 v8", (8, 8), "100"),
        need("b64/f64/s64/u64 v4", (8, 8), "100"),
    ],
    rules: &[
        rule("", NotLast("f16")),
        rule("v2 v4 v8", NotLast("b128")),
        rule("v8", NotLast("b64 u64 s64 f64")),
        rule("v8+b32 v8+u32 v8+s32 v8+f32 v4+b64 v4+u64 v4+s64 v4+f64", Without("const local param param::entry param::func shared shared::cta shared::cluster")),
        rule("L1::evict_first L1::evict_last L1::evict_normal L1::evict_unchanged L1::no_allocate", Without("ca cg cs lu cv wb wt local param param::entry param::func shared shared::cta shared::cluster const")),
        rule("volatile", Without("const param param::entry param::func")),
        rule("mmio", With("relaxed release")),
        rule("mmio+-async", With("sys")),
        rule("mmio+-async", With("relaxed")),
    ],
};

/// `atom`, `red`, `red.async`.
#[rustfmt::skip]
pub(super) const UPDATE: Common = Common {
    needs: &[
        need("f32", (2, 0), "20"),
        need("shared u64", (2, 0), "20"),
        need("max/min u64", (3, 1), "35"),
        need("s64", (3, 1), "35"),
        need("cta/f64/gpu/sys", (5, 0), "60"),
        need("relaxed/release", (6, 0), "70"),
        need("f16", (6, 3), "70"),
        need("shared::cta", (7, 8), "12"),
        need("shared::cta u64", (7, 8), "20"),
        need("L2::cache_hint", (7, 4), "80"),
        need("v2/v4/v8", (8, 1), "90"),
        need("cluster/bf16/bf16x2/shared::cluster", (7, 8), "90"),
    ],
    rules: &[
        rule("and or xor", Last("b32 b64")),
        rule("inc dec", Last("u32")),
        rule("min max", NotLast("b16 b32 b64 b128 f32 f64")),
        rule("add", NotLast("b16 b32 b64 b128")),
    ],
};

/// What `atom` and `red` ask besides.
const IN_PLACE: &[Rule] = &[
    rule("cas", Last("b16 b32 b64 b128")),
    rule("exch", Last("b32 b64 b128")),
    rule("add", NotLast("s64")),
    rule("min+noftz max+noftz", With("v2 v4 v8")),
    rule("v8", NotLast("f16x2 bf16x2")),
    rule("v2 v4 v8", Without("shared shared::cta shared::cluster")),
];

/// Spaces that have addresses of their own.
const WINDOWS: &[Need] = &[
    need("const", (3, 1), "20"),
    need("param", (7, 7), "70"),
    need("shared::cta", (7, 8), "20"),
    need("param::entry", (8, 3), "70"),
    need("shared::cluster", (7, 8), "90"),
];

#[rustfmt::skip]
pub static INSTRUCTIONS: &[Instruction] = &[
    instruction("ld", &[
        line(concat!("ld{.weak}{.ss}{.cop}{.L1::evict}{.L2::evict}{.L2::cache_hint}{.L2::prefetch}{.vec}.type d:v+, [a]{, cache-policy}; .ss = { .const, .global, .local, .param, .param::entry, .param::func, .shared, .shared::cta, .shared::cluster }; .cop = { .ca, .cg, .cs, .lu, .cv }", access!(), "; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f16, .f32, .f64 }"), (1, 0), 10, Load),
        line(concat!("ld.volatile{.ss}{.L2::prefetch}{.vec}.type d:v+, [a]; .ss = { .const, .global, .local, .param, .param::entry, .param::func, .shared, .shared::cta, .shared::cluster }; .L2::prefetch = { .L2::64B, .L2::128B, .L2::256B }; .vec = { .v2, .v4, .v8 }", types!()), (1, 1), 10, Load),
        line(concat!("ld.sem.scope{.ss}{.L1::evict}{.L2::evict}{.L2::cache_hint}{.L2::prefetch}{.vec}.type d:v+, [a]{, cache-policy}; .sem = { .relaxed, .acquire }; .scope = { .cta, .cluster, .gpu, .sys }; .ss = { .global, .shared, .shared::cta, .shared::cluster }", access!(), types!()), (6, 0), 70, Load),
        line(concat!("ld.mmio.sem.scope{.global}.type d:v+, [a]; .sem = { .relaxed, .acquire }; .scope = { .cta, .cluster, .gpu, .sys }", types!()), (8, 2), 70, Load),
        line(concat!("ld.global{.cop}.nc{.L1::evict}{.L2::evict}{.L2::cache_hint}{.L2::prefetch}{.vec}.type d:v+, [a]{, cache-policy}; .cop = { .ca, .cg, .cs }", access!(), types!()), (3, 1), 32, Load),
    ]).common(ACCESS).needs(&[
        need("L2::256B", (7, 4), "80"),
        need("L2::128B/L2::64B", (7, 4), "75"),
        need("lu/ca/cv", (2, 0), "20"),
        need("nc", (3, 1), "35"),
        need("param::entry", (8, 3), "10"),
        need("acquire/cluster v8", (8, 8), "100"),
    ]),
    instruction("ldu", &[
        line(concat!("ldu{.ss}{.vec}.type d:v+, [a]; .ss = { .global }; .vec = { .v2, .v4 }", types!()), (2, 0), 20, Load),
    ]).needs(&[
        need("b128", (8, 3), "70"),
    ]).rules(&[
        rule("", NotLast("f16")),
        rule("v2 v4", NotLast("b128")),
        rule("v4", NotLast("b64 u64 s64 f64")),
    ]),
    instruction("st", &[
        line(concat!("st{.weak}{.ss}{.cop}{.L1::evict}{.L2::evict}{.L2::cache_hint}{.vec}.type [a], b:v+{, cache-policy}; .ss = { .global, .local, .param, .param::func, .shared, .shared::cta, .shared::cluster }; .cop = { .wb, .cg, .cs, .wt }", access!(), "; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f16, .f32, .f64 }"), (1, 0), 10, Store),
        line(concat!("st.volatile{.ss}{.vec}.type [a], b:v+; .ss = { .global, .local, .param, .param::func, .shared, .shared::cta, .shared::cluster }; .vec = { .v2, .v4, .v8 }", types!()), (1, 1), 10, Store),
        line(concat!("st.sem.scope{.ss}{.L1::evict}{.L2::evict}{.L2::cache_hint}{.vec}.type [a], b:v+{, cache-policy}; .sem = { .relaxed, .release }; .scope = { .cta, .cluster, .gpu, .sys }; .ss = { .global, .shared, .shared::cta, .shared::cluster }", access!(), types!()), (6, 0), 70, Store),
        line(concat!("st.mmio.sem.scope{.global}.type [a], b:v+; .sem = { .relaxed, .release }; .scope = { .cta, .cluster, .gpu, .sys }", types!()), (8, 2), 70, Store),
    ]).common(ACCESS).needs(&[
        need("param/wb/wt", (2, 0), "20"),
    ]),

    instruction("atom", &[
        line(concat!("atom{.sem}{.scope}{.space}.op{.L2::cache_hint}.type d:v_, [a], b:v{, cache-policy}", order!(), "; .space = { .global, .shared, .shared::cta, .shared::cluster }; .op = { .and, .or, .xor, .exch, .add, .inc, .dec, .min, .max }; .type = { .b32, .b64, .u32, .u64, .s32, .s64, .f32, .f64 }"), (1, 1), 11, Atomic),
        line(concat!("atom{.sem}{.scope}{.space}.op{.L2::cache_hint}.type d:v_, [a], b{, c?cas}{, cache-policy}", order!(), "; .space = { .global, .shared, .shared::cta, .shared::cluster }; .op = { .cas, .exch }; .type = { .b16, .b32, .b64, .b128, .u32, .u64, .s32, .s64 }"), (1, 1), 11, Atomic),
        line(concat!("atom{.sem}{.scope}{.space}.op.noftz{.L2::cache_hint}{.vec}.type d:v_, [a], b:v{, cache-policy}", order!(), "; .space = { .global, .shared, .shared::cta, .shared::cluster }; .op = { .add, .min, .max }; .vec = { .v2, .v4, .v8 }; .type = { .f16, .f16x2, .bf16, .bf16x2 }"), (6, 2), 60, Atomic),
        line(concat!("atom{.sem}{.scope}{.space}.add{.L2::cache_hint}.vec.f32 d:v_, [a], b:v{, cache-policy}", order!(), "; .space = { .global }; .vec = { .v2, .v4 }"), (8, 1), 90, Atomic),
    ]).common(UPDATE).needs(&[
        need("b64 shared", (2, 0), "20"),
        need("and/or/xor b64", (3, 1), "35"),
        need("acq_rel/acquire", (6, 0), "70"),
        need("b16", (6, 3), "70"),
        need("b64 shared::cta", (7, 8), "20"),
        need("b128", (8, 3), "90"),
        need("b128 sys", (8, 4), "90"),
    ]).rules(IN_PLACE),
    instruction("red", &[
        line("red{.sem}{.scope}{.space}.op{.L2::cache_hint}.type [a], b:v{, cache-policy}; .sem = { .relaxed, .release }; .scope = { .cta, .cluster, .gpu, .sys }; .space = { .global, .shared, .shared::cta, .shared::cluster }; .op = { .and, .or, .xor, .add, .inc, .dec, .min, .max }; .type = { .b32, .b64, .u32, .u64, .s32, .s64, .f32, .f64 }", (1, 2), 11, Reduction),
        line("red{.sem}{.scope}{.space}.op.noftz{.L2::cache_hint}{.vec}.type [a], b:v{, cache-policy}; .sem = { .relaxed, .release }; .scope = { .cta, .cluster, .gpu, .sys }; .space = { .global, .shared, .shared::cta, .shared::cluster }; .op = { .add, .min, .max }; .vec = { .v2, .v4, .v8 }; .type = { .f16, .f16x2, .bf16, .bf16x2 }", (6, 2), 60, Reduction),
        line("red{.sem}{.scope}{.space}.add{.L2::cache_hint}.vec.f32 [a], b:v{, cache-policy}; .sem = { .relaxed, .release }; .scope = { .cta, .cluster, .gpu, .sys }; .space = { .global }; .vec = { .v2, .v4 }", (8, 1), 90, Reduction),
    ]).common(UPDATE).needs(&[
        need("b64", (3, 1), "35"),
    ]).rules(IN_PLACE),

    instruction("cvta", &[
        line("cvta.space.size d, a:&; .space = { .const, .global, .local, .shared, .shared::cta, .shared::cluster, .param, .param::entry }; .size = { .u32, .u64 }", (2, 0), 20, ConvertAddress),
        line("cvta.to.space.size d, a; .space = { .const, .global, .local, .shared, .shared::cta, .shared::cluster, .param, .param::entry }; .size = { .u32, .u64 }", (2, 0), 20, ConvertAddress),
    ]).needs(WINDOWS),
    instruction("isspacep", &[
        line("isspacep.space p, a:int; .space = { .const, .global, .local, .shared, .shared::cta, .shared::cluster, .param, .param::entry }", (2, 0), 20, IsSpace),
    ]).needs(WINDOWS),

    instruction("prefetch", &[
        line("prefetch{.space}.level [a]; .space = { .global, .local }; .level = { .L1, .L2 }", (2, 0), 20, Hint(Advice::Prefetch)),
        line("prefetch.global.level [a]; .level = { .L2::evict_last, .L2::evict_normal }", (7, 4), 80, Hint(Advice::Prefetch)),
        line("prefetch{.tensormap_space}.tensormap [a]; .tensormap_space = { .const, .param }", (8, 0), 90, Hint(Advice::Prefetch)),
    ]),
    instruction("prefetchu", &[
        line("prefetchu.L1 [a]", (2, 0), 20, Hint(Advice::Prefetch)),
    ]),
    instruction("applypriority", &[
        line("applypriority{.global}.L2::evict_normal [a], size:imm[128]", (7, 4), 80, Hint(Advice::Applypriority)),
    ]),
    instruction("discard", &[
        line("discard{.global}.L2 [a], size:imm[128]", (7, 4), 80, Hint(Advice::Discard)),
    ]),

    instruction("cp", &[
        line("cp.async.ca.state.global{.L2::cache_hint}{.L2::prefetch} [dst], [src], cp-size:imm[4,8,16]{, src-size:u32}{, ignore-src:pred}{, cache-policy}; .state = { .shared, .shared::cta }; .L2::prefetch = { .L2::64B, .L2::128B, .L2::256B }", (7, 0), 80, CopyAsync),
        line("cp.async.cg.state.global{.L2::cache_hint}{.L2::prefetch} [dst], [src], cp-size:imm[16]{, src-size:u32}{, ignore-src:pred}{, cache-policy}; .state = { .shared, .shared::cta }; .L2::prefetch = { .L2::64B, .L2::128B, .L2::256B }", (7, 0), 80, CopyAsync),
        line("cp.async.commit_group", (7, 0), 80, CopyAsync),
        line("cp.async.wait_group n:imm", (7, 0), 80, CopyAsync),
        line("cp.async.wait_all", (7, 0), 80, CopyAsync),
    ]).needs(&[
        need("L2::64B/L2::128B/L2::256B/L2::cache_hint", (7, 4), "80"),
    ]),
];
