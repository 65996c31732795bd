"""NVIDIA Warp: a kernel on the device cuda:0."""
import numpy as np
import warp as wp

wp.config.quiet = True


@wp.kernel
def add(a: wp.array(dtype=float), b: wp.array(dtype=float), total: wp.array(dtype=float)):
    i = wp.tid()
    total[i] = a[i] + b[i]


wp.set_device("cuda:0")
a, b = np.arange(10000, dtype=np.float32), np.ones(10000, dtype=np.float32)
total = wp.empty(10000, dtype=float)
wp.launch(add, dim=10000, inputs=[wp.array(a), wp.array(b)], outputs=[total])
print((total.numpy() == a + b).all())
