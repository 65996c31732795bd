//! Video Instructions: scalar and SIMD. Byte and half-word selectors are written on the operands.

use super::entry::Meaning::Video;
use super::entry::{Instruction, instruction, line};
use crate::isa::video::read as video;

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
pub static INSTRUCTIONS: &[Instruction] = &[
    instruction("vadd", &[
        line(concat!("vadd.dtype.atype.btype{.sat}{.op2} d:vid, a:vid, b:vid{, c:vid}", types!()), (2, 0), 20, Video(video::vadd)),
    ]),
    instruction("vsub", &[
        line(concat!("vsub.dtype.atype.btype{.sat}{.op2} d:vid, a:vid, b:vid{, c:vid}", types!()), (2, 0), 20, Video(video::vsub)),
    ]),
    instruction("vabsdiff", &[
        line(concat!("vabsdiff.dtype.atype.btype{.sat}{.op2} d:vid, a:vid, b:vid{, c:vid}", types!()), (2, 0), 20, Video(video::vabsdiff)),
    ]),
    instruction("vmin", &[
        line(concat!("vmin.dtype.atype.btype{.sat}{.op2} d:vid, a:vid, b:vid{, c:vid}", types!()), (2, 0), 20, Video(video::vmin)),
    ]),
    instruction("vmax", &[
        line(concat!("vmax.dtype.atype.btype{.sat}{.op2} d:vid, a:vid, b:vid{, c:vid}", types!()), (2, 0), 20, Video(video::vmax)),
    ]),
    instruction("vshl", &[
        line(concat!("vshl.dtype.atype.u32{.sat}.mode{.op2} d:vid, a:vid, b:vid{, c:vid}; .mode = { .clamp, .wrap }", types!()), (2, 0), 20, Video(video::vshl)),
    ]),
    instruction("vshr", &[
        line(concat!("vshr.dtype.atype.u32{.sat}.mode{.op2} d:vid, a:vid, b:vid{, c:vid}; .mode = { .clamp, .wrap }", types!()), (2, 0), 20, Video(video::vshr)),
    ]),
    instruction("vmad", &[
        line(concat!("vmad.dtype.atype.btype{.po}{.sat}{.scale} d:vid, a:vid, b:vid, c:vid; .scale = { .shr7, .shr15 }", types!()), (2, 0), 20, Video(video::vmad)),
    ]),
    instruction("vset", &[
        line(concat!("vset.atype.btype.cmp{.op2} d:vid, a:vid, b:vid{, c:vid}", cmp!()), (2, 0), 20, Video(video::vset)),
    ]),
    instruction("vadd2", &[
        line(concat!("vadd2.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video(video::vadd2)),
    ]),
    instruction("vsub2", &[
        line(concat!("vsub2.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video(video::vsub2)),
    ]),
    instruction("vavrg2", &[
        line(concat!("vavrg2.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video(video::vavrg2)),
    ]),
    instruction("vabsdiff2", &[
        line(concat!("vabsdiff2.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video(video::vabsdiff2)),
    ]),
    instruction("vmin2", &[
        line(concat!("vmin2.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video(video::vmin2)),
    ]),
    instruction("vmax2", &[
        line(concat!("vmax2.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video(video::vmax2)),
    ]),
    instruction("vset2", &[
        line(concat!("vset2.atype.btype.cmp{.add} d:vid, a:vid, b:vid, c:vid", cmp!()), (3, 0), 30, Video(video::vset2)),
    ]),
    instruction("vadd4", &[
        line(concat!("vadd4.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video(video::vadd4)),
    ]),
    instruction("vsub4", &[
        line(concat!("vsub4.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video(video::vsub4)),
    ]),
    instruction("vavrg4", &[
        line(concat!("vavrg4.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video(video::vavrg4)),
    ]),
    instruction("vabsdiff4", &[
        line(concat!("vabsdiff4.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video(video::vabsdiff4)),
    ]),
    instruction("vmin4", &[
        line(concat!("vmin4.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video(video::vmin4)),
    ]),
    instruction("vmax4", &[
        line(concat!("vmax4.dtype.atype.btype{.sat}{.add} d:vid, a:vid, b:vid, c:vid", types!()), (3, 0), 30, Video(video::vmax4)),
    ]),
    instruction("vset4", &[
        line(concat!("vset4.atype.btype.cmp{.add} d:vid, a:vid, b:vid, c:vid", cmp!()), (3, 0), 30, Video(video::vset4)),
    ]),
];
