// SPDX-License-Identifier: Apache-2.0
// Histograms, stream compaction, running sums, a pass of radix sort, string search.

extern "C" __global__ void histogram_global(const unsigned char* data, int n, unsigned* counts) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&counts[data[i]], 1u);
}

extern "C" __global__ void histogram_shared(const unsigned char* data, int n, unsigned* counts) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[data[i]], 1u);
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

// One atomic addition a warp reserves places for its elements.
extern "C" __global__ void compact(const int* in, int n, int threshold, int* out, int* count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32;
  const int value = i < n ? in[i] : 0;
  const bool keep = i < n && value >= threshold;
  const unsigned mask = __ballot_sync(0xffffffffu, keep);
  int first = 0;
  if (lane == 0) first = atomicAdd(count, __popc(mask));
  first = __shfl_sync(0xffffffffu, first, 0);
  if (keep) out[first + __popc(mask & ((1u << lane) - 1))] = value;
}

// Hillis and Steele's running sums over blocks of 256, in two halves of shared memory.
extern "C" __global__ void scan(const int* in, int* out) {
  __shared__ int buffer[2][256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  int from = 0;
  buffer[0][t] = in[i];
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    const int value = buffer[from][t];
    buffer[1 - from][t] = t >= step ? value + buffer[from][t - step] : value;
    from = 1 - from;
    __syncthreads();
  }
  out[i] = buffer[from][t];
}

// A stable scatter by four bits. offset[digit * blocks + block]: the place of the block's first key of that digit.
extern "C" __global__ void radix_scatter(const unsigned* keys, const int* offset, unsigned* out, int shift) {
  __shared__ int counts[8][16];
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  if (t < 128) counts[t / 16][t % 16] = 0;
  __syncthreads();
  const unsigned key = keys[blockIdx.x * 256 + t];
  const unsigned digit = key >> shift & 15;
  unsigned equal = 0xffffffffu;
#pragma unroll
  for (int bit = 0; bit < 4; ++bit) {
    const bool set = digit >> bit & 1;
    const unsigned votes = __ballot_sync(0xffffffffu, set);
    equal &= set ? votes : ~votes;
  }
  const int rank = __popc(equal & ((1u << lane) - 1));
  if (rank == 0) counts[warp][digit] = __popc(equal);
  __syncthreads();
  if (t < 16) {
    int sum = offset[t * gridDim.x + blockIdx.x];
    for (int w = 0; w < 8; ++w) {
      const int own = counts[w][t];
      counts[w][t] = sum;
      sum += own;
    }
  }
  __syncthreads();
  out[counts[warp][digit] + rank] = key;
}

// One position a thread.
extern "C" __global__ void search(const char* text, int n, const char* pattern, int length, int* places, int* count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + length > n) return;
  for (int k = 0; k < length; ++k)
    if (text[i + k] != pattern[k]) return;
  places[atomicAdd(count, 1)] = i;
}
