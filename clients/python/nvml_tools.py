"""What management tools ask NVML (nvidia-ml-py, gpustat, cuda.core.system), compared with what the driver says."""

import io
import json
import os
import subprocess
import sys
import textwrap
import time

import pynvml as nvml
from cuda.bindings import driver

from check import check, main

nvml.nvmlInit()


def cuda(answer):
    error, *values = answer
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return values[0] if len(values) == 1 else values


def begin():
    """A context on the first device, current."""
    cuda(driver.cuInit(0))
    context = cuda(driver.cuDevicePrimaryCtxRetain(0))
    cuda(driver.cuCtxSetCurrent(context))


def own_use(handle):
    """Bytes that this process has, as NVML knows it."""
    found = [one for one in nvml.nvmlDeviceGetComputeRunningProcesses(handle) if one.pid == os.getpid()]
    return found[0].usedGpuMemory if found else None


def unsupported(call, *arguments):
    try:
        call(*arguments)
    except nvml.NVMLError_NotSupported:
        return True
    return False


@check
def devices_are_the_drivers():
    begin()
    count = cuda(driver.cuDeviceGetCount())
    assert nvml.nvmlDeviceGetCount() == count
    assert nvml.nvmlSystemGetCudaDriverVersion() == cuda(driver.cuDriverGetVersion())
    attribute = driver.CUdevice_attribute
    for index in range(count):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        name = cuda(driver.cuDeviceGetName(128, index)).split(b"\0")[0].decode()
        assert nvml.nvmlDeviceGetName(handle) == name
        uuid = bytes(cuda(driver.cuDeviceGetUuid(index)).bytes).hex()
        assert nvml.nvmlDeviceGetUUID(handle).removeprefix("GPU-").replace("-", "") == uuid
        place = cuda(driver.cuDeviceGetPCIBusId(32, index)).split(b"\0")[0].decode()
        assert nvml.nvmlDeviceGetPciInfo(handle).busIdLegacy == place
        again = nvml.nvmlDeviceGetHandleByPciBusId(place)
        assert nvml.nvmlDeviceGetIndex(again) == index
        assert nvml.nvmlDeviceGetMemoryInfo(handle).total == cuda(driver.cuDeviceTotalMem(index))
        capability = tuple(
            cuda(driver.cuDeviceGetAttribute(which, index))
            for which in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        assert nvml.nvmlDeviceGetCudaComputeCapability(handle) == capability
        clock = cuda(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_CLOCK_RATE, index))
        assert nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) * 1000 == clock


@check
def memory_and_processes_are_the_drivers():
    begin()
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    before = own_use(handle)
    bytes_of_it = 48 << 20
    place = cuda(driver.cuMemAlloc(bytes_of_it))
    free, total = cuda(driver.cuMemGetInfo())
    assert own_use(handle) == total - free == before + bytes_of_it
    assert nvml.nvmlDeviceGetMemoryInfo(handle).used >= total - free
    memory = nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2)
    assert memory.free + memory.used + memory.reserved == total
    cuda(driver.cuMemFree(place))
    assert own_use(handle) == before
    assert nvml.nvmlDeviceGetGraphicsRunningProcesses(handle) == []


@check
def what_is_not_there_is_not_supported():
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    assert unsupported(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU)
    assert unsupported(nvml.nvmlDeviceGetPowerUsage, handle)
    assert unsupported(nvml.nvmlDeviceGetEccMode, handle)
    assert unsupported(nvml.nvmlDeviceGetMigMode, handle)
    assert unsupported(nvml.nvmlDeviceGetNvLinkState, handle, 0)
    values = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_NVLINK_LINK_COUNT])
    assert values[0].nvmlReturn == nvml.NVML_ERROR_NOT_SUPPORTED


