//! No access escapes: an observer counts what each form of the list that touches memory touches, and finds what the form's
//! text says: how many bytes, which way, in which space, how ordered, for whom.
//!
//! The kernels are those of `tests/forms`, which compares what they compute; here only the statement under test is looked
//! at, found by its place in the text. What is expected is read from the words of the statement.

mod bounds;
#[path = "../forms/case.rs"]
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod case;
#[path = "../forms/catalogue.rs"]
#[allow(dead_code, reason = "shared with other tests, which use the rest")]
mod catalogue;
mod counter;
mod expect;
mod images;
mod later;
#[path = "../forms/model/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with other tests, which use the rest")]
mod model;

use std::collections::BTreeMap;
use std::sync::Arc;

use case::{Case, Memory, THREADS, WINDOW};
use counter::{Counter, Run, Seen};
use cuda::memory::endpoint::{self, Endpoint, Member};
use cuda::program::{Ordering, Proxy};
use cuda::simt::observe::Direction;
use expect::Expected;

/// Kernels of one module.
const BATCH: usize = 200;

/// Compares what was seen of one statement with what its text says, for the threads that carry it out.
fn compare(seen: &[Seen], expected: &Expected, threads: u32) -> Result<(), String> {
    let mut lanes = 0;
    for access in seen {
        lanes += access.lanes;
        let (own, wanted) = (&access.what, &expected.what);
        if own != wanted {
            return Err(format!("saw {own:?}, expected {wanted:?}"));
        }
    }
    let wanted = threads * expected.accesses;
    if lanes != wanted {
        return Err(format!("{lanes} lanes' accesses were seen, expected {wanted}"));
    }
    Ok(())
}

#[test]
fn each_form_of_loads_stores_and_atomics_is_seen_once_by_each_thread() {
    let rows = catalogue::rows();
    let cases: Vec<Case> = rows
        .iter()
        .filter(|row| matches!(row.category, "load" | "store" | "atomic") && row.semantic)
        .filter(|row| !row.form.contains(".async") && !row.form.contains(".bulk"))
        .filter_map(Case::of)
        .collect();
    assert!(cases.len() > 13_000, "{} forms", cases.len());
    // Without optimisation all of them take minutes.
    let step = std::env::var("ACCESSES_STEP").map_or(None, |step| step.parse().ok());
    let step = step.unwrap_or(if cfg!(debug_assertions) { 23 } else { 1 });
    let mut by_version: BTreeMap<_, Vec<&Case>> = BTreeMap::new();
    for case in cases.iter().step_by(step) {
        by_version.entry(case.row.last).or_default().push(case);
    }
    let mut failures = Vec::new();
    let mut run = Run::new();
    let input = run.memory.buffer(&vec![0; THREADS * (16 * 16 + WINDOW)]);
    let output = run.memory.buffer(&vec![0; THREADS * (16 * 16 + WINDOW)]);
    for (last, cases) in by_version {
        let (version, target) = last.unwrap_or(("9.5", "sm_120a"));
        let size = if last.is_some() { "" } else { ".address_size 64\n" };
        for batch in cases.chunks(BATCH) {
            let mut text = format!(
                ".version {version}\n.target {target}\n{size}.global .align 64 .b8 windows[{0}];
.global .align 64 .b8 gvar[{WINDOW}];\n.const .align 64 .b8 constants[{0}];\n",
                THREADS * WINDOW
            );
            for (i, case) in batch.iter().enumerate() {
                text += &case.kernel(&format!("k{i}"));
            }
            let module = run.load(&text).unwrap_or_else(|why| panic!("{why}"));
            for (i, case) in batch.iter().enumerate() {
                let mut params = [input, output].map(u64::to_le_bytes).concat();
                params.resize(128, 0);
                let counter = Arc::new(Counter::of(case.row.example));
                let ended = run.launch(&module, &format!("k{i}"), (64, params), &counter);
                // A variable of the module is for one thread, which goes round a loop for all of a larger block.
                let times = if case.memory == Some(Memory::Global) {
                    THREADS as u32
                } else {
                    64
                };
                let outcome = ended.and_then(|()| compare(&counter.seen(), &Expected::of(case), times));
                if let Err(why) = outcome {
                    failures.push(format!("{}: {why}", case.row.example));
                }
            }
        }
    }
    let shown = failures.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} forms:\n{shown}", failures.len());
}

