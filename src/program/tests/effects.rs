//! What operations do besides writing registers, as the text orders it.

use super::{kernel, listing};
use crate::program::{Effects, Ordering, Proxy, Reach, Scope, Space};

/// The effects of the only operation that is no return, exit or pure one.
fn effects(instruction: &str) -> Effects {
    let function = kernel(&format!(
        ".reg .u32 %r<4>; .reg .u64 %rd<2>; .reg .pred %p; ld.param.u64 %rd1, [p]; {instruction} ret;"
    ));
    let all: Vec<Effects> = function
        .body
        .insts()
        .map(|inst| inst.op.effects())
        .filter(|effects| !effects.is_pure() && !effects.leaves)
        .collect();
    let [one] = all[..] else { panic!("{function}") };
    one
}

#[test]
fn accesses_say_their_ordering_and_scope() {
    let global = Some(Reach::Space(Space::Global));
    let shared = Some(Reach::Space(Space::Shared));
    for (text, reads, writes, ordering, scope) in [
        ("ld.global.u32 %r1, [%rd1];", global, None, Ordering::Weak, None),
        (
            "ld.volatile.global.u32 %r1, [%rd1];",
            global,
            None,
            Ordering::Volatile,
            Some(Scope::Sys),
        ),
        (
            "ld.acquire.cta.global.u32 %r1, [%rd1];",
            global,
            None,
            Ordering::Acquire,
            Some(Scope::Cta),
        ),
        (
            "st.relaxed.cluster.global.u32 [%rd1], %r1;",
            None,
            global,
            Ordering::Relaxed,
            Some(Scope::Cluster),
        ),
        (
            "st.release.sys.global.u32 [%rd1], %r1;",
            None,
            global,
            Ordering::Release,
            Some(Scope::Sys),
        ),
        (
            "atom.shared.add.u32 %r1, [%r2], 1;",
            shared,
            shared,
            Ordering::Relaxed,
            Some(Scope::Gpu),
        ),
        (
            "atom.acq_rel.cta.global.add.u32 %r1, [%rd1], 1;",
            global,
            global,
            Ordering::AcqRel,
            Some(Scope::Cta),
        ),
    ] {
        let effects = effects(text);
        assert_eq!((effects.reads, effects.writes), (reads, writes), "{text}");
        assert_eq!((effects.ordering, effects.scope), (ordering, scope), "{text}");
        assert_eq!(effects.proxy, Proxy::Generic, "{text}");
        assert!(effects.faults, "{text}");
    }
}

#[test]
fn fences_and_barriers_say_whom_they_order() {
    for (text, ordering, scope, proxy) in [
        ("fence.sc.gpu;", Ordering::Sc, Some(Scope::Gpu), Proxy::Generic),
        (
            "fence.acq_rel.cluster;",
            Ordering::AcqRel,
            Some(Scope::Cluster),
            Proxy::Generic,
        ),
        ("membar.gl;", Ordering::Sc, Some(Scope::Gpu), Proxy::Generic),
        ("fence.proxy.async;", Ordering::AcqRel, None, Proxy::Async),
        ("bar.sync 0;", Ordering::AcqRel, Some(Scope::Cta), Proxy::Generic),
        ("bar.arrive 1, 64;", Ordering::Release, Some(Scope::Cta), Proxy::Generic),
        ("bar.warp.sync -1;", Ordering::AcqRel, Some(Scope::Cta), Proxy::Generic),
    ] {
        let effects = effects(text);
        assert_eq!(
            (effects.ordering, effects.scope, effects.proxy),
            (ordering, scope, proxy),
            "{text}"
        );
        assert_eq!(
            (effects.reads, effects.writes),
            (Some(Reach::Anything), Some(Reach::Anything)),
            "{text}"
        );
        assert!(effects.synchronises, "{text}");
    }
}

#[test]
fn images_go_by_ways_of_their_own() {
    let texture = effects("tex.1d.v4.u32.s32 {%r1, _, _, _}, [%rd1, {%r2}];");
    assert_eq!((texture.reads, texture.writes), (Some(Reach::Texels), None));
    assert_eq!((texture.proxy, texture.scope), (Proxy::Texture, None));
    let surface = effects("sust.b.1d.b32.trap [%rd1, {%r2}], {%r1};");
    assert_eq!((surface.reads, surface.writes), (None, Some(Reach::Texels)));
    assert_eq!(surface.proxy, Proxy::Surface);
}

/// Whether an operation whose result nobody reads stays.
#[test]
fn what_others_may_notice_stays() {
    let lines = |instruction: &str| {
        let text =
            format!(".reg .u32 %r<4>; .reg .u64 %rd<2>; .reg .pred %p; ld.param.u64 %rd1, [p]; {instruction} ret;");
        listing(&kernel(&text)).len() - 1
    };
    for gone in [
        "mov.u32 %r1, %clock;",
        "activemask.b32 %r1;",
        "ld.param.u32 %r1, [p];",
        "istypep.texref %p, %rd1;",
    ] {
        assert_eq!(lines(gone), 0, "{gone}");
    }
    for stays in [
        "ld.global.u32 %r1, [%rd1];",
        "atom.global.add.u32 %r1, [%rd1], 1;",
        "vote.sync.ballot.b32 %r1, %p, -1;",
        "nanosleep.u32 20;",
        "fence.acq_rel.gpu;",
        "stacksave.u64 %rd1;",
    ] {
        assert_eq!(lines(stays), 1, "{stays}");
    }
}
