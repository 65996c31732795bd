"""CuPy: arrays, a reduction, and a kernel in CUDA C++."""
import cupy as cp

a = cp.arange(10000, dtype=cp.float32)
print(float((2 * a).sum()))

square = cp.RawKernel(r"""
extern "C" __global__ void square(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * in[i];
}
""", "square")
out = cp.empty_like(a)
square((40,), (256,), (a, out, a.size))
print(bool((out == a * a).all()))
