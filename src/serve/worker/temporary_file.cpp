// SPDX-License-Identifier: Apache-2.0
#include "serve/worker/temporary_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace quern::serve {
namespace {

int file = -1;  // written before the handler is installed

bool is_temporary(long long address) {
  const std::size_t size = std::strlen(kTemporaryFolder);
  return std::strncmp(reinterpret_cast<const char*>(address), kTemporaryFolder, size) == 0;
}

long answer(int call, const greg_t* registers) {
  const bool opens = call == SYS_open || call == SYS_openat;
  const bool is_at = call == SYS_openat || call == SYS_unlinkat;
  if (file < 0 || !is_temporary(registers[is_at ? REG_RSI : REG_RDI])) return -EPERM;
  if (!opens) return 0;
  // The file holds zeros however often it was used: its pages are written only in private mappings. The
  // position is set before each write.
  const int copy = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  return copy < 0 ? -errno : copy;
}

void on_trap(int, siginfo_t* info, void* context) {
  const int error = errno;
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  registers[REG_RAX] = answer(info->si_syscall, registers);
  errno = error;
}

}  // namespace

bool make_temporary_file(std::uint64_t bytes) {
  const int made = ::memfd_create("quern-temporary", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  const bool good = made >= 0 && ::ftruncate(made, static_cast<off_t>(bytes)) == 0 &&
                    ::fcntl(made, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0;
  if (good) file = made;
  return good;
}

bool handle_trapped_calls() {
  struct sigaction action{};
  action.sa_sigaction = &on_trap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  return ::sigaction(SIGSYS, &action, nullptr) == 0;
}

}  // namespace quern::serve
