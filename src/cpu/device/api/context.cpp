// SPDX-License-Identifier: Apache-2.0
// Contexts: made, retained, current.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>

#include "cpu/device/driver.hpp"
#include "cpu/device/function_attributes.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/library.hpp"
#include "cpu/device/limits.hpp"
#include "cpu/device/shared_event.hpp"

using namespace quern::cpu::device;

namespace {

/// A limit's place in the context, and the values that it has.
struct Limit {
  std::atomic<std::uint64_t>* place = nullptr;  ///< null: it cannot be set
  std::uint64_t least = 0;                      ///< without a place, the value
  std::uint64_t unit = 1;                       ///< values are rounded up to multiples
  std::uint64_t most = UINT64_MAX;              ///< a larger value is refused
};

/// Throws for a limit that this device does not have.
Limit limit_of(ContextState& state, CUlimit limit) {
  constexpr std::uint64_t kMostStackBytes = 512 * 1024;  // the local memory that a thread may have
  constexpr std::uint64_t kLeastFifoBytes = 512 * 1024;
  constexpr std::uint64_t kMostFetchBytes = 128;
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      return {.place = &state.stack_bytes, .unit = 16, .most = kMostStackBytes};
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return {.place = &state.printf_fifo_bytes, .least = kLeastFifoBytes};
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return {.place = &state.heap_bytes};
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      return {.place = &state.pending_launches};
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      return {.place = &state.l2_fetch_bytes, .most = kMostFetchBytes};
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:  // CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE is 0
    case CU_LIMIT_CIG_ENABLED:
      return {.least = 0};
    case CU_LIMIT_SHMEM_SIZE:
      return {.least = kOptInSharedBytes};
    default:
      fail(limit >= 0 && limit < CU_LIMIT_MAX ? CUDA_ERROR_UNSUPPORTED_LIMIT : CUDA_ERROR_INVALID_VALUE);
  }
}

/// At most one of the ways to wait (cuda.h, cuCtxCreate); the other flags are hints or always on.
void check_context_flags(unsigned flags) {
  require((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0);
  const unsigned ways = flags & static_cast<unsigned>(CU_CTX_SCHED_MASK);
  require((ways & (ways - 1)) == 0);
}

/// A new context, current on the thread. Throws Failure.
CUcontext make_context(Driver& driver, std::uint32_t device, unsigned flags,
                       unsigned version = Contexts::kApiVersion) {
  const CUcontext context = driver.contexts().make(device, flags, version);
  try {
    load_eagerly(driver);
    context_stack().push_back(context);
  } catch (...) {
    driver.contexts().destroy(context);
    throw;
  }
  return context;
}

CUresult create(CUcontext* context, unsigned flags, CUdevice device, unsigned version) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    require(context != nullptr);
    check_context_flags(flags);
    *context = make_context(driver, ordinal, flags, version);
  });
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    require(context != nullptr);
    const CUcontext primary = driver.contexts().retain_primary(ordinal);
    try {
      load_eagerly(driver);
    } catch (...) {
      driver.contexts().release_primary(ordinal);
      throw;
    }
    *context = primary;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.contexts().release_primary(driver.device(device));
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }
CUresult cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    check_context_flags(flags);
    driver.contexts().set_primary_flags(ordinal, flags);
  });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.contexts().reset_primary(driver.device(device));
    load_eagerly(driver);
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    require(flags != nullptr && active != nullptr);
    const auto [its_flags, its_activity] = driver.contexts().primary_state(ordinal);
    *flags = its_flags;
    *active = its_activity ? 1 : 0;
  });
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned flags, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    require(context != nullptr);
    check_context_flags(flags);
    // Execution affinity and contexts in graphics are for MPS and for graphics drivers.
    require(params == nullptr || (params->numExecAffinityParams == 0 && params->cigParams == nullptr),
            CUDA_ERROR_NOT_SUPPORTED);
    *context = make_context(driver, ordinal, flags);
  });
}

CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  return create(context, flags, device, Contexts::kOldApiVersion);
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return create(context, flags, device, Contexts::kApiVersion);
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* params, int count, unsigned flags,
                        CUdevice device) {
  return entry([&] {
    Driver::get();
    require(count >= 0 && (count == 0 || params != nullptr));
    require(count == 0, CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
    return create(context, flags, device, Contexts::kApiVersion);
  });
}

CUresult cuCtxDestroy(CUcontext context) { return cuCtxDestroy_v2(context); }
CUresult cuCtxPushCurrent(CUcontext context) { return cuCtxPushCurrent_v2(context); }
CUresult cuCtxPopCurrent(CUcontext* context) { return cuCtxPopCurrent_v2(context); }

CUresult cuCtxAttach(CUcontext* context, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    const CUcontext current = Contexts::or_current(nullptr);
    require(context != nullptr && flags == 0);
    driver.contexts().attach(current);
    *context = current;
  });
}

