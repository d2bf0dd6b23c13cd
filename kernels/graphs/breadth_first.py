# SPDX-License-Identifier: Apache-2.0
"""Distances from node 0 of a graph in compressed rows, in one block: level after level, until a vote finds nothing new."""
from numba import cuda


@cuda.jit
def distances(begin, neighbours, distance):
    node = cuda.threadIdx.x
    n = len(distance)
    level = 0
    if node < n:
        distance[node] = 0 if node == 0 else -1
    cuda.syncthreads()
    while True:
        found = 0
        if node < n and distance[node] == level:
            for at in range(begin[node], begin[node + 1]):
                if distance[neighbours[at]] < 0:
                    distance[neighbours[at]] = level + 1  # others may write the same
                    found = 1
        level += 1
        if not cuda.syncthreads_or(found):
            break
