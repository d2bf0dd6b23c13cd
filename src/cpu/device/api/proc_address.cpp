// SPDX-License-Identifier: Apache-2.0
// The whole surface: the functions of functions.def that are not defined in a file of their own (those that
// are not supported, and the variants for the per-thread default stream), and cuGetProcAddress over all.
#include "cpu/device/cuda_api.hpp"

#include <cstddef>
#include <string_view>

#include "cpu/device/driver.hpp"
#include "cpu/device/limits.hpp"
#include "cpu/device/private_tables.hpp"
#include "cpu/device/thread_streams.hpp"
#include "driver/function_facts.hpp"

using namespace quern::cpu::device;

namespace {

using quern::driver::FunctionFacts;
using quern::driver::PerThread;
using quern::driver::VersionFound;

/// The variant of a function in which a null stream means the thread's own default stream.
template <auto kFunction>
struct Variant;
template <class... Args, CUresult (*kFunction)(Args...)>
struct Variant<kFunction> {
  static CUresult call(Args... arguments) {
    const PerThreadCall scope;
    return kFunction(arguments...);
  }
};

}  // namespace

// The symbols of unsupported functions are names of this one: it looks at no argument, and its caller removes
// them.
extern "C" [[gnu::used, gnu::visibility("hidden")]] CUresult quern_driver_unsupported() {
  return forked() ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_NOT_SUPPORTED;
}
#define QUERN_ALIAS(symbol) \
  asm(".globl " #symbol "\n.type " #symbol ", @function\n.set " #symbol ", quern_driver_unsupported\n");
#define QUERN_ALIAS_none(symbol)
#define QUERN_ALIAS_ptds(symbol) QUERN_ALIAS(symbol##_ptds)
#define QUERN_ALIAS_ptsz(symbol) QUERN_ALIAS(symbol##_ptsz)
#define QUERN_DRIVER_UNSUPPORTED(symbol, name, since, per_thread) \
  QUERN_ALIAS(symbol) QUERN_ALIAS_##per_thread(symbol)
#include "driver/functions.def"

// The symbols of the per-thread variants are jumps: a template cannot be given a name of C's, and the
// parameters' types stand in cuda.h alone.
#define QUERN_JUMP(symbol, suffix)                                                             \
  extern "C" {                                                                                 \
  extern decltype(&::symbol) const quern_jump_##symbol;                                        \
  [[gnu::used]] decltype(&::symbol) const quern_jump_##symbol = &Variant<&::symbol>::call;     \
  }                                                                                            \
  asm(".text\n.globl " #symbol suffix "\n.type " #symbol suffix ", @function\n" #symbol suffix \
      ": jmp *quern_jump_" #symbol "(%rip)\n.size " #symbol suffix ", . - " #symbol suffix "\n");
#define QUERN_JUMP_none(symbol)
#define QUERN_JUMP_ptds(symbol) QUERN_JUMP(symbol, "_ptds")
#define QUERN_JUMP_ptsz(symbol) QUERN_JUMP(symbol, "_ptsz")
#define QUERN_DRIVER_FUNCTION(symbol, name, since, per_thread, ...) QUERN_JUMP_##per_thread(symbol)
#define QUERN_DRIVER_CLIENT_FUNCTION(symbol, name, since, per_thread, ...) QUERN_JUMP_##per_thread(symbol)
#include "driver/functions.def"

namespace {

struct Addresses {
  void* function;
  void* per_thread;  ///< the same function where there is no variant
};

#define QUERN_VARIANT_none(symbol) reinterpret_cast<void*>(&::symbol)
#define QUERN_VARIANT_ptds(symbol) reinterpret_cast<void*>(&Variant<&::symbol>::call)
#define QUERN_VARIANT_ptsz(symbol) reinterpret_cast<void*>(&Variant<&::symbol>::call)

/// In the order of driver::kSurface.
const Addresses kAddresses[] = {
#define QUERN_DRIVER_FUNCTION(symbol, name, since, per_thread, ...) \
  {reinterpret_cast<void*>(&::symbol), QUERN_VARIANT_##per_thread(symbol)},
#define QUERN_DRIVER_CLIENT_FUNCTION(symbol, name, since, per_thread, ...) \
  {reinterpret_cast<void*>(&::symbol), QUERN_VARIANT_##per_thread(symbol)},
#define QUERN_DRIVER_UNSUPPORTED(symbol, ...) \
  {reinterpret_cast<void*>(&quern_driver_unsupported), reinterpret_cast<void*>(&quern_driver_unsupported)},
#include "driver/functions.def"
};

void* find_address(std::string_view name, int cuda_version, cuuint64_t flags,
                   CUdriverProcAddressQueryResult& status) {
  // A negative version is no bound.
  const VersionFound found =
      quern::driver::find_version(name, cuda_version < 0 ? kDriverVersion : cuda_version);
  if (found.function == nullptr || !found.name_known) {  // names with a version are no names here
    status =
        found.name_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return nullptr;
  }
  status = CU_GET_PROC_ADDRESS_SUCCESS;
  const Addresses& addresses = kAddresses[found.function - quern::driver::kSurface];
  return (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 ? addresses.per_thread
                                                                      : addresses.function;
}

/// A missing function is a null pointer.
CUresult get_proc_address(const char* symbol, void** function, int cuda_version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  return entry([&] {
    constexpr cuuint64_t kKnown =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    require(symbol != nullptr && function != nullptr && (flags & ~kKnown) == 0);
    require(cuda_version <= kDriverVersion);
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    *function = find_address(symbol, cuda_version, flags, found);
    if (status != nullptr) *status = found;
  });
}

}  // namespace

CUresult cuGetProcAddress(const char* symbol, void** function, int cuda_version, cuuint64_t flags) {
  void* found = nullptr;
  const CUresult result =
      get_proc_address(symbol, function == nullptr ? nullptr : &found, cuda_version, flags, nullptr);
  if (result != CUDA_SUCCESS) return result;
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;  // the client's variable keeps its value
  *function = found;
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int cuda_version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  return get_proc_address(symbol, function, cuda_version, flags, status);
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
