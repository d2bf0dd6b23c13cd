# SPDX-License-Identifier: Apache-2.0
"""float16: arithmetic rounds to halves at every step; cuda.fp16 has its functions, hfma rounds once."""
from numba import cuda
from numba.types import float16


@cuda.jit
def polynomial(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        out[i, 0] = v * v + v
        out[i, 1] = cuda.fp16.hfma(v, v, v)
        out[i, 2] = cuda.fp16.hmax(v, float16(1))
        out[i, 3] = abs(-v)
