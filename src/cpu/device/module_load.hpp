// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cpu/device/driver.hpp"
#include "cpu/device/jit_options.hpp"
#include "cpu/device/objects.hpp"

namespace quern::cpu::device {

/// Loads a module image into `context`: reads the PTX, and places and initialises its variables. Throws
/// Failure after writing the reason to the error log.
std::shared_ptr<ModuleObject> load_module(Driver& driver, const std::shared_ptr<ContextState>& context,
                                          const void* image, const JitOptions& options);

/// Gives every .global and .const variable of `module.ptx` its address in device memory, and its value.
/// Throws Failure(CUDA_ERROR_OUT_OF_MEMORY).
void place_variables(Driver& driver, ModuleObject& module);

}  // namespace quern::cpu::device
