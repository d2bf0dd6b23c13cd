# SPDX-License-Identifier: Apache-2.0
"""Operators on operands of different types, where C++ has none of its own: complex numbers and halves with all others, tuples with tuples."""
from numba import cuda


@cuda.jit
def complex_numbers(z, w, real, ints, narrow, wide, truths):
    i = cuda.grid(1)
    if i >= z.size:
        return
    narrow[i, :] = z[i]
    narrow[i, 0] += 2
    narrow[i, 1] *= 2.5
    narrow[i, 2] -= ints[i]
    narrow[i, 3] += 1j
    narrow[i, 4] += w[i]
    narrow[i, 5] /= real[i]
    narrow[i, 6] = w[i] * z[i]
    for k in range(w.size):
        wide[i, k] = w[k]
    wide[i, 0] = z[i] if ints[i] > 1 else w[i]
    wide[i, 1] = ints[i] and z[i]
    truths[i, 0] = z[i] == 1j
    truths[i, 1] = z[i] == real[i]
    truths[i, 2] = z[i] != w[i]
    truths[i, 3] = w[i] == 0
    truths[i, 4] = real[i] == 1j
    truths[i, 5] = z[i] in (1j, 2j)
    truths[i, 6] = (z[i], 3) == (w[i], 3)
    truths[i, 7] = (ints[i], (real[i], 3)) != (z[i], (w[i], 3))


@cuda.jit
def halves(h, real, ints, numbers, truths):
    i = cuda.grid(1)
    if i >= h.size:
        return
    numbers[i, 0] = h[i] if ints[i] > 1 else real[i]
    numbers[i, 1] = h[i] if ints[i] > 1 else 0.1
    numbers[i, 2] = h[i] + 1.5
    numbers[i, 3] = h[i] * real[i]
    numbers[i, 4] = h[i] // 2
    truths[i, 0] = h[i] > 2.5
    truths[i, 1] = h[i] == 1.0
    truths[i, 2] = h[i] < real[i]
    truths[i, 3] = 0 < h[i] <= 3
    truths[i, 4] = h[i] in (1, 2)
    truths[i, 5] = (h[i], 3) == (ints[i], 3)
    truths[i, 6] = h[i] == 1.000244140625


@cuda.jit
def tuples(real, ints, truths):
    i = cuda.grid(1)
    if i >= real.size:
        return
    a, b = (real[i], ints[i]), (ints[i], real[i], 3)
    truths[i, 0] = a < b
    truths[i, 1] = a <= a
    truths[i, 2] = b > a
    truths[i, 3] = (1, (ints[i], 2)) >= (True, (real[i], 2.5))
    truths[i, 4] = (1, 2) < (1, 2, 3)
