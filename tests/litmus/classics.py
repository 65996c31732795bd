"""Programs written by hand: the classic litmus tests, in scopes, strengths and places, and the idioms of CUDA programs.

Each says what is known of it beforehand, by the rules of the PTX ISA: `free`, `racy`, or `benign`, which is racy unless forgiven
(model.py says what is forgiven). The model has to agree before the checker is asked. In `grid`, where nothing is said, the model
alone decides.
"""

import itertools

from programs import program

# Two threads, from near to far.
WARP = ("0.0.0", "0.0.1")
BLOCK = ("0.0.0", "0.1.0")
GPU = ("0.0.0", "1.0.0")


def pair(name, expect, places, first, second, **options):
    return program(name, f"{places[0]}: {first}", f"{places[1]}: {second}", expect=expect, **options)


def three(name, expect, first, second, third, places=("0.0.0", "1.0.0", "2.0.0"), **options):
    return program(name, *(f"{place}: {body}" for place, body in zip(places, (first, second, third))), expect=expect, **options)


def everywhere(name, expect, first, second):
    """The same in one warp, in one block and in two blocks, with the data D in global memory; in one block also in shared memory."""
    ways = ("warp", WARP, "d"), ("block", BLOCK, "d"), ("gpu", GPU, "d"), ("shared", BLOCK, "d@0")
    return [pair(f"{name}, {where}", expect, places, first.replace("D", d), second.replace("D", d)) for where, places, d in ways]


MESSAGE_PASSING = [
    program_
    for name, expect, first, second in [
        ("no flag", "racy", "st D 1", "ld D"),
        ("two writes", "racy", "st D 1", "st D 2"),
        ("two reads", "free", "ld D", "ld D"),
        ("release, acquire", "free", "st D 1; st.release.gpu f 1", "wait.acquire.gpu f 1; ld D"),
        ("release, acquire once", "free", "st D 1; st.release.gpu f 1", "ld.acquire.gpu f; when 1; ld D"),
        ("release, acquire, not looked at", "racy", "st D 1; st.release.gpu f 1", "ld.acquire.gpu f; ld D"),
        ("write after read", "free", "ld D; st.release.gpu f 1", "wait.acquire.gpu f 1; st D 2"),
        ("write after write", "free", "st D 1; st.release.gpu f 1", "wait.acquire.gpu f 1; st D 2"),
        ("data after the release", "racy", "st.release.gpu f 1; st D 1", "wait.acquire.gpu f 1; ld D"),
        ("data before the acquire", "racy", "st D 1; st.release.gpu f 1", "ld D; wait.acquire.gpu f 1"),
        ("relaxed release", "racy", "st D 1; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld D"),
        ("relaxed acquire", "benign", "st D 1; st.release.gpu f 1", "wait.relaxed.gpu f 1; ld D"),
        ("both relaxed", "racy", "st D 1; st.relaxed.gpu f 1", "wait.relaxed.gpu f 1; ld D"),
        ("volatile alone", "racy", "st D 1; st.volatile f 1", "wait.volatile f 1; ld D"),
        ("volatile with fences", "free", "st D 1; fence.acq_rel.gpu; st.volatile f 1", "wait.volatile f 1; fence.acq_rel.gpu; ld D"),
        ("fences", "free", "st D 1; fence.acq_rel.gpu; st.relaxed.gpu f 1", "wait.relaxed.gpu f 1; fence.acq_rel.gpu; ld D"),
        ("sc fences", "free", "st D 1; fence.sc.gpu; st.relaxed.gpu f 1", "wait.relaxed.gpu f 1; fence.sc.gpu; ld D"),
        ("half fences", "free", "st D 1; fence.release.gpu; st.relaxed.gpu f 1", "wait.relaxed.gpu f 1; fence.acquire.gpu; ld D"),
        ("half fences the wrong way", "racy", "st D 1; fence.acquire.gpu; st.relaxed.gpu f 1", "wait.relaxed.gpu f 1; fence.acquire.gpu; ld D"),
        ("fence, acquire", "free", "st D 1; fence.acq_rel.gpu; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld D"),
        ("release, fence", "free", "st D 1; st.release.gpu f 1", "wait.relaxed.gpu f 1; fence.acq_rel.gpu; ld D"),
        ("fence before the data", "racy", "fence.acq_rel.gpu; st D 1; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld D"),
        ("fence after the flag", "racy", "st D 1; st.relaxed.gpu f 1; fence.acq_rel.gpu", "wait.acquire.gpu f 1; ld D"),
        ("fence before the wait", "benign", "st D 1; st.release.gpu f 1", "fence.acq_rel.gpu; wait.relaxed.gpu f 1; ld D"),
        ("fence after the data", "benign", "st D 1; st.release.gpu f 1", "wait.relaxed.gpu f 1; ld D; fence.acq_rel.gpu"),
        ("fence, then weak flag", "racy", "st D 1; fence.acq_rel.gpu; st f 1", "wait.acquire.gpu f 1; ld D"),
        ("weak read of the flag", "racy", "st D 1; st.release.gpu f 1", "ld f; when 1; fence.acq_rel.gpu; ld D"),
        ("another location released", "racy", "st D 1; st.release.gpu g 1; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld D"),
        ("another location acquired", "benign", "st D 1; st.release.gpu f 1", "wait.relaxed.gpu f 1; ld.acquire.gpu g; ld D"),
        ("store after the release", "free", "st D 1; st.release.gpu f 1; st.relaxed.gpu f 2", "wait.acquire.gpu f 2; ld D"),
        ("store after the release, data between", "racy", "st.release.gpu f 1; st D 1; st.relaxed.gpu f 2", "wait.acquire.gpu f 2; ld D"),
        ("acquire after the wait", "free", "st D 1; st.release.gpu f 1", "wait.relaxed.gpu f 1; ld.acquire.gpu f; ld D"),
        ("fence, two flags", "free", "st D 1; fence.acq_rel.gpu; st.relaxed.gpu g 1; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld D"),
        ("atomics", "free", "st D 1; atom.release.gpu.exch f 1", "poll.acquire.gpu f 1; ld D"),
        ("relaxed atomics", "racy", "st D 1; atom.relaxed.gpu.exch f 1", "poll.relaxed.gpu f 1; ld D"),
        ("relaxed atomics with fences", "free", "st D 1; fence.acq_rel.gpu; atom.relaxed.gpu.add f 1", "poll.relaxed.gpu f 1; fence.acq_rel.gpu; ld D"),
        ("acquire on the wrong side", "racy", "st D 1; atom.acquire.gpu.exch f 1", "poll.acquire.gpu f 1; ld D"),
        ("release on the wrong side", "benign", "st D 1; atom.release.gpu.exch f 1", "poll.release.gpu f 1; ld D"),
        ("acq_rel on both", "free", "st D 1; atom.acq_rel.gpu.add f 1", "poll.acq_rel.gpu f 1; ld D"),
        ("reduction", "free", "st D 1; red.release.gpu.add f 1", "wait.acquire.gpu f 1; ld D"),
        ("reduction after a fence", "free", "st D 1; fence.acq_rel.gpu; red.relaxed.gpu.add f 1", "wait.acquire.gpu f 1; ld D"),
        ("relaxed reduction", "racy", "st D 1; red.relaxed.gpu.add f 1", "wait.acquire.gpu f 1; ld D"),
        ("token by cas", "free", "st D 1; st.release.gpu f 1", "atom.acquire.gpu.cas f 1 2; when 1; ld D"),
        ("token by relaxed cas", "benign", "st D 1; st.release.gpu f 1", "atom.relaxed.gpu.cas f 1 2; when 1; ld D"),
        ("flag written first by a weak store", "racy", "st f 0; st D 1; st.release.gpu f 1", "wait.acquire.gpu f 1; ld D"),
        ("there and back", "free", "st D 1; st.release.gpu f 1; wait.acquire.gpu g 1; st D 2", "wait.acquire.gpu f 1; ld D; st.release.gpu g 1"),
        ("there, back relaxed", "racy", "st D 1; st.release.gpu f 1; wait.acquire.gpu g 1; st D 2", "wait.acquire.gpu f 1; ld D; st.relaxed.gpu g 1"),
        ("there, back not acquired", "benign", "st D 1; st.release.gpu f 1; wait.relaxed.gpu g 1; st D 2", "wait.acquire.gpu f 1; ld D; st.release.gpu g 1"),
        ("same value twice", "benign", "st D 1", "st D 1"),
    ]
    for program_ in everywhere(f"MP, {name}", expect, first, second)
]

