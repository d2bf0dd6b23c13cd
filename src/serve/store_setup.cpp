// SPDX-License-Identifier: Apache-2.0
#include "serve/store_setup.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>

#include "base/file.hpp"
#include "serve/log.hpp"
#include "store/http_store.hpp"

namespace quern::serve {
namespace {

Diagnostic refusal(const std::string& message, const std::string& hint) {
  Diagnostic diagnostic;
  diagnostic.code = "store";
  diagnostic.message = message;
  diagnostic.hint = hint;
  return diagnostic;
}

Expected<std::string> read_password(const std::string& path) {
  struct stat file{};
  if (::stat(path.c_str(), &file) == 0 && (file.st_mode & S_IRWXO) != 0)
    return refusal(
        fmt::format("cannot use password file {}: others than its owner and group can read it", path),
        "chmod 600 " + path);
  Expected<std::string> text = base::read_file(path);
  if (!text) return text;
  std::string password = text->substr(0, text->find_first_of("\r\n"));
  if (password.empty())
    return refusal(fmt::format("cannot use password file {}: its first line is empty", path),
                   "write the password there");
  return password;
}

void log_store_event(const std::string& address, const store::Event& event) {
  switch (event.what) {
    case store::Event::What::up:
      return log_event(Level::info, "store-up", {{"store", address}});
    case store::Event::What::down:
      return log_event(Level::warning, "store-down", {{"store", address}, {"reason", event.text}});
    case store::Event::What::refused:
      return log_event(Level::warning, "store-refused", {{"key", event.key}, {"reason", event.text}});
    case store::Event::What::failed:
      return log_event(Level::warning, "store-failed", {{"store", address}, {"reason", event.text}});
  }
}

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

}  // namespace

store::Login StoreLogin::get() const {
  const base::LockGuard lock(mutex_);
  return login_;
}

void StoreLogin::set(store::Login login) {
  const base::LockGuard lock(mutex_);
  login_ = std::move(login);
}

Expected<StoreSecrets> read_store_secrets(const Settings& settings) {
  StoreSecrets secrets;
  if (settings.store.empty()) return secrets;
  Expected<store::Address> address = store::read_address(settings.store);
  if (!address) return std::move(address).errors();
  secrets.login = {address->user, address->password};
  if (!settings.store_password_file.empty()) {
    if (!address->password.empty())
      return refusal("the store has a password in its address and one in a file", "give one of them");
    Expected<std::string> password = read_password(settings.store_password_file);
    if (!password) return std::move(password).errors();
    secrets.login.password = *std::move(password);
  }
  if (!settings.store_key.empty()) {
    Expected<base::SigningKeys> keys = base::SigningKeys::read(settings.store_key);
    if (!keys) return std::move(keys).errors();
    secrets.keys = std::make_shared<const base::SigningKeys>(*std::move(keys));
  } else if (address->endpoint.socket_path.empty() && !settings.store_trusted) {
    return refusal(
        fmt::format("refused to use {}: whoever can write there could have clients run any code",
                    address->endpoint.text),
        "give --store-key, with the same key on all servers; --store-trusted where the network and all who "
        "write to the store are trusted");
  }
  return secrets;
}

Expected<std::unique_ptr<Fleet>> open_fleet(const Settings& settings, std::shared_ptr<StoreLogin> login) {
  if (settings.store.empty()) return std::unique_ptr<Fleet>();
  Expected<store::Address> address = store::read_address(settings.store);
  if (!address) return std::move(address).errors();
  remote::TlsClientContext tls;
  if (address->endpoint.tls) {
    Expected<remote::TlsClientContext> made = remote::make_client_tls(
        settings.store_ca, settings.store_certificate, settings.store_certificate_key);
    if (!made) return std::move(made).errors();
    tls = *std::move(made);
  }
  const store::LoginSource source = [login = std::move(login)] { return login->get(); };
  std::unique_ptr<store::Connector> connector = address->engine == store::Engine::redis
                                                    ? store::make_redis(*address, tls, source)
                                                    : store::make_http_store(*address, tls, source);
  const std::string text = address->endpoint.text;
  store::SharedStore::Limits limits;
  limits.budget = nanoseconds(settings.store_timeout_s);
  limits.lease = std::chrono::duration_cast<std::chrono::milliseconds>(nanoseconds(settings.store_lease_s));
  auto shared = std::make_unique<store::SharedStore>(
      std::move(connector), limits, [text](const store::Event& event) { log_store_event(text, event); });
  return std::make_unique<Fleet>(std::move(shared), text, nanoseconds(settings.compile_timeout_s));
}

}  // namespace quern::serve
