// SPDX-License-Identifier: Apache-2.0
// All messages of quern go through this log; no other code writes to stderr. libquern.so and the CPU device
// plug-in each have a copy; the copy in the plug-in offers its records to the one in libquern.so.
#pragma once

#include <string_view>

#include "quern/log.hpp"

namespace quern::base {

/// The begin of a line on stderr.
inline constexpr std::string_view kWarningPrefix = "quern: warning: ";

/// Gives the record to the handler of the program, or offers it to the function of forward_log(). If neither
/// takes an error or a warning, writes `prefix`, its text and a newline to stderr. The caller should hold no
/// lock, since the handler is code of the program.
void log(const LogRecord& record, std::string_view prefix = kWarningPrefix) noexcept;

/// Gives the record to the handler of the program. Returns false if there is none.
bool offer_log(const LogRecord& record) noexcept;

/// Takes a record. Returns false if it did not.
using LogForward = bool (*)(const LogRecord& record);
/// From now on records for which this copy of the log has no handler are offered to `forward`, unless it is
/// null.
void forward_log(LogForward forward) noexcept;
/// True if another copy of the log takes this one's records: a message of both is left to that one.
bool is_log_forwarded() noexcept;

}  // namespace quern::base