SCOPES = [
    pair("scopes, cta in a block", "free", BLOCK, "st d 1; st.release.cta f 1", "wait.acquire.cta f 1; ld d"),
    pair("scopes, cta in two blocks", "racy", GPU, "st d 1; st.release.cta f 1", "wait.acquire.cta f 1; ld d"),
    pair("scopes, release of cta only", "racy", GPU, "st d 1; st.release.cta f 1", "wait.acquire.gpu f 1; ld d"),
    pair("scopes, acquire of cta only", "racy", GPU, "st d 1; st.release.gpu f 1", "wait.acquire.cta f 1; ld d"),
    pair("scopes, cta and gpu in a block", "free", BLOCK, "st d 1; st.release.cta f 1", "wait.acquire.gpu f 1; ld d"),
    pair("scopes, gpu and sys", "free", GPU, "st d 1; st.release.gpu f 1", "wait.acquire.sys f 1; ld d"),
    pair("scopes, fence of cta", "racy", GPU, "st d 1; fence.acq_rel.cta; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld d"),
    pair("scopes, acquire fence of cta", "benign", GPU, "st d 1; st.release.gpu f 1", "wait.relaxed.gpu f 1; fence.acq_rel.cta; ld d"),
    pair("scopes, flag of cta under a fence of gpu", "racy", GPU, "st d 1; fence.acq_rel.gpu; st.relaxed.cta f 1", "wait.acquire.gpu f 1; ld d"),
    pair("scopes, volatile is of the system", "free", GPU, "st d 1; fence.acq_rel.sys; st.volatile f 1", "wait.volatile f 1; fence.acq_rel.gpu; ld d"),
    pair("scopes, flag alone", "racy", GPU, "st.relaxed.cta f 1", "ld.relaxed.gpu f"),
    pair("scopes, flag alone in a block", "free", BLOCK, "st.relaxed.cta f 1", "ld.relaxed.gpu f"),
    pair("scopes, cluster without clusters", "racy", GPU, "st d 1; st.release.cluster f 1", "wait.acquire.cluster f 1; ld d"),
    pair("scopes, cluster", "free", GPU, "st d 1; st.release.cluster f 1", "wait.acquire.cluster f 1; ld d", cluster=True),
    pair("scopes, cta in a cluster", "racy", GPU, "st d 1; st.release.cta f 1", "wait.acquire.cluster f 1; ld d", cluster=True),
    pair("scopes, two clusters", "racy", ("0.0.0", "2.0.0"), "st d 1; st.release.cluster f 1", "wait.acquire.cluster f 1; ld d", cluster=True),
    pair("scopes, gpu for two clusters", "free", ("0.0.0", "2.0.0"), "st d 1; st.release.gpu f 1", "wait.acquire.gpu f 1; ld d", cluster=True),
    pair("scopes, cluster fence", "free", GPU, "st d 1; fence.acq_rel.cluster; st.relaxed.gpu f 1", "wait.acquire.cluster f 1; ld d", cluster=True),
]

