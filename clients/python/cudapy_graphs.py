"""cuda.core: graphs, by capture and node by node, with conditions, updates, and memory of their own."""

import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, ManagedMemoryResource, Program, ProgramOptions, launch
from cuda.core.graph import GraphCompleteOptions, GraphDefinition

from check import check, main
import ctypes

DEVICE = Device(0)
DEVICE.set_current()
STREAM = DEVICE.create_stream()

SOURCE = r"""
extern "C" __device__ __cudart_builtin__ void CUDARTAPI cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value);
extern "C" __global__ void add(int *a, int by) { *a += by; }
extern "C" __global__ void multiply(int *a, int by) { *a *= by; }
extern "C" __global__ void choose(cudaGraphConditionalHandle handle, int *a) { cudaGraphSetConditional(handle, *a); }
extern "C" __global__ void until(cudaGraphConditionalHandle handle, int *a, int end) {
    cudaGraphSetConditional(handle, *a < end);
}
extern "C" __global__ void sum(int *out, const int *a, int n) { for (int i = 0; i < n; i++) *out += a[i]; }
"""
CODE = Program(SOURCE, "c++", options=ProgramOptions(std="c++17", arch=f"sm_{DEVICE.arch}")).compile("cubin")
ADD, MULTIPLY, CHOOSE, UNTIL, SUM = (CODE.get_kernel(name) for name in ("add", "multiply", "choose", "until", "sum"))
ONE = LaunchConfig(grid=1, block=1)


class Number:
    """Integers that host and device see."""

    def __init__(self, *values):
        self.buffer = ManagedMemoryResource().allocate(4 * len(values), stream=STREAM)
        STREAM.sync()
        raw = (ctypes.c_int32 * len(values)).from_address(int(self.buffer.handle))
        self.values = np.frombuffer(raw, np.int32)
        self.values[:] = values


def run(graph, times=1):
    for _ in range(times):
        graph.launch(STREAM)
    STREAM.sync()


def captured(record):
    builder = DEVICE.create_graph_builder().begin_building()
    record(builder)
    return builder.end_building().complete()


@check
def capture():
    number = Number(1)

    def record(builder):
        launch(builder, ONE, ADD, number.buffer, np.int32(2))
        launch(builder, ONE, MULTIPLY, number.buffer, np.int32(3))

    graph = captured(record)
    assert number.values[0] == 1
    run(graph, 3)
    # x -> 3 (x + 2), three times.
    assert number.values[0] == 105


@check
def branches():
    one, two, all_of_them = Number(0), Number(0), Number(0)

    def record(builder):
        launch(builder, ONE, ADD, all_of_them.buffer, np.int32(1))
        left, right = builder.split(2)
        launch(left, ONE, ADD, one.buffer, np.int32(5))
        launch(right, ONE, ADD, two.buffer, np.int32(6))
        joined = left.join(left, right)
        launch(joined, ONE, SUM, all_of_them.buffer, one.buffer, np.int32(1))
        launch(joined, ONE, SUM, all_of_them.buffer, two.buffer, np.int32(1))

    run(captured(record))
    assert [int(number.values[0]) for number in (one, two, all_of_them)] == [5, 6, 12]


@check
def if_then_and_else():
    for start in (0, 1):
        number, out = Number(start), Number(10)

        def record(builder):
            condition = builder.create_condition()
            launch(builder, ONE, CHOOSE, condition, number.buffer)
            then, other = builder.if_else(condition)
            launch(then.begin_building(), ONE, ADD, out.buffer, np.int32(1))
            then.end_building()
            launch(other.begin_building(), ONE, MULTIPLY, out.buffer, np.int32(7))
            other.end_building()

        run(captured(record))
        assert out.values[0] == (11 if start else 70)


@check
def while_loop():
    number = Number(1)

    def record(builder):
        condition = builder.create_condition(default_value=1)
        body = builder.while_loop(condition).begin_building()
        launch(body, ONE, MULTIPLY, number.buffer, np.int32(2))
        launch(body, ONE, UNTIL, condition, number.buffer, np.int32(1000))
        body.end_building()

    run(captured(record))
    assert number.values[0] == 1024


@check
def switch():
    for case, expected in ((0, 101), (1, 102), (2, 103), (3, 100)):
        number, out = Number(case), Number(100)

        def record(builder):
            condition = builder.create_condition()
            launch(builder, ONE, CHOOSE, condition, number.buffer)
            for index, branch in enumerate(builder.switch(condition, 3)):
                launch(branch.begin_building(), ONE, ADD, out.buffer, np.int32(index + 1))
                branch.end_building()

        run(captured(record))
        assert out.values[0] == expected


