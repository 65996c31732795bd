"""What JAX's programs begin with: it shall take the devices of `libcuda.so.1`, and calculate in 64 bits where asked to.

They are started by `margay run`: JAX leaves its CUDA backend out, whatever it is told, unless it finds a device file of NVIDIA's.
"""

import jax

jax.config.update("jax_enable_x64", True)
assert jax.default_backend() == "gpu", "JAX has found no CUDA device"
