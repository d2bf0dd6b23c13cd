// SPDX-License-Identifier: Apache-2.0
// For tests: a table that counts the calls that go through it and lets chosen ones fail without reaching the
// driver.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "driver/driver_table.hpp"

namespace quern::driver {

/// Decorates a table while it lives. A driver function has no parameter for state, so there is one decorator
/// at a time in a process (a second one is a bug and aborts); calls after its end answer
/// CUDA_ERROR_DEINITIALIZED. Thread-safe.
class FailingTable {
 public:
  explicit FailingTable(const DriverTable& inner);
  ~FailingTable();
  FailingTable(const FailingTable&) = delete;
  FailingTable& operator=(const FailingTable&) = delete;

  /// A table of trampolines that count, fail if requested, and otherwise call `inner`.
  DriverTable table() const noexcept;

  /// The `nth` call from now on (1: the next), of `function` (a name of functions.def; empty for any),
  /// returns `result` and does not reach the driver. May be called repeatedly to plan several failures.
  /// Returns false if there is no such function.
  bool fail_call(std::uint64_t nth, CUresult result, std::string_view function = {});
  /// The `nth` call from now on and all after it answer `result`: a context that is lost.
  void fail_from(std::uint64_t nth, CUresult result);
  /// Called with true before every call and with false after it, on the thread that makes it. May be null.
  void observe(void (*observer)(bool begins) noexcept);
  /// Forgets every planned failure that has not happened yet.
  void clear_failures();

  /// Calls so far, of one function or of all, the failed ones included.
  std::uint64_t call_count(std::string_view function = {}) const;
  /// The names of the calls so far, in order (the latest 65,536).
  std::vector<std::string> trace() const;
};

}  // namespace quern::driver