/// A kernel of 32 threads around a statement of `cp.async`: %rd1 is a place in shared memory, %rd2 one in global memory.
fn copy_kernel(name: &str, example: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 in)\n{{
    .reg .b64 %rd<8>;\n    .reg .b32 %r<8>, %thread;\n    .reg .pred %p<8>;
    .shared .align 64 .b8 window[{0}];
    mov.u32 %thread, %tid.x;\n    mov.u32 %r3, 3;\n    setp.eq.u32 %p3, %thread, 5;
    mov.u64 %rd3, 0;\n    mov.u64 %rd4, 0;
    mov.u64 %rd1, window;\n    mad.wide.u32 %rd1, %thread, 16, %rd1;
    ld.param.u64 %rd2, [in];\n    mad.wide.u32 %rd2, %thread, 16, %rd2;
    {example}\n    cp.async.wait_all;\n    ret;\n}}\n",
        32 * 16
    )
}

#[test]
fn asynchronous_copies_are_seen_at_both_ends() {
    let rows = catalogue::rows();
    let rows: Vec<_> = rows
        .iter()
        .filter(|row| row.category == "async" && row.form.starts_with("cp.async.c") && row.form.contains("shared"))
        .collect();
    assert_eq!(rows.len(), 48, "forms of cp.async");
    let mut run = Run::new();
    let input = run.memory.buffer(&[7; 32 * 16]);
    let mut text = String::from(".version 9.5\n.target sm_120a\n.address_size 64\n");
    for (i, row) in rows.iter().enumerate() {
        text += &copy_kernel(&format!("k{i}"), row.example);
    }
    let module = run.load(&text).unwrap_or_else(|why| panic!("{why}"));
    for (i, row) in rows.iter().enumerate() {
        let counter = Arc::new(Counter::of(row.example));
        run.launch(&module, &format!("k{i}"), (32, input.to_le_bytes().to_vec()), &counter)
            .unwrap_or_else(|why| panic!("{}: {why}", row.example));
        let total = |direction: Direction| -> u32 {
            let seen = counter.seen();
            let own = seen.iter().filter(|seen| seen.what.direction == direction);
            own.map(|seen| seen.lanes * seen.what.bytes).sum()
        };
        let operands: Vec<&str> = row.example.trim_end_matches(';').split(", ").skip(2).collect();
        let size: u32 = operands[0].parse().expect("a size");
        // %r3 is 3; thread 5 reads nothing where %p3 says so, nor do all others where it is negated. A policy is no operand.
        let read = match operands.get(1).copied().filter(|operand| !operand.starts_with("%rd")) {
            None => 32 * size,
            Some("%r3") => 32 * 3,
            Some("%p3") => 31 * size,
            Some("!%p3") => size,
            Some(count) => 32 * count.parse::<u32>().expect("a number"),
        };
        let found = (
            total(Direction::Write),
            total(Direction::Read),
            total(Direction::Atomic),
        );
        assert_eq!(found, (32 * size, read, 0), "{}", row.example);
    }
}

