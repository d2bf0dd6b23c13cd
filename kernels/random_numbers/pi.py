# SPDX-License-Identifier: Apache-2.0
"""Monte Carlo: how many of n random points per thread lie in the quarter circle. The generator is xorshift32."""
from numba import cuda, uint32, float32


@cuda.jit(device=True)
def advance(state):
    state ^= state << uint32(13)
    state &= 0xFFFFFFFF
    state ^= state >> uint32(17)
    state ^= state << uint32(5)
    return uint32(state)


@cuda.jit
def inside(n, hits):
    thread = cuda.grid(1)
    if thread >= hits.size:
        return
    state = uint32(thread + 1)
    count = 0
    for _ in range(n):
        state = advance(state)
        x = float32(state) / float32(4294967296.0)
        state = advance(state)
        y = float32(state) / float32(4294967296.0)
        if x * x + y * y < 1:
            count += 1
    hits[thread] = count
