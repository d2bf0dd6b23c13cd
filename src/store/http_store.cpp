// SPDX-License-Identifier: Apache-2.0
#include "store/http_store.hpp"

#include <fmt/format.h>

#include <atomic>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "remote/base64.hpp"
#include "remote/http.hpp"
#include "store/action_result.hpp"

namespace quern::store {
namespace {

using remote::HttpAnswer;
using remote::Pace;

constexpr std::uint32_t kMostGenerations = 1000;

/// A connection on which paths below the folder are asked for.
class HttpStore {
 public:
  HttpStore(remote::HttpConnection connection, const Address& address, const Login& login)
      : connection_(std::move(connection)), folder_(address.folder), name_("store " + address.endpoint.text) {
    if (!login.user.empty() || !login.password.empty()) {
      const std::string words = login.user + ':' + login.password;
      authorization_ = "Basic " + remote::to_base64(std::as_bytes(std::span(words)));
    }
  }

  /// A status from 500 on is an error of the store's, like an answer that does not come; 507 is not. The
  /// pace goes on where it was for the next request of an operation.
  Expected<HttpAnswer> ask(std::string_view method, const std::string& path, Pace& pace,
                           std::string_view body = {}) {
    remote::HttpRequest request{method, folder_ + path, {}, body};
    if (!authorization_.empty()) request.headers["Authorization"] = authorization_;
    if (method == "DELETE") request.headers["Depth"] = "infinity";
    remote::Timeouts timeouts;
    timeouts.pace = pace;
    Expected<HttpAnswer> answer = connection_.ask(request, timeouts);
    pace = connection_.pace();
    if (answer && answer->status >= 500 && answer->status != 507)
      return failure("protocol", method, answer->status);
    return answer;
  }
  Expected<std::optional<std::string>> get(const std::string& path, Pace& pace) {
    Expected<HttpAnswer> answer = ask("GET", path, pace);
    if (!answer) return std::move(answer).errors();
    if (answer->status == 404 || answer->status == 410) return std::optional<std::string>();
    if (answer->status != 200) return failure("refused", "GET", answer->status);
    return std::optional<std::string>(std::move(answer->body));
  }
  Expected<void> put(const std::string& path, std::string_view body, Pace& pace) {
    const Expected<HttpAnswer> answer = ask("PUT", path, pace, body);
    if (!answer) return answer.errors();
    if (answer->status / 100 != 2) return failure("refused", "PUT", answer->status);
    return {};
  }
  Diagnostic failure(const char* code, std::string_view method, int status) const {
    Diagnostic made;
    made.code = code;
    made.message = fmt::format("{}: it answered {} with {}", name_, method, status);
    return made;
  }
  bool is_usable() const { return connection_.is_usable(); }

 private:
  remote::HttpConnection connection_;
  std::string folder_;
  std::string name_;
  std::string authorization_;
};

Expected<void> no_value(Expected<std::optional<std::string>> answer) {
  if (!answer) return std::move(answer).errors();
  return {};
}

class CacheConnection final : public Connection {
 public:
  explicit CacheConnection(HttpStore store) : store_(std::move(store)) {}

  Expected<void> ping(const Pace& pace) override {
    Pace rest = pace;
    return no_value(store_.get("/ac/" + base::Digest{}.hex(), rest));
  }
  Expected<std::optional<std::string>> get(const base::Digest& key, const Pace& pace) override {
    Pace rest = pace;
    Expected<std::optional<std::string>> entry = store_.get("/ac/" + key.hex(), rest);
    if (!entry || !*entry) return entry;
    // Bytes that are no entry are refused as a value.
    const std::optional<std::string> digest = read_action_result(**entry);
    return digest ? store_.get("/cas/" + *digest, rest) : std::move(entry);
  }
  Expected<void> put(const base::Digest& key, std::string_view value, const Pace& pace) override {
    Pace rest = pace;
    const base::Digest digest = base::sha256(std::as_bytes(std::span(value)));
    if (Expected<void> content = store_.put("/cas/" + digest.hex(), value, rest); !content) return content;
    return store_.put("/ac/" + key.hex(), write_action_result(digest, value.size()), rest);
  }
  Expected<LockResult> try_lock(Lock& /*lock*/, const Pace& /*pace*/) override {
    return LockResult::unsupported;
  }
  Expected<bool> extend(Lock& /*lock*/, const Pace& /*pace*/) override { return false; }
  Expected<void> unlock(Lock& /*lock*/, const Pace& /*pace*/) override { return {}; }
  bool is_usable() const override { return store_.is_usable(); }

 private:
  HttpStore store_;
};

/// True if a server makes collections; found out once.
enum class Collections : std::uint8_t { unknown, made, not_made };

class DavConnection final : public Connection {
 public:
  DavConnection(HttpStore store, std::atomic<Collections>& collections)
      : store_(std::move(store)), collections_(collections) {}

  Expected<void> ping(const Pace& pace) override {
    Pace rest = pace;
    return no_value(store_.get("/" + base::Digest{}.hex(), rest));
  }
  Expected<std::optional<std::string>> get(const base::Digest& key, const Pace& pace) override {
    Pace rest = pace;
    return store_.get("/" + key.hex(), rest);
  }
  Expected<void> put(const base::Digest& key, std::string_view value, const Pace& pace) override {
    Pace rest = pace;
    return store_.put("/" + key.hex(), value, rest);
  }
  Expected<LockResult> try_lock(Lock& lock, const Pace& pace) override;
  Expected<bool> extend(Lock& lock, const Pace& pace) override;
  Expected<void> unlock(Lock& lock, const Pace& pace) override;
  bool is_usable() const override { return store_.is_usable(); }

