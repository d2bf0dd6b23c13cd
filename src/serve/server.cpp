// SPDX-License-Identifier: Apache-2.0
#include "serve/server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "base/thread.hpp"
#include "serve/log.hpp"

namespace quern::serve {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMaxRequestsOfConnection = 100'000;
constexpr std::string_view kTooMany =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

/// The other side: an address, or the process and user behind a Unix socket.
std::string peer_of(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  if (::getpeername(socket, address, &size) != 0) return "?";
  if (storage.ss_family == AF_UNIX) {
    ucred credentials{};
    socklen_t length = sizeof credentials;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return "unix";
    return fmt::format("unix:pid={},uid={}", credentials.pid, credentials.uid);
  }
  char host[NI_MAXHOST] = "";
  if (::getnameinfo(address, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  return host;
}

}  // namespace

Server::Server(const Settings& settings)
    : settings_(settings), service_(settings), wake_(::eventfd(0, EFD_CLOEXEC)) {}

Expected<void> Server::load_secrets() {
  Expected<StoreSecrets> store = read_store_secrets(settings_);
  if (!store) return std::move(store).errors();
  if (!settings_.token_file.empty()) {
    Expected<Tokens> tokens = Tokens::read(settings_.token_file);
    if (!tokens) return std::move(tokens).errors();
    service_.set_tokens(*std::move(tokens));
  }
  Expected<TlsContext> context = make_tls_context(settings_);
  if (!context) return std::move(context).errors();
  store_login_->set(std::move(store->login));
  if (Fleet* const fleet = service_.pool().fleet()) fleet->store().set_keys(std::move(store->keys));
  const base::LockGuard lock(mutex_);
  tls_ = *std::move(context);
  return {};
}

Expected<void> Server::check_exposure() const {
  if (settings_.open_to_all || !settings_.token_file.empty() || !settings_.tls_client_ca.empty()) return {};
  for (const Listener& listener : listeners_) {
    if (listener.local) continue;
    Diagnostic diagnostic;
    diagnostic.code = "listen";
    diagnostic.message =
        fmt::format("refused to listen on {}: everyone who reaches it could compile", listener.address);
    diagnostic.hint = "give --token-file or --tls-client-ca; --open-to-all where the network is trusted";
    return diagnostic;
  }
  return {};
}

Expected<void> Server::open() {
  if (settings_.stats_descriptor != 0 && ::fcntl(settings_.stats_descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    Diagnostic diagnostic;
    diagnostic.code = "usage";
    diagnostic.message = fmt::format("descriptor {} of --stats-fd is not open", settings_.stats_descriptor);
    return diagnostic;
  }
  // The first connection to the store is made with the password, and its first value read with the keys.
  Expected<StoreSecrets> store = read_store_secrets(settings_);
  if (!store) return std::move(store).errors();
  store_login_->set(std::move(store->login));
  Expected<std::unique_ptr<Fleet>> fleet = open_fleet(settings_, store_login_);
  if (!fleet) return std::move(fleet).errors();
  service_.pool().share(*std::move(fleet));
  if (Expected<void> secrets = load_secrets(); !secrets) return secrets;
  for (const std::string& text : settings_.listen) {
    Expected<std::vector<Listener>> opened = open_listeners(text);
    if (!opened) return std::move(opened).errors();
    for (Listener& listener : *opened) listeners_.push_back(std::move(listener));
  }
  return check_exposure();
}

void Server::reload() {
  const auto fails = [](const Expected<void>& step) {
    if (!step) log_event(Level::error, "reload-failed", {{"reason", step.errors().front().message}});
    return !step;
  };
  if (!settings_.log_file.empty() && fails(log_to(settings_.log_file))) return;
  if (fails(load_secrets())) return;
  service_.pool().reload();
  log_event(Level::info, "reloaded");
}

int Server::run() {
  for (const Listener& listener : listeners_)
    log_event(Level::info, "listening", {{"address", listener.address}});
  std::thread accepting([this] { accept_loop(); });
  std::thread reporting([this] { report_loop(); });
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGHUP) reload();
  log_event(Level::info, "draining", {{"signal", std::int64_t{signal}}});
  service_.drain();
  const std::uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0) return 1;
  accepting.join();
  reporting.join();
  for (const Listener& listener : listeners_)
    if (!listener.socket_path.empty()) ::unlink(listener.socket_path.c_str());
  const bool drained = drain();
  log_event(Level::info, "stopped", {{"drained", std::int64_t{drained}}});
  // Threads of clients that never end, and workers, end with the process.
  if (!drained) ::_exit(1);
  return 0;
}

bool Server::drain() {
  const std::int64_t deadline = base::now_ns() + static_cast<std::int64_t>(settings_.drain_timeout_s * 1e9);
  while (service_.metrics().connections != 0) {
    if (base::now_ns() > deadline) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

void Server::report_loop() const {
  const int descriptor = settings_.stats_descriptor;
  if (descriptor == 0) return;
  pollfd ready[] = {{descriptor, POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  while (::poll(ready, 2, -1) >= 0 || errno == EINTR) {
    if (ready[1].revents != 0) break;
    char byte = 0;
    if (ready[0].revents == 0) continue;
    if (::read(descriptor, &byte, 1) == 1 && report(descriptor)) continue;
    ::kill(::getpid(), SIGTERM);  // the observer has gone
    break;
  }
  ::close(descriptor);
}

bool Server::report(int descriptor) const {
  const std::string text = service_.stats() + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    pollfd ready[] = {{descriptor, POLLOUT, 0}, {wake_.get(), POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0 && errno != EINTR) return false;
    if (ready[1].revents != 0) return false;
    const ssize_t sent = ::send(descriptor, rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (sent > 0) rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void Server::accept_loop() {
  std::vector<pollfd> ready;
  for (const Listener& listener : listeners_) ready.push_back({listener.socket.get(), POLLIN, 0});
  ready.push_back({wake_.get(), POLLIN, 0});
  for (;;) {
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return;
    if (ready.back().revents != 0) break;
    for (std::size_t i = 0; i < listeners_.size(); ++i)
      if (ready[i].revents != 0) accept_one(listeners_[i]);
  }
  for (Listener& listener : listeners_) listener.socket.reset();
}

void Server::accept_one(const Listener& listener) {
  const int socket = ::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) {
    // Without descriptors, connections wait until others end.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) std::this_thread::sleep_for(20ms);
    return;
  }
  std::atomic<std::uint64_t>& count = service_.metrics().connections;
  if (count >= settings_.max_connections) {
    service_.metrics().count_request("connection", 503);
    ::send(socket, kTooMany.data(), kTooMany.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(socket);
    return;
  }
  const bool is_unix = !listener.socket_path.empty();
  const int on = 1;
  if (!is_unix) ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ++count;
  try {
    base::start_thread([this, socket, is_unix] {
      serve_connection(socket, peer_of(socket), !is_unix);
      --service_.metrics().connections;
    });
  } catch (const std::system_error&) {
    ::close(socket);
    --count;
  }
}

void Server::serve_connection(int socket, const std::string& peer, bool tls) {
  Connection connection(socket, wake_.get(), peer);
  TlsContext context;
  {
    const base::LockGuard lock(mutex_);
    context = tls ? tls_ : nullptr;
  }
  if (context && !connection.start_tls(*context, milliseconds(settings_.request_timeout_s))) return;
  for (std::uint64_t count = 1; connection.wait_for_request(milliseconds(settings_.idle_timeout_s)); ++count)
    if (!service_.serve_one(connection, count == kMaxRequestsOfConnection)) break;
  connection.finish();
}

}  // namespace quern::serve
