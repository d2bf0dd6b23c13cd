# SPDX-License-Identifier: Apache-2.0
"""Attributes of arrays, arrays of no and of three dimensions, shapes as loop bounds, and a fold over any number of axes."""
from numba import cuda


@cuda.jit
def describe(cube, single, out):
    out[0] = cube.ndim
    out[1] = cube.size
    out[2] = cube.itemsize
    for axis in range(3):
        out[3 + axis] = cube.shape[axis]
        out[6 + axis] = cube.strides[axis]
    out[9] = single[()]
    total = 0
    for plane in cube:
        for row in plane:
            for value in row:
                total += value
    out[10] = total
    out[11] = cube[-1, -1, -1]
    view = cube[1:, ::2, -1]
    out[12] = view.shape[0] * 100 + view.shape[1]
    out[13] = view[0, 1]
    single[()] = total
