# SPDX-License-Identifier: Apache-2.0
"""A Julia set with complex numbers."""
from numba import cuda


@cuda.jit
def julia(image, c, limit):
    row, column = cuda.grid(2)
    height, width = image.shape
    if row >= height or column >= width:
        return
    z = complex(3.0 * column / width - 1.5, 3.0 * row / height - 1.5)
    count = 0
    while count < limit and z.real * z.real + z.imag * z.imag <= 4.0:
        z = z * z + c
        count += 1
    image[row, column] = count
