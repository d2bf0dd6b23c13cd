# SPDX-License-Identifier: Apache-2.0
"""The bits of integers: CUDA's and NumPy's functions for them, and unsigned types, whose results Numba widens to 64 bits."""
import numpy as np
from numba import cuda, uint8, uint32, int32


@cuda.jit
def bits(values, out):
    i = cuda.grid(1)
    if i < values.size:
        v = values[i]
        out[i, 0] = cuda.popc(v)
        out[i, 1] = cuda.clz(v)
        out[i, 2] = cuda.ffs(v)
        out[i, 3] = cuda.brev(v)
        out[i, 4] = uint8(v) + uint8(255)
        out[i, 5] = uint32(v + 4294967295)
        out[i, 6] = (v >> uint32(3)) & 0xFF
        out[i, 7] = ~v & 0xFFFF
        out[i, 8] = cuda.selp(v > 1000, 1, 2)
        out[i, 9] = int32(v) * int32(v)


@cuda.jit
def one_bits(values, out):
    i = cuda.grid(1)
    if i < values.size:
        out[i] = np.bitwise_count(values[i])
