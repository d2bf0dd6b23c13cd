# SPDX-License-Identifier: Apache-2.0
"""Transposes through a tile that is one column wider, so that no two lanes meet in a bank."""
from numba import cuda, float32

TILE = 32
PADDED = TILE + 1
ROWS = 8


@cuda.jit
def transpose(source, target):
    tile = cuda.shared.array((TILE, PADDED), float32)
    x = cuda.blockIdx.x * TILE + cuda.threadIdx.x
    y = cuda.blockIdx.y * TILE + cuda.threadIdx.y
    height, width = source.shape
    for j in range(0, TILE, ROWS):
        if x < width and y + j < height:
            tile[cuda.threadIdx.y + j, cuda.threadIdx.x] = source[y + j, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * TILE + cuda.threadIdx.x
    y = cuda.blockIdx.x * TILE + cuda.threadIdx.y
    for j in range(0, TILE, ROWS):
        if x < height and y + j < width:
            target[y + j, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y + j]
