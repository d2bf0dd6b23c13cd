// SPDX-License-Identifier: Apache-2.0
// Headers given as texts: the caller's own, and the standard ones that are implemented by libcu++.
#pragma once

#include <string>
#include <vector>

#include "abi/kernel_request.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// The caller's headers in a form that NVRTC accepts. NVRTC finds them by their exact names only, so an
/// #include "..." that refers to a header in the same directory gets that one's full name. Rejects names that
/// cannot be included, are given twice, or are quern's own.
Expected<std::vector<abi::HeaderText>> resolve_headers(const std::vector<abi::HeaderText>& headers);

/// <type_traits>, <cstdint> and the others of standard_headers.def that the toolkit's libcu++ has: each
/// includes libcu++'s and brings its names into namespace std.
std::vector<abi::HeaderText> standard_headers(const std::vector<std::string>& toolkit_directories);

/// Leaves out headers that `headers` names or that are files in one of the directories.
std::vector<abi::HeaderText> without_replaced(const std::vector<abi::HeaderText>& standard,
                                              const std::vector<abi::HeaderText>& headers,
                                              const std::vector<std::string>& directories);

}  // namespace quern::compile
