// SPDX-License-Identifier: Apache-2.0
// The driver under test, and helpers for its tests.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "driver/all_versions.hpp"
// The above declares every version, for what follows.
#include "driver/driver_table.hpp"

namespace quern::conformance {

/// Loads a device and initialises it: "cpu" (the plug-in), "stand-alone" (the same device as the libcuda.so.1
/// that QUERN_LIBCUDA names) or "cuda" (the system's driver). Empty: done; else why it is not there.
std::string load_device(std::string_view name);

/// The table under test.
const driver::DriverTable& cu();
/// True for the CPU device: some rules apply to it alone (a GPU's behaviour is unspecified there).
bool is_cpu();
const std::string& device_name();

/// The address of a function of functions.def that is no slot of the table, by its symbol. Fails the test if
/// the driver does not have it.
void* surface_function(std::string_view symbol);
/// A function of the whole surface by its versioned symbol: CU(cuMemcpy2D_v2)(&copy).
#define CU(symbol) reinterpret_cast<decltype(&::symbol)>(quern::conformance::surface_function(#symbol))

/// A context of its own, current while it lives, with the kernels of kernels.hpp loaded. After a fault the
/// next test has a fresh one.
struct Fixture {
  Fixture();
  ~Fixture();
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  CUfunction function(const char* name) const;
  CUdeviceptr allocate(std::size_t bytes) const;
  CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) const;
  CUevent event(unsigned flags = CU_EVENT_DEFAULT) const;

  template <class T>
  CUdeviceptr upload(const std::vector<T>& host) const {
    const CUdeviceptr pointer = allocate(host.size() * sizeof(T));
    REQUIRE(cu().cuMemcpyHtoD_v2(pointer, host.data(), host.size() * sizeof(T)) == CUDA_SUCCESS);
    // The copy itself may end later, and other streams do not wait for it (cuda.h, "API synchronization
    // behavior").
    REQUIRE(cu().cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
    return pointer;
  }
  template <class T>
  std::vector<T> download(CUdeviceptr pointer, std::size_t count) const {
    std::vector<T> host(count);
    REQUIRE(cu().cuMemcpyDtoH_v2(host.data(), pointer, count * sizeof(T)) == CUDA_SUCCESS);
    return host;
  }
  /// 1-D launch; the arguments are passed as they are.
  template <class... Args>
  CUresult launch(const char* name, unsigned grid, unsigned block, CUstream on, Args... args) const {
    void* parameters[] = {&args..., nullptr};
    return cu().cuLaunchKernel(function(name), grid, 1, 1, block, 1, 1, 0, on, parameters, nullptr);
  }

  CUcontext context = nullptr;
  CUmodule module = nullptr;
};

}  // namespace quern::conformance
