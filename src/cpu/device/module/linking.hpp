// SPDX-License-Identifier: Apache-2.0
// Texts made into one module, as a device linker makes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/module.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::device {

/// The options of loading that matter here.
struct ModuleSettings {
  std::uint32_t max_registers = 0;  ///< CU_JIT_MAX_REGISTERS; 0: not given
  bool optimised = true;            ///< false: CU_JIT_OPTIMIZATION_LEVEL is 0
};

/// A text to link.
struct LinkText {
  std::string name;
  std::string ptx;
  bool of_archive = false;  ///< taken only if it defines what another text lacks
};

/// Links the texts, those of archives and the device's own functions (kDeviceRuntime, kConditionSetter) as
/// far as others need what they define. CU_JIT_MAX_REGISTERS becomes a .maxnreg of each kernel that has no
/// limit of its own, so that it comes along in the image.
Expected<ptx::Module> link_texts(const std::vector<LinkText>& texts, const ModuleSettings& settings);

/// The module with the functions that a driver supplies when it loads one (kConditionSetter), if it lacks
/// any.
Expected<ptx::Module> with_driver_functions(ptx::Module module, const std::string& name);

/// The functions that CUDA's libcudadevrt.a has for cooperative groups, in PTX. That library has machine code
/// only.
extern const std::string_view kDeviceRuntime;
/// cudaGraphSetConditional, in PTX. A driver supplies it, so that it needs no linking with that library.
extern const std::string_view kConditionSetter;

}  // namespace quern::cpu::device
