//! Matrix instructions: `wmma`, `mma`, `wgmma`, `tcgen05`, and the loads and stores of their fragments.

use super::entry::Fragments::{Matrices, Mma, TensorMemory, Warpgroup, Wmma};
use super::entry::Then::Without;
use super::entry::{
    A100, Common, F100, F100_F120, F100_F120_A90, F120, Instruction, instruction, joint, line, need, rule,
};
use crate::isa::joint::{matrix, tcgen05, warpgroup};

/// Types of multiplicands, as pairs where both are the same.
macro_rules! types {
    () => {
        "; .i8 = { .s8, .u8 }; .i4 = { .s4, .u4 }; .f8 = { .e4m3, .e5m2 }; .f864 = { .e4m3, .e5m2, .e3m2, .e2m3, .e2m1 }; .same8 = { .s8.s8, .u8.u8 }; .same4 = { .s4.s4, .u4.u4 }; .rnd = { .rn, .rz, .rm, .rp }; .bitop = { .xor.popc, .and.popc }"
    };
}
macro_rules! wmma {
    () => {
        "; .layout = { .row, .col }; .alayout = { .row, .col }; .blayout = { .row, .col }; .shape = { .m16n16k16, .m8n32k16, .m32n8k16 }; .ss = { .global, .shared, .shared::cta }; .ab = { .a, .b }; .same8 = { .s8.s8, .u8.u8 }; .same4 = { .s4.s4, .u4.u4 }; .bitop = { .xor.popc, .and.popc }; .rnd = { .rn, .rz, .rm, .rp }"
    };
}
macro_rules! sparse {
    () => {
        "; .spvariant = { .sp, .sp::ordered_metadata }"
    };
}
/// Kinds of `tcgen05.mma` with a scale for each block, and the sizes that blocks may have.
macro_rules! blocks {
    () => {
        "; .kinds = { .kind::mxf8f6f4.block_scale{.size1}, .kind::mxf4.block_scale{.size2}, .kind::mxf4nvf4.block_scale.size4 }; .size1 = { .scale_vec::1X, .block32 }; .size2 = { .scale_vec::2X, .block32 }; .size4 = { .scale_vec::2X, .scale_vec::4X, .block32, .block16 }"
    };
}
macro_rules! tcgen05 {
    () => {
        "; .cta_group = { .cta_group::1, .cta_group::2 }; .buffer = { .collector::a::fill, .collector::a::use, .collector::a::lastuse, .collector::a::discard, .collector::b0::fill, .collector::b0::use, .collector::b0::lastuse, .collector::b0::discard, .collector::b1::fill, .collector::b1::use, .collector::b1::lastuse, .collector::b1::discard, .collector::b2::fill, .collector::b2::use, .collector::b2::lastuse, .collector::b2::discard, .collector::b3::fill, .collector::b3::use, .collector::b3::lastuse, .collector::b3::discard }; .collect = { .collector::a::fill, .collector::a::use, .collector::a::lastuse, .collector::a::discard }; .shape = { .32x32b, .16x64b, .16x128b, .16x256b }; .num = { .x1, .x2, .x4, .x8, .x16, .x32, .x64, .x128 }; .op = { .min, .max }"
    };
}

/// `mma`, `mma.sp`.
#[rustfmt::skip]
const MMA: Common = Common {
    needs: &[
        need("tf32/bf16/f64/m16n8k4/m16n8k16/m16n8k32/m16n8k64/m16n8k128/m16n8k256", (7, 0), "80"),
        need("m16n8k8/s32", (6, 5), "75"),
        need("b1", (7, 0), "75"),
        need("f32 m16n8k32", (7, 1), "80"),
        need("f64 m16n8k16/m16n8k4/m16n8k8", (7, 8), "90"),
        need("e4m3/e5m2", (8, 4), "89"),
        need("kind::f8f6f4", (8, 6), F100_F120),
        need("block_scale/e2m1/e2m3/e3m2", (8, 7), F120),
        need("block_scale m16n8k128", (8, 7), "120a 121a"),
        need("e4m3/e5m2 f16/m16n8k16", (8, 7), "89"),
        need("f16 kind::f8f6f4", (8, 7), F100_F120),
        need("f16 m16n8k64", (8, 7), F120),
        need("scale_vec::4X ue8m0", (9, 1), F120),
        need("and", (7, 1), "80"),
    ],
    rules: &[],
};

