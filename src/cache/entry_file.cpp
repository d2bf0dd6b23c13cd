// SPDX-License-Identifier: Apache-2.0
#include "cache/entry_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/random.h>

#include <atomic>
#include <cerrno>
#include <ctime>

#include "base/clock.hpp"
#include "base/held_signal.hpp"
#include "cache/entry_format.hpp"

namespace quern::cache {
namespace {

constexpr std::time_t kBetweenAccesses =
    60;  // seconds: a hit costs a write to the folder's disk at most so often

bool read_all(int file, std::string& bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = ::read(file, bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    at += static_cast<std::size_t>(got);
  }
  bytes.resize(at);
  return true;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Unique among the hosts that share the folder.
std::string temporary_name() {
  static std::atomic<std::uint64_t> serial{0};
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
    random = static_cast<std::uint64_t>(base::now_ns());
  return fmt::format("{}{}-{}-{:016x}", kTemporaryPrefix, ::getpid(), serial++, random);
}

void note_access(int file, const struct stat& info) noexcept {
  const std::time_t now = std::time(nullptr);
  if (now - info.st_atim.tv_sec <= kBetweenAccesses && now >= info.st_atim.tv_sec) return;
  const timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_OMIT}};
  ::futimens(file, times);  // where it cannot be set, the entry is removed earlier than others
}

bool is_same_file(const struct stat& a, const struct stat& b) noexcept {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

EntryFile read_entry_file(const File& folder, const std::string& name, FolderUse use) {
  EntryFile result;
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const File file(
      ::openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) {
    result.error = errno;
    const bool is_odd = errno == ELOOP || errno == ENXIO;  // a symbolic link; a socket
    if (errno != ENOENT)
      result.state = is_odd && ::fstatat(folder.get(), name.c_str(), &result.info, AT_SYMLINK_NOFOLLOW) == 0
                         ? EntryFile::State::foreign
                         : EntryFile::State::failed;
    return result;
  }
  if (::fstat(file.get(), &result.info) != 0) {
    result.error = errno;
    result.state = EntryFile::State::failed;
    return result;
  }
  const auto most = static_cast<off_t>(2 * kMostEntryBytes + kEntryHeaderBytes);
  result.state = EntryFile::State::foreign;
  if (!S_ISREG(result.info.st_mode) || !is_of_trusted_owner(result.info, use) || result.info.st_size > most)
    return result;
  result.bytes.resize(static_cast<std::size_t>(result.info.st_size));
  result.state = EntryFile::State::read;
  if (!read_all(file.get(), result.bytes)) {
    result.error = errno;
    result.state = EntryFile::State::failed;
  } else if (use != FolderUse::read) {
    note_access(file.get(), result.info);
  }
  return result;
}

int publish_entry_file(const File& folder, const std::string& name, std::string_view header,
                       std::string_view components, std::string_view content) {
  const base::HeldSignal quiet(SIGXFSZ);
  const std::string temporary = temporary_name();
  File file(
      ::openat(folder.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return errno;
  int error = 0;
  for (const std::string_view part : {header, components, content})
    if (error == 0 && !write_all(file.get(), part)) error = errno;
  // A network file system reports here what it could not write.
  if (::close(file.release()) != 0 && error == 0 && errno != EINTR) error = errno;
  if (error == 0 && ::renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) != 0)
    error = errno;
  if (error != 0) ::unlinkat(folder.get(), temporary.c_str(), 0);
  return error;
}

void set_aside(const File& folder, const std::string& name, const struct stat& info, const File* quarantine) {
  struct stat now{};
  if (::fstatat(folder.get(), name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0 || !is_same_file(now, info))
    return;
  if (quarantine == nullptr || ::renameat(folder.get(), name.c_str(), quarantine->get(), name.c_str()) != 0) {
    ::unlinkat(folder.get(), name.c_str(), S_ISDIR(info.st_mode) ? AT_REMOVEDIR : 0);
    return;
  }
  // Another process may have published a good entry since the look at it: that one goes back.
  if (::fstatat(quarantine->get(), name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 && !is_same_file(now, info))
    ::renameat2(quarantine->get(), name.c_str(), folder.get(), name.c_str(), RENAME_NOREPLACE);
}

}  // namespace quern::cache
