"""An exhaustive model of small PTX programs: every execution that the PTX memory model allows, and which accesses race in it.

Written from the PTX ISA, chapter "Memory Consistency Model" (the numbers below are its sections), and from nothing of Margay's.

For a program (programs.py) the model takes each way through the threads (branches, failed rounds of a spin loop), each choice of the
write that a read reads from, each Fence-SC order and each coherence order, keeps what the axioms of 8.10 allow, and looks in each
execution for conflicting accesses that are neither morally strong nor related in causality order: data-races, by 8.7.1.

What is left out, and why that is enough:
 - Values of weak accesses decide nothing, as long as no branch looks at them and no strong access reads them. Only locations with a
   strong access or a branch are *tracked*, that is, get reads-from and coherence; accesses to all others are there in program order
   and in the search for races alone.
 - A spin loop is its last round and up to two failed ones, where these can matter: they are reads, which can race, and acquires,
   which can order. Still more of them are reads by the same line, and only order more.
 - Coherence is taken as a total order for each location, of which only what is morally strong or related in causality order counts
   (8.9.6), so that racing writes constrain nothing.

Three rules are the checker's and not the ISA's, which lets a verdict hang on what happened to be read. They concern races alone, not
what can be read:
 - a compare-and-swap may count as a write where it fails, too (8.4 says that it is none): in another run it may not fail;
 - what a reduction reads can be acquired by a fence behind it (8.8 has no such pattern): an `atom` whose result nobody wants is the
   same to everybody but its author;
 - the Fence-SC order puts nothing in order (8.9.4 says that it does): a thread can hardly know who came first.

An execution is *sequentially consistent* (`sc`) if one order of all operations explains it. An emulator whose threads take turns
shows only these. They are enough to find each race of straight-line programs with waits: two accesses that are unordered in some
execution lack an observation on each path between them, and where the reads come early, as they can under sequential consistency, the
observations are lacking, too. They are not enough for programs that branch on the outcome of store buffering and the like (Dekker's
algorithm with fence.acq_rel), where two relaxed reads are both stale only in executions that no order explains. So all executions
say what may be reported, and those that are sequentially consistent what has to be.

Each execution has a second set of races, `lenient`, for a checker that forgives what is not a mistake in practice:
 1. two stores of the same value, if nothing else is ever stored there;
 2. a strong read that observes a released value is an acquire, though no acquire fence follows;
 3. a release fence before a barrier (of a block, warp or cluster) releases for each strong write after the barrier, by any thread;
 4. collectives of a warp order memory accesses as bar.warp.sync does.
"""

import itertools
import operator
from dataclasses import dataclass, field

from programs import NEVER, Program

COMPARE = {"==": operator.eq, "!=": operator.ne, ">=": operator.ge, "<": operator.lt}


@dataclass
class Event:
    """What an operation is in one execution: an access, a fence, or one side of a barrier."""

    thread: int
    op: int
    scope: str = ""
    loc: str = ""
    reads: bool = False  # 8.4: "ld and atom, but not red"
    writes: bool = False  # "st, and atomic operations if they result in a write"
    rmw: bool = False
    tracked: bool = False
    strong: bool = False
    acquire: bool = False
    release: bool = False
    fence: bool = False
    sc: bool = False
    might_write: bool = False  # an atomic operation that in another run may result in a write
    write: tuple = ()  # ("set", value) or ("add", number)
    wants: tuple = ()  # of the value read: ((comparison, value), ...)
    last: bool = True  # not a failed round of a loop
    meets: tuple = ()  # (key of the barrier, which time)
    arrives: bool = False
    leaves: bool = False
    orders: str = ""  # of a barrier's side: "always", "lenient" or nothing