#[test]
fn groups_of_asynchronous_copies_are_told() {
    let mut run = Run::new();
    let text = "
.version 9.5\n.target sm_120a\n.address_size 64
.visible .entry groups(.param .u64 in)
{
    .reg .b32 %r<2>;\n    .reg .b64 %rd<3>;\n    .reg .pred %p;
    .shared .align 16 .b8 window[512];
    mov.u32 %r0, %tid.x;
    setp.lt.u32 %p, %r0, 5;
    mov.u64 %rd1, window;\n    mad.wide.u32 %rd1, %r0, 16, %rd1;
    ld.param.u64 %rd2, [in];\n    mad.wide.u32 %rd2, %r0, 16, %rd2;
    cp.async.ca.shared.global [%rd1], [%rd2], 16;
    cp.async.commit_group;
    @%p cp.async.wait_group 2;
    cp.async.wait_all;
    ret;
}
";
    let input = run.memory.buffer(&[7; 512]);
    let module = run.load(text).unwrap_or_else(|why| panic!("{why}"));
    let counter = Arc::new(Counter::of(""));
    run.launch(&module, "groups", (32, input.to_le_bytes().to_vec()), &counter)
        .expect("it runs");
    let expected = [
        "launch",
        "block",
        "1 begins for 32: Group",
        "copies Commit of 32",
        "copies Wait(2) of 5",
        "1 is complete for 32",
        "copies WaitAll of 32",
        "block end",
        "end",
    ];
    assert_eq!(counter.events(), expected);
}

#[test]
fn barriers_fences_calls_and_blocks_are_told() {
    let mut run = Run::new();
    let text = "
.version 9.5\n.target sm_120a\n.address_size 64
.func (.param .b32 result) twice(.param .b32 x)
{
    .reg .b32 %r<2>;
    ld.param.b32 %r0, [x];
    add.u32 %r0, %r0, %r0;
    st.param.b32 [result], %r0;
    ret;
}
.visible .entry all(.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    mov.u32 %r0, %tid.x;
    bar.sync 3;
    fence.acq_rel.cluster;
    membar.sys;
    bar.warp.sync 0xffffffff;
    {
    .param .b32 a;\n    .param .b32 r;
    st.param.b32 [a], %r0;
    call.uni (r), twice, (a);
    ld.param.b32 %r1, [r];
    }
    ret;
}
";
    let module = run.load(text).unwrap_or_else(|why| panic!("{why}"));
    let counter = Arc::new(Counter::of("call.uni (r), twice, (a);"));
    run.launch(&module, "all", (64, vec![0; 8]), &counter).expect("it runs");
    // Four bytes go to the callee and four come back, for 64 threads: read here, written there.
    let seen = counter.seen();
    for direction in [Direction::Read, Direction::Write] {
        let own = seen.iter().filter(|seen| seen.what.direction == direction);
        assert_eq!(own.map(|seen| seen.lanes * seen.what.bytes).sum::<u32>(), 2 * 64 * 4);
    }
    let events = counter.events();
    let expected = [
        "launch",
        "block",
        "arrive 3 of 64",
        "release 3",
        "fence AcqRel Cluster of 64",
        "fence Sc Sys of 64",
        "warp of 32",
        "warp of 32",
        "block end",
        "end",
    ];
    assert_eq!(events, expected);
}

#[test]
fn bulk_copies_and_their_barriers_are_told() {
    let mut run = Run::new();
    let text = "
.version 9.5\n.target sm_120a\n.address_size 64
.visible .entry bulk(.param .u64 in)
{
    .reg .b32 %r<4>;\n    .reg .b64 %rd<3>;\n    .reg .pred %p;
    .shared .align 16 .b8 window[64];
    .shared .align 8 .b64 bar;
    mov.u32 %r1, window;\n    mov.u32 %r2, bar;
    ld.param.u64 %rd1, [in];
    mbarrier.init.shared::cta.b64 [%r2], 1;
    mbarrier.arrive.expect_tx.release.cluster.shared::cta.b64 _, [%r2], 32;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 32, [%r2];
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%r2], 0;
    @!%p bra wait;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    cp.async.bulk.wait_group 0;
    ret;
}
";
    let input = run.memory.buffer(&[7; 64]);
    let module = run.load(text).unwrap_or_else(|why| panic!("{why}"));
    let counter = Arc::new(Counter::of(
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 32, [%r2]",
    ));
    run.launch(&module, "bulk", (1, input.to_le_bytes().to_vec()), &counter)
        .expect("it runs");
    let expected = [
        "launch",
        "block",
        "mbarrier Init Weak of 1",
        "mbarrier Arriving Release Cluster of 1",
        "mbarrier Arrive Release Cluster of 1",
        "1 begins for 1: 32 bytes",
        // It waits, and nobody else gets on.
        "mbarrier Look { over: 0 } Acquire Cta of 1",
        "1 is complete for 1",
        "mbarrier Look { over: 1 } Acquire Cta of 1",
        "2 begins for 1: BulkGroup",
        "bulk copies Commit of 1",
        "sources of bulk copies Wait(0) of 1",
        "2 is complete for 1",
        "bulk copies Wait(0) of 1",
        "block end",
        "end",
    ];
    assert_eq!(counter.events(), expected);
    let seen: Vec<_> = counter
        .seen()
        .iter()
        .map(|seen| (seen.what.direction, seen.what.bytes))
        .collect();
    assert_eq!(seen, [(Direction::Write, 32), (Direction::Read, 32)]);
}

