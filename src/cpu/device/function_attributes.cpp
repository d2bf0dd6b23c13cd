// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/function_attributes.hpp"

#include <algorithm>

#include "cpu/device/driver.hpp"
#include "cpu/device/failure.hpp"
#include "cpu/device/limits.hpp"

namespace quern::cpu::device {
namespace {

constexpr std::uint32_t kLeastRegisterLimit = 16;
constexpr std::uint32_t kMostRegisters = 255;

/// The registers a thread may have: .maxnreg comes before the option of loading; otherwise as many as let a
/// block of .maxntid (and .minnctapersm such blocks) fit on a multiprocessor. Source: NVIDIA, "Parallel
/// Thread Execution ISA", section "Performance-Tuning Directives".
std::uint32_t register_limit(const FunctionFacts& facts) noexcept {
  const ptx::PerformanceDirectives& directives = facts.ptx.performance;
  if (directives.maxnreg != 0) return std::clamp(directives.maxnreg, kLeastRegisterLimit, kMostRegisters);
  if (facts.options.max_registers != 0)
    return std::clamp(facts.options.max_registers, kLeastRegisterLimit, kMostRegisters);
  if (directives.maxntid[0] == 0 && directives.reqntid[0] == 0) return kMostRegisters;
  const std::uint32_t threads = std::max(facts.info.max_threads, 1u) * std::max(directives.minnctapersm, 1u);
  constexpr std::uint32_t kUnit = 8;  // in which registers are given out
  return std::clamp(kRegistersPerSm / threads / kUnit * kUnit, kLeastRegisterLimit, kMostRegisters);
}

}  // namespace

FunctionFacts facts_of(FunctionObject& function) {
  return {function.info(), function.ptx(), function.module().ptx, function.module().settings,
          function.settings};
}

FunctionFacts facts_of(const KernelObject& kernel, std::uint32_t device) {
  const SharedPtx& shared = *kernel.library->shared;
  return {kernel.info, *shared.ptx_by_name.find(kernel.info.name)->second, shared.module,
          kernel.library->settings(), *kernel.settings[device]};
}

int read_attribute(const FunctionFacts& facts, CUfunction_attribute attribute) {
  require(attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX);
  const std::uint32_t limit = register_limit(facts);
  const std::uint32_t wanted = facts.info.register_count;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return static_cast<int>(facts.info.max_threads);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return static_cast<int>(facts.info.static_shared_bytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      return static_cast<int>(facts.info.const_bytes);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      // A GPU spills the values beyond the limit into local memory.
      return static_cast<int>(facts.info.local_bytes + 4 * (wanted - std::min(wanted, limit)));
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return static_cast<int>(std::min(wanted, limit));
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      return static_cast<int>(facts.module.sm);
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return static_cast<int>(compute_capability());
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return static_cast<int>(facts.settings.max_dynamic_shared_bytes.load());
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return facts.settings.carveout.load();
    default:
      return 0;  // cache mode, clusters
  }
}

void write_attribute(const FunctionFacts& facts, CUfunction_attribute attribute, int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      require(value >= 0 &&
              static_cast<std::uint64_t>(value) + facts.info.static_shared_bytes <= kOptInSharedBytes);
      facts.settings.max_dynamic_shared_bytes.store(static_cast<std::uint32_t>(value));
      return;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      require(value >= -1 && value <= 100);
      facts.settings.carveout.store(value);
      return;
    default:
      fail(CUDA_ERROR_INVALID_VALUE);  // read-only, or for clusters, which the device does not have
  }
}

bool is_cache_config(CUfunc_cache config) noexcept {
  return config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
}

bool is_shared_config(CUsharedconfig config) noexcept {
  return config >= CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE &&
         config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE;
}

}  // namespace quern::cpu::device
