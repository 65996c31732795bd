//! Asynchronous operations and their completion: mbarriers, bulk and tensor copies, clusters, multimem, fabric.

use super::{Line, line};
use crate::isa::Semantics::{CreatePolicy, Hint, Later};

macro_rules! barrier {
    () => {
        "; .scope = { .cta, .cluster }; .space = { .shared, .shared::cta }"
    };
}
macro_rules! report {
    () => {
        "; .report = { .mbarrier::report::disabled, .mbarrier::report::validity::per_16bytes::8, .mbarrier::report::validity::per_16bytes::80, .mbarrier::report::validity::per_16bytes::8000, .mbarrier::report::validity::per_16bytes::80000000, .mbarrier::report::validity::per_element::ff }"
    };
}
macro_rules! multicast {
    () => {
        "; .multicast = { .multicast::cluster, .multicast::cluster::32b }"
    };
}
macro_rules! reduction {
    () => {
        "; .op = { .and, .or, .xor, .add, .inc, .dec, .min, .max, .add.noftz, .min.noftz, .max.noftz }; .type = { .f16, .bf16, .b32, .u32, .s32, .b64, .u64, .s64, .f32, .f64 }"
    };
}
macro_rules! tensor {
    () => {
        "; .dim = { .1d, .2d, .3d, .4d, .5d }; .load_mode = { .tile, .tile::gather4, .tile::scatter4, .im2col, .im2col_no_offs, .im2col::w, .im2col::w::128 }; .override = { .override::global_address, .override::global_dim, .override::global_dim_stride }; .cta_group = { .cta_group::1, .cta_group::2 }"
    };
}
macro_rules! multimem {
    () => {
        "; .scope = { .cta, .cluster, .gpu, .sys }; .op = { .min, .max, .add, .and, .or, .xor }; .acc = { .acc::f32, .acc::f16 }; .vec = { .v2, .v4, .v8 }; .type = { .b32, .u32, .s32, .b64, .u64, .s64, .f16, .f16x2, .bf16, .bf16x2, .f32, .f64, .e5m2, .e5m2x2, .e5m2x4, .e4m3, .e4m3x2, .e4m3x4 }"
    };
}
macro_rules! fabric {
    () => {
        "; .space = { .shared, .shared::cta }; .dim = { .1d, .2d, .3d, .4d, .5d }; .complete = { .mbarrier::complete_tx::bytes, .mbarrier::complete_tx::16B }; .override = { .override::global_address, .override::global_dim, .override::global_dim_stride }; .sem = { .relaxed, .release }; .op = { .and, .or, .xor, .add, .inc, .dec, .min, .max, .exch, .cas }; .vec = { .v2, .v4, .v8 }; .type = { .b8, .b16, .b32, .b64, .b128, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f16, .f16x2, .bf16, .bf16x2, .f32, .f64, .e5m2, .e5m2x2, .e5m2x4, .e4m3, .e4m3x2, .e4m3x4 }"
    };
}

