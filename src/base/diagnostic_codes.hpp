// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "quern/error.hpp"

namespace quern::base {

/// The ErrorCode of a diagnostic's code, as diagnostic_codes.def says. A code without a row is a defect of
/// quern's own: ErrorCode::internal.
ErrorCode error_code_of(std::string_view code) noexcept;

/// True for a code with a row, and for a numbered one of NVRTC.
bool is_diagnostic_code(std::string_view code) noexcept;

}  // namespace quern::base
