"""NVIDIA Warp: kernels, gradients, tiles, atomics, streams, graphs, the algorithms of its own library."""

import numpy as np
import warp as wp

from check import check, main

wp.config.quiet = True
wp.init()
wp.set_device("cuda:0")
RANDOM = np.random.default_rng(6)


def random(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


@wp.kernel
def add_kernel(x: wp.array(dtype=float), y: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[i] + y[i]


@check
def vector_add():
    x, y = random(5000), random(5000)
    out = wp.empty(5000, dtype=float)
    wp.launch(add_kernel, dim=5000, inputs=[wp.array(x), wp.array(y)], outputs=[out])
    np.testing.assert_array_equal(out.numpy(), x + y)


@wp.kernel
def matmul_kernel(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float)):
    i, j = wp.tid()
    total = float(0.0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[k, j]
    c[i, j] = total


@check
def matmul_of_threads():
    a, b = random(40, 30), random(30, 50)
    c = wp.empty((40, 50), dtype=float)
    wp.launch(matmul_kernel, dim=(40, 50), inputs=[wp.array(a), wp.array(b)], outputs=[c])
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5, atol=1e-5)


@wp.kernel
def atomics_kernel(x: wp.array(dtype=int), bins: wp.array(dtype=int), top: wp.array(dtype=int), bottom: wp.array(dtype=int)):
    value = x[wp.tid()]
    wp.atomic_add(bins, value % 8, 1)
    wp.atomic_max(top, 0, value)
    wp.atomic_min(bottom, 0, value)


@check
def atomics():
    x = RANDOM.integers(0, 10**6, 4000).astype(np.int32)
    bins, top, bottom = wp.zeros(8, dtype=int), wp.zeros(1, dtype=int), wp.full(1, 2**31 - 1, dtype=int)
    wp.launch(atomics_kernel, dim=4000, inputs=[wp.array(x), bins, top, bottom])
    np.testing.assert_array_equal(bins.numpy(), np.bincount(x % 8, minlength=8))
    assert top.numpy()[0] == x.max() and bottom.numpy()[0] == x.min()


@wp.kernel
def loss_kernel(x: wp.array(dtype=float), w: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    value = wp.sin(x[i] * w[i])
    wp.atomic_add(loss, 0, value * value)


@check
def gradients():
    x, w = random(500), random(500)
    there = [wp.array(v, requires_grad=True) for v in (x, w)]
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(loss_kernel, dim=500, inputs=there, outputs=[loss])
    tape.backward(loss)
    wide, by = x.astype(np.float64), w.astype(np.float64)
    np.testing.assert_allclose(loss.numpy()[0], (np.sin(wide * by) ** 2).sum(), rtol=1e-4)
    outer = 2 * np.sin(wide * by) * np.cos(wide * by)
    np.testing.assert_allclose(there[0].grad.numpy(), outer * by, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(there[1].grad.numpy(), outer * wide, rtol=1e-4, atol=1e-5)


@wp.struct
class Body:
    place: wp.vec3
    turn: wp.quat
    mass: float


@wp.kernel
def bodies_kernel(bodies: wp.array(dtype=Body), out: wp.array(dtype=wp.vec3), inertia: wp.array(dtype=wp.mat33)):
    i = wp.tid()
    body = bodies[i]
    moved = wp.quat_rotate(body.turn, body.place) * body.mass
    out[i] = moved
    inertia[i] = wp.outer(moved, moved) + wp.identity(n=3, dtype=float)


@check
def structures_vectors_and_quaternions():
    bodies, wanted = [], []
    for _ in range(50):
        body = Body()
        place, turn, mass = random(3), random(4), float(RANDOM.random())
        turn /= np.linalg.norm(turn)
        body.place, body.turn, body.mass = wp.vec3(*place), wp.quat(*turn), mass
        bodies.append(body)
        axis, w = turn[:3].astype(np.float64), float(turn[3])
        wanted.append((place + 2 * np.cross(axis, np.cross(axis, place) + w * place)) * mass)
    out, inertia = wp.empty(50, dtype=wp.vec3), wp.empty(50, dtype=wp.mat33)
    wp.launch(bodies_kernel, dim=50, inputs=[wp.array(bodies, dtype=Body)], outputs=[out, inertia])
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-4, atol=1e-5)
    outer = [np.outer(v, v) + np.eye(3) for v in wanted]
    np.testing.assert_allclose(inertia.numpy(), outer, rtol=1e-3, atol=1e-4)


TILE = wp.constant(16)


@wp.kernel
def tiles_kernel(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float)):
    i, j = wp.tid()
    total = wp.tile_zeros(shape=(TILE, TILE), dtype=float)
    for k in range(a.shape[1] // TILE):
        left = wp.tile_load(a, shape=(TILE, TILE), offset=(i * TILE, k * TILE))
        right = wp.tile_load(b, shape=(TILE, TILE), offset=(k * TILE, j * TILE))
        wp.tile_matmul(left, right, total)
    wp.tile_store(c, total, offset=(i * TILE, j * TILE))


@check
def matmul_of_tiles():
    a, b = random(32, 48), random(48, 64)
    c = wp.empty((32, 64), dtype=float)
    wp.launch_tiled(tiles_kernel, dim=(2, 4), inputs=[wp.array(a), wp.array(b)], outputs=[c], block_dim=64)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-3, atol=1e-3)


@wp.kernel
def tile_sum_kernel(x: wp.array2d(dtype=float), total: wp.array(dtype=float), ordered: wp.array2d(dtype=float)):
    i = wp.tid()
    row = wp.tile_load(x[i], shape=256)
    total[i] = wp.tile_sum(row)[0]
    wp.tile_store(ordered[i], wp.tile_map(wp.abs, row))


@check
def sums_and_maps_of_tiles():
    x = random(5, 256)
    total, ordered = wp.empty(5, dtype=float), wp.empty((5, 256), dtype=float)
    wp.launch_tiled(tile_sum_kernel, dim=5, inputs=[wp.array(x)], outputs=[total, ordered], block_dim=64)
    np.testing.assert_allclose(total.numpy(), x.sum(axis=1), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(ordered.numpy(), np.abs(x))


@check
def sorts_scans_and_runs():
    x = RANDOM.integers(0, 100, 1000).astype(np.int32)
    keys, values = wp.array(np.concatenate([x, x])), wp.array(np.arange(2000, dtype=np.int32))
    wp.utils.radix_sort_pairs(keys, values, 1000)
    np.testing.assert_array_equal(keys.numpy()[:1000], np.sort(x))
    np.testing.assert_array_equal(values.numpy()[:1000], np.argsort(x, kind="stable"))
    there, sums = wp.array(x), wp.empty(1000, dtype=int)
    wp.utils.array_scan(there, sums, inclusive=True)
    np.testing.assert_array_equal(sums.numpy(), np.cumsum(x))
    wp.utils.array_scan(there, sums, inclusive=False)
    np.testing.assert_array_equal(sums.numpy(), np.cumsum(x) - x)
    runs, lengths, count = (wp.empty(n, dtype=int) for n in (1000, 1000, 1))
    wp.utils.runlength_encode(wp.array(np.sort(x)), runs, lengths, count)
    found, counted = np.unique(x, return_counts=True)
    assert count.numpy()[0] == len(found)
    np.testing.assert_array_equal(runs.numpy()[: len(found)], found)
    np.testing.assert_array_equal(lengths.numpy()[: len(found)], counted)
    assert wp.utils.array_sum(wp.array(x.astype(np.float64))) == x.sum()


@wp.kernel
def neighbours_kernel(grid: wp.uint64, points: wp.array(dtype=wp.vec3), radius: float, count: wp.array(dtype=int)):
    i = wp.tid()
    here = points[i]
    found = int(0)
    for other in wp.hash_grid_query(grid, here, radius):
        if wp.length(points[other] - here) < radius:
            found += 1
    count[i] = found


@check
def a_grid_of_hashes():
    points = RANDOM.random((300, 3)).astype(np.float32) * 4
    there = wp.array(points, dtype=wp.vec3)
    grid = wp.HashGrid(16, 16, 16)
    grid.build(there, 0.5)
    count = wp.empty(300, dtype=int)
    wp.launch(neighbours_kernel, dim=300, inputs=[grid.id, there, 0.5], outputs=[count])
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.testing.assert_array_equal(count.numpy(), (distances < 0.5).sum(axis=1))


@wp.kernel
def rays_kernel(mesh: wp.uint64, starts: wp.array(dtype=wp.vec3), distance: wp.array(dtype=float)):
    i = wp.tid()
    hit = wp.mesh_query_ray(mesh, starts[i], wp.vec3(0.0, 0.0, -1.0), 100.0)
    distance[i] = wp.where(hit.result, hit.t, -1.0)


@check
def rays_that_meet_a_mesh():
    # A square of two triangles at height 1.
    corners = wp.array(np.array([[0, 0, 1], [2, 0, 1], [2, 2, 1], [0, 2, 1]], np.float32), dtype=wp.vec3)
    mesh = wp.Mesh(corners, wp.array(np.array([0, 1, 2, 0, 2, 3], np.int32)))
    starts = np.concatenate([RANDOM.uniform(-1, 3, (200, 2)), np.full((200, 1), 5)], axis=1).astype(np.float32)
    distance = wp.empty(200, dtype=float)
    wp.launch(rays_kernel, dim=200, inputs=[mesh.id, wp.array(starts, dtype=wp.vec3)], outputs=[distance])
    inside = ((starts[:, :2] > 0) & (starts[:, :2] < 2)).all(axis=1)
    np.testing.assert_allclose(distance.numpy(), np.where(inside, 4, -1), rtol=1e-6)


@wp.kernel
def scale_kernel(x: wp.array(dtype=float), by: float):
    i = wp.tid()
    x[i] = x[i] * by


@check
def streams_events_and_pinned_memory():
    x = random(1000)
    there, back = wp.array(x), wp.empty(1000, dtype=float, device="cpu", pinned=True)
    first, second = wp.Stream("cuda:0"), wp.Stream("cuda:0")
    wp.synchronize()
    wp.launch(scale_kernel, dim=1000, inputs=[there, 2.0], stream=first)
    second.wait_event(first.record_event())
    with wp.ScopedStream(second):
        wp.launch(scale_kernel, dim=1000, inputs=[there, 4.0])
        wp.copy(back, there)
    wp.synchronize_stream(second)
    np.testing.assert_array_equal(back.numpy(), x * 8)


@check
def captured_graphs():
    x = random(1000)
    there = wp.array(x)
    wp.load_module(device="cuda:0")
    with wp.ScopedCapture() as capture:
        for _ in range(3):
            wp.launch(scale_kernel, dim=1000, inputs=[there, 2.0])
    np.testing.assert_array_equal(there.numpy(), x)
    for _ in range(2):
        wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(there.numpy(), x * 64)


@wp.kernel
def half_kernel(x: wp.array(dtype=wp.float16), y: wp.array(dtype=wp.float16), out: wp.array(dtype=wp.float16)):
    i = wp.tid()
    out[i] = x[i] * y[i]


@check
def halves():
    x, y = random(300).astype(np.float16), random(300).astype(np.float16)
    out = wp.empty(300, dtype=wp.float16)
    wp.launch(half_kernel, dim=300, inputs=[wp.array(x), wp.array(y)], outputs=[out])
    np.testing.assert_array_equal(out.numpy(), x * y)


@wp.kernel
def random_kernel(seed: int, out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = wp.randf(wp.rand_init(seed, i))


@check
def random_numbers_are_those_of_the_cpu():
    made = []
    for device in ("cuda:0", "cpu"):
        out = wp.empty(2000, dtype=float, device=device)
        wp.launch(random_kernel, dim=2000, inputs=[3], outputs=[out], device=device)
        made.append(out.numpy())
    np.testing.assert_array_equal(*made)


@check
def sparse_matrices():
    from warp.sparse import bsr_from_triplets, bsr_mv

    rows, columns = RANDOM.integers(0, 20, (2, 60)).astype(np.int32)
    values = random(60)
    matrix = bsr_from_triplets(20, 20, wp.array(rows), wp.array(columns), wp.array(values))
    dense = np.zeros((20, 20))
    np.add.at(dense, (rows, columns), values)
    x = random(20)
    np.testing.assert_allclose(bsr_mv(matrix, wp.array(x)).numpy(), dense @ x, rtol=1e-4, atol=1e-5)


main()
