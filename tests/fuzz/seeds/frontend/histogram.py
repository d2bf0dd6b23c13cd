# SPDX-License-Identifier: Apache-2.0
"""A histogram: each block counts in shared memory, then adds to the whole."""
from numba import cuda, int32

BINS = 64


@cuda.jit
def histogram(values, low, high, counts):
    local = cuda.shared.array(BINS, int32)
    for b in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        local[b] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.shape[0], cuda.gridsize(1)):
        b = int((values[i] - low) / (high - low) * BINS)
        if 0 <= b < BINS:
            cuda.atomic.add(local, b, 1)
    cuda.syncthreads()
    for b in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        cuda.atomic.add(counts, b, local[b])
