// SPDX-License-Identifier: Apache-2.0
// component: session
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quern/export.hpp"

namespace quern {

/// The result of one search. `state` missing: not found, and some uses need it; broken: found, but not
/// usable.
struct Finding {
  enum class State : std::uint8_t { good, missing, broken, info };
  State state = State::info;
  std::string subject;                 ///< "NVRTC"
  std::string detail;                  ///< the finding and its path
  std::string hint;                    ///< advice if it is missing or broken
  std::vector<std::string> looked_at;  ///< every path that was tried, in order
};

/// An environment variable that quern reads; `value` is empty if it is unset.
struct EnvironmentVariable {
  std::string name;
  std::string value;
  std::string meaning;
};

/// The findings about this machine. Problems that it finds are not thrown.
struct DoctorReport {
  std::vector<Finding> findings;
  std::vector<EnvironmentVariable> environment;
  /// True if kernels can be compiled from source and run on at least one device.
  bool ready = false;
};

QUERN_API DoctorReport doctor();

/// The file of the NVRTC that this process compiles with; empty if there is none.
QUERN_API std::string nvrtc_library();

}  // namespace quern