@check
def a_free_device_is_found_before_the_driver_starts():
    """As schedulers do: NVML sees all devices, then the environment chooses one."""
    program = """
        import os
        import pynvml as nvml
        nvml.nvmlInit()
        assert nvml.nvmlDeviceGetCount() == 3
        uuid = nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(2))
        os.environ["CUDA_VISIBLE_DEVICES"] = uuid
        from cuda.bindings import driver
        driver.cuInit(0)
        assert driver.cuDeviceGetCount()[1] == 1
        assert nvml.nvmlDeviceGetCount() == 3
        assert "GPU-%s-" % bytes(driver.cuDeviceGetUuid(0)[1].bytes)[:4].hex() == uuid[:13]
        assert driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0)[1] == 3
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=os.environ | {"MARGAY_DEVICES": "3"}, check=True)


@check
def kubernetes_device_plugins_find_healthy_devices():
    """The calls of NVIDIA's device plugin, in its order."""
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    assert nvml.nvmlDeviceGetHandleByUUID(nvml.nvmlDeviceGetUUID(handle))
    assert nvml.nvmlDeviceGetMinorNumber(handle) == 0
    assert unsupported(nvml.nvmlDeviceGetMigMode, handle)
    assert nvml.nvmlDeviceGetMaxMigDeviceCount(handle) == 0
    events = nvml.nvmlEventSetCreate()
    wanted = nvml.nvmlEventTypeXidCriticalError | nvml.nvmlEventTypeDoubleBitEccError | nvml.nvmlEventTypeSingleBitEccError
    nvml.nvmlDeviceRegisterEvents(handle, wanted & nvml.nvmlDeviceGetSupportedEventTypes(handle), events)
    try:
        nvml.nvmlEventSetWait_v2(events, 100)
        raise AssertionError("an event came")
    except nvml.NVMLError_Timeout:
        pass
    nvml.nvmlEventSetFree(events)


@check
def utilisation_follows_the_kernels():
    begin()
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    source = b"""
        .version 8.0
        .target sm_75
        .address_size 64
        .visible .entry spin() {
            .reg .b64 %a, %b; .reg .pred %p;
            mov.u64 %a, %globaltimer;
        L:  mov.u64 %b, %globaltimer; sub.u64 %b, %b, %a; setp.lt.u64 %p, %b, 500000000; @%p bra L;
            ret;
        }
    """
    module = cuda(driver.cuModuleLoadData(source))
    kernel = cuda(driver.cuModuleGetFunction(module, b"spin"))
    time.sleep(0.2)
    nvml.nvmlDeviceGetUtilizationRates(handle)
    cuda(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0))
    time.sleep(0.3)
    assert nvml.nvmlDeviceGetUtilizationRates(handle).gpu >= 40
    samples = nvml.nvmlDeviceGetProcessUtilization(handle, 0)
    assert [one for one in samples if one.pid == os.getpid()]
    cuda(driver.cuCtxSynchronize())


@check
def gpustat_shows_devices_and_processes():
    import gpustat

    begin()
    place = cuda(driver.cuMemAlloc(32 << 20))
    stat = gpustat.new_query()
    assert stat.driver_version == nvml.nvmlSystemGetDriverVersion()
    first = stat.gpus[0]
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    assert (first.name, first.uuid) == (nvml.nvmlDeviceGetName(handle), nvml.nvmlDeviceGetUUID(handle))
    assert first.memory_total == nvml.nvmlDeviceGetMemoryInfo(handle).total >> 20
    own = [one for one in first.processes if one["pid"] == os.getpid()]
    assert own and own[0]["gpu_memory_usage"] == own_use(handle) >> 20 >= 32
    cuda(driver.cuMemFree(place))
    out = io.StringIO()
    stat.print_json(out)
    assert json.loads(out.getvalue())["gpus"][0]["temperature.gpu"] is None
    out = io.StringIO()
    stat.print_formatted(out, no_color=True, show_pid=True)
    assert f"/{os.getpid()}(" in out.getvalue()


@check
def cuda_core_describes_the_system():
    from cuda.core import Device, system

    begin()
    assert system.get_num_devices() == nvml.nvmlDeviceGetCount()
    assert system.get_user_mode_driver_version() == (13, 5)
    assert ".".join(f"{part:02}" for part in system.get_kernel_mode_driver_version()) == nvml.nvmlSystemGetDriverVersion()
    assert "python" in system.get_process_name(os.getpid())
    for device in system.Device.get_all_devices():
        seen = device.to_cuda_device()
        assert isinstance(seen, Device) and seen.uuid == device.uuid_without_prefix
        assert seen.pci_bus_id == device.pci_info.bus_id[4:]
        assert device.cuda_compute_capability == tuple(seen.compute_capability)
        assert device.memory_info.free + device.memory_info.used == device.memory_info.total
        assert os.getpid() in [one.pid for one in device.compute_running_processes]
        events = device.register_events(["xid_critical_error"])
        try:
            events.wait(timeout_ms=50)
            raise AssertionError("an event came")
        except system.TimeoutError:
            pass


main()
