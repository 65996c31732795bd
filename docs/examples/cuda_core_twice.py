"""cuda.core: NVRTC compiles a kernel, which doubles numbers in page-locked memory."""
import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

SOURCE = r"""
extern "C" __global__ void twice(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
"""

device = Device(0)
device.set_current()
stream = device.create_stream()
code = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin")
memory = LegacyPinnedMemoryResource().allocate(4000)
numbers = np.from_dlpack(memory).view(np.float32)
numbers[:] = np.arange(1000)
launch(stream, LaunchConfig(grid=4, block=256), code.get_kernel("twice"), memory, np.int32(1000))
stream.sync()
print((numbers == 2 * np.arange(1000)).all())
