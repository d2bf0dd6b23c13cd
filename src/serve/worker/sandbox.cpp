// SPDX-License-Identifier: Apache-2.0
#include "serve/worker/sandbox.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "serve/worker/temporary_file.hpp"

namespace quern::serve {
namespace {

/// struct landlock_ruleset_attr of newer kernels than the headers'.
struct RulesetAttributes {
  std::uint64_t files = 0;
  std::uint64_t network = 0;
  std::uint64_t scoped = 0;
};

// The rights that each version of Landlock brought, by number of the highest bit (linux/landlock.h).
std::uint64_t file_rights(int version) {
  const int bits = version >= 5 ? 16 : version >= 3 ? 15 : version >= 2 ? 14 : 13;
  return (std::uint64_t{1} << bits) - 1;
}

std::string system_reason() { return std::strerror(errno); }

constexpr std::uint64_t kReading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kWriting = kReading | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
                                   LANDLOCK_ACCESS_FS_REMOVE_FILE | 1u << 14;  // LANDLOCK_ACCESS_FS_TRUNCATE

bool allow_below(int ruleset, const std::string& path, std::uint64_t rights) {
  const int folder = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (folder < 0) return errno == ENOENT;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = rights;
  rule.parent_fd = folder;
  const bool added = ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0u) == 0;
  ::close(folder);
  return added;
}

/// The version in force; 0 with `reason` where there is none.
int restrict_files(const std::vector<std::string>& readable, const std::string& writable,
                   std::string& reason) {
  const auto version = static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, nullptr, std::size_t{0}, LANDLOCK_CREATE_RULESET_VERSION));
  if (version <= 0) {
    reason = "the kernel has no Landlock: " + system_reason();
    return 0;
  }
  RulesetAttributes attributes{file_rights(version), version >= 4 ? 3u : 0u, version >= 6 ? 3u : 0u};
  const std::size_t size = version >= 6 ? sizeof attributes : version >= 4 ? 16 : 8;
  const auto ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, size, 0u));
  bool good = ruleset >= 0;
  for (const std::string& path : readable) good = good && allow_below(ruleset, path, kReading);
  if (!writable.empty()) good = good && allow_below(ruleset, writable, kWriting & attributes.files);
  good = good && ::syscall(SYS_landlock_restrict_self, ruleset, 0u) == 0;
  if (!good) reason = "Landlock could not be set up: " + system_reason();
  if (ruleset >= 0) ::close(ruleset);
  return good ? version : 0;
}

class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    jump(AUDIT_ARCH_X86_64, 1, 0);
    result(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
  }
  void allow(long number) {
    jump(static_cast<std::uint32_t>(number), 0, 1);
    result(SECCOMP_RET_ALLOW);
  }
  void fail(long number, int error) {
    jump(static_cast<std::uint32_t>(number), 0, 1);
    result(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error));
  }
  void trap(long number) {
    jump(static_cast<std::uint32_t>(number), 0, 1);
    result(SECCOMP_RET_TRAP);
  }
  void allow_if(long number, unsigned argument, std::uint32_t mask, std::uint32_t value,
                std::uint32_t otherwise = SECCOMP_RET_ERRNO | EPERM) {
    jump(static_cast<std::uint32_t>(number), 0, 5);
    load(static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * argument));
    code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    jump(value, 0, 1);
    result(SECCOMP_RET_ALLOW);
    result(otherwise);
  }
  bool install() {
    result(SECCOMP_RET_ERRNO | EPERM);
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
  }

 private:
  void load(std::size_t offset) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
  }
  void jump(std::uint32_t value, std::uint8_t if_equal, std::uint8_t otherwise) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, if_equal, otherwise));
  }
  void result(std::uint32_t value) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, value)); }

  std::vector<sock_filter> code_;
};

bool restrict_calls(bool writes, std::string& reason) {
  const auto own_process = static_cast<std::uint32_t>(::getpid());
  Filter filter;
#define QUERN_ALLOW(name) filter.allow(SYS_##name);
#define QUERN_ALLOW_IF(name, argument, mask, value) \
  filter.allow_if(SYS_##name, argument, static_cast<std::uint32_t>(mask), static_cast<std::uint32_t>(value));
#define QUERN_ALLOW_ELSE_TRAP(name, argument, mask, value)                                                   \
  filter.allow_if(SYS_##name, argument, static_cast<std::uint32_t>(mask), static_cast<std::uint32_t>(value), \
                  SECCOMP_RET_TRAP);
#define QUERN_TRAP(name) filter.trap(SYS_##name);
#define QUERN_ALLOW_WRITER(name) \
  if (writes) filter.allow(SYS_##name);
#include "serve/worker/system_calls.def"
#undef QUERN_ALLOW
#undef QUERN_ALLOW_IF
#undef QUERN_ALLOW_WRITER
#undef QUERN_ALLOW_ELSE_TRAP
#undef QUERN_TRAP
  if (!handle_trapped_calls()) {
    reason = "no handler of trapped calls: " + system_reason();
    return false;
  }
  filter.fail(SYS_clone3, ENOSYS);  // its flags lie in memory; the C library then takes clone
  if (filter.install()) return true;
  reason = "the kernel takes no seccomp filter: " + system_reason();
  return false;
}

bool set_limit(int resource, std::uint64_t value) {
  const rlimit limit{value, value};
  return ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0;
}

}  // namespace

bool limit_resources(const SandboxLimits& limits) {
  bool good = set_limit(RLIMIT_CORE, 0) && set_limit(RLIMIT_FSIZE, limits.file_bytes) &&
              set_limit(RLIMIT_NOFILE, 256);
  if (limits.memory_bytes != 0) good = set_limit(RLIMIT_AS, limits.memory_bytes) && good;
  return good;
}

bool limit_files(std::uint64_t bytes) { return set_limit(RLIMIT_FSIZE, bytes); }

SandboxState enter_sandbox(const std::vector<std::string>& readable, const std::string& writable) {
  SandboxState state;
  const auto miss = [&](const std::string& reason) {
    if (!reason.empty()) state.missing += (state.missing.empty() ? "" : "; ") + reason;
  };
  std::string reason;
  state.no_new_privileges = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  if (!state.no_new_privileges) miss("PR_SET_NO_NEW_PRIVS: " + system_reason());
  state.landlock = restrict_files(readable, writable, reason);
  miss(reason);
  reason.clear();
  state.seccomp = restrict_calls(!writable.empty(), reason);
  miss(reason);
  return state;
}

}  // namespace quern::serve
