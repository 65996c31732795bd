//! Asynchronous operations and their completion: mbarriers, bulk and tensor copies, clusters, multimem, fabric.

use super::entry::Fragments::Tensor;
use super::entry::Meaning::{CreatePolicy, Hint};
use super::entry::Then::Without;
use super::entry::{F100, F100_F120, F100_F120_A90, Instruction, instruction, joint, line, need, rule};
use super::memory::{ACCESS, UPDATE};
use crate::isa::joint::{bulk, cluster, fabric, mbarrier, multimem, tensor};
use crate::isa::operation::Advice;

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
/// Operations of reductions with the types that each has: in distributed shared memory, and in global memory.
macro_rules! shared_reduction {
    () => {
        "; .reduction = { .add.sum, .minmax.ordered, .incdec.u32, .logic.b32 }; .sum = { .u32, .s32, .u64 }; .minmax = { .min, .max }; .ordered = { .u32, .s32 }; .incdec = { .inc, .dec }; .logic = { .and, .or, .xor }"
    };
}
macro_rules! reduction {
    () => {
        "; .reduction = { .add.sum, .add.noftz.half, .minmax.ordered, .incdec.u32, .logic.bits }; .sum = { .u32, .s32, .u64, .f32, .f64 }; .half = { .f16, .bf16, .f32 }; .minmax = { .min, .max }; .ordered = { .u32, .s32, .u64, .s64, .f16, .bf16 }; .incdec = { .inc, .dec }; .logic = { .and, .or, .xor }; .bits = { .b32, .b64 }"
    };
}
macro_rules! tensor {
    () => {
        "; .dim = { .1d, .2d, .3d, .4d, .5d }; .over = { .override::global_address{.sizes} }; .sizes = { .override::global_dim, .override::global_dim_stride }; .cta_group = { .cta_group::1, .cta_group::2 }"
    };
}
/// Types of multimem accesses, with the vectors that each may form.
macro_rules! multimem {
    () => {
        "; .scope = { .cta, .cluster, .gpu, .sys }; .minmax = { .min, .max }; .logic = { .and, .or, .xor }; .bits = { .b32, .b64 }; .ordered = { .u32, .s32, .u64, .s64 }; .sum = { .u32, .s32, .u64, .f64, .f32, .v2.f32, .v4.f32 }; .half = { .v2.half1, .v4.half1, .v8.half1, .v2.half2, .v4.half2 }; .half1 = { .f16, .bf16 }; .half2 = { .f16x2, .bf16x2 }; .eight = { .eight4, .v2.eight2, .v2.eight4, .v4.eight1, .v4.eight2, .v4.eight4, .v8.eight1, .v8.eight2 }; .eight1 = { .e4m3, .e5m2 }; .eight2 = { .e4m3x2, .e5m2x2 }; .eight4 = { .e4m3x4, .e5m2x4 }"
    };
}
/// What fabric operations complete by: bytes that have come, or units of 16 bytes that have gone.
macro_rules! fabric {
    (come) => {
        ".shared::cta.mbarrier::complete_tx::bytes.mbarrier::report::fabric"
    };
    (gone) => {
        ".shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric"
    };
    (types) => {
        "; .minmax = { .min, .max }; .logic = { .and, .or, .xor }; .bits = { .b32, .b64 }; .ordered = { .u32, .s32, .u64, .s64 }; .half = { .f16, .bf16 }; .half2 = { .f16x2, .bf16x2 }; .eight = { .e4m3, .e5m2 }"
    };
    (tensor) => {
        "; .dim = { .1d, .2d, .3d, .4d, .5d }; .over = { .override::global_address{.sizes} }; .sizes = { .override::global_dim, .override::global_dim_stride }"
    };
    (map) => {
        "sizes:frag?override::global_dim/override::global_dim_stride, strides:frag?override::global_dim_stride, upper:u16?override::global_dim_stride, coords:frag]"
    };
}

