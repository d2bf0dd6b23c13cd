// SPDX-License-Identifier: Apache-2.0
#include "audit.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/thread_annotations.hpp"

namespace quern::fault {
namespace {

driver::DriverTable real;

struct Ledger {
  base::Mutex mutex;
  Books books QUERN_GUARDED_BY(mutex);
};
Ledger& ledger() {
  static auto* const instance = new Ledger;
  return *instance;
}

template <class T>
std::uint64_t bits(T handle) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<std::uintptr_t>(handle);
  else
    return handle;
}

template <class T>
CUresult made(const char* what, CUresult result, T handle) {
  if (result != CUDA_SUCCESS) return result;
  const base::LockGuard lock(ledger().mutex);
  ledger().books.live.emplace(what, bits(handle));
  return result;
}

template <class T>
CUresult released(const char* what, CUresult result, T handle) {
  const base::LockGuard lock(ledger().mutex);
  auto& live = ledger().books.live;
  const auto found = live.find({what, bits(handle)});
  if (found == live.end() || result != CUDA_SUCCESS)
    ledger().books.wrong.insert(what);
  else
    live.erase(found);
  return result;
}

CUresult waited(CUresult result, CUstream stream) {
  real.cuStreamSynchronize(stream);
  return result;
}

void audit_memory(driver::DriverTable& table) {
  table.cuMemAlloc_v2 = [](CUdeviceptr* to, std::size_t bytes) {
    const CUresult result = real.cuMemAlloc_v2(to, bytes);
    return made("memory", result, *to);
  };
  table.cuMemAllocManaged = [](CUdeviceptr* to, std::size_t bytes, unsigned flags) {
    const CUresult result = real.cuMemAllocManaged(to, bytes, flags);
    return made("memory", result, *to);
  };
  table.cuMemFree_v2 = [](CUdeviceptr memory) {
    return released("memory", real.cuMemFree_v2(memory), memory);
  };
  table.cuMemAllocAsync = [](CUdeviceptr* to, std::size_t bytes, CUstream stream) {
    const CUresult result = real.cuMemAllocAsync(to, bytes, stream);
    return made("pooled", result, *to);
  };
  table.cuMemFreeAsync = [](CUdeviceptr memory, CUstream stream) {
    return released("pooled", real.cuMemFreeAsync(memory, stream), memory);
  };
  table.cuMemHostAlloc = [](void** to, std::size_t bytes, unsigned flags) {
    const CUresult result = real.cuMemHostAlloc(to, bytes, flags);
    return made("host", result, *to);
  };
  table.cuMemFreeHost = [](void* memory) { return released("host", real.cuMemFreeHost(memory), memory); };
  table.cuMemHostRegister_v2 = [](void* memory, std::size_t bytes, unsigned flags) {
    return made("registered", real.cuMemHostRegister_v2(memory, bytes, flags), memory);
  };
  table.cuMemHostUnregister = [](void* memory) {
    return released("registered", real.cuMemHostUnregister(memory), memory);
  };
}

void audit_objects(driver::DriverTable& table) {
  table.cuStreamCreate = [](CUstream* stream, unsigned flags) {
    const CUresult result = real.cuStreamCreate(stream, flags);
    return made("stream", result, *stream);
  };
  table.cuStreamCreateWithPriority = [](CUstream* stream, unsigned flags, int priority) {
    const CUresult result = real.cuStreamCreateWithPriority(stream, flags, priority);
    return made("stream", result, *stream);
  };
  table.cuStreamDestroy_v2 = [](CUstream stream) {
    return released("stream", real.cuStreamDestroy_v2(stream), stream);
  };
  table.cuEventCreate = [](CUevent* event, unsigned flags) {
    const CUresult result = real.cuEventCreate(event, flags);
    return made("event", result, *event);
  };
  table.cuEventDestroy_v2 = [](CUevent event) {
    return released("event", real.cuEventDestroy_v2(event), event);
  };
  table.cuModuleLoadDataEx = [](CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                                void** values) {
    // Not optimised: the same few kernels are compiled in each of thousands of rounds.
    std::vector<CUjit_option> names(options, options + count);
    std::vector<void*> settings(values, values + count);
    names.push_back(CU_JIT_OPTIMIZATION_LEVEL);
    settings.push_back(nullptr);
    const CUresult result = real.cuModuleLoadDataEx(module, image, count + 1, names.data(), settings.data());
    std::copy_n(settings.begin(), count, values);
    return made("module", result, *module);
  };
  table.cuLinkCreate_v2 = [](unsigned count, CUjit_option* options, void** values, CUlinkState* link) {
    const CUresult result = real.cuLinkCreate_v2(count, options, values, link);
    return made("link", result, *link);
  };
  table.cuLinkDestroy = [](CUlinkState link) { return released("link", real.cuLinkDestroy(link), link); };
  table.cuModuleUnload = [](CUmodule module) {
    return released("module", real.cuModuleUnload(module), module);
  };
  table.cuMemcpyHtoDAsync_v2 = [](CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
    return waited(real.cuMemcpyHtoDAsync_v2(to, from, bytes, stream), stream);
  };
  table.cuMemcpyDtoHAsync_v2 = [](void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return waited(real.cuMemcpyDtoHAsync_v2(to, from, bytes, stream), stream);
  };
  table.cuLaunchKernel = [](CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream stream, void** parameters,
                            void** extra) {
    return waited(real.cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra),
                  stream);
  };
  table.cuLaunchKernelEx = [](const CUlaunchConfig* config, CUfunction function, void** parameters,
                              void** extra) {
    return waited(real.cuLaunchKernelEx(config, function, parameters, extra), config->hStream);
  };
  table.cuLaunchHostFunc = [](CUstream stream, CUhostFn function, void* user) {
    return waited(real.cuLaunchHostFunc(stream, function, user), stream);
  };
  table.cuCtxPushCurrent_v2 = [](CUcontext context) {
    const CUresult result = real.cuCtxPushCurrent_v2(context);
    if (result == CUDA_SUCCESS) {
      const base::LockGuard lock(ledger().mutex);
      ledger().books.live.emplace("current", 0);
    }
    return result;
  };
  table.cuCtxPopCurrent_v2 = [](CUcontext* context) {
    const CUresult result = real.cuCtxPopCurrent_v2(context);
    return released("current", result, std::uint64_t{0});
  };
}

}  // namespace

driver::DriverTable audited(const driver::DriverTable& inner) {
  real = inner;
  driver::DriverTable table = inner;
  audit_memory(table);
  audit_objects(table);
  return table;
}

Books books() {
  const base::LockGuard lock(ledger().mutex);
  return ledger().books;
}

void clear_books() {
  const base::LockGuard lock(ledger().mutex);
  ledger().books = {};
}

}  // namespace quern::fault
