// SPDX-License-Identifier: Apache-2.0
// The disk tier of the cache: entries under a digest, as files of one folder that all processes of a user
// share. docs/cache-format.md describes folder and files.
//
// The folder is not trusted: an entry that is damaged, truncated or not a file of this user is a miss,
// is moved to the folder `quarantine`, and a warning in the log says so. Entries are published by rename(),
// so that a reader sees a whole entry or none. They are not flushed to the disk: what a power failure leaves
// of one is found by its checksum. They are read with read() and never mapped: a file that is truncated
// meanwhile cannot end the process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "cache/entry_format.hpp"
#include "cache/key_lock.hpp"
#include "quern/diagnostic.hpp"

namespace quern::cache {

struct DiskStoreOptions {
  std::string directory;  ///< made on the first put() if it is not there
  /// Bound of what the entries take. The least recently used are removed first.
  std::uint64_t max_bytes = std::uint64_t{1} << 30;
  bool read_only = false;       ///< put() does nothing; the folder may be root's
  bool is_users_choice = true;  ///< named by the user: failing to use it is a warning, not a debug message
};

/// Counters of this process; a consistent reading of each, not of all.
struct DiskStoreStats {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t writes = 0;
  std::uint64_t failed_writes = 0;
  std::uint64_t damaged = 0;    ///< entries that were set aside
  std::uint64_t evictions = 0;  ///< entries that were removed to stay within the bound
};

/// Thread-safe, and safe with other processes on the same directory. Keeps no file open, holds no lock that a
/// forked child would find locked, and throws nothing: what goes wrong is a miss and a message in the log.
class DiskStore {
 public:
  explicit DiskStore(DiskStoreOptions options);
  ~DiskStore();
  DiskStore(const DiskStore&) = delete;
  DiskStore& operator=(const DiskStore&) = delete;

  /// The bytes under the key, checked. Returns nothing if they are not there, or were damaged.
  std::optional<std::string> get(EntryKind kind, const base::Digest& key) noexcept;

  /// Publishes the bytes, and replaces existing ones. Failing to write is logged once and is never the
  /// caller's error. `components` says what the key was made of, for `quern cache why`.
  void put(EntryKind kind, const base::Digest& key, std::string_view bytes,
           std::string_view components = {}) noexcept;

  using Claim = RangeLock;
  /// The right to compute the entries under the key: of all threads and processes that ask, one has it at a
  /// time, until its Claim is destroyed. A thread that waited should look again for the value of the former
  /// holder. Not held after a minute, if `goes_on` (may be empty) answers false, and where there are no
  /// locks: then several may compute the same, which is not wrong.
  Claim claim(const base::Digest& key, const std::function<bool()>& goes_on = {});

  using Compute = std::function<std::optional<std::string>()>;
  /// The bytes under the key, or those that `compute` returns, which are published then; `compute` runs once
  /// however many threads and processes ask. Returns nothing if it returned nothing, and the next one asks
  /// its own. Passes on its exceptions.
  std::optional<std::string> get_or_compute(EntryKind kind, const base::Digest& key, const Compute& compute);

  /// True if the entry in this file is the one that its name says; otherwise it is set aside.
  bool is_sound(const std::string& folder, const std::string& file);

  const DiskStoreOptions& options() const noexcept;
  DiskStoreStats stats() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The meaning of QUERN_CACHE, QUERN_CACHE_DIR, QUERN_CACHE_MAXSIZE, XDG_CACHE_HOME and HOME now; the
/// diagnostic tells why there is no store (code "cache-off": the user turned it off).
Expected<DiskStoreOptions> store_options_of_environment();

/// The process's store, made by the first call as the environment says then. Returns null if there is none.
/// Never destroyed.
DiskStore* process_store() noexcept;

}  // namespace quern::cache
