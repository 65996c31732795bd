"""A program of the model as a PTX kernel, and many of them as a module.

A kernel's parameters are the address of its locations in global memory, four bytes each and side by side, and that of its results:
of each thread eight numbers, the values of its recorded reads. Threads find their code by %ctaid and %tid; threads with the same
operations share one piece of code, as the lanes of real programs do. All other threads take part in the barriers of their block and
leave.
"""

import re

RESULTS = 8  # of each thread; the last one keeps weak loads alive

HEADER = """.version 8.6
.target sm_90
.address_size 64
"""


class Module:
    """The text of a module, and what its lines are; of programs with numbers, which their kernels are named by."""

    def __init__(self, programs):
        self.lines = HEADER.splitlines()
        self.kernels = {}  # name of the kernel -> program
        self.operations = {}  # number of the line -> set of (thread, index of the operation)
        for n, program in programs:
            name = f"litmus_{n}"
            self.kernels[name] = program
            Kernel(self, name, program)

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    def kernel_text(self, name):
        """The lines of one kernel, with their numbers in the module."""
        start = next(n for n, line in enumerate(self.lines) if f".entry {name}(" in line)
        end = self.lines.index("}", start)
        return "\n".join(f"{n + 1:5}  {self.lines[n]}" for n in range(start, end + 1))


def blocks(program):
    """The number of blocks."""
    count = max(place[0] for place in program.places) + 1
    return count + count % 2 if program.cluster else count


def threads(program):
    """The number of threads of a block."""
    return 32 * (max(place[1] for place in program.places) + 1)


