//! Control Flow, Parallel Synchronization and Communication, Stack Manipulation, Miscellaneous.

use super::entry::Meaning::*;
use super::entry::Then::Without;
use super::entry::{F100_F120_A90, Gone, Instruction, gone, instruction, line, need, rule};
use crate::isa::operation::Advice;

/// Lanes that do not say whom they meet.
const UNSYNCHRONISED: &[Gone] = &[gone("", "sync", (6, 4), 70)];

#[rustfmt::skip]
pub static INSTRUCTIONS: &[Instruction] = &[
    instruction("bra", &[
        line("bra{.uni} tgt:label", (1, 0), 10, Branch),
    ]),
    instruction("brx", &[
        line("brx.idx{.uni} index:u32, tlist:list", (6, 0), 30, BranchIndexed),
    ]),
    instruction("call", &[
        line("call{.uni} (ret-param), func, (param-list)", (1, 0), 10, Call),
    ]),
    instruction("ret", &[
        line("ret{.uni}", (1, 0), 10, Return),
    ]),
    instruction("exit", &[
        line("exit", (1, 0), 10, Exit),
    ]),
    instruction("trap", &[
        line("trap", (1, 0), 10, Trap),
    ]),
    instruction("brkpt", &[
        line("brkpt", (1, 0), 11, Breakpoint),
    ]),
    instruction("nanosleep", &[
        line("nanosleep.u32 t", (6, 2), 70, Nanosleep),
    ]),
    instruction("pmevent", &[
        line("pmevent a:imm[0..15]", (1, 4), 10, Hint(Advice::Pmevent)),
        line("pmevent.mask a:imm[0..65535]", (3, 0), 20, Hint(Advice::Pmevent)),
    ]),
    instruction("setmaxnreg", &[
        line("setmaxnreg.action.sync.aligned.u32 imm-reg-count:imm[24..256/8]; .action = { .inc, .dec }", (8, 0), 90, Hint(Advice::Setmaxnreg)),
    ]).needs(&[
        need("", (8, 0), F100_F120_A90),
    ]),

    instruction("bar", &[
        line("bar{.cta}.sync a:u32[0..15]{, b:u32[0../32]}", (1, 0), 10, Barrier),
        line("bar{.cta}.arrive a:u32[0..15], b:u32[0../32]", (2, 0), 20, Barrier),
        line("bar{.cta}.red.popc.u32 d, a:u32[0..15]{, b:u32[0../32]}, {!}c:pred", (2, 0), 20, Barrier),
        line("bar{.cta}.red.op.pred p, a:u32[0..15]{, b:u32[0../32]}, {!}c:pred; .op = { .and, .or }", (2, 0), 20, Barrier),
    ]).needs(&[
        need("cta", (7, 8), "20"),
    ]),
    instruction("barrier", &[
        line("barrier{.cta}.sync{.aligned} a:u32[0..15]{, b:u32[0../32]}", (6, 0), 30, Barrier),
        line("barrier{.cta}.arrive{.aligned} a:u32[0..15], b:u32[0../32]", (6, 0), 30, Barrier),
        line("barrier{.cta}.red.popc{.aligned}.u32 d, a:u32[0..15]{, b:u32[0../32]}, {!}c:pred", (6, 0), 30, Barrier),
        line("barrier{.cta}.red.op{.aligned}.pred p, a:u32[0..15]{, b:u32[0../32]}, {!}c:pred; .op = { .and, .or }", (6, 0), 30, Barrier),
    ]).needs(&[
        need("cta", (7, 8), "30"),
    ]),
    instruction("bar", &[
        line("bar.warp.sync membermask", (6, 0), 30, WarpBarrier),
    ]),
    instruction("griddepcontrol", &[
        line("griddepcontrol.action; .action = { .launch_dependents, .wait }", (7, 8), 90, Hint(Advice::Griddepcontrol)),
    ]),

    instruction("membar", &[
        line("membar.level; .level = { .cta, .gl, .sys }", (1, 4), 10, Fence),
        line("membar.proxy.kind; .kind = { .alias, .async }", (7, 5), 60, Fence),
    ]).needs(&[
        need("async", (8, 0), "90"),
        need("sys", (2, 0), "20"),
    ]),
    instruction("fence", &[
        line("fence{.sem}.scope; .sem = { .sc, .acq_rel, .acquire, .release }; .scope = { .cta, .cluster, .gpu, .sys }", (6, 0), 70, Fence),
        line("fence.mbarrier_init.release.cluster", (8, 0), 90, Fence),
        line("fence.proxy.kind; .kind = { .alias, .async, .async.global, .async.shared::cta, .async.shared::cluster }", (7, 5), 70, Fence),
        line("fence.proxy.tensormap::generic.acquire.scope [addr], size:imm[128]; .scope = { .cta, .cluster, .gpu, .sys }", (8, 3), 90, Fence),
        line("fence.proxy.tensormap::generic.release.scope; .scope = { .cta, .cluster, .gpu, .sys }", (8, 3), 90, Fence),
        line("fence.proxy.kind.sem.scope; .kind = { .alias, .fabric::fabric.alias, .fabric::generic.alias, .generic::fabric.alias }; .sem = { .acquire, .release }; .scope = { .cta, .cluster, .gpu, .sys }", (8, 3), 90, Fence),
        line("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster", (8, 6), 90, Fence),
        line("fence.proxy.async::generic.release.restrict.scope; .restrict = { .sync_restrict::shared::cta, .sync_restrict::shared::cluster::read }; .scope = { .cta, .cluster }", (8, 6), 90, Fence),
        line("fence.acquire.sync_restrict::shared::cluster.cluster", (8, 6), 90, Fence),
        line("fence.release.sync_restrict::shared::cta.cluster", (8, 6), 90, Fence),
        line("fence.alias.sync_restrict::read.release.sys", (9, 3), 90, Fence),
    ]).needs(&[
        need("cluster", (7, 8), "90"),
        need("release/async", (8, 0), "90"),
        need("acquire", (8, 3), "90"),
        need("cta/gpu/sys release", (8, 3), "90"),
        need("alias release/sys", (9, 3), "90"),
        need("fabric::fabric/fabric::generic/generic::fabric", (9, 3), "100"),
        need("sync_restrict::shared::cluster::read", (9, 4), "90"),
        need("sync_restrict::read", (9, 5), "90"),
    ]).rules(&[
        rule("proxy+alias proxy+fabric::fabric proxy+fabric::generic proxy+generic::fabric", Without("cta cluster gpu")),
        rule("sync_restrict::shared::cta+async::generic", Without("cta")),
    ]),

    instruction("shfl", &[
        line("shfl.mode.b32 d{|p}, a, b, c; .mode = { .up, .down, .bfly, .idx }", (3, 0), 30, Shuffle),
        line("shfl.sync.mode.b32 d{|p}, a, b, c, membermask; .mode = { .up, .down, .bfly, .idx }", (6, 0), 30, Shuffle),
    ]).gone(UNSYNCHRONISED),
    instruction("vote", &[
        line("vote.mode.pred d, {!}a:pred; .mode = { .all, .any, .uni }", (1, 2), 12, Vote),
        line("vote.ballot.b32 d, {!}a:pred", (2, 0), 20, Vote),
        line("vote.sync.mode.pred d, {!}a:pred, membermask; .mode = { .all, .any, .uni }", (6, 0), 30, Vote),
        line("vote.sync.ballot.b32 d, {!}a:pred, membermask", (6, 0), 30, Vote),
    ]).gone(UNSYNCHRONISED),
    instruction("match", &[
        line("match.any.sync.type d:u32, a, membermask; .type = { .b32, .b64 }", (6, 0), 70, Match),
        line("match.all.sync.type d:u32_{|p}, a, membermask; .type = { .b32, .b64 }", (6, 0), 70, Match),
    ]),
    instruction("activemask", &[
        line("activemask.b32 d", (6, 2), 30, Activemask),
    ]),
    instruction("redux", &[
        line("redux.sync.op.type d, a, membermask; .op = { .add, .min, .max }; .type = { .u32, .s32 }", (7, 0), 80, Redux),
        line("redux.sync.op.b32 d, a, membermask; .op = { .and, .or, .xor }", (7, 0), 80, Redux),
        line("redux.sync.op{.abs}{.NaN}.f32 d, a, membermask; .op = { .min, .max }", (8, 6), 100, Redux),
    ]).needs(&[
        need("NaN/f32", (8, 6), "100f 103f 107f"),
    ]),
    instruction("elect", &[
        line("elect.sync d:u32_|p, membermask", (8, 0), 90, Elect),
    ]),

    instruction("alloca", &[
        line("alloca.type d, size{, immAlign:imm[1,2,4,8,16,32,64,128,256,512,1024,2048,4096]}; .type = { .u32, .u64 }", (7, 3), 52, Alloca),
    ]),
    instruction("stacksave", &[
        line("stacksave.type d; .type = { .u32, .u64 }", (7, 3), 52, StackSave),
    ]),
    instruction("stackrestore", &[
        line("stackrestore.type a; .type = { .u32, .u64 }", (7, 3), 52, StackRestore),
    ]),
];
