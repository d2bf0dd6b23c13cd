# SPDX-License-Identifier: Apache-2.0
"""A 3 x 3 filter whose weights lie in constant memory in two dimensions; the block's part of the image lies in shared memory, with its rim."""
import numpy as np
from numba import cuda, float32

WEIGHTS = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]], dtype=np.float32)
SIDE = 16
WITH_RIM = SIDE + 2


@cuda.jit
def convolve(image, result):
    weights = cuda.const.array_like(WEIGHTS)
    part = cuda.shared.array((WITH_RIM, WITH_RIM), float32)
    height, width = image.shape
    column, row = cuda.grid(2)
    left, top = cuda.blockIdx.x * SIDE - 1, cuda.blockIdx.y * SIDE - 1
    for j in range(cuda.threadIdx.y, WITH_RIM, SIDE):
        for i in range(cuda.threadIdx.x, WITH_RIM, SIDE):
            y, x = top + j, left + i
            inside = 0 <= y < height and 0 <= x < width
            part[j, i] = image[y, x] if inside else float32(0)
    cuda.syncthreads()
    if row < height and column < width:
        total = float32(0)
        for j in range(weights.shape[0]):
            for i in range(weights.shape[1]):
                total += weights[j, i] * part[cuda.threadIdx.y + j, cuda.threadIdx.x + i]
        result[row, column] = total / float32(16)
