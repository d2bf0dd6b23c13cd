// SPDX-License-Identifier: Apache-2.0
// A driver that remembers instead of computing: device memory is host memory under a declared total, a launch
// is a record of its parameters. One at a time in a process, since a driver function has no room for state.
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
  std::vector<std::size_t> parameter_bytes;  ///< of every kernel
  std::vector<Launch> launches;
  std::vector<std::pair<CUfunction_attribute, int>> set_attributes;
  std::vector<std::pair<void (*)(void*), void*>> host_functions;  ///< queued, run by run_host_functions()
  int host_frees = 0;                                             ///< calls of cuMemFreeHost
  int stream_waits = 0;                                           ///< calls of cuStreamSynchronize
  CUresult launch_result = CUDA_SUCCESS;
  CUresult free_result = CUDA_SUCCESS;
  CUcontext current = nullptr;
  int retained = 0;
  std::uint64_t next_handle = 0x1000;
  std::function<int(int block, std::size_t shared_bytes)> active_blocks;  ///< on a multiprocessor; without: 2
  std::function<CUresult(const std::string& image)> on_load;              ///< the result of loading an image

  void run_host_functions();
};

}  // namespace quern::test