#[test]
fn fabric_operations_and_their_submission_are_told() {
    const PUT: &str = "fabric.try_put.async.multimem.shared::cta.mbarrier::complete_tx::16B.mbarrier::report::fabric\
                       .counted::bytes.relaxed.sys.b128 [%r1, %rd1, %rd2], [%r2], 32, [%r3]";
    let mut run = Run::new();
    let text = format!(
        "
.version 9.5\n.target sm_100\n.address_size 64
.visible .entry fabric(.param .u64 id)
{{
    .reg .b32 %r<4>;\n    .reg .b64 %rd<3>;\n    .reg .pred %p;
    .shared .align 16 .b8 window[32];
    .shared .align 8 .b64 bar;
    mov.u32 %r2, window;\n    mov.u32 %r3, bar;
    ld.param.u32 %r1, [id];\n    mov.b64 %rd1, 16;\n    mov.b64 %rd2, 256;
    mbarrier.init.layout::v1.shared::cta.b64 [%r3], 1;
    mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r3], 2;
    {PUT};
    fabric.submit.commit_group;
    fabric.wait.sync_restrict::read 0;
    fence.proxy.fabric::generic.alias.release.sys;
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%r3], 0;
    @!%p bra wait;
    ret;
}}
"
    );
    let members = [0, 1].map(|device| Member {
        device,
        start: run.memory.buffer(&[0; 512]),
    });
    let id = 4711;
    endpoint::publish(Endpoint {
        id,
        is_team: true,
        bytes: 512,
        counts: true,
        missing: 0,
        members: Box::new(members),
    });
    let module = run.load(&text).unwrap_or_else(|why| panic!("{why}"));
    let counter = Arc::new(Counter::of(PUT));
    run.launch(&module, "fabric", (1, u64::from(id).to_le_bytes().to_vec()), &counter)
        .expect("it runs");
    endpoint::withdraw(id);
    let expected = [
        "launch",
        "block",
        "mbarrier Init Weak of 1",
        "mbarrier Arriving Release Cta of 1",
        "mbarrier Arrive Release Cta of 1",
        "1 begins for 1: 2 bytes",
        "fabric Submit(Group) of 1",
        "fabric WaitReads(0) of 1",
        "fence Release Sys of 1",
        "mbarrier Look { over: 0 } Acquire Cta of 1",
        "1 is complete for 1",
        "mbarrier Look { over: 1 } Acquire Cta of 1",
        "block end",
        "end",
    ];
    assert_eq!(counter.events(), expected);
    let seen: Vec<_> = counter
        .seen()
        .iter()
        .map(|seen| (seen.what.direction, seen.what.bytes, seen.what.ordering, seen.proxy))
        .collect();
    let by_fabric = |direction, bytes| (direction, bytes, Ordering::Relaxed, Proxy::Fabric);
    let expected = [
        (Direction::Read, 32, Ordering::Weak, Proxy::Async),
        by_fabric(Direction::Write, 32),
        by_fabric(Direction::Write, 32),
        by_fabric(Direction::Atomic, 8),
        by_fabric(Direction::Atomic, 8),
    ];
    assert_eq!(seen, expected);
}
