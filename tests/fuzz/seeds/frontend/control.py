# SPDX-License-Identifier: Apache-2.0
"""Loops with else, break and continue, steps of any sign, loops over arrays and tuples, negative indices."""
from numba import cuda


@cuda.jit
def loops(values, out):
    total = 0
    for v in values:
        if v < 0:
            continue
        total += v
    out[0] = total
    for i in range(len(values) - 1, -1, -1):
        if values[i] < 0:
            out[1] = i
            break
    else:
        out[1] = -1
    for i, v in enumerate(values):
        if v == 1000:
            break
    else:
        out[2] = 7
    for a, b in zip(values, values[1:]):
        out[3] += a * b
    step = -3
    for i in range(10, 0, step):
        out[4] += i
    n = 27
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    out[5] = count
    out[-1] = values[-1]
    out[-2] = values[-len(values)]
    for i in range(3):
        last = i
    out[8] = last


@cuda.jit
def changes_type(values, out):
    x = 7
    out[0] = x // 2
    x = 0.5
    out[1] = x
    total = 0
    for v in values:
        total = total + v / 2
    out[2] = total
