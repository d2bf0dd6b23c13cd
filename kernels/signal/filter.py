# SPDX-License-Identifier: Apache-2.0
"""The frequency response of a filter whose coefficients the program may bind: complex functions, constants of any length."""
import cmath
import numpy as np
from numba import cuda

TAPS = np.array([0.25, 0.5, 0.25])


@cuda.jit
def response(frequencies, out):
    i = cuda.grid(1)
    if i < frequencies.size:
        taps = cuda.const.array_like(TAPS)
        total = complex(0, 0)
        for k in range(taps.size):
            total += taps[k] * cmath.exp(-1j * k * frequencies[i])
        out[i, 0] = abs(total)
        out[i, 1] = cmath.phase(total)
