// SPDX-License-Identifier: Apache-2.0
#include "cache/key_lock.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <thread>

namespace quern::cache {
namespace {

using std::chrono::microseconds;
using Clock = std::chrono::steady_clock;

// A hit after another process's computation must come within a millisecond. Over a network each look is a
// question to the server.
constexpr microseconds kFirstPause{50};
constexpr microseconds kLongestPause{500};
constexpr microseconds kLongestPauseOfNetwork{20'000};

bool set_lock(int file, short type, std::uint64_t at, std::uint64_t bytes) noexcept {
  struct flock range{};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(at);
  range.l_len = static_cast<off_t>(bytes);
  return ::fcntl(file, F_OFD_SETLK, &range) == 0;
}

bool is_of_network(int file) noexcept {
  struct statfs info{};
  constexpr decltype(info.f_type) kCifs = 0xff534d42;
  return ::fstatfs(file, &info) == 0 &&
         (info.f_type == NFS_SUPER_MAGIC || info.f_type == SMB_SUPER_MAGIC || info.f_type == kCifs);
}

}  // namespace

RangeLock::~RangeLock() {
  // Not by closing the file alone: a child that was forked meanwhile has it open too.
  if (is_held()) set_lock(file_.get(), F_UNLCK, at_, bytes_);
}

RangeLock RangeLock::wait(File file, std::uint64_t at, std::uint64_t bytes, std::chrono::nanoseconds longest,
                          const std::function<bool()>& goes_on) {
  RangeLock lock;
  if (!file) return lock;
  const Clock::time_point end = Clock::now() + longest;
  microseconds pause = kFirstPause;
  microseconds most{};  // known when it is first needed
  for (;;) {
    if (set_lock(file.get(), F_WRLCK, at, bytes)) {
      lock.file_ = std::move(file);
      lock.at_ = at;
      lock.bytes_ = bytes;
      return lock;
    }
    const bool is_busy = errno == EAGAIN || errno == EACCES || errno == EINTR;
    if (!is_busy || Clock::now() >= end || (goes_on && !goes_on())) return lock;
    if (most == microseconds{}) most = is_of_network(file.get()) ? kLongestPauseOfNetwork : kLongestPause;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, most);
  }
}

File open_lock_file(const File& folder, const char* name) {
  File file(
      ::openat(folder.get(), name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
  struct stat info{};
  if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      !is_of_trusted_owner(info, FolderUse::write))
    return File();
  return file;
}

}  // namespace quern::cache
