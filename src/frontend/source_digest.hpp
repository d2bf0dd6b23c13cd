// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace quern::frontend {

/// SHA-256 of this component's sources, in hexadecimal digits; the build computes it. It is part of the
/// identity of a compile server, since another front end generates different CUDA C++ from the same Kernel
/// Python.
std::string_view source_digest();

}  // namespace quern::frontend
