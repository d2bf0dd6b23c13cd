# SPDX-License-Identifier: Apache-2.0
"""ROC's first example: one element a work-item, and the names that tell a work-item where it is."""
from numba import roc


@roc.jit
def add(a, b, c):
    i = roc.get_global_id(0)
    if i < c.size:
        c[i] = a[i] + b[i]


@roc.jit
def where(out):
    i = roc.get_global_id(0)
    j = roc.get_global_id(1)
    out[i, j, 0] = roc.get_local_id(0)
    out[i, j, 1] = roc.get_group_id(1)
    out[i, j, 2] = roc.get_local_size(0) * 100 + roc.get_local_size(1)
    out[i, j, 3] = roc.get_num_groups(0) * 10 + roc.get_num_groups(1)
    out[i, j, 4] = roc.get_global_size(1)
    out[i, j, 5] = roc.get_work_dim()
