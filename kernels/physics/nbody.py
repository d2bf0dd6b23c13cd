# SPDX-License-Identifier: Apache-2.0
"""Gravitation between n bodies, each with each, through tiles in shared memory. A row of bodies is x, y, z and mass."""
from numba import cuda, float32
import math

TILE = 256


@cuda.jit
def nbody(bodies, acceleration, softening):
    tile = cuda.shared.array((TILE, 4), float32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    x, y, z = bodies[i, 0], bodies[i, 1], bodies[i, 2]
    ax = ay = az = float32(0)
    for first in range(0, bodies.shape[0], TILE):
        for k in range(4):
            tile[t, k] = bodies[first + t, k]
        cuda.syncthreads()
        for j in range(TILE):
            dx, dy, dz = tile[j, 0] - x, tile[j, 1] - y, tile[j, 2] - z
            inverse = float32(1) / math.sqrt(dx * dx + dy * dy + dz * dz + softening)
            pull = tile[j, 3] * inverse * inverse * inverse
            ax += dx * pull
            ay += dy * pull
            az += dz * pull
        cuda.syncthreads()
    acceleration[i, 0] = ax
    acceleration[i, 1] = ay
    acceleration[i, 2] = az
