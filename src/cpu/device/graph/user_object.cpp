// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/graph/user_object.hpp"

#include <limits>

namespace quern::cpu::device {

void UserObject::retain(std::uint64_t count, Owner owner) {
  const base::LockGuard lock(mutex_);
  require(references_ > 0 && count <= std::numeric_limits<std::int32_t>::max() - references_);
  references_ += count;
  if (owner == Owner::client) of_client_ += count;
}

void UserObject::move_to_graph(std::uint64_t count) {
  const base::LockGuard lock(mutex_);
  require(count <= of_client_);
  of_client_ -= count;
}

void UserObject::release(Driver& driver, std::uint64_t count, Owner owner) {
  {
    const base::LockGuard lock(mutex_);
    require(count <= (owner == Owner::client ? of_client_ : references_ - of_client_));
    references_ -= count;
    if (owner == Owner::client) of_client_ -= count;
    if (references_ > 0) return;
  }
  driver.remove(handle_);  // the caller holds the object
  destroy_(pointer_);
}

}  // namespace quern::cpu::device
