#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the expected values of the cases: NumPy and plain loops, nothing of quern's. Run it after changing a case."""
import hashlib
import math
import pathlib
import numpy as np

import expected_python

HERE = pathlib.Path(__file__).parent


def random(shape, seed):
    return np.random.default_rng(seed).random(shape, np.float32)


def mandelbrot(width, height, limit):
    """Float32 throughout, each operation rounded, as the kernel under --fmad=false."""
    f = np.float32
    cx = (f(-2) + f(3) * np.arange(width, dtype=f) / f(width))[None, :].repeat(height, 0)
    cy = (f(-1) + f(2) * np.arange(height, dtype=f) / f(height))[:, None].repeat(width, 1)
    x, y, steps = np.zeros_like(cx), np.zeros_like(cx), np.zeros(cx.shape, np.int32)
    for _ in range(limit):
        inside = x * x + y * y < f(4)
        if not inside.any():
            break
        following = np.where(inside, x * x - y * y + cx, x)
        y = np.where(inside, f(2) * x * y + cy, y)
        x = following
        steps += inside
    return steps


def black_scholes(spot, strike, years, rate, volatility):
    """In float64, the normal distribution from math.erfc."""
    cdf = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))
    root = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * years) / root
    discounted = strike * np.exp(-rate * years)
    call = spot * cdf(d1) - discounted * cdf(d1 - root)
    return call, discounted * cdf(root - d1) - spot * cdf(-d1)


def nbody(bodies, softening):
    position, mass = bodies[:, :3].astype(np.float64), bodies[:, 3].astype(np.float64)
    result = np.zeros((len(bodies), 4), np.float32)
    for i in range(len(bodies)):
        distance = position - position[i]
        pull = mass / ((distance**2).sum(1) + softening) ** 1.5
        result[i, :3] = distance.T @ pull
    return result


def five_point(grid):
    result = grid.copy()
    result[1:-1, 1:-1] = 0.25 * (grid[1:-1, :-2] + grid[1:-1, 2:] + grid[:-2, 1:-1] + grid[2:, 1:-1])
    return result


