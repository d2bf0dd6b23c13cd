// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace quern::frontend {

/// SHA-256 of this component's sources, in hexadecimal digits; the build computes it. Part of the identity of
/// a compile server: another front end makes other CUDA C++ of the same Kernel Python.
std::string_view source_digest();

}  // namespace quern::frontend
