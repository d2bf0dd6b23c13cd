// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "quern/dtype.hpp"

namespace quern::abi {

/// Writes the scalar at `source` as a `target` into `out` (16 bytes), by value: whole numbers must fit, a
/// whole number for a floating type must be one exactly, floating types round but do not overflow; a fraction
/// never becomes a whole number. Returns the reason if it cannot be converted, and nothing if it was.
/// `any_sign`: a whole number may be below 0 or use the top bit.
std::optional<std::string> convert_scalar(Dtype from, const void* source, Dtype target, bool any_sign,
                                          std::byte* out);

/// "float32 2.5", "int64 -3": for messages.
std::string scalar_text(Dtype dtype, const void* source);

bool is_integer(Dtype dtype) noexcept;

}  // namespace quern::abi
