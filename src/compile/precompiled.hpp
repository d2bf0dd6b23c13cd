// SPDX-License-Identifier: Apache-2.0
// Precompiled headers of NVRTC 12.8 and later: what its front end knows after the #include lines that a
// source begins with. NVRTC accepts one only in the process that made it, or in a child forked from that
// process, as it holds addresses. docs/decisions/0031 has the conditions.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/digest.hpp"
#include "base/thread_annotations.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

struct CudaPlan;
struct NvrtcInput;
struct NvrtcOutput;

/// The operands of the `#include <x>` lines with which a source begins, comments and blank lines aside.
std::vector<std::string> leading_includes(std::string_view source);

/// A source of these lines alone.
std::string include_lines(std::span<const std::string> includes);

/// Identifies a precompiled header by all that it depends on besides the toolkit: NVRTC's options and the
/// headers in their order.
base::Digest precompiled_key(const std::vector<std::string>& options, std::span<const std::string> includes);

/// The precompiled headers that this process may use. Thread-safe.
class PrecompiledHeaders {
 public:
  /// `path` stays readable for as long as this object lives.
  void add(const base::Digest& key, std::string path) QUERN_EXCLUDES(mutex_);
  /// The path of the one that stands for the most of `includes`; empty if there is none.
  std::string find(const std::vector<std::string>& options, std::span<const std::string> includes) const
      QUERN_EXCLUDES(mutex_);
  /// Runs of NVRTC that used one.
  std::uint64_t use_count() const noexcept { return uses_; }
  void note_use() noexcept { ++uses_; }

 private:
  mutable base::Mutex mutex_;
  std::unordered_map<base::Digest, std::string> paths_ QUERN_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> uses_{0};
};

/// Has NVRTC, which must be open, write the precompiled header of the plan's source to `file`. Returns its
/// key. The source is include_lines() of some toolkit headers.
Expected<base::Digest> precompile(const CudaPlan& plan, const std::string& file);

/// Runs NVRTC with the precompiled header for the plan's source. Returns false if there is none, NVRTC did
/// not take it, or the compilation failed, and it must be run without; `output` has no meaning then.
bool run_precompiled(const CudaPlan& plan, const NvrtcInput& input, PrecompiledHeaders& headers,
                     NvrtcOutput& output);

}  // namespace quern::compile
