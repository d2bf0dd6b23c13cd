# SPDX-License-Identifier: Apache-2.0
"""The ROC manual's matrix product: tiles in shared memory, barriers that fence local memory."""
from numba import roc, float32

BLOCK = 16


@roc.jit
def matmul(a, b, c):
    x = roc.get_global_id(0)
    y = roc.get_global_id(1)
    tx = roc.get_local_id(0)
    ty = roc.get_local_id(1)
    tile_a = roc.shared.array(shape=(BLOCK, BLOCK), dtype=float32)
    tile_b = roc.shared.array(shape=(BLOCK, BLOCK), dtype=float32)
    if x >= c.shape[0] or y >= c.shape[1]:
        return
    total = float32(0)
    for i in range(a.shape[1] // BLOCK):
        tile_a[tx, ty] = a[x, ty + i * BLOCK]
        tile_b[tx, ty] = b[tx + i * BLOCK, y]
        roc.barrier(roc.CLK_LOCAL_MEM_FENCE)
        for j in range(BLOCK):
            total += tile_a[tx, j] * tile_b[j, ty]
        roc.barrier(roc.CLK_LOCAL_MEM_FENCE)
    c[x, y] = total
