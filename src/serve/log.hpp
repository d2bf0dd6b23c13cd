// SPDX-License-Identifier: Apache-2.0
// The server's log: one JSON object a line on stderr, or in a file.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "quern/expected.hpp"

namespace quern::serve {

enum class Level : std::uint8_t { info, warning, error };

using LogValue = std::variant<std::string, std::int64_t, double>;
using LogFields = std::initializer_list<std::pair<std::string_view, LogValue>>;

/// {"time": "2026-01-31T12:00:00.000Z", "level": "info", "event": ..., fields}.
void log_event(Level level, std::string_view event, LogFields fields = {});

/// From here on stderr is this file, which is appended to and made if it is not there (mode 0600): the log,
/// and what libraries and workers print. Fails with nothing changed.
Expected<void> log_to(const std::string& file);

/// Messages of the library go to this log from now on.
void take_over_log();

}  // namespace quern::serve
