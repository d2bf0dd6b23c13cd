// SPDX-License-Identifier: Apache-2.0
// Maps one piece of memory at two addresses: a kernel's store at one is seen at the other.
#include "program.h"

int main(void) {
  CUmodule module = NULL;
  CUmemGenericAllocationHandle memory;
  CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr range, cell;
  size_t size;
  unsigned value = 271828, result = 0;
  begin();
  CHECK(cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK(cuMemAddressReserve(&range, 2 * size, 0, 0, 0));
  CHECK(cuMemCreate(&memory, size, &properties, 0));
  CHECK(cuMemMap(range, size, 0, memory, 0));
  CHECK(cuMemMap(range + size, size, 0, memory, 0));
  CHECK(cuMemSetAccess(range, 2 * size, &access, 1));
  cell = range + 64;
  void* arguments[] = {&cell, &value};
  CHECK(cuLaunchKernel(function(&module, "set"), 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
  CHECK(cuMemcpyDtoH(&result, range + size + 64, 4));
  REQUIRE(result == value);
  CHECK(cuMemUnmap(range, 2 * size));
  CHECK(cuMemRelease(memory));
  CHECK(cuMemAddressFree(range, 2 * size));
  return 0;
}
