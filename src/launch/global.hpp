// SPDX-License-Identifier: Apache-2.0
// The variables of a loaded module under their author's names.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/kernel_request.hpp"
#include "quern/global.hpp"
#include "runtime/context/module.hpp"

namespace quern::launch {

/// True if the image has a variable of that name: the author's, or the PTX's.
bool has_global(const abi::PtxImage& image, std::string_view name);

/// The variable of `module`, whose image `image` is; `where` names the module in messages. Throws
/// Error(not_found) for unknown names, with a list of the known ones, Error(usage) for a name of several
/// variables, DriverError.
GlobalVariable find_global(const std::shared_ptr<runtime::Module>& module, const abi::PtxImage& image,
                           std::string_view name, std::string_view where);

/// The author's names, without those of the compiler and the toolkit's headers.
std::vector<std::string> global_names(const abi::PtxImage& image);

}  // namespace quern::launch
