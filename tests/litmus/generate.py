"""Random programs: threads in random places that hand data to each other in some right way, and then, mostly, one element made weaker,
left out or moved. What comes of it the model decides."""

from interleavings import Stuck, interleavings
from model import TooLarge, executions
from programs import Program, parse

MOST_CANDIDATES = 4000  # of executions: what takes longer is left out
NARROWER = {"sys": "gpu", "gpu": "cluster", "cluster": "cta"}
WEAKER = {
    "acquire": ["relaxed"],
    "release": ["relaxed"],
    "acq_rel": ["acquire", "release", "relaxed"],
    "sc": ["acq_rel", "acquire", "release"],
}


class Maker:
    """A program under construction. Operations are added in an order in which they could run, so nothing waits for ever."""

    def __init__(self, random):
        self.random = random
        self.cluster = random.random() < 0.2
        self.places = self.some_places()
        self.bodies = [[] for _ in self.places]
        self.count = 0
        self.named = 0  # barriers, each used once: idle lanes must not arrive for the next time
        self.alike = False

    def some_places(self):
        count = self.random.choice([2, 2, 2, 3, 3, 4])
        blocks = 4 if self.cluster else 2
        near = self.random.random() < 0.4
        found = []
        while len(found) < count:
            place = (0 if near else self.random.randrange(blocks), self.random.randrange(2), self.random.randrange(3))
            if place not in found:
                found.append(place)
        # Blocks are numbered without gaps, as long as no cluster would change.
        if not self.cluster:
            used = sorted({place[0] for place in found})
            found = [(used.index(block), warp, lane) for block, warp, lane in found]
        return found

    def program(self, name):
        bodies = [[parse(text, t, len(self.bodies)) for text in body] for t, body in enumerate(self.bodies)]
        return Program(name, tuple(self.places), tuple(map(tuple, bodies)), self.cluster)

    def fresh(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def number(self):
        self.count += 1
        return self.count + 10

    def put(self, thread, *texts):
        self.bodies[thread] += texts

    def near(self, *threads):
        """The narrowest scope that has all of these threads."""
        blocks = {self.places[t][0] for t in threads}
        if len(blocks) == 1:
            return "cta"
        return "cluster" if self.cluster and len({b // 2 for b in blocks}) == 1 else "gpu"

    def scope(self, *threads):
        scopes = ["cta", "cluster", "gpu", "sys"]
        return self.random.choice(scopes[scopes.index(self.near(*threads)) :][:2])

    def location(self, letter, threads):
        """In global memory, or in shared memory where all of these threads reach it."""
        name = self.fresh(letter)
        if self.near(*threads) in ("cta", "cluster") and self.random.random() < 0.4:
            name += f"@{self.places[self.random.choice(threads)][0]}"
        return name

    def touch(self, thread, loc):
        for _ in range(self.random.choice([1, 1, 2])):
            self.put(thread, f"ld {loc}" if self.random.random() < 0.45 else f"st {loc} {self.number()}")

    def all_of(self, inside):
        return [t for t, place in enumerate(self.places) if inside(place)]

    def mask(self, threads):
        return sum(1 << self.places[t][2] for t in threads)

    def hand_over(self, a, b):
        """What b does from now on comes after what a did."""
        (block, warp, _), other = self.places[a], self.places[b]
        ways = [self.flag] * 3
        if block == other[0]:
            ways += [self.block_barrier] + [self.named_barrier] * (warp != other[1])
            if warp == other[1]:
                ways += [self.warp_barrier, self.warp_barrier]
        elif self.near(a, b) == "cluster":
            ways += [self.cluster_barrier]
        self.random.choice(ways)(a, b)

    def flag(self, a, b):
        f, pick = self.location("f", [a, b]), self.random.choice
        s, t, u, v = (self.scope(a, b) for _ in range(4))
        value = 1
        kind = self.random.randrange(7)
        if kind == 0:
            self.put(a, f"st.release.{s} {f} 1")
        elif kind == 1:
            self.put(a, f"fence.{pick(['acq_rel', 'sc', 'release'])}.{s}", f"st.relaxed.{t} {f} 1")
        elif kind == 2:
            self.put(a, f"fence.{pick(['acq_rel', 'sc'])}.{s}", f"st.volatile {f} 1")
        elif kind == 3:
            self.put(a, f"atom.{pick(['release', 'acq_rel'])}.{s}.{pick(['add', 'exch'])} {f} 1")
        elif kind == 4:
            self.put(a, f"red.release.{s}.add {f} 1")
        elif kind == 5:
            self.put(a, f"fence.acq_rel.{s}", f"{pick(['red', 'atom'])}.relaxed.{t}.add {f} 1")
        else:
            value = 2
            self.put(a, f"st.release.{s} {f} 1", f"st.relaxed.{t} {f} 2")
        others = [t for t in range(len(self.places)) if t not in (a, b) and ("@" not in f or self.near(a, b, t) != "gpu")]
        if others and kind in (3, 4, 5) and self.random.random() < 0.3:
            # Another thread's atomic goes on with what the release began.
            self.put(pick(others), f"{pick(['red', 'atom'])}.relaxed.gpu.add {f} 1")
            value = 2
        kind = self.random.randrange(6)
        if kind == 0:
            self.put(b, f"wait.acquire.{u} {f} {value}")
        elif kind == 1:
            self.put(b, f"wait.relaxed.{u} {f} {value}", f"fence.{pick(['acq_rel', 'sc', 'acquire'])}.{v}")
        elif kind == 2:
            self.put(b, f"wait.volatile {f} {value}", f"fence.{pick(['acq_rel', 'sc'])}.{v}")
        elif kind == 3:
            self.put(b, f"poll.{pick(['acquire', 'acq_rel'])}.{u} {f} {value}")
        elif kind == 4:
            self.put(b, f"wait.relaxed.{u} {f} {value}", f"ld.acquire.{v} {f}")
        else:
            self.put(b, f"poll.relaxed.{u} {f} {value}", f"fence.acq_rel.{v}")

    def block_barrier(self, a, _):
        for t in self.all_of(lambda place: place[0] == self.places[a][0]):
            self.put(t, "bar")

    def named_barrier(self, a, b):
        self.named += 1
        number = self.named
        what = self.random.choice(["arrive", "sync"])
        for t in self.all_of(lambda place: place[:2] == self.places[a][:2]):
            self.put(t, f"bar.{what} {number} 64")
        for t in self.all_of(lambda place: place[:2] == self.places[b][:2]):
            self.put(t, f"bar.sync {number} 64")

    def warp_barrier(self, a, b):
        members = self.all_of(lambda place: place[:2] == self.places[a][:2])
        members = [t for t in members if t in (a, b) or self.random.random() < 0.6]
        for t in members:
            self.put(t, f"warp {self.mask(members):#x}")

    def cluster_barrier(self, a, _):
        members = self.all_of(lambda place: place[0] // 2 == self.places[a][0] // 2)
        for t in members:
            self.put(t, "cluster.arrive")
        for t in members:
            self.put(t, "cluster.wait")

    # The kinds of programs.

    def chain(self):
        order = list(range(len(self.places)))
        self.random.shuffle(order)
        if len(order) == 2 and self.random.random() < 0.3:
            order += order[:1]
        data = [self.location("d", sorted(set(order))) for _ in range(self.random.choice([1, 1, 2]))]
        for n, t in enumerate(order):
            if n:
                self.hand_over(order[n - 1], t)
            self.touch(t, self.random.choice(data))

    def lock(self):
        everyone = range(len(self.places))
        m, d = self.location("m", everyone), self.location("d", everyone)
        acquire = self.random.choice([["lock.acquire.S M"], ["lock.relaxed.S M", "fence.acq_rel.S"], ["lock.acq_rel.S M"]])
        release = self.random.choice(
            [["st.release.S M 0"], ["fence.acq_rel.S", "st.relaxed.S M 0"], ["fence.sc.S", "st.volatile M 0"], ["atom.release.S.exch M 0"]]
        )
        inside = self.random.choice([["ld D", "st D t"], ["st D t"]])
        s = self.scope(*everyone)
        for t in everyone:
            self.put(t, *(text.replace("S", s).replace("M", m).replace("D", d) for text in acquire + inside + release))

    def counter(self):
        everyone = range(len(self.places))
        c, s = self.location("c", everyone), self.scope(*everyone)
        data = [self.location("d", everyone) for _ in everyone]
        before, after = self.random.choice(
            [
                ([f"fence.acq_rel.{s}", f"atom.relaxed.{s}.add {c} 1"], [f"fence.acq_rel.{s}"]),
                ([f"fence.sc.{s}", f"atom.relaxed.{s}.add {c} 1"], [f"fence.sc.{s}"]),
                ([f"atom.acq_rel.{s}.add {c} 1"], []),
            ]
        )
        waits = self.random.random() < 0.4
        for t in everyone:
            self.put(t, f"st {data[t]} {self.number()}", *before)
        for t in everyone:
            self.put(t, f"wait.relaxed.{s} {c} {len(data)}" if waits else f"when {len(data) - 1}")
            self.put(t, *(after or [f"fence.acquire.{s}"] if waits else after), *(f"ld {d}" for d in data))

    def phases(self):
        """The threads of each block between barriers."""
        data = [self.location("d", range(len(self.places))) for _ in range(2)]
        for phase in range(self.random.choice([2, 3])):
            if phase:
                for a in {place[0]: t for t, place in enumerate(self.places)}.values():
                    self.block_barrier(a, a)
            for loc in data:
                if self.random.random() < 0.5:
                    self.put(self.random.randrange(len(self.places)), f"st {loc} {self.number()}")
                else:
                    for t in range(len(self.places)):
                        self.put(t, f"ld {loc}")

    def anything(self):
        """A few operations on two locations, most of them strong."""
        everyone = range(len(self.places))
        locs = [self.location("x", everyone) for _ in range(2)]
        pick = self.random.choice
        for t in everyone:
            for _ in range(self.random.choice([2, 3]) if len(everyone) < 4 else 2):
                loc, s, n = pick(locs), pick(["cta", "gpu", "gpu"]), self.number()
                self.put(t, pick([
                    f"st {loc} {n}", f"ld {loc}", f"st.relaxed.{s} {loc} {n}", f"ld.relaxed.{s} {loc}", f"st.release.{s} {loc} {n}",
                    f"ld.acquire.{s} {loc}", f"atom.acq_rel.{s}.exch {loc} {n}", f"atom.relaxed.{s}.add {loc} {n}", f"fence.acq_rel.{s}",
                    f"ld.volatile {loc}", f"fence.sc.{s}", f"atom.acquire.{s}.cas {loc} 0 {n}",
                    f"atom.relaxed.{s}.cas {loc} 0 {n}", f"atom.acq_rel.{s}.cas {loc} 0 {n}", f"atom.release.{s}.cas {loc} 7 {n}",
                    f"red.relaxed.{s}.add {loc} {n}", f"red.release.{s}.add {loc} {n}",
                ]))  # fmt: skip

    def converged(self):
        """All threads the same, on words of their own and their neighbours', with something that orders in between."""
        self.alike, self.cluster = True, False
        near, count = self.random.random() < 0.8, self.random.choice([2, 3, 4])
        warps = self.random.choice([[(0, lane) for lane in range(count)], [(n % 2, n // 2) for n in range(count)], [(n, 0) for n in range(count)]])
        self.places = [(0, warp, lane) if near else (lane, warp, 0) for warp, lane in warps]
        self.bodies = [[] for _ in self.places]
        shared = "@0" if near and self.random.random() < 0.6 else ""
        for n in range(self.random.choice([2, 3, 3, 4])):
            access = self.random.choice(["st d+{}{} t", "ld d+{}{}"]).format(self.random.randrange(count), shared)
            between = self.order_of_all() if n else []
            for t in range(count):
                self.put(t, *between, access)

    def order_of_all(self):
        """What all threads do alike to wait for each other, or a part of them, or nothing."""
        everyone = range(len(self.places))
        order = self.random.choice(["bar", "bar", "warp", "warp", "collective", "counter", "none"])
        if order == "bar":
            return ["bar"]
        if order == "counter":
            c, s = self.fresh("c"), self.scope(*everyone)
            return [f"fence.acq_rel.{s}", f"red.relaxed.{s}.add {c} 1", f"wait.relaxed.{s} {c} {len(everyone)}", f"fence.acq_rel.{s}"]
        masks = {self.mask(self.all_of(lambda other: other[:2] == place[:2])) for place in self.places}
        if order == "none" or len(masks) > 1:
            return []
        what = "warp" if order == "warp" else self.random.choice(["shfl", "vote"])
        return [f"{what} {masks.pop():#x}"]

    # What is made wrong.

    def weaken(self):
        """Makes one element weaker, leaves one out, or moves one, if there is one: in one thread, or in all that are alike."""
        before = [list(body) for body in self.bodies]
        how = [self.narrow, self.narrow, self.relax, self.relax, self.relax, self.drop, self.drop, self.move, self.move, self.once]
        self.random.choice(how)()
        changed = [body for body, old in zip(self.bodies, before) if body != old]
        if self.alike and changed:
            self.bodies = [list(changed[0]) for _ in self.bodies]

    def somewhere(self, wanted):
        found = [(t, i) for t, body in enumerate(self.bodies) for i, text in enumerate(body) if wanted(parse(text))]
        return self.random.choice(found) if found else None

    def change(self, at, old, new):
        t, i = at
        self.bodies[t][i] = self.bodies[t][i].replace(f".{old}", f".{new}", 1)

    def narrow(self):
        at = self.somewhere(lambda op: op.scope in NARROWER and op.sem != "volatile")
        if not at:
            return
        scope = parse(self.bodies[at[0]][at[1]]).scope
        self.change(at, scope, NARROWER[scope])

    def relax(self):
        at = self.somewhere(lambda op: op.sem in WEAKER and (op.kind != "fence" or op.sem not in ("acquire", "release")))
        if self.random.random() < 0.25:
            weak = self.somewhere(lambda op: op.kind == "st" and op.sem in ("relaxed", "volatile", "release"))
            if weak:
                op = parse(self.bodies[weak[0]][weak[1]])
                self.bodies[weak[0]][weak[1]] = f"st {op.loc} {op.args[0]}"
                return
        if not at:
            at = self.somewhere(lambda op: op.kind == "cluster" and op.what == "arrive" and not op.sem)
            if at:
                self.bodies[at[0]][at[1]] = "cluster.arrive.relaxed"
            return
        op = parse(self.bodies[at[0]][at[1]])
        weaker = [sem for sem in WEAKER[op.sem] if op.kind != "fence" or sem != "relaxed"]
        self.change(at, op.sem, self.random.choice(weaker))

    def drop(self):
        """A fence, or a barrier in all threads that take part."""
        at = self.somewhere(lambda op: op.kind in ("fence", "bar", "warp", "collective"))
        if not at:
            return
        t, i = at
        text = self.bodies[t][i]
        op = parse(text)
        if op.kind == "fence":
            del self.bodies[t][i]
            return
        program = self.program("")
        key, members = program.meeting(t, op)
        time = sum(o.kind == op.kind and program.meeting(t, o)[0] == key for o in map(parse, self.bodies[t][:i]))
        for u in members:
            places = [k for k, o in enumerate(map(parse, self.bodies[u])) if o.kind == op.kind and program.meeting(u, o)[0] == key]
            if time < len(places):
                del self.bodies[u][places[time]]

    def move(self):
        """Exchanges a weak access and its neighbour."""
        at = self.somewhere(lambda op: op.memory and not op.strong)
        if not at:
            return
        t, i = at
        body = self.bodies[t]
        j = i + self.random.choice([-1, 1])
        if not 0 <= j < len(body) or "when" in body[i] + body[j] or body[i] == body[j]:
            return
        body[i], body[j] = body[j], body[i]

    def once(self):
        """Looks once instead of waiting, and goes on only if the value was there."""
        at = self.somewhere(lambda op: op.kind == "wait")
        if not at:
            return
        t, i = at
        op = parse(self.bodies[t][i])
        if any(parse(text).kind in ("bar", "cluster", "warp", "collective", "when") for text in self.bodies[t][i:]):
            return
        # Others might wait for what this thread does later.
        if any(o.kind not in ("ld", "fence") and o.loc and o.strong for o in map(parse, self.bodies[t][i + 1 :])):
            return
        self.bodies[t][i] = self.bodies[t][i].replace("wait", "ld", 1).rsplit(" ", 1)[0]
        self.bodies[t].insert(i + 1, f"when {op.args[0]}")


def usable(program):
    """Whether it has something to look at, ends in every order, and is small enough to look at in all."""
    locations = {op.loc for ops in program.threads for op in ops if op.memory}
    if len(locations) > 16 or any(sum(program.records(t, i) for i in range(len(ops))) > 7 for t, ops in enumerate(program.threads)):
        return None
    try:
        interleavings(program)
        return executions(program, MOST_CANDIDATES)
    except (Stuck, TooLarge):
        return None


def generate(random, count):
    """Programs with their executions."""
    found, seen = [], set()
    kinds = [Maker.chain] * 5 + [Maker.lock, Maker.counter, Maker.phases, Maker.anything, Maker.converged, Maker.converged]
    while len(found) < count:
        maker = Maker(random)
        kind = random.choice(kinds)
        kind(maker)
        for _ in range(random.choice([0, 0, 1, 1, 1, 1, 2])):
            maker.weaken()
        program = maker.program(f"random {len(found)}, {kind.__name__}")
        key = (program.places, program.threads)
        all_executions = key not in seen and usable(program)
        if all_executions:
            seen.add(key)
            found.append((program, all_executions))
    return found