#[rustfmt::skip]
pub static INSTRUCTIONS: &[Instruction] = &[
    instruction("mbarrier", &[
        line(concat!("mbarrier.init{.layout}{.space}.b64 [addr]:shared, count:u32; .layout = { .layout::v0, .layout::v1 }", barrier!()), (7, 0), 80, joint!(Mbarrier mbarrier::read)),
        line(concat!("mbarrier.inval{.space}.b64 [addr]:shared", barrier!()), (7, 0), 80, joint!(Mbarrier mbarrier::read)),
        line(concat!("mbarrier.check_layout.layout{.space}.b64 p, [addr]:shared; .layout = { .layout::v0, .layout::v1 }", barrier!()), (9, 2), 90, joint!(Mbarrier mbarrier::read)),
        line("mbarrier.op{.relaxed.scope}{.space}{.multicast::cluster::32b}.b64 [addr]:shared, txCount:u32{, ctaMask:u32?multicast::cluster::32b}; .op = { .expect_tx, .complete_tx }; .scope = { .cta, .cluster }; .space = { .shared, .shared::cta, .shared::cluster }", (8, 0), 90, joint!(Mbarrier mbarrier::read)),
        line("mbarrier.op{.sem.scope}{.space}.b64 state:u64_, [addr]:shared{, count:u32}; .op = { .arrive, .arrive_drop }; .sem = { .release, .relaxed }; .scope = { .cta, .cluster }; .space = { .shared, .shared::cta }", (7, 0), 80, joint!(Mbarrier mbarrier::read)),
        line("mbarrier.op.expect_tx{.sem.scope}{.space}.b64 state:u64_, [addr]:shared, txCount:u32; .op = { .arrive, .arrive_drop }; .sem = { .release, .relaxed }; .scope = { .cta, .cluster }; .space = { .shared, .shared::cta }", (8, 0), 90, joint!(Mbarrier mbarrier::read)),
        line("mbarrier.op{.sem.scope}.shared::cluster.b64 _, [addr]:shared{, count:u32}; .op = { .arrive, .arrive_drop }; .sem = { .release, .relaxed }; .scope = { .cta, .cluster }", (8, 0), 90, joint!(Mbarrier mbarrier::read)),
        line("mbarrier.op.expect_tx{.sem.scope}.shared::cluster.b64 _, [addr]:shared, txCount:u32; .op = { .arrive, .arrive_drop }; .sem = { .release, .relaxed }; .scope = { .cta, .cluster }", (8, 0), 90, joint!(Mbarrier mbarrier::read)),
        line("mbarrier.op{.sem.scope}{.shared::cluster}.multicast::cluster::32b.b64 state:u64_, [addr]:shared{, count:u32}, ctaMask:u32; .op = { .arrive, .arrive_drop }; .sem = { .release, .relaxed }; .scope = { .cta, .cluster }", (9, 4), 107, joint!(Mbarrier mbarrier::read)),
        line("mbarrier.op.expect_tx{.sem.scope}{.shared::cluster}.multicast::cluster::32b.b64 state:u64_, [addr]:shared, txCount:u32, ctaMask:u32; .op = { .arrive, .arrive_drop }; .sem = { .release, .relaxed }; .scope = { .cta, .cluster }", (9, 4), 107, joint!(Mbarrier mbarrier::read)),
        line("mbarrier.op.noComplete{.release.cta}{.space}.b64 state:u64_, [addr]:shared, count:u32; .op = { .arrive, .arrive_drop }; .space = { .shared, .shared::cta }", (7, 0), 80, joint!(Mbarrier mbarrier::read)),
        line(concat!("mbarrier.test_wait{.sem.scope}{.space}.b64 p, [addr]:shared, state:u64; .sem = { .acquire, .relaxed }", barrier!()), (7, 0), 80, joint!(Mbarrier mbarrier::read)),
        line(concat!("mbarrier.test_wait.phase_type::primary{.sem.scope}{.space}.b64 p{|q}, [addr]:shared, state:u64 or p{|q}, report:b8=, [addr]:shared, state:u64; .sem = { .acquire, .relaxed }", barrier!()), (9, 2), 90, joint!(Mbarrier mbarrier::read)),
        line(concat!("mbarrier.test_wait.parity{.sem.scope}{.space}.b64 p, [addr]:shared, phaseParity:u32; .sem = { .acquire, .relaxed }", barrier!()), (7, 0), 80, joint!(Mbarrier mbarrier::read)),
        line(concat!("mbarrier.test_wait.parity.phase_type::primary{.sem.scope}{.space}.b64 p{|q}, [addr]:shared, phaseParity:u32 or p{|q}, report:b8=, [addr]:shared, phaseParity:u32; .sem = { .acquire, .relaxed }", barrier!()), (9, 2), 90, joint!(Mbarrier mbarrier::read)),
        line(concat!("mbarrier.test_wait.parity.phase_type::conditional{.sem.scope}{.space}.b64 p, [addr]:shared, phaseParity:u32; .sem = { .acquire, .relaxed }", barrier!()), (9, 2), 90, joint!(Mbarrier mbarrier::read)),
        line(concat!("mbarrier.try_wait{.sem.scope}{.space}.b64 p, [addr]:shared, state:u64{, suspendTimeHint:u32}; .sem = { .acquire, .relaxed }", barrier!()), (7, 0), 80, joint!(Mbarrier mbarrier::read)),
        line(concat!("mbarrier.try_wait.phase_type::primary{.sem.scope}{.space}.b64 p{|q}, [addr]:shared, state:u64{, suspendTimeHint:u32} or p{|q}, report:b8=, [addr]:shared, state:u64{, suspendTimeHint:u32}; .sem = { .acquire, .relaxed }", barrier!()), (9, 2), 90, joint!(Mbarrier mbarrier::read)),
        line(concat!("mbarrier.try_wait.parity{.sem.scope}{.space}.b64 p, [addr]:shared, phaseParity:u32{, suspendTimeHint:u32}; .sem = { .acquire, .relaxed }", barrier!()), (7, 0), 80, joint!(Mbarrier mbarrier::read)),
        line(concat!("mbarrier.try_wait.parity.phase_type::primary{.sem.scope}{.space}.b64 p{|q}, [addr]:shared, phaseParity:u32{, suspendTimeHint:u32} or p{|q}, report:b8=, [addr]:shared, phaseParity:u32{, suspendTimeHint:u32}; .sem = { .acquire, .relaxed }", barrier!()), (9, 2), 90, joint!(Mbarrier mbarrier::read)),
        line(concat!("mbarrier.try_wait.parity.phase_type::conditional{.sem.scope}{.space}.b64 p, [addr]:shared, phaseParity:u32{, suspendTimeHint:u32}; .sem = { .acquire, .relaxed }", barrier!()), (9, 2), 90, joint!(Mbarrier mbarrier::read)),
        line("mbarrier.pending_count.b64 d:u32, state:u64", (7, 0), 80, joint!(Mbarrier mbarrier::read)),
    ]).needs(&[
        need("relaxed/cluster/expect_tx/shared::cluster", (8, 0), "90"),
        need("multicast::cluster::32b", (9, 4), "107f"),
        need("parity", (7, 1), "80"),
        need("shared::cta", (7, 8), "80"),
        need("try_wait", (7, 8), "90"),
        need("cta", (8, 0), "80"),
        need("arrive/arrive_drop/parity/test_wait/try_wait relaxed", (8, 6), "90"),
        need("check_layout/layout::v0/layout::v1/phase_type::conditional/phase_type::primary", (9, 3), "90"),
    ]),
    instruction("cp", &[
        line("cp.async.mbarrier.arrive{.noinc}{.space}.b64 [addr]; .space = { .shared, .shared::cta }", (7, 0), 80, joint!(Mbarrier mbarrier::read)),
    ]).needs(&[
        need("arrive shared::cta", (7, 8), "80"),
    ]),

    instruction("cp", &[
        line(concat!("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{.multicast}{.L2::cache_hint}{.report} [dst], [src], size:u32[0../16], [mbar]:shared{, ctaMask:u16?multicast::cluster}{, ctaMask:u32?multicast::cluster::32b}{, cache-policy}", multicast!(), report!()), (8, 0), 90, joint!(Bulk bulk::read)),
        line(concat!("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes{.L2::cache_hint}{.report} [dst], [src], size:u32[0../16], [mbar]:shared{, cache-policy}", multicast!(), report!()), (8, 0), 90, joint!(Bulk bulk::read)),
        line("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes{.L2::cache_hint}.ignore_oob [dst], [src], size:u32[0../16], ignoreBytesLeft:u32, ignoreBytesRight:u32, [mbar]:shared{, cache-policy}", (9, 2), 90, joint!(Bulk bulk::read)),
        line("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [dst], [src], size:u32[0../16], [mbar]:shared", (8, 0), 90, joint!(Bulk bulk::read)),
        line("cp.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}{.cp_mask} [dst], [src], size:u32[0../16]{, cache-policy}{, byteMask:u16?cp_mask}", (8, 0), 90, joint!(Bulk bulk::read)),
        line("cp.async.bulk.prefetch.L2.global{.hint} [src], size:u32[0../16]{, cache-policy}; .hint = { .L2::cache_hint, .L2::evict_last }", (8, 0), 90, Hint(Advice::Prefetch)),
        line("cp.async.bulk.commit_group", (8, 0), 90, joint!(Bulk bulk::read)),
        line("cp.async.bulk.wait_group{.kind} n:imm[0..63]; .kind = { .read, .sync_restrict::proxy::async }", (8, 0), 90, joint!(Bulk bulk::read)),
        line(concat!("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.reduction [dst], [src], size:u32[0../16], [mbar]:shared", shared_reduction!()), (8, 0), 90, joint!(Bulk bulk::read)),
        line(concat!("cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.reduction [dst], [src], size:u32[0../16]{, cache-policy}", reduction!()), (8, 0), 90, joint!(Bulk bulk::read)),
        line(concat!("cp.async.bulk.tensor.dim.shared::cluster.global{.load_mode}.mbarrier::complete_tx::bytes{.multicast}{.cta_group}{.L2::cache_hint}{.report}{.over} [dst], [map:pointer, address:u64?override::global_address, sizes:frag?override::global_dim/override::global_dim_stride, strides:frag?override::global_dim_stride, upper:u16?override::global_dim_stride, coords:frag], [mbar]:shared{, im2colInfo:frag?im2col/im2col::w/im2col::w::128}{, ctaMask:u16?multicast::cluster}{, ctaMask:u32?multicast::cluster::32b}{, cache-policy}; .load_mode = { .tile, .tile::gather4, .im2col, .im2col::w, .im2col::w::128 }", multicast!(), report!(), tensor!()), (8, 0), 90, joint!(Tensor tensor::copy)),
        line(concat!("cp.async.bulk.tensor.dim.shared::cta.global{.load_mode}.mbarrier::complete_tx::bytes{.cta_group}{.L2::cache_hint}{.report}{.over} [dst], [map:pointer, address:u64?override::global_address, sizes:frag?override::global_dim/override::global_dim_stride, strides:frag?override::global_dim_stride, upper:u16?override::global_dim_stride, coords:frag], [mbar]:shared{, im2colInfo:frag?im2col/im2col::w/im2col::w::128}{, cache-policy}; .load_mode = { .tile, .tile::gather4, .im2col, .im2col::w, .im2col::w::128 }", multicast!(), report!(), tensor!()), (8, 0), 90, joint!(Tensor tensor::copy)),
        line(concat!("cp.async.bulk.tensor.dim.global.shared::cta{.load_mode}{.over}.bulk_group{.L2::cache_hint} [map:pointer, address:u64?override::global_address, sizes:frag?override::global_dim/override::global_dim_stride, strides:frag?override::global_dim_stride, upper:u16?override::global_dim_stride, coords:frag], [src]:shared{, cache-policy}; .load_mode = { .tile, .tile::scatter4, .im2col_no_offs }", tensor!()), (8, 0), 90, joint!(Tensor tensor::copy)),
        line(concat!("cp.async.bulk.prefetch.tensor.dim.L2.global{.load_mode}{.hint}{.over} [map:pointer, address:u64?override::global_address, sizes:frag?override::global_dim/override::global_dim_stride, strides:frag?override::global_dim_stride, upper:u16?override::global_dim_stride, coords:frag]{, im2colInfo:frag?im2col/im2col::w/im2col::w::128}{, cache-policy}; .load_mode = { .tile, .tile::gather4, .im2col, .im2col::w, .im2col::w::128 }; .hint = { .L2::cache_hint, .L2::evict_last }", tensor!()), (8, 0), 90, Hint(Advice::Prefetch)),
        line(concat!("cp.reduce.async.bulk.tensor.dim.global.shared::cta.red{.load_mode}{.over}.bulk_group{.L2::cache_hint} [map:pointer, address:u64?override::global_address, sizes:frag?override::global_dim/override::global_dim_stride, strides:frag?override::global_dim_stride, upper:u16?override::global_dim_stride, coords:frag], [src]:shared{, cache-policy}; .load_mode = { .tile, .tile::scatter4, .im2col_no_offs }; .red = { .add, .min, .max, .inc, .dec, .and, .or, .xor }", tensor!()), (8, 0), 90, joint!(Tensor tensor::copy)),
    ]).fragments(Tensor).needs(&[
        need("L2/shared::cluster im2col::w/tile::gather4", (8, 6), F100),
        need("cp_mask/im2col::w/tile::gather4", (8, 6), "100"),
        need("cta_group::1/cta_group::2/im2col::w::128/tile::scatter4", (8, 6), F100),
        need("im2col shared::cta", (8, 6), "90"),
        need("ignore_oob", (9, 2), "90"),
        need("L2::evict_last/mbarrier::report::disabled/mbarrier::report::validity::per_16bytes::8/mbarrier::report::validity::per_16bytes::80/mbarrier::report::validity::per_16bytes::8000/mbarrier::report::validity::per_16bytes::80000000/mbarrier::report::validity::per_element::ff/multicast::cluster::32b/override::global_address", (9, 4), "107f"),
        need("sync_restrict::proxy::async", (9, 5), "90"),
        need("L2::cache_hint", (7, 4), "80"),
        need("f32 noftz", (9, 4), "90"),
    ]).rules(&[
        rule("im2col im2col::w im2col::w::128 im2col_no_offs", Without("1d 2d")),
        rule("tile::gather4 tile::scatter4", Without("1d 3d 4d 5d")),
        rule("override::global_dim", Without("2d 3d 4d 5d")),
        rule("override::global_dim_stride", Without("1d")),
    ]),
    instruction("tensormap", &[
        line("tensormap.replace.tile.field{.space}.b1024.b32 [addr], new_val:imm; .field = { .elemtype, .interleave_layout, .swizzle_mode, .fill_mode, .swizzle_atomicity }; .space = { .global, .shared::cta }", (8, 3), 90, joint!(Tensor tensor::replace)),
        line("tensormap.replace.tile.rank{.space}.b1024.b32 [addr], new_val:u32; .space = { .global, .shared::cta }", (8, 3), 90, joint!(Tensor tensor::replace)),
        line("tensormap.replace.tile.global_address{.space}.b1024.b64 [addr], new_val:u64; .space = { .global, .shared::cta }", (8, 3), 90, joint!(Tensor tensor::replace)),
        line("tensormap.replace.tile.field{.space}.b1024.b32 [addr], ord:imm[0..4], new_val:u32; .field = { .box_dim, .global_dim, .element_stride }; .space = { .global, .shared::cta }", (8, 3), 90, joint!(Tensor tensor::replace)),
        line("tensormap.replace.tile.global_stride{.space}.b1024.b64 [addr], ord:imm[0..4], new_val:u64; .space = { .global, .shared::cta }", (8, 3), 90, joint!(Tensor tensor::replace)),
        line("tensormap.cp_fenceproxy.global.space.tensormap::generic.release.scope.sync.aligned [dst], [src], size:imm[128]; .space = { .shared, .shared::cta }; .scope = { .cta, .cluster, .gpu, .sys }", (8, 3), 90, joint!(Tensor tensor::copy_map)),
    ]).needs(&[
        need("b1024", (8, 3), F100_F120_A90),
        need("swizzle_atomicity", (8, 6), F100_F120),
    ]),

    instruction("barrier", &[
        line("barrier.cluster.arrive{.sem}{.aligned}; .sem = { .release, .relaxed }", (7, 8), 90, joint!(Cluster cluster::barrier)),
        line("barrier.cluster.wait{.acquire}{.aligned}", (7, 8), 90, joint!(Cluster cluster::barrier)),
    ]).needs(&[
        need("acquire/release/relaxed", (8, 0), "90"),
    ]),
    instruction("mapa", &[
        line("mapa{.shared::cluster}.type d, a:&, b:u32; .type = { .u32, .u64 }", (7, 8), 90, joint!(Cluster cluster::mapa)),
    ]),
    instruction("getctarank", &[
        line("getctarank{.shared::cluster}.type d:u32, a:&; .type = { .u32, .u64 }", (7, 8), 90, joint!(Cluster cluster::getctarank)),
    ]),
    instruction("clusterlaunchcontrol", &[
        line("clusterlaunchcontrol.try_cancel.async{.space}.mbarrier::complete_tx::bytes{.multicast::cluster::all}.b128 [addr], [mbar]; .space = { .shared, .shared::cta }", (8, 6), 100, joint!(Cluster cluster::launch_control)),
        line("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, try_cancel_response:b128", (8, 6), 100, joint!(Cluster cluster::launch_control)),
        line("clusterlaunchcontrol.query_cancel.get.b32.b128 d:b32, try_cancel_response:b128; .get = { .get_first_ctaid::x, .get_first_ctaid::y, .get_first_ctaid::z }", (8, 6), 100, joint!(Cluster cluster::launch_control)),
        line("clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 d:b32v, try_cancel_response:b128", (8, 6), 100, joint!(Cluster cluster::launch_control)),
    ]).needs(&[
        need("multicast::cluster::all", (8, 6), F100_F120),
    ]),

    instruction("st", &[
        line("st.async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.vec}.type [a], b:v, [mbar]; .vec = { .v2, .v4 }; .type = { .b32, .b64, .b128, .u32, .u64, .s32, .s64, .f32, .f64 }", (8, 1), 90, joint!(Bulk bulk::read)),
        line("st.async{.mmio}.release.scope{.global}.type [a], b:0; .scope = { .gpu, .sys }; .type = { .b8, .b16, .b32, .b64, .u8, .u16, .u32, .u64, .s8, .s16, .s32, .s64, .f32, .f64 }", (8, 7), 100, joint!(Bulk bulk::read)),
        line("st.bulk{.weak}{.shared::cta} [a], size:int, initval:imm[0]", (8, 6), 100, joint!(Bulk bulk::read)),
    ]).common(ACCESS).needs(&[
        need("async b128", (9, 2), "90"),
    ]),
    instruction("red", &[
        line("red.async{.relaxed.cluster}{.shared::cluster}.mbarrier::complete_tx::bytes.op.type [a], b:0, [mbar]; .op = { .inc, .dec, .min, .max, .add, .and, .or, .xor }; .type = { .u32, .s32, .u64, .s64, .b32 }", (8, 1), 90, joint!(Bulk bulk::read)),
        line("red.async{.mmio}.release.scope{.global}.op.type [a], b:0; .scope = { .gpu, .sys }; .op = { .add, .min, .max, .and, .or, .xor, .inc, .dec }; .type = { .u32, .s32, .u64, .s64, .b32, .b64 }", (8, 7), 100, joint!(Bulk bulk::read)),
    ]).common(UPDATE).needs(&[
        need("b64", (3, 1), "35"),
    ]),

    instruction("multimem", &[
        line(concat!("multimem.ld_reduce{.order}{.global}.reduction d:v, [a]; .reduction = { .add.sum, .add{.acc::f32}.half2, .add{.acc::f32}.half, .add{.acc::f16}.eight, .minmax.ordered, .minmax.half2, .minmax.half, .minmax.eight, .logic.bits }; .order = { .weak, .relaxed.scope, .acquire.scope }", multimem!()), (8, 1), 90, joint!(Multimem multimem::read)),
        line(concat!("multimem.st{.order}{.global}.stored [a], b:v; .stored = { .bits, .ordered, .f64, .f32, .v2.f32, .v4.f32, .half2, .half, .eight }; .order = { .weak, .relaxed.scope, .release.scope }", multimem!()), (8, 1), 90, joint!(Multimem multimem::read)),
        line(concat!("multimem.red{.order}{.global}.reduction [a], b:v; .reduction = { .add.sum, .add.half2, .add.half, .minmax.ordered, .minmax.half, .logic.bits }; .order = { .relaxed.scope, .release.scope }", multimem!()), (8, 1), 90, joint!(Multimem multimem::read)),
        line("multimem.cp.async.bulk.global.shared::cta.bulk_group{.cp_mask} [dst], [src], size:u32[0../16]{, byteMask:u16?cp_mask}", (9, 1), 90, joint!(Multimem multimem::read)),
        line(concat!("multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.reduction [dst], [src], size:u32[0../16]", reduction!()), (9, 1), 90, joint!(Multimem multimem::read)),
    ]).needs(&[
        need("f32 noftz", (9, 4), "90"),
        need("acc::f32", (8, 2), "90"),
        need("acc::f16/e4m3/e4m3x2/e4m3x4/e5m2/e5m2x2/e5m2x4", (8, 6), "100f 103f 107f 110f 120a 121a"),
        need("cp_mask", (9, 1), "100"),
    ]),

    instruction("createpolicy", &[
        line("createpolicy.range{.global}.primary{.secondary}.b64 d:u64, [a], primary-size:u32[0../16], total-size:u32[0../16]; .primary = { .L2::evict_last, .L2::evict_normal, .L2::evict_first, .L2::evict_unchanged }; .secondary = { .L2::evict_first, .L2::evict_unchanged }", (7, 4), 80, CreatePolicy),
        line("createpolicy.fractional.primary{.secondary}.b64 d:u64{, fraction:f32}; .primary = { .L2::evict_last, .L2::evict_normal, .L2::evict_first, .L2::evict_unchanged }; .secondary = { .L2::evict_first, .L2::evict_unchanged }", (7, 4), 80, CreatePolicy),
        line("createpolicy.cvt.L2.b64 d:u64, access-property:u64", (7, 4), 80, CreatePolicy),
    ]),
    instruction("applypriority", &[
        line("applypriority.async.bulk{.global}{.bulk_group}.L2::evict_normal [a], size:u32[0../16]", (9, 3), 100, Hint(Advice::Applypriority)),
    ]).needs(&[
        need("async", (9, 4), "107f"),
    ]),
    instruction("prefetch", &[
        line("prefetch{.global}.L1::32B.valid_addr [a]", (9, 3), 90, Hint(Advice::Prefetch)),
    ]).needs(&[
        need("L1::32B", (9, 4), "90"),
    ]),

    instruction("fabric", &[
        line(concat!("fabric.try_put.async{.multimem}", fabric!(gone), "{.counted::bytes}{.L2::cache_hint}{.cp_mask}.relaxed.sys.b128 [endpoint:u32, address:u64, counter:u64?counted::bytes], [src]:shared, size:u32, [mbar]:shared{, byteMask:u16?cp_mask}{, cache-policy}"), (9, 3), 100, joint!(Fabric fabric::read)),
        line(concat!("fabric.try_put.async.tensor{.multimem}.dim.shared::cta.tile.mbarrier::complete_tx::16B.mbarrier::report::fabric{.counted::bytes}{.L2::cache_hint}.over.relaxed.sys.b128 [map:pointer, endpoint:u32, address:u64, counter:u64?counted::bytes, ", fabric!(map), ", [src]:shared, size:u32, [mbar]:shared{, cache-policy}", fabric!(tensor)), (9, 4), 107, joint!(Fabric fabric::read)),
        line(concat!("fabric.try_get.async", fabric!(come), "{.L2::cache_hint}.relaxed.sys.b128 [dst]:shared, [endpoint:u32, address:u64], size:u32, [mbar]:shared{, cache-policy}"), (9, 3), 100, joint!(Fabric fabric::read)),
        line(concat!("fabric.try_get.async.tensor.dim.shared::cta.tile.mbarrier::complete_tx::bytes.mbarrier::report::fabric{.L2::cache_hint}.over.relaxed.sys.b128 [dst]:shared, [map:pointer, endpoint:u32, address:u64, ", fabric!(map), ", [mbar]:shared{, cache-policy}", fabric!(tensor)), (9, 4), 107, joint!(Fabric fabric::read)),
        line(concat!("fabric.try_red.async{.multimem}", fabric!(gone), "{.counted::bytes}{.L2::cache_hint}.relaxed.sys.reduction [endpoint:u32, address:u64, counter:u64?counted::bytes], [src]:shared, size:u32, [mbar]:shared{, cache-policy}; .reduction = { .add.sum, .minmax.ordered, .minmax.half, .logic.bits }; .sum = { .u32, .u64, .f16, .bf16, .f32, .f64 }", fabric!(types)), (9, 3), 100, joint!(Fabric fabric::read)),
        line(concat!("fabric.try_red.async.tensor{.multimem}.dim.shared::cta.tile.mbarrier::complete_tx::16B.mbarrier::report::fabric{.counted::bytes}{.L2::cache_hint}.over.relaxed.sys.red [map:pointer, endpoint:u32, address:u64, counter:u64?counted::bytes, ", fabric!(map), ", [src]:shared, size:u32, [mbar]:shared{, cache-policy}; .red = { .add, .min, .max, .and, .or, .xor }", fabric!(tensor)), (9, 4), 107, joint!(Fabric fabric::read)),
        line(concat!("fabric.try_atom.async", fabric!(gone), "{.L2::cache_hint}.relaxed.sys.reduction [endpoint:u32, address:u64], [dst]:shared, [src]:shared, [mbar]:shared{, cache-policy}; .reduction = { .add.sum, .minmax.ordered, .minmax.half2, .logic.bits, .swap.any }; .sum = { .u32, .u64, .f16x2, .bf16x2, .f32, .f64 }; .swap = { .exch, .cas }; .any = { .b32, .b64, .b128 }", fabric!(types)), (9, 4), 100, joint!(Fabric fabric::read)),
        line(concat!("fabric.try_pullred.async.multimem", fabric!(come), ".relaxed.sys.reduction.sync [dst]:shared, [endpoint:u32, address:u64], size:u32, [mbar]:shared, membermask:imm[4294967295]; .reduction = { .add.sum, .add.acc::f32.half, .add.acc.eight, .minmax.ordered, .minmax.half, .minmax.eight, .logic.bits }; .sum = { .u32, .u64, .f16, .bf16, .f32 }; .acc = { .acc::f32, .acc::f16 }", fabric!(types)), (9, 3), 100, joint!(Fabric fabric::read)),
        line("fabric.submit{.kind}; .kind = { .commit_group, .op_restrict::fetching }", (9, 3), 100, joint!(Fabric fabric::read)),
        line("fabric.wait.kind n:imm; .kind = { .sync_restrict::read, .sync_restrict::reads }", (9, 3), 100, joint!(Fabric fabric::read)),
        line("fabric.wait.sync_restrict::reads", (9, 3), 100, joint!(Fabric fabric::read)),
    ]).fragments(Tensor).needs(&[
        need("acc::f16/acc::f32/e4m3/e5m2", (9, 3), F100_F120),
        need("1d/2d/3d/4d/5d/override::global_address", (9, 4), "107f"),
        need("bf16x2/try_atom", (9, 4), "100"),
        need("commit_group/sync_restrict::read", (9, 5), "100"),
    ]).rules(&[
        rule("counted::bytes", Without("cp_mask")),
        rule("override::global_dim", Without("2d 3d 4d 5d")),
        rule("override::global_dim_stride", Without("1d")),
    ]),
];
