// SPDX-License-Identifier: Apache-2.0
// Texts made into one module, as a device linker makes it.
#pragma once

#include <string_view>
#include <vector>

#include "cpu/device/jit_options.hpp"
#include "cpu/device/objects.hpp"
#include "ptx/module.hpp"
#include "quern/expected.hpp"

namespace quern::cpu::device {

/// Links the texts, those of archives and the device's own runtime (kDeviceRuntime) as far as others need
/// what they define. CU_JIT_MAX_REGISTERS becomes a .maxnreg of each kernel that has no limit of its own, so
/// that it comes along in the image.
Expected<ptx::Module> link_texts(const std::vector<LinkText>& texts, const ModuleSettings& settings);

/// The functions that CUDA's libcudadevrt.a has for cooperative groups, in PTX. That library has machine code
/// only.
extern const std::string_view kDeviceRuntime;

}  // namespace quern::cpu::device
