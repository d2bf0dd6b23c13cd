# SPDX-License-Identifier: Apache-2.0
"""A step of the heat equation in a box of three dimensions; the walls keep their temperature."""
from numba import cuda


@cuda.jit
def heat(now, following, rate):
    x, y, z = cuda.grid(3)
    nx, ny, nz = now.shape
    if x >= nx or y >= ny or z >= nz:
        return
    here = now[x, y, z]
    if 0 < x < nx - 1 and 0 < y < ny - 1 and 0 < z < nz - 1:
        around = now[x - 1, y, z] + now[x + 1, y, z] + now[x, y - 1, z] + now[x, y + 1, z] + now[x, y, z - 1] + now[x, y, z + 1]
        following[x, y, z] = here + rate * (around - 6.0 * here)
    else:
        following[x, y, z] = here