@check
def loop_within_a_branch():
    number, flag = Number(3), Number(1)

    def record(builder):
        outer = builder.create_condition()
        launch(builder, ONE, CHOOSE, outer, flag.buffer)
        then = builder.if_then(outer).begin_building()
        inner = then.create_condition(default_value=1)
        body = then.while_loop(inner).begin_building()
        launch(body, ONE, ADD, number.buffer, np.int32(4))
        launch(body, ONE, UNTIL, inner, number.buffer, np.int32(20))
        body.end_building()
        then.end_building()

    run(captured(record))
    assert number.values[0] == 23


@check
def another_graph_within():
    number = Number(1)
    inner = DEVICE.create_graph_builder().begin_building()
    launch(inner, ONE, MULTIPLY, number.buffer, np.int32(5))
    inner.end_building()

    def record(builder):
        launch(builder, ONE, ADD, number.buffer, np.int32(1))
        builder.embed(inner)
        launch(builder, ONE, ADD, number.buffer, np.int32(2))

    run(captured(record))
    assert number.values[0] == 12


@check
def calls_of_the_host():
    number, seen = Number(4), []

    def record(builder):
        launch(builder, ONE, MULTIPLY, number.buffer, np.int32(2))
        builder.callback(lambda: seen.append(int(number.values[0])))
        launch(builder, ONE, ADD, number.buffer, np.int32(1))

    run(captured(record), 2)
    assert seen == [8, 18] and number.values[0] == 19


@check
def update():
    number = Number(1)

    def building(kernel, by):
        builder = DEVICE.create_graph_builder().begin_building()
        launch(builder, ONE, kernel, number.buffer, np.int32(by))
        return builder.end_building()

    graph = building(ADD, 10).complete()
    run(graph)
    graph.update(building(ADD, 100))
    run(graph)
    graph.update(building(MULTIPLY, 2))
    run(graph)
    assert number.values[0] == 222


@check
def node_by_node():
    number, other = Number(1), Number(0, 0, 0, 0)
    definition = GraphDefinition()
    first = definition.launch(ONE, ADD, number.buffer, np.int32(1))
    left = first.launch(ONE, MULTIPLY, number.buffer, np.int32(10))
    right = first.memset(other.buffer, 7, 16)
    together = left.join(right)
    together.memcpy(other.buffer, number.buffer, 4)
    assert len(definition.nodes()) == 5 and len(definition.edges()) == 5
    assert {node.type for node in definition.nodes()} >= {first.type, right.type}
    run(definition.instantiate())
    assert other.values.tolist() == [20] + [0x07070707] * 3


@check
def conditions_node_by_node():
    number = Number(1)
    definition = GraphDefinition()
    condition = definition.create_condition(default_value=1)
    loop = definition.while_loop(condition)
    loop.body.launch(ONE, MULTIPLY, number.buffer, np.int32(3)).launch(ONE, UNTIL, condition, number.buffer, np.int32(500))
    loop.launch(ONE, ADD, number.buffer, np.int32(1))
    run(definition.instantiate())
    assert number.values[0] == 730


@check
def memory_of_a_graph():
    number = Number(0)
    definition = GraphDefinition()
    memory = definition.allocate(4096)
    filled = memory.memset(memory.dptr, 1, 4096)
    added = filled.launch(ONE, SUM, number.buffer, memory.dptr, np.int32(3))
    added.deallocate(memory.dptr)
    run(definition.instantiate(), 2)
    assert number.values[0] == 6 * 0x01010101


@check
def events_within():
    number = Number(2)
    definition = GraphDefinition()
    event = DEVICE.create_event()
    definition.launch(ONE, MULTIPLY, number.buffer, np.int32(21)).record(event)
    graph = definition.instantiate(GraphCompleteOptions(upload_stream=STREAM))
    run(graph)
    event.sync()
    assert event.is_done and number.values[0] == 42


@check
def drawn():
    import pathlib
    import tempfile

    definition = GraphDefinition()
    number = Number(0)
    definition.launch(ONE, ADD, number.buffer, np.int32(1)).launch(ONE, ADD, number.buffer, np.int32(1))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "graph.dot"
        definition.debug_dot_print(str(path))
        text = path.read_text()
    assert text.startswith("digraph") and text.count("->") == 1, text


@check
def copies():
    pinned = LegacyPinnedMemoryResource()
    here, there, back = pinned.allocate(400, stream=STREAM), DEVICE.allocate(400, stream=STREAM), pinned.allocate(400, stream=STREAM)
    STREAM.sync()
    first, last = (
        np.frombuffer((ctypes.c_int32 * 100).from_address(int(buffer.handle)), np.int32) for buffer in (here, back)
    )

    def record(builder):
        there.copy_from(here, stream=builder)
        launch(builder, ONE, ADD, there, np.int32(5))
        there.copy_to(back, stream=builder)

    graph = captured(record)
    for seed in range(3):
        first[:] = np.arange(100) * seed + 1
        run(graph)
        assert last.tolist() == [6, *first[1:]]


main()
