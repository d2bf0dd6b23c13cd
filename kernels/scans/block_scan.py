# SPDX-License-Identifier: Apache-2.0
"""Running sums of each block's 256 integers: shuffles within warps, the warps' totals through shared memory."""
from numba import cuda, int32

WARPS = 8


@cuda.jit
def block_scan(values, running):
    totals = cuda.shared.array(WARPS, int32)
    i = cuda.grid(1)
    lane = cuda.laneid
    warp = cuda.threadIdx.x // cuda.warpsize
    total = values[i] if i < values.size else int32(0)
    distance = 1
    while distance < cuda.warpsize:
        below = cuda.shfl_up_sync(0xFFFFFFFF, total, distance)
        if lane >= distance:
            total = int32(total + below)
        distance *= 2
    if lane == 31:
        totals[warp] = total
    cuda.syncthreads()
    for before in range(warp):
        total = int32(total + totals[before])
    if i < running.size:
        running[i] = total
