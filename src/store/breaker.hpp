// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace quern::store {

/// Decides when a store that failed is tried again. While it is open, nobody asks the store but a probe in
/// the background. The first probe comes at once, the next after 250 ms, then after twice as long each time,
/// up to 4 s. A store that fails within 30 s of a good probe does not begin anew. Times are those of
/// base::now_ns(). Thread-compatible.
class Breaker {
 public:
  static constexpr std::int64_t kFirstPause_ns = 250'000'000;
  static constexpr std::int64_t kLongestPause_ns = 4'000'000'000;
  static constexpr std::int64_t kSettled_ns = 30'000'000'000;

  bool closed() const noexcept { return closed_; }
  /// When the next probe is due; only while it is open.
  std::int64_t probe_at_ns() const noexcept { return probe_at_ns_; }

  /// A request or a probe failed.
  void fail(std::int64_t now_ns) noexcept {
    const bool settled = closed_ && now_ns - closed_at_ns_ >= kSettled_ns;
    if (settled) pause_ns_ = 0;
    probe_at_ns_ = now_ns + pause_ns_;
    pause_ns_ = pause_ns_ == 0                     ? kFirstPause_ns
                : pause_ns_ > kLongestPause_ns / 2 ? kLongestPause_ns
                                                   : pause_ns_ * 2;
    closed_ = false;
  }
  /// A probe was answered.
  void close(std::int64_t now_ns) noexcept {
    closed_ = true;
    closed_at_ns_ = now_ns;
  }

 private:
  bool closed_ = false;  // until the first probe
  std::int64_t probe_at_ns_ = 0;
  std::int64_t closed_at_ns_ = 0;
  std::int64_t pause_ns_ = 0;
};

}  // namespace quern::store
