// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "cache/store_folder.hpp"

namespace quern::cache {

/// Calls `each` with the name and the state of every file in the folder, in no order. Returns false if it
/// cannot be read.
bool for_each_file(const File& folder,
                   const std::function<void(const std::string&, const struct stat&)>& each);

}  // namespace quern::cache
