// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ptx/forms.hpp"
#include "ptx/module.hpp"

namespace quern::ptx {

/// True if the module has the .version and the .target that the form needs.
bool is_available(const Form& form, const Module& module) noexcept;

}  // namespace quern::ptx