class Ways:
    """All ways of one thread through its code: lists of events."""

    def __init__(self, program, thread, tracked, rounds):
        self.program, self.thread, self.tracked, self.rounds = program, thread, tracked, rounds
        self.ops = program.threads[thread]

    def all(self):
        return list(self.from_(0, {}))

    def from_(self, i, times):
        if i == len(self.ops):
            yield []
            return
        op = self.ops[i]
        if op.kind in ("bar", "warp", "collective", "cluster"):
            # The two sides of a cluster's barrier are operations of their own; others are both in one.
            key, _ = self.program.meeting(self.thread, op)
            arrives, leaves = op.what != "wait", op.what != "arrive"
            counted = (key, "wait" if op.what == "wait" else "")
            time = times.get(counted, 0)
            sides = []
            orders = "lenient" if op.kind == "collective" else "" if op.sem == "relaxed" else "always"
            if arrives:
                sides.append(Event(self.thread, i, meets=(key, time), arrives=True, orders=orders))
            if leaves:
                sides.append(Event(self.thread, i, meets=(key, time), leaves=True, orders=orders))
            for rest in self.from_(i + 1, times | {counted: time + 1}):
                yield sides + rest
            return
        if op.kind == "fence":
            ends = {"acquire": (True, False), "release": (False, True)}.get(op.sem, (True, True))
            here = Event(self.thread, i, op.scope, strong=True, acquire=ends[0], release=ends[1], fence=True, sc=op.sem == "sc")
            for rest in self.from_(i + 1, times):
                yield [here] + rest
            return
        for events, goes_on, after in self.access(i, op):
            for rest in self.from_(after, times) if goes_on else [[]]:
                yield events + rest

    def access(self, i, op):
        """(events, whether the thread goes on, index of the next operation) for each way of one memory operation."""
        value = [self.program.value(self.thread, word) for word in op.args]
        decides = i + 1 < len(self.ops) and self.ops[i + 1].kind == "when"
        ends = [(True, ())] if not decides else [(True, (("==", self.ops[i + 1].args[0]),)), (False, (("!=", self.ops[i + 1].args[0]),))]
        after = i + 2 if decides else i + 1

        def event(write=(), wants=(), last=True):
            reads = op.kind not in ("st", "red")
            return Event(
                self.thread, i, op.scope, op.loc, reads, bool(write), op.kind == "red" or reads and bool(write),
                op.loc in self.tracked and (op.kind != "ld" or self.program.records(self.thread, i)), op.strong,
                acquire=reads and op.sem in ("acquire", "acq_rel"), release=bool(write) and op.sem in ("release", "acq_rel"),
                write=write, wants=wants, last=last, might_write=op.kind in ("lock", "poll") or op.what == "cas",
            )  # fmt: skip

        for goes_on, wants in ends:
            if op.kind in ("ld", "st"):
                yield [event(("set", value[0]) if op.kind == "st" else (), wants)], goes_on, after
            elif op.spins:
                want = ("==", 0) if op.kind == "lock" else (">=", value[0])
                fails = ("!=", 0) if op.kind == "lock" else ("<", value[0])
                write = {"wait": (), "poll": ("add", 0), "lock": ("set", 1)}[op.kind]
                for failed in range(self.rounds[self.thread, i] + 1):
                    before = [event(("add", 0) if op.kind == "poll" else (), (fails,), False)] * failed
                    yield before + [event(write, (want,) + wants)], goes_on, after
            elif op.what == "cas":
                # 8.4: one that fails is no write.
                yield [event(("set", value[1]), (("==", value[0]),) + wants)], goes_on, after
                yield [event((), (("!=", value[0]),) + wants)], goes_on, after
            else:
                yield [event(("add" if op.what == "add" else "set", value[0]), wants)], goes_on, after


def failed_rounds(program):
    """How many failed rounds of each spin loop are worth a look: none if they can neither race nor order more than the last one does,
    which observes all earlier writes if these are atomics or of one thread; else one, or two where few loops need any."""
    rounds = {}
    for t, ops in enumerate(program.threads):
        for i, op in enumerate(ops):
            if not op.spins:
                continue
            writes = [(u, o) for u, others in enumerate(program.threads) for o in others if u != t and o.loc == op.loc and o.kind not in ("ld", "wait")]
            strong = all(o.strong and program.same(op.scope, t, u) and program.same(o.scope, t, u) for u, o in writes)
            one = len({u for u, _ in writes}) < 2
            rounds[t, i] = 0 if strong and (one or all(o.kind != "st" for _, o in writes)) else len(writes)
    most = 2 if sum(map(bool, rounds.values())) < 3 else 1
    return {at: min(count, most) for at, count in rounds.items()}


def closure(rows):
    """Transitive closure, in place; a relation is a list of bit sets."""
    for k in range(len(rows)):
        bit, row = 1 << k, rows[k]
        for i in range(len(rows)):
            if rows[i] & bit:
                rows[i] |= row
    return rows


def cyclic(rows):
    return any(row >> i & 1 for i, row in enumerate(closure(rows)))


@dataclass(frozen=True)
class Execution:
    outcome: tuple  # value of each of Program.recorded()
    sc: bool
    strict: frozenset  # of races: pairs of (thread, index of the operation)
    lenient: frozenset
    doubtful: frozenset  # of these, pairs of which none writes by 8.4


