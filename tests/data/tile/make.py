"""Makes the bytecode beside this file with cuTile (cuda-tile 1.7.0), for tests through the C ABI: `python make.py`.

Parameters of an array are its address, sizes and strides, as int32."""

import pathlib

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel

HERE = pathlib.Path(__file__).parent


@ct.kernel
def product(a, b, c, TM: ct.Constant[int], TN: ct.Constant[int], TK: ct.Constant[int]):
    i, j = ct.bid(0), ct.bid(1)
    total = ct.full((TM, TN), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(TM, TK))):
        left = ct.load(a, (i, k), (TM, TK), padding_mode=ct.PaddingMode.ZERO)
        right = ct.load(b, (k, j), (TK, TN), padding_mode=ct.PaddingMode.ZERO)
        total = ct.mma(left, right, total)
    ct.store(c, (i, j), total)


@ct.kernel
def turns(turn, order):
    """Blocks wait for each other, the last one first."""
    mine = ct.num_blocks(0) - 1 - ct.bid(0)
    while ct.atomic_cas(turn, 0, mine, mine) != mine:
        pass
    ct.scatter(order, mine, ct.bid(0), check_bounds=False)
    ct.atomic_add(turn, 0, 1)


def array(dtype, ndim):
    return ArrayConstraint(dtype, ndim, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(), may_alias_internally=False)


def make(kernel, parameters, version):
    name = kernel._annotated_function.pyfunc.__name__
    signature = KernelSignature(parameters, CallingConvention.cutile_python_v1(), symbol=name)
    file = HERE / f"{name}-{version}.tileirbc"
    export_kernel(kernel, [signature], str(file), gpu_code="sm_120", output_format="tileir_bytecode", bytecode_version=version)


for version in ("13.1", "13.4"):
    make(product, [array(ct.float16, 2), array(ct.float16, 2), array(ct.float32, 2), 32, 64, 16], version)
    make(turns, [array(ct.int32, 1), array(ct.int32, 1)], version)
