// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/machine.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

namespace quern::cpu::engine {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// The number in a control file; nullopt if it is "max" or the file is missing.
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// The limit of the group `path` ("/a/b") and of its parents, below `root`.
std::uint64_t group_limit(const std::string& root, std::string path, const char* file) {
  std::uint64_t limit = kNoLimit;
  for (;;) {
    limit = std::min(limit, number_in(root + path + "/" + file).value_or(kNoLimit));
    const std::size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return limit;
    path.resize(slash);
  }
}

/// Supports both versions of control groups: lines "0::/path" (v2) and "n:memory:/path" (v1) of
/// /proc/self/cgroup.
std::uint64_t control_group_limit() {
  std::uint64_t limit = kNoLimit;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) limit = std::min(limit, group_limit("/sys/fs/cgroup", path, "memory.max"));
    if (controllers.find("memory") != std::string::npos)
      limit = std::min(limit, group_limit("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
  }
  return limit;
}

}  // namespace

std::uint64_t usable_memory_bytes() {
  const std::uint64_t physical = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                                 static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(physical, control_group_limit());
}

AddressLimit address_limit() {
  AddressLimit limit;
  rlimit set{};
  if (::getrlimit(RLIMIT_AS, &set) != 0 || set.rlim_cur == RLIM_INFINITY) return limit;
  limit.most_bytes = set.rlim_cur;
  const std::uint64_t pages = number_in("/proc/self/statm").value_or(0);
  limit.used_bytes = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit;
}

std::uint32_t usable_processor_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&set)));
  return static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace quern::cpu::engine
