// SPDX-License-Identifier: Apache-2.0
// zeros(...), arange(...), random(...): arrays made as NumPy makes them.
#pragma once

#include "tools/quern/expression.hpp"
#include "tools/quern/host_array.hpp"

namespace tool {

/// The array of `call`, or nothing where no maker has that name. Throws quern::Error(usage) for wrong
/// arguments; the message shows how the maker is called.
std::optional<HostArray> make_from_call(const Call& call);

}  // namespace tool