CUresult cuCtxDetach(CUcontext context) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(context != nullptr && context == Contexts::or_current(nullptr), CUDA_ERROR_INVALID_CONTEXT);
    driver.contexts().detach(context);
  });
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(context != nullptr);
    driver.contexts().destroy(context);
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return entry([&] {
    require(context != nullptr);
    Driver::get().contexts().require_known(context);
    context_stack().push_back(context);
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return entry([&] {
    Driver::get();
    std::vector<CUcontext>& stack = context_stack();
    require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return entry([&] {
    Driver& driver = Driver::get();
    std::vector<CUcontext>& stack = context_stack();
    if (context != nullptr) driver.contexts().require_known(context);
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
  });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return entry([&] {
    Driver::get();
    require(context != nullptr);
    const std::vector<CUcontext>& stack = context_stack();
    *context = stack.empty() ? nullptr : stack.back();
  });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(device != nullptr);
    *device =
        static_cast<CUdevice>(driver.contexts().device_even_if_destroyed(Contexts::or_current(nullptr)));
  });
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(device != nullptr);
    *device = static_cast<CUdevice>(driver.contexts().device_of(Contexts::or_current(context)));
  });
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto state = driver.contexts().state_of(Contexts::or_current(context));
    refuse_capturing(*state);
    driver.scheduler().synchronize(*state->domain);
    check_fault(*state);
  });
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(id != nullptr);
    *id = driver.contexts().state_of(Contexts::or_current(context))->id;
  });
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto its_version = driver.contexts().settings_of(Contexts::or_current(context)).version;
    require(version != nullptr);
    *version = its_version;
  });
}

CUresult cuCtxGetFlags(unsigned* flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current_even_failed();
    require(flags != nullptr);
    *flags = driver.contexts().settings_of(Contexts::or_current(nullptr)).flags;
  });
}

CUresult cuCtxSetFlags(unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current_even_failed();
    check_context_flags(flags);
    driver.contexts().set_flags(Contexts::or_current(nullptr), flags & ~unsigned{CU_CTX_MAP_HOST});
  });
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  return entry([&] {
    const auto state = Driver::get().current();
    require(config != nullptr);
    *config = state->cache_config.load();
  });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return entry([&] {
    const auto state = Driver::get().current();
    require(is_cache_config(config));
    state->cache_config.store(config);
  });
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  return entry([&] {
    Driver::get().current();
    require(config != nullptr);
    *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;  // as on all devices whose banks have one size
  });
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return entry([&] {
    Driver::get().current();
    require(is_shared_config(config));
  });
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam* param, CUexecAffinityType type) {
  return entry([&] {
    Driver::get().current();
    require(param != nullptr && type >= 0 && type < CU_EXEC_AFFINITY_TYPE_MAX);
    // Every context may use all multiprocessors.
    param->type = CU_EXEC_AFFINITY_TYPE_SM_COUNT;
    param->param.smCount.val = Driver::get().scheduler().worker_count();
  });
}

CUresult cuCtxResetPersistingL2Cache() {
  return entry([&] { Driver::get().current(); });  // CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE is 0
}

CUresult cuCtxRecordEvent(CUcontext context, CUevent event) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    const auto state = driver.contexts().state_of(context);
    check_fault(*state);
    const auto object = driver.find(event);
    require(object->context == state, CUDA_ERROR_INVALID_HANDLE);
    record_event(driver, *object, nullptr);
  });
}

CUresult cuCtxWaitEvent(CUcontext context, CUevent event) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    const auto state = driver.contexts().state_of(context);
    check_fault(*state);
    const auto object = driver.find(event);
    queue_wait(driver, *state, nullptr, awaited_point(*object));
  });
}

CUresult cuCtxSynchronize() {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto state = driver.current_even_failed();  // work that a fault ended must be finished, too
    refuse_capturing(*state);
    driver.scheduler().synchronize(*state->domain);
    check_fault(*state);
  });
}

CUresult cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  return entry([&] {
    const auto state = Driver::get().current();
    require(value != nullptr);
    const Limit found = limit_of(*state, limit);
    *value = found.place == nullptr ? found.least : found.place->load(std::memory_order_relaxed);
  });
}

CUresult cuCtxSetLimit(CUlimit limit, std::size_t value) {
  return entry([&] {
    const auto state = Driver::get().current();
    refuse_unsafe_call();
    const Limit found = limit_of(*state, limit);
    require(found.place != nullptr, CUDA_ERROR_UNSUPPORTED_LIMIT);
    require(value <= found.most);
    const std::uint64_t rounded = value + (found.unit - value % found.unit) % found.unit;
    found.place->store(std::max(rounded, found.least), std::memory_order_relaxed);
  });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return entry([&] {
    Driver::get().current();
    if (least != nullptr) *least = kLeastStreamPriority;
    if (greatest != nullptr) *greatest = kGreatestStreamPriority;
  });
}
