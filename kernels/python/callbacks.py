# SPDX-License-Identifier: Apache-2.0
"""Functions as values: passed to a device function, held in a tuple, under another name, with names around them that change."""
import math
from numba import cuda


@cuda.jit(device=True)
def square(x):
    return x * x


@cuda.jit(device=True)
def bell(x):
    return 1 / (1 + x * x)


@cuda.jit(device=True)
def trapezoids(f, low, high, count):
    width = (high - low) / count
    total = (f(low) + f(high)) / 2
    for k in range(1, count):
        total += f(low + k * width)
    return total * width


CURVES = (square, bell, math.exp)


@cuda.jit
def integrals(limits, out):
    i = cuda.grid(1)
    if i >= out.shape[0]:
        return
    low, high = limits[i, 0], limits[i, 1]
    out[i, 0] = trapezoids(square, low, high, 100)
    out[i, 1] = trapezoids(CURVES[1], low, high, 100)
    curve = CURVES[::-1][0]
    out[i, 2] = trapezoids(curve, low, high, 100)
    out[i, 3] = trapezoids(lambda x: x + 1, low, high, 100)
    scale = 2

    def scaled(x):
        return scale * x

    out[i, 4] = scaled(high)
    scale = 3  # what is called from here on sees this
    out[i, 5] = scaled(high)
