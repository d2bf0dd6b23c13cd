// SPDX-License-Identifier: Apache-2.0
// The C ABI: handlers of messages and of what kernels print.
#include <string>
#include <vector>

#include "session/c_handles.hpp"

namespace {

using namespace quern;
using namespace quern::session::c_abi;

static_assert(static_cast<int>(LogLevel::error) == QUERN_LOG_ERROR &&
              static_cast<int>(LogLevel::warning) == QUERN_LOG_WARNING &&
              static_cast<int>(LogLevel::info) == QUERN_LOG_INFO &&
              static_cast<int>(LogLevel::debug) == QUERN_LOG_DEBUG);

void give_record(QuernLogHandler handler, void* user, const LogRecord& record) {
  std::vector<QuernLogField> fields;
  for (const LogField& field : record.fields) fields.push_back({field.name.c_str(), field.value.c_str()});
  const QuernLogRecord given{sizeof given, static_cast<QuernLogLevel>(record.level), record.text.c_str(),
                             fields.size(), fields.data()};
  handler(user, &given);
}

void give_print(QuernPrintfHandler handler, void* user, const DevicePrint& print) {
  const std::string text(print.text);
  const std::string kernel(print.kernel);
  const QuernDevicePrint given{sizeof given, 0, text.c_str(), text.size(), kernel.c_str(), print.context};
  handler(user, &given);
}

}  // namespace

QuernStatus quern_set_log_handler(QuernLogHandler handler, void* user) {
  return guarded([&] {
    if (handler == nullptr) return static_cast<void>(set_log_handler({}));
    set_log_handler([=](const LogRecord& record) { give_record(handler, user, record); });
  });
}

QuernStatus quern_set_printf_handler(QuernPrintfHandler handler, void* user) {
  return guarded([&] {
    if (handler == nullptr) return static_cast<void>(set_printf_handler({}));
    set_printf_handler([=](const DevicePrint& print) { give_print(handler, user, print); });
  });
}
