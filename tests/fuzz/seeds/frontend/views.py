# SPDX-License-Identifier: Apache-2.0
"""Slices and rows are views: what is written to them is written to the array."""
from numba import cuda


@cuda.jit(device=True)
def mean(values):
    total = 0.0
    for v in values:
        total += v
    return total / len(values)


@cuda.jit
def rows(matrix, means):
    i = cuda.grid(1)
    if i < matrix.shape[0]:
        row = matrix[i]
        means[i, 0] = mean(row)
        means[i, 1] = mean(row[1:-1])
        means[i, 2] = mean(row[::2])
        means[i, 3] = mean(matrix[i, ::-3])
        row[0] = i
        if i == 0:
            matrix[-1, 2:4] = 5.0
