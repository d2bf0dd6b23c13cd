// SPDX-License-Identifier: Apache-2.0
// The interface between SharedStore and the protocols of stores.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "quern/expected.hpp"
#include "remote/stream.hpp"

namespace quern::store {

/// A lock that somebody wants or holds. The engine keeps in it what it has seen of the present holder.
struct Lock {
  base::Digest key;
  std::string owner;  ///< random: nobody else has the same
  std::chrono::milliseconds lease{0};
  std::uint32_t generation = 0;
  std::uint64_t beat = 0;
  std::string seen;
  std::int64_t seen_ns = 0;
};

enum class LockResult : std::uint8_t { acquired, held, unsupported };

/// One connection to a store; thread-compatible. Errors have the codes "unreachable", "timeout", "lost" and
/// "protocol", after which the connection is of no use, and "refused": the store answered, but does not do
/// this.
class Connection {
 public:
  virtual ~Connection() = default;
  /// One round trip.
  virtual Expected<void> ping(const remote::Pace& pace) = 0;
  /// Returns nothing if the store has no such value.
  virtual Expected<std::optional<std::string>> get(const base::Digest& key, const remote::Pace& pace) = 0;
  virtual Expected<void> put(const base::Digest& key, std::string_view value, const remote::Pace& pace) = 0;
  /// Takes the lock if nobody holds it. It ends by itself if it is not extended within its lease.
  virtual Expected<LockResult> try_lock(Lock& lock, const remote::Pace& pace) = 0;
  /// Returns false if another server has it.
  virtual Expected<bool> extend(Lock& lock, const remote::Pace& pace) = 0;
  /// Does nothing if it is somebody else's by now.
  virtual Expected<void> unlock(Lock& lock, const remote::Pace& pace) = 0;
  virtual bool is_usable() const = 0;
};

/// Makes connections; thread-safe.
class Connector {
 public:
  virtual ~Connector() = default;
  /// A connection that is logged in.
  virtual Expected<std::unique_ptr<Connection>> connect(std::chrono::milliseconds timeout) = 0;
};

}  // namespace quern::store
