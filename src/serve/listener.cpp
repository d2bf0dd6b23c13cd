// SPDX-License-Identifier: Apache-2.0
#include "serve/listener.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>

namespace quern::serve {
namespace {

constexpr int kBacklog = 4096;

Diagnostic failure(const std::string& text, const std::string& reason, const std::string& hint = {}) {
  Diagnostic diagnostic;
  diagnostic.code = "listen";
  diagnostic.message = fmt::format("cannot listen on '{}': {}", text, reason);
  diagnostic.hint = hint;
  return diagnostic;
}

bool somebody_listens(const sockaddr_un& address) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

Expected<std::vector<Listener>> open_unix(const std::string& text, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return failure(text, fmt::format("a socket's path has 1 to {} bytes", sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, path.data(), path.size());
  struct stat file{};
  if (::lstat(path.c_str(), &file) == 0) {
    if (!S_ISSOCK(file.st_mode)) return failure(text, "there is a file of that name");
    if (somebody_listens(address)) return failure(text, "another server listens there");
    ::unlink(path.c_str());
  }
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Sets the mode before the name exists, so that no other user can connect in between.
  if (::fchmod(socket.get(), 0600) != 0 ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), kBacklog) != 0)
    return failure(text, std::strerror(errno));
  std::vector<Listener> listeners;
  listeners.push_back({std::move(socket), "unix:" + path, path, true});
  return listeners;
}

std::string address_text(int socket, bool& loopback) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  if (::getsockname(socket, address, &size) != 0 ||
      ::getnameinfo(address, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) !=
          0)
    return "tcp:?";
  const std::string name = host;
  loopback = name.starts_with("127.") || name == "::1";
  return name.find(':') == std::string::npos ? fmt::format("tcp:{}:{}", name, port)
                                             : fmt::format("tcp:[{}]:{}", name, port);
}

Expected<Listener> open_address(const std::string& text, const addrinfo& info) {
  Descriptor socket(::socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, info.ai_protocol));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (info.ai_family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(socket.get(), info.ai_addr, info.ai_addrlen) != 0 || ::listen(socket.get(), kBacklog) != 0)
    return failure(text, std::strerror(errno));
  Listener listener;
  listener.address = address_text(socket.get(), listener.local);
  listener.socket = std::move(socket);
  return listener;
}

Expected<std::vector<Listener>> open_tcp(const std::string& text, std::string host, const std::string& port) {
  std::uint16_t number = 0;  // getaddrinfo() takes larger ones modulo 65536
  const auto [read, wrong] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (wrong != std::errc() || read != port.data() + port.size())
    return failure(text, "its port is no number from 0 to 65535");
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0)
    return failure(text, ::gai_strerror(error),
                   "write tcp:127.0.0.1:8471, tcp:0.0.0.0:8471 or tcp:[::]:8471");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  std::vector<Listener> listeners;
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    Expected<Listener> listener = open_address(text, *each);
    if (!listener) return std::move(listener).errors();
    listeners.push_back(*std::move(listener));
  }
  return listeners;
}

}  // namespace

void DescriptorTraits::release(type descriptor) noexcept { ::close(descriptor); }

Expected<std::vector<Listener>> open_listeners(const std::string& text) {
  constexpr std::string_view kUnix = "unix:", kTcp = "tcp:";
  if (text.starts_with(kUnix)) return open_unix(text, text.substr(kUnix.size()));
  const std::size_t colon = text.rfind(':');
  if (text.starts_with(kTcp) && colon > kTcp.size())
    return open_tcp(text, text.substr(kTcp.size(), colon - kTcp.size()), text.substr(colon + 1));
  return failure(text, "it is no address", "write unix:PATH or tcp:HOST:PORT");
}

}  // namespace quern::serve