def collatz(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def xorshift_hits(threads, n):
    state = np.arange(1, threads + 1, dtype=np.uint64)
    hits = np.zeros(threads, np.int64)
    mask = np.uint64(0xFFFFFFFF)

    def advance(x):
        x = (x ^ (x << np.uint64(13))) & mask
        x = x ^ (x >> np.uint64(17))
        return (x ^ (x << np.uint64(5))) & mask

    f = np.float32
    for _ in range(n):
        state = advance(state)
        x = state.astype(f) / f(4294967296.0)
        state = advance(state)
        y = state.astype(f) / f(4294967296.0)
        hits += x * x + y * y < 1
    return hits


def python_samples():
    rng = np.random.default_rng(11)
    a = rng.integers(-1000, 1000, 400).astype(np.int32)
    b = rng.integers(-20, 20, 400).astype(np.int32)
    b[b == 0] = 3
    save("python/ints_a.npy", a)
    save("python/ints_b.npy", b)
    pairs = [(int(x), int(y)) for x, y in zip(a, b)]
    save("python/ints_quotient.npy", np.array([x // y for x, y in pairs]))
    save("python/ints_remainder.npy", np.array([x % y for x, y in pairs]))
    save("python/ints_ratio.npy", np.array([x / y for x, y in pairs]))
    save("python/ints_power.npy", np.array([x**3 for x, y in pairs]))
    save("python/ints_shifted.npy", np.array([(x << 2) ^ (y >> 1) | (~x & y) for x, y in pairs]))
    save("python/ints_chosen.npy", np.array([[x and y, x or y, x if x > y else y, -5 < x <= y, x in (1, 2, 3), round(x / 2), min(x, y, 4),
                                              abs(x) + int(y / 3)] for x, y in pairs], np.int64))
    fa, fb = rng.normal(0, 50, 400), rng.normal(0, 7, 400)
    save("python/floats_a.npy", fa)
    save("python/floats_b.npy", fb)
    save("python/floats_quotient.npy", np.array([float(x) // float(y) for x, y in zip(fa, fb)]))
    save("python/floats_remainder.npy", np.array([float(x) % float(y) for x, y in zip(fa, fb)]))
    values = rng.integers(-50, 100, 20)
    save("python/control_values.npy", values)
    v = [int(x) for x in values]
    last_negative = max((i for i, x in enumerate(v) if x < 0), default=-1)
    out = [sum(x for x in v if x >= 0), last_negative, 7, sum(x * y for x, y in zip(v, v[1:])), 10 + 7 + 4 + 1, collatz(27), 0, 0, 2, 0, v[0], v[-1]]
    save("python/control_loops.npy", np.array(out))
    save("python/control_types.npy", np.array([3, 0.5, sum(x / 2 for x in v)]))
    m = np.random.default_rng(8).random((6, 11))
    save("python/views_means.npy", np.stack([m.mean(1), m[:, 1:-1].mean(1), m[:, ::2].mean(1), m[:, ::-3].mean(1)], 1))
    m[:, 0] = np.arange(6)
    m[-1, 2:4] = 5
    save("python/views_matrix.npy", m)
    save("roc/reverse_128.npy", np.arange(128, dtype=np.float32).reshape(2, 64)[:, ::-1].ravel())


def julia(height, width, c, limit):
    image = np.zeros((height, width), np.int32)
    for row in range(height):
        for column in range(width):
            z, count = complex(3.0 * column / width - 1.5, 3.0 * row / height - 1.5), 0
            while count < limit and z.real * z.real + z.imag * z.imag <= 4.0:
                z = z * z + c
                count += 1
            image[row, column] = count
    return image


def more_samples():
    save("linear_algebra/transpose_70x45.npy", np.ascontiguousarray(random((70, 45), 4).T))
    c = complex(-0.8, 0.156)
    save("fractals/julia_c.npy", np.array(c))
    save("fractals/julia_64x48.npy", julia(64, 48, c, 100))
    u = np.random.default_rng(5).random((33, 50))
    following = np.zeros_like(u)
    following[1:-1, 1:-1] = 0.25 * (u[1:-1, 2:] + u[1:-1, :-2] + u[:-2, 1:-1] + u[2:, 1:-1])
    save("stencils/laplace_33x50.npy", following)
    save("stencils/laplace_change.npy", np.array([np.abs(following - u)[1:-1, 1:-1].max()]))
    cells = (np.random.default_rng(9).random((40, 60)) < 0.4).astype(np.uint8)
    neighbours = sum(np.roll(cells, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0))
    save("stencils/life_40x60.npy", cells)
    save("stencils/life_40x60_next.npy", ((neighbours == 3) | ((cells == 1) & (neighbours == 2))).astype(np.uint8))
    image = random((20, 37), 6).astype(np.float64)
    padded = np.pad(image, ((0, 0), (2, 2)), "edge")
    save("stencils/blur_20x37.npy", (sum(w * padded[:, k:k + 37] for k, w in enumerate([1, 4, 6, 4, 1])) / 16).astype(np.float32))
    values = np.random.default_rng(7).random(20000)
    save("statistics/histogram_20000.npy", np.bincount((values * 64).astype(int), minlength=64).astype(np.int32))
    rng = np.random.default_rng(10)
    user, time = np.sort(rng.integers(0, 12, 200)), rng.integers(0, 500, 200)
    order = np.lexsort((time, user))
    user, time = user[order], time[order]
    begins = np.concatenate([[True], (user[1:] != user[:-1]) | (time[1:] - time[:-1] > 30)])
    save("statistics/sessions_user.npy", user)
    save("statistics/sessions_time.npy", time)
    save("statistics/sessions_200.npy", np.cumsum(begins) - 1)
    save("random_numbers/pi_hits.npy", xorshift_hits(100, 100))
    values = np.random.default_rng(12).integers(-10**6, 10**6, 1024).astype(np.int32)
    save("sorting/bitonic_1024.npy", values)
    save("sorting/bitonic_1024_sorted.npy", np.sort(values.reshape(4, 256), 1).ravel())


def device_samples():
    """kernels/device: the constructs of <quern/device.cuh>."""
    rng = np.random.default_rng(13)
    integers = rng.integers(-1000, 1000, 512).astype(np.int32)
    blocks = integers.reshape(8, 64)
    save("device/integers.npy", integers)
    save("device/transposed.npy", np.ascontiguousarray(random((48, 48), 21).T))
    save("device/rotated.npy", np.roll(blocks, -1, 1).ravel())
    save("device/sums.npy", blocks.sum(1, dtype=np.int32))
    save("device/reversed.npy", blocks[:, ::-1].ravel())
    save("device/reversed_128.npy", integers.reshape(4, 128)[:, ::-1].ravel())
    save("device/warp_sums.npy", np.cumsum(integers.reshape(16, 32), 1, dtype=np.int32).ravel())
    save("device/positive.npy", np.array([(integers > 0).sum()], np.int32))
    signs = rng.integers(-5, 6, 500).astype(np.int32)
    signs[64:128] = -1
    signs[128:192] = 4
    save("device/signs.npy", signs)
    parts = [signs[i : i + 64] < 0 for i in range(0, 500, 64)]
    save("device/negative.npy", np.array([part.sum() for part in parts], np.int32))
    save("device/all_negative.npy", np.array([part.all() for part in parts], np.int32))
    save("device/any_negative.npy", np.array([part.any() for part in parts], np.int32))
    row = np.pad(random(300, 22), 4, "edge")
    save("device/medians.npy", np.array([np.median(row[i : i + 9]) for i in range(300)], np.float32))
    matrices = rng.normal(0, 1, (50, 3, 3))
    save("device/matrices.npy", matrices)
    save("device/powers.npy", np.linalg.matrix_power(matrices, 4))
    row = np.pad(random(300, 23).astype(np.float64), 2, "edge")
    save("device/smoothed.npy", sum(w / 16 * row[k : k + 300] for k, w in enumerate([1, 4, 6, 4, 1])).astype(np.float32))
    steps = rng.integers(0, 2**32, 200, dtype=np.uint64).astype(np.uint32)
    turns = steps[:, None] >> np.arange(0, 32, 2, dtype=np.uint32) & 3
    save("device/steps.npy", steps)
    save("device/walk_x.npy", np.array([0, 1, 0, -1], np.int32)[turns].sum(1, dtype=np.int32))
    save("device/walk_y.npy", np.array([1, 0, -1, 0], np.int32)[turns].sum(1, dtype=np.int32))
    rotors = np.arange(1, 13, dtype=np.int32).reshape(2, 3, 2)
    save("device/unrolled.npy", (rotors * 100 + rotors[::-1, ::-1]).ravel())
    y, x = np.mgrid[:6, :12]
    ones = np.ones_like(x)
    save("device/described.npy", np.stack([x % 4 + 100 * (y % 3), x // 4 + 100 * (y // 3), (4 + 300) * ones, (3 + 200) * ones, 6 * ones, 2 * ones,
                                           10 * ones, x * 1000 + y], 2).astype(np.int32))
    doubled = 2 * np.arange(128, dtype=np.int32).reshape(2, 64)
    save("device/neighbours.npy", (doubled + np.roll(doubled, -1, 1)[:, np.arange(64) ^ 1]).ravel().astype(np.int32))
    save("device/line.npy", np.arange(1000, dtype=np.int64) ** 2)
    save("device/plane.npy", (np.arange(37)[:, None] * 1000 + np.arange(53)).astype(np.int32))
    z, y, x = np.mgrid[:5, :6, :7]
    save("device/space.npy", (z * 10000 + y * 100 + x).astype(np.int32))
    save("device/row_sums.npy", random((40, 30), 24).sum(1, dtype=np.float64).astype(np.float32))


def waiting_samples():
    rng = np.random.default_rng(13)
    values = rng.integers(-5000, 5000, 1000).astype(np.int32)
    wide = values.astype(np.int64)
    save("synchronisation/locked_values.npy", values)
    save("synchronisation/locked_sums.npy", np.array([wide.sum(), (wide * wide).sum()]))
    save("synchronisation/locked_extremes.npy", np.array([min(values.min(), 0), max(values.max(), 0)], np.int32))
    tiles = rng.integers(-100, 100, (3, 7, 64)).astype(np.int32)
    save("synchronisation/produced.npy", tiles.ravel())
    save("synchronisation/consumed.npy", (tiles * np.arange(1, 8)[None, :, None]).sum(1).astype(np.int32).ravel())
    numbers = rng.integers(-100, 100, (4, 128)).astype(np.int32)
    save("synchronisation/numbers.npy", numbers.ravel())
    save("synchronisation/running_sums.npy", np.cumsum(numbers, 1, dtype=np.int32).ravel())
    f = np.float32
    rod = (rng.random(500) * 100).astype(f)
    save("cooperative_groups/heat_before.npy", rod)
    for _ in range(40):
        following = rod.copy()
        following[1:-1] = rod[1:-1] + f(0.25) * ((rod[:-2] - f(2) * rod[1:-1]) + rod[2:])
        rod = following
    total = int((rod * f(1000)).astype(np.uint64).sum())
    save("cooperative_groups/heat_after.npy", rod)
    save("cooperative_groups/heat_total.npy", np.array([total, total // 500], np.uint64))


def save(name, array):
    np.save(HERE / name, array)
    print(f"{name}: {array.dtype} {array.shape}")


def main():
    save("basics/saxpy_1000.npy", (2.0 * random(1000, 1).astype(np.float64) + random(1000, 2)).astype(np.float32))
    save("fractals/mandelbrot_100x75.npy", mandelbrot(100, 75, 64))
    a, b = random((48, 48), 1).astype(np.float64), random((48, 48), 2).astype(np.float64)
    save("linear_algebra/matmul_48.npy", (a @ b).astype(np.float32))
    save("reductions/sum_random.npy", np.array([random(100000, 3).sum(dtype=np.float64)], np.float32))
    save("linear_algebra/transpose_75x100.npy", np.ascontiguousarray(random((100, 75), 4).T))
    numbers = np.random.default_rng(11)
    spot, strike, years = (numbers.uniform(low, high, 5000).astype(np.float32) for low, high in ((5, 30), (1, 100), (0.25, 10)))
    for name, array in (("spot", spot), ("strike", strike), ("years", years)):
        save(f"finance/{name}.npy", array)
    call, put = black_scholes(*(x.astype(np.float64) for x in (spot, strike, years)), np.float32(0.02), np.float32(0.3))
    save("finance/call.npy", call.astype(np.float32))
    save("finance/put.npy", put.astype(np.float32))
    for count in (512, 16384):
        save(f"physics/nbody_{count}.npy", nbody(random((count, 4), 5), np.float32(0.01)))
    save("stencils/five_point_75x100.npy", five_point(random((75, 100), 6)))
    data = numbers.binomial(255, 0.4, 20000).astype(np.uint8)
    save("histograms/bytes.npy", data)
    save("histograms/counts.npy", np.bincount(data, minlength=256).astype(np.uint32))
    save("histograms/counts_and_one.npy", np.bincount(data, minlength=256).astype(np.uint32) + np.uint32(1))
    integers = numbers.integers(-1000, 1000, 1000, dtype=np.int32)
    save("scans/integers.npy", integers)
    save("scans/block_scan.npy", np.concatenate([np.cumsum(integers[i : i + 256], dtype=np.int32) for i in range(0, 1000, 256)]))
    save("cub/integers.npy", integers[:512])
    save("cub/running.npy", np.cumsum(integers[:512].reshape(4, 128), axis=1, dtype=np.int32).ravel())
    save("cub/totals.npy", integers[:512].reshape(4, 128).sum(1, dtype=np.int32))
    x, y = (numbers.normal(0, 10, 2000).astype(np.float16) for _ in range(2))
    save("half_precision/x.npy", x)
    save("half_precision/y.npy", y)
    # The products of halves are exact in float64, and so are the sums here: rounded once.
    save("half_precision/axpy.npy", (np.float64(1.5) * x.astype(np.float64) + y.astype(np.float64)).astype(np.float16))
    turned = np.ascontiguousarray(np.arange(2**24, dtype=np.float32).reshape(4096, 4096).T)
    print(f"transpose 4096 x 4096: sha256 {hashlib.sha256(turned.tobytes()).hexdigest()}")
    python_samples()
    more_samples()
    expected_python.write(save)
    device_samples()
    waiting_samples()
    large = hashlib.sha256(mandelbrot(2048, 2048, 256).tobytes()).hexdigest()
    print(f"mandelbrot 2048 x 2048, 256: sha256 {large}")


main()
