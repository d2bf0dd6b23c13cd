// SPDX-License-Identifier: Apache-2.0
// The server's log: one JSON object a line on stderr.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace quern::serve {

enum class Level : std::uint8_t { info, warning, error };

using LogValue = std::variant<std::string, std::int64_t, double>;
using LogFields = std::initializer_list<std::pair<std::string_view, LogValue>>;

/// {"time": "2026-01-31T12:00:00.000Z", "level": "info", "event": ..., fields}.
void log_event(Level level, std::string_view event, LogFields fields = {});

/// Messages of the library go to this log from now on.
void take_over_log();

}  // namespace quern::serve
