// SPDX-License-Identifier: Apache-2.0
// Contexts: made, retained, current.
#include "cpu/device/cuda_api.hpp"

#include "cpu/device/driver.hpp"
#include "cpu/device/limits.hpp"

using namespace quern::cpu::device;

namespace {

/// The limit's place in the context; throws for a limit that this device does not have.
std::atomic<std::uint64_t>& limit_of(ContextState& state, CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      return state.stack_bytes;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return state.printf_fifo_bytes;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return state.heap_bytes;
    default:
      fail(limit < CU_LIMIT_MAX ? CUDA_ERROR_UNSUPPORTED_LIMIT : CUDA_ERROR_INVALID_VALUE);
  }
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::uint32_t ordinal = driver.device(device);
    require(context != nullptr);
    *context = driver.contexts().retain_primary(ordinal);
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.contexts().release_primary(driver.device(device));
  });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.contexts().reset_primary(driver.device(device));
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
    require(context != nullptr && (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0);
    // Execution affinity and contexts in graphics are for MPS and for graphics drivers.
    require(params == nullptr || (params->numExecAffinityParams == 0 && params->cigParams == nullptr),
            CUDA_ERROR_NOT_SUPPORTED);
    *context = driver.contexts().make(ordinal, flags);
    context_stack().push_back(*context);
  });
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  return entry([&] { Driver::get().contexts().destroy(context); });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return entry([&] {
    Driver::get().contexts().device_of(context);
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
    if (context != nullptr) driver.contexts().device_of(context);
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
    require(!context_stack().empty(), CUDA_ERROR_INVALID_CONTEXT);
    *device = static_cast<CUdevice>(driver.contexts().device_of(context_stack().back()));
  });
}

CUresult cuCtxSynchronize() {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto state = driver.current_even_failed();  // work that a fault ended must be finished, too
    driver.scheduler().synchronize(*state->domain);
    check_fault(*state);
  });
}

CUresult cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  return entry([&] {
    const auto state = Driver::get().current();
    require(value != nullptr);
    *value = limit_of(*state, limit).load(std::memory_order_relaxed);
  });
}

CUresult cuCtxSetLimit(CUlimit limit, std::size_t value) {
  return entry([&] {
    const auto state = Driver::get().current();
    limit_of(*state, limit).store(value, std::memory_order_relaxed);
  });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return entry([&] {
    Driver::get().current();
    if (least != nullptr) *least = kLeastStreamPriority;
    if (greatest != nullptr) *greatest = kGreatestStreamPriority;
  });
}