STRENGTHS = [
    pair("SB, relaxed", "free", GPU, "st.relaxed.gpu x 1; ld.relaxed.gpu y", "st.relaxed.gpu y 1; ld.relaxed.gpu x"),
    pair("SB, weak", "racy", GPU, "st x 1; ld y", "st y 1; ld x"),
    # Figure 6 of the paper that literature.py names: the outcome is forbidden, and there is a race all the same.
    pair("SB, weak with sc fences", "racy", GPU, "st x 1; fence.sc.gpu; ld y", "st y 1; fence.sc.gpu; ld x"),
    pair("LB, relaxed", "free", GPU, "ld.relaxed.gpu x; st.relaxed.gpu y 1", "ld.relaxed.gpu y; st.relaxed.gpu x 1"),
    pair("LB, weak", "racy", GPU, "ld x; st y 1", "ld y; st x 1"),
    pair("2+2W, relaxed", "free", BLOCK, "st.relaxed.cta x 1; st.relaxed.cta y 2", "st.relaxed.cta y 1; st.relaxed.cta x 2"),
    pair("S", "free", GPU, "st x 2; st.release.gpu y 1", "wait.acquire.gpu y 1; st x 1"),
    pair("S, relaxed", "racy", GPU, "st x 2; st.release.gpu y 1", "ld.relaxed.gpu y; st x 1"),
    pair("R", "racy", GPU, "st x 1; st.release.gpu y 1", "st.relaxed.gpu y 2; ld x"),
    # Who reads what the atomic has written has observed the weak store before it, too.
    pair("own store, own atomic", "racy", BLOCK, "st x 16; atom.relaxed.gpu.add x 17", "ld.volatile x; atom.relaxed.gpu.add x 15"),
    pair("own store, own atomic, then a store", "racy", GPU, "st x 16; atom.relaxed.gpu.add x 17", "ld.volatile x; st.relaxed.gpu x 15"),
    # Who observes an atomic has not observed what its thread has read before.
    pair("own read, own atomic", "racy", BLOCK, "ld.relaxed.gpu x; atom.relaxed.gpu.add x 16", "atom.relaxed.gpu.add x 13; st x 14"),
    # An atomic of a scope too small that has written nothing: the store is read all the same.
    three("failed compare-and-swap in between", "racy", "st.relaxed.cta x 15", "atom.relaxed.gpu.cas x 0 18", "ld.volatile x; ld x", ("0.0.0", "1.0.0", "0.1.0")),
    pair("weak beside relaxed", "racy", GPU, "st.relaxed.gpu x 1", "ld x"),
    pair("volatile beside weak", "racy", WARP, "st.volatile x 1", "ld x"),
    pair("volatile beside volatile", "free", GPU, "st.volatile x 1", "ld.volatile x"),
    pair("volatile beside relaxed", "free", GPU, "st.volatile x 1", "ld.relaxed.gpu x"),
    pair("volatile beside relaxed of cta", "racy", GPU, "st.volatile x 1", "ld.relaxed.cta x"),
    pair("atomic beside atomic", "free", GPU, "atom.relaxed.gpu.add x 1", "atom.relaxed.gpu.add x 1"),
    pair("atomic beside weak read", "racy", WARP, "atom.relaxed.gpu.add x 1", "ld x"),
    pair("atomic beside weak write", "racy", BLOCK, "atom.relaxed.gpu.add x 1", "st x 5"),
    pair("atomic beside volatile", "free", GPU, "atom.relaxed.gpu.add x 1", "st.volatile x 5"),
    pair("reduction beside weak read", "racy", GPU, "red.relaxed.gpu.add x 1", "ld x"),
    pair("reduction beside relaxed read", "free", GPU, "red.relaxed.gpu.add x 1", "ld.relaxed.gpu x"),
    # ISA 8.10.3, the second litmus test.
    pair("atomics of cta and gpu in two blocks", "racy", GPU, "atom.relaxed.cta.add x 1", "atom.relaxed.gpu.add x 1"),
    pair("atomics of cta in two blocks", "racy", GPU, "atom.relaxed.cta.add x 1", "atom.relaxed.cta.add x 1"),
    pair("atomics of cta in a block", "free", BLOCK, "atom.relaxed.cta.add x@0 1", "atom.relaxed.cta.add x@0 1"),
    # By ISA 8.4 an atomic operation is a write if it results in one; for the checker it is always one.
    pair("failing cas beside weak read", "racy", GPU, "atom.relaxed.gpu.cas x 7 8", "ld x"),
    pair("cas beside weak read", "racy", GPU, "atom.relaxed.gpu.cas x 0 8", "ld x"),
    # Causality order by observation, 8.9.5: what has been seen by a morally strong read comes before what follows the read.
    pair("CoRW, seen", "free", GPU, "st.relaxed.gpu x 1", "wait.relaxed.gpu x 1; st x 2"),
    pair("CoRR, seen", "free", GPU, "st.relaxed.gpu x 1", "wait.relaxed.gpu x 1; ld x"),
    pair("CoRR, not waited for", "racy", GPU, "st.relaxed.gpu x 1", "ld.relaxed.gpu x; ld x"),
    pair("CoRW, seen in another scope", "racy", GPU, "st.relaxed.cta x 1", "wait.relaxed.gpu x 1; st x 2"),
    # What a thread does to a word later, more strongly, does not take back what it did before.
    pair("weak read behind an atomic", "racy", GPU, "ld x; atom.relaxed.gpu.add x 1; st.relaxed.gpu g 1", "wait.relaxed.gpu g 1; st.relaxed.gpu x 7"),
    pair("weak read behind a relaxed one", "racy", GPU, "ld x; ld.relaxed.gpu x; st.relaxed.gpu g 1", "wait.relaxed.gpu g 1; st.relaxed.gpu x 7"),
    pair("weak write behind a relaxed one", "racy", GPU, "st x 1; st.relaxed.gpu x 2; st.relaxed.gpu g 1", "wait.relaxed.gpu g 1; ld.relaxed.gpu x"),
    pair("atomic of cta behind one of gpu", "racy", GPU, "atom.relaxed.cta.add x 1; atom.relaxed.gpu.add x 1; st.relaxed.gpu g 1",
         "wait.relaxed.gpu g 1; ld.relaxed.gpu x"),
    # Many have read: who races with the write is one of them and not another.
    three("readers, one of them elsewhere", "racy", "ld d", "ld d; bar", "ld d; bar; st d 1", ("1.0.0", "0.0.1", "0.0.2")),
    three("readers, one of them too late", "racy", "ld d; bar", "bar; ld d", "ld d; bar; st d 1", ("0.0.0", "0.1.0", "0.2.0")),
    pair("exchanges behind reads", "racy", BLOCK, "ld.volatile x; atom.acq_rel.gpu.exch x 1", "ld x; atom.acq_rel.gpu.exch x 2"),
    program("IRIW", "0.0.0: st.relaxed.gpu x 1", "1.0.0: st.relaxed.gpu y 1", "2.0.0: ld.acquire.gpu x; ld.relaxed.gpu y",
            "3.0.0: ld.acquire.gpu y; ld.relaxed.gpu x", expect="free"),
    program("IRIW, one weak read", "0.0.0: st.relaxed.gpu x 1", "1.0.0: st.relaxed.gpu y 1", "2.0.0: ld.acquire.gpu x; ld.relaxed.gpu y",
            "3.0.0: ld.acquire.gpu y; ld x", expect="racy"),
]  # fmt: skip


NEAR = ("0.0.0", "0.1.0", "1.0.0")  # two in a block, one outside

CUMULATIVITY = [
    three("ISA2", "free", "st d 1; st.release.gpu f 1", "wait.acquire.gpu f 1; st.release.gpu g 1", "wait.acquire.gpu g 1; ld d"),
    three("ISA2, relaxed relay", "racy", "st d 1; st.release.gpu f 1", "wait.relaxed.gpu f 1; st.relaxed.gpu g 1", "wait.acquire.gpu g 1; ld d"),
    three("ISA2, relay does not release", "racy", "st d 1; st.release.gpu f 1", "wait.acquire.gpu f 1; st.relaxed.gpu g 1", "wait.acquire.gpu g 1; ld d"),
    three("ISA2, relay does not acquire", "benign", "st d 1; st.release.gpu f 1", "wait.relaxed.gpu f 1; st.release.gpu g 1", "wait.acquire.gpu g 1; ld d"),
    three("ISA2, one fence in the relay", "free", "st d 1; st.release.gpu f 1", "wait.relaxed.gpu f 1; fence.acq_rel.gpu; st.relaxed.gpu g 1",
          "wait.acquire.gpu g 1; ld d"),
    three("ISA2, fence too early in the relay", "racy", "st d 1; st.release.gpu f 1", "fence.acq_rel.gpu; wait.acquire.gpu f 1; st.relaxed.gpu g 1",
          "wait.acquire.gpu g 1; ld d"),
    three("ISA2, narrow then wide", "free", "st d 1; st.release.cta f 1", "wait.acquire.cta f 1; st.release.gpu g 1", "wait.acquire.gpu g 1; ld d", NEAR),
    three("ISA2, wide then narrow", "free", "st d 1; st.release.gpu f 1", "wait.acquire.gpu f 1; st.release.cta g 1", "wait.acquire.cta g 1; ld d",
          ("0.0.0", "1.0.0", "1.1.0")),
    three("ISA2, narrow then narrow", "racy", "st d 1; st.release.cta f 1", "wait.acquire.cta f 1; st.release.cta g 1", "wait.acquire.cta g 1; ld d", NEAR),
    three("ISA2, across the block and back", "free", "st d@0 1; st.release.gpu f 1", "wait.acquire.gpu f 1; st.release.gpu g 1", "wait.acquire.gpu g 1; ld d@0",
          ("0.0.0", "1.0.0", "0.1.0")),
    three("WRC", "racy", "st x 1; st.release.gpu f 1", "wait.acquire.gpu f 1; ld x; st.relaxed.gpu y 1", "wait.acquire.gpu y 1; ld x"),
    # What the second has observed, the third knows, though the first has released nothing: 8.9.5.
    three("WRC, observed", "free", "st.relaxed.gpu x 1", "wait.relaxed.gpu x 1; st.release.gpu y 1", "wait.acquire.gpu y 1; ld x"),
    three("WRC, observed, then written", "free", "st.relaxed.gpu x 1", "wait.relaxed.gpu x 1; st.release.gpu y 1", "wait.acquire.gpu y 1; st x 5"),
    three("WRC, more than observed", "racy", "st d 1; st.relaxed.gpu x 1", "wait.relaxed.gpu x 1; st.release.gpu y 1", "wait.acquire.gpu y 1; ld d"),
    three("release sequence of an atomic", "free", "st d 1; atom.release.gpu.add f 1", "atom.relaxed.gpu.add f 1", "wait.acquire.gpu f 2; ld d"),
    three("release sequence of a reduction", "free", "st d 1; atom.release.gpu.add f 1", "red.relaxed.gpu.add f 1", "wait.acquire.gpu f 2; ld d"),
    three("release sequence, no release", "racy", "st d 1; atom.relaxed.gpu.add f 1", "atom.release.gpu.add f 1", "wait.acquire.gpu f 2; ld d"),
    three("release sequence, one of two seen", "racy", "st d 1; atom.release.gpu.add f 1", "atom.relaxed.gpu.add f 1", "wait.acquire.gpu f 1; ld d"),
    three("release sequence, narrow link", "racy", "st d 1; atom.release.gpu.add f 1", "atom.relaxed.cta.add f 1", "wait.acquire.gpu f 2; ld d"),
    three("release sequence broken by a store", "racy", "st d 1; st.release.gpu f 1", "wait.relaxed.gpu f 1; st.relaxed.gpu f 2", "wait.acquire.gpu f 2; ld d"),
    three("two producers", "free", "st d 1; red.release.gpu.add f 1", "st e 1; red.release.gpu.add f 1", "wait.acquire.gpu f 2; ld d; ld e"),
    three("two producers, one awaited", "racy", "st d 1; red.release.gpu.add f 1", "st e 1; red.release.gpu.add f 1", "wait.acquire.gpu f 1; ld d; ld e"),
    three("two producers, one relaxed", "racy", "st d 1; red.release.gpu.add f 1", "st e 1; red.relaxed.gpu.add f 1", "wait.acquire.gpu f 2; ld d; ld e"),
    # By 8.8 a reduction's read forms no acquire pattern; for the checker it does, where the other reduction came first.
    three("what a reduction reads", "racy", "st d 1; red.release.gpu.add f 1", "red.relaxed.gpu.add f 1; fence.acq_rel.gpu; wait.relaxed.gpu g 1; ld d",
          "wait.relaxed.gpu f 2; st.relaxed.gpu g 1"),
    three("two consumers", "free", "st d 1; st.release.gpu f 1", "wait.acquire.gpu f 1; ld d", "wait.acquire.gpu f 1; ld d"),
    three("two consumers, one writes", "racy", "st d 1; st.release.gpu f 1", "wait.acquire.gpu f 1; ld d", "wait.acquire.gpu f 1; st d 2"),
    three("two weak writes, one of them early", "racy", "st d 1; st.release.gpu f 1", "wait.acquire.gpu f 1; st d 2; st.release.gpu f 2",
          "ld d; wait.acquire.gpu f 2"),
    # Each of the two writes races with nothing the other one hides.
    three("a write behind another", "racy", "st.relaxed.gpu x 1; st.release.gpu f 1", "wait.acquire.gpu f 1; st.relaxed.gpu x 2", "wait.relaxed.gpu x 2; ld x"),
]  # fmt: skip

