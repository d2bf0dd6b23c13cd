# SPDX-License-Identifier: Apache-2.0
"""Barriers that count and vote, fences, and a barrier of the warp."""
from numba import cuda, int32


@cuda.jit
def barriers(values, limit, out):
    shared = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    value = values[cuda.grid(1)]
    above = cuda.syncthreads_count(int32(value > limit))
    every = cuda.syncthreads_and(int32(value > limit))
    some = cuda.syncthreads_or(int32(value > limit))
    shared[t] = value
    cuda.threadfence_block()
    cuda.syncwarp()
    neighbour = shared[t ^ 1]
    cuda.syncthreads()
    pairs = cuda.syncthreads_count(int32(neighbour > value))
    cuda.threadfence()
    if t == 0:
        out[cuda.blockIdx.x, 0] = above
        out[cuda.blockIdx.x, 1] = 1 if every else 0
        out[cuda.blockIdx.x, 2] = 1 if some else 0
        out[cuda.blockIdx.x, 3] = pairs
