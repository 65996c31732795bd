//! Matrix instructions: `wmma`, `mma`, `wgmma`, `tcgen05`, and the loads and stores of their fragments.

use super::{Line, line};
use crate::isa::Semantics::Later;

macro_rules! wmma {
    () => {
        "; .layout = { .row, .col }; .alayout = { .row, .col }; .blayout = { .row, .col }; .shape = { .m16n16k16, .m8n32k16, .m32n8k16, .m16n16k8, .m8n8k4, .m8n8k32, .m8n8k128 }; .ss = { .global, .shared, .shared::cta }"
    };
}
macro_rules! mma {
    () => {
        "; .alayout = { .row, .col }; .blayout = { .row, .col }; .dtype = { .f16, .f32, .f64, .s32 }; .ctype = { .f16, .f32, .f64, .s32 }; .shape = { .m8n8k4, .m8n8k16, .m8n8k32, .m8n8k128, .m16n8k4, .m16n8k8, .m16n8k16, .m16n8k32, .m16n8k64, .m16n8k128, .m16n8k256 }; .atype = { .f16, .bf16, .tf32, .f64, .s8, .u8, .s4, .u4, .b1, .e4m3, .e5m2, .e3m2, .e2m3, .e2m1 }; .btype = { .f16, .bf16, .tf32, .f64, .s8, .u8, .s4, .u4, .b1, .e4m3, .e5m2, .e3m2, .e2m3, .e2m1 }; .kind = { .kind::f8f6f4, .kind::mxf8f6f4, .kind::mxf4, .kind::mxf4nvf4 }; .scale_vec = { .scale_vec::1X, .scale_vec::2X, .scale_vec::4X }; .stype = { .ue8m0, .ue4m3 }; .bitop = { .xor, .and }; .rnd = { .rn, .rz, .rm, .rp }"
    };
}
macro_rules! wgmma {
    () => {
        "; .shape = { .m64n[8..256/8]k8, .m64n[8..256/8]k16, .m64n[8..256/8]k32, .m64n[8..256/8]k64, .m64n[8..256/8]k256, .m64n[8..256/8]k512 }; .dtype = { .f16, .f32, .s32 }; .atype = { .f16, .bf16, .tf32, .e4m3, .e5m2, .s8, .u8, .b1 }; .btype = { .f16, .bf16, .tf32, .e4m3, .e5m2, .s8, .u8, .b1 }"
    };
}
macro_rules! tcgen05 {
    () => {
        "; .cta_group = { .cta_group::1, .cta_group::2 }; .kind = { .kind::f16, .kind::tf32, .kind::f8f6f4, .kind::i8, .kind::mxf8f6f4, .kind::mxf4, .kind::mxf4nvf4 }; .vectorsize = { .scale_vec::1X, .scale_vec::2X, .scale_vec::4X, .block16, .block32 }; .buffer = { .collector::a::fill, .collector::a::use, .collector::a::lastuse, .collector::a::discard, .collector::b0::fill, .collector::b0::use, .collector::b0::lastuse, .collector::b0::discard, .collector::b1::fill, .collector::b1::use, .collector::b1::lastuse, .collector::b1::discard, .collector::b2::fill, .collector::b2::use, .collector::b2::lastuse, .collector::b2::discard, .collector::b3::fill, .collector::b3::use, .collector::b3::lastuse, .collector::b3::discard }; .shape = { .32x32b, .16x32bx2, .16x64b, .16x128b, .16x256b }; .num = { .x1, .x2, .x4, .x8, .x16, .x32, .x64, .x128 }"
    };
}

