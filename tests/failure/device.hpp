// SPDX-License-Identifier: Apache-2.0
// The CPU device with planned failures and with an audit of its resources, as the tests of this program open
// it.
#pragma once

#include <quern/quern.hpp>

#include <memory>

#include "driver/failing_table.hpp"
#include "driver/loader.hpp"
#include "runtime/device/driver.hpp"

namespace quern::failure {

/// Never destroyed. The allocations that the driver makes for itself are not counted (in_driver).
struct AuditedDevice {
  driver::LoadedPlugin plugin;
  driver::FailingTable* table;
  std::shared_ptr<const runtime::Driver> driver;

  static AuditedDevice& get();
  /// Opens a separate session; its calls go through `table`.
  Session open_session() const;

 private:
  AuditedDevice();
};

/// A stream of the program that is not ordered with the default stream. No failure is planned for the calls
/// that create it.
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
