// SPDX-License-Identifier: Apache-2.0
// quern-serve as a child of `quern serve --top`.
#pragma once

#include <sys/types.h>
#include <quern/expected.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace quern::cli {

/// A server whose stderr is a temporary file. Its statistics come over a socket that only the two processes
/// have, so no address or token is needed. Thread-compatible; another thread may call stats().
class ServerChild {
 public:
  /// Throws Error(io, not_found).
  ServerChild(const std::filesystem::path& program, const std::vector<std::string>& words);
  /// The server ends when the socket is closed.
  ~ServerChild();
  ServerChild(const ServerChild&) = delete;
  ServerChild& operator=(const ServerChild&) = delete;

  /// Returns the document of /v1/stats. Fails with "lost", "timeout" or "cancelled".
  Expected<std::string> stats(const std::function<bool()>& goes_on);
  bool is_running();
  /// The target of stderr.
  const std::string& log() const noexcept { return log_; }
  /// Ends the server, if it runs, and waits until it has answered its requests. If it failed, prints the
  /// reason and the path of the log to stderr. Returns its exit status.
  int end();

 private:
  void tell_log() const;

  pid_t process_ = -1;
  int status_ = -1;  // the result of waitpid; -1: not known yet
  int socket_ = -1;
  bool has_started_ = false;  // it has answered
  std::string log_;
};

}  // namespace quern::cli
