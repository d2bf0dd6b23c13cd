// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>

#include "abi/kernel_request.hpp"
#include "base/thread_annotations.hpp"

namespace quern::serve {

/// The precompiled headers that a nursery is to make: first those of precompiled.def, then those that would
/// have served a compile. Thread-safe.
class PrecompiledQueue {
 public:
  /// Each is tried once; beyond a number of them, no more are taken.
  static constexpr std::size_t kMost = 64;

  /// A new nursery has none.
  void begin_anew() QUERN_EXCLUDES(mutex_);
  /// `request` was compiled without one, in `seconds`.
  void note_compile(const abi::KernelRequest& request, double seconds) QUERN_EXCLUDES(mutex_);
  std::optional<abi::KernelRequest> take() QUERN_EXCLUDES(mutex_);

 private:
  void add(abi::KernelRequest lines) QUERN_REQUIRES(mutex_);

  base::Mutex mutex_;
  std::set<std::string> seen_ QUERN_GUARDED_BY(mutex_);
  std::deque<abi::KernelRequest> waiting_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::serve