# One that fails writes nothing: nobody finds it, and it releases nothing.
SWAPS = [
    pair("failed cas, then an atomic and a store", "racy", GPU, "atom.relaxed.gpu.cas x 7 8", "atom.acquire.gpu.exch x 1; st x 2"),
    pair("failed cas of the block, then an atomic and a store", "racy", BLOCK, "atom.acquire.cta.cas x 7 8", "atom.acquire.cta.exch x 1; st x 2"),
    pair("cas, then an atomic and a store", "racy", GPU, "atom.acquire.gpu.cas x 0 8", "atom.acquire.gpu.exch x 1; st x 2"),
    three("store, failed cas, then an atomic and a store", "racy", "st.relaxed.gpu x 1", "atom.acquire.gpu.cas x 7 8", "atom.acquire.gpu.add x 1; st x 2"),
    three("failed cas once more", "racy", "atom.acquire.gpu.cas x 7 8; atom.acquire.gpu.cas x 0 9", "atom.acquire.gpu.exch x 1; st x 2", "atom.acquire.gpu.cas x 5 6"),
    pair("failed cas for a release", "racy", GPU, "st d 1; atom.release.gpu.cas f 7 8", "atom.acquire.gpu.add f 1; ld d"),
    pair("failed cas behind a fence", "racy", GPU, "st d 1; fence.acq_rel.gpu; atom.relaxed.gpu.cas f 7 8", "atom.acquire.gpu.add f 1; ld d"),
    pair("cas for a release", "free", GPU, "st d 1; atom.release.gpu.cas f 0 8", "ld.acquire.gpu f; when 8; ld d"),
    three("release, failed cas", "free", "st d 1; st.release.gpu f 1", "atom.acq_rel.gpu.cas f 7 8", "wait.acquire.gpu f 1; ld d"),
    three("release, cas", "free", "st d 1; st.release.gpu f 1", "atom.relaxed.gpu.cas f 1 2", "ld.acquire.gpu f; when 2; ld d"),
    three("release, failed cas in the block", "racy", "st d 1; st.release.gpu f 1", "ld.relaxed.gpu f; when 1; atom.relaxed.cta.cas f 7 8",
          "ld.acquire.gpu f; when 1; st d 2; st f 3", ("1.0.0", "0.0.0", "0.1.0")),
]  # fmt: skip

# What an atomic has found it passes on if it and the write are strong for each other, and to those for whom it is strong itself.
NARROW_ATOMICS = [
    three("release, then an atomic of another block", "racy", "st d 1; st.release.gpu f 1", "wait.relaxed.gpu f 1; atom.relaxed.cta.add f 1",
          "ld.acquire.gpu f; when 2; ld d", ("1.0.0", "0.0.0", "0.1.0")),
    three("release, then a swap of another block", "racy", "st d 1; st.release.gpu f 1", "wait.relaxed.gpu f 1; atom.relaxed.cta.cas f 1 2",
          "ld.acquire.gpu f; when 2; ld d", ("1.0.0", "0.0.0", "0.1.0")),
    three("release, then an atomic of the block", "free", "st d 1; st.release.gpu f 1", "wait.relaxed.gpu f 1; atom.relaxed.cta.add f 1",
          "ld.acquire.gpu f; when 2; ld d", ("0.2.0", "0.0.0", "0.1.0")),
    three("store, then an atomic of another block", "racy", "st.relaxed.gpu x 1", "wait.relaxed.gpu x 1; atom.relaxed.cta.add x 1",
          "ld.relaxed.gpu x; when 2; ld x", ("1.0.0", "0.0.0", "0.1.0")),
    three("store, then an atomic of the block", "free", "st.relaxed.gpu x 1", "wait.relaxed.gpu x 1; atom.relaxed.cta.add x 1",
          "ld.relaxed.gpu x; when 2; ld x", ("0.2.0", "0.0.0", "0.1.0")),
    three("atomics of a block and of all", "free", "st d 1; atom.release.cta.add f 1", "wait.relaxed.cta f 1; atom.relaxed.gpu.add f 1",
          "ld.acquire.cta f; when 2; ld d", ("0.2.0", "0.0.0", "0.1.0")),
    # Nobody looks at what a reduction finds, so nobody takes it for an acquire.
    pair("reduction for an acquire", "racy", GPU, "ld d; red.release.gpu.add f 1", "red.relaxed.gpu.add f 1; st d 1"),
    pair("reduction, then a fence", "racy", GPU, "ld d; red.release.gpu.add f 1", "red.relaxed.gpu.add f 1; fence.acquire.gpu; st d 1"),
    pair("reduction, then a read", "benign", GPU, "st d 1; red.release.gpu.add f 1", "red.relaxed.gpu.add f 1; ld.relaxed.gpu f; when 2; ld d"),
]  # fmt: skip

