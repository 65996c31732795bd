//! Memory: loads, stores, atomics, reductions, address conversion, caches, asynchronous copies.

use super::Meaning::*;
use super::{Line, line};
use crate::isa::operation::Advice;

#[rustfmt::skip]
pub static LINES: &[Line] = &[
    line("ld{.weak}{.ss}{.cop}{.L1::evict}{.L2::evict}{.L2::cache_hint}{.L2::prefetch}{.vec}.type d:v+, [a]{, cache-policy}; .ss = { .const, .global, .local, .param, .param::entry, .param::func, .shared, .shared::cta, .shared::cluster }; .cop = { .ca, .cg, .cs, .lu, .cv }; .L1::evict = { .L1::evict_normal, .L1::evict_unchanged, .L1::evict_first, .L1::evict_last, .L1::no_allocate }; .L2::evict = { .L2::evict_normal, .L2::evict_first, .L2::evict_last }; .L2::prefetch = { .L2::64B, .L2::128B, .L2::256B }; .vec = { .v2, .v4, .v8 }; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f16, .f32, .f64 }", (1, 0), 10, Load),
    line("ld.volatile{.ss}{.L2::prefetch}{.vec}.type d:v+, [a]; .ss = { .const, .global, .local, .param, .param::entry, .param::func, .shared, .shared::cta, .shared::cluster }; .L2::prefetch = { .L2::64B, .L2::128B, .L2::256B }; .vec = { .v2, .v4, .v8 }; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 }", (1, 1), 10, Load),
    line("ld.sem.scope{.ss}{.L1::evict}{.L2::evict}{.L2::cache_hint}{.L2::prefetch}{.vec}.type d:v+, [a]{, cache-policy}; .sem = { .relaxed, .acquire }; .scope = { .cta, .cluster, .gpu, .sys }; .ss = { .global, .shared, .shared::cta, .shared::cluster }; .L1::evict = { .L1::evict_normal, .L1::evict_unchanged, .L1::evict_first, .L1::evict_last, .L1::no_allocate }; .L2::evict = { .L2::evict_normal, .L2::evict_first, .L2::evict_last }; .L2::prefetch = { .L2::64B, .L2::128B, .L2::256B }; .vec = { .v2, .v4, .v8 }; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 }", (6, 0), 70, Load),
    line("ld.mmio.sem.scope{.global}.type d:v+, [a]; .sem = { .relaxed, .acquire }; .scope = { .cta, .cluster, .gpu, .sys }; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 }", (8, 2), 70, Load),
    line("ld.global{.cop}.nc{.L1::evict}{.L2::evict}{.L2::cache_hint}{.L2::prefetch}{.vec}.type d:v+, [a]{, cache-policy}; .cop = { .ca, .cg, .cs }; .L1::evict = { .L1::evict_normal, .L1::evict_unchanged, .L1::evict_first, .L1::evict_last, .L1::no_allocate }; .L2::evict = { .L2::evict_normal, .L2::evict_first, .L2::evict_last }; .L2::prefetch = { .L2::64B, .L2::128B, .L2::256B }; .vec = { .v2, .v4, .v8 }; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 }", (3, 1), 32, Load),
    line("ldu{.ss}{.vec}.type d:v+, [a]; .ss = { .global }; .vec = { .v2, .v4 }; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 }", (2, 0), 20, Load),
    line("st{.weak}{.ss}{.cop}{.L1::evict}{.L2::evict}{.L2::cache_hint}{.vec}.type [a], b:v+{, cache-policy}; .ss = { .global, .local, .param, .param::func, .shared, .shared::cta, .shared::cluster }; .cop = { .wb, .cg, .cs, .wt }; .L1::evict = { .L1::evict_normal, .L1::evict_unchanged, .L1::evict_first, .L1::evict_last, .L1::no_allocate }; .L2::evict = { .L2::evict_normal, .L2::evict_first, .L2::evict_last }; .vec = { .v2, .v4, .v8 }; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f16, .f32, .f64 }", (1, 0), 10, Store),
    line("st.volatile{.ss}{.vec}.type [a], b:v+; .ss = { .global, .local, .param, .param::func, .shared, .shared::cta, .shared::cluster }; .vec = { .v2, .v4, .v8 }; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 }", (1, 1), 10, Store),
    line("st.sem.scope{.ss}{.L1::evict}{.L2::evict}{.L2::cache_hint}{.vec}.type [a], b:v+{, cache-policy}; .sem = { .relaxed, .release }; .scope = { .cta, .cluster, .gpu, .sys }; .ss = { .global, .shared, .shared::cta, .shared::cluster }; .L1::evict = { .L1::evict_normal, .L1::evict_unchanged, .L1::evict_first, .L1::evict_last, .L1::no_allocate }; .L2::evict = { .L2::evict_normal, .L2::evict_first, .L2::evict_last }; .vec = { .v2, .v4, .v8 }; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 }", (6, 0), 70, Store),
    line("st.mmio.sem.scope{.global}.type [a], b:v+; .sem = { .relaxed, .release }; .scope = { .cta, .cluster, .gpu, .sys }; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 }", (8, 2), 70, Store),

    line("atom{.sem}{.scope}{.space}.op{.L2::cache_hint}.type d:v_, [a], b:v{, cache-policy}; .sem = { .relaxed, .acquire, .release, .acq_rel }; .scope = { .cta, .cluster, .gpu, .sys }; .space = { .global, .shared, .shared::cta, .shared::cluster }; .op = { .and, .or, .xor, .exch, .add, .inc, .dec, .min, .max }; .type = { .b32, .b64, .u32, .u64, .s32, .s64, .f32, .f64 }", (1, 1), 11, Atomic),
    line("atom{.sem}{.scope}{.space}.op{.L2::cache_hint}.type d:v_, [a], b{, c?cas}{, cache-policy}; .sem = { .relaxed, .acquire, .release, .acq_rel }; .scope = { .cta, .cluster, .gpu, .sys }; .space = { .global, .shared, .shared::cta, .shared::cluster }; .op = { .cas, .exch }; .type = { .b16, .b32, .b64, .b128, .u32, .u64, .s32, .s64 }", (1, 1), 11, Atomic),
    line("atom{.sem}{.scope}{.space}.op.noftz{.L2::cache_hint}{.vec}.type d:v_, [a], b:v{, cache-policy}; .sem = { .relaxed, .acquire, .release, .acq_rel }; .scope = { .cta, .cluster, .gpu, .sys }; .space = { .global, .shared, .shared::cta, .shared::cluster }; .op = { .add, .min, .max }; .vec = { .v2, .v4, .v8 }; .type = { .f16, .f16x2, .bf16, .bf16x2 }", (6, 2), 60, Atomic),
    line("atom{.sem}{.scope}{.space}.add{.L2::cache_hint}.vec.f32 d:v_, [a], b:v{, cache-policy}; .sem = { .relaxed, .acquire, .release, .acq_rel }; .scope = { .cta, .cluster, .gpu, .sys }; .space = { .global }; .vec = { .v2, .v4 }", (8, 1), 90, Atomic),
    line("red{.sem}{.scope}{.space}.op{.L2::cache_hint}.type [a], b:v{, cache-policy}; .sem = { .relaxed, .release }; .scope = { .cta, .cluster, .gpu, .sys }; .space = { .global, .shared, .shared::cta, .shared::cluster }; .op = { .and, .or, .xor, .add, .inc, .dec, .min, .max }; .type = { .b32, .b64, .u32, .u64, .s32, .s64, .f32, .f64 }", (1, 2), 11, Reduction),
    line("red{.sem}{.scope}{.space}.op.noftz{.L2::cache_hint}{.vec}.type [a], b:v{, cache-policy}; .sem = { .relaxed, .release }; .scope = { .cta, .cluster, .gpu, .sys }; .space = { .global, .shared, .shared::cta, .shared::cluster }; .op = { .add, .min, .max }; .vec = { .v2, .v4, .v8 }; .type = { .f16, .f16x2, .bf16, .bf16x2 }", (6, 2), 60, Reduction),
    line("red{.sem}{.scope}{.space}.add{.L2::cache_hint}.vec.f32 [a], b:v{, cache-policy}; .sem = { .relaxed, .release }; .scope = { .cta, .cluster, .gpu, .sys }; .space = { .global }; .vec = { .v2, .v4 }", (8, 1), 90, Reduction),

    line("cvta.space.size d, a:&; .space = { .const, .global, .local, .shared, .shared::cta, .shared::cluster, .param, .param::entry }; .size = { .u32, .u64 }", (2, 0), 20, ConvertAddress),
    line("cvta.to.space.size d, a; .space = { .const, .global, .local, .shared, .shared::cta, .shared::cluster, .param, .param::entry }; .size = { .u32, .u64 }", (2, 0), 20, ConvertAddress),
    line("isspacep.space p, a:int; .space = { .const, .global, .local, .shared, .shared::cta, .shared::cluster, .param, .param::entry }", (2, 0), 20, IsSpace),

    line("prefetch{.space}.level [a]; .space = { .global, .local }; .level = { .L1, .L2 }", (2, 0), 20, Hint(Advice::Prefetch)),
    line("prefetch.global.level [a]; .level = { .L2::evict_last, .L2::evict_normal }", (7, 4), 80, Hint(Advice::Prefetch)),
    line("prefetch{.tensormap_space}.tensormap [a]; .tensormap_space = { .const, .param }", (8, 0), 90, Hint(Advice::Prefetch)),
    line("prefetchu.L1 [a]", (2, 0), 20, Hint(Advice::Prefetch)),
    line("applypriority{.global}.L2::evict_normal [a], size:imm[128]", (7, 4), 80, Hint(Advice::Applypriority)),
    line("discard{.global}.L2 [a], size:imm[128]", (7, 4), 80, Hint(Advice::Discard)),

    line("cp.async.ca.state.global{.L2::cache_hint}{.L2::prefetch} [dst], [src], cp-size:imm[4,8,16]{, src-size:u32}{, ignore-src:pred}{, cache-policy}; .state = { .shared, .shared::cta }; .L2::prefetch = { .L2::64B, .L2::128B, .L2::256B }", (7, 0), 80, CopyAsync),
    line("cp.async.cg.state.global{.L2::cache_hint}{.L2::prefetch} [dst], [src], cp-size:imm[16]{, src-size:u32}{, ignore-src:pred}{, cache-policy}; .state = { .shared, .shared::cta }; .L2::prefetch = { .L2::64B, .L2::128B, .L2::256B }", (7, 0), 80, CopyAsync),
    line("cp.async.commit_group", (7, 0), 80, CopyAsync),
    line("cp.async.wait_group n:imm", (7, 0), 80, CopyAsync),
    line("cp.async.wait_all", (7, 0), 80, CopyAsync),
];
