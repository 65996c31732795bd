"""tinygrad: tensors through PTX of its own, with numpy to compare with."""

import os

# Which of its devices, and whose PTX: the one setting that tinygrad asks for. It is read when tinygrad is imported.
os.environ.setdefault("DEV", "CUDA:PTX")

import numpy as np
from tinygrad import Context, Device, Tensor, TinyJit, Variable, dtypes
from tinygrad.nn import BatchNorm, Conv2d, Linear
from tinygrad.nn.optim import Adam

from check import check, main

RANDOM = np.random.default_rng(8)


def random(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


@check
def the_device():
    assert Device.DEFAULT == "CUDA" and type(Device["CUDA"].renderer).__name__ == "PTXRenderer"


@check
def elementwise():
    for dtype in (np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8, np.uint64):
        a, b = (RANDOM.integers(1, 50, (30, 40)).astype(dtype) for _ in range(2))
        x, y = Tensor(a), Tensor(b)
        np.testing.assert_array_equal((x + y).numpy(), a + b)
        np.testing.assert_array_equal((x * 2 - y).numpy(), a * dtype(2) - b)
        np.testing.assert_array_equal(x.maximum(y).numpy(), np.maximum(a, b))
        np.testing.assert_array_equal((x < y).where(x, y).numpy(), np.minimum(a, b))


@check
def functions():
    a = RANDOM.uniform(0.1, 8, 1000).astype(np.float32)
    for name, wanted in (("exp", np.exp), ("log", np.log), ("sin", np.sin), ("cos", np.cos), ("sqrt", np.sqrt),
                         ("tanh", np.tanh), ("floor", np.floor), ("reciprocal", np.reciprocal), ("abs", np.abs)):
        np.testing.assert_allclose(getattr(Tensor(a), name)().numpy(), wanted(a), rtol=1e-5, atol=1e-6, err_msg=name)


@check
def reductions():
    a = random(60, 70)
    for axis in (None, 0, 1):
        np.testing.assert_allclose(Tensor(a).sum(axis).numpy(), a.sum(axis), rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(Tensor(a).max(axis).numpy(), a.max(axis))
        np.testing.assert_array_equal(Tensor(a).argmax(axis).numpy(), a.argmax(axis))
        np.testing.assert_allclose(Tensor(a).std(axis).numpy(), a.std(axis, ddof=1), rtol=1e-4)
    np.testing.assert_allclose(Tensor(a).cumsum(1).numpy(), a.cumsum(1), rtol=1e-4, atol=1e-4)


@check
def products_of_matrices():
    for dtype, tolerance in ((np.float32, 1e-4), (np.float16, 2e-2), (np.float64, 1e-12)):
        for m, n, k in ((16, 16, 16), (64, 64, 64), (30, 50, 70)):
            a, b = random(m, k).astype(dtype), random(k, n).astype(dtype)
            wanted = a.astype(np.float64) @ b.astype(np.float64)
            np.testing.assert_allclose((Tensor(a) @ Tensor(b)).numpy(), wanted, rtol=tolerance, atol=tolerance * 10)


@check
def products_on_tensor_cores():
    # float32 results of float16 factors are what its tensor cores give.
    a, b = random(128, 128).astype(np.float16), random(128, 128).astype(np.float16)
    product = Tensor(a).matmul(Tensor(b), dtype=dtypes.float32).numpy()
    np.testing.assert_allclose(product, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-3)


@check
def softmax_and_layer_norm():
    a = random(20, 100)
    wide = np.exp(a.astype(np.float64) - a.max(axis=1, keepdims=True))
    np.testing.assert_allclose(Tensor(a).softmax().numpy(), wide / wide.sum(axis=1, keepdims=True), rtol=1e-4)
    wide = a.astype(np.float64)
    wide = (wide - wide.mean(axis=1, keepdims=True)) / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(Tensor(a).layernorm().numpy(), wide, rtol=1e-4, atol=1e-5)


@check
def convolution():
    a, kernel = random(2, 3, 12, 12), random(4, 3, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(a, (3, 3), axis=(2, 3))
    wanted = np.einsum("bchwij,ocij->bohw", windows.astype(np.float64), kernel)
    np.testing.assert_allclose(Tensor(a).conv2d(Tensor(kernel)).numpy(), wanted, rtol=1e-4, atol=1e-4)


@check
def indices_sorting_and_shapes():
    a = random(40, 8)
    rows = RANDOM.integers(0, 40, 15)
    np.testing.assert_array_equal(Tensor(a)[Tensor(rows)].numpy(), a[rows])
    np.testing.assert_array_equal(Tensor(a).permute(1, 0).reshape(4, 80).numpy(), a.T.reshape(4, 80))
    np.testing.assert_array_equal(Tensor(a).pad(((1, 2), (0, 3))).numpy(), np.pad(a, ((1, 2), (0, 3))))
    np.testing.assert_array_equal(Tensor(a).flip(0)[::2].numpy(), a[::-1][::2])
    np.testing.assert_array_equal(Tensor(a).sort(0)[0].numpy(), np.sort(a, axis=0))


@check
def gradients():
    a, b = random(10, 20), random(20, 5)
    x, y = Tensor(a), Tensor(b)
    (x @ y).relu().sum().backward()
    mask = (a @ b > 0).astype(np.float64)
    np.testing.assert_allclose(x.grad.numpy(), mask @ b.T, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(y.grad.numpy(), a.T @ mask, rtol=1e-4, atol=1e-4)


@check
def jit_makes_graphs():
    @TinyJit
    def step(x):
        y = (x * 2).realize()
        return (y.sum(0) + 1).realize()

    for _ in range(5):
        a = random(10, 20)
        np.testing.assert_allclose(step(Tensor(a).realize()).numpy(), (a * 2).sum(0) + 1, rtol=1e-4, atol=1e-4)


@check
def shapes_that_vary():
    a = random(20, 8)
    length = Variable("length", 1, 20)
    for n in (3, 11, 20):
        part = Tensor(a)[: length.bind(n)].sum(0)
        np.testing.assert_allclose(part.numpy(), a[:n].sum(0), rtol=1e-4, atol=1e-4)


@check
def training_lowers_the_loss():
    Tensor.manual_seed(1)
    first, norm, last = Conv2d(1, 4, 3), BatchNorm(4), Linear(4 * 36, 3)
    optimiser = Adam([first.weight, first.bias, norm.weight, norm.bias, last.weight, last.bias], lr=0.02)
    images, labels = random(12, 1, 8, 8), RANDOM.integers(0, 3, 12)
    losses = []
    with Context(TRAINING=1):
        for _ in range(6):
            optimiser.zero_grad()
            found = last(norm(first(Tensor(images))).relu().flatten(1))
            loss = found.sparse_categorical_crossentropy(Tensor(labels)).backward()
            optimiser.step()
            losses.append(loss.item())
    assert losses[-1] < losses[0] / 2, losses


@check
def random_numbers():
    Tensor.manual_seed(7)
    first = Tensor.rand(5000).numpy()
    Tensor.manual_seed(7)
    np.testing.assert_array_equal(first, Tensor.rand(5000).numpy())
    assert 0 <= first.min() and first.max() < 1 and abs(first.mean() - 0.5) < 0.02


main()
