// SPDX-License-Identifier: Apache-2.0
// The attributes of functions, and of the kernels of libraries.
#pragma once

#include <cuda.h>

#include "cpu/device/library.hpp"
#include "cpu/device/objects.hpp"

namespace quern::cpu::device {

/// The facts that attributes are computed from.
struct FunctionFacts {
  const KernelInfo& info;
  const ptx::Function& ptx;
  const ptx::Module& module;
  const ModuleSettings& options;
  FunctionSettings& settings;
};
FunctionFacts facts_of(FunctionObject& function);
FunctionFacts facts_of(const KernelObject& kernel, std::uint32_t device);

/// Throws Failure(CUDA_ERROR_INVALID_VALUE) for an attribute that cuda.h does not have.
int read_attribute(const FunctionFacts& facts, CUfunction_attribute attribute);
/// Throws Failure(CUDA_ERROR_INVALID_VALUE) for an attribute that cannot be set, or a value out of range.
void write_attribute(const FunctionFacts& facts, CUfunction_attribute attribute, int value);

/// CUfunc_cache and CUsharedconfig are hints that only GPUs have a use for.
bool is_cache_config(CUfunc_cache config) noexcept;
bool is_shared_config(CUsharedconfig config) noexcept;

}  // namespace quern::cpu::device
