# SPDX-License-Identifier: Apache-2.0
"""Kernels as people write them for Numba: cuda.grid, strides, arrays of two dimensions, shared memory, device functions."""
from numba import cuda, float32, int32, uint32

TPB = 16
THREADS = 256


@cuda.jit
def fast_matmul(A, B, C):
    sA = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    sB = cuda.shared.array(shape=(TPB, TPB), dtype=float32)
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    bpg = cuda.gridDim.x
    tmp = float32(0.)
    for i in range(bpg):
        sA[ty, tx] = 0
        sB[ty, tx] = 0
        if y < A.shape[0] and (tx + i * TPB) < A.shape[1]:
            sA[ty, tx] = A[y, tx + i * TPB]
        if x < B.shape[1] and (ty + i * TPB) < B.shape[0]:
            sB[ty, tx] = B[ty + i * TPB, x]
        cuda.syncthreads()
        for j in range(TPB):
            tmp += sA[ty, j] * sB[j, tx]
        cuda.syncthreads()
    if y < C.shape[0] and x < C.shape[1]:
        C[y, x] = tmp


@cuda.jit
def laplace(grid, out):
    i, j = cuda.grid(2)
    if 0 < i < grid.shape[1] - 1 and 0 < j < grid.shape[0] - 1:
        out[j, i] = float32(0.25) * (grid[j, i - 1] + grid[j, i + 1] + grid[j - 1, i] + grid[j + 1, i])


@cuda.jit
def dot(a, b, result):
    partial = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    mine = float32(0)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        mine += a[i] * b[i]
    partial[t] = mine
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            partial[t] += partial[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(result, 0, partial[0])


@cuda.jit(device=True)
def advance(state):
    state ^= state << uint32(13)
    state &= 0xFFFFFFFF
    state ^= state >> uint32(17)
    state ^= state << uint32(5)
    return uint32(state)


@cuda.jit
def inside(n, hits):
    thread = cuda.grid(1)
    if thread >= hits.size:
        return
    state = uint32(thread + 1)
    count = int32(0)
    for _ in range(n):
        state = advance(state)
        x = float32(state) / float32(4294967296.0)
        state = advance(state)
        y = float32(state) / float32(4294967296.0)
        if x * x + y * y < float32(1):
            count += int32(1)
    hits[thread] = count
