// SPDX-License-Identifier: Apache-2.0
#include "audit.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/thread_annotations.hpp"
#include "tests/unit/support/driver_objects.hpp"

namespace quern::failure {
namespace {

using driver::DriverObject;
using driver::DriverTable;
using driver::FunctionRow;

DriverTable device;    ///< the device's own functions
DriverTable prepared;  ///< the functions that the audited ones call: see prepare()

struct Ledger {
  base::Mutex mutex;
  ResourceAudit audit QUERN_GUARDED_BY(mutex);
};
Ledger& ledger() {
  static auto* const instance = new Ledger;
  return *instance;
}

void created(DriverObject object, std::uint64_t handle) {
  const base::LockGuard lock(ledger().mutex);
  ledger().audit.live.emplace(to_string(object), handle);
}

void released(DriverObject object, std::uint64_t handle, CUresult result) {
  const base::LockGuard lock(ledger().mutex);
  auto& live = ledger().audit.live;
  const auto found = live.find({std::string(to_string(object)), handle});
  if (found == live.end() || result != CUDA_SUCCESS)
    ledger().audit.wrong.emplace(to_string(object));
  else
    live.erase(found);
}

/// Calls a function of the table and records what its row of functions.def says it creates and releases.
template <FunctionRow kRow, class F, F DriverTable::* kMember>
struct Audited;
template <FunctionRow kRow, class... Args, CUresult (*DriverTable::*kMember)(Args...)>
struct Audited<kRow, CUresult (*)(Args...), kMember> {
  static CUresult call(Args... arguments) {
    constexpr const driver::FunctionFacts& kFacts = driver::facts_of(kRow);
    const CUresult result = (prepared.*kMember)(arguments...);
    if constexpr (kFacts.creates != DriverObject::none)
      if (result == CUDA_SUCCESS) created(kFacts.creates, test::handle_in<kFacts.creates>(arguments...));
    if constexpr (kFacts.releases != DriverObject::none)
      released(kFacts.releases, test::handle_in<kFacts.releases>(arguments...), result);
    return result;
  }
};

CUresult waited(CUresult result, CUstream stream) {
  device.cuStreamSynchronize(stream);
  return result;
}

/// Replaces functions by ones that wait for the work that they queue, and makes loading of modules fast.
void prepare(DriverTable& table) {
  table.cuModuleLoadDataEx = [](CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                                void** values) {
    // Do not optimise: each of thousands of rounds compiles the same few kernels.
    std::vector<CUjit_option> names(options, options + count);
    std::vector<void*> settings(values, values + count);
    names.push_back(CU_JIT_OPTIMIZATION_LEVEL);
    settings.push_back(nullptr);
    const CUresult result =
        device.cuModuleLoadDataEx(module, image, count + 1, names.data(), settings.data());
    std::copy_n(settings.begin(), count, values);
    return result;
  };
  table.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
    return waited(device.cuMemcpyHtoDAsync_v2(to, from, bytes, stream), stream);
  };
  table.cuMemcpyDtoHAsync_v2 = [](void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return waited(device.cuMemcpyDtoHAsync_v2(to, from, bytes, stream), stream);
  };
  table.cuLaunchKernel = [](CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream stream, void** parameters,
                            void** extra) {
    return waited(device.cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra),
                  stream);
  };
  table.cuLaunchKernelEx = [](const CUlaunchConfig* config, CUfunction function, void** parameters,
                              void** extra) {
    return waited(device.cuLaunchKernelEx(config, function, parameters, extra), config->hStream);
  };
  table.cuLaunchHostFunc = [](CUstream stream, CUhostFn function, void* user) {
    return waited(device.cuLaunchHostFunc(stream, function, user), stream);
  };
}

}  // namespace

driver::DriverTable audited(const driver::DriverTable& inner) {
  device = prepared = inner;
  prepare(prepared);
  DriverTable table;
#define QUERN_DRIVER_FUNCTION(symbol, ...) \
  table.symbol = &Audited<FunctionRow::symbol, decltype(table.symbol), &DriverTable::symbol>::call;
#include "driver/functions.def"
  return table;
}

ResourceAudit audit() {
  const base::LockGuard lock(ledger().mutex);
  return ledger().audit;
}

void clear_audit() {
  const base::LockGuard lock(ledger().mutex);
  ledger().audit = {};
}

}  // namespace quern::failure
