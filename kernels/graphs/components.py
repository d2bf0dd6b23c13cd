# SPDX-License-Identifier: Apache-2.0
"""Connected components: each node takes the least label among its neighbours, as often as it is launched."""
from numba import cuda


@cuda.jit
def spread(begin, neighbours, label, changed):
    node = cuda.grid(1)
    if node >= label.size:
        return
    least = label[node]
    for other in neighbours[begin[node]:begin[node + 1]]:
        least = min(least, label[other])
    if cuda.atomic.min(label, node, least) > least:
        cuda.atomic.add(changed, 0, 1)
