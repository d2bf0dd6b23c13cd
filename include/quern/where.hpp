// SPDX-License-Identifier: Apache-2.0
// room: runtime
#pragma once

#include <cstdint>

namespace quern {

/// A side of memory that is on both: of a SmartArray, where it has a representation; of managed memory, where
/// it lies.
enum class Where : std::uint8_t { host, device };

}  // namespace quern
