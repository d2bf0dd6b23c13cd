// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "cpu/device/driver.hpp"
#include "cpu/device/jit_options.hpp"
#include "cpu/device/module/read_ptx.hpp"
#include "cpu/device/objects.hpp"

namespace quern::cpu::device {

/// The content of a regular file: others might never end. Throws Failure(CUDA_ERROR_FILE_NOT_FOUND).
std::string read_file(const char* name);
inline Image image_of_file(const std::string& content) { return {content.c_str(), content.size()}; }

/// Reads a module image. Throws Failure after writing the reason to the error log.
ReadPtx read_image(const Image& image, const JitOptions& options);

/// Loads a module image into `context`: reads the PTX, and places and initialises its variables. Throws
/// Failure after writing the reason to the error log.
std::shared_ptr<ModuleObject> load_module(Driver& driver, const std::shared_ptr<ContextState>& context,
                                          const Image& image, const JitOptions& options);

/// Places the .managed variables of a library, which outlive the context. Throws
/// Failure(CUDA_ERROR_OUT_OF_MEMORY).
std::shared_ptr<const ManagedVariables> place_managed(Driver& driver, const ContextState& context,
                                                      const ptx::Module& ptx);

/// Gives every other .global and .const variable of `module.ptx` its address in device memory, and its value.
/// Throws Failure(CUDA_ERROR_OUT_OF_MEMORY).
void place_variables(Driver& driver, ModuleObject& module);

}  // namespace quern::cpu::device