@dataclass
class Executions:
    program: Program
    all: set = field(default_factory=set)

    def races(self, mode, sc_only=False, outcome=None, certain=False):
        """The races of each execution, or of those with an outcome."""
        for e in self.all:
            if (e.sc or not sc_only) and outcome in (None, e.outcome):
                yield getattr(e, mode) - (e.doubtful if certain else frozenset())

    def racy(self, mode, sc_only=False, certain=False):
        return any(self.races(mode, sc_only, certain=certain))

    def pairs(self, mode):
        return frozenset().union(*self.races(mode))


class TooLarge(Exception):
    pass


def executions(program, limit=20000):
    """All executions; TooLarge if there are more candidates than `limit`."""
    tracked, rounds = program.tracked(), failed_rounds(program)
    ways = [Ways(program, t, tracked, rounds).all() for t in range(len(program.threads))]
    found = Executions(program)
    budget = [limit]
    for events in itertools.product(*ways):
        Candidates(program, [e for way in events for e in way], budget).add_to(found.all)
    return found


class Candidates:
    """The executions of one way through all threads."""

    def __init__(self, program, events, budget):
        self.program, self.events, self.budget = program, events, budget
        self.count = len(events)
        every = range(self.count)
        self.po = [0] * self.count
        for i in every:
            for j in range(i + 1, self.count):
                if events[i].thread == events[j].thread:
                    self.po[i] |= 1 << j
        self.strongly = [[self.morally_strong(a, b) for b in events] for a in events]
        self.meet()
        self.writes, self.reads = {}, []
        for i, e in enumerate(events):
            if e.loc and e.tracked:
                if e.writes:
                    self.writes.setdefault(e.loc, []).append(i)
                if e.reads or e.rmw:
                    self.reads.append(i)
        self.firsts = {i: self.firsts_of_release(i) for writes in self.writes.values() for i in writes}
        self.firsts_lenient = {i: first | self.firsts_beyond_barriers(i) for i, first in self.firsts.items()}
        self.lasts = {i: self.lasts_of_acquire(i) for i in self.reads}
        self.conflicts = [
            (i, j)
            for i in every
            for j in range(i + 1, self.count)
            if events[i].loc
            and events[i].loc == events[j].loc
            and events[i].thread != events[j].thread
            and any(e.writes or e.might_write for e in (events[i], events[j]))
            and not self.strongly[i][j]
        ]
        self.fences = [i for i in every if events[i].sc]

    def morally_strong(self, a, b):
        """8.7; all accesses here are of four bytes by the generic proxy."""
        if a.loc and b.loc and a.loc != b.loc:
            return False
        if a.thread == b.thread:
            return True
        inside = self.program.same
        return a.strong and b.strong and inside(a.scope, a.thread, b.thread) and inside(b.scope, a.thread, b.thread)

    def meet(self):
        """8.9.4, 2 and 3: who arrives at a barrier synchronizes with who leaves it. All of it orders time, not all memory: what comes
        before barrier.cluster.arrive.relaxed needs a fence, as in the example of that instruction's section."""
        self.time, self.barriers = list(self.po), {"always": [0] * self.count, "lenient": [0] * self.count}
        for i, a in enumerate(self.events):
            for j, b in enumerate(self.events):
                if a.arrives and b.leaves and a.meets == b.meets and a.thread != b.thread:
                    self.time[i] |= 1 << j
                    if a.orders:
                        self.barriers[a.orders][i] |= 1 << j
                    for f, fence in enumerate(self.events):
                        if a.meets[0][0] == "cluster" and fence.fence and fence.release and self.before(f, i):
                            self.barriers["always"][f] |= self.program.same(fence.scope, a.thread, b.thread) << j

    def before(self, i, j):
        return self.po[i] >> j & 1

    def firsts_of_release(self, w):
        """8.8: the first operations of the release patterns whose write is w."""
        events, e = self.events, self.events[w]
        if not e.strong:
            return set()
        return {
            i
            for i, a in enumerate(events)
            if a.release and (i == w or self.before(i, w) and (a.fence or a.loc == e.loc))
        }

    def firsts_beyond_barriers(self, w):
        """The same where a release fence comes before barriers, and the write after them: forgiven, 3."""
        if not self.events[w].strong:
            return set()
        steps = closure([self.po[i] | self.barriers["always"][i] | self.barriers["lenient"][i] for i in range(self.count)])
        return {f for f, fence in enumerate(self.events) if fence.fence and fence.release and steps[f] >> w & 1}

    def lasts_of_acquire(self, r):
        """8.8: the last operations of the acquire patterns whose read is r; those that a reduction begins are the checker's own."""
        e = self.events[r]
        if not e.strong:
            return set()
        return {
            i
            for i, a in enumerate(self.events)
            if a.acquire and (i == r or self.before(r, i) and (a.fence or a.loc == e.loc))
        }

    def add_to(self, found):
        self.source = {}
        self.found = found
        self.choose(0)

    def choose(self, k):
        """Gives the reads from the k-th on each write that they could read; -1 is the initial one, of 0."""
        if k == len(self.reads):
            self.complete()
            return
        r = self.reads[k]
        e = self.events[r]
        for w in [-1] + self.writes.get(e.loc, []):
            if w == r or w >= 0 and self.before(r, w):
                continue
            constant = 0 if w < 0 else self.events[w].write[1] if self.events[w].write[0] == "set" else None
            if constant is not None and not all(COMPARE[c](constant, v) for c, v in e.wants):
                continue
            # Atomicity: one of two morally strong ones would come between the other and what it has read.
            if e.rmw and e.writes and any(
                self.source[q] == w and self.events[q].loc == e.loc and self.events[q].writes and self.strongly[q][r] for q in self.reads[:k]
            ):
                continue
            self.source[r] = w
            self.choose(k + 1)
        self.source.pop(r, None)

    def values(self):
        """What each tracked read reads, or None if some of it comes from nowhere or is not what the way needs."""
        value, source = {}, self.source

        def read(r, depth=0):
            w = source[r]
            if w < 0:
                return 0
            kind, number = self.events[w].write
            if kind == "set":
                return number
            if depth > self.count:
                return None
            base = read(w, depth + 1)
            return None if base is None else base + number

        for r in self.reads:
            value[r] = read(r)
            if value[r] is None or not all(COMPARE[c](value[r], v) for c, v in self.events[r].wants):
                return None
        return value

    def complete(self):
        self.budget[0] -= 1
        if self.budget[0] < 0:
            raise TooLarge
        value = self.values()
        if value is None or self.from_thin_air():
            return
        where = {(self.events[r].thread, self.events[r].op): r for r in self.reads if self.events[r].last}
        outcome = tuple(value[where[at]] if at in where else NEVER for at in self.program.recorded())
        observed = self.observation()
        base = [self.po[i] | self.barriers["always"][i] for i in range(self.count)]
        self.synchronize(base, observed, self.firsts, self.lasts)
        lenient = [base[i] | self.barriers["lenient"][i] for i in range(self.count)]
        self.synchronize(lenient, observed, self.firsts_lenient, {r: last | {r} for r, last in self.lasts.items() if self.events[r].reads})
        races = self.race(self.causality(closure(list(base)), observed))
        forgiven = self.race(self.causality(closure(list(lenient)), observed), True)
        doubtful = frozenset(
            tuple(sorted([(a.thread, a.op), (b.thread, b.op)]))
            for a, b in ((self.events[i], self.events[j]) for i, j in self.conflicts)
            if not a.writes and not b.writes
        )
        for fence_order in self.fence_orders():
            ordered = [base[i] | fence_order[i] for i in range(self.count)]
            hb = closure(ordered)
            cause = self.causality(hb, observed)
            coherences = [self.coherences(loc, cause) for loc in self.writes]
            if not all(coherences):
                continue
            sc = self.sequential(coherences, fence_order)
            if sc is None:
                continue
            self.found.add(Execution(outcome, sc, races, forgiven, doubtful))

    def from_thin_air(self):
        """8.10.4: what follows a branch or a loop depends on what that has read."""
        rows = [self.po[i] if e.wants else 0 for i, e in enumerate(self.events)]
        for r, w in self.source.items():
            if w >= 0:
                rows[w] |= 1 << r
        return cyclic(rows)

    def observation(self):
        """8.9.2: read -> the writes that precede it in observation order."""
        found = {}

        def sources(r):
            if r not in found:
                w = self.source[r]
                found[r] = set()
                if w >= 0 and self.strongly[w][r]:
                    found[r] = {w} | (sources(w) if self.events[w].rmw else set())
            return found[r]

        for r in self.reads:
            sources(r)
        return found

    def synchronize(self, rows, observed, firsts, lasts):
        """8.9.4, 4: a release pattern and an acquire pattern."""
        for r, writes in observed.items():
            for w in writes:
                for first in firsts.get(w, ()):
                    for last in lasts.get(r, ()):
                        if self.events[first].thread != self.events[last].thread and self.strongly[first][last]:
                            rows[first] |= 1 << last

    def fence_orders(self):
        """8.9.3: each order of the fence.sc operations, as a relation of the morally strong ones."""
        seen = set()
        for order in itertools.permutations(self.fences):
            if any(self.before(b, a) for a, b in itertools.combinations(order, 2)):
                continue
            rows = [0] * self.count
            for a, b in itertools.combinations(order, 2):
                if self.strongly[a][b]:
                    rows[a] |= 1 << b
            if tuple(rows) not in seen:
                seen.add(tuple(rows))
                yield rows

    def causality(self, hb, observed):
        """8.9.5: base causality order, or observation order and base causality order after it."""
        cause = list(hb)
        for r, writes in observed.items():
            for w in writes:
                cause[w] |= hb[r]
        return cause

    def coherences(self, loc, cause):
        """The coherence orders of a location that all axioms allow: each as write -> rank."""
        writes = self.writes[loc]
        reads = [r for r in self.reads if self.events[r].loc == loc]
        earlier = {w: {v for v in writes if cause[v] >> w & 1} for w in writes}  # 8.10.1
        for r in reads:
            w = self.source[r]
            if self.events[r].writes and w >= 0 and self.strongly[w][r]:
                earlier[r].add(w)
        related = {(a, b) for a in writes for b in writes if self.strongly[a][b] or (cause[a] >> b | cause[b] >> a) & 1}
        found = []

        def extend(order):
            if len(order) == len(writes):
                rank = {w: n for n, w in enumerate(order)} | {-1: -1}
                if self.allowed(writes, reads, rank, related, cause):
                    found.append(rank)
                return
            for w in writes:
                if w not in order and earlier[w] <= set(order):
                    extend(order + [w])

        extend([])
        return found

    def allowed(self, writes, reads, rank, related, cause):
        """Atomicity, SC per location and causality, 8.10, for one location."""
        from_read = {
            (r, w)
            for r in reads
            for w in writes
            if w != r and rank[self.source[r]] < rank[w] and (self.source[r] < 0 or (self.source[r], w) in related)
        }
        for r, w in from_read:
            if cause[w] >> r & 1:
                return False
            if self.events[r].writes and self.strongly[r][w] and rank[w] < rank[r]:
                return False
        rows = [0] * self.count
        here = set(reads) | set(writes)
        for a in here:
            for b in here:
                if self.before(a, b) or (a, b) in related and self.strongly[a][b] and rank[a] < rank[b]:
                    rows[a] |= 1 << b
        for r, w in from_read:
            if self.strongly[r][w]:
                rows[r] |= 1 << w
        for r in reads:
            w = self.source[r]
            if w >= 0:
                if cause[r] >> w & 1:
                    return False
                if self.strongly[w][r]:
                    rows[w] |= 1 << r
        return not cyclic(rows)

    def sequential(self, coherences, fence_order):
        """Whether one order of all operations explains the execution."""
        for ranks in itertools.product(*coherences):
            rows = [self.time[i] | fence_order[i] for i in range(self.count)]
            rank = {}
            for part in ranks:
                rank |= part
            for r, w in self.source.items():
                if w >= 0:
                    rows[w] |= 1 << r
                for v in self.writes.get(self.events[r].loc, ()):
                    if v != r and rank[v] > rank.get(w, -1):
                        rows[r] |= 1 << v
            for writes in self.writes.values():
                for a in writes:
                    for b in writes:
                        if rank[a] < rank[b]:
                            rows[a] |= 1 << b
            if not cyclic(rows):
                return True
        return False

    def same_value(self, loc):
        """Whether all writes to a location store the same value."""
        return len({e.write if not e.rmw else i for i, e in enumerate(self.events) if e.loc == loc and e.writes}) == 1

    def race(self, cause, forgiving=False):
        """The pairs of operations that race, 8.7.1."""
        found = set()
        for i, j in self.conflicts:
            if (cause[i] >> j | cause[j] >> i) & 1:
                continue
            a, b = self.events[i], self.events[j]
            if forgiving and a.writes and b.writes and self.same_value(a.loc):
                continue
            found.add(tuple(sorted([(a.thread, a.op), (b.thread, b.op)])))
        return frozenset(found)
