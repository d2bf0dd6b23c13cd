// SPDX-License-Identifier: Apache-2.0
// A driver accepts PTX up to the version of its own release. NVRTC always writes its newest version, so an
// older driver rejects PTX from a newer NVRTC even if it uses no new feature. Here the version is lowered if
// that is safe. Source: NVIDIA, "Parallel Thread Execution ISA", version 9.0, section "Release Notes".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compile/ptx/ptx_text.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// The newest PTX version that a driver takes; `driver_version` as cuDriverGetVersion gives it (12040 for
/// CUDA 12.4). A driver newer than the table takes the newest version that the table has; one older than
/// CUDA 11.0 gives 0.0.
PtxVersion version_of_driver(std::uint32_t driver_version) noexcept;

/// The newest word of a PTX text, which determines the version that the text needs.
struct VersionNeed {
  PtxVersion version;      ///< of the release that brought the word; 0.0 where every word is in PTX 7.0
  bool known = true;       ///< false if no table has `word`, so any version may have it
  std::string word;        ///< "griddepcontrol"
  std::uint32_t line = 0;  ///< of the PTX text
};
VersionNeed version_needed(std::string_view ptx);

/// Lowers the number in `.version` to the driver's if the PTX uses nothing newer; otherwise returns an error
/// that names the first newer feature. 0 means any driver.
Expected<void> fit_to_driver(std::string& ptx, std::uint32_t driver_version);

}  // namespace quern::compile
