// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void hello(int limit, float value) {
  assert(limit < 1000);
  if (threadIdx.x < limit) printf("thread %d of %d: %f %s\n", threadIdx.x, blockDim.x, value, "done");
  int* words = static_cast<int*>(malloc(16));
  if (words != nullptr) words[0] = limit;
  free(words);
  if (limit < 0) __trap();
}
