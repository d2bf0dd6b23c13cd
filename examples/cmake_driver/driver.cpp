// SPDX-License-Identifier: Apache-2.0
#include "driver.hpp"

#include <stdexcept>
#include <string>

Driver::Driver(Lookup lookup, void* user) {
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(lookup(name, user));
    if (function == nullptr) throw std::runtime_error(std::string(name) + " is missing");
  };
  find(create_context, "cuCtxCreate_v4");
  find(destroy_context, "cuCtxDestroy_v2");
  find(create_stream, "cuStreamCreate");
  find(wait, "cuStreamSynchronize");
  find(allocate_memory, "cuMemAlloc_v2");
  find(copy_in, "cuMemcpyHtoDAsync_v2");
  find(copy_out, "cuMemcpyDtoHAsync_v2");
  check(create_context(&context, nullptr, 0, 0), "make a context");
  check(create_stream(&stream, CU_STREAM_NON_BLOCKING), "make a stream");
}

Driver::~Driver() { destroy_context(context); }

CUdeviceptr Driver::allocate(std::size_t bytes) {
  CUdeviceptr memory = 0;
  check(allocate_memory(&memory, bytes), "allocate");
  return memory;
}

void Driver::upload(CUdeviceptr to, const void* from, std::size_t bytes) {
  check(copy_in(to, from, bytes, stream), "upload");
}

void Driver::download(void* to, CUdeviceptr from, std::size_t bytes) {
  check(copy_out(to, from, bytes, stream), "download");
  check(wait(stream), "wait");
}

void Driver::check(CUresult result, const char* what) const {
  if (result != CUDA_SUCCESS)
    throw std::runtime_error("cannot " + std::string(what) + ": result " +
                             std::to_string(static_cast<int>(result)));
}
