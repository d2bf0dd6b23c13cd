# SPDX-License-Identifier: Apache-2.0
"""Functions inside functions: they see the names around them; lambdas are functions of one expression."""
from numba import cuda


@cuda.jit
def integrate(limits, out):
    i = cuda.grid(1)
    if i >= out.size:
        return
    low, high = limits[i, 0], limits[i, 1]
    steps = 100

    def f(x, power=2):
        return x**power - low

    width = (high - low) / steps
    middle = lambda k: low + (k + 0.5) * width
    total = 0.0
    for k in range(steps):
        total += f(middle(k))
    out[i] = total * width
