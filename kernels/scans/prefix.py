# SPDX-License-Identifier: Apache-2.0
"""The exclusive prefix sum of a block by G. Blelloch: up a tree of sums in dynamic shared memory, and down again."""
from numba import cuda, float64


@cuda.jit
def prefix(values, sums):
    tree = cuda.shared.array(0, float64)
    t = cuda.threadIdx.x
    n = cuda.blockDim.x
    tree[t] = values[t] if t < values.size else 0.0
    step = 1
    while step < n:
        cuda.syncthreads()
        at = (t + 1) * 2 * step - 1
        if at < n:
            tree[at] += tree[at - step]
        step <<= 1
    cuda.syncthreads()
    if t == 0:
        tree[n - 1] = 0.0
    step = n >> 1
    while step > 0:
        cuda.syncthreads()
        at = (t + 1) * 2 * step - 1
        if at < n:
            left = tree[at - step]
            tree[at - step] = tree[at]
            tree[at] += left
        step >>= 1
    cuda.syncthreads()
    if t < sums.size:
        sums[t] = tree[t]
