"""NVIDIA's NCCL between the devices of one process and between processes: integers, so that every sum is exact."""

import ctypes
import os
import pathlib
import subprocess
import sys
import threading

os.environ.setdefault("MARGAY_DEVICES", "4")

import numpy as np  # noqa: E402
import nvidia  # noqa: E402

from check import check, main  # noqa: E402


def library(*place):
    folders = [pathlib.Path(folder) for folder in nvidia.__path__]
    return ctypes.CDLL(next(str(folder.joinpath(*place)) for folder in folders if folder.joinpath(*place).exists()))


RUNTIME = library("cu13", "lib", "libcudart.so.13")
NCCL = library("nccl", "lib", "libnccl.so.2")
NCCL.ncclGetErrorString.restype = ctypes.c_char_p
NCCL.ncclGetLastError.restype = ctypes.c_char_p

# Of nccl.h.
SUM, PRODUCT, MAX, MIN, AVERAGE = range(5)
TYPES = {"int8": 0, "uint8": 1, "int32": 2, "int64": 4, "float16": 6, "float32": 7, "float64": 8}
Pointer, Size = ctypes.c_void_p, ctypes.c_size_t


class Id(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def runtime(name, *arguments):
    result = getattr(RUNTIME, name)(*arguments)
    assert result == 0, f"{name}: {result}"


def nccl(name, *arguments):
    result = getattr(NCCL, name)(*arguments)
    assert result == 0, f"{name}: {NCCL.ncclGetErrorString(result)}, {NCCL.ncclGetLastError(None)}"


class Array:
    """An array on a device."""

    def __init__(self, device, values):
        self.device, self.shape, self.kind = device, values.shape, values.dtype
        self.place = Pointer()
        runtime("cudaSetDevice", device)
        runtime("cudaMalloc", ctypes.byref(self.place), Size(values.nbytes))
        runtime("cudaMemcpy", self.place, Pointer(values.ctypes.data), Size(values.nbytes), 1)

    def get(self):
        values = np.empty(self.shape, self.kind)
        runtime("cudaSetDevice", self.device)
        runtime("cudaMemcpy", Pointer(values.ctypes.data), self.place, Size(values.nbytes), 2)
        runtime("cudaFree", self.place)
        return values


class Group:
    """Devices 0, 1 … that talk to each other, from one thread."""

    def __init__(self, devices):
        self.devices = range(devices)
        self.members = (Pointer * devices)()
        nccl("ncclCommInitAll", self.members, devices, None)
        self.streams = []
        for device in self.devices:
            stream = Pointer()
            runtime("cudaSetDevice", device)
            runtime("cudaStreamCreate", ctypes.byref(stream))
            self.streams.append(stream)

    def call(self, each):
        """Runs `each` for all devices as one operation, and waits for it."""
        nccl("ncclGroupStart")
        for device in self.devices:
            each(device, Pointer(self.members[device]), self.streams[device])
        nccl("ncclGroupEnd")
        for device in self.devices:
            runtime("cudaSetDevice", device)
            runtime("cudaStreamSynchronize", self.streams[device])

    def collective(self, name, given, result_shape, *rest, count):
        """One of the calls that take an array and give one: (given, result, count, rest …, member, stream)."""
        arrays = [Array(device, given[device]) for device in self.devices]
        results = [Array(device, np.zeros(result_shape, given[0].dtype)) for device in self.devices]

        def each(device, member, stream):
            nccl(name, arrays[device].place, results[device].place, Size(count), TYPES[given[0].dtype.name], *rest, member, stream)

        self.call(each)
        for array in arrays:
            array.get()
        return [result.get() for result in results]


# The first one takes long: NCCL asks for the attributes of all of its kernels, which loads them.
GROUPS = {}


def group(devices):
    if devices not in GROUPS:
        GROUPS[devices] = Group(devices)
    return GROUPS[devices]


def numbers(devices, shape, kind="float32", most=50):
    random = np.random.default_rng(4)
    return [random.integers(0, most, shape).astype(kind) for _ in range(devices)]


def sums(kind, length):
    for devices in (2, 4):
        given = numbers(devices, length, kind, 20)
        found = group(devices).collective("ncclAllReduce", given, length, SUM, count=length)
        for result in found:
            np.testing.assert_array_equal(result, np.sum(given, axis=0, dtype=kind))


@check
def all_reduce():
    for length in (1, 1000, 300_001):
        sums("float32", length)


@check
def all_reduce_of_other_types():
    for kind in ("int8", "int32", "int64", "float16", "float64"):
        sums(kind, 777)


@check
def other_reductions():
    for devices in (2, 4):
        given = numbers(devices, 500, "int32", 9)
        for operation, expected in (
            (PRODUCT, np.prod(given, axis=0, dtype=np.int32)),
            (MAX, np.max(given, axis=0)),
            (MIN, np.min(given, axis=0)),
        ):
            for result in group(devices).collective("ncclAllReduce", given, 500, operation, count=500):
                np.testing.assert_array_equal(result, expected)
        given = [4 * array.astype(np.float32) for array in given]
        for result in group(devices).collective("ncclAllReduce", given, 500, AVERAGE, count=500):
            np.testing.assert_array_equal(result, np.mean(given, axis=0))


@check
def broadcast():
    for devices in (2, 4):
        given = numbers(devices, 3000)
        for root in (0, devices - 1):
            for result in group(devices).collective("ncclBroadcast", given, 3000, root, count=3000):
                np.testing.assert_array_equal(result, given[root])


@check
def reduce_to_one():
    given = numbers(4, 3000)
    found = group(4).collective("ncclReduce", given, 3000, SUM, 2, count=3000)
    np.testing.assert_array_equal(found[2], np.sum(given, axis=0))


@check
def all_gather():
    for devices in (2, 4):
        given = numbers(devices, 900)
        for result in group(devices).collective("ncclAllGather", given, devices * 900, count=900):
            np.testing.assert_array_equal(result, np.concatenate(given))


@check
def reduce_scatter():
    for devices in (2, 4):
        given = numbers(devices, devices * 700)
        found = group(devices).collective("ncclReduceScatter", given, 700, SUM, count=700)
        np.testing.assert_array_equal(np.concatenate(found), np.sum(given, axis=0))


def around(devices, length):
    """Each device sends to the next one."""
    given = numbers(devices, length)
    arrays = [Array(device, given[device]) for device in range(devices)]
    results = [Array(device, np.zeros(length, np.float32)) for device in range(devices)]

    def each(device, member, stream):
        kind = TYPES["float32"]
        nccl("ncclSend", arrays[device].place, Size(length), kind, (device + 1) % devices, member, stream)
        nccl("ncclRecv", results[device].place, Size(length), kind, (device - 1) % devices, member, stream)

    group(devices).call(each)
    for device, result in enumerate(results):
        np.testing.assert_array_equal(result.get(), given[device - 1])


@check
def send_and_receive():
    around(2, 1000)
    around(4, 200_000)


@check
def everybody_to_everybody():
    for devices in (2, 4):
        given = numbers(devices, (devices, 300))
        for me, result in enumerate(group(devices).collective("ncclAlltoAll", given, (devices, 300), count=300)):
            np.testing.assert_array_equal(result, [array[me] for array in given])


def member(rank, ranks, device, identity):
    """One member of a group that others join from elsewhere; gives what its sum is."""
    runtime("cudaSetDevice", device)
    joined = Pointer()
    nccl("ncclCommInitRank", ctypes.byref(joined), ranks, identity, rank)
    array = Array(device, np.full(1000, rank + 1, np.float32))
    nccl("ncclAllReduce", array.place, array.place, Size(1000), TYPES["float32"], SUM, joined, None)
    runtime("cudaDeviceSynchronize")
    result = array.get()
    nccl("ncclCommDestroy", joined)
    return result


@check
def a_thread_for_each_device():
    identity = Id()
    nccl("ncclGetUniqueId", ctypes.byref(identity))
    found = [None] * 2

    def run(rank):
        found[rank] = member(rank, 2, rank, identity)

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(250)
    for result in found:
        np.testing.assert_array_equal(result, np.full(1000, 3))


@check
def a_process_for_each_device():
    identity = Id()
    nccl("ncclGetUniqueId", ctypes.byref(identity))
    command = [sys.executable, __file__, "--member"]
    text = bytes(identity).hex()
    processes = [
        subprocess.Popen([*command, str(rank), text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for rank in range(2)
    ]
    for process in processes:
        said = process.communicate(timeout=250)[0].decode()
        assert process.returncode == 0 and said.split()[-1:] == ["right"], said


@check
def captured_in_a_graph():
    both = group(2)
    given = numbers(2, 400)
    arrays = [Array(device, given[device]) for device in both.devices]
    graphs = []
    for device in both.devices:
        runtime("cudaSetDevice", device)
        runtime("cudaStreamBeginCapture", both.streams[device], 2)
    nccl("ncclGroupStart")
    for device in both.devices:
        nccl("ncclAllReduce", arrays[device].place, arrays[device].place, Size(400), TYPES["float32"], SUM,
             Pointer(both.members[device]), both.streams[device])  # fmt: skip
    nccl("ncclGroupEnd")
    for device in both.devices:
        graph, ready = Pointer(), Pointer()
        runtime("cudaSetDevice", device)
        runtime("cudaStreamEndCapture", both.streams[device], ctypes.byref(graph))
        runtime("cudaGraphInstantiate", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        graphs.append(ready)
    for _ in range(3):
        for device in both.devices:
            runtime("cudaSetDevice", device)
            runtime("cudaGraphLaunch", graphs[device], both.streams[device])
        for device in both.devices:
            runtime("cudaSetDevice", device)
            runtime("cudaStreamSynchronize", both.streams[device])
    # The sum, and twice doubled.
    for array in arrays:
        np.testing.assert_array_equal(array.get(), 4 * (given[0] + given[1]))


if sys.argv[1:2] == ["--member"]:
    rank = int(sys.argv[2])
    np.testing.assert_array_equal(member(rank, 2, rank, Id.from_buffer_copy(bytes.fromhex(sys.argv[3]))), np.full(1000, 3))
    print("right")
else:
    main()
