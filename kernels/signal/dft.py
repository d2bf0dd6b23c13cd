# SPDX-License-Identifier: Apache-2.0
"""The discrete Fourier transform straight from its definition, with complex numbers."""
import math
from numba import cuda, complex128


@cuda.jit
def dft(signal, spectrum):
    k = cuda.grid(1)
    n = signal.shape[0]
    if k >= n:
        return
    total = complex128(0)
    for t in range(n):
        angle = -2.0 * math.pi * ((k * t) % n) / n
        total += signal[t] * complex(math.cos(angle), math.sin(angle))
    spectrum[k] = total


@cuda.jit
def power(spectrum, out):
    k = cuda.grid(1)
    if k < spectrum.size:
        z = spectrum[k]
        out[k, 0] = abs(z)
        out[k, 1] = (z * complex(z.real, -z.imag)).real
        out[k, 2] = z.imag
