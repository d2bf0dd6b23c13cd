# SPDX-License-Identifier: Apache-2.0
"""Integers and floats as Python computes with them: // and % round down, / is a float, ** of integers an integer,
round takes digits."""
from numba import cuda


@cuda.jit
def integers(a, b, quotient, remainder, ratio, power, shifted):
    i = cuda.grid(1)
    if i < a.size:
        quotient[i] = a[i] // b[i]
        remainder[i] = a[i] % b[i]
        ratio[i] = a[i] / b[i]
        power[i] = a[i] ** 3
        shifted[i] = (a[i] << 2) ^ (b[i] >> 1) | (~a[i] & b[i])


@cuda.jit
def floats(a, b, quotient, remainder):
    i = cuda.grid(1)
    if i < a.size:
        quotient[i] = a[i] // b[i]
        remainder[i] = a[i] % b[i]


@cuda.jit
def chosen(a, b, out):
    i = cuda.grid(1)
    if i < a.size:
        x, y = a[i], b[i]
        out[i, 0] = x and y
        out[i, 1] = x or y
        out[i, 2] = x if x > y else y
        out[i, 3] = -5 < x <= y
        out[i, 4] = x in (1, 2, 3)
        out[i, 5] = round(x / 2)
        out[i, 6] = min(x, y, 4)
        out[i, 7] = abs(x) + int(y / 3)


@cuda.jit
def rounded(x, out):
    i = cuda.grid(1)
    if i < x.size:
        for digits in range(-2, 4):
            out[i, digits + 2] = round(x[i], digits)
