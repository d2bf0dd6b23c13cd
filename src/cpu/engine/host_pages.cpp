// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/host_pages.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>

#include "base/file.hpp"

namespace quern::cpu::engine {
namespace {

/// A mapping of the process.
struct HostMapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  HostAccess access = HostAccess::none;
  bool is_file = false;
};

/// Removes the next word of the line.
std::string_view take_word(std::string_view& line) noexcept {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t end = std::min(line.find(' ', begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

/// A line of /proc/self/maps: "BEGIN-END PERMISSIONS OFFSET DEVICE INODE PATH" (proc_pid_maps(5)).
HostMapping parse(std::string_view line) noexcept {
  HostMapping mapping;
  const std::string_view range = take_word(line), permissions = take_word(line);
  const char* const last = range.data() + range.size();
  const char* const dash = std::from_chars(range.data(), last, mapping.begin, 16).ptr;
  if (dash != last) std::from_chars(dash + 1, last, mapping.end, 16);
  if (permissions.starts_with("rw"))
    mapping.access = HostAccess::read_write;
  else if (permissions.starts_with('r'))
    mapping.access = HostAccess::read;
  take_word(line);
  take_word(line);
  mapping.is_file = take_word(line) != "0";
  return mapping;
}

/// rt_sigprocmask() with an invalid first argument reads the set and does nothing else: EINVAL, or EFAULT if
/// it cannot be read.
bool can_be_read(std::uintptr_t address) noexcept {
  constexpr long kNoAction = -1;
  constexpr std::size_t kSetBytes = 8;
  const int error = errno;
  const bool can =
      ::syscall(SYS_rt_sigprocmask, kNoAction, address / kSetBytes * kSetBytes, nullptr, kSetBytes) == 0 ||
      errno != EFAULT;
  errno = error;
  return can;
}

}  // namespace

std::optional<HostAccess> host_access(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (bytes > UINTPTR_MAX - begin) return HostAccess::none;
  const std::uintptr_t end = begin + bytes;
  const Expected<std::string> maps = base::read_file("/proc/self/maps");
  if (!maps) return std::nullopt;
  HostAccess all = HostAccess::read_write;
  std::uintptr_t at = begin;  // the access to what lies before is known
  for (std::string_view rest = *maps; at < end && !rest.empty();) {
    const std::size_t length = std::min(rest.find('\n'), rest.size());
    const HostMapping mapping = parse(rest.substr(0, length));
    rest.remove_prefix(std::min(length + 1, rest.size()));
    if (mapping.end <= at) continue;
    if (mapping.begin > at) return HostAccess::none;  // a gap
    at = std::min(mapping.end, end);
    all = std::min(all, mapping.access);
    // A file is mapped up to its end: the last page decides for all before it.
    if (all == HostAccess::none || (mapping.is_file && !can_be_read(at - 1))) return HostAccess::none;
  }
  return at == end ? all : HostAccess::none;
}

}  // namespace quern::cpu::engine
