# SPDX-License-Identifier: Apache-2.0
"""y = a * x + y, one element a thread; threads beyond the arrays' end do nothing."""
import numpy as np
from numba import cuda


@cuda.jit
def saxpy(a, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i] + y[i]


if __name__ == "__main__":
    x = np.arange(1000, dtype=np.float32)
    y = np.ones(1000, dtype=np.float32)
    saxpy[4, 256](np.float32(2), x, y)
    print(y)