FENCE_SC = [
    # Only the second read lets the first thread go on, so its fence came first: ordered by the Fence-SC order, which is none for the
    # checker, and by nothing else.
    pair("fence.sc alone orders", "benign", GPU, "st d 1; fence.sc.gpu; ld.relaxed.gpu y; when 0; st.relaxed.gpu z 1",
         "st.relaxed.gpu y 1; fence.sc.gpu; ld.relaxed.gpu z; when 1; ld d"),
    pair("fence.sc of cta orders no blocks", "racy", GPU, "st d 1; fence.sc.cta; ld.relaxed.gpu y; when 0; st.relaxed.gpu z 1",
         "st.relaxed.gpu y 1; fence.sc.cta; ld.relaxed.gpu z; when 1; ld d"),
    pair("fence.sc in an order that nobody knows", "racy", GPU, "st d 1; fence.sc.gpu", "fence.sc.gpu; ld d"),
    pair("Dekker", "free", GPU, "st.relaxed.gpu x 1; fence.sc.gpu; ld.relaxed.gpu y; when 0; st d 1",
         "st.relaxed.gpu y 1; fence.sc.gpu; ld.relaxed.gpu x; when 0; st d 2"),
]  # fmt: skip


def alike(name, expect, places, body, **options):
    """The same operations in all places: one piece of code, unless `{t}`, the thread's number, is in it."""
    return program(name, *(f"{place}: {body.replace('{t}', str(t))}" for t, place in enumerate(places)), expect=expect, **options)


LANES = ("0.0.0", "0.0.1", "0.0.2")

LOCKS = [
    alike("lock", "free", GPU, "lock.acquire.gpu m; ld d; st d t; st.release.gpu m 0"),
    alike("lock of three", "free", NEAR, "lock.acquire.gpu m; st d t; st.release.gpu m 0"),
    alike("lock, fences", "free", GPU, "lock.relaxed.gpu m; fence.acq_rel.gpu; ld d; st d t; fence.acq_rel.gpu; atom.relaxed.gpu.exch m 0"),
    alike("lock, no fence behind", "racy", GPU, "lock.relaxed.gpu m; fence.acq_rel.gpu; st d t; atom.relaxed.gpu.exch m 0"),
    alike("lock, no fence in front", "benign", GPU, "lock.relaxed.gpu m; st d t; fence.acq_rel.gpu; atom.relaxed.gpu.exch m 0"),
    alike("lock, relaxed unlock", "racy", GPU, "lock.acquire.gpu m; st d t; st.relaxed.gpu m 0"),
    alike("lock, weak unlock", "racy", GPU, "lock.acquire.gpu m; st d t; fence.acq_rel.gpu; st m 0"),
    alike("lock, volatile unlock", "free", GPU, "lock.acquire.gpu m; st d t; fence.acq_rel.gpu; st.volatile m 0"),
    alike("lock of cta in two blocks", "racy", GPU, "lock.acquire.cta m; st d t; st.release.cta m 0"),
    alike("lock of cta in a block", "free", BLOCK, "lock.acquire.cta m@0; ld d@0; st d@0 t; st.release.cta m@0 0"),
    alike("lock of lanes", "free", WARP, "lock.acquire.cta m@0; st d@0 t; atom.release.cta.exch m@0 0"),
    pair("two locks", "racy", GPU, "lock.acquire.gpu m; st d 1; st.release.gpu m 0", "lock.acquire.gpu n; st d 2; st.release.gpu n 0"),
    pair("lock, one without", "racy", GPU, "lock.acquire.gpu m; st d 1; st.release.gpu m 0", "st d 2"),
    pair("lock, data before", "racy", GPU, "lock.acquire.gpu m; st d 1; st.release.gpu m 0", "st d 2; lock.acquire.gpu m; st.release.gpu m 0"),
    alike("try lock", "free", GPU, "atom.acquire.gpu.cas m 0 1; when 0; st d t"),
    alike("try lock, given back", "free", GPU, "atom.acquire.gpu.cas m 0 1; when 0; st d t; st.release.gpu m 0"),
    alike("try lock, given back relaxed", "racy", GPU, "atom.acquire.gpu.cas m 0 1; when 0; st d t; st.relaxed.gpu m 0"),
]

COUNTERS = [
    alike("last of two", "free", GPU, "st d{t} 1; fence.acq_rel.gpu; atom.relaxed.gpu.add c 1; when 1; fence.acq_rel.gpu; ld d0; ld d1"),
    alike("last of two, acq_rel", "free", GPU, "st d{t} 1; atom.acq_rel.gpu.add c 1; when 1; ld d0; ld d1"),
    alike("last of three", "free", NEAR, "st d{t} 1; fence.acq_rel.gpu; atom.relaxed.gpu.add c 1; when 2; fence.acq_rel.gpu; ld d0; ld d1; ld d2"),
    alike("last of three, not the last",
          "racy", NEAR, "st d{t} 1; fence.acq_rel.gpu; atom.relaxed.gpu.add c 1; when 1; fence.acq_rel.gpu; ld d0; ld d1; ld d2"),
    alike("last of two, no fence after", "benign", GPU, "st d{t} 1; fence.acq_rel.gpu; atom.relaxed.gpu.add c 1; when 1; ld d0; ld d1"),
    alike("last of two, no fence before", "racy", GPU, "st d{t} 1; atom.relaxed.gpu.add c 1; when 1; fence.acq_rel.gpu; ld d0; ld d1"),
    alike("last of two, fence of cta", "racy", GPU, "st d{t} 1; fence.acq_rel.cta; atom.relaxed.gpu.add c 1; when 1; fence.acq_rel.gpu; ld d0; ld d1"),
    alike("last of two, acquire only", "racy", GPU, "st d{t} 1; atom.acquire.gpu.add c 1; when 1; ld d0; ld d1"),
    alike("last of two, release only", "benign", GPU, "st d{t} 1; atom.release.gpu.add c 1; when 1; ld d0; ld d1"),
    alike("all wait for all", "free", GPU, "st d{t} 1; fence.acq_rel.gpu; red.relaxed.gpu.add c 1; wait.volatile c 2; fence.acq_rel.gpu; ld d0; ld d1"),
    alike("all wait for all, acq_rel", "free", NEAR, "st d{t} 1; red.release.gpu.add c 1; wait.acquire.gpu c 3; ld d0; ld d1; ld d2"),
    alike("all wait for all, no fence", "racy", GPU, "st d{t} 1; red.relaxed.gpu.add c 1; wait.acquire.gpu c 2; ld d0; ld d1"),
    alike("all wait for one too few", "racy", NEAR, "st d{t} 1; red.release.gpu.add c 1; wait.acquire.gpu c 2; ld d0; ld d1; ld d2"),
    alike("tickets alone", "free", GPU, "atom.relaxed.gpu.add c 1"),
]

BLOCKS = ("0.0.0", "0.1.0", "1.0.0", "1.1.0")


def four(name, expect, *bodies):
    return program(name, *(f"{place}: {body}" for place, body in zip(BLOCKS, bodies)), expect=expect)


