#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the expected values of the cases: NumPy and plain loops, nothing of quern's. Run it after changing a case."""
import hashlib
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


def save(name, array):
    np.save(HERE / name, array)
    print(f"{name}: {array.dtype} {array.shape}")


def main():
    save("basics/saxpy_1000.npy", (2.0 * random(1000, 1).astype(np.float64) + random(1000, 2)).astype(np.float32))
    save("fractals/mandelbrot_100x75.npy", mandelbrot(100, 75, 64))
    a, b = random((48, 48), 1).astype(np.float64), random((48, 48), 2).astype(np.float64)
    save("linear_algebra/matmul_48.npy", (a @ b).astype(np.float32))
    save("reductions/sum_random.npy", np.array([random(100000, 3).sum(dtype=np.float64)], np.float32))
    large = hashlib.sha256(mandelbrot(2048, 2048, 256).tobytes()).hexdigest()
    print(f"mandelbrot 2048 x 2048, 256: sha256 {large}")


main()
