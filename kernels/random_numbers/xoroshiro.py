# SPDX-License-Identifier: Apache-2.0
"""Numba's random numbers: a generator for each thread, its state a record of two words."""
from numba import cuda
from numba.cuda.random import xoroshiro128p_uniform_float32, xoroshiro128p_uniform_float64


@cuda.jit
def inside(states, n, hits):
    thread = cuda.grid(1)
    if thread < hits.size:
        count = 0
        for _ in range(n):
            x = xoroshiro128p_uniform_float32(states, thread)
            y = xoroshiro128p_uniform_float32(states, thread)
            if x * x + y * y <= 1.0:
                count += 1
        hits[thread] = count


@cuda.jit
def draw(states, numbers):
    thread = cuda.grid(1)
    if thread < numbers.shape[0]:
        for k in range(numbers.shape[1]):
            numbers[thread, k] = xoroshiro128p_uniform_float64(states, thread)