BARRIERS = [
    pair("bar", "free", BLOCK, "st d@0 1; bar", "bar; ld d@0"),
    pair("bar, in a warp", "free", WARP, "st d@0 1; bar", "bar; ld d@0"),
    pair("bar, read first", "free", BLOCK, "ld d@0; bar", "bar; st d@0 1"),
    pair("bar, too early", "racy", BLOCK, "bar; st d@0 1", "bar; ld d@0"),
    pair("bar, too late", "racy", BLOCK, "st d@0 1; bar", "ld d@0; bar"),
    pair("bar, twice", "free", BLOCK, "st d@0 1; bar; bar; st d@0 2", "bar; ld d@0; bar"),
    pair("bar, second missing", "racy", BLOCK, "st d@0 1; bar; st d@0 2", "bar; ld d@0"),
    pair("bar, in global memory", "free", BLOCK, "st d 1; bar", "bar; ld d"),
    pair("bar, in two blocks", "racy", GPU, "st d 1; bar", "bar; ld d"),
    three("bar of three", "racy", "st d@0 1; bar; bar", "bar; ld d@0; bar", "bar; st d@0 2; bar", ("0.0.0", "0.1.0", "0.2.0")),
    three("bar of three, in turn", "free", "st d@0 1; bar; bar", "bar; ld d@0; bar", "bar; bar; st d@0 2", ("0.0.0", "0.1.0", "0.2.0")),
    alike("bar, neighbours", "free", BLOCK, "st d{t}@0 1; bar; ld d0@0; ld d1@0"),
    pair("bar, orders no atomics of cta beyond", "racy", GPU, "atom.relaxed.cta.add x 1; bar", "bar; atom.relaxed.gpu.add x 1"),
    pair("arrive, sync", "free", BLOCK, "st d@0 1; bar.arrive 1 64", "bar.sync 1 64; ld d@0"),
    pair("arrive, sync, the wrong way", "racy", BLOCK, "bar.arrive 1 64; ld d@0", "st d@0 1; bar.sync 1 64"),
    pair("arrive, sync, there and back", "free", BLOCK, "st d@0 1; bar.arrive 1 64; bar.sync 2 64; st d@0 2", "bar.sync 1 64; ld d@0; bar.arrive 2 64"),
    pair("arrive, sync, not back", "racy", BLOCK, "st d@0 1; bar.arrive 1 64; st d@0 2", "bar.sync 1 64; ld d@0"),
    pair("named barrier", "free", BLOCK, "st d@0 1; bar.sync 3 64", "bar.sync 3 64; ld d@0"),
    three("named barrier of two warps of three", "racy", "st d@0 1; bar.sync 1 64", "bar.sync 1 64; ld d@0", "ld d@0", ("0.0.0", "0.1.0", "0.2.0")),
    three("two named barriers", "free", "st d@0 1; bar.sync 1 64", "bar.sync 1 64; bar.sync 2 64", "bar.sync 2 64; ld d@0", ("0.0.0", "0.1.0", "0.2.0")),
    three("two named barriers, the other way round", "racy", "st d@0 1; bar.sync 1 64", "bar.sync 2 64; bar.sync 1 64", "bar.sync 2 64; ld d@0",
          ("0.0.0", "0.1.0", "0.2.0")),
    # The barrier orders, and the release takes along what came before it, by whichever thread.
    three("bar, release", "free", "st d 1; bar", "bar; st.release.gpu f 1", "wait.acquire.gpu f 1; ld d", NEAR),
    three("bar, fence, flag", "free", "st d 1; bar", "bar; fence.acq_rel.gpu; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld d", NEAR),
    three("bar, fence of cta, flag", "racy", "st d 1; bar", "bar; fence.acq_rel.cta; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld d", NEAR),
    three("bar, flag", "racy", "st d 1; bar", "bar; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld d", NEAR),
    three("fences of all, bar, flag", "benign", "st d 1; fence.acq_rel.gpu; bar", "fence.acq_rel.gpu; bar; st.relaxed.gpu f 1",
          "wait.acquire.gpu f 1; ld d", NEAR),
    three("fences of all, bar, volatile flag", "benign", "st d 1; fence.acq_rel.gpu; bar", "fence.acq_rel.gpu; bar; st.volatile f 1",
          "wait.volatile f 1; fence.acq_rel.gpu; ld d", NEAR),
    # The third fence comes after the first one in the Fence-SC order, or the wait would have seen what its fence comes before.
    three("sc fences of all, bar, volatile flag", "benign", "st d 1; fence.sc.gpu; bar", "fence.sc.gpu; bar; st.volatile f 1",
          "wait.volatile f 1; fence.sc.gpu; ld d", NEAR),
    three("fence of one, bar, flag", "benign", "st d 1; fence.acq_rel.gpu; bar", "bar; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld d", NEAR),
    three("fence of one, warp sync, flag", "benign", "st d 1; fence.acq_rel.gpu; warp 3", "warp 3; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld d",
          ("0.0.0", "0.0.1", "1.0.0")),
    three("fence of one, cluster barrier, flag", "benign", "st d 1; fence.acq_rel.gpu; cluster.arrive; cluster.wait",
          "cluster.arrive; cluster.wait; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld d", ("0.0.0", "1.0.0", "2.0.0"), cluster=True),
    three("fence of one, flag, flag", "racy", "st d 1; fence.acq_rel.gpu; st.relaxed.gpu g 1", "wait.acquire.gpu g 1; st.relaxed.gpu f 1",
          "wait.acquire.gpu f 1; ld d"),
    three("release, bar, flag", "racy", "st d 1; st.release.gpu g 1; bar", "bar; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld d", NEAR),
    three("fences of cta, bar, flag", "racy", "st d 1; fence.acq_rel.cta; bar", "fence.acq_rel.cta; bar; st.relaxed.gpu f 1",
          "wait.acquire.gpu f 1; ld d", NEAR),
    three("another's fence, bar, flag", "racy", "st d 1; bar", "fence.acq_rel.gpu; bar; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld d", NEAR),
    three("fences, bar, weak flag", "racy", "st d 1; fence.acq_rel.gpu; bar", "fence.acq_rel.gpu; bar; st f 1", "wait.acquire.gpu f 1; ld d", NEAR),
    three("fences before the data, bar, flag", "racy", "fence.acq_rel.gpu; st d 1; bar", "fence.acq_rel.gpu; bar; st.relaxed.gpu f 1",
          "wait.acquire.gpu f 1; ld d", NEAR),
    four("block to block", "free", "st d 1; bar", "bar; st.release.gpu f 1", "wait.acquire.gpu f 1; bar", "bar; ld d"),
    four("block to block, fences", "free", "st d 1; bar", "bar; fence.acq_rel.gpu; st.relaxed.gpu f 1",
         "wait.relaxed.gpu f 1; fence.acq_rel.gpu; bar", "bar; ld d"),
    four("block to block, late fence", "benign", "st d 1; bar", "bar; st.release.gpu f 1", "wait.relaxed.gpu f 1; bar", "bar; fence.acq_rel.gpu; ld d"),
    four("block to block, no first barrier", "racy", "st d 1", "st.release.gpu f 1", "wait.acquire.gpu f 1; bar", "bar; ld d"),
    four("block to block, no second barrier", "racy", "st d 1; bar", "bar; st.release.gpu f 1", "wait.acquire.gpu f 1", "ld d"),
    four("grid sync", "free", "st d 1; bar; bar; ld e", "bar; red.release.gpu.add c 1; wait.acquire.gpu c 2; bar",
         "bar; red.release.gpu.add c 1; wait.acquire.gpu c 2; bar", "st e 1; bar; bar; ld d"),
    four("grid sync, relaxed", "racy", "st d 1; bar; bar; ld e", "bar; red.relaxed.gpu.add c 1; wait.acquire.gpu c 2; bar",
         "bar; red.release.gpu.add c 1; wait.acquire.gpu c 2; bar", "st e 1; bar; bar; ld d"),
    four("grid sync as CUDA 8 wrote it", "benign", "st d 1; fence.acq_rel.gpu; bar; bar; ld e",
         "fence.acq_rel.gpu; bar; red.relaxed.gpu.add c 1; wait.volatile c 2; bar",
         "fence.acq_rel.gpu; bar; red.relaxed.gpu.add c 1; wait.volatile c 2; bar", "st e 1; fence.acq_rel.gpu; bar; bar; ld d"),
]  # fmt: skip

