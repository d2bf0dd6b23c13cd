// SPDX-License-Identifier: Apache-2.0
// Texts made into one module, as a device linker makes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cpu/device/jit_options.hpp"
#include "cpu/device/objects.hpp"
#include "ptx/module.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::device {

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
