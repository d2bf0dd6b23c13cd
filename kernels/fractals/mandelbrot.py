# SPDX-License-Identifier: Apache-2.0
"""The Mandelbrot set in float32: the number of steps that a point stays inside."""
from numba import cuda, float32


@cuda.jit(device=True)
def steps(cx, cy, limit):
    x = y = float32(0)
    for i in range(limit):
        if x * x + y * y >= float32(4):
            return i
        x, y = x * x - y * y + cx, float32(2) * x * y + cy
    return limit


@cuda.jit
def mandelbrot(image, limit):
    column, row = cuda.grid(2)
    height, width = image.shape
    if row < height and column < width:
        cx = float32(-2) + float32(3) * float32(column) / float32(width)
        cy = float32(-1) + float32(2) * float32(row) / float32(height)
        image[row, column] = steps(cx, cy, limit)
