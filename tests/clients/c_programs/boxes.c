// SPDX-License-Identifier: Apache-2.0
// Copies a box out of one pitched array into another one.
#include "program.h"

enum { kRows = 17, kColumns = 29 };

int main(void) {
  unsigned char source[kRows][kColumns], target[kRows][kColumns] = {{0}};
  CUdeviceptr memory;
  size_t pitch;
  begin();
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) source[i][j] = (unsigned char)(7 * i + j + 1);
  CHECK(cuMemAllocPitch(&memory, &pitch, kColumns, kRows, 4));
  REQUIRE(pitch >= kColumns);
  CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = source, .srcPitch = kColumns,
                      .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = memory, .dstPitch = pitch, .WidthInBytes = kColumns, .Height = kRows};
  CHECK(cuMemcpy2D(&in));
  CUDA_MEMCPY2D out = {.srcXInBytes = 3, .srcY = 2, .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = memory, .srcPitch = pitch,
                       .dstXInBytes = 5, .dstY = 4, .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = target, .dstPitch = kColumns,
                       .WidthInBytes = 11, .Height = 6};
  CHECK(cuMemcpy2D(&out));
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) {
      const int inside = i >= 4 && i < 10 && j >= 5 && j < 16;
      REQUIRE(target[i][j] == (inside ? source[i - 2][j - 2] : 0));
    }
  return 0;
}
