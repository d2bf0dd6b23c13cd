# SPDX-License-Identifier: Apache-2.0
"""One Jacobi step of Laplace's equation, with the largest change."""
from numba import cuda


@cuda.jit
def laplace(u, following, change):
    j, i = cuda.grid(2)
    n, m = u.shape
    if 1 <= i < n - 1 and 1 <= j < m - 1:
        following[i, j] = 0.25 * (u[i, j + 1] + u[i, j - 1] + u[i - 1, j] + u[i + 1, j])
        cuda.atomic.max(change, 0, abs(following[i, j] - u[i, j]))
