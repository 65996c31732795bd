//! Video Instructions: scalar and SIMD. Byte and half-word selectors are written on the operands.

use super::{Line, line};
use crate::isa::Semantics::Video;

macro_rules! types {
    () => {
        "; .dtype = { .u32, .s32 }; .atype = { .u32, .s32 }; .btype = { .u32, .s32 }; .op2 = { .add, .min, .max }"
    };
}
macro_rules! cmp {
    () => {
        "; .cmp = { .eq, .ne, .lt, .le, .gt, .ge }; .atype = { .u32, .s32 }; .btype = { .u32, .s32 }; .op2 = { .add, .min, .max }"
    };
}

#[rustfmt::skip]
pub static LINES: &[Line] = &[
    line(concat!("vadd.dtype.atype.btype{.sat}{.op2} d:vid, a:vid, b:vid{, c:vid}", types!()), (2, 0), 20, Video),
    line(concat!("vsub.dtype.atype.btype{.sat}{.op2} d:vid, a:vid, b:vid{, c:vid}", types!()), (2, 0), 20, Video),
    line(concat!("vabsdiff.dtype.atype.btype{.sat}{.op2} d:vid, a:vid, b:vid{, c:vid}", types!()), (2, 0), 20, Video),
    line(concat!("vmin.dtype.atype.btype{.sat}{.op2} d:vid, a:vid, b:vid{, c:vid}", types!()), (2, 0), 20, Video),
    line(concat!("vmax.dtype.atype.btype{.sat}{.op2} d:vid, a:vid, b:vid{, c:vid}", types!()), (2, 0), 20, Video),
    line(concat!("vshl.dtype.atype.u32{.sat}.mode{.op2} d:vid, a:vid, b:vid{, c:vid}; .mode = { .clamp, .wrap }", types!()), (2, 0), 20, Video),
    line(concat!("vshr.dtype.atype.u32{.sat}.mode{.op2} d:vid, a:vid, b:vid{, c:vid}; .mode = { .clamp, .wrap }", types!()), (2, 0), 20, Video),
    line(concat!("vmad.dtype.atype.btype{.po}{.sat}{.scale} d:vid, a:vid, b:vid, c:vid; .scale = { .shr7, .shr15 }", types!()), (2, 0), 20, Video),
    line(concat!("vset.atype.btype.cmp{.op2} d:vid, a:vid, b:vid{, c:vid}", cmp!()), (2, 0), 20, Video),
    line(concat!("vadd2.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video),
    line(concat!("vsub2.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video),
    line(concat!("vavrg2.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video),
    line(concat!("vabsdiff2.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video),
    line(concat!("vmin2.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video),
    line(concat!("vmax2.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video),
    line(concat!("vset2.atype.btype.cmp{.add} d:vid, a:vid, b:vid, c:vid", cmp!()), (3, 0), 30, Video),
    line(concat!("vadd4.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video),
    line(concat!("vsub4.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video),
    line(concat!("vavrg4.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video),
    line(concat!("vabsdiff4.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video),
    line(concat!("vmin4.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video),
    line(concat!("vmax4.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video),
    line(concat!("vset4.atype.btype.cmp{.add} d:vid, a:vid, b:vid, c:vid", cmp!()), (3, 0), 30, Video),
];
