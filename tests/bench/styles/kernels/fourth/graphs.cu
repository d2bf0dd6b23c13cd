// SPDX-License-Identifier: Apache-2.0
// A level of breadth-first search. New vertices go to a queue of the block, and from there to the next frontier.

constexpr int kRoom = 2048;

extern "C" __global__ void bfs_level(const int* __restrict__ begins, const int* __restrict__ edges,
                                     const int* __restrict__ frontier, int size, int level, int* distances,
                                     int* next, int* next_size) {
  __shared__ int queue[kRoom];
  __shared__ int queued, first;
  if (threadIdx.x == 0) queued = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) {
    const int vertex = frontier[i];
    for (int e = begins[vertex]; e < begins[vertex + 1]; ++e) {
      const int neighbour = edges[e];
      if (distances[neighbour] >= 0 || atomicCAS(&distances[neighbour], -1, level) != -1) continue;
      const int place = atomicAdd(&queued, 1);
      if (place < kRoom)
        queue[place] = neighbour;
      else
        next[atomicAdd(next_size, 1)] = neighbour;
    }
  }
  __syncthreads();
  const int count = min(queued, kRoom);
  if (threadIdx.x == 0) first = atomicAdd(next_size, count);
  __syncthreads();
  for (int k = threadIdx.x; k < count; k += blockDim.x) next[first + k] = queue[k];
}
