# SPDX-License-Identifier: Apache-2.0
"""ROC's names for the same device: work-items, groups, and a barrier with its fence."""
from numba import roc, float32

GROUP = 64


@roc.jit
def reverse_groups(values):
    part = roc.shared.array(GROUP, dtype=float32)
    here = roc.get_local_id(0)
    at = roc.get_global_id(0)
    part[here] = values[at]
    roc.barrier(roc.CLK_LOCAL_MEM_FENCE)
    values[at] = part[GROUP - 1 - here]
    roc.wavebarrier()
