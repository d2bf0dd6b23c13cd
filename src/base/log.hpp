// SPDX-License-Identifier: Apache-2.0
// The one place from which quern writes to stderr. libquern.so and the CPU device plug-in have one each; the
// plug-in's passes its records on to the other one.
#pragma once

#include <string_view>

#include "quern/log.hpp"

namespace quern::base {

/// How a message begins on stderr.
inline constexpr std::string_view kWarningPrefix = "quern: warning: ";

/// Gives the record to the program's handler, or to who takes records for it (forward_log). Where nobody
/// takes an error or a warning, `prefix`, its text and a newline go to stderr. Locks of the caller's should
/// not be held: the handler is the program's.
void log(const LogRecord& record, std::string_view prefix = kWarningPrefix) noexcept;

/// Gives the record to the program's handler. False: there is none.
bool offer_log(const LogRecord& record) noexcept;

/// Takes a record. False: nobody wanted it.
using LogForward = bool (*)(const LogRecord& record);
/// From now on records that find no handler here are offered there. Null: to nobody.
void forward_log(LogForward forward) noexcept;

}  // namespace quern::base
