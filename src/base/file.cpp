// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace quern::base {
namespace {

Diagnostic failure(const char* what, const std::filesystem::path& path, int error) {
  Diagnostic diagnostic;
  diagnostic.code = "io";
  diagnostic.message = fmt::format("cannot {} {}: {}", what, path.string(), std::strerror(error));
  return diagnostic;
}

struct Fd {
  int value;
  ~Fd() {
    if (value >= 0) ::close(value);
  }
};

bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd, data, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

Expected<std::string> read_file(const std::filesystem::path& path) {
  const Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (fd.value < 0) return failure("read", path, errno);
  struct stat info {};
  if (::fstat(fd.value, &info) != 0) return failure("read", path, errno);
  if (S_ISDIR(info.st_mode)) return failure("read", path, EISDIR);
  std::string text;
  text.reserve(static_cast<std::size_t>(info.st_size));
  char buffer[65536];
  for (;;) {
    const ssize_t got = ::read(fd.value, buffer, sizeof buffer);
    if (got == 0) return text;
    if (got < 0) {
      if (errno == EINTR) continue;
      return failure("read", path, errno);
    }
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

Expected<void> write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  // A link or a device (/dev/stdout) is written through, not replaced.
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    const Fd fd{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
    if (fd.value < 0 || !write_all(fd.value, text.data(), text.size())) return failure("write", path, errno);
    return {};
  }
  // Created by open(), not mkstemp(), so that the file gets the permissions the process's umask grants.
  static std::atomic<unsigned> serial{0};
  const std::string temporary = fmt::format("{}.{}.{}.tmp", path.string(), ::getpid(), serial++);
  const Fd fd{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (fd.value < 0) return failure("write", path, errno);
  const bool good = write_all(fd.value, text.data(), text.size()) && ::rename(temporary.c_str(), path.c_str()) == 0;
  if (good) return {};
  const int error = errno;
  ::unlink(temporary.c_str());
  return failure("write", path, error);
}

Expected<void> write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  return write_file_atomically(path, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace quern::base
