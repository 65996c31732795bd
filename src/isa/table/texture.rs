//! Texture and Surface Instructions.
//!
//! Which operands an access may have depends on what it reads: depth references need positions, offsets a plane. Lines
//! are apart by that.

use super::entry::Meaning::{IsHandle, SurfaceLoad, SurfaceQuery, SurfaceReduce, SurfaceStore, Texture, TextureQuery};
use super::entry::Then::{Last, NotLast};
use super::entry::{Common, Instruction, Need, instruction, line, need, rule};

macro_rules! dtypes {
    () => {
        "; .dtype = { .v4.f16, .v2.f16x2, .v4.u32, .v4.s32, .v4.f32 }"
    };
}
macro_rules! tex {
    ($level:literal, $more:literal, $offset:literal, $geometry:literal, $ctype:literal, $version:expr, $target:literal) => {
        line(
            concat!(
                "tex",
                $level,
                ".geom.dtype.",
                $ctype,
                " d:v~{|p}, [a:texref, c]",
                $more,
                $offset,
                "; .geom = { ",
                $geometry,
                " }",
                dtypes!()
            ),
            $version,
            $target,
            Texture,
        )
    };
}
macro_rules! surface {
    () => {
        "; .geom = { .1d, .2d, .3d, .a1d, .a2d }; .vec = { .v2, .v4 }; .dtype = { .b8, .b16, .b32, .b64 }; .mode = { .trap, .clamp, .zero }"
    };
}
macro_rules! reduction {
    () => {
        "; .geom = { .1d, .2d, .3d }; .mode = { .trap, .clamp, .zero }"
    };
}

/// `txq`, `suq`.
const QUERY: &[Need] = &[
    need("channel_data_type/channel_order", (2, 1), "10"),
    need("array_size", (4, 1), "10"),
    need("memory_layout", (4, 2), "10"),
    need("force_unnormalized_coords", (2, 2), "10"),
    need("num_mipmap_levels", (4, 1), "20"),
    need("num_samples", (4, 1), "30"),
];

/// `suld`, `sust`.
const SURFACE: Common = Common {
    needs: &[
        need("ca/cg/cs/cv/wb/wt", (2, 0), "20"),
        need("3d/a1d/a2d", (3, 0), "20"),
        need("clamp/zero", (2, 0), "10"),
    ],
    rules: &[rule("v4", NotLast("b64"))],
};

