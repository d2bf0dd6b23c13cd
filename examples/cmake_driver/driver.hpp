// SPDX-License-Identifier: Apache-2.0
// The program's driver code, as it was before quern was used: it finds functions by name and owns the objects
// it makes.
#pragma once

#include <cuda.h>

#include <cstddef>

struct Driver {
  using Lookup = void* (*)(const char* name, void* user);
  Driver(Lookup lookup, void* user);
  ~Driver();

  CUdeviceptr allocate(std::size_t bytes);
  void upload(CUdeviceptr to, const void* from, std::size_t bytes);
  void download(void* to, CUdeviceptr from, std::size_t bytes);

  CUcontext context = nullptr;
  CUstream stream = nullptr;

 private:
  void check(CUresult result, const char* what) const;

  decltype(&cuCtxCreate_v4) create_context;
  decltype(&cuCtxDestroy_v2) destroy_context;
  decltype(&cuStreamCreate) create_stream;
  decltype(&cuStreamSynchronize) wait;
  decltype(&cuMemAlloc_v2) allocate_memory;
  decltype(&cuMemcpyHtoDAsync_v2) copy_in;
  decltype(&cuMemcpyDtoHAsync_v2) copy_out;
};
