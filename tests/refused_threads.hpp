// SPDX-License-Identifier: Apache-2.0
// Makes starting threads impossible, as where RLIMIT_NPROC or the limit of a control group is reached: unlike
// these, for the superuser, too.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

namespace quern::test {

/// From now on this thread cannot start threads: the system calls for it fail as at a limit.
inline bool refuse_threads() {
  constexpr unsigned kRefuse = SECCOMP_RET_ERRNO | EAGAIN;
  sock_filter filter[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_clone},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_clone3},
      {BPF_RET | BPF_K, 0, 0, kRefuse},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace quern::test
