// SPDX-License-Identifier: Apache-2.0
// component: compile
#pragma once

#include <cstdint>

namespace quern {

/// Counts of compilations: of one session, or of the process. A launch of a kernel for types that it was
/// launched with before does not change them.
struct CompileStats {
  std::uint64_t translations = 0;  ///< of Kernel Python into CUDA C++
  std::uint64_t nvrtc_runs = 0;
  std::uint64_t cache_hits = 0;       ///< requests whose whole input of NVRTC was compiled already, or was
                                      ///< being compiled by another thread
  std::uint64_t disk_hits = 0;        ///< requests that the compile cache on disk answered
  std::uint64_t remote_compiles = 0;  ///< requests that a compile server answered (QUERN_REMOTE)
  std::uint64_t bundle_hits = 0;      ///< requests that a bundle answered (QUERN_CACHE_BUNDLES)
};

}  // namespace quern
