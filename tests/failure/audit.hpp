// SPDX-License-Identifier: Apache-2.0
// A driver table that records all objects: those made and not released, and those released without having
// been made.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "driver/driver_table.hpp"

namespace quern::failure {

struct Books {
  std::multiset<std::pair<std::string, std::uint64_t>> live;
  std::set<std::string> wrong;  ///< releases of what was not there
};

/// `inner` with books. One at a time in a process; thread-safe. Queued work is waited for, so that a
/// failure that is only pretended finds nothing still running, as a real one would.
driver::DriverTable audited(const driver::DriverTable& inner);
Books books();
void clear_books();

}  // namespace quern::failure
