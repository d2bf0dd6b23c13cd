// SPDX-License-Identifier: Apache-2.0
// The CPU device behind planned failures and behind books, as the tests of this program open it.
#pragma once

#include <quern/quern.hpp>

#include <memory>

#include "driver/failing_table.hpp"
#include "driver/loader.hpp"
#include "runtime/device/driver.hpp"

namespace quern::failure {

/// Never destroyed. The driver's own allocations count for no test (in_driver).
struct AuditedDevice {
  driver::LoadedPlugin plugin;
  driver::FailingTable* table;
  std::shared_ptr<const runtime::Driver> driver;

  static AuditedDevice& get();
  /// A session of its own; its calls go through `table`.
  Session open_session() const;

 private:
  AuditedDevice();
};

/// A stream of the program's that the default stream is not ordered with, made by calls that do not fail.
class ForeignStream {
 public:
  explicit ForeignStream(const Session& session);
  ~ForeignStream();
  ForeignStream(const ForeignStream&) = delete;
  ForeignStream& operator=(const ForeignStream&) = delete;

  StreamView view() const noexcept { return view_; }

 private:
  StreamView view_;
};

}  // namespace quern::failure
