# SPDX-License-Identifier: Apache-2.0
"""What the lanes of a warp can do together: sums and extremes by shuffles, votes, and lanes that hold the same value."""
from numba import cuda

ALL = 0xFFFFFFFF


@cuda.jit(device=True)
def warp_sum(value):
    for offset in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(ALL, value, offset)
    return value


@cuda.jit(device=True)
def warp_max(value):
    for offset in (16, 8, 4, 2, 1):
        value = max(value, cuda.shfl_xor_sync(ALL, value, offset))
    return value


@cuda.jit
def warps(values, results):
    i = cuda.grid(1)
    value = values[i]
    total = warp_sum(value)
    largest = warp_max(value)
    even = cuda.ballot_sync(ALL, value % 2 == 0)
    alike = cuda.match_any_sync(ALL, value)
    first = cuda.shfl_sync(ALL, value, 0)
    if cuda.laneid == 0:
        row = results[i // cuda.warpsize]
        row[0] = total
        row[1] = largest
        row[2] = cuda.popc(even)
        row[3] = cuda.all_sync(1, value >= 0)
        row[4] = cuda.popc(alike)
        row[5] = first
        row[6] = cuda.any_sync(1, value < 0)
