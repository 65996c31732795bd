"""Small programs as data: a few threads, each with a place (block, warp, lane) and a list of operations, in the notation of `parse`."""

import itertools
import re
from dataclasses import dataclass

NEVER = 0xFFFFFFFF  # the recorded value of a read that was not executed


@dataclass(frozen=True)
class Op:
    """One operation of a thread."""

    text: str
    kind: str  # ld st wait poll lock atom red fence bar warp collective cluster when
    loc: str = ""
    sem: str = ""  # weak volatile relaxed acquire release acq_rel sc
    scope: str = ""  # cta cluster gpu sys
    what: str = ""  # add exch cas; sync arrive wait; shfl vote
    args: tuple = ()
    step: int = -1  # of a location that depends on the thread

    @property
    def strong(self):
        return self.sem not in ("", "weak")

    @property
    def memory(self):
        return self.kind in ("ld", "st", "wait", "poll", "lock", "atom", "red")

    @property
    def spins(self):
        return self.kind in ("wait", "poll", "lock")


def parse(text, thread=0, count=1):
    """One operation of a thread of so many:

    A location is `d` in global memory, `d@1` in shared memory of block 1; `d+1` is d0, d1, … by the number of the thread plus one,
    and begins anew after as many as there are threads.
    ld[.SEM.SCOPE] x            st[.SEM.SCOPE] x VALUE     SEM: nothing or weak, volatile (without scope), relaxed, acquire, release
    wait.SEM.SCOPE x VALUE      ld until x >= VALUE        VALUE `t` is 100 plus the thread's number
    poll.SEM.SCOPE x VALUE      atom.add x 0 until x >= VALUE
    lock.SEM.SCOPE x            atom.cas x 0 1 until it was 0
    atom.SEM.SCOPE.add x N      atom.SEM.SCOPE.exch x VALUE      atom.SEM.SCOPE.cas x OLD NEW      red.SEM.SCOPE.add x N
    when VALUE                  the thread goes on if what the operation before has read is VALUE
    fence.SEM.SCOPE             SEM: sc, acq_rel, acquire, release
    bar                         barrier 0 of the whole block
    bar.sync ID COUNT, bar.arrive ID COUNT
    warp MASK                   bar.warp.sync              shfl MASK, vote MASK: collectives
    cluster.arrive[.relaxed]    cluster.wait
    """
    head, *args = text.split()
    kind, *mods = head.split(".")
    if kind == "fence":
        return Op(text, kind, sem=mods[0], scope=mods[1])
    if kind == "bar":
        what = mods[0] if mods else "sync"
        return Op(text, kind, what=what, args=tuple(map(int, args)) or (0, 0))
    if kind in ("warp", "shfl", "vote"):
        return Op(text, "warp" if kind == "warp" else "collective", what=kind, args=(int(args[0], 0),))
    if kind == "cluster":
        return Op(text, kind, what=mods[0], sem=mods[1] if len(mods) > 1 else "")
    if kind == "when":
        return Op(text, kind, args=(int(args[0]),))
    what = mods.pop() if kind in ("atom", "red") else {"poll": "add", "lock": "cas"}.get(kind, "")
    sem = mods[0] if mods else "weak"
    scope = "sys" if sem == "volatile" else mods[1] if sem != "weak" else ""
    loc, *values = args
    step = re.search(r"\+(\d)", loc)
    if step:
        loc = loc.replace(step[0], str((thread + int(step[1])) % count))
    return Op(text, kind, loc, sem, scope, what, tuple(v if v == "t" else int(v) for v in values), int(step[1]) if step else -1)


@dataclass(frozen=True)
class Program:
    name: str
    places: tuple  # of each thread: (block, warp, lane)
    threads: tuple  # of each thread: its operations
    cluster: bool = False  # blocks 0 and 1 are a cluster, and so are 2 and 3
    expect: str = ""  # free, racy, benign (racy unless forgiven), or nothing: what is known beforehand
    track_all: bool = False  # values of weak accesses matter

    def same(self, scope, a, b):
        """Whether threads a and b are in one scope."""
        block = [self.places[t][0] for t in (a, b)]
        size = {"cta": 1, "cluster": 2 if self.cluster else 1}.get(scope)
        return size is None or block[0] // size == block[1] // size

    def tracked(self):
        """Locations whose values matter."""
        found = set()
        for ops in self.threads:
            for op, following in itertools.zip_longest(ops, ops[1:]):
                if op.memory and (op.strong or self.track_all or following and following.kind == "when"):
                    found.add(op.loc)
        return found

    def recorded(self):
        """The reads whose values make up an outcome: (thread, index of the operation)."""
        return [(t, i) for t, ops in enumerate(self.threads) for i in range(len(ops)) if self.records(t, i)]

    def records(self, t, i):
        ops = self.threads[t]
        op = ops[i]
        decides = i + 1 < len(ops) and ops[i + 1].kind == "when"
        return op.kind in ("wait", "poll", "lock", "atom") or op.kind == "ld" and (op.strong or decides or self.track_all)

    def value(self, t, word):
        return 100 + t if word == "t" else word

    def meeting(self, t, op):
        """Where a thread meets others in a barrier or collective, and which threads take part."""
        block, warp, _ = self.places[t]
        if op.kind == "bar":
            key = ("bar", block, op.args[0])
            inside = [u for u, place in enumerate(self.places) if place[0] == block]
            if op.args[0]:
                inside = [u for u in inside if any(o.kind == "bar" and o.args[0] == op.args[0] for o in self.threads[u])]
        elif op.kind == "cluster":
            key = ("cluster", block // 2 if self.cluster else block)
            inside = [u for u in range(len(self.places)) if self.same("cluster", t, u)]
        else:
            key = (op.what, block, warp, op.args[0])
            inside = [u for u, (b, w, lane) in enumerate(self.places) if (b, w) == (block, warp) and op.args[0] >> lane & 1]
        return key, inside

    def __str__(self):
        lines = [f"{self.name}:" + (" (clusters of two blocks)" if self.cluster else "")]
        for t, ((block, warp, lane), ops) in enumerate(zip(self.places, self.threads)):
            lines.append(f"  thread {t} (block {block}, warp {warp}, lane {lane}): " + "; ".join(op.text for op in ops))
        return "\n".join(lines)


def program(name, *threads, cluster=False, expect="", track_all=False):
    """`program("MP", "0.0.0: st d 1; st.release.gpu f 1", "1.0.0: wait.acquire.gpu f 1; ld d")`"""
    places, bodies = [], []
    for t, text in enumerate(threads):
        place, body = text.split(":")
        places.append(tuple(map(int, place.split("."))))
        bodies.append(tuple(parse(part.strip(), t, len(threads)) for part in body.split(";") if part.strip()))
    return Program(name, tuple(places), tuple(bodies), cluster, expect, track_all)
