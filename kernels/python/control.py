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


@cuda.jit
def inner_else(out):
    t = cuda.grid(1)
    found = 0
    for a in range(3):
        for b in range(2):
            if b == t:
                break
        else:
            found += 1
            if a == 1:
                break
        found += 10
    else:
        found += 100
    while found < 50:
        while True:
            found += 7
            break
        for b in range(2):
            pass
        else:
            break
    else:
        found += 1000
    out[t] = found


@cuda.jit
def side_by_side(values, out):
    for j, (p, q) in enumerate(zip(values, values[1:])):
        out[j] = p * q
    for a, (b, c) in zip(values, enumerate(range(9, 0, -4), 12)):
        out[b] = a + c
    for pair in zip(zip(values, (5, 6)), range(100, 102)):
        out[9] += pair[0][0] * pair[0][1] + pair[1]
    seen = values
    for v in seen:
        seen = values[2:]
        out[10] += v + len(seen)
    first = 3
    for i, v in enumerate(range(4), first):
        first += 1
        out[11] += i * v


@cuda.jit(device=True)
def here():
    return cuda.grid(2)


@cuda.jit
def places(out):
    g = cuda.grid(2)
    out[g] = 1
    out[cuda.grid(2)] += 10 * g[0]
    if here() == (1, 2):
        out[1, 2] += 100
    t = cuda.threadIdx
    size = cuda.gridsize(2)
    out[t.x, t.y] += 1000 * (size[0] + size[1])
