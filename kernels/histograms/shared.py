# SPDX-License-Identifier: Apache-2.0
"""counts[b] += how many of the bytes are b: each block counts in shared memory first."""
from numba import cuda, uint32

BINS = 256


@cuda.jit
def shared_histogram(data, counts):
    own = cuda.shared.array(BINS, uint32)
    for b in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        own[b] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), data.size, cuda.gridsize(1)):
        cuda.atomic.add(own, data[i], 1)
    cuda.syncthreads()
    for b in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        cuda.atomic.add(counts, b, own[b])
