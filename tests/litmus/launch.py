"""Loads modules and launches each of their kernels once, through the driver API: `launch.py FOLDER`, where `plan.json` says what there
is, and `results.json` is written. A process of its own, to be started by `margay run`."""

import ctypes
import json
import pathlib
import sys

LOCATIONS, RESULTS = 64, 256  # bytes of each kernel


def main(folder):
    driver = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        code = getattr(driver, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            driver.cuGetErrorName(code, ctypes.byref(text))
            raise SystemExit(f"{name}: {(text.value or b'?').decode()}")

    plan = json.loads((folder / "plan.json").read_text())
    count = sum(len(module["kernels"]) for module in plan)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    memory, results = ctypes.c_uint64(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(LOCATIONS * count))
    call("cuMemAlloc_v2", ctypes.byref(results), ctypes.c_size_t(RESULTS * count))
    call("cuMemsetD8_v2", memory, ctypes.c_ubyte(0), ctypes.c_size_t(LOCATIONS * count))
    call("cuMemsetD8_v2", results, ctypes.c_ubyte(255), ctypes.c_size_t(RESULTS * count))
    names = []
    for part in plan:
        module = ctypes.c_void_p()
        call("cuModuleLoad", ctypes.byref(module), str(folder / part["file"]).encode())
        for name, blocks, threads in part["kernels"]:
            function = ctypes.c_void_p()
            call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
            own = [ctypes.c_uint64(memory.value + LOCATIONS * len(names)), ctypes.c_uint64(results.value + RESULTS * len(names))]
            arguments = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in own))
            call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, None, arguments, None)
            try:
                call("cuCtxSynchronize")
            except SystemExit as error:
                raise SystemExit(f"{name}: {error}")
            names.append(name)
    values = (ctypes.c_uint32 * (RESULTS // 4 * count))()
    call("cuMemcpyDtoH_v2", values, results, ctypes.c_size_t(RESULTS * count))
    each = RESULTS // 4
    found = {name: list(values[n * each : (n + 1) * each]) for n, name in enumerate(names)}
    (folder / "results.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
