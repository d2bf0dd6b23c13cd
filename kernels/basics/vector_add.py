# SPDX-License-Identifier: Apache-2.0
"""c = a + b three ways: one element a thread, a loop over the grid's stride, and with types that the decorator settles."""
from numba import cuda, float32, void


@cuda.jit
def add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@cuda.jit
def add_striding(a, b, c):
    for i in range(cuda.grid(1), c.size, cuda.gridsize(1)):
        c[i] = a[i] + b[i]


@cuda.jit(void(float32[::1], float32[::1], float32[::1]))
def add_typed(a, b, c):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < c.size:
        c[i] = a[i] + b[i]
