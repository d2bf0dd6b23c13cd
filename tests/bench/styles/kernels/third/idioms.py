# SPDX-License-Identifier: Apache-2.0
"""The Game of Life on a torus, and a step of k-means with sums in shared memory, as people write them for Numba."""
from numba import cuda, float32, int32

CLUSTERS = 32
FEATURES = 4


@cuda.jit
def life(world, out):
    x, y = cuda.grid(2)
    height, width = world.shape
    if x >= width or y >= height:
        return
    neighbours = 0
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            if dx != 0 or dy != 0:
                neighbours += world[(y + dy) % height, (x + dx) % width]
    if neighbours == 3 or (neighbours == 2 and world[y, x] == 1):
        out[y, x] = 1
    else:
        out[y, x] = 0


@cuda.jit(device=True)
def squared_distance(points, i, centres, k):
    total = float32(0)
    for d in range(FEATURES):
        difference = points[i, d] - centres[k, d]
        total += difference * difference
    return total


@cuda.jit
def assign(points, centres, labels, sums, counts):
    near = cuda.shared.array((CLUSTERS, FEATURES), float32)
    block_sums = cuda.shared.array((CLUSTERS, FEATURES), float32)
    block_counts = cuda.shared.array(CLUSTERS, int32)
    t = cuda.threadIdx.x
    if t < CLUSTERS:
        block_counts[t] = 0
        for d in range(FEATURES):
            near[t, d] = centres[t, d]
            block_sums[t, d] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), points.shape[0], cuda.gridsize(1)):
        best = int32(0)
        least = squared_distance(points, i, near, 0)
        for k in range(1, CLUSTERS):
            distance = squared_distance(points, i, near, k)
            if distance < least:
                least = distance
                best = int32(k)
        labels[i] = best
        cuda.atomic.add(block_counts, best, 1)
        for d in range(FEATURES):
            cuda.atomic.add(block_sums, (best, d), points[i, d])
    cuda.syncthreads()
    if t < CLUSTERS:
        cuda.atomic.add(counts, t, block_counts[t])
        for d in range(FEATURES):
            cuda.atomic.add(sums, (t, d), block_sums[t, d])
