// SPDX-License-Identifier: Apache-2.0
// Reads the statistics of compile services repeatedly, and shows them.
#pragma once

#include <quern/expected.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace quern::cli {

/// A server to watch. `read` returns the document of /v1/stats; `goes_on` becomes false when the answer is
/// not wanted any more.
struct Watched {
  std::string label;
  std::function<Expected<std::string>(const std::function<bool()>& goes_on)> read;
};

struct WatchSettings {
  double interval_s = 1;
  std::uint64_t count = 0;  ///< readings; 0: until it is ended
  bool json = false;        ///< one document a line on stdout instead of a picture
  std::string note;         ///< the picture's last line
  /// Called between readings; false ends the view. May be empty.
  std::function<bool()> goes_on;
};

struct WatchEnd {
  bool answered = false;  ///< by at least one server at the last reading
  int signal = 0;         ///< that ended it; 0: none
  bool by_user = false;   ///< by a key or Ctrl-C on the terminal's screen
};

/// Draws on the whole terminal if stdout is one; otherwise prints a block of text for each reading. From then
/// on, SIGINT and SIGTERM end the view and not the program. Throws OutputError, and Error(usage) for an
/// invalid address.
WatchEnd watch(const std::vector<Watched>& servers, const WatchSettings& settings);

}  // namespace quern::cli
