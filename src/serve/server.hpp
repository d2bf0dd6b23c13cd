// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/thread_annotations.hpp"
#include "serve/listener.hpp"
#include "serve/service.hpp"
#include "serve/settings.hpp"
#include "serve/store_setup.hpp"
#include "serve/tls.hpp"

namespace quern::serve {

/// The listening sockets, a thread for each connection, and the shutdown.
class Server {
 public:
  explicit Server(const Settings& settings);

  /// Reads tokens and certificates, and opens the sockets.
  Expected<void> open();
  /// Serves until SIGTERM or SIGINT has come and the requests in progress are answered; SIGHUP reads tokens,
  /// certificates, the store's secrets and the toolkit again. The calling thread, and those that it starts,
  /// must block these signals already. Returns the exit status.
  int run();

 private:
  Expected<void> load_secrets() QUERN_EXCLUDES(mutex_);
  Expected<void> check_exposure() const;
  void reload();
  /// Answers on settings_.stats_descriptor until the server stops.
  void report_loop() const;
  bool report(int descriptor) const;
  void accept_loop();
  void accept_one(const Listener& listener);
  void serve_connection(int socket, const std::string& peer, bool tls);
  bool drain();

  const Settings& settings_;
  std::shared_ptr<StoreLogin> store_login_ = std::make_shared<StoreLogin>();
  Service service_;
  Descriptor wake_;  ///< readable once the server stops
  std::vector<Listener> listeners_;
  base::Mutex mutex_;
  TlsContext tls_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::serve
