// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_annotations.hpp"

namespace quern::serve {

/// Unix time in seconds.
double unix_time_s();

/// One compile in a worker, as operators see it: never the source.
struct SlowCompile {
  double ms = 0;              ///< in the worker
  int status = 0;             ///< of the answer
  double time_s = 0;          ///< Unix time of its end
  std::string name;           ///< the source's, in UTF-8
  std::string_view language;  ///< of static storage
  std::string request_id;     ///< of the request that began it
};

/// The compiles that took longest. Thread-safe.
class SlowestCompiles {
 public:
  static constexpr std::size_t kCount = 16;
  static constexpr std::size_t kMaxNameBytes = 128;

  /// Keeps `compile` if it is one of the kCount longest; its name is cut after kMaxNameBytes.
  void add(SlowCompile compile) QUERN_EXCLUDES(mutex_);
  /// The longest first; of equally long ones the earlier.
  std::vector<SlowCompile> list() const QUERN_EXCLUDES(mutex_);

 private:
  mutable base::Mutex mutex_;
  std::vector<SlowCompile> compiles_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::serve
