//! Texture and Surface Instructions.

use super::{Line, line};
use crate::isa::Semantics::Later;

macro_rules! dtypes {
    () => {
        "; .dtype = { .v4.f16, .v2.f16x2, .v4.u32, .v4.s32, .v4.f32 }; .ctype = { .s32, .f32 }"
    };
}
macro_rules! surface {
    () => {
        "; .geom = { .1d, .2d, .3d, .a1d, .a2d }; .vec = { .v2, .v4 }; .dtype = { .b8, .b16, .b32, .b64 }; .mode = { .trap, .clamp, .zero }"
    };
}

#[rustfmt::skip]
pub static LINES: &[Line] = &[
    line(concat!("tex.geom.dtype.ctype d{|p}, [a, c]{, e}{, f}; .geom = { .1d, .2d, .3d, .a1d, .a2d, .cube, .acube, .2dms, .a2dms }", dtypes!()), (1, 0), 10, Later),
    line(concat!("tex.base.geom.dtype.ctype d{|p}, [a, c]{, e}{, f}; .geom = { .1d, .2d, .3d, .a1d, .a2d, .cube, .acube, .2dms, .a2dms }", dtypes!()), (3, 1), 20, Later),
    line(concat!("tex.level.geom.dtype.ctype d{|p}, [a, c], lod{, e}{, f}; .geom = { .1d, .2d, .3d, .a1d, .a2d, .cube, .acube }", dtypes!()), (3, 1), 20, Later),
    line(concat!("tex.grad.geom.dtype.ctype d{|p}, [a, c], dPdx, dPdy{, e}{, f}; .geom = { .1d, .2d, .3d, .a1d, .a2d, .cube, .acube }", dtypes!()), (3, 1), 20, Later),
    line("tld4.comp.geom.v4.dtype.f32 d{|p}, [a, c]{, e}{, f}; .comp = { .r, .g, .b, .a }; .geom = { .2d, .a2d, .cube, .acube }; .dtype = { .u32, .s32, .f32 }", (2, 2), 20, Later),
    line("txq.query.b32 d, [a]; .query = { .width, .height, .depth, .channel_data_type, .channel_order, .normalized_coords, .array_size, .num_mipmap_levels, .num_samples, .force_unnormalized_coords, .filter_mode, .addr_mode_0, .addr_mode_1, .addr_mode_2, .memory_layout }", (1, 5), 10, Later),
    line("txq.level.query.b32 d, [a], lod; .query = { .width, .height, .depth }", (4, 3), 30, Later),
    line("istypep.type p, a:&u64; .type = { .texref, .samplerref, .surfref }", (4, 0), 30, Later),
    line(concat!("suld.b.geom{.cop}{.vec}.dtype.mode d, [a, b]; .cop = { .ca, .cg, .cs, .cv }", surface!()), (1, 5), 10, Later),
    line(concat!("sust.b.geom{.cop}{.vec}.dtype.mode [a, b], c; .cop = { .wb, .cg, .cs, .wt }", surface!()), (1, 5), 10, Later),
    line(concat!("sust.p.geom{.cop}{.vec}.b32.mode [a, b], c; .cop = { .wb, .cg, .cs, .wt }", surface!()), (2, 0), 20, Later),
    line("sured.b.op.geom.ctype.mode [a, b], c; .op = { .add, .min, .max, .and, .or }; .geom = { .1d, .2d, .3d }; .ctype = { .u32, .u64, .s32, .b32, .s64 }; .mode = { .trap, .clamp, .zero }", (2, 0), 20, Later),
    line("sured.p.op.geom.ctype.mode [a, b], c; .op = { .add, .min, .max, .and, .or }; .geom = { .1d, .2d, .3d }; .ctype = { .b32, .b64 }; .mode = { .trap, .clamp, .zero }", (2, 0), 20, Later),
    line("suq.query.b32 d, [a]; .query = { .width, .height, .depth, .channel_data_type, .channel_order, .array_size, .memory_layout }", (1, 5), 10, Later),
];