#[rustfmt::skip]
pub static LINES: &[Line] = &[
    line(concat!("mbarrier.init{.layout}{.space}.b64 [addr], count; .layout = { .layout::v0, .layout::v1 }", barrier!()), (7, 0), 80, Later),
    line(concat!("mbarrier.inval{.space}.b64 [addr]", barrier!()), (7, 0), 80, Later),
    line(concat!("mbarrier.check_layout.layout{.space}.b64 p, [addr]; .layout = { .layout::v0, .layout::v1 }", barrier!()), (9, 2), 90, Later),
    line("mbarrier.op{.relaxed.scope}{.space}{.multicast::cluster::32b}.b64 [addr], txCount; .op = { .expect_tx, .complete_tx }; .scope = { .cta, .cluster }; .space = { .shared, .shared::cta, .shared::cluster }", (8, 0), 90, Later),
    line("mbarrier.op{.expect_tx}{.sem.scope}{.space}{.multicast::cluster::32b}.b64 state, [addr]{, count}; .op = { .arrive, .arrive_drop }; .sem = { .release, .relaxed }; .scope = { .cta, .cluster }; .space = { .shared, .shared::cta, .shared::cluster }", (7, 0), 80, Later),
    line("mbarrier.op.noComplete{.release.cta}{.space}.b64 state, [addr], count; .op = { .arrive, .arrive_drop }; .space = { .shared, .shared::cta }", (7, 0), 80, Later),
    line(concat!("mbarrier.op{.parity}{.phase_type}{.sem.scope}{.space}.b64 p, [addr], state; .op = { .test_wait, .try_wait }; .phase_type = { .phase_type::primary, .phase_type::conditional }; .sem = { .acquire, .relaxed }", barrier!()), (7, 0), 80, Later),
    line("mbarrier.pending_count.b64 count, state", (7, 0), 80, Later),
    line("cp.async.mbarrier.arrive{.noinc}{.space}.b64 [addr]; .space = { .shared, .shared::cta }", (7, 0), 80, Later),

    line(concat!("cp.async.bulk.dst.global.mbarrier::complete_tx::bytes{.multicast}{.L2::cache_hint}{.report}{.ignore_oob} [dst], [src], size, [mbar]; .dst = { .shared::cluster, .shared::cta }", multicast!(), report!()), (8, 0), 90, Later),
    line("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [dst], [src], size, [mbar]", (8, 0), 90, Later),
    line("cp.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}{.cp_mask} [dst], [src], size{, cache-policy}{, byteMask}", (8, 0), 90, Later),
    line("cp.async.bulk.prefetch.L2.global{.hint} [src], size{, cache-policy}; .hint = { .L2::cache_hint, .L2::evict_last }", (8, 0), 90, Hint),
    line("cp.async.bulk.commit_group", (8, 0), 90, Later),
    line("cp.async.bulk.wait_group{.kind} n; .kind = { .read, .sync_restrict::proxy::async }", (8, 0), 90, Later),
    line(concat!("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.op.type [dst], [src], size, [mbar]", reduction!()), (8, 0), 90, Later),
    line(concat!("cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.op.type [dst], [src], size{, cache-policy}", reduction!()), (8, 0), 90, Later),
    line(concat!("cp.async.bulk.tensor.dim.dst.global{.load_mode}.mbarrier::complete_tx::bytes{.multicast}{.cta_group}{.L2::cache_hint}{.report}{.override}{.override} [dst], [tensorMap, coords], [mbar]; .dst = { .shared::cluster, .shared::cta }", multicast!(), report!(), tensor!()), (8, 0), 90, Later),
    line(concat!("cp.async.bulk.tensor.dim.global.shared::cta{.load_mode}{.override}{.override}.bulk_group{.L2::cache_hint} [tensorMap, coords], [src]", tensor!()), (8, 0), 90, Later),
    line(concat!("cp.async.bulk.prefetch.tensor.dim.L2.global{.load_mode}{.hint}{.override}{.override} [tensorMap, coords]; .hint = { .L2::cache_hint, .L2::evict_last }", tensor!()), (8, 0), 90, Hint),
    line(concat!("cp.reduce.async.bulk.tensor.dim.global.shared::cta.red{.load_mode}{.override}{.override}.bulk_group{.L2::cache_hint} [tensorMap, coords], [src]; .red = { .add, .min, .max, .inc, .dec, .and, .or, .xor }", tensor!()), (8, 0), 90, Later),
    line("tensormap.replace.mode.field{.space}.b1024.type [addr], new_val; .mode = { .tile }; .field = { .global_address, .rank, .box_dim, .global_dim, .global_stride, .element_stride, .elemtype, .interleave_layout, .swizzle_mode, .fill_mode, .swizzle_atomicity }; .space = { .global, .shared::cta }; .type = { .b32, .b64 }", (8, 3), 90, Later),
    line("tensormap.cp_fenceproxy.global.space.tensormap::generic.release.scope.sync.aligned [dst], [src], size; .space = { .shared, .shared::cta }; .scope = { .cta, .cluster, .gpu, .sys }", (8, 3), 90, Later),

    line("barrier.cluster.arrive{.sem}{.aligned}; .sem = { .release, .relaxed }", (7, 8), 90, Later),
    line("barrier.cluster.wait{.acquire}{.aligned}", (7, 8), 90, Later),
    line("mapa{.shared::cluster}.type d, a:&, b:u32; .type = { .u32, .u64 }", (7, 8), 90, Later),
    line("getctarank{.shared::cluster}.type d:u32, a:&; .type = { .u32, .u64 }", (7, 8), 90, Later),
    line("clusterlaunchcontrol.try_cancel.async{.space}.mbarrier::complete_tx::bytes{.multicast::cluster::all}.b128 [addr], [mbar]; .space = { .shared, .shared::cta }", (8, 6), 100, Later),
    line("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, try_cancel_response", (8, 6), 100, Later),
    line("clusterlaunchcontrol.query_cancel.get.b32.b128 d, try_cancel_response; .get = { .get_first_ctaid::x, .get_first_ctaid::y, .get_first_ctaid::z, .get_first_ctaid.v4 }", (8, 6), 100, Later),

    line("st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.vec}.type [a], b:v, [mbar]; .vec = { .v2, .v4 }; .type = { .b32, .b64, .b128, .u32, .u64, .s32, .s64, .f32, .f64 }", (8, 1), 90, Later),
    line("st.async{.mmio}.release.scope{.global}.type [a], b:0; .scope = { .gpu, .sys }; .type = { .b8, .b16, .b32, .b64, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 }", (8, 7), 100, Later),
    line("st.bulk{.weak}{.shared::cta} [a], size:u64, initval:imm[0]", (8, 6), 100, Later),
    line("red.async{.relaxed.cluster}{.shared::cluster}.mbarrier::complete_tx::bytes.op.type [a], b:0, [mbar]; .op = { .inc, .dec, .min, .max, .add, .and, .or, .xor }; .type = { .u32, .s32, .u64, .s64, .b32 }", (8, 1), 90, Later),
    line("red.async{.mmio}.release.scope{.global}.op.type [a], b:0; .scope = { .gpu, .sys }; .op = { .add, .min, .max, .and, .or, .xor, .inc, .dec }; .type = { .u32, .s32, .u64, .s64, .b32, .b64 }", (8, 7), 100, Later),

    line(concat!("multimem.ld_reduce{.ldsem}{.scope}{.global}.op{.acc}{.vec}.type d, [a]; .ldsem = { .weak, .relaxed, .acquire }", multimem!()), (8, 1), 90, Later),
    line(concat!("multimem.st{.stsem}{.scope}{.global}{.vec}.type [a], b; .stsem = { .weak, .relaxed, .release }", multimem!()), (8, 1), 90, Later),
    line(concat!("multimem.red{.redsem}{.scope}{.global}.op{.vec}.type [a], b; .redsem = { .relaxed, .release }", multimem!()), (8, 1), 90, Later),
    line("multimem.cp.async.bulk.global.shared::cta.bulk_group{.cp_mask} [dst], [src], size{, byteMask}", (9, 1), 90, Later),
    line(concat!("multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.op.type [dst], [src], size", reduction!()), (9, 1), 90, Later),

    line("createpolicy.range{.global}.primary{.secondary}.b64 d, [a], primary-size:u32, total-size:u32; .primary = { .L2::evict_last, .L2::evict_normal, .L2::evict_first, .L2::evict_unchanged }; .secondary = { .L2::evict_first, .L2::evict_unchanged }", (7, 4), 80, CreatePolicy),
    line("createpolicy.fractional.primary{.secondary}.b64 d{, fraction:f32}; .primary = { .L2::evict_last, .L2::evict_normal, .L2::evict_first, .L2::evict_unchanged }; .secondary = { .L2::evict_first, .L2::evict_unchanged }", (7, 4), 80, CreatePolicy),
    line("createpolicy.cvt.L2.b64 d, access-property:b64", (7, 4), 80, CreatePolicy),
    line("applypriority.async.bulk{.global}{.bulk_group}.L2::evict_normal [a], size:u32", (9, 3), 100, Hint),
    line("prefetch{.global}.L1::32B.valid_addr [a]", (9, 3), 90, Hint),

    line(concat!("fabric.try_put.async{.tensor}{.multimem}{.dim}{.space}{.tile}.complete.mbarrier::report::fabric{.counted::bytes}{.L2::cache_hint}{.cp_mask}{.override}{.override}{.sem}{.sys}{.vec}.type [dst], [src]", fabric!()), (9, 3), 100, Later),
    line(concat!("fabric.try_get.async{.tensor}{.multimem}{.dim}{.space}{.tile}.complete.mbarrier::report::fabric{.L2::cache_hint}{.override}{.override}{.sem}{.sys}{.vec}.type [dst], [src]", fabric!()), (9, 3), 100, Later),
    line(concat!("fabric.try_red.async{.multimem}{.space}.complete.mbarrier::report::fabric{.counted::bytes}{.L2::cache_hint}{.sem}{.sys}.op{.noftz}{.vec}.type [dst], [src]", fabric!()), (9, 3), 100, Later),
    line(concat!("fabric.try_atom.async{.multimem}{.space}.complete.mbarrier::report::fabric{.L2::cache_hint}{.sem}{.sys}.op{.noftz}{.vec}.type [dst], [src]", fabric!()), (9, 3), 100, Later),
    line(concat!("fabric.try_pullred.async{.multimem}{.space}.complete.mbarrier::report::fabric{.L2::cache_hint}{.sem}{.sys}.op{.acc}{.noftz}{.vec}.type{.sync} [dst], [src]; .acc = { .acc::f32, .acc::f16 }", fabric!()), (9, 3), 100, Later),
    line("fabric.submit{.kind}; .kind = { .commit_group, .op_restrict::fetching }", (9, 3), 100, Later),
    line("fabric.wait{.kind}; .kind = { .sync_restrict::read, .sync_restrict::reads }", (9, 3), 100, Later),
];