 private:
  static std::string collection(const Lock& lock) {
    return fmt::format("/{}.lock.{}/", lock.key.hex(), lock.generation);
  }
  static std::string beat_path(const Lock& lock) { return collection(lock) + "beat"; }
  Expected<void> beat(Lock& lock, Pace& rest) {
    return store_.put(beat_path(lock), fmt::format("{} {}", lock.owner, ++lock.beat), rest);
  }
  Expected<bool> is_ours(const Lock& lock, Pace& rest);
  Expected<void> find_out_collections(const Lock& lock, Pace& rest);
  /// Returns true if the holder has not renewed the lock for a lease.
  Expected<bool> is_dead(Lock& lock, Pace& rest);

  HttpStore store_;
  std::atomic<Collections>& collections_;
};

// MKCOL is answered with 405 for a collection that exists, and by servers that make none.
Expected<void> DavConnection::find_out_collections(const Lock& lock, Pace& rest) {
  const std::string path = fmt::format("/{}.try/", lock.owner);
  const Expected<HttpAnswer> made = store_.ask("MKCOL", path, rest);
  if (!made) return made.errors();
  collections_ = made->status == 201 ? Collections::made : Collections::not_made;
  if (made->status != 201) return {};
  if (const Expected<HttpAnswer> removed = store_.ask("DELETE", path, rest); !removed)
    return removed.errors();
  return {};
}

Expected<bool> DavConnection::is_dead(Lock& lock, Pace& rest) {
  Expected<std::optional<std::string>> shown = store_.get(beat_path(lock), rest);
  if (!shown) return std::move(shown).errors();
  // Its holder may be between the creation of the collection and the first renewal, or may just have removed
  // both.
  const std::string seen = *shown ? **shown : "none";
  const std::int64_t now = base::now_ns();
  if (seen != lock.seen) {
    lock.seen = seen;
    lock.seen_ns = now;
  }
  return now - lock.seen_ns >= std::chrono::nanoseconds(lock.lease).count();
}

Expected<LockResult> DavConnection::try_lock(Lock& lock, const Pace& pace) {
  Pace rest = pace;
  if (collections_ == Collections::unknown)
    if (Expected<void> found = find_out_collections(lock, rest); !found) return std::move(found).errors();
  if (collections_ == Collections::not_made) return LockResult::unsupported;
  for (;;) {
    const Expected<HttpAnswer> made = store_.ask("MKCOL", collection(lock), rest);
    if (!made) return made.errors();
    if (made->status == 201) {
      if (Expected<void> begun = beat(lock, rest); !begun) return std::move(begun).errors();
      return LockResult::acquired;
    }
    if (made->status != 405) return store_.failure("refused", "MKCOL", made->status);
    const Expected<bool> dead = is_dead(lock, rest);
    if (!dead) return dead.errors();
    if (!*dead || lock.generation == kMostGenerations) return LockResult::held;
    ++lock.generation;
    lock.seen.clear();
  }
}

Expected<bool> DavConnection::is_ours(const Lock& lock, Pace& rest) {
  Expected<std::optional<std::string>> shown = store_.get(beat_path(lock), rest);
  if (!shown) return std::move(shown).errors();
  return *shown && (*shown)->starts_with(lock.owner);
}

Expected<bool> DavConnection::extend(Lock& lock, const Pace& pace) {
  Pace rest = pace;
  const Expected<bool> ours = is_ours(lock, rest);
  if (!ours || !*ours) return ours;
  if (Expected<void> done = beat(lock, rest); !done) return std::move(done).errors();
  return true;
}

Expected<void> DavConnection::unlock(Lock& lock, const Pace& pace) {
  Pace rest = pace;
  const Expected<bool> ours = is_ours(lock, rest);
  if (!ours) return ours.errors();
  if (!*ours) return {};
  // Locks of dead holders have lower numbers than this one.
  for (Lock each = lock;; --each.generation) {
    const Expected<HttpAnswer> removed = store_.ask("DELETE", collection(each), rest);
    if (!removed) return removed.errors();
    if (each.generation == 0) return {};
  }
}

class HttpConnector final : public Connector {
 public:
  HttpConnector(const Address& address, remote::TlsClientContext tls, LoginSource login)
      : address_(address), tls_(std::move(tls)), login_(std::move(login)) {}

  Expected<std::unique_ptr<Connection>> connect(std::chrono::milliseconds timeout) override {
    remote::Timeouts each;
    each.connect = timeout;
    Expected<remote::HttpConnection> connection =
        remote::HttpConnection::open(address_.endpoint, tls_, each, "store");
    if (!connection) return std::move(connection).errors();
    HttpStore store(*std::move(connection), address_, login_());
    if (address_.engine == Engine::dav)
      return std::unique_ptr<Connection>(new DavConnection(std::move(store), collections_));
    return std::unique_ptr<Connection>(new CacheConnection(std::move(store)));
  }

 private:
  const Address address_;
  const remote::TlsClientContext tls_;
  const LoginSource login_;
  std::atomic<Collections> collections_{Collections::unknown};
};

}  // namespace

std::unique_ptr<Connector> make_http_store(const Address& address, remote::TlsClientContext tls,
                                           LoginSource login) {
  return std::make_unique<HttpConnector>(address, std::move(tls), std::move(login));
}

}  // namespace quern::store