#[rustfmt::skip]
pub static INSTRUCTIONS: &[Instruction] = &[
    instruction("ldmatrix", &[
        line("ldmatrix.sync.aligned.m8n8.num{.trans}{.ss}.b16 r:frag, [p]; .num = { .x1, .x2, .x4 }; .ss = { .shared, .shared::cta }", (6, 5), 75, joint!(Matrix matrix::rows)),
        line("ldmatrix.sync.aligned.m8n16.num{.ss}.type r:frag, [p]; .num = { .x1, .x2, .x4 }; .ss = { .shared, .shared::cta }; .type = { .s8.s4, .b8x16.b6x16_p32, .b8x16.b4x16_p64 }", (8, 6), 90, joint!(Matrix matrix::rows)),
        line("ldmatrix.sync.aligned.m16n16.num.trans{.ss}.type r:frag, [p]; .num = { .x1, .x2 }; .ss = { .shared, .shared::cta }; .type = { .b8, .b8x16.b6x16_p32, .b8x16.b4x16_p64 }", (8, 6), 100, joint!(Matrix matrix::rows)),
    ]).fragments(Matrices).needs(&[
        need("shared::cta", (7, 8), "75"),
        need("b4x16_p64/b8x16/m16n16/b8", (8, 6), F100_F120),
        need("m8n16", (8, 6), F100_F120_A90),
        need("s4", (9, 4), F100_F120_A90),
    ]),
    instruction("stmatrix", &[
        line("stmatrix.sync.aligned.m8n8.num{.trans}{.ss}.b16 [p], r:frag!; .num = { .x1, .x2, .x4 }; .ss = { .shared, .shared::cta }", (7, 8), 90, joint!(Matrix matrix::rows)),
        line("stmatrix.sync.aligned.m16n8.num.trans{.ss}.b8 [p], r:frag!; .num = { .x1, .x2, .x4 }; .ss = { .shared, .shared::cta }", (8, 6), 100, joint!(Matrix matrix::rows)),
    ]).fragments(Matrices).needs(&[
        need("b8", (8, 6), F100_F120),
    ]),
    instruction("movmatrix", &[
        line("movmatrix.sync.aligned.m8n8.trans.b16 d:b32, a:b32", (7, 8), 75, joint!(Matrix matrix::rows)),
    ]),

    instruction("wmma", &[
        line(concat!("wmma.load.ab.sync.aligned.layout.shape{.ss}.type r:frag, [p]{, stride:u32}; .type = { .f16, .bf16, .s8, .u8 }", wmma!()), (6, 0), 70, joint!(Matrix matrix::tile)),
        line(concat!("wmma.load.ab.sync.aligned.layout.special{.ss}.type r:frag, [p]{, stride:u32}; .special = { .m16n16k8 }; .type = { .tf32 }", wmma!()), (7, 0), 80, joint!(Matrix matrix::tile)),
        line(concat!("wmma.load.ab.sync.aligned.layout.m8n8k4{.ss}.f64 r:frag, [p]{, stride:u32}", wmma!()), (7, 0), 80, joint!(Matrix matrix::tile)),
        line(concat!("wmma.load.ab.sync.aligned.layout.m8n8k32{.ss}.type r:frag, [p]{, stride:u32}; .type = { .s4, .u4 }", wmma!()), (6, 3), 75, joint!(Matrix matrix::tile)),
        line(concat!("wmma.load.ab.sync.aligned.layout.m8n8k128{.ss}.b1 r:frag, [p]{, stride:u32}", wmma!()), (6, 3), 75, joint!(Matrix matrix::tile)),
        line(concat!("wmma.load.c.sync.aligned.layout.shape{.ss}.type r:frag, [p]{, stride:u32}; .type = { .f16, .f32, .s32 }", wmma!()), (6, 0), 70, joint!(Matrix matrix::tile)),
        line(concat!("wmma.load.c.sync.aligned.layout.sized{.ss} r:frag, [p]{, stride:u32}; .sized = { .m16n16k8.f32, .m8n8k4.f64, .m8n8k32.s32, .m8n8k128.s32 }", wmma!()), (6, 3), 70, joint!(Matrix matrix::tile)),
        line(concat!("wmma.store.d.sync.aligned.layout.shape{.ss}.type [p], r:frag!{, stride:u32}; .type = { .f16, .f32, .s32 }", wmma!()), (6, 0), 70, joint!(Matrix matrix::tile)),
        line(concat!("wmma.store.d.sync.aligned.layout.sized{.ss} [p], r:frag!{, stride:u32}; .sized = { .m16n16k8.f32, .m8n8k4.f64, .m8n8k32.s32, .m8n8k128.s32 }", wmma!()), (6, 3), 70, joint!(Matrix matrix::tile)),
        line(concat!("wmma.mma.sync.aligned.alayout.blayout.shape.dtype.ctype{.satfinite} d:frag, a:frag!, b:frag!, c:frag!; .dtype = { .f16, .f32 }; .ctype = { .f16, .f32 }", wmma!()), (6, 0), 70, joint!(Matrix matrix::multiply)),
        line(concat!("wmma.mma.sync.aligned.alayout.blayout.shape.f32.bf16.bf16.f32 d:frag, a:frag!, b:frag!, c:frag!", wmma!()), (7, 0), 80, joint!(Matrix matrix::multiply)),
        line(concat!("wmma.mma.sync.aligned.alayout.blayout.m16n16k8.f32.tf32.tf32.f32 d:frag, a:frag!, b:frag!, c:frag!", wmma!()), (7, 0), 80, joint!(Matrix matrix::multiply)),
        line(concat!("wmma.mma.sync.aligned{.rnd}.alayout.blayout{.rnd}.m8n8k4.f64.f64.f64.f64{.rnd} d:frag, a:frag!, b:frag!, c:frag!", wmma!()), (7, 0), 80, joint!(Matrix matrix::multiply)),
        line(concat!("wmma.mma.sync.aligned.alayout.blayout.shape.s32.same8.s32{.satfinite} d:frag, a:frag!, b:frag!, c:frag!", wmma!()), (6, 3), 72, joint!(Matrix matrix::multiply)),
        line(concat!("wmma.mma.sync.aligned.row.col.m8n8k32.s32.same4.s32{.satfinite} d:frag, a:frag!, b:frag!, c:frag!", wmma!()), (6, 3), 75, joint!(Matrix matrix::multiply)),
        line(concat!("wmma.mma.bitop.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 d:frag, a:frag!, b:frag!, c:frag!", wmma!()), (6, 3), 75, joint!(Matrix matrix::multiply)),
    ]).fragments(Wmma).needs(&[
        need("bf16/f64/m16n16k8", (7, 0), "80"),
        need("and", (7, 1), "80"),
        need("", (6, 3), "70"),
        need("b1/m8n8k128/m8n8k32", (6, 3), "75"),
        need("f16/f32 satfinite", (6, 3), "75"),
        need("s32/s8/satfinite/u8", (6, 3), "72"),
        need("shared::cta", (7, 8), "70"),
    ]),

    instruction("mma", &[
        line("mma.sync.aligned.m8n8k4.alayout.blayout.types d:frag, a:frag!, b:frag!, c:frag!; .alayout = { .row, .col }; .blayout = { .row, .col }; .types = { .f16.f16.f16.f16, .f32.f16.f16.f16, .f32.f16.f16.f32 }", (6, 4), 70, joint!(Matrix matrix::multiply)),
        line("mma.sync.aligned.shape.row.col.types d:frag, a:frag!, b:frag!, c:frag!; .shape = { .m16n8k8, .m16n8k16 }; .types = { .f16.f16.f16.f16, .f32.f16.f16.f32, .f32.bf16.bf16.f32 }", (6, 5), 75, joint!(Matrix matrix::multiply)),
        line("mma.sync.aligned.shape.row.col.f32.tf32.tf32.f32 d:frag, a:frag!, b:frag!, c:frag!; .shape = { .m16n8k4, .m16n8k8 }", (7, 0), 80, joint!(Matrix matrix::multiply)),
        line(concat!("mma.sync.aligned.shape.row.col{.rnd}.f64.f64.f64.f64{.rnd} d:frag, a:frag!, b:frag!, c:frag!; .shape = { .m8n8k4, .m16n8k4, .m16n8k8, .m16n8k16 }", types!()), (7, 0), 80, joint!(Matrix matrix::multiply)),
        line(concat!("mma.sync.aligned.shape.row.col{.satfinite}.s32.i8.i8.s32 d:frag, a:frag!, b:frag!, c:frag!; .shape = { .m8n8k16, .m16n8k16, .m16n8k32 }", types!()), (6, 5), 75, joint!(Matrix matrix::multiply)),
        line(concat!("mma.sync.aligned.shape.row.col{.satfinite}.s32.i4.i4.s32 d:frag, a:frag!, b:frag!, c:frag!; .shape = { .m8n8k32, .m16n8k32, .m16n8k64 }", types!()), (6, 5), 75, joint!(Matrix matrix::multiply)),
        line(concat!("mma.sync.aligned.shape.row.col.s32.b1.b1.s32.bitop d:frag, a:frag!, b:frag!, c:frag!; .shape = { .m8n8k128, .m16n8k128, .m16n8k256 }", types!()), (7, 0), 75, joint!(Matrix matrix::multiply)),
        line(concat!("mma.sync.aligned.shape.row.col{.kind::f8f6f4}.types d:frag, a:frag!, b:frag!, c:frag!; .shape = { .m16n8k16, .m16n8k32 }; .types = { .f16.f8.f8.f16, .f32.f8.f8.f32 }", types!()), (8, 4), 89, joint!(Matrix matrix::multiply)),
        line(concat!("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.types d:frag, a:frag!, b:frag!, c:frag!; .types = { .f16.f864.f864.f16, .f32.f864.f864.f32 }", types!()), (8, 7), 120, joint!(Matrix matrix::multiply)),
        line(concat!("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale{.scale_vec::1X}.f32.f864.f864.f32.ue8m0 d:frag, a:frag!, b:frag!, c:frag!, scale-a:b32!, ids-a:2*u16[0..3], scale-b:b32!, ids-b:2*u16[0..3]", types!()), (8, 7), 120, joint!(Matrix matrix::multiply)),
        line("mma.sync.aligned.m16n8k64.row.col.kinds d:frag, a:frag!, b:frag!, c:frag!, scale-a:b32!, ids-a:2*u16[0..3], scale-b:b32!, ids-b:2*u16[0..3]; .kinds = { .kind::mxf4.block_scale{.scale_vec::2X}.f32.e2m1.e2m1.f32.ue8m0, .kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0, .kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.stype }; .stype = { .ue8m0, .ue4m3 }", (8, 7), 120, joint!(Matrix matrix::multiply)),
    ]).fragments(Mma).common(MMA),

    instruction("mma", &[
        line(concat!("mma.spvariant.sync.aligned.shape.row.col.types d:frag, a:frag!, b:frag!, c:frag!, e:b32!, f:imm[0..3]; .shape = { .m16n8k16, .m16n8k32 }; .types = { .f16.f16.f16.f16, .f32.f16.f16.f32, .f32.bf16.bf16.f32 }", sparse!()), (7, 1), 80, joint!(Matrix matrix::multiply)),
        line(concat!("mma.spvariant.sync.aligned.shape.row.col.f32.tf32.tf32.f32 d:frag, a:frag!, b:frag!, c:frag!, e:b32!, f:imm[0..3]; .shape = { .m16n8k8, .m16n8k16 }", sparse!()), (7, 1), 80, joint!(Matrix matrix::multiply)),
        line(concat!("mma.spvariant.sync.aligned.shape.row.col{.satfinite}.s32.i8.i8.s32 d:frag, a:frag!, b:frag!, c:frag!, e:b32!, f:imm[0..3]; .shape = { .m16n8k32, .m16n8k64 }", sparse!(), types!()), (7, 1), 80, joint!(Matrix matrix::multiply)),
        line(concat!("mma.spvariant.sync.aligned.shape.row.col{.satfinite}.s32.i4.i4.s32 d:frag, a:frag!, b:frag!, c:frag!, e:b32!, f:imm[0..3]; .shape = { .m16n8k64, .m16n8k128 }", sparse!(), types!()), (7, 1), 80, joint!(Matrix matrix::multiply)),
        line(concat!("mma.spvariant.sync.aligned.m16n8k64.row.col{.kind::f8f6f4}.types d:frag, a:frag!, b:frag!, c:frag!, e:b32!, f:imm[0..3]; .types = { .f16.f8.f8.f16, .f32.f8.f8.f32 }", sparse!(), types!()), (8, 4), 89, joint!(Matrix matrix::multiply)),
        line(concat!("mma.spvariant.sync.aligned.m16n8k64.row.col.kind::f8f6f4.types d:frag, a:frag!, b:frag!, c:frag!, e:b32!, f:imm[0..3]; .types = { .f16.f864.f864.f16, .f32.f864.f864.f32 }", sparse!(), types!()), (8, 7), 120, joint!(Matrix matrix::multiply)),
        line(concat!("mma.spvariant.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale{.scale_vec::1X}.f32.f864.f864.f32.ue8m0 d:frag, a:frag!, b:frag!, c:frag!, e:b32!, f:imm[0..3], scale-a:b32!, ids-a:2*u16[0..3], scale-b:b32!, ids-b:2*u16[0..3]", sparse!(), types!()), (8, 7), 120, joint!(Matrix matrix::multiply)),
        line(concat!("mma.spvariant.sync.aligned.m16n8k128.row.col.kinds d:frag, a:frag!, b:frag!, c:frag!, e:b32!, f:imm[0..3], scale-a:b32!, ids-a:2*u16[0..3], scale-b:b32!, ids-b:2*u16[0..3]; .kinds = { .kind::mxf4.block_scale{.scale_vec::2X}.f32.e2m1.e2m1.f32.ue8m0, .kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0, .kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.stype }; .stype = { .ue8m0, .ue4m3 }", sparse!()), (8, 7), 120, joint!(Matrix matrix::multiply)),
    ]).fragments(Mma).common(MMA).needs(&[
        need("sp::ordered_metadata", (8, 5), "80"),
    ]),

    // Descriptors of both matrices, or A in registers, which has no transpose.
    instruction("wgmma", &[
        line("wgmma.mma_async.sync{.aligned}.m64n[8..256/8]k16.types d:frag, a-desc:u64, b-desc:u64, scale-d:pred, imm-scale-a:imm[-1,1], imm-scale-b:imm[-1,1], imm-trans-a:imm[0,1], imm-trans-b:imm[0,1] or d:frag, a:frag!, b-desc:u64, scale-d:pred, imm-scale-a:imm[-1,1], imm-scale-b:imm[-1,1], imm-trans-b:imm[0,1]; .types = { .f16.f16.f16, .f32.f16.f16, .f32.bf16.bf16 }", (8, 0), 90, joint!(Warpgroup warpgroup::mma)),
        line(concat!("wgmma.mma_async.sync{.aligned}.shapes d:frag, a-desc:u64, b-desc:u64, scale-d:pred, imm-scale-a:imm[-1,1], imm-scale-b:imm[-1,1] or d:frag, a:frag!, b-desc:u64, scale-d:pred, imm-scale-a:imm[-1,1], imm-scale-b:imm[-1,1]; .shapes = { .tfloat.f32.tf32.tf32, .float8.f16.f8.f8, .float8.f32.f8.f8 }; .tfloat = { .m64n[8..256/8]k8 }; .float8 = { .m64n[8..256/8]k32 }", types!()), (8, 0), 90, joint!(Warpgroup warpgroup::mma)),
        line(concat!("wgmma.mma_async.sync{.aligned}.shape{.satfinite}.s32.i8.i8 d:frag, a-desc:u64, b-desc:u64, scale-d:pred or d:frag, a:frag!, b-desc:u64, scale-d:pred; .shape = { .m64n8k32, .m64n24k32, .m64n[16..256/16]k32 }", types!()), (8, 0), 90, joint!(Warpgroup warpgroup::mma)),
        line("wgmma.mma_async.sync{.aligned}.shape.s32.b1.b1.and.popc d:frag, a-desc:u64, b-desc:u64, scale-d:pred or d:frag, a:frag!, b-desc:u64, scale-d:pred; .shape = { .m64n8k256, .m64n24k256, .m64n[16..256/16]k256 }", (8, 0), 90, joint!(Warpgroup warpgroup::mma)),
        line("wgmma.mma_async.sp.sync{.aligned}.m64n[8..256/8]k32.types d:frag, a-desc:u64, b-desc:u64, sp-meta:b32!, sp-sel:imm[0,1], scale-d:pred, imm-scale-a:imm[-1,1], imm-scale-b:imm[-1,1], imm-trans-a:imm[0,1], imm-trans-b:imm[0,1] or d:frag, a:frag!, b-desc:u64, sp-meta:b32!, sp-sel:imm[0,1], scale-d:pred, imm-scale-a:imm[-1,1], imm-scale-b:imm[-1,1], imm-trans-b:imm[0,1]; .types = { .f16.f16.f16, .f32.f16.f16, .f32.bf16.bf16 }", (8, 2), 90, joint!(Warpgroup warpgroup::mma)),
        line(concat!("wgmma.mma_async.sp.sync{.aligned}.shapes d:frag, a-desc:u64, b-desc:u64, sp-meta:b32!, sp-sel:imm[0..3], scale-d:pred, imm-scale-a:imm[-1,1], imm-scale-b:imm[-1,1] or d:frag, a:frag!, b-desc:u64, sp-meta:b32!, sp-sel:imm[0..3], scale-d:pred, imm-scale-a:imm[-1,1], imm-scale-b:imm[-1,1]; .shapes = { .tfloat.f32.tf32.tf32, .float8.f16.f8.f8, .float8.f32.f8.f8 }; .tfloat = { .m64n[8..256/8]k16 }; .float8 = { .m64n[8..256/8]k64 }", types!()), (8, 2), 90, joint!(Warpgroup warpgroup::mma)),
        line(concat!("wgmma.mma_async.sp.sync{.aligned}.shape{.satfinite}.s32.i8.i8 d:frag, a-desc:u64, b-desc:u64, sp-meta:b32!, sp-sel:imm[0..3], scale-d:pred or d:frag, a:frag!, b-desc:u64, sp-meta:b32!, sp-sel:imm[0..3], scale-d:pred; .shape = { .m64n8k64, .m64n24k64, .m64n[16..256/16]k64 }", types!()), (8, 2), 90, joint!(Warpgroup warpgroup::mma)),
        line("wgmma.fence.sync{.aligned}", (8, 0), 90, joint!(Warpgroup warpgroup::fence)),
        line("wgmma.commit_group.sync{.aligned}", (8, 0), 90, joint!(Warpgroup warpgroup::commit)),
        line("wgmma.wait_group.sync{.aligned} n:imm[0..7]", (8, 0), 90, joint!(Warpgroup warpgroup::wait)),
    ]).fragments(Warpgroup).needs(&[
        need("", (8, 0), "90a"),
        need("sp", (8, 2), "90a"),
        need("s8 u8", (8, 4), "90a"),
    ]),

    instruction("tcgen05", &[
        line(concat!("tcgen05.alloc{.exclusive}.cta_group.sync.aligned{.shared::cta}.b32 [dst], nCols:u32[32,64,128,256,512]", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::allocate)),
        line(concat!("tcgen05.dealloc{.exclusive}.cta_group.sync.aligned.b32 taddr:u32, nCols:u32[32,64,128,256,512]", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::free)),
        line(concat!("tcgen05.relinquish_alloc_permit.cta_group.sync.aligned", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::relinquish)),
        line(concat!("tcgen05.ld.sync.aligned.shape.num{.pack::16b}.b32 r:frag, [taddr]:tmem", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::load)),
        line(concat!("tcgen05.ld.sync.aligned.16x32bx2.num{.pack::16b}.b32 r:frag, [taddr]:tmem, immHalfSplitoff:imm", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::load)),
        line(concat!("tcgen05.ld.red.sync.aligned.32x32b.num.op.type r:frag, red:b32=, [taddr]:tmem; .type = { .u32, .s32 }", tcgen05!()), (8, 8), 101, joint!(Tcgen05 tcgen05::load_reduce)),
        line(concat!("tcgen05.ld.red.sync.aligned.32x32b.num.op{.abs}{.NaN}.f32 r:frag, red:f32=, [taddr]:tmem", tcgen05!()), (8, 8), 101, joint!(Tcgen05 tcgen05::load_reduce)),
        line(concat!("tcgen05.ld.red.sync.aligned.16x32bx2.num.op.type r:frag, red:b32=, [taddr]:tmem, immHalfSplitoff:imm; .type = { .u32, .s32 }", tcgen05!()), (8, 8), 101, joint!(Tcgen05 tcgen05::load_reduce)),
        line(concat!("tcgen05.ld.red.sync.aligned.16x32bx2.num.op{.abs}{.NaN}.f32 r:frag, red:f32=, [taddr]:tmem, immHalfSplitoff:imm", tcgen05!()), (8, 8), 101, joint!(Tcgen05 tcgen05::load_reduce)),
        line(concat!("tcgen05.ld.red.spcompress.sync.aligned.32x32b.num.op.sp::2:4{.abs}{.NaN}.f32.b2 sp-meta:frag=, r:frag=, red:f32=, [taddr]:tmem", tcgen05!()), (9, 4), 107, joint!(Tcgen05 tcgen05::load_reduce)),
        line(concat!("tcgen05.st.sync.aligned.shape.num{.unpack::16b}.b32 [taddr]:tmem, r:frag!", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::store)),
        line(concat!("tcgen05.st.sync.aligned.16x32bx2.num{.unpack::16b}.b32 [taddr]:tmem, immHalfSplitoff:imm, r:frag!", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::store)),
        line("tcgen05.wait.sync.aligned; .wait = { .wait::ld, .wait::st }", (8, 6), 100, joint!(Tcgen05 tcgen05::wait)),
        line("tcgen05.fence; .fence = { .fence::before_thread_sync, .fence::after_thread_sync }", (8, 6), 100, joint!(Tcgen05 tcgen05::fence)),
        line(concat!("tcgen05.commit.cta_group.mbarrier::arrive::one{.restrict}{.shared::cluster}{.multicast}.b64 [mbar]{, ctaMask:u16?multicast::cluster}{, ctaMask:u32?multicast::cluster::32b}; .restrict = { .sync_restrict::shared::read::mma::a }; .multicast = { .multicast::cluster, .multicast::cluster::32b }", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::commit)),
        line(concat!("tcgen05.cp.cta_group.cpshape{.fmt} [taddr]:tmem, s-desc:u64; .cpshape = { .128x256b, .4x256b, .128x128b, .64x128b.half, .32x128b.warpx4 }; .half = { .warpx2::02_13, .warpx2::01_23 }; .fmt = { .b8x16.b6x16_p32, .b8x16.b4x16_p64 }", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::copy)),
        line(concat!("tcgen05.shift.cta_group.down [taddr]:tmem", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::shift)),
        line(concat!("tcgen05.mma.cta_group.kind{.collect} [d]:tmem, (a-desc:u64|[a]:tmem), b-desc:u64, idesc:u32{, disable-output-lane:frag!}, enable-input-d:pred{, scale-input-d:imm[0..15]}; .kind = { .kind::f16, .kind::tf32, .kind::i8 }", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::mma)),
        line(concat!("tcgen05.mma.cta_group.kind.ashift{.collect} [d]:tmem, [a]:tmem, b-desc:u64, idesc:u32{, disable-output-lane:frag!}, enable-input-d:pred{, scale-input-d:imm[0..15]}; .kind = { .kind::f16, .kind::tf32, .kind::i8 }", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::mma)),
        line(concat!("tcgen05.mma.cta_group.kind{.collect} [d]:tmem, (a-desc:u64|[a]:tmem), b-desc:u64, idesc:u32{, disable-output-lane:frag!}, enable-input-d:pred; .kind = { .kind::f8f6f4 }", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::mma)),
        line(concat!("tcgen05.mma.cta_group.kind.ashift{.collect} [d]:tmem, [a]:tmem, b-desc:u64, idesc:u32{, disable-output-lane:frag!}, enable-input-d:pred; .kind = { .kind::f8f6f4 }", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::mma)),
        line(concat!("tcgen05.mma.cta_group.kinds{.collect} [d]:tmem, (a-desc:u64|[a]:tmem), b-desc:u64, idesc:u32, [scale-a]:tmem, [scale-b]:tmem, enable-input-d:pred", blocks!(), tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::mma)),
        line(concat!("tcgen05.mma.sp.cta_group.kind{.collect} [d]:tmem, (a-desc:u64|[a]:tmem), b-desc:u64, [sp-meta]:tmem, idesc:u32{, disable-output-lane:frag!}, enable-input-d:pred{, scale-input-d:imm[0..15]}; .kind = { .kind::f16, .kind::tf32, .kind::i8 }", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::mma)),
        line(concat!("tcgen05.mma.sp.cta_group.kind.ashift{.collect} [d]:tmem, [a]:tmem, b-desc:u64, [sp-meta]:tmem, idesc:u32{, disable-output-lane:frag!}, enable-input-d:pred{, scale-input-d:imm[0..15]}; .kind = { .kind::f16, .kind::tf32, .kind::i8 }", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::mma)),
        line(concat!("tcgen05.mma.sp.cta_group.kind{.collect} [d]:tmem, (a-desc:u64|[a]:tmem), b-desc:u64, [sp-meta]:tmem, idesc:u32{, disable-output-lane:frag!}, enable-input-d:pred; .kind = { .kind::f8f6f4 }", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::mma)),
        line(concat!("tcgen05.mma.sp.cta_group.kind.ashift{.collect} [d]:tmem, [a]:tmem, b-desc:u64, [sp-meta]:tmem, idesc:u32{, disable-output-lane:frag!}, enable-input-d:pred; .kind = { .kind::f8f6f4 }", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::mma)),
        line(concat!("tcgen05.mma.sp.cta_group.kinds{.collect} [d]:tmem, (a-desc:u64|[a]:tmem), b-desc:u64, [sp-meta]:tmem, idesc:u32, [scale-a]:tmem, [scale-b]:tmem, enable-input-d:pred", blocks!(), tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::mma)),
        line(concat!("tcgen05.mma.ws.cta_group::1.kind{.buffer} [d]:tmem, (a-desc:u64|[a]:tmem), b-desc:u64, idesc:u32, enable-input-d:pred{, zero-column-mask-desc:u64}; .kind = { .kind::f16, .kind::tf32, .kind::i8, .kind::f8f6f4 }", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::mma)),
        line(concat!("tcgen05.mma.ws.sp.cta_group::1.kind{.buffer} [d]:tmem, (a-desc:u64|[a]:tmem), b-desc:u64, [sp-meta]:tmem, idesc:u32, enable-input-d:pred{, zero-column-mask-desc:u64}; .kind = { .kind::f16, .kind::tf32, .kind::i8, .kind::f8f6f4 }", tcgen05!()), (8, 6), 100, joint!(Tcgen05 tcgen05::mma)),
    ]).fragments(TensorMemory).needs(&[
        need("multicast::cluster::32b/sync_restrict::shared::read::mma::a", (9, 4), "107f"),
        need("", (8, 6), F100),
        need("down/scale_vec::1X/scale_vec::2X", (8, 6), A100),
        need("kind::i8", (8, 6), "100a 110a"),
        need("kind::mxf4 sp", (8, 6), A100),
        need("kind::mxf4nvf4", (8, 7), F100),
        need("kind::mxf4nvf4 sp", (8, 7), A100),
        need("scale_vec::4X", (8, 7), A100),
        need("block16/block32", (8, 8), F100),
        need("block16 sp", (8, 8), A100),
        need("b2", (9, 4), "107a"),
        need("exclusive", (9, 4), F100),
    ]).rules(&[
        rule("16x128b", Without("x128")),
        rule("16x256b", Without("x64 x128")),
    ]),
];
