//! `MARGAY_SEED`: the same number gives the same interleaving, with one worker or several; another number another one.

use std::collections::BTreeSet;

use crate::alone::alone;
use crate::code::*;
use crate::test_name;

/// Counts without atomics, so that increments get lost: `[to]` between blocks, `[to+4]` between warps of a block,
/// `[to+8]` between the lanes of a warp that has diverged.
const RACES: &str = "
.visible .entry race(.param .u64 to)
{
    .reg .b64 %to, %at;
    .reg .b32 %thread, %lane, %block, %n, %r;
    .reg .pred %p, %q;
    ld.param.u64 %to, [to];
    mov.u32 %thread, %tid.x;
    and.b32 %lane, %thread, 31;
    mov.u32 %block, %ctaid.x;
    mov.u32 %n, 0;
    setp.ne.u32 %p, %lane, 0;
    @%p bra lanes;
    // One lane of each warp: among blocks, and in block 0 among warps.
again:
    setp.ne.u32 %q, %thread, 0;
    @%q bra warps;
    ld.volatile.global.u32 %r, [%to];
    add.u32 %r, %r, 1;
    st.volatile.global.u32 [%to], %r;
warps:
    setp.ne.u32 %q, %block, 0;
    @%q bra next;
    ld.volatile.global.u32 %r, [%to+4];
    add.u32 %r, %r, 1;
    st.volatile.global.u32 [%to+4], %r;
next:
    add.u32 %n, %n, 1;
    setp.lt.u32 %q, %n, 25;
    @%q bra again;
    ret;
lanes:
    // Lanes 1 and 2 of the first warp of all, each on a way of its own.
    setp.gt.u32 %p, %thread, 2;
    @%p bra done;
    setp.ne.u32 %p, %block, 0;
    @%p bra done;
    setp.eq.u32 %p, %thread, 2;
    @%p bra second;
first:
    ld.volatile.global.u32 %r, [%to+8];
    add.u32 %r, %r, 1;
    st.volatile.global.u32 [%to+8], %r;
    add.u32 %n, %n, 1;
    setp.lt.u32 %q, %n, 25;
    @%q bra first;
    ret;
second:
    ld.volatile.global.u32 %r, [%to+8];
    add.u32 %r, %r, 16;
    st.volatile.global.u32 [%to+8], %r;
    add.u32 %n, %n, 1;
    setp.lt.u32 %q, %n, 25;
    @%q bra second;
done:
    ret;
}
";

/// What two launches in a process of its own leave behind.
fn race(test: &str, seed: u32, threads: u32) -> Vec<[u32; 3]> {
    let (seed, threads) = (seed.to_string(), threads.to_string());
    let environment = [("MARGAY_SEED", seed.as_str()), ("MARGAY_THREADS", &threads)];
    let run = alone(test, &environment, || {
        context();
        let kernel = function(module(RACES), "race");
        for _ in 0..2 {
            let to = words(3);
            launch(kernel, 6, 128, &[to]);
            println!("\nleft: {:?}", read(to, 3));
        }
    });
    let lines = run.stdout.lines().filter_map(|line| line.strip_prefix("left: "));
    let left: Vec<[u32; 3]> = lines
        .map(|line| {
            let mut numbers = line
                .trim_matches(['[', ']'])
                .split(", ")
                .map(|n| n.parse().expect("a number"));
            [(); 3].map(|()| numbers.next().expect("three numbers"))
        })
        .collect();
    assert_eq!(left.len(), 2, "{run:?}");
    left
}

#[test]
fn one_seed_is_one_interleaving_whatever_the_workers() {
    let first = race(test_name!(), 7, 1);
    for run in 1..20 {
        assert_eq!(race(test_name!(), 7, [1, 2, 4][run % 3]), first, "run {run}");
    }
    // A program's launches are not all alike.
    assert_ne!(first[0], first[1]);
}

#[test]
fn another_seed_is_another_interleaving() {
    let test = test_name!();
    let left: Vec<[u32; 3]> = (0..20).flat_map(|seed| race(test, seed, 2)).collect();
    for (place, between) in ["blocks", "warps", "lanes"].iter().enumerate() {
        let found: BTreeSet<u32> = left.iter().map(|left| left[place]).collect();
        assert!(found.len() > 5, "between {between}: {found:?}");
    }
}

/// Without a race the answer is the same under every seed.
#[test]
fn correct_programs_stay_correct() {
    let text = "
        .visible .entry count(.param .u64 to) {
            .reg .b64 %to; .reg .b32 %r; .reg .pred %p;
            .shared .u32 sum;
            ld.param.u64 %to, [to];
            mov.u32 %r, %tid.x;
            setp.ne.u32 %p, %r, 0;
            @!%p st.shared.u32 [sum], 0;
            bar.sync 0;
            atom.shared.add.u32 %r, [sum], 1;
            bar.sync 0;
            @%p ret;
            ld.shared.u32 %r, [sum];
            atom.global.add.u32 %r, [%to], %r;
            ret;
        }";
    for seed in ["1", "2", "3"] {
        alone(test_name!(), &[("MARGAY_SEED", seed)], || {
            context();
            let to = words(1);
            launch(function(module(text), "count"), 33, 200, &[to]);
            assert_eq!(read(to, 1), [33 * 200]);
        });
    }
}

/// Sixteen copies that nobody waits for, and a look at which of them have been made after each.
const MISSING_WAIT: &str = "
.visible .entry missing(.param .u64 from, .param .u64 to)
{
    .reg .b64 %from, %to;
    .reg .b32 %at, %n, %seen, %v, %i, %bits;
    .reg .pred %p;
    .shared .align 16 .b32 tile[16];
    ld.param.u64 %from, [from];
    ld.param.u64 %to, [to];
    mov.u32 %at, tile;
    mov.u32 %n, 0;
clear:
    st.shared.u32 [%at], 0;
    cp.async.ca.shared.global [%at], [%from], 4;
    add.u32 %at, %at, 4;
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, 16;
    @%p bra clear;
    mov.u32 %at, tile;
    mov.u32 %n, 0;
    mov.u32 %bits, 0;
look:
    ld.shared.u32 %v, [%at];
    shl.b32 %v, %v, %n;
    or.b32 %bits, %bits, %v;
    add.u32 %at, %at, 4;
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, 16;
    @%p bra look;
    st.global.u32 [%to], %bits;
    ret;
}
";

/// Which copies were there too early; `None`: without a seed.
fn early(test: &str, seed: Option<u32>) -> u32 {
    let seed = seed.map(|seed| seed.to_string());
    let environment: Vec<_> = seed.iter().map(|seed| ("MARGAY_SEED", seed.as_str())).collect();
    let run = alone(test, &environment, || {
        context();
        let (from, to) = (words(1), words(1));
        write(from, &[1]);
        launch(function(module(MISSING_WAIT), "missing"), 1, 1, &[from, to]);
        println!("\nearly: {}", read(to, 1)[0]);
    });
    let line = run.stdout.lines().find_map(|line| line.strip_prefix("early: "));
    line.expect("it ran").parse().expect("a number")
}

#[test]
fn a_missing_wait_shows_in_other_ways_under_other_seeds() {
    let test = test_name!();
    assert_eq!(
        early(test, None),
        0,
        "without a seed nothing comes before it is waited for"
    );
    let found: BTreeSet<u32> = (0..12).map(|seed| early(test, Some(seed))).collect();
    assert!(found.len() > 3, "{found:?}");
    assert_eq!(early(test, Some(5)), early(test, Some(5)));
}
