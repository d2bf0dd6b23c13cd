// SPDX-License-Identifier: Apache-2.0
#include "remote/endpoint.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace quern::remote {
namespace {

Diagnostic refusal(std::string_view text) {
  Diagnostic diagnostic;
  diagnostic.code = "usage";
  diagnostic.message = fmt::format("'{}' is not the address of a compile server", text);
  diagnostic.hint = "write unix:PATH, http://HOST:PORT or https://HOST:PORT; several are separated by spaces";
  return diagnostic;
}

}  // namespace

Expected<Endpoint> read_endpoint(std::string_view text) {
  Endpoint endpoint;
  endpoint.text = text;
  const auto take = [text](std::string_view prefix) {
    return text.starts_with(prefix) ? text.substr(prefix.size()) : std::string_view();
  };
  if (const std::string_view path = take("unix:"); !path.empty()) {
    endpoint.socket_path = path;
    return endpoint;
  }
  std::string_view place = take("tcp:");
  for (const std::string_view scheme : {"http://", "https://"})
    if (const std::string_view rest = take(scheme); !rest.empty()) {
      place = rest;
      endpoint.tls = scheme == "https://";
    }
  if (place.ends_with('/')) place.remove_suffix(1);
  const std::size_t colon = place.rfind(':');
  const bool has_port = colon != std::string_view::npos && place.find(']', colon) == std::string_view::npos;
  std::string_view host = has_port ? place.substr(0, colon) : place;
  endpoint.port = has_port ? place.substr(colon + 1) : endpoint.tls ? "443" : "80";
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  endpoint.host = host;
  std::uint16_t port = 0;
  const char* const end = endpoint.port.data() + endpoint.port.size();
  const auto [read, error] = std::from_chars(endpoint.port.data(), end, port);
  if (host.empty() || error != std::errc() || read != end || port == 0 ||
      host.find_first_of("/@ \r\n") != std::string_view::npos)
    return refusal(text);
  return endpoint;
}

Expected<std::vector<Endpoint>> read_endpoints(std::string_view text) {
  constexpr std::string_view kSeparators = " ,\t\n";
  std::vector<Endpoint> endpoints;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(kSeparators);
    const std::string_view word = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (word.empty()) continue;
    Expected<Endpoint> endpoint = read_endpoint(word);
    if (!endpoint) return std::move(endpoint).errors();
    endpoints.push_back(*std::move(endpoint));
  }
  if (endpoints.empty()) return refusal(text);
  return endpoints;
}

}  // namespace quern::remote
