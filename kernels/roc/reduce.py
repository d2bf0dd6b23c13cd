# SPDX-License-Identifier: Apache-2.0
"""A sum by groups: a tree in shared memory, fences of both kinds, an atomic for the whole."""
from numba import roc, int32

GROUP = 64


@roc.jit
def reduce(values, totals, whole):
    part = roc.shared.array(GROUP, int32)
    here = roc.get_local_id(0)
    at = roc.get_global_id(0)
    part[here] = values[at] if at < values.size else 0
    roc.barrier(roc.CLK_LOCAL_MEM_FENCE | roc.CLK_GLOBAL_MEM_FENCE)
    width = GROUP // 2
    while width > 0:
        if here < width:
            part[here] += part[here + width]
        roc.barrier()
        width //= 2
    if here == 0:
        totals[roc.get_group_id(0)] = part[0]
        roc.mem_fence(roc.CLK_GLOBAL_MEM_FENCE)
        roc.atomic.add(whole, 0, part[0])
