// SPDX-License-Identifier: Apache-2.0
#include "serve/worker/frames.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace quern::serve {
namespace {

constexpr int kTickMs = 100;

struct Head {
  std::uint64_t text_bytes = 0;
  std::uint64_t blob_bytes = 0;
  std::uint32_t status = 0;
  std::uint32_t unused = 0;
};

bool send_all(int socket, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

Receive receive_all(int socket, void* data, std::size_t size, const std::function<bool()>& goes_on) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    if (goes_on) {
      pollfd ready{socket, POLLIN, 0};
      const int count = ::poll(&ready, 1, kTickMs);
      if (!goes_on()) return Receive::stopped;
      if (count <= 0) continue;
    }
    const ssize_t got = ::recv(socket, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Receive::closed;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return Receive::frame;
}

}  // namespace

bool send_frame(int socket, const Frame& frame) {
  const Head head{frame.text.size(), frame.bytes.size(), frame.status, 0};
  return send_all(socket, &head, sizeof head) && send_all(socket, frame.text.data(), frame.text.size()) &&
         send_all(socket, frame.bytes.data(), frame.bytes.size());
}

Receive receive_frame(int socket, std::uint64_t max_bytes, const std::function<bool()>& goes_on,
                      Frame& frame) {
  Head head;
  if (const Receive got = receive_all(socket, &head, sizeof head, goes_on); got != Receive::frame) return got;
  if (head.text_bytes > max_bytes || head.blob_bytes > max_bytes - head.text_bytes) return Receive::too_large;
  frame.status = head.status;
  frame.text.resize(head.text_bytes);
  frame.bytes.resize(head.blob_bytes);
  const Receive got = receive_all(socket, frame.text.data(), frame.text.size(), goes_on);
  if (got != Receive::frame) return got;
  return receive_all(socket, frame.bytes.data(), frame.bytes.size(), goes_on);
}

bool send_descriptor(int socket, int descriptor) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

int receive_descriptor(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  int descriptor = -1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
      head->cmsg_len == CMSG_LEN(sizeof descriptor))
    std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
  return descriptor;
}

}  // namespace quern::serve
