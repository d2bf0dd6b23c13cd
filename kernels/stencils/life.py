# SPDX-License-Identifier: Apache-2.0
"""One generation of the game of life on a torus."""
from numba import cuda


@cuda.jit
def life(cells, following):
    column, row = cuda.grid(2)
    height, width = cells.shape
    if row >= height or column >= width:
        return
    neighbours = 0
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if dy != 0 or dx != 0:
                neighbours += cells[(row + dy) % height, (column + dx) % width]
    following[row, column] = neighbours == 3 or (cells[row, column] == 1 and neighbours == 2)