#[rustfmt::skip]
pub static LINES: &[Line] = &[
    line("ldmatrix.sync.aligned.shape.num{.trans}{.ss}.type r, [p]; .shape = { .m8n8, .m8n16, .m16n16 }; .num = { .x1, .x2, .x4 }; .ss = { .shared, .shared::cta }; .type = { .b16, .b8, .s8.s4, .b8x16.b6x16_p32, .b8x16.b4x16_p64 }", (6, 5), 75, Later),
    line("stmatrix.sync.aligned.shape.num{.trans}{.ss}.type [p], r; .shape = { .m8n8, .m16n8 }; .num = { .x1, .x2, .x4 }; .ss = { .shared, .shared::cta }; .type = { .b16, .b8 }", (7, 8), 90, Later),
    line("movmatrix.sync.aligned.m8n8.trans.b16 d, a", (7, 8), 75, Later),

    line(concat!("wmma.load.which.sync.aligned.layout.shape{.ss}.type r, [p]{, stride}; .which = { .a, .b, .c }; .type = { .f16, .bf16, .tf32, .f32, .f64, .s8, .u8, .s4, .u4, .b1, .s32 }", wmma!()), (6, 0), 70, Later),
    line(concat!("wmma.store.d.sync.aligned.layout.shape{.ss}.type [p], r{, stride}; .type = { .f16, .f32, .f64, .s32 }", wmma!()), (6, 0), 70, Later),
    line(concat!("wmma.mma{.bitop}.sync.aligned{.rnd}.alayout.blayout{.rnd}.shape.dtype{.atype.btype}.ctype{.satfinite}{.rnd} d, a, b, c; .bitop = { .xor.popc, .and.popc }; .rnd = { .rn, .rz, .rm, .rp }; .dtype = { .f16, .f32, .f64, .s32 }; .atype = { .bf16, .tf32, .f64, .s8, .u8, .s4, .u4, .b1 }; .btype = { .bf16, .tf32, .f64, .s8, .u8, .s4, .u4, .b1 }; .ctype = { .f16, .f32, .f64, .s32 }", wmma!()), (6, 0), 70, Later),

    line(concat!("mma.sync.aligned.shape.alayout.blayout{.rnd}{.satfinite}{.kind}{.dtype}.atype.btype.ctype{.bitop.popc}{.rnd} d, a, b, c", mma!()), (6, 4), 70, Later),
    line(concat!("mma.sync.aligned.shape.alayout.blayout.kind.block_scale{.scale_vec}.dtype.atype.btype.ctype.stype d, a, b, c, scale-a, scale-b", mma!()), (8, 7), 120, Later),
    line(concat!("mma.spvariant.sync.aligned.shape.alayout.blayout{.satfinite}{.kind}{.dtype}.atype.btype.ctype d, a, b, c, e, f; .spvariant = { .sp, .sp::ordered_metadata }", mma!()), (7, 1), 80, Later),
    line(concat!("mma.spvariant.sync.aligned.shape.alayout.blayout.kind.block_scale{.scale_vec}.dtype.atype.btype.ctype.stype d, a, b, c, e, f, scale-a, scale-b; .spvariant = { .sp, .sp::ordered_metadata }", mma!()), (8, 7), 120, Later),

    line(concat!("wgmma.mma_async{.sp}.sync.aligned.shape{.satfinite}.dtype.atype.btype{.bitop} d, a-desc, b-desc; .bitop = { .and.popc }", wgmma!()), (8, 0), 90, Later),
    line("wgmma.fence.sync.aligned", (8, 0), 90, Later),
    line("wgmma.commit_group.sync.aligned", (8, 0), 90, Later),
    line("wgmma.wait_group.sync.aligned n", (8, 0), 90, Later),

    line(concat!("tcgen05.alloc{.exclusive}.cta_group.sync.aligned{.shared::cta}.b32 [dst], nCols", tcgen05!()), (8, 6), 100, Later),
    line(concat!("tcgen05.dealloc{.exclusive}.cta_group.sync.aligned.b32 taddr, nCols", tcgen05!()), (8, 6), 100, Later),
    line(concat!("tcgen05.relinquish_alloc_permit.cta_group.sync.aligned", tcgen05!()), (8, 6), 100, Later),
    line(concat!("tcgen05.ld.sync.aligned.shape.num{.pack::16b}.b32 r, [taddr]", tcgen05!()), (8, 6), 100, Later),
    line(concat!("tcgen05.ld.red{.spcompress}.sync.aligned.shape.num.op{.sp::2:4}{.abs}{.NaN}.type{.b2} r, red, [taddr]; .op = { .min, .max }; .type = { .u32, .s32, .f32 }", tcgen05!()), (8, 8), 101, Later),
    line(concat!("tcgen05.st.sync.aligned.shape.num{.unpack::16b}.b32 [taddr], r", tcgen05!()), (8, 6), 100, Later),
    line("tcgen05.wait.sync.aligned; .wait = { .wait::ld, .wait::st }", (8, 6), 100, Later),
    line("tcgen05.fence; .fence = { .fence::before_thread_sync, .fence::after_thread_sync }", (8, 6), 100, Later),
    line(concat!("tcgen05.commit.cta_group.mbarrier::arrive::one{.restrict}{.shared::cluster}{.multicast}.b64 [mbar]{, ctaMask}; .restrict = { .sync_restrict::shared::read::mma::a }; .multicast = { .multicast::cluster, .multicast::cluster::32b }", tcgen05!()), (8, 6), 100, Later),
    line(concat!("tcgen05.cp.cta_group.cpshape{.cpmulticast}{.fmt} [taddr], s-desc; .cpshape = { .128x256b, .4x256b, .128x128b, .64x128b, .32x128b }; .cpmulticast = { .warpx2::02_13, .warpx2::01_23, .warpx4 }; .fmt = { .b8x16.b6x16_p32, .b8x16.b4x16_p64 }", tcgen05!()), (8, 6), 100, Later),
    line(concat!("tcgen05.shift.cta_group.down [taddr]", tcgen05!()), (8, 6), 100, Later),
    line(concat!("tcgen05.mma{.sp}.cta_group.kind{.block_scale}{.vectorsize}{.ashift}{.buffer} [d], a-desc, b-desc, idesc, enable", tcgen05!()), (8, 6), 100, Later),
    line(concat!("tcgen05.mma.ws{.sp}.cta_group.kind{.buffer} [d], a-desc, b-desc, idesc, enable", tcgen05!()), (8, 6), 100, Later),
];
