// SPDX-License-Identifier: Apache-2.0
// A driver that records calls and computes nothing. Device memory is host memory with a declared total; a
// launch records its parameters. A process may have one at a time, since a driver function has no place for
// state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/context/context.hpp"

namespace quern::test {

class FakeDriver {
 public:
  struct Launch {
    std::array<unsigned, 3> grid{};
    std::array<unsigned, 3> block{};
    unsigned shared_bytes = 0;
    void* stream = nullptr;
    bool cooperative = false;
    std::vector<std::vector<std::byte>> parameters;
  };

  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  driver::DriverTable table() const;
  Device device();
  std::shared_ptr<runtime::Context> context() { return runtime::Context::create(device()); }

  std::size_t total_bytes = std::size_t{1} << 20;
  std::size_t used_bytes = 0;
  std::map<std::uint64_t, std::unique_ptr<std::byte[]>> memory;
  std::map<std::uint64_t, std::size_t> memory_bytes;
  std::vector<std::string> released;         ///< "memory", "stream", ... in order
  std::vector<std::size_t> parameter_bytes;  ///< of every launched kernel
  std::vector<Launch> launches;
  std::vector<std::pair<CUfunction_attribute, int>> set_attributes;
  std::vector<std::pair<void (*)(void*), void*>> host_functions;  ///< queued; run_host_functions() runs them
  int host_frees = 0;                                             ///< calls of cuMemFreeHost
  int stream_waits = 0;                                           ///< calls of cuStreamSynchronize
  CUresult launch_result = CUDA_SUCCESS;
  CUresult free_result = CUDA_SUCCESS;
  CUcontext current = nullptr;
  int retained = 0;
  std::uint64_t next_handle = 0x1000;
  /// on a multiprocessor; if not set: 2
  std::function<int(int block, std::size_t shared_bytes)> active_blocks;
  std::function<CUresult(const std::string& image)> on_load;  ///< the result of loading an image

  void run_host_functions();
};

}  // namespace quern::test
