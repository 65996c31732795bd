"""tinygrad: a product of matrices. Start it with DEV=CUDA:PTX."""
import numpy as np
from tinygrad import Device, Tensor

a, b = (np.random.default_rng(seed).random((64, 64), dtype=np.float32) for seed in (1, 2))
print(Device.DEFAULT, np.allclose((Tensor(a) @ Tensor(b)).numpy(), a @ b, rtol=1e-5))
