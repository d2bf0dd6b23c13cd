# SPDX-License-Identifier: Apache-2.0
"""Sorts the block's part of an array by a bitonic network in shared memory."""
from numba import cuda, int32

SIZE = 256


@cuda.jit
def bitonic(values):
    part = cuda.shared.array(SIZE, int32)
    i = cuda.threadIdx.x
    first = cuda.blockIdx.x * SIZE
    part[i] = values[first + i]
    cuda.syncthreads()
    k = 2
    while k <= SIZE:
        j = k >> 1
        while j > 0:
            other = i ^ j
            if other > i:
                if (part[i] > part[other]) == ((i & k) == 0):
                    part[i], part[other] = part[other], part[i]
            cuda.syncthreads()
            j >>= 1
        k *= 2
    values[first + i] = part[i]