class Kernel:
    def __init__(self, module, name, program):
        self.module, self.program = module, program
        self.locations = sorted({op.loc for ops in program.threads for op in ops if op.memory})
        self.shared = [loc for loc in self.locations if "@" in loc]
        self.remote = any("@" in op.loc and op.loc.split("@")[1] != str(place[0]) for place, ops in self.each_thread() for op in ops)
        self.pieces = {}  # code -> threads
        for t, (place, ops) in enumerate(self.each_thread()):
            own = place[0] if any("@" in op.loc for op in ops) else None
            self.pieces.setdefault((tuple(op.text for op in ops), own), []).append(t)
        self.start(name)
        for n, members in enumerate(self.pieces.values()):
            self.piece(n, members)
        self.finish()

    def each_thread(self):
        return zip(self.program.places, self.program.threads)

    def put(self, *lines):
        self.module.lines += ["    " + line for line in lines]

    def label(self, name):
        self.module.lines.append(name + ":")

    def start(self, name):
        self.module.lines += [f".visible .entry {name}(.param .u64 memory, .param .u64 results)"]
        if self.program.cluster:
            self.module.lines += [".reqnctapercluster 2, 1, 1"]
        self.module.lines += ["{"]
        size = 4 * len(self.shared)
        if self.shared:
            self.put(f".shared .align 4 .b8 own[{size}];")
        self.put(
            f".reg .pred %p; .reg .b32 %read<{RESULTS}>, %key, %me, %old, %sum, %there<{len(self.shared) + 1}>;",
            ".reg .b64 %memory, %results, %wide;",
            "ld.param.u64 %memory, [memory];",
            "ld.param.u64 %results, [results];",
            "mov.u32 %key, %ctaid.x;",
            "mov.u32 %me, %ntid.x;",
            "mov.u32 %old, %tid.x;",
            "mad.lo.u32 %key, %key, %me, %old;",
        )
        if self.shared and any(op.strong for ops in self.program.threads for op in ops if "@" in op.loc):
            self.put("setp.ne.u32 %p, %old, 0;", "@%p bra ZEROED;")
            for n in range(len(self.shared)):
                self.put(f"st.shared.u32 [own+{4 * n}], 0;")
            self.label("ZEROED")
            self.put("barrier.sync 0;")
        self.meet_cluster()
        where = {t: n for n, members in enumerate(self.pieces.values()) for t in members}
        for t, (block, warp, lane) in enumerate(self.program.places):
            key = block * threads(self.program) + 32 * warp + lane
            self.put(f"mov.u32 %me, {100 + t};", f"setp.eq.u32 %p, %key, {key};", f"@%p bra THREAD_{where[t]};")
        self.idle()

    def meet_cluster(self):
        """A block's shared memory is there from when the block has started until it ends."""
        if self.remote:
            self.put("barrier.cluster.arrive;", "barrier.cluster.wait;")

    def idle(self):
        """The threads that are not of the program: they come to the barriers that the thread comes to in whose warp, block or
        cluster they are."""
        barriers = {}
        for t, (place, ops) in enumerate(self.each_thread()):
            own = [op for op in ops if op.kind in ("bar", "cluster")]
            barriers.setdefault(place[:2], own)
        size = threads(self.program)
        for block in range(blocks(self.program)):
            for warp in range(size // 32):
                mine = barriers.get((block, warp))
                if mine is None:
                    # A barrier of the whole block, and of the cluster.
                    like = [own for (b, _), own in barriers.items() if b == block]
                    like = like or [own for (b, _), own in barriers.items() if self.program.cluster and b // 2 == block // 2]
                    there = any(b == block for b, _ in barriers)
                    mine = [op for op in (like[0] if like else []) if op.kind == "cluster" or there and op.args[0] == 0]
                if mine:
                    self.put("shr.u32 %old, %key, 5;", f"setp.ne.u32 %p, %old, {(block * size + 32 * warp) // 32};")
                    after = f"IDLE_{block}_{warp}"
                    self.put(f"@%p bra {after};")
                    self.put(*map(self.barrier, mine))
                    self.label(after)
        self.put("bra LEAVE;")

    def barrier(self, op):
        if op.kind == "cluster":
            return f"barrier.{op.text};"
        name, count = op.args
        # Threads come one by one, so these are not the aligned forms, of which `bar` is short.
        return f"barrier.{op.what} {name}, {count};" if count else f"barrier.{op.what} {name};"

    def piece(self, n, members):
        program = self.program
        first = members[0]
        self.label(f"THREAD_{n}")
        self.put(*(f"mov.u32 %read{k}, 0xffffffff;" for k in range(RESULTS)), "mov.u32 %sum, 0;")
        slots = [i for t, i in program.recorded() if t == first]
        assert len(slots) < RESULTS, "too many reads"
        block = program.places[first][0]
        for k, loc in enumerate(self.shared):
            if loc.split("@")[1] != str(block):
                rank = int(loc.split("@")[1]) % 2
                self.put(f"mov.u32 %there{k}, own;", f"mapa.shared::cluster.u32 %there{k}, %there{k}, {rank};")
        ops = program.threads[first]
        for i, op in enumerate(ops):
            value = f"%read{slots.index(i)}" if i in slots else "%old"
            self.operation(op, block, value, f"AGAIN_{n}_{i}", {(t, i) for t in members})
            if op.kind == "when":
                self.put(f"setp.ne.u32 %p, {self.last}, {op.args[0]};", f"@%p bra DONE_{n};")
            elif op.memory:
                self.last = value
        self.label(f"DONE_{n}")
        self.put("sub.u32 %me, %me, 100;", f"mad.wide.u32 %wide, %me, {4 * RESULTS}, %results;")
        for k in range(len(slots)):
            self.put(f"st.global.u32 [%wide+{4 * k}], %read{k};")
        self.put(f"st.global.u32 [%wide+{4 * (RESULTS - 1)}], %sum;", "bra LEAVE;")

    def operation(self, op, block, value, again, which):
        if op.kind in ("bar", "cluster"):
            self.put(self.barrier(op))
        elif op.kind == "fence":
            self.put(f"{op.text};")
        elif op.kind == "warp":
            self.put(f"bar.warp.sync {op.args[0]:#x};")
        elif op.kind == "collective":
            if op.what == "shfl":
                self.put(f"shfl.sync.idx.b32 %old, %me, 0, 31, {op.args[0]:#x};")
            else:
                self.put("setp.eq.u32 %p, %me, 100;", f"vote.sync.ballot.b32 %old, %p, {op.args[0]:#x};")
            self.put("xor.b32 %sum, %sum, %old;")
        elif op.memory:
            if op.spins:
                self.label(again)
            self.access(op, block, value)
            self.module.operations[len(self.module.lines)] = which
            if op.spins:
                until = ("ne", 0) if op.kind == "lock" else ("lt", op.args[0])
                self.put(f"setp.{until[0]}.u32 %p, {value}, {until[1]};", f"@%p bra {again};")
            elif op.kind == "ld":
                self.put(f"xor.b32 %sum, %sum, {value};")

    def access(self, op, block, value):
        if op.step >= 0:
            space, address = self.neighbour(op)
        elif "@" in op.loc:
            n = self.shared.index(op.loc)
            own = op.loc.split("@")[1] == str(block)
            space, address = ("shared", f"[own+{4 * n}]") if own else ("shared::cluster", f"[%there{n}+{4 * n}]")
        else:
            space, address = "global", f"[%memory+{4 * self.locations.index(op.loc)}]"
        name = {"wait": "ld", "poll": "atom", "lock": "atom"}.get(op.kind, op.kind)
        order = "" if op.sem == "weak" else ".volatile" if op.sem == "volatile" else f".{op.sem}.{op.scope}"
        args = ["%me" if word == "t" else str(word) for word in op.args]
        head = f"{name}{order}.{space}"
        if name == "ld":
            self.put(f"{head}.u32 {value}, {address};")
        elif name == "st":
            self.put(f"{head}.u32 {address}, {args[0]};")
        elif op.kind == "red":
            self.put(f"{head}.add.u32 {address}, {args[0]};")
        elif op.what == "cas":
            old, new = args or ("0", "1")
            self.put(f"{head}.cas.b32 {value}, {address}, {old}, {new};")
        elif op.what == "exch":
            self.put(f"{head}.exch.b32 {value}, {address}, {args[0]};")
        else:
            self.put(f"{head}.add.u32 {value}, {address}, {0 if op.kind == 'poll' else args[0]};")

    def neighbour(self, op):
        """The word of the thread that is so many steps further."""
        count = len(self.program.threads)
        space, words = ("shared", self.shared) if "@" in op.loc else ("global", self.locations)
        first = words.index(re.sub(r"\d+", "0", op.loc, count=1))
        self.put(f"add.u32 %old, %me, {op.step - 100};", f"rem.u32 %old, %old, {count};")
        if space == "shared":
            self.put("mov.u32 %there0, own;", f"mad.lo.u32 %there0, %old, 4, %there0;")
            return space, f"[%there0+{4 * first}]"
        self.put("mad.wide.u32 %wide, %old, 4, %memory;")
        return space, f"[%wide+{4 * first}]"

    def finish(self):
        self.label("LEAVE")
        self.meet_cluster()
        self.put("ret;")
        self.module.lines.append("}")
