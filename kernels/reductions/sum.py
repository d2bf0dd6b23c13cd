# SPDX-License-Identifier: Apache-2.0
"""The sum of an array: each thread over its stride, each block through shared memory, the blocks by an atomic."""
from numba import cuda, float32

THREADS = 256


@cuda.jit
def total(values, result):
    partial = cuda.shared.array(THREADS, float32)
    lane = cuda.threadIdx.x
    mine = float32(0)
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        mine += values[i]
    partial[lane] = mine
    cuda.syncthreads()
    width = THREADS // 2
    while width > 0:
        if lane < width:
            partial[lane] += partial[lane + width]
        cuda.syncthreads()
        width //= 2
    if lane == 0:
        cuda.atomic.add(result, 0, partial[0])


@cuda.jit
def total_by_shuffles(values, result):
    mine = float32(0)
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        mine += values[i]
    offset = 16
    while offset > 0:
        mine += cuda.shfl_down_sync(0xFFFFFFFF, mine, offset)
        offset >>= 1
    if cuda.laneid == 0:
        cuda.atomic.add(result, 0, mine)
