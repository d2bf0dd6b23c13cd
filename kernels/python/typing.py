# SPDX-License-Identifier: Apache-2.0
"""Numba's types: integers compute in 64 bits, a name may change its type, paths meet in the type that takes both."""
import numpy as np
from numba import cuda, int32, uint8, float32


@cuda.jit
def widths(small, unsigned, out):
    i = cuda.grid(1)
    if i >= out.shape[0]:
        return
    s, u = small[i], unsigned[i]
    out[i, 0] = s * s
    out[i, 1] = u + u
    out[i, 2] = s - u
    out[i, 3] = -s
    out[i, 4] = int32(s * s)
    out[i, 5] = uint8(u + u)
    out[i, 6] = s / u
    out[i, 7] = float32(s) / float32(3)
    out[i, 8] = np.int16(s) + np.float32(0.5)
    x = s
    if u > 10:
        x = 0.5
    out[i, 9] = x
    b = s > 0
    out[i, 10] = b + b
    out[i, 11] = True if b else 2


@cuda.jit
def divisors(signed, unsigned, out):
    out[0] = np.lcm(signed[0], signed[1])
    out[1] = np.gcd(unsigned[0], unsigned[1] - unsigned[1] + np.uint64(12))
