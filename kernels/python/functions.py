# SPDX-License-Identifier: Apache-2.0
"""The functions of math, one column each, in float64 and in float32."""
import math
from numba import cuda


@cuda.jit
def of_one(x, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    v = x[i]
    out[0, i] = math.sqrt(v)
    out[1, i] = math.exp(v)
    out[2, i] = math.log(v)
    out[3, i] = math.log10(v)
    out[4, i] = math.sin(v)
    out[5, i] = math.atan(v)
    out[6, i] = math.tanh(v)
    out[7, i] = math.asinh(v)
    out[8, i] = math.floor(v)
    out[9, i] = math.ceil(v)
    out[10, i] = math.erf(v)
    out[11, i] = math.degrees(v)


@cuda.jit
def of_two(x, y, out):
    i = cuda.grid(1)
    if i >= x.size:
        return
    a, b = x[i], y[i]
    out[0, i] = math.pow(a, b)
    out[1, i] = math.atan2(a, b)
    out[2, i] = math.hypot(a, b)
    out[3, i] = math.fmod(a, b)
    out[4, i] = math.copysign(a, b)
    out[5, i] = a ** b
    out[6, i] = abs(b) + math.fabs(b)
    mantissa, exponent = math.frexp(a)
    out[7, i] = mantissa
    out[8, i] = exponent
    fraction, whole = math.modf(b)
    out[9, i] = fraction
    out[10, i] = whole
    out[11, i] = math.isnan(b) or math.isinf(b)
