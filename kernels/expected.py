#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the expected values of the cases: NumPy and plain loops, nothing of quern's. Run it after changing a case."""
import hashlib
import math
import pathlib
import numpy as np

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
    large = hashlib.sha256(mandelbrot(2048, 2048, 256).tobytes()).hexdigest()
    print(f"mandelbrot 2048 x 2048, 256: sha256 {large}")


main()
