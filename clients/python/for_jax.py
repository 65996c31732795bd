"""What JAX's programs begin with: it shall take the devices of `libcuda.so.1`, and calculate in 64 bits where asked to.

JAX leaves its CUDA backend out, whatever it is told, unless a device file of NVIDIA's or of Windows' exists (`_NVIDIA_GPU_DEVICES`
in jax/_src/hardware_utils.py). Margay has none. To make one (`touch /dev/nvidiactl`) takes root's rights and is not for
tests, so the list gets a file that is there: the one thing of JAX's that these programs change.
"""

import os

import jax
from jax._src import hardware_utils

hardware_utils._NVIDIA_GPU_DEVICES.append(os.devnull)
jax.config.update("jax_enable_x64", True)
assert jax.default_backend() == "gpu", "JAX has found no CUDA device"
