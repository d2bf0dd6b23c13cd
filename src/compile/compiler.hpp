// SPDX-License-Identifier: Apache-2.0
// The room's front door: KernelRequest -> PtxImage.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "abi/kernel_request.hpp"
#include "base/progress.hpp"
#include "cache/memory_cache.hpp"
#include "compile/places.hpp"
#include "quern/compile_stats.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// The result of the search for NVRTC and the toolkit's headers; for `quern doctor` and `quern devices`.
struct ToolkitReport {
  bool found = false;  ///< an NVRTC is open
  std::string nvrtc_path;
  std::string nvrtc_version;                     ///< "13.0"
  std::vector<std::uint32_t> architectures;      ///< virtual architectures it compiles for, ascending
  std::vector<std::string> include_directories;  ///< the toolkit's; empty: none found
  std::string headers_version;                   ///< "13.0"; empty: not known
  std::vector<Candidate> nvrtc_candidates;       ///< every place looked at, in order
  std::vector<Candidate> header_candidates;
  Diagnostic missing;  ///< where !found: what to tell the user
};

struct CompilerOptions {
  std::uint64_t cache_bytes = std::uint64_t{256} << 20;  ///< bound of the memory cache
  Surroundings around = surroundings();
};

/// Compiles kernel source to PTX. NVRTC is searched for and opened by the first request that needs it. Equal
/// requests are compiled once (memory cache, single flight). Thread-safe; holds no lock while NVRTC runs.
class Compiler {
 public:
  using Image = std::shared_ptr<const abi::PtxImage>;

  explicit Compiler(CompilerOptions options = {});
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  /// Compiles CUDA C++ with NVRTC; passes PTX through; translates Kernel Python to CUDA C++ first. Errors are
  /// NVRTC's own, with the author's file, line and column; warnings are returned with the image. If
  /// `request.target.sm` is set and NVRTC knows that architecture, the image also holds machine code;
  /// otherwise a warning in the log says so and the image holds only PTX. `progress` (may be null) is told of
  /// the work and may cancel it for all threads that wait for the same source: diagnostic "cancelled".
  Expected<Image> compile(const abi::KernelRequest& request, base::ProgressSlot* progress = nullptr);

  ToolkitReport toolkit();
  cache::CacheStats cache_stats() const;
  CompileStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::compile
