# SPDX-License-Identifier: Apache-2.0
"""Tuples: of several results, as constants, indexed, compared in loops, unpacked, chained."""
from numba import cuda

OFFSETS = ((0, 1), (1, 0), (0, -1), (-1, 0))
LIMITS = (3, 5)


@cuda.jit(device=True)
def divide(a, b):
    return a // b, a % b


@cuda.jit(device=True)
def extremes(values):
    least = most = values[0]
    for v in values:
        least, most = min(least, v), max(most, v)
    return least, most, (least + most) / 2


@cuda.jit
def tuples(values, out):
    quotient, remainder = divide(values[0], values[1])
    out[0] = quotient
    out[1] = remainder
    low, high, middle = extremes(values)
    out[2] = low
    out[3] = high
    out[4] = middle
    total = 0
    for dy, dx in OFFSETS:
        total += 10 * dy + dx
    out[5] = total
    pair = (values[2], values[3])
    out[6] = pair[0] - pair[1]
    out[7] = len(OFFSETS) + LIMITS[1]
    a = b, c = pair
    out[8] = a[1] * b + c
    rest = pair[1:]
    out[9] = rest[0]
    out[10] = values.shape[0] in LIMITS
    out[11] = divmod(values[3], 4)[1]
    every = (values[0], values[1], values[2], values[3], values[4])
    last, middle, first = every[::-2]
    out[12] = last - middle + 2 * first
    second, fourth = every[1:-1:2]
    out[13] = second - fourth


@cuda.jit
def orders(values, out):
    n = values[0]
    out[0] = (1, 2) < (n, 3)
    out[1] = (n, 2) <= (n, 2)
    out[2] = (n, 2) > (n, 1, 5)
    out[3] = (n, 2.5) >= (n, 3)
    out[4] = (n, 2) < (n, 2, 0)
    out[5] = ((n, 2), 3) == ((n, 2), 3)
    out[6] = ((n, 2), 3) < ((n, 3), 1)
    out[7] = () < ()
    out[8] = max((n, values[1], 4)) * 10 + min((n, values[1]))
    pair = (values[1], n)
    out[9] = max(pair)
    count = 0
    for i in range(-20, 20):
        count += i in range(-7, 12, 4)
        count += 100 * (i in range(9, -9, -5))
        count += 10000 * (i not in range(n))
    out[10] = count
