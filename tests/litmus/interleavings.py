"""The outcomes of a program under sequential consistency, found by taking each order of its threads' steps: a way that has nothing in
common with that of model.py, to compare it with."""

from model import TooLarge
from programs import NEVER


class Stuck(Exception):
    """Some order of the threads leaves one waiting for ever."""


def interleavings(program, limit=50000):
    """The outcomes of all orders in which the threads can take turns: a second way to find those of sequentially consistent
    executions. Raises Stuck for a program that may not end."""
    recorded = program.recorded()
    slot = {at: n for n, at in enumerate(recorded)}
    tracked = sorted(program.tracked())
    start = ((0,) * len(program.threads), (0,) * len(tracked), (NEVER,) * len(recorded), (False,) * len(program.threads))
    seen, todo, outcomes = {start}, [start], set()
    while todo:
        state = todo.pop()
        following = list(steps(program, state, slot, tracked))
        if not following:
            if any(pc < len(ops) for pc, ops in zip(state[0], program.threads)):
                raise Stuck
            outcomes.add(state[2])
        for new in following:
            if new not in seen:
                seen.add(new)
                todo.append(new)
        if len(seen) > limit:
            raise TooLarge
    return outcomes


def steps(program, state, slot, tracked):
    """The states after one step. A step that nobody else could notice is the only one."""
    pcs, memory, reads, waiting = state
    found = []
    for t, pc in enumerate(pcs):
        if pc == len(program.threads[t]):
            continue
        op = program.threads[t][pc]
        if op.kind == "fence" or op.memory and op.loc not in tracked or op.kind == "ld" and (t, pc) not in slot:
            return [(pcs[:t] + (pc + 1,) + pcs[t + 1 :], memory, reads, waiting)]
        if op.memory:
            new = access(program, state, t, slot, tracked)
        else:
            new = meet(program, state, t)
        if new:
            found.append(new)
    return found


def access(program, state, t, slot, tracked):
    pcs, memory, reads, waiting = state
    pc = pcs[t]
    ops = program.threads[t]
    op = ops[pc]
    at = tracked.index(op.loc)
    old = memory[at]
    args = [program.value(t, word) for word in op.args]
    if op.kind in ("wait", "poll") and old < args[0] or op.kind == "lock" and old != 0:
        return None
    if op.kind == "lock":
        new = 1
    elif op.kind == "st" or op.what == "exch":
        new = args[0]
    elif op.kind in ("atom", "red") and op.what == "add":
        new = old + args[0]
    elif op.what == "cas":
        new = args[1] if old == args[0] else old
    else:
        new = old
    if (t, pc) in slot:
        reads = reads[: slot[t, pc]] + (old,) + reads[slot[t, pc] + 1 :]
    pc += 1
    if pc < len(ops) and ops[pc].kind == "when":
        pc = pc + 1 if old == ops[pc].args[0] else len(ops)
    return pcs[:t] + (pc,) + pcs[t + 1 :], memory[:at] + (new,) + memory[at + 1 :], reads, waiting


def meet(program, state, t):
    """Arrives at a barrier, or leaves it when all have arrived as often."""
    pcs, memory, reads, waiting = state
    op = program.threads[t][pcs[t]]
    key, inside = program.meeting(t, op)
    if not waiting[t] and op.what != "wait":
        done = op.what == "arrive"
        pcs = pcs[:t] + (pcs[t] + done,) + pcs[t + 1 :]
        return pcs, memory, reads, waiting[:t] + (not done,) + waiting[t + 1 :]

    def arrivals(u):
        passed = program.threads[u][: pcs[u] + waiting[u]]
        return sum(o.kind == op.kind and o.what != "wait" and program.meeting(u, o)[0] == key for o in passed)

    # Who waits without having arrived himself: a cluster's `wait`, whose time is the number of those before it.
    own = arrivals(t) if op.what != "wait" else 1 + sum(o.kind == op.kind and o.what == "wait" for o in program.threads[t][: pcs[t]])
    if any(arrivals(u) < own for u in inside):
        return None
    return pcs[:t] + (pcs[t] + 1,) + pcs[t + 1 :], memory, reads, waiting[:t] + (False,) + waiting[t + 1 :]
