// SPDX-License-Identifier: Apache-2.0
// PTX given as source: passed through as it is.
#pragma once

#include "abi/kernel_request.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// Checks that the source can be PTX at all (text without zero bytes, `.version` first) and lists its
/// entries. Options and name expressions have no meaning here and are rejected. The loader checks the
/// instructions.
Expected<abi::PtxImage> pass_ptx(const abi::KernelRequest& request);

}  // namespace quern::compile
