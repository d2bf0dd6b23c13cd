# SPDX-License-Identifier: Apache-2.0
"""Colours to grey and back into one channel: arrays of three dimensions, strided views of them, and a slice that is written to."""
from numba import cuda


@cuda.jit
def grey(colours, shades):
    row, column = cuda.grid(2)
    if row < colours.shape[0] and column < colours.shape[1]:
        red, green, blue = colours[row, column, 0], colours[row, column, 1], colours[row, column, 2]
        shades[row, column] = (299 * red + 587 * green + 114 * blue) // 1000


@cuda.jit
def rows_in_red(colours):
    row = cuda.grid(1)
    if row < colours.shape[0]:
        colours[row, ::2, 1:] = 0
        line = colours[row, 1::2]
        for k in range(line.shape[0]):
            line[k, 0] = 255 - line[k, 0]
