// SPDX-License-Identifier: Apache-2.0
#include "store/address.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace quern::store {
namespace {

struct Scheme {
  std::string_view prefix;
  Engine engine;
  bool tls;
  bool is_socket;
  std::string_view port;
};
constexpr Scheme kSchemes[] = {
    {"redis://", Engine::redis, false, false, "6379"},   {"rediss://", Engine::redis, true, false, "6379"},
    {"redis+unix://", Engine::redis, false, true, ""},   {"redis+unix:", Engine::redis, false, true, ""},
    {"http://", Engine::http_cache, false, false, "80"}, {"https://", Engine::http_cache, true, false, "443"},
    {"dav://", Engine::dav, false, false, "80"},         {"davs://", Engine::dav, true, false, "443"},
};

const Scheme* scheme_of(std::string_view text) {
  for (const Scheme& each : kSchemes)
    if (text.starts_with(each.prefix)) return &each;
  return nullptr;
}

/// The parts of SCHEME[USER[:PASSWORD]@]PLACE[/PATH], all views of the text.
struct Parts {
  std::string_view user, password, place, path;
};

Parts parts_of(const Scheme& scheme, std::string_view text) {
  Parts parts;
  std::string_view rest = text.substr(scheme.prefix.size());
  const std::size_t slash = rest.find('/');
  parts.path = slash == std::string_view::npos ? std::string_view() : rest.substr(slash);
  parts.place = rest.substr(0, slash);
  const std::size_t at = parts.place.rfind('@');
  if (at == std::string_view::npos) return parts;
  parts.user = parts.place.substr(0, at);
  parts.place.remove_prefix(at + 1);
  const std::size_t colon = parts.user.find(':');
  if (colon == std::string_view::npos) return parts;
  parts.password = parts.user.substr(colon + 1);
  parts.user = parts.user.substr(0, colon);
  return parts;
}

Diagnostic refusal(const std::string& reason) {
  Diagnostic diagnostic;
  diagnostic.code = "store";
  diagnostic.message = "cannot use the address of the store: " + reason;
  diagnostic.hint =
      "write redis://HOST:PORT, rediss://HOST:PORT, redis+unix:PATH, http://HOST:PORT/FOLDER (as "
      "bazel-remote), "
      "or dav://HOST:PORT/FOLDER";
  return diagnostic;
}

/// %XX as characters; nothing for a percent sign without two digits, and for control characters.
std::optional<std::string> decode(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = static_cast<unsigned char>(text[i]);
    if (text[i] == '%') {
      const std::string_view digits = text.substr(i + 1, 2);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
      if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) return std::nullopt;
      i += 2;
    }
    if (value < ' ' || value == 0x7f) return std::nullopt;
    result += static_cast<char>(value);
  }
  return result;
}

bool is_url_path(std::string_view path) {
  for (const char c : path)
    if (c <= ' ' || c >= '\x7f' || c == '?' || c == '#' || c == '"') return false;
  return true;
}

Expected<void> read_path(const Scheme& scheme, std::string_view path, Address& address) {
  if (scheme.engine != Engine::redis) {
    while (path.ends_with('/')) path.remove_suffix(1);
    if (!is_url_path(path)) return refusal("its folder holds characters that a URL must encode as %XX");
    address.folder = path;
    return {};
  }
  if (path.size() <= 1) return {};
  const auto [end, error] = std::from_chars(path.data() + 1, path.data() + path.size(), address.database);
  if (error != std::errc() || end != path.data() + path.size())
    return refusal("the path of a Redis address is the number of a database");
  return {};
}

}  // namespace

std::string_view password_in(std::string_view text) {
  const Scheme* const scheme = scheme_of(text);
  return scheme == nullptr ? std::string_view() : parts_of(*scheme, text).password;
}

Expected<Address> read_address(std::string_view text) {
  const Scheme* const scheme = scheme_of(text);
  if (scheme == nullptr) return refusal("its scheme is not known");
  const Parts parts = parts_of(*scheme, text);
  Address address;
  address.engine = scheme->engine;
  const std::optional<std::string> user = decode(parts.user), password = decode(parts.password);
  if (!user || !password) return refusal("its user or password is not encoded as in a URL");
  address.user = *user;
  address.password = *password;
  if (scheme->is_socket) {
    if (!parts.place.empty() || parts.path.size() < 2) return refusal("a socket has an absolute path");
    address.endpoint.text = fmt::format("redis+unix:{}", parts.path);
    address.endpoint.socket_path = parts.path;
    return address;
  }
  // The list of servers that clients use is read by the same function.
  Expected<remote::Endpoint> endpoint =
      remote::read_endpoint(fmt::format("{}{}", scheme->tls ? "https://" : "http://", parts.place));
  if (!endpoint) return refusal("its host or port is not valid");
  if (parts.place.find(':', parts.place.rfind(']') + 1) == std::string_view::npos)
    endpoint->port = scheme->port;
  endpoint->text =
      fmt::format("{}{}{}", scheme->prefix, parts.place, is_url_path(parts.path) ? parts.path : "");
  address.endpoint = *std::move(endpoint);
  if (Expected<void> read = read_path(*scheme, parts.path, address); !read) return std::move(read).errors();
  return address;
}

}  // namespace quern::store
