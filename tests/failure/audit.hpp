// SPDX-License-Identifier: Apache-2.0
// A driver table that records all objects: those made and not released, and those released without having
// been made.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "driver/driver_table.hpp"

namespace quern::failure {

struct ResourceAudit {
  std::multiset<std::pair<std::string, std::uint64_t>> live;
  std::set<std::string> wrong;  ///< releases of resources that did not exist
};

/// A table that calls `inner` and records the resources that calls create and release. A process may have one
/// at a time. Thread-safe. Calls wait for the work that they queue: an injected failure then finds no work
/// running, as a real failure would.
driver::DriverTable audited(const driver::DriverTable& inner);
ResourceAudit audit();
void clear_audit();

}  // namespace quern::failure
