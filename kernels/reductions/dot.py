# SPDX-License-Identifier: Apache-2.0
"""The dot product of two vectors in float64: the block's threads through shared memory, the blocks by an atomic."""
from numba import cuda, float64

THREADS = 128


@cuda.jit
def dot(a, b, result):
    partial = cuda.shared.array(shape=THREADS, dtype=float64)
    t = cuda.threadIdx.x
    partial[t] = 0.0
    for i in range(cuda.grid(1), min(len(a), len(b)), cuda.gridsize(1)):
        partial[t] += a[i] * b[i]
    cuda.syncthreads()
    width = THREADS // 2
    while width:
        if t < width:
            partial[t] += partial[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        cuda.atomic.add(result, 0, partial[0])
