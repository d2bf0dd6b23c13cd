// SPDX-License-Identifier: Apache-2.0
// Removes the rights of a process that compiling does not need, for good and for all its threads, present and
// later ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quern::serve {

struct SandboxLimits {
  std::uint64_t memory_bytes = 0;  ///< of address space; 0 if not limited
  std::uint64_t file_bytes = 0;    ///< the longest file that may be written; a worker writes none
};

/// The restrictions that are in force.
struct SandboxState {
  int landlock = 0;      ///< version of the kernel's Landlock; 0 if it does not restrict files
  bool seccomp = false;  ///< system calls are restricted
  bool no_new_privileges = false;
  bool limits = false;  ///< memory, core files, written files
  std::string missing;  ///< restrictions that are not in force, and why; empty if all are
};

/// Limits that hold from the start, before anything is loaded.
bool limit_resources(const SandboxLimits& limits);

/// The longest file that may be written from now on; a longer limit is not given back.
bool limit_files(std::uint64_t bytes);

/// From now on the process can read files below `readable` and no others, can write and create none, and can
/// make no system calls besides those that compiling needs: no sockets, no programs, no signals to others, no
/// tracing. `writable` (may be empty) is one folder in which it can make, write and remove files.
SandboxState enter_sandbox(const std::vector<std::string>& readable, const std::string& writable = {});

}  // namespace quern::serve
