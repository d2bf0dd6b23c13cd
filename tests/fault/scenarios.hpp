// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <quern/quern.hpp>

#include <span>
#include <string_view>

namespace quern::fault {

/// Some of the layer's functions, used as a program does. Returns whether every value came out right; a
/// driver call that fails may end it with a quern::Error, never with a wrong value.
struct Scenario {
  std::string_view name;
  bool (*run)(const Session& session);
  bool compiles = false;  ///< source, with NVRTC
};
std::span<const Scenario> scenarios();

}  // namespace quern::fault
