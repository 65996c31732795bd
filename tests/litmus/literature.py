"""What is known of the PTX memory model, to test the model of it: outcomes that the PTX ISA's chapter "Memory Consistency Model" or
    D. Lustig, S. Sahasrabuddhe, O. Giroux: A Formal Analysis of the NVIDIA PTX Memory Consistency Model, ASPLOS 2019
say are allowed or forbidden."""

from programs import program


def outcome(name, source, allowed, values, *threads, **options):
    """Whether the recorded reads, thread by thread, can have these values."""
    return source, program(name, *threads, track_all=True, **options), values, allowed


OUTCOMES = [
    outcome("MP", "the paper's Figure 5", False, (1, 0), "0.0.0: st x 1; st.release.gpu y 1", "1.0.0: ld.acquire.gpu y; ld x"),
    outcome("MP, relaxed", "8.9.4: no release pattern", True, (1, 0), "0.0.0: st x 1; st.relaxed.gpu y 1", "1.0.0: ld.acquire.gpu y; ld x"),
    outcome("MP, of the block", "8.7: not morally strong", True, (1, 0), "0.0.0: st x 1; st.release.cta y 1", "1.0.0: ld.acquire.gpu y; ld x"),
    outcome("MP, fences", "8.8, third forms", False, (1, 0), "0.0.0: st x 1; fence.release.gpu; st.relaxed.gpu y 1",
            "1.0.0: ld.relaxed.gpu y; fence.acquire.gpu; ld x"),
    outcome("MP, two stores and two loads", "8.8, second forms", False, (1, 2, 0), "0.0.0: st x 1; st.release.gpu y 1; st.relaxed.gpu y 2",
            "1.0.0: ld.relaxed.gpu y; ld.acquire.gpu y; ld x"),
    outcome("MP, an atomic between", "8.9.2, second form", False, (1, 2, 0), "0.0.0: st x 1; st.release.gpu y 1", "1.0.0: atom.relaxed.gpu.add y 1",
            "2.0.0: ld.acquire.gpu y; ld x"),
    outcome("MP, barrier", "8.9.4, 2", False, (0,), "0.0.0: st x 1; bar", "0.1.0: bar; ld x"),
    outcome("MP, cluster", "8.9.4, 3", False, (0,), "0.0.0: st x 1; cluster.arrive; cluster.wait", "1.0.0: cluster.arrive; cluster.wait; ld x", cluster=True),
    outcome("SB, fence.sc", "the paper's Figure 6", False, (0, 0), "0.0.0: st x 1; fence.sc.gpu; ld y", "1.0.0: st y 1; fence.sc.gpu; ld x"),
    outcome("SB, fence.acq_rel", "the paper's 3.4.3", True, (0, 0), "0.0.0: st x 1; fence.acq_rel.gpu; ld y", "1.0.0: st y 1; fence.acq_rel.gpu; ld x"),
    outcome("SB, fence.sc of the block", "the paper's Figure 6: the fences have to be morally strong", True, (0, 0),
            "0.0.0: st x 1; fence.sc.cta; ld y", "1.0.0: st y 1; fence.sc.cta; ld x"),
    outcome("LB", "8.10: no axiom forbids it", True, (1, 1), "0.0.0: ld.relaxed.gpu x; st.relaxed.gpu y 1", "1.0.0: ld.relaxed.gpu y; st.relaxed.gpu x 1"),
    outcome("LB, each waits", "8.10.4 and the paper's Figure 8", False, (1, 1), "0.0.0: ld.relaxed.gpu x; when 1; st.relaxed.gpu y 1",
            "1.0.0: ld.relaxed.gpu y; when 1; st.relaxed.gpu x 1"),
    outcome("CoRR", "the paper's Figure 9a", False, (1, 0), "0.0.0: st.relaxed.gpu x 1", "1.0.0: ld.relaxed.gpu x; ld x"),
    outcome("CoRR, both weak", "8.10.5: morally strong reads only", True, (1, 0), "0.0.0: st x 1", "1.0.0: ld x; ld x"),
    outcome("CoRW", "8.10.6: a read does not see what follows it", False, (2,), "0.0.0: ld x; st x 2"),
    outcome("CoWR, alone", "the paper's Figure 9c: a read sees nothing older than the write before it", False, (0,), "0.0.0: st x 1; ld x"),
    outcome("atomics", "8.10.3, test 1", False, (0, 0), "0.0.0: atom.relaxed.sys.add x 1", "1.0.0: atom.relaxed.sys.add x 1"),
    outcome("atomics of cta and gpu", "8.10.3, test 2", True, (0, 0), "0.0.0: atom.relaxed.cta.add x 1", "1.0.0: atom.relaxed.gpu.add x 1"),
    outcome("IRIW, acquire", "the paper's 3.4: not multi-copy atomic", True, (1, 0, 1, 0), "0.0.0: st.relaxed.gpu x 1", "1.0.0: st.relaxed.gpu y 1",
            "2.0.0: ld.acquire.gpu x; ld.acquire.gpu y", "3.0.0: ld.acquire.gpu y; ld.acquire.gpu x"),
    outcome("IRIW, fence.sc", "the paper's 3.4.3", False, (1, 0, 1, 0), "0.0.0: st.relaxed.gpu x 1", "1.0.0: st.relaxed.gpu y 1",
            "2.0.0: ld.relaxed.gpu x; fence.sc.gpu; ld.relaxed.gpu y", "3.0.0: ld.relaxed.gpu y; fence.sc.gpu; ld.relaxed.gpu x"),
    outcome("ISA2", "8.9.5, note 2: cumulativity", False, (1, 1, 0), "0.0.0: st x 1; st.release.gpu y 1", "1.0.0: ld.acquire.gpu y; st.release.gpu z 1",
            "2.0.0: ld.acquire.gpu z; ld x"),
    outcome("WRC", "8.9.5: observation, then base causality", False, (1, 1, 0), "0.0.0: st.relaxed.gpu x 1", "1.0.0: ld.relaxed.gpu x; st.release.gpu y 1",
            "2.0.0: ld.acquire.gpu y; ld x"),
    outcome("WRC, relaxed", "the paper's 3.4", True, (1, 1, 0), "0.0.0: st.relaxed.gpu x 1", "1.0.0: ld.relaxed.gpu x; st.relaxed.gpu y 1",
            "2.0.0: ld.acquire.gpu y; ld x"),
]  # fmt: skip
