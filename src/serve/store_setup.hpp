// SPDX-License-Identifier: Apache-2.0
// The settings of the shared store, and its secrets, which SIGHUP reads again.
#pragma once

#include <memory>

#include "base/signing_keys.hpp"
#include "base/thread_annotations.hpp"
#include "serve/fleet.hpp"
#include "serve/settings.hpp"
#include "store/address.hpp"
#include "store/redis.hpp"

namespace quern::serve {

/// Thread-safe.
class StoreLogin {
 public:
  store::Login get() const QUERN_EXCLUDES(mutex_);
  void set(store::Login login) QUERN_EXCLUDES(mutex_);

 private:
  mutable base::Mutex mutex_;
  store::Login login_ QUERN_GUARDED_BY(mutex_);
};

struct StoreSecrets {
  std::shared_ptr<const base::SigningKeys> keys;  ///< null if all writers of the store are trusted
  store::Login login;
};

/// Reads --store, --store-key and --store-password-file. Refuses a store that others may reach, without a key
/// and without --store-trusted. Nothing is set if no store is.
Expected<StoreSecrets> read_store_secrets(const Settings& settings);

/// Returns null if no store is set.
Expected<std::unique_ptr<Fleet>> open_fleet(const Settings& settings, std::shared_ptr<StoreLogin> login);

}  // namespace quern::serve
