# SPDX-License-Identifier: Apache-2.0
"""A debug build: indices, divisors and assertions are checked, and what fails is told with its line, block and thread."""
from numba import cuda


@cuda.jit(debug=True, opt=False)
def ratios(a, b, out):
    i = cuda.grid(1)
    assert a.size == b.size, "arrays of two lengths"
    out[i] = a[i] // b[i]


@cuda.jit(debug=True, opt=False)
def unused(a, i):
    v = a[i]


@cuda.jit(debug=True, opt=False)
def remainder(a, i):
    a[0] = 5
    i //= a[1]
    a[0] += 1
