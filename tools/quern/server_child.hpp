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

/// A server whose stderr is a temporary file and whose figures come by a socket that only the two have: no
/// address and no token is needed. Thread-compatible; stats() also from another thread.
class ServerChild {
 public:
  /// Throws Error(io, not_found).
  ServerChild(const std::filesystem::path& program, const std::vector<std::string>& words);
  /// The server ends with the socket.
  ~ServerChild();
  ServerChild(const ServerChild&) = delete;
  ServerChild& operator=(const ServerChild&) = delete;

  /// /v1/stats's document. Fails with "lost", "timeout" or "cancelled".
  Expected<std::string> stats(const std::function<bool()>& goes_on);
  bool is_running();
  /// The target of stderr.
  const std::string& log() const noexcept { return log_; }
  /// Tells the server to end, if it runs, and waits until it has answered its requests. Says on stderr why it
  /// failed, if it did, and where the log is. Returns its exit status.
  int end();

 private:
  void tell_log() const;

  pid_t process_ = -1;
  int status_ = -1;  // waitpid's; -1: not known yet
  int socket_ = -1;
  bool has_started_ = false;  // it has answered
  std::string log_;
};

}  // namespace quern::cli