WARPS = [
    pair("warp sync", "free", WARP, "st d@0 1; warp 3", "warp 3; ld d@0"),
    pair("warp sync, global memory", "free", WARP, "st d 1; warp 3", "warp 3; ld d"),
    pair("warp sync, too late", "racy", WARP, "st d@0 1; warp 3", "ld d@0; warp 3"),
    pair("lanes in step", "racy", WARP, "st d@0 1", "ld d@0"),
    alike("lanes in step, one store", "racy", WARP, "st d@0 t"),
    alike("lanes in step, store and load", "racy", LANES, "st d@0 t; ld d@0"),
    alike("lanes, their own words", "free", LANES, "st d{t}@0 1; ld d{t}@0"),
    alike("lanes, atomics", "free", LANES, "atom.relaxed.cta.add x@0 1"),
    three("warp sync of two of three", "racy", "st d@0 1; warp 3", "warp 3; ld d@0", "ld d@0", LANES),
    three("warp syncs in a row", "free", "st d@0 1; warp 3", "warp 3; warp 6", "warp 6; ld d@0", LANES),
    three("warp syncs the other way round", "racy", "st d@0 1; warp 3", "warp 6; warp 3", "warp 6; ld d@0", LANES),
    three("warp sync that skips one", "free", "st d@0 1; warp 5", "ld e@0", "warp 5; ld d@0", LANES),
    three("warp sync, then bar", "free", "st d@0 1; warp 3; bar", "warp 3; ld d@0; bar", "bar; st d@0 2", ("0.0.0", "0.0.1", "0.1.0")),
    three("warp sync, then release", "free", "st d 1; warp 3", "warp 3; st.release.gpu f 1", "wait.acquire.gpu f 1; ld d", ("0.0.0", "0.0.1", "1.0.0")),
    three("warp sync, then flag", "racy", "st d 1; warp 3", "warp 3; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld d", ("0.0.0", "0.0.1", "1.0.0")),
    three("acquire, then warp sync", "free", "st d 1; st.release.gpu f 1", "wait.acquire.gpu f 1; warp 3", "warp 3; ld d", ("1.0.0", "0.0.0", "0.0.1")),
]  # fmt: skip

# A read that comes before the release acquires nothing, however much later the thread goes on. Only some orders of the threads show
# that, so these are there in several places.
EARLY = [
    pair(f"read too early, {where}: {read}", "racy", places, f"{read}; {then}ld d", f"st d 1; st.release.gpu f 1{last}", cluster=where == "cluster")
    for read in ("ld.acquire.gpu f", "ld.volatile f", "atom.acquire.gpu.add f 1")
    for where, places in (("warp", WARP), ("block", BLOCK), ("gpu", GPU), ("cluster", GPU))
    for then, last in (("", ""), ("wait.relaxed.gpu g 1; ", "; st.relaxed.gpu g 1"))
]

# And one that has seen the flag has acquired, though the flag is soon overwritten.
EARLY += [
    three(f"flag soon overwritten, {places[1]}: {read}", "free", "st d 1; st.release.gpu f 1", f"{read}; when 1; {then}ld d",
          "wait.relaxed.gpu f 1; st.relaxed.gpu f 5", places)
    for read, then in (("ld.acquire.gpu f", ""), ("ld.relaxed.gpu f", "fence.acq_rel.gpu; "), ("ld.acquire.gpu f", "ld.relaxed.gpu g; "))
    for places in (("0.0.0", "0.0.1", "0.0.2"), ("0.0.0", "0.1.0", "0.2.0"), ("0.0.0", "1.0.0", "0.1.0"), ("0.0.0", "1.0.0", "2.0.0"))
]  # fmt: skip

IN_STEP = ("0.0.0", "0.0.1", "0.0.2", "0.0.3")
TWO_WARPS = ("0.0.0", "0.0.1", "0.1.0", "0.1.1")

# All threads run the same code, each on its own word and its neighbour's. Collectives are here alone: a lane waits for the others in
# `shfl.sync` only where they are at the same instruction.
CONVERGED = [
    alike("neighbours, nothing", "racy", IN_STEP, "st d+0@0 t; ld d+1@0"),
    alike("neighbours, own words", "free", IN_STEP, "st d+0@0 t; ld d+0@0"),
    alike("neighbours, warp sync", "free", IN_STEP, "st d+0@0 t; warp 15; ld d+1@0"),
    alike("neighbours, warp sync, global memory", "free", IN_STEP, "st d+0 t; warp 15; ld d+1"),
    alike("neighbours, warp sync in two warps", "racy", TWO_WARPS, "st d+0@0 t; warp 3; ld d+1@0"),
    alike("neighbours, bar", "free", TWO_WARPS, "st d+0@0 t; bar; ld d+1@0"),
    alike("neighbours, bar, global memory", "free", TWO_WARPS, "st d+0 t; bar; ld d+1"),
    alike("neighbours, bar in two blocks", "racy", BLOCKS, "st d+0 t; bar; ld d+1"),
    alike("neighbours, overwritten", "racy", TWO_WARPS, "st d+0@0 t; bar; ld d+1@0; st d+0@0 t"),
    alike("neighbours, overwritten after bar", "free", TWO_WARPS, "st d+0@0 t; bar; ld d+1@0; bar; st d+0@0 t"),
    alike("neighbours, overwritten after warp sync", "free", IN_STEP, "st d+0@0 t; warp 15; ld d+1@0; warp 15; st d+2@0 t"),
    alike("neighbours, two stores", "racy", IN_STEP, "st d+0@0 t; st d+1@0 t"),
    alike("neighbours, atomics", "free", TWO_WARPS, "atom.relaxed.cta.add d+0@0 1; atom.relaxed.cta.add d+1@0 1"),
    alike("neighbours, shuffle", "benign", IN_STEP, "st d+0@0 t; shfl 15; ld d+1@0"),
    alike("neighbours, vote", "benign", IN_STEP, "st d+0@0 t; vote 15; ld d+1@0"),
    alike("neighbours, shuffle too late", "racy", IN_STEP, "st d+0@0 t; ld d+1@0; shfl 15"),
    alike("neighbours, shuffles in a row", "benign", IN_STEP, "st d+0@0 t; shfl 15; ld d+1@0; vote 15; st d+2@0 t"),
    alike("neighbours, one shuffle too few", "racy", IN_STEP, "st d+0@0 t; shfl 15; ld d+1@0; st d+2@0 t"),
    three("neighbours, shuffle of two of three", "racy", "st d+0@0 t; shfl 3; ld d+1@0", "st d+0@0 t; shfl 3; ld d+1@0", "st d2@0 t", LANES),
    alike("neighbours, shuffle in two warps", "racy", TWO_WARPS, "st d+0@0 t; shfl 3; ld d+1@0"),
    alike("neighbours, counter", "free", BLOCKS, "st d+0 t; fence.acq_rel.gpu; red.relaxed.gpu.add c 1; wait.relaxed.gpu c 4; fence.acq_rel.gpu; ld d+1"),
    program("lanes produce, one thread consumes", "0.0.0: st d+0 t; red.release.gpu.add c 1", "0.0.1: st d+0 t; red.release.gpu.add c 1",
            "0.0.2: st d+0 t; red.release.gpu.add c 1", "1.0.0: wait.acquire.gpu c 3; ld d0; ld d1; ld d2", expect="free"),
    program("lanes produce, relaxed", "0.0.0: st d+0 t; red.relaxed.gpu.add c 1", "0.0.1: st d+0 t; red.relaxed.gpu.add c 1",
            "0.0.2: st d+0 t; red.relaxed.gpu.add c 1", "1.0.0: wait.acquire.gpu c 3; ld d0; ld d1; ld d2", expect="racy"),
    three("one thread produces, lanes consume", "free", "st d 1; st.release.gpu f 1", "wait.acquire.gpu f 1; ld d", "wait.acquire.gpu f 1; ld d",
          ("1.0.0", "0.0.0", "0.0.1")),
    three("one thread produces, lanes consume, relaxed", "racy", "st d 1; st.relaxed.gpu f 1", "wait.acquire.gpu f 1; ld d", "wait.acquire.gpu f 1; ld d",
          ("1.0.0", "0.0.0", "0.0.1")),
    program("one lane acquires for all", "1.0.0: st d 1; st.release.gpu f 1", "0.0.0: wait.acquire.gpu f 1; warp 7", "0.0.1: warp 7; ld d",
            "0.0.2: warp 7; ld d", expect="free"),
    alike("neighbours, counter without fence", "racy", BLOCKS, "st d+0 t; red.relaxed.gpu.add c 1; wait.relaxed.gpu c 4; fence.acq_rel.gpu; ld d+1"),
]  # fmt: skip

