//! Litmus tests of the asynchronous proxy, of mbarriers and of what goes on without its thread (PTX ISA, Proxies; Causality
//! order; Asynchronous operations). Role 0 owns the variables and the mbarrier `%m`, whose phase ends with one arrival; of a
//! cluster it is the block of rank 0. `%g` are four words of global memory that hold 0, `%h` four that hold 1, `%o` four of
//! the role's own shared memory. `LOOK(r)` looks at the barrier a few times: `r` is whether the phase was over.

use super::{A, B, C, Litmus, X};

/// One role looks whether the phase is over.
pub const LOOK: &str = "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %q, [%m], 0;
    @!%q mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %q, [%m], 0;
    @!%q mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %q, [%m], 0;";
/// One role waits until it is.
pub const WAIT: &str =
    "{ again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [%m], 0; @!%q bra again; }";

pub const TESTS: &[Litmus] = &[
    Litmus {
        name: "bulk_copy_seen_through_its_barrier",
        threads: &[
            "LOOK selp.u32 %a, 1, 0, %q; ld.weak.M.u32 %b, [%x];",
            "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%m], 16;
             cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%x], [%h], 16, [%m];",
        ],
        axiom: "Causality: a phase's end releases the writes that it counts",
        forbidden: |o| o[A] == 1 && o[B] == 0,
    },
    Litmus {
        name: "bulk_copy_expected_later",
        threads: &[
            "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%m], 16;
             LOOK selp.u32 %a, 1, 0, %q; ld.weak.M.u32 %b, [%x+12];",
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%x], [%h], 16, [%m];",
        ],
        axiom: "Causality: a phase's end releases the writes that it counts",
        forbidden: |o| o[A] == 1 && o[B] == 0,
    },
    Litmus {
        name: "bulk_copy_handed_on",
        threads: &[
            "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%m], 16;
             cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%x], [%h], 16, [%m];
             WAIT st.release.S.M.u32 [%y], 1;",
            "ld.acquire.S.M.u32 %a, [%y]; ld.weak.M.u32 %b, [%x];",
        ],
        axiom: "Causality: what was seen through a barrier is released with what comes behind it",
        forbidden: |o| o[A] == 1 && o[B] == 0,
    },
    Litmus {
        name: "bulk_copy_then_write",
        threads: &[
            "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%m], 16;
             cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%x], [%h], 16, [%m];
             WAIT st.weak.M.u32 [%x], 2; st.release.S.M.u32 [%y], 1;",
            "ld.acquire.S.M.u32 %a, [%y]; ld.weak.M.u32 %b, [%x];",
        ],
        axiom: "Coherence: a write behind the wait comes after those of the copy",
        forbidden: |o| o[X] != 2 || (o[A] == 1 && o[B] != 2),
    },
    Litmus {
        name: "bulk_copy_after_reads",
        threads: &[
            "WAIT fence.proxy.async;
             cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%x], [%h], 16, [%m];
             mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%m], 16;
             { again: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %q, [%m], 1; @!%q bra again; }
             st.release.S.M.u32 [%y], 1;",
            "ld.weak.M.u32 %a, [%x]; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%m];
             ld.acquire.S.M.u32 %b, [%y]; ld.weak.M.u32 %c, [%x];",
        ],
        axiom: "Causality: a read released to who then copies does not see the copy",
        forbidden: |o| o[A] == 1 || (o[B] == 1 && o[C] == 0),
    },
    Litmus {
        name: "write_fenced_then_bulk_store",
        threads: &[
            "ld.acquire.S.M.u32 %a, [%y];
             cp.async.bulk.global.shared::cta.bulk_group [%g], [%x], 16; cp.async.bulk.commit_group;
             cp.async.bulk.wait_group 0; ld.weak.global.u32 %b, [%g+12];",
            "st.weak.M.v4.u32 [%x], {1, 1, 1, 1}; fence.proxy.async; st.release.S.M.u32 [%y], 1;",
        ],
        axiom: "Causality: a proxy fence of the writer's orders its writes before the copy's reads",
        forbidden: |o| o[A] == 1 && o[B] == 0,
    },
    Litmus {
        name: "write_then_fenced_bulk_store",
        threads: &[
            "ld.acquire.S.M.u32 %a, [%y]; fence.proxy.async;
             cp.async.bulk.global.shared::cta.bulk_group [%g], [%x], 16; cp.async.bulk.commit_group;
             cp.async.bulk.wait_group 0; ld.weak.global.u32 %b, [%g];",
            "st.weak.M.v4.u32 [%x], {1, 1, 1, 1}; st.release.S.M.u32 [%y], 1;",
        ],
        axiom: "Causality: a proxy fence of the copier's orders what it has acquired before the copy's reads",
        forbidden: |o| o[A] == 1 && o[B] == 0,
    },
    Litmus {
        name: "bulk_store_handed_on",
        threads: &[
            "st.weak.M.v4.u32 [%x], {1, 1, 1, 1}; fence.proxy.async;
             cp.async.bulk.global.shared::cta.bulk_group [%g], [%x], 16; cp.async.bulk.commit_group;
             cp.async.bulk.wait_group 0; st.release.S.M.u32 [%y], 1;",
            "ld.acquire.S.M.u32 %a, [%y]; ld.weak.global.u32 %b, [%g];",
        ],
        axiom: "Causality: a wait for the group makes its writes visible, and the release behind it",
        forbidden: |o| o[A] == 1 && o[B] == 0,
    },
    Litmus {
        name: "bulk_store_has_read",
        threads: &[
            "st.weak.M.v4.u32 [%x], {1, 1, 1, 1}; fence.proxy.async;
             cp.async.bulk.global.shared::cta.bulk_group [%g], [%x], 16; cp.async.bulk.commit_group;
             cp.async.bulk.wait_group.read 0; st.release.S.M.u32 [%y], 1;
             cp.async.bulk.wait_group 0; ld.weak.global.u32 %a, [%g];",
            "ld.acquire.S.M.u32 %b, [%y]; setp.eq.u32 %q, %b, 1; @%q st.weak.M.u32 [%x], 2;",
        ],
        axiom: "Causality: behind wait_group.read the source may be written",
        forbidden: |o| o[A] != 1,
    },
    Litmus {
        name: "bulk_copy_between_blocks",
        threads: &[
            "LOOK selp.u32 %a, 1, 0, %q; ld.weak.M.u32 %b, [%x+8];",
            "st.weak.shared::cta.v4.u32 [%o], {1, 1, 1, 1}; fence.proxy.async;
             mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%m], 16;
             cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%x], [%o], 16, [%m];",
        ],
        axiom: "Causality: through a proxy fence and a barrier",
        forbidden: |o| o[A] == 1 && o[B] == 0,
    },
    Litmus {
        name: "asynchronous_store",
        threads: &[
            "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%m], 4;
             LOOK selp.u32 %a, 1, 0, %q; ld.weak.M.u32 %b, [%x];",
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%x], 1, [%m];",
        ],
        axiom: "Causality: a phase's end releases the stores that it counts",
        forbidden: |o| o[A] == 1 && o[B] == 0,
    },
    Litmus {
        name: "asynchronous_reductions",
        threads: &[
            "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%m], 8;
             LOOK selp.u32 %a, 1, 0, %q; ld.weak.M.u32 %b, [%x];",
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%x], 1, [%m];",
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%x], 1, [%m];",
        ],
        axiom: "Atomicity, Causality",
        forbidden: |o| (o[A] == 1 && o[B] != 2) || o[X] != 2,
    },
    Litmus {
        name: "message_passing_arrival",
        threads: &[
            "LOOK selp.u32 %a, 1, 0, %q; ld.weak.M.u32 %b, [%x];",
            "st.weak.M.u32 [%x], 1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%m];",
        ],
        axiom: "Causality",
        forbidden: |o| o[A] == 1 && o[B] == 0,
    },
    Litmus {
        name: "message_passing_relaxed_arrival",
        threads: &[
            "mbarrier.test_wait.parity.relaxed.cluster.shared::cta.b64 %q, [%m], 0;
             fence.acq_rel.cluster; selp.u32 %a, 1, 0, %q; ld.relaxed.cluster.M.u32 %b, [%x];",
            "st.relaxed.cluster.M.u32 [%x], 1; fence.acq_rel.cluster;
             mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%m];",
        ],
        axiom: "Causality",
        forbidden: |o| o[A] == 1 && o[B] == 0,
    },
    Litmus {
        name: "arrival_in_three_hands",
        threads: &[
            "LOOK selp.u32 %a, 1, 0, %q; ld.weak.M.u32 %b, [%x];",
            "st.weak.M.u32 [%x], 1; st.release.S.M.u32 [%y], 1;",
            "ld.acquire.S.M.u32 %c, [%y]; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%m];",
        ],
        axiom: "Causality",
        forbidden: |o| o[C] == 1 && o[A] == 1 && o[B] == 0,
    },
];
