// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/held_signal.hpp"
#include "quern/file.hpp"

namespace quern {
namespace {

Diagnostic failure(const char* what, const std::filesystem::path& path, const char* why, const char* hint) {
  Diagnostic diagnostic;
  diagnostic.code = "io";
  diagnostic.message = fmt::format("cannot {} {}: {}", what, path.string(), why);
  diagnostic.hint = hint;
  return diagnostic;
}

Diagnostic unread(const std::filesystem::path& path, int error) {
  return failure("read", path, std::strerror(error), "check the file's name and that it can be read");
}

Diagnostic unwritten(const std::filesystem::path& path, int error) {
  return failure("write", path, std::strerror(error),
                 "check that its folder is there and may be written, and that there is space");
}

constexpr std::size_t kMostOfDevice = std::size_t{64} << 20;

struct Fd {
  int value;
  ~Fd() {
    if (value >= 0) ::close(value);
  }
};

bool write_all(int fd, const std::byte* data, std::size_t size) {
  const base::HeldSignal quiet(SIGXFSZ);
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

/// The links in /proc to which /dev/stdout leads refer to open files and not to the paths that they show.
bool is_of_open_file(const std::filesystem::path& link) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(link.parent_path(), ignored).string().starts_with("/proc/");
}

/// Resolves symbolic links; the target need not exist.
std::filesystem::path behind_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) break;
    if (is_of_open_file(path)) break;
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
}

}  // namespace

namespace {

/// The rest of an open file.
Expected<std::string> read_rest(const std::filesystem::path& path, const Fd& fd, const struct stat& info,
                                std::uint64_t most_bytes) {
  std::string text;
  text.reserve(static_cast<std::size_t>(info.st_size));
  constexpr std::size_t kBufferBytes = 65536;  // on the heap: the caller's stack may be small
  const auto buffer = std::make_unique_for_overwrite<char[]>(kBufferBytes);
  for (;;) {
    const ssize_t got = ::read(fd.value, buffer.get(), kBufferBytes);
    if (got == 0) return text;
    if (got < 0) {
      if (errno == EINTR) continue;
      return unread(path, errno);
    }
    text.append(buffer.get(), static_cast<std::size_t>(got));
    if (text.size() > most_bytes) return unread(path, EFBIG);
  }
}

}  // namespace

Expected<std::string> base::read_file(const std::filesystem::path& path) {
  const Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (fd.value < 0) return unread(path, errno);
  struct stat info{};
  if (::fstat(fd.value, &info) != 0) return unread(path, errno);
  if (S_ISDIR(info.st_mode)) return unread(path, EISDIR);
  const bool may_be_endless = S_ISCHR(info.st_mode);  // /dev/zero
  return read_rest(path, fd, info, may_be_endless ? kMostOfDevice : UINT64_MAX);
}

Expected<std::string> base::read_regular_file(const std::filesystem::path& path, std::uint64_t most_bytes) {
  const Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (fd.value < 0) return unread(path, errno);
  struct stat info{};
  if (::fstat(fd.value, &info) != 0) return unread(path, errno);
  if (S_ISDIR(info.st_mode)) return unread(path, EISDIR);
  if (!S_ISREG(info.st_mode))
    return failure("read", path, "it is no regular file", "copy what it gives to a file, and name that");
  if (static_cast<std::uint64_t>(info.st_size) > most_bytes) return unread(path, EFBIG);
  return read_rest(path, fd, info, most_bytes);
}

Expected<void> write_file_atomically(const std::filesystem::path& named, std::span<const std::byte> bytes) {
  const std::filesystem::path path = behind_links(named);
  // A device and an open file (/dev/stdout) are written through, not replaced.
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  const bool is_special = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  if (is_special || std::filesystem::is_symlink(std::filesystem::symlink_status(path, ignored))) {
    const Fd fd{::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC)};
    if (fd.value < 0 || !write_all(fd.value, bytes.data(), bytes.size())) return unwritten(path, errno);
    return {};
  }
  // Created by open(), not mkstemp(), so that the file gets the permissions the process's umask grants.
  static std::atomic<unsigned> serial{0};
  // Beside the file, so that rename() stays within a file system; not with its name, which may have the
  // greatest length that there is.
  const std::string temporary =
      (path.parent_path() / fmt::format(".quern.{}.{}.tmp", ::getpid(), serial++)).string();
  const Fd fd{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (fd.value < 0) return unwritten(path, errno);
  const bool good =
      write_all(fd.value, bytes.data(), bytes.size()) && ::rename(temporary.c_str(), path.c_str()) == 0;
  if (good) return {};
  const int error = errno;
  ::unlink(temporary.c_str());
  return unwritten(path, error);
}

}  // namespace quern
