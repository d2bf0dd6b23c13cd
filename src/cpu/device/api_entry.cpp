// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: lets clients find functions by name.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>
#include <string_view>

#include "cpu/device/driver.hpp"
#include "cpu/device/private_tables.hpp"
#include "driver/function_facts.hpp"

using namespace quern::cpu::device;

namespace {

using quern::driver::FunctionFacts;
using quern::driver::PerThread;

/// In the order of driver::kFunctions.
void* const kAddresses[] = {
#define QUERN_DRIVER_FUNCTION(symbol, ...) reinterpret_cast<void*>(&::symbol),
#include "driver/functions.def"
};

/// The function that a client of `cuda_version` knows as `name`, which may be a versioned symbol as well. No
/// row of functions.def is a later version of another one.
void* find_address(std::string_view name, int cuda_version, cuuint64_t flags,
                   CUdriverProcAddressQueryResult& status) {
  status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const FunctionFacts* const found = std::ranges::find_if(
      quern::driver::kFunctions,
      [&](const FunctionFacts& function) { return function.name == name || function.symbol == name; });
  if (found == std::end(quern::driver::kFunctions)) return nullptr;
  // This device has no per-thread variants, and the other variant would use another stream than the client
  // means.
  if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 && found->per_thread != PerThread::none)
    return nullptr;
  if (name == found->name && cuda_version < found->since) {
    status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    return nullptr;
  }
  status = CU_GET_PROC_ADDRESS_SUCCESS;
  return kAddresses[found - quern::driver::kFunctions];
}

}  // namespace

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return entry([&] {
    constexpr cuuint64_t kKnown =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    require(symbol != nullptr && function != nullptr && (flags & ~kKnown) == 0);
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    *function = find_address(symbol, cuda_version, flags, found);
    if (status != nullptr) *status = found;
    require(*function != nullptr, CUDA_ERROR_NOT_FOUND);
  });
}

CUresult cuGetExportTable(const void** table, const CUuuid*) {
  const void* const caller = __builtin_return_address(0);
  return entry([&] {
    require(table != nullptr);
    *table = nullptr;
    report_private_table(caller);
    fail(CUDA_ERROR_NOT_FOUND);  // private tables of a vendor's driver; not imitated
  });
}
