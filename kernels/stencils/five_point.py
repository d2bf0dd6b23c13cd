# SPDX-License-Identifier: Apache-2.0
"""One step of Jacobi's iteration: each inner point becomes the mean of its four neighbours; the rim stays."""
from numba import cuda, float32


@cuda.jit
def five_point(source, target):
    x, y = cuda.grid(2)
    height, width = source.shape
    if x >= width or y >= height:
        return
    if x == 0 or y == 0 or x == width - 1 or y == height - 1:
        target[y, x] = source[y, x]
    else:
        target[y, x] = float32(0.25) * (source[y, x - 1] + source[y, x + 1] + source[y - 1, x] + source[y + 1, x])