#[rustfmt::skip]
pub static INSTRUCTIONS: &[Instruction] = &[
    instruction("tex", &[
        tex!("", "", "{, e:offset}{, f:f32~}", ".1d, .2d, .a1d, .a2d", "f32", (1, 0), 10),
        tex!("", "", "{, e:offset}", ".3d", "f32", (1, 0), 10),
        tex!("", "", "{, e:offset}", ".1d, .2d, .3d, .a1d, .a2d, .2dms, .a2dms", "s32", (1, 0), 10),
        tex!("", "", "{, f:f32~}", ".cube, .acube", "f32", (1, 0), 10),
        tex!(".base", "", "{, e:offset}{, f:f32~}", ".1d, .2d, .a1d, .a2d", "f32", (3, 1), 20),
        tex!(".base", "", "{, e:offset}", ".3d", "f32", (3, 1), 20),
        tex!(".base", "", "{, e:offset}", ".1d, .2d, .3d, .a1d, .a2d, .2dms, .a2dms", "s32", (3, 1), 20),
        tex!(".base", "", "{, f:f32~}", ".cube, .acube", "f32", (3, 1), 20),
        tex!(".level", ", lod", "{, e:offset}{, f:f32~}", ".1d, .2d, .a1d, .a2d", "f32", (3, 1), 20),
        tex!(".level", ", lod", "{, e:offset}", ".3d", "f32", (3, 1), 20),
        tex!(".level", ", lod", "{, e:offset}", ".1d, .2d, .3d, .a1d, .a2d", "s32", (3, 1), 20),
        tex!(".level", ", lod", "{, f:f32~}", ".cube, .acube", "f32", (3, 1), 20),
        tex!(".grad", ", dPdx:gradient, dPdy:gradient", "{, e:offset}{, f:f32~}", ".1d, .2d, .a1d, .a2d", "f32", (3, 1), 20),
        tex!(".grad", ", dPdx:gradient, dPdy:gradient", "{, e:offset}", ".3d", "f32", (3, 1), 20),
        tex!(".grad", ", dPdx:gradient, dPdy:gradient", "{, e:offset}", ".1d, .2d, .3d, .a1d, .a2d", "s32", (3, 1), 20),
        tex!(".grad", ", dPdx:gradient, dPdy:gradient", "{, f:f32~}", ".cube, .acube", "f32", (3, 1), 20),
    ]).needs(&[
        need("f16/f16x2", (4, 2), "53"),
        need("a1d/a2d", (2, 3), "10"),
        need("acube", (3, 0), "20"),
        need("cube", (3, 0), "10"),
        need("2dms/a2dms", (3, 2), "30"),
        need("acube/cube grad", (4, 3), "20"),
    ]),
    instruction("tld4", &[
        line("tld4.comp.geom.v4.dtype.f32 d:v~{|p}, [a:texref, c]{, e:offset}{, f:f32~}; .comp = { .r, .g, .b, .a }; .geom = { .2d, .a2d }; .dtype = { .u32, .s32, .f32 }", (2, 2), 20, Texture),
        line("tld4.comp.geom.v4.dtype.f32 d:v~{|p}, [a:texref, c]{, f:f32~}; .comp = { .r, .g, .b, .a }; .geom = { .cube, .acube }; .dtype = { .u32, .s32, .f32 }", (2, 2), 20, Texture),
    ]).needs(&[
        need("a2d/acube/cube", (4, 3), "30"),
    ]),
    instruction("txq", &[
        line("txq.query.b32 d, [a:texref]; .query = { .width, .height, .depth, .channel_data_type, .channel_order, .normalized_coords, .array_size, .num_mipmap_levels, .num_samples, .memory_layout }", (1, 5), 10, TextureQuery),
        line("txq.query.b32 d, [a:samplerref]; .query = { .force_unnormalized_coords, .filter_mode, .addr_mode_0, .addr_mode_1, .addr_mode_2, .memory_layout }", (1, 5), 10, TextureQuery),
        line("txq.level.query.b32 d, [a:texref], lod:u32; .query = { .width, .height, .depth }", (4, 3), 30, TextureQuery),
    ]).needs(QUERY),
    instruction("istypep", &[
        line("istypep.type p:pred, a:u64; .type = { .texref, .samplerref, .surfref }", (4, 0), 30, IsHandle),
    ]),
    instruction("suld", &[
        line(concat!("suld.b.geom{.cop}{.vec}.dtype.mode d:v+, [a:surfref, b]; .cop = { .ca, .cg, .cs, .cv }", surface!()), (1, 5), 10, SurfaceLoad),
    ]).common(SURFACE),
    instruction("sust", &[
        line(concat!("sust.b.geom{.cop}{.vec}.dtype.mode [a:surfref, b], c:v+; .cop = { .wb, .cg, .cs, .wt }", surface!()), (1, 5), 10, SurfaceStore),
        line(concat!("sust.p.geom{.cop}{.vec}.b32.mode [a:surfref, b], c:v+; .cop = { .wb, .cg, .cs, .wt }", surface!()), (2, 0), 20, SurfaceStore),
    ]).common(SURFACE).needs(&[
        need("a1d/a2d p", (4, 1), "30"),
    ]),
    instruction("sured", &[
        line(concat!("sured.b.op.geom.ctype.mode [a:surfref, b], c:+; .op = { .add, .min, .max, .and, .or }; .ctype = { .u32, .u64, .s32, .b32, .s64 }", reduction!()), (2, 0), 20, SurfaceReduce),
        line(concat!("sured.p.op.geom.ctype.mode [a:surfref, b], c:+; .op = { .add, .min, .max, .and, .or }; .ctype = { .b32, .b64 }", reduction!()), (2, 0), 20, SurfaceReduce),
    ]).needs(&[
        need("3d", (3, 0), "20"),
        need("b64/s64", (8, 1), "50"),
        need("max/min u64", (8, 1), "50"),
    ]).rules(&[
        rule("and or", Last("b32")),
        rule("add+b+-p", Last("u32 s32 u64")),
        rule("min+b+-p max+b+-p", NotLast("b32")),
        rule("add+p", NotLast("b64")),
    ]),
    instruction("suq", &[
        line("suq.query.b32 d, [a:surfref]; .query = { .width, .height, .depth, .channel_data_type, .channel_order, .array_size, .memory_layout }", (1, 5), 10, SurfaceQuery),
    ]).needs(QUERY),
];