CLUSTER_OF_FOUR = ("0.0.0", "1.0.0", "2.0.0")

CLUSTERS = [
    pair("cluster barrier", "free", GPU, "st d 1; cluster.arrive; cluster.wait", "cluster.arrive; cluster.wait; ld d", cluster=True),
    pair("cluster barrier, remote shared memory", "free", GPU, "st d@1 1; cluster.arrive; cluster.wait", "cluster.arrive; cluster.wait; ld d@1", cluster=True),
    pair("cluster barrier, too late", "racy", GPU, "st d@1 1; cluster.arrive; cluster.wait", "cluster.arrive; ld d@1; cluster.wait", cluster=True),
    pair("cluster barrier, between arrive and wait", "racy", GPU, "cluster.arrive; st d@1 1; cluster.wait",
         "cluster.arrive; cluster.wait; ld d@1", cluster=True),
    pair("cluster barrier, relaxed", "racy", GPU, "st d@1 1; cluster.arrive.relaxed; cluster.wait", "cluster.arrive; cluster.wait; ld d@1", cluster=True),
    pair("cluster barrier, relaxed after a fence", "free", GPU, "st d@1 1; fence.acq_rel.cluster; cluster.arrive.relaxed; cluster.wait",
         "cluster.arrive; cluster.wait; ld d@1", cluster=True),
    pair("cluster barrier, relaxed before a fence", "racy", GPU, "st d@1 1; cluster.arrive.relaxed; fence.acq_rel.cluster; cluster.wait",
         "cluster.arrive; cluster.wait; ld d@1", cluster=True),
    pair("bar in a cluster", "racy", GPU, "st d@1 1; bar", "bar; ld d@1", cluster=True),
    pair("remote flag", "free", GPU, "st d@1 1; st.release.cluster f@1 1", "wait.acquire.cluster f@1 1; ld d@1", cluster=True),
    pair("remote flag, cta", "racy", GPU, "st d@1 1; st.release.cta f@1 1", "wait.acquire.cta f@1 1; ld d@1", cluster=True),
    pair("remote atomic", "free", GPU, "atom.relaxed.cluster.add x@0 1", "atom.relaxed.cluster.add x@0 1", cluster=True),
    pair("remote data, no flag", "racy", GPU, "st d@0 1", "ld d@0", cluster=True),
    three("cluster barrier of one of two clusters", "racy", "st d 1; cluster.arrive; cluster.wait", "cluster.arrive; cluster.wait; ld d",
          "cluster.arrive; cluster.wait; ld d",
          CLUSTER_OF_FOUR, cluster=True),
    three("cluster barrier, then release", "free", "st d 1; cluster.arrive; cluster.wait", "cluster.arrive; cluster.wait; st.release.gpu f 1",
          "wait.acquire.gpu f 1; ld d",
          CLUSTER_OF_FOUR, cluster=True),
]  # fmt: skip

VALUES = [
    pair("same value, then read", "racy", GPU, "st d 1; ld d", "st d 1"),
    pair("other values", "racy", GPU, "st d 1", "st d 2"),
    pair("neighbours", "free", BLOCK, "st a@0 1; ld a@0", "st b@0 1; ld b@0"),
    program("four neighbours", *(f"{place}: st {loc} 1; ld {loc}" for place, loc in zip(BLOCKS, "abcd")), expect="free"),
]

# Each way of releasing with each way of acquiring, in scopes and places.
RELEASES = [
    "st.release.S f 1",
    "fence.acq_rel.S; st.relaxed.S f 1",
    "fence.sc.S; st.volatile f 1",
    "fence.release.S; atom.relaxed.S.exch f 1",
    "atom.acq_rel.S.add f 1",
    "red.release.S.add f 1",
    "st.relaxed.S f 1",
    "fence.acq_rel.S; st f 1",
]
ACQUIRES = [
    "wait.acquire.S f 1",
    "wait.relaxed.S f 1; fence.acq_rel.S",
    "wait.volatile f 1; fence.acquire.S",
    "poll.acquire.S f 1",
    "poll.relaxed.S f 1; fence.sc.S",
    "wait.relaxed.S f 1",
    "ld.acquire.S f; when 1",
    "atom.relaxed.S.cas f 1 2; when 1; fence.acq_rel.S",
]
PLACES = {"warp": (WARP, False), "block": (BLOCK, False), "gpu": (GPU, False), "cluster": (GPU, True)}


def grid():
    data = itertools.cycle([("st d 1", "ld d"), ("ld d", "st d 2"), ("st d 1", "st d 2")])
    for release, acquire, (where, (places, cluster)) in itertools.product(RELEASES, ACQUIRES, PLACES.items()):
        for mine, yours in ("cta", "cta"), ("gpu", "gpu"), ("cta", "gpu"), ("gpu", "cta"), ("cluster", "cluster"):
            before, after = next(data)
            first = f"{before}; {release.replace('.S', '.' + mine)}"
            second = f"{acquire.replace('.S', '.' + yours)}; {after}"
            yield pair(f"grid, {where}, {mine} and {yours}: {release} / {acquire}", "", places, first, second, cluster=cluster)


KNOWN = [
    *MESSAGE_PASSING, *SCOPES, *STRENGTHS, *CUMULATIVITY, *SWAPS, *NARROW_ATOMICS, *FENCE_SC, *EARLY, *LOCKS, *COUNTERS, *BARRIERS, *WARPS, *CONVERGED, *CLUSTERS, *VALUES,
]  # fmt: skip
