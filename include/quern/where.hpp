// SPDX-License-Identifier: Apache-2.0
// component: runtime
#pragma once

#include <cstdint>

namespace quern {

/// One of two sides of memory: of a SmartArray, the side of a representation; of managed memory, its
/// location.
enum class Where : std::uint8_t { host, device };

}  // namespace quern
