// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: lets clients find functions by name.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>
#include <string_view>

#include "cpu/device/driver.hpp"

using namespace quern::cpu::device;

namespace {

struct Function {
  std::string_view name;  ///< as exported, with its version
  void* address;
};
const Function kFunctions[] = {
#define QUERN_DRIVER_FUNCTION(name) {#name, reinterpret_cast<void*>(&::name)},
#include "driver/functions.def"
};

/// Functions whose present signature was introduced in a CUDA version: an older client expects another
/// signature, which is not available here.
struct Since {
  std::string_view name;
  int cuda_version;
};
constexpr Since kSince[] = {{"cuCtxCreate", 12050},
                            {"cuGetProcAddress", 12000},
                            {"cuMemAdvise", 12020},
                            {"cuMemPrefetchAsync", 12020}};

/// "cuMemAlloc_v2" -> {"cuMemAlloc", 2}; no suffix: 1.
std::pair<std::string_view, int> split(std::string_view name) noexcept {
  const std::size_t at = name.rfind("_v");
  if (at == std::string_view::npos || at + 3 != name.size() || name.back() < '2' || name.back() > '9')
    return {name, 1};
  return {name.substr(0, at), name.back() - '0'};
}

/// True for functions that use a default stream if none is given: their per-thread variant would differ.
bool uses_default_stream(std::string_view name) noexcept {
  return name.starts_with("cuMemcpy") || name.starts_with("cuMemset") || name.starts_with("cuStream") ||
         name.starts_with("cuLaunch") || name == "cuMemPrefetchAsync" || name == "cuEventRecord" ||
         name == "cuMemAllocAsync" || name == "cuMemFreeAsync";
}

/// The newest version of `name` that a client of `cuda_version` knows.
void* find_function(std::string_view name, int cuda_version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult& status) {
  status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 && uses_default_stream(name))
    return nullptr;
  const Function* best = nullptr;
  for (const Function& function : kFunctions) {
    if (function.name == name) best = &function;
    if (best != nullptr && best->name == name) break;
    if (split(function.name).first == name &&
        (best == nullptr || split(function.name).second > split(best->name).second))
      best = &function;
  }
  if (best == nullptr) return nullptr;
  for (const Since& since : kSince) {
    if (since.name != name || cuda_version >= since.cuda_version) continue;
    status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    return nullptr;
  }
  status = CU_GET_PROC_ADDRESS_SUCCESS;
  return best->address;
}

}  // namespace

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return entry([&] {
    constexpr cuuint64_t kKnown =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    require(symbol != nullptr && function != nullptr && (flags & ~kKnown) == 0);
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    *function = find_function(symbol, cuda_version, flags, found);
    if (status != nullptr) *status = found;
    require(*function != nullptr, CUDA_ERROR_NOT_FOUND);
  });
}

CUresult cuGetExportTable(const void** table, const CUuuid*) {
  return entry([&] {
    require(table != nullptr);
    *table = nullptr;
    fail(CUDA_ERROR_NOT_FOUND);  // private tables of a vendor's driver; not imitated
  });
}
