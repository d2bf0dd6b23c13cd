# SPDX-License-Identifier: Apache-2.0
"""Device functions that call themselves and each other: their decorators give the types."""
from numba import cuda, int64


@cuda.jit("int64(int64)", device=True)
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@cuda.jit(int64(int64, int64), device=True)
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@cuda.jit("int64(int64, int64)", device=True)
def divisor(a, b):
    return a if b == 0 else divisor(b, a % b)


@cuda.jit
def numbers(out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i, 0] = fibonacci(i)
        out[i, 1] = divisor(i * 12, 90)
        out[i, 2] = ackermann(2, i % 4)
